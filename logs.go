package sitemap

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed3295b519/caddy-sitemap/internal/accesslog"
)

const (
	pollFirst    = 100 * time.Millisecond // until it is known where to begin
	pollBusy     = time.Second            // while a log grows
	pollIdle     = 10 * time.Second
	pollBytes    = 64 << 20         // that are read before positions are noted
	joinPatience = 30 * time.Second // with named sites that are not ready, before reading begins
	rereadAfter  = time.Minute      // at least, for sites that come later
	reportEvery  = time.Hour
	maxHosts     = 10_000 // Host headers that are remembered: clients may send any number
)

// What becomes of the lines of logs, besides the reasons of parser and filter.
const (
	lineOtherHost = "another host"
	lineOddPath   = "no clean path"
	lineOutside   = "outside the site's folder"
	lineOld       = "older than history"
	lineTooLong   = "longer than 1 MiB"
)

// lineCounts is what becomes of a line that is a visit.
var lineCounts = accesslog.Counts.String()

// readVisits starts what takes the visits that logs and requests show. It ends with
// running.
func (a *App) readVisits() {
	if a.visits != nil {
		a.group.Go(func() { (&visitTaker{app: a}).run(a.running) })
	}
	for _, h := range a.handlers {
		for _, r := range h.logReaders() {
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
	app     *App
	handler *Handler
	source  *SourceAccessLog
	key     string   // of its positions
	keys    []string // of all readers of the handler
	files   []string
	log     *siteLog
	failing map[string]bool // what cannot be read

	follower *accesslog.Follower // nil: there is no site yet
	parser   *accesslog.Parser
	filter   accesslog.Filter
	sites    map[*site]bool     // of the handler
	joined   map[*site]bool     // those that the follower reads for, from where they were
	hosts    map[string][]*site // by the Host header of a line; "": a line without one

	begun    time.Time      // when the follower began, or the reader
	caughtUp bool           // the follower has come to the end of the logs since
	nextJoin time.Time      // when other sites may join
	results  map[string]int // of the follower's lines
	reported time.Time
	lines    int64         // at that time
	level    zapcore.Level // of the report when it has caught up

	// Of the present poll.
	visit       accesslog.Visit
	now, oldest int64
	fresh       map[string]int
	reasons     [accesslog.Reasons]int
}

// logReaders returns what reads the logs of a handler's sources.
func (h *Handler) logReaders() []*logReader {
	var all []*logReader
	for i, source := range h.sources {
		logs, ok := source.(*SourceAccessLog)
		if !ok {
			continue
		}
		logger := h.logger.With(zap.Int("source", i+1), zap.Strings("logs", logs.Files))
		files, err := logs.files()
		if err != nil {
			logger.Error("the access log cannot be read", zap.Error(err))
			continue
		}
		// With other settings, other lines are visits: the logs are read from the beginning.
		settings := fmt.Sprintf("%q %q %v %q %v", files, logs.Format, logs.history(), h.discovery.query, h.discovery.unlinked)
		all = append(all, &logReader{
			app: h.app, handler: h, source: logs, key: fmt.Sprintf("%016x", xxhash.Sum64String(settings)), files: files,
			log: &siteLog{Logger: logger, last: make(map[string]string)}, failing: make(map[string]bool),
			sites: make(map[*site]bool), joined: make(map[*site]bool), hosts: make(map[string][]*site),
			results: make(map[string]int), fresh: make(map[string]int),
		})
	}
	for _, r := range all {
		for _, other := range all {
			r.keys = append(r.keys, other.key)
		}
	}
	return all
}

// run reads what there is, and then what comes, until ctx ends.
func (r *logReader) run(ctx context.Context) {
	r.begun = r.app.now()
	for wait := time.Duration(0); ; {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil {
			break
		}
		r.join()
		if r.follower == nil {
			wait = min(max(2*wait, pollFirst), pollBusy)
			continue
		}
		switch grown, more := r.poll(ctx); {
		case more:
			wait = 0
		case grown:
			wait = pollBusy
		default:
			wait = min(max(2*wait, pollBusy), pollIdle)
		}
	}
	if r.follower != nil {
		r.follower.Close()
	}
}

// join lets sites join that have come since. They are read for from where they were, and so
// are all others again; not often, as clients could otherwise make up hosts to have the
// logs read again and again.
func (r *logReader) join() {
	newcomers, complete := r.newcomers()
	now := r.app.now()
	switch {
	case len(newcomers) == 0:
		return
	case r.follower == nil && !complete && now.Sub(r.begun) < joinPatience:
		return
	case r.follower != nil && (!r.caughtUp || now.Before(r.nextJoin)):
		return
	}
	parser, err := r.source.parser()
	if err != nil {
		r.log.once(zapcore.ErrorLevel, "parser", "the access log cannot be read", zap.Error(err)) // Provision refuses this
		return
	}
	var all []accesslog.Positions
	r.level = zapcore.InfoLevel
	if r.follower != nil {
		all = append(all, r.follower.Positions())
		r.follower.Close()
		r.level = zapcore.DebugLevel
	}
	for _, s := range newcomers {
		all = append(all, s.state.positions.get(r.key))
		s.state.positions.keep(r.keys)
		r.joined[s] = true
	}
	from := all[0]
	for _, other := range all[1:] {
		from = accesslog.Merge(from, other)
	}
	r.follower = accesslog.NewFollower(accesslog.FollowOptions{Patterns: r.files, History: r.source.history(), Now: r.app.now}, from)
	r.parser, r.begun, r.caughtUp, r.lines = parser, now, false, 0
	clear(r.results)
}

// newcomers returns the sites that are not read for yet, once it is known what they have
// been read for before. An alias is not among them: its visits are another site's. complete
// is false while there are others of the sites that the configuration names.
func (r *logReader) newcomers() (newcomers []*site, complete bool) {
	sites := make(map[*site]bool)
	r.app.mu.RLock()
	for _, s := range r.app.sites {
		if s.handler == r.handler {
			sites[s] = true
		}
	}
	r.app.mu.RUnlock()
	if !maps.Equal(sites, r.sites) {
		r.sites = sites
		clear(r.hosts)
	}
	maps.DeleteFunc(r.joined, func(s *site, _ bool) bool { return !sites[s] || s.main.Load() != nil })
	complete = true
	for s := range sites {
		switch {
		case r.joined[s] || s.main.Load() != nil:
		case isDone(s.ready):
			newcomers = append(newcomers, s)
		case !s.onDemand:
			complete = false
		}
	}
	return newcomers, complete
}

// poll reads what is new. more says that there is more to read at once.
func (r *logReader) poll(ctx context.Context) (grown, more bool) {
	now := r.app.now()
	r.now, r.oldest = now.Unix(), now.Add(-r.source.history()).Unix()
	before := r.follower.Stats()
	more, err := r.follower.Poll(ctx, pollBytes, r.line)
	stats := r.follower.Stats()
	r.fresh[lineTooLong] += int(stats.TooLong - before.TooLong)
	r.count()
	if ctx.Err() != nil {
		return false, false
	}
	if err != nil {
		r.log.once(zapcore.WarnLevel, "poll", "reading the access log failed", zap.Error(err))
	}
	if stats.Bytes > before.Bytes || !r.caughtUp {
		at := r.follower.Positions()
		for s := range r.joined {
			s.state.positions.set(r.key, at)
		}
	}
	caughtUp := r.caughtUp
	r.caughtUp = caughtUp || !more
	r.logErrors(stats)
	switch {
	case r.caughtUp && !caughtUp:
		r.nextJoin = now.Add(max(rereadAfter, shareOfTime*r.app.now().Sub(r.begun)))
		r.report(r.level, "access log read", stats)
	case r.caughtUp && now.Sub(r.reported) >= reportEvery && stats.Lines > r.lines:
		r.report(zapcore.InfoLevel, "access log read on", stats)
	}
	return stats.Lines > before.Lines, more
}

// line takes a line of a log.
func (r *logReader) line(line []byte) {
	r.fresh[r.take(line)]++
}

// take notes the visit that a line tells of, and returns what became of the line.
func (r *logReader) take(line []byte) string {
	v := &r.visit
	if err := r.parser.Parse(line, v); err != nil {
		return err.Error()
	}
	sites := r.sitesOf(v.Host)
	if len(sites) == 0 {
		return lineOtherHost
	}
	reason := r.filter.Reason(v)
	r.reasons[reason]++
	if reason != accesslog.Counts {
		return reason.String()
	}
	switch {
	case v.Time > r.now || v.Time == 0:
		v.Time = r.now // nobody knows when it was
	case v.Time < r.oldest:
		return lineOld
	}
	path, ok := r.handler.discovery.cleaner.Clean(v.URI)
	if !ok {
		return lineOddPath
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

// count adds the lines of a poll to the metrics, to the report and to what `status` says.
func (r *logReader) count() {
	for result, n := range r.fresh {
		if n > 0 {
			r.app.counts.lines.WithLabelValues(result).Add(float64(n))
			r.results[result] += n
		}
	}
	for reason, n := range r.reasons {
		r.handler.discovery.visits.add(accesslog.Reason(reason), n)
	}
	clear(r.fresh)
	clear(r.reasons[:])
}

// report logs what became of the lines so far.
func (r *logReader) report(level zapcore.Level, message string, stats accesslog.Stats) {
	r.reported, r.lines = r.app.now(), stats.Lines
	fields := []zap.Field{
		zap.Int64("files", stats.Files), zap.Int64("lines", stats.Lines), zap.Int64("bytes", stats.Bytes),
		zap.Int("visits", r.results[lineCounts]), zap.Duration("duration", r.app.now().Sub(r.begun)),
	}
	if len(stats.PassedOver) > 0 {
		fields = append(fields, zap.Any("files_passed_over", stats.PassedOver))
	}
	leftOut := maps.Clone(r.results)
	delete(leftOut, lineCounts)
	r.log.Log(level, message, append(fields, leftOutFields(leftOut)...)...)
}

// leftOutFields says how much was left out, by reason.
func leftOutFields(leftOut map[string]int) []zap.Field {
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(leftOut)) {
		parts = append(parts, fmt.Sprintf("%s: %d", reason, leftOut[reason]))
	}
	if parts == nil {
		return nil
	}
	return []zap.Field{zap.Strings("left_out", parts)}
}

// logErrors warns of the files that cannot be read, each once, and of there being none.
func (r *logReader) logErrors(stats accesslog.Stats) {
	for path, err := range stats.Errors {
		r.failing[path] = true
		r.log.once(zapcore.WarnLevel, path, "a log cannot be read", zap.String("log", path), zap.Error(err))
	}
	for path := range r.failing {
		if stats.Errors[path] == nil {
			delete(r.failing, path)
			r.log.clear(path)
		}
	}
	if r.caughtUp && stats.Files == 0 && len(stats.Errors) == 0 {
		r.log.once(zapcore.WarnLevel, "none", "there is no log to read so far")
	}
}

// positions is how far logs were read for a site, by the keys of their readers. It is safe
// for concurrent use.
type positions struct {
	mu       sync.Mutex
	read     map[string]accesslog.Positions
	gathered map[string]accesslog.Positions // whose visits a refresh was given
	changed  bool                           // gathered, since takeChanged
}

// get returns from where a reader is to begin; nothing: from the beginning.
func (p *positions) get(key string) accesslog.Positions {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gathered[key]
}

// set notes how far a reader has read, once its visits were noted.
func (p *positions) set(key string, at accesslog.Positions) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.read == nil {
		p.read = make(map[string]accesslog.Positions)
	}
	p.read[key] = at
}

// gather notes that a refresh takes the visits that were noted so far: what is read only
// later may not be lost with this process.
func (p *positions) gather() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.read) == 0 {
		return
	}
	if p.gathered == nil {
		p.gathered = make(map[string]accesslog.Positions)
	}
	maps.Copy(p.gathered, p.read)
	clear(p.read)
	p.changed = true
}

// keep drops the positions of all other readers.
func (p *positions) keep(keys []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	isOther := func(key string, _ accesslog.Positions) bool { return !slices.Contains(keys, key) }
	maps.DeleteFunc(p.read, isOther)
	maps.DeleteFunc(p.gathered, isOther)
}

// encode returns the positions as JSON; nil: there are none.
func (p *positions) encode() json.RawMessage {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.gathered) == 0 {
		return nil
	}
	encoded, _ := json.Marshal(p.gathered) // strings and numbers alone
	return encoded
}

// decode takes over what encode returned. What was read since stands.
func (p *positions) decode(encoded json.RawMessage) error {
	if len(encoded) == 0 {
		return nil
	}
	kept := make(map[string]accesslog.Positions)
	if err := json.Unmarshal(encoded, &kept); err != nil {
		return fmt.Errorf("reading the positions in access logs: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.gathered) == 0 && len(p.read) == 0 {
		p.gathered = kept
	}
	return nil
}

// takeChanged reports whether there is something new to encode since the last call.
func (p *positions) takeChanged() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	changed := p.changed
	p.changed = false
	return changed
}
