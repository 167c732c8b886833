package sitemap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/publish"
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
		_, host, _ := strings.Cut(base, "://")
		host, _ = origin.CleanHost(host)
		i.internal.origin = origin.Of(h.listener.scheme, h.mounts.representativeHost(host, prefix), h.listener.port)
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

// docPath is the path of a document in URLs.
func (i *identity) docPath(suffix, extension string) string {
	return i.docPrefix + i.handler.settings.stem + suffix + extension
}

// internalHost is the host under which the server knows the site.
func (i *identity) internalHost() string {
	_, host, _ := strings.Cut(i.internal.origin, "://")
	host, _ = origin.CleanHost(host)
	return host
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

// interval is the time from the beginning of one refresh to that of the next.
func (i *identity) interval() time.Duration { return i.handler.settings.refresh }

// crawlDigest is of all that shapes what is known of pages.
func (i *identity) crawlDigest(probed *probeResult) uint64 {
	return digestOf(i.origin, i.scope, i.handler.settings.digest, probed.robots.digest)
}

// selectDigest is of all that shapes which pages are listed; probed is nil before a probe.
func (i *identity) selectDigest(probed *probeResult) uint64 {
	parts := []any{i.origin, i.scope, i.docPath("", ""), i.handler.settings.digest}
	if probed != nil {
		parts = append(parts, probed.root, probed.fs, probed.index)
	}
	return digestOf(parts...)
}

// digestOf tells values apart by all that they print as.
func digestOf(parts ...any) uint64 {
	sum := xxhash.New()
	for _, part := range parts {
		_, _ = fmt.Fprintf(sum, "%q\n", fmt.Sprint(part))
	}
	return sum.Sum64()
}

// isNamed reports whether a Host header is that of the site, be it as visitors know it or
// as the server does. A header without a port means any.
func (i *identity) isNamed(host string) bool {
	name, ok := origin.CleanHost(host)
	if !ok {
		return false
	}
	_, port, _ := net.SplitHostPort(host)
	for _, known := range [...]string{i.origin, i.internal.origin} {
		scheme, rest, _ := strings.Cut(known, "://")
		own, _ := origin.CleanHost(rest)
		if own == name && (port == "" || origin.Of(scheme, own, port) == known) {
			return true
		}
	}
	return false
}

// site is one origin and prefix that a handler serves.
type site struct {
	identity
	app      *App
	logger   *siteLog
	schedule schedule
	fetcher  siteFetcher
	state    *siteState // outlives the configuration

	heldBefore uint64 // number of the configuration that refreshed the site before

	probed  atomic.Pointer[probeResult] // of the last refresh; nil: none yet
	main    atomic.Pointer[site]        // whose documents stand for this one's; nil: its own do
	own     atomic.Pointer[ownPages]    // that the application's own sitemaps name
	made    time.Time
	traffic requestRate // requests for its documents, if on demand

	ready      chan struct{} // closed when it is known what is served
	readyOnce  sync.Once
	wasProbed  chan struct{} // closed when the first probe has ended
	firstProbe sync.Once
	checked    atomic.Bool     // its setup
	ctx        context.Context // ends with the site
	cancel     context.CancelFunc
}

func newSite(a *App, i identity) *site {
	s := &site{identity: i, app: a, ready: make(chan struct{}), wasProbed: make(chan struct{}), made: a.now()}
	s.logger = newSiteLog(&s.identity)
	s.fetcher = siteFetcher{&s.identity, a.fetchers[i.handler.server], routesDigest(i.handler.server, i.internalHost()), func(res *response) {
		a.counts.fetched(res)
		if a.building != nil {
			a.building.Fetched.Add(1)
		}
	}}
	s.state = acquireState(a, &s.identity)
	s.heldBefore = s.state.hold(a.number)
	s.state.visited.limit(i.handler.discovery.most(i.onDemand))
	s.ctx, s.cancel = context.WithCancel(a.running)
	s.schedule.at(a.now())
	if s.state.Index.Load() != nil {
		s.markReady()
	}
	return s
}

func (s *site) markReady() { s.readyOnce.Do(func() { close(s.ready) }) }

// resume lets the site wait for its next refresh, where the last one left nothing to do
// and was made with the same settings and routes.
func (s *site) resume() {
	last := s.state.rested.Load()
	if last == nil || last.digest != s.fetcher.digest() || s.state.Index.Load() == nil {
		return
	}
	now := s.app.now()
	if due := s.handler.settings.next(last.begun, last.cost); due.After(now) && !last.begun.After(now) {
		s.schedule.at(due)
		s.firstProbe.Do(func() { close(s.wasProbed) })
	}
}

// drop gives back what the site holds.
func (s *site) drop() {
	s.markReady()
	s.cancel()
	s.schedule.close()
	s.state.holder.CompareAndSwap(s.app.number, s.heldBefore) // which goes on if this one failed to start
	_, _ = states.Delete(s.state.key)
}

const firstWait = 10 * time.Second

var (
	errNotReady = errors.New("the sitemap is not ready yet")
	errStopping = errors.New("the site is being stopped")
)

// snapshot returns what to serve. The very first request of a site waits for its first
// refresh; the error is for Caddy. Nil: the site has no documents.
func (s *site) snapshot(ctx context.Context) (*publish.Snapshot, error) {
	if s.onDemand {
		s.traffic.add(s.app.now())
		if s.schedule.resume(s.app.now()) {
			s.app.notify()
		}
	}
	if snapshot := s.state.Index.Load(); snapshot != nil {
		return snapshot, nil
	}
	timer := time.NewTimer(firstWait)
	defer timer.Stop()
	select {
	case <-s.ready:
		return s.state.Index.Load(), nil
	case <-timer.C:
		return nil, errNotReady
	case <-s.app.running.Done():
		return nil, errNotReady
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// refreshNow has the site refreshed at once, or the one whose documents stand for its own,
// and waits until a refresh has ended that began after the call. The error is ctx's, or
// errStopping; the refresh goes on all the same.
func (s *site) refreshNow(ctx context.Context) error {
	if main := s.main.Load(); main != nil {
		s = main
	}
	done := s.schedule.request(s.app.now())
	s.app.notify()
	select {
	case <-done:
		if s.ctx.Err() != nil {
			return errStopping
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.ctx.Done():
		return errStopping
	}
}

// siteLog writes the log lines of a site. It is safe for concurrent use.
type siteLog struct {
	*zap.Logger
	mu   sync.Mutex
	last map[string]string // the last line of each kind
}

// newSiteLog is a site's own. Of sites on demand, of which visitors may name any number, a
// handler writes each message once a minute.
func newSiteLog(i *identity) *siteLog {
	logger, h := i.handler.logger, i.handler
	if i.onDemand {
		h.sampling.Do(func() {
			h.sampled = logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
				return zapcore.NewSamplerWithOptions(core, time.Minute, 1, 0)
			}))
		})
		logger = h.sampled
	}
	return &siteLog{Logger: logger.With(zap.String("site", i.url())), last: make(map[string]string)}
}

// once writes a line of a kind, and not again while it stays the same.
func (l *siteLog) once(level zapcore.Level, kind, message string, fields ...zap.Field) {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(enc)
	}
	delete(enc.Fields, "stack") // it is never the same twice
	line := fmt.Sprint(message, enc.Fields)
	l.mu.Lock()
	same := l.last[kind] == line
	l.last[kind] = line
	l.mu.Unlock()
	if !same {
		l.Log(level, message, fields...)
	}
}

// onceIf writes a line once while it applies.
func (l *siteLog) onceIf(applies bool, level zapcore.Level, kind, message string, fields ...zap.Field) {
	if applies {
		l.once(level, kind, message, fields...)
	} else {
		l.clear(kind)
	}
}

// clear lets a line of a kind be written again.
func (l *siteLog) clear(kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.last, kind)
}

// state says once what is wrong with keeping records.
func (l *siteLog) state(err error) {
	l.onceIf(err != nil, zap.WarnLevel, "state", "cannot keep what is known of the pages: it is relearned after a restart", zap.Error(err))
}
