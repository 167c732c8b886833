//go:build unix

package fleet

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
	"github.com/seed3295b519/caddy-sitemap/caddytest/sitemaps"
	"github.com/seed3295b519/caddy-sitemap/caddytest/storages"
)

var (
	soakTime  = flag.Duration("soak", 0, "for how long TestSoak disturbs a fleet; 0: it does not run")
	soakSeed  = flag.Uint64("seed", 0, "seed of TestSoak; 0: a random one")
	soakSites = flag.Int("sites", 200, "sites of TestSoak")
)

// A fleet that is usually disturbed has one fault of each kind a minute, and a deployment every 20 seconds. This is four times
// as much.
const (
	soakKills   = 15 * time.Second
	soakFaults  = 15 * time.Second
	soakDeploys = 5 * time.Second

	soakInterval = 20 * time.Second // of refreshes
	// soakGrace is until a page must be listed: another node leads seven polls after a kill, and a fault lasts up to ten seconds.
	soakGrace = 3 * time.Minute
	soakDown  = 5 * time.Second

	// What no generation names any more stays for an hour or so.
	maxRatio      = 3 // of the bytes in the storage to those after the start, besides
	staysFor      = 70 * time.Minute
	perDeployment = 64 << 10 // bytes that a deployment leaves: about ten generations of a small site
)

// soakedSite is a site. Its methods may be called side by side.
type soakedSite struct {
	host    string
	options string

	mu    sync.Mutex
	since map[string]time.Time // when its pages were deployed
}

// must returns the pages that have to be listed at a time.
func (s *soakedSite) must(at time.Time) (pages []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for page, since := range s.since {
		if at.Sub(since) >= soakGrace {
			pages = append(pages, page)
		}
	}
	return pages
}

// missing returns those of some pages that are not listed, and that nobody has begun to remove meanwhile.
func (s *soakedSite) missing(pages []string, listed map[string]bool) (missing []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, page := range pages {
		_, isThere := s.since[page]
		if isThere && !listed[page] {
			missing = append(missing, page)
		}
	}
	slices.Sort(missing)
	return missing
}

// presence says since when a process of a node responds.
type presence struct {
	process atomic.Int64 // number of the process; a kill begins the next one
	isUp    atomic.Bool
}

// step is something that happens later.
type step struct {
	at  time.Time
	run func()
}

// soak disturbs a fleet at random, while clients read its sites.
type soak struct {
	*fleet
	rand     *rand.Rand
	engine   *engine
	redis    *redis.Client
	sites    []*soakedSite
	presence []presence // by node
	steps    []step
	deployed []time.Time
	changes  map[string]int      // by URL
	dates    map[string][]string // of these
	counts   map[string]int      // what was done, by kind
	first    int64               // bytes in the storage after the start

	mu      sync.Mutex
	faults  map[string]string // the first one by kind
	counted map[string]int    // faults, and what clients got, by kind
	served  map[string]int64  // process of a node that has served a site
}

// TestSoak has three nodes with 200 sites on Redis. It kills them, has the storage be slow and lose calls, and changes the
// sites. No client gets an error but 503 while a node starts, no sitemap lists less than it must, no change is
// announced twice, the storage stays within a bound, and in the end all nodes agree.
//
//	go test -timeout 2h ./caddytest/fleet -run TestSoak -soak 40m
func TestSoak(t *testing.T) {
	if *soakTime == 0 {
		t.Skip("NOT RUN: takes -soak 40m or so")
	}
	seed := cmp.Or(*soakSeed, rand.Uint64())
	t.Logf("seed %d", seed)
	s := newSoak(t, seed)
	s.begin()
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for range 2 {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(breath):
					s.visit(rand.IntN(len(s.nodes)), s.sites[rand.IntN(len(s.sites))])
				}
			}
		})
	}
	s.disturb(time.Now().Add(*soakTime))
	s.settleAll()
	close(stop)
	clients.Wait()
	s.verdict()
}

