package accesslog

import (
	"context"
	"maps"
	"strings"
	"sync/atomic"
	"time"
)

const (
	joinPatience = 30 * time.Second // with sites that are not ready, before reading begins
	rereadAfter  = time.Minute      // at least, and twenty times what it took, for sites that come later
	maxHosts     = 10_000           // hosts of lines that are remembered: clients may send any number
)

// Site is what a [Reader] notes visits for.
type Site interface {
	// IsNamed reports whether a line's host is that of the site.
	IsNamed(host string) bool

	// Visit notes a visit to a page, at a Unix time that is not in the future. It is false where the page is not one
	// of the site's.
	Visit(path string, at int64) bool

	// Progress is how far logs were read for the site.
	Progress() *Progress
}

// What becomes of a line, besides the errors of [Parser.Parse] and what [Filter.Page] returns.
const (
	Counts    = "visits"
	OtherHost = "another host"
	Outside   = "outside the site's folder"
	Old       = "older than history"
)

// Reader reads the logs of a source for all sites of a server. Each line is read at least once for each site: after a
// restart, or when a site comes later, some come again, which does no harm. Only [Reader.Logs] may be called while
// something else is.
type Reader struct {
	Source   int           // as of [Progress], as are the settings
	Settings uint64        // with others, the logs are read from the beginning
	Files    []string      // absolute names of logs, or patterns as of [filepath.Match]
	History  time.Duration // how old visits may be
	Now      func() time.Time
	Parser   *Parser
	Filter   *Filter

	follower atomic.Pointer[follower] // nil: there is no site yet
	sites    map[Site]bool
	joined   map[Site]bool
	hosts    map[string][]Site // by the host of a line; "": a line without one
	begun    time.Time
	nextJoin time.Time // when other sites may join; zero: none has
	rereads  bool      // a site has joined since the last poll
	visit    Visit
}

// Join lets sites join that have come since, given all of them, and whether each is one to be read for: it is known
// what it has been read for before. It is read for from where it was, and so are all others again; not often, as
// clients could otherwise make up hosts to have the logs read again and again. While not complete, which is for
// further sites that are not ready, it waits a while before the first. It reports whether there is a site.
func (r *Reader) Join(sites map[Site]bool, complete bool) bool {
	now := r.Now()
	if r.begun.IsZero() {
		r.begun = now
	}
	if !maps.Equal(sites, r.sites) {
		r.sites, r.hosts = sites, make(map[string][]Site)
		maps.DeleteFunc(r.joined, func(s Site, _ bool) bool { _, is := sites[s]; return !is })
	}
	ready, newcomers, started := make(map[Site]bool), false, r.follower.Load() != nil
	var from []Positions
	for s, isReady := range sites {
		if isReady {
			ready[s], newcomers = true, newcomers || !r.joined[s]
			from = append(from, s.Progress().Get(r.Source, r.Settings))
		}
	}
	if !newcomers || now.Before(r.nextJoin) || !started && !complete && now.Sub(r.begun) < joinPatience {
		return started
	}
	r.follower.Store(newFollower(r.Files, r.History, r.Now, mergePositions(from...)))
	r.joined, r.rereads = ready, true
	return true
}

// Poll reads what is new, once a site has joined, and returns how many lines there were by what became of them.
func (r *Reader) Poll(ctx context.Context) (read map[string]int) {
	begun, follower := r.Now(), r.follower.Load()
	read = follower.Poll(ctx, func(line []byte) string { return r.take(line, begun) })
	if at := follower.Positions(); len(read) > 0 || r.rereads {
		for s := range r.joined {
			s.Progress().Set(r.Source, r.Settings, at)
		}
	}
	if r.rereads && ctx.Err() == nil {
		r.rereads, r.nextJoin = false, begun.Add(max(rereadAfter, 20*r.Now().Sub(begun)))
	}
	return read
}

// Logs returns what was read of each log since the last site joined, by path.
func (r *Reader) Logs() []Log {
	if follower := r.follower.Load(); follower != nil {
		return follower.Logs()
	}
	return nil
}

// take notes the visit that a line tells of, and returns what became of the line.
func (r *Reader) take(line []byte, now time.Time) string {
	v := &r.visit
	if err := r.Parser.Parse(line, v); err != nil {
		return err.Error()
	}
	sites := r.sitesOf(v.Host)
	if len(sites) == 0 {
		return OtherHost
	}
	path, reason := r.Filter.Page(v)
	if reason != "" {
		return reason
	}
	if v.Time == 0 || v.Time > now.Unix() {
		v.Time = now.Unix() // nobody knows when it was
	}
	if v.Time < now.Add(-r.History).Unix() {
		return Old
	}
	result := Outside
	for _, s := range sites {
		if s.Visit(path, v.Time) {
			result = Counts
		}
	}
	return result
}

// sitesOf returns the sites that a line's host is of; of a line without a host, all.
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
	r.hosts[strings.Clone(host)] = sites
	return sites
}
