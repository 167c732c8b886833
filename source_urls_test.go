package sitemap

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// TestLists: where a list may be, and what is none. Lines that are no URLs of the site are counted, and the first ten are
// named. The error of a relative path says where it was looked for, and how to name a document of the site.
func TestLists(t *testing.T) {
	t.Setenv("SITEMAP_NONE", "")
	const text, html, xml = "Content-Type: text/plain", "Content-Type: text/html", "Content-Type: application/xml"
	const first = `/list.txt, line 2: "no URL": a URL must begin with `
	dir := t.TempDir()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"list.txt": "/file", "named.example.txt": "/of-the-host", ".txt": "/of-another"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := newBench(t, nil)
	b.pages = answering(map[string]answer{
		"/list.txt":  {http.StatusOK, text, "/path\nno URL\n"},
		"/index.xml": {http.StatusOK, xml, "<sitemapindex><sitemap><loc>http://named.example/child.xml</loc></sitemap></sitemapindex>"},
		"/child.xml": {http.StatusOK, xml, "<urlset><url><loc>http://named.example/in-a-sitemap</loc></url></urlset>"},
		"/page":      {http.StatusOK, html, "/page"},
		"/old":       {http.StatusFound, "Location: /list.txt", ""},
		"/circle":    {http.StatusFound, "Location: /circle", ""},
		"/away":      {http.StatusFound, "Location: https://named.example/list.txt", ""},
		"/gone":      {http.StatusGone, text, ""},
		"/secret":    {http.StatusForbidden, text, ""},
		"/busy":      {http.StatusServiceUnavailable, text, ""},
		"/long":      {http.StatusOK, text, strings.Repeat("#\n", maxListBody/2+1)},
	})
	for name, test := range map[string]struct {
		source  SourceURLs
		want    string // paths
		refused int
		err     string // a part; "": there is none
	}{
		"lines":              {SourceURLs{URLs: []string{"/b", "/a", "# none"}}, "/b /a", 0, ""},
		"a file":             {SourceURLs{From: []string{dir + "/list.txt"}}, "/file", 0, ""},
		"a path":             {SourceURLs{From: []string{"/list.txt"}}, "/path", 1, ""},
		"a URL":              {SourceURLs{From: []string{"http://Named.example:80/list.txt"}}, "/path", 1, ""},
		"a URL elsewhere":    {SourceURLs{From: []string{"https://named.example/list.txt"}}, "", 0, "neither a file nor a document of the site, which is http://named.example"},
		"an index":           {SourceURLs{From: []string{"/index.xml"}}, "/in-a-sitemap", 0, ""},
		"of the host":        {SourceURLs{From: []string{dir + "/{http.request.host}.txt"}}, "/of-the-host", 0, ""},
		"an empty value":     {SourceURLs{From: []string{dir + "/{env.SITEMAP_NONE}.txt"}}, "", 0, "evaluated placeholder {env.SITEMAP_NONE} is empty"},
		"one of two is read": {SourceURLs{URLs: []string{"/a"}, From: []string{"/busy", dir + "/list.txt"}}, "/a /file", 0, "/busy: fetching /busy: status 503"},
		"a folder":           {SourceURLs{From: []string{dir}}, "", 0, "not a regular file"},
		"many that are none": {SourceURLs{URLs: strings.Split(strings.Repeat("none\n", 12)+"/a", "\n"), From: []string{"/list.txt"}}, "/a /path", 13, ""},
		"no file":            {SourceURLs{From: []string{"nowhere.txt"}}, "", 0, "nowhere.txt: no such file in the working directory, " + folder + "; for what the site serves, write /nowhere.txt: "},
		"no path":            {SourceURLs{From: []string{"/nowhere"}}, "", 0, "/nowhere: neither a file nor a document of the site (status 404): file does not exist"},
		"refused":            {SourceURLs{From: []string{"/secret"}}, "", 0, "/secret: neither a file nor a document of the site (status 403)"},
		"one that is gone":   {SourceURLs{From: []string{"/gone"}}, "", 0, "(status 410): file does not exist"},
		"a page":             {SourceURLs{From: []string{"/page"}}, "", 0, "/page: neither a file nor a document of the site (status 200)"},
		"a redirect":         {SourceURLs{From: []string{"/old"}}, "/path", 1, ""},
		"a redirect to it":   {SourceURLs{From: []string{"/list.txt", "/old"}}, "/path", 1, ""},
		"a circle":           {SourceURLs{From: []string{"/circle"}}, "", 0, "/circle: it redirects more than 5 times"},
		"a redirect away":    {SourceURLs{From: []string{"/away"}}, "", 0, "neither a file nor a document of the site, which is http://named.example"},
		"too long":           {SourceURLs{From: []string{"/long"}}, "", 0, "/long has more than 67108864 bytes"},
	} {
		if testing.Short() && name == "too long" {
			continue // 64 MB
		}
		r, err := newRefresh(b.site("named.example"), probeResult{}, b.clock)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		err = test.source.pages(t.Context(), r, func(p page.Page) error {
			got = append(got, p.Path)
			return nil
		})
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: got error %v, want %q", name, err, test.err)
		}
		for _, line := range b.logs.TakeAll() {
			shown := line.ContextMap()["first"].([]any)
			isNamed := test.refused > 1 || strings.Contains(fmt.Sprint(shown...), first)
			if line.ContextMap()["count"] != int64(test.refused) || len(shown) != min(test.refused, 10) || !isNamed {
				t.Errorf("%s: the log has %v", name, line.ContextMap())
			}
		}
		if refused := r.leftOut["refused line of a list"]; strings.Join(got, " ") != test.want || refused != test.refused || len(r.warnings) != min(test.refused, 1) {
			t.Errorf("%s: got %q, %d lines refused, want %s, %d", name, got, refused, test.want, test.refused)
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
