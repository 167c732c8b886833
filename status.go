package sitemap

import "time"

// What named a site.
const (
	namedByConfiguration = "configuration"
	namedByVisitors      = "visitors"
)

// siteStatus is what the admin API shows of a site.
type siteStatus struct {
	Site    string `json:"site"`    // scheme, host, port and prefix
	Sitemap string `json:"sitemap"` // the URL of its sitemap, or index
	NamedBy string `json:"named_by"`

	// The site whose documents stand for this one's; this one is not refreshed.
	ServedBy string `json:"served_by,omitempty"`

	// What is served.
	Pages     int        `json:"pages"`
	Pending   int        `json:"pending"` // pages that are still to be fetched
	Shards    int        `json:"shards"`
	Bytes     int64      `json:"bytes"`                  // of memory, compressed
	Since     *time.Time `json:"since,omitempty"`        // when the sitemap, or its index, last changed
	Confirmed *time.Time `json:"confirmed_at,omitempty"` // when the last refresh began that confirmed it

	Refreshing  bool           `json:"refreshing"`
	LastRefresh *refreshStatus `json:"last_refresh,omitempty"`
	NextRefresh *time.Time     `json:"next_refresh,omitempty"`

	// Where pages come from, and why others are not listed.
	Sources    []sourceReport      `json:"sources,omitempty"`
	LeftOut    map[string]int      `json:"left_out,omitempty"` // by reason
	Examples   map[string][]string `json:"examples,omitempty"` // some paths of each reason
	Warnings   []string            `json:"warnings,omitempty"` // of the last refresh
	Discovered *discoveredStatus   `json:"discovered,omitempty"`

	// Who requested its documents, by User-Agent, which is not verified.
	Readers []Reading `json:"readers_unverified,omitempty"`
}

// refreshStatus is what the last refresh came to.
type refreshStatus struct {
	At       time.Time `json:"at"`
	Duration float64   `json:"duration_seconds"`
	Result   string    `json:"result"` // changed, unchanged, empty, held_back or failed
	Reason   string    `json:"reason,omitempty"`
}

// discoveredStatus is what is known of the paths that links and visitors name.
type discoveredStatus struct {
	Known   int `json:"known"`   // paths with a record, including those that sources name
	Visited int `json:"visited"` // paths that visitors had
	Dropped int `json:"dropped"` // visited paths for which there was no room

	// Visits that do not count, by reason, where they are nine tenths of all or more.
	Ignored map[string]int `json:"visits_ignored,omitempty"`
}

// status is what there is to show of a site.
func (s *site) status() siteStatus {
	st := siteStatus{
		Site: s.url(), Sitemap: s.sitemapURL(), NamedBy: namedByConfiguration,
		Refreshing: s.schedule.isRunning(), Readers: s.state.readers.list(),
	}
	if s.onDemand {
		st.NamedBy = namedByVisitors
	}
	if main := s.main.Load(); main != nil {
		st.ServedBy, st.Sitemap = main.url(), main.sitemapURL()
		return st
	}
	if due, ok := s.schedule.next(); ok {
		st.NextRefresh = utc(due)
	}
	if snapshot := s.state.Index.Load(); snapshot != nil {
		st.Pages, st.Shards, st.Bytes = snapshot.Pages, len(documentsOf(snapshot)), snapshot.Bytes
		st.Since = utc(snapshot.Index.Modified)
	}
	if r := s.lastReport(); r != nil {
		st.add(r)
	}
	if d := s.handler.discovery; d != nil {
		st.Discovered = &discoveredStatus{Ignored: d.visits.ignored()}
		st.Discovered.Visited, st.Discovered.Dropped = s.state.visited.count()
		if g := s.state.generation.Load(); g != nil {
			st.Discovered.Known = g.Len()
		}
	}
	return st
}

// add adds what the last refresh came to.
func (st *siteStatus) add(r *report) {
	st.Pending, st.Sources, st.LeftOut, st.Examples, st.Warnings = r.pending, r.sources, r.leftOut, r.examples, r.warnings
	st.LastRefresh = &refreshStatus{At: r.begun.UTC(), Duration: r.took.Seconds(), Result: r.outcome, Reason: r.reason}
	if !r.confirmed.IsZero() {
		st.Confirmed = utc(r.confirmed)
	}
}

func utc(t time.Time) *time.Time {
	t = t.UTC().Truncate(time.Second)
	return &t
}
