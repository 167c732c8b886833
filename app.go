package sitemap

import (
	"cmp"
	"context"
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
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/accesslog"
	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/export"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

func init() {
	caddy.RegisterModule(new(App))
}

const (
	maxNamedHosts    = 100       // that are refreshed from the start
	maxOnDemandSites = 1000      // of hosts that only visitors named
	maxOnDemandBytes = 256 << 20 // of their records and documents
	longestIdle      = time.Hour // of the scheduler
	stopGrace        = 2 * time.Second
)

var (
	errTooManySites = errors.New("too many sites that no matcher names")
	errNoHost       = errors.New("not a host name")
)

// App owns the sites of all sitemap handlers and the schedule of their refreshes. Handlers
// load it; it needs no configuration.
type App struct {
	// Where what is known of pages is kept between restarts: a folder, or off.
	// Placeholders are replaced. Default: the folder sitemap under Caddy's data
	// directory.
	State string `json:"state,omitempty"`

	ctx    caddy.Context
	logger *zap.Logger
	now    func() time.Time
	number uint64 // of the configuration: the latest one refreshes the sites that several have

	storage             store.Storage // nil: in memory
	httpPort, httpsPort int
	fetchers            map[*caddyhttp.Server]*serverFetcher

	mu       sync.RWMutex
	handlers []*Handler
	sites    map[siteID]*site
	onDemand int        // of the sites
	aliasing sync.Mutex // held while aliases are settled
	refused  refusals

	started chan struct{} // closed when it is known where the handlers are mounted
	wake    chan struct{} // of the scheduler
	running context.Context
	cancel  context.CancelFunc
	group   sync.WaitGroup
	slots   crawl.Slots // computing slots of all crawls
	compute crawl.Slots // of selecting and building

	counts   counts
	departed *accesslog.Readers // counts of sites that there are no longer
	cleaned  atomic.Bool

	events *eventQueue

	building *export.Progress // of a build; nil: a server
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
	a.ctx, a.logger, a.now, a.number = ctx, ctx.Logger(), time.Now, configurations.Add(1)
	a.running, a.cancel = context.WithCancel(context.Background())
	pooled, _, err := counters.LoadOrNew(departedKey, func() (caddy.Destructor, error) { return new(accesslog.Readers), nil })
	if err != nil {
		return err
	}
	a.departed = pooled.(*accesslog.Readers)
	a.sites = make(map[siteID]*site)
	a.fetchers = make(map[*caddyhttp.Server]*serverFetcher)
	a.started, a.wake = make(chan struct{}), make(chan struct{}, 1)
	half := max(runtime.GOMAXPROCS(0)/2, 1)
	a.slots, a.compute = crawl.NewSlots(half), crawl.NewSlots(half)
	if a.events, err = newEventQueue(ctx, a.logger); err != nil {
		return err
	}
	a.counts = newCounts(ctx.GetMetricsRegistry())
	return ctx.GetMetricsRegistry().Register(collector{a})
}

// register makes a handler known while it is provisioned.
func (a *App) register(h *Handler) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.handlers = append(a.handlers, h)
}

// Start finds the sites and begins to refresh them.
func (a *App) Start() error {
	a.locateHandlers()
	folder := stateFolder(a.State, a.logger)
	a.storage = openStorage(folder)
	if folder != "" {
		a.group.Go(func() { orLeave(a.running, func() { logOldState(folder, a.logger) }) })
	}
	// Requests wait for this, and so find these sites made.
	a.namedSites(maxNamedHosts)
	a.takeOver()
	resumeLimiters(a.allSites())
	a.resumeAliases()
	for _, s := range a.allSites() {
		if len(s.twins()) == 0 { // those that may stand for each other are probed first
			s.resume()
		}
	}
	close(a.started)
	a.group.Go(func() { a.schedule(a.running) })
	a.group.Go(func() { orLeave(a.running, func() { a.events.run(a.running) }) })
	a.readLogs()
	return nil
}

// locateHandlers finds where the handlers are mounted in their servers' routes.
func (a *App) locateHandlers() {
	a.httpPort, a.httpsPort = caddyhttp.DefaultHTTPPort, caddyhttp.DefaultHTTPSPort
	if httpApp, err := a.ctx.AppIfConfigured("http"); err == nil {
		app := httpApp.(*caddyhttp.App)
		a.httpPort = cmp.Or(app.HTTPPort, a.httpPort)
		a.httpsPort = cmp.Or(app.HTTPSPort, a.httpsPort)
	}
	for _, h := range a.handlers {
		if a.fetchers[h.server] == nil {
			a.fetchers[h.server] = newServerFetcher(h.server)
			for handler, mounts := range walk(h.server) {
				handler.mounts = mounts
			}
		}
		h.listener = listenerOf(h.server, a.httpPort, a.httpsPort)
	}
}

