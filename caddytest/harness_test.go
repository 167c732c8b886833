// Package caddytest runs real Caddy with real files and real sockets against what
// the project promises.
package caddytest

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"go.uber.org/goleak"

	_ "github.com/seed3295b519/caddy-sitemap"
	"github.com/seed3295b519/caddy-sitemap/internal/sitemapxml"
)

// maxRead is the most that is read of a body: some that tests make have no end.
const maxRead = 64 << 20

// patience is how long a test waits for what must come; far more than it takes.
const patience = 20 * time.Second

func TestMain(m *testing.M) {
	if file := os.Getenv(childVar); file != "" {
		if err := runChild(file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	home, err := os.MkdirTemp("", "caddytest")
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"XDG_DATA_HOME", "XDG_CONFIG_HOME"} {
		_ = os.Setenv(name, home)
	}
	code := m.Run()
	_ = os.RemoveAll(home)
	os.Exit(code)
}

// running keeps tests from running Caddy side by side: there is one per process.
var running sync.Mutex

// server is a running Caddy.
type server struct {
	t    *testing.T
	dir  string // for the test's files; {dir} in configurations
	port string // {port} in configurations; free when the test began
	tls  string // {tls}: another one
	more string // {more}: another one
	log  string // file of the JSON log, everything from DEBUG
}

// start runs Caddy with a Caddyfile, in which {dir}, {port}, {tls} and {more} are
// replaced, and ends it with the test. files are made below {dir} first, as write
// makes them. That nothing outlives it is checked.
func start(t *testing.T, caddyfile string, files map[string]string) *server {
	t.Helper()
	s := prepare(t, files)
	if err := s.load(caddyfile); err != nil {
		t.Fatalf("starting Caddy: %v", err)
	}
	return s
}

// prepare is start without a configuration.
func prepare(t *testing.T, files map[string]string) *server {
	t.Helper()
	running.Lock()
	ports := freePorts(t, 3)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, dir: dir, port: ports[0], tls: ports[1], more: ports[2]}
	s.log = filepath.Join(t.TempDir(), "caddy.log")
	_ = os.Setenv("XDG_DATA_HOME", t.TempDir()) // what one test leaves there is not another's
	s.write(files)
	others := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		defer running.Unlock()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		if err := caddy.Stop(); err != nil {
			t.Errorf("stopping Caddy: %v", err)
		}
		// Certmagic keeps the locks of its storage for as long as the process lives.
		ended := func() error {
			return goleak.Find(others, goleak.IgnoreAnyFunction("github.com/caddyserver/certmagic.keepLockfileFresh"))
		}
		err := ended()
		// A server that is shut down waits five seconds for a connection that was opened
		// and not used.
		for until := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(until); {
			err = ended()
		}
		if err != nil {
			t.Errorf("goroutines outlive Caddy: %v", err)
		}
	})
	return s
}

func freePorts(t *testing.T, n int) []string {
	t.Helper()
	var ports []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		ports = append(ports, port)
	}
	return ports
}

// write makes files below {dir}: a name that ends in a slash is a folder, a content
// that begins with "-> " a symbolic link. What is to be HTML and has no tag becomes a
// whole document.
func (s *server) write(files map[string]string) {
	s.t.Helper()
	for name, content := range files {
		path := filepath.Join(s.dir, filepath.FromSlash(name))
		var err error
		if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(path, 0o755)
		} else if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
			if target, ok := strings.CutPrefix(content, "-> "); ok {
				err = os.Symlink(filepath.FromSlash(target), path)
			} else {
				err = os.WriteFile(path, []byte(wholePage(name, content)), 0o644)
			}
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// wholePage is the text as a whole document where the name is that of one.
func wholePage(name, text string) string {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".html", ".htm", ".xhtml":
		if text != "" && !strings.Contains(text, "<") {
			return "<!doctype html><title>" + name + "</title>" + text
		}
	}
	return text
}

// expand replaces {dir}, {port}, {tls} and {more}.
func (s *server) expand(text string) string {
	return strings.NewReplacer("{dir}", filepath.ToSlash(s.dir), "{port}", s.port, "{tls}", s.tls, "{more}", s.more).Replace(text)
}

// adapt makes JSON of a Caddyfile, as if it lay in {dir}. Global options are added to
// its own, which must be in a block at its very beginning: no admin endpoint, the
// log, internal certificates, ports that need no root.
func (s *server) adapt(caddyfile string) ([]byte, error) {
	text := strings.TrimSpace(s.expand(caddyfile))
	options := fmt.Sprintf("{\n\tadmin off\n\tpersist_config off\n\tskip_install_trust\n\tlocal_certs\n\thttp_port %s\n\thttps_port %s\n\tgrace_period 1s\n\tlog default {\n\t\toutput file %q {\n\t\t\troll_disabled\n\t\t}\n\t\tformat json\n\t\tlevel DEBUG\n\t}\n", "1", "2", filepath.ToSlash(s.log))
	if rest, ok := strings.CutPrefix(text, "{\n"); ok {
		text = options + rest
	} else {
		text = options + "}\n" + text
	}
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": filepath.Join(s.dir, "Caddyfile")})
	if err != nil {
		return nil, err
	}
	return onDemand(config)
}

// onDemand has certificates made when they are first asked for. Those that Caddy's
// http app has made as it starts are announced by the tls app, which may be starting
// itself just then: a race in Caddy that the race detector sees now and then.
func onDemand(config []byte) ([]byte, error) {
	var parsed map[string]any
	if err := json.Unmarshal(config, &parsed); err != nil {
		return nil, err
	}
	apps, _ := parsed["apps"].(map[string]any)
	tlsApp, _ := apps["tls"].(map[string]any)
	automation, _ := tlsApp["automation"].(map[string]any)
	policies, _ := automation["policies"].([]any)
	for _, policy := range policies {
		policy.(map[string]any)["on_demand"] = true
	}
	return json.Marshal(parsed)
}

