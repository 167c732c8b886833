package page

import (
	"path"
	"strings"
)

// Patterns match paths as Caddy's path matcher does: without regard to case, on
// the decoded and cleaned path; "*" alone matches all; a "*" at the beginning or
// the end alone, or at both, stands for anything, slashes too; elsewhere patterns
// are those of [path.Match]; and a pattern with a "%" compares that part in
// percent-encoded form.
type Patterns []pattern

type patternKind uint8

const (
	matchAll patternKind = iota
	matchPrefix
	matchSuffix
	matchSubstring
	matchExact
	matchGlob
	matchEscaped
)

type pattern struct {
	kind        patternKind
	text        string
	keepSlashes bool
}

// CompilePatterns prepares patterns for matching. The error is
// [path.ErrBadPattern], for the first pattern that can match nothing.
func CompilePatterns(patterns []string) (Patterns, error) {
	var ps Patterns
	for _, s := range patterns {
		text := strings.ToLower(s)
		stars := strings.Count(text, "*")
		p := pattern{text: text, keepSlashes: strings.Contains(text, "//")}
		switch {
		case text == "*":
			p.kind = matchAll
		case strings.Contains(text, "%"):
			p.kind = matchEscaped
		case stars == 2 && len(text) > 1 && text[0] == '*' && text[len(text)-1] == '*':
			p.kind, p.text = matchSubstring, text[1:len(text)-1]
		case stars == 1 && text[0] == '*':
			p.kind, p.text = matchSuffix, text[1:]
		case stars == 1 && text[len(text)-1] == '*':
			p.kind, p.text = matchPrefix, text[:len(text)-1]
		case strings.ContainsAny(text, `*?[\`):
			p.kind = matchGlob
		default:
			p.kind = matchExact
		}
		if p.kind == matchGlob || p.kind == matchEscaped {
			if _, err := path.Match(strings.ReplaceAll(text, "%*", "*"), ""); err != nil {
				return nil, err
			}
		}
		ps = append(ps, p)
	}
	return ps, nil
}

// Match reports whether one of the patterns matches a canonical path. A query
// plays no part.
func (ps Patterns) Match(canonical string) bool {
	if len(ps) == 0 {
		return false
	}
	canonical, _, _ = strings.Cut(canonical, "?")
	return ps.match(strings.ToLower(Unescape(canonical)), canonical)
}

func (ps Patterns) match(lower, escaped string) bool {
	merged := clean(lower)
	for _, p := range ps {
		switch {
		case p.kind == matchEscaped && p.keepSlashes:
			if p.match("", cleanKeepingSlashes(escaped)) {
				return true
			}
		case p.kind == matchEscaped:
			if p.match("", clean(escaped)) {
				return true
			}
		case p.keepSlashes:
			if p.match(cleanKeepingSlashes(lower), "") {
				return true
			}
		case p.match(merged, ""):
			return true
		}
	}
	return false
}

func (p pattern) match(lower, escaped string) bool {
	switch p.kind {
	case matchAll:
		return true
	case matchPrefix:
		return strings.HasPrefix(lower, p.text)
	case matchSuffix:
		return strings.HasSuffix(lower, p.text)
	case matchSubstring:
		return strings.Contains(lower, p.text)
	case matchExact:
		return lower == p.text
	case matchEscaped:
		return matchEscapedPattern(p.text, strings.ToLower(escaped))
	}
	ok, _ := path.Match(p.text, lower)
	return ok
}

// clean is path.Clean that keeps a slash at the end. Dots are rare in a canonical
// path, but decoding may have brought some: "/a%2F../b" is "/b" here.
func clean(p string) string {
	if !strings.Contains(p, "//") && !strings.Contains(p, "/.") {
		return p
	}
	c := path.Clean(p)
	if c != "/" && strings.HasSuffix(p, "/") {
		return c + "/"
	}
	return c
}

// cleanKeepingSlashes is clean that does not merge slashes: an impossible byte
// stands between them meanwhile.
func cleanKeepingSlashes(p string) string {
	if !strings.Contains(p, "/.") {
		return p
	}
	const between = "/\xff/"
	p = strings.ReplaceAll(strings.ReplaceAll(p, "//", between), "//", between)
	return strings.ReplaceAll(clean(p), "\xff", "")
}

// matchEscapedPattern compares in percent-encoded form where the pattern has an
// escape, and decoded elsewhere: "/a%2Fb" is not "/a/b", but "/%2F/*" matches
// "/%2F/é". In "%*" the asterisk stands for encoded bytes. Where an asterisk meets
// an encoded byte it takes all of it; Caddy's skips the first two of its characters,
// so that "/*%C3%A9" does not match "/%C3%A9" there, which is not copied here.
func matchEscapedPattern(pattern, escaped string) bool {
	var subject strings.Builder
	i := 0 // in escaped
	for k := 0; k < len(pattern) && i < len(escaped); k++ {
		switch c := pattern[k]; {
		case c == '%' && k+2 < len(pattern) && pattern[k+1] != '*':
			n := tokenLen(escaped[i:])
			if n == 3 {
				subject.WriteString(escaped[i : i+n])
			}
			i += n
			k += 2
		case c == '*' || c == '%' && k+1 < len(pattern) && pattern[k+1] == '*':
			raw := c == '%'
			if raw {
				k++
			}
			span := escaped[i:]
			if k+1 < len(pattern) {
				end := strings.IndexByte(span, pattern[k+1])
				if end < 0 {
					return false
				}
				span = span[:end]
			}
			i += len(span)
			if !raw {
				span = Unescape(span)
			}
			subject.WriteString(span)
		default:
			n := tokenLen(escaped[i:])
			subject.WriteString(Unescape(escaped[i : i+n]))
			i += n
		}
	}
	subject.WriteString(Unescape(escaped[i:]))
	ok, _ := path.Match(strings.ReplaceAll(pattern, "%*", "*"), strings.ToLower(subject.String()))
	return ok
}

// tokenLen is 3 at a percent-encoded byte, else 1.
func tokenLen(s string) int {
	if s[0] == '%' && len(s) >= 3 {
		return 3
	}
	return 1
}
