package sitemap

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp/encode"
	"go.uber.org/goleak"
)

func TestAcceptsGzip(t *testing.T) {
	for _, test := range []struct {
		accept string
		want   bool
	}{
		{"gzip", true},
		{"GZip", true},
		{"x-gzip", true},
		{"gzip, deflate, br, zstd", true},
		{"br , gzip ; q=0.001", true},
		{"gzip;q=1.0", true},
		{"gzip;Q=0.5", true},
		{"gzip;x=y;q=0.5", true},
		{"*", true},
		{"*;q=0.1", true},
		{"identity;q=0, *", true},
		{"br\ngzip", true},

		{"", false},
		{",", false},
		{"identity", false},
		{"br", false},
		{"zstd, br", false},
		{"gzip2", false},
		{"gzip;q=0", false},
		{"gzip;q=0.000", false},
		{"gzip; q=0, *", false},
		{"*, gzip;q=0", false},
		{"*;q=0", false},
		{"gzip;q=", false},
		{"gzip;q=x", false},
		{"gzip;q=-1", false},
		{"gzip;q=NaN", false},
	} {
		header := http.Header{}
		for line := range strings.SplitSeq(test.accept, "\n") {
			header.Add("Accept-Encoding", line)
		}
		if got := acceptsGzip(header); got != test.want {
			t.Errorf("%q: got %t", test.accept, got)
		}
	}
	if acceptsGzip(http.Header{}) {
		t.Error("no header: got true")
	}
}

func FuzzAcceptsGzip(f *testing.F) {
	f.Add("gzip, deflate, br")
	f.Add("gzip;q=0, *")
	f.Add("br;q=1.0, gzip;q=0.8, *;q=0.1")
	f.Add(";;q=,,=")
	f.Fuzz(func(t *testing.T, accept string) {
		of := func(lines ...string) bool { return acceptsGzip(http.Header{"Accept-Encoding": lines}) }
		got := of(accept)
		if !of("gzip", accept) || !of("gzip,"+accept) || of("gzip;q=0", accept) || of("gzip;q=0,"+accept) {
			t.Errorf("%q after gzip changes what gzip says", accept)
		}
		if got && !strings.Contains(strings.ToLower(accept), "gzip") && !strings.Contains(accept, "*") {
			t.Errorf("%q: got true", accept)
		}
		// What Caddy's encode handler takes for gzip once and plainly is so.
		if strings.Count(strings.ToLower(accept), "gzip") == 1 && !strings.ContainsAny(accept, "*=") {
			r := &http.Request{Header: http.Header{"Accept-Encoding": {accept}}}
			if takes := len(encode.AcceptedEncodings(r, []string{"gzip"})) > 0; got && !takes {
				t.Errorf("%q: got true", accept)
			}
		}
	})
}

// servedDocument is a site with one document of some size.
func servedDocument(t testing.TB, pages int) (*site, *document) {
	t.Helper()
	_, s := waiting()
	return s, writing{}.snapshot(t, numbered(pages)).index
}

func (s *site) answer(method string, d *document, f form, header http.Header) *http.Response {
	r := httptest.NewRequest(method, "/", nil)
	r.Header = header
	w := httptest.NewRecorder()
	s.serve(w, r, d, f)
	return w.Result()
}