// takeOver makes the sites that the configuration before this one had, besides those that
// are made from the start.
func (a *App) takeOver() {
	var found []*siteState
	states.Range(func(_, value any) bool {
		found = append(found, value.(*siteState))
		return true
	})
	for _, st := range found {
		i := slices.IndexFunc(a.handlers, func(h *Handler) bool {
			return h.settings.base == "" && st.onDemand == !h.names(st.id) && h.listener == st.listener && h.settings.path == st.path && h.mounts.matchesHost(st.id.host, st.id.prefix)
		})
		if i >= 0 {
			_, _ = a.site(a.handlers[i], siteID{a.handlers[i], st.id}, st.id.prefix)
		}
	}
}

// resumeLimiters lets handlers leave upstreams alone for as long as in the configuration
// before this one.
func resumeLimiters(sites []*site) {
	for _, s := range sites {
		if before := s.state.limiter.Load(); before != nil {
			set := &s.handler.settings.crawl
			s.handler.limiter = crawl.NewLimiter(set.Rate, set.Concurrency, before)
		}
	}
	for _, s := range sites {
		s.state.limiter.Store(s.handler.limiter)
	}
}

// Stop ends all refreshes and waits for them.
func (a *App) Stop() error {
	a.cancel()
	a.group.Wait()
	return nil
}

// Cleanup gives back what the sites hold. It runs after a failed Provision, too.
func (a *App) Cleanup() error {
	if a.departed == nil || a.cleaned.Swap(true) {
		return nil
	}
	defer func() { _, _ = counters.Delete(departedKey) }()
	a.cancel()
	a.group.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, s := range a.sites {
		s.drop()
		delete(a.sites, id)
	}
	for _, f := range a.fetchers {
		f.close()
	}
	return nil
}

