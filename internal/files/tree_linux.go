package files

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// linuxTree is the operating system's file system, read by descriptor.
type linuxTree struct{}

func newOSTree(folder string) (tree, string, error) {
	var st unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, "/", 0, unix.STATX_TYPE, &st) != nil {
		return newDiskTree(folder) // an old kernel, or a sandbox
	}
	return linuxTree{}, filepath.Clean(folder), nil
}

func (linuxTree) handle() handle { return &linuxHandle{fd: -1} }

func (linuxTree) real(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

func (linuxTree) exists(path string) (kind, bool) {
	fi, err := os.Stat(path)
	if err != nil {
		return 0, false
	}
	return kindOfFileMode(fi.Mode()), true
}

func (linuxTree) enterable(path string) bool {
	return unix.Faccessat(unix.AT_FDCWD, path, unix.R_OK|unix.X_OK, unix.AT_EACCESS) == nil
}

type linuxHandle struct {
	fd     int
	shared bool // fd is another's
	path   []byte
	buf    []byte
	link   []byte
	st     unix.Statx_t
}

// direntBuffer is for a thousand entries or more a call.
const direntBuffer = 64 << 10

func (h *linuxHandle) open(path []byte, follow bool) (fileID, error) {
	flags := uintptr(unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC | unix.O_LARGEFILE)
	if !follow {
		flags |= unix.O_NOFOLLOW
	}
	h.path, path = path, append(path, 0)
	at := unix.AT_FDCWD
	for {
		fd, _, errno := unix.Syscall6(unix.SYS_OPENAT, uintptr(at), uintptr(unsafe.Pointer(&path[0])), flags, 0, 0, 0)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			return fileID{}, errno
		}
		h.fd, h.shared = int(fd), false
		break
	}
	var st unix.Stat_t
	for {
		err := unix.Fstat(h.fd, &st)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			h.close()
			return fileID{}, err
		}
		return fileID{dev: uint64(st.Dev), ino: st.Ino}, nil
	}
}

func (h *linuxHandle) list(add func(name string, k kind) bool) error {
	if h.buf == nil {
		h.buf = make([]byte, direntBuffer)
	}
	var in info
	for {
		n, err := unix.Getdents(h.fd, h.buf)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.ENOENT: // the folder was removed
			return nil
		case err != nil:
			return err
		case n == 0:
			return nil
		}
		for buf := h.buf[:n]; len(buf) > 0; {
			raw, typ, size, err := nextDirent(buf)
			if err != nil {
				return err
			}
			buf = buf[size:]
			if raw[0] == '.' && (len(raw) == 1 || len(raw) == 2 && raw[1] == '.') {
				continue
			}
			name := unsafe.String(&raw[0], len(raw))
			k := kindOfDirent(typ)
			if k == kindUnknown {
				// Some file systems do not tell. What has vanished since is
				// found out later.
				k = kindFile
				if h.stat(name, 0, false, &in) == nil {
					k = in.kind
				}
			}
			if !add(name, k) {
				return nil
			}
		}
	}
}

func (h *linuxHandle) stat(name string, _ uint32, follow bool, in *info) error {
	flags := uintptr(unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT)
	if follow {
		flags = 0
	}
	const mask = unix.STATX_TYPE | unix.STATX_MODE | unix.STATX_MTIME | unix.STATX_CTIME | unix.STATX_INO | unix.STATX_SIZE
	for {
		// Not a raw system call: a file server that is out of reach would hold up
		// the whole process.
		_, _, errno := unix.Syscall6(unix.SYS_STATX, uintptr(h.fd), uintptr(unsafe.Pointer(unsafe.StringData(name))),
			flags, mask, uintptr(unsafe.Pointer(&h.st)), 0)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			return errno
		}
		break
	}
	st := &h.st
	in.kind = kindOfMode(uint32(st.Mode))
	in.size = int64(st.Size)
	in.time = st.Mtime.Sec
	in.version = versionOf(st.Mtime.Sec, int64(st.Mtime.Nsec), st.Ctime.Sec, int64(st.Ctime.Nsec), in.size, st.Ino)
	in.id = fileID{dev: unix.Mkdev(st.Dev_major, st.Dev_minor), ino: st.Ino}
	in.mode = uint32(st.Mode)
	return nil
}

func (h *linuxHandle) readable(name string, in *info) bool {
	return in.mode&0o444 == 0o444 || unix.Faccessat(h.fd, name, unix.R_OK, unix.AT_EACCESS) == nil
}

func (h *linuxHandle) where() (string, error) {
	if real, ok := h.fdPath(h.fd); ok {
		return real, nil
	}
	return linuxTree{}.real(string(h.path))
}

func (h *linuxHandle) real(name string) (string, error) {
	fd, err := unix.Openat(h.fd, name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = unix.Close(fd) }()
	if real, ok := h.fdPath(fd); ok {
		return real, nil
	}
	return linuxTree{}.real(filepath.Join(string(h.path), name))
}

// fdPath asks the kernel for the path of what is open: resolving links component
// by component takes several times as long. Not all processes see /proc.
func (h *linuxHandle) fdPath(fd int) (string, bool) {
	if h.link == nil {
		h.link = make([]byte, unix.PathMax)
	}
	n, err := unix.Readlink("/proc/self/fd/"+strconv.Itoa(fd), h.link)
	if err != nil || n <= 0 || n == len(h.link) {
		return "", false
	}
	real := string(h.link[:n])
	return real, real[0] == '/' && !strings.HasSuffix(real, " (deleted)")
}

func (h *linuxHandle) share(of handle) { h.fd, h.shared = of.(*linuxHandle).fd, true }

func (h *linuxHandle) close() {
	if h.fd >= 0 && !h.shared {
		_ = unix.Close(h.fd)
	}
	h.fd = -1
}
