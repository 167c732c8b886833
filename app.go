package sitemap

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
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

	"github.com/seed3295b519/caddy-sitemap/internal/announce"
	"github.com/seed3295b519/caddy-sitemap/internal/export"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
	"github.com/seed3295b519/caddy-sitemap/internal/schedule"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

func init() {
	caddy.RegisterModule(new(App))
}

const (
	maxOnDemandSites = 1000             // sites whose hosts only visitors named
	maxOnDemandBytes = 256 << 20        // of the records and documents of these
	justNow          = 30 * time.Second // after a request, a site is not dropped that was requested only once
	lately           = 2 * time.Minute  // after a request, a site is not dropped for another one
	firstWait        = 10 * time.Second // of a request for the first sitemap
	stopGrace        = 2 * time.Second  // for what Stop waits for
)

var (
	errTooManySites = errors.New("too many sites that no matcher names")
	errNoHost       = errors.New("not a host name")
	errNotReady     = errors.New("the sitemap is not ready yet")
)

// App owns the sites of all sitemap handlers, and refreshes each when it is due. Handlers load it; it
// needs no configuration. In a Caddyfile, it is a global option:
//
//	{
//		sitemap {
//			state /var/lib/caddy/sitemap
//			storage caddy
//		}
//	}
//
// In JSON:
//
//	{"apps": {"sitemap": {"state": "/var/lib/caddy/sitemap", "storage": "caddy"}}}
//
// Another storage than Caddy's is named as in Caddy's own option:
//
//	{
//		sitemap {
//			storage file_system /mnt/sitemap
//		}
//	}
//
// In JSON:
//
//	{"apps": {"sitemap": {"storage": {"module": "file_system", "root": "/mnt/sitemap"}}}}
type App struct {
	// The folder in which the records of pages are kept between restarts, or `off` to keep them in
	// memory. Global placeholders are replaced. Default: the folder `sitemap` in Caddy's data directory.
	State string `json:"state,omitempty"`

	// Where the records, documents and announcements of sites are kept: `"local"` for the state folder, `"caddy"` for
	// Caddy's storage, or a storage module for another one, apart from certificates. The keys are below `sitemap/`. Processes
	// with the same storage and sites share them: one at a time refreshes a site, by its own options, and all serve the
	// same documents. The state folder has all of it, too. Sites that only visitors named are not shared. Default: `"local"`.
	StorageRaw json.RawMessage `json:"storage,omitempty" caddy:"namespace=caddy.storage inline_key=module"`

	// With shared records: how long a process that has nothing to serve, neither from the storage nor from its state folder,
	// waits for a storage that does not respond, at least `1s`. Until then, it responds with 503, as what it could list by
	// itself is a fragment of what the others list; then it begins as if it were alone. Default: `10m`.
	FleetPatience caddy.Duration `json:"fleet_patience,omitempty"`

	ctx    caddy.Context
	logger *zap.Logger
	now    func() time.Time
	number uint64 // of the configuration: see latest
	before uint64 // number of the configuration that was started before

	folder   string // of the records; "": in memory
	sharing  storageSetting
	fetchers map[*caddyhttp.Server]*serverFetcher

	handlers []*Handler      // complete once provisioned
	named    map[string]bool // URLs of the sites that the configuration names; complete once the first of them is made
	sampled  *zap.Logger     // of the handlers, for sites on demand: each message once a minute; nil: there are no handlers
	aliasing sync.Mutex      // held while aliases are settled; mu is not taken meanwhile

	mu        sync.RWMutex
	disk      record.Storage // in folder; nil: no site has used it
	sites     map[siteID]*site
	keys      map[string]bool // of their states
	scheduled bool            // refreshes have started
	full      time.Time       // when there was last no room for a site
	refused   int             // sites for which there was no room

	started   chan struct{} // closed when the handlers' mounts are known
	running   context.Context
	cancel    context.CancelFunc
	group     sync.WaitGroup
	dropped   sync.Once       // the sites
	unwatched sync.Once       // it was said: see logWatch
	slots     wait.Slots      // computing slots of all crawls
	compute   wait.Slots      // of selecting and building
	turns     *schedule.Turns // of all refreshes, save first looks at hosts that visitors named

	announcer  *announce.Client
	serving    chan struct{} // closed when all apps have started
	setServing func()        // closes it

	counts   counts
	events   *eventQueue
	building *export.Progress // of a build; nil: a server
}

// configurations counts those with a sitemap; latest is the number of the one started last, which alone refreshes
// sites: Caddy stops the one before only afterwards, which takes long while connections are open.
var configurations, latest atomic.Uint64

