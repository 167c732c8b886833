package discover

import (
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"
)

// somePaths are n paths of 40 to 60 bytes, in no order.
func somePaths(n int) []string {
	r := rand.New(rand.NewPCG(1, 1))
	words := []string{"news", "sports", "articles", "products", "archive", "guides", "people", "places"}
	endings := []string{"", ".html", "-of-the-year", "-and-more/"}
	paths := make([]string, n)
	for i := range paths {
		paths[i] = fmt.Sprintf("/%s/%s/%d/a-page-about-%07x%s", words[r.IntN(8)], words[r.IntN(8)], 2000+r.IntN(27), i*0x9E3779B1&0xFFFFFFF, endings[r.IntN(4)])
	}
	return paths
}

// full is a catalog of paths, all linked and visited.
func full(paths []string) *Catalog {
	c := NewCatalog()
	c.Configure(Options{MaxPaths: max(len(paths), DefaultMaxPaths), MaxPerPattern: len(paths)})
	for i, path := range paths {
		c.Visit(FromTraffic, path, day+int64(i%86400), "192.0.2.1", uint32(i)*2654435761)
	}
	r := c.Round(1, true)
	for len(paths) > 0 {
		n := min(100, len(paths))
		r.Page(0, "/", paths[:n])
		paths = paths[n:]
	}
	r.End(day + 86400)
	return c
}

func liveHeap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestMemory measures what a path costs. It depends on how far segments are from being
// split, and so on the number of paths.
func TestMemory(t *testing.T) {
	counts := []int{600_000, 1_000_000}
	if slow {
		counts = []int{20_000}
	}
	for _, n := range counts {
		paths := somePaths(n)
		bytes := 0
		for _, path := range paths {
			bytes += len(path)
		}
		before := liveHeap()
		c := full(paths)
		each := float64(liveHeap()-before) / float64(n)
		if s := c.Stats(); s.Paths != n || s.Linked != n || s.Links != n {
			t.Errorf("got %+v", s)
		}
		t.Logf("%d paths of %.1f bytes cost %.1f bytes each", n, float64(bytes)/float64(n), each)
		if each > 160 && !slow {
			t.Errorf("a path costs %.1f bytes", each)
		}
		runtime.KeepAlive(paths)
	}
}

func BenchmarkVisit(b *testing.B) {
	for _, n := range []int{1000, 1_000_000} {
		paths := somePaths(n)
		c := full(paths)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i = (i + 7919) % n
				c.Visit(FromTraffic, paths[i], day, "192.0.2.1", 0)
			}
		})
	}
	b.Run("unlinked", func(b *testing.B) {
		c := NewCatalog()
		c.Configure(Options{Unlinked: []Unlinked{{Match: patternsOf(b, "/p/*"), MinVisitors: 5}}})
		b.ReportAllocs()
		for b.Loop() {
			c.Visit(FromTraffic, "/p/some-page-that-nobody-links-to.html", day, "192.0.2.1", 0)
		}
	})
}

// BenchmarkInvented takes paths that nobody has seen before, far more than are kept.
func BenchmarkInvented(b *testing.B) {
	c := NewCatalog()
	c.Configure(Options{MaxPaths: 100_000})
	path := []byte("/some/path/that-somebody-invented-00000000000000000000")
	r := rand.New(rand.NewPCG(2, 2))
	b.ReportAllocs()
	at := int64(day)
	for b.Loop() {
		at++
		for i := range 16 {
			path[len(path)-1-i] = byte('a' + r.IntN(26))
		}
		c.Visit(FromTraffic, string(path), at, "192.0.2.1", 0)
	}
}

func BenchmarkRound(b *testing.B) {
	paths := somePaths(1_000_000)
	c := full(paths)
	b.ReportAllocs()
	for b.Loop() {
		r := c.Round(1, true)
		for i := 0; i < len(paths); i += 100 {
			r.Page(0, "/", paths[i:i+100])
		}
		r.End(day)
	}
}

func BenchmarkEncode(b *testing.B) {
	c := full(somePaths(1_000_000))
	var w counter
	b.ReportAllocs()
	for b.Loop() {
		w = 0
		if err := c.Encode(&w); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(w)/1e6, "bytes/path")
}

func BenchmarkDecode(b *testing.B) {
	c := full(somePaths(1_000_000))
	r, w := io.Pipe()
	for b.Loop() {
		go func() { _ = c.Encode(w) }()
		if err := NewCatalog().Decode(r); err != nil {
			b.Fatal(err)
		}
	}
}

type counter int

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }
