// Package urllist reads the pages of lists, which have one URL and optional hints a line, and of existing sitemaps.
package urllist

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

var (
	errBlank  = errors.New("the line is blank")
	errText   = errors.New("the line is not text in UTF-8")
	errStart  = errors.New("a URL must begin with a slash, https:// or http://")
	errSecond = errors.New("a line must have only one URL")
	errDate   = errors.New("a date must be 2006-01-02, 2006-01-02T15:04Z or 2006-01-02T15:04:05+07:00, from 1981 on")

	comment   = regexp.MustCompile(`(^|[ \t])#.*`) // elsewhere a # begins a URL's fragment
	option    = regexp.MustCompile(`[ \t][A-Za-z_-]+=`)
	secondURL = regexp.MustCompile(`[ \t](/|[^ \t]+://)`)
)

// ParseLine reads one line of a list, without its line end:
//
//	<url> [lastmod=<date>] [changefreq=<frequency>] [priority=<0.0–1.0>]
//
// Words are parted by spaces and tabs; a # that begins a word begins a comment. The URL is absolute, or a path of
// the site that begins with a slash; it may have spaces in it. A date is one of [page.ParseDate].
//
// base is the scheme, host and port of the site, as [origin.Of] writes them; absolute URLs must have the same. "":
// those of any site will do. The error says what the line should be.
func ParseLine(s, base string) (page.Page, error) {
	if strings.Contains(s, "#") {
		s = comment.ReplaceAllString(s, "")
	}
	s = strings.Trim(s, " \t")
	if s == "" {
		return page.Page{}, errBlank
	}
	isBinary := func(r rune) bool { return unicode.IsControl(r) && r != '\t' }
	if !utf8.ValidString(s) || strings.ContainsFunc(s, isBinary) {
		return page.Page{}, errText
	}
	// A URL may have spaces in it, so it goes on to the first word that is an option.
	url := s
	options := ""
	if at := option.FindStringIndex(s); at != nil {
		url = strings.TrimRight(s[:at[0]], " \t")
		options = s[at[0]:]
	}
	if secondURL.MatchString(url) {
		return page.Page{}, errSecond
	}
	var p page.Page
	for _, word := range strings.Fields(options) {
		if err := readOption(&p, word); err != nil {
			return page.Page{}, err
		}
	}
	var err error
	p.Path, err = pathOf(url, base)
	return p, err
}

// readOption reads one option into a page. The error says what it should be.
func readOption(p *page.Page, word string) error {
	key, value, _ := strings.Cut(word, "=")
	var err error
	switch key {
	case "lastmod":
		var ok bool
		p.LastMod, p.LastModDay, ok = page.ParseDate(value)
		if !ok {
			err = fmt.Errorf("'%s': %w", value, errDate)
		}
	case "changefreq":
		p.ChangeFreq, err = page.ParseChangeFreq(value)
	case "priority":
		p.Priority, err = page.ParsePriority(value)
	default:
		return fmt.Errorf("unknown option '%s=': use lastmod=, changefreq= or priority=", key)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// pathOf returns the normal path of a URL of the site at base.
func pathOf(url, base string) (path string, err error) {
	rest, hasBase := strings.CutPrefix(url, base)
	isOfSite := base != "" && hasBase && strings.HasPrefix(rest, "/")      // as most are written
	isPath := strings.HasPrefix(url, "/") && !strings.HasPrefix(url, "//") // else a host would follow (RFC 3986, section 4.2)
	switch {
	case isOfSite:
		path, err = page.Normal(rest)
	case isPath:
		path, err = page.Normal(url)
	default:
		path, err = pathOfAbsolute(url, base)
	}
	// The base is part of what a sitemap lists, also where the line has only a path.
	if n := len(base) + len(path); err == nil && n > page.MaxLoc {
		err = fmt.Errorf("the URL has %d bytes, more than the %d that a sitemap may list", n, page.MaxLoc)
	}
	return path, err
}

// pathOfAbsolute is pathOf for a URL that is written in another form than base.
func pathOfAbsolute(url, base string) (string, error) {
	u, err := origin.ParseURL(url)
	if errors.Is(err, origin.ErrNotAbsolute) {
		return "", errStart
	}
	if err != nil {
		return u.Path, err
	}
	if base != "" && !u.IsOn(base) {
		return u.Path, fmt.Errorf("it is on %s, not on %s", u.Origin(), base)
	}
	return u.Path, nil
}
