package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// manyRows measure servers of very many sites: those of a hoster, whose configuration names them, and those of a platform, whose
// hosts only visitors name.
func (b *bench) manyRows(ctx context.Context) []*row {
	all := b.manySitesRows(ctx)
	for _, c := range []crowd{
		{what: "burst of made-up hosts that return 404", hosts: 240, pace: 8},
		{what: "burst of made-up hosts that return a default page", hosts: 240, pace: 8, isDefault: true},
		{what: "10,000 made-up hosts, 100 a second, however written, that return 404", hosts: 10_000, pace: 100},
		{what: "10,000 made-up hosts, 100 a second, however written, that return a default page", hosts: 10_000, pace: 100, isDefault: true},
	} {
		all = append(all, b.crowdRows(ctx, c)...)
	}
	return append(all, b.hugeRows(ctx)...)
}

// manySitesRows measure a configuration that names many sites.
func (b *bench) manySitesRows(ctx context.Context) []*row {
	what := fmt.Sprintf("%s named sites of %d files", number(b.sites), pagesOfSite)
	listed := &row{what: what + ": start to all listed", show: duration, reach: atMost(60)}
	heap := &row{what: what + ": live heap a site, without that of the same sites without the directive", show: kilobytes, reach: atMost(40e3)}
	reload := &row{what: what + ": reload with nothing changed, beside that without the directive", show: duration}
	part := &row{what: what + ": the sitemap's part of that reload, in processor time", show: duration, reach: atMost(1)}
	fetches := &row{what: what + ": fetches because of that reload", show: count, reach: atMost(0.5)}
	for range b.runs {
		with := b.manyNamed(ctx, "sitemap")
		without := b.manyNamed(ctx, "")
		listed.add(with.listed)
		heap.add((with.heap - without.heap) / float64(b.sites))
		reload.add(with.reload, without.reload)
		part.add(max(with.uses-without.uses, 0))
		fetches.add(with.fetches)
		b.say("  many: so far %s, %s a site, reload %s (%s)", listed.show(median(listed.ours)), kilobytes(median(heap.ours)), duration(median(part.ours)), load())
	}
	return []*row{listed, heap, reload, part, fetches}
}

// named is what was measured of a server of many named sites.
type named struct{ listed, heap, reload, uses, fetches float64 }

func (b *bench) manyNamed(ctx context.Context, directive string) (n named) {
	const name = "many"
	addr, port := b.fresh(name)
	var config strings.Builder
	for i := range b.sites {
		host := fmt.Sprintf("site-%d.localhost:%s", i, port)
		config.WriteString(site(host, files(b.smallRoot(name, i), directive)...))
	}
	s := b.start(name, addr, config.String())
	defer s.stop()
	check(s.until(ctx, "all sitemaps", func() (bool, error) {
		if directive == "" {
			return s.answers(ctx, "site-0.localhost:"+port, false)
		}
		return s.listsAll(ctx, b.sites)
	}))
	n.listed = time.Since(s.begun).Seconds()
	check(s.until(ctx, "an end of all refreshes", func() (bool, error) {
		time.Sleep(200 * time.Millisecond)
		_, body, err := get(ctx, "http://"+s.admin+"/sitemap/sites")
		return !bytes.Contains(body, []byte(`"refreshing"`)), err
	}))
	heap, _, err := s.memory(ctx)
	check(err)
	n.heap = heap
	before := s.fetches(ctx)
	used := must(s.processor())
	begun := time.Now()
	s.reload(ctx, config.String()+"# another configuration\nhttp://another.localhost:"+port+" {\nbind 127.0.0.1\nrespond hello\n}\n")
	n.reload = time.Since(begun).Seconds()
	n.uses = must(s.processor()) - used
	n.fetches = s.fetches(ctx) - before
	return n
}

// sitesOfServer is what the admin API says of all sites.
type sitesOfServer struct {
	Sites []struct {
		Pages int `json:"pages"`
	} `json:"sites"`
}

