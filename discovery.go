package sitemap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/cespare/xxhash/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed3295b519/caddy-sitemap/internal/accesslog"
	"github.com/seed3295b519/caddy-sitemap/internal/discover"
)

// Discovery is what the sources that discover pages have in common. Where a site has
// several such sources, what they say adds up: it has one memory of paths.
type Discovery struct {
	// The query parameters that tell pages apart, in the order in which they are
	// listed whatever a request's order is. All others are dropped. Tracking
	// parameters, such as utm_source, cannot be among them. Default: none.
	Query []string `json:"query,omitempty"`

	// Pages that are listed although no listed page links to them, once enough
	// visitors had them. The first one that matches a path counts. Default: none.
	Unlinked []Unlinked `json:"unlinked,omitempty"`

	// How long a path is remembered to which nobody went and nothing links; at
	// least 1h. Default: 90d.
	Expire caddy.Duration `json:"expire,omitempty"`

	// The most paths that are remembered, the ones seen last, and listed ones
	// before others. Default: 1000000.
	MaxPaths int `json:"max_paths,omitempty"`
}

// Unlinked names pages that need no link to be listed.
type Unlinked struct {
	// Patterns as in Caddy's path matcher.
	Match []string `json:"match,omitempty"`

	// How many different visitors a page needs, in at least two different hours:
	// 1 to 100. A visitor is an IPv4 network of 256 addresses, or an IPv6 /64.
	// Default: 3.
	MinVisitors int `json:"min_visitors,omitempty"`
}

// Defaults and bounds of discovery.
const (
	defaultExpire      = 90 * 24 * time.Hour
	minExpire          = time.Hour
	defaultMaxPaths    = discover.DefaultMaxPaths
	largestMaxPaths    = 10_000_000
	defaultMinVisitors = 3
	maxMinVisitors     = 100
	maxPerPattern      = discover.DefaultMaxPerPattern // paths that differ in their digits alone
	maxQueryKeys       = 20
	maxVisitorsPaths   = 500 // of a site that only visitors named
)

// discovery is what the sources of a handler say together.
type discovery struct {
	from     discover.Origin // the sources there are
	depth    int             // of links; 0: links are not candidates by themselves
	query    []string
	unlinked []discover.Unlinked
	rules    []Unlinked // unlinked, as it is configured
	expire   time.Duration
	maxPaths int
}

// discoverer is a source that discovers pages.
type discoverer interface {
	Source
	discovers() (discovery, error)
}

