package announce

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
)

const key = "0123456789abcdef0123456789abcdef"

var epoch = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// site responds to requests for the key file.
func site(_ context.Context, path string) (int, []byte, error) {
	if path == "/"+key+".txt" || path == "/docs/"+key+".txt" {
		return 200, []byte(key), nil
	}
	return 404, nil, nil
}

// engine is a search engine and hub that enforces the rules of the protocols: it reports each rule that a request breaks.
type engine struct {
	*httptest.Server
	*testing.T
	mu       sync.Mutex
	respond  http.HandlerFunc // instead of accepting a request by the rules; nil: as they say
	accepted []string         // URLs, sitemaps and feeds, in order
	requests int
}

func newEngine(t *testing.T) *engine {
	e := &engine{T: t}
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
	e.requests++
	e.breaks(err == nil && r.Header.Get("User-Agent") == "test", "the body ends early, or the user agent is %q", r.Header.Get("User-Agent"))
	var urls []string
	status := 404
	switch r.URL.Path {
	case "/indexnow":
		urls, status = e.submitted(r, body)
	case "/ping":
		status, urls = 200, []string{r.URL.Query().Get("sitemap")}
		e.breaks(r.Method == "GET" && len(body) == 0 && urls[0] == "https://example.com/sitemap.xml?a=b&c", "%s with the sitemap %q", r.Method, urls[0])
	case "/hub":
		form, err := url.ParseQuery(string(body))
		e.breaks(r.Method == "POST" && r.Header.Get("Content-Type") == "application/x-www-form-urlencoded" && err == nil && len(form) == 2, "a hub takes a POST of a form")
		e.breaks(form.Get("hub.mode") == "publish" && form.Get("hub.url") == "https://example.com/sitemap.atom", "the form is %v", form)
		urls, status = form["hub.url"], 204
	}
	if respond == nil {
		e.accepted = append(e.accepted, urls...)
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

// TestSend: what a target may respond, and what follows: when the next request is due, and whether its URLs are sent again.
func TestSend(t *testing.T) {
	const minute, hour = time.Minute, time.Hour
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
		next    time.Duration
		reason  string // a part of it; "": it is accepted
	}{
		"200":                                {IndexNow, reply(200, ""), Gap, ""},
		"202":                                {IndexNow, reply(202, ""), Gap, ""},
		"ping, 200":                          {Ping, reply(200, ""), hour, ""},
		"hub, 204":                           {Hub, reply(204, ""), 5 * minute, ""},
		"endless body":                       {IndexNow, endless, Gap, ""},
		"body that hangs":                    {IndexNow, slow, Gap, ""},
		"hangs":                              {IndexNow, hang, 10 * minute, "Timeout exceeded"},
		"nobody listens":                     {IndexNow, nil, 10 * minute, "refused"},
		"closes the connection":              {IndexNow, hijack(""), 10 * minute, "EOF"},
		"garbage":                            {IndexNow, hijack("\x00\x1b[31m\xff\r\n\r\n"), 10 * minute, "malformed HTTP"},
		"endless header":                     {IndexNow, hijack("HTTP/1.1 200 OK\r\n" + strings.Repeat("X-Header: value\r\n", 100_000)), 10 * minute, "exceeded"},
		"endless 103":                        {IndexNow, hijack(strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n", 100_000)), 10 * minute, "exceeded"},
		"400":                                {IndexNow, reply(400, `{"code": "Invalid"}`), minute, `check that the URL is an endpoint of IndexNow, such as https://api.indexnow.org/indexnow; response: {"code": "Invalid"}`},
		"422":                                {IndexNow, reply(422, ""), minute, "check that visitors know the site as https://example.com, else set base_url"},
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
		"ping, 410":                          {Ping, reply(410, ""), minute, "correct or remove the URL"},
		"hub, 404":                           {Hub, reply(404, ""), minute, "correct or remove the URL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, c := newEngine(t), NewClient("test", 2)
			if name == "hangs" {
				c.http.Timeout = 500 * time.Millisecond
			}
			e.respond = test.respond
			if test.respond == nil && strings.HasPrefix(name, "nobody") {
				e.Close()
			}
			config := e.config(test.kind)
			b := &batch{changes: []Change{{epoch.Unix(), "/a"}}, waiting: 1}
			s := target{Status: Status{Target: config.Targets[0], Waiting: 1}}
			s.begin(b, epoch)
			o := c.send(t.Context(), &notice{config.Targets[0], config, b.changes})
			s.end(b, o, epoch)
			if s.Reason == "" != (test.reason == "") || !strings.Contains(s.Reason, test.reason) || strings.ContainsFunc(s.Reason, unicode.IsControl) || len(s.Reason) > 2000 {
				t.Errorf("reason %q, want %q", s.Reason, test.reason)
			}
			if s.Pause != test.next {
				t.Errorf("next after %s; want %s", s.Pause, test.next)
			}
			isAccepted := s.Accepted == 1
			isRefused := name == "400" || name == "422"
			isTold := s.Told == b.end()
			isUnknown := s.Until == b.end() // what became of it
			if isAccepted != (test.reason == "") || o.Refused != isRefused || isTold != (isAccepted || isRefused) || isUnknown != (o.Status == 0) || s.Waiting == 0 != isTold {
				t.Errorf("%+v", s)
			}
			e.Close() // which waits for requests
			if e.requests > 1 || e.requests == 0 && test.reason == "" {
				t.Errorf("%d requests", e.requests)
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
		want   string // "": it is right
	}{
		{200, key, nil, ""},
		{200, key + "\r\n", nil, ""},
		{200, "<!doctype html>", nil, "it returns 200, and not the key: let requests for it reach the sitemap directive before anything else"},
		{404, key, nil, "returns 404"},
		{0, "", errors.New("upstream \x1b hangs"), `key file https://example.com/docs/` + key + `.txt: upstream \u001b hangs`},
	} {
		config := newEngine(t).config(IndexNow)
		config.Prefix = "/docs"
		n := &notice{config.Targets[0], config, []Change{{1, "/docs/a"}}}
		o := n.checkKeyFile(t.Context(), func(context.Context, string) (int, []byte, error) { return test.status, []byte(test.body), test.err })
		if !strings.Contains(o.Reason, test.want) || (o.Reason == "") != (test.want == "") {
			t.Errorf("%q: %+v", test.body, o)
		}
		n.Kind = Hub
		if o := n.checkKeyFile(t.Context(), nil); o != (Outcome{}) {
			t.Errorf("a hub has no key: %+v", o)
		}
	}
}
