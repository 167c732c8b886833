package sitemap

import (
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
	v.handler.logs[0].begun = v.clock
	return v.handler.logs[0]
}

// lines are what became of all lines so far.
func (r *logReader) lines() map[string]int {
	all := make(map[string]int)
	for _, log := range r.handler.logStatuses() {
		for result, n := range log.Lines {
			all[result] += n
		}
	}
	return all
}

// poll lets sites join and reads what is new.
func (v *visiting) poll(r *logReader) {
	v.Helper()
	r.join()
	if r.follower.Load() == nil {
		return
	}
	r.poll(v.Context())
}

// TestTakeLine: what becomes of the lines of a log.
func TestTakeLine(t *testing.T) {
	now := time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)
	ago := now.Add(-time.Hour)
	const month = 30 * 24 * time.Hour
	for name, test := range map[string]struct {
		line string
		want string
		path string // that is remembered then; "": none
		at   time.Time
	}{
		"JSON":                 {jsonLine(ago, "named.example", "/docs/a", ""), lineCounts, "/docs/a", ago},
		"a virtual host":       {combinedLine(ago, "named.example:80", "/docs/a"), lineCounts, "/docs/a", time.Time{}},
		"a query":              {jsonLine(ago, "named.example", "/docs/a?utm_source=x&page=2&x=1", ""), lineCounts, "/docs/a?page=2", ago},
		"the host in capitals": {jsonLine(ago, "NAMED.example:80", "/docs/a", ""), lineCounts, "/docs/a", ago},
		"another host":         {jsonLine(ago, "other.example", "/docs/a", ""), lineOtherHost, "", now},
		"no host name":         {jsonLine(ago, "a b", "/docs/a", ""), lineOtherHost, "", now},
		"outside":              {jsonLine(ago, "named.example", "/a", ""), lineOutside, "", now},
		"outside by dots":      {jsonLine(ago, "named.example", "/docs/../a", ""), lineOutside, "", now},
		"just old enough":      {jsonLine(now.Add(-month), "named.example", "/docs/a", ""), lineCounts, "/docs/a", now.Add(-month)},
		"older than history":   {jsonLine(now.Add(-month-time.Second), "named.example", "/docs/a", ""), lineOld, "", now},
		"a time to come":       {jsonLine(now.Add(time.Hour), "named.example", "/docs/a", ""), lineCounts, "/docs/a", now},
		"no time":              {strings.Replace(jsonLine(ago, "named.example", "/docs/a", ""), `"ts"`, `"t"`, 1), lineCounts, "/docs/a", now},
		"a robot":              {strings.Replace(combinedLine(ago, "", "/docs/a"), "Mozilla/5.0", "Googlebot/2.1", 1), accesslog.Robot, "", now},
		"another log":          {`{"level":"info","ts":1,"logger":"tls","msg":"renewed"}`, accesslog.ErrNoRequest.Error(), "", now},
		"no line of a log":     {"hello", accesslog.ErrSyntax.Error(), "", now},
	} {
		t.Run(name, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "access.log")
			if err := os.WriteFile(name, []byte(test.line+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			v := newVisiting(t, &SourceAccessLog{Files: []string{name}, Discovery: Discovery{Query: []string{"page"}}})
			s := v.site("named.example", "/docs")
			r := v.logReader()
			v.poll(r)
			if len(r.lines()) != 1 || r.lines()[test.want] != 1 || testutil.ToFloat64(v.app.counts.lines.WithLabelValues(test.want)) != 1 {
				t.Errorf("got %v, want %s", r.lines(), test.want)
			}
			var want []string
			if test.path != "" {
				want = []string{test.path}
			}
			v.want(s, want...)
			if at := s.state.visited.At(test.path); test.path != "" && strings.HasPrefix(test.line, "{") && at != test.at.Unix() {
				t.Errorf("%s was visited at %s, want %s", test.path, time.Unix(at, 0).UTC(), test.at)
			}
		})
	}
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

// TestLinesOfSites: a line is for the site that its host is of, one without a host for all,
// and the hosts that strangers send are not remembered without end.
func TestLinesOfSites(t *testing.T) {
	name := filepath.Join(t.TempDir(), "access.log")
	v := newVisiting(t, &SourceAccessLog{Files: []string{name}})
	one, two := v.site("named.example", ""), v.site("two.example", "")
	v.appendTo(name, jsonLine(v.clock, "named.example", "/one", ""), jsonLine(v.clock, "two.example", "/two", ""), jsonLine(v.clock, "three.example", "/three", ""), combinedLine(v.clock, "", "/both"))
	r := v.logReader()
	v.poll(r)
	for i := range 2*maxHosts + 10 {
		r.take([]byte(combinedLine(v.clock, fmt.Sprintf("%d.example", i), "/a")), v.clock)
		if len(r.hosts) > maxHosts {
			t.Fatalf("%d hosts are remembered", len(r.hosts))
		}
	}
	if got := map[string]int{lineCounts: 3, lineOtherHost: 1}; !reflect.DeepEqual(r.lines(), got) {
		t.Errorf("got %v, want %v", r.lines(), got)
	}
	v.want(one, "/both", "/one")
	v.want(two, "/both", "/two")
}

