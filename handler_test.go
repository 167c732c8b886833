package sitemap

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed3295b519/caddy-sitemap/internal/document"
)

// serve has the handler answer a request, before a handler that says so in a header, and
// returns the status that the client gets.
func (b *bench) serve(r *http.Request) (header http.Header, status int, err error) {
	w := httptest.NewRecorder()
	err = b.handler.ServeHTTP(w, r, respond(http.StatusOK, "X-Next", "reached"))
	var herr caddyhttp.HandlerError
	if errors.As(err, &herr) {
		return w.Header(), herr.StatusCode, err
	}
	return w.Header(), w.Code, err
}

func (b *bench) get(target string) (http.Header, int, error) {
	return b.serve(b.request(http.MethodGet, target, nil))
}

// TestOtherRequests: what is not for one of a site's documents reaches the next handler
// as it is. It costs nothing, unless its name begins as that of the sitemap: what a pattern costs is not ours, and the race detector
// has it allocate.
func TestOtherRequests(t *testing.T) {
	for name, test := range map[string]struct{ target, rewritten string }{
		"page":      {"/docs/guide/install.html", ""},
		"home":      {"/", ""},
		"near miss": {"/sitemap.html", ""},
		"no shard":  {"/sitemap-0123456789aG.xml", ""},
		"rewritten": {"/app/settings", "/index.html"},
		"stripped":  {"/docs/guide/install.html", "/guide/install.html"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(h *Handler) { h.mounts, h.IndexNow = mounts{{prefix: "/docs"}}, new(IndexNow) })
			w, r := httptest.NewRecorder(), b.request(http.MethodGet, test.target, nil)
			if test.rewritten != "" {
				r.URL.Path = test.rewritten
			}
			wrong := errors.New("of the next handler")
			err := b.handler.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(nw http.ResponseWriter, nr *http.Request) error {
				if nw != w || nr != r {
					t.Error("the next handler got another writer or request")
				}
				return wrong
			}))
			if err != wrong || len(w.Header()) != 0 || len(b.app.sites) != 0 {
				t.Errorf("got error %v, headers %v, %d sites", err, w.Header(), len(b.app.sites))
			}
			if strings.HasPrefix(test.target, "/sitemap") {
				return
			}
			next := respond(http.StatusOK)
			if n := testing.AllocsPerRun(100, func() { _ = b.handler.ServeHTTP(w, r, next) }); n != 0 {
				t.Errorf("got %v allocations, want none", n)
			}
		})
	}
}

