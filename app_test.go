package sitemap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/filestorage"
	"go.uber.org/goleak"
)

// siteOf asks for the site of a Host header.
func (b *bench) siteOf(host string) (*site, error) {
	r := httptest.NewRequest(http.MethodGet, "/sitemap.xml", nil)
	r.Host = host
	return b.app.siteOf(b.handler, r, "")
}

// TestMillionHosts: whatever hosts visitors name, there are so many sites and no
// more, refusing is quick, and the named site is there.
func TestMillionHosts(t *testing.T) {
	b := newBench(t, &Handler{})
	b.site("named.example")
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r := httptest.NewRequest(http.MethodGet, "/sitemap.xml", nil)
	refused := 0
	for i := range 1_000_000 {
		r.Host = fmt.Sprintf("%d.example", i)
		if _, err := b.app.siteOf(b.handler, r, ""); err != nil {
			refused++
		}
		if i%1000 == 0 {
			b.clock.advance(time.Millisecond)
			r.Host = "named.example:80"
			if _, err := b.app.siteOf(b.handler, r, ""); err != nil {
				t.Fatalf("after %d hosts the named site is refused: %v", i, err)
			}
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if got, want := len(b.app.sites), maxVisitorSites+1; got != want || b.app.visitorSites != maxVisitorSites {
		t.Errorf("got %d sites, %d of them visitors', want %d", got, b.app.visitorSites, want)
	}
	if want := 1_000_000 - maxVisitorSites; refused != want {
		t.Errorf("%d hosts were refused, want %d", refused, want)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	if got := b.logged("too many sites are known by their visitors' Host headers alone; name hosts in the configuration, or set base_url"); got != 1 {
		t.Errorf("within a second of the clock, the log says so %d times", got)
	}
	runtime.KeepAlive(b)
}

// TestFullIsCounted: what is refused is counted, and said once a minute.
func TestFullIsCounted(t *testing.T) {
	b := newBench(t, &Handler{})
	for i := range maxVisitorSites {
		b.site(fmt.Sprintf("%d.example", i))
	}
	for range 120 {
		for range 10 {
			if _, err := b.siteOf("late.example"); err == nil {
				t.Fatal("one too many")
			}
		}
		b.clock.advance(time.Second)
	}
	lines := b.logs.FilterMessageSnippet("too many sites").All()
	if len(lines) != 2 {
		t.Fatalf("got %d lines in two minutes, want 2", len(lines))
	}
	if got := lines[1].ContextMap()["refused"]; got != int64(600) {
		t.Errorf("the second line counts %v, want 600", got)
	}
}

// TestEviction: only what was not used lately makes room, the one unused longest
// first, and never one that is being refreshed.
func TestEviction(t *testing.T) {
	b := newBench(t, &Handler{})
	b.site("named.example")
	for i := range maxVisitorSites {
		b.site(fmt.Sprintf("%d.example", i))
		b.clock.advance(time.Second)
	}
	there := func(host string) bool {
		return b.app.sites[siteID{b.handler, address{scheme: "http", host: host}}] != nil
	}
	if _, err := b.siteOf("new.example"); !isTooMany(err) {
		t.Fatalf("got %v, want %v", err, errTooManySites)
	}
	b.clock.advance(usedLately - maxVisitorSites*time.Second + time.Second)
	b.site("0.example").touch() // the oldest is used again
	b.site("1.example").busy.Store(true)
	b.clock.advance(3 * time.Second)
	evicted := b.site("2.example")
	if _, err := b.siteOf("new.example"); err != nil {
		t.Fatalf("with a site unused for %s: %v", usedLately, err)
	}
	for host, want := range map[string]bool{"0.example": true, "1.example": true, "2.example": false, "3.example": true, "new.example": true, "named.example": true} {
		if there(host) != want {
			t.Errorf("%s is there: %t, want %t", host, !want, want)
		}
	}
	if len(b.app.sites) != maxVisitorSites+1 || b.app.visitorSites != maxVisitorSites {
		t.Errorf("got %d sites, %d of them visitors'", len(b.app.sites), b.app.visitorSites)
	}
	if b.app.store.has(evicted.key)[evicted.key] {
		t.Error("what the evicted site held is kept")
	}
	select {
	case <-evicted.ready:
	default:
		t.Error("requests wait for a site that is no more")
	}
	if evicted.busy.CompareAndSwap(false, true) {
		t.Error("a site that is no more can still be refreshed")
	}
}

// TestVisitorBytes: beyond their bytes, visitors' sites are neither made nor built.
func TestVisitorBytes(t *testing.T) {
	b := newBench(t, &Handler{})
	big, waiting, named := b.site("big.example"), b.site("waiting.example"), b.site("named.example")
	big.held.Load().snapshot.Store(&Snapshot{bytes: maxVisitorBytes})
	big.count()
	if _, err := b.siteOf("new.example"); !isTooMany(err) {
		t.Errorf("a new site: got %v, want %v", err, errTooManySites)
	}
	b.clock.advance(time.Minute)
	waiting.touch()
	big.touch()
	var wait time.Duration
	due := b.app.due(b.clock.now(), &wait)
	if len(due) != 2 || due[0] != named || due[1] != big {
		t.Errorf("due are %v, want the named one and the big one", due)
	}
	b.clock.advance(usedLately)
	waiting.touch()
	if _, err := b.siteOf("new.example"); err != nil {
		t.Errorf("once the big one was not used lately: %v", err)
	}
	waiting.touch()
	if due := b.app.due(b.clock.now(), &wait); len(due) != 3 || due[0] != named {
		t.Errorf("due are %d sites, want the named one first and the two others", len(due))
	}
}

func isTooMany(err error) bool { return errors.Is(err, errTooManySites) }

// TestClockJumps: a clock that is set forward or back neither stops refreshes nor
// runs them all the time, and Cache-Control stays within its bounds.
func TestClockJumps(t *testing.T) {
	for _, jump := range []time.Duration{-100 * 365 * 24 * time.Hour, -time.Hour, -time.Minute, -time.Second, time.Minute, time.Hour, 100 * 365 * 24 * time.Hour} {
		t.Run(jump.String(), func(t *testing.T) {
			b := newBench(t, &Handler{})
			runs := 0
			b.source = func(_ context.Context, r *Refresh, yield func(Page) error) error {
				runs++
				return yield(Page{Path: "/a"})
			}
			for _, host := range []string{"named.example", "visited.example"} {
				s := b.site(host)
				first := b.refresh(s)
				b.clock.advance(jump)
				s.touch()
				if age := s.cacheControl(); age > "max-age=3600" && len(age) >= len("max-age=3600") {
					t.Errorf("%s: got %s", host, age)
				}
				// As the schedule has it: within two intervals there is a refresh, and
				// then one a minute.
				runs = 0
				for range 10 * 60 {
					if at := s.dueAt(b.clock.now()); !at.IsZero() && !at.After(b.clock.now()) {
						s.looked = true
						s.refresh(t.Context())
					}
					b.clock.advance(time.Second)
					s.touch()
				}
				if runs < 8 || runs > 11 {
					t.Errorf("%s: %d refreshes in the ten minutes after it, want ten or so", host, runs)
				}
				if s.current() != first {
					t.Errorf("%s: the snapshot has changed", host)
				}
			}
		})
	}
}

// TestClockSetBackEvicts: sites that were used in what is now the future do not count
// as used lately for ever.
func TestClockSetBackEvicts(t *testing.T) {
	b := newBench(t, &Handler{})
	for i := range maxVisitorSites {
		b.site(fmt.Sprintf("%d.example", i))
	}
	b.clock.advance(-365 * 24 * time.Hour)
	if _, err := b.siteOf("new.example"); !isTooMany(err) {
		t.Fatalf("got %v, want %v", err, errTooManySites)
	}
	b.clock.advance(usedLately + time.Second)
	if _, err := b.siteOf("new.example"); err != nil {
		t.Errorf("an hour later: %v", err)
	}
	b.clock.advance(-365 * 24 * time.Hour) // while the answer is remembered
	for range 3 {
		b.clock.advance(usedLately + time.Second)
		if _, err := b.siteOf(fmt.Sprint(b.clock.Load(), ".example")); err == nil {
			return
		}
	}
	t.Error("no site is made any more")
}

// TestHostsThatAreNone: each is refused as a bad request, and makes no site.
func TestHostsThatAreNone(t *testing.T) {
	b := newBench(t, &Handler{})
	for _, host := range []string{
		"", " ", ".", "..", "a..b", "-a.example", "a-.example", "a_b c.example", "a b", "a/b", "a%20b", "a\x00b", "a\nb", "<script>", "{http.vars.root}", "../../etc/passwd",
		"[::1", "::1]", "[fe80::1%eth0]", "a:b:c", "*.example", "a,b", "user@host", string(make([]byte, 300)), longLabel + ".example",
	} {
		_, err := b.siteOf(host)
		if err == nil {
			t.Errorf("%q is taken for a host", host)
		}
		if isTooMany(err) {
			t.Errorf("%q: %v", host, err)
		}
	}
	if len(b.app.sites) != 0 {
		t.Errorf("%d sites were made", len(b.app.sites))
	}
}

var longLabel = fmt.Sprintf("%064d", 0)

// TestHalfBuilt: Stop and Cleanup in every state that Caddy may leave an App in.
func TestHalfBuilt(t *testing.T) {
	if err := new(App).Cleanup(); err != nil {
		t.Errorf("never provisioned: %v", err)
	}
	for _, test := range []struct {
		name  string
		start bool
		stop  int
	}{{"provisioned", false, 0}, {"stopped before it started", false, 1}, {"started", true, 0}, {"stopped", true, 1}, {"stopped twice", true, 2}} {
		a := new(App)
		if err := a.Provision(contextOf(t)); err != nil {
			t.Fatal(err)
		}
		wantReferences(t, 1)
		if test.start {
			if err := a.Start(); err != nil {
				t.Fatal(err)
			}
		}
		for range test.stop {
			if err := a.Stop(); err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
		}
		for range 2 {
			if err := a.Cleanup(); err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
		}
		wantReferences(t, 0)
		if len(a.store.generations) != 0 {
			t.Errorf("%s: a generation is left", test.name)
		}
	}
	if err := goleak.Find(goleak.IgnoreCurrent()); err != nil {
		t.Error(err)
	}
}

func wantReferences(t *testing.T, want int) {
	t.Helper()
	if got, _ := snapshots.References(snapshotsKey); got != want {
		t.Errorf("the pool counts %d users, want %d", got, want)
	}
}

// failing is an app that fails where it is told to.
type failing struct {
	Where string `json:"where,omitempty"`
}

func (failing) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "sitemap_test_failing", New: func() caddy.Module { return new(failing) }}
}

var errFailing = errors.New("told to fail")

func (f *failing) Provision(ctx caddy.Context) error {
	if _, err := ctx.App("http"); err != nil { // after ours
		return err
	}
	if f.Where == "provision" {
		return errFailing
	}
	return nil
}

func (f *failing) Start() error {
	if f.Where == "start" {
		return errFailing
	}
	return nil
}

func (*failing) Stop() error { return nil }

// looking is a file system that counts how often it is looked at.
type looking struct{}

var looks atomic.Int64

func (looking) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.fs.sitemap_test_looking", New: func() caddy.Module { return new(looking) }}
}

