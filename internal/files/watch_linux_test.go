package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// watched is a root with a Watcher whose waits are short.
type watched struct {
	t    *testing.T
	root string
	o    Options
	w    *Watcher
}

func newWatched(t *testing.T, tree tree) *watched {
	t.Helper()
	return watchedAt(t, build(t, tree))
}

func watchedAt(t *testing.T, root string) *watched {
	t.Helper()
	w := NewWatcher()
	w.budget = &budget{maxWatches: 10_000, maxRoots: 4}
	w.pace = pace{
		burst: time.Millisecond,
		quiet: 10 * time.Millisecond,
		most:  100 * time.Millisecond,
		root:  10 * time.Millisecond,
		late:  100 * time.Millisecond,
		retry: time.Hour,
	}
	t.Cleanup(func() {
		w.Close()
		if n := w.budget.watches.Load() + w.budget.roots.Load(); n != 0 {
			t.Errorf("%d watches and roots are still counted", n)
		}
	})
	return &watched{t: t, root: root, w: w, o: Options{Root: root, Compile: compile, Now: testNow, Watcher: w}}
}

// scan scans the root, and returns what it has yielded.
func (w *watched) scan() string {
	w.t.Helper()
	var all []page.Page
	_, err := Scan(context.Background(), w.o, func(p page.Page) error {
		all = append(all, p)
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return fmt.Sprint(all)
}

// want checks the state, and what the reason has in it.
func (w *watched) want(state WatchState, reason string) {
	w.t.Helper()
	got := w.w.Status()
	if got.State != state || !strings.Contains(got.Reason, reason) || (reason == "") != (got.Reason == "") {
		w.t.Fatalf("got %s, %q; want %s, %q", got.State, got.Reason, state, reason)
	}
}

// hears reports whether the kernel has told of a change that counts.
func (w *watched) hears() bool { return w.w.in.look() }

// waits has Wait return, and then checks the state.
func (w *watched) waits() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if !w.w.Wait(ctx) {
		w.t.Fatal("no change was told")
	}
	w.want(Changed, "")
}

// write writes a file, which exists or not.
func write(t *testing.T, name, content string) {
	t.Helper()
	must(t, os.WriteFile(name, []byte(content), 0o644))
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// TestWatch: what is told, and what is not. Each action happens in the same tree, and no scan finds a change untold.
func TestWatch(t *testing.T) {
	files := tree{
		"index.html": "x", "a.html": "x", "error.log": "x", "style.css": "x", "robots.txt": "x", "sub/b.html": "x", "sub/deep/c.html": "x",
		"front.txt": "x", "other/d.html": "x", "none/": "", ".git/config": "x", "picture.png": "x",
	}
	for name, test := range map[string]struct {
		do   func(t *testing.T, at func(name string) string)
		want bool
	}{
		"a page is written":       {func(t *testing.T, at func(string) string) { write(t, at("sub/deep/c.html"), "y") }, true},
		"a page is made":          {func(t *testing.T, at func(string) string) { write(t, at("sub/new.HTM"), "y") }, true},
		"a page is removed":       {func(t *testing.T, at func(string) string) { must(t, os.Remove(at("a.html"))) }, true},
		"a page has another mode": {func(t *testing.T, at func(string) string) { must(t, os.Chmod(at("a.html"), 0o600)) }, true},
		"a page has another time": {func(t *testing.T, at func(string) string) { must(t, os.Chtimes(at("a.html"), testNow, testNow)) }, true},
		"a page is renamed":       {func(t *testing.T, at func(string) string) { must(t, os.Rename(at("a.html"), at("none/z.html"))) }, true},
		"a page comes in": {func(t *testing.T, at func(string) string) {
			write(t, filepath.Join(t.TempDir(), "x"), "x")
			outside := build(t, tree{"new.html": "x"})
			must(t, os.Rename(filepath.Join(outside, "new.html"), at("none/new.html")))
		}, true},
		"a page goes out": {func(t *testing.T, at func(string) string) {
			must(t, os.Rename(at("a.html"), filepath.Join(t.TempDir(), "a.html")))
		}, true},
		"a page takes the place of another": {func(t *testing.T, at func(string) string) {
			write(t, at("a.tmp"), "y")
			must(t, os.Rename(at("a.tmp"), at("a.html")))
		}, true},
		"a page is written through a mapping": {func(t *testing.T, at func(string) string) {
			f, err := os.OpenFile(at("a.html"), os.O_RDWR, 0)
			must(t, err)
			data, err := unix.Mmap(int(f.Fd()), 0, 1, unix.PROT_WRITE, unix.MAP_SHARED)
			must(t, err, f.Close())
			data[0] = 'z'
			must(t, unix.Munmap(data)) // the file is closed by now
		}, true},
		"a page is kept open": {func(t *testing.T, at func(string) string) {
			f, err := os.OpenFile(at("a.html"), os.O_APPEND|os.O_WRONLY, 0)
			must(t, err)
			t.Cleanup(func() { f.Close() })
			_, err = f.WriteString("y")
			must(t, err)
		}, true},
		"a folder is made":    {func(t *testing.T, at func(string) string) { must(t, os.Mkdir(at("sub/new"), 0o755)) }, true},
		"a folder is removed": {func(t *testing.T, at func(string) string) { must(t, os.Remove(at("none"))) }, true},
		"a folder is closed": {func(t *testing.T, at func(string) string) {
			must(t, os.Chmod(at("sub"), 0))
			t.Cleanup(func() { _ = os.Chmod(at("sub"), 0o700) }) // it is to be removed
		}, true},
		"a folder is moved": {func(t *testing.T, at func(string) string) { must(t, os.Rename(at("sub/deep"), at("none/deep"))) }, true},
		"folders are swapped": {func(t *testing.T, at func(string) string) {
			must(t, unix.Renameat2(unix.AT_FDCWD, at("sub"), unix.AT_FDCWD, at("other"), unix.RENAME_EXCHANGE))
		}, true},
		"a link to a folder":         {func(t *testing.T, at func(string) string) { must(t, os.Symlink("sub", at("v1.2"))) }, true},
		"robots.txt":                 {func(t *testing.T, at func(string) string) { write(t, at("robots.txt"), "y") }, true},
		"a log is written":           {func(t *testing.T, at func(string) string) { write(t, at("error.log"), "y") }, false},
		"a log is made":              {func(t *testing.T, at func(string) string) { write(t, at("access.log"), "y") }, false},
		"a style is written":         {func(t *testing.T, at func(string) string) { write(t, at("style.css"), "y") }, false},
		"what has no suffix is made": {func(t *testing.T, at func(string) string) { write(t, at("about"), "y") }, true},
		"a hidden file is made":      {func(t *testing.T, at func(string) string) { write(t, at(".a.html"), "y") }, false},
		"in a hidden folder":         {func(t *testing.T, at func(string) string) { write(t, at(".git/x.html"), "y") }, false},
		"a journal is made and removed": {func(t *testing.T, at func(string) string) {
			write(t, at("shop.sqlite-journal"), "y")
			must(t, os.Remove(at("shop.sqlite-journal")))
		}, false},
		"a picture is removed":         {func(t *testing.T, at func(string) string) { must(t, os.Remove(at("picture.png"))) }, false},
		"another name of a page":       {func(t *testing.T, at func(string) string) { must(t, os.Link(at("a.html"), at("a.bak"))) }, false},
		"a page is read":               {func(t *testing.T, at func(string) string) { _, err := os.ReadFile(at("a.html")); must(t, err) }, false},
		"nothing":                      {func(*testing.T, func(string) string) {}, false},
		"a folder is made and removed": {func(t *testing.T, at func(string) string) { must(t, os.Mkdir(at("x"), 0o755), os.Remove(at("x"))) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatched(t, files)
			w.w.SetNames("robots.txt")
			w.scan()
			w.want(Whole, "")
			test.do(t, func(name string) string { return filepath.Join(w.root, name) })
			if got := w.hears(); got != test.want {
				t.Errorf("told: got %t, want %t", got, test.want)
			}
			w.scan()
			w.want(Whole, "")
			if w.hears() {
				t.Error("a scan is told of its own reading")
			}
		})
	}
}

// TestWatchNames: whichever names the options have pages by.
func TestWatchNames(t *testing.T) {
	for name, want := range map[string][3]bool{ // by default, with Include, with Index
		"a.html": {true, true, true}, "a.XHTML": {true, true, true}, "a.pdf": {false, true, false}, ".a.html": {false, false, false},
		"start.txt": {false, true, true}, "error.log": {false, true, false}, "robots.txt": {true, true, true},
	} {
		for i, o := range []Options{{}, {Include: []string{"*.pdf"}}, {Index: []string{"start.txt"}}} {
			w := NewWatcher()
			w.SetNames("robots.txt")
			if got := counting(&o, &w.names)(event{name: name}); got != want[i] {
				t.Errorf("%s with options %d: got %t", name, i, got)
			}
		}
	}
}

// TestWatchRandomly: whatever changes, a scan that finds something else was told before.
func TestWatchRandomly(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	w := newWatched(t, tree{"index.html": "x", "0/": "", "1/0/": "", "1/1.html": "x"})
	before := w.scan()
	steps := 300
	if isLong {
		steps = 1000
	}
	whole, incomplete := 0, 0
	for step := range steps {
		var did []string
		// A link that leads elsewhere makes the watch incomplete. Chance may keep it for all of the run, which then tests nothing.
		if incomplete > 10 {
			removeLinks(t, w.root)
			did, incomplete = append(did, "links removed"), 0
		}
		for range 1 + random.IntN(3) {
			did = append(did, w.doRandomly(random))
		}
		wasWhole := w.w.Status().State == Whole
		heard := !wasWhole || w.hears()
		w.w.retry = time.Time{}
		after := w.scan()
		if after != before && !heard {
			t.Fatalf("step %d, %q: not told, although pages have changed:\n%s\n%s", step, did, before, after)
		}
		before = after
		if w.w.Status().State == Incomplete {
			incomplete++
			continue
		}
		w.want(Whole, "")
		whole++
	}
	if whole < steps/4 {
		t.Errorf("whole after %d of %d steps", whole, steps)
	}
}

// removeLinks removes each symbolic link below root.
func removeLinks(t *testing.T, root string) {
	t.Helper()
	must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type() != fs.ModeSymlink {
			return err
		}
		return os.Remove(path)
	}))
}