// load loads a Caddyfile into the running Caddy: a reload, if one runs already.
func (s *server) load(caddyfile string) error {
	config, err := s.adapt(caddyfile)
	if err != nil {
		return err
	}
	return caddy.Load(config, false)
}

// loadJSON loads a JSON configuration, in which the same words are replaced. The log
// is added if it has none.
func (s *server) loadJSON(config string) error {
	var parsed map[string]any
	if err := json.Unmarshal([]byte(s.expand(config)), &parsed); err != nil {
		return err
	}
	if parsed["logging"] == nil {
		parsed["logging"] = map[string]any{"logs": map[string]any{"default": map[string]any{
			"level": "DEBUG", "writer": map[string]any{"output": "file", "filename": s.log, "roll": false}, "encoder": map[string]any{"format": "json"},
		}}}
	}
	parsed["admin"] = map[string]any{"disabled": true, "config": map[string]any{"persist": false}}
	encoded, err := json.Marshal(parsed)
	if err != nil {
		return err
	}
	return caddy.Load(encoded, false)
}

// response is a whole response.
type response struct {
	*http.Response
	body string
}

// get requests a URL as a client without compression would; every host name leads to
// this machine, redirects are not followed. headers are pairs "Name: value"; a
// "Host: …" sets the Host header.
func (s *server) get(url string, headers ...string) response {
	s.t.Helper()
	return s.do(http.MethodGet, url, headers...)
}

func (s *server) do(method, url string, headers ...string) response {
	s.t.Helper()
	r, err := s.try(method, url, headers...)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, url, err)
	}
	return r
}

func (s *server) try(method, url string, headers ...string) (response, error) {
	s.t.Helper()
	request, err := http.NewRequest(method, s.expand(url), nil)
	if err != nil {
		return response{}, err
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if name == "Host" {
			request.Host = value
			continue
		}
		request.Header.Add(name, value)
	}
	resp, err := client.Do(request)
	if err != nil {
		return response{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxRead+1))
	if err == nil && len(body) > maxRead {
		err = fmt.Errorf("a body of over %d bytes", maxRead)
	}
	return response{resp, string(body)}, err
}

// client talks HTTP/1.1, or HTTP/2 over TLS, and keeps no connections.
var client = &http.Client{
	Timeout: patience,
	Transport: &http.Transport{
		DisableCompression: true,
		DisableKeepAlives:  true,
		ForceAttemptHTTP2:  true,
		TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, err
			}
			return new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", port))
		},
	},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// locs lists the URLs of a sitemap, or of all shards of an index, in order. Anything
// but a 200 with a well-formed document fails the test.
func (s *server) locs(url string, headers ...string) []string {
	s.t.Helper()
	urls, err := s.tryLocs(url, headers...)
	if err != nil {
		s.t.Fatalf("%s: %v", s.expand(url), err)
	}
	return urls
}

func (s *server) tryLocs(url string, headers ...string) ([]string, error) {
	r, err := s.try(http.MethodGet, url, headers...)
	if err != nil {
		return nil, err
	}
	if r.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d, body %.200q", r.StatusCode, r.body)
	}
	var locs, children []string
	_, err = sitemapxml.Read(strings.NewReader(r.body), sitemapxml.Limits{}, func(u sitemapxml.URL) error {
		locs = append(locs, u.Loc)
		return nil
	}, func(c sitemapxml.Child) error {
		children = append(children, c.Loc)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, child := range children {
		more, err := s.tryLocs(child, headers...)
		if err != nil {
			return nil, err
		}
		locs = append(locs, more...)
	}
	return locs, nil
}

// wantLocs waits until a sitemap lists just these URLs, in which words are replaced.
func (s *server) wantLocs(url string, want ...string) {
	s.t.Helper()
	for i := range want {
		want[i] = s.expand(want[i])
	}
	var got []string
	var err error
	s.eventually(func() bool {
		got, err = s.tryLocs(url)
		return err == nil && slices.Equal(got, want)
	}, func() string {
		return fmt.Sprintf("%s lists %q (%v), want %q\n%s", s.expand(url), got, err, want, s.sitemapLog())
	})
}

// eventually waits for a condition to become true.
func (s *server) eventually(condition func() bool, failure func() string) {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	for !condition() {
		if time.Now().After(deadline) {
			s.t.Fatal(failure())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// logged waits for a log line that holds all the words, and returns it.
func (s *server) logged(words ...string) string {
	s.t.Helper()
	var line string
	s.eventually(func() bool {
		lines := s.logLines(words...)
		if len(lines) == 0 {
			return false
		}
		line = lines[0]
		return true
	}, func() string { return fmt.Sprintf("no log line with %q:\n%s", words, s.sitemapLog()) })
	return line
}

// logLines are the log lines so far that hold all the words.
func (s *server) logLines(words ...string) []string {
	s.t.Helper()
	data, err := os.ReadFile(s.log)
	if err != nil {
		s.t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(data)) {
		if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, s.expand(word)) }) {
			found = append(found, line)
		}
	}
	return found
}

// sitemapLog is the last of what the project itself has logged, for a failure's
// message.
func (s *server) sitemapLog() string {
	lines := s.logLines(`"logger":"http.handlers.sitemap`)
	return strings.Join(lines[max(len(lines)-20, 0):], "")
}

// gunzip decompresses.
func gunzip(t *testing.T, data string) string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader([]byte(data)))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}
