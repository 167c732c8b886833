package sitemap

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
)

// unheard is a Caddy that is provisioned and whose sitemap app runs, but that
// listens nowhere.
type unheard struct {
	app     *App
	handler *Handler
	server  *caddyhttp.Server
}

// hush provisions a Caddyfile with one sitemap handler.
func hush(t testing.TB, caddyfile string) unheard {
	t.Helper()
	raw, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(caddyfile), nil)
	if err != nil {
		t.Fatal(err)
	}
	var cfg caddy.Config
	if err := caddy.StrictUnmarshalJSON(raw, &cfg); err != nil {
		t.Fatal(err)
	}
	cfg.StorageRaw = caddyconfig.JSONModuleObject(map[string]string{"root": t.TempDir()}, "module", "file_system", nil)
	cfg.Admin = &caddy.AdminConfig{Disabled: true}
	cfg.Logging = &caddy.Logging{Logs: map[string]*caddy.CustomLog{"default": {
		BaseLog: caddy.BaseLog{WriterRaw: json.RawMessage(`{"output":"discard"}`)},
	}}}
	ctx, err := caddy.ProvisionContext(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	app, err := ctx.App("sitemap")
	if err != nil {
		t.Fatal(err)
	}
	u := unheard{app: app.(*App)}
	u.handler = u.app.handlers[0]
	u.server = u.handler.server
	if err := u.app.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(u.app.Stop(), u.app.Cleanup()); err != nil {
			t.Error(err)
		}
	})
	return u
}

// request is one as Caddy hands it to its handlers.
func (u unheard) request(w http.ResponseWriter, target string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Header.Set("Accept-Encoding", "gzip, deflate, br, zstd")
	return caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, u.server)
}

// notOurs are requests for other things than a site's documents: as they come, and
// as a rewrite may have changed them.
var notOurs = []struct{ name, target, rewritten string }{
	{"page", "/docs/guide/install.html", ""},
	{"home", "/", ""},
	{"near miss", "/sitemap.html", ""},
	{"no shard", "/sitemap-0123456789ag.xml", ""},
	{"rewritten", "/app/settings", "/index.html"},
	{"stripped", "/docs/guide/install.html", "/guide/install.html"},
}

const notOursCaddyfile = `http://example.com {
	handle_path /docs/* {
		sitemap
		file_server
	}
}`

func TestNotOurs(t *testing.T) {
	u := hush(t, notOursCaddyfile)
	for _, test := range notOurs {
		t.Run(test.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			r := u.request(w, test.target)
			if test.rewritten != "" {
				r.URL.Path = test.rewritten
			}
			wrong := errors.New("of the next handler")
			err := u.handler.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(nw http.ResponseWriter, nr *http.Request) error {
				if nw != w || nr != r {
					t.Error("the next handler got another writer or request")
				}
				return wrong
			}))
			if err != wrong || len(w.Header()) != 0 {
				t.Errorf("got error %v, headers %v", err, w.Header())
			}
			pass := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return nil })
			if n := testing.AllocsPerRun(100, func() { _ = u.handler.ServeHTTP(w, r, pass) }); n != 0 {
				t.Errorf("got %v allocations, want none", n)
			}
		})
	}
}

