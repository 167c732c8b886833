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
	path, query, _ := strings.Cut(rec.Path, "?")
	const odd = 0x9e3779b97f4a7c15 // so that equal hashes do not cancel out
	name := strings.ToLower(trimName(page.Bare(path)))
	key := hash(name)*odd ^ rec.Text
	if query != "" && !isFirstPage(query) {
		key = key*odd ^ hash(query)
	}
	return key
}

// isFirstPage reports whether a query asks for the first page of a list.
func isFirstPage(query string) bool {
	name, value, _ := strings.Cut(query, "=")
	return (value == "0" || value == "1") && slices.Contains([]string{"page", "paged", "p", "pg"}, name)
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
	return isFirstPage(query) || page.CutIndex(path) != path
}
