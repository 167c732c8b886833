package crawl

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

const (
	maxPiece    = 4096                   // new candidates that are merged at a time
	pieceWait   = 200 * time.Millisecond // that a piece which is not empty waits for more
	keepAbsent  = 2 * 24 * 3600          // seconds for which a page is kept that no source names any more
	clockSlack  = 3600                   // seconds by which a clock may be ahead
	shortRemark = 3600                   // seconds until a page that was to be dropped is looked at again
)

// gather merges candidates and records, chunk by chunk, and fetches the site's own pages that are due. It
// ends where the candidates do, or soon after wait does.
func (r *Run) gather(ctx, wait context.Context) error {
	w := r.gen.Writer()
	stopped := false
	for i := range r.gen.Chunks() {
		next, last := endOf(r.gen.Chunks(), i)
		if stopped || !last && next <= r.pos {
			w.Keep(i)
			continue
		}
		var err error
		if stopped, err = r.gatherChunk(ctx, wait, w, i, next, last); err != nil {
			return err
		}
	}
	r.gathered = !stopped
	if r.gathered {
		w.SetSettings(r.p.Settings, r.p.Routes)
	}
	gen, err := w.Generation()
	if err == nil {
		r.gen = gen
	}
	return err
}

// gatherChunk is gather for the range of a chunk. It reports whether time ran out.
func (r *Run) gatherChunk(ctx, wait context.Context, w *store.Writer, i int, next string, last bool) (stopped bool, err error) {
	chunk := r.gen.Chunks()[i]
	cands, whole, err := r.take(ctx, wait, next, last, maxPiece+chunk.Count)
	switch {
	case err != nil:
		return false, err
	case !whole && len(cands) == 0:
		w.Keep(i)
		return true, nil
	case whole && chunk.First >= r.pos && r.isSame(chunk, cands):
		w.Keep(i)
		r.pos = max(next, r.pos)
		return false, nil
	}
	rest, err := r.load(ctx, i)
	if err != nil {
		return false, err
	}
	first := chunk.First
	for {
		bound := next
		if !whole {
			bound = cands[len(cands)-1].Path + "\x00"
		}
		part := rest
		if !whole {
			n, _ := find(rest, bound)
			part, rest = slices.Clone(rest[:n]), rest[n:]
		}
		n, _ := find(part, r.pos)
		r.countPending(part[:n], -1) // as they are counted already
		part = r.merge(part, cands)
		if !r.p.Closed {
			r.fetch(wait, part, first, false)
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
		r.put(w, first, part)
		r.countPending(part, 1)
		r.setVisited(first, cands, whole && first == chunk.First)
		first, r.pos = bound, max(bound, r.pos)
		if whole {
			return false, nil
		}
		if cands, whole, err = r.take(ctx, wait, next, last, maxPiece+chunk.Count); err != nil {
			return false, err
		}
		if !whole && len(cands) == 0 || wait.Err() != nil {
			r.held = append(cands, r.held...)
			r.put(w, first, rest)
			return true, nil
		}
	}
}

// take returns candidates up to the path next, or the end; whole: there are no more. If they are many, or
// slow, it returns some of them. None that are not whole: time ran out.
func (r *Run) take(ctx, wait context.Context, next string, last bool, most int) (cands []page.Page, whole bool, err error) {
	soon, cancel := context.WithTimeout(wait, pieceWait)
	defer cancel()
	for p, ok, err := r.candidate(wait); ; p, ok, err = r.candidate(soon) {
		switch {
		case err != nil && ctx.Err() == nil && (wait.Err() != nil || len(cands) > 0 && soon.Err() != nil):
			return cands, false, nil
		case err != nil:
			return nil, false, errors.Join(ctx.Err(), err)
		case !ok:
			return cands, true, nil
		case !last && p.Path >= next:
			r.held = slices.Insert(r.held, 0, p)
			return cands, true, nil
		}
		if cands = append(cands, p); len(cands) == most {
			return cands, false, nil
		}
	}
}

func (r *Run) candidate(ctx context.Context) (page.Page, bool, error) {
	if len(r.held) > 0 {
		p := r.held[0]
		r.held = r.held[1:]
		return p, true, nil
	}
	return r.cands.Next(ctx)
}

// isSame reports whether a chunk's records can stay as they are.
func (r *Run) isSame(chunk store.Chunk, cands []page.Page) bool {
	now := r.c.o.Now().Unix()
	if r.resettle || r.reroute || chunk.Due <= now || chunk.Due > now+maxAhead+clockSlack {
		return false
	}
	var named uint64
	for i := range cands {
		if !cands[i].Visited {
			named += digestOf(&cands[i])
		}
	}
	return named == chunk.Digest && visitsOf(cands) == r.c.visited[chunk.First]
}

func visitsOf(cands []page.Page) (sum uint64) {
	for i := range cands {
		if cands[i].Visited {
			sum += xxhash.Sum64String(cands[i].Path)
		}
	}
	return sum
}

// setVisited remembers that the visits of a chunk were looked at. Those of a part are looked at again once
// it is one.
func (r *Run) setVisited(first string, cands []page.Page, whole bool) {
	delete(r.c.visited, first)
	if sum := visitsOf(cands); whole && sum != 0 {
		r.c.visited[first] = sum
	}
}

// Digest is of what sources say of the pages that they name. That of several lists of records is the sum of
// theirs.
func Digest(records []store.Record) (sum uint64) {
	for i := range records {
		if rec := &records[i]; rec.Flags&store.Named != 0 && rec.Absent == 0 {
			sum += digestOf(&page.Page{
				Path: rec.Path, LastMod: rec.ModTime, LastModDay: rec.Flags&store.ModDay != 0,
				ChangeFreq: rec.ChangeFreq, Priority: rec.Priority, Version: rec.Version,
			})
		}
	}
	return sum
}

func digestOf(p *page.Page) uint64 {
	hints := uint64(p.Version)<<32 | uint64(p.ChangeFreq)<<16 | uint64(p.Priority)<<8
	if p.LastModDay {
		hints |= 1
	}
	h := xxhash.Sum64String(p.Path)
	for _, v := range [...]uint64{hints, uint64(p.LastMod)} {
		h = (h ^ v) * 0x9E3779B97F4A7C15
		h ^= h >> 29
	}
	return h
}

// merge merges candidates into the records of their range, which it modifies.
func (r *Run) merge(records []store.Record, cands []page.Page) []store.Record {
	now := r.c.o.Now().Unix()
	var fresh []store.Record
	complete := r.cands.Complete()
	i := 0
	for j := range cands {
		p := &cands[j]
		for ; i < len(records) && records[i].Path < p.Path; i++ {
			r.unname(&records[i], complete, now)
		}
		if i < len(records) && records[i].Path == p.Path {
			r.again(&records[i], p, complete, now)
			i++
		} else if !p.Visited || r.p.Unlinked(p.Path) {
			rec := store.Record{Path: p.Path}
			r.again(&rec, p, complete, now)
			r.classify(&rec)
			fresh = append(fresh, rec)
		}
	}
	for ; i < len(records); i++ {
		r.unname(&records[i], complete, now)
	}
	n := len(records)
	records = slices.DeleteFunc(records, func(rec store.Record) bool { return r.isOver(&rec, now) })
	r.counts.Dropped += n - len(records)
	r.touched = r.touched || len(records) != n || len(fresh) > 0
	r.links.max += len(fresh)
	return mergeSorted(records, fresh)
}

// again updates the record of a page that is a candidate.
func (r *Run) again(rec *store.Record, p *page.Page, complete bool, now int64) {
	r.settle(rec)
	if p.Visited {
		if rec.Flags&store.Visited == 0 {
			rec.Flags |= store.Visited
			r.touched = true
		}
		if r.p.Unlinked(p.Path) {
			r.linked(rec, now) // where a visit is as good as a link
		}
		r.unname(rec, complete, now)
		return
	}
	flags := rec.Flags | store.Named
	if flags &^= store.ModDay; p.LastModDay {
		flags |= store.ModDay
	}
	isNew := rec.Flags&store.Named == 0
	if isNew || p.Version != rec.Version || p.Version == 0 && p.LastMod != rec.ModTime {
		rec.Due = 0
	}
	if !isNew && flags == rec.Flags && rec.Absent == 0 && p.Version == rec.Version && p.LastMod == rec.ModTime &&
		p.ChangeFreq == rec.ChangeFreq && p.Priority == rec.Priority {
		return
	}
	r.touched = true
	rec.Flags, rec.Version, rec.ModTime, rec.ChangeFreq, rec.Priority = flags, p.Version, p.LastMod, p.ChangeFreq, p.Priority
	rec.Absent, rec.Depth = 0, 0
	if isNew {
		r.classify(rec)
	}
}

// unname is for a page that no source names. It is kept for two days, as a deployment may take it away for
// a moment, or goes on as one that links name.
func (r *Run) unname(rec *store.Record, complete bool, now int64) {
	r.settle(rec)
	if rec.Flags&store.Named == 0 || !complete || rec.Path < r.pos {
		return
	}
	if r.discovers() && (rec.Path == r.p.Front || !r.isExpired(rec, now)) {
		r.toLinked(rec)
		return
	}
	if rec.Absent == 0 || rec.Absent > now {
		rec.Absent = now
		r.touched = true
	}
}

// toLinked makes a page that a source named one that links name.
func (r *Run) toLinked(rec *store.Record) {
	rec.Flags &^= store.Named | store.ModDay
	rec.Version, rec.ModTime, rec.ChangeFreq, rec.Priority, rec.Absent, rec.Due = 0, 0, 0, 0, 0, 0
	rec.Depth = max(rec.Depth, 1)
	r.touched = true
	r.classify(rec)
}

// settle applies changed settings.
func (r *Run) settle(rec *store.Record) {
	if r.reroute {
		rec.Due = 0
	}
	if r.resettle {
		r.classify(rec)
	}
}

// classify decides whether a page may be fetched at all.
func (r *Run) classify(rec *store.Record) {
	before := rec.Flags
	rec.Flags &^= store.Blocked | store.Disallowed
	if !r.p.Allowed(rec.Path) {
		rec.Flags |= store.Blocked
	}
	if rec.Flags&store.Named == 0 && rec.Path != r.p.Front {
		p := page.Page{Path: rec.Path, Visited: rec.Flags&store.Visited != 0}
		if r.p.Disallow(rec.Path) || r.p.Filter(&p) != "" {
			rec.Flags |= store.Disallowed
		}
	}
	r.touched = r.touched || rec.Flags != before
}

// isOver reports whether a record is to be dropped. What is listed stays until it was selected no more.
func (r *Run) isOver(rec *store.Record, now int64) bool {
	switch {
	case rec.Selected.Listed || rec.Path < r.pos:
		return false
	case rec.Flags&store.Named != 0:
		return rec.Absent != 0 && now-rec.Absent >= keepAbsent
	}
	return rec.Path != r.p.Front && r.isExpired(rec, now) &&
		(rec.Fetched == 0 || !r.wanted(rec) || rec.Fetched-rec.Linked > r.expire()) // else links were not looked at either
}

func (r *Run) expire() int64 { return int64(r.p.Expire / time.Second) }

func (r *Run) isExpired(rec *store.Record, now int64) bool { return now-rec.Linked > r.expire() }

// mergeSorted merges two sorted lists of different records into the first.
func mergeSorted(a, b []store.Record) []store.Record {
	i, j := len(a)-1, len(b)-1
	a = append(a, b...)
	for k := len(a) - 1; j >= 0; k-- {
		if i >= 0 && a[i].Path > b[j].Path {
			a[k] = a[i]
			i--
		} else {
			a[k] = b[j]
			j--
		}
	}
	return a
}
