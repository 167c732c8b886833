//go:build unix

package fleet

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
	"github.com/seed3295b519/caddy-sitemap/caddytest/storages"
	"github.com/seed3295b519/caddy-sitemap/internal/document"
)

const (
	maxValue   = 256 << 10 // bytes of a value
	maxCurrent = 4 << 10   // bytes of the one that nodes poll

	unknownShard = "/sitemap-0123456789ab.xml" // that the site has not
	polled       = 20 * time.Second            // in which a few polls and what they load have ended, on a busy machine
)

// length is how long a test goes on: much longer with -long.
func length(short, whole time.Duration) time.Duration {
	if *long {
		return whole
	}
	return short
}

// calls are those so far that concern sitemaps. None may be of a kind, or have a value of a size, that storages for Caddy
// do badly.
func (f *fleet) calls() []storages.Call {
	f.t.Helper()
	all, err := storages.Calls(f.control)
	harness.Must(f.t, err)
	var calls []storages.Call
	for _, c := range all {
		if !strings.HasPrefix(c.Key, "sitemap") {
			continue
		}
		calls = append(calls, c)
		switch isCurrent := strings.HasSuffix(c.Key, "/current"); {
		case c.Op == "exists", c.Op == "stat", c.Op == "store" && (c.Size > maxValue || isCurrent && c.Size > maxCurrent), c.Op == "delete" && strings.Count(c.Key, "/") < 2:
			f.t.Errorf("the storage is asked for %+v", c)
		}
	}
	return calls
}

// settle waits until all nodes list a page with a date, and agree.
func (f *fleet) settle(path string, when time.Time) {
	f.t.Helper()
	// Where one refresh has found many other files, they have the day.
	dates := []string{harness.Stamp(when), when.UTC().Format(time.DateOnly)}
	for _, n := range f.nodes {
		begun := time.Now()
		for !n.lists(path, dates[0]) && !n.lists(path, dates[1]) {
			if time.Since(begun) > settling {
				f.t.Fatalf("%s does not list %s with the date %s after %s: %s\n%s", n.name, path, dates[0], settling, n.entryOf(path), f.logs())
			}
			time.Sleep(breath)
		}
	}
	f.agree(settling)
	f.calls()
}

// TestSharedSite has a large site: nodes have the same answers, at the latest a poll after a change, and so has one that
// joins.
func TestSharedSite(t *testing.T) {
	t.Parallel() // most of it is waiting
	many := int(length(20_000, 200_000))
	if harness.Race {
		many = 20_000
	}
	for _, test := range []struct {
		files bool
		count int
	}{{false, many}, {true, int(length(5000, 20_000))}} {
		t.Run(fmt.Sprintf("%+v", test), func(t *testing.T) {
			t.Parallel()
			f := prepare(t, setup{nodes: 4, files: test.files, site: "urls {dir}/pages.txt\ncrawl off"})
			f.list(test.count, harness.DayOf(0))
			last := fmt.Sprintf("/499/%06d", test.count-1)
			joins := f.nodes[3]
			f.nodes = f.nodes[:3]
			f.run()
			f.settle(last, harness.DayOf(0))
			for day := 1; day <= 3; day++ {
				f.list(test.count, harness.DayOf(day))
				f.eventually(settling, func() bool {
					return slices.ContainsFunc(f.nodes, func(n *node) bool { return n.lists(last, harness.Stamp(harness.DayOf(day))) })
				})
				t.Logf("the others have a change of all pages after %s", f.agree(patience))
			}
			joins.start()
			took := joins.first()
			t.Logf("first sitemap of a node that joins: %s", took)
			if took > polled { // 2 s where nothing else runs
				t.Error("that takes too long")
			}
			f.nodes = append(f.nodes, joins)
			f.settle(last, harness.DayOf(3))
		})
	}
}

