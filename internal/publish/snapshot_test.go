package publish

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
	"github.com/seed3295b519/caddy-sitemap/internal/webpage"
)

func TestParseName(t *testing.T) {
	for _, test := range []struct {
		path   string
		suffix string
		form   Form
		ok     bool
	}{
		{"/sitemap.xml", "", FormXML, true},
		{"/sitemap.xml.gz", "", FormGzip, true},
		{"/sitemap.txt", "", FormText, true},
		{"/sitemap-000000000000.xml", "-000000000000", FormXML, true},
		{"/sitemap-0123456789ab.xml.gz", "-0123456789ab", FormGzip, true},
		{"/sitemap-fedcba987654.txt", "-fedcba987654", FormText, true},
		{"/sitemap-news.xml", "-news", FormXML, true},
		{"/sitemap-news.xml.gz", "-news", FormGzip, true},
		{"/sitemap-a.txt", "-a", FormText, true},
		{"/sitemap-pt-br-0123456789ab.xml", "-pt-br-0123456789ab", FormXML, true},
		{"/sitemap-0123456789a.xml", "-0123456789a", FormXML, true},
		{"/sitemap-0123456789abc.xml", "-0123456789abc", FormXML, true},
		{"/sitemap-0123456789abcdef0123456789abcdef.xml", "-0123456789abcdef0123456789abcdef", FormXML, true},
		{"/sitemap.html", ".html", FormFile, true},
		{"/sitemap.atom", ".atom", FormFile, true},
		{"/sitemap.css", ".css", FormFile, true},
		{"/sitemap-0123456789abcdef0123456789abcdef.html", "-0123456789abcdef0123456789abcdef.html", FormFile, true},
		{path: "/sitemap-0123456789abcdef0123456789abcdeF.html"}, {path: "/sitemap-0123456789abcdef0123456789abcdef0.html"}, {path: "/sitemap0123456789abcdef0123456789abcdef.html"},
		{path: "/sitemap-0123456789ab.atom"}, {path: "/sitemap.css.gz"}, {path: "/sitemap.html/"}, {path: "/x/sitemap.css"},
		{path: "/"}, {path: "/sitemap"}, {path: "/sitemap.gz"}, {path: "/sitemap.txt.gz"}, {path: "/sitemap.xml.xml"}, {path: "/sitemap.xml/"},
		{path: "/Sitemap.xml"}, {path: "/docs/sitemap.xml"}, {path: "/sitemap-.xml"}, {path: "/sitemap-News.xml"}, {path: "/sitemap-news.html"}, {path: "/sitemap-news-.xml"}, {path: "/sitemap--news.xml"}, {path: "/sitemap-a_b.xml"},
		{path: "/sitemap-0123456789ab-0123456789ab.xml"}, {path: "/sitemap-a-0123456789ab-0123456789ab.xml"}, {path: "/sitemap-" + strings.Repeat("a", 33) + ".xml"},
		{path: "/sitemap-0123456789AB.xml"}, {path: "/sitemap-00000\x00000000.xml"},
		{path: "/sitemap_0123456789ab.xml"}, {path: "/sitemap-0123456789ab"}, {path: "/sitemap-0123456789ab.html"},
		{path: "/llms.txt"}, {path: "/sitemap/llms.txt"}, {path: "/sitemap-llms.html"}, {path: "/sitemapllms.txt"},
	} {
		suffix, form, ok := ParseName(test.path, "/sitemap", webpage.Options{HTML: true, Feed: true, Stylesheet: true, LLMs: true})
		if ok != test.ok || ok && (suffix != test.suffix || form != test.form || "/sitemap"+suffix+form.Extension() != test.path) {
			t.Errorf("%s: got %q, %d, %t, want %q, %d, %t", test.path, suffix, form, ok, test.suffix, test.form, test.ok)
		}
	}
}

// TestParseNameOfNews: the news sitemap has the forms of a sitemap, save that of a list, where it is turned on.
func TestParseNameOfNews(t *testing.T) {
	beside := webpage.Options{News: new(webpage.NewsOptions)}
	for path, want := range map[string]struct {
		form Form
		ok   bool
	}{
		"/sitemap-news.xml": {FormXML, true}, "/sitemap-news.xml.gz": {FormGzip, true},
		"/sitemap-news.txt": {}, "/sitemap-news": {}, "/sitemap-news.html": {}, "/sitemap-News.xml": {}, "/sitemapnews.xml": {}, "/sitemap-news-.xml": {},
	} {
		suffix, form, ok := ParseName(path, "/sitemap", beside)
		if ok != want.ok || ok && (suffix != webpage.NewsSitemap || form != want.form) {
			t.Errorf("%s: got %q, %d, %t", path, suffix, form, ok)
		}
	}
	// Without news, a section may have this name.
	if suffix, _, ok := ParseName("/sitemap-news.txt", "/sitemap", webpage.Options{}); !ok || SectionOf(suffix) != "news" {
		t.Errorf("without news: got %q, %t", suffix, ok)
	}
}

