package caddytest

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// TestURLs is where a list may be, and what a line of it may say.
func TestURLs(t *testing.T) {
	const origin = "http://localhost:{port}"
	for name, test := range map[string]struct {
		sitemap string // settings
		site    string // other directives; "inside": of a handle_path around all
		files   map[string]string
		want    string // paths
	}{
		"inline": {
			sitemap: "urls {\n/b\n/a?x=1&y=2\n" + origin + "/absolute\nHTTP://LocalHost:{port}/case\n/with%20space\n/caf%e9\n/ü\n# /comment\n/c#fragment\n}",
			want:    "/%C3%BC /a?x=1&y=2 /absolute /b /c /caf%E9 /case /with%20space",
		},
		"files, paths and URLs of the site, and lines": {
			sitemap: "urls {dir}/a.txt {dir}/{http.request.host}.txt {\n/inline\n}\nurls /of-the-site.txt /pages?all=1 " + origin + "/index.xml",
			site: "root {dir}/root\n@list vars {http.request.uri} /pages?all=1\nrespond @list \"/from/the/app\n/more\"\n" +
				"respond /index.xml \"<sitemapindex><sitemap><loc>" + origin + "/child.xml</loc></sitemap></sitemapindex>\"\n" +
				"respond /child.xml \"<urlset><url><loc>" + origin + "/in-a-sitemap</loc></url></urlset>\"\nfile_server",
			files: map[string]string{"a.txt": "/a\n", "localhost.txt": "/of-the-host\n", "root/of-the-site.txt": "/c\n"},
			want:  "/a /c /from/the/app /in-a-sitemap /inline /more /of-the-host",
		},
		"a path of the site inside handle_path": {
			sitemap: "urls /docs/pages", site: "inside", want: "/docs/a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, nil)
			for file, content := range test.files {
				s.Write(map[string]string{file: s.Expand(content)})
			}
			// Nothing answers for most of these pages.
			site := "sitemap {\ncrawl off\n" + test.sitemap + "\n}\n" + test.site
			if test.site == "inside" {
				site = "handle_path /docs/* {\n" + strings.TrimSuffix(site, "inside") + "respond /pages \"/docs/a\n/outside\"\n}\nredir /sitemap.xml /docs/sitemap.xml"
			}
			s.Load(origin + " {\n" + site + "\n}")
			where := "/sitemap.xml"
			if r := s.Get(origin + where); r.StatusCode == http.StatusFound {
				where = r.Header.Get("Location")
			}
			s.WantLocs(origin+where, harness.Below(origin, strings.Fields(test.want))...)
		})
	}
}

// TestURLsReadAgain is that lists are read at each refresh, and that the last good
// sitemap stays while one of them cannot be.
func TestURLsReadAgain(t *testing.T) {
	var answer atomic.Pointer[string]
	say := func(list string) { answer.Store(&list) }
	say("/app-1\n")
	s := prepare(t, map[string]string{"list.txt": "/file-1\n"})
	s.LoadApp(`http://localhost:{port} {
		sitemap {
			refresh 1s
			urls {dir}/list.txt /pages
		}
		reverse_proxy {app}
	}`, func(w http.ResponseWriter, r *http.Request) {
		switch list := *answer.Load(); {
		case r.URL.Path != "/pages":
			_, _ = w.Write([]byte(harness.HTML(r.URL.Path)))
		case list != "":
			_, _ = w.Write([]byte(list))
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	const origin = "http://localhost:{port}"
	s.WantLocs(origin+"/sitemap.xml", harness.Below(origin, []string{"/app-1", "/file-1"})...)
	s.Write(map[string]string{"list.txt": "/file-1\nnone\n/file-2\n"})
	say("/app-2\n")
	s.WantLocs(origin+"/sitemap.xml", harness.Below(origin, []string{"/app-2", "/file-1", "/file-2"})...)
	line := s.Logged("some lines of a list are not URLs of the site", `"level":"warn"`)
	if !strings.Contains(line, "line 2: ") || !strings.Contains(line, `\"none\"`) {
		t.Errorf("the log has %s", line)
	}
	say("")
	s.Logged(harness.GatheringFails, "/pages", "status 503")
	s.WantLocs(origin+"/sitemap.xml", harness.Below(origin, []string{"/app-2", "/file-1", "/file-2"})...)
	say("/app-3\n")
	s.WantLocs(origin+"/sitemap.xml", harness.Below(origin, []string{"/app-3", "/file-1", "/file-2"})...)
	// The same refused line is said once, however often it is read.
	if lines := s.LogLines("some lines of a list are not URLs of the site"); len(lines) != 1 {
		t.Errorf("%d log lines, want one: %s", len(lines), fmt.Sprint(lines))
	}
}

// TestURLsDates: the dates of a generator's sitemap stand, whatever order the sources have, and not those of the files,
// which one deployment has written.
func TestURLsDates(t *testing.T) {
	const origin = "http://localhost:{port}"
	files := make(map[string]string)
	want := map[string]string{"/": ""}
	list := "<urlset>"
	for i := range 9 {
		path := fmt.Sprintf("/%d.html", i)
		files["root"+path] = harness.HTML(path)
		want[path] = fmt.Sprintf("2024-03-0%d", i+1)
		list += "<url><loc>" + origin + path + "</loc><lastmod>" + want[path] + "</lastmod></url>"
	}
	files["root/index.html"] = harness.HTML("front")
	for name, sources := range map[string]string{
		"the list first":      "urls {dir}/list.xml\nfiles",
		"by name, list first": "crawl off\nurls {dir}/list.xml\nfiles",
	} {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, files)
			s.Write(map[string]string{"list.xml": s.Expand(list + "</urlset>")})
			s.Load(origin + " {\nroot {dir}/root\nsitemap {\n" + sources + "\n}\nfile_server\n}")
			want := maps.Clone(want)
			if !strings.HasPrefix(name, "files") && name != "the list first" {
				info, err := os.Stat(s.Expand("{dir}/root/index.html"))
				harness.Must(t, err)
				want["/"] = harness.Stamp(info.ModTime())
			}
			s.WantDates(origin, want)
		})
	}
}
