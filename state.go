package sitemap

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"
	"github.com/cespare/xxhash/v2"
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/accesslog"
	"github.com/seed3295b519/caddy-sitemap/internal/announce"
	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/fleet"
	"github.com/seed3295b519/caddy-sitemap/internal/logonce"
	"github.com/seed3295b519/caddy-sitemap/internal/persist"
	"github.com/seed3295b519/caddy-sitemap/internal/publish"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
	"github.com/seed3295b519/caddy-sitemap/internal/visits"
)

// states has the siteState of each site by key: after a reload, sites go on from what the
// configuration before has published and learned.
var states = caddy.NewUsagePool()

// siteState is what of a site outlives a configuration: its published snapshot, and its
// records. It is data alone: no server, logger or module.
type siteState struct {
	published atomic.Pointer[publication] // what is served; readers take no lock. Never nil
	progress  accesslog.Progress          // in access logs
	visited   visits.Visited              // paths that visitors have requested
	signals   atomic.Int64                // of visitors, for listed pages; counted where processes share the site
	signalAt  atomic.Int64                // when one was last looked at, to count it, in Unix seconds
	refetch   atomic.Pointer[refetch]     // which pages an operator wants fetched again; nil: none
	said      *logonce.Logger             // remembers what was logged of the site: a reload is no reason to say it again
	missing   sync.Map                    // since when a source's files do not exist, by the source's number

	key      string
	id       address
	listener address // of its handler
	path     string  // of the sitemap, as the handler's settings have it
	onDemand bool
	listed   atomic.Int64                  // when a site on demand first had pages, in Unix nanoseconds; 0: never
	isKnown  atomic.Bool                   // it was requested again since: see site.rank
	ownless  atomic.Bool                   // its own sitemaps named no page so far: see site.hasNoOwn
	limiter  atomic.Pointer[crawl.Limiter] // of the handler, in the configuration that started last
	records  *persist.Site
	prefix   string // of its records
	names    names
	formers  atomic.Pointer[[]*siteState] // that this one may have been, when it was made; nil: it has records, or looks for none

	watchers atomic.Pointer[[]watcher] // of the configuration that started last

	queue  atomic.Pointer[announce.Queue] // of what is announced; nil: nothing is, or it is not loaded
	queued *persist.File                  // queue as stored: one file whatever the settings are, so that the key of IndexNow stays
	fleet  *fleet.Member                  // of the processes that share the site; nil: it is this one's alone
	shared string                         // in which storage: see storageSetting.key
}

// acquireState returns the state of a site from the pool, or a new one. Under the App's mu.
func acquireState(a *App, i *identity) *siteState {
	isShared := a.sharing.isOn() && !i.onDemand && a.building == nil
	at := a.placeOf(i, isShared)

	// What other states have is looked up before: the pool is locked while it makes one.
	var keepRecords func(st *siteState)
	if isShared {
		group := fmt.Sprintf("%s-%016x", at.host, i.digest(i.prefix, fleet.Format))
		before := findShared(at.name, group, a.sharing.key())
		keepRecords = func(st *siteState) { st.share(a, i, at, group, before) }
	} else {
		formers := a.formers
		if formers == nil && !i.onDemand {
			formers = formerStates()
		}
		keepRecords = func(st *siteState) { st.keepAlone(a, at, formers) }
	}
	value, _, _ := states.LoadOrNew(at.key, func() (caddy.Destructor, error) {
		st := &siteState{
			key:      at.key,
			id:       i.id.address,
			listener: i.handler.listener,
			path:     i.handler.settings.path,
			onDemand: i.onDemand,
			prefix:   at.prefix(),
			names:    i.names(),
			said:     logonce.New(zap.NewNop()),
		}
		keepRecords(st)
		return st, nil
	})
	return value.(*siteState)
}

// statePlace is where the state of a site is kept.
type statePlace struct {
	name   string // the same whatever the site's settings are
	key    string // in the pool
	folder string // of its files; "": nothing is stored
	host   string // as names of files have it
}

