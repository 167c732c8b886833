package sitemap

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
	"github.com/seed3295b519/caddy-sitemap/internal/replica"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
	"github.com/seed3295b519/caddy-sitemap/internal/visits"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// Where several processes share a site, one leads: see package replica.
const (
	defaultPatience = 10 * time.Minute // with a storage that does not respond, while nothing is served
	maxPoll         = 15 * time.Second
	perPoll         = 150 * time.Millisecond // for each site of the App, with three calls: so a storage has 20 a second at most
	claimPatience   = 10 * time.Second       // of an operator
	leavePatience   = 2 * time.Second        // with the storage, when a process stops
	hangsFor        = 10                     // intervals, or minutes, at one stage of a refresh, until another process leads
	maxVisited      = 30 << 10               // bytes of visits that the leader is told
	maxSignaled     = 10 << 10               // bytes of signals
	maxSignals      = 100                    // that are kept for it
	startsFor       = time.Minute            // in which what is not up yet is no reason for another process to lead
)

// AnnounceAfter is how long a process leads until it announces anything. Only tests set less.
var AnnounceAfter = 2 * time.Minute

// fleetState is what of a site's part in a fleet outlives a configuration.
type fleetState struct {
	node    atomic.Pointer[replica.Node] // of the configuration that started last; nil: it shares nothing
	storage string                       // in which storage: see storageSetting.key. Under the App's mu
	isAlone atomic.Bool                  // the storage was silent for fleet_patience, and nothing was served
	polled  atomic.Int64                 // when the last poll began after which all that the storage has is served, in Unix nanoseconds
	asked   atomic.Int64                 // when it was last polled for a name that is not known here, in the same
	told    atomic.Uint64                // digest of what the leader was told last
	signals visits.Visited               // paths of pages that may have changed, or are gone
	written atomic.Bool                  // the leader is to look at what was saved
}

// shares reports whether other processes share a site.
func (a *App) shares(i *identity) bool { return a.sharing.isOn() && !i.onDemand && a.building == nil }

// nodeOf returns this process's part in a site that others share; nil: it is this one's alone. Under the App's mu.
func (a *App) nodeOf(s *site) *replica.Node {
	st := s.state
	if !a.shares(&s.identity) {
		st.fleet.node.Store(nil)
		return nil
	}
	node := st.fleet.node.Load()
	if node == nil || st.fleet.storage != a.sharing.key() {
		node = replica.New(replica.Options{
			Prefix:  "sitemap/" + fileName(s.authority(), digestOf(s.sitemap, s.prefix, st.place.number, replica.Version)),
			Local:   st.local,
			Records: recordsOf(st.place.file),
			Value:   announcementsOf(st.place.file),
			Name:    hostname(),
			Hold:    st.holdRecords,
		})
		st.fleet.node.Store(node)
		st.fleet.storage = a.sharing.key()
	}
	s.shared = record.Bounded(a.sharing.shared)
	node.Configure(s.shared, s.pollEvery())
	return node
}

// writable returns a storage of this process, or one in memory if that cannot be written: what others share is served even so.
func writable(a *App, local record.Storage) record.Storage {
	const key = "writable"
	ctx, cancel := context.WithTimeout(context.Background(), adoptPatience)
	defer cancel()
	err := local.Store(ctx, key, nil)
	if err != nil {
		a.logger.Warn("cannot write the state folder: what is shared is kept in memory", a.stateFields(err)...)
		return record.NewMemory()
	}
	_ = local.Delete(ctx, key)
	return local
}

// holdRecords takes the records from whoever refreshes the site, such as one that led until now.
func (st *siteState) holdRecords(ctx context.Context) (release func(), err error) {
	records, err := st.records.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return records.Release, nil
}

// pollEvery returns the time between two looks at the storage.
func (s *site) pollEvery() time.Duration {
	poll := min(max(s.handler.settings.interval/4, time.Second), maxPoll)
	return max(poll, time.Duration(len(s.app.named))*perPoll)
}

// fleetRole is what a process is to a site.
type fleetRole int

const (
	roleFollows fleetRole = iota // another process refreshes the site
	roleLeads                    // this one does, for others too if it is shared
	roleWaits                    // nothing is served, as it is not known yet what others have
	roleAlone                    // it waited for as long as it is to, and refreshes the site until the storage responds
)

