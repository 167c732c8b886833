package publish

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
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
		{path: "/"}, {path: "/sitemap"}, {path: "/sitemap.gz"}, {path: "/sitemap.txt.gz"}, {path: "/sitemap.xml.xml"}, {path: "/sitemap.xml/"},
		{path: "/Sitemap.xml"}, {path: "/docs/sitemap.xml"}, {path: "/sitemap-.xml"}, {path: "/sitemap-0123456789a.xml"},
		{path: "/sitemap-0123456789abc.xml"}, {path: "/sitemap-0123456789AB.xml"}, {path: "/sitemap-0123456789ag.xml"}, {path: "/sitemap-00000\x00000000.xml"},
		{path: "/sitemap_0123456789ab.xml"}, {path: "/sitemap-0123456789ab"}, {path: "/sitemap-0123456789ab.html"}, {path: "/sitemap-news.xml"},
	} {
		suffix, form, ok := ParseName(test.path, "/sitemap")
		if ok != test.ok || ok && (suffix != test.suffix || form != test.form || "/sitemap"+suffix+form.Extension() != test.path) {
			t.Errorf("%s: got %q, %d, %t, want %q, %d, %t", test.path, suffix, form, ok, test.suffix, test.form, test.ok)
		}
	}
}

// fake is a snapshot of shards that begin at these letters, and are named by them.
func fake(previous *Snapshot, now time.Time, firsts ...string) *Snapshot {
	var shards []*Document
	for _, first := range firsts {
		shards = append(shards, &Document{Suffix: "-" + first, First: first})
	}
	if len(shards) == 1 {
		shards[0].Suffix = ""
		return newSnapshot(shards[0], nil, previous, now, nil)
	}
	return newSnapshot(&Document{Index: true}, shards, previous, now, nil)
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
			if d := s.Find("-" + name); d != nil {
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
	if soon.Find("-f") == nil || !s.Equal(soon) {
		t.Error("the name is forgotten before its 90 days")
	}
	later := fake(s, testTime.Add(retiredFor), "a", "g")
	if later.Find("-f") != nil || s.Equal(later) {
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
	if len(s.retired) != maxRetired || s.Find("-b") != nil || s.Find("-b00028499") == nil {
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
	for name, s := range map[string]*Snapshot{"one urlset": build(t, numbered(3), nil, Options{}), "shards": many, "retired": fewer} {
		meta, documents, err := s.Documents()
		if err != nil {
			t.Fatal(err)
		}
		for i := range documents { // bytes that are not shared, and in any order
			documents[i].Gzip = bytes.Clone(documents[i].Gzip)
			documents[0], documents[i] = documents[i], documents[0]
		}
		restored, err := Restore(meta, documents)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !s.Equal(restored) || restored.Pages != s.Pages || restored.Bytes != s.Bytes || !maps.Equal(restored.LeftOut, s.LeftOut) {
			t.Errorf("%s: got %+v, want %+v", name, restored, s)
		}
		if got := changed(s, restored); len(got) != len(s.Shards)+1 { // only since their bytes are not shared
			t.Errorf("%s: got %q", name, got)
		}
		checkSameDocuments(t, s, restored)
		for suffix, d := range s.names {
			if got := restored.Find(suffix); got == nil || got.First != d.First {
				t.Errorf("%s: '%s' is %+v, want %+v", name, suffix, got, d)
			}
		}
	}
	// What follows a restart carries over.
	meta, documents, _ := many.Documents()
	restored, err := Restore(meta, documents)
	if err != nil {
		t.Fatal(err)
	}
	if got := changed(restored, build(t, numbered(1000), restored, Options{ShardURLs: 50, Now: testTime.Add(time.Hour)})); got != nil {
		t.Errorf("%q changed", got)
	}
}

// checkSameDocuments compares all that is stored of two snapshots.
func checkSameDocuments(t *testing.T, a, b *Snapshot) {
	t.Helper()
	metaA, docsA, errA := a.Documents()
	metaB, docsB, errB := b.Documents()
	if errA != nil || errB != nil || !bytes.Equal(metaA, metaB) || len(docsA) != len(docsB) {
		t.Fatalf("%s, %d documents, %v; %s, %d documents, %v", metaA, len(docsA), errA, metaB, len(docsB), errB)
	}
	for i, d := range docsA {
		if d.Name != docsB[i].Name || !bytes.Equal(d.Meta, docsB[i].Meta) || !bytes.Equal(d.Gzip, docsB[i].Gzip) || a.all()[i].Headers != b.all()[i].Headers {
			t.Errorf("%s %s is not %s %s", d.Name, d.Meta, docsB[i].Name, docsB[i].Meta)
		}
	}
}

func TestRestoreMalformed(t *testing.T) {
	s := build(t, numbered(1000), nil, Options{ShardURLs: 50})
	for name, spoil := range map[string]func(meta *string, documents []Stored) []Stored{
		"nothing":            func(_ *string, _ []Stored) []Stored { return nil },
		"no index":           func(_ *string, d []Stored) []Stored { return d[1:] },
		"no shards":          func(_ *string, d []Stored) []Stored { return d[:1] },
		"a document twice":   func(_ *string, d []Stored) []Stored { return append(d, d[1]) },
		"a page twice":       func(_ *string, d []Stored) []Stored { d[2].Meta = d[1].Meta; d[2].Gzip = d[1].Gzip; return d },
		"an index as shard":  func(_ *string, d []Stored) []Stored { d[2].Meta = d[0].Meta; d[2].Gzip = d[0].Gzip; return d },
		"a name":             func(_ *string, d []Stored) []Stored { d[2].Name = "index"; return d },
		"another form":       func(_ *string, d []Stored) []Stored { d[0].Name = "sitemap.xml"; return d },
		"meta":               func(meta *string, d []Stored) []Stored { *meta = "[]"; return d },
		"no meta":            func(meta *string, d []Stored) []Stored { *meta = ""; return d },
		"a retired name":     func(meta *string, d []Stored) []Stored { *meta = `{"retired":[{"suffix":"","first":"/"}]}`; return d },
		"a retired page":     func(meta *string, d []Stored) []Stored { *meta = `{"retired":[{"suffix":"-0123456789ab"}]}`; return d },
		"no document's meta": func(_ *string, d []Stored) []Stored { d[1].Meta = nil; return d },
		"no bytes":           func(_ *string, d []Stored) []Stored { d[1].Gzip = nil; return d },
		"half of the bytes":  func(_ *string, d []Stored) []Stored { d[1].Gzip = d[1].Gzip[:len(d[1].Gzip)/2]; return d },
	} {
		meta, documents, _ := s.Documents()
		text := string(meta)
		documents = spoil(&text, documents)
		if s, err := Restore(json.RawMessage(text), documents); err == nil {
			t.Errorf("%s: got %+v", name, s)
		}
	}
	for _, field := range []string{
		`"size":1`, `"size":-1`, `"etag":""`, `"etag":"a\r\nb"`, `"etag":"A"`, `"modified":"0001-01-01T00:00:00Z"`, `"modified":"2026-03-04T05:06:07.5Z"`,
		`"modified":"2026-03-04T05:06:07+01:00"`, `"modified":1`, `"pages":0`, `"pages":50001`, `"first":""`, `"first":"a"`, `"text_size":0`, `"text_size":1000000000`,
	} {
		meta, documents, _ := s.Documents()
		documents[1].Meta = append(bytes.TrimSuffix(bytes.Clone(documents[1].Meta), []byte("}")), ","+field+"}"...)
		if s, err := Restore(meta, documents); err == nil {
			t.Errorf("%s: got %+v", field, s)
		}
	}
}

func FuzzRestore(f *testing.F) {
	s := build(f, numbered(120), build(f, numbered(80), nil, Options{ShardURLs: 50}), Options{ShardURLs: 50})
	meta, documents, _ := s.Documents()
	f.Add([]byte(meta), documents[0].Name, []byte(documents[0].Meta), documents[0].Gzip, documents[1].Name, []byte(documents[1].Meta), documents[1].Gzip)
	f.Add([]byte(`{"retired":[{"suffix":"-0123456789ab","first":"/a","at":"2026-03-04T05:06:07Z"}],"left_out":{"a":1}}`),
		documents[0].Name, []byte(documents[0].Meta), documents[0].Gzip, documents[2].Name, []byte(documents[2].Meta), documents[2].Gzip)
	f.Fuzz(func(t *testing.T, meta []byte, nameA string, metaA, gzipA []byte, nameB string, metaB, gzipB []byte) {
		s, err := Restore(meta, []Stored{{nameA, metaA, gzipA}, {nameB, metaB, gzipB}})
		if err != nil {
			return
		}
		for _, path := range []string{"/", "/p/0000042.html", "\xff"} {
			if s.Holding(path) == nil || s.Find("") != s.Index {
				t.Errorf("nothing holds %q", path)
			}
		}
		for _, d := range s.all() {
			if strings.ContainsAny(d.ETag, "\"\r\n") {
				t.Errorf("the ETag is %q", d.ETag)
			}
			if r, err := d.XML(); err == nil {
				r.Close()
			}
		}
		again, docs, err := s.Documents()
		if err != nil {
			t.Fatal(err)
		}
		restored, err := Restore(again, docs)
		if err != nil {
			t.Fatalf("%v: %s %s", err, again, docs[0].Meta)
		}
		checkSameDocuments(t, s, restored)
	})
}
