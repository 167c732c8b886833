package sitemap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"
	"github.com/cespare/xxhash/v2"
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/accesslog"
	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/publish"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// states holds what outlives a configuration of each site, by key: a reload begins with
// what the configuration before it has published and learnt.
var states = caddy.NewUsagePool()

// counters holds what sites have counted that there are no longer: as long as there is a
// configuration with a sitemap, counters never go down.
var counters = caddy.NewUsagePool()

const departedKey = "departed"

// folders are the storages there have been, by folder: so it is known whether a reload brings
// another one, and reads that hang count in all configurations.
var folders sync.Map

// configurations counts the configurations with a sitemap so far.
var configurations atomic.Uint64

// siteState is what outlives a configuration of a site: its published snapshot, and its
// records. It is data alone: no server, logger or module.
type siteState struct {
	Index      Index
	generation atomic.Pointer[store.Generation] // that the snapshot was selected from
	progress   accesslog.Progress               // in access logs
	visited    visited                          // paths that visitors have had
	readers    accesslog.Readers
	departed   *accesslog.Readers // where its counts go with the site

	key      string
	id       address
	listener listener // of its handler
	path     string   // of the sitemap, as the handler's settings have it
	onDemand bool
	report   atomic.Pointer[report]        // of the last refresh; nil: none since the start
	alias    atomic.Pointer[string]        // the site whose documents stand for this one's, by key
	rested   atomic.Pointer[rest]          // nil: there is work left
	bytes    atomic.Int64                  // of memory, if the site is on demand
	limiter  atomic.Pointer[crawl.Limiter] // of the handler, in the configuration that started last
	holder   atomic.Uint64                 // number of the configuration that refreshes the site

	mu      sync.Mutex
	idle    chan *records // holds the records while no refresh has them
	current *records      // whoever has them
}

// rest says that a refresh left nothing to do before the next one is due.
type rest struct {
	begun  time.Time // the refresh
	cost   time.Duration
	digest uint64 // of the settings and routes that it was made with
}

// records are a site's records, and what is known of what is published of them. A refresh
// has them for itself.
type records struct {
	storage    store.Storage
	prefix     string
	store      *store.Store         // nil: not opened yet
	generation *store.Generation    // the newest one, which may not be written yet; nil: none
	settings   uint64               // that the published snapshot was made with
	last       *publish.Snapshot    // the last one that was not empty, whose names are known still
	hanging    bool                 // the last crawl fetched nothing but pages that hang
	batch      int64                // of the last crawl
	pending    pendingChange        // what a refresh wants confirmed
	failing    map[string]time.Time // sources that cannot be read, by number and name, and since when
	retryOpen  time.Time
	committing chan error     // by a commit that takes long; nil: none does
	unsaved    bool           // the last commit failed, or was left out
	crawler    *crawl.Crawler // of the site below, in its configuration
	crawls     *site
}

const (
	leasePatience = 3 * time.Second // with a refresh of the configuration before, or one that was abandoned
	openPatience  = time.Second
	readPatience  = 5 * time.Minute // with what is kept, once no request waits for it

	commitPatience = 10 * time.Minute // what is not committed is written all over again
	commitWait     = time.Second      // with a commit, before refreshes go on beside it
	retryOpening   = 10 * time.Second
)

// acquireState takes hold of a site's state, or makes it. Sites of other handlers that have
// the same URLs are told apart by their number. Under mu.
func acquireState(a *App, i *identity) *siteState {
	inUse := func(key string) bool {
		for _, s := range a.sites {
			if s.state.key == key {
				return true
			}
		}
		return false
	}
	key := ""
	for number := 0; key == "" || inUse(key); number++ {
		key = fmt.Sprint(i.sitemapURL(), " ", i.prefix, " ", number)
		if i.onDemand {
			key += " on demand" // it is kept elsewhere
		}
	}
	value, _, _ := states.LoadOrNew(key, func() (caddy.Destructor, error) {
		st := &siteState{key: key, id: i.id.address, listener: i.handler.listener, path: i.handler.settings.path, onDemand: i.onDemand, departed: a.departed, idle: make(chan *records, 1)}
		st.reset(storageOf(a.storage, i, key))
		return st, nil
	})
	return value.(*siteState)
}

// Destruct lets a siteState be a value of a [caddy.UsagePool].
func (st *siteState) Destruct() error {
	if st.departed != nil {
		st.departed.Add(&st.readers)
	}
	return nil
}

