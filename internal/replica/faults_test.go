package replica

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"encoding/json"

	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// hooked is a storage whose calls a test may change.
type hooked struct {
	record.Storage
	load  func(key string) error
	store func(key string) error
	del   func(key string)
}

func (h *hooked) Load(ctx context.Context, key string) ([]byte, error) {
	if h.load != nil {
		if err := h.load(key); err != nil {
			return nil, err
		}
	}
	return h.Storage.Load(ctx, key)
}

func (h *hooked) Store(ctx context.Context, key string, v []byte) error {
	if h.store != nil {
		if err := h.store(key); err != nil {
			return err
		}
	}
	return h.Storage.Store(ctx, key, v)
}

func (h *hooked) Delete(ctx context.Context, key string) error {
	if h.del != nil {
		h.del(key)
	}
	return h.Storage.Delete(ctx, key)
}

type plain struct {
	*Node
	disk record.Storage
	t    *testing.T
}

func newPlain(t *testing.T, local record.Storage, shared record.Storage) *plain {
	n := New(Options{Prefix: "site", Local: local, Records: "any", Value: "value", Hold: func(context.Context) (func(), error) { return func() {}, nil }})
	n.Configure(record.Bounded(shared), 15*time.Second)
	return &plain{n, local, t}
}

// commit makes documents what the local store has.
func (p *plain) commit(docs ...string) {
	s := record.New(p.disk, "any")
	if err := s.Open(p.t.Context(), nil); err != nil {
		p.t.Fatal(err)
	}
	w := s.Last().Writer()
	w.Put("", []record.Record{{Path: "/" + docs[0]}}, nil, nil)
	g, _ := w.Generation()
	var all []record.StoredDocument
	for _, d := range docs {
		all = append(all, record.NewDocument(d, nil, []byte(d)))
	}
	m, _ := json.Marshal(docs[0])
	if err := s.Commit(p.t.Context(), g.WithDocuments(m, all)); err != nil {
		p.t.Fatal(err)
	}
}

// meta is the first document of the local store.
func (p *plain) meta() string {
	s := record.New(p.disk, "any")
	if err := s.Open(p.t.Context(), nil); err != nil {
		p.t.Fatal(err)
	}
	return string(s.Last().Meta())
}

func (p *plain) steps(n int) {
	for range n {
		_, err := p.Step(p.t.Context())
		if err != nil {
			p.t.Logf("%s: %v", p.ID[:4], err)
		}
		time.Sleep(p.poll())
	}
}

func currentOf(t *testing.T, s record.Storage) (c current) {
	data, _ := s.Load(t.Context(), "site/current")
	_ = json.Unmarshal(data, &c)
	return c
}

// TestFailedPull: all processes were stopped, as in a deployment that recreates all pods. A new one with an empty folder
// starts, and one call of the storage fails. What all others had published must not be lost.
func TestFailedPull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := record.NewMemory()
		a := newPlain(t, record.NewMemory(), shared)
		a.commit("one", "two")
		_ = a.disk.Store(t.Context(), "value", []byte("the key of IndexNow"))
		a.steps(3)
		_ = a.Resign(t.Context())
		before := currentOf(t, shared)

		failed := false
		h := &hooked{Storage: shared, load: func(key string) error {
			if strings.Contains(key, "objects") && !failed {
				failed = true
				return errors.New("a time-out")
			}
			return nil
		}}
		b := newPlain(t, record.NewMemory(), h)
		b.steps(5)
		after := currentOf(t, shared)
		if after.Manifest != before.Manifest || after.Value != before.Value {
			t.Errorf("the storage names %q and %q, want %q and %q", after.Manifest, after.Value, before.Manifest, before.Value)
		}
	})
}

