package html

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
)

// toUTF8 returns body in UTF-8 (https://html.spec.whatwg.org/multipage/parsing.html#determining-the-character-encoding).
// One that cannot be decoded stays as it is.
func toUTF8(body []byte, contentType string) []byte {
	// As nearly all are: to look for other signs of the encoding takes longer than all else that is done with a small page.
	isDeclared := strings.HasSuffix(strings.ToLower(contentType), "charset=utf-8")
	if isDeclared && utf8.Valid(body) {
		return bytes.TrimPrefix(body, mark)
	}
	e, name, isCertain := charset.DetermineEncoding(body, contentType)
	// What is guessed where nothing is declared is windows-1252, which valid UTF-8 hardly ever is.
	isGuessed := !isCertain && name == "windows-1252" && utf8.Valid(body)
	if text, err := e.NewDecoder().Bytes(body); err == nil && name != "utf-8" && !isGuessed {
		body = text
	}
	return bytes.TrimPrefix(body, mark)
}

var mark = []byte("\uFEFF") // of the byte order
