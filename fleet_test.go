package sitemap

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
	"github.com/seed3295b519/caddy-sitemap/internal/robotstxt"
	"github.com/seed3295b519/caddy-sitemap/internal/visits"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// sharing is a bench of a process, in a bubble, that shares its site in a storage.
func sharing(t *testing.T, shared record.Storage, change ...func(*bench)) (*bench, *site) {
	t.Helper()
	b := newBench(t, func(h *Handler) { h.sources = []input{new(SourceTraffic)} })
	b.app.now = time.Now
	b.app.sharing = storageSetting{shared: asModule{shared}}
	b.app.folder = t.TempDir()
	b.app.ctx = emptyContext(t)
	b.app.serving = make(chan struct{})
	close(b.app.serving)
	for _, change := range change {
		change(b)
	}
	return b, b.site("named.example")
}

// asModule is a storage as a module for Caddy has it.
type asModule struct{ record.Storage }

func (asModule) Exists(context.Context, string) bool  { return false }
func (asModule) Lock(context.Context, string) error   { return errDown }
func (asModule) Unlock(context.Context, string) error { return errDown }
func (asModule) Stat(context.Context, string) (certmagic.KeyInfo, error) {
	return certmagic.KeyInfo{}, errDown
}

// lead has a process lead whose site nobody shares yet.
func lead(t *testing.T, s *site) {
	t.Helper()
	f := follower{site: s}
	for range 2 {
		f.poll(t.Context())
		time.Sleep(3 * time.Second)
	}
	if !s.node.Leads() {
		t.Fatalf("it does not lead: %+v", s.node.Status())
	}
}

// runs runs a process, of which it says how many pages it serves. end stops it, as Caddy does.
func runs(b *bench, s *site) (pages func() int, end func()) {
	b.app.run(s)
	return func() int { return pagesOf(s.published().snapshot) }, func() {
		_ = b.app.Stop()
		s.drop()
	}
}

// TestFleet: one process refreshes the site, and the others serve what it has published, a poll later, and request nothing. If
// it stops, another one goes on at once, and no page is requested again.
func TestFleet(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		shared := record.NewMemory()
		b1, first := sharing(t, shared)
		b1.lists("/a", "/b")
		pages1, end1 := runs(b1, first)
		time.Sleep(5 * time.Second)
		if pages1() != 2 || !first.node.Leads() {
			t.Fatalf("the first one serves %d pages: %+v", pages1(), first.status().Storage)
		}
		b2, second := sharing(t, shared)
		requested := new(atomic.Bool)
		b2.pages = func(http.ResponseWriter, *http.Request) error {
			requested.Store(true)
			return nil
		}
		pages2, end2 := runs(b2, second)
		defer end2()
		time.Sleep(5 * time.Second)
		if pages2() != 2 || !second.published().snapshot.Equal(first.published().snapshot) {
			t.Errorf("the second one serves %d pages", pages2())
		}
		probed := second.probed.Load()
		if probed == nil || !probed.robots.rules.Allows("/a") {
			t.Error("what the leader found out is not known")
		}
		b1.lists("/a", "/b", "/c")
		time.Sleep(2*first.handler.settings.interval + maxPoll)
		if pages1() != 3 || pages2() != 3 || requested.Load() {
			t.Errorf("the leader serves %d pages, the other one %d; it requests some: %t", pages1(), pages2(), requested.Load())
		}
		st := second.status()
		if st.Storage.Leads || st.Storage.Leader == "" || st.Storage.Pulled.IsZero() || time.Since(st.LastRefresh.Confirmed) > time.Minute {
			t.Errorf("the status of the second one: %+v, %+v", st.Storage, st.LastRefresh)
		}

		asked := new(atomic.Int32)
		b2.lists("/a", "/b", "/c")
		answers := b2.pages
		b2.serves(func(w http.ResponseWriter, r *http.Request) error {
			if len(r.URL.Path) == len("/a") {
				asked.Add(1)
			}
			return answers(w, r)
		})
		end1()
		time.Sleep(2 * maxPoll)
		if !second.node.Leads() || pages2() != 3 || asked.Load() > 0 {
			t.Errorf("after the leader has stopped: %+v, %d pages, %d are requested", second.node.Status(), pages2(), asked.Load())
		}
	})
}

