package sitemap

import (
	"context"
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/publish"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// eventQueue emits events in their order. No refresh waits for their handlers. Nil: there
// is no server, and nothing is announced.
type eventQueue struct {
	app    *App
	events *caddyevents.App
	queue  chan func()
}

// newEventQueue returns a queue of up to 100 events; while it is full, events are dropped.
func newEventQueue(a *App) (*eventQueue, error) {
	events, err := a.ctx.App("events")
	if err != nil {
		return nil, fmt.Errorf("loading the events app: %w", err)
	}
	q := &eventQueue{a, events.(*caddyevents.App), make(chan func(), 100)}
	return q, q.events.On("started", q)
}

// Handle implements [caddyevents.Handler] for the event "started", which says that all apps have started, the events
// app, too: it starts a goroutine that emits events until the App is stopped. Search engines can get key files now.
func (q *eventQueue) Handle(context.Context, caddy.Event) error {
	q.app.setServing()
	q.app.group.Go(func() {
		wait.OrLeave(q.app.running, stopGrace, func() {
			for {
				select {
				case emit := <-q.queue:
					emit()
				case <-q.app.running.Done():
					return
				}
			}
		})
	})
	return nil
}

// announce queues an event, with the URLs of the site and its sitemap.
func (q *eventQueue) announce(s *site, name string, data map[string]any) {
	if q == nil {
		return
	}
	data["site"], data["sitemap"] = s.url(), s.sitemapURL()
	select {
	case q.queue <- func() {
		defer func() {
			if v := recover(); v != nil { // the queue goes on
				s.logger.Error("an event handler panicked", zap.Any("panic", v))
			}
		}()
		q.events.Emit(q.app.ctx, name, data)
	}:
	default:
		s.logger.Once(zap.WarnLevel, "events", "events are dropped: event handlers take longer than refreshes")
	}
}

// announceRefreshed announces that a snapshot was published in place of another one, if they differ,
// with the number of pages and, if records tell, of those added, changed and removed.
func (q *eventQueue) announceRefreshed(s *site, before *publish.Snapshot, out *report.Refresh) {
	data := map[string]any{"pages": pagesOf(out.Snapshot)}
	if c := &out.Selected.Changes; before == nil || out.Snapshot == nil {
		data["added"], data["changed"], data["removed"] = pagesOf(out.Snapshot), 0, pagesOf(before)
	} else if !s.handler.settings.crawl.Off {
		data["added"], data["changed"], data["removed"] = c.Added.Count, c.Changed.Count, c.Removed.Count
	}
	if !before.Equal(out.Snapshot) {
		q.announce(s, "sitemap_refreshed", data)
	}
}
