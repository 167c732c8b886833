package crawl

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// Bounds of an agenda: a round reads the chunks in which pages are due once, however few it fetches.
const (
	minAgenda = 64
	maxAgenda = 4096
)

// errand is a page of an upstream that is to be fetched.
type errand struct {
	rec   store.Record // as it was when it was found due, and then as the fetch has left it
	class class
	late  float64   // see lateness
	front *Response // to a request that was made already; nil: it is to be made
	done  bool
}

// agenda is what a round fetches from upstreams, in order: of all pages that are due, wherever their records are.
type agenda struct {
	size  int
	front []*errand           // the front page, if its response is at hand
	known map[class][]*errand // at most twice size of each
	fresh []*errand           // pages that were never fetched
	left  bool                // pages are due that have no place on it
}

func newAgenda(size int) *agenda {
	return &agenda{size: min(max(size, minAgenda), maxAgenda), known: make(map[class][]*errand)}
}

// add adds a page that is due.
func (a *agenda) add(rec *store.Record, now int64) {
	e := &errand{rec: *rec}
	if rec.Fetched == 0 {
		a.fresh = a.trim(append(a.fresh, e), byDepth)
		return
	}
	e.class = classOf(rec.Cause)
	e.late = lateness(rec, now)
	a.known[e.class] = a.trim(append(a.known[e.class], e), byLateness)
}

// trim keeps the first of too many errands.
func (a *agenda) trim(errands []*errand, order func(a, b *errand) int) []*errand {
	if len(errands) < 2*a.size {
		return errands
	}
	slices.SortStableFunc(errands, order)
	clear(errands[a.size:])
	a.left = true
	return errands[:a.size]
}

func byDepth(a, b *errand) int { return cmp.Compare(a.rec.Depth, b.rec.Depth) }

func byLateness(a, b *errand) int { return cmp.Compare(b.late, a.late) }

// order returns what is to be fetched, and takes the known pages from the budget of l. Those for which it is spent wait.
func (a *agenda) order(l *Limiter) []*errand {
	ordered := a.front
	for _, of := range []class{bySignal, byHub, byShare, byRoutine} {
		errands := a.known[of]
		slices.SortStableFunc(errands, byLateness)
		for _, e := range errands {
			if len(ordered) == a.size || !l.spend(of) {
				break
			}
			ordered = append(ordered, e)
		}
	}
	// What an operator wants, or the configuration, goes at the whole rate, and so do new pages: neither waits for the other.
	wanted := a.known[byRate]
	slices.SortStableFunc(wanted, byDepth)
	fresh := a.fresh
	slices.SortStableFunc(fresh, byDepth)
	for len(ordered) < a.size && len(wanted)+len(fresh) > 0 {
		if len(wanted) > 0 {
			ordered = append(ordered, wanted[0])
			wanted = wanted[1:]
		}
		if len(fresh) > 0 {
			ordered = append(ordered, fresh[0])
			fresh = fresh[1:]
		}
	}
	a.left = a.left || len(wanted)+len(fresh) > 0
	return ordered
}

// agendaSize is about how many requests upstreams get until the end of an Update.
func (r *Run) agendaSize(until time.Time) int {
	left := until.Sub(r.c.o.Now()).Seconds()
	return int(min(r.c.o.Limiter.rate*left, maxAgenda))
}

// runErrands fetches pages of upstreams in order, until there is no time. The records of those that were fetched are merged in the
// next round.
func (r *Run) runErrands(wait context.Context, errands []*errand) {
	if len(errands) == 0 {
		return
	}
	var group sync.WaitGroup
	var next atomic.Int64
	workers := r.allWorkers()[r.c.o.Workers:]
	for _, w := range workers[:min(len(workers), len(errands))] {
		w.ctx = r.fetching
		w.wait = wait
		group.Go(func() {
			for i := next.Add(1); i <= int64(len(errands)); i = next.Add(1) {
				e := errands[i-1]
				w.front = e.front
				e.done = w.page(&e.rec, true)
				if !e.done {
					r.stopped.Store(true)
					return
				}
			}
		})
	}
	group.Wait()
	for _, e := range errands {
		if e.done {
			r.results = append(r.results, e.rec)
			continue
		}
		r.left = true
		if e.rec.Fetched != 0 {
			r.c.o.Limiter.restore(e.class)
		}
	}
	slices.SortFunc(r.results, func(a, b store.Record) int { return strings.Compare(a.Path, b.Path) })
}

// frontPage is the front page's response that the caller has at hand.
type frontPage struct {
	resp *Response // nil: there is none, or it was used
	hash uint64
}

// newFrontPage returns the front page of a policy.
func newFrontPage(resp *Response) frontPage {
	if resp == nil || !resp.Proxied {
		return frontPage{}
	}
	d := xxhash.New()
	_, _ = d.Write(resp.Body)
	for _, name := range []string{"Location", "Link", "X-Robots-Tag", "Refresh", "Content-Type"} {
		for _, value := range resp.Header.Values(name) {
			_, _ = d.WriteString("\n" + name + ":" + value)
		}
	}
	_, _ = d.WriteString("\n" + string(rune(resp.Status)))
	return frontPage{resp: resp, hash: d.Sum64()}
}

// isNews reports whether the front page has another response than the last one.
func (r *Run) isNews() bool { return r.front.resp != nil && r.front.hash != r.c.frontHash }

// addFront adds the front page to the agenda, for which no request is needed, if its response says something.
func (a *agenda) addFront(r *Run, rec *store.Record, now int64) {
	if !r.isNews() && r.due(rec, now) > now {
		return
	}
	a.front = append(a.front, &errand{rec: *rec, class: byRate, front: r.front.resp})
	r.c.frontHash = r.front.hash
	r.front.resp = nil
}
