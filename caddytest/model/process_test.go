package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/seed3295b519/caddy-sitemap"
)

// host is that of the site. It is public, else nothing would be announced.
const host = "www.sitemap-model.org"

// origin is that of all URLs of the site.
const origin = "http://" + host

// object is a JSON object of a configuration.
type object = map[string]any

// settings are what differs between the configurations of a run.
type settings struct {
	refresh time.Duration // the interval; 0: the default
	html    bool          // which changes documents, but no URL and no date
	fails   bool          // the server cannot be started, maybe after ours was
}

// config is the configuration of the site, without a listener: a socket that waits would stop the clock.
func (m *model) config(s settings) []byte {
	sitemap := object{
		"handler":  "sitemap",
		"html":     s.html,
		"indexnow": object{"endpoints": []string{engineURL}},
	}
	if s.refresh != 0 {
		sitemap["refresh_interval"] = s.refresh.String()
	}
	if m.site.sources != nil {
		sitemap["sources"] = m.site.sources
	}
	routes := []object{
		{"handle": []object{sitemap}},
		{
			"match":  []object{{"path": m.site.proxied}},
			"handle": []object{{"handler": "reverse_proxy", "transport": object{"protocol": "model"}, "upstreams": []object{{"dial": "application:80"}}}},
		},
		{"handle": []object{{"handler": "file_server", "root": ".", "fs": "disk"}}},
	}
	server := object{
		"automatic_https": object{"disable": true},
		"routes":          []object{{"match": []object{{"host": []string{host}}}, "handle": []object{{"handler": "subroute", "routes": routes}}}},
	}
	servers := object{"site": server}
	if s.fails {
		servers["failing"] = object{"listen": []string{"none/none"}}
	}
	state := object{"state": m.state}
	if m.isShared {
		state["storage"] = object{"module": "model"}
	}
	apps := object{
		"caddy.filesystems": object{"filesystems": []object{{"name": "disk", "file_system": object{"backend": "model"}}}},
		"http":              object{"servers": servers, "grace_period": "1s"},
		"sitemap":           state,
	}
	config, _ := json.Marshal(object{
		"admin":   object{"disabled": true, "config": object{"persist": false}},
		"logging": object{"logs": object{"default": object{"writer": object{"output": "model"}, "level": "DEBUG", "include": []string{"http.handlers.sitemap", "sitemap"}}}},
		"storage": object{"module": "file_system", "root": m.state + "/caddy"},
		"apps":    apps,
	})
	return config
}

// get requests a path of the site, as a visitor does.
func get(path string) (*httptest.ResponseRecorder, error) {
	app, err := caddy.ActiveContext().App("http")
	if err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, origin+path, nil)
	app.(*caddyhttp.App).Servers["site"].ServeHTTP(w, r)
	return w, nil
}

// admin requests a path of the admin API, and reads the JSON of the response.
func admin(method, path string, v any) error {
	module, err := caddy.GetModule("admin.api.sitemap")
	if err != nil {
		return err
	}
	for _, route := range module.New().(caddy.AdminRouter).Routes() {
		pattern, _, _ := strings.Cut(path, "?")
		if route.Pattern != method+" "+pattern {
			continue
		}
		w := httptest.NewRecorder()
		err := route.Handler.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), method, path, nil))
		if err != nil {
			return err
		}
		return json.Unmarshal(w.Body.Bytes(), v)
	}
	return fmt.Errorf("the admin API has no %s %s", method, path)
}

// status is what `caddy sitemap status` has of the site, as far as the model reads it.
type status struct {
	Sites []struct {
		LastRefresh struct {
			At time.Time `json:"at"`
		} `json:"last_refresh"`
	} `json:"sites"`
}

// start begins a process.
func (m *model) start() {
	if err := caddy.Load(m.config(m.settings), true); err != nil {
		m.oracle.fail(0, "Caddy does not start: %v", err)
	}
	m.note("Caddy has started with a refresh each %s", m.interval())
	m.started = time.Now()
	m.faults.retryAfter(0)
}

// stop ends it.
func (m *model) stop() {
	if err := caddy.Stop(); err != nil {
		m.oracle.fail(0, "Caddy does not stop: %v", err)
	}
	m.note("Caddy has stopped")
	m.started = time.Time{}
}

// reload loads other settings, or the same ones.
func (m *model) reload(s settings) {
	before := m.oracle.read()
	err := caddy.Load(m.config(s), true)
	if s.fails != (err != nil) {
		m.oracle.fail(0, "loading the next configuration: %v", err)
	}
	isEqual := s.fails || s == m.settings
	if !s.fails {
		m.settings = s
	}
	m.oracle.judgeSuccessor(before, isEqual)
}

// restart ends the process and begins another one, which goes on from the same state.
func (m *model) restart(r *rand.Rand) {
	before := m.oracle.read()
	m.stop()
	time.Sleep(longTail(r, time.Second, time.Hour))
	m.start()
	m.oracle.judgeSuccessor(before, true)
}

// kill ends the process as kill -9 does, and begins another one: of what was written to disk since the last snapshot, there
// are only the first parts.
func (m *model) kill(r *rand.Rand) {
	now, err := snapshotOf(m.state)
	if err != nil {
		m.oracle.fail(0, "reading the state: %v", err)
	}
	m.stop()
	written := m.snapshot.writtenUntil(now)
	n := r.IntN(len(written) + 1)
	err = m.snapshot.restore(m.state, now, written[:n], n == len(written))
	if err != nil {
		m.oracle.fail(0, "restoring the state: %v", err)
	}
	m.note("killed: of %d files that were written, %d are there", len(written), n)
	m.oracle.killed()
	m.start()
}

// snapshot is the content of a folder.
type snapshot map[string]file

type file struct {
	data    []byte
	written time.Time
}

func snapshotOf(folder string) (snapshot, error) {
	s := make(snapshot)
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(name)
		s[name] = file{data, info.ModTime()}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // nothing was stored yet
	}
	return s, err
}

// writtenUntil returns the names of the files that were written until a later snapshot, in order.
func (s snapshot) writtenUntil(later snapshot) (names []string) {
	for name, f := range later {
		if before, ok := s[name]; !ok || !bytes.Equal(before.data, f.data) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(x, y string) int { return later[x].written.Compare(later[y].written) })
	return names
}

// restore makes a folder that of the snapshot, with these files of a later one, and maybe without those that were removed by then.
func (s snapshot) restore(folder string, later snapshot, written []string, removes bool) error {
	files := maps.Clone(s)
	for _, name := range written {
		files[name] = later[name]
	}
	if removes {
		files = later
	}
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	for name, f := range files {
		err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, f.data, 0o600))
		if err != nil {
			return err
		}
	}
	return nil
}
