package model

import (
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"
)

// What the docs promise, with a margin.
const (
	margin       = 2 * time.Minute
	lossPatience = 10 * time.Minute // until a loss is believed
	failPatience = time.Hour        // for which a page that fails stays listed
	longest      = 24 * time.Hour   // until a page of an application is fetched again
	spread       = 2 * time.Hour    // by which that may be later
	foundWithin  = 30 * time.Hour   // after a change, by which its day may be that of the fetch that found it
	perMinute    = 120              // requests that an application gets, besides those of each refresh
)

// sight is a page as the sitemap shows it at a moment, and what may excuse that.
type sight struct {
	*page
	date                string // lastmod
	isListed, wasListed bool
	noticed             time.Duration // in which it is noticed at most that the page is another
	calm                time.Duration // for which nothing was wrong
	deployed            time.Duration // since the last deployment; 0: it goes on
	settles             time.Duration // after a deployment, in which its dates are decided at most
	isExcused           bool          // pages may vanish
}

// laws are the properties that hold of each page at each moment: that it is not so.
var laws = []struct {
	property int
	name     string
	isBroken func(s *sight) bool
}{
	{1, "is listed, and is not good any more", (*sight).isListedWhileBad},
	{2, "is not listed any more, without a reason", (*sight).hasVanished},
	{3, "has a date that is not one of a change", (*sight).hasWrongDate},
	{3, "was corrected, and has an older date", (*sight).hasOldDate},
}

func (s *sight) isListedWhileBad() bool {
	return s.isListed && s.is != good && min(time.Since(s.since), s.calm) > s.noticed
}

func (s *sight) hasVanished() bool {
	wasGood := s.is == good && time.Since(s.since) >= s.noticed
	return s.wasListed && !s.isListed && wasGood && !s.isExcused
}

func (s *sight) hasWrongDate() bool {
	isDecided := s.deployed > s.settles
	isTrue := slices.ContainsFunc(slices.Concat(s.changes, s.written), s.mayBeFrom)
	return s.date != "" && isDecided && !isTrue
}

// mayBeFrom reports whether the date is that of a change, to the precision that it has.
func (s *sight) mayBeFrom(change time.Time) bool {
	if len(s.date) > len(time.DateOnly) {
		exact, err := time.Parse(time.RFC3339, s.date)
		return err == nil && exact.Equal(change.Truncate(time.Second))
	}
	found := foundWithin
	if s.isFile {
		found = spread
	}
	return day(change) <= s.date && s.date <= day(change.Add(found))
}

