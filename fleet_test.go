package sitemap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/fleet"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
	"github.com/seed3295b519/caddy-sitemap/internal/robotstxt"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// sharing is a bench of a node that shares its sites in a folder.
func sharing(t *testing.T, folder string, change func(*bench)) (*bench, *site) {
	t.Helper()
	b := newBench(t, func(h *Handler) { h.sources = []input{new(SourceTraffic)} })
	b.app.sharing, b.app.folder, b.app.ctx = storageSetting{kind: inCaddys}, t.TempDir(), emptyContext(t)
	if change != nil {
		change(b)
	}
	s := b.site("named.example")
	s.state.fleet.Configure(&certmagic.FileStorage{Path: folder}, 0)
	return b, s
}

// freeLocks drops a site in a bubble, and waits until what keeps the files of its locks has noticed.
func freeLocks(s *site) {
	s.drop()
	time.Sleep(time.Minute)
}

// TestFollower: a node that loads what another one has published requests nothing, and knows what that one has found.
func TestFollower(t *testing.T) {
	folder := t.TempDir()
	b1, first := sharing(t, folder, nil)
	b1.lists("/a", "/b")
	pages := b1.pages
	b1.pages = func(w http.ResponseWriter, r *http.Request) error {
		if r.URL.Path != robotsPath {
			return pages(w, r)
		}
		w.Header().Set("Content-Type", contentText)
		_, err := io.WriteString(w, "User-agent: *\nDisallow: /c")
		return err
	}
	b1.refresh(first)
	b2, second := sharing(t, folder, nil)
	b2.clock = b1.clock
	b2.pages = func(_ http.ResponseWriter, r *http.Request) error {
		t.Errorf("%s is requested", r.URL.Path)
		return nil
	}
	second.run()
	probed := second.probed.Load()
	if pagesOf(second.published().snapshot) != 2 || probed == nil || probed.robots.rules.Allows("/c") || !probed.robots.rules.Allows("/a") {
		t.Errorf("%d pages, %+v", pagesOf(second.published().snapshot), probed)
	}
	second.run() // nothing is newer
}

// TestStoredProbe: what is stored of a probe is what was found.
func TestStoredProbe(t *testing.T) {
	p := &probeResult{
		blocked: "refused", status: 403, remedy: "none", canonicalHost: "www.example.com", byLinks: true,
		siteFiles: siteFiles{root: "/srv", fs: "zip"},
	}
	p.robots.closed = true
	p.robots.rules = robotstxt.ReadRules([]byte("User-agent: *\nDisallow: /private/*.html$\nAllow: /private/open"), "Googlebot")
	if got := storeProbe(p).probe(); !reflect.DeepEqual(got, p) {
		t.Errorf("got %+v, want %+v", got, p)
	}
	if got := storeProbe(new(probeResult)).probe(); !reflect.DeepEqual(got, new(probeResult)) {
		t.Errorf("of nothing: got %+v", got)
	}
}

// TestFleetSettings: a site goes on from the records of the time before it was shared, and of other settings.
func TestFleetSettings(t *testing.T) {
	folder, local := t.TempDir(), t.TempDir()
	firstSeen := func(s *site, path string) int64 {
		for r, err := range s.published().generation.Records(t.Context()) {
			if err == nil && r.Path == path {
				return r.First
			}
		}
		return 0
	}
	alone := newBench(t, nil)
	alone.app.folder = local
	s := alone.site("named.example")
	alone.refresh(s)
	want, before := firstSeen(s, "/a"), int64(0)
	stop := func(b *bench, s *site) { // as where the process ends
		s.drop()
		b.app.sites, b.app.keys = nil, make(map[string]bool)
	}
	stop(alone, s)
	for i, settings := range []uint64{0, 1, 0, 2} { // the last has no folder that it knows
		b, s := sharing(t, folder, func(b *bench) {
			if b.handler.settings.digest = settings; settings < 2 {
				b.app.folder = local
			}
			b.clock = b.clock.Add(time.Duration(i+1) * time.Hour)
			b.lists("/a", fmt.Sprint("/b", min(i, 2)))
		})
		r, _ := s.state.records.Acquire(t.Context())
		if s.restore(t.Context(), r); (s.published().snapshot != nil) != (settings == 0) {
			t.Errorf("settings %d: serves what other settings have made: %t", settings, settings > 0)
		}
		r.Release()
		b.clock = b.clock.Add(time.Hour) // it is due
		if got := b.refresh(s); pagesOf(got) != 2 || firstSeen(s, "/a") != want || want == 0 {
			t.Errorf("settings %d: %d pages, seen first at %d, want %d", settings, pagesOf(got), firstSeen(s, "/a"), want)
		}
		seen := firstSeen(s, fmt.Sprint("/b", min(i, 2)))
		if i == 3 && seen != before {
			t.Errorf("settings %d do not go on from the latest: seen first at %d, want %d", settings, seen, before)
		}
		before = seen
		if status := s.status().Storage; status.Generation == 0 || status.Error != "" {
			t.Errorf("settings %d: %+v", settings, status)
		}
		stop(b, s)
	}
}