// hold makes a configuration the one that refreshes the site, unless a later one does: Caddy
// stops a configuration some time after it has started the next. It returns the one before.
func (st *siteState) hold(number uint64) (before uint64) {
	for {
		if before = st.holder.Load(); before >= number || st.holder.CompareAndSwap(before, number) {
			return before
		}
	}
}

func (st *siteState) reset(storage store.Storage, prefix string) {
	r := &records{storage: storage, prefix: prefix, failing: make(map[string]time.Time)}
	st.current = r
	st.idle <- r
}

// acquire waits until nobody else has the records. A refresh that does not give them back
// loses its right to write them. The error is ctx's.
func (st *siteState) acquire(ctx context.Context) (*records, error) {
	timer := time.NewTimer(leasePatience)
	defer timer.Stop()
	select {
	case r := <-st.idle:
		return r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	select {
	case r := <-st.idle:
		return r, nil
	default:
	}
	if st.current.store != nil {
		st.current.store.Revoke()
	}
	st.reset(st.current.storage, st.current.prefix)
	return <-st.idle, nil
}

// release gives the records back, unless they were given to somebody else.
func (st *siteState) release(r *records) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.current == r {
		st.idle <- r
	}
}

// meta is what is kept of a snapshot besides its documents.
type meta struct {
	Batch     int64            `json:"batch,omitempty"` // of the last crawl
	Settings  uint64           `json:"settings"`        // digest of what the operator wrote
	Selected  uint64           `json:"selected"`        // digest of that and what the probe found
	Snapshot  json.RawMessage  `json:"snapshot,omitempty"`
	Report    *report          `json:"report,omitempty"`
	Positions accesslog.Stored `json:"positions,omitempty"` // in access logs, by source
	Aliases   []string         `json:"aliases,omitempty"`   // URLs of sites that these documents stand for
}

// open opens the store and returns the snapshot that it holds; nil: none. Where the
// storage fails, the site goes on in memory, and nothing is written until a later refresh
// has opened it.
func (r *records) open(ctx context.Context, now time.Time, damaged func(string, error)) (*publish.Snapshot, *meta, error) {
	if r.store != nil || now.Before(r.retryOpen) {
		return nil, nil, nil
	}
	opening, cancel := context.WithTimeout(ctx, openPatience)
	defer cancel()
	opened, err := store.Open(opening, r.storage, store.Options{Prefix: r.prefix, Damaged: damaged})
	if err != nil {
		r.retryOpen = now.Add(retryOpening)
		return nil, nil, fmt.Errorf("opening %s: %w", r.prefix, err)
	}
	last, reading := opened.Last(), opening
	if r.generation != nil { // the site has begun in memory
		reading, cancel = context.WithTimeout(ctx, readPatience)
		defer cancel()
	}
	if r.generation != nil && r.generation.Len() > 0 {
		if last, err = store.Fill(reading, r.generation, last); err != nil {
			r.retryOpen = now.Add(retryOpening)
			return nil, nil, err
		}
	}
	memory := r.generation
	r.store, r.generation = opened, last
	snapshot, m, err := r.restore(reading)
	if errors.Is(err, errUnread) { // nor could the rest be: better nothing than half of it
		r.store, r.generation, r.retryOpen = nil, memory, now.Add(retryOpening)
	}
	return snapshot, m, err
}

// keepIn has records kept in another storage, where a reload has brought one; nil: in memory.
// What is known moves there.
func (st *siteState) keepIn(r *records, storage store.Storage) {
	st.mu.Lock()
	defer st.mu.Unlock()
	_, isKept := r.storage.(*boundedStorage)
	switch {
	case storage == r.storage, storage == nil && !isKept:
		return
	case storage == nil:
		storage = store.NewMemory()
	}
	r.storage, r.store, r.committing, r.retryOpen, r.unsaved = storage, nil, nil, time.Time{}, true
}

// commit writes the newest generation. If that takes long, it goes on beside the refreshes
// that follow, which write nothing before it has ended, until the site is stopped.
func (r *records) commit(ctx, site context.Context) error {
	if r.committing != nil && len(r.committing) == 0 { // it has not ended
		return errHung
	}
	committing, generation := make(chan error, 1), r.generation
	r.committing = committing
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitPatience)
	go func() {
		defer cancel()
		committing <- r.store.Commit(limited, generation)
	}()
	timer := time.NewTimer(commitWait)
	defer timer.Stop()
	select {
	case err := <-committing:
		r.committing = nil
		return err
	case <-ctx.Done():
		cancel()
		return ctx.Err()
	case <-timer.C:
		stop := context.AfterFunc(site, cancel)
		context.AfterFunc(limited, func() { stop() }) // else the site's context would grow with each
		return errHung
	}
}

