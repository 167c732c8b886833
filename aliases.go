package sitemap

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
)

// probePatience is how long a site waits for the first probes of those that may stand for
// it.
const probePatience = 5 * time.Second

// settle notes what a probe found, and which sites stand for others now.
func (s *site) settle(ctx context.Context, probed *probeResult, err error) {
	if err == nil {
		s.probed.Store(probed)
	}
	s.firstProbe.Do(func() { close(s.wasProbed) })
	if err == nil && probed.same != nil {
		s.mergeInto(probed.same)
		return
	}
	if !s.onDemand && s.handler.settings.base == "" {
		s.awaitTwins(ctx)
		s.app.settleAliases()
	}
}

// twins are the sites that may stand for this one, or the other way around: one host by
// http and https, or an apex and its www.
func (s *site) twins() []*site {
	if s.onDemand || s.handler.settings.base != "" {
		return nil
	}
	apex := func(s *site) string { return strings.TrimPrefix(s.id.host, "www.") }
	return slices.DeleteFunc(s.app.allSites(), func(o *site) bool {
		return o == s || o.onDemand || o.handler.settings.base != "" || o.id.prefix != s.id.prefix || apex(o) != apex(s)
	})
}

// awaitTwins waits until its twins were probed, too.
func (s *site) awaitTwins(ctx context.Context) {
	timer := time.NewTimer(probePatience)
	defer timer.Stop()
	for _, twin := range s.twins() {
		select {
		case <-twin.wasProbed:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// settleAliases settles which of the named sites stand for others, as the last probes have
// it.
func (a *App) settleAliases() {
	a.aliasing.Lock()
	defer a.aliasing.Unlock()
	var named []*site
	for _, s := range a.allSites() {
		if !s.onDemand && s.handler.listener.is(s.id.address) {
			named = append(named, s)
		}
	}
	main := mergeAliases(named)
	for _, s := range named {
		if probed := s.probed.Load(); main[s] == nil && probed != nil && probed.same != nil {
			continue
		}
		if main[s] != nil {
			s.becomeAliasOf(main[s])
			continue
		}
		s.main.Store(nil)
		s.state.alias.Store(nil)
	}
}

// becomeAliasOf lets another site's documents stand for this one's.
func (s *site) becomeAliasOf(main *site) {
	if s.main.Swap(main) == main {
		return
	}
	s.state.alias.Store(&main.state.key)
	s.markReady()
	s.schedule.forward(&main.schedule)
	s.app.notify()
	s.logger.Debug("another site's sitemap stands for this one's", zap.String("sitemap", main.sitemapURL()))
}

// followListener lets another site of the handler stand for one whose https ends at a
// proxy, where it does so at the listener itself: www for the apex, or the other way.
func followListener(a *App, s *site) {
	at := s.id.address
	at.scheme, at.port = s.handler.listener.scheme, s.handler.listener.port
	if at == s.id.address || s.onDemand || s.main.Load() != nil {
		return
	}
	direct := a.lookup(siteID{s.handler, at})
	if direct == nil {
		return
	}
	main := direct.main.Load()
	if main == nil || main.handler != s.handler || main.id.host == s.id.host {
		return
	}
	id := s.id
	id.host = main.id.host
	if main, err := a.site(s.handler, id, id.prefix); err == nil {
		s.becomeAliasOf(main)
	}
}

// mergeInto makes one of two sitemaps with equal settings in a site, as of a snippet that is
// imported twice: requests reach the first.
func (s *site) mergeInto(first *Handler) {
	id := s.id
	id.handler = first
	if main := s.app.lookup(id); main != nil && main != s {
		s.becomeAliasOf(main)
	}
}

// aliases are the URLs of the sites that this one's documents stand for.
func (s *site) aliases() []string {
	var all []string
	for _, other := range s.app.allSites() {
		if other.main.Load() == s {
			all = append(all, other.url())
		}
	}
	return all
}

// resumeAliases lets sites stand for others as in the configuration before this one, until
// the next probe says otherwise.
func (a *App) resumeAliases() {
	all := a.allSites()
	for _, s := range all {
		key := s.state.alias.Load()
		i := slices.IndexFunc(all, func(o *site) bool { return key != nil && o.state.key == *key })
		if i >= 0 && all[i] != s && all[i].state.alias.Load() == nil {
			s.becomeAliasOf(all[i])
		}
	}
}

// adoptAliases is resumeAliases after a restart, from what is kept with the documents.
func (s *site) adoptAliases(urls []string) {
	s.app.aliasing.Lock()
	defer s.app.aliasing.Unlock()
	if s.main.Load() != nil {
		return // as what it stood for adopted it: one of the two is out of date
	}
	for _, other := range s.app.allSites() {
		if other != s && !other.onDemand && slices.Contains(urls, other.url()) && other.probed.Load() == nil {
			other.becomeAliasOf(s)
		}
	}
}

// mergeAliases settles which of the named sites stand for others: https for http, and of
// an apex and its www the one that its front page names as canonical, else the apex. It
// depends on nothing but what the probes of these sites found.
func mergeAliases(named []*site) map[*site]*site {
	main := make(map[*site]*site)
	byID := make(map[siteID]*site)
	sorted := slices.SortedFunc(slices.Values(named), func(x, y *site) int {
		return cmp.Or(strings.Compare(x.url(), y.url()), strings.Compare(x.sitemapURL(), y.sitemapURL()))
	})
	var live []*site
	for _, s := range sorted {
		probed := s.probed.Load()
		if probed == nil || !probed.reached || probed.shadowed || probed.refused != 0 || s.handler.settings.base != "" {
			continue
		}
		byID[s.id] = s
		live = append(live, s)
	}
	for _, s := range live {
		if s.id.scheme != "http" {
			continue
		}
		for _, other := range live {
			if other.id.scheme == "https" && other.id.host == s.id.host && other.id.prefix == s.id.prefix && haveSamePages(s, other) {
				main[s] = other
				break
			}
		}
	}
	for _, apex := range live {
		id := apex.id
		id.host = "www." + id.host
		www := byID[id]
		if www == nil || main[apex] != nil || main[www] != nil {
			continue
		}
		if apex.probed.Load().canonicalHost == www.id.host {
			main[apex] = www
		} else {
			main[www] = apex
		}
	}
	for s, m := range main {
		for main[m] != nil {
			m = main[m]
		}
		main[s] = m
	}
	return main
}

// haveSamePages reports whether two sites have the same files and settings.
func haveSamePages(s, o *site) bool {
	a, b := s.probed.Load(), o.probed.Load()
	return s.handler.settings.digest == o.handler.settings.digest && a.root == b.root && a.fs == b.fs
}
