package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

const (
	viewsKey   = "views"
	maxViews   = 100 // nodes
	maxName    = 100 // bytes
	liveLooks  = 2   // looks of a node without which it counts as gone
	keptLooks  = 10  // and its entry is deleted
	lookTries  = 6   // to write an entry: others may write theirs at the same time
	yieldLooks = 5   // for which a node without the listed view lets others refresh the site after it is due
)

// views are what the live nodes of a site see of it. All of it is one value in the storage, an entry a node: some
// storages list no keys, and nodes that are gone leave none behind. Nodes that write it at once may lose an entry, so
// each reads again what it has written. What is lost even so comes back with the next look of its node.
//
// Whether a node lives is told by its entry, which changes with each look. Clocks do not count: each reader notes when
// it has seen a change.
type views struct {
	now func() time.Time

	mu      sync.Mutex
	own     sight
	others  map[string]*observed // by ID
	set     string               // views of the live nodes, and
	changed time.Time            // since when they are these
	readAt  time.Time            // when the entries were read last; zero: never
}

// sight is a node's entry.
type sight struct {
	Name  string        `json:"name"`
	Place string        `json:"place,omitempty"` // of the node's copies: the same after a restart
	View  string        `json:"view,omitempty"`
	Held  uint64        `json:"held,omitempty"` // looks that have found the same since the first one
	Look  uint64        `json:"look"`           // number
	Every time.Duration `json:"every"`          // between two looks, in nanoseconds
}

// observed is the entry of another node.
type observed struct {
	sight
	at time.Time // when it was seen to be another one than before
}

// lasts returns for how long an entry counts without so many looks: those of the node, or of the reader if they are
// rarer.
func (o *observed) lasts(looks int, every, slack time.Duration) time.Duration {
	return spanOf(looks, max(o.Every, every), slack)
}

// spanOf is how long so many looks take, which may be late.
func spanOf(looks int, every, slack time.Duration) time.Duration {
	return time.Duration(looks)*every + slack
}

// newViews returns the views of a node with a name.
func newViews(name string, now func() time.Time) *views {
	return &views{
		now:     now,
		own:     sight{Name: fitName(name)},
		others:  make(map[string]*observed),
		changed: now(),
	}
}

// fitName returns a name as JSON keeps it: of whole characters, and of maxName bytes at most.
func fitName(name string) string {
	name = strings.ToValidUTF8(name, "")
	return strings.ToValidUTF8(name[:min(len(name), maxName)], "")
}

// setPlace says which place this node has.
func (v *views) setPlace(place string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.own.Place = place
}

// look takes a new view of this node.
func (v *views) look(view string, every time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.own.Held++
	if view != v.own.View {
		v.own.Held = 0
	}
	v.own.View = view
	v.own.Look++
	v.own.Every = every
}

