package caddytest

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
)

// Words of what the log says of the state.
const (
	unusable = "what was remembered of the pages cannot be used"
	unkept   = "cannot be kept on disk"
)

// stateIn is a site whose state is kept in a folder, with options of the sitemap.
func stateIn(folder, options string) string {
	return "{\n sitemap {\n state " + folder + "\n }\n}\n" + local + ` {
		root * {dir}/site
		sitemap {
			refresh 1s
			` + options + `
		}
		test_count
		file_server
	}`
}

// restart ends Caddy and loads a Caddyfile anew.
func (s *server) restart(caddyfile string) {
	s.t.Helper()
	s.stop()
	s.begin(caddyfile)
}

// begin loads a Caddyfile after Caddy was stopped, whose last listener may still take
// a connection with it.
func (s *server) begin(caddyfile string) {
	s.t.Helper()
	if err := s.load(caddyfile); err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.again(local + "/nothing-there"); err != nil {
		s.t.Fatal(err)
	}
}

// stateFiles are the files of a state folder.
func (s *server) stateFiles(folder string) []string {
	s.t.Helper()
	var names []string
	err := filepath.WalkDir(filepath.Join(s.dir, folder), func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return names
}

// bodies are all documents, whenever they were made.
func (s *server) bodies() map[string]string {
	s.t.Helper()
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
	asked := countAsks(t)
	const n = 40
	var names []string
	for i := range n {
		names = append(names, strings.TrimPrefix(datedName(i), "site"))
	}
	late := strings.TrimPrefix(datedName(n), "site")
	script := newScript(t, names...)
	s := prepare(t, nil)
	s.writeDated(n+1, pageNumbered)
	caddyfile := stateIn("{dir}/state", "shard_urls 5\nsource scripted "+t.Name())
	if err := s.load(caddyfile); err != nil {
		t.Fatal(err)
	}
	before := s.served()
	extra := []string{"/sitemap.txt", "/sitemap.xml.gz", "/robots.txt"}
	others := make(map[string]response)
	for _, name := range extra {
		others[name] = s.get(local + name)
	}
	if pages := asked.since(); len(pages) != n || len(before) < 4 || !strings.Contains(fmt.Sprint(before), stamp(dayOf(7))) {
		t.Fatalf("%d pages were asked for, there are %d documents: %v", len(pages), len(before), before)
	}
	for range 2 {
		s.stop()
		hold := make(chan struct{})
		script.with(func() { script.hold = hold })
		runs := script.total()
		s.begin(caddyfile)
		s.wantServed(before, "a restart")
		for name, was := range others {
			r := s.get(local + name)
			if r.StatusCode != was.StatusCode || r.body != was.body || r.Header.Get("ETag") != was.Header.Get("ETag") || r.Header.Get("Last-Modified") != was.Header.Get("Last-Modified") {
				t.Errorf("after a restart, %s is %d %v %q\nit was %d %v %q", name, r.StatusCode, r.Header, r.body, was.StatusCode, was.Header, was.body)
			}
		}
		tag, _, _ := strings.Cut(before[local+"/sitemap.xml"], " ")
		if r := s.get(local+"/sitemap.xml", "If-None-Match: "+tag); r.StatusCode != http.StatusNotModified {
			t.Errorf("after a restart, status %d for the ETag", r.StatusCode)
		}
		// A refresh follows, and finds nothing new.
		s.eventually(func() bool { return script.total() > runs }, s.sitemapLog)
		close(hold)
		s.quietly(1)
		s.wantServed(before, "a restart and a refresh")
		asked.wantNoAsks(t, "a restart")
	}

	// What came while it was stopped is found, and it alone is asked for.
	s.stop()
	script.with(func() { script.pages = append(slices.Clone(names), late) })
	s.begin(caddyfile)
	s.eventually(func() bool { return len(s.locs(local+"/sitemap.xml")) == n+1 }, s.sitemapLog)
	if pages := asked.since(); !maps.Equal(pages, map[string]int{late[1:]: 1}) {
		t.Errorf("after a restart, asked for %v", pages)
	}
	if lines := s.logLines(`"level":"warn"`, "sitemap"); len(lines) > 0 {
		t.Errorf("the log warns: %s", lines)
	}
}

// TestDatesSurvive keeps the date of a change that files no longer tell.
func TestDatesSurvive(t *testing.T) {
	countAsks(t)
	s := prepare(t, nil)
	want := make(map[string]string)
	for i := range 10 {
		s.put(fmt.Sprintf("site/%d.html", i), fmt.Sprintf("page %d", i), dayOf(300))
		want[fmt.Sprintf("/%d.html", i)] = ""
	}
	caddyfile := stateIn("{dir}/state", "")
	if err := s.load(caddyfile); err != nil {
		t.Fatal(err)
	}
	s.wantDates(local, want)
	s.put("site/3.html", "another page 3", dayOf(400))
	want["/3.html"] = stamp(dayOf(400))
	s.wantDates(local, want)
	s.stop()
	for i := range 10 {
		text := fmt.Sprintf("page %d", i)
		if i == 3 {
			text = "another page 3"
		}
		s.put(fmt.Sprintf("site/%d.html", i), text, dayOf(500+30*i)) // no deployment, by their times
	}
	s.begin(caddyfile)
	s.wantDates(local, want)
	s.refreshedAgain(local)
	s.wantDates(local, want)
	s.restart(strings.Replace(caddyfile, "{dir}/state", "off", 1))
	if got := s.dates(local); got["/0.html"] != stamp(dayOf(500)) {
		t.Errorf("with nothing remembered, got %v", got)
	}
}

// TestDamagedState is a state that cannot be read: what is known is learnt anew.
func TestDamagedState(t *testing.T) {
	for name, damage := range map[string]func(path string, data []byte) error{
		"truncated": func(path string, data []byte) error { return os.WriteFile(path, data[:len(data)/2], 0o600) },
		"empty":     func(path string, data []byte) error { return os.WriteFile(path, nil, 0o600) },
		"overwritten": func(path string, data []byte) error {
			return os.WriteFile(path, bytes.Repeat([]byte("no "), len(data)), 0o600)
		},
		"a bit":           func(path string, data []byte) error { data[len(data)*2/3] ^= 4; return os.WriteFile(path, data, 0o600) },
		"longer":          func(path string, data []byte) error { return os.WriteFile(path, append(data, 0), 0o600) },
		"another version": func(path string, data []byte) error { data[7]++; return os.WriteFile(path, data, 0o600) },
		"a folder": func(path string, data []byte) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.MkdirAll(filepath.Join(path, "x"), 0o700)
		},
		"gone": func(path string, data []byte) error { return os.Remove(path) },
	} {
		t.Run(name, func(t *testing.T) {
			countAsks(t)
			s := prepare(t, nil)
			s.writeDated(20, pageNumbered)
			caddyfile := stateIn("{dir}/state", "shard_urls 10")
			if err := s.load(caddyfile); err != nil {
				t.Fatal(err)
			}
			before := s.bodies()
			files := s.stateFiles("state")
			if len(files) < 3 {
				t.Fatalf("the state is %q", files)
			}
			s.stop()
			good := make(map[string][]byte)
			for _, path := range files {
				data, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				good[path] = data
			}
			warnings := 0
			for _, path := range files {
				if err := os.RemoveAll(filepath.Dir(path)); err != nil {
					t.Fatal(err)
				}
				for path, data := range good {
					s.writeRaw(strings.TrimPrefix(path, s.dir), string(data))
				}
				if err := damage(path, bytes.Clone(good[path])); err != nil {
					t.Fatal(err)
				}
				if filepath.Base(path) != "manifest" || name != "gone" {
					warnings++
				}
				refreshes := len(s.refreshLines())
				for _, when := range []string{"it was damaged", "it was mended"} {
					s.begin(caddyfile)
					if got := s.bodies(); !maps.Equal(got, before) {
						t.Errorf("%s: after %s, there is %v, it was %v", path, when, got, before)
					}
					s.eventually(func() bool { return len(s.refreshLines()) > refreshes }, s.sitemapLog)
					s.stop()
				}
				if lines := s.logLines(`"level":"warn"`, "sitemap"); len(lines) != warnings || len(s.logLines(unusable)) != warnings {
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
		"below a file":                {"{dir}/file/state", map[string]string{"file": "a file"}, true},
		"off":                         {"off", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			asked := countAsks(t)
			s := prepare(t, test.files)
			s.writeDated(20, pageNumbered)
			caddyfile := stateIn(test.folder, "shard_urls 10")
			if err := s.load(caddyfile); err != nil {
				t.Fatal(err)
			}
			before := s.served()
			warnings := func() []string { return s.logLines(`"level":"warn"`, "sitemap") }
			if lines := warnings(); test.warns && (len(lines) != 1 || !strings.Contains(lines[0], unkept)) || !test.warns && len(lines) > 0 {
				t.Errorf("the log warns %s", lines)
			}
			asked.since()
			if name == "a file" {
				// A reload keeps what is known all the same.
				s.reload(caddyfile)
				s.quietly(1)
				s.wantServed(before, "a reload")
				asked.wantNoAsks(t, "a reload")
			}

			bodies := s.bodies()
			s.restart(caddyfile)
			if got := s.bodies(); !maps.Equal(got, bodies) {
				t.Errorf("after a restart, there is %v, it was %v", got, bodies)
			}
			if pages := asked.since(); (len(pages) == 0) != (!test.warns && test.folder != "off") {
				t.Errorf("after a restart, asked for %v", pages)
			}
			if test.files != nil {
				if content, err := os.ReadFile(filepath.Join(s.dir, "file")); string(content) != "a file" {
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
			countAsks(t)
			s := prepare(t, nil)
			s.writeDated(20, pageNumbered)
			caddyfile := strings.Replace(stateIn("{dir}/state", ""), "refresh 1s", "refresh 2s", 1)
			if err := s.load(caddyfile); err != nil {
				t.Fatal(err)
			}
			before := s.served()
			s.stop()
			root, aside := filepath.Join(s.dir, "site"), filepath.Join(s.dir, "aside")
			if err := os.Rename(root, aside); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(root, 0o755); err != nil {
				t.Fatal(err)
			}
			s.begin(caddyfile)
			s.wantServed(before, "a restart with an empty root")
			s.logged("sitemap refreshed, but not believed until the next refresh says the same")
			s.wantServed(before, "a refresh of an empty root")
			if !back {
				s.eventually(func() bool { return s.get(local+"/sitemap.xml").StatusCode == http.StatusNotFound }, s.sitemapLog)
				s.logged("no page to list")
				s.restart(caddyfile)
				s.logged("no page to list")
				if r := s.get(local + "/sitemap.xml"); r.StatusCode != http.StatusNotFound {
					t.Errorf("after a restart, status %d", r.StatusCode)
				}
				return
			}
			if err := os.Remove(root); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(aside, root); err != nil {
				t.Fatal(err)
			}
			s.quietly(1)
			s.wantServed(before, "the root was back")
		})
	}
}

const childVar = "CADDYTEST_CHILD"

// runChild is what runs in another process: a Caddy with a configuration of JSON,
// until its input ends.
func runChild(file string) error {
	config, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if os.Getenv("CADDYTEST_HOMELESS") != "" {
		for _, name := range []string{"HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "HomePath", "AppData"} {
			_ = os.Unsetenv(name)
		}
	}
	if err := caddy.Load(config, false); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return caddy.Stop()
}

// child is a Caddy in a process of its own.
type child struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	output bytes.Buffer
	once   sync.Once
}

// child runs a Caddyfile in another process.
func (s *server) child(caddyfile string, env ...string) *child {
	s.t.Helper()
	config, err := s.adapt(caddyfile)
	file := filepath.Join(s.dir, "child.json")
	if err == nil {
		err = os.WriteFile(file, config, 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	temp := filepath.Join(s.dir, "tmp")
	if err := os.MkdirAll(temp, 0o755); err != nil {
		s.t.Fatal(err)
	}
	c := &child{cmd: exec.Command(os.Args[0])}
	c.cmd.Dir = temp
	c.cmd.Env = append(append(os.Environ(), childVar+"="+file, "TMPDIR="+temp), env...)
	c.cmd.Stdout, c.cmd.Stderr = &c.output, &c.output
	if c.stdin, err = c.cmd.StdinPipe(); err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.kill)
	return c
}

// kill ends the process as kill -9 does.
func (c *child) kill() {
	c.once.Do(func() {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
		_ = c.stdin.Close()
	})
}

// first waits for a child's first answer for the sitemap.
func (s *server) first(c *child) response {
	s.t.Helper()
	var r response
	s.eventually(func() bool {
		var err error
		r, err = s.try(http.MethodGet, local+"/sitemap.xml")
		return err == nil
	}, func() string { return "no answer\n" + s.sitemapLog() })
	return r
}

// steadyLocs are the pages of one and the same index, although refreshes go on.
func (s *server) steadyLocs() []string {
	s.t.Helper()
	for {
		before := s.get(local + "/sitemap.xml")
		locs := s.locs(local + "/sitemap.xml")
		if s.get(local+"/sitemap.xml").Header.Get("ETag") == before.Header.Get("ETag") {
			return locs
		}
	}
}

// total is how many asks there were since [asks.since] was called last.
func (a *asks) total() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, times := range a.pages {
		n += times
	}
	return n
}

// TestKill ends a process while pages come, are asked for and are written down.
func TestKill(t *testing.T) {
	const n, kills = 200, 6
	asked := countAsks(t)
	s := prepare(t, nil)
	app := backend(t, func(w http.ResponseWriter, r *http.Request) {
		asked.note(r)
		http.ServeFile(w, r, filepath.Join(s.dir, "site", filepath.FromSlash(r.URL.Path)))
	})
	caddyfile := "{\n sitemap {\n state {dir}/state\n }\n}\n" + local + ` {
		sitemap {
			refresh 1s
			shard_urls 20
			files {dir}/site
			ask {
				rate 1000/s
				concurrency 4
			}
		}
		reverse_proxy ` + app + `
	}`
	next := 0
	add := func(n int) {
		for range n {
			s.put(datedName(next), pageNumbered(next), dayOf(next))
			next++
		}
	}
	add(n)
	c := s.child(caddyfile)
	s.first(c)
	s.eventually(func() bool { return len(s.logLines(`"msg":"sitemap refreshed`, fmt.Sprintf(`"verified":%d`, n))) > 0 }, s.sitemapLog)
	asked.since()
	seen := len(s.steadyLocs())
	for i := range kills {
		// In the midst of a refresh, as soon as it asks for what is new.
		before := asked.total()
		add(10 + rand.N(20)) // fewer than 400, which is the name of an error page
		s.eventually(func() bool {
			seen = max(seen, len(s.steadyLocs()))
			return asked.total() > before
		}, s.sitemapLog)
		wait := rand.N(80 * time.Millisecond)
		s.passed(wait)
		last := s.get(local + "/sitemap.xml")
		c.kill()
		if c = s.child(caddyfile); i%3 == 2 {
			// Killed as soon as it is there, or earlier.
			s.passed(rand.N(400 * time.Millisecond))
			c.kill()
			c = s.child(caddyfile)
		}
		r := s.first(c)
		if r.StatusCode != http.StatusOK {
			t.Fatalf("kill %d, after %v: the first answer is %d\n%s", i, wait, r.StatusCode, s.sitemapLog())
		}
		if tag := r.Header.Get("ETag"); tag == last.Header.Get("ETag") && (r.body != last.body || r.Header.Get("Last-Modified") != last.Header.Get("Last-Modified")) {
			t.Errorf("kill %d, after %v: the first answer has the ETag %s, and is another", i, wait, tag)
		}
		if locs := s.steadyLocs(); len(locs) < seen || len(locs) > next || !slices.IsSorted(locs) {
			t.Fatalf("kill %d, after %v: %d pages are listed, there were %d of %d\n%s", i, wait, len(locs), seen, next, s.sitemapLog())
		}
	}
	s.eventually(func() bool { return len(s.steadyLocs()) == next }, s.sitemapLog)
	c.kill()
	again := asked.since()
	for i := range n {
		if path := strings.TrimPrefix(datedName(i), "site/"); again[path] > 0 {
			t.Errorf("%s was asked for %d times again", path, again[path])
		}
	}
	for i := n; i < next; i++ {
		if path := strings.TrimPrefix(datedName(i), "site/"); again[path] > 2*kills {
			t.Errorf("%s was asked for %d times", path, again[path])
		}
	}
	if lines := s.logLines(`"level":"warn"`, "sitemap"); len(lines) > 0 {
		t.Errorf("the log warns: %s", lines)
	}
}

// TestHomeless has no place to keep anything.
func TestHomeless(t *testing.T) {
	s := prepare(t, nil)
	s.writeDated(20, pageNumbered)
	c := s.child(local+" {\n root * {dir}/site\n sitemap {\n refresh 1s\n }\n file_server\n}", "CADDYTEST_HOMELESS=1")
	if r := s.first(c); r.StatusCode != http.StatusOK {
		t.Fatalf("status %d\n%s", r.StatusCode, s.sitemapLog())
	}
	s.quietly(2)
	if lines := s.logLines(`"level":"warn"`, "sitemap"); len(lines) != 1 || !strings.Contains(lines[0], unkept) || !strings.Contains(lines[0], "there is no home folder") {
		t.Errorf("the log warns: %s", lines)
	}
	for _, path := range s.stateFiles("tmp") {
		if strings.Contains(path, "sitemap") {
			t.Errorf("%s was written", path)
		}
	}
}
