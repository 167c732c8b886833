package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/persist"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// meta is stored with a generation.
type meta struct {
	ID      uint64 // of the refresh
	Version int    // of the site
}

// world is a site and its fleet.
type world struct {
	t        testing.TB
	storage  *fake
	interval time.Duration
	as       func(*client) Shared // how a process has the storage; nil: as it is

	mu        sync.Mutex
	version   int
	processes []*process
	snapshots map[uint64]*document.Set // by meta.ID
}

// pages are those of a version of the site.
func pages(version int) (all []page.Page) {
	for i := range 20 + version {
		all = append(all, page.Page{Path: fmt.Sprintf("/%d/%03d", i/10, i)})
	}
	return all
}

// process is one process that serves the site.
type process struct {
	*world
	*Node
	client *client
	site   *persist.Site
	ctx    context.Context
	kill   context.CancelFunc
	done   sync.WaitGroup

	mu        sync.Mutex
	published *document.Set
	meta      meta
	last      current // that it has loaded or committed
	isOpen    bool
}

// Inherited implements [persist.Shared].
func (p *process) Inherited(context.Context) *store.Generation { return nil }

// Join and Commit implement [persist.Shared]. They are tested with [Member]: here, processes use the Node alone.
func (p *process) Join(context.Context, func() persist.Standing, func()) (persist.Role, func(), error) {
	return persist.Writer, nil, nil
}

func (p *process) Commit(_ context.Context, _ persist.Commit, write func() error) (bool, error) {
	return true, write()
}

func newWorld(t testing.TB, interval time.Duration) *world {
	return &world{t: t, storage: newFake(t), interval: interval, snapshots: make(map[uint64]*document.Set)}
}

