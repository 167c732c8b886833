package document

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

const storedStem = "sitemap" // begins the names of stored documents

// setMeta is the part of a set besides its documents.
type setMeta struct {
	Retired   []retired      `json:"retired,omitempty"`
	LeftOut   map[string]int `json:"left_out,omitempty"`
	Documents int            `json:"documents,omitempty"` // how many there are: a storage may lose some
}

// Documents returns the set in the form that [Restore] takes; nil: nothing.
func (s *Set) Documents() (meta json.RawMessage, documents []record.StoredDocument, err error) {
	if s == nil {
		return nil, nil, nil
	}
	for _, d := range s.All() {
		meta, err := json.Marshal(d)
		if err != nil {
			return nil, nil, err
		}
		name := storedStem + d.Name
		if d.Type == "" {
			name += gzipExtension
		}
		documents = append(documents, record.NewDocument(name, meta, d.Gzip))
	}
	meta, err = json.Marshal(setMeta{s.retired, s.LeftOut, len(documents)})
	return meta, documents, err
}

// Restore returns the set whose documents g has. meta is as returned by [Set.Documents]. Documents that
// previous has, which may be nil, are not read. Errors are as of [record.Generation.Document], or match
// [record.ErrDamaged].
func Restore(
	ctx context.Context, meta json.RawMessage, g *record.Generation, previous *Set,
) (_ *Set, err error) {
	var m setMeta
	malformed := json.Unmarshal(meta, &m)
	s := &Set{LeftOut: m.LeftOut, retired: m.Retired}
	for i, stored := range g.Documents() {
		name := strings.TrimSuffix(strings.TrimPrefix(stored.Name, storedStem), gzipExtension)
		d := &Document{Name: name, Section: SectionOf(name)}
		malformed = errors.Join(malformed, json.Unmarshal(stored.Meta, d))
		d.Modified = record.ClampTime(d.Modified)
		known := previous.Find(d.Name)
		if known != nil && isSame(known, d) {
			d.Gzip = known.Gzip
		} else {
			d.Gzip, err = g.Document(ctx, i)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the stored documents: %w", err)
		}
		switch {
		case d.Name == extension:
			s.Index = d
		case d.Pages > 0:
			s.Shards = append(s.Shards, d)
		default:
			s.Others = append(s.Others, d)
		}
	}
	// A storage may have lost some: an index without one of its shards was served once.
	if s.Index == nil || len(g.Documents()) < m.Documents {
		malformed = errors.Join(malformed, errors.New("documents are missing"))
	}
	if malformed != nil {
		return nil, fmt.Errorf("restoring the sitemap: %w: %w", record.ErrDamaged, malformed)
	}
	s.complete()
	s.leadOn()
	return s, nil
}
