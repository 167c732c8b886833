package sitemap

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/logonce"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/persist"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

const (
	rememberedKey    = "hosts.json"        // in the state folder
	rememberInterval = time.Minute         // between two looks at what was requested, and writes
	rememberFor      = 30 * 24 * time.Hour // after the last request
	rememberPatience = 10 * time.Second    // with the disk
	maxRetries       = 10                  // sites that are refreshed at each look, as their last refresh did not tell
	demandHalves     = 7 * 24 * time.Hour  // in which what was requested counts half
)

// hostKey is what finds a site on demand again in the next process: its address, and the listener and path of its handler,
// which has no name.
type hostKey struct {
	address
	listener address
	path     string // of the sitemap, as the handler's settings have it
}

// String returns the URL by which the host is stored and sorted.
func (k hostKey) String() string { return origin.Of(k.scheme, k.host, k.port) + k.prefix }

// hostKey returns the key of the site.
func (st *siteState) hostKey() hostKey { return hostKey{st.id, st.listener, st.path} }

// hostDemand is how much the site of a host is wanted.
type hostDemand struct {
	requests float64   // of robots.txt and documents; as of last, each counts half after a week
	last     time.Time // when it was last requested; zero: never
	lists    bool      // pages, as far as is known
}

// at returns how many requests count at a time.
func (d hostDemand) at(now time.Time) float64 {
	idle := max(now.Sub(d.last), 0) // the clock may be set back
	return d.requests * math.Exp2(-float64(idle)/float64(demandHalves))
}

// and returns the demand after more requests, of which last was the last.
func (d hostDemand) and(requests int64, last time.Time) hostDemand {
	if requests == 0 {
		return d
	}
	d.requests = d.at(last) + float64(requests)
	d.last = last
	return d
}

// isKept reports whether the host is one to remember.
func (d hostDemand) isKept(now time.Time) bool {
	return d.lists && !d.last.IsZero() && now.Sub(d.last) < rememberFor
}

// listingState is what is known of whether a site lists pages.
type listingState uint8

const (
	mayList    listingState = iota // no refresh has told yet, or the last one failed: what was known holds
	listsPages                     // it lists some
	listsNone                      // a refresh has found none
)

// listing returns what is known of whether the site lists pages.
func (s *site) listing() listingState {
	served := s.published()
	if pagesOf(served.snapshot) > 0 {
		return listsPages
	}
	rep := served.report
	if rep == nil || rep.Result != outcome.Empty || rep.Pending > 0 {
		return mayList
	}
	// An application may start later than the server.
	probed := s.probed.Load()
	if probed != nil {
		isFailing := probed.status != 0 && !page.IsConclusive(probed.status)
		if isFailing || probed.robots.closed {
			return mayList
		}
	}
	return listsNone
}

// liveHost is what a site on demand adds to the demand for its host.
type liveHost struct {
	requests int64     // since the last look
	last     time.Time // when it was last requested
	listing  listingState
}

// hostDemands are hosts that only visitors named. Their number is bounded by that of the sites on demand, and of the hosts
// that are remembered.
type hostDemands map[hostKey]hostDemand

// after returns the demands after a look at the sites that there are.
func (d hostDemands) after(live map[hostKey]liveHost, now time.Time) hostDemands {
	next := make(hostDemands, len(live))
	for key, demand := range d {
		// One whose site gave way to others stays for as long as it is kept.
		if _, isLive := live[key]; isLive || demand.isKept(now) {
			next[key] = demand
		}
	}
	for key, host := range live {
		demand := next[key].and(host.requests, host.last)
		switch host.listing {
		case listsPages:
			demand.lists = true
		case listsNone:
			demand.lists = false
		}
		next[key] = demand
	}
	return next
}

// most returns the hosts to remember, up to n: the most requested first.
func (d hostDemands) most(n int, now time.Time) []hostKey {
	var keys []hostKey
	for key, demand := range d {
		if demand.isKept(now) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(x, y hostKey) int {
		return cmp.Or(
			cmp.Compare(d[y].at(now), d[x].at(now)),
			d[y].last.Compare(d[x].last),
			strings.Compare(x.String(), y.String()),
		)
	})
	return keys[:min(len(keys), n)]
}

// storedHosts is the JSON in the state folder.
type storedHosts struct {
	Hosts []storedHost `json:"hosts"` // the most requested first
}

// storedHost is a host, and what finds its handler again.
type storedHost struct {
	Site     string    `json:"site"` // URL
	Listener string    `json:"listener"`
	Path     string    `json:"path"`
	Requests float64   `json:"requests"`
	Last     time.Time `json:"last"`
}

