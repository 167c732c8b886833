package sitemap

import (
	"context"
	"fmt"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/discover"
)

func init() {
	caddy.RegisterModule(SourceTraffic{})
}

// SourceTraffic contributes the pages that visitors get through the sitemap handler,
// once a listed page links to them, or they are among those named as unlinked. It
// sees what the handlers behind this one answer.
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
	d, err := s.compile(discover.FromTraffic)
	if err != nil {
		return d, fmt.Errorf("traffic: %w", err)
	}
	return d, nil
}

// Pages yields the pages that visitors had.
func (s *SourceTraffic) Pages(ctx context.Context, r *Refresh, yield func(Page) error) error {
	return r.site.candidates(ctx, discover.FromTraffic, yield)
}

// Interface guards
var (
	_ caddy.Provisioner = (*SourceTraffic)(nil)
	_ discoverer        = (*SourceTraffic)(nil)
)
