package accesslog

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const (
	maxLine  = 1 << 20 // bytes of a line that are handed on
	maxFiles = 1000    // that are followed, rolled ones included
	maxHead  = 4 << 10 // bytes of a file's first line that tell it from others

	// timeGrain is how coarse the times of files may be. Within it, a log that is rolled may become another one of the same
	// size and time. On FAT, it is two seconds; on Linux up to 6.12, four milliseconds.
	timeGrain = 2 * time.Second

	// maxWindow bounds what a zstd file makes its reader hold. Level 19 uses 8 MiB, and what --ultra and
	// --long ask for beyond this is refused.
	maxWindow = 32 << 20
)

// errNoLog is why there is nothing to read of a log.
var errNoLog = errors.New("it does not exist, or was last written before 'history'")

// Positions are how far files were read: offsets into their uncompressed bytes. The key is the path of the log
// that a file is or was rolled from, and a hash of the file's first line, by which it is recognized after it was
// renamed, compressed or copied. They are stored as JSON.
type Positions map[string]int64

// mergePositions returns the positions from which nothing is missed: the least of each file, and none for a file that
// one of them lacks.
func mergePositions(all ...Positions) Positions {
	merged := maps.Clone(all[0])
	for _, other := range all[1:] {
		maps.DeleteFunc(merged, func(key string, offset int64) bool {
			at, known := other[key]
			merged[key] = min(offset, at)
			return !known
		})
	}
	return merged
}

// follower reads the lines of logs as they grow, and those of the files that they were rolled to. Each line is
// read at least once; more often, if a file is cut, or begins with the same line as another. What was written
// to a file after a poll is lost if that is truncated or removed before the next, unless it was copied to or
// renamed in the same folder. Only [follower.Logs] may be called while something else is.
type follower struct {
	patterns  []string
	history   time.Duration
	now       func() time.Time
	positions Positions
	files     map[string]*file // of the last poll, by path
	missing   map[string]bool  // positions whose file was looked for under other names
	buf       *bufio.Reader

	mu   sync.Mutex
	logs map[string]*Log // by path
}

// Log counts what was read of a log and of the files that it was rolled to. Error is why one of them cannot be
// read. With the path of a folder or a pattern, it is why that cannot be read, or that nothing matches it.
type Log struct {
	Path  string         `json:"log"`
	Lines map[string]int `json:"lines,omitempty"` // by result: see [Counts]
	Error string         `json:"error,omitempty"`

	// Hint is what the lines look like, and what to do, while none of them shows a request, or a visit that counts.
	Hint string `json:"hint,omitempty"`

	first []string // lines, while none of all shows a request
}

// sample keeps the first lines of a log of which none could be read so far. more are the first that could not be read
// since.
func (l *Log) sample(more []string) {
	for result := range l.Lines {
		if !isUnread(result) {
			l.first = nil
			return
		}
	}
	l.first = append(l.first, more[:min(len(more), maxSamples-len(l.first))]...)
}

// file is one that is followed.
type file struct {
	path, log string
	info      fs.FileInfo
	key       string // of its position; "": it has no line yet
	cut       string // its key before it became shorter; "": it did not
	done      bool   // there is nothing to read until it changes
	err       error
}

// newFollower returns a follower of logs from where they were left, or from their beginning. The patterns are absolute
// names of logs, or as of [filepath.Match]. Files that were written last longer ago than history are not read.
func newFollower(patterns []string, history time.Duration, now func() time.Time, from Positions) *follower {
	if from == nil {
		from = make(Positions)
	}
	return &follower{
		patterns:  patterns,
		history:   history,
		now:       now,
		positions: maps.Clone(from),
		missing:   make(map[string]bool),
		logs:      make(map[string]*Log),
		buf:       bufio.NewReaderSize(nil, maxLine),
	}
}

// Positions returns how far the files are read.
func (f *follower) Positions() Positions { return maps.Clone(f.positions) }

