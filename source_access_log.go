package sitemap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/accesslog"
	"github.com/seed3295b519/caddy-sitemap/internal/discover"
)

func init() {
	caddy.RegisterModule(SourceAccessLog{})
}

// SourceAccessLog contributes the pages that access logs have visits of, once a
// listed page links to them, or they are among those named as unlinked. The logs
// may be Caddy's own or another server's. They are read from the beginning of what
// there is, rolled and compressed files too, and then as they grow.
type SourceAccessLog struct {
	// The log files: names, or patterns as of a shell. Global placeholders are
	// replaced. What a log was rolled to need not be named.
	Files []string `json:"files,omitempty"`

	// The format of the lines: json, as Caddy writes them, common, combined, each
	// of these two also with a virtual host in front, or auto, which tells it by
	// each line. Default: auto.
	Format string `json:"format,omitempty"`

	// Where JSON lines have what is needed, for logs whose keys were renamed: the
	// path of a key, with > between levels, by what it is: ts, logger, method, host,
	// uri, client_ip, remote_ip, remote_addr, user_id, status, request_headers,
	// resp_headers, or one of the headers by itself: user_agent, cookie,
	// authorization, content_type, cache_control, robots_tag, etag, last_modified.
	// Default: as Caddy writes them, such as request>uri for uri.
	Fields map[string]string `json:"fields,omitempty"`

	// How old visits may be; at least 1h. Default: 30d.
	History caddy.Duration `json:"history,omitempty"`

	Discovery
}

const (
	defaultHistory = 30 * 24 * time.Hour
	minHistory     = time.Hour
)

// CaddyModule returns the Caddy module information.
func (SourceAccessLog) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.sitemap.sources.access_log",
		New: func() caddy.Module { return new(SourceAccessLog) },
	}
}

// Provision checks the settings.
func (s *SourceAccessLog) Provision(caddy.Context) error {
	if _, err := s.discovers(); err != nil {
		return err
	}
	_, err := s.files()
	return err
}

func (s *SourceAccessLog) discovers() (discovery, error) {
	d, err := s.compile(discover.FromLog)
	if err == nil {
		err = s.check()
	}
	if err != nil {
		return d, fmt.Errorf("access_log: %w", err)
	}
	return d, nil
}

func (s *SourceAccessLog) check() error {
	if len(s.Files) == 0 {
		return errors.New("no log is named")
	}
	if slices.Contains(s.Files, "") {
		return errors.New("a log has an empty name")
	}
	for _, name := range s.Files {
		if placeholder := requestName.FindString(name); placeholder != "" {
			return fmt.Errorf("'%s': %s has no value here: of placeholders, only global ones such as {env.*} are replaced", name, placeholder)
		}
		if _, err := filepath.Match(name, ""); err != nil {
			return fmt.Errorf("'%s' is no pattern of names: %w", name, err)
		}
	}
	if s.History != 0 && time.Duration(s.History) < minHistory {
		return fmt.Errorf("history is %s: the shortest is %s", time.Duration(s.History), minHistory)
	}
	options, err := s.format()
	if err != nil {
		return err
	}
	if isJSON := options.Format == accesslog.Auto || options.Format == accesslog.JSON; !isJSON && len(s.Fields) > 0 {
		return fmt.Errorf("fields are for lines of JSON, and format is %s", s.Format)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Fields)) {
		if key := s.Fields[name]; bracedName.MatchString(key) {
			return fmt.Errorf("field %s: '%s': placeholders are not replaced", name, key)
		}
	}
	_, err = accesslog.NewParser(options)
	return err
}

// requestName is a placeholder that has a value in requests alone.
var requestName = regexp.MustCompile(`\{http\.[^{}]*\}`)

// format says how lines are read.
func (s *SourceAccessLog) format() (accesslog.Options, error) {
	o := accesslog.Options{Fields: s.Fields}
	if s.Format == "" {
		return o, nil
	}
	var err error
	o.Format, err = accesslog.ParseFormat(s.Format)
	return o, err
}

func (s *SourceAccessLog) history() time.Duration {
	if s.History == 0 {
		return defaultHistory
	}
	return time.Duration(s.History)
}

// files are the names and patterns of the logs, absolute.
func (s *SourceAccessLog) files() ([]string, error) {
	repl := caddy.NewReplacer()
	var files []string
	for _, name := range s.Files {
		replaced, err := repl.ReplaceOrErr(name, true, true)
		if err != nil {
			return nil, fmt.Errorf("access_log '%s': %w", name, err)
		}
		abs, err := caddy.FastAbs(replaced)
		if err != nil {
			return nil, fmt.Errorf("access_log '%s': %w", name, err)
		}
		files = append(files, abs)
	}
	return files, nil
}

// Pages yields the pages that the logs have visits of.
func (s *SourceAccessLog) Pages(ctx context.Context, r *Refresh, yield func(Page) error) error {
	return r.site.candidates(ctx, discover.FromLog, yield)
}

// Interface guards
var (
	_ caddy.Provisioner = (*SourceAccessLog)(nil)
	_ discoverer        = (*SourceAccessLog)(nil)
)
