package sitemap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/htmlmeta"
	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/publish"
	"github.com/seed3295b519/caddy-sitemap/internal/sitemapxml"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// Explanation is why a URL is listed in a site's sitemap, or why it is not.
type Explanation struct {
	URL     string `json:"url"`     // in the form in which it is or would be listed
	Site    string `json:"site"`    // the URL of its site
	Sitemap string `json:"sitemap"` // the URL of the sitemap, or index
	Path    string `json:"path"`    // with its query

	// Listed says that the published sitemap has it, in Document, with these values.
	Listed     bool   `json:"listed"`
	Document   string `json:"document,omitempty"`
	LastMod    string `json:"lastmod,omitempty"`
	ChangeFreq string `json:"changefreq,omitempty"`
	Priority   string `json:"priority,omitempty"`

	// Reason is why it is not listed, in most cases the name of its index status; "" if it
	// is. Explanation says what that means, Remedy what to do for it to be listed. Other is
	// the URL that matters instead: its canonical, or what it duplicates or redirects to.
	Reason      string `json:"reason,omitempty"`
	Explanation string `json:"explanation"`
	Remedy      string `json:"remedy,omitempty"`
	Other       string `json:"other,omitempty"`

	// What keeps it from being fetched: a word or pattern of 'crawl disallow', or a line of
	// robots.txt.
	DisallowedBy string `json:"disallowed_by,omitempty"`
	RobotsRule   string `json:"robots_rule,omitempty"`

	Named     bool       `json:"named"`                // by a source
	LinkedAt  *time.Time `json:"linked_at,omitempty"`  // when a page that links to it was last fetched
	VisitedAt *time.Time `json:"visited_at,omitempty"` // when a visitor last had it
	FetchedAt *time.Time `json:"fetched_at,omitempty"` // when it was last fetched, with this status
	Status    int        `json:"status,omitempty"`
	DueAt     *time.Time `json:"due_at,omitempty"` // when it is fetched again

	// Response is what an anonymous visitor gets now; nil: Notes say why it was not fetched.
	Response *ExplainedResponse `json:"response,omitempty"`
	Notes    []string           `json:"notes,omitempty"`
}

// ExplainedResponse is a page's response to an anonymous visitor.
type ExplainedResponse struct {
	Status      int    `json:"status,omitempty"`
	Location    string `json:"location,omitempty"`
	ContentType string `json:"content_type,omitempty"`
	NoIndex     bool   `json:"noindex,omitempty"`
	Canonical   string `json:"canonical,omitempty"`
	Error       string `json:"error,omitempty"` // why there was no response
}

// Why a page is not listed, besides index statuses and the filter of candidates.
const (
	reasonUnnamed     = "no source names it"
	reasonOtherPath   = "listed under another path"
	reasonNextRefresh = "waits for the next refresh"
	reasonNoRefresh   = "no refresh has ended yet"
	reasonLastFailed  = "the last refresh failed"
)

const (
	maxExplained = 10              // sitemaps that cover the same URL
	maxClipped   = 2048            // bytes of a text that others wrote
	explainWait  = 3 * time.Second // for upstreams that are left alone
)

// explain tells why a URL is listed or is not. It fetches the page, and changes nothing.
// The error wraps errNotURL, errNoSite or errNotReady, or is ctx's or the storage's.
func explain(ctx context.Context, a *App, rawURL string) (*Explanation, error) {
	u, err := parsePageURL(rawURL)
	if err != nil {
		return nil, err
	}
	if err := a.awaitStart(ctx); err != nil {
		return nil, err
	}
	sites, notes := sitesCovering(a, u)
	if len(sites) == 0 {
		return nil, noSiteOf(a.allSites())
	}
	var all []*Explanation
	best := 0
	for i, s := range sites[:min(len(sites), maxExplained)] {
		x, err := newExplainer(s).explain(ctx, u.path)
		if err != nil {
			return nil, err
		}
		if all = append(all, x); x.rank() > all[best].rank() {
			best = i
		}
	}
	x := all[best]
	for i, other := range all {
		if i != best {
			notes = append(notes, fmt.Sprintf("in the sitemap %s: %s", other.Sitemap, cmp.Or(other.Reason, "listed")))
		}
	}
	x.Notes = append(notes, x.Notes...)
	return x, newExplainer(sites[best]).addResponse(ctx, x)
}

