package announce

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
)

// Update is what one publication of a site's documents changed. A refresh may have several.
type Update struct {
	At            time.Time        // now
	Begun         time.Time        // when the refresh began, which tells it from others
	Gathered      bool             // it has read all that names pages, and holds nothing back
	Complete      bool             // it has ended, and holds nothing back
	Crawled       bool             // no page is left to be fetched for the first time
	First         bool             // no page was listed before
	Changes       indexing.Changes // since the last publication
	Sitemap, Feed bool             // these documents are others than before
	Selected      bool             // pages were selected, of which these are news now, the newest first:
	News          []string
}

// Update queues what is to be announced: changed pages with a date; added ones, once a later refresh lists them still;
// pages that may be gone, to be requested again. Until a site was crawled once, neither added pages nor documents are
// announced, as all of them are new to everybody: only what happens to pages that are listed already.
func (q *Queue) Update(u Update) {
	q.mu.Lock()
	defer q.mu.Unlock()
	isKnown := q.state.Known && !u.First
	isCrawledNow := u.Complete && u.Crawled // what comes next is new
	q.state.Known = isKnown || isCrawledNow
	if !isKnown {
		q.state.Fresh = nil
		q.state.Older = nil
		q.state.back(paths(u.Changes.Added, all))
		u.Changes.Added = changes{}
	}
	q.updatePages(&u)
	if isKnown {
		q.updateDocuments(&u)
	}
	select {
	case q.changed <- struct{}{}:
	default: // it is told already
	}
}

// updateDocuments queues the sitemap for pings, and the feed for hubs.
func (q *Queue) updateDocuments(u *Update) {
	for _, t := range q.state.Targets {
		if t.Kind == Ping && u.Sitemap {
			t.Queued = list{q.config.Sitemap}
		}
		if t.Kind == Hub && u.Feed {
			t.Queued = list{q.config.Feed}
		}
	}
}

// updatePages queues changed pages for the targets that are told of pages.
func (q *Queue) updatePages(u *Update) {
	s := &q.state
	if !slices.ContainsFunc(s.Targets, func(t *target) bool { return t.Kind.ofPages() }) {
		s.Fresh = nil
		s.Older = nil
		s.News = nil
		s.Removed = nil
		return
	}
	if u.Selected {
		s.News = slices.Clone(u.News)
		slices.Reverse(s.News) // the oldest first, as in all lists
	}
	dropped := overflow(&u.Changes)
	if !s.FreshBy.Equal(u.Begun) {
		dropped += s.Older.add(s.Fresh) // which this refresh may confirm
		s.Fresh = nil
	}
	changed := paths(u.Changes.Changed, func(c indexing.Change) bool { return c.Own && c.LastMod != 0 })
	gone := paths(u.Changes.Removed, func(c indexing.Change) bool { return c.Gone })
	leftOut := paths(u.Changes.Removed, func(c indexing.Change) bool { return !c.Gone })

	// What nobody was told of need not be told that it has changed or is gone.
	removed := slices.Concat(gone, leftOut)
	untold := slices.Concat(s.Older, s.Fresh)
	changed.remove(untold)
	gone.remove(untold)
	s.Older.remove(removed)
	s.Fresh.remove(removed)
	dropped += s.remove(gone, u.At)

	// A page that was gone for a moment is not new, unless it has changed.
	back := s.back(paths(u.Changes.Added, all)).set()
	added := paths(u.Changes.Added, func(c indexing.Change) bool { return c.Own || !back[c.Path] })
	added.remove(s.Older) // they come again if a commit is lost
	dropped += s.Fresh.add(added)

	// A refresh that has not read all that names pages, or holds some back, confirms nothing.
	var confirmed list
	if u.Gathered {
		confirmed = s.Older
		s.Older = nil
	}
	for _, t := range s.Targets {
		if t.Kind.ofPages() {
			t.remove(leftOut) // by settings or other pages: their URLs respond as before
			t.Dropped += dropped + t.add(confirmed, changed)
		}
	}
	s.hold(u, len(confirmed) > 0)
}

// overflow returns how many changes there are of which only the number is known.
func overflow(c *indexing.Changes) (n int) {
	for _, l := range []changes{c.Added, c.Changed, c.Removed} {
		n += l.Count - len(l.First)
	}
	return n
}

// hold has changes wait for the refresh that confirms added pages, so that they are sent together.
func (s *state) hold(u *Update, isConfirmed bool) {
	s.FreshBy = u.Begun
	if len(s.Fresh) == 0 {
		s.FreshBy = time.Time{} // what is stored stays the same while nothing happens
	}
	isOver := isConfirmed || len(s.Fresh)+len(s.Older) == 0
	if isOver {
		s.Hold = time.Time{}
		return
	}
	// It is not put off: a site that grows all the time would announce nothing.
	if s.Hold.IsZero() {
		s.Hold = u.At.Add(holdFor)
	}
}

type changes = indexing.List[indexing.Change]

func all(indexing.Change) bool { return true }

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

// withLast returns the list with those paths that are in another list at its end, in the order of that.
func (l list) withLast(last list) list {
	isHere := l.set()
	moved := slices.Clone(last)
	moved = slices.DeleteFunc(moved, func(path string) bool { return !isHere[path] })
	rest := slices.Clone(l)
	rest.remove(moved)
	return append(rest, moved...)
}

// newest returns so many of the newest paths.
func (l list) newest(n int) list { return l[len(l)-min(n, len(l)):] }

// remove removes some paths.
func (l *list) remove(paths list) {
	isOne := paths.set()
	*l = slices.DeleteFunc(*l, func(path string) bool { return isOne[path] })
}

func (l list) set() map[string]bool {
	set := make(map[string]bool, len(l))
	for _, path := range l {
		set[path] = true
	}
	return set
}
