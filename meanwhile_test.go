package sitemap

import (
	"context"
	"errors"
	"net/http"
	"path"
	"sync"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/fleet"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// unloadable is a storage of which only the value current can be read.
type unloadable struct{ fleet.Shared }

func (u unloadable) Load(ctx context.Context, key string) ([]byte, error) {
	if path.Base(key) == "current" {
		return u.Shared.Load(ctx, key)
	}
	return nil, errors.New("unloadable")
}

// TestNoRefreshAtOnce: in a fleet, a process that is due but can do nothing comes back later, not at once and for ever.
func TestNoRefreshAtOnce(t *testing.T) {
	for name, meet := range map[string]func(b *bench, s *site){
		"what a dead writer has committed cannot be loaded": func(b *bench, s *site) {
			s.state.fleet.Configure(unloadable{s.state.fleet.Storage()}, 0)
			s.run()
		},
		"the site is an alias now": func(b *bench, s *site) {
			out := ended(outcome.Alias)
			s.conclude(&out, b.clock)
		},
		"the next configuration has other settings, and nobody commits by these": func(b *bench, s *site) {
			defer b.supersede()()
			s.run()
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			b1, first := sharing(t, folder, nil)
			b1.refresh(first)
			b2, second := sharing(t, folder, nil)
			b2.clock = b1.clock
			second.run()
			b1.lists("/a", "/b")
			b1.refresh(first)
			b2.clock = b1.clock
			if err := second.state.fleet.Poll(t.Context()); err != nil || !second.state.fleet.Newer() {
				t.Fatal(err, "nothing is newer")
			}
			b2.clock = b2.clock.Add(2 * second.handler.settings.interval)
			meet(b2, second)
			if due := second.schedule.Due(); !due.After(b2.clock) {
				t.Errorf("it is due in %s", due.Sub(b2.clock))
			}
		})
	}
}

// noting is a storage on which something else happens while a generation is committed.
type noting struct {
	fleet.Shared
	note func()
}

func (n noting) Store(ctx context.Context, key string, value []byte) error {
	err := n.Shared.Store(ctx, key, value)
	if path.Base(key) == "current" {
		n.note()
	}
	return err
}

// TestNotedMeanwhile: whatever is noted of a site while a refresh commits, what others can load is served here, too.
func TestNotedMeanwhile(t *testing.T) {
	b, s := sharing(t, t.TempDir(), nil)
	b.refresh(s)
	once := sync.OnceFunc(func() { s.fail(failed(errors.New("broken")), b.clock) })
	s.state.fleet.Configure(noting{s.state.fleet.Storage(), once}, 0)
	b.lists("/a", "/b")
	s.refresh(t.Context(), true)
	if got := s.published(); pagesOf(got.snapshot) != 2 || got.history.Last.Result != outcome.Published {
		t.Errorf("%d pages, %+v", pagesOf(got.snapshot), got.history.Last)
	}
}

// TestUnreadIsKnown: a source that fails, while nothing changes, has no other process load anything.
func TestUnreadIsKnown(t *testing.T) {
	folder := t.TempDir()
	b, s := sharing(t, folder, nil)
	fails := false
	b.handler.sources = []input{sortedFunc{func(yield func(page.Page) error) error {
		err := yield(page.Page{Path: "/a"})
		if err == nil && fails {
			err = errors.New("the list ends early")
		}
		return err
	}}}
	b.refresh(s)
	b.refresh(s)
	fails = true
	b.refresh(s)
	b2, second := sharing(t, folder, nil)
	b2.clock = b.clock
	second.run()
	for i := range 3 {
		b.refresh(s)
		_ = second.state.fleet.Poll(t.Context())
		if second.state.fleet.Newer() {
			t.Errorf("refresh %d is to be loaded: %+v", i, s.published().history)
		}
		second.run()
	}
}

// TestDueMeanwhile: while a refresh is under way, the site is due an interval after its begin, so that clients may keep what
// is published in parts.
func TestDueMeanwhile(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.handler.settings.interval = 10 * time.Minute
		b.lists(numbered(100)...)
		fast := b.pages
		b.pages = func(w http.ResponseWriter, r *http.Request) error {
			time.Sleep(time.Second)
			return fast(w, r)
		}
		s := b.site("named.example")
		begun := time.Now()
		go s.run()
		time.Sleep(20 * time.Second)
		if due := s.schedule.Due().Sub(begun); !s.schedule.IsRunning() || due != 10*time.Minute {
			t.Errorf("it is due %s after its begin", due)
		}
		time.Sleep(10 * time.Minute)
	})
}
