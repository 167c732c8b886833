package document

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
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

var update = flag.Bool("update", false, "write the golden files")

// goldenVideo is a video with each kind of element, as lists have them.
const goldenVideo = "<video:thumbnail_loc>https://example.com/t.png</video:thumbnail_loc><video:title>A &amp; b</video:title>" +
	"<video:description>c</video:description><video:content_loc>https://example.com/v.mp4</video:content_loc>" +
	"<video:duration>90</video:duration><video:publication_date>2024-02-29</video:publication_date>" +
	"<video:family_friendly>yes</video:family_friendly>"

func goldenPages() []page.Page {
	alternates := []page.Alternate{
		{Lang: "x-default", URL: base + "/"}, {Lang: "de-AT", URL: "https://example.org/de?a=1&b='2'"}, {Lang: "zh-Hant", URL: base + "/%E4%B8%AD"},
	}
	return []page.Page{
		{Path: "/"},
		{Path: "/a%20b?x=1&y='2'", LastMod: 1136214245, Extensions: &page.Extensions{Alternates: alternates}},
		{Path: "/caf%C3%A9", LastMod: 1136214245, LastModDay: true, Extensions: new(page.Extensions)},
		{Path: "/daily", ChangeFreq: 3, Extensions: &page.Extensions{Images: []string{base + "/a.png"}, Videos: []string{goldenVideo}}},
		{Path: "/everything", LastMod: 1709210096, ChangeFreq: 5, Priority: 56, Extensions: &page.Extensions{
			Alternates: alternates, Images: []string{base + "/a.png?w=1&h=2", "https://cdn.example.net/<b> \"c\".jpg"},
		}},
		{Path: "/never", ChangeFreq: 7, Priority: 1},
		{Path: "/top", Priority: 101},
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
		"urlset-0.9.xml":   urlSet(plain, goldenPages()),
		"index-0.9.xml":    goldenIndex(plain),
		"urlset-0.84.xml":  urlSet(old, goldenPages()),
		"index-0.84.xml":   goldenIndex(old),
		"extended-0.9.xml": urlSet(extended, goldenPages()),
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

// TestTextOfLongLines has entries longer than what is read at once, and documents of others.
func TestTextOfLongLines(t *testing.T) {
	var pages []page.Page
	rest := len(appendEntry(nil, base, page.Page{Path: "/b", Extensions: &page.Extensions{Images: []string{""}}}, true))
	for n := maxLine - 10; n < 2*maxLine; n += 1 + n/maxLine*9973 { // some end near the bounds of buffers
		pages = append(pages, page.Page{Path: "/b", Extensions: &page.Extensions{Images: []string{strings.Repeat("a", n-rest)}}})
	}
	want := strings.Repeat(base+"/b\n", len(pages))
	document := urlSet(Options{Base: base, Extended: true}, pages)
	var got bytes.Buffer
	if err := writeText(&got, iotest.HalfReader(bytes.NewReader(document))); err != nil || got.String() != want {
		t.Errorf("got %d bytes, %v, want %d", got.Len(), err, len(want))
	}
	short := document[:len(document)-maxLine]
	errRead := errors.New("read")
	for want, broken := range map[error]io.Reader{
		io.ErrUnexpectedEOF: bytes.NewReader(short),
		errRead:             io.MultiReader(bytes.NewReader(short), iotest.ErrReader(errRead)),
	} {
		if err := writeText(io.Discard, broken); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	cut := Document{Gzip: compress(short)}
	if got, err := cut.Lists(base + "/c"); got || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut short: got %t, %v", got, err)
	}
}

// FuzzTexts: documents of any pages are well-formed, and texts have their URLs.
func FuzzTexts(f *testing.F) {
	for seed := range uint64(20) {
		f.Add("https://example.com/~joe's", "de\"<'>", seed)
	}
	f.Add("https://x/y", "]]>-->\x00\xff", uint64(0))
	f.Fuzz(func(t *testing.T, base, text string, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 4))
		pages := []page.Page{{Path: "/" + strings.Repeat("&", page.MaxLoc)}, {Path: text}}
		for range r.IntN(100) {
			p := randomPage(r)
			p.Extensions = &page.Extensions{Alternates: []page.Alternate{{Lang: text, URL: randomPage(r).Path}}, Images: []string{text, randomPage(r).Path}}
			pages = append(pages, p)
		}
		checkTexts(t, base, pages...)
	})
}
