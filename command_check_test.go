package sitemap

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/klauspost/compress/gzip"
	"go.uber.org/goleak"

	"github.com/seed3295b519/caddy-sitemap/internal/lint"
)

// urlsetOf is a document without a flaw.
func urlsetOf(locs ...string) string {
	return documentOf("urlset", "url", locs)
}

func indexOf(locs ...string) string {
	return documentOf("sitemapindex", "sitemap", locs)
}

func documentOf(root, entry string, locs []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<%s xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n", root)
	for _, loc := range locs {
		fmt.Fprintf(&b, "<%s><loc>%s</loc></%[1]s>\n", entry, loc)
	}
	fmt.Fprintf(&b, "</%s>\n", root)
	return b.String()
}

func gzipped(text string) string {
	var b strings.Builder
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	return b.String()
}

// checkSite is a server of answers by path, and with {s} in them for its own address.
type checkSite struct {
	*httptest.Server
	answers map[string]http.HandlerFunc
}

// newCheckSite starts a site. What it does not know is not found.
func newCheckSite(t *testing.T, answers map[string]http.HandlerFunc) *checkSite {
	t.Helper()
	others := goleak.IgnoreCurrent()
	s := &checkSite{answers: answers}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := s.answers[r.URL.RequestURI()]
		if answer == nil {
			http.NotFound(w, r)
			return
		}
		answer(w, r)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
		if err := goleak.Find(others); err != nil {
			t.Errorf("goroutines outlive the command: %v", err)
		}
	})
	return s
}

// expand puts in the site's address.
func (s *checkSite) expand(text string) string { return strings.ReplaceAll(text, "{s}", s.URL) }

// sends answers with a body, in which {s} is the site's address, and headers as pairs.
func sends(body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header()[headers[i]] = nil // an empty one is not to be made up either
			if headers[i+1] != "" {
				w.Header().Set(headers[i], headers[i+1])
			}
		}
		_, _ = io.WriteString(w, strings.ReplaceAll(body, "{s}", "http://"+r.Host))
	}
}

func sendsXML(body string) http.HandlerFunc { return sends(body, "Content-Type", "application/xml") }

func sendsPage(head string, headers ...string) http.HandlerFunc {
	return sends("<!doctype html><title>a page</title>"+head, append([]string{"Content-Type", "text/html"}, headers...)...)
}

func redirects(status int, to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", strings.ReplaceAll(to, "{s}", "http://"+r.Host))
		w.WriteHeader(status)
	}
}

func answers(status int, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
	}
}

// hangs answers nothing, or a body that does not go on.
func hangs(begin string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if begin != "" {
			w.Header().Set("Content-Type", "application/xml")
			_, _ = io.WriteString(w, begin)
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	}
}

// drips sends a byte now and then, without an end.
func drips(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/xml")
	_, _ = io.WriteString(w, `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`)
	for r.Context().Err() == nil {
		_, _ = io.WriteString(w, " ")
		_ = http.NewResponseController(w).Flush()
		_ = sleep(r.Context(), time.Millisecond)
	}
}

// busyOnce answers 503 for a number of times.
func busyOnce(times int, then http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if times--; times >= 0 {
			answers(http.StatusServiceUnavailable, "Retry-After", "0")(w, r)
			return
		}
		then(w, r)
	}
}

// check runs the command, in whose arguments {s} is the site's address.
func (s *checkSite) check(t *testing.T, args ...string) commandRun {
	t.Helper()
	whole := []string{"check"}
	for _, arg := range args {
		whole = append(whole, s.expand(arg))
	}
	return runCommand(t.Context(), nil, whole...)
}

