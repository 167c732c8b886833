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
	"github.com/seed3295b519/caddy-sitemap/internal/persist"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
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
	records  *persist.Site
	adopting sync.Once // see site.adopt

	watch     *files.Watch // of the site's files
	writes    crawl.Writes
	isChanged atomic.Bool // it has told of a change since the last refresh began to look, or own sitemaps were read since

	announcer *announce.Announcer // has one file whatever the settings are, so that the key of IndexNow stays
	local     store.Storage       // of this process; it has the records and announcements
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
		}
		st.keepRecords(a, i, at)
		return st, nil
	})
	return value.(*siteState)
}

// statePlace is where the state of a site is kept.
type statePlace struct {
	key    string // in the pool
	folder string // of its files; "": nothing is stored
	file   string // their name
	number int    // of sites that have the same name
}

const (
	wwwPrefix     = "www."
	visitedPrefix = "visited-" // of the states of sites that only visitors named
)

// placeOf returns where the state of a site is kept. On the disk of this process, that goes by the site's host without www, so that
// the site is the same one with https, and at its apex; that of a site that only visitors named has a hash for a name. Sites that
// have the same name are told apart by a number, in the order in which they are made.
func (a *App) placeOf(i *identity) statePlace {
	for number := 1; ; number++ {
		at := statePlace{folder: a.folder, file: i.stateName(strings.TrimPrefix(i.authority(), wwwPrefix), number), number: number}
		if i.onDemand {
			at.file = fmt.Sprintf("%s%016x", visitedPrefix, digestOf(i.url(), i.handler.settings.path, number))
		}
		at.key = fmt.Sprint(at.file, " ", at.folder, " ", i.onDemand)
		if !a.keys[at.key] {
			return at
		}
	}
}

// authority returns the host and port of the site's URLs.
func (i *identity) authority() string {
	_, authority, _ := strings.Cut(i.origin, "://")
	return authority
}

// stateName returns the name of what is stored of a site with such a host and port. The port of the listener does not count, as it
// changes when a proxy comes before the server.
func (i *identity) stateName(authority string, number int) string {
	name := strings.TrimSuffix(authority, ":"+i.handler.listener.port) + i.prefix
	if number > 1 {
		name += fmt.Sprint(" ", number)
	}
	return url.QueryEscape(strings.ToLower(name)) // the file system may take letters of both cases for the same
}

// urlName returns a name with a digest of all of a site's URL, at an origin.
func (i *identity) urlName(at string, number int) string {
	_, authority, _ := strings.Cut(at, "://")
	sitemap := at + strings.TrimPrefix(i.sitemap, i.origin)
	return fileName(authority, xxhash.Sum64String(fmt.Sprint(sitemap, " ", i.prefix, " ", number-1)))
}

// fileName returns a name that begins with a host and port.
func fileName(authority string, digest uint64) string {
	host := strings.NewReplacer(":", "_", "[", "", "]", "", "*", "_").Replace(authority)
	return fmt.Sprintf("%s-%016x", host, digest)
}

// maxDiskCalls are those of all sites at a time: a disk that hangs takes a thread for each.
const maxDiskCalls = 32

var diskCalls = wait.NewSlots(maxDiskCalls)

// localStorage returns the storage of this process for a site. Under mu.
func (a *App) localStorage(at statePlace) store.Storage {
	if at.folder == "" {
		return store.NewMemory()
	}
	if a.disk == nil {
		a.disk = &certmagic.FileStorage{Path: a.folder}
	}
	return store.BoundedBy(diskCalls, a.disk)
}

// Where a storage has the records and announcements of a site, by their name.
func recordsOf(name string) string       { return "sites/" + name }
func announcementsOf(name string) string { return "announcements/" + name + ".json" }

