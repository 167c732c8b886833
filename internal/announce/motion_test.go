package announce

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
)

// motion is a site that is refreshed each minute, and whose changes are sent to an endpoint that accepts them.
type motion struct {
	begun time.Time
	queue *Queue
	gone  atomic.Bool      // removed pages are
	told  []time.Duration  // when a request came,
	paths map[string][]int // and in which of them a path was
}

// move runs a site for some minutes. In each, changes says what a refresh finds.
func move(t *testing.T, c Config, minutes int, changes func(m *motion, minute int) indexing.Changes) *motion {
	m := &motion{
		begun: time.Now(),
		queue: newQueue(t, c),
		paths: make(map[string][]int),
	}
	r := newRunner(NewClient("test", 1), c)
	r.Gone = func(context.Context, string) (bool, error) { return m.gone.Load(), nil }
	r.Client.http.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		body, _ := io.ReadAll(r.Body)
		var s struct{ URLList []string }
		if err := json.Unmarshal(body, &s); err != nil {
			t.Error(err)
		}
		for _, u := range s.URLList {
			path := strings.TrimPrefix(u, "https://example.com")
			if at := m.paths[path]; len(at) > 0 && m.since()-m.told[at[len(at)-1]] < 10*time.Minute {
				t.Errorf("%s is sent at %s and %s", path, m.told[at[len(at)-1]], m.since())
			}
			m.paths[path] = append(m.paths[path], len(m.told))
		}
		m.told = append(m.told, m.since())
		return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	go m.queue.Run(ctx, r)
	for minute := range minutes {
		u := complete
		u.Begun = time.Now()
		u.Changes = changes(m, minute)
		time.Sleep(2 * time.Second) // the refresh
		u.At = time.Now()
		m.queue.Update(u)
		time.Sleep(58 * time.Second)
	}
	cancel()
	synctest.Wait()
	return m
}

func (m *motion) since() time.Duration { return time.Since(m.begun) }

// at returns when paths were announced, to the second.
func (m *motion) at(paths ...string) (at []string) {
	for _, path := range paths {
		for _, n := range m.paths[path] {
			at = append(at, fmt.Sprint(path, " ", m.told[n].Round(time.Second)))
		}
	}
	return at
}

// TestMotion: when what changes on a site is announced.
func TestMotion(t *testing.T) {
	type of map[int]indexing.Changes // by minute
	for name, test := range map[string]struct {
		changes of
		down    []int // minutes in which removed pages are gone; nil: from then on
		want    string
	}{
		"a page": {
			changes: of{1: {Changed: dated(1, "/a")}},
			want:    "/a 1m2s",
		},
		"a new page, and the one that links to it": {
			changes: of{1: {Added: same("/new"), Changed: dated(1, "/a")}},
			want:    "/a 2m2s /new 2m2s",
		},
		"a new page a minute after a request": {
			changes: of{1: {Changed: dated(1, "/a")}, 2: {Added: same("/new")}},
			want:    "/a 1m2s /new 3m2s",
		},
		"a new page each minute": {
			changes: of{1: {Added: same("/new")}, 2: {Added: same("/new-2")}, 3: {Added: same("/new-3")}},
			want:    "/new 2m2s /new-2 3m2s /new-3 4m2s",
		},
		"a correction after three minutes": {
			changes: of{1: {Changed: dated(1, "/a")}, 4: {Changed: dated(1, "/a")}},
			want:    "/a 1m2s /a 11m2s",
		},
		"a new page, and a correction of it": {
			changes: of{1: {Added: same("/new")}, 5: {Changed: dated(1, "/new")}, 6: {Changed: dated(1, "/new")}},
			want:    "/new 2m2s /new 12m2s",
		},
		"a correction after eleven minutes": {
			changes: of{1: {Changed: dated(1, "/a")}, 12: {Changed: dated(1, "/a")}},
			want:    "/a 1m2s /a 12m2s",
		},
		"a page is moved": {
			changes: of{1: {Removed: gone("/a"), Added: same("/new")}},
			want:    "/a 4m2s /new 2m2s",
		},
		"a deployment fails for two minutes": {
			changes: of{1: {Removed: gone("/a", "/b")}, 3: {Added: same("/a", "/b")}},
			down:    []int{1, 2},
		},
		"a deployment fails for two minutes, of which nobody hears": {
			changes: of{1: {Removed: gone("/a", "/b")}},
			down:    []int{1, 2},
		},
		"a deployment fails for two minutes, which is found out late": {
			changes: of{1: {Removed: gone("/a", "/b")}, 20: {Added: same("/a", "/b")}},
			down:    []int{1, 2},
		},
		"a deployment fails for two minutes, and changes a page": {
			changes: of{1: {Removed: gone("/a", "/b")}, 3: {Added: changes{Count: 2, First: slices.Concat(same("/a").First, dated(1, "/b").First)}}},
			down:    []int{1, 2},
			want:    "/b 4m2s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := move(t, indexNowOnly, 40, func(m *motion, minute int) indexing.Changes {
					m.gone.Store(test.down == nil || slices.Contains(test.down, minute))
					return test.changes[minute]
				})
				got := strings.Join(m.at("/a", "/b", "/new", "/new-2", "/new-3"), " ")
				if got != test.want {
					t.Errorf("announced: %q, want %q", got, test.want)
				}
			})
		})
	}
}

