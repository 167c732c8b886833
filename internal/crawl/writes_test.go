package crawl

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

var began = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// looksOf returns when looks begin after writes, in seconds: writes are their seconds, in order, each with the letter of its kind, and
// an "!" after it if what the next look finds is listed.
func looksOf(writes string) string {
	var ws Writes
	var looks []string
	now := began
	isUseful := false
	look := func(until time.Time) {
		for {
			due := ws.Due()
			if due.IsZero() || due.After(until) {
				return
			}
			now = due
			isEarly := ws.Begin(now.Add(-time.Millisecond)) != nil
			if l := ws.Begin(now); isEarly || !l.IsOn(now.Unix()) {
				looks = append(looks, "not when it is due")
			}
			if isUseful {
				ws.NoteChange(now)
			}
			isUseful = false
			looks = append(looks, fmt.Sprint(now.Sub(began).Seconds()))
		}
	}
	for word := range strings.FieldsSeq(writes) {
		var second float64
		var kind string
		_, _ = fmt.Sscanf(word, "%g%s", &second, &kind)
		at := began.Add(time.Duration(second * float64(time.Second)))
		look(at)
		// Of those of which another process has told, nothing is known.
		ws.Note(Write{Method: strings.Trim(kind[:1], "?")}, at)
		isUseful = isUseful || strings.HasSuffix(kind, "!")
	}
	look(began.Add(24 * time.Hour))
	return strings.Join(looks, " ")
}

// TestLooks: a look begins a second after a write, and ten after the last look. Where it brings nothing, the next one because of such
// writes comes later.
func TestLooks(t *testing.T) {
	for name, test := range map[string]struct{ writes, want string }{
		"one":                        {"5a", "6"},
		"two at once":                {"5a 5b", "6"},
		"two of two kinds":           {"5a 5.5b", "6 16"},
		"a series":                   {"5a 6.5a 8a 9a", "6 16"},
		"later":                      {"5a 30a", "6 31"},
		"nothing comes of it":        {"0a 20a 40a 60a 100a", "1 21 41 81 161"},
		"all the time":               {"0a 2a 20a 30a 60a 100a 200a 300a 400a 700a 1200a 2500a", "1 11 31 71 151 311 631 1231 2501"},
		"something comes of it":      {"0a! 20a! 40a! 60a! 61a", "1 21 41 61 71"},
		"something comes of it once": {"0a 20a 41a 82a! 90a 190a", "1 21 42 83 93 191"},
		"told by others":             {"0? 20? 40? 60? 80?", "1 21 41 61 81"},
		"of another one":             {"0a 20a 40a 45b", "1 21 41 51"},
		"muted, beside another one":  {"0a 20a 40a 45a 46b!", "1 21 41 51 81"},
	} {
		if got := looksOf(test.writes); got != test.want {
			t.Errorf("%s: %s: got looks at %s, want %s", name, test.writes, got, test.want)
		}
	}
}

// TestLongestMute: writes are looked at after ten minutes at most.
func TestLongestMute(t *testing.T) {
	var writes []string
	for second := range 86400 / 2 {
		writes = append(writes, fmt.Sprintf("%da", 2*second))
	}
	looks := strings.Fields(looksOf(strings.Join(writes, " ")))
	if n := len(looks); n < 24*6 || n > 24*6+8 {
		t.Errorf("%d looks in a day", n)
	}
}

// TestWriteKinds: writes are told apart by all but digits.
func TestWriteKinds(t *testing.T) {
	w := Write{Method: "POST", Path: "/posts/12/save", Status: 200, ContentType: "text/html"}
	for name, test := range map[string]struct {
		change func(w *Write)
		isSame bool
	}{
		"another number": {func(w *Write) { w.Path = "/posts/7/save" }, true},
		"another path":   {func(w *Write) { w.Path = "/posts/12/draft" }, false},
		"another method": {func(w *Write) { w.Method = "PUT" }, false},
		"another status": {func(w *Write) { w.Status = 302 }, false},
		"another type":   {func(w *Write) { w.ContentType = "application/json" }, false},
		"a parameter":    {func(w *Write) { w.ContentType += "; charset=utf-8" }, true},
	} {
		var ws Writes
		other := w
		test.change(&other)
		ws.Note(w, began)
		if isFirst := ws.Note(other, began); isFirst == test.isSame {
			t.Errorf("%s: the same kind %t, want %t", name, !isFirst, test.isSame)
		}
	}
}

