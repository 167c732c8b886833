package announce

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
)

// TestKilled: the process is killed once a batch is noted, before it is sent, or after it was accepted. It is sent again,
// once, ten minutes later.
func TestKilled(t *testing.T) {
	for _, test := range []struct {
		killed  string // at each request: b(efore), a(fter) or n(ot)
		sent    string // in which ten minutes it is received
		dropped int
	}{
		{"n", "0", 0}, {"bn", "1", 0}, {"an", "0 1", 0}, {"bb", "", 1}, {"ba", "1", 1}, {"ab", "0", 1}, {"aa", "0 1", 1},
	} {
		e := newEngine(t)
		q, c, config := newQueue(t, e.config(IndexNow)), NewClient("test", 1), e.config(IndexNow)
		q.Update(changed("/a"))
		for range 6 {
			if job, _ := q.Begin(e.now); job != nil {
				stored, killed := q.Encode(), test.killed[0]
				if test.killed = test.killed[1:]; killed != 'b' {
					o := c.Send(t.Context(), job, site)
					q.End(job, o, e.now)
				}
				if killed != 'n' {
					q = restart(t, stored, config)
				}
			}
			e.set(nil, 10*time.Minute)
		}
		var sent []string
		for _, at := range e.requests {
			sent = append(sent, string('0'+rune(at.Sub(epoch)/(10*time.Minute))))
		}
		if s := q.Status(e.now)[0]; strings.Join(sent, " ") != test.sent || s.Dropped != test.dropped || s.Waiting != 0 {
			t.Errorf("%+v: sent %v, %+v", test, sent, s)
		}
	}
}

// TestModel: whatever the engine does, and whenever the process is killed, no change is lost: each is accepted after it
// was made. And no rule is broken, which the engine checks.
func TestModel(t *testing.T) {
	seeds := uint64(12)
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		r, e := rand.New(rand.NewPCG(seed, 1)), newEngine(t)
		c, config := NewClient("test", 1), e.config(IndexNow)
		config.Daily = 1 << 30
		q := newQueue(t, config)
		due := make(map[string]time.Time) // when a page that is to be announced last changed
		var added []indexing.Change       // in the update before
		for step := range 150 {
			calm := step > 100 // then nothing changes or fails any more
			u := complete
			u.At = e.now
			u.Begun = epoch.Add(time.Duration(step) * time.Second)
			if page := func() string { return numbered(40)[r.IntN(40)] }; !calm {
				u.Changes = indexing.Changes{Changed: dated(int64(step+1), page(), page()), Removed: gone("/gone" + page()), Added: dated(0, "/new"+page())}
			}
			for _, p := range slices.Concat(u.Changes.Changed.First, u.Changes.Removed.First, added) {
				due["https://example.com"+p.Path] = e.now
			}
			added = u.Changes.Added.First
			q.Update(u)
			q.checked(q.toCheck(e.now), nil, nil)
			stored := q.Encode()
			e.set([]http.HandlerFunc{nil, nil, reply(503, ""), reply(429, ""), reply(403, ""), hijack("")}[r.IntN(6)], time.Duration(r.IntN(1200))*time.Second)
			if calm {
				e.set(nil, 0)
			}
			if job, _ := q.Begin(e.now); job != nil {
				stored = q.Encode()
				isKilled := !calm && r.IntN(5) == 0 && !job.target.Resent
				if !isKilled || r.IntN(2) == 0 {
					o := c.Send(t.Context(), job, site)
					q.End(job, o, e.now)
				}
				if !isKilled {
					stored = q.Encode()
				}
			}
			q = restart(t, stored, config)
		}
		for u, at := range due {
			if times := e.accepted[u]; len(times) == 0 || times[len(times)-1].Before(at) {
				t.Errorf("seed %d: %s changed at %s, accepted at %v", seed, u, at, times)
			}
		}
		if s := q.Status(e.now)[0]; s.Waiting != 0 || s.Dropped != 0 || len(due) < 50 {
			t.Errorf("seed %d: %+v", seed, s)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// newRunner returns a runner that stores nothing.
func newRunner(c *Client, config Config) *Runner {
	return &Runner{
		Config: config, Client: c, Now: time.Now, Paused: func() bool { return false }, Fetch: site, Gone: isGone,
		Save: func(context.Context) error { return nil }, Done: func(*Job, Outcome, Status) {},
	}
}

// TestReload: the runner of the next configuration takes over, and loses nothing: it waits for the job under way, and
// what changed meanwhile is sent by it.
func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, next := newQueue(t, indexNowOnly), indexNowOnly
		next.Targets = append(next.Targets[:1:1], Target{IndexNow, "https://other.example/"})
		var requests []string
		now := atomic.Int64{} // at a time
		c := NewClient("test", 9)
		c.http.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			if now.Add(1) > 1 {
				t.Error("two jobs at a time")
			}
			time.Sleep(20 * time.Second)
			now.Add(-1)
			body, _ := io.ReadAll(r.Body)
			requests = append(requests, r.Host+" "+strings.Join(regexp.MustCompile(`/page-[a-z]`).FindAllString(string(body), -1), " "))
			return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		old, running, superseded := newRunner(c, indexNowOnly), sync.WaitGroup{}, atomic.Bool{}
		old.Paused = superseded.Load
		running.Go(func() { q.Run(ctx, old) })
		q.Update(changed("/page-a"))
		time.Sleep(10 * time.Second)
		superseded.Store(true)
		running.Go(func() { q.Run(ctx, newRunner(c, next)) })
		time.Sleep(time.Second)
		q.Update(changed("/page-b"))
		time.Sleep(time.Hour)
		q.Update(changed("/page-c"))
		time.Sleep(time.Hour)
		superseded.Store(false) // as the next one fails to start
		cancel()
		running.Wait()
		if want := []string{"api.indexnow.org /page-a", "api.indexnow.org /page-b", "api.indexnow.org /page-c", "other.example /page-c"}; !slices.Equal(requests, want) {
			t.Errorf("sent %q, want %q", requests, want)
		}
	})
}

