package sitemap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed3295b519/caddy-sitemap/internal/crawler"
)

// googlebot is the one with a smartphone, which says to be three browsers, too.
const googlebot = "Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Mobile Safari/537.36 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"

// published is a handler whose one site has a snapshot; nil: it has no pages.
func published(snapshot *Snapshot) (*Handler, *site) {
	h, s := waiting()
	s.held.Store(new(held))
	s.held.Load().snapshot.Store(snapshot)
	s.markReady()
	return h, s
}

// fetch asks a handler for a path. It returns the status that Caddy would answer.
func (h *Handler) fetch(r *http.Request, next caddyhttp.HandlerFunc) int {
	w := httptest.NewRecorder()
	if err := h.ServeHTTP(w, r, next); err != nil {
		return statusOf(err)
	}
	return w.Code
}

// said are readings without their times, as "crawler document result".
func said(readings []Reading) []string {
	var all []string
	for _, r := range readings {
		all = append(all, fmt.Sprintf("%s %s %s %d", r.Crawler, r.Document, r.Result, r.Times))
	}
	return all
}

func TestReadersResults(t *testing.T) {
	one := snapshotOf(t, "/a", "/b")
	many := writing{maxPages: 100}.snapshot(t, numbered(1000))
	shardPath := "/sitemap" + many.shards[1].suffix
	without := writing{maxPages: 100, previous: many}.snapshot(t, numbered(10)) // its shards are retired
	etag, since := many.index.headers.etag, testTime.Add(time.Hour).Format(http.TimeFormat)
	gone := func(http.ResponseWriter, *http.Request) error { return caddyhttp.Error(http.StatusNotFound, nil) }
	fails := func(http.ResponseWriter, *http.Request) error { return errors.New("failing") }
	txt := http.Header{"Content-Type": {"text/plain"}, "Last-Modified": {testTime.Format(http.TimeFormat)}}
	rules := answering(200, txt, "User-agent: *\nDisallow: /x\n")
	named := answering(200, txt, testLine)
	conditional := func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Content-Type", "text/plain")
		http.ServeContent(w, r, "", testTime, strings.NewReader(strings.Repeat("# long\n", 100_000)))
		return nil
	}
	for _, test := range []struct {
		snapshot *Snapshot
		request  string // method, path, headers
		next     caddyhttp.HandlerFunc
		status   int
		want     string // document and result; "": nothing is counted
	}{
		{one, "GET /sitemap.xml", gone, 200, "sitemap served"},
		{one, "HEAD /sitemap.xml", gone, 200, "sitemap served"},
		{one, "GET /sitemap.xml|Accept-Encoding: gzip", gone, 200, "sitemap served"},
		{one, "HEAD /sitemap.xml|Accept-Encoding: gzip", gone, 200, "sitemap served"},
		{one, "GET /sitemap.xml.gz", gone, 200, "sitemap served"},
		{one, "GET /sitemap.txt", gone, 200, "sitemap served"},
		{many, "GET /sitemap.xml", gone, 200, "index served"},
		{many, "GET /sitemap.xml.gz", gone, 200, "index served"},
		{many, "GET " + shardPath + ".xml", gone, 200, "shard served"},
		{many, "GET " + shardPath + ".xml.gz|Accept-Encoding: gzip", gone, 200, "shard served"},
		{many, "GET " + shardPath + ".txt", gone, 200, "shard served"},
		{without, "GET " + shardPath + ".xml", gone, 200, "shard served"},
		{many, "GET /sitemap.xml|Range: bytes=0-9", gone, 206, "index served"},
		{many, "GET /sitemap.xml|Accept-Encoding: gzip|Range: bytes=0-9", gone, 206, "index served"},
		{many, "GET /sitemap.xml|Accept-Encoding: gzip|If-None-Match: \"other\"", gone, 200, "index served"},
		{many, "GET /sitemap.xml|Range: bytes=1-2,4-5", gone, 200, "index served"},

		{many, "GET /sitemap.xml|If-None-Match: " + etag, gone, 304, "index not_modified"},
		{many, "HEAD /sitemap.xml|If-None-Match: " + etag, gone, 304, "index not_modified"},
		{one, "GET /sitemap.xml|Accept-Encoding: gzip|If-Modified-Since: " + since, gone, 304, "sitemap not_modified"},
		{many, "GET " + shardPath + ".txt|If-Modified-Since: " + since, gone, 304, "shard not_modified"},

		{nil, "GET /sitemap.xml", gone, 404, "index missing"},
		{nil, "GET /sitemap.xml", respond(200), 200, "index missing"},
		{nil, "POST /sitemap.xml", gone, 404, "index missing"},
		{many, "GET /sitemap-0123456789ab.xml", gone, 404, "shard missing"},
		{many, "GET /sitemap.txt", gone, 404, "index missing"},

		{many, "POST /sitemap.xml", gone, 405, "index refused"},
		{one, "DELETE /sitemap.xml", gone, 405, "sitemap refused"},
		{many, "GET /sitemap.xml|Range: bytes=99999999-", gone, 416, "index refused"},
		{many, "GET /sitemap.xml|If-Match: \"other\"", gone, 412, "index refused"},

		{one, "GET /robots.txt", rules, 200, "robots served"},
		{one, "HEAD /robots.txt", rules, 200, "robots served"},
		{one, "GET /robots.txt", named, 200, "robots served"},
		{one, "GET /robots.txt", gone, 200, "robots served"},
		{one, "GET /robots.txt|Range: bytes=0-3", rules, 206, "robots served"},
		{one, "GET /robots.txt|If-Modified-Since: " + since, named, 304, "robots not_modified"},
		{one, "GET /robots.txt", conditional, 200, "robots served"},
		{one, "GET /robots.txt|If-Modified-Since: " + since, conditional, 304, "robots not_modified"},
		{one, "HEAD /robots.txt", conditional, 200, "robots served"},
		{one, "GET /robots.txt", respond(301), 301, "robots redirected"},
		{one, "GET /robots.txt", respond(403), 403, "robots refused"},
		{one, "GET /robots.txt", respond(503), 503, "robots unavailable"},
		{one, "GET /robots.txt", fails, 500, "robots unavailable"},
		{nil, "GET /robots.txt", rules, 200, "robots missing"},
		{one, "POST /robots.txt", rules, 200, ""},
		{one, "GET /other.html", gone, 404, ""},
		{one, "GET /sitemap.html", gone, 404, ""},
	} {
		t.Run(strings.ReplaceAll(test.request, "/", ":"), func(t *testing.T) {
			h, s := published(test.snapshot)
			s.app.now = func() time.Time { return testTime }
			lines := strings.Split(test.request, "|")
			method, path, _ := strings.Cut(lines[0], " ")
			r := httptest.NewRequest(method, path, nil)
			for _, line := range lines[1:] {
				name, value, _ := strings.Cut(line, ": ")
				r.Header.Set(name, value)
			}
			r.Header.Set("User-Agent", googlebot)
			if status := h.fetch(r, test.next); status != test.status {
				t.Errorf("got status %d, want %d", status, test.status)
			}
			var want []string
			if test.want != "" {
				want = []string{"Googlebot " + test.want + " 1"}
			}
			got := s.readers.list()
			if !slices.Equal(said(got), want) {
				t.Errorf("got %q, want %q", said(got), want)
			}
			if len(got) == 1 && !got[0].Last.Equal(testTime.Truncate(time.Second)) {
				t.Errorf("got last %s", got[0].Last)
			}
		})
	}
}

