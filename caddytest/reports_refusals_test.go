package caddytest

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// common is the snippet of the configurations below, for a site of the root a.
const common = "(common) {\n root {dir}/a\n sitemap {\n {block}\n }\n file_server\n}\n"

// wantSaid wants one line about sites at this level that holds all the words, and no other one at this level or above, but those of
// sites that list pages.
func (s *server) wantSaid(level string, words ...string) {
	s.T.Helper()
	s.Logged(words...)
	var all []string
	for _, l := range []string{"info", "warn", "error"} {
		if l < level && l != "error" {
			continue
		}
		for _, line := range s.LogLines(`"level":"`+l+`"`, `"logger":"http.handlers.sitemap`) {
			isUsual := strings.Contains(line, harness.Refreshed) || strings.Contains(line, "no incoming links")
			if !isUsual {
				all = append(all, line)
			}
		}
	}
	if len(all) != 1 || len(s.LogLines(append(words, `"level":"`+level+`"`)...)) != 1 {
		s.T.Errorf("want one line at %s with %q, got:\n%s", level, words, strings.Join(all, ""))
	}
}

// TestAliasesByRedirect: a host all of whose pages are at another host is no problem.
func TestAliasesByRedirect(t *testing.T) {
	for name, test := range map[string]struct{ caddyfile, alias, main string }{
		"a snippet": {
			"http://example.test:{port} {\n import common\n}\nhttp://www.example.test:{port} {\n import common\n redir http://example.test:{port}{uri} permanent\n}",
			"http://www.example.test:{port}", "http://example.test:{port}",
		},
		"two hosts of a block": {
			"http://example.test:{port}, http://www.example.test:{port} {\n @bare host example.test\n redir @bare http://www.example.test:{port}{uri}\n import common\n}",
			"http://example.test:{port}", "http://www.example.test:{port}",
		},
		"http to https": {
			"http://example.test:{port} {\n import common\n redir https://example.test:{tls}{uri}\n}",
			"http://example.test:{port}", "https://example.test:{tls}",
		},
		"to the front page of another server": {
			"http://old.test:{port} {\n import common\n redir https://new.test\n}",
			"http://old.test:{port}", "https://new.test",
		},
		"behind the sitemap, to a folder of another server": {
			"http://old.test:{port} {\n root {dir}/a\n route {\n sitemap\n redir https://new.test/shop{uri} 308\n}\n}",
			"http://old.test:{port}", "https://new.test",
		},
		"but for robots.txt and the sitemap": {
			"http://old.test:{port} {\n import common\n @moved not path /robots.txt /sitemap*.xml\n redir @moved https://new.test{uri} permanent\n}",
			"http://old.test:{port}", "https://new.test",
		},
		"with a robots.txt, behind the sitemap": {
			"http://old.test:{port} {\n route {\n sitemap\n respond /robots.txt \"User-agent: *\"\n redir https://new.test{uri}\n}\n}",
			"http://old.test:{port}", "https://new.test",
		},
		"by an application": {
			"http://old.test:{port} {\n sitemap\n reverse_proxy {app}\n}",
			"http://old.test:{port}", "https://new.test",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepareWithAdmin(t, harness.TwoRoots)
			s.LoadApp(common+test.caddyfile, func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "https://new.test"+r.URL.Path, http.StatusMovedPermanently)
			})
			s.Refreshes(1)
			shown := s.Get(api + "/sitemap/sites?site=" + s.Expand(test.alias)).Text
			want := s.Expand(`"served_by":"` + test.main + `"`)
			if !strings.Contains(shown, want) || strings.Contains(shown, `"problem":`) {
				t.Errorf("want %s and no problem in %s", want, shown)
			}
			s.wantSaid("info", "redirect", `"site":"`+test.alias+`"`, `"to":"`+test.main)
		})
	}
}

