package caddytest

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// upstreamRate is how many requests a second the upstreams of these tests may get.
const upstreamRate = 20

// crawled are the settings of a site that is crawled at that rate.
var crawled = fmt.Sprintf("crawl {\n rate %d/s\n concurrency 4\n }", upstreamRate)

// endless is an application with pages without an end. It counts what is requested but by visitors.
func endless(t *testing.T) (address string, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	return harness.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.UserAgent(), "caddy-sitemap") { // visitors ask for themselves
			asked.Add(1)
		}
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintf(w, "<!doctype html><title>%s %s</title>", r.Host, r.URL.Path)
		for i := range 50 {
			fmt.Fprintf(w, "<a href=%q>link</a>", fmt.Sprint(strings.TrimSuffix(r.URL.Path, "/"), "/", i))
		}
	}), asked
}

// TestMadeUpHosts: made-up hosts of sites whose pages can be listed hurt nobody.
func TestMadeUpHosts(t *testing.T) {
	app, asked := endless(t)
	t.Run("on a static site", func(t *testing.T) {
		wantHarmless(t, "", "root * {dir}/site\n sitemap\n file_server", "Host", asked)
	})
	t.Run("on an application that is crawled", func(t *testing.T) {
		wantHarmless(t, "", "sitemap {\n links\n"+crawled+"\n }\n reverse_proxy "+app, "Host", asked)
	})
}

// TestMadeUpHostsBehindProxies: neither do those of an application whose files are not known, and those that a proxy passes on.
func TestMadeUpHostsBehindProxies(t *testing.T) {
	app, asked := endless(t)
	t.Run("on an application whose files are not known", func(t *testing.T) {
		wantHarmless(t, "", "sitemap {\n"+crawled+"\n }\n reverse_proxy "+app, "Host", asked)
	})
	t.Run("behind a trusted proxy", func(t *testing.T) {
		const trusting = "{\n servers {\n trusted_proxies static 127.0.0.0/8\n }\n}\n"
		wantHarmless(t, trusting, "sitemap {\n links\n"+crawled+"\n }\n reverse_proxy "+app, "X-Forwarded-Host", asked)
	})
}

// wantHarmless checks that however many hosts visitors make up, by a header, upstreams get no more than the handler's rate, half
// of the cores are free, memory is bounded, and a named site refreshes as ever.
func wantHarmless(t *testing.T, options, site, header string, asked *atomic.Int64) {
	t.Helper()
	const hosts, window = 900, 2 * time.Second
	// First looks at hosts are not part of the rate: so many a second, and at once, with up to three requests each.
	const looks, atOnce, each = 20, 16, 3
	const catchAll = "http://:{port} {\n%s\n}\n"
	s := prepare(t, nil)
	for i := range 400 {
		s.Put(fmt.Sprintf("site/%d/%d.html", i%20, i), harness.Whole("", fmt.Sprint("page ", i)), harness.DayOf(i))
	}
	s.Put("site/index.html", harness.Whole("", "the site"), harness.DayOf(0))
	s.Put("healthy/index.html", harness.Whole("", "home"), harness.DayOf(0))
	c := s.Child(options + fmt.Sprintf(catchAll, site) + healthy)
	s.Eventually(func() bool { return s.lists(healthyOrigin, "/") }, s.SitemapLog)
	before := measure(t, c.Pid())
	asked.Store(0)
	begun := time.Now()
	var visitors sync.WaitGroup
	for i := range hosts {
		visitors.Go(func() {
			_, _ = s.Try(http.MethodGet, "http://127.0.0.1:{port}/sitemap.xml", fmt.Sprintf("%s: made-up-%d.example", header, i))
		})
	}
	for time.Since(begun) < window {
		s.keepsRefreshing(healthyOrigin, 1)
	}
	took := time.Since(begun)
	now := measure(t, c.Pid())
	most := upstreamRate*took.Seconds() + 2*upstreamRate + each*(looks*took.Seconds()+atOnce)
	if n := asked.Load(); float64(n) > most {
		t.Errorf("%d requests to the upstream in %s, want at most %.0f", n, took, most)
	}
	// Refreshes may take half of the cores; besides, the visitors are answered.
	if used := now.processor - before.processor; used > took*time.Duration(runtime.NumCPU())*4/5 && !harness.Race {
		t.Errorf("%s of processor time in %s", used, took)
	}
	if grown := now.memory - before.memory; grown > 256<<20 && !harness.Race {
		t.Errorf("memory grew by %d MiB", grown>>20)
	}
	c.Kill()
	visitors.Wait()
}

// usage is what a process has used of the machine.
type usage struct {
	processor time.Duration
	memory    int64 // resident now
}

// measure reads proc(5).
func measure(t *testing.T, pid int) (u usage) {
	t.Helper()
	var ok bool
	u.processor, ok = harness.ProcessorTime(pid)
	if !ok {
		t.Fatalf("there is no processor time of process %d", pid)
	}
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	harness.Must(t, err)
	var size, resident int64 // in pages
	_, err = fmt.Sscan(string(statm), &size, &resident)
	harness.Must(t, err)
	u.memory = resident * int64(os.Getpagesize())
	return u
}