func (looking) Open(string) (fs.File, error) {
	looks.Add(1)
	return nil, fs.ErrNotExist
}

var registerOnce sync.Once

// config is one of Caddy with a catch-all server and a sitemap, and an app that fails
// where it is told to.
func config(t *testing.T, where string) []byte {
	t.Helper()
	registerOnce.Do(func() {
		caddy.RegisterModule(failing{})
		caddy.RegisterModule(looking{})
	})
	encoded, err := json.Marshal(map[string]any{
		"admin":   map[string]any{"disabled": true, "config": map[string]any{"persist": false}},
		"logging": map[string]any{"logs": map[string]any{"default": map[string]any{"writer": map[string]any{"output": "discard"}}}},
		"storage": map[string]any{"module": "file_system", "root": t.TempDir()},
		"apps": map[string]any{
			"sitemap_test_failing": map[string]any{"where": where},
			"caddy.filesystems": map[string]any{"filesystems": []any{
				map[string]any{"name": "looking", "file_system": map[string]any{"backend": "sitemap_test_looking"}},
			}},
			"http": map[string]any{"servers": map[string]any{"srv": map[string]any{
				"listen":          []string{"127.0.0.1:0"},
				"automatic_https": map[string]any{"disable": true},
				"routes": []any{map[string]any{"handle": []any{
					map[string]any{"handler": "vars", "root": ".", "fs": "looking"},
					map[string]any{"handler": "sitemap", "sources": []any{
						map[string]any{"source": "files"},
						map[string]any{"source": "urls", "urls": []string{"/a"}, "from": []string{"/dev/tty"}},
					}},
					map[string]any{"handler": "file_server"},
				}}},
			}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// TestPoolCounts: whatever becomes of a configuration, the pool counts right.
func TestPoolCounts(t *testing.T) {
	if err := caddy.Load(config(t, ""), true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
		wantReferences(t, 0)
	})
	wantReferences(t, 1)
	pooled, _, _ := snapshots.LoadOrNew(snapshotsKey, nil)
	store := pooled.(*store)
	_, _ = snapshots.Delete(snapshotsKey)
	others := goleak.IgnoreCurrent()
	for range 5 {
		for _, where := range []string{"provision", "start"} {
			if err := caddy.Load(config(t, where), true); err == nil {
				t.Fatalf("a configuration that fails at %s was loaded", where)
			}
			wantReferences(t, 1)
			if n := len(store.generations); n != 1 {
				t.Errorf("%d generations after a failure at %s, want 1", n, where)
			}
		}
	}
	if err := goleak.Find(others, goleak.IgnoreAnyFunction("github.com/caddyserver/certmagic.keepLockfileFresh")); err != nil {
		t.Errorf("a failed reload leaves goroutines: %v", err)
	}
	for range 5 {
		if err := caddy.Load(config(t, ""), true); err != nil {
			t.Fatal(err)
		}
		wantReferences(t, 1)
	}
}

// TestValidateTouchesNothing: no file is looked at, and nothing is left behind.
func TestValidateTouchesNothing(t *testing.T) {
	for _, where := range []string{"", "provision"} {
		var parsed caddy.Config
		if err := json.Unmarshal(config(t, where), &parsed); err != nil {
			t.Fatal(err)
		}
		before := looks.Load()
		if err := caddy.Validate(&parsed); (err != nil) != (where != "") {
			t.Errorf("fails at %q: got %v", where, err)
		}
		if n := looks.Load() - before; n != 0 {
			t.Errorf("validating looks at %d files", n)
		}
		wantReferences(t, 0)
	}
}

// TestStuckAsk: a handler that does not heed its context keeps nobody waiting, and is
// not asked for the same again before it has ended.
func TestStuckAsk(t *testing.T) {
	var calls atomic.Int64
	release := make(chan struct{})
	a := &asker{server: new(caddyhttp.Server), routes: caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error {
		calls.Add(1)
		<-release
		return nil
	})}
	q := question{method: http.MethodGet, base: "http://a.example", path: "/"}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 3 {
		if _, err := a.ask(ctx, q); !errors.Is(err, errStuck) {
			t.Fatalf("got %v, want %v", err, errStuck)
		}
	}
	if calls.Load() != 1 {
		t.Errorf("it was asked %d times", calls.Load())
	}
	close(release)
	for deadline := time.Now().Add(10 * time.Second); a.isStuck(q); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("what has ended still counts")
		}
	}
	if _, err := a.ask(t.Context(), q); err != nil {
		t.Errorf("once it had ended: %v", err)
	}
	for i := range maxStuck {
		a.noteStuck(question{path: fmt.Sprint(i)}, 1)
	}
	if _, err := a.ask(t.Context(), q); !errors.Is(err, errStuck) {
		t.Errorf("with %d stuck: got %v, want %v", maxStuck, err, errStuck)
	}
}

// TestTwins: only sites that may stand for one another wait for one another.
func TestTwins(t *testing.T) {
	var sites []*site
	for _, at := range []string{"http a.example", "https a.example", "http www.b.example", "http b.example", "http c.example", "http www.d.example", "https ", "http "} {
		scheme, host, _ := strings.Cut(at, " ")
		sites = append(sites, &site{id: siteID{address: address{scheme: scheme, host: host}}})
	}
	if got := twins(sites); !slices.Equal(got, sites[:4]) {
		t.Errorf("got %d sites, want the first four", len(got))
	}
}

// forwarded asks for the site that a trusted proxy names.
func (b *bench) forwarded(scheme, host string) (*site, error) {
	r := httptest.NewRequest(http.MethodGet, "/sitemap.xml", nil)
	r.Header.Set("X-Forwarded-Proto", scheme)
	r.Header.Set("X-Forwarded-Host", host)
	return b.app.siteOf(b.handler, trusted(r), "")
}

// trusted is a request that came from a trusted proxy.
func trusted(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), caddyhttp.VarsCtxKey, map[string]any{caddyhttp.TrustedProxyVarKey: true}))
}

