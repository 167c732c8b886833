package caddytest

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// unusable is what the log says of a state that is damaged.
const unusable = "the stored records are damaged"

// quickly is for sites with a handler that Caddy does not bring: what no file explains waits for its turn.
const quickly = "crawl {\n rate 1000/s\n}"

// stateIn is a site whose state is kept in a folder, with options of the sitemap.
func stateIn(folder, options string) string {
	return "{\n sitemap {\n state " + folder + "\n }\n}\n" + harness.Local + ` {
		root * {dir}/site
		sitemap {
			refresh 1s
			` + quickly + "\n" + options + `
		}
		test_count
		file_server
	}`
}

// stateFiles are the files of a state folder.
func (s *server) stateFiles(folder string) []string {
	s.T.Helper()
	var names []string
	err := filepath.WalkDir(filepath.Join(s.Dir, folder), func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			names = append(names, path)
		}
		return err
	})
	harness.Must(s.T, err)
	return names
}

// bodies are all documents, whenever they were made.
func (s *server) bodies() map[string]string {
	s.T.Helper()
	bodies := s.served()
	for url, document := range bodies {
		tag, _, _ := strings.Cut(document, " ")
		_, body, _ := strings.Cut(document, "\n")
		bodies[url] = tag + "\n" + body
	}
	return bodies
}

// TestRestart serves at once what was served before, while the first refresh has not
// even begun to find pages.
func TestRestart(t *testing.T) {
	asked := countFetches(t)
	const n = 40
	var names []string
	for i := range n {
		names = append(names, strings.TrimPrefix(datedName(i), "site"))
	}
	late := strings.TrimPrefix(datedName(n), "site")
	script := newScript(t, names...)
	s := prepare(t, nil)
	s.writeDated(n+1, pageNumbered)
	caddyfile := stateIn("{dir}/state", "shard_urls 5\nfeed\nhtml\nllms\nscripted "+t.Name())
	s.Load(caddyfile)
	s.Crawled()
	before := s.served()
	extra := []string{"/sitemap.txt", "/sitemap.xml.gz", "/robots.txt", "/sitemap.html", "/sitemap.atom", "/sitemap.css", "/llms.txt"}
	others := make(map[string]harness.Response)
	for _, name := range extra {
		others[name] = s.Get(harness.Local + name)
	}
	if pages := asked.since(); len(pages) != n || len(before) < 4 || !strings.Contains(fmt.Sprint(before), harness.Stamp(harness.DayOf(7))) {
		t.Fatalf("%d pages were asked for, there are %d documents: %v", len(pages), len(before), before)
	}
	for range 2 {
		s.Stop()
		hold := make(chan struct{})
		script.with(func() { script.hold = hold })
		runs := script.total()
		s.Begin(caddyfile)
		s.wantServed(before, "a restart")
		for name, was := range others {
			r := s.Get(harness.Local + name)
			if r.StatusCode != was.StatusCode || r.Text != was.Text || r.Header.Get("ETag") != was.Header.Get("ETag") || r.Header.Get("Last-Modified") != was.Header.Get("Last-Modified") {
				t.Errorf("after a restart, %s is %d %v %q\nit was %d %v %q", name, r.StatusCode, r.Header, r.Text, was.StatusCode, was.Header, was.Text)
			}
		}
		tag, _, _ := strings.Cut(before[harness.Local+"/sitemap.xml"], " ")
		if r := s.Get(harness.Local+"/sitemap.xml", "If-None-Match: "+tag); r.StatusCode != http.StatusNotModified {
			t.Errorf("after a restart, status %d for the ETag", r.StatusCode)
		}
		// A refresh follows, and finds nothing new.
		s.Eventually(func() bool { return script.total() > runs }, s.SitemapLog)
		close(hold)
		s.Quietly(1)
		s.wantServed(before, "a restart and a refresh")
		asked.wantNone(t, "a restart")
	}

	// What came while it was stopped is found, and it alone is asked for.
	s.Stop()
	script.with(func() { script.pages = append(slices.Clone(names), late) })
	s.Begin(caddyfile)
	s.Eventually(func() bool { return len(s.Locs(harness.Local+"/sitemap.xml")) == n+1 }, s.SitemapLog)
	if pages := asked.since(); !maps.Equal(pages, map[string]int{late[1:]: 1}) {
		t.Errorf("after a restart, asked for %v", pages)
	}
	if lines := s.LogLines(`"level":"warn"`, "sitemap"); len(lines) > 0 {
		t.Errorf("the log warns: %s", lines)
	}
}