// TestFleetVisitors: what visitors of a process have found that does not lead, the one that leads looks at.
func TestFleetVisitors(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		shared := record.NewMemory()
		b1, first := sharing(t, shared)
		b1.lists("/a", "/b")
		pages1, end1 := runs(b1, first)
		defer end1()
		time.Sleep(5 * time.Second)
		b2, second := sharing(t, shared)
		pages2, end2 := runs(b2, second)
		defer end2()
		time.Sleep(5 * time.Second)
		b1.lists("/a")
		b1.names("/a", "/b")
		time.Sleep(2 * time.Minute)
		if pages1() != 2 {
			t.Fatal("the page is looked at before anybody has requested it")
		}
		second.Note("/b", time.Now().Unix(), true)
		time.Sleep(4 * time.Minute)
		if pages1() != 1 || pages2() != 1 {
			t.Errorf("%d and %d pages are served, one of which is gone", pages1(), pages2())
		}
	})
}

// TestFleetWrites: what somebody may have saved by way of a process that does not lead, the one that leads looks at: soon, and whatever
// their clocks say. The path is not told, which may hold a secret.
func TestFleetWrites(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		shared := record.NewMemory()
		b1, first := sharing(t, shared)
		b1.lists("/a", "/b")
		first.fetcher.makes = true // as an application does
		pages1, end1 := runs(b1, first)
		defer end1()
		time.Sleep(5 * time.Second)
		b2, second := sharing(t, shared, func(b *bench) {
			b.app.now = func() time.Time { return time.Now().Add(-time.Hour) }
		})
		pages2, end2 := runs(b2, second)
		defer end2()
		time.Sleep(5 * time.Second)
		b1.lists("/a")
		b1.names("/a", "/b")
		time.Sleep(2 * time.Minute)
		if pages1() != 2 {
			t.Fatal("the page is looked at before anybody has saved anything")
		}
		write := &visits.Visit{Method: http.MethodPost, URI: "/reset/secret", Cookie: true}
		second.Write(write, second.app.now())
		time.Sleep(2 * time.Second)
		isTold := false
		keys, _ := shared.List(t.Context(), second.node.Prefix, true)
		for _, key := range keys {
			data, _ := shared.Load(t.Context(), key)
			isTold = isTold || strings.HasSuffix(key, "/written")
			if strings.Contains(string(data), "secret") {
				t.Errorf("%s has the path of a write", key)
			}
		}
		if !isTold {
			t.Error("the write is not told soon")
		}
		time.Sleep(4 * time.Minute)
		if pages1() != 1 || pages2() != 1 {
			t.Errorf("%d and %d pages are served, one of which is gone", pages1(), pages2())
		}
		looks := first.state.writes.Counts(first.app.now()).Looks
		time.Sleep(10 * time.Minute)
		if n := first.state.writes.Counts(first.app.now()).Looks; n != 1 || looks != 1 {
			t.Errorf("%d looks by one write", n)
		}
		if c := second.state.writes.Counts(second.app.now()); c.Writes != 1 || c.Looks != 1 {
			t.Errorf("the counts of the other one: %+v", c)
		}
	})
}

