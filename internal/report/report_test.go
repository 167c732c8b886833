package report

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
	"github.com/seed3295b519/caddy-sitemap/internal/logonce"
	"github.com/seed3295b519/caddy-sitemap/internal/merge"
	"github.com/seed3295b519/caddy-sitemap/internal/publish"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

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
	m.Counts = []int{7, 0}
	return m
}

// TestWhyEmpty names the first reason that there is.
func TestWhyEmpty(t *testing.T) {
	sources := []Source{{Source: "files"}, {Source: "urls", Error: "gone"}}
	for want, r := range map[string]Report{
		"refused":                           {Reason: "refused", Sources: sources},
		"source 2 (urls) could not be read": {Sources: sources, Pending: 1},
		"pages are still to be fetched":     {Pending: 1, LeftOut: map[string]int{"noindex": 1}},
		"all pages are left out":            {Sources: sources[:1], LeftOut: map[string]int{"noindex": 1}},
		"no source names a page":            {Sources: sources[:1]},
	} {
		if got := r.WhyEmpty(); got != want {
			t.Errorf("%+v: got %q, want %q", r, got, want)
		}
	}
}

// TestReports runs through refreshes of one site, whose reports are restored from the store each time.
func TestReports(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	l, begun, last := logonce.New(zap.New(core)), time.Unix(1e9, 0), new(Report)
	for i, step := range []struct {
		what         string
		refresh      Refresh
		want, reason string
		isConfirmed  bool
		noIndex      int
		failing      [2]bool // each source
		line         string  // that is written newly
	}{
		{"a source that could never be read", Refresh{Result: Changed, Pages: 10, Merged: failing(1), Selected: leftOut(map[indexing.Status]int{indexing.NoIndex: 2, indexing.Absent: 9})}, Changed, "", true, 2, [2]bool{false, true}, "sitemap refreshed"},
		{"another source fails", Refresh{Result: Unchanged, Pages: 10, Merged: failing(0, 1)}, HeldBack, "source 1 (source) could not be read", false, 2, [2]bool{true, true}, "held back"},
		{"it still fails", Refresh{Result: Unchanged, Pages: 10, Merged: failing(0, 1)}, HeldBack, "source 1 (source) could not be read", false, 2, [2]bool{true, true}, ""},
		{"all are read", Refresh{Result: Unchanged, Pages: 10, Merged: failing()}, Unchanged, "", true, 2, [2]bool{}, ""},
		{"a change is held back", Refresh{Result: HeldBack, Reason: "few", HeldSince: begun, Pages: 10, Merged: failing(), Selected: leftOut(nil)}, HeldBack, "few", false, 0, [2]bool{}, "held back"},
		{"it fails", Refresh{Err: errors.New("broken\xff"), Pages: 10}, Failed, "broken\uFFFD", false, 0, [2]bool{}, "refresh failed"},
		{"it fails again", Refresh{Err: errors.New("broken\xff"), Pages: 10}, Failed, "broken\uFFFD", false, 0, [2]bool{}, ""},
		{"nothing is left", Refresh{Result: Empty, Merged: failing(0), Selected: leftOut(map[indexing.Status]int{indexing.NoIndex: 5})}, Empty, "", true, 5, [2]bool{true, false}, "gathering pages failed"},
		{"what was confirmed without it", Refresh{Result: Changed, Pages: 9, Merged: failing(0), Selected: leftOut(nil)}, Changed, "", true, 0, [2]bool{true, false}, "sitemap refreshed"},
	} {
		logs.TakeAll()
		r := step.refresh
		r.Begun, r.Sources = begun.Add(time.Duration(i+1)*time.Minute), []string{"source", "source"}
		rep := r.Report(last)
		r.Log(l, zap.NewNop(), rep, last)
		encoded, err := json.Marshal(rep)
		last = new(Report)
		if err = errors.Join(err, json.Unmarshal(encoded, last)); err != nil {
			t.Fatal(err)
		}
		if last.Result != step.want || last.Reason != step.reason || last.Confirmed.Equal(r.Begun) != step.isConfirmed || last.Pages != r.Pages || last.LeftOut["noindex"] != step.noIndex || last.LeftOut["absent"] != 0 {
			t.Errorf("%s: got %+v", step.what, last)
		}
		if held := step.reason == "few" || last.Result == Failed; last.HeldSince.Equal(begun) != held {
			t.Errorf("%s: held back since %s", step.what, last.HeldSince)
		}
		for i, source := range last.Sources {
			if (source.Error != "") != step.failing[i] {
				t.Errorf("%s: got source %+v", step.what, source)
			}
		}
		found := step.line == ""
		for _, line := range logs.All() {
			found = found || strings.Contains(line.Message, step.line)
		}
		if !found || step.line == "" && logs.FilterLevelExact(zap.InfoLevel).Len() < logs.Len() {
			t.Errorf("%s: got the lines %v, want %q", step.what, logs.All(), step.line)
		}
	}
}

