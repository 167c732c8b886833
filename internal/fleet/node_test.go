package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

const manifestKey = "any/store/" + manifestName

// bubble runs a test in a bubble of fake time.
func bubble(t *testing.T, name string, test func(t *testing.T, f *fake)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, newFake(t)) })
	})
}

// node returns a node that does nothing by itself.
func node(f *fake, local store.Storage) *Node {
	c := &client{fake: f}
	return New(Options{Storage: func() Shared { return c }, Prefix: "site", Interval: time.Minute, Local: local, Now: time.Now})
}

// commit commits a generation that names objects with some contents.
func commit(n *Node, contents ...string) error {
	return commitKept(n, nil, contents...)
}

// commitKept is commit, of which the storage has some objects already.
func commitKept(n *Node, kept []string, contents ...string) error {
	n.Begin()
	n.Plan(time.Minute)
	for _, content := range contents {
		if err := n.Store(context.Background(), "any/store/"+store.Hash([]byte(content)), []byte(content)); err != nil {
			return err
		}
	}
	var names []string
	for _, content := range slices.Concat(kept, contents) {
		names = append(names, `{"object":{"name":"store/`+store.Hash([]byte(content))+`"}}`)
	}
	return n.Store(context.Background(), manifestKey, []byte(`{"documents":[`+strings.Join(names, ",")+`]}`))
}

// follow adopts the newest generation; none: it begins anew.
func follow(t *testing.T, n *Node) {
	t.Helper()
	if _, err := n.Load(t.Context(), manifestKey); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	n.Adopt(t.Context(), false)
}