func read(t testing.TB, r io.Reader) []byte {
	t.Helper()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestETags says that each form has its own, and that none ends as those do that
// Caddy's encode handler makes.
func TestETags(t *testing.T) {
	s, d := servedDocument(t, 10)
	seen := make(map[string]bool)
	for _, test := range []struct {
		form   form
		accept string
	}{{formXML, ""}, {formXML, "gzip"}, {formGzip, ""}, {formText, ""}} {
		etag := s.answer(http.MethodGet, d, test.form, http.Header{"Accept-Encoding": {test.accept}}).Header.Get("Etag")
		if len(etag) < 10 || etag[0] != '"' || etag[len(etag)-1] != '"' || strings.ContainsAny(etag, "-") {
			t.Errorf("got %s", etag)
		}
		if seen[etag] {
			t.Errorf("%s comes twice", etag)
		}
		seen[etag] = true
	}
}

func TestCacheControl(t *testing.T) {
	s, d := servedDocument(t, 10)
	now := testTime
	s.app.now = func() time.Time { return now }
	for _, test := range []struct {
		left time.Duration
		want string
	}{
		{-time.Minute, "max-age=0"},
		{0, "max-age=0"},
		{1999 * time.Millisecond, "max-age=1"},
		{time.Minute, "max-age=60"},
		{time.Hour, "max-age=3600"},
		{24 * time.Hour, "max-age=3600"},
	} {
		s.due.Store(now.Add(test.left).UnixNano())
		if got := s.answer(http.MethodGet, d, formXML, nil).Header.Get("Cache-Control"); got != test.want {
			t.Errorf("%s left: got %q, want %q", test.left, got, test.want)
		}
	}
}

// TestRanges compares ranges of each form with those that net/http takes of the
// same bytes.
func TestRanges(t *testing.T) {
	s, d := servedDocument(t, 5000)
	forms := []struct {
		name   string
		form   form
		accept string
	}{{"identity", formXML, "identity"}, {"gzip", formXML, "gzip"}, {"file", formGzip, ""}, {"text", formText, ""}}
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			whole := s.answer(http.MethodGet, d, f.form, http.Header{"Accept-Encoding": {f.accept}})
			body, etag := read(t, whole.Body), whole.Header.Get("Etag")
			if whole.StatusCode != http.StatusOK || whole.ContentLength != int64(len(body)) || whole.Header.Get("Accept-Ranges") != "bytes" {
				t.Fatalf("got status %d, %d bytes, headers %v", whole.StatusCode, len(body), whole.Header)
			}
			for _, rng := range []string{
				"bytes=0-0", "bytes=0-99", "bytes=100-", "bytes=-1", "bytes=-500", "bytes=-99999999", "bytes=5000-70000",
				fmt.Sprintf("bytes=%d-", len(body)-1), fmt.Sprintf("bytes=%d-", len(body)), "bytes=99999999-", "bytes=5-1", "lines=1-2", "bytes=0-",
			} {
				for _, condition := range []string{"", etag, `"other"`, d.headers.lastModified, "Sun, 01 Jan 2023 00:00:00 GMT"} {
					header := http.Header{"Accept-Encoding": {f.accept}, "Range": {rng}}
					if condition != "" {
						header.Set("If-Range", condition)
					}
					want := httptest.NewRecorder()
					want.Header().Set("Etag", etag)
					want.Header().Set("Content-Type", "text/plain")
					r := httptest.NewRequest(http.MethodGet, "/", nil)
					r.Header = header
					http.ServeContent(want, r, "", d.modified, bytes.NewReader(body))
					got := s.answer(http.MethodGet, d, f.form, header)
					gotBody := read(t, got.Body)
					if got.StatusCode != want.Code || got.Header.Get("Content-Range") != want.Header().Get("Content-Range") ||
						got.StatusCode < 400 && !bytes.Equal(gotBody, want.Body.Bytes()) {
						t.Errorf("%s, if %s: got status %d, range %q, %d bytes, want %d, %q, %d bytes", rng, condition, got.StatusCode, got.Header.Get("Content-Range"), len(gotBody),
							want.Code, want.Header().Get("Content-Range"), want.Body.Len())
					}
				}
			}
		})
	}
}

