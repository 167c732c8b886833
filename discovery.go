package sitemap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed3295b519/caddy-sitemap/internal/accesslog"
	"github.com/seed3295b519/caddy-sitemap/internal/uri"
)

// Discovery is what the sources that discover pages have in common. Where a handler has
// several such sources, their settings add up.
type Discovery struct {
	// The query parameters that tell pages apart, in the order in which they are listed
	// whatever a request's order is. All others are dropped. Tracking parameters, such as
	// utm_source, cannot be among them. Default: none.
	Query []string `json:"query,omitempty"`

	// Pages that need no link to be listed, only a visit: patterns as in Caddy's path
	// matcher. Default: none.
	Unlinked []string `json:"unlinked,omitempty"`

	// How long a path is remembered that nobody visits and nothing links to; at least 1h.
	// Default: 90d.
	Expire caddy.Duration `json:"expire,omitempty"`

	// The most paths that are remembered, up to 10000000. Default: 1000000.
	MaxPaths int `json:"max_paths,omitempty"`
}

// Defaults and bounds of discovery.
const (
	defaultExpire    = 90 * 24 * time.Hour
	minExpire        = time.Hour
	defaultMaxPaths  = 1_000_000
	largestMaxPaths  = 10_000_000
	maxOnDemandPaths = 500 // of a site that only visitors named
	maxQueryKeys     = 20
)

// discovery is what the sources of a handler that discover pages say together.
type discovery struct {
	links      bool // links are followed
	visitors   bool // so are visits
	depth      int  // of links
	query      []string
	unlinked   pathPatterns
	isUnlinked func(path string) bool // nil: no pattern
	expire     time.Duration
	maxPaths   int

	cleaner *uri.Cleaner
	visits  *visitCounts
}

// discoverer is a source that discovers pages.
type discoverer interface {
	Source
	discovers() (discovery, error)
}

// Pages yields the pages that visitors have had, sorted by path.
func (*Discovery) Pages(_ context.Context, r *Refresh, yield func(Page) error) error {
	s := r.site
	d := s.handler.discovery
	s.state.progress.Gather()
	for _, path := range s.state.visited.sorted(r.Now.Add(-d.expire).Unix()) {
		if err := yield(Page{Path: path, Visited: true}); err != nil {
			return err
		}
	}
	if _, dropped := s.state.visited.count(); dropped > 0 {
		s.logger.once(zapcore.WarnLevel, "max_paths", "more pages are visited than are remembered: raise max_paths",
			zap.Int("max_paths", d.most(s.onDemand)))
	}
	return nil
}

// Sorted implements [SortedSource].
func (*Discovery) Sorted() bool { return true }

// discovers checks the settings and fills in their defaults.
func (d *Discovery) discovers() (discovery, error) {
	c := discovery{query: d.Query, expire: time.Duration(d.Expire), maxPaths: d.MaxPaths}
	if len(d.Query) > maxQueryKeys {
		return c, fmt.Errorf("query names %d parameters: at most %d tell pages apart", len(d.Query), maxQueryKeys)
	}
	for i, key := range d.Query {
		switch {
		case key == "":
			return c, errors.New("query has an empty name")
		case bracedName.MatchString(key):
			return c, fmt.Errorf("query '%s': placeholders are not replaced", key)
		case key == "*" || strings.ContainsAny(key, "?=&,"):
			return c, fmt.Errorf("query '%s': the names of parameters are wanted, such as page lang", key)
		case uri.IsTracking(key):
			return c, fmt.Errorf("query '%s': a tracking parameter tells no pages apart", key)
		case slices.Contains(d.Query[:i], key):
			return c, fmt.Errorf("query has '%s' twice", key)
		}
	}
	var err error
	if c.unlinked, err = compilePatterns("unlinked", d.Unlinked); err != nil {
		return c, err
	}
	if c.expire == 0 {
		c.expire = defaultExpire
	}
	if c.expire < minExpire {
		return c, fmt.Errorf("expire is %s: the shortest is %s", c.expire, minExpire)
	}
	if c.maxPaths == 0 {
		c.maxPaths = defaultMaxPaths
	}
	if c.maxPaths < 1 || c.maxPaths > largestMaxPaths {
		return c, fmt.Errorf("max_paths is %d: it is 1 to %d", c.maxPaths, largestMaxPaths)
	}
	return c, nil
}

// add adds the settings of another source.
func (d *discovery) add(o discovery) {
	d.links, d.visitors = d.links || o.links, d.visitors || o.visitors
	d.depth = max(d.depth, o.depth)
	for _, key := range o.query {
		if !slices.Contains(d.query, key) {
			d.query = append(slices.Clip(d.query), key)
		}
	}
	d.unlinked = append(slices.Clip(d.unlinked), o.unlinked...)
	d.expire, d.maxPaths = max(d.expire, o.expire), max(d.maxPaths, o.maxPaths)
}

