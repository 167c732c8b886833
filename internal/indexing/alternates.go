package indexing

import (
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/htmlmeta"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// alternateSets are the alternates that pages list: the hash of the set by that of the path.
type alternateSets map[uint64]uint64

func (s alternateSets) add(path string, list []page.Alternate) {
	if len(list) > 0 {
		s[hash(path)] = setHash(list)
	}
}

// areMutual reports whether all pages of a set, the page itself among them, list the same
// set (https://developers.google.com/search/docs/specialty/international/localized-versions).
func (s alternateSets) areMutual(base, path string, list []page.Alternate) bool {
	own, itself := setHash(list), false
	for _, alternate := range list {
		there, ok := htmlmeta.PathOn(base, alternate.URL)
		if !ok || s[hash(there)] != own {
			return false
		}
		itself = itself || there == path
	}
	return itself
}

// setHash is the same for lists that differ in order only.
func setHash(list []page.Alternate) (sum uint64) {
	for _, a := range list {
		sum += hash(strings.ToLower(a.Lang) + " " + a.URL)
	}
	return sum
}