// restore opens the site's store, unless it is open. After a restart, it serves what was
// published before, if that was with the same settings.
func (s *site) restore(ctx context.Context, r *records) {
	snapshot, m, err := r.open(ctx, s.app.now(), func(key string, err error) {
		s.logger.Warn("what was kept of the pages is damaged: it is set aside and relearned", zap.String("key", key), zap.Error(err))
	})
	if !errors.Is(err, store.ErrDamaged) { // which was said
		s.logger.state(err)
	}
	if r.generation == nil {
		r.generation = emptyGeneration(ctx)
	}
	if m != nil {
		s.state.progress.Restore(m.Positions)
		s.state.generation.Store(r.generation)
		s.state.report.CompareAndSwap(nil, m.Report)
	}
	if m != nil && m.Settings == s.selectDigest(nil) && s.state.Index.Load() == nil && snapshot != nil {
		s.state.Index.Store(snapshot)
		s.markReady()
		s.adoptAliases(m.Aliases)
	}
}

// keep writes what was crawled before the site was stopped.
func (r *refreshRun) keep(ctx context.Context, crawled crawl.Result) result {
	r.records.generation = crawled.Generation
	if r.records.store != nil && crawled.Touched {
		r.site.logger.state(r.records.store.Commit(ctx, crawled.Generation))
	}
	return result{err: errStopping}
}

// commit writes what was published, or how far logs were read. What cannot be written stays
// in memory, and is tried again with the next refresh.
func (r *refreshRun) commit(ctx context.Context, out *result) {
	positions := r.site.state.progress.TakeChanged()
	if out.err == nil && (out.outcome != refreshUnchanged || out.selected.Generation != nil || positions || r.records.unsaved) {
		err := r.write(ctx, out, out.settings)
		r.records.unsaved = err != nil
		r.site.logger.state(err)
	}
}

func (r *refreshRun) write(ctx context.Context, out *result, settings uint64) error {
	m := meta{Batch: r.records.batch, Settings: r.site.selectDigest(nil), Selected: settings, Aliases: r.site.aliases(), Positions: r.site.state.progress.Stored(), Report: r.site.lastReport()}
	var documents []store.StoredDocument
	if out.snapshot != nil {
		var stored []publish.Stored
		var err error
		if m.Snapshot, stored, err = out.snapshot.Documents(); err != nil {
			return err
		}
		documents = r.storedDocuments(stored)
	}
	encoded, err := json.Marshal(m)
	if err != nil {
		return err
	}
	r.records.generation = r.records.generation.WithDocuments(encoded, documents)
	if r.records.store == nil {
		return nil
	}
	return r.records.commit(ctx, r.site.ctx)
}

// storedDocuments are documents for the store, which has some of them already.
func (r *refreshRun) storedDocuments(documents []publish.Stored) []store.StoredDocument {
	known := make(map[string]store.StoredDocument)
	for _, d := range r.records.generation.Documents() {
		known[d.Name+string(d.Meta)] = d
	}
	stored := make([]store.StoredDocument, len(documents))
	for i, d := range documents {
		same, ok := known[d.Name+string(d.Meta)]
		if !ok {
			same = store.NewDocument(d.Name, d.Meta, d.Gzip)
		}
		stored[i] = same
	}
	return stored
}

// restore makes a snapshot of the documents that the store holds.
func (r *records) restore(ctx context.Context) (*publish.Snapshot, *meta, error) {
	var m meta
	if len(r.generation.Meta()) == 0 {
		return nil, nil, nil
	}
	if err := json.Unmarshal(r.generation.Meta(), &m); err != nil {
		return nil, nil, fmt.Errorf("reading what was published: %w", err)
	}
	r.settings, r.batch = m.Selected, m.Batch
	if len(m.Snapshot) == 0 {
		return nil, &m, nil
	}
	documents := r.generation.Documents()
	stored := make([]publish.Stored, len(documents))
	for i, d := range documents {
		content, err := r.generation.Document(ctx, i)
		if err != nil {
			if !errors.Is(err, store.ErrDamaged) {
				err = fmt.Errorf("%w: %w", errUnread, err)
			}
			return nil, nil, err
		}
		stored[i] = publish.Stored{Name: d.Name, Meta: d.Meta, Gzip: content}
	}
	snapshot, err := publish.Restore(m.Snapshot, stored)
	return snapshot, &m, err
}

// emptyGeneration is one without records that no storage keeps.
func emptyGeneration(ctx context.Context) *store.Generation {
	// Opening memory cannot fail.
	s, _ := store.Open(ctx, store.NewMemory(), store.Options{})
	return s.Last()
}

