package indexing

import (
	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// hash stands for a path while pages are compared.
func hash(s string) uint64 { return xxhash.Sum64String(s) }

// bareHash stands for a path however it is spelled: pages name others with more characters encoded than these are listed with, and
// the other way round.
func bareHash(path string) uint64 { return hash(page.Bare(path)) }

// contender is a page that may be listed by its own record.
type contender struct {
	path uint64 // see bareHash
	key  uint64 // see duplicateKey

	isLinked   bool // a page links to it
	needsLinks bool // it is listed only while a page does
	isSeed     bool // no page needs to link to it
	isAlias    bool
	isTarget   bool // a contender's canonical is this page
	namesOther bool // its canonical is another page of the site
	sortsLater bool // and that page's path sorts before its own
	givesWay   bool // its canonical is listed instead
}

// lacksLink reports whether a page is not listed for want of a link.
func (x *contender) lacksLink() bool { return x.needsLinks && !x.isLinked }

// contenders are the pages that may be listed by their own records.
type contenders struct {
	all []contender // one for each record, in order; the zero value: it is none

	canonicals map[uint64]uint64 // of those that name another page, by path
	targets    map[uint64]bool   // the canonicals that count, and whether they are contenders

	listed, unlisted []reading // pages that were listed before, and others, that no file explains: see addReading
}

func newContenders(n int) *contenders {
	return &contenders{
		all:        make([]contender, 0, n),
		canonicals: make(map[uint64]uint64),
		targets:    make(map[uint64]bool),
	}
}

// add adds a page whose own status is Indexable or CanonicalOther.
func (c *contenders) add(rec *store.Record, r *Options, own Status) {
	bare := page.Bare(rec.Path)
	x := contender{
		path:       hash(bare),
		key:        duplicateKey(rec),
		isLinked:   r.isLinked(rec),
		needsLinks: r.needsLinks(rec),
		isSeed:     r.isSeed(rec),
		isAlias:    isAlias(rec.Path),
		namesOther: own == CanonicalOther,
	}
	if x.namesOther {
		canonical := page.Bare(rec.Canonical)
		x.sortsLater = canonical < bare
		c.canonicals[x.path] = hash(canonical)
		// What is not listed for want of a link must not have another page listed.
		if !x.lacksLink() || rec.Flags&store.Target != 0 {
			c.targets[hash(canonical)] = false
		}
	}
	c.addReading(rec)
	c.all = append(c.all, x)
}

// resolveCanonicals marks the contenders that are a page's canonical, and those that give way to theirs. A page does
// not give way to one that would not be listed, such as one that redirects, is excluded or is not known. Of two that name each
// other, the first stays. A page that names itself in another spelling gives way to that.
func (c *contenders) resolveCanonicals() {
	if len(c.canonicals) == 0 {
		return
	}
	for i := range c.all {
		x := &c.all[i]
		isItself := x.namesOther && c.canonicals[x.path] == x.path
		if _, counts := c.targets[x.path]; counts && !isItself {
			x.isTarget = true
			c.targets[x.path] = true
		}
	}
	for i := range c.all {
		x := &c.all[i]
		canonical := c.canonicals[x.path]
		isMutual := c.canonicals[canonical] == x.path && canonical != x.path
		x.givesWay = x.namesOther && c.targets[canonical] && (!isMutual || x.sortsLater)
	}
}

// statusAt returns the status of contender i, and whether it is listed though no page links to it.
func (c *contenders) statusAt(i int, g duplicateGroups, omitOrphans bool) (_ Status, isOrphan bool) {
	x := &c.all[i]
	stays := g[x.key]
	isStaying := stays.at == i
	// Links to the other pages of the group are meant for the one that stays.
	isLinked := x.isLinked || isStaying && stays.isLinked
	switch {
	case x.givesWay:
		return CanonicalOther, false
	case stays.preference != 0 && !isStaying:
		return Duplicate, false
	case isLinked || x.isSeed:
		return Indexable, false
	case !x.isTarget && (x.needsLinks || omitOrphans): // whoever names it as a canonical links to it, in a way
		return NoLinks, false
	}
	return Indexable, true
}
