package sitemap

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/sitemapxml"
	"github.com/seed3295b519/caddy-sitemap/internal/urllist"
)

func init() {
	httpcaddyfile.RegisterHandlerDirective("sitemap", parseCaddyfile)
	// Inside encode, so that it does not see our bytes twice; behind basic_auth,
	// so that it guards the sitemap as it guards the pages.
	httpcaddyfile.RegisterDirectiveOrder("sitemap", httpcaddyfile.Before, "templates")
}

// sourceNamespace is where guest modules register sources.
const sourceNamespace = "http.sitemap.sources"

// The subdirectives of each block.
var (
	handlerWords = []string{
		"path", "base_url", "refresh", "shard_urls", "max_urls", "robots_txt", "schema", "exclude", "rule",
		"crawl", "lastmod", "canonical", "orphans", "extensions", "source",
	}
	crawlWords = []string{"off", "rate", "concurrency", "disallow"}
	ruleWords  = []string{"changefreq", "priority"}
	filesWords = []string{"at", "include", "exclude", "hide", "index", "clean_urls", "fs"}
)

// parseCaddyfile parses the sitemap directive.
// See UnmarshalCaddyfile for the syntax.
func parseCaddyfile(helper httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	h := new(Handler)
	err := h.UnmarshalCaddyfile(helper.Dispenser)
	return h, err
}

// UnmarshalCaddyfile parses the sitemap directive. Every setting is optional;
// the defaults are in parentheses:
//
//	sitemap [<matcher>] {
//	    path       <path>                # of the sitemap or its index (/sitemap.xml)
//	    base_url   <url>                 # scheme, host and folder of every URL (the site's own)
//	    refresh    <interval>            # at least 1s (1m, or longer where refreshing is slow)
//	    shard_urls <n>                   # most pages in a shard, up to 50000 (50000)
//	    max_urls   <n>                   # most pages in all (10000000)
//	    robots_txt on|off                # whether /robots.txt names the sitemap (on)
//	    schema     0.9|0.84              # version of the sitemap schema (0.9)
//	    exclude    <path-pattern...>     # pages that are not listed
//	    rule <path-pattern...> {         # what is said of pages; the first match wins
//	        changefreq always|hourly|daily|weekly|monthly|yearly|never
//	        priority   <0.0–1.0>
//	    }
//	    crawl off                        # no page is fetched: names suffice
//	    crawl {                          # how pages are fetched
//	        rate        <n>/s            # requests to upstreams, or <n>/m (2/s)
//	        concurrency <n>              # requests under way at upstreams (1)
//	        disallow    <word or path-pattern...>
//	    }
//	    lastmod    auto|mtime|off        # where dates come from (auto)
//	    canonical  respect|ignore        # whether a page that names another one is left out (respect)
//	    orphans    list|omit             # pages that nothing links to (list)
//	    extensions alternates images     # what else is said of pages (nothing)
//	    files [<root>] {                 # the default source
//	        ...
//	    }
//	    urls <file or path...> {
//	        ...
//	    }
//	    access_log <file or pattern...> {
//	        ...
//	    }
//	    traffic {
//	        ...
//	    }
//	    links {
//	        ...
//	    }
//	    source <module> ...              # any module of http.sitemap.sources
//	}
//
// exclude, rule, disallow and the sources may be repeated. The name of a source module that
// is none of the words above may stand without source in front of it.
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume directive name
	if d.NextArg() {
		return d.Errf("unexpected argument '%s': the settings of a sitemap, such as path, belong in a block", d.Val())
	}
	set := make(settingsGiven)
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		start := mark(d)
		if err := h.unmarshalSetting(d, set); err != nil {
			return err
		}
		if err := h.check(); err != nil {
			return start.WrapErr(err)
		}
	}
	return checkLists(h.BaseURL, h.lists)
}

// checkLists refuses URLs in the Caddyfile that are none of base_url's, which may
// stand after them.
func checkLists(baseURL string, lists []*SourceURLs) error {
	base, _, err := checkBaseURL(literal(baseURL))
	if err != nil {
		return err
	}
	for _, list := range lists {
		if i, err := list.foreign(base); err != nil {
			return list.marks[i].Errf("'%s' is no URL of base_url: %w", list.URLs[i], err)
		}
	}
	return nil
}

