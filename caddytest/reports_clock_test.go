package caddytest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/caddyserver/certmagic"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

var storedTime = regexp.MustCompile(`"\d{4}-\d\d-\d\dT[^"]*"`)

// setStoredTimes makes all times in the stopped server's state one and the same, as a clock that was wrong has written it.
func (s *server) setStoredTimes(at string) {
	s.T.Helper()
	found, err := filepath.Glob(filepath.Join(s.Dir, "state", "sites", "*", "store", "manifest.json"))
	if err != nil || len(found) != 1 {
		s.T.Fatalf("got %q, %v", found, err)
	}
	data, err := os.ReadFile(found[0])
	harness.Must(s.T, err)
	line, _, _ := bytes.Cut(data, []byte{'\n'})
	if n := len(storedTime.FindAll(line, -1)); n < 3 {
		s.T.Fatalf("%d times in %s", n, line)
	}
	line = storedTime.ReplaceAll(line, []byte(`"`+at+`"`))
	// The state ends with its sum.
	harness.Must(s.T, os.WriteFile(found[0], fmt.Appendf(line, "\n%.16x\n", sha256.Sum256(line)), 0o600))
}

// scriptedState is a site of HTML that keeps its state, with a script as its source.
func scriptedState(t *testing.T) string {
	return "{\n sitemap {\n state {dir}/state\n }\n}\n" + harness.Local + ` {
		sitemap {
			refresh 1s
			scripted ` + t.Name() + `
		}
		header Content-Type text/html
		respond "<html><title>{path}</title>{path}"
	}`
}

// wantJSON checks that the admin API returns JSON with some text.
func (s *server) wantJSON(when, route, text string) {
	s.T.Helper()
	r := s.Get("http://localhost:{admin}" + route)
	if r.StatusCode != http.StatusOK || !json.Valid([]byte(r.Text)) || !strings.Contains(r.Text, text) {
		s.T.Errorf("%s: %s returns status %d, %q", when, route, r.StatusCode, r.Text)
	}
}

// TestStateOfFarClock: a state by a clock at the end of the year 9999, after which times have no JSON, is shown, changed and
// stored like any other.
func TestStateOfFarClock(t *testing.T) {
	for name, at := range map[string]string{
		"the last second":           "9999-12-31T23:59:59Z",
		"in a zone west of the end": "9999-12-31T23:59:59-12:00",
	} {
		t.Run(name, func(t *testing.T) {
			script := newScript(t, "/a", "/b")
			s := prepare(t, nil)
			s.OpenAdmin()
			caddyfile := scriptedState(t)
			wantShown := func(when string) {
				t.Helper()
				s.wantJSON(when, "/sitemap/sites", `"pages":`)
			}
			s.Load(caddyfile)
			s.Crawled()
			s.stopWritten()
			s.setStoredTimes(at)

			script.with(func() { script.err = fmt.Errorf("the disk is not there yet") })
			s.Load(caddyfile)
			wantShown("after a restart")
			s.Refreshes(2)
			wantShown("while a source fails")
			script.with(func() { script.err = nil; script.pages = []string{"/a", "/b", "/c"} })
			s.Refreshes(1)
			s.WantLocs(harness.Local+"/sitemap.xml", harness.Local+"/a", harness.Local+"/b", harness.Local+"/c")
			wantShown("after a change")
			s.stopWritten()
			if lines := s.LogLines("cannot store"); len(lines) > 0 {
				t.Errorf("the log says %s", lines[0])
			}
			s.Load(caddyfile)
			wantShown("after another restart")
		})
	}
}

// setRecordTimes sets the times of all records in the stopped server's state.
func (s *server) setRecordTimes(at int64) {
	s.T.Helper()
	ctx := s.T.Context()
	state := filepath.Join(s.Dir, "state")
	found, err := filepath.Glob(filepath.Join(state, "sites", "*"))
	if err != nil || len(found) != 1 {
		s.T.Fatalf("got %q, %v", found, err)
	}
	opened := record.New(&certmagic.FileStorage{Path: state}, "sites/"+filepath.Base(found[0]))
	harness.Must(s.T, opened.Open(ctx, nil))
	records, err := opened.Last().Load(ctx, 0)
	harness.Must(s.T, err)
	for i := range records {
		r := &records[i]
		r.Linked = at
		r.Fetched = at
		r.Due = at
		r.Failing = at
	}
	w := opened.Last().Writer()
	w.Put("", records, func(string, string) uint64 { return 0 }, func([]record.Record) int64 { return at })
	changed, err := w.Generation()
	harness.Must(s.T, err)
	harness.Must(s.T, opened.Commit(ctx, changed))
}

// TestRecordsOfFarClock: so are records whose times lie beyond the year 9999, such as those of pages that such a clock has due
// in a month, and all that a number can say.
func TestRecordsOfFarClock(t *testing.T) {
	for name, at := range map[string]int64{
		"the year 10000": 253_402_300_800,
		"the last":       math.MaxInt64,
	} {
		t.Run(name, func(t *testing.T) {
			script := newScript(t, "/a", "/b")
			s := prepare(t, nil)
			s.OpenAdmin()
			s.Load(scriptedState(t))
			s.Crawled()
			s.stopWritten()
			s.setRecordTimes(at)

			hold := make(chan struct{})
			script.with(func() { script.hold = hold })
			s.Begin(scriptedState(t))
			s.WantLocs(harness.Local+"/sitemap.xml", harness.Local+"/a", harness.Local+"/b")
			explain := "/sitemap/explain?url=" + url.QueryEscape(s.Expand(harness.Local+"/a"))
			s.wantJSON("after a restart", explain, `"listed":true`)
			s.wantJSON("after a restart", "/sitemap/sites", `"pages":2`)
			close(hold)
			s.Crawled()
			s.wantJSON("after a refresh", explain, `"listed":true`)
			s.wantJSON("after a refresh", "/sitemap/sites", `"pages":2`)
		})
	}
}
