package sitemap

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/announce"
	"github.com/seed3295b519/caddy-sitemap/internal/fleet"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
)

// TestAttention: of several reasons, the most urgent one counts.
func TestAttention(t *testing.T) {
	good := siteStatus{NamedBy: namedByConfiguration, Pages: 3, LastRefresh: &report.Report{Result: outcome.Unchanged, Pages: 3}}
	with := func(change func(st *siteStatus, last *report.Report)) siteStatus {
		st := good
		last := *good.LastRefresh
		st.LastRefresh = &last
		change(&st, &last)
		return st
	}
	result := func(r outcome.Result) siteStatus {
		return with(func(st *siteStatus, last *report.Report) {
			// What is less urgent plays no part.
			last.Result = r
			last.Pending = 7
			st.Storage = &storageStatus{Status: fleet.Status{Error: "it is down"}}
			st.Watched = []watchedRoot{{State: "mistrusted"}}
		})
	}
	visitors := func(st siteStatus) siteStatus {
		st.NamedBy = namedByVisitors
		return st
	}
	watched := func(state string) siteStatus {
		return with(func(st *siteStatus, _ *report.Report) { st.Watched = []watchedRoot{{State: "whole"}, {State: state}} })
	}
	for name, test := range map[string]struct {
		st          siteStatus
		mayBeMadeUp bool
		want        attention
	}{
		"fine":     {good, false, isFine},
		"changed":  {with(func(_ *siteStatus, last *report.Report) { last.Result = outcome.Published }), false, isFine},
		"an alias": {siteStatus{ServedBy: "https://example.com"}, false, isFine},
		"starting": {siteStatus{NamedBy: namedByConfiguration}, false, incomplete},
		"starting without a storage": {siteStatus{
			NamedBy: namedByConfiguration,
			Storage: &storageStatus{Status: fleet.Status{Error: "it is down"}, State: stateWaits},
		}, false, storageFails},
		"failed":                      {result(outcome.Failed), true, refreshFailed},
		"held back":                   {result(outcome.HeldBack), true, heldBack},
		"empty":                       {result(outcome.Empty), true, listsNothing},
		"a tenant's":                  {visitors(result(outcome.Empty)), false, listsNothing},
		"made up":                     {visitors(result(outcome.Empty)), true, perhapsMadeUp},
		"failed, and perhaps made up": {visitors(result(outcome.Failed)), true, refreshFailed},
		"a source": {with(func(st *siteStatus, last *report.Report) {
			last.Sources = []report.Source{{Source: "files"}, {Source: "urls", Error: "gone", Unread: true}}
			st.Storage = &storageStatus{Status: fleet.Status{Error: "it is down"}}
		}), false, sourceUnread},
		"a storage": {with(func(st *siteStatus, _ *report.Report) {
			st.Storage = &storageStatus{Status: fleet.Status{Error: "it is down"}}
			st.NotAnnounced = whyUnannounced
		}), false, storageFails},
		"a storage that works": {with(func(st *siteStatus, _ *report.Report) { st.Storage = &storageStatus{Status: fleet.Status{Errors: 3}} }), false, isFine},
		"an announcement": {with(func(st *siteStatus, _ *report.Report) {
			st.Announced = []announce.Status{{}, {Reason: "status 403"}}
			st.Watched = []watchedRoot{{State: "mistrusted"}}
		}), false, unannounced},
		"no announcements": {with(func(st *siteStatus, _ *report.Report) { st.NotAnnounced = whyUnannounced }), false, unannounced},
		"mistrusted, and pending": {with(func(st *siteStatus, last *report.Report) {
			st.Watched = []watchedRoot{{State: "whole"}, {State: "mistrusted"}}
			last.Pending = 1
		}), false, watchMistrusted},
		"partly watched":  {watched("incomplete"), false, unwatched},
		"not watched yet": {watched("off"), false, isFine},
		"changed since":   {watched("changed"), false, isFine},
		"pending":         {with(func(_ *siteStatus, last *report.Report) { last.Pending = 1 }), false, incomplete},
		"in parts":        {with(func(_ *siteStatus, last *report.Report) { last.Partial = true }), false, incomplete},
	} {
		if got := test.st.attention(test.mayBeMadeUp); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
	for level := range attentionNames {
		encoded, _ := attention(level).MarshalText()
		var got attention
		if err := got.UnmarshalText(encoded); err != nil || int(got) != level {
			t.Errorf("%s: got %d, %v, want %d", encoded, got, err, level)
		}
	}
	if err := new(attention).UnmarshalText([]byte("later")); err == nil {
		t.Error("an unknown level is read")
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
		all = append(all, siteStatus{Site: url, NamedBy: namedByConfiguration, Pages: pages, LastRefresh: &report.Report{Result: result}})
	}
	return all
}

// TestSummarize sorts sites by what they need, and counts them.
func TestSummarize(t *testing.T) {
	sites := slices.Concat(manySites(2, outcome.Unchanged), manySites(1, outcome.Empty), manySites(2, outcome.Failed), manySites(1, outcome.HeldBack))
	sites = append(sites, siteStatus{Site: "https://starting.example", NamedBy: namedByConfiguration})
	slices.Reverse(sites)
	all := summarize(sites)
	var order []string
	for _, st := range all.Sites {
		order = append(order, strings.TrimSuffix(strings.TrimPrefix(st.Site, "https://"), ".example"))
	}
	const wantOrder = "[failed-000 failed-001 held_back-000 empty-000 starting unchanged-000 unchanged-001]"
	const wantLine = "sites: 7, pages: 15, failed: 2, held back: 1, empty: 1, incomplete: 1, fine: 2"
	if got := fmt.Sprint(order); got != wantOrder || all.Summary.String() != wantLine {
		t.Errorf("got %s, %q,\nwant %s, %q", got, all.Summary, wantOrder, wantLine)
	}
	encoded, err := json.Marshal(summarize(nil))
	if err != nil || string(encoded) != `{"summary":{"sites":0,"pages":0,"attention":{}},"sites":null}` {
		t.Errorf("of none: got %s, %v", encoded, err)
	}
}

// TestPrintSites: of many sites, those that need attention are shown, up to a bound, and what is not shown is counted.
func TestPrintSites(t *testing.T) {
	join := slices.Concat[[]siteStatus]
	madeUp := siteStatus{Site: "https://made-up.example", NamedBy: namedByVisitors, LastRefresh: &report.Report{Result: outcome.Empty}}
	tenant := siteStatus{Site: "https://tenant.example", NamedBy: namedByVisitors, Pages: 1, LastRefresh: &report.Report{Result: outcome.Unchanged}}
	const hint = "; --site shows one site by its URL, or those that match a pattern, and --json shows all"
	for name, test := range map[string]struct {
		sites    []siteStatus
		show     shown
		summary  string // "": none
		sections int
		hidden   string // "": none
	}{
		"none":                {nil, showTrouble, "", 0, ""},
		"one":                 {manySites(1, outcome.Unchanged), showTrouble, "", 1, ""},
		"few":                 {manySites(maxShown, outcome.Unchanged), showTrouble, "sites: 20, pages: 60, fine: 20", 20, ""},
		"many that are fine":  {manySites(maxShown+1, outcome.Unchanged), showTrouble, "sites: 21, pages: 63, fine: 21", 0, "fine: 21"},
		"many, named":         {manySites(50, outcome.Unchanged), showAll, "sites: 50, pages: 150, fine: 50", 50, ""},
		"some of many":        {join(manySites(50, outcome.Unchanged), manySites(3, outcome.Failed)), showTrouble, "sites: 53, pages: 159, failed: 3, fine: 50", 3, "fine: 50"},
		"too many in trouble": {join(manySites(5, outcome.Unchanged), manySites(30, outcome.Failed), manySites(2, outcome.HeldBack)), showTrouble, "sites: 37, pages: 111, failed: 30, held back: 2, fine: 5", 20, "failed: 10, held back: 2, fine: 5"},
		"made up": {append(manySites(20, outcome.Unchanged), tenant, madeUp), showTrouble,
			"sites: 22, pages: 61, perhaps made up: 1, fine: 21", 0, "perhaps made up: 1, fine: 21"},
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
		if test.hidden != "" {
			want = "not shown: " + test.hidden + hint + "\n"
		}
		if _, got, _ := strings.Cut("\n"+text, "\nnot shown: "); got != strings.TrimPrefix(want, "not shown: ") {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// TestSitePattern is which sites a pattern names.
func TestSitePattern(t *testing.T) {
	named := func(public, internal, prefix string) *site {
		h := new(Handler)
		h.settings.path = "/sitemap.xml"
		return &site{identity: identity{handler: h, origin: public, internalOrigin: internal, prefix: prefix, docPrefix: prefix}}
	}
	sites := map[string]*site{
		"shop-1":  named("https://shop-1.example.com", "https://shop-1.example.com", ""),
		"shop-2":  named("https://shop-2.example.com:8443", "https://shop-2.example.com:8443", ""),
		"docs":    named("https://www.example.com", "https://www.example.com", "/docs"),
		"deep":    named("http://a.b.example.com", "http://a.b.example.com", ""),
		"proxied": named("https://example.org", "http://inside.lan:8080", ""),
		"ip":      named("http://[2001:db8::1]:8080", "http://[2001:db8::1]:8080", ""),
	}
	for pattern, want := range map[string]string{
		"*":                                  "deep docs ip proxied shop-1 shop-2",
		"https://*":                          "docs proxied shop-1 shop-2",
		"*.example.com":                      "deep docs shop-1 shop-2",
		"*.EXAMPLE.com/":                     "deep docs shop-1 shop-2",
		"*.b.example.com":                    "deep",
		"shop-*":                             "shop-1 shop-2",
		"https://shop-*":                     "shop-1 shop-2",
		"http://shop-*":                      "",
		"https://shop-*.example.com":         "shop-1",
		"https://*.example.com":              "shop-1",
		"https://*.example.com/docs":         "docs",
		"https://*.example.com/*":            "docs shop-1",
		"https://*/docs/sitemap.xml":         "docs",
		"*/docs":                             "docs",
		"*:8443":                             "shop-2",
		"inside.*":                           "proxied",
		"http://inside.lan:8080*":            "proxied",
		"[2001:db8::*]":                      "ip",
		"*shop*1*com":                        "shop-1",
		"example.com*":                       "",
		"*.+":                                "",
		"\xff*":                              "",
		strings.Repeat("*", 10_000) + ".org": "proxied",
	} {
		matches := compileSitePattern(pattern)
		var got []string
		for name, s := range sites {
			if matches(s) {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want || !isSitePattern(pattern) {
			t.Errorf("%.50q: got %q, want %q", pattern, got, want)
		}
	}
	for _, url := range []string{"https://example.com", "https://example.com/a?b=c", ""} {
		if isSitePattern(url) {
			t.Errorf("%q is a pattern", url)
		}
	}
}

// TestClosest: what an operator has misspelt comes first.
func TestClosest(t *testing.T) {
	var urls []string
	for i := range 500 {
		urls = append(urls, fmt.Sprintf("https://tenant-%03d.example.com/", i))
	}
	urls = append(urls, "https://shop.example.com/", "https://www.example.org/docs/")
	for wanted, want := range map[string]string{
		"https://shpo.example.com/page":   "https://shop.example.com/",
		"https://SHOP.example.con":        "https://shop.example.com/",
		"http://www.example.net/docs":     "https://www.example.org/docs/",
		"https://tenant-0421.example.com": "https://tenant-021.example.com/",
		"*.exampel.org":                   "https://www.example.org/docs/",
		"shpo*":                           "https://shop.example.com/",
		"":                                "https://tenant-000.example.com/",
	} {
		if got := closest(wanted, slices.Clone(urls)); got[0] != want || len(got) != len(urls) {
			t.Errorf("%q: got %q first, want %q", wanted, got[0], want)
		}
	}
}