// TestSharedNewShard asks all nodes for a shard as soon as one of them names it.
func TestSharedNewShard(t *testing.T) {
	t.Parallel() // most of it is waiting
	f := start(t, setup{nodes: 3, site: "shard_urls 20"}, 100)
	for i, found := 0, 0; found < 3; i++ {
		path := fmt.Sprintf("/new/%04d.html", i)
		if xxhash.Sum64String(path) > math.MaxUint64/10 { // it would begin no shard
			continue
		}
		found++
		f.put(path, "new", harness.DayOf(i))
		name := fmt.Sprintf("/sitemap-%012x.xml", document.ShardID(path))
		f.eventually(patience, func() bool {
			return slices.ContainsFunc(f.nodes, func(n *node) bool { return strings.Contains(n.get("/sitemap.xml").body, name) })
		})
		for _, n := range f.nodes {
			if r := n.find(name); r.status != http.StatusOK {
				t.Errorf("%s, which another node's index names: %s says %d %v", name, n.name, r.status, r.err)
			}
		}
	}
}

// TestSharedChaos kills nodes while files change and clients ask.
func TestSharedChaos(t *testing.T) {
	for _, files := range []bool{false, true} {
		t.Run(fmt.Sprint("files ", files), func(t *testing.T) {
			t.Parallel()
			e := newEngine()
			defer e.Close()
			count := int(length(200, 200_000))
			f := start(t, setup{nodes: 3, files: files, site: fmt.Sprintf("shard_urls %d\n"+announcing, count/5, e.URL)}, count)
			f.balance()
			askers := []*asker{f.balancer.ask(2, polled)}
			for _, n := range f.nodes {
				askers = append(askers, n.ask(1, polled))
			}
			changes := map[string]int{"http://" + f.host + firstPage: 1}
			var path string
			var when time.Time
			f.chaos(length(8*time.Second, 5*time.Minute), func(i int) {
				n := i * 7 % count
				path, when = fmt.Sprintf("/%02d/%04d.html", n%40, n), time.Now()
				if i%5 == 0 {
					path = fmt.Sprintf("/new/%04d.html", i) // some begin a shard
				}
				f.put(path, fmt.Sprint("change ", i), when)
				changes["http://"+f.host+path]++
			})
			f.settle(path, when)
			for _, a := range askers {
				a.quiet()
			}
			f.eventually(10*time.Minute, func() bool { return e.count() > 0 }) // five after a sender was killed
			e.Close()
			if again := e.again(changes); len(again) > 0 || e.repeated > f.kills || len(e.told) == 0 {
				t.Errorf("of %d pages, announced again: %q, and %d batches", len(e.told), again, e.repeated)
			}
			t.Logf("%d kills, %d pages announced", f.kills, len(e.told))
		})
	}
}

// TestSharedStorageStops has a storage that does not respond, is gone, and comes back, with and without what it had.
func TestSharedStorageStops(t *testing.T) {
	for name, test := range map[string]struct {
		lasts  time.Duration
		isDown bool
		begin  func(f *fleet)
		end    func(f *fleet, at time.Time) // at is when a page was changed meanwhile
	}{
		"hangs": {
			lasts:  length(11*time.Second, 2*time.Minute), // longer than a call may take
			isDown: true,
			begin:  func(f *fleet) { f.redis.Pause() },
			end:    func(f *fleet, _ time.Time) { f.redis.Resume() },
		},
		"is gone while a node starts": {
			lasts:  length(0, 2*time.Minute),
			isDown: true,
			begin: func(f *fleet) {
				f.redis.Kill()
				f.nodes[0].kill()
				f.nodes[0].start()
				f.nodes[0].first()
			},
			end: func(f *fleet, _ time.Time) { f.redis.Start() },
		},
		"has lost all": {
			begin: func(f *fleet) { f.redis.Lose() },
			end: func(f *fleet, at time.Time) {
				// All is stored again.
				f.eventually(settling, func() bool { return f.nodes[1].lists(firstPage, harness.Stamp(at)) })
				f.nodes[0].forget()
				f.nodes[0].start()
				f.nodes[0].first()
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			f := start(t, setup{nodes: 3, site: "shard_urls 20"}, 100)
			f.balance()
			a := f.balancer.ask(1, polled)
			asked := f.nodes[2]
			if f.leader() == 2 { // which knows its own shards
				asked = f.nodes[1]
			}
			began := time.Now()
			test.begin(f)
			at := time.Now()
			f.put(firstPage, name, at)
			if test.isDown {
				// It may have a shard that this node does not know.
				r := asked.get(unknownShard)
				if r.status != http.StatusServiceUnavailable {
					t.Errorf("%s says %d for an unknown shard", asked.name, r.status)
				}
			}
			time.Sleep(time.Until(began.Add(test.lasts)))
			test.end(f, at)
			f.eventually(settling, func() bool { return asked.get(unknownShard).status == http.StatusNotFound })
			f.settle(firstPage, at)
			a.quiet()
		})
	}
}

