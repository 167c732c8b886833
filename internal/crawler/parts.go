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
	for _, n := range beginningsBy[lowered[agent[0]]] {
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
	filter [1 << (filterBits - 6)]uint64 // a bit of each that begins so is set
	begins [1<<tableBits + 1]uint16      // by slot, where those that begin so are
	names  []name
}

const (
	filterBits = 16
	tableBits  = 10
)

var parts = newTable(partsOfNames)

func newTable(kinds []named) (t table) {
	for _, kind := range kinds {
		for _, text := range kind.texts {
			t.names = append(t.names, name{text, kind.family})
		}
	}
	slices.SortFunc(t.names, func(a, b name) int {
		// googlebot before google-
		return cmp.Or(cmp.Compare(slotOf(wordOf(a.text)), slotOf(wordOf(b.text))), len(b.text)-len(a.text))
	})
	for _, n := range t.names {
		bit := filterBit(wordOf(n.text))
		t.filter[bit/64] |= 1 << (bit % 64)
		t.begins[slotOf(wordOf(n.text))+1]++
	}
	for slot := range 1 << tableBits {
		t.begins[slot+1] += t.begins[slot]
	}
	return t
}

// mayBegin reports whether a name may begin with a word's bytes: nearly always right,
// and always where one does.
func (t *table) mayBegin(word uint32) bool {
	bit := filterBit(word)
	return t.filter[bit/64]&(1<<(bit%64)) != 0
}

// at is the family of the longest name with which an agent begins, whose first four
// bytes are those of a word; None: it is no name.
func (t *table) at(word uint32, agent string) Family {
	slot := slotOf(word)
	for _, n := range t.names[t.begins[slot]:t.begins[slot+1]] {
		if hasPrefix(agent, n.text) {
			return n.family
		}
	}
	return None
}

// slotOf is where the names are that begin with a word's bytes.
func slotOf(word uint32) uint32 { return word * 0x9E3779B1 >> (32 - tableBits) }

func filterBit(word uint32) uint32 { return word * 0x9E3779B1 >> (32 - filterBits) }

// wordOf are the first four bytes of a text, the first one lowest.
func wordOf(text string) uint32 {
	return uint32(text[0]) | uint32(text[1])<<8 | uint32(text[2])<<16 | uint32(text[3])<<24
}

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
		if lowered[s[i]] != text[i] {
			return false
		}
	}
	return true
}

// lowered are bytes in lower case. Those of ASCII alone: a letter of another script is
// in no name.
var lowered = func() (table [256]byte) {
	for c := range table {
		table[c] = byte(c)
		if 'A' <= c && c <= 'Z' {
			table[c] += 'a' - 'A'
		}
	}
	return table
}()
