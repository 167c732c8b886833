package crawl

import (
	"cmp"
	"math"
	"net/http"
	"net/url"

	"github.com/seed3295b519/caddy-sitemap/internal/htmlmeta"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

const (
	maxETag = 128
	maxURL  = 4096

	// ofResponse are the flags that the last response decides.
	ofResponse = store.HTML | store.Document | store.NoIndex | store.Truncated | store.Unreadable | store.SoftNotFound | store.Proxied
)

// fetched is what a fetch came to.
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
	emptied           // a document is none for the first time, as it may be while it is written
)

// apply updates a record by what a fetch came to.
func apply(rec *store.Record, f *fetched) outcome {
	before, resp := *rec, cmp.Or(f.resp, new(Response))
	isHTML := htmlmeta.IsHTML(resp.Header.Get("Content-Type"))
	rec.Fetched = f.now
	switch {
	case !isAnswer(uint16(resp.Status)):
		if rec.Failing == 0 || rec.Failing > f.now {
			rec.Failing = f.now
		}
		if !isAnswer(before.Status) || f.now-rec.Failing > hour { // else what was known stays
			forget(rec)
			rec.Status = uint16(resp.Status)
		}
		return failed
	case resp.Status == http.StatusNotModified:
		rec.Failing, rec.Streak = 0, 0
		rec.ETag = cmp.Or(etag(resp), rec.ETag)
		return unchanged
	case before.Status == http.StatusOK && before.Flags&store.Document != 0 && before.Failing == 0 &&
		resp.Status == http.StatusOK && isHTML && !f.meta.Document && !f.meta.Unreadable:
		rec.Failing = f.now
		return emptied
	}
	forget(rec)
	rec.Failing, rec.Status = 0, uint16(resp.Status)
	rec.Flags |= flagIf(store.Proxied, resp.Proxied)
	if isRedirect(rec) {
		rec.Target = onSite(f.base, rec.Path, location(f.base+rec.Path, resp.Header))
	}
	if resp.Status != http.StatusOK {
		return unchanged
	}
	m := &f.meta
	rec.Flags |= flagIf(store.HTML, isHTML) | flagIf(store.Document, m.Document) | flagIf(store.NoIndex, m.NoIndex) |
		flagIf(store.Truncated, m.Truncated || resp.Truncated) | flagIf(store.Unreadable, m.Unreadable) | flagIf(store.SoftNotFound, f.soft)
	rec.Canonical, rec.Target = onSite(f.base, rec.Path, m.Canonical), onSite(f.base, rec.Path, m.Refresh)
	rec.Alternates, rec.Images = m.Alternates, m.Images // htmlmeta bounds them
	came := unchanged
	if isHTML && !m.Unreadable {
		came = text(rec, &before, f)
	}
	if rec.Version == 0 || resp.Proxied {
		validators(rec, &before, resp, came)
	}
	return came
}

// forget drops what the last response said, but not what dates are decided by.
func forget(rec *store.Record) {
	rec.Flags &^= ofResponse
	rec.Status, rec.Canonical, rec.Target, rec.ETag, rec.Modified = 0, "", "", "", 0
	rec.Alternates, rec.Images = nil, nil
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
		rec.Changed, rec.Before = f.batch, before.Fetched
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
	rec.Text, rec.Declared = m.Text, m.Modified
	rec.Flags = rec.Flags&^store.DeclaredDay | flagIf(store.DeclaredDay, m.ModifiedDay)
	return came
}

// validators records what makes the next request conditional.
func validators(rec, before *store.Record, resp *Response, came outcome) {
	rec.ETag = etag(resp)
	t, err := http.ParseTime(resp.Header.Get("Last-Modified"))
	if err != nil || came == changed && t.Unix() < before.Fetched && before.Failing == 0 {
		return // else it was so with the old text, too
	}
	rec.Modified = max(t.Unix(), 0)
}

func etag(resp *Response) string {
	if etag := resp.Header.Get("Etag"); len(etag) <= maxETag {
		return etag
	}
	return ""
}

// location returns the absolute URL to which a redirect from another one leads; "": it does not say.
func location(from string, header http.Header) string {
	value := header.Get("Location")
	here, err := url.Parse(from)
	if err != nil || value == "" {
		return ""
	}
	there, err := here.Parse(value)
	if err != nil {
		return ""
	}
	if port := there.Port(); port == "443" && there.Scheme == "https" || port == "80" && there.Scheme == "http" {
		there.Host = there.Host[:len(there.Host)-len(port)-1]
	}
	there.Fragment = ""
	return there.String()
}

// onSite returns the path of an absolute URL, or the URL where it is on another site. "": it is the page
// itself, or too long.
func onSite(base, self, url string) string {
	path, ok := htmlmeta.PathOn(base, url)
	switch {
	case len(url) > maxURL || path == self:
		return ""
	case ok:
		return path
	}
	return url
}