// Poll reads the lines that were not read yet and calls line for each, without its "\n", which returns what
// became of it; it may use the bytes until then. Of a line of over 1 MiB it gets the beginning. A line whose
// end is not written yet is left for later. Poll returns how many lines there were by what became of them. A
// file that cannot be read is tried again at the next poll, a damaged one once it has changed.
func (f *follower) Poll(ctx context.Context, line func(b []byte) string) (read map[string]int) {
	p := newPoll(line)
	f.readFiles(ctx, p)
	f.findUnmatched(p)
	f.findMissing(ctx, p.found, p.take)
	return f.count(p)
}

// poll is what one poll finds.
type poll struct {
	line   func(b []byte) string
	lines  map[lineResult]int
	errs   map[string]error    // by log, or folder or pattern
	unread map[string][]string // the first lines that could not be read, by log
	found  map[string]bool     // keys of positions whose files are there
}

// lineResult is what became of lines of a log.
type lineResult struct{ log, result string }

func newPoll(line func(b []byte) string) *poll {
	return &poll{
		line:   line,
		lines:  make(map[lineResult]int),
		errs:   make(map[string]error),
		unread: make(map[string][]string),
		found:  make(map[string]bool),
	}
}

// take hands on a line of a log, and counts it.
func (p *poll) take(log string, b []byte) {
	result := p.line(b)
	p.lines[lineResult{log, result}]++
	// A few lines show in which format a log is that cannot be read: see hint.
	isSample := isUnread(result) && len(p.unread[log]) < maxSamples
	if isSample && len(bytes.TrimSpace(b)) > 0 {
		p.unread[log] = append(p.unread[log], string(b[:min(len(b), maxSample)]))
	}
}

// readFiles reads on in all files that have changed since the last poll.
func (f *follower) readFiles(ctx context.Context, p *poll) {
	last := f.files
	f.files = make(map[string]*file)
	for _, x := range f.list(f.logOf, p.errs) {
		if old := last[x.path]; old != nil {
			x.goOnFrom(old)
		}
		if !x.done {
			x.err = f.read(ctx, x, nil, p.take)
		}
		// A read that was interrupted is no error of the file.
		if x.err != nil && ctx.Err() == nil {
			p.errs[x.log] = x.err
		}
		f.files[x.path] = x
		p.found[x.key] = true
	}
}

// goOnFrom takes over what the last poll knew of the file at the same path.
func (x *file) goOnFrom(old *file) {
	isUnchanged := old.info.Size() == x.info.Size() && old.info.ModTime().Equal(x.info.ModTime())
	if isUnchanged {
		x.key = old.key
		x.done = old.done
		x.err = old.err
		return
	}
	// A log that is cut, as by logrotate's copytruncate, may soon begin with the same line again.
	if old.info.Size() > x.info.Size() {
		x.cut = old.key
	}
}

// findUnmatched notes the patterns that match no log.
func (f *follower) findUnmatched(p *poll) {
	for _, pattern := range f.patterns {
		isFound := false
		for _, x := range f.files {
			isFound = isFound || matches(pattern, x.log)
		}
		if !isFound && p.errs[pattern] == nil {
			p.errs[pattern] = errNoLog
		}
	}
}

// count adds what a poll has found to the logs, and returns how many lines there were by what became of them.
func (f *follower) count(p *poll) (read map[string]int) {
	read = make(map[string]int)
	f.mu.Lock()
	defer f.mu.Unlock()
	log := func(path string) *Log {
		if f.logs[path] == nil {
			f.logs[path] = &Log{Path: path, Lines: make(map[string]int)}
		}
		return f.logs[path]
	}
	// An error holds for one poll. A pattern is no log, and is shown only while nothing matches it.
	maps.DeleteFunc(f.logs, func(path string, log *Log) bool {
		log.Error = ""
		return len(log.Lines) == 0 && slices.Contains(f.patterns, path)
	})
	for _, x := range f.files {
		log(x.log)
	}
	for path, err := range p.errs {
		log(path).Error = err.Error()
	}
	for of, n := range p.lines {
		log(of.log).Lines[of.result] += n
		read[of.result] += n
	}
	for _, log := range f.logs {
		log.sample(p.unread[log.Path])
	}
	return read
}

