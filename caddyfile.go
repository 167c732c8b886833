package sitemap

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/seed3295b519/caddy-sitemap/internal/option"
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
		return nil, h.Errf("'%s' is a matcher here, and would keep other requests from the sitemap: "+
			"use 'path %s' in its block", h.Val(), h.Val())
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

// UnmarshalCaddyfile parses the sitemap directive, whose options set the fields of the same names:
//
//	sitemap [<matcher>] {
//	    <option> <value...>
//	    <source> <argument...> { ... }
//	}
//
// Options with several values, rules and sources may be repeated, except news, links and traffic.
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume directive name
	line := *d
	err := unmarshal(d, option.Option{Name: "sitemap", Block: h.options}, func() error {
		// What a placeholder stands for is known once Caddy loads the configuration.
		if strings.Contains(h.BaseURL, "{") {
			return h.compile("")
		}
		return h.compile(h.BaseURL)
	})
	if err != nil {
		return err
	}
	// Hubs and feed may be given in any order.
	if err := h.checkHubs(); err != nil {
		return line.WrapErr(err)
	}
	return nil
}

func (h *Handler) options([]string) option.Options {
	const inRule = " into the block of 'rule /news/*'"
	const inFiles = " into the block of 'files'"
	const inIndexNow = " into the block of 'indexnow'"
	const inLinks = " into the block of 'links'"
	const inGlobal = "it is for all sites: write the line '%s' into the block of 'sitemap' in the global options"
	crawlOff := false
	hasHTML := false
	key := ""
	all := option.Options{
		{Name: "path", Usage: "<path>", To: &h.Path},
		{Name: "base_url", Usage: "<url>", To: &h.BaseURL},
		{Name: "refresh", Usage: "<duration such as 15m>", To: &h.RefreshInterval},
		{Name: "shard_urls", Usage: "<n>", To: &h.ShardURLs},
		{Name: "max_urls", Usage: "<n>", To: &h.MaxURLs},
		{Name: "robots_txt", Usage: "on|off", To: &h.RobotsTxt},
		{Name: "feed", To: &h.Feed},
		{Name: "html", To: &hasHTML, Block: func([]string) option.Options {
			h.HTML = cmp.Or(h.HTML, new(People))
			return option.Options{
				{Name: "title", Usage: "<name of the site>", To: &h.HTML.Title},
				{Name: "css", Usage: "<url>", To: &h.HTML.CSS},
			}
		}},
		{Name: "news", Usage: newsUsage, To: h.unmarshalNews},
		{Name: "llms", To: &h.LLMs},
		{Name: "stylesheet", Usage: "on|off", To: &h.Stylesheet},
		{Name: "schema", Usage: "0.9|0.84", To: &h.Schema},
		{Name: "exclude", Usage: "<path-pattern...>", To: &h.Exclude},
		{Name: "rule", Usage: "<path-pattern...>", Block: func(patterns []string) option.Options {
			h.Rules = append(h.Rules, Rule{Match: patterns})
			r := &h.Rules[len(h.Rules)-1]
			return option.Options{
				{Name: "changefreq", Usage: strings.Join(page.ChangeFreqs(), "|"), To: &r.ChangeFreq},
				{Name: "priority", Usage: "<0.0–1.0>", To: &r.Priority},
			}
		}},
		{Name: "section", To: h.unmarshalSection},
		{
			Name: "crawl", Usage: "[off] or a block with rate, concurrency, disallow or writes", To: &crawlOff,
			Block: func([]string) option.Options {
				h.Crawl = cmp.Or(h.Crawl, new(Crawl))
				h.Crawl.Off = crawlOff
				return option.Options{
					{Name: "rate", Usage: "<n>/s such as 0.5/s", To: &h.Crawl.Rate},
					{Name: "concurrency", Usage: "<n>", To: &h.Crawl.Concurrency},
					{Name: "disallow", Usage: "<word or path-pattern...>", To: &h.Crawl.Disallow},
					{Name: "writes", Usage: "on|off", To: &h.Crawl.Writes},
				}
			},
		},
		{Name: "lastmod", Usage: "auto|mtime|off", To: &h.LastMod},
		{Name: "canonical", Usage: "respect|ignore", To: &h.Canonical},
		{Name: "orphans", Usage: "list|omit", To: &h.Orphans},
		{Name: "extensions", Usage: "alternates images videos...", To: &h.Extensions},
		{Name: "indexnow", Usage: "[<key>]", To: &key, Block: func([]string) option.Options {
			h.IndexNow = cmp.Or(h.IndexNow, new(IndexNow))
			h.IndexNow.Key = key
			return option.Options{
				{Name: "endpoint", Usage: "<url...>", To: &h.IndexNow.Endpoints},
				{Name: "daily", Usage: "<n>", To: &h.IndexNow.Daily},
				{Name: "key", Hint: "write it before the block: indexnow <key>"},
			}
		}},
		{Name: "ping", Usage: "<url with {sitemap}...>", To: &h.Ping},
		{Name: "hub", Usage: "<url...>", To: &h.Hubs},
		{Name: "root", Hint: "write 'root * <folder>' beside sitemap, or 'files <folder>' in its block"},
		{Name: "endpoint", Hint: "write the line 'endpoint https://www.bing.com/indexnow'" + inIndexNow},
		{Name: "daily", Hint: "write the line 'daily 1000'" + inIndexNow},
		{Name: "changefreq", Hint: "write the line 'changefreq daily'" + inRule},
		{Name: "priority", Hint: "write the line 'priority 0.8'" + inRule},
		{Name: "query", Hint: "write the line 'query id'" + inLinks + " or of another source"},
		{Name: "include", Hint: "write the line 'include *.pdf'" + inFiles},
		{Name: "include_only", Hint: "write the line 'include_only /blog/*'" + inFiles},
		{Name: "depth", Hint: "write the line 'depth 20'" + inLinks},
		{Name: "state", Hint: fmt.Sprintf(inGlobal, "state /var/lib/caddy/sitemap")},
		{Name: "storage", Hint: fmt.Sprintf(inGlobal, "storage caddy")},
		{Name: "fleet_patience", Hint: fmt.Sprintf(inGlobal, "fleet_patience 10m")},
	}
	for _, module := range caddy.GetModules(sourceNamespace) {
		all = append(all, option.Option{Name: module.ID.Name(), To: h.unmarshalSource})
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
	source, err := inputOf(module)
	h.sources = append(h.sources, source)
	return err
}

// UnmarshalCaddyfile parses the files source, whose options have the names of its fields.
func (s *SourceFiles) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume module name
	block := func([]string) option.Options {
		return option.Options{
			{Name: "at", Usage: "<folder>", To: &s.At},
			{Name: "include", Usage: "<path-pattern...>", To: &s.Include},
			{Name: "include_only", Usage: "<path-pattern...>", To: &s.IncludeOnly},
			{Name: "exclude", Usage: "<path-pattern...>", To: &s.Exclude},
			{Name: "hide", Usage: "<file...>", To: &s.Hide},
			{Name: "index", Usage: "<name...>", To: &s.Index},
			{Name: "clean_urls", Usage: "auto|on|off", To: &s.CleanURLs},
			{Name: "fs", Usage: "<name>", To: &s.FileSystem},
		}
	}
	return unmarshal(d, option.Option{Name: "files", Usage: "[<root>]", To: &s.Root, Block: block}, s.check)
}