// newSoak makes the files of the fleet.
func newSoak(t *testing.T, seed uint64) *soak {
	t.Helper()
	s := &soak{
		fleet:    prepare(t, setup{nodes: 3}),
		rand:     rand.New(rand.NewPCG(seed, 0)),
		engine:   newEngine(),
		presence: make([]presence, 3),
		changes:  make(map[string]int),
		dates:    make(map[string][]string),
		counts:   make(map[string]int),
		faults:   make(map[string]string),
		counted:  make(map[string]int),
		served:   make(map[string]int64),
	}
	t.Cleanup(s.engine.Close)
	s.redis = redis.NewClient(&redis.Options{Network: "unix", Addr: s.fleet.redis.Socket})
	t.Cleanup(func() { _ = s.redis.Close() })
	for i := range *soakSites {
		site := &soakedSite{host: fmt.Sprintf("site%03d.example.com:%s", i, s.port()), since: make(map[string]time.Time)}
		count := 20
		if i%4 == 0 { // with an index
			count = 60
			site.options = "shard_urls 20"
		}
		for page := range count {
			path := fmt.Sprintf("/%02d/page%02d.html", page%7, page)
			s.deploy(site, path, fmt.Sprint("page ", page), harness.DayOf(page))
			site.since[path] = time.Time{}
		}
		s.sites = append(s.sites, site)
	}
	for _, n := range s.nodes {
		file := filepath.Join(s.dir, n.name+".caddyfile")
		prepared, err := os.ReadFile(file)
		harness.Must(t, err)
		global, _, _ := strings.Cut(string(prepared), "http://"+s.host) // which has the fleet's only site
		var text strings.Builder
		text.WriteString(global)
		for _, site := range s.sites {
			fmt.Fprintf(&text, "http://%s {\n\tbind %s\n\troot * %s\n\tsitemap {\n\t\trefresh %s\n\t\t%s\n\t\t%s\n\t}\n\tfile_server\n}\n", site.host, n.address,
				filepath.Join(s.dir, rootOf(site)), soakInterval, site.options, fmt.Sprintf(announcing, s.engine.URL))
		}
		harness.Must(t, os.WriteFile(file, []byte(text.String()), 0o644))
	}
	return s
}

// rootOf is the folder of a site, below that of the fleet.
func rootOf(site *soakedSite) string {
	name, _, _ := strings.Cut(site.host, ":")
	return filepath.Join("roots", name)
}

// deploy writes a page; an empty text removes it.
func (s *soak) deploy(site *soakedSite, path, text string, when time.Time) {
	s.t.Helper()
	name := filepath.Join(rootOf(site), path)
	if text == "" {
		harness.Must(s.t, os.Remove(filepath.Join(s.dir, name)))
		return
	}
	s.files.Put(name, harness.Whole("", text), when)
}

// begin starts all nodes, and waits until they serve all sites.
func (s *soak) begin() {
	s.t.Helper()
	begun := time.Now()
	for i := range s.nodes {
		s.start(i)
	}
	for i, n := range s.nodes {
		for _, site := range s.sites {
			s.eventually(settling, func() bool {
				listed, r := s.listed(n, site)
				return s.presence[i].isUp.Load() && r.status == http.StatusOK && len(site.missing(site.must(time.Now()), listed)) == 0
			})
		}
	}
	s.first = s.stored()
	s.t.Logf("%d sites are served by all nodes %s after the start; the storage has %d bytes", len(s.sites), time.Since(begun).Round(time.Second), s.first)
}

// start runs a node's process. Clients expect responses of it from its first one on.
func (s *soak) start(i int) {
	s.t.Helper()
	s.nodes[i].start()
	process := s.presence[i].process.Load()
	go func() {
		for s.presence[i].process.Load() == process {
			if _, r := s.listed(s.nodes[i], s.sites[0]); r.err == nil {
				s.presence[i].isUp.Store(true)
				return
			}
			time.Sleep(breath)
		}
	}()
}

// kill ends a node's process, and starts it again later.
func (s *soak) kill(i int) {
	s.presence[i].isUp.Store(false)
	s.presence[i].process.Add(1)
	s.nodes[i].kill()
	s.later(time.Duration(s.rand.Int64N(int64(soakDown))), func() { s.start(i) })
}

