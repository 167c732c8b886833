package robotstxt

import (
	"cmp"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Rules are the rules of a robots.txt for one crawler (RFC 9309, section 2.2). The zero value allows all.
type Rules struct {
	rules []pathRule // the first that matches counts
}

type pathRule struct {
	line   string   // in its path, * matches anything, and a $ at the end the end
	length int      // of the path
	pieces []string // between the asterisks, decoded
	toEnd  bool     // nothing may follow
}

// ReadRules reads the rules of the groups for a crawler's product token, or else those of the groups for all. Unknown
// lines do not end a group, and common misspellings are understood, as by Google's crawler.
func ReadRules(body []byte, crawler string) Rules {
	var own, general Rules
	var isOwn, isGeneral bool // the group so far
	known := false
	inRules := true
	for name, value := range fields(body) {
		switch name {
		case "user-agent", "useragent", "user agent":
			// Several of these lines in a row begin one group (RFC 9309, section 2.2).
			if inRules {
				isOwn = false
				isGeneral = false
				inRules = false
			}
			token := productToken.FindString(value)
			isOwn = isOwn || strings.EqualFold(token, crawler)
			isGeneral = isGeneral || token == "*"
			known = known || isOwn
		// The misspellings are those of https://github.com/google/robotstxt.
		case "allow", "disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw":
			inRules = true
			// A rule without a path matches nothing, but ends the lines that begin a group.
			if value == "" {
				continue
			}
			verb := "Disallow: "
			if name == "allow" {
				verb = "Allow: "
			}
			rule := newPathRule(verb, value)
			if isOwn {
				own.rules = append(own.rules, rule)
			}
			if isGeneral {
				general.rules = append(general.rules, rule)
			}
		}
	}
	// A group without rules counts, too: it allows all, whatever the groups for others say.
	if !known {
		own = general
	}
	// The most specific rule decides (section 2.2.2): the longest one, and of two that are equally long the one that
	// allows, whose line comes first.
	slices.SortFunc(own.rules, func(a, b pathRule) int {
		return cmp.Or(b.length-a.length, strings.Compare(a.line, b.line))
	})
	return own
}

// productToken matches the name in a User-agent line, without a version. It must equal a crawler's name: a part of it
// does not match.
var productToken = regexp.MustCompile(`^(?:\*$|[A-Za-z_-]+)`)

func newPathRule(verb, path string) pathRule {
	// A rule must begin with a slash (RFC 9309, section 2.2). Where it is missing, it is meant.
	if path[0] != '/' && path[0] != '*' {
		path = "/" + path
	}
	pattern, toEnd := strings.CutSuffix(path, "$")
	pieces := strings.Split(pattern, "*")
	for i, piece := range pieces {
		pieces[i] = decoded(piece)
	}
	return pathRule{
		line:   verb + path,
		length: len(path),
		pieces: pieces,
		toEnd:  toEnd,
	}
}

// decoded returns a path, or a piece of one, in the spelling in which paths and rules are compared. RFC 9309, section
// 2.2.2, has reserved characters encoded before that, in paths and in rules. Decoding both is the same, but for an
// encoded slash or ampersand.
func decoded(path string) string {
	path, query, hasQuery := strings.Cut(path, "?")
	path = strings.ReplaceAll(unescaped(path), "?", "%3F") // which begins no query
	if hasQuery {
		path += "?" + unescaped(query)
	}
	return path
}

func unescaped(s string) string {
	if text, err := url.PathUnescape(s); err == nil {
		return text
	}
	return s
}

// Allows reports whether the crawler may request a normal path, with its query if it has one.
func (r *Rules) Allows(path string) bool { return !strings.HasPrefix(r.Line(path), "Disallow") }

// Line returns the line that decides about a path, as [Rules.String] writes it; "": none does, so the path is allowed.
func (r *Rules) Line(path string) string {
	path = decoded(path)
	for i := range r.rules {
		if r.rules[i].match(path) {
			return r.rules[i].line
		}
	}
	return ""
}

func (p *pathRule) match(path string) bool {
	path, ok := strings.CutPrefix(path, p.pieces[0])
	// Each piece is taken where it is found first: what is left for the others is then longest, so nothing is tried twice.
	for i := 1; ok && i < len(p.pieces); i++ {
		isLast := i == len(p.pieces)-1
		if isLast && p.toEnd {
			return strings.HasSuffix(path, p.pieces[i])
		}
		_, path, ok = strings.Cut(path, p.pieces[i])
	}
	return ok && (!p.toEnd || path == "")
}

// String returns the rules as lines, the most specific first: equal rules give equal strings.
func (r *Rules) String() string {
	var out strings.Builder
	for _, rule := range r.rules {
		out.WriteString(rule.line + "\n")
	}
	return out.String()
}

// Closes reports whether crawlers request no page of a site whose robots.txt returns a status (RFC 9309, section 2.3.1.4).
// Google takes 429 for an error of the server, and any other status from 400 on, such as 408, for no robots.txt
// (https://developers.google.com/crawling/docs/robots-txt/robots-txt-spec#http-status-codes).
func Closes(status int) bool {
	return status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
}
