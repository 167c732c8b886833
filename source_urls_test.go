package sitemap

import (
	"cmp"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

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
