package sitemap

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/spf13/cobra"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
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
// Lists, rules and sources may be repeated.
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume directive name
	return option{name: "sitemap", block: h.options}.unmarshal(d, func() error {
		if strings.Contains(h.BaseURL, "{") { // what it stands for is known once Caddy loads it
			return h.compile("")
		}
		return h.compile(h.BaseURL)
	})
}

func (h *Handler) options() options {
	const inRule = "write it into a rule: rule /news/* { changefreq daily }"
	all := options{
		{name: "path", usage: "<path>", to: &h.Path},
		{name: "base_url", usage: "<url>", to: &h.BaseURL},
		{name: "refresh", usage: "<duration such as 15m>", to: &h.RefreshInterval},
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
		{name: "crawl", usage: "[off] or a block with rate, concurrency or disallow", to: &h.Crawl, block: func() options {
			h.Crawl = cmp.Or(h.Crawl, new(Crawl))
			return options{
				{name: "rate", usage: "<n>/s such as 0.5/s", to: &h.Crawl.Rate},
				{name: "concurrency", usage: "<n>", to: &h.Crawl.Concurrency},
				{name: "disallow", usage: "<word or path-pattern...>", to: &h.Crawl.Disallow},
			}
		}},
		{name: "lastmod", usage: "auto|mtime|off", to: &h.LastMod},
		{name: "canonical", usage: "respect|ignore", to: &h.Canonical},
		{name: "orphans", usage: "list|omit", to: &h.Orphans},
		{name: "extensions", usage: "alternates images...", to: &h.Extensions},
		{name: "root", hint: "write 'root * <folder>' beside sitemap, or 'files <folder>' in its block"},
		{name: "changefreq", hint: inRule},
		{name: "priority", hint: inRule},
		{name: "state", hint: "it is for all sites: write 'sitemap { state <folder> }' into the global options"},
	}
	for _, module := range caddy.GetModules(sourceNamespace) {
		all = append(all, option{name: module.ID.Name(), to: h.unmarshalSource})
	}
	return all
}

// unmarshalSource parses a source, which begins with its module's name.
func (h *Handler) unmarshalSource(d *caddyfile.Dispenser) error {
	name := d.Val()
	module, err := caddyfile.UnmarshalModule(d, sourceNamespace+"."+name)
	if err != nil {
		return err
	}
	h.SourcesRaw = append(h.SourcesRaw, caddyconfig.JSONModuleObject(module, "source", name, nil))
	h.sources = append(h.sources, module.(Source))
	return nil
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
	s.From = d.RemainingArgs()
	for d.NextBlock(0) {
		s.URLs = append(s.URLs, strings.Join(append([]string{d.Val()}, d.RemainingArgs()...), " "))
	}
	return nil
}

// UnmarshalCaddyfile parses the access_log source, whose options have the names of its fields.
func (s *SourceAccessLog) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return s.unmarshal(d, s, option{name: "access_log", usage: "<file or pattern...>", to: &s.Files},
		option{name: "format", usage: "auto|json|common|combined", to: &s.Format},
		option{name: "history", usage: "<duration such as 30d>", to: &s.History})
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
			{name: "expire", usage: "<duration such as 30d>", to: &c.Expire},
			{name: "max_paths", usage: "<n>", to: &c.MaxPaths},
		}, further...)
	}
	return o.unmarshal(d, func() error { return s.discovers(new(discovery)) })
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
		all = append(all, option{name: name, hint: "it is an option of a site: write it into the sitemap of its block"})
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
	usage string         // of its arguments; […] optional
	to    any            // points to what they set, or is a func that parses it all; nil: it takes none
	block func() options // nil: it takes none
	hint  string         // where it belongs; "": here
}