// TestWants: which paths are those of documents, as they come and as they came before a
// rewrite, which count less. Visitors do not choose prefixes.
func TestWants(t *testing.T) {
	no := false
	docs := mounts{{prefix: "/docs"}, {prefix: "/my%20docs"}}
	both := append(mounts{{}}, docs...)
	sections := &Handler{Sections: given("blog /blog/*"), mounts: both}
	for name, test := range map[string]struct {
		handler    *Handler
		path, sent string // "": the same
		want       wanted
		prefix     string
		ok         bool
	}{
		"index":                      {&Handler{}, "/sitemap.xml", "", wanted{name: ".xml"}, "", true},
		"file":                       {&Handler{}, "/sitemap.xml.gz", "", wanted{name: ".xml.gz"}, "", true},
		"text":                       {&Handler{}, "/sitemap.txt", "", wanted{name: ".txt"}, "", true},
		"shard":                      {&Handler{}, "/sitemap-0123456789ab.txt", "", wanted{name: "-0123456789ab.txt"}, "", true},
		"robots.txt":                 {&Handler{}, "/robots.txt", "", wanted{robots: true}, "", true},
		"robots.txt of the site":     {&Handler{RobotsTxt: &no}, "/robots.txt", "", wanted{}, "", false},
		"upper case":                 {&Handler{}, "/Sitemap.xml", "", wanted{}, "", false},
		"below":                      {&Handler{}, "/docs/sitemap.xml", "", wanted{}, "", false},
		"path":                       {&Handler{Path: "/a/map.xml"}, "/a/map.xml", "", wanted{name: ".xml"}, "", true},
		"escaped path":               {&Handler{Path: "/%C3%BC.xml"}, "/ü.xml", "", wanted{name: ".xml"}, "", true},
		"base URL's folder":          {&Handler{BaseURL: "https://a.example/b"}, "/b/sitemap.xml", "", wanted{name: ".xml"}, "", true},
		"base URL's folder stripped": {&Handler{BaseURL: "https://a.example/b"}, "/sitemap.xml", "", wanted{name: ".xml"}, "", true},
		"another folder":             {&Handler{BaseURL: "https://a.example/b"}, "/c/sitemap.xml", "", wanted{}, "", false},

		"rewritten":                   {&Handler{}, "/index.php", "/sitemap.xml", wanted{name: ".xml"}, "", true},
		"rewritten in a prefix":       {&Handler{mounts: docs}, "/index.php", "/docs/sitemap.xml.gz", wanted{name: ".xml.gz"}, "/docs", true},
		"an escaped prefix":           {&Handler{mounts: docs}, "/index.php", "/my docs/sitemap.xml", wanted{name: ".xml"}, "/my%20docs", true},
		"a prefix that is not ours":   {&Handler{mounts: docs}, "/index.php", "/other/sitemap.xml", wanted{}, "", false},
		"robots.txt in a prefix":      {&Handler{mounts: docs}, "/index.php", "/docs/robots.txt", wanted{}, "", false},
		"another file in the prefix":  {&Handler{mounts: docs}, "/index.php", "/docs/about", wanted{}, "", false},
		"robots.txt of another name":  {&Handler{mounts: both}, "/robots.txt", "/robots", wanted{robots: true}, "", true},
		"robots.txt, prefix stripped": {&Handler{mounts: both}, "/robots.txt", "/docs/robots.txt", wanted{}, "", false},

		"stripped":                {&Handler{mounts: docs}, "/sitemap.xml", "/docs/sitemap.xml", wanted{name: ".xml"}, "/docs", true},
		"in upper case":           {&Handler{mounts: docs}, "/sitemap.xml", "/DOCS/sitemap.xml", wanted{name: ".xml"}, "/docs", true},
		"of many slashes":         {&Handler{mounts: docs}, "/sitemap.xml", "/docs///sitemap.xml", wanted{name: ".xml"}, "/docs", true},
		"stripped of another":     {&Handler{mounts: docs}, "/sitemap.xml", "/other/sitemap.xml", wanted{}, "", false},
		"stripped of more":        {&Handler{mounts: docs}, "/sitemap.xml", "/docs/old/sitemap.xml", wanted{}, "", false},
		"of an old name":          {&Handler{mounts: docs}, "/sitemap.xml", "/old.xml", wanted{}, "", false},
		"one of several":          {&Handler{mounts: both}, "/sitemap.xml", "/my docs/sitemap.xml", wanted{name: ".xml"}, "/my%20docs", true},
		"two slashes":             {&Handler{mounts: both}, "/sitemap.xml", "//sitemap.xml", wanted{name: ".xml"}, "", true},
		"mounted without, too":    {&Handler{mounts: both}, "/sitemap.xml", "/old/sitemap.xml", wanted{name: ".xml"}, "", true},
		"of an old name, there":   {&Handler{mounts: both}, "/sitemap.xml", "/old.xml", wanted{name: ".xml"}, "", true},
		"not known where mounted": {&Handler{}, "/sitemap.xml", "/any/sitemap.xml", wanted{name: ".xml"}, "", true},

		"a section":                   {sections, "/sitemap-blog.xml", "", wanted{name: "-blog.xml"}, "", true},
		"a shard of it":               {sections, "/sitemap-blog-000000000000.xml", "", wanted{name: "-blog-000000000000.xml"}, "", true},
		"a section in a prefix":       {sections, "/sitemap-blog.xml", "/docs/sitemap-blog.xml", wanted{name: "-blog.xml"}, "/docs", true},
		"another section":             {sections, "/sitemap-old.xml", "", wanted{}, "", false},
		"a shard of another one":      {sections, "/sitemap-old-000000000000.xml", "", wanted{}, "", false},
		"another section in a prefix": {sections, "/sitemap-old.xml", "/docs/sitemap-old.xml", wanted{}, "", false},
		"rewritten from another one":  {sections, "/sitemap.xml", "/sitemap-old.xml", wanted{name: ".xml"}, "", true},
		"rewritten to another one":    {sections, "/sitemap-old.xml", "/old", wanted{}, "", false},
		"a key that looks like a section": {&Handler{IndexNow: new(IndexNow)}, "/sitemap-old-key.txt", "",
			wanted{key: "sitemap-old-key"}, "", true},
	} {
		b := newBench(t, func(h *Handler) {
			h.Path, h.BaseURL, h.RobotsTxt, h.mounts = test.handler.Path, test.handler.BaseURL, test.handler.RobotsTxt, test.handler.mounts
			h.Sections, h.IndexNow = test.handler.Sections, test.handler.IndexNow
		})
		r := b.request(http.MethodGet, strings.ReplaceAll(cmp.Or(test.sent, test.path), " ", "%20"), nil)
		r.URL.Path = test.path
		got, prefix, ok := b.handler.wants(r)
		if ok != test.ok || ok && got != test.want || ok && prefix != test.prefix {
			t.Errorf("%s: got %+v, %q, %t, want %+v, %q, %t", name, got, prefix, ok, test.want, test.prefix, test.ok)
		}
	}
}

