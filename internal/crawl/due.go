package crawl

import (
	"math"
	"net/http"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// Times between fetches of a page, in seconds.
const (
	minute = 60
	hour   = 3600
	day    = 24 * hour
	week   = 7 * day

	firstWait = week      // after a page was found, or found changed
	lastWait  = 90 * day  // at most
	graceWait = 5         // after a page was empty, as one is while it is written
	frontWait = 5         // after the front page failed at first: an application may start with the server
	maxAhead  = 100 * day // until a chunk is looked at in any case
)

// wait returns how long to wait after a fetch that made of the record before what it is now. While nothing
// changes, pages are fetched less and less often; failures sooner.
func wait(before, rec *store.Record, changed, isFront bool) int64 {
	last, first := int64(before.Wait), int64(minute)
	if isFront {
		first = frontWait
	}
	switch {
	case rec.Failing != 0 && before.Failing == 0 && isAnswer(before.Status):
		return hour + minute // what is known stays until then
	case rec.Failing != 0:
		return min(max(2*last, first), day)
	case isRefusal(rec) && before.Fetched != 0 && isRefusal(before):
		return min(max(2*last, hour), lastWait)
	case isRefusal(rec):
		return hour
	case rec.Status == http.StatusOK && rec.Flags&store.HTML == 0:
		return lastWait
	case changed, before.Fetched == 0, rec.Status != before.Status:
		return firstWait
	}
	return min(max(2*last, firstWait), lastWait)
}

// isAnswer reports whether a status says something about the page.
func isAnswer(status uint16) bool {
	return status != 0 && status < 500 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout
}

// isRefusal reports whether a page is not to be had, which may soon be otherwise.
func isRefusal(rec *store.Record) bool {
	return rec.Status != http.StatusOK && (rec.Status < 300 || rec.Status >= 400) || rec.Flags&store.SoftNotFound != 0
}

// plan sets when a page is due that was fetched now: often enough for its links to be seen within a third
// of Policy.Expire. Times of over a day are rounded up to those of the chunk, so that it is due as a whole.
func (r *Run) plan(before, rec *store.Record, changed bool, slot uint64, now int64) {
	if rec.Failing == now && rec.Wait == graceWait { // see isEmptied
		rec.Due = now + graceWait
		return
	}
	seconds := min(wait(before, rec, changed, rec.Flags&store.Seed != 0 || rec.Path == r.p.Front), max(r.expire()*2/9, minute))
	rec.Wait = uint32(seconds)
	rec.Due = now + seconds
	if seconds > day {
		period := min(seconds/2, week)
		rec.Due += (int64(slot%uint64(period)) - rec.Due%period + period) % period
	}
}

func slotOf(first string) uint64 { return xxhash.Sum64String(first) }

// wanted reports whether a page is fetched when it is due.
func (r *Run) wanted(rec *store.Record) bool {
	switch {
	case rec.Flags&store.Blocked != 0 || rec.Absent != 0:
		return false
	case rec.Flags&store.Named != 0:
		return true
	case rec.Flags&store.Disallowed != 0:
		return false
	case r.discovers() && rec.Flags&store.Seed != 0:
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

// chunkDue is when a chunk of records is to be looked at again.
func (r *Run) chunkDue(records []store.Record) int64 {
	now := r.c.o.Now().Unix()
	first := now + maxAhead
	for i := range records {
		rec := &records[i]
		first = min(first, r.due(rec, now))
		switch {
		case rec.Absent != 0:
			first = min(first, max(rec.Absent+keepAbsent, now+shortRemark))
		case rec.Flags&store.Named == 0 && rec.Path != r.p.Front:
			first = min(first, max(rec.Linked+r.expire()+1, now+day))
		}
	}
	return first
}

// countPending counts pages that are to be fetched for the first time.
func (r *Run) countPending(records []store.Record, sign int) {
	for i := range records {
		if rec := &records[i]; rec.Fetched == 0 && r.wanted(rec) {
			r.pending += sign
		}
	}
}

// spares reports whether a conditional request will do: what is known of the page is true, and its links
// were seen in this third of Policy.Expire. The thirds of pages begin at different times.
func (r *Run) spares(rec *store.Record, now int64) bool {
	if rec.Status != http.StatusOK || rec.Failing != 0 || rec.Due == 0 || rec.ETag == "" && rec.Modified == 0 {
		return false
	}
	third := max(r.expire()/3, 1)
	shift := int64(xxhash.Sum64String(rec.Path) % uint64(third))
	return (rec.Fetched+shift)/third == (now+shift)/third
}

func httpTime(unix int64) string { return time.Unix(unix, 0).UTC().Format(http.TimeFormat) }
