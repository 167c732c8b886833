package sitemap

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/schedule"
)

// proxies has an upstream respond for all hosts of which respond has a page, and counts its requests by host and path.
func (b *bench) proxies(respond func(host string) bool) (count func(url string) int) {
	var mu sync.Mutex
	counts := make(map[string]int)
	page := b.pages
	b.pages = func(w http.ResponseWriter, r *http.Request) error {
		upstream(r)
		mu.Lock()
		counts[r.Host]++
		counts[r.Host+r.URL.Path]++
		mu.Unlock()
		if !respond(r.Host) {
			return caddyhttp.Error(http.StatusNotFound, nil)
		}
		return page(w, r)
	}
	return func(url string) int {
		mu.Lock()
		defer mu.Unlock()
		return counts[url]
	}
}

// TestRank: a host is known once it has pages and was requested again later, not by one client that tries again at once.
func TestRank(t *testing.T) {
	b := newBench(t, nil)
	if got := b.site("named.example").rank(); got != schedule.Named {
		t.Errorf("a named site: got %d", got)
	}
	for name, test := range map[string]struct {
		listed   bool
		requests []time.Duration // after its first pages were listed
		want     schedule.Rank
	}{
		"nothing listed":      {false, []time.Duration{time.Second, time.Minute, time.Hour}, schedule.Fresh},
		"listed":              {true, nil, schedule.Fresh},
		"by the same client":  {true, []time.Duration{0, time.Second, knownAfter - 1}, schedule.Fresh},
		"by another one":      {true, []time.Duration{0, knownAfter}, schedule.Known},
		"by one, long after":  {true, []time.Duration{24 * time.Hour}, schedule.Known},
		"then not any more":   {true, []time.Duration{time.Minute, time.Minute + 1}, schedule.Known},
		"the clock set back":  {true, []time.Duration{-time.Hour}, schedule.Known},
		"listed, and at once": {true, []time.Duration{1}, schedule.Fresh},
	} {
		s := b.site(strings.ReplaceAll(strings.ReplaceAll(name, " ", "-"), ",", "") + ".example")
		if test.listed {
			s.serve(snapshotOf(t, 1, "/a"))
		}
		s.noteListed()
		for _, after := range test.requests {
			s.noteRequest(b.clock.Add(after))
		}
		if got := s.rank(); got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
	}
}

// TestMadeUpHostCostsLittle: a made-up host costs an upstream one request, and asking again costs nothing for a while. Once there is a
// front page, the host has a sitemap.
func TestMadeUpHostCostsLittle(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.lists("/")
		var exists atomic.Bool
		count := b.proxies(func(string) bool { return exists.Load() })
		s := b.site("made-up.example")
		b.app.group.Go(s.refreshWhenDue)
		ask := func() {
			_, _ = s.snapshot(t.Context())
			time.Sleep(time.Second)
		}
		for range 50 {
			ask()
		}
		if n := count("made-up.example"); n != 1 || count("made-up.example/") != 1 {
			t.Errorf("got %d requests, %d of them for the front page, want one", n, count("made-up.example/"))
		}
		for range 600 {
			ask()
		}
		if n := count("made-up.example"); n > 5 || n != count("made-up.example/") {
			t.Errorf("in ten minutes: got %d requests, %d of them for the front page", n, count("made-up.example/"))
		}
		exists.Store(true)
		for range 3600 {
			ask()
		}
		if pagesOf(s.published().snapshot) != 1 {
			t.Error("it has a front page, and no sitemap")
		}
		_ = b.app.Stop()
	})
}

// TestFirstLooks: a burst of hosts that visitors made up does not keep a new one waiting, whether or not they have pages; and
// the pages of a host that was known before are crawled meanwhile.
func TestFirstLooks(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of hosts")
	}
	for name, respond := range map[string]func(host string) bool{
		"made-up hosts return 404":            func(host string) bool { return !strings.HasPrefix(host, "made-up") },
		"made-up hosts return a default page": func(string) bool { return true },
	} {
		inBubble(t, func(t *testing.T, b *bench) {
			b.lists(append(numbered(100), "/")...)
			count := b.proxies(respond)
			b.handler.limiter = crawl.NewLimiter(2, 1)
			visit := func(host string) *site {
				s := b.site(host)
				if s.runs == 0 && !s.schedule.IsRunning() {
					b.app.group.Go(s.refreshWhenDue)
				}
				return s
			}
			known := visit("known.example")
			time.Sleep(knownAfter + time.Second)
			_, _ = known.snapshot(t.Context())
			before := count("known.example")
			const burst = 100
			for i := range burst {
				visit(fmt.Sprintf("made-up-%d.example", i))
				time.Sleep(time.Second / 8)
			}
			if took, n := burst/8, count("known.example")-before; n < took {
				t.Errorf("%s: %d requests for a known host in %d s, want half of the rate", name, n, took)
			}
			begun := time.Now()
			s := visit("new.example")
			snapshot, err := s.snapshot(t.Context())
			if err != nil || snapshot == nil || time.Since(begun) > time.Second {
				t.Errorf("%s: a new host has its first sitemap after %s: %v", name, time.Since(begun), err)
			}
			time.Sleep(3 * time.Minute)
			if got := pagesOf(known.published().snapshot); got != 101 {
				t.Errorf("%s: the known host has %d of 101 pages", name, got)
			}
			_ = b.app.Stop()
		})
	}
}

