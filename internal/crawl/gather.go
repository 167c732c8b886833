package crawl

import (
	"context"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

const (
	maxPiece   = 4096                   // new candidates that are merged at a time
	pieceWait  = 200 * time.Millisecond // for more candidates, once a piece has one
	keepUntold = 7 * day                // for which a page that is gone is kept until all search engines were told
	keepAbsent = 2 * day                // for which a page that no source names any more is kept
	end        = "\xff"                 // sorts after all paths
	clockSlack = hour                   // by which a clock may be ahead
)

// gather merges candidates and records, chunk by chunk, and fetches the site's own pages that are due. It
// ends where the candidates do, or soon after wait does.
func (r *Run) gather(ctx, wait context.Context) (err error) {
	w := r.gen.Writer()
	for i := range r.gen.Chunks() {
		if r.pos >= r.endOf(i) {
			w.Keep(i) // an earlier Update has read its candidates
			continue
		}
		if err := r.gatherChunk(ctx, wait, w, i); err != nil {
			return err
		}
	}
	r.gathered = r.pos == end
	if r.gathered {
		// Until then, records may still be as the last crawl's settings had them.
		w.SetSettings(r.p.Settings, r.p.Routes)
	}
	r.gen, err = w.Generation()
	return err
}

// gatherChunk is gather for the range of a chunk, or what is left of it. Where candidates are many or slow, it
// works in pieces.
func (r *Run) gatherChunk(ctx, wait context.Context, w *record.Writer, i int) error {
	chunk := r.gen.Chunks()[i]
	next := r.endOf(i)
	cands, upto, err := r.take(wait, next, maxPiece+chunk.Count)
	if err != nil {
		return err
	}
	hasNoTime := upto == r.pos
	isUnchanged := upto == next && r.isSame(chunk, cands)
	if hasNoTime || isUnchanged {
		w.Keep(i) // without decoding it: so a refresh in which nothing has changed costs next to nothing
		r.pos = upto
		return nil
	}
	records, err := r.load(ctx, i)
	if err != nil {
		return err
	}
	// An Update before this one had time for the beginning of the chunk.
	if r.pos > chunk.First {
		n, _ := record.Search(records, r.pos)
		w.Put(chunk.First, records[:n], unknownDigest, r.chunkDue)
		records = records[n:]
	}
	for first := max(chunk.First, r.pos); upto > first; first = r.pos {
		n, _ := record.Search(records, upto)
		part := r.merge(records[:n:n], cands)
		records = records[n:]
		before := len(r.links.found)
		r.fetch(wait, part, chunk.First, nil)
		// Most pages link to those beside them, whose records are at hand: with a million small files, holding all
		// links to the end took 175 bytes a page more, and each chunk was read and written once more for them.
		r.linkPart(part, before)
		// While a source fails, the candidates are no ground for skipping the chunk.
		digest := unknownDigest
		if r.cands.Complete() {
			digest = func(first, next string) uint64 { return digestOf(cands, first, next) }
		}
		w.Put(first, part, digest, r.chunkDue)
		r.pos = upto
		r.pending += r.pendingOf(part)
		if upto == next {
			return nil
		}
		cands, upto, err = r.take(wait, next, maxPiece+chunk.Count)
		if err != nil {
			return err
		}
	}
	// The time is over before the chunk is.
	w.Put(r.pos, records, unknownDigest, r.chunkDue)
	return nil
}

// take returns the candidates from pos up to the path upto: that is next, or less if they are many or slow, or pos
// if time is over. They are valid until it is called again.
func (r *Run) take(wait context.Context, next string, most int) (cands []page.Page, upto string, err error) {
	soon, cancel := context.WithTimeout(wait, pieceWait)
	defer cancel()
	defer func() { r.taken = cands }()
	cands = r.taken[:0]
	until := wait // for the first; once there is one, it is not to wait long for others
	for len(cands) < most && wait.Err() == nil {
		if r.ahead.Path == "" {
			p, ok, err := r.cands.Next(until)
			if err != nil && until.Err() == nil {
				return cands, "", err
			}
			if err != nil {
				break // the time is over: Next goes on where it was
			}
			r.ahead = p
			if !ok {
				r.ahead.Path = end
			}
		}
		if r.ahead.Path >= next {
			return cands, next, nil
		}
		cands = append(cands, r.ahead)
		r.ahead = page.Page{}
		until = soon
	}
	if len(cands) == 0 {
		return cands, r.pos, nil
	}
	last := cands[len(cands)-1].Path
	return cands, last + "\x00", nil // the least path after it
}

// isSame reports whether a chunk's records can stay as they are.
func (r *Run) isSame(chunk record.Chunk, cands []page.Page) bool {
	concernsAll := r.resettle || r.reroute || r.p.RefetchAll
	if concernsAll || chunk.First < r.pos {
		return false
	}
	now := r.c.now()
	isFarOff := chunk.Due > now+maxAhead+clockSlack // the clock was set back
	if chunk.Due <= now || isFarOff {
		return false
	}
	return chunk.Digest == digestOf(cands, "", "")
}

// unknownDigest is a digest that no candidates have: the chunk is to be looked at.
func unknownDigest(string, string) uint64 { return 1 }

// digestOf is the sum of hashes of the candidates from first up to next; "": of all that follow.
func digestOf(cands []page.Page, first, next string) (sum uint64) {
	var buf []byte
	for i := range cands {
		p := &cands[i]
		if p.Path < first || next != "" && p.Path >= next {
			continue
		}
		// None of them overlaps another one.
		hints := uint64(p.Version)<<32 | uint64(p.Sources)<<16
		hints |= uint64(p.Priority)<<8 | uint64(p.ChangeFreq)<<2
		hints |= uint64(flagIf(1, p.LastModDay)) | uint64(flagIf(2, p.Visited))
		buf = binary.LittleEndian.AppendUint64(append(buf[:0], p.Path...), hints)
		buf = binary.LittleEndian.AppendUint64(buf, uint64(p.LastMod))
		buf = binary.LittleEndian.AppendUint64(buf, uint64(p.FileTime))
		if p.Extensions != nil {
			buf = fmt.Appendf(buf, "%+v", *p.Extensions)
		}
		sum += xxhash.Sum64(buf)
	}
	return sum
}

// merge merges candidates into the records of their range, which it modifies.
func (r *Run) merge(records []record.Record, cands []page.Page) []record.Record {
	records = r.addNamed(records, cands)
	now := r.c.now()
	complete := r.cands.Complete()
	for i := range records {
		rec := &records[i]
		for len(cands) > 0 && cands[0].Path < rec.Path {
			cands = cands[1:]
		}
		var cand *page.Page
		if len(cands) > 0 && cands[0].Path == rec.Path {
			cand = &cands[0]
		}
		r.reopen(rec)
		r.mergeCandidate(rec, cand, complete, now)
		r.classify(rec)
		r.revive(rec)
	}
	return slices.DeleteFunc(records, func(rec record.Record) bool { return r.isOver(&rec, now) })
}

// addNamed adds records of the candidates that have none.
func (r *Run) addNamed(records []record.Record, cands []page.Page) []record.Record {
	fresh := make([]record.Record, 0, max(0, len(cands)-len(records)))
	for i := range cands {
		p := &cands[i]
		_, known := record.Search(records, p.Path)
		isNamed := !p.Visited || r.p.Unlinked(p.Path) // anybody can request any path
		if !known && isNamed {
			fresh = append(fresh, record.Record{Path: p.Path})
		}
	}
	r.links.max += len(fresh)
	return insert(records, fresh)
}

// mergeCandidate updates a record by its candidate; nil: there is none.
func (r *Run) mergeCandidate(rec *record.Record, cand *page.Page, complete bool, now int64) {
	if cand != nil && !cand.Visited {
		name(rec, cand, now)
		return
	}
	if cand != nil {
		r.visit(rec)
	}
	// Otherwise the source that names the page may be the one that has failed, also if visitors have requested the
	// page.
	if complete {
		r.unname(rec, now)
	}
}

// reopen has a page fetched again where what its record says was found under other circumstances, or where all are to
// be.
func (r *Run) reopen(rec *record.Record) {
	if r.reroute {
		demand(rec, record.ByConfiguration)
	}
	if r.p.RefetchAll {
		demand(rec, record.ByOperatorForAll)
	}
	if r.resettle {
		r.release(rec)
	}
}

// isUntold reports whether search engines are still to be told that a page is gone.
func (r *Run) isUntold(rec *record.Record, now int64) bool {
	moved := int64(rec.Moved)
	return r.p.Told != 0 && moved > r.p.Told && now-moved < keepUntold
}

// visit updates the record of a page that visitors have requested.
func (r *Run) visit(rec *record.Record) {
	rec.Flags |= record.Visited
	if r.p.Unlinked(rec.Path) {
		r.linked(rec) // a visit is as good as a link
	}
}

// name updates the record of a page that a source names.
func name(rec *record.Record, p *page.Page, now int64) {
	// A page that is named again, and would have been fetched meanwhile, is listed once it was: it may say noindex by now.
	isOutdated := rec.Absent != 0 && rec.Due <= now && p.Version == 0
	if isOutdated && !rec.Selected.Listed {
		forget(rec)
	}
	switch {
	case p.Version != rec.Version:
		demand(rec, record.ByFile)
	case rec.Flags&record.Named == 0:
		demand(rec, record.ByList)
	case p.Version == 0 && p.LastMod != rec.ModTime, !reflect.DeepEqual(p.Extensions, rec.Listed):
		signal(rec, record.ByList, now)
	}
	rec.Flags &^= record.ModDay | record.Sources
	rec.Flags |= record.Named | flagIf(record.ModDay, p.LastModDay) | record.Flags(p.Sources)<<16
	rec.Version = p.Version
	rec.ModTime = p.LastMod
	rec.ListDate = 0
	if p.Version != 0 {
		// The two stay apart: the time of the file tells when the text changed, and what one deployment has written;
		// the date of the list is the one that is listed.
		rec.ModTime = p.FileTime
		rec.ListDate = p.LastMod
	}
	rec.ChangeFreq = p.ChangeFreq
	rec.Priority = p.Priority
	rec.Listed = p.Extensions
	rec.Absent = 0
	rec.Depth = 0
}

// unname updates the record of a page that no source names. One that a source did name is kept for two days,
// as a deployment may take it away for a moment, or goes on as one that links name.
func (r *Run) unname(rec *record.Record, now int64) {
	if rec.Flags&record.Named == 0 {
		return
	}
	isLinked := rec.Path == r.p.Scope || rec.IsLinked(now, r.p.expire(), r.followed)
	if isLinked && r.p.discovers() {
		toLinked(rec)
		return
	}
	if rec.Absent == 0 || rec.Absent > now { // the clock was set back
		rec.Absent = now
	}
}

// toLinked makes a page that a source named one that links name.
func toLinked(rec *record.Record) {
	rec.Flags &^= record.Named | record.Sources
	// What a list said holds until the page was fetched: see dropListDate.
	if rec.Version != 0 {
		rec.ModTime = rec.ListDate
	}
	rec.Version = 0
	rec.ListDate = 0
	rec.ChangeFreq = 0
	rec.Priority = 0
	rec.Absent = 0
	rec.Depth = max(rec.Depth, 1)
	demand(rec, record.ByList)
}

// classify decides whether a page may be fetched at all.
func (r *Run) classify(rec *record.Record) {
	rec.Flags &^= record.Blocked | record.Disallowed
	if !r.p.Allowed(rec.Path) {
		rec.Flags |= record.Blocked
	}
	if rec.Flags&record.Named == 0 && rec.Path != r.p.Scope {
		isOut := r.p.Filter(&page.Page{Path: rec.Path, Visited: rec.Flags&record.Visited != 0}) != ""
		rec.Flags |= flagIf(record.Disallowed, isOut || r.p.Disallow(rec.Path))
	}
}

// revive makes a page that only links or visitors name absent while that does not suffice, as after a change of the
// sources, and present again once it does.
func (r *Run) revive(rec *record.Record) {
	if rec.Flags&record.Named != 0 || rec.Fetched == 0 {
		return
	}
	before := rec.Absent
	rec.Absent = 0 // for wanted, too
	isFetchable := rec.Flags&(record.Blocked|record.Disallowed) == 0
	if isFetchable && rec.Path != r.p.Scope && !r.wanted(rec) {
		rec.Absent = max(before, r.batch)
	}
}

// isOver reports whether a record is to be dropped. A listed page stays until it is not selected any more, and one that is
// gone until that was told.
func (r *Run) isOver(rec *record.Record, now int64) bool {
	if rec.Selected.Listed || r.isUntold(rec, now) {
		return false
	}
	if rec.Flags&record.Named != 0 {
		return rec.Absent != 0 && now-rec.Absent >= keepAbsent
	}
	if rec.Path == r.p.Scope || rec.IsLinked(now, r.p.expire(), r.followed) {
		return false
	}
	if rec.Fetched == 0 || !r.wanted(rec) {
		return true
	}
	return rec.Fetched-rec.Linked > r.p.expire() // else links were not looked at either
}
