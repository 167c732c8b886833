package sitemap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/htmlmeta"
	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
	"github.com/seed3295b519/caddy-sitemap/internal/merge"
	"github.com/seed3295b519/caddy-sitemap/internal/option"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
	"github.com/seed3295b519/caddy-sitemap/internal/sitemapxml"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
	"github.com/seed3295b519/caddy-sitemap/internal/uri"
)

// explanation is why a URL is listed in a site's sitemap, or why it is not.
type explanation struct {
	URL     string `json:"url"` // in the form in which it is or would be listed
	Sitemap string `json:"sitemap"`
	entry

	Reason  string `json:"reason,omitempty"` // in most cases the name of its index status
	Meaning string `json:"meaning,omitempty"`
	Remedy  string `json:"remedy,omitempty"`
	Rule    string `json:"rule,omitempty"`  // the setting or line of robots.txt that decides
	Other   string `json:"other,omitempty"` // its canonical, or what it duplicates or leads to

	// What is known of it.
	NamedBy []string  `json:"named_by,omitempty"`     // sources, where it is not listed
	Linked  time.Time `json:"linked_at,omitzero"`     // when a page that links to it was last fetched
	Visited time.Time `json:"visited_at,omitzero"`    // when a visitor last had it
	Fetched time.Time `json:"fetched_at,omitzero"`    // last,
	Status  int       `json:"status,omitempty"`       // with this status,
	Failing time.Time `json:"failing_since,omitzero"` // since when that fails,
	Due     time.Time `json:"due_at,omitzero"`        // and when it is fetched again

	// Now is what an anonymous visitor gets, and then where that leads.
	Now []liveResponse `json:"now,omitempty"`
}

// entry is what the published sitemap says of a page.
type entry struct {
	Listed     bool   `json:"listed"`
	Document   string `json:"document,omitempty"`
	LastMod    string `json:"lastmod,omitempty"`
	ChangeFreq string `json:"changefreq,omitempty"`
	Priority   string `json:"priority,omitempty"`
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
	explainWait = 3 * time.Second // for a source, and for upstreams that are left alone
)

// explain tells why a URL is listed or is not. It fetches the page, and changes nothing. Of
// several sitemaps that cover the URL, the one counts that lists it, else the narrowest.
func explain(r *http.Request, a *App, rawURL string) (any, error) {
	ctx := r.Context()
	if err := a.await(ctx, a.started); err != nil {
		return nil, err
	}
	sites, path, err := a.sitesAt(rawURL)
	if err != nil {
		return nil, err
	}
	var of *site
	longest := -1 // scope of a site that is not blocked
	for _, s := range sites {
		s = cmp.Or(s.main.Load(), s)
		length, probed := 0, s.probed.Load()
		if published, _ := s.entry(path); published.Listed {
			length = math.MaxInt
		} else if strings.HasPrefix(path, s.scope) && (probed == nil || probed.blocked == "") {
			length = len(s.scope)
		}
		if length > longest {
			of, longest = s, length
		}
	}
	if of == nil {
		return nil, a.noSite()
	}
	x, err := of.explain(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("reading what is known of the page: %w", err)
	}
	x.Now = of.follow(ctx, x)
	if last := x.Now[len(x.Now)-1]; x.Reason == reasonUnnamed && last.Listed {
		x.because("leads to a listed page", "What it leads to is listed in its place.", "")
		x.Other = last.URL
	} else if x.Reason == reasonUnnamed && last.Status >= http.StatusBadRequest {
		x.Remedy = "Serve it first."
	}
	return x, ctx.Err()
}

func (x *explanation) because(reason, meaning, remedy string) {
	x.Reason, x.Meaning, x.Remedy = reason, meaning, remedy
}

func (x *explanation) is(status indexing.Status) {
	x.because(status.String(), status.Explanation(), status.Remedy())
}

const reasonUnnamed = "no source names it"

