package sitemap

import (
	"cmp"
	"errors"
	"iter"
	"os"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
	"github.com/seed3295b519/caddy-sitemap/internal/schedule"
)

const years = 135 * 365 * 24 * time.Hour

// TestDue: what [TestOccasions] leaves out. All times are after the beginning of the last refresh, whose interval is a minute.
func TestDue(t *testing.T) {
	begun := batch
	at := begun.Add
	for _, test := range []struct {
		name string
		now  time.Duration
		p    prospects
		want time.Duration
	}{
		{"quick", time.Second, prospects{serves: true}, time.Minute},
		{"costs more", 4 * time.Second, prospects{serves: true, cost: 3*time.Second + 1}, time.Minute + 20},
		{"costs more, of a given interval", 4 * time.Second, prospects{serves: true, isGiven: true, cost: 30 * time.Second}, time.Minute},

		{"many sites share a rate", time.Second, prospects{serves: true, probes: time.Hour}, time.Hour},
		{"a host that may be made up", time.Second, prospects{absences: 1}, time.Minute},
		{"one that was asked for twice", time.Second, prospects{absences: 2, probes: time.Hour}, 2 * time.Minute},
		{"one that is asked for again and again", time.Second, prospects{absences: 1000}, maxAbsence},
		{"one of a site that is rarely refreshed", time.Second, prospects{absences: 1000, interval: 30 * time.Hour}, 30 * time.Hour},
		{"many sites share a rate, and the interval is given", time.Second, prospects{serves: true, isGiven: true, probes: time.Hour}, time.Minute},
		{"a file has changed, and probes take their share of a rate", time.Second, prospects{serves: true, isChanged: true, probes: 10 * time.Second}, 10 * time.Second},
		{"a file has changed later, and probes take their share of a rate", 11 * time.Second, prospects{serves: true, isChanged: true, probes: 10 * time.Second}, 11 * time.Second},
		{"a file has changed, probes take their share, and the clock was set back", -time.Hour, prospects{serves: true, isChanged: true, probes: 10 * time.Second}, 10*time.Second - time.Hour},

		{"planned", time.Second, prospects{serves: true, planned: at(30 * time.Second)}, 30 * time.Second},
		{"planned, and past", time.Hour, prospects{serves: true, planned: at(time.Minute)}, time.Minute},
		{"planned with a longer interval", time.Second, prospects{serves: true, planned: at(time.Hour)}, time.Second + time.Minute},
		{"planned, and the clock was set back by years", -years, prospects{serves: true, planned: at(time.Minute)}, time.Minute - years},

		{"an operator waits for it, and it failed", time.Second, prospects{serves: true, hasRefetch: true, failed: true, cost: time.Hour}, time.Minute + time.Second},
		{"an operator waits for it, and it failed, and nothing is served", time.Second, prospects{hasRefetch: true, failed: true}, time.Second + retryEmpty},
		{"noticed", time.Second, prospects{serves: true, noticed: true}, time.Second},
	} {
		test.p.now = at(test.now)
		test.p.begun = begun
		test.p.interval = cmp.Or(test.p.interval, time.Minute)
		got := due(test.p).Sub(begun)
		if got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

// occasion is a reason to refresh a site: from some time on.
type occasion struct {
	name    string
	applies func(p *prospects) bool
	at      func(p *prospects) time.Time
}

// hasEnded reports whether the last refresh came to its end.
func hasEnded(p *prospects) bool { return !p.failed }

// waits reports whether there may be something to serve as soon as the application has started.
func waits(p *prospects) bool { return !p.serves && (p.failed || p.closed) }

// after returns a time, yet one that is so long after now at least.
func (p *prospects) after(at time.Time, least time.Duration) time.Time {
	if first := p.now.Add(least); at.Before(first) {
		return first
	}
	return at
}

// paid returns a time, yet one by which the last refresh has taken no more than its share of the time.
func (p *prospects) paid(at time.Time) time.Time {
	begun := p.begun
	if begun.After(p.now) {
		begun = p.now
	}
	if paid := begun.Add(20 * p.cost); paid.After(at) {
		return paid
	}
	return at
}

// asUsual is an interval, or twenty times the cost, after the last refresh began, or after now if that is earlier.
func asUsual(p *prospects) time.Time {
	pause := p.interval
	if !p.isGiven && 20*p.cost > pause {
		pause = 20 * p.cost
	}
	if p.begun.After(p.now) {
		return p.now.Add(pause)
	}
	return p.begun.Add(pause)
}

// occasions are all there are, save that something was noticed or planned. The first one to come counts.
var occasions = []occasion{
	{"the interval is over", func(*prospects) bool { return true }, asUsual},
	{"an application starts", waits, func(p *prospects) time.Time { return p.now.Add(5 * time.Second) }},
	{"pages are left", func(p *prospects) bool { return hasEnded(p) && !waits(p) && p.isLeft },
		func(p *prospects) time.Time { return p.after(p.next, 200*time.Millisecond) }},
	{"a page is due", func(p *prospects) bool { return hasEnded(p) && !waits(p) && !p.isLeft && p.next.After(p.now) },
		func(p *prospects) time.Time {
			return p.paid(p.next)
		}},
	{"dates are due", func(p *prospects) bool { return hasEnded(p) && !p.datesDue.IsZero() },
		func(p *prospects) time.Time { return p.after(p.paid(p.datesDue), 200*time.Millisecond) }},
	{"a file has changed", func(p *prospects) bool { return p.isChanged }, func(p *prospects) time.Time { return p.paid(time.Time{}) }},
}

// allProspects are all combinations, or one of so many, with each time on both sides of each limit.
func allProspects(every int) iter.Seq[prospects] {
	const interval = time.Minute
	ages := []time.Duration{0, time.Second, interval - 1, interval, interval + 1, 20 * time.Minute, years, -1, -time.Hour, -years}
	costs := []time.Duration{0, interval / shareOfTime, interval/shareOfTime + 1, 2 * interval}
	nexts := []time.Duration{-years, -time.Hour, 0, 1, soon - 1, soon + 1, retryEmpty - 1, retryEmpty + 1, interval - 1, interval + 1, years}
	n := 0
	return func(yield func(prospects) bool) {
		for bits := range 1 << 6 {
			is := func(i int) bool { return bits>>i&1 != 0 }
			p := prospects{
				now: batch, interval: interval,
				isGiven: is(0), failed: is(1), serves: is(2), closed: is(3), isLeft: is(4), isChanged: is(5),
			}
			for _, age := range ages {
				p.begun = p.now.Add(-age)
				for _, p.cost = range costs {
					for _, next := range nexts {
						p.next = p.now.Add(next)
						for _, p.datesDue = range []time.Time{{}, p.now.Add(soon - 1), p.now.Add(30 * time.Second), p.now.Add(interval + 1)} {
							n++
							if n%every == 0 && !yield(p) {
								return
							}
						}
					}
				}
			}
		}
	}
}

// isLong asks for all combinations, where one of a few says nearly as much.
var isLong = os.Getenv("SITEMAP_LONG") != ""

// TestOccasions checks combinations of all kinds: the first occasion counts, though not before now.
func TestOccasions(t *testing.T) {
	hits := make([]int, len(occasions))
	wrong := 0
	every := 13 // no number of values is a multiple of it, so that each pair of them comes
	switch {
	case testing.Short():
		every = 7 * 13
	case isLong:
		every = 1
	}
	for p := range allProspects(every) {
		first := 0
		for i, o := range occasions {
			if o.applies(&p) && o.at(&p).Before(occasions[first].at(&p)) {
				first = i
			}
		}
		hits[first]++
		want := p.after(occasions[first].at(&p), 0)
		got := due(p)
		if !got.Equal(want) && wrong < 10 {
			wrong++
			t.Errorf("%s: %+v: got %s, want %s", occasions[first].name, p, got.Sub(p.now), want.Sub(p.now))
		}
		p.planned = p.begun
		want = p.planned
		if most := p.now.Add(p.interval); want.After(most) {
			want = most
		}
		if p.isChanged {
			want = p.now
		}
		if got := due(p); !got.Equal(want) {
			t.Fatalf("planned: %+v: got %s, want %s", p, got.Sub(p.now), want.Sub(p.now))
		}
		p.noticed = true
		if got := due(p); !got.Equal(p.now) {
			t.Fatalf("noticed: %+v: got %s", p, got.Sub(p.now))
		}
	}
	for i, n := range hits {
		if n == 0 {
			t.Errorf("never first: %s", occasions[i].name)
		}
	}
}

// TestProspects: what decides comes from the settings, the result, what is served and the last probe.
func TestProspects(t *testing.T) {
	begun := batch
	usual := prospects{begun: begun, interval: time.Minute, next: time.Unix(0, 0)}
	for name, test := range map[string]struct {
		given   time.Duration // the interval; 0: none
		served  bool
		closed  bool // robots.txt cannot be fetched
		changed bool // a change was told
		out     report.Refresh
		want    func(p *prospects)
	}{
		"nothing":              {want: func(*prospects) {}},
		"an interval":          {given: time.Hour, want: func(p *prospects) { p.interval = time.Hour; p.isGiven = true }},
		"the default is given": {given: time.Minute, want: func(p *prospects) { p.isGiven = true }},
		"it costs":             {out: report.Refresh{Cost: time.Second, Took: time.Hour}, want: func(p *prospects) { p.cost = time.Second }},
		"it failed":            {out: report.Refresh{Outcome: outcome.Fail(errors.New("failed"))}, want: func(p *prospects) { p.failed = true }},
		"it held back":         {out: report.Refresh{Outcome: outcome.Outcome{Result: outcome.HeldBack}}, want: func(*prospects) {}},
		"something is served":  {served: true, want: func(p *prospects) { p.serves = true }},
		"closed":               {closed: true, want: func(p *prospects) { p.closed = true }},
		"pages are left":       {out: report.Refresh{Crawled: crawl.Result{Generation: new(record.Generation)}}, want: func(p *prospects) { p.isLeft = true }},
		"all is done": {out: report.Refresh{Crawled: crawl.Result{Generation: new(record.Generation), Done: true, Next: begun.Unix()}},
			want: func(p *prospects) { p.next = time.Unix(begun.Unix(), 0) }},
		"a file has changed": {changed: true, want: func(p *prospects) { p.isChanged = true }},
		"dates are due":      {out: report.Refresh{DatesDue: begun.Add(time.Second)}, want: func(p *prospects) { p.datesDue = begun.Add(time.Second) }},
		"nothing is crawled": {out: report.Refresh{Crawled: crawl.Result{Gathered: true}}, want: func(*prospects) {}},
	} {
		b := newBench(t, func(h *Handler) { h.RefreshInterval = caddy.Duration(test.given) })
		b.handler.limiter = crawl.NewLimiter(0.001, 1)
		b.handler.limiter.AwaitTurn(t.Context(), schedule.Named) // so that there is a time of the next one
		s := b.site("named.example")
		s.serve(nil)
		if test.served {
			s.serve(listing(1))
		}
		s.state.isChanged.Store(test.changed)
		if test.closed {
			s.probed.Store(&probeResult{robots: robotsRules{closed: true}})
		}
		want := usual
		want.now = b.clock
		test.want(&want)
		got := s.prospects(&test.out, begun)
		if got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}