// listsAll reports whether so many sites list all of their pages, without a request for their sitemaps.
func (s *server) listsAll(ctx context.Context, sites int) (bool, error) {
	time.Sleep(200 * time.Millisecond) // the server has other work to do
	status, body, err := get(ctx, "http://"+s.admin+"/sitemap/sites")
	if err != nil || status != http.StatusOK {
		return false, nil // it has not started yet
	}
	var all sitesOfServer
	if err := json.Unmarshal(body, &all); err != nil {
		return false, err
	}
	n := 0
	for _, st := range all.Sites {
		if st.Pages == pagesOfSite {
			n++
		}
	}
	return n == sites, nil
}

var fetchesMetric = regexp.MustCompile(`(?m)^caddy_sitemap_fetches_total(?:\{[^}]*\})? (\S+)$`)

// fetches returns how many pages the server has fetched since the last reload, as its metrics say.
func (s *server) fetches(ctx context.Context) (n float64) {
	_, body, err := get(ctx, "http://"+s.admin+"/metrics")
	check(err)
	for _, line := range fetchesMetric.FindAllSubmatch(body, -1) {
		n += must(strconv.ParseFloat(string(line[1]), 64))
	}
	return n
}

// crowd is made-up hosts that visitors name.
type crowd struct {
	what      string
	hosts     int
	pace      int  // a second
	isDefault bool // the application returns a default page for them
}

const (
	calmTime    = 15 * time.Second // before a crowd, and after
	tenantPages = 2000             // more than are crawled meanwhile
	newEvery    = 3 * time.Second  // a new tenant comes
	defaultRate = 2                // requests of upstreams a second
)

// platform is an application with a site for each host of a customer. It returns 404 for other hosts, or a default page.
type platform struct {
	isDefault bool

	mu      sync.Mutex
	fetches map[string]int // of pages, by host
}

func (p *platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, _, _ := strings.Cut(r.Host, ".")
	p.mu.Lock()
	p.fetches[host]++
	p.mu.Unlock()
	pages := 4
	switch {
	case host == "named" || host == "known":
		pages = tenantPages
	case strings.HasPrefix(host, "new-"):
	case !p.isDefault:
		http.NotFound(w, r)
		return
	}
	n, isPage := strings.CutPrefix(r.URL.Path, "/p/")
	if r.URL.Path != "/" && !isPage {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = fmt.Fprintf(w, "<!doctype html><title>%s %s</title><h1>Page %s of %s</h1>", host, n, n, host)
	if !isPage {
		for i := range pages {
			_, _ = fmt.Fprintf(w, "<a href=\"/p/%d\">%d</a> ", i, i)
		}
	}
}

// fetched returns how many requests there were for a host.
func (p *platform) fetched(host string) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return float64(p.fetches[host])
}

// crowdRows measure a platform while visitors make up hosts.
func (b *bench) crowdRows(ctx context.Context, c crowd) []*row {
	first := &row{what: c.what + ": first sitemap of a new tenant, 95th percentile", show: duration, reach: atMost(10)}
	known := &row{what: c.what + ": pace of a known tenant, over that before", show: perMinute, reach: atLeast(0.5)}
	name := &row{what: c.what + ": pace of a named host, over the whole rate", show: perMinute, reach: atLeast(0.5)}
	made := &row{what: c.what + ": requests of the upstream for a made-up host", show: ratio}
	heap := &row{what: c.what + ": live heap that they leave", show: mebibytes}
	for range b.runs {
		m := b.crowded(ctx, c)
		first.add(m.first)
		known.add(m.known, m.knownBefore)
		name.add(m.named, defaultRate)
		made.add(m.made)
		heap.add(m.heap)
		b.say("  many: first sitemap %s, known %s beside %s before, named %s, heap %s", duration(m.first), perMinute(m.known), perMinute(m.knownBefore), perMinute(m.named), mebibytes(m.heap))
	}
	return []*row{first, known, name, made, heap}
}

