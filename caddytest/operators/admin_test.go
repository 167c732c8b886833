package operators

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	sitemap "github.com/seed3295b519/caddy-sitemap"
	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

func init() {
	caddy.RegisterModule(new(gated))
	caddy.RegisterModule(new(unready))
}

// gated is a source that names a page, and waits at a test's gate first if there is one.
type gated struct{}

func (*gated) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.sitemap.sources.gated", New: func() caddy.Module { return new(gated) }}
}

func (*gated) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	return nil
}

func (*gated) Pages(ctx context.Context, _ *sitemap.Refresh, yield func(sitemap.Page) error) error {
	if err := gate.pass(ctx); err != nil {
		return err
	}
	return yield(sitemap.Page{Path: "/"})
}

// unready is a source that cannot be provisioned.
type unready struct{ gated }

func (*unready) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.sitemap.sources.unready", New: func() caddy.Module { return new(unready) }}
}

func (*unready) Provision(caddy.Context) error { return errors.New("not ready") }

// gateway lets sources through, or holds them back.
type gateway struct {
	mu      sync.Mutex
	arrived chan struct{}
	opened  chan struct{} // nil: it is open
	passed  int
	refuses error
}

var gate gateway

func (g *gateway) pass(ctx context.Context) error {
	g.mu.Lock()
	g.passed++
	arrived, opened, err := g.arrived, g.opened, g.refuses
	g.mu.Unlock()
	if opened == nil {
		return err
	}
	select {
	case arrived <- struct{}{}:
	default:
	}
	select {
	case <-opened:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close holds back who comes from now on, until open is called. Who has come is told.
func (g *gateway) close(t *testing.T) (arrived <-chan struct{}, open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	opened := make(chan struct{})
	g.arrived, g.opened = make(chan struct{}, 1), opened
	open = sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.opened = nil
		close(opened)
	})
	t.Cleanup(open)
	return g.arrived, open
}

func (g *gateway) refuse(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refuses = err
}

func (g *gateway) times() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.passed
}

// server is a running Caddy with an admin endpoint.
type server struct{ *harness.Server }

// api is the address of the admin endpoint.
const api = "http://localhost:{admin}"

func prepare(t *testing.T, files map[string]string) *server {
	t.Helper()
	s := &server{harness.Prepare(t, files)}
	s.OpenAdmin()
	return s
}

func start(t *testing.T, caddyfile string, files map[string]string) *server {
	t.Helper()
	s := prepare(t, files)
	if err := s.Load(caddyfile); err != nil {
		t.Fatal(err)
	}
	return s
}

// status is what these tests want of the API's answer on a site.
type status struct {
	Site        string
	Sitemap     string
	NamedBy     string `json:"named_by"`
	ServedBy    string `json:"served_by"`
	Pages       int
	Since       time.Time
	Refreshing  bool
	LastRefresh *struct{ Result, Reason string } `json:"last_refresh"`
	Sources     []struct {
		Source string
		Pages  int
		Error  string
	}
	LeftOut map[string]int `json:"left_out"`
	Readers []struct {
		Crawler, Document, Result string
		Times                     int
	} `json:"readers_unverified"`
}

// statuses asks for the sites by some method, and wants 200.
func (s *server) statuses(method, path string) []status {
	s.T.Helper()
	r := s.Do(method, api+path)
	if r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != "application/json" {
		s.T.Fatalf("%s %s: status %d, %q: %s", method, path, r.StatusCode, r.Header.Get("Content-Type"), r.Text)
	}
	var all struct{ Sites []status }
	if err := json.Unmarshal([]byte(r.Text), &all); err != nil {
		s.T.Fatalf("%v: %s", err, r.Text)
	}
	return all.Sites
}

// wantError wants an answer that is an error of the API with some words.
func (s *server) wantError(method, path string, status int, words ...string) harness.Response {
	s.T.Helper()
	r := s.Do(method, api+path)
	var said struct{ Error string }
	if err := json.Unmarshal([]byte(r.Text), &said); err != nil || r.StatusCode != status {
		s.T.Errorf("%s %s: got status %d, %q (%v), want %d", method, path, r.StatusCode, r.Text, err, status)
	}
	for _, word := range words {
		if !strings.Contains(said.Error, s.Expand(word)) {
			s.T.Errorf("%s %s: got error %q, want %q in it", method, path, said.Error, s.Expand(word))
		}
	}
	return r
}

