package sitemap

import (
	"context"
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

// TestFleetStorageKey: what was announced moves to another storage, with the key.
func TestFleetStorageKey(t *testing.T) {
	b, s := sharing(t, t.TempDir(), pings)
	defer s.drop()
	b.refresh(s)
	key := s.state.announcer.Key()
	own := &certmagic.FileStorage{Path: t.TempDir()}
	b.app.sharing = storageSetting{kind: inOwn, own: own, digest: 1}
	b.app.sites = make(map[siteID]*site)
	next := b.site("named.example")
	defer next.drop()
	b.clock = b.clock.Add(time.Hour)
	b.lists("/a", "/b")
	b.refresh(next)
	stored, err := own.List(t.Context(), "sitemap/announce", true)
	if got := next.state.announcer.Key(); err != nil || len(stored) == 0 || got != key || key == "" {
		t.Errorf("stored %q, %v; the key is %q, it was %q", stored, err, got, key)
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

// TestFleetKey: nodes that begin at the same time have one key.
func TestFleetKey(t *testing.T) {
	folder := t.TempDir()
	_, first := sharing(t, folder, pings)
	_, second := sharing(t, folder, pings)
	hasMeddled := false
	storage := fleet.Shared(watched{second.state.fleet.Storage(), func(key string) {
		if strings.HasPrefix(key, "sitemap/announce/") && !hasMeddled {
			hasMeddled = true
			first.loadAnnouncer(t.Context())
		}
	}})
	second.state.fleet.Configure(storage, 0)
	second.loadAnnouncer(t.Context()) // the other one was first
	second.loadAnnouncer(t.Context())
	key := first.state.announcer.Key()
	if got := second.state.announcer.Key(); !hasMeddled || key == "" || got != key {
		t.Errorf("got %q and %q", key, got)
	}
}
