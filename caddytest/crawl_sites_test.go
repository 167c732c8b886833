package caddytest

import (
	"maps"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// pagesFetched are the module's requests so far, without those of each probe.
func (a *web) pagesFetched() map[string]int {
	fetched := a.requests()
	for _, path := range []string{"/", "/robots.txt", "/sitemap.xml", "/docs/sitemap.xml"} {
		delete(fetched, path)
	}
	return fetched
}

// TestCanonicalThatIsNotListed: a page stays listed whose canonical is excluded, lies
// outside of what is listed or does not exist, and is not fetched again for that.
func TestCanonicalThatIsNotListed(t *testing.T) {
	app := newWeb(map[string]string{
		"/docs/":  linking("docs", "/docs/a", "/docs/b", "/docs/c"),
		"/docs/a": naming("/docs/excluded", linking("a")), "/docs/b": naming("/outside", linking("b")), "/docs/c": naming("/docs/missing", linking("c")),
		"/docs/excluded": linking("excluded"), "/outside": linking("outside"),
	})
	s := prepare(t, nil)
	s.LoadApp(behind("path /docs/sitemap.xml\nexclude /docs/excluded\nlinks"), app.ServeHTTP)
	want := harness.Below(harness.Local, []string{"/docs/", "/docs/a", "/docs/b", "/docs/c"})
	s.WantLocs(harness.Local+"/docs/sitemap.xml", want...)
	s.Quietly(1)
	before := app.pagesFetched()
	s.Quietly(3)
	if now := app.pagesFetched(); !maps.Equal(now, before) || now["/outside"]+now["/docs/excluded"] > 0 || now["/docs/a"] != 1 {
		t.Errorf("pages were requested: %v, and before %v", now, before)
	}
	s.WantLocs(harness.Local+"/docs/sitemap.xml", want...)
}