// isSuperseded reports whether another configuration has started since, which refreshes the sites.
func (a *App) isSuperseded() bool { return latest.Load() > a.number }

// CaddyModule returns the Caddy module information.
func (*App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "sitemap", New: func() caddy.Module { return new(App) }}
}

// Provision prepares the app. It touches nothing outside of memory, save what a storage module does.
func (a *App) Provision(ctx caddy.Context) (err error) {
	a.ctx = ctx
	a.logger = ctx.Logger()
	a.now = time.Now
	a.number = configurations.Add(1)
	a.running, a.cancel = context.WithCancel(context.Background())
	a.started = make(chan struct{})
	a.sites = make(map[siteID]*site)
	a.keys = make(map[string]bool)
	a.fetchers = make(map[*caddyhttp.Server]*serverFetcher)
	// The other half of the cores is for requests.
	half := max(runtime.GOMAXPROCS(0)/2, 1)
	a.slots = wait.NewSlots(half)
	a.compute = wait.NewSlots(half)
	a.turns = schedule.NewTurns(maxRefreshes)
	a.folder, err = stateFolder(a.State)
	if err != nil {
		return err
	}
	a.sharing, err = loadSharing(ctx, a)
	if err != nil {
		return err
	}
	if err := checkPatience(a.FleetPatience); err != nil {
		return err
	}
	if a.State == "" && a.folder == "" {
		a.logger.Warn("no home folder for the state, so pages are fetched again after a restart: " +
			"set 'state' of the sitemap app, or XDG_DATA_HOME")
	}
	if warning := a.sharing.warning(); warning != "" {
		a.logger.Warn(warning)
	}
	a.events, err = newEventQueue(a)
	if err != nil {
		return err
	}
	a.serving = make(chan struct{})
	a.setServing = sync.OnceFunc(func() { close(a.serving) })
	a.announcer = announce.NewClient(fetchUserAgent, announceAtOnce)
	a.counts = newCounts(ctx.GetMetricsRegistry())
	return ctx.GetMetricsRegistry().Register(collector{a})
}

// Start finds the sites and begins to refresh them.
func (a *App) Start() error {
	a.before = latest.Swap(a.number)
	a.locateHandlers()
	// Requests wait for this, and so find these sites made.
	a.namedSites()
	a.takeOver()
	close(a.started)
	if a.folder != "" {
		go a.pruneVisited()
	}
	a.mu.Lock()
	a.scheduled = true
	for _, s := range a.sites {
		a.run(s)
	}
	a.mu.Unlock()
	a.readLogs()
	return nil
}

// locateHandlers finds where the handlers are mounted in their servers' routes.
func (a *App) locateHandlers() {
	httpPort := caddyhttp.DefaultHTTPPort
	httpsPort := caddyhttp.DefaultHTTPSPort
	if httpApp, err := a.ctx.AppIfConfigured("http"); err == nil {
		app := httpApp.(*caddyhttp.App)
		httpPort = cmp.Or(app.HTTPPort, httpPort)
		httpsPort = cmp.Or(app.HTTPSPort, httpsPort)
	}
	isInErrors := make(map[*Handler]bool)
	for _, h := range a.handlers {
		if a.fetchers[h.server] == nil {
			port, _ := mainListener(h.server, httpPort)
			f := newServerFetcher(a.running, h.server, port)
			if len(h.server.TLSConnPolicies) > 0 {
				f.tls = h.server.TLSConnPolicies.TLSConfig(a.ctx)
			}
			a.fetchers[h.server] = f
			for handler, mounts := range walk(h.server) {
				handler.mounts = mounts
			}
			if h.server.Errors != nil {
				for handler := range walkRoutes(h.server, h.server.Errors.Routes) {
					isInErrors[handler] = true
				}
			}
		}
		h.setListener(listenerOf(h.server, httpPort, httpsPort))
		if warning := h.mounts.misplaced(isInErrors[h]); warning != "" {
			h.logger.Warn(warning)
		}
	}
}

// takeOver makes the sites that the configuration before had, besides those that namedSites makes.
func (a *App) takeOver() {
	var found []*siteState
	states.Range(func(_, value any) bool {
		found = append(found, value.(*siteState))
		return true
	})
	for _, st := range found {
		// Nearly all are made already: where there are a thousand, they need no handler to be found.
		if a.keys[st.place.key] {
			continue
		}
		if h := a.handlerOf(st); h != nil {
			_, _ = a.site(siteID{h, st.id}) // it is dropped if there is no room
		}
	}
}

