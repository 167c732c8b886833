package report

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
	"github.com/seed3295b519/caddy-sitemap/internal/logonce"
	"github.com/seed3295b519/caddy-sitemap/internal/merge"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

func leftOut(counts map[indexing.Status]int) (r indexing.Result) {
	r.Generation = new(record.Generation)
	for status, n := range counts {
		r.LeftOut[status] = indexing.List{Count: n, First: []string{"/" + status.String()}}
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
	l := logonce.New(zap.New(core))
	begun := time.Unix(1e9, 0)
	held := outcome.Outcome{Result: outcome.HeldBack, Reason: "few", Since: begun}
	unread := outcome.Outcome{Result: outcome.HeldBack, Reason: "source 1 (source) could not be read"}
	broken := outcome.Fail(errors.New("broken\xff"))
	unchanged := outcome.Outcome{Result: outcome.Unchanged}
	published := outcome.Outcome{Result: outcome.Published}
	var last *Report
	var h outcome.History
	for i, step := range []struct {
		what    string
		refresh Refresh
		failed  map[int]string // sources
		reason  string
		noIndex int
		failing [2]bool // each source
		line    string  // that is written newly
	}{
		{"a source that could never be read", Refresh{Outcome: published, Changed: true, Pages: 10, Merged: failing(1), Selected: leftOut(map[indexing.Status]int{indexing.NoIndex: 2, indexing.Absent: 9})},
			map[int]string{1: "source"}, "", 2, [2]bool{false, true}, "sitemap refreshed"},
		{"another source fails", Refresh{Outcome: unread, Pages: 10, Merged: failing(0, 1)}, map[int]string{0: "source", 1: "source"}, unread.Reason, 2, [2]bool{true, true}, "held back"},
		{"it still fails", Refresh{Outcome: unread, Pages: 10, Merged: failing(0, 1)}, map[int]string{0: "source", 1: "source"}, unread.Reason, 2, [2]bool{true, true}, ""},
		{"all are read", Refresh{Outcome: unchanged, Pages: 10, Merged: failing()}, nil, "", 2, [2]bool{}, ""},
		{"other pages are left out", Refresh{Outcome: unchanged, Pages: 10, Merged: failing(), Selected: leftOut(map[indexing.Status]int{indexing.NoIndex: 3})}, nil, "", 3, [2]bool{}, "other pages are left out"},
		{"a change is held back", Refresh{Outcome: held, Pages: 10, Merged: failing(), Selected: leftOut(nil)}, nil, "few", 0, [2]bool{}, "held back"},
		{"it fails", Refresh{Outcome: broken, Pages: 10}, nil, "broken\uFFFD", 0, [2]bool{}, "refresh failed"},
		{"it fails again", Refresh{Outcome: broken, Pages: 10}, nil, "broken\uFFFD", 0, [2]bool{}, ""},
		{"nothing is left", Refresh{Outcome: outcome.Outcome{Result: outcome.Empty}, Changed: true, Merged: failing(0), Selected: leftOut(map[indexing.Status]int{indexing.NoIndex: 5})},
			map[int]string{0: "source"}, "", 5, [2]bool{true, false}, "gathering pages failed"},
		{"what was confirmed without it", Refresh{Outcome: published, Changed: true, Pages: 9, Merged: failing(0), Selected: leftOut(nil)}, map[int]string{0: "source"}, "", 0, [2]bool{true, false}, "sitemap refreshed"},
	} {
		logs.TakeAll()
		r := step.refresh
		r.Begun = begun.Add(time.Duration(i+1) * time.Minute)
		r.Sources = []string{"source", "source"}
		h = h.After(r.Outcome, outcome.Ended{Begun: r.Begun, Failed: step.failed, Selected: r.Selected.Generation != nil})
		rep := r.Report(h, last)
		r.Log(l, zap.NewNop(), rep, last)
		encoded, err := json.Marshal(rep)
		last = new(Report)
		if err = errors.Join(err, json.Unmarshal(encoded, last)); err != nil {
			t.Fatal(err)
		}
		if last.Result != r.Result || last.Reason != step.reason || last.Pages != r.Pages || last.LeftOut["noindex"] != step.noIndex || last.LeftOut["absent"] != 0 {
			t.Errorf("%s: got %+v", step.what, last)
		}
		if !last.Confirmed.Equal(h.Confirmed) || !last.HeldSince.Equal(h.Since) {
			t.Errorf("%s: confirmed at %s, held back since %s, want %+v", step.what, last.Confirmed, last.HeldSince, h)
		}
		for i, source := range last.Sources {
			isUnread := step.failing[i] && h.IsUnread(i, "source")
			if (source.Error != "") != step.failing[i] || source.Unread != isUnread {
				t.Errorf("%s: got source %+v", step.what, source)
			}
		}
		const others = "other pages are left out"
		if isTold := logs.FilterMessageSnippet(others).Len() > 0; isTold != (step.line == others) {
			t.Errorf("%s: that other pages are left out is written: %t", step.what, isTold)
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

// TestOrphansLine: that pages have no incoming links is known once all are found and fetched.
func TestOrphansLine(t *testing.T) {
	selected := leftOut(nil)
	selected.Orphans = indexing.List{Count: 1, First: []string{"/a"}}
	for name, test := range map[string]struct {
		partial bool
		pending int
		want    int // lines
	}{
		"complete":          {false, 0, 1},
		"a part":            {true, 0, 0},
		"pages are pending": {false, 1, 0},
		"both":              {true, 1, 0},
	} {
		core, logs := observer.New(zapcore.InfoLevel)
		r := Refresh{Outcome: outcome.Outcome{Result: outcome.Published}, Changed: true, Pages: 1, Selected: selected, Partial: test.partial}
		r.Crawled.Pending = test.pending
		r.Log(logonce.New(zap.New(core)), zap.NewNop(), r.Report(outcome.History{}, nil), nil)
		if got := logs.FilterMessage("some listed pages have no incoming links").Len(); got != test.want {
			t.Errorf("%s: got %d lines, want %d", name, got, test.want)
		}
	}
}

// TestTook: a report has the duration of its refresh in seconds, whether it succeeded or not.
func TestTook(t *testing.T) {
	took := 1500*time.Millisecond + 400*time.Nanosecond
	for _, o := range []outcome.Outcome{{Result: outcome.Published}, outcome.Fail(errors.New("broken"))} {
		r := Refresh{Outcome: o, Took: took}
		if got := r.Report(outcome.History{}, &Report{Seconds: 9}).Seconds; got != 1.5 {
			t.Errorf("%s: got %v s, want 1.5", o.Result, got)
		}
	}
}

// TestNews: what is known of the news sitemap stays until pages are selected again.
func TestNews(t *testing.T) {
	published := outcome.Outcome{Result: outcome.Published}
	left := map[string]int{"no language": 2}
	examples := map[string][]string{"no language": {"/a", "/b"}}
	known := &document.News{Pages: 3, LeftOut: left, Examples: examples}
	var last *Report
	for i, step := range []struct {
		refresh Refresh
		want    *document.News
	}{
		{Refresh{Outcome: published, Selected: leftOut(nil), News: known}, known},
		{Refresh{Outcome: published}, known},
		{Refresh{Outcome: outcome.Fail(errors.New("gone"))}, known},
		{Refresh{Outcome: published, Selected: leftOut(nil)}, nil},
	} {
		last = step.refresh.Report(outcome.History{}, last)
		if !reflect.DeepEqual(last.News, step.want) {
			t.Errorf("step %d: got %+v, want %+v", i, last.News, step.want)
		}
	}
}

// TestLeftOut adds up what each stage leaves out.
func TestLeftOut(t *testing.T) {
	r := Refresh{
		Skipped:  map[string]int{"dotfile": 1},
		Snapshot: &document.Set{LeftOut: map[string]int{document.NoRoom: 2}},
		Selected: leftOut(map[indexing.Status]int{indexing.OverMax: 3, indexing.Pending: 50, indexing.Excluded: 50, indexing.Absent: 50}),
	}
	r.Merged.LeftOut = map[string]int{"excluded": 4, merge.OverMax: 5}
	r.Crawled.DroppedPaths = 6
	want := map[string]int{"dotfile": 1, document.NoRoom: 2, indexing.OverMax.String(): 8, "excluded": 4, "over max_paths": 6}
	if got, examples := r.LeftOut(); !maps.Equal(got, want) || len(examples) != 1 || examples[indexing.OverMax.String()][0] != "/over max_urls" {
		t.Errorf("got %v and %v, want %v", got, examples, want)
	}
}

// TestSelectionLines are written once while they apply, and that of a common reason once more when there is none.
func TestSelectionLines(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	l := logonce.New(zap.New(core))
	bad, good := leftOut(map[indexing.Status]int{indexing.NoIndex: 60, indexing.OverMax: 5}), leftOut(nil)
	foreign, tagged := leftOut(map[indexing.Status]int{indexing.CanonicalForeign: 9}), leftOut(map[indexing.Status]int{indexing.NoIndexTag: 9})
	cart, half := leftOut(map[indexing.Status]int{indexing.Disallowed: 60}), leftOut(map[indexing.Status]int{indexing.NoIndex: 10})
	half.Listed = 10
	bad.Listed, bad.Orphans, good.Listed = 10, indexing.List{Count: 2, First: []string{"/a", "/b"}}, 10
	for i, step := range []struct {
		selected indexing.Result
		want     int    // lines besides the one of the refresh
		remedy   string // part of that
	}{{bad, 3, "meta tag"}, {bad, 0, ""}, {good, 1, ""}, {bad, 3, "meta tag"}, {foreign, 1, "'base_url'"}, {tagged, 1, "'header'"}, {cart, 1, ""}, {half, 0, ""}} {
		logs.TakeAll()
		r := Refresh{Outcome: outcome.Outcome{Result: outcome.Published}, Changed: true, Pages: 10, Selected: step.selected}
		r.Log(l, zap.NewNop(), r.Report(outcome.History{}, nil), nil)
		if got := logs.Len() - 1; got != step.want {
			t.Errorf("step %d: got %v, want %d lines", i, logs.All(), step.want)
		}
		if over := logs.FilterMessageSnippet("more pages than the sitemap may list: raise 'max_urls'").Len(); over == 1 != (step.want == 3) {
			t.Errorf("step %d: %d lines of pages beyond 'max_urls': %v", i, over, logs.All())
		}
		if all := logs.FilterMessageSnippet("more than half").All(); step.remedy != "" && (len(all) != 1 || all[0].Level != zapcore.WarnLevel || !strings.Contains(all[0].ContextMap()["remedy"].(string), step.remedy)) {
			t.Errorf("step %d: got %v, want %s", i, all, step.remedy)
		}
	}
}
