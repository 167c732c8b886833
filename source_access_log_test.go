package sitemap

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/seed3295b519/caddy-sitemap/internal/accesslog"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// jsonLine is a line as Caddy writes it.
func jsonLine(at time.Time, host, uri, more string) string {
	return fmt.Sprintf(`{"level":"info","ts":%d.5,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"198.51.100.7","client_ip":"198.51.100.7","proto":"HTTP/2.0","method":"GET","host":%q,"uri":%q,"headers":{"User-Agent":[%q]}},"status":200,"resp_headers":{"Content-Type":["text/html"],"Etag":["\"a\""]%s}}`,
		at.Unix(), host, uri, browser, more)
}

// combinedLine is a line as Apache and nginx write it.
func combinedLine(at time.Time, host, uri string) string {
	line := fmt.Sprintf(`198.51.100.7 - - [%s] "GET %s HTTP/1.1" 200 1234 "-" %q`, at.Format("02/Jan/2006:15:04:05 -0700"), uri, browser)
	if host != "" {
		line = host + " " + line
	}
	return line
}

// logReader is the one reader of a handler's logs.
func (v *visiting) logReader() *logReader {
	v.Helper()
	var err error
	if v.handler.logs, err = v.handler.logReaders(); err != nil || len(v.handler.logs) != 1 {
		v.Fatalf("got %v, %v, want one reader", v.handler.logs, err)
	}
	return v.handler.logs[0]
}

// lines are what became of all lines so far.
func (r *logReader) lines() map[string]int {
	all := make(map[string]int)
	for _, log := range r.Logs() {
		for result, n := range log.Lines {
			all[result] += n
		}
	}
	return all
}

// appendTo writes lines at the end of a file.
func (v *visiting) appendTo(name string, lines ...string) {
	v.Helper()
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		v.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(strings.Join(lines, "\n") + "\n"); err != nil {
		v.Fatal(err)
	}
}

// TestLogSettings: where other lines are visits, the logs are read from the beginning.
func TestLogSettings(t *testing.T) {
	settings := func(s *SourceAccessLog) uint64 { return newVisiting(t, &SourceLinks{}, s).logReader().Settings }
	log := []string{"a.log"}
	first := settings(&SourceAccessLog{Files: log})
	if got := settings(&SourceAccessLog{Files: log, Discovery: Discovery{MaxPaths: 5, Expire: caddy.Duration(time.Hour)}}); got != first {
		t.Error("other bounds are other settings")
	}
	for _, other := range []*SourceAccessLog{
		{Files: log, History: caddy.Duration(time.Hour)}, {Files: log, Format: "json"}, {Files: []string{"b.log"}}, {Files: []string{"a.log", "b.log"}},
		{Files: log, Discovery: Discovery{Query: []string{"page"}}}, {Files: log, Discovery: Discovery{Unlinked: []string{"/a"}}},
	} {
		if settings(other) == first {
			t.Errorf("%+v: the same settings", other)
		}
	}
}

// TestLogReaderGoesOn: what was read, and given to a refresh, is not read again.
func TestLogReaderGoesOn(t *testing.T) {
	name := filepath.Join(t.TempDir(), "access.log")
	v := newVisiting(t, &SourceAccessLog{Files: []string{name}})
	s := v.site("named.example", "")
	line := func(uri string) { v.appendTo(name, jsonLine(v.clock, "named.example", uri, "")) }
	line("/a")
	r := v.logReader()
	r.poll(t.Context())
	v.want(s, "/a")
	line("/b")
	r.poll(t.Context()) // no refresh takes it
	if r.lines()[accesslog.Counts] != 2 {
		t.Errorf("got %v, want 2 visits", r.lines())
	}
	line("/c")
	stored, _ := s.state.progress.Stored(true)
	s.state.progress = accesslog.Progress{} // as after a crash
	s.state.progress.Restore(stored)
	again := v.logReader()
	again.poll(t.Context())
	if again.lines()[accesslog.Counts] != 2 {
		t.Errorf("got %v, want the 2 visits that no refresh was given", again.lines())
	}
	if got := testutil.ToFloat64(v.app.counts.lines.WithLabelValues(accesslog.Counts)); got != 4 {
		t.Errorf("got a count of %v visits, want 4", got)
	}
	if got := v.logs.FilterMessage("access log read").Len(); got != 2 {
		t.Errorf("got %d reports, want one of each reader", got)
	}
}

