package merge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type source = func(context.Context, func(page.Page) error) error

func list(pages []page.Page) source {
	return func(_ context.Context, yield func(page.Page) error) error {
		for i := range pages {
			if err := yield(pages[i]); err != nil {
				return err
			}
		}
		return nil
	}
}

// paths yields pages that have only paths, which are separated by spaces.
func paths(s string) source {
	var pages []page.Page
	for path := range strings.FieldsSeq(s) {
		pages = append(pages, page.Page{Path: path})
	}
	return list(pages)
}

// then yields what s does, ignores all errors of yield, and calls end.
func then(s source, end func(ctx context.Context) error) source {
	return func(ctx context.Context, yield func(page.Page) error) error {
		_ = s(ctx, func(p page.Page) error { _ = yield(p); return nil })
		return end(ctx)
	}
}

func hang(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }

// readAll reads a stream to its end, and closes it.
func readAll(t testing.TB, s *Stream) (pages []page.Page) {
	t.Helper()
	defer s.Close()
	for {
		p, ok, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return pages
		}
		pages = append(pages, p)
	}
}

func join(pages []page.Page) string {
	var all []string
	for _, p := range pages {
		all = append(all, p.Path)
	}
	return strings.Join(all, " ")
}

// start starts a stream. Without bounds, there are none.
func start(ctx context.Context, inputs []Input, o Options) *Stream {
	o.MaxPages = cmp.Or(o.MaxPages, math.MaxInt)
	o.Patience = cmp.Or(o.Patience, math.MaxInt64)
	if o.Filter == nil {
		o.Filter = func(*page.Page) string { return "" }
	}
	return Start(ctx, inputs, o)
}

func TestInputs(t *testing.T) {
	errOwn := errors.New("own")
	for _, test := range []struct {
		name  string
		pages source
		want  string
		err   error
	}{
		{name: "nothing", pages: paths("")},
		{name: "in order", pages: paths("/a /c"), want: "/a /c"},
		{name: "duplicates", pages: paths("/a /a /c /c"), want: "/a /c"},
		{name: "failing", pages: then(paths("/a /c"), func(context.Context) error { return errOwn }), want: "/a /c", err: errOwn},
		{name: "hanging", pages: then(paths("/a /c"), hang), want: "/a /c", err: ErrTimeout},
	} {
		for _, sorted := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				s := start(t.Context(), []Input{
					{Name: "first", Sorted: true, Pages: paths("/b")}, {Name: "it", Sorted: sorted, Pages: test.pages},
				}, Options{Patience: time.Minute})
				got := join(readAll(t, s))
				want := append(strings.Fields(test.want), "/b")
				slices.Sort(want)
				if got != strings.Join(want, " ") {
					t.Errorf("%s, sorted %t: got %q, want %q and /b", test.name, sorted, got, test.want)
				}
				var failed []InputError
				if test.err != nil {
					failed = []InputError{{1, "it", test.err}}
				}
				if !slices.Equal(s.Result().Failed, failed) || s.Complete() != (test.err == nil) {
					t.Errorf("%s, sorted %t: got %v, want %v", test.name, sorted, s.Result().Failed, failed)
				}
			})
		}
	}
}

func TestPanic(t *testing.T) {
	panics := then(paths("/a"), func(context.Context) error { panic("oh") })
	s := start(t.Context(), []Input{{Pages: panics, Sorted: true}, {Pages: paths("/b")}}, Options{})
	if got := join(readAll(t, s)); got != "/a /b" {
		t.Errorf("got %q", got)
	}
	var p *PanicError
	if failed := s.Result().Failed; len(failed) != 1 || !errors.As(failed[0].Err, &p) || p.Error() != "panic: oh" || !strings.Contains(string(p.Stack), "TestPanic") {
		t.Errorf("got %v", failed)
	}
}

