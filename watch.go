package sitemap

import (
	"path"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed3295b519/caddy-sitemap/internal/files"
	"github.com/seed3295b519/caddy-sitemap/internal/htmlmeta"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
	"github.com/seed3295b519/caddy-sitemap/internal/webpage"
)

// restFor is how long a site rests at most while every change of it is told.
const restFor = time.Hour

// watcher tells of changes below the root of a source.
type watcher struct {
	*files.Watcher
	source *SourceFiles
}

// newWatchers returns those of the files sources of a site. Sites that only visitors named have none, as anybody can make up
// hosts; nor has one that several processes share, of which another one may be to refresh it next, nor that of a build,
// which has no next time.
//
// What the configuration before watches is taken over, so that no change is lost. If this one fails to start, the sites of
// the one before are told that it is not watched any more.
func (s *site) newWatchers() []watcher {
	if s.onDemand || s.state.fleet != nil || s.app.building != nil {
		return nil
	}
	var all []watcher
	for _, source := range s.handler.sources {
		if of, isFiles := source.(*SourceFiles); isFiles {
			all = append(all, watcher{files.NewWatcher(), of})
		}
	}
	before := s.state.watchers.Swap(&all)
	if before == nil {
		return all
	}
	for i := range min(len(all), len(*before)) {
		all[i].TakeOver((*before)[i].Watcher)
	}
	return all
}

// watcherOf returns the watcher of a source; nil: there is none.
func (s *site) watcherOf(source input) *files.Watcher {
	for _, w := range s.watchers {
		if source == input(w.source) {
			return w.Watcher
		}
	}
	return nil
}

// watcher returns what is to tell of changes below the root of a source; nil: nothing is. The first scan of a site does not
// begin to watch: visitors wait for it.
func (r *Refresh) watcher(of *SourceFiles) *files.Watcher {
	w := r.site.watcherOf(of)
	if w == nil || r.site.published().snapshot == nil {
		return nil
	}
	w.SetNames(r.site.watchedNames()...)
	return w
}

// watchedNames are the names of files that a refresh looks at, besides those of pages.
func (s *site) watchedNames() []string {
	sitemap := path.Base(s.handler.settings.path)
	names := []string{
		"robots.txt",
		sitemap,
		sitemap + ".gz",
		strings.TrimSuffix(sitemap, ".xml") + webpage.Stylesheet,
		path.Base(webpage.LLMs),
	}
	if own := s.own.Load(); own != nil {
		for url := range own.documents {
			names = append(names, path.Base(url))
		}
	}
	return names
}

// watchFiles has the site refreshed soon after a change below the root of a source, until it is stopped.
func (s *site) watchFiles(w watcher) {
	for w.Wait(s.ctx) {
		s.replan()
		s.schedule.Notify()
	}
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
	p.isChanged = true
	s.plan(p)
}

// isChanged reports whether a change of a file was told since a time.
func (s *site) isChanged(since time.Time) bool {
	for _, w := range s.watchers {
		if w.Status().Changed.After(since) {
			return true
		}
	}
	return false
}

// awareness is how the site learns of changes after a refresh with this result.
func (s *site) awareness(out *report.Refresh) awareness {
	if s.rests(out) {
		return areTold
	}
	isFirst := s.published().snapshot != nil && !s.hasWatched
	// An alias may still have what it served before, and never looks for files: it would be refreshed five times a second.
	if isFirst && out.IsSettled() && len(s.watchers) > 0 {
		return areToldNext
	}
	return areFound
}

// rests reports whether nothing new can come, after a refresh with this result, but by what is told: the pages are files that
// are watched as a whole, and so are all documents that name some.
func (s *site) rests(out *report.Refresh) bool {
	isSettled := out.Result == outcome.Published || out.Result == outcome.Unchanged
	if !isSettled || len(out.Merged.Failed) > 0 || !s.published().history.Lost.IsZero() {
		return false
	}
	return s.isWatched() && !s.hasUpstream(out) && s.isOwnWatched() && !s.hasUnconfirmed()
}

