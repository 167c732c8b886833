// Package urllist reads lists of pages: one URL a line, with what the site's
// owner knows of it after it; and sitemaps.
package urllist

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// ErrBlank is [ParseLine]'s error for a line that says nothing: an empty one or
// a comment alone.
var ErrBlank = errors.New("the line is blank")

var (
	errUTF8    = errors.New("the line is not UTF-8")
	errControl = errors.New("there is a control character in it")
	errDate    = errors.New("a date is 2006-01-02, 2006-01-02T15:04Z or 2006-01-02T15:04:05+07:00")
)

// Line is what one line of a list says.
type Line struct {
	// URL is the page's URL as it is written in the line: absolute, or a path of
	// the site that begins with a slash.
	URL string

	// LastMod is when the page last changed, in Unix seconds (UTC). 0: not said.
	LastMod int64

	// LastModDay says that only the day of LastMod is given.
	LastModDay bool

	// ChangeFreq and Priority are as in [page.Page].
	ChangeFreq page.ChangeFreq
	Priority   page.Priority
}

// ParseLine reads one line of a list, without its line end:
//
//	<url> [lastmod=<date>] [changefreq=<frequency>] [priority=<0.0–1.0>]
//
// Words are parted by spaces and tabs; a # that begins a word begins a comment. A
// URL may hold spaces: words without an equals sign that follow it belong to it.
// A date is one of [page.ParseDate]; fractions of a second are cut. Whether the
// URL is one of a site is for [Line.Page] to say.
//
// The error is ErrBlank, or says what the line should be.
func ParseLine(s string) (Line, error) {
	l, err := parseLine(s)
	if err == nil {
		_, _, err = splitURL(l.URL)
	}
	if err != nil {
		return Line{}, err
	}
	return l, nil
}

// parseLine leaves what is wrong with the URL to [splitURL].
func parseLine(s string) (Line, error) {
	s = trim(cutComment(s))
	if s == "" {
		return Line{}, ErrBlank
	}
	if !utf8.ValidString(s) {
		return Line{}, errUTF8
	}
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }) {
		return Line{}, errControl
	}
	var l Line
	end, given := 0, false // of the URL
	for i := 0; i < len(s); {
		word := nextWord(s[i:])
		first := i == 0
		i += len(word)
		key, value, isOption := cutOption(word)
		switch {
		case isOption && !first:
			if err := l.set(key, value); err != nil {
				return Line{}, err
			}
			given = true
		case given:
			return Line{}, fmt.Errorf("'%s' after an option: the URL comes first", short(word))
		case !first && (word[0] == '/' || strings.Contains(word, "://")):
			return Line{}, fmt.Errorf("'%s' is a second URL: a line has one", short(word))
		default:
			end = i
		}
		for i < len(s) && isSpace(s[i]) {
			i++
		}
	}
	l.URL = s[:end]
	return l, nil
}

// options are the keys that a line may have.
const options = "lastmod=, changefreq= and priority="

func (l *Line) set(key, value string) (err error) {
	var again bool
	switch key {
	case "lastmod":
		again = l.LastMod != 0
		l.LastMod, l.LastModDay, err = parseDate(value)
	case "changefreq":
		again = l.ChangeFreq != 0
		l.ChangeFreq, err = page.ParseChangeFreq(value)
	case "priority":
		again = l.Priority != 0
		l.Priority, err = page.ParsePriority(value)
	default:
		return fmt.Errorf("unknown option '%s=': a line takes %s", short(key), options)
	}
	if again {
		return fmt.Errorf("%s is given twice", key)
	}
	if err != nil {
		if len(value) > maxShort {
			return fmt.Errorf("%s: '%s' is too long", key, short(value))
		}
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// parseDate reads a date that says at least the day. The result is in Unix seconds.
func parseDate(s string) (t int64, dayOnly bool, err error) {
	t, dayOnly, ok := page.ParseDate(s)
	switch {
	case ok:
		return t, dayOnly, nil
	case strings.HasPrefix(s, "19") && s < "1981":
		return 0, false, fmt.Errorf("'%s' is before 1981", s)
	}
	return 0, false, fmt.Errorf("'%s': %w", s, errDate)
}

// Page is the page of l on the site at base, which is a scheme and a host, with a
// port where it is not the scheme's own: https://example.com. An absolute URL must
// have the same three, where hosts are compared without regard to case and in
// their ASCII form (RFC 3986, section 6.2.2.1; RFC 5891, section 4.4). A LastMod
// after now is dropped, because no page has changed in the future; a zero now
// drops none.
//
// The error says in what the URL is none of the site, or that it is longer than
// [page.MaxLoc].
func (l Line) Page(base string, now time.Time) (page.Page, error) {
	o, err := parseBase(base)
	if err != nil {
		return page.Page{}, err
	}
	return site{base, o}.page(l, now)
}

// site is what lines are compared with.
type site struct {
	base   string
	origin origin
}

func (s site) page(l Line, now time.Time) (page.Page, error) {
	ref := l.URL
	if rest, ok := strings.CutPrefix(ref, s.base); ok && strings.HasPrefix(rest, "/") && !strings.HasPrefix(rest, "//") {
		ref = rest // as most do
	}
	o, path, err := splitURL(ref)
	if err == nil && o != (origin{}) {
		err = o.sameAs(s.origin)
	}
	if err != nil {
		return page.Page{}, err
	}
	if n := len(s.base) + len(path); n > page.MaxLoc {
		return page.Page{}, fmt.Errorf("the URL has %d bytes, more than the %d that a sitemap may list", n, page.MaxLoc)
	}
	p := page.Page{Path: path, LastMod: l.LastMod, LastModDay: l.LastModDay, ChangeFreq: l.ChangeFreq, Priority: l.Priority}
	if !now.IsZero() && p.LastMod > now.Unix() {
		p.LastMod, p.LastModDay = 0, false
	}
	return p, nil
}

// cutComment is s up to the # that begins a word, if there is one: elsewhere a #
// begins a URL's fragment.
func cutComment(s string) string {
	for i := 0; i < len(s); i++ {
		j := strings.IndexByte(s[i:], '#')
		if j < 0 {
			return s
		}
		i += j
		if i == 0 || isSpace(s[i-1]) {
			return s[:i]
		}
	}
	return s
}

// cutOption splits a word such as lastmod=2006-01-02. A word whose part before
// the equals sign is no name is part of a URL.
func cutOption(word string) (key, value string, ok bool) {
	key, value, ok = strings.Cut(word, "=")
	if !ok || key == "" {
		return "", "", false
	}
	for i := 0; i < len(key); i++ {
		if !isLetter(key[i]) && key[i] != '_' && key[i] != '-' {
			return "", "", false
		}
	}
	return key, value, true
}

func nextWord(s string) string {
	if i := strings.IndexAny(s, " \t"); i >= 0 {
		return s[:i]
	}
	return s
}

func trim(s string) string { return strings.Trim(s, " \t") }

func isSpace(c byte) bool { return c == ' ' || c == '\t' }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// maxShort is the most bytes that an error or a refusal repeats of a line.
const maxShort = 200

// short is s in at most maxShort bytes of valid UTF-8.
func short(s string) string {
	const ellipsis = "…"
	s = strings.ToValidUTF8(s[:min(len(s), maxShort+1)], "\uFFFD")
	if len(s) <= maxShort {
		return s
	}
	n := maxShort - len(ellipsis)
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + ellipsis
}
