package indexing

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// large is a site of n pages in folders of 200; special: half of them name another page as their canonical.
func large(t testing.TB, n int, special bool) *store.Generation {
	records := make([]store.Record, n)
	for i := range records {
		r := rec(fmt.Sprintf("/docs/section-%04d/some-page-%07d.html linked file =%d first:day0 mod:day0+%ds declared:day0+%ds", i/200, i, i, 7*i, 11*i))
		if special && i%2 == 1 {
			r.Canonical = records[i-1].Path
		}
		records[i] = r
	}
	return generation(t, 5000, records)
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