// TestFleetSignals: a node whose visitors found a listed page gone refreshes the site before the one that did so last. Of what
// is not listed, nobody is told.
func TestFleetSignals(t *testing.T) {
	folder := t.TempDir()
	b1, first := sharing(t, folder, nil)
	b1.refresh(first)
	b2, second := sharing(t, folder, nil)
	b2.clock = b1.clock
	second.run()
	comesFirst := func() bool {
		return second.state.fleet.DueFor(second.standing()).Before(first.state.fleet.DueFor(first.standing()))
	}
	second.Note("/unknown", 0, true)
	if comesFirst() {
		t.Error("for a page that is not listed, the node comes first")
	}
	second.Note("/a", 0, true)
	if comesFirst() {
		t.Error("a second one within a second is looked at")
	}
	b2.clock = b2.clock.Add(time.Second)
	second.Note("/a", 0, true)
	if !comesFirst() {
		t.Error("for a page that is listed, the node does not come first")
	}
	b2.clock = second.state.fleet.DueFor(second.standing())
	second.run()
	if status := second.state.fleet.Status(); status.Writer != status.Node {
		t.Errorf("it has not refreshed the site: %+v", status)
	}
	b1.clock = b2.clock
	for range 3 { // it loads what the other one has committed, and refreshes the site when it is due
		b1.clock = b1.clock.Add(first.handler.settings.interval)
		_ = first.state.fleet.Poll(t.Context())
		first.run()
	}
	if status := first.state.fleet.Status(); status.Writer != status.Node {
		t.Fatalf("the other one has not refreshed the site: %+v", status)
	}
	b2.clock = b1.clock
	_ = second.state.fleet.Poll(t.Context())
	second.run()
	if comesFirst() {
		t.Error("the signal still counts after the refresh")
	}
}

// TestDamage: where records were lost, what is served stays until their pages are fetched again, in a process alone
// and in a fleet. A day later, pages that are still missing are gone.
func TestDamage(t *testing.T) {
	for name, isShared := range map[string]bool{"alone": false, "in a fleet": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				s := b.site("named.example")
				if isShared {
					b, s = sharing(t, t.TempDir(), func(b *bench) { b.app.now = time.Now })
				}
				b.lists(numbered(20)...)
				s.run()
				r, err := s.state.records.Acquire(t.Context())
				if err != nil || pagesOf(s.published().snapshot) != 20 {
					t.Fatal(err, pagesOf(s.published().snapshot))
				}
				w := r.Generation.Writer()
				w.Put("", nil, nil, nil)
				r.Generation, _ = w.Generation()
				r.Release()
				s.amend(func(p *publication) { p.history.Lost = time.Now() })
				fast := b.pages
				slow := numbered(20)[12:] // fewer than half: such a loss would be held back
				b.pages = func(w http.ResponseWriter, r *http.Request) error {
					if slices.Contains(slow, r.URL.Path) {
						time.Sleep(4 * time.Second)
					}
					return fast(w, r)
				}
				time.Sleep(time.Minute) // the storage notices that the lock is released
				held := 0
				for i := 0; i < 5 && !s.published().history.Lost.IsZero(); i++ {
					ended := s.schedule.Request(time.Now())
					go s.run()
					for begun := time.Now(); !wait.IsDone(ended); time.Sleep(100 * time.Millisecond) {
						if got := s.published().snapshot; pagesOf(got) != 20 {
							t.Fatalf("refresh %d: %d pages after %s", i, pagesOf(got), time.Since(begun))
						}
					}
					if s.published().history.Last.Reason == reasonLost {
						held++
					}
				}
				if got := s.published(); got.generation.Len() < 20 || !got.history.Lost.IsZero() || held == 0 {
					t.Errorf("%d records, held back %d times, %+v", got.generation.Len(), held, got.history)
				}
				time.Sleep(10 * time.Second) // the storage notices that the lock is released
			})
		})
	}
}

