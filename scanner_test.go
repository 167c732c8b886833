package sitemap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestInterval(t *testing.T) {
	const s, m = time.Second, time.Minute
	for _, test := range []struct {
		given, took, want time.Duration
	}{
		{0, 0, m},
		{0, -m, m}, // the clock was set back meanwhile
		{0, 100 * time.Millisecond, m},
		{0, 3 * s, m},
		{0, 3*s + 1, m + 20}, // 5 % of the time
		{0, 10 * s, 200 * s},
		{0, time.Hour, 20 * time.Hour},
		{10 * s, 0, 10 * s},
		{10 * s, 9 * s, 10 * s},
		{10 * s, 10 * s, 10 * s},
		{10 * s, 25 * s, 25 * s}, // never overlapping
		{time.Hour, m, time.Hour},
	} {
		site := &site{handler: &Handler{settings: settings{refresh: test.given, fixed: test.given != 0}}}
		if test.given == 0 {
			site.handler.settings.refresh = defaultRefresh
		}
		if got := site.interval(test.took); got != test.want {
			t.Errorf("refresh %s, which took %s: got %s, want %s", test.given, test.took, got, test.want)
		}
	}
}

// TestUnchangedRefresh keeps the very same snapshot.
func TestUnchangedRefresh(t *testing.T) {
	b := newBench(t, &Handler{ShardURLs: 10})
	var paths []string
	for i := range 1000 {
		paths = append(paths, fmt.Sprintf("/%03d", i))
	}
	b.source = lists(paths...)
	s := b.site("named.example")
	first := b.refresh(s)
	if b.refresh(s) != first || b.refresh(s) != first {
		t.Error("an unchanged refresh made a new snapshot")
	}
	b.source = lists(append(slices.Clone(paths), "/extra")...)
	second := b.refresh(s)
	same := 0
	for _, d := range first.shards {
		if slices.Contains(second.shards, d) {
			same++
		}
	}
	if second == first || same < len(first.shards)-1 {
		t.Errorf("of %d shards %d were carried over when one page came", len(first.shards), same)
	}
}

// TestDoubt is promise 4, refresh by refresh.
func TestDoubt(t *testing.T) {
	lost := errors.New("the root is gone")
	pages := func(n int) []string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("/%03d", i))
		}
		return all
	}
	type step struct {
		pages int
		err   error
		panic bool
		want  int // pages served after it
	}
	for _, test := range []struct {
		name  string
		steps []step
		warns int // that a refresh is not believed
	}{
		{"half is left", []step{{pages: 10, want: 10}, {pages: 5, want: 5}}, 0},
		{"less than half is left", []step{{pages: 10, want: 10}, {pages: 4, want: 10}, {pages: 4, want: 4}, {pages: 4, want: 4}}, 1},
		{"less than half of an odd number", []step{{pages: 3, want: 3}, {pages: 1, want: 3}, {pages: 1, want: 1}}, 1},
		{"the only page", []step{{pages: 1, want: 1}, {pages: 0, want: 1}, {pages: 0, want: 0}, {pages: 1, want: 1}}, 1},
		{"all come back", []step{{pages: 10, want: 10}, {pages: 0, want: 10}, {pages: 10, want: 10}, {pages: 0, want: 10}, {pages: 0, want: 0}}, 2},
		{"few, then even fewer", []step{{pages: 10, want: 10}, {pages: 4, want: 10}, {pages: 1, want: 10}, {pages: 1, want: 1}}, 2},
		{"few, then a little fewer", []step{{pages: 10, want: 10}, {pages: 4, want: 10}, {pages: 3, want: 3}}, 1},
		{"halved again and again", []step{{pages: 16, want: 16}, {pages: 7, want: 16}, {pages: 7, want: 7}, {pages: 3, want: 7}, {pages: 3, want: 3}}, 2},
		{"a source fails once", []step{{pages: 10, want: 10}, {pages: 8, err: lost, want: 10}, {pages: 9, want: 9}}, 1},
		{"a source fails twice", []step{{pages: 10, want: 10}, {pages: 8, err: lost, want: 10}, {pages: 8, err: lost, want: 8}, {pages: 8, err: lost, want: 8}}, 1},
		{"the root is gone", []step{{pages: 10, want: 10}, {err: lost, want: 10}, {err: lost, want: 0}, {err: lost, want: 0}, {pages: 10, want: 10}}, 1},
		{"recovery after it was believed", []step{{pages: 10, want: 10}, {pages: 8, err: lost, want: 10}, {pages: 8, err: lost, want: 8}, {pages: 10, want: 10}, {pages: 8, err: lost, want: 10}}, 2},
		{"it failed from the beginning", []step{{pages: 8, err: lost, want: 8}, {pages: 9, err: lost, want: 9}, {pages: 10, want: 10}}, 0},
		{"it failed long since, and now pages go", []step{{pages: 8, err: lost, want: 8}, {err: lost, want: 8}, {err: lost, want: 0}}, 1},
		{"a panic", []step{{pages: 10, want: 10}, {pages: 9, panic: true, want: 10}, {pages: 10, want: 10}}, 1},
		{"panics", []step{{pages: 10, want: 10}, {pages: 9, panic: true, want: 10}, {pages: 9, panic: true, want: 9}}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, &Handler{})
			s := b.site("named.example")
			for i, step := range test.steps {
				b.source = func(ctx context.Context, r *Refresh, yield func(Page) error) error {
					if err := lists(pages(step.pages)...)(ctx, r, yield); err != nil {
						return err
					}
					if step.panic {
						panic("bad source")
					}
					return step.err
				}
				got := 0
				if snapshot := b.refresh(s); snapshot != nil {
					got = snapshot.pages
				}
				if got != step.want {
					t.Fatalf("after refresh %d: %d pages are served, want %d", i+1, got, step.want)
				}
			}
			if got := b.logged("sitemap refreshed, but not believed until the next refresh says the same"); got != test.warns {
				t.Errorf("the log says %d times that a refresh is not believed, want %d", got, test.warns)
			}
		})
	}
}

