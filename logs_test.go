package sitemap

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/accesslog"
	"github.com/seed3295b519/caddy-sitemap/internal/discover"
)

// TestIsNamed: a Host header is the site's as visitors know it or as the server does.
func TestIsNamed(t *testing.T) {
	type site2 struct{ base, askBase string }
	plain := site2{"https://example.com", "https://example.com"}
	port := site2{"http://example.com:8080", "http://example.com:8080"}
	behind := site2{"https://example.com", "http://app.internal:8080"}
	six := site2{"http://[2001:db8::1]:8080", "http://[2001:db8::1]:8080"}
	idn := site2{"https://xn--bcher-kva.example", "https://xn--bcher-kva.example"}
	for _, test := range []struct {
		site site2
		host string
		want bool
	}{
		{plain, "example.com", true},
		{plain, "EXAMPLE.Com", true},
		{plain, "example.com.", true},
		{plain, "example.com.:443", true},
		{plain, "example.com:443", true},
		{plain, "example.com:", true},
		{plain, "example.com:80", false},
		{plain, "example.com:8443", false},
		{plain, "example.com:https", false},
		{plain, "www.example.com", false},
		{plain, "example.com.other.example", false},
		{plain, "example.org", false},
		{plain, "198.51.100.7", false},
		{plain, "exa mple.com", false},
		{plain, "*.example.com", false},
		{plain, strings.Repeat("a", 2000), false},
		{port, "example.com:8080", true},
		{port, "example.com", true},
		{port, "example.com:80", false},
		{port, "example.com:443", false},
		{behind, "example.com", true},
		{behind, "example.com:443", true},
		{behind, "app.internal:8080", true},
		{behind, "app.internal", true},
		{behind, "app.internal:443", false},
		{behind, "example.com:8080", false},
		{six, "[2001:db8::1]:8080", true},
		{six, "[2001:DB8:0:0::1]:8080", true},
		{six, "[2001:db8::1]", true},
		{six, "2001:db8::1", true},
		{six, "[2001:db8::1]:80", false},
		{six, "[2001:db8::2]:8080", false},
		{idn, "xn--bcher-kva.example", true},
		{idn, "bücher.example", true},
		{idn, "BÜCHER.example:443", true},
		{idn, "bucher.example", false},
	} {
		s := &site{base: test.site.base, askBase: test.site.askBase}
		if got := s.isNamed(test.host); got != test.want {
			t.Errorf("%s of %v: got %t", test.host, test.site, got)
		}
	}
}

// jsonLine is a line as Caddy writes it.
func jsonLine(at time.Time, host, uri, more string) string {
	return fmt.Sprintf(`{"level":"info","ts":%d.5,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"198.51.100.7","client_ip":"198.51.100.7","proto":"HTTP/2.0","method":"GET","host":%q,"uri":%q,"headers":{"User-Agent":[%q]}},"status":200,"resp_headers":{"Content-Type":["text/html"],"Etag":["\"a\""]%s}}`,
		at.Unix(), host, uri, browser, more)
}

// combinedLine is a line as Apache and nginx write it.
func combinedLine(at time.Time, host, uri string) string {
	line := fmt.Sprintf(`198.51.100.7 - - [%s] "GET %s HTTP/1.1" 200 1234 "-" %q`, at.Format("02/Jan/2006:15:04:05 -0700"), uri, browser)
	if host != "" {
		line = host + " " + line
	}
	return line
}

// cohortOf reads logs for the sites of a bench.
func cohortOf(b *bench, source *SourceAccessLog, sites ...*site) *cohort {
	b.t.Helper()
	r := &reading{app: b.app, handler: b.handler, source: source, key: "log", logger: b.app.logger, joined: make(map[*site]bool), said: make(map[string]string)}
	files, err := source.files()
	if err != nil {
		b.t.Fatal(err)
	}
	r.files = files
	c, err := r.cohort(context.Background(), sites, b.app.now())
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(c.follower.Close)
	return c
}

