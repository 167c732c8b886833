package sitemap

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// announcements takes the events that wait to be emitted.
func (b *bench) announcements() []event {
	var all []event
	for {
		select {
		case e := <-b.app.announced:
			all = append(all, e)
		default:
			return all
		}
	}
}

// wantEvent fails unless just one event waits, with these data besides those of the site.
func (b *bench) wantEvent(name string, data map[string]any) {
	b.t.Helper()
	data["site"], data["sitemap"] = "http://named.example", "http://named.example/sitemap.xml"
	if got := b.announcements(); len(got) != 1 || got[0].name != name || !maps.Equal(got[0].data, data) {
		b.t.Errorf("got %v, want %s %v", got, name, data)
	}
}

func TestEventsOfRefreshes(t *testing.T) {
	b := newBench(t, &Handler{})
	s := b.site("named.example")
	refreshed := func(pages, added, changed, removed int) map[string]any {
		return map[string]any{"pages": pages, "added": added, "changed": changed, "removed": removed}
	}
	paths := []string{"/a", "/b", "/c", "/d"}
	for _, step := range []struct {
		paths []string
		want  map[string]any
	}{
		{paths, refreshed(4, 4, 0, 0)},
		{paths, nil},
		{append(paths, "/e"), refreshed(5, 1, 0, 0)},
		{[]string{"/b", "/c", "/d", "/e", "/f"}, refreshed(5, 1, 0, 1)},
	} {
		b.source = lists(step.paths...)
		b.refresh(s)
		if step.want == nil {
			if got := b.announcements(); got != nil {
				t.Errorf("nothing changed, and there is %v", got)
			}
			continue
		}
		b.wantEvent(eventRefreshed, step.want)
	}

	b.source = func(_ context.Context, _ *Refresh, yield func(Page) error) error {
		for _, path := range []string{"/b", "/c", "/d", "/e", "/f"} {
			p := Page{Path: path}
			if path == "/c" {
				p.LastMod = 1e9
			}
			if err := yield(p); err != nil {
				return err
			}
		}
		return nil
	}
	b.refresh(s)
	b.wantEvent(eventRefreshed, refreshed(5, 0, 1, 0))

	b.source = lists()
	b.refresh(s)
	b.wantEvent(eventFailed, map[string]any{"reason": string(doubtFewer)})
	b.refresh(s)
	b.wantEvent(eventRefreshed, refreshed(0, 0, 0, 5))
}

// TestEventsOfFailures come once for a reason, and again once a refresh succeeded.
func TestEventsOfFailures(t *testing.T) {
	b := newBench(t, &Handler{})
	s := b.site("named.example")
	b.source = lists("/a")
	b.refresh(s)
	b.announcements()
	good, bad := b.source, func(context.Context, *Refresh, func(Page) error) error { return errors.New("out of order") }
	reason := map[string]any{"reason": "source 1 (bench) could not be read; " + string(doubtFewer)}
	b.source = bad
	b.refresh(s)
	b.wantEvent(eventFailed, maps.Clone(reason))
	if got := s.told(); got.result != refreshDoubted || got.sources[0].err != "out of order" || !got.confirmed.Before(got.begun) {
		t.Errorf("the report is %+v", got)
	}
	b.source = good
	b.refresh(s)
	if got := b.announcements(); got != nil {
		t.Errorf("nothing changed, and there is %v", got)
	}
	b.source = bad
	b.refresh(s)
	b.wantEvent(eventFailed, maps.Clone(reason))

	s.failed(t.Context(), b.clock.now(), errors.New("no answer"))
	if got := s.told(); got.result != refreshFailed || got.reason != "looking at the site: no answer" || !got.confirmed.Before(got.begun) {
		t.Errorf("the report is %+v", got)
	}
	for range 2 {
		if got := s.failedEvent("looking at the site: no answer"); got != nil {
			t.Errorf("the same again: %v", got)
		}
	}
}

// TestEmitSurvives a handler's panic.
func TestEmitSurvives(t *testing.T) {
	b := newBench(t, &Handler{})
	if err := b.app.events.On(eventFailed, panicking{}); err != nil {
		t.Fatal(err)
	}
	if err := b.app.events.Start(); err != nil {
		t.Fatal(err)
	}
	b.app.emit(event{eventFailed, nil})
	if got := b.logs.FilterMessage("the handler of an event panicked").Len(); got != 1 {
		t.Errorf("it is said %d times, want 1", got)
	}
}

type panicking struct{}

func (panicking) Handle(context.Context, caddy.Event) error { panic("a handler's own") }

// TestEventsAreDropped where nobody takes them, and no refresh waits.
func TestEventsAreDropped(t *testing.T) {
	b := newBench(t, &Handler{})
	b.app.announced = make(chan event, 2)
	for range 12 {
		b.app.announce([]event{{eventFailed, nil}})
	}
	if got := b.app.droppedEvents.Load(); got != 10 {
		t.Errorf("%d are dropped, want 10", got)
	}
	if got := b.logs.FilterMessageSnippet("events are dropped").Len(); got != 2 {
		t.Errorf("it is said %d times, want at the first and the tenth", got)
	}
}
