package indexing

import (
	"cmp"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// hash stands for a path while pages are compared.
func hash(s string) uint64 { return xxhash.Sum64String(s) }

// traits of a contender.
type traits uint8

const (
	namesOther   traits = 1 << iota // its canonical is another page of the site
	sortsLater                      // and that page's path sorts before its own
	linked                          // a page links to it
	needsLinks                      // it is listed only while a page does
	expectsLinks                    // it is not the front page, to which no page needs to link
	alias                           // see isAlias
	target                          // a contender's canonical is this page
	givesWay                        // its canonical is listed instead
)

// contenders are the pages that may be listed by their own records, in order of path. They take 17
// bytes each, 32 more if no file explains them, and some 40 more if another page is the canonical.
type contenders struct {
	paths  []uint64 // hashes
	keys   []uint64 // see duplicateKey
	traits []traits

	canonicals map[uint64]uint64 // of those that name another page, by path
	targets    map[uint64]bool   // the canonicals that count: it is a contender that names no other
	bare       map[uint64]uint64 // the bare spelling of the canonicals that have another one: see page.Bare

	readings []reading
	held     map[uint64]bool // those that stay duplicates, by path: see holdDuplicates
}

// add adds a page whose own status is Indexable or CanonicalOther.
func (c *contenders) add(rec *store.Record, r *Options, own Status) {
	path := hash(rec.Path)
	t := when(r.isLinked(rec), linked)
	t |= when(r.needsLinks(rec), needsLinks)
	t |= when(!r.isSeed(rec), expectsLinks)
	t |= when(isAlias(rec.Path), alias)
	if own == CanonicalOther {
		t |= namesOther
		t |= when(compareSpellings(rec.Canonical, rec.Path) < 0, sortsLater)
		c.addCanonical(rec, path, t)
	}
	c.paths = append(c.paths, path)
	c.keys = append(c.keys, duplicateKey(rec))
	c.traits = append(c.traits, t)
	c.addReading(rec, path)
}

// addCanonical adds the canonical of a page with such traits.
func (c *contenders) addCanonical(rec *store.Record, path uint64, t traits) {
	canonical := hash(rec.Canonical)
	c.canonicals[path] = canonical
	if bare := page.Bare(rec.Canonical); bare != rec.Canonical {
		c.bare[canonical] = hash(bare)
	}
	// What is not listed for want of a link must not have another page listed.
	lacksLink := t&(needsLinks|linked) == needsLinks
	if !lacksLink || rec.Flags&store.Target != 0 {
		c.targets[canonical] = false
	}
}

func when(is bool, t traits) traits {
	if is {
		return t
	}
	return 0
}

// compareSpellings orders paths by their bare spelling, so that two pages agree on which of them is the first
// however they spell each other.
func compareSpellings(a, b string) int {
	return cmp.Or(strings.Compare(page.Bare(a), page.Bare(b)), strings.Compare(a, b))
}

// respellCanonicals lets pages that name a canonical in an encoded spelling, in which it is no contender, name it in
// the bare one, in which files are listed.
func (c *contenders) respellCanonicals() {
	for _, path := range c.paths {
		delete(c.bare, path) // as it is encoded, it is a contender
	}
	if len(c.bare) == 0 {
		return
	}
	for i, path := range c.paths {
		bare, isEncoded := c.bare[c.canonicals[path]]
		if !isEncoded {
			continue
		}
		if bare != path {
			c.canonicals[path] = bare
			continue
		}
		// It is the page itself.
		delete(c.canonicals, path)
		c.traits[i] &^= namesOther
	}
	for encoded, bare := range c.bare {
		if _, counts := c.targets[encoded]; counts {
			c.targets[bare] = false
		}
	}
}

// resolveCanonicals marks the contenders that are a page's canonical, and those that give way to theirs. A page does
// not give way to one that would not be listed, such as one that redirects, is excluded or is not known.
func (c *contenders) resolveCanonicals() {
	if len(c.canonicals) == 0 {
		return
	}
	c.respellCanonicals()
	for i, path := range c.paths {
		if _, ok := c.targets[path]; ok {
			c.traits[i] |= target
			c.targets[path] = c.traits[i]&namesOther == 0
		}
	}
	for i, path := range c.paths {
		t := c.traits[i]
		if t&namesOther != 0 && c.hasBetter(path, t&sortsLater != 0) {
			c.traits[i] |= givesWay
		}
	}
}

// maxRing is the most pages whose canonicals form a ring of which one page stays.
const maxRing = 32

// hasBetter reports whether a page gives way to its canonical. Of two pages that name each
// other the first stays; of a longer ring, any one.
func (c *contenders) hasBetter(path uint64, sortsLater bool) bool {
	next := c.canonicals[path]
	isFinal, counts := c.targets[next]
	if !counts || isFinal {
		return isFinal
	}
	least := next
	for n := 2; n <= maxRing; n++ {
		following, ok := c.canonicals[next]
		if !ok {
			return n > 2 // the chain ends at a page that stays, be it the last but one
		}
		next = following
		if next == path && n == 2 {
			return sortsLater
		}
		if next == path {
			return least < path
		}
		least = min(least, next)
	}
	return true // it leads into a ring of others, or into one that is too long
}

// statusAt returns the status of contender i, with isOrphan if it is listed though no page links to it.
func (c *contenders) statusAt(i int, g duplicateGroups, omitOrphans bool) (Status, state) {
	t := c.traits[i]
	stays := g[c.keys[i]]
	// Links to the other pages of the group are meant for the one that stays.
	isStaying := stays.path == c.paths[i]
	isLinked := t&linked != 0 || isStaying && stays.linked
	if t&givesWay != 0 {
		return CanonicalOther, 0
	}
	if !isStaying && stays.preference > preferUnlinked || c.held[c.paths[i]] {
		return Duplicate, 0
	}
	if isLinked || t&expectsLinks == 0 {
		return Indexable, 0
	}
	// Whoever names it as a canonical links to it, in a way.
	isTarget := t&target != 0
	if !isTarget && (t&needsLinks != 0 || omitOrphans) {
		return NoLinks, 0
	}
	return Indexable, isOrphan
}