// again commits, after it has adopted the newest generation, or begun anew, if need be.
func again(t *testing.T, n *Node, contents ...string) {
	t.Helper()
	err := commit(n, contents...)
	if errors.Is(err, ErrLost) {
		follow(t, n)
		err = commit(n, contents...)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// expect checks that a node has a generation.
func expect(t *testing.T, n *Node, generation uint64, isNewer bool) {
	t.Helper()
	if got := n.Status().Generation; got != generation || n.Newer() != isNewer {
		t.Errorf("%s has generation %d, newer: %t; want %d, %t", n.ID, got, n.Newer(), generation, isNewer)
	}
}

func TestObjects(t *testing.T) {
	for name, size := range map[string]int{"small": 1, "a part": partSize, "more": partSize + 1, "two parts": 2 * partSize, "large": 10*partSize - 1} {
		bubble(t, name, func(t *testing.T, f *fake) {
			data := bytes.Repeat([]byte{'a'}, size)
			data[0] = byte(size)
			writer, reader, key := node(f, nil), node(f, &spoiled{store.NewMemory(), nil}), "any/store/"+store.Hash(data)
			if err := commit(writer, string(data)); err != nil {
				t.Fatal(err)
			}
			follow(t, reader)
			if got, err := reader.Load(t.Context(), key); err != nil || !bytes.Equal(got, data) {
				t.Errorf("got %d bytes, %v", len(got), err)
			}
			// One that is lost, in whole or in part, may only not be visible yet, but not for long.
			f.lost = true
			last := fmt.Sprintf("%s.%d", objectKey(store.Hash(data)), (size-1)/partSize)
			for _, want := range []error{errEarly, fs.ErrNotExist} {
				for _, data := range [][]byte{nil, []byte("others wrote this")} {
					f.keys[last] = append(f.keys[last], value{at: time.Now(), data: data})
					if _, err := reader.Load(t.Context(), key); !errors.Is(err, want) {
						t.Errorf("lost: got %v, want %v", err, want)
					}
				}
				time.Sleep(2 * settleFor)
				_ = writer.Touch(t.Context())
				_ = reader.Poll(t.Context())
			}
			if err := commit(writer, "other"); err != nil {
				t.Fatal(err)
			}
			if _, err := reader.Load(t.Context(), key); !errors.Is(err, errEarly) {
				t.Errorf("of an earlier generation: %v", err)
			}
		})
	}
}

// noFolder is a storage that has lost the folder for its files.
type noFolder struct{ Shared }

func (noFolder) Store(context.Context, string, []byte) error { return fs.ErrNotExist }

// TestNoFolder: that a file does not exist is an error of a store, as it is none of a load.
func TestNoFolder(t *testing.T) {
	bubble(t, "", func(t *testing.T, f *fake) {
		n := node(f, nil)
		storage := n.Storage
		n.Storage = func() Shared { return noFolder{storage()} }
		if err := commit(n, "1"); err == nil || n.Status().Errors != 1 || n.Status().Generation != 0 {
			t.Errorf("got %v, %+v", err, n.Status())
		}
	})
}

// noSocket is a storage whose server was stopped, and has removed its socket.
type noSocket struct{ Shared }

func (noSocket) Load(context.Context, string) ([]byte, error) {
	return nil, &net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", syscall.ENOENT)}
}

// TestNoSocket: that a socket does not exist does not mean that the storage is empty.
func TestNoSocket(t *testing.T) {
	bubble(t, "", func(t *testing.T, f *fake) {
		n := node(f, nil)
		if err := commit(n, "1"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * settleFor)
		storage := n.Storage
		n.Storage = func() Shared { return noSocket{storage()} }
		if err := n.Poll(t.Context()); err == nil || n.Status().Error == "" {
			t.Errorf("polled: %v, %+v", err, n.Status())
		}
		if err := n.Touch(t.Context()); err == nil || errors.Is(err, ErrLost) {
			t.Errorf("committed: %v", err)
		}
		expect(t, n, 1, false)
	})
}

// lateCurrent is a storage whose client is stopped while it stores current.
type lateCurrent struct {
	Shared
	stop func()
}

func (l lateCurrent) Store(ctx context.Context, key string, value []byte) error {
	err := l.Shared.Store(ctx, key, value)
	if strings.HasSuffix(key, currentKey) {
		l.stop()
	}
	return err
}

// TestLate: what was committed while its context ended is loaded like what another node has committed.
func TestLate(t *testing.T) {
	bubble(t, "", func(t *testing.T, f *fake) {
		n := node(f, nil)
		storage := n.Storage
		ctx, cancel := context.WithCancel(t.Context())
		n.Storage = func() Shared { return lateCurrent{storage(), cancel} }
		n.Begin()
		err := n.Store(ctx, manifestKey, []byte("{}"))
		_ = n.Poll(t.Context())
		if err == nil || !n.Newer() {
			t.Errorf("%v, newer: %t", err, n.Newer())
		}
	})
}

// TestOrder: of two that commit after the same generation, all nodes load the greater one, whichever was written last.
func TestOrder(t *testing.T) {
	for name, isGreaterLast := range map[string]bool{"greater first": false, "greater last": true} {
		bubble(t, name, func(t *testing.T, f *fake) {
			a, b, c := node(f, nil), node(f, nil), node(f, nil)
			if a.ID > b.ID {
				a, b = b, a
			}
			if err := commit(a, "1"); err != nil {
				t.Fatal(err)
			}
			follow(t, b)
			before := f.at("site/current", time.Now())
			first, last := b, a
			if isGreaterLast {
				first, last = a, b
			}
			if err := commit(first, "2 of the first"); err != nil {
				t.Fatal(err)
			}
			overwritten := f.at("site/current", time.Now())
			f.change("site/current", before) // as the other one has read it
			if err := commit(last, "2 of the last"); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				time.Sleep(time.Second)
				for _, n := range []*Node{a, b, c} {
					_ = n.Poll(t.Context())
				}
			}
			for _, n := range []*Node{a, b, c} {
				if n.Newer() {
					follow(t, n)
				}
				if got := n.Status(); got.Generation != 2 || got.Writer != b.ID {
					t.Errorf("got generation %d of %s", got.Generation, got.Writer)
				}
			}
			// What is older is not loaded, and the next commit is newer than all.
			time.Sleep(2 * settleFor)
			f.change("site/current", before)
			f.change("site/current", overwritten)
			for _, n := range []*Node{b, c} {
				_ = n.Poll(t.Context())
				expect(t, n, 2, false)
			}
			if !bytes.Equal(f.at("site/current", time.Now()), overwritten) {
				t.Error("current is stored, but perhaps not what it names")
			}
			again(t, c, "3")
			newest := f.at("site/current", time.Now())
			f.change("site/current", before) // a stale read
			if err := c.Touch(t.Context()); !errors.Is(err, errEarly) || c.Newer() {
				t.Errorf("what was just committed is taken for lost: %v", err)
			}
			f.change("site/current", newest)
			if err := commit(a, "late"); !errors.Is(err, ErrLost) {
				t.Errorf("after a newer one: %v", err)
			}
			expect(t, a, 3, true)
		})
	}
}

// TestMalformed: what others wrote as current does no harm.
func TestMalformed(t *testing.T) {
	for name, data := range map[string]string{
		"nothing": "", "no JSON": "{", "large": `{"version":1` + strings.Repeat(" ", maxCurrent) + "}", "newer": `{"version":2}`, "null": "null",
		"no node":     `{"version":1,"generation":9,"manifest":"00000000000000000000000000000000","interval":1}`,
		"another key": `{"version":1,"generation":9,"node":"00000000000000000000000000000000","manifest":"../../0000000000000000000000000000","interval":1}`,
	} {
		bubble(t, name, func(t *testing.T, f *fake) {
			a, b := node(f, nil), node(f, nil)
			if err := commit(a, "1"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * settleFor)
			f.change("site/current", []byte(data))
			if err := a.Poll(t.Context()); err != nil {
				t.Error(err)
			}
			follow(t, b)
			expect(t, b, 0, false)
			for _, n := range []*Node{a, b} {
				release, err := n.Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				again(t, n, "2")
				release()
				time.Sleep(2 * time.Minute)
			}
			_ = a.Poll(t.Context())
			expect(t, a, 3, false)
		})
	}
}

// TestClocks: due times are each node's own. Dates do not go back, unless a clock is far ahead.
func TestClocks(t *testing.T) {
	for ahead, want := range map[time.Duration]time.Duration{0: time.Minute, -time.Hour: time.Minute, time.Hour: time.Hour + time.Second, 48 * time.Hour: time.Minute} {
		bubble(t, ahead.String(), func(t *testing.T, f *fake) {
			a, b, begun := node(f, nil), node(f, nil), time.Now()
			a.Now = func() time.Time { return time.Now().Add(ahead) }
			a.seenAt = a.Now()
			_ = b.Poll(t.Context())
			for _, n := range []*Node{a, b} {
				if n.Due(false).After(n.Now()) {
					t.Error("a new site is not due")
				}
			}
			if err := commit(a, "1"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			_ = a.Poll(t.Context())
			_ = b.Poll(t.Context())
			if got := a.Due(false).Sub(a.Now()); got != time.Minute-time.Second {
				t.Errorf("who refreshed last is due in %v", got)
			}
			if got := b.Due(false).Sub(b.Now()); got != time.Minute+maxPoll {
				t.Errorf("another node is due in %v", got)
			}
			time.Sleep(time.Minute - time.Second)
			if got := b.Begin().Sub(begun); got != want {
				t.Errorf("dates begin after %v, want %v", got, want)
			}
			if got := b.Status().Ahead; ahead > 0 && (got > ahead.Seconds() || got < (ahead-time.Minute).Seconds()) {
				t.Errorf("the other clock is %v s ahead", got)
			}
		})
	}
}

// TestSettled: what was committed is settled once all have had the time to read it, and no other node has committed.
func TestSettled(t *testing.T) {
	bubble(t, "", func(t *testing.T, f *fake) {
		a, b := node(f, nil), node(f, nil)
		if err := commit(a, "1"); err != nil {
			t.Fatal(err)
		}
		committed := time.Now()
		for range 5 {
			if since := time.Since(committed); a.Settled() != (since > 2*maxPoll*6/5) {
				t.Errorf("after %v: %t", since, a.Settled())
			}
			a.Wait(t.Context())
			_ = a.Poll(t.Context())
			_ = a.Touch(t.Context())
		}
		follow(t, b)
		if err := commit(b, "2"); err != nil || b.Settled() {
			t.Errorf("%v, settled at once: %t", err, b.Settled())
		}
		if _ = a.Poll(t.Context()); a.Settled() {
			t.Error("another node has committed")
		}
	})
}

// TestLock: one node at a time has the lock, for as long as it needs. Who has waited for too long, or sees that the site
// was refreshed, does not get it.
func TestLock(t *testing.T) {
	bubble(t, "", func(t *testing.T, f *fake) {
		a, b := node(f, nil), node(f, nil)
		acquire := func(n *Node, after time.Duration, want error) func() {
			t.Helper()
			begun := time.Now()
			release, err := n.Acquire(t.Context())
			if !errors.Is(err, want) || (err == nil) != (want == nil) || time.Since(begun) != after {
				t.Errorf("got %v after %v, want %v after %v", err, time.Since(begun), want, after)
			}
			if err != nil {
				release = func() {}
			}
			return release
		}
		release := acquire(a, 0, nil)
		acquire(b, LockPatience, ErrBusy)
		acquire(a, LockPatience, ErrBusy) // in the same process
		time.AfterFunc(9*time.Second, func() {
			_ = commit(a, "1")
			_ = b.Poll(t.Context())
		})
		acquire(b, 9*time.Second, ErrBusy)
		time.AfterFunc(9*time.Second+time.Millisecond, func() {
			release()
			release()
		})
		acquire(b, 10*time.Second, nil)()

		f.set(faults{hang: 1}) // a lock that is granted after a minute
		acquire(b, LockPatience, ErrBusy)
		f.set(faults{})
		time.Sleep(2 * time.Minute)
		last := acquire(a, 0, nil)
		f.set(faults{hang: 1})
		begun := time.Now()
		if last(); time.Since(begun) != patience {
			t.Errorf("released after %v", time.Since(begun))
		}
		f.set(faults{})
		time.Sleep(2 * time.Minute)
		_ = commit(a, "2")
		f.set(faults{fail: 1})
		acquire(a, 0, errFault)
		f.set(faults{})
		time.Sleep(2 * lockFor) // it may have been granted
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := a.Acquire(ctx); err != nil {
			t.Error(err)
		}
		time.AfterFunc(5*time.Second-time.Millisecond, cancel)
		acquire(b, 5*time.Second, nil)()
	})
}

// TestStuck: a lock is broken that nobody releases, but not while it may be needed.
func TestStuck(t *testing.T) {
	bubble(t, "", func(t *testing.T, f *fake) {
		a, b := node(f, nil), node(f, nil)
		if err := commit(a, "1"); err != nil {
			t.Fatal(err)
		}
		a.Begin()
		time.Sleep(10 * time.Minute)
		_ = a.Touch(t.Context())
		_ = b.Poll(t.Context())
		name := "sitemap_" + store.Hash([]byte("site"))
		f.locks[name] = time.Now().Add(24 * time.Hour)
		for b.Now().Before(b.Due(false).Add(StuckFor + 20*time.Minute - LockPatience)) {
			if _, err := b.Acquire(t.Context()); !errors.Is(err, ErrBusy) {
				t.Fatalf("%v after it was due: %v", b.Now().Sub(b.Due(false)), err)
			}
		}
		for _, faults := range []faults{{}, {fail: 1}} {
			f.set(faults)
			release, err := b.Acquire(t.Context())
			if err != nil && !errors.Is(err, errFault) { // of current
				t.Fatal(err)
			} else if err != nil {
				continue
			}
			f.mu.Lock() // the lock is being renewed
			until := f.locks[name]
			f.mu.Unlock()
			if time.Until(until) > lockFor {
				t.Error("the lock is as it was")
			}
			release()
		}
		time.Sleep(time.Minute) // calls under way
	})
}

// TestWake: who requests what is new gets it soon, but a second passes between two polls.
func TestWake(t *testing.T) {
	bubble(t, "", func(t *testing.T, f *fake) {
		n, begun := node(f, nil), time.Now()
		for i := range 3 {
			n.Wake()
			n.Wake()
			if !n.Wait(t.Context()) || time.Since(begun) != time.Duration(i+1)*time.Second {
				t.Errorf("waits for %v", time.Since(begun))
			}
		}
	})
}

// TestLoad: of an unchanged site, a node reads current once a poll. A change is loaded once.
func TestLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, time.Minute)
		for range 3 {
			w.start(store.NewMemory(), 0)
		}
		time.Sleep(10 * time.Minute)
		calls := func() map[string]int {
			w.storage.mu.Lock()
			defer w.storage.mu.Unlock()
			was := w.storage.calls
			w.storage.calls = make(map[string]int)
			return was
		}
		calls()
		time.Sleep(time.Hour)
		got := calls()
		// The node that refreshes reads it before, in and after a commit, too.
		if refreshes := got["store current"]; refreshes < 50 || refreshes > 61 || got["load current"] > 3*4*60*21/20+3*refreshes || got["load objects"]+got["store objects"] > 0 {
			t.Errorf("unchanged: %v", got)
		}
		w.mu.Lock()
		w.version = 1
		w.mu.Unlock()
		time.Sleep(2 * time.Minute)
		got = calls()
		// The manifest, the chunk, and the document.
		if got["store objects"] != 3 || got["load objects"] != 2*3 {
			t.Errorf("changed: %v", got)
		}
		w.agree(t, "changed")
		w.stop()
	})
}