// TestLost says when records count as lost.
func TestLost(t *testing.T) {
	now := time.Unix(1e9, 0)
	for name, test := range map[string]struct {
		before  time.Duration // ago; 0: none were
		crawled crawl.Result
		want    time.Duration // ago; -1: none are
	}{
		"none":                   {0, crawl.Result{Gathered: true, Pending: 1}, -1},
		"in this crawl":          {0, crawl.Result{Gathered: true, Pending: 1, Lost: true}, 0},
		"before":                 {time.Hour, crawl.Result{Gathered: true, Pending: 1}, time.Hour},
		"again":                  {time.Hour, crawl.Result{Gathered: true, Pending: 1, Lost: true}, time.Hour},
		"before all are known":   {time.Hour, crawl.Result{}, time.Hour},
		"all are fetched":        {time.Hour, crawl.Result{Gathered: true, Lost: true}, -1},
		"nearly a day ago":       {lostFor - 1, crawl.Result{Pending: 1}, lostFor - 1},
		"a day ago":              {lostFor, crawl.Result{Pending: 1}, -1},
		"the clock was set back": {-lostFor, crawl.Result{Pending: 1}, -1},
	} {
		r := &refreshing{batch: now, served: new(publication), crawled: test.crawled}
		if test.before != 0 {
			r.served.history.Lost = now.Add(-test.before)
		}
		got := time.Duration(-1)
		if at := r.lost(); !at.IsZero() {
			got = now.Sub(at)
		}
		if got != test.want {
			t.Errorf("%s: got %s ago, want %s", name, got, test.want)
		}
	}
}

// failing is a storage that is down.
type failing struct{ fleet.Shared }

func (failing) Load(context.Context, string) ([]byte, error) { return nil, context.DeadlineExceeded }
func (failing) Store(context.Context, string, []byte) error  { return context.DeadlineExceeded }
func (failing) Lock(context.Context, string) error           { return context.DeadlineExceeded }
func (failing) Unlock(context.Context, string) error         { return context.DeadlineExceeded }

const (
	beganAlone = "the shared storage did not respond within fleet_patience: this process begins to refresh the site as if it were alone"
	cannotWait = "cannot reach the shared storage: no sitemap is served until it responds, or fleet_patience is over"

	cannotLoad  = "cannot load the shared sitemap: no sitemap is served until it is loaded, or fleet_patience is over"
	stillServed = "cannot load or commit the shared sitemap: the last one is still served"
)

