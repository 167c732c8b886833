package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/persist"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// Format is that of stored values: it is a part of the names in [MemberOptions], so that processes with another one
// share nothing.
const Format = 3

const (
	valueKey = "manifest.json" // of a node with a single value

	retryLeast  = time.Minute // after a commit that failed
	shareOfTime = 20          // commits that fail again and again may cost a twentieth of the time
)

// DefaultPatience is how long a process that has nothing to serve waits for the shared storage.
const DefaultPatience = 10 * time.Minute

// ErrWaits says that a process waits for the shared storage, and cannot refresh the site yet.
var ErrWaits = errors.New("nothing is refreshed before the shared storage has responded")

// MemberOptions are the options of [NewMember].
type MemberOptions struct {
	Site     string        // name of the site, fit for a key
	Group    string        // name of the site with its settings: members with other settings share nothing but announcements
	Host     string        // name of this machine, for operators
	Interval time.Duration // between refreshes, as configured
	Copies   store.Storage // of this process alone: copies of what is shared; nil: in memory
	Before   store.Storage // the site's records before it was shared; nil: there are none
	Now      func() time.Time

	// RecordsPrefix is that of the keys of a [store.Store], BeforePrefix of one in Before. The Prefix of a Node is that of
	// the fleet's keys.
	RecordsPrefix, BeforePrefix string
}

// Member is one process's part in a site that several processes share. It implements [persist.Shared]: as a storage, it
// has the site's records and documents. It is safe for concurrent use.
type Member struct {
	*Node               // of the records and documents
	Queue *Node         // of the announcements, which are one value, whatever the settings are
	last  *persist.File // prefix of the records by the settings that came last
	nodes []*Node       // all of these, and that of register

	former   atomic.Pointer[string] // prefix of the records with which the site began here
	register register

	views *views

	o       MemberOptions
	storage atomic.Pointer[Shared]
	started time.Time
	visited atomic.Int64 // paths that visitors of this process had when it refreshed the site
	retry   atomic.Int64 // when the site is due at the earliest, after a commit that failed, in Unix nanoseconds
	isDown  atomic.Bool  // the last poll failed

	polled atomic.Pointer[time.Time] // when the last poll began that has not failed; nil: none has

	patience atomic.Int64 // see SetPatience; in nanoseconds
	isAlone  atomic.Bool  // it has refreshed the site as if it were alone
}

// Beginning is how a process begins that has nothing to serve: neither from the storage nor from its own copies. What
// it finds by itself at first is a fragment of what the others serve, so it waits for that.
type Beginning uint8

// The beginnings.
const (
	Joins  Beginning = iota // with what others have committed, or with nothing where the storage says that there is nothing
	Waits                   // for the storage: it does not know yet what others have committed
	Begins                  // as if it were alone: it has not learnt that within its patience
)

// beginning decides how a process begins. isKnown: what others have committed, if anything, was loaded.
func beginning(isKnown bool, waited, patience time.Duration) Beginning {
	if isKnown {
		return Joins
	}
	if waited < patience {
		return Waits
	}
	return Begins
}

// Prefix returns the prefix of the keys of a group, or of another value.
func Prefix(name string) string { return "sitemap/" + name }

// NewMember returns a Member. [Member.Configure] is to be called before it is used.
func NewMember(o MemberOptions) *Member {
	m := &Member{o: o, started: o.Now(), views: newViews(o.Host, o.Now)}
	m.SetPatience(0)
	shared := func(prefix string) Options {
		return Options{
			Storage:  func() Shared { return *m.storage.Load() },
			Prefix:   Prefix(prefix),
			Interval: o.Interval,
			Now:      o.Now,
		}
	}
	value := func(prefix string) *Node {
		o := shared(prefix)
		o.Value = true
		return New(o)
	}
	records := shared(o.Group)
	records.Local = o.Copies
	m.Node = New(records)
	m.Queue = value("announce/" + o.Site)
	latest := value("latest/" + o.Site)
	m.last = persist.NewFile(latest, valueKey)
	used := value("groups/" + o.Site)
	m.register = register{
		turn:    wait.NewSlots(1),
		file:    persist.NewFile(used, valueKey),
		now:     o.Now,
		removed: make(map[string]bool),
	}
	m.nodes = []*Node{m.Node, m.Queue, latest, used}
	return m
}

