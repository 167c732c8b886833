package sitemap

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// TestIdentity: what a site's URLs are, what it may list, and how the server knows it.
func TestIdentity(t *testing.T) {
	for name, test := range map[string]struct {
		handler *Handler
		at      address
		want    string // URL of the sitemap, prefix of pages, scope, internal origin and prefix
	}{
		"a host":                        {&Handler{}, address{scheme: "http", host: "a.example"}, "http://a.example/sitemap.xml  / http://a.example "},
		"a port":                        {&Handler{}, address{scheme: "https", host: "a.example", port: "8443"}, "https://a.example:8443/sitemap.xml  / https://a.example:8443 "},
		"a prefix":                      {&Handler{}, address{scheme: "http", host: "a.example", prefix: "/docs"}, "http://a.example/docs/sitemap.xml /docs /docs/ http://a.example /docs"},
		"a path":                        {&Handler{Path: "/blog/map.xml"}, address{scheme: "http", host: "a.example"}, "http://a.example/blog/map.xml  /blog/ http://a.example "},
		"a path in a prefix":            {&Handler{Path: "/blog/map.xml"}, address{scheme: "http", host: "a.example", prefix: "/docs"}, "http://a.example/docs/blog/map.xml /docs /docs/blog/ http://a.example /docs"},
		"a base URL":                    {&Handler{BaseURL: "https://Shop.example:443"}, address{}, "https://shop.example/sitemap.xml  / http://named.example:9080 "},
		"a base URL that matchers name": {&Handler{BaseURL: "https://named.example:8443"}, address{}, "https://named.example:8443/sitemap.xml  / http://named.example:9080 "},
		"a base URL and a prefix":       {&Handler{BaseURL: "https://shop.example"}, address{prefix: "/docs"}, "https://shop.example/docs/sitemap.xml /docs /docs/ http://shop.example:9080 /docs"},
		"a folder":                      {&Handler{BaseURL: "https://shop.example/b/"}, address{}, "https://shop.example/b/sitemap.xml  /b/ http://named.example:9080 "},
		"a folder for a prefix":         {&Handler{BaseURL: "https://shop.example/b"}, address{prefix: "/docs"}, "https://shop.example/b/sitemap.xml /b /b/ http://shop.example:9080 /docs"},
		"a path in the folder":          {&Handler{BaseURL: "https://shop.example/b", Path: "/b/c/map.xml"}, address{}, "https://shop.example/b/c/map.xml  /b/c/ http://named.example:9080 "},
	} {
		b := newBench(t, func(h *Handler) {
			h.Path, h.BaseURL, h.listener = test.handler.Path, test.handler.BaseURL, address{scheme: "http", port: "9080"}
			if h.mounts = (mounts{{hosts: []string{"named.example"}}}); test.at.prefix != "" {
				h.mounts = mounts{{prefix: test.at.prefix}}
			}
		})
		id := siteID{b.handler, test.at}
		if test.at.host == "" {
			id, _ = b.handler.idOf(nil, "")
		}
		i := newIdentity(id, false)
		if got := fmt.Sprint(i.sitemap, " ", i.prefix, " ", i.scope, " ", i.internalOrigin, " ", i.id.prefix); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
		if !i.isDocument(i.docPath("-0123456789ab.xml.gz")) || i.isDocument(i.scope+"a.xml") {
			t.Errorf("%s: the site does not know its documents", name)
		}
	}
}

// TestRefreshNow: who asks for a refresh waits until one has ended that began later, of the site
// that stands for the one asked for, or until nobody waits for it any more.
func TestRefreshNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		s, alias := b.site("named.example"), b.site("alias.example")
		ended := make(chan error, 1)
		ask := func(s *site) {
			go func() { ended <- s.refreshNow(t.Context()) }()
			synctest.Wait()
		}
		alias.main.Store(s)
		for _, of := range []*site{s, alias} {
			if s.schedule.Begin() {
				t.Errorf("%s: somebody waits already", of.url())
			}
			ask(of)
			s.schedule.At(b.clock.Add(time.Hour)) // of the refresh that runs
			s.schedule.End()
			synctest.Wait()
			if due := s.schedule.Due(); len(ended) > 0 || !due.Equal(b.clock) || !s.schedule.Begin() {
				t.Fatalf("%s: the next refresh is due at %s, %d have ended", of.url(), due, len(ended))
			}
			s.schedule.End()
			if err := <-ended; err != nil {
				t.Errorf("%s: got %v", of.url(), err)
			}
		}
		alias.main.Store(nil) // until its own refresh finds out
		ask(alias)
		alias.schedule.Begin()
		alias.main.Store(s)
		alias.schedule.End()
		synctest.Wait()
		if len(ended) > 0 || !s.schedule.Begin() {
			t.Error("who waits for what becomes an alias does not wait for the other site")
		}
		s.schedule.End()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.refreshNow(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
		ask(s)
		s.cancel()
		if err := <-ended; err != errStopping {
			t.Errorf("got %v, want %v", err, errStopping)
		}
	})
}