// encode returns the JSON of hosts.
func (d hostDemands) encode(keys []hostKey) ([]byte, error) {
	all := storedHosts{Hosts: []storedHost{}}
	for _, key := range keys {
		all.Hosts = append(all.Hosts, storedHost{
			Site:     key.String(),
			Listener: key.listener.scheme + ":" + key.listener.port,
			Path:     key.path,
			Requests: math.Round(100*d[key].requests) / 100,
			Last:     toSecond(d[key].last),
		})
	}
	return json.MarshalIndent(all, "", "\t")
}

// decodeHosts returns the hosts that are stored, without those that make no sense.
func decodeHosts(data []byte) (hostDemands, error) {
	var all storedHosts
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	hosts := make(hostDemands)
	for _, stored := range all.Hosts[:min(len(all.Hosts), maxOnDemandSites)] {
		at, err := origin.ParseURL(stored.Site)
		scheme, port, hasPort := strings.Cut(stored.Listener, ":")
		if err != nil || !hasPort || !(stored.Requests >= 0) {
			continue
		}
		key := hostKey{
			address:  address{at.Scheme, at.Host, at.Port, strings.TrimSuffix(at.Path, "/")},
			listener: address{scheme: scheme, port: port},
			path:     stored.Path,
		}
		hosts[key] = hostDemand{stored.Requests, stored.Last, true}
	}
	return hosts, nil
}

// rememberedPool has the rememberedHosts of each state folder: after a reload, counting goes on.
var rememberedPool = caddy.NewUsagePool()

// rememberedHosts are the hosts on demand of a process, and the file that keeps the most requested ones for the next one.
type rememberedHosts struct {
	file     *persist.File
	mu       sync.Mutex
	demands  hostDemands
	isLoaded bool // what the process before has stored; until then, nothing is written
}

// Destruct implements [caddy.Destructor].
func (*rememberedHosts) Destruct() error { return nil }

// acquireRemembered returns the hosts of a state folder.
func acquireRemembered(folder string) *rememberedHosts {
	value, _, _ := rememberedPool.LoadOrNew(folder, func() (caddy.Destructor, error) {
		storage := &certmagic.FileStorage{Path: folder}
		return &rememberedHosts{file: persist.NewFile(storage, rememberedKey)}, nil
	})
	return value.(*rememberedHosts)
}

