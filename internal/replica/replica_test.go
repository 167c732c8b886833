package replica

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/record"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

var errFault = errors.New("a fault")

type faults struct {
	slow   time.Duration
	fail   float64
	hang   float64
	lag    time.Duration
	noList bool
}
type value struct {
	at   time.Time
	data []byte
}
type fake struct {
	mu         sync.Mutex
	faults     faults
	keys       map[string][]value
	calls      map[string]int
	badDeletes int
}

func (f *fake) at(key string, at time.Time) []byte {
	vs := f.keys[key]
	for i := len(vs) - 1; i >= 0; i-- {
		if !vs[i].at.After(at) {
			return vs[i].data
		}
	}
	return nil
}
func (f *fake) change(key string, data []byte) {
	f.keys[key] = append(f.keys[key], value{time.Now(), data})
	if n := len(f.keys[key]); n > 200 {
		f.keys[key] = f.keys[key][n-100:]
	}
}
func (f *fake) current() (c current) {
	_ = json.Unmarshal(f.at("site/current", time.Now()), &c)
	return c
}
func (f *fake) named() map[string]bool {
	c := f.current()
	var m []byte
	for i := 0; ; i++ {
		part := f.at(fmt.Sprintf("site/objects/%s.%d", c.Manifest, i), time.Now())
		m = append(m, part...)
		if len(part) < partSize {
			return named(m, c.Value)
		}
	}
}

// newest is current, as of now.
func (f *fake) newest() current {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.current()
}

// counted returns the number of calls so far, by kind.
func (f *fake) counted() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.calls)
}

// named returns the names of a manifest, of what it names, and of a value.
func named(manifest []byte, value string) map[string]bool {
	names := map[string]bool{record.Hash(manifest): true, value: true}
	for _, name := range record.ObjectsOf(manifest) {
		names[name] = true
	}
	return names
}

type client struct {
	*fake
	dead bool
}

func (c *client) call(ctx context.Context, op string, do func(seen time.Time)) error {
	c.mu.Lock()
	f := c.faults
	c.calls[op]++
	c.mu.Unlock()
	var pause time.Duration
	if f.slow > 0 {
		pause = rand.N(f.slow)
	}
	if rand.Float64() < f.hang {
		pause = time.Minute
		ctx = context.WithoutCancel(ctx)
	}
	_, isCanceled := wait.Within(pause, ctx.Done())
	isDone := !isCanceled || rand.IntN(2) == 0
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := time.Now()
	if f.lag > 0 {
		seen = seen.Add(-rand.N(f.lag))
	}
	fails := rand.Float64() < f.fail
	if isDone && (!c.dead || rand.IntN(2) == 0 && pause > 0) && (!fails || rand.IntN(2) == 0) {
		do(seen)
	}
	if c.dead || fails {
		return errFault
	}
	return ctx.Err()
}
func (c *client) Store(ctx context.Context, key string, v []byte) error {
	return c.call(ctx, "store", func(time.Time) { c.change(key, v) })
}
func (c *client) Load(ctx context.Context, key string) (data []byte, err error) {
	var loaded []byte
	if err = c.call(ctx, "load", func(seen time.Time) { loaded = c.at(key, seen) }); err == nil && loaded == nil {
		err = fs.ErrNotExist
	}
	return loaded, err
}
func (c *client) Delete(ctx context.Context, key string) error {
	return c.call(ctx, "delete", func(time.Time) {
		name, _, _ := strings.Cut(path.Base(key), ".")
		if c.named()[name] {
			c.badDeletes++
		}
		c.change(key, nil)
	})
}
func (c *client) List(ctx context.Context, folder string, _ bool) (keys []string, err error) {
	c.mu.Lock()
	noList := c.faults.noList
	c.mu.Unlock()
	if noList {
		return []string{folder}, nil
	}
	err = c.call(ctx, "list", func(seen time.Time) {
		for key := range c.keys {
			if path.Dir(key) == folder && c.at(key, seen) != nil {
				keys = append(keys, key)
			}
		}
	})
	return keys, err
}

type meta struct{ Version int }

// world is what several processes share: a storage, and a site of which there are versions.
type world struct {
	t         *testing.T
	f         *fake
	version   atomic.Int64
	both      atomic.Int64 // times that a process refreshes while another one leads
	refreshes atomic.Int64
	torn      atomic.Int64

	living    sync.Mutex
	processes []*process
}

