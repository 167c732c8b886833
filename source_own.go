package sitemap

import (
	"bytes"
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

// names reports whether one of the pages has a path.
func (l *ownList) names(path string) bool {
	return l != nil && slices.ContainsFunc(l.pages, func(p page.Page) bool { return p.Path == path })
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

// lookAtOwn begins to read the site's own sitemaps if they are due. Where no source reads them, it warns that ours hides them.
func (r *Refresh) lookAtOwn(ctx context.Context) {
	s := r.site
	isMerged := s.mergesOwn()
	// Nobody is to wait for a first sitemap because of a warning.
	if !isMerged && (s.published().snapshot == nil || s.hasLists()) {
		return
	}
	r.beginOwn()
	// In a build, a source that yields nothing for a minute would fail.
	if isMerged && s.app.building == nil {
		return
	}
	own := r.awaitOwn(ctx)
	if isMerged || own == nil || own.named == 0 {
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
	if before == nil {
		before = new(ownList)
		// Of a site that lists nothing, no page is missing while they are not read.
		if s.published().snapshot == nil {
			s.state.own.Store(before)
		}
	}
	// It is not known which of them a robots.txt names that cannot be fetched.
	if r.probed.robots.closed {
		return
	}
	last := s.ownReading.Load()
	isReading := last != nil && !wait.IsDone(last.done)
	roots := append(s.hidingURLs(), r.probed.robots.sitemaps...)
	by := digestOf(roots, s.fetcher.digest())
	isCurrent := before.by == by && r.Now.Sub(before.at).Abs() < before.pause
	if !r.demanded && (isReading || isCurrent) {
		return
	}
	// An operator wants to see what they say now.
	if isReading {
		last.cancel()
	}
	reading := &ownReading{
		Refresh: r,
		ownList: &ownList{by: by, at: r.Now},
		roots:   roots,
		isPaced: before.made,
		seen:    make(map[string]bool),
		done:    make(chan struct{}),
	}
	ctx, cancel := context.WithCancel(s.ctx)
	reading.cancel = cancel
	s.ownReading.Store(reading)
	s.app.group.Go(func() { reading.run(ctx) })
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
	*Refresh // that has begun it
	*ownList
	roots []string

	isPaced  bool            // the next response is most likely made: requests wait for their turns
	seen     map[string]bool // documents, by path
	document string          // URL of the one that is read; "": none was opened yet
	written  time.Time       // when a build of ours has written it; zero: none has

	cancel context.CancelFunc
	done   chan struct{} // closed when it has ended
	isLate atomic.Bool   // a refresh has not waited for its end
}

// run reads all documents. What is cut short says nothing.
func (o *ownReading) run(ctx context.Context) {
	s := o.site
	defer close(o.done)
	defer o.cancel()
	defer func() {
		if v := recover(); v != nil {
			s.logger.Error("reading the site's own sitemaps panicked", zap.Any("panic", v), zap.Stack("stack"))
		}
	}()
	o.read(ctx)
	if ctx.Err() != nil {
		return
	}
	o.pause = o.pauseAfter(s.app.now().Sub(o.at))
	s.state.own.Store(o.ownList)
	if o.isLate.Load() {
		s.noteChange()
	}
}

var errTooManyPages = errors.New("too many pages")

// read reads all documents.
func (o *ownReading) read(ctx context.Context) {
	reader := &urllist.Reader{
		Base:    o.BaseURL,
		Now:     o.Now,
		Extract: o.site.handler.settings.extract,
		Open:    o.open,
		Yield:   o.add,
		Refuse: func(line int, text string, err error) {
			// What an application responds to any path may be no list at all.
			if errors.Is(err, urllist.ErrBroken) || strings.Contains(text, "://") {
				o.unused.refuse(o.document, line, text, err)
			}
		},
	}
	for _, root := range o.roots {
		o.document = ""
		content, err := o.open(ctx, root)
		opened := o.document
		if err == nil {
			err = reader.Read(ctx, content)
		}
		if o.from == "" && o.named > 0 {
			o.from = opened
		}
		if errors.Is(err, errTooManyPages) {
			break
		}
		if err != nil {
			o.err = errors.Join(o.err, fmt.Errorf("%s: %w", root, err))
		}
	}
	o.unused.dropped = reader.Dropped
	// Where there were none, no page is missing while what may be there by now cannot be read.
	before := o.site.state.own.Load()
	wereNone := before != nil && before.named == 0 && before.err == nil
	if wereNone && o.named == 0 {
		o.err = nil
	}
}

// pauseAfter returns how long the list is current that it has taken a time to read.
func (o *ownReading) pauseAfter(took time.Duration) time.Duration {
	switch {
	case !o.made:
		return ownShare * took
	case o.err != nil:
		return max(ownShare*took, ownRetry)
	}
	return max(ownShare*took, ownInterval)
}

// fetch requests a document.
func (o *ownReading) fetch(ctx context.Context, path string) (*crawl.Response, error) {
	request := dataRequest(o.site.internalPath(path), maxListBody)
	request.Waits = o.isPaced
	res, err := o.site.fetcher.get(ctx, request, nil)
	// Where one document is made, more will be.
	if err == nil && res.Made {
		o.made = true
		o.isPaced = true
	}
	return res, err
}

// errRedirects is the error of a document that redirects lead nowhere near, as those in a circle.
var errRedirects = fmt.Errorf("it redirects more than %d times", maxRedirects)

// open opens a document once, wherever redirects on the site lead to it. What is no sitemap is empty.
func (o *ownReading) open(ctx context.Context, url string) (io.ReadCloser, error) {
	for range 1 + maxRedirects {
		path, isHere := html.PathOn(o.BaseURL, url)
		if !isHere && o.document != "" {
			o.unused.refuse(o.document, 0, url, errNoDocument)
		}
		if !isHere || o.seen[path] {
			return http.NoBody, nil
		}
		res, err := o.fetch(ctx, path)
		if err == nil && res.Status/100 == 3 && res.Status != http.StatusNotModified {
			url = resolveLocation(url, res.Header.Get("Location"))
			continue
		}
		o.seen[path] = true
		err = listError(path, res, err)
		switch {
		// A generator may have written it compressed alone.
		case errors.Is(err, fs.ErrNotExist) && !res.Made && url == o.site.sitemap:
			url += ".gz"
		case errors.Is(err, errNoDocument):
			return http.NoBody, nil
		case err != nil:
			return nil, err
		default:
			return o.content(url, res), nil
		}
	}
	return nil, errRedirects
}

// content returns what is read of a document. One that a build has left has the dates of the site as it was then.
func (o *ownReading) content(url string, res *crawl.Response) io.ReadCloser {
	o.document = url
	o.written = time.Time{}
	isOfBuild := !res.Proxied && document.IsOwn(res.Body)
	if isOfBuild && o.site.app.building == nil {
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
	at := o.fileTime(path)
	return at == 0 || at > o.written.Unix() || origin.IsAsset(path)
}

// add adds a page.
func (o *ownReading) add(p page.Page) error {
	if o.isOutdated(p.Path) || o.site.noPage(p.Path) != "" {
		return nil
	}
	o.named++
	if o.site.mergesOwn() {
		o.pages = append(o.pages, p)
	}
	if o.named > o.site.handler.settings.maxURLs {
		return errTooManyPages
	}
	return nil
}