const twoSites = `
http://localhost:{port} {
	root * {dir}/a
	sitemap
	file_server
}
http://127.0.0.1:{port} {
	root * {dir}/b
	sitemap
	file_server
}`

const oneSite = `
http://localhost:{port} {
	root * {dir}/a
	sitemap
	file_server
}`

const gatedSite = `
http://localhost:{port} {
	sitemap {
		source gated
	}
	respond "<!doctype html><title>home</title>" 200 {
		close
	}
	header Content-Type text/html
}`

func TestAdminSites(t *testing.T) {
	s := start(t, twoSites, harness.TwoRoots)
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, harness.PagesOfA)...)
	s.WantLocs("http://127.0.0.1:{port}/sitemap.xml", harness.Below("http://127.0.0.1:{port}", harness.PagesOfB)...)
	s.Do(http.MethodGet, harness.Local+"/sitemap.xml", "User-Agent: Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)")

	var all []status
	s.Eventually(func() bool { // the first publication comes before the end of the first refresh
		all = s.statuses(http.MethodGet, "/sitemap/sites")
		return !slices.ContainsFunc(all, func(st status) bool { return st.LastRefresh == nil })
	}, s.SitemapLog)
	if len(all) != 2 || all[0].Site != s.Expand("http://127.0.0.1:{port}") || all[1].Site != s.Expand(harness.Local) {
		t.Fatalf("got sites %+v", all)
	}
	if b, a := all[0], all[1]; b.Pages != len(harness.PagesOfB) || a.Pages != len(harness.PagesOfA) ||
		a.NamedBy != "configuration" || a.Since.IsZero() || a.LastRefresh == nil || len(a.Sources) != 1 || a.Sources[0].Source != "files" || a.Sources[0].Pages != a.Pages {
		t.Errorf("got %+v\nand %+v", b, a)
	}
	byGoogle := 0
	for _, r := range all[1].Readers {
		if r.Crawler == "Googlebot" && r.Document == "sitemap" && r.Result == "served" {
			byGoogle += r.Times
		}
	}
	if byGoogle != 1 {
		t.Errorf("Googlebot fetched it %d times, want 1: %+v", byGoogle, all[1].Readers)
	}

	for _, name := range []string{harness.Local, harness.Local + "/", harness.Local + "/sitemap.xml"} {
		one := s.statuses(http.MethodGet, "/sitemap/sites?site="+url.QueryEscape(s.Expand(name)))
		if len(one) != 1 || one[0].Site != s.Expand(harness.Local) {
			t.Errorf("%s: got %+v", name, one)
		}
	}
	for _, path := range []string{"/sitemap/sites", "/sitemap/explain"} {
		if r := s.wantError(http.MethodPost, path, http.StatusMethodNotAllowed); r.Header.Get("Allow") != http.MethodGet {
			t.Errorf("POST %s: got Allow %q", path, r.Header.Get("Allow"))
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
		if r := s.wantError(method, "/sitemap/refresh", http.StatusMethodNotAllowed); r.Header.Get("Allow") != http.MethodPost {
			t.Errorf("%s: got Allow %q", method, r.Header.Get("Allow"))
		}
	}
	const nobody = "?site=http%3A%2F%2Fnobody.example"
	s.wantError(http.MethodGet, "/sitemap/sites"+nobody, http.StatusNotFound, harness.Local, "http://127.0.0.1:{port}")
	s.wantError(http.MethodPost, "/sitemap/refresh"+nobody, http.StatusNotFound, harness.Local)
	for _, path := range []string{"/sitemap/", "/sitemap/sites/", "/sitemap/site"} {
		s.wantError(http.MethodGet, path, http.StatusNotFound, "/sitemap/sites", "/sitemap/refresh", "/sitemap/explain")
	}
}

