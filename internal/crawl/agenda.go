package crawl

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/frontier"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// Bounds of an agenda. A round reads the chunks in which pages are due once, however few it fetches: but what it finds waits
// for the next one, as the next page of a list, before pages that are farther away.
const (
	minAgenda  = 32
	maxAgenda  = 4096
	agendaTime = 16 // seconds of requests
)

// errand is a page of an upstream that is to be fetched.
type errand struct {
	rec   store.Record // as it was when it was found due, and then as the fetch has left it
	class class
	late  float64   // see lateness
	front *Response // to a request that was made already; nil: it is to be made
	done  bool

	isSame bool // it is the front page, and its response says nothing new
}

// agenda is what a round fetches from upstreams, in order: of all pages that are due, wherever their records are.
type agenda struct {
	size  int
	front []*errand           // the front page, if its response is at hand
	known map[class][]*errand // at most twice size of each
	fresh *frontier.Pass      // pages that were never fetched
	added int                 // of these
	left  bool                // pages are due that have no place on it
}

func (r *Run) newAgenda() *agenda {
	size := int(min(agendaTime*r.c.o.Limiter.rate, maxAgenda))
	size = max(size, minAgenda)
	return &agenda{size: size, known: make(map[class][]*errand), fresh: r.c.turns.fresh.Pass(size)}
}

// add adds a page that is due.
func (a *agenda) add(rec *store.Record, now int64) {
	if rec.Fetched == 0 {
		a.fresh.Add(rec.Path, rec.Depth)
		a.added++
		return
	}
	e := &errand{rec: *rec, class: classOf(rec.Cause), late: lateness(rec, now)}
	a.known[e.class] = a.trim(append(a.known[e.class], e), e.class)
}

// orderOf returns the order of the errands of a class.
func orderOf(of class) func(a, b *errand) int {
	switch of {
	case byRate:
		return func(a, b *errand) int { return cmp.Compare(a.rec.Depth, b.rec.Depth) }
	case bySignal: // all are due at once; a list may tell of very many
		return func(a, b *errand) int {
			return cmp.Or(cmp.Compare(rankOf(a.rec.Cause), rankOf(b.rec.Cause)), cmp.Compare(a.rec.Fetched, b.rec.Fetched))
		}
	}
	return func(a, b *errand) int { return cmp.Compare(b.late, a.late) }
}

// rankOf returns which signals come first: those of visitors, who see what is wrong now.
func rankOf(cause store.Cause) int {
	if cause == store.ByVisitor {
		return 0
	}
	return 1
}

// trim keeps the first of too many errands of a class. The others come in the next round, if this one fetches anything. What
// waits for a budget is not left: another crawl at once would not find more in it.
func (a *agenda) trim(errands []*errand, of class) []*errand {
	if len(errands) < 2*a.size {
		return errands
	}
	slices.SortStableFunc(errands, orderOf(of))
	clear(errands[a.size:])
	a.left = a.left || of == byRate
	return errands[:a.size]
}

// order returns which known pages are to be fetched: those for which spend takes a request from the budget. The others wait. New
// pages, if there are any, have half of the places.
func (a *agenda) order(spend func(of class) bool) []*errand {
	ordered := a.front
	places := a.size
	if a.added > 0 {
		places /= 2
	}
	for _, of := range []class{bySignal, byHub, byShare, byRoutine} {
		errands := a.known[of]
		slices.SortStableFunc(errands, orderOf(of))
		for _, e := range errands {
			if len(ordered) >= places || !spend(of) {
				break
			}
			ordered = append(ordered, e)
		}
	}
	return ordered
}

// complete adds to the known pages that are to be fetched what goes at the whole rate: what an operator wants, or the
// configuration, and new pages. Neither waits for the other.
func (a *agenda) complete(ordered, fresh []*errand) []*errand {
	wanted := a.known[byRate]
	slices.SortStableFunc(wanted, orderOf(byRate))
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

// freshErrands returns the pages that were never fetched and come first, with their records.
func (r *Run) freshErrands(ctx context.Context, a *agenda) ([]*errand, error) {
	if a.added == 0 {
		return nil, nil
	}
	first := slices.Collect(a.fresh.Take())
	a.left = a.left || a.added > len(first)
	errands := make([]*errand, len(first))
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
			if at, ok := find(records, path); ok {
				errands[place[path]] = &errand{rec: records[at]}
			}
		}
	}
	isLost := func(e *errand) bool { return e == nil } // with a chunk that was found damaged just now
	return slices.DeleteFunc(errands, isLost), nil
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
				before := e.rec
				e.done = w.page(&e.rec, true)
				e.isSame = e.front != nil && before.Due > r.c.now() && isSameButTimes(before, e.rec)
				if !e.done {
					r.stopped.Store(true)
					return
				}
			}
		})
	}
	group.Wait()
	for _, e := range errands {
		if e.isSame {
			continue // else a token in each response would have the records written each time
		}
		if e.done {
			r.results = append(r.results, e.rec)
			continue
		}
		r.left = true
		r.restore(e.class) // that of a new page is byRate
	}
	slices.SortFunc(r.results, func(a, b store.Record) int { return strings.Compare(a.Path, b.Path) })
}

// isSameButTimes reports whether two records of a page differ in nothing but when it was fetched, and in its validators.
func isSameButTimes(a, b store.Record) bool {
	for _, rec := range []*store.Record{&a, &b} {
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
	_, _ = fmt.Fprintf(d, "\nstatus %d", resp.Status)
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
	r.seeFront()
}

// seeFront notes that the front page's response was looked at, whether or not there is a page to which it belongs.
func (r *Run) seeFront() {
	r.c.frontHash = r.front.hash
	r.front.resp = nil
}