func (h *Handler) unmarshalSetting(d *caddyfile.Dispenser, set settingsGiven) (err error) {
	switch d.Val() {
	case "path":
		h.Path, err = set.once(d)
	case "base_url":
		h.BaseURL, err = set.once(d)
	case "refresh":
		h.RefreshInterval, err = set.interval(d)
	case "shard_urls":
		h.ShardURLs, err = set.number(d)
	case "max_urls":
		h.MaxURLs, err = set.number(d)
	case "robots_txt":
		var value string
		if value, err = set.oneOf(d, "on", "off"); err == nil {
			on := value == "on"
			h.RobotsTxt = &on
		}
	case "schema":
		h.Schema, err = set.oneOf(d, sitemapxml.Schema09.String(), sitemapxml.Schema084.String())
	case "exclude":
		// Repeated ones add up, as file_server's hide does, so that a snippet and
		// the site that imports it can both exclude pages.
		h.Exclude, err = appendValues(h.Exclude, d)
	case "rule":
		h.Rules, err = appendRule(h.Rules, d)
	case "crawl":
		err = h.unmarshalCrawl(d, set)
	case "lastmod":
		h.LastMod, err = set.oneOf(d, lastModModes...)
	case "canonical":
		h.Canonical, err = set.oneOf(d, canonicalModes...)
	case "orphans":
		h.Orphans, err = set.oneOf(d, orphanModes...)
	case "extensions":
		h.Extensions, err = set.severalOf(d, extensionNames...)
	case "source":
		if !d.NextArg() {
			return d.Errf("source wants the name of a module of %s, such as files", sourceNamespace)
		}
		if !isSource(d.Val()) {
			return unrecognized(d, "source", sourceNames())
		}
		err = h.unmarshalSource(d)
	default:
		if !isSource(d.Val()) {
			return unrecognized(d, "subdirective", slices.Concat(handlerWords, sourceNames()))
		}
		err = h.unmarshalSource(d)
	}
	return err
}

// check puts the settings so far through what Provision and Validate check, so
// that the Caddyfile and JSON have the same rules and texts, but the Caddyfile
// names the line. What holds a placeholder is left to them.
func (h *Handler) check() error {
	c := &Handler{
		Path:            literal(h.Path),
		BaseURL:         literal(h.BaseURL),
		RefreshInterval: h.RefreshInterval,
		ShardURLs:       h.ShardURLs,
		MaxURLs:         h.MaxURLs,
		Schema:          h.Schema,
		Exclude:         literals(h.Exclude),
		Crawl:           h.Crawl,
		LastMod:         h.LastMod,
		Canonical:       h.Canonical,
		Orphans:         h.Orphans,
		Extensions:      h.Extensions,
	}
	for _, r := range h.Rules {
		if !slices.ContainsFunc(r.Match, mayBeReplaced) {
			c.Rules = append(c.Rules, r)
		}
	}
	var err error
	if c.settings, err = c.compile(caddy.NewEmptyReplacer()); err != nil {
		return err
	}
	c.sources, c.sourceNames = h.sources, h.sourceNames // those that discover pages
	if _, err := c.discovers(); err != nil {
		return err
	}
	return c.Validate()
}

func appendRule(rules []Rule, d *caddyfile.Dispenser) ([]Rule, error) {
	start := mark(d)
	r := Rule{Match: d.RemainingArgs()}
	if err := refuseEmpty(d, "rule", r.Match); err != nil {
		return nil, err
	}
	set := make(settingsGiven)
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		var err error
		switch d.Val() {
		case "changefreq":
			r.ChangeFreq, err = set.oneOf(d, page.ChangeFreqs()...)
		case "priority":
			r.Priority, err = set.priority(d)
		default:
			err = unrecognized(d, "subdirective", ruleWords)
		}
		if err != nil {
			return nil, err
		}
	}
	if pattern, ok := r.shadowedBy(rules); ok {
		return nil, start.Errf("the rule for %s is never used: an earlier one for %s matches first", strings.Join(r.Match, " "), pattern)
	}
	return append(rules, r), nil
}

// shadowedBy reports whether earlier rules leave no page to r, as far as that
// shows without comparing one pattern with another, and a pattern that says so.
func (r *Rule) shadowedBy(rules []Rule) (pattern string, ok bool) {
	var earlier []string
	for _, e := range rules {
		earlier = append(earlier, e.Match...)
	}
	for _, p := range r.Match {
		i := slices.IndexFunc(earlier, func(e string) bool {
			return e == "*" || e == "/*" || strings.EqualFold(e, p)
		})
		if i < 0 {
			return "", false
		}
		pattern = earlier[i]
	}
	return pattern, pattern != ""
}