// TestWritesAreBounded: of endless kinds of writes, those that were looked at last are known, and of endless URLs the first.
func TestWritesAreBounded(t *testing.T) {
	var ws Writes
	name := func(i int) string {
		return strings.Repeat("x", 3+i%1000) + string(rune('a'+i%26)) + string(rune('A'+i/26%26))
	}
	for i := range 10_000 {
		now := began.Add(time.Duration(i) * time.Minute)
		ws.Note(Write{Path: name(i) + strings.Repeat("y", 1000)}, now, name(i), name(i+1))
		if i > 5000 {
			ws.Begin(now.Add(30 * time.Second))
		}
	}
	if len(ws.kinds) > maxKinds || len(ws.next.Paths) > maxNamed+1 || len(ws.made) > 61 {
		t.Errorf("%d kinds, %d paths, %d looks", len(ws.kinds), len(ws.next.Paths), len(ws.made))
	}
	for w := range ws.kinds {
		if len(w.Path) > maxName {
			t.Fatalf("a path has %d bytes", len(w.Path))
		}
	}
}

// TestWritesName: a look knows the last URLs that writes have named, each once.
func TestWritesName(t *testing.T) {
	var ws Writes
	for i := range 100 {
		ws.Note(Write{}, began, "/heartbeat", "")
		if i%2 == 0 {
			ws.Note(Write{}, began, fmt.Sprint("/page-", i))
		}
	}
	paths := ws.Begin(began.Add(time.Minute)).Paths
	if len(paths) != maxNamed || paths[maxNamed-1] != "/page-98" || slices.Contains(paths, "") {
		t.Errorf("got %q", paths)
	}
}

// TestWriteCounts: the last hour counts.
func TestWriteCounts(t *testing.T) {
	var ws Writes
	for i := range 3 {
		now := began.Add(time.Duration(i) * 40 * time.Minute)
		ws.Note(Write{}, now)
		ws.Note(Write{}, now)
		ws.Begin(now.Add(time.Second))
		if i == 1 {
			ws.NoteChange(now)
		}
	}
	ws.Note(Write{}, began.Add(81*time.Minute))
	want := WriteCounts{Writes: 5, Looks: 2, Changes: 1}
	if got := ws.Counts(began.Add(90 * time.Minute)); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// savedSite is an application of some pages in lists, which the front page links to.
func savedSite(lists, pages int) *static {
	s := &static{made: true, pages: map[string]string{"/": ""}}
	for i := range lists {
		list := fmt.Sprintf("/z-list-%d", i)
		s.pages["/"] += " " + list
		for j := range pages {
			path := fmt.Sprintf("/page-%d-%d", i, j)
			s.pages[list] += " " + path
			s.pages[path] = "a text"
		}
	}
	return s
}

// lookAt crawls after a write for a time, and returns what was requested.
func lookAt(t *testing.T, c *Crawler, s *static, gen *record.Generation, lasts time.Duration, paths ...string) (*record.Generation, []string) {
	t.Helper()
	look := &Look{Written: time.Now().Unix(), Begun: time.Now().Unix() + 1, Paths: paths}
	time.Sleep(time.Second)
	s.order = nil
	for until := time.Now().Add(lasts); time.Now().Before(until); {
		run := c.Start(new(list), with(func(p *Policy) {
			p.Links = true
			p.Look = look
		}))
		result := update(t, run, gen, time.Minute)
		gen = list200(t, result.Generation)
		next := time.Unix(result.Next, 0)
		time.Sleep(max(min(time.Until(next), time.Until(until)), time.Second))
	}
	return gen, s.fetched()
}

// TestLook: after a write, ten pages are requested at a time, as many as the budget has: what it names, and then those that are
// nearest. Nothing is requested that is not known.
func TestLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := savedSite(8, 20)
		c := New(Options{Fetcher: s, Limiter: NewLimiter(10, 1)})
		gen := crawlBlog(t, c, s, empty(t), 10*time.Minute, true)
		gen, first := lookAt(t, c, s, gen, time.Second, "/page-7-19", "/unknown")
		if len(first) != lookAtOnce || !slices.Contains(first, "/page-7-19") {
			t.Errorf("at first, %q was requested", first)
		}
		for path := range s.pages {
			if strings.HasPrefix(path, "/z-list-") && !slices.Contains(first, path) {
				t.Errorf("%s was not requested", path)
			}
		}
		if slices.Contains(first, "/unknown") {
			t.Error("a page that is not known was requested")
		}
		_, more := lookAt(t, c, s, gen, 10*time.Minute)
		slices.Sort(more)
		if n := len(more); n < 2*lookAtOnce || n > mostWrites || len(slices.Compact(more)) < n {
			t.Errorf("%d pages were requested in a look, or some twice: %q", n, more)
		}
	})
}