// placeOf returns where the state of a site is kept. Sites of several handlers with the same URLs are told apart by a number.
func (a *App) placeOf(i *identity, isShared bool) (at statePlace) {
	_, authority, _ := strings.Cut(i.origin, "://")
	at.host = strings.NewReplacer(":", "_", "[", "", "]", "", "*", "_").Replace(authority)
	// Nothing is on disk of sites that only visitors named.
	if !i.onDemand {
		at.folder = a.folder
	}
	// Nodes with other settings, or in other storages, share nothing.
	settings := ""
	if isShared {
		settings = fmt.Sprint(" ", i.digest(), a.sharing.key())
	}
	for number := 0; at.key == "" || a.keys[at.key]; number++ {
		at.name = fmt.Sprint(i.sitemapURL(), " ", i.prefix, " ", number)
		at.key = fmt.Sprint(at.name, " ", at.folder, " ", i.onDemand) + settings
	}
	return at
}

// storage returns the storage of this process; nil: there is none.
func (at *statePlace) storage() store.Storage {
	if at.folder == "" {
		return nil
	}
	return &certmagic.FileStorage{Path: at.folder}
}

// fileName returns the name of the site in its storage.
func (at *statePlace) fileName() string {
	return fmt.Sprintf("%s-%016x", at.host, xxhash.Sum64String(at.name))
}

// prefix returns that of the site's records.
func (at *statePlace) prefix() string { return "sites/" + at.fileName() }

// keepAlone keeps the records of a new state for this process alone. formers are what the site may have been before; nil:
// they are not looked for.
func (st *siteState) keepAlone(a *App, at statePlace, formers *[]*siteState) {
	st.published.Store(new(publication))
	if !st.onDemand {
		st.formers.Store(formers)
	}
	st.records = persist.NewSite(at.storage(), st.prefix)
	st.records.Now = a.now
	st.queued = persist.NewFile(at.storage(), "announcements/"+at.fileName()+".json")
}

// share keeps the records of a new state in the storage that processes share, in a group of those with the same settings.
func (st *siteState) share(a *App, i *identity, at statePlace, group string, before sharedBefore) {
	st.published.Store(&publication{snapshot: before.published, lastSnapshot: before.published, sections: before.sections})
	o := fleet.MemberOptions{
		Site:     fmt.Sprintf("%s-%016x", at.host, digestOf(i.sitemapURL(), i.prefix, fleet.Format)),
		Group:    group,
		Host:     hostname(),
		Interval: i.handler.settings.interval,
		Copies:   before.copies,
		Before:   at.storage(),
		Now:      a.now,

		RecordsPrefix: st.prefix,
	}
	if at.folder != "" {
		o.Copies = &certmagic.FileStorage{Path: filepath.Join(at.folder, "copies", group)}
	}
	st.fleet = fleet.NewMember(o)
	st.records = persist.NewSite(st.fleet, st.prefix)
	st.records.Now = a.now
	st.queued = st.fleet.QueueFile()
	st.queue.Store(before.queue)
	st.shared = a.sharing.key()
}

// sharedBefore is what the configuration before has of a site that it shared by other settings, or in another storage.
type sharedBefore struct {
	published *publish.Snapshot // by other settings: it is served until the first refresh
	sections  sections          // of these settings
	copies    store.Storage     // of what it has shared, in memory; nil: there are none
	queue     *announce.Queue   // of what was announced with another storage; nil: there was none
}

// findShared finds what the configuration before has of a site by its name, which is to share it as a group in a storage.
func findShared(name, group, storage string) (before sharedBefore) {
	states.Range(func(_, value any) bool {
		st := value.(*siteState)
		if !strings.HasPrefix(st.key, name+" ") {
			return true
		}
		if served := st.published.Load(); served.snapshot != nil {
			before.published = served.snapshot
			before.sections = served.sections
		}
		if st.fleet != nil && st.fleet.Prefix == fleet.Prefix(group) {
			before.copies = st.fleet.Local
		}
		if st.fleet != nil && st.shared != storage {
			before.queue = st.queue.Load()
		}
		return true
	})
	return before
}

// formerStates returns those that a new site may have been under another name, of which the configuration before drops some
// soon.
func formerStates() *[]*siteState {
	var formers []*siteState
	states.Range(func(_, value any) bool {
		st := value.(*siteState)
		if !st.onDemand && st.fleet == nil {
			formers = append(formers, st)
		}
		return true
	})
	return &formers
}

