// Package sitemap is a Caddy module that keeps /sitemap.xml, its shards and the Sitemap line in /robots.txt of a site
// up to date. It lists the pages that return 200 and are indexable, with the dates on which their texts changed.
//
// One line in the block of a site is enough:
//
//	example.com {
//		root * /srv/www
//		sitemap
//		file_server
//	}
//
// The modules of this package are
//   - [Handler], http.handlers.sitemap: the directive
//   - [App], sitemap: the global option
//   - [SourceFiles], [SourceURLs], [SourceLinks], [SourceAccessLog] and [SourceTraffic], in
//     http.sitemap.sources: where pages come from; modules of others implement [Source]
package sitemap

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/cespare/xxhash/v2"
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/announce"
	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
	"github.com/seed3295b519/caddy-sitemap/internal/logonce"
	"github.com/seed3295b519/caddy-sitemap/internal/option"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

func init() {
	caddy.RegisterModule(new(Handler))
}

// The protocol's bounds, and the crawl's.
const (
	maxEntries   = 50_000 // of a shard, and of an index
	maxCrawlRate = 1000
)

// Handler generates and serves XML sitemaps: an index, its shards and the Sitemap line in robots.txt, for every site
// whose requests reach it. Pages come from its sources. Each page is requested inside of the server, as an anonymous
// visitor, and is listed only while it returns 200 and is indexable. This happens in the background: a request for a
// document of the sitemap is answered from memory, and all other requests go to the next handler untouched.
//
// Every setting is optional. A Caddyfile with some of them:
//
//	example.com {
//		root * /srv/www
//		sitemap {
//			refresh 15m
//			exclude /print/*
//			files
//			urls    /etc/caddy/more.txt
//		}
//		file_server
//	}
//
// The same in JSON, which comes before the handlers that respond, such as `file_server`:
//
//	{
//		"handler": "sitemap",
//		"refresh_interval": "15m",
//		"exclude": ["/print/*"],
//		"sources": [
//			{"source": "files"},
//			{"source": "urls", "from": ["/etc/caddy/more.txt"]}
//		]
//	}
//
// Path patterns are those of Caddy's `path` matcher. Placeholders are replaced only where the
// description of a setting says so; elsewhere they are errors, but text in a URL of a list.
type Handler struct {
	// The path of the sitemap, or of its index if it has more than one document. It ends in `.xml`. The shards lie
	// beside it. Pages outside of its folder are not listed, as the protocol requires. Default: `/sitemap.xml`.
	Path string `json:"path,omitempty"`

	// The scheme, host and folder of every listed URL, such as `https://example.com`. With it there is one site,
	// whatever the Host header says. Pages outside of the folder are not listed. Global placeholders, such as
	// `{env.BASE_URL}`, are replaced. Default: the scheme, host and port of each site.
	BaseURL string `json:"base_url,omitempty"`

	// The time between the starts of two refreshes, at least `1s`. Refreshes of a site never
	// overlap. Default: `1m`, or 20 times what gathering, selecting and building took last, if that
	// is longer (fetching does not count); once an hour for a site of files alone while the kernel
	// tells of their changes.
	RefreshInterval caddy.Duration `json:"refresh_interval,omitempty"`

	// The maximum number of pages in a shard, 1 to 50000. Shards differ in size, so that adding a page changes
	// one or two of them: they have two fifths as many pages on average. Default: 50000.
	ShardURLs int `json:"shard_urls,omitempty"`

	// The maximum number of pages in all, 1 to 1000000000, and at most 50000 times `shard_urls`. The last ones
	// by path are left out, counted and logged. Default: 10000000.
	MaxURLs int `json:"max_urls,omitempty"`

	// Whether `/robots.txt` names the sitemap. The line is added to the robots.txt of the site as it
	// is served; no file is changed. Default: true.
	RobotsTxt *bool `json:"robots_txt,omitempty"`

	// Whether an Atom feed of the 500 pages that changed last is served beside the sitemap, at its path with `.atom` in
	// place of `.xml`, with their titles and descriptions. `/robots.txt` names it, too. It needs dates: `lastmod` must
	// not be `off`. Default: false.
	Feed bool `json:"feed,omitempty"`

	// Whether pages for people are served at the path of the sitemap with `.html` in place of `.xml`: all that is
	// listed, by section or folder, with titles, dates and a filter. `true` gives the usual look. Default: none.
	HTML *People `json:"html,omitempty"`

	// Whether a news sitemap is served beside the sitemap, and of which publication. Its path is that of the sitemap with
	// `-news.xml` in place of `.xml`; `/robots.txt` names it, too. It needs fetched pages, and
	// the schema `0.9`. Default: none.
	News *News `json:"news,omitempty"`

	// Whether an [llms.txt] for language models is served in the site's folder, unless the site has one itself: the title and
	// description of the front page, and the 500 pages to which most others link, by folder, with their titles and
	// descriptions. It needs fetched pages. Default: false.
	//
	// [llms.txt]: https://llmstxt.org
	LLMs bool `json:"llms,omitempty"`

	// Whether the XML documents name a CSS stylesheet, with which browsers show them as a table. It is served at the
	// path of the sitemap with `.css` in place of `.xml`, unless the site has one there itself. Default: true.
	Stylesheet *bool `json:"stylesheet,omitempty"`

	// The version of the sitemap schema: `0.9` of sitemaps.org, or `0.84`, Google's first, which
	// some in-house search engines still read. Default: `0.9`.
	Schema string `json:"schema,omitempty"`

	// Path patterns of pages that are not listed: `/drafts` is one page, `/drafts/*` all pages below it.
	// Default: none.
	Exclude []string `json:"exclude,omitempty"`

	// The `changefreq` and `priority` of pages by path pattern. The first rule that matches a page
	// is used, for what its source does not set. Default: none.
	Rules []Rule `json:"rules,omitempty"`

	// Pages that have sitemaps of their own, such as `/sitemap-blog.xml`, beside those of all other pages. The first section
	// that matches a page has it. At most 100. Default: none.
	Sections []Section `json:"sections,omitempty"`

	// How pages are requested. Default: the defaults of its settings.
	Crawl *Crawl `json:"crawl,omitempty"`

	// The source of `lastmod`: `auto` is what pages declare and when their texts changed; `mtime` is what the sources
	// have, such as the modification times of files; `off` is none. Default: `auto`.
	LastMod string `json:"lastmod,omitempty"`

	// What to do with a page that names another one as its canonical: `respect` leaves it out, `ignore` lists it.
	// Default: `respect`.
	Canonical string `json:"canonical,omitempty"`

	// What to do with pages without incoming links: `list` or `omit` them. The log names the first
	// of them in both cases. Default: `list`.
	Orphans string `json:"orphans,omitempty"`

	// What else is listed with a page: `alternates`, its versions in other languages that link back to it, `images`, the
	// images on it, and `videos`. The page names the first two, and lists and existing sitemaps all of them. An image of the
	// site itself is listed only while it returns 200. Default: none.
	Extensions []string `json:"extensions,omitempty"`

	// Whether and how search engines are told which pages changed, by IndexNow. An empty object turns it on. It needs
	// fetched pages. Default: they are not told.
	IndexNow *IndexNow `json:"indexnow,omitempty"`

	// URLs that are requested when the sitemap has changed, at most once an hour, for search engines that take the
	// ping of sitemaps.org, such as `https://search.example.com/ping?sitemap={sitemap}`. `{sitemap}` is replaced with
	// the escaped URL of the sitemap; other placeholders are not. Default: none.
	Ping []string `json:"ping,omitempty"`

	// URLs of [WebSub] hubs that are told when the feed has changed, such as `https://pubsubhubbub.appspot.com/`. The feed
	// names them, so that readers can subscribe. They need `feed`. Default: none.
	//
	// [WebSub]: https://www.w3.org/TR/websub/
	Hubs []string `json:"hubs,omitempty"`

	// Where pages come from. The pages of all sources become one list. Default: `files`; where an upstream returns the
	// front page of a site, and it is no file, `links`. The sitemap that the site has without this one is then read as
	// a list, too.
	SourcesRaw []json.RawMessage `json:"sources,omitempty" caddy:"namespace=http.sitemap.sources inline_key=source"`

	app    *App
	server *caddyhttp.Server
	logger *zap.Logger

	ctx      caddy.Context
	settings settings

	sources       []input
	isDefault     bool         // no source is written
	byLinks       *discovery   // of sites whose pages are found by links, as no source is written; nil: there are none
	wantsRoot     bool         // a source uses the site's own root
	discovery     *discovery   // nil: no source discovers pages
	logs          []*logReader // one for each access_log source
	recordsVisits bool         // there is a traffic source

	limiter    *crawl.Limiter // of requests to upstreams, of all sites
	abandoned  atomic.Int32   // fetches that have not returned
	firstLooks *crawl.Limiter // of first looks at hosts that visitors named

	// Set by App.Start, and read once App.started is closed.
	mounts   mounts
	listener address // where the server listens, without a host; with a base URL, the site's address

	// followsPort is set if sites have the port of their visitors' Host headers: nothing names hosts, and no proxy is
	// trusted to say what they requested, so a port mapping of a container shows only there.
	followsPort bool
}

