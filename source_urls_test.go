package sitemap

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// TestOwnSitemapsFail: an application's sitemap that fails is an error, also beside one that does not exist.
func TestOwnSitemapsFail(t *testing.T) {
	for _, test := range []struct {
		status int // of the second sitemap
		want   string
		err    string
	}{{200, "/a /b", ""}, {404, "/a", ""}, {503, "/a", "status 503"}} {
		b := newBench(t, nil)
		b.pages = func(w http.ResponseWriter, r *http.Request) error {
			const doc = "<sitemap><loc>http://named.example"
			switch r.URL.Path {
			case "/index.xml":
				fmt.Fprint(w, "<sitemapindex>", doc, "/gone.xml</loc></sitemap>", doc, "/1.txt</loc></sitemap>", doc, "/2.txt</loc></sitemap></sitemapindex>")
			case "/1.txt":
				fmt.Fprint(w, "/a\n")
			case "/2.txt":
				w.WriteHeader(test.status)
				fmt.Fprint(w, "/b\n")
			default:
				w.WriteHeader(http.StatusNotFound)
			}
			return nil
		}
		s := b.site("named.example")
		r, err := newRefresh(s, probeResult{robots: robotsRules{sitemaps: []string{"http://named.example/index.xml"}}}, b.clock)
		if err != nil {
			t.Fatal(err)
		}
		var paths []string
		err = r.ownSitemaps(t.Context(), func(p page.Page) error { paths = append(paths, p.Path); return nil })
		if got := strings.Join(paths, " "); got != test.want || (err == nil) != (test.err == "") || !strings.Contains(fmt.Sprint(err), test.err) || (s.own.Load() != nil) != (err == nil) {
			t.Errorf("status %d: got %s, %v, want %s, %q", test.status, got, err, test.want, test.err)
		}
	}
}

// TestMissingList: the pages of a list that does not exist are gone after ten minutes, but not those of another list that
// fails meanwhile.
func TestMissingList(t *testing.T) {
	b := newBench(t, nil)
	b.pages = func(_ http.ResponseWriter, r *http.Request) error {
		status := map[string]int{"/down.txt": http.StatusServiceUnavailable, "/private.txt": http.StatusForbidden}[r.URL.Path]
		return caddyhttp.Error(cmp.Or(status, http.StatusNotFound), nil)
	}
	s := b.site("named.example")
	for _, test := range []struct {
		lists string
		fails bool
	}{
		{"missing.txt", false}, {"/missing.txt", false}, {"http://named.example/missing.txt", false}, {"/private.txt", true},
		{"/down.txt", true}, {"missing.txt /down.txt", true}, {"missing.txt /missing.txt", false},
	} {
		b.handler.sources = []input{&SourceURLs{From: strings.Fields(test.lists)}}
		s.state.missing.Clear()
		for _, after := range []time.Duration{0, confirmAfter} {
			r, err := newRefresh(s, probeResult{}, b.clock.Add(after))
			if err != nil {
				t.Fatal(err)
			}
			if err := r.inputs()[0].Pages(t.Context(), nil); (err == nil) != (after > 0 && !test.fails) {
				t.Errorf("%s, after %s: got %v", test.lists, after, err)
			}
		}
	}
}
