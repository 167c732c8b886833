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
	changed = !first && e.Fingerprint != r.Fingerprint
	switch {
	case first && fromFile:
		r.Seen = seenFirstFile
	case first:
		r.Seen = seenFirstAnswer
	case changed && fromFile:
		r.Seen = seenChangeFile
	case changed && r.Asked != 0 && now.Sub(time.Unix(r.Asked, 0)) < day:
		r.Seen = seenChangeDay
	case changed:
		r.Seen = seenChangeAnswer
	case e.Modified != r.Declared && r.Declared != 0:
		r.Flags |= FlagDeclaredMoves
	}
	if !fromFile {
		r.Streak = streak(r.Streak, changed)
	}
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
		r.Content, r.Canonical = uint8(reason), canonical
	}
	return changed
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
	Page    *evidence.Evidence // what its body says; nil: it was not read
	SoftNot bool               // its body is what a page that cannot exist gets, too
}

// Answer takes down what asking for a page came to. An answer that is no verdict
// leaves the last one.
func Answer(r *state.Record, a Answered, site string, now time.Time) {
	known := Reason(r.Answer)
	reason, canonical := ofAnswer(r, a, site, now)
	r.Flags &^= FlagDue
	r.Asked = now.Unix()
	switch {
	case reason == Unknown:
		return
	case !reason.Listed() && known.Listed() && r.Flags&FlagListed != 0:
		// A listed page turns bad. Whether that is believed depends on how many do.
		if r.Suspect != 0 {
			r.Flags |= FlagTwice
		}
		r.Suspect = uint8(reason)
		return
	}
	if known == Redirects && reason != Redirects && Reason(r.Content) == CanonicalHere {
		r.Page.Version = 0 // what the file names in its stead is to be read again
	}
	r.Answer, r.Suspect = uint8(reason), 0
	r.Flags &^= FlagTwice
	if canonical != "" || a.Page != nil || reason == Redirects {
		r.Canonical = canonical
	}
	r.ETag, r.Modified = a.Header.Get("Etag"), a.Header.Get("Last-Modified")
	if len(r.ETag) > maxValidator || len(r.Modified) > maxValidator {
		r.ETag, r.Modified = "", ""
	}
}

// Believe makes of what the last ask said the verdict.
func Believe(r *state.Record) {
	r.Answer, r.Suspect = r.Suspect, 0
	r.Flags &^= FlagTwice
}

const maxValidator = 128

// ofAnswer is what an answer means, Unknown where it is no verdict; and the path of
// the page of the site that it names or leads to.
func ofAnswer(r *state.Record, a Answered, site string, now time.Time) (Reason, string) {
	path := r.Page.Path
	switch {
	case a.NoReply:
		return Unknown, ""
	case a.Status == http.StatusNotModified:
		return Reason(r.Answer), r.Canonical
	case a.Status >= 300 && a.Status < 400:
		return Redirects, redirectOn(path, a.Header, site)
	case a.Status == http.StatusNotFound, a.Status == http.StatusGone:
		return Gone, ""
	case a.Status >= 500, a.Status == http.StatusForbidden, a.Status == http.StatusTooManyRequests:
		if Reason(r.Answer) == Good {
			return Unknown, ""
		}
		if a.Status == http.StatusForbidden {
			return Refused, ""
		}
		return Failing, ""
	case a.Status >= 400:
		return Refused, ""
	case a.Status != http.StatusOK:
		return Failing, ""
	case ExpectsHTML(path) && !evidence.IsHTML(a.Header.Get("Content-Type")):
		return NotHTML, ""
	case a.SoftNot:
		return SoftNotFound, ""
	}
	e := evidence.Header(evidence.Page{Base: site, Path: path, Header: a.Header, Now: now})
	if reason, canonical := ofEvidence(path, &e, site); reason != Good || a.Page == nil {
		return reason, canonical
	}
	return ofPage(path, a.Page, site)
}

// redirectOn is where a redirect leads, if to another page of the site.
func redirectOn(path string, header http.Header, site string) string {
	location := header.Get("Location")
	if strings.HasPrefix(location, "/") && !strings.HasPrefix(location, "//") {
		location = site + location
	}
	there, ok := PathOn(site, location)
	if !ok || there == path {
		return ""
	}
	return there
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

// Times between asks.
const (
	firstWait = 7  // days
	lastWait  = 90 // days
)

// Wait plans the next ask: soon again while things change, ever later while they
// do not.
func Wait(r *state.Record, changed bool) {
	if changed || r.Wait == 0 {
		r.Wait = firstWait
		return
	}
	r.Wait = min(2*r.Wait, lastWait)
}

// Due is when a page is to be asked for again, Unix seconds; 0: at once. Pages that
// were asked for together are spread over half of the wait.
func Due(r *state.Record, hash uint64) int64 {
	if r.Asked == 0 || r.Flags&FlagDue != 0 || r.Suspect != 0 {
		return 0
	}
	wait := int64(r.Wait) * 24 * 3600
	return r.Asked + wait + int64(hash%1024)*wait/2048
}
