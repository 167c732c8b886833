package sitemap

import (
	"math/rand/v2"
	"testing"
	"time"
)

// keys are those of the store's entries that are there.
func (s *store) has(keys ...string) map[string]bool {
	there := make(map[string]bool)
	for _, key := range keys {
		s.mu.Lock()
		if s.entries[key] != nil {
			there[key] = true
		}
		s.mu.Unlock()
	}
	return there
}

func wantStored(t *testing.T, s *store, want ...string) {
	t.Helper()
	there := s.has(want...)
	for _, key := range want {
		if !there[key] {
			t.Errorf("%q is gone", key)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.entries) != len(want) {
		t.Errorf("got %d entries, want %q", len(s.entries), want)
	}
}

// TestReloadAdopts follows the order in which Caddy reloads: the new configuration
// is there before the old one leaves.
func TestReloadAdopts(t *testing.T) {
	s := newStore()
	first := s.join()
	s.settle(first)
	a, b := s.acquire(first, "a"), s.acquire(first, "b")
	if a == b {
		t.Fatal("two keys share what is held")
	}

	second := s.join()
	if s.acquire(second, "a") != a {
		t.Error("a was not adopted while the old configuration had it")
	}
	s.leave(first)
	wantStored(t, s, "a", "b")
	if s.acquire(second, "b") != b {
		t.Error("b was not adopted after the old configuration had left")
	}
	s.settle(second)
	wantStored(t, s, "a", "b")

	third := s.join()
	s.leave(second)
	wantStored(t, s, "a", "b")
	s.acquire(third, "b")
	s.settle(third)
	wantStored(t, s, "b") // nobody adopted a

	s.leave(third)
	wantStored(t, s)
}

// TestFailedReloadLeavesStore is a reload whose configuration never comes to serve.
func TestFailedReloadLeavesStore(t *testing.T) {
	for _, test := range []struct {
		name string
		fail func(*store, *generation)
	}{
		{"provisioned only", func(*store, *generation) {}},
		{"adopted some", func(s *store, g *generation) { s.acquire(g, "a") }},
		{"settled", func(s *store, g *generation) { s.acquire(g, "a"); s.settle(g) }},
		{"released", func(s *store, g *generation) { s.acquire(g, "a"); s.release(g, "a"); s.settle(g) }},
		{"brought its own", func(s *store, g *generation) { s.acquire(g, "c"); s.settle(g) }},
		{"left twice", func(s *store, g *generation) { s.acquire(g, "a"); s.leave(g) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newStore()
			serving := s.join()
			a, b := s.acquire(serving, "a"), s.acquire(serving, "b")
			s.settle(serving)
			failing := s.join()
			test.fail(s, failing)
			s.leave(failing)
			wantStored(t, s, "a", "b")
			if s.acquire(serving, "a") != a || s.acquire(serving, "b") != b {
				t.Error("what the serving configuration holds has changed")
			}
			s.release(serving, "a")
			s.release(serving, "a")
			s.release(serving, "a") // once more than acquired
			wantStored(t, s, "b")
			s.leave(serving)
			wantStored(t, s)
		})
	}
}

// TestStoreInAnyOrder compares the store with a plain account of who uses what, over
// random orders of all its calls.
func TestStoreInAnyOrder(t *testing.T) {
	keys := []string{"a", "b", "c"}
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		s := newStore()
		uses := make(map[*generation]map[string]int)
		helds := make(map[string]*held)
		var generations []*generation
		for step := range 60 {
			if len(generations) == 0 || random.IntN(10) == 0 {
				g := s.join()
				generations = append(generations, g)
				uses[g] = make(map[string]int)
			}
			i := random.IntN(len(generations))
			g, key := generations[i], keys[random.IntN(len(keys))]
			what := ""
			switch random.IntN(5) {
			case 0, 1:
				what = "acquire"
				used := false
				for _, u := range uses {
					used = used || u[key] > 0
				}
				h := s.acquire(g, key)
				if used && h != helds[key] {
					t.Fatalf("seed %d, step %d: another value of %q, which is in use", seed, step, key)
				}
				helds[key] = h
				uses[g][key]++
			case 2:
				what = "release"
				s.release(g, key)
				uses[g][key] = max(uses[g][key]-1, 0)
			case 3:
				what = "settle"
				s.settle(g)
			case 4:
				what = "leave"
				s.leave(g)
				generations = append(generations[:i], generations[i+1:]...)
				delete(uses, g)
			}
			settled := true
			for g := range s.generations {
				settled = settled && g.settled
			}
			for _, key := range keys {
				used := false
				for _, u := range uses {
					used = used || u[key] > 0
				}
				there := s.has(key)[key]
				if used && !there || settled && !used && there && what != "acquire" {
					t.Fatalf("seed %d, step %d, after %s: %q is there: %t, in use: %t", seed, step, what, key, there, used)
				}
			}
		}
		for _, g := range generations {
			s.leave(g)
		}
		wantStored(t, s)
		if len(s.generations) != 0 {
			t.Fatalf("seed %d: %d generations are left", seed, len(s.generations))
		}
	}
}

