package operators

import (
	"context"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

func init() { caddy.RegisterModule(new(recorder)) }

// recorder is a handler of events that keeps them, and does what a test wants of it.
type recorder struct{}

func (*recorder) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "events.handlers.recorder", New: func() caddy.Module { return new(recorder) }}
}

func (*recorder) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	return nil
}

func (*recorder) Handle(ctx context.Context, e caddy.Event) error {
	return records.handle(ctx, e)
}

// recorded is an event.
type recorded struct {
	name string
	data map[string]any
}

// recording is what the recorders of a test have seen.
type recording struct {
	mu     sync.Mutex
	events []recorded
	react  func(context.Context) // to each event; nil: not at all
}

var records recording

func (r *recording) handle(ctx context.Context, e caddy.Event) error {
	r.mu.Lock()
	r.events = append(r.events, recorded{e.Name(), e.Data})
	react := r.react
	r.mu.Unlock()
	if react != nil {
		react(ctx)
	}
	return nil
}
