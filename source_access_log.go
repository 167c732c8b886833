package sitemap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
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

// requestName is a placeholder that has a value in requests alone.
var requestName = regexp.MustCompile(`\{http\.[^{}]*\}`)

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
		if placeholder := requestName.FindString(name); placeholder != "" {
			return d, fmt.Errorf("'%s': %s has no value here: of placeholders, only global ones such as {env.*} are replaced", name, placeholder)
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
		r := &logReader{handler: h, source: len(all), history: time.Duration(s.History), joined: make(map[*site]bool), hosts: make(map[string][]*site)}
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

	follower *accesslog.Follower // nil: there is no site yet
	sites    map[*site]bool      // of the handler
	joined   map[*site]bool      // those that the follower reads for, from where they were
	hosts    map[string][]*site  // by the Host header of a line; "": a line without one
	begun    time.Time
	nextJoin time.Time // when other sites may join; zero: none has
	rereads  bool      // a site has joined since the last poll
	visit    accesslog.Visit

	mu     sync.Mutex
	status map[string]*logStatus // by path
}

// logStatus is what was read of a log so far, and its rolled files.
type logStatus struct {
	Log   string         `json:"log"`
	Lines map[string]int `json:"lines,omitempty"` // visits, and lines that are none by reason
	Error string         `json:"error,omitempty"` // why it cannot be read now
}

// run reads what there is, and then what comes, until ctx ends.
func (r *logReader) run(ctx context.Context) {
	r.begun = r.handler.app.now()
	for ctx.Err() == nil {
		wait := pollIdle
		if r.join(); r.follower == nil || r.poll(ctx) {
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
		maps.DeleteFunc(r.joined, func(s *site, _ bool) bool { return !sites[s] })
	}
	var ready []*site
	var from []accesslog.Positions
	newcomers, complete, now := false, true, app.now()
	for s := range sites {
		switch {
		case s.main.Load() != nil:
		case isDone(s.ready):
			ready, from = append(ready, s), append(from, s.state.positions.get(r.source, r.settings))
			newcomers = newcomers || !r.joined[s]
		default:
			complete = complete && s.onDemand
		}
	}
	if !newcomers || now.Before(r.nextJoin) || r.follower == nil && !complete && now.Sub(r.begun) < joinPatience {
		return
	}
	for _, s := range ready {
		r.joined[s] = true
	}
	r.follower = accesslog.NewFollower(r.files, r.history, app.now, accesslog.Merge(from...))
	r.rereads = true
	r.mu.Lock()
	r.status = make(map[string]*logStatus)
	r.mu.Unlock()
}

// poll reads what is new, and reports whether there was something.
func (r *logReader) poll(ctx context.Context) (grown bool) {
	app, begun := r.handler.app, r.handler.app.now()
	read := make(map[string]map[string]int) // lines by log and by what became of them
	files, errs := r.follower.Poll(ctx, func(log string, line []byte) {
		if read[log] == nil {
			read[log] = make(map[string]int)
		}
		read[log][r.take(line, begun)]++
	})
	if at := (readLogs{r.settings, r.follower.Positions()}); len(read) > 0 || r.rereads {
		for s := range r.joined {
			s.state.positions.set(r.source, at)
		}
	}
	for _, lines := range read {
		for result, n := range lines {
			app.counts.lines.WithLabelValues(result).Add(float64(n))
		}
	}
	if ctx.Err() != nil {
		return false
	}
	r.report(read, errs)
	r.log.onceIf(files == 0 && len(errs) == 0, zapcore.WarnLevel, "none", "there is no log to read so far")
	if !r.rereads {
		return len(read) > 0
	}
	level, took, leftOut := zapcore.InfoLevel, app.now().Sub(begun), make(map[string]int)
	for _, lines := range read {
		for result, n := range lines {
			leftOut[result] += n
		}
	}
	visits := leftOut[lineCounts]
	delete(leftOut, lineCounts)
	if !r.nextJoin.IsZero() {
		level = zapcore.DebugLevel
	}
	r.rereads, r.nextJoin = false, begun.Add(max(rereadAfter, shareOfTime*took))
	r.log.Log(level, "access log read", zap.Int("files", files), zap.Int("visits", visits), zap.Any("left_out", leftOut), zap.Duration("duration", took))
	return true
}

// report adds what was read to what `status` shows, and warns of what cannot be read, each once.
func (r *logReader) report(read map[string]map[string]int, errs map[string]error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	entry := func(path string) *logStatus {
		if r.status[path] == nil {
			r.status[path] = &logStatus{Log: path, Lines: make(map[string]int)}
		}
		return r.status[path]
	}
	for path, lines := range read {
		for result, n := range lines {
			entry(path).Lines[result] += n
		}
	}
	for path, err := range errs {
		entry(path).Error = err.Error()
	}
	for path, log := range r.status {
		if errs[path] == nil {
			log.Error = ""
		}
		r.log.onceIf(log.Error != "", zapcore.WarnLevel, path, "a log cannot be read", zap.String("log", path), zap.Error(errs[path]))
		unreadable := log.Lines[accesslog.ErrSyntax.Error()]
		r.log.onceIf(unreadable > 0 && len(log.Lines) == 1, zapcore.WarnLevel, path+" format", "no line of an access log can be read: it has another format", zap.String("log", path))
		if log.Error == "" && len(log.Lines) == 0 {
			delete(r.status, path)
		}
	}
}

// logStatuses is what `status` shows of the logs of a handler.
func (h *Handler) logStatuses() []logStatus {
	var all []logStatus
	for _, r := range h.logs {
		r.mu.Lock()
		for _, log := range r.status {
			all = append(all, logStatus{log.Log, maps.Clone(log.Lines), log.Error})
		}
		r.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b logStatus) int { return strings.Compare(a.Log, b.Log) })
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

// readLogs is how far the logs of a source were read, with its settings.
type readLogs struct {
	Settings uint64              `json:"settings"`
	Files    accesslog.Positions `json:"files"`
}

// positions is how far logs were read for a site, by the place of their source. It is safe
// for concurrent use.
type positions struct {
	mu       sync.Mutex
	read     map[int]readLogs
	gathered map[int]readLogs // whose visits a refresh was given; it is not changed
	isNew    bool             // read, since gather
	changed  bool             // gathered, since takeChanged
}

// get returns from where a reader is to begin; nothing: from the beginning.
func (p *positions) get(source int, settings uint64) accesslog.Positions {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := p.read[source]; at.Settings == settings {
		return at.Files
	}
	return nil
}

// set notes how far a reader has read, once its visits were noted.
func (p *positions) set(source int, at readLogs) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.read == nil {
		p.read = make(map[int]readLogs)
	}
	p.read[source], p.isNew = at, true
}

// gather notes that a refresh takes the visits that were noted so far: what is read only
// later may not be lost with this process.
func (p *positions) gather() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isNew {
		p.gathered, p.isNew, p.changed = maps.Clone(p.read), false, true
	}
}

// stored returns what is to be written with the site's records.
func (p *positions) stored() map[int]readLogs {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gathered
}

// restore takes over what was written. What was read since stands.
func (p *positions) restore(stored map[int]readLogs) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.read == nil {
		p.read, p.gathered = maps.Clone(stored), stored
	}
}

// takeChanged reports whether there is something new to store since the last call.
func (p *positions) takeChanged() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	changed := p.changed
	p.changed = false
	return changed
}

var _ discoverer = (*SourceAccessLog)(nil)
