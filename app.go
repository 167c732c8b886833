package sitemap

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
)

func init() {
	caddy.RegisterModule(new(App))
}

const (
	maxNamedHosts    = 100       // that are looked up at the start
	maxVisitorSites  = 1000      // of hosts that only visitors named
	maxVisitorBytes  = 256 << 20 // of their snapshots
	usedLately       = time.Hour
	lookupsAtATime   = 8
	shareOfTime      = 20 // a refresh takes a twentieth of the time at most
	retryContended   = 200 * time.Millisecond
	longestScheduled = time.Hour
	stopGrace        = 2 * time.Second // for a source to heed that its refresh is cancelled; longer than for an ask
)

var (
	errTooManySites = errors.New("too many sites that no matcher names")
	errNoHost       = errors.New("not a host name")
)

// App owns the sites of all sitemap handlers, the schedule of their refreshes and
// what these may use. Handlers load it; it needs no configuration.
type App struct {
	// Where what is known of pages is kept between restarts: a folder, or off.
	// Placeholders are replaced. Default: the folder sitemap under Caddy's data
	// directory.
	State string `json:"state,omitempty"`

	ctx    caddy.Context
	logger *zap.Logger
	now    func() time.Time

	store      *store
	generation *generation
	library    library // of what is known of sites

	httpPort, httpsPort int
	askers              map[*caddyhttp.Server]*asker
	routes              map[*caddyhttp.Server]string // tells apart what they answer

	mu           sync.RWMutex
	handlers     []*Handler
	sites        map[siteID]*site
	visitorSites int
	visitorBytes atomic.Int64 // of their snapshots
	advised      map[advice]bool
	full         fullness

	started chan struct{}
	wake    chan struct{}
	cancel  context.CancelFunc
	running context.Context
	group   sync.WaitGroup
	first   chan struct{} // slots of first refreshes
	later   chan struct{} // slots of later refreshes
	asks    chan struct{} // slots of asking in the background for what the server answers itself

	visits        chan visit // that requests showed; nil: no handler watches
	droppedVisits atomic.Uint64
	counts        counts

	events        *caddyevents.App
	begun         chan struct{} // closed when all apps have started
	announced     chan event
	droppedEvents atomic.Uint64
	absentName    string // of pages that cannot exist

	building *building // a build without a server; nil: a server
}

// CaddyModule returns the Caddy module information.
func (*App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "sitemap",
		New: func() caddy.Module { return new(App) },
	}
}

// Provision prepares the app, in memory alone.
func (a *App) Provision(ctx caddy.Context) error {
	a.ctx, a.logger, a.now = ctx, ctx.Logger(), time.Now
	pooled, _, err := snapshots.LoadOrNew(snapshotsKey, func() (caddy.Destructor, error) { return newStore(), nil })
	if err != nil {
		return fmt.Errorf("loading snapshots: %w", err)
	}
	a.store = pooled.(*store)
	a.generation = a.store.join()
	a.sites, a.advised = make(map[siteID]*site), make(map[advice]bool)
	a.askers, a.routes = make(map[*caddyhttp.Server]*asker), make(map[*caddyhttp.Server]string)
	a.absentName = "no-such-page-" + strings.ToLower(rand.Text()[:8])
	a.started, a.wake = make(chan struct{}), make(chan struct{}, 1)
	a.running, a.cancel = context.WithCancel(context.Background())
	cores := runtime.GOMAXPROCS(0)
	a.first = make(chan struct{}, max(cores, 2))
	a.later = make(chan struct{}, max(cores/2, 1))
	a.asks = make(chan struct{}, max(cores/2, 1))
	if err := a.joinEvents(); err != nil {
		return err
	}
	return a.registerMetrics()
}

// joinEvents finds Caddy's events app, and learns from it when all apps have started.
func (a *App) joinEvents() error {
	events, err := a.ctx.App("events")
	if err != nil {
		return fmt.Errorf("loading the events app: %w", err)
	}
	a.events, a.begun, a.announced = events.(*caddyevents.App), make(chan struct{}), make(chan event, maxEvents)
	return a.events.On("started", onStarted(sync.OnceFunc(func() { close(a.begun) })))
}

