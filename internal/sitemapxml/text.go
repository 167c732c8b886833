package sitemapxml

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
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
	out := bufio.NewWriterSize(w, flushBytes)
	for {
		more, err := entries.next()
		if err != nil {
			return n, err
		}
		if !more {
			return n, out.Flush()
		}
		k, err := out.Write(append(entries.loc, '\n'))
		if n += int64(k); err != nil {
			return n, err
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
	for {
		more, err := entries.next()
		if err != nil || !more {
			return URL{}, false, err
		}
		if string(entries.loc) == loc {
			return URL{
				Loc: loc, Line: entries.line, LastMod: element(entries.rest, "lastmod"),
				ChangeFreq: element(entries.rest, "changefreq"), Priority: element(entries.rest, "priority"),
			}, true, nil
		}
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

// entries goes through the entries of a document that a [URLSet] wrote. What is said of an entry
// is valid until the next.
type entries struct {
	r    *bufio.Reader
	line int
	loc  []byte // decoded
	rest []byte // what follows the loc, up to at least the extensions
}

func newEntries(document io.Reader) *entries {
	return &entries{r: bufio.NewReaderSize(document, maxLine)}
}

// next goes to the next entry. A false means that the document has ended. The errors are those of
// [WriteText].
func (e *entries) next() (bool, error) {
	for {
		line, err := e.readLine()
		if err != nil {
			return false, err
		}
		rest, isEntry := bytes.CutPrefix(line, []byte(urlOpen))
		loc, rest, hasLoc := bytes.Cut(rest, []byte(locClose))
		switch {
		case e.line == 1 && string(line) == declaration:
		case e.line == 2 && bytes.HasPrefix(line, []byte(urlSetOpen)):
		case e.line > 2 && isEntry && hasLoc && bytes.HasSuffix(rest, []byte(urlClose)):
			e.loc, e.rest = appendDecoded(e.loc[:0], loc), rest
			return true, nil
		case e.line > 2 && string(line) == urlSetClose:
			return false, nil
		default:
			return false, fmt.Errorf("line %d: %w", e.line, ErrForeign)
		}
	}
}

// readLine reads a line. Of a long one it returns the beginning and the end.
func (e *entries) readLine() ([]byte, error) {
	e.line++
	line, err := e.r.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		line = bytes.Clone(line)
		end := line
		for err == bufio.ErrBufferFull {
			tail := bytes.Clone(end[max(len(end)-len(urlClose), 0):])
			end, err = e.r.ReadSlice('\n')
			end = append(tail, end...)
		}
		line = append(line, end[max(len(end)-len(urlClose), 0):]...)
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return line, err
}

// decoder decodes the five named entities.
var decoder = strings.NewReplacer("&amp;", "&", "&apos;", "'", "&quot;", `"`, "&lt;", "<", "&gt;", ">")

// appendDecoded appends XML text with its entities decoded.
func appendDecoded(dst, text []byte) []byte {
	if bytes.IndexByte(text, '&') < 0 {
		return append(dst, text...)
	}
	return append(dst, decoder.Replace(string(text))...)
}