// merge reads the stored value, and returns what is to be stored in its place: with this node's entry, and without
// those of nodes that are gone. isStored: it has this node's entry already.
func (v *views) merge(self string, stored []byte, slack time.Duration) (next []byte, isStored bool) {
	var entries map[string]sight
	if json.Unmarshal(stored, &entries) != nil {
		entries = nil // another version's, or damaged
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.readAt = v.now()
	v.observe(self, entries, slack)
	isStored = entries[self] == v.own
	entries = map[string]sight{self: v.own}
	for _, id := range v.latest() {
		if len(entries) < maxViews {
			entries[id] = v.others[id].sight
		}
	}
	next, _ = json.Marshal(entries) // which has no field that fails
	return next, isStored
}

// observe notes which entries have changed, and forgets those of nodes that are gone for long. Under mu.
func (v *views) observe(self string, entries map[string]sight, slack time.Duration) {
	now := v.now()
	for id, s := range entries {
		if id == self || !hashPattern.MatchString(id) || !s.isValid() {
			continue
		}
		s.Every = min(s.Every, day)
		known := v.others[id]
		if known == nil {
			v.others[id] = &observed{s, now} // which may be gone: that shows soon
		} else if known.Look != s.Look {
			*known = observed{s, now}
		}
	}
	maps.DeleteFunc(v.others, func(id string, o *observed) bool {
		return now.Sub(o.at) > o.lasts(keptLooks, v.own.Every, slack) || v.isReplaced(id)
	})
}

// isValid reports whether a node of this version may have written an entry.
func (s *sight) isValid() bool {
	isShort := len(s.Name) <= maxName && len(s.Place) <= maxName && len(s.View) <= maxName
	return isShort && s.Every >= 0
}

// isReplaced reports whether another process has been started in the place of one, which has ended without taking its
// entry away: it must not vote as long as it might live. Under mu.
func (v *views) isReplaced(id string) bool {
	o := v.others[id]
	if o.Place == "" {
		return false
	}
	if o.Place == v.own.Place {
		return true
	}
	for _, other := range v.others {
		if other.Place == o.Place && other.at.After(o.at) {
			return true
		}
	}
	return false
}

// latest returns the IDs of the other nodes, those first whose entries have changed last. Under mu.
func (v *views) latest() []string {
	return slices.SortedFunc(maps.Keys(v.others), func(a, b string) int {
		return cmp.Or(v.others[b].at.Compare(v.others[a].at), strings.Compare(a, b))
	})
}

// live returns what this node and the other live ones see, and for how long all of that has been the same.
func (v *views) live(self string, slack time.Duration) (own Sight, others []Sight, lasting time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.now()
	own = v.own.of(self)
	set := own.Node + own.View // all of it as one text, to be compared
	for _, id := range slices.Sorted(maps.Keys(v.others)) {
		o := v.others[id]
		if now.Sub(o.at) > o.lasts(liveLooks, v.own.Every, slack) {
			continue
		}
		others = append(others, o.of(id))
		set += " " + id + o.View
	}
	if set != v.set {
		v.set = set
		v.changed = now
	}
	return own, others, now.Sub(v.changed)
}

// of returns the entry of a node as what it sees.
func (s sight) of(id string) Sight {
	digits := id[:min(len(id), shownDigits)] // two nodes may be on one host
	return Sight{
		Node:      id,
		Name:      strings.TrimSpace(s.Name + " " + digits),
		View:      s.View,
		IsSettled: s.Held > 0,
	}
}

const (
	shownDigits = 8               // of an ID in a name
	lookPause   = 3 * time.Second // at most, between tries
)

// Look tells the other nodes what this one sees of the site, and reads what they see. The next look comes after every.
// An error is that of the storage: the nodes that are not heard of count as gone some time later.
func (m *Member) Look(ctx context.Context, view string, every time.Duration) error {
	m.views.setPlace(m.copies.place(ctx))
	m.views.look(view, every)
	for i := range lookTries {
		if i > 1 { // another node writes as often as this one
			_, _ = wait.Within(rand.N(lookPause), ctx.Done())
		}
		stored, err := m.read(ctx, viewsKey)
		if err != nil {
			return err
		}
		next, isStored := m.views.merge(m.ID, stored, m.slack())
		if isStored { // and no other node has overwritten it
			return nil
		}
		err = m.write(ctx, viewsKey, next)
		if err != nil {
			return err
		}
	}
	return nil
}

// slack is what the looks of nodes may be late by, on a busy machine or with a slow storage.
func (m *Member) slack() time.Duration { return 2 * m.poll }

// Leave takes the view of this node away, which stops.
func (m *Member) Leave(ctx context.Context) error {
	stored, err := m.read(ctx, viewsKey)
	if err != nil {
		return err
	}
	var entries map[string]json.RawMessage
	if json.Unmarshal(stored, &entries) != nil || entries[m.ID] == nil {
		return nil
	}
	delete(entries, m.ID)
	data, _ := json.Marshal(entries) // which was read as such
	return m.write(ctx, viewsKey, data)
}

// isBlind reports whether this node has not read what the others see for as long as makes them count as gone, as after
// a start while the storage fails. That it knows of none says nothing then.
func (v *views) isBlind(slack time.Duration) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.readAt.IsZero() || v.now().Sub(v.readAt) > spanOf(liveLooks, v.own.Every, slack)
}

// Judge returns what this node may do by what all see.
func (m *Member) Judge() Judgement {
	own, others, lasting := m.views.live(m.ID, m.slack())
	if own.View != "" && m.views.isBlind(m.slack()) {
		return Judgement{Vote: Yields} // and no other node is known to see the same
	}
	return judge(own, others, m.Status().Writer, lasting > 2*m.o.Interval)
}

// NodeStatus is what operators see of another node.
type NodeStatus struct {
	Node     string `json:"node"` // ID
	Name     string `json:"name"` // of the host, and the first digits of the ID
	SameView bool   `json:"same_view"`
}

// Nodes returns the other live nodes of the site.
func (m *Member) Nodes() (all []NodeStatus) {
	own, others, _ := m.views.live(m.ID, m.slack())
	for _, o := range others {
		all = append(all, NodeStatus{o.Node, o.Name, o.View == own.View})
	}
	return all
}

// Name is that of this node, as other nodes show it.
func (m *Member) Name() string {
	own, _, _ := m.views.live(m.ID, m.slack())
	return own.Name
}

// yieldFor is how long a node lets others refresh the site after it is due, whose view is to be listed. If none does,
// it does so itself.
func (m *Member) yieldFor() time.Duration { return 2 * yieldLooks * m.o.Interval }
