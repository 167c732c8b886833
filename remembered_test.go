package sitemap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/persist"
	"github.com/seed3295b519/caddy-sitemap/internal/publish"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
	"github.com/seed3295b519/caddy-sitemap/internal/schedule"
)

// hostNamed is the key of a host of one handler.
func hostNamed(host string) hostKey {
	return hostKey{address{scheme: "https", host: host}, address{scheme: "https"}, "/sitemap.xml"}
}

// TestDemand: requests count half after a week, whatever the clock does.
func TestDemand(t *testing.T) {
	begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	d := hostDemand{}.and(8, begun)
	for after, want := range map[time.Duration]float64{0: 8, demandHalves: 4, 2 * demandHalves: 2, -time.Hour: 8, 1e6 * time.Hour: 0} {
		if got := d.at(begun.Add(after)); math.Abs(got-want) > 1e-9 {
			t.Errorf("after %s, 8 requests count as %v, want %v", after, got, want)
		}
	}
	d = d.and(1, begun.Add(demandHalves))
	if d.requests != 5 || !d.last.Equal(begun.Add(demandHalves)) {
		t.Errorf("with one more a week later: got %+v, want 5", d)
	}
	if again := d.and(0, begun.Add(time.Hour)); again != d {
		t.Errorf("without one: got %+v, want %+v", again, d)
	}
}

// TestHostDemands is what a look at the sites on demand makes of the hosts that were known.
func TestHostDemands(t *testing.T) {
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	day := 24 * time.Hour
	const n = 2
	for name, test := range map[string]struct {
		known hostDemands
		live  map[hostKey]liveHost
		want  string // the hosts to remember
		after int    // how many are known then
	}{
		"nothing": {nil, nil, "[]", 0},
		"the most requested first": {nil, map[hostKey]liveHost{
			hostNamed("a"): {1, now, listsPages}, hostNamed("b"): {3, now, listsPages}, hostNamed("c"): {2, now, listsPages},
		}, "[https://b https://c]", 3},
		"as often": {nil, map[hostKey]liveHost{
			hostNamed("c"): {1, now, listsPages}, hostNamed("b"): {1, now, listsPages}, hostNamed("a"): {1, now.Add(-time.Second), listsPages},
		}, "[https://b https://c]", 3},
		"made up": {nil, map[hostKey]liveHost{
			hostNamed("a"): {100, now, listsNone}, hostNamed("b"): {50, now, mayList},
		}, "[]", 2},
		"never requested":   {nil, map[hostKey]liveHost{hostNamed("a"): {0, now, listsPages}}, "[]", 1},
		"lists nothing now": {hostDemands{hostNamed("a"): {9, now, true}}, map[hostKey]liveHost{hostNamed("a"): {1, now, listsNone}}, "[]", 1},
		"may still list":    {hostDemands{hostNamed("a"): {9, now, true}}, map[hostKey]liveHost{hostNamed("a"): {0, now, mayList}}, "[https://a]", 1},
		"gave way":          {hostDemands{hostNamed("a"): {9, now, true}, hostNamed("b"): {9, now, false}}, nil, "[https://a]", 1},
		"just remembered":   {hostDemands{hostNamed("a"): {9, now.Add(-30*day + 1), true}}, nil, "[https://a]", 1},
		"30 days ago":       {hostDemands{hostNamed("a"): {9, now.Add(-30 * day), true}}, nil, "[]", 0},
		"30 days ago, and there": {hostDemands{hostNamed("a"): {9, now.Add(-30 * day), true}},
			map[hostKey]liveHost{hostNamed("a"): {0, now, listsPages}}, "[]", 1},
		"long ago": {hostDemands{hostNamed("a"): {9, now.Add(-14 * day), true}, hostNamed("b"): {3, now, true}, hostNamed("c"): {4, now.Add(-7 * day), true}},
			nil, "[https://b https://a]", 3},
	} {
		got := test.known.after(test.live, now)
		if keys := fmt.Sprint(got.most(n, now)); keys != test.want || len(got) != test.after {
			t.Errorf("%s: got %s of %d, want %s of %d", name, keys, len(got), test.want, test.after)
		}
	}
}

// TestStoredHosts: what is stored is read as it was, without what makes no sense.
func TestStoredHosts(t *testing.T) {
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	all := hostDemands{
		hostNamed("a.example"): {1.25, now, true},
		{address{"http", "[2001:db8::1]", "8080", "/my%20docs"}, address{scheme: "http", port: "8080"}, "/docs/pages.xml"}: {7, now.Add(-time.Hour), true},
	}
	encoded, err := all.encode(all.most(10, now))
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeHosts(encoded)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(all) {
		t.Errorf("got %v, %v, want %v: %s", got, err, all, encoded)
	}
	for name, data := range map[string]string{
		"empty": ``, "cut off": string(encoded[:len(encoded)/2]), "another type": `[]`, "a number of hosts": `{"hosts":3}`,
	} {
		if got, err := decodeHosts([]byte(data)); err == nil {
			t.Errorf("%s: got %v", name, got)
		}
	}
	malformed := `{"hosts":[{"site":"a.example","listener":"https:"},{"site":"https://","listener":"https:"},
		{"site":"https://a.example","listener":"https"},{"site":"https://a.example","listener":"https:","requests":-1}]}`
	if got, err := decodeHosts([]byte(malformed)); err != nil || len(got) != 0 {
		t.Errorf("malformed: got %v, %v", got, err)
	}
	var many strings.Builder
	for i := range 3 * maxOnDemandSites {
		fmt.Fprintf(&many, `,{"site":"https://%d.example","listener":"https:","requests":1}`, i)
	}
	if got, err := decodeHosts([]byte(`{"hosts":[` + many.String()[1:] + `]}`)); err != nil || len(got) != maxOnDemandSites {
		t.Errorf("too many: got %d, %v", len(got), err)
	}
}