// Rule sets the change frequency and priority of the pages that match one of its patterns.
//
//	sitemap {
//		rule /news/* /live {
//			changefreq hourly
//			priority   0.8
//		}
//	}
//
// In JSON:
//
//	{"handler": "sitemap", "rules": [
//		{"match": ["/news/*", "/live"], "changefreq": "hourly", "priority": 0.8}
//	]}
type Rule struct {
	// Path patterns, at least one.
	Match []string `json:"match,omitempty"`

	// How often the pages change: `always`, `hourly`, `daily`, `weekly`, `monthly`, `yearly` or `never`. Default: none.
	ChangeFreq string `json:"changefreq,omitempty"`

	// The weight of the pages within the site, 0.0 to 1.0, rounded to hundredths. Default: none.
	Priority *float64 `json:"priority,omitempty"`

	match      *notedPatterns
	changeFreq page.ChangeFreq
	priority   page.Priority
}

// Crawl sets how the pages of a site are requested.
//
//	sitemap {
//		crawl {
//			rate        5/s
//			concurrency 2
//			disallow    logout /internal/*
//		}
//	}
//
// In JSON:
//
//	{"handler": "sitemap", "crawl": {"rate": 5, "concurrency": 2, "disallow": ["logout", "/internal/*"]}}
type Crawl struct {
	// Whether no page is requested. All pages that the sources name are listed then, with the dates of the sources. The
	// other settings of the crawl must not be set, nor what needs fetched pages: `lastmod` `auto`, `canonical` `respect`,
	// `orphans` `omit`, `extensions`, `news`, `llms`, `indexnow`, and the sources `links`, `access_log` and `traffic`.
	// Default: false.
	Off bool `json:"off,omitempty"`

	// The maximum number of requests to upstreams per second, from 1/3600, one an hour, to 1000, besides those of first
	// looks at hosts that only visitors name. Files are requested as fast as half of the cores allow. Default: 2.
	Rate float64 `json:"rate,omitempty"`

	// The maximum number of simultaneous requests to upstreams, 1 to 100; as many more for all hosts that only visitors
	// name. Default: 1.
	Concurrency int `json:"concurrency,omitempty"`

	// Path patterns, and words of path segments, that are never requested if only links or visitors name them. A word
	// matches whole words in any case: `add` matches `/add-to-cart` and `/how-to-add-a-user`, not `/address`. Default:
	// paths that look like actions, by the place of a verb in them: `/logout`, `/items/7/delete` and `/add-to-cart`, but
	// neither `/how-to-delete-a-branch` nor `/wiki/Delete`. A list replaces the default.
	Disallow []string `json:"disallow,omitempty"`

	// Whether the site is looked at again soon after somebody who is signed in may have saved something: a request with the
	// method POST, PUT, PATCH or DELETE and a cookie or an Authorization header, whose response has a status below 400.
	// Default: true.
	Writes *bool `json:"writes,omitempty"`

	words    page.Words // of disallow
	patterns pathPatterns
}

