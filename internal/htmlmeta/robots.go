package htmlmeta

import (
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
		s = strings.TrimLeft(s[n:], white)
		if !strings.HasPrefix(s, ":") {
			noindex = noindex || applies && (word == "noindex" || word == "none")
			nofollow = nofollow || applies && (word == "nofollow" || word == "none")
			continue
		}
		s = strings.TrimLeft(s[1:], white)
		switch {
		case word == "unavailable_after":
			var at int64
			at, s = leadingDate(s)
			noindex = noindex || applies && at != 0 && !now.IsZero() && at < now.Unix()
		case !header || word == "" || strings.HasPrefix(word, "max-"):
			s = s[wordEnd(s):]
		default:
			applies = word == "googlebot" || word == "robots" || word == "*"
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
	for n, end := 0, 0; n < 8 && end < min(len(s), 64); n++ {
		end += len(s[end:]) - len(strings.TrimLeft(s[end:], separators))
		if i := strings.IndexAny(s[end:], separators); i >= 0 {
			end += i
		} else {
			end = len(s)
		}
		if at, _, ok := page.ParseDate(s[:end]); ok {
			unix, rest = at, s[end:]
		}
	}
	if unix == 0 {
		rest = s[wordEnd(s):]
	}
	return unix, rest
}

// parseRefresh returns the URL in a refresh, after its delay, by
// https://html.spec.whatwg.org/multipage/semantics.html#shared-declarative-refresh-steps;
// "": it is not valid, or has none.
func parseRefresh(s string) string {
	s = strings.TrimLeft(s, white)
	rest := strings.TrimLeft(s, "0123456789.")
	if rest == s || rest == "" || !strings.Contains(separators, rest[:1]) {
		return ""
	}
	s = strings.TrimLeft(rest, white)
	if s != "" && (s[0] == ';' || s[0] == ',') {
		s = strings.TrimLeft(s[1:], white)
	}
	if len(s) >= 3 && strings.EqualFold(s[:3], "url") {
		if value, ok := strings.CutPrefix(strings.TrimLeft(s[3:], white), "="); ok {
			s = strings.TrimLeft(value, white)
		}
	}
	if s != "" && (s[0] == '"' || s[0] == '\'') {
		s, _, _ = strings.Cut(s[1:], s[:1])
	}
	return s
}

// nextLink takes the first link off a Link header (RFC 8288, section 3): its target and
// its parameters, of each name the first. href is "" for what is not a link.
func nextLink(header string) (href string, params map[string]string, rest string) {
	link, rest := cutOutside(header, ',')
	target, link := cutOutside(link, ';')
	href, after, ok := strings.Cut(target, ">")
	href, found := strings.CutPrefix(strings.TrimLeft(href, white), "<")
	if !ok || !found {
		return "", nil, rest
	}
	params = make(map[string]string)
	for param := after; ; {
		name, value, _ := strings.Cut(param, "=")
		name = strings.ToLower(strings.Trim(name, white))
		if _, again := params[name]; !again {
			params[name] = strings.Trim(value, white+`"`)
		}
		if link == "" {
			return href, params, rest
		}
		param, link = cutOutside(link, ';')
	}
}

// cutOutside cuts s at the first separator that is not within quotes or angle brackets.
func cutOutside(s string, separator byte) (before, after string) {
	end := byte(0)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case end == '"' && c == '\\':
			i++
		case end != 0:
			if c == end {
				end = 0
			}
		case c == '"':
			end = '"'
		case c == '<':
			end = '>'
		case c == separator:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}
