package sitemap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/htmlmeta"
	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
	"github.com/seed3295b519/caddy-sitemap/internal/merge"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/sitemapxml"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// explanation is why a URL is listed in a site's sitemap, or why it is not.
type explanation struct {
	URL     string `json:"url"` // in the form in which it is or would be listed
	Sitemap string `json:"sitemap"`

	// Listed says that the published sitemap has it, in Document, with these values.
	Listed     bool   `json:"listed"`
	Document   string `json:"document,omitempty"`
	LastMod    string `json:"lastmod,omitempty"`
	ChangeFreq string `json:"changefreq,omitempty"`
	Priority   string `json:"priority,omitempty"`

	// Reason is in most cases the name of its index status, Rule the setting or line of
	// robots.txt that decides, and Other the URL that matters instead: its canonical, or what
	// it duplicates or leads to.
	Reason  string `json:"reason,omitempty"`
	Meaning string `json:"meaning,omitempty"`
	Remedy  string `json:"remedy,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Other   string `json:"other,omitempty"`

	// What is known of it: the sources that name it, where it is not listed; when a page that
	// links to it was last fetched, and a visitor last had it; when it was last fetched, with
	// this status, since when that fails, and when it is fetched again.
	NamedBy []string  `json:"named_by,omitempty"`
	Linked  time.Time `json:"linked_at,omitzero"`
	Visited time.Time `json:"visited_at,omitzero"`
	Fetched time.Time `json:"fetched_at,omitzero"`
	Status  int       `json:"status,omitempty"`
	Failing time.Time `json:"failing_since,omitzero"`
	Due     time.Time `json:"due_at,omitzero"`

	// Now is what an anonymous visitor gets, and then where that leads.
	Now []liveResponse `json:"now,omitempty"`
}

// liveResponse is the response to an anonymous visitor.
type liveResponse struct {
	URL         string `json:"url"`
	Status      int    `json:"status,omitempty"`
	ContentType string `json:"content_type,omitempty"`
	NoIndex     bool   `json:"noindex,omitempty"`
	Leads       string `json:"leads,omitempty"` // redirect, refresh or canonical; "": nowhere
	To          string `json:"to,omitempty"`
	Listed      bool   `json:"listed,omitempty"`
	Error       string `json:"error,omitempty"` // why there is no response
}

// Why a page is not listed, besides index statuses and the filter of candidates.
const (
	reasonUnnamed     = "no source names it"
	reasonOtherPath   = "listed under another path"
	reasonNextRefresh = "waits for the next refresh"
	reasonLastFailed  = "the last refresh failed"
)

const (
	maxExplained = 10              // sitemaps that cover the same URL, and URLs that lead from one to the next
	maxClipped   = 2048            // bytes of a text that others wrote
	explainWait  = 3 * time.Second // for upstreams that are left alone, and for sources
)

// explain tells why a URL is listed or is not. It fetches the page, and changes nothing. Of
// several sitemaps that cover the URL, the one counts that lists it, else the narrowest.
func explain(ctx context.Context, a *App, rawURL string) (any, error) {
	if err := a.awaitStart(ctx); err != nil {
		return nil, err
	}
	sites, path, err := a.sitesAt(rawURL)
	if err != nil {
		return nil, err
	}
	for i, s := range sites {
		sites[i] = cmp.Or(s.main.Load(), s)
	}
	rank := func(s *site) int {
		switch probed := s.probed.Load(); {
		case !strings.HasPrefix(path, s.scope):
			return 0
		case probed != nil && probed.blocked() != "":
			return 1
		}
		return 1 + len(s.scope)
	}
	slices.SortStableFunc(sites, func(x, y *site) int { return rank(y) - rank(x) })
	var best *explanation
	var of *site
	for _, s := range sites[:min(len(sites), maxExplained)] {
		x, err := s.explain(ctx, path)
		if err != nil {
			return nil, err
		}
		if best == nil || x.Listed && !best.Listed {
			best, of = x, s
		}
	}
	if best == nil {
		return nil, a.noSite()
	}
	best.Now = of.follow(ctx, best)
	return best, ctx.Err()
}

// explain explains a path without fetching it.
func (s *site) explain(ctx context.Context, path string) (*explanation, error) {
	x := &explanation{URL: s.origin + path, Sitemap: s.sitemapURL()}
	found, err := s.record(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("reading the records: %w", err)
	}
	if err := s.addEntry(x, path); err != nil {
		return nil, fmt.Errorf("reading the sitemap: %w", err)
	}
	if d := s.handler.discovery; d != nil && !x.Listed && found.Record == nil {
		if page, ok := d.cleaner.Clean(path); ok && page != path { // a query that does not count
			return s.explain(ctx, page)
		}
	}
	if at := s.state.visited.at(path); at != 0 {
		x.Visited = time.Unix(at, 0).UTC()
	}
	if r := found.Record; r != nil {
		for at, seconds := range map[*time.Time]int64{&x.Linked: r.Linked, &x.Fetched: r.Fetched, &x.Due: r.Due, &x.Failing: r.Failing} {
			if seconds != 0 {
				*at = time.Unix(seconds, 0).UTC()
			}
		}
		x.Status, x.Reason, x.Meaning, x.Remedy = int(r.Status), found.Status.String(), found.Status.Explanation(), found.Status.Remedy()
	}
	if x.Other = found.Other; strings.HasPrefix(x.Other, "/") {
		x.Other = s.origin + x.Other
	}
	switch {
	case x.Listed && found.Record == nil:
		x.Meaning = "A source names it. It is not fetched, because crawl is off."
	case !x.Listed:
		x.NamedBy = s.namers(ctx, path)
		s.addReason(x, path, found.Record != nil && found.Status != indexing.Indexable)
	}
	return x, nil
}

// addReason says why a page is not listed. What holds for the whole site comes first.
func (s *site) addReason(x *explanation, path string, hasStatus bool) {
	because := func(reason, meaning, remedy string) { x.Reason, x.Meaning, x.Remedy = reason, meaning, remedy }
	probed, last := cmp.Or(s.probed.Load(), &probeResult{reached: true}), s.lastReport()
	excluded := s.filter(&page.Page{Path: path})
	word := s.handler.settings.crawl.disallow.Match(path)
	if x.NamedBy != nil {
		word = ""
	}
	x.Rule = cmp.Or(word, clip(probed.robots.rules.Line(path)))
	switch {
	case probed.blocked() != "":
		because(probed.blocked(), fmt.Sprintf("The sitemap's path, or the front page, returns status %d.", cmp.Or(probed.refused, probed.absent, probed.status)),
			"Change the routes if it should be listed.")
	case excluded != "":
		because(excluded, indexing.Excluded.Explanation(), indexing.Excluded.Remedy())
		if s.isDocument(path) {
			x.Meaning, x.Remedy = "It is a document of the sitemap itself.", ""
		}
		for i, pattern := range s.handler.settings.exclude {
			if s.handler.settings.exclude[i : i+1].Match(path) {
				x.Rule = pattern
			}
		}
	case hasStatus:
	case last.Result == "":
		because("no refresh has ended yet", "The sitemap is being built for the first time.", "Wait.")
	case last.Result == refreshFailed:
		because(reasonLastFailed, last.Reason, "See the log.")
	case x.Reason != "" || x.NamedBy != nil:
		because(reasonNextRefresh, "It is not published yet.", "Wait.")
	case word != "":
		because(indexing.Disallowed.String(), indexing.Disallowed.Explanation(), indexing.Disallowed.Remedy())
	case !x.Visited.IsZero():
		because(indexing.NoLinks.String(), indexing.NoLinks.Explanation(), indexing.NoLinks.Remedy())
	default:
		because(reasonUnnamed, "No source names it, and no listed page links to it.",
			"Name it in 'urls', beside 'files' and other sources; with 'links', a link to it is enough.")
		for _, other := range similarPaths(path) {
			there := explanation{}
			if err := s.addEntry(&there, other); err == nil && there.Listed {
				x.Other = s.origin + other
				because(reasonOtherPath, "The same page is probably the one that is listed as "+x.Other+".", "")
				break
			}
		}
	}
}

// record is what a selection from the published records says of a page.
func (s *site) record(ctx context.Context, path string) (x indexing.Explanation, err error) {
	g := s.state.generation.Load()
	if g == nil || s.handler.settings.crawl.Off {
		return x, nil
	}
	if !s.app.compute.Take(ctx) {
		return x, ctx.Err()
	}
	defer s.app.compute.Release()
	rules := (&refreshRun{site: s, begun: s.app.now()}).rules(crawl.Result{Gathered: true}, false)
	if x, err = indexing.Explain(ctx, g, rules, path); errors.Is(err, store.ErrSuperseded) { // another one was published meanwhile
		x, err = indexing.Explain(ctx, s.state.generation.Load(), rules, path)
	}
	return x, err
}

// addEntry adds what the published sitemap says of a path.
func (s *site) addEntry(x *explanation, path string) error {
	snapshot := s.state.Index.Load()
	if snapshot == nil {
		return nil
	}
	d := snapshot.Holding(path)
	xml, err := d.XML()
	if err != nil {
		return err
	}
	defer xml.Close()
	entry, found, err := sitemapxml.Find(xml, s.origin+path)
	if found {
		x.Listed, x.Document = true, s.origin+s.docPath(d.Suffix, ".xml")
		x.LastMod, x.ChangeFreq, x.Priority = entry.LastMod, entry.ChangeFreq, entry.Priority
	}
	return err
}

// namers are the names of the sources that name a path. Each is asked again.
func (s *site) namers(ctx context.Context, path string) (names []string) {
	probed := s.probed.Load()
	if probed == nil {
		return nil
	}
	r := newRefresh(s, *probed, s.app.now())
	if r.openFS() != nil {
		return nil
	}
	for _, input := range r.inputs(nil) {
		stream := merge.Start(ctx, []merge.Input{input}, merge.Options{Patience: explainWait})
		p, ok, err := stream.Next(ctx)
		for ok && err == nil && p.Path < path {
			p, ok, err = stream.Next(ctx)
		}
		if ok && p.Path == path && !p.Visited {
			names = append(names, input.Name)
		}
		stream.Close()
	}
	return names
}

// similarPaths are paths under which servers often serve the same page.
func similarPaths(path string) []string {
	bare, _, _ := strings.Cut(path, "?")
	all := []string{bare, bare + "/", bare + ".html", strings.TrimSuffix(bare, ".html"), strings.TrimSuffix(bare, "/"), strings.TrimSuffix(bare, "index.html")}
	return slices.DeleteFunc(all, func(p string) bool { return p == "" || p == path })
}

// follow fetches the page, and those to which it redirects, refreshes or gives way.
func (s *site) follow(ctx context.Context, x *explanation) (all []liveResponse) {
	path := strings.TrimPrefix(x.URL, s.origin)
	private := !x.Visited.IsZero() && x.Fetched.IsZero() && x.Linked.IsZero() && x.NamedBy == nil
	for ok := true; ok && len(all) < maxExplained; {
		live := liveResponse{URL: s.origin + path}
		next := s.handler.limiter.Next()
		switch probed := cmp.Or(s.probed.Load(), new(probeResult)); {
		case s.handler.settings.crawl.Off:
			live.Error = "not fetched: crawl is off"
		case s.isDocument(path):
			live.Error = "not fetched: it is a document of the sitemap"
		case private:
			live.Error = "not fetched: what only visitors know may be private"
		case !x.Listed && x.NamedBy == nil && s.handler.settings.crawl.disallow.Match(path) != "":
			live.Error = "not fetched: 'crawl disallow' has '" + s.handler.settings.crawl.disallow.Match(path) + "'"
		case probed.robots.closed || !probed.robots.rules.Allows(path):
			live.Error = "not fetched: robots.txt disallows it, or returns an error"
		case next.After(s.app.now().Add(explainWait)):
			live.Error = "not fetched: upstreams are left alone until " + next.UTC().Format(time.RFC3339)
		default:
			s.fetchLive(ctx, path, &live)
		}
		if all != nil {
			entry := explanation{}
			live.Listed = s.addEntry(&entry, path) == nil && entry.Listed
		}
		all = append(all, live)
		if path, ok = htmlmeta.PathOn(s.origin, live.To); ok {
			ok = !slices.ContainsFunc(all, func(r liveResponse) bool { return r.URL == s.origin+path })
		}
	}
	return all
}

// fetchLive fetches a path as an anonymous visitor.
func (s *site) fetchLive(ctx context.Context, path string, live *liveResponse) {
	res, err := (&Refresh{site: s}).fetch(ctx, path, htmlmeta.MaxBody)
	switch {
	case err != nil:
		live.Error = clip(err.Error())
		return
	case res.unhandled:
		live.Error = "no route handles the request: a visitor gets an empty response"
		return
	}
	live.Status, live.ContentType = res.Status, clip(res.Header.Get("Content-Type"))
	of := htmlmeta.Page{Base: s.origin, Path: path, Header: res.Header, Now: s.app.now()}
	meta := htmlmeta.Header(of)
	if res.Status == http.StatusOK && htmlmeta.IsHTML(res.Header.Get("Content-Type")) {
		meta = htmlmeta.NewParser(htmlmeta.Options{}).Parse(res.Body, of)
	}
	live.NoIndex = meta.NoIndex
	switch location := res.Header.Get("Location"); {
	case location != "" && res.Status/100 == 3:
		live.Leads = "redirect"
		if base, err := url.Parse(live.URL); err == nil {
			if to, err := base.Parse(location); err == nil {
				live.To = clip(to.String())
			}
		}
	case meta.Refresh != "":
		live.Leads, live.To = "refresh", clip(meta.Refresh)
	case meta.Canonical != "":
		live.Leads, live.To = "canonical", clip(meta.Canonical)
	}
}

// clip bounds a text that others wrote.
func clip(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxClipped)], "\uFFFD")
}