// register makes a handler known while it is provisioned.
func (a *App) register(h *Handler) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.handlers = append(a.handlers, h)
}

// Start finds the sites and begins to refresh them.
func (a *App) Start() error {
	a.seatHandlers()
	a.library.open(a)
	// Requests wait for this, and so find these sites made.
	named := a.namedSites(maxNamedHosts)
	visited := a.visitedSites(named)
	a.resume(slices.Concat(named, visited))
	if slices.ContainsFunc(a.handlers, func(h *Handler) bool { return h.watches }) {
		a.visits = make(chan visit, maxVisits)
	}
	close(a.started)
	a.group.Go(func() {
		a.lookUp(a.running, named, visited)
		a.store.settle(a.generation)
		a.library.expire(a.running, a.prefixes(), a.now())
	})
	a.group.Go(func() { a.run(a.running) })
	a.group.Go(func() { a.emitEvents(a.running) })
	a.discover()
	return nil
}

// seatHandlers finds where the handlers sit in their servers' routes.
func (a *App) seatHandlers() {
	a.httpPort, a.httpsPort = caddyhttp.DefaultHTTPPort, caddyhttp.DefaultHTTPSPort
	if httpApp, err := a.ctx.AppIfConfigured("http"); err == nil {
		app := httpApp.(*caddyhttp.App)
		a.httpPort = cmp.Or(app.HTTPPort, a.httpPort)
		a.httpsPort = cmp.Or(app.HTTPSPort, a.httpsPort)
	}
	for _, h := range a.handlers {
		if a.askers[h.server] != nil {
			continue
		}
		a.askers[h.server] = newAsker(h.server)
		a.routes[h.server] = routesDigest(h.server)
		for handler, seats := range walk(h.server) {
			handler.seats = seats
		}
	}
	for _, h := range a.handlers {
		h.listener = listenerOf(h.server, a.httpPort, a.httpsPort)
	}
}

// discover begins to take what visitors show.
func (a *App) discover() {
	discovers := false
	for _, h := range a.handlers {
		discovers = discovers || h.discovery != nil
		for _, r := range h.readings() {
			a.group.Go(func() { r.run(a.running) })
		}
	}
	if a.visits != nil {
		a.group.Go(func() { a.takeVisits(a.running) })
	}
	if discovers {
		a.group.Go(func() { a.keepPaths(a.running) })
	}
}

// prefixes are the folders in which what is known of the sites is kept.
func (a *App) prefixes() map[string]bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	used := make(map[string]bool)
	for _, s := range a.sites {
		used[s.shelf.prefix] = true
	}
	return used
}

// Stop ends all refreshes and waits for them.
func (a *App) Stop() error {
	a.cancel()
	a.group.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	a.keepAllPaths(ctx)
	return nil
}

// Cleanup gives back the snapshots. It runs after a failed Provision, too.
func (a *App) Cleanup() error {
	if a.generation == nil {
		return nil
	}
	a.cancel()
	a.group.Wait()
	a.store.leave(a.generation)
	a.generation = nil
	_, err := snapshots.Delete(snapshotsKey)
	return err
}

