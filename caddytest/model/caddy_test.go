package model

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"encoding/xml"
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
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/seed3295b519/caddy-sitemap"
)

// origin is that of the site. It is public, else nothing would be announced.
const origin = "http://www.sitemap-model.org"

// config is the configuration. The server of the site has no listener: a socket that waits would stop the clock.
const config = `{
	"admin": {"disabled": true, "config": {"persist": false}},
	"logging": {"logs": {"default": {
		"writer": {"output": "file", "filename": "$LOG", "roll": false}, "level": "DEBUG", "include": ["http.handlers.sitemap", "sitemap"]
	}}},
	"storage": {"module": "file_system", "root": "$STATE/caddy"},
	"apps": {
		"caddy.filesystems": {"filesystems": [{"name": "disk", "file_system": {"backend": "model"}}]},
		"sitemap": {"state": "$STATE" $STORAGE},
		"http": {"grace_period": "1s", "servers": {
			"other": {"listen": [$LISTEN]},
			"site": {"automatic_https": {"disable": true}, "routes": [{
				"match": [{"host": ["www.sitemap-model.org"]}],
				"handle": [{"handler": "subroute", "routes": [
					{"handle": [{
						"handler": "sitemap", "html": $HTML, "refresh_interval": $REFRESH, "sources": $SOURCES,
						"indexnow": {"endpoints": ["http://engine.sitemap-model.org/indexnow"]}
					}]},
					{"match": [{"path": ["$PROXIED"]}], "handle": [{
						"handler": "reverse_proxy", "transport": {"protocol": "model"}, "upstreams": [{"dial": "application:80"}]
					}]},
					{"handle": [{"handler": "file_server", "root": ".", "fs": "disk"}]}
				]}]
			}]}
		}}
	}
}`

// settings are what differs between the configurations of a run.
type settings struct {
	refresh time.Duration // the interval; 0: the default
	html    bool          // which changes documents, but no URL and no date
	fails   bool          // the server cannot be started, maybe after ours was
}

// config returns the configuration with some settings.
func (w *world) config(s settings) []byte {
	values := map[string]string{
		"STATE":   filepath.ToSlash(w.state),
		"LOG":     filepath.ToSlash(w.log.Name()),
		"REFRESH": strconv.FormatInt(int64(s.refresh), 10),
		"HTML":    strconv.FormatBool(s.html),
		"PROXIED": map[shape]string{ofFiles: "/none", ofApplication: "*", ofBoth: "/shop/*"}[w.of],
		"SOURCES": "null",
	}
	if w.of == ofBoth {
		values["SOURCES"] = `[{"source": "files"}, {"source": "links"}, {"source": "urls", "from": ["/shop/list.txt"]}]`
	}
	if w.isShared {
		values["STORAGE"] = `, "storage": {"module": "model"}`
	}
	if s.fails {
		values["LISTEN"] = `"none/none"`
	}
	return []byte(os.Expand(config, func(name string) string { return values[name] }))
}

// interval is the time between two refreshes.
func (w *world) interval() time.Duration { return cmp.Or(w.settings.refresh, time.Minute) }

// start begins a process.
func (w *world) start() {
	w.check(caddy.Load(w.config(w.settings), true))
	w.note("Caddy has started with a refresh each %s", w.interval())
	w.started = time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notBefore = time.Now() // it knows of no pause, and of no pace
	w.requests = nil
}

// stop ends it.
func (w *world) stop() {
	w.check(caddy.Stop())
	w.note("Caddy has stopped")
}

// reload loads other settings, or the same ones.
func (w *world) reload(s settings) {
	before := w.read()
	err := caddy.Load(w.config(s), true)
	if s.fails != (err != nil) {
		w.fail(0, "loading the next configuration: %v", err)
	}
	isEqual := s.fails || s == w.settings
	if !isEqual {
		w.settings = s
		for _, t := range w.troubles {
			t.isBelieved = t.isBelieved || t.ended.IsZero()
		}
	}
	w.judgeSuccessor(before, isEqual)
}

