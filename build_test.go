package sitemap

import (
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/merge"
)

// TestBuildFailure: a build that has not read all sources has not seen all pages.
func TestBuildFailure(t *testing.T) {
	gone := errors.New("gone")
	for _, test := range []struct {
		name   string
		result result
		want   error
	}{
		{"no failure", result{}, nil},
		{"the refresh failed", result{err: gone}, gone},
		{"a source failed", result{merged: merge.Result{Failed: []merge.InputError{{Name: "urls", Err: gone}}}}, gone},
	} {
		if err := test.result.failure(); !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
			t.Errorf("%s: got %v, want %v", test.name, err, test.want)
		}
	}
}

// TestBuildUnprinted: a summary that nobody can read is a failure, as text and as JSON.
func TestBuildUnprinted(t *testing.T) {
	full := errors.New("no space left")
	summary := newBuildSummary(nil, time.Second, nil)
	for name, printing := range map[string]func(io.Writer) error{"text": summary.print, "json": summary.printJSON} {
		if err := printing(failingWriter{full}); !errors.Is(err, full) || !strings.Contains(err.Error(), "printing the summary") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// TestHandlersOf finds handlers wherever a configuration has them.
func TestHandlersOf(t *testing.T) {
	inner := object{"handler": "sitemap", "path": "/inner.xml"}
	outer := object{"handler": "sitemap", "path": "/outer.xml"}
	config := object{"apps": object{"http": object{"servers": object{"a": object{"routes": []any{
		object{"handle": []any{outer, object{"handler": "subroute", "routes": []any{object{"handle": []any{inner, object{"handler": "file_server"}}}}}}},
	}}}}}}
	var paths []string
	for _, h := range handlersOf(config, "sitemap") {
		paths = append(paths, h["path"].(string))
	}
	slices.Sort(paths)
	if want := []string{"/inner.xml", "/outer.xml"}; !slices.Equal(paths, want) {
		t.Errorf("got %q, want %q", paths, want)
	}
	if got := handlersOf(config, "file_server"); len(got) != 1 || !maps.Equal(got[0], object{"handler": "file_server"}) {
		t.Errorf("got %v", got)
	}
	if got := handlersOf(config, "reverse_proxy"); got != nil {
		t.Errorf("got %v", got)
	}
}

// TestNamingSitemap: a robots.txt is the site's own with a line more, or a new one.
func TestNamingSitemap(t *testing.T) {
	const url = "https://example.com/sitemap.xml"
	const line = "Sitemap: " + url + "\n"
	const fresh = "User-agent: *\nDisallow:\n\n" + line
	for _, test := range []struct {
		status            int
		contentType, body string
		want              string // "": it stays as it is
		made              bool
	}{
		{200, "text/plain", "User-agent: *\n", "User-agent: *\n\n" + line, false},
		{200, "", line, line, false},
		{404, "", "", fresh, true},
		{410, "text/plain", "x", fresh, true},
		{200, "text/plain", "", fresh, true},
		{200, "text/html", "<html>", fresh, true},
		{200, "image/png", "x", "", false},
		{200, "text/plain", "\xFF\xFEU\x00", "", false},
	} {
		got, made, ok := namingSitemap(test.status, test.contentType, []byte(test.body), url)
		if ok != (test.want != "") || ok && string(got) != test.want || made != test.made {
			t.Errorf("%d %s %q: got %q, %t, %t", test.status, test.contentType, test.body, got, made, ok)
		}
	}
}
