package sitemap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
	"github.com/seed3295b519/caddy-sitemap/internal/logonce"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/replica"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
	"github.com/seed3295b519/caddy-sitemap/internal/schedule"
)

// reportSite is a site of which nothing runs, with two sources.
func reportSite(t *testing.T) (*site, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	h := &Handler{sources: []input{new(SourceFiles), new(SourceURLs)}, logger: zap.New(core), limiter: crawl.NewLimiter(1, 1)}
	a := &App{now: time.Now, events: &eventQueue{queue: make(chan func(), 2)}}
	s := &site{identity: identity{handler: h, origin: "http://a.example"}, app: a, state: new(siteState)}
	s.id.handler, s.logger, s.ctx, s.schedule = h, logonce.New(h.logger.With(zap.String("site", s.url()))), context.Background(), schedule.New(time.Time{})
	s.serve(nil)
	s.probed.Store(new(probeResult))
	a.sites = map[siteID]*site{s.id: s}
	return s, logs
}

// listing is a snapshot of so many pages.
func listing(pages int) *document.Set {
	return &document.Set{Index: new(document.Document), Pages: pages}
}

// TestMetrics: reasons of other modules may be any bytes.
func TestMetrics(t *testing.T) {
	s, _ := reportSite(t)
	s.serve(listing(3))
	s.published().report = &report.Report{Pending: 4, LeftOut: map[string]int{"\xff": 1, "\xfe": 2}, Confirmed: time.Now()}
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(collector{s.app}); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]float64)
	for _, f := range families {
		got[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue() + f.GetMetric()[0].GetCounter().GetValue()
	}
	for name, want := range map[string]float64{"pages": 3, "pending_pages": 4, "left_out_pages": 3, "sites": 1} {
		if got["caddy_sitemap_"+name] != want {
			t.Errorf("%s: got %v, want %v", name, got["caddy_sitemap_"+name], want)
		}
	}
}

// TestEventsDropped: no refresh waits for who takes events.
func TestEventsDropped(t *testing.T) {
	s, logs := reportSite(t)
	for range 12 {
		s.app.events.emitRefreshed(s, nil, &report.Refresh{Snapshot: listing(3)})
	}
	if got := logs.FilterMessageSnippet("events are dropped").Len(); got != 1 || len(s.app.events.queue) != 2 {
		t.Errorf("got %d lines, want one, and %d events", got, len(s.app.events.queue))
	}
}

// handled is a handler of events that keeps them.
type handled struct{ events []caddy.Event }

func (h *handled) Handle(_ context.Context, e caddy.Event) error {
	h.events = append(h.events, e)
	if e.Data["panics"] == true {
		panic("it is broken")
	}
	return nil
}

// TestEvents: events name the site, and go on after a handler that panics.
func TestEvents(t *testing.T) {
	s, logs := reportSite(t)
	events := new(caddyevents.App)
	ctx := emptyContext(t)
	if err := events.Provision(ctx); err != nil {
		t.Fatal(err)
	}
	all := new(handled)
	for _, name := range []string{"sitemap_refreshed", "sitemap_announced"} {
		if err := events.On(name, all); err != nil {
			t.Fatal(err)
		}
	}
	if err := events.Start(); err != nil {
		t.Fatal(err)
	}
	s.app.ctx = ctx
	s.app.events.app = s.app
	s.app.events.events = events
	s.app.events.emit(s, "sitemap_refreshed", map[string]any{"panics": true})
	s.app.events.emit(s, "sitemap_announced", map[string]any{"urls": 3})
	running, cancel := context.WithCancel(t.Context())
	s.app.running = running
	for len(s.app.events.queue) > 0 {
		emit := <-s.app.events.queue
		emit()
	}
	cancel()
	s.app.events.emitAll() // it ends
	if len(all.events) != 2 || logs.FilterMessage("an event handler panicked").Len() != 1 {
		t.Fatalf("got %+v, and the log %+v", all.events, logs.All())
	}
	last := all.events[1]
	want := map[string]any{"urls": 3, "site": "http://a.example", "sitemap": s.sitemap}
	if last.Name() != "sitemap_announced" || !maps.Equal(last.Data, want) {
		t.Errorf("got %s, %v, want %v", last.Name(), last.Data, want)
	}
	// With crawl off, no record tells which pages are others.
	s.handler.settings.crawl.Off = true
	five := &document.Set{Index: &document.Document{ETag: "five"}, Pages: 5}
	s.app.events.emitRefreshed(s, five, &report.Refresh{Snapshot: listing(3)})
	emit := <-s.app.events.queue
	emit()
	if data := all.events[2].Data; data["pages"] != 3 || data["added"] != nil || data["changed"] != nil || data["removed"] != nil {
		t.Errorf("with crawl off: got %v", data)
	}
}

