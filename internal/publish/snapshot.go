package publish

import (
	"slices"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/webpage"
)

// Names of removed shards keep working for a while.
const (
	retiredFor = 90 * 24 * time.Hour
	maxRetired = 10_000
)

// Snapshot is one finished set of a site's documents. It never changes. A nil Snapshot has no documents.
type Snapshot struct {
	Index   *Document      // the index, or the only urlset
	Shards  []*Document    // in order of their pages; empty where Index is the only urlset
	Files   []*Document    // what is beside the XML, by Suffix
	Pages   int            // listed pages
	Bytes   int64          // of memory, roughly
	LeftOut map[string]int // pages that did not fit, by reason: [NoRoom], [TooLarge]

	retired []retired // the latest one last
	names   map[string]*Document
}

// retired is the name of a removed shard.
type retired struct {
	Suffix string    `json:"suffix"`
	First  string    `json:"first"` // path of its first page
	At     time.Time `json:"at"`
}

// complete fills in what follows from the documents, and from the previous snapshot, which may be nil.
func (s *Snapshot) complete(old *Snapshot, now time.Time) *Snapshot {
	slices.SortFunc(s.Files, func(a, b *Document) int { return strings.Compare(a.Suffix, b.Suffix) })
	s.names = make(map[string]*Document)
	for _, d := range s.all() {
		s.names[d.Suffix] = d
		s.Pages += d.Pages
		s.Bytes += int64(len(d.Gzip))
	}
	if old != nil {
		s.retire(old, now)
	}
	return s
}

// all are the index, the shards and the files.
func (s *Snapshot) all() []*Document { return slices.Concat([]*Document{s.Index}, s.Shards, s.Files) }

// retire remembers the shards of the previous snapshot that were removed.
func (s *Snapshot) retire(previous *Snapshot, now time.Time) {
	for _, r := range previous.retired {
		if s.names[r.Suffix] == nil && now.Sub(r.At) < retiredFor {
			s.retired = append(s.retired, r)
		}
	}
	for _, d := range previous.Shards {
		if s.names[d.Suffix] == nil {
			s.retired = append(s.retired, retired{d.Suffix, d.First, now.UTC()})
		}
	}
	s.retired = slices.Clone(s.retired[max(len(s.retired)-maxRetired, 0):])
	for _, r := range s.retired {
		s.names[r.Suffix] = s.Holding(r.First)
		s.Bytes += 100 + int64(len(r.First))
	}
}

// Find returns the document with a suffix: see [ParseName]. For a shard that was removed within 90 days, it is the one
// that now has its first page. nil: the suffix is not known.
func (s *Snapshot) Find(suffix string) *Document {
	if s == nil {
		return nil
	}
	return s.names[suffix]
}

// Holding returns the urlset that lists a path, or would if it were listed.
func (s *Snapshot) Holding(path string) *Document {
	if len(s.Shards) == 0 {
		return s.Index
	}
	byFirst := func(d *Document, path string) int { return strings.Compare(d.First, path) }
	i, found := slices.BinarySearchFunc(s.Shards, path, byFirst)
	if !found && i > 0 {
		i-- // the shard before holds what sorts before the first page of the next
	}
	return s.Shards[i]
}

// Equal reports whether a newer snapshot has the same documents under the same names.
func (s *Snapshot) Equal(newer *Snapshot) bool {
	if s == nil || newer == nil {
		return s == newer
	}
	if !s.EqualXML(newer) || !slices.EqualFunc(s.Files, newer.Files, isSame) {
		return false
	}
	return slices.EqualFunc(s.retired, newer.retired, func(a, b retired) bool { return a.Suffix == b.Suffix })
}

// EqualXML reports whether a newer snapshot has the same index and shards. None is nil.
func (s *Snapshot) EqualXML(newer *Snapshot) bool {
	return isSame(s.Index, newer.Index) && slices.EqualFunc(s.Shards, newer.Shards, isSame)
}

func isSame(a, b *Document) bool { return a.Suffix == b.Suffix && a.ETag == b.ETag }

// Form is a form in which a document is requested.
type Form uint8

// The forms.
const (
	FormXML Form = iota
	FormGzip
	FormText
	FormFile // of what is beside the XML
)

var extensions = [...]string{FormXML: ".xml", FormGzip: ".xml.gz", FormText: ".txt", FormFile: ""}

// Extension is what names of the form end in. That of a file is a part of its suffix.
func (f Form) Extension() string { return extensions[f] }

// ParseName returns the suffix and form of the document that a path names. stem is the path of the sitemap without
// its extension, and beside says which files there are. ok is false if the path names no document.
func ParseName(path, stem string, beside webpage.Options) (suffix string, form Form, ok bool) {
	rest, ours := strings.CutPrefix(path, stem)
	if !ours {
		return
	}
	for f, extension := range extensions[:FormFile] {
		if suffix, found := strings.CutSuffix(rest, extension); found {
			return suffix, Form(f), suffix == "" || isHash(suffix, 12)
		}
	}
	switch rest {
	case webpage.Feed:
		return rest, FormFile, beside.Feed
	case webpage.Stylesheet:
		return rest, FormFile, beside.Stylesheet
	}
	part, isHTML := strings.CutSuffix(rest, webpage.HTML)
	isFolder := part == "" || isHash(part, 32) // the page of the topmost folder has no hash
	return rest, FormFile, beside.HTML && isHTML && isFolder
}

// isHash matches a hyphen and n lower-case hexadecimal digits.
func isHash(s string, n int) bool {
	return len(s) == 1+n && s[0] == '-' && strings.Trim(s[1:], "0123456789abcdef") == ""
}
