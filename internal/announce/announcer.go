package announce

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// File stores a value, as a record.File does.
type File interface {
	Load(ctx context.Context) ([]byte, error)
	Save(ctx context.Context, encode func() ([]byte, error)) error
}

// Announcer tells the targets of a site what changed, and knows what they were told. It is safe for concurrent use.
type Announcer struct {
	file      File
	loading   sync.Mutex    // for one Load at a time
	published chan struct{} // of size 1: Published was called
	slot      wait.Slots    // for one runner at a time

	mu        sync.Mutex // guards the rest
	config    Config
	state     state
	selecting int64           // nothing from then on is told, as a selection is under way; 0: none is
	documents map[Kind]string // digests of what is published
}

// state is what is stored: a value of its own.
type state struct {
	Key     string    `json:"key"`             // of IndexNow; "": nothing is loaded
	Known   bool      `json:"known,omitempty"` // the site was crawled once, so that pages found since are new
	Targets []*target `json:"targets,omitempty"`
}

// New returns the announcer of a site that is stored in a file.
func New(file File) *Announcer {
	return &Announcer{file: file, published: make(chan struct{}, 1), slot: wait.NewSlots(1)}
}

// Load sets the configuration, and loads what is stored unless that is loaded and nothing newer is. Without it, the site would get
// another key. What is damaged is begun anew, which is an error once.
func (a *Announcer) Load(ctx context.Context, c Config, isNewer bool, now time.Time) error {
	a.loading.Lock()
	defer a.loading.Unlock()
	if a.Key() != "" && !isNewer {
		a.configure(c, now, nil)
		return nil
	}
	var s state
	var damage error
	data, err := a.file.Load(ctx)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if data != nil {
		damage = json.Unmarshal(data, &s)
	}
	if damage != nil {
		s = state{} // a part of it may have been read
		damage = fmt.Errorf("what is stored is damaged, and begun anew: %w", damage)
	}
	s.Key = cmp.Or(c.Key, s.Key)
	if !IsKey(s.Key) {
		s.Key = fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64()) // it is public
		// It is used once it is stored: else another process would have another one.
		err = a.file.Save(ctx, func() ([]byte, error) { return json.Marshal(s) })
		if err != nil {
			return err
		}
	}
	a.configure(c, now, &s)
	return damage
}

// configure sets the configuration and what was loaded; nil: that is there. Targets that are kept go on, and new ones are told what
// changes from now on.
func (a *Announcer) configure(c Config, now time.Time, loaded *state) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &a.state
	if loaded != nil {
		*s = *loaded
		a.documents = nil // another process may have published, and told of, others since
	}
	a.config = c
	s.Key = cmp.Or(c.Key, s.Key)
	was := s.Targets
	s.Targets = nil
	for _, of := range c.Targets {
		isIt := func(t *target) bool { return t != nil && t.Target == of } // nil: what is stored may be damaged
		isUnused := of.Kind == IndexNow && !origin.IsPublic(c.Origin)      // search engines could not reach the site
		if isUnused || slices.ContainsFunc(s.Targets, isIt) {
			continue
		}
		t := &target{Status: Status{Target: of}}
		if i := slices.IndexFunc(was, isIt); i >= 0 {
			t = was[i]
		}
		if of.Kind == IndexNow && t.Told.At == 0 {
			t.Told.At = now.Unix()
		}
		s.Targets = append(s.Targets, t)
	}
}

// Save stores what is to be stored, if it is loaded.
func (a *Announcer) Save(ctx context.Context) error {
	if a.Key() == "" {
		return nil
	}
	// What is encoded is what there is when it is written.
	return a.file.Save(ctx, func() ([]byte, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		return json.Marshal(a.state)
	})
}

// Key returns the key of IndexNow, which is what the key file holds; "": it is not loaded.
func (a *Announcer) Key() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state.Key
}

// Status returns the state of each target.
func (a *Announcer) Status(now time.Time) (all []Status) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.state.Targets {
		s := t.Status
		if s.Waiting > 0 {
			s.Next = t.due(a.config.Daily, now)
		}
		all = append(all, s)
	}
	return all
}

// Select returns what a selection is to know that begins now. Until Published is called, nothing is told that it may find.
func (a *Announcer) Select(now time.Time) indexing.Notices {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.selecting = now.Unix()
	n := indexing.Notices{Now: a.selecting, IsKnown: a.state.Known}
	// One that always fails must not have all others be told what they need not know.
	n.Behind = cmp.Or(a.state.behind(maxExcused), a.state.behind(math.MaxInt))
	for _, t := range a.state.Targets {
		if t.Kind == IndexNow {
			n.Told = max(n.Told, t.Told.At, t.Until.At)
		}
	}
	return n
}

// Behind returns the time up to which all targets were told of pages; 0: nobody is told.
func (a *Announcer) Behind() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state.behind(math.MaxInt)
}

// behind returns the time up to which all targets were told of pages, but those that failed more often in a row; 0: there are none.
func (s *state) behind(failures int) (at int64) {
	for _, t := range s.Targets {
		if t.Kind == IndexNow && t.Failures <= failures {
			at = cmp.Or(min(at, t.Told.At), t.Told.At)
		}
	}
	return at
}

// Publication is what a refresh has published.
type Publication struct {
	First     bool            // no page was listed before
	Complete  bool            // all pages were fetched, and nothing is held back
	Documents map[Kind]string // digests of the sitemap and the feed
}

// Published has what was published be told.
func (a *Announcer) Published(p Publication) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.selecting = 0
	a.documents = p.Documents
	isKnown := a.state.Known && !p.First
	a.state.Known = isKnown || p.Complete
	for _, t := range a.state.Targets {
		t.isCounted = false
		// All of it is new to everybody, or to a target that is new itself.
		isNew := !isKnown || t.Told.Path == ""
		if t.Kind != IndexNow && isNew {
			t.Told.Path = p.Documents[t.Kind]
		}
	}
	select {
	case a.published <- struct{}{}:
	default: // it is told already
	}
}
