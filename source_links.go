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

func (s *SourceLinks) discovers() (discovery, error) {
	d, err := s.Discovery.discovers()
	if err == nil && len(s.Unlinked) > 0 {
		err = errors.New("unlinked pages have visitors, and no links: it belongs to access_log or traffic")
	}
	d.links, d.depth = true, s.Depth
	if d.depth == 0 {
		d.depth = defaultDepth
	}
	if err == nil && (d.depth < 1 || d.depth > maxDepth) {
		err = fmt.Errorf("depth is %d: it is 1 to %d", s.Depth, maxDepth)
	}
	return d, err
}

// Pages yields nothing: the crawl follows the links of the pages that it fetches.
func (*SourceLinks) Pages(context.Context, *Refresh, func(Page) error) error { return nil }
