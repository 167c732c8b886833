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
	"github.com/seed3295b519/caddy-sitemap/internal/persist"
	"github.com/seed3295b519/caddy-sitemap/internal/publish"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
	"github.com/seed3295b519/caddy-sitemap/internal/visits"
)

// states has the siteState of each site by key: after a reload, sites go on from what the
// configuration before has published and learned.
var states = caddy.NewUsagePool()

// departed adds up the counts of dropped sites: counters never go down.
var departed visits.Readers

// siteState is what of a site outlives a configuration: its published snapshot, and its
// records. It is data alone: no server, logger or module.
type siteState struct {
	published atomic.Pointer[publication] // what is served; readers take no lock. Never nil
	progress  accesslog.Progress          // in access logs
	visited   visits.Visited              // paths that visitors have requested
	readers   visits.Readers              // who requested the documents
	signals   atomic.Int64                // of visitors, for listed pages; counted where processes share the site
	signalAt  atomic.Int64                // when one was last looked at, to count it, in Unix seconds
	refetch   atomic.Pointer[refetch]     // which pages an operator wants fetched again; nil: none
	visits    atomic.Int64                // requests for a site on demand: see App.keepHosts
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

// acquireState returns the state of a site from the pool, or a new one. Sites of several handlers
// with the same URLs are told apart by a number. Under the App's mu.
func acquireState(a *App, i *identity) *siteState {
	shares := a.sharing.isOn() && !i.onDemand && a.building == nil
	folder := a.folder
	if i.onDemand { // nothing is stored of sites that only visitors named
		folder = ""
	}
	key := ""
	name := ""
	for number := 0; key == "" || a.keys[key]; number++ {
		name = fmt.Sprint(i.sitemapURL(), " ", i.prefix, " ", number)
		if key = fmt.Sprint(name, " ", folder, " ", i.onDemand); shares {
			key += fmt.Sprint(" ", i.digest(), a.sharing.key()) // nodes with other settings or storages share nothing
		}
	}
	host := strings.NewReplacer(":", "_", "[", "", "]", "", "*", "_").Replace(strings.SplitN(i.origin, "://", 2)[1])
	group := fmt.Sprintf("%s-%016x", host, i.digest(i.prefix, fleet.Format))
	var before sharedBefore
	if shares {
		before = findShared(name, group, a.sharing.key())
	}
	formers := a.formers
	if formers == nil && !shares && !i.onDemand {
		formers = formerStates()
	}
	value, _, _ := states.LoadOrNew(key, func() (caddy.Destructor, error) {
		var storage store.Storage
		if folder != "" {
			storage = &certmagic.FileStorage{Path: folder}
		}
		unique := fmt.Sprintf("%s-%016x", host, xxhash.Sum64String(name))
		prefix := "sites/" + unique
		st := &siteState{key: key, id: i.id.address, listener: i.handler.listener, path: i.handler.settings.path, onDemand: i.onDemand, prefix: prefix, names: i.names()}
		st.published.Store(&publication{snapshot: before.published, names: before.published, sections: before.sections})
		if !shares {
			if !i.onDemand {
				st.formers.Store(formers)
			}
			st.records = persist.NewSite(storage, prefix)
			st.records.Now = a.now
			st.queued = persist.NewFile(storage, "announcements/"+unique+".json")
			return st, nil
		}
		o := fleet.MemberOptions{
			Site:     fmt.Sprintf("%s-%016x", host, digestOf(i.sitemapURL(), i.prefix, fleet.Format)),
			Group:    group,
			Host:     hostname(),
			Interval: i.handler.settings.interval,
			Copies:   before.copies,
			Before:   storage,
			Prefix:   prefix,
			Now:      a.now,
		}
		if folder != "" {
			o.Copies = &certmagic.FileStorage{Path: filepath.Join(folder, "copies", group)}
		}
		st.fleet = fleet.NewMember(o)
		st.records = persist.NewSite(st.fleet, prefix)
		st.records.Now = a.now
		st.queued = st.fleet.QueueFile()
		st.queue.Store(before.queue)
		st.shared = a.sharing.key()
		return st, nil
	})
	return value.(*siteState)
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
	departed.Add(&st.readers)
	st.formers.Store(nil) // what a site holds that is held itself adds up
	st.records.Close()
	return nil
}

// logState says once what is wrong with keeping records, of each kind until that was done.
func (s *site) logState(kind string, err error) {
	member := s.state.fleet
	if member == nil {
		s.logger.While(err != nil, zap.WarnLevel, kind, "cannot store the records: pages are fetched again after a restart", s.app.stateFields(err)...)
		return
	}
	if err != nil && member.IsDown() { // which polls log until it is over
		return
	}
	isOwn := err != nil && !errors.Is(err, fleet.ErrLost)
	s.logger.While(isOwn, zap.WarnLevel, kind, "cannot load or commit the shared sitemap: the last one is still served", zap.Error(withoutFile(err)))
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
	if link, ok := errors.AsType[*os.LinkError](err); ok { // of renaming a temporary file
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
		return "mount it for writing, add the folder to ReadWritePaths of the systemd unit, or name another one in the global option 'state'"
	case errors.Is(err, syscall.ENOTDIR):
		return "name a folder that can be written in the global option 'state'"
	}
	return "check the disk, or name another folder in the global option 'state'"
}

// stateFolder returns the folder that the state setting names; "": records are kept in memory. With
// a nil replacer, as for a Caddyfile, it only checks the setting.
func stateFolder(state string, repl *caddy.Replacer) (folder string, err error) {
	if state != "" && state != "off" && !strings.ContainsAny(state, `/\{`) { // which would lie in the working directory
		return "", fmt.Errorf("state '%s': use a folder such as /var/lib/caddy/sitemap, or off", state)
	}
	if repl == nil {
		return "", nil
	}
	folder, err = repl.ReplaceOrErr(state, true, true)
	if err != nil {
		return "", fmt.Errorf("state: %w", err)
	}
	if folder == "off" {
		return "", nil
	}
	if folder == "" {
		data := caddy.AppDataDir()
		if !filepath.IsAbs(data) {
			return "", nil // it would lie in the working directory
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
