package sitemap

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/document"
)

// numbered are so many paths in order.
func numbered(n int) []string {
	paths := make([]string, n)
	for i := range paths {
		paths[i] = fmt.Sprintf("/page-%06d", i)
	}
	return paths
}

// served is the response for a document.
func served(t testing.TB, method string, d *document.Document, f document.Form, header http.Header) (*http.Response, []byte) {
	t.Helper()
	r := httptest.NewRequest(method, "/", nil)
	r.Header = header
	w := httptest.NewRecorder()
	writeDocument(w, r, d, f, time.Minute)
	res := w.Result()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, body
}

// encodings are the ways in which a document is sent.
var encodings = map[string]struct {
	form     document.Form
	accept   string
	ranges   bool // the bytes lie in memory
	mime     string
	encoding string
}{
	"identity": {document.FormPlain, "identity", false, contentXML, ""},
	"gzip":     {document.FormPlain, "gzip", true, contentXML, "gzip"},
	"file":     {document.FormGzip, "", true, contentGzip, ""},
	"text":     {document.FormText, "gzip", false, contentText, ""},
}

// TestServe: each encoding of a document has its own ETag, which a condition is met with.
func TestServe(t *testing.T) {
	d := snapshotOf(t, 0, numbered(5000)...).Index
	bodies, etags := make(map[string][]byte), make(map[string]bool)
	for name, e := range encodings {
		header := http.Header{"Accept-Encoding": {e.accept}}
		res, body := served(t, http.MethodGet, d, e.form, header)
		bodies[name] = body
		vary := "Accept-Encoding"
		if e.form != document.FormPlain {
			vary = ""
		}
		for header, want := range map[string]string{
			"Content-Type": e.mime, "Content-Encoding": e.encoding, "Vary": vary, "X-Robots-Tag": "noindex",
			"Content-Length": fmt.Sprint(len(body)), "Last-Modified": d.Modified.UTC().Format(http.TimeFormat),
			"Cache-Control": "max-age=60",
		} {
			if got := res.Header.Get(header); got != want {
				t.Errorf("%s: %s is %q, want %q", name, header, got, want)
			}
		}
		// Those that Caddy's encode handler makes end in such as "-gzip".
		etag := res.Header.Get("Etag")
		if len(etag) < 10 || etag[0] != '"' || strings.Contains(etag, "-") || etags[etag] {
			t.Errorf("%s: got the ETag %s, others have %v", name, etag, etags)
		}
		etags[etag] = true
		for condition, status := range map[string]int{
			"If-None-Match: " + etag: 304, `If-None-Match: "other"`: 200, `If-None-Match: "other", W/` + etag: 304,
			"If-Match: " + etag: 200, `If-Match: "other"`: 412,
			"If-Modified-Since: " + d.Modified.UTC().Format(http.TimeFormat): 304, "If-Modified-Since: Sun, 01 Jan 2023 00:00:00 GMT": 200,
		} {
			key, value, _ := strings.Cut(condition, ": ")
			res, body := served(t, http.MethodGet, d, e.form, http.Header{"Accept-Encoding": {e.accept}, key: {value}})
			if res.StatusCode != status || status == 200 && !bytes.Equal(body, bodies[name]) || status != 200 && len(body) > 0 {
				t.Errorf("%s, %s: got status %d, %d bytes, want %d", name, condition, res.StatusCode, len(body), status)
			}
			if status == 304 && res.Header.Get("Etag") != etag {
				t.Errorf("%s, %s: got the ETag %s, want %s", name, condition, res.Header.Get("Etag"), etag)
			}
		}
	}
	unzip, err := gzip.NewReader(bytes.NewReader(bodies["file"]))
	if err != nil {
		t.Fatal(err)
	}
	if xml, err := io.ReadAll(unzip); err != nil || !bytes.Equal(xml, bodies["identity"]) || !bytes.Equal(bodies["gzip"], bodies["file"]) {
		t.Errorf("the encodings hold different documents, %v", err)
	}
	if want := "https://example.com/page-000000\n"; !bytes.HasPrefix(bodies["text"], []byte(want)) || bytes.Count(bodies["text"], []byte("\n")) != 5000 {
		t.Errorf("the text begins with %.50q", bodies["text"])
	}
}

// TestServeSince: of two versions within a second, the later one has a date that is yet to come, and a client has that version if it
// says so. Any other date that is yet to come says nothing.
func TestServeSince(t *testing.T) {
	d := *snapshotOf(t, 0, numbered(1)...).Index
	d.Modified = time.Now().Add(time.Hour).Truncate(time.Second)
	for since, want := range map[time.Time]int{
		d.Modified:                     http.StatusNotModified,
		d.Modified.Add(time.Second):    http.StatusOK,
		d.Modified.Add(-2 * time.Hour): http.StatusOK,
	} {
		header := http.Header{"Accept-Encoding": {"gzip"}, "If-Modified-Since": {since.UTC().Format(http.TimeFormat)}}
		res, _ := served(t, http.MethodGet, &d, document.FormPlain, header)
		if res.StatusCode != want {
			t.Errorf("%s after it: got the status %d, want %d", since.Sub(d.Modified), res.StatusCode, want)
		}
	}
}

