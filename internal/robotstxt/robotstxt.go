// Package robotstxt adds Sitemap lines to a site's robots.txt, and reads its rules for crawlers.
package robotstxt

import (
	"bytes"
	"iter"
	"mime"
	"net/http"
	"slices"
	"strings"
)

// MaxBody is the most bytes of a robots.txt that all crawlers parse (RFC 9309,
// section 2.5). A longer one is not changed.
const MaxBody = 500 << 10

const bom = "\xEF\xBB\xBF"

// Merge returns body, a robots.txt, with a line "Sitemap: <url>" for each URL that has none. URLs are absolute and
// percent-encoded. The lines come last, after a blank line: there they break no group, and all parsers agree about
// them. A body that is not text, or in an encoding such as UTF-16, is not changed.
func Merge(body []byte, urls ...string) []byte {
	present := urlsOf(body, "sitemap") // not all crawlers understand a misspelled one
	lines := ""
	for _, url := range urls {
		if !slices.Contains(present, url) {
			lines += "Sitemap: " + url + "\n"
		}
	}
	// Behind text of another encoding, lines in ASCII would be none.
	if lines == "" || bytes.ContainsFunc(body, isBinary) {
		return body
	}
	text := bytes.TrimRight(body, "\r\n")
	if len(text) > 0 {
		lines = "\n\n" + lines
	}
	return slices.Concat(text, []byte(lines))
}

// isBinary reports whether no text has a byte (https://mimesniff.spec.whatwg.org/#binary-data-byte), save 0x1A, with
// which old editors end a file.
func isBinary(c rune) bool { return c < ' ' && !strings.ContainsRune("\t\n\f\r\x1A\x1B", c) }

// Naming returns a site's robots.txt, given its Content-Type, with the Sitemap lines: see [Merge]. For one that is empty
// or [IsHTML], it makes a new one that allows all, with an empty Disallow, which all crawlers understand; Allow came
// later (RFC 9309, section 2.2.2). One that is longer than MaxBody is not changed. Crawlers ignore the Content-Type.
func Naming(contentType string, body []byte, urls ...string) (merged []byte, made bool) {
	switch {
	case len(body) == 0 || IsHTML(contentType, body):
		body = []byte("User-agent: *\nDisallow:\n")
		made = true
	case len(body) > MaxBody:
		return body, false
	}
	return Merge(body, urls...), made
}

// IsHTML reports whether the response to a request for a robots.txt is a page, such as the one that an application
// shows for all unknown paths. contentType is the value of the Content-Type header. If it is missing, or is plain text
// or bytes, which servers conclude from the name robots.txt, the first 512 bytes decide as in a browser
// (https://mimesniff.spec.whatwg.org/#identifying-a-resource-with-an-unknown-mime-type).
func IsHTML(contentType string, body []byte) bool {
	media, _, _ := mime.ParseMediaType(contentType)
	isByName := media == "" || media == "text/plain" || media == "application/octet-stream"
	if isByName {
		media, _, _ = mime.ParseMediaType(http.DetectContentType(bytes.TrimPrefix(body, []byte(bom))))
	}
	return media == "text/html" || media == "application/xhtml+xml"
}

// fields yields the fields of a robots.txt: a lower-case name, as it is spelled, and a value. Lines end in LF, CR or both. A blank may
// stand for the colon, as with Google's crawler, but not for sitemaps, which others read, too.
func fields(body []byte) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		isEnd := func(r rune) bool { return r == '\n' || r == '\r' }
		for line := range strings.FieldsFuncSeq(string(bytes.TrimPrefix(body, []byte(bom))), isEnd) {
			line, _, _ = strings.Cut(line, "#")
			name, value, ok := strings.Cut(line, ":")
			words := strings.Fields(line)
			if !ok && len(words) == 2 && !strings.EqualFold(words[0], "sitemap") {
				name = words[0]
				value = words[1]
				ok = true
			}
			if ok && !yield(strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)) {
				return
			}
		}
	}
}

// maxSitemaps bounds the documents that a robots.txt, which may be a stranger's, has others read.
const maxSitemaps = 1000

// Sitemaps returns the URLs of the Sitemap lines of a robots.txt as they are written, at most 1,000.
func Sitemaps(body []byte) []string { return urlsOf(body, "sitemap", "site-map") }

// urlsOf returns the values of lines with one of these names.
func urlsOf(body []byte, names ...string) []string {
	var all []string
	for name, value := range fields(body) {
		isOne := slices.Contains(names, name) && value != ""
		if isOne && len(all) < maxSitemaps {
			all = append(all, value)
		}
	}
	return all
}
