package sitemap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"
	"github.com/cespare/xxhash/v2"
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/announce"
	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/files"
	"github.com/seed3295b519/caddy-sitemap/internal/logonce"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
	"github.com/seed3295b519/caddy-sitemap/internal/visits"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

const adoptPatience = time.Second // with the disk

// states has the siteState of each site by key: after a reload, sites go on from what the
// configuration before has published and learned.
var states = caddy.NewUsagePool()

// siteState is what of a site outlives a configuration: its published snapshot, and its
// records. It is data alone: no server, logger or module.
type siteState struct {
	published atomic.Pointer[publication] // what is served; readers take no lock. Never nil
	visited   visits.Visited              // paths that visitors have requested
	refetch   atomic.Pointer[refetch]     // which pages an operator wants fetched again; nil: none
	said      *logonce.Logger             // remembers what was logged of the site: a reload is no reason to say it again
	missing   sync.Map                    // since when a source's files do not exist, by the source's number

	place    statePlace
	id       address
	listener address // of its handler
	path     string  // of the sitemap, as the handler's settings have it
	onDemand bool
	listed   atomic.Int64                  // when a site on demand first had pages, in Unix nanoseconds; 0: never
	isKnown  atomic.Bool                   // it was requested again since: see site.rank
	own      atomic.Pointer[ownList]       // what its own sitemaps say; nil: that is not known
	limiter  atomic.Pointer[crawl.Limiter] // of the handler, in the configuration that started last
	records  *record.Store
	adopting sync.Once // see site.adopt

	watch     *files.Watch // of the site's files
	writes    crawl.Writes
	isChanged atomic.Bool // it has told of a change since the last refresh began to look, or own sitemaps were read since

	announcer *announce.Announcer // has one file whatever the settings are, so that the key of IndexNow stays
	local     record.Storage      // of this process; it has the records and announcements
	begun     time.Time           // when the state was made
	fleet     fleetState
}

// acquireState returns the state of a site from the pool, or a new one. Under the App's mu.
func acquireState(a *App, i *identity) *siteState {
	at := a.placeOf(i)
	value, _, _ := states.LoadOrNew(at.key, func() (caddy.Destructor, error) {
		st := &siteState{
			place:    at,
			id:       i.id.address,
			listener: i.handler.listener,
			path:     i.handler.settings.path,
			onDemand: i.onDemand,
			said:     logonce.New(zap.NewNop()),
			watch:    files.NewWatch(),
			begun:    a.now(),
			local:    a.localStorage(),
		}
		if a.shares(i) {
			st.local = writable(a, st.local)
		}
		st.published.Store(&publication{site: i.sitemap})
		st.records = record.New(st.local, recordsOf(at.file))
		file := record.NewFile(st.local, announcementsOf(at.file))
		st.announcer = announce.New(pushedFile{file, st})
		return st, nil
	})
	return value.(*siteState)
}

// statePlace is where the state of a site is kept.
type statePlace struct {
	key    string // in the pool
	file   string // the name of what is stored
	number int    // of sites that would have the same name
}

const (
	wwwPrefix     = "www."
	visitedPrefix = "visited-" // of the states of sites that only visitors named
)

// placeOf returns where the state of a site is kept. Sites that would have the same name are told apart by a number, in the order in
// which they are made.
func (a *App) placeOf(i *identity) statePlace {
	for number := 1; ; number++ {
		at := statePlace{file: i.stateName(number), number: number}
		at.key = at.file + " " + a.folder
		if !a.keys[at.key] {
			return at
		}
	}
}

// stateName returns the name of what is stored of a site: its host without www, so that the site is the same one with https, and at
// its apex. The port of the listener does not count, as it changes when a proxy comes before the server. A site that only visitors
// named has a hash for a name.
func (i *identity) stateName(number int) string {
	if i.onDemand {
		return fmt.Sprintf("%s%016x", visitedPrefix, digestOf(i.url(), i.handler.settings.path, number))
	}
	name := strings.TrimPrefix(i.authority(), wwwPrefix)
	name = strings.TrimSuffix(name, ":"+i.handler.listener.port) + i.prefix
	if number > 1 {
		name += fmt.Sprint(" ", number)
	}
	return url.QueryEscape(strings.ToLower(name)) // the file system may take letters of both cases for the same
}

// authority returns the host and port of the site's URLs.
func (i *identity) authority() string {
	_, authority, _ := strings.Cut(i.origin, "://")
	return authority
}