// probedSite is a site at a URL such as "https://www.a.example:8443", probed with a result.
func probedSite(b *bench, url string, probed *probeResult) *site {
	scheme, host, _ := strings.Cut(url, "://")
	host, prefix, _ := strings.Cut(host, "/")
	host, port, _ := strings.Cut(host, ":")
	at := address{scheme: scheme, host: host, port: port}
	if prefix != "" {
		at.prefix = "/" + prefix
	}
	s := &site{identity: newIdentity(siteID{b.handler, at}, false)}
	if probed != nil {
		s.probed.Store(probed)
	}
	return s
}

// TestMainOf: which sites stand for which, in whatever order they come.
func TestMainOf(t *testing.T) {
	result := func(root, canonical string) *probeResult {
		return &probeResult{siteFiles: siteFiles{root: root}, canonicalHost: canonical}
	}
	same := result("/srv", "")
	for name, test := range map[string]struct {
		sites map[string]*probeResult
		want  map[string]string
	}{
		"alone":                    {map[string]*probeResult{"http://a.example": same}, nil},
		"https for http":           {map[string]*probeResult{"http://a.example": same, "https://a.example": same}, map[string]string{"http://a.example": "https://a.example"}},
		"https at another port":    {map[string]*probeResult{"http://a.example:8080": same, "https://a.example:8443": same}, map[string]string{"http://a.example:8080": "https://a.example:8443"}},
		"another root":             {map[string]*probeResult{"http://a.example": result("/other", ""), "https://a.example": same}, nil},
		"another host":             {map[string]*probeResult{"http://a.example": same, "https://b.example": same}, nil},
		"www":                      {map[string]*probeResult{"http://a.example": same, "http://www.a.example": same}, map[string]string{"http://www.a.example": "http://a.example"}},
		"www is canonical":         {map[string]*probeResult{"http://a.example": result("/srv", "www.a.example"), "http://www.a.example": same}, map[string]string{"http://a.example": "http://www.a.example"}},
		"apex is canonical":        {map[string]*probeResult{"http://a.example": result("/srv", "a.example"), "http://www.a.example": result("/srv", "a.example")}, map[string]string{"http://www.a.example": "http://a.example"}},
		"another one is canonical": {map[string]*probeResult{"http://a.example": result("/srv", "b.example"), "http://www.a.example": same}, map[string]string{"http://www.a.example": "http://a.example"}},
		"www by another scheme":    {map[string]*probeResult{"http://a.example": same, "https://www.a.example": same}, nil},
		"all four, www": {
			map[string]*probeResult{"http://a.example": same, "http://www.a.example": same, "https://a.example": result("/srv", "www.a.example"), "https://www.a.example": same},
			map[string]string{"http://a.example": "https://www.a.example", "http://www.a.example": "https://www.a.example", "https://a.example": "https://www.a.example"},
		},
		"not probed":  {map[string]*probeResult{"http://a.example": same, "https://a.example": nil}, nil},
		"not reached": {map[string]*probeResult{"http://a.example": same, "https://a.example": {blocked: reasonUnreached, siteFiles: siteFiles{root: "/srv"}}}, nil},
		"refused":     {map[string]*probeResult{"http://a.example": same, "https://a.example": {blocked: reasonRefused, siteFiles: siteFiles{root: "/srv"}}}, nil},
	} {
		var sites []*site
		of := map[string]*bench{"http": newBench(t, nil), "https": newBench(t, nil)} // each is another server
		for url, probed := range test.sites {
			scheme, _, _ := strings.Cut(url, ":")
			sites = append(sites, probedSite(of[scheme], url, probed))
		}
		for range 20 {
			rand.Shuffle(len(sites), func(i, j int) { sites[i], sites[j] = sites[j], sites[i] })
			for _, s := range sites {
				got := ""
				if main := s.mainOf(sites); main != nil {
					got = main.url()
				}
				if got != test.want[s.url()] {
					t.Fatalf("%s: %s stands for %s, want %q", name, got, s.url(), test.want[s.url()])
				}
			}
		}
	}
}

