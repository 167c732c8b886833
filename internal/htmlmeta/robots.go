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
// (https://developers.google.com/search/docs/crawling-indexing/robots-meta-tag). In a header, a name and a
// colon say for which robot the rest is; what is for all, or for googlebot, counts. A directive with a value
// is not such a name.
func parseRobots(s string, header bool, now time.Time) (noindex, nofollow bool) {
	s = s[:min(len(s), 4<<10)] // nothing real is longer
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
			value := datePattern.FindString(s)
			unix, _, ok := page.ParseDate(value)
			if !ok {
				value = s[:wordEnd(s)]
			}
			s = s[len(value):]
			noindex = noindex || applies && ok && !now.IsZero() && unix < now.Unix()
		case header && word != "" && (isLetter(word[0]) || word == "*") && !strings.HasPrefix(word, "max-"):
			applies = word == "googlebot" || word == "robots" || word == "*"
		default:
			s = s[wordEnd(s):]
		}
	}
	return noindex, nofollow
}

// datePattern matches what may be a date: a comma may follow a weekday in it.
var datePattern = regexp.MustCompile(`^([A-Za-z]+,\s*)?[^,;]*`)

// wordEnd returns the length of the word that s begins with.
func wordEnd(s string) int {
	if n := strings.IndexAny(s, separators+":"); n >= 0 {
		return n
	}
	return len(s)
}

// https://html.spec.whatwg.org/multipage/semantics.html#shared-declarative-refresh-steps
var refreshPattern = regexp.MustCompile(`(?is)^\s*(?:[0-9][0-9.]*|\.[0-9.]*)(?:\s*[;,]|\s)\s*(?:url\s*=\s*)?(?:"([^"]*)|'([^']*)|([^"'].*)|$)`)

// parseRefresh returns the URL in a refresh, after its delay; "": it is not valid, or has none.
func parseRefresh(s string) string {
	if m := refreshPattern.FindStringSubmatch(s); m != nil {
		return m[1] + m[2] + m[3]
	}
	return ""
}