// spoiled is a storage of local copies that are damaged, or cannot be written.
type spoiled struct {
	store.Storage
	err error
}

func (s *spoiled) Store(ctx context.Context, key string, value []byte) error {
	if s.err != nil {
		return s.err
	}
	return s.Storage.Store(ctx, key, append(bytes.Clone(value), 0))
}

// TestLocal: with local copies, a site is served while the storage is down, and what it loses is stored again. Without
// them, or with damaged ones, all is loaded.
func TestLocal(t *testing.T) {
	full := errors.New("no space left")
	for name, test := range map[string]struct {
		local store.Storage
		err   error
	}{"good": {store.NewMemory(), nil}, "damaged": {&spoiled{store.NewMemory(), nil}, nil}, "full": {&spoiled{store.NewMemory(), full}, full}} {
		bubble(t, name, func(t *testing.T, f *fake) {
			key, isGood := "any/store/"+store.Hash([]byte("a")), name == "good"
			n := node(f, test.local)
			if err := commit(n, "a", "b"); err != nil || commit(n, "a") != nil {
				t.Error(err)
			}
			if data, err := n.Load(t.Context(), key); err != nil || string(data) != "a" {
				t.Errorf("got %q, %v", data, err)
			}
			f.set(faults{fail: 1})
			again := node(f, test.local)
			_, err := again.Load(t.Context(), manifestKey)
			if again.Adopt(t.Context(), false); (err == nil) != isGood {
				t.Errorf("while the storage is down: %v", err)
			}
			if data, err := again.Load(t.Context(), key); (err == nil && string(data) == "a") != isGood {
				t.Errorf("while the storage is down: got %q, %v", data, err)
			}
			if isGood {
				keys, _ := test.local.List(t.Context(), folder, false)
				if len(keys) != 2 {
					t.Errorf("local copies: %q", keys)
				}
			}
			f.set(faults{})
			time.Sleep(2 * day)
			f.lost = true
			f.change(objectKey(store.Hash([]byte("a")))+".0", nil)
			err = n.Touch(t.Context())
			n.Collect(t.Context())
			if err != nil || f.at(objectKey(store.Hash([]byte("a")))+".0", time.Now()) != nil != isGood {
				t.Errorf("what is lost is stored again: %t, %v", !isGood, err)
			}
			f.lose()
			if _ = n.Poll(t.Context()); len(f.keys) > 0 {
				t.Error("current is stored alone")
			}
			time.Sleep(2 * settleFor)
			if err := n.Touch(t.Context()); !errors.Is(err, ErrLost) || !n.Newer() {
				t.Errorf("a commit after all is lost: %v", err)
			}
			follow(t, n)
			if err := commit(n, "a"); err != nil {
				t.Errorf("it does not begin anew: %v", err)
			}
			joined := node(f, nil)
			follow(t, joined)
			expect(t, joined, n.Status().Generation, false)
			if data, err := joined.Load(t.Context(), key); err != nil || string(data) != "a" {
				t.Errorf("after it has lost all: got %q, %v", data, err)
			}
		})
	}
}

