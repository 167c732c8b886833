package sitemap

import (
	"cmp"
	"errors"
	"fmt"
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
	if h.NextArg() && strings.HasPrefix(h.Val(), "/") && !strings.Contains(h.Val(), "*") {
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

// UnmarshalCaddyfile parses the sitemap directive, whose options set the fields of their names:
//
//	sitemap [<matcher>] {
//	    <option> <value...>
//	    <source> <argument...> { ... }
//	}
//
// exclude, rule, crawl disallow and the sources may be repeated.
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume directive name
	return option{name: "sitemap", block: h.options}.unmarshal(d, func() error { return h.check(nil) })
}

func (h *Handler) options() options {
	const inRule = misplaced("write it into a rule: rule /news/* { changefreq daily }")
	all := options{
		{name: "path", usage: "<path>", to: &h.Path},
		{name: "base_url", usage: "<url>", to: &h.BaseURL},
		{name: "refresh", usage: "<interval>", to: &h.RefreshInterval},
		{name: "shard_urls", usage: "<n>", to: &h.ShardURLs},
		{name: "max_urls", usage: "<n>", to: &h.MaxURLs},
		{name: "robots_txt", usage: "on|off", to: &h.RobotsTxt},
		{name: "schema", usage: "0.9|0.84", to: &h.Schema},
		{name: "exclude", usage: "<path-pattern...>", to: &h.Exclude},
		{name: "rule", usage: "<path-pattern...>", to: &h.Rules, block: func() options {
			r := &h.Rules[len(h.Rules)-1]
			return options{
				{name: "changefreq", usage: strings.Join(page.ChangeFreqs(), "|"), to: &r.ChangeFreq},
				{name: "priority", usage: "<0.0–1.0>", to: &r.Priority},
			}
		}},
		{name: "crawl", usage: "[off]", to: &h.Crawl, block: func() options {
			h.Crawl = cmp.Or(h.Crawl, new(Crawl))
			return options{
				{name: "rate", usage: "<n>/s", to: &h.Crawl.Rate},
				{name: "concurrency", usage: "<n>", to: &h.Crawl.Concurrency},
				{name: "disallow", usage: "<word or path-pattern...>", to: &h.Crawl.Disallow},
			}
		}},
		{name: "lastmod", usage: "auto|mtime|off", to: &h.LastMod},
		{name: "canonical", usage: "respect|ignore", to: &h.Canonical},
		{name: "orphans", usage: "list|omit", to: &h.Orphans},
		{name: "extensions", usage: "alternates images...", to: &h.Extensions},
		{name: "source", to: h.unmarshalSource},
		{name: "root", to: misplaced("write 'root * <folder>' beside sitemap, or 'files <folder>' in its block")},
		{name: "changefreq", to: inRule},
		{name: "priority", to: inRule},
		{name: "state", to: misplaced("it is for all sites: write 'sitemap { state <folder> }' into the global options")},
	}
	for _, name := range sourceNames() {
		all = append(all, option{name: name, to: h.unmarshalSource})
	}
	return all
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

// UnmarshalCaddyfile parses the files source, whose options have the names of its fields.
func (s *SourceFiles) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume module name
	return option{name: "files", usage: "[<root>]", to: &s.Root, block: func() options {
		return options{
			{name: "at", usage: "<folder>", to: &s.At},
			{name: "include", usage: "<path-pattern...>", to: &s.Include},
			{name: "include_only", usage: "<path-pattern...>", to: &s.IncludeOnly},
			{name: "exclude", usage: "<path-pattern...>", to: &s.Exclude},
			{name: "hide", usage: "<file...>", to: &s.Hide},
			{name: "index", usage: "<name...>", to: &s.Index},
			{name: "clean_urls", usage: "auto|on|off", to: &s.CleanURLs},
			{name: "fs", usage: "<name>", to: &s.FileSystem},
		}
	}}.unmarshal(d, s.check)
}

// UnmarshalCaddyfile parses the urls source: names of lists, and a block with one URL a line.
func (s *SourceURLs) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume module name
	line := *d
	s.From = d.RemainingArgs()
	for d.NextBlock(0) {
		url := strings.Join(append([]string{d.Val()}, d.RemainingArgs()...), " ")
		if _, err := urllist.ParseLine(url, ""); err != nil {
			return d.WrapErr(err)
		}
		s.URLs = append(s.URLs, url)
	}
	return wrap(&line, s.check())
}

