package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// partKey is the key of the first part of an object.
func partKey(content string) string { return objectKey(store.Hash([]byte(content))) + ".0" }

// stored returns the keys that the storage has.
func (f *fake) stored() (keys []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key := range f.keys {
		if f.at(key, time.Now()) != nil {
			keys = append(keys, key)
		}
	}
	return keys
}

// has reports whether an object is stored.
func (f *fake) has(content string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at(partKey(content), time.Now()) != nil
}

// pass lets time pass while a node refreshes its site each minute, which does not change.
func pass(t *testing.T, n *Node, long time.Duration) {
	t.Helper()
	for end := time.Now().Add(long); time.Now().Before(end); {
		time.Sleep(time.Minute)
		_ = n.Poll(t.Context())
		n.Collect(t.Context())
		err := n.Touch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
	}
}

// folderList is a storage that lists only the folder, as some do.
type folderList struct{ Shared }

func (folderList) List(_ context.Context, folder string, _ bool) ([]string, error) {
	return []string{folder}, nil
}

// listsFolders has the storage of a node list only the folders.
func listsFolders(n *Node) {
	storage := n.Storage
	n.Storage = func() Shared { return folderList{storage()} }
}

// TestCollect: what was not named for an hour is deleted, however large it is, also where the storage lists nothing. What
// others wrote is not.
func TestCollect(t *testing.T) {
	for name, lists := range map[string]bool{"lists": true, "lists only the folder": false} {
		bubble(t, name, func(t *testing.T, f *fake) {
			hash := store.Hash(nil)
			others := []string{"site/objects/x", "site/objects/" + hash, "site/objects/" + hash + ".x", "site/objects/0" + hash + ".0", "site/visits/" + hash + ".0", "sites/objects/" + hash + ".0"}
			for _, key := range others {
				f.change(key, []byte("x"))
			}
			n := node(f, nil)
			if !lists {
				listsFolders(n)
			}
			large := strings.Repeat("l", 3*partSize)
			again(t, n, "kept", "dropped", large)
			pass(t, n, 10*time.Minute)
			again(t, n, "kept")
			pass(t, n, time.Hour)
			if !f.has("dropped") || !f.has(large) {
				t.Error("what was named within the hour is deleted")
			}
			pass(t, n, 15*time.Minute)
			// current, the ledger, the manifest, and an object.
			if got := f.stored(); len(got) != len(others)+4 || !f.has("kept") {
				t.Errorf("stored: %q", got)
			}
			before := len(f.keys["site/ledger"])
			pass(t, n, time.Hour)
			if got := len(f.keys["site/ledger"]); got > max(before, 1) {
				t.Errorf("the ledger of a site at rest was written %d times", got)
			}
		})
	}
}

// TestCollectShortLives: processes that live for three minutes collect garbage together, whoever has the role. So do
// two that refresh the site in turn.
func TestCollectShortLives(t *testing.T) {
	if testing.Short() {
		t.Skip("hours of polls")
	}
	minutes := 3 * 60 // much longer than anything is kept
	if isLong {
		minutes *= 2
	}
	for name, test := range map[string]struct {
		lives int // minutes
		nodes int
	}{"three minutes": {3, 1}, "two minutes": {2, 1}, "two nodes": {1 << 20, 2}, "two nodes that are killed": {5, 2}} {
		bubble(t, name, func(t *testing.T, f *fake) {
			nodes := make([]*Node, test.nodes)
			for minute := range minutes {
				i := minute % test.nodes
				n := nodes[i]
				if n == nil || minute%test.lives == 0 {
					n = node(f, nil)
					listsFolders(n)
					nodes[i] = n
					follow(t, n)
				}
				again(t, n, "kept", fmt.Sprint(minute))
				for range 4 {
					time.Sleep(15 * time.Second)
					for _, n := range nodes {
						if n != nil {
							_ = n.Poll(t.Context())
							n.Collect(t.Context())
						}
					}
				}
				// A process observes nothing before it has read current: of two minutes, one.
				most := 2*2*70 + 6
				if got := len(f.stored()); got > most {
					t.Fatalf("after %d minutes, %d values are stored, want at most %d", minute, got, most)
				}
			}
			// Two objects a minute, which two nodes may delete twice.
			if got := f.calls["delete objects"]; got > 2*2*minutes {
				t.Errorf("%d deletions", got)
			}
		})
	}
}