// disallows returns the word or pattern that a path is not fetched for; "": none.
func (s *Crawl) disallows(path string) string {
	if s.Disallow == nil {
		return page.Action(path)
	}
	return cmp.Or(s.words.Match(path), s.patterns.which(path))
}

// looks reports whether the site is looked at again after writes.
func (s *Crawl) looks() bool { return !s.Off && (s.Writes == nil || *s.Writes) }

// settings are a handler's settings, checked and in the form that a refresh and a request use.
type settings struct {
	path      string        // of the index, percent-encoded
	base      string        // scheme, host and port of base_url; "": there is none
	prefix    string        // folder of base_url, percent-encoded, without the last slash
	stem      string        // path without .xml, decoded
	folder    string        // prefix, decoded
	interval  time.Duration // between refreshes
	shardURLs int
	maxURLs   int
	robots    bool
	schema    document.Schema
	exclude   pathPatterns
	rules     []Rule
	sections  sections
	names     *regexp.Regexp // of documents: see document.Names
	crawl     Crawl
	digest    uint64 // of everything that shapes a snapshot

	dates            indexing.Mode
	ignoreCanonicals bool
	omitOrphans      bool
	extract          html.Options
	beside           document.Beside // without the site's URLs
	announce         announce.Config // without what it has of a site
}

