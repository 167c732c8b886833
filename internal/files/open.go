package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// FileInfo is what is known of an opened file.
type FileInfo struct {
	Size    int64 // bytes
	ModTime int64 // as Scan lists it, in Unix seconds; 0: not known, or not believed
	Version uint32
	More    bool // the file is longer than what was read of it
}

// File is an open file. It is not safe for concurrent use.
type File struct {
	content io.ReadCloser
	info    FileInfo
}

func (f *File) Read(b []byte) (int, error) { return f.content.Read(b) }

// Close closes the file.
func (f *File) Close() error { return f.content.Close() }

// Size is how many bytes it had when it was opened.
func (f *File) Size() int64 { return f.info.Size }

// ModTime is when it was last modified, as Scan lists it: in Unix seconds, 0
// where that is not known or not believed.
func (f *File) ModTime() int64 { return f.info.ModTime }

// Version is that of [page.Page].
func (f *File) Version() uint32 { return f.info.Version }

// Open is [Opener.Open] for one file.
func Open(o Options, path string) (*File, error) {
	opener, err := NewOpener(o)
	if err != nil {
		return nil, err
	}
	return opener.Open(path)
}

// Opener opens the files that pages are read from. What it keeps from one call to
// the next is how Options apply to the last folder, nothing of the file system.
// It is not safe for concurrent use.
type Opener struct {
	rules *rules
	tree  tree
	root  string
	now   time.Time
	isFS  bool

	folder string // URL path of place, as given
	place  place
	refuse bool // nothing in the folder is listed
	name   []byte
	path   []byte
	in     info
}

// NewOpener prepares what [Scan] with the same Options lists for being opened. Of
// Options, Include, Exclude and Workers have no say in it: any file that is served
// may be opened. The error is one of Options, not of the root.
func NewOpener(o Options) (*Opener, error) {
	o.Include, o.Exclude = nil, nil
	r, err := newRules(o)
	if err != nil {
		return nil, err
	}
	p := &Opener{rules: r, now: o.Now, isFS: o.FS != nil, place: r.root()}
	p.folder, p.refuse = p.place.url, r.all
	switch {
	case p.isFS:
		p.tree, p.root = fsTree{o.FS}, path.Clean(o.Root)
	case o.Root == "":
		return nil, fmt.Errorf("opening files: no root: %w", fs.ErrNotExist)
	default:
		p.tree, p.root = newOSTree(), filepath.ToSlash(filepath.Clean(o.Root))
	}
	return p, nil
}

// Open opens the file that the page at a path of [page.Page] is read from. The
// path may be a stranger's. Where there is no such file, or it is none that a
// server would serve, the error is [fs.ErrNotExist] for [errors.Is]: so for a path
// with a query, a dot segment, a name that begins with a dot or is hidden, and
// what is neither a regular file nor a folder, which is not even opened. Other
// errors are those of the file system. Whatever the path, the file lies below
// Root, unless a symbolic link leads out of it.
//
// An fs.FS that has neither [fs.StatFS] nor [fs.ReadLinkFS] is asked what a file is
// by opening it.
func (o *Opener) Open(path string) (*File, error) {
	if err := o.find(path); err != nil {
		return nil, o.explain(path, err)
	}
	content, err := o.tree.open(o.path)
	if err != nil {
		return nil, o.explain(path, err)
	}
	return &File{content, o.info()}, nil
}

// ReadFile reads up to limit bytes of the file that [Opener.Open] would open, into
// buf from its beginning if they and one more fit in, else into a new buffer. The
// info is the file's from just before it was read.
func (o *Opener) ReadFile(path string, buf []byte, limit int) (data []byte, info FileInfo, err error) {
	if err := o.find(path); err != nil {
		return nil, FileInfo{}, o.explain(path, err)
	}
	content, err := o.tree.open(o.path)
	if err != nil {
		return nil, FileInfo{}, o.explain(path, err)
	}
	info = o.info()
	limit = min(max(limit, 0), math.MaxInt-1)
	data, err = readUpTo(content, buf[:0], info.Size, limit)
	if closeErr := content.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, FileInfo{}, o.explain(path, err)
	}
	if len(data) > limit {
		data, info.More = data[:limit], true
	}
	return data, info, nil
}

// Stat is ReadFile without opening the file.
func (o *Opener) Stat(path string) (FileInfo, error) {
	if err := o.find(path); err != nil {
		return FileInfo{}, o.explain(path, err)
	}
	return o.info(), nil
}

// readUpTo reads limit bytes and one more, which tells that there are more. size
// is how many there probably are.
func readUpTo(r io.Reader, buf []byte, size int64, limit int) ([]byte, error) {
	const least = 4 << 10
	want := limit
	if size < int64(limit) {
		want = int(max(size, 0))
	}
	for {
		if cap(buf) < want+1 {
			buf = slices.Grow(buf, max(want+1-len(buf), least))
		}
		n, err := r.Read(buf[len(buf) : want+1])
		buf = buf[:len(buf)+n]
		switch {
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return nil, err
		case len(buf) > limit:
			return buf, nil
		case len(buf) > want: // it has grown
			want = min(max(2*want, least), limit)
		case int64(len(buf)) == size:
			if _, ok := r.(fullReader); ok {
				return buf, nil
			}
		}
	}
}