// TestStaleFollower: a follower whose disk is full keeps what it had. It must not make that the newest.
func TestStaleFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := record.NewMemory()
		a := newPlain(t, record.NewMemory(), shared)
		a.commit("old")
		a.steps(3)
		full := false
		h := &hooked{Storage: record.NewMemory(), store: func(string) error {
			if full {
				return errors.New("no space left on device")
			}
			return nil
		}}
		b := newPlain(t, h, shared)
		b.steps(1)
		if b.meta() != `"old"` {
			t.Fatal(b.meta())
		}
		c := newPlain(t, record.NewMemory(), shared)
		c.steps(1)
		full = true
		a.commit("new")
		_ = a.Push(t.Context())
		c.steps(1)
		if c.meta() != `"new"` {
			t.Fatal(c.meta())
		}
		_ = a.Resign(t.Context()) // it stops
		b.steps(3)
		c.steps(1)
		if c.meta() != `"new"` {
			t.Errorf("the other one has gone back to %s", c.meta())
		}
	})
}

// TestSlowPull: a new process that takes long to load what there is must not take the lead of one that lives.
func TestSlowPull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := record.NewMemory()
		a := newPlain(t, record.NewMemory(), shared)
		var docs []string
		for i := range 40 {
			docs = append(docs, fmt.Sprint("document ", i))
		}
		a.commit(docs...)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			for ctx.Err() == nil {
				_, _ = a.Step(ctx)
				a.Wait(ctx)
			}
		}()
		time.Sleep(time.Minute)
		h := &hooked{Storage: shared, load: func(string) error {
			time.Sleep(2 * time.Second)
			return nil
		}}
		b := newPlain(t, record.NewMemory(), h)
		b.steps(1)
		time.Sleep(time.Minute)
		if c := currentOf(t, shared); c.Node != a.ID {
			t.Errorf("the lead was taken from a process that lives: %+v", c)
		}
		cancel()
		time.Sleep(time.Minute)
	})
}

// TestSlowPush: what takes longer than a minute to store is published at last, and stays.
func TestSlowPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := record.NewMemory()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var docs []string
		for i := range 40 {
			docs = append(docs, fmt.Sprint("document ", i))
		}
		var isSlow atomic.Bool
		var pushed, took, back atomic.Int64
		var all []*plain
		for i := range 2 {
			if i == 1 {
				time.Sleep(time.Minute)
			}
			h := &hooked{Storage: shared, store: func(key string) error {
				if isSlow.Load() && path.Base(key) != "current" {
					time.Sleep(4 * time.Second)
				}
				return nil
			}}
			p := newPlain(t, record.NewMemory(), h)
			p.commit("old")
			all = append(all, p)
			isFirst := i == 0
			go func() {
				for ctx.Err() == nil {
					was := p.meta()
					_, _ = p.Step(ctx)
					if now := p.meta(); now != was {
						took.Add(1)
						if !strings.Contains(now, "new") && strings.Contains(was, "new") && was != `""` && was != "" {
							back.Add(1)
						}
					}
					// The other one's refresh takes longer.
					if isFirst && p.Leads() && isSlow.Load() && !strings.Contains(p.meta(), "new") {
						p.commit(append([]string{"new " + p.ID + time.Now().String()}, docs...)...) // records differ, as do dates
						begun := time.Now()
						err := p.Push(ctx)
						t.Logf("%s: a push took %s: %v", p.ID[:4], time.Since(begun), err)
						if err == nil {
							pushed.Add(1)
						}
					}
					p.Wait(ctx)
				}
			}()
		}
		time.Sleep(2 * time.Minute)
		isSlow.Store(true)
		time.Sleep(time.Hour)
		t.Logf("%d pushes succeeded; %d times a process has gone back to the old one", pushed.Load(), back.Load())
		if back.Load() > 0 {
			t.Errorf("after an hour: %s and %s", all[0].meta(), all[1].meta())
		}
		cancel()
		time.Sleep(time.Hour)
	})
}