// doRandomly changes something, if it can.
func (w *watched) doRandomly(random *rand.Rand) string {
	names := []string{"0", "1", "2", "0.html", "1.html", "2.html", "x.log", "y.css", "index.html", ".h"}
	some := func() string {
		name := ""
		for range random.IntN(3) {
			name = filepath.Join(name, names[random.IntN(3)])
		}
		return filepath.Join(w.root, name, names[random.IntN(len(names))])
	}
	a, b := some(), some()
	what := random.IntN(9)
	var err error
	switch what {
	case 0, 1:
		err = os.WriteFile(a, []byte(fmt.Sprint(random.IntN(3))), 0o644)
	case 2:
		err = os.MkdirAll(a, 0o755)
	case 3:
		err = os.Rename(a, b)
	case 4:
		err = os.Remove(a)
	case 5:
		if random.IntN(30) == 0 {
			err = os.Symlink(filepath.Base(b), a)
		}
	case 6:
		err = unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	case 7:
		err = os.Chtimes(a, time.Time{}, testNow.Add(-time.Duration(random.IntN(1000))*time.Minute))
	case 8:
		if random.IntN(10) == 0 {
			err = os.RemoveAll(a)
		}
	}
	return fmt.Sprint(what, " ", a, " ", b, " ", err)
}

