package document

import (
	"slices"
	"strings"
)

// separators stand between the title of a page and the name of its site.
var separators = []string{" - ", " | ", " – ", " — ", " · ", " :: "}

// headline returns a title without the names of its site that it ends or begins with, after or before a separator. A
// title that is nothing but a name stays. Google wants neither the name of the publication nor that of the author in it
// (https://developers.google.com/search/docs/crawling-indexing/sitemaps/news-sitemap#news-sitemap-reference).
func headline(title string, names []string) string {
	for {
		shorter := withoutName(title, names)
		if shorter == title {
			return title
		}
		title = shorter
	}
}

// withoutName is headline for one name, which may have separators in it.
func withoutName(title string, names []string) string {
	isName := func(part string) bool {
		part = strings.TrimSpace(part)
		return part != "" && slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, part) })
	}
	for _, separator := range separators {
		for at := range title {
			rest, isThere := strings.CutPrefix(title[at:], separator)
			if !isThere {
				continue
			}
			first := strings.TrimSpace(title[:at])
			rest = strings.TrimSpace(rest)
			if first == "" || rest == "" {
				continue // the title is nothing but a name
			}
			if isName(rest) {
				return first
			}
			if isName(first) {
				return rest
			}
		}
	}
	return title
}

const (
	sampledTitles = 20_000 // which tell the name of the site
	fewestTitles  = 4      // that end in it
)

// endings counts what titles end in.
type endings struct {
	titles int
	count  map[string]int
}

func (e *endings) add(title string) {
	if title == "" || e.titles == sampledTitles {
		return
	}
	e.titles++
	e.count[lastPart(title)]++
}

// most is what more than half of the titles end in, behind a separator; "": nothing.
func (e *endings) most() string {
	for ending, n := range e.count {
		if ending != "" && n >= fewestTitles && 2*n > e.titles {
			return ending
		}
	}
	return ""
}

// lastPart is the end of a title behind its last separator; "": it has none.
func lastPart(title string) string {
	begin := 0
	for _, separator := range separators {
		if at := strings.LastIndex(title, separator); at > 0 {
			begin = max(begin, at+len(separator))
		}
	}
	if begin == 0 {
		return ""
	}
	return strings.Clone(title[begin:])
}
