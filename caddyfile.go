package sitemap

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/spf13/cobra"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/urllist"
)

func init() {
	httpcaddyfile.RegisterGlobalOption("sitemap", parseGlobalOption)
	httpcaddyfile.RegisterDirective("sitemap", parseDirective)
	// Inside encode, so that it does not see our bytes twice; behind basic_auth,
	// so that it guards the sitemap as it guards the pages.
	httpcaddyfile.RegisterDirectiveOrder("sitemap", httpcaddyfile.Before, "templates")
}

// sourceNamespace is where guest modules register sources.
const sourceNamespace = "http.sitemap.sources"

// parseDirective parses the sitemap directive and its matcher.
func parseDirective(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
	h.Next() // consume directive name
	if h.NextArg() && h.Val()[:1] == "/" && path.Ext(h.Val()) == ".xml" {
		return nil, h.Errf("'%s' is a matcher here, and would keep other requests from the sitemap: use 'path %s' in its block", h.Val(), h.Val())
	}
	h.Reset()
	h.Next()
	matchers, err := h.ExtractMatcherSet()
	if err != nil {
		return nil, err
	}
	handler := new(Handler)
	if err := handler.UnmarshalCaddyfile(h.Dispenser); err != nil {
		return nil, err
	}
	return h.NewRoute(matchers, handler), nil
}

// UnmarshalCaddyfile parses the sitemap directive. Every option is optional; the defaults
// are in parentheses:
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
//	    rule <path-pattern...> {         # hints for matching pages; the first match wins
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
//	    <source> ...                     # files (the default), urls, access_log, traffic or links
//	    source <module> ...              # any module of http.sitemap.sources
//	}
//
// exclude, rule, disallow and the sources may be repeated.
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume directive name
	return option{name: "sitemap", block: h.options}.unmarshal(d, h.check)
}

func (h *Handler) options() options {
	const inRule = "write it into a rule: rule /news/* { changefreq daily }"
	all := options{
		{name: "path", usage: "<path>", set: text(&h.Path)},
		{name: "base_url", usage: "<url>", set: text(&h.BaseURL)},
		{name: "refresh", usage: "<interval>", set: value(&h.RefreshInterval, duration)},
		{name: "shard_urls", usage: "<n>", set: value(&h.ShardURLs, number)},
		{name: "max_urls", usage: "<n>", set: value(&h.MaxURLs, number)},
		{name: "robots_txt", usage: "on|off", set: value(&h.RobotsTxt, onOff)},
		{name: "schema", usage: "0.9|0.84", set: text(&h.Schema)},
		{name: "exclude", usage: "<path-pattern...>", set: add(&h.Exclude), repeats: true},
		{name: "rule", usage: "<path-pattern...>", repeats: true,
			set:   func(patterns []string) error { h.Rules = append(h.Rules, Rule{Match: patterns}); return nil },
			block: func() options { return h.Rules[len(h.Rules)-1].options() }},
		{name: "crawl", usage: "[off]", set: value(&h.Crawl, crawlOff), block: func() options {
			h.Crawl = cmp.Or(h.Crawl, new(Crawl))
			return h.Crawl.options()
		}},
		{name: "lastmod", usage: "auto|mtime|off", set: text(&h.LastMod)},
		{name: "canonical", usage: "respect|ignore", set: text(&h.Canonical)},
		{name: "orphans", usage: "list|omit", set: text(&h.Orphans)},
		{name: "extensions", usage: "alternates images...", set: add(&h.Extensions)},
		{name: "source", module: h.unmarshalSource},
		{name: "root", misplaced: "write 'root * <folder>' beside sitemap, or 'files <folder>' in its block"},
		{name: "changefreq", misplaced: inRule},
		{name: "priority", misplaced: inRule},
	}
	for _, name := range sourceNames() {
		all = append(all, option{name: name, module: h.unmarshalSource})
	}
	return all
}

func (r *Rule) options() options {
	return options{
		{name: "changefreq", usage: strings.Join(page.ChangeFreqs(), "|"), set: text(&r.ChangeFreq)},
		{name: "priority", usage: "<0.0–1.0>", set: value(&r.Priority, priority)},
	}
}

func (c *Crawl) options() options {
	return options{
		{name: "rate", usage: "<n>/s", set: value(&c.Rate, parseRate)},
		{name: "concurrency", usage: "<n>", set: value(&c.Concurrency, number)},
		{name: "disallow", usage: "<word or path-pattern...>", set: add(&c.Disallow), repeats: true},
	}
}

