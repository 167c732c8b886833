package sitemap

import (
	"context"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/seed3295b519/caddy-sitemap/internal/files"
	"github.com/seed3295b519/caddy-sitemap/internal/fleet"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
)

// lookAround has each node learn what all others see.
func lookAround(t *testing.T, nodes []*site, views ...string) {
	t.Helper()
	for range 2 {
		for i, s := range nodes {
			if err := s.state.fleet.Look(t.Context(), views[i], 2*time.Minute); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestDueOutvoted: a node whose view is not that of most lets others refresh the site, for ten intervals at most.
func TestDueOutvoted(t *testing.T) {
	folder := t.TempDir()
	var benches []*bench
	var nodes []*site
	for range 3 {
		b, s := sharing(t, folder, nil)
		if len(benches) > 0 {
			b.clock = benches[0].clock
		}
		b.refresh(s)
		benches = append(benches, b)
		nodes = append(nodes, s)
	}
	pass := func(d time.Duration) {
		for _, b := range benches {
			b.clock = b.clock.Add(d)
		}
	}
	interval := nodes[0].handler.settings.interval
	lookAround(t, nodes, "old", "new", "new")
	due := nodes[0].state.fleet.DueFor(nodes[0].standing())
	if got := due.Sub(benches[0].clock); got != 11*interval || nodes[0].status().Storage.Vote != "outvoted" {
		t.Errorf("the stale node is due in %s: %+v", got, nodes[0].status().Storage)
	}
	if benches[0].logged(apartWarning)+benches[1].logged(apartWarning)+benches[2].logged(apartWarning) > 0 {
		t.Error("warned at once")
	}
	pass(interval)
	for _, s := range nodes[1:] {
		if st := s.status().Storage; st.Vote != "" || len(st.Nodes) != 2 || s.state.fleet.DueFor(s.standing()).Sub(benches[1].clock) > maxPollOfTests {
			t.Errorf("the others are not due: %+v", st)
		}
	}
	for range 4 {
		pass(2 * interval)
		lookAround(t, nodes, "old", "new", "new")
		for _, s := range nodes {
			s.warnOfViews()
		}
	}
	if n := benches[0].logged(apartWarning) + benches[1].logged(apartWarning) + benches[2].logged(apartWarning); n != 1 {
		t.Errorf("warned %d times", n)
	}
}

const (
	apartWarning   = "nodes see other files, or another front page, than is listed: deploy the same site to all nodes"
	maxPollOfTests = 15 * time.Second
)

// TestYieldsSince: a refresh amid which a release has reached this node publishes nothing, unless it began regardless of what
// others see, an operator requested it, or nothing else was served.
func TestYieldsSince(t *testing.T) {
	folder := t.TempDir()
	var benches []*bench
	var nodes []*site
	for range 3 {
		b, s := sharing(t, folder, nil)
		benches = append(benches, b)
		nodes = append(nodes, s)
	}
	wants := func(name string, s *site, r refreshing, want bool) {
		t.Helper()
		if got := s.yieldsSince(t.Context(), &r); got != want {
			t.Errorf("%s: got %t, want %t", name, got, want)
		}
	}
	wants("alone", newBench(t, nil).site("named.example"), refreshing{wasReady: true}, false)
	lookAround(t, nodes, "released", "old", "old")
	wants("nothing is committed", nodes[0], refreshing{wasReady: true}, false)
	nodes[0].run()
	for _, s := range nodes {
		if err := s.state.fleet.Poll(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	wants("released since", nodes[0], refreshing{wasReady: true}, true)
	wants("it sees what most see", nodes[1], refreshing{wasReady: true}, false)
	wants("begun regardless", nodes[0], refreshing{wasReady: true, vote: fleet.Outvoted}, false)
	wants("demanded", nodes[0], refreshing{wasReady: true, demanded: true}, false)
	wants("to be fetched again", nodes[0], refreshing{wasReady: true, refetch: new(refetch)}, false)
	wants("nothing was served", nodes[0], refreshing{}, false)
	benches[1].clock = benches[1].clock.Add(time.Hour)
	wants("it has not read for long what others see", nodes[1], refreshing{wasReady: true}, true)
}

// TestUnseenRemovals: pages that are gone for this node only stay listed, until another node sees that, an operator requests a refresh,
// or ten minutes have passed.
func TestUnseenRemovals(t *testing.T) {
	for name, test := range map[string]struct {
		seconds  bool
		demanded bool
		after    time.Duration
		want     int
	}{
		"no second node": {want: 10},
		"not long":       {after: confirmAfter - time.Minute, want: 10},
		"for long":       {after: confirmAfter, want: 9},
		"a second node":  {seconds: true, want: 9},
		"an operator":    {demanded: true, want: 9},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			b, s := sharing(t, folder, nil)
			b.lists(numbered(10)...)
			b.refresh(s)
			other, second := sharing(t, folder, nil)
			other.clock = b.clock
			refresh := func(after time.Duration, views ...string) {
				b.clock = b.clock.Add(after)
				other.clock = b.clock
				lookAround(t, []*site{s, second}, views...)
				if out := s.refresh(t.Context(), test.demanded); out.Err != nil {
					t.Fatal(out.Err)
				}
			}
			refresh(time.Minute, "all", "all")
			b.lists(numbered(9)...)
			if !test.demanded {
				refresh(time.Minute, "nine", "all")
				if last := s.published().history.Last; pagesOf(s.published().snapshot) != 10 || last.Reason != reasonUnseen || last.Result != outcome.HeldBack {
					t.Fatalf("%d pages, %+v", pagesOf(s.published().snapshot), last)
				}
				if s.standing().HoldsBack {
					t.Error("others are to confirm what they do not see")
				}
			}
			view := "all"
			if test.seconds {
				view = "nine"
			}
			refresh(max(test.after, time.Minute), "nine", view)
			if got := pagesOf(s.published().snapshot); got != test.want {
				t.Errorf("%d pages, want %d: %+v", got, test.want, s.published().history.Last)
			}
		})
	}
}

// TestViewFront: an application's front page is the view, unless it is never the same twice.
func TestViewFront(t *testing.T) {
	b, s := sharing(t, t.TempDir(), nil)
	text := "the same"
	b.pages = func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Content-Type", contentHTML)
		upstream(r)
		_, err := io.WriteString(w, "<!doctype html><html><body><main><p>"+text+"</p></main></body></html>")
		return err
	}
	view := func() string {
		b.clock = b.clock.Add(2 * time.Minute)
		return s.view(context.Background(), 2*time.Minute)
	}
	first := view()
	if first == "" || view() != first {
		t.Errorf("got %q, then another one", first)
	}
	text = "another one"
	for i := range frontLooks {
		if got := view(); got != "" {
			t.Errorf("%d looks after a change: %q", i, got)
		}
	}
	if got := view(); got == "" || got == first {
		t.Errorf("later: %q", got)
	}
	for i := range 10 {
		text = time.Duration(i).String()
		if got := view(); got != "" {
			t.Errorf("never the same twice: %q", got)
		}
	}
}

// hangingFS is a disk that does not respond until it is free.
type hangingFS struct {
	free  chan struct{}
	calls *atomic.Int32
}

func (h hangingFS) Open(string) (fs.File, error) {
	h.calls.Add(1)
	<-h.free
	return nil, fs.ErrNotExist
}

// TestViewHangs: a disk that hangs is told from others, and takes one goroutine.
func TestViewHangs(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		_, s := sharing(t, t.TempDir(), func(b *bench) { b.app.now = time.Now })
		disk := hangingFS{make(chan struct{}), new(atomic.Int32)}
		folder := files.Options{FS: disk, Root: "."}
		view := func() string {
			ctx, cancel := context.WithTimeout(t.Context(), viewPatience)
			defer cancel()
			return s.viewFolder(ctx, folder)
		}
		begun := time.Now()
		for range 3 {
			if got := view(); got != viewUnreadable {
				t.Errorf("got %q", got)
			}
		}
		if took := time.Since(begun); took > 2*viewPatience || disk.calls.Load() != 1 {
			t.Errorf("it took %s, and %d calls", took, disk.calls.Load())
		}
		close(disk.free)
		time.Sleep(time.Second)
		if got := view(); got != viewMissing {
			t.Errorf("later: %q", got)
		}
	})
}

