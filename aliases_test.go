package sitemap

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// probedSite is a site at a URL such as "https://www.a.example:8443", probed with a result.
func probedSite(b *bench, url string, probed *probeResult) *site {
	scheme, host, _ := strings.Cut(url, "://")
	host, prefix, _ := strings.Cut(host, "/")
	host, port, _ := strings.Cut(host, ":")
	at := address{scheme: scheme, host: host, port: port}
	if prefix != "" {
		at.prefix = "/" + prefix
	}
	s := &site{identity: newIdentity(b.handler, siteID{b.handler, at}, at.prefix, false), app: b.app}
	if probed != nil {
		s.probed.Store(probed)
	}
	return s
}

// TestMergeAliases: which sites stand for which, in whatever order they come.
func TestMergeAliases(t *testing.T) {
	result := func(root, canonical string) *probeResult {
		return &probeResult{reached: true, root: root, canonicalHost: canonical}
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
		"another prefix":           {map[string]*probeResult{"http://a.example/docs": same, "https://a.example": same}, nil},
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
		"not reached": {map[string]*probeResult{"http://a.example": same, "https://a.example": {root: "/srv"}}, nil},
		"refused":     {map[string]*probeResult{"http://a.example": same, "https://a.example": {reached: true, refused: 403, root: "/srv"}}, nil},
	} {
		b := newBench(t, nil)
		var sites []*site
		for url, probed := range test.sites {
			sites = append(sites, probedSite(b, url, probed))
		}
		for range 20 {
			rand.Shuffle(len(sites), func(i, j int) { sites[i], sites[j] = sites[j], sites[i] })
			main := mergeAliases(sites)
			for _, s := range sites {
				got := ""
				if main[s] != nil {
					got = main[s].url()
				}
				if got != test.want[s.url()] {
					t.Fatalf("%s: %s stands for %s, want %q", name, got, s.url(), test.want[s.url()])
				}
			}
		}
	}
}

// TestAwaitTwins: only sites that may stand for one another wait for one another, and not
// for long.
func TestAwaitTwins(t *testing.T) {
	for name, test := range map[string]struct {
		others map[string]bool // hosts, and whether they were probed
		want   time.Duration
	}{
		"alone":              {nil, 0},
		"another host":       {map[string]bool{"b.example": false}, 0},
		"www, probed":        {map[string]bool{"www.a.example": true}, 0},
		"www, not probed":    {map[string]bool{"www.a.example": false, "b.example": false}, probePatience},
		"two of them":        {map[string]bool{"www.a.example": false, "www.www.a.example": false}, probePatience},
		"on demand, waiting": {map[string]bool{"www.visited.example": false}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, func(h *Handler) { h.mounts = mounts{{hosts: []string{"a.example", "b.example", "www.a.example"}}, {}} })
			s := b.site("a.example")
			for host, probed := range test.others {
				if other := b.site(host); probed {
					close(other.wasProbed)
				}
			}
			begun := time.Now()
			s.awaitTwins(t.Context())
			if waited := time.Since(begun); waited != test.want {
				t.Errorf("%s: waited for %s, want %s", name, waited, test.want)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			begun = time.Now()
			if s.awaitTwins(ctx); time.Since(begun) != 0 {
				t.Errorf("%s: waited on for %s", name, time.Since(begun))
			}
		})
	}
}

// TestSettleAliases: a site becomes an alias, and comes back when the probes say otherwise.
func TestSettleAliases(t *testing.T) {
	b := newBench(t, func(h *Handler) { h.mounts = mounts{{hosts: []string{"a.example", "www.a.example"}}} })
	apex, www := b.site("a.example"), b.site("www.a.example")
	apex.probed.Store(&probeResult{reached: true})
	www.probed.Store(&probeResult{reached: true})
	waiting := www.schedule.request(b.clock)
	b.app.settleAliases()
	if www.main.Load() != apex || apex.main.Load() != nil || *www.state.alias.Load() != apex.state.key {
		t.Fatalf("www is an alias of %v, the apex of %v", www.main.Load(), apex.main.Load())
	}
	if got := apex.aliases(); len(got) != 1 || got[0] != "http://www.a.example" {
		t.Errorf("got the aliases %q", got)
	}
	select {
	case <-www.ready:
	default:
		t.Error("requests for the alias wait")
	}
	if _, ok := apex.schedule.begin(b.clock); !ok {
		t.Error("who waits for the alias is not heard")
	}
	if apex.schedule.end(b.clock, b.clock, false); !isDone(waiting) {
		t.Error("who waits for the alias waits on")
	}
	apex.probed.Store(&probeResult{reached: true, canonicalHost: "www.a.example"})
	b.app.settleAliases()
	if apex.main.Load() != www || www.main.Load() != nil {
		t.Error("www does not stand for the apex that names it")
	}
	www.probed.Store(&probeResult{})
	b.app.settleAliases()
	if apex.main.Load() != nil || apex.state.alias.Load() != nil {
		t.Error("the apex stays an alias of a site that is not reached")
	}
}

// TestResumeAliases: after a reload, and after a restart, sites are aliases from the start.
func TestResumeAliases(t *testing.T) {
	b := newBench(t, func(h *Handler) { h.mounts = mounts{{hosts: []string{"a.example", "www.a.example", "b.example"}}} })
	apex, www, other := b.site("a.example"), b.site("www.a.example"), b.site("b.example")
	www.state.alias.Store(&apex.state.key)
	gone := "gone"
	other.state.alias.Store(&gone)
	b.app.resumeAliases()
	if www.main.Load() != apex || apex.main.Load() != nil || other.main.Load() != nil {
		t.Errorf("after a reload: got %v, %v, %v", www.main.Load(), apex.main.Load(), other.main.Load())
	}
	www.main.Store(nil)
	other.probed.Store(new(probeResult))
	apex.adoptAliases([]string{"http://www.a.example", "http://b.example", "http://a.example"})
	if www.main.Load() != apex || apex.main.Load() != nil || other.main.Load() != nil {
		t.Errorf("after a restart: got %v, %v, %v", www.main.Load(), apex.main.Load(), other.main.Load())
	}
}

// TestAdoptEachOther: stale state does not have two sites redirect to each other.
func TestAdoptEachOther(t *testing.T) {
	b := newBench(t, func(h *Handler) { h.mounts = mounts{{hosts: []string{"a.example", "www.a.example"}}} })
	apex, www := b.site("a.example"), b.site("www.a.example")
	www.adoptAliases([]string{apex.url()})
	apex.adoptAliases([]string{www.url()})
	if apex.main.Load() != www || www.main.Load() != nil {
		t.Errorf("got %v, %v", apex.main.Load(), www.main.Load())
	}
}