// later has something be done after a while.
func (s *soak) later(after time.Duration, run func()) {
	s.steps = append(s.steps, step{time.Now().Add(after), run})
	slices.SortStableFunc(s.steps, func(a, b step) int { return a.at.Compare(b.at) })
}

// disturb does everything at random until a time.
func (s *soak) disturb(until time.Time) {
	s.t.Helper()
	const tick = 100 * time.Millisecond
	happens := func(every time.Duration) bool { return s.rand.Int64N(int64(every)) < int64(tick) }
	measured := time.Now()
	for ; time.Now().Before(until); time.Sleep(tick) {
		for len(s.steps) > 0 && !s.steps[0].at.After(time.Now()) {
			next := s.steps[0]
			s.steps = s.steps[1:]
			next.run()
		}
		if happens(soakKills) && s.allUp() {
			s.counts["kills"]++
			s.kill(s.rand.IntN(len(s.nodes)))
		}
		if happens(soakFaults) {
			s.disturbStorage()
		}
		if happens(soakDeploys) {
			s.release(s.sites[s.rand.IntN(len(s.sites))])
		}
		if time.Since(measured) >= time.Minute {
			measured = time.Now()
			s.bound()
		}
	}
}

// allUp reports whether all nodes respond: another one is killed only then, or none may be left.
func (s *soak) allUp() bool {
	return !slices.ContainsFunc(s.nodes, func(n *node) bool { return !s.presence[slices.Index(s.nodes, n)].isUp.Load() })
}

// disturbStorage gives the storage a fault for up to ten seconds.
func (s *soak) disturbStorage() {
	kinds := map[string]storages.Fault{
		"fails":           {Fail: 0.2},
		"hangs":           {Hang: true},
		"loses responses": {Lost: 0.2},
		"slow":            {Delay: 500 * time.Millisecond},
	}
	names := slices.Sorted(maps.Keys(kinds))
	name := names[s.rand.IntN(len(names))]
	s.counts["storage "+name]++
	harness.Must(s.t, storages.SetFaults(s.control, kinds[name]))
	s.later(time.Second+time.Duration(s.rand.Int64N(int64(9*time.Second))), func() { harness.Must(s.t, storages.SetFaults(s.control)) })
}

// release deploys changes of a site.
func (s *soak) release(site *soakedSite) {
	site.mu.Lock()
	defer site.mu.Unlock()
	pages := slices.Sorted(maps.Keys(site.since))
	now := time.Now()
	s.deployed = append(s.deployed, now)
	number := len(s.deployed)
	added := fmt.Sprintf("/new/page%04d.html", number)
	edited := pages[s.rand.IntN(len(pages))]
	removed := pages[s.rand.IntN(len(pages))]
	if removed == edited || number%3 != 0 {
		removed = ""
	}
	for _, path := range []string{added, edited, removed} {
		url := "http://" + site.host + path
		s.changes[url]++
		s.dates[url] = append(s.dates[url], now.UTC().Format("15:04:05.000"))
	}
	delete(site.since, removed)
	s.deploy(site, added, fmt.Sprint("added by ", number), now)
	s.deploy(site, edited, fmt.Sprint("edited by ", number), now)
	if removed != "" {
		s.deploy(site, removed, "", now)
	}
	site.since[added] = now
}

// request asks a node for a document of a site.
func (s *soak) request(n *node, site *soakedSite, path string) response {
	return (&node{fleet: &fleet{host: site.host}, address: n.address}).get(path)
}

// listed returns the paths that a node lists of a site, and its last response. Between its requests, the node may load another
// generation: the paths are nil then.
func (s *soak) listed(n *node, site *soakedSite) (listed map[string]bool, last response) {
	index := s.request(n, site, "/sitemap.xml")
	document, err := sitemaps.Parse([]byte(index.body))
	if index.status != http.StatusOK || err != nil {
		return nil, index
	}
	pages := document.Pages
	for _, child := range document.Children {
		r := s.request(n, site, strings.TrimPrefix(child.Loc, "http://"+site.host))
		document, err := sitemaps.Parse([]byte(r.body))
		if r.status != http.StatusOK || err != nil {
			return nil, r
		}
		pages = append(pages, document.Pages...)
	}
	last = s.request(n, site, "/sitemap.xml")
	if last.status != http.StatusOK || last.body != index.body {
		return nil, last
	}
	listed = make(map[string]bool)
	for _, page := range pages {
		listed[strings.TrimPrefix(page.Loc, "http://"+site.host)] = true
	}
	return listed, last
}

