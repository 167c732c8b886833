package sitemap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/cespare/xxhash/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

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

	pollBusy     = time.Second // while a log grows
	pollIdle     = 5 * time.Second
	joinPatience = 30 * time.Second // with named sites that are not ready, before reading begins
	rereadAfter  = time.Minute      // at least, for sites that come later
	maxHosts     = 10_000           // Host headers that are remembered: clients may send any number
)

// What becomes of the lines of logs, besides why the parser cannot read them and why a visit does not count.
const (
	lineCounts    = "visits"
	lineOtherHost = "another host"
	lineOddPath   = "no clean path"
	lineOutside   = "outside the site's folder"
	lineOld       = "older than history"
)

// CaddyModule returns the Caddy module information.
func (SourceAccessLog) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.sitemap.sources.access_log",
		New: func() caddy.Module { return new(SourceAccessLog) },
	}
}

func (s *SourceAccessLog) discovers() (discovery, error) {
	d, err := s.Discovery.discovers()
	if err != nil {
		return d, err
	}
	if len(s.Files) == 0 {
		return d, errors.New("no log is named")
	}
	for _, name := range s.Files {
		if name == "" {
			return d, errors.New("a log has an empty name")
		}
		if _, err := filepath.Match(name, ""); err != nil {
			return d, fmt.Errorf("'%s' is no pattern of names: %w", name, err)
		}
	}
	if s.History != 0 && time.Duration(s.History) < minHistory {
		return d, fmt.Errorf("history is %s: the shortest is %s", time.Duration(s.History), minHistory)
	}
	_, err = accesslog.NewParser(s.Format)
	return d, err
}

// logReaders returns what reads the logs of a handler's sources.
func (h *Handler) logReaders() ([]*logReader, error) {
	var all []*logReader
	for _, source := range h.sources {
		s, ok := source.(*SourceAccessLog)
		if !ok {
			continue
		}
		r := &logReader{handler: h, source: len(all), history: time.Duration(s.History), hosts: make(map[string][]*site)}
		if r.history == 0 {
			r.history = defaultHistory
		}
		for _, name := range s.Files {
			replaced, err := caddy.NewReplacer().ReplaceOrErr(name, true, true)
			if err == nil {
				replaced, err = caddy.FastAbs(replaced)
			}
			if err != nil {
				return nil, fmt.Errorf("access_log '%s': %w", name, err)
			}
			r.files = append(r.files, replaced)
		}
		r.parser, _ = accesslog.NewParser(s.Format) // which was checked
		// With other settings, other lines are visits: the logs are read from the beginning.
		r.settings = xxhash.Sum64String(fmt.Sprintf("%q %q %v %q %q", r.files, s.Format, r.history, h.discovery.query, h.discovery.unlinked))
		r.log = &siteLog{Logger: h.logger.With(zap.Strings("logs", r.files)), last: make(map[string]string)}
		all = append(all, r)
	}
	return all, nil
}

// readLogs starts what reads access logs. It ends with running.
func (a *App) readLogs() {
	for _, h := range a.handlers {
		for _, r := range h.logs {
			a.group.Go(func() {
				if !orLeave(a.running, func() { r.run(a.running) }) {
					r.log.Warn("an access log cannot be read any more: the file system does not respond")
				}
			})
		}
	}
}

// logReader reads the logs of one source for all sites of its handler. Each line is read
// at least once for each site: after a restart, or when a site comes later, some come
// again, which does no harm.
type logReader struct {
	handler  *Handler
	source   int // its place among those of the handler that read logs
	settings uint64
	files    []string
	history  time.Duration
	parser   *accesslog.Parser
	log      *siteLog

	follower atomic.Pointer[accesslog.Follower] // nil: there is no site yet
	sites    map[*site]bool                     // of the handler
	joined   map[*site]accesslog.Positions      // those that the follower reads for, from where they were
	hosts    map[string][]*site                 // by the Host header of a line; "": a line without one
	begun    time.Time
	nextJoin time.Time // when other sites may join; zero: none has
	rereads  bool      // a site has joined since the last poll
	visit    accesslog.Visit
}

