package sitemapxml

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

func writeExtended(t testing.TB, s Schema, base string, pages []page.Page) []byte {
	t.Helper()
	var b bytes.Buffer
	u := NewExtendedURLSet(&b, s, base)
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

func extendedPages(t testing.TB) []page.Page {
	alternates := []page.Alternate{
		{Lang: "x-default", URL: base + "/"}, {Lang: "de-AT", URL: "https://example.org/de?a=1&b='2'"}, {Lang: "zh-Hant", URL: base + "/%E4%B8%AD"},
	}
	return []page.Page{
		{Path: "/", Extensions: &page.Extensions{Alternates: alternates}},
		{Path: "/all", LastMod: 1136214245, ChangeFreq: freq(t, "daily"), Priority: prio(t, 0.5), Extensions: &page.Extensions{
			Alternates: alternates, Images: []string{base + "/a.png?w=1&h=2", "https://cdn.example.net/<b> \"c\".jpg"},
		}},
		{Path: "/empty", Extensions: &page.Extensions{}},
		{Path: "/images", Extensions: &page.Extensions{Images: []string{base + "/a.png"}}},
		{Path: "/none"},
	}
}

func withoutExtensions(pages []page.Page) []page.Page {
	var bare []page.Page
	for _, p := range pages {
		p.Extensions = nil
		bare = append(bare, p)
	}
	return bare
}

func TestExtensionsGolden(t *testing.T) {
	got := writeExtended(t, Schema09, base, extendedPages(t))
	file := filepath.Join("testdata", "extended-0.9.xml")
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
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestExtensionsLeftOut has documents that say nothing of extensions: their bytes
// are as if pages had none.
func TestExtensionsLeftOut(t *testing.T) {
	pages := extendedPages(t)
	for _, s := range []Schema{Schema09, Schema084} {
		want := writeURLSet(t, s, base, withoutExtensions(pages))
		if got := writeURLSet(t, s, base, pages); !bytes.Equal(got, want) {
			t.Errorf("%v: got\n%s\nwant\n%s", s, got, want)
		}
	}
	want := writeURLSet(t, Schema084, base, withoutExtensions(pages))
	if got := writeExtended(t, Schema084, base, pages); !bytes.Equal(got, want) {
		t.Errorf("0.84 allows none: got\n%s\nwant\n%s", got, want)
	}
}

func TestExtensionsRead(t *testing.T) {
	pages := extendedPages(t)
	document := writeExtended(t, Schema09, base, pages)
	for i, loc := range locsOf(t, document) {
		if loc != base+pages[i].Path {
			t.Errorf("got %q, want %q", loc, base+pages[i].Path)
		}
	}
	var got, want bytes.Buffer
	if _, err := WriteText(&got, bytes.NewReader(document)); err != nil {
		t.Fatal(err)
	}
	if _, err := WriteText(&want, bytes.NewReader(writeURLSet(t, Schema09, base, pages))); err != nil {
		t.Fatal(err)
	}
	if got.String() != want.String() {
		t.Errorf("text: got %q, want %q", got.String(), want.String())
	}
}

// randomExtensions may have any bytes.
func randomExtensions(r *rand.Rand) *page.Extensions {
	text := func() string { return randomPage(r).Path }
	e := &page.Extensions{}
	for range r.IntN(4) {
		e.Alternates = append(e.Alternates, page.Alternate{Lang: text(), URL: text()})
	}
	for range r.IntN(4) {
		e.Images = append(e.Images, text())
	}
	return e
}

func TestExtensionsSizes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, s := range []Schema{Schema09, Schema084} {
		size := Overhead(s) + ExtensionsOverhead(s)
		var text int64
		var pages []page.Page
		for range 3000 {
			p := randomPage(r)
			if r.IntN(3) > 0 {
				p.Extensions = randomExtensions(r)
			}
			pages = append(pages, p)
			size += int64(EntrySize(base, p) + ExtensionsSize(s, p))
			text += int64(TextSize(base, p))
		}
		document := writeExtended(t, s, base, pages)
		if int64(len(document)) != size {
			t.Errorf("%v: got %d bytes, want %d", s, len(document), size)
		}
		if got := len(locsOf(t, document)); got != len(pages) {
			t.Errorf("%v: got %d pages, want %d", s, got, len(pages))
		}
		if n, err := WriteText(io.Discard, bytes.NewReader(document)); n != text || err != nil {
			t.Errorf("%v: text: got %d bytes, %v, want %d", s, n, err, text)
		}
	}
}

// TestTextOfLongLines has entries longer than what WriteText holds.
func TestTextOfLongLines(t *testing.T) {
	var pages []page.Page
	want := ""
	for images := range 40 {
		e := &page.Extensions{}
		for range images * images {
			e.Images = append(e.Images, base+"/"+strings.Repeat("'", 200))
		}
		pages = append(pages, page.Page{Path: "/" + strings.Repeat("a", images), Extensions: e})
		want += base + pages[images].Path + "\n"
	}
	// Lines that end near the bounds of buffers.
	for n := maxLine - 300; n < maxLine+300; n++ {
		rest := n - EntrySize(base, page.Page{Path: "/b"}) - len(imageOpen+imageClose)
		pages = append(pages, page.Page{Path: "/b", Extensions: &page.Extensions{Images: []string{strings.Repeat("a", rest)}}})
		want += base + "/b\n"
	}
	document := writeExtended(t, Schema09, base, pages)
	var got bytes.Buffer
	if _, err := WriteText(&got, iotest.HalfReader(bytes.NewReader(document))); err != nil || got.String() != want {
		t.Errorf("got %d bytes, %v, want %d", got.Len(), err, len(want))
	}
	if _, err := WriteText(io.Discard, bytes.NewReader(document[:len(document)-maxLine])); err != io.ErrUnexpectedEOF {
		t.Errorf("cut short: got %v", err)
	}
	broken := errors.New("broken")
	if _, err := WriteText(io.Discard, io.MultiReader(bytes.NewReader(document[:len(document)-maxLine]), iotest.ErrReader(broken))); err != broken {
		t.Errorf("got %v, want %v", err, broken)
	}
	foreign := bytes.Replace(document, []byte("</image:image></url>\n"), []byte("</image:image></urk>\n"), 1)
	if _, err := WriteText(io.Discard, bytes.NewReader(foreign)); !errors.Is(err, ErrForeign) {
		t.Errorf("got %v, want %v", err, ErrForeign)
	}
	line := urlOpen + base + locClose + strings.Repeat("x", 3*maxLine)
	for _, bad := range []string{line + "\n", urlOpen + strings.Repeat("x", 3*maxLine) + locClose + urlClose} {
		document := declaration + urlSetOpen + urlSetOpenEnd + bad + urlSetClose
		if _, err := WriteText(io.Discard, strings.NewReader(document)); !errors.Is(err, ErrForeign) {
			t.Errorf("got %v, want %v", err, ErrForeign)
		}
	}
}

func TestRestOfLine(t *testing.T) {
	for n := range 50 {
		text := strings.Repeat("x", n) + urlClose
		r := bufio.NewReaderSize(strings.NewReader(text+"next\n"), 16)
		line, err := r.ReadSlice('\n')
		if err != nil && err != bufio.ErrBufferFull {
			t.Fatal(err)
		}
		last, err := restOfLine(r, line, nil)
		if string(last) != urlClose[max(len(urlClose)-len(text), 0):] || err != nil {
			t.Errorf("%d: got %q, %v", n, last, err)
		}
		if rest, _ := io.ReadAll(r); string(rest) != "next\n" {
			t.Errorf("%d: left %q", n, rest)
		}
	}
}

func FuzzExtensions(f *testing.F) {
	f.Add("de", "https://example.com/?a&b", "https://example.com/\"<'>.png")
	f.Add("", "", "")
	f.Add("x\n-\x00\xff", "]]>", "-->")
	f.Fuzz(func(t *testing.T, lang, url, image string) {
		p := page.Page{Path: "/", Extensions: &page.Extensions{Alternates: []page.Alternate{{Lang: lang, URL: url}}, Images: []string{image}}}
		document := writeExtended(t, Schema09, base, []page.Page{p})
		if got, want := int64(len(document)), Overhead(Schema09)+ExtensionsOverhead(Schema09)+int64(EntrySize(base, p)+ExtensionsSize(Schema09, p)); got != want {
			t.Fatalf("got %d bytes, want %d:\n%s", got, want, document)
		}
		if got := len(locsOf(t, document)); got != 1 {
			t.Fatalf("got %d pages\n%s", got, document)
		}
	})
}
