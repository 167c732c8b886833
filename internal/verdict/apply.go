package verdict

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/evidence"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/state"
)

// What [state.Record.Seen] says: how the page's present text was come upon, until
// [Dates.Settle] has made a date of it.
const (
	seenNothing      uint8 = iota
	seenFirstFile          // at first sight, in a file
	seenFirstAnswer        // at first sight, in an answer
	seenChangeFile         // changed, in a file
	seenChangeAnswer       // changed, in an answer
	seenChangeDay          // changed, in an answer less than a day after the one before
)

// maxStreak is at how many asks in a row a page changes that has no date: it shows
// a counter, or a rotating list.
const maxStreak = 3

// Content takes down what reading a page showed. A file's content is that of the
// record's Page; an answer's is what was served at now. It reports whether what a
// reader sees is another than before.
func Content(r *state.Record, e *evidence.Evidence, site string, fromFile bool, now time.Time) (changed bool) {
	first := r.Flags&FlagRead == 0
	if e.Fingerprint != r.Fingerprint && fromFile == (r.Flags&FlagDynamic != 0) {
		first = true // what a file holds and what is served for it tell no change apart
	}
	changed = !first && e.Fingerprint != r.Fingerprint
	switch {
	case first && fromFile:
		r.Seen = seenFirstFile
	case first:
		r.Seen = seenFirstAnswer
	case changed && fromFile:
		r.Seen = seenChangeFile
	case changed && r.Asked != 0 && r.Flags&FlagUnseen == 0 && now.Sub(time.Unix(r.Asked, 0)) < day:
		r.Seen = seenChangeDay
	case changed:
		r.Seen = seenChangeAnswer
	default:
		if r.Declared != 0 && e.Modified != 0 && e.Modified != r.Declared {
			r.Flags |= FlagDeclaredMoves
		}
		if !fromFile {
			forgetDay(r)
		}
	}
	if changed {
		r.Flags &^= FlagDeclaredMoves
	}
	r.Streak = streak(r.Streak, changed && !fromFile)
	r.Fingerprint = e.Fingerprint
	r.Declared, r.DeclaredDay = e.Modified, e.ModifiedDay
	r.Flags |= FlagRead
	r.Flags &^= FlagDynamic
	if !fromFile {
		r.Flags |= FlagDynamic
	}
	r.Details = &state.Details{Links: e.Links, Alternates: e.Alternates, Images: e.Images}
	r.Content = uint8(Unknown) // an answer's is part of its own verdict
	if fromFile {
		reason, canonical := ofPage(r.Page.Path, e, site)
		r.Content = uint8(reason)
		if canonical != "" {
			r.Canonical = canonical
		}
	}
	return changed
}

// forgetDay is for another ask before the day of a change was made a date of: the
// record does not keep it.
func forgetDay(r *state.Record) {
	if r.Seen == seenChangeDay {
		r.Seen = seenChangeAnswer
	}
}

func streak(n uint8, changed bool) uint8 {
	switch {
	case !changed:
		return 0
	case n < maxStreak:
		return n + 1
	}
	return n
}

// ofPage is ofEvidence for a page that was read.
func ofPage(path string, e *evidence.Evidence, site string) (Reason, string) {
	reason, canonical := ofEvidence(path, e, site)
	if !e.Whole && reason != NoIndex {
		return Fragment, ""
	}
	return reason, canonical
}

// ofEvidence is what a page says of itself; with CanonicalHere also the path of
// the page that it names.
func ofEvidence(path string, e *evidence.Evidence, site string) (Reason, string) {
	if e.NoIndex {
		return NoIndex, ""
	}
	if e.Refresh != "" {
		if there, ok := PathOn(site, e.Refresh); !ok || there != path {
			return Refreshes, ""
		}
	}
	if e.Canonical != "" {
		there, ok := PathOn(site, e.Canonical)
		switch {
		case !ok:
			return CanonicalAway, ""
		case there != path:
			return CanonicalHere, there
		}
	}
	return Good, ""
}

// PathOn is the path and query of a URL on a site, given as scheme, host and port,
// in canonical form; false where it is on another site.
func PathOn(site, url string) (string, bool) {
	url, _, _ = strings.Cut(url, "#")
	rest, ok := cutPrefixFold(url, site)
	if !ok || rest != "" && rest[0] != '/' && rest[0] != '?' {
		return "", false
	}
	if rest == "" || rest[0] == '?' {
		rest = "/" + rest
	}
	path, err := page.Canonical(rest)
	return path, err == nil
}

func cutPrefixFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return "", false
	}
	return s[len(prefix):], true
}

// Answered is an answer to an ask for a page.
type Answered struct {
	Status  int
	Header  http.Header
	NoReply bool               // there was none, or none that counts: a timeout, an aborted connection
	Page    *evidence.Evidence // what header and body say; nil: the body was not read
	SoftNot bool               // its body is what a page that cannot exist gets, too
}

// Answer takes down what asking for a page came to, after [Content] where the body
// was read. An answer that is no verdict leaves the last one.
func Answer(r *state.Record, a Answered, site string, now time.Time) {
	known, failed, before := Reason(r.Answer), fails(r), r.Asked
	reason, canonical := ofAnswer(r, a, site, now)
	validate(r, a, reason)
	if r.Page.Version != 0 && r.Flags&FlagDynamic == 0 {
		r.ETag, r.Modified = "", "" // the file's own version says it
	}
	r.Flags &^= FlagDue | FlagNoVerdict | FlagUnseen
	if !showsText(r, a) {
		r.Flags |= FlagUnseen
	}
	r.Asked = now.Unix()
	if canonical != "" && Reason(r.Content) != CanonicalHere {
		r.Canonical = canonical // else the file names one, which is kept
	}
	switch {
	case reason == Unknown:
		r.Flags |= FlagNoVerdict
	case r.Flags&FlagListed != 0 && turnsBad(known, reason):
		// Whether that is believed depends on how many do.
		if r.Suspect != 0 && r.Asked-before >= suspectWait-60 {
			r.Flags |= FlagTwice // and not within the same short outage
		}
		r.Suspect = uint8(reason)
	default:
		r.Answer, r.Suspect = uint8(reason), 0
		r.Flags &^= FlagTwice
	}
	if fails(r) != failed {
		r.Wait = 0
	}
}

// mayBeListed reports whether a page with this answer may be listed: one that names
// another is, where canonicals are ignored, or the other is nothing to list.
func mayBeListed(r Reason) bool { return r.Listed() || r == CanonicalHere || r == CanonicalAway }

func turnsBad(known, reason Reason) bool {
	return mayBeListed(known) && !reason.Listed() && reason != known
}

// showsText reports whether an answer tells what a reader sees.
func showsText(r *state.Record, a Answered) bool {
	switch {
	case a.NoReply:
		return false
	case a.Status == http.StatusNotModified, a.Page != nil:
		return true
	}
	return a.Status == http.StatusOK && r.Flags&FlagDynamic == 0
}

// validate keeps what the text that was seen last is known by to its server, for the
// next ask and for the date of a change. It is called before r.Asked is the time of
// this answer.
func validate(r *state.Record, a Answered, reason Reason) {
	etag, modified := a.Header.Get("Etag"), a.Header.Get("Last-Modified")
	switch {
	case a.Status == http.StatusNotModified:
		forgetDay(r)
		r.Streak = 0
		if etag == "" {
			etag = r.ETag
		}
		if modified == "" {
			modified = r.Modified
		}
	case a.NoReply || a.Status != http.StatusOK:
		forgetDay(r)
		if reason == Unknown {
			return
		}
		etag, modified = "", ""
	case a.Page == nil:
		forgetDay(r)
	case r.Seen == seenChangeAnswer || r.Seen == seenChangeDay:
		// A time before an ask at which the text was still the old one is not that
		// of the text.
		if t, ok := headerTime(modified); ok && r.Flags&FlagUnseen == 0 && t < r.Asked {
			modified = ""
		}
	}
	if len(etag) > maxValidator || len(modified) > maxValidator {
		etag, modified = "", ""
	}
	r.ETag, r.Modified = etag, modified
}

// Believe makes of what the last ask said the verdict.
func Believe(r *state.Record) {
	r.Answer, r.Suspect = r.Suspect, 0
	r.Flags &^= FlagTwice
	r.Wait = retryWait // it may be over soon
}

const maxValidator = 128