// TestWatchLinks: a link that leads to where nothing is watched makes the watch incomplete.
func TestWatchLinks(t *testing.T) {
	outside := build(t, tree{"page.html": "x", "folder/b.html": "x"})
	for name, test := range map[string]struct {
		tree tree
		want WatchState
	}{
		"to a page of the root":            {tree{"a.html": "x", "b.html": "->a.html"}, Whole},
		"to a folder of the root":          {tree{"a/a.html": "x", "b": "->a"}, Whole},
		"from the front page":              {tree{"a.html": "x", "index.html": "->a.html"}, Whole},
		"from the front page, out":         {tree{"index.html": "->" + outside + "/page.html"}, Incomplete},
		"from the front page, to no page":  {tree{"index.html": "->a.txt", "a.txt": "x"}, Incomplete},
		"to a page outside":                {tree{"a.html": "->" + outside + "/page.html"}, Incomplete},
		"to a folder outside":              {tree{"a": "->" + outside + "/folder"}, Incomplete},
		"to an asset outside":              {tree{"a.css": "->" + outside + "/page.html"}, Whole},
		"to a page in a hidden folder":     {tree{"a.html": "->.data/a.html", ".data/a.html": "x"}, Incomplete},
		"to nothing":                       {tree{"a.html": "->nothing.html"}, Incomplete},
		"from an asset to nothing":         {tree{"a.css": "->nothing.css"}, Whole},
		"in a circle":                      {tree{"a": "->b", "b": "->a"}, Incomplete},
		"to what nobody may list, outside": {tree{"404.html": "->" + outside + "/page.html"}, Whole},
	} {
		w := newWatched(t, test.tree)
		w.scan()
		if got := w.w.Status(); got.State != test.want || (test.want == Incomplete) != strings.Contains(got.Reason, "a symbolic link") {
			t.Errorf("%s: got %s, %q", name, got.State, got.Reason)
		}
	}
}

