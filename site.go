package sitemap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/logonce"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/publish"
	"github.com/seed3295b519/caddy-sitemap/internal/schedule"
)

// address is where a site is: what its URLs begin with. With base_url, which says it all,
// it is empty.
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

	origin    string // scheme, host and port of its URLs
	prefix    string // of its pages' paths; "" or such as /docs
	docPrefix string // of its documents' paths, before the path setting
	scope     string // of the pages that the sitemap may list; it ends in a slash

	// How the server knows the site, which a proxy in front may call otherwise.
	internal struct{ origin, prefix string }
}

func newIdentity(h *Handler, id siteID, prefix string, onDemand bool) identity {
	i := identity{id: id, handler: h, onDemand: onDemand, origin: origin.Of(id.scheme, id.host, id.port), prefix: prefix, docPrefix: prefix}
	i.internal.origin = origin.Of(id.scheme, h.mounts.representativeHost(id.host, prefix), id.port)
	i.internal.prefix = prefix
	if base := h.settings.base; base != "" {
		i.origin = base
		if h.settings.prefix != "" {
			i.docPrefix = h.settings.prefix
			if prefix != "" {
				i.prefix = h.settings.prefix
			}
		}
		i.internal.origin = origin.Of(h.listener.scheme, h.mounts.representativeHost(hostOf(base), prefix), h.listener.port)
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

// idOf tells which site a request is for. The error is errNoHost. What a proxy in front
// says of the host counts only where the matchers name no hosts, or name that one: else a
// cache could be poisoned with a foreign Sitemap line.
func (h *Handler) idOf(r *http.Request, prefix string) (siteID, error) {
	if h.settings.base != "" {
		return siteID{handler: h}, nil
	}
	id := siteID{h, address{scheme: h.listener.scheme, port: h.listener.port, prefix: prefix}}
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
	return (h.listener.is(at) || at.scheme == "https" && at.port == "") && slices.Contains(h.mounts.hosts(at.prefix), at.host)
}

// docPath is the path of a document in URLs.
func (i *identity) docPath(suffix, extension string) string {
	return i.docPrefix + strings.TrimSuffix(i.handler.settings.path, ".xml") + suffix + extension
}

// internalPath is a path of the site's URLs as the server knows it: what a proxy in front calls the prefix,
// the server may not.
func (i *identity) internalPath(path string) string {
	if rest, ok := strings.CutPrefix(path, i.prefix+"/"); ok {
		return i.internal.prefix + "/" + rest
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

// front is the site's front page. Where the sitemap's folder is not the whole site, it is
// that folder's: what lies outside is not listed.
func (i *identity) front() string {
	if len(i.scope) > len(i.prefix)+1 {
		return i.scope
	}
	return i.prefix + "/"
}

// digest is of all that says which pages are listed, and of more that does.
func (i *identity) digest(more ...any) uint64 {
	return digestOf(append([]any{i.sitemapURL(), i.scope, i.handler.settings.digest}, more...)...)
}

// digestOf tells values apart by all that they print as.
func digestOf(parts ...any) uint64 {
	sum := xxhash.New()
	for _, part := range parts {
		_, _ = fmt.Fprintf(sum, "%q\n", fmt.Sprint(part))
	}
	return sum.Sum64()
}

// IsNamed reports whether a Host header is that of the site, be it as visitors know it or
// as the server does. A header without a port means any.
func (i *identity) IsNamed(host string) bool {
	name, ok := origin.CleanHost(host)
	_, port, _ := net.SplitHostPort(host)
	return ok && slices.ContainsFunc([]string{i.origin, i.internal.origin}, func(known string) bool {
		scheme, _, _ := strings.Cut(known, "://")
		return hostOf(known) == name && (port == "" || origin.Of(scheme, name, port) == known)
	})
}

// hostOf is the host of an origin.
func hostOf(url string) string {
	_, host, _ := strings.Cut(url, "://")
	host, _ = origin.CleanHost(host)
	return host
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
	demand demand

	ready, wasProbed    chan struct{}   // closed when it is known what is served, and when the first probe has ended
	setReady, setProbed func()          // close these
	checked             atomic.Bool     // its setup
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
	s.logger = newLogger(&s.identity)
	routes, proxies := digestRoutes(h.server, hostOf(i.internal.origin))
	s.fetcher = siteFetcher{&s.identity, a.fetchers[h.server], routes, func(res *response) {
		a.counts.fetched(res)
		if a.building != nil {
			a.building.Fetched.Add(1)
		}
	}}
	s.state = acquireState(a, &s.identity)
	if before := s.state.limiter.Swap(h.limiter); before != nil {
		h.limiter.Resume(before)
	}
	s.crawler = crawl.New(crawl.Options{Fetcher: &s.fetcher, Limiter: h.limiter, Slots: a.slots, Workers: cap(a.slots), Now: a.now, Own: !proxies})
	s.schedule = schedule.New(a.now())
	if s.state.Index.Load() == nil {
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

// demand is how often a site's documents are requested. A request counts half after an hour.
type demand struct {
	mu     sync.Mutex
	score  float64
	latest time.Time // request
}

func (d *demand) add(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.score, d.latest = d.at(now)+1, now
}

// at returns the demand at a time. Under mu.
func (d *demand) at(now time.Time) float64 {
	return d.score * math.Exp2(-now.Sub(d.latest).Abs().Hours()) // the clock may be set back
}

// snapshot returns what to serve. The very first request of a site waits for its first
// refresh; the error is for Caddy. Nil: the site has no documents.
func (s *site) snapshot(ctx context.Context) (*publish.Snapshot, error) {
	if s.onDemand {
		s.demand.add(s.app.now())
		s.schedule.Notify()
	}
	if snapshot := s.state.Index.Load(); snapshot != nil {
		return snapshot, nil
	}
	err := s.app.await(ctx, s.ready)
	return s.state.Index.Load(), err
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

// probePatience is how long a site waits for the first probes of those that may stand for
// it.
const probePatience = 5 * time.Second

// settle notes what a probe found, and which sites stand for others now.
func (s *site) settle(ctx context.Context, probed *probeResult, err error) {
	if err == nil {
		s.probed.Store(probed)
	}
	s.setProbed()
	if err == nil && probed.same != nil {
		// Of two sitemaps with equal settings, as of a snippet that is imported twice,
		// requests reach the first.
		id := s.id
		id.handler = probed.same
		if main := s.app.lookup(id); main != nil && main != s {
			s.setMain(main)
		}
		return
	}
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	twins := s.twins()
	for _, twin := range twins {
		select {
		case <-twin.wasProbed:
		case <-ctx.Done():
		}
	}
	s.app.settleAliases(twins)
}

// twins are the site and those that may stand for it, or the other way around: one host by
// http and https, or an apex and its www.
func (s *site) twins() []*site {
	if s.onDemand || s.handler.settings.base != "" {
		return nil
	}
	apex := func(s *site) string { return strings.TrimPrefix(s.id.host, "www.") }
	return slices.DeleteFunc(s.app.allSites(), func(o *site) bool {
		return o.onDemand || o.handler.settings.base != "" || o.id.prefix != s.id.prefix || apex(o) != apex(s)
	})
}

// settleAliases settles which of some twins stand for others, as the last probes have it.
func (a *App) settleAliases(twins []*site) {
	a.aliasing.Lock()
	defer a.aliasing.Unlock()
	main := mergeAliases(twins)
	for _, s := range twins {
		if probed := s.probed.Load(); main[s] != nil || probed == nil || probed.same == nil {
			s.setMain(main[s])
		}
	}
}

// setMain lets another site's documents stand for this one's; nil: no other's do.
func (s *site) setMain(main *site) {
	if s.main.Swap(main) != main && main != nil {
		s.setReady()
		s.logger.Debug("another site's sitemap stands for this one's", zap.String("sitemap", main.sitemapURL()))
	}
}

// mergeAliases settles which of some twins stand for others: https for http, and of an apex
// and its www the one that its front page names as canonical, else the apex. It depends on
// nothing but what the probes of these sites found.
func mergeAliases(twins []*site) map[*site]*site {
	main, live := make(map[*site]*site), make(map[siteID]*site)
	for _, s := range twins {
		if probed := s.probed.Load(); probed != nil && probed.blocked == "" {
			live[s.id] = s
		}
	}
	for _, s := range live {
		i := slices.IndexFunc(twins, func(o *site) bool {
			if s.id.scheme != "http" || o.id.scheme != "https" || o.id.host != s.id.host || o.handler == s.handler || live[o.id] == nil {
				return false
			}
			a, b := s.probed.Load(), o.probed.Load()
			return s.handler.settings.digest == o.handler.settings.digest && a.root == b.root && a.fs == b.fs // the same pages
		})
		if i >= 0 {
			main[s] = twins[i]
		}
	}
	for id, apex := range live {
		id.host = "www." + id.host
		switch www := live[id]; {
		case www == nil || main[apex] != nil || main[www] != nil:
		case apex.probed.Load().canonicalHost == id.host:
			main[apex] = www
		default:
			main[www] = apex
		}
	}
	for s, m := range main {
		main[s] = cmp.Or(main[m], m)
	}
	return main
}

// newLogger is a site's own. Of sites on demand, of which visitors may name any number, a
// handler writes each message once a minute.
func newLogger(i *identity) *logonce.Logger {
	logger, h := i.handler.logger, i.handler
	if i.onDemand {
		h.sampling.Do(func() {
			h.sampled = logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
				return zapcore.NewSamplerWithOptions(core, time.Minute, 1, 0)
			}))
		})
		logger = h.sampled
	}
	return logonce.New(logger.With(zap.String("site", i.url())))
}
