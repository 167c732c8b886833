package htmlmeta

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
)

// toUTF8 returns body in UTF-8
// (https://html.spec.whatwg.org/multipage/parsing.html#determining-the-character-encoding).
func toUTF8(body []byte, contentType string) []byte {
	if rest, ok := bytes.CutPrefix(body, []byte("\xEF\xBB\xBF")); ok {
		return rest
	}
	utf16 := bytes.HasPrefix(body, []byte("\xFF\xFE")) || bytes.HasPrefix(body, []byte("\xFE\xFF"))
	if _, label, ok := strings.Cut(contentType, "charset="); ok && !utf16 && strings.EqualFold(strings.Trim(label, `"' `), "utf-8") {
		return body // what nearly all servers send
	}
	e, name, certain := charset.DetermineEncoding(body, contentType)
	if name == "utf-8" || name == "windows-1252" && !certain && utf8.Valid(body) {
		return body
	}
	out, err := e.NewDecoder().Bytes(body)
	if err != nil {
		return body
	}
	return bytes.TrimPrefix(out, []byte("\uFEFF"))
}
