package gather

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// pathsOf is a stream of pages that have paths alone.
func pathsOf(paths ...string) Stream {
	var pages []page.Page
	for _, path := range paths {
		pages = append(pages, page.Page{Path: path})
	}
	return streamOf(pages)
}

// failing is s that then fails.
func failing(s Stream, err error) Stream {
	return func(ctx context.Context, yield func(page.Page) error) error {
		if err := s(ctx, yield); err != nil {
			return err
		}
		return err
	}
}

// stubborn is s that does not heed yield's errors.
func stubborn(s Stream) Stream {
	return func(ctx context.Context, yield func(page.Page) error) error {
		return s(ctx, func(p page.Page) error {
			yield(p)
			return nil
		})
	}
}

// checkClean fails the test where a goroutine or a file is left.
func checkClean(t *testing.T, dir string) {
	t.Helper()
	if dir != "" {
		left, err := os.ReadDir(dir)
		if err != nil || len(left) > 0 {
			t.Errorf("files are left: %v, %v", left, err)
		}
	}
	stacks := make([]byte, 1<<20)
	for end := time.Now().Add(time.Second); ; runtime.Gosched() {
		all := string(stacks[:runtime.Stack(stacks, true)])
		// A goroutine that is done may still be on its way out.
		if !strings.Contains(all, "gather.(*gatherer)") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("goroutines are left:\n%s", all)
		}
	}
}

// gatherAll gathers and checks that nothing is left.
func gatherAll(t *testing.T, inputs []Input, o Options) (pages []page.Page, failed []InputError, err error) {
	t.Helper()
	o.Dir = t.TempDir()
	failed, err = Gather(t.Context(), inputs, o, func(p page.Page) error {
		pages = append(pages, p)
		return nil
	})
	checkClean(t, o.Dir)
	return pages, failed, err
}

func paths(pages []page.Page) string {
	var all []string
	for _, p := range pages {
		all = append(all, p.Path)
	}
	return strings.Join(all, " ")
}

// options are the ways in which small inputs can be gathered.
func options() map[string]Options {
	return map[string]Options{
		"": {}, "parallel": {Parallel: true}, "spilling": {Memory: 1}, "spilling in parallel": {Memory: 1, Parallel: true},
	}
}

// naive does what Gather does, in the most obvious way.
func naive(inputs [][]page.Page) []page.Page {
	all := slices.Concat(inputs...)
	slices.SortStableFunc(all, page.Compare)
	var merged []page.Page
	for _, p := range all {
		if n := len(merged); n > 0 && merged[n-1].Path == p.Path {
			merged[n-1].Merge(p)
			continue
		}
		merged = append(merged, p)
	}
	return merged
}

func TestGatherRandom(t *testing.T) {
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 0))
		var inputs []Input
		var all [][]page.Page
		for i := range r.IntN(6) {
			pages := randomPages(r, r.IntN(1+r.IntN(1500)))
			sorted := r.IntN(2) == 0
			if sorted {
				slices.SortStableFunc(pages, page.Compare)
			}
			inputs = append(inputs, Input{Name: fmt.Sprint(i), Pages: streamOf(pages), Sorted: sorted})
			all = append(all, pages)
		}
		o := Options{Memory: 1 + r.Int64N(1<<(1+r.IntN(20))), Parallel: r.IntN(2) == 0}
		got, failed, err := gatherAll(t, inputs, o)
		if want := naive(all); failed != nil || err != nil || !slices.Equal(got, want) {
			t.Fatalf("seed %d, %+v: got %d pages, %v, %v, want %d", seed, o, len(got), failed, err, len(want))
		}
	}
}

func randomPages(r *rand.Rand, n int) []page.Page {
	prefix := strings.Repeat("/long", r.IntN(5))
	var pages []page.Page
	for range n {
		path := []byte(prefix + "/")
		for range r.IntN(1 + r.IntN(20)) {
			path = append(path, "ab/\x00\xff"[r.IntN(5)])
		}
		p := page.Page{Path: string(path), Discovered: r.IntN(2) == 0}
		if r.IntN(2) == 0 {
			p.LastMod, p.LastModDay = r.Int64()-r.Int64(), r.IntN(2) == 0
			p.Version = r.Uint32()
		}
		if r.IntN(2) == 0 {
			p.ChangeFreq = page.ChangeFreq(r.IntN(8))
		}
		if r.IntN(2) == 0 {
			p.Priority = page.Priority(r.IntN(102))
		}
		pages = append(pages, p)
	}
	return pages
}

