package document

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
)

func TestNames(t *testing.T) {
	whole := "-" + strings.Repeat("a", 32)
	all := Beside{People: new(People), Feed: true, Stylesheet: true, LLMs: true}
	news := Beside{News: new(NewsOf)}
	for name, test := range map[string]struct {
		sections []string
		beside   Beside
		want     []string
		others   []string
	}{
		"all": {[]string{"pt-br", "0123456789a", "a"}, all, []string{
			".xml", ".xml.gz", ".txt", "-000000000000.xml", "-0123456789ab.xml.gz", "-fedcba987654.txt",
			"-a.txt", "-pt-br.xml", "-pt-br-0123456789ab.xml", "-0123456789a.xml", "-0123456789a-0123456789ab.xml.gz",
			".html", ".atom", ".css", "-html.css", "-html.js", whole + ".html",
		}, []string{
			"", "/", ".gz", ".txt.gz", ".xml.xml", ".xml/", ".xml\n", "-.xml", "_0123456789ab.xml", "-0123456789ab", "-0123456789ab.html",
			"-news.xml", "-b.xml", "-A.xml", "-a-.xml", "--a.xml", "-a_b.xml", "-0123456789AB.xml", "-00000\x00000000.xml",
			"-0123456789ab-0123456789ab.xml", "-a-0123456789ab-0123456789ab.xml", "-0123456789abc.xml", whole + ".xml",
			whole + "0.html", whole[1:] + ".html", whole[:32] + "F.html", "-0123456789ab.atom", ".css.gz", ".html/", "-a.html", "-html.xml",
			"/llms.txt", "llms.txt", "-llms.html",
		}},
		"nothing": {nil, Beside{}, []string{".xml", ".txt", "-0123456789ab.xml"},
			[]string{".html", whole + ".html", "-html.css", "-html.js", ".atom", ".css", "-news.xml", "-.xml", "-a.xml"}},
		"news":                {nil, news, []string{"-news.xml", "-news.xml.gz"}, []string{"-news.txt", "-news", "-news.html", "-News.xml", "news.xml", "-news-.xml", "-news-0123456789ab.xml"}},
		"a section like news": {[]string{"news"}, Beside{}, []string{"-news.txt", "-news-0123456789ab.xml"}, nil},
		"no name":             {[]string{"a(b|c"}, Beside{}, []string{"-a(b|c.xml"}, []string{"-c.xml"}},
	} {
		names := Names(test.sections, test.beside)
		for _, one := range test.want {
			if !names.MatchString(one) {
				t.Errorf("%s: %q is none", name, one)
			}
		}
		for _, one := range test.others {
			if names.MatchString(one) {
				t.Errorf("%s: %q is one", name, one)
			}
		}
	}
}

// TestFindForm: a document has the forms of its kind.
func TestFindForm(t *testing.T) {
	pages := withNews(foldersOf("a:300", "b:3"))
	o := inFolders(withNewsAt(testTime), "x:b")
	o.ShardURLs = 100
	o.People = new(People)
	s := build(t, pages, nil, o)
	shard := strings.TrimSuffix(s.Shards[1].Name, ".xml")
	for name, want := range map[string]struct {
		document string // "": none
		form     Form
	}{
		".xml": {".xml", FormPlain}, ".xml.gz": {".xml", FormGzip}, ".txt": {}, // an index has no list
		shard + ".xml": {shard + ".xml", FormPlain}, shard + ".xml.gz": {shard + ".xml", FormGzip}, shard + ".txt": {shard + ".xml", FormText},
		"-x.xml": {"-x.xml", FormPlain}, "-x.txt": {"-x.xml", FormText},
		"-news.xml": {"-news.xml", FormPlain}, "-news.xml.gz": {"-news.xml", FormGzip}, "-news.txt": {},
		".html": {".html", FormPlain}, ".html.gz": {}, "": {}, "-y.xml": {}, "-y.txt": {}, "-y.xml.gz": {},
	} {
		d, form := s.FindForm(name)
		got := ""
		if d != nil {
			got = d.Name
		}
		if got != want.document || d != nil && form != want.form {
			t.Errorf("%s: got %q, %d, want %+v", name, got, form, want)
		}
	}
	if d, _ := (*Set)(nil).FindForm(".txt"); d != nil {
		t.Errorf("without documents: got %+v", d)
	}
}

