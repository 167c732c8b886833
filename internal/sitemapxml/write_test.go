package sitemapxml

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
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

// goldenVideo is a video with each kind of element, as lists have them.
const goldenVideo = "<video:thumbnail_loc>https://example.com/t.png</video:thumbnail_loc><video:title>A &amp; b</video:title>" +
	"<video:description>c</video:description><video:content_loc>https://example.com/v.mp4</video:content_loc>" +
	"<video:duration>90</video:duration><video:publication_date>2024-02-29</video:publication_date>" +
	"<video:family_friendly>yes</video:family_friendly>"

func goldenPages(t testing.TB) []page.Page {
	alternates := []page.Alternate{
		{Lang: "x-default", URL: base + "/"}, {Lang: "de-AT", URL: "https://example.org/de?a=1&b='2'"}, {Lang: "zh-Hant", URL: base + "/%E4%B8%AD"},
	}
	return []page.Page{
		{Path: "/"},
		{Path: "/a%20b?x=1&y='2'", LastMod: 1136214245, Extensions: &page.Extensions{Alternates: alternates}},
		{Path: "/caf%C3%A9", LastMod: 1136214245, LastModDay: true, Extensions: new(page.Extensions)},
		{Path: "/daily", ChangeFreq: freq(t, "daily"), Extensions: &page.Extensions{Images: []string{base + "/a.png"}, Videos: []string{goldenVideo}}},
		{Path: "/everything", LastMod: 1709210096, ChangeFreq: freq(t, "monthly"), Priority: prio(t, 0.55), Extensions: &page.Extensions{
			Alternates: alternates, Images: []string{base + "/a.png?w=1&h=2", "https://cdn.example.net/<b> \"c\".jpg"},
		}},
		{Path: "/never", ChangeFreq: freq(t, "never"), Priority: prio(t, 0)},
		{Path: "/top", Priority: prio(t, 1)},
		{Path: "/z\"<>\x00\x7f\xff\n"},
	}
}

func urlSet(t testing.TB, e Encoder, pages []page.Page) []byte {
	t.Helper()
	var b bytes.Buffer
	if n, err := e.URLSet(&b, pages); err != nil || n != int64(b.Len()) {
		t.Fatalf("counted %d bytes, %v, want %d", n, err, b.Len())
	}
	return b.Bytes()
}

func writeIndex(t testing.TB, e Encoder) []byte {
	t.Helper()
	var documents []page.Page
	for i, lastMod := range []int64{0, 1136214245, 1709210096} {
		loc := fmt.Sprintf("%s/sitemap-%012x.xml?a&b", base, i)
		documents = append(documents, page.Page{Path: loc, LastMod: lastMod, LastModDay: i == 2})
	}
	var b bytes.Buffer
	if n, err := e.Index(&b, documents); err != nil || n != int64(b.Len()) {
		t.Fatalf("counted %d bytes, %v, want %d", n, err, b.Len())
	}
	return b.Bytes()
}

func TestGolden(t *testing.T) {
	documents := map[string][]byte{}
	for version, e := range map[string]Encoder{"0.9": {Base: base}, "0.84": {Base: base, Schema: Schema084, Stylesheet: "b&b:'\"%20?>.css"}} {
		documents["urlset-"+version+".xml"] = urlSet(t, e, goldenPages(t))
		documents["index-"+version+".xml"] = writeIndex(t, e)
	}
	documents["extended-0.9.xml"] = urlSet(t, Encoder{Base: base, Extended: true, Stylesheet: "sitemap.css"}, goldenPages(t))
	documents["news-0.9.xml"] = goldenNews(t)
	for name, document := range documents {
		for n := range document {
			if got, want := IsOwn(document[:n]), bytes.Contains(document[:n], []byte("<!-- caddy-sitemap -->")); got != want {
				t.Fatalf("%s: IsOwn says %t of its first %d bytes", name, got, n)
			}
		}
	}
	var text bytes.Buffer
	if err := WriteText(&text, bytes.NewReader(documents["extended-0.9.xml"])); err != nil {
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
		if len(got) > maxEscape || len(appendDecoded(nil, got)) != TextSize(s, page.Page{})-len("\n") {
			t.Errorf("%q: %q does not have the length foretold", s, got)
		}
	}
}

