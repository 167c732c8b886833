package crawl

import (
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

const (
	burstTime  = hour     // for which what known pages may take is saved up
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
	b.tokens = min(b.tokens+rate*float64(elapsed), max(rate*burstTime, 1))
}

// budget is what known pages may take of a rate, for all sites that share it.
type budget struct {
	loads   map[*Crawler]siteLoad
	share   bucket // of all of them
	signals bucket
	hubs    bucket
	routine bucket
}

// siteLoad is the load of a site, and when it crawled last.
type siteLoad struct {
	store.Load
	at int64
}

// pace notes the load of a site, and returns the pace of all.
func (l *Limiter) pace(c *Crawler, load store.Load) Pace {
	now := c.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	b := &l.budget
	if b.loads == nil {
		b.loads = make(map[*Crawler]siteLoad)
	}
	b.loads[c] = siteLoad{load, now}
	p := Pace{Rate: l.rate}
	for other, load := range b.loads {
		if now-load.at > forgetLoad {
			delete(b.loads, other)
			continue
		}
		p.Known += load.Upstream
		p.Hubs += load.Hubs
	}
	b.share.fill(now, p.Share())
	b.signals.fill(now, p.Quarter())
	b.hubs.fill(now, p.Quarter())
	b.routine.fill(now, p.Routine())
	return p
}

// spend takes a request of a class from the budget; false: it is spent.
func (l *Limiter) spend(of class) bool { return l.account(of, 1) }

// restore gives back a request that was not made.
func (l *Limiter) restore(of class) { l.account(of, -1) }

func (l *Limiter) account(of class, tokens float64) bool {
	if of == byRate {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := &l.budget
	own := map[class]*bucket{bySignal: &b.signals, byHub: &b.hubs, byRoutine: &b.routine}[of]
	if b.share.tokens < tokens || own != nil && own.tokens < tokens {
		return false
	}
	b.share.tokens -= tokens
	if own != nil {
		own.tokens -= tokens
	}
	return true
}

// spend takes a request of a class from the budget, if there is one; false: it is spent.
func (r *Run) spend(of class) bool { return r.c.o.Once || r.c.o.Limiter.spend(of) }
