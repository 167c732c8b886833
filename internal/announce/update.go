package announce

import (
	"cmp"
	"slices"

	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
)

// Update is what one publication of a site's documents changed. A refresh may have several.
type Update struct {
	Complete      bool             // the refresh has ended, and holds nothing back
	Crawled       bool             // no page is left to be fetched for the first time
	First         bool             // no page was listed before
	Listed        int              // pages listed now
	Changes       indexing.Changes // since the last publication
	Sitemap, Feed bool             // these documents are others than before
}

// Update queues what is to be announced: changed pages with a date; removed ones that are gone; added ones that are still
// listed by the next complete refresh. Until a site was crawled once, nothing is announced, to pings and hubs either.
func (q *Queue) Update(u Update) {
	q.mu.Lock()
	defer q.mu.Unlock()
	isKnown := q.state.Known && !u.First
	q.state.Listed = u.Listed
	q.state.Known = isKnown || u.Complete && u.Crawled
	if !isKnown {
		q.state.Fresh = nil
		q.state.Older = nil
		return
	}
	removed := paths(u.Changes.Removed, all)
	confirmed, dropped := q.confirmed(&u, removed)
	for _, t := range q.state.Targets {
		switch {
		case t.Kind == IndexNow:
			t.Queued.remove(removed)
			t.Noted.remove(removed)
			t.Dropped += dropped
			t.Dropped += t.Queued.add(confirmed)
		case t.Kind == Ping && u.Sitemap:
			t.Queued = list{q.config.Sitemap}
		case t.Kind == Hub && u.Feed:
			t.Queued = list{q.config.Feed}
		}
	}
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// confirmed returns the paths that may be announced now, and how many changes never will be.
func (q *Queue) confirmed(u *Update, removed list) (confirmed list, dropped int) {
	s := &q.state
	if !slices.ContainsFunc(s.Targets, func(t *target) bool { return t.Kind == IndexNow }) {
		s.Fresh = nil
		s.Older = nil
		s.Absent = nil
		return nil, 0
	}
	unconfirmed := slices.Concat(s.Older, s.Fresh)
	for _, t := range s.Targets {
		// These were listed before, if they were removed in between.
		unconfirmed.remove(t.Queued)
		unconfirmed.remove(t.Noted)
	}
	known := slices.Concat(paths(u.Changes.Changed, isDated), paths(u.Changes.Removed, isGone))
	absent := paths(u.Changes.Removed, isAbsent)
	added := paths(u.Changes.Added, all)
	// What nobody was told of need not be told that it has changed or is gone.
	known.remove(unconfirmed)
	absent.remove(unconfirmed)
	added.remove(s.Older) // they come again if a commit is lost
	s.Absent.remove(added)
	s.Older.remove(removed)
	s.Fresh.remove(removed)
	dropped = s.Absent.add(absent)
	dropped += s.Fresh.add(added)
	for _, l := range []changes{u.Changes.Added, u.Changes.Changed, u.Changes.Removed} {
		dropped += l.Count - len(l.First)
	}
	if u.Complete {
		confirmed = s.Older
		s.Older = s.Fresh
		s.Fresh = nil
	}
	return slices.Concat(confirmed, known), dropped
}

type changes = indexing.List[indexing.Change]

func all(indexing.Change) bool        { return true }
func isDated(c indexing.Change) bool  { return c.LastMod != 0 }
func isGone(c indexing.Change) bool   { return c.Gone }
func isAbsent(c indexing.Change) bool { return c.Absent }

// paths returns the paths of those changes that are kept, in the order of their dates.
func paths(from changes, keep func(indexing.Change) bool) (paths list) {
	byDate := func(a, b indexing.Change) int { return cmp.Compare(a.LastMod, b.LastMod) }
	for _, c := range slices.SortedStableFunc(slices.Values(from.First), byDate) {
		if keep(c) {
			paths = append(paths, c.Path)
		}
	}
	return paths
}

// list is a list of paths, each of them once. The oldest change is first.
type list []string

// add adds newer changes. dropped is how many of the oldest ones have no room.
func (l *list) add(newer list) (dropped int) {
	all := slices.Concat(*l, newer)
	seen := make(map[string]bool)
	size := 0
	*l = nil
	for _, path := range slices.Backward(all) {
		if seen[path] {
			continue
		}
		seen[path] = true
		size += len(path)
		if len(*l) == maxPaths || size > maxBytes {
			dropped++
			continue
		}
		*l = append(*l, path)
	}
	slices.Reverse(*l)
	return dropped
}

// remove removes some paths.
func (l *list) remove(paths list) {
	isOne := make(map[string]bool, len(paths))
	for _, path := range paths {
		isOne[path] = true
	}
	*l = slices.DeleteFunc(*l, func(path string) bool { return isOne[path] })
}
