package sitemap

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/visits"
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

// TestLogReader: new lines are read once, and their results counted.
func TestLogReader(t *testing.T) {
	name := filepath.Join(t.TempDir(), "access.log")
	v := newVisiting(t, &SourceAccessLog{Files: []string{name}})
	s := v.site("named.example", "")
	line := func(uri string) { v.appendTo(name, jsonLine(v.clock, "named.example", uri, "")) }
	line("/a")
	r := v.logReader()
	r.poll(t.Context())
	v.want(s, "/a")
	line("/b")
	r.poll(t.Context())
	r.poll(t.Context())
	v.want(s, "/a", "/b")
	if got := v.logs.FilterMessage("access log read").Len(); got != 1 {
		t.Errorf("got %d reports, want one", got)
	}
}

// TestLogSites: a line is for the sites of the handler that have its host; without one, for all.
func TestLogSites(t *testing.T) {
	name := filepath.Join(t.TempDir(), "access.log")
	v := newVisiting(t, &SourceAccessLog{Files: []string{name}})
	s, other := v.site("named.example", ""), v.site("other.example", "")
	v.appendTo(name,
		jsonLine(v.clock, "NAMED.example", "/named", ""),
		jsonLine(v.clock, "other.example:8080", "/other", ""),
		jsonLine(v.clock, "third.example", "/third", ""),
		jsonLine(v.clock, "", "/all", ""))
	v.logReader().poll(t.Context())
	v.want(s, "/all", "/named")
	v.want(other, "/all", "/other")
}

// TestLogsWait: reading begins once all named sites are ready.
func TestLogsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVisiting(t, &SourceAccessLog{Files: []string{filepath.Join(t.TempDir(), "a.log")}})
		slow := v.site("slow.example", "")
		slow.ready = make(chan struct{})
		v.site("demanded.example", "").onDemand = true
		r := v.logReader()
		go r.pollUntil(v.app.running)
		time.Sleep(logPatience - time.Second)
		if r.logs.Load() != nil {
			t.Error("it does not wait for a named site")
		}
		close(slow.ready)
		synctest.Wait()
		if r.logs.Load() == nil {
			t.Error("it waits")
		}
		v.app.cancel()
	})
}

// TestUnreadableLog: what cannot be read, or does not exist, is a warning once, and shown by status, until it can be read.
func TestUnreadableLog(t *testing.T) {
	const (
		missing = "it does not exist, or was last written before 'history'"
		failed  = "cannot read an access log"
		useless = "no line of an access log shows a visit"
	)
	folder := t.TempDir()
	name, late := filepath.Join(folder, "a.log"), filepath.Join(folder, "none", "late.log")
	v := newVisiting(t, &SourceAccessLog{Files: []string{name, late}})
	v.site("named.example", "")
	r := v.logReader()
	wantWarned := map[string]int{failed: 2}
	want := func(problem, hint string) {
		t.Helper()
		for range 3 {
			r.poll(t.Context())
		}
		for message, times := range wantWarned {
			if got := v.logs.FilterMessage(message).Len(); got != times {
				t.Errorf("got %d times %s, want %d", got, message, times)
			}
		}
		logs := *r.logs.Load()
		if len(logs) != 2 || logs[0].Path != name || !strings.HasPrefix(logs[0].Error, problem) || !strings.HasPrefix(logs[0].Hint, hint) || logs[1].Error != missing {
			t.Errorf("got %+v", logs)
		}
	}
	want(missing, "")
	v.appendTo(name+".gz", "no gzip, whatever its name says")
	wantWarned[failed] = 3
	want("reading "+name+".gz: gzip: invalid header", "")
	v.appendTo(name, "not a line", "another one")
	wantWarned[useless] = 1
	want("", "its lines are in no format that can be read: see https://")
	v.appendTo(name, combinedLine(v.clock, "", "/a"), "and one more")
	want("", "")
	if logs := *r.logs.Load(); logs[0].Hint != "" || logs[0].Error != "" || logs[0].Lines[visits.Counts] != 1 {
		t.Errorf("got %+v", logs)
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