// TestLookAtNew: of pages that are as deep, the newest are looked at first.
func TestLookAtNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := savedSite(1, 20)
		c := New(Options{Fetcher: s, Limiter: NewLimiter(10, 1)})
		gen := crawlBlog(t, c, s, empty(t), 10*time.Minute, true)
		s.pages["/page-new"] = "a text"
		s.pages["/z-list-0"] += " /page-new"
		gen = crawlBlog(t, c, s, gen, 30*time.Hour, true)
		_, first := lookAt(t, c, s, gen, time.Second)
		if !slices.Contains(first, "/page-new") {
			t.Errorf("at first, %q was requested", first)
		}
	})
}

// TestLookInParts: what a part of a look has found changed is confirmed before the next part begins, so that it is dated soon. The front
// page, which the probe has requested, is no part.
func TestLookInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := savedSite(8, 20)
		c := New(Options{Fetcher: s, Limiter: NewLimiter(10, 1)})
		gen := crawlBlog(t, c, s, empty(t), 10*time.Minute, true)
		const changed = "/page-3-3"
		s.pages[changed] = "another text"
		look := &Look{Written: time.Now().Unix(), Begun: time.Now().Unix() + 1, Paths: []string{changed}}
		var parts []string
		for range 3 {
			time.Sleep(writeWait * time.Second)
			s.order = nil
			p := with(func(p *Policy) {
				p.Links = true
				p.Look = look
			})
			p.Front, _ = s.Fetch(t.Context(), Request{Path: "/"})
			s.order = nil
			gen = list200(t, update(t, c.Start(new(list), p), gen, time.Minute).Generation)
			if slices.Contains(s.order, "/") {
				t.Error("the front page was requested again")
			}
			parts = append(parts, fmt.Sprint(len(s.order), slices.Contains(s.order, changed)))
		}
		if got := strings.Join(parts, ", "); got != "10 true, 1 true, 10 false" {
			t.Errorf("the parts have so many pages, and the one that has changed: %s", got)
		}
	})
}

// TestLookIsOver: once all pages were looked at, no crawl is due for that.
func TestLookIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := savedSite(1, 3)
		c := New(Options{Fetcher: s, Limiter: NewLimiter(10, 1)})
		gen := crawlBlog(t, c, s, empty(t), 10*time.Minute, true)
		look := &Look{Written: time.Now().Unix(), Begun: time.Now().Unix() + 1}
		time.Sleep(time.Second)
		update(t, c.Start(new(list), with(func(p *Policy) {
			p.Links = true
			p.Look = look
		})), gen, time.Minute)
		if look.IsOn(time.Now().Unix()) {
			t.Error("the look goes on")
		}
	})
}

// TestLookBudget: looks that come all the time take a tenth of the rate.
func TestLookBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := savedSite(30, 30)
		c := New(Options{Fetcher: s, Limiter: NewLimiter(2, 1)})
		gen := crawlBlog(t, c, s, empty(t), time.Hour, true)
		total := 0
		begun := time.Now()
		for time.Since(begun) < time.Hour {
			var requested []string
			gen, requested = lookAt(t, c, s, gen, 10*time.Second)
			total += len(requested)
		}
		_, idle := lookAt(t, c, s, gen, 0)
		most := mostWrites + 3600*2/10 + 3600*2/20 // with what known pages take besides
		if total > most+len(idle) || total < 600 {
			t.Errorf("%d requests in an hour, want at most %d", total, most)
		}
	})
}

// TestConfirmedSoon: what a look has found changed is confirmed after some seconds.
func TestConfirmedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := savedSite(1, 3)
		c := New(Options{Fetcher: s, Limiter: NewLimiter(2, 1)})
		gen := crawlBlog(t, c, s, empty(t), 10*time.Minute, true)
		s.pages["/page-0-1"] = "another text"
		delete(s.pages, "/page-0-2")
		gen, requested := lookAt(t, c, s, gen, 9*time.Second)
		changed := pathsIf(t, gen, func(rec *record.Record) bool { return rec.Changed != 0 })
		if changed != "/page-0-1" || !strings.Contains(statuses(t, gen), "/page-0-2 404") {
			t.Errorf("%s changed, of %s", changed, statuses(t, gen))
		}
		// What is gone may be so by mistake, as in a deployment: it is confirmed like any other.
		for path, want := range map[string]int{"/page-0-1": 2, "/page-0-2": 1} {
			if n := len(slices.DeleteFunc(slices.Clone(requested), func(p string) bool { return p != path })); n != want {
				t.Errorf("%s was requested %d times, want %d", path, n, want)
			}
		}
	})
}
