package caddytest

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// TestURLs is where a list may be, and what a line of it may say.
func TestURLs(t *testing.T) {
	const origin = "http://localhost:{port}"
	for name, test := range map[string]struct {
		caddyfile string
		files     map[string]string
		want      []string
		log       []string // words of a line
	}{
		"inline": {
			caddyfile: `
				sitemap {
					urls {
						/b
						/a?x=1&y=2
						http://localhost:{port}/absolute
						HTTP://LocalHost:{port}/case
						"/with space"
						/caf%e9
						/ü
						# /comment
						/c#fragment
					}
				}`,
			want: []string{"/a?x=1&amp;y=2", "/absolute", "/b", "/c", "/caf%E9", "/case", "/with%20space", "/%C3%BC"},
		},
		"a file": {
			caddyfile: `
				sitemap {
					urls {dir}/list.txt
				}`,
			files: map[string]string{"list.txt": "\uFEFF# all pages\n\n/one # the first\r\n/two\n  /three  \n/one\n/no-line-end"},
			want:  []string{"/no-line-end", "/one", "/three", "/two"},
		},
		"several files, and lines": {
			caddyfile: `
				sitemap {
					urls {dir}/a.txt {dir}/b.txt {
						/inline
					}
					urls /of-the-site.txt
				}
				root {dir}/root
				file_server`,
			files: map[string]string{"a.txt": "/a\n", "b.txt": "/b\n", "root/of-the-site.txt": "/c\n"},
			want:  []string{"/a", "/b", "/c", "/inline"},
		},
		"a file by placeholder": {
			caddyfile: `
				sitemap {
					urls {dir}/{http.request.host}.txt
				}`,
			files: map[string]string{"localhost.txt": "/a\n"},
			want:  []string{"/a"},
		},
		"a path of the site": {
			caddyfile: `
				sitemap {
					urls /pages?all=1
				}
				@list vars {http.request.uri} /pages?all=1
				respond @list "/from/the/app
/more"`,
			want: []string{"/from/the/app", "/more"},
		},
		"a URL of the site": {
			caddyfile: `
				sitemap {
					urls http://localhost:{port}/pages
				}
				respond /pages "/a"`,
			want: []string{"/a"},
		},
		"a path of the site inside handle_path": {
			caddyfile: `
				handle_path /docs/* {
					sitemap {
						urls /docs/pages
					}
					respond /pages "/docs/a
/outside"
				}
				redir /sitemap.xml /docs/sitemap.xml`,
			want: []string{"/docs/a"},
		},
		"a URL elsewhere": {
			caddyfile: `
				sitemap {
					urls https://elsewhere.example/pages {
						/a
					}
				}`,
			want: []string{"/a"},
			log:  []string{"gathering pages failed", "https://elsewhere.example/pages is not on " + origin},
		},
		"beside files": {
			caddyfile: `
				root {dir}/root
				sitemap {
					files
					urls {
						/app
						/page.html priority=0.9
					}
				}
				file_server`,
			files: map[string]string{"root/page.html": "x", "root/index.html": "x"},
			want:  []string{"/", "/app", "/page.html"},
		},
		"refused lines": {
			caddyfile: `
				sitemap {
					urls {dir}/list.txt
				}`,
			files: map[string]string{"list.txt": strings.Join([]string{
				"/good",
				"https://localhost:{port}/scheme",
				"http://elsewhere.example/host",
				"http://localhost:1/port",
				"relative",
				"//localhost/x",
				"/bad%escape",
				"/latin\xe9",
				"/date lastmod=yesterday",
				"/freq changefreq=often",
				"/prio priority=2",
				"/unknown colour=red",
				"javascript:alert(1)",
				"http://user:pass@localhost:{port}/user",
				"/" + strings.Repeat("x", 2048),
				"/also-good",
			}, "\n")},
			want: []string{"/also-good", "/good"},
			log:  []string{"lines of a list are no URLs of the site", "{dir}/list.txt", `"count":14`, "line 2: ", "line 5: ", `relative`, "line 9: ", "line 11: "},
		},
		"a missing file": {
			caddyfile: `
				sitemap {
					urls {dir}/missing.txt {dir}/list.txt
				}`,
			files: map[string]string{"list.txt": "/a\n"},
			want:  []string{"/a"},
			log:   []string{"gathering pages failed", "{dir}/missing.txt"},
		},
		"a folder": {
			caddyfile: `
				sitemap {
					urls {dir} {
						/a
					}
				}`,
			want: []string{"/a"},
			log:  []string{"gathering pages failed", "{dir} is not a regular file"},
		},
		"a pipe": {
			caddyfile: `
				sitemap {
					urls {dir}/pipe {
						/a
					}
				}`,
			want: []string{"/a"},
			log:  []string{"gathering pages failed", "{dir}/pipe is not a regular file"},
		},
		"UTF-16": {
			caddyfile: `
				sitemap {
					urls {dir}/list.txt {
						/a
					}
				}`,
			files: map[string]string{"list.txt": "\xFF\xFE/\x00b\x00"},
			want:  []string{"/a", "/b"},
		},
		"a list that is none": {
			caddyfile: `
				sitemap {
					urls /page.html {
						/a
					}
				}
				respond /page.html "<!doctype html><html><body>not found</body></html>"`,
			want: []string{"/a"},
			log:  []string{"lines of a list are no URLs of the site", "/page.html", "line 1: "},
		},
		"a list that nothing answers": {
			caddyfile: `
				sitemap {
					urls /nothing {
						/a
					}
				}`,
			want: []string{"/a"},
			log:  []string{"gathering pages failed", "/nothing"},
		},
		"a list that redirects": {
			caddyfile: `
				sitemap {
					urls /old {
						/a
					}
				}
				redir /old /new`,
			want: []string{"/a"},
			log:  []string{"gathering pages failed", "/old", "status 302"},
		},
		"outside of the folder": {
			caddyfile: `
				sitemap {
					path /docs/map.xml
					urls {
						/docs/a
						/docs
						/b
					}
				}
				redir /sitemap.xml /docs/map.xml`,
			want: []string{"/docs/a"},
			log:  []string{"sitemap refreshed", "outside the sitemap's folder: 2"},
		},
		"rules, exclude and the sitemap itself": {
			caddyfile: `
				sitemap {
					exclude /private/* *.pdf
					urls {
						/a
						/private/b
						/c.pdf
						/sitemap.xml
						/sitemap-0123456789ab.xml
					}
				}`,
			want: []string{"/a"},
			log:  []string{"sitemap refreshed", "excluded: 2", "a document of the sitemap: 2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, nil)
			for file, content := range test.files {
				s.Write(map[string]string{file: s.Expand(content)})
			}
			if strings.Contains(test.caddyfile, "/pipe") {
				makePipe(t, filepath.Join(s.Dir, "pipe"))
			}
			// Nothing answers for most of these pages.
			caddyfile := strings.Replace(test.caddyfile, "sitemap {", "sitemap {\n\t\t\t\t\tcrawl off", 1)
			if err := s.Load(origin + " {\n" + caddyfile + "\n}"); err != nil {
				t.Fatal(err)
			}
			where := "/sitemap.xml"
			if r := s.Get(origin + where); r.StatusCode == http.StatusFound {
				where = r.Header.Get("Location")
			}
			var want []string
			for _, path := range test.want {
				want = append(want, s.Expand(origin)+strings.ReplaceAll(path, "&amp;", "&"))
			}
			slices.Sort(want)
			s.WantLocs(origin+where, want...)
			if test.log != nil {
				s.Logged(test.log...)
			}
		})
	}
}