// fleetRole returns what this process is to the site now.
func (s *site) fleetRole() fleetRole {
	fleet := &s.state.fleet
	switch {
	case s.node == nil || s.node.Leads():
		return roleLeads
	case s.node.IsReached():
		fleet.isAlone.Store(false)
		return roleFollows
	case fleet.isAlone.Load():
		return roleAlone
	case s.published().snapshot != nil:
		return roleFollows
	}
	patience := cmp.Or(time.Duration(s.app.FleetPatience), defaultPatience)
	if s.app.now().Sub(s.state.begun) < patience {
		return roleWaits
	}
	if !fleet.isAlone.Swap(true) {
		s.logger.Warn("the shared storage did not respond within fleet_patience: this process begins to refresh the site as if it were alone")
	}
	return roleAlone
}

// mayRefresh reports whether it is this process that refreshes the site.
func (s *site) mayRefresh() bool {
	is := s.fleetRole()
	return is == roleLeads || is == roleAlone
}

// pollFleet has this process do its part in the site at each poll, until the site is stopped.
func (s *site) pollFleet() {
	if s.node == nil {
		return
	}
	f := follower{site: s, refreshes: s.mayRefresh()}
	for {
		if !s.app.isSuperseded() && s.main.Load() == nil {
			f.poll(s.ctx)
		}
		if !s.node.Wait(s.ctx) {
			return
		}
	}
}

// follower is what a process remembers from one poll to the next.
type follower struct {
	*site
	refreshes  bool // it refreshed the site at the last poll
	isOutdated bool // the local store has something newer than is served
}

// poll does what is due at a poll: it leads or follows, serves what is new, and plans what follows from that.
func (f *follower) poll(ctx context.Context) {
	n := f.node
	// A configuration that failed to start has left its storage, which is closed.
	n.Configure(f.shared, f.pollEvery())
	begun := time.Now()
	isChanged, err := n.Step(ctx)
	if ctx.Err() != nil {
		return
	}
	f.logger.OnceIf(err != nil, zap.WarnLevel, "storage", f.whatDown(), zap.Error(err))
	leads := n.Leads()
	// A refresh that is under way serves what it has pushed itself.
	isOwn := leads && f.schedule.IsRunning()
	f.isOutdated = f.isOutdated || isChanged && !isOwn
	if f.isOutdated {
		f.isOutdated = !f.serveShared(ctx)
	}
	if err == nil && !f.isOutdated {
		f.state.fleet.polled.Store(begun.UnixNano())
	}
	if leads && f.hangs() {
		_ = n.Resign(ctx)
	}
	f.planNext(ctx)
	switch {
	case err != nil:
	case leads:
		f.hearWrites(ctx)
	default:
		f.tellLeader(ctx)
	}
}

// planNext makes the site due once it is this process that is to refresh it.
func (f *follower) planNext(ctx context.Context) {
	refreshes := f.mayRefresh()
	if refreshes && !f.refreshes {
		f.plan(prospects{now: f.app.now(), noticed: true})
		f.schedule.Notify()
		f.logEarlierVersion(ctx)
	}
	f.refreshes = refreshes
}

// hangs reports whether the refresh under way is at the same stage for so long that another process is to try.
func (s *site) hangs() bool {
	stage := s.stage.Load()
	interval := max(s.handler.settings.interval, time.Minute)
	return stage != nil && s.app.now().Sub(stage.Since) > hangsFor*interval
}

// whatDown is what a warning says of a storage that cannot be reached, or used.
func (s *site) whatDown() string {
	if s.fleetRole() == roleWaits {
		return "cannot use the shared storage: no sitemap is served until that works, or fleet_patience is over"
	}
	return "cannot use the shared storage: the loaded sitemap is served, and refreshes wait"
}

