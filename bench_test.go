package sitemap

import (
	"context"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/logonce"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/schedule"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// TestMain keeps what Caddy writes to its data directory, such as its instance ID, out of the home of who runs the tests.
func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "sitemap")
	if err != nil {
		panic(err)
	}
	_ = os.Setenv("XDG_DATA_HOME", folder)
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

// bench is an App with one handler, to which a matcher for named.example leads and one for
// all hosts. Its sites are refreshed when the test says so: by its source, and by what
// stands for the server's other handlers.
type bench struct {
	*visiting

	// What a test changes while refreshes go on, it changes by serves, yields, names or lists.
	changing sync.RWMutex
	source   func(ctx context.Context, r *Refresh, yield func(Page) error) error
	pages    caddyhttp.HandlerFunc
}

// serves makes the server's other handlers another one.
func (b *bench) serves(pages caddyhttp.HandlerFunc) {
	b.changing.Lock()
	defer b.changing.Unlock()
	b.pages = pages
}

// yields makes the source another one.
func (b *bench) yields(source func(ctx context.Context, r *Refresh, yield func(Page) error) error) {
	b.changing.Lock()
	defer b.changing.Unlock()
	b.source = source
}

func newBench(t testing.TB, configure func(*Handler)) *bench {
	t.Helper()
	b := &bench{visiting: newVisiting(t)}
	h, a := b.handler, b.app
	h.mounts = mounts{{hosts: []string{"named.example"}}, {}}
	if configure != nil {
		configure(h)
	}
	if err := h.compile(h.BaseURL); err != nil {
		t.Fatal(err)
	}
	h.setListener(h.listener)
	h.ctx = emptyContext(t)
	h.limiter = crawl.NewLimiter(maxCrawlRate, 1)
	h.sources = []input{guest{b, b}}
	a.fetchers = map[*caddyhttp.Server]*serverFetcher{h.server: {server: h.server, routes: caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		b.changing.RLock()
		pages := b.pages
		b.changing.RUnlock()
		return h.ServeHTTP(w, r, pages)
	})}}
	a.slots, a.compute = wait.NewSlots(1), wait.NewSlots(1)
	a.turns = schedule.NewTurns(maxRefreshes)
	h.firstLooks = crawl.NewLimiter(firstLooksRate, firstLooksAtOnce)
	a.events = &eventQueue{queue: make(chan func(), 100)}
	b.lists("/a")
	// What a bench before has logged of a site says nothing of this one's log.
	states.Range(func(_, value any) bool {
		value.(*siteState).said = logonce.New(zap.NewNop())
		return true
	})
	return b
}

// emptyContext is that of an empty configuration.
func emptyContext(t testing.TB) caddy.Context {
	t.Helper()
	empty, err := caddy.ProvisionContext(new(caddy.Config))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := caddy.NewContext(empty)
	t.Cleanup(cancel)
	return ctx
}

// CaddyModule and Pages let the bench be its own source, as that of another module.
func (*bench) CaddyModule() caddy.ModuleInfo { return caddy.ModuleInfo{ID: sourceNamespace + ".bench"} }

func (b *bench) Pages(ctx context.Context, r *Refresh, yield func(Page) error) error {
	b.changing.RLock()
	source := b.source
	b.changing.RUnlock()
	return source(ctx, r, yield)
}

// lists makes the source name paths, and the server answer for these alone.
func (b *bench) lists(paths ...string) {
	b.names(paths...)
	b.serves(func(w http.ResponseWriter, r *http.Request) error {
		if !slices.Contains(paths, r.URL.Path) {
			return caddyhttp.Error(http.StatusNotFound, nil)
		}
		w.Header().Set("Content-Type", contentHTML)
		_, err := io.WriteString(w, "<!doctype html><title>"+r.URL.Path+"</title><p>"+r.URL.Path)
		return err
	})
}

// names makes the source name paths.
func (b *bench) names(paths ...string) {
	b.yields(func(_ context.Context, _ *Refresh, yield func(Page) error) error {
		for _, path := range paths {
			if err := yield(Page{Path: path}); err != nil {
				return err
			}
		}
		return nil
	})
}

