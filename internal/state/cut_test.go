package state

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// cutPaths cuts paths as a draft would.
func cutPaths(paths []string) [][]string {
	var pieces [][]string
	from, bytes := 0, 0
	for i, p := range paths {
		if begins(p, i-from, bytes) {
			pieces = append(pieces, paths[from:i])
			from, bytes = i, 0
		}
		bytes += len(p)
	}
	return append(pieces, paths[from:])
}

// rewritten counts the pieces of b that a does not have.
func rewritten(a, b [][]string) int {
	have := make(map[string][]string, len(a))
	for _, piece := range a {
		have[piece[0]] = piece
	}
	n := 0
	for _, piece := range b {
		if !slices.Equal(have[piece[0]], piece) {
			n++
		}
	}
	return n
}

// TestCuts inserts and removes single pages: nearly always one piece or two are
// other ones then.
func TestCuts(t *testing.T) {
	for _, test := range []struct {
		name     string
		n, times int
		path     func(i int) string
	}{
		{"short", 60_000, 150, func(i int) string { return fmt.Sprintf("/folder-%04d/page-%07d.html", i/200, i*2) }},
		{"long", 20_000, 60, func(i int) string { return fmt.Sprintf("/%s/%07d", strings.Repeat("long-", 100), i*2) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			paths := make([]string, test.n)
			for i := range paths {
				paths[i] = test.path(i)
			}
			before := cutPaths(paths)
			t.Logf("%d pieces", len(before))
			for i, piece := range before {
				if len(piece) > maxRecords {
					t.Errorf("piece %d has %d records", i, len(piece))
				}
			}
			r := rand.New(rand.NewPCG(1, 1))
			over := 0
			for range test.times {
				at := r.IntN(len(paths))
				if rewritten(before, cutPaths(slices.Insert(slices.Clone(paths), at, paths[at][:len(paths[at])-1]))) > 2 {
					over++
				}
				if rewritten(before, cutPaths(slices.Delete(slices.Clone(paths), at, at+1))) > 2 {
					over++
				}
			}
			if over > 2*test.times/100 {
				t.Errorf("more than two pieces were rewritten in %d of %d", over, 2*test.times)
			}
		})
	}
}

// TestHistory writes the same pages at once and by many steps: the pieces are the
// same, and each step stores few.
func TestHistory(t *testing.T) {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(9, 9))
	records := realistic(30_000)
	fresh := write(t, empty(t), records, 2)
	late := map[int]bool{0: true, len(records) - 1: true}
	for range 20 {
		late[r.IntN(len(records))] = true
	}
	var early []Record
	for i := range records {
		if !late[i] {
			early = append(early, records[i])
		}
	}
	b := write(t, empty(t), early, 1)
	for i := range late {
		before := b
		b = insert(t, b, &records[i])
		if n := changed(before, b); n == 0 || n > 4 {
			t.Errorf("inserting one record: %d pieces changed", n)
		}
	}
	if len(b.pieces) != len(fresh.pieces) {
		t.Fatalf("%d pieces, want %d", len(b.pieces), len(fresh.pieces))
	}
	for i, p := range b.pieces {
		if !p.equal(fresh.pieces[i]) {
			t.Errorf("piece %d differs", i)
		}
	}
	expectTidy(t, b)
	// What is there again is carried over.
	if again := insert(t, b, &Record{Page: page.Page{Path: records[77].Page.Path}}); again == b {
		t.Error("a changed record was not stored")
	} else if back := must(again.Update(ctx, []string{records[77].Page.Path}, func(r *Record) bool {
		*r = records[77]
		return true
	}))(t); back.Len() != len(records) || !back.pieces[0].equal(fresh.pieces[0]) {
		t.Error("a change that was undone left something")
	}
}

// insert adds or replaces one record and keeps all others.
func insert(t *testing.T, b *Book, rec *Record) *Book {
	t.Helper()
	ctx := context.Background()
	d := b.Draft(ctx, 1)
	in := func() {
		if rec != nil {
			if err := d.Add(rec); err != nil {
				t.Fatal(err)
			}
			rec = nil
		}
	}
	err := b.Records(ctx, func(r *Record) error {
		if rec != nil && rec.Page.Path <= r.Page.Path {
			same := rec.Page.Path == r.Page.Path
			if in(); same {
				return nil
			}
		}
		return d.Keep(r)
	})
	if err != nil {
		t.Fatal(err)
	}
	in()
	return must(d.Commit(ctx))(t)
}
