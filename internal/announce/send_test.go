package announce

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
)

const key = "0123456789abcdef0123456789abcdef"

var epoch = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// site responds to what a runner fetches: the key file; pages at /back, which are back; an error for /fails.
func site(_ context.Context, path string) (int, []byte, error) {
	switch {
	case path == "/"+key+".txt" || path == "/docs/"+key+".txt":
		return 200, []byte(key), nil
	case strings.HasPrefix(path, "/fails"):
		return 0, nil, errors.New("upstream hangs")
	}
	return map[bool]int{true: 200, false: 404}[strings.HasPrefix(path, "/back")], nil, nil
}

// isGone is what a runner finds out about removed pages at the same paths.
func isGone(ctx context.Context, path string) (bool, error) {
	status, _, err := site(ctx, path)
	return status == 404, err
}

// engine is a search engine and hub that enforces the rules of the protocols: it reports each rule that a request breaks.
type engine struct {
	*httptest.Server
	*testing.T
	mu       sync.Mutex
	now      time.Time              // which the test sets
	respond  http.HandlerFunc       // instead of accepting a request by the rules; nil: as they say
	accepted map[string][]time.Time // URLs, sitemaps and feeds, by when
	requests []time.Time
}

func newEngine(t *testing.T) *engine {
	e := &engine{T: t, now: epoch, accepted: make(map[string][]time.Time)}
	e.Server = httptest.NewServer(e)
	t.Cleanup(e.Close)
	return e
}

func (e *engine) breaks(ok bool, rule string, args ...any) {
	if !ok {
		e.Errorf("a request breaks a rule: "+rule, args...)
	}
}

func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	e.mu.Lock()
	respond := e.respond
	e.requests = append(e.requests, e.now)
	e.breaks(err == nil && r.Header.Get("User-Agent") == "test", "the body ends early, or the user agent is %q", r.Header.Get("User-Agent"))
	var urls []string
	least, status := 5*time.Minute, 404
	switch r.URL.Path {
	case "/indexnow":
		least = 10 * time.Minute
		urls, status = e.submitted(r, body)
	case "/ping":
		least, status, urls = time.Hour, 200, []string{r.URL.Query().Get("sitemap")}
		e.breaks(r.Method == "GET" && len(body) == 0 && urls[0] == "https://example.com/sitemap.xml?a=b&c", "%s with the sitemap %q", r.Method, urls[0])
	case "/hub":
		form, err := url.ParseQuery(string(body))
		e.breaks(r.Method == "POST" && r.Header.Get("Content-Type") == "application/x-www-form-urlencoded" && err == nil && len(form) == 2, "a hub takes a POST of a form")
		e.breaks(form.Get("hub.mode") == "publish" && form.Get("hub.url") == "https://example.com/sitemap.atom", "the form is %v", form)
		urls, status = form["hub.url"], 204
	}
	if respond == nil {
		for _, u := range urls {
			if times := e.accepted[u]; len(times) > 0 {
				e.breaks(e.now.Sub(times[len(times)-1]) >= least, "%s again after %s", u, e.now.Sub(times[len(times)-1]))
			}
			e.accepted[u] = append(e.accepted[u], e.now)
		}
	}
	e.mu.Unlock()
	if respond != nil {
		respond(w, r)
		return
	}
	w.WriteHeader(status)
}

// submitted checks a request of IndexNow, and returns its URLs.
func (e *engine) submitted(r *http.Request, body []byte) ([]string, int) {
	var s struct {
		Host, Key, KeyLocation *string
		URLList                []string
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	media, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	e.breaks(r.Method == "POST" && media == "application/json" && params["charset"] == "utf-8", "%s of %s", r.Method, r.Header.Get("Content-Type"))
	if err := d.Decode(&s); err != nil || !bytes.Contains(body, []byte(`"keyLocation":`)) || s.Host == nil || s.Key == nil || s.KeyLocation == nil {
		e.breaks(false, "the body is %.100q: %v", body, err)
		return nil, 400
	}
	status, content, _ := site(r.Context(), strings.TrimPrefix(*s.KeyLocation, "https://example.com"))
	e.breaks(IsKey(*s.Key) && status == 200 && string(content) == *s.Key, "key %s at %s", *s.Key, *s.KeyLocation)
	e.breaks(len(s.URLList) > 0 && len(s.URLList) <= 10_000, "%d URLs", len(s.URLList))
	folder, seen := strings.TrimSuffix(*s.KeyLocation, *s.Key+".txt"), make(map[string]bool)
	for _, u := range s.URLList {
		parsed, err := url.Parse(u)
		e.breaks(err == nil && parsed.Host == *s.Host && strings.HasPrefix(u, folder), "%s is not on %s, or not below %s", u, *s.Host, folder)
		e.breaks(!seen[u], "%s is there twice", u)
		seen[u] = true
	}
	return s.URLList, 202
}

// set says how the engine responds from now on, which is so much later.
func (e *engine) set(respond http.HandlerFunc, later time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.respond, e.now = respond, e.now.Add(later)
}

// reply responds with a status, text and header fields.
func reply(code int, text string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, text)
	}
}

