package sitemap

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

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
	i := identity{id: id, handler: h, onDemand: onDemand, origin: originOf(id.scheme, id.host, id.port), prefix: prefix, docPrefix: prefix}
	i.internal.origin = originOf(id.scheme, h.mounts.representativeHost(id.host, prefix), id.port)
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
		host, _ = cleanHost(host)
		i.internal.origin = originOf(h.listener.scheme, h.mounts.representativeHost(host, prefix), h.listener.port)
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
	host, _ = cleanHost(host)
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

// isNamed reports whether a Host header is that of the site, be it as visitors know it or
// as the server does. A header without a port means any.
func (i *identity) isNamed(host string) bool {
	name, ok := cleanHost(host)
	if !ok {
		return false
	}
	_, port, _ := net.SplitHostPort(host)
	for _, known := range [...]string{i.origin, i.internal.origin} {
		scheme, rest, _ := strings.Cut(known, "://")
		own, _ := cleanHost(rest)
		if own == name && (port == "" || originOf(scheme, own, port) == known) {
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
	state    *siteState // outlives the configuration
	routes   uint64     // digest of what the server answers for it

	probed  atomic.Pointer[probeResult] // of the last refresh; nil: none yet
	main    atomic.Pointer[site]        // whose documents stand for this one's; nil: its own do
	last    atomic.Pointer[report]      // of the last refresh; nil: none of this configuration has ended
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
	s.logger = newSiteLog(i.handler.logger.With(zap.String("site", i.url())), i)
	s.state = a.acquireState(&s.identity)
	s.routes = routesDigest(i.handler.server, i.internalHost())
	s.state.visited.limit(i.handler.maxPaths(i.onDemand))
	s.ctx, s.cancel = context.WithCancel(a.running)
	s.schedule.hurry = make(chan struct{}, 1)
	s.schedule.at(a.now())
	if s.state.Index.Load() != nil {
		s.markReady()
	}
	return s
}

func (s *site) markReady() { s.readyOnce.Do(func() { close(s.ready) }) }

// drop gives back what the site holds.
func (s *site) drop() {
	s.markReady()
	s.cancel()
	s.schedule.close()
	s.app.releaseState(s.state)
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

// schedule says when a site is refreshed next. It is safe for concurrent use.
type schedule struct {
	mu        sync.Mutex
	due       time.Time // of the next refresh; zero: not before somebody asks
	running   bool
	idle      bool            // it is not refreshed before somebody asks for its documents
	requested []chan struct{} // by those who wait for a refresh that has not begun
	serving   []chan struct{} // by those who wait for the refresh that runs
	hurry     chan struct{}   // tells the refresh that runs that another one is requested
}

// at plans the next refresh.
func (s *schedule) at(due time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due = due
}

// next is when the next refresh is due; false: none is planned, or one runs.
func (s *schedule) next() (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.due, !s.running && !s.idle && !s.due.IsZero()
}

// request asks for a refresh at once. What it returns is closed when that has ended.
func (s *schedule) request(now time.Time) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	done := make(chan struct{})
	s.requested = append(s.requested, done)
	s.due, s.idle = now, false
	select {
	case s.hurry <- struct{}{}:
	default:
	}
	return done
}

// resume lets an idle site be refreshed again, and reports whether one is due.
func (s *schedule) resume(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = false
	return !s.running && !s.due.IsZero() && !s.due.After(now)
}

// begin takes the refresh that is due; false: none is. demanded says that somebody waits
// for it.
func (s *schedule) begin(now time.Time) (demanded, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running || s.idle || s.due.IsZero() || s.due.After(now) {
		return false, false
	}
	s.running, s.serving, s.requested = true, s.requested, nil
	return len(s.serving) > 0, true
}

// end notes that a refresh has ended and plans the next one, or at once where somebody has
// asked for one meanwhile.
func (s *schedule) end(next, now time.Time, idle bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = false
	for _, done := range s.serving {
		close(done)
	}
	s.serving = nil
	s.due, s.idle = next, idle
	if len(s.requested) > 0 {
		s.due, s.idle = now, false
	}
}

// forward leaves those who wait for a refresh to another site's schedule.
func (s *schedule) forward(to *schedule) {
	s.mu.Lock()
	requested := s.requested
	s.requested = nil
	s.mu.Unlock()
	if len(requested) == 0 {
		return
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	to.requested = append(to.requested, requested...)
	to.due, to.idle = time.Unix(0, 1), false
}

// close lets everybody go who waits.
func (s *schedule) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, done := range append(s.requested, s.serving...) {
		close(done)
	}
	s.requested, s.serving = nil, nil
}

// isRequested reports whether somebody waits for a refresh that has not begun.
func (s *schedule) isRequested() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requested) > 0
}

// isRunning reports whether a refresh runs.
func (s *schedule) isRunning() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

// requestRate counts the requests of the last hour, by minutes.
type requestRate struct {
	mu      sync.Mutex
	minutes [60]uint32
	last    int64     // minute that was counted last
	latest  time.Time // request
}

func (r *requestRate) advance(minute int64) {
	if d := minute - r.last; d < 0 || d >= int64(len(r.minutes)) {
		r.minutes = [60]uint32{}
	} else {
		for m := r.last + 1; m <= minute; m++ {
			r.minutes[m%int64(len(r.minutes))] = 0
		}
	}
	r.last = minute
}

func (r *requestRate) add(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	minute := now.Unix() / 60
	r.advance(minute)
	r.minutes[minute%int64(len(r.minutes))]++
	r.latest = now
}

// since reports whether there was a request after a time.
func (r *requestRate) since(t time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.latest.After(t)
}

// counts are the requests of the last hour, and those of this minute and the one before.
func (r *requestRate) counts(now time.Time) (inHour, inMinute int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	minute := now.Unix() / 60
	r.advance(minute)
	for _, n := range r.minutes {
		inHour += int(n)
	}
	size := int64(len(r.minutes))
	return inHour, int(r.minutes[minute%size] + r.minutes[(minute+size-1)%size])
}

// visited are the paths that visitors have had, with the Unix second of the last visit. It
// is safe for concurrent use.
type visited struct {
	mu      sync.Mutex
	paths   map[string]int64
	max     int
	dropped int
}

// limit sets how many paths are remembered.
func (v *visited) limit(n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.max = n
}

// add notes a visit. Where there is no room, an old path is forgotten.
func (v *visited) add(path string, at int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.paths == nil {
		v.paths = make(map[string]int64)
	}
	last, known := v.paths[path]
	if !known && len(v.paths) >= v.max && !v.forget(at) {
		v.dropped++
		return
	}
	if !known {
		path = strings.Clone(path)
	}
	v.paths[path] = max(last, at)
}

// forget drops the oldest of a few paths that was visited before a time. Under mu.
func (v *visited) forget(before int64) bool {
	const few = 8
	oldest, n := "", 0
	for path, at := range v.paths { // in no order
		if at < before {
			oldest, before = path, at
		}
		if n++; n == few {
			break
		}
	}
	if oldest == "" {
		return false
	}
	v.dropped++
	delete(v.paths, oldest)
	return true
}

// sorted are the paths in order, without those of a last visit before since, which are
// forgotten.
func (v *visited) sorted(since int64) []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := make([]string, 0, len(v.paths))
	for path, at := range v.paths {
		if at < since {
			delete(v.paths, path)
			continue
		}
		all = append(all, path)
	}
	slices.Sort(all)
	return all
}

func (v *visited) count() (paths, dropped int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.paths), v.dropped
}