// stopWritten ends Caddy, and waits for a write under way, for which Stop waits only for moments.
func (s *server) stopWritten() {
	s.T.Helper()
	s.Stop()
	stacks := make([]byte, 1<<20)
	s.Eventually(func() bool {
		return !bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("record.(*Records).Commit"))
	}, func() string { return "a commit does not end" })
}

// TestDamagedState is a state that cannot be read: what is known is learnt anew.
func TestDamagedState(t *testing.T) {
	for name, damage := range map[string]func(path string, data []byte) error{
		"truncated":       func(path string, data []byte) error { return os.WriteFile(path, data[:len(data)/2], 0o600) },
		"another version": func(path string, data []byte) error { data[7]++; return os.WriteFile(path, data, 0o600) },
		"gone":            func(path string, data []byte) error { return os.Remove(path) },
	} {
		t.Run(name, func(t *testing.T) {
			countFetches(t)
			s := prepare(t, nil)
			s.writeDated(20, pageNumbered)
			caddyfile := stateIn("{dir}/state", "shard_urls 10")
			s.Load(caddyfile)
			s.Crawled()
			before := s.bodies()
			s.stopWritten()
			files := s.stateFiles("state")
			if len(files) < 3 {
				t.Fatalf("the state is %q", files)
			}
			good := make(map[string][]byte)
			for _, path := range files {
				data, err := os.ReadFile(path)
				harness.Must(t, err)
				good[path] = data
			}
			warnings := 0
			for i, path := range files {
				harness.Must(t, os.RemoveAll(filepath.Dir(path)))
				for path, data := range good {
					s.WriteRaw(strings.TrimPrefix(path, s.Dir), string(data))
				}
				if err := damage(path, bytes.Clone(good[path])); err != nil {
					t.Fatal(err)
				}
				if filepath.Base(path) != "manifest.json" || name != "gone" {
					warnings++
				}
				// Records are read when a file has another version.
				harness.Must(t, os.Chmod(filepath.Join(s.Dir, datedName(0)), 0o640+os.FileMode(i%2)))
				for _, when := range []string{"it was damaged", "it was mended"} {
					s.Begin(caddyfile)
					var got map[string]string
					s.Eventually(func() bool {
						got = s.bodies()
						return maps.Equal(got, before)
					}, func() string { return fmt.Sprintf("%s: after %s, there is %v, it was %v", path, when, got, before) })
					s.Crawled()
					s.stopWritten()
				}
				// Until the pages of damaged records were fetched, a change may be held back.
				isHeldBack := func(line string) bool { return strings.Contains(line, harness.HeldBack) }
				lines := slices.DeleteFunc(s.LogLines(`"level":"warn"`, "sitemap"), isHeldBack)
				if len(lines) != warnings || len(s.LogLines(unusable)) != warnings {
					t.Fatalf("%s: the log warns %d times, want %d:\n%s", path, len(lines), warnings, strings.Join(lines, ""))
				}
			}
		})
	}
}