// TestServeDamaged: a document that cannot be decompressed is an error of the server.
func TestServeDamaged(t *testing.T) {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/sitemap.xml", nil)
	for _, form := range []document.Form{document.FormPlain, document.FormText} {
		w := httptest.NewRecorder()
		writePlain(w, r, new(document.Document), form)
		if w.Code != http.StatusInternalServerError {
			t.Errorf("got the status %d", w.Code)
		}
	}
}

// TestServeRanges: what lies in memory has the ranges of net/http. What is decompressed is sent as a whole.
func TestServeRanges(t *testing.T) {
	d := snapshotOf(t, 0, numbered(5000)...).Index
	for name, e := range encodings {
		_, body := served(t, http.MethodGet, d, e.form, http.Header{"Accept-Encoding": {e.accept}})
		status := http.StatusOK
		want := body
		advertised := ""
		if e.ranges {
			status = http.StatusPartialContent
			want = body[7:100]
			advertised = "bytes"
		}
		header := http.Header{"Accept-Encoding": {e.accept}, "Range": {"bytes=7-99"}}
		res, got := served(t, http.MethodGet, d, e.form, header)
		if res.StatusCode != status || !bytes.Equal(got, want) || res.Header.Get("Accept-Ranges") != advertised {
			t.Errorf("%s: got status %d, %d bytes, %v", name, res.StatusCode, len(got), res.Header)
		}
	}
}

// TestAcceptEncoding: gzip is sent to who does not prefer the document as it is.
func TestAcceptEncoding(t *testing.T) {
	d := snapshotOf(t, 0, "/a").Index
	for accept, want := range map[string]string{ // the fields, separated by bars
		"GZip":                       "gzip",
		"br, gzip;q=0.1":             "gzip",
		"identity;q=0.2, gzip;q=0.2": "gzip",
		"identity;q=0.1|gzip;q=0.2":  "gzip",
		"gzip;q=nonsense":            "gzip",

		"":                          "",
		"br":                        "",
		"gzip;q=0, *":               "",
		"*":                         "",
		"identity, gzip;q=0.2":      "",
		"gzip;q=0.2|identity;q=0.3": "",
	} {
		header := http.Header{"Accept-Encoding": strings.Split(accept, "|")}
		res, _ := served(t, http.MethodGet, d, document.FormPlain, header)
		if got := res.Header.Get("Content-Encoding"); got != want {
			t.Errorf("%q: got %q, want %q", accept, got, want)
		}
	}
}

func TestCacheControl(t *testing.T) {
	d := snapshotOf(t, 0, "/a").Index
	for fresh, want := range map[time.Duration]string{0: "0", 1999 * time.Millisecond: "1", time.Minute: "60", time.Hour: "3600"} {
		w := httptest.NewRecorder()
		writeDocument(w, httptest.NewRequest(http.MethodGet, "/", nil), d, document.FormPlain, fresh)
		if got := w.Header().Get("Cache-Control"); got != "max-age="+want {
			t.Errorf("%s left: got %q, want %q", fresh, got, want)
		}
	}
}

// TestFresh: caches keep a document until the next refresh is due, and an hour at most.
func TestFresh(t *testing.T) {
	b := newBench(t, nil)
	s := b.site("named.example")
	for left, want := range map[time.Duration]time.Duration{
		-time.Minute:   0, // a refresh is under way
		time.Minute:    time.Minute,
		longestAge:     longestAge,
		24 * time.Hour: longestAge,
	} {
		s.schedule.At(b.clock.Add(left))
		if got := s.fresh(); got != want {
			t.Errorf("%s before it is due: got %s, want %s", left, got, want)
		}
	}
}

// TestServeKeepsHeaders: what handlers before have set stays.
func TestServeKeepsHeaders(t *testing.T) {
	d := snapshotOf(t, 0, "/a").Index
	for _, test := range []struct {
		form            document.Form
		control, vary   []string
		wantAge, wanted string
	}{
		{document.FormPlain, nil, []string{"Origin"}, "max-age=60", "Origin, Accept-Encoding"},
		{document.FormPlain, []string{"no-store"}, []string{"Origin", "Cookie, accept-encoding"}, "no-store", "Origin, Cookie, accept-encoding, Accept-Encoding"},
		{document.FormPlain, []string{"no-store"}, []string{"*"}, "no-store", "*, Accept-Encoding"},
		{document.FormGzip, nil, []string{"Origin"}, "max-age=60", "Origin"},
	} {
		w := httptest.NewRecorder()
		for name, values := range map[string][]string{"Cache-Control": test.control, "Vary": test.vary} {
			if values != nil {
				w.Header()[name] = values
			}
		}
		writeDocument(w, httptest.NewRequest(http.MethodGet, "/", nil), d, test.form, time.Minute)
		if got := strings.Join(w.Header()["Vary"], ", "); got != test.wanted || w.Header().Get("Cache-Control") != test.wantAge {
			t.Errorf("%+v: got %v", test, w.Header())
		}
	}
}

// TestServeAllocations: serving what lies in memory allocates what the headers say, not the body.
func TestServeAllocations(t *testing.T) {
	d := snapshotOf(t, 0, numbered(1000)...).Index
	w := sink{make(http.Header)}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	if n := testing.AllocsPerRun(100, func() {
		clear(w.header)
		writeDocument(w, r, d, document.FormPlain, time.Minute)
	}); n > 13 {
		t.Errorf("got %v allocations, want 13", n)
	}
}
