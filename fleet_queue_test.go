package sitemap

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/seed3295b519/caddy-sitemap/internal/announce"
	"github.com/seed3295b519/caddy-sitemap/internal/fleet"
)

// pings has a handler announce to a search engine.
func pings(b *bench) {
	b.handler.Ping = []string{"https://engine.example/?{sitemap}"}
	b.handler.settings.announce.Targets = []announce.Target{{Kind: announce.Ping, URL: b.handler.Ping[0]}}
}

// TestFleetStorageQueue: what waits to be announced moves to another storage, with the key.
func TestFleetStorageQueue(t *testing.T) {
	b, s := sharing(t, t.TempDir(), pings)
	defer s.drop()
	b.refresh(s)
	queue := s.state.queue.Load()
	own := &certmagic.FileStorage{Path: t.TempDir()}
	b.app.sharing = storageSetting{kind: inOwn, own: own, digest: 1}
	b.app.sites = make(map[siteID]*site)
	next := b.site("named.example")
	defer next.drop()
	if got := next.state.queue.Load(); got != queue || got == nil {
		t.Fatal("it begins anew")
	}
	b.clock = b.clock.Add(time.Hour)
	b.lists("/a", "/b")
	b.refresh(next)
	stored, err := own.List(t.Context(), "sitemap/announce", true)
	if err != nil || len(stored) == 0 || next.state.queue.Load() != queue {
		t.Errorf("stored %q, %v", stored, err)
	}
	b.handler.settings.digest++ // other settings have the same announcements
	b.app.sites = make(map[siteID]*site)
	if got := b.site("named.example").state.queue.Load(); got != nil && got != queue {
		t.Error("there is another queue")
	}
}

// watched is a storage that calls a function before it stores a value.
type watched struct {
	fleet.Shared
	before func(key string)
}

func (w watched) Store(ctx context.Context, key string, value []byte) error {
	w.before(key)
	return w.Shared.Store(ctx, key, value)
}

// TestFleetQueue: a change is announced although another node stores the queue at the same time. What is stored already is
// not stored again.
func TestFleetQueue(t *testing.T) {
	folder := t.TempDir()
	b1, first := sharing(t, folder, pings)
	b1.refresh(first)
	b2, second := sharing(t, folder, pings)
	b2.clock = b1.clock
	second.run()
	stores, meddle := 0, true
	storage := fleet.Shared(watched{second.state.fleet.Storage(), func(key string) {
		if strings.HasPrefix(key, "sitemap/latest/") {
			stores++
		}
		if strings.HasPrefix(key, "sitemap/announce/") && meddle {
			meddle = false
			q, _ := announce.New([]byte(`{"key":"stored-meanwhile","known":true}`), first.announceConfig())
			first.state.queue.Store(q)
			if err := first.saveQueue(t.Context(), q, q); err != nil {
				t.Error(err)
			}
		}
	}})
	second.state.fleet.Configure(storage, 0)
	for i := range 3 {
		b2.clock = b2.clock.Add(time.Hour)
		b2.lists("/a", fmt.Sprint("/b", i))
		if before := stores; pagesOf(b2.refresh(second)) != 2 || i > 0 && stores > before {
			t.Errorf("refresh %d: %d stores, %+v", i, stores-before, second.published().report)
		}
		_ = first.state.fleet.Queue.Poll(t.Context())
		if q := first.announcements(t.Context(), false); meddle || q.Status(time.Now())[0].Waiting != 1 {
			t.Errorf("refresh %d: announced: %+v", i, q.Status(time.Now()))
		}
	}
	if old := new(announce.Queue); first.saveQueue(t.Context(), old, old) == nil {
		t.Error("a queue that was replaced is stored")
	}
}

// late is a storage whose values take a second.
type late struct{ fleet.Shared }

func (l late) Load(ctx context.Context, key string) ([]byte, error) {
	data, err := l.Shared.Load(ctx, key)
	time.Sleep(time.Second)
	return data, err
}

// TestFleetQueueLoads: while a node loads the announcements that another one has stored, it does not overwrite them.
func TestFleetQueueLoads(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		folder, now := t.TempDir(), func(b *bench) {
			b.app.now = time.Now
			pings(b)
		}
		_, first := sharing(t, folder, now)
		first.run()
		_, second := sharing(t, folder, now)
		second.run()
		q := second.state.queue.Load()
		q.Update(announce.Update{Complete: true, Crawled: true, Sitemap: true})
		if err := second.saveQueue(t.Context(), q, q); err != nil || q.Status(time.Now())[0].Waiting != 1 {
			t.Fatal(err, q.Status(time.Now()))
		}
		storage := fleet.Shared(late{first.state.fleet.Storage()})
		first.state.fleet.Configure(storage, 0)
		old := first.state.queue.Load()
		old.Update(announce.Update{First: true}) // it is another one
		go first.pollQueue(t.Context())
		time.Sleep(2500 * time.Millisecond) // it has read which is the newest
		if err := first.saveQueue(t.Context(), old, old); !errors.Is(err, fleet.ErrLost) {
			t.Errorf("while it is loaded: %v", err)
		}
		if got := first.state.queue.Load().Status(time.Now()); got[0].Waiting != 1 {
			t.Errorf("announced: %+v", got)
		}
		time.Sleep(10 * time.Second) // the storage notices that locks are released
	})
}

// TestFleetQueueFirst: changes are queued before they are committed. A process that ends in between has told them.
func TestFleetQueueFirst(t *testing.T) {
	b, s := sharing(t, t.TempDir(), pings)
	b.refresh(s)
	b.clock = b.clock.Add(time.Hour)
	var stored []string
	storage := fleet.Shared(watched{s.state.fleet.Storage(), func(key string) { stored = append(stored, key) }})
	s.state.fleet.Configure(storage, 0)
	b.lists("/a", "/b")
	b.refresh(s)
	if len(stored) < 3 || !strings.HasPrefix(stored[0], "sitemap/announce/") {
		t.Errorf("%d pages, stored %q", pagesOf(s.published().snapshot), stored)
	}
}

// TestFleetAnnouncesAdded: an added page is announced once a refresh that finds nothing new still lists it.
func TestFleetAnnouncesAdded(t *testing.T) {
	b, s := sharing(t, t.TempDir(), func(b *bench) {
		b.handler.IndexNow = new(IndexNow)
		b.handler.settings.base = "https://www.example.com" // a public host
		b.handler.settings.announce.Targets = []announce.Target{{Kind: announce.IndexNow, URL: "https://engine.example/indexnow"}}
	})
	for range 2 {
		b.refresh(s)
	}
	b.lists("/a", "/added")
	b.refresh(s)
	unconfirmed := s.state.queue.Load().Status(b.clock)[0]
	b.refresh(s)
	waiting := s.state.queue.Load().Status(b.clock)[0]
	if unconfirmed.Unconfirmed != 1 || waiting.Unconfirmed != 0 || waiting.Waiting != 1 {
		t.Errorf("got %+v, then %+v", unconfirmed, waiting)
	}
}
