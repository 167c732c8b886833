package announce

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
)

var indexNowOnly = Config{Origin: "https://example.com", Key: key, Targets: []Target{{IndexNow, DefaultEndpoint}}}

// TestUpdate: what is sent of the changes that refreshes find. Each step is one update, after which all that is due within
// six minutes is sent and accepted.
func TestUpdate(t *testing.T) {
	complete, partial := Update{Complete: true, Crawled: true, Listed: 10}, Update{Listed: 10, Crawled: true} // or held back
	with := func(u Update, added, changed, removed changes) Update {
		u.Changes = indexing.Changes{Added: added, Changed: changed, Removed: removed}
		return u
	}
	none := changes{}
	added := func(u Update, paths ...string) Update { return with(u, dated(0, paths...), none, none) }
	removed := func(l changes) Update { return with(complete, none, none, l) }
	of := func(l changes) Update { return with(complete, none, l, none) }
	afresh := of(dated(1, "/a"))
	afresh.First = true
	for name, steps := range map[string][]struct {
		update Update
		want   string // paths with spaces between; "-": nothing is sent yet
	}{
		"changed pages, those of the newest date first": {
			{of(changes{First: []indexing.Change{{Path: "/b", LastMod: 20}, {Path: "/c", LastMod: 30}, {Path: "/a", LastMod: 10}}}), "/c /b /a"}, {complete, ""},
		},
		"a page that changes twice":  {{of(dated(1, "/a", "/b", "/a")), "/a /b"}},
		"a page without a date":      {{of(dated(0, "/a")), ""}},
		"gone":                       {{removed(gone("/a", "/b")), "/b /a"}},
		"removed for another reason": {{removed(dated(0, "/a")), ""}},
		"added, confirmed":           {{added(complete, "/a", "/b"), ""}, {complete, "/b /a"}, {complete, ""}},
		"added, and again, as by a node that lacks the last commit": {
			{added(complete, "/a"), ""}, {added(complete, "/a", "/b"), "/a"}, {complete, "/b"}, {complete, ""},
		},
		"added, removed":                   {{added(complete, "/a", "/b"), ""}, {removed(dated(0, "/a")), "/b"}, {complete, ""}},
		"added, gone":                      {{added(complete, "/a"), ""}, {removed(gone("/a")), ""}, {complete, ""}},
		"added, changed":                   {{added(complete, "/a"), ""}, {changed(10, "/a"), "/a"}, {complete, ""}},
		"parts of a refresh confirm none":  {{added(partial, "/a"), ""}, {added(partial, "/b"), ""}, {complete, ""}, {complete, "/b /a"}},
		"parts of the next refresh":        {{added(complete, "/a"), ""}, {partial, ""}, {partial, ""}, {complete, "/a"}},
		"changes of a part are sent":       {{with(partial, none, dated(1, "/a"), none), "/a"}},
		"added and changed by one refresh": {{added(partial, "/a"), ""}, {with(partial, none, dated(1, "/a"), none), ""}, {complete, ""}, {complete, "/a"}},
		"removed before it is sent":        {{changed(10, "/a", "/b"), "-"}, {removed(dated(0, "/a")), "/b"}},
		"gone, back, gone before it is sent": {
			{removed(gone("/a")), "-"}, {added(complete, "/a"), "-"}, {removed(gone("/a")), "/a"}, {complete, ""},
		},
		"gone, back before it is sent": {{removed(gone("/a")), "-"}, {added(complete, "/a"), "/a"}, {complete, "/a"}, {complete, ""}},
		"added ones wait while more change than are listed": {
			{added(complete, "/a"), ""}, {with(complete, none, changes{Count: 10_001}, none), "/a"}, {complete, ""},
		},
		"the site was empty in between": {{afresh, ""}, {changed(10, "/b"), "/b"}},
	} {
		t.Run(name, func(t *testing.T) {
			q, now := newQueue(t, indexNowOnly, 10), epoch
			for i, step := range steps {
				q = restart(t, q.Encode(), indexNowOnly)
				if q.Update(step.update); step.want == "-" {
					continue
				}
				var sent []string
				now = now.Add(6 * time.Minute)
				for job, _ := q.Begin(now); job != nil; job, _ = q.Begin(now) {
					sent = append(sent, pathsOf(t, job)...)
					q.End(job, Outcome{Requested: true, Status: 200}, now)
				}
				if got := strings.Join(sent, " "); got != step.want {
					t.Errorf("step %d: sent %q, want %q", i, got, step.want)
				}
			}
		})
	}
}

