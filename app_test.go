package sitemap

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	_ "github.com/caddyserver/caddy/v2/modules/filestorage"
	"go.uber.org/goleak"

	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// visit is a request for the sitemap of a host. The error is that of there being no room.
func (b *bench) visit(host string) (*site, error) {
	r := httptest.NewRequest(http.MethodGet, "/sitemap.xml", nil)
	r.Host = host
	s, err := b.app.siteOf(b.handler, r, "")
	if err == nil {
		s.requested.Store(b.clock.UnixNano())
	}
	return s, err
}

// visitMany requests the sitemaps of so many hosts, once each.
func (b *bench) visitMany(n int) (refused int) {
	b.Helper()
	for i := range n {
		if _, err := b.visit(fmt.Sprintf("junk-%d.example", i)); errors.Is(err, errTooManySites) {
			refused++
		} else if err != nil {
			b.Fatal(err)
		}
	}
	return refused
}

// junk is the site of a host that visitMany has requested; nil: it is gone.
func (b *bench) junk(i int) *site {
	return b.app.sites[siteID{b.handler, address{scheme: "http", host: fmt.Sprintf("junk-%d.example", i)}}]
}

// has reports whether there is a site of a host.
func (b *bench) has(host string) bool {
	b.app.mu.Lock()
	defer b.app.mu.Unlock()
	return b.app.sites[siteID{b.handler, address{scheme: "http", host: host}}] != nil
}

// onDemand counts the sites on demand.
func (b *bench) onDemand() (n int) {
	for _, s := range b.app.sites {
		if s.onDemand {
			n++
		}
	}
	return n
}

// wantSites checks that there are so many sites on demand, and the named one.
func (b *bench) wantSites(onDemand int) {
	b.Helper()
	if got := b.onDemand(); len(b.app.sites) != onDemand+1 || got != onDemand {
		b.Errorf("got %d sites, %d of them on demand, want %d", len(b.app.sites), got, onDemand)
	}
}

// TestManyHosts: whatever hosts visitors name, there are so many sites and no more, and
// what is refused is one line a minute. The named site stays.
func TestManyHosts(t *testing.T) {
	b := newBench(t, nil)
	b.site("named.example")
	if refused := b.visitMany(20_000); refused != 20_000-maxOnDemandSites {
		t.Errorf("%d hosts were refused", refused)
	}
	b.wantSites(maxOnDemandSites)
	if _, err := b.visit("named.example:80"); err != nil {
		t.Errorf("the named site: %v", err)
	}
	b.clock = b.clock.Add(time.Second)
	_, err := b.visit("late.example")
	if lines := b.logs.FilterMessageSnippet("too many sites").Len(); !errors.Is(err, errTooManySites) || lines != 1 || b.app.refused != 19_001 {
		t.Errorf("got %v, want %v, %d refused, and logs %v", err, errTooManySites, b.app.refused, b.logs.All())
	}
}

// TestMakeRoom: a site that is empty goes first, then the one that was requested longest ago;
// never one that was requested lately, or is being refreshed.
func TestMakeRoom(t *testing.T) {
	b := newBench(t, nil)
	b.site("named.example")
	b.visitMany(maxOnDemandSites)
	filled := snapshotOf(t, 1, "/a")
	for _, s := range b.app.sites {
		s.serve(filled)
	}
	at := b.junk
	at(1).serve(nil)
	at(2).serve(nil)
	at(2).schedule.Begin()
	at(3).requested.Add(-1)
	b.clock = b.clock.Add(3 * time.Minute)
	at(4).serve(nil)
	at(4).requested.Store(b.clock.UnixNano())
	for i, want := range []int{1, 3} {
		evicted := at(want)
		if _, err := b.visit(fmt.Sprintf("new-%d.example", i)); err != nil {
			t.Fatal(err)
		}
		if at(want) != nil {
			t.Errorf("junk-%d is there", want)
		}
		if n, _ := states.References(evicted.state.place.key); n != 0 || evicted.ctx.Err() == nil || !wait.IsDone(evicted.ready) {
			t.Errorf("junk-%d is held by %d, has ended: %v, lets requests wait: %t", want, n, evicted.ctx.Err(), !wait.IsDone(evicted.ready))
		}
	}
	b.wantSites(maxOnDemandSites)
	for _, i := range []int{0, 2, 4, 5} {
		if at(i) == nil {
			t.Errorf("junk-%d is gone", i)
		}
	}
}