// all returns the processes that live.
func (w *world) all() []*process {
	w.living.Lock()
	defer w.living.Unlock()
	return slices.Clone(w.processes)
}

// process refreshes the site while it leads, and takes what others have.
type process struct {
	*world
	*Node
	c      *client
	ctx    context.Context
	kill   context.CancelFunc
	done   chan struct{}
	have   atomic.Int64 // version
	last   current
	goDown int // times that something older was seen; to be read once it has ended
}

func (w *world) start(local record.Storage) *process {
	c := &client{fake: w.f}
	b := record.Bounded(c)
	p := &process{world: w, c: c, done: make(chan struct{})}
	p.have.Store(-1)
	p.Node = New(Options{Prefix: "site", Local: local, Records: "any", Value: "value", Hold: func(context.Context) (func(), error) { return func() {}, nil }})
	p.Configure(b, 15*time.Second)
	p.ctx, p.kill = context.WithCancel(context.Background())
	p.verify()
	go p.run()
	w.living.Lock()
	defer w.living.Unlock()
	w.processes = append(w.processes, p)
	return p
}
func (p *process) run() {
	defer close(p.done)
	for i := 0; p.ctx.Err() == nil; i++ {
		changed, _ := p.Step(p.ctx)
		p.turn.Take(context.Background())
		seen := p.seen
		p.turn.Release()
		if seen.compare(p.last) < 0 {
			p.goDown++
		}
		p.last = seen
		if changed {
			p.verify()
		}
		if i%4 == 0 && p.Leads() {
			p.refresh()
		}
		p.Wait(p.ctx)
	}
}
func (p *process) open() *record.Store {
	s := record.New(p.Local, "any")
	if err := s.Open(context.Background(), nil); err != nil {
		p.t.Fatal(err)
	}
	return s
}
func (p *process) verify() {
	g := p.open().Last()
	var m meta
	if len(g.Meta()) == 0 {
		return
	}
	_ = json.Unmarshal(g.Meta(), &m)
	n := 0
	for r, err := range g.Records(context.Background()) {
		if err != nil || r.Text != uint64(m.Version)+1 {
			p.torn.Add(1)
			return
		}
		n++
	}
	if n != 20+m.Version {
		p.torn.Add(1)
	}
	p.have.Store(int64(m.Version))
}
func (p *process) refresh() {
	p.refreshes.Add(1)
	for _, o := range p.all() {
		if o != p && o.Leads() {
			p.both.Add(1)
		}
	}
	if p.have.Load() == p.version.Load() {
		return
	}
	version := int(p.version.Load())
	s := p.open()
	w := s.Last().Writer()
	var records []record.Record
	for i := range 20 + version {
		records = append(records, record.Record{Path: fmt.Sprintf("/%03d", i), Text: uint64(version) + 1})
	}
	w.Put("", records, nil, nil)
	g, err := w.Generation()
	if err != nil {
		p.t.Fatal(err)
	}
	m, _ := json.Marshal(meta{version})
	g = g.WithDocuments(m, []record.StoredDocument{record.NewDocument("doc", nil, fmt.Append(nil, "doc", version))})
	if err := s.Commit(context.Background(), g); err != nil {
		p.t.Fatal(err)
	}
	p.have.Store(int64(version))
	_ = p.Push(p.ctx)
	// what could not be pushed is pushed by the next step: see lead
}
func (p *process) end() {
	p.c.mu.Lock()
	p.c.dead = true
	p.c.mu.Unlock()
	p.kill()
	<-p.done
	p.living.Lock()
	defer p.living.Unlock()
	p.processes = slices.DeleteFunc(p.processes, func(q *process) bool { return q == p })
}

func TestMain(m *testing.M) {
	s := record.New(record.NewMemory(), "")
	w := s.Last().Writer()
	w.Put("", []record.Record{{Path: "/"}}, nil, nil)
	g, _ := w.Generation()
	_, _ = g.Load(context.Background(), 0)
	m.Run()
}

