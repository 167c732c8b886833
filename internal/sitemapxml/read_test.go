package sitemapxml

import (
	"bytes"
	stdxml "encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

func read(t testing.TB, document []byte, limits Limits) (urls []URL, children []Child, info Info, err error) {
	t.Helper()
	info, err = Read(bytes.NewReader(document), limits,
		func(u URL) error { urls = append(urls, u); return nil },
		func(c Child) error { children = append(children, c); return nil })
	return urls, children, info, err
}

func TestReadGolden(t *testing.T) {
	wantURLs := []URL{
		{Loc: base + "/", Line: 3},
		{Loc: base + "/a%20b?x=1&y='2'", LastMod: "2006-01-02T15:04:05Z", Line: 4},
		{Loc: base + "/caf%C3%A9", LastMod: "2006-01-02", Line: 5},
		{Loc: base + "/daily", ChangeFreq: "daily", Line: 6},
		{Loc: base + "/everything", LastMod: "2024-02-29T12:34:56Z", ChangeFreq: "monthly", Priority: "0.55", Line: 7},
		{Loc: base + "/never", ChangeFreq: "never", Priority: "0.0", Line: 8},
		{Loc: base + "/top", Priority: "1.0", Line: 9},
		{Loc: base + "/z\"<>%00%7F%FF%0A", Line: 10},
	}
	wantChildren := []Child{
		{Loc: base + "/sitemap-000000000000.xml?a&b", Line: 3},
		{Loc: base + "/sitemap-000000000001.xml?a&b", LastMod: "2006-01-02T15:04:05Z", Line: 4},
		{Loc: base + "/sitemap-000000000002.xml?a&b", LastMod: "2024-02-29", Line: 5},
	}
	for _, s := range []Schema{Schema09, Schema084} {
		for _, kind := range []string{"urlset", "index"} {
			file := filepath.Join("testdata", kind+"-"+s.String()+".xml")
			document, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := Info{Kind: KindURLSet, Schema: s, Count: len(wantURLs), Bytes: int64(len(document))}
			urls := wantURLs
			var children []Child
			if kind == "index" {
				want.Kind, want.Count = KindIndex, len(wantChildren)
				urls, children = nil, wantChildren
			}
			for _, form := range []func([]byte) []byte{
				func(d []byte) []byte { return d },
				func(d []byte) []byte { return compress(t, d, func() int { return 1000 }) },
				func(d []byte) []byte {
					return slices.Concat(compressed(t, string(d[:50])), compressed(t, string(d[50:])))
				},
			} {
				gotURLs, gotChildren, info, err := read(t, form(document), Limits{})
				if err != nil || info != want {
					t.Errorf("%s: got %+v, %v, want %+v", file, info, err, want)
				}
				if !slices.Equal(gotURLs, urls) || !slices.Equal(gotChildren, children) {
					t.Errorf("%s: got %+v and %+v", file, gotURLs, gotChildren)
				}
			}

			// A reader that knows nothing of sitemaps must see the same.
			var plain struct {
				XMLName stdxml.Name
				Locs    []string `xml:"url>loc"`
				Parts   []string `xml:"sitemap>loc"`
			}
			if err := stdxml.Unmarshal(document, &plain); err != nil {
				t.Fatal(err)
			}
			if len(plain.Locs) != len(urls) || len(plain.Parts) != len(children) || plain.XMLName.Space != s.Namespace() {
				t.Errorf("%s: encoding/xml has %d and %d entries in %q", file, len(plain.Locs), len(plain.Parts), plain.XMLName.Space)
			}
		}
	}
}

const (
	open09  = `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`
	index09 = `<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`
	entry   = "<url><loc>https://example.com/</loc></url>"
)

func compressed(t testing.TB, s string) []byte {
	return compress(t, []byte(s), func() int { return len(s) })
}

func TestReadAccepts(t *testing.T) {
	for name, document := range map[string]string{
		"no declaration":      open09 + entry + "</urlset>",
		"byte order mark":     "\uFEFF" + declaration + open09 + entry + "</urlset>",
		"comments":            "<!-- a --><?pi b?>" + open09 + "<!-- c --><url><loc>https://<!-- d -->example.com/</loc></url></urlset><!-- e -->\n",
		"CDATA":               open09 + "<url><loc><![CDATA[https://example.com/]]></loc></url></urlset>",
		"numeric entities":    open09 + "<url><loc>https://example.com&#47;</loc></url></urlset>",
		"prefix":              `<s:urlset xmlns:s="http://www.sitemaps.org/schemas/sitemap/0.9"><s:url><s:loc>https://example.com/</s:loc></s:url></s:urlset>`,
		"attributes":          `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="a b">` + entry + "</urlset>",
		"another order":       open09 + "<url><priority>1</priority><loc>https://example.com/</loc></url></urlset>",
		"extensions":          open09 + `<x:a xmlns:x="urn:x"><x:url>t</x:url></x:a><url><i:image xmlns:i="urn:i"><i:loc>a</i:loc></i:image><loc>https://example.com/</loc></url></urlset>`,
		"gzip":                string(compressed(t, open09+entry+"</urlset>")),
		"white space between": " \r\n\t" + open09 + " \n <url> <loc>https://example.com/</loc>\n</url>\t</urlset> \n",
	} {
		urls, _, info, err := read(t, []byte(document), Limits{})
		if err != nil || info.Kind != KindURLSet || len(urls) != 1 || urls[0].Loc != "https://example.com/" {
			t.Errorf("%s: got %+v, %+v, %v", name, urls, info, err)
		}
	}

	// What stands in an element comes as it is.
	urls, _, _, err := read(t, []byte(open09+"<url><loc>\n a </loc><lastmod>soon</lastmod></url></urlset>"), Limits{})
	if err != nil || len(urls) != 1 || urls[0].Loc != "\n a " || urls[0].LastMod != "soon" {
		t.Errorf("got %+v, %v", urls, err)
	}
	if _, _, info, err := read(t, []byte(open09+"</urlset>"), Limits{}); err != nil || info.Count != 0 {
		t.Errorf("an empty document: %+v, %v", info, err)
	}
}

func TestReadRefuses(t *testing.T) {
	laughs := `<!DOCTYPE lolz [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>`
	valid := open09 + "\n" + entry + "\n</urlset>\n"
	gz := compressed(t, valid)
	deep := strings.Repeat("<x:a xmlns:x='urn:x'>", 100_000)
	for _, test := range []struct {
		name, document string
		limits         Limits
		want           error // nil: a syntax error
		line           string
	}{
		{"nothing", "", Limits{}, ErrIncomplete, "line 1"},
		{"white space", "\n\n", Limits{}, ErrIncomplete, "line 3"},
		{"no XML", "hello", Limits{}, ErrStructure, "line 1"},
		{"HTML", "<!doctype html>\n<html></html>", Limits{}, ErrDTD, "line 1"},
		{"billion laughs", "<?xml version=\"1.0\"?>\n" + laughs + open09 + "<url><loc>&b;</loc></url></urlset>", Limits{}, ErrDTD, "line 2"},
		{"unknown entity", open09 + "\n<url><loc>&nbsp;</loc></url></urlset>", Limits{}, nil, "line 2"},
		{"truncated in a tag", valid[:len(valid)-4], Limits{}, ErrIncomplete, "line 3"},
		{"truncated in a text", valid[:len(open09)+20], Limits{}, ErrIncomplete, "line 2"},
		{"truncated between entries", open09 + "\n" + entry + "\n", Limits{}, ErrIncomplete, "line 3"},
		{"truncated in a skipped element", open09 + "<a xmlns='urn:x'><b>", Limits{}, ErrIncomplete, "line 1"},
		{"gzip header cut short", string(gz[:5]), Limits{}, ErrIncomplete, "line 1"},
		{"gzip cut short", string(gz[:len(gz)-20]), Limits{}, ErrIncomplete, "line "},
		{"gzip without its sum", string(gz[:len(gz)-8]), Limits{}, ErrIncomplete, "line 4"},
		{"no root", "<!-- -->", Limits{}, ErrIncomplete, "line 1"},
		{"wrong root", `<rss xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"></rss>`, Limits{}, ErrStructure, "line 1"},
		{"no namespace", "<urlset>" + entry + "</urlset>", Limits{}, ErrStructure, "line 1"},
		{"wrong namespace", "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/1.0'></urlset>", Limits{}, ErrStructure, "line 1"},
		{"another case", strings.ReplaceAll(valid, "urlset", "URLSet"), Limits{}, ErrStructure, "line 1"},
		{"two roots", valid + open09 + "</urlset>", Limits{}, ErrStructure, "line 4"},
		{"text after the root", valid + "x", Limits{}, ErrStructure, "line 4"},
		{"text in urlset", open09 + "\nx" + entry + "</urlset>", Limits{}, ErrStructure, "line 2"},
		{"text in url", open09 + "<url>x<loc>a</loc></url></urlset>", Limits{}, ErrStructure, "line 1"},
		{"sitemap in urlset", open09 + "<sitemap><loc>a</loc></sitemap></urlset>", Limits{}, ErrStructure, "line 1"},
		{"url in sitemapindex", index09 + entry + "</sitemapindex>", Limits{}, ErrStructure, "line 1"},
		{"priority in sitemap", index09 + "<sitemap><loc>a</loc><priority>1</priority></sitemap></sitemapindex>", Limits{}, ErrStructure, "line 1"},
		{"unknown element", open09 + "<url><loc>a</loc><title>b</title></url></urlset>", Limits{}, ErrStructure, "line 1"},
		{"no loc", open09 + "\n<url><lastmod>2006-01-02</lastmod></url></urlset>", Limits{}, ErrStructure, "line 2"},
		{"two locs", open09 + "<url><loc>a</loc><loc>a</loc></url></urlset>", Limits{}, ErrStructure, "line 1"},
		{"an element in loc", open09 + "<url><loc><b>a</b></loc></url></urlset>", Limits{}, ErrStructure, "line 1"},
		{"crossed tags", open09 + "\n\n<url><loc>a</url></loc></urlset>", Limits{}, nil, "line 3"},
		{"control character", open09 + "<url><loc>a\x01</loc></url></urlset>", Limits{}, nil, "line 1"},
		{"no UTF-8", open09 + "<url><loc>a\xff</loc></url></urlset>", Limits{}, nil, "line 1"},
		{"deep nesting", open09 + deep, Limits{}, ErrDepth, "line 1"},
		{"depth", open09 + entry + "</urlset>", Limits{Depth: 2}, ErrDepth, "line 1"},
		{"huge text", open09 + "<url><loc>" + strings.Repeat("a", 1<<20), Limits{}, ErrTokenSize, "line 1"},
		{"huge tag", open09 + "<" + strings.Repeat("a", 1<<20), Limits{}, ErrTokenSize, "line 1"},
		{"huge attributes", "<urlset " + strings.Repeat("a='b' ", 1<<18), Limits{}, ErrTokenSize, "line 1"},
		{"huge comment", "<!--" + strings.Repeat("\n", 1<<20), Limits{}, ErrTokenSize, "line 65"},
		{"huge text in pieces", open09 + "<url><loc>" + strings.Repeat("aaaaaaaaaa<!---->", 1<<14), Limits{}, ErrTokenSize, "line 1"},
		{"too many entries", open09 + entry + "\n" + entry + "</urlset>", Limits{Entries: 1}, ErrTooMany, "line 2"},
		{"too many bytes", valid, Limits{Bytes: int64(len(valid)) - 1}, ErrTooLong, "line 3"},
		{"too many bytes in gzip", string(gz), Limits{Bytes: 80}, ErrTooLong, "line 2"},
	} {
		_, _, _, err := read(t, []byte(test.document), test.limits)
		if err == nil {
			t.Errorf("%s: no error", test.name)
			continue
		}
		var syntax *stdxml.SyntaxError
		if test.want == nil && !errors.As(err, &syntax) || test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, err, test.want)
		}
		if !strings.Contains(err.Error(), test.line) {
			t.Errorf("%s: %q does not name %s", test.name, err, test.line)
		}
	}

	if _, _, info, err := read(t, []byte(valid), Limits{Bytes: int64(len(valid)), Entries: 1, Depth: 3}); err != nil {
		t.Errorf("at the limits: %+v, %v", info, err)
	}
}

