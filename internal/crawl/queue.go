package crawl

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/seed3295b519/caddy-sitemap/internal/frontier"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// Bounds of a queue. A round reads the chunks in which pages are due once, however few it fetches: but what it finds
// waits for the next one, as the next page of a list, before pages that are farther away.
const (
	minQueue  = 32
	maxQueue  = 4096
	queueTime = 16 // seconds of requests
)

// job is a page of an upstream that is to be fetched.
type job struct {
	rec   record.Record // as it was when it was found due, and then as the fetch has left it
	class class
	late  float64   // see lateness
	front *Response // to a request that was made already; nil: it is to be made
	state jobState
}

// jobState is what has come of a job.
type jobState uint8

const (
	jobLeft    jobState = iota // there was no time
	jobDone                    // the page was fetched
	jobNothing                 // it is the front page, and its response says nothing new
)

// queue is what a round fetches from upstreams, in order: of all pages that are due, wherever their records are.
type queue struct {
	size  int
	front []*job           // the front page, if its response is at hand
	known map[class][]*job // at most twice size of each
	fresh *frontier.Pass   // pages that were never fetched
	added int              // of these
	left  bool             // pages are due that have no place on it
}

func (r *Run) newQueue() *queue {
	size := int(min(queueTime*r.c.o.Limiter.rate, maxQueue))
	size = max(size, minQueue)
	return &queue{size: size, known: make(map[class][]*job), fresh: r.c.precedence.fresh.Pass(size)}
}

// add adds a page that is due.
func (q *queue) add(rec *record.Record, now int64) {
	if rec.Fetched == 0 {
		q.fresh.Add(rec.Path, rec.Depth)
		q.added++
		return
	}
	j := &job{rec: *rec, class: classOf(rec.Cause), late: lateness(rec, now)}
	q.known[j.class] = q.trim(append(q.known[j.class], j), j.class)
}

// orderOf returns the order of the jobs of a class.
func orderOf(of class) func(a, b *job) int {
	switch of {
	case byRate:
		return func(a, b *job) int { return cmp.Compare(a.rec.Depth, b.rec.Depth) }
	case byList, bySignal:
		// All are due at once, so they are as late as each other. In the order of paths, a list with other dates for
		// thousands of pages would keep the last ones waiting for ever.
		return func(a, b *job) int {
			return cmp.Or(signalRank(a.rec.Cause)-signalRank(b.rec.Cause), cmp.Compare(a.rec.Fetched, b.rec.Fetched))
		}
	}
	return func(a, b *job) int { return cmp.Compare(b.late, a.late) }
}

// signalRank returns which signals come first: what visitors see. Lost links may be of many pages that nobody misses.
func signalRank(cause record.Cause) int {
	if cause == record.ByVisitor {
		return 0
	}
	return 1
}

// trim keeps the first of too many jobs of a class. The others come in the next round, if this one fetches anything.
// What waits for a budget is not left: another crawl at once would not find more in it.
func (q *queue) trim(jobs []*job, of class) []*job {
	if len(jobs) < 2*q.size {
		return jobs
	}
	slices.SortStableFunc(jobs, orderOf(of))
	clear(jobs[q.size:]) // for the garbage collector
	q.left = q.left || of == byRate
	return jobs[:q.size]
}

// order returns which known pages are to be fetched: those for which spend takes a request from the budget. The others
// wait. New pages, if there are any, have half of the places.
func (q *queue) order(spend func(of class) bool) []*job {
	ordered := q.front
	places := q.size
	if q.added > 0 {
		places /= 2
	}
	for _, of := range []class{byList, bySignal, byHub, byShare, byRoutine} {
		jobs := q.known[of]
		slices.SortStableFunc(jobs, orderOf(of))
		for _, j := range jobs {
			if len(ordered) >= places || !spend(of) {
				break
			}
			ordered = append(ordered, j)
		}
	}
	return ordered
}

