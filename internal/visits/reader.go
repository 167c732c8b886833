package visits

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/valyala/fastjson"

	"github.com/seed3295b519/caddy-sitemap/internal/origin"
)

// signalFor is how old a line may be for its visit to be a signal: what is older, the crawl has most often seen itself
// since, and a log that is read from its beginning has years of it.
const signalFor = 10 * 60 // seconds

// Site receives the visits that a [Reader] finds.
type Site interface {
	// Note records a visit to a page of the site, or of another one on its host, at a Unix time that is not in the
	// future. If isSignal, a visitor has just got something else than a page there, of which there may be none.
	Note(path string, at int64, isSignal bool)

	// Write tells of a visit that may have saved something: see [Visit.Writes].
	Write(v *Visit, at time.Time)
}

// Results of lines, besides those of parse and the results of [Visit.Judge].
const (
	otherHost = "another host"
	tooOld    = "older than history"
)

// Log counts what was read of a log and of the files that it was rolled to. Error is why one of them cannot be
// read. With a pattern as path, it is why a folder of the pattern cannot be read, or that nothing matches it.
type Log struct {
	Path  string         `json:"log"`
	Lines map[string]int `json:"lines,omitempty"` // by result: see [Counts]
	Error string         `json:"error,omitempty"`

	// Hint is what the lines look like, and what to do, while none of them shows a request, or a visit that counts.
	Hint string `json:"hint,omitempty"`

	isRead bool // a line shows a request
}

// Reader reads logs for all sites of a handler. Lines may be read twice, which does no harm. It is not safe for concurrent
// use.
type Reader struct {
	Files   []string      // absolute names of logs, or patterns as of [filepath.Match]
	Format  string        // one of [Formats]; "" is auto
	History time.Duration // how old visits may be
	URLs    *origin.Cleaner

	json  fastjson.Parser
	files []*file         // of the last poll, with what was read of them
	logs  map[string]*Log // by path
}

// Poll reads what is new, and returns what was read of each log by now. sites has the sites by their hosts, as of
// [origin.CleanHost], and all of them by "", for lines without a host.
func (r *Reader) Poll(ctx context.Context, now time.Time, sites map[string][]Site) []Log {
	r.read(ctx, now.Add(-r.History), func(log *Log, line []byte) {
		log.count(line, r.take(line, now.Unix(), sites))
	})
	var all []Log
	for _, path := range slices.Sorted(maps.Keys(r.logs)) {
		log := *r.logs[path]
		log.Lines = maps.Clone(log.Lines)
		all = append(all, log)
	}
	return all
}

// log returns what was read of a log.
func (r *Reader) log(path string) *Log {
	if r.logs == nil {
		r.logs = make(map[string]*Log)
	}
	if r.logs[path] == nil {
		r.logs[path] = &Log{Path: path, Lines: make(map[string]int)}
	}
	return r.logs[path]
}

// fail notes why a log, or what a pattern names, cannot be read, if it is there and there is an error.
func (r *Reader) fail(path string, err error) {
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.log(path).Error = err.Error()
	}
}

// count adds a line with its result.
func (l *Log) count(line []byte, result string) {
	l.Lines[result]++
	switch result {
	case noRequest:
	case unread:
		if !l.isRead && l.Hint == "" {
			l.Hint = hint(line)
		}
	default:
		l.isRead = true
		l.Hint = agentHint(l.Lines)
	}
}

// take tells sites of the visit of a line, and returns the result of the line.
func (r *Reader) take(line []byte, now int64, sites map[string][]Site) string {
	v, problem := r.parse(line)
	if problem != "" {
		return problem
	}
	host, _ := origin.CleanHost(v.Host)
	named := sites[host]
	if len(named) == 0 {
		return otherHost
	}
	path, result := v.Judge(r.URLs)
	isSignal := result != Counts
	// A line without a time may be of any year.
	isOld := v.Time < now-signalFor
	if v.Writes() && v.Status != 0 && !isOld {
		for _, s := range named {
			s.Write(&v, time.Unix(min(v.Time+1, now), 0)) // when that second had passed
		}
	}
	if path == "" || isSignal && isOld {
		return result
	}
	// Nobody knows when a visit was, if the line has no time, or one that is still to come.
	at := min(cmp.Or(v.Time, now), now)
	if at < now-int64(r.History/time.Second) {
		return tooOld
	}
	for _, s := range named {
		s.Note(path, at, isSignal)
	}
	return result
}