// TestInterrupted: what was not sent before a runner is stopped is sent by the next one at once, however often that
// happens. What may have been received is sent again once.
func TestInterrupted(t *testing.T) {
	for _, where := range []string{"while storing", "while the key file is fetched", "while others are sent", "while it is sent"} {
		synctest.Test(t, func(t *testing.T) {
			q, c := newQueue(t, indexNowOnly), NewClient("test", 1)
			hangs, requests := true, 0
			c.http.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
				if requests++; where == "while it is sent" {
					<-r.Context().Done()
					return nil, r.Context().Err()
				}
				return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
			})
			hang := func(ctx context.Context, at string) error {
				if hangs && where == at {
					<-ctx.Done()
				}
				return ctx.Err()
			}
			q.Update(changed("/a"))
			for i := range 10 {
				r := newRunner(c, indexNowOnly)
				r.Save = func(ctx context.Context) error { return hang(ctx, "while storing") }
				r.Fetch = func(ctx context.Context, path string) (int, []byte, error) {
					_ = hang(ctx, "while the key file is fetched")
					return site(ctx, path)
				}
				if hangs = i < 9; hangs && where == "while others are sent" {
					c.slots.Take(t.Context())
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				q.Run(ctx, r)
				if cancel(); len(c.slots) > 0 {
					c.slots.Release()
				}
			}
			if s := q.Status(time.Now())[0]; where != "while it is sent" && (requests != 1 || s.Sent != 1 || s.Accepted != 1 || s.Failures != 0) || where == "while it is sent" && (requests != 1 || s.Waiting != 1) {
				t.Errorf("%s: %d requests, %+v", where, requests, s)
			}
		})
	}
}

// TestPausedWhileStoring: what is noted is not sent by a runner that was paused meanwhile, but by the next one, at once.
func TestPausedWhileStoring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, indexNowOnly)
		c := NewClient("test", 1)
		requests := 0
		c.http.Transport = roundTrip(func(*http.Request) (*http.Response, error) {
			requests++
			return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
		})
		q.Update(changed("/a"))
		isPaused := false
		r := newRunner(c, indexNowOnly)
		r.Paused = func() bool { return isPaused }
		r.Save = func(context.Context) error {
			isPaused = true
			return nil
		}
		q.Run(t.Context(), r)
		if s := q.Status(time.Now())[0]; requests != 0 || s.Sent != 0 || s.Waiting != 1 {
			t.Errorf("paused: %d requests, %+v", requests, s)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		q.Run(ctx, newRunner(c, indexNowOnly))
		if s := q.Status(time.Now())[0]; requests != 1 || s.Accepted != 1 || s.Waiting != 0 {
			t.Errorf("the next one: %d requests, %+v", requests, s)
		}
	})
}

