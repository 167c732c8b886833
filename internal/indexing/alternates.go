package indexing

import (
	"slices"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// Why an alternate is left out.
const (
	notALanguage     = "its hreflang is not x-default, a language of ISO 639, or one with a country of ISO 3166-1, such as de or en-GB"
	notBelow         = "it is not below " // followed by an origin
	asThisPage       = ", as this page is"
	notMutual        = "it is not listed, its canonical is another page, or it does not link back"
	selfNotCanonical = "the canonical of this page is another one"
)

const xDefault = "x-default"

// alternateSets are the pages that are listed and their own canonicals, with the pages that they name as alternates.
type alternateSets struct {
	of   map[uint64]uint64   // keys of sets, by hash of the page's path
	sets map[uint64][]uint64 // sorted hashes of paths: of the page itself, and of those of the site that it names

	languages map[string]bool // whether engines read an hreflang, of those seen last
	scratch   []uint64
}

// maxLanguages bounds alternateSets.languages. No site has as many.
const maxLanguages = 1000

func newAlternateSets() alternateSets {
	return alternateSets{
		of:        make(map[uint64]uint64),
		sets:      make(map[uint64][]uint64),
		languages: make(map[string]bool),
	}
}

// add adds a page that names alternates.
func (s *alternateSets) add(base, path string, list []page.Alternate) {
	if len(list) == 0 {
		return
	}
	self := hash(path)
	s.scratch = append(s.scratch[:0], self)
	for _, a := range list {
		there, onSite := html.PathOn(base, a.URL)
		if !onSite {
			continue
		}
		s.scratch = append(s.scratch, hash(there))
		if bare := page.Bare(there); bare != there {
			s.scratch = append(s.scratch, hash(bare)) // a file may be listed by that name
		}
	}
	slices.Sort(s.scratch)
	s.scratch = slices.Compact(s.scratch)
	var key uint64
	for _, member := range s.scratch {
		key += member // hashes, of which others have another sum
	}
	// All versions of a text mostly name the same pages, so one set does for all of them.
	if s.sets[key] == nil {
		s.sets[key] = slices.Clone(s.scratch)
	}
	s.of[self] = key
}

// remove removes a page that is not listed.
func (s *alternateSets) remove(path uint64) { delete(s.of, path) }

// links reports whether a page names another one, or is it: as its path is spelled, or else as a file's name is.
func (s *alternateSets) links(from string, to uint64) bool {
	key, isKnown := s.of[hash(from)]
	if !isKnown {
		key = s.of[hash(page.Bare(from))]
	}
	_, found := slices.BinarySearch(s.sets[key], to)
	return found
}

// isLanguage is [html.IsLanguage], which takes longer than all else that is done with an alternate.
func (s *alternateSets) isLanguage(hreflang string) bool {
	is, known := s.languages[hreflang]
	if known {
		return is
	}
	if len(s.languages) == maxLanguages {
		clear(s.languages)
	}
	is = html.IsLanguage(hreflang)
	s.languages[strings.Clone(hreflang)] = is
	return is
}

func isDefault(a page.Alternate) bool { return strings.EqualFold(a.Lang, xDefault) }

// alternatesOf returns the alternates with which a listed page is listed.
func (s *Selection) alternatesOf(rec *store.Record) []page.Alternate {
	isLeftOut := func(a page.Alternate) bool { return s.whyLeftOut(rec.Path, a) != "" }
	alternates := rec.Extensions().Alternates
	if !slices.ContainsFunc(alternates, isLeftOut) {
		return alternates // nearly always
	}
	s.result.AlternatesLeftOut.add(rec.Path)
	return slices.DeleteFunc(slices.Clone(alternates), isLeftOut)
}

// whyLeftOut returns why an alternate of a listed page is left out; "": it is not. It goes by pairs, as search engines
// do: two pages that both name each other are versions of one another, whatever else they name
// (https://developers.google.com/search/docs/specialty/international/localized-versions).
func (s *Selection) whyLeftOut(path string, a page.Alternate) string {
	sets := &s.alternates
	if !sets.isLanguage(a.Lang) {
		return notALanguage
	}
	base := s.rules.Base
	there, onSite := html.PathOn(base, a.URL)
	if !onSite && html.HasHostOf(base, a.URL) {
		return notBelow + base + asThisPage
	}
	isInScope := onSite && strings.HasPrefix(there, s.rules.Scope)
	if !isInScope {
		return "" // what is listed there, another sitemap tells
	}
	if isDefault(a) && there == s.rules.Scope {
		return "" // it may choose a language by the visitor's, and then names no single page
	}
	self := hash(path)
	if _, isCanonical := sets.of[self]; !isCanonical {
		return selfNotCanonical
	}
	if !sets.links(there, self) {
		return notMutual
	}
	return ""
}

// AlternateLeftOut is an alternate with which a page is not listed.
type AlternateLeftOut struct {
	page.Alternate
	Reason string // a clause, such as "the canonical of this page is another one"
}

// alternatesLeftOut returns the alternates with which a listed page is not listed.
func (s *Selection) alternatesLeftOut(rec *store.Record) (all []AlternateLeftOut) {
	for _, a := range rec.Extensions().Alternates {
		if reason := s.whyLeftOut(rec.Path, a); reason != "" {
			all = append(all, AlternateLeftOut{a, reason})
		}
	}
	return all
}