// TestUpdateFirst: a site's first crawl announces nothing, however many publications and restarts it takes.
func TestUpdateFirst(t *testing.T) {
	e := newEngine(t)
	q := restart(t, nil, e.config(IndexNow, Ping, Hub))
	for i, u := range []Update{
		{First: true, Listed: 1, Changes: indexing.Changes{Added: dated(1, "/a")}},
		{Listed: 2, Changes: indexing.Changes{Added: dated(1, "/b"), Changed: dated(1, "/a")}},
		{Complete: true, Listed: 2, Changes: indexing.Changes{Removed: gone("/b")}},
		{Complete: true, Crawled: true, Listed: 3, Changes: indexing.Changes{Added: dated(1, "/c")}},
		{Complete: true, Crawled: true, Listed: 3},
	} {
		u.Sitemap, u.Feed = i < 4, i < 4
		q = restart(t, q.Encode(), e.config(IndexNow, Ping, Hub))
		q.Update(u)
		if job, next := q.Begin(epoch); job != nil || !next.IsZero() {
			t.Errorf("publication %d: %s is announced by %s, or at %s", i, job.URL, job.target.Kind, next)
		}
	}
	q.Update(changed(3, "/c"))
	for _, kind := range []Kind{IndexNow, Ping, Hub} {
		job, _ := q.Begin(epoch)
		if job == nil || job.target.Kind != kind {
			t.Fatalf("%v, want %s", job, kind)
		}
		q.End(job, Outcome{Status: 200}, epoch)
	}
}

// TestDaily: how many URLs are accepted in a day, the newest first; the rest waits. Each batch is refused once, and then
// noted by a process that is killed.
func TestDaily(t *testing.T) {
	for _, test := range []struct {
		listed, daily, changed int
		want                   []int // URLs a day
	}{
		{10, 0, 250, []int{100, 100, 50, 0}},
		{10, 30, 50, []int{30, 20, 0}},
		{300_000, 0, 45_000, []int{30_000, 15_000, 0}},
		{10, 1_000_000, 70_000, []int{50_000, 0}}, // as many as a queue holds
	} {
		c := indexNowOnly
		c.Daily = test.daily
		q, now, tries := newQueue(t, c, test.listed), epoch, 0
		q.Update(changed(test.listed, numbered(test.changed)...))
		left := numbered(test.changed)
		slices.Reverse(left) // of changes of one date, those listed last are the newest
		for day, want := range test.want {
			sent := 0
			end := now.Add(24 * time.Hour)
			for job, next := q.Begin(now); job != nil || !next.IsZero() && next.Before(end); job, next = q.Begin(now) {
				if now = now.Add(5 * time.Minute); job == nil {
					continue
				}
				paths := pathsOf(t, job)
				if len(paths) > 10_000 || !slices.Equal(paths, left[:len(paths)]) {
					t.Fatalf("%v: %d URLs at once, or not the newest first", test, len(paths))
				}
				if tries++; tries%3 == 0 {
					sent, left = sent+len(paths), left[len(paths):]
				}
				if tries%3 != 2 {
					q.End(job, Outcome{Status: map[int]int{0: 200, 1: 503}[tries%3]}, now)
				}
				q = restart(t, q.Encode(), c)
			}
			if sent != want {
				t.Errorf("%v: %d URLs on day %d, want %d", test, sent, day+1, want)
			}
			now = end
		}
		if s := q.Status()[0]; s.Accepted+s.Dropped != test.changed || s.Waiting != 0 {
			t.Errorf("%v: %+v", test, s)
		}
	}
}