func TestLastMod(t *testing.T) {
	for in, want := range map[int64]string{
		0: "", 1: "1970-01-01T00:00:01Z", -1: "1969-12-31T23:59:59Z", 951868799: "2000-02-29T23:59:59Z",
		-62135596800: "0001-01-01T00:00:00Z", -62135596801: "", 253402300799: "9999-12-31T23:59:59Z", 253402300800: "", -1 << 63: "", 1<<63 - 1: "",
	} {
		for _, day := range []bool{false, true} {
			want := want
			if want != "" && day {
				want = want[:len(time.DateOnly)]
			}
			if want != "" {
				want = "<lastmod>" + want + "</lastmod>"
			}
			if got := string(appendEntry(nil, page.Page{LastMod: in, LastModDay: day}, false)); got != locClose+want {
				t.Errorf("%d: got %q, want %q", in, got, want)
			}
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

// checkSizes holds documents of pages against what is foretold of them, and against encoding/xml.
func checkSizes(t *testing.T, base string, pages ...page.Page) {
	t.Helper()
	for _, e := range []Encoder{{Base: base}, {Base: base, Extended: true}, {Base: base, Stylesheet: base}} {
		text := int64(0)
		for _, p := range pages {
			text += int64(TextSize(base, p))
		}
		document := urlSet(t, e, pages)
		if bound := e.Bound(pages); !e.Extended && bound < int64(len(document)) {
			t.Errorf("a bound of %d is below %d", bound, len(document))
		}
		var b strings.Builder
		if err := WriteText(&b, bytes.NewReader(document)); int64(b.Len()) != text || err != nil {
			t.Errorf("text: got %d bytes, %v, want %d", b.Len(), err, text)
		}
		var read struct {
			Locs []string `xml:"url>loc"`
		}
		if err := xml.Unmarshal(document, &read); err != nil || strings.Join(append(read.Locs, ""), "\n") != b.String() {
			t.Errorf("%v: got the locs %q, want %q", err, read.Locs, b.String())
		}
		for i, loc := range read.Locs {
			if len(loc)+len("\n") != TextSize(base, pages[i]) || strings.ContainsFunc(loc, func(r rune) bool { return r <= ' ' || r >= 0x7F }) {
				t.Errorf("got the loc %q for %q", loc, pages[i].Path)
			}
		}
	}
}

func TestSizes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	pages := []page.Page{{Path: "/" + strings.Repeat("&", page.MaxLoc)}}
	for range 2000 {
		p := randomPage(r)
		if r.IntN(3) > 0 {
			p.Extensions = new(page.Extensions)
			for range r.IntN(4) {
				p.Extensions.Alternates = append(p.Extensions.Alternates, page.Alternate{Lang: randomPage(r).Path, URL: randomPage(r).Path})
				p.Extensions.Images = append(p.Extensions.Images, randomPage(r).Path)
			}
		}
		pages = append(pages, p)
	}
	checkSizes(t, "https://example.com/~joe's", pages...)
	checkSizes(t, base)
}

// TestTextOfLongLines has entries longer than what is read at once, and documents of others.
func TestTextOfLongLines(t *testing.T) {
	var pages []page.Page
	want := ""
	for n := maxLine - 100; n < 3*maxLine; n += 1 + n/maxLine*997 { // some end near the bounds of buffers
		rest := n - len(appendEntry([]byte(urlOpen+base+urlClose), page.Page{Path: "/b", Extensions: &page.Extensions{Images: []string{""}}}, true))
		pages = append(pages, page.Page{Path: "/b", Extensions: &page.Extensions{Images: []string{strings.Repeat("a", rest)}}})
		want += base + "/b\n"
	}
	document := urlSet(t, Encoder{Base: base, Extended: true}, pages)
	var got bytes.Buffer
	if err := WriteText(&got, iotest.HalfReader(bytes.NewReader(document))); err != nil || got.String() != want {
		t.Errorf("got %d bytes, %v, want %d", got.Len(), err, len(want))
	}
	short := document[:len(document)-maxLine]
	for name, test := range map[string]struct {
		document io.Reader
		want     error
	}{
		"cut short":     {bytes.NewReader(short), io.ErrUnexpectedEOF},
		"a broken disk": {io.MultiReader(bytes.NewReader(short), iotest.ErrReader(errFull)), errFull},
	} {
		if err := WriteText(io.Discard, test.document); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		}
	}
	if err := WriteText(&failing{10}, bytes.NewReader(document)); !errors.Is(err, errFull) {
		t.Errorf("got %v, want %v", err, errFull)
	}
}

func TestFind(t *testing.T) {
	document := urlSet(t, Encoder{Base: base, Extended: true}, goldenPages(t))
	for path, want := range map[string]bool{"/everything": true, "/a%20b?x=1&y='2'": true, "/none": false} {
		if got, err := Find(bytes.NewReader(document), base+path); got != want || err != nil {
			t.Errorf("%s: got %t, %v, want %t", path, got, err, want)
		}
	}
	cut := []byte(urlSetOpen + "\n" + urlOpen + base + "/a")
	if got, err := Find(bytes.NewReader(cut), base+"/a"); got || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut short amid a URL: got %t, %v", got, err)
	}
}

