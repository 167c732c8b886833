//go:build mount

package caddytest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// disk is a file system in user space, served by another process from a folder: it can
// hang, and fail at whatever is done to it.
type disk struct {
	t       *testing.T
	backing string // the folder whose content it shows
	cmd     *exec.Cmd
	in      io.Writer
	out     *bufio.Reader
}

const diskVar = "FAULTS_DISK" // of the environment: the folder and where it is mounted

// newDisk mounts {dir}/<name>.
func (s *server) newDisk(name string) *disk {
	s.T.Helper()
	d := &disk{t: s.T, backing: s.T.TempDir()}
	mountpoint := filepath.Join(s.Dir, name)
	harness.Must(s.T, os.MkdirAll(mountpoint, 0o755))
	d.cmd = exec.Command(os.Args[0])
	d.cmd.Env = append(os.Environ(), diskVar+"="+d.backing+string(filepath.ListSeparator)+mountpoint)
	d.cmd.Stderr = os.Stderr
	in, err := d.cmd.StdinPipe()
	harness.Must(s.T, err)
	out, err := d.cmd.StdoutPipe()
	if err == nil {
		err = d.cmd.Start()
	}
	harness.Must(s.T, err)
	d.in, d.out = in, bufio.NewReader(out)
	s.T.Cleanup(func() { // which ends all that waits for it
		_ = d.cmd.Process.Kill()
		_ = d.cmd.Wait()
		_ = syscall.Unmount(mountpoint, syscall.MNT_DETACH)
	})
	d.answer()
	return d
}

// hang has everything wait that is done to the disk, until goOn.
func (d *disk) hang() { _ = d.cmd.Process.Signal(syscall.SIGSTOP) }

func (d *disk) goOn() { _ = d.cmd.Process.Signal(syscall.SIGCONT) }

// fail lets operation n from now fail with EIO, and all that follow if forever; below 0,
// none. It returns how many there were since it was called last.
func (d *disk) fail(n int, forever bool) (before int) {
	d.t.Helper()
	fmt.Fprintln(d.in, n, forever)
	_, _ = fmt.Sscan(d.answer(), &before)
	return before
}

// spoil lets each file whose path has a part fail with EIO when it is opened; "": none.
func (d *disk) spoil(part string) {
	d.t.Helper()
	fmt.Fprintln(d.in, -1, false, part)
	d.answer()
}

func (d *disk) answer() string {
	d.t.Helper()
	line, err := d.out.ReadString('\n')
	if err != nil {
		d.t.Fatal("mounting takes privileges: ", err)
	}
	return line
}

