package document

import (
	"iter"
	"slices"
	"strings"
)

// separators stand between the title of a page and the name of its site.
var separators = []string{" - ", " | ", " – ", " — ", " · ", " :: "}

// headline returns a title, which is on one line, without the names of its site that it ends or begins with, after or before a separator. A
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
		return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, part) })
	}
	for first, rest := range halves(title) {
		if isName(rest) {
			return first
		}
		if isName(first) {
			return rest
		}
	}
	return title
}

// halves are what is before and after each separator of a title.
func halves(title string) iter.Seq2[string, string] {
	return func(yield func(first, rest string) bool) {
		for _, separator := range separators {
			for at := range title {
				rest, isThere := strings.CutPrefix(title[at:], separator)
				if isThere && !yield(title[:at], rest) {
					return
				}
			}
		}
	}
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
func lastPart(title string) (last string) {
	for _, rest := range halves(title) {
		if last == "" || len(rest) < len(last) {
			last = rest
		}
	}
	return last
}