// TestOnDemandBytes: what sites on demand hold is bounded, too.
func TestOnDemandBytes(t *testing.T) {
	b := newBench(t, nil)
	big, err := b.visit("big.example")
	if err != nil {
		t.Fatal(err)
	}
	big.serve(&document.Set{Bytes: maxOnDemandBytes})
	b.site("named.example").serve(&document.Set{Bytes: maxOnDemandBytes})
	if _, err := b.visit("new.example"); !errors.Is(err, errTooManySites) {
		t.Errorf("got %v, want %v", err, errTooManySites)
	}
	b.clock = b.clock.Add(3 * time.Minute)
	if _, err := b.visit("new.example"); err != nil || b.has("big.example") {
		t.Errorf("once nobody requests the big one: %v, it is there: %t", err, b.has("big.example"))
	}
}

// TestOnDemandGrowth: sites that have grown since they were let in make room, those first
// that nobody wants.
func TestOnDemandGrowth(t *testing.T) {
	b := newBench(t, nil)
	b.site("named.example").serve(&document.Set{Bytes: maxOnDemandBytes})
	for _, host := range []string{"old.example", "wanted.example", "new.example"} {
		s, err := b.visit(host)
		if err != nil {
			t.Fatal(err)
		}
		s.serve(&document.Set{Bytes: maxOnDemandBytes / 4})
	}
	refresh := func(host string) {
		s, err := b.visit(host)
		if err != nil {
			t.Fatal(err)
		}
		s.run()
	}
	refresh("new.example")
	if !b.has("old.example") || !b.has("wanted.example") || !b.has("new.example") {
		t.Error("a site went although there is room")
	}
	b.site("old.example").serve(&document.Set{Bytes: maxOnDemandBytes * 5 / 4})
	refresh("new.example")
	if !b.has("old.example") || b.has("new.example") {
		t.Error("the site that has grown last stays, although the others had requests lately")
	}
	b.clock = b.clock.Add(3 * time.Minute)
	refresh("wanted.example")
	if b.has("old.example") || !b.has("wanted.example") {
		t.Error("the site that nobody wants stays")
	}
	b.wantSites(1)
}

// TestOwnPagesCount: so do the pages of an application's own sitemaps that a site on demand holds.
func TestOwnPagesCount(t *testing.T) {
	b := newBench(t, func(h *Handler) { h.isDefault = true })
	b.lists("/", "/a")
	s := b.site("a.example")
	b.wantPages(s, 2)
	before := s.bytes()
	s.state.own.Store(&ownList{pages: slices.Repeat([]page.Page{{Path: "/a"}}, 10_000)})
	if got := s.bytes() - before; got < 400_000 {
		t.Errorf("10,000 pages count as %d bytes", got)
	}
}

// TestClockSetBack: a clock that jumps does not keep sites out for ever.
func TestClockSetBack(t *testing.T) {
	b := newBench(t, nil)
	b.visitMany(maxOnDemandSites)
	for _, jump := range []time.Duration{-365 * 24 * time.Hour, 365 * 24 * time.Hour, -time.Hour} {
		_, _ = b.visit(fmt.Sprintf("before%d.example", jump))
		b.clock = b.clock.Add(jump)
		_, _ = b.visit(fmt.Sprintf("at%d.example", jump))
		b.clock = b.clock.Add(3 * time.Minute)
		if _, err := b.visit(fmt.Sprintf("after%d.example", jump)); err != nil {
			t.Errorf("three minutes after a jump of %s: %v", jump, err)
		}
	}
}

// visitThrough is visit for what a trusted proxy passes on.
func (b *bench) visitThrough(scheme, host string) (*site, error) {
	r := httptest.NewRequest(http.MethodGet, "/sitemap.xml", nil)
	r.Header.Set("X-Forwarded-Proto", scheme)
	r.Header.Set("X-Forwarded-Host", host)
	return b.app.siteOf(b.handler, fromProxy(r), "")
}

