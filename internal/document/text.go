package document

import (
	"bufio"
	"bytes"
	"io"
	"iter"
	"strings"
)

// maxLine bounds what a line of a document has up to its extensions: a URL that may be listed has at most 2,047
// characters of at most 6 bytes each, and all else comes to some 130. Extensions may be megabytes.
const maxLine = 64 << 10

// writeText writes the URLs of a urlset to w, one a line with a line feed behind each, as the protocol's text form
// wants them (https://www.sitemaps.org/protocol.html#otherformats). The error of a document that ends too early is
// [io.ErrUnexpectedEOF].
func writeText(w io.Writer, urlset io.Reader) error {
	out := bufio.NewWriterSize(w, 64<<10)
	for loc, err := range locs(urlset) {
		if err == nil {
			_, err = out.Write(append(loc, '\n'))
		}
		if err != nil {
			return err
		}
	}
	return out.Flush()
}

// textSize is how many bytes writeText writes of a urlset.
func textSize(urlset []byte) (size int64) {
	for loc, err := range locs(bytes.NewReader(urlset)) {
		if err == nil { // as always of a whole one
			size += int64(len(loc) + len("\n"))
		}
	}
	return size
}

// locs are the URLs of a urlset as [builder] writes it, each valid until the next.
func locs(urlset io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		r := bufio.NewReaderSize(urlset, maxLine)
		var decoded []byte
		for {
			line, err := r.ReadSlice('\n')
			rest, isEntry := bytes.CutPrefix(line, []byte(urlOpen))
			loc, _, isWhole := bytes.Cut(rest, []byte(locClose))
			if isEntry && isWhole {
				decoded = appendDecoded(decoded[:0], loc)
				if !yield(decoded, nil) {
					return
				}
			}
			// What is longer than the buffer are extensions, which stand behind the URL: they are passed over.
			for err == bufio.ErrBufferFull {
				_, err = r.ReadSlice('\n')
			}
			if err == io.EOF {
				err = io.ErrUnexpectedEOF // a whole document ends with the line below
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if string(line) == urlSetClose {
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