// handlerOf returns the handler that serves the site with a state now, on demand or not as before; nil: none does.
func (a *App) handlerOf(st *siteState) *Handler {
	i := slices.IndexFunc(a.handlers, func(h *Handler) bool {
		isSame := h.settings.base == "" && h.listener == st.listener && h.settings.path == st.path
		return isSame && st.onDemand == !h.spellsOut(st.id) && h.mounts.matchesHost(st.id.host, st.id.prefix)
	})
	if i < 0 {
		return nil
	}
	return a.handlers[i]
}

// Stop ends all refreshes and waits for them.
func (a *App) Stop() error {
	// From now on, site makes no site for late requests: its state would never be released, and no goroutine may be started while
	// Wait waits.
	a.mu.Lock()
	a.cancel()
	a.mu.Unlock()
	a.group.Wait()
	return nil
}

// Cleanup releases what the sites hold. It runs after a failed Provision, too.
func (a *App) Cleanup() error {
	if a.running == nil {
		return nil
	}
	// If this configuration failed to start, the one before goes on.
	latest.CompareAndSwap(a.number, a.before)
	_ = a.Stop()
	// Until now, the sites have served requests that began before a reload.
	a.dropped.Do(func() {
		for _, s := range a.sites {
			s.drop()
		}
	})
	return nil
}

