package indexing

import (
	"context"
	"slices"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/htmlmeta"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// Why an alternate is left out.
const (
	notALanguage     = "its hreflang is not x-default, a language of ISO 639, or one with a country of ISO 3166-1, such as de or en-GB"
	notBelow         = "it is not below " // followed by an origin
	asThisPage       = ", as this page is"
	notMutual        = "it does not link back"
	otherLanguage    = "it says that it is in another language"
	notNamed         = "no source names it"
	notListed        = "it is not listed: " // followed by its status
	notCanonical     = "its canonical is another page"
	selfNotCanonical = "the canonical of this page is another one"
)

const xDefault = "x-default"

// alternateSets are the pages that are listed and their own canonicals, with the pages that they name as alternates.
type alternateSets struct {
	of   map[uint64]alternateSet // by hash of the page's path
	sets map[uint64][]uint64     // sorted hashes of paths: the pages of one text mostly share one set

	languages map[string]bool // whether engines read an hreflang, of those seen last
	scratch   []uint64
}

// alternateSet is what is known of the alternates of one page.
type alternateSet struct {
	set      uint64 // key of alternateSets.sets: the page itself, and those of the site that it names
	language uint64 // hash of the language that it names for itself, without a region; 0: none, or several
}

// maxLanguages bounds alternateSets.languages. No site has as many.
const maxLanguages = 1000

func newAlternateSets() alternateSets {
	return alternateSets{
		of:        make(map[uint64]alternateSet),
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
	isAmbiguous := false
	var own alternateSet
	s.scratch = append(s.scratch[:0], self)
	for _, a := range list {
		there, onSite := htmlmeta.PathOn(base, a.URL)
		if !onSite {
			continue
		}
		s.scratch = append(s.scratch, hash(there))
		bare := page.Bare(there)
		if bare != there {
			s.scratch = append(s.scratch, hash(bare)) // a file may be listed by that name
		}
		isSelf := there == path || bare == path
		if !isSelf || isDefault(a) {
			continue
		}
		language := languageOf(a)
		isAmbiguous = isAmbiguous || own.language != 0 && own.language != language
		own.language = language
	}
	if isAmbiguous {
		own.language = 0 // its versions need not agree with either
	}
	slices.Sort(s.scratch)
	s.scratch = slices.Compact(s.scratch)
	for _, member := range s.scratch {
		own.set += member // hashes, of which others have another sum
	}
	// All versions of a text mostly name the same pages, so one set does for all of them.
	if s.sets[own.set] == nil {
		s.sets[own.set] = slices.Clone(s.scratch)
	}
	s.of[self] = own
}

// remove removes a page that is not listed.
func (s *alternateSets) remove(path uint64) { delete(s.of, path) }

// at returns the page at a path: as it is spelled, or else as a file's name is.
func (s *alternateSets) at(path string) (set alternateSet, known bool) {
	set, known = s.of[hash(path)]
	if !known {
		set, known = s.of[hash(page.Bare(path))]
	}
	return set, known
}

// linksTo reports whether a page names another, or is it.
func (s *alternateSets) linksTo(from alternateSet, to uint64) bool {
	_, found := slices.BinarySearch(s.sets[from.set], to)
	return found
}

// isLanguage is [htmlmeta.IsLanguage], which takes longer than all else that is done with an alternate.
func (s *alternateSets) isLanguage(hreflang string) bool {
	is, known := s.languages[hreflang]
	if known {
		return is
	}
	if len(s.languages) == maxLanguages {
		clear(s.languages)
	}
	is = htmlmeta.IsLanguage(hreflang)
	s.languages[strings.Clone(hreflang)] = is
	return is
}

func isDefault(a page.Alternate) bool { return strings.EqualFold(a.Lang, xDefault) }

// languageOf is the hash of an alternate's language without script and region.
func languageOf(a page.Alternate) uint64 {
	language, _, _ := strings.Cut(strings.ToLower(a.Lang), "-")
	return hash(language)
}

// alternatesOf returns the alternates with which a listed page is listed.
func (s *Selection) alternatesOf(rec *store.Record) []page.Alternate {
	isLeftOut := func(a page.Alternate) bool { return s.whyLeftOut(rec.Path, a) != "" }
	alternates := rec.Extensions().Alternates
	if !slices.ContainsFunc(alternates, isLeftOut) {
		return alternates // nearly always
	}
	s.result.AlternatesLeftOut.add(rec.Path, maxExamples)
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
	there, onSite := htmlmeta.PathOn(base, a.URL)
	if !onSite && htmlmeta.HasHostOf(base, a.URL) {
		return notBelow + base + asThisPage
	}
	isInScope := onSite && strings.HasPrefix(there, s.rules.Scope)
	if !isInScope {
		return "" // what is listed there, another sitemap tells
	}
	if isDefault(a) && there == s.rules.Scope {
		return "" // it may choose a language by the visitor's, and then names no single page
	}
	if _, isCanonical := sets.of[hash(path)]; !isCanonical {
		return selfNotCanonical
	}
	other, isCanonical := sets.at(there)
	if !isCanonical || !sets.linksTo(other, hash(path)) {
		return notMutual
	}
	// The region may be another one.
	saysOther := other.language != 0 && other.language != languageOf(a)
	if saysOther && !isDefault(a) {
		return otherLanguage
	}
	return ""
}

// AlternateLeftOut is an alternate with which a page is not listed.
type AlternateLeftOut struct {
	page.Alternate
	Reason string // a clause, such as "it does not link back"
}

// alternatesLeftOut returns the alternates with which a listed page is not listed. Errors are those of
// [store.Generation.Load].
func (s *Selection) alternatesLeftOut(ctx context.Context, rec *store.Record) (all []AlternateLeftOut, err error) {
	for _, a := range rec.Extensions().Alternates {
		reason := s.whyLeftOut(rec.Path, a)
		if reason == notMutual {
			there, _ := htmlmeta.PathOn(s.rules.Base, a.URL)
			reason, err = s.whyNotMutual(ctx, there)
			if err != nil {
				return nil, err
			}
		}
		if reason != "" {
			all = append(all, AlternateLeftOut{a, reason})
		}
	}
	return all, nil
}

// whyNotMutual returns what is wrong with a page that does not link back.
func (s *Selection) whyNotMutual(ctx context.Context, path string) (string, error) {
	rec, st, err := s.find(ctx, path)
	if err == nil && rec == nil && page.Bare(path) != path {
		rec, st, err = s.find(ctx, page.Bare(path)) // a file may be known by that name
	}
	if err != nil {
		return "", err
	}
	if rec == nil {
		return notNamed, nil
	}
	if st&isListed == 0 {
		return notListed + st.status().String(), nil
	}
	if s.rules.ownStatus(rec) == CanonicalOther {
		return notCanonical, nil
	}
	return notMutual, nil
}
