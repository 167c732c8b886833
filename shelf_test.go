package sitemap

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/state"
)

// TestLibraryExpires: what is known of a site goes when it was no site for long.
func TestLibraryExpires(t *testing.T) {
	ctx, dir, now := context.Background(), t.TempDir(), time.Now()
	disk := &certmagic.FileStorage{Path: dir}
	for _, prefix := range []string{"used", "gone", "new"} {
		book, err := state.Open(ctx, disk, prefix)
		if err != nil {
			t.Fatal(err)
		}
		d := book.Draft(ctx, 1)
		if err := d.Add(&state.Record{Page: page.Page{Path: "/"}}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		if prefix != "new" {
			old := now.Add(-unusedFor - time.Hour)
			if err := os.Chtimes(filepath.Join(dir, filepath.FromSlash(state.ManifestKey(prefix))), old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	l := library{folder: dir, disk: state.NewFallback(disk), logger: zap.NewNop()}
	l.expire(ctx, map[string]bool{"used": true}, now)
	for prefix, want := range map[string]bool{"used": true, "gone": false, "new": true} {
		_, err := os.Stat(filepath.Join(dir, prefix))
		if got := err == nil; got != want {
			t.Errorf("%s: there %v, want %v", prefix, got, want)
		}
	}
}

// TestAskAlone: of two configurations the later one asks when the earlier one has ended,
// or not at all; what is asked otherwise does not wait.
func TestAskAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sh := newShelf(state.NewMemory(), "site")
		end := make(chan struct{})
		var order []string
		go sh.askAlone(t.Context(), answersUpstream, func() {
			<-end
			order = append(order, "first")
		})
		synctest.Wait()
		go sh.askAlone(t.Context(), answersUpstream, func() { order = append(order, "second") })
		ctx, cancel := context.WithCancel(t.Context())
		go sh.askAlone(ctx, answersUpstream, func() { t.Error("it asks although it was told to end") })
		sh.askAlone(t.Context(), answersHere, func() { order = append(order, "beside") })
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(end)
		synctest.Wait()
		if want := []string{"beside", "first", "second"}; !slices.Equal(order, want) {
			t.Errorf("got %q, want %q", order, want)
		}
	})
}
