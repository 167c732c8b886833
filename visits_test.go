package sitemap

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// visiting is an App with one handler, whose visits are looked at by the test.
type visiting struct {
	testing.TB
	app     *App
	handler *Handler
	logs    *observer.ObservedLogs
	clock   time.Time
}

func newVisiting(t testing.TB, sources ...Source) *visiting {
	t.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	v := &visiting{TB: t, logs: logs, clock: time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)}
	h := &Handler{logger: zap.New(core), sources: sources, server: new(caddyhttp.Server), listener: listener{scheme: "http"}, mounts: mounts{{}}}
	for _, source := range sources {
		h.sourceNames = append(h.sourceNames, caddy.GetModuleName(source))
	}
	var err error
	if h.settings, err = h.compile(caddy.NewReplacer()); err != nil {
		t.Fatal(err)
	}
	h.stem = h.settings.stem
	if h.discovery, err = h.discovers(); err != nil {
		t.Fatal(err)
	}
	v.handler = h
	v.app = &App{
		logger: h.logger, now: func() time.Time { return v.clock }, handlers: []*Handler{h}, sites: make(map[siteID]*site),
		started: make(chan struct{}), wake: make(chan struct{}, 1), counts: newCounts(nil), visits: make(chan visit, maxVisits),
	}
	h.app = v.app
	v.app.running, v.app.cancel = context.WithCancel(t.Context())
	t.Cleanup(func() {
		for _, s := range v.app.sites {
			s.drop()
		}
	})
	close(v.app.started)
	return v
}

// site makes a site that a request named, as ready as after its first refresh.
func (v *visiting) site(host, prefix string) *site {
	id := siteID{v.handler, address{scheme: "http", host: host, prefix: prefix}}
	s := newSite(v.app, newIdentity(v.handler, id, prefix, false))
	s.markReady()
	v.app.sites[id] = s
	return s
}

// visited are the paths that a refresh of a site is given.
func (v *visiting) visited(s *site) []string {
	v.Helper()
	var paths []string
	err := new(SourceTraffic).Pages(v.Context(), newRefresh(s, probeResult{}, v.clock), func(p Page) error {
		if !p.Visited {
			v.Errorf("%s is not marked as visited", p.Path)
		}
		paths = append(paths, p.Path)
		return nil
	})
	if err != nil || !slices.IsSorted(paths) {
		v.Errorf("got %q, %v", paths, err)
	}
	return paths
}

func (v *visiting) want(s *site, want ...string) {
	v.Helper()
	if got := v.visited(s); !slices.Equal(got, want) {
		v.Errorf("%s: got %q, want %q", s.url(), got, want)
	}
}

// messages are how often each message was logged.
func (v *visiting) messages() map[string]int {
	messages := make(map[string]int)
	for _, entry := range v.logs.All() {
		messages[entry.Message]++
	}
	return messages
}

// keys are the keys of a map in order.
func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
