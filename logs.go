package sitemap

import (
	"context"
	"encoding/json"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/accesslog"
	"github.com/seed3295b519/caddy-sitemap/internal/discover"
)

const (
	pollBusy    = time.Second // while a log grows
	pollIdle    = 10 * time.Second
	pollBytes   = 64 << 20 // that are read before positions are noted
	joinAtLeast = time.Minute
	reportEvery = time.Hour
	clockSkew   = 300 // seconds by which another machine's clock may be ahead
)

// What becomes of a log's lines, besides the reasons of parser and filter.
const (
	lineCounts  = "visits"
	otherHost   = "another host"
	oddPath     = "no clean path"
	outsideSite = "outside the site's folder"
	lineOld     = "older than history"
	lineTooLong = "longer than 1 MiB"
)

// reading reads the logs of a source for the sites of its handler.
type reading struct {
	app     *App
	handler *Handler
	source  *SourceAccessLog
	key     string          // under which positions are noted
	keys    map[string]bool // of all of the handler's
	files   []string
	logger  *zap.Logger

	joined  map[*site]bool
	cohorts []*cohort
	next    time.Time // when sites may join that came later
	said    map[string]string
}

// cohort is the sites for which logs are read together.
type cohort struct {
	reading  *reading
	follower *accesslog.Follower
	parser   *accesslog.Parser
	filter   discover.Filter
	cleaner  discover.Cleaner
	sites    []*site
	hosts    map[string][]*site // by the Host header of a line; sites found so far
	begun    time.Time
	caughtUp bool
	reported time.Time
	lines    int64 // at that time

	visit  accesslog.Visit
	counts map[string]int
	told   map[string]int // of counts, what metrics have
	oldest int64
	now    int64
	ctx    context.Context
}

// readings are what reads the logs of a handler's sources.
func (h *Handler) readings() []*reading {
	var all []*reading
	for i, source := range h.sources {
		logs, ok := source.(*SourceAccessLog)
		if !ok {
			continue
		}
		files, err := logs.files()
		if err != nil {
			h.logger.Error("the access log cannot be read", zap.Error(err))
			continue
		}
		// What becomes of a line depends on these: with others, logs are read anew.
		settings, _ := json.Marshal([]any{files, logs.Format, logs.Fields, logs.history(), h.discovery.query, h.discovery.rules})
		all = append(all, &reading{
			app: h.app, handler: h, source: logs, key: settingsOf(keyOf(settings))[:16], files: files,
			logger: h.logger.With(zap.Int("source", i+1), zap.Strings("logs", logs.Files)),
			joined: make(map[*site]bool), said: make(map[string]string),
		})
	}
	keys := make(map[string]bool)
	for _, r := range all {
		keys[r.key] = true
		r.keys = keys
	}
	return all
}

// run reads until ctx ends: what there is, and then what comes.
func (r *reading) run(ctx context.Context) {
	defer func() {
		for _, c := range r.cohorts {
			c.follower.Close()
		}
	}()
	wait := time.Duration(0)
	for ctx.Err() == nil {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		r.admit(ctx)
		switch grown, more := r.poll(ctx); {
		case more:
			wait = 0
		case grown:
			wait = pollBusy
		default:
			wait = min(max(2*wait, pollBusy), pollIdle)
		}
	}
}

// admit begins to read for sites that there are now. What came later than others reads
// by itself until it has caught up, and not often: who comes by a visitor's Host header
// alone shall not have the logs read again and again.
func (r *reading) admit(ctx context.Context) {
	now := r.app.now()
	if len(r.cohorts) > 0 && now.Before(r.next) {
		return
	}
	var sites []*site
	r.app.mu.RLock()
	for _, s := range r.app.sites {
		if s.handler == r.handler && !r.joined[s] {
			sites = append(sites, s)
		}
	}
	r.app.mu.RUnlock()
	if len(sites) == 0 {
		return
	}
	c, err := r.cohort(ctx, sites, now)
	if err != nil {
		r.logger.Error("the access log cannot be read", zap.Error(err)) // Provision has refused this
		return
	}
	for _, s := range sites {
		r.joined[s] = true
		s.shelf.paths.forget(r.keys)
	}
	r.cohorts = append(r.cohorts, c)
	r.next = now.Add(joinAtLeast)
}