func (s *sight) hasOldDate() bool {
	last := s.lastChange()
	isKnown := s.isListed && len(s.changes) > 1 && s.is == good && s.since.Before(last.Add(-longest-spread))
	isLate := min(time.Since(last), s.deployed, s.calm) > longest+spread
	mayHaveNone := !s.isFile && s.date == ""
	return isKnown && isLate && s.date < day(last) && !mayHaveNone
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

func stamps(all ...time.Time) string {
	text := ""
	for _, t := range all {
		text += t.UTC().Format(" Jan 2 15:04:05")
	}
	return strings.TrimSpace(text)
}

// look holds what is served now against the laws.
func (w *world) look() {
	now := w.read()
	if now == nil {
		if w.listed != nil && !w.isExcused("") {
			w.fail(2, "nothing is served any more")
		}
		// What comes next is like a first crawl, of which nothing is announced.
		w.listed = nil
		w.crawled = time.Time{}
		return
	}
	for path := range now.dates {
		if w.pages[path] == nil {
			w.fail(1, "%s is listed, which never existed", path)
		}
	}
	for _, p := range w.pages {
		s := w.see(p, now)
		for _, law := range laws {
			if law.isBroken(s) {
				w.fail(law.property, "%s %s: it is %s since %s, has the date %q and changed at %s",
					p.path, law.name, p.is, stamps(p.since), s.date, stamps(p.changes...))
			}
		}
		if before, wasListed := w.listed[p.path]; s.isListed && (!wasListed || before != s.date) {
			w.note("%s is listed with the date %q", p.path, s.date)
		}
	}
	w.listed = now.dates
	if w.crawled.IsZero() && len(w.listed) >= len(w.all(isGood)) {
		w.crawled = time.Now()
	}
	w.judgeAnnounced()
}

func (w *world) see(p *page, now *document) *sight {
	s := &sight{page: p, calm: w.calm(), noticed: w.noticed(p), settles: 2*w.interval() + lossPatience}
	s.date, s.isListed = now.dates[p.path]
	_, s.wasListed = w.listed[p.path]
	if w.deployments == 0 {
		s.deployed = time.Since(w.deployed)
	}
	s.isExcused = w.isExcused(p.path)
	return s
}

// noticed is how long it takes at most until it shows that a page is not good any more.
func (w *world) noticed(p *page) time.Duration {
	soon := 2*w.interval() + lossPatience + margin
	if p.isFile {
		return soon
	}
	return soon + longest + spread
}

// judgeSuccessor is property 8, and 4, of a configuration or a process that follows another one.
func (w *world) judgeSuccessor(before *document, isEqual bool) {
	if before == nil {
		return
	}
	after := w.read()
	if after == nil {
		w.fail(8, "nothing is served any more after a reload or restart")
		return
	}
	for path := range before.dates {
		if _, isListed := after.dates[path]; !isListed && w.pages[path].is == good {
			w.fail(8, "%s is not listed any more after a reload or restart", path)
		}
	}
	if isEqual && !w.mayBeDated() && before.body != after.body && len(before.dates) == len(after.dates) {
		w.fail(4, "the bytes changed with a reload or restart:\n%s\n%s", before.body, after.body)
	}
}

// mayBeDated reports whether the date of a change may come at any moment, or be taken back.
func (w *world) mayBeDated() bool {
	for _, p := range w.pages {
		decided := time.Hour
		if !p.isFile {
			decided = longest
		}
		if time.Since(p.lastChange()) <= decided+margin {
			return true
		}
	}
	return false
}

// judgeAnnounced is property 6, of what was announced since the last look.
func (w *world) judgeAnnounced() {
	for len(announced) > 0 {
		path := strings.TrimPrefix(<-announced, origin)
		w.note("%s was announced", path)
		p := w.pages[path]
		if p == nil || len(p.news) == 0 {
			w.fail(6, "%s was announced, of which there is nothing new", path)
			return
		}
		p.told = time.Now()
		p.news = slices.DeleteFunc(p.news[1:], func(at time.Time) bool {
			return min(time.Since(at), w.calm()) > w.noticed(p)
		})
	}
}

// judgeUntold is property 6 at the end, of pages of which something is to have been announced: nothing is of the first crawl.
func (w *world) judgeUntold(p *page) {
	published := p.changes[0]
	last := p.lastChange()
	isNew := published.After(w.crawled)
	isDated := w.listed[p.path] >= last.UTC().Format(time.RFC3339)
	wasDated := last.Sub(published) > spread // else it is a part of its publication, with the longest interval
	isCorrected := p.isFile && wasDated && last.After(w.crawled) && isDated
	isUntold := isNew && p.told.Before(published) || isCorrected && p.told.Before(last)
	if p.is == good && isUntold {
		w.fail(6, "%s was not announced, which is there since %s and changed at %s", p.path, stamps(published), stamps(last))
	}
}

// mayBeTold lets pages be announced again, of which nothing is new.
func (w *world) mayBeTold(times int, pages ...*page) {
	for _, p := range pages {
		for range times {
			p.news = append(p.news, time.Now())
		}
	}
}

// mayBeOlder lets a new process know less than the one before.
func (w *world) mayBeOlder() {
	w.listed = nil
	for _, p := range w.pages {
		if time.Since(p.told) < 2*margin {
			p.news = append(p.news, p.told)
		}
	}
}

// judgeRequest is property 7, of a request that reaches the application.
func (w *world) judgeRequest(path string) {
	if strings.HasPrefix(path, "/private/") {
		w.fail(7, "%s is disallowed, and was requested", path)
	}
	if !isPaced(path) {
		return
	}
	w.mu.Lock()
	isEarly := time.Now().Before(w.notBefore)
	w.requests = slices.DeleteFunc(w.requests, func(at time.Time) bool { return time.Since(at) > time.Minute })
	w.requests = append(w.requests, time.Now())
	count := len(w.requests)
	w.mu.Unlock()
	if isEarly {
		w.fail(7, "%s was requested before a Retry-After had passed", path)
	}
	if count > perMinute+2 {
		w.fail(7, "%d requests in a minute", count)
	}
}

// isPaced reports whether a path is not requested at each refresh.
func isPaced(path string) bool {
	return path != "/" && !strings.HasSuffix(path, ".txt") && !strings.Contains(path, "sitemap")
}

// askedToWait notes that the application wants no requests for a while.
func (w *world) askedToWait(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if isPaced(path) {
		w.notBefore = time.Now().Add(5 * time.Minute)
	}
}

// judgeEnd is property 4, of the URLs that a site has whatever its history was, property 6, and property 5.
func (w *world) judgeEnd() {
	for _, p := range w.pages {
		if _, isListed := w.listed[p.path]; isListed != isGood(p) {
			w.fail(4, "at the end, that %s is listed is %v, and it is %s", p.path, isListed, p.is)
		}
		w.judgeUntold(p)
	}
	var status struct {
		Sites []struct {
			LastRefresh struct {
				At time.Time `json:"at"`
			} `json:"last_refresh"`
		} `json:"sites"`
	}
	w.check(admin(http.MethodGet, "/sitemap/sites", &status))
	if len(status.Sites) != 1 || time.Since(status.Sites[0].LastRefresh.At) > 2*w.interval()+margin {
		w.fail(5, "at the end, no refresh comes any more: %+v", status)
	}
}

// judgeRest is property 10, of what a process leaves behind.
func (w *world) judgeRest() {
	if w.hasFailed() {
		return
	}
	all := make([]byte, 4<<20)
	all = all[:runtime.Stack(all, true)]
	for _, goroutine := range strings.Split(string(all), "\n\n")[1:] {
		head, _, _ := strings.Cut(goroutine, "\n")
		if strings.Contains(head, "synctest bubble") && !strings.Contains(goroutine, "testing/synctest") {
			w.fail(10, "a goroutine outlives Caddy: %s", goroutine)
		}
	}
}