// TestPositionsOfGathered: positions are stored once all candidates were gathered: after a restart, the visits that were
// not would be missing.
func TestPositionsOfGathered(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.handler.discovery = &discovery{visitors: true, maxPaths: 10}
		b.handler.sources = []input{&SourceAccessLog{}, sortedFunc{func(yield func(page.Page) error) error {
			first := cmp.Or(yield(page.Page{Path: "/a"}), yield(page.Page{Path: "/b"}))
			time.Sleep(2*firstPublication + firstPublication/2) // between two publications
			return first
		}}}
		s := b.site("named.example")
		s.state.progress.Set(0, 1, accesslog.Positions{"/a.log 1": 1})
		for _, want := range []bool{false, true} {
			ctx, cancel := context.WithCancel(t.Context())
			if !want {
				time.AfterFunc(2*firstPublication, cancel)
			}
			out := s.refresh(ctx, false)
			records, err := s.state.records.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			meta := string(records.Generation.Meta())
			if got := strings.Contains(meta, `"/a.log 1":1`); got != want || len(meta) == 0 || (out.Err == nil) != want {
				t.Errorf("gathered %t: the positions are stored: %t, in %s, %v", want, got, meta, out.Err)
			}
			records.Release()
			cancel()
		}
	})
}

// TestLogsWait: reading begins once all named sites that stand for themselves are ready.
func TestLogsWait(t *testing.T) {
	v := newVisiting(t, &SourceAccessLog{Files: []string{"a.log"}})
	v.site("alias.example", "").main.Store(v.site("named.example", ""))
	slow := v.site("slow.example", "")
	slow.ready = make(chan struct{})
	r := v.logReader()
	if r.poll(t.Context()); r.hasPolled {
		t.Error("it does not wait for a named site")
	}
	slow.onDemand = true
	if r.poll(t.Context()); !r.hasPolled {
		t.Error("it waits for a site on demand")
	}
}

// TestUnreadableLog: what cannot be read, or does not exist, is a warning once, and shown by status, until it can be read.
func TestUnreadableLog(t *testing.T) {
	folder := t.TempDir()
	damaged, other := filepath.Join(folder, "a.log.gz"), filepath.Join(folder, "b.log")
	pattern, late := filepath.Join(folder, "*"), filepath.Join(folder, "none", "late.log")
	v := newVisiting(t, &SourceAccessLog{Files: []string{pattern, late}})
	v.site("named.example", "")
	r := v.logReader()
	want := func(message string, times int, want ...accesslog.Log) {
		t.Helper()
		for range 3 {
			r.poll(t.Context())
		}
		if got := v.logs.FilterMessage(message).Len(); got != times {
			t.Errorf("got %d times %s, want %d", got, message, times)
		}
		if got := r.Logs(); !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	none := map[string]int{}
	isMissing := func(name string) accesslog.Log {
		return accesslog.Log{Path: name, Lines: none, Error: "it does not exist, or was last written before 'history'"}
	}
	want("cannot read an access log", 2, isMissing(pattern), isMissing(late))
	log := accesslog.Log{Path: strings.TrimSuffix(damaged, ".gz"), Lines: none, Error: "uncompressing " + damaged + ": gzip: invalid header"}
	for times := range 2 {
		write(damaged, strings.Repeat("not gzip", times+2))
		want("cannot read an access log", times+3, log, isMissing(late))
		if err := os.Remove(damaged); err != nil {
			t.Fatal(err)
		}
		want("cannot read an access log", times+3, isMissing(pattern), accesslog.Log{Path: log.Path, Lines: none}, isMissing(late))
	}
	const message = "no line of an access log shows a visit"
	const hint = "it is in no format that can be read: let the server write Caddy's JSON, 'common' or 'combined'"
	write(other, "not a line\nanother one\n")
	want(message, 1, accesslog.Log{Path: log.Path, Lines: none}, accesslog.Log{Path: other, Lines: map[string]int{accesslog.ErrSyntax.Error(): 2}, Hint: hint}, isMissing(late))
	v.appendTo(other, combinedLine(v.clock, "", "/a"), "and one more")
	want(message, 1, accesslog.Log{Path: log.Path, Lines: none}, accesslog.Log{Path: other, Lines: map[string]int{accesslog.ErrSyntax.Error(): 3, accesslog.Counts: 1}}, isMissing(late))
	if pollEvery > 10*time.Second {
		t.Errorf("a log is tried again after %s", pollEvery)
	}
}

// TestReadLogs: the readers end with the App.
func TestReadLogs(t *testing.T) {
	name := filepath.Join(t.TempDir(), "access.log")
	v := newVisiting(t, &SourceAccessLog{Files: []string{name}}, &SourceTraffic{})
	s := v.site("named.example", "")
	v.appendTo(name, jsonLine(v.clock, "named.example", "/a", ""))
	v.logReader()
	v.app.readLogs()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if n, _ := s.state.visited.Count(); n > 0 {
			break
		}
	}
	v.want(s, "/a")
	v.app.cancel()
	done := make(chan struct{})
	go func() { v.app.group.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("they go on")
	}
}
