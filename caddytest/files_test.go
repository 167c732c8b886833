package caddytest

import (
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// TestFiles is each option of the source, and what file_server says itself. Every
// URL that is listed must answer.
func TestFiles(t *testing.T) {
	const origin = "http://localhost:{port}"
	for name, test := range map[string]struct {
		// Directives before sitemap, its options or those of its source files, and those of
		// file_server; or all that is inside of the site's block.
		before, options, source, server, caddyfile string

		files    map[string]string
		want     []string
		unserved []string // of those, ones that nothing serves
	}{
		"by default": {
			files: map[string]string{
				"index.html": "x", "a.html": "x", "B.HTML": "x", "c.htm": "x", "d.xhtml": "x", "e.txt": "x", "f.pdf": "x", "g.html.bak": "x", "html": "x",
				"404.html": "x", "500.html": "x", "50x.html": "x", "4xx.html": "x", "403.htm": "x", "399.html": "x", "404-notes.html": "x", "1404.html": "x",
				"google0123456789abcdef.html": "x", "google.html": "x", "yandex_0123456789abcdef.html": "x",
				"_draft.html": "x", "_drafts/a.html": "x", ".hidden.html": "x", ".git/a.html": "x", ".well-known/a.html": "x",
				"node_modules/a/index.html": "x", "bower_components/a/index.html": "x", "sub/node_modules/a.html": "x",
				"empty.html": "", "sub/index.html": "x", "sub/sub/page.html": "x", "txt/index.txt": "x", "folder.html/a.html": "x", "bare/": "",
			},
			want: []string{"/", "/1404.html", "/399.html", "/404-notes.html", "/B.HTML", "/a.html", "/c.htm", "/d.xhtml", "/folder.html/a.html", "/google.html", "/sub/", "/sub/sub/page.html"},
		},
		"include_only": {
			source: "include_only *.pdf /docs/*.html",
			files:  map[string]string{"a.pdf": "x", "A.PDF": "another", "x/b.pdf": "x", "index.html": "x", "docs/c.html": "x", "docs/index.html": "x"},
			want:   []string{"/A.PDF", "/a.pdf", "/docs/", "/docs/c.html", "/x/b.pdf"},
		},
		"include and hide": {
			source: "include *.pdf\nhide secret draft-*.html {dir}/x/b.html {dir}/y",
			server: "hide served {dir}/z/*.html",
			files: map[string]string{
				"a.html": "x", "secret/a.html": "x", "x/secret/a.html": "x", "draft-1.html": "x", "x/draft-2.html": "x", "x/b.html": "x", "x/c.html": "x",
				"y/a.html": "x", "yy.html": "x", "y.pdf": "x", "served/a.html": "x", "z/a.html": "x", "z/deep/a.html": "x",
			},
			want: []string{"/a.html", "/x/c.html", "/y.pdf", "/yy.html", "/z/deep/a.html"},
		},
		"the server's configuration lies in the root": {
			before: "header /sub/Caddyfile Content-Type text/html\nimport {dir}/snippet.html",
			source: "include *",
			files:  map[string]string{"Caddyfile": "x", "snippet.html": "\theader X-Snippet <yes>\n", "index.html": "x", "sub/Caddyfile": harness.HTML("x")},
			want:   []string{"/", "/sub/Caddyfile"},
		},
		"index of the source": {
			caddyfile: `
				root {dir}
				sitemap {
					files {
						index home.html
					}
				}
				handle {
					rewrite / /home.html
					file_server
				}`,
			files: map[string]string{"home.html": "x", "index.html": "another"},
			want:  []string{"/", "/index.html"},
		},
		"several roots": {
			caddyfile: `
				sitemap {
					files {dir}/www {
						exclude /docs/*
					}
					files {dir}/manual {
						at /docs
					}
					files {dir}/blog {
						at /blog/
					}
				}
				handle_path /docs/* {
					root {dir}/manual
					file_server
				}
				handle_path /blog/* {
					root {dir}/blog
					file_server
				}
				handle {
					root {dir}/www
					file_server
				}`,
			files: map[string]string{
				"www/index.html": "x", "www/a.html": "x", "www/docs/old.html": "x",
				"manual/index.html": "x", "manual/b.html": "x", "blog/index.html": "x", "blog/2026/c.html": "x",
			},
			want: []string{"/", "/a.html", "/blog/", "/blog/2026/c.html", "/docs/", "/docs/b.html"},
		},
		"file system of the source": {
			options: "files www {\nfs mem\n}",
			server:  "fs mem\nroot www",
			files:   map[string]string{"not.html": "x"},
			want:    []string{"/", "/about.html"},
		},
		"clean_urls auto, try_files": {
			before: "try_files {path} {path}.html",
			files: map[string]string{
				"index.html": "x", "about.html": "about", "sub/team.html": "team", "sub/index.html": "x", "old.htm": "x",
				"both.html": "page", "both": "file", "folder.html": "page", "folder/a.html": "x", "v1.2.html": "x", "twice.html.html": "x",
			},
			want: []string{"/", "/about", "/both.html", "/folder", "/folder/a", "/old.htm", "/sub/", "/sub/team", "/twice.html", "/v1.2"},
		},
		"clean_urls auto, redirected to the short form, relative": {
			before: "@long path_regexp long ([^/]+)\\.html$\nredir @long {re.long.1} 308\ntry_files {path} {path}.html",
			files:  map[string]string{"index.html": "x", "about.html": "about", "sub/team.html": "team"},
			want:   []string{"/", "/about", "/sub/team"},
		},
		"clean_urls auto, inside handle_path": {
			caddyfile: `
				handle_path /docs/* {
					root {dir}
					try_files {path} {path}.html
					sitemap {
						path /sitemap.xml
					}
					file_server
				}
				redir /sitemap.xml /docs/sitemap.xml`,
			files: map[string]string{"index.html": "x", "about.html": "about"},
			want:  []string{"/docs/", "/docs/about"},
		},
		"clean_urls on": {
			options:  "crawl off\nfiles {\nclean_urls on\n}",
			files:    map[string]string{"index.html": "x", "about.html": "about"},
			want:     []string{"/", "/about"},
			unserved: []string{"/about"},
		},
		"clean_urls off": {
			before: "try_files {path} {path}.html",
			source: "clean_urls off",
			files:  map[string]string{"index.html": "x", "about.html": "about"},
			want:   []string{"/", "/about.html"},
		},
		"names suffice with crawl off": {
			options: "crawl off",
			files:   map[string]string{"index.html": "x", "empty.html": "", "noindex.html": `<meta name="robots" content="noindex">`, "404.html": "x"},
			want:    []string{"/", "/empty.html", "/noindex.html"},
		},
		"links that spell names otherwise": {
			options: "files\nlinks",
			files: map[string]string{
				"index.html":     `<!doctype html><a href="/a%2Cb.html">1</a><a href="/C%2B%2B%20guide.html">2</a><a href="a%3Bb.html">3</a><a href="/x%26y.html">4</a><a href="/sub%2Fp%3Aq.html">5</a>`,
				"a,b.html":       `<!doctype html><title>1</title><link rel="canonical" href="/a%2Cb.html">1`,
				"C++ guide.html": "2", "a;b.html": "3", "x&y.html": "4", "sub/p:q.html": "5",
			},
			want: []string{"/", "/C++%20guide.html", "/a,b.html", "/a;b.html", "/sub/p:q.html", "/x&y.html"},
		},
		"both excludes know the URL alone": {
			options: `exclude /b/*
files {
exclude "/a b.html"
}`,
			files: map[string]string{"a b.html": "x", "a c.html": "x", "b/x.html": "x"},
			want:  []string{"/a%20c.html"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "windows" && strings.Contains(strings.Join(test.want, ""), ":") {
				t.Skip("no name of a file has a colon there")
			}
			s := prepare(t, test.files)
			if test.source != "" {
				test.options = "files {\n" + test.source + "\n}"
			}
			if test.caddyfile == "" {
				test.caddyfile = "root {dir}\n" + test.before + "\nsitemap {\n" + test.options + "\n}\nfile_server {\n" + test.server + "\n}"
			}
			s.Load("{\n\tfilesystem mem memory\n}\n" + origin + " {\n" + test.caddyfile + "\n}")
			where := "/sitemap.xml"
			if strings.HasPrefix(test.want[0], "/docs") {
				where = "/docs/sitemap.xml"
			}
			s.WantLocs(origin+where, harness.Below(origin, test.want)...)
			for _, path := range test.want {
				if r := s.Get(origin + path); r.StatusCode != http.StatusOK && !slices.Contains(test.unserved, path) {
					t.Errorf("%s is listed and answers %d", path, r.StatusCode)
				}
			}
		})
	}
}

// TestFilesMessy is the exact check against file_server itself: every listed URL
// answers 200 without a redirect, and every HTML file that does so under its path is
// listed, save for named exceptions.
func TestFilesMessy(t *testing.T) {
	for name, options := range map[string]string{"plain": "", "clean URLs": "\ttry_files {path} {path}.html\n"} {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, map[string]string{"outside/out.html": "out", "outside/index.html": "out"})
			exceptions := makeMess(t, filepath.Join(s.Dir, "root"))
			s.Load("http://localhost:{port} {\n\troot {dir}/root\n" + options + "\tsitemap\n\tfile_server\n}")
			s.Crawled()
			locs := s.Locs("http://localhost:{port}/sitemap.xml")
			if !slices.IsSorted(locs) || len(slices.Compact(slices.Clone(locs))) != len(locs) {
				t.Errorf("URLs out of order, or twice: %q", locs)
			}
			listed := make(map[string]string)
			for _, loc := range locs {
				r, err := s.Try(http.MethodGet, loc)
				if err != nil || r.StatusCode != http.StatusOK {
					t.Errorf("%s is listed and answers %d (%v)", loc, r.StatusCode, err)
				}
				p, err := url.PathUnescape(strings.TrimPrefix(loc, s.Expand("http://localhost:{port}")))
				harness.Must(t, err)
				listed[p] = r.Text
			}
			for _, file := range htmlFiles(t, filepath.Join(s.Dir, "root")) {
				request := (&url.URL{Scheme: "http", Host: "localhost:" + s.Port, Path: file}).String()
				r, err := s.Try(http.MethodGet, request)
				if err != nil || r.StatusCode != http.StatusOK {
					continue
				}
				text, found := listed[file]
				for _, form := range []string{strings.TrimSuffix(file, "index.html"), strings.TrimSuffix(file, ".html")} {
					if !found {
						text, found = listed[form]
					}
				}
				if found && text != r.Text {
					t.Errorf("%q is listed by a URL that answers with %q, want %q", file, text, r.Text)
				}
				if why, ok := exceptions[file]; ok == found {
					t.Errorf("%q: listed %t, exception %q", file, found, why)
				}
			}
			if len(locs) < 40 {
				t.Errorf("only %d URLs: %q", len(locs), locs)
			}
			if os.Geteuid() != 0 && runtime.GOOS != "windows" {
				s.Logged("cannot read some files or folders", `"count":1`)
			}
		})
	}
}

