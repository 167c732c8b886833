package visits

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const (
	maxLine  = 64 << 10 // bytes of a line that are handed on
	maxFiles = 1000     // that are looked at, rolled ones included

	// maxPast is how many bytes of a log are read at a time, with the files that it was rolled to, uncompressed.
	maxPast = 256 << 20

	// maxWindow bounds what a zstd file makes its reader hold. Level 19 uses 8 MiB, and what --ultra and
	// --long ask for beyond this is refused.
	maxWindow = 32 << 20
)

// missing is why there is nothing to read of a log.
const missing = "it does not exist, or was last written before 'history'"

// file is a log, or one that a log was rolled to.
type file struct {
	path, log string
	info      fs.FileInfo // nil: it could not be opened
	end       int64       // of what was read of it; of a compressed one, it plays no part
	err       error       // why not all of it could be read
}

// read hands on the lines that were written since the last time; line may use the bytes until it returns. Files that were
// last written before oldest are not read.
func (r *Reader) read(ctx context.Context, oldest time.Time, line func(log *Log, b []byte)) {
	for _, log := range r.logs {
		log.Error = ""
	}
	files := r.list(oldest)
	read := make(map[string]int64) // bytes of each log
	for _, x := range files {
		if x.goOn(r.files) {
			most := max(maxPast-read[x.log], 0)
			read[x.log] += x.read(ctx, most, func(b []byte) { line(r.log(x.log), b) })
		}
		r.fail(x.log, x.err)
	}
	r.files = files
}

// list returns the files of all logs, the newest first, but for those that were last written before oldest.
func (r *Reader) list(oldest time.Time) (files []*file) {
	for _, pattern := range r.Files {
		found := r.filesOf(pattern, oldest)
		if len(found) == 0 && r.log(pattern).Error == "" {
			r.log(pattern).Error = missing
			_, err := os.ReadDir(filepath.Dir(pattern))
			r.fail(pattern, err)
		}
		files = append(files, found...)
	}
	slices.SortFunc(files, func(a, b *file) int { return b.info.ModTime().Compare(a.info.ModTime()) })
	return files[:min(len(files), maxFiles)]
}

// filesOf returns the files of the logs that a pattern names.
func (r *Reader) filesOf(pattern string, oldest time.Time) (files []*file) {
	// What a log was rolled to begins with its name.
	stem := strings.TrimSuffix(pattern, filepath.Ext(pattern))
	paths, _ := filepath.Glob(stem + "*")
	// A folder that may be entered, but not read, shows the log that is named and nothing else.
	if !slices.Contains(paths, pattern) {
		paths = append(paths, pattern)
	}
	for _, path := range paths {
		log := logOf(path, pattern)
		if log == "" || isCopy(path) {
			continue
		}
		info, err := os.Stat(path)
		r.fail(log, err)
		if err == nil && info.Mode().IsRegular() && !info.ModTime().Before(oldest) {
			files = append(files, &file{path: path, log: log, info: info})
		}
	}
	return files
}

// rolled matches the names of files that a log was rolled to, which may be compressed:
//
//	access-2026-11-21T01-35-51.000-size.log   timberjack's, which is Caddy's
//	access-2026-11-21T01-35-51.000.log        lumberjack's, which was Caddy's
//	access.log-20261121                       logrotate's with dateext
//	access-20261121.log                       and with extension .log
//	access.log.2026-11-21-00_00_00            Apache's rotatelogs
//	access.log.1795226077                     and with a time
//	access.log.1
var rolled = regexp.MustCompile(`^(.+?)` +
	`(?:[-._](?:19|20)\d\d[-._]?(?:0[1-9]|1[0-2])[-._]?(?:0[1-9]|[12]\d|3[01])(?:[-T._:]?\d+)*Z?` +
	`(?:-[a-z0-9_]+)?(\.[A-Za-z][A-Za-z0-9]*)??|\.(?:\d{1,5}|\d{10}))?(?:\.gz|\.zst)?$`)

// logOf returns the log of a path: itself, or what it was rolled from; "": it is none of a pattern.
func logOf(path, pattern string) string {
	folder, name := filepath.Split(path)
	for _, name := range []string{rolled.ReplaceAllString(name, "$1$2"), name} {
		log := filepath.Join(folder, name)
		if ok, _ := filepath.Match(pattern, log); ok || log == pattern {
			return log
		}
	}
	return ""
}

// isCopy reports whether a file is a compressed one beside the file that it was made of, which may still be written.
func isCopy(path string) bool {
	bare := strings.TrimSuffix(strings.TrimSuffix(path, ".gz"), ".zst")
	_, err := os.Lstat(bare)
	return bare != path && err == nil
}

// goOn takes over what the last poll has read of a file, under whichever name, and reports whether there may be more.
func (x *file) goOn(before []*file) bool {
	for _, was := range before {
		if !os.SameFile(was.info, x.info) {
			continue
		}
		x.err = was.err
		isTruncated := x.info.Size() < was.end
		if !isTruncated {
			x.end = was.end
		}
		return x.info.Size() != was.info.Size() || !x.info.ModTime().Equal(was.info.ModTime())
	}
	return true
}

// read hands on the lines that were not read yet, and returns how many bytes they have. Of a line of over 64 KiB, line gets
// the beginning. One whose end is not written yet is left for later. If there are more than most bytes, only the last ones
// are read, or the first ones of a compressed file.
func (x *file) read(ctx context.Context, most int64, line func([]byte)) (n int64) {
	opened, err := os.Open(x.path)
	if err != nil {
		// The next poll tries it again. It may have been rolled since the folder was read.
		x.info = nil
		x.err = err
		return 0
	}
	defer opened.Close()
	text, err := x.seek(opened, most)
	start := max(x.end-1, 0)
	if err == nil {
		n, err = handOn(ctx, io.LimitReader(text, most+1), x.end > 0, line)
	}
	x.end = max(x.end, start+n)
	x.err = nil
	if err != io.EOF {
		x.err = fmt.Errorf("reading %s: %w", x.path, err)
	}
	return n
}

// seek returns what is to be read of an opened file. If that begins within a line, what is left of it comes first: it ends
// with the first line end, which may be the byte before x.end.
func (x *file) seek(opened *os.File, most int64) (io.Reader, error) {
	switch filepath.Ext(x.path) {
	case ".gz":
		x.end = 0
		return gzip.NewReader(opened)
	case ".zst":
		x.end = 0
		return zstd.NewReader(opened,
			zstd.WithDecoderConcurrency(1), // so there is nothing to close
			zstd.WithDecoderMaxWindow(maxWindow))
	}
	x.end = max(x.end, x.info.Size()-most)
	_, err := opened.Seek(max(x.end-1, 0), io.SeekStart)
	return opened, err
}

// handOn calls line for each line that has an end, but for the first if that is a part of one. It returns how many bytes
// were passed, and as error [io.EOF], or why reading has ended before.
func handOn(ctx context.Context, text io.Reader, isPart bool, line func(b []byte)) (n int64, err error) {
	lines := bufio.NewReaderSize(text, maxLine)
	for ctx.Err() == nil {
		b, err := lines.ReadSlice('\n')
		if err != nil && err != bufio.ErrBufferFull {
			return n, err
		}
		if !isPart {
			line(b)
		}
		// A line that goes on beyond what fits into the buffer.
		isPart = err != nil
		n += int64(len(b))
	}
	return n, io.EOF // an interruption is no error of the file
}
