package sitemap

import (
	"cmp"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/schedule"
	"github.com/seed3295b519/caddy-sitemap/internal/visits"
)

// Write implements [visits.Site]: the site is looked at soon.
func (s *site) Write(v *visits.Visit, at time.Time) {
	s = cmp.Or(s.main.Load(), s)
	// Anybody can make up hosts, and cookies for them.
	isMadeUp := s.rank() == schedule.Fresh
	if isMadeUp || !s.handler.settings.crawl.looks() {
		return
	}
	s.noteWrite(crawl.Write{Method: v.Method, Path: v.URI, Status: v.Status, ContentType: v.ContentType}, at, v.URI, v.Location)
}

// noteWrite has the site looked at soon because of a write, which names some URLs.
func (s *site) noteWrite(w crawl.Write, at time.Time, urls ...string) {
	if s.state.writes.Note(w, at, urls...) {
		s.schedule.Interrupt() // a step of a crawl may take as long as an interval
		s.replan()
		s.schedule.Notify()
	}
}

// lookDue is when it is due to look at what writes may have changed; zero: there was none.
func (s *site) lookDue() time.Time {
	due := s.state.writes.Due()
	if byBudget := s.handler.limiter.LookDue(); !due.IsZero() && due.Before(byBudget) {
		return byBudget
	}
	return due
}

// beginLook begins to look at what writes may have changed, if it is time, and first at the pages that they name.
func (s *site) beginLook() {
	look := s.state.writes.Begin(s.begun)
	switch {
	case look == nil:
		return
	case !s.mayRefresh():
		s.state.fleet.written.Store(true)
		s.node.Wake()
		return
	}
	for i, url := range look.Paths {
		path, isHere := html.PathOn(s.origin, resolveLocation(s.origin, url))
		if d := s.discovery(); isHere && d != nil {
			path, _ = d.urls.Clean(path)
		}
		look.Paths[i] = path
	}
	s.look = look
	s.handler.limiter.PayForWrites(1) // for the front page, which the probe requests
}