// A small file may become a large one.
func TestReadGzipBomb(t *testing.T) {
	var bomb bytes.Buffer
	z := NewGzip(&bomb)
	io.WriteString(z, open09)
	blank := bytes.Repeat([]byte(" "), 1<<20)
	for range 8 {
		z.Write(blank[:60_000])
		io.WriteString(z, "<!---->")
		z.Write(blank)
	}
	z.Close()
	_, _, info, err := read(t, bomb.Bytes(), Limits{Token: 2 << 20, Bytes: 5 << 20})
	if !errors.Is(err, ErrTooLong) || info.Bytes != 5<<20 {
		t.Errorf("got %+v, %v", info, err)
	}
	if _, _, _, err = read(t, bomb.Bytes(), Limits{}); !errors.Is(err, ErrTokenSize) {
		t.Errorf("got %v", err)
	}
}

func TestReadErrorsOfOthers(t *testing.T) {
	broken := errors.New("broken")
	_, err := Read(io.MultiReader(strings.NewReader(open09+"\n"), iotest.ErrReader(broken)), Limits{}, nil, nil)
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "line 2: ") {
		t.Errorf("got %v", err)
	}
	stop := errors.New("stop")
	info, err := Read(strings.NewReader(open09+entry+entry+"</urlset>"), Limits{}, func(URL) error { return stop }, nil)
	if err != stop || info.Count != 1 {
		t.Errorf("got %+v, %v", info, err)
	}
	if _, err := Read(strings.NewReader(open09+entry+"</urlset>"), Limits{}, nil, nil); err != nil {
		t.Errorf("without callbacks: %v", err)
	}
	if _, err := Read(strings.NewReader(`<?xml version="1.0" encoding="UTF-16"?>`+open09+"</urlset>"), Limits{}, nil, nil); err == nil || !strings.HasPrefix(err.Error(), "line 1: ") {
		t.Errorf("another encoding: got %v", err)
	}
	if _, err := Read(iotest.OneByteReader(strings.NewReader(open09+entry+"</urlset>")), Limits{}, nil, nil); err != nil {
		t.Errorf("byte by byte: %v", err)
	}
}

