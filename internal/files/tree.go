package files

import (
	"io/fs"
	"time"
)

// fileID tells one file or folder from all others: by device and inode, or by
// the path that all links lead to. The zero value: not known.
type fileID struct {
	dev, ino uint64
	path     string
}

// info is what a scan asks of a file.
type info struct {
	kind    kind
	size    int64
	time    int64 // modification, Unix seconds
	version uint32
	id      fileID
	mode    uint32 // permission bits
}

// tree is a file system.
type tree interface {
	// handle makes what one goroutine reads folders with.
	handle() handle

	// real is a path without any link in it, as the same file is reached.
	real(path string) (string, error)

	// exists reports whether path can be examined, and as what. Links are
	// followed.
	exists(path string) (kind, bool)

	// enterable reports whether a folder may be listed.
	enterable(path string) bool
}

// handle reads one folder at a time.
type handle interface {
	// open begins with a folder; follow says whether it may be a link. The id has
	// device and inode, or is zero where these are not known.
	open(path string, follow bool) (fileID, error)

	// list calls add with the name of each entry, in any order, until it returns
	// false. A name is valid during the call only.
	list(add func(name string, k kind) bool) error

	// stat examines an entry of the folder. name is followed by a NUL in memory;
	// ord counts the calls of add from 0.
	stat(name string, ord uint32, follow bool, in *info) error

	// readable reports whether the process may read a file.
	readable(name string, in *info) bool

	close()
}

// oldest is the least modification time that is believed, 1981-01-01: some
// build systems and archives write the epoch, or 1980, for none.
var oldest = time.Date(1981, 1, 1, 0, 0, 0, 0, time.UTC).Unix()

func kindOfFileMode(m fs.FileMode) kind {
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