func makePipe(t *testing.T, name string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		// There are none; a folder will do.
		if err := os.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
		return
	}
	if out, err := exec.Command("mkfifo", name).CombinedOutput(); err != nil {
		t.Fatalf("mkfifo: %v: %s", err, out)
	}
}

// TestURLsOptions is what a line says of its page.
func TestURLsOptions(t *testing.T) {
	s := start(t, `http://localhost:{port} {
		sitemap {
			crawl off
			rule /b* {
				changefreq never
				priority 0.1
			}
			urls {
				/a lastmod=2024-02-29 changefreq=weekly priority=0.8
				/b lastmod=2024-02-29T23:30:15-01:00 changefreq=always
				/b2
				/c lastmod=2999-01-01
			}
		}
	}`, nil)
	s.WantLocs("http://localhost:{port}/sitemap.xml", harness.Below("http://localhost:{port}", []string{"/a", "/b", "/b2", "/c"})...)
	body := s.Get("http://localhost:{port}/sitemap.xml").Text
	for _, want := range []string{
		"/a</loc><lastmod>2024-02-29</lastmod><changefreq>weekly</changefreq><priority>0.8</priority></url>",
		"/b</loc><lastmod>2024-03-01T00:30:15Z</lastmod><changefreq>always</changefreq><priority>0.1</priority></url>",
		"/b2</loc><changefreq>never</changefreq><priority>0.1</priority></url>",
		"/c</loc></url>",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%s\nhas no %s", body, want)
		}
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
	line := s.Logged("lines of a list are no URLs of the site", `"level":"warn"`)
	if !strings.Contains(line, "line 2: ") || !strings.Contains(line, `\"none\"`) {
		t.Errorf("the log has %s", line)
	}
	say("")
	s.Logged("gathering pages failed", "/pages", "status 503")
	s.WantLocs(origin+"/sitemap.xml", harness.Below(origin, []string{"/app-2", "/file-1", "/file-2"})...)
	say("/app-3\n")
	s.WantLocs(origin+"/sitemap.xml", harness.Below(origin, []string{"/app-3", "/file-1", "/file-2"})...)
	// The same refused line is said once, however often it is read.
	if lines := s.LogLines("lines of a list are no URLs of the site"); len(lines) != 1 {
		t.Errorf("%d log lines, want one: %s", len(lines), fmt.Sprint(lines))
	}
}