func TestGatherMerges(t *testing.T) {
	first := page.Page{Path: "/a", LastMod: 1, ChangeFreq: 3, Discovered: true}
	second := page.Page{Path: "/a", LastMod: 2, LastModDay: true, ChangeFreq: 4, Priority: 5, Version: 6}
	third := page.Page{Path: "/a", LastMod: 1, ChangeFreq: 6, Priority: 7}
	want := page.Page{Path: "/a", LastMod: 2, LastModDay: true, ChangeFreq: 3, Priority: 5, Version: 6}
	for name, o := range options() {
		for kinds := range 8 {
			got, failed, err := gatherAll(t, []Input{
				{Pages: streamOf([]page.Page{first}), Sorted: kinds&1 != 0},
				{Pages: streamOf([]page.Page{second}), Sorted: kinds&2 != 0},
				{Pages: streamOf([]page.Page{third}), Sorted: kinds&4 != 0},
			}, o)
			if failed != nil || err != nil || len(got) != 1 || got[0] != want {
				t.Errorf("%s, %03b: got %+v, %v, %v, want %+v", name, kinds, got, failed, err, want)
			}
		}
		for _, sorted := range []bool{true, false} {
			got, failed, err := gatherAll(t, []Input{{Pages: streamOf([]page.Page{first, second, third}), Sorted: sorted}}, o)
			if failed != nil || err != nil || len(got) != 1 || got[0] != want {
				t.Errorf("%s, one input, sorted %t: got %+v, %v, %v, want %+v", name, sorted, got, failed, err, want)
			}
		}
	}
}

// TestGatherLongPaths has paths about as long as what holds several of them.
func TestGatherLongPaths(t *testing.T) {
	var pages []page.Page
	for i := range 300 {
		length := []int{1, 3, 1 << 10, 1<<16 - 3, 1<<16 - 2, 1<<16 - 1, 1 << 16, 1<<16 + 1, 70_000}[i*7%9]
		pages = append(pages, page.Page{Path: fmt.Sprintf("/%03d", (i*71)%300) + strings.Repeat("a", length), LastMod: int64(i), LastModDay: i%2 == 0, Version: uint32(i)})
	}
	want := naive([][]page.Page{pages})
	for _, memory := range []int64{1, 1 << 20, 1 << 30} {
		got, failed, err := gatherAll(t, []Input{{Pages: streamOf(pages)}}, Options{Memory: memory})
		if failed != nil || err != nil || !slices.Equal(got, want) {
			t.Errorf("memory %d: got %d pages, %v, %v, want %d", memory, len(got), failed, err, len(want))
		}
	}
}

// TestGatherExtensions: who sorts pages has none.
func TestGatherExtensions(t *testing.T) {
	e := &page.Extensions{Images: []string{"/i.png"}}
	pages := []page.Page{{Path: "/a", Version: 1, Extensions: e}, {Path: "/b", Version: 2}, {Path: "/c", Version: 3, Extensions: e}}
	for name, o := range options() {
		for _, sorted := range []bool{true, false} {
			got, failed, err := gatherAll(t, []Input{
				{Pages: pathsOf("/a", "/d"), Sorted: true},
				{Pages: streamOf(pages), Sorted: sorted},
			}, o)
			if failed != nil || err != nil || paths(got) != "/a /b /c /d" {
				t.Fatalf("%s, sorted %t: got %v, %v, %v", name, sorted, got, failed, err)
			}
			for i, p := range pages {
				if !sorted {
					p.Extensions = nil
				}
				if got[i] != p {
					t.Errorf("%s, sorted %t: got %+v, want %+v", name, sorted, got[i], p)
				}
			}
		}
	}
}