// UnmarshalCaddyfile parses the access_log source, whose options have the names of its fields.
func (s *SourceAccessLog) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return s.unmarshal(d, s, option{name: "access_log", usage: "<file or pattern...>", to: &s.Files},
		option{name: "format", usage: "auto|json|common|combined", to: &s.Format},
		option{name: "history", usage: "<duration>", to: &s.History})
}

// UnmarshalCaddyfile parses the traffic source, whose options have the names of its fields.
func (s *SourceTraffic) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return s.unmarshal(d, s, option{name: "traffic"})
}

// UnmarshalCaddyfile parses the links source, whose options have the names of its fields.
func (s *SourceLinks) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return s.unmarshal(d, s, option{name: "links"}, option{name: "depth", usage: "<n>", to: &s.Depth})
}

// unmarshal parses a source that discovers pages, whose block may have further options.
func (c *Discovery) unmarshal(d *caddyfile.Dispenser, s discoverer, o option, further ...option) error {
	d.Next() // consume module name
	o.block = func() options {
		return append(options{
			{name: "query", usage: "<parameter...>", to: &c.Query},
			{name: "unlinked", usage: "<path-pattern...>", to: &c.Unlinked},
			{name: "expire", usage: "<duration>", to: &c.Expire},
			{name: "max_paths", usage: "<n>", to: &c.MaxPaths},
		}, further...)
	}
	return o.unmarshal(d, func() error {
		if _, err := s.discovers(); err != nil {
			return fmt.Errorf("%s: %w", o.name, err)
		}
		return nil
	})
}