// fileName returns a name that begins with a host and port.
func fileName(authority string, digest uint64) string {
	host := strings.NewReplacer(":", "_", "[", "", "]", "", "*", "_").Replace(authority)
	return fmt.Sprintf("%s-%016x", host, digest)
}

// diskCalls are for the calls of all sites: a disk that hangs takes a thread for each.
var diskCalls = wait.NewSlots(32)

// localStorage returns the storage of this process for a site. Under mu.
func (a *App) localStorage() record.Storage {
	if a.folder == "" {
		return record.NewMemory()
	}
	if a.disk == nil {
		a.disk = &certmagic.FileStorage{Path: a.folder}
	}
	return record.BoundedBy(diskCalls, a.disk)
}

// Where a storage has the records and announcements of a site, by their name.
func recordsOf(name string) string       { return "sites/" + name }
func announcementsOf(name string) string { return "announcements/" + name + ".json" }

// adopt renames what commit 109c614 and those before have stored of a site, by a name for its URL, if nothing has the present name.
func (s *site) adopt() {
	if s.app.folder == "" || s.onDemand {
		return
	}
	s.state.adopting.Do(func() {
		done := make(chan error, 1)
		go func() { done <- s.renameFiles() }()
		// No request waits for a disk that hangs.
		err, _ := wait.Within(adoptPatience, done)
		if err != nil {
			s.logger.Warn("cannot rename the records of the site's former name: dates are lost", s.app.stateFields(err)...)
		}
	})
}

// formerName returns the name that 109c614 had for what is stored of a site.
func (i *identity) formerName() string {
	return fileName(i.authority(), xxhash.Sum64String(fmt.Sprint(i.sitemap, " ", i.prefix, " 0")))
}

// renameFiles renames the files of the former name, the records last: by these it is known whether that is done.
func (s *site) renameFiles() error {
	path := func(key string) string { return filepath.Join(s.app.folder, filepath.FromSlash(key)) }
	_, err := os.Stat(path(recordsOf(s.state.place.file)))
	if !errors.Is(err, fs.ErrNotExist) {
		return nil // the records can be read, or opening them tells why not
	}
	for _, keyOf := range []func(string) string{announcementsOf, recordsOf} {
		err = os.Rename(path(keyOf(s.formerName())), path(keyOf(s.state.place.file)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// forget deletes what is stored of a site that only visitors named, and that there is no room for.
func (st *siteState) forget() {
	go func() { _ = st.local.Delete(context.Background(), recordsOf(st.place.file)) }() // else it is pruned at a start
}

// pruneVisited deletes what was stored longest ago of sites that only visitors named, beyond as many as there may be.
func (a *App) pruneVisited() {
	folder := filepath.Join(a.folder, recordsOf(""))
	found, _ := os.ReadDir(folder)
	isNamed := func(e os.DirEntry) bool { return !strings.HasPrefix(e.Name(), visitedPrefix) }
	found = slices.DeleteFunc(found, isNamed)
	written := func(e os.DirEntry) time.Time {
		info, err := os.Stat(filepath.Join(folder, e.Name(), record.ManifestName))
		if err != nil {
			return time.Time{}
		}
		return info.ModTime()
	}
	slices.SortFunc(found, func(x, y os.DirEntry) int { return written(y).Compare(written(x)) })
	for _, e := range found[min(len(found), maxOnDemandSites):] {
		_ = os.RemoveAll(filepath.Join(folder, e.Name()))
	}
}

// Destruct implements [caddy.Destructor]: no configuration has the site any more.
func (st *siteState) Destruct() error {
	st.watch.Close()
	st.records.Close()
	return nil
}

// logState says once what is wrong with keeping records, of each kind until that was done.
func (s *site) logState(kind string, err error) {
	s.logger.OnceIf(err != nil, zap.WarnLevel, kind,
		"cannot store the records: pages are fetched again after a restart", s.app.stateFields(err)...)
}

// stateFields are what a warning says of a state folder that cannot be read or written.
func (a *App) stateFields(err error) []zap.Field {
	return []zap.Field{
		zap.String("folder", a.folder),
		zap.Error(err),
		zap.Int("uid", os.Getuid()),
		zap.String("remedy", stateRemedy(err)),
	}
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
	}
	return "name a folder that can be written in the global option 'state', or check the disk"
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
	name, _ := os.Hostname()
	return name
}