// TestGone: removed pages are announced that are still gone after three minutes, even after a restart. Those that fail are
// requested for an hour.
func TestGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, indexNowOnly)
		var removed, want []string
		for i := range 250 {
			removed = append(removed, fmt.Sprintf("/back-%d", i), fmt.Sprintf("/gone-%d", i))
			want = append(want, fmt.Sprintf("/gone-%d", i))
		}
		begun := time.Now()
		u := complete
		u.At = begun
		u.Changes.Removed = gone(append(removed, "/gone-again", "/fails")...)
		q.Update(u)
		u.Changes = indexing.Changes{Added: same("/gone-again")}
		q.Update(u)
		q = restart(t, q.Encode(), indexNowOnly)
		ctx, cancel := context.WithCancel(t.Context())
		r, sent := newRunner(NewClient("test", 1), indexNowOnly), []string(nil)
		r.Client.http.Transport = accepting
		r.Done = func(job *Job, _ Outcome, _ Status) {
			sent = append(sent, pathsOf(t, job)...)
			if after := time.Since(begun); after < goneFor || after > goneFor+2*time.Minute {
				t.Errorf("announced after %s", after)
			}
		}
		var failed []time.Duration
		r.Gone = func(ctx context.Context, path string) (bool, error) {
			if path == "/fails" {
				failed = append(failed, time.Since(begun))
			}
			return isGone(ctx, path)
		}
		go q.Run(ctx, r)
		time.Sleep(2 * time.Hour)
		cancel()
		synctest.Wait()
		slices.Sort(sent)
		slices.Sort(want)
		if !slices.Equal(sent, want) {
			t.Errorf("%d are announced, want %d: %q", len(sent), len(want), sent)
		}
		var minutes []int
		for _, after := range failed {
			minutes = append(minutes, int(after.Minutes()))
		}
		if !slices.Equal(minutes, []int{3, 6, 12, 24, 48}) || q.Status(time.Now())[0].Unconfirmed != 0 {
			t.Errorf("what fails is requested after %d minutes", minutes)
		}
	})
}

// accepting is an endpoint that accepts everything.
var accepting = roundTrip(func(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
})

// TestRun: Run notes each batch before it is sent, sends what is due when it is, and stops at once.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, c, begun := newQueue(t, indexNowOnly), NewClient("test", 1), time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		var stored []byte
		var broken, last, requests, done = atomic.Bool{}, atomic.Int64{}, atomic.Int64{}, atomic.Int64{}
		c.http.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			if last.Store(int64(time.Since(begun))); !bytes.Contains(stored, []byte(`"noted":["/`)) {
				t.Errorf("a batch that is not noted is sent: %s", stored)
			}
			if requests.Add(1) == 5 {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
		})
		save := func(context.Context) error {
			if broken.Load() {
				return errors.New("no space left on device")
			}
			stored = q.Encode()
			return nil
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r := newRunner(c, indexNowOnly)
			r.Save, r.Done = save, func(*Job, Outcome, Status) { done.Add(1) }
			q.Run(ctx, r)
		}()
		for i, step := range []struct {
			after   time.Duration
			changed string
			last    time.Duration
		}{
			{0, "/a", 0},                                            // cannot be stored
			{4 * time.Minute, "/b", 4 * time.Minute},                // at once
			{9 * time.Second, "/c", 4 * time.Minute},                // not just after the last
			{time.Second, "", 4*time.Minute + 10*time.Second},       // ten seconds after it
			{5 * time.Minute, "/a", 4*time.Minute + 10*time.Second}, // which was sent eight minutes ago
			{time.Hour, "/d", 69*time.Minute + 10*time.Second},      // hangs
		} {
			broken.Store(i == 0)
			time.Sleep(step.after)
			if step.changed != "" {
				q.Update(changed(step.changed))
			}
			if synctest.Wait(); time.Duration(last.Load()) != step.last || i == 0 && !strings.Contains(q.Status(time.Now())[0].Reason, "no space left on device") {
				t.Errorf("step %d: last sent after %s, %+v", i, time.Duration(last.Load()), q.Status(time.Now())[0])
			}
		}
		cancel()
		<-ended
		if s := restart(t, stored, indexNowOnly).Status(time.Now())[0]; s.Waiting != 1 || done.Load() != 5 {
			t.Errorf("%+v after %d jobs", s, done.Load())
		}
	})
}