// TestFleetWaitsForStorage: a node that has nothing serves nothing, and requests nothing, until it is known what others have
// committed, though an operator requests a refresh. After its patience it begins alone, goes on like that, and says so once.
func TestFleetWaitsForStorage(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		b, s := sharing(t, t.TempDir(), func(b *bench) { b.app.FleetPatience = caddy.Duration(time.Hour) })
		defer freeLocks(s)
		b.pages = func(_ http.ResponseWriter, r *http.Request) error {
			t.Errorf("%s is requested", r.URL.Path)
			return nil
		}
		member := s.state.fleet
		member.SetPatience(time.Hour)
		good := member.Storage()
		member.Configure(failing{}, 0)
		begun := b.clock
		s.run()
		if out := s.refresh(t.Context(), true); !errors.Is(out.Err, fleet.ErrWaits) {
			t.Errorf("a demanded refresh ended with %+v", out.Outcome)
		}
		if b.logged(cannotLoad) != 1 || b.logged(stillServed) != 0 {
			t.Errorf("it is not said once that nothing is served: %v", b.logs.All())
		}
		s.setReady() // as it does
		if err := member.Poll(t.Context()); err == nil {
			t.Error("it is read")
		}
		if _, err := s.snapshot(t.Context()); !errors.Is(err, errNotReady) || s.status().Storage.State != stateWaits {
			t.Errorf("it does not wait: %v, %+v", err, s.status().Storage)
		}
		s.run()
		if due := s.schedule.Due(); !due.Equal(begun.Add(time.Hour)) {
			t.Errorf("due after %s", due.Sub(begun))
		}
		b.clock = begun.Add(time.Hour)
		b.lists("/a")
		for pages := 1; pages < 4; pages++ {
			b.lists(numbered(pages)...)
			if got := b.refresh(s); pagesOf(got) != pages || s.status().Storage.State != stateAlone || b.logged(beganAlone) != 1 {
				t.Errorf("%d pages, want %d, %+v, logged %d times", pagesOf(got), pages, s.status().Storage, b.logged(beganAlone))
			}
			b.clock = b.clock.Add(time.Hour)
		}
		member.Configure(good, 0)
		if err := member.Poll(t.Context()); err != nil {
			t.Fatal(err)
		}
		if b.refresh(s); member.Status().Generation != 1 || s.status().Storage.State != "" {
			t.Errorf("nothing was committed: %+v", s.status().Storage)
		}
	})
}

// TestFleetKnownEmpty: a node that waits begins with the poll that finds that the storage has nothing, and follows where that has
// something.
func TestFleetKnownEmpty(t *testing.T) {
	for name, isShared := range map[string]bool{"empty": false, "shared": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, _ *bench) {
				folder, now := t.TempDir(), func(b *bench) { b.app.now = time.Now }
				want := 1
				if isShared {
					want = 3
					b, first := sharing(t, folder, now)
					b.lists(numbered(want)...)
					first.run()
					first.drop() // else this process goes on from what it serves
				}
				b, s := sharing(t, folder, now)
				hangs := new(atomic.Bool)
				hangs.Store(true)
				down := fleet.Shared(hanging{s.state.fleet.Storage(), hangs})
				s.state.fleet.Storage = func() fleet.Shared { return down }
				done := make(chan struct{})
				go func() {
					defer close(done)
					for s.schedule.Wait(s.ctx, time.Now, false) {
						s.run()
					}
				}()
				go s.pollFleet()
				time.Sleep(time.Minute)
				begun := time.Now()
				if _, err := s.snapshot(t.Context()); !errors.Is(err, errNotReady) || time.Since(begun) > 0 {
					t.Errorf("after %s: %v", time.Since(begun), err)
				}
				if b.logged(cannotWait) != 1 {
					t.Errorf("logged %d times", b.logged(cannotWait))
				}
				hangs.Store(false)
				time.Sleep(15 * time.Second) // a call that hangs, and a poll
				if got := pagesOf(s.published().snapshot); got != want || b.logged(beganAlone) > 0 {
					t.Errorf("%d pages, want %d", got, want)
				}
				s.cancel()
				<-done
				time.Sleep(time.Minute) // calls under way
			})
		})
	}
}

// hanging is a storage whose calls do not return as long as it hangs, whatever their contexts.
type hanging struct {
	fleet.Shared
	hangs *atomic.Bool
}

func (h hanging) wait() {
	for h.hangs.Load() {
		time.Sleep(time.Second)
	}
}

func (h hanging) Load(ctx context.Context, key string) ([]byte, error) {
	h.wait()
	return h.Shared.Load(ctx, key)
}

func (h hanging) Lock(ctx context.Context, name string) error {
	h.wait()
	return h.Shared.Lock(ctx, name)
}

// partly is a storage of which some calls fail.
type partly struct {
	fleet.Shared
	store, lock error
}

func (p partly) Store(ctx context.Context, key string, value []byte) error {
	return cmp.Or(p.store, p.Shared.Store(ctx, key, value))
}

func (p partly) Lock(ctx context.Context, name string) error {
	return cmp.Or(p.lock, p.Shared.Lock(ctx, name))
}

