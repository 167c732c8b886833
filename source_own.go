package sitemap

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/files"
	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/publish"
	"github.com/seed3295b519/caddy-sitemap/internal/sitemapxml"
	"github.com/seed3295b519/caddy-sitemap/internal/urllist"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// Bounds of reading a site's own sitemaps.
const (
	ownInterval     = 10 * time.Minute // between two readings of those of an application
	ownRetry        = time.Minute      // after a reading that failed
	ownShare        = 10               // reading takes a tenth of the time at most
	maxOwnRedirects = 5                // in a row
	ownBytes        = 200              // what a page of an own sitemap takes in memory, about
)

// ownList is what the site's own sitemaps say: those that it would serve without ours. It never changes.
type ownList struct {
	pages  []page.Page // none where no source reads them
	named  int         // pages that they name
	from   string      // URL of the document that names the first one, itself or by others
	unused unused
	err    error // of documents that could not be read

	at    time.Time     // when reading it began; zero: it was not read yet
	pause time.Duration // until it is read again
	by    uint64        // digest of the settings, and of the documents at which reading began
	made  bool          // the response to a request for a document was made
}

// isCurrent reports whether the list need not be read again; nil: it must.
func (l *ownList) isCurrent(by uint64, now time.Time) bool {
	return l != nil && l.by == by && now.Sub(l.at).Abs() < l.pause
}

