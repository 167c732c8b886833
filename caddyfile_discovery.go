package sitemap

import (
	"fmt"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed3295b519/caddy-sitemap/internal/accesslog"
)

// The subdirectives of the sources that discover pages.
var (
	discoveryWords = []string{"query", "unlinked", "expire", "max_paths"}
	accessLogWords = append([]string{"format", "fields", "history"}, discoveryWords...)
	linksWords     = []string{"depth", "query", "expire", "max_paths"}
)

// fieldNames are what fields of access_log may say the place of.
var fieldNames = accesslog.FieldNames()

// UnmarshalCaddyfile parses the access_log source. Every setting is optional; the
// defaults are in parentheses:
//
//	access_log <file or pattern...> {
//	    format    auto|json|common|combined     # of the lines (auto)
//	    fields {                                # where JSON lines have what is needed, if keys were renamed
//	        <field> <key>                       # such as: uri request>path
//	    }
//	    history   <duration>                    # how old visits may be (30d)
//	    query     <parameter...>                # query parameters that tell pages apart (none)
//	    unlinked  <path-pattern...> [min_visitors <n>]  # pages that need no link, but visitors (none; 3)
//	    expire    <duration>                    # after which a path is forgotten (90d)
//	    max_paths <n>                           # most paths that are remembered (1000000)
//	}
//
// query and unlinked may be repeated.
func (s *SourceAccessLog) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume module name
	s.Files = d.RemainingArgs()
	if len(s.Files) == 0 {
		return d.Err("access_log wants the name of a log, or a pattern of names")
	}
	if err := refuseEmpty(d, "access_log", s.Files); err != nil {
		return err
	}
	if _, err := s.discovers(); err != nil {
		return d.WrapErr(err)
	}
	return unmarshalDiscoverer(d, s, s.unmarshalSetting)
}

// unmarshalDiscoverer parses the block of a source that discovers pages, and checks
// the source after each setting, so that an error is of that setting's line.
func unmarshalDiscoverer(d *caddyfile.Dispenser, source discoverer, setting func(*caddyfile.Dispenser, settingsGiven) error) error {
	set := make(settingsGiven)
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		line := mark(d)
		if err := setting(d, set); err != nil {
			return err
		}
		if _, err := source.discovers(); err != nil {
			return line.WrapErr(err)
		}
	}
	return nil
}

func (s *SourceAccessLog) unmarshalSetting(d *caddyfile.Dispenser, set settingsGiven) (err error) {
	switch d.Val() {
	case "format":
		s.Format, err = set.oneOf(d, "auto", "json", "common", "combined")
	case "fields":
		if err = set.add(d); err == nil {
			err = s.unmarshalFields(d)
		}
	case "history":
		s.History, err = set.span(d, minHistory)
	default:
		err = s.Discovery.unmarshalSetting(d, set, accessLogWords)
	}
	return err
}

func (s *SourceAccessLog) unmarshalFields(d *caddyfile.Dispenser) error {
	if d.NextArg() {
		return d.Errf("fields takes a block, not '%s'", d.Val())
	}
	start := mark(d)
	s.Fields = make(map[string]string)
	set := make(settingsGiven)
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		field, line := d.Val(), mark(d)
		if !slices.Contains(fieldNames, field) {
			return unrecognizedOf(d, "field", field, fieldNames)
		}
		key, err := set.once(d)
		if err != nil {
			return err
		}
		s.Fields[field] = key
		if err := s.check(); err != nil {
			return line.WrapErr(fmt.Errorf("access_log: %w", err))
		}
	}
	if len(s.Fields) == 0 {
		return start.Err("fields names no field: write one a line, such as uri request>path")
	}
	return nil
}

// UnmarshalCaddyfile parses the traffic source, whose block may have what query,
// unlinked, expire and max_paths are for access_log.
func (s *SourceTraffic) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume module name
	if d.NextArg() {
		return d.Errf("traffic takes a block, not '%s'", d.Val())
	}
	return unmarshalDiscoverer(d, s, func(d *caddyfile.Dispenser, set settingsGiven) error {
		return s.unmarshalSetting(d, set, discoveryWords)
	})
}

// UnmarshalCaddyfile parses the links source:
//
//	links {
//	    depth     <n>             # how many links away a page may be (20)
//	    query     <parameter...>
//	    expire    <duration>
//	    max_paths <n>
//	}
func (s *SourceLinks) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume module name
	if d.NextArg() {
		return d.Errf("links takes a block, not '%s'", d.Val())
	}
	return unmarshalDiscoverer(d, s, s.unmarshalSetting)
}

func (s *SourceLinks) unmarshalSetting(d *caddyfile.Dispenser, set settingsGiven) (err error) {
	if d.Val() != "depth" {
		return s.Discovery.unmarshalSetting(d, set, linksWords)
	}
	s.Depth, err = set.number(d)
	return err
}

// unmarshalSetting parses a setting that all of them have; words are those of the
// block.
func (d *Discovery) unmarshalSetting(dis *caddyfile.Dispenser, set settingsGiven, words []string) (err error) {
	switch dis.Val() {
	case "query":
		var keys []string
		keys, err = values(dis)
		d.Query = append(d.Query, keys...)
	case "unlinked":
		err = d.unmarshalUnlinked(dis)
	case "expire":
		d.Expire, err = set.span(dis, minExpire)
	case "max_paths":
		d.MaxPaths, err = set.number(dis)
	case "min_visitors":
		err = dis.Err("min_visitors belongs at the end of the line of unlinked")
	default:
		err = unrecognized(dis, "subdirective", words)
	}
	return err
}

func (d *Discovery) unmarshalUnlinked(dis *caddyfile.Dispenser) error {
	args, err := values(dis)
	if err != nil {
		return err
	}
	u := Unlinked{Match: args}
	if i := slices.Index(args, "min_visitors"); i >= 0 {
		u.Match = args[:i]
		if len(args) != i+2 {
			return dis.Err("min_visitors takes a number, at the end of the line")
		}
		if u.MinVisitors, err = wholeNumber(args[i+1]); err != nil {
			return dis.Errf("min_visitors '%s': a whole number from 1 on is wanted", args[i+1])
		}
	}
	for _, arg := range u.Match {
		if isPattern := arg[0] == '/' || arg[0] == '*'; !isPattern && nearest(arg, []string{"min_visitors"}) != "" {
			return dis.Errf("unrecognized word '%s' in unlinked; did you mean 'min_visitors'?", arg)
		}
	}
	d.Unlinked = append(d.Unlinked, u)
	return nil
}

// span reads a duration that is no shorter than the shortest. Zero would be taken for
// the default.
func (set settingsGiven) span(d *caddyfile.Dispenser, shortest time.Duration) (caddy.Duration, error) {
	setting := d.Val()
	dur, err := set.anyDuration(d, "12h or 30d")
	if err != nil {
		return 0, err
	}
	if dur < shortest {
		return 0, d.Errf("%s is %s: the shortest is %s", setting, dur, shortest)
	}
	return caddy.Duration(dur), nil
}
