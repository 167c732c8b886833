package operators

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

const browser = "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:142.0) Gecko/20100101 Firefox/142.0"

// TestPending: status and metrics say how many pages are still to be fetched, and nothing
// of verified ones, as all that are listed are. While upstreams are left alone, nothing is
// done again and again, and a refresh that is asked for does not wait for them.
func TestPending(t *testing.T) {
	s := prepare(t, nil)
	s.LoadApp("{\n metrics\n}\n"+harness.Local+" {\n sitemap {\n refresh 1h\n crawl {\n rate 1/m\n }\n urls {\n/a\n/b\n/c\n}\n }\n reverse_proxy {app}\n}", func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/sitemap") || r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!doctype html><title>x</title>", r.URL.Path)
	})
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Local+"/a") // one fetch a minute
	var said string
	s.Eventually(func() bool {
		said = s.Get(api + "/sitemap/sites").Text
		return strings.Contains(said, `"pages":1,"pending":2`)
	}, func() string { return said })
	if strings.Contains(strings.ReplaceAll(said, "readers_unverified", ""), "verified") {
		t.Errorf("got %s", said)
	}
	if n := valueOf(s.families(api+"/metrics"), "pending_pages"); n != 2 {
		t.Errorf("%v pages are pending, want 2", n)
	}
	s.command("status").want(t, 0, []string{"1 page in 1 document", "; 2 pending"}, nil)
	for range 2 {
		if all := s.statuses(http.MethodPost, "/sitemap/refresh"); len(all) != 1 || all[0].Pages != 1 {
			t.Errorf("got %+v", all)
		}
	}
	s.Passed(time.Second)
	if lines := s.LogLines(`"msg":"sitemap refreshed`); len(lines) > 20 {
		t.Errorf("there were %d publications", len(lines))
	}
}

// TestVisitsThatDoNotCount: where nine tenths of the visits to pages do not count, status
// says why.
func TestVisitsThatDoNotCount(t *testing.T) {
	s := prepare(t, nil)
	s.LoadApp(harness.Local+" {\n sitemap {\n refresh 1s\n traffic\n }\n reverse_proxy {app}\n}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Cache-Control", "private, no-store")
		fmt.Fprint(w, "<!doctype html><title>x</title>", r.URL.Path)
	})
	get := func(n int, headers ...string) {
		t.Helper()
		for range n {
			s.Get(harness.Local+"/a", headers...)
		}
	}
	get(12, browser)
	get(100, browser, "Authorization: Basic dTpw")
	get(8, "User-Agent: some-robot/1.0")
	// Of 120 visits 12 count, just a tenth, though their responses are private.
	s.Eventually(func() bool {
		said := s.Get(api + "/sitemap/sites").Text
		return strings.Contains(said, `"visits_ignored":{"robot":8,"signed in":100}`)
	}, func() string { return s.Get(api + "/sitemap/sites").Text })
	s.command("status").want(t, 0, []string{"not counted", "100 signed in", "8 robot"}, nil)
	get(2, browser)
	s.Eventually(func() bool { return !strings.Contains(s.Get(api+"/sitemap/sites").Text, "visits_ignored") },
		func() string { return s.Get(api + "/sitemap/sites").Text })
}
