package accesslog

import (
	"cmp"
	"context"
	"maps"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/visits"
)

const (
	joinPatience = 30 * time.Second // with sites that are not ready, before reading begins
	rereadAfter  = time.Minute      // at least, and twenty times what it took, for sites that come later
	maxHosts     = 10_000           // hosts of lines that are remembered: clients may send any number
)

// Site receives the visits that a [Reader] finds.
type Site interface {
	// IsNamed reports whether a line's host is that of the site.
	IsNamed(host string) bool

	// Visit records a visit to a page, at a Unix time that is not in the future. It returns false if the site has no
	// such page.
	Visit(path string, at int64) bool

	// Signal says that a visitor has just got something else than a page at a path, of which there may be none.
	Signal(path string)

	// Progress returns how far logs were read for the site.
	Progress() *Progress
}

// Results of lines, besides the errors of [Parser.Parse] and the reasons of [visits.Filter.Page].
const (
	Counts    = "visits"
	otherHost = "another host"
	outside   = "outside the site's folder"
	tooOld    = "older than history"
	nameless  = "no User-Agent" // or something else in its place
)

// Reader reads the logs of a source for all sites of a handler. Each line is read at least once for each site: after a
// restart, or when a site joins later, some are read again, which does no harm. Only [Reader.Logs] may be called
// concurrently.
type Reader struct {
	Source   int           // its number in [Progress]
	Settings uint64        // digest: if it has changed, the logs are read from the beginning
	Files    []string      // absolute names of logs, or patterns as of [filepath.Match]
	History  time.Duration // how old visits may be
	Now      func() time.Time
	Parser   *Parser
	Filter   *visits.Filter

	follower atomic.Pointer[follower] // nil: there is no site yet
	sites    map[Site]bool
	joined   map[Site]bool
	hosts    map[string][]Site // by the host of a line; "": a line without one
	begun    time.Time
	nextJoin time.Time // when other sites may join; zero: none has
	rereads  bool      // a site has joined since the last poll
	visit    visits.Visit
}

// Join lets new sites join. sites are all of them, by whether they are ready: whether their progress is known. When one
// joins, reading goes back to the least progress of all; not often, as clients could otherwise make up hosts to have the
// logs read again and again. Unless complete, which says that no other site will soon be ready, the first join waits a
// while. Join reports whether any site has joined.
func (r *Reader) Join(sites map[Site]bool, complete bool) bool {
	now := r.Now()
	if r.begun.IsZero() {
		r.begun = now
	}
	if !maps.Equal(sites, r.sites) {
		r.sites = sites
		r.hosts = make(map[string][]Site)
		maps.DeleteFunc(r.joined, func(s Site, _ bool) bool {
			_, isLeft := sites[s]
			return !isLeft
		})
	}
	hasStarted := r.follower.Load() != nil
	ready := make(map[Site]bool)
	hasNewcomers := false
	var from []Positions
	for s, isReady := range sites {
		if isReady {
			ready[s] = true
			hasNewcomers = hasNewcomers || !r.joined[s]
			from = append(from, s.Progress().Get(r.Source, r.Settings))
		}
	}
	if !hasNewcomers || now.Before(r.nextJoin) {
		return hasStarted
	}
	// Each site that joins after the first ones has the logs read once more.
	if !hasStarted && !complete && now.Sub(r.begun) < joinPatience {
		return false
	}
	r.follower.Store(newFollower(r.Files, r.History, r.Now, mergePositions(from...)))
	r.joined = ready
	r.rereads = true
	return true
}

// Poll reads what is new, once a site has joined, and returns the number of lines by result.
func (r *Reader) Poll(ctx context.Context) (read map[string]int) {
	begun := r.Now()
	follower := r.follower.Load()
	read = follower.Poll(ctx, func(line []byte) string { return r.take(line, begun) })
	// All visits up to these positions are recorded now.
	if len(read) > 0 || r.rereads {
		at := follower.Positions()
		for s := range r.joined {
			s.Progress().Set(r.Source, r.Settings, at)
		}
	}
	if r.rereads && ctx.Err() == nil {
		r.rereads = false
		r.nextJoin = begun.Add(max(rereadAfter, 20*r.Now().Sub(begun)))
	}
	return read
}

// Logs returns the logs, by path, with the lines read since the last site joined.
func (r *Reader) Logs() []Log {
	follower := r.follower.Load()
	if follower == nil {
		return nil
	}
	logs := follower.Logs()
	for i := range logs {
		logs[i].Hint = cmp.Or(hint(logs[i].first, r.Parser.format), agentHint(logs[i].Lines))
		logs[i].first = nil
	}
	return logs
}

// take records the visit of a line, and returns the result of the line.
func (r *Reader) take(line []byte, now time.Time) string {
	v := &r.visit
	if err := r.Parser.Parse(line, v); err != nil {
		return err.Error()
	}
	sites := r.sitesOf(v.Host)
	if len(sites) == 0 {
		return otherHost
	}
	path, reason := r.Filter.Page(v)
	if reason != "" {
		r.signal(v, sites, now.Unix())
		// The User-Agents of nearly all programs have a version.
		if reason == visits.Robot && !strings.Contains(v.UserAgent, "/") {
			return nameless
		}
		return reason
	}
	// Nobody knows when it was, if the line has no time, or one that is still to come.
	if v.Time == 0 || v.Time > now.Unix() {
		v.Time = now.Unix()
	}
	if v.Time < now.Add(-r.History).Unix() {
		return tooOld
	}
	result := outside
	for _, s := range sites {
		if s.Visit(path, v.Time) {
			result = Counts
		}
	}
	return result
}

// signal tells sites of a visit that got no page, if it was just now: a line without a time may be of any year.
func (r *Reader) signal(v *visits.Visit, sites []Site, now int64) {
	if v.Time < now-visits.SignalFor {
		return
	}
	path, ok := r.Filter.Signal(v, now)
	if !ok {
		return
	}
	for _, s := range sites {
		s.Signal(path)
	}
}

// sitesOf returns the sites with a host; for a line without one, all.
func (r *Reader) sitesOf(host string) []Site {
	sites, known := r.hosts[host]
	if known {
		return sites
	}
	for s := range r.sites {
		if host == "" || s.IsNamed(host) {
			sites = append(sites, s)
		}
	}
	if len(r.hosts) >= maxHosts {
		clear(r.hosts)
	}
	// The host is a part of the line's buffer.
	r.hosts[strings.Clone(host)] = sites
	return sites
}