// TestEachSourceIsDoubted: that one source is known to fail says nothing of another.
func TestEachSourceIsDoubted(t *testing.T) {
	b := newBench(t, &Handler{})
	lost := errors.New("gone")
	var fails [2]bool
	source := func(i int, paths ...string) Source {
		return sourceFunc(func(ctx context.Context, r *Refresh, yield func(Page) error) error {
			if fails[i] {
				return lost
			}
			return lists(paths...)(ctx, r, yield)
		})
	}
	b.handler.sources = []Source{source(0, "/a", "/b", "/c", "/d"), source(1, "/e", "/f")}
	b.handler.sourceNames = []string{"list", "list"}
	s := b.site("named.example")
	for i, step := range []struct {
		fails [2]bool
		want  int
	}{
		{[2]bool{false, false}, 6},
		{[2]bool{false, true}, 6},
		{[2]bool{false, true}, 4},
		{[2]bool{false, true}, 4},
		{[2]bool{true, true}, 4}, // the other one, too
		{[2]bool{false, true}, 4},
		{[2]bool{true, false}, 4}, // another one: doubted
		{[2]bool{true, false}, 2},
		{[2]bool{false, false}, 6},
	} {
		fails = step.fails
		if got := b.refresh(s).pages; got != step.want {
			t.Fatalf("after refresh %d: %d pages are served, want %d", i+1, got, step.want)
		}
	}
}

type sourceFunc func(context.Context, *Refresh, func(Page) error) error

func (f sourceFunc) Pages(ctx context.Context, r *Refresh, yield func(Page) error) error {
	return f(ctx, r, yield)
}

// TestBrokenRefresh: one that does not come to its end says nothing, however often.
func TestBrokenRefresh(t *testing.T) {
	b := newBench(t, &Handler{})
	b.source = lists("/a", "/b")
	s := b.site("named.example")
	want := b.refresh(s)
	s.sight.root, s.sight.fs = "/", "no such file system"
	for range 3 {
		if b.refresh(s) != want {
			t.Fatal("the last good snapshot is gone")
		}
	}
	if got := b.logged("gathering pages failed"); got != 1 {
		t.Errorf("the log says so %d times, want once", got)
	}
}

