// Package sitemap is a Caddy module that knows every page a site serves and
// tells search engines: /sitemap.xml, its shards, and the Sitemap line in
// /robots.txt.
//
// A [Handler] is a directive's settings, and answers requests. Each origin and
// path prefix that it serves is a site (site.go). The [App] owns the sites of
// all handlers and refreshes each when it is due (app.go, schedule.go); a
// refresh is the pipeline in scanner.go, from the [Source]s to the published
// [Index]. What is known of a site's pages outlives a reload in memory, and a
// restart in a store (state.go). Several sites may be one, such as www and the
// apex: the main site's sitemap stands for its aliases (aliases.go). Where a
// site's files lie, and whether the handler is reached at all, is found out by
// a probe: a request through the server's own routes that the handler
// recognizes (probe.go). The stages themselves are packages below internal that
// know nothing of Caddy.
package sitemap

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/cespare/xxhash/v2"
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/htmlmeta"
	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/sitemapxml"
)

func init() {
	caddy.RegisterModule(new(Handler))
}

// Defaults and bounds of the settings.
const (
	defaultPath     = "/sitemap.xml"
	defaultRefresh  = time.Minute
	minRefresh      = time.Second
	maxShardURLs    = 50_000
	defaultMaxURLs  = 10_000_000
	largestMaxURLs  = 1_000_000_000
	maxIndexEntries = 50_000
	maxDocument     = 52_428_800
)

// Handler generates and serves XML sitemaps: an index, its shards and the
// Sitemap line in robots.txt, for every site whose requests reach it. The pages
// come from its sources and are gathered in the background; requests that are
// not for one of these documents go to the next handler untouched.
type Handler struct {
	// The path of the sitemap, or of the index when it takes more than one
	// document; it ends in .xml. The shards lie beside it. Pages outside of its
	// folder are not listed, as the protocol asks. Global placeholders are
	// replaced, as in exclude and rules. Default: /sitemap.xml.
	Path string `json:"path,omitempty"`

	// The scheme, host and folder of every listed URL, such as
	// https://example.com. With it there is one site, whatever the Host header
	// says; pages outside of the folder are not listed. Global placeholders,
	// such as {env.*}, are replaced. Default: the scheme, host and port under
	// which the site is served.
	BaseURL string `json:"base_url,omitempty"`

	// How long after the beginning of a refresh the next one begins; at least
	// 1s. Refreshes of a site never overlap. Default: 1m, or twenty times what
	// the last refresh took where that is longer.
	RefreshInterval caddy.Duration `json:"refresh_interval,omitempty"`

	// The most pages in a shard, 1 to 50000. Default: 50000.
	ShardURLs int `json:"shard_urls,omitempty"`

	// The most pages in all. Those that exceed it, the last ones by path, are
	// counted and logged. Default: 10000000.
	MaxURLs int `json:"max_urls,omitempty"`

	// Whether /robots.txt names the sitemap. Default: true.
	RobotsTxt *bool `json:"robots_txt,omitempty"`

	// The version of the sitemap schema: 0.9 (sitemaps.org) or 0.84 (Google's
	// first). Default: 0.9.
	Schema string `json:"schema,omitempty"`

	// Pages that are not listed: patterns as in Caddy's path matcher.
	Exclude []string `json:"exclude,omitempty"`

	// Default changefreq and priority of matching pages. The first rule that
	// matches a page is used, and only where the page's source gives none.
	Rules []Rule `json:"rules,omitempty"`

	// How pages are fetched: one is listed only while it returns 200 and is indexable.
	// Default: as described for its fields.
	Crawl *Crawl `json:"crawl,omitempty"`

	// Where the dates of pages come from: auto, from what a page declares and
	// from when its text changed; mtime, from the sources, such as the files'
	// modification times; or off, nowhere. Default: auto.
	LastMod string `json:"lastmod,omitempty"`

	// Whether a page that names another one as its canonical is left out for
	// that: respect or ignore. Default: respect.
	Canonical string `json:"canonical,omitempty"`

	// Whether pages that no other page links to are listed: list or omit. Either
	// way the log names the first of them. Default: list.
	Orphans string `json:"orphans,omitempty"`

	// What else entries say: alternates, the pages' versions in other languages,
	// and images, those on the pages. Default: nothing.
	Extensions []string `json:"extensions,omitempty"`

	// Where pages come from; not an empty list. Default: one files source.
	SourcesRaw []json.RawMessage `json:"sources,omitempty" caddy:"namespace=http.sitemap.sources inline_key=source"`

	app    *App
	server *caddyhttp.Server
	logger *zap.Logger

	ctx      caddy.Context
	settings settings

	// For matching requests, decoded.
	stem       string
	basePrefix string

	sources     []Source
	sourceNames []string
	wantsRoot   bool         // a source takes the site's own root
	underscored pathPatterns // of sources, that include names which begin with "_"
	discovery   *discovery   // nil: no source discovers pages
	watches     bool         // requests show visits

	lists []*SourceURLs // as the Caddyfile has them

	lastSite     atomic.Pointer[lastSite]
	limiter      *crawl.Limiter // of fetches that upstreams answer, on all sites
	abandoned    atomic.Int32   // fetches that never came back
	onDemandTurn sync.Mutex     // held while a site on demand is refreshed: one at a time
	sample       sampler

	// Known once Caddy starts.
	mounts   mounts
	listener listener
}