// load loads what the process before has stored, once.
func (r *rememberedHosts) load(ctx context.Context) (damage, err error) {
	r.mu.Lock()
	isLoaded := r.isLoaded
	r.mu.Unlock()
	if isLoaded {
		return nil, nil
	}
	var stored hostDemands
	err = r.file.Load(ctx, func(data []byte) { stored, damage = decodeHosts(data) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// Another configuration may have loaded it meanwhile.
	if !r.isLoaded {
		r.demands = stored
		r.isLoaded = true
	}
	return damage, nil
}

// forget drops the hosts for which that is true.
func (r *rememberedHosts) forget(isForgotten func(hostKey) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := make(hostDemands)
	for key, demand := range r.demands {
		if !isForgotten(key) {
			kept[key] = demand
		}
	}
	r.demands = kept
}

// count adds what was requested since the last look, and returns the demands, which never change, and the n hosts to remember.
func (r *rememberedHosts) count(live map[hostKey]liveHost, n int, now time.Time) (hostDemands, []hostKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.demands = r.demands.after(live, now)
	return r.demands, r.demands.most(n, now)
}

// checkRememberHosts checks the setting remember_hosts.
func checkRememberHosts(n int) error {
	if n < 0 || n > maxOnDemandSites {
		return fmt.Errorf("remember_hosts is %d: use 1 to %d", n, maxOnDemandSites)
	}
	return nil
}

// startRemembering has hosts remembered, or those forgotten that another configuration has remembered. A build does neither:
// it never starts.
func (a *App) startRemembering() {
	if a.folder == "" {
		return
	}
	a.remembered = acquireRemembered(a.folder)
	if a.RememberHosts == 0 {
		a.group.Go(a.forgetHosts)
		return
	}
	a.group.Go(a.rememberHosts)
}

// rememberHosts makes the sites on demand that the process before has remembered, and remembers those that are requested
// most, until the App is stopped.
func (a *App) rememberHosts() {
	// Until all apps have started, the configuration before may go on.
	if !a.awaitServing(a.running) {
		return
	}
	log := logonce.New(a.logger)
	isRecalled := false
	isLast := false
	for !isLast {
		if !isRecalled {
			err := a.recallHosts()
			isRecalled = err == nil
			isFailure := err != nil && a.running.Err() == nil
			log.OnceIf(isFailure, zap.WarnLevel, "load", "cannot load the remembered hosts", a.stateFields(err)...)
		}
		wait.Within(rememberInterval, a.running.Done())
		isLast = a.running.Err() != nil
		if !isRecalled || a.isSuperseded() {
			continue
		}
		err := a.keepHosts(isLast)
		isInterrupted := !isLast && a.running.Err() != nil // the last time comes next
		isFailure := err != nil && !isInterrupted && !errors.Is(err, errStopping)
		log.OnceIf(isFailure, zap.WarnLevel, "save", "cannot store the remembered hosts", a.stateFields(err)...)
	}
}

// forgetHosts deletes what another configuration has remembered, as this one is to remember nothing.
func (a *App) forgetHosts() {
	if !a.awaitServing(a.running) {
		return
	}
	ctx, cancel := context.WithTimeout(a.running, rememberPatience)
	defer cancel()
	err := a.remembered.file.Delete(ctx)
	if err == nil {
		return
	}
	// A folder that cannot be used is of no concern here, unless there is something in it.
	if a.remembered.file.Load(ctx, func([]byte) {}) == nil {
		a.logger.Warn("cannot delete the remembered hosts", append(a.stateFields(err), zap.String("file", rememberedKey))...)
	}
}

// recallHosts makes the sites that are remembered, as if they were requested: the most requested first. A host that the
// configuration names, or does not accept any more, is forgotten.
func (a *App) recallHosts() error {
	ctx, cancel := context.WithTimeout(a.running, rememberPatience)
	defer cancel()
	damage, err := a.remembered.load(ctx)
	if err != nil {
		return err
	}
	if damage != nil {
		a.logger.Warn("the remembered hosts are damaged: they are forgotten",
			zap.String("folder", a.folder), zap.String("file", rememberedKey), zap.Error(damage))
	}
	a.remembered.forget(func(key hostKey) bool { return a.handlerOf(key, true) == nil })
	demands, keys := a.remembered.count(nil, a.RememberHosts, a.now())
	for h, keys := range a.byHandler(keys) {
		a.group.Go(func() { a.recallEach(h, keys, demands) })
	}
	return nil
}

// byHandler returns the hosts of each handler, in the same order. A host that none serves is left out: the configuration
// before, which has other handlers, counts until it notices that it was superseded.
func (a *App) byHandler(keys []hostKey) map[*Handler][]hostKey {
	of := make(map[*Handler][]hostKey)
	for _, key := range keys {
		h := a.handlerOf(key, true)
		if h != nil {
			of[h] = append(of[h], key)
		}
	}
	return of
}

// recallEach makes the remembered sites of a handler in order. Only one of them waits for its turn at a time, so that a host
// that a visitor requests meanwhile does not wait for all of them.
func (a *App) recallEach(h *Handler, keys []hostKey, demands hostDemands) {
	for _, key := range keys {
		id := siteID{h, key.address}
		s := a.lookup(id)
		// A visitor has requested it meanwhile, perhaps as a fresh host.
		if s != nil {
			s.state.isKnown.Store(true)
			continue
		}
		// None makes room for another: the first ones were requested most.
		a.mu.RLock()
		isRoom := a.fits(1)
		a.mu.RUnlock()
		if !isRoom {
			return
		}
		// It is as old as its last request: hosts that visitors request now come first where there is no room for all.
		s, err := a.site(id, demands[key].last)
		if err != nil {
			return
		}
		// It had pages, and was requested more than others: made-up hosts are not to come before it.
		s.state.isKnown.Store(true)
		select {
		case <-s.ready:
		case <-a.running.Done():
			return
		}
	}
}

// keepHosts looks at what was requested, and stores the hosts to remember. isLast: the App is stopped, and does not wait for
// a disk that hangs.
func (a *App) keepHosts(isLast bool) error {
	live := make(map[hostKey]liveHost)
	unknown := make(map[hostKey]*site)
	for _, s := range a.allSites() {
		if !s.onDemand {
			continue
		}
		key := s.state.hostKey()
		live[key] = liveHost{
			requests: s.state.visits.Swap(0),
			last:     time.Unix(0, s.requested.Load()),
			listing:  s.listing(),
		}
		if live[key].listing == mayList {
			unknown[key] = s
		}
	}
	demands, keys := a.remembered.count(live, a.RememberHosts, a.now())
	retries := maxRetries
	for key, s := range unknown { // in no order, so that each has its turn
		// What listed pages is tried again although nobody requests it.
		if retries > 0 && demands[key].isKept(a.now()) {
			s.schedule.Notify()
			retries--
		}
	}
	running := a.running
	patience := rememberPatience
	if isLast {
		running = context.WithoutCancel(running)
		patience = stopGrace
	}
	ctx, cancel := context.WithTimeout(running, patience)
	defer cancel()
	return a.remembered.file.Save(ctx, func() ([]byte, error) {
		if a.isSuperseded() {
			return nil, errStopping
		}
		return demands.encode(keys)
	})
}
