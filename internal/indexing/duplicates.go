package indexing

import (
	"net/url"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// groups are the candidates with the same text whose paths differ in case, a slash at the
// end, an index name or an extension only. One of each group stays.
type groups struct {
	keys []uint64
	stay []member
}

// member is the candidate that stays.
type member struct {
	path   uint64
	rank   rank
	linked bool // a page links to one of the group
}

// rank decides which candidate stays, the first of equal ones.
type rank uint8

const (
	rankNone rank = iota
	rankUnlinked
	rankAny
	rankLinked
	rankCanonical
)

func (t traits) rank() rank {
	switch {
	case t&target != 0:
		return rankCanonical
	case t&(needsLinks|linked) == needsLinks:
		return rankUnlinked
	case t&(linked|indexName) == linked:
		return rankLinked
	}
	return rankAny // a link to an index name is one to the folder
}

// of returns the member that stays of the group with a key.
func (g groups) of(key uint64) (member, bool) {
	i, ok := find(g.keys, key)
	if !ok || key == 0 || g.stay[i].rank == rankNone {
		return member{}, false
	}
	return g.stay[i], true
}

// group finds the groups of candidates, and marks as duplicates those pages of lists that
// are in fact the list.
func (c *candidates) group() groups {
	keys := make([]uint64, 0, len(c.keys)+len(c.pagings))
	for i, key := range c.keys {
		if key != 0 && c.traits[i]&givesWay == 0 {
			keys = append(keys, key)
		}
	}
	for _, p := range c.pagings {
		keys = append(keys, p.key)
	}
	g := groups{keys: sortRepeated(keys)}
	if len(g.keys) == 0 {
		return g
	}
	g.stay = make([]member, len(g.keys))
	for i, key := range c.keys {
		if t := c.traits[i]; key != 0 && t&givesWay == 0 {
			g.add(key, member{c.paths[i], t.rank(), t&linked != 0})
		}
	}
	for _, p := range c.pagings {
		c.mergePaging(p, g)
	}
	return g
}

func (g groups) add(key uint64, m member) {
	i, ok := find(g.keys, key)
	if !ok {
		return
	}
	m.linked = m.linked || g.stay[i].linked
	if m.rank > g.stay[i].rank {
		g.stay[i] = m
	}
	g.stay[i].linked = m.linked
}

// mergePaging moves a page of a list into the group of the list, where there is one: links
// to it are links to the list.
func (c *candidates) mergePaging(p paging, g groups) {
	t := c.traits[p.at]
	list, ok := g.of(p.key)
	if !ok || t&(target|givesWay) != 0 || list.rank == rankUnlinked && t&linked == 0 {
		return
	}
	c.keys[p.at] = p.key
	i, _ := find(g.keys, p.key)
	g.stay[i].rank, g.stay[i].linked = max(list.rank, rankAny), list.linked || t&linked != 0
}

// duplicateKey is equal for pages of one group.
func duplicateKey(path string, text uint64) uint64 {
	path, query, _ := strings.Cut(path, "?")
	key := foldedHash(trimName(path))
	if query != "" {
		key = combine(key, hash(query))
	}
	return combine(key, text)
}

// withoutPaging returns the path without its query, if that makes no difference where the
// text is the same: of what only links or visitors name, and of a list's first page.
func withoutPaging(rec *store.Record) (string, bool) {
	path, query, has := strings.Cut(rec.Path, "?")
	if !has || isDiscovered(rec) && rec.Flags&store.Target == 0 {
		return path, has
	}
	values, err := url.ParseQuery(query)
	if err != nil || len(values) != 1 {
		return "", false
	}
	for _, name := range []string{"page", "paged", "p", "pg"} {
		if values.Get(name) == "1" {
			return path, true
		}
	}
	return "", false
}

// trimName cuts off what duplicates differ in.
func trimName(path string) string {
	path = cutSuffix(path, ".html", ".htm", ".xhtml", ".php")
	path = cutSuffix(path, "/index", "/default")
	return strings.TrimRight(path, "/")
}

// hasIndexName reports whether trimName cuts an index name off.
func hasIndexName(path string) bool {
	path, _, _ = strings.Cut(path, "?")
	path = cutSuffix(path, ".html", ".htm", ".xhtml", ".php")
	return cutSuffix(path, "/index", "/default") != path
}

// cutSuffix cuts the first of some suffixes off that a path has, in any case.
func cutSuffix(path string, suffixes ...string) string {
	for _, suffix := range suffixes {
		if n := len(path) - len(suffix); n >= 0 && path[n] == suffix[0] && strings.EqualFold(path[n:], suffix) {
			return path[:n]
		}
	}
	return path
}

// foldedHash is the hash of a path in lower case.
func foldedHash(path string) uint64 {
	upper := strings.IndexFunc(path, func(c rune) bool { return 'A' <= c && c <= 'Z' })
	if upper < 0 {
		return hash(path)
	}
	var digest xxhash.Digest
	digest.Reset()
	var block [256]byte
	for path != "" {
		n := copy(block[:], path)
		for i, c := range block[:n] {
			if 'A' <= c && c <= 'Z' {
				block[i] = c + 'a' - 'A'
			}
		}
		_, _ = digest.Write(block[:n])
		path = path[n:]
	}
	return digest.Sum64()
}