// site is the site of a host.
func (b *bench) site(host string) *site {
	b.Helper()
	id, _ := b.handler.idOf(&http.Request{Host: host}, "")
	s, err := b.app.site(id)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// refresh refreshes a site an interval after the last refresh, and returns what is served.
func (b *bench) refresh(s *site) *document.Set {
	b.Helper()
	b.clock = b.clock.Add(s.handler.settings.interval)
	s.run()
	b.app.group.Wait()
	return s.published().snapshot
}

// logged counts the log lines with a message.
func (b *bench) logged(message string) int { return b.logs.FilterMessage(message).Len() }

// snapshotOf are documents of paths in order.
func snapshotOf(t testing.TB, shardURLs int, paths ...string) *document.Set {
	t.Helper()
	pages := func(yield func(page.Page, error) bool) {
		for _, path := range paths {
			if !yield(page.Page{Path: path}, nil) {
				return
			}
		}
	}
	s, err := document.Build(t.Context(), pages, nil, document.Options{
		Base: "https://example.com", Sitemap: "https://example.com/sitemap", ShardURLs: shardURLs, Now: time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// serverOf provisions a Caddyfile, and returns the only server that listens on a port.
func serverOf(t testing.TB, caddyfile, filename, port string) *caddyhttp.Server {
	t.Helper()
	raw, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(caddyfile), map[string]any{"filename": filename})
	if err != nil {
		t.Fatal(err)
	}
	var cfg caddy.Config
	if err := caddy.StrictUnmarshalJSON(raw, &cfg); err != nil {
		t.Fatal(err)
	}
	ctx, err := caddy.ProvisionContext(quiet(t, &cfg))
	if err != nil {
		t.Fatal(err)
	}
	app, err := ctx.App("http")
	if err != nil {
		t.Fatal(err)
	}
	for _, server := range app.(*caddyhttp.App).Servers {
		if server.Listen[0] == port {
			return server
		}
	}
	t.Fatalf("no server listens on %s", port)
	return nil
}

// quiet is a configuration that logs nothing, and has no admin endpoint.
func quiet(t testing.TB, cfg *caddy.Config) *caddy.Config {
	cfg.StorageRaw = caddyconfig.JSONModuleObject(map[string]string{"root": t.TempDir()}, "module", "file_system", nil)
	cfg.Admin = &caddy.AdminConfig{Disabled: true, Config: &caddy.ConfigSettings{Persist: new(bool)}}
	cfg.Logging = &caddy.Logging{Logs: map[string]*caddy.CustomLog{"default": {
		BaseLog: caddy.BaseLog{WriterRaw: []byte(`{"output":"discard"}`)},
	}}}
	return cfg
}

// BenchmarkPass is a request that is not for the handler.
func BenchmarkPass(b *testing.B) {
	v := newVisiting(b, &SourceTraffic{})
	v.handler.recordsVisits = false
	next := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return nil })
	r, w := v.request(http.MethodGet, "/docs/guide/install.html", nil), sink{make(http.Header)}
	b.ReportAllocs()
	for b.Loop() {
		if err := v.handler.ServeHTTP(w, r, next); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWrite is a request that may save something, after others of its kind, beside one without a cookie, which may not.
func BenchmarkWrite(b *testing.B) {
	v := newVisiting(b, &SourceTraffic{})
	s := v.site("named.example", "")
	next := caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(http.StatusFound)
		return nil
	})
	header := http.Header{"Location": {s.origin + "/wp-admin/post.php?post=12&action=edit"}}
	for name, cookie := range map[string][]string{"signed in": {"session=1"}, "anonymous": nil} {
		b.Run(name, func(b *testing.B) {
			r := v.request(http.MethodPost, "/wp-json/wp/v2/posts/12?_locale=user", http.Header{"Cookie": cookie})
			w := sink{header}
			b.ReportAllocs()
			for b.Loop() {
				if err := v.handler.ServeHTTP(w, r, next); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// serve makes a site serve a snapshot, which may be nil.
func (s *site) serve(snapshot *document.Set) {
	s.state.published.Store(&publication{site: s.sitemap, snapshot: snapshot, lastSnapshot: snapshot})
}

// restore makes a site restore what is stored of it.
func restore(t testing.TB, s *site) {
	t.Helper()
	records, err := s.state.records.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.restore(t.Context(), records)
	records.Release()
}
