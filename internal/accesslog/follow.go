package accesslog

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
)

const (
	// chunk is how much is read at a time.
	chunk = 256 << 10
	// maxLine is the longest line that is read, in bytes without its end.
	maxLine = 1 << 20
	// maxFiles is how many files are followed, rolled ones included.
	maxFiles = 1000
	// maxHeld is how many files are held open from one poll to the next.
	maxHeld = 128
	// maxGone is how many positions of files that are gone are kept: one may come
	// back, compressed or under another name.
	maxGone = 512
	// lookEvery is how many polls pass until the folders are looked at even if they
	// seem unchanged.
	lookEvery = 10
)

// Why a file is passed over: keys of [Stats.PassedOver].
const (
	NotRegular   = "not a regular file"
	NoPermission = "no permission"
	CutShort     = "cut short"
	Damaged      = "damaged"
	Unreadable   = "unreadable"
	Unknown      = "compressed in an unknown way"
	TooOld       = "too old"
	TooMany      = "too many"
)

// FollowOptions says which files are followed.
type FollowOptions struct {
	// Patterns are absolute names of logs, or patterns of such as of
	// [filepath.Match]. The files that a log was rolled to are read with it.
	Patterns []string
	// History is how long ago a file may have been written last to be read; 0: any.
	History time.Duration
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Stats is what was read so far, and what is the matter now.
type Stats struct {
	Lines   int64 // that were handed on
	Bytes   int64 // uncompressed, with the ends of lines
	TooLong int64 // lines of more than 1 MiB, which are passed over
	Files   int64 // that were begun to be read, or gone on with
	// PassedOver is how many files are passed over at present, by reason.
	PassedOver map[string]int
	// Errors is the present error of each file, folder or pattern that has one, by
	// its path.
	Errors map[string]error
}

// Follower reads the lines of logs as they grow, from the first of what was rolled
// on, each once. What was read is known by device, inode and the first 4 KiB, so
// that a file may be renamed, compressed, or copied and truncated meanwhile. What
// was written to a log between being copied and truncated is lost to everybody, and
// so is what a file had when it was truncated or, if it was not held open, removed
// before it was read. A file that was edited so that its first 4 KiB differ is
// another one, and is read again.
//
// It is not safe for concurrent use.
type Follower struct {
	history time.Duration
	now     func() time.Time
	targets []target

	files   []*file // in the order to be read
	gone    []Position
	folders map[string]time.Time // when each was changed last, as of the last look
	polls   int
	again   bool // the next poll looks whatever the folders seem
	cut     bool // the last poll left something

	lines, read, tooLong, begun int64
	passedOver                  map[string]int
	errs                        map[string]error // of what is no file of files
	bad                         map[string]bad

	buf  []byte
	head [headSize]byte

	longest int // line, in bytes

	hold  bool // files that grow are held open
	blind bool // the system does not tell a file's device and inode
}

// file is one that is followed.
type file struct {
	path    string // "": it has none any more, and is held open
	log     string // the path of its log
	age     age
	packing packing
	id      id
	size    int64
	time    time.Time
	live    bool // it may grow
	copied  bool // it waits: it is made of the original

	head   []byte
	offset int64
	within bool // offset lies in a line that is too long
	handle *os.File
	stream *stream

	original *file // may be gone
	fresh    bool  // there may be something to read
	done     bool  // read to its end, and it is no log that grows
	begun    bool
	err      error
}

// bad is a file that could not be read as it was.
type bad struct {
	id   id
	size int64
	time time.Time
	err  error
}

// NewFollower prepares to follow logs from what [Follower.Positions] returned, or
// from their beginning.
func NewFollower(o FollowOptions, from Positions) *Follower {
	f := &Follower{history: o.History, now: o.Now, errs: make(map[string]error), again: true, longest: maxLine, hold: holds}
	if f.now == nil {
		f.now = time.Now
	}
	for _, p := range o.Patterns {
		f.targets = append(f.targets, newTarget(p))
	}
	for _, p := range from.Files {
		if p.valid() {
			f.gone = append(f.gone, p)
		}
	}
	f.gone = newest(f.gone, maxFiles+maxGone)
	return f
}

// newest are the last n positions.
func newest(all []Position, n int) []Position { return all[max(len(all)-n, 0):] }

// Poll reads the lines that were not read yet, the oldest files first, and calls
// line for each, without its "\n". line may use the bytes until it returns. most is
// how many bytes of lines are read, about; more says that there may be more at
// once. The error is that of ctx: those of files are in [Follower.Stats].
//
// A file's last line is read when its end is written, or else when the file was
// rolled and the poll after that finds nothing new.
func (f *Follower) Poll(ctx context.Context, most int64, line func([]byte)) (more bool, err error) {
	if f.changed() {
		f.look()
	}
	wasCut := f.cut
	f.cut = false
	most = max(most, 1)
	for i := 0; i < len(f.files); i++ {
		x := f.files[i]
		if x.copied || x.done || !x.fresh && x.live {
			continue
		}
		if err := ctx.Err(); err != nil {
			f.cut = true
			return true, err
		}
		if most <= 0 {
			f.cut = true
			return true, nil
		}
		if !x.fresh {
			if !wasCut {
				f.finish(x, line)
			}
			continue
		}
		before := f.read
		f.readFile(ctx, x, most, line)
		most -= f.read - before
	}
	f.dropFinished()
	if err := ctx.Err(); err != nil {
		f.cut = true
		return true, err
	}
	f.cut = most <= 0
	return f.cut, nil
}

// changed reports whether the folders are to be looked at, and takes note of what
// has grown.
func (f *Follower) changed() bool {
	due := f.again || f.polls%lookEvery == 0 || f.mayPass()
	f.again = false
	f.polls++
	for path, at := range f.folders {
		if !at.Equal(folderTime(path)) {
			due = true
		}
	}
	for _, x := range f.files {
		if x.packing == plain && !x.copied && !x.done && !f.restat(x) {
			due = true
		}
	}
	return due
}

// mayPass reports whether something cannot be read that may be readable at the next poll,
// although its folder stays the same: when its permissions change.
func (f *Follower) mayPass() bool {
	for _, b := range f.bad {
		if b.mayPass() {
			return true
		}
	}
	return len(f.errs) > 0 || slices.ContainsFunc(f.files, func(x *file) bool { return x.err != nil && x.packing == plain })
}

// restat takes note of a file's growth. It reports whether it is still there and
// has not become shorter.
func (f *Follower) restat(x *file) bool {
	var fi fs.FileInfo
	var err error
	if x.handle != nil && !x.live {
		fi, err = x.handle.Stat()
	} else {
		fi, err = os.Stat(x.path)
	}
	if err != nil || !fi.Mode().IsRegular() || f.idOf(fi) != x.id {
		return false
	}
	x.note(fi)
	return fi.Size() >= x.offset
}

func (f *Follower) idOf(fi fs.FileInfo) id {
	if f.blind {
		return id{}
	}
	return idOf(fi)
}

func (x *file) note(fi fs.FileInfo) {
	if fi.Size() != x.size || !fi.ModTime().Equal(x.time) {
		x.fresh, x.done = true, false
	}
	x.size, x.time = fi.Size(), fi.ModTime()
}

// readFile reads what is new of a file.
func (f *Follower) readFile(ctx context.Context, x *file, most int64, line func([]byte)) {
	src, err := f.source(ctx, x)
	if err != nil {
		if ctx.Err() == nil {
			f.fail(x, err)
		}
		return
	}
	if !x.begun {
		x.begun = true
		f.begun++
	}
	err = f.readLines(ctx, x, src, most, line)
	if p, ok := src.(plainFile); ok && p.file != x.handle {
		p.file.Close()
	}
	switch {
	case err == nil: // there is more
	case err != io.EOF:
		f.fail(x, err)
	case x.packing == plain:
		x.fresh, x.err = false, nil
	default:
		x.err = nil
		f.finish(x, line)
	}
}

// source opens a file where it was left.
func (f *Follower) source(ctx context.Context, x *file) (source, error) {
	if x.packing == plain {
		if x.handle != nil {
			return plainFile{x.handle, &f.buf}, nil
		}
		h, err := open(x.path, x.id)
		if err != nil {
			return nil, err
		}
		if f.hold && x.live && f.held() < maxHeld {
			x.handle = h
		}
		return plainFile{h, &f.buf}, nil
	}
	if x.stream == nil {
		h, err := open(x.path, x.id)
		if err != nil {
			return nil, err
		}
		s, err := newStream(h, x.packing)
		if err != nil {
			h.Close()
			return nil, err
		}
		x.stream = s
	}
	return x.stream, x.stream.skip(ctx, x.offset)
}

func (f *Follower) held() (n int) {
	for _, x := range f.files {
		if x.handle != nil {
			n++
		}
	}
	return n
}

// readLines reads lines up to the file's end, which is io.EOF, or about most bytes.
func (f *Follower) readLines(ctx context.Context, x *file, src source, most int64, line func([]byte)) error {
	size := 0
	for most > 0 && ctx.Err() == nil {
		size = max(size, int(min(most, chunk)), headSize)
		b, err := src.window(x.offset, size)
		if p, ok := src.(plainFile); ok && !f.sameHead(x, p.file) {
			// It was truncated, and perhaps written anew, since it was examined.
			f.again = true
			return nil
		}
		used := f.cutLines(x, b, most, line)
		x.offset += int64(used)
		f.read += int64(used)
		most -= int64(used)
		if err != nil && most > 0 {
			return err
		}
		if size = 0; used == 0 {
			size = min(2*len(b), f.longest+1)
		}
	}
	return nil
}

// sameHead reports whether a file still begins as it did, and takes note of what it
// begins with now. As it is asked after a read, what was read is not of a file that
// was truncated and written anew.
func (f *Follower) sameHead(x *file, r io.ReaderAt) bool {
	n, _ := r.ReadAt(f.head[:], 0)
	if !bytes.HasPrefix(f.head[:n], x.head) {
		return false
	}
	if n > len(x.head) {
		x.head = bytes.Clone(f.head[:n])
	}
	return true
}

// cutLines hands on the whole lines that b begins with, and returns how many bytes
// are done with.
func (f *Follower) cutLines(x *file, b []byte, most int64, line func([]byte)) (used int) {
	for int64(used) < most {
		i := bytes.IndexByte(b[used:], '\n')
		if i < 0 {
			return used + f.cutLong(x, len(b)-used)
		}
		switch {
		case x.within:
			x.within = false
		case i > f.longest:
			f.tooLong++
		default:
			f.lines++
			line(b[used : used+i : used+i])
		}
		used += i + 1
	}
	return used
}

// cutLong returns how many of n bytes that are the beginning of a line are done
// with: all, if the line is too long.
func (f *Follower) cutLong(x *file, n int) int {
	if !x.within && n > f.longest {
		x.within = true
		f.tooLong++
	}
	if x.within {
		return n
	}
	return 0
}

// finish reads the last line of a file that does not grow any more, whose end is
// missing.
func (f *Follower) finish(x *file, line func([]byte)) {
	if x.err != nil {
		return
	}
	if x.packing != plain || x.size > x.offset {
		src, err := f.source(context.Background(), x)
		if err != nil {
			f.fail(x, err)
			return
		}
		b, err := src.window(x.offset, f.longest+1)
		p, isPlain := src.(plainFile)
		if isPlain && !f.sameHead(x, p.file) || err != io.EOF || bytes.IndexByte(b, '\n') >= 0 {
			f.again, x.fresh = true, true
			b = nil
		}
		if isPlain && p.file != x.handle {
			p.file.Close()
		}
		if x.fresh && isPlain {
			return
		}
		if len(b) > 0 && !x.within {
			f.lines++
			line(b)
		}
		x.within = false
		x.offset += int64(len(b))
		f.read += int64(len(b))
	}
	x.done, x.fresh, x.err = true, false, nil
	x.close()
}

// fail takes note of an error of a file. A compressed one is not tried again until
// it changes.
func (f *Follower) fail(x *file, err error) {
	x.close()
	x.fresh = false
	if errors.Is(err, errReplaced) || errors.Is(err, fs.ErrNotExist) {
		f.again = true
		return
	}
	x.err, x.done = err, x.packing != plain
}

func (x *file) close() {
	if x.handle != nil {
		x.handle.Close()
		x.handle = nil
	}
	if x.stream != nil {
		x.stream.close()
		x.stream = nil
	}
}

// dropFinished forgets files that were removed, when they were read.
func (f *Follower) dropFinished() {
	kept := f.files[:0]
	for _, x := range f.files {
		if x.path == "" && x.handle == nil {
			f.lose(x)
			f.again = true // a compressed one of it may have waited
			continue
		}
		kept = append(kept, x)
	}
	clear(f.files[len(kept):])
	f.files = kept
}

// lose forgets a file and keeps its position.
func (f *Follower) lose(x *file) {
	x.close()
	if x.hasPosition() {
		f.gone = newest(append(f.gone, x.position()), maxGone)
	}
}

func (x *file) hasPosition() bool { return !x.copied && len(x.head) > 0 }

func (x *file) position() Position {
	return Position{
		Log: x.log, Device: x.id.device, Inode: x.id.inode,
		Offset: x.offset, Within: x.within,
		Head: xxhash.Sum64(x.head), HeadSize: len(x.head),
	}
}

// Positions is how far the files were read by the last poll.
func (f *Follower) Positions() Positions {
	p := Positions{Files: append([]Position(nil), f.gone...)}
	for _, x := range f.files {
		if x.hasPosition() {
			p.Files = append(p.Files, x.position())
		}
	}
	return p
}

// Stats is what was read up to the last poll, and what is the matter since the last
// look at the folders.
func (f *Follower) Stats() Stats {
	s := Stats{
		Lines: f.lines, Bytes: f.read, TooLong: f.tooLong, Files: f.begun,
		PassedOver: make(map[string]int), Errors: make(map[string]error),
	}
	maps.Copy(s.PassedOver, f.passedOver)
	maps.Copy(s.Errors, f.errs)
	for path, b := range f.bad {
		s.PassedOver[reasonOf(b.err)]++
		s.Errors[path] = b.err
	}
	for _, x := range f.files {
		if x.err != nil {
			s.PassedOver[reasonOf(x.err)]++
			s.Errors[x.path] = x.err
		}
	}
	return s
}

// Close closes the files that are held open.
func (f *Follower) Close() {
	for _, x := range f.files {
		x.close()
	}
}
