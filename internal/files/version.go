package files

import (
	"io/fs"
	"math"
	"math/bits"
)

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

// fill takes what the standard library tells of a file.
func (in *info) fill(fi fs.FileInfo) {
	t := fi.ModTime()
	sec, nsec, inode := changed(fi)
	*in = info{
		kind:    kindOfFileMode(fi.Mode()),
		size:    fi.Size(),
		time:    t.Unix(),
		mode:    uint32(fi.Mode().Perm()),
		version: versionOf(t.Unix(), int64(t.Nanosecond()), sec, nsec, fi.Size(), inode),
	}
}

// believed is a modification time as it is listed: 0 where it is after now, or
// before any that is believed.
func believed(t, now int64) uint32 {
	if t < oldest || t > now || t > math.MaxUint32 {
		return 0
	}
	return uint32(t)
}
