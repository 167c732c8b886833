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
	turn    wait.Slots    // for one runner at a time
	mu      sync.Mutex    // guards the rest
	config  Config
	state   state
}

// state is what is stored of a queue.
type state struct {
	Key     string    `json:"key"`              // of IndexNow
	Known   bool      `json:"known,omitempty"`  // the site was crawled once, and changes since are announced
	Listed  int       `json:"listed,omitempty"` // pages
	Fresh   list      `json:"fresh,omitempty"`  // pages added since the last complete refresh
	Older   list      `json:"older,omitempty"`  // pages added before its end: the next one confirms them
	Absent  list      `json:"absent,omitempty"` // removed pages that may be gone
	Targets []*target `json:"targets,omitempty"`
}

// target is an endpoint, a ping URL or a hub. The last two have one path: the document of which they are told.
type target struct {
	Status
	Queued    list      `json:"queued,omitempty"`
	Noted     list      `json:"noted,omitempty"`     // the batch that is being sent, or whose outcome is not known
	Resent    bool      `json:"resent,omitempty"`    // it was sent a second time
	Forbidden int       `json:"forbidden,omitempty"` // times that the endpoint has refused the key, since it last accepted it
	Day       time.Time `json:"day,omitzero"`        // since when Used counts
	Used      int       `json:"used,omitempty"`      // of what a day allows
}

// New returns a site's queue as [Queue.Encode] stored it; nil: a new one. With an error, it is a new one, too: what was
// stored is damaged.
func New(stored []byte, c Config) (q *Queue, err error) {
	q = &Queue{changed: make(chan struct{}, 1), turn: wait.NewSlots(1)}
	if stored != nil {
		err = json.Unmarshal(stored, &q.state)
	}
	if err != nil {
		q.state = state{} // of which a part may have been read
	}
	q.configure(c)
	return q, err
}

// configure sets the configuration. Targets that it keeps go on, and those that were stopped or refuse the key are tried
// again, after their interval.
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
		isIt := func(t *target) bool { return t != nil && t.Target == of }
		if slices.ContainsFunc(q.state.Targets, isIt) || of.Kind == IndexNow && !origin.IsPublic(c.Origin) {
			continue
		}
		t := &target{Status: Status{Target: of}}
		if i := slices.IndexFunc(was, isIt); i >= 0 {
			t = was[i]
		}
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
		s.Last = s.Last.Truncate(time.Second)
		s.Next = s.Next.Truncate(time.Second)
		s.Waiting = len(t.Queued) + len(t.Noted)
		if t.Kind == IndexNow {
			s.Unconfirmed = len(q.state.Fresh) + len(q.state.Older)
		}
		all = append(all, s)
	}
	return all
}