// TestRememberStoppedAtOnce: what was requested is stored by a configuration, too, that is stopped as soon as it serves.
func TestRememberStoppedAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.app.RememberHosts = 1
		b.app.serving = make(chan struct{})
		close(b.app.serving)
		demands := hostDemands{hostKey{address{scheme: "http", host: "tenant.example"}, b.handler.listener, "/sitemap.xml"}: {1, time.Now(), true}}
		if err := b.app.Stop(); err != nil {
			t.Fatal(err)
		}
		for i := range 30 { // of two channels that are ready, select chooses either
			storage := &certmagic.FileStorage{Path: t.TempDir()}
			b.app.remembered = &rememberedHosts{file: persist.NewFile(storage, rememberedKey), demands: demands, isLoaded: true}
			b.app.rememberHosts()
			if stored, err := storage.Load(t.Context(), rememberedKey); !strings.Contains(string(stored), "tenant.example") {
				t.Fatalf("time %d: stored %q, %v", i, stored, err)
			}
		}
	})
}

// TestRecallInTurn: remembered sites are made one after the other, the most requested first, and a host that is requested
// meanwhile waits for one of them only.
func TestRecallInTurn(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.lists("/")
		b.app.scheduled = true
		b.app.RememberHosts = 3
		now := time.Now()
		demands := make(hostDemands)
		for i, host := range []string{"fourth.example", "third.example", "second.example", "first.example", "named.example"} {
			demands[hostKey{address{scheme: "http", host: host}, b.handler.listener, "/sitemap.xml"}] = hostDemand{float64(i + 1), now, true}
		}
		b.app.remembered = &rememberedHosts{file: persist.NewFile(nil, rememberedKey), demands: demands, isLoaded: true}
		var mu sync.Mutex
		var order []string
		b.source = func(_ context.Context, r *Refresh, yield func(Page) error) error {
			mu.Lock()
			order = append(order, strings.TrimPrefix(r.BaseURL, "http://"))
			mu.Unlock()
			time.Sleep(firstPatience / 2)
			return yield(Page{Path: "/"})
		}
		if err := b.app.recallHosts(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond) // the first one is refreshed now
		if _, err := b.visit("tenant.example"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute / 2)
		mu.Lock()
		if got, want := strings.Join(order, " "), "first.example tenant.example second.example third.example"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		mu.Unlock()
		recalled := b.app.sites[siteID{b.handler, address{scheme: "http", host: "first.example"}}]
		if got := recalled.rank(); got != schedule.Known {
			t.Errorf("a remembered host has rank %d", got)
		}
		if err := b.app.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestRecallOfNobody: the configuration before may count the sites of a handler that this one does not have.
func TestRecallOfNobody(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		served := hostKey{address{scheme: "http", host: "tenant.example"}, b.handler.listener, "/sitemap.xml"}
		gone := served
		gone.path = "/other.xml"
		got := b.app.byHandler([]hostKey{gone, served})
		if len(got) != 1 || !slices.Equal(got[b.handler], []hostKey{served}) {
			t.Errorf("got %v, want %v of the one handler", got, served)
		}
	})
}

