package webpage

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
