// Package indexing decides which pages of a site are listed: each page has one index
// status, and a listed one the date of its last change, if that is known.
package indexing

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// Rules are what a selection goes by besides the records.
type Rules struct {
	// Base is the site's scheme, host and port, and Front the path of its front page.
	Base, Front string

	// Respect says that a page that names another as its canonical gives way to it. Without
	// it, canonicals play no part at all.
	Respect bool

	// OmitOrphans leaves out the pages to which no listed page links. Those that only links
	// or visitors name are left out in any case.
	OmitOrphans bool

	// Expire is how long a link counts after the page that has it was last fetched. 0: for
	// ever.
	Expire time.Duration

	// Dates is where dates come from.
	Dates Mode

	// MaxPages is how many pages are listed at most. 0: any number.
	MaxPages int

	// Alternates and Images say that these are listed.
	Alternates, Images bool

	// Hints sets the changefreq and priority that the operator gives a page. Nil: none.
	Hints func(p *page.Page)

	// Filter returns why a page is excluded or out of scope, "" if it is not. Nil: none is.
	Filter func(p *page.Page) string

	// Unlinked matches the paths that are listed if visitors had them, though no page links
	// to them. Nil: none are.
	Unlinked func(path string) bool

	// OpenBatch is the batch that the crawl has not completed: what its pages' dates are
	// can only be told from all of it. 0: there is none.
	OpenBatch int64

	// KeepListed keeps the pages of the last published selection, unless they are excluded,
	// disallowed or refused.
	KeepListed bool

	// Now is the time of the selection: no date is later.
	Now time.Time
}

// Selection is what was selected of a generation. It is not safe for concurrent use.
type Selection struct {
	rules      Rules
	generation *store.Generation
	chunks     []int   // index in states of each chunk's first record, and their number
	states     []state // of the records in order
	groups     groups  // of duplicates
	dates      dates
	alternates alternateSets
	result     Result
}

// state is the status of a page, with what else is known of it.
type state uint8

const (
	statusMask state = 1<<5 - 1
	isOrphan   state = 1 << 5 // it is listed though no page links to it
	mayKeep    state = 1 << 6 // it was listed, and what speaks against it may be an error
	isListed   state = 1 << 7
)

func (s state) status() Status { return Status(s & statusMask) }

// Select decides the status of all records. It reads them once, one chunk at a time, and
// keeps about 40 bytes for each until it returns, one afterwards. Errors are those of
// [store.Generation.Load].
func Select(ctx context.Context, g *store.Generation, r Rules) (*Selection, error) {
	s := &Selection{rules: r, generation: g, states: make([]state, 0, g.Len())}
	s.dates.rules = &s.rules
	c := newCandidates(g.Len())
	for i := range g.Chunks() {
		records, err := g.Load(ctx, i)
		if err != nil {
			return nil, err
		}
		s.chunks = append(s.chunks, len(s.states))
		for j := range records {
			s.add(&records[j], c)
		}
		runtime.Gosched() // requests go first
	}
	s.chunks = append(s.chunks, len(s.states))
	s.dates.decide()
	sortPairs(s.alternates)
	s.groups = c.resolve()
	s.settle(c)
	return s, ctx.Err()
}

// add takes a record into account, in the first reading.
func (s *Selection) add(rec *store.Record, c *candidates) {
	own := s.rules.ownStatus(rec)
	st := state(own)
	if rec.Selected.Listed {
		s.result.Before++
		if !isFinal(own, rec) {
			st |= mayKeep
		}
	}
	s.states = append(s.states, st)
	s.dates.add(rec)
	if own != Indexable && own != CanonicalOther {
		return
	}
	c.add(rec, &s.rules, own)
	if s.rules.Alternates {
		s.alternates.add(rec.Path, rec.Alternates)
	}
}

// isFinal reports whether a page with this status is not to be listed on any account: it is
// private, or the operator says so.
func isFinal(status Status, rec *store.Record) bool {
	switch status {
	case Excluded, Disallowed, OverMax:
		return true
	case Refused:
		return rec.Status == 401 || rec.Status == 403
	}
	return false
}