// rank tells which of several sitemaps an explanation is about.
func (x *Explanation) rank() int {
	switch x.Reason {
	case "":
		return 2
	case reasonRefused, reasonAbsent, reasonShadowed, reasonUnreached:
		return 0
	}
	return 1
}

func (x *Explanation) note(format string, args ...any) {
	x.Notes = append(x.Notes, fmt.Sprintf(format, args...))
}

func (x *Explanation) because(reason, explanation, remedy string) {
	x.Reason, x.Explanation, x.Remedy = reason, explanation, remedy
}

// sitesCovering are the sites that a URL may be a page of: those in whose prefix it lies,
// else all of its origin; the narrowest first.
func sitesCovering(a *App, u pageURL) (sites []*site, notes []string) {
	sites = sitesAt(a, u)
	within := slices.DeleteFunc(slices.Clone(sites), func(s *site) bool { return !strings.HasPrefix(u.path, s.prefix+"/") })
	if len(within) > 0 {
		sites = within
	}
	for i, s := range sites {
		if main := s.main.Load(); main != nil {
			sites[i] = main
			notes = append(notes, fmt.Sprintf("%s is served by the sitemap of %s", s.url(), main.url()))
		}
	}
	scope := func(s *site) int {
		if strings.HasPrefix(u.path, s.scope) {
			return len(s.scope)
		}
		return 0
	}
	slices.SortFunc(sites, func(x, y *site) int {
		if n := scope(y) - scope(x); n != 0 {
			return n
		}
		return strings.Compare(x.sitemapURL(), y.sitemapURL())
	})
	return slices.Compact(sites), notes
}

// explainer explains the pages of one site, as it stands when the explainer is made.
type explainer struct {
	*site
	probed *probeResult // nil: none yet
	last   *report      // the zero value: no refresh has ended
}

func newExplainer(s *site) explainer {
	return explainer{site: s, probed: s.probed.Load(), last: cmp.Or(s.lastReport(), new(report))}
}

// explain explains a path without fetching it.
func (e explainer) explain(ctx context.Context, path string) (*Explanation, error) {
	x := &Explanation{URL: e.origin + path, Site: e.url(), Sitemap: e.sitemapURL(), Path: path}
	found, err := e.record(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("reading the records: %w", err)
	}
	e.addKnown(x, &found)
	entry, document, err := e.entry(path)
	if err != nil {
		return nil, fmt.Errorf("reading the sitemap: %w", err)
	}
	if document != nil {
		x.Listed, x.Document = true, e.origin+e.docPath(document.Suffix, ".xml")
		x.LastMod, x.ChangeFreq, x.Priority = entry.LastMod, entry.ChangeFreq, entry.Priority
		x.Explanation = indexing.Indexable.Explanation()
		if e.handler.settings.crawl.off {
			x.Explanation = "A source names it. It is not fetched, because crawl is off."
		}
		if found.Record != nil && found.Status != indexing.Indexable {
			x.note("it is to be removed: %s", found.Status)
		}
		return x, nil
	}
	e.addUnlisted(x, &found)
	return x, nil
}

// explainUnlisted says why a page is not listed: what holds for the whole site comes first.
func (e explainer) addUnlisted(x *Explanation, found *indexing.Explanation) {
	last, probed, excluded := e.last, e.probed, e.filter(&page.Page{Path: x.Path})
	switch {
	case probed != nil && probed.blocked() != "":
		x.because(probed.blocked(), e.blocked(), "Change the routes if it should be listed.")
	case excluded != "":
		e.addExcluded(x, excluded)
	case last.outcome == "" && e.state.Index.Load() == nil:
		x.because(reasonNoRefresh, "The sitemap is being built for the first time.", "Wait.")
	case found.Record != nil && found.Status != indexing.Indexable:
		x.because(found.Status.String(), found.Status.Explanation(), found.Status.Remedy())
	case last.outcome == refreshFailed:
		x.because(reasonLastFailed, "The last refresh failed: "+last.reason+".", "See the log.")
	case found.Record == nil:
		e.addUnnamed(x)
	default:
		x.because(reasonNextRefresh, "It is indexable, and is not published yet.", "Wait.")
	}
	for i, source := range last.sources {
		if source.Error != "" {
			x.note("source %d (%s) could not be read: %s", i+1, source.Source, source.Error)
		}
	}
}