func TestCheckURL(t *testing.T) {
	one := sendsXML(urlsetOf("{s}/"))
	home := map[string]http.HandlerFunc{"/sitemap.xml": one}
	for name, test := range map[string]struct {
		site   map[string]http.HandlerFunc
		args   string
		want   string
		status int
	}{
		"sound":        {site: home},
		"by name":      {site: home, args: "{s}/sitemap.xml"},
		"quick":        {site: home, args: "--timeout 1h {s}/sitemap.xml"},
		"gone":         {args: "{s}/sitemap.xml", want: "{s}/sitemap.xml: error: document-status: answers 404\n", status: 1},
		"no sitemap":   {want: "{s}/sitemap.xml: error: document-status: answers 404\n", status: 1},
		"below":        {site: map[string]http.HandlerFunc{"/docs/sitemap.xml": sendsXML(urlsetOf("{s}/docs/"))}, args: "{s}/docs/"},
		"another word": {args: "ftp://example.com/", want: "", status: 2},
		"named by robots.txt": {site: map[string]http.HandlerFunc{
			"/robots.txt": sends("Sitemap: {s}/a.xml\nSitemap: {s}/b.xml\n", "Content-Type", "text/plain"),
			"/a.xml":      one,
		}, want: "{s}/robots.txt: error: document-status: names a document that answers 404: {s}/b.xml\n", status: 1},
		"robots.txt":         {site: map[string]http.HandlerFunc{"/robots.txt": sends("Sitemap: {s}/a.xml\n", "Content-Type", "text/plain"), "/a.xml": one}, args: "{s}/robots.txt"},
		"no robots.txt":      {args: "{s}/robots.txt", want: "{s}/robots.txt: error: robots-status: answers 404\n", status: 1},
		"robots.txt of HTML": {site: map[string]http.HandlerFunc{"/robots.txt": sendsPage("")}, args: "{s}/robots.txt", want: "{s}/robots.txt: error: content-type: is sent as text/html, not as text/plain\n", status: 1},
		"failing robots.txt": {site: map[string]http.HandlerFunc{"/robots.txt": answers(500), "/sitemap.xml": one},
			want: "{s}/robots.txt: error: robots-status: answers 500, so crawlers leave the whole site alone\n", status: 1},
		"hanging robots.txt": {site: map[string]http.HandlerFunc{"/robots.txt": hangs(""), "/sitemap.xml": one}, args: "--timeout 200ms {s}",
			want: "{s}/robots.txt: error: robots-unreachable: cannot be had: no whole answer within 200ms\n", status: 1},
		"index": {site: map[string]http.HandlerFunc{"/sitemap.xml": sendsXML(indexOf("{s}/a.xml", "{s}/b.xml")), "/a.xml": one, "/b.xml": sendsXML(urlsetOf("{s}/b"))}},
		"missing child": {site: map[string]http.HandlerFunc{"/sitemap.xml": sendsXML(indexOf("{s}/a.xml", "{s}/b.xml")), "/a.xml": one},
			want: "{s}/sitemap.xml:4: error: document-status: names a document that answers 404: {s}/b.xml\n", status: 1},
		"index of indexes": {site: map[string]http.HandlerFunc{"/sitemap.xml": sendsXML(indexOf("{s}/a.xml")), "/a.xml": sendsXML(indexOf("{s}/b.xml"))},
			want: "{s}/sitemap.xml:3: error: index-in-index: names a document that is an index itself; an index lists documents of pages alone: {s}/a.xml\n", status: 1},
		"hanging":     {site: map[string]http.HandlerFunc{"/sitemap.xml": hangs("")}, args: "--timeout 200ms {s}/sitemap.xml", want: "{s}/sitemap.xml: error: document-unreachable: cannot be had: no whole answer within 200ms\n", status: 1},
		"stopping":    {site: map[string]http.HandlerFunc{"/sitemap.xml": hangs("<urlset")}, args: "--timeout 200ms {s}/sitemap.xml", want: "{s}/sitemap.xml: error: document-unread: cannot be read to its end: no whole answer within 200ms\n", status: 1},
		"dripping":    {site: map[string]http.HandlerFunc{"/sitemap.xml": drips}, args: "--timeout 200ms {s}/sitemap.xml", want: "{s}/sitemap.xml: error: document-unread: cannot be read to its end: no whole answer within 200ms\n", status: 1},
		"redirected":  {site: map[string]http.HandlerFunc{"/sitemap.xml": redirects(301, "/a.xml"), "/a.xml": one}, want: "{s}/sitemap.xml: warning: document-redirect: is redirected (301) to {s}/a.xml\n"},
		"round":       {site: map[string]http.HandlerFunc{"/sitemap.xml": redirects(302, "/sitemap.xml")}, want: "{s}/sitemap.xml: warning: document-redirect: is redirected (302) to {s}/sitemap.xml\n{s}/sitemap.xml: error: document-unreachable: cannot be had: the redirects go round in a circle\n", status: 1},
		"to nowhere":  {site: map[string]http.HandlerFunc{"/sitemap.xml": redirects(307, "file:///etc/passwd")}, want: "{s}/sitemap.xml: warning: document-redirect: is redirected (307) to file:///etc/passwd\n{s}/sitemap.xml: error: document-unreachable: cannot be had: not a URL of http or https\n", status: 1},
		"no Location": {site: map[string]http.HandlerFunc{"/sitemap.xml": answers(301)}, want: "{s}/sitemap.xml: error: document-status: answers 301\n", status: 1},
		"once for all": {site: map[string]http.HandlerFunc{"/robots.txt": sends("Sitemap: {s}/a.xml\nSitemap: {s}/b.xml\n", "Content-Type", "text/plain"), "/a.xml": onlyOnce(one), "/b.xml": sendsXML(indexOf("{s}/a.xml"))},
			args: "{s}/ {s}/a.xml {s}/a.xml#top"},
		"as HTML":     {site: map[string]http.HandlerFunc{"/sitemap.xml": sends(urlsetOf("{s}/"), "Content-Type", "text/html")}, want: "{s}/sitemap.xml: error: content-type: is sent as text/html\n", status: 1},
		"as text":     {site: map[string]http.HandlerFunc{"/sitemap.xml": sends(urlsetOf("{s}/"), "Content-Type", "text/plain")}, want: "{s}/sitemap.xml: warning: content-type: is XML sent as text/plain: some crawlers read it only as application/xml or text/xml\n"},
		"as nothing":  {site: map[string]http.HandlerFunc{"/sitemap.xml": sends(urlsetOf("{s}/"), "Content-Type", "")}, want: "{s}/sitemap.xml: warning: content-type: is sent without a Content-Type\n"},
		"text as XML": {site: map[string]http.HandlerFunc{"/s.txt": sendsXML("{s}/\n")}, args: "{s}/s.txt", want: "{s}/s.txt: warning: content-type: is a text sitemap sent as application/xml, not as text/plain\n"},
		"text":        {site: map[string]http.HandlerFunc{"/s.txt": sends("{s}/\n", "Content-Type", "text/plain; charset=utf-8")}, args: "{s}/s.txt"},
		"unpacked":    {site: map[string]http.HandlerFunc{"/sitemap.xml": sends(urlsetOf("{s}/"), "Content-Type", "application/xml", "Content-Encoding", "gzip")}, want: "{s}/sitemap.xml: error: content-encoding: is sent with Content-Encoding: gzip, and is no gzip\n", status: 1},
		"brotli":      {site: map[string]http.HandlerFunc{"/sitemap.xml": sends("x", "Content-Type", "application/xml", "Content-Encoding", "br")}, want: "{s}/sitemap.xml: error: document-unreachable: cannot be had: the answer has an unknown Content-Encoding: br\n", status: 1},
		"a moment":    {site: map[string]http.HandlerFunc{"/sitemap.xml": busyOnce(2, one)}},
		"busy":        {site: map[string]http.HandlerFunc{"/sitemap.xml": busyOnce(9, one)}, want: "{s}/sitemap.xml: error: document-status: answers 503 with Retry-After: 0\n", status: 1},
		"a long time": {site: map[string]http.HandlerFunc{"/sitemap.xml": answers(429, "Retry-After", "31")}, want: "{s}/sitemap.xml: error: document-status: answers 429 with Retry-After: 31\n", status: 1},
		"offline":     {args: "--offline {s}/", status: 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := newCheckSite(t, test.site)
			args := test.args
			if args == "" {
				args = "{s}"
			}
			r := s.check(t, strings.Fields(args)...)
			if want := s.expand(test.want); r.stdout != want || r.status != test.status {
				t.Errorf("got status %d,\n%s%s, want %d,\n%s", r.status, r.stdout, r.stderr, test.status, want)
			}
		})
	}
}