// TestBounds: the queue and its stored form stay small whatever changes; the oldest changes are dropped, and counted.
func TestBounds(t *testing.T) {
	c := indexNowOnly
	c.Targets = []Target{{IndexNow, "https://a.example/"}, {IndexNow, "https://b.example/"}}
	for name, tail := range map[string]string{"many": "", "long": strings.Repeat("x", 1000)} {
		paths := func(round int) (paths []string) {
			for _, path := range numbered(10_000) {
				paths = append(paths, fmt.Sprint("/", round, path, tail))
			}
			return paths
		}
		q := newQueue(t, c, 1_000_000)
		for round := range 12 {
			u := changed(1_000_000, paths(round)...)
			u.Complete, u.Changes.Added = false, dated(1, paths(round+100)...)
			q.Update(u)
		}
		if size := len(q.Encode()); size > 3*(maxBytes+3*maxPaths+1000) {
			t.Errorf("%s: stored, it takes %d bytes", name, size)
		}
		for _, s := range q.Status() {
			if s.Waiting > maxPaths || s.Unconfirmed > maxPaths || s.Waiting+s.Unconfirmed+s.Dropped != 12*2*10_000 {
				t.Errorf("%s: %+v", name, s)
			}
		}
		if job, _ := q.Begin(epoch); pathsOf(t, job)[0] != paths(11)[9_999] {
			t.Errorf("%s: the newest change is not the first to be sent", name)
		}
	}
}

// TestTargets: which targets a configuration has, and what becomes of what waits for others.
func TestTargets(t *testing.T) {
	all := Config{Origin: "https://example.com", Key: key, Targets: []Target{{IndexNow, "https://a.example/"}, {IndexNow, "https://a.example/"},
		{IndexNow, "https://b.example/"}, {Ping, "https://a.example/?{sitemap}"}, {Hub, "https://a.example/"}}}
	private, fewer := all, all
	private.Origin, fewer.Targets = "http://localhost:8080", all.Targets[2:]
	q := newQueue(t, all, 10)
	q.Update(changed(10, "/a"))
	for want, config := range map[string]Config{"indexnow:1 indexnow:1 ping:1 hub:1 ": all, "ping:1 hub:1 ": private, "indexnow:1 ping:1 hub:1 ": fewer} {
		got, q := "", restart(t, q.Encode(), config)
		for _, s := range q.Status() {
			got += fmt.Sprintf("%s:%d ", s.Kind, s.Waiting)
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
		u := changed(10, "/a")
		u.Changes.Added, u.Changes.Removed = dated(1, "/b"), absent("/c")
		if q.Update(u); bytes.Contains(q.Encode(), []byte(`"/b"`)) != (len(want) > 15) {
			t.Errorf("%sare kept: %s", want, q.Encode())
		}
	}
}

// TestKey: a key is made once, and kept; a configured one stands before it.
func TestKey(t *testing.T) {
	unset, set := indexNowOnly, indexNowOnly
	unset.Key, unset.Prefix, set.Key = "", "/docs", "configured-1"
	q := newQueue(t, unset, 10)
	made := q.Key()
	again, other, configured := restart(t, q.Encode(), unset).Key(), newQueue(t, unset, 10).Key(), restart(t, q.Encode(), set).Key()
	healed := restart(t, bytes.ReplaceAll(q.Encode(), []byte(made), []byte("../../etc/passwd")), unset).Key()
	if len(made) != 32 || strings.Trim(made, "0123456789abcdef") != "" {
		t.Errorf("key %q", made)
	}
	if again != made || other == made || configured != set.Key || !IsKey(healed) {
		t.Errorf("after a restart %q; another site has %q; configured %q; damaged %q", again, other, configured, healed)
	}
}

func TestChecks(t *testing.T) {
	check := func(target Target, isGood bool) {
		if err := target.Check(); (err == nil) != isGood {
			t.Errorf("%q: %v", target, err)
		}
	}
	for key, isGood := range map[string]bool{key: true, "A-z0-9-8": true, strings.Repeat("a", 128): true, "1234567": false,
		strings.Repeat("a", 129): false, "12345678\n": false, "1234567/": false, "": false} {
		if IsKey(key) != isGood {
			t.Errorf("%q is a key: %t", key, !isGood)
		}
	}
	for target, isGood := range map[string]bool{DefaultEndpoint: true, "http://127.0.0.1:8080/indexnow": true, "api.indexnow.org/indexnow": false,
		"ftp://example.com/": false, "https://user:secret@example.com/": false, "https://exa mple.com/": false, "https://example.com/%zz": false} {
		check(Target{IndexNow, target}, isGood)
		check(Target{Ping, target}, false)
		check(Target{Ping, target + "?u={sitemap}"}, isGood)
		check(Target{Hub, target + "?u={sitemap}"}, false)
		check(Target{Ping, target + "?u={sitemap}&v={other}"}, false)
	}
}