// isDocumented reports whether a response is the 503 by which a node says that it does not know yet.
func isDocumented(r response) bool {
	return r.status == http.StatusServiceUnavailable && r.header.Get("Retry-After") != ""
}

// visit reads a site as a client does, and keeps what is wrong.
func (s *soak) visit(i int, site *soakedSite) {
	at := time.Now()
	process := s.presence[i].process.Load()
	if !s.presence[i].isUp.Load() {
		return
	}
	must := site.must(at)
	n := s.nodes[i]
	listed, r := s.listed(n, site)
	key := n.name + " " + site.host
	s.mu.Lock()
	hasServed := s.served[key] == process+1
	s.mu.Unlock()
	switch {
	case s.presence[i].process.Load() != process: // it was killed meanwhile
	case isDocumented(r) && !hasServed:
		s.count("503 of a node that has not served the site yet")
	case r.status != http.StatusOK:
		s.fault(fmt.Sprint("status ", r.status), "%s of %s: %v", site.host, n.name, r.err)
	case listed == nil:
		s.count("changed while it was read")
	default:
		s.count("read")
		s.mu.Lock()
		s.served[key] = process + 1
		s.mu.Unlock()
		if missing := site.missing(must, listed); len(missing) > 0 {
			s.fault("fragment", "%s of %s lists %d pages, not %q", site.host, n.name, len(listed), missing)
		}
		s.elsewhere(i, site)
	}
}

// elsewhere asks a node for what another one's index names, as a load balancer does.
func (s *soak) elsewhere(i int, site *soakedSite) {
	document, err := sitemaps.Parse([]byte(s.request(s.nodes[i], site, "/sitemap.xml").body))
	other := rand.IntN(len(s.nodes))
	process := s.presence[other].process.Load()
	if err != nil || len(document.Children) == 0 || !s.presence[other].isUp.Load() {
		return
	}
	child := document.Children[rand.IntN(len(document.Children))].Loc
	r := s.request(s.nodes[other], site, strings.TrimPrefix(child, "http://"+site.host))
	switch {
	case s.presence[other].process.Load() != process:
	case isDocumented(r):
		s.count("503 for a shard that another node names")
	case r.status != http.StatusOK:
		s.fault(fmt.Sprintf("status %d for a shard that another node names", r.status), "%s of %s", child, s.nodes[other].name)
	}
}

func (s *soak) count(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counted[kind]++
}

// fault counts what is wrong, and keeps the first of its kind.
func (s *soak) fault(kind, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counted[kind]++
	if s.faults[kind] == "" {
		s.faults[kind] = time.Now().UTC().Format("15:04:05.000 ") + fmt.Sprintf(format, args...)
	}
}

// stored returns the bytes of all values of sitemaps in the storage.
func (s *soak) stored() (total int64) {
	s.t.Helper()
	ctx := context.Background()
	sizes := s.redis.Pipeline()
	var results []*redis.IntCmd
	keys := s.redis.Scan(ctx, 0, "caddy/sitemap/*", 1000).Iterator()
	for keys.Next(ctx) {
		results = append(results, sizes.StrLen(ctx, keys.Val()))
	}
	harness.Must(s.t, keys.Err())
	_, err := sizes.Exec(ctx)
	harness.Must(s.t, err)
	for _, result := range results {
		total += result.Val()
	}
	return total
}

