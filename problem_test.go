package sitemap

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/announce"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/replica"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
)

// TestProblem: of several problems, the first one counts. What goes by by itself is none.
func TestProblem(t *testing.T) {
	good := siteStatus{NamedBy: namedByConfiguration, Pages: 3, LastRefresh: &report.Report{Result: outcome.Unchanged, Pages: 3}}
	with := func(change func(st *siteStatus, last *report.Report)) siteStatus {
		st := good
		last := *good.LastRefresh
		st.LastRefresh = &last
		change(&st, &last)
		return st
	}
	down := &storageStatus{Status: replica.Status{Error: "it is down"}}
	result := func(r outcome.Result) siteStatus {
		return with(func(st *siteStatus, last *report.Report) {
			last.Result = r
			last.Reason = "why"
			last.Pending = 7
			st.Storage = down // what comes later plays no part
		})
	}
	announced := func(targets ...announce.Status) siteStatus {
		return with(func(st *siteStatus, _ *report.Report) { st.Announced = targets })
	}
	hub := func(s announce.Status) announce.Status {
		s.Target = announce.Target{URL: "https://hub.example"}
		s.Reason = "status 403"
		return s
	}
	for name, test := range map[string]struct {
		st       siteStatus
		isAbsent bool
		want     string
	}{
		"fine":                       {good, false, ""},
		"changed":                    {with(func(_ *siteStatus, last *report.Report) { last.Result = outcome.Published }), false, ""},
		"starting":                   {siteStatus{NamedBy: namedByConfiguration}, false, ""},
		"pending":                    {with(func(_ *siteStatus, last *report.Report) { last.Pending = 1 }), false, ""},
		"in parts":                   {with(func(_ *siteStatus, last *report.Report) { last.Partial = true }), false, ""},
		"starting without a storage": {siteStatus{Storage: down}, false, "the shared storage fails: it is down"},
		"failed":                     {result(outcome.Failed), false, "the last refresh failed: why"},
		"failed, no page":            {result(outcome.Failed), true, "the last refresh failed: why"},
		"held back":                  {result(outcome.HeldBack), false, "missing pages stay listed: why"},
		"empty":                      {result(outcome.Empty), false, "no page is listed: why"},
		"empty, no front page":       {with(func(_ *siteStatus, last *report.Report) { last.Result = outcome.Empty }), true, ""},
		"a source": {with(func(_ *siteStatus, last *report.Report) {
			last.Result = outcome.HeldBack
			last.Sources = []report.Source{{Source: "files"}, {Source: "urls", Error: "gone"}}
		}), false, "source 2 (urls) could not be read: gone"},
		"a storage": {with(func(st *siteStatus, _ *report.Report) {
			st.Storage = down
			st.NotAnnounced = "why"
		}), false, "the shared storage fails: it is down"},
		"a storage that works": {with(func(st *siteStatus, _ *report.Report) {
			st.Storage = &storageStatus{Status: replica.Status{NoList: true}}
		}), false, ""},
		"no announcements":  {with(func(st *siteStatus, _ *report.Report) { st.NotAnnounced = "why" }), false, "changes are not announced: why"},
		"one announcement":  {announced(hub(announce.Status{Failures: 1})), false, ""},
		"two announcements": {announced(announce.Status{}, hub(announce.Status{Failures: 2})), false, "changes are not announced to https://hub.example: status 403"},
	} {
		if got := test.st.problem(test.isAbsent); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// manySites are the statuses of sites with these results, three pages each.
func manySites(n int, result outcome.Result) (all []siteStatus) {
	for i := range n {
		url := fmt.Sprintf("https://%s-%03d.example", result, i)
		pages := 3
		if result == outcome.Empty {
			pages = 0
		}
		st := siteStatus{Site: url, NamedBy: namedByConfiguration, Pages: pages, LastRefresh: &report.Report{Result: result}}
		st.Problem = st.problem(false)
		all = append(all, st)
	}
	return all
}

// TestSummarize sorts sites with a problem before others, and counts them. A problem has a command fail.
func TestSummarize(t *testing.T) {
	sites := slices.Concat(manySites(2, outcome.Unchanged), manySites(1, outcome.Empty), manySites(2, outcome.Failed), manySites(1, outcome.HeldBack))
	slices.Reverse(sites)
	all := summarize(sites)
	var order []string
	for _, st := range all.Sites {
		order = append(order, strings.TrimSuffix(strings.TrimPrefix(st.Site, "https://"), ".example"))
	}
	const wantOrder = "[empty-000 failed-000 failed-001 held_back-000 unchanged-000 unchanged-001]"
	const wantLine = "sites: 6, pages: 15, problems: 4"
	if got := fmt.Sprint(order); got != wantOrder || all.Summary.String() != wantLine {
		t.Errorf("got %s, %q,\nwant %s, %q", got, all.Summary, wantOrder, wantLine)
	}
	for want, sites := range map[string][]siteStatus{
		"": manySites(2, outcome.Unchanged),
		"https://failed-000.example: the last refresh failed: ":                  slices.Concat(manySites(2, outcome.Unchanged), manySites(1, outcome.Failed)),
		"4 sites have a problem; https://empty-000.example: no page is listed: ": sites,
	} {
		got := ""
		if err := summarize(sites).trouble(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	encoded, err := json.Marshal(summarize(nil))
	if err != nil || string(encoded) != `{"summary":{"sites":0,"pages":0,"problems":0},"sites":null}` {
		t.Errorf("of none: got %s, %v", encoded, err)
	}
}

// TestPrintSites: of many sites, those with a problem are shown, up to a bound, and what is not shown is counted.
func TestPrintSites(t *testing.T) {
	join := slices.Concat[[]siteStatus]
	for name, test := range map[string]struct {
		sites    []siteStatus
		show     shown
		summary  string // "": none
		sections int
		hidden   int
	}{
		"none":                   {nil, showProblems, "", 0, 0},
		"one":                    {manySites(1, outcome.Unchanged), showProblems, "", 1, 0},
		"few":                    {manySites(maxShown, outcome.Unchanged), showProblems, "sites: 20, pages: 60, problems: 0", 20, 0},
		"many that are fine":     {manySites(maxShown+1, outcome.Unchanged), showProblems, "sites: 21, pages: 63, problems: 0", 0, 21},
		"many, named":            {manySites(50, outcome.Unchanged), showAll, "sites: 50, pages: 150, problems: 0", 50, 0},
		"some of many":           {join(manySites(50, outcome.Unchanged), manySites(3, outcome.Failed)), showProblems, "sites: 53, pages: 159, problems: 3", 3, 50},
		"too many with problems": {join(manySites(5, outcome.Unchanged), manySites(30, outcome.Failed)), showProblems, "sites: 35, pages: 105, problems: 30", 20, 15},
	} {
		all := summarize(test.sites)
		body, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := printSites(&out, test.show, all, body); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		text := out.String()
		if test.summary != "" {
			first, rest, _ := strings.Cut(text, "\n")
			text = rest
			if first != test.summary {
				t.Errorf("%s: the first line is %q, want %q", name, first, test.summary)
			}
		}
		if n := strings.Count(text, "sites\n"); n != test.sections || strings.Contains(text, "summary") {
			t.Errorf("%s: %d sites are shown, want %d:\n%s", name, n, test.sections, text)
		}
		want := ""
		if test.hidden > 0 {
			want = fmt.Sprintf("%d sites; --site shows one, and --json shows all\n", test.hidden)
		}
		if _, got, _ := strings.Cut("\n"+text, "\nnot shown: "); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