// unmarshalSource parses a source, with or without the word source before its name.
func (h *Handler) unmarshalSource(d *caddyfile.Dispenser) error {
	name := d.Val()
	if name == "source" {
		if !d.NextArg() {
			return d.Errf("source wants the name of a module of %s, such as files", sourceNamespace)
		}
		if name = d.Val(); !slices.Contains(sourceNames(), name) {
			return d.WrapErr(unrecognized("source", name, sourceNames()))
		}
	}
	module, err := caddyfile.UnmarshalModule(d, sourceNamespace+"."+name)
	if err != nil {
		return err
	}
	h.SourcesRaw = append(h.SourcesRaw, caddyconfig.JSONModuleObject(module, "source", name, nil))
	if source, ok := module.(Source); ok {
		h.sources, h.sourceNames = append(h.sources, source), append(h.sourceNames, name)
	}
	return nil
}

// sourceNames are the names of all sources that this Caddy has, in order.
func sourceNames() []string {
	var names []string
	for _, m := range caddy.GetModules(sourceNamespace) {
		names = append(names, m.ID.Name())
	}
	return names
}

// UnmarshalCaddyfile parses the files source. Every option is optional; the defaults are in
// parentheses:
//
//	files [<root>] {                       # the folder on disk (the site's own root)
//	    at           <folder>              # URL folder under which the root is served (the site's own)
//	    include      <path-pattern...>     # files that are documents, besides *.html *.htm *.xhtml
//	    include_only <path-pattern...>     # files that are documents, in place of those
//	    exclude      <path-pattern...>     # which of them are left out all the same
//	    hide         <file...>             # what to hide, besides what file_server hides
//	    index        <name...>             # names of index files (file_server's, else index.html index.txt)
//	    clean_urls   auto|on|off           # whether /about is listed for about.html (auto: as the server does)
//	    fs           <name>                # the file system (the site's own)
//	}
//
// All but at, index, clean_urls and fs may be repeated.
func (s *SourceFiles) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume module name
	return option{name: "files", usage: "[<root>]", set: text(&s.Root), block: func() options {
		return options{
			{name: "at", usage: "<folder>", set: text(&s.At)},
			{name: "include", usage: "<path-pattern...>", set: add(&s.Include), repeats: true},
			{name: "include_only", usage: "<path-pattern...>", set: add(&s.IncludeOnly), repeats: true},
			{name: "exclude", usage: "<path-pattern...>", set: add(&s.Exclude), repeats: true},
			{name: "hide", usage: "<file...>", set: add(&s.Hide), repeats: true},
			{name: "index", usage: "<name...>", set: add(&s.Index)}, // their order matters, so two lists are no one list
			{name: "clean_urls", usage: "auto|on|off", set: text(&s.CleanURLs)},
			{name: "fs", usage: "<name>", set: text(&s.FileSystem)},
		}
	}}.unmarshal(d, s.check)
}

// UnmarshalCaddyfile parses the urls source: names of files, paths of the site that are
// fetched as a list, and a block with one URL a line, of which one kind at least is given:
//
//	urls <file or path...> {
//	    <url> [lastmod=<date>] [changefreq=<frequency>] [priority=<0.0–1.0>]
//	}
//
// A URL is absolute or begins with a slash; a date is W3C Datetime, such as 2006-01-02.
func (s *SourceURLs) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume module name
	s.From = d.RemainingArgs()
	line := lineOf(d)
	for d.NextBlock(0) {
		url := strings.Join(append([]string{d.Val()}, d.RemainingArgs()...), " ")
		if _, err := urllist.ParseLine(url, ""); err != nil {
			return d.WrapErr(err)
		}
		s.URLs = append(s.URLs, url)
	}
	if err := s.check(); err != nil {
		return line.WrapErr(err)
	}
	return nil
}

// UnmarshalCaddyfile parses the access_log source. Every option is optional; the defaults
// are in parentheses:
//
//	access_log <file or pattern...> {
//	    format    auto|json|common|combined  # of the lines (auto)
//	    history   <duration>                 # how old visits may be (30d)
//	    query     <parameter...>             # query parameters that tell pages apart (none)
//	    unlinked  <path-pattern...>          # pages that need no link, only a visit (none)
//	    expire    <duration>                 # after which a path is forgotten (90d)
//	    max_paths <n>                        # most paths that are remembered (1000000)
//	}
//
// query and unlinked may be repeated.
func (s *SourceAccessLog) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume module name
	return option{name: "access_log", usage: "<file or pattern...>", set: add(&s.Files), block: func() options {
		return append(s.options(),
			option{name: "format", usage: "auto|json|common|combined", set: text(&s.Format)},
			option{name: "history", usage: "<duration>", set: value(&s.History, duration)},
		)
	}}.unmarshal(d, checkOf(s))
}

