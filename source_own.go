package sitemap

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/files"
	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/urllist"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// Bounds of reading a site's own sitemaps.
const (
	ownInterval = 10 * time.Minute // between two readings of those of an application
	ownRetry    = time.Minute      // after a reading that failed
	ownShare    = 10               // reading takes a tenth of the time at most
	ownBytes    = 200              // what a page of an own sitemap takes in memory, about
	ownAtOnce   = 10               // documents at most that are read again because of a write
)

// ownList is what the site's own sitemaps say: those that it would serve without ours. Once it is read, it never changes.
type ownList struct {
	pages  []page.Page // where no source reads them, only the first one
	from   string      // URL of the document that names the first one, itself or by others
	unused urllist.Unused
	err    error // of documents that could not be read

	opened int       // documents
	isMade bool      // one of them was made
	by     uint64    // digest of the settings, and of the documents at which reading began
	begun  time.Time // reading them
	due    time.Time // when it is read again
}

// ownSitemaps yields the pages of the site's own sitemaps, marked with the bit after those of its sources.
func (r *Refresh) ownSitemaps(yield func(page.Page) error) error {
	own := r.site.state.own.Load()
	if own == nil {
		return errors.New("they are not read yet")
	}
	bit := uint16(1) << min(len(r.site.sources()), maxSourceBit)
	for _, p := range own.pages {
		p.Sources = bit
		p.Path = r.fileSpelling(p.Path)
		if err := yield(p); err != nil {
			return err
		}
	}
	r.warnOfUnused("own sitemaps", "the site's own sitemap", &own.unused)
	return own.err
}

// noPage returns why neither 'files' nor the site's own sitemaps list a path: its name, or what the routes serve; "": they may.
func (s *site) noPage(path string) string {
	probed := s.probed.Load()
	if probed != nil && slices.Contains(probed.standIns, path) {
		return "shown in place of others"
	}
	return files.NoPage(strings.TrimPrefix(path, s.scope))
}

// hidingURLs are those of our documents that may hide one of the site: of the sitemap, of the sections, and of the news.
func (s *site) hidingURLs() []string {
	urls := []string{s.sitemap}
	for _, name := range s.handler.settings.sections.names() {
		urls = append(urls, s.origin+s.docPath(document.NameOfSection(name)))
	}
	if s.handler.settings.beside.News != nil {
		urls = append(urls, s.newsURL())
	}
	return urls
}

// hasLists reports whether an operator has chosen the lists of the site.
func (s *site) hasLists() bool {
	return slices.ContainsFunc(s.sources(), func(source input) bool {
		lists, isURLs := source.(*SourceURLs)
		return isURLs && len(lists.From) > 0
	})
}

// lookAtOwn reads the site's own sitemaps if they are due. That goes on beside the refreshes, at the pace of the crawl, and is
// complete or says nothing: until then, what was read before counts. Where no source reads them, it warns that ours hides them.
func (r *Refresh) lookAtOwn(ctx context.Context) {
	s := r.site
	isMerged := s.mergesOwn()
	isServed := s.published().snapshot != nil
	// Nobody is to wait for a first sitemap because of a warning.
	if !isMerged && (!isServed || s.hasLists()) {
		return
	}
	// Of a site that lists nothing, no page is missing while they are not read.
	if !isServed {
		s.state.own.CompareAndSwap(nil, new(ownList))
	}
	r.beginOwn()
	r.awaitOwn(ctx)
	own := s.state.own.Load()
	if isMerged || own == nil || len(own.pages) == 0 {
		return
	}
	path, _ := html.PathOn(r.BaseURL, own.from)
	r.Warn("hidden", "the site has a sitemap of its own, which this one hides and no source reads: "+
		"to merge its pages and dates, write the line into the block of sitemap",
		zap.String("hidden", own.from), zap.String("line", "urls "+path))
}

