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

const (
	maxChain    = 10              // URLs that lead from one to the next
	maxClipped  = 2048            // bytes of a text that others wrote
	explainWait = 3 * time.Second // for upstreams that are left alone, and for sources
)

// explain tells why a URL is listed or is not. It fetches the page, and changes nothing. Of
// several sitemaps that cover the URL, the one counts that lists it, else the narrowest.
func explain(ctx context.Context, a *App, rawURL string) (any, error) {
	if err := a.await(ctx, a.started); err != nil {
		return nil, err
	}
	sites, path, err := a.sitesAt(rawURL)
	if err != nil {
		return nil, err
	}
	var best *explanation
	var of *site
	longest := 0 // scope of a site that is not blocked
	for _, s := range sites {
		s = cmp.Or(s.main.Load(), s)
		length := 0
		if probed := s.probed.Load(); strings.HasPrefix(path, s.scope) && (probed == nil || probed.blocked() == "") {
			length = len(s.scope)
		}
		x, err := s.explain(ctx, path)
		if err != nil {
			return nil, err
		}
		if best == nil || x.Listed || !best.Listed && length > longest {
			best, of, longest = x, s, length
		}
	}
	if best == nil {
		return nil, a.noSite()
	}
	best.Now = of.follow(ctx, best)
	if last := best.Now[len(best.Now)-1]; best.Reason == reasonUnnamed && last.Listed {
		best.Reason, best.Meaning, best.Remedy, best.Other = "leads to a listed page", "What it leads to is listed in its place.", "", last.URL
	}
	return best, ctx.Err()
}

const reasonUnnamed = "no source names it"