// TestWatchRoot: the folder to which the root's path leads is another one.
func TestWatchRoot(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := build(t, tree{"releases/1/a.html": "x", "releases/2/a.html": "y", "releases/3/": "", "current": "->releases/1"})
	root := filepath.Join(dir, "current")
	w := watchedAt(t, root)
	defer w.w.Close()
	w.scan()
	swap := func(target string) {
		must(t, os.Symlink(target, root+".new"), os.Rename(root+".new", root))
	}

	swap("releases/2")
	w.waits()
	w.scan()
	w.want(Whole, "")
	write(t, filepath.Join(dir, "releases/2/a.html"), "z")
	w.waits()
	w.scan()

	// It is made anew.
	must(t, os.RemoveAll(filepath.Join(dir, "releases/2")))
	w.waits()
	if _, err := Scan(context.Background(), w.o, func(page.Page) error { return nil }); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("got %v", err)
	}
	w.want(Unwatched, "")
	add(t, dir, tree{"releases/2/b.html": "x"})
	w.waits()
	w.scan()
	w.want(Whole, "")
}

// TestWatchRootVanishes: of a root that is removed while it is scanned, nothing counts as watched.
func TestWatchRootVanishes(t *testing.T) {
	w := NewWatcher()
	defer w.Close()
	p := &pass{w: w, root: filepath.Join(t.TempDir(), "none"), n: newBlind()}
	p.folders.Store(3)
	p.end(t.Context(), fs.ErrNotExist)
	if got := w.Status(); got.State != Unwatched || got.Folders != 0 {
		t.Errorf("got %+v", got)
	}
}

// TestWatchRootAmidLog: a link to the root that leads elsewhere is noticed, too, while a log in the root is written all the time.
func TestWatchRootAmidLog(t *testing.T) {
	releases := build(t, tree{"1/a.html": "x", "2/a.html": "x"})
	root := filepath.Join(releases, "current")
	must(t, os.Symlink("1", root))
	w := watchedAt(t, root)
	w.w.pace.root = 200 * time.Millisecond // in which the log is written, too
	w.scan()
	w.want(Whole, "")
	ctx, cancel := context.WithCancel(context.Background())
	written := make(chan struct{})
	go func() {
		defer close(written)
		for ctx.Err() == nil {
			_ = os.WriteFile(filepath.Join(releases, "1", "error.log"), []byte("x"), 0o644)
			time.Sleep(time.Millisecond)
		}
	}()
	defer func() { cancel(); <-written }()
	must(t, os.Symlink("2", root+".new"), os.Rename(root+".new", root))
	w.waits()
}

