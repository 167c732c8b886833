package crawler

import (
	"cmp"
	"slices"
)

// beginningsBy are the beginnings by their first byte.
var beginningsBy = sortBeginnings()

func sortBeginnings() (by [256][]name) {
	for _, kind := range beginnings {
		for _, text := range kind.texts {
			by[text[0]] = append(by[text[0]], name{text, kind.family})
		}
	}
	return by
}

// name is a text in lower case, and whose name it is or is part of.
type name struct {
	text   string
	family Family
}

// named are the names of one family.
type named struct {
	family Family
	texts  []string
}

// beginningOf is the highest family whose names begin so.
func beginningOf(agent string) Family {
	found := Unknown
	for _, n := range beginningsBy[lower(agent[0])] {
		if n.family > found && hasPrefix(agent, n.text) {
			found = n.family
		}
	}
	return found
}

// table finds names wherever they stand. They are found by their first four bytes,
// which all of them have: looking for each by itself would take most of the time that
// reading a log does.
type table struct {
	begins [1<<tableBits + 1]uint16 // by slot, where those that begin so are
	names  []name
}

const tableBits = 12

var parts = newTable(partsOfNames)

func newTable(kinds []named) *table {
	t := new(table)
	for _, kind := range kinds {
		for _, text := range kind.texts {
			t.names = append(t.names, name{text, kind.family})
		}
	}
	slices.SortFunc(t.names, func(a, b name) int {
		return cmp.Or(slotOf(a.text)-slotOf(b.text), len(b.text)-len(a.text)) // googlebot before google-
	})
	for _, n := range t.names {
		t.begins[slotOf(n.text)+1]++
	}
	for slot := range 1 << tableBits {
		t.begins[slot+1] += t.begins[slot]
	}
	return t
}

// at is the family of the longest name with which an agent begins, whose first four
// bytes are those of a word; None: it is no name.
func (t *table) at(word uint32, agent string) Family {
	slot := slotOfWord(word)
	for _, n := range t.names[t.begins[slot]:t.begins[slot+1]] {
		if hasPrefix(agent, n.text) {
			return n.family
		}
	}
	return None
}

func slotOf(text string) int {
	return slotOfWord(uint32(text[0]) | uint32(text[1])<<8 | uint32(text[2])<<16 | uint32(text[3])<<24)
}

func slotOfWord(word uint32) int { return int(word * 0x9E3779B1 >> (32 - tableBits)) }

// bot is what the names of most crawlers end with.
const bot = 'b' | 'o'<<8 | 't'<<16

// isCubot reports whether what ends with bot is CUBOT, which makes telephones.
func isCubot(agent string) bool {
	return len(agent) >= 5 && hasPrefix(agent[len(agent)-5:], "cubot")
}

// isBlank reports whether there is no User-Agent: "-" is how logs write that.
func isBlank(agent string) bool {
	for i := range len(agent) {
		if c := agent[i]; c != ' ' && c != '\t' && c != '-' {
			return false
		}
	}
	return true
}

// hasPrefix reports whether s begins with a text in lower case, whatever its own case.
func hasPrefix(s, text string) bool {
	if len(s) < len(text) {
		return false
	}
	for i := range len(text) {
		if lower(s[i]) != text[i] {
			return false
		}
	}
	return true
}

// lower changes ASCII alone: a letter of another script is in no name.
func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}
