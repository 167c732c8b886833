package crawl

import (
	"cmp"
	"math"
	"net/http"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

const (
	// ofResponse are the flags that the last response decides.
	ofResponse = record.HTML | record.Document | record.NoIndex | record.Unreadable | record.SoftNotFound | record.Made

	maxETag = 128 // bytes
)

// fetched is the result of a fetch.
type fetched struct {
	resp  *Response // nil: there was no response
	meta  html.Meta // of one with the status 200
	soft  bool      // a page that cannot exist has the same text
	base  string    // Policy.Base
	scope string    // Policy.Scope
	batch int64
	now   int64

	confirmed int64 // Policy.Confirmed

	isLast bool // no other fetch will confirm it: see Options.Once
}

// apply updates a record by the result of a fetch.
func apply(rec *record.Record, f *fetched) comparison {
	before := *rec
	rec.Fetched = f.now
	resp := f.resp
	if resp == nil {
		resp = new(Response) // with the status 0
	}
	status := uint16(resp.Status)
	if !page.IsConclusive(resp.Status) {
		rec.Followed = before.FollowedAt() // its links were not seen
		fail(rec, status, f.now)
		return failed
	}
	dropListDate(rec)
	etag := resp.Header.Get("Etag")
	if len(etag) > maxETag {
		etag = ""
	}
	if status == http.StatusNotModified {
		rec.Failing = 0
		rec.Streak = 0
		rec.Followed = before.FollowedAt() // it has no body with links
		// The fields of a 304 replace those before (RFC 9111, section 3.2).
		rec.ETag = cmp.Or(etag, rec.ETag)
		return unchanged
	}
	isHTML := html.IsHTML(resp.Header.Get("Content-Type"))
	if wasEmptied(&before, f, isHTML) {
		// What was known stays until the page is empty a second time.
		rec.Followed = before.FollowedAt()
		rec.Failing = f.now
		return emptied
	}

	// The response says all that is known of the page from here on.
	forget(rec)
	rec.Followed = 0
	rec.Failing = 0
	rec.Status = status
	rec.Flags |= flagIf(record.Made, resp.Made)
	if rec.Status/100 == 3 {
		rec.Target = locationOf(resp, f.base, rec.Path)
	}
	if rec.Status != http.StatusOK {
		return afterStatus(&before, rec)
	}
	came := learn(rec, &before, f, isHTML)

	// Only a page without a version needs validators: the version of a file spares the whole fetch.
	if !rec.IsFile() {
		keepValidators(rec, &before, etag, resp.Header.Get("Last-Modified"))
	}
	// A page that is there again, or none any more, matters more than that its text is as before.
	if came == unchanged || isRefusal(rec) {
		return afterStatus(&before, rec)
	}
	return came
}

// dropListDate drops the date of a list that does not name the page any more, and what else that said.
func dropListDate(rec *record.Record) {
	if rec.Flags&record.Named != 0 {
		return
	}
	rec.ModTime = 0
	rec.Flags &^= record.ModDay
	rec.Listed = nil
}

// wasEmptied reports whether a page that was a document is an empty response, for the first time: its file may be read
// while it is being written, and an application that starts may respond before it has its pages.
func wasEmptied(before *record.Record, f *fetched, isHTML bool) bool {
	isEmpty := f.resp.Status == http.StatusOK && isHTML && !f.meta.Document && !f.meta.Unreadable
	wasDocument := before.Flags&record.Document != 0
	return isEmpty && wasDocument && before.Failing == 0
}

// locationOf returns the target of a redirect, as onSite does.
func locationOf(resp *Response, base, path string) string {
	// A Refresh header is resolved and bounded as a Location is, and html reads that one.
	refresh := http.Header{"Refresh": {"0; url=" + resp.Header.Get("Location")}}
	target := html.Header(html.Page{Base: base, Path: path, Header: refresh}).Refresh
	return onSite(base, path, target)
}

// keepValidators records what makes the next request for a page conditional.
func keepValidators(rec, before *record.Record, etag, lastModified string) {
	rec.ETag = etag
	modified, err := http.ParseTime(lastModified)
	if err != nil {
		return
	}
	// A time from before the last fetch, which had another text, is not that of the text.
	isFalse := rec.Text != before.Text && modified.Unix() < before.Fetched && before.Failing == 0
	if !isFalse {
		rec.Modified = max(modified.Unix(), 0)
	}
}

// afterStatus returns what a fetch means for a page whose status is another one, or is not that of a page.
func afterStatus(before, rec *record.Record) comparison {
	wasPage := before.Fetched != 0 && before.Status == http.StatusOK && !isRefusal(before)
	if isRefusal(rec) && wasPage {
		return gone
	}
	if isRefusal(rec) {
		return missing
	}
	if rec.Status != before.Status {
		return changed
	}
	return unchanged
}

// learn records what a response with the status 200 says of its page.
func learn(rec, before *record.Record, f *fetched, isHTML bool) comparison {
	m := &f.meta
	rec.Flags |= flagIf(record.HTML, isHTML)
	rec.Flags |= flagIf(record.Document, m.Document)
	rec.Flags |= flagIf(record.NoIndex, m.NoIndex)
	rec.Flags |= flagIf(record.Unreadable, m.Unreadable)
	rec.Flags |= flagIf(record.SoftNotFound, f.soft)
	rec.NoIndexTag = m.NoIndexTag
	rec.Target = onSite(f.base, rec.Path, m.Refresh)
	rec.Canonical = onSite(f.base, rec.Path, m.Canonical)
	// A file server shows one file for both spellings of its name, /a%2Cb and /a,b: so it is one page, however its
	// canonical spells it.
	if rec.Version != 0 && page.Bare(rec.Canonical) == rec.Path {
		rec.Canonical = ""
	}
	// html bounds these.
	rec.Alternates = m.Alternates
	rec.Images = m.Images
	rec.Title = m.Title
	rec.Description = m.Description
	rec.Markdown = onSite(f.base, rec.Path, m.Markdown)
	// The language of the front page is that of articles which declare none.
	if m.Published != 0 || m.Lang != "" && rec.Path == f.scope {
		rec.Article = &record.Article{
			Published:    m.Published,
			PublishedDay: m.PublishedDay,
			Headline:     m.Headline,
			Lang:         m.Lang,
		}
	}
	if !isHTML || m.Unreadable {
		return unchanged // it has no text that could be compared
	}
	return text(rec, before, f)
}

// fail records that a fetch says nothing about the page.
func fail(rec *record.Record, status uint16, now int64) {
	if rec.Failing == 0 || rec.Failing > now { // the clock was set back
		rec.Failing = now
	}
	// An upstream may be restarted, or be in maintenance: its pages stay as they were known for that long.
	if page.IsConclusive(int(rec.Status)) && now-rec.Failing <= hour {
		return
	}
	forget(rec)
	rec.Status = status
}

// forget drops what the last response said, except what dates are decided by.
func forget(rec *record.Record) {
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
	rec.Description = ""
	rec.Markdown = ""
	rec.Article = nil
}

func flagIf(flag record.Flags, is bool) record.Flags {
	if is {
		return flag
	}
	return 0
}

// text records the text of a page and the dates that go with it. What changes on each request is noise: what is found
// changed is to be confirmed by another fetch a minute later, before it counts. A file tells by its version that it has
// changed, and needs no confirmation; nor is there one where this is the last crawl.
//
// A fetch leads from what was known (the lines) by what differs from the last fetch (the columns) to:
//
//	               the text       the declared date   nothing
//	Steady         TextInDoubt    DateInDoubt         Steady
//	DateInDoubt    StillInDoubt   Steady, DeclaredMoves if it is that of responses
//	TextInDoubt    StillInDoubt   Steady, changed     Steady, changed
//	StillInDoubt   Noisy          Steady, changed     Steady, changed
//	Noisy          Noisy          Steady, changed: at the earliest after confirmWithin, else Noisy
//
// Changed is only what differs from the text before the doubt (Settled). A text that is certain is Steady at once.
func text(rec, before *record.Record, f *fetched) comparison {
	m := &f.meta
	rec.Text = m.Text
	rec.Blocks = m.Blocks
	rec.Declared = m.Modified
	rec.Flags = rec.Flags&^record.DeclaredDay | flagIf(record.DeclaredDay, m.ModifiedDay)

	isCertain := f.isLast || rec.IsFile()
	if before.First == 0 {
		return firstText(rec, f, isCertain)
	}
	isOther := isOtherText(before, m)
	isMoved := before.Declared != 0 && m.Modified != 0 && m.Modified != before.Declared
	if isOther {
		keepFormer(rec, before, f)
	}
	if isOther && isCertain {
		rec.Steadiness = record.Steady
		rec.Settled = 0
		rec.Flags &^= record.DeclaredMoves
		change(rec, before.Blocks, f.batch)
		return changed
	}

	// What was in doubt, or noise, is decided before anything new is.
	if before.Steadiness == record.Noisy {
		return calm(rec, before, f, isOther)
	}
	if before.Steadiness.IsInDoubt() {
		// A date that moves while the text stays is that of the response, unless it may have been declared meanwhile.
		isSoon := f.now-before.Fetched <= confirmWithin
		return confirm(rec, f, isOther, isMoved && (isSoon || isOfResponse(m, f.now)))
	}

	if isCertain {
		rec.Flags |= flagIf(record.DeclaredMoves, isMoved)
		return unchanged
	}
	if isOther {
		rec.Steadiness = record.TextInDoubt
		return suspected
	}
	if isMoved {
		rec.Steadiness = record.DateInDoubt
		return suspected
	}
	rec.Streak = 0
	return unchanged
}

// firstText records that the text of a page was read for the first time.
func firstText(rec *record.Record, f *fetched, isCertain bool) comparison {
	rec.First = f.batch
	rec.Steadiness = record.Steady
	// A program that writes the time of its response as the date of the page has another one in a minute.
	if isOfResponse(&f.meta, f.now) && !isCertain {
		rec.Steadiness = record.DateInDoubt
		return suspected
	}
	return unchanged
}

// keepFormer records what is needed of a text that is another one now: what it was, if it may come back, and when it
// was last seen.
func keepFormer(rec, before *record.Record, f *fetched) {
	// A text that is itself in doubt, or noise, is not one that may come back: the one before that is kept already.
	isTextSettled := before.Steadiness == record.Steady || before.Steadiness == record.DateInDoubt
	if isTextSettled {
		rec.Settled = before.Blocks
	}
	rec.Found = record.Unix32(f.now)
	// Changes that follow each other before the page is dated are one, from before the first fetch that found one.
	if before.Steadiness.IsInDoubt() || changeAwaitsDate(before) {
		return
	}
	rec.FoundBy = before.Cause
	rec.Before = seenAt(before)
	if rec.IsFile() && rec.Before != 0 {
		// A file is fetched only when its version is another one, so the last fetch may be weeks ago: until its version
		// was last read, it was the same.
		rec.Before = max(rec.Before, min(f.confirmed, f.now))
	}
}

// isOtherText reports whether a page has another text than before, as far as that counts for its date. A record that was
// counted by other rules takes the text without a change.
func isOtherText(before *record.Record, m *html.Meta) bool {
	return before.Blocks != 0 && m.Blocks != before.Blocks
}

// changeAwaitsDate reports whether the last change of the page's text has no date yet, as a deployment may be under way.
func changeAwaitsDate(rec *record.Record) bool {
	return rec.Changed != 0 && rec.AwaitsDate()
}

// change records that the text of a page has changed, from one with such a sum of blocks. Changes that follow each other before
// the page is dated are one: the first tells when, and all together what.
func change(rec *record.Record, from uint64, batch int64) {
	difference := rec.Blocks - from
	if changeAwaitsDate(rec) {
		rec.Difference += difference
		return
	}
	rec.Difference = difference
	rec.Changed = batch
	// Two batches may begin in one second, as around a restart.
	if !rec.AwaitsDate() {
		rec.Changed++
	}
}

// confirm decides what a change amounts to that the last fetch found, most often a minute ago: isOther says that the
// text is yet another one now, and moves that the declared date is one of responses. One more change may be an
// editor's, such as a second post on a front page. Confirmations that are late because very many wait have to end the
// doubt, too: else they would take all that known pages may take, for ever.
func confirm(rec *record.Record, f *fetched, isOther, moves bool) comparison {
	rec.Flags = rec.Flags&^record.DeclaredMoves | flagIf(record.DeclaredMoves, moves)
	was := rec.Steadiness
	if isOther && was == record.StillInDoubt {
		rec.Steadiness = record.Noisy
		return unchanged
	}
	if isOther {
		rec.Steadiness = record.StillInDoubt
		return suspected
	}
	rec.Steadiness = record.Steady
	if was == record.DateInDoubt {
		return unchanged // the text has been the same all the time
	}
	return settle(rec, f)
}

// calm decides whether the text of a page is noise no more: two fetches found the same, with so long between them that
// a clock would have shown another time.
func calm(rec, before *record.Record, f *fetched, isOther bool) comparison {
	if isOther || f.now-before.Fetched < confirmWithin {
		return unchanged
	}
	rec.Steadiness = record.Steady
	return settle(rec, f)
}

// settle records that the text is another one than before, unless the old one is back: a page that showed an error for
// a moment, say, has not changed.
func settle(rec *record.Record, f *fetched) comparison {
	settled := rec.Settled
	rec.Settled = 0
	if rec.Blocks == settled {
		return unchanged
	}
	change(rec, settled, f.batch)
	if rec.Streak < math.MaxUint8 {
		rec.Streak++
	}
	return changed
}

// isOfResponse reports whether a declared date may be the time of the response itself.
func isOfResponse(m *html.Meta, now int64) bool {
	const slack = 2 * minute
	return m.Modified != 0 && !m.ModifiedDay && m.Modified >= now-slack
}

// onSite returns the path of an absolute URL, or the URL where it is on another site; "": it is the page itself.
func onSite(base, self, url string) string {
	path, ok := html.PathOn(base, url)
	if path == self {
		return ""
	}
	if ok {
		return path
	}
	return url
}

// isRefusal reports whether a response has no page to list, which may soon change.
func isRefusal(rec *record.Record) bool {
	return rec.Status != http.StatusOK && rec.Status/100 != 3 || rec.Flags&record.SoftNotFound != 0
}

// plan sets when a page that was fetched now is due again, and by what.
func (r *Run) plan(before, rec *record.Record, came comparison, slot, now int64) {
	isWritten := before.Cause == record.ByWrite
	if isWritten {
		r.c.o.Limiter.PayForWrites(1)
	}
	isUpstream := rec.Flags&record.Made != 0
	isPage := rec.Status == http.StatusOK && rec.Failing == 0
	next := fetchFacts{
		intervals: r.intervalsOf(rec),
		came:      came,
		interval:  int64(before.Wait),
		isFirst:   before.Fetched == 0,
		isNew:     awaitsCredit(rec),
		isFailing: before.Failing != 0 || !page.IsConclusive(int(before.Status)),
		isFront:   r.isFront(rec),
		isProbed:  rec.Path == r.front.path,
		isNoisy:   rec.Steadiness == record.Noisy,
		isNoPage:  !isPage,
		isSteady:  rec.Version != 0 && !isUpstream,
		isSpread:  isUpstream,
		isWritten: isWritten,
		path:      rec.Path,
		hub:       scoreOf(rec),
	}.next()
	if !isUpstream && r.hasLinks(rec) {
		// Links are to be seen within a third of Policy.Expire: the pause may be half as long again, see below.
		next.pause = min(next.pause, max(r.p.expire()*2/9, minute))
	}
	rec.Wait = uint32(next.interval)
	rec.Cause = next.cause
	rec.Due = now + next.pause
	if next.pause > day && !isUpstream {
		// A chunk of files is due as a whole: otherwise it would be decoded and written again for each of its pages.
		period := min(next.pause/2, week)
		rec.Due += (slot%period - rec.Due%period + period) % period
	}
}

// intervalsOf returns the bounds of a page's intervals.
func (r *Run) intervalsOf(rec *record.Record) intervals {
	if rec.Flags&record.Made != 0 {
		return r.pace.intervals()
	}
	hasLinks := r.hasLinks(rec)
	if hasLinks && rec.Version != 0 {
		return ofFiles
	}
	isImage := rec.Flags&record.Image != 0 // which is listed only while it is there: so it is requested each day
	if !hasLinks && !isImage {
		return ofData
	}
	return ofOwn
}

// hasLinks reports whether a page may link to others: it is HTML, or a redirect, or not known to be neither.
func (r *Run) hasLinks(rec *record.Record) bool {
	isData := rec.Status == http.StatusOK && rec.Failing == 0 && rec.Flags&record.HTML == 0
	// An application that starts may respond with an empty page. Taken for data, its front page was requested again
	// after months.
	mayStart := rec.Path == r.p.Scope
	return !isData || mayStart
}

// wanted reports whether a page is fetched when it is due.
func (r *Run) wanted(rec *record.Record) bool {
	if rec.Flags&record.Blocked != 0 || rec.Absent != 0 {
		return false
	}
	if rec.Flags&record.Named != 0 {
		return true
	}
	// `crawl disallow` and the scope do not concern images: visitors of the page request them as well.
	if rec.Flags&record.Image != 0 && r.p.wantsImages() {
		return true
	}
	if rec.Flags&record.Disallowed != 0 {
		return false
	}
	if rec.Flags&record.Seed != 0 && r.p.discovers() {
		return true
	}
	isFollowed := r.p.Links || rec.Flags&record.Target != 0
	if isFollowed && int(rec.Depth) <= r.p.Depth {
		return true
	}
	// Without the source of links, a link makes a record, and a visit has it fetched.
	isVisited := rec.Flags&record.Visited != 0
	return isVisited && (r.p.Discover || r.p.Unlinked(rec.Path))
}

// due is when a page is to be fetched; MaxInt64: it is not.
func (r *Run) due(rec *record.Record, now int64) int64 {
	if !r.wanted(rec) {
		return math.MaxInt64
	}
	isFromFuture := rec.Fetched > now+clockSlack // the clock was set back
	if rec.Fetched == 0 || isFromFuture {
		return 0
	}
	return rec.Due
}

// chunkDue is when a chunk of records is to be looked at again: a page is due, or may have to be dropped.
func (r *Run) chunkDue(records []record.Record) int64 {
	now := r.c.now()
	first := now + maxAhead
	for i := range records {
		rec := &records[i]
		first = min(first, r.due(rec, now))
		if awaitsCredit(rec) {
			first = min(first, now) // its finder is to be told
		}
		// What should be gone already is kept by something else, such as a selection that is held back: the chunk is
		// looked at again, but not in each crawl.
		if rec.Absent != 0 {
			first = min(first, max(rec.Absent+keepAbsent, now+hour))
			continue
		}
		needsLink := rec.Flags&record.Named == 0 && rec.Path != r.p.Scope
		if needsLink {
			first = min(first, max(rec.Linked+r.p.expire()+1, now+day)) // or later: see record.Record.IsLinked
		}
	}
	return first
}

// spares reports whether a conditional request will do: the page has validators, and its links were seen in this
// third of Policy.Expire. The thirds of pages begin at different times.
func (r *Run) spares(rec *record.Record, now int64) bool {
	// Perhaps its header has it left out. Whether it still does, only a full response shows: a 304 need not have the
	// fields that are no validators (RFC 9110, section 15.4.5), and those of Apache have none.
	if rec.NoIndexTag || rec.Canonical != "" || rec.Target != "" {
		return false
	}
	if rec.Status != http.StatusOK || rec.Failing != 0 {
		return false
	}
	if isDemanded(rec) || rec.Withheld || rec.Steadiness.IsInDoubt() {
		return false // it may have changed, or its links are wanted
	}
	if rec.ETag == "" && rec.Modified == 0 {
		return false
	}
	if rec.Flags&record.Made != 0 {
		// An application that responds with 304 whatever it has would hide each change.
		return now-rec.FollowedAt() < r.pace.Longest()
	}
	third := max(r.p.expire()/3, 1)
	shift := int64(xxhash.Sum64String(rec.Path) % uint64(third))
	return (rec.Fetched+shift)/third == (now+shift)/third
}