// TestLogSettings: where other lines are visits, the logs are read from the beginning.
func TestLogSettings(t *testing.T) {
	settings := func(s *SourceAccessLog) uint64 { return newVisiting(t, &SourceLinks{}, s).logReader().settings }
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
	v.poll(r)
	v.want(s, "/a")
	line("/b")
	v.poll(r) // no refresh takes it
	if r.lines()[lineCounts] != 2 {
		t.Errorf("got %v, want 2 visits", r.lines())
	}
	line("/c")
	stored := s.state.progress.Stored()
	s.state.progress = accesslog.Progress{} // as after a crash
	s.state.progress.Restore(stored)
	again := v.logReader()
	v.poll(again)
	if again.lines()[lineCounts] != 2 {
		t.Errorf("got %v, want the 2 visits that no refresh was given", again.lines())
	}
	if got := v.messages()["access log read"]; got != 2 {
		t.Errorf("got %d reports, want one of each reader", got)
	}
}

// TestLateSites: reading begins once all named sites are ready; for those that come later
// the logs are read again, but not often, and not for an alias.
func TestLateSites(t *testing.T) {
	name := filepath.Join(t.TempDir(), "access.log")
	v := newVisiting(t, &SourceAccessLog{Files: []string{name}})
	line := func(host, uri string) { v.appendTo(name, jsonLine(v.clock, host, uri, "")) }
	line("a.example", "/a")
	line("b.example", "/b")
	r := v.logReader()
	v.poll(r)
	if r.follower.Load() != nil {
		t.Fatal("it reads for no site")
	}
	a := v.site("a.example", "")
	slow := v.site("slow.example", "")
	slow.ready = make(chan struct{})
	v.poll(r)
	if r.follower.Load() != nil {
		t.Fatal("it does not wait for a named site")
	}
	v.clock = v.clock.Add(joinPatience)
	v.poll(r)
	v.want(a, "/a")
	read := 0
	wantRead := func(want int) {
		t.Helper()
		v.poll(r)
		read = 0
		for _, n := range r.lines() {
			read += n
		}
		if read != want {
			t.Errorf("got %d lines read, want %d", read, want)
		}
	}
	alias := v.site("www.a.example", "")
	alias.main.Store(a)
	v.clock = v.clock.Add(time.Hour)
	wantRead(2)
	b := v.site("b.example", "")
	line("www.a.example", "/www")
	line("b.example", "/b2")
	wantRead(4)
	v.want(a, "/a", "/www")
	v.want(b, "/b", "/b2")
	c := v.site("c.example", "")
	v.clock = v.clock.Add(rereadAfter - time.Second)
	line("c.example", "/c")
	wantRead(5) // too soon to read all again, but what comes is noted
	v.want(c, "/c")
	v.clock = v.clock.Add(2 * time.Second)
	wantRead(5)
	if _, joined := r.joined[c]; !joined {
		t.Error("the site has not joined")
	}
	// A site that goes has no more visits noted, and its positions stand.
	delete(v.app.sites, b.id)
	b.drop()
	line("b.example", "/b3")
	wantRead(6)
	if r.lines()[lineOtherHost] != 1 || len(r.joined) != 2 {
		t.Errorf("got %v", r.lines())
	}
}

// TestUnreadableLog: what cannot be read is a warning once, and shown by status, until it can be read.
func TestUnreadableLog(t *testing.T) {
	folder := t.TempDir()
	damaged, other := filepath.Join(folder, "a.log.gz"), filepath.Join(folder, "b.log")
	v := newVisiting(t, &SourceAccessLog{Files: []string{filepath.Join(folder, "*")}})
	v.site("named.example", "")
	r := v.logReader()
	want := func(message string, times int, want ...accesslog.Log) {
		t.Helper()
		for range 3 {
			v.poll(r)
		}
		if got := v.messages()[message]; got != times {
			t.Errorf("got %d times %s, want %d", got, message, times)
		}
		if got := v.handler.logStatuses(); !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want("there is no log to read so far", 1)
	none := map[string]int{}
	log := accesslog.Log{Path: strings.TrimSuffix(damaged, ".gz"), Lines: none, Error: "uncompressing " + damaged + ": gzip: invalid header"}
	for times := range 2 {
		write(damaged, strings.Repeat("not gzip", times+2))
		want("a log cannot be read", times+1, log)
		if err := os.Remove(damaged); err != nil {
			t.Fatal(err)
		}
		want("a log cannot be read", times+1, accesslog.Log{Path: log.Path, Lines: none})
	}
	const message = "no line of a log can be read: it has another format"
	write(other, "not a line\nanother one\n")
	want(message, 1, accesslog.Log{Path: log.Path, Lines: none}, accesslog.Log{Path: other, Lines: map[string]int{accesslog.ErrSyntax.Error(): 2}})
	v.appendTo(other, combinedLine(v.clock, "", "/a"), "and one more")
	want(message, 1, accesslog.Log{Path: log.Path, Lines: none}, accesslog.Log{Path: other, Lines: map[string]int{accesslog.ErrSyntax.Error(): 3, lineCounts: 1}})
	if pollIdle > 10*time.Second {
		t.Errorf("a log is tried again after %s", pollIdle)
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
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
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
	case <-time.After(10 * time.Second):
		t.Fatal("they go on")
	}
}