// TestEdits: 200 of 1,001 pages are edited in a day, and each is corrected three minutes later.
func TestEdits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		edits := make(map[string][]time.Duration)
		m := move(t, indexNowOnly, 26*60, func(m *motion, minute int) indexing.Changes {
			var c indexing.Changes
			edit := func(n int) {
				path := fmt.Sprintf("/%04d", n)
				edits[path] = append(edits[path], m.since())
				l := dated(int64(minute+1), path)
				c.Changed.Count++
				c.Changed.First = append(c.Changed.First, l.First...)
			}
			if minute%7 == 0 && minute/7 < 200 {
				edit(minute / 7)
			}
			if minute%7 == 3 && minute/7 < 200 {
				edit(minute / 7)
			}
			return c
		})
		for path, at := range edits {
			told := m.paths[path]
			if len(at) != 2 || len(told) != 2 || m.told[told[0]]-at[0] > 5*time.Second || m.told[told[1]]-at[1] > 10*time.Minute {
				t.Errorf("%s: edited at %s, announced: %q", path, at, m.at(path))
			}
		}
		if s := m.queue.Status(time.Now())[0]; len(edits) != 200 || s.Accepted != 400 || s.Waiting != 0 || s.Dropped != 0 {
			t.Errorf("%d pages, %+v", len(edits), s)
		}
	})
}

// TestWaits: what waits, for what, and until when.
func TestWaits(t *testing.T) {
	update := func(q *Queue, u Update, at time.Duration) {
		u.At = epoch.Add(at)
		u.Begun = u.At
		q.Update(u)
	}
	send := func(q *Queue, at time.Duration, o Outcome) {
		if job, _ := q.Begin(epoch.Add(at)); job != nil {
			q.End(job, o, epoch.Add(at))
		}
	}
	ok := Outcome{Requested: true, Status: 200}
	added := complete
	added.Changes.Added = same("/new")
	removed := complete
	removed.Changes.Removed = gone("/gone")
	both := changed("/a")
	both.Changes.Added = same("/new")
	few := indexNowOnly
	few.Daily = 10
	for name, test := range map[string]struct {
		happens func(q *Queue)
		want    Wait
		next    time.Duration // after ten minutes; 0: at once, or it is not known
	}{
		"nothing":    {func(*Queue) {}, "", 0},
		"at once":    {func(q *Queue) { update(q, changed("/a"), 0) }, "", 0},
		"a new page": {func(q *Queue) { update(q, added, 0) }, ForConfirmation, 0},
		"a new page, and others": {func(q *Queue) {
			update(q, both, 9*time.Minute)
		}, ForConfirmation, 30 * time.Second},
		"a new page, before the clock was set back": {func(q *Queue) {
			update(q, both, 50*365*24*time.Hour)
		}, ForConfirmation, 90 * time.Second},
		"a removed page": {func(q *Queue) { update(q, removed, 8*time.Minute) }, ForCheck, time.Minute},
		"a changed page that was removed": {func(q *Queue) {
			update(q, changed("/gone"), 8*time.Minute)
			update(q, removed, 8*time.Minute)
		}, ForCheck, time.Minute},
		"a correction": {func(q *Queue) {
			update(q, changed("/a"), 3*time.Minute)
			send(q, 3*time.Minute, ok)
			update(q, changed("/a"), 9*time.Minute)
		}, ForInterval, 3 * time.Minute},
		"a request just before": {func(q *Queue) {
			update(q, changed("/a"), 0)
			send(q, 10*time.Minute-4*time.Second, ok)
			update(q, changed("/b"), 10*time.Minute)
		}, ForGap, 6 * time.Second},
		"a failure": {func(q *Queue) {
			update(q, changed("/a"), 0)
			send(q, 9*time.Minute+30*time.Second, Outcome{Requested: true, Status: 503})
		}, ForRetry, 30 * time.Second},
		"an engine that asks for patience": {func(q *Queue) {
			update(q, changed("/a"), 0)
			send(q, 0, Outcome{Requested: true, Status: 429, RetryAfter: time.Hour})
		}, ForRetry, 50 * time.Minute},
		"a request without a response": {func(q *Queue) {
			update(q, changed("/a"), 0)
			send(q, 8*time.Minute, Outcome{Requested: true})
		}, ForInterval, 8 * time.Minute},
		"a request under way": {func(q *Queue) {
			update(q, changed("/a"), 0)
			q.Begin(epoch.Add(9 * time.Minute))
		}, ForResponse, 9 * time.Minute},
		"the day is used up": {func(q *Queue) {
			update(q, changed(numbered(20)...), 0)
			send(q, 0, ok)
		}, ForDay, 24*time.Hour + 50*time.Minute},
		"but for what is new": {func(q *Queue) {
			update(q, changed(numbered(20)...), 0)
			send(q, 0, ok)
			update(q, added, 8*time.Minute)
			update(q, complete, 9*time.Minute)
		}, "", 0},
		"the target refuses": {func(q *Queue) {
			update(q, changed("/a", "/b"), 0)
			send(q, 0, Outcome{Requested: true, Status: 422})
			update(q, changed("/c"), 0)
		}, ForReload, 0},
	} {
		q := newQueue(t, few)
		test.happens(q)
		now := epoch.Add(10 * time.Minute)
		for range 2 {
			s := q.Status(now)[0]
			next := time.Duration(0)
			if !s.Next.IsZero() {
				next = s.Next.Sub(now)
			}
			if s.WaitsFor != test.want || next != test.next {
				t.Errorf("%s: it waits for %q, for %s; want %q, %s", name, s.WaitsFor, next, test.want, test.next)
			}
			if s.Stopped {
				break // a restart tries again
			}
			q = restart(t, q.Encode(), few)
		}
	}
}

