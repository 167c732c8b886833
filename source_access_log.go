package sitemap

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/cespare/xxhash/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed3295b519/caddy-sitemap/internal/accesslog"
	"github.com/seed3295b519/caddy-sitemap/internal/logonce"
	"github.com/seed3295b519/caddy-sitemap/internal/option"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// SourceAccessLog contributes the pages that visitors requested, from access logs of Caddy or another server. A page is
// listed once a listed page links to it, or if it matches a pattern of `unlinked`. Logs are read from the beginning,
// with rolled and compressed files, and then as they grow.
//
//	sitemap {
//		access_log /var/log/caddy/example.log {
//			history  14d
//			unlinked /reports/*
//		}
//	}
//
// In JSON:
//
//	{"handler": "sitemap", "sources": [
//		{"source": "access_log", "files": ["/var/log/caddy/example.log"], "history": "14d", "unlinked": ["/reports/*"]}
//	]}
type SourceAccessLog struct {
	// The log files: names, or patterns such as `/var/log/caddy/*.log`; at least one. Rolled files,
	// also compressed ones (`.gz`, `.zst`), are found by themselves. Global placeholders are replaced.
	Files []string `json:"files,omitempty"`

	// The format of the lines: `json`, as Caddy writes them; `common` or `combined`, also with a
	// virtual host in front; or `auto`, which tells the format of each line. Default: `auto`.
	Format string `json:"format,omitempty"`

	// The age of the oldest visits that count, at least `1h`. Default: `30d`.
	History caddy.Duration `json:"history,omitempty"`

	Discovery
}

const pollEvery = 2 * time.Second

// CaddyModule returns the Caddy module information.
func (SourceAccessLog) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.sitemap.sources.access_log", New: func() caddy.Module { return new(SourceAccessLog) }}
}

func (s *SourceAccessLog) addTo(all *discovery) error {
	c := option.Checker{Err: s.Discovery.addTo(all)}
	c.Refuse(len(s.Files) == 0, "no access log is named")
	for _, name := range s.Files {
		_, err := filepath.Match(name, "")
		c.Refuse(name == "", "an access log has an empty name")
		c.Refuse(err != nil, "'%s' is not a file name pattern: %w", name, err)
	}
	history := time.Duration(s.History)
	c.Refuse(history != 0 && history < time.Hour, "history is %s: the shortest is %s", history, time.Hour)
	_, err := accesslog.NewParser(s.Format)
	c.Note(err)
	return c.Err
}

// logReader reads the logs of one source for all sites of its handler.
type logReader struct {
	accesslog.Reader
	handler   *Handler
	log       *logonce.Logger
	hasPolled bool // the first poll has ended
}

// logReaders returns a reader for each access_log source.
func (h *Handler) logReaders() ([]*logReader, error) {
	var all []*logReader
	for _, source := range h.sources {
		s, ok := source.(*SourceAccessLog)
		if !ok {
			continue
		}
		r := &logReader{handler: h}
		r.Source = len(all)
		r.Filter = h.discovery.filter
		r.History = cmp.Or(time.Duration(s.History), 30*24*time.Hour)
		r.Now = func() time.Time { return h.app.now() }
		for _, name := range s.Files {
			replaced, err := caddy.NewReplacer().ReplaceOrErr(name, true, true)
			if err == nil {
				replaced, err = caddy.FastAbs(replaced)
			}
			if err != nil {
				return nil, fmt.Errorf("access_log '%s': %w", name, err)
			}
			r.Files = append(r.Files, replaced)
		}
		r.Parser, _ = accesslog.NewParser(s.Format) // addTo has checked the format
		// These settings decide which lines are visits.
		r.Settings = xxhash.Sum64String(fmt.Sprintf("%q %q %v %q %q",
			r.Files, s.Format, r.History, h.discovery.query, h.discovery.unlinked))
		r.log = logonce.New(h.logger.With(zap.Strings("logs", r.Files)))
		all = append(all, r)
	}
	return all, nil
}

// readLogs starts a goroutine for each log reader, which ends with running.
func (a *App) readLogs() {
	for _, h := range a.handlers {
		for _, r := range h.logs {
			a.group.Go(func() {
				ended := wait.OrLeave(a.running, stopGrace, func() { r.pollUntil(a.running) })
				if !ended {
					r.log.Warn("cannot read an access log: the file system does not respond")
				}
			})
		}
	}
}

// pollUntil polls until a context ends.
func (r *logReader) pollUntil(ctx context.Context) {
	for ctx.Err() == nil {
		r.poll(ctx)
		wait.Within(pollEvery, ctx.Done())
	}
}

// sites returns the sites of the handler, and which of them join. Aliases do not: their main site gets their visits.
// complete: no site that the configuration names is still to join.
func (r *logReader) sites() (joins map[accesslog.Site]bool, complete bool) {
	app := r.handler.app
	joins = make(map[accesslog.Site]bool)
	complete = true
	app.mu.RLock()
	defer app.mu.RUnlock()
	for _, s := range app.sites {
		if s.handler != r.handler {
			continue
		}
		isMain := s.main.Load() == nil
		joins[s] = isMain && wait.IsDone(s.ready)
		if isMain && !joins[s] && !s.onDemand {
			complete = false
		}
	}
	return joins, complete
}

// poll lets new sites join, and reads new lines.
func (r *logReader) poll(ctx context.Context) {
	joins, complete := r.sites()
	if !r.Join(joins, complete) {
		return
	}
	app := r.handler.app
	begun := app.now()
	read := r.Poll(ctx)
	for result, n := range read {
		app.counts.lines.WithLabelValues(result).Add(float64(n))
	}
	if ctx.Err() != nil {
		return
	}
	for _, log := range r.Logs() {
		name := zap.String("log", log.Path)
		r.log.OnceIf(log.Error != "", zapcore.WarnLevel, log.Path, "cannot read an access log",
			name, zap.String("error", log.Error), zap.Int("uid", os.Getuid()))
		r.log.OnceIf(log.Hint != "", zapcore.WarnLevel, log.Path+" lines", "no line of an access log shows a visit",
			name, zap.String("hint", log.Hint))
	}
	if !r.hasPolled {
		r.hasPolled = true
		r.log.Info("access log read", zap.Any("lines", read), zap.Duration("duration", app.now().Sub(begun)))
	}
}