// TestFleetReadOnly: that a storage can be read but not written is logged and counted, although polls succeed.
func TestFleetReadOnly(t *testing.T) {
	for name, test := range map[string]struct {
		faults partly
		want   int // warnings: after a minute, the lock is broken, so every other refresh succeeds
	}{"values": {partly{store: os.ErrPermission}, 1}, "locks": {partly{lock: os.ErrPermission}, 2}} {
		t.Run(name, func(t *testing.T) {
			b, s := sharing(t, t.TempDir(), nil)
			good := s.state.fleet.Storage()
			test.faults.Shared = good
			faulty := fleet.Shared(test.faults)
			s.state.fleet.Configure(faulty, 0)
			if b.refresh(s); pagesOf(s.published().snapshot) != 1 {
				t.Fatal("nothing is served from memory")
			}
			if st := s.status(); st.Storage.Generation == 0 && st.LastRefresh.Confirmed.Before(st.LastRefresh.At.Truncate(time.Second)) {
				t.Errorf("confirmed at %s, before its begin", st.LastRefresh.Confirmed)
			}
			for range 3 {
				_ = s.state.fleet.Poll(t.Context())
				b.refresh(s)
			}
			if n, st := b.logged(stillServed), s.status().Storage; n != test.want || st.Errors == 0 {
				t.Errorf("logged %d times, %+v", n, st)
			}
			s.state.fleet.Configure(good, 0)
			if b.refresh(s); s.state.fleet.Status().Generation == 0 {
				t.Error("nothing was committed")
			}
		})
	}
}

// TestFleetWaits: a node that waits for the lock loads what the node that has it commits meanwhile.
func TestFleetWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		folder, now := t.TempDir(), func(b *bench) { b.app.now = time.Now }
		b, first := sharing(t, folder, now)
		first.run()
		_, second := sharing(t, folder, now)
		second.run()
		time.Sleep(time.Hour) // both are due
		paths := []string{"/a"}
		for i := range 60 {
			paths = append(paths, fmt.Sprint("/", i))
		}
		b.lists(paths...)
		fast := b.pages
		b.pages = func(w http.ResponseWriter, r *http.Request) error {
			time.Sleep(300 * time.Millisecond)
			return fast(w, r)
		}
		go first.run()
		time.Sleep(1100 * time.Millisecond) // it has the lock
		go second.run()
		time.Sleep(5 * time.Second) // it has published some pages
		_ = second.state.fleet.Poll(t.Context())
		synctest.Wait()
		got, want := pagesOf(second.published().snapshot), pagesOf(first.published().snapshot)
		if isRunning := first.schedule.IsRunning(); got != want || want < 2 || !isRunning {
			t.Errorf("%d pages, want %d; the first one has the lock: %t", got, want, isRunning)
		}
		time.Sleep(time.Minute) // refreshes end, and the storage notices that locks are released
	})
}

// TestFleetFull: a commit that fails is tried again after an interval.
func TestFleetFull(t *testing.T) {
	b, s := sharing(t, t.TempDir(), nil)
	b.refresh(s)
	full := fleet.Shared(partly{Shared: s.state.fleet.Storage(), store: errors.New("no space left")})
	s.state.fleet.Configure(full, 0)
	b.lists("/a", "/b")
	if got := b.refresh(s); pagesOf(got) != 1 {
		t.Errorf("%d pages", pagesOf(got))
	}
	due := s.schedule.Due()
	if want := s.handler.settings.interval; due.Sub(b.clock) != want || s.state.fleet.DueFor(s.standing()).Sub(b.clock) != want {
		t.Errorf("tried again after %s and %s, want %s", due.Sub(b.clock), s.state.fleet.DueFor(s.standing()).Sub(b.clock), want)
	}
}

