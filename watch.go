package sitemap

import (
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/files"
)

// watchOf returns what tells of changes of the site's files; nil: nothing does. Sites that only visitors named have none, as
// anybody can make up hosts; nor has that of a build, which has no next time.
//
// What the configuration before watches is taken over, so that no change is lost.
func (s *site) watchOf() *files.Watch {
	if s.onDemand || s.app.building != nil {
		return nil
	}
	s.state.watch.Forget()
	return s.state.watch
}

// watchFiles has the site refreshed soon after a change of its files, until it is stopped. That is no refresh that an operator
// has requested.
func (s *site) watchFiles() {
	for s.watch.Wait(s.ctx) {
		s.noteChange()
	}
}

// noteChange has the site refreshed soon because of a change that was told.
func (s *site) noteChange() {
	s.state.isChanged.Store(true)
	s.replan()
	s.schedule.Notify()
}

// replan plans the next refresh anew, because of what came after the last one.
func (s *site) replan() {
	s.planning.Lock()
	defer s.planning.Unlock()
	// The refresh under way plans the next one when it has ended.
	if s.prospected == nil {
		return
	}
	p := *s.prospected
	p.now = s.app.now()
	p.isChanged = s.state.isChanged.Load()
	p.look = s.lookDue()
	s.plan(p)
}

const notWatched = "not all files are watched: changes show by the refresh interval"

// logWatch says, once for all sites, why not all files are watched; nil: they are.
func (s *site) logWatch(err error) {
	if err == nil {
		return
	}
	s.app.unwatched.Do(func() { s.app.logger.Info(notWatched, zap.String("site", s.url()), zap.Error(err)) })
}