// TestForwardedListener: of a named host, the port of the listener counts if a proxy passes it on.
func TestForwardedListener(t *testing.T) {
	b := newBench(t, func(h *Handler) { h.listener = address{scheme: "http", port: "8080"} })
	for host, want := range map[string]string{
		"named.example:8080":  "http://named.example:8080",
		"named.example":       "http://named.example",
		"named.example:9999":  "http://named.example",
		"named.example:80":    "http://named.example",
		"others.example:9999": "http://others.example:9999", // that a catch-all serves
	} {
		if s, err := b.visitThrough("http", host); err != nil || s.origin != want {
			t.Errorf("%s: got %+v, %v, want %s", host, s, err, want)
		}
	}
}

// TestPortsOfHosts: where nothing names hosts, each port by which visitors reach one is a site.
func TestPortsOfHosts(t *testing.T) {
	const listener = "http://a.example:8080"
	for name, test := range map[string]struct {
		configure func(*Handler)
		visits    [][2]string // Host header, and the site that it is for
	}{
		"behind a port mapping":     {nil, [][2]string{{"a.example", "http://a.example"}, {"a.example:80", "http://a.example"}}},
		"without one":               {nil, [][2]string{{"a.example:8080", listener}}},
		"several ports":             {nil, [][2]string{{"a.example:3000", "http://a.example:3000"}, {"a.example:8080", listener}, {"a.example", "http://a.example"}}},
		"no port at all":            {nil, [][2]string{{"a.example:0", listener}, {"b.example:99999", "http://b.example:8080"}}},
		"in other letters":          {nil, [][2]string{{"A.Example.", "http://a.example"}}},
		"an IPv6 address":           {nil, [][2]string{{"[2001:DB8:0::1]", "http://[2001:db8::1]"}}},
		"a prefix":                  {func(h *Handler) { h.mounts = mounts{{prefix: "/docs"}, {}} }, [][2]string{{"a.example", "http://a.example"}}},
		"matchers name hosts":       {func(h *Handler) { h.mounts = mounts{{hosts: []string{"a.example"}}} }, [][2]string{{"a.example", listener}, {"a.example:99", listener}}},
		"matchers name another":     {func(h *Handler) { h.mounts = mounts{{hosts: []string{"named.example"}}, {}} }, [][2]string{{"a.example", listener}}},
		"a pattern":                 {func(h *Handler) { h.mounts = mounts{{hosts: []string{"*.example"}}} }, [][2]string{{"a.example", listener}}},
		"a trusted proxy":           {func(h *Handler) { h.server.TrustedProxiesUnix = true }, [][2]string{{"a.example", listener}}},
		"a base URL":                {func(h *Handler) { h.BaseURL = "https://shop.example" }, [][2]string{{"a.example:99", "https://shop.example"}}},
		"routes that are not known": {func(h *Handler) { h.mounts = nil }, [][2]string{{"a.example", listener}}},
	} {
		b := newBench(t, func(h *Handler) {
			h.listener = address{scheme: "http", port: "8080"}
			h.mounts = mounts{{}}
			if test.configure != nil {
				test.configure(h)
			}
		})
		urls := make(map[string]bool)
		for _, visit := range test.visits {
			s, err := b.visit(visit[0])
			if err != nil || s.origin != visit[1] {
				t.Errorf("%s: %s: got %+v, %v, want %s", name, visit[0], s, err, visit[1])
				continue
			}
			urls[s.origin] = true
			if id, err := b.handler.idOf(&http.Request{Host: visit[0]}, ""); err != nil || b.app.lookup(id) != s {
				t.Errorf("%s: the site is not found by %q: %v", name, visit[0], err)
			}
		}
		if len(b.app.sites) != len(urls) {
			t.Errorf("%s: got %d sites, want %d", name, len(b.app.sites), len(urls))
		}
	}
}

// TestNamedSites: the sites that the configuration names, however many.
func TestNamedSites(t *testing.T) {
	b := newBench(t, func(h *Handler) {
		h.listener = address{scheme: "https", port: "8443"}
		h.mounts = mounts{{hosts: []string{"a.example", "*.lan", "A.example"}}, {}, {hosts: []string{"a.example"}, prefix: "/docs"}}
	})
	var urls []string
	for _, s := range b.app.namedSites() {
		urls = append(urls, s.url())
	}
	if got, want := fmt.Sprint(urls), "[https://a.example:8443 https://a.example:8443/docs]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	many := newBench(t, func(h *Handler) {
		for i := range maxOnDemandSites + 100 {
			h.mounts = append(h.mounts, &mount{hosts: []string{fmt.Sprintf("site-%d.example", i)}})
		}
	})
	if got := many.app.namedSites(); len(got) != maxOnDemandSites+101 || many.onDemand() != 0 {
		t.Errorf("of thousands: got %d sites, %d of them on demand", len(got), many.onDemand())
	}
	base := newBench(t, func(h *Handler) {
		h.BaseURL, h.mounts = "https://shop.example", mounts{{prefix: "/docs"}, {prefix: "/shop"}}
	})
	if got := base.app.namedSites(); len(got) != 1 || got[0].onDemand {
		t.Errorf("with a base URL: got %d sites", len(got))
	}
}