// TestSettle: only sites that may stand for one another wait for one another's first probe, and not
// for long.
func TestSettle(t *testing.T) {
	for name, test := range map[string]struct {
		others map[string]bool // hosts, and whether they were probed
		want   time.Duration
	}{
		"alone":              {nil, 0},
		"another host":       {map[string]bool{"b.example": false}, 0},
		"www, probed":        {map[string]bool{"www.a.example": true}, 0},
		"www, not probed":    {map[string]bool{"www.a.example": false, "b.example": false}, firstPatience},
		"two of them":        {map[string]bool{"www.a.example": false, "www.www.a.example": false}, firstPatience},
		"on demand, waiting": {map[string]bool{"www.visited.example": false}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, func(h *Handler) { h.mounts = mounts{{hosts: []string{"a.example", "b.example", "www.a.example"}}, {}} })
			s := b.site("a.example")
			for host, probed := range test.others {
				if other := b.site(host); probed {
					other.setProbed()
				}
			}
			begun := time.Now()
			s.settle(t.Context(), &probeResult{}, nil)
			if waited := time.Since(begun); waited != test.want {
				t.Errorf("%s: waited for %s, want %s", name, waited, test.want)
			}
		})
	}
}

// TestSettleAliases: a site becomes an alias, and comes back when the probes say otherwise.
func TestSettleAliases(t *testing.T) {
	b := newBench(t, func(h *Handler) { h.mounts = mounts{{hosts: []string{"a.example", "www.a.example"}}} })
	apex, www := b.site("a.example"), b.site("www.a.example")
	www.setProbed()
	for i, step := range []struct {
		apex, www probeResult
		main      [2]*site
	}{
		{probeResult{}, probeResult{}, [2]*site{nil, apex}},
		{probeResult{canonicalHost: "www.a.example"}, probeResult{}, [2]*site{www, nil}},
		{probeResult{canonicalHost: "www.a.example"}, probeResult{blocked: reasonUnreached}, [2]*site{}},
	} {
		was := www.main.Load()
		www.schedule.At(b.clock.Add(time.Hour))
		apex.settle(t.Context(), &step.apex, nil)
		if due := www.schedule.Due(); was != nil && www.main.Load() == nil && !due.Equal(b.clock) {
			t.Errorf("step %d: what was an alias, and has no sitemap yet, is refreshed at %s", i, due)
		}
		www.settle(t.Context(), &step.www, nil)
		if got := [2]*site{apex.main.Load(), www.main.Load()}; got != step.main {
			t.Errorf("step %d: got %v, want %v", i, got, step.main)
		}
		if i == 0 && !wait.IsDone(www.ready) {
			t.Error("requests for the alias wait")
		}
	}
}

// TestForwardedTwins: behind a proxy that speaks https, www and the apex are one site; the
// listener's own sites stay.
func TestForwardedTwins(t *testing.T) {
	b := newBench(t, func(h *Handler) { h.mounts = mounts{{hosts: []string{"a.example", "www.a.example"}}} })
	direct := b.site("a.example")
	direct.setProbed()
	for _, host := range []string{"www.a.example", "a.example"} {
		s, err := b.visitThrough("https", host)
		if err != nil {
			t.Fatal(err)
		}
		s.settle(t.Context(), &probeResult{}, nil)
	}
	direct.settle(t.Context(), &probeResult{}, nil)
	for _, s := range b.app.allSites() {
		if main := s.main.Load(); (main != nil) != (s.id.host == "www.a.example") || main != nil && main.url() != "https://a.example" {
			t.Errorf("%s is an alias of %v", s.url(), main)
		}
	}
}