// TestPanickingSource: the others' pages are listed, and the stack is logged once.
func TestPanickingSource(t *testing.T) {
	b := newBench(t, &Handler{})
	b.handler.sources = append(b.handler.sources, sourceFunc(lists("/other")))
	b.handler.sourceNames = append(b.handler.sourceNames, "other")
	b.source = func(context.Context, *Refresh, func(Page) error) error { panic("bad source") }
	s := b.site("named.example")
	for range 3 {
		if snapshot := b.refresh(s); snapshot == nil || snapshot.pages != 1 {
			t.Fatal("the other source's page is not listed")
		}
	}
	if got := b.logged("a source of pages panicked"); got != 1 {
		t.Errorf("got %d stacks, want 1", got)
	}
}

func TestCancelledRefresh(t *testing.T) {
	b := newBench(t, &Handler{})
	b.source = lists("/a")
	s := b.site("named.example")
	want := b.refresh(s)
	begun := s.held.Load().begun
	ctx, cancel := context.WithCancel(context.Background())
	b.source = func(ctx context.Context, _ *Refresh, _ func(Page) error) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}
	b.clock.advance(time.Hour)
	s.looked = true
	s.refresh(ctx)
	if s.current() != want || s.held.Load().begun != begun || s.held.Load().doubted != "" {
		t.Error("a refresh that was cancelled left its mark")
	}
	if b.logged("gathering pages failed") != 0 {
		t.Error("the log takes it for a failure")
	}
}

// TestSharedRefresh: what another site or configuration refreshes now, or did lately,
// is not refreshed again.
func TestSharedRefresh(t *testing.T) {
	b := newBench(t, &Handler{})
	runs := 0
	b.source = func(ctx context.Context, r *Refresh, yield func(Page) error) error {
		runs++
		return lists("/a")(ctx, r, yield)
	}
	s := b.site("named.example")
	b.refresh(s)
	again := newSite(b.app, b.handler, s.id, "", false)
	again.sight.reached, again.looked = true, true
	again.adopt()
	select {
	case <-again.ready:
	default:
		t.Error("with a snapshot at hand, requests wait for a refresh")
	}
	held := s.held.Load()
	held.mu.Lock()
	again.refresh(context.Background())
	held.mu.Unlock()
	if want := b.clock.now().Add(retryContended); runs != 1 || !again.dueAt(b.clock.now()).Equal(want) {
		t.Errorf("beside another refresh: %d runs, due at %s, want %s", runs, again.dueAt(b.clock.now()), want)
	}
	b.clock.advance(20 * time.Second)
	again.refresh(context.Background())
	if want := held.begun.Add(time.Minute); runs != 1 || !again.dueAt(b.clock.now()).Equal(want) {
		t.Errorf("after another refresh: %d runs, due at %s, want %s", runs, again.dueAt(b.clock.now()), want)
	}
}

// TestSayings: what stays the same is not said at each refresh, and what comes back
// is said again.
func TestSayings(t *testing.T) {
	b := newBench(t, &Handler{})
	says := "one"
	b.source = func(ctx context.Context, r *Refresh, yield func(Page) error) error {
		if says != "" {
			r.Say("kind", "a warning", zap.String("what", says))
		}
		return lists("/a")(ctx, r, yield)
	}
	s := b.site("named.example")
	for i, step := range []struct {
		says string
		want int
	}{{"one", 1}, {"one", 1}, {"two", 2}, {"two", 2}, {"", 2}, {"two", 3}, {"two", 3}} {
		says = step.says
		b.refresh(s)
		if got := b.logged("a warning"); got != step.want {
			t.Errorf("refresh %d: %d lines, want %d", i+1, got, step.want)
		}
	}
	b.source = func(ctx context.Context, r *Refresh, yield func(Page) error) error {
		r.Say(fmt.Sprint("kind ", b.clock.now()), "never the same")
		return lists("/a")(ctx, r, yield)
	}
	for range 50 {
		b.refresh(s)
	}
	if len(s.said) > 10 {
		t.Errorf("%d sayings are kept", len(s.said))
	}
	s.say(zapcore.InfoLevel, "k", "m")
	s.say(zapcore.InfoLevel, "k", "m")
	if b.logged("m") != 1 {
		t.Error("said twice")
	}
}