func TestReplica(t *testing.T) {
	all := faults{slow: 3 * time.Second, fail: .05, hang: .01, lag: 10 * time.Second}
	for name, test := range map[string]struct {
		faults faults
		kills  bool
		loses  bool
		hours  int
	}{
		"none":               {faults{}, false, false, 2},
		"kills":              {faults{slow: time.Second}, true, false, 6},
		"slow":               {faults{slow: 8 * time.Second}, false, false, 3},
		"fails":              {faults{fail: .2}, false, false, 3},
		"hangs":              {faults{hang: .05}, false, false, 3},
		"late":               {faults{lag: 30 * time.Second}, false, false, 3},
		"late, kills":        {faults{lag: 30 * time.Second}, true, false, 6},
		"all together":       {all, true, false, 8},
		"loses all":          {faults{slow: time.Second}, false, true, 4},
		"very late, kills":   {faults{lag: time.Minute}, true, false, 12},
		"no list":            {faults{noList: true}, false, false, 24},
		"no list, kills":     {faults{noList: true, slow: time.Second}, true, false, 24},
		"list, kills":        {faults{slow: time.Second}, true, false, 24},
		"kills now and then": {faults{slow: time.Second, noList: true}, false, false, 24},
		"loses more":         {all, true, true, 8},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{t: t, f: &fake{keys: make(map[string][]value), calls: make(map[string]int)}}
				for range 3 {
					w.start(record.NewMemory())
				}
				most, disagree, rounds := 0, 0, 0
				down := 0
				for end := time.Now().Add(time.Duration(test.hours) * time.Hour); time.Now().Before(end); {
					w.f.mu.Lock()
					w.f.faults = test.faults
					w.f.mu.Unlock()
					for range rand.IntN(60) {
						time.Sleep(rand.N(20 * time.Second))
						if rand.IntN(10) == 0 { // an operator requests a refresh
							p := w.all()[rand.IntN(3)]
							go func() {
								ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
								defer cancel()
								_ = p.Claim(ctx)
							}()
						}
						if rand.IntN(3) == 0 {
							w.version.Store(rand.Int64N(30))
						}
						if test.loses && rand.IntN(20) == 0 {
							w.f.mu.Lock()
							w.f.keys = make(map[string][]value)
							w.f.mu.Unlock()
						}
						if test.kills && rand.IntN(3) == 0 {
							p := w.all()[rand.IntN(3)]
							p.end()
							down += p.goDown
							local := p.Local
							if rand.IntN(3) == 0 {
								local = record.NewMemory()
							}
							w.start(local)
						}
					}
					w.f.mu.Lock()
					w.f.faults = faults{}
					stored := 0
					for key := range w.f.keys {
						if w.f.at(key, time.Now()) != nil {
							stored++
						}
					}
					most = max(most, stored)
					w.f.mu.Unlock()
					time.Sleep(5 * time.Minute)
					if test.loses {
						// What was lost amid a push is told by the next list at the latest; where nobody has any more what
						// current names, all wait for somebody who does.
						time.Sleep(listEvery + 2*lackingPolls*15*time.Second)
					}
					rounds++
					for _, p := range w.all() {
						if have := p.have.Load(); have != w.version.Load() {
							disagree++
							t.Errorf("%s has %d, want %d, leads %v", p.ID, have, w.version.Load(), p.Leads())
						}
					}
				}
				for _, p := range w.all() {
					p.end()
					down += p.goDown
				}
				t.Logf("rounds %d refreshes %d, of them beside another leader %d; torn %d; went down %d; bad deletes %d; most stored %d; calls %v",
					rounds, w.refreshes.Load(), w.both.Load(), w.torn.Load(), down, w.f.badDeletes, most, w.f.counted())
				if w.torn.Load() > 0 {
					t.Error("a process has read a part of something")
				}
				if n := w.f.badDeletes; n > 0 {
					t.Errorf("%d objects were deleted that current names", n)
				}
				if down > 0 {
					t.Errorf("processes went back %d times", down)
				}
				if most > 200 {
					t.Errorf("%d keys were stored", most)
				}
				for _, p := range w.all() {
					p.end()
				}
				time.Sleep(5 * time.Minute)
			})
		})
	}
}

