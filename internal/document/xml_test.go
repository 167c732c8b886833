package document

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

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

// urlSet is the document of pages, in the order in which they are given.
func urlSet(o Options, pages []page.Page) []byte {
	var entries []byte
	namespaces := ""
	for _, p := range pages {
		entries = appendEntry(entries, o.Base, p, o.Extended)
	}
	if o.Extended {
		namespaces = extensionNamespaces
	}
	return o.urlset(namespaces, entries)
}

func goldenIndex(o Options) []byte {
	var documents []*Document
	for i, lastMod := range []int64{0, 1136214245, 1709210096} {
		documents = append(documents, &Document{Name: fmt.Sprintf("-%012x.xml?a&b", i), LastMod: lastMod, LastModDay: i == 2})
	}
	return o.index(documents)
}

func goldenNews(o Options) []byte {
	o.News = &NewsOf{Publication: `The "Example" & <Times>`}
	o.Now = time.Unix(1709210096, 0)
	b := newBuilder(nil, o)
	n := newNews(b)
	for _, a := range []article{
		{path: "/a?x=1&y='2'", published: 1709210096, title: `A & B's <b>"title"</b>`, lang: "en"},
		{path: "/day", published: 1709164800, day: true, title: "שלום 👩‍👧 }}", lang: "zh-tw"},
		{path: "/no-news", published: 1136214245, title: "left out"},
	} {
		n.articles.add(a)
		n.made.Pages++
	}
	n.finish()
	_ = b.workers.Wait()
	xml, _ := b.made.Others[0].Open()
	body, _ := io.ReadAll(xml)
	return body
}