// TestAliasesFailNoCommand: an alias has no command fail, and no folder in a build.
func TestAliasesFailNoCommand(t *testing.T) {
	const two = common + `http://example.test:{port}, http://www.example.test:{port} {
		@www host www.example.test
		redir @www http://example.test:{port}{uri}
		import common
	}`
	s := startWithAdmin(t, two, harness.TwoRoots)
	s.command("refresh").want(t, 0, nil, nil, `served by +`+s.Expand("http://example.test:{port}\n"))
	s.command("status", "--site", "http://www.example.test:{port}").want(t, 0, nil, nil, `served by`)
	s.command("explain", "http://www.example.test:{port}/one.html").want(t, 0, []string{"redirected to another one"}, nil, `listed +false`)
	s.Write(map[string]string{"Caddyfile": s.Expand(two)})
	run(t, s.Dir, "sitemap", "build", "--config", "Caddyfile", "--adapter", "caddyfile", "--out", "out").want(t, 0, []string{"http://example.test:" + s.Port + "/sitemap.xml", "pages: 4", "written into out: 3"}, []string{""})
}

// TestPortals: a login to which each request is redirected is one as a 401 is.
func TestPortals(t *testing.T) {
	portal := func(w http.ResponseWriter, r *http.Request) {
		asked := "https://app.test" + r.Header.Get("X-Forwarded-Uri")
		http.Redirect(w, r, "https://auth.test/?rd="+asked+"&rm=GET", http.StatusFound)
	}
	for name, test := range map[string]struct {
		caddyfile string
		app       http.HandlerFunc
	}{
		"of another host":    {"forward_auth {app} {\n uri /api/verify\n}\nimport common", portal},
		"before all of them": {"route {\n forward_auth {app} {\n uri /api/verify\n}\n root {dir}/a\n sitemap\n file_server\n}", portal},
		"of the same host": {"forward_auth {app} {\n uri /verify\n @out status 401\n handle_response @out {\n redir * /oauth2/sign_in?rd={uri}\n}\n}\nimport common", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
		}},
		"behind the sitemap": {"root {dir}/a\nroute {\n sitemap\n redir https://auth.test/login\n}", portal},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepareWithAdmin(t, harness.TwoRoots)
			s.LoadApp(common+"http://localhost:{port} {\n"+test.caddyfile+"\n}", test.app)
			s.refresh()
			s.wantSaid("info", "the site refuses anonymous visitors", `"status":302`, "None if the site is private")
		})
	}
}

// TestAborts: a connection that is aborted before any header is a refusal.
func TestAborts(t *testing.T) {
	const refuses = "the site refuses anonymous visitors"
	for name, test := range map[string]struct{ rule, remedy string }{
		"addresses":                   {"@others not remote_ip 127.0.0.1 173.245.48.0/20\nabort @others", "192.0.2.1"},
		"addresses, before the route": {"route {\n@others not client_ip 127.0.0.1\nabort @others\n}", "192.0.2.1"},
		"User-Agents":                 {"@robots header User-Agent *bot*\nabort @robots", "'caddy-sitemap'"},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepareWithAdmin(t, harness.TwoRoots)
			s.Load(common + "http://localhost:{port} {\n" + test.rule + "\nimport common\n}")
			s.refresh()
			line := s.Logged(refuses, test.remedy)
			if strings.Contains(line, "remove the rule") || strings.Contains(line, "or the rule") {
				t.Errorf("the advice is %s", line)
			}
			s.wantSaid("info", refuses)
			explained := s.Get(api + "/sitemap/explain?url=" + s.Expand(harness.Local) + "/one.html").Text
			isRefused := strings.Contains(explained, `"listed":false`) && strings.Contains(explained, refuses)
			if !isRefused || strings.Contains(explained, "Wait") {
				t.Errorf("explain says %s", explained)
			}
		})
	}
}