// TestServeDocument: what a site answers for its documents, and what it leaves to others.
func TestServeDocument(t *testing.T) {
	b := newBench(t, nil)
	s := b.site("named.example")
	s.serve(snapshotOf(t, 2, "/a", "/b", "/c", "/d", "/e"))
	shard := "/sitemap" + strings.TrimSuffix(s.published().snapshot.Shards[0].Name, ".xml")
	for name, test := range map[string]struct {
		method, target string
		status         int
		next           bool
	}{
		"index":         {"GET", "/sitemap.xml", 200, false},
		"HEAD":          {"HEAD", "/sitemap.xml", 200, false},
		"shard":         {"GET", shard + ".xml", 200, false},
		"shard as text": {"GET", shard + ".txt", 200, false},
		"index as text": {"GET", "/sitemap.txt", 200, true},
		"no such shard": {"GET", "/sitemap-ffffffffffff.xml", 200, true},
		"POST":          {"POST", "/sitemap.xml", 405, false},
		"OPTIONS":       {"OPTIONS", "/sitemap.xml", 405, false},
		"with a query":  {"GET", "/sitemap.xml?page=1", 200, false},
	} {
		header, status, _ := b.serve(b.request(test.method, test.target, nil))
		if status != test.status || (header.Get("X-Next") != "") != test.next {
			t.Errorf("%s: got status %d, headers %v, want %d", name, status, header, test.status)
		}
		if allow := header.Get("Allow"); (allow == "GET, HEAD") != (status == http.StatusMethodNotAllowed) {
			t.Errorf("%s: got Allow %q", name, allow)
		}
	}

	r := b.request(http.MethodGet, "/sitemap.xml", nil)
	r.Host = "a..b"
	if header, status, err := b.serve(r); status != http.StatusBadRequest || !errors.Is(err, errNoHost) || header.Get("Retry-After") != "" {
		t.Errorf("no host: got status %d, %v", status, err)
	}
	main := b.site("main.example")
	s.main.Store(main)
	if header, status, _ := b.get(shard + ".xml.gz"); status != http.StatusPermanentRedirect || header.Get("Location") != "http://main.example"+shard+".xml.gz" {
		t.Errorf("an alias: got status %d, headers %v", status, header)
	}
}

// fromProxy is a request that came from a trusted proxy.
func fromProxy(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), caddyhttp.VarsCtxKey, map[string]any{caddyhttp.TrustedProxyVarKey: true}))
}