// start starts a process whose clock is ahead.
func (w *world) start(local store.Storage, ahead time.Duration) *process {
	c := &client{fake: w.storage}
	var shared Shared = c
	if w.as != nil {
		shared = w.as(c)
	}
	p := &process{world: w, client: c, Node: New(Options{
		Storage: func() Shared { return shared }, Prefix: "site", Interval: w.interval, Local: local, Now: func() time.Time { return time.Now().Add(ahead) },
	})}
	p.site = persist.NewSite(p, "any")
	p.ctx, p.kill = context.WithCancel(context.Background())
	p.done.Go(func() {
		for p.Wait(p.ctx) {
			_ = p.Poll(p.ctx)
			p.Collect(p.ctx)
		}
	})
	p.done.Go(func() {
		for p.ctx.Err() == nil {
			p.run()
			p.sleep(time.Second + w.interval/60)
		}
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.processes = append(w.processes, p)
	return p
}

func (p *process) sleep(d time.Duration) { _, _ = wait.Within(d, p.ctx.Done()) }

// end kills the process: nothing that it does from now on has an effect, but for calls under way.
func (p *process) end() {
	p.client.mu.Lock()
	p.client.dead = true
	p.client.mu.Unlock()
	p.kill()
	p.world.mu.Lock()
	p.processes = slices.DeleteFunc(p.processes, func(q *process) bool { return q == p })
	p.world.mu.Unlock()
}

// run loads what other processes have committed, and refreshes the site if it is due.
func (p *process) run() {
	r, err := p.site.Acquire(p.ctx)
	if err != nil {
		return
	}
	defer r.Release()
	p.follow(r)
	if p.Due(false).After(p.Now()) {
		return
	}
	release, err := p.Acquire(p.ctx)
	if err != nil {
		return
	}
	defer release()
	if p.follow(r); p.Newer() || p.Due(false).After(p.Now()) {
		return
	}
	p.refresh(r)
}

func (p *process) follow(r *persist.Records) {
	var m meta
	if p.isOpen && !p.Newer() {
		return
	}
	snapshot, err := r.Open(p.ctx, &m, p.published, nil)
	if err != nil {
		if errors.Is(err, store.ErrDamaged) && !p.storage.hasLost() {
			p.t.Errorf("damaged: %v", err)
		}
		return
	}
	p.isOpen = true
	p.check()
	if snapshot == nil {
		return
	}
	p.publish(snapshot, m)
	p.world.mu.Lock()
	want := p.snapshots[m.ID]
	p.world.mu.Unlock()
	if !want.Equal(snapshot) {
		p.t.Errorf("generation %d is not what was committed", p.last.Generation)
	}
	n := 0
	for record, err := range r.Generation.Records(p.ctx) {
		if errors.Is(err, store.ErrDamaged) && !p.storage.hasLost() || err == nil && record.Text != uint64(m.Version) {
			p.t.Errorf("generation %d: %v, %v", p.last.Generation, record, err)
		}
		if err != nil {
			return
		}
		n++
	}
	isWhole := n == len(pages(m.Version)) && n == snapshot.Pages
	if !isWhole && p.last.Generation > 0 { // else it has what is left in memory after a loss
		p.t.Errorf("generation %d is torn: %d records", p.last.Generation, n)
	}
}

// check checks that generations grow.
func (p *process) check() {
	p.Node.mu.Lock()
	defer p.Node.mu.Unlock()
	if p.seen.compare(p.last) < 0 && p.lost == 0 {
		p.t.Errorf("generation %d of %s follows %d of %s", p.seen.Generation, p.seen.Node, p.last.Generation, p.last.Node)
	}
	p.last = p.seen
}

func (p *process) publish(s *document.Set, m meta) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.published, p.meta = s, m
}

func (p *process) refresh(r *persist.Records) {
	begun := p.Begin()
	p.Plan(p.interval)
	p.world.mu.Lock()
	version := p.version
	p.world.mu.Unlock()
	if p.published != nil && p.meta.Version == version && !r.Unsaved {
		if p.Touch(p.ctx) == nil {
			p.check()
		}
		return
	}
	m := meta{rand.Uint64(), version}
	w := r.Generation.Writer()
	var records []store.Record
	for _, page := range pages(version) {
		records = append(records, store.Record{Path: page.Path, Text: uint64(version)})
	}
	w.Put("", records, nil, nil)
	r.Generation, _ = w.Generation()
	s, err := document.Build(p.ctx, func(yield func(page.Page, error) bool) {
		for _, page := range pages(version) {
			if !yield(page, nil) {
				return
			}
		}
	}, p.published, document.Options{Base: "https://example.com", Sitemap: "https://example.com/sitemap", ShardURLs: 10, Now: begun})
	if err != nil {
		return
	}
	p.world.mu.Lock()
	p.snapshots[m.ID] = s
	p.world.mu.Unlock()
	if r.Write(s, m) == nil {
		p.check()
		p.publish(s, m)
	}
}

// agree checks that all processes serve the site as it is now.
func (w *world) agree(t *testing.T, when string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.processes {
		p.mu.Lock()
		first := w.processes[0]
		status, want := p.Status(), first.Status()
		if max(status.Generation, want.Generation)-min(status.Generation, want.Generation) > 1 || !first.published.Equal(p.published) || p.meta.Version != w.version {
			t.Errorf("%s: %s has generation %d of %s, version %d; %s has %d of %s; want version %d (%v)", when, p.ID, status.Generation, status.Writer, p.meta.Version,
				first.ID, want.Generation, want.Writer, w.version, status.Error)
		}
		p.mu.Unlock()
	}
}

// stop ends all processes.
func (w *world) stop() {
	for len(w.processes) > 0 {
		p := w.processes[0]
		p.end()
		p.done.Wait()
	}
	time.Sleep(5 * time.Minute) // calls under way
}

// clocks are those of three processes.
var clocks = []time.Duration{0, time.Hour, -time.Hour}

// isLong asks for the full length of what is simulated.
var isLong = os.Getenv("SITEMAP_LONG") != ""

// TestMain has the compressor make what it shares outside of any bubble of fake time.
func TestMain(m *testing.M) {
	s, _ := store.Open(context.Background(), store.NewMemory(), store.Options{})
	w := s.Last().Writer()
	w.Put("", []store.Record{{Path: "/"}}, nil, nil)
	g, _ := w.Generation()
	_, _ = g.Load(context.Background(), 0)
	m.Run()
}

// TestFaults: whatever the storage does, and whoever dies, no process loads anything torn or older, nothing is deleted
// that is needed, and when all is well again, all agree.
func TestFaults(t *testing.T) {
	all := faults{slow: 3 * time.Second, fail: .05, hang: .01, lag: 10 * time.Second, locks: .5}
	for name, test := range map[string]struct {
		faults faults
		kills  bool
		loses  bool // all that is stored
		hours  int
	}{
		"none":         {faults{}, false, false, 1},
		"kills":        {faults{slow: time.Second}, true, false, 2},
		"slow":         {faults{slow: 15 * time.Second}, false, false, 1},
		"fails":        {faults{fail: .2}, false, false, 1},
		"hangs":        {faults{hang: .05}, false, false, 1},
		"late":         {faults{lag: 30 * time.Second}, false, false, 1},
		"two winners":  {faults{locks: 1, slow: time.Second}, false, false, 2},
		"all together": {all, true, false, 4},
		"loses all":    {faults{slow: time.Second}, false, true, 2},
		"loses more":   {all, true, true, 4},
	} {
		if isLong {
			test.hours *= 3
		}
		if testing.Short() { // as under the race detector: in simulated time, Go's runtime may crash (https://go.dev/issue/78156)
			if test.hours = 1; test.faults != all {
				continue
			}
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, time.Minute)
				for _, ahead := range clocks {
					w.start(store.NewMemory(), ahead)
				}
				for end := time.Now().Add(time.Duration(test.hours) * time.Hour); time.Now().Before(end) && !t.Failed(); {
					w.storage.set(test.faults)
					for range rand.IntN(60) {
						time.Sleep(rand.N(20 * time.Second))
						if rand.IntN(3) == 0 {
							w.mu.Lock()
							w.version = rand.IntN(30)
							w.mu.Unlock()
						}
						if test.loses && rand.IntN(20) == 0 {
							w.storage.lose()
						}
						if test.kills && rand.IntN(3) == 0 {
							p := w.processes[rand.IntN(3)]
							p.end()
							w.start(p.Local, clocks[rand.IntN(3)])
						}
					}
					w.storage.set(faults{})
					time.Sleep(5 * time.Minute)
					w.agree(t, fmt.Sprint("in ", time.Until(end)))
				}
				w.stop()
			})
		})
	}
}