// Destruct implements [caddy.Destructor]: no configuration has the site any more.
func (st *siteState) Destruct() error {
	st.formers.Store(nil) // what a site holds that is held itself adds up
	st.records.Close()
	return nil
}

// logState says once what is wrong with keeping records, of each kind until that was done.
func (s *site) logState(kind string, err error) {
	member := s.state.fleet
	if member == nil {
		s.logger.While(err != nil, zap.WarnLevel, kind,
			"cannot store the records: pages are fetched again after a restart", s.app.stateFields(err)...)
		return
	}
	// Polls log that the storage is down, until it is over.
	if err != nil && member.IsDown() {
		return
	}
	// That another process has the lock, or was first, is no trouble. On a full or read-only storage, polls succeed, and only
	// commits tell.
	isOwn := err != nil && !errors.Is(err, fleet.ErrLost)
	message := "cannot load or commit the shared sitemap: the last one is still served"
	if s.waitsForFleet() {
		message = "cannot load the shared sitemap: no sitemap is served until it is loaded, or fleet_patience is over"
	}
	s.logger.While(isOwn, zap.WarnLevel, kind, message, zap.Error(withoutFile(err)))
}

// stateFields are what a warning says of a state folder that cannot be read or written.
func (a *App) stateFields(err error) []zap.Field {
	return []zap.Field{
		zap.String("folder", a.folder),
		zap.Error(withoutFile(err)),
		zap.Int("uid", os.Getuid()),
		zap.String("remedy", stateRemedy(err)),
	}
}

// withoutFile names the folder in the place of the file that an error names: the name of a temporary file is never the
// same twice, so that the same condition would be logged again and again. The folder that cannot be made is named itself.
func withoutFile(err error) error {
	// A temporary file could not be renamed.
	if link, ok := errors.AsType[*os.LinkError](err); ok {
		return &fs.PathError{Op: link.Op, Path: filepath.Dir(link.New), Err: link.Err}
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok && path.Op != "mkdir" {
		return &fs.PathError{Op: path.Op, Path: filepath.Dir(path.Path), Err: path.Err}
	}
	return err
}

// stateRemedy says what to do about a state folder that cannot be read or written.
func stateRemedy(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "let the user that runs Caddy read and write the folder, or name another one in the global option 'state'"
	case errors.Is(err, syscall.ENOSPC):
		return "free space on the disk"
	case errors.Is(err, syscall.EROFS):
		return "mount it for writing, add the folder to ReadWritePaths of the systemd unit, " +
			"or name another one in the global option 'state'"
	case errors.Is(err, syscall.ENOTDIR):
		return "name a folder that can be written in the global option 'state'"
	}
	return "check the disk, or name another folder in the global option 'state'"
}

// checkState checks the state setting. A bare word would name a folder in the working directory.
func checkState(state string) error {
	isWord := state != "" && !strings.ContainsAny(state, `/\{`)
	if isWord && state != "off" {
		return fmt.Errorf("state '%s': use a folder such as /var/lib/caddy/sitemap, or off", state)
	}
	return nil
}

// stateFolder returns the folder that the state setting names, with its placeholders replaced; "": records are kept in memory.
func stateFolder(state string) (folder string, err error) {
	if err := checkState(state); err != nil {
		return "", err
	}
	folder, err = caddy.NewReplacer().ReplaceOrErr(state, true, true)
	if err != nil {
		return "", fmt.Errorf("state: %w", err)
	}
	if folder == "off" {
		return "", nil
	}
	if folder == "" {
		// Without a home, Caddy's folder lies in the working directory.
		data := caddy.AppDataDir()
		if !filepath.IsAbs(data) {
			return "", nil
		}
		folder = filepath.Join(data, "sitemap")
	}
	return caddy.FastAbs(folder)
}

// checkPatience checks the fleet_patience setting.
func checkPatience(d caddy.Duration) error {
	if d != 0 && time.Duration(d) < time.Second {
		return fmt.Errorf("fleet_patience %s is too short: the shortest is 1s", time.Duration(d))
	}
	return nil
}

// hostname returns the name of this machine for operators; "": it has none.
func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}