// TestSharedNewNode starts a node without copies while the storage does not respond: it serves no fragment, and all once the
// storage is back. Only with a short patience it begins alone.
func TestSharedNewNode(t *testing.T) {
	t.Parallel() // most of it is waiting
	const count = 400
	for name, test := range map[string]struct {
		files    bool
		patience time.Duration // 0: the default
	}{
		"a call hangs":    {files: true},
		"Redis is halted": {},
		"patience":        {patience: 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup{nodes: 2, files: test.files}
			if test.patience > 0 {
				s.sites = "fleet_patience " + test.patience.String()
			}
			f := prepare(t, s)
			f.files.Put("root/robots.txt", "User-agent: *\nDisallow: /private\n", harness.DayOf(1))
			f.begin(count)
			n := f.nodes[1]
			n.forget()
			harness.Must(t, os.Remove(filepath.Join(f.dir, n.name+".log")))
			halt, goOn := func() { f.redis.Pause() }, func() { f.redis.Resume() }
			if test.files {
				halt = func() { harness.Must(t, storages.SetFaults(f.control, storages.Fault{Hang: true})) }
				goOn = func() { harness.Must(t, storages.SetFaults(f.control)) }
			}
			halt()
			t.Cleanup(goOn)
			n.start()
			f.eventually(patience, func() bool { return n.get("/robots.txt").status == http.StatusOK })
			if test.patience > 0 {
				n.first()
				f.eventually(patience, func() bool { return strings.Contains(f.logged("as if it were alone"), n.name) })
			} else {
				n.waits(length(12*time.Second, 2*time.Minute)) // longer than a call may take
			}
			goOn()
			begun := time.Now()
			f.eventually(polled, func() bool {
				r := n.get("/sitemap.xml")
				listed := strings.Count(r.body, "<loc>")
				if test.patience == 0 && r.status == http.StatusOK && listed != count+1 {
					t.Fatalf("a fragment of %d pages", listed)
				}
				return listed == count+1
			})
			t.Logf("it serves what the others do %s after the storage is back", time.Since(begun))
			f.agree(settling)
		})
	}
}

// waits checks that a node serves no sitemap for so long, says so, and requests no page.
func (n *node) waits(d time.Duration) {
	n.t.Helper()
	for until := time.Now().Add(d); time.Now().Before(until); time.Sleep(breath) {
		r := n.get("/sitemap.xml")
		if r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "" {
			n.t.Fatalf("%d %q %v %.200s", r.status, r.header, r.err, r.body)
		}
	}
	log, err := os.ReadFile(filepath.Join(n.dir, n.name+".log"))
	harness.Must(n.t, err)
	if bytes.Contains(log, []byte("sitemap refreshed")) || bytes.Count(log, []byte("no sitemap is served until that works")) != 1 {
		n.t.Errorf("%s", log)
	}
}

// TestSharedLoad counts what an unchanged site costs the storage: a small read a poll and node, and a write of the one that leads.
func TestSharedLoad(t *testing.T) {
	t.Parallel() // most of it is waiting
	f := start(t, setup{nodes: 3, site: "shard_urls 20"}, 100)
	const polls = 10
	most := map[string]int{"load": 3*polls*5/4 + polls/4 + 3, "store": polls*5/4 + 1, "list": 4}
	f.eventually(patience, func() bool { // on a busy machine, nodes may take over from each other for a while
		before := len(f.calls())
		time.Sleep(polls * poll)
		counts := make(map[string]int)
		isMore := false
		for _, c := range f.calls()[before:] {
			counts[c.Op]++
			isCurrent := strings.HasSuffix(c.Key, "/current")
			if counts[c.Op] > most[c.Op] || isCurrent && c.Size > maxCurrent {
				isMore = true
			}
		}
		t.Logf("calls in %d polls: %v", polls, counts)
		return !isMore
	})
}

// leader returns the node that leads, by what it says itself; -1: none does.
func (f *fleet) leader() int {
	return slices.IndexFunc(f.nodes, func(n *node) bool { return n.status().Leads })
}

