package check

import (
	"bufio"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
)

// The protocol's limits of a document (https://www.sitemaps.org/protocol.html#index).
const (
	maxEntries  = 50_000
	maxDocument = 52_428_800 // bytes uncompressed
)

// What ends the reading of a document beneath its tokens.
const (
	errTruncated flaw = "is a gzip file that ends too early"
	errCorrupt   flaw = "is a corrupt gzip file"
	errTrailing  flaw = "has bytes after the end of its gzip data"
	errTooMuch   flaw = "is so long that the check ends here"
	errBomb      flaw = "is beyond the protocol's limit and compressed so densely that the check ends here"
)

// bombRatio is more than documents of distinct URLs compress. A gzip file can reach
// a thousand.
const bombRatio = 100

// input is a file's bytes, and those that it holds compressed.
type input struct {
	file   *counter
	buf    *bufio.Reader // of file
	zip    *gzip.Reader  // nil: the file is not compressed
	next   bool          // a member of zip has ended
	total  int64         // read, uncompressed
	max    int64
	broken error // what the reader beneath said, beside io.EOF
}

// counter counts what is read from a file, and keeps its error apart from those of
// decompressing it.
type counter struct {
	r   io.Reader
	n   int64
	err error
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}

// openInput returns an input whose error, if any, comes with its first Read.
func openInput(r io.Reader, max int64) *input {
	file := &counter{r: r}
	in := &input{file: file, buf: bufio.NewReaderSize(file, 32<<10), max: max}
	if isGzip(in.buf) {
		in.zip, in.broken = gzip.NewReader(in.buf)
		if in.broken == nil {
			in.zip.Multistream(false)
		}
	}
	return in
}

func isGzip(r *bufio.Reader) bool {
	magic, _ := r.Peek(2)
	return string(magic) == "\x1f\x8b"
}

// compressed reports whether the file is gzip.
func (in *input) compressed() bool { return in.zip != nil || in.broken != nil }

func (in *input) Read(p []byte) (int, error) {
	if in.broken != nil {
		return 0, in.explain(in.broken)
	}
	if in.total >= in.max {
		return 0, errTooMuch
	}
	if in.zip == nil {
		n, err := in.buf.Read(p)
		in.total += int64(n)
		return n, err
	}
	if in.total > maxDocument && in.total > bombRatio*in.file.n {
		return 0, errBomb
	}
	if in.next {
		if err := in.member(); err != nil {
			return 0, err
		}
	}
	n, err := in.zip.Read(p)
	in.total += int64(n)
	if err == io.EOF {
		in.next = true
		return n, nil
	}
	return n, in.explain(err)
}

// member begins the next gzip member: a file may have several.
func (in *input) member() error {
	if _, err := in.buf.Peek(1); err != nil {
		return err
	}
	if !isGzip(in.buf) {
		return errTrailing
	}
	if err := in.zip.Reset(in.buf); err != nil {
		return in.explain(err)
	}
	in.zip.Multistream(false)
	in.next = false
	return nil
}

// explain tells a file that cannot be read from one that is no good gzip.
func (in *input) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case in.file.err != nil:
		return in.file.err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errTruncated
	}
	return errCorrupt
}
