package files

import (
	"slices"
	"strings"
	"unsafe"
)

type kind uint8

const (
	kindFile kind = iota
	kindFolder
	kindLink
	kindOther
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
	isClean // listed without ".html"
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

// sort orders the entries by their keys and finds the folders.
func (l *listing) sort() {
	slices.SortFunc(l.entries, func(a, b entry) int { return strings.Compare(l.keyOf(&a), l.keyOf(&b)) })
	for i := range l.entries {
		if l.entries[i].flags&isFolder != 0 {
			l.folders = append(l.folders, uint32(i))
		}
	}
}