// Rule says something of all pages that match one of its patterns.
type Rule struct {
	// Patterns as in Caddy's path matcher.
	Match []string `json:"match,omitempty"`

	// How often the pages change: always, hourly, daily, weekly, monthly,
	// yearly or never.
	ChangeFreq string `json:"changefreq,omitempty"`

	// The pages' weight within the site, 0.0 to 1.0.
	Priority *float64 `json:"priority,omitempty"`
}

// settings are a handler's settings, checked and in the form that a refresh and a request
// use.
type settings struct {
	path      string // of the index
	stem      string // path without .xml
	base      string // scheme and host of base_url, "" without one
	prefix    string // of base_url, percent-encoded, without the last slash
	refresh   time.Duration
	fixed     bool // refresh was given
	shardURLs int
	maxURLs   int
	robots    bool
	schema    sitemapxml.Schema
	exclude   pathPatterns
	rules     []rule
	digest    uint64 // of everything that shapes a snapshot

	crawl              crawlSettings
	dates              indexing.Mode
	canonical          bool // is respected
	omitOrphans        bool
	alternates, images bool
}

// hint applies the first rule that matches a page.
func (s *settings) hint(p *page.Page) {
	for i := range s.rules {
		if r := &s.rules[i]; r.match.Match(p.Path) {
			if p.ChangeFreq == 0 {
				p.ChangeFreq = r.changeFreq
			}
			if p.Priority == 0 {
				p.Priority = r.priority
			}
			return
		}
	}
}

// extract returns what to collect from pages, besides links.
func (s *settings) extract() htmlmeta.Options {
	return htmlmeta.Options{Alternates: s.alternates, Images: s.images}
}

type rule struct {
	match      pathPatterns
	changeFreq page.ChangeFreq
	priority   page.Priority
}

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.sitemap",
		New: func() caddy.Module { return new(Handler) },
	}
}

// Provision checks the settings, loads the sources and makes the handler known
// to the App. It reads and writes nothing outside of memory.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.ctx, h.logger = ctx, ctx.Logger()
	switch {
	case h.SourcesRaw == nil:
		h.SourcesRaw = []json.RawMessage{json.RawMessage(`{"source":"files"}`)}
	case len(h.SourcesRaw) == 0:
		return errors.New("sources is empty: name one, or leave it out for the default, files")
	}
	// Caddy forgets the raw sources once they are loaded.
	digest, err := h.digest()
	if err != nil {
		return fmt.Errorf("encoding the settings: %w", err)
	}
	if h.settings, err = h.compile(caddy.NewReplacer()); err != nil {
		return err
	}
	h.settings.digest = xxhash.Sum64(digest)
	h.limiter = crawl.NewLimiter(h.settings.crawl.rate, h.settings.crawl.concurrency, nil)
	h.stem, h.basePrefix = page.Unescape(h.settings.stem), page.Unescape(h.settings.prefix)
	sources, err := ctx.LoadModule(h, "SourcesRaw")
	if err != nil {
		return fmt.Errorf("loading sources: %w", err)
	}
	for _, s := range sources.([]any) {
		source, ok := s.(Source)
		if !ok {
			return fmt.Errorf("%T is no source of pages", s)
		}
		switch source := source.(type) {
		case *SourceFiles:
			h.wantsRoot = h.wantsRoot || source.Root == ""
			h.underscored = append(h.underscored, source.underscored()...)
		case *SourceTraffic:
			h.watches = true
		case discoverer:
		default:
			h.wantsRoot = true
		}
		if urls, ok := source.(*SourceURLs); ok {
			if i, err := urls.foreign(h.settings.base); err != nil {
				return fmt.Errorf("urls: line %d: '%s': %w", i+1, urls.URLs[i], err)
			}
		}
		h.sources = append(h.sources, source)
		h.sourceNames = append(h.sourceNames, caddy.GetModuleName(s))
	}
	if h.discovery, err = h.discovers(); err != nil {
		return err
	}
	server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok {
		return errors.New("a sitemap belongs in the routes of an HTTP server")
	}
	h.server = server
	app, err := ctx.App("sitemap")
	if err != nil {
		return fmt.Errorf("loading the sitemap app: %w", err)
	}
	h.app = app.(*App)
	h.app.register(h)
	return nil
}