// TestCollect: what a former leader has dropped, and another one has stored again since, is not deleted.
func TestCollect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := record.NewMemory()
		bad := 0
		h := &hooked{Storage: shared, del: func(key string) {
			name, _, _ := strings.Cut(path.Base(key), ".")
			c := currentOf(t, shared)
			m, _ := shared.Load(t.Context(), "site/objects/"+c.Manifest+".0")
			if named(m, c.Value)[name] {
				bad++
			}
		}}
		a := newPlain(t, record.NewMemory(), h)
		a.commit("style", "x")
		a.steps(3)
		a.commit("other", "y")
		_ = a.Push(t.Context()) // drops style
		b := newPlain(t, record.NewMemory(), h)
		b.steps(1)
		b.wanted.Store(true)
		b.steps(1)
		b.commit("style", "z") // a release is taken back
		for range 3 {
			_, _ = a.Step(t.Context())
			b.steps(1)
		}
		if a.Leads() || !b.Leads() || a.meta() != `"style"` {
			t.Fatal(a.Leads(), b.Leads(), a.meta())
		}
		for range 260 { // 65 minutes
			_, _ = a.Step(t.Context())
			b.steps(1)
		}
		a.wanted.Store(true)
		a.steps(4)
		c := newPlain(t, record.NewMemory(), shared)
		_, err := c.Step(t.Context())
		if bad > 0 || err != nil {
			t.Errorf("%d objects that are named were deleted; a new process: %v", bad, err)
		}
	})
}

// TestDamagedManifest: a leader whose local manifest is damaged does not make that the newest.
func TestDamagedManifest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := record.NewMemory()
		a := newPlain(t, record.NewMemory(), shared)
		a.commit("one")
		a.steps(3)
		b := newPlain(t, record.NewMemory(), shared)
		b.steps(1)
		key := "any/" + record.ManifestName
		m, _ := a.disk.Load(t.Context(), key)
		_ = a.disk.Store(t.Context(), key, m[:len(m)/2])
		a.steps(2)
		b.steps(2)
		if b.meta() != `"one"` {
			t.Errorf("the follower has %q", b.meta())
		}
	})
}

// TestDamagedObject: a process alone, of whose objects one is damaged, leads all the same, so that a refresh can repair that.
func TestDamagedObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := record.NewMemory()
		a := newPlain(t, record.NewMemory(), shared)
		a.commit("one")
		keys, _ := a.disk.List(t.Context(), "any/store", false)
		for _, key := range keys {
			if path.Base(key) != "manifest.json" {
				_ = a.disk.Store(t.Context(), key, []byte("damaged"))
				break
			}
		}
		a.steps(100)
		if !a.Leads() {
			t.Errorf("after 25 minutes, nobody leads: %+v", a.Status())
		}
	})
}

// TestNoList: the status tells of a storage that lists nothing, and not of one that lists no folder before there is something in it.
func TestNoList(t *testing.T) {
	for name, lists := range map[string]bool{"none": false, "none that is empty": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newPlain(t, record.NewMemory(), &listing{record.NewMemory(), lists})
				a.steps(8)
				if a.Status().NoList {
					t.Error("nothing is stored")
				}
				a.commit("one")
				a.steps(2 * int(listEvery/a.poll()))
				if got := a.Status().NoList; got == lists {
					t.Errorf("got %t", got)
				}
			})
		})
	}
}

// listing is a storage that may list what is in a folder. Of one without anything, it returns an error.
type listing struct {
	record.Storage
	lists bool
}

func (l *listing) List(ctx context.Context, folder string, isDeep bool) ([]string, error) {
	keys, _ := l.Storage.List(ctx, folder, isDeep)
	if !l.lists || len(keys) == 0 {
		return nil, errors.New("no such folder")
	}
	return keys, nil
}

// TestList: what a list lacks is to be pushed again, unless the list lacks all.
func TestList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &listing{record.NewMemory(), true}
		a := newPlain(t, record.NewMemory(), shared)
		a.commit("one", "two")
		a.steps(3)
		all := len(a.named)
		for object := range a.named {
			if object != a.seen.Manifest {
				_ = shared.Delete(t.Context(), a.partKey(object, 0))
				break
			}
		}
		a.list(t.Context())
		if got := len(a.named); got != all-1 {
			t.Errorf("%d of %d objects are there", got, all)
		}
		shared.lists = false
		a.list(t.Context())
		if got := len(a.named); got != all-1 {
			t.Errorf("by a list of nothing, %d of %d objects are there", got, all)
		}
	})
}

