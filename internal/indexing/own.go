package indexing

import (
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// ownStatus is the status that a page has by its own record. Indexable and CanonicalOther
// are preliminary: they depend on other pages.
func (r *Options) ownStatus(rec *record.Record) Status {
	switch {
	case r.Filter(&page.Page{Path: rec.Path}) != "":
		return Excluded
	case rec.Flags&record.Disallowed != 0:
		return Disallowed
	case rec.Flags&record.Blocked != 0:
		return Blocked
	case r.isTooDeep(rec):
		return TooDeep
	case rec.Absent != 0:
		return Absent
	case rec.Fetched == 0:
		return Pending
	case rec.Status != 200:
		return ofHTTPStatus(rec.Status)
	}
	return r.ofContent(rec)
}

// isTooDeep reports whether only links name the page, and more of them lead to it than the crawl follows. The pages
// to which it links itself are not known.
func (r *Options) isTooDeep(rec *record.Record) bool {
	isBeyond := r.Depth != 0 && int(rec.Depth) > r.Depth
	isNamed := rec.Flags&record.Named != 0 || r.isSeed(rec)
	isFetched := rec.Flags&record.Visited != 0 && r.Visits || r.isUnlinked(rec) // for a visit
	return isBeyond && !isNamed && !isFetched
}

// ofHTTPStatus is the status of a page whose response was not 200.
func ofHTTPStatus(status uint16) Status {
	switch {
	case status == 404, status == 410:
		return NotFound
	case status == 429:
		return RateLimited
	case !page.IsConclusive(int(status)), status < 300:
		return ServerError // a later request may get a page
	case status < 400:
		return Redirect
	}
	return Refused
}

// ofContent is the status of a page that returned 200.
func (r *Options) ofContent(rec *record.Record) Status {
	flags := rec.Flags
	isHTML := flags&record.HTML != 0
	isNamed := flags&(record.Named|record.Seed|record.Target) != 0
	switch {
	case !isHTML && (!isNamed || expectsHTML(rec.Path)):
		return NotHTML
	case flags&record.Unreadable != 0:
		return Unreadable
	case rec.Target != "":
		return Refresh
	case rec.NoIndexTag:
		return NoIndexTag
	case flags&record.NoIndex != 0:
		return NoIndex
	case isHTML && flags&record.Document == 0:
		return NoDocument
	case flags&record.SoftNotFound != 0 && rec.Path != r.Scope:
		return SoftNotFound
	case rec.Failing != 0 && !rec.Selected.Listed:
		return ServerError // only a listed page keeps its place while it fails
	}
	return r.ofCanonical(rec)
}

// ofCanonical is the status of an indexable page by its canonical. A file is itself in any spelling.
func (r *Options) ofCanonical(rec *record.Record) Status {
	canonical := rec.Canonical
	switch {
	case r.IgnoreCanonicals, canonical == "", page.Bare(canonical) == rec.Path:
		return Indexable
	case canonical[0] != '/':
		return CanonicalForeign
	}
	return CanonicalOther
}

// expectsHTML reports whether a page's name suggests HTML. Other documents, such as PDF
// files, are listed for what they are.
func expectsHTML(path string) bool {
	path, _, _ = strings.Cut(path, "?")
	name := path[strings.LastIndexByte(path, '/')+1:]
	return !strings.Contains(name, ".") || page.CutEnding(name) != name
}

// isImage reports whether a record is of an image that pages show, and of no page.
func isImage(rec *record.Record) bool {
	return rec.Flags&(record.Image|record.HTML|record.Named|record.Seed|record.Target) == record.Image
}

// isSeed reports whether the site begins with the page, to which no page needs to link.
func (r *Options) isSeed(rec *record.Record) bool {
	return rec.Flags&record.Seed != 0 || rec.Path == r.Scope
}

// needsLinks reports whether the page is listed only while a page links to it: only links or visitors name it, or a
// segment of its path begins with "_", as those of parts do.
func (r *Options) needsLinks(rec *record.Record) bool {
	isNamed := rec.Flags&record.Named != 0
	isFromList := isNamed && rec.Version == 0 // the operator's: it has no file
	switch {
	case r.isSeed(rec), isFromList:
		return false
	case !isNamed:
		return !r.isUnlinked(rec)
	}
	path, _, _ := strings.Cut(rec.Path, "?")
	return strings.Contains(path, "/_")
}

// isUnlinked reports whether a page needs no links as visitors have requested it.
func (r *Options) isUnlinked(rec *record.Record) bool {
	return rec.Flags&record.Visited != 0 && r.Unlinked != nil && r.Unlinked(rec.Path)
}

// LinksCount reports whether the links of a page that returns 200 and is indexable make others listed: the page is
// listed, or will be, as it needs no link or has one. So pages that need links never begin to hold each other up.
// OmitOrphans is no such need: where no source names the front page, all links would begin nowhere.
func (r *Options) LinksCount(rec *record.Record) bool {
	return rec.Selected.Listed || r.isLinked(rec) || !r.needsLinks(rec)
}

// isLinked reports whether a listed page linked to the page recently.
func (r *Options) isLinked(rec *record.Record) bool {
	if rec.Linked == 0 {
		return false
	}
	return r.Expire <= 0 || rec.IsLinked(r.Now.Unix(), int64(r.Expire.Seconds()), r.Followed)
}