// UnmarshalCaddyfile parses the traffic source, whose block may have what query, unlinked,
// expire and max_paths are for access_log.
func (s *SourceTraffic) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume module name
	return option{name: "traffic", block: s.options}.unmarshal(d, checkOf(s))
}

// UnmarshalCaddyfile parses the links source, whose block may have what query, expire and
// max_paths are for access_log, and depth: how many links away a page may be (20).
func (s *SourceLinks) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume module name
	return option{name: "links", block: func() options {
		return append(s.options(), option{name: "depth", usage: "<n>", set: value(&s.Depth, number)})
	}}.unmarshal(d, checkOf(s))
}

func (d *Discovery) options() options {
	return options{
		{name: "query", usage: "<parameter...>", set: add(&d.Query), repeats: true},
		{name: "unlinked", usage: "<path-pattern...>", set: add(&d.Unlinked), repeats: true},
		{name: "expire", usage: "<duration>", set: value(&d.Expire, duration)},
		{name: "max_paths", usage: "<n>", set: value(&d.MaxPaths, number)},
	}
}

func checkOf(s discoverer) func() error {
	return func() error {
		_, err := s.discovers()
		return err
	}
}

// parseGlobalOption parses the global option sitemap, which sets up the App.
func parseGlobalOption(d *caddyfile.Dispenser, earlier any) (any, error) {
	app := new(App)
	if err := app.UnmarshalCaddyfile(d); err != nil {
		return nil, err
	}
	d.Reset()
	d.Next()
	switch {
	case earlier != nil:
		return nil, d.Err("sitemap given twice: write its options into one block")
	case app.State == "":
		return nil, d.Err("sitemap sets nothing here: for a site's sitemap, write it into the block of the site")
	}
	return httpcaddyfile.App{Name: "sitemap", Value: caddyconfig.JSON(app, nil)}, nil
}

// UnmarshalCaddyfile parses the global option. Its option is optional; the default is in
// parentheses:
//
//	sitemap {
//	    state <folder>|off               # where what is known of pages is kept (in Caddy's data directory)
//	}
func (a *App) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume option name
	return option{name: "sitemap", block: func() options {
		all := options{{name: "state", usage: "<folder>|off", set: text(&a.State)}}
		for _, name := range new(Handler).options().names() {
			all = append(all, option{name: name, misplaced: "it is an option of a site: write it into the sitemap of its block"})
		}
		return all
	}}.unmarshal(d, func() error {
		_, err := expandState(a.State, nil)
		return err
	})
}

// option is what has a name, arguments and perhaps a block in a Caddyfile: a directive, or
// one of the lines in its block.
type option struct {
	name    string
	usage   string // of its arguments: "": none, […] optional, ... several
	set     func(args []string) error
	block   func() options                   // nil: it takes none
	repeats bool                             // it may be given more than once
	module  func(*caddyfile.Dispenser) error // parses all of it, in place of the above

	misplaced string // where it belongs instead
}

// unmarshal parses the option whose name is d's token. After that, and after each option of
// its block, check tells whether the settings so far are right: the error is of that line.
func (o option) unmarshal(d *caddyfile.Dispenser, check func() error) error {
	line := lineOf(d)
	if o.misplaced != "" {
		return d.Errf("%s does not belong here: %s", o.name, o.misplaced)
	}
	if o.module != nil {
		if err := o.module(d); err != nil {
			return err
		}
	} else if err := o.apply(d.RemainingArgs()); err != nil {
		return d.WrapErr(err)
	}
	if o.block != nil {
		if err := o.block().unmarshal(d, check); err != nil {
			return err
		}
	}
	if err := check(); err != nil {
		return line.WrapErr(err)
	}
	return nil
}

// apply checks the number of the arguments, and sets them.
func (o option) apply(args []string) error {
	several := strings.Contains(o.usage, "...")
	switch optional := strings.HasPrefix(o.usage, "["); {
	case o.usage == "" && len(args) > 0:
		return fmt.Errorf("unexpected argument '%s': the options of %s belong in a block", args[0], o.name)
	case len(args) > 1 && !several, len(args) == 0 && o.usage != "" && !optional:
		return fmt.Errorf("wrong number of values: use '%s %s'", o.name, o.usage)
	case slices.Contains(args, ""):
		return fmt.Errorf("%s has an empty value", o.name)
	case len(args) == 0:
		return nil
	}
	if err := o.set(args); err != nil {
		return fmt.Errorf("%s '%s': %w", o.name, strings.Join(args, " "), err)
	}
	return nil
}