func TestGatherEmpty(t *testing.T) {
	for name, o := range options() {
		for _, inputs := range [][]Input{
			nil,
			{{Pages: pathsOf()}},
			{{Pages: pathsOf(), Sorted: true}},
			{{Pages: pathsOf(), Sorted: true}, {Pages: pathsOf(), Sorted: true}, {Pages: pathsOf()}, {Pages: pathsOf()}},
		} {
			if got, failed, err := gatherAll(t, inputs, o); got != nil || failed != nil || err != nil {
				t.Errorf("%s, %d inputs: got %v, %v, %v", name, len(inputs), got, failed, err)
			}
		}
	}
}

func TestGatherInputErrors(t *testing.T) {
	errDisk := errors.New("disk on fire")
	for _, test := range []struct {
		name   string
		bad    Stream
		sorted bool
		want   string // of the bad input's pages and two others', /b and /d
		err    string
		is     error
	}{
		{"sorted", failing(pathsOf("/a", "/c"), errDisk), true, "/a /b /c /d", "bad: disk on fire", errDisk},
		{"unsorted", failing(pathsOf("/c", "/a"), errDisk), false, "/a /b /c /d", "bad: disk on fire", errDisk},
		{"at once", failing(pathsOf(), errDisk), true, "/b /d", "bad: disk on fire", errDisk},
		{"out of order", pathsOf("/c", "/a", "/e"), true, "/b /c /d", "bad: pages are out of order: '/a' after '/c'", ErrOrder},
		{"out of order and stubborn", stubborn(pathsOf("/c", "/a", "/e")), true, "/b /c /d", "bad: pages are out of order: '/a' after '/c'", ErrOrder},
		{"out of order, then failing", failing(stubborn(pathsOf("/c", "/a")), errDisk), true, "/b /c /d", "bad: pages are out of order: '/a' after '/c'", ErrOrder},
		{"no path", pathsOf("/a", "", "/c"), true, "/a /b /d", "bad: a page has no path", ErrNoPath},
		{"no path at once", pathsOf("", "/c"), true, "/b /d", "bad: a page has no path", ErrNoPath},
		{"no path, unsorted", stubborn(pathsOf("/c", "", "/a")), false, "/b /c /d", "bad: a page has no path", ErrNoPath},
	} {
		for name, o := range options() {
			for place := range 3 {
				inputs := []Input{{Name: "b", Pages: pathsOf("/b"), Sorted: true}, {Name: "d", Pages: pathsOf("/d")}}
				inputs = slices.Insert(inputs, place, Input{Name: "bad", Pages: test.bad, Sorted: test.sorted})
				pages, failed, err := gatherAll(t, inputs, o)
				if err != nil || paths(pages) != test.want || len(failed) != 1 {
					t.Fatalf("%s, %s, %d: got %q, %v, %v, want %q", test.name, name, place, paths(pages), failed, err, test.want)
				}
				if f := failed[0]; f.Input != place || f.Error() != test.err || !errors.Is(f, test.is) {
					t.Errorf("%s, %s, %d: got %d %v, want %q", test.name, name, place, f.Input, f, test.err)
				}
			}
		}
	}
}

func TestGatherAlone(t *testing.T) {
	pages, failed, err := gatherAll(t, []Input{{Name: "files", Pages: stubborn(pathsOf("/b", "/b", "/c", "/a", "/d")), Sorted: true}}, Options{})
	if paths(pages) != "/b /c" || err != nil || len(failed) != 1 || failed[0].Error() != "files: pages are out of order: '/a' after '/c'" {
		t.Errorf("got %q, %v, %v", paths(pages), failed, err)
	}
}

// sixInputs are inputs of all kinds, of 3,000 pages each.
func sixInputs(change func(Stream) Stream) []Input {
	var inputs []Input
	for i := range 6 {
		var paths []string
		for k := range 3000 {
			paths = append(paths, fmt.Sprintf("/%05d", 6*k+i))
		}
		sorted := i%2 == 0
		if !sorted {
			slices.Reverse(paths)
		}
		inputs = append(inputs, Input{Name: fmt.Sprint(i), Pages: change(pathsOf(paths...)), Sorted: sorted})
	}
	return inputs
}

