package indexing

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// large is a site of n pages in folders of 200, of a kind.
func large(t testing.TB, n int, kind string) *record.Generation {
	const versions = 20
	records := make([]record.Record, n)
	for i := range records {
		records[i] = rec(fmt.Sprintf("/docs/section-%04d/some-page-%07d.html linked file =%d first:day0 mod:day0+%ds declared:day0+%ds", i/200, i, i, 7*i, 11*i))
	}
	for i := range records {
		switch r := &records[i]; kind {
		case "canonicals": // of half of the pages
			if i%2 == 1 {
				r.Canonical = records[i-1].Path
			}
		case "versions": // as many templates do, none names itself
			for _, other := range records[i/versions*versions:][:versions] {
				if other.Path != r.Path {
					r.Alternates = append(r.Alternates, alternates("en="+other.Path)...)
				}
			}
		}
	}
	return generation(t, 5000, records)
}

// A selection holds at most 60 bytes a page of an ordinary site, and few once it is made. Pages that name each other share what is
// held of them.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("300,000 pages")
	}
	heap := func() int {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	for _, test := range []struct {
		kind         string
		n            int
		most, remain int
	}{{"ordinary", 150_000, 60, 20}, {"canonicals", 150_000, 100, 40}, {"versions", 30_000, 500, 150}} {
		g := large(t, test.n, test.kind)
		r, before, peak, i := rules(), heap(), 0, 0
		r.Filter = func(*page.Page) string {
			if i++; i%(test.n/20) == 0 || i == test.n {
				peak = max(peak, heap()-before)
			}
			return ""
		}
		s, err := Select(t.Context(), g, r)
		if err != nil {
			t.Fatal(err)
		}
		most := peak / test.n
		remain := (heap() - before) / test.n
		t.Logf("%s: %d bytes a page at the end of the first reading, %d after it", test.kind, most, remain)
		if most > test.most || remain > test.remain {
			t.Errorf("%s: %d bytes a page, then %d", test.kind, most, remain)
		}
		runtime.KeepAlive(s)
		runtime.KeepAlive(g)
	}
}