// TestForwardedHost: a host that a proxy passes on, even a trusted one, names a site only
// where the matchers name no hosts, or that one: else whoever can send the header could
// put a foreign Sitemap line into caches.
func TestForwardedHost(t *testing.T) {
	catchAll, named, pattern := mounts{{}}, mounts{{hosts: []string{"inside.example", "shop.example"}}}, mounts{{hosts: []string{"*.example"}}}
	for name, test := range map[string]struct {
		mounts      mounts
		trusted     bool
		proto, host string // forwarded
		want        string // "": no site
	}{
		"no matcher names hosts":     {catchAll, true, "https", "shop.example", "https://shop.example"},
		"not trusted":                {catchAll, false, "https", "shop.example", "http://inside.example"},
		"the scheme alone":           {catchAll, true, "https", "", "https://inside.example"},
		"a port":                     {catchAll, true, "https", "shop.example:8443", "https://shop.example:8443"},
		"no host name":               {catchAll, true, "https", "a..b", ""},
		"a matcher names it":         {named, true, "https", "shop.example", "https://shop.example"},
		"named, not trusted":         {named, false, "https", "shop.example", "http://inside.example"},
		"matchers name others":       {named, true, "https", "evil.example", "https://inside.example"},
		"others, with a port":        {named, true, "https", "evil.example:8443", "https://inside.example"},
		"a pattern matches it":       {pattern, true, "https", "shop.example", "https://shop.example"},
		"a pattern does not":         {pattern, true, "https", "shop.test", "https://inside.example"},
		"of another prefix":          {mounts{{hosts: []string{"inside.example"}}, {hosts: []string{"evil.example"}, prefix: "/docs"}}, true, "https", "evil.example", "https://inside.example"},
		"no host, and others":        {named, true, "https", "a..b", ""},
		"a made-up port":             {named, true, "https", "shop.example:9999", "https://shop.example"},
		"of a pattern":               {pattern, true, "https", "a.example:9999", "https://a.example"},
		"the default, written out":   {named, true, "https", "shop.example:443", "https://shop.example"},
		"no port, and named":         {named, true, "http", "shop.example", "http://shop.example"},
		"a made-up port of many":     {append(mounts{{}}, named...), true, "https", "shop.example:9999", "https://shop.example"},
		"one of several catches all": {append(mounts{{}}, named...), true, "https", "shop2.example", "https://shop2.example"},
	} {
		b := newBench(t, func(h *Handler) { h.mounts = test.mounts })
		r := httptest.NewRequest(http.MethodGet, "/sitemap.xml", nil)
		r.Host = "inside.example"
		r.Header.Set("X-Forwarded-Proto", test.proto)
		if test.host != "" {
			r.Header.Set("X-Forwarded-Host", test.host)
		}
		if test.trusted {
			r = fromProxy(r)
		}
		s, err := b.app.siteOf(b.handler, r, "")
		if test.want == "" {
			if !errors.Is(err, errNoHost) || len(b.app.sites) != 0 {
				t.Errorf("%s: got %v, %v, want %v", name, s, err, errNoHost)
			}
			continue
		}
		if err != nil || s.origin != test.want {
			t.Errorf("%s: got %+v, %v, want %s", name, s, err, test.want)
		}
	}
}

// TestFirstWait: the first requests of a site wait for its first refresh, ten seconds at
// most; robots.txt is served all the same.
func TestFirstWait(t *testing.T) {
	for name, test := range map[string]struct {
		target string
		then   func(b *bench, s *site, cancel func()) // what happens after five seconds; nil: nothing
		waited time.Duration
		status int
		next   bool
	}{
		"too long":               {"/sitemap.xml", nil, firstWait, 503, false},
		"too long for robots":    {"/robots.txt", nil, firstWait, 200, true},
		"the refresh ends":       {"/sitemap.xml", func(b *bench, s *site, _ func()) { s.serve(snapshotOf(b, 1, "/a")); s.setReady() }, 5 * time.Second, 200, false},
		"it ends without pages":  {"/sitemap.xml", func(_ *bench, s *site, _ func()) { s.setReady() }, 5 * time.Second, 200, true},
		"the client goes away":   {"/sitemap.xml", func(_ *bench, _ *site, cancel func()) { cancel() }, 5 * time.Second, 503, false},
		"the configuration ends": {"/sitemap.xml", func(b *bench, _ *site, _ func()) { b.app.cancel() }, 5 * time.Second, 503, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, nil)
				s := b.site("named.example")
				r := b.request(http.MethodGet, test.target, nil)
				ctx, cancel := context.WithCancel(r.Context())
				defer cancel()
				if test.then != nil {
					time.AfterFunc(5*time.Second, func() { test.then(b, s, cancel) })
				}
				begun := time.Now()
				header, status, _ := b.serve(r.WithContext(ctx))
				if waited := time.Since(begun); waited != test.waited {
					t.Errorf("waited for %s, want %s", waited, test.waited)
				}
				if status != test.status || (header.Get("X-Next") != "") != test.next || (header.Get("Retry-After") != "") != (status == 503) {
					t.Errorf("got status %d, headers %v", status, header)
				}
			})
		})
	}
}

