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

	"github.com/seed3295b519/caddy-sitemap/internal/publish"
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
func served(t testing.TB, method string, d *publish.Document, f publish.Form, header http.Header) (*http.Response, []byte) {
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
	form     publish.Form
	accept   string
	ranges   bool // also several, and anywhere: the bytes lie in memory
	mime     string
	encoding string
}{
	"identity": {publish.FormXML, "identity", false, contentXML, ""},
	"gzip":     {publish.FormXML, "gzip", true, contentXML, "gzip"},
	"file":     {publish.FormGzip, "", true, contentGzip, ""},
	"text":     {publish.FormText, "gzip", false, contentText, ""},
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
		if e.form != publish.FormXML {
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
			"If-Modified-Since: " + d.Headers.LastModified: 304, "If-Modified-Since: Sun, 01 Jan 2023 00:00:00 GMT": 200,
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

// TestServeDamaged: a document that cannot be decompressed is an error of the server.
func TestServeDamaged(t *testing.T) {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/sitemap.xml", nil)
	for _, form := range []publish.Form{publish.FormXML, publish.FormText} {
		w := httptest.NewRecorder()
		writePlain(w, r, new(publish.Document), form)
		if w.Code != http.StatusInternalServerError {
			t.Errorf("got the status %d", w.Code)
		}
	}
}

// TestServeRanges: ranges are as net/http makes them. Several of what is decompressed are all of it.
func TestServeRanges(t *testing.T) {
	d := snapshotOf(t, 0, numbered(5000)...).Index
	for name, e := range encodings {
		whole, body := served(t, http.MethodGet, d, e.form, http.Header{"Accept-Encoding": {e.accept}})
		etag := whole.Header.Get("Etag")
		for _, span := range []string{"bytes=0-0", "bytes=100-", "bytes=-500", fmt.Sprintf("bytes=%d-", len(body)), "bytes=5-1", "bytes=0-1,5-9"} {
			for _, condition := range []string{"", etag, `"other"`} {
				header := http.Header{"Accept-Encoding": {e.accept}, "Range": {span}}
				if condition != "" {
					header.Set("If-Range", condition)
				}
				got, gotBody := served(t, http.MethodGet, d, e.form, header)
				r, want := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
				want.Header().Set("Etag", etag)
				if e.ranges || !strings.Contains(span, ",") {
					r.Header = header
				}
				http.ServeContent(want, r, "", d.Modified, bytes.NewReader(body))
				if got.StatusCode != want.Code || got.Header.Get("Content-Range") != want.Header().Get("Content-Range") ||
					!strings.Contains(span, ",") && want.Code < 400 && !bytes.Equal(gotBody, want.Body.Bytes()) {
					t.Errorf("%s, %s, if %s: got status %d, range %q, %d bytes, want %d, %q, %d bytes", name, span, condition, got.StatusCode, got.Header.Get("Content-Range"), len(gotBody),
						want.Code, want.Header().Get("Content-Range"), want.Body.Len())
				}
			}
		}
	}
}

// TestServeRangesOfLarge: a range of what is decompressed is granted where it ends early, and else is all of it: whoever
// wants the end of a document can have it compressed.
func TestServeRangesOfLarge(t *testing.T) {
	d := snapshotOf(t, 0, numbered(50_000)...).Index
	for _, form := range []publish.Form{publish.FormXML, publish.FormText} {
		size := int(d.Size)
		if form == publish.FormText {
			size = int(d.TextSize)
		}
		_, body := served(t, http.MethodGet, d, form, http.Header{})
		if len(body) != size || size < cheapRange+10 {
			t.Fatalf("a document of %d bytes", size)
		}
		for _, test := range []struct {
			span     string
			status   int
			from, to int // of the bytes that are sent
		}{
			{"bytes=0-0", 206, 0, 1},
			{"bytes=7-99", 206, 7, 100},
			{fmt.Sprintf("bytes=%d-%d", cheapRange-1, cheapRange-1), 206, cheapRange - 1, cheapRange},
			{fmt.Sprintf("bytes=%d-%d", cheapRange-1, cheapRange), 200, 0, size},
			{"bytes=0-", 200, 0, size},
			{"bytes=-1", 200, 0, size},
			{"bytes=0-9223372036854775807", 200, 0, size},
			{"bytes=0-0,2-2", 200, 0, size},
			{fmt.Sprintf("bytes=%d-", size), 416, 0, 0},
		} {
			res, got := served(t, http.MethodGet, d, form, http.Header{"Range": {test.span}})
			if res.StatusCode != test.status || test.status != 416 && !bytes.Equal(got, body[test.from:test.to]) {
				t.Errorf("%s: got status %d, %d bytes, want %d, %d", test.span, res.StatusCode, len(got), test.status, test.to-test.from)
			}
			if got := res.Header.Get("Accept-Ranges"); got != "" {
				t.Errorf("%s: got Accept-Ranges %q, and not all ranges are granted", test.span, got)
			}
			if res, got = served(t, http.MethodHead, d, form, http.Header{"Range": {test.span}}); res.StatusCode != 200 || len(got) > 0 {
				t.Errorf("%s: HEAD: got status %d, %d bytes", test.span, res.StatusCode, len(got))
			}
		}
	}
	res, _ := served(t, http.MethodGet, d, publish.FormGzip, http.Header{"Range": {"bytes=0-0"}})
	if got := res.Header.Get("Accept-Ranges"); got != "bytes" {
		t.Errorf("compressed: got Accept-Ranges %q", got)
	}
}

// TestAcceptEncoding goes by RFC 9110, section 12.5.3.
func TestAcceptEncoding(t *testing.T) {
	d := snapshotOf(t, 0, "/a").Index
	for _, test := range []struct {
		accept string // the fields, separated by bars
		want   string
	}{
		{"gzip", "gzip"},
		{"GZip", "gzip"},
		{"x-gzip", "gzip"},
		{"br, gzip;q=0.1", "gzip"},
		{"gzip ; q=0.001", "gzip"},
		{"deflate, gzip;q=1.0, *;q=0.5", "gzip"},
		{"identity;q=0.2, gzip;q=0.2", "gzip"},
		{"identity;q=0, gzip;q=0.2", "gzip"},
		{"identity;q=0.1|gzip;q=0.2", "gzip"},
		{"*", "gzip"},
		{"*;q=0.1", "gzip"},
		{"br, *;q=0.1", "gzip"},
		{"identity;q=0, *", "gzip"},
		{"gzip;q=nonsense", "gzip"},
		{"gzip;q=-1", "gzip"},
		{"gzip;q=2, identity", "gzip"},

		{"", ""},
		{"br", ""},
		{"identity", ""},
		{"gzip;q=0", ""},
		{"gzip;Q=0.000", ""},
		{"gzip;q=0, *", ""},
		{"*, gzip;q=0", ""},
		{"*;q=0", ""},
		{"identity, gzip;q=0.2", ""},
		{"gzip;q=0.2|identity;q=0.3", ""},
		{"identity;q=0.5, *;q=0.4", ""},
		{"gzip;q=0.5, *", ""},
		{"gzipped", ""},
	} {
		header := http.Header{"Accept-Encoding": strings.Split(test.accept, "|")}
		res, _ := served(t, http.MethodGet, d, publish.FormXML, header)
		if got := res.Header.Get("Content-Encoding"); got != test.want {
			t.Errorf("%q: got %q, want %q", test.accept, got, test.want)
		}
	}
	res, _ := served(t, http.MethodGet, d, publish.FormXML, http.Header{})
	if got := res.Header.Get("Content-Encoding"); got != "" {
		t.Errorf("without the header: got %q", got)
	}
}

func TestCacheControl(t *testing.T) {
	d := snapshotOf(t, 0, "/a").Index
	for fresh, want := range map[time.Duration]string{0: "0", 1999 * time.Millisecond: "1", time.Minute: "60", time.Hour: "3600"} {
		w := httptest.NewRecorder()
		writeDocument(w, httptest.NewRequest(http.MethodGet, "/", nil), d, publish.FormXML, fresh)
		if got := w.Header().Get("Cache-Control"); got != "max-age="+want {
			t.Errorf("%s left: got %q, want %q", fresh, got, want)
		}
	}
}

// TestFresh: caches keep a document until the next refresh is due, and an hour at most; no longer because a site rests.
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
	s.schedule.At(b.clock.Add(time.Hour))
	s.resting.Store(true)
	if got := s.fresh(); got != time.Minute {
		t.Errorf("at rest: got %s, want the interval", got)
	}
}

// TestServeKeepsHeaders: what handlers before have set stays.
func TestServeKeepsHeaders(t *testing.T) {
	d := snapshotOf(t, 0, "/a").Index
	for _, test := range []struct {
		form            publish.Form
		control, vary   []string
		wantAge, wanted string
	}{
		{publish.FormXML, nil, []string{"Origin"}, "max-age=60", "Origin, Accept-Encoding"},
		{publish.FormXML, []string{"no-store"}, []string{"Origin", "Cookie, accept-encoding"}, "no-store", "Origin, Cookie, accept-encoding"},
		{publish.FormXML, []string{"no-store"}, []string{"*"}, "no-store", "*, Accept-Encoding"},
		{publish.FormGzip, nil, []string{"Origin"}, "max-age=60", "Origin"},
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

// TestServeAllocations: serving what lies in memory allocates the headers' values and Cache-Control alone.
func TestServeAllocations(t *testing.T) {
	d := snapshotOf(t, 0, numbered(1000)...).Index
	w := sink{make(http.Header)}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	if n := testing.AllocsPerRun(100, func() {
		clear(w.header)
		writeDocument(w, r, d, publish.FormXML, time.Minute)
	}); n > 3 {
		t.Errorf("got %v allocations, want 3", n)
	}
}
