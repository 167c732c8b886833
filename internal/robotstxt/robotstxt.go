// Package robotstxt puts a Sitemap line into a site's robots.txt, and reads what it
// says to crawlers.
package robotstxt

import (
	"bytes"
	"iter"
	"mime"
	"net/http"
	"strings"
)

// MaxBody is how many bytes of a robots.txt are worth to be held.
const MaxBody = 512 << 10

// limit is the bytes of a robots.txt that readers are sure to parse (RFC 9309,
// section 2.5).
const limit = 500 << 10

// maxURL is the longest URL of a sitemap, as of any page, in bytes.
const maxURL = 2047

const bom = "\xEF\xBB\xBF"

// Merge returns body, a robots.txt, with a line "Sitemap: <url>", unless it has
// one of that URL already. The line comes last, after a blank line: there it spoils
// no group, and all parsers agree about it. Where it would end beyond what readers
// are sure to parse, 500 KiB, it comes first, before a blank line, and what that
// moves beyond the 500 KiB is lost to them. All else stays byte for byte, and so do
// Sitemap lines of other URLs.
//
// sitemap is an absolute URL, percent-encoded, of at most 2,047 bytes. ok says that
// merged has the line. It is false, and merged is body, where body is no text in
// which bytes of ASCII stand for themselves, such as UTF-16, or where sitemap has
// white space, a control character or a "#" in it, which would end the value (RFC
// 9309, section 2.2).
func Merge(body []byte, sitemap string) (merged []byte, ok bool) {
	if !isValue(sitemap) || isBinary(body) {
		return body, false
	}
	if has(body, sitemap) {
		return body, true
	}
	text := bytes.TrimPrefix(body, []byte(bom))
	eol := lineEnd(text)
	line := "Sitemap: " + sitemap + eol
	merged = make([]byte, 0, len(body)+3*len(eol)+len(line))
	merged = append(merged, body...)
	for !endsBlank(merged[len(body)-len(text):]) {
		merged = append(merged, eol...)
	}
	if len(merged)+len(line) <= limit {
		return append(merged, line...), true
	}
	merged = append(merged[:0], body[:len(body)-len(text)]...)
	merged = append(merged, line...)
	merged = append(merged, eol...)
	return append(merged, text...), true
}

// New is the robots.txt of a site that has none: it allows all. An empty Disallow
// is what all readers understand; Allow came later (RFC 9309, section 2.2.2). A
// sitemap that [Merge] would refuse is left out.
func New(sitemap string) []byte {
	body, _ := Merge([]byte("User-agent: *\nDisallow:\n"), sitemap)
	return body
}

// IsHTML reports whether the answer to a request for a robots.txt is a page, such
// as the one that an application shows for all that it does not know. contentType
// is the value of the Content-Type header; where it is missing or says no more than
// that bytes or plain text come, which servers conclude from the name robots.txt,
// the first 512 bytes decide as in a browser
// (https://mimesniff.spec.whatwg.org/#identifying-a-resource-with-an-unknown-mime-type).
func IsHTML(contentType string, body []byte) bool {
	switch mediaType(contentType) {
	case "text/html", "application/xhtml+xml":
		return true
	case "text/plain":
	default:
		if !isUnspecific(contentType) {
			return false
		}
	}
	body = bytes.TrimPrefix(body, []byte(bom))
	body = body[:min(len(body), 512)]
	sniffed := mediaType(http.DetectContentType(body))
	return sniffed == "text/html" || sniffed == "text/xml" && bytes.Contains(body, []byte("<html"))
}

// IsText reports whether a Content-Type can be that of a robots.txt: text/plain, by
// RFC 9309, section 2.3; any other text that is no HTML; and a missing or unspecific
// one, because readers do not look at it. Whether the body is text indeed is for
// [Merge] to say.
func IsText(contentType string) bool {
	if isUnspecific(contentType) {
		return true
	}
	t := mediaType(contentType)
	if !strings.HasPrefix(t, "text/") || t == "text/html" {
		return false
	}
	_, params, _ := mime.ParseMediaType(contentType)
	charset := strings.ToLower(params["charset"])
	return !strings.HasPrefix(charset, "utf-16") && !strings.HasPrefix(charset, "utf-32")
}

func isUnspecific(contentType string) bool {
	switch mediaType(contentType) {
	case "", "*/*", "application/octet-stream", "application/unknown", "unknown/unknown":
		return true
	}
	return false
}

func mediaType(contentType string) string {
	t, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(t))
}

func isValue(sitemap string) bool {
	return sitemap != "" && len(sitemap) <= maxURL &&
		!strings.ContainsFunc(sitemap, func(r rune) bool { return r <= ' ' || r >= 0x7F || r == '#' })
}

// isBinary reports whether a body has bytes that no text has
// (https://mimesniff.spec.whatwg.org/#binary-data-byte), save 0x1A, with which old
// editors end a file.
func isBinary(body []byte) bool {
	if bytes.HasPrefix(body, []byte("\xFF\xFE")) || bytes.HasPrefix(body, []byte("\xFE\xFF")) {
		return true
	}
	for _, c := range body {
		if c < ' ' && (c < '\t' || c == '\v' || c > '\r') && c != 0x1A && c != 0x1B {
			return true
		}
	}
	return false
}

// has reports whether one of the lines that readers are sure to parse says that
// sitemap is one.
func has(body []byte, sitemap string) bool {
	rest := body[:min(len(body), limit)]
	if len(rest) < len(body) && body[limit] != '\r' && body[limit] != '\n' { // it cuts a line
		rest = rest[:bytes.LastIndexAny(rest, "\r\n")+1]
	}
	for line := range linesOf(rest) {
		line, _, _ = bytes.Cut(line, []byte("#"))
		name, value, ok := bytes.Cut(line, []byte(":"))
		if ok && bytes.EqualFold(trim(name), []byte("sitemap")) && string(trim(value)) == sitemap {
			return true
		}
	}
	return false
}

// linesOf are the lines of a robots.txt that are not empty. They end in LF, CR or both.
func linesOf(body []byte) iter.Seq[[]byte] {
	return bytes.FieldsFuncSeq(bytes.TrimPrefix(body, []byte(bom)), func(r rune) bool { return r == '\n' || r == '\r' })
}

func trim(b []byte) []byte { return bytes.Trim(b, " \t") }

// lineEnd is how text's first line ends: CR, LF or both (RFC 9309, section 2.2).
func lineEnd(text []byte) string {
	i := bytes.IndexAny(text, "\r\n")
	switch {
	case i < 0 || text[i] == '\n':
		return "\n"
	case i+1 < len(text) && text[i+1] == '\n':
		return "\r\n"
	}
	return "\r"
}

var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// endsBlank reports whether what follows text follows a blank line, or begins the
// file.
func endsBlank(text []byte) bool {
	tail := lineEnds.Replace(string(text[max(len(text)-len("\r\n\r\n"), 0):]))
	return tail == "" || tail == "\n" || strings.HasSuffix(tail, "\n\n")
}

// Sitemaps returns the URLs of the Sitemap lines of a robots.txt, at most 1,000, as they are
// written.
func Sitemaps(body []byte) []string {
	var all []string
	for line := range linesOf(body) {
		if name, value := splitLine(line); name == "sitemap" && value != "" && len(all) < 1000 {
			all = append(all, value)
		}
	}
	return all
}