// crowdMeasured is what was measured of a crowd: seconds, requests a second, and bytes.
type crowdMeasured struct{ first, knownBefore, known, named, made, heap float64 }

// spelt returns a host as visitors may write it.
func spelt(name, port string, i int) string {
	host := name + ".localhost"
	switch i % 4 {
	case 1:
		return strings.ToUpper(host) + ":" + port
	case 2:
		return host + ".:" + port
	case 3:
		return host + ":8080"
	}
	return host + ":" + port
}

func (b *bench) crowded(ctx context.Context, c crowd) (m crowdMeasured) {
	app := &platform{isDefault: c.isDefault, fetches: make(map[string]int)}
	upstream := must(net.Listen("tcp", "127.0.0.1:0"))
	server := &http.Server{Handler: app}
	go func() { _ = server.Serve(upstream) }()
	defer func() { _ = server.Close() }()
	addr, port := b.fresh("burst")
	config := fmt.Sprintf("http://named.localhost:%s, http://*.localhost:%s {\nbind 127.0.0.1\nsitemap\nreverse_proxy %s\n}\n", port, port, upstream.Addr())
	s := b.start("burst", addr, config)
	defer s.stop()
	ask := func(host string) int { return s.ask(ctx, host+".localhost:"+port) }
	check(s.until(ctx, "the known tenant", func() (bool, error) { return ask("known") == http.StatusOK, nil }))
	time.Sleep(calmTime)
	ask("known") // again: it is no made-up host
	heapBefore, _, err := s.memory(ctx)
	check(err)
	begun, before := time.Now(), app.fetched("known")
	time.Sleep(calmTime)
	m.knownBefore = (app.fetched("known") - before) / time.Since(begun).Seconds()

	var asking sync.WaitGroup
	var mu sync.Mutex
	var firsts []float64
	come := func(tenant int) {
		asking.Go(func() {
			begun := time.Now()
			host := fmt.Sprintf("new-%d", tenant)
			err := s.until(ctx, "sitemap of a new tenant", func() (bool, error) { return ask(host) == http.StatusOK, nil })
			if err != nil {
				b.say("  many: %s: %v", host, err)
			}
			mu.Lock()
			defer mu.Unlock()
			firsts = append(firsts, time.Since(begun).Seconds())
		})
	}
	begun = time.Now()
	knownBegun, namedBegun := app.fetched("known"), app.fetched("named")
	lasts := time.Duration(c.hosts) * time.Second / time.Duration(c.pace)
	hosts, tenants := 0, 0
	tick := time.NewTicker(time.Second / time.Duration(c.pace))
	defer tick.Stop()
	for time.Since(begun) < lasts+calmTime {
		<-tick.C
		if hosts < c.hosts {
			hosts++
			host := spelt(fmt.Sprintf("made-up-%d", hosts), port, hosts)
			asking.Go(func() { s.ask(ctx, host) })
		}
		if time.Since(begun) > time.Duration(tenants)*newEvery {
			tenants++
			come(tenants)
		}
	}
	took := time.Since(begun).Seconds()
	m.known = (app.fetched("known") - knownBegun) / took
	m.named = (app.fetched("named") - namedBegun) / took
	asking.Wait()
	slices.Sort(firsts)
	m.first = firsts[len(firsts)*95/100]
	for i := range hosts {
		m.made += app.fetched(fmt.Sprintf("made-up-%d", i+1)) / float64(hosts)
	}
	heapAfter, _, err := s.memory(ctx)
	check(err)
	m.heap = heapAfter - heapBefore
	return m
}