// run reads what there is, and then what comes, until ctx ends.
func (r *logReader) run(ctx context.Context) {
	r.begun = r.handler.app.now()
	for ctx.Err() == nil {
		wait := pollIdle
		if r.join(); r.follower.Load() == nil || r.poll(ctx) {
			wait = pollBusy
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// join lets sites join that have come since, once it is known what they have been read for
// before. They are read for from where they were, and so are all others again; not often,
// as clients could otherwise make up hosts to have the logs read again and again. The
// visits of an alias are another site's.
func (r *logReader) join() {
	app, sites := r.handler.app, make(map[*site]bool)
	app.mu.RLock()
	for _, s := range app.sites {
		if s.handler == r.handler {
			sites[s] = true
		}
	}
	app.mu.RUnlock()
	if !maps.Equal(sites, r.sites) {
		r.sites = sites
		clear(r.hosts)
		maps.DeleteFunc(r.joined, func(s *site, _ accesslog.Positions) bool { return !sites[s] })
	}
	ready := make(map[*site]accesslog.Positions)
	newcomers, complete, now := false, true, app.now()
	for s := range sites {
		switch _, joined := r.joined[s]; {
		case s.main.Load() != nil:
		case isDone(s.ready):
			ready[s] = s.state.progress.Get(r.source, r.settings)
			newcomers = newcomers || !joined
		default:
			complete = complete && s.onDemand
		}
	}
	if !newcomers || now.Before(r.nextJoin) || r.follower.Load() == nil && !complete && now.Sub(r.begun) < joinPatience {
		return
	}
	from := accesslog.Merge(slices.Collect(maps.Values(ready))...)
	r.follower.Store(accesslog.NewFollower(r.files, r.history, app.now, from))
	r.joined, r.rereads = ready, true
}

// poll reads what is new, and reports whether there was something.
func (r *logReader) poll(ctx context.Context) (grown bool) {
	app, begun, follower := r.handler.app, r.handler.app.now(), r.follower.Load()
	read := follower.Poll(ctx, func(line []byte) string { return r.take(line, begun) })
	if at := follower.Positions(); len(read) > 0 || r.rereads {
		for s := range r.joined {
			s.state.progress.Set(r.source, r.settings, at)
		}
	}
	for result, n := range read {
		app.counts.lines.WithLabelValues(result).Add(float64(n))
	}
	if ctx.Err() != nil {
		return false
	}
	logs := follower.Logs()
	r.log.onceIf(len(logs) == 0, zapcore.WarnLevel, "none", "there is no log to read so far")
	for _, log := range logs {
		r.log.onceIf(log.Error != "", zapcore.WarnLevel, log.Path, "a log cannot be read", zap.String("log", log.Path), zap.String("error", log.Error))
		unreadable := log.Lines[accesslog.ErrSyntax.Error()] > 0 && len(log.Lines) == 1
		r.log.onceIf(unreadable, zapcore.WarnLevel, log.Path+" lines", "no line of a log can be read: it has another format", zap.String("log", log.Path))
	}
	if r.rereads {
		took := app.now().Sub(begun)
		if r.nextJoin.IsZero() {
			r.log.Info("access log read", zap.Any("lines", read), zap.Duration("duration", took))
		}
		r.rereads, r.nextJoin = false, begun.Add(max(rereadAfter, shareOfTime*took))
	}
	return len(read) > 0
}

// logStatuses is what `status` shows of the logs of a handler.
func (h *Handler) logStatuses() (all []accesslog.Log) {
	for _, r := range h.logs {
		if follower := r.follower.Load(); follower != nil {
			all = append(all, follower.Logs()...)
		}
	}
	return all
}

// take notes the visit that a line of a log tells of, and returns what became of the line.
func (r *logReader) take(line []byte, now time.Time) string {
	v := &r.visit
	if err := r.parser.Parse(line, v); err != nil {
		return err.Error()
	}
	sites := r.sitesOf(v.Host)
	if len(sites) == 0 {
		return lineOtherHost
	}
	path, reason := r.handler.discovery.visit(v)
	if reason != "" {
		return reason
	}
	if v.Time == 0 || v.Time > now.Unix() {
		v.Time = now.Unix() // nobody knows when it was
	}
	if v.Time < now.Add(-r.history).Unix() {
		return lineOld
	}
	result := lineOutside
	for _, s := range sites {
		if s.visit(path, v.Time) {
			result = lineCounts
		}
	}
	return result
}

// sitesOf returns the sites that a line's host is of; of a line without a host, all.
func (r *logReader) sitesOf(host string) []*site {
	sites, known := r.hosts[host]
	if known {
		return sites
	}
	for s := range r.sites {
		if host == "" || s.isNamed(host) {
			sites = append(sites, s)
		}
	}
	if len(r.hosts) >= maxHosts {
		clear(r.hosts)
	}
	r.hosts[strings.Clone(host)] = sites
	return sites
}