// TestLeftByOthers: without lists, too, what an earlier leader has pushed goes an hour after the present one has replaced it.
func TestLeftByOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &listing{record.NewMemory(), false}
		a := newPlain(t, record.NewMemory(), shared)
		a.commit("one", "two")
		a.steps(3)
		left := a.seen.Manifest
		_ = a.Resign(t.Context())
		b := newPlain(t, record.NewMemory(), shared)
		b.steps(3)
		b.commit("other")
		b.steps(int(keepFor/b.poll()) + 5)
		_, err := shared.Load(t.Context(), b.partKey(left, 0))
		if !b.Leads() || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it is still there: %v; it leads: %t", err, b.Leads())
		}
	})
}

// TestPartsGo: without lists, too, each part of what a leader has pushed goes an hour after it has replaced it.
func TestPartsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := record.NewMemory()
		a := newPlain(t, record.NewMemory(), &listing{memory, false})
		a.commit("big " + strings.Repeat("x", 3*partSize))
		a.steps(3)
		a.commit("small")
		a.steps(1)
		time.Sleep(keepFor)
		a.steps(2)
		keys, _ := memory.List(t.Context(), "site/objects", false)
		if len(keys) != len(a.named) {
			t.Errorf("%d parts of %d objects are stored", len(keys), len(a.named))
		}
	})
}

// TestDeletesSlowly: a poll deletes a hundred objects at most, and a push none, as a refresh waits for it.
func TestDeletesSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deleted := 0
		h := &hooked{Storage: record.NewMemory(), del: func(string) { deleted++ }}
		for i := range 5 * atOnce / 2 {
			_ = h.Store(t.Context(), fmt.Sprintf("site/objects/%d.0", i), []byte("left"))
		}
		a := newPlain(t, record.NewMemory(), h)
		a.commit("one")
		a.steps(3)
		time.Sleep(keepFor)
		err := a.Push(t.Context())
		if err != nil || deleted > 0 {
			t.Errorf("a push deletes %d: %v", deleted, err)
		}
		for _, want := range []int{atOnce, 2 * atOnce, 5 * atOnce / 2, 5 * atOnce / 2} {
			a.steps(1)
			if deleted != want {
				t.Errorf("%d are deleted, want %d", deleted, want)
			}
		}
	})
}

// TestDeletesInTime: a leader whose storage takes a second to delete something keeps the lead, and deletes all in the end.
func TestDeletesInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var deleted atomic.Int64
		h := &hooked{Storage: record.NewMemory(), del: func(string) {
			deleted.Add(1)
			time.Sleep(time.Second)
		}}
		const left = 200
		for i := range left {
			_ = h.Store(t.Context(), fmt.Sprintf("site/objects/%d.0", i), []byte("left"))
		}
		a := newPlain(t, record.NewMemory(), h)
		a.commit("one")
		a.runs()
		time.Sleep(time.Minute)
		newPlain(t, record.NewMemory(), h).runs()
		begun := time.Now()
		for time.Since(begun) < 3*keepFor {
			if !a.Leads() {
				t.Fatalf("after %s, it does not lead", time.Since(begun))
			}
			time.Sleep(time.Second)
		}
		if got := deleted.Load(); got != left {
			t.Errorf("%d are deleted, want %d", got, left)
		}
	})
}

// TestResignFails: a process that resigns does not lead any more, whether it can say so or not.
func TestResignFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := false
		a := newPlain(t, record.NewMemory(), &hooked{Storage: record.NewMemory(), store: func(string) error {
			if fails {
				return errors.New("a time-out")
			}
			return nil
		}})
		a.steps(3)
		fails = true
		err := a.Resign(t.Context())
		if err == nil || a.Leads() {
			t.Errorf("%v; it leads: %t", err, a.Leads())
		}
	})
}

// TestPartsKept: each part of what was replaced stays for an hour.
func TestPartsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := record.NewMemory()
		a := newPlain(t, record.NewMemory(), shared)
		a.commit("big " + strings.Repeat("x", 3*partSize))
		a.steps(3)
		time.Sleep(2 * keepFor)
		count := func() int {
			keys, _ := shared.List(t.Context(), "site/objects", false)
			return len(keys)
		}
		before := count()
		a.commit("small")
		a.steps(3)
		if after := count(); before < 4 || after <= before {
			t.Errorf("%d parts, then %d", before, after)
		}
	})
}

