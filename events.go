package sitemap

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/publish"
	"github.com/seed3295b519/caddy-sitemap/internal/sitemapxml"
)

// Events that are emitted through Caddy's events app.
const (
	// eventRefreshed says that other documents than before are served: site (its URL),
	// sitemap (the URL of its index), pages, added, changed and removed (numbers of pages).
	eventRefreshed = "sitemap_refreshed"

	// eventFailed says that a refresh failed or is held back, and why: site, sitemap,
	// reason. It comes again when the reason is another one, or a refresh succeeded since.
	eventFailed = "sitemap_refresh_failed"
)

// maxEvents is how many events wait for the handlers of those before.
const maxEvents = 100

// event is one that is to be emitted.
type event struct {
	name string
	data map[string]any
}

// newEvent is an event about the site.
func (s *site) newEvent(name string, data map[string]any) []event {
	data["site"], data["sitemap"] = s.url(), s.sitemapURL()
	return []event{{name, data}}
}

// changeEvents are those of a refresh that changed what is served; none where nobody
// listens.
func (s *site) changeEvents(before *publish.Snapshot, out *result) []event {
	if out.outcome == refreshUnchanged || !s.app.listensTo(eventRefreshed) {
		return nil
	}
	changes, err := s.changes(before, out)
	switch {
	case err != nil:
		if s.ctx.Err() == nil {
			s.logger.Error("comparing the sitemap with the one before failed", zap.Error(err))
		}
		return nil
	case changes == sitemapxml.Changes{} && (out.outcome == refreshEmpty || out.outcome == refreshHeldBack):
		return nil
	}
	return s.newEvent(eventRefreshed, map[string]any{
		"pages": pagesOf(out.snapshot), "added": changes.Added, "changed": changes.Changed, "removed": changes.Removed,
	})
}

// changes counts the pages in which a result differs from the snapshot before.
func (s *site) changes(before *publish.Snapshot, out *result) (sitemapxml.Changes, error) {
	switch c := &out.selected.Changes; {
	case before == nil || out.snapshot == nil:
		return sitemapxml.Changes{Added: pagesOf(out.snapshot), Removed: pagesOf(before)}, nil
	case s.handler.settings.crawl.off: // there are no records that say what was listed
		return sitemapxml.Compare(s.without(before, out.snapshot), s.without(out.snapshot, before))
	default:
		return sitemapxml.Changes{Added: c.Added.Count, Changed: c.Changed.Count, Removed: c.Removed.Count}, nil
	}
}

// without are the documents of pages that a snapshot has and another has not.
func (s *site) without(snapshot, other *publish.Snapshot) []sitemapxml.Opener {
	var all []sitemapxml.Opener
	for _, d := range documentsOf(snapshot) {
		if same := other.Find(d.Suffix); same != nil && same.ETag == d.ETag {
			continue
		}
		all = append(all, func() (io.ReadCloser, error) {
			if err := s.ctx.Err(); err != nil {
				return nil, err
			}
			return d.XML()
		})
	}
	return all
}

// documentsOf are the documents that list pages, in the order of these.
func documentsOf(snapshot *publish.Snapshot) []*publish.Document {
	if len(snapshot.Shards) == 0 {
		return []*publish.Document{snapshot.Index}
	}
	return snapshot.Shards
}

// failedEvents are those of a refresh that failed or is held back, unless the one before
// did so for the same reason.
func (s *site) failedEvents(rep, before *report) []event {
	if rep.outcome != refreshFailed && rep.outcome != refreshHeldBack || rep.outcome == before.outcome && rep.reason == before.reason {
		return nil
	}
	return s.newEvent(eventFailed, map[string]any{"reason": rep.reason})
}

// joinEvents finds Caddy's events app, and learns from it when all apps have started.
func (a *App) joinEvents() error {
	events, err := a.ctx.App("events")
	if err != nil {
		return fmt.Errorf("loading the events app: %w", err)
	}
	a.events, a.begun, a.announced = events.(*caddyevents.App), make(chan struct{}), make(chan event, maxEvents)
	return a.events.On("started", onStarted(sync.OnceFunc(func() { close(a.begun) })))
}

// listensTo reports whether emitting an event could be observed, as far as that is known
// yet.
func (a *App) listensTo(name string) bool {
	return a.building == nil && (!a.hasBegun() || a.events.ShouldEmit(name))
}

// hasBegun reports whether all apps have started: until then, the events app may still
// be taking down who listens.
func (a *App) hasBegun() bool {
	select {
	case <-a.begun:
		return true
	default:
		return false
	}
}

// announce has events emitted, in their order. No refresh waits for their handlers: what
// comes while too many wait is dropped. A build without a server announces nothing.
func (a *App) announce(events []event) {
	if a.building != nil {
		return
	}
	for _, e := range events {
		select {
		case a.announced <- e:
		default:
			if n := a.droppedEvents.Add(1); isPowerOfTen(int(n)) {
				a.logger.Warn("event handlers take longer than refreshes: events are dropped", zap.String("event", e.name), zap.Uint64("dropped", n))
			}
		}
	}
}

// emitEvents emits what is announced, until ctx ends.
func (a *App) emitEvents(ctx context.Context) {
	select {
	case <-a.begun:
	case <-ctx.Done():
		return
	}
	for {
		select {
		case e := <-a.announced:
			if !orLeave(ctx, func() { a.emit(e) }) {
				a.logger.Warn("an event handler goes on although it was canceled", zap.String("event", e.name))
			}
		case <-ctx.Done():
			return
		}
	}
}

// emit emits one event. A handler's panic is its own.
func (a *App) emit(e event) {
	defer func() {
		if v := recover(); v != nil {
			a.logger.Error("an event handler panicked", zap.String("event", e.name), zap.String("panic", fmt.Sprint(v)))
		}
	}()
	a.events.Emit(a.ctx, e.name, e.data)
}

// onStarted is called by Caddy when all apps have started.
type onStarted func()

// Handle implements caddyevents.Handler.
func (f onStarted) Handle(context.Context, caddy.Event) error {
	f()
	return nil
}

var _ caddyevents.Handler = onStarted(nil)

// orLeave runs f and waits for it, but only a little longer once ctx has ended. False: f
// was abandoned, as nothing can end it.
func orLeave(ctx context.Context, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
	}
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
