package caddytest

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

func init() {
	caddy.RegisterModule(&recorder{id: "recorder"})
	caddy.RegisterModule(&recorder{id: "exec"}) // as github.com/mholt/caddy-events-exec
}

// recorder is a handler of events that keeps them with what it would run, and does what a
// test wants of it.
type recorder struct {
	id   string
	Args []string `json:"args,omitempty"`
}

func (r *recorder) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: caddy.ModuleID("events.handlers." + r.id), New: func() caddy.Module { return &recorder{id: r.id} }}
}

func (r *recorder) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	r.Args = d.RemainingArgs()
	return nil
}

func (r *recorder) Handle(ctx context.Context, e caddy.Event) error {
	repl := ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	records.mu.Lock()
	records.events = append(records.events, recorded{e.Name(), e.Data, repl.ReplaceAll(strings.Join(r.Args, " "), "")})
	react := records.react
	records.mu.Unlock()
	if react != nil {
		react(ctx)
	}
	return nil
}

// recorded is an event.
type recorded struct {
	name string
	data map[string]any
	runs string
}

// recording is what the recorders of a test have seen.
type recording struct {
	mu     sync.Mutex
	events []recorded
	react  func(context.Context) // to each event; nil: not at all
}

var records recording

// begin forgets what was recorded before, and sets how handlers react.
func (r *recording) begin(t *testing.T, react func(context.Context)) {
	set := func(react func(context.Context)) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.events, r.react = nil, react
	}
	set(react)
	t.Cleanup(func() { set(nil) })
}

// of are the events of a name so far.
func (r *recording) of(name string) (all []map[string]any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.name == name {
			all = append(all, e.data)
		}
	}
	return all
}

// added is how many pages the events so far say were added.
func (r *recording) added() (pages int) {
	for _, data := range r.of("sitemap_refreshed") {
		pages += data["added"].(int)
	}
	return pages
}

// first is the event that came first.
func (r *recording) first() recorded {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events[0]
}

// wantAdded waits until the events say that so many pages were added: a first crawl that takes over a second is told in parts.
func (s *server) wantAdded(pages int) {
	s.T.Helper()
	s.Eventually(func() bool { return records.added() == pages }, func() string {
		return fmt.Sprintf("%d pages were added, want %d\n%s", records.added(), pages, s.SitemapLog())
	})
}

// atLeast waits for n events of a name, and returns those so far.
func (s *server) atLeast(n int, name string) (all []map[string]any) {
	s.T.Helper()
	s.Eventually(func() bool {
		all = records.of(name)
		return len(all) >= n
	}, func() string {
		return fmt.Sprintf("%d events %s, want %d: %v\n%s", len(all), name, n, all, s.SitemapLog())
	})
	return all
}

// wantEvents waits for events of a name, and returns the last one. There must be just n
// so far.
func (s *server) wantEvents(name string, n int) map[string]any {
	s.T.Helper()
	all := s.atLeast(n, name)
	if len(all) != n {
		s.T.Fatalf("%d events %s, want %d: %v", len(all), name, n, all)
	}
	return all[n-1]
}

// wantRefreshed waits for the nth event of a refresh, and wants its numbers.
func (s *server) wantRefreshed(n, pages, added, changed, removed int) {
	s.T.Helper()
	got := s.wantEvents("sitemap_refreshed", n)
	want := map[string]any{
		"site": s.Expand(harness.Local), "sitemap": s.Expand(harness.Local + "/sitemap.xml"),
		"pages": pages, "added": added, "changed": changed, "removed": removed,
	}
	if !maps.Equal(got, want) {
		s.T.Errorf("event %d: got %v, want %v", n, got, want)
	}
}

// listening is a site with handlers of its events. It is refreshed on demand only, as nothing watches its file system.
const listening = `{
	filesystem site test_hooked {dir}/a
	events {
		on sitemap_refreshed recorder
		on sitemap_refresh_failed recorder
	}
}

http://localhost:{port} {
	root * .
	fs site
	sitemap {
		refresh 1h
		lastmod mtime
	}
	file_server
}
`

