package schedule

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// orderOf returns the ranks of so many turns, by their initials, of a line in which so many of each rank wait.
func orderOf(named, known, fresh, turns int, may func(Rank) bool) string {
	var l Line[int]
	n := 0
	for of, count := range []int{named, known, fresh} {
		for range count {
			n++
			l.Add(Rank(of), n)
		}
	}
	var order strings.Builder
	for range turns {
		_, of, ok := l.Next(may)
		if !ok {
			break
		}
		order.WriteByte("nkf"[of])
	}
	return order.String()
}

// TestLine: each rank has its share of the turns, whoever else waits, and however many.
func TestLine(t *testing.T) {
	all := func(Rank) bool { return true }
	for name, test := range map[string]struct {
		named, known, fresh, turns int
		may                        func(Rank) bool
		want                       map[string]int // turns by rank
	}{
		"all wait":                {1000, 1000, 1000, 90, all, map[string]int{"n": 50, "k": 30, "f": 10}},
		"many are made up":        {60, 60, 10_000, 90, all, map[string]int{"n": 50, "k": 30, "f": 10}},
		"none is known":           {1000, 0, 1000, 90, all, map[string]int{"n": 75, "f": 15}},
		"none is named":           {0, 1000, 1000, 80, all, map[string]int{"k": 60, "f": 20}},
		"new ones alone":          {0, 0, 1000, 80, all, map[string]int{"f": 80}},
		"a few known ones":        {0, 3, 1000, 80, all, map[string]int{"k": 3, "f": 77}},
		"no place for named ones": {1000, 1000, 1000, 80, func(of Rank) bool { return of != Named }, map[string]int{"k": 60, "f": 20}},
		"no place at all":         {1000, 1000, 1000, 80, func(Rank) bool { return false }, map[string]int{}},
	} {
		order := orderOf(test.named, test.known, test.fresh, test.turns, test.may)
		for _, of := range []string{"n", "k", "f"} {
			if got := strings.Count(order, of); got != test.want[of] {
				t.Errorf("%s: got %d turns of %s, want %d: %s", name, got, of, test.want[of], order)
			}
		}
	}
	if got := orderOf(2, 2, 2, 6, all); got[0] != 'n' || got[1] != 'k' {
		t.Errorf("got %s: at first, all ranks have waited as long", got)
	}
}

// TestLineSavesNothingUp: a rank that did not wait has no more turns for it later, nor has one that had them alone fewer.
func TestLineSavesNothingUp(t *testing.T) {
	for _, alone := range []Rank{Named, Known, Fresh} {
		var l Line[int]
		next := func() Rank {
			_, of, _ := l.Next(func(Rank) bool { return true })
			return of
		}
		for i := range 1000 {
			l.Add(alone, i)
			next()
		}
		counts := make(map[Rank]int)
		for _, of := range []Rank{Named, Known, Fresh} {
			l.Add(of, 0)
		}
		for range 90 {
			of := next()
			counts[of]++
			l.Add(of, 0)
		}
		if n := counts[Named]; n < 49 || n > 51 {
			t.Errorf("after %d alone: named ones have %d of 90 turns", alone, n)
		}
		if n := counts[Fresh]; n < 9 || n > 11 {
			t.Errorf("after %d alone: fresh ones have %d of 90 turns", alone, n)
		}
	}
}

// TestLineNoPlace: who waits for a place while others have turns does not have all the turns afterwards. Else named sites
// would wait for as long as the upstreams of made-up hosts have hung.
func TestLineNoPlace(t *testing.T) {
	var l Line[int]
	for i := range 1000 {
		l.Add(Named, i)
		l.Add(Fresh, i)
	}
	for range 600 {
		l.Next(func(of Rank) bool { return of == Named })
	}
	named := 0
	for range 60 {
		_, of, _ := l.Next(func(Rank) bool { return true })
		if of == Named {
			named++
		}
	}
	if named < 49 || named > 51 {
		t.Errorf("named ones have %d of 60 turns, want 50", named)
	}
}

// TestLineOrder: within a rank, who came first comes first, and who has left has no turn.
func TestLineOrder(t *testing.T) {
	var l Line[string]
	for _, name := range []string{"a", "b", "c", "d"} {
		l.Add(Fresh, name)
	}
	if !l.Remove(Fresh, "b") || l.Remove(Fresh, "b") || l.Remove(Known, "a") {
		t.Error("who waits is removed once, by its rank")
	}
	if late := l.Reject(func(name string) bool { return name == "c" }); len(late) != 1 || late[0] != "c" {
		t.Errorf("got %q, want c", late)
	}
	var order string
	for name, _, ok := l.Next(func(Rank) bool { return true }); ok; name, _, ok = l.Next(func(Rank) bool { return true }) {
		order += name
	}
	if order != "ad" {
		t.Errorf("got %s, want ad", order)
	}
	if !l.IsEmpty() {
		t.Error("who had a turn still waits")
	}
	if l.Add(Known, "e"); l.IsEmpty() {
		t.Error("nobody waits, and somebody was added")
	}
}

// TestTurns: fresh hosts leave half of the places to others, and what is given back goes to who waits.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(4)
		var running [ranks]int
		take := func(of Rank) {
			go func() {
				if turns.Take(t.Context(), of) {
					running[of]++
				}
			}()
			synctest.Wait()
		}
		for range 10 {
			take(Fresh)
		}
		take(Known)
		take(Named)
		take(Named)
		if want := [ranks]int{Named: 1, Known: 1, Fresh: 2}; running != want {
			t.Errorf("got %v, want %v", running, want)
		}
		turns.Release(Known)
		synctest.Wait()
		turns.Release(Fresh)
		synctest.Wait()
		if want := [ranks]int{Named: 2, Known: 1, Fresh: 3}; running != want {
			t.Errorf("after two have ended: got %v, want %v", running, want)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if turns.Take(ctx, Known) {
			t.Error("there is a turn, although all places are taken")
		}
		turns.Release(Named)
		if !turns.Take(t.Context(), Known) {
			t.Error("who has given up has kept the turn")
		}
		for range 7 {
			turns.Release(Fresh)
			synctest.Wait()
		}
	})
}