// Logs returns what was read of each log since the follower was made, by path.
func (f *follower) Logs() []Log {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []Log
	for _, path := range slices.Sorted(maps.Keys(f.logs)) {
		log := *f.logs[path]
		log.Lines = maps.Clone(log.Lines)
		all = append(all, log)
	}
	return all
}

// findMissing looks for files that are there under their names no more, such as logs that were truncated, in
// all other files of their folders: they may have been copied or renamed.
func (f *follower) findMissing(ctx context.Context, found map[string]bool, line func(string, []byte)) {
	for log, keys := range f.newlyMissing(ctx, found) {
		match := func(path string) string {
			if filepath.Dir(path) != filepath.Dir(log) || f.files[path] != nil {
				return ""
			}
			return log
		}
		for _, x := range f.list(match, make(map[string]error)) {
			// A file that cannot be read is none that was to be read.
			_ = f.read(ctx, x, keys, line)
		}
	}
}

// newlyMissing returns the keys of positions, by log, whose files are there no more since the last poll. Each is looked for
// once, as that reads the first line of all other files of the folder.
func (f *follower) newlyMissing(ctx context.Context, found map[string]bool) map[string]map[string]bool {
	missing := make(map[string]map[string]bool)
	for key := range f.positions {
		if found[key] {
			delete(f.missing, key)
			continue
		}
		// The file may come back, so its position is kept, but not any number of them.
		if len(f.positions) > 2*maxFiles {
			delete(f.positions, key)
			delete(f.missing, key)
			continue
		}
		if f.missing[key] || ctx.Err() != nil {
			continue
		}
		f.missing[key] = true
		log := key[:max(strings.LastIndexByte(key, ' '), 0)]
		if missing[log] == nil {
			missing[log] = make(map[string]bool)
		}
		missing[log][key] = true
	}
	return missing
}

// list returns the files to be read that match gives a log for, the newest of them, with the oldest first.
func (f *follower) list(match func(path string) string, errs map[string]error) []*file {
	var files []*file
	for folder := range f.folders() {
		entries, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs[folder] = err
		}
		for _, entry := range entries {
			path := filepath.Join(folder, entry.Name())
			x := &file{path: path, log: match(path)}
			if x.log == "" {
				continue
			}
			x.info, err = os.Stat(path)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs[x.log] = err
			}
			if err == nil && x.info.Mode().IsRegular() && f.now().Sub(x.info.ModTime()) <= f.history {
				files = append(files, x)
			}
		}
	}
	slices.SortFunc(files, func(a, b *file) int {
		return cmp.Or(a.info.ModTime().Compare(b.info.ModTime()), strings.Compare(a.path, b.path))
	})
	return files[max(len(files)-maxFiles, 0):]
}

// folders returns the folders in which logs may be.
func (f *follower) folders() map[string]bool {
	folders := make(map[string]bool)
	for _, pattern := range f.patterns {
		// The name of a folder may have a letter of patterns in it, so it is taken as it is, too.
		folder := filepath.Dir(pattern)
		folders[folder] = true
		matching, _ := filepath.Glob(folder)
		for _, folder := range matching {
			folders[folder] = true
		}
	}
	return folders
}

// rolled matches the names of files that a log was rolled to:
//
//	access-2026-11-21T01-35-51.000-size.log   timberjack's, which is Caddy's
//	access-2026-11-21T01-35-51.000.log        lumberjack's, which was Caddy's
//	access.log-20261121                       logrotate's with dateext
//	access-20261121.log                       and with extension .log
//	access.log.2026-11-21-00_00_00            Apache's rotatelogs
//	access.log.1795226077                     and with a time
//	access.log.1
var rolled = regexp.MustCompile(`^(.+?)(?:[-._](?:19|20)\d\d[-._]?(?:0[1-9]|1[0-2])[-._]?(?:0[1-9]|[12]\d|3[01])(?:[-T._:]?\d+)*Z?` +
	`(?:-[a-z0-9_]+)?(\.[A-Za-z][A-Za-z0-9]*)?|\.(?:\d{1,5}|\d{10}))$`)

// matches reports whether a pattern, or a name, is that of a log.
func matches(pattern, log string) bool {
	ok, _ := filepath.Match(pattern, log)
	return ok || pattern == log
}

