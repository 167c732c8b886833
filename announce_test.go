package sitemap

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/seed3295b519/caddy-sitemap/internal/announce"
	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/persist"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
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
	s, target := b.site("named.example"), announce.Status{Target: announce.Target{Kind: announce.IndexNow, URL: announce.DefaultEndpoint}}
	failed, refused := target, target
	failed.Reason, refused.Reason, refused.Stopped = "status 503", "status 422", true
	for i, step := range []struct {
		status                               int
		target                               announce.Status
		result                               string
		urls, accepted, problems, ofThisKind int
	}{
		{202, target, "accepted", 3, 1, 0, 3},
		{503, failed, "failed", 3, 1, 1, 3},
		{503, failed, "failed", 2, 1, 1, 5},
		{200, target, "accepted", 2, 2, 1, 5},
		{503, failed, "failed", 1, 2, 2, 6},
		{422, refused, "refused", 1, 2, 3, 1},
	} {
		before := len(b.app.events.queue)
		s.announced(&announce.Job{URLs: step.urls}, announce.Outcome{Status: step.status}, step.target)
		counted := testutil.ToFloat64(b.app.counts.announced.WithLabelValues("indexnow", step.result))
		if b.logged("changes announced") != step.accepted || b.logged("changes were not announced") != step.problems || int(counted) != step.ofThisKind || len(b.app.events.queue) != before+1 {
			t.Errorf("step %d: %d and %d lines, %v counted, %d events", i, b.logged("changes announced"), b.logged("changes were not announced"), counted, len(b.app.events.queue)-before)
		}
	}
}

// TestAnnouncedStatus: what waits for a confirmation waits for the next refresh, unless another time is known. What another
// process is to send waits for that.
func TestAnnouncedStatus(t *testing.T) {
	alone := newBench(t, nil)
	_, shared := sharing(t, t.TempDir(), nil)
	s := alone.site("named.example")
	now := alone.clock.Truncate(time.Second)
	target := announce.Target{Kind: announce.IndexNow, URL: announce.DefaultEndpoint}
	const queued = `"targets": [{"kind": "indexnow", "url": "` + announce.DefaultEndpoint + `", "queued": ["/a"]}]`
	later := now.Add(time.Hour)
	for _, test := range []struct {
		name   string
		site   *site
		stored string
		due    time.Time // the next refresh
		waits  announce.Wait
		next   time.Time
	}{
		{"nothing", s, `{}`, later, "", time.Time{}},
		{"to be sent", s, `{` + queued + `}`, later, "", now},
		{"a new page", s, `{"fresh": ["/a"]}`, later, announce.ForConfirmation, later},
		{"a new page, to the second", s, `{"fresh": ["/a"]}`, later.Add(1), announce.ForConfirmation, later.Add(time.Second)},
		{"a refresh that is late", s, `{"fresh": ["/a"]}`, now, announce.ForConfirmation, time.Time{}},
		{
			"a known time", s, `{"hold": "` + now.Add(time.Minute).Format(time.RFC3339) + `", ` + queued + `}`,
			later, announce.ForConfirmation, now.Add(time.Minute),
		},
		{"of another process", shared, `{` + queued + `}`, later, announce.ForOthers, time.Time{}},
		{"nothing of another process", shared, `{}`, later, "", time.Time{}},
	} {
		q, err := announce.New([]byte(test.stored), announce.Config{Origin: "https://blog.invented", Targets: []announce.Target{target}})
		if err != nil {
			t.Fatal(err)
		}
		test.site.app.now = func() time.Time { return now }
		test.site.schedule.At(test.due)
		got := test.site.announcedStatus(q)
		if len(got) != 1 || got[0].Target != target || got[0].WaitsFor != test.waits || !got[0].Next.Equal(test.next) {
			t.Errorf("%s: got %+v, want that it waits for %q until %s", test.name, got, test.waits, test.next)
		}
	}
}

