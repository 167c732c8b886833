package sitemap

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/announce"
	"github.com/seed3295b519/caddy-sitemap/internal/files"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
)

// attention is what an operator is to look at in a site, the most urgent first.
type attention uint8

// The levels: those that need attention, and others.
const (
	refreshFailed   attention = iota // the last refresh failed
	heldBack                         // missing pages stay listed until later refreshes confirm that they are gone
	listsNothing                     // no page is listed
	sourceUnread                     // a source cannot be read, and could not be before
	storageFails                     // of the storage that it shares with other processes, the last call
	unannounced                      // the last announcement was not accepted, or none is sent
	watchMistrusted                  // no event told of a change of its files, so changes show by the refresh interval
	incomplete                       // pages are still to be fetched, or no refresh has ended yet

	unwatched     // changes of its files show by the refresh interval: of many sites, most are not watched
	perhapsMadeUp // only visitors named its host, and no page is listed, unlike of other such hosts
	isFine
)

var attentionNames = [...]string{
	refreshFailed:   "failed",
	heldBack:        "held_back",
	listsNothing:    "empty",
	sourceUnread:    "source_unread",
	storageFails:    "storage_fails",
	unannounced:     "not_announced",
	watchMistrusted: "watch_mistrusted",
	incomplete:      "incomplete",
	unwatched:       "not_watched",
	perhapsMadeUp:   "perhaps_made_up",
	isFine:          "fine",
}

// isNeeded reports whether the operator is to look at the site at all.
func (a attention) isNeeded() bool { return a < unwatched }

func (a attention) String() string { return attentionNames[a] }

// MarshalText implements [encoding.TextMarshaler]: JSON has the name.
func (a attention) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (a *attention) UnmarshalText(text []byte) error {
	i := slices.Index(attentionNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("unknown attention '%s': the server has another version", text)
	}
	*a = attention(i)
	return nil
}

// attention returns what an operator is to look at. mayBeMadeUp: other sites that only visitors named list pages, so that one
// without any may be of a host that somebody made up.
func (st *siteStatus) attention(mayBeMadeUp bool) attention {
	if st.ServedBy != "" {
		return isFine // the other site has what there is to say
	}
	last := st.LastRefresh
	if last == nil && st.hasStorageError() { // what it would serve is there
		return storageFails
	}
	if last == nil {
		return incomplete
	}
	switch last.Result {
	case outcome.Failed:
		return refreshFailed
	case outcome.HeldBack:
		return heldBack
	case outcome.Empty:
		// A made-up host is nobody's concern, and there may be any number of them.
		if mayBeMadeUp && st.NamedBy == namedByVisitors {
			return perhapsMadeUp
		}
		return listsNothing
	}
	switch {
	case st.hasUnread():
		return sourceUnread
	case st.hasStorageError():
		return storageFails
	case st.isUnannounced():
		return unannounced
	case st.hasWatch(files.Mistrusted):
		return watchMistrusted
	case last.Pending > 0 || last.Partial:
		return incomplete
	case st.hasWatch(files.Incomplete):
		return unwatched
	}
	return isFine
}

// hasUnread reports whether a source could not be read by the last refresh.
func (st *siteStatus) hasUnread() bool {
	return slices.ContainsFunc(st.LastRefresh.Sources, func(source report.Source) bool { return source.Error != "" })
}

// hasStorageError reports whether a call of the shared storage failed, and none has succeeded since.
func (st *siteStatus) hasStorageError() bool { return st.Storage != nil && st.Storage.Error != "" }

// isUnannounced reports whether changes are not announced although the configuration says so, or were not accepted.
func (st *siteStatus) isUnannounced() bool {
	isRefused := func(target announce.Status) bool { return target.Reason != "" }
	return st.NotAnnounced != "" || slices.ContainsFunc(st.Announced, isRefused)
}

// hasWatch reports whether the watch of a root has a state.
func (st *siteStatus) hasWatch(state files.WatchState) bool {
	return slices.ContainsFunc(st.Watched, func(root watchedRoot) bool { return root.State == state.String() })
}

// sitesSummary counts sites.
type sitesSummary struct {
	Sites     int               `json:"sites"`
	Pages     int               `json:"pages"`     // listed, of all
	Attention map[attention]int `json:"attention"` // sites by what they need
}

// sitesStatus is the response to a request for sites.
type sitesStatus struct {
	Summary sitesSummary `json:"summary"`
	Sites   []siteStatus `json:"sites"` // those that need attention first, then by URL
}

// summarize makes a response of the status of sites, which it sorts.
func summarize(sites []siteStatus) sitesStatus {
	mayBeMadeUp := slices.ContainsFunc(sites, func(st siteStatus) bool {
		return st.NamedBy == namedByVisitors && st.Pages > 0
	})
	summary := sitesSummary{Sites: len(sites), Attention: make(map[attention]int)}
	for i := range sites {
		st := &sites[i]
		st.Attention = st.attention(mayBeMadeUp)
		summary.Attention[st.Attention]++
		summary.Pages += st.Pages
	}
	slices.SortStableFunc(sites, func(x, y siteStatus) int {
		return cmp.Or(cmp.Compare(x.Attention, y.Attention), strings.Compare(x.Site, y.Site), strings.Compare(x.Sitemap, y.Sitemap))
	})
	return sitesStatus{summary, sites}
}

// String returns the summary as one line.
func (s sitesSummary) String() string {
	return fmt.Sprintf("sites: %d, pages: %d, %s", s.Sites, s.Pages, s.levels())
}

// levels returns how many sites need what.
func (s sitesSummary) levels() string {
	var all []string
	for level, name := range attentionNames {
		if n := s.Attention[attention(level)]; n > 0 {
			all = append(all, fmt.Sprintf("%s: %d", strings.ReplaceAll(name, "_", " "), n))
		}
	}
	return strings.Join(all, ", ")
}
