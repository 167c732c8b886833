package sitemap

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/seed3295b519/caddy-sitemap/internal/announce"
	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// TestIndexNowDaily: without a number of URLs a day, an endpoint is sent 10,000.
func TestIndexNowDaily(t *testing.T) {
	for daily, want := range map[int]int{0: 10_000, 1: 1, 1_000_000: 1_000_000} {
		b := newBench(t, func(h *Handler) { h.IndexNow = &IndexNow{Daily: daily} })
		if got := b.handler.settings.announce.Daily; got != want {
			t.Errorf("%d: got %d, want %d", daily, got, want)
		}
	}
}

// TestPrivateSite: what only visitors with a client certificate can read is not announced, and log and status say why.
func TestPrivateSite(t *testing.T) {
	const site = " {\n root * /srv\n sitemap\n file_server\n tls internal {\n %s\n }\n}\n"
	var caddyfile string
	for host, mode := range map[string]string{"open": "", "required": "mode require", "verified": "mode require_and_verify", "asked": "mode request"} {
		clients := ""
		if mode != "" {
			clients = "client_auth {\n " + mode + "\n }"
		}
		caddyfile += "https://" + host + ".example:9443" + fmt.Sprintf(site, clients)
	}
	server := serverOf(t, caddyfile, "Caddyfile", ":9443")
	f := &serverFetcher{server: server, port: 9443, tls: server.TLSConnPolicies.TLSConfig(emptyContext(t))}
	for host, want := range map[string]bool{"open.example": false, "required.example": true, "verified.example": true, "asked.example": false, "other.example": false} {
		if got := f.needsCertificate(host); got != want {
			t.Errorf("%s needs a certificate: %t, want %t", host, got, want)
		}
	}
	for name, test := range map[string]struct {
		host      string
		scheme    string
		trusts    bool // a proxy
		configure func(*Handler)
		want      bool
	}{
		"required":            {"required.example", "https", false, nil, true},
		"open":                {"open.example", "https", false, nil, false},
		"by http":             {"required.example", "http", false, nil, false},
		"of a proxy":          {"required.example", "https", true, nil, false},
		"nothing to announce": {"required.example", "https", false, func(h *Handler) { h.IndexNow = nil }, false},
	} {
		b := newBench(t, func(h *Handler) {
			h.IndexNow = new(IndexNow)
			h.listener = address{scheme: test.scheme}
			h.mounts = mounts{{hosts: []string{test.host}}}
			h.server.TrustedProxiesUnix = test.trusts
			if test.configure != nil {
				test.configure(h)
			}
		})
		b.app.fetchers[b.handler.server].tls = f.tls
		b.app.serving = make(chan struct{})
		s := b.site(test.host)
		s.cancel() // it announces nothing in this test
		s.runAnnouncements()
		logged := b.logged("changes are not announced: "+whyUnannounced) == 1
		if st := s.status(); logged != test.want || (st.NotAnnounced != "") != test.want || s.announces() && test.want {
			t.Errorf("%s: logged %t, status %q, announces: %t", name, logged, st.NotAnnounced, s.announces())
		}
	}
}