// TestIsGone: what a response says of a page that was removed.
func TestIsGone(t *testing.T) {
	const html = "text/html; charset=utf-8"
	for name, test := range map[string]struct {
		status  int
		header  http.Header
		body    string
		isGone  bool
		isKnown bool
	}{
		"not found":         {status: 404, isGone: true, isKnown: true},
		"moved":             {status: 301, header: http.Header{"Location": {"/b"}}, isGone: true, isKnown: true},
		"too many requests": {status: 429},
		"a page":            {status: 200, header: http.Header{"Content-Type": {html}}, body: "<!doctype html><title>a</title>", isKnown: true},
		"noindex":           {status: 200, header: http.Header{"Content-Type": {html}}, body: "<meta name=robots content=noindex>", isGone: true, isKnown: true},
		"noindex in header": {status: 200, header: http.Header{"X-Robots-Tag": {"noindex"}}, isGone: true, isKnown: true},
		"refresh":           {status: 200, header: http.Header{"Content-Type": {html}}, body: `<meta http-equiv=refresh content="0; url=/b">`, isGone: true, isKnown: true},
		"noindex in a text": {status: 200, header: http.Header{"Content-Type": {"text/plain"}}, body: "<meta name=robots content=noindex>", isKnown: true},
		"refresh in header": {status: 200, header: http.Header{"Refresh": {"0; url=/b"}}, isGone: true, isKnown: true},
	} {
		b := newBench(t, nil)
		// A 429 pauses the requests that follow, also those of the next test.
		s := b.site(strings.ReplaceAll(name, " ", "-") + ".example")
		b.pages = func(w http.ResponseWriter, _ *http.Request) error {
			maps.Copy(w.Header(), test.header)
			w.WriteHeader(test.status)
			_, err := io.WriteString(w, test.body)
			return err
		}
		isGone, err := s.isGone(t.Context(), "/a")
		if isGone != test.isGone || (err == nil) != test.isKnown {
			t.Errorf("%s: gone %t, %v", name, isGone, err)
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

// TestAnnouncementsPause: nothing is announced by a site that is another one's alias, by another queue than the site's, or
// by a configuration that was replaced.
func TestAnnouncementsPause(t *testing.T) {
	for name, test := range map[string]struct {
		change func(s *site)
		want   bool
	}{
		"nothing":       {func(*site) {}, false},
		"an alias":      {func(s *site) { s.main.Store(s) }, true},
		"another queue": {func(s *site) { s.state.queue.Store(new(announce.Queue)) }, true},
	} {
		s := newBench(t, nil).site("named.example")
		q := new(announce.Queue)
		s.state.queue.Store(q)
		test.change(s)
		if got := s.announceRunner(q).Paused(); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
	_, shared := sharing(t, t.TempDir(), nil)
	q := new(announce.Queue)
	shared.state.queue.Store(q)
	if !shared.announceRunner(q).Paused() {
		t.Error("a node announces that has committed nothing")
	}
}

// TestUpdateOf: other settings lose no change. What is held back, or not read to its end, confirms nothing.
func TestUpdateOf(t *testing.T) {
	b := newBench(t, nil)
	b.lists(numbered(20)...)
	s := b.site("named.example")
	out := s.refresh(t.Context(), false)
	out.Selected.Changes.Changed = out.Selected.Changes.Added
	before := &publication{snapshot: listing(1), selectedBy: 1}
	r := &refreshing{served: before, selectedBy: 2, start: b.clock, crawled: out.Crawled}
	if got := s.updateOf(r, before, &out); got.Changes.Changed.Count != 20 || !got.Gathered || !got.Complete || !got.Begun.Equal(b.clock) {
		t.Errorf("%+v", got)
	}
	out.Partial = true
	if got := s.updateOf(r, before, &out); !got.Gathered || got.Complete {
		t.Errorf("a part: %+v", got)
	}
	out.Crawled.Gathered = false
	if got := s.updateOf(r, before, &out); got.Gathered {
		t.Errorf("the first part: %+v", got)
	}
	out.Crawled.Gathered = true
	out.Partial = false
	out.Since = b.clock
	if got := s.updateOf(r, before, &out); got.Gathered || got.Complete {
		t.Errorf("held back: %+v", got)
	}
}

// TestDamagedQueue: announcements that cannot be read are set aside, and begun anew.
func TestDamagedQueue(t *testing.T) {
	b := newBench(t, func(h *Handler) { h.IndexNow = new(IndexNow) })
	b.app.folder = t.TempDir()
	s := b.site("named.example")
	good, _ := announce.New(nil, s.announceConfig())
	for i, stored := range []string{string(good.Encode()), "{"} {
		s.state.queue.Store(nil)
		save := func() ([]byte, error) { return []byte(stored), nil }
		if err := s.state.queued.Save(t.Context(), save); err != nil {
			t.Fatal(err)
		}
		err := s.loadQueue(t.Context())
		warnings := b.logged("the stored announcements are damaged: they are set aside")
		if err != nil || s.state.queue.Load() == nil || warnings != i {
			t.Errorf("%s: got %v, %d warnings", stored, err, warnings)
		}
	}
}

// unreadable is a storage of which nothing can be loaded.
type unreadable struct{ store.Storage }

func (unreadable) Load(context.Context, string) ([]byte, error) { return nil, fs.ErrPermission }

// TestUnreadQueue: that announcements cannot be loaded is told once, however often a poll tries in between.
func TestUnreadQueue(t *testing.T) {
	b := newBench(t, func(h *Handler) { h.IndexNow = new(IndexNow) })
	b.app.folder = t.TempDir()
	s := b.site("named.example")
	s.state.queued = persist.NewFile(unreadable{}, "queue.json")
	for range 3 {
		for _, makes := range []bool{true, false} {
			if q := s.announcements(t.Context(), makes); q != nil {
				t.Errorf("got %+v", q)
			}
		}
	}
	if n := b.logged("announcements wait: they cannot be loaded"); n != 1 {
		t.Errorf("it is told %d times", n)
	}
}

// TestFirstCrawlAnnounces: while the pages of a new site are still being found, what changes of those that are listed already
// is announced. What is found is not.
func TestFirstCrawlAnnounces(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		b := newBench(t, func(h *Handler) {
			h.mounts = mounts{{hosts: []string{"blog.invented"}}}
			h.IndexNow = new(IndexNow)
		})
		b.app.now = time.Now
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
		queue := s.state.queue.Load()
		got := queue.Status(time.Now())[0]
		stored := string(queue.Encode())
		if got.Waiting != 1 || got.Unconfirmed != 1 || !strings.Contains(stored, edited) || !strings.Contains(stored, removed) {
			t.Errorf("%+v, stored is %s", got, stored)
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
		"no queue":        {method: http.MethodGet, path: "/" + key + ".txt", change: func(s *site) { s.state.queue.Store(nil) }, status: http.StatusTeapot},
		"a private site":  {method: http.MethodGet, path: "/" + key + ".txt", change: func(s *site) { s.private = true }, status: http.StatusTeapot},
		"no announcement": {method: http.MethodGet, path: "/" + key + ".txt", change: func(s *site) { s.handler.IndexNow = nil }, status: http.StatusTeapot},
	} {
		b := newBench(t, func(h *Handler) { h.IndexNow = new(IndexNow) })
		s := b.site("named.example")
		q, err := announce.New([]byte(`{"key":"`+key+`"}`), announce.Config{})
		if err != nil {
			t.Fatal(err)
		}
		s.state.queue.Store(q)
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

// TestGoneDuringPause: while a site pauses for a 429, what is gone is not requested again before it is announced.
func TestGoneDuringPause(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		asked := 0
		b.pages = func(w http.ResponseWriter, r *http.Request) error {
			asked++
			upstream(r)
			w.Header().Set("Retry-After", "300")
			w.WriteHeader(http.StatusTooManyRequests)
			return nil
		}
		s := b.site("named.example")
		for range 2 {
			if _, err := s.isGone(t.Context(), "/a"); err == nil {
				t.Error("it is known whether the page is gone")
			}
		}
		if asked != 1 {
			t.Errorf("got %d requests, want one", asked)
		}
	})
}