// compile checks the settings and fills in their defaults.
func (h *Handler) compile(repl *caddy.Replacer) (settings, error) {
	s := settings{
		path:      repl.ReplaceKnown(h.Path, ""),
		refresh:   time.Duration(h.RefreshInterval),
		fixed:     h.RefreshInterval != 0,
		shardURLs: h.ShardURLs,
		maxURLs:   h.MaxURLs,
		robots:    h.RobotsTxt == nil || *h.RobotsTxt,
	}
	var err error
	switch {
	case h.Path == "":
		s.path = defaultPath
	case s.path == "":
		return s, fmt.Errorf("path '%s' is empty: a placeholder in it has no value", h.Path)
	}
	if s.path, err = checkPath(s.path); err != nil {
		return s, err
	}
	s.stem = strings.TrimSuffix(s.path, ".xml")
	base := repl.ReplaceKnown(h.BaseURL, "")
	if base == "" && h.BaseURL != "" {
		return s, fmt.Errorf("base_url '%s' is empty: a placeholder in it has no value", h.BaseURL)
	}
	if s.base, s.prefix, err = checkBaseURL(base); err != nil {
		return s, err
	}
	if !s.fixed {
		s.refresh = defaultRefresh
	}
	if s.refresh < minRefresh {
		return s, fmt.Errorf("refresh interval %s is too short: the shortest is %s", s.refresh, minRefresh)
	}
	if s.shardURLs == 0 {
		s.shardURLs = maxShardURLs
	}
	if s.shardURLs < 1 || s.shardURLs > maxShardURLs {
		return s, fmt.Errorf("shard_urls is %d: a shard holds 1 to %d pages", s.shardURLs, maxShardURLs)
	}
	if s.maxURLs == 0 {
		s.maxURLs = defaultMaxURLs
	}
	if s.maxURLs < 1 || s.maxURLs > largestMaxURLs {
		return s, fmt.Errorf("max_urls is %d: a site lists 1 to %d pages", s.maxURLs, largestMaxURLs)
	}
	if h.MaxURLs > s.shardURLs*maxIndexEntries {
		return s, fmt.Errorf("max_urls is %d: an index of %d shards of %d pages holds no more than %d", s.maxURLs, maxIndexEntries, s.shardURLs, s.shardURLs*maxIndexEntries)
	}
	if s.schema, err = sitemapxml.ParseSchema(h.Schema); err != nil {
		return s, err
	}
	if s.exclude, err = compilePatterns("exclude", replaced(repl, h.Exclude)); err != nil {
		return s, err
	}
	for _, r := range h.Rules {
		compiled, err := r.compile(repl)
		if err != nil {
			return s, err
		}
		s.rules = append(s.rules, compiled)
	}
	err = s.compileSelection(h)
	return s, err
}

