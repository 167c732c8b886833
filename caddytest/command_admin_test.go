package caddytest

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
)

// command runs "caddy sitemap" with arguments against the server.
func (s *server) command(args ...string) ran {
	s.T.Helper()
	for i := range args {
		args[i] = s.Expand(args[i])
	}
	return run(s.T, s.T.TempDir(), append(append([]string{"sitemap"}, args...), "--address", "127.0.0.1:"+s.Admin)...)
}

// want wants an exit status, and words and lines that match patterns on standard output, and
// words on standard error.
func (r ran) want(t *testing.T, status int, stdout, stderr []string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !regexp.MustCompile(line).MatchString(r.stdout) {
			t.Errorf("nothing on standard output matches %q:\n%s", line, r.stdout)
		}
	}
	if r.status != status {
		t.Errorf("got status %d, want %d: %s%s", r.status, status, r.stdout, r.stderr)
	}
	wantWords(t, "standard output", r.stdout, stdout...)
	wantWords(t, "standard error", r.stderr, stderr...)
	if stderr == nil && r.stderr != "" {
		t.Errorf("got %q on standard error", r.stderr)
	}
	if stdout == nil && lines == nil && r.stdout != "" {
		t.Errorf("got %q on standard output", r.stdout)
	}
}

func TestCommandStatus(t *testing.T) {
	s := startWithAdmin(t, twoSites, harness.TwoRoots)
	s.Write(map[string]string{"a/private.html": harness.Whole(`<meta name="robots" content="noindex">`, "x")})
	s.refresh()

	s.command("status").want(t, 0, []string{s.Expand(harness.Local), s.Expand("http://127.0.0.1:{port}\n")}, nil)
	one := s.command("status", "--site", harness.Local)
	one.want(t, 0, nil, nil, `pages +4`, `source +files\n +pages +5\n`, `left out\n +noindex +1\n`, `examples\n +noindex +/private\.html\n`,
		`since +20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ\n`, `next refresh +20.*Z\n`)
	if strings.Contains(one.stdout, "127.0.0.1") || strings.ContainsAny(one.stdout, "\x1b\t") {
		t.Errorf("got %q", one.stdout)
	}
	var parsed struct{ Sites []status }
	if r := s.command("status", "--json"); json.Unmarshal([]byte(r.stdout), &parsed) != nil || len(parsed.Sites) != 2 {
		t.Errorf("got %q, %q", r.stdout, r.stderr)
	}
	s.command("status", "--site", "http://nobody.example").want(t, 1, nil, []string{"Error: 127.0.0.1:" + s.Admin + ": no site has a URL with 'http://nobody.example'", s.Expand(harness.Local)})
}

// TestCommandConfig finds the admin address in a configuration, as Caddy's own commands do.
func TestCommandConfig(t *testing.T) {
	s := startOne(t, oneSite)
	dir := t.TempDir()
	write(t, dir, map[string]string{"elsewhere": s.Expand("{\n\tadmin 127.0.0.1:{admin}\n}\n")})
	r := run(t, dir, "sitemap", "status", "--config", "elsewhere", "--adapter", "caddyfile")
	r.want(t, 0, []string{s.Expand(harness.Local)}, []string{""})
	run(t, dir, "sitemap", "status", "--config", "nowhere").want(t, 1, nil, []string{"Error: finding the admin address"})
}

func TestCommandRefresh(t *testing.T) {
	// Its pages are named by a list: a folder is watched, and a refresh of its own could list the new page first.
	listed := "\nhttp://127.0.0.1:{port} {\n\troot * {dir}/a\n\tsitemap {\n\t\turls {dir}/list.txt\n\t}\n\tfile_server\n}"
	s := prepareWithAdmin(t, harness.TwoRoots)
	s.Write(map[string]string{"list.txt": strings.Join(harness.PagesOfA, "\n")})
	s.Load(gatedSite + listed)
	s.WantLocs(harness.Local+"/sitemap.xml", harness.Local+"/")
	s.WantLocs("http://127.0.0.1:{port}/sitemap.xml", harness.Below("http://127.0.0.1:{port}", harness.PagesOfA)...)
	s.Write(map[string]string{
		"a/new.html": harness.HTML("new"),
		"list.txt":   strings.Join(append(slices.Clone(harness.PagesOfA), "/new.html"), "\n"),
	})
	s.command("refresh").want(t, 0, nil, nil, `result +unchanged`, `result +changed\n`, `pages +5\n`)
	refuse(errors.New("the list is \x1b[31mgone"))
	for range 2 {
		shown := s.command("refresh", "--site", harness.Local)
		shown.want(t, 1, []string{"could not be read"}, []string{": source 1 (gated) could not be read: "}, `result +held_back`, `pages +1\n`, `list is \\u001b\[31mgone`)
	}
	refuse(nil)
	s.command("refresh", "--json").want(t, 0, []string{`"sites":[{"`}, nil)
	refuse(errors.New("gone"))
	s.command("refresh", "--json", "--site", harness.Local).want(t, 1, []string{`"result":"held_back"`}, []string{"source 1 (gated) could not be read: gone"})
}

func TestCommandExplain(t *testing.T) {
	s := startOne(t, oneSite)
	s.command("explain", harness.Local+"/one.html").want(t, 0, nil, nil, `listed +true`, `document +`+s.Expand(harness.Local+"/sitemap.xml"), `/one.html\n +status +200\n +content type +text/html`)
	s.command("explain", harness.Local+"/none.html").want(t, 0, nil, nil, `listed +false`, `reason +no source`)
}

func TestCommandWithoutServer(t *testing.T) {
	s := prepareWithAdmin(t, nil)
	s.command("status").want(t, 1, nil, []string{"Error: 127.0.0.1:" + s.Admin, "refused; if the admin API is elsewhere, add --address, or --config"})
	s.Load("http://localhost:{port} {\n\trespond hello\n}")
	s.command("status").want(t, 1, nil, []string{"no site of the running configuration has a sitemap"})
	overloaded := harness.Backend(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "\x1b[2Joverloaded", http.StatusBadGateway)
	})
	r := run(t, t.TempDir(), "sitemap", "status", "--address", overloaded)
	r.want(t, 1, nil, []string{"Error: ", "HTTP 502: \\u001b[2Joverloaded"})
	if strings.Contains(r.stderr, `\u000a`) {
		t.Errorf("got %q", r.stderr)
	}
}

// TestCaddyCommands tries Caddy's own commands on a configuration with metrics and events.
func TestCaddyCommands(t *testing.T) {
	s := prepareWithAdmin(t, harness.TwoRoots)
	file := filepath.Join(s.Dir, "Caddyfile")
	observed := s.Expand("{\n\tadmin 127.0.0.1:{admin}\n\tpersist_config off\n" + strings.TrimPrefix(listening, "{\n"))
	harness.Must(t, os.WriteFile(file, []byte(observed), 0o600))
	run(t, s.Dir, "validate", "--config", file).want(t, 0, []string{"Valid configuration"}, []string{""})
	if r := run(t, s.Dir, "fmt", file); r.status != 0 || r.stdout != observed {
		t.Errorf("fmt: status %d, got\n%s%s", r.status, r.stdout, r.stderr)
	}
	harness.Must(t, s.LoadJSON(run(t, s.Dir, "adapt", "--config", file).stdout))
	for range 2 {
		run(t, s.Dir, "reload", "--force", "--config", file).want(t, 0, nil, []string{""})
	}
	if st := s.refresh(); st.Pages != len(harness.PagesOfA) {
		t.Errorf("after reloading: got %+v", st)
	}
}