// config announces to an engine, by some protocols.
func (e *engine) config(kinds ...Kind) Config {
	c := Config{Origin: "https://example.com", Sitemap: "https://example.com/sitemap.xml?a=b&c", Feed: "https://example.com/sitemap.atom", Key: key}
	for _, kind := range kinds {
		path := map[Kind]string{IndexNow: "/indexnow", Ping: "/ping?sitemap={sitemap}&x=1", Hub: "/hub"}[kind]
		c.Targets = append(c.Targets, Target{kind, e.URL + path})
	}
	return c
}

// newQueue returns the queue of a site that was crawled.
func newQueue(t testing.TB, c Config) *Queue {
	q := restart(t, nil, c)
	q.Update(Update{First: true, Gathered: true, Complete: true, Crawled: true, Changes: indexing.Changes{Added: dated(1, "/old")}, Sitemap: true, Feed: true})
	return q
}

// restart returns the queue as a new process finds it that was stored.
func restart(t testing.TB, stored []byte, c Config) *Queue {
	t.Helper()
	q, err := New(stored, c)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// dated are pages that have changed, with a date. Added ones were listed before, with another text.
func dated(lastMod int64, paths ...string) changes {
	return pages(indexing.Change{LastMod: lastMod, Own: true}, paths)
}

// same are pages that have the text that they had when they were last listed, if they were.
func same(paths ...string) changes { return pages(indexing.Change{LastMod: 1}, paths) }

// gone are removed pages that may be gone.
func gone(paths ...string) changes { return pages(indexing.Change{Gone: true}, paths) }

func pages(c indexing.Change, paths []string) (l changes) {
	for _, c.Path = range paths {
		l.First = append(l.First, c)
	}
	return changes{Count: len(paths), First: l.First}
}

// changed is an Update with changed pages, and with a changed sitemap and feed.
func changed(paths ...string) Update {
	u := complete
	u.Changes.Changed = dated(1, paths...)
	u.Sitemap = true
	u.Feed = true
	return u
}

// complete is the Update of a refresh that has ended.
var complete = Update{Gathered: true, Complete: true, Crawled: true}

func numbered(n int) (paths []string) {
	for i := range n {
		paths = append(paths, fmt.Sprintf("/%06d", i))
	}
	return paths
}

// pathsOf returns what a job of IndexNow announces; nil: there is none.
func pathsOf(t testing.TB, job *Job) (paths []string) {
	if job == nil {
		return nil
	}
	var s struct{ URLList []string }
	if err := json.Unmarshal(job.Body, &s); err != nil || len(s.URLList) != job.URLs {
		t.Fatalf("%d URLs instead of %d: %v", len(s.URLList), job.URLs, err)
	}
	for _, u := range s.URLList {
		paths = append(paths, strings.TrimPrefix(u, "https://example.com"))
	}
	return paths
}

// hijack responds with bytes as they are, and closes the connection.
func hijack(raw string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_, _ = io.WriteString(conn, raw)
			conn.Close()
		}
	}
}

func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func bomb(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Encoding", "gzip")
	w.WriteHeader(500)
	_, _ = gzip.NewWriter(w).Write(make([]byte, 64<<20))
}