// TestRecallOfVisited: a visitor may request a remembered host before it is recalled.
func TestRecallOfVisited(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.lists("/")
		b.app.scheduled = true
		b.app.RememberHosts = 1
		id := siteID{b.handler, address{scheme: "http", host: "tenant.example"}}
		demands := hostDemands{hostKey{id.address, b.handler.listener, "/sitemap.xml"}: {1, time.Now(), true}}
		b.app.remembered = &rememberedHosts{file: persist.NewFile(nil, rememberedKey), demands: demands, isLoaded: true}
		if _, err := b.visit("tenant.example"); err != nil {
			t.Fatal(err)
		}
		if err := b.app.recallHosts(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := b.app.sites[id].rank(); got != schedule.Known {
			t.Errorf("a remembered host has rank %d", got)
		}
		if err := b.app.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestListing is what a site's last refresh tells of whether it lists pages.
func TestListing(t *testing.T) {
	for name, test := range map[string]struct {
		pages  int
		last   *report.Report
		probed *probeResult
		want   listingState
	}{
		"no refresh":              {0, nil, nil, mayList},
		"pages":                   {1, &report.Report{Result: outcome.Unchanged}, nil, listsPages},
		"pages of long ago":       {3, &report.Report{Result: outcome.Failed}, nil, listsPages},
		"failed":                  {0, &report.Report{Result: outcome.Failed}, nil, mayList},
		"none":                    {0, &report.Report{Result: outcome.Empty}, new(probeResult), listsNone},
		"pending":                 {0, &report.Report{Result: outcome.Empty, Pending: 1}, new(probeResult), mayList},
		"not found":               {0, &report.Report{Result: outcome.Empty}, &probeResult{blocked: reasonAbsent, status: 404}, listsNone},
		"not yet":                 {0, &report.Report{Result: outcome.Empty}, &probeResult{blocked: reasonAbsent, status: 502}, mayList},
		"robots.txt not readable": {0, &report.Report{Result: outcome.Empty}, &probeResult{robots: robotsRules{closed: true}}, mayList},
	} {
		s, _ := reportSite(t)
		if test.pages > 0 {
			s.serve(listing(test.pages))
		}
		s.published().report = test.last
		s.probed.Store(test.probed)
		if got := s.listing(); got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
	}
}

// TestRecallWhereFull: a host that is made again is as old as its last request, and gives way to those that visitors request;
// it takes the room of none.
func TestRecallWhereFull(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.lists("/")
		b.app.scheduled = true
		keyOf := func(host string) hostKey {
			s, err := b.visit(host)
			if err != nil {
				t.Fatal(err)
			}
			b.app.mu.Lock()
			defer b.app.mu.Unlock()
			b.app.remove(s)
			return s.state.hostKey()
		}
		first := keyOf("first.example")
		second := keyOf("second.example")
		last := time.Now().Add(-time.Hour)
		demands := hostDemands{first: {last: last}, second: {last: last}}
		b.app.recallEach(b.handler, []hostKey{first}, demands)
		recalled := b.app.lookup(siteID{b.handler, first.address})
		if recalled == nil || recalled.requested.Load() != last.UnixNano() {
			t.Fatalf("got %+v", recalled)
		}
		big, err := b.visit("big.example")
		if err != nil {
			t.Fatal(err)
		}
		<-big.ready
		big.requested.Store(time.Now().UnixNano())
		big.serve(&publish.Snapshot{Bytes: maxOnDemandBytes})
		b.app.recallEach(b.handler, []hostKey{second}, demands)
		if !b.has("first.example") || b.has("second.example") {
			t.Error("a host that is recalled takes the room of another one")
		}
		big.serve(&publish.Snapshot{})
		big.serve(&publish.Snapshot{Bytes: maxOnDemandBytes - 1 - big.bytes()}) // without the recalled one there is room
		if _, err := b.visit("new.example"); err != nil || b.has("first.example") {
			t.Errorf("a visitor's host gets %v, and the recalled one is there: %t", err, b.has("first.example"))
		}
		if err := b.app.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestRememberHosts: the hosts that visitors requested most are stored, those of the process before are made again, and a
// configuration that remembers none deletes them.
func TestRememberHosts(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, filepath.FromSlash(rememberedKey))
	process := func(n int, during func(t *testing.T, b *bench)) {
		inBubble(t, func(t *testing.T, b *bench) {
			b.lists("/")
			b.app.scheduled = true
			b.app.folder = folder
			b.app.serving = make(chan struct{})
			b.app.RememberHosts = n
			b.app.startRemembering()
			close(b.app.serving)
			during(t, b)
			if err := b.app.Stop(); err != nil {
				t.Error(err)
			}
			_, _ = rememberedPool.Delete(folder)
		})
	}
	wantStored := func(t *testing.T, want ...string) {
		t.Helper()
		stored, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var all storedHosts
		if err := json.Unmarshal(stored, &all); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, host := range all.Hosts {
			got = append(got, strings.TrimPrefix(host.Site, "http://"))
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	process(2, func(t *testing.T, b *bench) {
		for i, host := range []string{"named.example", "seldom.example", "often.example", "more.example"} {
			s, err := b.visit(host)
			if err != nil {
				t.Fatal(err)
			}
			s.requested.Store(time.Now().UnixNano())
			s.state.visits.Add(int64(i))
		}
		time.Sleep(rememberInterval + time.Second)
		wantStored(t, "more.example", "often.example")
		s, _ := b.visit("seldom.example")
		s.requested.Store(time.Now().UnixNano())
		s.state.visits.Add(9)
	})
	wantStored(t, "seldom.example", "more.example")
	process(2, func(t *testing.T, b *bench) {
		time.Sleep(time.Minute / 2)
		for host, want := range map[string]bool{"seldom.example": true, "more.example": true, "often.example": false} {
			if b.has(host) != want {
				t.Errorf("there is %s: %t", host, !want)
			}
		}
	})
	wantStored(t, "seldom.example", "more.example")
	process(0, func(t *testing.T, _ *bench) { time.Sleep(time.Second) })
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is not deleted: %v", err)
	}
	process(0, func(t *testing.T, b *bench) {
		time.Sleep(time.Second)
		if b.logs.Len() > 0 {
			t.Errorf("where there is none, it logs %+v", b.logs.All())
		}
	})
}
