// Package page holds [Page], one URL of a site, which all other packages share, reads and writes its parts, and tells what
// its path, the name of its file and the status of a response say about it.
package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// MaxLoc is the longest URL that a sitemap may list, in bytes: the protocol asks for less than 2,048 characters
// (https://www.sitemaps.org/protocol.html).
const MaxLoc = 2047

// Page is one URL of a site and what is known of it.
type Page struct {
	// Path is the page's path on the site with its query, if it has one, as [Normal] writes it. It begins with a
	// slash and holds neither scheme nor host.
	Path string

	// LastMod is when the page last changed, in Unix seconds (UTC). 0: not known. LastModDay says that only the day of
	// it is known. A source sets it to what a list or an author says, never to the time of a file.
	LastMod    int64
	LastModDay bool

	// FileTime is the modification time of the file that the page is read from, in Unix seconds. 0: not known. It says
	// less than LastMod: a deployment may have written the file anew.
	FileTime int64

	// ChangeFreq is how often the page changes. The zero value: not said.
	ChangeFreq ChangeFreq

	// Priority is the page's weight within its site. The zero value: not said.
	Priority Priority

	// Version tells states of the file that a page is read from apart. 0: no file is known.
	Version uint32

	// Visited says that only visitors name the page. Sources has a bit for each source that names it, by the source's
	// number; the last bit is for all from the 16th on. Sources do not set it themselves.
	Visited bool
	Sources uint16

	// Extensions is what else is known of the page; of a candidate, what lists say. Nil: nothing. It is never changed.
	Extensions *Extensions
}

// Merge fills the unknown fields of p from o, the same page of another source. Of each kind of date, the later is kept;
// of a day and its midnight, the time, which says more. So the dates do not depend on the order of the sources.
func (p *Page) Merge(o Page) {
	if o.LastMod > p.LastMod {
		p.LastMod = o.LastMod
		p.LastModDay = o.LastModDay
	} else if o.LastMod == p.LastMod {
		p.LastModDay = p.LastModDay && o.LastModDay
	}
	p.FileTime = max(p.FileTime, o.FileTime)
	p.ChangeFreq = cmp.Or(p.ChangeFreq, o.ChangeFreq)
	p.Priority = cmp.Or(p.Priority, o.Priority)
	p.Version = cmp.Or(p.Version, o.Version)
	p.Sources |= o.Sources
	p.Visited = p.Visited && o.Visited
	if p.Extensions != nil && o.Extensions != nil {
		both := *p.Extensions
		both.Add(o.Extensions)
		p.Extensions = &both
	}
	p.Extensions = cmp.Or(p.Extensions, o.Extensions)
}

// BestDate is LastMod, or else FileTime, and whether only the day of it is known; 0: neither is known, nor is what is
// before [Earliest], or later than now.
func (p *Page) BestDate(now int64) (unix int64, day bool) {
	isPossible := func(at int64) bool { return Earliest <= at && at <= now }
	switch {
	case isPossible(p.LastMod):
		return p.LastMod, p.LastModDay
	case isPossible(p.FileTime):
		return p.FileTime, false
	}
	return 0, false
}

// Compare orders pages by the bytes of their paths.
func Compare(a, b Page) int { return strings.Compare(a.Path, b.Path) }

// Bounds of [Extensions]. Search engines take a thousand images of a page.
const (
	MaxAlternates = 500
	MaxImages     = 1000
	MaxVideos     = 16
)

// Extensions is what is known of a page beyond the protocol's own elements. Lists say only what has a number, by which it is kept
// on disk.
type Extensions struct {
	Title string `cbor:"-"` // of the page, which its entry in a sitemap does not have; "": none, or not collected

	// Alternates are the page's versions in other languages, itself among them
	// (https://developers.google.com/search/docs/specialty/international/localized-versions).
	Alternates []Alternate `cbor:"1,keyasint,omitempty"`

	// Images are the absolute URLs of the images on the page
	// (https://developers.google.com/search/docs/crawling-indexing/sitemaps/image-sitemaps).
	Images []string `cbor:"2,keyasint,omitempty"`

	// Videos are the videos on the page, each as the elements of its entry in a sitemap, with the prefix video
	// (https://developers.google.com/search/docs/crawling-indexing/sitemaps/video-sitemaps).
	Videos []string `cbor:"3,keyasint,omitempty"`

	// What follows is in no entry of a sitemap of pages, like Title. Description is what the page declares as its own, on one
	// line of at most 200 characters, and Markdown the absolute URL of the version of it in Markdown that it declares, which is on
	// the site and has returned 200; "": none, or not collected.
	Description, Markdown string `cbor:"-"`

	// Depth is the fewest links from a page that a source names. 0: none, or not collected.
	Depth uint8 `cbor:"-"`

	// Published is when the page says that it was published, in Unix seconds (UTC), up to a day after it was read.
	// PublishedDay says that only the day is known, of which Published is the midnight in UTC. 0: it is no article, or that was
	// not collected. Headline is what the article is called, on one line of at most 200 characters; "": its Title has to do.
	// Lang is its language, or that of the front page, as in BCP 47, such as "de" or "pt-BR"; "": not known.
	Published      int64  `cbor:"-"`
	PublishedDay   bool   `cbor:"-"`
	Headline, Lang string `cbor:"-"`
}