// TestSharedTakeOver kills the node that leads an unchanged site: the one that takes over requests no page again, so that it has
// no records to store.
func TestSharedTakeOver(t *testing.T) {
	t.Parallel() // most of it is waiting
	f := start(t, setup{nodes: 3}, 100)
	f.eventually(patience, func() bool { return f.leader() >= 0 })
	killed := f.leader()
	before := len(f.calls())
	begun := time.Now()
	f.nodes[killed].kill()
	f.nodes = slices.Delete(f.nodes, killed, killed+1)
	f.eventually(patience, func() bool { return f.leader() >= 0 })
	t.Logf("another node leads after %s", time.Since(begun))
	time.Sleep(3 * interval)
	for _, c := range f.calls()[before:] {
		if c.Op == "store" && strings.Contains(c.Key, "/objects/") && c.Size > maxCurrent {
			t.Errorf("it stores %+v", c)
		}
	}
}

// TestSharedBadInput has storages, nodes and keys with faults: clients notice nothing, and nodes agree afterwards.
func TestSharedBadInput(t *testing.T) {
	damage := func(f *fleet, change func(path string) error) {
		n := f.nodes[2]
		n.kill()
		harness.Must(f.t, filepath.WalkDir(filepath.Join(f.dir, n.name), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			return change(path)
		}))
		n.start()
		n.first()
	}
	cases := []struct {
		name   string
		faults []storages.Fault
		during func(f *fleet)
	}{
		{name: "limit of values", faults: []storages.Fault{{Op: "store", Key: "/current", Max: maxCurrent}, {Op: "store", Max: maxValue}}},
		{name: "half of calls fail", faults: []storages.Fault{{Fail: 0.5}}},
		{name: "lost responses", faults: []storages.Fault{{Lost: 0.5}}},
		{name: "stale lists", faults: []storages.Fault{{Op: "list", Stale: true}}},
		{name: "stale loads", faults: []storages.Fault{{Op: "load", Stale: true}}},
		{name: "slow", faults: []storages.Fault{{Delay: 300 * time.Millisecond}}},
		{name: "hangs", faults: []storages.Fault{{Hang: true}}},
		{name: "damaged cache", during: func(f *fleet) {
			damage(f, func(path string) error { return os.WriteFile(path, []byte("damage"), 0o600) })
		}},
		{name: "cut cache", during: func(f *fleet) { damage(f, func(path string) error { return os.Truncate(path, 10) }) }},
		{name: "keys of others", during: func(f *fleet) {
			storage, ctx := &certmagic.FileStorage{Path: filepath.Join(f.dir, "storage")}, context.Background()
			var keys []string
			f.eventually(patience, func() bool { // a temporary file may be gone when the walk gets to it
				var err error
				keys, err = storage.List(ctx, "sitemap", true)
				return err == nil
			})
			for _, key := range keys {
				if info, err := storage.Stat(ctx, key); err != nil || !info.IsTerminal { // deleted meanwhile, or a folder
					continue
				}
				if strings.HasSuffix(key, "/current") {
					harness.Must(f.t, storage.Store(ctx, key, bytes.Repeat([]byte("[1"), 1<<20)))
				}
				harness.Must(f.t, storage.Store(ctx, key+"~", []byte("another's")))
			}
		}},
		{name: "no cache", during: func(f *fleet) { // which stays so
			f.nodes[2].forget()
			harness.Must(f.t, os.WriteFile(filepath.Join(f.dir, f.nodes[2].name), nil, 0o600)) // no folder can be made there
			f.nodes[2].start()
			f.nodes[2].first()
		}},
	}
	// To start a fleet takes longer than most cases do: a few fleets have several, one after the other.
	const fleets = 3
	for first := range fleets {
		t.Run(fmt.Sprint("fleet ", first+1), func(t *testing.T) {
			t.Parallel()
			f := start(t, setup{nodes: 3, files: true, site: "shard_urls 20"}, 100)
			f.balance()
			for i := first; i < len(cases); i += fleets {
				test := cases[i]
				t.Log(test.name)
				a := f.balancer.ask(1, polled)
				harness.Must(t, storages.SetFaults(f.control, test.faults...))
				if test.during != nil {
					test.during(f)
				}
				at := time.Now()
				f.put(firstPage, test.name, at)
				time.Sleep(3 * interval)
				harness.Must(t, storages.SetFaults(f.control))
				f.settle(firstPage, at)
				a.quiet()
			}
		})
	}
}
