package sitemap

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
	"github.com/seed3295b519/caddy-sitemap/internal/merge"
	"github.com/seed3295b519/caddy-sitemap/internal/publish"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// reportSite is a site of which nothing runs, with two sources.
func reportSite(t *testing.T) (*site, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	words, err := compileDisallow([]string{"add", "logout"})
	if err != nil {
		t.Fatal(err)
	}
	h := &Handler{sources: make([]Source, 2), sourceNames: []string{"files", "urls"}, logger: zap.New(core)}
	h.settings.crawl.disallow = words
	a := &App{now: time.Now, events: &eventQueue{queue: make(chan event, maxEvents), started: make(chan struct{}), logger: zap.New(core)}, counts: newCounts(), logger: zap.New(core)}
	s := &site{identity: identity{handler: h, origin: "http://a.example"}, app: a, state: new(siteState)}
	s.id.handler, s.logger, s.ctx = h, newSiteLog(zap.New(core), s.identity), context.Background()
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

// TestReportOutcomes runs through refreshes of one site.
func TestReportOutcomes(t *testing.T) {
	s, logs := reportSite(t)
	begun := time.Unix(1e9, 0)
	changed := result{outcome: refreshChanged, merged: failing(1), selected: leftOut(map[indexing.Status]int{indexing.NoIndex: 2, indexing.Absent: 9})}
	for i, step := range []struct {
		what            string
		published       int
		result          result
		outcome, reason string
		isConfirmed     bool
		noIndex         int
		events          int
		line            string // that is written newly
	}{
		{"a source that could never be read", 10, changed, refreshChanged, "", true, 2, 0, "sitemap refreshed"},
		{"another source fails", 10, result{outcome: refreshUnchanged, merged: failing(0, 1)}, refreshHeldBack, "source 1 (source) could not be read", false, 2, 1, "held back"},
		{"it still fails", 10, result{outcome: refreshUnchanged, merged: failing(0, 1)}, refreshHeldBack, "source 1 (source) could not be read", false, 2, 0, ""},
		{"all are read", 10, result{outcome: refreshUnchanged}, refreshUnchanged, "", true, 2, 0, ""},
		{"a change is held back", 10, result{outcome: refreshHeldBack, reason: "few", found: 3, selected: leftOut(nil)}, refreshHeldBack, "few", false, 0, 1, "held back"},
		{"it fails", 10, result{err: errors.New("broken\xff")}, refreshFailed, "broken\uFFFD", false, 0, 1, "refresh failed"},
		{"it fails again", 10, result{err: errors.New("broken\xff")}, refreshFailed, "broken\uFFFD", false, 0, 0, ""},
		{"nothing is left", 0, result{outcome: refreshEmpty, selected: leftOut(map[indexing.Status]int{indexing.NoIndex: 5})}, refreshEmpty, "", true, 5, 0, "no page to list"},
	} {
		s.state.Index.Store(nil)
		if step.published > 0 {
			s.state.Index.Store(listing(step.published))
		}
		logs.TakeAll()
		at := begun.Add(time.Duration(i) * time.Minute)
		s.report(step.result, at, time.Second)
		got := s.lastReport()
		if got.outcome != step.outcome || got.reason != step.reason || got.confirmed.Equal(at) != step.isConfirmed || got.pages != step.published || got.leftOut["noindex"] != step.noIndex || got.leftOut["absent"] != 0 {
			t.Errorf("%s: got %+v", step.what, got)
		}
		if n := len(s.app.events.queue); n != step.events {
			t.Errorf("%s: got %d events, want %d", step.what, n, step.events)
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
	if got := s.lastReport().examples["noindex"]; len(got) != 1 || got[0] != "/noindex" {
		t.Errorf("got examples %q", got)
	}
	last := *s.lastReport()
	s.report(result{outcome: refreshAlias}, begun, 0)
	if !reflect.DeepEqual(*s.lastReport(), last) {
		t.Error("an alias was reported on")
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

func TestReportMeta(t *testing.T) {
	want := &report{
		begun: time.Unix(1e9, 0).UTC(), took: time.Second, outcome: refreshHeldBack, reason: "few", confirmed: time.Unix(9e8, 0).UTC(), pages: 1, pending: 2,
		leftOut: map[string]int{"noindex": 3}, examples: map[string][]string{"noindex": {"/a"}}, sources: []sourceReport{{"files", 4, "gone"}}, without: []int{0},
	}
	encoded, err := json.Marshal(want.toMeta())
	if err != nil {
		t.Fatal(err)
	}
	var m *reportMeta
	if got := m.fromMeta(); got != nil {
		t.Errorf("nothing: got %+v", got)
	}
	if err := json.Unmarshal(encoded, &m); err != nil || !reflect.DeepEqual(m.fromMeta(), want) {
		t.Errorf("got %+v, %v, want %+v", m.fromMeta(), err, want)
	}
}

// TestSelectionLines are written once while they apply.
func TestSelectionLines(t *testing.T) {
	s, logs := reportSite(t)
	bad := leftOut(map[indexing.Status]int{indexing.Disallowed: 60, indexing.OverMax: 5})
	bad.LeftOut[indexing.Disallowed].First = []string{"/add/1", "/logout", "/users/log-out"}
	bad.Listed, bad.Orphans = 10, indexing.List[string]{Count: 2, First: []string{"/a", "/b"}}
	good := leftOut(nil)
	good.Listed = 10
	for i, step := range []struct {
		selected indexing.Result
		want     int
	}{{bad, 3}, {bad, 0}, {good, 0}, {bad, 3}} {
		logs.TakeAll()
		rep := new(report)
		out := &result{selected: step.selected}
		rep.leftOut, _ = leftOutOf(out)
		reportLog{s, out, rep, new(report)}.selection()
		if got := logs.Len(); got != step.want {
			t.Errorf("step %d: got %v, want %d lines", i, logs.All(), step.want)
		}
	}
	if lines := logs.FilterField(zap.Strings("disallow", []string{"add", "logout"})).All(); len(lines) != 1 || lines[0].Level != zapcore.WarnLevel {
		t.Errorf("got %v", lines)
	}
}

// TestMetricsLabels: reasons of other modules may be any bytes.
func TestMetricsLabels(t *testing.T) {
	s, _ := reportSite(t)
	s.state.Index.Store(listing(3))
	s.state.report.Store(&report{pending: 4, leftOut: map[string]int{"\xff": 1, "\xfe": 2}, confirmed: time.Now()})
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
		got[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue()
	}
	for name, want := range map[string]float64{"pages": 3, "pending_pages": 4, "shards": 1, "left_out_pages": 3} {
		if got["caddy_sitemap_"+name] != want {
			t.Errorf("%s: got %v, want %v", name, got["caddy_sitemap_"+name], want)
		}
	}
}

// TestReadersDeparted: the counts of sites that there are no longer are still summed.
func TestReadersDeparted(t *testing.T) {
	s, _ := reportSite(t)
	s.app.departed = new(readers)
	total := func() (n uint64) {
		for r := range allReaders(s.app).all() {
			n += r.Times
		}
		return n
	}
	before := total()
	header := http.Header{"User-Agent": {"bingbot/2.0"}}
	s.state.readers.count(header, readIndex, readServed, time.Now)
	s.state.readers.count(header, readIndex, readServed, time.Now)
	s.state.readers.count(nil, readRobots, readMissing, time.Now)
	if got := s.state.readers.list(); len(got) != 2 || total()-before != 3 {
		t.Errorf("got %v, %d in all", got, total()-before)
	}
	s.app.departed.add(&s.state.readers)
	clear(s.app.sites)
	if got := total() - before; got != 3 {
		t.Errorf("got %d after the site is gone, want 3", got)
	}
}

func TestChangeEvents(t *testing.T) {
	s, _ := reportSite(t)
	var selected indexing.Result
	selected.Changes.Added.Count, selected.Changes.Removed.Count = 2, 1
	for _, test := range []struct {
		what   string
		before *publish.Snapshot
		out    result
		want   map[string]any
	}{
		{"nothing before", nil, result{outcome: refreshChanged, snapshot: listing(3), selected: selected}, map[string]any{"pages": 3, "added": 3, "changed": 0, "removed": 0}},
		{"changes", listing(3), result{outcome: refreshChanged, snapshot: listing(4), selected: selected}, map[string]any{"pages": 4, "added": 2, "changed": 0, "removed": 1}},
		{"unchanged", listing(3), result{outcome: refreshUnchanged, snapshot: listing(3)}, nil},
		{"held back, with new pages", listing(3), result{outcome: refreshHeldBack, snapshot: listing(4), selected: selected}, map[string]any{"pages": 4, "added": 2, "changed": 0, "removed": 1}},
		{"held back", listing(3), result{outcome: refreshHeldBack, snapshot: listing(3)}, nil},
		{"emptied", listing(3), result{outcome: refreshEmpty, selected: selected}, map[string]any{"pages": 0, "added": 0, "changed": 0, "removed": 3}},
		{"still empty", nil, result{outcome: refreshEmpty}, nil},
	} {
		got := refreshedEvent(s, test.before, &test.out)
		if test.want == nil {
			if got != nil {
				t.Errorf("%s: got %v", test.what, got)
			}
			continue
		}
		test.want["site"], test.want["sitemap"] = "http://a.example", s.sitemapURL()
		if got == nil || got.name != eventRefreshed || !maps.Equal(got.data, test.want) {
			t.Errorf("%s: got %v, want %v", test.what, got, test.want)
		}
	}
}

// TestEventsAreDropped where nobody takes them, and no refresh waits.
func TestEventsAreDropped(t *testing.T) {
	s, logs := reportSite(t)
	s.app.events.queue = make(chan event, 2)
	for range 12 {
		s.app.events.announce(&event{eventFailed, nil})
	}
	if got := s.app.events.dropped.Load(); got != 10 {
		t.Errorf("%d are dropped, want 10", got)
	}
	if got := logs.FilterMessageSnippet("events are dropped").Len(); got != 2 {
		t.Errorf("got %d lines, want one for the first and one for the tenth", got)
	}
}

func TestSimilarPaths(t *testing.T) {
	for path, want := range map[string]string{
		"/a":            "/a/ /a.html",
		"/a/":           "/a",
		"/a.html":       "/a",
		"/index.html":   "/",
		"/a.html?b=1":   "/a.html",
		"/b/index.html": "/b/",
	} {
		if got := strings.Join(similarPaths(path), " "); !strings.Contains(" "+got+" ", " "+want+" ") {
			t.Errorf("%s: got %q, want %q in it", path, got, want)
		}
	}
}

// TestStatusesDocs: the documentation has a row for each index status.
func TestStatusesDocs(t *testing.T) {
	readme, err := os.ReadFile("docs/listing.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, status := range indexing.Statuses() {
		if status != indexing.Indexable && !strings.Contains(string(readme), "\n| "+status.String()+" | ") {
			t.Errorf("docs/listing.md has no row for '%s'", status)
		}
	}
}
