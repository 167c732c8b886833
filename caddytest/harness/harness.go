// Package harness runs real Caddy with real files and real sockets for tests. Packages of
// tests that share it run side by side.
package harness

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"go.uber.org/goleak"

	_ "github.com/seed3295b519/caddy-sitemap"
	"github.com/seed3295b519/caddy-sitemap/caddytest/parts"
	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
)

// Patience is how long a test waits for what must come: three times what it may take by design, such as two fetches of ten
// seconds that hang.
const Patience = time.Minute

// Main is a package's TestMain: its tests share nothing with those of other packages
// that run at the same time, neither folders nor ports. Changes of files wait for no minute until they are dated.
//
// The tests run in several processes, unless some of them are chosen, as by -run. slow are those that take seconds: see
// [parts.Run].
func Main(m *testing.M, slow ...string) {
	indexing.Minute = 0
	if file := os.Getenv(childVar); file != "" {
		if err := runChild(file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	if parts.IsWhole() {
		os.Exit(parts.Run(slow))
	}
	if testing.Short() {
		_ = flag.Set("test.skip", parts.Pattern(slow...))
	}
	home, err := os.MkdirTemp("", "caddytest")
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"XDG_DATA_HOME", "XDG_CONFIG_HOME"} {
		_ = os.Setenv(name, home)
	}
	// Caddy has read the environment already, and would keep its certificate authority in the user's home.
	caddy.DefaultStorage.Path = caddy.AppDataDir()
	code := m.Run()
	_ = os.RemoveAll(home)
	os.Exit(code)
}

// running keeps tests from running Caddy side by side: there is one per process.
var running sync.Mutex

// Server is a running Caddy.
type Server struct {
	T    *testing.T
	Dir  string // for the test's files; {dir} in configurations
	Port string // {port} in configurations; free when the test began
	TLS  string // {tls}: another one
	More string // {more}: another one
	Log  string // file of the JSON log, everything from DEBUG

	Admin string // {admin}: port of the admin endpoint; "": there is none

	// Global options of each Caddyfile: the ports of sites that name none.
	httpPort, httpsPort string
}

// Start runs Caddy with a Caddyfile, in which {dir}, {port}, {tls} and {more} are
// replaced, and ends it with the test. files are made below {dir} first, as Write
// makes them. That nothing outlives it is checked.
func Start(t *testing.T, caddyfile string, files map[string]string) *Server {
	t.Helper()
	s := Prepare(t, files)
	s.Load(caddyfile)
	return s
}

// Prepare is Start without a configuration.
func Prepare(t *testing.T, files map[string]string) *Server {
	t.Helper()
	running.Lock()
	s := PrepareChildren(t, files)
	_ = os.Setenv("XDG_DATA_HOME", t.TempDir()) // what one test leaves there is not another's
	others := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		defer running.Unlock()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		s.endAdmin()
		if err := caddy.Stop(); err != nil {
			t.Errorf("stopping Caddy: %v", err)
		}
		// Certmagic keeps the locks of its storage for as long as the process lives, and
		// Caddy the files of its logs.
		ended := func() error {
			return goleak.Find(others, goleak.IgnoreAnyFunction("github.com/caddyserver/certmagic.keepLockfileFresh"),
				goleak.IgnoreAnyFunction("github.com/DeRuina/timberjack.(*Logger).millRun"))
		}
		err := ended()
		// A server that is shut down waits five seconds for a connection that was opened
		// and not used.
		for until := time.Now().Add(Patience); err != nil && time.Now().Before(until); {
			err = ended()
		}
		if err != nil {
			t.Errorf("goroutines outlive Caddy: %v", err)
		}
	})
	return s
}

// PrepareChildren is Prepare for a Caddy that runs as a [Child] only, which tests of one process may do side by side.
func PrepareChildren(t *testing.T, files map[string]string) *Server {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	Must(t, err)
	s := &Server{
		T: t, Dir: dir, Port: FreePort(t), TLS: FreePort(t), More: FreePort(t),
		httpPort: FreePort(t), httpsPort: FreePort(t),
	}
	s.Log = filepath.Join(t.TempDir(), "caddy.log")
	s.Write(files)
	return s
}

// Expand replaces {dir}, {port}, {tls}, {more} and {admin}.
func (s *Server) Expand(text string) string {
	return strings.NewReplacer("{dir}", filepath.ToSlash(s.Dir), "{port}", s.Port, "{tls}", s.TLS, "{more}", s.More, "{admin}", s.Admin).Replace(text)
}

// OpenAdmin gives the configurations that follow an admin endpoint.
func (s *Server) OpenAdmin() {
	s.T.Helper()
	s.Admin = FreePort(s.T)
}

// adminListen is where the admin endpoint listens.
func (s *Server) adminListen() string {
	if s.Admin == "" {
		return "off"
	}
	return "127.0.0.1:" + s.Admin
}

// endAdmin ends the admin endpoint, which Caddy lets outlive its configuration.
func (s *Server) endAdmin() {
	if s.Admin == "" {
		return
	}
	if err := caddy.Load([]byte(`{"admin":{"disabled":true,"config":{"persist":false}}}`), false); err != nil {
		s.T.Errorf("ending the admin endpoint: %v", err)
	}
}