// TestNoRoom: while there is no room for a host that only its visitors named, it is refused
// at once, and its robots.txt is the site's own.
func TestNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.visitMany(maxOnDemandSites)
		b.clock = b.clock.Add(time.Minute)
		for _, s := range b.app.sites {
			s.requested.Store(b.clock.UnixNano())
		}
		begun := time.Now()
		for range 3 {
			for target, want := range map[string]int{"/sitemap.xml": http.StatusServiceUnavailable, "/robots.txt": http.StatusOK} {
				r := b.request(http.MethodGet, target, nil)
				r.Host = "late.example"
				if header, status, _ := b.serve(r); status != want || (header.Get("X-Next") != "") != (want == http.StatusOK) {
					t.Errorf("%s: got status %d, headers %v", target, status, header)
				}
			}
		}
		if waited := time.Since(begun); waited != 0 || len(b.app.sites) != maxOnDemandSites {
			t.Errorf("waited for %s, and there are %d sites", waited, len(b.app.sites))
		}
	})
}

// TestServeBeforeStart: Caddy may begin to serve before the App has started.
func TestServeBeforeStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.app.started = make(chan struct{})
		begun := time.Now()
		if _, status, _ := b.get("/sitemap.xml"); status != http.StatusServiceUnavailable || time.Since(begun) != firstWait {
			t.Errorf("got status %d after %s", status, time.Since(begun))
		}
		if header, _, _ := b.get("/a"); header.Get("X-Next") == "" {
			t.Error("a page is not served")
		}
		s := b.site("named.example")
		s.serve(snapshotOf(t, 1, "/a"))
		time.AfterFunc(time.Second, func() { close(b.app.started) })
		if header, status, _ := b.get("/sitemap.xml"); status != http.StatusOK || header.Get("Etag") == "" {
			t.Errorf("got status %d, headers %v", status, header)
		}
	})
}

// TestOwnFiles: what counts as a stylesheet or llms.txt of the site's own, which a request for it looks for, and
// which is served then. Ours is served from memory.
func TestOwnFiles(t *testing.T) {
	const css = "/sitemap.css"
	type response = func(w http.ResponseWriter) error
	responds := func(contentType, body string) response {
		return func(w http.ResponseWriter) error {
			w.Header().Set("Content-Type", contentType)
			_, err := io.WriteString(w, body)
			return err
		}
	}
	missing := func(http.ResponseWriter) error { return caddyhttp.Error(http.StatusNotFound, nil) }
	broken := func(http.ResponseWriter) error { return errors.New("broken") }
	build := "# Old\n\n> " + strings.Repeat("é", 900) + "\n\n" + document.Mark + "\n"
	ours := map[string]string{css: "caddy-sitemap", document.LLMs: "# "}
	for name, test := range map[string]struct {
		path  string
		own   response // behind the sitemap
		isOn  bool
		isOwn bool // the site's own one is served
	}{
		"no stylesheet":               {css, missing, true, false},
		"a stylesheet":                {css, responds("text/css", "its own"), true, true},
		"stylesheet off":              {css, responds("text/css", "its own"), false, true},
		"a broken stylesheet":         {css, broken, true, false},
		"a page as stylesheet":        {css, responds(contentHTML, "<!doctype html>"), true, false},
		"a stylesheet without an end": {css, withoutEnd(t), true, false},

		"no llms.txt":             {document.LLMs, missing, true, false},
		"text":                    {document.LLMs, responds("text/plain; charset=utf-8", "its own"), true, true},
		"Markdown":                {document.LLMs, responds("text/markdown", "its own"), true, true},
		"llms off":                {document.LLMs, responds("text/markdown", "its own"), false, true},
		"a broken llms.txt":       {document.LLMs, broken, true, false},
		"a page as llms.txt":      {document.LLMs, responds(contentHTML, "<!doctype html>"), true, false},
		"an API as llms.txt":      {document.LLMs, responds("application/json", "{}"), true, false},
		"llms.txt of a build":     {document.LLMs, responds("text/plain", build), true, false},
		"llms.txt without an end": {document.LLMs, withoutEnd(t), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(h *Handler) {
				h.Stylesheet = &test.isOn
				h.LLMs = test.isOn
			})
			looks := 0
			answer := b.pages
			b.pages = func(w http.ResponseWriter, r *http.Request) error {
				if r.URL.Path == test.path {
					looks++
					return test.own(w)
				}
				return answer(w, r)
			}
			s := b.site("named.example")
			b.wantPages(s, 1)
			if looks != 0 {
				t.Errorf("%d requests in a refresh", looks)
			}
			if name == "llms.txt without an end" {
				if !s.hasOwn(t.Context(), document.LLMs) {
					t.Error("it is none")
				}
				return
			}
			for i := range 3 {
				before := looks
				w := httptest.NewRecorder()
				_ = b.handler.ServeHTTP(w, b.request(http.MethodGet, test.path, nil), b.pages)
				isOwn := w.Body.String() != "" && !strings.Contains(w.Body.String(), ours[test.path]) || !test.isOn
				asked := 0
				if i == 0 && test.isOn {
					asked = 1
				}
				if test.isOwn {
					asked++ // by which it is served
				}
				if isOwn != test.isOwn || looks-before != asked {
					t.Errorf("the site's own is served: %t, want %t; %d requests, want %d; status %d, %.100q",
						isOwn, test.isOwn, looks-before, asked, w.Code, w.Body)
				}
			}
		})
	}
}