// unlinkedWiki has a site list the pages below /wiki that visitors request.
func unlinkedWiki(t *testing.T) func(b *bench) {
	return func(b *bench) {
		traffic := new(SourceTraffic)
		traffic.Unlinked = []string{"/wiki/*"}
		b.handler.sources = []input{traffic}
		if err := b.handler.compile(""); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFleetTells: the leader is told the paths that patterns name, and no others, which may hold secrets.
func TestFleetTells(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		shared := record.NewMemory()
		unlinked := unlinkedWiki(t)
		b1, first := sharing(t, shared, unlinked)
		_, end1 := runs(b1, first)
		defer end1()
		time.Sleep(time.Minute)
		b2, second := sharing(t, shared, unlinked)
		_, end2 := runs(b2, second)
		defer end2()
		for i := range 3000 {
			second.Note(fmt.Sprintf("/wiki/%04d", i), time.Now().Unix(), false)
		}
		second.Note("/reset/secret", time.Now().Unix(), false)
		time.Sleep(3 * time.Minute)
		if n, _ := first.state.visited.Count(); n < 500 {
			t.Errorf("the leader knows of %d visits", n)
		}
		keys, _ := shared.List(t.Context(), second.node.Prefix, true)
		for _, key := range keys {
			data, _ := shared.Load(t.Context(), key)
			if strings.Contains(string(data), "secret") {
				t.Errorf("%s has a path that nothing names", key)
			}
		}
	})
}

// failing is a storage that is down while it says so.
type failing struct {
	record.Storage
	down *atomic.Bool
}

var errDown = errors.New("the storage is down")

func (f failing) Load(ctx context.Context, key string) ([]byte, error) {
	if f.down.Load() {
		return nil, errDown
	}
	return f.Storage.Load(ctx, key)
}

func (f failing) Store(ctx context.Context, key string, value []byte) error {
	if f.down.Load() {
		return errDown
	}
	return f.Storage.Store(ctx, key, value)
}

const (
	beganAlone  = "the shared storage did not respond within fleet_patience: this process begins to refresh the site as if it were alone"
	cannotWait  = "cannot use the shared storage: no sitemap is served until that works, or fleet_patience is over"
	stillServed = "cannot use the shared storage: the loaded sitemap is served, and refreshes wait"
)

// TestFleetPatience: a process that has nothing serves nothing, and requests nothing, until it is known what others have. After
// its patience it begins alone, and says so once. What the storage has goes before that.
func TestFleetPatience(t *testing.T) {
	for name, isShared := range map[string]bool{"nobody has anything": false, "others have something": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, _ *bench) {
				storage := failing{record.NewMemory(), new(atomic.Bool)}
				want := 2
				if isShared {
					want = 3
					b, s := sharing(t, storage)
					b.lists("/a", "/b", "/c")
					_, end := runs(b, s)
					time.Sleep(time.Minute)
					end()
				}
				storage.down.Store(true)
				b, s := sharing(t, storage, func(b *bench) { b.app.FleetPatience = caddy.Duration(time.Hour) })
				b.lists("/a", "/b")
				pages, end := runs(b, s)
				defer end()
				time.Sleep(59 * time.Minute)
				begun := time.Now()
				_, err := s.snapshot(t.Context())
				if !errors.Is(err, errNotReady) || time.Since(begun) > 0 || s.status().Storage.State != stateWaits || pages() > 0 {
					t.Errorf("it does not wait: %v, %+v, %d pages", err, s.status().Storage, pages())
				}
				if err := s.refreshNow(t.Context()); !errors.Is(err, errDown) {
					t.Errorf("an operator's refresh: %v", err)
				}
				time.Sleep(3 * time.Minute)
				if pages() != 2 || s.status().Storage.State != stateAlone || b.logged(beganAlone) != 1 || b.logged(cannotWait) != 1 {
					t.Errorf("it does not begin alone: %d pages, %+v", pages(), s.status().Storage)
				}
				b.lists("/a", "/b", "/d", "/e")
				time.Sleep(3 * time.Minute)
				if pages() != 4 {
					t.Errorf("it does not go on alone: %d pages", pages())
				}
				b.lists("/a", "/b", "/d", "/e", "/f")
				storage.down.Store(false)
				hasFollowed := false
				for range 40 {
					time.Sleep(500 * time.Millisecond)
					hasFollowed = hasFollowed || pages() == want
				}
				if isShared && !hasFollowed {
					t.Errorf("%d pages are served, which the others did not have", pages())
				}
				time.Sleep(5 * time.Minute)
				if st := s.status().Storage; pages() != 5 || !st.Leads || st.State != "" {
					t.Errorf("at last, %d pages, %+v", pages(), st)
				}
			})
		})
	}
}

