package sitemap

import (
	"math"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
)

// When a site is next due.
const (
	soon         = 200 * time.Millisecond // while pages are left to be fetched
	retryEmpty   = 5 * time.Second        // while the site has nothing to serve
	retryRefetch = time.Minute            // after a refresh that failed although an operator wants pages fetched
	maxAbsence   = time.Hour              // at most, for a host that visitors named, and that has no front page
	shareOfTime  = 20                     // gathering, selecting and building take a twentieth of the time at most
)

// prospects are what determines when a site is next due.
type prospects struct {
	now     time.Time
	noticed bool      // something cannot wait, such as that the site is no alias any more, or a source that was too slow
	planned time.Time // when the configuration before, from which this one goes on, had the site due; zero: there is no plan

	// The last refresh.
	begun  time.Time     // when it began
	cost   time.Duration // what gathering, selecting and building took
	failed bool          // it has failed
	serves bool          // the site has something to serve after it
	closed bool          // no page may be fetched, as robots.txt cannot be

	// The pace.
	interval time.Duration // between refreshes: the setting 'refresh', or its default
	isGiven  bool          // an operator has set the interval, which is obeyed whatever refreshes cost
	probes   time.Duration // the shortest interval at which probes take no more than their share of the rate: see probesTake
	absences int           // refreshes, in a row, that found no front page of a host that visitors named

	// What is left to be done. Zero times: nothing is.
	isLeft     bool      // pages that were due have not been fetched
	next       time.Time // when a page is due that cannot wait for the interval, or what is left can be fetched; past: not known
	datesDue   time.Time // when dates can be decided that wait for the end of a deployment
	hasRefetch bool      // an operator wants pages fetched again, and no crawl has begun with them

	look time.Time // when writes have it looked at; zero: none has

	isChanged bool // since the last refresh began, a change of a file was told, or own sitemaps were read
}

// never is a pause after nothing that would end.
const never = time.Duration(math.MaxInt64)

// due returns when a site is next due: an interval after the last refresh began, or sooner where there is work.
func due(p prospects) time.Time {
	switch {
	case p.noticed:
		return p.now
	case !p.planned.IsZero():
		return dueAsPlanned(p)
	}
	interval := p.nextInterval()
	pause := p.begun.Add(interval).Sub(p.now)
	// The pause is longer than the interval where the clock was set back during the refresh.
	pause = min(pause, interval)
	pause = min(pause, p.untilPages(), p.untilDates(), p.untilChange(), p.untilLook())
	if p.hasRefetch {
		pause = min(pause, retryRefetch)
	}
	return p.now.Add(max(pause, 0))
}

// dueAsPlanned returns when a site is due that goes on from the configuration before.
func dueAsPlanned(p prospects) time.Time {
	// The configuration before has planned without the change, which would show an interval later.
	if p.isChanged {
		return p.now
	}
	// The interval may be another one now, or the clock was set back.
	return p.now.Add(min(p.planned.Sub(p.now), p.interval, p.untilLook()))
}

// nextInterval is how long after the last refresh a site is due in which nothing happens.
func (p *prospects) nextInterval() time.Duration {
	if p.absences > 0 {
		return p.absentInterval()
	}
	if p.isGiven {
		return p.interval
	}
	return max(p.interval, shareOfTime*p.cost, p.probes)
}

// absentInterval is how long a host without a front page is left alone. It may be made up, so the pause doubles each time;
// what refreshes cost does not count, as they do next to nothing.
func (p *prospects) absentInterval() time.Duration {
	most := max(p.interval, maxAbsence)
	interval := p.interval
	for i := 1; i < p.absences && interval < most; i++ {
		interval *= 2
	}
	return min(interval, most)
}

// spared is the pause after which the last refresh has taken no more than its share of the time.
func (p *prospects) spared() time.Duration {
	return min(p.begun.Add(shareOfTime*p.cost).Sub(p.now), shareOfTime*p.cost)
}