// keepRecords keeps what is known of a new state.
func (st *siteState) keepRecords(a *App, i *identity, at statePlace) {
	st.published.Store(&publication{site: i.sitemap})
	st.local = a.localStorage(at)
	if a.shares(i) {
		st.local = writable(a, st.local)
	}
	st.records = persist.NewSite(st.local, recordsOf(at.file))
	st.records.Now = a.now
	file := persist.NewFile(st.local, announcementsOf(at.file))
	st.announcer = announce.New(pushedFile{file, st})
}

// adopt renames what earlier versions have stored of a site, which had names with www, or for each URL, if nothing is under its own
// name. Of several, it is what was written last.
func (s *site) adopt() {
	at := s.state.place
	if at.folder == "" || s.onDemand {
		return
	}
	s.state.adopting.Do(func() {
		former := s.app.formerNames(&s.identity, at.number)
		done := make(chan error, 1)
		go func() { done <- at.adopt(former) }()
		// No request waits for a disk that hangs.
		err, _ := wait.Within(adoptPatience, done)
		if err != nil {
			s.logger.Warn("cannot rename the records of the site's former name: dates are lost", s.app.stateFields(err)...)
		}
	})
}

// formerNames returns the names that earlier versions had for the state of a site. What is another site of the configuration has
// its own.
func (a *App) formerNames(i *identity, number int) []string {
	var names []string
	if isWWW := strings.HasPrefix(i.authority(), wwwPrefix); isWWW {
		names = append(names, i.stateName(i.authority(), 1))
	}
	if number > 1 {
		return append(names, i.urlName(i.origin, 1))
	}
	for _, at := range i.spellings() {
		if at == i.origin || !a.named[at+i.prefix] {
			names = append(names, i.urlName(at, 1))
		}
	}
	return names
}

// spellings returns the origins that the site may have had: by http or https, with the port of the listener or
// without. One without https may be behind a proxy that has it, which makes another site.
func (i *identity) spellings() []string {
	port := ":" + i.handler.listener.port
	bare := strings.TrimSuffix(i.authority(), port)
	all := []string{"http://" + bare, "http://" + bare + port}
	if strings.HasPrefix(i.origin, "https://") {
		all = append(all, "https://"+bare, "https://"+bare+port)
	}
	return all
}

// adopt renames what was written last under one of the former names, unless something is under the present one.
func (at *statePlace) adopt(former []string) error {
	path := func(key string) string { return filepath.Join(at.folder, filepath.FromSlash(key)) }
	_, err := os.Stat(path(recordsOf(at.file)))
	if !errors.Is(err, fs.ErrNotExist) {
		return nil // the records can be read, or opening them tells why not
	}
	last := ""
	var written time.Time
	for _, name := range former {
		manifest, err := os.Stat(path(recordsOf(name) + "/store/manifest.json"))
		if err == nil && manifest.ModTime().After(written) {
			last = name
			written = manifest.ModTime()
		}
	}
	if last == "" {
		return nil
	}
	err = os.Rename(path(announcementsOf(last)), path(announcementsOf(at.file)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(path(recordsOf(last)), path(recordsOf(at.file)))
}

// forget deletes what is stored of a site that only visitors named, and that there is no room for.
func (st *siteState) forget() {
	go func() { _ = st.local.Delete(context.Background(), recordsOf(st.place.file)) }() // else it is pruned at a start
}

// pruneVisited deletes what was stored longest ago of sites that only visitors named, beyond as many as there may be.
func (a *App) pruneVisited() {
	pattern := filepath.Join(a.folder, recordsOf(visitedPrefix+"*"), store.ManifestName)
	manifests, _ := filepath.Glob(pattern) // which is well-formed
	written := func(manifest string) time.Time {
		info, err := os.Stat(manifest)
		if err != nil {
			return time.Time{}
		}
		return info.ModTime()
	}
	slices.SortFunc(manifests, func(x, y string) int { return written(y).Compare(written(x)) })
	for _, manifest := range manifests[min(len(manifests), maxOnDemandSites):] {
		_ = os.RemoveAll(filepath.Dir(filepath.Dir(manifest)))
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