// TestSitesAt reads URLs as operators write them.
func TestSitesAt(t *testing.T) {
	s, _ := reportSite(t)
	for raw, want := range map[string]string{
		"http://a.example":                   "/",
		"http://A.example.:80/./%7e/x?b=c#d": "/~/x?b=c",
		"http://a.example/it%27s":            "/it%27s",
	} {
		if sites, got, err := s.app.sitesAt(raw); err != nil || got != want || len(sites) != 1 {
			t.Errorf("%q: got %q, %v, %v, want %q", raw, got, sites, err, want)
		}
	}
	for _, raw := range []string{"/a.html", "http://a.example/" + strings.Repeat("%0", 1<<20)} {
		_, _, err := s.app.sitesAt(raw)
		refused, ok := errors.AsType[caddy.APIError](err)
		if !ok || refused.HTTPStatus != http.StatusBadRequest || !strings.HasPrefix(refused.Err.Error(), "not the URL of a page, such as ") || len(err.Error()) > 400 {
			t.Errorf("%.50q: got %.400v", raw, err)
		}
	}
}

// TestAdminHandler: what the admin endpoint responds to a query that is invalid, and without an app.
func TestAdminHandler(t *testing.T) {
	routes := new(adminAPI).Routes()
	for _, test := range []struct {
		route, query string
		status       int
		want         string
	}{
		{"GET /sitemap/sites", "", 503, "no site of the running configuration has a sitemap"},
		{"GET /sitemap/sites", "site=a", 503, "no site of the running configuration has a sitemap"},
		{"GET /sitemap/sites", "site=a&site=b", 400, "the query has 'site': only one 'site' is allowed"},
		{"GET /sitemap/sites", "sites=a", 400, "the query has 'sites': only one 'site' is allowed"},
		{"GET /sitemap/sites", "fetch=a", 400, "the query has 'fetch': only one 'site' is allowed"},
		{"GET /sitemap/sites", "site=%zz", 400, `invalid URL escape "%zz"`},
		{"POST /sitemap/refresh", "fetch=a&fetch=b", 503, "no site of the running configuration has a sitemap"},
		{"POST /sitemap/refresh", "url=a", 400, "the query has 'url': only one 'site' and any number of 'fetch' are allowed"},
		{"GET /sitemap/explain", "url=a&site=b", 503, "no site of the running configuration has a sitemap"},
		{"GET /sitemap/explain", "url=a&url=b", 400, "the query has 'url': only one 'url' and only one 'site' are allowed"},
	} {
		i := slices.IndexFunc(routes, func(r caddy.AdminRoute) bool { return r.Pattern == test.route })
		if i < 0 {
			t.Fatalf("there is no %s", test.route)
		}
		method, path, _ := strings.Cut(test.route, " ")
		r := httptest.NewRequestWithContext(t.Context(), method, path+"?"+test.query, nil)
		err := routes[i].Handler.ServeHTTP(httptest.NewRecorder(), r)
		refused, ok := errors.AsType[caddy.APIError](err)
		if !ok || refused.HTTPStatus != test.status || refused.Err.Error() != test.want {
			t.Errorf("%s?%s: got %v, want %d, %s", test.route, test.query, err, test.status, test.want)
		}
	}
}

// TestSitesOf: a site is named by its URL, that of its sitemap, or a part that no other URL has.
func TestSitesOf(t *testing.T) {
	b := newBench(t, nil)
	for _, host := range []string{"a.example", "shop.a.example", "docs.b.example"} {
		b.site(host)
	}
	const all = "http://a.example/, http://docs.b.example/, http://shop.a.example/"
	for raw, want := range map[string]string{
		"":                             all,
		"http://a.example":             "http://a.example/",
		"http://A.example/":            "http://a.example/",
		"http://a.example/sitemap.xml": "http://a.example/",
		"//a.example":                  "http://a.example/",
		"shop":                         "http://shop.a.example/",
		"docs.b.example":               "http://docs.b.example/",
		"a.example":                    "400 'a.example' is part of the URLs of several sites; sites: http://a.example/, http://shop.a.example/",
		"/":                            "400 '/' is part of the URLs of several sites; sites: " + all,
		"http://a.example/a":           "404 no site has a URL with 'http://a.example/a'; sites: " + all,
		"*.example":                    "404 no site has a URL with '*.example'; sites: " + all,
	} {
		found, err := b.app.sitesOf(raw)
		var urls []string
		for _, s := range found {
			urls = append(urls, s.url()+"/")
		}
		got := strings.Join(urls, ", ")
		if refused, ok := errors.AsType[caddy.APIError](err); ok {
			got = fmt.Sprint(refused.HTTPStatus, " ", refused.Err)
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", raw, got, want)
		}
	}
}

// TestNoSite: an error lists the sites, of many the first.
func TestNoSite(t *testing.T) {
	b := newBench(t, nil)
	for i, want := range []string{
		0:            "no sitemap covers this URL; sites: http://a0.example/",
		1:            "no sitemap covers this URL; sites: http://a0.example/, http://a1.example/",
		maxNames - 1: "http://a9.example/",
		maxNames:     "http://a8.example/, and 1 more",
	} {
		b.site(fmt.Sprintf("a%d.example", i))
		got := b.app.noSite().Error()
		if !strings.HasSuffix(got, want) || strings.Count(got, "http://") != min(i+1, maxNames) {
			t.Errorf("%d sites: got %q, want %q", i+1, got, want)
		}
	}
}