// schedule starts refreshes as they become due.
func (a *App) schedule(ctx context.Context) {
	for ctx.Err() == nil {
		timer := time.NewTimer(a.startDue(ctx))
		select {
		case <-ctx.Done():
		case <-a.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// notify makes the scheduler look at the sites again.
func (a *App) notify() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// startDue starts the refreshes that are due, and returns how long it is until the next.
func (a *App) startDue(ctx context.Context) time.Duration {
	type planned struct {
		*site
		due time.Time
	}
	var all []planned
	a.mu.RLock()
	for _, s := range a.sites {
		if due, ok := s.schedule.next(); ok {
			all = append(all, planned{s, due})
		}
	}
	a.mu.RUnlock()
	// Sites on demand take turns: the one that has waited longest comes first.
	slices.SortFunc(all, func(x, y planned) int { return x.due.Compare(y.due) })
	now := a.now()
	for _, s := range all {
		if wait := s.due.Sub(now); wait > 0 {
			return min(wait, longestIdle)
		}
		if s.onDemand && !s.handler.onDemandTurn.TryLock() {
			continue // one at a time: whoever has the turn wakes the scheduler
		}
		demanded, ok := s.schedule.begin(now)
		if !ok {
			s.endTurn()
			continue
		}
		a.group.Go(func() { s.run(ctx, demanded) })
	}
	return longestIdle
}

// endTurn lets the next site on demand of the handler be refreshed.
func (s *site) endTurn() {
	if s.onDemand {
		s.handler.onDemandTurn.Unlock()
	}
}

// namedSites makes the sites that matchers and base URLs name, up to most hosts.
func (a *App) namedSites(most int) []*site {
	var named []*site
	for _, h := range a.handlers {
		for _, prefix := range h.mounts.prefixes() {
			if h.settings.base != "" {
				if s, err := a.site(h, siteID{handler: h}, prefix); err == nil && !slices.Contains(named, s) {
					named = append(named, s)
				}
				continue
			}
			for _, host := range h.mounts.hosts(prefix) {
				if len(named) >= most {
					h.logger.Info("many hosts are named: the sitemaps of the others are built when they are first requested", zap.Int("named", most))
					return named
				}
				id := siteID{h, address{h.listener.scheme, host, h.listener.port, prefix}}
				if s, err := a.site(h, id, prefix); err == nil {
					named = append(named, s)
				}
			}
		}
	}
	return named
}

// site returns the site of an ID, and makes it if it is new. The error is errTooManySites.
func (a *App) site(h *Handler, id siteID, prefix string) (*site, error) {
	if s := a.lookup(id); s != nil {
		return s, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.sites[id]; s != nil {
		return s, nil
	}
	onDemand := h.settings.base == "" && !h.names(id.address)
	if onDemand {
		if err := a.makeRoom(); err != nil {
			return nil, err
		}
		a.onDemand++
	}
	s := newSite(a, newIdentity(h, id, prefix, onDemand))
	s.traffic.add(a.now())
	a.sites[id] = s
	if isDone(a.started) { // else Start does so when all twins are there
		s.state.limiter.Store(h.limiter)
		s.resume()
	}
	a.notify()
	return s, nil
}

// makeRoom lets one more site on demand in, if need be in the place of another: an empty
// one, else the one with the fewest requests of the last hour, oldest first. While every
// one had a request within the last minutes, none goes. Under mu.
func (a *App) makeRoom() error {
	now := a.now()
	if a.refused.recently(now) {
		a.refused.count++
		return errTooManySites
	}
	worst, bytes := a.leastWanted(now)
	if a.onDemand < maxOnDemandSites && bytes < maxOnDemandBytes {
		return nil
	}
	if worst == nil {
		a.refused.count++
		if a.refused.log(now) {
			a.logger.Warn("too many sites are known by their visitors' Host headers alone; name hosts in the configuration, or set base_url",
				zap.Int("sites", a.onDemand), zap.Int64("bytes", bytes), zap.Int("refused", a.refused.count))
			a.refused.count = 0
		}
		return errTooManySites
	}
	a.evict(worst)
	return nil
}

// shrink drops sites on demand until they hold no more than they may: first those that
// makeRoom would, at last the one that has grown.
func (a *App) shrink(grown *site) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.sites[grown.id] == grown {
		worst, bytes := a.leastWanted(a.now())
		if bytes <= maxOnDemandBytes {
			return
		}
		a.evict(cmp.Or(worst, grown))
	}
}

// evict drops a site on demand. Under mu.
func (a *App) evict(s *site) {
	delete(a.sites, s.id)
	a.onDemand--
	s.drop()
}

// leastWanted is the site on demand that goes first; nil: each had a request lately, or is
// being refreshed. bytes are those of all. Under mu.
func (a *App) leastWanted(now time.Time) (worst *site, bytes int64) {
	var least [3]int64
	for _, s := range a.sites {
		if !s.onDemand {
			continue
		}
		bytes += s.state.bytes.Load()
		inHour, inMinute := s.traffic.counts(now)
		if inMinute > 0 || s.schedule.isRunning() {
			continue
		}
		filled := int64(0)
		if s.state.Index.Load() != nil {
			filled = 1
		}
		if rank := [3]int64{filled, int64(inHour), s.made.UnixNano()}; worst == nil || slices.Compare(rank[:], least[:]) < 0 {
			worst, least = s, rank
		}
	}
	return worst, bytes
}

// refusals are those of sites for which there was no room.
type refusals struct {
	count  int
	last   time.Time // found out by counting
	logged time.Time
}

// recently reports whether it need not be found out again.
func (r *refusals) recently(now time.Time) bool {
	d := now.Sub(r.last)
	return 0 <= d && d < time.Second
}

// log reports whether a line is to be written, once a minute at most.
func (r *refusals) log(now time.Time) bool {
	r.last = now
	if d := now.Sub(r.logged); 0 <= d && d < time.Minute {
		return false
	}
	r.logged = now
	return true
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

// allSites are the sites there are, by their URLs.
func (a *App) allSites() []*site {
	a.mu.RLock()
	all := make([]*site, 0, len(a.sites))
	for _, s := range a.sites {
		all = append(all, s)
	}
	a.mu.RUnlock()
	slices.SortFunc(all, func(x, y *site) int {
		if order := strings.Compare(x.url(), y.url()); order != 0 {
			return order
		}
		return strings.Compare(x.sitemapURL(), y.sitemapURL())
	})
	return all
}

// isDone reports whether a channel is closed.
func isDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// awaitStart waits until Start has found where the handlers are mounted: Caddy may begin to
// serve before. It may not come to it where another app fails to start.
func (a *App) awaitStart(ctx context.Context) error {
	if isDone(a.started) {
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

// siteOf returns the site that a request to a handler is for. The error is errNoHost or
// errTooManySites.
func (a *App) siteOf(h *Handler, r *http.Request, prefix string) (*site, error) {
	id, err := h.idOf(r, prefix)
	if err != nil {
		return nil, err
	}
	s, err := a.site(h, id, prefix)
	if err == nil && h.settings.base == "" {
		followListener(a, s)
	}
	return s, err
}

// lookup returns the site of an ID; nil: there is none.
func (a *App) lookup(id siteID) *site {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.sites[id]
}

// idOf tells which site a request is for. The error is errNoHost. What a proxy in front
// says of the host counts only where the matchers name no hosts, or name that one: else a
// cache could be poisoned with a foreign Sitemap line.
func (h *Handler) idOf(r *http.Request, prefix string) (siteID, error) {
	if h.settings.base != "" {
		return siteID{handler: h}, nil
	}
	id := siteID{h, address{scheme: h.listener.scheme, port: h.listener.port, prefix: prefix}}
	host := r.Host
	if scheme, forwardedHost := forwarded(r); scheme != "" || forwardedHost != "" {
		if clean, ok := origin.CleanHost(forwardedHost); forwardedHost != "" && (!ok || h.mounts.matchesHost(clean, prefix)) {
			host = forwardedHost
		}
		id.scheme, id.port = cmp.Or(scheme, id.scheme), ""
		var ok bool
		if id.port, ok = origin.CleanPort(id.scheme, host); !ok {
			return id, fmt.Errorf("'%.100s': %w", host, errNoHost)
		}
	}
	var ok bool
	if id.host, ok = origin.CleanHost(host); !ok {
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

// Interface guards
var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
)