// hugeRows measure tenants of a few files, whose hosts only visitors name, beside one whose files are the large tree.
func (b *bench) hugeRows(ctx context.Context) []*row {
	what := fmt.Sprintf("%s tenants of %d files beside one of %s: ", number(b.sites), pagesOfSite, number(b.files))
	first := &row{what: what + "first sitemap, 95th percentile", show: duration, reach: atMost(10)}
	without := &row{what: what + "the same without that one", show: duration}
	all := &row{what: what + "start to all listed of that one", show: duration}
	heap := &row{what: what + "live heap", show: mebibytes}
	tree := b.tree("tree", b.files, small)
	for range b.runs {
		beside := b.tenants(ctx, tree)
		alone := b.tenants(ctx, "")
		first.add(beside.first)
		without.add(alone.first)
		all.add(beside.listed)
		heap.add(beside.heap)
		b.say("  many: first sitemap of a small tenant %s beside a huge one, %s without; the huge one %s, heap %s (%s)", duration(beside.first),
			duration(alone.first), duration(beside.listed), mebibytes(beside.heap), load())
	}
	return []*row{first, without, all, heap}
}

// tenantsMeasured is what was measured of tenants of files: seconds, and bytes.
type tenantsMeasured struct{ first, listed, heap float64 }

const tenantsPace = 20 // new tenants a second

// tenants measures small tenants beside one whose files are a tree; "": there is none.
func (b *bench) tenants(ctx context.Context, tree string) (m tenantsMeasured) {
	const name = "tenants"
	addr, port := b.fresh(name)
	for i := range b.sites {
		b.smallRoot(name, i)
	}
	roots := b.path(name + "/roots")
	if tree != "" {
		check(os.Symlink(tree, filepath.Join(roots, "huge")))
	}
	// A host whose front page does not return 200 may be made up, and has no sitemap.
	front := "respond / \"<!doctype html><title>Front page</title><p>Welcome\""
	config := site("*.localhost:"+port, append(files(roots+"/{http.request.host.labels.1}", "sitemap"), front)...)
	s := b.start(name, addr, config)
	defer s.stop()
	check(s.until(ctx, "the first tenant", func() (bool, error) { return s.answers(ctx, "0.localhost:"+port, true) }))
	begun := time.Now()
	var asking sync.WaitGroup
	if tree != "" {
		asking.Go(func() {
			err := s.until(ctx, "the huge tenant", func() (bool, error) {
				time.Sleep(time.Second)
				s.ask(ctx, "huge.localhost:"+port) // as visitors do, now and then
				return s.lists(ctx, "huge.localhost:"+port, b.files)
			})
			if err != nil {
				b.say("  many: %v", err)
			}
			m.listed = time.Since(begun).Seconds()
		})
	}
	firsts := make([]float64, b.sites)
	for i := 1; i < b.sites; i++ {
		time.Sleep(time.Second / tenantsPace)
		asking.Go(func() {
			host := fmt.Sprintf("%d.localhost:%s", i, port)
			asked := time.Now()
			err := s.until(ctx, "the sitemap of "+host, func() (bool, error) { return s.answers(ctx, host, true) })
			if err != nil {
				b.say("  many: %v", err)
			}
			firsts[i] = time.Since(asked).Seconds()
		})
	}
	asking.Wait()
	slices.Sort(firsts)
	m.first = firsts[len(firsts)*95/100]
	heap, _, err := s.memory(ctx)
	check(err)
	m.heap = heap
	return m
}

// lists reports whether the server says that a site lists so many pages.
func (s *server) lists(ctx context.Context, host string, pages int) (bool, error) {
	_, body, err := get(ctx, "http://"+s.admin+"/sitemap/sites?site="+url.QueryEscape("http://"+host+"/"))
	if err != nil {
		return false, err
	}
	var all sitesOfServer
	if err := json.Unmarshal(body, &all); err != nil {
		return false, err
	}
	return len(all.Sites) == 1 && all.Sites[0].Pages == pages, nil
}

// ask requests the sitemap of a host, and returns the status; 0: there was no response.
func (s *server) ask(ctx context.Context, host string) int {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.sitemap(), nil)
	if err != nil {
		return 0
	}
	req.Host = host
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

func kilobytes(v float64) string { return fmt.Sprintf("%.0f KB", v/1e3) }

func perMinute(v float64) string { return fmt.Sprintf("%.0f/min", v*60) }
