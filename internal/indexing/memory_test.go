package indexing

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// large is a site of n pages in folders of 200; special: half of them name another page as
// their canonical, and half of the others have a duplicate.
func large(t testing.TB, n int, special bool) *store.Generation {
	s, err := store.Open(t.Context(), store.NewMemory(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, first := s.Last().Writer(), ""
	chunk := make([]store.Record, 0, 5000)
	for i := range n {
		r := rec(fmt.Sprintf("/docs/section-%04d/some-page-%07d.html linked file", i/200, i))
		r.ModTime, r.First, r.Text, r.Declared = day0+int64(i)*7, 7, hash(r.Path), day0+int64(i)*11
		switch {
		case special && i%2 == 1:
			r.Canonical = chunk[len(chunk)-1].Path
		case special && i%4 == 0:
			r.Path = r.Path[:len(r.Path)-5]
			r.Text = hash(r.Path)
		case special:
			r.Path = chunk[len(chunk)-2].Path + "/"
			r.Text = chunk[len(chunk)-2].Text
		}
		if chunk = append(chunk, r); len(chunk) == cap(chunk) || i == n-1 {
			slices.SortFunc(chunk, func(a, b store.Record) int { return strings.Compare(a.Path, b.Path) })
			w.Put(first, chunk, nil, nil)
			chunk, first = chunk[:0], r.Path+"0"
		}
	}
	g, err := w.Generation()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A selection holds at most 60 bytes a page of an ordinary site, and few once it is made.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("300,000 pages")
	}
	const n = 150_000
	heap := func() int {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	for _, test := range []struct {
		special      bool
		most, remain int
	}{{false, 60, 16}, {true, 100, 40}} {
		g := large(t, n, test.special)
		r, before, peak, i := rules(), heap(), 0, 0
		r.Filter = func(*page.Page) string {
			if i++; i%(n/20) == 0 || i == n {
				peak = max(peak, heap()-before)
			}
			return ""
		}
		s, err := Select(t.Context(), g, r)
		if err != nil {
			t.Fatal(err)
		}
		after := heap() - before
		t.Logf("special %t: %d bytes a page at the end of the first reading, %d after it", test.special, peak/n, after/n)
		if peak/n > test.most || after/n > test.remain {
			t.Errorf("special %t: %d bytes a page, then %d", test.special, peak/n, after/n)
		}
		runtime.KeepAlive(s)
		runtime.KeepAlive(g)
	}
}
