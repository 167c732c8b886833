package urllist

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// DecodeStart returns the document that b reads, in UTF-8 and without its byte order mark, as far as its first bytes
// tell the charset (https://www.w3.org/TR/xml/#sec-guessing). name is "UTF-8" or "UTF-16" where they do; what the
// document declares then does not count (RFC 7303, section 3). It is "" where they do not: b is returned as it is.
func DecodeStart(b *bufio.Reader) (r io.Reader, name string) {
	start, _ := b.Peek(3)
	switch {
	case bytes.HasPrefix(start, []byte("\uFEFF")):
		name = "UTF-8"
	case bytes.HasPrefix(start, []byte("\xff\xfe")), bytes.HasPrefix(start, []byte("\xfe\xff")):
		name = "UTF-16"
	default:
		return b, ""
	}
	return transform.NewReader(b, unicode.BOMOverride(transform.Nop)), name
}

// DecodeDeclared is the [encoding/xml.Decoder.CharsetReader] of documents whose start does not tell their charset.
func DecodeDeclared(label string, in io.Reader) (io.Reader, error) {
	encoding, name := charset.Lookup(label)
	// A replacement stands for charsets that are unsafe, and decodes to nothing (https://encoding.spec.whatwg.org/#replacement).
	if encoding == nil || name == "replacement" {
		return nil, fmt.Errorf("the charset %q is unknown: save the document in UTF-8", label)
	}
	// The declaration was read byte by byte, so the text cannot be UTF-16. Programs that write XML into a string and save
	// that as UTF-8 leave such a declaration.
	if strings.HasPrefix(name, "utf-16") {
		return in, nil
	}
	return encoding.NewDecoder().Reader(in), nil
}
