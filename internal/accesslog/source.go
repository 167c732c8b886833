package accesslog

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// maxWindow bounds what a zstd file makes its reader hold. Level 19 uses 8 MiB, and
// what --ultra and --long ask for beyond this is refused.
const maxWindow = 32 << 20

var (
	errNotRegular = errors.New("not a regular file")
	errReplaced   = errors.New("replaced")
	errCutShort   = errors.New("cut short")
)

// open opens a regular file, and nothing else: it was one a moment ago.
func open(path string, want id) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|dontBlock, 0)
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	switch {
	case err != nil:
	case !fi.Mode().IsRegular():
		err = errNotRegular
	case want != id{} && idOf(fi) != want:
		err = errReplaced
	default:
		return f, nil
	}
	f.Close()
	return nil, err
}

// source gives a file's bytes, uncompressed.
type source interface {
	// window returns the bytes from an offset on, size of them. If there are fewer,
	// err says why: io.EOF at the file's end. They are valid until the next call.
	window(from int64, size int) (b []byte, err error)
	release() // it may be gone on with
}

// plainFile is the source of a file that is not compressed. The buffer outlives it.
type plainFile struct {
	file *os.File
	buf  *[]byte
}

func (p plainFile) window(from int64, size int) ([]byte, error) {
	if len(*p.buf) < size {
		*p.buf = make([]byte, size)
	}
	n, err := p.file.ReadAt((*p.buf)[:size], from)
	return (*p.buf)[:n], err
}

func (p plainFile) release() { p.file.Close() }

// stream is the source of a compressed file, which can only be read onwards.
type stream struct {
	file  *os.File
	from  io.Reader
	stop  func()
	buf   []byte
	start int64 // the offset of buf
	err   error
}

func newStream(f *os.File, p packing) (*stream, error) {
	s := &stream{file: f, stop: func() {}}
	switch p {
	case gzipped:
		// An empty file is cut short, too: gzip has at least 20 bytes.
		r, err := gzip.NewReader(bufio.NewReaderSize(f, 64<<10))
		if err != nil {
			return nil, unpacking(err)
		}
		s.from = r
	default:
		r, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(1<<62))
		if err != nil {
			return nil, unpacking(err)
		}
		s.from, s.stop = r, r.Close
	}
	return s, nil
}

func unpacking(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errCutShort
	}
	return fmt.Errorf("uncompressing: %w", err)
}

func (*stream) release() {}

func (s *stream) close() {
	s.stop()
	s.file.Close()
}

// skip reads on to an offset.
func (s *stream) skip(ctx context.Context, to int64) error {
	for s.err == nil && s.start+int64(len(s.buf)) < to {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.start += int64(len(s.buf))
		s.buf = s.buf[:0]
		s.fill(int(min(to-s.start, chunk)))
	}
	return nil
}

// fill reads until buf has size bytes.
func (s *stream) fill(size int) {
	if cap(s.buf) < size {
		s.buf = append(make([]byte, 0, size), s.buf...)
	}
	for len(s.buf) < size && s.err == nil {
		n, err := s.from.Read(s.buf[len(s.buf):size])
		s.buf = s.buf[:len(s.buf)+n]
		switch {
		case err == io.EOF:
			s.err = io.EOF
		case err != nil:
			s.err = unpacking(err)
		}
	}
}

func (s *stream) window(from int64, size int) ([]byte, error) {
	read := min(from-s.start, int64(len(s.buf)))
	s.buf = s.buf[:copy(s.buf, s.buf[read:])]
	s.start += read
	if s.start < from { // the end came before
		return nil, s.err
	}
	s.fill(size)
	if len(s.buf) >= size {
		return s.buf[:size], nil
	}
	return s.buf, s.err
}

// headOf reads a file's head. It may be shorter than it should be together with an
// error, if the file is damaged.
func headOf(path string, want id, p packing) ([]byte, error) {
	f, err := open(path, want)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if p == plain {
		return plainHead(f)
	}
	s, err := newStream(f, p)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	s.fill(headSize)
	if s.err == io.EOF {
		return s.buf, nil
	}
	return s.buf, s.err
}

func plainHead(f *os.File) ([]byte, error) {
	head := make([]byte, headSize)
	n, err := f.ReadAt(head, 0)
	if err == io.EOF {
		err = nil
	}
	return head[:n:n], err
}

// reasonOf is why a file with this error is passed over.
func reasonOf(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return NoPermission
	case errors.Is(err, errNotRegular):
		return NotRegular
	case errors.Is(err, errCutShort):
		return CutShort
	}
	var e *fs.PathError
	if errors.As(err, &e) {
		return Unreadable
	}
	return Damaged
}