// makeMess fills a folder with all that a disk may hold, and returns why files in it
// are not listed although they are served.
func makeMess(t *testing.T, root string) map[string]string {
	t.Helper()
	exceptions := map[string]string{}
	write := func(name, why string) {
		file := filepath.Join(root, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(file), 0o755)
		if err == nil {
			err = os.WriteFile(file, []byte(harness.HTML("content of "+name)), 0o644)
		}
		if err != nil {
			if runtime.GOOS == "linux" {
				t.Fatal(err)
			}
			t.Logf("this system has no such name: %v", err)
			return
		}
		if why != "" {
			exceptions["/"+name] = why
		}
	}
	for _, stem := range []string{
		"plain", "with space", " leading", "trailing ", "100%", "%41", "%2e%2e", "%zz", "a#b", "a?b", "a&b", `a"b`, "a'b", "a<b>", "a\nb", "a\tb", "a\x01b", "a\x7fb",
		"caf\xe9", "\xff\xfe", "a\xc3", "café", "cafe\u0301", "日本", "😀", "a+b", "a;b", "a=b", "a,b", "a:b", "a@b", "a$b", "a!b", "a(b)", "a*b", "a[b]", "a{b}", "a|b", "a^b", "a`b", "a~b", `a\b`,
		"a%2Fb", "a%00", "]]>", "carriage\rreturn", "\x1b[31m", "\xed\xa0\x80", "\u202egnp", "\ufeff", "$(x)", ":colon",
		"-", "..a", "a..", "...", "con", "index.html", "{host}", "{http.request.uri}", strings.Repeat("x", 250), strings.Repeat("é", 125),
	} {
		why := ""
		if strings.HasPrefix(stem, ".") {
			why = "dotfile"
		}
		write(stem+".html", why)
		if why == "" {
			write("in/"+stem+"/page.html", "")
			write("in/"+stem+"/index.html", "")
		}
	}
	for _, name := range []string{"404.html", "50x.html", "google0123456789abcdef.html", "_x.html"} {
		write(name, "by default")
		write("in/"+name, "by default")
	}
	for _, folder := range []string{".git", "_drafts", "node_modules", "bower_components", "in/node_modules"} {
		write(folder+"/x.html", "by default")
	}
	long := strings.Repeat("l", 200)
	for range 11 {
		write(path.Join(long, "page.html"), map[bool]string{true: "URL too long"}[len(long) > 2015])
		long = path.Join(long, strings.Repeat("l", 200))
	}
	harness.Must(t, os.WriteFile(filepath.Join(root, "empty.html"), nil, 0o644))
	exceptions["/empty.html"] = "empty"
	for _, link := range []string{"/link.html", "/out.html", "/out-again.html"} {
		exceptions[link] = "link to a listed page" // the last two to /absolute.html
	}
	for name, target := range map[string]string{
		"link.html":        "plain.html",
		"dangling.html":    "nowhere.html",
		"loop.html":        "loop.html",
		"ring":             "ring2",
		"ring2":            "ring",
		"self":             ".",
		"parent":           "..",
		"linked":           "in",
		"out.html":         "../outside/out.html",
		"out-again.html":   "../outside/out.html",
		"outside":          "../outside",
		"absolute.html":    filepath.Join(filepath.Dir(root), "outside", "out.html"),
		"link to name":     "in/a#b",
		"folder link.html": "in",
		"null.html":        os.DevNull,
	} {
		harness.Symlink(t, filepath.FromSlash(target), filepath.Join(root, name))
	}
	if runtime.GOOS != "windows" {
		if out, err := exec.Command("mkfifo", filepath.Join(root, "fifo.html"), filepath.Join(root, "in", "node_modules", "index.html")).CombinedOutput(); err != nil {
			t.Fatalf("mkfifo: %v: %s", err, out)
		}
		write("unreadable.html", "")
		write("closed/x.html", "")
		for _, name := range []string{"unreadable.html", "closed"} {
			harness.Must(t, os.Chmod(filepath.Join(root, name), 0))
		}
		t.Cleanup(func() { _ = os.Chmod(filepath.Join(root, "closed"), 0o755) })
	}
	return exceptions
}