// TestCollectKilled: a process that is killed in the midst of a commit leaves nothing that the next one does not know.
func TestCollectKilled(t *testing.T) {
	for calls := range 12 {
		bubble(t, fmt.Sprint(calls), func(t *testing.T, f *fake) {
			n := node(f, nil)
			listsFolders(n)
			again(t, n, "1")
			killed := node(f, nil)
			c := &mortal{Shared: n.Storage(), left: calls}
			killed.Storage = func() Shared { return c }
			_, _ = killed.Load(t.Context(), manifestKey)
			killed.Adopt(t.Context(), false)
			_ = commit(killed, "2", "3")
			_ = n.Poll(t.Context())
			follow(t, n)
			again(t, n, "4")
			pass(t, n, 80*time.Minute)
			if got := f.stored(); len(got) != 4 {
				t.Errorf("stored: %q", got)
			}
		})
	}
}

// mortal is a storage whose client dies after some calls.
type mortal struct {
	Shared
	left int
}

func (m *mortal) dies() bool {
	m.left--
	return m.left < 0
}

func (m *mortal) Store(ctx context.Context, key string, value []byte) error {
	if m.dies() {
		return errDead
	}
	return m.Shared.Store(ctx, key, value)
}

func (m *mortal) Load(ctx context.Context, key string) ([]byte, error) {
	if m.dies() {
		return nil, errDead
	}
	return m.Shared.Load(ctx, key)
}

// TestCollectNeeded: what another node, which did not wait for the lock, needs again while it is about to be deleted is not
// deleted, whichever ledger is overwritten.
func TestCollectNeeded(t *testing.T) {
	for name, isOverwritten := range map[string]bool{"": false, "overwritten": true} {
		bubble(t, name, func(t *testing.T, f *fake) {
			a, b := node(f, nil), node(f, nil)
			again(t, a, "kept", "once")
			again(t, a, "kept")
			for range 2 * 60 {
				if strings.Contains(string(f.at("site/ledger", time.Now())), `"state":1`) {
					break
				}
				time.Sleep(time.Minute)
				_ = a.Touch(t.Context())
			}
			condemns := f.at("site/ledger", time.Now())
			follow(t, b)
			err := commit(b, "kept", "once")
			if !errors.Is(err, errUnderDeletion) || !f.has("once") {
				t.Errorf("got %v; stored: %t", err, f.has("once"))
			}
			if isOverwritten { // by one that has read it before
				f.change("site/ledger", condemns)
			}
			waited := 0
			for ; err != nil && waited < 10; waited++ {
				time.Sleep(time.Minute)
				_ = a.Poll(t.Context())
				a.Collect(t.Context())
				_ = b.Poll(t.Context())
				follow(t, b)
				err = commit(b, "kept", "once")
			}
			if err != nil || !f.has("once") || waited < 2 {
				t.Errorf("after %d minutes: %v; stored: %t", waited, err, f.has("once"))
			}
			pass(t, b, 3*time.Hour)
			if !f.has("once") {
				t.Error("it is deleted")
			}
		})
	}
}

// TestCollectNeededByAll: however many nodes try again to commit what may be under deletion, one succeeds soon.
func TestCollectNeededByAll(t *testing.T) {
	bubble(t, "", func(t *testing.T, f *fake) {
		nodes := []*Node{node(f, nil), node(f, nil), node(f, nil)}
		again(t, nodes[0], "kept", "once")
		again(t, nodes[0], "kept")
		for range keepFor/time.Minute + 1 {
			time.Sleep(time.Minute)
			_ = nodes[0].Touch(t.Context())
		}
		for _, n := range nodes[1:] {
			follow(t, n)
		}
		begun := time.Now()
		err := errUnderDeletion
		for i := 0; errors.Is(err, errUnderDeletion) && time.Since(begun) < time.Hour; i++ {
			n := nodes[i%len(nodes)]
			err = commit(n, "kept", "once")
			time.Sleep(2 * time.Second)
		}
		if long := time.Since(begun); err != nil || long < graceFor || long > graceFor+2*time.Minute {
			t.Errorf("got %v after %s", err, long)
		}
	})
}

