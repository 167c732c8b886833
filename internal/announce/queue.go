package announce

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// Queue is what is to be announced of one site, and what came of it. It is safe for concurrent use.
type Queue struct {
	changed chan struct{} // of size 1: Update was called
	slot    wait.Slots    // for one runner at a time
	mu      sync.Mutex    // guards the rest
	config  Config
	state   state
}

// state is what is stored of a queue.
type state struct {
	Key     string    `json:"key"`               // of IndexNow
	Known   bool      `json:"known,omitempty"`   // the site was crawled once, so that pages found since are new
	Fresh   list      `json:"fresh,omitempty"`   // pages that were added by one refresh,
	FreshBy time.Time `json:"fresh_by,omitzero"` // which began then
	Older   list      `json:"older,omitempty"`   // pages that were added by earlier refreshes, and are not confirmed
	Hold    time.Time `json:"hold,omitzero"`     // until then, changes wait for added pages to be confirmed
	News    list      `json:"news,omitempty"`    // pages that are news now: of those that were added, they come first

	// Removed are pages that may be gone, or were for a moment, in the order in which they were removed.
	Removed []removal `json:"removed,omitempty"`

	Targets []*target `json:"targets,omitempty"`
}

// target is an endpoint, a ping URL or a hub. The last two have one path: the document of which they are told.
type target struct {
	Status
	Added     list   `json:"added,omitempty"`       // pages that wait, and are new to the target
	Queued    list   `json:"queued,omitempty"`      // others
	NotedNew  list   `json:"noted_added,omitempty"` // the batch that is being sent, or whose outcome is not known
	Noted     list   `json:"noted,omitempty"`       //
	Resent    bool   `json:"resent,omitempty"`      // it was sent a second time
	Forbidden int    `json:"forbidden,omitempty"`   // times that the key was refused since it was last accepted
	Recent    recent `json:"recent,omitempty"`      // what was sent a short time ago
	Spent     spent  `json:"spent,omitempty"`       // of what a day allows
}

// New returns a site's queue as [Queue.Encode] stored it; nil: a new one. With an error, it is a new one, too: what was
// stored is damaged.
func New(stored []byte, c Config) (q *Queue, err error) {
	q = &Queue{changed: make(chan struct{}, 1), slot: wait.NewSlots(1)}
	if stored != nil {
		err = json.Unmarshal(stored, &q.state)
	}
	if err != nil {
		q.state = state{} // a part of it may have been read
	}
	q.configure(c)
	return q, err
}

// configure sets the configuration. Targets that it keeps go on, and those that were stopped or refuse the key are
// tried again.
func (q *Queue) configure(c Config) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.config = c
	q.state.Key = cmp.Or(c.Key, q.state.Key)
	if !IsKey(q.state.Key) {
		q.state.Key = fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64()) // it is public
	}
	was := q.state.Targets
	q.state.Targets = nil
	for _, of := range c.Targets {
		isIt := func(t *target) bool { return t != nil && t.Target == of } // nil: what is stored may be damaged
		isUnused := of.Kind == IndexNow && !origin.IsPublic(c.Origin)      // search engines could not reach the site
		if isUnused || slices.ContainsFunc(q.state.Targets, isIt) {
			continue
		}
		t := &target{Status: Status{Target: of}}
		if i := slices.IndexFunc(was, isIt); i >= 0 {
			t = was[i]
		}
		// Perhaps the new configuration is right.
		if t.Stopped || t.Forbidden > 0 {
			t.Stopped = false
			t.Reason = ""
			t.Failures = 0
			t.Forbidden = 0
		}
		q.state.Targets = append(q.state.Targets, t)
	}
}

// Key returns the key of IndexNow, which is what the key file holds.
func (q *Queue) Key() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.state.Key
}

// Encode returns the queue as JSON. A path takes its length and 3 bytes, and no list has over 50,000 or 4 MiB of them,
// that of news 1,000.
func (q *Queue) Encode() []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	data, _ := json.Marshal(q.state) // of strings and numbers: there are no errors
	return data
}

// Status returns the state of each target.
func (q *Queue) Status(now time.Time) (all []Status) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.correct(now)
	for _, t := range q.state.Targets {
		s := t.Status
		s.Waiting = len(t.Added) + len(t.Queued) + t.noted()
		if t.Kind.ofPages() {
			unchecked, _ := q.state.unchecked()
			s.Unconfirmed = len(q.state.Fresh) + len(q.state.Older) + unchecked
		}
		p := q.plan(t, now)
		s.WaitsFor = p.waits
		s.Last = s.Last.Truncate(time.Second)
		s.Next = p.due
		if s.Waiting > 0 && p.waits == "" {
			s.Next = now
		}
		if !s.Next.IsZero() {
			s.Next = later(s.Next, now).UTC().Add(time.Second - 1).Truncate(time.Second) // not before it is due
		}
		all = append(all, s)
	}
	return all
}

// correct corrects times that lie in the future, as the clock was set back, and forgets what is over.
func (q *Queue) correct(now time.Time) {
	s := &q.state
	if limit := now.Add(holdFor); s.Hold.After(limit) {
		s.Hold = limit
	}
	for i := range s.Removed {
		s.Removed[i].At = earlier(s.Removed[i].At, now)
	}
	s.Removed = slices.DeleteFunc(s.Removed, func(r removal) bool { return r.Stays && now.Sub(r.At) > day })
	for _, t := range s.Targets {
		t.correct(now)
	}
}

func (t *target) correct(now time.Time) {
	longest := wait.MaxRetryAfter
	if t.Failures <= 0 {
		longest = Gap // only a failure has a target wait for longer
	}
	// Counted from Last, and bounded, as what is stored may be damaged.
	pause := min(max(t.Next.Sub(t.Last), 0), longest)
	t.Last = earlier(t.Last, now)
	t.Next = t.Last.Add(pause)
	t.Recent = t.Recent.since(now.Add(-protocols[t.Kind].interval), now)
	t.Spent = t.Spent.until(now)
}

// earlier returns the earlier of two times.
func earlier(a, b time.Time) time.Time {
	if a.After(b) {
		return b
	}
	return a
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// noted is how many URLs are being sent.
func (t *target) noted() int { return len(t.NotedNew) + len(t.Noted) }

// add queues newer changes, each path once. dropped is how many of the oldest ones have no room.
func (t *target) add(added, others list) (dropped int) {
	dropped = t.Added.add(added)
	dropped += t.Queued.add(others)
	t.Queued.remove(t.Added)
	return dropped
}

// remove removes what is not to be announced any more.
func (t *target) remove(paths list) {
	t.Added.remove(paths)
	t.Queued.remove(paths)
	t.NotedNew.remove(paths)
	t.Noted.remove(paths)
}
