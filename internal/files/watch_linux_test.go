package files

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// TestWait: a change is told after a second of quiet, and to the next one who waits if nobody waits until then.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWatch()
		begun := time.Now()
		go func() {
			for range 3 {
				w.tell()
				w.tell()
				time.Sleep(900 * time.Millisecond)
			}
		}()
		short, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if w.Wait(short) {
			t.Error("it waits for no quiet")
		}
		if !w.Wait(t.Context()) {
			t.Error("the change is lost")
		}
		if got := time.Since(begun); got != 2800*time.Millisecond {
			t.Errorf("it was told after %s", got)
		}
		short, cancel = context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if w.Wait(short) {
			t.Error("it is told twice")
		}
	})
}

// watching is a tree that is watched.
type watching struct {
	*testing.T
	root string
	*Watch
}

func newWatching(t *testing.T, root string) *watching {
	w := &watching{t, root, NewWatch()}
	t.Cleanup(w.Close)
	return w
}

func (w *watching) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *watching) write(path string) {
	w.Helper()
	w.must(os.MkdirAll(filepath.Dir(path), 0o755))
	w.must(os.WriteFile(path, []byte("x"), 0o644))
}

// scan scans anew, and forgets what was told before.
func (w *watching) scan() {
	w.Helper()
	w.Renew()
	_, err := Scan(w.Context(), Options{Root: w.root, Watch: w.Watch}, func(page.Page) error { return nil })
	w.must(err)
	select {
	case <-w.changed:
	default:
	}
}

// wantTold waits until something is told.
func (w *watching) wantTold(what string) {
	w.Helper()
	select {
	case <-w.changed:
	case <-time.After(time.Minute):
		w.Fatalf("%s: nothing is told", what)
	}
}

// TestWatch: each change below a root is told, once the folder was scanned.
func TestWatch(t *testing.T) {
	folder := t.TempDir()
	w := newWatching(t, filepath.Join(folder, "up", "www"))
	at := func(name string) string { return filepath.Join(folder, name) }
	w.write(at("1/www/a.html"))
	w.write(at("1/www/sub/deep/b.html"))
	w.write(at("2/www/sub/c.html"))
	w.write(at("elsewhere/d.html"))
	w.must(os.Symlink(at("elsewhere"), at("1/www/linked")))
	w.must(os.Symlink("1", at("up")))
	for _, step := range []struct {
		what   string
		change func()
	}{
		{"a file", func() { w.write(at("1/www/sub/deep/new.html")) }},
		{"a file again", func() { w.write(at("1/www/a.html")) }},
		{"a file below a link", func() { w.write(at("elsewhere/new.html")) }},
		{"a folder", func() { w.must(os.Mkdir(at("1/www/folder"), 0o755)) }},
		{"in the new folder", func() { w.write(at("1/www/folder/a.html")) }},
		{"a removed folder", func() { w.must(os.RemoveAll(at("1/www/folder"))) }},
		{"a renamed folder", func() { w.must(os.Rename(at("1/www/sub"), at("1/www/sup"))) }},
		{"another folder of that name", func() { w.write(at("1/www/sub/deep/b.html")) }},
		{"in that folder", func() { w.write(at("1/www/sub/deep/b2.html")) }},
		{"another target of a link above", func() {
			w.must(os.Symlink("2", at("up.new")))
			w.must(os.Rename(at("up.new"), at("up")))
		}},
		{"in the other target", func() { w.write(at("2/www/sub/d.html")) }},
		{"another root", func() { w.must(os.Rename(at("2/www"), at("2/old"))); w.write(at("2/www/a.html")) }},
		{"in the other root", func() { w.write(at("2/www/b.html")) }},
	} {
		w.scan()
		step.change()
		w.wantTold(step.what)
	}
	if err := w.Err(); err != nil {
		t.Error(err)
	}
}

// TestWatchTwo: who shares a folder is told as long as it wants, and nothing is left behind.
func TestWatchTwo(t *testing.T) {
	root := t.TempDir()
	a, b := newWatching(t, root), newWatching(t, root)
	a.write(filepath.Join(root, "a.html"))
	a.scan()
	b.scan()
	a.write(filepath.Join(root, "b.html"))
	a.wantTold("one of two")
	b.wantTold("the other one")
	a.Close()
	b.scan()
	b.write(filepath.Join(root, "c.html"))
	b.wantTold("the one that is left")
	b.Close()
	if kernel.notify != nil || len(kernel.folders) > 0 {
		t.Errorf("%d folders are still watched", len(kernel.folders))
	}
}

// TestWatchBounds: beyond the maximum, nothing is watched, which is said.
func TestWatchBounds(t *testing.T) {
	root := t.TempDir()
	w := newWatching(t, root)
	w.write(filepath.Join(root, "a/b/c/d.html"))
	w.scan()
	kernel.Lock()
	kernel.most = len(kernel.folders)
	kernel.Unlock()
	w.write(filepath.Join(root, "a/b/more/e.html"))
	w.scan()
	if err := w.Err(); err == nil || !strings.Contains(err.Error(), "which is the maximum") {
		t.Errorf("got %v", err)
	}
	w.write(filepath.Join(root, "a/b/c/f.html"))
	w.wantTold("in a folder that is watched")
	if n := mayWatch(); n < 1 || n > maxWatched {
		t.Errorf("%d folders may be watched", n)
	}
}

// TestWatchLoss: after a loss, all are told.
func TestWatchLoss(t *testing.T) {
	w := newWatching(t, t.TempDir())
	w.write(filepath.Join(w.root, "a.html"))
	w.scan()
	w.Forget()
	w.scan()
	kernel.notify.Errors <- context.Canceled
	w.wantTold("a loss")
}