func (r *reading) cohort(ctx context.Context, sites []*site, now time.Time) (*cohort, error) {
	options, err := r.source.format()
	if err != nil {
		return nil, err
	}
	c := &cohort{reading: r, sites: sites, begun: now, hosts: make(map[string][]*site), counts: make(map[string]int), told: make(map[string]int), cleaner: r.handler.discovery.cleaner()}
	if c.parser, err = accesslog.NewParser(options); err != nil {
		return nil, err
	}
	var from accesslog.Positions
	for i, s := range sites {
		s.paths(ctx)
		at := s.shelf.paths.position(r.key)
		if i == 0 {
			from = at
			continue
		}
		from = accesslog.Merge(from, at)
	}
	c.follower = accesslog.NewFollower(accesslog.FollowOptions{Patterns: r.files, History: r.source.history(), Now: r.app.now}, from)
	return c, nil
}

// poll reads what is new for all cohorts. more says that there is more to read at once.
func (r *reading) poll(ctx context.Context) (grown, more bool) {
	for _, c := range r.cohorts {
		before := c.follower.Stats().Lines
		again, err := c.poll(ctx)
		if ctx.Err() != nil {
			return false, false
		}
		if err != nil {
			r.say("poll", "reading the access log failed", zap.Error(err))
		}
		more = more || again
		grown = grown || c.follower.Stats().Lines > before
		c.complain()
		if !again && !c.caughtUp {
			c.caughtUp = true
			r.next = r.app.now().Add(max(joinAtLeast, shareOfTime*r.app.now().Sub(c.begun)))
			c.report("access log read")
			c.keep(ctx)
		}
		if c.caughtUp && r.app.now().Sub(c.reported) >= reportEvery && c.follower.Stats().Lines > c.lines {
			c.report("access log read on")
		}
	}
	r.unite()
	return grown, more
}

// unite lets cohorts that have caught up go on with the first. It has read no more than
// they have; what they have read and it has not comes to them again, which does no harm.
func (r *reading) unite() {
	if len(r.cohorts) == 0 || !r.cohorts[0].caughtUp {
		return
	}
	first := r.cohorts[0]
	rest := r.cohorts[1:]
	r.cohorts = r.cohorts[:1:1]
	for _, c := range rest {
		if !c.caughtUp {
			r.cohorts = append(r.cohorts, c)
			continue
		}
		first.sites = append(first.sites, c.sites...)
		clear(first.hosts)
		c.follower.Close()
	}
}

func (c *cohort) poll(ctx context.Context) (more bool, err error) {
	c.leave()
	now := c.reading.app.now()
	c.ctx, c.now, c.oldest = ctx, now.Unix(), now.Add(-c.reading.source.history()).Unix()
	before := c.follower.Stats().Bytes
	more, err = c.follower.Poll(ctx, pollBytes, c.line)
	c.tell()
	if c.caughtUp && c.follower.Stats().Bytes == before {
		return more, err
	}
	at := c.follower.Positions()
	for _, s := range c.sites {
		s.shelf.paths.read(c.reading.key, at)
	}
	return more, err
}

// tell has the lines counted that came since the last time.
func (c *cohort) tell() {
	counts := c.counts
	if n := c.follower.Stats().TooLong; n > 0 {
		counts = maps.Clone(counts)
		counts[lineTooLong] = int(n)
	}
	for result, n := range counts {
		if more := n - c.told[result]; more > 0 {
			c.reading.app.counts.lines.WithLabelValues(result).Add(float64(more))
			c.told[result] = n
		}
	}
}

// leave forgets sites that are no more.
func (c *cohort) leave() {
	isGone := func(s *site) bool { return s.ctx.Err() != nil }
	if !slices.ContainsFunc(c.sites, isGone) {
		return
	}
	for _, s := range c.sites {
		if isGone(s) {
			delete(c.reading.joined, s)
		}
	}
	c.sites = slices.DeleteFunc(c.sites, isGone)
	clear(c.hosts)
}

