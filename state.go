package sitemap

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	"github.com/seed3295b519/caddy-sitemap/internal/logonce"
	"github.com/seed3295b519/caddy-sitemap/internal/publish"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// states holds what outlives a configuration of each site, by key: a reload begins with
// what the configuration before it has published and learnt.
var states = caddy.NewUsagePool()

// departed are the counts of sites that there are no longer: counters never go down.
var departed accesslog.Readers

// siteState is what outlives a configuration of a site: its published snapshot, and its
// records. It is data alone: no server, logger or module.
type siteState struct {
	Index      Index
	generation atomic.Pointer[store.Generation] // that the snapshot was selected from
	progress   accesslog.Progress               // in access logs
	visited    accesslog.Visited                // paths that visitors have had
	readers    accesslog.Readers
	missing    sync.Map // sources that do not exist, by number, and since when

	key      string
	id       address
	listener address // of its handler
	path     string  // of the sitemap, as the handler's settings have it
	onDemand bool
	report   atomic.Pointer[report.Report] // of the last refresh; nil: none since the start
	plan     atomic.Pointer[plan]          // nil: a refresh runs, or the last one was in vain
	bytes    atomic.Int64                  // of memory, about
	limiter  atomic.Pointer[crawl.Limiter] // of the handler, in the configuration that started last
	records  atomic.Pointer[records]
}

// plan is when the next refresh is due, and what the last one was made with.
type plan struct {
	due    time.Time
	digest uint64 // of the settings and routes
	probed *probeResult
}

// records are a site's records, and what is known of what is published of them. The refresh
// that holds the lease has them for itself.
type records struct {
	lease   crawl.Slots
	ctx     context.Context // of what is written; it ends with the state, or when others take the lease
	cancel  context.CancelFunc
	storage store.Storage
	prefix  string

	store      *store.Store      // nil: not opened yet
	generation *store.Generation // the newest one, which may not be written yet; nil: none
	settings   uint64            // that the published snapshot was made with
	last       *publish.Snapshot // the last one that was not empty, whose names are known still
	hanging    bool              // the last crawl fetched nothing but pages that hang
	batch      int64             // of the last crawl
	pending    pendingChange     // what a refresh wants confirmed
	retryOpen  time.Time
	committing chan error // by a commit that takes long; nil: none does
	unsaved    bool       // the last commit failed, or was left out
}

const (
	leasePatience  = 3 * time.Second // with a refresh of the configuration before, or one that was abandoned
	openPatience   = time.Second
	readPatience   = 5 * time.Minute  // with what is kept, once no request waits for it
	commitPatience = 10 * time.Minute // what is not committed is written all over again
	commitWait     = time.Second      // with a commit, before refreshes go on beside it
	retryOpening   = 10 * time.Second
	recordBytes    = 32 // about what a record takes, compressed
)

// acquireState takes hold of a site's state, or makes it. Sites of other handlers that have
// the same URLs are told apart by their number. Under the App's mu.
func acquireState(a *App, i *identity) *siteState {
	used := make(map[string]bool)
	for _, s := range a.sites {
		used[s.state.key] = true
	}
	storage, where, key, name := a.storage, a.State, "", ""
	if i.onDemand { // what only visitors named is kept in memory
		storage, where = nil, "on demand"
	}
	for number := 0; key == "" || used[key]; number++ {
		name = fmt.Sprint(i.sitemapURL(), " ", i.prefix, " ", number)
		key = fmt.Sprint(name, " ", where)
	}
	value, _, _ := states.LoadOrNew(key, func() (caddy.Destructor, error) {
		if storage == nil {
			storage = store.NewMemory()
		}
		host := strings.NewReplacer(":", "_", "[", "", "]", "", "*", "_").Replace(strings.SplitN(i.origin, "://", 2)[1])
		st := &siteState{key: key, id: i.id.address, listener: i.handler.listener, path: i.handler.settings.path, onDemand: i.onDemand}
		st.records.Store(newRecords(storage, fmt.Sprintf("sites/%s-%016x", host, xxhash.Sum64String(name))))
		return st, nil
	})
	return value.(*siteState)
}

// Destruct lets a siteState be a value of a [caddy.UsagePool].
func (st *siteState) Destruct() error {
	departed.Add(&st.readers)
	st.records.Load().cancel()
	return nil
}

