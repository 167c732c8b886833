package sitemap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/logonce"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/publish"
	"github.com/seed3295b519/caddy-sitemap/internal/schedule"
)

// address is where the server knows a site.
type address struct {
	scheme string
	host   string
	port   string // "" where URLs leave it out
	prefix string // stripped before the handler, percent-encoded
}

// siteID tells sites apart: those of one handler by their addresses, which may be those of
// another handler's too.
type siteID struct {
	handler *Handler
	address
}

// identity is what a site is. It never changes.
type identity struct {
	id       siteID
	handler  *Handler
	onDemand bool // only visitors named its host

	// How visitors know the site, which may be otherwise with base_url.
	origin    string // scheme, host and port of its URLs
	prefix    string // of its pages' paths; "" or such as /docs
	docPrefix string // of its documents' paths, before the path setting
	scope     string // of the pages that the sitemap may list; it ends in a slash, and is the front page, too

	internalOrigin string // by which the server's routes lead to the handler
}

func newIdentity(id siteID, onDemand bool) identity {
	h := id.handler
	i := identity{id: id, handler: h, onDemand: onDemand, origin: origin.Of(id.scheme, id.host, id.port), prefix: id.prefix, docPrefix: id.prefix}
	i.internalOrigin = i.origin
	i.origin = cmp.Or(h.settings.base, i.origin)
	if h.settings.prefix != "" {
		i.docPrefix = h.settings.prefix
		if i.prefix != "" {
			i.prefix = h.settings.prefix
		}
	}
	if h.settings.prefix != "" && strings.HasPrefix(h.settings.path, i.docPrefix+"/") {
		i.docPrefix = "" // path has it already
	}
	i.scope = page.Folder(i.docPath("", ".xml"))
	for _, prefix := range []string{h.settings.prefix + "/", i.prefix + "/"} {
		if len(prefix) > len(i.scope) {
			i.scope = prefix
		}
	}
	return i
}

// setListener notes how the handler is reached: with a base URL, which makes one site of it,
// down to the host and prefix.
func (h *Handler) setListener(listener address) {
	if h.listener = listener; h.settings.base == "" {
		return
	}
	if len(h.mounts) > 0 {
		h.listener.prefix = h.mounts[0].prefix
	}
	h.listener.host = h.mounts.representativeHost(origin.HostOf(h.settings.base), h.listener.prefix)
}

// idOf tells which site a request is for: with a base URL always the same one. The error is
// errNoHost. What a proxy in front says of the host counts only where the matchers name no
// hosts, or name that one: else a cache could be poisoned with a foreign Sitemap line.
func (h *Handler) idOf(r *http.Request, prefix string) (siteID, error) {
	id := siteID{h, h.listener}
	if h.settings.base != "" {
		return id, nil
	}
	id.prefix = prefix
	host, isPort := r.Host, true
	if scheme, forwardedHost := forwarded(r); scheme != "" || forwardedHost != "" {
		if clean, ok := origin.CleanHost(forwardedHost); forwardedHost != "" && (!ok || h.mounts.matchesHost(clean, prefix)) {
			host = forwardedHost
		}
		id.scheme = cmp.Or(scheme, id.scheme)
		id.port, isPort = origin.CleanPort(id.scheme, host)
	}
	var isHost bool
	if id.host, isHost = origin.CleanHost(host); !isHost || !isPort {
		return id, fmt.Errorf("'%.100s': %w", host, errNoHost)
	}
	return id, nil
}

// names reports whether an address is one that the configuration spells out: at the
// listener itself, or where https ends before it. What else a proxy passes on of ports may
// be its visitors' word.
func (h *Handler) names(at address) bool {
	isListener := at.scheme == h.listener.scheme && at.port == h.listener.port
	return (isListener || at.scheme == "https" && at.port == "") && slices.Contains(h.mounts.hosts(at.prefix), at.host)
}

// docPath is the path of a document in URLs.
func (i *identity) docPath(suffix, extension string) string {
	return i.docPrefix + strings.TrimSuffix(i.handler.settings.path, ".xml") + suffix + extension
}