// TestForwardedPorts: whatever ports come through a proxy, a named host makes no more
// sites than the configuration names, and others count as visitors'.
func TestForwardedPorts(t *testing.T) {
	b := newBench(t, &Handler{})
	refused := 0
	for port := range 1 << 16 {
		for _, scheme := range []string{"http", "https"} {
			if _, err := b.forwarded(scheme, fmt.Sprintf("named.example:%d", port)); err != nil {
				refused++
			}
		}
	}
	if got, want := len(b.app.sites), maxVisitorSites+2; got != want || b.app.visitorSites != maxVisitorSites {
		t.Errorf("got %d sites, %d of them visitors', want %d and %d", got, b.app.visitorSites, want, maxVisitorSites)
	}
	if refused == 0 {
		t.Error("no site was refused")
	}
	for _, scheme := range []string{"http", "https"} {
		if s, err := b.forwarded(scheme, "named.example"); err != nil || s.visitors {
			t.Errorf("%s: %v", scheme, err)
		}
	}
}

func TestForwardedPort(t *testing.T) {
	b := newBench(t, &Handler{})
	for host, want := range map[string]string{
		"a.example":          "https://a.example",
		"a.example:":         "https://a.example",
		"a.example:443":      "https://a.example",
		"a.example:0443":     "https://a.example",
		"a.example:8443":     "https://a.example:8443",
		"a.example:08443":    "https://a.example:8443",
		"a.example:65535":    "https://a.example:65535",
		"[2001:db8::1]:8443": "https://[2001:db8::1]:8443",
		"a.example:0":        "",
		"a.example:65536":    "",
		"a.example:-1":       "",
		"a.example:+1":       "",
		"a.example:http":     "",
		`a.example:"><b>`:    "",
		"a.example: 1":       "",
	} {
		s, err := b.forwarded("https", host)
		if want == "" && !errors.Is(err, errNoHost) {
			t.Errorf("%s: got %v, want %v", host, err, errNoHost)
		}
		if want != "" && (err != nil || s.base != want) {
			t.Errorf("%s: got %v, %v, want %s", host, s, err, want)
		}
	}
}