// unmarshal parses the option whose name is d's token. After each line of its block, check
// tells whether the settings so far are right: the error is of that line.
func (o option) unmarshal(d *caddyfile.Dispenser, check func() error) error {
	if parse, ok := o.to.(func(*caddyfile.Dispenser) error); ok {
		return parse(d)
	}
	if err := o.set(d.RemainingArgs()); err != nil {
		return d.WrapErr(err)
	}
	if o.block == nil {
		return nil
	}
	options := o.block()
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		line := *d
		i := slices.IndexFunc(options, func(o option) bool { return o.name == d.Val() })
		if i < 0 {
			return d.WrapErr(unrecognized(d.Val(), options.names()))
		}
		if err := options[i].unmarshal(d, check); err != nil {
			return err
		}
		if err := check(); err != nil {
			return line.WrapErr(err)
		}
	}
	return nil
}

// set checks the arguments, and sets what the option points to. Lists, and no others, may be
// given several times, so that a snippet and the site that imports it can both add to them.
func (o option) set(args []string) (err error) {
	value, to := strings.Join(args, " "), reflect.ValueOf(o.to)
	switch {
	case o.hint != "":
		return fmt.Errorf("%s does not belong here: %s", o.name, o.hint)
	case !to.IsValid() && len(args) > 0:
		return fmt.Errorf("unexpected argument '%s': the options of %s belong in a block", args[0], o.name)
	case !to.IsValid():
		return nil
	}
	to = to.Elem()
	isList := to.Kind() == reflect.Slice
	switch {
	case !isList && !to.IsZero():
		return fmt.Errorf("%s is given twice", o.name)
	case len(args) == 0 && o.usage[0] == '[':
		return nil
	case len(args) == 0, len(args) > 1 && !isList:
		return fmt.Errorf("wrong number of values: use '%s %s'", o.name, o.usage)
	case slices.Contains(args, ""):
		return fmt.Errorf("%s has an empty value", o.name)
	}
	switch to := o.to.(type) {
	case *string:
		*to = value
	case *[]string:
		*to = append(*to, args...)
	case *[]Rule:
		*to = append(*to, Rule{Match: args})
	case **Crawl:
		*to = &Crawl{Off: true}
		if value != "off" {
			err = errors.ErrUnsupported
		}
	case *float64:
		*to, err = parseRate(value)
	case *caddy.Duration:
		err = to.UnmarshalJSON([]byte(strconv.Quote(value)))
	case **bool:
		err = json.Unmarshal([]byte(map[string]string{"on": "true", "off": "false"}[value]), to)
	default:
		err = json.Unmarshal([]byte(value), to)
	}
	if err != nil || to.IsZero() { // which would be the default
		return fmt.Errorf("%s '%s': use '%s %s'", o.name, value, o.name, o.usage)
	}
	return nil
}

type options []option

// names are those of the options that belong there.
func (o options) names() []string {
	var names []string
	for _, one := range o {
		if one.hint == "" {
			names = append(names, one.name)
		}
	}
	return names
}

// parseRate reads a number a second.
func parseRate(value string) (float64, error) {
	number, isRate := strings.CutSuffix(value, "/s")
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !isRate || !(n > 0) {
		return 0, errors.New("a number a second is wanted, such as 2/s or 0.5/s")
	}
	return n, nil
}

// unrecognized is the error for an option that is none of those known: with the one that was
// likely meant, else with all.
func unrecognized(word string, known []string) error {
	suggest := new(cobra.Command)
	for _, k := range known {
		suggest.AddCommand(&cobra.Command{Use: k, Run: func(*cobra.Command, []string) {}})
	}
	// In a word of three letters one may be wrong, in one of seven three.
	for ; suggest.SuggestionsMinimumDistance <= (len(word)+2)/3; suggest.SuggestionsMinimumDistance++ {
		if near := suggest.SuggestionsFor(word); len(near) > 0 {
			return fmt.Errorf("unrecognized subdirective '%s'; did you mean '%s'?", word, near[0])
		}
	}
	return fmt.Errorf("unrecognized subdirective '%s': use %s", word, strings.Join(known, ", "))
}