// internalPath is a path of the site's URLs as the server knows it: what a proxy in front calls the prefix,
// the server may not.
func (i *identity) internalPath(path string) string {
	if rest, ok := strings.CutPrefix(path, i.prefix+"/"); ok {
		return i.id.prefix + "/" + rest
	}
	return path
}

// url is what the site is called: its origin and prefix.
func (i *identity) url() string { return i.origin + i.prefix }

// sitemapURL is the URL of the sitemap or index.
func (i *identity) sitemapURL() string { return i.origin + i.docPath("", ".xml") }

// isDocument reports whether a path is that of one of the site's own documents.
func (i *identity) isDocument(path string) bool {
	_, _, ok := publish.ParseName(path, i.docPath("", ""))
	return ok
}

// filter is why a page is not a candidate whatever it says of itself; "": it is one.
func (i *identity) filter(p *page.Page) string {
	switch {
	case !strings.HasPrefix(p.Path, i.scope):
		return "outside the sitemap's folder"
	case i.handler.settings.exclude.Match(p.Path):
		return "excluded"
	case len(p.Path)+len(i.origin) > page.MaxLoc:
		return "URL too long"
	case i.isDocument(p.Path):
		return "a document of the sitemap"
	}
	return ""
}

// digest is of all that says which pages are listed, and of more that does.
func (i *identity) digest(more ...any) uint64 {
	return digestOf(i.sitemapURL(), i.scope, i.handler.settings.digest, more)
}

// digestOf tells values apart.
func digestOf(values ...any) uint64 { return xxhash.Sum64String(fmt.Sprintf("%#v", values)) }

// IsNamed reports whether a Host header is that of the site, be it as visitors know it or
// as the server does.
func (i *identity) IsNamed(host string) bool {
	return origin.IsNamed(i.origin, host) || origin.IsNamed(i.internalOrigin, host)
}

// site is one origin and prefix that a handler serves.
type site struct {
	identity
	app      *App
	logger   *logonce.Logger
	schedule *schedule.Schedule
	fetcher  siteFetcher
	crawler  *crawl.Crawler
	state    *siteState // outlives the configuration

	probed atomic.Pointer[probeResult] // of the last refresh; nil: none yet
	main   atomic.Pointer[site]        // whose documents stand for this one's; nil: its own do
	own    atomic.Pointer[ownPages]    // that the application's own sitemaps name

	requested           atomic.Int64    // when its documents last were, in nanoseconds
	ready, wasProbed    chan struct{}   // closed when it is known what is served, and when the first probe has ended
	setReady, setProbed func()          // close these
	ctx                 context.Context // ends with the site
	cancel              context.CancelFunc
}

// newSite makes a site, which is served as before where there is a state of it. Under the
// App's mu.
func newSite(a *App, i identity) *site {
	s := &site{identity: i, app: a, ready: make(chan struct{}), wasProbed: make(chan struct{})}
	s.setReady, s.setProbed = sync.OnceFunc(func() { close(s.ready) }), sync.OnceFunc(func() { close(s.wasProbed) })
	s.ctx, s.cancel = context.WithCancel(a.running)
	h := i.handler
	logger := h.logger
	if s.onDemand {
		logger = h.sampled
	}
	s.logger = logonce.New(logger.With(zap.String("site", s.url())))
	routes, proxies := digestRoutes(h.server, i.id.host)
	s.fetcher = siteFetcher{&s.identity, a.fetchers[h.server], routes}
	s.state = acquireState(a, &s.identity)
	if before := s.state.limiter.Swap(h.limiter); before != nil {
		h.limiter.Resume(before)
	}
	s.crawler = crawl.New(crawl.Options{Fetcher: &s.fetcher, Limiter: h.limiter, Slots: a.slots, Workers: cap(a.slots), Now: a.now, Own: !proxies})
	s.schedule = schedule.New(a.now())
	if s.state.published.Load() == nil {
		return s
	}
	s.setReady()
	if plan := s.state.plan.Load(); plan != nil && plan.digest == s.fetcher.digest() {
		s.probed.Store(plan.probed)
		s.setProbed()
		// The interval may be another one now, or the clock was set back.
		s.schedule.At(a.now().Add(min(plan.due.Sub(a.now()), h.settings.refresh)))
	}
	return s
}