func TestRemembered(t *testing.T) {
	s := newStore()
	g := s.join()
	at := address{scheme: "http", host: "a.example", folder: "/docs"}
	n := note{at: at, handler: "handler", settings: "these"}
	s.remember("a", n) // of nothing that is held
	s.acquire(g, "a")
	s.remember("a", n)
	for _, settings := range []string{"these", "others"} {
		if got := s.remembered("handler", settings); len(got) != 1 || got[at] != "a" {
			t.Errorf("with %s settings: got %v, want a at %v", settings, got, at)
		}
	}
	if got := s.remembered("other", "these"); len(got) != 0 {
		t.Errorf("another handler's: %v", got)
	}
	next := s.join()
	s.leave(g)
	if got := s.remembered("handler", "these"); got[at] != "a" {
		t.Errorf("the next configuration finds %v", got)
	}
	s.acquire(next, "a")
	s.acquire(next, "b")
	s.remember("b", note{at: at, handler: "handler", settings: "others"})
	s.acquire(next, "c")
	s.remember("c", note{at: at, handler: "handler", settings: "these"})
	for settings, want := range map[string]string{"these": "c", "others": "b", "new": "c"} {
		if got := s.remembered("handler", settings); got[at] != want {
			t.Errorf("of several, with %s settings: got %v, want %s", settings, got, want)
		}
	}
	for _, key := range []string{"a", "b", "c"} {
		s.release(next, key)
	}
	if got := s.remembered("handler", "these"); len(got) != 0 {
		t.Errorf("a site that was given up is remembered: %v", got)
	}
}

func TestInherit(t *testing.T) {
	served, named := new(held), new(held)
	names := &Snapshot{retired: []retiredName{{suffix: "-1"}}}
	named.names.Store(names)
	old := &Snapshot{pages: 1}
	served.snapshot.Store(old)
	for _, test := range []struct {
		name  string
		held  func(*held)
		want  *Snapshot
		names *Snapshot
	}{
		{"new", func(*held) {}, old, names},
		{"has its own", func(h *held) { h.snapshot.Store(testSnapshot) }, testSnapshot, nil},
		{"refreshed, and no page found", func(h *held) { h.begun = time.Unix(1, 0) }, nil, nil},
	} {
		h := new(held)
		test.held(h)
		h.inherit(served, "a")
		if got := h.snapshot.Load(); got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
		if h.inherited != test.want && test.want == old {
			t.Errorf("%s: what was inherited is not known as such", test.name)
		}
		h.inherit(nil, "a")
		if got := h.snapshot.Load(); got != test.want {
			t.Errorf("%s: inheriting nothing changed it", test.name)
		}
		h = new(held)
		test.held(h)
		h.inherit(named, "a")
		if got := h.names.Load(); got != test.names {
			t.Errorf("%s: got the names %v, want %v", test.name, got, test.names)
		}
	}
	// Of one from before a restart, whether it is the same site's as then.
	for settings, same := range map[string]bool{"a": true, "b": false} {
		recalled, h := new(held), new(held)
		recalled.snapshot.Store(old)
		recalled.recalled.Store(&settings)
		h.inherit(recalled, "a")
		if h.snapshot.Load() != old || (h.inherited == nil) != same {
			t.Errorf("%s: got %v, inherited %v", settings, h.snapshot.Load(), h.inherited)
		}
	}
	busy := new(held)
	busy.mu.Lock()
	busy.inherit(served, "a") // does not wait
	if busy.snapshot.Load() != nil {
		t.Error("inherited beside a refresh")
	}
}

var testSnapshot = &Snapshot{pages: 2}