// TestSend: what a target may respond, and what follows: when the next request is due, or that there is none.
func TestSend(t *testing.T) {
	const stop, minute, hour = -1, time.Minute, time.Hour
	endless := func(w http.ResponseWriter, _ *http.Request) {
		if _, err := w.Write(make([]byte, 64<<20)); err == nil {
			t.Error("64 MiB of a body were read")
		}
	}
	slow := func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		hang(w, r)
	}
	upgrade := func(w http.ResponseWriter, r *http.Request) {
		conn, _, _ := w.(http.Hijacker).Hijack()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		_, _ = conn.Read(make([]byte, 1)) // until it is closed
		_ = conn.Close()
	}
	for name, test := range map[string]struct {
		kind    Kind
		respond http.HandlerFunc
		next    time.Duration // stop: nothing is sent any more
		reason  string        // a part of it; "": it is accepted
	}{
		"200":                                {IndexNow, reply(200, ""), Gap, ""},
		"202":                                {IndexNow, reply(202, ""), Gap, ""},
		"ping, 200":                          {Ping, reply(200, ""), hour, ""},
		"hub, 204":                           {Hub, reply(204, ""), 5 * minute, ""},
		"endless body":                       {IndexNow, endless, Gap, ""},
		"body that hangs":                    {IndexNow, slow, Gap, ""},
		"hangs":                              {IndexNow, hang, minute, "Timeout exceeded"},
		"nobody listens":                     {IndexNow, nil, minute, "refused"},
		"closes the connection":              {IndexNow, hijack(""), minute, "EOF"},
		"garbage":                            {IndexNow, hijack("\x00\x1b[31m\xff\r\n\r\n"), minute, "malformed HTTP"},
		"endless header":                     {IndexNow, hijack("HTTP/1.1 200 OK\r\n" + strings.Repeat("X-Header: value\r\n", 100_000)), minute, "exceeded"},
		"endless 103":                        {IndexNow, hijack(strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n", 100_000)), minute, "exceeded"},
		"400":                                {IndexNow, reply(400, `{"code": "Invalid"}`), stop, `check that the URL is an endpoint of IndexNow, such as https://api.indexnow.org/indexnow; response: {"code": "Invalid"}; nothing is sent until the configuration is reloaded`},
		"422":                                {IndexNow, reply(422, ""), stop, "check that visitors know the site as https://example.com, else set base_url"},
		"403":                                {IndexNow, reply(403, ""), minute, "check that https://example.com/" + key + ".txt can be reached from the internet"},
		"404":                                {IndexNow, reply(404, ""), minute, "correct or remove the URL"},
		"429":                                {IndexNow, reply(429, ""), 10 * minute, "status 429"},
		"429 with seconds":                   {IndexNow, reply(429, "", "Retry-After", "120"), 2 * minute, "status 429"},
		"503 with a second":                  {Hub, reply(503, "", "Retry-After", "1"), minute, "status 503"},
		"503 with a year":                    {IndexNow, reply(503, "", "Retry-After", "31536000"), 24 * hour, "status 503"},
		"101":                                {IndexNow, upgrade, minute, "status 101"},
		"301":                                {IndexNow, reply(301, "", "Location", "/elsewhere"), minute, "configure the URL to which it redirects, if that is right: /elsewhere"},
		"gzip that inflates":                 {IndexNow, bomb, minute, "status 500"},
		"text that would control a terminal": {IndexNow, reply(500, "<b>\x1b[2J\u202enever\r\n\x00\xff\xfe"), minute, `response: <b>\u001b[2J\u202enever \u0000`},
		"ping, 410":                          {Ping, reply(410, ""), stop, "correct or remove the URL"},
		"hub, 404":                           {Hub, reply(404, ""), stop, "correct or remove the URL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, c := newEngine(t), NewClient("test", 2)
			if name == "hangs" {
				c.http.Timeout = 500 * time.Millisecond
			}
			q := newQueue(t, e.config(test.kind))
			q.Update(changed("/a"))
			if e.set(test.respond, 0); test.respond == nil {
				e.Close()
			}
			job, _ := q.Begin(epoch)
			q.End(job, c.Send(t.Context(), job, site), epoch)
			s := q.Status(epoch)[0]
			if s.Reason == "" != (test.reason == "") || !strings.Contains(s.Reason, test.reason) || strings.ContainsFunc(s.Reason, unicode.IsControl) || len(s.Reason) > 2000 {
				t.Errorf("reason %q, want %q", s.Reason, test.reason)
			}
			if isUnsent := test.respond == nil; (s.Sent == 0) != isUnsent {
				t.Errorf("%d were sent", s.Sent)
			}
			q.Update(changed("/b"))
			s.Next = q.Status(epoch)[0].Next
			if s.Stopped != (test.next == stop) || test.next != stop && s.Next.Sub(epoch) != test.next {
				t.Errorf("stopped %t, next after %s; want %s", s.Stopped, s.Next.Sub(epoch), test.next)
			}
			if isAccepted, again := s.Accepted == 1, s.Waiting == 1; isAccepted != (test.reason == "") || again == (isAccepted || s.Stopped) || (s.Refused == 1) != s.Stopped {
				t.Errorf("%+v", s)
			}
			e.Close() // which waits for requests
			if n := len(e.requests); n > 1 || n == 0 && test.reason == "" {
				t.Errorf("%d requests", n)
			}
			if job, _ := q.Begin(epoch.Add(24 * hour)); (job == nil) != s.Stopped {
				t.Errorf("%v a day later", job)
			}
			job, _ = restart(t, q.Encode(), e.config(test.kind)).Begin(epoch.Add(26 * hour))
			if job == nil {
				t.Errorf("nothing is sent after a restart")
			}
		})
	}
}