// TestAnnounced: each announcement is counted and emitted; accepted ones are logged, and each problem once.
func TestAnnounced(t *testing.T) {
	b := newBench(t, nil)
	s := b.site("named.example")
	target := announce.Status{Target: announce.Target{Kind: announce.IndexNow, URL: announce.DefaultEndpoint}}
	failed := announce.Outcome{Status: 503, Reason: "status 503: it is tried again; response: request 1 failed"}
	again := announce.Outcome{Status: 503, Reason: "status 503: it is tried again; response: request 2 failed"}
	refused := announce.Outcome{Status: 422, Reason: "status 422", Refused: true}
	for i, step := range []struct {
		outcome                              announce.Outcome
		result                               string
		urls, accepted, problems, ofThisKind int
	}{
		{announce.Outcome{Status: 202}, "accepted", 3, 1, 0, 3},
		{failed, "failed", 3, 1, 1, 3},
		{again, "failed", 2, 1, 1, 5},
		{announce.Outcome{Status: 200}, "accepted", 2, 2, 1, 5},
		{failed, "failed", 1, 2, 2, 6},
		{refused, "refused", 1, 2, 3, 1},
	} {
		before := len(b.app.events.queue)
		s.announced(step.urls, step.outcome, target)
		counted := testutil.ToFloat64(b.app.counts.announced.WithLabelValues("indexnow", step.result))
		if b.logged("changes announced") != step.accepted || b.logged("changes were not announced") != step.problems || int(counted) != step.ofThisKind || len(b.app.events.queue) != before+1 {
			t.Errorf("step %d: %d and %d lines, %v counted, %d events", i, b.logged("changes announced"), b.logged("changes were not announced"), counted, len(b.app.events.queue)-before)
		}
	}
}

