package sitemap

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/accesslog"
	"github.com/seed3295b519/caddy-sitemap/internal/discover"
)

// keepPathsEvery is how much of what visitors showed a crash may lose.
const keepPathsEvery = 5 * time.Minute

// paths is what is remembered of a site's paths, and how far logs were read for it.
// It lies on the shelf beside the book.
type paths struct {
	changed atomic.Bool // since it was kept

	mu        sync.Mutex
	catalog   *discover.Catalog // nil: not opened yet
	positions map[string]accesslog.Positions
	unread    error // why what is kept could not be read; nil: it was, or there is nothing
	keeping   sync.Mutex
}

// pathsNote is what is kept besides the catalog, in a line before it.
type pathsNote struct {
	Positions map[string]accesslog.Positions `json:"positions,omitempty"`
}

func pathsKey(prefix string) string { return prefix + "/paths" }

// open returns the catalog, set up by some options, and reads what is kept of it the
// first time. An error comes once, with an empty one.
func (p *paths) open(ctx context.Context, sh *shelf, o discover.Options) (*discover.Catalog, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.catalog != nil {
		p.catalog.Configure(o)
		return p.catalog, nil
	}
	p.positions = make(map[string]accesslog.Positions)
	ctx = context.WithoutCancel(ctx)
	key := pathsKey(sh.prefix)
	kept, err := sh.storage.Load(ctx, key)
	if err == nil {
		if err = p.decode(kept, o); err == nil {
			return p.catalog, nil
		}
		// For who wants to look at it. What cannot be set aside is lost all the same.
		_ = sh.storage.Store(ctx, key+damagedSuffix, kept)
	}
	p.catalog = discover.NewCatalog()
	p.catalog.Configure(o)
	clear(p.positions)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p.catalog, nil
	case kept == nil:
		p.unread = err // it may be whole, and is not to be overwritten
	}
	return p.catalog, err
}

const damagedSuffix = ".damaged"

// decode reads what keep wrote. Under mu.
func (p *paths) decode(kept []byte, o discover.Options) error {
	line, rest, _ := bytes.Cut(kept, []byte("\n"))
	var n pathsNote
	if err := json.Unmarshal(line, &n); err != nil {
		return fmt.Errorf("reading what is kept of paths: %w", err)
	}
	catalog := discover.NewCatalog()
	catalog.Configure(o)
	if err := catalog.Decode(bytes.NewReader(rest)); err != nil {
		return fmt.Errorf("reading what is kept of paths: %w", err)
	}
	p.catalog = catalog
	maps.Copy(p.positions, n.Positions)
	return nil
}

// position is how far a log was read for the site.
func (p *paths) position(log string) accesslog.Positions {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.positions[log]
}

// forget drops how far logs were read that are none of these any more.
func (p *paths) forget(logs map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.positions, func(log string, _ accesslog.Positions) bool { return !logs[log] })
}

// read notes how far a log was read, once its visits were taken.
func (p *paths) read(log string, at accesslog.Positions) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.positions == nil {
		return // not opened, so no visit was taken
	}
	p.positions[log] = at
	p.changed.Store(true)
}

// keep writes down what is remembered, if it has changed. Positions are taken first:
// a visit that comes in between is in the catalog, and does no harm when it comes
// again.
func (p *paths) keep(ctx context.Context, sh *shelf) error {
	p.keeping.Lock()
	defer p.keeping.Unlock()
	p.mu.Lock()
	catalog, n, unread := p.catalog, pathsNote{Positions: maps.Clone(p.positions)}, p.unread
	p.mu.Unlock()
	if unread != nil {
		return fmt.Errorf("what is kept could not be read, and is not overwritten: %w", unread)
	}
	if catalog == nil || !p.changed.Swap(false) {
		return nil
	}
	line, err := json.Marshal(n)
	if err != nil {
		return err
	}
	out := bytes.NewBuffer(append(line, '\n'))
	if err := catalog.Encode(out); err != nil {
		return err
	}
	if err := sh.storage.Store(ctx, pathsKey(sh.prefix), out.Bytes()); err != nil {
		p.changed.Store(true)
		return fmt.Errorf("keeping paths: %w", err)
	}
	return nil
}

// keepPaths writes down now and then what visitors showed of the sites.
func (a *App) keepPaths(ctx context.Context) {
	ticker := time.NewTicker(keepPathsEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			a.keepAllPaths(ctx)
		}
	}
}

func (a *App) keepAllPaths(ctx context.Context) {
	a.mu.RLock()
	var sites []*site
	for _, s := range a.sites {
		if s.handler.discovery != nil {
			sites = append(sites, s)
		}
	}
	a.mu.RUnlock()
	for _, s := range sites {
		s.keepPaths(ctx)
	}
}

// keepPaths writes down what visitors and links showed, if that has changed.
func (s *site) keepPaths(ctx context.Context) {
	if s.visitors {
		return // what visitors named is kept in memory alone
	}
	if err := s.shelf.paths.keep(ctx, s.shelf); err != nil {
		s.logger.Warn("where visitors went cannot be kept", zap.Error(err))
	}
}
