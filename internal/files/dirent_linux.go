package files

import (
	"bytes"
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

var errDirent = errors.New("malformed directory entry")

// The layout of struct linux_dirent64, see getdents64(2).
const (
	direntLen  = 16
	direntType = 18
	direntName = 19
)

// nextDirent reads the first entry of what getdents64 wrote. name lacks the NUL
// that follows it in buf; size is how many bytes of buf the entry takes.
func nextDirent(buf []byte) (name []byte, typ byte, size int, err error) {
	if len(buf) < direntName+1 {
		return nil, 0, 0, errDirent
	}
	size = int(binary.NativeEndian.Uint16(buf[direntLen:]))
	if size < direntName+1 || size > len(buf) {
		return nil, 0, 0, errDirent
	}
	name = buf[direntName:size]
	n := bytes.IndexByte(name, 0)
	if n <= 0 {
		return nil, 0, 0, errDirent
	}
	return name[:n], buf[direntType], size, nil
}

func kindOfDirent(typ byte) kind {
	switch typ {
	case unix.DT_REG:
		return kindFile
	case unix.DT_DIR:
		return kindFolder
	case unix.DT_LNK:
		return kindLink
	case unix.DT_UNKNOWN:
		return kindUnknown
	}
	return kindOther
}

func kindOfMode(mode uint32) kind {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return kindFile
	case unix.S_IFDIR:
		return kindFolder
	case unix.S_IFLNK:
		return kindLink
	}
	return kindOther
}