// FuzzNew: whatever is stored, the queue works, and nothing that breaks the rules is sent.
func FuzzNew(f *testing.F) {
	q := newQueue(f, indexNowOnly)
	q.Update(changed("/a", "/b"))
	f.Add(q.Encode())
	q.Begin(epoch)
	f.Add(q.Encode())
	f.Add([]byte{})
	for _, fields := range []string{
		`"noted":[""],"resent":true,"failures":-9,"used":-1,"last":"9999-01-01T00:00:00Z","next":"0001-01-01T00:00:00Z","forbidden":3`,
		`"failures":9223372036854775807,"used":9223372036854775807,"last":"2026-11-22T00:00:00Z","next":"2999-01-01T00:00:00Z"`,
		`"stopped":true,"last":"9999-12-31T23:59:59+23:00","next":"9999-12-31T23:59:59-23:00","day":"9999-12-31T23:59:59-23:00"`,
		`"recent":[{"at":"9999-12-31T23:59:59-23:00","pages":[1]},{"pages":null}],"added":["/a"]`,
		`"spent":[{"hour":9223372036854775807,"urls":9223372036854775807},{"hour":-1,"urls":-1},{"hour":500000,"urls":1000001},{"urls":3,"added":5}]`,
		`"added":["/a"]}],"fresh_by":"9999-12-31T23:59:59-23:00","older":["/b"],"hold":"9999-12-31T23:59:59-23:00","removed":[{"path":"/c","at":"9999-12-31T23:59:59-23:00","tries":-1}],"x":[{"x":0`,
		`"stopped":true,"forbidden":9,"last":"0000-01-01T00:00:00+23:00","next":"9999-12-31T23:59:59-23:00","day":"0000-01-01T00:00:00+23:00"`,
	} {
		f.Add([]byte(`{"key":"k","listed":-5,"targets":[null,{"kind":"indexnow","url":"` + DefaultEndpoint + `",` + fields + `}]}`))
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		q, err := New(stored, indexNowOnly)
		if err != nil && q.Status(epoch)[0] != newQueue(t, indexNowOnly).Status(epoch)[0] || err == nil && len(stored) == 0 {
			t.Errorf("what is damaged is used: %v", err)
		}
		check := func() {
			shown, err := json.Marshal(q.Status(epoch))
			if _, again := New(q.Encode(), indexNowOnly); again != nil || err != nil {
				t.Errorf("it cannot be stored again: %v, or shown: %v, %s", again, err, shown)
			}
		}
		check()
		q.Update(complete)
		q.Update(changed("/c"))
		for i := range 8 {
			now := epoch.Add(time.Duration(i) * 25 * time.Hour)
			if job, next := q.Begin(now); job != nil {
				pathsOf(t, job)
				q.End(job, Outcome{Requested: true, Status: []int{503, 403, 200, 429}[i%4]}, now)
			} else if next.Sub(now) > 24*time.Hour {
				t.Errorf("due after %s", next.Sub(now))
			}
			check()
		}
	})
}

// FuzzReply: whatever a target responds, the outcome is within its bounds.
func FuzzReply(f *testing.F) {
	for _, raw := range []string{"", "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 503 \x1b\r\nRetry-After: 9\r\n\r\n\x1b[2J", "HTTP/1.1 301 Moved\r\nLocation: //\x7f\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 400 Bad\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\n"} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		c := NewClient("test", 1)
		c.http.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				defer theirs.Close()
				_, _ = theirs.Read(make([]byte, 4096)) // the request
				_, _ = theirs.Write(raw)
			}()
			return ours, nil
		}
		o := c.Send(t.Context(), &Job{Method: "GET", URL: "http://example.com/", target: new(target)}, site)
		if (o.Status/100 == 2) != (o.Reason == "") || len(o.Reason) > 4000 || o.RetryAfter < 0 || o.RetryAfter > 24*time.Hour || strings.ContainsFunc(o.Reason, unicode.IsControl) {
			t.Errorf("%+v", o)
		}
	})
}