// Add adds the alternates, images and videos of o, which may be nil, that e does not have, within the bounds. Of each
// language, the first version stays.
func (e *Extensions) Add(o *Extensions) {
	if o == nil {
		return
	}
	isSame := func(a, b Alternate) bool { return strings.EqualFold(a.Lang, b.Lang) }
	isEqual := func(a, b string) bool { return a == b }
	e.Alternates = union(e.Alternates, o.Alternates, isSame, MaxAlternates)
	e.Images = union(e.Images, o.Images, isEqual, MaxImages)
	e.Videos = union(e.Videos, o.Videos, isEqual, MaxVideos)
}

// union returns a with what of b it does not have, up to so many. It changes neither.
func union[T any](a, b []T, isSame func(T, T) bool, most int) []T {
	all := slices.Clip(a)
	for _, one := range b {
		isKnown := slices.ContainsFunc(all, func(other T) bool { return isSame(one, other) })
		if !isKnown && len(all) < most {
			all = append(all, one)
		}
	}
	return all
}

// Empty reports whether e, which may be nil, adds nothing to the page's entry.
func (e *Extensions) Empty() bool {
	return e == nil || len(e.Alternates)+len(e.Images)+len(e.Videos) == 0
}

// IsZero reports whether e, which may be nil, says nothing at all.
func (e *Extensions) IsZero() bool {
	if e == nil {
		return true
	}
	isArticle := e.Published != 0 || e.Headline != "" || e.Lang != ""
	isDescribed := e.Title != "" || e.Description != "" || e.Markdown != ""
	return e.Empty() && !isDescribed && !isArticle && e.Depth == 0
}

// Alternate is a version of a page for readers of a language or region.
type Alternate struct {
	Lang string // as in hreflang, such as "de-AT" or "x-default"
	URL  string // absolute
}

// ChangeFreq is a page's change frequency, one of the protocol's seven.
type ChangeFreq uint8

var changeFreqs = [...]string{"", "always", "hourly", "daily", "weekly", "monthly", "yearly", "never"}

// ChangeFreqs are the seven frequencies by name, the most frequent first.
func ChangeFreqs() []string { return changeFreqs[1:] }

// ParseChangeFreq reads one of the names of [ChangeFreqs]; they are lower-case.
func ParseChangeFreq(s string) (ChangeFreq, error) {
	if i := slices.Index(changeFreqs[:], s); i > 0 {
		return ChangeFreq(i), nil
	}
	return 0, fmt.Errorf("'%s' is not a change frequency: use one of %s", s, strings.Join(changeFreqs[1:], ", "))
}

// String returns the frequency's name; "" for the zero value and for invalid ones.
func (c ChangeFreq) String() string {
	if int(c) < len(changeFreqs) {
		return changeFreqs[c]
	}
	return ""
}

// Priority is a page's weight within its site, 0.0 to 1.0, in hundredths plus one, so that the zero value means that
// nothing is said.
type Priority uint8

// ParsePriority reads a decimal number from 0.0 to 1.0; digits after the second decimal place are rounded.
func ParsePriority(s string) (Priority, error) {
	f, err := strconv.ParseFloat(s, 64)
	isDecimal := strings.Trim(s, "0123456789.") == "" // ParseFloat takes 1e-1, 0x1p-2 and NaN, too
	if err != nil || !isDecimal {
		return 0, fmt.Errorf("'%s': a priority must be a number from 0.0 to 1.0", s)
	}
	return PriorityOf(f)
}

// PriorityOf is the Priority of a number from 0.0 to 1.0.
func PriorityOf(f float64) (Priority, error) {
	isInRange := f >= 0 && f <= 1 // which NaN is not
	if !isInRange {
		return 0, fmt.Errorf("'%v': a priority must be a number from 0.0 to 1.0", f)
	}
	return Priority(math.Round(f*100)) + 1, nil
}

// String returns the priority as the protocol writes it, such as "0.5"; "" for the zero value and for invalid ones.
func (p Priority) String() string {
	if p == 0 || p > 101 {
		return ""
	}
	return strings.TrimSuffix(fmt.Sprintf("%.2f", float64(p-1)/100), "0")
}