func TestGatherYieldFails(t *testing.T) {
	errStop := errors.New("stop")
	for name, change := range map[string]func(Stream) Stream{
		"": func(s Stream) Stream { return s }, "stubborn": stubborn,
	} {
		for _, o := range []Options{{}, {Parallel: true}, {Memory: 20_000}, {Memory: 20_000, Parallel: true}} {
			for _, at := range []int{1, 2, 1000, 17_999, 18_000} {
				o.Dir = t.TempDir()
				n := 0
				failed, err := Gather(t.Context(), sixInputs(change), o, func(page.Page) error {
					if n++; n >= at {
						return errStop
					}
					return nil
				})
				if err != errStop || failed != nil || n != at {
					t.Errorf("%s, %+v, at %d: got %v, %v after %d pages", name, o, at, failed, err, n)
				}
				checkClean(t, o.Dir)
			}
		}
	}
}

func TestGatherCancelled(t *testing.T) {
	blocked := func(ctx context.Context, yield func(page.Page) error) error {
		<-ctx.Done()
		return errors.New("some error of its own")
	}
	quiet := func(ctx context.Context, yield func(page.Page) error) error {
		<-ctx.Done()
		return nil
	}
	for _, o := range []Options{{}, {Parallel: true}, {Memory: 20_000}, {Memory: 20_000, Parallel: true}} {
		// While pages are yielded.
		o.Dir = t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		failed, err := Gather(ctx, sixInputs(stubborn), o, func(page.Page) error {
			if n++; n == 100 {
				cancel()
			}
			return nil
		})
		if err != context.Canceled || failed != nil || n > 100+1024 {
			t.Errorf("%+v: got %v, %v after %d pages", o, failed, err, n)
		}
		checkClean(t, o.Dir)

		// While an input of each kind is waited for, whatever it says.
		for place := range 7 {
			for _, sorted := range []bool{true, false} {
				for _, s := range []Stream{blocked, quiet} {
					ctx, cancel := context.WithCancel(t.Context())
					inputs := slices.Insert(sixInputs(stubborn), place, Input{Pages: func(ctx context.Context, yield func(page.Page) error) error {
						cancel()
						return s(ctx, yield)
					}, Sorted: sorted})
					failed, err := Gather(ctx, inputs, o, func(page.Page) error { return nil })
					if err != context.Canceled || failed != nil {
						t.Errorf("%+v, place %d, sorted %t: got %v, %v", o, place, sorted, failed, err)
					}
					checkClean(t, o.Dir)
				}
			}
		}

		// Before it began.
		ctx, cancel = context.WithCancel(t.Context())
		cancel()
		failed, err = Gather(ctx, sixInputs(stubborn), o, func(page.Page) error { t.Error("a page"); return nil })
		if err != context.Canceled || failed != nil {
			t.Errorf("%+v, cancelled before: got %v, %v", o, failed, err)
		}
		checkClean(t, o.Dir)
	}
}

func TestGatherPanics(t *testing.T) {
	errAbort := errors.New("abort")
	panicking := func(ctx context.Context, yield func(page.Page) error) error {
		if err := yield(page.Page{Path: "/00000"}); err != nil {
			return err
		}
		panic(errAbort)
	}
	for _, o := range []Options{{}, {Parallel: true}, {Memory: 20_000}, {Memory: 20_000, Parallel: true}} {
		for place := range 8 {
			for _, sorted := range []bool{true, false} {
				o.Dir = t.TempDir()
				yield := func(page.Page) error { return nil }
				inputs := sixInputs(stubborn)
				if place < 7 {
					inputs = slices.Insert(inputs, place, Input{Name: "bad", Pages: panicking, Sorted: sorted})
				} else {
					yield = func(page.Page) error { panic(errAbort) }
				}
				func() {
					defer func() {
						err, _ := recover().(error)
						var p *Panic
						if errors.As(err, &p) && (p.Name != "bad" || !strings.Contains(p.Error(), "TestGatherPanics")) {
							t.Errorf("got %v", p)
						}
						if !errors.Is(err, errAbort) {
							t.Errorf("%+v, place %d, sorted %t: got %v", o, place, sorted, err)
						}
					}()
					failed, err := Gather(t.Context(), inputs, o, yield)
					t.Errorf("%+v, place %d, sorted %t: got %v, %v, no panic", o, place, sorted, failed, err)
				}()
				checkClean(t, o.Dir)
			}
		}
	}
}

