package faults

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// TestAliasesAreRemembered: after a reload or a restart www leads to the apex at once, and
// does not wait for a slow application to be probed.
func TestAliasesAreRemembered(t *testing.T) {
	const apex, www = "http://shop.example:{port}", "http://www.shop.example:{port}"
	var slow atomic.Bool
	stop := make(chan struct{})
	app := harness.Backend(t, func(w http.ResponseWriter, r *http.Request) {
		if slow.Load() {
			select {
			case <-time.After(prompt + time.Second):
			case <-r.Context().Done():
			case <-stop:
			}
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(harness.HTML("shop")))
	})
	t.Cleanup(func() { close(stop) })
	s := prepare(t, nil)
	caddyfile := "{\n sitemap {\n state {dir}/state\n }\n}\n" + apex + ", " + www + " {\n sitemap {\n refresh 1s\n links\n }\n reverse_proxy " + app + "\n}"
	leads := func() bool {
		r, err := s.Again(www + "/sitemap.xml")
		return err == nil && r.StatusCode == http.StatusPermanentRedirect && r.Header.Get("Location") == s.Expand(apex+"/sitemap.xml")
	}
	if err := s.Load(caddyfile); err != nil {
		t.Fatal(err)
	}
	s.Eventually(leads, s.SitemapLog)
	s.WantLocs(apex+"/sitemap.xml", apex+"/")
	s.Refreshes(1)
	slow.Store(true)
	for name, again := range map[string]func(){
		"a reload": func() { s.Reload(caddyfile) }, "a restart": func() { s.Restart(caddyfile) },
	} {
		again()
		promptly(t, "the alias after "+name, func() { s.Eventually(leads, s.SitemapLog) })
		promptly(t, "the sitemap after "+name, func() { s.WantLocs(apex+"/sitemap.xml", apex+"/") })
		for begun := time.Now(); time.Since(begun) < prompt+2*time.Second; { // until probes have ended
			if !leads() {
				t.Fatalf("%s after %s, www does not lead to the apex any more\n%s", time.Since(begun), name, s.SitemapLog())
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}