// hint applies the first rule that matches a page.
func (s *settings) hint(p *page.Page) {
	for _, r := range s.rules {
		if r.match.Match(p.Path) {
			p.ChangeFreq = cmp.Or(p.ChangeFreq, r.changeFreq)
			p.Priority = cmp.Or(p.Priority, r.priority)
			return
		}
	}
}

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.sitemap", New: func() caddy.Module { return new(Handler) }}
}

// shaping is the configuration of a handler as far as it shapes a snapshot. A handler that differs in it from the one before
// goes on from records alone. The fields beside the Handler hide those of it that are left out: a new option counts unless it
// is named here.
type shaping struct {
	*Handler
	RefreshInterval any `json:"refresh_interval,omitempty"`
	RobotsTxt       any `json:"robots_txt,omitempty"`
	IndexNow        any `json:"indexnow,omitempty"`
	Ping            any `json:"ping,omitempty"`
}

// digest returns a hash of what shapes a snapshot.
func (h *Handler) digest() uint64 {
	encoded, _ := json.Marshal(shaping{Handler: h}) // strings and numbers, without an error
	return xxhash.Sum64(encoded)
}

// Provision checks the settings, loads the sources and makes the handler known to the App. It reads
// and writes nothing outside of memory.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.ctx = ctx
	h.logger = ctx.Logger()
	h.isDefault = len(h.SourcesRaw) == 0
	digest := h.digest() // now, since LoadModule clears the raw sources
	if h.isDefault {
		h.SourcesRaw = []json.RawMessage{json.RawMessage(`{"source":"files"}`)}
	}
	sources, err := ctx.LoadModule(h, "SourcesRaw")
	if err != nil {
		return fmt.Errorf("loading sources: %w", err)
	}
	for _, s := range sources.([]any) {
		source, err := inputOf(s)
		if err != nil {
			return err
		}
		h.sources = append(h.sources, source)
	}
	base, err := caddy.NewReplacer().ReplaceOrErr(h.BaseURL, true, true)
	if err != nil {
		return fmt.Errorf("base_url: %w", err)
	}
	if err := h.compile(base); err != nil {
		return err
	}
	if err := h.checkHubs(); err != nil {
		return err
	}
	h.settings.digest = digest
	h.limiter = crawl.NewLimiter(h.settings.crawl.Rate, h.settings.crawl.Concurrency)
	h.firstLooks = crawl.NewLimiter(firstLooksRate, firstLooksAtOnce)
	h.logs, err = h.logReaders()
	if err != nil {
		return err
	}
	server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok {
		return errors.New("the sitemap handler must be in the routes of an HTTP server")
	}
	app, err := ctx.App("sitemap")
	if err != nil {
		return fmt.Errorf("loading the sitemap app: %w", err)
	}
	h.server = server
	h.app = app.(*App)
	h.app.handlers = append(h.app.handlers, h)
	// One for all handlers: it has half a megabyte of counters.
	if h.app.sampled == nil {
		h.app.sampled = logonce.PerMinute(h.logger)
	}
	return nil
}