type options []option

// names are those of the options that belong there.
func (o options) names() []string {
	var names []string
	for _, one := range o {
		if one.misplaced == "" {
			names = append(names, one.name)
		}
	}
	return names
}

// unmarshal parses a block of options.
func (o options) unmarshal(d *caddyfile.Dispenser, check func() error) error {
	given := make(map[string]string) // where, by name
	last := ""
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		i := slices.IndexFunc(o, func(one option) bool { return one.name == d.Val() })
		switch {
		case d.Val() == "{":
			return d.Errf("%s takes no block", last)
		case i < 0:
			return d.WrapErr(unrecognized("subdirective", d.Val(), o.names()))
		}
		last = d.Val()
		if first := given[last]; first != "" && !o[i].repeats && o[i].module == nil {
			return d.Errf("%s given twice, first at %s", last, first)
		}
		given[last] = fmt.Sprintf("%s:%d", d.File(), d.Line())
		if err := o[i].unmarshal(d, check); err != nil {
			return err
		}
	}
	return nil
}

// lineOf stays at d's token, for errors that only show once its block has been read.
func lineOf(d *caddyfile.Dispenser) *caddyfile.Dispenser {
	line := caddyfile.NewDispenser([]caddyfile.Token{d.Token()})
	line.Next()
	return line
}

// text sets one value, in which there may be placeholders.
func text(to *string) func([]string) error {
	return func(args []string) error {
		*to = args[0]
		return nil
	}
}

// add adds values to those so far, so that a snippet and the site that imports it can both
// give some.
func add(to *[]string) func([]string) error {
	return func(args []string) error {
		*to = append(*to, args...)
		return nil
	}
}

// value sets one value that JSON does not hold as text, so that it cannot be a placeholder.
func value[T any](to *T, parse func(string) (T, error)) func([]string) error {
	return func(args []string) (err error) {
		if strings.Contains(args[0], "{") {
			return errors.New("placeholders do not work here; {$NAME} stands for an environment variable")
		}
		*to, err = parse(args[0])
		return err
	}
}

func onOff(value string) (*bool, error) {
	on := value == "on"
	if !on && value != "off" {
		return nil, errors.New("it is on or off")
	}
	return &on, nil
}

func crawlOff(value string) (*Crawl, error) {
	if value != "off" {
		return nil, errors.New("use 'crawl off', or a block with rate, concurrency or disallow")
	}
	return &Crawl{Off: true}, nil
}

// number reads a whole number. Zero would be taken for the default.
func number(value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		return 0, errors.New("a whole number from 1 on is wanted")
	}
	return n, nil
}

// duration reads a duration. Zero would be taken for the default.
func duration(value string) (caddy.Duration, error) {
	d, err := caddy.ParseDuration(value)
	if err != nil || d <= 0 {
		return 0, errors.New("a duration such as 90s, 12h or 30d is wanted")
	}
	return caddy.Duration(d), nil
}

// parseRate reads a number a second or a minute, and returns it a second. Zero would be taken
// for the default.
func parseRate(value string) (float64, error) {
	number, unit, _ := strings.Cut(value, "/")
	n, err := strconv.ParseFloat(number, 64)
	seconds := map[string]float64{"s": 1, "m": 60}[unit]
	if err != nil || !(n > 0) || seconds == 0 || strings.Trim(number, "0123456789.") != "" {
		return 0, errors.New("a number a second or a minute is wanted, such as 2/s, 0.5/s or 30/m")
	}
	return n / seconds, nil
}

func priority(value string) (*float64, error) {
	if _, err := page.ParsePriority(value); err != nil {
		return nil, err
	}
	f, err := strconv.ParseFloat(value, 64)
	return &f, err
}

// unrecognized is the error for a word that is none of those known: with the one that was
// likely meant, else with all.
func unrecognized(kind, word string, known []string) error {
	suggest := new(cobra.Command)
	for _, k := range known {
		suggest.AddCommand(&cobra.Command{Use: k, Run: func(*cobra.Command, []string) {}})
	}
	// In a word of three letters one may be wrong, in one of seven three.
	for ; suggest.SuggestionsMinimumDistance <= (len(word)+2)/3; suggest.SuggestionsMinimumDistance++ {
		if near := suggest.SuggestionsFor(word); len(near) > 0 {
			return fmt.Errorf("unrecognized %s '%s'; did you mean '%s'?", kind, word, near[0])
		}
	}
	return fmt.Errorf("unrecognized %s '%s': use %s", kind, word, strings.Join(known, ", "))
}