// TestFleetDown: while the storage is down, what was loaded is served and nothing is refreshed. That is logged once.
func TestFleetDown(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		storage := failing{record.NewMemory(), new(atomic.Bool)}
		b, s := sharing(t, storage)
		pages, end := runs(b, s)
		defer end()
		time.Sleep(time.Minute)
		storage.down.Store(true)
		b.lists("/a", "/b")
		time.Sleep(time.Hour)
		if pages() != 1 || b.logged(stillServed) != 1 || s.status().Problem == "" {
			t.Errorf("%d pages, logged %d times: %q", pages(), b.logged(stillServed), s.status().Problem)
		}
		storage.down.Store(false)
		time.Sleep(3 * time.Minute)
		if pages() != 2 || s.status().Problem != "" {
			t.Errorf("after that, %d pages, %q", pages(), s.status().Problem)
		}
	})
}

// full is a storage that stores nothing but who leads.
type full struct{ record.Storage }

func (f full) Store(ctx context.Context, key string, value []byte) error {
	if len(value) > 1000 || path.Base(key) != "current" {
		return os.ErrPermission
	}
	return f.Storage.Store(ctx, key, value)
}

// TestFleetFull: what cannot be shared is not served either.
func TestFleetFull(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		shared := record.NewMemory()
		b, s := sharing(t, shared)
		lead(t, s)
		s.run()
		s.node.Configure(full{shared}, maxPoll)
		b.lists("/a", "/b")
		s.run()
		if got := pagesOf(s.published().snapshot); got != 1 || b.logged("cannot share the sitemap: the last one is still served") != 1 {
			t.Errorf("%d pages", got)
		}
	})
}

// TestFleetSaveFirst: what a refresh could not share is served once an announcement that is saved has shared it.
func TestFleetSaveFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		shared := record.NewMemory()
		b, s := sharing(t, shared)
		lead(t, s)
		s.run()
		s.node.Configure(full{shared}, maxPoll)
		b.lists("/a", "/b")
		s.run()
		s.node.Configure(s.shared, maxPoll)
		err := pushedFile{persistFile(s), s.state}.Save(t.Context(), func() ([]byte, error) { return []byte("{}"), nil })
		if err != nil {
			t.Fatal(err)
		}
		f := follower{site: s, refreshes: true}
		f.poll(t.Context())
		_, other := sharing(t, shared)
		g := follower{site: other}
		g.poll(t.Context())
		if x, y := pagesOf(s.published().snapshot), pagesOf(other.published().snapshot); x != 2 || y != 2 {
			t.Errorf("the leader serves %d pages, others %d", x, y)
		}
	})
}

// TestFleetHangs: where a refresh is at the same stage for ten minutes or intervals, another process leads.
func TestFleetHangs(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		_, s := sharing(t, record.NewMemory())
		lead(t, s)
		f := follower{site: s}
		s.enter(stageGather)
		for begun := time.Now(); s.node.Leads(); time.Sleep(maxPoll) {
			f.poll(t.Context())
			took := time.Since(begun)
			if s.node.Leads() == (took > hangsFor*time.Minute) {
				t.Fatalf("after %s, it leads: %t", took, s.node.Leads())
			}
		}
	})
}

