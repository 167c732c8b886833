package sitemapxml

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

var update = flag.Bool("update", false, "write the golden files")

const base = "https://example.com"

func freq(t testing.TB, name string) page.ChangeFreq {
	t.Helper()
	c, err := page.ParseChangeFreq(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func prio(t testing.TB, f float64) page.Priority {
	t.Helper()
	p, err := page.PriorityOf(f)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func goldenPages(t testing.TB) []page.Page {
	return []page.Page{
		{Path: "/"},
		{Path: "/a%20b?x=1&y='2'", LastMod: 1136214245},
		{Path: "/caf%C3%A9", LastMod: 1136214245, LastModDay: true},
		{Path: "/daily", ChangeFreq: freq(t, "daily")},
		{Path: "/everything", LastMod: 1709210096, ChangeFreq: freq(t, "monthly"), Priority: prio(t, 0.55)},
		{Path: "/never", ChangeFreq: freq(t, "never"), Priority: prio(t, 0)},
		{Path: "/top", Priority: prio(t, 1)},
		{Path: "/z\"<>\x00\x7f\xff\n"},
	}
}

func writeURLSet(t testing.TB, s Schema, base string, pages []page.Page) []byte {
	t.Helper()
	var b bytes.Buffer
	u := NewURLSet(&b, s, base)
	for _, p := range pages {
		if err := u.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	if u.Bytes() != int64(b.Len()) {
		t.Errorf("counted %d bytes, want %d", u.Bytes(), b.Len())
	}
	return b.Bytes()
}

func writeIndex(t testing.TB, s Schema) []byte {
	t.Helper()
	var b bytes.Buffer
	x := NewIndex(&b, s)
	for i, lastMod := range []int64{0, 1136214245, 1709210096} {
		loc := fmt.Sprintf("%s/sitemap-%012x.xml?a&b", base, i)
		if err := x.Add(loc, lastMod, i == 2); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if x.Bytes() != int64(b.Len()) {
		t.Errorf("counted %d bytes, want %d", x.Bytes(), b.Len())
	}
	return b.Bytes()
}

func TestGolden(t *testing.T) {
	documents := map[string][]byte{}
	for _, s := range []Schema{Schema09, Schema084} {
		documents["urlset-"+s.String()+".xml"] = writeURLSet(t, s, base, goldenPages(t))
		documents["index-"+s.String()+".xml"] = writeIndex(t, s)
	}
	var text bytes.Buffer
	if _, err := WriteText(&text, bytes.NewReader(documents["urlset-0.9.xml"])); err != nil {
		t.Fatal(err)
	}
	documents["urlset.txt"] = text.Bytes()

	for name, got := range documents {
		file := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
}

func TestParseSchema(t *testing.T) {
	for _, test := range []struct {
		in        string
		want      Schema
		namespace string
		ok        bool
	}{
		{"", Schema09, "http://www.sitemaps.org/schemas/sitemap/0.9", true},
		{"0.9", Schema09, "http://www.sitemaps.org/schemas/sitemap/0.9", true},
		{"0.84", Schema084, "http://www.google.com/schemas/sitemap/0.84", true},
		{"0.90", 0, "", false},
		{"1.0", 0, "", false},
	} {
		got, err := ParseSchema(test.in)
		if got != test.want || (err == nil) != test.ok {
			t.Errorf("ParseSchema(%q): got %v, %v", test.in, got, err)
		}
		if test.ok && got.Namespace() != test.namespace {
			t.Errorf("ParseSchema(%q): got namespace %q, want %q", test.in, got.Namespace(), test.namespace)
		}
	}
}

func TestEscaping(t *testing.T) {
	for in, want := range map[string]string{
		"":           "",
		"/plain":     "/plain",
		"&":          "&amp;",
		"'":          "&apos;",
		`"`:          "&quot;",
		"<":          "&lt;",
		">":          "&gt;",
		"a&b'c":      "a&amp;b&apos;c",
		"&&":         "&amp;&amp;",
		"&amp;":      "&amp;amp;",
		"/%2F%":      "/%2F%",
		" ":          "%20",
		"a\tb\r\n":   "a%09b%0D%0A",
		"\x00\x1f":   "%00%1F",
		"\x7f\x80é":  "%7F%80%C3%A9",
		"\xff\u2028": "%FF%E2%80%A8",
	} {
		if got := string(appendURL(nil, in)); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	for c := range 256 {
		s := string([]byte{byte(c)})
		got := appendURL(nil, s)
		if len(got) != lengthOf(s, &xmlLen) || len(appendDecoded(nil, got)) != lengthOf(s, &urlLen) {
			t.Errorf("%q: %q does not have the length foretold", s, got)
		}
		if len(got) > maxXMLLen {
			t.Errorf("%q: %q is longer than %d", s, got, maxXMLLen)
		}
	}
}

func TestLastMod(t *testing.T) {
	at := func(s string) int64 {
		v, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return v.Unix()
	}
	for _, test := range []struct {
		in   int64
		want string
	}{
		{0, ""},
		{1, "1970-01-01T00:00:01Z"},
		{-1, "1969-12-31T23:59:59Z"},
		{at("1981-05-06T07:08:09Z"), "1981-05-06T07:08:09Z"},
		{at("2000-02-29T23:59:59Z"), "2000-02-29T23:59:59Z"},
		{at("1900-02-28T23:59:59Z") + 1, "1900-03-01T00:00:00Z"},
		{at("2024-02-29T00:00:00Z"), "2024-02-29T00:00:00Z"},
		{at("2023-02-28T23:59:59Z") + 1, "2023-03-01T00:00:00Z"},
		{at("2026-12-31T23:59:59Z"), "2026-12-31T23:59:59Z"},
		{minTime, "0001-01-01T00:00:00Z"},
		{minTime - 1, ""},
		{maxTime, "9999-12-31T23:59:59Z"},
		{maxTime + 1, ""},
		{-1 << 63, ""},
		{1<<63 - 1, ""},
	} {
		for _, day := range []bool{false, true} {
			want := test.want
			if want != "" {
				if day {
					want = want[:dateLen]
				}
				want = "<lastmod>" + want + "</lastmod>"
			}
			if got := string(appendLastMod(nil, test.in, day)); got != want {
				t.Errorf("%d: got %q, want %q", test.in, got, want)
			}
		}
	}
}

func TestLocLen(t *testing.T) {
	for _, n := range []int{page.MaxLoc, page.MaxLoc + 1} {
		p := page.Page{Path: "/" + strings.Repeat("&", n-len(base)-1)}
		if got := LocLen(base, p); got != n {
			t.Errorf("got %d, want %d", got, n)
		}
		if got := TextSize(base, p); got != n+1 {
			t.Errorf("text: got %d, want %d", got, n+1)
		}
		document := writeURLSet(t, Schema09, base, []page.Page{p})
		var text bytes.Buffer
		if _, err := WriteText(&text, bytes.NewReader(document)); err != nil {
			t.Fatal(err)
		}
		if got, want := text.String(), base+p.Path+"\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestEmptyDocument(t *testing.T) {
	for _, s := range []Schema{Schema09, Schema084} {
		if got, want := len(writeURLSet(t, s, base, nil)), int(Overhead(s)); got != want {
			t.Errorf("%v: got %d bytes, want %d", s, got, want)
		}
	}
}

// randomPage may have any bytes in its path and any values, valid or not.
func randomPage(r *rand.Rand) page.Page {
	path := make([]byte, r.IntN(100))
	for i := range path {
		if path[i] = byte(r.IntN(256)); r.IntN(4) > 0 {
			path[i] = "abc/&'\"<>%?="[r.IntN(12)]
		}
	}
	p := page.Page{Path: "/" + string(path), LastModDay: r.IntN(2) == 0}
	switch r.IntN(4) {
	case 0:
		p.LastMod = r.Int64N(2e9)
	case 1:
		p.LastMod = int64(r.Uint64())
	}
	if r.IntN(2) == 0 {
		p.ChangeFreq, p.Priority = page.ChangeFreq(r.IntN(256)), page.Priority(r.IntN(256))
	}
	return p
}

func TestSizes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var pages []page.Page
	var pathBytes, text int64
	const base = "https://example.com/~joe's"
	size := Overhead(Schema084)
	for range 5000 {
		p := randomPage(r)
		pages = append(pages, p)
		size += int64(EntrySize(base, p))
		text += int64(TextSize(base, p))
		pathBytes += int64(len(p.Path))
	}
	document := writeURLSet(t, Schema084, base, pages)
	if int64(len(document)) != size {
		t.Errorf("got %d bytes, want %d", len(document), size)
	}
	if bound := EntriesBound(base, len(pages), pathBytes); bound < size-Overhead(Schema084) {
		t.Errorf("a bound of %d is below %d", bound, size)
	}
	var b bytes.Buffer
	n, err := WriteText(&b, bytes.NewReader(document))
	if err != nil || n != text || int64(b.Len()) != text {
		t.Errorf("text: got %d and %d bytes, %v, want %d", n, b.Len(), err, text)
	}
}

func TestEntriesBoundIsReached(t *testing.T) {
	p := page.Page{Path: strings.Repeat("'", 50), LastMod: 1, ChangeFreq: freq(t, "monthly"), Priority: prio(t, 0.55)}
	if got, want := EntriesBound(base, 1, 50), int64(EntrySize(base, p)); got != want {
		t.Errorf("got %d, want %d", got, want)
	}
	if EntriesBound(base, 50_000, 50_000*140)+Overhead(Schema09) > 52_428_800 {
		t.Error("50,000 ordinary pages have to be measured")
	}
}

// failing fails when it has taken n bytes.
type failing struct{ n int }

var errFull = errors.New("full")

func (f *failing) Write(p []byte) (int, error) {
	if f.n -= len(p); f.n < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestWriteError(t *testing.T) {
	u := NewURLSet(&failing{100_000}, Schema09, base)
	var err error
	added := 0
	for ; err == nil && added < 1e6; added++ {
		err = u.Add(page.Page{Path: "/page"})
	}
	if err != errFull || added > 3000 {
		t.Errorf("got %v after %d pages", err, added)
	}
	if err := u.Add(page.Page{Path: "/page"}); err != errFull {
		t.Errorf("then: got %v", err)
	}
	if err := u.Close(); err != errFull {
		t.Errorf("Close: got %v", err)
	}
	x := NewIndex(&failing{10}, Schema09)
	x.Add(base+"/a.xml", 0, false)
	if err := x.Close(); err != errFull {
		t.Errorf("index: got %v", err)
	}
}

func FuzzEntrySize(f *testing.F) {
	f.Add("https://example.com", "/a&b'c\"d<e>f g\x00\xff", int64(1136214245), true, byte(3), byte(51))
	f.Add("", "", int64(0), false, byte(0), byte(0))
	f.Add("https://x/y", "/%2f", int64(-62135596801), false, byte(255), byte(102))
	f.Fuzz(func(t *testing.T, base, path string, lastMod int64, day bool, freq, prio byte) {
		p := page.Page{Path: path, LastMod: lastMod, LastModDay: day, ChangeFreq: page.ChangeFreq(freq), Priority: page.Priority(prio)}
		document := writeURLSet(t, Schema09, base, []page.Page{p})
		size := EntrySize(base, p)
		if got, want := int64(len(document)), Overhead(Schema09)+int64(size); got != want {
			t.Fatalf("got %d bytes, want %d:\n%s", got, want, document)
		}
		if bound := EntriesBound(base, 1, int64(len(path))); bound < int64(size) {
			t.Fatalf("bound %d is below %d", bound, size)
		}
		locs := locsOf(t, document)
		if len(locs) != 1 || len(locs[0]) != LocLen(base, p) {
			t.Fatalf("LocLen is %d for %q", LocLen(base, p), locs)
		}
		if strings.ContainsFunc(locs[0], func(r rune) bool { return r <= ' ' || r >= 0x7F }) {
			t.Fatalf("a loc of %q", locs[0])
		}
	})
}

// realPages are n pages as a site of that size has them: sorted, some 60 bytes a
// path, changed at any second of some years.
func realPages(n int) []page.Page {
	r := rand.New(rand.NewPCG(5, 6))
	words := strings.Fields("about archive article blog case category city contact guide help history home image list map market " +
		"news north order page people photo price product question review river school search service shop south story street table team " +
		"topic travel update user video water week winter world writing year zone")
	word := func() string { return words[r.IntN(len(words))] }
	pages := make([]page.Page, n)
	folder := ""
	for i := range pages {
		if i%200 == 0 {
			folder = fmt.Sprintf("/%s/%05d-%s", word(), i/200, word())
		}
		pages[i] = page.Page{
			Path:    fmt.Sprintf("%s/%s-%s-%s-%07d.html", folder, word(), word(), word(), i),
			LastMod: 1_500_000_000 + r.Int64N(250_000_000),
		}
	}
	return pages
}

func BenchmarkWriteShard(b *testing.B) {
	pages := realPages(50_000)
	for _, what := range []struct {
		name string
		w    func() io.WriteCloser
	}{
		{"plain", func() io.WriteCloser { return nopCloser{io.Discard} }},
		{"gzip", func() io.WriteCloser { return NewGzip(io.Discard) }},
	} {
		b.Run(what.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w := what.w()
				u := NewURLSet(w, Schema09, base)
				for _, p := range pages {
					u.Add(p)
				}
				if err := u.Close(); err != nil {
					b.Fatal(err)
				}
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
				b.SetBytes(u.Bytes())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(pages)), "ns/page")
		})
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func BenchmarkEntrySize(b *testing.B) {
	pages := realPages(1000)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		for _, p := range pages {
			n += EntrySize(base, p)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(pages)), "ns/page")
}