// TestGarbage: what no generation needs any more is deleted, also what killed processes left, and nothing else: sites often
// return to what they were.
func TestGarbage(t *testing.T) {
	if testing.Short() {
		t.Skip("weeks of polls")
	}
	days := 4 // of which the last has the other pages
	if isLong {
		days = 12
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 20*time.Minute)
		for _, ahead := range clocks {
			w.start(store.NewMemory(), ahead)
		}
		for day := range days {
			w.storage.set(faults{slow: 3 * time.Second, fail: .02, lag: 10 * time.Second, locks: .8})
			for range 12 {
				w.mu.Lock()
				w.version = rand.IntN(3) + 3*(day/3%2)
				w.mu.Unlock()
				time.Sleep(rand.N(4 * time.Hour))
				p := w.processes[rand.IntN(3)]
				p.end()
				w.start(p.Local, clocks[rand.IntN(3)])
			}
			if t.Failed() {
				break
			}
		}
		w.storage.set(faults{})
		// Where two commit at once, and one is killed, the ledger lacks what that has stored until the storage is listed.
		time.Sleep(28 * time.Hour)
		w.agree(t, "in the end")
		w.storage.mu.Lock()
		stored, needed := 0, w.storage.named()
		for key := range w.storage.keys {
			if w.storage.at(key, time.Now()) != nil {
				stored++
			}
		}
		if stored > len(needed)+2 { // current and the ledger
			t.Errorf("%d values are left, %d are named", stored, len(needed))
		}
		w.storage.mu.Unlock()
		w.stop()
	})
}