// TestFleetGivesUp: a process whose refreshes fail or hold something back lets another one lead, and leads again only once nobody
// else does.
func TestFleetGivesUp(t *testing.T) {
	for name, breaks := range map[string]func(*bench){
		"fails": func(b *bench) {
			b.yields(func(context.Context, *Refresh, func(Page) error) error { panic("a fault") })
		},
		"holds back": func(b *bench) { b.lists("/a") },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, _ *bench) {
				shared := record.NewMemory()
				b1, first := sharing(t, shared)
				b1.lists(numbered(10)...)
				_, end1 := runs(b1, first)
				time.Sleep(time.Minute)
				breaks(b1)
				time.Sleep(2 * time.Minute)
				b2, second := sharing(t, shared)
				b2.lists(numbered(11)...)
				pages2, end2 := runs(b2, second)
				time.Sleep(2 * time.Minute)
				if !second.node.Leads() || pages2() != 11 {
					t.Errorf("the second one: %+v, %d pages", second.node.Status(), pages2())
				}
				time.Sleep(10 * time.Minute)
				if !second.node.Leads() {
					t.Error("the second one does not lead any more")
				}
				b1.lists(numbered(12)...)
				end2()
				time.Sleep(5 * time.Minute)
				if !first.node.Leads() {
					t.Error("nobody leads")
				}
				end1()
				time.Sleep(time.Hour)
			})
		})
	}
}

// TestFleetClaim: where an operator requests a refresh, this process leads from then on.
func TestFleetClaim(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		shared := record.NewMemory()
		b1, first := sharing(t, shared)
		pages1, end1 := runs(b1, first)
		defer end1()
		time.Sleep(time.Minute)
		b2, second := sharing(t, shared)
		b2.lists("/a", "/b", "/c")
		pages2, end2 := runs(b2, second)
		defer end2()
		time.Sleep(10 * time.Second)
		begun := time.Now()
		err := second.refreshNow(t.Context())
		if err != nil || pages2() != 3 || time.Since(begun) > claimPatience {
			t.Errorf("%v after %s, %d pages", err, time.Since(begun), pages2())
		}
		time.Sleep(maxPoll * 6 / 5)
		if pages1() != 3 || first.node.Leads() {
			t.Errorf("the first one serves %d pages: %+v", pages1(), first.node.Status())
		}
	})
}

// TestFleetLosesLead: a process that does not lead any more drops what a refresh has found that is under way.
func TestFleetLosesLead(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		shared := record.NewMemory()
		b1, first := sharing(t, shared)
		pages1, end1 := runs(b1, first)
		time.Sleep(time.Minute)
		b2, second := sharing(t, shared)
		b2.lists("/a", "/x", "/y")
		_, end2 := runs(b2, second)
		time.Sleep(10 * time.Second)
		b1.lists(numbered(40)...)
		fast := b1.pages
		b1.serves(func(w http.ResponseWriter, r *http.Request) error {
			time.Sleep(time.Second)
			return fast(w, r)
		})
		for first.stage.Load() == nil || first.stage.Load().Stage != stageGather {
			time.Sleep(100 * time.Millisecond)
		}
		if err := second.refreshNow(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if !second.node.Leads() || !first.published().snapshot.Equal(second.published().snapshot) {
			t.Errorf("the first one serves %d pages, want those of the second one: %+v", pages1(), second.node.Status())
		}
		end2()
		end1()
	})
}

// TestFleetRestart: after a restart, a process serves at once what it served before, and what it has found meanwhile is not lost.
func TestFleetRestart(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		storage := failing{record.NewMemory(), new(atomic.Bool)}
		b, s := sharing(t, storage)
		b.lists("/a", "/b")
		_, end := runs(b, s)
		time.Sleep(time.Minute)
		end()
		storage.down.Store(true)
		next, again := sharing(t, storage, func(next *bench) { next.app.folder = b.app.folder })
		next.pages = func(_ http.ResponseWriter, r *http.Request) error {
			t.Errorf("%s is requested", r.URL.Path)
			return nil
		}
		pages, end := runs(next, again)
		time.Sleep(time.Second)
		if pages() != 2 {
			t.Errorf("%d pages are served, want 2", pages())
		}
		end()
	})
}

