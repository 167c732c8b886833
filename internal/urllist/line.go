// Package urllist reads the pages of lists, which have one URL and optional hints a line, and of existing sitemaps.
package urllist

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
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
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }) {
		return page.Page{}, errText
	}
	var p page.Page
	url := s
	options := ""
	if blank := strings.IndexAny(s, " \t"); blank > 0 {
		if at := option.FindStringIndex(s[blank:]); at != nil {
			url = s[:blank+at[0]]
			options = s[len(url):]
		}
		if secondURL.MatchString(url[blank:]) {
			return page.Page{}, errSecond
		}
	}
	var given []string
	var err error
	for _, word := range strings.Fields(options) {
		key, value, ok := strings.Cut(word, "=")
		switch key {
		case "lastmod":
			p.LastMod, p.LastModDay, ok = page.ParseDate(value)
			if !ok {
				err = fmt.Errorf("'%s': %w", value, errDate)
			}
		case "changefreq":
			p.ChangeFreq, err = page.ParseChangeFreq(value)
		case "priority":
			p.Priority, err = page.ParsePriority(value)
		default:
			if !ok {
				return page.Page{}, fmt.Errorf("'%s' after an option: the URL must come first", word)
			}
			return page.Page{}, fmt.Errorf("unknown option '%s=': use lastmod=, changefreq= or priority=", key)
		}
		if slices.Contains(given, key) {
			return page.Page{}, fmt.Errorf("%s is given twice", key)
		}
		given = append(given, key)
		if err != nil {
			return page.Page{}, fmt.Errorf("%s: %w", key, err)
		}
	}
	p.Path, err = pathOf(strings.TrimRight(url, " \t"), base)
	return p, err
}

// pathOf returns the canonical path of a URL of the site at base.
func pathOf(url, base string) (path string, err error) {
	if rest, ok := strings.CutPrefix(url, base); ok && strings.HasPrefix(rest, "/") && base != "" {
		path, err = page.Canonical(rest) // as most are written
	} else if strings.HasPrefix(url, "/") && !strings.HasPrefix(url, "//") {
		path, err = page.Canonical(url)
	} else {
		var u origin.URL
		u, err = origin.ParseURL(url)
		path = u.Path
		switch {
		case errors.Is(err, origin.ErrNotAbsolute):
			err = errStart
		case err == nil && base != "" && u.Origin() != base:
			err = fmt.Errorf("it is on %s, not on %s", u.Origin(), base)
		}
	}
	if n := len(base) + len(path); err == nil && n > page.MaxLoc {
		err = fmt.Errorf("the URL has %d bytes, more than the %d that a sitemap may list", n, page.MaxLoc)
	}
	return path, err
}