// untilPages is the pause until pages can be fetched that are due, or the site is tried again.
func (p *prospects) untilPages() time.Duration {
	next := p.next.Sub(p.now)
	// An application that starts with the server takes a few seconds longer, and nothing is served until then.
	if !p.serves && (p.failed || p.closed) {
		return retryEmpty
	}
	// A refresh that failed has not found out what is left.
	if p.failed {
		return never
	}
	if p.isLeft {
		return max(soon, next)
	}
	if next > 0 {
		// Yet not so soon that refreshing takes more than its share of the time.
		return max(next, p.spared())
	}
	return never
}

// untilDates is the pause until a date can be decided.
func (p *prospects) untilDates() time.Duration {
	if p.failed || p.datesDue.IsZero() {
		return never
	}
	return max(p.datesDue.Sub(p.now), soon, p.spared())
}

// untilChange is the pause until changes are looked for that were told.
func (p *prospects) untilChange() time.Duration {
	if !p.isChanged {
		return never
	}
	// Where files are written all the time, each refresh probes, too: its requests keep to their share of the rate.
	probed := min(p.begun.Add(p.probes).Sub(p.now), p.probes)
	return max(p.spared(), probed)
}

// untilLook is the pause until it is looked at what writes have changed.
func (p *prospects) untilLook() time.Duration {
	if p.look.IsZero() {
		return never
	}
	return max(p.look.Sub(p.now), p.spared())
}

// plan plans the next refresh of the site, and returns when it is due. Nothing else does, save who requests one at once.
func (s *site) plan(p prospects) time.Time {
	at := due(p)
	s.schedule.At(at)
	return at
}

// prospects are those after a refresh that began at begun, or after a part of it.
func (s *site) prospects(out *report.Refresh, begun time.Time) prospects {
	probed := s.probed.Load()
	p := prospects{
		now:      s.app.now(),
		noticed:  s.isPatient,
		begun:    begun,
		interval: s.handler.settings.interval,
		isGiven:  s.handler.RefreshInterval != 0,
		cost:     out.Cost,
		probes:   s.probesTake(probed),
		failed:   out.Result == outcome.Failed,
		serves:   s.published().snapshot != nil,
		closed:   probed != nil && probed.robots.closed,
		isLeft:   out.Crawled.HasLeft(),
		next:     time.Unix(out.Crawled.Next, 0),
		datesDue: out.DatesDue,
		absences: s.absences,
	}
	p.isChanged = s.state.isChanged.Load()
	p.look = s.lookDue()
	// What an operator wants fetched stays with the site until a crawl has begun with it. These results had no crawl, or none
	// with that.
	hadNoCrawl := out.Result == outcome.Failed || out.Result == outcome.Followed || out.Result == outcome.Later
	p.hasRefetch = hadNoCrawl && s.state.refetch.Load() != nil
	return p
}

// probesTake returns the shortest interval at which the probes of all sites of the handler, each a request for a front page,
// take a twentieth of the rate of upstreams. The front pages of a hundred sites may be those of one application. Sites of a
// rank below the site's do not count: visitors can make up any number of hosts.
func (s *site) probesTake(probed *probeResult) time.Duration {
	if probed == nil || !probed.made {
		return 0
	}
	perProbe := time.Duration(shareOfTime * float64(time.Second) / s.handler.limiter.Rate())
	return perProbe * time.Duration(s.handler.probedSites(s.rank()))
}

// conclude plans the next refresh after one that has ended.
func (s *site) conclude(out *report.Refresh, begun time.Time) {
	// What is told meanwhile is known either here or to who plans next.
	s.planning.Lock()
	defer s.planning.Unlock()
	p := s.prospects(out, begun)
	s.prospected = &p
	at := s.plan(p)
	if out.IsSettled() && !s.app.isSuperseded() {
		// The next configuration goes on from here, unless it looks at the site otherwise.
		next := nextRefresh{at, s.fetcher.digest()}
		s.amend(func(served *publication) { served.next = next })
	}
}
