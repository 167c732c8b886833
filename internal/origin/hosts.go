package origin

import (
	"slices"
	"strings"
)

// Intersect is what is left of outer hosts inside a route that names inner ones; empty, but
// not nil: no host that could be named.
func Intersect(outer, inner []string) []string {
	if outer == nil || inner == nil {
		return append(outer, inner...)
	}
	both := []string{}
	for _, a := range outer {
		for _, b := range inner {
			if hostMatches(a, b) {
				both = append(both, b)
			} else if hostMatches(b, a) {
				both = append(both, a)
			}
		}
	}
	return both
}

// Overlap reports whether a host could lead to both.
func Overlap(a, b []string) bool {
	return a == nil || b == nil || len(Intersect(a, b)) > 0
}

// hostMatches is Caddy's rule: an asterisk stands for one label.
func hostMatches(pattern, host string) bool {
	if strings.Contains(pattern, "{") {
		return true // only a request can tell
	}
	return slices.EqualFunc(strings.Split(pattern, "."), strings.Split(host, "."), func(p, h string) bool {
		return p == "*" || strings.EqualFold(p, h)
	})
}