// TestFetchAnnounced: the key file is requested as visitors get it.
func TestFetchAnnounced(t *testing.T) {
	b := newBench(t, nil)
	s := b.site("named.example")
	b.pages = func(w http.ResponseWriter, r *http.Request) error {
		w.WriteHeader(http.StatusTeapot)
		_, err := io.WriteString(w, r.Host+r.URL.Path)
		return err
	}
	status, body, err := s.fetchAnnounced(t.Context(), "/key.txt")
	if status != http.StatusTeapot || string(body) != "named.example/key.txt" || err != nil {
		t.Errorf("got %d, %q, %v", status, body, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if status, body, err = s.fetchAnnounced(ended, "/key.txt"); status != 0 || body != nil || err == nil {
		t.Errorf("after its end: got %d, %q, %v", status, body, err)
	}
}

// TestAnnouncesNow: nothing is announced by a site that is another one's alias, by a configuration that was replaced, or by a node that
// has committed nothing.
func TestAnnouncesNow(t *testing.T) {
	was := latest.Load()
	for name, test := range map[string]struct {
		change func(s *site)
		want   bool
	}{
		"nothing":                  {func(*site) {}, true},
		"an alias":                 {func(s *site) { s.main.Store(s) }, false},
		"the configuration is old": {func(*site) { latest.Store(configurations.Add(1)) }, false},
	} {
		b := newBench(t, nil)
		pings(b)
		b.app.number = configurations.Add(1)
		latest.Store(b.app.number)
		s := b.site("named.example")
		test.change(s)
		if got := s.announcesNow(t.Context()); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
		latest.Store(was)
	}
	inBubble(t, func(t *testing.T, _ *bench) {
		_, s := sharing(t, record.NewMemory(), pings)
		if s.announcesNow(t.Context()) {
			t.Error("a process announces that does not lead")
		}
		lead(t, s)
		if s.announcesNow(t.Context()) {
			t.Error("a process announces that has just begun to lead")
		}
		f := follower{site: s}
		for range 10 {
			time.Sleep(maxPoll)
			f.poll(t.Context())
		}
		if !s.announcesNow(t.Context()) {
			t.Error("the process that leads announces nothing")
		}
	})
}

const announcementsWait = "announcements wait: they cannot be loaded or stored"

// TestDamagedAnnouncer: announcements that cannot be read are begun anew, with another key.
func TestDamagedAnnouncer(t *testing.T) {
	b := newBench(t, func(h *Handler) { h.IndexNow = new(IndexNow) })
	b.app.folder = t.TempDir()
	s := b.site("named.example")
	file := record.NewFile(s.state.local, announcementsOf(s.state.place.file))
	for i, stored := range []string{`{"key": "0123456789abcdef"}`, "{"} {
		if err := file.Save(t.Context(), func() ([]byte, error) { return []byte(stored), nil }); err != nil {
			t.Fatal(err)
		}
		s.state.announcer = announce.New(file)
		isLoaded := s.loadAnnouncer(t.Context(), false) == (i == 0) && s.loadAnnouncer(t.Context(), false)
		key := s.state.announcer.Key()
		warnings := b.logged(announcementsWait)
		if !isLoaded || (key == "0123456789abcdef") != (i == 0) || !announce.IsKey(key) || warnings != i {
			t.Errorf("%s: loaded %t, key %q, %d warnings", stored, isLoaded, key, warnings)
		}
	}
}

// unreadable is a storage of which nothing can be loaded.
type unreadable struct{ record.Storage }

func (unreadable) Load(context.Context, string) ([]byte, error) { return nil, fs.ErrPermission }

// TestUnreadAnnouncer: that announcements cannot be loaded is told once, until what came of a request is stored. No key is made
// meanwhile.
func TestUnreadAnnouncer(t *testing.T) {
	b := newBench(t, func(h *Handler) { h.IndexNow = new(IndexNow) })
	s := b.site("named.example")
	s.state.announcer = announce.New(record.NewFile(unreadable{}, "announced.json"))
	for range 3 {
		if s.loadAnnouncer(t.Context(), false) || s.state.announcer.Key() != "" {
			t.Error("it is loaded")
		}
	}
	if n := b.logged(announcementsWait); n != 1 {
		t.Errorf("it is told %d times", n)
	}
	s.announcerFailed(nil)
	s.loadAnnouncer(t.Context(), false)
	if n := b.logged(announcementsWait); n != 2 {
		t.Errorf("it is told %d times", n)
	}
}

// untold are the pages of which search engines are still to be told.
func untold(s *site) (paths []string) {
	told := s.state.announcer.Behind()
	for rec := range s.published().generation.Moved(context.Background(), 0) {
		if int64(rec.Moved) > told {
			paths = append(paths, rec.Path)
		}
	}
	return paths
}

// public has a site be one of which search engines are told, on the real clock.
func public(b *bench) {
	b.handler.mounts = mounts{{hosts: []string{"blog.invented"}}}
	b.handler.IndexNow = new(IndexNow)
	b.handler.settings.announce.Targets = []announce.Target{{Kind: announce.IndexNow, URL: announce.DefaultEndpoint}}
	b.app.now = time.Now
}

// TestFirstCrawlAnnounces: while the pages of a new site are still being found, what changes of those that are listed already
// is announced. What is found is not.
func TestFirstCrawlAnnounces(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		b := newBench(t, nil)
		public(b)
		b.handler.limiter = crawl.NewLimiter(2, 1)
		pages := numbered(1000)
		b.lists(pages...)
		found := b.pages
		edited := pages[0]
		removed := pages[1]
		hasChanged := false
		b.pages = func(w http.ResponseWriter, r *http.Request) error {
			upstream(r)
			switch {
			case hasChanged && r.URL.Path == removed:
				return caddyhttp.Error(http.StatusGone, nil)
			case hasChanged && r.URL.Path == edited:
				_, _ = io.WriteString(w, "<!doctype html><p>It is corrected.")
			}
			return found(w, r)
		}
		s := b.site("blog.invented")
		refresh := func(minutes int) {
			for range minutes {
				time.Sleep(time.Minute)
				s.run()
			}
		}
		refresh(2)
		hasChanged = true
		s.state.addRefetch(refetch{paths: []string{edited, removed}})
		refresh(5)
		if out := s.published().report; out.Pending == 0 {
			t.Fatal("the first crawl is over")
		}
		if got := untold(s); !slices.Equal(got, []string{edited, removed}) {
			t.Errorf("got %q", got)
		}
	})
}

// TestLostRecordsAnnounce: pages that are fetched again as their records were lost are not announced as new.
func TestLostRecordsAnnounce(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		b := newBench(t, nil)
		public(b)
		pages := numbered(20)
		b.lists(pages[:18]...)
		s := b.site("blog.invented")
		for i, n := range []int{18, 19, 20} {
			time.Sleep(time.Minute)
			b.lists(pages[:n]...)
			isLost := i == 1
			if isLost {
				s.amend(func(p *publication) { p.history.Lost = time.Now() })
			}
			s.run()
		}
		if got := untold(s); !slices.Equal(got, pages[19:]) {
			t.Errorf("got %q", got)
		}
	})
}

