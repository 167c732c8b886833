package crawl

import (
	"cmp"
	"math"
	"net/http"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/htmlmeta"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

const (
	// ofResponse are the flags that the last response decides.
	ofResponse = store.HTML | store.Document | store.NoIndex | store.Unreadable | store.SoftNotFound | store.Proxied

	maxETag = 128 // bytes
	minute  = 60  // seconds, as all that follow
	hour    = 60 * minute
	day     = 24 * hour
	week    = 7 * day

	firstWait = week      // after a page was found, or found changed
	lastWait  = 90 * day  // at most
	briefWait = 5         // for what is soon otherwise
	maxAhead  = 100 * day // until a chunk is looked at in any case
)

// fetched is the result of a fetch.
type fetched struct {
	resp  *Response     // nil: there was no response
	meta  htmlmeta.Meta // of one with the status 200
	soft  bool          // a page that cannot exist has the same text
	base  string        // Policy.Base
	batch int64
	now   int64
}

// outcome is what a fetch means for a page.
type outcome uint8

const (
	unchanged outcome = iota
	changed           // the text is another than before
	failed            // there was no response, or one that says nothing about the page
	emptied           // it was a document and is none, for the first time: it may be being written
)

// apply updates a record by the result of a fetch.
func apply(rec *store.Record, f *fetched) outcome {
	before := *rec
	rec.Fetched = f.now
	resp := f.resp
	if resp == nil {
		resp = new(Response) // with the status 0
	}
	if !isConclusive(uint16(resp.Status)) {
		fail(rec, uint16(resp.Status), f.now)
		return failed
	}
	etag := resp.Header.Get("Etag")
	if len(etag) > maxETag {
		etag = ""
	}
	if resp.Status == http.StatusNotModified {
		rec.Failing = 0
		rec.Streak = 0
		rec.ETag = cmp.Or(etag, rec.ETag)
		return unchanged
	}
	m := &f.meta
	isHTML := htmlmeta.IsHTML(resp.Header.Get("Content-Type"))
	isEmpty := resp.Status == http.StatusOK && isHTML && !m.Document && !m.Unreadable
	if isEmpty && before.Flags&store.Document != 0 && before.Failing == 0 {
		rec.Failing = f.now // what was known stays until it is empty a second time
		return emptied
	}
	forget(rec)
	rec.Failing = 0
	rec.Status = uint16(resp.Status)
	rec.Flags |= flagIf(store.Proxied, resp.Proxied)
	if rec.Status/100 == 3 {
		refresh := http.Header{"Refresh": {"0; url=" + resp.Header.Get("Location")}} // which resolves alike
		target := htmlmeta.Header(htmlmeta.Page{Base: f.base, Path: rec.Path, Header: refresh}).Refresh
		rec.Target = onSite(f.base, rec.Path, target)
	}
	if resp.Status != http.StatusOK {
		return unchanged
	}
	came := learn(rec, &before, f, isHTML)
	if rec.Version == 0 || resp.Proxied { // validators, where no version spares a fetch
		rec.ETag = etag
		modified, err := http.ParseTime(resp.Header.Get("Last-Modified"))
		// A time from before the last fetch, which had another text, is not that of the text.
		isFalse := came == changed && modified.Unix() < before.Fetched && before.Failing == 0
		if err == nil && !isFalse {
			rec.Modified = max(modified.Unix(), 0)
		}
	}
	return came
}

// learn records what a response with the status 200 says of its page.
func learn(rec, before *store.Record, f *fetched, isHTML bool) outcome {
	m := &f.meta
	rec.Flags |= flagIf(store.HTML, isHTML)
	rec.Flags |= flagIf(store.Document, m.Document)
	rec.Flags |= flagIf(store.NoIndex, m.NoIndex)
	rec.Flags |= flagIf(store.Unreadable, m.Unreadable)
	rec.Flags |= flagIf(store.SoftNotFound, f.soft)
	rec.NoIndexTag = m.NoIndexTag
	rec.Target = onSite(f.base, rec.Path, m.Refresh)
	rec.Canonical = onSite(f.base, rec.Path, m.Canonical)
	if rec.Version != 0 && page.Bare(rec.Canonical) == rec.Path {
		rec.Canonical = "" // a file is one page, however its canonical spells its name
	}
	// htmlmeta bounds these.
	rec.Alternates = m.Alternates
	rec.Images = m.Images
	rec.Title = m.Title
	if !isHTML || m.Unreadable {
		return unchanged // it has no text that could be compared
	}
	return text(rec, before, f)
}

// fail records that a fetch says nothing about the page.
func fail(rec *store.Record, status uint16, now int64) {
	if rec.Failing == 0 || rec.Failing > now { // the clock was set back
		rec.Failing = now
	}
	if isConclusive(rec.Status) && now-rec.Failing <= hour {
		return // what was known stays
	}
	forget(rec)
	rec.Status = status
}

// forget drops what the last response said, except what dates are decided by.
func forget(rec *store.Record) {
	rec.Flags &^= ofResponse
	rec.Status = 0
	rec.Canonical = ""
	rec.Target = ""
	rec.ETag = ""
	rec.Modified = 0
	rec.NoIndexTag = false
	rec.Alternates = nil
	rec.Images = nil
	rec.Title = ""
}

func flagIf(flag store.Flags, is bool) store.Flags {
	if is {
		return flag
	}
	return 0
}

// text records the text of a page and the dates that go with it.
func text(rec, before *store.Record, f *fetched) (came outcome) {
	m := &f.meta
	switch {
	case before.First == 0:
		rec.First = f.batch
	case m.Text != before.Text:
		came = changed
		rec.Flags &^= store.DeclaredMoves
		rec.Changed = f.batch
		rec.Before = before.Fetched
		if before.Failing != 0 || before.Status != http.StatusOK {
			rec.Before = 0 // the text was not seen then
		}
		if (rec.Version == 0 || f.resp.Proxied) && rec.Streak < math.MaxUint8 {
			rec.Streak++ // of a file, its version says that it has changed
		}
	default:
		rec.Streak = 0
		if before.Declared != 0 && m.Modified != 0 && m.Modified != before.Declared {
			rec.Flags |= store.DeclaredMoves
		}
	}
	rec.Text = m.Text
	rec.Declared = m.Modified
	rec.Flags = rec.Flags&^store.DeclaredDay | flagIf(store.DeclaredDay, m.ModifiedDay)
	return came
}

// onSite returns the path of an absolute URL, or the URL where it is on another site; "": it is the page itself.
func onSite(base, self, url string) string {
	path, ok := htmlmeta.PathOn(base, url)
	switch {
	case path == self:
		return ""
	case ok:
		return path
	}
	return url
}

// wait returns how many seconds to wait after a fetch, given the record before it and now. While nothing changes,
// pages are fetched less and less often; failures sooner, and a front page soonest, as an application may start
// with the server.
func (r *Run) wait(before, rec *store.Record, came outcome) int64 {
	last := int64(before.Wait)
	first := int64(minute)
	if rec.Flags&store.Seed != 0 || rec.Path == r.p.Scope {
		first = briefWait
	}
	switch {
	case came == emptied:
		return briefWait
	case came == failed && before.Failing == 0 && isConclusive(before.Status):
		return hour + minute // what is known stays until then
	case came == failed:
		return min(max(2*last, first), day)
	case isRefusal(rec) && before.Fetched != 0 && isRefusal(before):
		return min(max(2*last, hour), lastWait)
	case isRefusal(rec):
		return hour
	case came == changed, before.Fetched == 0, rec.Status != before.Status:
		return firstWait
	}
	return min(max(2*last, firstWait), lastWait)
}

// isConclusive reports whether a status says something about the page.
func isConclusive(status uint16) bool {
	switch status {
	case 0, http.StatusTooManyRequests, http.StatusRequestTimeout:
		return false
	}
	return status < 500
}

// isRefusal reports whether a response has no page to list, which may soon change.
func isRefusal(rec *store.Record) bool {
	return rec.Status != http.StatusOK && rec.Status/100 != 3 || rec.Flags&store.SoftNotFound != 0
}

// plan sets when a page that was fetched now is due again: soon enough for its links to be seen within a third of
// Policy.Expire. Times of over a day are rounded up to the chunk's own slot, so that it is due as a whole.
func (r *Run) plan(before, rec *store.Record, came outcome, slot, now int64) {
	seconds := min(r.wait(before, rec, came), max(r.p.expire()*2/9, minute))
	switch {
	case rec.Status != http.StatusOK || rec.Failing != 0:
	case rec.Path == r.p.Scope && rec.Flags&store.Document == 0:
		seconds = min(seconds, hour) // an application that starts may respond with an empty page
	case rec.Flags&store.HTML == 0 && rec.Flags&store.Image != 0:
		seconds = day // it is listed only while it is there
	case rec.Flags&store.HTML == 0:
		seconds = lastWait // it has no links
	}
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
	case rec.Flags&store.Image != 0 && r.p.Extract.Images:
		return true // visitors of the page request it as well
	case rec.Flags&store.Disallowed != 0:
		return false
	case r.p.discovers() && rec.Flags&store.Seed != 0:
		return true
	}
	isFollowed := r.p.Links || rec.Flags&store.Target != 0
	if isFollowed && int(rec.Depth) <= r.p.Depth {
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
		case rec.Flags&store.Named == 0 && rec.Path != r.p.Scope:
			first = min(first, max(rec.Linked+r.p.expire()+1, now+day))
		}
	}
	return first
}

// spares reports whether a conditional request will do: the page has validators, and its links were seen in this
// third of Policy.Expire. The thirds of pages begin at different times.
func (r *Run) spares(rec *store.Record, now int64) bool {
	// Perhaps its header has it left out. Whether it still does, only a full response shows: a 304 need not have the
	// fields that are no validators (RFC 9110, section 15.4.5), and those of Apache have none.
	if rec.NoIndexTag || rec.Canonical != "" || rec.Target != "" {
		return false
	}
	if rec.Status != http.StatusOK || rec.Failing != 0 {
		return false
	}
	if rec.Due == 0 || rec.Withheld {
		return false // it may have changed, or its links are wanted
	}
	if rec.ETag == "" && rec.Modified == 0 {
		return false
	}
	third := max(r.p.expire()/3, 1)
	shift := int64(xxhash.Sum64String(rec.Path) % uint64(third))
	return (rec.Fetched+shift)/third == (now+shift)/third
}
