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
)

const (
	// chunk is how much is read at a time.
	chunk = 256 << 10
	// maxLine is the longest line that is read, in bytes without its end.
	maxLine = 1 << 20
	// maxFiles is how many files are followed, rolled ones included.
	maxFiles = 1000
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
// on. A file is known by its first 4 KiB, so that it may be renamed, compressed, or
// copied and truncated meanwhile, and its lines are read once; where its first bytes
// change, it is another file, and is read from its beginning. What is written to a
// file after a poll is lost if it is truncated or removed before the next.
//
// It is not safe for concurrent use.
type Follower struct {
	history time.Duration
	now     func() time.Time
	targets []target

	files     []*file              // in the order to be read
	positions []*position          // of files, and of some that are gone
	folders   map[string]time.Time // when each was changed last, as of the last look
	polls     int
	again     bool // the next poll looks whatever the folders seem
	cut       bool // the last poll left something

	lines, read, tooLong, begun int64
	passedOver                  map[string]int
	errs                        map[string]error // of what is no file of files

	buf     []byte
	head    [headSize]byte
	longest int  // line, in bytes
	blind   bool // the system does not tell a file's device and inode
}

// file is one that is followed.
type file struct {
	found
	at     *position // copies share one; nil: nothing is to be read
	fresh  bool      // there may be something to read
	done   bool      // read to its end, and it is no log that grows
	begun  bool
	err    error
	stream *stream
}

// NewFollower prepares to follow logs from what [Follower.Positions] returned, or
// from their beginning.
func NewFollower(o FollowOptions, from Positions) *Follower {
	f := &Follower{history: o.History, now: o.Now, again: true, longest: maxLine}
	if f.now == nil {
		f.now = time.Now
	}
	for _, p := range o.Patterns {
		f.targets = append(f.targets, newTarget(p))
	}
	for _, p := range from.Files[max(len(from.Files)-maxFiles-maxGone, 0):] {
		if p.valid() {
			f.positions = append(f.positions, &position{Position: p})
		}
	}
	return f
}

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
	f.cut = true
	most = max(most, 1)
	for _, x := range f.files {
		if x.at == nil || x.done || !x.fresh && (x.live || wasCut) {
			continue
		}
		if ctx.Err() != nil || most <= 0 {
			return true, ctx.Err()
		}
		before := f.read
		if x.fresh {
			f.readFile(ctx, x, most, line)
		} else {
			f.finish(ctx, x, line)
		}
		most -= f.read - before
	}
	f.cut = most <= 0 || ctx.Err() != nil
	return f.cut, ctx.Err()
}

// changed reports whether the folders are to be looked at, and takes note of what
// has grown.
func (f *Follower) changed() bool {
	due := f.again || f.polls%lookEvery == 0 || len(f.errs) > 0
	f.again = false
	f.polls++
	for path, at := range f.folders {
		due = due || !at.Equal(folderTime(path))
	}
	for _, x := range f.files {
		if x.packing == plain && !x.done && !f.restat(x) || mayPass(x.err) {
			due = true
		}
	}
	return due
}

// mayPass reports whether an error may go although the file stays as it is: when
// its permissions change.
func mayPass(err error) bool {
	var e *fs.PathError
	return errors.As(err, &e)
}

// restat takes note of a file's growth. It reports whether that is all there is to it.
func (f *Follower) restat(x *file) bool {
	fi, err := os.Stat(x.path)
	if err != nil || !fi.Mode().IsRegular() || f.idOf(fi) != x.id || fi.Size() < x.fi.Size() {
		return false
	}
	x.note(fi)
	return x.at != nil || !x.fresh
}

func (f *Follower) idOf(fi fs.FileInfo) id {
	if f.blind {
		return id{}
	}
	return idOf(fi)
}

func (x *file) note(fi fs.FileInfo) {
	if fi.Size() != x.fi.Size() || !fi.ModTime().Equal(x.fi.ModTime()) {
		x.close()
		x.fresh, x.done, x.err = true, false, nil
	}
	x.fi = fi
}

// readFile reads what is new of a file.
func (f *Follower) readFile(ctx context.Context, x *file, most int64, line func([]byte)) {
	src, err := f.source(ctx, x)
	if err == nil {
		if !x.begun {
			x.begun = true
			f.begun++
		}
		err = f.readLines(ctx, x, src, most, line)
		src.release()
	}
	switch {
	case err == nil || ctx.Err() != nil: // there is more
	case err != io.EOF:
		f.fail(x, err)
	case x.packing == plain:
		x.fresh = false
	default:
		f.finish(ctx, x, line)
	}
}