// FuzzParseName: a name that is one of a document is made of its parts, and of nothing else.
func FuzzParseName(f *testing.F) {
	for _, path := range []string{"/sitemap.xml", "/sitemap-0123456789ab.txt", "/sitemap-blog.xml.gz", "/sitemap-pt-br-0123456789ab.xml", "/sitemap-.xml", "/sitemap.html"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		suffix, form, ok := ParseName(path, "/sitemap", webpage.Options{HTML: true, Feed: true, Stylesheet: true})
		section := SectionOf(suffix)
		switch {
		case !ok:
			return
		case "/sitemap"+suffix+form.Extension() != path:
			t.Errorf("%q: got %q, %d", path, suffix, form)
		case section != "" && form == FormFile:
			t.Errorf("%q: a file is of section %q", path, section)
		case section != "" && CheckSectionName(section) != nil:
			t.Errorf("%q: got section %q", path, section)
		}
		if section == "" {
			return
		}
		id := strings.TrimPrefix(suffix, suffixOfSection(section))
		if IsOfSection(suffix) != (id == "") || id != "" && !isHash(id, shardHash) {
			t.Errorf("%q: of section %q, and then %q", path, section, id)
		}
	})
}

func TestSectionOf(t *testing.T) {
	for suffix, want := range map[string]string{
		"": "", "-": "", "-000000000000": "", ".html": "", "-0123456789abcdef0123456789abcdef.html": "",
		"-blog": "blog", "-blog-000000000000": "blog", "-pt-br": "pt-br", "-pt-br-0123456789ab": "pt-br",
		"-0": "0", "-0123456789a": "0123456789a", "-0123456789ag": "0123456789ag", "-a-0123456789a": "a-0123456789a",
		"-a--b": "a--b", "-a-0123456789AB": "", "-a-": "", "--a": "", "-Blog": "", "-é": "", "-a.b": "", "-a/b": "", "blog": "",
		"-0123456789ab-0123456789ab": "", "-a-0123456789ab-0123456789ab": "", "-0123456789ab-a": "0123456789ab-a",
		"-" + strings.Repeat("z", 32): strings.Repeat("z", 32), "-" + strings.Repeat("z", 33): "",
	} {
		if got := SectionOf(suffix); got != want {
			t.Errorf("%s: got %q, want %q", suffix, got, want)
		}
	}
}

// nameOf is the suffix of a shard that begins at a letter.
func nameOf(first string) string { return suffixOf("", ShardID(first)) }

// fake is a snapshot of shards that begin at these letters, and are named by them.
func fake(previous *Snapshot, now time.Time, firsts ...string) *Snapshot {
	var shards []*Document
	for _, first := range firsts {
		shards = append(shards, &Document{Suffix: nameOf(first), First: first})
	}
	if len(shards) == 1 {
		shards[0].Suffix = ""
		return retiring(&Snapshot{Index: shards[0]}, previous, now)
	}
	return retiring(&Snapshot{Index: &Document{Index: true}, Shards: shards}, previous, now)
}

func retiring(s, previous *Snapshot, now time.Time) *Snapshot {
	s.complete()
	s.retire(previous, now, func(string) string { return "" })
	return s
}

func TestRetiredNames(t *testing.T) {
	var s *Snapshot
	for i, test := range []struct {
		firsts string
		want   string // by letter: the shard that answers for it
	}{
		{"a f m t", "a:a f:f m:m t:t x:"},
		{"a m t", "a:a f:a m:m t:t"},       // the pages of f went into the shard before it,
		{"a e m t", "a:a e:e f:e m:m t:t"}, // whose cut moved,
		{"a f m t", "a:a e:a f:f m:m t:t"}, // and the name came back
		{"b m t", "a:b b:b e:b f:b m:m"},   // the first page of a went away: the shard that would hold it
		{"b", "a:b b:b e:b f:b m:b t:b x:"},
		{"b m", "b:b m:m t:m a:b"},
	} {
		s = fake(s, testTime, strings.Fields(test.firsts)...)
		for _, pair := range strings.Fields(test.want) {
			name, want, _ := strings.Cut(pair, ":")
			got := ""
			if d := s.Find(nameOf(name)); d != nil {
				got = d.First
			}
			if got != want {
				t.Errorf("step %d: %s is the shard from %q, want %q", i, name, got, want)
			}
		}
	}
	if d := s.Find(""); !d.Index {
		t.Errorf("the sitemap is %+v, want the index", d)
	}
}