// TestKeyFile: nothing is sent while visitors do not get the key where it is said to be.
func TestKeyFile(t *testing.T) {
	for _, test := range []struct {
		status int
		body   string
		err    error
		want   string // "": it is sent
	}{
		{200, key, nil, ""},
		{200, key + "\r\n", nil, ""},
		{200, "<!doctype html>", nil, "it returns 200, and not the key: let requests for it reach the sitemap directive before anything else"},
		{404, key, nil, "returns 404"},
		{0, "", errors.New("upstream \x1b hangs"), `key file https://example.com/docs/` + key + `.txt: upstream \u001b hangs`},
	} {
		e := newEngine(t)
		config := e.config(IndexNow)
		config.Prefix = "/docs"
		q := newQueue(t, config)
		q.Update(changed("/docs/a"))
		job, _ := q.Begin(epoch)
		o := NewClient("test", 1).Send(t.Context(), job, func(context.Context, string) (int, []byte, error) { return test.status, []byte(test.body), test.err })
		s, n := q.End(job, o, epoch), map[bool]int{true: 1}[test.want == ""]
		if !strings.Contains(s.Reason, test.want) || s.Accepted != n || s.Sent != n || len(e.requests) != n || n == 0 && s.Next.Sub(epoch) != time.Minute {
			t.Errorf("%q: %d requests, %+v", test.body, len(e.requests), s)
		}
	}
}

// TestPauses: after how many minutes the next request may follow some responses. Failures in a row double them, up to six
// hours; an accepted request ends that. A key that is refused is tried for a day, whatever else fails meanwhile.
func TestPauses(t *testing.T) {
	const doubled = "1 2 4 8 16 32 64 128 256 360 360 360 "
	n := func(status, n int) []int { return slices.Repeat([]int{status}, n) }
	for _, test := range []struct {
		responses []int
		want      string
	}{
		{slices.Concat(n(503, 12), []int{200, 503}), doubled + "0.17 1"},
		{n(403, 14), doubled + "stop 1"}, // a restart begins anew
		{slices.Concat(n(403, 9), n(503, 3), n(403, 3)), doubled + "360 360 360"},
		{slices.Concat(n(503, 3), n(403, 13)), doubled + "360 360 360 stop"},
		{slices.Concat(n(403, 9), []int{200}, n(403, 13)), "1 2 4 8 16 32 64 128 256 0.17 " + doubled + "stop"},
	} {
		q, now, got := newQueue(t, indexNowOnly), epoch, []string(nil)
		for i, status := range test.responses {
			q.Update(changed(fmt.Sprint("/", i)))
			if i > 0 {
				if job, next := q.Begin(now.Add(-time.Second)); job != nil || !next.Equal(now) {
					t.Fatalf("%s: sent too early: %t; next %s", got, job != nil, next)
				}
			}
			job, _ := q.Begin(now)
			s := q.End(job, Outcome{Requested: true, Status: status, Reason: "refused"}, now)
			got, now = append(got, fmt.Sprint(math.Round(100*s.Next.Sub(now).Minutes())/100)), s.Next
			if s.Stopped {
				got[i], now = "stop", s.Last.Add(Gap)
				if q = restart(t, q.Encode(), indexNowOnly); !strings.HasSuffix(s.Reason, "nothing is sent until the configuration is reloaded") || s.Waiting != 0 {
					t.Errorf("%+v", s)
				}
			} else if !slices.Contains(test.responses[:i+1], 403) { // which a restart forgets
				q = restart(t, q.Encode(), indexNowOnly)
			}
		}
		if got := strings.Join(got, " "); got != test.want {
			t.Errorf("minutes: %v, want %s", got, test.want)
		}
	}
}

// TestClock: a clock that jumps neither stops a target nor lets it be sent more than a day allows.
func TestClock(t *testing.T) {
	for name, jump := range map[string]time.Duration{"an hour back": -time.Hour, "years back": -50 * 365 * 24 * time.Hour, "an hour ahead": time.Hour, "years ahead": 50 * 365 * 24 * time.Hour} {
		c := indexNowOnly
		c.Daily = 100 // a tenth is kept for added pages
		q, now, sent := newQueue(t, c), epoch, 0
		for i := range 20 {
			q.Update(changed(numbered(8 * (i + 1))[8*i:]...))
			q = restart(t, q.Encode(), c)
			if i == 10 {
				now = now.Add(jump)
			}
			if job, _ := q.Begin(now); job != nil {
				sent += job.URLs
				q.End(job, Outcome{Status: 200}, now)
			} else if i != 10 && sent < 90 {
				t.Errorf("%s: nothing is due at %s", name, now)
			}
			now = now.Add(5 * time.Minute)
		}
		if want := map[bool]int{true: 8 * 20, false: 90}[jump > 24*time.Hour]; sent != want {
			t.Errorf("%s: %d URLs, want %d", name, sent, want)
		}
	}
}
