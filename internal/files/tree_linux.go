package files

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"unsafe"

	"golang.org/x/sys/unix"
)

// newDiskHandle returns what makes handles that read the operating system's own file
// system by descriptor; nil: the kernel is old, or a sandbox.
func newDiskHandle() func() handle {
	var st unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, "/", 0, unix.STATX_TYPE, &st) != nil {
		return nil
	}
	return func() handle { return &linuxHandle{fd: -1} }
}

type linuxHandle struct {
	fd  int // -1: none is open
	buf []byte
	st  unix.Statx_t
}

// retried calls f again while a signal interrupts it.
func retried(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

func (h *linuxHandle) open(path string, follow bool) (fileID, error) {
	flags := unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC
	if !follow {
		flags |= unix.O_NOFOLLOW
	}
	var st unix.Stat_t
	err := retried(func() (err error) {
		h.fd, err = unix.Open(path, flags, 0)
		return err
	})
	if err == nil {
		err = retried(func() error { return unix.Fstat(h.fd, &st) })
	}
	return fileID{dev: uint64(st.Dev), ino: st.Ino}, err
}

// direntBuffer is for a thousand entries or more a call.
const direntBuffer = 64 << 10

func (h *linuxHandle) list(add func(name string, mode fs.FileMode) bool) error {
	if h.buf == nil {
		h.buf = make([]byte, direntBuffer)
	}
	for {
		n := 0
		err := retried(func() (err error) {
			n, err = unix.Getdents(h.fd, h.buf)
			return err
		})
		if err == unix.ENOENT || err == nil && n == 0 { // removed, or its end
			return nil
		}
		if err != nil {
			return err
		}
		for buf := h.buf[:n]; len(buf) > 0; {
			// struct linux_dirent64, see getdents64(2): its size is at 16, the type at 18, the name from 19 to a NUL.
			entry := buf[:binary.NativeEndian.Uint16(buf[16:])]
			buf = buf[len(entry):]
			raw := entry[19 : 19+bytes.IndexByte(entry[19:], 0)]
			if string(raw) == "." || string(raw) == ".." {
				continue
			}
			name := unsafe.String(unsafe.SliceData(raw), len(raw))
			mode := modeOf(uint32(entry[18]) << 12)
			if entry[18] == unix.DT_UNKNOWN {
				// Some file systems do not tell. What has vanished since is found out later.
				var in info
				_ = h.stat(name, false, &in)
				mode = in.mode
			}
			if !add(name, mode) {
				return nil
			}
		}
	}
}

// modeOf is the type in a file's mode. That of a directory entry is the upper bits of one.
func modeOf(mode uint32) fs.FileMode {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return 0
	case unix.S_IFDIR:
		return fs.ModeDir
	case unix.S_IFLNK:
		return fs.ModeSymlink
	}
	return fs.ModeIrregular
}

// stat passes the name as it is in memory, for the sake of speed.
func (h *linuxHandle) stat(name string, follow bool, in *info) error {
	flags := uintptr(unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT)
	if follow {
		flags = 0
	}
	const mask = unix.STATX_TYPE | unix.STATX_MTIME | unix.STATX_CTIME | unix.STATX_INO | unix.STATX_SIZE
	for {
		// Not a raw system call: a file server that is out of reach would hold up the whole process.
		_, _, errno := unix.Syscall6(unix.SYS_STATX, uintptr(h.fd), uintptr(unsafe.Pointer(unsafe.StringData(name))),
			flags, mask, uintptr(unsafe.Pointer(&h.st)), 0)
		if errno == 0 {
			break
		}
		if errno != unix.EINTR {
			return errno
		}
	}
	st := &h.st
	*in = info{
		mode: modeOf(uint32(st.Mode)),
		time: st.Mtime.Sec,
		size: int64(st.Size),
		id:   fileID{dev: unix.Mkdev(st.Dev_major, st.Dev_minor), ino: st.Ino},
		version: versionOf(st.Mtime.Sec, int64(st.Mtime.Nsec),
			st.Ctime.Sec, int64(st.Ctime.Nsec), int64(st.Size), st.Ino),
	}
	return nil
}

func (h *linuxHandle) close() {
	if h.fd >= 0 {
		_ = unix.Close(h.fd)
	}
	h.fd = -1
}
