package sitemap

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed3295b519/caddy-sitemap/internal/visits"
)

// TestMadeUpWrites: writes to hosts that visitors named, and that may be made up, have nothing looked at.
func TestMadeUpWrites(t *testing.T) {
	for isKnown, want := range map[bool]bool{false: false, true: true} {
		s := newVisiting(t, &SourceTraffic{}).site(fmt.Sprintf("written-%t.example", isKnown), "")
		s.onDemand = true
		s.state.isKnown.Store(isKnown)
		s.Write(&visits.Visit{Method: http.MethodPost}, s.app.now())
		if got := !s.state.writes.Due().IsZero(); got != want {
			t.Errorf("known %t: a look is due %t, want %t", isKnown, got, want)
		}
	}
}

// TestNotedWrites: what a write names is its own path and that of its Location, if they are on the site.
func TestNotedWrites(t *testing.T) {
	const host = "written.example"
	for name, test := range map[string]struct {
		location, path string
		want           []string
	}{
		"nothing else": {"", "/wiki/Main", []string{"/wiki/Main", ""}},
		"a path":       {"/wiki/New?saved=1", "/edit", []string{"/edit", "/wiki/New"}},
		"a URL":        {"http://written.example/wiki/New#top", "/edit", []string{"/edit", "/wiki/New"}},
		"elsewhere":    {"http://other.example/wiki/New", "/edit", []string{"/edit", ""}},
		"a broken one": {"http://[", "/edit", []string{"/edit", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVisiting(t, &SourceTraffic{})
			s := v.site(host, "")
			next := caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
				w.Header().Set("Location", test.location)
				w.WriteHeader(http.StatusFound)
				return nil
			})
			r := v.request(http.MethodPost, test.path, http.Header{"Cookie": {"session=1"}})
			r.Host = host
			if err := v.handler.ServeHTTP(sink{make(http.Header)}, r, next); err != nil {
				t.Fatal(err)
			}
			s.begun = v.clock.Add(time.Second)
			s.beginLook()
			if s.look == nil {
				t.Fatal("no look is due")
			}
			for i, want := range test.want {
				if got := append(s.look.Paths, "")[i]; got != want {
					t.Errorf("got %q, want %q", s.look.Paths, test.want)
				}
			}
		})
	}
}
