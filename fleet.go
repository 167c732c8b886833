package sitemap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/fleet"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/persist"
	"github.com/seed3295b519/caddy-sitemap/internal/publish"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

const (
	lookUpPatience = 4 * time.Second // of a request for a document that this node does not know yet
	lookUpStep     = 20 * time.Millisecond
	fleetFormat    = 1               // of stored values: nodes with other formats or settings share nothing
	sharedValue    = "manifest.json" // key of a node's value
)

// shared is the state of a site that several processes, the nodes of a fleet, share in one storage.
type shared struct {
	*fleet.Node                              // of its records and documents
	queue       *fleet.Node                  // of announcements, whatever the settings are
	latest      *persist.File                // prefix of the node with the latest settings
	local       store.Storage                // of the site before it was shared; nil: none
	prefix      string                       // of the records in any store
	storage     atomic.Pointer[fleet.Shared] // of the configuration that started last
	begun       time.Time
	visited     atomic.Int64 // paths that visitors of this node had when it refreshed the site
	isDown      atomic.Bool  // the last poll failed
	retry       atomic.Int64 // when the site is due at the earliest, after a commit that failed, in Unix nanoseconds
}

// newShared returns this process's part in a site. local and prefix are as in shared.
func newShared(a *App, i *identity, host string, local store.Storage, prefix string) *shared {
	sh, unique := &shared{local: local, prefix: prefix, begun: a.now()}, fmt.Sprintf("%s-%016x", host, digestOf(i.sitemapURL(), i.prefix, fleetFormat))
	o := fleet.Options{Storage: func() fleet.Shared { return *sh.storage.Load() }, Now: a.now, Interval: i.handler.settings.refresh}
	o.Value, o.Prefix = true, "sitemap/announce/"+unique
	sh.queue = fleet.New(o)
	o.Prefix = "sitemap/latest/" + unique
	sh.latest = persist.NewFile(fleet.New(o), sharedValue)
	o.Value, o.Prefix = false, fmt.Sprintf("sitemap/%s-%016x", host, i.digest(i.prefix, fleetFormat))
	if a.folder != "" {
		o.Local = &certmagic.FileStorage{Path: filepath.Join(a.folder, "copies", filepath.Base(o.Prefix))}
	}
	sh.Node = fleet.New(o)
	return sh
}

// Inherited implements [persist.Shared]: a site goes on from its records by other settings, or from those before it was
// shared.
func (sh *shared) Inherited(ctx context.Context) *store.Generation {
	storages, o := []store.Storage{sh.local}, sh.Options
	if err := sh.latest.Load(ctx, func(prefix []byte) { o.Local, o.Prefix = nil, string(prefix) }); err == nil {
		storages = []store.Storage{fleet.New(o), sh.local}
	}
	for _, storage := range storages {
		if storage == nil {
			continue
		}
		if s, err := store.Open(ctx, storage, store.Options{Prefix: sh.prefix}); err == nil && s.Last().Len() > 0 {
			return s.Last()
		}
	}
	return nil
}

// configure sets what another configuration may have set otherwise: the storage, and the longest interval.
func (sh *shared) configure(a *App, h *Handler) {
	storage := fleet.Shared(a.ctx.Storage())
	sh.storage.Store(&storage)
	sh.Most.Store(int64(cmp.Or(time.Duration(h.RefreshInterval), 24*time.Hour)))
}

// checkStorage checks the storage setting.
func checkStorage(storage string) error {
	if storage != "" && storage != "local" && storage != "caddy" {
		return fmt.Errorf("storage '%s': use local, or caddy for that of the global option 'storage'; to keep nothing on disk, write 'state off'", storage)
	}
	return nil
}

// pollFleet looks for commits of other nodes until the site is stopped. It schedules when they are loaded, and when this
// node refreshes the site.
func (s *site) pollFleet() {
	healthy := 0 // polls since the last error
	for sh := s.state.shared; sh != nil && sh.Wait(s.ctx); {
		if s.app.isSuperseded() || s.main.Load() != nil {
			continue
		}
		sh.configure(s.app, s.handler) // again, after one that failed to start, whose storage is closed
		err := sh.Poll(s.ctx)
		sh.isDown.Store(err != nil)
		if healthy++; err != nil && s.ctx.Err() == nil {
			healthy = 0
			s.logger.Once(zap.WarnLevel, "storage", "cannot reach the shared storage: the loaded sitemap is served, and refreshes wait", zap.Error(err))
		} else if healthy == 20 {
			s.logger.Clear("storage")
		}
		switch {
		case sh.Newer():
			s.plan(prospects{now: s.app.now(), noticed: true})
		case sh.isAlone() || sh.isWriter():
			continue // the next refresh is planned
		default:
			s.schedule.At(s.fleetDue())
		}
		s.schedule.Notify()
	}
}