// TestStateFolders is places where a state cannot be kept, or not yet.
func TestStateFolders(t *testing.T) {
	for name, test := range map[string]struct {
		folder string
		files  map[string]string
		warns  bool
	}{
		"in folders that are missing": {"{dir}/a/b/c", nil, false},
		"a file":                      {"{dir}/file", map[string]string{"file": "a file"}, true},
		"off":                         {"off", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			asked := countFetches(t)
			s := prepare(t, test.files)
			s.writeDated(20, pageNumbered)
			caddyfile := stateIn(test.folder, "shard_urls 10")
			s.Load(caddyfile)
			s.Crawled()
			before := s.served()
			warnings := func() []string { return s.LogLines(`"level":"warn"`, "sitemap") }
			if lines := warnings(); test.warns && (len(lines) != 1 || !strings.Contains(lines[0], harness.NotStored)) || !test.warns && len(lines) > 0 {
				t.Errorf("the log warns %s", lines)
			}
			if test.warns {
				s.Logged(harness.NotStored, s.Expand(`"folder":"`+test.folder+`"`), `"remedy":"name a folder that can be written`)
			}
			asked.since()
			if name == "a file" {
				// A reload keeps what is known all the same.
				s.Reload(caddyfile)
				s.Quietly(1)
				s.wantServed(before, "a reload")
				asked.wantNone(t, "a reload")
			}

			bodies := s.bodies()
			s.Restart(caddyfile)
			s.Crawled()
			if got := s.bodies(); !maps.Equal(got, bodies) {
				t.Errorf("after a restart, there is %v, it was %v", got, bodies)
			}
			if pages := asked.since(); (len(pages) == 0) != (!test.warns && test.folder != "off") {
				t.Errorf("after a restart, asked for %v", pages)
			}
			if test.files != nil {
				if content, err := os.ReadFile(filepath.Join(s.Dir, "file")); string(content) != "a file" {
					t.Errorf("the file is %q (%v) now", content, err)
				}
			}
			if test.folder == "off" {
				if _, err := os.Stat(filepath.Join(os.Getenv("XDG_DATA_HOME"), "caddy", "sitemap")); err == nil {
					t.Error("there is a folder for the state")
				}
			}
		})
	}
}

// TestRootGoneAfterRestart is a disk that is mounted later than Caddy starts.
func TestRootGoneAfterRestart(t *testing.T) {
	for _, back := range []bool{true, false} {
		t.Run(fmt.Sprintf("back %t", back), func(t *testing.T) {
			countFetches(t)
			s := prepare(t, nil)
			s.writeDated(20, pageNumbered)
			caddyfile := strings.Replace(stateIn("{dir}/state", ""), "refresh 1s", "refresh 2s", 1)
			s.Load(caddyfile)
			s.Crawled()
			before := s.served()
			s.Stop()
			root, aside := filepath.Join(s.Dir, "site"), filepath.Join(s.Dir, "aside")
			harness.Must(t, os.Rename(root, aside))
			harness.Must(t, os.Mkdir(root, 0o755))
			s.Begin(caddyfile)
			s.wantServed(before, "a restart with an empty root")
			s.Logged(harness.HeldBack)
			s.wantServed(before, "a refresh of an empty root")
			if !back {
				s.Restart(caddyfile)
				s.wantServed(before, "another restart with an empty root")
				s.Refreshes(1) // which an operator asks for, and is believed
				s.WantStatus(harness.Local+"/sitemap.xml", http.StatusNotFound)
				return
			}
			harness.Must(t, os.Remove(root))
			harness.Must(t, os.Rename(aside, root))
			s.Quietly(1)
			s.wantServed(before, "the root was back")
		})
	}
}

// TestHomeless has no place to keep anything.
func TestHomeless(t *testing.T) {
	s := prepare(t, nil)
	s.writeDated(20, pageNumbered)
	c := s.Child(harness.Local+" {\n root * {dir}/site\n sitemap {\n refresh 1s\n }\n file_server\n}", "CADDYTEST_HOMELESS=1")
	if r := s.First(c); r.StatusCode != http.StatusOK {
		t.Fatalf("status %d\n%s", r.StatusCode, s.SitemapLog())
	}
	s.Logged(harness.Unchanged)
	if lines := s.LogLines(`"level":"warn"`, "sitemap"); len(lines) != 1 || !strings.Contains(lines[0], "no home folder") {
		t.Errorf("the log warns: %s", lines)
	}
	for _, path := range s.stateFiles("tmp") {
		if strings.Contains(path, "sitemap") {
			t.Errorf("%s was written", path)
		}
	}
}

// TestHomeUntouched: tests keep Caddy's certificate authority, with its private keys, out of the home of who runs them.
func TestHomeUntouched(t *testing.T) {
	s := start(t, "https://localhost:{tls} {\n respond secure\n}", nil)
	if r := s.Get("https://localhost:{tls}/"); r.Text != "secure" {
		t.Fatalf("got %q, want %q", r.Text, "secure")
	}
	home := os.Getenv("XDG_CONFIG_HOME") // of all tests of this process: see harness.Main
	key := filepath.Join(home, "caddy", "pki", "authorities", "local", "root.key")
	if _, err := os.Stat(key); err != nil {
		t.Error(err)
	}
}
