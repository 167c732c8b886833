package replica

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"encoding/json"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// hooked is a storage whose calls a test may change.
type hooked struct {
	store.Storage
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
	local store.Storage
	t     *testing.T
}

func newPlain(t *testing.T, local store.Storage, shared store.Storage) *plain {
	n := New(Options{Prefix: "site", Local: local, Records: "any", Value: "value", Hold: func(context.Context) (func(), error) { return func() {}, nil }})
	n.Configure(store.Bounded(shared), 15*time.Second)
	return &plain{n, local, t}
}

// commit makes documents what the local store has.
func (p *plain) commit(docs ...string) {
	s := store.New(p.local, "any")
	if err := s.Open(p.t.Context(), nil); err != nil {
		p.t.Fatal(err)
	}
	w := s.Last().Writer()
	w.Put("", []store.Record{{Path: "/" + docs[0]}}, nil, nil)
	g, _ := w.Generation()
	var all []store.StoredDocument
	for _, d := range docs {
		all = append(all, store.NewDocument(d, nil, []byte(d)))
	}
	m, _ := json.Marshal(docs[0])
	if err := s.Commit(p.t.Context(), g.WithDocuments(m, all)); err != nil {
		p.t.Fatal(err)
	}
}

// meta is the first document of the local store.
func (p *plain) meta() string {
	s := store.New(p.local, "any")
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

func currentOf(t *testing.T, s store.Storage) (c current) {
	data, _ := s.Load(t.Context(), "site/current")
	_ = json.Unmarshal(data, &c)
	return c
}

// TestFailedPull: all processes were stopped, as in a deployment that recreates all pods. A new one with an empty folder
// starts, and one call of the storage fails. What all others had published must not be lost.
func TestFailedPull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := store.NewMemory()
		a := newPlain(t, store.NewMemory(), shared)
		a.commit("one", "two")
		_ = a.local.Store(t.Context(), "value", []byte("the key of IndexNow"))
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
		b := newPlain(t, store.NewMemory(), h)
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
		shared := store.NewMemory()
		a := newPlain(t, store.NewMemory(), shared)
		a.commit("old")
		a.steps(3)
		full := false
		h := &hooked{Storage: store.NewMemory(), store: func(string) error {
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
		c := newPlain(t, store.NewMemory(), shared)
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
		shared := store.NewMemory()
		a := newPlain(t, store.NewMemory(), shared)
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
		b := newPlain(t, store.NewMemory(), h)
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
		shared := store.NewMemory()
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
			p := newPlain(t, store.NewMemory(), h)
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
		shared := store.NewMemory()
		bad := 0
		h := &hooked{Storage: shared, del: func(key string) {
			name, _, _ := strings.Cut(path.Base(key), ".")
			c := currentOf(t, shared)
			m, _ := shared.Load(t.Context(), "site/objects/"+c.Manifest+".0")
			if named(m, c.Value)[name] {
				bad++
			}
		}}
		a := newPlain(t, store.NewMemory(), h)
		a.commit("style", "x")
		a.steps(3)
		a.commit("other", "y")
		_ = a.Push(t.Context()) // drops style
		b := newPlain(t, store.NewMemory(), h)
		b.steps(1)
		_, err := b.Claim(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
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
		_, err = a.Claim(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		a.steps(3)
		c := newPlain(t, store.NewMemory(), shared)
		_, err = c.Step(t.Context())
		if bad > 0 || err != nil {
			t.Errorf("%d objects that are named were deleted; a new process: %v", bad, err)
		}
	})
}

// TestDamagedManifest: a leader whose local manifest is damaged does not make that the newest.
func TestDamagedManifest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := store.NewMemory()
		a := newPlain(t, store.NewMemory(), shared)
		a.commit("one")
		a.steps(3)
		b := newPlain(t, store.NewMemory(), shared)
		b.steps(1)
		key := "any/" + store.ManifestName
		m, _ := a.local.Load(t.Context(), key)
		_ = a.local.Store(t.Context(), key, m[:len(m)/2])
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
		shared := store.NewMemory()
		a := newPlain(t, store.NewMemory(), shared)
		a.commit("one")
		keys, _ := a.local.List(t.Context(), "any/store", false)
		for _, key := range keys {
			if path.Base(key) != "manifest.json" {
				_ = a.local.Store(t.Context(), key, []byte("damaged"))
				break
			}
		}
		a.steps(100)
		if !a.Leads() {
			t.Errorf("after 25 minutes, nobody leads: %+v", a.Status())
		}
	})
}

// TestToldRace: refreshes of two configurations hear followers at a time.
func TestToldRace(t *testing.T) {
	shared := store.NewMemory()
	for i := range 50 {
		_ = shared.Store(t.Context(), fmt.Sprint("site/told/", i), []byte("x"))
	}
	a := newPlain(t, store.NewMemory(), shared)
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
		shared := store.NewMemory()
		h := &refusing{Storage: shared}
		a := newPlain(t, store.NewMemory(), h)
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
	store.Storage
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
		shared := store.NewMemory()
		a := newPlain(t, store.NewMemory(), shared)
		a.commit("one", "two")
		a.steps(3)
		_ = a.Resign(t.Context())
		before := currentOf(t, shared)
		b := newPlain(t, store.NewMemory(), &garbled{Storage: shared, left: 1})
		b.steps(5)
		after := currentOf(t, shared)
		if after.Manifest != before.Manifest {
			t.Errorf("the storage names %q, want %q", after.Manifest, before.Manifest)
		}
	})
}

// garbled is a storage that returns damaged values of current, a number of times.
type garbled struct {
	store.Storage
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
