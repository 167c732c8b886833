package urllist

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/unicode"
)

// CharsetError is the name of a charset that a document declares and that cannot be read.
type CharsetError string

func (e CharsetError) Error() string {
	return fmt.Sprintf("the charset %q is unknown: save the document in UTF-8", string(e))
}

// DecodeStart returns the document that b reads, in UTF-8 and without its byte order mark, as far as its first bytes
// tell the charset (https://www.w3.org/TR/xml/#sec-guessing). name is "UTF-8" or "UTF-16" where they do; what the
// document declares then does not count (RFC 7303, section 3). It is "" where they do not: b is returned as it is.
func DecodeStart(b *bufio.Reader) (r io.Reader, name string) {
	start, _ := b.Peek(3)
	switch {
	case bytes.HasPrefix(start, []byte("\uFEFF")):
		_, _ = b.Discard(len("\uFEFF"))
		return b, "UTF-8"
	case bytes.HasPrefix(start, []byte("\xff\xfe")):
		return unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder().Reader(b), "UTF-16"
	case bytes.HasPrefix(start, []byte("\xfe\xff")):
		return unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewDecoder().Reader(b), "UTF-16"
	}
	return b, ""
}

// DecodeDeclared is the [encoding/xml.Decoder.CharsetReader] of documents whose start does not tell their charset. Its
// error is a [CharsetError].
func DecodeDeclared(label string, in io.Reader) (io.Reader, error) {
	encoding, name := charset.Lookup(label)
	switch {
	case encoding == nil:
		return nil, CharsetError(label)
	case name == "replacement":
		// It stands for charsets that are unsafe, and decodes to nothing (https://encoding.spec.whatwg.org/#replacement).
		return nil, CharsetError(label)
	case strings.HasPrefix(name, "utf-16"):
		// The declaration was read byte by byte, so the text cannot be UTF-16. Programs that write XML into a string
		// and save that as UTF-8 leave such a declaration.
		return in, nil
	}
	return encoding.NewDecoder().Reader(in), nil
}

// DecodeNothing is the [encoding/xml.Decoder.CharsetReader] of documents that are decoded already.
func DecodeNothing(_ string, in io.Reader) (io.Reader, error) { return in, nil }
