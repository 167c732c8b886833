package sitemap

import (
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/announce"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// pings has a handler announce to a search engine.
func pings(b *bench) {
	b.handler.Ping = []string{"https://engine.example/?{sitemap}"}
	b.handler.settings.announce.Targets = []announce.Target{{Kind: announce.Ping, URL: b.handler.Ping[0]}}
}

// TestFleetKey: all processes have one key, also where they start at the same time, or go on in another storage.
func TestFleetKey(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		shared := record.NewMemory()
		b1, first := sharing(t, shared, pings)
		b2, second := sharing(t, shared, pings)
		_, end1 := runs(b1, first)
		_, end2 := runs(b2, second)
		time.Sleep(time.Minute)
		key := first.state.announcer.Key()
		if got := second.state.announcer.Key(); key == "" || got != key {
			t.Errorf("got %q and %q", key, got)
		}
		end1()
		end2()
		b3, third := sharing(t, record.NewMemory(), pings, func(b *bench) { b.app.folder = b2.app.folder })
		_, end3 := runs(b3, third)
		defer end3()
		time.Sleep(time.Minute)
		if got := third.state.announcer.Key(); got != key {
			t.Errorf("in another storage, got %q, want %q", got, key)
		}
	})
}
