package sitemap

import (
	"cmp"
	"slices"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/origin"
)

// isSitePattern reports whether an operator means all sites that a pattern matches: in a URL, an asterisk stands for itself
// only in a path, and there are hardly any sites of such a path.
func isSitePattern(text string) bool { return strings.Contains(text, "*") }

// compileSitePattern returns what tells whether a pattern matches a site. An asterisk stands for any characters, also dots and
// slashes, as in Caddy's path matchers; case does not matter. With a scheme, it is a pattern of the site's URL, or of its
// sitemap's; else of its host, with or without the port and the folder.
func compileSitePattern(pattern string) func(*site) bool {
	pattern = strings.ToLower(strings.TrimSuffix(pattern, "/"))
	hasScheme := strings.Contains(pattern, "://")
	return func(s *site) bool {
		names := s.hostNames()
		if hasScheme {
			names = s.urlNames()
		}
		return slices.ContainsFunc(names, func(name string) bool { return matchesAsterisks(pattern, strings.ToLower(name)) })
	}
}

// matchesAsterisks reports whether a text is a pattern with any characters in the place of each asterisk, of which it has one
// at least.
func matchesAsterisks(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	rest, isMatch := strings.CutPrefix(text, parts[0])
	for _, part := range parts[1 : len(parts)-1] {
		if isMatch {
			_, rest, isMatch = strings.Cut(rest, part)
		}
	}
	return isMatch && strings.HasSuffix(rest, parts[len(parts)-1])
}

// urlNames are the URLs of the site and its sitemap, as visitors and as the server know it.
func (i *identity) urlNames() []string {
	document := i.docPath("", ".xml")
	return []string{
		i.origin + i.prefix, i.internalOrigin + i.prefix,
		i.origin + document, i.internalOrigin + document,
	}
}

// hostNames are the hosts of the site, as visitors and as the server know it, with and without port and folder.
func (i *identity) hostNames() (all []string) {
	for _, o := range []string{i.origin, i.internalOrigin} {
		_, authority, _ := strings.Cut(o, "://")
		for _, host := range []string{authority, origin.HostOf(o)} {
			all = append(all, host, host+i.prefix)
		}
	}
	return all
}

// closest sorts the URLs of sites by how much their hosts have in common with a URL or pattern, at both ends.
func closest(wanted string, urls []string) []string {
	host := func(url string) string {
		if _, rest, hasScheme := strings.Cut(url, "://"); hasScheme {
			url = rest
		}
		url, _, _ = strings.Cut(url, "/")
		return strings.ToLower(strings.ReplaceAll(url, "*", ""))
	}
	wanted = host(wanted)
	score := make(map[string]int, len(urls))
	for _, url := range urls {
		score[url] = inCommon(wanted, host(url))
	}
	slices.SortStableFunc(urls, func(x, y string) int { return cmp.Compare(score[y], score[x]) })
	return urls
}

// inCommon counts the bytes that two texts have in common at their beginnings and ends.
func inCommon(x, y string) int {
	most := min(len(x), len(y))
	begin := 0
	for begin < most && x[begin] == y[begin] {
		begin++
	}
	end := 0
	for end < most-begin && x[len(x)-1-end] == y[len(y)-1-end] {
		end++
	}
	return begin + end
}
