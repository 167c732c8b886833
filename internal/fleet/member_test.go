package fleet

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/persist"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

func TestBeginning(t *testing.T) {
	for _, test := range []struct {
		isKnown bool
		waited  time.Duration
		want    Beginning
	}{
		{true, 0, Joins},
		{true, time.Hour, Joins},
		{false, 0, Waits},
		{false, time.Minute - 1, Waits},
		{false, time.Minute, Begins},
		{false, time.Hour, Begins},
		{false, -time.Hour, Waits}, // the clock was set back
	} {
		if got := beginning(test.isKnown, test.waited, time.Minute); got != test.want {
			t.Errorf("%+v: got %d", test, got)
		}
	}
}

// member returns a Member on a storage.
func member(f *fake) *Member {
	m := NewMember(MemberOptions{Site: "site", Group: "site", Interval: time.Minute, RecordsPrefix: "any", Now: time.Now})
	m.Configure(&client{fake: f}, 0)
	return m
}

// join joins, without anything that is loaded.
func join(t *testing.T, m *Member, st persist.Standing) (persist.Role, error) {
	t.Helper()
	role, release, err := m.Join(t.Context(), func() persist.Standing { return st }, func() {})
	if release != nil {
		release()
	}
	return role, err
}

// TestJoinWaits: a process that serves nothing is no writer before the storage was read, or its patience is over.
func TestJoinWaits(t *testing.T) {
	bubble(t, "", func(t *testing.T, f *fake) {
		nothing, something := persist.Standing{}, persist.Standing{Serves: true}
		f.set(faults{fail: 1})
		m, begun := member(f), time.Now()
		m.SetPatience(time.Hour)
		for range 3 {
			if role, err := join(t, m, nothing); role != persist.Later || err != nil {
				t.Errorf("after %s: role %d, %v", time.Since(begun), role, err)
			}
			if role, err := join(t, m, persist.Standing{Demanded: true}); role != persist.Later || !errors.Is(err, ErrWaits) {
				t.Errorf("an operator requests a refresh after %s: role %d, %v", time.Since(begun), role, err)
			}
			if due := m.DueFor(nothing); !due.Equal(begun.Add(time.Hour)) {
				t.Errorf("due after %s", due.Sub(begun))
			}
			time.Sleep(time.Hour / 3)
		}
		if m.IsAlone() {
			t.Error("it is alone before it has begun")
		}
		if role, err := join(t, m, nothing); role != persist.Writer || err != nil || !m.IsAlone() {
			t.Errorf("after its patience: role %d, %v, alone: %t", role, err, m.IsAlone())
		}
		// It goes on like that with what it has found, as long as the storage fails.
		if role, err := join(t, m, something); role != persist.Writer || err != nil {
			t.Errorf("once it serves that: role %d, %v", role, err)
		}
		f.set(faults{})
		time.Sleep(2 * lockFor) // some of the locks may have been granted
		if _ = m.Poll(t.Context()); m.IsAlone() || m.Beginning() != Joins {
			t.Error("it is known that there is nothing, and it is alone")
		}
	})
}

// TestDefaultPatience: where no patience is set, a process that has nothing to serve waits for the storage for ten minutes.
func TestDefaultPatience(t *testing.T) {
	bubble(t, "", func(t *testing.T, f *fake) {
		f.set(faults{fail: 1})
		m := member(f)
		begun := time.Now()
		if role, err := join(t, m, persist.Standing{}); role != persist.Later || err != nil {
			t.Errorf("role %d, %v", role, err)
		}
		if got := m.DueFor(persist.Standing{}).Sub(begun); got != 10*time.Minute {
			t.Errorf("due after %s, want 10m", got)
		}
		time.Sleep(2 * lockFor)
	})
}

// TestVisitedComesFirst: a process whose visitors have requested something new is due before the others.
func TestVisitedComesFirst(t *testing.T) {
	bubble(t, "", func(t *testing.T, f *fake) {
		if err := commit(member(f).Node, "1"); err != nil {
			t.Fatal(err)
		}
		m := member(f)
		_ = m.Poll(t.Context())
		usual := m.DueFor(persist.Standing{Serves: true})
		visited := m.DueFor(persist.Standing{Serves: true, Visited: 1})
		if !visited.Before(usual) {
			t.Errorf("with a visit it is due at %s, else at %s", visited, usual)
		}
	})
}

// TestJoinRestored: a process that serves what its copies have waits for nothing, but refreshes nothing while the storage fails.
func TestJoinRestored(t *testing.T) {
	bubble(t, "", func(t *testing.T, f *fake) {
		f.set(faults{fail: 1})
		m := member(f)
		m.SetPatience(time.Second)
		time.Sleep(time.Minute)
		role, err := join(t, m, persist.Standing{Serves: true})
		if role != persist.Later || err == nil || m.IsAlone() {
			t.Errorf("role %d, %v, alone: %t", role, err, m.IsAlone())
		}
		time.Sleep(2 * lockFor)
	})
}

// TestJoinEmpty: where the storage says that there is nothing, a process begins at once.
func TestJoinEmpty(t *testing.T) {
	bubble(t, "", func(t *testing.T, f *fake) {
		m := member(f)
		if err := m.Poll(context.Background()); err != nil {
			t.Fatal(err)
		}
		if role, err := join(t, m, persist.Standing{}); role != persist.Writer || err != nil || m.IsAlone() {
			t.Errorf("role %d, %v, alone: %t", role, err, m.IsAlone())
		}
		time.Sleep(2 * lockFor)
	})
}

// TestLastCopy: a store can be opened from the copies alone. What there is no good copy of is lost.
func TestLastCopy(t *testing.T) {
	bubble(t, "", func(t *testing.T, f *fake) {
		local := store.NewMemory()
		n := node(f, local)
		s, err := store.Open(t.Context(), n, store.Options{Prefix: "any"})
		if err != nil {
			t.Fatal(err)
		}
		n.Adopt(t.Context(), false)
		n.Begin()
		n.Plan(time.Minute)
		a := store.NewDocument("a", nil, []byte("a"))
		b := store.NewDocument("b", nil, []byte("b"))
		err = s.Commit(t.Context(), s.Last().WithDocuments(nil, []store.StoredDocument{a, b}))
		if err != nil {
			t.Fatal(err)
		}
		err = local.Store(t.Context(), folder+"/"+store.Hash([]byte("a")), []byte("damaged"))
		if err != nil {
			t.Fatal(err)
		}
		s, err = store.Open(t.Context(), lastCopy{n.copies}, store.Options{Prefix: "any"})
		if err != nil || len(s.Last().Documents()) != 2 {
			t.Fatalf("%v, or it has not both documents", err)
		}
		if data, err := s.Last().Document(t.Context(), 1); err != nil || string(data) != "b" {
			t.Errorf("got %q, %v", data, err)
		}
		if _, err := s.Last().Document(t.Context(), 0); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("a damaged copy: error %v", err)
		}
	})
}