// TestViewRoots: nodes whose roots have the same files have the same view, wherever the roots are.
func TestViewRoots(t *testing.T) {
	view := func(files ...string) string {
		root := t.TempDir()
		for _, name := range files {
			if err := os.WriteFile(filepath.Join(root, name), []byte(name), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		_, s := sharing(t, t.TempDir(), func(b *bench) { b.handler.sources = []input{&SourceFiles{Root: root}} })
		return s.view(t.Context(), time.Minute)
	}
	same := view("a.html", "b.html")
	if same == "" || same == viewUnreadable || same != view("a.html", "b.html") || same == view("a.html") {
		t.Errorf("got %q", same)
	}
}

// slowToStore is a storage whose calls take a while.
type slowToStore struct{ fleet.Shared }

func (s slowToStore) Store(ctx context.Context, key string, value []byte) error {
	time.Sleep(5 * time.Second)
	return s.Shared.Store(ctx, key, value)
}

// TestLookSlowStorage: a node with a slow storage looks as often as others. Else these would take it for gone.
func TestLookSlowStorage(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		storage := certmagicStorage{slowToStore{&certmagic.FileStorage{Path: t.TempDir()}}}
		b, s := sharing(t, t.TempDir(), func(b *bench) {
			b.app.now = time.Now
			b.app.sharing = storageSetting{kind: inOwn, own: storage}
			b.handler.sources = []input{&SourceFiles{Root: t.TempDir(), CleanURLs: "off"}}
		})
		b.lists("/")
		s.configureFleet()
		for try := 0; s.published().snapshot == nil; try++ {
			out := s.refresh(t.Context(), true)
			if try == 10 {
				t.Fatalf("nothing is published: %+v", out.Outcome)
			}
		}
		go s.compareViews()
		interval := s.handler.settings.interval
		for range 20 {
			time.Sleep(interval)
			s.viewer.slot.Take(t.Context())
			last := time.Since(s.viewer.at)
			s.viewer.slot.Release()
			if last > 3*interval {
				t.Errorf("the last look was %s ago, want one every %s", last, 2*interval)
			}
		}
		s.cancel()
		time.Sleep(time.Minute)
	})
}

