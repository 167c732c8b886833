package sitemap

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// clock is a time that a test sets, Unix nanoseconds. It has no monotonic reading,
// so that it can jump.
type clock struct{ atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(0, c.Load()) }
func (c *clock) advance(d time.Duration) { c.Add(int64(d)) }

// bench is an App with one handler, which one matcher leads to for named.example and
// no matcher for all other hosts. It is not started.
type bench struct {
	t       *testing.T
	app     *App
	handler *Handler
	clock   *clock
	logs    *observer.ObservedLogs
	source  func(ctx context.Context, r *Refresh, yield func(Page) error) error
}

func newBench(t *testing.T, h *Handler) *bench {
	t.Helper()
	ctx := contextOf(t)
	b := &bench{t: t, app: new(App), clock: new(clock)}
	if err := b.app.Provision(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.app.Cleanup(); err != nil {
			t.Error(err)
		}
	})
	core, logs := observer.New(zapcore.DebugLevel)
	b.logs = logs
	b.clock.Store(time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC).UnixNano())
	b.app.logger, b.app.now = zap.New(core), b.clock.now
	b.app.announced = make(chan event, 1<<14) // nothing emits them

	if h.Ask == nil {
		h.Ask = &Ask{Off: true} // there is no page behind the paths
	}
	h.app, h.ctx, h.logger, h.server = b.app, ctx, b.app.logger, new(caddyhttp.Server)
	var err error
	if h.settings, err = h.compile(caddy.NewEmptyReplacer()); err != nil {
		t.Fatal(err)
	}
	h.settings.digest = []byte(t.Name())
	h.stem = h.settings.stem
	h.seats = seats{{hosts: []string{"named.example"}}, {}}
	h.listener = listener{scheme: "http"}
	h.sources, h.sourceNames = []Source{b}, []string{"bench"}
	b.app.register(h)
	b.app.askers[h.server] = newAsker(h.server)
	b.handler = h
	b.app.store.settle(b.app.generation)
	return b
}

// contextOf is the context of an empty configuration.
func contextOf(t *testing.T) caddy.Context {
	t.Helper()
	empty, err := caddy.ProvisionContext(new(caddy.Config))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := caddy.NewContext(empty)
	t.Cleanup(cancel)
	return ctx
}

// Pages lets the bench be its own source.
func (b *bench) Pages(ctx context.Context, r *Refresh, yield func(Page) error) error {
	return b.source(ctx, r, yield)
}

// lists makes a source of paths.
func lists(paths ...string) func(context.Context, *Refresh, func(Page) error) error {
	return func(_ context.Context, _ *Refresh, yield func(Page) error) error {
		for _, path := range paths {
			if err := yield(Page{Path: path}); err != nil {
				return err
			}
		}
		return nil
	}
}

// site is the site of a host, as if it had been looked at.
func (b *bench) site(host string) *site {
	b.t.Helper()
	s, err := b.app.site(b.handler, siteID{b.handler, address{scheme: "http", host: host}}, "", atOnce)
	if err != nil {
		b.t.Fatal(err)
	}
	s.sight.reached = true
	s.adopt()
	return s
}

// refresh runs a refresh that is due.
func (b *bench) refresh(s *site) *Snapshot {
	b.t.Helper()
	b.clock.advance(s.interval(s.held.Load().took))
	s.looked = true
	s.refresh(context.Background())
	return s.current()
}

// logged counts the log lines with a message.
func (b *bench) logged(message string) int { return b.logs.FilterMessage(message).Len() }

// TestIdleSitesWait: a site of a visitor's word is refreshed only while someone asks.
func TestIdleSitesWait(t *testing.T) {
	b := newBench(t, &Handler{})
	b.source = lists("/a")
	visited, named := b.site("visited.example"), b.site("named.example")
	if !visited.visitors || named.visitors {
		t.Fatalf("visitors: got %t and %t, want true and false", visited.visitors, named.visitors)
	}
	for _, s := range []*site{visited, named} {
		if at := s.dueAt(b.clock.now()); at.After(b.clock.now()) || at.IsZero() {
			t.Errorf("%s: a new site is due at %s", s.base, at)
		}
		if b.refresh(s) == nil {
			t.Fatalf("%s: no snapshot", s.base)
		}
	}
	b.clock.advance(time.Hour)
	if at := named.dueAt(b.clock.now()); at.IsZero() {
		t.Error("a named site waits for a request")
	}
	if at := visited.dueAt(b.clock.now()); !at.IsZero() {
		t.Errorf("a site that nobody asked for since is due at %s", at)
	}
	<-b.app.wake
	visited.touch()
	if at := visited.dueAt(b.clock.now()); at.IsZero() || at.After(b.clock.now()) {
		t.Errorf("asked for, it is due at %s", at)
	}
	select {
	case <-b.app.wake:
	default:
		t.Error("a request for a site that is due does not rouse the schedule")
	}
}

