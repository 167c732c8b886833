package indexing

import (
	"context"
	"sort"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// Explanation is what a selection says of one page.
type Explanation struct {
	// Record is what is known of the page. Nil: nothing; it has no status then.
	Record *store.Record

	Status Status
	Listed bool // it may be kept in spite of its status: see [Rules.KeepListed]

	// Other is the page on account of which this one is not listed: its canonical, the one
	// that it duplicates, or to which it redirects or refreshes. A path where it is on the
	// site, else an absolute URL. "": there is none, or it is not known.
	Other string

	// Selected is what the selection writes: the date if the page is listed, the text's
	// date in any case.
	Selected store.Selected
}

// Explain selects, and returns what that says of one page. It reads all records once, and
// again as far as the page of which this one is a duplicate. Errors are those of [Select].
func Explain(ctx context.Context, g *store.Generation, r Rules, path string) (Explanation, error) {
	s, err := Select(ctx, g, r)
	if err != nil {
		return Explanation{}, err
	}
	rec, st, err := s.find(ctx, path)
	if rec == nil || err != nil {
		return Explanation{}, err
	}
	x := Explanation{Record: rec, Status: st.status(), Listed: st&isListed != 0, Selected: s.selected(rec, st)}
	switch x.Status {
	case CanonicalForeign, CanonicalOther:
		x.Other = rec.Canonical
	case Redirect, Refresh:
		x.Other = rec.Target
	case Duplicate:
		x.Other, err = s.original(ctx, rec)
	}
	return x, err
}

// find returns the record of a page, nil if there is none, and its state.
func (s *Selection) find(ctx context.Context, path string) (*store.Record, state, error) {
	chunks := s.generation.Chunks()
	i := max(sort.Search(len(chunks), func(i int) bool { return chunks[i].First > path })-1, 0)
	records, err := s.load(ctx, i)
	for j := range records {
		if records[j].Path == path {
			return &records[j], s.states[s.chunks[i]+j], err
		}
	}
	return nil, 0, err
}

// original returns the path of the page that a page duplicates.
func (s *Selection) original(ctx context.Context, rec *store.Record) (string, error) {
	keys := []uint64{duplicateKey(rec.Path, rec.Text)}
	if bare, ok := withoutPaging(rec); ok {
		keys = append(keys, duplicateKey(bare, rec.Text))
	}
	for other, err := range s.generation.Records(ctx) {
		if err != nil {
			return "", err
		}
		for _, key := range keys {
			if m, ok := s.groups.of(key); ok && other.Path != rec.Path && hash(other.Path) == m.path {
				return other.Path, nil
			}
		}
	}
	return "", nil
}