// fleetDue returns when this node is to refresh the site. If it has held pages back, others come first. If its visitors
// have requested something new, it comes before others.
func (s *site) fleetDue() time.Time {
	sh, isWriter := s.state.shared, s.state.shared.isWriter()
	paths, _ := s.state.visited.Count()
	if s.published().history.Last.Result == outcome.HeldBack && isWriter {
		return sh.Due(false).Add(s.handler.settings.refresh)
	}
	due, retry := sh.Due(int64(paths) != sh.visited.Load()), time.Unix(0, sh.retry.Load())
	if retry.After(due) {
		return retry
	}
	return due
}

func (sh *shared) isWriter() bool { return sh.Status().Writer == sh.ID }

// join takes the lock if this node is to refresh the site now. release is to be called; nil: the refresh ends with out.
func (s *site) join(ctx context.Context, r *persist.Records, demanded bool) (release func(), out report.Refresh) {
	sh := s.state.shared
	mayRefresh := func() bool {
		// A commit may not be loadable. If nothing is served, this node waits for it only for a while.
		isLacking := sh.Newer() && (s.published().snapshot != nil || s.app.now().Sub(sh.begun) < firstWait)
		return !isLacking && ctx.Err() == nil && (demanded || sh.Newer() || !s.fleetDue().After(s.app.now()))
	}
	out = ended(outcome.Followed)
	if !mayRefresh() {
		return nil, out
	}
	release, err := sh.Acquire(ctx)
	if err == nil || sh.Newer() { // another node has committed meanwhile
		s.restore(ctx, r)
	}
	switch {
	case err == nil:
		if mayRefresh() {
			return release, out
		}
		release()
	case s.published().snapshot == nil && mayRefresh(): // it refreshes as if it were alone
		return func() {}, out
	case !errors.Is(err, fleet.ErrBusy) && ctx.Err() == nil:
		err = fmt.Errorf("locking the site in the shared storage: %w", err)
		if s.logState("commit", err); demanded {
			out = failed(err)
		}
	}
	return nil, out
}

// nextInFleet returns when the node checks again whether to refresh the site. at is when a single node would.
func (s *site) nextInFleet(out *report.Refresh, at time.Time) time.Time {
	due, soonest := s.fleetDue(), s.app.now().Add(retryEmpty)
	switch {
	case s.state.shared.isAlone() || out.Result == outcome.Failed:
		return at
	case out.Result == outcome.Followed && due.Before(soonest): // polls come sooner
		return soonest
	}
	return due
}

// commitShared commits a refresh, or that it has changed nothing. It reports whether the refresh may be published: also if
// nothing was ever committed, as if the node were alone.
func (s *site) commitShared(ctx context.Context, r *refreshing, next *publication, out *report.Refresh) bool {
	sh, now := s.state.shared, s.app.now()
	pause := s.handler.settings.refresh
	if !out.Partial {
		pause = due(s.prospects(out, r.start)).Sub(now)
	}
	sh.Plan(pause)
	isSame := out.Result == outcome.Unchanged && (out.Selected.Generation == nil || s.handler.settings.crawl.Off)
	var err error
	if isSame && !r.records.Unsaved && !sh.isAlone() {
		err = sh.Touch(ctx)
	} else {
		err = r.records.Write(next.snapshot, next.meta(s.digest()))
	}
	if err != nil {
		sh.retry.Store(now.Add(min(pause, max(time.Minute, shareOfTime*out.Cost))).UnixNano())
	}
	if s.logState("commit", err); err != nil || sh.isAlone() { // without an error, there was no open store to write to
		return sh.isAlone()
	}
	paths, _ := s.state.visited.Count()
	sh.visited.Store(int64(paths))
	prefix := func() ([]byte, error) { return []byte(sh.Prefix), nil }
	if errors.Is(sh.latest.Save(ctx, prefix), fleet.ErrLost) { // there is another one, or it was not loaded yet
		_ = sh.latest.Load(ctx, func([]byte) {})
		_ = sh.latest.Save(ctx, prefix) // else the next commit does
	}
	return true
}

// isAlone reports whether nothing was ever committed.
func (sh *shared) isAlone() bool { return sh.Status().Generation == 0 && !sh.Newer() }

// lookUp returns the published snapshot. It waits a moment for one with the document, if that is named by a hash: another
// node may have committed it.
func (s *site) lookUp(ctx context.Context, snapshot *publish.Snapshot, suffix string) *publish.Snapshot {
	if s.state.shared == nil || s.main.Load() != nil || !strings.HasPrefix(suffix, "-") {
		return snapshot
	}
	ctx, cancel := context.WithTimeout(ctx, lookUpPatience)
	defer cancel()
	for ; snapshot.Find(suffix) == nil && ctx.Err() == nil; snapshot = s.published().snapshot {
		s.state.shared.Wake()
		wait.Within(lookUpStep, ctx.Done())
	}
	return snapshot
}

// pollQueue loads the announcements that another node has stored.
func (s *site) pollQueue(ctx context.Context) {
	if sh := s.state.shared; sh != nil && s.announces() {
		_ = sh.queue.Poll(ctx) // its errors are those of polls of the records
		s.announcements(ctx, false)
	}
}