// compile checks the settings and fills in their defaults.
func (d *Discovery) compile(from discover.Origin) (discovery, error) {
	c := discovery{from: from, query: d.Query, expire: time.Duration(d.Expire), maxPaths: d.MaxPaths, rules: d.Unlinked}
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
		case discover.IsTracking(key):
			return c, fmt.Errorf("query '%s': a tracking parameter tells no pages apart", key)
		case slices.Contains(d.Query[:i], key):
			return c, fmt.Errorf("query has '%s' twice", key)
		}
	}
	for _, u := range d.Unlinked {
		compiled, err := u.compile()
		if err != nil {
			return c, err
		}
		c.unlinked = append(c.unlinked, compiled)
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

func (u *Unlinked) compile() (discover.Unlinked, error) {
	c := discover.Unlinked{MinVisitors: u.MinVisitors}
	if len(u.Match) == 0 {
		return c, errors.New("unlinked has no path pattern")
	}
	if c.MinVisitors == 0 {
		c.MinVisitors = defaultMinVisitors
	}
	if c.MinVisitors < 1 || c.MinVisitors > maxMinVisitors {
		return c, fmt.Errorf("min_visitors is %d: it is 1 to %d", u.MinVisitors, maxMinVisitors)
	}
	var err error
	c.Match, err = compilePatterns("unlinked", u.Match)
	return c, err
}

// add adds what another source says.
func (d *discovery) add(o discovery) {
	d.from |= o.from
	d.depth = max(d.depth, o.depth)
	for _, key := range o.query {
		if !slices.Contains(d.query, key) {
			d.query = append(slices.Clip(d.query), key)
		}
	}
	d.unlinked = append(slices.Clip(d.unlinked), o.unlinked...)
	d.rules = append(slices.Clip(d.rules), o.rules...)
	d.expire, d.maxPaths = max(d.expire, o.expire), max(d.maxPaths, o.maxPaths)
}

// discovers is what the sources of a handler say together; nil: none discovers pages.
func (h *Handler) discovers() (*discovery, error) {
	var all *discovery
	var given discover.Origin
	for i, source := range h.sources {
		finder, ok := source.(discoverer)
		if !ok {
			continue
		}
		one, err := finder.discovers()
		if err != nil {
			return nil, err
		}
		if h.settings.manners.off {
			return nil, fmt.Errorf("%s lists a page only once it was asked for, and ask is off", h.sourceNames[i])
		}
		if one.from&given&^discover.FromLog != 0 {
			return nil, fmt.Errorf("%s is given twice", h.sourceNames[i])
		}
		given |= one.from
		if all == nil {
			all = new(discovery)
		}
		all.add(one)
	}
	return all, nil
}

// front is the path of the site's front page, where discovering begins. Where the
// sitemap's folder is not the whole site, it is that one's: what lies outside is not
// listed, so its links count for nothing.
func (s *site) front() string {
	if s.within != "" {
		return s.within
	}
	return s.at + "/"
}

// candidates yields the pages that visitors and links showed, as far as they may be
// listed if they answer, and the front page, to which everybody goes.
func (s *site) candidates(ctx context.Context, from discover.Origin, yield func(Page) error) error {
	if err := yield(Page{Path: s.front(), Discovered: true}); err != nil {
		return err
	}
	return s.paths(ctx).Candidates(ctx, from, s.handler.discovery.depth, func(path string) error {
		return yield(Page{Path: path, Discovered: true})
	})
}

// paths is the site's memory of paths, set up for this configuration.
func (s *site) paths(ctx context.Context) *discover.Catalog {
	if catalog := s.catalog.Load(); catalog != nil {
		return catalog
	}
	catalog, err := s.shelf.paths.open(ctx, s.shelf, s.discoverOptions())
	if err != nil {
		s.logger.Warn("what was remembered of where visitors went cannot be used", zap.Error(err))
	}
	s.catalog.Store(catalog)
	return catalog
}

func (d *discovery) cleaner() discover.Cleaner { return discover.Cleaner{Query: d.query} }

func (s *site) discoverOptions() discover.Options {
	d := s.handler.discovery
	o := discover.Options{Unlinked: d.unlinked, Expire: d.expire, MaxPaths: d.maxPaths, MaxPerPattern: maxPerPattern}
	if s.visitors {
		o.MaxPaths = min(o.MaxPaths, maxVisitorsPaths)
	}
	return o
}

// Nearly all visits come from a handful of clients where nine tenths of so many do.
const (
	enoughVisits = 1000
	fewClients   = 3
)

// tellPaths says what the user should know of where visitors went.
func (s *site) tellPaths() {
	catalog := s.catalog.Load()
	if catalog == nil {
		return
	}
	catalog.Configure(s.discoverOptions()) // a configuration that failed to start may have set it up
	for _, pattern := range catalog.Full() {
		s.log(zapcore.WarnLevel, "too many paths differ in their numbers alone: no more of them are followed",
			zap.String("pattern", pattern), zap.Int("paths", maxPerPattern))
	}
	stats := catalog.Stats()
	if stats.Evicted+stats.RefusedFull > 0 {
		s.say(zapcore.WarnLevel, "max_paths", "more paths are visited or linked to than are remembered: the ones seen longest ago are forgotten",
			zap.Int("max_paths", s.handler.discovery.maxPaths))
	}
	if len(s.handler.discovery.unlinked) > 0 && stats.Visits >= enoughVisits && stats.Clients <= fewClients {
		s.say(zapcore.WarnLevel, "clients", "nearly all visits come from a handful of clients: if a proxy is in front, name it in trusted_proxies, so that visitors can be told apart")
	}
}

// visited takes a visit to one of the site's pages, at a time that is not to come.
func (s *site) visited(ctx context.Context, from discover.Origin, path string, v *accesslog.Visit) bool {
	if main := s.main.Load(); main != nil {
		s = main
	}
	if s.handler.discovery == nil || !strings.HasPrefix(path, s.front()) {
		return false
	}
	s.paths(ctx).Visit(from, path, v.Time, v.Client, tagOf(v))
	s.shelf.paths.changed.Store(true)
	return true
}

// tagOf tells states of a page apart by what its response says; 0: it says nothing, or
// not to everybody.
func tagOf(v *accesslog.Visit) uint32 {
	if v.Cookie {
		return 0
	}
	return tag(v.ETag, v.LastModified)
}

// tag is the same for a page as it is and as it is compressed on the way.
func tag(etag, modified string) uint32 {
	if etag == "" {
		if modified == "" {
			return 0
		}
		return max(uint32(xxhash.Sum64String(modified)), 1)
	}
	etag = strings.Trim(strings.TrimPrefix(etag, "W/"), `"`)
	for _, coding := range [...]string{"-gzip", "-zstd", "-br"} {
		etag = strings.TrimSuffix(etag, coding)
	}
	return max(uint32(xxhash.Sum64String(etag)), 1)
}