// measure notes how much memory the site takes, about.
func (st *siteState) measure(g *store.Generation, snapshot *publish.Snapshot, own *ownPages) {
	bytes := int64(g.Len())*recordBytes + own.bytes()
	if snapshot != nil {
		bytes += snapshot.Bytes
	}
	st.bytes.Store(bytes)
}

// recordBytes is about what a record takes, compressed.
const recordBytes = 32

// storageOf is where a site's records are kept, and the prefix there. What only visitors
// named is kept in memory.
func storageOf(storage store.Storage, i *identity, key string) (store.Storage, string) {
	_, name, _ := strings.Cut(i.origin, "://")
	name = strings.NewReplacer(":", "_", "[", "", "]", "", "*", "_").Replace(name)
	prefix := fmt.Sprintf("sites/%s-%016x", name, xxhash.Sum64String(key))
	if i.onDemand || storage == nil {
		return store.NewMemory(), prefix
	}
	return storage, prefix
}

// noState is the state option that keeps everything in memory.
const noState = "off"

// stateFolder is where records are kept; "": in memory alone.
func stateFolder(state string, logger *zap.Logger) string {
	folder, _ := expandState(state, caddy.NewReplacer()) // Validate has refused the others
	switch folder {
	case noState:
		return ""
	case "":
		folder = caddy.AppDataDir()
		if !filepath.IsAbs(folder) {
			logger.Warn("nothing is remembered across restarts: there is no home folder; set 'state' of the sitemap app, or XDG_DATA_HOME")
			return ""
		}
		folder = filepath.Join(folder, "sitemap")
	}
	return folder
}

// openStorage opens a folder of records. It touches nothing outside memory. Nil: there is
// none.
func openStorage(folder string) store.Storage {
	if folder == "" {
		return nil
	}
	storage, _ := folders.LoadOrStore(folder, &boundedStorage{&fileStorage{certmagic.FileStorage{Path: folder}}, make(chan struct{}, maxHungReads)})
	return storage.(store.Storage)
}

// logOldState says once that what versions before the first release have left in a folder
// is not read.
func logOldState(folder string, logger *zap.Logger) {
	old, _ := filepath.Glob(filepath.Join(folder, "*-????????????????", "state"))
	if len(old) > 0 {
		logger.Info("the state of an earlier version is left alone; its folders can be deleted", zap.Int("folders", len(old)), zap.String("first", filepath.Dir(old[0])))
	}
}

const (
	storagePatience = 10 * time.Second
	maxHungReads    = 64 // then nothing is read before one has come back
)

var (
	errHung   = errors.New("the storage does not answer")
	errUnread = errors.New("reading what was published")
)

// boundedStorage gives up on reads that do not come back, as of a network disk that is
// gone. Writes are the store's to give up: none may overtake another.
type boundedStorage struct {
	store.Storage
	reads chan struct{}
}

// Load implements [store.Storage].
func (s *boundedStorage) Load(ctx context.Context, key string) ([]byte, error) {
	return bounded(s.reads, func() ([]byte, error) { return s.Storage.Load(ctx, key) })
}

// List implements [store.Storage].
func (s *boundedStorage) List(ctx context.Context, path string, recursive bool) ([]string, error) {
	return bounded(s.reads, func() ([]string, error) { return s.Storage.List(ctx, path, recursive) })
}

func bounded[T any](slots chan struct{}, read func() (T, error)) (none T, err error) {
	timer := time.NewTimer(storagePatience)
	defer timer.Stop()
	select {
	case slots <- struct{}{}:
	case <-timer.C:
		return none, errHung
	}
	done := make(chan func() (T, error), 1)
	go func() {
		defer func() { <-slots }()
		value, err := read()
		done <- func() (T, error) { return value, err }
	}()
	select {
	case result := <-done:
		return result()
	case <-timer.C:
		return none, errHung
	}
}

// fileStorage is a folder of files. Another folder in the place of a file would neither be
// read nor replaced, ever: it is set aside, and is an empty value, so that it counts as damage.
type fileStorage struct{ certmagic.FileStorage }

// Load implements [store.Storage].
func (s *fileStorage) Load(ctx context.Context, key string) ([]byte, error) {
	data, err := s.FileStorage.Load(ctx, key)
	if err == nil {
		return data, nil
	}
	name := s.Filename(key)
	if info, statErr := os.Lstat(name); statErr != nil || !info.IsDir() {
		return nil, err
	}
	aside := filepath.Join(filepath.Dir(name), "damaged")
	if err := os.RemoveAll(aside); err != nil {
		return nil, err
	}
	return nil, os.Rename(name, aside)
}