// UnmarshalCaddyfile parses the urls source: names of lists, and a block with one URL a line.
func (s *SourceURLs) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume module name
	s.From = d.RemainingArgs()
	for d.NextBlock(0) {
		words := []string{d.Val()}
		words = append(words, d.RemainingArgs()...)
		s.URLs = append(s.URLs, strings.Join(words, " "))
	}
	return nil
}

// UnmarshalCaddyfile parses the access_log source, whose options have the names of its fields.
func (s *SourceAccessLog) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return s.unmarshal(d, s, option.Option{Name: "access_log", Usage: "<file or pattern...>", To: &s.Files},
		option.Option{Name: "format", Usage: "auto|json|common|combined", To: &s.Format},
		option.Option{Name: "history", Usage: "<duration such as 30d>", To: &s.History})
}

// UnmarshalCaddyfile parses the traffic source, whose options have the names of its fields.
func (s *SourceTraffic) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return s.unmarshal(d, s, option.Option{Name: "traffic"})
}

// UnmarshalCaddyfile parses the links source, whose options have the names of its fields.
func (s *SourceLinks) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return s.unmarshal(d, s, option.Option{Name: "links"},
		option.Option{Name: "depth", Usage: "<n>", To: &s.Depth})
}

// unmarshal parses a source that discovers pages, whose block may have further options.
func (c *Discovery) unmarshal(d *caddyfile.Dispenser, s discoverer, o option.Option, further ...option.Option) error {
	d.Next() // consume module name
	o.Block = func([]string) option.Options {
		return append(option.Options{
			{Name: "query", Usage: "<parameter...>", To: &c.Query},
			{Name: "unlinked", Usage: "<path-pattern...>", To: &c.Unlinked},
			{Name: "expire", Usage: "<duration such as 30d>", To: &c.Expire},
			{Name: "max_paths", Usage: "<n>", To: &c.MaxPaths},
		}, further...)
	}
	return unmarshal(d, o, func() error { return s.addTo(new(discovery)) })
}

