package sitemap

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/accesslog"
)

func init() {
	caddy.RegisterModule(SourceAccessLog{})
}

// SourceAccessLog contributes the pages that access logs have visits of, once a listed page
// links to them, or if they are named as unlinked. The logs may be Caddy's own or another
// server's. They are read from the beginning of what there is, rolled and compressed files
// too, and then as they grow.
type SourceAccessLog struct {
	// The log files: names, or patterns as of a shell. Global placeholders are replaced.
	// What a log was rolled to need not be named.
	Files []string `json:"files,omitempty"`

	// The format of the lines: json, as Caddy writes them, common, combined, each of these
	// two also with a virtual host in front, or auto, which tells it by each line. Default:
	// auto.
	Format string `json:"format,omitempty"`

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
	d, err := s.compile()
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
	_, err := s.parser()
	return err
}

// requestName is a placeholder that has a value in requests alone.
var requestName = regexp.MustCompile(`\{http\.[^{}]*\}`)

// parser returns a new reader of lines.
func (s *SourceAccessLog) parser() (*accesslog.Parser, error) {
	var o accesslog.Options
	if s.Format != "" {
		var err error
		if o.Format, err = accesslog.ParseFormat(s.Format); err != nil {
			return nil, err
		}
	}
	return accesslog.NewParser(o)
}

func (s *SourceAccessLog) history() time.Duration {
	if s.History == 0 {
		return defaultHistory
	}
	return time.Duration(s.History)
}

// files returns the names and patterns of the logs, absolute.
func (s *SourceAccessLog) files() ([]string, error) {
	repl := caddy.NewReplacer()
	var files []string
	for _, name := range s.Files {
		replaced, err := repl.ReplaceOrErr(name, true, true)
		if err == nil {
			replaced, err = caddy.FastAbs(replaced)
		}
		if err != nil {
			return nil, fmt.Errorf("access_log '%s': %w", name, err)
		}
		files = append(files, replaced)
	}
	return files, nil
}

// Pages yields the pages that visitors have had.
func (s *SourceAccessLog) Pages(_ context.Context, r *Refresh, yield func(Page) error) error {
	return r.visitedPages(yield)
}

// Sorted implements [SortedSource].
func (s *SourceAccessLog) Sorted() bool { return true }

// Interface guards
var (
	_ caddy.Provisioner = (*SourceAccessLog)(nil)
	_ discoverer        = (*SourceAccessLog)(nil)
	_ SortedSource      = (*SourceAccessLog)(nil)
)
