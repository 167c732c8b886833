package robotstxt

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// Rules are the rules of a robots.txt for one crawler (RFC 9309, section 2.2). The zero value allows all.
type Rules struct {
	rules []pathRule // the first that matches counts
}

type pathRule struct {
	line   string   // with the path in normal form, in which * matches anything, and a $ at the end the end
	length int      // of the path
	pieces []string // between the asterisks
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
			token := productToken(value)
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

// productToken returns the name in a User-agent line, without a version. It must equal
// a crawler's name: a part of it does not match.
func productToken(value string) string {
	value, _, _ = strings.Cut(strings.ReplaceAll(value, "\t", " "), " ")
	if value == "*" {
		return value
	}
	rest := strings.TrimLeft(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_")
	return value[:len(value)-len(rest)]
}

func newPathRule(name, path string) pathRule {
	// A rule must begin with a slash (RFC 9309, section 2.2). Where it is missing, it is meant.
	if path[0] != '/' && path[0] != '*' {
		path = "/" + path
	}
	path, toEnd := strings.CutSuffix(path, "$")
	pattern := normalPattern(path)
	pieces := strings.Split(pattern, "*")
	if toEnd {
		pattern += "$"
	}
	return pathRule{
		line:   name + pattern,
		length: len(pattern),
		pieces: pieces,
		toEnd:  toEnd,
	}
}

// normalPattern returns a rule's path in the form of normal paths, in the spelling of [bare]. A $ is encoded, and an
// encoded * stays so.
func normalPattern(path string) string {
	var out []byte
	before := "/x" // of an escape: those of a path are compared otherwise than those of a query
	for i := 0; i < len(path); i++ {
		switch c := path[i]; c {
		case '$':
			out = append(out, "%24"...)
		case '?':
			out = append(out, c)
			before = "/x?"
		case '%':
			normal, err := page.Normal(before + path[i:min(i+3, len(path))])
			if err != nil {
				out = append(out, "%25"...)
				continue
			}
			escape := normal[len(before):]
			if before == "/x" {
				escape = bare(escape)
			}
			out = append(out, literal.Replace(escape)...)
			i += 2
		default:
			out = append(out, page.Escape(path[i:i+1])...)
		}
	}
	return string(out)
}

// literal encodes what would be special in a rule's path.
var literal = strings.NewReplacer("$", "%24", "*", "%2A")

// bare returns a normal path in the spelling in which paths and rules are compared. RFC 9309, section 2.2.2, has
// reserved characters encoded before that, in paths and in rules, so /a%2Cb and /a,b are alike. Decoding both is the
// same. An encoded slash separates nothing, and the query keeps its spelling.
func bare(path string) string {
	if !strings.Contains(path, "%") {
		return path
	}
	path, query, hasQuery := strings.Cut(path, "?")
	parts := strings.Split(path, "%2F")
	for i, part := range parts {
		parts[i] = page.Escape(page.Unescape(part))
	}
	path = strings.Join(parts, "%2F")
	if hasQuery {
		path += "?" + query
	}
	return path
}

// Empty reports whether there are no rules, so that all is allowed.
func (r *Rules) Empty() bool { return len(r.rules) == 0 }

// Allows reports whether the crawler may request a normal path, with its query if it has one.
func (r *Rules) Allows(path string) bool { return !strings.HasPrefix(r.Line(path), "Disallow") }

// Line returns the line that decides about a path, as [Rules.String] writes it; "": none does, so the path is allowed.
func (r *Rules) Line(path string) string {
	path = bare(path)
	if strings.ContainsAny(path, "*$") {
		path = literal.Replace(path)
	}
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