// unmarshalCrawl parses how pages are fetched: off, or a block.
func (h *Handler) unmarshalCrawl(d *caddyfile.Dispenser, given settingsGiven) error {
	if err := given.add(d); err != nil {
		return err
	}
	start, set := mark(d), make(settingsGiven)
	h.Crawl = new(Crawl)
	switch args := d.RemainingArgs(); {
	case len(args) == 0:
	case len(args) == 1 && args[0] == "off":
		h.Crawl.Off, set["off"] = true, given["crawl"]
	case len(args) == 1 && nearest(args[0], []string{"off"}) != "":
		return d.Errf("unrecognized crawl '%s'; did you mean 'off'?", args[0])
	default:
		return d.Errf("crawl takes 'off' or a block, not '%s'", strings.Join(args, " "))
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		line := mark(d)
		if err := h.Crawl.unmarshalSetting(d, set); err != nil {
			return err
		}
		if _, err := h.Crawl.compile(); err != nil {
			return line.WrapErr(err)
		}
	}
	if len(set) == 0 {
		return start.Err("crawl is empty: write 'crawl off', or a block with rate, concurrency or disallow")
	}
	return nil
}

func (c *Crawl) unmarshalSetting(d *caddyfile.Dispenser, set settingsGiven) (err error) {
	switch d.Val() {
	case "off":
		if err = set.add(d); err == nil && d.NextArg() {
			err = d.Errf("off takes no value, not '%s'", d.Val())
		}
		c.Off = true
	case "rate":
		c.Rate, err = set.rate(d)
	case "concurrency":
		c.Concurrency, err = set.number(d)
	case "disallow":
		set["disallow"] = ""
		c.Disallow, err = appendValues(c.Disallow, d)
	default:
		err = unrecognized(d, "subdirective", crawlWords)
	}
	return err
}

// unmarshalSource parses the source whose name is d's token.
func (h *Handler) unmarshalSource(d *caddyfile.Dispenser) error {
	start, name := mark(d), d.Val()
	source, err := caddyfile.UnmarshalModule(d, sourceNamespace+"."+name)
	if err != nil {
		return err
	}
	if list, ok := source.(*SourceURLs); ok {
		h.lists = append(h.lists, list)
	}
	raw := caddyconfig.JSONModuleObject(source, "source", name, nil)
	if slices.ContainsFunc(h.SourcesRaw, func(other json.RawMessage) bool { return bytes.Equal(other, raw) }) {
		return start.Errf("source %s given twice with the same settings", name)
	}
	h.SourcesRaw = append(h.SourcesRaw, raw)
	if finder, ok := source.(discoverer); ok {
		h.sources, h.sourceNames = append(h.sources, finder), append(h.sourceNames, name)
	}
	return nil
}

// UnmarshalCaddyfile parses the files source. Every setting is optional; the
// defaults are in parentheses:
//
//	files [<root>] {                     # the folder on disk (the site's own root)
//	    at         <folder>              # URL folder under which the root is served (the site's own)
//	    include    <path-pattern...>     # which files are documents (*.html *.htm *.xhtml)
//	    exclude    <path-pattern...>     # which of them are left out all the same
//	    hide       <file...>             # what to hide, besides what file_server hides
//	    index      <name...>             # names of index files (file_server's, else index.html index.txt)
//	    clean_urls auto|on|off           # whether /about is listed for about.html (auto: as the server does)
//	    fs         <name>                # the file system (the site's own)
//	}
//
// include, exclude and hide may be repeated.
func (s *SourceFiles) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume module name
	whole := mark(d)
	switch args := d.RemainingArgs(); len(args) {
	case 0:
	case 1:
		if err := refuseEmpty(d, "files", args); err != nil {
			return err
		}
		s.Root = args[0]
	default:
		return d.Errf("files takes one root, not '%s': write it once for each, with at", strings.Join(args, " "))
	}
	set := make(settingsGiven)
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		start := mark(d)
		if err := s.unmarshalSetting(d, set); err != nil {
			return err
		}
		c := &SourceFiles{At: s.At, Include: s.Include, Exclude: s.Exclude, Index: s.Index}
		if err := c.check(); err != nil {
			return start.WrapErr(err)
		}
		for _, p := range s.Exclude {
			if slices.Contains(s.Include, p) {
				return start.Errf("files both includes and excludes %s", p)
			}
		}
	}
	if err := s.check(); err != nil {
		return whole.WrapErr(err)
	}
	return nil
}

