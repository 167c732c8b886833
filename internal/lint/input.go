package lint

import (
	"bufio"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
)

// flaw is what ends the reading of a document, unless its reader fails.
type flaw struct{ code, message string }

func (f *flaw) Error() string { return f.message }

var (
	errTruncated = &flaw{"gzip", "is a gzip file that ends too early"}
	errCorrupt   = &flaw{"gzip", "is a corrupt gzip file, or has bytes after its end"}
	errTooMuch   = &flaw{"too-large", "is so long that the check ends here"}
	errBomb      = &flaw{"too-large", "is beyond the protocol's limit and compressed so densely that the check ends here"}
	errTokenSize = &flaw{"too-large", "has a tag, text or line of more than 1 MiB"}
)

const (
	maxToken  = 1 << 20 // bytes of a tag, text, comment or line
	bombRatio = 100     // more than documents of distinct URLs compress; gzip can reach a thousand
)

// input is a document's bytes, uncompressed.
type input struct {
	*bufio.Reader
	file       *counter
	compressed bool
	total, max int64
	limit      int64 // of total, for the token being read
	err        error // that ended reading, unless it is io.EOF
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

func newInput(r io.Reader, max int64) *input {
	in := &input{file: &counter{r: r}, max: max}
	in.Reader = bufio.NewReaderSize(in.file, 64<<10)
	if magic, _ := in.Peek(2); string(magic) != "\x1f\x8b" {
		return in
	}
	in.compressed = true
	z, err := gzip.NewReader(in.Reader)
	if err != nil {
		in.err = in.explain(errors.Join(err)) // never io.EOF itself
		return in
	}
	in.Reader = bufio.NewReaderSize(z, 64<<10)
	return in
}

// ReadByte returns io.EOF only at the end of a whole document.
func (in *input) ReadByte() (byte, error) {
	if in.total < in.limit {
		c, err := in.Reader.ReadByte()
		if err == nil {
			in.total++
			return c, nil
		}
		if err = in.explain(err); err != io.EOF {
			in.err = err
		}
		return 0, err
	}
	switch {
	case in.err != nil:
	case in.total >= in.max:
		in.err = errTooMuch
	default:
		in.err = errTokenSize
	}
	return 0, in.err
}

// begin begins a token, and bounds it.
func (in *input) begin() {
	in.limit = min(in.total+maxToken, in.max)
	if in.total > maxDocument && in.compressed && in.total > bombRatio*in.file.n && in.err == nil {
		in.err = errBomb
	}
	if in.err != nil {
		in.limit = 0
	}
}

// explain tells a file that cannot be read from one that is not valid gzip.
func (in *input) explain(err error) error {
	switch {
	case in.file.err != nil:
		return in.file.err
	case !in.compressed, err == io.EOF:
		return err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errTruncated
	}
	return errCorrupt
}

// line reads up to the end of a line, which is LF, CR or both, and is cut off.
func (in *input) line() (string, error) {
	in.begin()
	var text []byte
	for {
		c, err := in.ReadByte()
		switch {
		case err == io.EOF && len(text) > 0:
			return string(text), nil
		case err != nil:
			return "", err
		case c == '\r':
			if next, _ := in.Peek(1); string(next) == "\n" {
				_, _ = in.ReadByte()
			}
			return string(text), nil
		case c == '\n':
			return string(text), nil
		}
		text = append(text, c)
	}
}