// isWatched reports whether all sources are folders that are watched as a whole, or find pages by links in these.
func (s *site) isWatched() bool {
	hasFiles := false
	for _, source := range s.sources() {
		switch of := source.(type) {
		case *SourceLinks:
		case *SourceFiles:
			w := s.watcherOf(of)
			if w == nil || w.Status().State != files.Whole {
				return false
			}
			hasFiles = true
		default:
			return false
		}
	}
	return hasFiles
}

// hasUpstream reports whether an upstream has responded to a request for a page, or of the probe.
func (s *site) hasUpstream(out *report.Refresh) bool {
	probed := s.probed.Load()
	hasAsked := probed == nil || probed.made || probed.robots.made || probed.robots.closed ||
		probed.stylesheet.made || probed.llms.made || !probed.rootAsked.IsZero()
	if hasAsked {
		return true
	}
	// With crawl off, no page is requested.
	if out.Crawled.Generation == nil {
		return false
	}
	return store.Sum(out.Crawled.Generation.Chunks()).Upstream > 0
}

// isOwnWatched reports whether the site's own sitemaps are files that are watched.
func (s *site) isOwnWatched() bool {
	own := s.own.Load()
	return own == nil || own.unread == 0 && !own.made && !own.isElsewhere
}

// hasUnconfirmed reports whether changes wait for another refresh until they are announced.
func (s *site) hasUnconfirmed() bool {
	q := s.state.queue.Load()
	if q == nil || !s.announces() {
		return false
	}
	for _, target := range q.Status(s.app.now()) {
		if target.Unconfirmed > 0 {
			return true
		}
	}
	return false
}

// maxOwnFiles is how many documents of a site's own sitemaps are looked for on disk.
const maxOwnFiles = 100

// isElsewhere reports whether own sitemaps of the site say something, and are no files below the roots of its sources.
func (r *Refresh) isElsewhere(own *ownSet) bool {
	if len(own.documents) > maxOwnFiles {
		return true
	}
	for url, doc := range own.documents {
		says := len(doc.pages)+len(doc.children) > 0 && !doc.redirect
		at, isHere := htmlmeta.PathOn(r.BaseURL, url)
		if says && isHere && r.fileTime(at) == 0 {
			return true
		}
	}
	return false
}

// watchedRoot is what the admin API shows of the root of a source.
type watchedRoot struct {
	Root    string `json:"root,omitempty"`
	State   string `json:"state"`             // of a files.WatchState
	Folders int    `json:"folders,omitempty"` // watched
	Reason  string `json:"reason,omitempty"`  // why not all changes are told
}

// watched returns what is known of the roots of the sources, in the order of these.
func (s *site) watched() (all []watchedRoot) {
	for _, w := range s.watchers {
		st := w.Status()
		if st.State != files.Unwatched || st.Root != "" {
			all = append(all, watchedRoot{st.Root, st.State.String(), st.Folders, st.Reason})
		}
	}
	return all
}

// logWatched says once which roots are not watched, and why.
func (s *site) logWatched() {
	for _, w := range s.watchers {
		st := w.Status()
		kind := "watch " + st.Root
		root := zap.String("root", st.Root)
		reason := zap.String("reason", st.Reason)
		switch st.State {
		case files.Incomplete:
			// Of a thousand sites, nearly all are beyond the maximum, which is said once for all.
			if st.Reason == files.ReasonFull {
				s.app.sayUnwatched()
				continue
			}
			s.logger.Once(zapcore.InfoLevel, kind, "files are not watched: changes show by the refresh interval", root, reason)
		case files.Mistrusted:
			s.logger.Once(zapcore.WarnLevel, kind,
				"files are not watched any more: changes show by the refresh interval", root, reason)
		case files.Whole:
			s.logger.Once(zapcore.DebugLevel, kind, "files are watched: a change shows within seconds", root)
		}
	}
}

// sayUnwatched says once that there are more roots than are watched.
func (a *App) sayUnwatched() {
	a.unwatched.Do(func() {
		a.logger.Info("there are more roots than can be watched: in the others, changes show by the refresh interval",
			zap.String("reason", files.ReasonFull))
	})
}
