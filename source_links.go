package sitemap

import (
	"context"
	"fmt"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/discover"
)

func init() {
	caddy.RegisterModule(SourceLinks{})
}

// SourceLinks contributes the pages that listed pages of the site link to, from the
// front page on, once they were asked for: a proxied application gets its sitemap
// with nothing else. A link that says nofollow is none.
type SourceLinks struct {
	// How many links away from the front page, or from a page that another source
	// names, a page may be: 1 to 250. Default: 20.
	Depth int `json:"depth,omitempty"`

	Discovery
}

const (
	defaultDepth = 20
	maxDepth     = 250 // the catalog counts to 255
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
	d, err := s.compile(discover.FromLinks)
	if err != nil {
		return d, fmt.Errorf("links: %w", err)
	}
	if len(s.Unlinked) > 0 {
		return d, fmt.Errorf("links: unlinked pages have visitors, and no links: it belongs to access_log or traffic")
	}
	if d.depth = s.Depth; d.depth == 0 {
		d.depth = defaultDepth
	}
	if d.depth < 1 || d.depth > maxDepth {
		return d, fmt.Errorf("links: depth is %d: it is 1 to %d", s.Depth, maxDepth)
	}
	return d, nil
}

// Pages yields the pages that are linked to.
func (s *SourceLinks) Pages(ctx context.Context, r *Refresh, yield func(Page) error) error {
	return r.site.candidates(ctx, discover.FromLinks, yield)
}

// Interface guards
var (
	_ caddy.Provisioner = (*SourceLinks)(nil)
	_ discoverer        = (*SourceLinks)(nil)
)