// TestFleetStorage: a site of which another storage has generations already follows those, whatever it has served before.
func TestFleetStorage(t *testing.T) {
	b, s := sharing(t, t.TempDir(), nil)
	defer s.drop()
	for i := range 3 {
		b.lists("/a", fmt.Sprint("/", i))
		b.refresh(s)
	}
	own := &certmagic.FileStorage{Path: t.TempDir()}
	others, other := sharing(t, own.Path, nil)
	others.lists("/a", "/b", "/c")
	others.clock = b.clock
	want := others.refresh(other)
	b.app.sharing = storageSetting{kind: inOwn, own: own, digest: 1}
	b.app.sites = make(map[siteID]*site)
	next := b.site("named.example")
	defer next.drop()
	if next.state == s.state || next.published().snapshot == nil {
		t.Fatalf("until it has loaded them, it serves %d pages", pagesOf(next.published().snapshot))
	}
	if copies := next.state.fleet.Local; copies == s.state.fleet.Local {
		t.Error("it shares copies in a folder")
	}
	next.run()
	if got := next.published().snapshot; !want.Equal(got) {
		t.Errorf("%d pages, want those of the other node", pagesOf(got))
	}
	if got := next.state.fleet.Status(); got.Writer != other.state.fleet.ID {
		t.Errorf("it has overwritten them: %+v", got)
	}
}

// unsteady is a storage that fails in another way each time.
type unsteady struct {
	fleet.Shared
	down *atomic.Bool
	n    *atomic.Int32
}

func (u unsteady) Load(ctx context.Context, key string) ([]byte, error) {
	if !u.down.Load() {
		return u.Shared.Load(ctx, key)
	}
	n := u.n.Add(1)
	if n%2 == 0 {
		return nil, fmt.Errorf("read tcp 10.0.0.7:%d->10.0.0.9:6379: i/o timeout", 40_000+n)
	}
	return nil, errors.New("dial tcp 10.0.0.9:6379: connect: connection refused")
}

// TestFleetLog: a storage that is down is logged once, until it is over.
func TestFleetLog(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		b, s := sharing(t, t.TempDir(), func(b *bench) { b.app.now = time.Now })
		down := new(atomic.Bool)
		storage := unsteady{&certmagic.FileStorage{Path: t.TempDir()}, down, new(atomic.Int32)}
		b.app.sharing = storageSetting{kind: inOwn, own: certmagicStorage{storage}}
		go s.pollFleet()
		down.Store(true)
		for minutes, want := range []int{1, 1, 1} { // nothing was committed yet: a poll a second
			time.Sleep(time.Minute)
			if got := b.logged(cannotWait); got != want {
				t.Errorf("after %d minutes: %d lines, want %d", minutes+1, got, want)
			}
		}
		const warning = "cannot reach the shared storage: the loaded sitemap is served, and refreshes wait"
		down.Store(false)
		time.Sleep(time.Hour)
		down.Store(true)
		time.Sleep(time.Minute)
		if got := b.logged(cannotWait) + b.logged(warning); got != 2 {
			t.Errorf("%d lines after an hour without errors, want 2", got)
		}
		s.cancel()
		time.Sleep(time.Minute)
	})
}

// certmagicStorage is a storage as modules have it.
type certmagicStorage struct{ fleet.Shared }

func (certmagicStorage) Exists(context.Context, string) bool { return false }
func (certmagicStorage) Stat(context.Context, string) (certmagic.KeyInfo, error) {
	return certmagic.KeyInfo{}, nil
}

// TestFleetInterval: a shorter interval counts at once after a reload, and that of the other nodes for the rest.
func TestFleetInterval(t *testing.T) {
	b, s := sharing(t, t.TempDir(), func(b *bench) {
		b.handler.RefreshInterval, b.handler.settings.interval = caddy.Duration(30*time.Minute), 30*time.Minute
	})
	b.refresh(s)
	if got := s.state.fleet.DueFor(s.standing()).Sub(b.clock); got != 30*time.Minute {
		t.Errorf("due in %s", got)
	}
	b.handler.RefreshInterval, b.handler.settings.interval = caddy.Duration(time.Minute), time.Minute
	s.configureFleet()
	if got := s.state.fleet.DueFor(s.standing()).Sub(b.clock); got != time.Minute {
		t.Errorf("after a reload, it is due in %s", got)
	}
}

// TestFleetAlias: the storage is not read for an alias of another site.
func TestFleetAlias(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := sharing(t, t.TempDir(), nil)
		before := s.state.fleet.Storage()
		s.main.Store(s)
		go s.pollFleet()
		time.Sleep(time.Minute)
		if s.state.fleet.Storage() != before {
			t.Error("it is polled")
		}
		s.cancel()
	})
}

