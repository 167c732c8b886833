package frontier

import (
	"strings"

	"github.com/cespare/xxhash/v2"
)

const (
	maxFolders    = 8 // of a path that are groups; what lies deeper is in the last one
	maxParameters = 4 // of a query that are counted: each but the first doubles the cost
)

// group is a group of pages that takes turns with its siblings. The zero value is the group of all pages.
type group struct {
	kind    kind
	folders uint8  // that it is in, with itself
	key     uint64 // tells it from all others
	cost    uint64 // of a turn: a group with twice the cost gets half of the turns
}

// kind is what the pages of a group have in common.
type kind uint8

// In a folder, its own pages take two turns for each turn of its other groups: traps are mostly below.
const (
	inFolder kind = iota // the same folder
	isPage               // they are its own pages, without a query

	// They are in folders of it. These take turns by the shapes of their names, and those of a shape among themselves:
	// the names that a program makes, for sessions or for the values of a filter, are alike.
	inFolders
	inShape

	// They have a query, and are its front page without. They take turns by the number of parameters, each of which
	// halves the share, and then by the names of the parameters. A page costs the folder, and all groups that the
	// folder is in, as many turns as it costs the group of its number of parameters.
	hasQuery
	hasParameters
	hasNames

	// They are the numbered pages of its folders, such as /shop/page/2 in /shop. Often there is no other way to what is
	// listed there, and /shop/page may be one of hundreds of folders.
	isNumbered
	isNumberedIn

	inOthers // They are in groups for which there is no room. See [Census].
)

// isInnermost reports whether there are no groups in a group.
func (g group) isInnermost() bool {
	return g.kind == isPage || g.kind == hasNames || g.kind == isNumberedIn || g.kind == inOthers
}

// child returns the group of a page in a group that is not innermost, by what of the page's path is below the group's
// folder; and what of it is below the folder of the child.
func (g group) child(rest string) (child group, below string) {
	switch g.kind {
	case inFolder:
		k := kindOf(rest, g.folders == maxFolders)
		if k == isPage {
			return g.of(k, uint64(k), 1), rest
		}
		return g.of(k, uint64(k), 2), rest
	case inFolders:
		name, _ := cutFolder(rest)
		return g.of(inShape, xxhash.Sum64String(shapeOf(name)), 1), rest
	case inShape:
		name, below := cutFolder(rest)
		child = g.of(inFolder, xxhash.Sum64String(name), 1)
		child.folders++
		return child, below
	case hasQuery:
		more := min(strings.Count(rest, "&"), maxParameters-1)
		return g.of(hasParameters, uint64(more), 1<<more), rest
	case hasParameters:
		return g.of(hasNames, hashNames(rest), 1), rest
	}
	name, _ := cutFolder(rest)
	return g.of(isNumberedIn, xxhash.Sum64String(name), 1), rest
}

// belowRoot returns what of a page's path is below the group of all pages.
func belowRoot(path string) string { return strings.TrimPrefix(path, "/") }

// of returns a child of a group, by what tells it from the others.
func (g group) of(k kind, name, cost uint64) group {
	// Names may be small numbers: their bits are spread over the whole key.
	key := g.key*0x9e3779b97f4a7c15 + name
	key ^= key >> 32
	key *= 0xd6e8feb86659fd93
	return group{kind: k, folders: g.folders, key: key, cost: cost}
}

// kindOf returns in which group of a folder a page is, by the rest of its path. isLast: the folder has no groups for
// its folders.
func kindOf(rest string, isLast bool) kind {
	path, _, asks := strings.Cut(rest, "?")
	_, below, isBelow := strings.Cut(path, "/")
	if asks {
		if isLast || path == "" {
			return hasQuery
		}
		return inFolders // in that of the page itself: /shop/list?page=2 is in /shop/list
	}
	if isLast || !isBelow {
		return isPage
	}
	if isNumber(strings.TrimSuffix(below, "/")) {
		return isNumbered
	}
	return inFolders
}

// cutFolder cuts the name of a folder from the rest of a path.
func cutFolder(rest string) (name, below string) {
	path, _, _ := strings.Cut(rest, "?")
	name, _, _ = strings.Cut(path, "/")
	return name, strings.TrimPrefix(rest[len(name):], "/")
}

func isNumber(name string) bool { return name != "" && strings.Trim(name, "0123456789") == "" }

// hashNames returns a hash of the names of a query's parameters, in any order.
func hashNames(rest string) (sum uint64) {
	_, query, _ := strings.Cut(rest, "?")
	for parameter := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(parameter, "=")
		sum += xxhash.Sum64String(name)
	}
	return sum
}

// shapeOf returns what names have in common that a program makes: the word before a separator, as in color-red and
// ~ann, or digits before any separator: 2031, 5f2b9c81. Any other name is its own shape.
func shapeOf(name string) string {
	for i := range len(name) {
		c := name[i]
		isLetter := c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80 // as is any byte of UTF-8 beyond ASCII
		if isLetter {
			continue
		}
		if c >= '0' && c <= '9' {
			return "0"
		}
		return name[:i+1]
	}
	return name
}