// TestFleetSettings: the settings of the process that leads count, and a site that is shared goes on from what was known before.
func TestFleetSettings(t *testing.T) {
	inBubble(t, func(t *testing.T, alone *bench) {
		firstSeen := func(s *site, path string) int64 {
			for r, err := range s.published().generation.Records(t.Context()) {
				if err == nil && r.Path == path {
					return r.First
				}
			}
			return 0
		}
		alone.app.folder = t.TempDir()
		s := alone.site("named.example")
		_, end := runs(alone, s)
		time.Sleep(time.Minute)
		want := firstSeen(s, "/a")
		end()

		shared := record.NewMemory()
		b1, first := sharing(t, shared, func(b *bench) { b.app.folder = alone.app.folder })
		pages1, end1 := runs(b1, first)
		defer end1()
		time.Sleep(time.Minute)
		b2, second := sharing(t, shared, func(b *bench) { b.handler.settings.digest = 7 })
		b2.lists("/a", "/other")
		pages2, end2 := runs(b2, second)
		defer end2()
		time.Sleep(time.Minute)
		if pages1() != 1 || pages2() != 1 {
			t.Errorf("%d and %d pages are served, want those of the one that leads", pages1(), pages2())
		}
		if err := second.refreshNow(t.Context()); err != nil || pages2() != 2 {
			t.Errorf("%v, %d pages by other settings", err, pages2())
		}
		if got := firstSeen(second, "/a"); got != want || want == 0 {
			t.Errorf("first seen at %d, want %d", got, want)
		}
	})
}

// TestFleetStorage: a site that is shared in another storage follows what others have there, and else goes on from its own.
func TestFleetStorage(t *testing.T) {
	for name, want := range map[string]int{"an empty one": 2, "that of others": 3} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, _ *bench) {
				other := record.NewMemory()
				if want == 3 {
					b, s := sharing(t, other)
					b.lists("/a", "/b", "/c")
					_, end := runs(b, s)
					time.Sleep(time.Minute)
					end()
				}
				b, s := sharing(t, record.NewMemory())
				b.lists("/a", "/b")
				_, end := runs(b, s)
				time.Sleep(time.Minute)
				end()
				next, again := sharing(t, other, func(next *bench) {
					next.app.folder = b.app.folder
					next.app.sharing.digest = 1
				})
				next.pages = func(http.ResponseWriter, *http.Request) error { return errors.New("nothing") }
				pages, end := runs(next, again)
				time.Sleep(time.Second)
				if pages() != want {
					t.Errorf("%d pages, want %d", pages(), want)
				}
				end()
			})
		})
	}
}

// TestFleetAlias: the storage is not read for an alias of another site.
func TestFleetAlias(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		count := &counting{Storage: record.NewMemory()}
		_, s := sharing(t, count)
		s.main.Store(s)
		go s.pollFleet()
		time.Sleep(time.Minute)
		if n := count.loads.Load(); n > 0 {
			t.Errorf("it is read %d times", n)
		}
		s.cancel()
	})
}

// TestFleetEarlier: of what an earlier version of this module shared, one line says that it is left alone.
func TestFleetEarlier(t *testing.T) {
	const left = "the storage has the site as an earlier version of this module shared it: that is left alone, and can be deleted"
	for name, want := range map[string]int{"there is something": 1, "there is nothing": 0} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, _ *bench) {
				shared := record.NewMemory()
				b, s := sharing(t, shared)
				key := "sitemap/latest/" + fileName("named.example", digestOf(s.sitemap, s.prefix, earlierVersion)) + "/current"
				if want > 0 {
					_ = shared.Store(t.Context(), key, []byte("{}"))
				}
				_, end := runs(b, s)
				defer end()
				time.Sleep(time.Hour)
				_, err := shared.Load(t.Context(), key)
				if got := b.logged(left); got != want || (err == nil) != (want > 0) {
					t.Errorf("logged %d times, want %d; it is there: %v", got, want, err)
				}
			})
		})
	}
}

// counting is a storage that counts what is read.
type counting struct {
	record.Storage
	loads atomic.Int64
}

func (c *counting) Load(ctx context.Context, key string) ([]byte, error) {
	c.loads.Add(1)
	return c.Storage.Load(ctx, key)
}