// TestStatusReasons: an empty site names the first reason that there is.
func TestStatusReasons(t *testing.T) {
	unread := []report.Source{{Source: "files", Pages: 1}, {Source: "urls", Error: "gone"}}
	for _, test := range []struct {
		name   string
		last   report.Report
		robots robotsRules
		want   string
	}{
		{"listed", report.Report{Result: outcome.Unchanged, Sources: unread}, robotsRules{closed: true}, ""},
		{"blocked", report.Report{Result: outcome.Empty, Reason: reasonRefused}, robotsRules{closed: true}, reasonRefused},
		{"robots.txt hangs", report.Report{Result: outcome.Empty, Sources: unread}, robotsRules{closed: true}, "robots.txt does not respond, so no page is fetched"},
		{"robots.txt fails", report.Report{Result: outcome.Empty, Pending: 2}, robotsRules{closed: true, status: 503}, "robots.txt returns status 503, so no page is fetched"},
		{"a source fails", report.Report{Result: outcome.Empty, Sources: unread, Pending: 2}, robotsRules{}, "source 2 (urls) could not be read"},
		{"pending", report.Report{Result: outcome.Empty, Pending: 2, LeftOut: map[string]int{"noindex": 1}}, robotsRules{}, "pages are still to be fetched"},
		{"left out", report.Report{Result: outcome.Empty, LeftOut: map[string]int{"server error": 1, "noindex": 2}}, robotsRules{}, "all pages are left out"},
		{"nothing", report.Report{Result: outcome.Empty}, robotsRules{}, "no source names a page"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, _ := reportSite(t)
			s.probed.Store(&probeResult{robots: test.robots})
			s.published().report = &test.last
			st := s.status()
			if st.LastRefresh.Reason != test.want || s.published().report.Reason != test.last.Reason {
				t.Errorf("got %q, want %q; the report says %q", st.LastRefresh.Reason, test.want, s.published().report.Reason)
			}
			if st.Refreshing != nil {
				t.Errorf("nothing runs, and it is at %+v", st.Refreshing)
			}
		})
	}
}

// TestConfirmBy: where another process leads, its last sign of life confirms what is served, unless its refresh ended otherwise.
func TestConfirmBy(t *testing.T) {
	own := time.Unix(10, 0)
	seen := time.Unix(940, 0)
	for _, test := range []struct {
		result  outcome.Result
		storage replica.Status
		want    time.Time
	}{
		{outcome.Published, replica.Status{Leader: "a"}, seen},
		{outcome.Unchanged, replica.Status{Leader: "a"}, seen},
		{outcome.Unchanged, replica.Status{Leader: "this one", Leads: true}, own},
		{outcome.Unchanged, replica.Status{}, own},
		{outcome.HeldBack, replica.Status{Leader: "a"}, own},
	} {
		last := &report.Report{Result: test.result, Confirmed: own}
		st := siteStatus{LastRefresh: last}
		test.storage.Seen = seen
		st.confirmBy(&storageStatus{Status: test.storage})
		if got := st.LastRefresh.Confirmed; !got.Equal(test.want) || !last.Confirmed.Equal(own) {
			t.Errorf("%+v: got %s", test, got)
		}
	}
}

// TestMeasure: metrics that only some sites have.
func TestMeasure(t *testing.T) {
	s, _ := reportSite(t)
	rep := &report.Report{Result: outcome.Published, Confirmed: s.app.now().Add(-time.Hour)}
	for name, test := range map[string]struct {
		st   siteStatus
		want string // the names and labels of those that are not 0
	}{
		"an alias": {siteStatus{ServedBy: "http://a.example", NamedBy: "configuration"}, "sites/configuration/alias"},
		"new":      {siteStatus{NamedBy: "configuration"}, "sites/configuration/"},
		"no page":  {siteStatus{LastRefresh: rep, NamedBy: "configuration"}, "sites/configuration/changed"},
		"pages":    {siteStatus{Site: "http://a.example/b", Pages: 1, LastRefresh: rep, NamedBy: "configuration"}, "pages/a.example/b sites/configuration/changed snapshot_age_seconds/a.example/b"},
	} {
		var got []string
		s.measure(&test.st, func(value float64, nameAndLabels ...string) {
			if value != 0 {
				got = append(got, strings.Join(nameAndLabels, "/"))
			}
		})
		slices.Sort(got)
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// TestStatusesDocs: the documentation has the table of index statuses as the code has it.
func TestStatusesDocs(t *testing.T) {
	text, err := os.ReadFile("docs/listing.md")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for status := range indexing.StatusCount {
		if status != indexing.Indexable {
			fmt.Fprintf(&want, "| %s | %s | %s |\n", status, status.Explanation(), status.Remedy())
		}
	}
	if _, table, _ := strings.Cut(string(text), "\n| reason | meaning | remedy |\n|---|---|---|\n"); !strings.HasPrefix(table, want.String()+"\n") {
		t.Errorf("docs/listing.md has another table than\n%s", want.String())
	}
}
