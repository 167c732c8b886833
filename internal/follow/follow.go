// Package follow fetches a page and follows its redirects, refreshes and canonicals, as `caddy sitemap explain` shows.
package follow

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/htmlmeta"
	"github.com/seed3295b519/caddy-sitemap/internal/terminal"
)

// Response is what an anonymous visitor gets for a URL.
type Response struct {
	URL         string `json:"url"`
	Status      int    `json:"status,omitempty"`
	ContentType string `json:"content_type,omitempty"`
	NoIndex     bool   `json:"noindex,omitempty"`
	Leads       string `json:"leads,omitempty"` // redirect, refresh or canonical; "": nowhere
	To          string `json:"to,omitempty"`
	Listed      bool   `json:"listed,omitempty"`
	Error       string `json:"error,omitempty"` // why there is no response
}

// Site is a site whose pages are fetched. All fields are needed.
type Site struct {
	Origin  string // scheme, host and port
	Fetcher crawl.Fetcher
	Refuse  func(path string) string // returns why a path is not fetched; "": it is
	Listed  func(path string) bool   // reports whether the sitemap lists a path
}

const maxChain = 10 // URLs that lead from one to the next

// From fetches the page at a path and, one after the other, up to nine that it leads to on the site.
func (s *Site) From(ctx context.Context, path string) (all []Response) {
	for len(all) < maxChain {
		r := s.get(ctx, path)
		all = append(all, r)
		to, onSite := htmlmeta.PathOn(s.Origin, r.To)
		isKnown := func(r Response) bool { return r.URL == s.Origin+to }
		if !onSite || slices.ContainsFunc(all, isKnown) {
			return all
		}
		path = to
	}
	return all
}

func (s *Site) get(ctx context.Context, path string) Response {
	r := Response{URL: s.Origin + path, Listed: s.Listed(path)}
	if why := s.Refuse(path); why != "" {
		r.Error = "not fetched: " + why
		return r
	}
	res, err := s.Fetcher.Fetch(ctx, crawl.Request{Path: path, Limit: htmlmeta.MaxBody})
	if err != nil {
		r.Error = terminal.Clip(err.Error())
		return r
	}
	if res.Unhandled {
		r.Error = "no route handles the request: a visitor gets an empty response"
		return r
	}
	r.Status = res.Status
	r.ContentType = terminal.Clip(res.Header.Get("Content-Type"))
	pg := htmlmeta.Page{Base: s.Origin, Path: path, Header: res.Header}
	meta := htmlmeta.Header(pg)
	if res.Status == http.StatusOK && htmlmeta.IsHTML(r.ContentType) {
		meta = htmlmeta.NewParser(htmlmeta.Options{}).Parse(res.Body, pg)
	}
	r.NoIndex = meta.NoIndex
	r.Leads, r.To = leads(r.URL, res, &meta)
	return r
}

// leads returns how a response leads on, and where; "": nowhere.
func leads(from string, res *crawl.Response, meta *htmlmeta.Meta) (how, to string) {
	base, _ := url.Parse(from)
	location, err := base.Parse(res.Header.Get("Location"))
	switch {
	case res.Status/100 == 3 && err == nil:
		return "redirect", terminal.Clip(location.String())
	case meta.Refresh != "":
		return "refresh", meta.Refresh
	case meta.Canonical != "":
		return "canonical", meta.Canonical
	}
	return "", ""
}
