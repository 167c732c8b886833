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

// Naming returns what [Merge] does for a site's robots.txt, of a Content-Type; for one that is empty or [IsHTML], one
// that is made for it, which allows all. An empty Disallow is what all readers understand; Allow came later (RFC
// 9309, section 2.2.2). What is no text, or too long, stays as it is.
func Naming(contentType string, body []byte, sitemap string) (merged []byte, made bool) {
	switch {
	case len(body) == 0 || IsHTML(contentType, body):
		body, made = []byte("User-agent: *\nDisallow:\n"), true
	case len(body) > MaxBody || !isText(contentType):
		return body, false
	}
	merged, _ = Merge(body, sitemap)
	return merged, made
}

// IsHTML reports whether the response to a request for a robots.txt is a page, such as
// the one that an application shows for all that it does not know. contentType is the
// value of the Content-Type header; where it is missing or says no more than that bytes
// or plain text come, which servers conclude from the name robots.txt, the first 512
// bytes decide as in a browser
// (https://mimesniff.spec.whatwg.org/#identifying-a-resource-with-an-unknown-mime-type).
func IsHTML(contentType string, body []byte) bool {
	media, _, _ := mime.ParseMediaType(contentType)
	if media == "" || media == "text/plain" || media == unspecific {
		body = bytes.TrimPrefix(body, []byte(bom))
		body = body[:min(len(body), 512)]
		media, _, _ = mime.ParseMediaType(http.DetectContentType(body))
		return media == "text/html" || media == "text/xml" && bytes.Contains(body, []byte("<html"))
	}
	return media == "text/html" || media == "application/xhtml+xml"
}

const unspecific = "application/octet-stream"

// isText reports whether a Content-Type can be that of a robots.txt: text/plain, by
// RFC 9309, section 2.3; any other text that is no HTML; and a missing or unspecific
// one, because readers do not look at it. Whether the body is text indeed is for
// [Merge] to say.
func isText(contentType string) bool {
	media, params, _ := mime.ParseMediaType(contentType)
	charset := strings.ToLower(params["charset"])
	return media == "" || media == unspecific || strings.HasPrefix(media, "text/") && media != "text/html" &&
		!strings.HasPrefix(charset, "utf-16") && !strings.HasPrefix(charset, "utf-32")
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
	for name, value := range fields(rest) {
		if name == "sitemap" && value == sitemap {
			return true
		}
	}
	return false
}

// fields are the lines of a robots.txt that say something: a lower-case name and a value. Lines
// end in LF, CR or both. A blank may stand for the colon, as with Google's crawler, save for
// sitemaps, of which others read.
func fields(body []byte) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		isEnd := func(r rune) bool { return r == '\n' || r == '\r' }
		for line := range strings.FieldsFuncSeq(string(bytes.TrimPrefix(body, []byte(bom))), isEnd) {
			line, _, _ = strings.Cut(line, "#")
			name, value, ok := strings.Cut(line, ":")
			if words := strings.Fields(line); !ok && len(words) == 2 && !strings.EqualFold(words[0], "sitemap") {
				name, value, ok = words[0], words[1], true
			}
			if ok && !yield(strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)) {
				return
			}
		}
	}
}

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
	for name, value := range fields(body) {
		if name == "sitemap" && value != "" && len(all) < 1000 {
			all = append(all, value)
		}
	}
	return all
}