// explainRecord is what a selection from the published records says of a page.
func (e explainer) record(ctx context.Context, path string) (x indexing.Explanation, err error) {
	if e.handler.settings.crawl.off {
		return x, nil
	}
	if !e.app.compute.Take(ctx) {
		return x, ctx.Err()
	}
	defer e.app.compute.Release()
	rules := (&refreshRun{site: e.site, begun: e.app.now()}).rules(crawl.Result{Gathered: true}, false)
	for range 5 { // another generation may be published meanwhile
		g := e.state.generation.Load()
		if g == nil {
			return x, nil
		}
		if x, err = indexing.Explain(ctx, g, rules, path); !errors.Is(err, store.ErrSuperseded) {
			break
		}
	}
	return x, err
}

// addKnown adds what is known of the page, be it listed or not.
func (e explainer) addKnown(x *Explanation, found *indexing.Explanation) {
	at := func(seconds int64) *time.Time {
		if seconds == 0 {
			return nil
		}
		return utc(time.Unix(seconds, 0))
	}
	x.VisitedAt = at(e.state.visited.at(x.Path))
	if r := found.Record; r != nil {
		x.Named = r.Flags&store.Named != 0 && r.Absent == 0
		x.LinkedAt, x.FetchedAt, x.DueAt, x.Status = at(r.Linked), at(r.Fetched), at(r.Due), int(r.Status)
		if r.Failing != 0 {
			x.note("fetching it has failed since %s", at(r.Failing).Format(time.RFC3339))
		}
	}
	if x.Other = found.Other; strings.HasPrefix(x.Other, "/") {
		x.Other = e.origin + x.Other
	}
	if !x.Named {
		x.DisallowedBy = e.handler.settings.crawl.disallow.Match(x.Path)
	}
	if e.probed != nil && !e.probed.robots.rules.Allows(x.Path) {
		x.RobotsRule = clip(e.probed.robots.rules.Line(x.Path))
	}
}

// at is when visitors had a path last; 0: never.
func (v *visited) at(path string) int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.paths[path]
}

// entry is what the published sitemap says of a path; a nil document: nothing.
func (e explainer) entry(path string) (sitemapxml.URL, *publish.Document, error) {
	snapshot := e.state.Index.Load()
	if snapshot == nil {
		return sitemapxml.URL{}, nil, nil
	}
	d := snapshot.Holding(path)
	xml, err := d.XML()
	if err != nil {
		return sitemapxml.URL{}, nil, err
	}
	defer xml.Close()
	entry, found, err := sitemapxml.Find(xml, e.origin+path)
	if !found {
		d = nil
	}
	return entry, d, err
}

// explainExcluded says which setting excludes a page.
func (e explainer) addExcluded(x *Explanation, reason string) {
	x.because(reason, indexing.Excluded.Explanation(), indexing.Excluded.Remedy())
	switch {
	case !strings.HasPrefix(x.Path, e.scope):
		x.Explanation = fmt.Sprintf("The sitemap %s lists only URLs below %s.", x.Sitemap, e.origin+e.scope)
	case len(x.URL) > page.MaxLoc:
		x.Explanation, x.Remedy = fmt.Sprintf("It has %d bytes; sitemaps allow %d.", len(x.URL), page.MaxLoc), ""
	case e.isDocument(x.Path):
		x.Explanation, x.Remedy = "It is a document of the sitemap itself.", ""
	}
	for i, exclude := 0, e.handler.settings.exclude; i < len(exclude); i++ {
		if exclude[i : i+1].Match(x.Path) {
			x.note("'exclude' has the pattern %s", exclude[i])
		}
	}
}

