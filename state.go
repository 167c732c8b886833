package sitemap

import (
	"context"
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
	"github.com/seed3295b519/caddy-sitemap/internal/persist"
	"github.com/seed3295b519/caddy-sitemap/internal/publish"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// states holds what outlives a configuration of each site, by key: a reload begins with
// what the configuration before it has published and learnt.
var states = caddy.NewUsagePool()

// departed are the counts of sites that there are no longer: counters never go down.
var departed accesslog.Readers

// siteState is what outlives a configuration of a site: its published snapshot, and its
// records. It is data alone: no server, logger or module.
type siteState struct {
	Index      atomic.Pointer[publish.Snapshot] // what is served; readers take no lock
	generation atomic.Pointer[store.Generation] // that the snapshot was selected from
	settings   atomic.Uint64                    // digest that it was selected by
	last       atomic.Pointer[publish.Snapshot] // that was not empty, whose names are known still
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
	records  *persist.Site
}

// plan is when the next refresh is due, and what the last one was made with.
type plan struct {
	due    time.Time
	digest uint64 // of the settings and routes
	probed *probeResult
}

const recordBytes = 32 // about what a record takes, compressed

// acquireState takes hold of a site's state, or makes it. Sites of other handlers that have
// the same URLs are told apart by their number. Under the App's mu.
func acquireState(a *App, i *identity) *siteState {
	used := make(map[string]bool)
	for _, s := range a.sites {
		used[s.state.key] = true
	}
	folder, key, name := a.folder, "", ""
	if i.onDemand { // what only visitors named is kept in memory
		folder = ""
	}
	for number := 0; key == "" || used[key]; number++ {
		name = fmt.Sprint(i.sitemapURL(), " ", i.prefix, " ", number)
		key = fmt.Sprint(name, " ", folder, " ", i.onDemand)
	}
	value, _, _ := states.LoadOrNew(key, func() (caddy.Destructor, error) {
		var storage store.Storage
		if folder != "" {
			storage = &certmagic.FileStorage{Path: folder}
		}
		host := strings.NewReplacer(":", "_", "[", "", "]", "", "*", "_").Replace(strings.SplitN(i.origin, "://", 2)[1])
		return &siteState{
			key: key, id: i.id.address, listener: i.handler.listener, path: i.handler.settings.path, onDemand: i.onDemand,
			records: persist.NewSite(storage, fmt.Sprintf("sites/%s-%016x", host, xxhash.Sum64String(name))),
		}, nil
	})
	return value.(*siteState)
}

// Destruct lets a siteState be a value of a [caddy.UsagePool].
func (st *siteState) Destruct() error {
	departed.Add(&st.readers)
	st.records.Close()
	return nil
}

// meta is what is kept of a site besides its records and documents.
type meta struct {
	Settings  uint64           `json:"settings"` // digest of what the operator wrote
	Selected  uint64           `json:"selected"` // digest of that and what the probe found
	Report    *report.Report   `json:"report,omitempty"`
	Positions accesslog.Stored `json:"positions,omitempty"` // in access logs
}

// restore opens the site's records, unless they are open. After a restart, it serves what was
// published before, if that was with the same settings.
func (s *site) restore(ctx context.Context, r *persist.Records) {
	var m meta
	snapshot, err := r.Open(ctx, &m, func(key string, err error) {
		s.logger.Warn("what was kept of the pages is damaged: it is set aside and relearned", zap.String("key", key), zap.Error(err))
	})
	if err == nil && m.Settings != 0 {
		s.state.progress.Restore(m.Positions)
		s.state.report.CompareAndSwap(nil, m.Report)
		if m.Settings == s.digest() && snapshot != nil && s.state.Index.CompareAndSwap(nil, snapshot) {
			s.state.last.Store(snapshot)
			s.state.generation.Store(r.Generation)
			s.state.settings.Store(m.Selected)
			s.setReady()
		}
	}
	if !errors.Is(err, store.ErrDamaged) { // which was said
		s.logState(err)
	}
}

// logState says once what is wrong with keeping records.
func (s *site) logState(err error) {
	s.logger.OnceIf(err != nil, zap.WarnLevel, "state", "cannot keep what is known of the pages: it is relearned after a restart", zap.Error(err))
}

// stateFolder is where records are kept, by the state setting; "": in memory alone. Without a
// replacer, as for a Caddyfile, placeholders have no value yet.
func stateFolder(state string, repl *caddy.Replacer) (folder string, err error) {
	if state != "" && state != "off" && !strings.ContainsAny(state, `/\{`) { // which would lie in the working directory
		return "", fmt.Errorf("state '%s': a folder such as /var/lib/caddy/sitemap is wanted, or off", state)
	}
	if repl == nil {
		return "", nil
	}
	if folder, err = repl.ReplaceOrErr(state, true, true); err != nil {
		return "", fmt.Errorf("state: %w", err)
	}
	switch folder {
	case "off":
		return "", nil
	case "":
		if folder = caddy.AppDataDir(); !filepath.IsAbs(folder) {
			return "", nil
		}
		folder = filepath.Join(folder, "sitemap")
	}
	return caddy.FastAbs(folder)
}