// onlyOnce fails what is asked for twice.
func onlyOnce(then http.HandlerFunc) http.HandlerFunc {
	asked := false
	return func(w http.ResponseWriter, r *http.Request) {
		if asked {
			http.Error(w, "asked for twice", http.StatusTeapot)
			return
		}
		asked = true
		then(w, r)
	}
}

// TestCheckURLPacked is a document that is sent as a file of gzip, in every way.
func TestCheckURLPacked(t *testing.T) {
	for name, test := range map[string]struct {
		headers []string
		twice   bool
		want    string
	}{
		"as gzip":          {headers: []string{"Content-Type", "application/gzip"}},
		"as XML":           {headers: []string{"Content-Type", "application/xml"}, want: "{s}/s.xml.gz: warning: content-type: is a gzip file sent as application/xml without Content-Encoding: some crawlers read it only as application/gzip\n"},
		"encoded":          {headers: []string{"Content-Type", "application/xml", "Content-Encoding", "gzip"}},
		"encoded and gzip": {headers: []string{"Content-Type", "application/gzip", "Content-Encoding", "gzip"}, twice: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newCheckSite(t, nil)
			body := gzipped(urlsetOf(s.URL + "/"))
			if test.twice {
				body = gzipped(body)
			}
			s.answers = map[string]http.HandlerFunc{"/s.xml.gz": sends(body, test.headers...)}
			if r := s.check(t, "{s}/s.xml.gz"); r.stdout != s.expand(test.want) || r.status != 0 {
				t.Errorf("got %+v, want %q", r, s.expand(test.want))
			}
		})
	}
}