// ownSitemaps yields the pages of the site's own sitemaps: of those at the paths of our sitemap, of its sections and of its
// news, which ours hide, and of those that its robots.txt names.
func (r *Refresh) ownSitemaps(ctx context.Context, yield func(page.Page) error) error {
	own := r.awaitOwn(ctx)
	if own == nil {
		return errors.New("they are not read yet")
	}
	for _, p := range own.pages {
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
		urls = append(urls, s.origin+s.docPath(publish.NameOfSection(name)))
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

// lookAtOwn begins to read the site's own sitemaps if they are due. Where no source reads them, it warns that ours hides them.
func (r *Refresh) lookAtOwn(ctx context.Context) {
	s := r.site
	if s.mergesOwn() {
		r.beginOwn()
		// A source that yields nothing for a minute would fail.
		if s.app.building != nil {
			r.awaitOwn(ctx)
		}
		return
	}
	// Nobody is to wait for a first sitemap because of a warning.
	if s.published().snapshot == nil || s.hasLists() {
		return
	}
	r.beginOwn()
	own := r.awaitOwn(ctx)
	if own == nil || own.named == 0 {
		return
	}
	path, _ := html.PathOn(r.BaseURL, own.from)
	r.Warn("hidden", "the site has a sitemap of its own, which this one hides and no source reads: "+
		"to merge its pages and dates, write the line into the block of sitemap",
		zap.String("hidden", own.from), zap.Int("urls", own.named), zap.String("line", "urls "+path))
}

// beginOwn begins to read the site's own sitemaps if they are due. That goes on beside the refreshes, at the pace of the crawl,
// and is complete or says nothing: until then, what was read before counts.
func (r *Refresh) beginOwn() {
	s := r.site
	before := s.state.own.Load()
	// Of a site that lists nothing, no page is missing while they are not read.
	if before == nil && s.published().snapshot == nil {
		before = new(ownList)
		s.state.own.Store(before)
	}
	// It is not known which of them a robots.txt names that cannot be fetched.
	if r.probed.robots.closed || s.ctx.Err() != nil {
		return
	}
	last := s.ownReading.Load()
	isReading := last != nil && !wait.IsDone(last.done)
	// An operator wants to see what they say now.
	if isReading && r.demanded {
		last.cancel()
	} else if isReading {
		return
	}
	roots := append(s.hidingURLs(), r.probed.robots.sitemaps...)
	by := digestOf(roots, s.fetcher.digest())
	if before.isCurrent(by, r.Now) && !r.demanded {
		return
	}
	reading := &ownReading{
		refresh: r,
		roots:   roots,
		before:  cmp.Or(before, new(ownList)),
		list:    &ownList{by: by, at: r.Now},
		seen:    make(map[string]bool),
		done:    make(chan struct{}),
	}
	reading.ctx, reading.cancel = context.WithCancel(s.ctx)
	reading.isPaced = reading.before.made || reading.before.at.IsZero() && r.probed.made
	s.ownReading.Store(reading)
	s.app.group.Go(reading.run)
}

// awaitOwn returns what was read last, after a while in which a reading that is under way may end; nil: nothing was read yet.
func (r *Refresh) awaitOwn(ctx context.Context) *ownList {
	s := r.site
	if reading := s.ownReading.Load(); reading != nil {
		ctx, cancel := context.WithTimeout(ctx, wait.Patience(r.ownPatience()))
		defer cancel()
		select {
		case <-reading.done:
		case <-ctx.Done():
			reading.isLate.Store(true)
		}
	}
	return s.state.own.Load()
}

// ownPatience is how long a refresh waits for the site's own sitemaps.
func (r *Refresh) ownPatience() time.Duration {
	s := r.site
	isWanted := r.demanded || s.state.own.Load() == nil && s.mergesOwn()
	switch {
	case s.app.building != nil:
		return never // there is no next refresh
	case s.firstLook:
		return 0
	case isWanted && wait.IsDone(s.ready):
		return sourcePatience / 2
	}
	return firstPatience / 2
}

// ownReading is a reading of the site's own sitemaps.
type ownReading struct {
	refresh *Refresh // that has begun it
	roots   []string
	before  *ownList

	list    *ownList
	seen    map[string]bool // documents, by path
	isPaced bool            // the next response is most likely made: requests wait for their turns
	root    string          // URL of the document that is read by itself
	at      string          // URL of that one, or of one that it names
	written time.Time       // when a build of ours has written it; zero: none has

	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{} // closed when it has ended
	isLate atomic.Bool   // a refresh has not waited for its end
}

// run reads all documents. What is cut short says nothing.
func (o *ownReading) run() {
	s := o.refresh.site
	defer close(o.done)
	defer o.cancel()
	defer func() {
		if v := recover(); v != nil {
			s.logger.Error("reading the site's own sitemaps panicked", zap.Any("panic", v), zap.Stack("stack"))
		}
	}()
	o.read(o.ctx)
	if o.ctx.Err() != nil {
		return
	}
	o.list.pause = o.pause()
	s.state.own.Store(o.list)
	if o.isLate.Load() {
		s.noteChange()
	}
}

var errTooManyPages = errors.New("too many pages")

// read reads all documents.
func (o *ownReading) read(ctx context.Context) {
	s := o.refresh.site
	list := o.list
	reader := &urllist.Reader{
		Base:    s.origin,
		Now:     o.refresh.Now,
		Extract: s.handler.settings.extract,
		Open:    o.open,
		Yield:   o.add,
		Refuse: func(line int, text string, err error) {
			// What an application responds to any path may be no list at all.
			if errors.Is(err, urllist.ErrBroken) || strings.Contains(text, "://") {
				list.unused.refuse(o.at, line, text, err)
			}
		},
	}
	var failed []error
	for _, root := range o.roots {
		o.at = ""
		content, err := o.open(ctx, root)
		o.root = o.at
		if err == nil {
			err = reader.Read(ctx, content)
		}
		if errors.Is(err, errTooManyPages) {
			break
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", root, err))
		}
	}
	list.unused.dropped = reader.Dropped
	// Where there were none, no page is missing while what may be there by now cannot be read.
	wereNone := !o.before.at.IsZero() && o.before.named == 0 && o.before.err == nil
	if list.named > 0 || !wereNone {
		list.err = errors.Join(failed...)
	}
}

// pause returns how long the list is current.
func (o *ownReading) pause() time.Duration {
	s := o.refresh.site
	pause := ownShare * s.app.now().Sub(o.list.at)
	switch {
	case o.list.err != nil && o.list.made:
		return max(pause, ownRetry)
	case o.list.made || !s.mergesOwn():
		return max(pause, ownInterval)
	}
	return pause
}

// fetch requests a document.
func (o *ownReading) fetch(ctx context.Context, path string) (*crawl.Response, error) {
	f := &o.refresh.site.fetcher
	q := dataRequest(f.internalPath(path), maxListBody)
	res, ok, err := f.crawler.Do(ctx, crawl.Single{Path: q.Path, Waits: o.isPaced}, func() (*crawl.Response, error) {
		return f.fetch(ctx, q, nil)
	})
	if !ok {
		err = cmp.Or(ctx.Err(), errPaused)
	}
	// Where one document is made, more will be.
	if err == nil && res.Made {
		o.list.made = true
		o.isPaced = true
	}
	return res, err
}

// open opens a document once, wherever redirects on the site lead to it. What is no sitemap is empty.
func (o *ownReading) open(ctx context.Context, url string) (io.ReadCloser, error) {
	s := o.refresh.site
	for range 1 + maxOwnRedirects {
		path, isHere := html.PathOn(s.origin, url)
		if !isHere && o.at != "" {
			o.list.unused.refuse(o.at, 0, url, errNoDocument)
		}
		if !isHere || o.seen[path] {
			break
		}
		o.seen[path] = true
		res, err := o.fetch(ctx, path)
		if err == nil && isRedirect(res) {
			url = resolveLocation(url, res.Header.Get("Location"))
			continue
		}
		err = listError(path, res, err)
		// A generator may have written it compressed alone.
		if errors.Is(err, fs.ErrNotExist) && !res.Made && url == s.sitemap {
			url += ".gz"
			continue
		}
		if errors.Is(err, errNoDocument) {
			break
		}
		if err != nil {
			return nil, err
		}
		return o.content(url, res), nil
	}
	return http.NoBody, nil
}

func isRedirect(res *crawl.Response) bool {
	return res.Status/100 == 3 && res.Status != http.StatusNotModified
}

// content returns what is read of a document. One that a build has left has the dates of the site as it was then.
func (o *ownReading) content(url string, res *crawl.Response) io.ReadCloser {
	o.at = url
	o.written = time.Time{}
	isOfBuild := !res.Proxied && sitemapxml.IsOwn(res.Body)
	if isOfBuild && o.refresh.site.app.building == nil {
		return http.NoBody
	}
	if isOfBuild {
		o.written, _ = http.ParseTime(res.Header.Get("Last-Modified"))
	}
	return io.NopCloser(bytes.NewReader(res.Body))
}

// isOutdated reports whether the document is one that a build has written, and its entry does not say of a page what is so now:
// of files that have not changed since it does, and it may have taken the place of one with dates that are nowhere else.
func (o *ownReading) isOutdated(path string) bool {
	if o.written.IsZero() {
		return false
	}
	at := o.refresh.fileTime(path)
	return at == 0 || at > o.written.Unix() || origin.IsAsset(path)
}

// add adds a page.
func (o *ownReading) add(p page.Page) error {
	s := o.refresh.site
	if o.isOutdated(p.Path) || s.noPage(p.Path) != "" {
		return nil
	}
	list := o.list
	list.named++
	list.from = cmp.Or(list.from, o.root)
	if s.mergesOwn() {
		list.pages = append(list.pages, p)
	}
	if list.named > s.handler.settings.maxURLs {
		return errTooManyPages
	}
	return nil
}