// line takes a line of a log.
func (c *cohort) line(line []byte) {
	c.counts[c.take(line)]++
}

// take is what becomes of a line.
func (c *cohort) take(line []byte) string {
	v := &c.visit
	if err := c.parser.Parse(line, v); err != nil {
		return err.Error()
	}
	if reason := c.filter.Reason(v); reason != 0 {
		return reason.String()
	}
	switch {
	case v.Time > c.now && v.Time <= c.now+clockSkew:
		v.Time = c.now
	case v.Time > c.now, v.Time == 0:
		// Nobody knows in which hour that was, so it is nobody's visit.
		v.Time, v.Client = c.now, ""
	case v.Time < c.oldest:
		return lineOld
	}
	sites := c.sitesOf(v.Host)
	if len(sites) == 0 {
		return otherHost
	}
	path, ok := c.cleaner.Clean(v.URI)
	if !ok {
		return oddPath
	}
	result := outsideSite
	for _, s := range sites {
		if s.visited(c.ctx, discover.FromLog, path, v) {
			result = lineCounts
		}
	}
	return result
}

// maxHosts is how many Host headers are remembered: a stranger may send any number.
const maxHosts = 10_000

// sitesOf are the sites that a line's host is of: all, where the line names none.
func (c *cohort) sitesOf(host string) []*site {
	if host == "" {
		return c.sites
	}
	if sites, known := c.hosts[host]; known {
		return sites
	}
	var sites []*site
	for _, s := range c.sites {
		if s.isNamed(host) {
			sites = append(sites, s)
		}
	}
	if len(c.hosts) >= maxHosts {
		clear(c.hosts)
	}
	c.hosts[strings.Clone(host)] = sites
	return sites
}

// isNamed reports whether a Host header is that of the site, be it as visitors know
// it or as the server does. Where it says no port, any is meant.
func (s *site) isNamed(host string) bool {
	name, ok := cleanHost(host)
	if !ok {
		return false
	}
	_, port, _ := net.SplitHostPort(host)
	for _, base := range [...]string{s.base, s.askBase} {
		scheme, rest, _ := strings.Cut(base, "://")
		own, _ := cleanHost(rest)
		if own != name {
			continue
		}
		if port == "" || origin(scheme, own, port) == base {
			return true
		}
	}
	return false
}

// keep writes down at once what a long history showed.
func (c *cohort) keep(ctx context.Context) {
	for _, s := range c.sites {
		s.keepPaths(ctx)
	}
}

// report says what became of the lines so far.
func (c *cohort) report(message string) {
	stats := c.follower.Stats()
	c.reported, c.lines = c.reading.app.now(), stats.Lines
	visits := c.counts[lineCounts]
	leftOut := maps.Clone(c.counts)
	delete(leftOut, lineCounts)
	if stats.TooLong > 0 {
		leftOut[lineTooLong] = int(stats.TooLong)
	}
	fields := []zap.Field{
		zap.Int64("files", stats.Files), zap.Int64("lines", stats.Lines), zap.Int64("bytes", stats.Bytes),
		zap.Int("visits", visits), zap.Duration("duration", c.reading.app.now().Sub(c.begun)),
	}
	if len(stats.PassedOver) > 0 {
		fields = append(fields, zap.Any("files_passed_over", stats.PassedOver))
	}
	c.reading.logger.Info(message, append(fields, leftOutFields(leftOut)...)...)
}

// complain warns of the files that cannot be read, each once, and of there being none.
func (c *cohort) complain() {
	r, stats := c.reading, c.follower.Stats()
	for path, err := range stats.Errors {
		r.say(path, "a log cannot be read", zap.String("log", path), zap.Error(err))
	}
	maps.DeleteFunc(r.said, func(path, _ string) bool {
		return filepath.IsAbs(path) && stats.Errors[path] == nil
	})
	if c.caughtUp && stats.Files == 0 && len(stats.Errors) == 0 {
		r.say("none", "there is no log to read so far")
	}
}

// say logs a warning, and not again while it stays the same.
func (r *reading) say(kind, message string, fields ...zap.Field) {
	if isNew(r.said, kind, message, fields) {
		r.logger.Warn(message, fields...)
	}
}