// TestCheckURLTooManyRedirects is five, and one more.
func TestCheckURLTooManyRedirects(t *testing.T) {
	site := map[string]http.HandlerFunc{"/6": sendsXML(urlsetOf("{s}/"))}
	for i := range 6 {
		site[fmt.Sprintf("/%d", i)] = redirects(308, fmt.Sprintf("/%d", i+1))
	}
	s := newCheckSite(t, site)
	if r := s.check(t, "{s}/1"); r.status != 0 || strings.Count(r.stdout, "warning: document-redirect: is redirected (308) to") != 5 {
		t.Errorf("five redirects: %+v", r)
	}
	r := s.check(t, "{s}/0")
	if want := s.expand("{s}/0: error: document-unreachable: cannot be had: too many redirects\n"); r.status != 1 || !strings.HasSuffix(r.stdout, want) {
		t.Errorf("six redirects: got %+v, want %q", r, want)
	}
}

// TestCheckPrivate is that a stranger's document has nobody asked but strangers.
func TestCheckPrivate(t *testing.T) {
	inside := newCheckSite(t, map[string]http.HandlerFunc{"/": func(http.ResponseWriter, *http.Request) {
		t.Error("the inside was asked")
	}})
	s := newCheckSite(t, map[string]http.HandlerFunc{
		"/sitemap.xml":    sendsXML(urlsetOf("{s}/")),
		"/robots.txt":     sends("Sitemap: "+inside.URL+"/\n", "Content-Type", "text/plain"),
		"/redirected.xml": redirects(302, inside.URL+"/"),
		"/outside.xml":    sendsXML(urlsetOf(inside.URL + "/")),
	})
	for arg, want := range map[string]string{
		"{s}":                "{s}/robots.txt: error: document-unreachable: names a document that cannot be had: ",
		"{s}/redirected.xml": "{s}/redirected.xml: error: document-unreachable: cannot be had: ",
		// A page's server is asked for its robots.txt first.
		"--fetch {s}/outside.xml": inside.URL + ": warning: pages-unasked: has 1 page not asked for: its robots.txt cannot be had: ",
	} {
		if r := s.check(t, strings.Fields(arg)...); r.status != 1 || !strings.Contains(r.stdout, s.expand(want)+errWebPrivate.Error()) {
			t.Errorf("%s: got %+v, want %q", arg, r, want)
		}
	}
}

