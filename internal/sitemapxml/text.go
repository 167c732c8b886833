package sitemapxml

import (
	"bufio"
	"bytes"
	"io"
	"iter"
	"strings"
)

// maxLine bounds what a line of a document has up to its extensions: a URL that may
// be listed has at most 2,047 characters of at most 6 bytes each, and all else comes
// to some 130. Extensions may be megabytes.
const maxLine = 64 << 10

// WriteText writes the URLs of a document to w, one a line with a line feed behind
// each, as the protocol's text form wants them
// (https://www.sitemaps.org/protocol.html#otherformats). The document is one that a
// [URLSet] wrote, uncompressed; the error of one that ends too early is
// [io.ErrUnexpectedEOF]. The bytes written for a whole document are the sum of
// [TextSize].
func WriteText(w io.Writer, document io.Reader) error {
	out := bufio.NewWriterSize(w, 64<<10)
	for e, err := range entries(document) {
		if err == nil {
			_, err = out.Write(append(e.loc, '\n'))
		}
		if err != nil {
			return err
		}
	}
	return out.Flush()
}

// Hints is what an entry of a urlset says besides its URL.
type Hints struct{ LastMod, ChangeFreq, Priority string }

// Find reads the entry of a URL from a document that a [URLSet] wrote, uncompressed. It
// reads no further than that.
func Find(document io.Reader, loc string) (h Hints, found bool, err error) {
	for e, err := range entries(document) {
		if err != nil {
			return h, false, err
		}
		if string(e.loc) == loc {
			return Hints{e.element("lastmod"), e.element("changefreq"), e.element("priority")}, true, nil
		}
	}
	return h, false, nil
}

// entry is one of a document that a [URLSet] wrote, valid until the next.
type entry struct {
	loc  []byte // decoded
	rest []byte // what follows the loc, up to at least the extensions
}

// element is the text of the first element of a name, which has no entities in it.
func (e entry) element(name string) string {
	_, rest, _ := bytes.Cut(e.rest, []byte("<"+name+">"))
	text, _, _ := bytes.Cut(rest, []byte("</"))
	return string(text)
}

// entries are those of a document.
func entries(document io.Reader) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		r := bufio.NewReaderSize(document, maxLine)
		var e entry
		for {
			line, err := r.ReadSlice('\n')
			rest, isEntry := bytes.CutPrefix(line, []byte(urlOpen))
			loc, rest, isWhole := bytes.Cut(rest, []byte(locClose))
			if isEntry && isWhole {
				e.loc, e.rest = appendDecoded(e.loc[:0], loc), rest
				if !yield(e, nil) {
					return
				}
			}
			for err == bufio.ErrBufferFull {
				_, err = r.ReadSlice('\n')
			}
			switch {
			case err == io.EOF:
				yield(entry{}, io.ErrUnexpectedEOF)
				return
			case err != nil:
				yield(entry{}, err)
				return
			case string(line) == urlSetClose:
				return
			}
		}
	}
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
