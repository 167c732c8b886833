package sitemap

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/terminal"
)

// liveResponse is what an anonymous visitor gets for a URL.
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

// follow fetches the page, and those to which it leads, where a refresh would.
func (s *site) follow(ctx context.Context, x *explanation) []liveResponse {
	c := chain{
		origin:   s.origin,
		fetcher:  &s.fetcher,
		isListed: s.isListed,
		refuse:   func(path string) string { return s.unfetched(x, path) },
	}
	return c.from(ctx, strings.TrimPrefix(x.URL, s.origin))
}

// unfetched returns why a refresh does not fetch a path to which the page of an explanation leads; "": it does.
func (s *site) unfetched(x *explanation, path string) string {
	policy := &s.handler.settings.crawl
	if policy.Off {
		return "crawl is off"
	}
	if excluded := s.filter(&page.Page{Path: path}); excluded != "" {
		return excluded
	}
	if s.servesAt(path) {
		return reasonDocument
	}
	isNamed := x.Listed || x.NamedBy != nil
	if !isNamed {
		why := x.unfetchedUnnamed(policy, path)
		if why != "" {
			return why
		}
	}
	robots := &cmp.Or(s.probed.Load(), new(probeResult)).robots
	switch {
	case robots.closed && robots.status == 0:
		return "robots.txt does not respond, so no page is fetched"
	case robots.closed:
		return "robots.txt returns an error, so no page is fetched"
	case !robots.rules.Allows(path):
		return "robots.txt disallows it"
	}
	return ""
}

// unfetchedUnnamed is unfetched for a page that no source names, by the page's explanation and what 'crawl disallow' says.
func (x *explanation) unfetchedUnnamed(policy *Crawl, path string) string {
	isOnlyVisited := !x.Visited.IsZero() && x.Fetched.IsZero() && x.Linked.IsZero()
	if isOnlyVisited {
		return "what only visitors know may be private"
	}
	word := policy.disallows(path)
	switch {
	case word == "":
		return ""
	case policy.Disallow == nil:
		// Without the option, the default rule looks for verbs.
		return "it looks like an action, '" + word + "'"
	}
	return "'crawl disallow' has '" + word + "'"
}

// chain fetches a page and what it leads to, by redirects, refreshes and canonicals. All fields are needed.
type chain struct {
	origin   string // of the site
	fetcher  crawl.Fetcher
	refuse   func(path string) string // returns why a path is not fetched; "": it is
	isListed func(path string) bool   // reports whether the sitemap lists a path
}

const maxChain = 10 // URLs that lead from one to the next

// from fetches the page at a path and, one after the other, up to nine that it leads to on the site.
func (c *chain) from(ctx context.Context, path string) (all []liveResponse) {
	for len(all) < maxChain {
		r := c.get(ctx, path)
		all = append(all, r)
		to, onSite := html.PathOn(c.origin, r.To)
		isKnown := func(r liveResponse) bool { return r.URL == c.origin+to }
		if !onSite || slices.ContainsFunc(all, isKnown) {
			return all
		}
		path = to
	}
	return all
}

func (c *chain) get(ctx context.Context, path string) liveResponse {
	r := liveResponse{URL: c.origin + path, Listed: c.isListed(path)}
	if why := c.refuse(path); why != "" {
		r.Error = "not fetched: " + why
		return r
	}
	res, err := c.fetcher.Fetch(ctx, crawl.Request{Path: path, Limit: html.MaxBody})
	if err != nil {
		r.Error = terminal.Clip(err.Error())
		return r
	}
	if res.Unhandled {
		r.Error = "no route handles the request: a visitor gets an empty response, unless a matcher keeps out only " +
			"the address 192.0.2.1 of this module"
		return r
	}
	if res.Aborted {
		r.Error = "a rule aborts the connection: an anonymous visitor gets no response"
		return r
	}
	r.Status = res.Status
	r.ContentType = terminal.Clip(res.Header.Get("Content-Type"))
	pg := html.Page{Base: c.origin, Path: path, Header: res.Header}
	meta := html.Header(pg)
	if res.Status == http.StatusOK && html.IsHTML(r.ContentType) {
		meta = html.Parse(res.Body, pg)
	}
	r.NoIndex = meta.NoIndex
	r.Leads, r.To = leads(r.URL, res, &meta)
	return r
}

// leads returns how a response leads on, and where; "": nowhere.
func leads(from string, res *crawl.Response, meta *html.Meta) (how, to string) {
	location := resolveLocation(from, res.Header.Get("Location"))
	switch {
	case res.Status/100 == 3 && location != "":
		return "redirect", terminal.Clip(location)
	case meta.Refresh != "":
		return "refresh", meta.Refresh
	case meta.Canonical != "":
		return "canonical", meta.Canonical
	}
	return "", ""
}