// QueueFile returns the file of the announcements.
func (m *Member) QueueFile() *persist.File { return persist.NewFile(m.Queue, valueKey) }

// Configure sets what another configuration may have set otherwise: the storage, and the longest interval; 0: a day.
func (m *Member) Configure(storage Shared, longest time.Duration) {
	m.storage.Store(&storage)
	m.Most.Store(int64(cmp.Or(longest, day)))
}

// SetPatience sets how long the process waits for the shared storage while it has nothing to serve; 0: the default.
func (m *Member) SetPatience(d time.Duration) { m.patience.Store(int64(cmp.Or(d, DefaultPatience))) }

// Inherited implements [persist.Shared]: a site goes on from its records by other settings, from copies of those that
// were in another storage, or from those before it was shared.
func (m *Member) Inherited(ctx context.Context) *store.Generation {
	var storages []store.Storage
	o := m.Options
	o.Local = nil // whose copies are of the present settings
	err := m.last.Load(ctx, func(prefix []byte) { o.Prefix = string(prefix) })
	if err == nil {
		storages = append(storages, New(o))
		m.former.Store(&o.Prefix)
	}
	storages = append(storages, lastCopy{m.copies})
	for _, storage := range storages {
		if last := lastOf(ctx, storage, m.o.RecordsPrefix); last != nil {
			return last
		}
	}
	if m.o.Before != nil {
		return lastOf(ctx, m.o.Before, m.o.BeforePrefix)
	}
	return nil
}

// lastOf returns the last records that a storage has; nil: it has none.
func lastOf(ctx context.Context, storage store.Storage, prefix string) *store.Generation {
	s, err := store.Open(ctx, storage, store.Options{Prefix: prefix})
	if err != nil || s.Last().Len() == 0 {
		return nil
	}
	return s.Last()
}

// Poll is [Node.Poll], and remembers whether it failed. If not, it collects garbage: no refresh waits for that.
func (m *Member) Poll(ctx context.Context) error {
	begun := time.Now()
	err := m.Node.Poll(ctx)
	m.isDown.Store(err != nil)
	if err != nil {
		return err
	}
	m.polled.Store(&begun)
	for _, n := range m.nodes {
		n.Collect(ctx)
	}
	m.keepRegister(ctx)
	return nil
}

// HasRead reports whether a poll since then has found nothing that is not loaded.
func (m *Member) HasRead(since time.Time) bool {
	polled := m.polled.Load()
	return polled != nil && !polled.Before(since) && !m.Newer()
}

// IsDown reports whether the last poll failed.
func (m *Member) IsDown() bool { return m.isDown.Load() }

// IsEmpty reports whether nothing was ever committed: until then, each process serves what it has made itself.
func (m *Member) IsEmpty() bool { return m.Status().Generation == 0 && !m.Newer() }

// isKnown reports whether it is known what others have committed: it was loaded, or there is nothing.
func (m *Member) isKnown() bool { return m.wasRead.Load() && !m.Newer() }

// Beginning returns how the process begins, or would, if it has nothing to serve.
func (m *Member) Beginning() Beginning {
	return beginning(m.isKnown(), m.Now().Sub(m.started), time.Duration(m.patience.Load()))
}

// IsAlone reports whether the process has refreshed the site as if it were alone, and does not know yet what others
// have committed.
func (m *Member) IsAlone() bool { return m.isAlone.Load() && !m.isKnown() }

// isWriter reports whether this process has committed the newest generation.
func (m *Member) isWriter() bool { return m.Status().Writer == m.ID }

// PlansItself reports whether the next refresh is planned by this process alone: it has committed the newest
// generation, or nobody has committed any.
func (m *Member) PlansItself() bool { return m.IsEmpty() || m.isWriter() }