func TestGatherGoexit(t *testing.T) {
	exits := func(ctx context.Context, yield func(page.Page) error) error {
		yield(page.Page{Path: "/c"})
		yield(page.Page{Path: "/d"})
		runtime.Goexit()
		return nil
	}
	pages, failed, err := gatherAll(t, []Input{
		{Name: "driver", Pages: pathsOf("/b"), Sorted: true}, {Name: "feed", Pages: exits, Sorted: true},
		{Name: "one", Pages: exits}, {Name: "two", Pages: pathsOf("/a")},
	}, Options{Parallel: true})
	if err != nil || paths(pages) != "/a /b /c /d" || len(failed) != 2 || failed[0].Input != 1 || failed[1].Err != errGoexit {
		t.Errorf("got %q, %v, %v", paths(pages), failed, err)
	}
}

func TestGatherDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "missing")
	for _, parallel := range []bool{false, true} {
		var pages []page.Page
		inputs := []Input{{Name: "files", Pages: pathsOf("/c", "/d"), Sorted: true}, {Name: "urls", Pages: stubborn(pathsOf("/b", "/a"))}, {Name: "few", Pages: pathsOf()}}
		failed, err := Gather(t.Context(), inputs, Options{Memory: 1, Dir: dir, Parallel: parallel}, func(p page.Page) error {
			pages = append(pages, p)
			return nil
		})
		if err != nil || paths(pages) != "/b /c /d" || len(failed) != 1 || failed[0].Input != 1 || !errors.Is(failed[0], os.ErrNotExist) {
			t.Errorf("got %q, %v, %v", paths(pages), failed, err)
		}
		if len(failed) == 1 && !strings.HasPrefix(failed[0].Error(), "urls: spilling pages: open "+dir) {
			t.Errorf("got %v", failed[0])
		}
	}
}

// TestGatherPinsNothing has pages whose paths are parts of long lines.
func TestGatherPinsNothing(t *testing.T) {
	const n, line = 2000, 32 << 10
	long := func(ctx context.Context, yield func(page.Page) error) error {
		for i := range n {
			s := fmt.Sprintf("/%d", i) + strings.Repeat(" ", line)
			if err := yield(page.Page{Path: s[:strings.IndexByte(s, ' ')]}); err != nil {
				return err
			}
		}
		return nil
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var kept []page.Page
	_, err := Gather(t.Context(), []Input{{Pages: long}}, Options{}, func(p page.Page) error {
		if kept = append(kept, p); len(kept) == 1 {
			runtime.GC()
			runtime.ReadMemStats(&after)
		}
		return nil
	})
	if err != nil || len(kept) != n {
		t.Fatalf("got %d pages, %v", len(kept), err)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > n*line/4 {
		t.Errorf("%d bytes are held for %d short paths", grown, n)
	}
}

func TestTableSort(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 200 {
		var tab table
		tab.init(1 << 20)
		pages := randomPages(r, 1+r.IntN(2000))
		if round%5 == 0 { // equal paths, and such as begin with others
			for i := range pages {
				pages[i].Path = strings.Repeat("/a", 1+r.IntN(40)) + strings.Repeat("\x00", r.IntN(3))
			}
		}
		for _, p := range pages {
			tab.add(p)
		}
		tab.sort()
		ok := slices.IsSortedFunc(tab.records, func(a, b record) int {
			return cmp.Or(strings.Compare(string(tab.path(&a)), string(tab.path(&b))), cmp.Compare(a.chunk, b.chunk), cmp.Compare(a.offset, b.offset))
		})
		if !ok || len(tab.records) != len(pages) {
			t.Fatalf("round %d: %d records, sorted %t", round, len(tab.records), ok)
		}
	}
}
