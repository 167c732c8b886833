package sitemap

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
	"github.com/seed3295b519/caddy-sitemap/internal/logonce"
	"github.com/seed3295b519/caddy-sitemap/internal/publish"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
	"github.com/seed3295b519/caddy-sitemap/internal/schedule"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// reportSite is a site of which nothing runs, with two sources.
func reportSite(t *testing.T) (*site, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	h := &Handler{sources: []input{new(SourceFiles), new(SourceURLs)}, logger: zap.New(core)}
	a := &App{now: time.Now, events: &eventQueue{queue: make(chan func(), 2)}}
	s := &site{identity: identity{handler: h, origin: "http://a.example"}, app: a, state: new(siteState)}
	s.id.handler, s.logger, s.ctx, s.schedule = h, logonce.New(h.logger.With(zap.String("site", s.url()))), context.Background(), schedule.New(time.Time{})
	s.probed.Store(new(probeResult))
	a.sites = map[siteID]*site{s.id: s}
	return s, logs
}

// listing is a snapshot of so many pages.
func listing(pages int) *publish.Snapshot {
	return &publish.Snapshot{Index: new(publish.Document), Pages: pages}
}

// requests returns how many requests the metrics count.
func requests(a *App) (n float64) {
	metrics := make(chan prometheus.Metric, 1000)
	collector{a}.Collect(metrics)
	for close(metrics); len(metrics) > 0; {
		var m dto.Metric
		if metric := <-metrics; strings.Contains(metric.Desc().String(), "requests_total") && metric.Write(&m) == nil {
			n += m.Counter.GetValue()
		}
	}
	return n
}

// TestMetrics: reasons of other modules may be any bytes, and the counts of sites that
// there are no longer are still summed.
func TestMetrics(t *testing.T) {
	s, _ := reportSite(t)
	before := requests(s.app)
	s.state.published.Store(listing(3))
	s.state.report.Store(&report.Report{Pending: 4, LeftOut: map[string]int{"\xff": 1, "\xfe": 2}, Confirmed: time.Now()})
	s.state.readers.Count("", "sitemap", 200, time.Now())
	departed.Add(&s.state.readers)
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(collector{s.app}); err != nil {
		t.Fatal(err)
	}
	if got := requests(s.app) - before; got != 2 {
		t.Errorf("%v requests, want 2", got)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]float64)
	for _, f := range families {
		got[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue() + f.GetMetric()[0].GetCounter().GetValue()
	}
	for name, want := range map[string]float64{"pages": 3, "pending_pages": 4, "shards": 1, "left_out_pages": 3, "sites": 1} {
		if got["caddy_sitemap_"+name] != want {
			t.Errorf("%s: got %v, want %v", name, got["caddy_sitemap_"+name], want)
		}
	}
}

// TestMetricsOfDropped: requests for a site that is dropped meanwhile count once, as counters never go down.
func TestMetricsOfDropped(t *testing.T) {
	b := newBench(t, nil)
	before := requests(b.app)
	for i := range 200 {
		s := b.site(fmt.Sprintf("host-%d.example", i))
		s.state.readers.Count("", "sitemap", 200, time.Now())
		dropped := make(chan struct{})
		go func() {
			defer close(dropped)
			b.app.mu.Lock()
			defer b.app.mu.Unlock()
			delete(b.app.sites, s.id)
			s.drop()
		}()
		for isDropped := false; !isDropped; isDropped = wait.IsDone(dropped) {
			if got := requests(b.app) - before; got != float64(i+1) {
				t.Fatalf("%v requests, want %d", got, i+1)
			}
			runtime.Gosched()
		}
	}
}

// TestEventsDropped: no refresh waits for who takes events.
func TestEventsDropped(t *testing.T) {
	s, logs := reportSite(t)
	for range 12 {
		s.app.events.announceRefreshed(s, nil, &report.Refresh{Snapshot: listing(3)})
	}
	if got := logs.FilterMessageSnippet("events are dropped").Len(); got != 1 || len(s.app.events.queue) != 2 {
		t.Errorf("got %d lines, want one, and %d events", got, len(s.app.events.queue))
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
	for _, raw := range []string{"", "/a.html", "//a.example/a.html", "javascript:alert(1)", "http:///a", "http://u:p@a.example/", "http://a.example:x/",
		"http://a.example/" + strings.Repeat("%0", 1<<20)} {
		if _, _, err := s.app.sitesAt(raw); err == nil || len(err.Error()) > 400 {
			t.Errorf("%.50q: got %.400v", raw, err)
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