// explain explains a path without fetching it.
func (s *site) explain(ctx context.Context, path string) (x *explanation, err error) {
	x = &explanation{URL: s.origin + path, Sitemap: s.sitemapURL()}
	var found indexing.Explanation
	if s.state.generation.Load() != nil && !s.handler.settings.crawl.Off {
		if !s.app.compute.Take(ctx) {
			return nil, ctx.Err()
		}
		rules := (&refreshRun{site: s, begun: s.app.now()}).rules(crawl.Result{Gathered: true}, false)
		err = store.ErrSuperseded
		for i := 0; i < 3 && errors.Is(err, store.ErrSuperseded); i++ { // another generation may be published meanwhile
			found, err = indexing.Explain(ctx, s.state.generation.Load(), rules, path)
		}
		s.app.compute.Release()
	}
	if err == nil {
		x.entry, err = s.entry(path)
	}
	if err != nil {
		return nil, err
	}
	if form := s.listedForm(path); form != path && !x.Listed && found.Record == nil {
		if y, err := s.explain(ctx, form); err != nil || y.Reason != reasonUnnamed {
			return y, err
		}
	}
	at := func(seconds int64) (t time.Time) {
		if seconds != 0 {
			t = time.Unix(seconds, 0).UTC()
		}
		return t
	}
	x.Visited = at(s.state.visited.At(path))
	if r := found.Record; r != nil {
		x.Linked, x.Fetched, x.Due, x.Failing, x.Status = at(r.Linked), at(r.Fetched), at(r.Due), at(r.Failing), int(r.Status)
		x.is(found.Status)
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

// listedForm is the form in which what a path leads to is listed: without a query that does not count, as the
// folder of its index file, or as a clean URL.
func (s *site) listedForm(path string) string {
	cleaner := uri.NewCleaner(nil)
	if d := s.handler.discovery; d != nil {
		cleaner = d.filter.Cleaner
	}
	if clean, ok := cleaner.Clean(path); ok && clean != path {
		return clean
	}
	if folder, isIndex := strings.CutSuffix(path, "/index.html"); isIndex {
		return folder + "/"
	}
	return strings.TrimSuffix(path, ".html")
}

// addReason says why a page is not listed. What holds for the whole site comes first.
func (s *site) addReason(x *explanation, path string, hasStatus bool) {
	probed, last, set := cmp.Or(s.probed.Load(), new(probeResult)), s.lastReport(), &s.handler.settings
	excluded, word := s.filter(&page.Page{Path: path}), ""
	if x.NamedBy == nil {
		word = set.crawl.disallows(path)
	}
	x.Rule = cmp.Or(word, report.Clip(probed.robots.rules.Line(path)))
	switch {
	case probed.blocked != "":
		x.because(probed.blocked, fmt.Sprintf("The sitemap's path, or the front page, returns status %d.", probed.status),
			"Change the routes if it should be listed.")
	case s.isDocument(path):
		x.because(excluded, "It is a document of the sitemap itself.", "")
	case excluded != "":
		x.is(indexing.Excluded)
		x.Reason = excluded
		x.Rule = set.exclude.which(path)
	case hasStatus:
	case last.Result == "" || last.Result == report.Failed:
		x.because("no refresh has succeeded yet, or the last one failed", last.Reason, "Wait, or see the log.")
	case x.Reason != "" || x.NamedBy != nil, word == "" && !x.Visited.IsZero() && cmp.Or(s.handler.discovery, new(discovery)).unlinked.Match(path):
		x.because("waits for the next refresh", "It is not published yet.", "Wait.")
	case word != "":
		x.is(indexing.Disallowed)
	case !x.Visited.IsZero():
		x.is(indexing.NoLinks)
	default:
		x.because(reasonUnnamed, "No source names it, and no listed page links to it.",
			"Name it in 'urls', beside 'files' and other sources, or a kind of file in 'include' of 'files'; with 'links', a link to it is enough.")
		for _, source := range s.handler.sources {
			if f, ok := source.(*SourceFiles); ok && x.Rule == "" {
				if x.Rule = compilePatterns(new(option.Checker), "", f.Exclude).which(path); x.Rule != "" {
					x.is(indexing.Excluded)
				}
			}
		}
	}
}

// entry is what the published sitemap says of a path.
func (s *site) entry(path string) (e entry, err error) {
	snapshot := s.state.Index.Load()
	if snapshot == nil {
		return e, nil
	}
	d := snapshot.Holding(path)
	xml, err := d.XML()
	if err != nil {
		return e, err
	}
	defer xml.Close()
	in, found, err := sitemapxml.Find(xml, s.origin+path)
	if found {
		e = entry{true, s.origin + s.docPath(d.Suffix, ".xml"), in.LastMod, in.ChangeFreq, in.Priority}
	}
	return e, err
}

// namers are the names of the sources that name a path. Each is asked again, but for those
// whose visits are for refreshes to gather.
func (s *site) namers(ctx context.Context, path string) (names []string) {
	for i, input := range s.inputs() {
		if i < len(s.handler.sources) {
			if _, ok := s.handler.sources[i].(discoverer); ok {
				continue
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

// inputs are the site's sources, apart from a refresh; nil: they cannot be asked.
func (s *site) inputs() []merge.Input {
	probed := s.probed.Load()
	if probed == nil {
		return nil
	}
	r, err := newRefresh(s, *probed, s.app.now())
	if err != nil {
		return nil
	}
	return r.inputs()
}

// follow fetches the page, and those to which it redirects, refreshes or gives way.
func (s *site) follow(ctx context.Context, x *explanation) (all []liveResponse) {
	policy := &s.handler.settings.crawl
	probed, later := cmp.Or(s.probed.Load(), new(probeResult)), s.handler.limiter.Next()
	isNamed := x.Listed || x.NamedBy != nil
	isPrivate := !isNamed && !x.Visited.IsZero() && x.Fetched.IsZero() && x.Linked.IsZero()
	for path, ok := strings.TrimPrefix(x.URL, s.origin), true; ok && len(all) < maxChain; {
		live := liveResponse{URL: s.origin + path}
		switch {
		case policy.Off:
			live.Error = "not fetched: crawl is off"
		case s.isDocument(path):
			live.Error = "not fetched: it is a document of the sitemap"
		case isPrivate:
			live.Error = "not fetched: what only visitors know may be private"
		case later.After(s.app.now().Add(explainWait)):
			live.Error = "not fetched: upstreams are left alone until " + later.UTC().Format(time.RFC3339)
		case !isNamed && policy.disallows(path) != "":
			live.Error = "not fetched: 'crawl disallow' has '" + policy.disallows(path) + "'"
		case probed.robots.closed, !probed.robots.rules.Allows(path):
			live.Error = "not fetched: robots.txt disallows it, or returns an error"
		default:
			s.fetchLive(ctx, path, &live)
		}
		published, _ := s.entry(path)
		live.Listed = published.Listed
		all = append(all, live)
		if path, ok = htmlmeta.PathOn(s.origin, live.To); ok {
			ok = !slices.ContainsFunc(all, func(r liveResponse) bool { return r.URL == s.origin+path })
		}
	}
	return all
}

// fetchLive fetches a path as an anonymous visitor.
func (s *site) fetchLive(ctx context.Context, path string, live *liveResponse) {
	res, err := s.fetcher.fetch(ctx, s.internalPath(path), htmlmeta.MaxBody, nil)
	if err == nil && res.Unhandled {
		err = errors.New("no route handles the request: a visitor gets an empty response")
	}
	if err != nil {
		live.Error = report.Clip(err.Error())
		return
	}
	live.Status, live.ContentType = res.Status, report.Clip(res.Header.Get("Content-Type"))
	if res.Status != http.StatusOK || !htmlmeta.IsHTML(live.ContentType) {
		res.Body = nil // of which the header says all there is to say
	}
	meta := htmlmeta.NewParser(htmlmeta.Options{}).Parse(res.Body, htmlmeta.Page{Base: s.origin, Path: path, Header: res.Header, Now: s.app.now()})
	live.NoIndex = meta.NoIndex
	base, _ := url.Parse(live.URL)
	if to, err := base.Parse(res.Header.Get("Location")); err == nil && res.Status/100 == 3 {
		live.Leads, live.To = "redirect", report.Clip(to.String())
	} else if meta.Refresh != "" {
		live.Leads, live.To = "refresh", report.Clip(meta.Refresh)
	} else if meta.Canonical != "" {
		live.Leads, live.To = "canonical", report.Clip(meta.Canonical)
	}
}