func (s *SourceFiles) unmarshalSetting(d *caddyfile.Dispenser, set settingsGiven) (err error) {
	switch d.Val() {
	case "at":
		s.At, err = set.once(d)
	case "include":
		s.Include, err = appendValues(s.Include, d)
	case "exclude":
		s.Exclude, err = appendValues(s.Exclude, d)
	case "hide":
		s.Hide, err = appendValues(s.Hide, d)
	case "index":
		// Their order says which one is the folder's, so two lists are no one list.
		if err = set.add(d); err == nil {
			s.Index, err = values(d)
		}
	case "clean_urls":
		s.CleanURLs, err = set.oneOf(d, "auto", "on", "off")
	case "fs":
		s.FileSystem, err = set.once(d)
	default:
		err = unrecognized(d, "subdirective", filesWords)
	}
	return err
}

// UnmarshalCaddyfile parses the urls source: names of files, paths of the site
// that are fetched as a list, and a block with one URL a line, of which one kind
// at least is given:
//
//	urls <file or path...> {
//	    <url> [lastmod=<date>] [changefreq=<frequency>] [priority=<0.0–1.0>]
//	}
//
// A URL is absolute or begins with a slash; a date is W3C Datetime, such as
// 2006-01-02.
func (s *SourceURLs) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume module name
	start := mark(d)
	s.From = d.RemainingArgs()
	if err := refuseEmpty(d, "urls", s.From); err != nil {
		return err
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		words := append([]string{d.Val()}, d.RemainingArgs()...)
		line := strings.Join(words, " ")
		if _, err := urllist.ParseLine(line, ""); err != nil {
			return d.WrapErr(withNearestOption(err, words[1:]))
		}
		if err := refuseBlock(d, "a URL"); err != nil {
			return err
		}
		s.URLs, s.marks = append(s.URLs, line), append(s.marks, mark(d))
	}
	if len(s.From) == 0 && len(s.URLs) == 0 {
		return start.Err("urls has no URLs: name a file or a path of the site, or list them in a block")
	}
	return nil
}

// withNearestOption adds to an error of a URL's options what was likely meant.
func withNearestOption(err error, options []string) error {
	known := []string{"lastmod", "changefreq", "priority"}
	for _, option := range options {
		key, value, ok := strings.Cut(option, "=")
		if !ok {
			continue
		}
		if !slices.Contains(known, key) {
			if near := nearest(key, known); near != "" {
				return fmt.Errorf("%w; did you mean '%s='?", err, near)
			}
		}
		if key == "changefreq" && !slices.Contains(page.ChangeFreqs(), value) {
			if near := nearest(value, page.ChangeFreqs()); near != "" {
				return fmt.Errorf("%w; did you mean '%s'?", err, near)
			}
		}
	}
	return err
}

// settingsGiven are the settings that a block has had, and where. Its methods
// read a setting that may be given once, and whose name is d's token.
type settingsGiven map[string]string

func (set settingsGiven) add(d *caddyfile.Dispenser) error {
	if first, ok := set[d.Val()]; ok {
		return d.Errf("%s given twice, first at %s", d.Val(), first)
	}
	set[d.Val()] = fmt.Sprintf("%s:%d", d.File(), d.Line())
	return nil
}

// once reads one value.
func (set settingsGiven) once(d *caddyfile.Dispenser) (string, error) {
	if err := set.add(d); err != nil {
		return "", err
	}
	setting := d.Val()
	args, err := values(d)
	if err != nil {
		return "", err
	}
	if len(args) > 1 {
		return "", d.Errf("%s takes one value, not '%s'", setting, strings.Join(args, " "))
	}
	return args[0], nil
}

// fixed reads one value that cannot be a placeholder, because the JSON that the
// Caddyfile becomes does not hold it as text, or is not replaced later.
func (set settingsGiven) fixed(d *caddyfile.Dispenser) (string, error) {
	setting := d.Val()
	value, err := set.once(d)
	if err == nil && hasPlaceholder(value) {
		err = d.Errf("%s '%s': placeholders do not work here; {$NAME} stands for an environment variable", setting, value)
	}
	return value, err
}

// oneOf reads one of the words.
func (set settingsGiven) oneOf(d *caddyfile.Dispenser, words ...string) (string, error) {
	setting := d.Val()
	value, err := set.fixed(d)
	if err != nil || slices.Contains(words, value) {
		return value, err
	}
	return "", unrecognizedOf(d, setting, value, words)
}

