// Package indexing decides which pages of a site are listed: each page has one index
// status, and a listed one the date of its last change, if that is known.
package indexing

import (
	"context"
	"errors"
	"iter"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// Options are the inputs of a selection besides the records.
type Options struct {
	Base             string        // the site's scheme, host and port
	Scope            string        // the path prefix of its pages, and the path of its front page
	IgnoreCanonicals bool          // canonicals do not count; else a page gives way to its canonical
	OmitOrphans      bool          // pages without incoming links are left out, whatever names them
	Expire           time.Duration // how long a link counts after its page was last fetched; 0: for ever
	Depth            int           // the most links that the crawl follows to a page; 0: there is no limit
	Visits           bool          // a linked page is fetched if visitors have requested it, whatever its depth
	Dates            Mode
	TrustLists       bool // the operator names the lists: their dates count though they are all alike
	MaxPages         int  // 0: no limit
	KeepListed       bool // previously listed pages stay unless they are refused or excluded

	Extract html.Options // what the extensions of listed pages have
	Depths  bool         // and how many links away they are

	Hints    func(p *page.Page)        // sets the operator's changefreq and priority
	Filter   func(p *page.Page) string // why a page is excluded or out of scope; "": it is not
	Unlinked func(path string) bool    // a visited page needs no incoming links; nil: it does

	Followed  int64         // since when all pages with links were looked at: see [record.Workload]; 0: it is not known
	OpenBatch int64         // the batch that the crawl has not completed: its texts are not dated yet; 0: none
	Now       time.Time     // no date is later
	Interval  time.Duration // between refreshes: how far apart changes may be found that belong together
	Once      bool          // no selection follows soon: no date waits for the end of a deployment

	Notices Notices
}

// Selection is the selection from a generation. It is not safe for concurrent use.
type Selection struct {
	rules      Options
	generation *record.Generation
	states     []state // of the records in order
	chunks     []int   // index in states of each chunk's first record, and the end
	groups     duplicateGroups
	dates      dates
	alternates alternateSets
	images     map[uint64]bool // of the site, and versions in Markdown, that returned 200, by hash of their paths
	result     Result
}

// state is the status of a page, with what else is known of it.
type state struct {
	status   Status
	isOrphan bool // it is listed though no page links to it
	mayKeep  bool // it was listed, and its status may be an error
	isListed bool
}

// Select decides the status of all records. It reads them chunk by chunk and holds some 50
// bytes of each until it returns, then 16. Errors are those of [record.Generation.Load].
func Select(ctx context.Context, g *record.Generation, r Options) (*Selection, error) {
	s := &Selection{
		rules:      r,
		generation: g,
		states:     make([]state, 0, g.Len()),
		alternates: alternateSets{
			of:        make(map[uint64]uint64),
			sets:      make(map[uint64][]uint64),
			languages: make(map[string]bool),
		},
		images: make(map[uint64]bool),
	}
	s.dates = newDates(&s.rules)
	c := newContenders(g.Len())
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
	if s.result.Before == 0 {
		s.rules.Notices.IsKnown = false // all of them are new, as in a first crawl
	}

	s.dates.decide()
	s.result.DatesDue = s.dates.due()

	// What a page is to others shows only now. Canonicals come first: a page that gives way to its own is no duplicate
	// of another one.
	c.resolveCanonicals()
	c.holdDuplicates()
	s.groups = c.group()
	s.settle(c)
	return s, ctx.Err()
}

// add takes a record into account, in the first reading.
func (s *Selection) add(rec *record.Record, c *contenders) {
	own := s.rules.ownStatus(rec)
	if rec.Selected.Listed {
		s.result.Before++
	}
	s.states = append(s.states, state{
		status:  own,
		mayKeep: s.rules.KeepListed && rec.Selected.Listed && !isFinal(own, rec),
	})
	s.dates.add(rec)
	isPicture := rec.Flags&(record.Image|record.HTML|record.Blocked) == record.Image // an error page is HTML
	if isPicture && rec.Status == 200 && rec.Absent == 0 {
		s.images[hash(rec.Path)] = true
	}
	if isContender(own) {
		c.add(rec, &s.rules, own)
		s.alternates.add(s.rules.Base, rec.Path, rec.Extensions().Alternates)
		return
	}
	c.all = append(c.all, contender{})
}

func isContender(own Status) bool { return own == Indexable || own == CanonicalOther }

// isFinal reports whether a status cannot be an error: the page is private, or the operator's settings leave it out.
func isFinal(status Status, rec *record.Record) bool {
	switch status {
	case Excluded, Disallowed, TooDeep, OverMax:
		return true
	case Refused:
		return rec.Status == 401 || rec.Status == 403
	}
	return false
}

// settle gives each contender its status, and says which pages are listed.
func (s *Selection) settle(c *contenders) {
	named := make(map[uint64]uint64) // alternates of pages that are listed: no page may name another one as its version
	for i := range s.states {
		st := &s.states[i]
		if isContender(st.status) {
			st.status, st.isOrphan = c.statusAt(i, s.groups, s.rules.OmitOrphans)
		}
		isWanted := st.status == Indexable || st.mayKeep
		isFull := s.rules.MaxPages > 0 && s.result.Listed >= s.rules.MaxPages
		if isWanted && isFull {
			st.status = OverMax
			continue
		}
		st.isListed = isWanted
		if !isWanted {
			continue
		}
		s.result.Listed++
		path := c.all[i].path
		if set, names := s.alternates.of[path]; names {
			named[path] = set
		}
	}
	s.alternates.of = named
}

// load loads a chunk again. If it was found damaged since, that is an error.
func (s *Selection) load(ctx context.Context, i int) ([]record.Record, error) {
	records, err := s.generation.Load(ctx, i)
	if err == nil && len(records) != s.chunks[i+1]-s.chunks[i] {
		err = errors.New("the records changed while they were read")
	}
	return records, err
}

// maxDescribed is the most pages whose descriptions are kept: they take up to 56 bytes each in the state, as much as all
// else that is known of a page.
const maxDescribed = 50_000

// Pages reads the records again and yields the listed pages in order. It must be ranged over
// once. An error, as of [record.Generation.Load] or [record.Writer.Generation], is yielded last.
func (s *Selection) Pages(ctx context.Context) iter.Seq2[page.Page, error] {
	return func(yield func(page.Page, error) bool) {
		w := s.generation.Writer()
		due := int64(math.MaxInt64) // of the chunks since the last one kept, which the store may join
		isLarge := s.generation.Len() > maxDescribed
		for i, chunk := range s.generation.Chunks() {
			records, err := s.load(ctx, i)
			if err != nil {
				yield(page.Page{}, err)
				return
			}
			changed := false
			for j := range records {
				rec := &records[j]
				if isLarge && rec.Description != "" {
					rec.Description = ""
					changed = true
				}
				st := s.states[s.chunks[i]+j]
				selected := s.selected(rec, st)
				isMoved := s.move(rec, st, selected)
				changed = changed || isMoved || selected != rec.Selected
				if selected.Dated != rec.Selected.Dated {
					rec.Was = record.Unix32(rec.Selected.Text)
					rec.WasDay = rec.Selected.TextDay
				}
				rec.Selected = selected
				if st.isListed && !yield(s.page(rec), nil) {
					return
				}
			}
			// A chunk in which nothing has changed is not encoded, nor stored again.
			due = min(due, chunk.Due)
			if changed {
				put(w, chunk, records, due)
			} else {
				w.Keep(i)
				due = math.MaxInt64
			}
			runtime.Gosched() // requests go first
		}
		g, err := w.Generation()
		s.result.Generation = g
		if err != nil {
			yield(page.Page{}, err)
		}
	}
}

// move counts what has become of a page, and reports whether there is something else to tell of it than before.
func (s *Selection) move(rec *record.Record, st state, selected record.Selected) bool {
	if isImage(rec) && !rec.Selected.Listed {
		return false // nobody expects it to be listed
	}
	before := rec.Moved
	isOther := hasOtherText(rec, selected, s.dates.isOfTemplate(rec))
	m := moveOf(rec, st.status, selected, isOther)
	s.result.add(rec, st, m)
	s.rules.Notices.note(rec, m, isOther || isStated(rec, selected))
	return rec.Moved != before
}

// put writes the records of a chunk with another selection, which has no part in when they are due.
func put(w *record.Writer, chunk record.Chunk, records []record.Record, due int64) {
	digest := func(first, _ string) uint64 {
		if first == chunk.First {
			return chunk.Digest
		}
		return 0 // the digests of parts are not known: the crawl will find that they differ
	}
	w.Put(chunk.First, records, digest, func([]record.Record) int64 { return due })
}

// selected returns what the record of a page keeps of this selection.
func (s *Selection) selected(rec *record.Record, st state) record.Selected {
	if st.isListed && st.status != Indexable {
		return rec.Selected // kept as it was: what changed may be an error
	}
	return s.dates.of(rec, st.isListed)
}

// page is a listed page.
func (s *Selection) page(rec *record.Record) page.Page {
	p := page.Page{
		Path:       rec.Path,
		LastMod:    rec.Selected.LastMod,
		LastModDay: rec.Selected.Day,
		ChangeFreq: rec.ChangeFreq,
		Priority:   rec.Priority,
		Version:    rec.Version,
	}
	s.rules.Hints(&p)
	all := rec.Extensions()
	var e page.Extensions
	if s.rules.Extract.Images {
		e.Images = slices.DeleteFunc(slices.Clone(all.Images), s.isMissing)
	}
	if s.rules.Extract.Videos {
		e.Videos = all.Videos
	}
	if s.rules.Extract.Alternates {
		var leftOut []AlternateLeftOut
		e.Alternates, leftOut = s.alternatesOf(rec)
		if leftOut != nil {
			s.result.AlternatesLeftOut.add(rec.Path)
		}
	}
	if s.rules.Extract.Titles {
		e.Title = rec.Title
	}
	if s.rules.Extract.Descriptions {
		e.Description = rec.Description
	}
	if s.rules.Extract.Markdown && s.isShown(rec.Markdown) {
		e.Markdown = s.rules.Base + rec.Markdown
	}
	if s.rules.Depths {
		e.Depth = rec.Depth
	}
	if a := rec.Article; s.rules.Extract.Articles && a != nil {
		e.Published = a.Published
		e.PublishedDay = a.PublishedDay
		e.Headline = a.Headline
		e.Lang = a.Lang
	}
	if !e.IsZero() {
		p.Extensions = &e
	}
	return p
}

// isShown reports whether a page's version in Markdown may stand for it: it is of the site, has returned 200, and the
// operator does not exclude it.
func (s *Selection) isShown(markdown string) bool {
	return s.images[hash(markdown)] && s.rules.Filter(&page.Page{Path: markdown}) == ""
}

// isMissing reports whether an image is of the site and has not returned 200.
func (s *Selection) isMissing(image string) bool {
	path, ok := html.PathOn(s.rules.Base, image)
	return ok && strings.HasPrefix(path, s.rules.Scope) && !s.images[hash(path)]
}