func TestCheckSectionName(t *testing.T) {
	for name, want := range map[string]string{
		"a": "", "blog": "", "pt-br": "", "0": "", "0123456789a": "", "0123456789abc": "", "a--b": "", "0123456789ab-a": "", strings.Repeat("z", 32): "",
		"": "use 1", "-": "use 1", "a-": "use 1", "-a": "use 1", "Blog": "use 1", "é": "use 1", "a.b": "use 1", "a/b": "use 1", "a\n": "use 1", strings.Repeat("z", 33): "use 1",
		"0123456789ab": "a name whose", "a-0123456789ab": "a name whose",
	} {
		err := CheckSectionName(name)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", name, err, want)
		}
	}
}

// FuzzSectionOf: each section has the documents of its name, and no other.
func FuzzSectionOf(f *testing.F) {
	for _, name := range []string{"blog", "pt-br", "0123456789a", "a-0123456789ab", "a\nb", ""} {
		f.Add(name, uint64(1)<<40)
	}
	f.Fuzz(func(t *testing.T, section string, id uint64) {
		if CheckSectionName(section) != nil {
			return
		}
		names := Names([]string{section}, Beside{})
		for _, name := range []string{NameOfSection(section), shardName(section, id&(1<<idBits-1))} {
			if got := SectionOf(name); got != section || !names.MatchString(name) {
				t.Errorf("%q: got section %q", name, got)
			}
		}
		if got := SectionOf(shardName("", id&(1<<idBits-1))); got != "" {
			t.Errorf("a shard of none: got %q", got)
		}
	})
}

func TestSectionOf(t *testing.T) {
	for name, want := range map[string]string{
		".xml": "", "-.xml": "", "-000000000000.xml": "", ".html": "", "-0123456789abcdef0123456789abcdef.html": "",
		"-blog.xml": "blog", "-blog-000000000000.xml": "blog", "-pt-br.xml": "pt-br", "-pt-br-0123456789ab.xml": "pt-br",
		"-0.xml": "0", "-0123456789a.xml": "0123456789a", "-a-0123456789a.xml": "a-0123456789a", "-0123456789ab-a.xml": "0123456789ab-a", "-a--b.xml": "a--b",
	} {
		if got := SectionOf(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// nameOf is the name of a shard that begins at a letter.
func nameOf(first string) string { return shardName("", ShardID(first)) }

// fake is a set of shards that begin at these letters, and are named by them.
func fake(previous *Set, now time.Time, firsts ...string) *Set {
	var shards []*Document
	for _, first := range firsts {
		shards = append(shards, &Document{Name: nameOf(first), First: first})
	}
	if len(shards) == 1 {
		shards[0].Name = ".xml"
		return retiring(&Set{Index: shards[0]}, previous, now)
	}
	return retiring(&Set{Index: &Document{Name: ".xml", Index: true}, Shards: shards}, previous, now)
}

func retiring(s, previous *Set, now time.Time) *Set {
	s.complete()
	s.retire(previous, now, func(string) string { return "" })
	return s
}

func TestRetiredNames(t *testing.T) {
	var s *Set
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
	if d := s.Find(".xml"); !d.Index {
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
	for name, s := range map[string]*Set{"one urlset": build(t, numbered(3), nil, Options{}), "shards": many, "retired": fewer,
		"files": build(t, numbered(3000), nil, Options{Beside: Beside{People: new(People), Feed: true, Stylesheet: true, LLMs: true}}),
		"news":  build(t, withNews(numbered(3000)), nil, withNewsAt(testTime))} {
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
		again, documents, err := restored.Documents()
		if err != nil || !bytes.Equal(again, meta) || !slices.Equal(names(documents), names(g.Documents())) {
			t.Errorf("%s: got %s and %v, %v", name, again, documents, err)
		}
		for i, d := range s.All() {
			if got := restored.All()[i]; got.Type != d.Type || got.ETag != d.ETag || !bytes.Equal(got.Gzip, d.Gzip) || documents[i].Object.Name != g.Documents()[i].Object.Name {
				t.Errorf("%s: got %+v, want %+v", name, got, d)
			}
		}
		for name, d := range s.names {
			if got := restored.Find(name); got == nil || got.First != d.First {
				t.Errorf("%s: '%s' is %+v, want %+v", name, name, got, d)
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

// kept returns a generation with the documents of a set.
func kept(t testing.TB, s *Set) (meta json.RawMessage, g *store.Generation) {
	t.Helper()
	st, err := store.Open(t.Context(), store.NewMemory(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	meta, documents, err := s.Documents()
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
