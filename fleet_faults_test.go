package sitemap

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// disk is a storage whose writes and reads a test may change.
type disk struct {
	record.Storage
	full  atomic.Bool
	pause atomic.Int64
	fails func(key string) error
}

func (d *disk) Store(ctx context.Context, key string, value []byte) error {
	time.Sleep(time.Duration(d.pause.Load()))
	if d.full.Load() {
		return errors.New("no space left on device")
	}
	if d.fails != nil {
		if err := d.fails(key); err != nil {
			return err
		}
	}
	return d.Storage.Store(ctx, key, value)
}

func (d *disk) Load(ctx context.Context, key string) ([]byte, error) {
	time.Sleep(time.Duration(d.pause.Load()))
	return d.Storage.Load(ctx, key)
}

// TestFleetLeaderFull: the leader's disk is full. Another process can go on.
func TestFleetLeaderFull(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		shared := record.NewMemory()
		d := &disk{Storage: record.NewMemory()}
		b1, first := sharing(t, shared, func(b *bench) { b.app.disk = record.Bounded(d) })
		b1.lists("/a", "/b")
		pages1, end1 := runs(b1, first)
		defer end1()
		time.Sleep(time.Minute)
		b2, second := sharing(t, shared)
		b2.lists("/a", "/b")
		pages2, end2 := runs(b2, second)
		defer end2()
		time.Sleep(time.Minute)
		d.full.Store(true)
		b1.lists("/a", "/b", "/c")
		b2.lists("/a", "/b", "/c")
		time.Sleep(2 * time.Hour)
		if pages2() != 3 {
			t.Errorf("after two hours, %d and %d pages are served; the first one leads: %t; problems %q and %q; confirmed %s ago",
				pages1(), pages2(), first.node.Leads(), first.status().Problem, second.status().Problem,
				time.Since(second.status().LastRefresh.Confirmed))
		}
	})
}

// TestFleetFailedReload: a configuration that fails to start does not take the lead from the one that goes on.
func TestFleetFailedReload(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		shared := record.NewMemory()
		was := latest.Load()
		defer latest.Store(was)
		b1, first := sharing(t, shared, func(b *bench) { b.app.number = was + 1 })
		latest.Store(b1.app.number)
		_, end1 := runs(b1, first)
		defer end1()
		time.Sleep(time.Minute)

		b2, second := sharing(t, shared, func(b *bench) { b.app.folder = b1.app.folder })
		b2.app.number = b1.app.number + 1
		b2.app.serving = make(chan struct{}) // which has not started
		b2.app.before = latest.Swap(b2.app.number)
		b2.app.run(second)
		time.Sleep(10 * time.Millisecond)
		_ = b2.app.Stop() // another app, such as http, could not start
		_ = b2.app.Cleanup()
		time.Sleep(2 * maxPoll)
		if !first.node.Leads() {
			t.Errorf("it does not lead any more: %+v", first.node.Status())
		}
		begun := time.Now()
		for !first.node.Leads() && time.Since(begun) < time.Hour {
			time.Sleep(time.Second)
		}
		t.Logf("it leads again after %s more", time.Since(begun))
	})
}

// TestFleetBehind: where a push fails once, the leader does not serve for an hour what all others have replaced.
func TestFleetBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		hourly := func(b *bench) { b.handler.settings.interval = time.Hour }
		var fails atomic.Int32
		shared := &disk{Storage: record.NewMemory(), fails: func(key string) error {
			if strings.Contains(key, "/objects/") && fails.Add(-1) >= 0 {
				return errors.New("a time-out")
			}
			return nil
		}}
		b1, first := sharing(t, shared, hourly)
		b1.lists("/a", "/b")
		pages1, end1 := runs(b1, first)
		defer end1()
		time.Sleep(time.Minute)
		b2, second := sharing(t, shared, hourly)
		pages2, end2 := runs(b2, second)
		defer end2()
		time.Sleep(time.Minute)
		b1.lists("/a", "/b", "/c")
		fails.Store(1)
		var differ time.Duration
		for range 3 * 360 {
			time.Sleep(10 * time.Second)
			if pages1() != pages2() {
				differ += 10 * time.Second
			}
		}
		if differ > 4*maxPoll {
			t.Errorf("the leader has served something else for %s: at last %d and %d", differ, pages1(), pages2())
		}
	})
}