// explainBlocked says what keeps the whole site from being listed.
func (e explainer) blocked() string {
	switch path := e.internal.prefix + e.handler.settings.path; {
	case e.probed.refused != 0:
		return fmt.Sprintf("Its front page, or %s, returns status %d.", path, e.probed.refused)
	case e.probed.absent != 0:
		return fmt.Sprintf("Its front page returns status %d, and no matcher names its host.", e.probed.absent)
	case e.probed.shadowed:
		return fmt.Sprintf("Another sitemap handler serves %s: they need different values of 'path'.", path)
	default:
		return fmt.Sprintf("Another handler responds to %s, with status %d.", path, e.probed.status)
	}
}

// explainUnnamed is for a page without a record.
func (e explainer) addUnnamed(x *Explanation) {
	for _, path := range similarPaths(x.Path) {
		if _, document, err := e.entry(path); err == nil && document != nil {
			x.Other = e.origin + path
			x.because(reasonOtherPath, "The same page is probably the one that is listed as "+x.Other+".", "")
			return
		}
	}
	if x.VisitedAt != nil {
		x.because(indexing.NoLinks.String(), indexing.NoLinks.Explanation(), indexing.NoLinks.Remedy())
		return
	}
	x.because(reasonUnnamed, "No source names it, and no listed page links to it.", "Link to it, or name it in 'urls'.")
}

// similarPaths are paths under which servers often serve the same page.
func similarPaths(path string) []string {
	bare, _, hasQuery := strings.Cut(path, "?")
	all := []string{bare + "/", bare + ".html", strings.TrimSuffix(bare, ".html"), strings.TrimSuffix(bare, "/"), strings.TrimSuffix(bare, "index.html")}
	if hasQuery {
		all = append(all, bare)
	}
	return slices.DeleteFunc(all, func(p string) bool { return p == "" || p == path })
}

// explainResponse fetches the page now, unless a crawl would not. The error is ctx's.
func (e explainer) addResponse(ctx context.Context, x *Explanation) error {
	if why := e.unfetched(x); why != "" {
		x.note("not fetched now: %s", why)
		return nil
	}
	res, err := (&Refresh{site: e.site}).fetch(ctx, x.Path, htmlmeta.MaxBody)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		x.Response = &ExplainedResponse{Error: clip(err.Error())}
		return nil
	}
	header := res.Header
	x.Response = &ExplainedResponse{Status: res.Status, Location: clip(header.Get("Location")), ContentType: clip(header.Get("Content-Type"))}
	if res.unhandled {
		x.Response.Error = "no route handles the request: a visitor gets an empty response"
		return nil
	}
	of := htmlmeta.Page{Base: e.origin, Path: x.Path, Header: header, Now: e.app.now()}
	meta := htmlmeta.Header(of)
	if res.Status == http.StatusOK && htmlmeta.IsHTML(header.Get("Content-Type")) {
		meta = htmlmeta.NewParser(htmlmeta.Options{}).Parse(res.Body, of)
	}
	x.Response.NoIndex, x.Response.Canonical = meta.NoIndex, clip(meta.Canonical)
	return nil
}

// unfetched is why the page is not fetched; "": it is.
func (e explainer) unfetched(x *Explanation) string {
	switch next := e.handler.limiter.Next(); {
	case e.handler.settings.crawl.off:
		return "crawl is off"
	case x.DisallowedBy != "":
		return fmt.Sprintf("'crawl disallow' has '%s'", x.DisallowedBy)
	case x.RobotsRule != "":
		return "robots.txt disallows it"
	case e.probed != nil && e.probed.robots.closed:
		return "robots.txt returns an error, so nothing is fetched"
	case x.VisitedAt != nil && x.FetchedAt == nil && !x.Named && x.LinkedAt == nil:
		return "what only visitors know may be private"
	case next.After(e.app.now().Add(explainWait)):
		return "upstreams are left alone until " + next.UTC().Format(time.RFC3339)
	}
	return ""
}

// clip bounds a text that others wrote.
func clip(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxClipped)], "\uFFFD")
}
