package files

import (
	"bytes"
	"encoding/binary"
	"slices"
	"unsafe"
)

type kind uint8

const (
	kindFile kind = iota
	kindFolder
	kindLink
	kindOther
	kindUnknown
)

// entry is one page or sub-folder of a listing. It holds no pointers, for the
// garbage collector's sake: a folder may have millions.
type entry struct {
	time    uint32 // LastMod: see believed
	version uint32
	name    uint32 // where the name begins in listing.names; a NUL follows it
	key     uint32 // where the escaped form begins
	size    uint16 // bytes of the name
	keyLen  uint16 // bytes of the key: the listed form; that of a folder ends in "/", that of an index file is empty
	id      uint32 // in listing.ids, from 1; 0: the page is not reached through a link
	ord     uint32 // the number of the entry as the folder was read
	flags   flags
	why     reason
}

type flags uint8

const (
	isFolder flags = 1 << iota
	isLink         // the entry is a symbolic link
	isIndex
	isHTML // the name ends in ".html"
	isClean
	isKnown // time is known, and all that is asked of a file holds
)

// listing is what a folder has: the pages and folders in the order in which
// they are listed.
type listing struct {
	names   []byte
	entries []entry
	folders []uint32 // indices of the folders among entries
	ids     []fileID
	tally   tally
}

// sorter holds what sorting needs, to be used again.
type sorter struct {
	order  []position
	sorted []entry
}

// position is where an entry stands, and the first bytes of its key after what
// all keys share: enough to compare most of them.
type position struct {
	prefix uint64
	entry  uint32
}

func (l *listing) reset() {
	l.names, l.entries, l.folders = l.names[:0], l.entries[:0], l.folders[:0]
	l.ids = nil
	l.tally = tally{}
}

// memory is how many bytes l keeps.
func (l *listing) memory() int {
	return cap(l.names) + cap(l.entries)*int(unsafe.Sizeof(entry{})) + cap(l.folders)*4 + cap(l.ids)*int(unsafe.Sizeof(fileID{})) + int(unsafe.Sizeof(*l))
}

func (l *listing) name(e *entry) string  { return l.text(e.name, int(e.size)) }
func (l *listing) keyOf(e *entry) string { return l.text(e.key, int(e.keyLen)) }

// text is part of names without a copy: valid until l is reset.
func (l *listing) text(at uint32, n int) string {
	if n == 0 {
		return ""
	}
	return unsafe.String(&l.names[at], n)
}

// sort orders the entries of l by their keys and finds the folders.
func (s *sorter) sort(l *listing) {
	if len(l.entries) > 1 {
		s.sortEntries(l)
	}
	for i := range l.entries {
		if l.entries[i].flags&isFolder != 0 {
			l.folders = append(l.folders, uint32(i))
		}
	}
}

func (s *sorter) sortEntries(l *listing) {
	key := func(i uint32) []byte { return l.names[l.entries[i].key:][:l.entries[i].keyLen] }
	first := key(0)
	shared := len(first)
	for i := 1; i < len(l.entries) && shared > 0; i++ {
		key := key(uint32(i))
		shared = min(shared, len(key))
		for k := range shared {
			if key[k] != first[k] {
				shared = k
				break
			}
		}
	}
	s.order = s.order[:0]
	for i := range l.entries {
		s.order = append(s.order, position{prefix(key(uint32(i))[shared:]), uint32(i)})
	}
	slices.SortFunc(s.order, func(a, b position) int {
		switch {
		case a.prefix < b.prefix:
			return -1
		case a.prefix > b.prefix:
			return 1
		}
		return bytes.Compare(key(a.entry)[shared:], key(b.entry)[shared:])
	})
	s.sorted = slices.Grow(s.sorted[:0], len(l.entries))
	for _, p := range s.order {
		s.sorted = append(s.sorted, l.entries[p.entry])
	}
	l.entries, s.sorted = s.sorted, l.entries
	if len(s.order) > maxSpare/int(unsafe.Sizeof(entry{})) {
		*s = sorter{}
	}
}

// prefix is the first eight bytes of key as a number that compares as they do.
// No key holds a NUL.
func prefix(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}