// explain explains a path without fetching it.
func (s *site) explain(ctx context.Context, path string) (*explanation, error) {
	x := &explanation{URL: s.origin + path, Sitemap: s.sitemapURL()}
	found, err := s.record(ctx, path)
	if err == nil {
		err = s.addEntry(x, path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading what is known of the page: %w", err)
	}
	if d := s.handler.discovery; d != nil && !x.Listed && found.Record == nil {
		if page, ok := d.cleaner.Clean(path); ok && page != path { // a query that does not count
			return s.explain(ctx, page)
		}
	}
	at := func(seconds int64) time.Time {
		if seconds == 0 {
			return time.Time{}
		}
		return time.Unix(seconds, 0).UTC()
	}
	x.Visited = at(s.state.visited.At(path))
	if r := found.Record; r != nil {
		x.Linked, x.Fetched, x.Due, x.Failing, x.Status = at(r.Linked), at(r.Fetched), at(r.Due), at(r.Failing), int(r.Status)
		x.Reason, x.Meaning, x.Remedy = found.Status.String(), found.Status.Explanation(), found.Status.Remedy()
	}
	if x.Other = found.Other; strings.HasPrefix(x.Other, "/") {
		x.Other = s.origin + x.Other
	}
	if !x.Listed {
		x.NamedBy = s.namers(ctx, path)
		s.addReason(x, path, found.Record != nil && found.Status != indexing.Indexable)
	}
	return x, nil
}

// addReason says why a page is not listed. What holds for the whole site comes first.
func (s *site) addReason(x *explanation, path string, hasStatus bool) {
	because := func(reason, meaning, remedy string) { x.Reason, x.Meaning, x.Remedy = reason, meaning, remedy }
	is := func(status indexing.Status) { because(status.String(), status.Explanation(), status.Remedy()) }
	probed, last, set := cmp.Or(s.probed.Load(), &probeResult{reached: true}), s.lastReport(), &s.handler.settings
	excluded, word := s.filter(&page.Page{Path: path}), ""
	if x.NamedBy == nil {
		word = set.crawl.disallow.Match(path)
	}
	x.Rule = cmp.Or(word, clip(probed.robots.rules.Line(path)))
	switch {
	case probed.blocked() != "":
		because(probed.blocked(), fmt.Sprintf("The sitemap's path, or the front page, returns status %d.", cmp.Or(probed.refused, probed.absent, probed.status)),
			"Change the routes if it should be listed.")
	case s.isDocument(path):
		because(excluded, "It is a document of the sitemap itself.", "")
	case excluded != "":
		because(excluded, indexing.Excluded.Explanation(), indexing.Excluded.Remedy())
		for i := range set.exclude {
			if set.exclude[i : i+1].Match(path) {
				x.Rule = set.exclude[i]
			}
		}
	case hasStatus:
	case last.Result == "" || last.Result == refreshFailed:
		because("no refresh has succeeded yet, or the last one failed", last.Reason, "Wait, or see the log.")
	case x.Reason != "" || x.NamedBy != nil:
		because("waits for the next refresh", "It is not published yet.", "Wait.")
	case word != "":
		is(indexing.Disallowed)
	case !x.Visited.IsZero():
		is(indexing.NoLinks)
	default:
		because(reasonUnnamed, "No source names it, and no listed page links to it.",
			"Name it in 'urls', beside 'files' and other sources; with 'links', a link to it is enough.")
	}
}

// record is what a selection from the published records says of a page.
func (s *site) record(ctx context.Context, path string) (x indexing.Explanation, err error) {
	if s.state.generation.Load() == nil || s.handler.settings.crawl.Off {
		return x, nil
	}
	if !s.app.compute.Take(ctx) {
		return x, ctx.Err()
	}
	defer s.app.compute.Release()
	rules := (&refreshRun{site: s, begun: s.app.now()}).rules(crawl.Result{Gathered: true}, false)
	for range 3 { // another generation may be published meanwhile
		if x, err = indexing.Explain(ctx, s.state.generation.Load(), rules, path); !errors.Is(err, store.ErrSuperseded) {
			break
		}
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
	for i, input := range r.inputs(nil) {
		if i < len(s.handler.sources) {
			if _, ok := s.handler.sources[i].(discoverer); ok {
				continue // whose visits are for refreshes to gather
			}
		}
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

// follow fetches the page, and those to which it redirects, refreshes or gives way.
func (s *site) follow(ctx context.Context, x *explanation) (all []liveResponse) {
	isNamed := x.Listed || x.NamedBy != nil
	isPrivate := !isNamed && !x.Visited.IsZero() && x.Fetched.IsZero() && x.Linked.IsZero()
	for path, ok := strings.TrimPrefix(x.URL, s.origin), true; ok && len(all) < maxChain; {
		live, entry, why := liveResponse{URL: s.origin + path}, explanation{}, ""
		crawl, probed := &s.handler.settings.crawl, cmp.Or(s.probed.Load(), new(probeResult))
		switch {
		case crawl.Off:
			why = "crawl is off"
		case s.isDocument(path):
			why = "it is a document of the sitemap"
		case isPrivate:
			why = "what only visitors know may be private"
		case !isNamed && crawl.disallow.Match(path) != "":
			why = "'crawl disallow' has '" + crawl.disallow.Match(path) + "'"
		case probed.robots.closed, !probed.robots.rules.Allows(path):
			why = "robots.txt disallows it, or returns an error"
		case s.handler.limiter.Next().After(s.app.now().Add(explainWait)):
			why = "upstreams are left alone until " + s.handler.limiter.Next().UTC().Format(time.RFC3339)
		}
		if live.Error = "not fetched: " + why; why == "" {
			live.Error = s.fetchLive(ctx, path, &live)
		}
		live.Listed = s.addEntry(&entry, path) == nil && entry.Listed
		all = append(all, live)
		if path, ok = htmlmeta.PathOn(s.origin, live.To); ok {
			ok = !slices.ContainsFunc(all, func(r liveResponse) bool { return r.URL == s.origin+path })
		}
	}
	return all
}

// fetchLive fetches a path as an anonymous visitor. What it returns is why there is no
// response; "": there is one.
func (s *site) fetchLive(ctx context.Context, path string, live *liveResponse) string {
	res, err := (&Refresh{site: s}).fetch(ctx, path, htmlmeta.MaxBody)
	switch {
	case err != nil:
		return clip(err.Error())
	case res.unhandled:
		return "no route handles the request: a visitor gets an empty response"
	}
	live.Status, live.ContentType = res.Status, clip(res.Header.Get("Content-Type"))
	if res.Status != http.StatusOK || !htmlmeta.IsHTML(live.ContentType) {
		res.Body = nil // of which the header says all there is to say
	}
	meta := htmlmeta.NewParser(htmlmeta.Options{}).Parse(res.Body, htmlmeta.Page{Base: s.origin, Path: path, Header: res.Header, Now: s.app.now()})
	live.NoIndex = meta.NoIndex
	base, _ := url.Parse(live.URL)
	if to, err := base.Parse(res.Header.Get("Location")); err == nil && res.Status/100 == 3 {
		live.Leads, live.To = "redirect", clip(to.String())
	} else if meta.Refresh != "" {
		live.Leads, live.To = "refresh", clip(meta.Refresh)
	} else if meta.Canonical != "" {
		live.Leads, live.To = "canonical", clip(meta.Canonical)
	}
	return ""
}

// clip bounds a text that others wrote.
func clip(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxClipped)], "\uFFFD")
}
