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
	const said = "caddy responded with error: HTTP "
	for err, want := range map[string]string{
		said + `404: {"error":"no sitemap is for this URL"}`: "no sitemap is for this URL",
		said + "404: 404 page not found\n":                   "the server at a:1 has no sitemap module that can be asked: it was built without it, or with an older one",
		said + "502: overloaded":                             "the server at a:1 answers with 502: overloaded",
		said + "403: {}":                                     "the server at a:1 answers with 403: {}",
		"performing request: connection refused":             "no server answers at a:1; is Caddy running, and is that its admin address? (performing request: connection refused)",
	} {
		if got := refusal("a:1", errors.New(err)).Error(); got != want {
			t.Errorf("%q: got %q, want %q", err, got, want)
		}
	}
}

// TestWriteStatuses has a site of which there is everything to tell, some of it by
// strangers.
func TestWriteStatuses(t *testing.T) {
	const answer = `{"sites":[
		{"site":"https://example.com","sitemap":"https://example.com/sitemap.xml","named_by":"visitors","pages":3,"verified":2,"shards":1,"bytes":1234,
		"since":"2026-11-20T10:00:00Z","confirmed_at":"2026-11-21T11:59:00Z","refreshing":true,
		"last_refresh":{"at":"2026-11-21T11:58:00Z","duration_seconds":0.5,"result":"doubted","reason":"less than half of the pages are left"},
		"next_refresh":"2026-11-21T12:00:30Z","sources":[{"source":"files","pages":1},{"source":"urls","pages":0,"error":"line one\nline two"}],
		"left_out":{"noindex":1,"redirects":12},"examples":{"noindex":["/\u001b[31mred","/\u202egpj"]},"warnings":["no root"],
		"discovered":{"paths":9,"from_access_log":1,"from_traffic":2,"from_links":6,"linked":5,"listed":4,"bytes":100},
		"readers_unverified":[{"crawler":"Googlebot","document":"index","result":"served","times":3,"last":"2026-11-21T11:00:00Z"}]},
		{"site":"https://www.example.com","sitemap":"https://example.com/sitemap.xml","named_by":"configuration","served_by":"https://example.com"},
		{"site":"https://new.example","sitemap":"https://new.example/sitemap.xml","named_by":"configuration"}
	]}`
	const want = `https://example.com
  sitemap       https://example.com/sitemap.xml
  named by      visitors alone
  serves        3 pages, 2 verified, in 1 document (1234 B)
  since         2026-11-20 10:00:00 UTC (26h ago)
  confirmed     2026-11-21 11:59:00 UTC (60s ago)
  last refresh  doubted in 500ms, 2026-11-21 11:58:00 UTC (2m ago)
                less than half of the pages are left
                and one is running
  next refresh  2026-11-21 12:00:30 UTC (in 30s)
  sources       files: 1 page
                urls: 0 pages, and could not be read: line one\u000aline two
  left out      12 redirects
                1 noindex: /\u001b[31mred /\u202egpj
  warnings      no root
  discovered    9 paths remembered: 1 from access logs, 2 from traffic, 6 from links
                5 linked to by a listed page, 4 listed
  fetched by, as User-Agents say it
    Googlebot index    served            3×  last 2026-11-21 11:00:00 UTC (60m ago)

https://www.example.com
  served by     https://example.com

https://new.example
  sitemap       https://new.example/sitemap.xml
  serves        nothing: no page is listed
  last refresh  none so far
`
	var text strings.Builder
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	if err := writeStatuses(&tellTale{&text, now}, []byte(answer)); err != nil || text.String() != want {
		t.Errorf("got error %v and\n%s\nwant\n%s", err, text.String(), want)
	}
}