// TestVisitorBytesAreCounted: what visitors' sites take is known as it changes, the
// names that they remember with it.
func TestVisitorBytesAreCounted(t *testing.T) {
	b := newBench(t, &Handler{ShardURLs: 2})
	want := func(what string) {
		t.Helper()
		var bytes int64
		for _, s := range b.app.sites {
			if last := s.held.Load().last(); s.visitors && last != nil {
				bytes += last.bytes
			}
		}
		if got := b.app.visitorBytes.Load(); got != bytes || bytes == 0 {
			t.Errorf("%s: got %d bytes, want %d", what, got, bytes)
		}
	}
	b.source = lists("/a", "/b", "/c", "/d", "/e")
	visited, other := b.site("visited.example"), b.site("other.example")
	b.refresh(b.site("named.example"))
	b.refresh(visited)
	b.refresh(other)
	want("refreshed")
	before := b.app.visitorBytes.Load()
	b.source = lists()
	b.refresh(visited)
	if b.refresh(visited) != nil {
		t.Fatal("there is still a snapshot")
	}
	if visited.held.Load().last().bytes == 0 {
		t.Error("names take nothing")
	}
	want("emptied")
	b.source = lists("/a", "/b", "/c")
	b.refresh(visited)
	want("refilled")
	visited.sight.root = "/elsewhere"
	visited.adopt()
	want("moved")
	b.app.mu.Lock()
	b.app.forget(visited)
	b.app.mu.Unlock()
	want("forgotten")
	if b.app.visitorBytes.Load() >= before {
		t.Error("nothing was given back")
	}
}