func (r Rule) compile(repl *caddy.Replacer) (rule, error) {
	var c rule
	var err error
	if len(r.Match) == 0 {
		return c, errors.New("a rule has at least one path pattern")
	}
	if r.ChangeFreq == "" && r.Priority == nil {
		return c, fmt.Errorf("the rule for %s says nothing: give it a changefreq or a priority", strings.Join(r.Match, " "))
	}
	if c.match, err = compilePatterns("rule", replaced(repl, r.Match)); err != nil {
		return c, err
	}
	if r.ChangeFreq != "" {
		if c.changeFreq, err = page.ParseChangeFreq(r.ChangeFreq); err != nil {
			return c, err
		}
	}
	if r.Priority != nil {
		if c.priority, err = page.PriorityOf(*r.Priority); err != nil {
			return c, err
		}
	}
	return c, nil
}

func replaced(repl *caddy.Replacer, values []string) []string {
	out := make([]string, len(values))
	for i, value := range values {
		out[i] = repl.ReplaceKnown(value, "")
	}
	return out
}

// What is left of placeholders once those that have a value were replaced. A file's
// name may have braces, too, but hardly such a name in them.
var (
	bracedName = regexp.MustCompile(`\{[^{}]+\}`)
	dottedName = regexp.MustCompile(`\{[a-z_]+\.[^{}]+\}`)
)

// isClean reports whether a path without query has no dot segments and no empty ones,
// not even encoded, save one at its end.
func isClean(p string) bool {
	decoded := page.Unescape(p)
	clean := path.Clean(decoded)
	return !strings.ContainsAny(p, "?#") && (decoded == clean || decoded == clean+"/")
}

// checkPath returns the path in canonical form.
func checkPath(p string) (string, error) {
	if name := bracedName.FindString(p); name != "" {
		return "", fmt.Errorf("path '%s': %s has no value here: of placeholders, only global ones such as {env.*} are replaced", p, name)
	}
	canonical, err := page.Canonical(p)
	switch {
	case err != nil:
		return "", fmt.Errorf("path '%s': %w", p, err)
	case !isClean(p):
		return "", fmt.Errorf("path '%s': a clean path without query is wanted", p)
	case path.Ext(p) != ".xml", path.Base(p) == ".xml":
		return "", fmt.Errorf("path '%s': the name of a sitemap ends in .xml", p)
	}
	return canonical, nil
}

// checkBaseURL splits a base URL into scheme and host, and folder.
func checkBaseURL(raw string) (base, folder string, err error) {
	if raw == "" {
		return "", "", nil
	}
	if name := bracedName.FindString(raw); name != "" {
		return "", "", fmt.Errorf("base_url '%s': %s has no value here: of placeholders, only global ones such as {env.*} are replaced", raw, name)
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "", "", fmt.Errorf("base_url: %w", err)
	case u.Scheme != "http" && u.Scheme != "https":
		return "", "", fmt.Errorf("base_url '%s': it begins with https:// or http://", raw)
	case u.User != nil, u.RawQuery != "", u.Fragment != "", u.ForceQuery:
		return "", "", fmt.Errorf("base_url '%s': only scheme, host, port and folder belong in it", raw)
	}
	host, ok := origin.CleanHost(u.Hostname())
	if !ok {
		return "", "", fmt.Errorf("base_url '%s': '%s' is no host name", raw, u.Hostname())
	}
	port := u.Port()
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return "", "", fmt.Errorf("base_url '%s': a port is a number from 1 to 65535, not %s", raw, port)
		}
		port = strconv.FormatUint(n, 10)
	}
	folder, err = page.Canonical(u.EscapedPath() + "/")
	if err != nil {
		return "", "", fmt.Errorf("base_url '%s': %w", raw, err)
	}
	return origin.Of(u.Scheme, host, port), strings.TrimRight(folder, "/"), nil
}

// digest returns the settings that shape a snapshot, without refresh_interval and
// robots_txt.
func (h *Handler) digest() ([]byte, error) {
	encoded, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	var settings map[string]json.RawMessage
	if err := json.Unmarshal(encoded, &settings); err != nil {
		return nil, err
	}
	delete(settings, "refresh_interval")
	delete(settings, "robots_txt")
	return json.Marshal(settings)
}

// Validate reports settings that contradict each other.
func (h *Handler) Validate() error {
	s := h.settings
	if s.prefix != "" && h.Path != "" && strings.HasPrefix(s.path, s.prefix+"/") {
		return nil
	}
	if s.prefix != "" && path.Dir(s.path) != "/" {
		return fmt.Errorf("base_url has the folder %s, and path %s lies outside of it", s.prefix, s.path)
	}
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.Validator             = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
)