func TestRetiredNamesEnd(t *testing.T) {
	s := fake(fake(nil, testTime, "a", "f"), testTime, "a", "g")
	soon := fake(s, testTime.Add(retiredFor-time.Second), "a", "g")
	if soon.Find(nameOf("f")) == nil || !s.Equal(soon) {
		t.Error("the name is forgotten before its 90 days")
	}
	later := fake(s, testTime.Add(retiredFor), "a", "g")
	if later.Find(nameOf("f")) != nil || s.Equal(later) {
		t.Error("the name is known after its 90 days")
	}

	s = fake(nil, testTime, "a", "b")
	for i := range maxRetired / 1000 * 3 {
		firsts := []string{"a"}
		for j := range 500 {
			firsts = append(firsts, fmt.Sprintf("b%05d%03d", i, j))
		}
		s = fake(s, testTime, firsts...)
	}
	if len(s.retired) != maxRetired || s.Find(nameOf("b")) != nil || s.Find(nameOf("b00028499")) == nil {
		t.Errorf("%d names are remembered, want the latest %d", len(s.retired), maxRetired)
	}
}

func TestRestore(t *testing.T) {
	many := build(t, numbered(1000), nil, Options{ShardURLs: 50})
	fewer := build(t, numbered(1100)[200:], many, Options{ShardURLs: 50})
	fewer.LeftOut[NoRoom] = 3
	if len(fewer.retired) == 0 {
		t.Fatal("no names were retired")
	}
	for name, s := range map[string]*Snapshot{"one urlset": build(t, numbered(3), nil, Options{}), "shards": many, "retired": fewer,
		"files": build(t, numbered(3000), nil, Options{Options: webpage.Options{HTML: true, Feed: true, Stylesheet: true, LLMs: true}}),
		"news":  build(t, withNews(numbered(3000)), nil, newsOptions(testTime))} {
		meta, g := kept(t, s)
		documents := slices.Clone(g.Documents()) // in any order
		documents[0], documents[len(documents)-1] = documents[len(documents)-1], documents[0]
		restored, err := Restore(t.Context(), meta, g.WithDocuments(nil, documents), nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !s.Equal(restored) || restored.Pages != s.Pages || restored.Bytes != s.Bytes || !maps.Equal(restored.LeftOut, s.LeftOut) {
			t.Errorf("%s: got %+v, want %+v", name, restored, s)
		}
		again, documents, err := restored.Documents(g)
		if err != nil || !bytes.Equal(again, meta) || !slices.Equal(names(documents), names(g.Documents())) {
			t.Errorf("%s: got %s and %v, %v", name, again, documents, err)
		}
		for i, d := range s.all() {
			if got := restored.all()[i]; got.Type != d.Type || got.Policy != d.Policy || got.Headers != d.Headers || !bytes.Equal(got.Gzip, d.Gzip) || documents[i].Object != g.Documents()[i].Object {
				t.Errorf("%s: got %+v, want %+v", name, got, d)
			}
		}
		for suffix, d := range s.names {
			if got := restored.Find(suffix); got == nil || got.First != d.First {
				t.Errorf("%s: '%s' is %+v, want %+v", name, suffix, got, d)
			}
		}
	}
	// What follows a restart carries over.
	meta, g := kept(t, many)
	restored, err := Restore(t.Context(), meta, g, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := changed(restored, build(t, numbered(1000), restored, Options{ShardURLs: 50, Now: testTime.Add(time.Hour)})); got != nil {
		t.Errorf("%q changed", got)
	}
}

// kept returns a generation with the documents of a snapshot.
func kept(t testing.TB, s *Snapshot) (meta json.RawMessage, g *store.Generation) {
	t.Helper()
	st, err := store.Open(t.Context(), store.NewMemory(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	meta, documents, err := s.Documents(st.Last())
	if err != nil {
		t.Fatal(err)
	}
	return meta, st.Last().WithDocuments(nil, documents)
}

func names(documents []store.StoredDocument) (all []string) {
	for _, d := range documents {
		all = append(all, d.Name+string(d.Meta))
	}
	return all
}

func TestRestoreMalformed(t *testing.T) {
	whole, g := kept(t, build(t, numbered(1000), nil, Options{ShardURLs: 50}))
	for name, spoil := range map[string]func(meta *string, documents []store.StoredDocument) []store.StoredDocument{
		"nothing":            func(_ *string, _ []store.StoredDocument) []store.StoredDocument { return nil },
		"no index":           func(_ *string, d []store.StoredDocument) []store.StoredDocument { return d[1:] },
		"no shards":          func(_ *string, d []store.StoredDocument) []store.StoredDocument { return d[:1] },
		"not all shards":     func(_ *string, d []store.StoredDocument) []store.StoredDocument { return d[:len(d)-1] },
		"meta":               func(meta *string, d []store.StoredDocument) []store.StoredDocument { *meta = "[]"; return d },
		"no meta":            func(meta *string, d []store.StoredDocument) []store.StoredDocument { *meta = ""; return d },
		"no document's meta": func(_ *string, d []store.StoredDocument) []store.StoredDocument { d[1].Meta = nil; return d },
	} {
		meta := string(whole)
		documents := spoil(&meta, slices.Clone(g.Documents()))
		if s, err := Restore(t.Context(), json.RawMessage(meta), g.WithDocuments(nil, documents), nil); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("%s: got %+v, %v", name, s, err)
		}
	}
}