// TestTakeLine: what becomes of the lines of a log.
func TestTakeLine(t *testing.T) {
	now := time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)
	ago := now.Add(-time.Hour)
	const month = 30 * 24 * time.Hour
	for name, test := range map[string]struct {
		line string
		want string
		path string // that is known then; "": none
		at   time.Time
	}{
		"JSON":                  {jsonLine(ago, "named.example", "/docs/a", ""), lineCounts, "/docs/a", ago},
		"combined":              {combinedLine(ago, "", "/docs/a"), lineCounts, "/docs/a", time.Time{}},
		"a virtual host":        {combinedLine(ago, "named.example:80", "/docs/a"), lineCounts, "/docs/a", time.Time{}},
		"a query":               {jsonLine(ago, "named.example", "/docs/a?utm_source=x&page=2&x=1", ""), lineCounts, "/docs/a?page=2", ago},
		"a session":             {combinedLine(ago, "", "/docs/a;jsessionid=1"), lineCounts, "/docs/a", time.Time{}},
		"the host in capitals":  {jsonLine(ago, "NAMED.example:80", "/docs/a", ""), lineCounts, "/docs/a", ago},
		"the front page":        {jsonLine(ago, "named.example", "/docs/", ""), lineCounts, "/docs/", ago},
		"another host":          {jsonLine(ago, "other.example", "/docs/a", ""), otherHost, "", now},
		"another virtual host":  {combinedLine(ago, "other.example", "/docs/a"), otherHost, "", now},
		"no host name":          {jsonLine(ago, "a b", "/docs/a", ""), otherHost, "", now},
		"outside":               {jsonLine(ago, "named.example", "/a", ""), outsideSite, "", now},
		"outside, nearly":       {jsonLine(ago, "named.example", "/docs", ""), outsideSite, "", now},
		"outside by dots":       {jsonLine(ago, "named.example", "/docs/../a", ""), oddPath, "", now},
		"an encoded slash":      {jsonLine(ago, "named.example", "/docs/%2e%2e%2fa", ""), oddPath, "", now},
		"two slashes":           {jsonLine(ago, "named.example", "/docs//a", ""), oddPath, "", now},
		"a proxy's request":     {jsonLine(ago, "named.example", "http://named.example/docs/a", ""), oddPath, "", now},
		"no UTF-8":              {combinedLine(ago, "", "/docs/%ff"), oddPath, "", now},
		"just old enough":       {jsonLine(now.Add(-month), "named.example", "/docs/a", ""), lineCounts, "/docs/a", now.Add(-month)},
		"older than history":    {jsonLine(now.Add(-month-time.Second), "named.example", "/docs/a", ""), lineOld, "", now},
		"before 1970":           {jsonLine(time.Unix(-5, 0), "named.example", "/docs/a", ""), lineCounts, "/docs/a", now},
		"a time to come":        {jsonLine(now.Add(time.Hour), "named.example", "/docs/a", ""), lineCounts, "/docs/a", now},
		"no time":               {strings.Replace(jsonLine(ago, "named.example", "/docs/a", ""), `"ts"`, `"t"`, 1), lineCounts, "/docs/a", now},
		"private":               {jsonLine(ago, "named.example", "/docs/a", `,"Cache-Control":["private"]`), discover.Private.String(), "", now},
		"noindex":               {jsonLine(ago, "named.example", "/docs/a", `,"X-Robots-Tag":["noindex"]`), discover.NoIndex.String(), "", now},
		"not HTML":              {strings.Replace(jsonLine(ago, "named.example", "/docs/a", ""), "text/html", "text/css", 1), discover.NotHTML.String(), "", now},
		"an asset":              {combinedLine(ago, "", "/docs/a.css"), discover.Asset.String(), "", now},
		"a robot":               {strings.Replace(combinedLine(ago, "", "/docs/a"), "Mozilla/5.0", "Googlebot/2.1", 1), discover.Robot.String(), "", now},
		"signed in":             {strings.Replace(combinedLine(ago, "", "/docs/a"), "- - [", "- bob [", 1), discover.SignedIn.String(), "", now},
		"POST":                  {strings.Replace(combinedLine(ago, "", "/docs/a"), "GET", "POST", 1), discover.NotRead.String(), "", now},
		"not found":             {strings.Replace(combinedLine(ago, "", "/docs/a"), " 200 ", " 404 ", 1), discover.NotOK.String(), "", now},
		"blank":                 {"", accesslog.ErrNoRequest.Error(), "", now},
		"another log":           {`{"level":"info","ts":1,"logger":"tls","msg":"renewed"}`, accesslog.ErrNoRequest.Error(), "", now},
		"half a line":           {jsonLine(ago, "named.example", "/docs/a", "")[:100], accesslog.ErrSyntax.Error(), "", now},
		"no line of a log":      {"hello", accesslog.ErrSyntax.Error(), "", now},
		"what an attacker sent": {combinedLine(ago, "", `/docs/<script>\x00`), oddPath, "", now},
	} {
		t.Run(name, func(t *testing.T) {
			b := discovering(t, &Handler{}, discovery{from: discover.FromLog, query: []string{"page"}})
			s := b.siteIn("named.example", "/docs")
			c := cohortOf(b, &SourceAccessLog{}, s)
			c.ctx, c.now, c.oldest = t.Context(), now.Unix(), now.Add(-month).Unix()
			c.line([]byte(test.line))
			if c.counts[test.want] != 1 || len(c.counts) != 1 {
				t.Errorf("got %v, want %s", c.counts, test.want)
			}
			catalog := s.paths(t.Context())
			if got, want := catalog.Stats().Paths, len(test.path); (got == 1) != (want > 0) {
				t.Errorf("got %d paths", got)
			}
			if _, at := catalog.Shown(test.path); test.path != "" && strings.HasPrefix(test.line, "{") && at != test.at.Unix() {
				t.Errorf("%s was had at %s, want %s", test.path, time.Unix(at, 0).UTC(), test.at)
			}
		})
	}
}