func newRecords(storage store.Storage, prefix string) *records {
	r := &records{lease: crawl.NewSlots(1), storage: storage, prefix: prefix}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// acquire waits until nobody else has the records. A refresh that does not give them back
// loses its right to write them. The error is ctx's.
func (st *siteState) acquire(ctx context.Context) (*records, error) {
	for ctx.Err() == nil {
		r := st.records.Load()
		waiting, cancel := context.WithTimeout(ctx, leasePatience)
		taken := r.lease.Take(waiting)
		cancel()
		switch {
		case taken && st.records.Load() == r:
			return r, nil
		case !taken && ctx.Err() == nil && st.records.CompareAndSwap(r, newRecords(r.storage, r.prefix)):
			r.cancel()
		}
	}
	return nil, ctx.Err()
}

// meta is what is kept of a snapshot besides its documents.
type meta struct {
	Batch     int64            `json:"batch,omitempty"` // of the last crawl
	Settings  uint64           `json:"settings"`        // digest of what the operator wrote
	Selected  uint64           `json:"selected"`        // digest of that and what the probe found
	Snapshot  json.RawMessage  `json:"snapshot,omitempty"`
	Report    *report.Report   `json:"report,omitempty"`
	Positions accesslog.Stored `json:"positions,omitempty"` // in access logs
}

// restore opens the site's store, unless it is open. After a restart, it serves what was
// published before, if that was with the same settings.
func (s *site) restore(ctx context.Context, r *records) {
	snapshot, m, err := r.open(ctx, s.app.now(), func(key string, err error) {
		s.logger.Warn("what was kept of the pages is damaged: it is set aside and relearned", zap.String("key", key), zap.Error(err))
	})
	if r.generation == nil { // opening memory cannot fail
		empty, _ := store.Open(ctx, store.NewMemory(), store.Options{})
		r.generation = empty.Last()
	}
	if err == nil && m != nil {
		s.state.progress.Restore(m.Positions)
		s.state.generation.Store(r.generation)
		s.state.report.CompareAndSwap(nil, m.Report)
		if m.Settings == s.digest() && snapshot != nil && s.state.Index.CompareAndSwap(nil, snapshot) {
			s.setReady()
		}
	}
	if !errors.Is(err, store.ErrDamaged) { // which was said
		logState(s.logger, err)
	}
}

// open opens the store and returns the snapshot that it holds; nil: none. Where the
// storage fails, the site goes on in memory, and nothing is written until a later refresh
// has opened it.
func (r *records) open(ctx context.Context, now time.Time, damaged func(string, error)) (*publish.Snapshot, *meta, error) {
	if r.store != nil || now.Before(r.retryOpen) {
		return nil, nil, nil
	}
	r.retryOpen = now.Add(retryOpening)
	opening, cancel := context.WithTimeout(ctx, openPatience)
	defer cancel()
	opened, err := store.Open(opening, r.storage, store.Options{Prefix: r.prefix, Damaged: damaged})
	if err != nil {
		return nil, nil, fmt.Errorf("opening %s: %w", r.prefix, err)
	}
	last := opened.Last()
	if r.generation != nil { // the site has begun in memory
		opening, cancel = context.WithTimeout(ctx, readPatience)
		defer cancel()
		if r.generation.Len() > 2*last.Len() { // else what was kept knows more, if not the latest
			last = opened.Adopt(r.generation)
		}
	}
	snapshot, m, err := published(opening, last)
	if err == nil || errors.Is(err, store.ErrDamaged) { // else the rest cannot be read either: better nothing than half of it
		if r.store, r.generation = opened, last; m != nil {
			r.settings, r.batch = m.Selected, m.Batch
		}
	}
	return snapshot, m, err
}

// published makes a snapshot of the documents that the store holds.
func published(ctx context.Context, g *store.Generation) (*publish.Snapshot, *meta, error) {
	m := new(meta)
	if len(g.Meta()) == 0 {
		return nil, nil, nil
	}
	if err := json.Unmarshal(g.Meta(), m); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", store.ErrDamaged, err)
	}
	if len(m.Snapshot) == 0 {
		return nil, m, nil
	}
	snapshot, err := publish.Restore(ctx, m.Snapshot, g)
	return snapshot, m, err
}

// write adds what is published to the records, and writes them.
func (r *refreshRun) write(out *result) error {
	m := meta{Batch: r.records.batch, Settings: r.digest(), Selected: out.settings, Positions: r.state.progress.Stored(), Report: r.lastReport()}
	var documents []store.StoredDocument
	var err error
	if out.snapshot != nil {
		m.Snapshot, documents, err = out.snapshot.Documents(r.records.generation)
	}
	encoded, err2 := json.Marshal(m)
	if err := cmp.Or(err, err2); err != nil {
		return err
	}
	r.records.generation = r.records.generation.WithDocuments(encoded, documents)
	return r.records.commit()
}

var errHung = errors.New("the storage does not answer")

// commit writes the newest generation, if there is a store. If that takes long, it goes on
// beside the refreshes that follow, which write nothing before it has ended.
func (r *records) commit() error {
	if r.store == nil {
		return nil
	}
	if r.committing != nil && len(r.committing) == 0 {
		return errHung
	}
	ctx, cancel := context.WithTimeout(r.ctx, commitPatience)
	committing, generation, opened := make(chan error, 1), r.generation, r.store
	go func() {
		defer cancel()
		committing <- opened.Commit(ctx, generation)
	}()
	r.committing = committing
	err, ended := wait.Within(commitWait, committing)
	if !ended {
		return errHung
	}
	r.committing = nil
	return err
}

// logState says once what is wrong with keeping records.
func logState(l *logonce.Logger, err error) {
	l.OnceIf(err != nil, zap.WarnLevel, "state", "cannot keep what is known of the pages: it is relearned after a restart", zap.Error(err))
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
	return &fileStorage{certmagic.FileStorage{Path: folder}}
}

// fileStorage is a folder of files. It waits with reads while many of a network disk that is
// gone do not come back.
type fileStorage struct{ certmagic.FileStorage }

// reads are those under way of all folders and configurations.
var reads = crawl.NewSlots(64)

// Load implements [store.Storage].
func (s *fileStorage) Load(ctx context.Context, key string) ([]byte, error) {
	if !reads.Take(ctx) {
		return nil, errHung
	}
	defer reads.Release()
	return s.FileStorage.Load(ctx, key)
}