// TestAbortsOfPages: pages that begin to be refused by an abort are not listed any more.
func TestAbortsOfPages(t *testing.T) {
	for name, rule := range map[string]string{
		"by a matcher":  "@docs {\n path /docs/*\n not remote_ip private_ranges\n}\nabort @docs",
		"in a handle":   "handle /docs/* {\n abort\n}",
		"by its status": "@docs path /docs/*\nrespond @docs 403 {\n close\n}",
	} {
		t.Run(name, func(t *testing.T) {
			s := prepareWithAdmin(t, harness.TwoRoots)
			s.Load(common + "http://localhost:{port} {\nimport common\n}")
			s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, harness.PagesOfA)...)
			s.Load(common + "http://localhost:{port} {\n" + rule + "\nimport common\n}")
			s.WantLocs(harness.Local+"/sitemap.xml", harness.Below(harness.Local, []string{"/", "/one.html"})...)
			explained := s.Get(api + "/sitemap/explain?url=" + s.Expand(harness.Local) + "/docs/guide.html").Text
			if !strings.Contains(explained, `"reason":"refused"`) || !strings.Contains(explained, "192.0.2.1") {
				t.Errorf("explain says %s", explained)
			}
		})
	}
}

// TestMisplaced: a directive that cannot work where it stands is a warning that names the change to make.
func TestMisplaced(t *testing.T) {
	for name, test := range map[string]struct {
		caddyfile string
		want      []string
	}{
		"in handle_errors":                {"{origin} {\n root {dir}/a\n file_server\n handle_errors {\n sitemap\n}\n}", []string{"handle_errors", "into the block of the site"}},
		"in a handle of handle_errors":    {"{origin} {\n root {dir}/a\n file_server\n handle_errors 404 {\n handle /x/* {\n sitemap\n}\n}\n}", []string{"handle_errors", "into the block of the site"}},
		"a matcher of another host":       {"{origin} {\n root {dir}/a\n @shop host shop.test\n sitemap @shop\n file_server\n}", []string{"matcher", "shop.test", "remove"}},
		"in a handle of another host":     {"http://*.test:{port} {\n root {dir}/a\n @shop host shop.example\n handle @shop {\n sitemap\n}\n file_server\n}", []string{"matcher", "shop.example"}},
		"twice":                           {"{origin} {\n root {dir}/a\n sitemap\n sitemap {\n exclude /docs/*\n}\n file_server\n}", []string{"another sitemap", "one block"}},
		"twice, by a snippet in a handle": {common + "{origin} {\n sitemap\n handle {\n import common\n}\n}", []string{"another sitemap", "one block"}},
		"after file_server":               {"{origin} {\n route {\n root {dir}/a\n file_server\n sitemap\n}\n}", []string{"status 404", "'file_server' stands before it", "move 'sitemap'"}},
		"after reverse_proxy":             {"{origin} {\n root {dir}/a\n route {\n handle {\n reverse_proxy {app}\n}\n sitemap\n}\n}", []string{"status 404", "'reverse_proxy' stands before it", "move 'sitemap'"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, harness.TwoRoots)
			s.LoadApp(strings.ReplaceAll(test.caddyfile, "{origin}", harness.Local), http.NotFound)
			s.Refreshes(1)
			s.wantSaid("warn", test.want...)
		})
	}
}

// TestAbortingWildcard: what requests of made-up hosts find out is said once.
func TestAbortingWildcard(t *testing.T) {
	for name, end := range map[string]string{"aborted": "abort", "forbidden": "respond 403"} {
		t.Run(name, func(t *testing.T) {
			s := start(t, common+"http://*.test:{port} {\n sitemap\n @a host a.test\n handle @a {\n root {dir}/a\n file_server\n}\n handle {\n "+end+"\n}\n}", harness.TwoRoots)
			for i := range 5 {
				for range 2 {
					_, _ = s.Try(http.MethodGet, fmt.Sprintf("http://host%d.test:{port}/sitemap.xml", i))
				}
			}
			s.wantSaid("info", "refuses anonymous visitors")
			if lines := s.LogLines(`"logger":"http.log.error`); len(lines) > 0 {
				t.Errorf("%d errors, the first: %s", len(lines), lines[0])
			}
		})
	}
}

