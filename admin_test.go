package sitemap

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
	"github.com/seed3295b519/caddy-sitemap/internal/logonce"
	"github.com/seed3295b519/caddy-sitemap/internal/merge"
	"github.com/seed3295b519/caddy-sitemap/internal/publish"
	"github.com/seed3295b519/caddy-sitemap/internal/schedule"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// reportSite is a site of which nothing runs, with two sources.
func reportSite(t *testing.T) (*site, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	h := &Handler{sources: make([]Source, 2), sourceNames: []string{"files", "urls"}, logger: zap.New(core)}
	h.settings.crawl = Crawl{Disallow: []string{"add", "logout"}}.compile(new(checker))
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

func leftOut(counts map[indexing.Status]int) (r indexing.Result) {
	r.Generation = new(store.Generation)
	for status, n := range counts {
		r.LeftOut[status] = indexing.List[string]{Count: n, First: []string{"/" + status.String()}}
	}
	return r
}

func failing(inputs ...int) (m merge.Result) {
	for _, i := range inputs {
		m.Failed = append(m.Failed, merge.InputError{Input: i, Name: "source", Err: errors.New("gone")})
	}
	m.Counts = []int{7, 0, 0}
	return m
}

// TestReports runs through refreshes of one site, whose reports are restored from the store
// each time.
func TestReports(t *testing.T) {
	s, logs := reportSite(t)
	begun := time.Unix(1e9, 0)
	changed := result{outcome: refreshChanged, merged: failing(1), selected: leftOut(map[indexing.Status]int{indexing.NoIndex: 2, indexing.Absent: 9})}
	for i, step := range []struct {
		what           string
		published      int
		result         result
		want, reason   string
		isConfirmed    bool
		noIndex, event int
		line           string // that is written newly
	}{
		{"a source that could never be read", 10, changed, refreshChanged, "", true, 2, 0, "sitemap refreshed"},
		{"another source fails", 10, result{outcome: refreshUnchanged, merged: failing(0, 1)}, refreshHeldBack, "source 1 (source) could not be read", false, 2, 1, "held back"},
		{"it still fails", 10, result{outcome: refreshUnchanged, merged: failing(0, 1)}, refreshHeldBack, "source 1 (source) could not be read", false, 2, 0, ""},
		{"all are read", 10, result{outcome: refreshUnchanged}, refreshUnchanged, "", true, 2, 0, ""},
		{"a change is held back", 10, result{outcome: refreshHeldBack, reason: "few", found: 3, selected: leftOut(nil)}, refreshHeldBack, "few", false, 0, 1, "held back"},
		{"it fails", 10, result{err: errors.New("broken\xff")}, refreshFailed, "broken\uFFFD", false, 0, 1, "refresh failed"},
		{"it fails again", 10, result{err: errors.New("broken\xff")}, refreshFailed, "broken\uFFFD", false, 0, 0, ""},
		{"nothing is left", 0, result{outcome: refreshEmpty, selected: leftOut(map[indexing.Status]int{indexing.NoIndex: 5})}, refreshEmpty, "", true, 5, 0, "no page to list"},
		{"for another site", 0, result{outcome: refreshAlias}, refreshEmpty, "", false, 5, 0, ""},
	} {
		if s.state.Index.Store(nil); step.published > 0 {
			s.state.Index.Store(listing(step.published))
		}
		logs.TakeAll()
		at := begun.Add(time.Duration(i) * time.Minute)
		s.report(step.result, at, time.Second)
		encoded, err := json.Marshal(s.lastReport())
		got := new(report)
		if err = errors.Join(err, json.Unmarshal(encoded, got)); err != nil {
			t.Fatal(err)
		}
		s.state.report.Store(got)
		if got.Result != step.want || got.Reason != step.reason || got.Confirmed.Equal(at) != step.isConfirmed || got.Pages != step.published || got.LeftOut["noindex"] != step.noIndex || got.LeftOut["absent"] != 0 {
			t.Errorf("%s: got %+v", step.what, got)
		}
		if n := len(s.app.events.queue); n != step.event {
			t.Errorf("%s: got %d events, want %d", step.what, n, step.event)
		}
		for len(s.app.events.queue) > 0 {
			<-s.app.events.queue
		}
		lines := logs.Filter(func(e observer.LoggedEntry) bool { return e.Level > zapcore.DebugLevel }).All()
		found := step.line == ""
		for _, line := range lines {
			found = found || strings.Contains(line.Message, step.line)
		}
		if !found || step.line == "" && len(lines) > 0 {
			t.Errorf("%s: got the lines %v, want %q", step.what, lines, step.line)
		}
	}
	if got := s.lastReport().Examples["noindex"]; len(got) != 1 || got[0] != "/noindex" {
		t.Errorf("got examples %q", got)
	}
}

// TestLeftOut adds up what each stage leaves out.
func TestLeftOut(t *testing.T) {
	r := result{
		source:   &Refresh{leftOut: map[string]int{"dotfile": 1}},
		snapshot: &publish.Snapshot{LeftOut: map[string]int{publish.NoRoom: 2}},
		selected: leftOut(map[indexing.Status]int{indexing.OverMax: 3, indexing.Pending: 50, indexing.Excluded: 50, indexing.Absent: 50}),
	}
	r.merged.LeftOut = map[string]int{"excluded": 4, merge.OverMax: 5}
	r.crawled.DroppedPaths = 6
	want := map[string]int{"dotfile": 1, publish.NoRoom: 2, indexing.OverMax.String(): 8, "excluded": 4, "over max_paths": 6}
	if got, _ := leftOutOf(&r); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestSelectionLines are written once while they apply.
func TestSelectionLines(t *testing.T) {
	s, logs := reportSite(t)
	s.state.Index.Store(listing(10))
	bad := leftOut(map[indexing.Status]int{indexing.Disallowed: 60, indexing.OverMax: 5})
	bad.LeftOut[indexing.Disallowed].First = []string{"/add/1", "/logout", "/users/log-out"}
	bad.Listed, bad.Orphans = 10, indexing.List[string]{Count: 2, First: []string{"/a", "/b"}}
	good := leftOut(nil)
	good.Listed = 10
	for i, step := range []struct {
		selected indexing.Result
		want     int // lines besides the one of the refresh
	}{{bad, 3}, {bad, 0}, {good, 0}, {bad, 3}} {
		logs.TakeAll()
		s.report(result{outcome: refreshChanged, selected: step.selected}, time.Unix(1e9, 0), time.Second)
		if got := logs.Len() - 1; got != step.want {
			t.Errorf("step %d: got %v, want %d lines", i, logs.All(), step.want)
		}
	}
	if lines := logs.FilterField(zap.Strings("disallow", []string{"add", "logout"})).All(); len(lines) != 1 || lines[0].Level != zapcore.WarnLevel {
		t.Errorf("got %v", lines)
	}
}

// TestMetrics: reasons of other modules may be any bytes, and the counts of sites that
// there are no longer are still summed.
func TestMetrics(t *testing.T) {
	s, _ := reportSite(t)
	s.state.Index.Store(listing(3))
	s.state.report.Store(&report{Pending: 4, LeftOut: map[string]int{"\xff": 1, "\xfe": 2}, Confirmed: time.Now()})
	s.state.readers.Count("", "index", 200, time.Now())
	departed.Add(&s.state.readers)
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
	for name, want := range map[string]float64{"pages": 3, "pending_pages": 4, "shards": 1, "left_out_pages": 3, "requests_total": 2, "sites": 1} {
		if got["caddy_sitemap_"+name] != want {
			t.Errorf("%s: got %v, want %v", name, got["caddy_sitemap_"+name], want)
		}
	}
}

// TestRefreshedEvents: they come where other documents are served, and no refresh waits for
// who takes them.
func TestRefreshedEvents(t *testing.T) {
	s, logs := reportSite(t)
	other := listing(4)
	other.Index.ETag = "other"
	for _, test := range []struct {
		what      string
		before    *publish.Snapshot
		after     *publish.Snapshot
		announced int
	}{
		{"nothing before", nil, listing(3), 1},
		{"changed", listing(3), other, 1},
		{"unchanged", listing(3), listing(3), 0},
		{"emptied", listing(3), nil, 1},
		{"still empty", nil, nil, 0},
	} {
		s.app.events.announceRefreshed(s, test.before, &result{snapshot: test.after})
		if got := len(s.app.events.queue); got != test.announced {
			t.Errorf("%s: got %d events, want %d", test.what, got, test.announced)
		}
		for len(s.app.events.queue) > 0 {
			<-s.app.events.queue
		}
	}
	for range 12 {
		s.app.events.announce(s, "x", map[string]any{})
	}
	if got := logs.FilterMessageSnippet("events are dropped").Len(); got != 1 {
		t.Errorf("got %d lines, want one", got)
	}
}

// TestSitesAt reads URLs as operators write them.
func TestSitesAt(t *testing.T) {
	s, _ := reportSite(t)
	for raw, want := range map[string]string{
		"http://a.example":                   "/",
		"http://A.example.:80/./%7e/x?b=c#d": "/~/x?b=c",
		"http://a.example/it%27s":            "/it's",
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

// TestPrintJSON prints texts that strangers may have written.
func TestPrintJSON(t *testing.T) {
	const response = `{"sites":[{"site":"http://a.example","named_by":"visitors","pages":3,"last_refresh":{"duration_seconds":1e-7,"left_out":{"noindex":1,"\u001b":2},"warnings":["one\tline","\u202egpj"]}},{"site":"http://b.example"}]}`
	const want = `sites
  site      http://a.example
  named by  visitors
  pages     3
  last refresh
    duration seconds  1e-7
    left out
      noindex  1
      \u001b   2
    warnings   one\u0009line
    warnings   \u202egpj
sites
  site  http://b.example
`
	var got strings.Builder
	w, d := tabwriter.NewWriter(&got, 0, 0, 2, ' ', 0), json.NewDecoder(strings.NewReader(response))
	d.UseNumber()
	if err := errors.Join(printJSON(w, d, "", ""), w.Flush()); err != nil || got.String() != want {
		t.Errorf("got error %v and\n%s\nwant\n%s", err, got.String(), want)
	}
}

// TestStatusesDocs: the documentation has a row for each index status.
func TestStatusesDocs(t *testing.T) {
	text, err := os.ReadFile("docs/listing.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, status := range indexing.Statuses() {
		if status != indexing.Indexable && !strings.Contains(string(text), "\n| "+status.String()+" | ") {
			t.Errorf("docs/listing.md has no row for '%s'", status)
		}
	}
}