// TestValue: a Node may keep one value of any size, which nodes change in turn.
func TestValue(t *testing.T) {
	bubble(t, "", func(t *testing.T, f *fake) {
		nodes := []*Node{node(f, nil), node(f, nil), node(f, nil)}
		for _, n := range nodes {
			n.Value = true
		}
		for i := range 10 {
			n, content := nodes[i%2], bytes.Repeat([]byte{'0' + byte(i)}, 1<<20)
			if i == 5 {
				_ = n.Poll(t.Context())
				f.lose()
				time.Sleep(2 * settleFor)
			}
			if err := n.Store(t.Context(), manifestKey, content); i > 0 && !errors.Is(err, ErrLost) {
				t.Errorf("%d: of one that does not know what there is: %v", i, err)
			}
			if _, err := n.Load(t.Context(), manifestKey); err != nil && i != 5 {
				t.Error(err)
			}
			if err := n.Store(t.Context(), manifestKey, content); err != nil {
				t.Fatal(err)
			}
			if got, err := nodes[2].Load(t.Context(), manifestKey); err != nil || !bytes.Equal(got, content) {
				t.Errorf("%d: got %d bytes, %v", i, len(got), err)
			}
		}
	})
}

// TestLost: where the manifest is lost, a node that joins begins anew, and the others follow it.
func TestLost(t *testing.T) {
	bubble(t, "", func(t *testing.T, f *fake) {
		a, b := node(f, nil), node(f, nil)
		if err := commit(a, "1"); err != nil {
			t.Fatal(err)
		}
		f.lost = true
		for key := range f.keys {
			if key != "site/current" {
				f.change(key, nil)
			}
		}
		open := func(n *Node) error {
			s, err := store.Open(t.Context(), n, store.Options{Prefix: "any"})
			if err == nil {
				n.Adopt(t.Context(), false)
				err = s.Commit(t.Context(), s.Last().WithDocuments(nil, []store.StoredDocument{store.NewDocument("a", nil, []byte("a"))}))
			}
			return err
		}
		if err := open(b); !errors.Is(err, errEarly) {
			t.Errorf("what is lost may not be visible yet: %v", err)
		}
		time.Sleep(2 * settleFor)
		if err := open(b); err != nil {
			t.Fatal(err)
		}
		f.lost = false
		f.change("site/other", nil) // which checks that all is there
		expect(t, b, 2, false)
		_ = a.Poll(t.Context())
		expect(t, a, 2, true)
		for range 2 {
			time.Sleep(time.Second)
			_ = b.Touch(t.Context())
			_ = a.Poll(t.Context())
			if _, err := a.Load(t.Context(), manifestKey); err != nil {
				t.Fatal(err)
			}
			if a.Adopt(t.Context(), true); a.Newer() || a.Due(false).After(a.Now()) {
				t.Error("what is damaged is not repaired")
			}
		}
		if err := commit(a, "repaired"); err != nil || !a.Due(false).After(a.Now()) {
			t.Errorf("it is repaired again: %v", err)
		}
	})
}

