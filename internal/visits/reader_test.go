package visits

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/origin"
)

// site is one of a host.
type site struct {
	host    string
	visited Visited
	signals []string
	writes  []string
}

func (s *site) Write(v *Visit, at time.Time) {
	s.writes = append(s.writes, fmt.Sprint(v.Method, " ", v.URI, " ", v.Status, " ", v.Location, " ", at.Unix()))
}

func (s *site) Note(path string, at int64, isSignal bool) {
	if isSignal {
		s.signals = append(s.signals, path)
		return
	}
	s.visited.Add(path, at, 1000)
}

// reading is a [Reader] of one log with a clock of its own.
type reading struct {
	testing.TB
	*Reader
	clock time.Time
	sites []*site
}

func newReading(t testing.TB, sites ...*site) *reading {
	r := &reading{TB: t, clock: time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC), sites: sites}
	r.Reader = &Reader{
		Files:   []string{filepath.Join(t.TempDir(), "access.log")},
		History: month,
		URLs:    origin.NewCleaner([]string{"page"}),
	}
	return r
}

func (r *reading) add(lines ...string) {
	r.Helper()
	f, err := os.OpenFile(r.Files[0], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(strings.Join(lines, "\n") + "\n")
		_ = f.Close()
	}
	if err != nil {
		r.Fatal(err)
	}
}

func (r *reading) poll() []Log {
	byHost := make(map[string][]Site)
	for _, s := range r.sites {
		byHost[s.host] = append(byHost[s.host], s)
		byHost[""] = append(byHost[""], s)
	}
	return r.Poll(r.Context(), r.clock, byHost)
}

// want reads, and compares what became of all lines so far.
func (r *reading) want(want map[string]int) {
	r.Helper()
	if got := r.poll()[0].Lines; !reflect.DeepEqual(got, want) {
		r.Errorf("got %v, want %v", got, want)
	}
}

func (r *reading) wantVisits(s *site, want ...string) {
	r.Helper()
	if got := s.visited.Sorted(0); fmt.Sprint(got) != fmt.Sprint(want) {
		r.Errorf("%s: got %q, want %q", s.host, got, want)
	}
}

// seenAt is a line as Caddy writes it.
func seenAt(at time.Time, host, uri string) string {
	return fmt.Sprintf(`{"level":"info","ts":%d.5,"logger":"http.log.access","msg":"handled request","request":{"method":"GET","host":%q,"uri":%q},"status":200,"resp_headers":{"Content-Type":["text/html"]}}`, at.Unix(), host, uri)
}

// TestLines: what becomes of the lines of a log.
func TestLines(t *testing.T) {
	now := time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)
	ago := now.Add(-time.Hour)
	const host = "named.example"
	for name, test := range map[string]struct {
		line, want string
		path       string // that is remembered then; "": none
		at         time.Time
	}{
		"a page":             {seenAt(ago, host, "/docs/a"), Counts, "/docs/a", ago},
		"a query":            {seenAt(ago, host, "/docs/a?utm_source=x&page=2&x=1"), Counts, "/docs/a?page=2", ago},
		"no clean path":      {seenAt(ago, host, "/docs//a"), "no clean path", "", now},
		"another host":       {seenAt(ago, "other.example", "/docs/a"), otherHost, "", now},
		"older than history": {seenAt(now.Add(-month-time.Second), host, "/docs/a"), tooOld, "", now},
		"a time to come":     {seenAt(now.Add(time.Hour), host, "/docs/a"), Counts, "/docs/a", now},
		"no time":            {strings.Replace(seenAt(ago, host, "/docs/a"), `"ts"`, `"t"`, 1), Counts, "/docs/a", now},
		"another log":        {`{"level":"info","ts":1,"logger":"tls","msg":"renewed"}`, noRequest, "", now},
		"no line of a log":   {"hello", unread, "", now},
	} {
		t.Run(name, func(t *testing.T) {
			s := &site{host: host}
			r := newReading(t, s)
			r.add(test.line)
			r.want(map[string]int{test.want: 1})
			if got := s.visited.Sorted(0); test.path == "" && len(got) > 0 || test.path != "" && s.visited.At(test.path) != test.at.Unix() {
				t.Errorf("got %q, at %d, want %q at %d", got, s.visited.At(test.path), test.path, test.at.Unix())
			}
		})
	}
}

// TestHosts: a line is for the site that its host is of, one without a host for all.
func TestHosts(t *testing.T) {
	one, two := &site{host: "one.example"}, &site{host: "two.example"}
	r := newReading(t, one, two)
	r.add(seenAt(r.clock, "one.example:8080", "/one"), seenAt(r.clock, "TWO.example", "/two"), seenAt(r.clock, "three.example", "/three"), seenAt(r.clock, "", "/both"))
	r.want(map[string]int{Counts: 3, otherHost: 1})
	r.wantVisits(one, "/both", "/one")
	r.wantVisits(two, "/both", "/two")
}

// goneAt is a line of a page that is gone, as Caddy writes it.
func goneAt(at time.Time, host, uri string) string {
	return strings.Replace(seenAt(at, host, uri), `"status":200`, `"status":404`, 1)
}

// TestSignalsOfLines: of a log, what happened just now is told to the site of its host, and no visit is kept for it.
func TestSignalsOfLines(t *testing.T) {
	a := &site{host: "a.example"}
	b := &site{host: "b.example"}
	r := newReading(t, a, b)
	const chrome = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36"
	ago := func(d time.Duration) time.Time { return r.clock.Add(-d) }
	moved := strings.NewReplacer(`"status":200`, `"status":301`, `"Content-Type":["text/html"]`, `"Location":["/new"],"Content-Type":["text/html"]`)
	r.add(
		goneAt(ago(30*time.Minute), "a.example", "/old"),
		goneAt(ago(9*time.Minute), "a.example", "/gone?utm_source=x"),
		goneAt(ago(-time.Hour), "b.example", "/a-clock-that-is-ahead"),
		strings.Replace(goneAt(ago(0), "a.example", "/no-time"), `"ts"`, `"t"`, 1),
		moved.Replace(seenAt(ago(0), "b.example", "/moved")),
		seenAt(ago(0), "b.example", "/there"),
		`198.51.100.7 - - [`+ago(0).Format("02/Jan/2006:15:04:05 -0700")+`] "GET /gone-in-all HTTP/1.1" 410 12 "-" "`+chrome+`"`,
	)
	r.poll()
	if want := []string{"/gone", "/gone-in-all"}; !slices.Equal(a.signals, want) {
		t.Errorf("got %q, want %q", a.signals, want)
	}
	if want := []string{"/a-clock-that-is-ahead", "/moved", "/gone-in-all"}; !slices.Equal(b.signals, want) {
		t.Errorf("got %q, want %q", b.signals, want)
	}
	r.wantVisits(a)
	r.wantVisits(b, "/there")
}
