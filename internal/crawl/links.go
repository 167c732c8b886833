package crawl

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

const (
	maxSeeds   = 10     // redirects that are followed from the front page
	maxAliases = 50_000 // unmatched links whose aliases are looked up in a round
)

// link is a page that another one names.
type link struct {
	path    string
	depth   uint8
	flags   store.Flags // Target, Seed and Image
	isAlias bool        // the link is to an alias of the path: see links.take

	// spelled is how the link spells the path, if that is not [page.Bare], and path is the bare spelling: that of a
	// file's name. Only once no file is found there, the link is to what it says. "": there is one spelling.
	spelled string

	finder      string // the page that has the link
	finderHash  uint64 // if linkers are counted
	of          uint64 // of a link to an alias: the key of the link to the path itself
	finderKnown bool   // that page was fetched before, so its link is new if the target is
}

// newLink returns a link to a clean path, which is otherwise as from says.
func newLink(path string, from link) link {
	n := from
	n.path = page.Bare(path)
	if n.path != path {
		n.spelled = path
	}
	return n
}

// key is the same for links to the same target, by the spelling of the link.
func (l *link) key() uint64 { return xxhash.Sum64String(cmp.Or(l.spelled, l.path)) ^ uint64(l.flags) }

// links collects what fetched pages link to: each target once, by the hash of its path.
type links struct {
	cleaner *origin.Cleaner
	max     int // targets that are known, found or unmatched

	mu        sync.Mutex
	seen      map[uint64]uint8 // the least depth at which a target was found; not of all, if they are too many
	linkers   map[uint64]tally // of the targets; nil: they are not counted
	found     []link           // since the last round
	unmatched []string         // paths found before that and not known to be pages
	seeds     int
	dropped   int
}

// add adds a link.
func (l *links) add(n link) {
	key := n.key()
	l.mu.Lock()
	defer l.mu.Unlock()
	least, known := l.seen[key]
	hasMore := l.count(key, &n)
	tellsNothing := known && least <= n.depth && !hasMore
	if tellsNothing {
		return
	}
	isSeed := n.flags&store.Seed != 0
	if isSeed && l.seeds > maxSeeds {
		return
	}
	if len(l.found) >= l.max {
		l.dropped++
		return
	}
	if len(l.seen) >= l.max {
		// There may be no end of targets: what is forgotten is merged again. Otherwise no page found from now on would
		// come.
		clear(l.seen)
		clear(l.linkers)
		known = false
	}
	if isSeed {
		l.seeds++
	}
	if !known || n.depth < least {
		l.seen[key] = n.depth
	}
	// They may be part of a page's body, which would stay in memory as a whole.
	n.path = strings.Clone(n.path)
	n.spelled = strings.Clone(n.spelled)
	l.found = append(l.found, n)
}

// tally is which pages were seen that link to a target.
type tally struct {
	pages     store.Linkers
	merged    uint8 // magnitude of those that the record has
	isWaiting bool  // the target was found, and the record is to have the others, too
}

// count counts the page that has a link, and reports whether there are so many more such pages that the target is to be
// found again, for its record to have them: when they have doubled, roughly. So that happens only a few times for each
// target.
func (l *links) count(key uint64, n *link) (hasMore bool) {
	if l.linkers == nil || n.flags != 0 { // images and canonicals are no links that people follow
		return false
	}
	last, known := l.linkers[key]
	if !known && len(l.linkers) >= l.max {
		return false
	}
	next := last
	next.pages = last.pages.With(n.finderHash)
	if known && next.pages == last.pages {
		return false // nearly always
	}
	// Found again at each doubling, also while it still waited for the one before, a target took 8 % of a crawl of
	// files in memory with 30 links a page. Now it is 2 %.
	next.isWaiting = last.isWaiting || next.pages.Magnitude() > last.merged
	l.linkers[key] = next
	return next.isWaiting && !last.isWaiting
}

// linkersOf returns the pages that were seen to link to the target of a link, for its record to have them.
func (l *links) linkersOf(n *link) store.Linkers {
	if l.linkers == nil {
		return 0
	}
	key := n.of
	if !n.isAlias {
		key = n.key()
	}
	t, known := l.linkers[key]
	if known && t.isWaiting {
		t.isWaiting = false
		t.merged = t.pages.Magnitude()
		l.linkers[key] = t
	}
	return t.pages
}

// endings are what is often left out of a page's URL, or added to it.
var endings = page.UsualEndings()

// take returns the links found since, sorted, and those to aliases of unmatched paths: paths that mostly lead to the
// same page.
func (l *links) take() []link {
	found := l.found
	l.found = nil
	n := min(len(l.unmatched), maxAliases)
	for _, path := range l.unmatched[:n] {
		target := link{path: path}
		found = appendAliases(found, path, target.key())
		if bare := page.Bare(path); bare != path {
			found = appendAliases(found, bare, target.key())
		}
	}
	l.unmatched = l.unmatched[n:]
	slices.SortFunc(found, func(a, b link) int { return strings.Compare(a.path, b.path) })
	return found
}

// appendAliases appends links to the aliases of a path; key is that of a link to the path which was found.
func appendAliases(found []link, path string, key uint64) []link {
	at := strings.IndexByte(path+"?", '?')
	i := slices.IndexFunc(endings, func(ending string) bool { return strings.HasSuffix(path[:at], ending) })
	name := strings.TrimSuffix(path[:at], endings[i])
	for _, ending := range endings {
		if alias := name + ending + path[at:]; strings.HasPrefix(alias, "/") {
			found = append(found, link{path: alias, isAlias: true, of: key})
		}
	}
	return found
}
