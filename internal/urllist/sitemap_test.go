package urllist

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/text/encoding/unicode"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

func gzipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(s))
	_ = z.Close()
	return b.String()
}

func utf16(order unicode.Endianness, s string) string {
	s, _ = unicode.UTF16(order, unicode.UseBOM).NewEncoder().String(s)
	return s
}

// declared is a urlset that declares a charset and names a path below the base, in the bytes of its charset.
func declared(charset, path string) string {
	return `<?xml version="1.0" encoding="` + charset + `"?><urlset><url><loc>` + base + path + "</loc></url></urlset>"
}

var errGone = errors.New("gone")

// refusal matches one of [Unused.First].
var refusal = regexp.MustCompile(`^list, line (\d+): ("(?:[^"\\]|\\.)*"): (.*)$`)

// read gives what a Reader yields and refuses, a line each.
func read(ctx context.Context, r io.Reader, documents map[string]string) (got []string, err error) {
	reader := Reader{Base: base, Now: time.Unix(day2024+86400, 0), Name: "list"}
	noted := 0
	noteRefused := func() {
		for ; noted < len(reader.First); noted++ {
			part := refusal.FindStringSubmatch(reader.First[noted])
			text, _ := strconv.Unquote(part[2])
			got = append(got, fmt.Sprintf("%s: %.10q: %.30s", part[1], text, part[3]))
		}
	}
	reader.Open = func(_ context.Context, url string) (io.ReadCloser, error) {
		if d, ok := documents[url]; ok {
			return io.NopCloser(strings.NewReader(d)), nil
		}
		return nil, errGone
	}
	reader.Yield = func(p page.Page) error {
		noteRefused()
		text := p.Path
		if p.LastMod != 0 {
			text += time.Unix(p.LastMod, 0).UTC().Format(" 2006-01-02")
		}
		got = append(got, strings.TrimSpace(text+" "+strings.TrimSpace(p.ChangeFreq.String()+" "+p.Priority.String())))
		return nil
	}
	err = reader.Read(ctx, r)
	noteRefused()
	return got, err
}

func TestRead(t *testing.T) {
	const urlset = `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
		<url><loc> https://example.com/a </loc><lastmod>2024-01-01</lastmod><priority>0.5</priority></url>
		<url><loc>https://example.com/b?x=1&amp;y=2</loc><changefreq>Daily</changefreq><lastmod>nonsense</lastmod></url>
		<url><loc>https://other.example/c</loc></url>
	</urlset>`
	entries := []string{"/a 2024-01-01 0.5", "/b?x=1&y=2 daily", `3: "https://ot": it is on https://other.example`}
	sitemapOf := func(names ...string) string {
		return "<sitemapindex><sitemap><loc>" + base + strings.Join(names, "</loc></sitemap><sitemap><loc>"+base) + "</loc></sitemap></sitemapindex>"
	}
	documents := map[string]string{
		base + "/one.xml": gzipped(urlset), base + "/two.txt": base + "/z\n", base + "/self.xml": sitemapOf("/self.xml"),
	}
	for _, test := range []struct {
		name, in string
		want     []string
		wantErr  string
	}{
		{"empty", "", nil, ""},
		{"line ends", "/a\n/b\r\n\r\n\n/c\r", []string{"/a", "/b", "/c"}, ""},
		{"comments, order and duplicates", "# all\n/b # one\n\t# none\n/a\n/b", []string{"/b", "/a", "/b"}, ""},
		{"options", "/x lastmod=2024-01-01 priority=0.8\n/y lastmod=2024-01-03\n", []string{"/x 2024-01-01 0.8", "/y"}, ""},
		{"no text", "/a\n/\x00\n/\xfc\n/b\n", []string{"/a", `2: "/\x00": the line is not text in UTF-8`, `3: "/": the line is not text in UTF-8`, "/b"}, ""},
		{"a longer line", "/a\n/" + strings.Repeat("b", maxLine) + "\n/c", []string{"/a", `2: "/bbbbbbbbb": the line is longer than 65536 `, "/c"}, ""},
		{"urlset", urlset, entries, ""},
		{"compressed", gzipped(urlset), entries, ""},
		{"junk behind it", gzipped(urlset) + "done", entries, ""},
		{"two members", gzipped(urlset[:100]) + gzipped(urlset[100:]), entries, ""},
		{"urlset with a stylesheet", strings.Replace(urlset, "?>", "?>\n<?xml-stylesheet type=\"text/css\" href=\"sitemap.css\"?>\n", 1), entries, ""},
		{"feed", "<?xml version=\"1.0\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\"><id>https://example.com/a</id></feed>", []string{`1: "<?xml vers": a URL must begin with a slash,`, `2: "<feed xmln": a URL must begin with a slash,`}, ""},
		{"index", sitemapOf("/one.xml", "/gone.xml", "/two.txt"), append(slices.Clone(entries), "/z"), base + "/gone.xml: gone"},
		{"index of documents elsewhere", "<sitemapindex><sitemap><loc>https://other.example/1.xml</loc></sitemap><sitemap><loc>" + base + "/two.txt</loc></sitemap></sitemapindex>",
			[]string{`1: "https://ot": it is on https://other.example`, "/z"}, ""},
		{"index of itself", sitemapOf("/self.xml"), nil, "too deep"},
		{"a cut end", "<urlset><url><loc>" + base + "/a</loc></url><url><loc>", []string{"/a", `2: "<url><loc>": the entry is no XML: XML synta`}, "entry 2"},
		{"broken entries", "<urlset><url><loc>" + base + "/a</loc></url><url><loc>/b?x&y</loc></url><!-- <url><loc>/c</loc></url> --><url><loc>" + base + "/d</loc></url></urlset>",
			[]string{"/a", `2: "<url><loc>": the entry is no XML: XML synta`, "/d"}, ""},
		{"end tags that are none", "<urlset></url><url id='1'><!-- </url> --><loc><![CDATA[/a]]></loc></url><s:url ><s:loc>/b</s:loc></s:url ><!-- <url>", []string{"/a", "/b"}, ""},
		{"tags in CDATA", "<urlset><url><loc><![CDATA[/a</url>]]></loc></url><url><loc>/b</loc><x><![CDATA[ <!-- ]]></x></url><url><loc>/c</loc></url></urlset>",
			[]string{"/a%3C/url%3E", "/b", "/c"}, ""},
		{"no gzip", "\x1f\x8b", nil, "decompressing"},
		{"a bomb", gzipped(strings.Repeat(strings.Repeat(" ", maxLine-1)+"\n", maxDocument/maxLine) + "\n"), nil, "longer than 67108864 bytes"},

		{"ISO-8859-1", declared("ISO-8859-1", "/\xfc"), []string{"/%C3%BC"}, ""},
		{"Shift_JIS", declared("Shift_JIS", "/\x83\x65"), []string{"/%E3%83%86"}, ""},
		{"utf8", declared("utf8", "/ü"), []string{"/%C3%BC"}, ""},
		{"UTF-16", gzipped(utf16(unicode.LittleEndian, declared("UTF-16", "/ü"))), []string{"/%C3%BC"}, ""},
		{"UTF-8 that declares UTF-16", declared("utf-16", "/ü"), []string{"/%C3%BC"}, ""},
		{"a byte order mark wins", "\uFEFF" + declared("ISO-8859-1", "/ü"), []string{"/%C3%BC"}, ""},
		{"so does that of UTF-16", utf16(unicode.BigEndian, declared("ISO-8859-1", "/ü")), []string{"/%C3%BC"}, ""},
		{"a list with a byte order mark", "\uFEFF/a\n\uFEFF/b", []string{"/a", `2: "\ufeff/b": a URL must begin with a slash,`}, ""},
		{"a list in UTF-16", utf16(unicode.BigEndian, "/a\r\n/ü\r\n"), []string{"/a", "/%C3%BC"}, ""},
		{"unknown", declared("x-none", "/a"), nil, `the charset "x-none" is unknown: save the document in UTF-8`},
		{"known, but unsafe", declared("ISO-2022-KR", "/a"), nil, `the charset "ISO-2022-KR" is unknown: save the document in UTF-8`},
	} {
		documents[base+"/child"] = test.in
		for kind, r := range map[string]io.Reader{
			"whole":        strings.NewReader(test.in),
			"byte by byte": iotest.OneByteReader(strings.NewReader(test.in)),
			"in an index":  strings.NewReader(sitemapOf("/child")),
		} {
			got, err := read(t.Context(), r, documents)
			if !slices.Equal(got, test.want) {
				t.Errorf("%s, %s: got %.500q, want %.500q", test.name, kind, got, test.want)
			}
			if (err == nil) != (test.wantErr == "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("%s, %s: got error %v, want %q", test.name, kind, err, test.wantErr)
			}
		}
	}
}

