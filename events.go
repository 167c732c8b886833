package sitemap

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/sitemapxml"
)

// Events that are emitted through Caddy's events app.
const (
	// eventRefreshed says that other documents than before are served: site (its URL),
	// sitemap (the URL of its index), pages, added, changed and removed (numbers of pages).
	eventRefreshed = "sitemap_refreshed"

	// eventFailed says that a refresh failed or is not believed, and why: site, sitemap,
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

// refreshedEvent is that of a refresh that changed what is served; none where nobody
// listens.
func (s *site) refreshedEvent(ctx context.Context, before, after *Snapshot) []event {
	if !s.app.listensTo(eventRefreshed) || before == nil && after == nil {
		return nil
	}
	changes, err := changesOf(ctx, before, after)
	if err != nil {
		if ctx.Err() == nil {
			s.logger.Error("comparing the sitemap with the one before failed", zap.Error(err))
		}
		return nil
	}
	return []event{{eventRefreshed, map[string]any{
		"site": s.base + s.at, "sitemap": s.url(), "pages": after.count(),
		"added": changes.Added, "changed": changes.Changed, "removed": changes.Removed,
	}}}
}

// failedEvent is that of a refresh that failed for a reason, unless the last one did so
// for the same.
func (s *site) failedEvent(reason string) []event {
	if reason == s.failure {
		return nil
	}
	s.failure = reason
	return []event{{eventFailed, map[string]any{"site": s.base + s.at, "sitemap": s.url(), "reason": reason}}}
}

// changesOf counts the pages that two snapshots differ in. Either may be nil.
func changesOf(ctx context.Context, before, after *Snapshot) (sitemapxml.Changes, error) {
	if before == nil || after == nil {
		return sitemapxml.Changes{Added: after.count(), Removed: before.count()}, nil
	}
	return sitemapxml.Compare(without(ctx, before, after), without(ctx, after, before))
}

// without are the documents of pages that a snapshot has and another has not.
func without(ctx context.Context, snapshot, other *Snapshot) []sitemapxml.Opener {
	var all []sitemapxml.Opener
	for _, d := range snapshot.urlsets() {
		if twin := other.bySuffix[d.suffix]; twin != nil && twin.etag == d.etag {
			continue
		}
		all = append(all, opener(ctx, d))
	}
	return all
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
// comes while too many wait is dropped. A build announces nothing: its command says it
// all.
func (a *App) announce(events []event) {
	if a.building != nil {
		return
	}
	for _, e := range events {
		select {
		case a.announced <- e:
		default:
			if n := a.droppedEvents.Add(1); isPowerOfTen(int(n)) {
				a.logger.Warn("handlers of events take longer than refreshes: events are dropped", zap.String("event", e.name), zap.Uint64("dropped", n))
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
				a.logger.Warn("the handler of an event goes on although it was told to end", zap.String("event", e.name))
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
			a.logger.Error("the handler of an event panicked", zap.String("event", e.name), zap.String("panic", fmt.Sprint(v)))
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

// orLeave runs f and waits for it; when ctx has ended, not much longer, although nothing
// can end f then. A false means that f was left to itself.
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

// opener opens a document, unless ctx has ended.
func opener(ctx context.Context, d *document) sitemapxml.Opener {
	return func() (io.ReadCloser, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return openXML(d)
	}
}