func TestAdminExplain(t *testing.T) {
	s := start(t, oneSite, harness.TwoRoots)
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, harness.PagesOfA)...)
	explain := func(page string) (x sitemap.Explanation) {
		r := s.Get(api + "/sitemap/explain?url=" + url.QueryEscape(s.Expand(page)))
		if err := json.Unmarshal([]byte(r.Text), &x); err != nil || r.StatusCode != http.StatusOK {
			t.Fatalf("%s: status %d, %q (%v)", page, r.StatusCode, r.Text, err)
		}
		return x
	}
	if x := explain(harness.Local + "/one.html"); !x.Listed || x.Response == nil || x.Response.Status != http.StatusOK {
		t.Errorf("got %+v", x)
	}
	if x := explain(harness.Local + "/none.html"); x.Listed || x.Reason == "" || x.Explanation == "" {
		t.Errorf("got %+v", x)
	}
	s.wantError(http.MethodGet, "/sitemap/explain", http.StatusBadRequest)
	s.wantError(http.MethodGet, "/sitemap/explain?url=%2Fone.html", http.StatusBadRequest)
	s.wantError(http.MethodGet, "/sitemap/explain?url=http%3A%2F%2Fnobody.example%2F", http.StatusNotFound, harness.Local)
}

func TestAdminWithoutSitemap(t *testing.T) {
	s := start(t, "http://localhost:{port} {\n\trespond hello\n}", nil)
	s.wantError(http.MethodGet, "/sitemap/sites", http.StatusServiceUnavailable, "sitemap")
	s.wantError(http.MethodPost, "/sitemap/refresh", http.StatusServiceUnavailable, "sitemap")
	s.wantError(http.MethodGet, "/sitemap/explain?url=http%3A%2F%2Flocalhost", http.StatusServiceUnavailable, "sitemap")
}

// TestAdminAfterFailedLoad has an admin endpoint that belongs to a configuration which
// did not come to run: it speaks of the one that does.
func TestAdminAfterFailedLoad(t *testing.T) {
	s := start(t, oneSite, harness.TwoRoots)
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, harness.PagesOfA)...)
	if err := s.Load(strings.Replace(oneSite, "sitemap\n", "sitemap {\n\t\tsource unready\n\t}\n", 1)); err == nil {
		t.Fatal("a module that cannot be provisioned was")
	}
	all := s.statuses(http.MethodGet, "/sitemap/sites")
	if len(all) != 1 || all[0].Pages != len(harness.PagesOfA) {
		t.Errorf("got %+v", all)
	}
	if all := s.statuses(http.MethodPost, "/sitemap/refresh"); len(all) != 1 || all[0].LastRefresh == nil {
		t.Errorf("refreshing: got %+v", all)
	}
}

func TestAdminRefresh(t *testing.T) {
	s := start(t, oneSite, harness.TwoRoots)
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, harness.PagesOfA)...)
	// The next refresh would come in a minute: this one is there when the answer is.
	s.Write(map[string]string{"a/new.html": harness.HTML("new")})
	one := s.statuses(http.MethodPost, "/sitemap/refresh?site="+url.QueryEscape(s.Expand(harness.Local)))
	if len(one) != 1 || one[0].Pages != len(harness.PagesOfA)+1 || one[0].LastRefresh.Result != "changed" {
		t.Fatalf("got %+v", one)
	}
	if one = s.statuses(http.MethodPost, "/sitemap/refresh"); one[0].LastRefresh.Result != "unchanged" {
		t.Errorf("again: got %+v", one)
	}
	if err := os.RemoveAll(filepath.Join(s.Dir, "a")); err != nil {
		t.Fatal(err)
	}
	one = s.statuses(http.MethodPost, "/sitemap/refresh")
	if last := one[0].LastRefresh; one[0].Pages != len(harness.PagesOfA)+1 || last.Result != "held_back" && last.Result != "failed" || last.Reason == "" {
		t.Errorf("without a root: got %+v", one)
	}
}

// TestAdminSiteNeverSeen has a site that cannot even be looked at: its refreshes fail, and
// say why.
func TestAdminSiteNeverSeen(t *testing.T) {
	s := start(t, "http://localhost:{port} {\n\troute {\n\t\tabort /sitemap.xml\n\t\tsitemap\n\t}\n}", nil)
	st := s.refresh()
	if last := st.LastRefresh; last == nil || last.Result != "failed" || !strings.Contains(last.Reason, "/sitemap.xml") {
		t.Errorf("got %+v", st)
	}
	s.command("refresh").want(t, 1, []string{"failed, 0 pages", "/sitemap.xml"}, []string{"1 refresh failed"})
}