func TestBoundIsReached(t *testing.T) {
	pages := []page.Page{{Path: strings.Repeat("'", 50), LastMod: 1, ChangeFreq: freq(t, "monthly"), Priority: prio(t, 0.55)}}
	for _, e := range []Encoder{{Base: base}, {Base: base, Stylesheet: "sitemap.css"}, {Stylesheet: "a:'b'.css"}} {
		if got, want := e.Bound(pages), len(urlSet(t, e, pages)); got != int64(want) {
			t.Errorf("%+v: got %d, want %d", e, got, want)
		}
	}
	if (Encoder{Base: base}).Bound(slices.Repeat([]page.Page{{Path: strings.Repeat("a", 140)}}, 50_000)) > 52_428_800 {
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
	if _, err := (Encoder{Base: base}).URLSet(&failing{100_000}, realPages(3000)); err != errFull {
		t.Errorf("got %v", err)
	}
	if _, err := new(Encoder).Index(&failing{10}, []page.Page{{Path: base + "/a.xml"}}); err != errFull {
		t.Errorf("index: got %v", err)
	}
}

func FuzzSizes(f *testing.F) {
	f.Add("https://example.com", "/a&b'c\"d<e>f g\x00\xff", int64(1136214245), true, byte(3), byte(51), "de", "https://example.com/\"<'>.png")
	f.Add("", "", int64(0), false, byte(0), byte(0), "", "]]>")
	f.Add("https://x/y", "/%2f", int64(-62135596801), false, byte(255), byte(102), "x\n-\x00\xff", "-->")
	f.Fuzz(func(t *testing.T, base, path string, lastMod int64, day bool, freq, prio byte, lang, url string) {
		checkSizes(t, base, page.Page{Path: path, LastMod: lastMod, LastModDay: day, ChangeFreq: page.ChangeFreq(freq), Priority: page.Priority(prio),
			Extensions: &page.Extensions{Alternates: []page.Alternate{{Lang: lang, URL: url}}, Images: []string{url}}})
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
				size, err := Encoder{Base: base}.URLSet(w, pages)
				if err != nil {
					b.Fatal(err)
				}
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
				b.SetBytes(size)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(pages)), "ns/page")
		})
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