// fullReader is a file that reads less than it was asked for only at its end.
type fullReader interface{ readsAll() }

func (o *Opener) info() FileInfo {
	now := o.now
	if now.IsZero() {
		now = time.Now()
	}
	return FileInfo{Size: o.in.size, ModTime: int64(believed(o.in.time, now.Unix())), Version: o.in.version}
}

func (o *Opener) explain(path string, err error) error {
	if absent(err) {
		err = fs.ErrNotExist
	}
	return fmt.Errorf("opening the file of %s: %w", path, err)
}

// absent reports whether an error says that there is no such file.
func absent(err error) bool {
	switch reasonOf(err) {
	case vanished, linkLoop, nameTooLong:
		return true
	}
	return errors.Is(err, fs.ErrInvalid) || errors.Is(err, syscall.EINVAL) || namesNothing(err)
}

// find puts the path of a regular file into o.path, and what is known of it into
// o.in.
func (o *Opener) find(path string) error {
	if len(path) > maxURL || strings.ContainsAny(path, "?#") {
		return fs.ErrNotExist
	}
	i := strings.LastIndexByte(path, '/') + 1
	if path[:i] != o.folder {
		o.enter(path[:i])
	}
	if o.refuse {
		return fs.ErrNotExist
	}
	if i == len(path) {
		return o.findIndex()
	}
	var ok bool
	if o.name, ok = appendName(o.name[:0], path[i:]); !ok {
		return fs.ErrNotExist
	}
	switch err := o.try(); {
	case err == nil && o.in.kind == kindFile:
		return nil
	case err == nil && o.in.kind != kindFolder, err != nil && !absent(err):
		return orNotExist(err)
	case !o.rules.clean || err == nil && o.rules.keepBeside:
		return fs.ErrNotExist
	}
	o.name = append(o.name, ".html"...)
	if err := o.try(); err != nil || o.in.kind == kindFile {
		return err
	}
	return fs.ErrNotExist
}

func orNotExist(err error) error {
	if err == nil {
		return fs.ErrNotExist
	}
	return err
}

// findIndex is find for the folder itself.
func (o *Opener) findIndex() error {
	for _, name := range o.rules.index {
		if name == "" || name[0] == '.' || strings.ContainsAny(name, "/\x00") || o.rules.hidesFile(&o.place, name) {
			continue
		}
		o.name = append(o.name[:0], name...)
		switch err := o.try(); {
		case err == nil && o.in.kind == kindFile:
			return nil
		case err == nil || !absent(err):
			return orNotExist(err)
		}
	}
	return fs.ErrNotExist
}

// try examines the file o.name of the folder; links are followed. A hidden one is
// there, and keeps others from being served instead, but its kind is kindOther.
func (o *Opener) try() error {
	o.path = o.path[:0]
	if o.root != "." {
		if o.path = append(o.path, o.root...); o.path[len(o.path)-1] != '/' {
			o.path = append(o.path, '/')
		}
	}
	from := len(o.path)
	if o.place.rel != "" {
		o.path = append(append(o.path, o.place.rel...), '/')
	}
	o.path = append(o.path, o.name...)
	if len(o.path) >= maxPath || refusedName(string(o.name)) || o.isFS && !fs.ValidPath(string(o.path[from:])) {
		return fs.ErrNotExist
	}
	if err := o.tree.stat(o.path, &o.in); err != nil {
		return err
	}
	if o.in.kind == kindFile && o.rules.hasHidden() && o.rules.hidesFile(&o.place, string(o.name)) {
		o.in.kind = kindOther
	}
	return nil
}

// enter makes the folder at a URL path the present one.
func (o *Opener) enter(url string) {
	r := o.rules
	o.folder, o.refuse = strings.Clone(url), true
	below, ok := strings.CutPrefix(url, r.at+"/")
	if !ok || r.all {
		return
	}
	o.place = r.root()
	for below != "" {
		var segment string
		segment, below, _ = strings.Cut(below, "/")
		raw, ok := appendName(o.name[:0], segment)
		if o.name = raw; !ok {
			return
		}
		name := string(raw)
		if refusedName(name) || r.hidesFolder(&o.place, name) || o.place.depth >= maxDepth {
			return
		}
		o.place = r.child(&o.place, name, page.Escape(name))
	}
	o.refuse = false
}

// appendName decodes one component of a path. It reports whether that is a name
// which may be served.
func appendName(dst []byte, segment string) ([]byte, bool) {
	for i := 0; i < len(segment); i++ {
		c := segment[i]
		if c == '%' {
			if i+2 >= len(segment) {
				return dst, false
			}
			high, low := hexDigit(segment[i+1]), hexDigit(segment[i+2])
			if high > 15 || low > 15 {
				return dst, false
			}
			c = high<<4 | low
			i += 2
		}
		if c == 0 || c == '/' {
			return dst, false
		}
		dst = append(dst, c)
	}
	return dst, len(dst) > 0 && dst[0] != '.'
}

// hexDigit is the value of a hexadecimal digit, and 255 of what is none.
func hexDigit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}
