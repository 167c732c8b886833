package indexing

import (
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// traits of a candidate.
type traits uint8

const (
	namesOther   traits = 1 << iota // its canonical is another page of the site
	sortsLater                      // and that page's path sorts before its own
	linked                          // a page links to it
	needsLinks                      // it is listed only while a page does
	expectsLinks                    // it is not the front page, to which no page needs to link
	indexName                       // it is known by an index name, such as /index.html
	target                          // a candidate's canonical is this page
	givesWay                        // its canonical is listed instead
)

// candidates are the pages that may be listed as far as their own records say, in order of
// path. Per page 17 bytes are kept, and a few more of those with a canonical or a query.
type candidates struct {
	paths  []uint64 // hashes
	keys   []uint64 // see duplicateKey; 0: the page has no text
	traits []traits

	canonicals []pair   // path and canonical of those that name another page
	targets    []uint64 // the canonicals that count

	pagings []paging
}

// paging is a candidate that is a duplicate if the page without its query has the same
// text: the first page of a list.
type paging struct {
	at  int    // index of the candidate
	key uint64 // of the page without the query
}

func newCandidates(n int) *candidates {
	return &candidates{paths: make([]uint64, 0, n), keys: make([]uint64, 0, n), traits: make([]traits, 0, n)}
}

// add adds a page whose own status is Indexable or CanonicalOther.
func (c *candidates) add(rec *store.Record, r *Rules, own Status) {
	path := hash(rec.Path)
	t := r.traitsOf(rec)
	if own == CanonicalOther {
		t |= namesOther
		if rec.Canonical < rec.Path {
			t |= sortsLater
		}
		other := hash(rec.Canonical)
		c.canonicals = append(c.canonicals, pair{path, other})
		// What is not listed for want of a link must not have another page listed.
		if t&(needsLinks|linked) != needsLinks || rec.Flags&store.Target != 0 {
			c.targets = append(c.targets, other)
		}
	}
	var key uint64
	if rec.Text != 0 {
		key = duplicateKey(rec.Path, rec.Text)
		if bare, ok := withoutPaging(rec); ok {
			c.pagings = append(c.pagings, paging{len(c.paths), duplicateKey(bare, rec.Text)})
		}
	}
	c.paths, c.keys, c.traits = append(c.paths, path), append(c.keys, key), append(c.traits, t)
}

func (r *Rules) traitsOf(rec *store.Record) (t traits) {
	if r.isLinked(rec) {
		t |= linked
	}
	if r.needsLinks(rec) {
		t |= needsLinks
	}
	if !r.isSeed(rec) {
		t |= expectsLinks
	}
	if hasIndexName(rec.Path) {
		t |= indexName
	}
	return t
}

// resolve settles canonicals and then duplicates.
func (c *candidates) resolve() groups {
	c.resolveCanonicals()
	return c.group()
}

// resolveCanonicals marks the candidates that are a page's canonical, and those that give
// way to theirs. A page does not give way to one that would not be listed, such as one
// that redirects, is excluded or is not known.
func (c *candidates) resolveCanonicals() {
	if len(c.canonicals) == 0 {
		return
	}
	sortPairs(c.canonicals)
	c.targets = sortUnique(c.targets)
	final := make([]bool, len(c.targets)) // is a candidate that names no other page
	for i, path := range c.paths {
		if at, ok := find(c.targets, path); ok {
			c.traits[i] |= target
			final[at] = c.traits[i]&namesOther == 0
		}
	}
	for i, path := range c.paths {
		if c.traits[i]&namesOther != 0 && c.hasBetter(path, c.traits[i]&sortsLater != 0, final) {
			c.traits[i] |= givesWay
		}
	}
}

// maxRing is the most pages whose canonicals form a ring of which one page stays.
const maxRing = 32

// hasBetter reports whether a page with a canonical gives way to it. Of two pages that
// name each other the first stays; of a longer ring, any one.
func (c *candidates) hasBetter(path uint64, sortsLater bool, final []bool) bool {
	next, _ := lookup(c.canonicals, path)
	at, ok := find(c.targets, next)
	if !ok || final[at] {
		return ok
	}
	least := next
	for n := 2; n <= maxRing; n++ {
		if next, ok = lookup(c.canonicals, next); !ok {
			return n > 2 // the chain ends at a page that stays, be it the last but one
		}
		if next != path {
			least = min(least, next)
			continue
		}
		if n == 2 {
			return sortsLater
		}
		return least < path
	}
	return true
}

// statusAt returns the status of candidate i, and whether a page links to it.
func (c *candidates) statusAt(i int, g groups, omitOrphans bool) (s Status, isLinked bool) {
	t := c.traits[i]
	if t&givesWay != 0 {
		return CanonicalOther, true
	}
	own, has := g.of(c.keys[i])
	if has && own.path != c.paths[i] && own.rank > rankUnlinked {
		return Duplicate, true
	}
	isLinked = t&linked != 0 || has && own.path == c.paths[i] && own.linked
	if needs := t&needsLinks != 0 || omitOrphans && t&expectsLinks != 0; needs && !isLinked && t&target == 0 {
		return NoLinks, false
	}
	return Indexable, isLinked || t&expectsLinks == 0
}