// TestFleetRefreshOfAlias: an operator who requests a refresh of an alias gets that of its main site.
func TestFleetRefreshOfAlias(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		shared := record.NewMemory()
		b, s := sharing(t, shared, func(b *bench) {
			b.handler.mounts = mounts{{hosts: []string{"named.example", "www.named.example"}}, {}}
			b.lists("/", "/a")
		})
		alias := b.site("www.named.example")
		_, end := runs(b, s)
		defer end()
		b.app.run(alias)
		time.Sleep(5 * time.Minute)
		if alias.main.Load() != s {
			t.Fatal("it is no alias")
		}
		begun := time.Now()
		err := alias.refreshNow(t.Context())
		if err != nil {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
	})
}

// TestFleetRestarted: a process alone that was killed, or stopped at once, soon refreshes its site.
func TestFleetRestarted(t *testing.T) {
	for name, test := range map[string]struct {
		after    time.Duration
		isKilled bool
		most     time.Duration // until it leads again
	}{
		"stopped at once": {after: time.Second, most: 5 * time.Second},
		"stopped":         {after: time.Minute, most: 5 * time.Second},
		"killed at once":  {after: 4 * time.Second, isKilled: true, most: 7 * maxPoll},
		"killed":          {after: time.Minute, isKilled: true, most: 7 * maxPoll},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, _ *bench) {
				shared := record.NewMemory()
				dead := failing{shared, new(atomic.Bool)}
				b, s := sharing(t, dead)
				_, end := runs(b, s)
				time.Sleep(test.after)
				dead.down.Store(test.isKilled) // so it cannot say that it stops
				end()
				b2, again := sharing(t, shared)
				pages, end2 := runs(b2, again)
				defer end2()
				begun := time.Now()
				for !again.node.Leads() || pages() != 1 {
					time.Sleep(time.Second)
					if time.Since(begun) > test.most {
						t.Fatalf("it serves %d pages, and leads: %t", pages(), again.node.Leads())
					}
				}
			})
		})
	}
}

// TestFleetTwoHandlers: two handlers of one host do not serve each other's pages.
func TestFleetTwoHandlers(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		shared := record.NewMemory()
		b, s := sharing(t, shared)
		b.lists("/a", "/b")
		o, _ := sharing(t, record.NewMemory())
		o.lists("/c")
		o.handler.app = b.app
		b.app.fetchers[o.handler.server] = o.app.fetchers[o.handler.server]
		id, _ := o.handler.idOf(&http.Request{Host: "named.example"}, "")
		other, err := b.app.site(id)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(s.node.Prefix, other.node.Prefix, s.state.place.file, other.state.place.file)
		pages, end := runs(b, s)
		b.app.run(other)
		time.Sleep(10 * time.Minute)
		t.Logf("%d and %d pages", pages(), pagesOf(other.published().snapshot))
		if pages() != 2 || pagesOf(other.published().snapshot) != 1 {
			t.Error("they serve the same")
		}
		end()
		other.drop()
	})
}