// TestRest: at rest, a poll is a read of each process, and a write of the one that leads. After a kill, another one leads within
// seven polls.
func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, f: &fake{keys: make(map[string][]value), calls: make(map[string]int)}}
		for range 3 {
			w.start(record.NewMemory())
		}
		begun := time.Now()
		leader := func() *process {
			for _, p := range w.all() {
				if p.Leads() {
					return p
				}
			}
			return nil
		}
		for leader() == nil {
			time.Sleep(time.Second)
		}
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("the first one leads after %s", took)
		}
		time.Sleep(10 * time.Minute)
		w.f.mu.Lock()
		w.f.calls = make(map[string]int)
		w.f.mu.Unlock()
		time.Sleep(time.Hour)
		const polls = int(time.Hour / (15 * time.Second))
		if calls := w.f.counted(); calls["load"] > 4*polls || calls["store"] > 5*polls/4 || calls["list"] > 2 {
			t.Errorf("in %d polls at rest: %v", polls, calls)
		}
		var longest time.Duration
		for range 100 {
			p := leader()
			p.end()
			w.start(record.NewMemory())
			killed := time.Now()
			for leader() == nil {
				time.Sleep(time.Second)
			}
			longest = max(longest, time.Since(killed))
			time.Sleep(5 * time.Minute)
		}
		if longest > 7*15*time.Second {
			t.Errorf("after a kill, another one leads after %s", longest)
		}
		for _, p := range w.all() {
			p.end()
		}
		time.Sleep(5 * time.Minute)
	})
}

// TestClaimTwice: a process that claims the lead twice, as an operator may have it do, stores what the storage does not have.
func TestClaimTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, f: &fake{keys: make(map[string][]value), calls: make(map[string]int)}}
		w.version.Store(3)
		p := w.start(record.NewMemory())
		synctest.Wait() // it has polled, and sleeps
		p.refresh()
		for range 3 {
			err := p.Claim(t.Context())
			if err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		q := w.start(record.NewMemory())
		time.Sleep(time.Minute)
		if !p.Leads() || q.Leads() || q.have.Load() != w.version.Load() {
			t.Errorf("the first one leads: %t, the other one has %d, want %d", p.Leads(), q.have.Load(), w.version.Load())
		}
		for _, p := range w.all() {
			p.end()
		}
		time.Sleep(5 * time.Minute)
	})
}

// TestAllResign: processes none of which can refresh the site do not hand the lead on and on.
func TestAllResign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, f: &fake{keys: make(map[string][]value), calls: make(map[string]int)}}
		const count = 3
		for range count {
			w.start(record.NewMemory())
		}
		resigned := 0
		begun := time.Now()
		for time.Since(begun) < time.Hour {
			for _, p := range w.all() {
				if p.Leads() {
					resigned++
					_ = p.Resign(t.Context())
				}
			}
			time.Sleep(time.Second)
		}
		const each = int(time.Hour / (resignedPolls * 15 * time.Second))
		if resigned < count || resigned > count*(each+1) {
			t.Errorf("in an hour, they have resigned %d times", resigned)
		}
		for _, p := range w.all() {
			p.end()
		}
		time.Sleep(5 * time.Minute)
	})
}

// alone is a process that leads a site of some version, alone, which a test has do its steps.
func alone(t *testing.T) (w *world, p *process) {
	t.Helper()
	w = &world{t: t, f: &fake{keys: make(map[string][]value), calls: make(map[string]int)}}
	w.version.Store(3)
	p = w.start(record.NewMemory())
	time.Sleep(5 * time.Minute)
	if !p.Leads() || p.have.Load() != 3 {
		t.Fatalf("it leads: %t, and has %d", p.Leads(), p.have.Load())
	}
	return w, p
}

// wantPulled checks that a process that joins has what the leader has.
func (w *world) wantPulled(t *testing.T) {
	t.Helper()
	q := w.start(record.NewMemory())
	time.Sleep(time.Minute)
	if q.have.Load() != w.version.Load() {
		t.Errorf("a process that joins has %d, want %d", q.have.Load(), w.version.Load())
	}
}

// TestLosesObjects: what the storage has lost besides current is stored again: all of it within some polls, a part within an hour.
func TestLosesObjects(t *testing.T) {
	for name, lasts := range map[string]time.Duration{"all": 2 * time.Minute, "a part": 2 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			w, _ := alone(t)
			manifest := w.f.newest().Manifest
			w.f.mu.Lock()
			for key := range w.f.keys {
				isKept := name == "a part" && strings.Contains(key, manifest)
				if strings.Contains(key, "/objects/") && !isKept {
					w.f.change(key, nil)
				}
			}
			w.f.mu.Unlock()
			time.Sleep(lasts)
			w.wantPulled(t)
			for _, p := range w.all() {
				p.end()
			}
		})
	}
}