// TestSitesAddedOneByOne: with each site that is added, the others say nothing again.
func TestSitesAddedOneByOne(t *testing.T) {
	s := prepareWithAdmin(t, harness.TwoRoots)
	harness.Must(t, s.LoadJSON(`{"apps": {"http": {"servers": {"one": {
		"listen": [":{port}"], "automatic_https": {"disable": true}, "routes": []
	}}}}}`))
	const sites = 5
	for i := range sites {
		route := fmt.Sprintf(`{
			"match": [{"host": ["shop%d.com"]}],
			"handle": [{"handler": "subroute", "routes": [
				{"match": [{"path": ["/robots.txt"]}], "handle": [{"handler": "static_response", "body": "User-agent: *"}]},
				{"handle": [{"handler": "sitemap"}, {"handler": "file_server", "root": %q}]}
			]}]
		}`, i, s.Dir+"/a")
		if i%2 == 1 {
			route = strings.ReplaceAll(route, "/a", "/none")
		}
		s.addRoute(route)
		s.Refreshes(1)
	}
	for i := range sites {
		site := fmt.Sprintf(`"site":"http://shop%d.com:{port}"`, i)
		seen := make(map[string]int)
		for _, line := range s.LogLines(`"level":"warn"`, site) {
			_, line, _ = strings.Cut(line, `"msg":`)
			seen[line]++
		}
		if len(seen) == 0 {
			t.Errorf("nothing is said of %s", site)
		}
		for line, n := range seen {
			if n > 1 {
				t.Errorf("%d times: %s", n, line)
			}
		}
	}
}

// addRoute adds a route to the server named one, by the admin API.
func (s *server) addRoute(route string) {
	s.T.Helper()
	r, err := http.NewRequestWithContext(s.T.Context(), http.MethodPost, s.Expand("http://localhost:{admin}/config/apps/http/servers/one/routes"), strings.NewReader(route))
	harness.Must(s.T, err)
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	harness.Must(s.T, err)
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		s.T.Fatalf("status %d: %s", resp.StatusCode, text)
	}
}

// TestRobotsOfTwoHandlers: the robots.txt of a host names the sitemaps of its folders, too.
func TestRobotsOfTwoHandlers(t *testing.T) {
	for name, test := range map[string]struct {
		caddyfile string
		folders   []string
		named     bool
	}{
		"a folder beside the site":  {"handle_path /docs/* {\n root {dir}/b\n sitemap\n file_server\n}\nhandle {\n import common\n}", []string{"/docs"}, true},
		"two folders, and one each": {"handle_path /docs/* {\n root {dir}/b\n sitemap\n file_server\n}\nhandle_path /more/* {\n root {dir}/b\n sitemap {\n feed\n lastmod mtime\n}\n file_server\n}\nimport common", []string{"/docs", "/more"}, true},
		"only a folder":             {"handle_path /docs/* {\n root {dir}/b\n sitemap\n file_server\n}\nroot {dir}/a\nfile_server", []string{"/docs"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, harness.TwoRoots)
			caddyfile := common + "http://localhost:{port} {\n" + test.caddyfile + "\n}"
			s.Load(caddyfile)
			for _, folder := range test.folders {
				s.Locs(harness.Local + folder + "/sitemap.xml")
			}
			s.Refreshes(1)
			s.Reload(caddyfile)
			s.Refreshes(1)
			robots := s.Get(harness.Local + "/robots.txt").Text
			for _, folder := range test.folders {
				line := s.Expand("Sitemap: "+harness.Local) + folder + "/sitemap.xml\n"
				if strings.Contains(robots, line) != test.named {
					t.Errorf("robots.txt is %q; want %q in it: %t", robots, line, test.named)
				}
			}
			if test.named && !strings.Contains(robots, s.Expand("Sitemap: "+harness.Local+"/sitemap.xml\n")) {
				t.Errorf("robots.txt is %q, without the sitemap of the site", robots)
			}
			want := 0
			if !test.named {
				want = len(test.folders)
			}
			if lines := s.LogLines("requests for /robots.txt do not reach"); len(lines) != want {
				t.Errorf("got %d warnings, want %d: %s", len(lines), want, lines)
			}
		})
	}
}
