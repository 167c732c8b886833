// Package urllist reads the pages of lists, which have one URL and optional hints a line, and of existing sitemaps.
package urllist

import (
	"errors"
	"fmt"
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
	errOption = errors.New("only lastmod=, changefreq= or priority= may follow the URL of a line, in which %20 stands for a space")
	errDate   = errors.New("a date must be 2006-01-02, 2006-01-02T15:04Z or 2006-01-02T15:04:05+07:00, from 1981 on")
)

// ParseLine reads one line of a list, without its line end:
//
//	<url> [lastmod=<date>] [changefreq=<frequency>] [priority=<0.0–1.0>]
//
// Words are parted by spaces and tabs; a # that begins a word begins a comment: elsewhere it begins a URL's fragment. The URL
// is absolute, or a path of the site that begins with a slash. A date is one of [page.ParseDate].
//
// base is the scheme, host and port of the site, as [origin.Of] writes them; absolute URLs must have the same. "":
// those of any site will do. The error says what the line should be.
func ParseLine(s, base string) (page.Page, error) {
	words := strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '\t' })
	beginsComment := func(word string) bool { return word[0] == '#' }
	if at := slices.IndexFunc(words, beginsComment); at >= 0 {
		words = words[:at]
	}
	if len(words) == 0 {
		return page.Page{}, errBlank
	}
	line := strings.Join(words, " ")
	if !utf8.ValidString(line) || strings.ContainsFunc(line, unicode.IsControl) {
		return page.Page{}, errText
	}
	path, err := pathOf(words[0], base)
	p := page.Page{Path: path}
	for _, word := range words[1:] {
		if err == nil {
			err = readOption(&p, word)
		}
	}
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
		err = errOption
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// pathOf returns the normal path of a URL of the site at base.
func pathOf(url, base string) (path string, err error) {
	isPath := strings.HasPrefix(url, "/") && !strings.HasPrefix(url, "//") // else a host would follow (RFC 3986, section 4.2)
	if isPath {
		path, err = page.Normal(url)
	} else {
		path, err = pathOfAbsolute(url, base)
	}
	// The base is part of what a sitemap lists, also where the line has only a path.
	if n := len(base) + len(path); err == nil && n > page.MaxLoc {
		err = fmt.Errorf("the URL has %d bytes, more than the %d that a sitemap may list", n, page.MaxLoc)
	}
	return path, err
}

// pathOfAbsolute is pathOf for an absolute URL.
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