// source opens a file where it was left.
func (f *Follower) source(ctx context.Context, x *file) (source, error) {
	if x.stream != nil {
		return x.stream, x.stream.skip(ctx, x.at.Offset)
	}
	h, err := open(x.path, x.id)
	if err != nil {
		return nil, err
	}
	if x.packing == plain {
		return plainFile{h, &f.buf}, nil
	}
	if x.stream, err = newStream(h, x.packing); err != nil {
		h.Close()
		return nil, err
	}
	return x.stream, x.stream.skip(ctx, x.at.Offset)
}

// readLines reads lines up to the file's end, which is io.EOF, or about most bytes.
func (f *Follower) readLines(ctx context.Context, x *file, src source, most int64, line func([]byte)) error {
	size := 0
	for most > 0 && ctx.Err() == nil {
		size = max(size, int(min(most, chunk)), headSize)
		b, err := src.window(x.at.Offset, size)
		if !f.isSame(x, src) {
			return nil
		}
		used := f.cutLines(x.at, b, most, line)
		f.advance(x, used)
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

func (f *Follower) advance(x *file, n int) {
	x.at.Offset += int64(n)
	f.read += int64(n)
}

// isSame reports whether a file still begins as it did, and takes note of what it
// begins with now. As it is asked after a read, what was read is not of a file that
// was truncated and perhaps written anew.
func (f *Follower) isSame(x *file, src source) bool {
	p, ok := src.(plainFile)
	if !ok {
		return true
	}
	n, _ := p.file.ReadAt(f.head[:], 0)
	switch head := f.head[:n]; {
	case bytes.HasPrefix(head, x.at.head):
		if n > len(x.at.head) {
			x.at.set(bytes.Clone(head))
		}
	case !bytes.HasPrefix(x.at.head, head) || n == 0: // else it is a copy
		f.again, x.fresh = true, true
		return false
	}
	return true
}

// cutLines hands on the whole lines that b begins with, and returns how many bytes
// are done with.
func (f *Follower) cutLines(at *position, b []byte, most int64, line func([]byte)) (used int) {
	for int64(used) < most {
		i := bytes.IndexByte(b[used:], '\n')
		if i < 0 {
			return used + f.cutLong(at, len(b)-used)
		}
		switch {
		case at.Within:
			at.Within = false
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
func (f *Follower) cutLong(at *position, n int) int {
	if !at.Within && n > f.longest {
		at.Within = true
		f.tooLong++
	}
	if at.Within {
		return n
	}
	return 0
}

// finish reads the last line of a file that does not grow any more, whose end is
// missing. A copy of one that grows may not be complete.
func (f *Follower) finish(ctx context.Context, x *file, line func([]byte)) {
	if slices.ContainsFunc(f.files, func(o *file) bool { return o != x && o.at == x.at && (o.live || o.fi.Size() > x.fi.Size()) }) {
		return
	}
	src, err := f.source(ctx, x)
	if err != nil {
		if ctx.Err() == nil {
			f.fail(x, err)
		}
		return
	}
	b, err := src.window(x.at.Offset, f.longest+1)
	same := f.isSame(x, src)
	src.release()
	if !same || err != io.EOF || bytes.IndexByte(b, '\n') >= 0 {
		f.again, x.fresh = true, true
		return
	}
	if len(b) > 0 && !x.at.Within {
		f.lines++
		line(b)
	}
	x.at.Within = false
	f.advance(x, len(b))
	x.done, x.fresh = true, false
	x.close()
}

// fail takes note of an error of a file.
func (f *Follower) fail(x *file, err error) {
	x.close()
	x.fresh, x.done = false, true
	if errors.Is(err, errReplaced) || errors.Is(err, fs.ErrNotExist) {
		f.again = true
	} else if !x.twin {
		x.err = err
	}
}

func (x *file) close() {
	if x.stream != nil {
		x.stream.close()
		x.stream = nil
	}
}

// Positions is how far the files were read by the last poll.
func (f *Follower) Positions() Positions {
	var p Positions
	for _, at := range f.positions {
		p.Files = append(p.Files, at.Position)
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