func TestWriteText(t *testing.T) {
	document := string(writeURLSet(t, Schema09, base, realPages(3000)))
	var want strings.Builder
	for _, p := range realPages(3000) {
		want.WriteString(base + p.Path + "\n")
	}
	for _, r := range []io.Reader{strings.NewReader(document), iotest.HalfReader(strings.NewReader(document)), iotest.DataErrReader(strings.NewReader(document))} {
		var got strings.Builder
		if n, err := WriteText(&got, r); err != nil || n != int64(want.Len()) || got.String() != want.String() {
			t.Errorf("got %d bytes, %v, want %d", n, err, want.Len())
		}
	}
	var got strings.Builder
	if n, err := WriteText(&got, bytes.NewReader(writeURLSet(t, Schema09, base, nil))); n != 0 || err != nil {
		t.Errorf("no page: got %d, %v", n, err)
	}

	small := string(writeURLSet(t, Schema09, base, goldenPages(t)))
	for i := range len(small) {
		if _, err := WriteText(io.Discard, strings.NewReader(small[:i])); err != io.ErrUnexpectedEOF {
			t.Fatalf("cut short after %d bytes: got %v", i, err)
		}
	}
	foreign := declaration + open09 + "\n"
	for _, bad := range []string{
		"\n",
		open09 + "\n",
		declaration + declaration,
		declaration + "<url><loc>a</loc></url>\n",
		declaration + index09 + "\n",
		foreign + foreign,
		foreign + "<url>\n",
		foreign + "<url><loc>a</loc>\n",
		foreign + "<url><loc>a</url>\n",
		foreign + "<url><loc></url>\n",
		foreign + " <url><loc>a</loc></url>\n",
		foreign + strings.Repeat("a", 1<<20),
		foreign + "<url><loc>" + strings.Repeat("a", 1<<20),
	} {
		if n, err := WriteText(io.Discard, strings.NewReader(bad)); !errors.Is(err, ErrForeign) || n != 0 {
			t.Errorf("%.200q: got %d, %v", bad, n, err)
		}
	}

	if n, err := WriteText(&failing{70_000}, strings.NewReader(document)); err != errFull || n > 70_000 {
		t.Errorf("got %d, %v", n, err)
	}
	broken := errors.New("broken")
	if _, err := WriteText(io.Discard, io.MultiReader(strings.NewReader(document[:500]), iotest.ErrReader(broken))); err != broken {
		t.Errorf("got %v", err)
	}
}