// drop gives back what the site holds.
func (s *site) drop() {
	s.cancel()
	s.setReady()
	_, _ = states.Delete(s.state.key)
}

// snapshot returns what to serve. The very first request of a site waits for its first
// refresh; the error is for Caddy. Nil: the site has no documents.
func (s *site) snapshot(ctx context.Context) (*publish.Snapshot, error) {
	if s.onDemand {
		s.requested.Store(s.app.now().UnixNano())
		s.schedule.Notify()
	}
	if snapshot := s.state.published.Load(); snapshot != nil {
		return snapshot, nil
	}
	err := s.app.await(ctx, s.ready)
	return s.state.published.Load(), err
}

var errStopping = errors.New("the site is being stopped")

// refreshNow has the site refreshed at once, or the one whose documents stand for its own,
// and waits until a refresh has ended that began after the call. The error is ctx's, or
// errStopping; the refresh goes on all the same.
func (s *site) refreshNow(ctx context.Context) error {
	for next := cmp.Or(s.main.Load(), s); next != nil; next = s.main.Load() {
		s = next
		select {
		case <-s.schedule.Request(s.app.now()):
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ctx.Done():
			return errStopping
		}
	}
	return nil
}

// Several sites may be one, such as www and the apex: requests for the sitemap of an alias
// are redirected to that of its main site.

// settle notes what a probe found, and which of the site and its twins stand for others now.
// Twins are sites that may be one: a host by http and https, or an apex and its www.
func (s *site) settle(ctx context.Context, probed *probeResult, err error) {
	if err == nil {
		s.probed.Store(probed)
	}
	s.setProbed()
	apex := func(s *site) string { return strings.TrimPrefix(s.id.host, "www.") }
	twins := slices.DeleteFunc(s.app.allSites(), func(o *site) bool {
		return o.onDemand || o.handler.settings.base != "" || o.id.prefix != s.id.prefix || apex(o) != apex(s)
	})
	ctx, cancel := context.WithTimeout(ctx, firstPatience)
	defer cancel()
	for _, twin := range twins {
		select {
		case <-twin.wasProbed:
		case <-ctx.Done():
		}
	}
	s.app.aliasing.Lock()
	defer s.app.aliasing.Unlock()
	for _, twin := range twins {
		main := twin.mainOf(twins)
		if twin.main.Swap(main) != main && main != nil {
			twin.setReady()
			twin.logger.Debug("another site's sitemap stands for this one's", zap.String("sitemap", main.sitemapURL()))
		}
	}
}

// mainOf is which of its twins stands for a site in the end; nil: none. It depends on
// nothing but what the probes of these sites found.
func (s *site) mainOf(twins []*site) *site {
	for _, stands := range []func(s, o *site) bool{isSecure, isCanonical} {
		for _, o := range twins {
			if a, b := s.probed.Load(), o.probed.Load(); a != nil && b != nil && a.blocked == "" && b.blocked == "" && stands(o, s) {
				return cmp.Or(o.mainOf(twins), o)
			}
		}
	}
	return nil
}

// isSecure reports whether a site has the pages of another one by https.
func isSecure(s, plain *site) bool {
	a, b := s.probed.Load(), plain.probed.Load()
	return s.id.scheme == "https" && plain.id.scheme == "http" && s.id.host == plain.id.host && s.handler != plain.handler &&
		s.handler.settings.digest == plain.handler.settings.digest && a.root == b.root && a.fs == b.fs
}

// isCanonical reports whether a site is the one of an apex and its www that the front page
// of the apex names as canonical, else the apex.
func isCanonical(s, o *site) bool {
	apex, www := s, o
	if len(s.id.host) > len(o.id.host) {
		apex, www = o, s
	}
	id := apex.id
	id.host = "www." + id.host
	return www.id == id && (apex.probed.Load().canonicalHost == id.host) == (www == s)
}