// TestStrangersFillNoLog: whatever hosts a stranger makes up, and whatever is amiss
// with each, the log says it a few times, and counts; a named site's lines all stand.
func TestStrangersFillNoLog(t *testing.T) {
	const hosts = 950
	lost := errors.New("the root is gone")
	for name, source := range map[string]func(context.Context, *Refresh, func(Page) error) error{
		"no root": func(_ context.Context, r *Refresh, _ func(Page) error) error {
			r.Say("no root", "the root is missing")
			return fmt.Errorf("%s: %w", r.BaseURL, lost)
		},
		"pages":       lists("/a", "/b"),
		"of each own": func(_ context.Context, r *Refresh, _ func(Page) error) error { r.Say("x", "of "+r.BaseURL); return nil },
		"panic":       func(_ context.Context, r *Refresh, _ func(Page) error) error { panic(r.BaseURL) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, &Handler{})
			b.source = source
			loud := func() int {
				return b.logs.Filter(func(e observer.LoggedEntry) bool { return e.Level > zapcore.DebugLevel }).Len()
			}
			var sites []*site
			for i := range hosts {
				sites = append(sites, b.site(fmt.Sprintf("%d.example", i)))
			}
			for range 3 {
				for _, s := range sites {
					b.refresh(s)
				}
			}
			if got := loud(); got == 0 || got > 80 {
				t.Errorf("the log has %d lines of %d strangers' hosts", got, hosts)
			}
			before := loud()
			b.refresh(b.site("named.example"))
			if loud() == before {
				t.Error("the log has none of the named site")
			}
			for _, line := range b.logs.FilterField(zap.String("site", "http://named.example")).All() {
				if _, counted := line.ContextMap()["times"]; counted {
					t.Errorf("of the named site it has %v", line.ContextMap())
				}
			}
		})
	}
}

func TestIsPowerOfTen(t *testing.T) {
	var got []int
	for n := range 10_001 {
		if isPowerOfTen(n) {
			got = append(got, n)
		}
	}
	if want := []int{1, 10, 100, 1000, 10_000}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestBoundsAreSaid: what max_urls leaves out is counted and logged, once.
func TestBoundsAreSaid(t *testing.T) {
	b := newBench(t, &Handler{MaxURLs: 3})
	b.source = lists("/a", "/b", "/c", "/d", "/e")
	s := b.site("named.example")
	for range 3 {
		if got := b.refresh(s).pages; got != 3 {
			t.Fatalf("got %d pages, want 3", got)
		}
	}
	lines := b.logs.FilterMessage("not all pages fit into the sitemap").All()
	if len(lines) != 1 || lines[0].ContextMap()["left_out"] != int64(2) {
		t.Errorf("got %v, want one line with left_out 2", lines)
	}
}

// TestGuestPaths: what a guest module yields is checked before it is believed.
func TestGuestPaths(t *testing.T) {
	b := newBench(t, &Handler{})
	long := "/" + strings.Repeat("x", 2047-len("http://named.example")-1)
	b.source = lists("/ok", "", "no-slash", "/a b", "/%zz", "/\x00", "/é", long, long+"x", "/sitemap.xml", "/sitemap-0123456789ab.xml")
	got := b.refresh(b.site("named.example"))
	if got.pages != 2 {
		t.Errorf("got %d pages, want /ok and the one of 2,047 characters", got.pages)
	}
	fields := b.logs.FilterMessage("sitemap refreshed").All()[0].ContextMap()
	if want := "[a document of the sitemap: 2 malformed path: 6 URL too long: 1]"; fmt.Sprint(fields["left_out"]) != want &&
		fmt.Sprint(fields["left_out"]) != "[URL too long: 1 a document of the sitemap: 2 malformed path: 6]" {
		t.Errorf("left out: got %v, want %v", fields["left_out"], want)
	}
}

// TestAskedForWhileFailing: a refresh that somebody asked for comes at once after one that
// could not even look at the site.
func TestAskedForWhileFailing(t *testing.T) {
	b := newBench(t, &Handler{})
	s := b.site("named.example")
	s.failed(t.Context(), b.app.now(), errStuck)
	if due := s.due.Load(); due <= b.clock.Load() {
		t.Fatalf("asked for by nobody: due in %d ns", due-b.clock.Load())
	}
	s.wanted.add()
	s.failed(t.Context(), b.app.now(), errStuck)
	if due := s.due.Load(); due > b.clock.Load() {
		t.Errorf("due in %d ns", due-b.clock.Load())
	}
}