// settle gives each candidate its status, and says which pages are listed.
func (s *Selection) settle(c *candidates) {
	next := 0
	for i, st := range s.states {
		status := st.status()
		if status == Indexable || status == CanonicalOther {
			var isLinked bool
			status, isLinked = c.statusAt(next, s.groups, s.rules.OmitOrphans)
			st = st&^statusMask | state(status)
			if !isLinked {
				st |= isOrphan
			}
			next++
		}
		listed := status == Indexable || s.rules.KeepListed && st&mayKeep != 0
		switch {
		case listed && s.rules.MaxPages > 0 && s.result.Listed >= s.rules.MaxPages:
			st = st&^statusMask | state(OverMax)
		case listed:
			st |= isListed
			s.result.Listed++
		}
		s.states[i] = st
	}
}

var errIncomplete = errors.New("the records changed while they were read")

// load loads a chunk again. One that was found damaged since is empty.
func (s *Selection) load(ctx context.Context, i int) ([]store.Record, error) {
	records, err := s.generation.Load(ctx, i)
	if err == nil && len(records) != s.chunks[i+1]-s.chunks[i] {
		err = errIncomplete
	}
	return records, err
}

// Pages reads the records again and yields the listed pages in order, with their dates. It
// is to be ranged over once. An error, as of [store.Generation.Load] or
// [store.Writer.Generation], is the last that is yielded.
func (s *Selection) Pages(ctx context.Context) iter.Seq2[page.Page, error] {
	return func(yield func(page.Page, error) bool) {
		w := writer{next: s.generation.Writer()}
		for i, chunk := range s.generation.Chunks() {
			records, err := s.load(ctx, i)
			if err != nil {
				yield(page.Page{}, err)
				return
			}
			changed := false
			for j := range records {
				rec, st := &records[j], s.states[s.chunks[i]+j]
				selected := s.selected(rec, st)
				s.result.add(rec, st, selected, s.dates.template[selected.Dated])
				changed = changed || selected != rec.Selected
				rec.Selected = selected
				if st&isListed != 0 && !yield(s.page(rec), nil) {
					return
				}
			}
			w.write(i, chunk, records, changed)
			runtime.Gosched()
		}
		g, err := w.next.Generation()
		if err != nil {
			yield(page.Page{}, err)
			return
		}
		s.result.Generation = g
	}
}

// selected is what the record of a page says of this selection.
func (s *Selection) selected(rec *store.Record, st state) store.Selected {
	if st&isListed != 0 && st.status() != Indexable {
		return rec.Selected // kept as it was: what changed may be an error
	}
	selected := s.dates.of(rec)
	if selected.Listed = st&isListed != 0; !selected.Listed {
		selected.LastMod, selected.Day = 0, false
	}
	return selected
}

// page is a listed page.
func (s *Selection) page(rec *store.Record) page.Page {
	p := pageOf(rec)
	p.LastMod, p.LastModDay = rec.Selected.LastMod, rec.Selected.Day
	if s.rules.Hints != nil {
		s.rules.Hints(&p)
	}
	var e page.Extensions
	if s.rules.Images {
		e.Images = rec.Images
	}
	if s.rules.Alternates && len(rec.Alternates) > 0 {
		if s.alternates.areMutual(s.rules.Base, rec.Path, rec.Alternates) {
			e.Alternates = rec.Alternates
		} else {
			s.result.NotMutual.add(rec.Path)
		}
	}
	if !e.Empty() {
		p.Extensions = &e
	}
	return p
}

// writer writes the next generation. Chunks in which nothing changed are kept.
type writer struct {
	next *store.Writer
	run  bool  // the last chunk was written anew
	due  int64 // the earliest of those that were since one was kept
}

func (w *writer) write(i int, c store.Chunk, records []store.Record, changed bool) {
	if !changed {
		w.next.Keep(i)
		w.run = false
		return
	}
	if !w.run || c.Due < w.due {
		w.due = c.Due
	}
	w.run = true
	due := w.due // the store may join chunks
	w.next.Put(c.First, records, func(first, _ string) uint64 {
		if first == c.First {
			return c.Digest
		}
		return 0 // of a chunk that is cut, no part's digest is known: the crawl looks at them
	}, func([]store.Record) int64 { return due })
}
