package crawl

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// frontPage is the front page's response that the caller has at hand.
type frontPage struct {
	path string    // "": there was no response
	resp *Response // nil: there is none, or it was used
	hash uint64

	leads bool // the front page redirects to a page of which there is no response, as far as is known
}

// newFrontPage returns the front page of a policy.
func newFrontPage(p *Policy) frontPage {
	path := cmp.Or(p.FrontPath, p.Scope)
	resp := p.Front
	leads := resp == nil || resp.Status/100 == 3 && path == p.Scope
	// What a file explains is fetched without a wait for one's turn, like any page of the site itself.
	if resp == nil || !resp.Made {
		return frontPage{leads: leads}
	}
	// All that the crawl reads of a response: locationOf its target, and html the rest.
	d := xxhash.New()
	_, _ = d.WriteString(path + "\n")
	_, _ = d.Write(resp.Body)
	for _, name := range slices.Concat([]string{"Location"}, html.Headers) {
		for _, value := range resp.Header.Values(name) {
			_, _ = d.WriteString("\n" + name + ":" + value)
		}
	}
	_, _ = fmt.Fprintf(d, "\nstatus %d", resp.Status)
	return frontPage{path: path, resp: resp, hash: d.Sum64(), leads: leads}
}

// isFront reports whether the site begins with a page: it is the front page, or a redirect of that leads to it now. One
// to which it led once is a page as others.
func (r *Run) isFront(rec *record.Record) bool {
	if rec.Path == r.p.Scope || rec.Path == r.front.path {
		return true
	}
	return rec.Flags&record.Seed != 0 && r.front.leads
}

// isIn reports whether the page is in a range of paths: from first up to end.
func (f *frontPage) isIn(first, end string) bool { return first <= f.path && f.path < end }

// frontDiffers reports whether the front page has another response than the last one.
func (r *Run) frontDiffers() bool { return r.front.resp != nil && r.front.hash != r.c.frontHash }

// addFront adds the front page to the queue, for which no request is needed, if its response says something.
func (q *queue) addFront(r *Run, rec *record.Record, now int64) {
	if !r.frontDiffers() && r.due(rec, now) > now {
		return
	}
	q.front = append(q.front, &job{rec: *rec, class: byRate, front: r.front.resp})
	r.seeFront()
}

// seeFront notes that the front page's response was looked at, whether or not there is a page to which it belongs.
func (r *Run) seeFront() {
	r.c.frontHash = r.front.hash
	r.front.resp = nil
}
