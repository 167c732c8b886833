package origin

import (
	"slices"
	"strings"
)

// Intersect returns the hosts that two lists of a route's host matchers have in common; of a pattern
// and a host that it matches, the host. A nil list stands for all hosts, an empty one for none.
func Intersect(outer, inner []string) []string {
	if outer == nil {
		return inner
	}
	if inner == nil {
		return outer
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

// Overlap reports whether lists as of [Intersect] have a host in common.
func Overlap(a, b []string) bool {
	both := Intersect(a, b)
	return both == nil || len(both) > 0
}

// hostMatches matches as Caddy does: an asterisk stands for one label. A matcher has an IPv6 address without brackets,
// and a name perhaps with a dot at its end, of which [CleanHost] knows nothing.
func hostMatches(pattern, host string) bool {
	if strings.Contains(pattern, "{") {
		return true // only a request can tell
	}
	pattern = bareHost(pattern)
	host = bareHost(host)
	// A server of a thousand sites compares each with each.
	if !strings.Contains(pattern, "*") {
		return strings.EqualFold(pattern, host)
	}
	return slices.EqualFunc(strings.Split(pattern, "."), strings.Split(host, "."), func(p, h string) bool {
		return p == "*" || strings.EqualFold(p, h)
	})
}

func bareHost(host string) string {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		return strings.TrimSuffix(inner, "]")
	}
	return strings.TrimSuffix(host, ".")
}