// discovers returns what the sources of a handler say together; nil: none discovers pages.
func (h *Handler) discovers() (*discovery, error) {
	var all *discovery
	given := make(map[string]bool)
	for i, source := range h.sources {
		d, ok := source.(discoverer)
		if !ok {
			continue
		}
		one, err := d.discovers()
		name := h.sourceNames[i]
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if h.settings.crawl.Off {
			return nil, fmt.Errorf("%s lists only pages that were fetched, and crawl is off", name)
		}
		if _, several := source.(*SourceAccessLog); given[name] && !several {
			return nil, fmt.Errorf("%s is given twice", name)
		}
		given[name] = true
		if all == nil {
			all = new(discovery)
		}
		one.visitors = !one.links
		all.add(one)
	}
	if all == nil {
		return nil, nil
	}
	if len(all.unlinked) > 0 {
		all.isUnlinked = all.unlinked.Match
	}
	all.cleaner, all.visits = uri.NewCleaner(all.query), new(visitCounts)
	return all, nil
}

// most is how many paths are remembered that links and visitors named, for a site that
// the configuration names or one on demand.
func (d *discovery) most(onDemand bool) int {
	switch {
	case d == nil:
		return 0
	case onDemand:
		return min(d.maxPaths, maxOnDemandPaths)
	}
	return d.maxPaths
}

// visit notes a visit to a page, at a Unix time that is not in the future. It is false
// where the page is not one of the site's.
func (s *site) visit(path string, at int64) bool {
	if main := s.main.Load(); main != nil {
		s = main
	}
	if s.handler.discovery == nil || !strings.HasPrefix(path, s.front()) {
		return false
	}
	s.state.visited.add(path, at)
	return true
}

// visit returns the page that a visit shows, or why it does not count.
func (d *discovery) visit(v *accesslog.Visit) (path, reason string) {
	reason = v.Reason()
	d.visits.add(reason, 1)
	if reason != "" {
		return "", reason
	}
	path, ok := d.cleaner.Clean(v.URI)
	if !ok {
		return "", lineOddPath
	}
	return path, ""
}

// visitCounts counts visits by why they do not count, for `status`. It is safe for
// concurrent use.
type visitCounts struct {
	mu       sync.Mutex
	byReason map[string]int
}

// enoughVisits is how many visits to pages there are before it is said that few count.
const enoughVisits = 100

func (c *visitCounts) add(reason string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byReason == nil {
		c.byReason = make(map[string]int)
	}
	c.byReason[reason] += n
}

// ignored returns how many visits to pages did not count, by reason, where those are nine
// tenths or more of all; nil: they are fewer.
func (c *visitCounts) ignored() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	ignored, all := make(map[string]int), c.byReason[""]
	for _, reason := range []string{accesslog.SignedIn, accesslog.NoIndex, accesslog.Robot} {
		if n := c.byReason[reason]; n > 0 {
			ignored[reason] = n
			all += n
		}
	}
	if all < enoughVisits || 10*c.byReason[""] > all {
		return nil
	}
	return ignored
}

// visited are the paths that visitors have had, with the Unix second of the last visit. It
// is safe for concurrent use.
type visited struct {
	mu      sync.Mutex
	paths   map[string]int64
	max     int
	dropped int
}

// limit sets how many paths are remembered.
func (v *visited) limit(n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.max = n
}

// add notes a visit. Where there is no room, an old path is forgotten.
func (v *visited) add(path string, at int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.paths == nil {
		v.paths = make(map[string]int64)
	}
	last, known := v.paths[path]
	if !known && len(v.paths) >= v.max && !v.forget(at) {
		v.dropped++
		return
	}
	if !known {
		path = strings.Clone(path)
	}
	v.paths[path] = max(last, at)
}

// forget drops the oldest of a few paths that was visited before a time. Under mu.
func (v *visited) forget(before int64) bool {
	const few = 8
	oldest, n := "", 0
	for path, at := range v.paths { // in no order
		if at < before {
			oldest, before = path, at
		}
		if n++; n == few {
			break
		}
	}
	if oldest == "" {
		return false
	}
	v.dropped++
	delete(v.paths, oldest)
	return true
}

// sorted are the paths in order, without those of a last visit before since, which are
// forgotten.
func (v *visited) sorted(since int64) []string {
	v.mu.Lock()
	all := make([]string, 0, len(v.paths))
	for path, at := range v.paths {
		if at < since {
			delete(v.paths, path)
			continue
		}
		all = append(all, path)
	}
	v.mu.Unlock() // sorting takes its time, and visits wait
	slices.Sort(all)
	return all
}

// at is when visitors had a path last, in Unix seconds; 0: never.
func (v *visited) at(path string) int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.paths[path]
}

func (v *visited) count() (paths, dropped int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.paths), v.dropped
}