// TestKeyFile: the key file of IndexNow is served at the key's own name, by the site that announces.
func TestKeyFile(t *testing.T) {
	const key = "0123456789abcdef"
	for name, test := range map[string]struct {
		method, path string
		change       func(s *site)
		want         string // the body
		status       int
	}{
		"the key file":    {method: http.MethodGet, path: "/" + key + ".txt", want: key, status: http.StatusOK},
		"its header":      {method: http.MethodHead, path: "/" + key + ".txt", status: http.StatusOK},
		"another method":  {method: http.MethodPost, path: "/" + key + ".txt", status: http.StatusTeapot},
		"another key":     {method: http.MethodGet, path: "/" + key + "0.txt", status: http.StatusTeapot},
		"another ending":  {method: http.MethodGet, path: "/" + key + ".text", status: http.StatusTeapot},
		"in a folder":     {method: http.MethodGet, path: "/a/" + key + ".txt", status: http.StatusTeapot},
		"an alias":        {method: http.MethodGet, path: "/" + key + ".txt", change: func(s *site) { s.main.Store(s) }, status: http.StatusTeapot},
		"not loaded":      {method: http.MethodGet, path: "/" + key + ".txt", change: func(s *site) { s.state.announcer = announce.New(nil) }, status: http.StatusTeapot},
		"a private site":  {method: http.MethodGet, path: "/" + key + ".txt", change: func(s *site) { s.private = true }, status: http.StatusTeapot},
		"no announcement": {method: http.MethodGet, path: "/" + key + ".txt", change: func(s *site) { s.handler.IndexNow = nil }, status: http.StatusTeapot},
	} {
		b := newBench(t, func(h *Handler) { h.IndexNow = new(IndexNow) })
		s := b.site("named.example")
		stored := record.NewFile(record.NewMemory(), "announced.json")
		err := stored.Save(t.Context(), func() ([]byte, error) { return []byte(`{"key":"` + key + `"}`), nil })
		if err != nil {
			t.Fatal(err)
		}
		s.state.announcer = announce.New(stored)
		if !s.loadAnnouncer(t.Context(), false) {
			t.Fatal("it is not loaded")
		}
		if test.change != nil {
			test.change(s)
		}
		w := httptest.NewRecorder()
		r := b.request(test.method, "http://named.example"+test.path, nil)
		err = b.handler.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(http.StatusTeapot)
			return nil
		}))
		if err != nil || w.Code != test.status || w.Body.String() != test.want {
			t.Errorf("%s: got %d, %q, %v, want %d, %q", name, w.Code, w.Body, err, test.status, test.want)
		}
		if isOurs := w.Header().Get("X-Robots-Tag") == "noindex"; isOurs != (test.status == http.StatusOK) {
			t.Errorf("%s: the header is %v", name, w.Header())
		}
	}
}

// TestUnstoredAnnouncer: that announcements cannot be stored is told once, be there something to announce or not.
func TestUnstoredAnnouncer(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		d := &disk{Storage: record.NewMemory(), fails: func(key string) error {
			if strings.HasPrefix(key, "announcements/") {
				return fs.ErrPermission
			}
			return nil
		}}
		b, s := sharing(t, nil, pings, func(b *bench) {
			b.app.sharing = storageSetting{}
			b.app.disk = record.Bounded(d)
			b.handler.settings.announce.Key = "0123456789abcdef"
		})
		_, end := runs(b, s)
		defer end()
		time.Sleep(time.Hour)
		if n := b.logged(announcementsWait); n != 1 {
			t.Errorf("in an hour, it is told %d times", n)
		}
		b.lists("/a", "/b")
		time.Sleep(4 * time.Hour)
		if n := b.logged(announcementsWait); n != 1 {
			t.Errorf("while there is something to announce, it is told %d times", n)
		}
	})
}
