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
	for ok := true; ok && len(all) < maxChain; {
		next := s.get(ctx, path)
		all = append(all, next)
		if path, ok = htmlmeta.PathOn(s.Origin, next.To); ok {
			ok = !slices.ContainsFunc(all, func(r Response) bool { return r.URL == s.Origin+path })
		}
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
	switch {
	case err != nil:
		r.Error = terminal.Clip(err.Error())
		return r
	case res.Unhandled:
		r.Error = "no route handles the request: a visitor gets an empty response"
		return r
	}
	r.Status, r.ContentType = res.Status, terminal.Clip(res.Header.Get("Content-Type"))
	pg := htmlmeta.Page{Base: s.Origin, Path: path, Header: res.Header}
	meta := htmlmeta.Header(pg)
	if res.Status == http.StatusOK && htmlmeta.IsHTML(r.ContentType) {
		meta = htmlmeta.NewParser(htmlmeta.Options{}).Parse(res.Body, pg)
	}
	r.NoIndex = meta.NoIndex
	base, _ := url.Parse(r.URL)
	if to, err := base.Parse(res.Header.Get("Location")); err == nil && res.Status/100 == 3 {
		r.Leads, r.To = "redirect", terminal.Clip(to.String())
	} else if meta.Refresh != "" {
		r.Leads, r.To = "refresh", meta.Refresh
	} else if meta.Canonical != "" {
		r.Leads, r.To = "canonical", meta.Canonical
	}
	return r
}
