package html

import (
	"bytes"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
)

// toUTF8 returns body in UTF-8 (https://html.spec.whatwg.org/multipage/parsing.html#determining-the-character-encoding).
// What is valid as such is hardly ever anything else, whatever is declared. What cannot be decoded stays as it is.
func toUTF8(body []byte, contentType string) []byte {
	if !utf8.Valid(body) {
		e, _, _ := charset.DetermineEncoding(body, contentType)
		if text, err := e.NewDecoder().Bytes(body); err == nil {
			body = text
		}
	}
	return bytes.TrimPrefix(body, []byte("\uFEFF")) // the byte order mark
}
