package files

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// inotify is a [notifier] of one inotify instance, see inotify(7).
type inotify struct {
	file *os.File
	conn syscall.RawConn
}

// watchMask has writes as they happen, and the close after them, which is all that is told of those through a mapping.
// Changed attributes change the version of a page, or whether it can be read. IN_UNMOUNT and IN_Q_OVERFLOW come unasked.
const watchMask = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
	unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB | unix.IN_ONLYDIR

func newNotifier() (notifier, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if errors.Is(err, unix.EMFILE) {
		return nil, errors.New("no inotify instance or file descriptor is left: " +
			"raise fs.inotify.max_user_instances, or the limit of open files")
	}
	if err != nil {
		return nil, fmt.Errorf("making an inotify instance: %w", err)
	}
	n := &inotify{file: os.NewFile(uintptr(fd), "inotify")}
	n.conn, err = n.file.SyscallConn()
	if err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

// most is half of what a user may have: during a scan, there are two of each.
func (*inotify) most() int64 {
	value, err := os.ReadFile("/proc/sys/fs/inotify/max_user_watches")
	if err != nil {
		return math.MaxInt64 // the kernel refuses what is too much
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(value)), 10, 64)
	if err != nil {
		return math.MaxInt64
	}
	return n / 2
}

func (n *inotify) add(path string, follow bool) error {
	var mask uint32 = watchMask
	if !follow {
		mask |= unix.IN_DONT_FOLLOW
	}
	var failed error
	err := n.conn.Control(func(fd uintptr) {
		failed = retried(func() error {
			_, err := unix.InotifyAddWatch(int(fd), path, mask)
			return err
		})
	})
	if errors.Is(failed, unix.ENOSPC) {
		return errors.New("no inotify watch is left: raise fs.inotify.max_user_watches")
	}
	if failed != nil {
		return failed
	}
	return err
}

// telling are the file systems all of whose changes are made by this kernel, so that it tells of them.
var telling = map[uint32]bool{
	unix.EXT4_SUPER_MAGIC:      true, // also ext2 and ext3
	unix.XFS_SUPER_MAGIC:       true,
	unix.BTRFS_SUPER_MAGIC:     true,
	unix.TMPFS_MAGIC:           true,
	unix.F2FS_SUPER_MAGIC:      true,
	unix.OVERLAYFS_SUPER_MAGIC: true,
	0x2FC12FC1:                 true, // ZFS
	0xCA451A4E:                 true, // bcachefs
}

// foreignNames are those of some others.
var foreignNames = map[uint32]string{
	unix.NFS_SUPER_MAGIC:  "NFS",
	unix.FUSE_SUPER_MAGIC: "FUSE",
	unix.V9FS_MAGIC:       "9p",
	unix.CIFS_SUPER_MAGIC: "SMB",
	unix.SMB2_SUPER_MAGIC: "SMB",
	unix.CEPH_SUPER_MAGIC: "Ceph",
	unix.AFS_SUPER_MAGIC:  "AFS",
}

func (*inotify) foreign(path string) string {
	var st unix.Statfs_t
	err := retried(func() error { return unix.Statfs(path, &st) })
	if err != nil {
		return fmt.Sprintf("not known (%s)", err)
	}
	magic := uint32(st.Type)
	if telling[magic] {
		return ""
	}
	if name := foreignNames[magic]; name != "" {
		return name
	}
	return fmt.Sprintf("of type %#x", magic)
}

// await reads nothing, so that drain may be called meanwhile.
func (n *inotify) await(ctx context.Context, until time.Time) (isOver bool, err error) {
	if err := n.file.SetReadDeadline(until); err != nil {
		return false, err
	}
	if ctx.Err() != nil { // else interrupt is called later than this
		return true, nil
	}
	var failed error
	err = n.conn.Read(func(fd uintptr) bool {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		ready := 0
		failed = retried(func() (err error) {
			ready, err = unix.Poll(fds, 0)
			return err
		})
		return failed != nil || ready > 0
	})
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, failed
}

func (n *inotify) interrupt() { _ = n.file.SetReadDeadline(time.Unix(1, 0)) }

func (n *inotify) close() { _ = n.file.Close() }

const (
	eventBuffer = 64 << 10
	maxDrained  = 8 << 20 // bytes at a time: more than the kernel keeps by default
)

func (n *inotify) drain(note func(event)) {
	_ = n.conn.Control(func(fd uintptr) {
		buf := make([]byte, eventBuffer)
		for read := 0; read < maxDrained; {
			size := 0
			err := retried(func() (err error) {
				size, err = unix.Read(int(fd), buf)
				return err
			})
			if err != nil || size <= 0 { // nothing is left
				return
			}
			read += size
			decode(buf[:size], note)
		}
	})
}

// decode notes events as the kernel returns them.
func decode(buf []byte, note func(event)) {
	for len(buf) >= unix.SizeofInotifyEvent {
		// struct inotify_event: the mask is at 4, the size of the name at 12, the name from 16 on, with NULs after it.
		mask := binary.NativeEndian.Uint32(buf[4:])
		end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(buf[12:]))
		name := bytes.TrimRight(buf[unix.SizeofInotifyEvent:end], "\x00")
		buf = buf[end:]
		if mask&unix.IN_IGNORED != 0 {
			continue // of a folder that is gone, as the one above tells
		}
		e := event{name: string(name), isFolder: mask&unix.IN_ISDIR != 0}
		switch {
		case mask&(unix.IN_Q_OVERFLOW|unix.IN_UNMOUNT) != 0:
			e.kind = lost
		case mask&(unix.IN_CREATE|unix.IN_DELETE|unix.IN_MOVED_FROM|unix.IN_MOVED_TO) != 0:
			e.kind = named
		}
		note(e)
	}
}