// parseGlobalOption parses the global option, which sets up the App:
//
//	sitemap {
//	    state <folder>|off
//	}
func parseGlobalOption(d *caddyfile.Dispenser, earlier any) (any, error) {
	app := new(App)
	all := options{{name: "state", usage: "<folder>|off", to: &app.State}}
	for _, name := range new(Handler).options().names() {
		all = append(all, option{name: name, to: misplaced("it is an option of a site: write it into the sitemap of its block")})
	}
	d.Next() // consume option name
	line := *d
	err := option{name: "sitemap", block: func() options { return all }}.unmarshal(d, func() error {
		_, err := expandState(app.State, nil)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case earlier != nil:
		return nil, line.Err("sitemap given twice: write its options into one block")
	case app.State == "":
		return nil, line.Err("sitemap sets nothing here: for a site's sitemap, write it into the block of the site")
	}
	return httpcaddyfile.App{Name: "sitemap", Value: caddyconfig.JSON(app, nil)}, nil
}

// option is what has a name, arguments and perhaps a block in a Caddyfile: a directive, or
// one of the lines in its block.
type option struct {
	name  string
	usage string         // of its arguments; […] optional, "": none
	to    any            // points to what they set; or a func, which parses it all; or misplaced
	block func() options // nil: it takes none
}

// misplaced is an option of another place: this says where it belongs.
type misplaced string

// isList reports whether an option takes several values, and may be repeated.
func (o option) isList() bool {
	switch o.to.(type) {
	case *[]string, *[]Rule, func(*caddyfile.Dispenser) error:
		return true
	}
	return false
}

// unmarshal parses the option whose name is d's token. After that, and after each option of
// its block, check tells whether the settings so far are right: the error is of that line.
func (o option) unmarshal(d *caddyfile.Dispenser, check func() error) error {
	line := *d
	var err error
	switch to := o.to.(type) {
	case misplaced:
		return d.Errf("%s does not belong here: %s", o.name, to)
	case func(*caddyfile.Dispenser) error:
		err = to(d)
	default:
		err = wrap(d, o.apply(d.RemainingArgs()))
	}
	if err == nil && o.block != nil {
		err = o.block().unmarshal(d, check)
	}
	if err == nil {
		err = wrap(&line, check())
	}
	return err
}

// wrap adds to an error, if there is one, the line where d is.
func wrap(d *caddyfile.Dispenser, err error) error {
	if err == nil {
		return nil
	}
	return d.WrapErr(err)
}

// apply checks the number of the arguments, and sets them.
func (o option) apply(args []string) error {
	switch {
	case o.usage == "" && len(args) > 0:
		return fmt.Errorf("unexpected argument '%s': the options of %s belong in a block", args[0], o.name)
	case len(args) > 1 && !o.isList(), len(args) == 0 && o.usage != "" && o.usage[0] != '[':
		return fmt.Errorf("wrong number of values: use '%s %s'", o.name, o.usage)
	case slices.Contains(args, ""):
		return fmt.Errorf("%s has an empty value", o.name)
	case len(args) == 0:
		return nil
	}
	if err := assign(o.to, args); err != nil {
		return fmt.Errorf("%s '%s': %w", o.name, strings.Join(args, " "), err)
	}
	return nil
}

type options []option

// names are those of the options that belong there.
func (o options) names() []string {
	var names []string
	for _, one := range o {
		if _, elsewhere := one.to.(misplaced); !elsewhere {
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
		if first := given[last]; first != "" && !o[i].isList() {
			return d.Errf("%s given twice, first at %s", last, first)
		}
		given[last] = fmt.Sprintf("%s:%d", d.File(), d.Line())
		if err := o[i].unmarshal(d, check); err != nil {
			return err
		}
	}
	return nil
}

// assign sets what to points to. Values are added to a list, so that a snippet and the site
// that imports it can both give some.
func assign(to any, args []string) (err error) {
	value := args[0]
	switch to := to.(type) {
	case *string:
		*to = value
	case *[]string:
		*to = append(*to, args...)
	case *[]Rule:
		*to = append(*to, Rule{Match: args})
	case *int:
		if *to, err = strconv.Atoi(value); err != nil || *to < 1 { // zero would be the default
			err = errors.New("a whole number from 1 on is wanted")
		}
	case *caddy.Duration:
		d, invalid := caddy.ParseDuration(value)
		if *to = caddy.Duration(d); invalid != nil || d <= 0 {
			err = errors.New("a duration such as 90s, 12h or 30d is wanted")
		}
	case *float64:
		*to, err = parseRate(value)
	case **float64:
		*to = new(float64)
		if _, err = page.ParsePriority(value); err == nil {
			**to, err = strconv.ParseFloat(value, 64)
		}
	case **bool:
		on := value == "on"
		if *to = &on; !on && value != "off" {
			err = errors.New("it is on or off")
		}
	case **Crawl:
		*to = &Crawl{Off: true}
		if value != "off" {
			err = errors.New("use 'crawl off', or a block with rate, concurrency or disallow")
		}
	}
	if err != nil && strings.Contains(value, "{") { // JSON does not hold these as text
		return errors.New("placeholders do not work here; {$NAME} stands for an environment variable")
	}
	return err
}

// parseRate reads a number a second or a minute, and returns it a second.
func parseRate(value string) (float64, error) {
	number, unit, _ := strings.Cut(value, "/")
	n, err := strconv.ParseFloat(number, 64)
	seconds := map[string]float64{"s": 1, "m": 60}[unit]
	if err != nil || !(n > 0) || seconds == 0 || strings.Trim(number, "0123456789.") != "" {
		return 0, errors.New("a number a second or a minute is wanted, such as 2/s, 0.5/s or 30/m")
	}
	return n / seconds, nil
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