// namedSites makes and returns the sites that matchers and base URLs name. There may be thousands.
func (a *App) namedSites() []*site {
	a.named = make(map[string]bool)
	var ids []siteID
	for _, h := range a.handlers {
		isDone := make(map[string]bool) // by prefix, which thousands of mounts may share
		for _, m := range h.mounts {
			if isDone[m.prefix] {
				continue
			}
			isDone[m.prefix] = true
			hosts := h.mounts.hosts(m.prefix)
			if h.settings.base != "" {
				hosts = []string{""}
			}
			for _, host := range hosts {
				id, _ := h.idOf(&http.Request{Host: host}, m.prefix)
				i := newIdentity(id, false)
				a.named[i.url()] = true
				ids = append(ids, id)
			}
		}
	}
	// Of several that may have the same state, it is always the same one that has it. Handlers of several servers are in no order.
	isWWW := func(id siteID) int {
		if strings.HasPrefix(id.host, wwwPrefix) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(ids, func(x, y siteID) int {
		return cmp.Or(isWWW(x)-isWWW(y), strings.Compare(y.scheme, x.scheme), strings.Compare(x.port, y.port))
	})
	var named []*site
	isMade := make(map[*site]bool)
	for _, id := range ids {
		if s, err := a.site(id); err == nil && !isMade[s] {
			isMade[s] = true
			named = append(named, s)
		}
	}
	return named
}

// lookup returns the site of an ID; nil: there is none. It takes no lock that other requests wait for.
func (a *App) lookup(id siteID) *site {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.sites[id]
}

// remove drops a site. Under mu.
func (a *App) remove(s *site) {
	delete(a.sites, s.id)
	delete(a.keys, s.state.place.key)
	s.drop()
	if s.onDemand {
		s.state.forget()
	}
}

// site returns the site of an ID, and makes it if it is new. The error is errTooManySites, or errStopping.
func (a *App) site(id siteID) (*site, error) {
	// Nearly all requests are for a site that is known, and lock out no others.
	s := a.lookup(id)
	if s != nil {
		return s, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	// Another request may have made it meanwhile.
	s = a.sites[id]
	if s != nil {
		return s, nil
	}
	if a.running.Err() != nil {
		return nil, errStopping
	}
	h := id.handler
	onDemand := h.settings.base == "" && !h.spellsOut(id.address)
	if onDemand && !a.hasRoom() {
		return nil, errTooManySites
	}
	s = newSite(a, newIdentity(id, onDemand))
	s.requested.Store(a.now().UnixNano())
	a.sites[id] = s
	a.keys[s.state.place.key] = true
	if a.scheduled {
		a.run(s)
	}
	return s, nil
}

// hasRoom makes room for another site on demand; false: there is none, which is logged once a minute. Under mu.
func (a *App) hasRoom() bool {
	// Finding out takes a while, and anybody can request any number of hosts.
	now := a.now()
	isRecent := now.Sub(a.full).Abs() < time.Second
	if !isRecent && a.makeRoom(1, nil) {
		return true
	}
	a.refused++
	if !isRecent {
		a.full = now
		a.sampled.Warn("too many sites that only visitors named: name hosts in the configuration, or set 'base_url'",
			zap.Int("refused", a.refused))
	}
	return false
}

// run starts what goes on for a site until the App or the site is stopped.
func (a *App) run(s *site) {
	a.group.Go(func() {
		s.refreshWhenDue()
		s.leaveFleet()
	})
	a.group.Go(s.runAnnouncements)
	a.group.Go(s.pollFleet)
	if s.watch != nil {
		a.group.Go(s.watchFiles)
	}
}

// siteOf returns the site that a request to a handler is for. The error is errNoHost or one of site's.
func (a *App) siteOf(h *Handler, r *http.Request, prefix string) (*site, error) {
	id, err := h.idOf(r, prefix)
	if err != nil {
		return nil, err
	}
	return a.site(id)
}

// makeRoom drops sites on demand until there is room for more: empty ones first, then those that were requested longest
// ago. If all were requested lately, it drops only spare, or returns false if that is nil. Under mu.
func (a *App) makeRoom(more int, spare *site) bool {
	for {
		if a.fits(more) {
			return true
		}
		drop := cmp.Or(a.leastWanted(), spare)
		if drop == nil || a.sites[drop.id] != drop {
			return false
		}
		a.remove(drop)
	}
}

// fits reports whether there may be so many more sites on demand. Under mu.
func (a *App) fits(more int) bool {
	sites := more
	bytes := int64(more)
	for _, s := range a.sites {
		if s.onDemand {
			sites++
			bytes += s.bytes()
		}
	}
	return sites <= maxOnDemandSites && bytes <= maxOnDemandBytes
}

// leastWanted returns the site on demand to drop first; nil: all are needed, or are refreshed just now. Under mu.
func (a *App) leastWanted() (found *site) {
	now := a.now()
	most := needed
	var longest time.Duration
	for _, s := range a.sites {
		if !s.onDemand || s.schedule.IsRunning() {
			continue
		}
		since := now.Sub(time.Unix(0, s.requested.Load())).Abs() // the clock may be set back
		d := s.dispensability(since)
		if d > most || d == most && d != needed && since > longest {
			found = s
			most = d
			longest = since
		}
	}
	return found
}

// dispensability is how well a site on demand can be done without: of several, the greatest one goes first, and of equal
// ones the one that was requested longest ago.
type dispensability uint8

const (
	needed        dispensability = iota // requested lately
	requestedOnce                       // it has pages, but nobody came back for them
	absent                              // no front page: the host may be made up. It holds next to nothing, so dropping it frees no memory
	idle                                // not requested lately
	idleEmpty                           // nor has it anything to serve
)

// dispensability is that of a site so long after it was requested.
func (s *site) dispensability(sinceRequest time.Duration) dispensability {
	isEmpty := s.published().snapshot == nil
	switch {
	case sinceRequest >= lately && isEmpty:
		return idleEmpty
	case sinceRequest >= lately:
		return idle
	// Made-up hosts would keep others out for minutes.
	case s.isAbsent():
		return absent
	case sinceRequest >= justNow && !isEmpty && s.rank() == schedule.Fresh:
		return requestedOnce
	}
	return needed
}

// allSites returns all sites, sorted by URL.
func (a *App) allSites() []*site { return a.sitesThat(func(*site) bool { return true }) }

// sitesThat returns those sites that fulfil a condition, sorted by URL.
func (a *App) sitesThat(fulfil func(*site) bool) []*site {
	var all []*site
	a.mu.RLock()
	for _, s := range a.sites {
		if fulfil(s) {
			all = append(all, s)
		}
	}
	a.mu.RUnlock()
	slices.SortFunc(all, func(x, y *site) int {
		return cmp.Or(strings.Compare(x.url(), y.url()), strings.Compare(x.sitemap, y.sitemap))
	})
	return all
}

// await waits, for ten seconds at most, for what a request needs, such as Start: Caddy may never
// call it if another app fails to start. The error is errNotReady.
func (a *App) await(ctx context.Context, ready <-chan struct{}) error {
	if wait.IsDone(ready) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, wait.Patience(firstWait))
	defer cancel()
	defer context.AfterFunc(a.running, cancel)()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return errNotReady
	}
}

// awaitServing waits until all apps have started; false: ctx has ended before.
func (a *App) awaitServing(ctx context.Context) bool {
	select {
	case <-a.serving:
	case <-ctx.Done():
	}
	return wait.IsDone(a.serving) // of two that are ready, select chooses either
}

// Interface guards
var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
)