// TestReadersOfOthers: what comes to no document, or stands for another's.
func TestReadersOfOthers(t *testing.T) {
	pass := respond(200)
	get := func(path string) *http.Request { return httptest.NewRequest(http.MethodGet, path, nil) }
	t.Run("not ready", func(t *testing.T) {
		h, s := waiting()
		h.app.cancel()
		for path, want := range map[string]int{"/sitemap.xml": 503, "/sitemap-0123456789ab.xml": 503, "/robots.txt": 200} {
			if got := h.fetch(get(path), pass); got != want {
				t.Errorf("%s: got status %d, want %d", path, got, want)
			}
		}
		if got, want := sorted(s.readers), []string{"none index unavailable 1", "none robots missing 1", "none shard unavailable 1"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	t.Run("redirected", func(t *testing.T) {
		h, s := published(nil)
		_, main := published(snapshotOf(t, "/a"))
		s.main.Store(main)
		for path, want := range map[string]int{"/sitemap.xml": 308, "/sitemap-0123456789ab.txt": 308, "/robots.txt": 200} {
			if got := h.fetch(get(path), pass); got != want {
				t.Errorf("%s: got status %d, want %d", path, got, want)
			}
		}
		if got, want := sorted(s.readers), []string{"none robots served 1", "none shard redirected 1", "none sitemap redirected 1"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := said(main.readers.list()); got != nil {
			t.Errorf("the main site counts %q", got)
		}
	})
	t.Run("asked by ourselves", func(t *testing.T) {
		h, s := published(snapshotOf(t, "/a"))
		for _, p := range []*probe{nil, {}, {robots: true}, {handler: h}, {handler: h, robots: true}} {
			for _, path := range []string{"/sitemap.xml", "/robots.txt"} {
				r := get(path)
				r.RemoteAddr = strangerAddr
				ctx := context.WithValue(r.Context(), probeCtxKey{}, p)
				if p != nil && p.handler != nil && !p.robots {
					continue // it looks for the root, for which Caddy's context is needed
				}
				h.fetch(r.WithContext(ctx), pass)
			}
		}
		if got := said(s.readers.list()); got != nil {
			t.Errorf("got %q", got)
		}
	})
	t.Run("no host", func(t *testing.T) {
		b := newBench(t, &Handler{})
		close(b.app.started)
		for _, path := range []string{"/sitemap.xml", "/robots.txt"} {
			r := get(path)
			r.Host = "a b"
			b.handler.fetch(r, pass)
		}
		if got := said(b.app.allReaders().list()); got != nil {
			t.Errorf("got %q", got)
		}
	})
}

func sorted(r *readers) []string { return slices.Sorted(slices.Values(said(r.list()))) }

// TestReadersList: the latest first, and as JSON.
func TestReadersList(t *testing.T) {
	var r readers
	now := testTime
	clock := func() time.Time { return now }
	count := func(agent string, document readDocument, result readResult) {
		r.count(http.Header{"User-Agent": {agent}}, document, result, clock)
		now = now.Add(time.Second)
	}
	if got := r.list(); len(got) != 0 {
		t.Errorf("nobody: got %v", got)
	}
	count("bingbot/2.0", readShard, readServed)
	count("bingbot/2.0", readShard, readNotModified)
	count(googlebot, readIndex, readServed)
	count("BingBot/2.0", readShard, readServed)
	count(browser, readSitemap, readRefused)
	want := []string{"browser sitemap refused 1", "Bingbot shard served 2", "Googlebot index served 1", "Bingbot shard not_modified 1"}
	if got := said(r.list()); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	encoded, err := json.Marshal(r.list()[1])
	if want := `{"crawler":"Bingbot","document":"shard","result":"served","times":2,"last":"2026-03-04T05:06:10Z"}`; err != nil || string(encoded) != want {
		t.Errorf("got %s, %v, want %s", encoded, err, want)
	}
	for range r.all() {
		break
	}
	var none *readers
	none.count(nil, readIndex, readServed, clock)
	if got := none.list(); len(got) != 0 {
		t.Errorf("nothing counts %v", got)
	}
}

// TestReadersAgents: whatever calls itself whatever, nothing of it is kept.
func TestReadersAgents(t *testing.T) {
	h, s := published(snapshotOf(t, "/a"))
	r := httptest.NewRequest(http.MethodGet, "/sitemap.xml", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	read := func(agents ...string) {
		r.Header["User-Agent"] = agents
		if err := h.ServeHTTP(nowhere{http.Header{}}, r, nil); err != nil {
			t.Fatal(err)
		}
	}
	read()
	read("")
	read("bot\r\nX-Injected: 1\n")
	read("\xff\xfe\x00bot\x80")
	read(strings.Repeat("x", 1<<20))
	read("x" + strings.Repeat("bot", 1<<20))
	read("first/1.0", "Googlebot")
	var before, after runtime.MemStats
	for f := range crawler.Families {
		s.readers.of(crawler.Family(f))
	}
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 1_000_000 {
		read(fmt.Sprintf("Agent%d/%d", i, i))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 4<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	want := []string{"none sitemap served 2", "other bot sitemap served 3", "unknown sitemap served 1000002"}
	if got := sorted(s.readers); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestReadersSize: a site that nobody reads costs a pointer, one that all read so many
// counters.
func TestReadersSize(t *testing.T) {
	if got, want := unsafe.Sizeof(readers{}), unsafe.Sizeof(uintptr(0)); got != want {
		t.Errorf("of nobody: %d bytes, want %d", got, want)
	}
	if got := unsafe.Sizeof(readCounts{}) * uintptr(crawler.Families); got > 16<<10 {
		t.Errorf("of all: %d bytes", got)
	}
	holdsText(t, reflect.TypeFor[readCounts]())
}

// holdsText fails for what can hold on to a string.
func holdsText(t *testing.T, typ reflect.Type) {
	t.Helper()
	switch typ.Kind() {
	case reflect.Array:
		holdsText(t, typ.Elem())
	case reflect.Struct:
		for i := range typ.NumField() {
			holdsText(t, typ.Field(i).Type)
		}
	case reflect.String, reflect.Slice, reflect.Map, reflect.Interface, reflect.Pointer, reflect.UnsafePointer:
		t.Errorf("it holds a %s", typ)
	}
}

func TestReadersConcurrently(t *testing.T) {
	h, s := published(writing{maxPages: 10}.snapshot(t, numbered(100)))
	agents := []string{googlebot, "bingbot", browser, "curl/8", ""}
	const each = 200
	var group sync.WaitGroup
	for _, agent := range agents {
		for range 2 {
			group.Go(func() {
				for i := range each {
					r := httptest.NewRequest(http.MethodGet, "/sitemap.xml", nil)
					r.Header.Set("User-Agent", agent)
					if i%2 == 0 {
						r.Header.Set("If-None-Match", "*")
					}
					if err := h.ServeHTTP(httptest.NewRecorder(), r, nil); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	group.Go(func() {
		for range each {
			s.readers.list()
		}
	})
	group.Wait()
	got := s.readers.list()
	if len(got) != 2*len(agents) {
		t.Errorf("got %q", said(got))
	}
	for _, r := range got {
		if r.Times != each {
			t.Errorf("%s %s: got %d, want %d", r.Crawler, r.Result, r.Times, each)
		}
	}
}

// TestReadersOfVisitors: sites come and go, and what was counted is still counted.
func TestReadersOfVisitors(t *testing.T) {
	b := newBench(t, &Handler{})
	close(b.app.started)
	b.app.cancel() // nobody waits for a refresh
	read := func(host string) {
		r := httptest.NewRequest(http.MethodGet, "/sitemap.xml", nil)
		r.Host = host
		b.handler.fetch(r, respond(404))
	}
	read("named.example")
	for i := range maxVisitorSites {
		read(fmt.Sprintf("%d.example", i))
	}
	total := func() (n uint64) {
		for r := range b.app.allReaders().all() {
			n += r.Times
		}
		return n
	}
	const sites = maxVisitorSites + 1 // and the named one
	if got := total(); got != sites {
		t.Errorf("got %d, want %d", got, sites)
	}
	read("refused.example")
	if got := total(); got != sites+1 {
		t.Errorf("with one that was refused: got %d, want %d", got, sites+1)
	}
	b.clock.advance(2 * usedLately)
	hosts := slices.Collect(maps.Keys(b.app.sites))
	for i := range 100 {
		read(fmt.Sprintf("later-%d.example", i))
	}
	if there := slices.ContainsFunc(hosts, func(id siteID) bool { return b.app.sites[id] == nil }); !there {
		t.Error("no site had to go")
	}
	if got, want := total(), uint64(sites+101); got != want {
		t.Errorf("after sites have gone: got %d, want %d", got, want)
	}
	if got := b.site("named.example").readers.list(); len(got) != 1 || got[0].Times != 1 {
		t.Errorf("the named site counts %v", got)
	}
}

// TestReadersOutliveReload: the next configuration goes on counting; what nobody adopts
// of visitors' sites is summed.
func TestReadersOutliveReload(t *testing.T) {
	at := newStore()
	first, second := at.join(), at.join()
	made := func(visitors bool) func() *shelf {
		return func() *shelf {
			sh := newShelf(nil, "")
			sh.visitors = visitors
			return sh
		}
	}
	count := func(sh *shelf) { sh.readers.count(nil, readIndex, readServed, time.Now) }
	for _, key := range []string{"kept", "left"} {
		count(at.shelf(first, key, made(true)))
	}
	count(at.shelf(first, "named", made(false)))
	kept := at.shelf(second, "kept", made(true))
	at.leave(first)
	if got := said(kept.readers.list()); !slices.Equal(got, []string{"none index served 1"}) {
		t.Errorf("the adopted one has %q", got)
	}
	if got := said(at.departed.list()); !slices.Equal(got, []string{"none index served 1"}) {
		t.Errorf("those that have gone have %q", got)
	}
	count(kept)
	at.leaveShelf(second, "kept")
	if got := said(at.departed.list()); !slices.Equal(got, []string{"none index served 3"}) {
		t.Errorf("then those that have gone have %q", got)
	}
}

// TestCountingAllocates: nothing more than serving does.
func TestCountingAllocates(t *testing.T) {
	h, s := published(snapshotOf(t, "/a"))
	r := httptest.NewRequest(http.MethodGet, "/sitemap.xml", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	r.Header.Set("User-Agent", googlebot)
	w := nowhere{http.Header{}}
	allocations := func() float64 {
		return testing.AllocsPerRun(100, func() { _ = h.ServeHTTP(w, r, nil) })
	}
	counted := allocations()
	s.readers = nil
	if uncounted := allocations(); counted != uncounted {
		t.Errorf("got %v allocations, %v without counting", counted, uncounted)
	}
}

// BenchmarkRead is a crawler's fetch of a sitemap: compare counted and uncounted.
func BenchmarkRead(b *testing.B) {
	for _, test := range []struct{ name, agent string }{{"uncounted", googlebot}, {"counted", googlebot}, {"tool", "curl/8.5.0"}, {"hostile", strings.Repeat("yandexm", 1<<17)}} {
		b.Run(test.name, func(b *testing.B) {
			h, s := published(writing{}.snapshot(b, numbered(1000)))
			if test.name == "uncounted" {
				s.readers = nil
			}
			r := httptest.NewRequest(http.MethodGet, "/sitemap.xml", nil)
			r.Header.Set("Accept-Encoding", "gzip")
			r.Header.Set("User-Agent", test.agent)
			w := nowhere{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				if err := h.ServeHTTP(w, r, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
