package announce

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
)

var indexNowOnly = Config{Origin: "https://example.com", Key: key, Targets: []Target{{IndexNow, DefaultEndpoint}}}

// TestUpdate: what is sent of the changes that refreshes find. Each step is one update, after which all that is due within
// eleven minutes is sent and accepted. Removed pages are gone.
func TestUpdate(t *testing.T) {
	gathered := Update{Gathered: true, Crawled: true} // a part of the refresh that ends next
	partial := Update{Crawled: true}                  // or held back
	with := func(u Update, added, changed, removed changes) Update {
		u.Changes = indexing.Changes{Added: added, Changed: changed, Removed: removed}
		return u
	}
	none := changes{}
	added := func(u Update, paths ...string) Update { return with(u, same(paths...), none, none) }
	removed := func(l changes) Update { return with(complete, none, none, l) }
	of := func(l changes) Update { return with(complete, none, l, none) }
	afresh := added(complete, "/a")
	afresh.First = true
	for name, steps := range map[string][]struct {
		update Update
		want   string // paths with spaces between; "-": nothing is sent yet
	}{
		"changed pages, those of the newest date first": {
			{of(changes{First: []indexing.Change{{Path: "/b", LastMod: 20, Own: true}, {Path: "/c", LastMod: 30, Own: true}, {Path: "/a", LastMod: 10, Own: true}}}), "/c /b /a"}, {complete, ""},
		},
		"a page that changes twice":       {{of(dated(1, "/a", "/b", "/a")), "/a /b"}},
		"a page without a date":           {{of(dated(0, "/a")), ""}},
		"another of its dates counts":     {{of(same("/a")), ""}},
		"gone":                            {{removed(gone("/a", "/b")), "/b /a"}, {complete, ""}},
		"removed for another reason":      {{removed(dated(0, "/a")), ""}},
		"added, confirmed":                {{added(complete, "/a", "/b"), ""}, {complete, "/b /a"}, {complete, ""}},
		"added, confirmed by a part":      {{added(complete, "/a"), ""}, {gathered, "/a"}, {complete, ""}},
		"added, not confirmed by its own": {{added(gathered, "/a"), ""}, {gathered, ""}, {complete, ""}, {gathered, "/a"}},
		"added, and others changed":       {{with(complete, same("/a"), dated(1, "/b"), none), "-"}, {complete, "/a /b"}},
		"others changed long before":      {{with(complete, same("/a"), dated(1, "/b"), none), "/b"}, {complete, "/a"}},
		"added, and again, as by a node that lacks the last commit": {
			{added(complete, "/a"), ""}, {added(complete, "/a", "/b"), "/a"}, {complete, "/b"}, {complete, ""},
		},
		"added, removed":                   {{added(complete, "/a", "/b"), ""}, {removed(dated(0, "/a")), "/b"}, {complete, ""}},
		"added, gone":                      {{added(complete, "/a"), ""}, {removed(gone("/a")), ""}, {complete, ""}},
		"added, gone in the same refresh":  {{added(partial, "/a"), ""}, {removed(gone("/a")), ""}, {complete, ""}},
		"added, changed":                   {{added(complete, "/a"), ""}, {changed("/a"), "/a"}, {complete, ""}},
		"parts of a refresh confirm none":  {{added(partial, "/a"), ""}, {added(partial, "/b"), ""}, {complete, ""}, {complete, "/b /a"}},
		"parts of the next refresh":        {{added(complete, "/a"), ""}, {partial, ""}, {partial, ""}, {complete, "/a"}},
		"changes of a part are sent":       {{with(partial, none, dated(1, "/a"), none), "/a"}},
		"added and changed by one refresh": {{added(partial, "/a"), ""}, {with(partial, none, dated(1, "/a"), none), ""}, {complete, ""}, {complete, "/a"}},
		"removed before it is sent":        {{changed("/a", "/b"), "-"}, {removed(dated(0, "/a")), "/b"}},
		"changed, then gone":               {{changed("/a", "/b"), "-"}, {removed(gone("/a")), "/a /b"}},
		"changed, gone, back before it is sent": {
			{changed("/a"), "-"}, {removed(gone("/a")), "-"}, {added(complete, "/a"), "/a"}, {complete, ""},
		},
		"gone, back, gone":             {{removed(gone("/a")), "-"}, {added(complete, "/a"), "-"}, {removed(gone("/a")), "/a"}, {complete, ""}},
		"gone, back as it was":         {{removed(gone("/a")), "-"}, {added(complete, "/a"), ""}, {complete, ""}},
		"gone, back with another text": {{removed(gone("/a")), "-"}, {with(complete, dated(1, "/a"), none, none), ""}, {complete, "/a"}, {complete, ""}},
		"gone, announced, back":        {{removed(gone("/a")), "/a"}, {added(complete, "/a"), ""}, {complete, "/a"}},
		"gone, announced, back, gone":  {{removed(gone("/a")), "/a"}, {added(complete, "/a"), ""}, {removed(gone("/a")), ""}},
		"gone, then excluded":          {{removed(gone("/a")), "-"}, {added(complete, "/a"), "-"}, {removed(same("/a")), ""}, {complete, ""}},
		"moved":                        {{with(complete, same("/b"), none, gone("/a")), "/a"}, {complete, "/b"}},
		"added ones wait while more change than are listed": {
			{added(complete, "/a"), ""}, {with(complete, none, changes{Count: 10_001}, none), "/a"}, {complete, ""},
		},
		"the site was empty in between": {{afresh, ""}, {changed("/b"), "/b"}},
	} {
		t.Run(name, func(t *testing.T) {
			q, now := newQueue(t, indexNowOnly), epoch
			refresh := epoch
			for i, step := range steps {
				q = restart(t, q.Encode(), indexNowOnly)
				step.update.At = now
				step.update.Begun = refresh
				if q.Update(step.update); step.update.Complete {
					refresh = refresh.Add(time.Minute)
				}
				if step.want == "-" {
					continue
				}
				var sent []string
				now = now.Add(11 * time.Minute)
				q.checked(q.toCheck(now), nil, nil)
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

// TestUpdateFirst: of a site's first crawl, only what happens to pages that it has listed already is announced, however many
// publications and restarts it takes: none that it finds, and no document.
func TestUpdateFirst(t *testing.T) {
	c := indexNowOnly
	c.Targets = append(slices.Clone(c.Targets), Target{Ping, "https://ping.example/"}, Target{Hub, "https://hub.example/"})
	found := changes{Count: 15_000, First: dated(1, "/e").First} // more than are known by their paths
	q := restart(t, nil, c)
	now := epoch
	for i, step := range []struct {
		update Update
		want   string
	}{
		{Update{First: true, Changes: indexing.Changes{Added: dated(1, "/a", "/b", "/c")}}, ""},
		{Update{Gathered: true, Changes: indexing.Changes{Added: dated(1, "/d"), Changed: dated(1, "/a")}}, "/a"},
		{Update{Gathered: true, Complete: true, Changes: indexing.Changes{Added: found, Removed: gone("/b")}}, "/b"},
		{Update{Gathered: true, Complete: true, Changes: indexing.Changes{Removed: dated(0, "/c")}}, ""},
		{Update{Gathered: true, Complete: true, Changes: indexing.Changes{Changed: same("/d")}}, ""},
		{Update{Gathered: true, Complete: true, Crawled: true, Changes: indexing.Changes{Added: dated(1, "/f")}}, ""},
		{complete, ""},
	} {
		step.update.Sitemap = i < 6
		step.update.Feed = i < 6
		step.update.At = now
		step.update.Begun = now
		q = restart(t, q.Encode(), c)
		q.Update(step.update)
		now = now.Add(11 * time.Minute)
		q.checked(q.toCheck(now), nil, nil)
		var sent []string
		for job, _ := q.Begin(now); job != nil; job, _ = q.Begin(now) {
			if job.target.Kind != IndexNow {
				t.Fatalf("publication %d is announced by %s", i, job.target.Kind)
			}
			sent = append(sent, pathsOf(t, job)...)
			q.End(job, Outcome{Requested: true, Status: 200}, now)
		}
		if got := strings.Join(sent, " "); got != step.want {
			t.Errorf("publication %d: sent %q, want %q", i, got, step.want)
		}
		if s := q.Status(now)[0]; s.Unconfirmed != 0 || s.Dropped != 0 {
			t.Errorf("publication %d: %+v", i, s)
		}
	}
	later := changed("/f")
	later.At = now
	later.Sitemap = true
	later.Feed = true
	q.Update(later)
	for _, kind := range []Kind{IndexNow, Ping, Hub} {
		job, _ := q.Begin(now)
		if job == nil || job.target.Kind != kind {
			t.Fatalf("%v, want %s", job, kind)
		}
		q.End(job, Outcome{Status: 200}, now)
	}
}

// TestDaily: how many URLs are accepted in a day, added pages and then the newest first; the rest waits. Each batch is
// refused once, and then noted by a process that is killed.
func TestDaily(t *testing.T) {
	for _, test := range []struct {
		daily, changed, added int
		want                  []int // URLs a day
	}{
		{0, 20_000, 0, []int{9_000, 9_000, 2_000, 0}},
		{30, 50, 0, []int{27, 23, 0}},
		{30, 50, 2, []int{29, 23, 0}},
		{30, 50, 20, []int{30, 27, 13, 0}},
		{30, 0, 50, []int{30, 20, 0}},
		{1, 2, 0, []int{1, 1, 0}},
		{1_000_000, 70_000, 0, []int{50_000, 0}}, // as many as a queue holds
	} {
		if testing.Short() && test.changed > 20_000 {
			continue
		}
		c := indexNowOnly
		c.Daily = test.daily
		q, now, tries := newQueue(t, c), epoch, 0
		u := changed(numbered(test.changed)...)
		var left list
		for _, path := range numbered(test.added) {
			left = append(left, "/new"+path)
		}
		u.Changes.Added = same(left...)
		q.Update(u)
		u = complete
		u.Begun = epoch
		q.Update(u)
		left = slices.Concat(numbered(test.changed), left)
		slices.Reverse(left) // of changes of one date, those listed last are the newest
		for day, want := range test.want {
			sent := 0
			end := now.Add(24 * time.Hour)
			for job, next := q.Begin(now); job != nil || !next.IsZero() && next.Before(end); job, next = q.Begin(now) {
				if now = now.Add(10 * time.Minute); job == nil {
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
		if s := q.Status(now)[0]; s.Accepted+s.Dropped != test.changed+test.added || s.Waiting != 0 {
			t.Errorf("%v: %+v", test, s)
		}
	}
}

// TestNewsFirst: where a day does not allow all added pages, those that are news when they are sent are sent first, the newest
// before others, also after a restart.
func TestNewsFirst(t *testing.T) {
	news := func(paths ...string) Update {
		u := complete
		u.Selected = true
		u.News = paths
		return u
	}
	for name, test := range map[string]struct {
		updates []Update // after all pages were added
		want    string   // what is sent on the first day
	}{
		"no news":                {[]Update{complete}, "/e /d /c"},
		"news":                   {[]Update{news("/b", "/a")}, "/b /a /e"},
		"more news than fit":     {[]Update{news("/c", "/a", "/d", "/b")}, "/c /a /d"},
		"others are news":        {[]Update{news("/x", "/a")}, "/a /e /d"},
		"nothing was selected":   {[]Update{news("/a"), complete}, "/a /e /d"},
		"they are news no more":  {[]Update{news("/a"), news()}, "/e /d /c"},
		"other pages come later": {[]Update{news("/a"), withAdded(news("/a"), "/f")}, "/a /e /d"},
	} {
		c := indexNowOnly
		c.Daily = 3
		q := newQueue(t, c)
		q.Update(withAdded(complete, "/a", "/b", "/c", "/d", "/e"))
		for i, u := range test.updates {
			u.Begun = epoch.Add(time.Duration(i) * time.Minute)
			q.Update(u)
			q = restart(t, q.Encode(), c)
		}
		job, _ := q.Begin(epoch.Add(11 * time.Minute))
		if job == nil {
			t.Fatalf("%s: nothing is sent", name)
		}
		if got := strings.Join(pathsOf(t, job), " "); got != test.want {
			t.Errorf("%s: sent %q, want %q", name, got, test.want)
		}
	}
}

func withAdded(u Update, paths ...string) Update {
	u.Changes.Added = same(paths...)
	return u
}

// TestBounds: the queue and its stored form stay small whatever changes; the oldest changes are dropped, and counted.
func TestBounds(t *testing.T) {
	if testing.Short() {
		t.Skip("240,000 changes")
	}
	c := indexNowOnly
	c.Targets = []Target{{IndexNow, "https://a.example/"}, {IndexNow, "https://b.example/"}}
	for name, tail := range map[string]string{"many": "", "long": strings.Repeat("x", 1000)} {
		paths := func(round int) (paths []string) {
			for _, path := range numbered(10_000) {
				paths = append(paths, fmt.Sprint("/", round, path, tail))
			}
			return paths
		}
		q := newQueue(t, c)
		for round := range 6 {
			u := changed(paths(round)...)
			u.Gathered = false
			u.Complete = false
			u.Changes.Added = dated(1, paths(round+100)...)
			q.Update(u)
		}
		if size := len(q.Encode()); size > 3*(maxBytes+3*maxPaths+1000) {
			t.Errorf("%s: stored, it takes %d bytes", name, size)
		}
		for _, s := range q.Status(epoch) {
			if s.Waiting > maxPaths || s.Unconfirmed > maxPaths || s.Waiting+s.Unconfirmed+s.Dropped != 6*2*10_000 {
				t.Errorf("%s: %+v", name, s)
			}
		}
		if job, _ := q.Begin(epoch); pathsOf(t, job)[0] != paths(5)[9_999] {
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
	q := newQueue(t, all)
	q.Update(changed("/a"))
	for name, test := range map[string]struct {
		config  Config
		want    string
		ofPages bool // a target is told of pages, so that added and removed ones are kept
	}{
		"all":            {all, "indexnow:1 indexnow:1 ping:1 hub:1 ", true},
		"host is local":  {private, "ping:1 hub:1 ", false},
		"fewer than all": {fewer, "indexnow:1 ping:1 hub:1 ", true},
	} {
		got, q := "", restart(t, q.Encode(), test.config)
		for _, s := range q.Status(epoch) {
			got += fmt.Sprintf("%s:%d ", s.Kind, s.Waiting)
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		u := changed("/a")
		u.Changes.Added, u.Changes.Removed = dated(1, "/b"), gone("/c")
		q.Update(u)
		if isKept := bytes.Contains(q.Encode(), []byte(`"/b"`)); isKept != test.ofPages {
			t.Errorf("%s: pages are kept: %t: %s", name, isKept, q.Encode())
		}
	}
}

// TestKey: a key is made once, and kept; a configured one stands before it.
func TestKey(t *testing.T) {
	unset, set := indexNowOnly, indexNowOnly
	unset.Key, unset.Prefix, set.Key = "", "/docs", "configured-1"
	q := newQueue(t, unset)
	made := q.Key()
	again, other, configured := restart(t, q.Encode(), unset).Key(), newQueue(t, unset).Key(), restart(t, q.Encode(), set).Key()
	healed := restart(t, bytes.ReplaceAll(q.Encode(), []byte(made), []byte("../../etc/passwd")), unset).Key()
	if len(made) != 32 || strings.Trim(made, "0123456789abcdef") != "" {
		t.Errorf("key %q", made)
	}
	if again != made || other == made || configured != set.Key || !IsKey(healed) {
		t.Errorf("after a restart %q; another site has %q; configured %q; damaged %q", again, other, configured, healed)
	}
}

// TestProtocols: every Kind has a row in the table, and newJob knows it.
func TestProtocols(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "announce.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, isValue := n.(*ast.ValueSpec)
		if !isValue {
			return true
		}
		if of, isNamed := spec.Type.(*ast.Ident); !isNamed || of.Name != "Kind" {
			return true
		}
		for _, value := range spec.Values {
			name, err := strconv.Unquote(value.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			count++
			kind := Kind(name)
			if p := protocols[kind]; p.interval <= 0 || len(p.final) == 0 {
				t.Errorf("%s: %+v", kind, p)
			}
			of := &target{Status: Status{Target: Target{Kind: kind, URL: "https://a.example/?{sitemap}"}}}
			job := newQueue(t, indexNowOnly).newJob(of)
			isFilled := job.Body != nil || job.URL != of.URL
			if !isFilled {
				t.Errorf("%s: the request says nothing", kind)
			}
		}
		return true
	})
	if count == 0 || count != len(protocols) {
		t.Errorf("%d kinds, %d rows", count, len(protocols))
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
	for target, want := range map[Target]string{
		{Ping, DefaultEndpoint}:                    "the URL of a ping must have {sitemap} in it, which the URL of the sitemap replaces",
		{Hub, DefaultEndpoint + "?{sitemap}"}:      "{sitemap} is replaced in the URL of a ping only: remove it",
		{IndexNow, DefaultEndpoint + "?{sitemap}"}: "{sitemap} is replaced in the URL of a ping only: remove it",
	} {
		if err := target.Check(); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", target, err, want)
		}
	}
}