// htmlFiles are the URL paths, not encoded, of all HTML files below a folder; links
// to files are, links to folders are not followed.
func htmlFiles(t *testing.T, root string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(root, func(file string, _ fs.DirEntry, err error) error {
		if err != nil {
			return nil // what cannot be read is not served either
		}
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && strings.HasSuffix(file, ".html") {
			rel, err := filepath.Rel(root, file)
			if err != nil {
				return err
			}
			found = append(found, "/"+filepath.ToSlash(rel))
		}
		return nil
	})
	harness.Must(t, err)
	return found
}

// TestPatternsWithoutPages: a rule and include patterns that no page matches are a line of the log each; other patterns are not.
func TestPatternsWithoutPages(t *testing.T) {
	const site = `http://localhost:{port} {
	root {dir}/www
	sitemap {
		files {
			{include}
		}
		rule /gone/* {
			priority 0.3
		}
		rule /none /a.html {
			priority 0.4
		}
		exclude /drafts/* /no-such-page
		section blog /blog/*
	}
	file_server
}
`
	withInclude := func(include string) string { return strings.Replace(site, "{include}", include, 1) }
	s := start(t, withInclude("include *.pdf /x/*.txt"), map[string]string{
		"www/index.html":     harness.Whole("", "front"),
		"www/a.html":         harness.Whole("", "a"),
		"www/404/index.html": harness.Whole("", "an index file"),
	})
	wantOne := func(words ...string) {
		t.Helper()
		if lines := s.LogLines(append(words, "matches no page")...); len(lines) != 1 || !strings.Contains(lines[0], `"level":"info"`) {
			t.Errorf("%q: the log has %q, want one line of level info", words, lines)
		}
	}
	s.Refreshes(2)
	wantOne("rule", "/gone/*")
	wantOne("include", "*.pdf", "/x/*.txt")

	// A file that is listed as its folder counts, and a reload says nothing twice.
	s.Reload(withInclude("include /404/index.html"))
	s.Write(map[string]string{"www/b.html": harness.Whole("", "b")})
	s.Eventually(func() bool { return strings.Contains(s.Refreshes(1), `"pages":4`) }, s.SitemapLog)
	if lines := s.LogLines("matches no page"); len(lines) != 2 {
		t.Errorf("after a reload, the log has %q, want two lines", lines)
	}
}