// TestExpendable: where there is no room, made-up hosts go at once, then those that were requested only once; one that is
// requested again and again stays.
func TestExpendable(t *testing.T) {
	b := newBench(t, nil)
	b.visitMany(maxOnDemandSites)
	at := b.junk
	filled := snapshotOf(t, 1, "/a")
	for _, s := range b.app.sites {
		s.serve(filled)
		s.state.isKnown.Store(true)
	}
	absent := &probeResult{blocked: reasonAbsent}
	at(3).serve(nil)
	at(3).probed.Store(absent)
	at(5).serve(nil)
	at(5).probed.Store(absent)
	at(5).requested.Add(-int64(time.Second))
	at(7).state.isKnown.Store(false)
	for i, want := range []int{5, 3} {
		if _, err := b.visit(fmt.Sprintf("new-%d.example", i)); err != nil || at(want) != nil {
			t.Errorf("junk-%d is there: %v", want, err)
		}
	}
	b.clock = b.clock.Add(2 * time.Second)
	if _, err := b.visit("new-2.example"); err == nil {
		t.Error("a site went that was requested just now")
	}
	b.clock = b.clock.Add(justNow)
	if _, err := b.visit("new-3.example"); err != nil || at(7) != nil {
		t.Errorf("junk-7 is there: %v", err)
	}
	if got := b.onDemand(); got != maxOnDemandSites {
		t.Errorf("got %d sites on demand, want %d", got, maxOnDemandSites)
	}
}

// TestSlices: the crawl of a host that visitors named goes on by slices, without another request for its sitemap, and others
// have their turns meanwhile.
func TestSlices(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.lists(append(numbered(60), "/")...)
		count := b.proxies(func(string) bool { return true })
		b.handler.limiter = crawl.NewLimiter(2, 1)
		var sites []*site
		for i := range 3 {
			s := b.site(fmt.Sprintf("visited-%d.example", i))
			b.app.group.Go(s.refreshWhenDue)
			sites = append(sites, s)
		}
		// A third of the rate is 30 pages by now. Whose slice comes next is left to chance.
		time.Sleep(45 * time.Second)
		for i, s := range sites {
			if got := pagesOf(s.published().snapshot); got < 5 || got > 50 {
				t.Errorf("after 45 s: site %d has %d of 61 pages, want a third of the rate", i, got)
			}
		}
		time.Sleep(2 * time.Minute)
		for i, s := range sites {
			if got := pagesOf(s.published().snapshot); got != 61 {
				t.Errorf("site %d has %d of 61 pages", i, got)
			}
			if n := count(s.id.host + "/"); n > 4 {
				t.Errorf("site %d: %d requests for the front page: each slice has one", i, n)
			}
		}
		_ = b.app.Stop()
	})
}

// TestKnownWhileWaiting: a host that becomes known while it waits for a turn does not wait behind all fresh ones.
func TestKnownWhileWaiting(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		s := b.site("visited.example")
		s.serve(snapshotOf(t, 1, "/a"))
		s.noteListed()
		s.runs = 1 // it had its first look
		turns := s.app.turns
		for range maxRefreshes / 2 { // all that fresh hosts may have
			turns.Take(s.ctx, schedule.Fresh)
		}
		var isGranted bool
		b.app.group.Go(func() { _, isGranted = s.takeTurn() })
		time.Sleep(knownAfter)
		s.noteRequest(time.Now())
		synctest.Wait()
		if !isGranted {
			t.Error("a host that has become known still waits as a fresh one")
		}
		_ = b.app.Stop()
	})
}