// TestSightOutlivesRefusals: where requests do not reach the handler for a while, the
// place of the pages stays known, and so does their snapshot.
func TestSightOutlivesRefusals(t *testing.T) {
	b := newBench(t, &Handler{})
	b.source = lists("/a", "/b")
	s := b.site("named.example")
	want := b.refresh(s)
	key := s.key
	// Its server has no routes, so a look does not reach the handler.
	if err := s.look(context.Background()); err != nil {
		t.Fatal(err)
	}
	if s.key != key || s.current() != want {
		t.Error("what was served is dropped once a look fails to reach the handler")
	}
	b.clock.advance(s.interval(0))
	s.refresh(context.Background())
	if s.current() != want {
		t.Error("dropped at the first refresh")
	}
	b.clock.advance(s.interval(0))
	s.refresh(context.Background())
	if s.current() != nil {
		t.Error("not believed when the second refresh says the same")
	}
	s.sight.reached = true
	if got := b.refresh(s); got == nil || got.pages != 2 {
		t.Error("recovery is not believed at once")
	}
}

// TestMovedRoot: the last good snapshot is served until there is one of the new root.
func TestMovedRoot(t *testing.T) {
	b := newBench(t, &Handler{})
	b.source = lists("/a", "/b", "/d")
	s := b.site("named.example")
	old := b.refresh(s) // of three pages
	s.sight.root = "/elsewhere"
	s.adopt()
	if s.current() != old {
		t.Fatal("what was served is dropped with its root")
	}
	b.source = func(context.Context, *Refresh, func(Page) error) error { return errors.New("not there yet") }
	if b.refresh(s) != old {
		t.Fatal("what was served is dropped before the new root is there")
	}
	b.source = lists("/c") // less than half, but of another root
	if got := b.refresh(s); got == old || got.pages != 1 {
		t.Errorf("the new root's snapshot is not served: %d pages", got.pages)
	}
}

// TestNamesOutliveEmptiness: the names of shards still lead somewhere once a site that
// had lost all its pages has some again.
func TestNamesOutliveEmptiness(t *testing.T) {
	b := newBench(t, &Handler{ShardURLs: 2})
	all := lists("/a", "/b", "/c", "/d", "/e")
	b.source = all
	s := b.site("named.example")
	first := b.refresh(s)
	b.source = lists()
	b.refresh(s)
	if b.refresh(s) != nil {
		t.Fatal("not believed when the second refresh says the same")
	}
	b.refresh(s)
	b.source = lists("/a")
	second := b.refresh(s)
	for _, d := range first.shards {
		if second.find(d.suffix) == nil {
			t.Errorf("%s is forgotten", d.suffix)
		}
	}
	b.clock.advance(retiredFor)
	if b.source = all; len(b.refresh(s).retired) != 0 {
		t.Error("names are remembered for ever")
	}
}

// TestOtherSettings: what was served is served on until there is a snapshot of the new
// settings, which follows it in its names.
func TestOtherSettings(t *testing.T) {
	b := newBench(t, &Handler{ShardURLs: 2})
	b.source = lists("/a", "/b", "/c", "/d", "/e")
	s := b.site("named.example")
	old := b.refresh(s)
	b.handler.settings.digest = []byte("other")
	b.handler.settings.shardURLs = 10
	b.app.sites = make(map[siteID]*site)
	next := newSite(b.app, b.handler, s.id, "", false)
	b.app.resume([]*site{next})
	if next.current() != old || next.key != s.key {
		t.Fatal("what was served is not served on before a look")
	}
	next.sight.reached = true
	next.adopt()
	if next.current() != old || next.key == s.key {
		t.Fatal("what was served is not served on before a refresh")
	}
	b.source = func(context.Context, *Refresh, func(Page) error) error { return errors.New("not there yet") }
	if b.refresh(next) != old {
		t.Fatal("what was served is dropped before its pages were read")
	}
	b.source = lists("/a") // less than half, but by other settings
	made := b.refresh(next)
	if made == old || made.pages != 1 {
		t.Fatalf("got %d pages, want 1", made.pages)
	}
	for _, d := range old.shards {
		if made.find(d.suffix) == nil {
			t.Errorf("%s is forgotten", d.suffix)
		}
	}
	if s.current() != old {
		t.Error("the configuration before has lost its own")
	}
}

// TestDigest: how often a snapshot is made, and who is told of it, do not shape it.
func TestDigest(t *testing.T) {
	digest := func(h *Handler) string {
		d, err := h.digest()
		if err != nil {
			t.Fatal(err)
		}
		return string(d)
	}
	no := false
	same := digest(new(Handler))
	if got := digest(&Handler{RefreshInterval: 1, RobotsTxt: &no}); got != same {
		t.Errorf("got %s, want %s", got, same)
	}
	for name, h := range map[string]*Handler{
		"path": {Path: "/a.xml"}, "base_url": {BaseURL: "https://a.example"}, "shard_urls": {ShardURLs: 1}, "max_urls": {MaxURLs: 1},
		"schema": {Schema: "0.84"}, "omit": {Omit: []string{"/a"}}, "rules": {Rules: []Rule{{}}}, "sources": {SourcesRaw: []json.RawMessage{[]byte("{}")}},
	} {
		if digest(h) == same {
			t.Errorf("%s does not count", name)
		}
	}
}
