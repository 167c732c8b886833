package sitemap

import (
	"context"
	"errors"
	"fmt"

	"github.com/caddyserver/caddy/v2"
)

func init() {
	caddy.RegisterModule(SourceLinks{})
}

// SourceLinks contributes the pages that listed pages of the site link to, from the front
// page on. A proxied application needs no other source. Links with rel=nofollow do not
// count.
type SourceLinks struct {
	// How many links away from the front page, or from a page that another source names, a
	// page may be: 1 to 250. Default: 20.
	Depth int `json:"depth,omitempty"`

	Discovery
}

const (
	defaultDepth = 20
	maxDepth     = 250 // a record counts to 255
)

// CaddyModule returns the Caddy module information.
func (SourceLinks) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.sitemap.sources.links",
		New: func() caddy.Module { return new(SourceLinks) },
	}
}

// Provision checks the settings.
func (s *SourceLinks) Provision(caddy.Context) error {
	_, err := s.discovers()
	return err
}

func (s *SourceLinks) discovers() (discovery, error) {
	d, err := s.compile()
	if err == nil && len(s.Unlinked) > 0 {
		err = errors.New("unlinked pages have visitors, and no links: it belongs to access_log or traffic")
	}
	if err != nil {
		return d, fmt.Errorf("links: %w", err)
	}
	d.links = true
	if d.depth = s.Depth; d.depth == 0 {
		d.depth = defaultDepth
	}
	if d.depth < 1 || d.depth > maxDepth {
		return d, fmt.Errorf("links: depth is %d: it is 1 to %d", s.Depth, maxDepth)
	}
	return d, nil
}

// Pages yields nothing: the crawl follows the links of the pages that it fetches.
func (s *SourceLinks) Pages(context.Context, *Refresh, func(Page) error) error { return nil }

// Sorted implements [SortedSource].
func (s *SourceLinks) Sorted() bool { return true }

// Interface guards
var (
	_ caddy.Provisioner = (*SourceLinks)(nil)
	_ discoverer        = (*SourceLinks)(nil)
	_ SortedSource      = (*SourceLinks)(nil)
)