// runs has a process do its steps until the test ends.
func (p *plain) runs() {
	go func() {
		for p.t.Context().Err() == nil {
			_, _ = p.Step(p.t.Context())
			p.Wait(p.t.Context())
		}
	}()
}

// TestClaimBoth: of operators of several processes who want them to lead at the same time, one gets it.
func TestClaimBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := record.NewMemory()
		var all []*plain
		for range 3 {
			p := newPlain(t, record.NewMemory(), shared)
			p.runs()
			all = append(all, p)
		}
		time.Sleep(time.Minute)
		for range 10 {
			before := currentOf(t, shared).Term
			claimed := make(chan bool)
			for _, p := range all {
				go func() {
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					claimed <- p.Claim(ctx) == nil
				}()
			}
			isClaimed := false
			for range all {
				isClaimed = <-claimed || isClaimed
			}
			time.Sleep(4 * all[0].poll()) // in which all agree
			if term := currentOf(t, shared).Term; term > before+uint64(len(all)) {
				t.Errorf("%d claims", term-before)
			}
			leading := 0
			for _, p := range all {
				if p.Leads() {
					leading++
				}
			}
			if !isClaimed || leading != 1 {
				t.Errorf("one has got it: %t; %d lead", isClaimed, leading)
			}
		}
	})
}

// TestPushTooLate: of a process that learns by a push that another one leads, the next step tells that it has what that one pushed.
func TestPushTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := record.NewMemory()
		a := newPlain(t, record.NewMemory(), shared)
		a.commit("one")
		a.steps(3)
		b := newPlain(t, record.NewMemory(), shared)
		b.wanted.Store(true)
		b.steps(2)
		b.commit("two")
		b.steps(1)
		a.commit("lost")
		if err := a.Push(t.Context()); !errors.Is(err, ErrFollows) {
			t.Errorf("got %v", err)
		}
		isChanged, err := a.Step(t.Context())
		if err != nil || !isChanged || a.meta() != `"two"` {
			t.Errorf("changed: %t, %v; it has %s", isChanged, err, a.meta())
		}
	})
}

// TestTakeOver: who takes over stores nothing again that the storage has, and its own value if it lacks that.
func TestTakeOver(t *testing.T) {
	for _, value := range []string{"", "a key"} {
		synctest.Test(t, func(t *testing.T) {
			objects := 0
			h := &hooked{Storage: record.NewMemory(), store: func(key string) error {
				if path.Base(key) != currentKey {
					objects++
				}
				return nil
			}}
			a := newPlain(t, record.NewMemory(), h)
			a.commit("one", "two")
			a.steps(3)
			_ = a.Resign(t.Context())
			b := newPlain(t, record.NewMemory(), h)
			if value != "" {
				_ = b.disk.Store(t.Context(), "value", []byte(value))
			}
			objects = 0
			b.steps(2) // by the second one, it knows that it leads
			if value == "" && objects > 0 || !b.Leads() {
				t.Errorf("%d objects are stored; it leads: %t", objects, b.Leads())
			}
			c := newPlain(t, record.NewMemory(), h)
			c.steps(1)
			got, _ := c.disk.Load(t.Context(), "value")
			if string(got) != value {
				t.Errorf("got the value %q, want %q", got, value)
			}
		})
	}
}

// TestClaimLacks: a process that cannot load what is the newest does not lead for an operator either.
func TestClaimLacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := record.NewMemory()
		a := newPlain(t, record.NewMemory(), shared)
		a.commit("one")
		a.steps(3)
		down := errors.New("a time-out")
		b := newPlain(t, record.NewMemory(), &hooked{Storage: shared, load: func(key string) error {
			if strings.Contains(key, "objects") {
				return down
			}
			return nil
		}})
		b.runs()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := b.Claim(ctx); !errors.Is(err, down) || b.Leads() {
			t.Errorf("got %v; it leads: %t", err, b.Leads())
		}
	})
}

