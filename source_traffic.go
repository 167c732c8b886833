package sitemap

import (
	"context"
	"fmt"

	"github.com/caddyserver/caddy/v2"
)

func init() {
	caddy.RegisterModule(SourceTraffic{})
}

// SourceTraffic contributes the pages that visitors get through the sitemap handler, once a
// listed page links to them, or if they are named as unlinked. It sees the responses of the
// handlers behind this one.
type SourceTraffic struct {
	Discovery
}

// CaddyModule returns the Caddy module information.
func (SourceTraffic) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.sitemap.sources.traffic",
		New: func() caddy.Module { return new(SourceTraffic) },
	}
}

// Provision checks the settings.
func (s *SourceTraffic) Provision(caddy.Context) error {
	_, err := s.discovers()
	return err
}

func (s *SourceTraffic) discovers() (discovery, error) {
	d, err := s.compile()
	if err != nil {
		return d, fmt.Errorf("traffic: %w", err)
	}
	return d, nil
}

// Pages yields the pages that visitors have had.
func (s *SourceTraffic) Pages(_ context.Context, r *Refresh, yield func(Page) error) error {
	return r.visitedPages(yield)
}

// Sorted implements [SortedSource].
func (s *SourceTraffic) Sorted() bool { return true }

// Interface guards
var (
	_ caddy.Provisioner = (*SourceTraffic)(nil)
	_ discoverer        = (*SourceTraffic)(nil)
	_ SortedSource      = (*SourceTraffic)(nil)
)
