package crawl

import (
	"math"
	"net/http"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// Times between fetches of a page, in seconds.
const (
	minute = 60
	hour   = 60 * minute
	day    = 24 * hour
	week   = 7 * day

	firstWait = week      // after a page was found, or found changed
	lastWait  = 90 * day  // at most
	briefWait = 5         // after a page was empty, as one is while it is written
	maxAhead  = 100 * day // until a chunk is looked at in any case
)

// wait returns how long to wait after a fetch that made of the record before what it is now. While nothing
// changes, pages are fetched less and less often; failures sooner, and soonest a front page, as an application
// may start with the server.
func wait(before, rec *store.Record, came outcome, isFront bool) int64 {
	last, first := int64(before.Wait), int64(minute)
	if isFront {
		first = briefWait
	}
	switch {
	case came == emptied:
		return briefWait
	case came == failed && before.Failing == 0 && isAnswer(before.Status):
		return hour + minute // what is known stays until then
	case came == failed:
		return min(max(2*last, first), day)
	case isRefusal(rec) && before.Fetched != 0 && isRefusal(before):
		return min(max(2*last, hour), lastWait)
	case isRefusal(rec):
		return hour
	case rec.Status == http.StatusOK && rec.Flags&store.HTML == 0:
		return lastWait
	case came == changed, before.Fetched == 0, rec.Status != before.Status:
		return firstWait
	}
	return min(max(2*last, firstWait), lastWait)
}

// isAnswer reports whether a status says something about the page.
func isAnswer(status uint16) bool {
	return status != 0 && status < 500 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout
}

func isRedirect(rec *store.Record) bool { return rec.Status >= 300 && rec.Status < 400 }

// isRefusal reports whether a page is not to be had, which may soon be otherwise.
func isRefusal(rec *store.Record) bool {
	return rec.Status != http.StatusOK && !isRedirect(rec) || rec.Flags&store.SoftNotFound != 0
}

// plan sets when a page is due that was fetched now: often enough for its links to be seen within a third
// of Policy.Expire. Times of over a day are rounded up to those of the chunk, so that it is due as a whole.
func (r *Run) plan(before, rec *store.Record, came outcome, slot, now int64) {
	isFront := rec.Flags&store.Seed != 0 || rec.Path == r.p.Front
	seconds := min(wait(before, rec, came, isFront), max(r.p.expire()*2/9, minute))
	rec.Wait = uint32(seconds)
	rec.Due = now + seconds
	if seconds > day {
		period := min(seconds/2, week)
		rec.Due += (slot%period - rec.Due%period + period) % period
	}
}

// wanted reports whether a page is fetched when it is due.
func (r *Run) wanted(rec *store.Record) bool {
	switch {
	case rec.Flags&store.Blocked != 0 || rec.Absent != 0:
		return false
	case rec.Flags&store.Named != 0:
		return true
	case rec.Flags&store.Disallowed != 0:
		return false
	case r.p.discovers() && rec.Flags&store.Seed != 0:
		return true
	case (r.p.Links || rec.Flags&store.Target != 0) && int(rec.Depth) <= r.p.Depth:
		return true
	}
	return rec.Flags&store.Visited != 0 && (r.p.Discover || r.p.Unlinked(rec.Path))
}

// due is when a page is to be fetched; MaxInt64: it is not.
func (r *Run) due(rec *store.Record, now int64) int64 {
	switch {
	case !r.wanted(rec):
		return math.MaxInt64
	case rec.Fetched == 0, rec.Fetched > now+clockSlack: // the clock was set back
		return 0
	}
	return rec.Due
}

// chunkDue is when a chunk of records is to be looked at again: a page is due, or may have to be dropped.
func (r *Run) chunkDue(records []store.Record) int64 {
	now := r.c.now()
	first := now + maxAhead
	for i := range records {
		rec := &records[i]
		first = min(first, r.due(rec, now))
		switch {
		case rec.Absent != 0:
			first = min(first, max(rec.Absent+keepAbsent, now+hour))
		case rec.Flags&store.Named == 0 && rec.Path != r.p.Front:
			first = min(first, max(rec.Linked+r.p.expire()+1, now+day))
		}
	}
	return first
}

// spares reports whether a conditional request will do: what is known of the page is true, and its links
// were seen in this third of Policy.Expire. The thirds of pages begin at different times.
func (r *Run) spares(rec *store.Record, now int64) bool {
	if rec.Status != http.StatusOK || rec.Failing != 0 || rec.Due == 0 || rec.ETag == "" && rec.Modified == 0 {
		return false
	}
	third := max(r.p.expire()/3, 1)
	shift := int64(xxhash.Sum64String(rec.Path) % uint64(third))
	return (rec.Fetched+shift)/third == (now+shift)/third
}
