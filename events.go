package sitemap

import (
	"context"
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// eventQueue emits events in their order. No refresh waits for their handlers. Nil: there
// is no server, and nothing is emitted.
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
	q := &eventQueue{app: a, events: events.(*caddyevents.App), queue: make(chan func(), 100)}
	err = q.events.On("started", q)
	return q, err
}

// Handle implements [caddyevents.Handler] for the event "started", which says that all apps have started, the events
// app, too: it starts a goroutine that emits events until the App is stopped. Search engines can get key files now.
func (q *eventQueue) Handle(context.Context, caddy.Event) error {
	q.app.setServing()
	q.app.group.Go(func() {
		wait.OrLeave(q.app.running, stopGrace, q.emitAll)
	})
	return nil
}

// emitAll emits events until the App is stopped.
func (q *eventQueue) emitAll() {
	for {
		select {
		case emit := <-q.queue:
			emit()
		case <-q.app.running.Done():
			return
		}
	}
}

// emit queues an event, with the URLs of the site and its sitemap.
func (q *eventQueue) emit(s *site, name string, data map[string]any) {
	if q == nil {
		return
	}
	data["site"] = s.url()
	data["sitemap"] = s.sitemap
	emit := func() {
		defer func() {
			if v := recover(); v != nil { // the queue goes on
				s.logger.Error("an event handler panicked", zap.Any("panic", v))
			}
		}()
		q.events.Emit(q.app.ctx, name, data)
	}
	select {
	case q.queue <- emit:
	default:
		s.logger.Once(zap.WarnLevel, "events", "events are dropped: event handlers take longer than refreshes")
	}
}

// emitRefreshed emits that a snapshot was published in place of another one, if they differ,
// with the number of pages and, if records tell, of those added, changed and removed.
func (q *eventQueue) emitRefreshed(s *site, before *document.Set, out *report.Refresh) {
	if before.Equal(out.Snapshot) {
		return
	}
	data := map[string]any{"pages": pagesOf(out.Snapshot)}
	if before == nil || out.Snapshot == nil {
		data["added"] = pagesOf(out.Snapshot)
		data["changed"] = 0
		data["removed"] = pagesOf(before)
	} else if !s.handler.settings.crawl.Off {
		changes := &out.Selected.Changes
		data["added"] = changes.Added
		data["changed"] = changes.Changed
		data["removed"] = changes.Removed
	}
	q.emit(s, "sitemap_refreshed", data)
}