func TestEventRefreshed(t *testing.T) {
	records.begin(t, nil)
	s := startWithAdmin(t, listening, harness.TwoRoots)
	s.Crawled()
	s.wantAdded(len(harness.PagesOfA))
	s.Refreshes(1)
	records.begin(t, nil)

	s.Write(map[string]string{"a/new.html": harness.HTML("new")})
	s.refresh()
	s.wantRefreshed(1, 5, 1, 0, 0)

	s.Put("a/new.html", harness.HTML("newer"), harness.DayOf(1))
	s.refresh()
	s.wantRefreshed(2, 5, 0, 1, 0)

	s.remove("a/new.html")
	s.refresh()
	s.wantRefreshed(3, 4, 0, 0, 1)

	s.Write(map[string]string{"a/other.html": harness.HTML("other")})
	s.remove("a/one.html")
	s.refresh()
	s.wantRefreshed(4, 4, 1, 0, 1)

	if st := s.refresh(); st.LastRefresh.Result != "unchanged" {
		t.Errorf("got %+v", st)
	}
	s.Reload(listening)
	for _, names := range [][2]string{{"a", "away"}, {"away", "a"}} { // refreshes fail for a reason
		harness.Must(t, os.Rename(filepath.Join(s.Dir, names[0]), filepath.Join(s.Dir, names[1])))
		for range 2 {
			s.refresh()
			if e := s.wantEvents("sitemap_refresh_failed", 1); e["reason"] == "" || e["site"] != s.Expand(harness.Local) || e["sitemap"] != s.Expand(harness.Local+"/sitemap.xml") || len(e) != 3 {
				t.Errorf("got %v", e)
			}
		}
	}
	s.remove("a/index.html", "a/other.html", "a/docs/index.html", "a/docs/guide.html")
	if st := s.refresh(); st.LastRefresh.Result != "empty" { // what an operator asks for is believed
		t.Errorf("got %+v", st)
	}
	s.wantRefreshed(5, 0, 0, 0, 4)
	s.refresh()
	s.wantEvents("sitemap_refreshed", 5)
}

func (s *server) remove(names ...string) {
	s.T.Helper()
	for _, name := range names {
		harness.Must(s.T, os.Remove(filepath.Join(s.Dir, filepath.FromSlash(name))))
	}
}

// TestEventHandlersHurtNothing: a handler that panics, or hangs, keeps neither refreshes
// nor Stop from their end.
func TestEventHandlersHurtNothing(t *testing.T) {
	for name, react := range map[string]func(ctx context.Context, end <-chan struct{}){
		"panics":        func(context.Context, <-chan struct{}) { panic("a handler's own affair") },
		"heeds its end": func(ctx context.Context, _ <-chan struct{}) { <-ctx.Done() },
		"heeds nothing": func(_ context.Context, end <-chan struct{}) { <-end },
	} {
		t.Run(name, func(t *testing.T) {
			end := make(chan struct{})
			records.begin(t, func(ctx context.Context) { react(ctx, end) })
			s := startWithAdmin(t, listening, harness.TwoRoots)
			s.atLeast(1, "sitemap_refreshed")
			for i := range 3 {
				s.Write(map[string]string{fmt.Sprintf("a/new-%d.html", i): harness.HTML("new")})
				if st := s.refresh(); st.Pages != 5+i {
					t.Errorf("got %+v", st)
				}
			}
			s.Reload(listening)
			s.refresh()
			s.Stop()
			close(end) // what nothing else can end
		})
	}
}

// TestEventsExample loads the example, with a stand-in for the plugin that it needs.
func TestEventsExample(t *testing.T) {
	records.begin(t, nil)
	_, caddyfile, _ := strings.Cut(exampleCaddyfile(t, "events"), "\n{\n")
	s := startWithAdmin(t, "{\n"+caddyfile, nil)
	s.wantAdded(6)
	e := records.first()
	want := s.Expand(fmt.Sprintf("echo %s has %d pages: %d added, 0 changed, 0 removed", harness.Local, e.data["pages"], e.data["added"]))
	if e.runs != want {
		t.Errorf("got %q, want %q", e.runs, want)
	}
}
