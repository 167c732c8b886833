package indexing

import (
	"context"
	"sort"

	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// Explanation is the selection of one page.
type Explanation struct {
	Record *record.Record // nil: the page is not known, and has no status
	Status Status
	Listed bool // perhaps despite its status: see Options.KeepListed

	// Other is the page because of which this one is not listed: its canonical, the one that
	// it duplicates, or to which it redirects or refreshes. It is a path on the site, or else
	// an absolute URL. "": there is none, or it is not known.
	Other string

	Alternates []AlternateLeftOut // of a listed page, if they are extracted
	DatedBy    string             // of a listed page, as it was published
}

// Explain selects, and returns the selection of one page. Errors are those of [Select].
func Explain(ctx context.Context, g *record.Generation, r Options, path string) (x Explanation, err error) {
	s, err := Select(ctx, g, r)
	if err != nil {
		return x, err
	}
	x, err = s.find(ctx, path)
	rec := x.Record
	if rec == nil {
		return x, err
	}
	switch x.Status {
	case CanonicalForeign, CanonicalOther:
		x.Other = rec.Canonical
	case Redirect, Refresh:
		x.Other = rec.Target
	case Duplicate:
		x.Other, err = s.original(ctx, rec)
	}
	x.DatedBy = s.dates.ruleOf(rec)
	if r.Extract.Alternates && x.Listed {
		_, x.Alternates = s.alternatesOf(rec)
	}
	return x, err
}

// original returns the path of the page that stays of a duplicate's group; "": it is not the text of now by which they are one.
func (s *Selection) original(ctx context.Context, duplicate *record.Record) (string, error) {
	stays, isGroup := s.groups[duplicateKey(nameKey(duplicate.Path), duplicate.Text)]
	if !isGroup {
		return "", nil
	}
	i := sort.SearchInts(s.chunks, stays.at+1) - 1
	records, err := s.load(ctx, i)
	if err != nil {
		return "", err
	}
	return records[stays.at-s.chunks[i]].Path, nil
}

// find returns the record of a path and its status; the zero value: there is none.
func (s *Selection) find(ctx context.Context, path string) (x Explanation, err error) {
	i := s.generation.ChunkOf(path)
	records, err := s.load(ctx, i)
	if err != nil {
		return x, err
	}
	if at, isThere := record.Search(records, path); isThere {
		st := s.states[s.chunks[i]+at]
		x.Record = &records[at]
		x.Status = st.status
		x.Listed = st.isListed
	}
	return x, nil
}
