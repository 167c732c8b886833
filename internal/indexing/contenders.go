package indexing

import (
	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// hash stands for a path while pages are compared.
func hash(s string) uint64 { return xxhash.Sum64String(s) }

// bareHash stands for a path however it is spelled: pages name others with more characters encoded than these are listed with, and
// the other way round.
func bareHash(path string) uint64 { return hash(page.Bare(path)) }

// contender is a page that may be listed by its own record.
type contender struct {
	path      uint64 // see bareHash
	canonical uint64 // the other page of the site that it names, or itself in another spelling; 0: none
	key       uint64 // see duplicateKey

	isLinked  bool // a page links to it
	lacksLink bool // none does, and it is listed only while one does
	isSeed    bool // no page needs to link to it
	isAlias   bool
	isTarget  bool // a contender's canonical is this page
	givesWay  bool // its canonical is listed instead
}

// contenders are the pages that may be listed by their own records.
type contenders struct {
	all []contender // one for each record, in order; the zero value: it is none

	targets map[uint64]int // the canonicals that count: which contender each is, counted from 1 on; 0: it is none

	listed, unlisted []reading // pages that were listed before, and others, that no file explains: see addReading
}

func newContenders(n int) *contenders {
	return &contenders{
		all:     make([]contender, 0, n),
		targets: make(map[uint64]int),
	}
}

// add adds a page whose own status is Indexable or CanonicalOther.
func (c *contenders) add(rec *record.Record, r *Options, own Status) {
	name := nameKey(rec.Path)
	x := contender{
		path:     bareHash(rec.Path),
		key:      duplicateKey(name, rec.Text),
		isLinked: r.isLinked(rec),
		isSeed:   r.isSeed(rec),
		isAlias:  isAlias(rec.Path),
	}
	x.lacksLink = !x.isLinked && r.needsLinks(rec)
	if own == CanonicalOther {
		x.canonical = bareHash(rec.Canonical)
		// What is not listed for want of a link must not have another page listed.
		if !x.lacksLink || rec.Flags&record.Target != 0 {
			c.targets[x.canonical] = 0
		}
	}
	c.addReading(rec, name)
	c.all = append(c.all, x)
}

// resolveCanonicals marks the contenders that are a page's canonical, and those that give way to theirs. A page does
// not give way to one that would not be listed, such as one that redirects, is excluded or is not known. Of two that name each
// other, the first stays. A page that names itself in another spelling gives way to that.
func (c *contenders) resolveCanonicals() {
	for i := range c.all {
		x := &c.all[i]
		isItself := x.canonical == x.path
		if _, counts := c.targets[x.path]; counts && !isItself {
			x.isTarget = true
			c.targets[x.path] = i + 1
		}
	}
	for i := range c.all {
		x := &c.all[i]
		n := c.targets[x.canonical]
		if n != 0 {
			other := n - 1
			isMutual := c.all[other].canonical == x.path
			x.givesWay = !isMutual || other < i
		}
	}
}

// statusAt returns the status of contender i, and whether it is listed though no page links to it.
func (c *contenders) statusAt(i int, g duplicateGroups, omitOrphans bool) (_ Status, isOrphan bool) {
	x := &c.all[i]
	stays := g[x.key]
	switch {
	case x.givesWay:
		return CanonicalOther, false
	case stays.preference != 0 && stays.at != i:
		return Duplicate, false
	case x.isLinked || stays.isLinked || x.isSeed: // links to others of the group are meant for the one that stays
		return Indexable, false
	case !x.isTarget && (x.lacksLink || omitOrphans): // whoever names it as a canonical links to it, in a way
		return NoLinks, false
	}
	return Indexable, true
}
