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
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
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
	defaultRefresh  = time.Minute
	minRefresh      = time.Second
	maxShardURLs    = 50_000
	defaultMaxURLs  = 10_000_000
	largestMaxURLs  = 1_000_000_000
	maxIndexEntries = 50_000
	maxDocument     = 52_428_800
	minCrawlRate    = 1.0 / 3600
	maxCrawlRate    = 1000
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

	lastSite     atomic.Pointer[lastSite]
	limiter      *crawl.Limiter // of fetches that upstreams answer, on all sites
	abandoned    atomic.Int32   // fetches that never came back
	onDemandTurn sync.Mutex     // held while a site on demand is refreshed: one at a time
	sampling     sync.Once
	sampled      *zap.Logger // of sites on demand

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

// Crawl says how a site's pages are fetched.
type Crawl struct {
	// Whether pages are not fetched at all: they are then listed by name alone, with the
	// dates that their sources tell. Default: false.
	Off bool `json:"off,omitempty"`

	// The most requests a second that the crawl sends to upstreams. Files are fetched as
	// fast as half of the cores allow. From one an hour, 1/3600, to 1000. Default: 2.
	Rate float64 `json:"rate,omitempty"`

	// The most requests that the crawl may have under way at upstreams, up to 100.
	// Default: 1.
	Concurrency int `json:"concurrency,omitempty"`

	// URLs that are never fetched where only links or visitors name them: patterns as in
	// Caddy's path matcher, or words that no path segment may have (case-insensitive).
	// Default: logout, logoff, signout, unsubscribe, cart, basket, checkout, confirm,
	// verify, delete, add, remove.
	Disallow []string `json:"disallow,omitempty"`
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

type crawlSettings struct {
	off         bool
	rate        float64
	concurrency int
	disallow    *disallowed
}

type rule struct {
	match      pathPatterns
	changeFreq page.ChangeFreq
	priority   page.Priority
}

// hint applies the first rule that matches a page.
func (s *settings) hint(p *page.Page) {
	for _, r := range s.rules {
		if r.match.Match(p.Path) {
			p.ChangeFreq, p.Priority = cmp.Or(p.ChangeFreq, r.changeFreq), cmp.Or(p.Priority, r.priority)
			return
		}
	}
}

// extract returns what to collect from pages, besides links.
func (s *settings) extract() htmlmeta.Options {
	return htmlmeta.Options{Alternates: s.alternates, Images: s.images}
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
	var err error
	if h.settings, err = h.compile(caddy.NewReplacer()); err != nil {
		return err
	}
	h.settings.digest = h.digest() // Caddy forgets the raw sources once they are loaded
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
		h.sources, h.sourceNames = append(h.sources, source), append(h.sourceNames, caddy.GetModuleName(s))
	}
	if err := h.checkSources(); err != nil {
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

// check tells whether the settings of a Caddyfile are right so far. What has a global
// placeholder is left to Provision.
func (h *Handler) check() (err error) {
	if h.settings, err = h.compile(nil); err != nil {
		return err
	}
	return h.checkSources()
}

// checkSources notes what the handler does for its sources, and refuses those that do not go
// with the other settings.
func (h *Handler) checkSources() (err error) {
	for _, source := range h.sources {
		switch s := source.(type) {
		case *SourceFiles:
			h.wantsRoot = h.wantsRoot || s.Root == ""
			h.underscored = append(h.underscored, s.underscored()...)
		case *SourceURLs:
			if err := s.foreign(h.settings.base); err != nil {
				return err
			}
		case *SourceTraffic:
			h.watches = true
		case discoverer:
		default:
			h.wantsRoot = true
		}
	}
	h.discovery, err = h.discovers()
	return err
}

// digest is of the settings that shape a snapshot: all but refresh_interval and robots_txt.
func (h *Handler) digest() uint64 {
	encoded, _ := json.Marshal([]any{h.Path, h.BaseURL, h.ShardURLs, h.MaxURLs, h.Schema, h.Exclude, h.Rules,
		h.Crawl, h.LastMod, h.Canonical, h.Orphans, h.Extensions, h.SourcesRaw})
	return xxhash.Sum64(encoded)
}

// compile checks the settings and fills in their defaults. Without a replacer, values with
// global placeholders are passed over.
func (h *Handler) compile(repl *caddy.Replacer) (s settings, err error) {
	s.robots = h.RobotsTxt == nil || *h.RobotsTxt
	if s.path, err = replaced(repl, "path", h.Path); err != nil {
		return s, err
	}
	if s.path, err = checkPath(cmp.Or(s.path, "/sitemap.xml")); err != nil {
		return s, err
	}
	s.stem = strings.TrimSuffix(s.path, ".xml")
	base, err := replaced(repl, "base_url", h.BaseURL)
	if err != nil {
		return s, err
	}
	if s.base, s.prefix, err = checkBaseURL(base); err != nil {
		return s, err
	}
	if s.prefix != "" && path.Dir(s.path) != "/" && !strings.HasPrefix(s.path, s.prefix+"/") {
		return s, fmt.Errorf("base_url has the folder %s, and path %s lies outside of it", s.prefix, s.path)
	}
	s.refresh, s.fixed = cmp.Or(time.Duration(h.RefreshInterval), defaultRefresh), h.RefreshInterval != 0
	if s.refresh < minRefresh {
		return s, fmt.Errorf("refresh interval %s is too short: the shortest is %s", s.refresh, minRefresh)
	}
	if s.shardURLs, err = inRange("shard_urls", h.ShardURLs, maxShardURLs, maxShardURLs); err != nil {
		return s, err
	}
	if s.maxURLs, err = inRange("max_urls", h.MaxURLs, defaultMaxURLs, largestMaxURLs); err != nil {
		return s, err
	}
	if most := s.shardURLs * maxIndexEntries; h.MaxURLs > most {
		return s, fmt.Errorf("max_urls is %d: an index of %d shards of %d pages holds no more than %d", s.maxURLs, maxIndexEntries, s.shardURLs, most)
	}
	if s.schema, err = sitemapxml.ParseSchema(h.Schema); err != nil {
		return s, err
	}
	if s.exclude, err = replacedPatterns(repl, "exclude", h.Exclude); err != nil {
		return s, err
	}
	for _, r := range h.Rules {
		compiled, err := r.compile(repl)
		if err != nil {
			return s, err
		}
		s.rules = append(s.rules, compiled)
	}
	if s.crawl, err = h.Crawl.compile(); err != nil {
		return s, err
	}
	return s, s.compileSelection(h)
}

func (r Rule) compile(repl *caddy.Replacer) (c rule, err error) {
	switch {
	case len(r.Match) == 0:
		return c, errors.New("a rule has at least one path pattern")
	case r.ChangeFreq == "" && r.Priority == nil:
		return c, fmt.Errorf("the rule for %s says nothing: give it a changefreq or a priority", strings.Join(r.Match, " "))
	}
	if c.match, err = replacedPatterns(repl, "rule", r.Match); err != nil {
		return c, err
	}
	if r.ChangeFreq != "" {
		if c.changeFreq, err = page.ParseChangeFreq(r.ChangeFreq); err != nil {
			return c, err
		}
	}
	if r.Priority != nil {
		c.priority, err = page.PriorityOf(*r.Priority)
	}
	return c, err
}

func (c *Crawl) compile() (s crawlSettings, err error) {
	if c == nil {
		c = new(Crawl)
	}
	s.off, s.rate = c.Off, cmp.Or(c.Rate, 2)
	switch {
	case c.Off && (c.Rate != 0 || c.Concurrency != 0 || c.Disallow != nil):
		return s, errors.New("crawl is off: its other settings have no effect")
	case !(s.rate >= minCrawlRate && s.rate <= maxCrawlRate):
		return s, fmt.Errorf("crawl rate is %v/s: it is at least one an hour and at most %d/s", c.Rate, maxCrawlRate)
	}
	if s.concurrency, err = inRange("crawl concurrency", c.Concurrency, 1, 100); err != nil {
		return s, err
	}
	words := c.Disallow
	if words == nil {
		words = defaultDisallow
	}
	s.disallow, err = compileDisallow(words)
	return s, err
}

// compileSelection checks the settings of what is made of what pages say.
func (s *settings) compileSelection(h *Handler) error {
	mode, err := choose("lastmod", h.LastMod, "auto", "mtime", "off")
	if err != nil {
		return err
	}
	s.dates = [...]indexing.Mode{indexing.Auto, indexing.ModTime, indexing.Off}[mode]
	canonical, err := choose("canonical", h.Canonical, "respect", "ignore")
	if err != nil {
		return err
	}
	orphans, err := choose("orphans", h.Orphans, "list", "omit")
	if err != nil {
		return err
	}
	s.canonical, s.omitOrphans = canonical == 0, orphans == 1
	for _, name := range h.Extensions {
		if _, err := choose("extensions", name, "alternates", "images"); err != nil {
			return err
		}
	}
	s.alternates, s.images = slices.Contains(h.Extensions, "alternates"), slices.Contains(h.Extensions, "images")
	switch {
	case !s.crawl.off:
	case len(h.Extensions) > 0:
		return errors.New("extensions come from fetched pages, and crawl is off")
	case s.omitOrphans:
		return errors.New("orphans are found by fetching pages, and crawl is off")
	case h.Canonical == "respect":
		return errors.New("canonicals are found by fetching pages, and crawl is off")
	case h.LastMod == "auto":
		return errors.New("lastmod auto needs fetched pages, and crawl is off: mtime takes what the sources tell")
	}
	return nil
}

// choose is which of some words a setting is; empty: the first.
func choose(setting, value string, words ...string) (int, error) {
	if i := slices.Index(words, cmp.Or(value, words[0])); i >= 0 {
		return i, nil
	}
	return 0, unrecognized(setting, value, words)
}

// inRange is a number from 1 on; 0: its default.
func inRange(setting string, n, byDefault, most int) (int, error) {
	if n = cmp.Or(n, byDefault); n < 1 || n > most {
		return 0, fmt.Errorf("%s is %d: it is 1 to %d", setting, n, most)
	}
	return n, nil
}

// bracedName is a placeholder, which is left where it has no value.
var bracedName = regexp.MustCompile(`\{[^{}]+\}`)

// isAdapting reports whether a value is to be passed over while a Caddyfile is adapted: it
// may have another one once the configuration is loaded. Placeholders of requests have none then.
func isAdapting(repl *caddy.Replacer, value string) bool {
	return repl == nil && strings.Contains(value, "{") && !strings.Contains(value, "{http.")
}

// replaced replaces global placeholders in a setting, and refuses others.
func replaced(repl *caddy.Replacer, setting, value string) (string, error) {
	if value == "" || isAdapting(repl, value) {
		return "", nil
	}
	out := value
	if repl != nil {
		out = repl.ReplaceKnown(value, "")
	}
	if out == "" {
		return "", fmt.Errorf("%s '%s' is empty: a placeholder in it has no value", setting, value)
	}
	if name := bracedName.FindString(out); name != "" {
		return "", fmt.Errorf("%s '%s': %s has no value here: of placeholders, only global ones such as {env.*} are replaced", setting, value, name)
	}
	return out, nil
}

// replacedPatterns are compiled patterns in which global placeholders are replaced.
func replacedPatterns(repl *caddy.Replacer, setting string, patterns []string) (pathPatterns, error) {
	var out []string
	for _, p := range patterns {
		if isAdapting(repl, p) {
			continue
		}
		if repl != nil {
			p = repl.ReplaceKnown(p, "")
		}
		out = append(out, p)
	}
	return compilePatterns(setting, out)
}

// isClean reports whether a path without query has no dot segments and no empty ones,
// not even encoded, save one at its end.
func isClean(p string) bool {
	decoded := page.Unescape(p)
	clean := path.Clean(decoded)
	return !strings.ContainsAny(p, "?#") && (decoded == clean || decoded == clean+"/")
}

// checkPath returns the path in canonical form.
func checkPath(p string) (string, error) {
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
	u, err := url.Parse(raw)
	if err != nil {
		return "", "", fmt.Errorf("base_url: %w", err)
	}
	host, isHost := origin.CleanHost(u.Hostname())
	port, isPort := origin.CleanPort(u.Scheme, u.Host)
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		err = errors.New("it begins with https:// or http://")
	case u.User != nil, u.RawQuery != "", u.Fragment != "", u.ForceQuery:
		err = errors.New("only scheme, host, port and folder belong in it")
	case !isHost:
		err = fmt.Errorf("'%s' is no host name", u.Hostname())
	case !isPort:
		err = fmt.Errorf("a port is a number from 1 to 65535, not %s", u.Port())
	default:
		folder, err = page.Canonical(u.EscapedPath() + "/")
	}
	if err != nil {
		return "", "", fmt.Errorf("base_url '%s': %w", raw, err)
	}
	return origin.Of(u.Scheme, host, port), strings.TrimRight(folder, "/"), nil
}

// expandState replaces the placeholders of a state setting, unless a Caddyfile is adapted.
// The folder is absolute then; "" is the default's, and "off" none.
func expandState(state string, repl *caddy.Replacer) (string, error) {
	switch {
	case state == "", state == noState, isAdapting(repl, state):
		return state, nil
	case !strings.ContainsAny(state, `/\{`): // which would lie in the working directory
		return "", fmt.Errorf("state '%s': a folder such as /var/lib/caddy/sitemap is wanted, or off", state)
	case repl == nil:
		repl = caddy.NewEmptyReplacer()
	}
	folder, err := repl.ReplaceOrErr(state, true, true)
	if err != nil {
		return "", fmt.Errorf("state '%s': %w", state, err)
	}
	if folder == noState {
		return folder, nil
	}
	return caddy.FastAbs(folder)
}

// Validate reports a state setting that is no folder.
func (a *App) Validate() error {
	_, err := expandState(a.State, caddy.NewReplacer())
	return err
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddy.Validator             = (*App)(nil)
)
