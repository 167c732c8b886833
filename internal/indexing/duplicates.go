package indexing

import (
	"slices"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// duplicateGroups are the contenders with the same text whose paths differ in case, in which characters are
// percent-encoded, a slash at the end, an index name or an extension only: by duplicateKey, the one of each that stays.
type duplicateGroups map[uint64]member

type member struct {
	path       uint64
	preference preference
	linked     bool // a page links to one of the group
}

// preference decides which contender stays, the first of equal ones.
type preference uint8

const (
	_ preference = iota
	preferUnlinked
	preferAny
	preferLinked
	preferCanonical
)

func (t traits) preference() preference {
	if t&target != 0 {
		return preferCanonical
	}
	lacksLink := t&(needsLinks|linked) == needsLinks
	if lacksLink {
		return preferUnlinked
	}
	isLinkedAsSuch := t&(linked|alias) == linked
	if isLinkedAsSuch {
		return preferLinked
	}
	return preferAny
}

// group finds the duplicates among the contenders.
func (c *contenders) group() duplicateGroups {
	// Few keys occur twice: a map of these alone takes little memory.
	keys := slices.Clone(c.keys)
	slices.Sort(keys)
	g := make(duplicateGroups)
	for i, key := range keys {
		if i > 0 && key == keys[i-1] && key != 0 {
			g[key] = member{}
		}
	}
	for i, key := range c.keys {
		m, ok := g[key]
		t := c.traits[i]
		if !ok || t&givesWay != 0 {
			continue
		}
		if p := t.preference(); p > m.preference {
			m.path = c.paths[i]
			m.preference = p
		}
		m.linked = m.linked || t&linked != 0
		g[key] = m
	}
	return g
}

// duplicateKey is equal for pages of one group; 0: the page has no text.
func duplicateKey(rec *store.Record) uint64 {
	if rec.Text == 0 {
		return 0
	}
	return nameKey(rec.Path)*odd ^ rec.Text
}

const odd = 0x9e3779b97f4a7c15 // so that equal hashes do not cancel out

// nameKey is equal for paths that differ only as those of duplicates do.
func nameKey(path string) uint64 {
	path, query, _ := strings.Cut(path, "?")
	key := hash(strings.ToLower(trimName(page.Bare(path))))
	if query != "" && !page.IsFirstPage(query) {
		key = key*odd ^ hash(query)
	}
	return key
}

// reading is when the text of a page was read: that of a file is known whenever its version is.
type reading struct {
	name      uint64 // see nameKey
	path      uint64 // hash
	fetched   uint32
	changed   uint32
	wasListed bool
}

// confirmedAfter is how many seconds after it was found a change is confirmed at the latest, unless very many are.
const confirmedAfter = 120

// addReading adds when the text of a page was read.
func (c *contenders) addReading(rec *store.Record, path uint64) {
	if rec.IsFile() || rec.Text == 0 {
		return
	}
	changed := rec.Changed - confirmedAfter
	if rec.Steadiness.IsInDoubt() {
		changed = rec.Fetched
	}
	c.readings = append(c.readings, reading{
		name:      nameKey(rec.Path),
		path:      path,
		fetched:   store.Unix32(rec.Fetched),
		changed:   store.Unix32(changed),
		wasListed: rec.Selected.Listed,
	})
}

// holdDuplicates finds the pages that were not listed beside another one of their group, and whose texts differ only as
// one of both was not fetched since the other one changed.
func (c *contenders) holdDuplicates() {
	// Of the names of pages that were not listed, the page that was.
	listed := make(map[uint64]reading)
	for _, r := range c.readings {
		if !r.wasListed {
			listed[r.name] = reading{}
		}
	}
	for _, r := range c.readings {
		if _, isShared := listed[r.name]; r.wasListed && isShared {
			listed[r.name] = r
		}
	}
	for _, r := range c.readings {
		other := listed[r.name]
		isOutdated := max(r.changed, other.changed) > min(r.fetched, other.fetched)
		if !r.wasListed && other.wasListed && isOutdated {
			c.held[r.path] = true
		}
	}
}

// trimName cuts off what duplicates differ in.
func trimName(path string) string {
	return strings.TrimRight(page.CutIndex(page.CutEnding(path)), "/")
}

// isAlias reports whether a path has an index name or asks for the first page of a list: a
// link to it is one to the folder or the list.
func isAlias(path string) bool {
	path, query, _ := strings.Cut(path, "?")
	path = page.CutEnding(path)
	return page.IsFirstPage(query) || page.CutIndex(path) != path
}