// overtaken is a storage in which another node commits before an object is stored.
type overtaken struct {
	*client
	by func()
}

func (o *overtaken) Store(ctx context.Context, key string, value []byte) error {
	by := o.by
	if by != nil && strings.Contains(key, "/objects/") {
		o.by = nil
		by()
	}
	return o.client.Store(ctx, key, value)
}

// TestOvertaken: a commit is lost if another node commits while it stores its objects.
func TestOvertaken(t *testing.T) {
	for _, isHigher := range []bool{false, true} { // the ID of the other one decides between equal generations
		bubble(t, fmt.Sprint(isHigher), func(t *testing.T, f *fake) {
			c := &overtaken{client: &client{fake: f}}
			n := New(Options{Storage: func() Shared { return c }, Prefix: "site", Interval: time.Minute, Now: time.Now})
			other := node(f, nil)
			for (other.ID > n.ID) != isHigher {
				other = node(f, nil)
			}
			again(t, n, "a")
			follow(t, other)
			c.by = func() { again(t, other, "b") }
			if err := commit(n, "c"); !errors.Is(err, ErrLost) || f.has("c") && f.named()[objectKey(store.Hash([]byte("c")))] {
				t.Errorf("got %v", err)
			}
			if got := n.Status().Writer; got != other.ID {
				t.Errorf("the writer is %s, want %s", got, other.ID)
			}
		})
	}
}

// TestLostBeforeTakeOver: the node that takes over finds out that all but current was lost.
func TestLostBeforeTakeOver(t *testing.T) {
	bubble(t, "", func(t *testing.T, f *fake) {
		a, b := node(f, nil), node(f, store.NewMemory())
		again(t, a, "1")
		follow(t, b)
		if err := b.Touch(t.Context()); err != nil {
			t.Fatal(err)
		}
		again(t, a, "1")
		follow(t, b)
		f.lost = true
		f.change("site/ledger", nil)
		if err := b.Touch(t.Context()); !errors.Is(err, ErrLost) || !b.Newer() {
			t.Errorf("got %v", err)
		}
	})
}

