// These tests change files while Caddy serves them: saves, deployments, releases, kills. Dates wait for the end of what goes on,
// as they do for users.

package caddytest

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
	"github.com/seed3295b519/caddy-sitemap/caddytest/sitemaps"
)

// quiet is for how long nothing changes until a deployment is over; edits are over after a quarter of it. Users wait over seven
// times as long.
const quiet = 16 * time.Second

// datePatience is how long a test waits for a date: several times as long as it takes until a deployment is over.
const datePatience = 5 * time.Minute

// restartable is a Caddy in a process of its own.
type restartable struct {
	*harness.Server
	caddyfile string
	child     *harness.Child
}

// prepareRestartable makes a folder for a server that is not started yet.
func prepareRestartable(t *testing.T, caddyfile string) *restartable {
	t.Helper()
	t.Parallel()
	s := &restartable{
		Server:    harness.PrepareChildren(t, nil),
		caddyfile: "{\n sitemap {\n state {dir}/state\n }\n}\n" + caddyfile,
	}
	s.OpenAdmin()
	return s
}

// start starts Caddy, and waits for its first response.
func (s *restartable) start() {
	s.T.Helper()
	// Processes that make their certificate authorities in one folder at the same time find halves of each other's.
	s.child = s.Child(s.caddyfile, "XDG_DATA_HOME="+filepath.Join(s.Dir, "data"), harness.Quiet(quiet))
	s.First(s.child)
}

// within waits for a condition that may take longer than those of the harness.
func (s *restartable) within(most time.Duration, condition func() bool, failure func() string) {
	s.T.Helper()
	deadline := time.Now().Add(most)
	for !condition() {
		if time.Now().After(deadline) {
			s.T.Fatal(failure())
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// until waits until a time has come: for what must not happen before.
func (s *restartable) until(at time.Time) {
	s.T.Helper()
	s.within(time.Hour, func() bool { return time.Now().After(at) }, func() string { return "time stands still" })
}

// served returns the dates that the sitemap of a host gives, by path; "": it lists a page without a date. Its URLs begin with
// an origin.
func (s *restartable) served(host, origin string) (map[string]string, error) {
	r, err := s.Try(http.MethodGet, harness.Local+"/sitemap.xml", "Host: "+s.Expand(host))
	if err != nil {
		return nil, err
	}
	if r.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", r.StatusCode)
	}
	d, err := sitemaps.Parse([]byte(r.Text))
	if err != nil {
		return nil, err
	}
	dates := make(map[string]string, len(d.Pages))
	for _, p := range d.Pages {
		dates[strings.TrimPrefix(p.Loc, s.Expand(origin))] = p.LastMod
	}
	return dates, nil
}

// sampled calls a function twice a second until it is stopped or the test ends.
func sampled(t *testing.T, sample func()) (stop func()) {
	t.Helper()
	ended := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		ticker := time.NewTicker(500 * time.Millisecond)
		defer ticker.Stop()
		for {
			sample()
			select {
			case <-ended:
				return
			case <-ticker.C:
			}
		}
	})
	stop = sync.OnceFunc(func() {
		close(ended)
		group.Wait()
	})
	t.Cleanup(stop)
	return stop
}

// explain returns what `caddy sitemap explain` prints.
func (s *restartable) explain(url string) string {
	s.T.Helper()
	r := run(s.T, s.T.TempDir(), "sitemap", "explain", s.Expand(url), "--address", "127.0.0.1:"+s.Admin)
	if r.status != 0 {
		s.T.Fatalf("explain %s: status %d: %s", s.Expand(url), r.status, r.stderr)
	}
	return r.stdout
}

// failures are what a sampler has found to be wrong, each once.
type failures struct {
	mu    sync.Mutex
	known map[string]bool
	texts []string
}

const mostFailures = 10

func (f *failures) add(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	if f.known[text] || len(f.texts) == mostFailures {
		return
	}
	if f.known == nil {
		f.known = make(map[string]bool)
	}
	f.known[text] = true
	f.texts = append(f.texts, time.Now().Format("15:04:05 ")+text)
}

// report fails the test if there are any.
func (f *failures) report(t *testing.T) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, text := range f.texts {
		t.Error(text)
	}
}