// TestFleetLookUp: a request waits only for a document that another node may have committed, and learns whether the storage
// has said that there is none.
func TestFleetLookUp(t *testing.T) {
	fails := func(fleet.Shared, *atomic.Bool) fleet.Shared { return failing{} }
	for name, test := range map[string]struct {
		suffix  string
		isAlias bool
		storage func(good fleet.Shared, hangs *atomic.Bool) fleet.Shared // nil: it works
		want    time.Duration
		err     error
	}{
		"unknown shard":              {suffix: "-0123456789ab", want: time.Second + fleet.LookUpAfter}, // until the second poll
		"the storage fails":          {"-0123456789ab", false, fails, lookUpPatience, errUnread},
		"the storage hangs":          {"-0123456789ab", false, func(s fleet.Shared, hangs *atomic.Bool) fleet.Shared { return hanging{s, hangs} }, lookUpPatience, errUnread},
		"a section without pages":    {suffix: "-blog", want: time.Second}, // until the next poll
		"a section, and it fails":    {"-blog", false, fails, lookUpPatience, errUnread},
		"unknown shard of a section": {suffix: "-blog-0123456789ab", want: time.Second + fleet.LookUpAfter},
		"of an alias":                {suffix: "-0123456789ab", isAlias: true},
		"another name":               {suffix: ".atom"},
		"the sitemap":                {suffix: ""},
		"the sitemap, and it fails":  {storage: fails},
		"another name, and it fails": {suffix: ".atom", storage: fails},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, s := sharing(t, t.TempDir(), nil)
				hangs := new(atomic.Bool)
				hangs.Store(true)
				if test.storage != nil {
					storage := test.storage(s.state.fleet.Storage(), hangs)
					s.state.fleet.Configure(storage, 0)
				}
				if test.isAlias {
					s.main.Store(s)
				}
				go func() { // as pollFleet, which would configure the storage anew
					for s.state.fleet.Wait(s.ctx) {
						_ = s.state.fleet.Poll(s.ctx)
					}
				}()
				begun := time.Now()
				_, err := s.lookUp(t.Context(), nil, test.suffix)
				took := time.Since(begun)
				if took < test.want || took > test.want+lookUpStep || !errors.Is(err, test.err) {
					t.Errorf("got %v after %s, want %v after %s", err, took, test.err, test.want)
				}
				s.cancel()
				hangs.Store(false)
				time.Sleep(time.Minute)
			})
		})
	}
}

// counting is a storage that counts what is read.
type counting struct {
	fleet.Shared
	loads *atomic.Int64
}

func (c counting) Load(ctx context.Context, key string) ([]byte, error) {
	c.loads.Add(1)
	return c.Shared.Load(ctx, key)
}

// TestMadeUpNames: names that strangers make up cost the storage one more read in the time of each that is due, and keep no
// requests waiting. One that comes alone is still said to be missing.
func TestMadeUpNames(t *testing.T) {
	const lasts = 10 * time.Minute
	loadsBeside := func(t *testing.T, ask func(lookUp func(suffix string))) (loads int64) {
		inBubble(t, func(t *testing.T, _ *bench) {
			_, s := sharing(t, t.TempDir(), func(b *bench) {
				b.app.now = time.Now
				b.handler.RefreshInterval = caddy.Duration(time.Minute)
				b.handler.settings.interval = time.Minute
			})
			defer freeLocks(s)
			s.run()
			count := new(atomic.Int64)
			s.state.fleet.Configure(counting{s.state.fleet.Storage(), count}, 0)
			go func() {
				for s.state.fleet.Wait(s.ctx) {
					_ = s.state.fleet.Poll(s.ctx)
				}
			}()
			time.Sleep(time.Minute)
			before := count.Load()
			begun := time.Now()
			lookUp := func(suffix string) {
				asked := time.Now()
				_, err := s.lookUp(t.Context(), s.published().snapshot, suffix)
				if err == nil && !s.state.fleet.HasRead(asked) {
					t.Errorf("%s is said to be missing without a look", suffix)
				}
				if asked.Equal(begun) && err != nil {
					t.Errorf("%s: %v", suffix, err)
				}
			}
			asked := make(chan struct{})
			go func() {
				defer close(asked)
				ask(lookUp)
			}()
			time.Sleep(lasts)
			loads = count.Load() - before
			<-asked
		})
		return loads
	}
	due := loadsBeside(t, func(func(string)) {})
	for name, ask := range map[string]func(lookUp func(suffix string)){
		"one after the other": func(lookUp func(string)) {
			for i := range 100 {
				lookUp(fmt.Sprintf("-%012x", i))
				time.Sleep(lasts / 100)
			}
		},
		"many at once": func(lookUp func(string)) {
			for range 300 {
				for i := range 10 {
					go lookUp(fmt.Sprintf("-blog-%012x", i))
				}
				time.Sleep(lasts / 300)
			}
			time.Sleep(lookUpPatience)
		},
		"a section without pages": func(lookUp func(string)) {
			for range 100 {
				lookUp("-blog")
				time.Sleep(lasts / 100)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			loads := loadsBeside(t, ask)
			t.Logf("%d loads, %d of them due", loads, due)
			most := due * 5 / 2 // what is due comes sooner or later by chance
			if loads > most {
				t.Errorf("%d loads beside %d that are due", loads, due)
			}
		})
	}
}