// TestFleetSlowDisk: a restart with many sites on a slow disk requests no page again.
func TestFleetSlowDisk(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		n := 40
		d := &disk{Storage: record.NewMemory()}
		folder := t.TempDir()
		start := func() (*bench, []*site, *atomic.Int64) {
			b := newBench(t, func(h *Handler) {
				h.sources = []input{new(SourceTraffic)}
			})
			var hosts []string
			for i := range n {
				hosts = append(hosts, fmt.Sprintf("h%03d.example", i))
			}
			b.handler.mounts = mounts{{hosts: hosts}}
			b.app.now = time.Now
			b.app.folder = folder
			b.app.disk = record.Bounded(d)
			b.lists("/a", "/b", "/c")
			asked := new(atomic.Int64)
			answers := b.pages
			b.pages = func(w http.ResponseWriter, r *http.Request) error {
				if len(r.URL.Path) == 2 {
					asked.Add(1)
				}
				return answers(w, r)
			}
			var all []*site
			for _, h := range hosts {
				all = append(all, b.site(h))
			}
			for _, s := range all {
				b.app.run(s)
			}
			return b, all, asked
		}
		end := func(b *bench, all []*site) {
			_ = b.app.Stop()
			for _, s := range all {
				s.drop()
			}
		}
		b, all, _ := start()
		time.Sleep(10 * time.Minute)
		end(b, all)
		for _, pause := range []time.Duration{0, time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 30 * time.Millisecond} {
			d.pause.Store(int64(pause))
			b, all, asked := start()
			time.Sleep(time.Minute)
			d.pause.Store(0)
			t.Logf("pause %s: %d pages are requested again, %d lines of records", pause, asked.Load(),
				b.logged("cannot store the records: pages are fetched again after a restart"))
			end(b, all)
		}
		_ = path.Base
	})
}

// TestFleetFailingPolls: while nobody can refresh the site, polls are as rare as ever.
func TestFleetFailingPolls(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		count := &counting{Storage: record.NewMemory()}
		b, s := sharing(t, count)
		_, end := runs(b, s)
		defer end()
		time.Sleep(2 * time.Minute)
		b.yields(func(context.Context, *Refresh, func(Page) error) error { panic("a fault") })
		before := count.loads.Load()
		time.Sleep(time.Hour)
		if n := count.loads.Load() - before; n > 400 {
			t.Errorf("%d loads in an hour of 240 polls", n)
		}
	})
}

// hanging is a storage whose calls hang, whatever their context says.
type hanging struct {
	record.Storage
	hangs atomic.Bool
}

func (h *hanging) wait() {
	if h.hangs.Load() {
		time.Sleep(time.Hour)
	}
}

func (h *hanging) Load(ctx context.Context, key string) ([]byte, error) {
	h.wait()
	return h.Storage.Load(ctx, key)
}

func (h *hanging) Store(ctx context.Context, key string, value []byte) error {
	h.wait()
	return h.Storage.Store(ctx, key, value)
}

// TestFleetStop: Stop returns soon, whatever hangs.
func TestFleetStop(t *testing.T) {
	for name, isLocal := range map[string]bool{"shared": false, "local": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, _ *bench) {
				d := &hanging{Storage: record.NewMemory()}
				shared := &hanging{Storage: record.NewMemory()}
				b, s := sharing(t, shared, func(b *bench) { b.app.disk = record.Bounded(d) })
				_, end := runs(b, s)
				time.Sleep(time.Minute + 500*time.Millisecond)
				b.lists("/a", "/b")
				d.hangs.Store(isLocal)
				shared.hangs.Store(!isLocal)
				time.Sleep(95 * time.Second)
				begun := time.Now()
				end()
				if took := time.Since(begun); took > 5*time.Second {
					t.Errorf("it takes %s", took)
				} else {
					t.Logf("it takes %s", took)
				}
				time.Sleep(3 * time.Hour)
			})
		})
	}
}

// TestFleetReload: a reload of the leader's configuration keeps to the plan.
func TestFleetReload(t *testing.T) {
	for _, isShared := range []bool{false, true} {
		inBubble(t, func(t *testing.T, b *bench) {
			was := latest.Load()
			defer latest.Store(was)
			shared := record.NewMemory()
			folder := t.TempDir()
			make := func(number uint64) (*bench, *site, *atomic.Int64) {
				b := newBench(t, nil)
				b.app.now = time.Now
				b.app.folder = folder
				if isShared {
					b, _ = sharing(t, shared, func(b *bench) { b.app.folder = folder })
				}
				b.handler.settings.interval = 10 * time.Minute
				b.handler.sources = []input{guest{b, b}}
				asked := new(atomic.Int64)
				b.source = func(_ context.Context, _ *Refresh, yield func(Page) error) error {
					asked.Add(1)
					return yield(Page{Path: "/a"})
				}
				b.app.number = was + number
				latest.Store(b.app.number)
				return b, b.site("named.example"), asked
			}
			b1, s1, _ := make(1)
			b1.app.run(s1)
			time.Sleep(12 * time.Minute)
			b2, s2, asked := make(2)
			b2.app.serving = closedChannel()
			b2.app.run(s2)
			_ = b1.app.Stop()
			time.Sleep(time.Minute)
			if n := asked.Load(); n > 0 {
				t.Errorf("shared %t: %d refreshes within a minute of a reload", isShared, n)
			}
			_ = b2.app.Stop()
			s1.drop()
			s2.drop()
		})
	}
}