// serveShared serves what another process has published, as it is in the local store now; false: it cannot be read, which is tried
// again.
func (s *site) serveShared(ctx context.Context) bool {
	records, err := s.state.records.Acquire(ctx)
	if err != nil {
		return false
	}
	defer records.Release()
	before := s.published().snapshot
	records.Reopen()
	err = s.restore(ctx, records)
	if !before.Equal(s.published().snapshot) {
		s.state.writes.NoteChange(s.app.now())
	}
	isDone := err == nil || errors.Is(err, record.ErrDamaged)
	// What the one that published found counts here, too: which sites are aliases, and what their routes say.
	if probed := s.published().probed; isDone && probed != nil {
		s.settle(ctx, probed, nil)
	}
	return isDone
}

// earlierVersion is that of what the versions before kept in a storage.
const earlierVersion = 3

// logEarlierVersion says once that the storage has something of an earlier version.
func (s *site) logEarlierVersion(ctx context.Context) {
	key := "sitemap/latest/" + fileName(s.authority(), digestOf(s.sitemap, s.prefix, earlierVersion)) + "/current"
	_, err := s.shared.Load(ctx, key)
	s.logger.OnceIf(err == nil, zap.InfoLevel, "earlier version",
		"the storage has the site as an earlier version of this module shared it: that is left alone, and can be deleted")
}

// claimLead has this process lead, as an operator wants it to refresh the site.
func (s *site) claimLead(ctx context.Context) error {
	if s.mayRefresh() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, claimPatience)
	defer cancel()
	err := s.node.Claim(ctx)
	if err != nil {
		return fmt.Errorf("claiming the lead among the processes that share the site: %w", err)
	}
	return nil
}

// share publishes something for all processes: what the others cannot load is not served here either. False: this one does not
// lead any more, or the storage fails.
func (s *site) share(ctx context.Context, r *refreshing, next *publication, out *report.Refresh) bool {
	if !s.node.Leads() {
		return false
	}
	r.adopt(&out.Selected)
	isSame := s.isSame(r, out) && !r.records.Unsaved
	if isSame {
		return true
	}
	err := r.records.Write(next.snapshot, next.meta(s.digest()), record.Waits)
	s.logState("commit", err)
	if err != nil {
		_ = s.node.Resign(ctx) // another one may have room on its disk
		return false
	}
	err = s.node.Push(ctx)
	s.logger.OnceIf(s.isOwnTrouble(err), zap.WarnLevel, "push",
		"cannot share the sitemap: the last one is still served", zap.Error(err))
	return err == nil
}

// isOwnTrouble reports whether something failed, other than that the site is stopped, or that another process was first.
func (s *site) isOwnTrouble(err error) bool {
	return err != nil && s.ctx.Err() == nil && !errors.Is(err, replica.ErrFollows)
}

// isSame reports whether a refresh has found out nothing that other processes do not know.
func (s *site) isSame(r *refreshing, out *report.Refresh) bool {
	if out.Selected.IsMade() && !s.handler.settings.crawl.Off {
		return false
	}
	return out.Result == outcome.Unchanged || !out.Changed && out.Outcome == r.served.history.Last
}

// giveUpLead lets another process try what this one could not: perhaps its upstream responds, or it has the pages that are missing.
func (s *site) giveUpLead(out *report.Refresh) {
	hasFailed := out.Result == outcome.Failed
	isHeldBack := out.Result == outcome.HeldBack && out.Reason != reasonLost // this process fetches the pages again
	if s.node == nil || !hasFailed && !isHeldBack {
		return
	}
	// An application that starts with the server takes a few seconds longer.
	isStarting := s.published().snapshot == nil && s.app.now().Sub(s.state.begun) < startsFor
	if !isStarting {
		_ = s.node.Resign(s.ctx)
	}
}

// leaveFleet lets another process lead at once, as this one stops. After a reload it goes on.
func (s *site) leaveFleet() {
	// Of a configuration that failed to start, the one before goes on.
	if s.node == nil || s.app.isSuperseded() || !wait.IsDone(s.app.serving) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leavePatience)
	defer cancel()
	// What the last refresh has found until it was stopped is not lost.
	_ = s.node.Push(ctx)
	_ = s.node.Resign(ctx)
}

const (
	lookUpPatience = 4 * time.Second // of a request for a document that this process does not know yet
	lookUpStep     = 20 * time.Millisecond
)

// errUnread is the error of a request for a document that another process may have published.
var errUnread = errors.New("the shared storage cannot be read, and may have the document")

