package sitemapxml

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"
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
	entries := newEntries(document)
	out := make([]byte, 0, flushBytes+maxLine)
	flush := func() error {
		k, err := w.Write(out)
		n += int64(k)
		out = out[:0]
		return err
	}
	for {
		more, err := entries.next(nil)
		if err != nil {
			return n, err
		}
		if !more {
			return n, flush()
		}
		out = append(append(out, entries.loc...), '\n')
		if len(out) >= flushBytes {
			if err := flush(); err != nil {
				return n, err
			}
		}
	}
}

// URL is an entry of a urlset, with what its elements say.
type URL struct {
	Loc, LastMod, ChangeFreq, Priority string
	Line                               int // from 1
}

// Find reads the entry of a URL from a document that a [URLSet] wrote, uncompressed,
// up to its extensions. It reads no further than that; the errors are those of
// [WriteText].
func Find(document io.Reader, loc string) (entry URL, found bool, err error) {
	entries := newEntries(document)
	entries.keep = true
	for {
		more, err := entries.next(nil)
		if err != nil || !more {
			return URL{}, false, err
		}
		if string(entries.loc) != loc {
			continue
		}
		return URL{
			Loc: loc, Line: entries.line, LastMod: element(entries.rest, "lastmod"),
			ChangeFreq: element(entries.rest, "changefreq"), Priority: element(entries.rest, "priority"),
		}, true, nil
	}
}

// element is the text of the first element of a name, which has no entities in it.
func element(line []byte, name string) string {
	_, rest, _ := bytes.Cut(line, []byte("<"+name+">"))
	text, _, ok := bytes.Cut(rest, []byte("</"+name+">"))
	if !ok {
		return ""
	}
	return string(text)
}

// entries goes through the entries of a document that a [URLSet] wrote.
type entries struct {
	r    *bufio.Reader
	line int
	loc  []byte // of the last entry, decoded; valid until the next

	keep bool
	rest []byte // what follows loc up to at least the extensions, if that is kept
}

func newEntries(document io.Reader) *entries {
	return &entries{r: bufio.NewReaderSize(document, maxLine)}
}

// next goes to the next entry, all bytes of which it adds to the digest if there is
// one. A false means that the document has ended. The errors are those of [WriteText].
func (e *entries) next(digest *xxhash.Digest) (bool, error) {
	for {
		line, err := e.r.ReadSlice('\n')
		e.line++
		long := err == bufio.ErrBufferFull
		switch {
		case err == io.EOF:
			return false, io.ErrUnexpectedEOF
		case err != nil && !long:
			return false, err
		}
		switch loc, rest, ok := cutLoc(line); {
		case ok && e.line > 2:
			e.loc = appendDecoded(e.loc[:0], loc)
			if e.keep {
				e.rest = append(e.rest[:0], rest...)
			}
			return true, e.end(line, long, digest)
		case e.line == 1 && string(line) == declaration:
		case e.line == 2 && bytes.HasPrefix(line, []byte(urlSetOpen)):
		case e.line > 2 && string(line) == urlSetClose:
			return false, nil
		default:
			return false, fmt.Errorf("line %d: %w", e.line, ErrForeign)
		}
	}
}

// end goes to the end of an entry's line, of which the beginning is given.
func (e *entries) end(line []byte, long bool, digest *xxhash.Digest) (err error) {
	if digest != nil {
		_, _ = digest.Write(line)
	}
	if long {
		if line, err = restOfLine(e.r, line, digest); err != nil {
			return err
		}
	}
	if !bytes.HasSuffix(line, []byte(urlClose)) {
		return fmt.Errorf("line %d: %w", e.line, ErrForeign)
	}
	return nil
}

// cutLoc is the loc of an entry's line, or of what it begins with, as XML text, and
// what follows it.
func cutLoc(line []byte) (loc, rest []byte, ok bool) {
	rest, ok = bytes.CutPrefix(line, []byte(urlOpen))
	end := bytes.IndexByte(rest, '<')
	if !ok || end < 0 {
		return nil, nil, false
	}
	return rest[:end], rest[end:], bytes.HasPrefix(rest[end:], []byte(locClose))
}

// restOfLine reads a line to its end, and returns at least the last bytes of it
// that tell whether it is an entry's. What it reads is added to the digest, if there is
// one.
func restOfLine(r *bufio.Reader, line []byte, digest *xxhash.Digest) ([]byte, error) {
	var last []byte
	for {
		last = append(last, line[max(len(line)-len(urlClose), 0):]...)
		last = last[max(len(last)-len(urlClose), 0):]
		if bytes.HasSuffix(last, []byte("\n")) {
			return last, nil
		}
		var err error
		line, err = r.ReadSlice('\n')
		if digest != nil {
			_, _ = digest.Write(line)
		}
		switch err {
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
