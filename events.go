package sitemap

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/publish"
)

// Events that are emitted through Caddy's events app.
const (
	// eventRefreshed says that other documents than before are served: site (its URL),
	// sitemap (the URL of its index), pages, added, changed and removed (numbers of pages; with crawl off
	// only pages).
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

// newEvent is an event about a site.
func newEvent(s *site, name string, data map[string]any) *event {
	data["site"], data["sitemap"] = s.url(), s.sitemapURL()
	return &event{name, data}
}

// refreshedEvent is that of a refresh that changed what is served; nil where nobody
// listens.
func refreshedEvent(s *site, before *publish.Snapshot, out *result) *event {
	if out.outcome == refreshUnchanged || !s.app.events.listensTo(eventRefreshed) {
		return nil
	}
	c := &out.selected.Changes
	added, changed, removed := c.Added.Count, c.Changed.Count, c.Removed.Count
	switch {
	case before == nil || out.snapshot == nil:
		added, changed, removed = pagesOf(out.snapshot), 0, pagesOf(before)
	case s.handler.settings.crawl.off: // there are no records that say what was listed
		return newEvent(s, eventRefreshed, map[string]any{"pages": pagesOf(out.snapshot)})
	}
	if added+changed+removed == 0 && (out.outcome == refreshEmpty || out.outcome == refreshHeldBack) {
		return nil
	}
	return newEvent(s, eventRefreshed, map[string]any{"pages": pagesOf(out.snapshot), "added": added, "changed": changed, "removed": removed})
}

// documentsOf are the documents that list pages, in the order of these.
func documentsOf(snapshot *publish.Snapshot) []*publish.Document {
	if len(snapshot.Shards) == 0 {
		return []*publish.Document{snapshot.Index}
	}
	return snapshot.Shards
}

// failedEvent is that of a refresh that failed or is held back; nil: it is neither, or the
// one before was so for the same reason.
func failedEvent(s *site, rep, before *report) *event {
	if rep.outcome != refreshFailed && rep.outcome != refreshHeldBack || rep.outcome == before.outcome && rep.reason == before.reason {
		return nil
	}
	return newEvent(s, eventFailed, map[string]any{"reason": rep.reason})
}

// eventQueue emits events in their order. No refresh waits for their handlers. Nil: there
// is no server, and nothing is announced.
type eventQueue struct {
	ctx     caddy.Context
	events  *caddyevents.App
	logger  *zap.Logger
	started chan struct{} // closed when all apps have started
	queue   chan event
	dropped atomic.Uint64
}

// newEventQueue finds Caddy's events app, and learns from it when all apps have started.
func newEventQueue(ctx caddy.Context, logger *zap.Logger) (*eventQueue, error) {
	events, err := ctx.App("events")
	if err != nil {
		return nil, fmt.Errorf("loading the events app: %w", err)
	}
	q := &eventQueue{ctx: ctx, events: events.(*caddyevents.App), logger: logger, started: make(chan struct{}), queue: make(chan event, maxEvents)}
	return q, q.events.On("started", onStarted(sync.OnceFunc(func() { close(q.started) })))
}

// listensTo reports whether emitting an event could be observed, as far as that is known
// yet: until all apps have started, the events app may still be taking down who listens.
func (q *eventQueue) listensTo(name string) bool {
	if q == nil {
		return false
	}
	select {
	case <-q.started:
		return q.events.ShouldEmit(name)
	default:
		return true
	}
}

// announce has an event emitted; nil: there is none. What comes while too many wait is
// dropped.
func (q *eventQueue) announce(e *event) {
	if q == nil || e == nil {
		return
	}
	select {
	case q.queue <- *e:
	default:
		if n := q.dropped.Add(1); isPowerOfTen(int(n)) {
			q.logger.Warn("event handlers take longer than refreshes: events are dropped", zap.String("event", e.name), zap.Uint64("dropped", n))
		}
	}
}

// run emits what is announced, until ctx ends.
func (q *eventQueue) run(ctx context.Context) {
	select {
	case <-q.started:
	case <-ctx.Done():
		return
	}
	for {
		select {
		case e := <-q.queue:
			if !orLeave(ctx, func() { q.emit(e) }) {
				q.logger.Warn("an event handler goes on although it was canceled", zap.String("event", e.name))
			}
		case <-ctx.Done():
			return
		}
	}
}

// emit emits one event. A handler's panic is its own.
func (q *eventQueue) emit(e event) {
	defer func() {
		if v := recover(); v != nil {
			q.logger.Error("an event handler panicked", zap.String("event", e.name), zap.String("panic", fmt.Sprint(v)))
		}
	}()
	q.events.Emit(q.ctx, e.name, e.data)
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
	done := async(f)
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return endsSoon(done, stopGrace)
	}
}