// TestTakeOver: the next configuration begins with the sites of the one before, as far as
// they are its own.
func TestTakeOver(t *testing.T) {
	before := newBench(t, nil)
	for _, host := range []string{"named.example", "visited.example", "visited.test"} {
		before.site(host).serve(snapshotOf(t, 1, "/a"))
	}
	for name, test := range map[string]struct {
		configure func(*Handler)
		want      string
	}{
		"the same":       {nil, "[http://named.example http://visited.example http://visited.test]"},
		"a pattern":      {func(h *Handler) { h.mounts = mounts{{hosts: []string{"*.example"}}} }, "[http://visited.example]"},
		"another path":   {func(h *Handler) { h.Path = "/map.xml" }, "[]"},
		"a base URL":     {func(h *Handler) { h.BaseURL = "https://shop.example" }, "[]"},
		"another prefix": {func(h *Handler) { h.mounts = mounts{{prefix: "/docs"}} }, "[]"},
	} {
		next := newBench(t, test.configure)
		next.app.takeOver()
		urls := []string{}
		for _, s := range next.app.allSites() {
			urls = append(urls, s.url())
			if s.published().snapshot == nil || !wait.IsDone(s.ready) || s.onDemand != (s.id.host != "named.example") {
				t.Errorf("%s: %s has no snapshot, or waits", name, s.url())
			}
		}
		if got := fmt.Sprint(urls); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

// TestHalfBuilt: Stop and Cleanup in every state that Caddy may leave an App in.
func TestHalfBuilt(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	if err := new(App).Cleanup(); err != nil {
		t.Errorf("never provisioned: %v", err)
	}
	for name, test := range map[string]struct {
		start bool
		stop  int
	}{"provisioned": {false, 0}, "stopped before it started": {false, 1}, "started": {true, 0}, "stopped": {true, 1}, "stopped twice": {true, 2}} {
		a := &App{State: "off"}
		if err := a.Provision(emptyContext(t)); err != nil {
			t.Fatal(err)
		}
		var errs []error
		if test.start {
			errs = append(errs, a.Start())
		}
		for range test.stop {
			errs = append(errs, a.Stop())
		}
		if err := errors.Join(append(errs, a.Cleanup(), a.Cleanup())...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRequestAfterStop: a late request, as one that was under way when Caddy's grace period ended, is served, but makes no site.
func TestRequestAfterStop(t *testing.T) {
	b := newBench(t, nil)
	b.site("named.example").run()
	if err := errors.Join(b.app.Stop(), b.app.Cleanup(), b.app.Cleanup()); err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]error{"named.example": nil, "late.example": errStopping} {
		if s, err := b.visit(host); !errors.Is(err, want) || err == nil && pagesOf(s.published().snapshot) == 0 {
			t.Errorf("%s: got %v, want %v", host, err, want)
		}
	}
	wantState(t, 0)
}

// faulty is an app that fails where it is told to.
type faulty struct {
	Where string `json:"where,omitempty"`
}

func (faulty) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "sitemap_test_faulty", New: func() caddy.Module { return new(faulty) }}
}

func (f *faulty) Provision(ctx caddy.Context) error {
	if _, err := ctx.App("http"); err != nil { // after ours
		return err
	}
	return f.fail("provision")
}

func (f *faulty) Start() error { return f.fail("start") }
func (f *faulty) Stop() error  { return nil }

func (f *faulty) fail(where string) error {
	if f.Where == where {
		return errors.New("told to fail")
	}
	return nil
}

// countingFS is a file system that counts how often it is looked at.
type countingFS struct{}

var looks atomic.Int64

func (countingFS) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.fs.sitemap_test_counting", New: func() caddy.Module { return new(countingFS) }}
}

func (countingFS) Open(string) (fs.File, error) {
	looks.Add(1)
	return nil, fs.ErrNotExist
}

var registerOnce sync.Once

// configuration is one of Caddy with a site, and an app that fails where it is told to.
func configuration(t *testing.T, where string) *caddy.Config {
	t.Helper()
	registerOnce.Do(func() {
		caddy.RegisterModule(faulty{})
		caddy.RegisterModule(countingFS{})
	})
	cfg := new(caddy.Config)
	if err := caddy.StrictUnmarshalJSON(fmt.Appendf(nil, `{"apps": {
		"sitemap": {"state": "off"},
		"sitemap_test_faulty": {"where": "%s"},
		"caddy.filesystems": {"filesystems": [{"name": "counting", "file_system": {"backend": "sitemap_test_counting"}}]},
		"http": {"servers": {"srv": {"listen": ["127.0.0.1:0"], "automatic_https": {"disable": true}, "routes": [{"handle": [
			{"handler": "vars", "root": ".", "fs": "counting"},
			{"handler": "sitemap", "base_url": "http://a.example", "sources": [{"source": "files"}, {"source": "urls", "urls": ["/a"], "from": ["/dev/tty"]}]},
			{"handler": "file_server"}]}]}}}}}`, where), cfg); err != nil {
		t.Fatal(err)
	}
	return quiet(t, cfg)
}

// wantState checks how many configurations hold the state of the site.
func wantState(t *testing.T, want int) {
	t.Helper()
	got := 0
	states.Range(func(key, _ any) bool {
		n, _ := states.References(key)
		got += n
		return true
	})
	if got != want {
		t.Errorf("%d configurations hold a state, want %d", got, want)
	}
}

// TestReloads: whatever becomes of a configuration, it gives back what it held.
func TestReloads(t *testing.T) {
	load := func(where string) error {
		encoded, err := json.Marshal(configuration(t, where))
		if err != nil {
			t.Fatal(err)
		}
		return caddy.Load(encoded, true)
	}
	if err := load(""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
		wantState(t, 0)
	})
	wantState(t, 1)
	app, err := caddy.ActiveContext().App("sitemap")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range app.(*App).allSites() {
		if err := s.refreshNow(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	emitting := make(chan struct{})
	app.(*App).events.queue <- func() { close(emitting) }
	<-emitting // all that the app has started runs
	others := goleak.IgnoreCurrent()
	for range 3 {
		for _, where := range []string{"provision", "start"} {
			if err := load(where); err == nil {
				t.Fatalf("a configuration that fails at %s was loaded", where)
			}
			wantState(t, 1)
		}
	}
	if err := goleak.Find(others, goleak.IgnoreAnyFunction("github.com/caddyserver/certmagic.keepLockfileFresh")); err != nil {
		t.Errorf("a failed reload leaves goroutines: %v", err)
	}
	for range 3 {
		if err := load(""); err != nil {
			t.Fatal(err)
		}
		wantState(t, 1)
	}
}

// TestValidateTouchesNothing: no file is looked at, and nothing is left behind.
func TestValidateTouchesNothing(t *testing.T) {
	for _, where := range []string{"", "provision"} {
		before := looks.Load()
		if err := caddy.Validate(configuration(t, where)); (err != nil) != (where != "") {
			t.Errorf("fails at %q: got %v", where, err)
		}
		if n := looks.Load() - before; n != 0 {
			t.Errorf("validating looks at %d files", n)
		}
		wantState(t, 0)
	}
}

// TestProvisioned: an app that was provisioned makes sites, by the port of a request or not.
func TestProvisioned(t *testing.T) {
	for _, followsPort := range []bool{true, false} {
		b := newBench(t, nil)
		a := &App{State: "off"}
		if err := a.Provision(emptyContext(t)); err != nil {
			t.Fatal(err)
		}
		a.sampled = b.app.sampled
		a.fetchers = b.app.fetchers
		a.handlers = b.app.handlers
		b.handler.app = a
		b.handler.followsPort = followsPort
		id := siteID{b.handler, address{scheme: "http", host: "visited.example"}}
		s, err := a.site(id)
		if err != nil || a.lookup(id) != s || s == nil {
			t.Errorf("got %v, %v", s, err)
		}
		if err := a.Cleanup(); err != nil {
			t.Error(err)
		}
	}
}
