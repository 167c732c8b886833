package crawl

import (
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

const (
	burstTime  = hour     // for which what known pages may take is saved up at least
	maxBurst   = day      // for which it is saved up where crawls are farther apart than that
	forgetLoad = 2 * hour // after which the load of a site that does not crawl is forgotten
)

// bucket holds what may be spent: it fills with time.
type bucket struct {
	filled int64   // when, in Unix seconds; 0: never
	tokens float64 // requests
}

// fill fills the bucket at a rate of tokens a second.
func (b *bucket) fill(now int64, rate float64) {
	elapsed := now - b.filled
	if b.filled == 0 || elapsed < 0 { // the clock was set back
		elapsed = minute
	}
	b.filled = now
	// With 'refresh 24h', say, a crawl has the time since the last one to itself.
	saved := min(max(elapsed, burstTime), maxBurst)
	filled := min(b.tokens+rate*float64(elapsed), max(rate*float64(saved), 1))
	b.tokens = max(b.tokens, filled) // the next part of such a crawl goes on with what is left
}

// budget is what known pages may take of a rate, for all sites that share it.
type budget struct {
	loads   map[*Crawler]siteLoad
	buckets [classes]bucket // that of byShare is for all known pages, and pays for each request; byRate has none
}

// siteLoad is the load of a site, and when it crawled last.
type siteLoad struct {
	record.Workload
	at int64
}

// update notes the load of a site, and returns the pace of all.
func (l *Limiter) update(c *Crawler, load record.Workload) Pace {
	now := c.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	b := &l.budget
	if b.loads == nil {
		b.loads = make(map[*Crawler]siteLoad)
	}
	b.loads[c] = siteLoad{load, now}
	p := Pace{Rate: l.rate}
	// A site that was removed from the configuration says nothing when it goes.
	for other, load := range b.loads {
		if now-load.at > forgetLoad {
			delete(b.loads, other)
			continue
		}
		p.Known += load.Upstream
		p.Hubs += load.Hubs
	}
	b.buckets[byShare].fill(now, p.Share())
	b.buckets[byList].fill(now, p.Share()/2)
	b.buckets[bySignal].fill(now, p.Quarter())
	b.buckets[byHub].fill(now, p.Quarter())
	b.buckets[byRoutine].fill(now, p.Routine())
	return p
}

// spend takes a request of a class from the budget; false: it is spent.
func (l *Limiter) spend(of class) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	share := &l.budget.buckets[byShare]
	own := &l.budget.buckets[of]
	if share.tokens < 1 || own.tokens < 1 {
		return false
	}
	l.budget.pay(of, 1)
	return true
}

// restore gives back a request that was not made.
func (l *Limiter) restore(of class) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.budget.pay(of, -1)
}

// pay takes tokens for requests of a class.
func (b *budget) pay(of class, tokens float64) {
	b.buckets[byShare].tokens -= tokens
	if of != byShare {
		b.buckets[of].tokens -= tokens
	}
}

// hasBudget reports whether requests of a class are paid from the budget at all.
func (r *Run) hasBudget(of class) bool { return of != byRate && !r.c.o.Once }

// spend takes a request of a class from the budget, if it is paid from it; false: the budget is spent.
func (r *Run) spend(of class) bool { return !r.hasBudget(of) || r.c.o.Limiter.spend(of) }

// restore gives back a request that was not made.
func (r *Run) restore(of class) {
	if r.hasBudget(of) {
		r.c.o.Limiter.restore(of)
	}
}
