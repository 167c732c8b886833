package files

import (
	"io/fs"
	"math"
	"math/bits"
	"time"
)

type kind uint8

const (
	kindFile kind = iota
	kindFolder
	kindLink
	kindOther
)

// fileID tells one file or folder from all others. The zero value: not known.
type fileID struct{ dev, ino uint64 }

// info is what a scan asks of a file.
type info struct {
	kind    kind
	time    int64 // modification, Unix seconds
	version uint32
	id      fileID
}

// handle reads one folder at a time. Paths begin with the scan's root.
type handle interface {
	// open begins with a folder; follow says whether it may be a link, and that its
	// id is wanted, which is zero where it is not known.
	open(path string, follow bool) (fileID, error)

	// list calls add with the name of each entry, in any order, until it returns
	// false. A name is valid during the call only.
	list(add func(name string, k kind) bool) error

	// stat examines an entry of the folder. name is followed by a NUL in memory;
	// ord counts the calls of add from 0.
	stat(name string, ord uint32, follow bool, in *info) error

	close()
}

func kindOf(m fs.FileMode) kind {
	switch {
	case m.IsRegular():
		return kindFile
	case m.IsDir():
		return kindFolder
	case m&fs.ModeSymlink != 0:
		return kindLink
	}
	return kindOther
}

// versionOf sums up what tells the states of a file apart: a write or a
// replacement changes at least one of these, also one that sets the modification
// time back. It is never 0, and the same from one run of the program to the next.
func versionOf(modSec, modNsec, changeSec, changeNsec, size int64, inode uint64) uint32 {
	// wyhash (https://github.com/wangyi-fudan/wyhash), with its numbers.
	h := fold(uint64(modSec*1e9+modNsec)^0xA0761D6478BD642F, uint64(changeSec*1e9+changeNsec)^0xE7037ED1A0B428DB)
	h = fold(h^uint64(size)^0x8EBC6AF09C88C6E3, inode^0x589965CC75374CC3)
	return max(uint32(h>>32)^uint32(h), 1)
}

func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

// oldest is the least modification time that is believed, 1981-01-01: some
// build systems and archives write the epoch, or 1980, for none.
var oldest = time.Date(1981, 1, 1, 0, 0, 0, 0, time.UTC).Unix()

// believed is a modification time as it is listed: 0 where it is after now, or
// before any that is believed.
func believed(t, now int64) uint32 {
	if t < oldest || t > now || t > math.MaxUint32 {
		return 0
	}
	return uint32(t)
}