// TestLookUpEnds: once the configuration ends, no further site is looked at.
func TestLookUpEnds(t *testing.T) {
	b := newBench(t, &Handler{})
	var asked atomic.Int64
	b.app.askers[b.handler.server].routes = caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error {
		asked.Add(1)
		b.app.cancel()
		return nil
	})
	var sites []*site
	for i := range 1000 {
		sites = append(sites, b.site(fmt.Sprintf("%d.example", i)))
	}
	b.app.lookUp(b.app.running, nil, sites)
	if n := asked.Load(); n > 2*lookupsAtATime {
		t.Errorf("%d questions were asked", n)
	}
}

// TestSourceThatGoesOn: Stop does not wait for a source that does not heed its
// context, and what it yields at last changes nothing.
func TestSourceThatGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, &Handler{})
		release := make(chan struct{})
		b.source = func(_ context.Context, _ *Refresh, yield func(Page) error) error {
			<-release
			return yield(Page{Path: "/a"})
		}
		s := b.site("named.example")
		s.looked = true
		b.app.dispatch(b.app.running)
		synctest.Wait()
		if !s.busy.Load() || len(b.app.first) != 1 {
			t.Fatal("no refresh began")
		}
		begun := time.Now()
		if err := b.app.Stop(); err != nil {
			t.Error(err)
		}
		if waited := time.Since(begun); waited != stopGrace {
			t.Errorf("Stop waited for %s, want %s", waited, stopGrace)
		}
		if len(b.app.first) != 0 {
			t.Error("the slot is kept")
		}
		close(release)
		synctest.Wait()
		if s.current() != nil {
			t.Error("what came after Stop is published")
		}
		if !s.busy.Load() {
			t.Error("a site that was left is refreshed again")
		}
	})
}
