package check

import "hash/maphash"

// before is where an entry was seen before.
type before uint8

const (
	beforeNever before = iota
	beforeHere         // in this document
	beforeElsewhere
)

const (
	numberBits = 12 // of a slot: the document's number; the rest is of the hash
	lastNumber = 1<<numberBits - 1
	firstSeen  = 1 << 16
)

// seen remembers entries by 52 bits of their hash, in a table with open addressing.
// That two of 50,000 entries agree by chance happens in one of 4 million documents.
type seen struct {
	seed   maphash.Seed
	slots  []uint64 // 0: free
	used   int
	max    int    // slots
	number uint64 // of the document, from 1; 0: any that is long past
	full   bool   // an entry was not remembered
}

// newSeen returns a seen that takes so many bytes at most, but a megabyte in any
// case: the largest document fits.
func newSeen(bytes int, seed maphash.Seed) *seen {
	n := 2 * firstSeen
	for n*2*8 <= bytes {
		n *= 2
	}
	return &seen{seed: seed, max: n}
}

// begin begins the next document. It forgets all where the document might not fit, so
// that duplicates within a document are found; forgot says so.
func (s *seen) begin() (forgot bool) {
	s.full = false
	if s.number == lastNumber {
		s.number = 0
		for i := range s.slots {
			s.slots[i] &^= lastNumber
		}
	}
	s.number++
	if s.used == 0 || s.used+maxEntries <= room(s.max) {
		return false
	}
	clear(s.slots)
	s.used = 0
	return true
}

// room is how many of n slots are used at most.
func room(n int) int { return n / 4 * 3 }

// add remembers an entry of a kind, and says where it was before.
func (s *seen) add(entry []byte, kind Kind) before {
	if s.used >= room(len(s.slots)) && len(s.slots) < s.max {
		s.grow()
	}
	hash := maphash.Bytes(s.seed, entry) &^ lastNumber
	if kind == KindIndex { // whose children are no pages
		hash = ^hash &^ lastNumber
	}
	if hash == 0 {
		hash = 1 << numberBits
	}
	slot := s.find(hash)
	switch {
	case *slot == 0 && s.used >= room(len(s.slots)):
		s.full = true
		return beforeNever
	case *slot == 0:
		s.used++
		*slot = hash | s.number
		return beforeNever
	case *slot&lastNumber == s.number:
		return beforeHere
	}
	*slot = hash | s.number
	return beforeElsewhere
}

// find is the slot of a hash, or the one where it belongs.
func (s *seen) find(hash uint64) *uint64 {
	mask := uint64(len(s.slots) - 1)
	for i := hash >> numberBits & mask; ; i = (i + 1) & mask {
		if slot := &s.slots[i]; *slot == 0 || *slot&^lastNumber == hash {
			return slot
		}
	}
}

// grow makes the table eight times as large: twice would leave more memory behind.
func (s *seen) grow() {
	old := s.slots
	s.slots = make([]uint64, min(s.max, max(firstSeen, 8*len(old))))
	for _, slot := range old {
		if slot != 0 {
			*s.find(slot &^ lastNumber) = slot
		}
	}
}