// TestCheckURLNobody is a server that is not there.
func TestCheckURLNobody(t *testing.T) {
	s := newCheckSite(t, nil)
	s.Close()
	r := s.check(t, "{s}/sitemap.xml")
	if want := s.expand("{s}/sitemap.xml: error: document-unreachable: cannot be had: dial tcp "); r.status != 1 || !strings.HasPrefix(r.stdout, want) {
		t.Errorf("got %+v, want %q", r, want)
	}
}

// TestWebTrust is which addresses of private networks are asked.
func TestWebTrust(t *testing.T) {
	w := newWeb(time.Second)
	w.trust("http://Intranet:8080/")
	w.trust("https://[::1]/")
	for addr, want := range map[string]bool{
		"intranet:8080": true, "INTRANET:80": true, "intranet:443": true, "intranet:22": false, "other:80": false, "[::1]:443": true, "[::1]:8080": false,
	} {
		if _, got := w.trusted.Load(strings.ToLower(addr)); got != want {
			t.Errorf("%s: got %v", addr, got)
		}
	}
	for addr, want := range map[string]error{
		"93.184.216.34:80": nil, "[2606:2800:220:1::1]:443": nil, "127.0.0.1:80": errWebPrivate, "10.1.2.3:80": errWebPrivate, "169.254.169.254:80": errWebPrivate,
		"[::1]:80": errWebPrivate, "[fd00::1]:80": errWebPrivate, "[::ffff:192.168.0.1]:80": errWebPrivate, "0.0.0.0:80": errWebPrivate,
	} {
		if got := refusePrivate("tcp", addr, nil); got != want {
			t.Errorf("%s: got %v, want %v", addr, got, want)
		}
	}
}

// TestCheckURLEndless is a server that does not stop sending.
func TestCheckURLEndless(t *testing.T) {
	line := "<!--" + strings.Repeat("no page ", 4096) + "-->\n"
	s := newCheckSite(t, map[string]http.HandlerFunc{"/sitemap.xml": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		_, err := io.WriteString(w, `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`)
		for err == nil {
			_, err = io.WriteString(w, line)
		}
	}})
	r := s.check(t, "--timeout", "10m", "{s}/sitemap.xml")
	if want := s.expand("{s}/sitemap.xml: error: document-unread: cannot be read to its end: the answer is too long\n"); r.status != 1 || !strings.Contains(r.stdout, want) {
		t.Errorf("got %+v, want %q", r, want)
	}
}

// TestCheckInterrupted is that a command ends when its context does, and says what it
// has found.
func TestCheckInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := newCheckSite(t, map[string]http.HandlerFunc{"/sitemap.xml": func(w http.ResponseWriter, r *http.Request) {
		cancel()
		hangs("")(w, r)
	}})
	r := runCommand(ctx, nil, "check", "--timeout", "1h", s.URL+"/1", s.URL+"/2", s.URL+"/sitemap.xml", "nosuch")
	want := s.expand("{s}/1: error: document-status: answers 404\n{s}/2: error: document-status: answers 404\n")
	if r.status != exitFailed || r.stdout != want || !strings.Contains(r.stderr, "Error: context canceled\n") {
		t.Errorf("got %+v", r)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("the disk is full") }

// TestCheckUnwritable is that findings that nobody got are no success.
func TestCheckUnwritable(t *testing.T) {
	s := newCheckSite(t, nil)
	for _, flag := range []string{"--json", "--json=false"} {
		var stderr strings.Builder
		status := runCommandInto(t.Context(), nil, brokenWriter{}, &stderr, "check", flag, s.URL)
		if want := "Error: writing what was found: the disk is full\n"; status != exitFailed || !strings.Contains(stderr.String(), want) {
			t.Errorf("got %d, %q, want %q", status, stderr.String(), want)
		}
	}
}

func TestCheckFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sitemap.xml")
	if err := os.WriteFile(file, []byte(urlsetOf("https://example.com/")), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ args, want string }{
		"no argument":      {"", "nothing to check: name a file, a folder, a URL, or - for standard input"},
		"rate":             {"--rate 2", "--rate '2': a number a second or a minute is wanted, such as 2/s, 0.5/s or 30/m"},
		"rate too high":    {"--rate 1001/s", "--rate '1001/s': it is at least one an hour and at most 1000/s"},
		"rate too low":     {"--rate 0.0001/s", "--rate '0.0001/s': it is at least one an hour and at most 1000/s"},
		"no sample":        {"--sample 0", "--sample 0: it is 1 to 100000"},
		"too large sample": {"--sample 100001", "--sample 100001: it is 1 to 100000"},
		"no timeout":       {"--timeout 0s", "--timeout 0s: it is more than nothing"},
		"offline":          {"--offline --fetch", "--offline and --fetch exclude each other"},
		"base of a word":   {"--base-url example.com", "--base-url 'example.com': a URL of http or https is wanted, with neither query nor fragment"},
		"base with query":  {"--base-url http://example.com/?a", "--base-url 'http://example.com/?a': a URL of http or https is wanted, with neither query nor fragment"},
		"base malformed":   {"--base-url http://%zz/", "--base-url 'http://%zz/': a URL of http or https is wanted, with neither query nor fragment"},
		"base with user":   {"--base-url http://a:b@example.com/", "--base-url 'http://a:b@example.com/': a URL of http or https is wanted, with neither query nor fragment"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"check"}, strings.Fields(test.args)...)
			if test.args != "" {
				args = append(args, file)
			}
			if r := runCommand(t.Context(), nil, args...); r.stderr != "Error: "+test.want+"\n" || r.status != exitFailed || r.stdout != "" {
				t.Errorf("got %+v, want %q", r, test.want)
			}
		})
	}
}

var printableASCII = func() string {
	text := "\n"
	for c := ' '; c <= '~'; c++ {
		text += string(c)
	}
	return text
}()

// TestCheckJSON is that each line is an object, and the summary the last.
func TestCheckJSON(t *testing.T) {
	s := newCheckSite(t, map[string]http.HandlerFunc{"/sitemap.xml": redirects(301, "/a.xml")})
	s.answers["/a.xml"] = sends(urlsetOf(s.URL+"/"), "Content-Type", "text/html; \u202e\u009b")
	r := s.check(t, "--json", "{s}/sitemap.xml")
	lines := strings.Split(strings.TrimSuffix(r.stdout, "\n"), "\n")
	if len(lines) != 3 || r.stderr != "" || r.status != 1 {
		t.Fatalf("got %+v", r)
	}
	if strings.Trim(r.stdout, printableASCII) != "" || !strings.Contains(lines[1], `\u202e\u009b`) {
		t.Errorf("not for a terminal: %q", r.stdout)
	}
	for i, line := range lines[:2] {
		var f struct{ Severity, File, Code, Message, URL string }
		if err := json.Unmarshal([]byte(line), &f); err != nil || f.File != s.URL+"/sitemap.xml" || f.Message == "" || f.Severity != []string{"warning", "error"}[i] {
			t.Errorf("%s: %+v, %v", line, f, err)
		}
	}
	var last struct {
		Summary struct {
			Errors, Warnings int
			Asked            *int
			Codes            map[string]int
		}
	}
	if err := json.Unmarshal([]byte(lines[2]), &last); err != nil || last.Summary.Errors != 1 || last.Summary.Warnings != 1 || last.Summary.Asked == nil || last.Summary.Codes["document-redirect"] != 1 {
		t.Errorf("%s: %+v, %v", lines[2], last, err)
	}
	if r := s.check(t, "--json", "--quiet", "{s}/sitemap.xml"); r.stdout != lines[1]+"\n" || r.stderr != "" {
		t.Errorf("quietly: got %+v, want %q", r, lines[1])
	}
	r = s.check(t, "--quiet", "{s}/sitemap.xml")
	if strings.Count(r.stdout, "\n") != 1 || !strings.Contains(r.stdout, ": error: ") || r.stderr != "" {
		t.Errorf("quietly: got %+v", r)
	}
}