// run starts refreshes as they become due.
func (a *App) run(ctx context.Context) {
	for ctx.Err() == nil {
		timer := time.NewTimer(a.dispatch(ctx))
		select {
		case <-ctx.Done():
		case <-a.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// rouse makes run look at the schedule again.
func (a *App) rouse() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// lookUp looks at the sites that there are at the start, and settles which of them
// stand for others. None is refreshed before that is known of it.
func (a *App) lookUp(ctx context.Context, named, visited []*site) {
	slots := make(chan struct{}, lookupsAtATime)
	twins := twins(named)
	var group sync.WaitGroup
	for _, s := range slices.Concat(named, visited) {
		if slots <- struct{}{}; ctx.Err() != nil {
			break
		}
		group.Go(func() {
			defer func() { <-slots }()
			// A refresh that follows looks again where this one fails.
			_ = s.look(ctx)
			if ctx.Err() == nil && !slices.Contains(twins, s) {
				a.begin(s)
			}
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		return
	}
	a.unite(ctx, twins)
	for _, s := range twins {
		a.begin(s)
	}
}

// begin lets a site be refreshed that was looked at, or forgets it if another
// handler, with the same settings, had it.
func (a *App) begin(s *site) {
	if s.visitors && s.looked && !s.sight.reached {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.forget(s)
		return
	}
	s.due.Store(a.now().UnixNano())
	s.busy.Store(false)
	a.rouse()
}

// visitedSites makes anew the sites that requests made in the configuration before
// this one, so that they are served on.
func (a *App) visitedSites(named []*site) []*site {
	var visited []*site
	for _, h := range a.handlers {
		for at := range a.remembered(h) {
			if !h.seats.leadTo(at.host, at.folder) || !h.names(at) && slices.ContainsFunc(a.handlers, func(o *Handler) bool { return o.names(at) }) {
				continue
			}
			if s, err := a.site(h, siteID{h, at}, at.folder, heldBack); err == nil && !slices.Contains(named, s) {
				visited = append(visited, s)
			}
		}
	}
	return visited
}

// resume lets sites serve on from what the configuration before this one left, before
// it is known whether their pages still lie where they did.
func (a *App) resume(sites []*site) {
	keys := make(map[*Handler]map[address]string)
	for _, s := range sites {
		if keys[s.handler] == nil {
			keys[s.handler] = a.remembered(s.handler)
		}
		if key, ok := keys[s.handler][s.id.address]; ok {
			s.hold(key)
		}
	}
}

// remembered are the keys of what the configuration before this one had of a handler's
// sites.
func (a *App) remembered(h *Handler) map[address]string {
	return a.store.remembered(h.identity(), string(h.settings.digest))
}

// forget drops a visitors' site, which the caller has made busy. Under mu.
func (a *App) forget(s *site) {
	delete(a.sites, s.id)
	a.visitorSites--
	s.drop()
}

// namedSites makes the sites that matchers and base URLs name, up to most hosts.
func (a *App) namedSites(most int) []*site {
	var named []*site
	for _, h := range a.handlers {
		named = append(named, a.namedSitesOf(h, most-len(named))...)
	}
	return named
}

// namedSitesOf makes up to most sites of a handler whose hosts are known without a
// request.
func (a *App) namedSitesOf(h *Handler, most int) []*site {
	var named []*site
	for _, folder := range h.seats.folders() {
		if h.settings.base != "" {
			if s, err := a.site(h, siteID{handler: h}, folder, heldBack); err == nil && !slices.Contains(named, s) {
				named = append(named, s)
			}
			continue
		}
		for _, host := range h.seats.hosts(folder) {
			if len(named) >= most {
				h.logger.Info("many hosts are named: the other ones' sitemaps are built when they are first asked for", zap.Int("looked_up", maxNamedHosts))
				return named
			}
			id := siteID{h, address{h.listener.scheme, host, h.listener.port, folder}}
			if s, err := a.site(h, id, folder, heldBack); err == nil {
				named = append(named, s)
			}
		}
	}
	return named
}

// When a new site's first refresh is due.
const (
	atOnce   = false
	heldBack = true // until its look-up has ended
)

// site returns the site of an ID, and makes it if it is new. The error is
// errTooManySites.
func (a *App) site(h *Handler, id siteID, folder string, heldBack bool) (*site, error) {
	a.mu.RLock()
	s := a.sites[id]
	a.mu.RUnlock()
	if s != nil {
		return s, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.sites[id]; s != nil {
		return s, nil
	}
	visitors := h.settings.base == "" && !h.names(id.address)
	if visitors {
		if err := a.makeRoom(); err != nil {
			return nil, err
		}
		a.visitorSites++
	}
	s = newSite(a, h, id, folder, visitors)
	a.sites[id] = s
	if heldBack {
		s.busy.Store(true)
		return s, nil
	}
	s.due.Store(a.now().UnixNano())
	a.rouse()
	return s, nil
}

// makeRoom lets one more site of a visitor's word in, in the place of the one
// that was not used for longest, if none may be added.
func (a *App) makeRoom() error {
	now := a.now()
	if a.full.holds(now) {
		a.full.refused++
		return errTooManySites
	}
	bytes := a.visitorBytes.Load()
	if a.visitorSites < maxVisitorSites && bytes < maxVisitorBytes {
		return nil
	}
	oldest := a.unusedLongest(now)
	if oldest == nil || now.Unix()-oldest.lastUse(now) < int64(usedLately/time.Second) || !oldest.busy.CompareAndSwap(false, true) {
		a.full.since = now
		a.full.refused++
		a.sayFull(now, bytes)
		return errTooManySites
	}
	a.forget(oldest)
	return nil
}

// fullness notes that no further site of a visitor's word may be made.
type fullness struct {
	since   time.Time // found out by counting
	said    time.Time
	refused int // since it was said
}

// holds reports whether it need not be found out again.
func (f *fullness) holds(now time.Time) bool {
	d := now.Sub(f.since)
	return 0 <= d && d < time.Second
}

// sayFull logs what was refused, once a minute at most. Under mu.
func (a *App) sayFull(now time.Time, bytes int64) {
	if d := now.Sub(a.full.said); 0 <= d && d < time.Minute {
		return
	}
	a.logger.Warn("too many sites are known by their visitors' Host headers alone; name hosts in the configuration, or set base_url",
		zap.Int("sites", a.visitorSites), zap.Int64("bytes", bytes), zap.Int("refused", a.full.refused))
	a.full.said, a.full.refused = now, 0
}

// unusedLongest is the visitors' site that was not used for longest, of those that
// are not being refreshed. Under mu.
func (a *App) unusedLongest(now time.Time) *site {
	var oldest *site
	for _, s := range a.sites {
		if s.visitors && !s.busy.Load() && (oldest == nil || s.lastUse(now) < oldest.lastUse(now)) {
			oldest = s
		}
	}
	return oldest
}

// dispatch starts the refreshes that are due and have a slot, and returns how long
// it is until the next one.
func (a *App) dispatch(ctx context.Context) time.Duration {
	now := a.now()
	wait := longestScheduled
	for _, s := range a.due(now, &wait) {
		slots := a.later
		if s.isFirst() {
			slots = a.first
		}
		select {
		case slots <- struct{}{}:
		default:
			continue // whoever frees the slot rouses run
		}
		if !s.busy.CompareAndSwap(false, true) {
			<-slots
			continue
		}
		a.group.Go(func() {
			if s.refreshOrLeave(ctx) {
				s.busy.Store(false)
			}
			<-slots
			a.rouse()
		})
	}
	return wait
}

// refreshOrLeave is refresh, which it leaves to itself where a source goes on although
// ctx has ended: nothing can end that, but Stop shall not wait for it. What such a
// refresh comes to is of no account. A false means that it was left.
func (s *site) refreshOrLeave(ctx context.Context) bool {
	if orLeave(ctx, func() { s.refresh(ctx) }) {
		return true
	}
	s.logger.Warn("a source of pages goes on although it was told to end")
	return false
}

// due lists the sites whose refresh is due: named ones first, then as they wait.
func (a *App) due(now time.Time, wait *time.Duration) []*site {
	a.mu.RLock()
	defer a.mu.RUnlock()
	// Of those that were let in while they were small.
	full := a.visitorBytes.Load() >= maxVisitorBytes
	var due []*site
	for _, s := range a.sites {
		at := s.dueAt(now)
		if at.IsZero() || s.busy.Load() {
			continue
		}
		if full && s.visitors && s.isFirst() {
			s.wanted.take().grant() // it is not to be
			continue
		}
		if d := at.Sub(now); d > 0 {
			*wait = min(*wait, d)
			continue
		}
		due = append(due, s)
	}
	slices.SortFunc(due, func(x, y *site) int {
		if x.visitors != y.visitors {
			if x.visitors {
				return 1
			}
			return -1
		}
		return x.dueAt(now).Compare(y.dueAt(now))
	})
	return due
}

// isStarted reports whether Start has found where the handlers sit. Caddy may begin
// to serve before.
func (a *App) isStarted() bool {
	select {
	case <-a.started:
		return true
	default:
		return false
	}
}

// awaitStart waits until Start has found where the handlers sit. It may not come to
// that where another app fails to start.
func (a *App) awaitStart(ctx context.Context) error {
	if a.isStarted() {
		return nil
	}
	timer := time.NewTimer(firstWait)
	defer timer.Stop()
	select {
	case <-a.started:
		return nil
	case <-timer.C:
		return errNotReady
	case <-a.running.Done():
		return errNotReady
	case <-ctx.Done():
		return ctx.Err()
	}
}

// siteOf returns the site that a request to a handler is for. The error is errNoHost
// or errTooManySites.
func (a *App) siteOf(h *Handler, r *http.Request, folder string) (*site, error) {
	id, err := h.idOf(r, folder)
	if err != nil {
		return nil, err
	}
	s, err := a.site(h, id, folder, atOnce)
	if err == nil && h.settings.base == "" {
		a.followListener(s)
	}
	return s, err
}

// seenSite is siteOf for sites that there are; nil: there is none.
func (a *App) seenSite(h *Handler, r *http.Request, folder string) *site {
	id, err := h.idOf(r, folder)
	if err != nil {
		return nil
	}
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.sites[id]
}

// idOf tells which site a request is for. The error is errNoHost.
func (h *Handler) idOf(r *http.Request, folder string) (siteID, error) {
	if h.settings.base != "" {
		return siteID{handler: h}, nil
	}
	id := siteID{h, address{scheme: h.listener.scheme, port: h.listener.port, folder: folder}}
	host := r.Host
	if scheme, forwardedHost := forwarded(r); scheme != "" || forwardedHost != "" {
		id.scheme, id.port = cmp.Or(scheme, id.scheme), ""
		host = cmp.Or(forwardedHost, host)
		var ok bool
		if id.port, ok = forwardedPort(id.scheme, host); !ok {
			return id, fmt.Errorf("'%.100s': %w", host, errNoHost)
		}
	}
	var ok bool
	if id.host, ok = cleanHost(host); !ok {
		return id, fmt.Errorf("'%.100s': %w", host, errNoHost)
	}
	return id, nil
}

// followListener lets another site of the handler stand for one whose https ends at a
// proxy, where it does so at the listener itself: www. for the apex, or the other way.
func (a *App) followListener(s *site) {
	at := s.id.address
	at.scheme, at.port = s.handler.listener.scheme, s.handler.listener.port
	if at == s.id.address || s.visitors || s.main.Load() != nil {
		return
	}
	a.mu.RLock()
	direct := a.sites[siteID{s.handler, at}]
	a.mu.RUnlock()
	if direct == nil {
		return
	}
	main := direct.main.Load()
	if main == nil || main.handler != s.handler || main.id.host == s.id.host {
		return
	}
	id := s.id
	id.host = main.id.host
	if main, err := a.site(s.handler, id, id.folder, atOnce); err == nil {
		s.main.Store(main)
		s.markReady()
		s.handOver(main)
	}
}

// names reports whether an address is one that the configuration spells out: at the
// listener itself, or where https ends before it. What else a proxy passes on of ports
// may be its visitors' word.
func (h *Handler) names(at address) bool {
	own := at.scheme == h.listener.scheme && at.port == h.listener.port
	return (own || at.scheme == "https" && at.port == "") && h.seats.spells(at.host, at.folder)
}

// keyOf is the hash of all that shapes a site's snapshot.
func keyOf(parts ...any) string {
	sum := sha256.New()
	for _, part := range parts {
		_, _ = fmt.Fprintf(sum, "%q\n", part)
	}
	return string(sum.Sum(nil))
}

// Interface guards
var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
)
