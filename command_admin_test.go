package sitemap

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestRoughly(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 1999 * time.Millisecond: "1s", 119 * time.Second: "119s", 2 * time.Minute: "2m", 119 * time.Minute: "119m",
		2 * time.Hour: "2h", 47 * time.Hour: "47h", 48 * time.Hour: "2d", 400 * 24 * time.Hour: "400d",
	} {
		if got := roughly(d); got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
}

func TestAmounts(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{amount(0, "page", "pages"), "0 pages"}, {amount(1, "page", "pages"), "1 page"}, {amount(int64(2), "page", "pages"), "2 pages"},
		{bytesOf(0), "0 B"}, {bytesOf(9999), "9999 B"}, {bytesOf(10_000), "10 kB"}, {bytesOf(17_000_000), "17 MB"}, {bytesOf(50_000_000_000), "50 GB"},
		{took(0), "under 1ms"}, {took(0.0214), "21ms"}, {took(1.2345), "1.23s"}, {took(83), "1m23s"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestRefusal(t *testing.T) {
	const prefix = "caddy responded with error: HTTP "
	for err, want := range map[string]string{
		prefix + `404: {"error":"no sitemap covers this URL"}`: "no sitemap covers this URL",
		prefix + "404: 404 page not found\n":                   "the server at a:1 has no sitemap module with an admin API: it was built without it, or with an older one",
		prefix + "502: overloaded":                             "the server at a:1 returns status 502: overloaded",
		prefix + "403: {}":                                     "the server at a:1 returns status 403: {}",
		"performing request: connection refused":               "no server responds at a:1; is Caddy running, and is that its admin address? (performing request: connection refused)",
	} {
		if got := refusal("a:1", errors.New(err)).Error(); got != want {
			t.Errorf("%q: got %q, want %q", err, got, want)
		}
	}
}

// written is what is printed of a response at a fixed time.
func written(t *testing.T, write func(*printer, []byte) error, body string) (string, error) {
	t.Helper()
	var text strings.Builder
	p := newPrinter(&text)
	p.now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	err := write(p, []byte(body))
	return text.String(), err
}

// TestWriteStatuses prints all that a status may have, some of it written by strangers.
func TestWriteStatuses(t *testing.T) {
	const body = `{"sites":[
		{"site":"https://example.com","sitemap":"https://example.com/sitemap.xml","named_by":"visitors","pages":3,"pending":2,"shards":1,"bytes":1234,
		"since":"2026-11-20T10:00:00Z","confirmed_at":"2026-11-21T11:59:00Z","refreshing":true,
		"last_refresh":{"at":"2026-11-21T11:58:00Z","duration_seconds":0.5,"result":"held_back","reason":"less than half of the pages are left"},
		"next_refresh":"2026-11-21T12:00:30Z","sources":[{"source":"files","pages":1},{"source":"urls","pages":0,"error":"line\tone\nline two"}],
		"left_out":{"noindex":1,"redirect":12},"examples":{"noindex":["/\u001b[31mred","/\u202egpj"]},"warnings":["no root"],
		"discovered":{"known":9,"visited":1,"dropped":6,"visits_ignored":{"signed in":7}},
		"readers_unverified":[{"crawler":"Googlebot","document":"index","result":"served","times":3,"last":"2026-11-21T11:00:00Z"}]},
		{"site":"https://www.example.com","sitemap":"https://example.com/sitemap.xml","named_by":"configuration","served_by":"https://example.com"},
		{"site":"https://new.example","sitemap":"https://new.example/sitemap.xml","named_by":"configuration"}
	]}`
	const want = `https://example.com
  sitemap       https://example.com/sitemap.xml
  named by      visitors only
  serves        3 pages in 1 document (1234 B); 2 pending
  since         2026-11-20 10:00:00 UTC (26h ago)
  confirmed     2026-11-21 11:59:00 UTC (60s ago)
  last refresh  held back in 500ms, 2026-11-21 11:58:00 UTC (2m ago)
                less than half of the pages are left
                and one is running
  next refresh  2026-11-21 12:00:30 UTC (in 30s)
  sources       files: 1 page
                urls: 0 pages, could not be read: line\u0009one\u000aline two
  left out      12 redirect
                1 noindex: /\u001b[31mred /\u202egpj
  warnings      no root
  discovered    9 paths known, 1 path visited, 6 dropped
  not counted   7 signed in
  requested by (User-Agents are not verified)
    Googlebot   index           served          3×              last 2026-11-21 11:00:00 UTC (60m ago)

https://www.example.com
  served by     https://example.com

https://new.example
  sitemap       https://new.example/sitemap.xml
  serves        nothing: no page is listed
  last refresh  none so far
`
	if got, err := written(t, writeStatuses, body); err != nil || got != want {
		t.Errorf("got error %v and\n%s\nwant\n%s", err, got, want)
	}
	if _, err := written(t, writeStatuses, "<html>"); err == nil {
		t.Error("what is not JSON was read")
	}
}

func TestWriteRefreshes(t *testing.T) {
	const body = `{"sites":[
		{"site":"http://a.example","pages":1,"last_refresh":{"duration_seconds":0.01,"result":"held_back","reason":"a source\u001b[2J"}},
		{"site":"http://b.example","pages":2,"last_refresh":{"duration_seconds":0.01,"result":"changed"}},
		{"site":"http://c.example"},
		{"site":"http://d.example","served_by":"http://b.example"}
	]}`
	const want = `http://a.example: held back, 1 page, in 10ms: a source\u001b[2J
http://b.example: changed, 2 pages, in 10ms
http://c.example: not refreshed
http://d.example: served by http://b.example
`
	got, err := written(t, writeRefreshes, body)
	if got != want || err == nil || !strings.HasPrefix(err.Error(), "2 refreshes failed or held back") {
		t.Errorf("got error %v and\n%s\nwant\n%s", err, got, want)
	}
}

func TestWriteExplanation(t *testing.T) {
	for body, want := range map[string]string{
		`{"url":"http://a.example/x","listed":true,"document":"http://a.example/sitemap.xml","lastmod":"2026-01-02","explanation":"It returns 200.","named":true,
		"fetched_at":"2026-11-21T11:00:00Z","status":200,"due_at":"2026-11-21T13:00:00Z","response":{"status":200,"content_type":"text/html","noindex":true}}`: `http://a.example/x
  listed        yes, in http://a.example/sitemap.xml
                It returns 200.
  lastmod       2026-01-02
  named by      a source
  last fetch    status 200, 2026-11-21 11:00:00 UTC (60m ago)
  next fetch    2026-11-21 13:00:00 UTC (in 60m)
  returns now   200, text/html, noindex
`,
		`{"url":"http://a.example/y","sitemap":"http://a.example/sitemap.xml","reason":"redirect","explanation":"It redirects.","remedy":"List the other.","other":"http://a.example/x",
		"response":{"status":301,"location":"/x\n"},"notes":["one","two"]}`: `http://a.example/y
  listed        no: redirect
                It redirects.
                List the other.
  sitemap       http://a.example/sitemap.xml
  other page    http://a.example/x
  returns now   301, to /x\u000a
  notes         one
                two
`,
	} {
		if got, err := written(t, writeExplanation, body); err != nil || got != want {
			t.Errorf("got error %v and\n%s\nwant\n%s", err, got, want)
		}
	}
}