// TestLinesOfSites: a line is for the site that its host is of, one without host for
// all, and the hosts that strangers send are not remembered without end.
func TestLinesOfSites(t *testing.T) {
	b := discovering(t, &Handler{}, discovery{from: discover.FromLog})
	one, two := b.site("named.example"), b.site("two.example")
	c := cohortOf(b, &SourceAccessLog{}, one, two)
	now := b.app.now()
	c.ctx, c.now, c.oldest = t.Context(), now.Unix(), 0
	for _, line := range []string{
		jsonLine(now, "named.example", "/one", ""), jsonLine(now, "two.example", "/two", ""), jsonLine(now, "three.example", "/three", ""), combinedLine(now, "", "/both"),
	} {
		c.line([]byte(line))
	}
	for i := range 2*maxHosts + 10 {
		c.line([]byte(combinedLine(now, fmt.Sprintf("%d.example", i), "/a")))
		if len(c.hosts) > maxHosts {
			t.Fatalf("%d hosts are remembered", len(c.hosts))
		}
	}
	if c.counts[lineCounts] != 3 || c.counts[otherHost] != 1+2*maxHosts+10 {
		t.Errorf("got %v", c.counts)
	}
	for _, s := range []*site{one, two} {
		if got := s.paths(t.Context()).Stats().Paths; got != 2 {
			t.Errorf("%s has %d paths, want 2", s.base, got)
		}
	}
}

// TestReadings: a handler's logs are read each by its own, under a key that changes
// with what is read out of them.
func TestReadings(t *testing.T) {
	of := func(query []string, sources ...Source) []*reading {
		b := discovering(t, &Handler{}, discovery{from: discover.FromLog, query: query})
		b.handler.sources = sources
		return b.handler.readings()
	}
	abs, err := filepath.Abs("a.log")
	if err != nil {
		t.Fatal(err)
	}
	logs := func(change func(*SourceAccessLog)) *SourceAccessLog {
		s := &SourceAccessLog{Files: []string{"a.log"}}
		change(s)
		return s
	}
	same := func(*SourceAccessLog) {}
	first := of(nil, logs(same))
	if len(first) != 1 || len(first[0].files) != 1 || first[0].files[0] != abs || len(first[0].key) != 16 {
		t.Fatalf("got %+v", first)
	}
	for name, test := range map[string]struct {
		query  []string
		change func(*SourceAccessLog)
		same   bool
	}{
		"the same":        {nil, same, true},
		"other bounds":    {nil, func(s *SourceAccessLog) { s.MaxPaths, s.Expire = 5, caddy.Duration(time.Hour) }, true},
		"the whole name":  {nil, func(s *SourceAccessLog) { s.Files = []string{abs} }, true},
		"another history": {nil, func(s *SourceAccessLog) { s.History = caddy.Duration(time.Hour) }, false},
		"another query":   {[]string{"page"}, same, false},
		"another log":     {nil, func(s *SourceAccessLog) { s.Files = []string{"b.log"} }, false},
		"other fields":    {nil, func(s *SourceAccessLog) { s.Fields = map[string]string{"uri": "path"} }, false},
		"another format":  {nil, func(s *SourceAccessLog) { s.Format = "json" }, false},
		"one log more":    {nil, func(s *SourceAccessLog) { s.Files = append(s.Files, "b.log") }, false},
	} {
		got := of(test.query, &SourceLinks{}, logs(test.change))
		if len(got) != 1 || (got[0].key == first[0].key) != test.same {
			t.Errorf("%s: got %d readings, the same key: %t", name, len(got), got[0].key == first[0].key)
		}
	}
	if got := of(nil, &SourceLinks{}, &SourceTraffic{}); len(got) != 0 {
		t.Errorf("without logs: got %d readings", len(got))
	}
}

// TestCohortPolls: what was read is told to each site, and not read again.
func TestCohortPolls(t *testing.T) {
	b := discovering(t, &Handler{}, discovery{from: discover.FromLog})
	name := filepath.Join(t.TempDir(), "access.log")
	now := b.app.now()
	lines := func(uris ...string) {
		t.Helper()
		f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, uri := range uris {
			if _, err := fmt.Fprintln(f, jsonLine(now, "named.example", uri, "")); err != nil {
				t.Fatal(err)
			}
		}
	}
	source := &SourceAccessLog{Files: []string{name}}
	s := b.site("named.example")
	lines("/a", "/b")
	c := cohortOf(b, source, s)
	poll := func(c *cohort, want int) {
		t.Helper()
		if _, err := c.poll(t.Context()); err != nil || c.counts[lineCounts] != want {
			t.Errorf("got %v, %v, want %d visits", c.counts, err, want)
		}
		b.clock.advance(time.Minute)
	}
	poll(c, 2)
	lines("/c")
	poll(c, 3)
	c.follower.Close()
	lines("/d")
	again := cohortOf(b, source, s)
	poll(again, 1)
	if got := s.paths(t.Context()).Stats().FromLog; got != 4 {
		t.Errorf("got %d paths, want 4", got)
	}
	s.cancel()
	lines("/e")
	poll(again, 1)
	if len(again.sites) != 0 {
		t.Error("it is read for a site that is no more")
	}
}
