package sitemap

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
)

// problem says what an operator is to look at in a site: what fails, or what nobody else can mend. Of several problems, it is
// the first. "": there is none.
func (st *siteStatus) problem(isAbsent bool) string {
	if st.LastRefresh != nil {
		problem := problemOf(st.LastRefresh, isAbsent)
		if problem != "" {
			return problem
		}
	}
	if st.Storage != nil && st.Storage.Error != "" {
		return "the shared storage fails: " + st.Storage.Error
	}
	if st.NotAnnounced != "" {
		return "changes are not announced: " + st.NotAnnounced
	}
	for _, target := range st.Announced {
		// A target that refuses one request, as it gets too many, may well accept the next.
		if target.Failures > 1 {
			return fmt.Sprintf("changes are not announced to %s: %s", target.URL, target.Reason)
		}
	}
	return ""
}

// problemOf is the problem that the report of the last refresh shows.
func problemOf(last *report.Report, isAbsent bool) string {
	if last.Result == outcome.Failed {
		return "the last refresh failed: " + last.Reason
	}
	for i, source := range last.Sources {
		if source.Error != "" {
			return report.Unreadable(i, source.Source) + ": " + source.Error
		}
	}
	if last.Result == outcome.HeldBack {
		return "missing pages stay listed: " + last.Reason
	}
	// Visitors can name any host, and nobody need look at those without a front page.
	if last.Result == outcome.Empty && !isAbsent {
		return "no page is listed: " + last.Reason
	}
	return ""
}

// sitesSummary counts sites.
type sitesSummary struct {
	Sites    int `json:"sites"`
	Pages    int `json:"pages"`    // listed, of all
	Problems int `json:"problems"` // sites that have one
}

// sitesStatus is the response to a request for sites.
type sitesStatus struct {
	Summary sitesSummary `json:"summary"`
	Sites   []siteStatus `json:"sites"` // those with a problem first, then by URL
}

// summarize makes a response of the status of sites, which it sorts.
func summarize(sites []siteStatus) sitesStatus {
	summary := sitesSummary{Sites: len(sites)}
	for _, st := range sites {
		summary.Pages += st.Pages
		if st.Problem != "" {
			summary.Problems++
		}
	}
	slices.SortStableFunc(sites, func(x, y siteStatus) int {
		return cmp.Or(cmp.Compare(x.place(), y.place()), strings.Compare(x.Site, y.Site), strings.Compare(x.Sitemap, y.Sitemap))
	})
	return sitesStatus{summary, sites}
}

// place has sites with a problem come before others.
func (st *siteStatus) place() int {
	if st.Problem != "" {
		return 0
	}
	return 1
}

// String returns the summary as one line.
func (s sitesSummary) String() string {
	return fmt.Sprintf("sites: %d, pages: %d, problems: %d", s.Sites, s.Pages, s.Problems)
}

// trouble is why a command that has shown these sites fails: one of them has a problem.
func (all sitesStatus) trouble() error {
	n := all.Summary.Problems
	if n == 0 {
		return nil
	}
	first := all.Sites[0]
	if n == 1 {
		return fmt.Errorf("%s: %s", first.Site, first.Problem)
	}
	return fmt.Errorf("%d sites have a problem; %s: %s", n, first.Site, first.Problem)
}