// logOf returns the log of a path: itself, or what it was rolled from; "": it is of none.
func (f *follower) logOf(path string) string {
	bare := path
	if ext := filepath.Ext(path); ext == ".gz" || ext == ".zst" {
		bare = strings.TrimSuffix(path, ext)
	}
	for _, name := range []string{rolled.ReplaceAllString(filepath.Base(bare), "$1$2"), filepath.Base(bare), filepath.Base(path)} {
		log := filepath.Join(filepath.Dir(path), name)
		for _, pattern := range f.patterns {
			if !matches(pattern, log) {
				continue
			}
			// Beside the file that it was made of, a compressed one is a copy that may still be written.
			_, err := os.Lstat(bare)
			if err == nil && bare != path {
				return ""
			}
			return log
		}
	}
	return ""
}

// read reads on where a file was left; if only is not nil, a file with one of these keys.
func (f *follower) read(ctx context.Context, x *file, only map[string]bool, line func(string, []byte)) error {
	opened, err := os.Open(x.path)
	// It was rolled since the folder was read: the next poll finds it under its other name.
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer opened.Close()
	var r io.Reader = contextFile{opened, ctx}
	isOld := f.now().Sub(x.info.ModTime()) > timeGrain
	ext := filepath.Ext(x.path)
	switch ext {
	case ".gz":
		r, err = gzip.NewReader(bufio.NewReader(r))
		// An empty file is one whose beginning is still to be written, and no log of no lines.
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
	case ".zst":
		var z *zstd.Decoder
		z, err = zstd.NewReader(r,
			zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow))
		if err == nil {
			defer z.Close()
		}
		r = z
	}
	if err == nil {
		err = f.readLines(x, r, only, line)
	}
	if ext != ".gz" && ext != ".zst" {
		x.done = err == nil && isOld
		return err
	}
	// A compressed file grows no more, and one that is damaged stays so until it is replaced.
	x.done = ctx.Err() == nil
	if err != nil {
		err = fmt.Errorf("uncompressing %s: %w", x.path, err)
	}
	return err
}

// readLines reads on in what a file has, uncompressed.
func (f *follower) readLines(x *file, r io.Reader, only map[string]bool, line func(string, []byte)) error {
	head := make([]byte, maxHead)
	n, _ := io.ReadFull(r, head) // an error comes again below
	first, _, isWhole := bytes.Cut(head[:n], []byte("\n"))
	if isWhole || n == maxHead {
		x.key = fmt.Sprintf("%s %016x", x.log, xxhash.Sum64(first))
	}
	if only != nil && !only[x.key] {
		return nil
	}
	offset := f.positions[x.key]
	var err error
	if file, ok := r.(io.Seeker); ok {
		// It begins with the same line as before it was cut, and all of it is new.
		if x.key == x.cut {
			offset = 0
		}
		_, err = file.Seek(offset, io.SeekStart)
	} else {
		r = io.MultiReader(bytes.NewReader(head[:n]), r)
		_, err = io.CopyN(io.Discard, r, offset)
	}
	if err == nil {
		var read int64
		read, err = f.handOn(r, func(b []byte) { line(x.log, b) })
		offset += read
	}
	if x.key != "" {
		f.positions[x.key] = offset
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// handOn calls line for each line that has an end, and returns how many bytes they have. The error is io.EOF, or why reading has
// ended before.
func (f *follower) handOn(r io.Reader, line func(b []byte)) (read int64, err error) {
	f.buf.Reset(r)
	isLong := false // the line goes on beyond what fits into buf
	for {
		b, err := f.buf.ReadSlice('\n')
		if err != nil && err != bufio.ErrBufferFull {
			return read, err
		}
		if !isLong {
			line(bytes.TrimSuffix(b, []byte("\n")))
		}
		isLong = err != nil
		read += int64(len(b))
	}
}

// contextFile is a file that can be read while a context lasts.
type contextFile struct {
	*os.File
	ctx context.Context
}

func (f contextFile) Read(b []byte) (int, error) {
	if err := f.ctx.Err(); err != nil {
		return 0, err
	}
	return f.File.Read(b)
}
