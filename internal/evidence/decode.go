package evidence

import (
	"bytes"
	"mime"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
)

// decode is body in UTF-8: itself, where it is already, or ASCII
// (https://html.spec.whatwg.org/multipage/parsing.html#determining-the-character-encoding).
func decode(body []byte, contentType string) []byte {
	if rest, ok := bytes.CutPrefix(body, []byte("\xEF\xBB\xBF")); ok {
		return rest
	}
	label := ""
	if len(contentType) > len("text/html") {
		if _, params, err := mime.ParseMediaType(contentType); err == nil {
			label = params["charset"]
		}
	}
	if isUTF8(label) && !hasUTF16Mark(body) {
		return body
	}
	if label == "" && isPlain(body) {
		return body
	}
	e, name, certain := charset.DetermineEncoding(body, contentType)
	if name == "utf-8" {
		return body
	}
	if !certain && name == "windows-1252" && !declares(body) && validPrefix(body) {
		return body
	}
	out, err := e.NewDecoder().Bytes(body)
	if err != nil {
		return body
	}
	return bytes.TrimPrefix(out, []byte("\uFEFF"))
}

func isUTF8(label string) bool {
	return strings.EqualFold(label, "utf-8") || strings.EqualFold(label, "utf8")
}

func hasUTF16Mark(body []byte) bool {
	return bytes.HasPrefix(body, []byte("\xFF\xFE")) || bytes.HasPrefix(body, []byte("\xFE\xFF"))
}

// prescan is how far a document's own declaration is looked for.
const prescan = 1024

// isPlain reports whether a document with no encoding from outside needs no
// decoding: it is UTF-8 and declares no other, or it is ASCII throughout and without
// the escapes by which some encodings are.
func isPlain(body []byte) bool {
	if hasUTF16Mark(body) {
		return false
	}
	if !declares(body) {
		return validPrefix(body)
	}
	start := body[:min(len(body), prescan)]
	i := bytes.Index(start, []byte("charset="))
	if i < 0 {
		return false
	}
	value := bytes.TrimLeft(start[i+len("charset="):], `"' `)
	return len(value) >= 5 && bytes.EqualFold(value[:5], []byte("utf-8")) && validPrefix(body)
}

// declares reports whether a document may declare an encoding.
func declares(body []byte) bool {
	for start := body[:min(len(body), prescan)]; ; {
		i := bytes.IndexByte(start, '=')
		if i < 0 {
			return false
		}
		if name := trim(start[:i]); len(name) >= 7 && bytes.EqualFold(name[len(name)-7:], []byte("charset")) {
			return true
		}
		start = start[i+1:]
	}
}

// validPrefix reports whether body is UTF-8, but for a character that its end may
// cut.
func validPrefix(body []byte) bool {
	if utf8.Valid(body) {
		return true
	}
	if len(body) < MaxBody {
		return false
	}
	for n := 1; n < utf8.UTFMax; n++ {
		if utf8.RuneStart(body[len(body)-n]) {
			return utf8.Valid(body[:len(body)-n])
		}
	}
	return false
}