func TestGolden(t *testing.T) {
	plain := Options{Base: base, Sitemap: base + "/sitemap"}
	styled := plain
	styled.Stylesheet = true
	extended := styled
	extended.Extended = true
	old := styled
	old.Schema = Schema084
	old.Sitemap = base + "/b&b:'\"%20?>"
	documents := map[string][]byte{
		"urlset-0.9.xml":   urlSet(plain, goldenPages(t)),
		"index-0.9.xml":    goldenIndex(plain),
		"urlset-0.84.xml":  urlSet(old, goldenPages(t)),
		"index-0.84.xml":   goldenIndex(old),
		"extended-0.9.xml": urlSet(extended, goldenPages(t)),
		"news-0.9.xml":     goldenNews(styled),
	}
	for name, document := range documents {
		for n := range document {
			if got, want := IsOwn(document[:n]), bytes.Contains(document[:n], []byte("<!-- caddy-sitemap -->")); got != want {
				t.Fatalf("%s: IsOwn says %t of its first %d bytes", name, got, n)
			}
		}
	}
	var text bytes.Buffer
	if err := writeText(&text, bytes.NewReader(documents["extended-0.9.xml"])); err != nil {
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
			if got := string(appendLastMod(nil, in, day)); got != want {
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

// checkTexts holds documents of pages against their texts, and against encoding/xml.
func checkTexts(t *testing.T, base string, pages ...page.Page) {
	t.Helper()
	for _, o := range []Options{{Base: base}, {Base: base, Extended: true}, {Base: base, Sitemap: base, Beside: Beside{Stylesheet: true}}} {
		document := urlSet(o, pages)
		var b strings.Builder
		if err := writeText(&b, bytes.NewReader(document)); int64(b.Len()) != textSize(document) || err != nil {
			t.Errorf("text: got %d bytes, %v, want %d", b.Len(), err, textSize(document))
		}
		var read struct {
			Locs []string `xml:"url>loc"`
		}
		if err := xml.Unmarshal(document, &read); err != nil || len(read.Locs) != len(pages) || strings.Join(append(read.Locs, ""), "\n") != b.String() {
			t.Errorf("%v: got the locs %q, want %q", err, read.Locs, b.String())
		}
		for i, loc := range read.Locs {
			if strings.ContainsFunc(loc, func(r rune) bool { return r <= ' ' || r >= 0x7F }) {
				t.Errorf("got the loc %q for %q", loc, pages[i].Path)
			}
		}
	}
}

func TestTexts(t *testing.T) {
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
	checkTexts(t, "https://example.com/~joe's", pages...)
	checkTexts(t, base)
}

// TestTextOfLongLines has entries longer than what is read at once, and documents of others.
func TestTextOfLongLines(t *testing.T) {
	var pages []page.Page
	want := ""
	for n := maxLine - 100; n < 3*maxLine; n += 1 + n/maxLine*997 { // some end near the bounds of buffers
		rest := n - len(appendEntry(nil, base, page.Page{Path: "/b", Extensions: &page.Extensions{Images: []string{""}}}, true))
		pages = append(pages, page.Page{Path: "/b", Extensions: &page.Extensions{Images: []string{strings.Repeat("a", rest)}}})
		want += base + "/b\n"
	}
	document := urlSet(Options{Base: base, Extended: true}, pages)
	var got bytes.Buffer
	if err := writeText(&got, iotest.HalfReader(bytes.NewReader(document))); err != nil || got.String() != want {
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
		if err := writeText(io.Discard, test.document); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		}
	}
	if err := writeText(&failing{10}, bytes.NewReader(document)); !errors.Is(err, errFull) {
		t.Errorf("got %v, want %v", err, errFull)
	}
}

func TestLists(t *testing.T) {
	document := urlSet(Options{Base: base, Extended: true}, goldenPages(t))
	d := Document{Gzip: compress(document)}
	for path, want := range map[string]bool{"/everything": true, "/a%20b?x=1&y='2'": true, "/none": false} {
		if got, err := d.Lists(base + path); got != want || err != nil {
			t.Errorf("%s: got %t, %v, want %t", path, got, err, want)
		}
	}
	cut := Document{Gzip: compress([]byte("<urlset>\n" + urlOpen + base + "/a"))}
	if got, err := cut.Lists(base + "/a"); got || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut short amid a URL: got %t, %v", got, err)
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

func FuzzTexts(f *testing.F) {
	f.Add("https://example.com", "/a&b'c\"d<e>f g\x00\xff", int64(1136214245), true, byte(3), byte(51), "de", "https://example.com/\"<'>.png")
	f.Add("", "", int64(0), false, byte(0), byte(0), "", "]]>")
	f.Add("https://x/y", "/%2f", int64(-62135596801), false, byte(255), byte(102), "x\n-\x00\xff", "-->")
	f.Fuzz(func(t *testing.T, base, path string, lastMod int64, day bool, freq, prio byte, lang, url string) {
		checkTexts(t, base, page.Page{Path: path, LastMod: lastMod, LastModDay: day, ChangeFreq: page.ChangeFreq(freq), Priority: page.Priority(prio),
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

// TestCompressIsDeterministic: equal documents are equal bytes wherever they are written.
func TestCompressIsDeterministic(t *testing.T) {
	document := urlSet(Options{Base: base}, realPages(5000))
	want := compress(document)
	if mtime := want[4:8]; !bytes.Equal(mtime, make([]byte, 4)) {
		t.Errorf("the header holds a time: %x", mtime)
	}
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 3 {
				if got := compress(document); !bytes.Equal(got, want) {
					t.Errorf("got %d other bytes, want %d", len(got), len(want))
				}
			}
		})
	}
	wait.Wait()
	d := Document{Gzip: want}
	if got := read(t, d.Open); got != string(document) {
		t.Errorf("decompressed: got %d bytes, want %d", len(got), len(document))
	}
}

func BenchmarkWriteShard(b *testing.B) {
	pages := realPages(50_000)
	b.ReportAllocs()
	for b.Loop() {
		document := urlSet(Options{Base: base}, pages)
		compress(document)
		b.SetBytes(int64(len(document)))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(pages)), "ns/page")
}
