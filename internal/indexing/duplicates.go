package indexing

import (
	"slices"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// duplicateGroups are the contenders with the same text whose paths differ in case, in which characters are
// percent-encoded, a slash at the end, an index name or an extension only: by duplicateKey, the one of each that stays.
type duplicateGroups map[uint64]member

type member struct {
	at         int        // of the contender
	preference preference // 0: there is none
	isLinked   bool       // a page links to one of the group
}

// preference decides which contender stays, the first of equal ones.
type preference uint8

const (
	preferAny preference = iota + 1
	preferLinked
	preferCanonical
)

func (x *contender) preference() preference {
	switch {
	case x.isTarget:
		return preferCanonical
	case x.isLinked && !x.isAlias:
		return preferLinked
	}
	return preferAny
}

// group finds the duplicates among the contenders.
func (c *contenders) group() duplicateGroups {
	// Few keys occur twice: a map of these alone takes little memory.
	keys := make([]uint64, len(c.all))
	for i := range c.all {
		keys[i] = c.all[i].key
	}
	slices.Sort(keys)
	g := make(duplicateGroups)
	for i, key := range keys {
		if i > 0 && key == keys[i-1] && key != 0 {
			g[key] = member{}
		}
	}
	for i := range c.all {
		x := &c.all[i]
		m, isShared := g[x.key]
		isOut := x.givesWay || x.lacksLink && !x.isTarget
		if !isShared || isOut {
			continue
		}
		if p := x.preference(); p > m.preference {
			m.at = i
			m.preference = p
		}
		m.isLinked = m.isLinked || x.isLinked
		g[x.key] = m
	}
	return g
}

// duplicateKey is equal for pages of one group, by name and text; 0: the page has no text.
func duplicateKey(name, text uint64) uint64 {
	if text == 0 {
		return 0
	}
	return name*odd ^ text
}

const odd = 0x9e3779b97f4a7c15 // so that equal hashes do not cancel out

// nameKey is equal for paths that differ only as those of duplicates do.
func nameKey(path string) uint64 {
	path, query, _ := strings.Cut(path, "?")
	name := page.CutIndex(page.CutEnding(page.Bare(path)))
	key := hash(strings.ToLower(strings.TrimRight(name, "/")))
	if query != "" && !page.IsFirstPage(query) {
		key = key*odd ^ hash(query)
	}
	return key
}

// reading is when the text of a page was read, and last found changed: that of a file is known whenever its version is.
type reading struct {
	name    uint64 // see nameKey
	at      int    // of the contender
	fetched uint32
	changed uint32
}

// addReading adds when the text of the contender that comes next was read.
func (c *contenders) addReading(rec *record.Record, name uint64) {
	if rec.IsFile() || rec.Text == 0 {
		return
	}
	r := reading{
		name:    name,
		at:      len(c.all),
		fetched: record.Unix32(rec.Fetched),
		changed: rec.Found,
	}
	if rec.Selected.Listed {
		c.listed = append(c.listed, r)
		return
	}
	c.unlisted = append(c.unlisted, r)
}

// holdDuplicates has pages that were not listed beside another one of their group stay in it, if their texts differ only as one of
// both was not fetched since the other one changed.
func (c *contenders) holdDuplicates() {
	// Few pages were not listed: a map of their names alone takes little memory.
	beside := make(map[uint64]reading)
	for _, r := range c.unlisted {
		beside[r.name] = reading{}
	}
	for _, r := range c.listed {
		if _, isBeside := beside[r.name]; isBeside {
			beside[r.name] = r
		}
	}
	for _, r := range c.unlisted {
		other := beside[r.name]
		isListed := other.name == r.name
		isOutdated := r.changed > other.fetched || other.changed > r.fetched
		if isListed && isOutdated {
			c.all[r.at].key = c.all[other.at].key
		}
	}
}

// isAlias reports whether a path has an index name or asks for the first page of a list: a
// link to it is one to the folder or the list.
func isAlias(path string) bool {
	path, query, _ := strings.Cut(path, "?")
	path = page.CutEnding(path)
	return page.IsFirstPage(query) || page.CutIndex(path) != path
}