// TestCollectOverwritten: what a ledger had that another node has overwritten, or that the storage has lost, is deleted as
// well.
func TestCollectOverwritten(t *testing.T) {
	for name, test := range map[string]struct{ isLost bool }{"overwritten": {false}, "lost": {true}} {
		bubble(t, name, func(t *testing.T, f *fake) {
			n := node(f, nil)
			listsFolders(n)
			again(t, n, "kept", "1")
			_ = n.Touch(t.Context()) // it is all named: nothing is left in the ledger
			l, _ := decodeLedger(f.at("site/ledger", time.Now()), "site")
			l.Node = store.Hash([]byte("another node"))
			l.Generation = 3
			overwrites := l.encode() // by one that has read it before
			again(t, n, "kept", "2")
			if test.isLost {
				overwrites = nil
				pass(t, n, 2*time.Minute)
				again(t, n, "kept", "3")
			}
			f.change("site/ledger", overwrites)
			pass(t, n, 2*time.Minute)
			again(t, n, "kept")
			pass(t, n, 80*time.Minute)
			if got := f.stored(); len(got) != 4 {
				t.Errorf("stored: %q", got)
			}
		})
	}
}

// noDelete is a storage of which nothing, or not everything, can be deleted.
type noDelete struct {
	Shared
	part  string // of keys that cannot be
	calls *int
}

func (s noDelete) Delete(ctx context.Context, key string) error {
	*s.calls++
	if strings.Contains(key, s.part) {
		return errFault
	}
	return s.Shared.Delete(ctx, key)
}

// strictDelete is a storage that does not delete what is missing, and says so in its own words.
type strictDelete struct{ Shared }

func (s strictDelete) Delete(ctx context.Context, key string) error {
	if _, err := s.Load(ctx, key); err != nil {
		return errors.New("404 Not Found")
	}
	return s.Shared.Delete(ctx, key)
}

// TestCollectStrict: garbage is collected where deleting what is missing fails: what another node has deleted, or what no
// ledger knows, which listing the storage finds.
func TestCollectStrict(t *testing.T) {
	for name, garbage := range map[string]string{"that a ledger has": "", "of versions before ledgers": partKey("stray")} {
		bubble(t, name, func(t *testing.T, f *fake) {
			n := node(f, nil)
			storage := n.Storage
			n.Storage = func() Shared { return strictDelete{storage()} }
			if garbage != "" {
				f.change(garbage, []byte("stray"))
			}
			again(t, n, "kept", "a", "b", "c", "d", "e")
			pass(t, n, 10*time.Minute)
			again(t, n, "kept")
			// Three errors would end each attempt.
			for _, lost := range []string{"a", "b", "c"} {
				f.change(partKey(lost), nil)
			}
			pass(t, n, 3*time.Hour)
			if got := f.stored(); len(got) != 4 {
				t.Errorf("stored: %q", got)
			}
		})
	}
}

// TestCollectFails: collecting ends after a few errors, and goes on later. One object that cannot be deleted does not keep
// the others.
func TestCollectFails(t *testing.T) {
	bubble(t, "", func(t *testing.T, f *fake) {
		n, calls := node(f, nil), 0
		storage := n.Storage
		for i := range 20 {
			again(t, n, "kept", fmt.Sprint(i))
		}
		part := folder
		n.Storage = func() Shared { return noDelete{storage(), part, &calls} }
		pass(t, n, 80*time.Minute)
		calls = 0
		n.Collect(t.Context())
		if calls != maxFailures || !f.has("0") {
			t.Errorf("%d calls", calls)
		}
		part = store.Hash([]byte("1"))
		pass(t, n, 20*time.Minute)
		if f.has("0") || f.has("2") || !f.has("1") {
			t.Error("not deleted")
		}
		n.Storage = storage
		pass(t, n, 5*time.Minute)
		if got := f.stored(); len(got) != 5 {
			t.Errorf("stored: %q", got)
		}
	})
}