// complete adds to the known pages that are to be fetched what goes at the whole rate: what an operator wants, or the
// configuration, and new pages. Neither waits for the other.
func (q *queue) complete(ordered, fresh []*job) []*job {
	wanted := q.known[byRate]
	slices.SortStableFunc(wanted, orderOf(byRate))
	for len(ordered) < q.size && len(wanted)+len(fresh) > 0 {
		if len(wanted) > 0 {
			ordered = append(ordered, wanted[0])
			wanted = wanted[1:]
		}
		if len(fresh) > 0 {
			ordered = append(ordered, fresh[0])
			fresh = fresh[1:]
		}
	}
	q.left = q.left || len(wanted)+len(fresh) > 0
	return ordered
}

// freshJobs returns the pages that were never fetched and come first, with their records.
func (r *Run) freshJobs(ctx context.Context, q *queue) ([]*job, error) {
	if q.added == 0 {
		return nil, nil
	}
	// The queue holds paths only: of very many pages, few come first.
	first := slices.Collect(q.fresh.Take())
	q.left = q.left || q.added > len(first)
	jobs := make([]*job, len(first))
	place := make(map[string]int, len(first))
	for i, path := range first {
		place[path] = i
	}
	slices.Sort(first)
	for i := range r.gen.Chunks() {
		paths := cut(&first, r.endOf(i), func(path string) string { return path })
		if len(paths) == 0 {
			continue
		}
		records, err := r.load(ctx, i)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			if at, ok := record.Search(records, path); ok {
				jobs[place[path]] = &job{rec: records[at]}
			}
		}
	}
	isLost := func(j *job) bool { return j == nil } // with a chunk that was found damaged just now
	return slices.DeleteFunc(jobs, isLost), nil
}

// runJobs fetches pages of upstreams in order, until there is no time. The records of those that were fetched are
// merged in the next round.
func (r *Run) runJobs(wait context.Context, jobs []*job) {
	if len(jobs) == 0 {
		return
	}
	var group sync.WaitGroup
	var next atomic.Int64
	workers := r.allWorkers()[r.c.o.Workers:]
	for _, w := range workers[:min(len(workers), len(jobs))] {
		w.ctx = r.fetching
		w.wait = wait
		group.Go(func() { w.workOn(jobs, &next) })
	}
	group.Wait()
	for _, j := range jobs {
		switch j.state {
		case jobDone:
			r.results = append(r.results, j.rec)
		case jobLeft:
			r.left = true
			r.restore(j.class) // that of a new page is byRate
		case jobNothing: // otherwise a token in each response would have the records written each time
		}
	}
	slices.SortFunc(r.results, func(a, b record.Record) int { return strings.Compare(a.Path, b.Path) })
}

// workOn fetches pages of upstreams, of which next is shared with other workers, until none is left, or no time.
func (w *worker) workOn(jobs []*job, next *atomic.Int64) {
	r := w.run
	for i := next.Add(1); i <= int64(len(jobs)); i = next.Add(1) {
		j := jobs[i-1]
		w.front = j.front
		before := j.rec
		isDone := w.page(&j.rec, true)
		if isDone {
			j.state = jobDone
		}
		isEarly := j.front != nil && before.Due > r.c.now() // only the probe's response had it looked at
		if isEarly && isSameButTimes(before, j.rec) {
			j.state = jobNothing
		}
		if !isDone {
			r.stopped.Store(true)
			return
		}
	}
}

// isSameButTimes reports whether two records of a page differ in nothing but when it was fetched, and in its
// validators.
func isSameButTimes(a, b record.Record) bool {
	for _, rec := range []*record.Record{&a, &b} {
		rec.Fetched = 0
		rec.Followed = 0
		rec.Due = 0
		rec.Wait = 0
		rec.Cause = 0
		rec.Hub = 0
		rec.Modified = 0
		rec.ETag = ""
	}
	return reflect.DeepEqual(a, b)
}