// withoutEnd returns a response whose body has no end, of which only the beginning is to be read.
func withoutEnd(t *testing.T) func(w http.ResponseWriter) error {
	return func(w http.ResponseWriter) error {
		w.Header().Set("Content-Type", "text/plain")
		for n := 0; ; n++ {
			if n > 1<<20 {
				t.Error("it is read to no end")
				return nil
			}
			if _, err := w.Write(make([]byte, 1<<10)); err != nil {
				return err
			}
		}
	}
}

// TestOwnForAll: what one visitor gets by cookies, headers or a query is not the site's own.
func TestOwnForAll(t *testing.T) {
	b := newBench(t, func(h *Handler) { h.LLMs = true })
	answer := b.pages
	b.pages = func(w http.ResponseWriter, r *http.Request) error {
		isForOne := r.Header.Get("Cookie")+r.URL.RawQuery != "" || r.Header.Get("Accept") == "text/plain"
		if r.URL.Path != document.LLMs || !isForOne {
			return answer(w, r)
		}
		w.Header().Set("Content-Type", "text/plain")
		_, err := io.WriteString(w, "for you")
		return err
	}
	b.wantPages(b.site("named.example"), 1)
	r := b.request(http.MethodGet, document.LLMs+"?a", nil)
	r.Header.Set("Cookie", "session=1")
	r.Header.Set("Accept", "text/plain")
	w := httptest.NewRecorder()
	_ = b.handler.ServeHTTP(w, r, b.pages)
	if !strings.Contains(w.Body.String(), document.Mark) {
		t.Errorf("got %s", w.Body)
	}
}

// TestOwnStylesheetStays: a stylesheet of the site's own is requested once in ten minutes. While that fails, what was known stays.
func TestOwnStylesheetStays(t *testing.T) {
	b := newBench(t, nil)
	looks, status := 0, http.StatusOK
	answer := b.pages
	b.pages = func(w http.ResponseWriter, r *http.Request) error {
		if r.URL.Path != "/sitemap.css" {
			return answer(w, r)
		}
		looks++
		w.Header().Set("Content-Type", "text/css")
		w.WriteHeader(status)
		return nil
	}
	s := b.site("named.example")
	b.wantPages(s, 1)
	for _, step := range []struct {
		after  time.Duration
		status int
		looks  int
		exists bool
	}{
		{0, 200, 1, true}, {time.Minute, 404, 1, true}, {time.Hour, 502, 2, true}, {time.Second, 404, 2, true},
		{10 * time.Minute, 404, 3, false}, {time.Minute, 200, 3, false}, {time.Hour, 200, 4, true},
	} {
		b.clock = b.clock.Add(step.after)
		status = step.status
		got := s.hasOwn(t.Context(), document.Stylesheet)
		if looks != step.looks || got != step.exists {
			t.Errorf("after %s, status %d: got %d requests, %t, want %d, %t", step.after, step.status, looks, got, step.looks, step.exists)
		}
	}
}
