package htmlmeta

import (
	"regexp"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

const (
	white      = " \t\r\n\f"
	separators = white + ",;"
)

// parseRobots reads the directives of a robots meta tag, or of an X-Robots-Tag header
// (https://developers.google.com/search/docs/crawling-indexing/robots-meta-tag). In a
// header, a name and a colon say for which robot the rest is; what is for all, or for
// googlebot, counts. A directive with a value is not such a name.
func parseRobots(s string, header bool, now time.Time) (noindex, nofollow bool) {
	applies := true
	for s = strings.TrimLeft(s, separators); s != ""; s = strings.TrimLeft(s, separators) {
		n := wordEnd(s)
		word := strings.ToLower(s[:n])
		value, hasValue := strings.CutPrefix(strings.TrimLeft(s[n:], white), ":")
		if !hasValue {
			noindex = noindex || applies && (word == "noindex" || word == "none")
			nofollow = nofollow || applies && (word == "nofollow" || word == "none")
			s = s[n:]
			continue
		}
		s = strings.TrimLeft(value, white)
		switch {
		case word == "unavailable_after":
			var unix int64
			unix, s = leadingDate(s)
			noindex = noindex || applies && unix != 0 && !now.IsZero() && unix < now.Unix()
		case header && word != "" && (isLetter(word[0]) || word == "*") && !strings.HasPrefix(word, "max-"):
			applies = word == "googlebot" || word == "robots" || word == "*"
		default:
			s = s[wordEnd(s):]
		}
	}
	return noindex, nofollow
}

// wordEnd returns the length of the word that s begins with.
func wordEnd(s string) int {
	if n := strings.IndexAny(s, separators+":"); n >= 0 {
		return n
	}
	return len(s)
}

// leadingDate returns the longest date that s begins with, as dates have commas and
// spaces in them, and what follows it; 0 and what follows the first word without one.
func leadingDate(s string) (unix int64, rest string) {
	rest = s[wordEnd(s):]
	for n, end := 0, 0; n < 8 && end < min(len(s), 64); n++ {
		for end < len(s) && strings.IndexByte(separators, s[end]) >= 0 {
			end++
		}
		for end < len(s) && strings.IndexByte(separators, s[end]) < 0 {
			end++
		}
		if at, _, ok := page.ParseDate(s[:end]); ok {
			unix, rest = at, s[end:]
		}
	}
	return unix, rest
}

// https://html.spec.whatwg.org/multipage/semantics.html#shared-declarative-refresh-steps
var refreshPattern = regexp.MustCompile(`(?is)^\s*(?:[0-9][0-9.]*|\.[0-9.]*)(?:\s*[;,]|\s)\s*(?:url\s*=\s*)?(?:"([^"]*)|'([^']*)|([^"'].*))`)

// parseRefresh returns the URL in a refresh, after its delay; "": it is not valid, or has
// none.
func parseRefresh(s string) string {
	if m := refreshPattern.FindStringSubmatch(s); m != nil {
		return m[1] + m[2] + m[3]
	}
	return ""
}

// A link of a Link header and its parameters (RFC 8288, section 3).
var (
	linkPattern  = regexp.MustCompile(`<([^>]*)>((?:"(?:[^"\\]|\\.)*"?|[^,"])*)`)
	paramPattern = regexp.MustCompile(`;\s*([a-zA-Z*-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)|([^\s;,"]*)))?`)
)

// eachLink calls f for each link of a Link header. Of each parameter, whose name is in
// lower case, the first counts.
func eachLink(header string, f func(href string, params map[string]string)) {
	for _, link := range linkPattern.FindAllStringSubmatch(header, -1) {
		params := make(map[string]string)
		for _, m := range paramPattern.FindAllStringSubmatch(link[2], -1) {
			if name := strings.ToLower(m[1]); params[name] == "" {
				params[name] = m[2] + m[3]
			}
		}
		f(link[1], params)
	}
}