// TestPrintable is that nothing of a stranger's gets to a terminal but what it shows.
func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain ~":               "plain ~",
		"Zoë 世界":                "Zoë 世界",
		"\x1b[31m\r\nb\x00\x7f": `\u001b[31m\u000d\u000ab\u0000\u007f`,
		"\u009b\u202e\u2028":    `\u009b\u202e\u2028`,
		"\xff\ufffd":            "\\xff\ufffd",
		"a\U000e0001":           `a\udb40\udc01`,
		"\t":                    `\u0009`,
	} {
		if got := printable(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	var got string
	if err := json.Unmarshal([]byte(`"`+printable("\u009b\u202e\U000e0001")+`"`), &got); err != nil || got != "\u009b\u202e\U000e0001" {
		t.Errorf("as JSON: %q, %v", got, err)
	}
}

// FuzzPrintable is that any text becomes a line of what can be shown, and JSON stays
// the same JSON.
func FuzzPrintable(f *testing.F) {
	f.Add("\x1b[31m\u009b\u202e\xff\U000e0001 \\u0041\"")
	f.Fuzz(func(t *testing.T, text string) {
		for _, r := range printable(text) {
			if !unicode.IsPrint(r) {
				t.Fatalf("%q has %q", printable(text), r)
			}
		}
		encoded, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		var want, got string
		if err := json.Unmarshal(encoded, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(printable(string(encoded))), &got); err != nil || got != want {
			t.Fatalf("got %q, %v, want %q", got, err, want)
		}
	})
}

// TestCheckSummary is what the last line says.
func TestCheckSummary(t *testing.T) {
	for want, s := range map[string]checkSummary{
		"checked 1 document with 2 pages: 0 errors, 1 warning\n":              {Summary: lint.Summary{Documents: 1, URLs: 2, Warnings: 1}},
		"checked 2 documents with 1 page, asked for 1: 1 error, 0 warnings\n": {Summary: lint.Summary{Documents: 2, URLs: 1, Errors: 1}, Asked: 1},
	} {
		var b strings.Builder
		(&checkReport{out: bufio.NewWriter(io.Discard)}).summary(&b, s)
		if b.String() != want {
			t.Errorf("got %q, want %q", b.String(), want)
		}
	}
}

// TestCheckDocs is that the documentation shows what the command says, and all its flags.
func TestCheckDocs(t *testing.T) {
	readme, err := os.ReadFile("docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(readme), "## Checking a sitemap\n")
	section, _, _ = strings.Cut(section, "\n## ")
	_, example, _ := strings.Cut(section, "\n    $ caddy sitemap ")
	args, example, _ := strings.Cut(example, "\n")
	example, _, _ = strings.Cut(example, "\n\n")
	want := strings.ReplaceAll("\n"+example+"\n", "\n    ", "\n")
	t.Chdir(filepath.Join("testdata", "check"))
	if r := runCommand(t.Context(), nil, strings.Fields(args)...); "\n"+r.stdout+r.stderr != want || r.status != exitErrors {
		t.Errorf("it shows%s, want\n%s%s", want, r.stdout, r.stderr)
	}
	flags := 0
	for line := range strings.Lines(runCommand(t.Context(), nil, "check", "--help").stdout) {
		name, ok := strings.CutPrefix(line, "      --")
		if !ok {
			continue
		}
		flags++
		if name, _, _ = strings.Cut(name, " "); !strings.Contains(section, "| `--"+name) {
			t.Errorf("docs/cli.md has nothing of --%s", name)
		}
	}
	if flags == 0 || flags != strings.Count(section, "\n| `--") {
		t.Errorf("docs/cli.md has %d flags, the command %d", strings.Count(section, "\n| `--"), flags)
	}
}

// TestCheckOutputOrder is that a failure is said behind what was found before it.
func TestCheckOutputOrder(t *testing.T) {
	dir := t.TempDir()
	file, other := filepath.Join(dir, "sitemap.xml"), filepath.Join(dir, "other.xml")
	for _, name := range []string{file, other} {
		if err := os.WriteFile(name, []byte("no\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var both strings.Builder
	runCommandInto(t.Context(), nil, &both, &both, "check", file, other, filepath.Join(dir, "nosuch"))
	lines := strings.Split(both.String(), "\n")
	if len(lines) != 5 || !strings.HasPrefix(lines[1], other+":1: error: ") || !strings.HasPrefix(lines[2], "Error: ") || !strings.HasPrefix(lines[3], "checked 2 documents") {
		t.Errorf("got %q", both.String())
	}
}