// TestQuiet: while nothing happens, what is stored stays the same. In a fleet, each process would load it.
func TestQuiet(t *testing.T) {
	q := newQueue(t, indexNowOnly)
	now := epoch
	for i, u := range []Update{complete, changed("/a"), {Gathered: true, Complete: true, Crawled: true, Changes: indexing.Changes{Added: same("/new")}}} {
		now = now.Add(time.Hour)
		u.At = now
		u.Begun = now
		q.Update(u)
		for range 2 {
			now = now.Add(time.Minute)
			quiet := complete
			quiet.At = now
			quiet.Begun = now
			q.Update(quiet)
			if job, _ := q.Begin(now); job != nil {
				q.End(job, Outcome{Requested: true, Status: 200}, now)
			}
		}
		now = now.Add(time.Minute)
		stored := q.Encode()
		quiet := complete
		quiet.At = now
		quiet.Begun = now
		q.Update(quiet)
		q.Begin(now)
		q.Status(now)
		if again := q.Encode(); !bytes.Equal(stored, again) {
			t.Errorf("step %d: stored was %s\nand is %s", i, stored, again)
		}
	}
}

// TestStays: a page whose removal was not announced is told of as any other once it changes, and forgotten after a day.
func TestStays(t *testing.T) {
	q := newQueue(t, indexNowOnly)
	now := epoch
	removed := complete
	removed.At = now
	removed.Changes.Removed = gone("/a", "/b")
	q.Update(removed)
	now = now.Add(goneFor)
	q.checked(nil, q.toCheck(now), nil)
	q.Update(changed("/a")) // it was listed again by a refresh that has lost its records
	job, _ := q.Begin(now)
	if got := pathsOf(t, job); !slices.Equal(got, []string{"/a"}) {
		t.Fatalf("sent %q", got)
	}
	q.End(job, Outcome{Requested: true, Status: 200}, now)
	for _, after := range []time.Duration{day, day + time.Second} {
		q = restart(t, q.Encode(), indexNowOnly)
		q.Begin(epoch.Add(after))
		if isKnown := bytes.Contains(q.Encode(), []byte(`"/b"`)); isKnown != (after == day) {
			t.Errorf("after %s, stored is %s", after, q.Encode())
		}
	}
}

// TestOnce: a page that is gone, back and new, while nothing can be sent, is in one request once.
func TestOnce(t *testing.T) {
	q := newQueue(t, indexNowOnly)
	refresh := func(at time.Duration, c indexing.Changes) {
		u := complete
		u.At = epoch.Add(at)
		u.Begun = u.At
		u.Changes = c
		q.Update(u)
		q.checked(q.toCheck(u.At), nil, nil)
	}
	refresh(0, indexing.Changes{Removed: gone("/a")})
	refresh(goneFor, indexing.Changes{}) // it is to be announced
	refresh(2*goneFor, indexing.Changes{Added: same("/a")})
	refresh(3*goneFor, indexing.Changes{})
	job, _ := q.Begin(epoch.Add(time.Hour))
	if got := pathsOf(t, job); !slices.Equal(got, []string{"/a"}) {
		t.Errorf("sent %q", got)
	}
}

