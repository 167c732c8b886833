package sitemap

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/state"
)

// TestRecalled: what is kept of a snapshot is that snapshot again.
func TestRecalled(t *testing.T) {
	for name, paths := range map[string][]string{
		"one document": {"/", "/a"},
		"shards":       strings.Split("/ /a /b /c /d /e /f /g /h", " "),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, &Handler{ShardURLs: 2})
			if name == "one document" {
				b.handler.settings.shardURLs = 100
			}
			b.source = lists(paths...)
			s := b.site("named.example")
			b.refresh(s)
			if len(paths) > 2 {
				b.source = lists(paths[2:]...) // so that names are retired
				b.refresh(s)
			}
			want := s.current()
			ctx := context.Background()
			book, err := state.Open(ctx, state.NewMemory(), "site")
			if err != nil {
				t.Fatal(err)
			}
			d := book.Draft(ctx, 1)
			if err := want.shelve(d); err != nil {
				t.Fatal(err)
			}
			x := &examination{site: s, result: new(outcome)}
			if err := x.note(d, want); err != nil {
				t.Fatal(err)
			}
			if book, err = d.Commit(ctx); err != nil {
				t.Fatal(err)
			}
			got, err := recalled(ctx, book)
			if err != nil {
				t.Fatal(err)
			}
			if got.pages != want.pages || got.bytes != want.bytes || len(got.bySuffix) != len(want.bySuffix) || len(got.shards) != len(want.shards) {
				t.Fatalf("got %d pages in %d documents of %d bytes, want %d in %d of %d", got.pages, len(got.bySuffix), got.bytes, want.pages, len(want.bySuffix), want.bytes)
			}
			for suffix, w := range want.bySuffix {
				g := got.bySuffix[suffix]
				if g == nil || !bytes.Equal(g.gzip, w.gzip) || g.headers != w.headers || !g.modified.Equal(w.modified) ||
					g.size != w.size || g.textSize != w.textSize || g.first != w.first || g.newest != w.newest || g.sum != w.sum || g.kind != w.kind {
					t.Errorf("document '%s' is %+v, want %+v", suffix, g, w)
				}
			}
			if len(got.retired) != len(want.retired) {
				t.Fatalf("%d retired names, want %d", len(got.retired), len(want.retired))
			}
			for i, r := range got.retired {
				if w := want.retired[i]; r.suffix != w.suffix || r.first != w.first || r.at.Unix() != w.at.Unix() {
					t.Errorf("retired name %+v, want %+v", r, w)
				}
			}
		})
	}
}

// TestRecalledRefuses: documents that do not belong together are none.
func TestRecalledRefuses(t *testing.T) {
	type document struct{ name, note string }
	for name, test := range map[string][]document{
		"no index":          {{"shard-000000000000", "{}"}},
		"a strange name":    {{"index", "{}"}, {"shard-zz", "{}"}},
		"a note that is no": {{"index", "{"}},
		"an index alone":    {{"index", `{"kind":1}`}},
		"urlset and shard":  {{"index", `{"kind":0}`}, {"shard-000000000000", "{}"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			book, err := state.Open(ctx, state.NewMemory(), "site")
			if err != nil {
				t.Fatal(err)
			}
			d := book.Draft(ctx, 1)
			for _, doc := range test {
				if err := d.PutDocument(doc.name, 1, []byte(doc.note), []byte("x")); err != nil {
					t.Fatal(err)
				}
			}
			if book, err = d.Commit(ctx); err != nil {
				t.Fatal(err)
			}
			if s, err := recalled(ctx, book); s != nil || !errors.Is(err, state.ErrUnusable) {
				t.Errorf("got %v, %v", s, err)
			}
		})
	}
}

// TestShelfLock: who waits for a shelf ends with its context.
func TestShelfLock(t *testing.T) {
	sh := newShelf(state.NewMemory(), "x")
	if !sh.tryLock() || sh.tryLock() {
		t.Fatal("the shelf is not for one at a time")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := sh.lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	sh.unlock()
	if err := sh.lock(context.Background()); err != nil {
		t.Error(err)
	}
}