// TestCollectMany: what versions before have left is listed once, and deleted by and by.
func TestCollectMany(t *testing.T) {
	bubble(t, "", func(t *testing.T, f *fake) {
		for i := range 3*maxDeletions - 1 {
			f.change(partKey(fmt.Sprint("old ", i)), []byte("x"))
		}
		f.change("site/garbage", []byte("{}"))
		n := node(f, nil)
		again(t, n, "kept")
		most := 0
		for range 80 {
			before := f.calls["delete objects"]
			time.Sleep(time.Minute)
			n.Collect(t.Context())
			err := n.Touch(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			most = max(most, f.calls["delete objects"]-before)
		}
		if got := f.stored(); len(got) != 4 || most != maxDeletions || f.calls["list objects"] != 1 {
			t.Errorf("stored: %q; %d deletions at a time; listed %d times", got, most, f.calls["list objects"])
		}
	})
}

// earlier is a version that does not know of ledgers.
func earlier(t *testing.T, f *fake, n *Node, contents ...string) {
	t.Helper()
	ledger := f.at("site/ledger", time.Now())
	follow(t, n)
	again(t, n, contents...)
	f.change("site/ledger", ledger)
	f.mu.Lock()
	defer f.mu.Unlock()
	c := decodeCurrent(f.at("site/current", time.Now()))
	c.Ledger = 0
	f.change("site/current", encodeCurrent(c))
}

// TestCollectMixed: while a version that does not know of ledgers commits, too, nothing is deleted that a generation of the
// last hour names.
func TestCollectMixed(t *testing.T) {
	bubble(t, "", func(t *testing.T, f *fake) {
		n, old := node(f, nil), node(f, nil)
		again(t, n, "kept", "once")
		again(t, n, "kept")
		pass(t, n, 50*time.Minute)
		earlier(t, f, old, "kept", "once")
		earlier(t, f, old, "kept", "others")
		_ = n.Poll(t.Context())
		follow(t, n)
		pass(t, n, 55*time.Minute)
		if !f.has("once") {
			t.Error("it was named an hour ago")
		}
		pass(t, n, 20*time.Minute)
		if f.has("once") {
			t.Error("not deleted")
		}
	})
}

// lossy is a storage that loses some objects, and returns other keys' values.
type lossy struct {
	*client
	lose, mix float64
}

func (l *lossy) Store(ctx context.Context, key string, value []byte) error {
	if strings.Contains(key, folder) && rand.Float64() < l.lose {
		l.mu.Lock()
		l.lost = true
		l.mu.Unlock()
		return nil
	}
	return l.client.Store(ctx, key, value)
}

func (l *lossy) Load(ctx context.Context, key string) ([]byte, error) {
	if rand.Float64() < l.mix {
		keys := l.stored()
		if len(keys) > 0 {
			key = keys[rand.IntN(len(keys))]
		}
	}
	data, err := l.client.Load(ctx, key)
	if rand.Float64() < l.lose {
		return nil, fs.ErrNotExist
	}
	return data, err
}

// TestCollectModel: with random commits, kills, two writers and a storage that is slow, lies, loses values or returns other
// keys' values, nothing is deleted that a generation of the last hour names (which the storage checks), and garbage is
// bounded.
func TestCollectModel(t *testing.T) {
	if testing.Short() {
		t.Skip("hours of polls")
	}
	hours := 5
	if isLong {
		hours = 8
	}
	for name, test := range map[string]struct {
		faults    faults
		lose, mix float64
	}{
		"two writers":       {faults{locks: 1}, 0, 0},
		"slow":              {faults{slow: time.Second}, 0, 0}, // half a second on average
		"fails":             {faults{fail: .05}, 0, 0},
		"loses objects":     {faults{}, .001, 0},
		"other keys' value": {faults{}, 0, .001},
	} {
		bubble(t, name, func(t *testing.T, f *fake) {
			var nodes []*Node
			start := func() *Node {
				n := node(f, store.NewMemory())
				l := &lossy{&client{fake: f}, test.lose, test.mix}
				n.Storage = func() Shared { return l }
				_, _ = n.Load(t.Context(), manifestKey)
				n.Adopt(t.Context(), false)
				return n
			}
			for range 3 {
				nodes = append(nodes, start())
			}
			f.set(test.faults)
			var most int
			for minute := range hours * 60 {
				writers := 1
				if test.faults.locks > 0 {
					writers = 1 + rand.IntN(2)
				}
				for range writers {
					i := rand.IntN(len(nodes))
					if rand.IntN(10) == 0 {
						nodes[i] = start()
					}
					n := nodes[i]
					if n.Newer() {
						_, err := n.Load(t.Context(), manifestKey)
						if err == nil || errors.Is(err, fs.ErrNotExist) {
							n.Adopt(t.Context(), false)
						}
					}
					// A site returns to what it was.
					_ = commit(n, "kept", fmt.Sprint("a", rand.IntN(100)), fmt.Sprint("b", minute))
				}
				for range 4 {
					time.Sleep(15 * time.Second)
					for _, n := range nodes {
						_ = n.Poll(t.Context())
						n.Collect(t.Context())
					}
				}
				if minute > 3*60 { // what nothing names any more is deleted after an hour
					most = max(most, len(f.stored()))
				}
			}
			// Of a commit: a manifest and two objects.
			if bound := 3*2*100 + 10; most > bound {
				t.Errorf("%d values were stored at a time, want at most %d", most, bound)
			}
			t.Logf("%d values at most", most)
		})
	}
}
