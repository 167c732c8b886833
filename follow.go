package sitemap

import (
	"context"
	"net/url"
	"strings"

	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/discover"
	"github.com/seed3295b519/caddy-sitemap/internal/evidence"
	"github.com/seed3295b519/caddy-sitemap/internal/state"
	"github.com/seed3295b519/caddy-sitemap/internal/verdict"
)

// tracks are the links that lead from listed pages to others.
type tracks struct {
	site    *site
	refresh *Refresh
	catalog *discover.Catalog
	round   *discover.Round
	cleaner discover.Cleaner
	links   []string
}

// openTracks begins a round of links; nil: nothing discovers pages.
func (s *site) openTracks(ctx context.Context, r *Refresh) *tracks {
	d := s.handler.discovery
	if d == nil {
		return nil
	}
	catalog := s.paths(ctx)
	return &tracks{
		site: s, refresh: r, catalog: catalog, round: catalog.Round(d.depth, d.from&discover.FromLinks != 0),
		cleaner: d.cleaner(),
	}
}

// follow takes the links of a page that is listed, or that leads to another page
// itself.
func (t *tracks) follow(r *state.Record, details *state.Details) {
	if t == nil {
		return
	}
	path := r.Page.Path
	isListed := r.Flags&verdict.FlagListed != 0
	discovered := r.Flags&verdict.FlagDiscovered != 0 && path != t.site.front()
	depth := 0
	if discovered {
		depth, _ = t.catalog.DepthOf(path)
		t.catalog.Listed(path, isListed)
	}
	switch {
	case details == nil:
		return
	case !isListed && verdict.Reason(r.Answer) != verdict.Redirects:
		return
	}
	if len(details.Links) >= evidence.MaxLinks {
		t.refresh.Say("links", "a page has more links than are followed", zap.String("page", path), zap.Int("followed", evidence.MaxLinks))
	}
	t.links = t.links[:0]
	for _, link := range details.Links {
		if clean, ok := t.cleaner.Clean(link); ok && strings.HasPrefix(clean, t.site.front()) && !discover.IsAsset(clean) {
			t.links = append(t.links, clean)
		}
	}
	t.round.Page(depth, path, t.links)
}

// ended is the round, whose links are all taken; nil: there was none.
func (t *tracks) ended() *discover.Round {
	if t == nil {
		return nil
	}
	return t.round
}

// endRound makes the links of a refresh that is believed those that count. New
// candidates are written down before the book is: after a crash, pages that are not
// candidates any more would be listed no longer.
func (s *site) endRound(ctx context.Context, round *discover.Round) {
	if round == nil {
		return
	}
	now := s.app.now().Unix()
	round.End(now)
	catalog := s.catalog.Load()
	catalog.Expire(now)
	s.shelf.paths.changed.Store(true)
	if round.Grown() {
		s.keepPaths(ctx)
	}
}

// redirect is where an answer leads to on the site.
func (s *site) redirect(from string, answer *Answer) (string, bool) {
	location := answer.Header.Get("Location")
	if answer.Status < 300 || answer.Status >= 400 || location == "" {
		return "", false
	}
	base, err := url.Parse(s.base + from)
	if err != nil {
		return "", false
	}
	target, err := base.Parse(location)
	if err != nil {
		return "", false
	}
	host := strings.TrimSuffix(target.Host, ":"+target.Port())
	there := origin(target.Scheme, host, target.Port()) + target.RequestURI()
	for _, base := range [...]string{s.base, s.askBase} {
		if path, ok := verdict.PathOn(base, there); ok {
			return path, path != from
		}
	}
	return "", false
}
