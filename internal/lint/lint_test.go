package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/klauspost/compress/gzip"
)

// repeated is a stream of s, n times, between head and tail.
func repeated(head, s string, n int, tail string) io.Reader {
	i := 0
	return io.MultiReader(strings.NewReader(head), readerFunc(func(p []byte) (int, error) {
		k := 0
		for i < n && k+len(s) <= len(p) {
			k += copy(p[k:], s)
			i++
		}
		if i == n {
			return k, io.EOF
		}
		if k == 0 {
			return 0, io.ErrShortBuffer
		}
		return k, nil
	}), strings.NewReader(tail))
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// numbered is a stream of pages in a urlset, n of them.
func numbered(n int) io.Reader {
	head, i := open09, 0
	var left []byte
	return readerFunc(func(p []byte) (int, error) {
		for len(left) == 0 {
			switch {
			case i == 0:
				left = append(left, head...)
			case i <= n:
				left = fmt.Appendf(left[:0], "<url><loc>http://a.example/shop/%d/product-%d.html</loc><lastmod>2024-05-%02d</lastmod></url>\n", i%997, i, i%28+1)
			case i == n+1:
				left = append(left[:0], "</urlset>"...)
			default:
				return 0, io.EOF
			}
			i++
		}
		k := copy(p, left)
		left = left[k:]
		return k, nil
	})
}

func zipped(body string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, body)
	_ = w.Close()
	return b.String()
}