func closedChannel() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// TestFleetSave: what a process is about to announce that does not lead any more is no success.
func TestFleetSave(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		d := &disk{Storage: record.NewMemory()}
		_, s := sharing(t, d)
		lead(t, s)
		d.full.Store(true)
		time.Sleep(4 * maxPoll)
		err := pushedFile{persistFile(s), s.state}.Save(t.Context(), func() ([]byte, error) { return []byte("cursor"), nil })
		if err == nil {
			t.Error("it is")
		}
	})
}

func persistFile(s *site) *record.File {
	return record.NewFile(s.state.local, announcementsOf(s.state.place.file))
}

// TestFleetTellEscaped: whatever paths a stranger requests, what visitors of a process found is told.
func TestFleetTellEscaped(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		shared := record.NewMemory()
		unlinked := unlinkedWiki(t)
		b1, first := sharing(t, shared, unlinked)
		_, end1 := runs(b1, first)
		defer end1()
		time.Sleep(5 * time.Second)
		b2, s := sharing(t, shared, unlinked)
		_, end := runs(b2, s)
		defer end()
		for i := range 20 {
			s.Note(fmt.Sprint("/wiki/", strings.Repeat("&", 1900), i), time.Now().Unix(), false)
		}
		s.Note("/a", time.Now().Unix(), true)
		time.Sleep(3 * time.Minute)
		if n, _ := first.state.visited.Count(); n == 0 {
			t.Error("nothing is told")
		}
	})
}

// TestFleetRoots: a site that begins to be shared, or is alone again, requests no page again, nor does a process whose root lies
// elsewhere.
func TestFleetRoots(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		shared := record.NewMemory()
		folder := t.TempDir()
		asked := new(atomic.Int64)
		leads := func(b *bench, s *site) {
			b.handler.sources = []input{guest{b, b}}
			b.lists("/a", "/b", "/c")
			answers := b.pages
			b.serves(func(w http.ResponseWriter, r *http.Request) error {
				if len(r.URL.Path) == len("/a") {
					asked.Add(1)
				}
				return answers(w, r)
			})
			pages, end := runs(b, s)
			time.Sleep(2*time.Minute + time.Second)
			if pages() != 3 {
				t.Errorf("%d pages", pages())
			}
			end()
		}
		rooted := func(b *bench, root, folder string) {
			b.handler.server.Routes = caddyhttp.RouteList{{Handlers: []caddyhttp.MiddlewareHandler{caddyhttp.VarsMiddleware{"root": root}}}}
			b.app.folder = folder
		}
		alone := func() {
			b := newBench(t, nil)
			b.app.now = time.Now
			rooted(b, "/srv/1", folder)
			leads(b, b.site("named.example"))
		}
		alone()
		asked.Store(0)
		for _, of := range []struct{ root, folder string }{{"/srv/1", folder}, {"/srv/2", t.TempDir()}, {"/srv/1", folder}} {
			b, s := sharing(t, shared, func(b *bench) { rooted(b, of.root, of.folder) })
			leads(b, s)
			if n := asked.Load(); n > 0 {
				t.Errorf("with the root %s: %d requests", of.root, n)
			}
		}
		alone()
		if n := asked.Load(); n > 0 {
			t.Errorf("alone again: %d requests", n)
		}
	})
}