// restart ends the process and begins another one, which goes on from the same state: maybe on another machine, which has
// the storage alone.
func (w *world) restart(r *rand.Rand) {
	before := w.read()
	w.stop()
	time.Sleep(longTail(r, time.Second, time.Hour))
	isElsewhere := w.isShared && w.fine() > 0 && r.IntN(2) == 0
	if isElsewhere {
		w.state += "-next"
	}
	w.start()
	if isElsewhere {
		time.Sleep(margin)
	}
	w.judgeSuccessor(before, true)
}

// kill ends the process as kill -9 does, and begins another one: of what was written to disk since the last event, there
// are only the first parts.
func (w *world) kill(r *rand.Rand) {
	now := w.readState()
	w.stop()
	names := slices.DeleteFunc(slices.Collect(maps.Keys(now)), func(name string) bool {
		return bytes.Equal(now[name].data, w.stored[name].data)
	})
	slices.SortFunc(names, func(x, y string) int { return now[x].written.Compare(now[y].written) })
	n := r.IntN(len(names) + 1)
	w.note("killed: of %d files that were written, %d are there", len(names), n)
	left := now
	if n < len(names) {
		left = maps.Clone(w.stored) // what was removed is there again
		for _, name := range names[:n] {
			left[name] = now[name]
		}
	}
	w.check(os.RemoveAll(w.state))
	for name, f := range left {
		w.check(os.MkdirAll(filepath.Dir(name), 0o700))
		w.check(os.WriteFile(name, f.data, 0o600))
	}
	w.mayBeOlder()
	w.start()
}

// file is a file of the state.
type file struct {
	data    []byte
	written time.Time
}

// readState returns the files of the state by name.
func (w *world) readState() map[string]file {
	files := make(map[string]file)
	err := filepath.WalkDir(w.state, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(name)
		files[name] = file{data, info.ModTime()}
		return err
	})
	if !errors.Is(err, fs.ErrNotExist) { // else nothing was stored yet
		w.check(err)
	}
	return files
}

// document is what is served at a moment.
type document struct {
	body  string
	dates map[string]string // of the pages that are listed, by path
}

// visit sends a request to the site.
func (w *world) visit(method, path string, header http.Header) *httptest.ResponseRecorder {
	app, err := caddy.ActiveContext().App("http")
	w.check(err)
	recorder := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(context.Background(), method, origin+path, nil)
	r.Header = header
	app.(*caddyhttp.App).Servers["site"].ServeHTTP(recorder, r)
	return recorder
}

// post sends a request by which somebody may save something.
func (w *world) post(path string) {
	w.visit(http.MethodPost, path, http.Header{"Cookie": {"session=1"}})
}

// read requests the sitemap, as a visitor does; nil: there is none.
func (w *world) read() *document {
	recorder := w.visit(http.MethodGet, "/sitemap.xml", make(http.Header))
	if recorder.Code != http.StatusOK {
		return nil
	}
	var sitemap struct {
		URLs []struct {
			Loc     string `xml:"loc"`
			LastMod string `xml:"lastmod"`
		} `xml:"url"`
	}
	w.check(xml.Unmarshal(recorder.Body.Bytes(), &sitemap))
	d := &document{recorder.Body.String(), make(map[string]string)}
	for _, u := range sitemap.URLs {
		d.dates[strings.TrimPrefix(u.Loc, origin)] = u.LastMod
	}
	return d
}

// admin requests a path of the admin API, and reads the JSON of the response.
func admin(method, path string, v any) error {
	module, err := caddy.GetModule("admin.api.sitemap")
	if err != nil {
		return err
	}
	pattern, _, _ := strings.Cut(method+" "+path, "?")
	for _, route := range module.New().(caddy.AdminRouter).Routes() {
		if route.Pattern != pattern {
			continue
		}
		recorder := httptest.NewRecorder()
		err := route.Handler.ServeHTTP(recorder, httptest.NewRequestWithContext(context.Background(), method, path, nil))
		if err != nil {
			return err
		}
		return json.Unmarshal(recorder.Body.Bytes(), v)
	}
	return fmt.Errorf("the admin API has no %s", pattern)
}