// TestFind finds every entry that Read does, and says of it the same.
func TestFind(t *testing.T) {
	for name, document := range map[string][]byte{
		"plain":    writeURLSet(t, Schema09, base, append(goldenPages(t), realPages(3000)...)),
		"extended": writeExtended(t, Schema09, base, extendedPages(t)),
	} {
		var all []URL
		if _, err := Read(bytes.NewReader(document), Limits{}, func(u URL) error { all = append(all, u); return nil }, nil); err != nil {
			t.Fatal(err)
		}
		for _, want := range all[:min(len(all), 500)] {
			got, found, err := Find(iotest.HalfReader(bytes.NewReader(document)), want.Loc)
			if !found || err != nil || got.Loc != want.Loc || got.LastMod != want.LastMod || got.ChangeFreq != want.ChangeFreq || got.Priority != want.Priority {
				t.Errorf("%s: got %+v, %t, %v, want %+v", name, got, found, err, want)
			}
		}
		for _, loc := range []string{"", base, base + "/d", base + "/never/", "</loc>", base + strings.Repeat("/a", 1<<20)} {
			if got, found, err := Find(bytes.NewReader(document), loc); found || err != nil {
				t.Errorf("%s: %.50q: got %+v, %t, %v", name, loc, got, found, err)
			}
		}
		if _, found, err := Find(bytes.NewReader(document[:len(document)-1]), base+"/none-such"); found || err != io.ErrUnexpectedEOF {
			t.Errorf("%s, cut short: got %t, %v", name, found, err)
		}
	}
	if _, found, err := Find(strings.NewReader(declaration+open09+"\n<url>\n"), base); found || !errors.Is(err, ErrForeign) {
		t.Errorf("a foreign one: got %t, %v", found, err)
	}
}