func init() {
	backing, mountpoint, ok := strings.Cut(os.Getenv(diskVar), string(filepath.ListSeparator))
	if !ok {
		return
	}
	if err := serveDisk(backing, mountpoint); err != nil {
		fmt.Fprintln(os.Stderr, "serving a file system:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serveDisk speaks the protocol of /dev/fuse, version 7.31 (fuse(4), linux/fuse.h).
func serveDisk(backing, mountpoint string) error {
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := syscall.Mount("faults", mountpoint, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%d", fd, os.Getuid(), os.Getgid())); err != nil {
		return err
	}
	v := &volume{root: backing, paths: map[uint64]string{1: ""}, ids: map[string]uint64{"": 1}, files: make(map[uint64]*os.File), left: -1}
	commands := make(chan string)
	go func() {
		defer close(commands)
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			commands <- lines.Text()
		}
	}()
	requests := make(chan []byte)
	go func() {
		for {
			buf := make([]byte, 1<<17+4096)
			n, err := unix.Read(fd, buf)
			if err == unix.EINTR || err == unix.ENOENT {
				continue
			}
			if err != nil {
				os.Exit(0)
			}
			requests <- buf[:n]
		}
	}()
	fmt.Println("ready")
	for {
		select {
		case line, open := <-commands:
			if !open {
				return nil
			}
			fmt.Println(v.count)
			v.count = 0
			v.spoilt = ""
			_, _ = fmt.Sscan(line, &v.left, &v.forever, &v.spoilt)
		case request := <-requests:
			if reply := v.handle(request); reply != nil {
				_, _ = unix.Write(fd, reply)
			}
		}
	}
}

type volume struct {
	root    string
	paths   map[uint64]string // by node
	ids     map[string]uint64
	files   map[uint64]*os.File
	last    uint64 // node or handle
	count   int    // operations
	left    int    // before the one that fails; below 0: none does
	forever bool
	spoilt  string // part of the paths of files that cannot be opened; "": of none
}

var order = binary.LittleEndian

const (
	opLookup, opForget, opGetattr, opSetattr, opMkdir, opUnlink, opRmdir, opRename = 1, 2, 3, 4, 9, 10, 11, 12
	opOpen, opRead, opWrite, opStatfs, opRelease, opFsync, opFlush, opInit         = 14, 15, 16, 17, 18, 20, 25, 26
	opOpendir, opReaddir, opReleasedir, opFsyncdir, opAccess, opCreate             = 27, 28, 29, 30, 34, 35
	opInterrupt, opDestroy, opBatchForget, opRename2                               = 36, 38, 42, 45
)

// handle answers a request; nil: nobody waits for that.
func (v *volume) handle(request []byte) []byte {
	op, unique, node, arg := order.Uint32(request[4:]), order.Uint64(request[8:]), order.Uint64(request[16:]), request[40:]
	reply := func(data []byte, err error) []byte {
		out := order.AppendUint32(nil, uint32(16+len(data)))
		var errno syscall.Errno
		if err != nil && !errors.As(err, &errno) {
			errno = syscall.EIO
		}
		if errno != 0 {
			out, data = order.AppendUint32(nil, 16), nil
		}
		out = order.AppendUint32(out, uint32(-int32(errno)))
		return append(order.AppendUint64(out, unique), data...)
	}
	switch op {
	case opForget, opBatchForget, opInterrupt:
		return nil
	case opInit:
		out := make([]byte, 64)
		order.PutUint32(out, 7)
		order.PutUint32(out[4:], 31)
		order.PutUint32(out[20:], 1<<17) // the most that is written at a time
		return reply(out, nil)
	case opDestroy, opRelease, opReleasedir:
		if op == opRelease {
			_ = v.files[order.Uint64(arg)].Close()
			delete(v.files, order.Uint64(arg))
		}
		return reply(nil, nil)
	}
	v.count++
	if v.left >= 0 {
		if v.left == 0 {
			if !v.forever {
				v.left = -1
			}
			return reply(nil, syscall.EIO)
		}
		v.left--
	}
	if op == opOpen && v.spoilt != "" && strings.Contains(v.paths[node], v.spoilt) {
		return reply(nil, syscall.EIO)
	}
	data, err := v.do(op, v.paths[node], arg)
	for {
		inner, ok := err.(interface{ Unwrap() error })
		if !ok {
			break
		}
		err = inner.Unwrap()
	}
	return reply(data, err)
}

// do does what changes or reads the folder behind the disk.
func (v *volume) do(op uint32, path string, arg []byte) ([]byte, error) {
	full := filepath.Join(v.root, path)
	child := func(skip int) string {
		name, _, _ := bytes.Cut(arg[skip:], []byte{0})
		return filepath.Join(path, string(name))
	}
	switch op {
	case opLookup:
		return v.entry(child(0))
	case opGetattr:
		return v.attrOut(path)
	case opSetattr:
		if order.Uint32(arg)&8 != 0 {
			if err := os.Truncate(full, int64(order.Uint64(arg[16:]))); err != nil {
				return nil, err
			}
		}
		return v.attrOut(path)
	case opMkdir:
		if err := os.Mkdir(filepath.Join(v.root, child(8)), 0o755); err != nil {
			return nil, err
		}
		return v.entry(child(8))
	case opUnlink, opRmdir:
		return nil, os.Remove(filepath.Join(v.root, child(0)))
	case opRename, opRename2:
		skip := map[uint32]int{opRename: 8, opRename2: 16}[op]
		from, rest, _ := bytes.Cut(arg[skip:], []byte{0})
		to, _, _ := bytes.Cut(rest, []byte{0})
		old, fresh := filepath.Join(path, string(from)), filepath.Join(v.paths[order.Uint64(arg)], string(to))
		if err := os.Rename(filepath.Join(v.root, old), filepath.Join(v.root, fresh)); err != nil {
			return nil, err
		}
		if id, known := v.ids[old]; known {
			delete(v.ids, old)
			v.ids[fresh], v.paths[id] = id, fresh
		}
		return nil, nil
	case opCreate:
		name := child(16)
		fh, err := v.open(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
		if err != nil {
			return nil, err
		}
		entry, err := v.entry(name)
		return append(entry, fh...), err
	case opOpen:
		return v.open(path, int(order.Uint32(arg))&(os.O_RDWR|os.O_WRONLY|os.O_TRUNC))
	case opRead:
		data := make([]byte, order.Uint32(arg[16:]))
		n, err := v.files[order.Uint64(arg)].ReadAt(data, int64(order.Uint64(arg[8:])))
		if err == io.EOF {
			err = nil
		}
		return data[:n], err
	case opWrite:
		size := order.Uint32(arg[16:])
		n, err := v.files[order.Uint64(arg)].WriteAt(arg[40:40+size], int64(order.Uint64(arg[8:])))
		return order.AppendUint64(nil, uint64(n)), err
	case opFsync:
		return nil, v.files[order.Uint64(arg)].Sync()
	case opStatfs:
		return make([]byte, 80), nil
	case opOpendir:
		return make([]byte, 16), nil
	case opReaddir:
		return v.list(full, order.Uint64(arg[8:]), int(order.Uint32(arg[16:])))
	case opFlush, opFsyncdir, opAccess:
		return nil, nil
	}
	return nil, syscall.ENOSYS // so the kernel does not ask again
}

func (v *volume) open(path string, flags int) ([]byte, error) {
	f, err := os.OpenFile(filepath.Join(v.root, path), flags, 0o644)
	if err != nil {
		return nil, err
	}
	v.last++
	v.files[v.last] = f
	const direct = 1 // nothing is cached: what fails once is not there for the next who reads
	return order.AppendUint64(order.AppendUint64(nil, v.last), direct), nil
}

// list is the part of a folder's entries that begins with entry number from.
func (v *volume) list(full string, from uint64, most int) (out []byte, err error) {
	entries, err := os.ReadDir(full)
	for i := from; err == nil && i < uint64(len(entries)); i++ {
		name := entries[i].Name()
		if len(out)+24+len(name)+8 > most {
			break
		}
		out = order.AppendUint64(order.AppendUint64(out, ^uint64(0)), i+1)
		out = order.AppendUint32(order.AppendUint32(out, uint32(len(name))), uint32(syscall.DT_UNKNOWN))
		for out = append(out, name...); len(out)%8 != 0; {
			out = append(out, 0)
		}
	}
	return out, err
}

// entry is a node and its attributes; the kernel remembers neither.
func (v *volume) entry(path string) ([]byte, error) {
	attr, err := v.attr(path)
	if err != nil {
		return nil, err
	}
	id, known := v.ids[path]
	if !known {
		v.last++
		id = v.last + 1
		v.ids[path], v.paths[id] = id, path
	}
	out := make([]byte, 40)
	order.PutUint64(out, id)
	return append(out, attr...), nil
}

func (v *volume) attrOut(path string) ([]byte, error) {
	attr, err := v.attr(path)
	return append(make([]byte, 16), attr...), err
}

func (v *volume) attr(path string) (out []byte, err error) {
	var st syscall.Stat_t
	if err := syscall.Lstat(filepath.Join(v.root, path), &st); err != nil {
		return nil, err
	}
	for _, n := range [...]uint64{st.Ino, uint64(st.Size), uint64(st.Blocks), uint64(st.Atim.Sec), uint64(st.Mtim.Sec), uint64(st.Ctim.Sec)} {
		out = order.AppendUint64(out, n)
	}
	for _, n := range [...]uint32{uint32(st.Atim.Nsec), uint32(st.Mtim.Nsec), uint32(st.Ctim.Nsec), st.Mode, uint32(st.Nlink), st.Uid, st.Gid, 0, 4096, 0} {
		out = order.AppendUint32(out, n)
	}
	return out, nil
}
