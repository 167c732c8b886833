package crawl

import (
	"context"
	"math"
	"net/http"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// addLinks merges links into the records of their range.
func (r *Run) addLinks(ctx context.Context, records []record.Record, found []link) ([]record.Record, error) {
	fresh, err := r.discover(ctx, records, found)
	if err != nil {
		return nil, err
	}
	records = insert(records, fresh)
	for _, n := range found {
		if n.spelled != "" && !isFile(records, n.path) {
			r.addSpelled(n)
			continue
		}
		isPage := r.relink(records, n)
		isTried := n.isAlias || n.flags&record.Image != 0 // it has no aliases that are to be looked up
		if !isPage && !isTried && len(r.links.unmatched) < r.links.max {
			r.links.unmatched = append(r.links.unmatched, n.path)
		}
	}
	return records, nil
}

// discover returns records of the pages that links name and that have none.
func (r *Run) discover(ctx context.Context, records []record.Record, found []link) (fresh []record.Record, err error) {
	for _, n := range found {
		if n.isAlias || n.spelled != "" {
			continue // a guess makes no record
		}
		if _, known := record.Search(records, n.path); known {
			continue
		}
		if last := len(fresh) - 1; last >= 0 && fresh[last].Path == n.path {
			continue // found is sorted
		}
		ok, err := r.isDiscovered(ctx, n)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		// relink gives it its depth, as that of any page with a nearer link.
		rec := record.Record{Path: n.path, Depth: math.MaxUint8, Finder: n.finder, Credited: !n.finderKnown}
		r.classify(&rec)
		fresh = append(fresh, rec)
	}
	return fresh, nil
}

// isFile reports whether there is a page that a source names, or named until now, for its file.
func isFile(records []record.Record, path string) bool {
	i, known := record.Search(records, path)
	return known && records[i].Version != 0
}

// addSpelled adds a link for the next round whose path, bare, is that of no file: to an application, the path as the
// link spells it may be another page.
func (r *Run) addSpelled(n link) {
	n.path = n.spelled
	n.spelled = ""
	if strings.HasPrefix(n.path, r.p.Scope) {
		r.links.found = append(r.links.found, n)
	}
}

// linkPart merges the links found since into records at hand, so that they need not be held: most lead nearby.
func (r *Run) linkPart(records []record.Record, since int) {
	rest := r.links.found[:since]
	for _, n := range r.links.found[since:] {
		isCertain := n.spelled == "" || isFile(records, n.path)
		if isCertain && r.relink(records, n) {
			delete(r.links.seen, n.key())
			continue
		}
		rest = append(rest, n)
	}
	r.links.found = rest
}

// relink updates the record of a page to which another links, and reports whether it is known to be one.
func (r *Run) relink(records []record.Record, n link) (isPage bool) {
	i, known := record.Search(records, n.path)
	if !known {
		return false
	}
	rec := &records[i]
	r.linked(rec)
	r.release(rec)
	isPage = rec.Status == http.StatusOK
	if n.isAlias {
		return isPage // what else the link says is of another path
	}
	rec.Flags |= n.flags
	if rec.Absent != 0 && r.p.discovers() {
		toLinked(rec)
		r.classify(rec)
	}
	if rec.Flags&record.Named == 0 && n.depth < rec.Depth {
		rec.Depth = n.depth
		if r.p.Links {
			demand(rec, record.ByLinks) // its links are nearer, too
		}
	}
	return isPage
}

// release has a page fetched again whose links did not count when it was fetched, if they do now: they are not kept.
// A page that fails is fetched again anyhow, when it is due.
func (r *Run) release(rec *record.Record) {
	if rec.Withheld && rec.Failing == 0 && r.p.Counts(rec) {
		demand(rec, record.ByLinks)
	}
}

// linked records that something links to a page now, and not again for a week or less.
func (r *Run) linked(rec *record.Record) {
	now := r.c.now()
	// A new time in each crawl would have each chunk stored again.
	isOld := now-rec.Linked > record.LinkedEvery(r.p.expire())
	if isOld || rec.Linked > now+clockSlack { // the clock was set back
		rec.Linked = now
	}
}

// isDiscovered reports whether a page that a link names gets a record.
func (r *Run) isDiscovered(ctx context.Context, n link) (ok bool, err error) {
	// A page beyond Policy.Depth has a record as well, so that it can be named, although it is not fetched.
	if n.flags == 0 && !r.p.discovers() {
		return false, nil
	}
	isFiltered := n.path != r.p.Scope && n.flags&record.Image == 0
	if isFiltered && r.p.Filter(&page.Page{Path: n.path}) != "" {
		return false, nil
	}
	// Once in a crawl, and only if it is needed: it reads all records.
	if r.census == nil {
		r.census, err = r.count(ctx)
		if err != nil {
			return false, err
		}
	}
	if !r.makeRoom(n) {
		r.links.dropped++
		return false, nil
	}
	rec := record.Record{Path: n.path, Flags: n.flags, Depth: n.depth}
	r.census.add(&rec, r.isTooDeep(n.depth, n.flags))
	return true, nil
}
