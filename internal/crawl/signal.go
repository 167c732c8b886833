package crawl

import (
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

const (
	maxSignals      = 1000 // pages for which a signal is kept until the next crawl
	maxKeptLinks    = 2000 // of a hub or the front page
	maxChangedLinks = 50   // links of a hub that are gone, or new, at once; where more are, it shows others each time
	maxFalse        = 6    // false signals in a row, from which on a page is muted for as long: a month
	listPatience    = 2    // false signals of a list that mute nothing: it may have been about what is no text
)

// notice is what concerns a known page besides links.
type notice struct {
	path    string
	cause   record.Cause // by which the page is due
	credits bool         // instead, a link of the page has led to a new page that is listed
}

// signals are the notices of others, until the next crawl takes them. It is safe for concurrent use.
type signals struct {
	mu     sync.Mutex
	causes map[string]record.Cause // by path
}

// Signal notes that something suggests that a page has changed, or is gone. If the page is listed, the next crawl
// fetches it, unless such signals were false lately. It is safe for concurrent use, and keeps a bounded number of
// paths.
func (c *Crawler) Signal(path string, cause record.Cause) {
	s := &c.signals
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.causes[path]; known || len(s.causes) >= maxSignals {
		return
	}
	if s.causes == nil {
		s.causes = make(map[string]record.Cause)
	}
	s.causes[strings.Clone(path)] = cause
}

// take returns the notices, and forgets them.
func (s *signals) take() []notice {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []notice
	for path, cause := range s.causes {
		all = append(all, notice{path: path, cause: cause})
	}
	s.causes = nil
	return all
}

// takeNotices returns the notices for this round, sorted by path.
func (r *Run) takeNotices() []notice {
	all := append(r.notices, r.c.signals.take()...)
	r.notices = nil
	for _, path := range r.p.Refetch {
		all = append(all, notice{path: path, cause: record.ByOperator})
	}
	r.p.Refetch = nil
	slices.SortFunc(all, func(a, b notice) int { return strings.Compare(a.path, b.path) })
	return all
}

// notify adds a notice for the next round.
func (r *Run) notify(n notice) {
	r.links.mu.Lock()
	defer r.links.mu.Unlock()
	r.notices = append(r.notices, n)
}

// applyNotices does what notices say, and reports whether any record has changed.
func (r *Run) applyNotices(records []record.Record, notices []notice) (hasChanged bool) {
	now := r.c.now()
	for _, n := range notices {
		i, known := record.Search(records, n.path)
		if !known {
			continue
		}
		if applyNotice(&records[i], n, now) {
			hasChanged = true
		}
	}
	return hasChanged
}

// applyNotice does what a notice says, and reports whether the record has changed.
func applyNotice(rec *record.Record, n notice, now int64) bool {
	if n.credits {
		credit(rec)
		return true
	}
	switch n.cause {
	case record.ByOperator, record.ByFile, record.ByWrite:
		demand(rec, n.cause)
		return true
	case record.ByLinks:
		if !mayBeBack(rec, now) {
			return false
		}
		demand(rec, n.cause)
		return true
	}
	// Only what the sitemap lists can be wrong there.
	return rec.Selected.Listed && signal(rec, n.cause, now)
}

// demand makes a page due at once.
func demand(rec *record.Record, cause record.Cause) {
	rec.Due = 0
	rec.Cause = cause
}

// isDemanded reports whether a page that was fetched before is due at once, by its cause.
func isDemanded(rec *record.Record) bool { return rec.Due == 0 }

// signal makes a page due at once, unless signals like this one were false lately. That a list of posts has dropped the
// oldest one says nothing of what visitors get.
func signal(rec *record.Record, cause record.Cause, now int64) bool {
	isSet := now < rec.Muted && rec.Muted <= now+day<<maxFalse // else the clock was set back
	isMuted := isSet && cause == rec.FalseBy
	if isMuted || isDemanded(rec) {
		return false
	}
	demand(rec, cause)
	return true
}

// mute notes whether the signal was false by which a page was fetched: such a page is not signalled again for a day,
// and then twice as long.
func (r *Run) mute(before, rec *record.Record, came comparison) {
	of := classOf(before.Cause)
	isSignal := of == byList || of == bySignal
	if !isSignal || !isDemanded(before) {
		return
	}
	isFalse := came == unchanged && rec.Status == 200 && rec.Failing == 0
	// By cause: a list that drops its oldest post must not mute what visitors find out about the page.
	if !isFalse || rec.FalseBy != before.Cause {
		rec.False = 0
		rec.FalseBy = 0
		rec.Muted = 0
	}
	if !isFalse {
		return
	}
	rec.FalseBy = before.Cause
	rec.False = min(rec.False+1, maxFalse)
	if before.Cause == record.ByList && rec.False <= listPatience {
		return
	}
	rec.Muted = rec.Fetched + day<<(rec.False-1)
}

// credit counts a new page for the hub that has led to it.
func credit(rec *record.Record) {
	rec.Hub += hubUnit
	often := HubInterval(scoreOf(rec))
	isPage := rec.Status == 200 && rec.Failing == 0
	if at := rec.Fetched + often; isPage && often != 0 && at < rec.Due {
		rec.Due = at
		rec.Cause = record.ByHub
	}
}

// scoreOf returns a page's score as a hub when it was last fetched.
func scoreOf(rec *record.Record) float64 { return float64(rec.Hub) / hubUnit }

// decayedHub returns a page's score as a hub now.
func decayedHub(before *record.Record, now int64) uint32 {
	return uint32(math.Round(Decayed(float64(before.Hub), now-before.Fetched)))
}

// settleFinders has the finders of new pages credited, once it was seen whether these are listed, and reports whether
// there were any.
func (r *Run) settleFinders(records []record.Record) (any bool) {
	for i := range records {
		rec := &records[i]
		wasSelected := rec.Fetched < r.began // or left out: in either case that is known now
		if !awaitsCredit(rec) || !wasSelected {
			continue
		}
		rec.Credited = true
		any = true
		if rec.Selected.Listed {
			r.notify(notice{path: rec.Finder, credits: true})
		}
	}
	return any
}

// awaitsCredit reports whether a page was fetched, and its finder does not know whether it is listed.
func awaitsCredit(rec *record.Record) bool {
	return !rec.Credited && rec.Finder != "" && rec.Fetched != 0
}

// keepsLinks reports whether the links of a page are kept, to see which are gone: those of hubs and of the front page.
func (r *Run) keepsLinks(rec *record.Record) bool {
	isHub := HubInterval(scoreOf(rec)) != 0
	return rec.Flags&record.Made != 0 && (isHub || r.isFront(rec))
}

// noteLost has pages fetched to which a page does not link any more, given its links before and now.
func (r *Run) noteLost(known, now []string) {
	lost := minus(known, now)
	if len(lost) > maxChangedLinks {
		return
	}
	for _, path := range lost {
		r.notify(notice{path: path, cause: record.ByLostLink})
	}
}

// noteNew has pages fetched again that were gone, and to which a page links anew.
func (r *Run) noteNew(targets []string) {
	if len(targets) > maxChangedLinks {
		return
	}
	for _, path := range targets {
		r.notify(notice{path: path, cause: record.ByLinks})
	}
}

// mayBeBack reports whether a new link to a page suggests that it is there again. Within the first hour, pages that are
// gone are fetched often enough.
func mayBeBack(rec *record.Record, now int64) bool {
	return rec.Fetched != 0 && rec.Failing == 0 && isRefusal(rec) && now-rec.Fetched >= hour
}

// minus returns those of some paths that are not among others.
func minus(paths, others []string) []string {
	isOther := make(map[string]bool, len(others))
	for _, path := range others {
		isOther[path] = true
	}
	var rest []string
	for _, path := range paths {
		if !isOther[path] {
			rest = append(rest, path)
		}
	}
	return rest
}