// compile checks the settings, fills in their defaults, and notes what the handler does for its
// sources. base is base_url; "" where there is none, or its placeholders have no value yet.
func (h *Handler) compile(base string) error {
	c := new(option.Checker)
	s := &h.settings
	*s = settings{
		interval:         cmp.Or(time.Duration(h.RefreshInterval), time.Minute),
		shardURLs:        c.InRange("shard_urls", h.ShardURLs, maxEntries, maxEntries),
		maxURLs:          c.InRange("max_urls", h.MaxURLs, 10_000_000, 1_000_000_000),
		robots:           h.RobotsTxt == nil || *h.RobotsTxt,
		schema:           document.Schema(c.Choose("schema", h.Schema, "0.9", "0.84")),
		exclude:          compilePatterns(c, "exclude", h.Exclude),
		sections:         compileSections(c, h.Sections),
		crawl:            cmp.Or(h.Crawl, new(Crawl)).compile(c),
		dates:            indexing.Mode(c.Choose("lastmod", h.LastMod, "auto", "mtime", "off")),
		ignoreCanonicals: c.Choose("canonical", h.Canonical, "respect", "ignore") == 1,
		omitOrphans:      c.Choose("orphans", h.Orphans, "list", "omit") == 1,
		extract: html.Options{
			Alternates:   slices.Contains(h.Extensions, "alternates"),
			Images:       slices.Contains(h.Extensions, "images"),
			Videos:       slices.Contains(h.Extensions, "videos"),
			Titles:       h.Feed || h.HTML.isOn() || h.News != nil || h.LLMs,
			Descriptions: h.Feed || h.LLMs,
			Articles:     h.Feed || h.HTML.isOn() || h.News != nil,
			Markdown:     h.LLMs,
		},
		beside: document.Beside{
			People:     h.HTML.compile(c),
			Feed:       h.Feed,
			LLMs:       h.LLMs,
			Stylesheet: h.Stylesheet == nil || *h.Stylesheet,
			Hubs:       h.Hubs,
		},
	}
	c.Refuse(h.Feed && s.dates == indexing.Off, "a feed needs dates: remove 'lastmod off', or feed")
	h.compilePath(c, base)
	c.Refuse(s.interval < time.Second, "refresh interval %s is too short: the shortest is 1s", s.interval)
	// The product overflows the int of a 32-bit system.
	most := int64(s.shardURLs) * maxEntries
	c.Refuse(int64(h.MaxURLs) > most, "max_urls is %d: an index of %d shards of %d pages holds no more than %d",
		h.MaxURLs, maxEntries, s.shardURLs, most)
	for _, r := range h.Rules {
		s.rules = append(s.rules, r.compile(c))
	}
	for _, name := range h.Extensions {
		c.Choose("extensions", name, "alternates", "images", "videos")
	}
	c.Refuse(s.crawl.Off && h.needsPages(),
		"crawl is off: extensions, 'orphans omit', 'canonical respect' and 'lastmod auto' need fetched pages")
	h.compileNews(c)
	// Without titles, descriptions and links, it would be a list of paths.
	c.Refuse(s.crawl.Off && h.LLMs, "crawl is off: llms needs fetched pages: remove 'crawl off', or llms")
	h.compileAnnouncements(c)
	h.checkSources(c)
	if c.Err != nil {
		return c.Err
	}
	s.names = document.Names(s.sections.names(), s.beside)
	return h.compileDiscoveries()
}

// needsPages reports whether a setting that is given, be it the default, has an effect only where pages are fetched.
func (h *Handler) needsPages() bool {
	return len(h.Extensions) > 0 ||
		h.Orphans == "omit" ||
		h.Canonical == "respect" ||
		h.LastMod == "auto"
}

