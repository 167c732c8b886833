package announce

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// Queue is what is to be announced of one site, and what came of it. It is safe for concurrent use.
type Queue struct {
	changed chan struct{} // of size 1: Update was called
	turn    wait.Slots    // for one job at a time
	runner  *Runner       // to which config belongs; nil: to New. Of who has the turn
	saving  wait.Slots    // one at a time
	saved   uint64        // the version that was saved last; of who has the slot

	mu      sync.Mutex
	config  Config
	version uint64 // of state
	state   state
}

// state is what is stored of a queue. In lists of paths, the oldest change is first.
type state struct {
	Key    string `json:"key"`              // of IndexNow
	Known  bool   `json:"known,omitempty"`  // the site was crawled once, and changes since are announced
	Listed int    `json:"listed,omitempty"` // pages

	Fresh []string `json:"fresh,omitempty"` // pages added since the last complete refresh
	Older []string `json:"older,omitempty"` // pages added before its end: the next one confirms them

	Absent []string `json:"absent,omitempty"` // removed pages that may be gone

	Targets []*target `json:"targets,omitempty"`
}

// target is an endpoint, a ping URL or a hub. The last two have one path: the document of which they are told.
type target struct {
	Status
	Queued    []string  `json:"queued,omitempty"`
	Noted     []string  `json:"noted,omitempty"`    // the batch that is being sent, or whose outcome is not known
	Resent    bool      `json:"resent,omitempty"`   // it was sent a second time
	Forbidden time.Time `json:"forbidden,omitzero"` // since when the endpoint refuses the key; zero: it does not
	Day       time.Time `json:"day,omitzero"`       // since when Used counts
	Used      int       `json:"used,omitempty"`     // of what a day allows
}

// New returns a site's queue as [Queue.Encode] stored it. Without data it is a new one. With an error, too: what was
// stored is damaged.
func New(stored []byte, c Config) (*Queue, error) {
	q, err := &Queue{changed: make(chan struct{}, 1), turn: wait.NewSlots(1), saving: wait.NewSlots(1)}, error(nil)
	if len(stored) > 0 {
		err = json.Unmarshal(stored, &q.state)
	}
	if err != nil {
		q.state = state{}
	}
	for _, list := range []*[]string{&q.state.Fresh, &q.state.Older, &q.state.Absent} {
		*list, _ = merge(nil, *list)
	}
	q.configure(c)
	return q, err
}

// configure sets the configuration. Targets that it keeps go on, and those that were stopped are tried again.
func (q *Queue) configure(c Config) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !IsPublic(c.Origin) {
		c.Endpoints = nil
	}
	q.config = c
	q.version++
	if q.state.Key = cmp.Or(c.Key, q.state.Key); !IsKey(q.state.Key) {
		var random [16]byte
		_, _ = rand.Read(random[:]) // which never fails
		q.state.Key = fmt.Sprintf("%x", random)
	}
	was := q.state.Targets
	q.state.Targets = nil
	add := func(kind Kind, urls []string) {
		for _, url := range urls {
			if find(q.state.Targets, kind, url) != nil {
				continue
			}
			t := cmp.Or(find(was, kind, url), &target{Status: Status{Kind: kind, URL: url}})
			t.Queued, _ = merge(nil, t.Queued)
			t.Noted, t.Failures = t.Noted[:min(len(t.Noted), maxBatch)], min(max(t.Failures, 0), keyFailures)
			if t.Stopped || !t.Forbidden.IsZero() {
				t.Stopped, t.Reason, t.Failures, t.Forbidden = false, "", 0, time.Time{}
				t.Next = t.Last.Add(intervals[kind])
			}
			q.state.Targets = append(q.state.Targets, t)
		}
	}
	add(IndexNow, c.Endpoints)
	add(Ping, c.Pings)
	if c.Feed != "" {
		add(Hub, c.Hubs)
	}
}

// find returns a target; nil: there is none.
func find(targets []*target, kind Kind, url string) *target {
	for _, t := range targets {
		if t != nil && t.Kind == kind && t.URL == url {
			return t
		}
	}
	return nil
}

// Key returns the key of IndexNow, which is what the key file holds.
func (q *Queue) Key() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.state.Key
}

// Encode returns the queue as JSON. A path takes its length and 3 bytes, and no list has over 50,000 or 4 MiB of them.
func (q *Queue) Encode() []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	data, _ := json.Marshal(q.state) // of strings and numbers: there are no errors
	return data
}

// Status returns the state of each target.
func (q *Queue) Status() (all []Status) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, t := range q.state.Targets {
		s := t.Status
		s.Last, s.Next = s.Last.Truncate(time.Second), s.Next.Truncate(time.Second)
		if s.Waiting = len(t.Queued) + len(t.Noted); t.Kind == IndexNow {
			s.Unconfirmed = len(q.state.Fresh) + len(q.state.Older)
		}
		all = append(all, s)
	}
	return all
}

// Save calls save with the encoded queue if it has changed since save last succeeded. If save has not returned when ctx
// ends, Save returns an error, and later calls wait for it: else what is older could overwrite what is newer.
func (q *Queue) Save(ctx context.Context, save func(ctx context.Context, data []byte) error) error {
	if !q.saving.Take(ctx) {
		return ctx.Err()
	}
	var err error
	if !wait.OrLeave(ctx, 0, func() {
		defer q.saving.Release()
		q.mu.Lock()
		version := q.version
		q.mu.Unlock()
		if version == q.saved {
			return
		}
		if err = save(ctx, q.Encode()); err == nil {
			q.saved = version
		}
	}) {
		return ctx.Err()
	}
	return err
}

// merge joins two lists of paths, of which newer has the later changes: each path once, where it was last, within the
// bounds. dropped is how many of the oldest had no room.
func merge(older, newer []string) (kept []string, dropped int) {
	seen, size := make(map[string]bool, len(older)+len(newer)), 0
	for _, path := range slices.Backward(slices.Concat(older, newer)) {
		if seen[path] {
			continue
		}
		seen[path] = true
		if size += len(path); len(kept) == maxPaths || size > maxBytes {
			dropped++
			continue
		}
		kept = append(kept, path)
	}
	slices.Reverse(kept)
	return kept, dropped
}