// follows is a process that follows another one.
func follows(t *testing.T, shared record.Storage) (s *site, end func()) {
	t.Helper()
	b1, first := sharing(t, shared)
	_, end1 := runs(b1, first)
	time.Sleep(5 * time.Second)
	b2, second := sharing(t, shared)
	_, end2 := runs(b2, second)
	time.Sleep(time.Minute)
	return second, func() {
		end1()
		end2()
	}
}

// TestFleetLookUp: a request waits only for a document that another process may have published, and learns whether the storage
// has said that there is none.
func TestFleetLookUp(t *testing.T) {
	const poll = wakeTakes
	for name, test := range map[string]struct {
		suffix  string
		isAlias bool
		isDown  bool
		most    time.Duration
		err     error
	}{
		"unknown shard":              {suffix: "-0123456789ab", most: poll},
		"the storage fails":          {suffix: "-0123456789ab", isDown: true, most: lookUpPatience, err: errUnread},
		"a section without pages":    {suffix: "-blog", most: poll},
		"unknown shard of a section": {suffix: "-blog-0123456789ab", most: poll},
		"of an alias":                {suffix: "-0123456789ab", isAlias: true},
		"another name":               {suffix: ".atom"},
		"the sitemap":                {suffix: ""},
		"the sitemap, and it fails":  {isDown: true},
		"another name, and it fails": {suffix: ".atom", isDown: true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, _ *bench) {
				storage := failing{record.NewMemory(), new(atomic.Bool)}
				s, end := follows(t, storage)
				defer end()
				storage.down.Store(test.isDown)
				if test.isAlias {
					s.main.Store(s)
				}
				begun := time.Now()
				_, err := s.lookUp(t.Context(), s.published().snapshot, test.suffix)
				took := time.Since(begun)
				if took > test.most+lookUpStep || !errors.Is(err, test.err) {
					t.Errorf("got %v after %s, want %v after %s", err, took, test.err, test.most)
				}
			})
		})
	}
}

// wakeTakes is how long it takes until a process that was woken has polled, at most.
const wakeTakes = 200 * time.Millisecond

// TestMadeUpNames: names that strangers make up cost the storage one more read in an interval, and keep no requests waiting. One
// that comes alone is still said to be missing.
func TestMadeUpNames(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		count := &counting{Storage: record.NewMemory()}
		s, end := follows(t, count)
		defer end()
		const lasts = 10 * time.Minute
		before := count.loads.Load()
		time.Sleep(lasts)
		due := count.loads.Load() - before
		before = count.loads.Load()
		missing := 0
		for i := range 600 {
			asked := time.Now()
			_, err := s.lookUp(t.Context(), s.published().snapshot, fmt.Sprintf("-%012x", i))
			if err == nil {
				missing++
			}
			if took := time.Since(asked); took > time.Second {
				t.Errorf("%s is waited for", took)
			}
			time.Sleep(lasts / 600)
		}
		more := count.loads.Load() - before - due
		if most := int64(lasts/time.Minute) + due/4; more > most || missing == 0 {
			t.Errorf("%d loads more than the %d that are due; %d names are said to be missing", more, due, missing)
		}
	})
}

// TestDamage: where records were lost, what is served stays until their pages are fetched again, in a process alone
// and in a fleet.
func TestDamage(t *testing.T) {
	for name, isShared := range map[string]bool{"alone": false, "in a fleet": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				s := b.site("named.example")
				if isShared {
					b, s = sharing(t, record.NewMemory())
					go s.pollFleet()
					defer s.cancel()
					time.Sleep(5 * time.Second)
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

// TestUnreadStorage: a document that the storage may have is not said to be missing.
func TestUnreadStorage(t *testing.T) {
	w := httptest.NewRecorder()
	err := unavailable(w, errUnread)
	if err != nil || w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("got %v, status %d, %v", err, w.Code, w.Header())
	}
}