func TestAppendDecoded(t *testing.T) {
	for in, want := range map[string]string{
		"":                           "",
		"a":                          "a",
		"&amp;":                      "&",
		"&lt;&gt;&quot;&apos;&amp;b": `<>"'&b`,
		"&amp;amp;":                  "&amp;",
		"&":                          "&",
		"a&#38;b&nbsp;&am":           "a&#38;b&nbsp;&am",
	} {
		if got := string(appendDecoded(nil, []byte(in))); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// FuzzReadURLSet gives Read anything, and what it accepts goes out and in again.
func FuzzReadURLSet(f *testing.F) {
	f.Add([]byte(open09 + entry + "</urlset>"))
	f.Add(writeURLSet(f, Schema084, base, goldenPages(f)))
	f.Add(writeIndex(f, Schema09))
	f.Add(compressed(f, open09+entry+"</urlset>"))
	f.Add([]byte(`<!DOCTYPE a [<!ENTITY b "c">]>` + open09 + "<url><loc>&b;</loc></url></urlset>"))
	f.Add([]byte("\uFEFF<s:sitemapindex xmlns:s='http://www.google.com/schemas/sitemap/0.84'><s:sitemap><s:loc><![CDATA[a]]>&#x62;</s:loc></s:sitemap></s:sitemapindex>"))
	limits := Limits{Bytes: 1 << 16, Entries: 100, Token: 1 << 12}
	f.Fuzz(func(t *testing.T, document []byte) {
		urls, children, info, err := read(t, document, limits)
		if info.Bytes > limits.Bytes || info.Count > limits.Entries || len(urls)+len(children) > info.Count {
			t.Fatalf("past the limits: %+v", info)
		}
		if err != nil {
			if !strings.Contains(err.Error(), "line ") {
				t.Fatalf("%q names no line", err)
			}
			return
		}
		if len(urls)+len(children) != info.Count || info.Kind.String() == "" {
			t.Fatalf("got %d URLs and %d documents of %+v", len(urls), len(children), info)
		}
		var pages []page.Page
		for _, u := range urls {
			pages = append(pages, page.Page{Path: u.Loc})
		}
		again := writeURLSet(t, info.Schema, "", pages)
		got, _, _, err := read(t, again, Limits{})
		if err != nil || len(got) != len(urls) {
			t.Fatalf("written again: %d of %d URLs, %v", len(got), len(urls), err)
		}
		var want strings.Builder
		for i := range got {
			if escaped := string(appendDecoded(nil, appendURL(nil, urls[i].Loc))); got[i].Loc != escaped {
				t.Fatalf("got %q, want %q", got[i].Loc, escaped)
			}
			want.WriteString(got[i].Loc + "\n")
		}
		var text strings.Builder
		if _, err := WriteText(&text, bytes.NewReader(again)); err != nil || text.String() != want.String() {
			t.Fatalf("got text %q, %v", text.String(), err)
		}
	})
}

func FuzzWriteText(f *testing.F) {
	f.Add(writeURLSet(f, Schema09, base, goldenPages(f)))
	f.Fuzz(func(t *testing.T, document []byte) {
		n, err := WriteText(io.Discard, bytes.NewReader(document))
		if n > int64(len(document)) || err == nil && !bytes.HasPrefix(document, []byte(declaration)) {
			t.Fatalf("got %d, %v", n, err)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	const pages = 5000
	document := writeURLSet(b, Schema09, base, realPages(pages))
	b.ReportAllocs()
	b.SetBytes(int64(len(document)))
	for b.Loop() {
		if info, err := Read(bytes.NewReader(document), Limits{}, nil, nil); err != nil || info.Count != pages {
			b.Fatal(info, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/pages, "ns/page")
}

func BenchmarkWriteText(b *testing.B) {
	const pages = 50_000
	document := writeURLSet(b, Schema09, base, realPages(pages))
	b.ReportAllocs()
	b.SetBytes(int64(len(document)))
	for b.Loop() {
		if _, err := WriteText(io.Discard, bytes.NewReader(document)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/pages, "ns/page")
}

func TestKind(t *testing.T) {
	if got := KindURLSet.String() + "," + KindIndex.String() + "," + Kind(0).String(); got != "urlset,sitemapindex," {
		t.Errorf("got %q", got)
	}
}