// TestDamagedLocally: what the leader has lost or damaged is not pushed.
func TestDamagedLocally(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := alone(t)
		has, err := p.local(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for name, key := range has.keys {
			if name == has.manifest {
				continue
			}
			if err := p.Local.Store(t.Context(), key, []byte("damaged")); err != nil {
				t.Fatal(err)
			}
		}
		w.f.mu.Lock()
		w.f.keys = make(map[string][]value) // so that all is to be pushed again
		w.f.mu.Unlock()
		if err := p.Push(t.Context()); !errors.Is(err, record.ErrDamaged) {
			t.Errorf("got %v", err)
		}
		w.f.mu.Lock()
		for key, values := range w.f.keys {
			if string(values[len(values)-1].data) == "damaged" {
				t.Errorf("%s is damaged", key)
			}
		}
		w.f.mu.Unlock()
		p.end()
	})
}

// TestPushFollows: a process that does not lead, or that another one has relieved, pushes nothing.
func TestPushFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := alone(t)
		q := w.start(record.NewMemory())
		time.Sleep(time.Minute)
		if err := q.Push(t.Context()); !errors.Is(err, ErrFollows) {
			t.Errorf("one that follows: %v", err)
		}
		if err := q.Claim(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := p.Push(t.Context()); !errors.Is(err, ErrFollows) {
			t.Errorf("one that was relieved: %v", err)
		}
		p.end()
		q.end()
	})
}

// TestLeaseEnds: a leader that cannot write does not lead any more before another one does.
func TestLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := alone(t)
		w.f.mu.Lock()
		w.f.faults.fail = 1
		w.f.mu.Unlock()
		time.Sleep(deadPolls * 15 * time.Second)
		if p.Leads() {
			t.Error("it still leads")
		}
		p.end()
	})
}

// TestLocalLoss: a leader whose local store was lost has it back from the storage.
func TestLocalLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p := alone(t)
		keys, err := p.Local.List(t.Context(), "any", true)
		if err != nil || len(keys) == 0 {
			t.Fatal(err, keys)
		}
		for _, key := range keys {
			if err := p.Local.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		has, err := p.local(t.Context())
		if err != nil || has.manifest == "" || !p.Leads() {
			t.Errorf("got %q, %v; it leads: %t", has.manifest, err, p.Leads())
		}
		p.end()
	})
}

// TestGarbage: what is not named any more stays for an hour, as another process may still load it, and goes then.
func TestGarbage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := alone(t)
		manifest := w.f.newest().Manifest
		isStored := func() bool {
			w.f.mu.Lock()
			defer w.f.mu.Unlock()
			return w.f.at("site/objects/"+manifest+".0", time.Now()) != nil
		}
		w.version.Store(4)
		time.Sleep(50 * time.Minute)
		if p.have.Load() != 4 || !isStored() {
			t.Errorf("it has %d; what it had is stored: %t", p.have.Load(), isStored())
		}
		time.Sleep(20 * time.Minute)
		if isStored() {
			t.Error("what nobody needs is still stored")
		}
		p.end()
	})
}

// TestMayAnnounce: a process announces once it has led for long enough, and the others have what it pushed.
func TestMayAnnounce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p := alone(t) // for five minutes
		want := func(age time.Duration, want bool) {
			t.Helper()
			if got := p.MayAnnounce(age); got != want {
				t.Errorf("after %s: got %t, want %t", age, got, want)
			}
		}
		want(4*time.Minute, true)
		want(6*time.Minute, false)
		w.version.Store(4)
		p.refresh()
		want(0, false)
		time.Sleep(time.Minute)
		want(0, true)
		p.end()
		q := w.start(record.NewMemory())
		time.Sleep(time.Second)
		if q.MayAnnounce(0) {
			t.Error("one that does not lead announces")
		}
		q.end()
	})
}

// TestIsSettled: what was pushed is settled two polls later, and at times where something is pushed all the time.
func TestIsSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Options{Local: record.NewMemory()})
		n.Configure(record.NewMemory(), 15*time.Second)
		n.notePush()
		begun := time.Now()
		for !n.isSettled() {
			time.Sleep(time.Second)
		}
		if took := time.Since(begun); took < 30*time.Second || took > 40*time.Second {
			t.Errorf("after %s", took)
		}
		settled := 0
		for range 120 {
			n.notePush()
			time.Sleep(5 * time.Second)
			if n.isSettled() {
				settled++
			}
		}
		if settled < 2 || settled > 10 {
			t.Errorf("settled at %d of 120 pushes", settled)
		}
	})
}