// TestClaimAgain: a call of the storage that fails once is no reason for a process not to lead for an operator.
func TestClaimAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := record.NewMemory()
		a := newPlain(t, record.NewMemory(), shared)
		a.commit("one")
		a.steps(3)
		fails := false
		b := newPlain(t, record.NewMemory(), &hooked{Storage: shared, load: func(key string) error {
			if fails && strings.Contains(key, "objects") {
				fails = false
				return errors.New("a time-out")
			}
			return nil
		}})
		b.runs()
		synctest.Wait() // it has polled, and sleeps
		a.commit("two")
		if err := a.Push(t.Context()); err != nil {
			t.Fatal(err)
		}
		fails = true
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := b.Claim(ctx); err != nil || fails {
			t.Errorf("got %v; a call has failed: %t", err, !fails)
		}
	})
}

// TestValueAmidPush: a value that is saved amid a push waits for the next one.
func TestValueAmidPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, shared := record.NewMemory(), record.NewMemory()
		isPushing := false
		a := newPlain(t, disk, &hooked{Storage: shared, store: func(key string) error {
			if isPushing && strings.Contains(key, "objects") {
				return disk.Store(t.Context(), "value", []byte("after"))
			}
			return nil
		}})
		a.commit("one")
		a.steps(3)
		for i := range 40 { // the value is neither the first nor the last in each
			isPushing = false
			_ = disk.Store(t.Context(), "value", fmt.Append(nil, "before", i))
			a.commit(fmt.Sprint("two", i), "x", "y")
			isPushing = true
			if err := a.Push(t.Context()); err != nil {
				t.Fatal(err)
			}
			a.steps(1)
			if got := currentOf(t, shared).Value; got != record.Hash([]byte("after")) {
				t.Errorf("the value is %s", got)
			}
		}
	})
}

// TestPushGoesOn: a push that fails goes on at the next poll where it was, and the objects it stored are stored once.
func TestPushGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := record.NewMemory()
		calls, stored := 0, 0
		a := newPlain(t, record.NewMemory(), &hooked{Storage: shared, store: func(key string) error {
			calls++
			if calls%30 == 0 {
				return errors.New("a time-out")
			}
			if strings.Contains(key, "objects") {
				stored++
			}
			return nil
		}})
		var docs []string
		for i := range 100 {
			docs = append(docs, fmt.Sprint("document ", i))
		}
		a.commit(docs...)
		a.steps(10)
		if currentOf(t, shared).Manifest == "" || stored != len(a.named) {
			t.Errorf("%d objects are stored %d times, as %v", len(a.named), stored, currentOf(t, shared))
		}
	})
}

// TestWrittenAfterAll: a leader whose write of current fails, but is done, goes on leading.
func TestWrittenAfterAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := record.NewMemory()
		fails := false
		h := &hooked{Storage: shared}
		h.store = func(key string) error {
			if fails && path.Base(key) == currentKey {
				return errors.New("a time-out")
			}
			return nil
		}
		a := newPlain(t, record.NewMemory(), &late{h})
		a.commit("one")
		a.steps(3)
		fails = true
		a.steps(1)
		fails = false
		a.steps(1)
		if !a.Leads() {
			t.Error("it does not lead any more")
		}
	})
}

// TestLostResponses: where writes are done but never seem so, one process leads all the same.
func TestLostResponses(t *testing.T) {
	for name, claims := range map[string]bool{"a leader's": false, "a claim's, too": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fails := claims
				h := &hooked{Storage: record.NewMemory(), store: func(key string) error {
					if fails && path.Base(key) == currentKey {
						return errors.New("a time-out")
					}
					return nil
				}}
				a := newPlain(t, record.NewMemory(), &late{h})
				b := newPlain(t, record.NewMemory(), h.Storage)
				a.commit("one")
				a.steps(3)
				fails = true
				for range 100 {
					_, _ = a.Step(t.Context())
					if !a.Leads() {
						t.Fatal("it does not lead")
					}
					b.steps(1)
				}
				if b.Leads() || b.meta() != `"one"` {
					t.Errorf("another one leads: %t, and has %s", b.Leads(), b.meta())
				}
			})
		})
	}
}