// TestUnreadStorage: a document that the storage may have is not said to be missing.
func TestUnreadStorage(t *testing.T) {
	w := httptest.NewRecorder()
	err := unavailable(w, errUnread)
	if err != nil || w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("got %v, status %d, %v", err, w.Code, w.Header())
	}
}

// TestFleetCost: what a refresh costs does not depend on the clocks of others.
func TestFleetCost(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		folder, slow := t.TempDir(), 10*time.Second
		_, first := sharing(t, folder, func(b *bench) { b.app.now = func() time.Time { return time.Now().Add(time.Hour) } })
		first.run()
		b, second := sharing(t, folder, func(b *bench) { b.app.now = time.Now })
		second.run()
		fast := b.source
		b.source = func(ctx context.Context, r *Refresh, yield func(Page) error) error {
			time.Sleep(slow)
			return fast(ctx, r, yield)
		}
		if out := second.refresh(t.Context(), true); out.Err != nil || out.Cost < slow || out.Cost > 2*slow {
			t.Errorf("a refresh of %s costs %s: %+v", slow, out.Cost, out)
		}
		time.Sleep(10 * time.Second) // the storage notices that locks are released
	})
}

// TestFleetHoldsBack: a node that has held a change back lets others look first.
func TestFleetHoldsBack(t *testing.T) {
	b, s := sharing(t, t.TempDir(), nil)
	b.lists("/a", "/b", "/c", "/d")
	b.refresh(s)
	due := s.state.fleet.DueFor(s.standing())
	b.lists("/a")
	b.pages = nil
	b.lists("/a")
	if got := b.refresh(s); pagesOf(got) != 4 || s.published().report.Result != outcome.HeldBack {
		t.Fatalf("%d pages, %s", pagesOf(got), s.published().report.Result)
	}
	interval := s.handler.settings.interval
	if got := s.state.fleet.DueFor(s.standing()).Sub(due); got != 2*interval {
		t.Errorf("due %s later, want %s", got, 2*interval)
	}
}

// TestConcludeShared: a process goes by the refreshes of others once they have committed something, or once it has left the
// first refresh to them and has nothing to serve.
func TestConcludeShared(t *testing.T) {
	for name, test := range map[string]struct {
		result outcome.Result
		serves bool
		want   bool
	}{
		"it has published":                   {outcome.Published, true, false},
		"it lists nothing":                   {outcome.Empty, false, false},
		"it has left it, and serves":         {outcome.Later, true, false},
		"it has left it, and serves nothing": {outcome.Later, false, true},
		"it follows, and serves nothing":     {outcome.Followed, false, true},
		"it is an alias":                     {outcome.Alias, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, s := sharing(t, t.TempDir(), nil)
			if test.serves {
				s.serve(listing(1))
			}
			s.probed.Store(new(probeResult))
			s.conclude(&report.Refresh{Outcome: outcome.Outcome{Result: test.result}}, s.app.now())
			if got := s.prospected.shared; got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