// unrecognizedOf is the error for a setting's value that is none of the words.
func unrecognizedOf(d *caddyfile.Dispenser, setting, value string, words []string) error {
	if near := nearest(value, words); near != "" {
		return d.Errf("unrecognized %s '%s'; did you mean '%s'?", setting, value, near)
	}
	last := len(words) - 1
	return d.Errf("unrecognized %s '%s': use %s or %s", setting, value, strings.Join(words[:last], ", "), words[last])
}

// severalOf reads one or more of the words, each once.
func (set settingsGiven) severalOf(d *caddyfile.Dispenser, words ...string) ([]string, error) {
	if err := set.add(d); err != nil {
		return nil, err
	}
	setting := d.Val()
	var chosen []string
	for d.NextArg() {
		switch {
		case !slices.Contains(words, d.Val()):
			return nil, unrecognizedOf(d, setting, d.Val(), words)
		case slices.Contains(chosen, d.Val()):
			return nil, d.Errf("%s has '%s' twice", setting, d.Val())
		}
		chosen = append(chosen, d.Val())
	}
	if len(chosen) == 0 {
		return nil, d.Errf("%s wants a value", setting)
	}
	return chosen, refuseBlock(d, setting)
}

// rate reads a number a second or a minute, and returns it a second. Zero would be
// taken for the default.
func (set settingsGiven) rate(d *caddyfile.Dispenser) (float64, error) {
	setting := d.Val()
	value, err := set.fixed(d)
	if err != nil {
		return 0, err
	}
	n, err := parseRate(value)
	if err != nil {
		return 0, d.Errf("%s '%s': %v", setting, value, err)
	}
	return n, nil
}

var errRate = errors.New("a number a second or a minute is wanted, such as 2/s, 0.5/s or 30/m")

// parseRate reads a number a second or a minute, and returns it a second. The error
// is errRate.
func parseRate(value string) (float64, error) {
	number, unit, _ := strings.Cut(value, "/")
	n, err := strconv.ParseFloat(number, 64)
	seconds, ok := map[string]float64{"s": 1, "m": 60}[unit]
	if err != nil || !ok || !(n > 0) || strings.Trim(number, "0123456789.") != "" {
		return 0, errRate
	}
	return n / seconds, nil
}

// number reads a whole number. Zero would be taken for the default.
func (set settingsGiven) number(d *caddyfile.Dispenser) (int, error) {
	setting := d.Val()
	value, err := set.fixed(d)
	if err != nil {
		return 0, err
	}
	n, err := wholeNumber(value)
	if err != nil {
		return 0, d.Errf("%s '%s': a whole number from 1 on is wanted", setting, value)
	}
	return n, nil
}

// wholeNumber reads a number from 1 on.
func wholeNumber(value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err == nil && n < 1 {
		err = strconv.ErrRange
	}
	return n, err
}

// anyDuration reads a duration. examples are for who wrote something else.
func (set settingsGiven) anyDuration(d *caddyfile.Dispenser, examples string) (time.Duration, error) {
	setting := d.Val()
	value, err := set.fixed(d)
	if err != nil {
		return 0, err
	}
	dur, err := caddy.ParseDuration(value)
	if err != nil {
		return 0, d.Errf("%s '%s': a duration such as %s is wanted", setting, value, examples)
	}
	return dur, nil
}

// interval reads the time between two refreshes. Zero would be taken for the default.
func (set settingsGiven) interval(d *caddyfile.Dispenser) (caddy.Duration, error) {
	dur, err := set.anyDuration(d, "30s, 5m or 1d")
	if err != nil {
		return 0, err
	}
	if dur < minRefresh {
		return 0, d.Errf("refresh interval %s is too short: the shortest is %s", dur, minRefresh)
	}
	return caddy.Duration(dur), nil
}

func (set settingsGiven) priority(d *caddyfile.Dispenser) (*float64, error) {
	setting := d.Val()
	value, err := set.fixed(d)
	if err != nil {
		return nil, err
	}
	if _, err := page.ParsePriority(value); err != nil {
		return nil, d.Errf("%s %w", setting, err)
	}
	f, err := strconv.ParseFloat(value, 64)
	return &f, err
}

// values reads the one or more values of the setting whose name is d's token.
func values(d *caddyfile.Dispenser) ([]string, error) {
	setting := d.Val()
	args := d.RemainingArgs()
	if len(args) == 0 {
		return nil, d.Errf("%s wants a value", setting)
	}
	if err := refuseEmpty(d, setting, args); err != nil {
		return nil, err
	}
	return args, refuseBlock(d, setting)
}

