package crawl

import (
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

// apply updates a record by what a fetch came to. It reports whether the text is another than before.
func apply(rec *store.Record, f *fetched) (changed bool) {
	status := 0
	if f.resp != nil {
		status = f.resp.Status
	}
	before := *rec
	rec.Fetched = f.now
	switch {
	case !isAnswer(uint16(status)), status == http.StatusNotModified && !isAnswer(before.Status):
		failed(rec, &before, status, f.now)
		return false
	case status == http.StatusNotModified:
		rec.Failing, rec.Streak = 0, 0
		if etag := f.resp.Header.Get("Etag"); etag != "" && len(etag) <= maxETag {
			rec.ETag = etag
		}
		return false
	case isEmptied(&before, f):
		rec.Failing, rec.Wait = f.now, graceWait
		return false
	}
	forget(rec)
	rec.Failing, rec.Status = 0, uint16(status)
	if f.resp.Proxied {
		rec.Flags |= store.Proxied
	}
	switch {
	case status >= 300 && status < 400:
		rec.Target = onSite(f.base, rec.Path, location(f.base, rec.Path, f.resp.Header))
	case status == http.StatusOK:
		changed = content(rec, &before, f)
	}
	return changed
}

// failed records that a fetch came to nothing. What was known before stays until that has lasted for an
// hour.
func failed(rec, before *store.Record, status int, now int64) {
	if rec.Failing == 0 || rec.Failing > now {
		rec.Failing = now
	}
	if isAnswer(before.Status) && now-rec.Failing <= hour {
		return
	}
	forget(rec)
	rec.Status = uint16(status)
}

// forget drops what the last response said, but not what dates are decided by.
func forget(rec *store.Record) {
	rec.Flags &^= ofResponse
	rec.Status, rec.Canonical, rec.Target, rec.ETag, rec.Modified = 0, "", "", "", 0
	rec.Alternates, rec.Images = nil, nil
}

// isEmptied reports whether a page that was a document is none for the first time, as it may be while it is
// written.
func isEmptied(before *store.Record, f *fetched) bool {
	return before.Status == http.StatusOK && before.Flags&store.Document != 0 && before.Failing == 0 &&
		f.resp.Status == http.StatusOK && !f.meta.Document && !f.meta.Unreadable &&
		(htmlmeta.IsHTML(f.resp.Header.Get("Content-Type")) || len(f.resp.Body) == 0 && f.resp.Header.Get("Content-Type") == "")
}

// content records what a response with the status 200 says.
func content(rec, before *store.Record, f *fetched) (changed bool) {
	m := &f.meta
	rec.Flags |= flagIf(store.HTML, htmlmeta.IsHTML(f.resp.Header.Get("Content-Type"))) | flagIf(store.Document, m.Document) |
		flagIf(store.NoIndex, m.NoIndex) | flagIf(store.Truncated, m.Truncated || f.resp.Truncated) |
		flagIf(store.Unreadable, m.Unreadable) | flagIf(store.SoftNotFound, f.soft)
	rec.Canonical, rec.Target = onSite(f.base, rec.Path, m.Canonical), onSite(f.base, rec.Path, m.Refresh)
	rec.Alternates, rec.Images = m.Alternates, m.Images
	if rec.Flags&store.HTML != 0 && !m.Unreadable {
		changed = text(rec, before, f)
	}
	if rec.Version == 0 || f.resp.Proxied {
		validators(rec, before, f.resp.Header, changed)
	}
	return changed
}

func flagIf(flag store.Flags, is bool) store.Flags {
	if is {
		return flag
	}
	return 0
}

// text records the text of a page and the dates that go with it.
func text(rec, before *store.Record, f *fetched) (changed bool) {
	m := &f.meta
	changed = before.First != 0 && m.Text != before.Text
	switch {
	case before.First == 0:
		rec.First = f.batch
	case changed:
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
	return changed
}

// validators records what makes the next request conditional.
func validators(rec, before *store.Record, header http.Header, changed bool) {
	if etag := header.Get("Etag"); len(etag) <= maxETag {
		rec.ETag = etag
	}
	if t, err := http.ParseTime(header.Get("Last-Modified")); err == nil && t.Unix() > 0 {
		rec.Modified = t.Unix()
	}
	if changed && rec.Modified < before.Fetched && before.Failing == 0 {
		rec.Modified = 0 // the old text was still there then
	}
}

// location returns the absolute URL to which a redirect leads; "": it does not say.
func location(base, from string, header http.Header) string {
	value := header.Get("Location")
	here, err := url.Parse(base + from)
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
	if url == "" || len(url) > maxURL {
		return ""
	}
	path, ok := htmlmeta.PathOn(base, url)
	switch {
	case !ok:
		return url
	case path == self:
		return ""
	}
	return path
}