// TestWatchWait: a change is told once, after it was quiet, however long Wait has waited; what never ends is told, too.
func TestWatchWait(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	w := newWatched(t, tree{"a.html": "x", "error.log": "x"})
	defer w.w.Close()
	told := make(chan bool, 100)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for w.w.Wait(ctx) {
			told <- true
		}
	}()
	for range 3 {
		w.scan()
		write(t, filepath.Join(w.root, "a.html"), "y")
		<-told
	}
	write(t, filepath.Join(w.root, "a.html"), "z") // no scan has come since
	if len(told) != 0 {
		t.Error("a change was told twice")
	}
	w.scan()
	w.want(Whole, "")
	for len(told) == 0 { // never quiet
		write(t, filepath.Join(w.root, "a.html"), "y")
	}
	<-told
	w.scan()

	// Another Watcher goes on with what was watched.
	next := watchedAt(t, w.root)
	next.w.budget = w.w.budget
	defer next.w.Close()
	next.w.TakeOver(w.w)
	<-told
	w.want(Unwatched, "")
	next.want(Whole, "")
	write(t, filepath.Join(w.root, "a.html"), "z")
	next.waits()
	w.scan()
	w.want(Whole, "")
	cancel()
	<-done
	if len(told) != 0 {
		t.Error("a change was told, although there was none")
	}
}

// TestWatchMany: a burst of events is read quickly.
func TestWatchMany(t *testing.T) {
	w := newWatched(t, tree{"a.html": "x", "sub/b.html": "x"})
	w.scan()
	for i := range 300 {
		must(t, os.MkdirAll(filepath.Join(w.root, "copied", fmt.Sprint(i)), 0o755))
		write(t, filepath.Join(w.root, "copied", fmt.Sprint(i), "a.html"), "x")
	}
	if !w.hears() {
		t.Error("copied folders are not told")
	}
	w.scan()
	w.want(Whole, "")
	if got := w.w.Status().Folders; got != 303 {
		t.Errorf("%d folders are watched", got)
	}
	write(t, filepath.Join(w.root, "copied/150/a.html"), "y")
	if !w.hears() {
		t.Error("a change in a copied folder is not told")
	}
}

// TestWatchMeanwhile: what changes during a scan is found by it, or told after it.
func TestWatchMeanwhile(t *testing.T) {
	w := newWatched(t, tree{"a/a.html": "x", "b/b.html": "x", "c/c.html": "x"})
	w.scan()
	var seen []string
	_, err := Scan(context.Background(), w.o, func(p page.Page) error {
		if p.Path == "/b/b.html" {
			must(t, os.Rename(filepath.Join(w.root, "c/c.html"), filepath.Join(w.root, "a/c.html")))
		}
		seen = append(seen, p.Path)
		return nil
	})
	must(t, err)
	w.want(Whole, "")
	if !w.hears() {
		t.Errorf("not told; the scan has found %q", seen)
	}
}