// parseGlobalOption parses the global option, which sets up the App.
func parseGlobalOption(d *caddyfile.Dispenser, earlier any) (any, error) {
	app := new(App)
	all := option.Options{
		{Name: "state", Usage: "<folder>|off", To: &app.State},
		{Name: "storage", To: app.unmarshalStorage},
		{Name: "fleet_patience", Usage: "<duration such as 10m>", To: &app.FleetPatience},
	}
	for _, o := range new(Handler).options(nil) {
		hint := "it is an option of a site: write it into the sitemap of its block"
		all = append(all, option.Option{Name: o.Name, Hint: hint})
	}
	d.Next() // consume option name
	line := *d
	block := func([]string) option.Options { return all }
	err := unmarshal(d, option.Option{Name: "sitemap", Block: block}, func() error {
		if err := checkState(app.State); err != nil {
			return err
		}
		return checkPatience(app.FleetPatience)
	})
	if err != nil {
		return nil, err
	}
	if earlier != nil {
		return nil, line.Err("sitemap given twice: write its options into one block")
	}
	isEmpty := app.State == "" && app.StorageRaw == nil && app.FleetPatience == 0
	if isEmpty {
		return nil, line.Err("sitemap sets nothing here: for a site's sitemap, write it into the block of the site")
	}
	return httpcaddyfile.App{Name: "sitemap", Value: caddyconfig.JSON(app, nil)}, nil
}

// unmarshal parses an option whose name is d's token. After each line of its block, check tells
// whether the settings so far are right: the error is of that line.
func unmarshal(d *caddyfile.Dispenser, o option.Option, check func() error) error {
	if parse, ok := o.To.(func(*caddyfile.Dispenser) error); ok {
		return parse(d)
	}
	args := d.RemainingArgs()
	if err := o.Set(args); err != nil {
		return d.WrapErr(err)
	}
	if o.Block == nil {
		return nil
	}
	options := o.Block(args)
	inner := o // of the line before
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		if d.Val() == "{" {
			return d.Errf("%s takes no block", inner.Name)
		}
		line := *d
		var err error
		inner, err = options.Find(d.Val())
		if err != nil {
			return d.WrapErr(err)
		}
		if err := unmarshal(d, inner, check); err != nil {
			return err
		}
		if err := check(); err != nil {
			return line.WrapErr(err)
		}
	}
	return nil
}
