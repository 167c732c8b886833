package files

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxPath is the longest path that the kernel takes, in bytes. A file server
// opens files by their whole paths, so what lies deeper is not served.
const maxPath = unix.PathMax - 1

// linuxTree is the operating system's file system, read by descriptor.
type linuxTree struct {
	who      credentials
	useStatx bool
}

func newOSTree() tree {
	t := &linuxTree{who: ownCredentials()}
	// Old kernels lack statx, and some sandboxes refuse it.
	var st unix.Statx_t
	t.useStatx = unix.Statx(unix.AT_FDCWD, "/", 0, unix.STATX_TYPE, &st) == nil
	return t
}

func (t *linuxTree) handle() handle { return &linuxHandle{t: t, fd: -1} }

func (*linuxTree) real(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

func (*linuxTree) exists(path string) (kind, bool) {
	fi, err := os.Stat(path)
	if err != nil {
		return 0, false
	}
	return kindOfFileMode(fi.Mode()), true
}

func (*linuxTree) enterable(path string) bool {
	return unix.Faccessat(unix.AT_FDCWD, path, unix.R_OK|unix.X_OK, unix.AT_EACCESS) == nil
}

func (*linuxTree) join(root, rel string) string { return filepath.Join(root, rel) }

func (t *linuxTree) stat(path []byte, in *info) error {
	path = append(path, 0)
	if !t.useStatx {
		return fstatat(unix.AT_FDCWD, string(path[:len(path)-1]), 0, in)
	}
	var st unix.Statx_t
	return statx(unix.AT_FDCWD, &path[0], unix.AT_NO_AUTOMOUNT, &st, in)
}

func (*linuxTree) open(path []byte) (io.ReadCloser, error) {
	path = append(path, 0)
	const flags = unix.O_RDONLY | unix.O_CLOEXEC | unix.O_LARGEFILE | unix.O_NOCTTY | unix.O_NONBLOCK
	at := unix.AT_FDCWD
	for {
		fd, _, errno := unix.Syscall6(unix.SYS_OPENAT, uintptr(at), uintptr(unsafe.Pointer(&path[0])), flags, 0, 0, 0)
		switch errno {
		case 0:
			f := linuxFile(fd)
			return &f, nil
		case unix.EINTR:
			continue
		}
		return nil, errno
	}
}

// linuxFile is a descriptor, read without what an [os.File] asks of each first. It
// is -1 once closed.
type linuxFile int

func (f *linuxFile) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(int(*f), b)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, err
		case n == 0 && len(b) > 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

func (f *linuxFile) Close() error {
	if *f < 0 {
		return os.ErrClosed
	}
	fd := int(*f)
	*f = -1
	return unix.Close(fd)
}

func (*linuxFile) readsAll() {}

type linuxHandle struct {
	t      *linuxTree
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
	if !h.t.useStatx {
		return fstatat(h.fd, name, int(flags), in)
	}
	return statx(h.fd, unsafe.StringData(name), flags, &h.st, in)
}

// statx examines the file of a name that ends in a NUL. st is there to be used
// again.
func statx(fd int, name *byte, flags uintptr, st *unix.Statx_t, in *info) error {
	const mask = unix.STATX_TYPE | unix.STATX_MODE | unix.STATX_UID | unix.STATX_GID | unix.STATX_MTIME | unix.STATX_CTIME | unix.STATX_INO | unix.STATX_SIZE
	for {
		// Not a raw system call: a file server that is out of reach would hold up
		// the whole process.
		_, _, errno := unix.Syscall6(unix.SYS_STATX, uintptr(fd), uintptr(unsafe.Pointer(name)),
			flags, mask, uintptr(unsafe.Pointer(st)), 0)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			return errno
		}
		break
	}
	in.kind = kindOfMode(uint32(st.Mode))
	in.size = int64(st.Size)
	in.time = st.Mtime.Sec
	in.version = versionOf(st.Mtime.Sec, int64(st.Mtime.Nsec), st.Ctime.Sec, int64(st.Ctime.Nsec), in.size, st.Ino)
	in.id = fileID{dev: unix.Mkdev(st.Dev_major, st.Dev_minor), ino: st.Ino}
	in.mode, in.uid, in.gid = uint32(st.Mode), st.Uid, st.Gid
	return nil
}

func fstatat(fd int, name string, flags int, in *info) error {
	var st unix.Stat_t
	for {
		err := unix.Fstatat(fd, name, &st, flags&unix.AT_SYMLINK_NOFOLLOW)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		break
	}
	in.kind = kindOfMode(st.Mode)
	in.size = st.Size
	in.time = int64(st.Mtim.Sec)
	in.version = versionOf(in.time, int64(st.Mtim.Nsec), int64(st.Ctim.Sec), int64(st.Ctim.Nsec), st.Size, st.Ino)
	in.id = fileID{dev: uint64(st.Dev), ino: st.Ino}
	in.mode, in.uid, in.gid = st.Mode, st.Uid, st.Gid
	return nil
}

func (h *linuxHandle) readable(name string, in *info) bool {
	if h.t.who.mayRead(in.mode, in.uid, in.gid) {
		return true
	}
	// An access control list may allow what the mode does not.
	return unix.Faccessat(h.fd, name, unix.R_OK, unix.AT_EACCESS) == nil
}

func (h *linuxHandle) where() (string, error) {
	if real, ok := h.fdPath(h.fd); ok {
		return real, nil
	}
	return h.t.real(string(h.path))
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
	return h.t.real(filepath.Join(string(h.path), name))
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

// credentials are what decides whether the process may read a file.
type credentials struct {
	all    bool // mode bits do not bind it
	uid    uint32
	groups []uint32
}

func ownCredentials() credentials {
	c := credentials{uid: uint32(unix.Geteuid()), groups: []uint32{uint32(unix.Getegid())}}
	groups, err := unix.Getgroups()
	if err == nil {
		for _, g := range groups {
			c.groups = append(c.groups, uint32(g))
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		c.all = c.uid == 0
		return c
	}
	c.all = data[0].Effective&(1<<unix.CAP_DAC_OVERRIDE|1<<unix.CAP_DAC_READ_SEARCH) != 0
	return c
}

// mayRead reports whether mode bits let the process read a file.
func (c credentials) mayRead(mode, uid, gid uint32) bool {
	if c.all {
		return true
	}
	if uid == c.uid {
		return mode&0o400 != 0
	}
	for _, g := range c.groups {
		if g == gid {
			return mode&0o040 != 0
		}
	}
	return mode&0o004 != 0
}
