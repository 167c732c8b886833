package publish

import (
	"slices"
	"strings"
	"time"
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

// newSnapshot takes shards in order of their pages; without any, index is the only urlset.
func newSnapshot(index *Document, shards []*Document, old *Snapshot, now time.Time, left map[string]int) *Snapshot {
	s := &Snapshot{Index: index, Shards: shards, LeftOut: left, names: make(map[string]*Document, len(shards)+1)}
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

// all are the index and the shards.
func (s *Snapshot) all() []*Document { return append([]*Document{s.Index}, s.Shards...) }

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
	i, found := slices.BinarySearchFunc(s.Shards, path, func(d *Document, path string) int {
		return strings.Compare(d.First, path)
	})
	if !found && i > 0 {
		i--
	}
	return s.Shards[i]
}

// Equal reports whether a newer snapshot has the same documents under the same names.
func (s *Snapshot) Equal(newer *Snapshot) bool {
	if s == nil || newer == nil {
		return s == newer
	}
	sameName := func(a, b retired) bool { return a.Suffix == b.Suffix }
	same := func(a, b *Document) bool { return a.Suffix == b.Suffix && a.ETag == b.ETag }
	return slices.EqualFunc(s.all(), newer.all(), same) && slices.EqualFunc(s.retired, newer.retired, sameName)
}

// Form is a form in which a document is requested.
type Form uint8

// The forms.
const (
	FormXML Form = iota
	FormGzip
	FormText
)

var extensions = [...]string{FormXML: ".xml", FormGzip: ".xml.gz", FormText: ".txt"}

// Extension is what names of the form end in.
func (f Form) Extension() string { return extensions[f] }

// ParseName returns the suffix and form of the document that a path names. stem is the path of the sitemap without
// its extension. ok is false if the path names no document.
func ParseName(path, stem string) (suffix string, form Form, ok bool) {
	rest, ours := strings.CutPrefix(path, stem)
	for f, extension := range extensions {
		if suffix, found := strings.CutSuffix(rest, extension); ours && found {
			return suffix, Form(f), suffix == "" || isShardSuffix(suffix)
		}
	}
	return "", 0, false
}

// isShardSuffix matches a hyphen and 12 lower-case hexadecimal digits.
func isShardSuffix(s string) bool {
	digits, ok := strings.CutPrefix(s, "-")
	return ok && len(digits) == 12 && strings.Trim(digits, "0123456789abcdef") == ""
}
