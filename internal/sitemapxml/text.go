package sitemapxml

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// ErrForeign says that a document was not written by a [URLSet].
var ErrForeign = errors.New("not a urlset of this package")

// maxLine bounds what a line of a document has up to its extensions: a URL that may
// be listed has at most 2,047 characters of at most 6 bytes each, and all else comes
// to some 130. Extensions may be megabytes.
const maxLine = 64 << 10

// WriteText writes the URLs of a document to w, one a line with a line feed behind
// each, as the protocol's text form wants them
// (https://www.sitemaps.org/protocol.html#otherformats). The document is one that a
// [URLSet] wrote, uncompressed; of any other the error is [ErrForeign], and of one
// that ends too early [io.ErrUnexpectedEOF]. n is the number of bytes written, which
// for a whole document is the sum of [TextSize].
func WriteText(w io.Writer, document io.Reader) (n int64, err error) {
	r := bufio.NewReaderSize(document, maxLine)
	out := make([]byte, 0, flushBytes+maxLine)
	flush := func() error {
		k, err := w.Write(out)
		n += int64(k)
		out = out[:0]
		return err
	}
	for number := 1; ; number++ {
		line, err := r.ReadSlice('\n')
		long := err == bufio.ErrBufferFull
		switch {
		case err == io.EOF:
			return n, io.ErrUnexpectedEOF
		case err != nil && !long:
			return n, err
		}
		switch loc, ok := cutLoc(line); {
		case ok && number > 2:
			out = append(appendDecoded(out, loc), '\n')
			if long {
				line, err = restOfLine(r, line)
			}
			switch {
			case err != nil:
				return n, err
			case !bytes.HasSuffix(line, []byte(urlClose)):
				return n, fmt.Errorf("line %d: %w", number, ErrForeign)
			}
		case number == 1 && string(line) == declaration:
		case number == 2 && bytes.HasPrefix(line, []byte(urlSetOpen)):
		case number > 2 && string(line) == urlSetClose:
			return n, flush()
		default:
			return n, fmt.Errorf("line %d: %w", number, ErrForeign)
		}
		if len(out) >= flushBytes {
			if err := flush(); err != nil {
				return n, err
			}
		}
	}
}

// cutLoc is the loc of an entry's line, or of what it begins with, as XML text.
func cutLoc(line []byte) (loc []byte, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte(urlOpen))
	end := bytes.IndexByte(rest, '<')
	if !ok || end < 0 {
		return nil, false
	}
	return rest[:end], bytes.HasPrefix(rest[end:], []byte(locClose))
}

// restOfLine reads a line to its end, and returns at least the last bytes of it
// that tell whether it is an entry's.
func restOfLine(r *bufio.Reader, line []byte) ([]byte, error) {
	var last []byte
	for {
		last = append(last, line[max(len(line)-len(urlClose), 0):]...)
		last = last[max(len(last)-len(urlClose), 0):]
		if bytes.HasSuffix(last, []byte("\n")) {
			return last, nil
		}
		var err error
		switch line, err = r.ReadSlice('\n'); err {
		case nil, bufio.ErrBufferFull:
		case io.EOF:
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}

// appendDecoded appends XML text with the five named entities decoded.
func appendDecoded(dst, text []byte) []byte {
	for {
		i := bytes.IndexByte(text, '&')
		if i < 0 {
			return append(dst, text...)
		}
		dst = append(dst, text[:i]...)
		text = text[i:]
		n := 1
		c := byte('&')
		for _, special := range []byte(`&'"<>`) {
			if e := entities[special]; bytes.HasPrefix(text, []byte(e)) {
				c, n = special, len(e)
				break
			}
		}
		dst = append(dst, c)
		text = text[n:]
	}
}