// TestRollingDeployment: what only one node sees, though it is the one to refresh the site, is listed with the second that sees it.
func TestRollingDeployment(t *testing.T) {
	folder := t.TempDir()
	var benches []*bench
	var nodes []*site
	var roots []string
	deploy := func(i int, names ...string) {
		for _, name := range names {
			if err := os.WriteFile(filepath.Join(roots[i], name), []byte(name), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	pass := func(d time.Duration) {
		for _, b := range benches {
			b.clock = b.clock.Add(d)
		}
	}
	for i := range 3 {
		roots = append(roots, t.TempDir())
		deploy(i, "a.html", "b.html", "old.html")
		b, s := sharing(t, folder, func(b *bench) { b.handler.sources = []input{&SourceFiles{Root: roots[i], CleanURLs: "off"}} })
		if i > 0 {
			b.clock = benches[0].clock
		}
		b.lists("/a.html", "/b.html", "/old.html", "/new.html")
		benches = append(benches, b)
		nodes = append(nodes, s)
		s.run()
		if got := pagesOf(s.published().snapshot); got != 3 {
			t.Fatalf("node %d: %d pages", i, got)
		}
	}
	for range 2 {
		for _, s := range nodes {
			s.look(t.Context(), 2*time.Minute, false)
		}
	}
	interval := nodes[0].handler.settings.interval
	release := func(i int) {
		deploy(i, "new.html")
		if err := os.Remove(filepath.Join(roots[i], "old.html")); err != nil {
			t.Fatal(err)
		}
	}
	refresh := func(i int) outcome.Result {
		_ = nodes[i].state.fleet.Poll(t.Context())
		return nodes[i].refresh(t.Context(), false).Result
	}
	// The release reaches the first node after that has compared what all see, and before it scans its files.
	pages := benches[0].pages
	var once sync.Once
	benches[0].pages = func(w http.ResponseWriter, r *http.Request) error {
		once.Do(func() { release(0) })
		return pages(w, r)
	}
	pass(interval)
	if got := refresh(0); got != outcome.Later || pagesOf(nodes[0].published().snapshot) != 3 {
		t.Errorf("the first node, which gets the release: %s, %d pages", got, pagesOf(nodes[0].published().snapshot))
	}
	pass(interval)
	if got := refresh(0); got != outcome.Followed {
		t.Errorf("the first node with the release: %s", got)
	}
	pass(maxPollOfTests)
	if got := refresh(1); got != outcome.Unchanged {
		t.Errorf("the next one, without it: %s", got)
	}
	release(1)
	pass(interval)
	if got := refresh(1); got != outcome.Published || pagesOf(nodes[1].published().snapshot) != 3 || nodes[1].published().history.Last.Reason != "" {
		t.Errorf("the second node with it: %s, %d pages, %+v", got, pagesOf(nodes[1].published().snapshot), nodes[1].published().history.Last)
	}
	pass(interval + maxPollOfTests)
	if got := refresh(2); got != outcome.Followed || pagesOf(nodes[2].published().snapshot) != 3 {
		t.Errorf("the last one, without it: %s", got)
	}
}