// TestStream reads pieces in any order.
func TestStream(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	_, d := servedDocument(t, 3000)
	for name, open := range map[string]func(*document) (io.ReadCloser, error){"xml": openXML, "text": openText} {
		source, err := open(d)
		if err != nil {
			t.Fatal(err)
		}
		whole := read(t, source)
		source.Close()
		size := d.size
		if name == "text" {
			size = d.textSize
		}
		if int64(len(whole)) != size {
			t.Fatalf("%s has %d bytes, want %d", name, len(whole), size)
		}
		s := &stream{document: d, size: size, open: open}
		random := rand.New(rand.NewPCG(1, 2))
		for range 100 {
			at := random.Int64N(size + 10)
			offset, whence := at, io.SeekStart
			switch random.IntN(3) {
			case 0:
				offset, whence = at-size, io.SeekEnd
			case 1:
				offset, whence = at-s.at, io.SeekCurrent
			}
			if got, err := s.Seek(offset, whence); got != at || err != nil {
				t.Fatalf("%s: seeking to %d: got %d, %v", name, at, got, err)
			}
			want := whole[min(at, size):]
			want = want[:min(random.Int64N(5000), int64(len(want)))]
			got := make([]byte, len(want))
			if _, err := io.ReadFull(s, got); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%s: at %d: got %.50q, %v, want %.50q", name, at, got, err, want)
			}
		}
		if _, err := s.Seek(0, io.SeekEnd); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("%s: reading at the end: got %d, %v", name, n, err)
		}
		if _, err := s.Seek(-1, io.SeekStart); err == nil {
			t.Errorf("%s: seeking before the beginning succeeds", name)
		}
		s.Close()
		s.Close()
	}
}

// TestHead says that HEAD has GET's headers, whatever is asked for.
func TestHead(t *testing.T) {
	s, d := servedDocument(t, 100)
	for _, header := range []http.Header{
		{}, {"Accept-Encoding": {"gzip"}}, {"Range": {"bytes=5-9"}}, {"If-None-Match": {`"other"`}},
		{"Accept-Encoding": {"gzip"}, "If-None-Match": {`"other"`}}, {"If-None-Match": {`"` + d.etag + `"`}}, {"Accept-Encoding": {"gzip"}, "Range": {"bytes=5-9"}},
	} {
		for f := range extensions {
			get, head := s.answer(http.MethodGet, d, form(f), header), s.answer(http.MethodHead, d, form(f), header)
			if _, ok := get.Header["Content-Length"]; !ok && get.StatusCode == http.StatusOK && len(d.gzip) <= countedByServer {
				// net/http counts the bytes of a GET itself.
				if n := head.Header.Get("Content-Length"); n != "" && n != fmt.Sprint(len(d.gzip)) {
					t.Errorf("%v, form %d: got the length %s of %d", header, f, n, len(d.gzip))
				}
				head.Header.Del("Content-Length")
			}
			if get.StatusCode != head.StatusCode || fmt.Sprint(get.Header) != fmt.Sprint(head.Header) {
				t.Errorf("%v, form %d: got %d %v, GET has %d %v", header, f, head.StatusCode, head.Header, get.StatusCode, get.Header)
			}
			if body := read(t, head.Body); len(body) != 0 {
				t.Errorf("%v, form %d: got %d bytes", header, f, len(body))
			}
			// net/http leaves the length of what is encoded away where there are conditions.
			if n := get.Header.Get("Content-Length"); get.StatusCode == http.StatusOK && n != "" && n != fmt.Sprint(len(read(t, get.Body))) {
				t.Errorf("%v, form %d: got the length %s", header, f, n)
			}
		}
	}
}

func BenchmarkServe(b *testing.B) {
	s, d := servedDocument(b, 1000)
	for _, test := range []struct {
		name   string
		form   form
		accept string
	}{{"gzip", formXML, "gzip"}, {"identity", formXML, ""}, {"text", formText, ""}} {
		b.Run(test.name, func(b *testing.B) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set("Accept-Encoding", test.accept)
			b.ReportAllocs()
			for b.Loop() {
				s.serve(nowhere{http.Header{}}, r, d, test.form)
			}
		})
	}
}

// nowhere is a response that nobody reads.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header         { return n.header }
func (n nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n nowhere) WriteHeader(int)             {}