func TestReadEnds(t *testing.T) {
	index := "<sitemapindex>" + strings.Repeat("<sitemap><loc>"+base+"/x</loc></sitemap>", 9) + "</sitemapindex>"
	for name, in := range map[string]string{
		"lines": strings.Repeat("/a\n", 1000), "urlset": "<urlset>" + strings.Repeat("<url><loc>/a</loc></url>", 1000) + "</urlset>", "index": index,
	} {
		errStop, n := errors.New("stop"), 0
		reader := Reader{Base: base, Yield: func(page.Page) error { n++; return errStop }, Open: func(context.Context, string) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader("/a\n/b\n")), nil
		}}
		if err := reader.Read(t.Context(), strings.NewReader(in)); !errors.Is(err, errStop) || n != 1 {
			t.Errorf("%s: got %v after %d pages, want yield's error after 1", name, err, n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := read(ctx, strings.NewReader(in), nil); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want that it is canceled", name, err)
		}
	}
	got, err := read(t.Context(), io.MultiReader(strings.NewReader("/a\n/b"), iotest.ErrReader(errGone)), nil)
	if !errors.Is(err, errGone) || !slices.Equal(got, []string{"/a"}) {
		t.Errorf("reader's error: got %q, %v", got, err)
	}
}

// TestRefused: of refused lines the first ten are shown, and all are counted. What may be no list at all counts only for URLs.
func TestRefused(t *testing.T) {
	const lines = "nothing\nhttps://other.example/a\n"
	for isGuess, want := range map[bool]int{false: 40, true: 20} {
		reader := Reader{Base: base, IsGuess: isGuess}
		err := reader.Read(t.Context(), strings.NewReader(strings.Repeat(lines, 20)))
		if err != nil || reader.Refused != want || len(reader.First) != 10 {
			t.Errorf("a guess %t: got %d, shown %d, %v, want %d", isGuess, reader.Refused, len(reader.First), err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("<urlset><url><loc>https://example.com/a</loc></url></urlset>"))
	f.Add([]byte("\x1f\x8b"))
	f.Add([]byte(declared("ISO-8859-1", "/\xfc")))
	f.Add([]byte(utf16(unicode.LittleEndian, declared("UTF-16", "/a"))))
	f.Fuzz(func(t *testing.T, document []byte) {
		reader := Reader{Base: base, Yield: func(p page.Page) error {
			if c, err := page.Normal(p.Path); err != nil || c != p.Path {
				t.Errorf("%q is not in normal form", p.Path)
			}
			return nil
		}, Open: func(context.Context, string) (io.ReadCloser, error) { return nil, errGone }}
		_ = reader.Read(t.Context(), bytes.NewReader(document))
	})
}