// lookUp returns the published snapshot. It waits a moment for one with the document, if that is named by a hash or a section:
// another process may have published it. If the storage does not say so meanwhile, the error is errUnread: the document may exist.
func (s *site) lookUp(ctx context.Context, snapshot *document.Set, name string) (*document.Set, error) {
	isOurs := s.node == nil || s.main.Load() != nil || s.node.Leads()
	if isOurs || !strings.HasPrefix(name, "-") {
		return snapshot, nil
	}
	d, _ := snapshot.FindForm(name)
	if d != nil {
		return snapshot, nil
	}
	// However many names strangers make up, an interval has one poll more. Requests within a second share it.
	fleet := &s.state.fleet
	now := time.Now()
	asked := fleet.asked.Load()
	sinceAsked := now.Sub(time.Unix(0, asked))
	if sinceAsked >= s.handler.settings.interval && fleet.asked.CompareAndSwap(asked, now.UnixNano()) {
		s.node.Wake()
	} else if sinceAsked > time.Second {
		return snapshot, errUnread
	}
	ctx, cancel := context.WithTimeout(ctx, lookUpPatience)
	defer cancel()
	for d == nil && fleet.polled.Load() <= now.UnixNano() {
		_, isOver := wait.Within(lookUpStep, ctx.Done())
		if isOver {
			return snapshot, errUnread
		}
		d, _ = s.published().snapshot.FindForm(name)
	}
	return s.published().snapshot, nil
}

// pushedFile is the file of the announcements of a site. What the leader stores there, the others have, too.
type pushedFile struct {
	*record.File
	state *siteState
}

// Save implements [announce.File].
func (f pushedFile) Save(ctx context.Context, encode func() ([]byte, error)) error {
	err := f.File.Save(ctx, encode)
	node := f.state.fleet.node.Load()
	if err != nil || node == nil {
		return err
	}
	return node.Push(ctx)
}

// visitors is what visitors of one process have told it, as it tells the leader.
type visitors struct {
	Visited map[string]int64 `json:"visited,omitempty"` // paths, with the Unix second of the last visit
	Signals map[string]int64 `json:"signals,omitempty"` // paths of pages that may have changed, or are gone
}

// tellLeader tells the leader which pages visitors of this process have requested that only visits name, and which ones they found
// changed: it alone refreshes the site. Other paths, which may hold secrets, are not written.
func (s *site) tellLeader(ctx context.Context) {
	if s.state.fleet.written.Swap(false) && s.node.TellWrite(ctx) != nil {
		s.state.fleet.written.Store(true)
	}
	since := s.app.now().Add(-2 * s.handler.settings.interval).Unix()
	d := s.handler.discovery
	isUnlinked := func(path string, _ int64) bool { return d != nil && d.unlinked.Match(path) }
	isRecent := func(_ string, at int64) bool { return at >= since }
	v := visitors{
		Visited: s.state.visited.Newest(maxVisited, isUnlinked),
		Signals: s.state.fleet.signals.Newest(maxSignaled, isRecent),
	}
	data, _ := json.Marshal(v) // of strings and numbers: there are no errors
	digest := digestOf(string(data))
	if s.state.fleet.told.Swap(digest) == digest {
		return
	}
	if s.node.Tell(ctx, data) != nil {
		s.state.fleet.told.Store(0)
	}
}

// hearFollowers takes what other processes have told.
func (s *site) hearFollowers(ctx context.Context) {
	if s.node == nil || s.handler.discovery == nil || !s.node.Leads() {
		return
	}
	err := s.node.Told(ctx, func(data []byte) {
		var v visitors
		_ = json.Unmarshal(data, &v) // what is damaged tells nothing
		for path, at := range v.Visited {
			s.Note(path, at, false)
		}
		for path, at := range v.Signals {
			s.Note(path, at, true)
		}
	})
	s.logger.OnceIf(err != nil, zap.WarnLevel, "told", "cannot read what visitors of other nodes requested", zap.Error(err))
}

// hearWrites has the site looked at where something may have been saved by way of another process. What was is not told: it may be
// a secret.
func (s *site) hearWrites(ctx context.Context) {
	if s.node.HearsWrite(ctx) {
		s.noteWrite(crawl.Write{}, s.app.now())
	}
}
