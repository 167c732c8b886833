package announce

import (
	"cmp"
	"slices"
	"strings"
)

// Change is a page that changed.
type Change struct {
	Path    string // as in page.Page
	LastMod int64  // its date in Unix seconds; 0: none
	Gone    bool   // it was removed, and returned 404 or 410
	Absent  bool   // it was removed, as no source names it any more: whether it is gone is still to be found out
}

// Update is what one publication of a site's documents changed. A refresh may have several.
type Update struct {
	Complete bool // the refresh has ended, and holds nothing back
	Crawled  bool // no page is left to be fetched for the first time
	First    bool // no page was listed before
	Listed   int  // pages listed now

	// Changes since the last publication, and how many these lists leave out. Pages that were not verified are in none.
	Added, Changed, Removed []Change
	Omitted                 int

	Sitemap, Feed bool // these documents are others than before
}

// Update queues what is to be announced: changed pages with a date; removed ones that are gone; added ones that are still
// listed by the next complete refresh. Until a site was crawled once, nothing is announced, to pings and hubs either.
func (q *Queue) Update(u Update) {
	q.mu.Lock()
	defer q.mu.Unlock()
	isKnown := q.state.Known && !u.First
	if len(u.Added)+len(u.Changed)+len(u.Removed)+u.Omitted+len(q.state.Fresh)+len(q.state.Older) > 0 || u.Sitemap || u.Feed || !isKnown {
		q.version++
	}
	q.state.Listed = u.Listed
	if q.state.Known = isKnown || u.Complete && u.Crawled; !isKnown {
		q.state.Fresh, q.state.Older = nil, nil
		return
	}
	isRemoved := in(u.Removed)
	paths, dropped := q.confirmed(&u, isRemoved)
	for _, t := range q.state.Targets {
		switch {
		case t.Kind == IndexNow:
			t.Queued, t.Noted = slices.DeleteFunc(t.Queued, isRemoved), slices.DeleteFunc(t.Noted, isRemoved)
			t.Dropped += dropped
			t.queue(t.Queued, paths)
		case t.Kind == Ping && u.Sitemap:
			t.queue(nil, []string{q.config.Sitemap})
		case t.Kind == Hub && u.Feed:
			t.queue(nil, []string{q.config.Feed})
		}
	}
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// confirmed returns the paths that may be announced now, and how many changes never will be.
func (q *Queue) confirmed(u *Update, isRemoved func(string) bool) (paths []string, dropped int) {
	if u.Omitted > 0 { // of added pages it is not known whether they are still listed
		dropped = u.Omitted + len(q.state.Older) + len(q.state.Fresh)
		q.state.Older, q.state.Fresh = nil, nil
	}
	unconfirmed := make(map[string]bool)
	for _, path := range slices.Concat(q.state.Older, q.state.Fresh) {
		unconfirmed[path] = true
	}
	absent := q.paths(u.Removed, func(c Change) bool { return c.Absent && !unconfirmed[c.Path] })
	absent, over := merge(slices.DeleteFunc(q.state.Absent, in(u.Added)), absent)
	q.state.Absent = absent
	q.state.Older, q.state.Fresh = slices.DeleteFunc(q.state.Older, isRemoved), slices.DeleteFunc(q.state.Fresh, isRemoved)
	added, n := merge(q.state.Fresh, q.paths(u.Added, func(Change) bool { return true }))
	if q.state.Fresh = added; u.Complete {
		paths, q.state.Older, q.state.Fresh = q.state.Older, q.state.Fresh, nil
	}
	paths = append(paths, q.paths(u.Changed, func(c Change) bool { return c.LastMod != 0 && !unconfirmed[c.Path] })...)
	paths = append(paths, q.paths(u.Removed, func(c Change) bool { return c.Gone && !unconfirmed[c.Path] })...)
	return paths, dropped + n + over
}

// paths returns the paths of those changes that are kept, in the order of their dates. A key is valid for no page outside
// the folder of its file.
func (q *Queue) paths(changes []Change, keep func(Change) bool) (paths []string) {
	byDate := func(a, b Change) int { return cmp.Compare(a.LastMod, b.LastMod) }
	for _, c := range slices.SortedStableFunc(slices.Values(changes), byDate) {
		if len(q.config.Endpoints) > 0 && keep(c) && strings.HasPrefix(c.Path, q.config.Prefix+"/") {
			paths = append(paths, c.Path)
		}
	}
	return paths
}

// in returns whether a path is that of one of the changes.
func in(changes []Change) func(path string) bool {
	paths := make(map[string]bool, len(changes))
	for _, c := range changes {
		paths[c.Path] = true
	}
	return func(path string) bool { return paths[path] }
}

// queue sets what is queued: see merge.
func (t *target) queue(older, newer []string) {
	queued, dropped := merge(older, newer)
	t.Queued, t.Dropped = queued, t.Dropped+dropped
}