// TestWatchUntold: a root is not trusted any more after a change that no event told.
func TestWatchUntold(t *testing.T) {
	outside := t.TempDir()
	w := newWatched(t, tree{"a.html": "x", "error.log": "x"})
	must(t, os.Link(filepath.Join(w.root, "a.html"), filepath.Join(outside, "a.html")))
	w.scan()
	w.want(Whole, "")

	// A change that is told excuses what else may have happened.
	write(t, filepath.Join(outside, "a.html"), "y")
	write(t, filepath.Join(w.root, "b.html"), "y")
	w.scan()
	w.want(Whole, "")

	// Other options find other pages.
	w.o.Exclude = []string{"/b*"}
	w.scan()
	w.want(Whole, "")

	write(t, filepath.Join(w.root, "error.log"), "y")
	write(t, filepath.Join(outside, "a.html"), "z")
	if w.hears() {
		t.Error("a write by another name is told")
	}
	w.scan()
	w.want(Mistrusted, "no event")
	write(t, filepath.Join(w.root, "b.html"), "z")
	w.scan()
	w.want(Mistrusted, "no event")

	next := watchedAt(t, w.root)
	next.w.TakeOver(w.w)
	next.scan()
	next.want(Mistrusted, "no event")
	next.o.Root = outside
	next.scan()
	next.want(Whole, "")
}

// TestWatchLate: an event may come a moment after what a scan has seen.
func TestWatchLate(t *testing.T) {
	w := newWatched(t, tree{"a.html": "x"})
	w.w.pace.late = time.Minute
	w.scan()
	w.w.in.digest++ // as if the next scan saw a change
	written := make(chan error)
	go func() { written <- os.WriteFile(filepath.Join(w.root, "a.html"), []byte("y"), 0o600) }()
	w.scan()
	must(t, <-written)
	w.want(Whole, "")
}

// TestWatchLimits: what is too much is not watched at all, and nothing of it stays.
func TestWatchLimits(t *testing.T) {
	tree := tree{"a/a.html": "x", "b/b.html": "x", "c/c.html": "x"}
	for name, test := range map[string]struct {
		limit  func(w *Watcher)
		reason string
	}{
		"folders": {func(w *Watcher) { w.budget.maxWatches = 3 }, "more folders than the 3"},
		"roots":   {func(w *Watcher) { w.budget.maxRoots = 0 }, ReasonFull},
		"instances": {func(w *Watcher) {
			w.notify = func() (notifier, error) { return nil, errors.New("no inotify instance is left") }
		}, "no inotify instance is left"},
		"watches":             {func(w *Watcher) { w.notify = failing(unix.ENOSPC) }, "cannot watch"},
		"another file system": {func(w *Watcher) { w.notify = failing(nil) }, "is NFS"},
	} {
		w := newWatched(t, tree)
		maxWatches := w.w.budget.maxWatches
		maxRoots := w.w.budget.maxRoots
		usual := w.w.notify
		test.limit(w.w)
		w.scan()
		if got := w.w.Status(); got.State != Incomplete || !strings.Contains(got.Reason, test.reason) || got.Folders != 0 {
			t.Errorf("%s: got %+v", name, got)
		}
		if n := w.w.budget.watches.Load() + w.w.budget.roots.Load(); n != 0 {
			t.Errorf("%s: %d watches and roots are counted", name, n)
		}
		// It is tried again later.
		w.w.budget.maxWatches = maxWatches
		w.w.budget.maxRoots = maxRoots
		w.w.notify = usual
		w.scan()
		if got := w.w.Status().State; got != Incomplete {
			t.Errorf("%s: then %s", name, got)
		}
		w.w.retry = time.Time{}
		w.scan()
		w.want(Whole, "")
	}

	// A scan may have as many as the one before, which is let go only then.
	w := newWatched(t, tree)
	w.w.budget.maxWatches = 4
	w.w.budget.maxRoots = 1
	for range 3 {
		w.scan()
		w.want(Whole, "")
	}
	other := watchedAt(t, w.root)
	other.w.budget = w.w.budget
	other.scan()
	other.want(Incomplete, ReasonFull)
	other.w.Close()
	w.w.Close()
}

