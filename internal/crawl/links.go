package crawl

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

const (
	maxSeeds   = 10     // redirects that are followed from the front page
	maxAliases = 50_000 // unmatched links whose aliases are looked up in a round
)

// link is a page that another one names.
type link struct {
	path    string
	depth   uint8
	flags   record.Flags // Target, Seed and Image
	isAlias bool         // the link is to an alias of the path: see links.take

	// spelled is how the link spells the path, if that is not [page.Bare], and path is the bare spelling: that of a
	// file's name. Only once no file is found there, the link is to what it says. "": there is one spelling.
	spelled string

	finder      string // the page that has the link
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
	if known && least <= n.depth {
		return
	}
	isSeed := n.flags&record.Seed != 0
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

// endings are what is often left out of a page's URL, or added to it.
var endings = page.UsualEndings()

// take returns the links found since, sorted, and those to aliases of unmatched paths: paths that mostly lead to the
// same page.
func (l *links) take() []link {
	found := l.found
	l.found = nil
	n := min(len(l.unmatched), maxAliases)
	for _, path := range l.unmatched[:n] {
		found = appendAliases(found, path)
		if bare := page.Bare(path); bare != path {
			found = appendAliases(found, bare)
		}
	}
	l.unmatched = l.unmatched[n:]
	slices.SortFunc(found, func(a, b link) int { return strings.Compare(a.path, b.path) })
	return found
}

// appendAliases appends links to the aliases of a path.
func appendAliases(found []link, path string) []link {
	at := strings.IndexByte(path+"?", '?')
	i := slices.IndexFunc(endings, func(ending string) bool { return strings.HasSuffix(path[:at], ending) })
	name := strings.TrimSuffix(path[:at], endings[i])
	for _, ending := range endings {
		if alias := name + ending + path[at:]; strings.HasPrefix(alias, "/") {
			found = append(found, link{path: alias, isAlias: true})
		}
	}
	return found
}