// beginOwn begins to read the site's own sitemaps if they are due: those at the paths of our sitemap, of its sections and of
// its news, which ours hide, and those that its robots.txt names.
func (r *Refresh) beginOwn() {
	s := r.site
	before := s.state.own.Load()
	roots := append(s.hidingURLs(), r.probed.robots.sitemaps...)
	own := &ownList{by: digestOf(roots, s.fetcher.digest()), begun: r.Now}
	isSameTime := before != nil && !r.Now.Before(before.begun) && r.Now.Before(before.due) // else the clock was set back
	isCurrent := isSameTime && before.by == own.by
	isReading := s.ownReading.Err() == nil
	isDue := r.demanded || !isReading && (!isCurrent || s.mayBeSaved(before))
	// It is not known which of them a robots.txt names that cannot be fetched.
	if !isDue || r.probed.robots.closed {
		return
	}
	// An operator wants to see what they say now.
	s.endOwnReading()
	s.ownReading, s.endOwnReading = context.WithCancel(s.ctx)
	ctx := s.ownReading
	end := s.endOwnReading
	s.app.group.Go(func() {
		defer end()
		defer func() {
			if v := recover(); v != nil {
				s.logger.Error("reading the site's own sitemaps panicked", zap.Any("panic", v), zap.Stack("stack"))
			}
		}()
		r.readOwn(ctx, own, roots)
		// What is cut short says nothing.
		if ctx.Err() == nil {
			s.state.own.Store(own)
		}
	})
}

// mayBeSaved reports whether the site's own sitemaps are read again because of a write: where they are few.
func (s *site) mayBeSaved(own *ownList) bool {
	if !s.look.IsSince(own.begun) || !own.isMade || own.opened > ownAtOnce {
		return false
	}
	s.handler.limiter.PayForWrites(own.opened)
	return true
}

// awaitOwn waits a while for the end of a reading that is under way. The next refresh follows soon after one that is slower.
func (r *Refresh) awaitOwn(ctx context.Context) {
	s := r.site
	patience := firstPatience / 2
	switch {
	case s.app.building != nil:
		patience = never // there is no next refresh
	case s.firstLook, s.look.IsOn(r.Now.Unix()):
		patience = 0
	case r.demanded, s.mergesOwn() && s.state.own.Load() == nil:
		patience = sourcePatience / 2
	}
	ctx, cancel := context.WithTimeout(ctx, wait.Patience(patience))
	defer cancel()
	select {
	case <-s.ownReading.Done():
	case <-ctx.Done():
		context.AfterFunc(s.ownReading, s.noteChange)
	}
}

var errTooManyPages = errors.New("too many pages")

// readOwn reads the site's own sitemaps.
func (r *Refresh) readOwn(ctx context.Context, own *ownList, roots []string) {
	s := r.site
	// To warn of what is hidden, it is enough to know that there is a page.
	most := 0
	if s.mergesOwn() {
		most = s.handler.settings.maxURLs
	}
	l := r.newLists(nil)
	l.IsGuess = true
	l.Yield = func(p page.Page) error {
		if l.isOutdated(p.Path) || s.noPage(p.Path) != "" {
			return nil
		}
		own.from = cmp.Or(own.from, l.root)
		own.pages = append(own.pages, p)
		if len(own.pages) > most {
			return errTooManyPages
		}
		return nil
	}
	for _, root := range roots {
		err := l.readNamed(ctx, root)
		if errors.Is(err, errTooManyPages) {
			break
		}
		if err != nil {
			own.err = errors.Join(own.err, err)
		}
	}
	own.unused = l.Unused
	own.opened = len(l.opened)
	own.isMade = l.isMade
	// Where there were none, no page is missing while what may be there by now cannot be read.
	before := s.state.own.Load()
	wereNone := before != nil && len(before.pages) == 0 && before.err == nil
	if wereNone && len(own.pages) == 0 {
		own.err = nil
	}
	own.due = r.Now.Add(own.pauseAfter(s.app.now().Sub(r.Now)))
}

// isOutdated reports whether the document is one that a build has written, and does not say what is so now of a page: it does of
// files that have not changed since. It may have taken the place of one with dates that are nowhere else.
func (l *lists) isOutdated(path string) bool {
	if l.built.IsZero() {
		return false
	}
	at := l.fileTime(path)
	return at == 0 || at > l.built.Unix() || origin.IsAsset(path)
}

// pauseAfter returns how long the list is current that it has taken a time to read.
func (l *ownList) pauseAfter(took time.Duration) time.Duration {
	switch {
	case !l.isMade:
		return ownShare * took
	case l.err != nil:
		return max(ownShare*took, ownRetry)
	}
	return max(ownShare*took, ownInterval)
}