func TestFiles(t *testing.T) {
	good := zipped(set(onePage))
	for _, test := range []struct {
		name string
		file string
		body string
		want string
	}{
		{"gzip", "a.xml.gz", good, ""},
		{"gzip without the name", "a.xml", good, ""},
		{"the name without gzip", "a.xml.gz", set(onePage), "0 warning gzip-name"},
		{"two members", "a.xml.gz", zipped(open09) + zipped(onePage+"</urlset>"), ""},
		{"truncated", "a.xml.gz", good[:len(good)-12], "3 error gzip"},
		{"header alone", "a.xml.gz", good[:5], "1 error gzip"},
		{"bad checksum", "a.xml.gz", good[:len(good)-8] + "\x00\x00\x00\x00" + good[len(good)-4:], "3 error gzip"},
		{"corrupt", "a.xml.gz", good[:20] + "\xFF\xFF\xFF\xFF\xFF" + good[25:], "1 error gzip"},
		{"trailing garbage", "a.xml.gz", good + "garbage", "3 error gzip"},
		{"twice", "a.xml.gz", zipped(good), "0 error gzip-twice"},
		{"nothing compressed", "a.xml.gz", zipped(""), "0 error empty"},
		{"UTF-16", "a.xml", "\xFF\xFE<\x00", "1 error encoding"},
		{"UTF-16 without mark", "a.xml", "\x00<\x00u", "1 error encoding"},
		{"list", "a.txt", "http://a.example/\r\nhttp://a.example/b\n\nhttp://a.example/b\rhttp://b.example/", "4 warning duplicate|5 error loc-outside-scope"},
		{"list, not of URLs", "a.txt", "index.html\nhttp://a.example/", "1 error root"},
		{"list after blank lines", "a.txt", "\n\nhttp://a.example/\n", ""},
		{"list with mark", "a.txt", "\uFEFFhttp://a.example/\n", ""},
		{"list with more", "a.txt", "http://a.example/\nhttp://a.example/ 2024-05-01\nabout\n", "2 error loc-space|3 error loc-not-absolute"},
		{"list in Latin-1", "a.txt", "http://a.example/\nhttp://a.example/\xE4\n", "2 error not-utf-8"},
		{"RSS", "a.xml", "<rss version='2.0'><channel><item><link>a</link></item></channel></rss>", "1 warning feed-unchecked"},
		{"Atom", "a.xml", "<feed xmlns='http://www.w3.org/2005/Atom'/>", "1 warning feed-unchecked"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, findings := look(t, test.file, "", test.body)
			if got := strings.Join(findings, "|"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestResult(t *testing.T) {
	body := index9("<sitemap><loc> http://a.example/1.xml</loc><lastmod>2024-05-01</lastmod></sitemap>\n<sitemap><loc>2.xml</loc></sitemap>\n<sitemap>\n<loc>http://a.example/3.xml</loc><lastmod>2024-05-01T10:00:00+02:00</lastmod></sitemap>")
	got, _ := look(t, "index.xml", "", body)
	want := Result{
		Kind: KindIndex,
		Children: []Child{
			{"http://a.example/1.xml", "2024-05-01", 2},
			{"http://a.example/3.xml", "2024-05-01T10:00:00+02:00", 5},
		},
		NewestLastMod: time.Date(2024, 5, 1, 8, 0, 0, 0, time.UTC),
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, _ := look(t, "a.xml", "", set084(onePage)); got.Kind != KindURLSet || !got.NewestLastMod.IsZero() {
		t.Errorf("got %+v of a urlset of 0.84", got)
	}
}

// TestManyChildren is that all of an index are there, and none beyond the limit.
func TestManyChildren(t *testing.T) {
	var b strings.Builder
	for i := range maxEntries + 2 {
		fmt.Fprintf(&b, "<sitemap><loc>http://a.example/%d.xml</loc><lastmod>2024-05-01</lastmod></sitemap>\n", i)
	}
	got, _ := look(t, "index.xml", "", index9(b.String()))
	if len(got.Children) != maxEntries {
		t.Fatalf("got %d children", len(got.Children))
	}
	for i, child := range got.Children {
		if want := (Child{fmt.Sprintf("http://a.example/%d.xml", i), "2024-05-01", i + 2}); child != want {
			t.Fatalf("got %+v, want %+v", child, want)
		}
	}
}

func TestScope(t *testing.T) {
	for _, test := range []struct {
		at, loc string
		ok      bool
	}{
		{"https://a.example/sitemap.xml", "https://a.example/", true},
		{"https://a.example/sitemap.xml", "https://a.example", true},
		{"https://a.example/sitemap.xml", "https://a.example?q=1", true},
		{"https://a.example/sitemap.xml", "https://a.example:443/a", true},
		{"https://a.example:443/sitemap.xml", "https://A.example/a", true},
		{"https://a.example", "https://a.example/a", true},
		{"https://a.example/sitemap.php?a=/b/", "https://a.example/a", true},
		{"https://a.example/docs/sitemap.xml", "https://a.example/docs/a", true},
		{"https://a.example/docs/sitemap.xml", "https://a.example/docs/", true},
		{"https://a.example/docs/sitemap.xml", "https://a.example/docs", false},
		{"https://a.example/docs/sitemap.xml", "https://a.example/docs-old/a", false},
		{"https://a.example/docs/sitemap.xml", "https://a.example/", false},
		{"https://a.example/docs/sitemap.xml", "https://a.example/Docs/a", false},
		{"https://a.example/sitemap.xml", "http://a.example/", false},
		{"https://a.example/sitemap.xml", "https://www.a.example/", false},
		{"https://a.example/sitemap.xml", "https://a.example.org/", false},
		{"https://a.example/sitemap.xml", "https://a.example:8443/", false},
	} {
		_, findings := look(t, "sitemap.xml", test.at, at(test.loc))
		if ok := len(findings) == 0; ok != test.ok || !ok && findings[0] != "2 error loc-outside-scope" {
			t.Errorf("%s in %s: got %q, want %t", test.loc, test.at, findings, test.ok)
		}
	}
	if _, err := New(Options{}).Document("a", "sitemap.xml", strings.NewReader("")); err == nil {
		t.Error("a relative URL of the document was taken")
	}
}

// bounded checks a stream that is too much, and returns the codes that it found and
// the bytes that it read.
func bounded(t *testing.T, r io.Reader) ([]string, int64) {
	t.Helper()
	var codes []string
	c := New(Options{Report: func(f Finding) { codes = append(codes, f.Code) }})
	c.maxRead = maxDocument + 1<<20
	file := &counter{r: r}
	if _, err := c.Document("a", "", file); err != nil {
		t.Fatal(err)
	}
	return codes, file.n
}

func TestBounds(t *testing.T) {
	const many = 1 << 30 / 16
	entry := "<url><loc>http://a.example/</loc></url>\n"
	for _, test := range []struct {
		name string
		body io.Reader
		want string
		most int64 // bytes read
	}{
		{"text", repeated(set(""), "aaaaaaaaaaaaaaaa", many, ""), "missing-element too-large", 3 << 20},
		{"white space", repeated("", "                ", many, ""), "too-large", 3 << 20},
		{"comment", repeated("<!--", "aaaaaaaaaaaaaaaa", many, ""), "too-large", 3 << 20},
		{"tag", repeated("<a b='", "aaaaaaaaaaaaaaaa", many, ""), "too-large", 3 << 20},
		{"name", repeated("<", "aaaaaaaaaaaaaaaa", many, ""), "too-large", 3 << 20},
		{"loc in pieces", repeated(open09+"<url><loc>", "aaaaaaaa<!-- -->", many, ""), "too-large", 3 << 20},
		{"depth", repeated(open09, "<a>", many, ""), "unknown-element too-large", 1 << 20},
		{"attributes", strings.NewReader("<a " + strings.Repeat("a='' ", 129) + "/>"), "too-large", 1 << 20},
		{"pages", repeated(open09, entry, many, ""), "lots", maxDocument + 2<<20},
		{"namespaces", strings.NewReader(strings.Repeat("<a xmlns:a='b' xmlns:c='d'>", 129)), "root", 1 << 20},
		{"namespaces inside", strings.NewReader(open09 + strings.Repeat("<a xmlns:a='b' xmlns:c='d'>", 129)), "unknown-element not-well-formed", 1 << 20},
		{"values", strings.NewReader("<a " + strings.Repeat("a='' ", 200_000) + "/>"), "too-large", 2 << 20},
		{"billion laughs", strings.NewReader(`<!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol1 "&lol;&lol;&lol;">]>` + set(onePage)), "doctype", 1 << 20},
	} {
		t.Run(test.name, func(t *testing.T) {
			codes, n := bounded(t, test.body)
			if got := strings.Join(codes, " "); got != test.want && test.want != "lots" {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if test.want == "lots" && (!slices.Contains(codes, "too-long") || !slices.Contains(codes, "too-many-entries") || !slices.Contains(codes, "too-large")) {
				t.Errorf("got %q", codes)
			}
			if n > test.most {
				t.Errorf("read %d bytes, want %d at most", n, test.most)
			}
		})
	}
}

// TestBombs reads gzip of ten gigabytes, which is not to be decompressed.
func TestBombs(t *testing.T) {
	for _, test := range []struct {
		name string
		head string
		unit string
		want string
	}{
		{"zeros", "", strings.Repeat("\x00", 16<<10), "root"},
		{"entries", open09, strings.Repeat(" ", 16<<10) + "<url><loc>http://a.example/</loc></url>", "too-large"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, w := io.Pipe()
			done := make(chan struct{})
			go func() {
				defer close(done)
				z := gzip.NewWriter(w)
				_, err := io.Copy(z, repeated(test.head, test.unit, 10<<30/len(test.unit), ""))
				_ = w.CloseWithError(err)
			}()
			codes, n := bounded(t, r)
			_ = r.Close()
			<-done
			if !slices.Contains(codes, test.want) {
				t.Errorf("got %q, want %q", codes, test.want)
			}
			if n > maxDocument+1<<20 {
				t.Errorf("read %d bytes", n)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	var codes []string
	c := New(Options{Report: func(f Finding) { codes = append(codes, fmt.Sprint(f.Line, " ", f.Code)) }})
	if _, err := c.Document("a", "", numbered(maxEntries)); err != nil || c.summary.URLs != maxEntries || len(codes) > 0 {
		t.Errorf("got %d, %v and %q of 50,000 pages", c.summary.URLs, err, codes)
	}
	_, err := c.Document("b", "", numbered(maxEntries+2))
	if want := []string{"50002 too-many-entries"}; err != nil || c.summary.URLs != 2*maxEntries+2 || codes[len(codes)-1] != "0 duplicate-elsewhere" || !slices.Contains(codes, want[0]) {
		t.Errorf("got %d, %v and %q of 50,002 pages", c.summary.URLs, err, codes)
	}
}

func TestDuplicatesBetweenDocuments(t *testing.T) {
	var got []string
	c := New(Options{Report: func(f Finding) { got = append(got, f.File+" "+f.Code+" "+f.URL) }})
	for _, name := range []string{"a", "b", "c"} {
		if _, err := c.Document(name, "", strings.NewReader(set(onePage+"<url><loc>http://a.example/"+name+"</loc></url>"))); err != nil {
			t.Fatal(err)
		}
	}
	// A document is no page, even where a page has its URL.
	if _, err := c.Document("d", "", strings.NewReader(index9("<sitemap><loc>http://a.example/a</loc></sitemap>"))); err != nil {
		t.Fatal(err)
	}
	want := []string{"b duplicate-elsewhere http://a.example/", "c duplicate-elsewhere http://a.example/"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDuplicatesInOtherSpellings(t *testing.T) {
	for _, test := range []struct {
		a, b string
		same bool
	}{
		{"https://a.example/a", "https://a.example:443/a", true},
		{"https://a.example:0443/a", "https://a.example/a", true},
		{"http://a.example:80/a", "http://a.example/a", true},
		{"https://a.example:8443/a", "https://A.example:08443/a", true},
		{"https://a.example:8443/a", "https://a.example/a", false},
		{"https://a.example/a", "https://A.Example/a", true},
		{"https://a.example/a", "HTTPS://a.example/a", true},
		{"https://[::a]/a", "https://[::A]/a", true},
		{"https://a.example/a", "https://a.example/A", false},
		{"https://a.example/a", "https://a.example/%61", true},
		{"https://a.example/%41%7e?%2D=1", "https://a.example/A~?-=1", true},
		{"https://a.example/%c3%a4", "https://a.example/%C3%A4", true},
		{"https://a.example/%2f", "https://a.example/%2F", true},
		{"https://a.example/a%2Fb", "https://a.example/a/b", false},
		{"https://a.example/%2561", "https://a.example/%61", false},
		{"https://a.example/a", "https://a.example/a#b", true},
		{"https://a.example/a#c", "https://a.example/a#b", true},
		{"https://a.example/a", "https://a.example/a?", true},
		{"https://a.example/a", "http://a.example/a", false},
		{"https://a.example", "https://a.example/", true},
		{"https://a.example?a", "https://a.example/?a", true},
	} {
		for _, list := range []string{test.a + "\n" + test.b, test.b + "\n" + test.a} {
			c := New(Options{})
			if _, err := c.Document("a", "", strings.NewReader(list)); err != nil {
				t.Fatal(err)
			}
			if got := c.Summary().Codes["duplicate"] == 1; got != test.same {
				t.Errorf("%q: got %v, want %v", list, got, test.same)
			}
		}
	}
}

func TestSeenIsBounded(t *testing.T) {
	var codes []string
	c := New(Options{Report: func(f Finding) { codes = append(codes, f.File+" "+f.Code) }})
	for i, pages := range []int{10, maxSeen + 100, 10} {
		if _, err := c.Document(fmt.Sprint(i), "", numbered(pages)); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Contains(codes, "1 duplicates-unknown") || !slices.Contains(codes, "2 duplicates-unknown") || len(c.seen) > maxSeen {
		t.Errorf("got %q", codes)
	}
}

func TestMaxPerCode(t *testing.T) {
	var got []string
	c := New(Options{MaxPerCode: 2, Report: func(f Finding) {
		got = append(got, fmt.Sprintf("%s:%d %s", f.File, f.Line, f.Code))
		if f.Line == 0 && !strings.HasPrefix(f.Message, "… and ") {
			t.Errorf("got %q of the rest", f.Message)
		}
	}})
	if _, err := c.Document("a", "", strings.NewReader(set(strings.Repeat("<url/>\n", 1206)))); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		c.Add(Finding{Severity: Warning, File: "b", Line: 7, Code: "slow"})
	}
	s := c.Summary()
	want := []string{"a:2 missing-element", "a:3 missing-element", "a:0 missing-element", "b:7 slow", "b:7 slow", "b:0 slow"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if s.Errors != 1206 || s.Warnings != 3 || s.Documents != 1 || s.URLs != 1206 || s.Codes["missing-element"] != 1206 || s.Codes["slow"] != 3 {
		t.Errorf("got %+v", s)
	}
	if again := c.Summary(); again.Errors != s.Errors || len(got) != len(want) {
		t.Errorf("got %+v and %q the second time", again, got)
	}
}

func TestPage(t *testing.T) {
	var got []string
	c := New(Options{Page: func(loc string, line int) { got = append(got, fmt.Sprintf("%d %s", line, loc)) }})
	for _, body := range []string{
		set("\n<url>\n<loc>\n\nhttp://a.example/1\n</loc></url><url><loc>b</loc></url>"),
		"http://a.example/2\n http://a.example/3",
		index9("<sitemap><loc>http://a.example/4.xml</loc></sitemap>"),
	} {
		if _, err := c.Document("a", "", strings.NewReader(body)); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"6 http://a.example/1", "7 b", "1 http://a.example/2", "2 http://a.example/3"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestReadErrors(t *testing.T) {
	broken := errors.New("broken")
	for _, body := range []string{"", set(onePage), zipped(set(onePage))[:30], "http://a.example/\n"} {
		c := New(Options{Report: func(f Finding) {
			if f.Severity == Error && f.Code != "missing-element" {
				t.Errorf("got %+v for a file that cannot be read", f)
			}
		}})
		r := io.MultiReader(strings.NewReader(body), iotest.ErrReader(broken))
		if _, err := c.Document("a", "", r); !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "reading a: ") {
			t.Errorf("got %v after %d bytes", err, len(body))
		}
	}
	if _, err := New(Options{}).Robots("a", "", iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("got %v of a robots.txt", err)
	}
}

func TestFindingJSON(t *testing.T) {
	got, err := json.Marshal(Finding{Severity: Warning, File: "a", Code: "b", Message: "c"})
	if want := `{"severity":"warning","file":"a","code":"b","message":"c"}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

// A finding is one line, whatever the document has.
func TestFindingIsOneLine(t *testing.T) {
	c := New(Options{Report: func(f Finding) {
		if strings.ContainsAny(f.Message+f.URL, "\r\n\x1B\u2028") {
			t.Errorf("got %+v", f)
		}
	}})
	body := set("<url><loc>http://a.example/\n\u2028a</loc><lastmod>a\nb\u2028</lastmod><changefreq>\n</changefreq></url>")
	if _, err := c.Document("a", "", strings.NewReader(body)); err != nil {
		t.Fatal(err)
	}
	if c.Summary().Errors == 0 {
		t.Error("nothing was found")
	}
}

func FuzzDocument(f *testing.F) {
	for _, d := range documents {
		if len(d.body) < 3000 {
			f.Add([]byte(d.body))
		}
	}
	f.Add([]byte(zipped(set(onePage))))
	f.Add([]byte("http://a.example/\r\nhttp://a.example/b\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		c := New(Options{Report: func(f Finding) {
			if f.Code == "" || f.Message == "" || f.File != "a" || f.Line < 0 {
				t.Errorf("got %+v", f)
			}
		}, Page: func(string, int) {}})
		result, err := c.Document("a", "https://a.example/docs/sitemap.xml", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		s := c.Summary()
		if result.Kind == KindUnknown && s.Errors == 0 {
			t.Errorf("got no kind and no error")
		}
	})
}

func BenchmarkDocument(b *testing.B) {
	const pages = 1_000_000
	n, err := io.Copy(io.Discard, numbered(pages))
	if err != nil {
		b.Fatal(err)
	}
	body, err := io.ReadAll(numbered(pages))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(n)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := New(Options{}).Document("a", "", bytes.NewReader(body)); err != nil {
			b.Fatal(err)
		}
	}
}
