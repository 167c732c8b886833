package sitemap

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed3295b519/caddy-sitemap/internal/logonce"
	"github.com/seed3295b519/caddy-sitemap/internal/option"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/visits"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// SourceAccessLog contributes the pages that visitors requested, from access logs of Caddy or another server. A page is
// listed once a listed page links to it, or if it matches a pattern of `unlinked`. Logs are read as they grow, and at
// first what is there already, with rolled and compressed files.
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

const (
	pollEvery   = 2 * time.Second
	logPatience = 30 * time.Second // with sites that are not ready, before logs are read
)

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
	c.Choose("format", s.Format, visits.Formats...)
	return c.Err
}

// logReader reads the logs of one source for all sites of its handler.
type logReader struct {
	visits.Reader
	handler *Handler
	log     *logonce.Logger
	logs    atomic.Pointer[[]visits.Log] // as of the last poll; nil: none has ended
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
		r.URLs = h.discovery.urls
		r.Format = s.Format
		r.History = cmp.Or(time.Duration(s.History), 30*24*time.Hour)
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
	// Which sites stand for others is known once they are ready, and what was logged before is read only once.
	patience, cancel := context.WithTimeout(ctx, logPatience)
	defer cancel()
	for _, s := range r.handler.sites() {
		if s.onDemand {
			continue
		}
		select {
		case <-s.ready:
		case <-patience.Done():
		}
	}
	for ctx.Err() == nil {
		r.poll(ctx)
		wait.Within(pollEvery, ctx.Done())
	}
}

// sites returns the sites of the handler.
func (h *Handler) sites() []*site {
	return h.app.sitesThat(func(s *site) bool { return s.handler == h })
}

// poll reads new lines.
func (r *logReader) poll(ctx context.Context) {
	byHost := make(map[string][]visits.Site)
	for _, s := range r.handler.sites() {
		// As visitors and as the server know it; and for lines without a host.
		for _, host := range []string{origin.HostOf(s.origin), origin.HostOf(s.internalOrigin), ""} {
			byHost[host] = append(byHost[host], s)
		}
	}
	logs := r.Poll(ctx, r.handler.app.now(), byHost)
	r.logs.Store(&logs)
	if ctx.Err() != nil {
		return
	}
	for _, log := range logs {
		name := zap.String("log", log.Path)
		r.log.Lasting(log.Error, zapcore.WarnLevel, log.Path, "cannot read an access log", "an access log is read again",
			name, zap.String("error", log.Error), zap.Int("uid", os.Getuid()))
		r.log.OnceIf(log.Hint != "", zapcore.WarnLevel, log.Path+" lines", "no line of an access log shows a visit",
			name, zap.String("hint", log.Hint))
	}
	r.log.Once(zapcore.InfoLevel, "read", "access log read", zap.Any("lines", logs))
}