func BenchmarkNotOurs(b *testing.B) {
	u := hush(b, notOursCaddyfile)
	next := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return nil })
	for _, test := range notOurs {
		b.Run(test.name, func(b *testing.B) {
			w := httptest.NewRecorder()
			r := u.request(w, test.target)
			if test.rewritten != "" {
				r.URL.Path = test.rewritten
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := u.handler.ServeHTTP(w, r, next); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// waiting is a handler whose one site has not been refreshed yet, without an app
// that would.
func waiting() (*Handler, *site) {
	app := &App{now: time.Now, sites: make(map[siteID]*site), wake: make(chan struct{}, 1), started: make(chan struct{})}
	app.running, app.cancel = context.WithCancel(context.Background())
	close(app.started)
	app.store, app.generation = newStore(), new(generation)
	h := &Handler{app: app, logger: zap.NewNop(), stem: "/sitemap", server: new(caddyhttp.Server)}
	h.settings = settings{path: "/sitemap.xml", stem: "/sitemap", base: "https://example.com", refresh: time.Minute, robots: true, manners: manners{rate: 1, concurrency: 1}}
	s := newSite(app, h, siteID{handler: h}, "", false)
	app.sites[s.id] = s
	return h, s
}

func TestFirstWait(t *testing.T) {
	next := caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("X-Next", "reached")
		return nil
	})
	serve := func(h *Handler, path string) (http.Header, int, error) {
		w := httptest.NewRecorder()
		err := h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil), next)
		var herr caddyhttp.HandlerError
		errors.As(err, &herr)
		return w.Header(), herr.StatusCode, err
	}
	t.Run("too long", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h, _ := waiting()
			for range 2 {
				begun := time.Now()
				header, status, _ := serve(h, "/sitemap.xml")
				if waited := time.Since(begun); waited != 10*time.Second {
					t.Errorf("waited for %s, want 10s", waited)
				}
				if status != http.StatusServiceUnavailable || header.Get("Retry-After") != "10" || header.Get("X-Next") != "" {
					t.Errorf("got status %d, headers %v", status, header)
				}
			}
		})
	})
	t.Run("robots.txt is served without the line", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h, _ := waiting()
			if header, _, err := serve(h, "/robots.txt"); err != nil || header.Get("X-Next") == "" {
				t.Errorf("got headers %v, error %v", header, err)
			}
		})
	})
	t.Run("ends in time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h, s := waiting()
			begun := time.Now()
			time.AfterFunc(9*time.Second, func() {
				s.held.Store(new(held))
				s.held.Load().snapshot.Store(snapshotOf(t, "/a"))
				s.markReady()
			})
			header, _, err := serve(h, "/sitemap.xml")
			if waited := time.Since(begun); waited != 9*time.Second || err != nil || header.Get("Etag") == "" {
				t.Errorf("waited for %s, got headers %v, error %v", waited, header, err)
			}
			begun = time.Now()
			if _, _, err := serve(h, "/sitemap.xml"); err != nil || time.Since(begun) != 0 {
				t.Errorf("then waited for %s, got error %v", time.Since(begun), err)
			}
		})
	})
	t.Run("ends without pages", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h, s := waiting()
			s.markReady()
			begun := time.Now()
			if header, _, err := serve(h, "/sitemap.xml"); err != nil || header.Get("X-Next") == "" || time.Since(begun) != 0 {
				t.Errorf("waited for %s, got headers %v, error %v", time.Since(begun), header, err)
			}
		})
	})
	t.Run("the client goes away", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h, _ := waiting()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			begun := time.Now()
			err := h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/sitemap.xml", nil).WithContext(ctx), next)
			if waited := time.Since(begun); waited != time.Second || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("waited for %s, got error %v", waited, err)
			}
		})
	})
	t.Run("the configuration ends", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h, _ := waiting()
			time.AfterFunc(time.Second, h.app.cancel)
			begun := time.Now()
			header, status, _ := serve(h, "/sitemap.xml")
			if waited := time.Since(begun); waited != time.Second || status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" {
				t.Errorf("waited for %s, got status %d, headers %v", waited, status, header)
			}
		})
	})
}

// TestStripped: visitors do not choose folders.
func TestStripped(t *testing.T) {
	both, docs := seats{{folder: ""}, {folder: "/docs"}, {folder: "/my%20docs"}}, seats{{folder: "/docs"}}
	for _, test := range []struct {
		seats    seats
		original string
		want     string
		ok       bool
	}{
		{docs, "/docs/sitemap.xml", "/docs", true},
		{docs, "/DOCS/sitemap.xml", "/docs", true},
		{docs, "//docs/sitemap.xml", "/docs", true},
		{docs, "///dOcs//sitemap.xml", "/docs", true},
		{docs, "/other/sitemap.xml", "", false},
		{docs, "/docs/old/sitemap.xml", "", false},
		{docs, "/old.xml", "", false},
		{both, "/docs/sitemap.xml", "/docs", true},
		{both, "/My Docs/sitemap.xml", "/my%20docs", true},
		{both, "//sitemap.xml", "", true},
		{both, "/old/sitemap.xml", "", true},
		{both, "/old.xml", "", true},
		{nil, "/any/sitemap.xml", "", true},
	} {
		h := &Handler{seats: test.seats}
		if got, ok := h.stripped(test.original, "/sitemap.xml"); got != test.want || ok != test.ok {
			t.Errorf("%s: got %q, %t, want %q, %t", test.original, got, ok, test.want, test.ok)
		}
	}
}
