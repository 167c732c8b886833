package sitemap

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Who named a site.
const (
	namedByConfiguration = "configuration"
	namedByVisitors      = "visitors"
)

// siteStatus is what the admin API tells of a site.
type siteStatus struct {
	Site    string `json:"site"`    // scheme, host, port and folder
	Sitemap string `json:"sitemap"` // the URL of its sitemap, or index
	NamedBy string `json:"named_by"`

	// The site whose documents stand for this one's; this one is not refreshed.
	ServedBy string `json:"served_by,omitempty"`

	// What is served.
	Pages     int        `json:"pages"`
	Verified  int        `json:"verified"` // of the pages, those that have answered 200 to a stranger
	Shards    int        `json:"shards"`
	Bytes     int64      `json:"bytes"`                  // of memory, compressed
	Since     *time.Time `json:"since,omitempty"`        // when the sitemap, or its index, last changed
	Confirmed *time.Time `json:"confirmed_at,omitempty"` // when the last refresh began that found it right

	Refreshing  bool           `json:"refreshing"`
	LastRefresh *refreshStatus `json:"last_refresh,omitempty"`
	NextRefresh *time.Time     `json:"next_refresh,omitempty"`

	// Where pages come from, and what became of the others.
	Sources    []sourceStatus      `json:"sources,omitempty"`
	LeftOut    map[string]int      `json:"left_out,omitempty"` // by reason
	Examples   map[string][]string `json:"examples,omitempty"` // some paths of each reason
	Warnings   []string            `json:"warnings,omitempty"` // of the last refresh
	Discovered *discoveredStatus   `json:"discovered,omitempty"`

	// Who fetched its documents, by User-Agent, which is not verified.
	Readers []Reading `json:"readers_unverified,omitempty"`
}

// refreshStatus is what the last refresh came to.
type refreshStatus struct {
	At       time.Time `json:"at"`
	Duration float64   `json:"duration_seconds"`
	Result   string    `json:"result"` // changed, unchanged, empty, doubted or failed
	Pages    int       `json:"pages"`  // that it found
	Reason   string    `json:"reason,omitempty"`
}

// sourceStatus is what a source contributed to the last refresh.
type sourceStatus struct {
	Source string `json:"source"`
	Pages  int    `json:"pages"` // that it named; some may be left out
	Error  string `json:"error,omitempty"`
}

// discoveredStatus is what is remembered of the paths that visitors and links showed.
type discoveredStatus struct {
	Paths       int `json:"paths"`
	FromLog     int `json:"from_access_log"`
	FromTraffic int `json:"from_traffic"`
	FromLinks   int `json:"from_links"`
	Linked      int `json:"linked"` // paths that a listed page links to
	Listed      int `json:"listed"`
	Bytes       int `json:"bytes"`
}

// allSites are the sites there are, by their URLs.
func (a *App) allSites() []*site {
	a.mu.RLock()
	defer a.mu.RUnlock()
	all := make([]*site, 0, len(a.sites))
	for _, s := range a.sites {
		all = append(all, s)
	}
	slices.SortFunc(all, func(x, y *site) int {
		return cmp.Or(cmp.Compare(x.base+x.at, y.base+y.at), cmp.Compare(x.url(), y.url()))
	})
	return all
}

// sitesNamed are the sites of a URL, which may be a site's or its sitemap's. The error
// wraps errNotURL.
func (a *App) sitesNamed(url string) ([]*site, error) {
	asked, err := parseAsked(url)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(a.sitesAt(&asked), func(s *site) bool {
		return strings.TrimSuffix(asked.path, "/") != s.at && asked.path != s.docPath("", ".xml")
	}), nil
}

// told is the report on the last refresh; nil: there was none since the start.
func (s *site) told() *report {
	if r := s.lastReport.Load(); r != nil {
		return r
	}
	if held := s.held.Load(); held != nil {
		return held.report.Load()
	}
	return nil
}

// status is what there is to know of a site.
func (s *site) status() siteStatus {
	st := siteStatus{Site: s.base + s.at, Sitemap: s.url(), NamedBy: namedByConfiguration, Refreshing: s.busy.Load()}
	if s.visitors {
		st.NamedBy = namedByVisitors
	}
	st.Readers = s.readers.list()
	if main := s.main.Load(); main != nil {
		st.ServedBy, st.Sitemap = main.base+main.at, main.url()
		return st
	}
	if due := s.dueAt(s.app.now()); !due.IsZero() {
		st.NextRefresh = utc(due)
	}
	if snapshot := s.current(); snapshot != nil {
		st.Pages, st.Shards, st.Bytes = snapshot.pages, len(snapshot.urlsets()), snapshot.bytes
		st.Since = utc(snapshot.index.modified)
	}
	if r := s.told(); r != nil {
		st.tell(r)
	}
	if catalog := s.catalog.Load(); catalog != nil {
		c := catalog.Stats()
		st.Discovered = &discoveredStatus{Paths: c.Paths, FromLog: c.FromLog, FromTraffic: c.FromTraffic, FromLinks: c.FromLinks, Linked: c.Linked, Listed: c.Listed, Bytes: c.Bytes}
	}
	return st
}

// tell adds what the last refresh came to.
func (st *siteStatus) tell(r *report) {
	st.Verified, st.LeftOut, st.Examples, st.Warnings = r.verified, r.leftOut, r.examples, r.warnings
	st.LastRefresh = &refreshStatus{At: r.begun.UTC(), Duration: r.took.Seconds(), Result: r.result, Pages: r.pages, Reason: r.reason}
	if !r.confirmed.IsZero() {
		st.Confirmed = utc(r.confirmed)
	}
	for _, source := range r.sources {
		st.Sources = append(st.Sources, sourceStatus{source.name, source.pages, source.err})
	}
}

func utc(t time.Time) *time.Time {
	t = t.UTC().Truncate(time.Second)
	return &t
}