// compileDiscoveries joins the settings of the sources that discover pages: those that are written, and those of a site that
// turns out to be an application's where none is.
func (h *Handler) compileDiscoveries() (err error) {
	if h.isDefault && !h.settings.crawl.Off {
		h.byLinks, err = joinDiscoveries(onlyLinks, false)
		if err != nil {
			return err
		}
	}
	h.discovery, err = joinDiscoveries(h.sources, h.settings.crawl.Off)
	return err
}

// compilePath checks where the site and its sitemap are.
func (h *Handler) compilePath(c *option.Checker, base string) {
	s := &h.settings
	var err error
	if base != "" {
		s.base, s.prefix, err = origin.ParseBase(base)
		c.Refuse(err != nil, "base_url '%s': %w", base, err)
	}
	given := cmp.Or(h.Path, "/sitemap.xml")
	s.path, err = page.Normal(given)
	isClean := err == nil && page.IsClean(given) && !strings.Contains(given, "{")
	c.Refuse(!isClean, "path '%s': use a clean path such as /sitemap.xml", given)
	name := path.Base(given)
	c.Refuse(path.Ext(given) != ".xml" || name == ".xml", "path '%s': the name of a sitemap must end in .xml", given)
	c.Refuse(h.HTML.isOn() && name == "index.xml",
		"path '%s': with html, use another name: index.html is the page of a folder", given)
	c.Refuse(h.LLMs && name == "llms.xml", "path '%s': with llms, use another name: llms.txt would be its list of URLs", given)
	isOutside := s.prefix != "" && path.Dir(s.path) != "/" && !strings.HasPrefix(s.path, s.prefix+"/")
	c.Refuse(isOutside,
		"base_url has the folder %s, and path %s lies outside of it", s.prefix, s.path)
	s.stem = page.Unescape(strings.TrimSuffix(s.path, ".xml"))
	s.folder = page.Unescape(s.prefix)
}

// checkSources checks the settings of the sources, and notes what the handler does for them. Those of sources that
// discover pages are checked together: see joinDiscoveries.
func (h *Handler) checkSources(c *option.Checker) {
	for _, source := range h.sources {
		switch source := source.(type) {
		case *SourceFiles:
			c.Note(source.check())
			h.wantsRoot = h.wantsRoot || source.Root == ""
		case *SourceURLs:
			c.Note(source.check(h.settings.base))
		case *SourceTraffic:
			h.recordsVisits = true
		case discoverer:
		default: // a guest gets the root in its Refresh
			h.wantsRoot = true
		}
	}
}

func (r Rule) compile(c *option.Checker) Rule {
	c.Refuse(len(r.Match) == 0, "a rule needs at least one path pattern")
	c.Refuse(r.ChangeFreq == "" && r.Priority == nil,
		"the rule for %s sets nothing: give it a changefreq or a priority", strings.Join(r.Match, " "))
	r.match = &notedPatterns{pathPatterns: compilePatterns(c, "rule", r.Match)}
	var err error
	if r.ChangeFreq != "" {
		r.changeFreq, err = page.ParseChangeFreq(r.ChangeFreq)
		c.Note(err)
	}
	if r.Priority != nil {
		r.priority, err = page.PriorityOf(*r.Priority)
		c.Note(err)
	}
	return r
}

func (s Crawl) compile(c *option.Checker) Crawl {
	hasOthers := s.Rate != 0 || s.Concurrency != 0 || s.Disallow != nil || s.Writes != nil
	c.Refuse(s.Off && hasOthers, "crawl is off, so its other settings have no effect")
	s.Concurrency = c.InRange("crawl concurrency", s.Concurrency, 1, 100)
	s.Rate = cmp.Or(s.Rate, 2)
	isRate := s.Rate >= 1.0/3600 && s.Rate <= maxCrawlRate // and no NaN
	c.Refuse(!isRate, "crawl rate is %v/s: use at least one an hour and at most %d/s", s.Rate, maxCrawlRate)
	var patterns []string
	for _, word := range s.Disallow {
		if strings.ContainsAny(word, "/*{") {
			patterns = append(patterns, word)
			continue
		}
		err := s.words.Add(word)
		c.Refuse(err != nil, "crawl disallow %w", err)
	}
	s.patterns = compilePatterns(c, "crawl disallow", patterns)
	return s
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
)