// globalOptions are added to those of each Caddyfile.
const globalOptions = `{
	admin %s
	persist_config off
	skip_install_trust
	local_certs
	http_port %s
	https_port %s
	grace_period 1s
	log default {
		output file %q {
			roll_disabled
		}
		format json
		level DEBUG
	}
`

// Adapt makes JSON of a Caddyfile, as if it lay in {dir}. Global options are added to
// its own, which must be in a block at its very beginning: the admin endpoint, if any,
// the log, internal certificates, ports that need no root.
func (s *Server) Adapt(caddyfile string) ([]byte, error) {
	text := strings.TrimSpace(s.Expand(caddyfile))
	options := fmt.Sprintf(globalOptions, s.adminListen(), s.httpPort, s.httpsPort, filepath.ToSlash(s.Log))
	if rest, ok := strings.CutPrefix(text, "{\n"); ok {
		text = options + rest
	} else {
		text = options + "}\n" + text
	}
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), map[string]any{"filename": filepath.Join(s.Dir, "Caddyfile")})
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

// Must ends the test on an error.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Load loads a Caddyfile into the running Caddy: a reload, if one runs already.
func (s *Server) Load(caddyfile string) {
	s.T.Helper()
	Must(s.T, s.TryLoad(caddyfile))
}

// TryLoad is Load where it may fail.
func (s *Server) TryLoad(caddyfile string) error {
	config, err := s.Adapt(caddyfile)
	if err != nil {
		return err
	}
	return caddy.Load(config, false)
}

// LoadJSON loads a JSON configuration, in which the same words are replaced. The log
// is added if it has none.
func (s *Server) LoadJSON(config string) error {
	var parsed map[string]any
	if err := json.Unmarshal([]byte(s.Expand(config)), &parsed); err != nil {
		return err
	}
	if parsed["logging"] == nil {
		parsed["logging"] = map[string]any{"logs": map[string]any{"default": map[string]any{
			"level": "DEBUG", "writer": map[string]any{"output": "file", "filename": s.Log, "roll": false}, "encoder": map[string]any{"format": "json"},
		}}}
	}
	parsed["admin"] = map[string]any{"disabled": s.Admin == "", "listen": "127.0.0.1:" + s.Admin, "config": map[string]any{"persist": false}}
	encoded, err := json.Marshal(parsed)
	if err != nil {
		return err
	}
	return caddy.Load(encoded, false)
}

// LoadApp loads a Caddyfile in which {app} is the address of an application, which
// ends before the server does.
func (s *Server) LoadApp(caddyfile string, handler http.HandlerFunc) {
	s.T.Helper()
	app := httptest.NewServer(handler)
	s.T.Cleanup(func() {
		app.CloseClientConnections()
		app.Close()
	})
	s.Load(strings.ReplaceAll(caddyfile, "{app}", app.Listener.Addr().String()))
}

// Eventually waits for a condition to become true.
func (s *Server) Eventually(condition func() bool, failure func() string) {
	s.T.Helper()
	deadline := time.Now().Add(Patience)
	for !condition() {
		if time.Now().After(deadline) {
			s.T.Fatal(failure())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Passed waits until so much time has gone by: for what must not happen meanwhile.
func (s *Server) Passed(d time.Duration) {
	s.T.Helper()
	since := time.Now()
	s.Eventually(func() bool { return time.Since(since) >= d }, func() string { return "time stands still" })
}

// Stop ends Caddy before the test ends, and fails the test if that takes long.
func (s *Server) Stop() {
	s.T.Helper()
	done := make(chan error, 1)
	go func() { done <- caddy.Stop() }()
	select {
	case err := <-done:
		if err != nil {
			s.T.Errorf("stopping Caddy: %v", err)
		}
	case <-time.After(Patience):
		s.T.Fatal("Stop does not return")
	}
}

// Reload is Load where nothing has changed in the configuration, too.
func (s *Server) Reload(caddyfile string) {
	s.T.Helper()
	config, err := s.Adapt(caddyfile)
	if err == nil {
		err = caddy.Load(config, true)
	}
	if err != nil {
		s.T.Fatalf("reloading: %v", err)
	}
}

// Backend is the address of another server, which keeps no connections.
func Backend(t *testing.T, handler http.HandlerFunc) string {
	b := httptest.NewUnstartedServer(handler)
	b.Config.SetKeepAlivesEnabled(false)
	b.Start()
	t.Cleanup(b.Close)
	return b.Listener.Addr().String()
}

// Restart ends Caddy and loads a Caddyfile anew.
func (s *Server) Restart(caddyfile string) {
	s.T.Helper()
	s.Stop()
	s.Begin(caddyfile)
}

// Begin loads a Caddyfile after Caddy was stopped, whose last listener may still take
// a connection with it.
func (s *Server) Begin(caddyfile string) {
	s.T.Helper()
	s.Load(caddyfile)
	_, err := s.Again(Local + "/nothing-there")
	Must(s.T, err)
}