// TestModel compares random inputs with a naive merge.
func TestModel(t *testing.T) {
	seeds := uint64(100)
	if testing.Short() {
		seeds = 30
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 0))
		var inputs []Input
		var all []page.Page
		total := 0
		for range r.IntN(6) {
			pages := randomPages(r, r.IntN(1+r.IntN(4000)))
			sorted := r.IntN(2) == 0
			if sorted {
				slices.SortStableFunc(pages, page.Compare)
			}
			inputs = append(inputs, Input{Pages: list(slices.Clone(pages)), Sorted: sorted})
			all, total = append(all, pages...), total+len(pages)
		}
		slices.SortStableFunc(all, page.Compare)
		var want []page.Page
		for _, p := range all {
			if n := len(want); n > 0 && want[n-1].Path == p.Path {
				want[n-1].Merge(p)
				continue
			}
			want = append(want, p)
		}
		s := start(t.Context(), inputs, Options{})
		got := readAll(t, s)
		for _, n := range s.Result().Counts {
			total -= n
		}
		if !slices.Equal(got, want) || !s.Complete() || total != 0 {
			t.Fatalf("seed %d: got %d pages, want %d, %d were not counted", seed, len(got), len(want), total)
		}
	}
}

func randomPages(r *rand.Rand, n int) []page.Page {
	pages := make([]page.Page, n)
	for i := range pages {
		pages[i] = page.Page{
			Path: fmt.Sprint("/", r.IntN(n), strings.Repeat("/long", r.IntN(3))), LastMod: r.Int64N(3), LastModDay: r.IntN(2) == 0,
			ChangeFreq: page.ChangeFreq(r.IntN(8)), Priority: page.Priority(r.IntN(3)), Version: r.Uint32N(3), FileTime: r.Int64N(3), Visited: r.IntN(2) == 0,
		}
	}
	return pages
}

func TestLeftOut(t *testing.T) {
	inputs := []Input{
		{Pages: paths("/a /b /c /no/1 /no/2 /z"), Sorted: true},
		{Pages: paths("/d /no/2 /no/1 /a")},
		{Pages: paths("/9 /8 /7 /6 /5 /4")},
	}
	calls := make(map[string]int)
	s := start(t.Context(), inputs, Options{MaxPages: 5, Filter: func(p *page.Page) string {
		calls[p.Path]++
		if strings.HasPrefix(p.Path, "/no/") {
			return "no"
		}
		return ""
	}})
	// Of the third input, which is not sorted, /4 is more than is held.
	if got := join(readAll(t, s)); got != "/5 /6 /7 /8 /9" {
		t.Errorf("got %q", got)
	}
	if got, want := s.Result().LeftOut, map[string]int{"no": 2, OverMax: 6}; !maps.Equal(got, want) {
		t.Errorf("left out %v, want %v", got, want)
	}
	for path, n := range calls {
		if n != 1 {
			t.Errorf("%s was filtered %d times", path, n)
		}
	}
}

// TestPatience has inputs that pause, within the patience or beyond it.
func TestPatience(t *testing.T) {
	const patience = 10 * time.Second
	slow := func(pause time.Duration) source {
		return func(ctx context.Context, yield func(page.Page) error) error {
			for _, path := range []string{"/a", "/c", "/e"} {
				if err := yield(page.Page{Path: path}); err != nil {
					return err
				}
				time.Sleep(pause)
			}
			return nil
		}
	}
	for _, test := range []struct {
		name   string
		inputs []Input
		want   string
		took   time.Duration
		failed int
	}{
		{"slow", []Input{{Pages: slow(patience - 1), Sorted: true}, {Pages: slow(patience - 1)}}, "/a /c /e", 3 * (patience - 1), 0},
		{"too slow", []Input{{Pages: slow(patience + time.Second), Sorted: true}, {Pages: paths("/b /d")}}, "/a /b /d", patience, 1},
		{"too slow, not sorted", []Input{{Pages: slow(patience + time.Second)}, {Pages: paths("/b /d")}}, "/a /b /d", patience, 1},
		{"several at a time, of which one does not end", []Input{
			{Pages: then(paths("/a"), func(context.Context) error { time.Sleep(time.Hour); return nil }), Sorted: true}, {Pages: then(paths(""), hang)},
			{Pages: then(paths(""), hang), Sorted: true}, {Pages: paths("/b"), Sorted: true},
		}, "/a /b", patience + time.Second, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			defer time.Sleep(2 * time.Hour) // until those have ended that ignore their context
			begun := time.Now()
			s := start(t.Context(), test.inputs, Options{Patience: patience})
			if got := join(readAll(t, s)); got != test.want || len(s.Result().Failed) != test.failed {
				t.Errorf("%s: got %q, failed %v", test.name, got, s.Result().Failed)
			}
			for _, f := range s.Result().Failed {
				if f.Err != ErrTimeout {
					t.Errorf("%s: got %v", test.name, f.Err)
				}
			}
			if took := time.Since(begun); took < test.took || took > test.took+time.Second+pause {
				t.Errorf("%s: took %s, want %s", test.name, took, test.took)
			}
		})
	}
}