// late is a storage that stores what it then says has failed.
type late struct{ *hooked }

func (l *late) Store(ctx context.Context, key string, v []byte) error {
	_ = l.Storage.Store(ctx, key, v)
	return l.hooked.Store(ctx, key, v)
}

// TestListsFolder: where a storage lists the folder as one of its own keys, that is not deleted: with it, all that is in it could
// be.
func TestListsFolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var deleted []string
		h := &hooked{Storage: folderLister{record.NewMemory()}, del: func(key string) { deleted = append(deleted, key) }}
		a := newPlain(t, record.NewMemory(), h)
		a.commit("one")
		a.steps(3 * int(listEvery/a.poll()))
		if slices.Contains(deleted, "site/objects") {
			t.Error("it is deleted")
		}
	})
}

// folderLister is a storage that lists a folder among its keys.
type folderLister struct{ record.Storage }

func (s folderLister) List(ctx context.Context, folder string, isDeep bool) ([]string, error) {
	keys, err := s.Storage.List(ctx, folder, isDeep)
	return append(keys, folder), err
}

// TestToldRace: refreshes of two configurations hear followers at a time.
func TestToldRace(t *testing.T) {
	shared := record.NewMemory()
	for i := range 50 {
		_ = shared.Store(t.Context(), fmt.Sprint("site/told/", i), []byte("x"))
	}
	a := newPlain(t, record.NewMemory(), shared)
	done := make(chan bool)
	for range 2 {
		go func() {
			_ = a.Told(t.Context(), func([]byte) {})
			done <- true
		}()
	}
	<-done
	<-done
}

// TestPartsLeft: parts of an object of which one could not be deleted at once are deleted later.
func TestPartsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := record.NewMemory()
		h := &refusing{Storage: shared}
		a := newPlain(t, record.NewMemory(), h)
		a.commit("big " + strings.Repeat("x", 3*partSize))
		a.steps(3)
		a.commit("small")
		_ = a.Push(t.Context())
		h.left = 1
		a.steps(4 * 60 * 5) // five hours
		keys, _ := shared.List(t.Context(), "site/objects", false)
		for _, key := range keys {
			if !strings.HasSuffix(key, ".0") {
				t.Errorf("%s is left", key)
			}
		}
	})
}

// refusing is a storage that refuses to delete the second part of something, a number of times.
type refusing struct {
	record.Storage
	left int
}

func (r *refusing) Delete(ctx context.Context, key string) error {
	if strings.HasSuffix(key, ".1") && r.left > 0 {
		r.left--
		return errors.New("a time-out")
	}
	return r.Storage.Delete(ctx, key)
}

// TestDamagedCurrent: a new process that once reads a damaged current, which the docs say is tolerated, or gets a write
// refused, does not lose what others have published.
func TestDamagedCurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := record.NewMemory()
		a := newPlain(t, record.NewMemory(), shared)
		a.commit("one", "two")
		a.steps(3)
		_ = a.Resign(t.Context())
		before := currentOf(t, shared)
		b := newPlain(t, record.NewMemory(), &garbled{Storage: shared, left: 1})
		b.steps(5)
		after := currentOf(t, shared)
		if after.Manifest != before.Manifest {
			t.Errorf("the storage names %q, want %q", after.Manifest, before.Manifest)
		}
	})
}

// TestMalformedCurrent: where what says who leads is no JSON, and nobody writes it again, a process leads all the same.
func TestMalformedCurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := record.NewMemory()
		_ = shared.Store(t.Context(), "site/current", []byte("who leads"))
		a := newPlain(t, record.NewMemory(), shared)
		a.steps(7)
		if !a.Leads() {
			t.Error("it does not lead")
		}
	})
}

// garbled is a storage that returns damaged values of current, a number of times.
type garbled struct {
	record.Storage
	left int
}

func (g *garbled) Load(ctx context.Context, key string) ([]byte, error) {
	data, err := g.Storage.Load(ctx, key)
	if path.Base(key) == "current" && g.left > 0 {
		g.left--
		return data[:len(data)/2], err
	}
	return data, err
}