// TestAdminRefreshesAtOnce has many ask at once, also while a refresh runs: each gets an
// answer of a refresh that began after its request, and they share them.
func TestAdminRefreshesAtOnce(t *testing.T) {
	gate.refuse(nil)
	s := start(t, gatedSite, nil)
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Local+"/")
	arrived, open := gate.close(t)
	before := gate.times()
	const many = 20
	answers := make(chan harness.Response, many+1)
	ask := func() {
		r, err := s.Try(http.MethodPost, api+"/sitemap/refresh")
		if err != nil {
			t.Error(err)
			r.Response = new(http.Response)
		}
		answers <- r
	}
	go ask()
	<-arrived
	for range many {
		go ask()
	}
	s.Eventually(func() bool { return strings.Contains(s.Get(api+"/sitemap/sites").Text, `"refreshing":true`) }, s.SitemapLog)
	open()
	for range many + 1 {
		if r := <-answers; r.StatusCode != http.StatusOK {
			t.Errorf("got status %d: %s", r.StatusCode, r.Text)
		}
	}
	if n := gate.times() - before; n < 1 || n > many {
		t.Errorf("%d refreshes for %d requests at once", n, many+1)
	}
}

// TestAdminClientGoesAway: a refresh goes on whose client does not wait for it.
func TestAdminClientGoesAway(t *testing.T) {
	gate.refuse(nil)
	s := start(t, gatedSite, nil)
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Local+"/")
	arrived, open := gate.close(t)
	ctx, leave := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Expand(api+"/sitemap/refresh"), nil)
	if err != nil {
		t.Fatal(err)
	}
	left := make(chan error, 1)
	go func() {
		resp, err := harness.Client.Do(request)
		if err == nil {
			_ = resp.Body.Close()
		}
		left <- err
	}()
	<-arrived
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
	}
	ended := len(s.LogLines("sitemap refreshed, nothing changed"))
	open()
	s.Eventually(func() bool { return len(s.LogLines("sitemap refreshed, nothing changed")) > ended }, s.SitemapLog)
	if all := s.statuses(http.MethodPost, "/sitemap/refresh"); all[0].LastRefresh.Result != "unchanged" {
		t.Errorf("got %+v", all)
	}
}

// TestAdminWhileReloading asks all the time while configurations come and go.
func TestAdminWhileReloading(t *testing.T) {
	s := start(t, oneSite, harness.TwoRoots)
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, harness.PagesOfA)...)
	ctx, end := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for _, asked := range []struct{ method, path string }{
		{http.MethodGet, "/sitemap/sites"}, {http.MethodPost, "/sitemap/refresh"}, {http.MethodGet, "/metrics"},
		{http.MethodGet, "/sitemap/explain?url=" + url.QueryEscape(s.Expand(harness.Local+"/one.html"))},
	} {
		group.Go(func() {
			for ctx.Err() == nil {
				// An endpoint that ends may take a connection with it; and a site that ends,
				// a refresh.
				r, err := s.Try(asked.method, api+asked.path)
				if err == nil && r.StatusCode != http.StatusOK && r.StatusCode != http.StatusServiceUnavailable {
					t.Errorf("%s %s: got status %d: %s", asked.method, asked.path, r.StatusCode, r.Text)
				}
			}
		})
	}
	for i := range 12 {
		s.Reload("{\n\tsitemap {\n\t\tstate off\n\t}\n}\n" + strings.Replace(oneSite, "sitemap\n", fmt.Sprintf("sitemap {\n\t\trefresh %dm\n\t}\n", i+1), 1))
	}
	end()
	group.Wait()
	s.Eventually(func() bool {
		all := s.statuses(http.MethodGet, "/sitemap/sites")
		return len(all) == 1 && all[0].Pages == len(harness.PagesOfA)
	}, s.SitemapLog)
}

// TestStopWhileRefreshing: who waits for a refresh learns that none comes.
func TestStopWhileRefreshing(t *testing.T) {
	gate.refuse(nil)
	s := start(t, gatedSite, nil)
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Local+"/")
	arrived, _ := gate.close(t)
	answer := make(chan harness.Response, 1)
	go func() {
		r, err := s.Try(http.MethodPost, api+"/sitemap/refresh")
		if err != nil {
			t.Error(err)
			r.Response = new(http.Response)
		}
		answer <- r
	}()
	<-arrived
	s.Stop()
	if r := <-answer; r.StatusCode != http.StatusServiceUnavailable || !strings.Contains(r.Text, "stopped") {
		t.Errorf("got status %d: %s", r.StatusCode, r.Text)
	}
}