// TestPatienceOfReader: an input is not blamed for the time in which nobody reads.
func TestPatienceOfReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pages []page.Page
		for i := range 10 * batchLen {
			pages = append(pages, page.Page{Path: fmt.Sprintf("/%06d", i)})
		}
		s := start(t.Context(), []Input{{Pages: list(pages), Sorted: true}}, Options{Patience: time.Second})
		defer s.Close()
		for i := range pages {
			if i%100 == 0 {
				time.Sleep(time.Minute)
			}
			if p, ok, err := s.Next(t.Context()); !ok || err != nil || p.Path != pages[i].Path {
				t.Fatalf("page %d: got %q, %t, %v", i, p.Path, ok, err)
			}
		}
		if _, ok, err := s.Next(t.Context()); ok || err != nil || !s.Complete() {
			t.Errorf("at the end: got %t, %v, %v", ok, err, s.Result().Failed)
		}
	})
}

// TestSlowInputIsNotHeldBack: a page comes soon after the next one is known.
func TestSlowInputIsNotHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t.Context(), []Input{{Pages: then(paths("/a /b"), hang), Sorted: true}}, Options{Patience: time.Hour})
		defer s.Close()
		begun := time.Now()
		if p, ok, err := s.Next(t.Context()); p.Path != "/a" || !ok || err != nil || time.Since(begun) > time.Second {
			t.Errorf("got %q, %t, %v after %s", p.Path, ok, err, time.Since(begun))
		}
	})
}

func TestContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t.Context(), []Input{{Pages: paths("/a"), Sorted: true}, {Pages: then(paths("/b"), func(ctx context.Context) error {
			select {
			case <-time.After(time.Hour):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})}}, Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for range 2 {
			if _, ok, err := s.Next(ctx); ok || err != context.DeadlineExceeded {
				t.Errorf("got %t, %v", ok, err)
			}
		}
		if got := join(readAll(t, s)); got != "/a /b" || !s.Complete() {
			t.Errorf("after an error of the context: got %q, %v", got, s.Result())
		}
	})
}

// whenWaited calls a function when somebody begins to wait for its end.
type whenWaited struct {
	context.Context
	call func()
}

func (c whenWaited) Done() <-chan struct{} {
	c.call()
	return c.Context.Done()
}

// TestCanceledWhileWaiting: a stream that is canceled while it waits for an input returns an error, not its end, whether
// the input ends at once or never.
func TestCanceledWhileWaiting(t *testing.T) {
	for name, ended := range map[string]bool{"the input ends": true, "it does not": false} {
		for range 30 { // where both are ready, a select takes either
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				wait := func(ctx context.Context) error {
					if !ended {
						<-release
					}
					return hang(ctx)
				}
				ctx, cancel := context.WithCancel(t.Context())
				s := start(ctx, []Input{{Pages: then(paths(""), wait), Sorted: true}}, Options{})
				defer s.Close()
				defer close(release)

				waiting := whenWaited{t.Context(), func() {
					cancel()
					synctest.Wait()
				}}
				if p, ok, err := s.Next(waiting); ok || err != context.Canceled {
					t.Errorf("%s: got %q, %t, %v, want %v", name, p.Path, ok, err, context.Canceled)
				}
			})
		}
	}
}

func TestClose(t *testing.T) {
	endless := func(ctx context.Context, yield func(page.Page) error) error {
		for i := 0; ; i++ {
			if err := yield(page.Page{Path: fmt.Sprintf("/%09d", i)}); err != nil {
				return err
			}
		}
	}
	for _, end := range []string{"Close", "context"} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			release := make(chan struct{})
			s := start(ctx, []Input{
				{Pages: endless, Sorted: true}, {Pages: then(paths("/a /b"), hang), Sorted: true},
				{Pages: then(paths("/a"), func(context.Context) error { <-release; return nil }), Sorted: true},
			}, Options{})
			if end == "Close" {
				s.Close()
			}
			cancel() // the goroutines end, save for the one that ignores its context
			if _, ok, err := s.Next(t.Context()); ok || err != context.Canceled || s.Result().Failed != nil {
				t.Errorf("%s: got %t, %v, %v", end, ok, err, s.Result().Failed)
			}
			s.Close()
			close(release)
		})
	}
}