// forgetful is a storage that loses all before one of its calls.
type forgetful struct {
	*client
	left int // calls until then
}

func (f *forgetful) count() {
	f.left--
	if f.left == 0 {
		f.lose()
	}
}

func (f *forgetful) Load(ctx context.Context, key string) ([]byte, error) {
	f.count()
	return f.client.Load(ctx, key)
}

func (f *forgetful) Store(ctx context.Context, key string, value []byte) error {
	f.count()
	return f.client.Store(ctx, key, value)
}

// TestLostAmidCommit: whenever the storage loses all amid a commit that is not the first, all is stored again by the next one.
func TestLostAmidCommit(t *testing.T) {
	ctx := context.Background()
	touch := func(n *Node) error { return n.Touch(ctx) }
	for name, test := range map[string]struct {
		before []string // the commits before, with names of one letter
		commit func(n *Node) error
	}{
		"a commit":            {[]string{"ab"}, func(n *Node) error { return commitKept(n, []string{"a"}, "c") }},
		"a touch":             {[]string{"ab"}, touch},
		"a touch with ledger": {[]string{"ab", "a"}, touch}, // b is to be deleted
	} {
		for left := 1; left <= 30; left++ {
			isOver := false
			bubble(t, fmt.Sprintf("%s, call %d", name, left), func(t *testing.T, f *fake) {
				c := &forgetful{client: &client{fake: f}}
				n := New(Options{Storage: func() Shared { return c }, Prefix: "site", Interval: time.Minute, Local: store.NewMemory(), Now: time.Now})
				for _, contents := range test.before {
					again(t, n, strings.Split(contents, "")...)
				}
				time.Sleep(2 * settleFor)
				c.left = left
				err := test.commit(n)
				isOver = c.left > 0
				wasLost := f.hasLost()
				if isUnexpected := err != nil && !errors.Is(err, ErrLost); isUnexpected || !wasLost && err != nil {
					t.Errorf("got %v", err)
				}
				if err == nil && n.Newer() {
					t.Error("a commit has succeeded after which there is something newer")
				}
				_ = n.Poll(ctx)
				if err := n.Touch(ctx); err != nil {
					again(t, n, "a", "b", "c")
				}
				f.lost = false
				f.change("site/other", nil) // which checks that all is there
			})
			if isOver {
				break
			}
		}
	}
}

// TestHangs: no call waits for a storage that does not respond. If it writes late over what is newer, that comes back.
func TestHangs(t *testing.T) {
	bubble(t, "", func(t *testing.T, f *fake) {
		n := node(f, nil)
		if err := commit(n, "1"); err != nil {
			t.Fatal(err)
		}
		f.set(faults{hang: 1})
		begun := time.Now()
		if err := n.Poll(t.Context()); !errors.Is(err, store.ErrHung) || time.Since(begun) != patience || n.Status().Error != store.ErrHung.Error() {
			t.Errorf("got %v after %v", err, time.Since(begun))
		}
		go func() { _ = n.writeCurrent(t.Context(), n.seen) }()
		synctest.Wait()
		f.set(faults{})
		again(t, n, "2")
		time.Sleep(time.Minute + time.Second)
		again(t, n, "3")
		reader := node(f, nil)
		follow(t, reader)
		expect(t, reader, 3, false)
	})
}

// partly is a storage of which some calls fail.
type partly struct {
	*client
	load, store, lock error
}

func (p *partly) Load(ctx context.Context, key string) ([]byte, error) {
	if p.load != nil {
		return nil, p.load
	}
	return p.client.Load(ctx, key)
}

func (p *partly) Store(ctx context.Context, key string, value []byte) error {
	if p.store != nil {
		return p.store
	}
	return p.client.Store(ctx, key, value)
}

func (p *partly) Lock(ctx context.Context, name string) error {
	if p.lock != nil {
		return p.lock
	}
	return p.client.Lock(ctx, name)
}