// bound has the bytes in the storage be within their bound.
func (s *soak) bound() {
	s.t.Helper()
	stored := s.stored()
	recent := 0
	for _, at := range s.deployed {
		if time.Since(at) < staysFor {
			recent++
		}
	}
	most := maxRatio*s.first + int64(recent*perDeployment)
	if stored > most {
		s.fault("storage", "it has %d bytes, more than %d", stored, most)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.t.Logf("%s: %d bytes in the storage, %.1f of those after the start; %d deployments; %v; %v", time.Now().UTC().Format(time.TimeOnly),
		stored, float64(stored)/float64(s.first), len(s.deployed), s.counts, s.counted)
}

// settleAll ends all that was begun, and waits until all nodes list the same of each site: all that exists, and nothing else.
func (s *soak) settleAll() {
	s.t.Helper()
	for len(s.steps) > 0 {
		next := s.steps[0]
		s.steps = s.steps[1:]
		next.run()
	}
	harness.Must(s.t, storages.SetFaults(s.control))
	begun := time.Now()
	left := slices.Clone(s.sites)
	for time.Since(begun) < settling {
		left = slices.DeleteFunc(left, s.isSettled)
		if len(left) == 0 {
			s.t.Logf("all nodes agree after %s", time.Since(begun).Round(time.Second))
			return
		}
		time.Sleep(time.Second)
	}
	for _, site := range left {
		want := len(site.since)
		var found []string
		for _, n := range s.nodes {
			listed, r := s.listed(n, site)
			found = append(found, fmt.Sprintf("%s: status %d, %d pages", n.name, r.status, len(listed)))
		}
		s.fault("not settled", "%s: want %d pages, got %q", site.host, want, found)
	}
}

// isSettled reports whether all nodes list of a site what exists.
func (s *soak) isSettled(site *soakedSite) bool {
	want := make(map[string]bool)
	site.mu.Lock()
	for path := range site.since {
		want[path] = true
	}
	site.mu.Unlock()
	for _, n := range s.nodes {
		listed, _ := s.listed(n, site)
		if !maps.Equal(listed, want) {
			return false
		}
	}
	return true
}

// verdict reports all that was wrong.
func (s *soak) verdict() {
	s.t.Helper()
	s.bound()
	s.engine.Close()
	again := s.engine.again(s.changes)
	s.t.Logf("%d pages announced, %d batches again; %v; %v", len(s.engine.told), s.engine.repeated, s.counts, s.counted)
	for _, url := range again[:min(len(again), 5)] {
		s.fault("announced again", "%d pages, such as %q at %q, which has changed %d times", len(again), url, s.engine.when[url], s.changes[url])
		host, _, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
		s.t.Logf("%s: deployments %q\n%s", url, s.dates[url], s.lines(300, host))
	}
	if s.engine.repeated > s.counts["kills"] {
		s.fault("batches sent again", "%d with %d kills", s.engine.repeated, s.counts["kills"])
	}
	if len(s.engine.told) == 0 || s.counted["read"] == 0 {
		s.fault("nothing happened", "%d pages announced", len(s.engine.told))
	}
	for kind, example := range s.faults {
		s.t.Errorf("%s: %d times, first %s", kind, s.counted[kind], example)
	}
	if s.t.Failed() {
		s.t.Log(s.logs())
	}
}

// TestSoakedSite has pages that must be listed, and that are missing.
func TestSoakedSite(t *testing.T) {
	now := time.Now()
	site := &soakedSite{since: map[string]time.Time{"/old": now.Add(-2 * soakGrace), "/new": now.Add(-soakGrace / 2)}}
	must := site.must(now)
	if !slices.Equal(must, []string{"/old"}) {
		t.Errorf("got %q", must)
	}
	for name, test := range map[string]struct {
		listed  []string
		removed string
		want    []string
	}{
		"all":              {[]string{"/old", "/new"}, "", nil},
		"not yet":          {[]string{"/old"}, "", nil},
		"a fragment":       {[]string{"/new"}, "", []string{"/old"}},
		"nothing":          {nil, "", []string{"/old"}},
		"removed just now": {nil, "/old", nil},
	} {
		t.Run(name, func(t *testing.T) {
			site := &soakedSite{since: maps.Clone(site.since)}
			delete(site.since, test.removed)
			listed := make(map[string]bool)
			for _, page := range test.listed {
				listed[page] = true
			}
			if got := site.missing(must, listed); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
