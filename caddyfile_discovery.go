package sitemap

import (
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// The subdirectives of the sources that discover pages.
var (
	discoveryWords = []string{"query", "unlinked", "expire", "max_paths"}
	accessLogWords = append([]string{"format", "history"}, discoveryWords...)
	linksWords     = []string{"depth", "query", "expire", "max_paths"}
)

// UnmarshalCaddyfile parses the access_log source. Every setting is optional; the
// defaults are in parentheses:
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
	case "history":
		s.History, err = set.span(d, minHistory)
	default:
		err = s.Discovery.unmarshalSetting(d, set, accessLogWords)
	}
	return err
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
		d.Query, err = appendValues(d.Query, dis)
	case "unlinked":
		d.Unlinked, err = appendValues(d.Unlinked, dis)
	case "expire":
		d.Expire, err = set.span(dis, minExpire)
	case "max_paths":
		d.MaxPaths, err = set.number(dis)
	default:
		err = unrecognized(dis, "subdirective", words)
	}
	return err
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
