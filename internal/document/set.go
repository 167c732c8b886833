package document

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Names of removed shards keep working for a while.
const (
	retiredFor = 90 * 24 * time.Hour
	maxRetired = 10_000
)

// Set is one finished set of a site's documents. It never changes. A nil Set has no documents.
type Set struct {
	Index   *Document      // the index, or the only urlset
	Shards  []*Document    // what Index lists, by section and in order of their pages; empty where Index is the only urlset
	Others  []*Document    // indexes of the sections that have several shards, and files beside the XML, by Name
	Pages   int            // listed pages
	Bytes   int64          // of memory, roughly
	LeftOut map[string]int // pages that did not fit, by reason: [NoRoom], [TooLarge]
	News    *News          // what there is to know of the news sitemap; nil: there is none, or the set was restored

	retired []retired // the latest one last
	names   map[string]*Document
}

// retired is the name of a removed shard.
type retired struct {
	Suffix  string    `json:"suffix"`            // without its extension
	First   string    `json:"first"`             // path of its first page
	Section string    `json:"section,omitempty"` // that this page is in now, or would be if it were listed
	At      time.Time `json:"at"`
}

// complete fills in what follows from the documents.
func (s *Set) complete() {
	slices.SortFunc(s.Shards, inOrder)
	slices.SortFunc(s.Others, func(a, b *Document) int { return strings.Compare(a.Name, b.Name) })
	s.names = make(map[string]*Document)
	for _, d := range s.All() {
		s.names[d.Name] = d
		s.Pages += d.Pages
		s.Bytes += int64(len(d.Gzip))
	}
}

// inOrder compares shards by their sections, and then by their pages.
func inOrder(a, b *Document) int {
	return cmp.Or(strings.Compare(a.Section, b.Section), strings.Compare(a.First, b.First))
}

// All are the documents. An index comes after those that it lists: whoever writes them one by one refers to none that is missing.
func (s *Set) All() []*Document {
	return slices.Concat(s.Shards, s.Others, []*Document{s.Index})
}

// retire remembers the names of shards of the previous set, which may be nil, that no document has any more. sectionOf
// returns the section that a path is in now.
func (s *Set) retire(previous *Set, now time.Time, sectionOf func(path string) string) {
	if previous == nil {
		return
	}
	all := slices.Clone(previous.retired)
	for _, d := range previous.Shards {
		if IsHashed(d.Name) {
			suffix := strings.TrimSuffix(d.Name, extension)
			all = append(all, retired{Suffix: suffix, First: d.First, At: now.UTC()})
		}
	}
	all = slices.DeleteFunc(all, func(r retired) bool {
		// What has the name now comes first.
		return now.Sub(r.At) >= retiredFor || s.Find(r.Suffix+extension) != nil
	})
	s.retired = all[max(len(all)-maxRetired, 0):] // without the oldest of too many
	for i := range s.retired {
		r := &s.retired[i]
		r.Section = sectionOf(r.First)
	}
	s.leadOn()
}

// leadOn has each retired name lead to the urlset that now has its first page.
func (s *Set) leadOn() {
	for _, r := range s.retired {
		s.names[r.Suffix+extension] = s.Holding(r.Section, r.First)
		s.Bytes += 100 + int64(len(r.First))
	}
}

// Find returns the document with a name: see [Names]. For a shard that was removed within 90 days, it is the one that now has
// its first page. nil: the name is not known.
func (s *Set) Find(name string) *Document {
	if s == nil {
		return nil
	}
	return s.names[name]
}

// FindForm is [Set.Find] for the name of a document in any of its forms.
func (s *Set) FindForm(name string) (*Document, Form) {
	if packed, ok := strings.CutSuffix(name, extension+gzipExtension); ok {
		return s.Find(packed + extension), FormGzip
	}
	if listed, ok := strings.CutSuffix(name, textExtension); ok {
		// Only a urlset has a list.
		if d := s.Find(listed + extension); d != nil && d.Pages > 0 {
			return d, FormText
		}
	}
	return s.Find(name), FormPlain
}

// Holding returns the urlset that lists a path of a section, or would if it were listed; "": it is in no section. Of a
// section without pages, it is any.
func (s *Set) Holding(section, path string) *Document {
	if len(s.Shards) == 0 {
		return s.Index
	}
	i, found := slices.BinarySearchFunc(s.Shards, path, func(d *Document, path string) int {
		return cmp.Or(strings.Compare(d.Section, section), strings.Compare(d.First, path))
	})
	// The shard before holds what sorts before the first page of the next.
	if !found && i > 0 && s.Shards[i-1].Section == section {
		i--
	}
	return s.Shards[min(i, len(s.Shards)-1)]
}

// Section is a section of a set that has pages.
type Section struct {
	Name   string `json:"section"`
	Pages  int    `json:"pages"`
	Shards int    `json:"shards,omitempty"` // documents that list them
}

// Sections are those that have pages, by name.
func (s *Set) Sections() []Section {
	if s == nil {
		return nil
	}
	var all []Section
	for _, d := range s.Shards {
		name := d.Section
		if name == "" {
			continue
		}
		if len(all) == 0 || all[len(all)-1].Name != name {
			all = append(all, Section{Name: name})
		}
		last := &all[len(all)-1]
		last.Pages += d.Pages
		last.Shards++
	}
	return all
}

// Equal reports whether a newer set has the same documents under the same names.
func (s *Set) Equal(newer *Set) bool {
	if s == nil || newer == nil {
		return s == newer
	}
	return s.XMLDigest() == newer.XMLDigest() && maps.EqualFunc(s.names, newer.names, isSame)
}

// XMLDigest is a digest of the indexes and shards; "": s is nil.
func (s *Set) XMLDigest() string {
	if s == nil {
		return ""
	}
	h := xxhash.New()
	for _, d := range s.All() {
		if d.Type == "" && d.Name != NewsSitemap {
			_, _ = h.WriteString(d.Name + d.ETag) // which never fails
		}
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

func isSame(a, b *Document) bool { return a.Name == b.Name && a.ETag == b.ETag }