// TestWatchLimitsAtOnce: scans at the same time, each of which takes the place of one before, are counted as little as one.
func TestWatchLimitsAtOnce(t *testing.T) {
	tree := tree{"a/a.html": "x", "b/b.html": "x"}
	one := newWatched(t, tree)
	one.w.budget.maxWatches = 9
	one.w.budget.maxRoots = 3
	all := []*watched{one, newWatched(t, tree), newWatched(t, tree)}
	for _, w := range all {
		w.w.budget = one.w.budget
		w.scan()
		w.want(Whole, "")
	}
	var scanAll func(left []*watched)
	scanAll = func(left []*watched) {
		if len(left) == 0 {
			return
		}
		isFirst := true
		_, err := Scan(context.Background(), left[0].o, func(page.Page) error {
			if isFirst {
				scanAll(left[1:])
			}
			isFirst = false
			return nil
		})
		must(t, err)
		left[0].want(Whole, "")
	}
	scanAll(all)
	for _, w := range all {
		w.w.Close()
	}
}

// failing returns what makes notifiers whose add fails, or whose file system is another one.
func failing(err error) func() (notifier, error) {
	return func() (notifier, error) {
		n, made := newNotifier()
		return failingNotifier{n, err}, made
	}
}

type failingNotifier struct {
	notifier
	err error
}

func (f failingNotifier) add(string, bool) error { return f.err }
func (failingNotifier) foreign(string) string    { return "NFS" }

// TestWatchUnreadable: what cannot be read need not be watched, since the folder above tells when it can.
func TestWatchUnreadable(t *testing.T) {
	root, err := os.MkdirTemp("", "files") // outside of t.TempDir: others may not enter that
	must(t, err)
	defer os.RemoveAll(root)
	must(t, os.Chmod(root, 0o755))
	add(t, root, tree{"a.html": "x", "secret/b.html": "x"})
	w := watchedAt(t, root)
	secret := filepath.Join(root, "secret")
	must(t, os.Chmod(secret, 0))
	asStranger(t, func() { w.scan() })
	w.want(Whole, "")
	must(t, os.Chmod(secret, 0o755))
	if !w.hears() {
		t.Error("a folder that can be read now is not told")
	}
}

// TestWatchFails: a scan that ends early watches nothing, and one of an fs.FS never does.
func TestWatchFails(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	w := newWatched(t, tree{"a.html": "x", "b.html": "x"})
	w.scan()
	stop := errors.New("stop")
	if _, err := Scan(context.Background(), w.o, func(page.Page) error { return stop }); err != stop {
		t.Fatal(err)
	}
	w.want(Unwatched, "")
	w.o.FS = os.DirFS(w.root)
	w.o.Root = "."
	w.scan()
	w.want(Incomplete, "no")
	w.w.Close()
	w.o = Options{Root: w.root, Watcher: w.w, Now: testNow}
	w.scan()
	w.want(Unwatched, "")
}

// TestWatchTwice: two sites may have one root.
func TestWatchTwice(t *testing.T) {
	one := newWatched(t, tree{"a.html": "x"})
	other := watchedAt(t, one.root)
	one.scan()
	other.scan()
	write(t, filepath.Join(one.root, "a.html"), "y")
	if !one.hears() || !other.hears() {
		t.Error("a change is not told to both")
	}
}

// TestFileSystems: those of this machine are told apart.
func TestFileSystems(t *testing.T) {
	n, err := newNotifier()
	must(t, err)
	defer n.close()
	if name := n.foreign("/proc"); name != "of type 0x9fa0" {
		t.Errorf("/proc is %s", name)
	}
	if name := n.foreign(filepath.Join(t.TempDir(), "nothing")); !strings.Contains(name, "no such file") {
		t.Errorf("nothing is %s", name)
	}
	if most := n.most(); most < 1000 {
		t.Errorf("at most %d watches", most)
	}
}

// TestDecode: an event that is cut off is none, and padding is no name.
func TestDecode(t *testing.T) {
	var got []string
	note := func(e event) { got = append(got, fmt.Sprint(e)) }
	raw := []byte("\x01\x00\x00\x00\x00\x01\x00\x40\x00\x00\x00\x00\x04\x00\x00\x00sub\x00" +
		"\xff\xff\xff\xff\x00\x40\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" + "\x01\x00\x00\x00\x00\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" + "short")
	decode(raw, note)
	if want := []string{"{1 sub true}", "{2  false}"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