// TestLeftOut adds up what each stage leaves out.
func TestLeftOut(t *testing.T) {
	r := Refresh{
		Skipped:  map[string]int{"dotfile": 1},
		Snapshot: &publish.Snapshot{LeftOut: map[string]int{publish.NoRoom: 2}},
		Selected: leftOut(map[indexing.Status]int{indexing.OverMax: 3, indexing.Pending: 50, indexing.Excluded: 50, indexing.Absent: 50}),
	}
	r.Merged.LeftOut = map[string]int{"excluded": 4, merge.OverMax: 5}
	r.Crawled.DroppedPaths = 6
	want := map[string]int{"dotfile": 1, publish.NoRoom: 2, indexing.OverMax.String(): 8, "excluded": 4, "over max_paths": 6}
	if got, examples := r.LeftOut(); !maps.Equal(got, want) || len(examples) != 1 || examples[indexing.OverMax.String()][0] != "/over max_urls" {
		t.Errorf("got %v and %v, want %v", got, examples, want)
	}
}

// TestSelectionLines are written once while they apply.
func TestSelectionLines(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	l := logonce.New(zap.New(core))
	bad, good := leftOut(map[indexing.Status]int{indexing.NoIndex: 60, indexing.OverMax: 5}), leftOut(nil)
	foreign, tagged := leftOut(map[indexing.Status]int{indexing.CanonicalForeign: 9}), leftOut(map[indexing.Status]int{indexing.NoIndexTag: 9})
	cart := leftOut(map[indexing.Status]int{indexing.Disallowed: 60})
	foreign.ForeignHosts = map[string]int{"https://a.example": 2, "https://www.b.example:8443": 6, "": 1}
	bad.Listed, bad.Orphans, good.Listed = 10, indexing.List[string]{Count: 2, First: []string{"/a", "/b"}}, 10
	for i, step := range []struct {
		selected indexing.Result
		want     int    // lines besides the one of the refresh
		remedy   string // part of that
	}{{bad, 3, "meta tag"}, {bad, 0, ""}, {good, 0, ""}, {bad, 3, "meta tag"}, {foreign, 1, "'base_url https://www.b.example:8443'"}, {tagged, 1, "'header'"}, {cart, 0, ""}} {
		logs.TakeAll()
		r := Refresh{Result: Changed, Pages: 10, Selected: step.selected}
		r.Log(l, zap.NewNop(), r.Report(new(Report)), new(Report))
		if got := logs.Len() - 1; got != step.want {
			t.Errorf("step %d: got %v, want %d lines", i, logs.All(), step.want)
		}
		if all := logs.FilterMessageSnippet("more than half").All(); step.remedy != "" && (len(all) != 1 || all[0].Level != zapcore.WarnLevel || !strings.Contains(all[0].ContextMap()["remedy"].(string), step.remedy)) {
			t.Errorf("step %d: got %v, want %s", i, all, step.remedy)
		}
	}
}
