package indexing

import (
	"slices"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// Why an alternate is left out.
const (
	notALanguage = "its hreflang is not x-default, a language of ISO 639, or one with a country of ISO 3166-1, such as de or en-GB"
	notMutual    = "it is not listed, its canonical is another page, or it does not link back"
)

// alternateSets are the pages that may be listed, with the pages that they name as alternates. Paths are hashed: see bareHash.
type alternateSets struct {
	of   map[uint64]uint64   // keys of sets, by page
	sets map[uint64][]uint64 // sorted: the page itself, and those of the site that it names

	languages map[string]bool // whether engines read an hreflang: finding out takes longer than all else
}

// add adds a page that names alternates.
func (s *alternateSets) add(base, path string, list []page.Alternate) {
	if len(list) == 0 {
		return
	}
	self := bareHash(path)
	set := make([]uint64, 1, 1+len(list))
	set[0] = self
	for _, a := range list {
		if there, onSite := html.PathOn(base, a.URL); onSite {
			set = append(set, bareHash(there))
		}
	}
	slices.Sort(set)
	set = slices.Compact(set)
	var key uint64
	for _, member := range set {
		key += member // hashes, of which others have another sum
	}
	// All versions of a text mostly name the same pages, so one set does for all of them.
	s.sets[key] = set
	s.of[self] = key
}

// links reports whether a page names another one, or is it.
func (s *alternateSets) links(from string, to uint64) bool {
	key := s.of[bareHash(from)]
	_, found := slices.BinarySearch(s.sets[key], to)
	return found
}

func (s *alternateSets) isLanguage(hreflang string) bool {
	is, isKnown := s.languages[hreflang]
	if !isKnown {
		is = html.IsLanguage(hreflang)
		s.languages[hreflang] = is
	}
	return is
}

// alternatesOf returns the alternates with which a listed page is listed, and those that are left out.
func (s *Selection) alternatesOf(rec *record.Record) (kept []page.Alternate, leftOut []AlternateLeftOut) {
	for _, a := range rec.Extensions().Alternates {
		if why := s.whyLeftOut(rec.Path, a); why != "" {
			leftOut = append(leftOut, AlternateLeftOut{a, why})
		} else {
			kept = append(kept, a)
		}
	}
	return kept, leftOut
}

// whyLeftOut returns why an alternate of a listed page is left out; "": it is not. It goes by pairs, as search engines
// do: two pages that both name each other are versions of one another, whatever else they name
// (https://developers.google.com/search/docs/specialty/international/localized-versions).
func (s *Selection) whyLeftOut(path string, a page.Alternate) string {
	if !s.alternates.isLanguage(a.Lang) {
		return notALanguage
	}
	there, onSite := html.PathOn(s.rules.Base, a.URL)
	isInScope := onSite && strings.HasPrefix(there, s.rules.Scope)
	if !isInScope {
		return "" // what is listed there, another sitemap tells
	}
	isDefault := strings.EqualFold(a.Lang, "x-default")
	if isDefault && there == s.rules.Scope {
		return "" // it may choose a language by the visitor's, and then names no single page
	}
	if !s.alternates.links(there, bareHash(path)) {
		return notMutual
	}
	return ""
}

// AlternateLeftOut is an alternate with which a page is not listed.
type AlternateLeftOut struct {
	page.Alternate
	Reason string // a clause, such as "it is not listed"
}