// DueFor returns when this process is to refresh the site. If the view of others is to be listed, or if it has held
// pages back, they come first. If its visitors have requested something new, it comes before others.
func (m *Member) DueFor(st persist.Standing) time.Time {
	if !st.Serves && m.Beginning() == Waits {
		return m.started.Add(time.Duration(m.patience.Load()))
	}
	if !m.IsEmpty() && m.Judge().Vote != Free {
		return m.Due(false).Add(m.yieldFor())
	}
	// Another node may find the pages that were held back.
	if st.HoldsBack && m.isWriter() {
		return m.Due(false).Add(m.o.Interval)
	}
	due := m.Due(int64(st.Visited) != m.visited.Load())
	retry := time.Unix(0, m.retry.Load())
	if retry.After(due) {
		return retry
	}
	return due
}

// mayRefresh reports whether this process may refresh the site now.
func (m *Member) mayRefresh(ctx context.Context, st persist.Standing) bool {
	now := m.Now()
	isNewer := m.Newer()
	// What was committed may not be loadable. A process that serves nothing waits for it only for a while.
	isWaiting := isNewer
	if !st.Serves {
		isWaiting = m.Beginning() == Waits
	}
	if isWaiting || ctx.Err() != nil {
		return false
	}
	return st.Demanded || isNewer || !m.DueFor(st).After(now)
}

// Join implements [persist.Shared]. It takes the lock if this process is to refresh the site now.
func (m *Member) Join(
	ctx context.Context,
	standing func() persist.Standing,
	load func(),
) (persist.Role, func(), error) {
	st := standing()
	if !st.Serves && m.Beginning() == Waits {
		if st.Demanded {
			return persist.Later, nil, ErrWaits
		}
		return persist.Later, nil, nil
	}
	if !m.mayRefresh(ctx, st) {
		return persist.Follower, nil, nil
	}

	// Waiting for the lock may take long, so all is looked at again.
	release, err := m.Acquire(ctx)
	if err == nil || m.Newer() {
		load() // another process has committed meanwhile
	}
	st = standing()
	mayRefresh := m.mayRefresh(ctx, st)
	if err == nil && !mayRefresh {
		release()
		return persist.Follower, nil, nil
	}
	if err == nil {
		m.noteRefresh(st)
		return persist.Writer, release, nil
	}

	// As if it were alone: better twice than nothing.
	needsOwn := !st.Serves || m.IsAlone()
	if needsOwn && mayRefresh {
		m.noteRefresh(st)
		return persist.Writer, nil, nil
	}
	if errors.Is(err, ErrBusy) || ctx.Err() != nil {
		return persist.Later, nil, nil
	}
	return persist.Later, nil, fmt.Errorf("locking the site in the shared storage: %w", err)
}

// noteRefresh notes that the process refreshes the site. One that has begun as if it were alone goes on like that until the
// storage responds: a first crawl may take many refreshes.
func (m *Member) noteRefresh(st persist.Standing) {
	if !st.Serves {
		m.isAlone.Store(m.Beginning() == Begins)
	}
}

// Commit implements [persist.Shared].
func (m *Member) Commit(ctx context.Context, c persist.Commit, write func() error) (isServed bool, err error) {
	m.Plan(c.Next)
	if c.IsSame && !m.IsEmpty() {
		err = m.Touch(ctx)
	} else {
		err = write()
	}
	// A storage that cannot be written, as a full one, is not to have the site refreshed in vain all the time.
	if err != nil {
		pause := min(c.Next, max(retryLeast, shareOfTime*c.Cost))
		m.retry.Store(m.Now().Add(pause).UnixNano())
		return m.IsEmpty(), err
	}
	if m.IsEmpty() { // there was no open store to write to
		return true, nil
	}
	m.visited.Store(int64(c.Visited))
	m.saveLast(ctx)
	return true, nil
}

// saveLast notes that these settings came last. What cannot be stored is stored by the next commit.
func (m *Member) saveLast(ctx context.Context) {
	prefix := func() ([]byte, error) { return []byte(m.Prefix), nil }
	err := m.last.Save(ctx, prefix)
	if errors.Is(err, ErrLost) { // there is another one, or it was not loaded yet
		_ = m.last.Load(ctx, func([]byte) {})
		_ = m.last.Save(ctx, prefix)
	}
}