// ofAnswer is what an answer means, Unknown where it is no verdict; with
// CanonicalHere also the path of the page that it names.
func ofAnswer(r *state.Record, a Answered, site string, now time.Time) (Reason, string) {
	known, path := Reason(r.Answer), r.Page.Path
	switch {
	case a.NoReply:
		return Unknown, ""
	case a.Status == http.StatusNotModified:
		return known, ""
	case a.Status >= 300 && a.Status < 400:
		return Redirects, ""
	case a.Status == http.StatusNotFound, a.Status == http.StatusGone:
		return Gone, ""
	case a.Status >= 500, a.Status == http.StatusForbidden, a.Status == http.StatusTooManyRequests, a.Status == http.StatusRequestTimeout:
		switch {
		case known == Good || ofText(known):
			return Unknown, ""
		case a.Status == http.StatusForbidden:
			return Refused, ""
		}
		return Failing, ""
	case a.Status >= 400:
		return Refused, ""
	case a.Status != http.StatusOK:
		return Failing, ""
	}
	html := evidence.IsHTML(a.Header.Get("Content-Type"))
	switch {
	case !html && (ExpectsHTML(path) || r.Flags&FlagDiscovered != 0):
		return NotHTML, ""
	case a.SoftNot && path != "/":
		return SoftNotFound, ""
	case a.Page != nil && html:
		return ofPage(path, a.Page, site)
	}
	reason, canonical := ofHeader(path, a.Header, site, now)
	if reason == Good && a.Page == nil && r.Flags&FlagDynamic != 0 && ofText(known) {
		return known, "" // a body that was not read takes back nothing
	}
	return reason, canonical
}

// ofText reports whether a reason may have come from a body.
func ofText(r Reason) bool {
	switch r {
	case Fragment, NoIndex, Refreshes, CanonicalAway, CanonicalHere, SoftNotFound:
		return true
	}
	return false
}

// ofHeader is what an answer says of a page without its body.
func ofHeader(path string, header http.Header, site string, now time.Time) (Reason, string) {
	if header.Get("X-Robots-Tag") == "" && header.Get("Link") == "" && header.Get("Refresh") == "" {
		return Good, ""
	}
	e := evidence.Header(evidence.Page{Base: site, Path: path, Header: header, Now: now})
	return ofEvidence(path, &e, site)
}

var pageSuffixes = []string{".html", ".htm", ".xhtml", ".shtml", ".php", ".asp", ".aspx", ".jsp"}

// ExpectsHTML reports whether a page is one that a reader would expect to be HTML,
// by its path: other documents, such as PDF files, are listed for what they are.
func ExpectsHTML(path string) bool {
	path, _, _ = strings.Cut(path, "?")
	name := path[strings.LastIndexByte(path, '/')+1:]
	dot := strings.LastIndexByte(name, '.')
	return dot < 0 || slices.Contains(pageSuffixes, strings.ToLower(name[dot:]))
}

// Times between asks, in days, or in hours where the bit says so.
const (
	inHours   = 1 << 7
	retryWait = inHours | 1 // after no answer, or one that may soon be another
	firstWait = 7
	lastWait  = 90

	suspectWait = 3600 // seconds after which a page that turned bad is asked for again
)

// Wait plans the next ask: soon again while things change, ever later while they
// do not. It begins anew, with less, where the last ask found nothing out, or what
// may soon be otherwise.
func Wait(r *state.Record, changed bool) {
	switch {
	case !changed && r.Wait != 0:
		r.Wait = longer(r.Wait)
	case fails(r):
		r.Wait = retryWait
	default:
		r.Wait = firstWait
	}
}

// longer is twice the wait.
func longer(wait uint8) uint8 {
	if wait&inHours == 0 {
		return min(wait, lastWait/2) * 2
	}
	if hours := 2 * max(wait&^inHours, 1); hours < 24 {
		return inHours | hours
	}
	return 1
}

// fails reports whether the last ask found nothing out, or what may soon be otherwise.
func fails(r *state.Record) bool {
	switch Reason(r.Answer) {
	case Failing, Gone, Refused, SoftNotFound:
		return true
	}
	return r.Flags&FlagNoVerdict != 0
}

// Due is when a page is to be asked for again, Unix seconds; 0: at once. Pages that
// were asked for together are spread over half of the wait.
func Due(r *state.Record, hash uint64) int64 {
	if r.Asked == 0 || r.Flags&FlagDue != 0 {
		return 0
	}
	wait := int64(r.Wait) * 24 * 3600
	switch {
	case r.Suspect != 0:
		wait = suspectWait
	case r.Wait&inHours != 0:
		wait = int64(r.Wait&^inHours) * 3600
	}
	return r.Asked + wait + int64(hash%1024)*wait/2048
}