// TestErrors: an error is shown until the same kind of call has succeeded, or another node has committed.
func TestErrors(t *testing.T) {
	bubble(t, "", func(t *testing.T, f *fake) {
		n, other := node(f, nil), node(f, nil)
		p := &partly{client: &client{fake: f}}
		n.Storage = func() Shared { return p }
		again(t, n, "1")
		n.seenAt = time.Now().Add(time.Hour) // it is not overdue
		acquire := func() {
			release, err := n.Acquire(t.Context())
			if err == nil {
				release()
			}
		}
		wants := func(when, want string) {
			t.Helper()
			if got := n.Status().Error; got != want {
				t.Errorf("%s: got the error %q, want %q", when, got, want)
			}
		}
		unloadable := errors.New("cannot load")
		p.load = unloadable
		acquire()
		wants("after an unlock", "cannot load")
		p.load = nil
		_ = n.Poll(t.Context())
		wants("after a poll", "")
		p.store = errors.New("cannot store")
		_ = n.Touch(t.Context())
		_ = n.Poll(t.Context())
		acquire()
		wants("after a poll and a lock", "cannot store")
		p.load = unloadable
		_ = n.Poll(t.Context())
		wants("both", "cannot load")
		p.load = nil
		_ = n.Poll(t.Context())
		wants("the earlier one", "cannot store")
		p.store = nil
		_ = n.Touch(t.Context())
		wants("after a store", "")
		p.lock = errors.New("cannot lock")
		acquire()
		time.Sleep(time.Second)
		_ = n.Poll(t.Context())
		wants("after a poll", "cannot lock")
		follow(t, other)
		again(t, other, "2")
		_ = n.Poll(t.Context())
		wants("after another node has committed", "")
		p.load = unloadable
		_ = n.Poll(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		p.load = nil
		f.set(faults{slow: time.Minute})
		_ = n.Poll(ctx)
		wants("after a poll that was canceled", "cannot load")
		if got := n.Status().Errors; got != 6 { // the touch failed to write the ledger and current
			t.Errorf("%d errors", got)
		}
		time.Sleep(time.Hour)
	})
}

// hanging is a storage of local copies whose calls, once it hangs, wait until it is free.
type hanging struct {
	store.Storage
	hangs atomic.Bool
	free  chan struct{}
	calls atomic.Int32
}

func (h *hanging) wait() {
	h.calls.Add(1)
	if h.hangs.Load() {
		<-h.free
	}
}

func (h *hanging) Store(ctx context.Context, key string, value []byte) error {
	h.wait()
	return h.Storage.Store(ctx, key, value)
}

func (h *hanging) Load(ctx context.Context, key string) ([]byte, error) {
	h.wait()
	return h.Storage.Load(ctx, key)
}

func (h *hanging) Delete(ctx context.Context, key string) error {
	h.wait()
	return h.Storage.Delete(ctx, key)
}

func (h *hanging) List(ctx context.Context, folder string, recursive bool) ([]string, error) {
	h.wait()
	return h.Storage.List(ctx, folder, recursive)
}

// TestCopiesHang: a node whose local copies hang goes on without them: what it commits is there at once for others, and
// it waits a moment itself, once in a while. Later it has copies again.
func TestCopiesHang(t *testing.T) {
	bubble(t, "", func(t *testing.T, f *fake) {
		local := &hanging{Storage: store.NewMemory(), free: make(chan struct{})}
		n, other := node(f, local), node(f, nil)
		again(t, n, "before")
		local.hangs.Store(true)
		local.calls.Store(0)
		waited := func(most time.Duration, what string, do func()) {
			t.Helper()
			begun := time.Now()
			do()
			if took := time.Since(begun); took > most {
				t.Errorf("%s took %s", what, took)
			}
		}
		// The objects and current are stored before any copy is.
		seen := make(chan time.Time, 1)
		n.Storage = func(storage func() Shared) func() Shared {
			return func() Shared { return &written{storage(), seen} }
		}(n.Storage)
		begun := time.Now()
		waited(copyPatience, "the first commit", func() { again(t, n, "1", strings.Repeat("large", partSize)) })
		if at := <-seen; at != begun {
			t.Errorf("others wait %s for the first commit", at.Sub(begun))
		}
		follow(t, other)
		expect(t, other, 2, false)
		waited(0, "the second commit", func() { again(t, n, "2") })
		again2 := func() { follow(t, other); again(t, other, "3") }
		waited(0, "another node's commit", again2)
		waited(0, "following it", func() { _ = n.Poll(t.Context()); follow(t, n) })
		waited(0, "loading", func() {
			if data, err := n.Load(t.Context(), "any/store/"+store.Hash([]byte("3"))); err != nil || string(data) != "3" {
				t.Errorf("got %q, %v", data, err)
			}
		})
		for range 10 {
			time.Sleep(copyPause)
			waited(copyPatience, "after a while", func() { again(t, n, time.Now().String()) })
		}
		if calls := local.calls.Load(); calls > 30 {
			t.Errorf("%d calls hang", calls)
		}
		waited(copyPatience+time.Second, "a node that starts", func() {
			joined := node(f, local)
			follow(t, joined)
			expect(t, joined, 14, false)
		})
		close(local.free)
		time.Sleep(copyPause)
		again(t, n, "after")
		data, err := local.Storage.Load(t.Context(), folder+"/"+store.Hash([]byte("after")))
		if err != nil || string(data) != "after" {
			t.Errorf("copied later: %q, %v", data, err)
		}
		time.Sleep(time.Minute)
	})
}

// written is a storage that tells when current was written first.
type written struct {
	Shared
	at chan time.Time
}

func (w *written) Store(ctx context.Context, key string, value []byte) error {
	if strings.HasSuffix(key, currentKey) {
		select {
		case w.at <- time.Now():
		default:
		}
	}
	return w.Shared.Store(ctx, key, value)
}

// unreadable is a storage of which keys cannot be loaded: one that some text is part of, or all.
type unreadable struct {
	Shared
	part  string
	also  string // "": nothing
	hangs bool
	most  *atomic.Int32 // calls that hang at a time, and
	now   *atomic.Int32
}

func (u unreadable) Load(ctx context.Context, key string) ([]byte, error) {
	if !strings.Contains(key, u.part) && (u.also == "" || !strings.Contains(key, u.also)) {
		return u.Shared.Load(ctx, key)
	}
	if u.hangs {
		u.most.Store(max(u.most.Load(), u.now.Add(1)))
		time.Sleep(3 * time.Hour)
		u.now.Add(-1)
	}
	return nil, syscall.EIO
}

// TestUnreadable: an object that a node cannot load for ten minutes is given up, and stored anew, if the storage has others.
// What the node has copies of says nothing of the storage.
func TestUnreadable(t *testing.T) {
	for name, test := range map[string]struct {
		part   string // "": all
		hangs  bool
		isLost bool
	}{
		"object":      {store.Hash([]byte("a")), false, true},
		"hung object": {store.Hash([]byte("a")), true, true},
		"storage":     {"", false, false},

		"object and manifest": {store.Hash([]byte("a")), false, false},
		"all objects":         {folder, false, false},
		"hung storage":        {"", true, false},
		"current alone":       {currentKey, false, false},
	} {
		bubble(t, name, func(t *testing.T, f *fake) {
			var most, now atomic.Int32
			n, other := node(f, nil), node(f, nil)
			documents := []store.StoredDocument{store.NewDocument("a", nil, []byte("a")), store.NewDocument("b", nil, []byte("b"))}
			first, err := store.Open(t.Context(), n, store.Options{Prefix: "any"})
			if err != nil {
				t.Fatal(err)
			}
			n.Adopt(t.Context(), false)
			n.Begin()
			n.Plan(time.Minute)
			if err := first.Commit(t.Context(), first.Last().WithDocuments(nil, documents)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * settleFor)
			s, err := store.Open(t.Context(), other, store.Options{Prefix: "any"}) // its manifest is copied
			if err != nil {
				t.Fatal(err)
			}
			if data, err := s.Last().Document(t.Context(), 1); err != nil || string(data) != "b" {
				t.Errorf("got %q, %v", data, err)
			}
			other.Adopt(t.Context(), false)
			also := ""
			if name == "object and manifest" {
				also = other.seen.Manifest
			}
			storage := other.Storage
			other.Storage = func() Shared { return unreadable{storage(), test.part, also, test.hangs, &most, &now} }
			begun := time.Now()
			for time.Since(begun) < 2*time.Hour && !errors.Is(err, store.ErrDamaged) {
				_, err = s.Last().Document(t.Context(), 0)
				if test.part != currentKey && err == nil {
					t.Fatal("no error")
				}
				time.Sleep(time.Minute)
			}
			if isLost := errors.Is(err, store.ErrDamaged); isLost != test.isLost || isLost && time.Since(begun) < 10*time.Minute {
				t.Errorf("got %v after %s", err, time.Since(begun))
			}
			if test.part != "" && most.Load() > 1 {
				t.Errorf("%d calls hang for one object", most.Load())
			}
			time.Sleep(4 * time.Hour)
		})
	}
}

// stuckLock is a storage whose Unlock and RenewLockLease hang.
type stuckLock struct{ *client }

func (stuckLock) Unlock(context.Context, string) error {
	time.Sleep(time.Hour)
	return nil
}

func (stuckLock) RenewLockLease(context.Context, string, time.Duration) error {
	time.Sleep(time.Hour)
	return nil
}

// TestLockHangs: a lock that cannot be renewed or released holds up nobody for long.
func TestLockHangs(t *testing.T) {
	bubble(t, "", func(t *testing.T, f *fake) {
		n := node(f, nil)
		n.Storage = func() Shared { return stuckLock{&client{fake: f}} }
		release, err := n.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		begun := time.Now()
		release()
		if took := time.Since(begun); took > patience {
			t.Errorf("it took %s", took)
		}
		time.Sleep(time.Minute)
		begun = time.Now()
		again, err := n.Acquire(t.Context())
		if err != nil || time.Since(begun) > 0 {
			t.Fatalf("the lock is not given back: %v", err)
		}
		again()
		time.Sleep(2 * time.Hour)
	})
}

func FuzzCurrent(f *testing.F) {
	f.Add([]byte(`{"version":1,"generation":1,"node":"0123456789abcdef0123456789abcdef","manifest":"0123456789abcdef0123456789abcdef","interval":60000000000,"at":"2026-11-22T00:00:00Z"}`))
	f.Add([]byte(`{"version":1,"generation":9007199254740991,"node":"0123456789abcdef0123456789abcdef","manifest":"0123456789abcdef0123456789abcdef","interval":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := decodeCurrent(data)
		if c.Generation == 0 {
			if c != (current{}) {
				t.Errorf("got %+v", c)
			}
			return
		}
		encoded, _ := json.Marshal(c)
		again := decodeCurrent(encoded)
		if again.compare(c) != 0 || len(encoded) >= maxCurrent || !again.At.Equal(c.At) || strings.ContainsAny(c.Manifest+c.Node, "/.") {
			t.Errorf("got %+v, want %+v", again, c)
		}
	})
}