// TestSpent: what 24 hours have left, hour by hour.
func TestSpent(t *testing.T) {
	at := func(hours float64) time.Time { return epoch.Add(time.Duration(hours * float64(time.Hour))) }
	first := epoch.Unix() / 3600
	for name, test := range map[string]struct {
		spent  spent
		now    time.Time
		left   allowance
		others int
		frees  time.Time
	}{
		"nothing":         {nil, at(0), allowance{100, 10}, 90, time.Time{}},
		"some":            {spent{{first, 30, 0}}, at(1), allowance{70, 10}, 60, at(25)},
		"all of others":   {spent{{first, 90, 0}}, at(1), allowance{10, 10}, 0, at(25)},
		"added pages":     {spent{{first, 30, 30}}, at(1), allowance{70, 0}, 70, at(25)},
		"both":            {spent{{first, 95, 5}}, at(1), allowance{5, 5}, 0, at(25)},
		"hour by hour":    {spent{{first, 10, 0}, {first + 2, 80, 0}}, at(3), allowance{10, 10}, 0, at(25)},
		"in its 25th":     {spent{{first, 90, 0}}, at(24.9), allowance{10, 10}, 0, at(25)},
		"after a day":     {spent{{first, 90, 0}}, at(25), allowance{100, 10}, 90, time.Time{}},
		"daily was more":  {spent{{first, 150, 0}, {first + 1, 150, 0}}, at(2), allowance{0, 10}, 0, at(26)},
		"clock set back":  {spent{{first + 9, 90, 0}}, at(0), allowance{10, 10}, 0, at(25)},
		"out of order":    {spent{{first + 1, 50, 0}, {first, 40, 0}}, at(1), allowance{10, 10}, 0, at(25)},
		"negative":        {spent{{first, -50, 0}, {first, 5, -1}, {first, 5, 6}}, at(1), allowance{100, 10}, 90, time.Time{}},
		"more than usual": {spent{{first, MaxDaily + 1, 0}}, at(1), allowance{100, 10}, 90, time.Time{}},
	} {
		s := test.spent.until(test.now)
		left := s.left(100)
		if left != test.left || left.others(0) != test.others || !s.frees(100, false).Equal(test.frees) {
			t.Errorf("%s: %+v, %d, until %s", name, left, left.others(0), s.frees(100, false))
		}
	}
	if got := (allowance{20, 10}); got.others(5) != 10 || got.others(15) != 5 || got.others(20) != 0 {
		t.Errorf("beside added pages: %d, %d, %d", got.others(5), got.others(15), got.others(20))
	}
}

// TestRecent: what was sent a short time ago has a bound. Beyond it, what changed waits.
func TestRecent(t *testing.T) {
	c := indexNowOnly
	c.Daily = MaxDaily
	q := newQueue(t, c)
	now := epoch
	send := func() (sent int) {
		for job, _ := q.Begin(now); job != nil; job, _ = q.Begin(now) {
			sent += job.URLs
			q.End(job, Outcome{Requested: true, Status: 200}, now)
			now = now.Add(Gap)
		}
		return sent
	}
	for round := range 6 {
		q.Update(changed(numbered(60_000)[10_000*round:][:10_000]...))
		want := 10_000
		if round == 5 {
			want = 0
		}
		if got := send(); got != want {
			t.Errorf("round %d: %d are sent", round, got)
		}
	}
	if s := q.Status(now)[0]; s.WaitsFor != ForInterval || s.Waiting != 10_000 || !s.Next.Equal(epoch.Add(10*time.Minute)) {
		t.Errorf("%+v", s)
	}
	now = epoch.Add(10 * time.Minute)
	if got := send(); got != 10_000 {
		t.Errorf("%d are sent", got)
	}
}

// TestFormer: what an earlier version stored keeps its key, and what waits.
func TestFormer(t *testing.T) {
	const stored = `{"key":"` + key + `","known":true,"listed":1001,"fresh":["/c"],"older":["/b"],"absent":["/d"],"targets":[
		{"kind":"indexnow","url":"` + DefaultEndpoint + `","waiting":0,"sent":7,"accepted":7,"refused":0,"dropped":0,"last":"2026-11-22T11:00:00Z",
		"next":"2026-11-22T11:05:00Z","queued":["/a"],"day":"2026-11-22T11:00:00Z","used":100}]}`
	unset := indexNowOnly
	unset.Key = ""
	q := restart(t, []byte(stored), unset)
	u := complete
	u.Begun = epoch
	q.Update(u)
	job, _ := q.Begin(epoch)
	if got, want := pathsOf(t, job), []string{"/c", "/b", "/a"}; !reflect.DeepEqual(got, want) || q.Key() != key {
		t.Errorf("sent %q with the key %s", got, q.Key())
	}
}