// appendValues adds the values of a setting that may be repeated to those so far.
func appendValues(list []string, d *caddyfile.Dispenser) ([]string, error) {
	more, err := values(d)
	return append(list, more...), err
}

// refuseEmpty refuses "", which is what an environment variable without a value
// leaves behind in quotes.
func refuseEmpty(d *caddyfile.Dispenser, setting string, args []string) error {
	if slices.Contains(args, "") {
		return d.Errf("%s has an empty value", setting)
	}
	return nil
}

// refuseBlock refuses a block after the arguments of what takes none.
func refuseBlock(d *caddyfile.Dispenser, what string) error {
	if !d.Next() {
		return nil
	}
	block := d.Val() == "{" && !d.Token().Quoted()
	d.Prev()
	if block {
		return d.Errf("%s takes no block", what)
	}
	return nil
}

// mark returns a dispenser that stays at d's token, for errors that only show
// once its block has been read.
func mark(d *caddyfile.Dispenser) *caddyfile.Dispenser {
	m := caddyfile.NewDispenser([]caddyfile.Token{d.Token()})
	m.Next()
	return m
}

func hasPlaceholder(s string) bool { return strings.Contains(s, "{") }

// mayBeReplaced reports whether what is a placeholder, or looks like one, may have a
// value once the configuration is loaded. Those of requests have none then.
func mayBeReplaced(s string) bool { return hasPlaceholder(s) && !strings.Contains(s, "{http.") }

// literal is s, or "" if a placeholder in it may be replaced.
func literal(s string) string {
	if mayBeReplaced(s) {
		return ""
	}
	return s
}

func literals(list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), mayBeReplaced)
}

func isSource(name string) bool {
	_, err := caddy.GetModule(sourceNamespace + "." + name)
	return err == nil
}

// sourceNames are the names of all sources that this Caddy has, in order.
func sourceNames() []string {
	var names []string
	for _, m := range caddy.GetModules(sourceNamespace) {
		names = append(names, m.ID.Name())
	}
	return names
}

// unrecognized is the error for d's token, a word that is none of those known.
func unrecognized(d *caddyfile.Dispenser, kind string, known []string) error {
	if near := nearest(d.Val(), known); near != "" {
		return d.Errf("unrecognized %s '%s'; did you mean '%s'?", kind, d.Val(), near)
	}
	return d.Errf("unrecognized %s '%s'", kind, d.Val())
}

// nearest is the known word that was likely meant by word, "" if there is none:
// one that differs by few typing errors, else one of which word is a part, such
// as base for base_url, or that is a part of word, such as refresh of
// refresh_interval. Of equally near ones it is one that begins alike, else the
// first.
func nearest(word string, known []string) string {
	word = strings.ToLower(word)
	best, least := "", 0
	consider := func(k string, n int) {
		n *= 2
		if strings.HasPrefix(k, word) || strings.HasPrefix(word, k) {
			n--
		}
		if best == "" || n < least {
			best, least = k, n
		}
	}
	for _, k := range known {
		// Of two letters, none may be wrong: "no" is not "on".
		errs, shorter, longer := distance(word, k), min(len(word), len(k)), max(len(word), len(k))
		if errs < shorter && errs <= longer/3 {
			consider(k, errs)
		}
	}
	if best != "" {
		return best
	}
	for _, k := range known {
		if min(len(word), len(k)) >= 3 && (strings.Contains(k, word) || strings.Contains(word, k)) {
			consider(k, distance(word, k))
		}
	}
	return best
}

// distance counts the typing errors between two words: letters that are
// missing, too many or wrong, and neighbours that changed places
// (Damerau–Levenshtein, as optimal string alignment).
func distance(a, b string) int {
	const longest = 64 // no word that is known comes near it
	if len(a) > longest || len(b) > longest {
		return longest
	}
	var rows [longest + 1][longest + 1]int
	for i := range len(a) + 1 {
		rows[i][0] = i
	}
	for j := range len(b) + 1 {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			n := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				n = min(n, rows[i-2][j-2]+1)
			}
			rows[i][j] = n
		}
	}
	return rows[len(a)][len(b)]
}

// Interface guards
var (
	_ caddyfile.Unmarshaler = (*Handler)(nil)
	_ caddyfile.Unmarshaler = (*SourceFiles)(nil)
	_ caddyfile.Unmarshaler = (*SourceURLs)(nil)
)
