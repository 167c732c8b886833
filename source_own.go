package sitemap

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/files"
	"github.com/seed3295b519/caddy-sitemap/internal/htmlmeta"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/sitemapxml"
	"github.com/seed3295b519/caddy-sitemap/internal/urllist"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// Bounds of reading a site's own sitemaps.
const (
	ownInterval     = time.Hour          // between two looks at a document of an application, and between two full responses
	ownSoon         = 10 * time.Minute   // between two looks at one that has changed within ownBusy
	ownBusy         = 24 * time.Hour     // for which a change makes others likely
	ownShare        = 10                 // looks at these documents take a tenth of the rate at most, or come once in ownInterval
	ownRetry        = time.Minute        // after a failure; twice as long after each further one, up to ownInterval
	ownFirstTime    = firstPatience / 2  // for requests of upstreams, while clients wait for the first sitemap
	ownTime         = sourcePatience / 2 // for them later
	maxOwnDepth     = 2                  // of indexes: an index of indexes is not allowed, but written
	maxOwnRedirects = 5                  // in a row
	maxOwnDocuments = maxEntries
	ownBytes        = 200 // what a page of an own sitemap takes in memory, about
)

// ownSet is what the site's own sitemaps say: those that it would serve without ours. It never changes.
type ownSet struct {
	documents map[string]*ownDocument // by URL
	pages     int                     // of all documents
	foreign   int                     // URLs in all documents that name another origin
	broken    int                     // entries of all documents that cannot be read
	dropped   int                     // entries with alternates, images or videos that are not kept
	origin    string                  // one such origin
	unread    int                     // documents for which there was no time yet
	made      bool                    // the response to a request for a document was made

	isElsewhere bool // some documents are no files of the sources

	named   []string // URLs of the Sitemap lines of robots.txt, when it was fetched last
	isNamed bool     // robots.txt was fetched

	// isFirst says that nothing was known of the site when the first document was read, and that there was no time yet
	// to read all. Then no page is missing while documents are unread.
	isFirst bool
}

// ownDocument is one document of a site's own sitemap. It never changes.
type ownDocument struct {
	pages    []page.Page
	children []string // URLs of the documents that it names, or of the one to which it redirects
	redirect bool     // it redirects
	foreign  int      // URLs in it that name another origin
	broken   int      // entries that cannot be read
	dropped  int      // entries with alternates, images or videos that are not kept
	origin   string   // one such origin

	isRead    bool          // the document was read at least once, or there is none
	isMissing bool          // there is no such document
	err       error         // of the last look; what it said before stays
	at        time.Time     // when the document was last looked at
	wait      time.Duration // how long it is left alone after that
	full      time.Time     // when it was last read: there was a response with a body
	changed   time.Time     // when a body last had another content than the one before, or was the first; zero: there was none
	made      bool          // the response was made
	etag      string        // validator of the response
	modified  string        // validator of the response: its Last-Modified
}

// ownLink is a document to be looked at.
type ownLink struct {
	url       string
	depth     int // of indexes above it
	redirects int // that led to it, in a row
}

// ownElsewhere is the warning of own sitemaps that are of no use to the site.
const ownElsewhere = "the URLs of the site's own sitemap have another scheme, host or port than the site, " +
	"so none of them count: let it name this site, or set 'base_url'"

// ownSitemaps yields the pages of the site's own sitemaps: of those at the paths of our sitemap, of its sections and of its
// news, which ours hide, and of those that its robots.txt names. Each document of an application is read at the limiter's
// pace, every ten minutes for a day after it has changed, else once an hour, when an operator requests a refresh, and again
// after a while if that failed; a file is read when it has changed. What a document said last stays until it is read again.
func (r *Refresh) ownSitemaps(ctx context.Context, yield func(page.Page) error) error {
	own, err := r.readOwn(ctx, r.ownLinks(), yield)
	if err != nil {
		return err
	}
	isComplete := own.pages > 0 && own.unread == 0
	r.site.logger.OnceIf(isComplete, zap.InfoLevel, "own", "pages of the application's own sitemaps are merged",
		zap.Int("pages", own.pages))
	if own.pages == 0 && own.foreign > 0 {
		r.Warn("own sitemaps elsewhere", ownElsewhere,
			zap.String("base_url", r.BaseURL), zap.String("named", own.origin), zap.Int("urls", own.foreign))
	}
	r.LeaveOut("broken entry of an own sitemap", own.broken)
	if own.broken > 0 {
		r.Warn("own sitemaps broken", "some entries of the site's own sitemap are no XML, so they are ignored: check the sitemap "+
			"with 'caddy sitemap check'", zap.Int("entries", own.broken))
	}
	r.warnOfDropped("own sitemaps dropped", "the site's own sitemap", own.dropped)
	var failed []error
	for _, url := range slices.Sorted(maps.Keys(own.documents)) {
		if doc := own.documents[url]; doc.err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", url, doc.err))
		}
	}
	if own.unread > 0 && !own.isFirst {
		failed = append(failed, fmt.Errorf("%d of %d documents are not read yet", own.unread, len(own.documents)))
	}
	// What is listed may come from a sitemap that only robots.txt names, and during an outage there are no such lines to see. A
	// new site has nothing to lose.
	isListed := r.site.published().snapshot != nil
	if isListed && !own.isNamed {
		failed = append(failed, errors.New("robots.txt, which may name more of them, cannot be fetched"))
	}
	return errors.Join(failed...)
}

// noPage returns why neither 'files' nor the site's own sitemaps list a path: its name, or what the routes serve; "": they may.
func (s *site) noPage(path string) string {
	probed := s.probed.Load()
	if probed != nil && slices.Contains(probed.standIns, path) {
		return "shown in place of others"
	}
	return files.NoPage(strings.TrimPrefix(path, s.scope))
}

// warnOfDropped warns of a list that has more than its pages are listed with.
func (r *Refresh) warnOfDropped(kind, list string, entries int) {
	if entries == 0 {
		return
	}
	advice := "set 'extensions alternates images videos'"
	if r.site.handler.settings.crawl.Off {
		advice = "remove 'crawl off', and " + advice
	}
	r.Warn(kind, list+" has versions in other languages, images or videos that are not kept: to list them, "+advice,
		zap.Int("entries", entries))
}

// warnOfHidden warns of sitemaps of the site at our paths that no source reads: ours hide them.
func (r *Refresh) warnOfHidden(ctx context.Context) {
	// Nobody is to wait for a first sitemap because of a warning.
	if r.site.mergesOwn() || r.site.published().snapshot == nil {
		return
	}
	var links []ownLink
	for _, url := range r.site.hidingURLs() {
		// The documents that an index names are not hidden, and not read.
		links = append(links, ownLink{url: url, depth: maxOwnDepth})
	}
	own, err := r.readOwn(ctx, links, func(page.Page) error { return nil })
	if err != nil {
		return
	}
	for _, link := range links {
		r.warnOfHiddenAt(own, link.url)
	}
}

// hidingURLs are those of our documents that may hide one of the site: of the sitemap, of the sections, and of the news.
func (s *site) hidingURLs() []string {
	urls := []string{s.sitemap}
	for _, name := range s.handler.settings.sections.names() {
		urls = append(urls, s.origin+s.docPath("-"+name, ".xml"))
	}
	if s.handler.settings.beside.News != nil {
		urls = append(urls, s.newsURL())
	}
	return urls
}

// warnOfHiddenAt is warnOfHidden for one URL of ours.
func (r *Refresh) warnOfHiddenAt(own *ownSet, at string) {
	hidden := at
	doc := own.documents[hidden]
	for doc != nil && doc.redirect && own.documents[doc.children[0]] != nil {
		hidden = doc.children[0]
		doc = own.documents[hidden]
	}
	if doc == nil || doc.redirect || r.isNamedByURLs(at) || r.isNamedByURLs(hidden) {
		return
	}
	urls := len(doc.pages) + doc.foreign
	line, isHere := htmlmeta.PathOn(r.BaseURL, hidden)
	if urls+len(doc.children) == 0 || !isHere {
		return
	}
	r.Warn("hidden "+at, "the site has a sitemap of its own, which this one hides and no source reads: "+
		"to merge its pages and dates, write the line into the block of sitemap",
		zap.String("hidden", hidden),
		zap.Int("urls", urls),
		zap.Int("documents", len(doc.children)),
		zap.String("line", "urls "+line))
}

// isNamedByURLs reports whether a urls source seems to name a document, here or on disk: a list has its name.
func (r *Refresh) isNamedByURLs(url string) bool {
	for _, source := range r.site.sources() {
		lists, ok := source.(*SourceURLs)
		if !ok {
			continue
		}
		for _, name := range lists.From {
			if path.Base(filepath.ToSlash(name)) == path.Base(url) {
				return true
			}
		}
	}
	return false
}

// ownLinks are the documents at which reading begins.
func (r *Refresh) ownLinks() []ownLink {
	named, _ := r.namedOwn(r.site.own.Load())
	urls := append(r.site.hidingURLs(), named...)
	slices.Sort(urls)
	var links []ownLink
	for _, url := range slices.Compact(urls) {
		links = append(links, ownLink{url: url})
	}
	return links
}

// namedOwn returns the URLs of the Sitemap lines of robots.txt, and whether they are known. While it cannot be fetched,
// they are those before: otherwise, the pages of these sitemaps would seem to be gone during an outage.
func (r *Refresh) namedOwn(before *ownSet) (urls []string, isKnown bool) {
	robots := &r.probed.robots
	if !robots.closed {
		return robots.sitemaps, true
	}
	if before == nil {
		return nil, false
	}
	return before.named, before.isNamed
}

// readOwn looks at the documents that are due, beginning with links, and yields the pages of all. The error is yield's.
func (r *Refresh) readOwn(ctx context.Context, links []ownLink, yield func(page.Page) error) (*ownSet, error) {
	before := r.site.own.Load()
	own := &ownSet{documents: make(map[string]*ownDocument)}
	own.named, own.isNamed = r.namedOwn(before)
	if before == nil {
		before = new(ownSet)
		own.isFirst = r.site.hasNoOwn()
	} else {
		own.isFirst = before.isFirst && !before.isComplete()
		own.made = before.made
	}
	waiting, cancel := r.ownWait(ctx)
	defer cancel()
	r.ownSoon = r.site.ownSoon()
	most := r.site.handler.settings.maxURLs
	for len(links) > 0 && len(own.documents) < maxOwnDocuments && own.pages <= most {
		link := links[0]
		links = links[1:]
		if own.documents[link.url] != nil {
			continue
		}
		doc := before.documents[link.url]
		if !doc.isCurrent(r.Now, before.unread > 0, r.demanded) {
			known := cmp.Or(doc, new(ownDocument))
			// Where one document is made, more will be.
			isMade := known.made || !known.isRead && (r.probed.made || own.made)
			doc = r.lookAtOwn(ctx, waiting, link.url, known, isMade, most-own.pages)
		}
		own.add(link.url, doc)
		links = append(links, doc.links(link)...)
		for _, p := range doc.pages {
			if err := yield(p); err != nil {
				return nil, err
			}
		}
	}
	own.isElsewhere = r.isElsewhere(own)
	r.site.own.Store(own)
	r.site.state.ownless.Store(r.site.hasNoOwn() && own.pages == 0)
	return own, nil
}

// hasNoOwn reports whether nothing that is listed comes from the site's own sitemaps, so that nothing is missing while they are
// not read. The state knows it after a reload, too.
func (s *site) hasNoOwn() bool {
	return s.published().snapshot == nil || s.state.ownless.Load()
}

// ownWait returns a context that ends when no request to an upstream is begun any more in this refresh. What is left is
// read in the next ones; a build has no next one.
func (r *Refresh) ownWait(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.site.app.building != nil {
		return context.WithCancel(ctx)
	}
	if r.site.firstLook {
		return context.WithTimeout(ctx, 0)
	}
	if !wait.IsDone(r.site.ready) {
		return context.WithTimeout(ctx, ownFirstTime)
	}
	return context.WithTimeout(ctx, ownTime)
}

func (s *ownSet) add(url string, doc *ownDocument) {
	s.documents[url] = doc
	s.pages += len(doc.pages)
	s.foreign += doc.foreign
	s.broken += doc.broken
	s.dropped += doc.dropped
	s.origin = cmp.Or(s.origin, doc.origin)
	s.made = s.made || doc.made
	if !doc.isRead && doc.err == nil {
		s.unread++
	}
}

// isComplete reports whether all documents were read.
func (s *ownSet) isComplete() bool {
	for _, doc := range s.documents {
		if !doc.isRead || doc.err != nil {
			return false
		}
	}
	return true
}

// links are the documents to which a document leads.
func (d *ownDocument) links(from ownLink) []ownLink {
	var links []ownLink
	for _, child := range d.children {
		link := ownLink{url: child, depth: from.depth + 1}
		if d.redirect {
			link = ownLink{url: child, depth: from.depth, redirects: from.redirects + 1}
		}
		if link.depth <= maxOwnDepth && link.redirects <= maxOwnRedirects {
			links = append(links, link)
		}
	}
	return links
}

// isCurrent reports whether a document need not be looked at; nil: it must. While others were never read, one that was is
// not read again: at a slow pace, it would take their turns. demanded: an operator wants to see what it says now.
func (d *ownDocument) isCurrent(now time.Time, othersUnread, demanded bool) bool {
	if d == nil || !d.isRead && d.err == nil {
		return false
	}
	isRecent := now.Sub(d.at).Abs() < d.wait
	return isRecent && !demanded || othersUnread && d.err == nil && d.made
}

// lookAtOwn returns what a document says now, or what it said before if there is no time, or it cannot be read. most is about how
// many pages the document may have.
func (r *Refresh) lookAtOwn(
	ctx, waiting context.Context, url string, before *ownDocument, isMade bool, most int,
) *ownDocument {
	path, isHere := htmlmeta.PathOn(r.BaseURL, url)
	if !isHere {
		doc := &ownDocument{isRead: true}
		doc.addForeign(url)
		return doc
	}
	conditions := r.ownConditions(before)
	res, ok, err := r.fetchOwn(ctx, waiting, path, conditions, isMade)
	// A fetch that was cut short says nothing.
	if !ok || ctx.Err() != nil {
		return before
	}
	if err == nil && res.Status == http.StatusNotModified && len(conditions) == 0 {
		err = errUnasked
	}
	doc, err := r.readOwnDocument(ctx, url, res, err, before, most)
	if err == nil {
		return doc
	}
	kept := *before
	// A new document that is cut off says what came before the error.
	if !before.isRead && doc != nil {
		kept.pages = doc.pages
		kept.broken = doc.broken
	}
	kept.at = r.Now
	kept.err = err
	if res != nil {
		kept.made = res.Made
	}
	kept.wait = ownRetry
	if before.err != nil {
		kept.wait = min(2*before.wait, ownInterval)
	}
	return &kept
}

var errUnasked = errors.New("status 304, although the request had no validators")

// ownConditions are the headers of a conditional request for a document.
func (r *Refresh) ownConditions(before *ownDocument) http.Header {
	header := make(http.Header)
	// An application may return 304 whatever has changed, and nothing of it would ever be seen.
	isTrusted := !before.made || r.Now.Sub(before.full).Abs() < ownInterval
	if before.err != nil || !isTrusted || r.demanded {
		return header
	}
	if before.etag != "" {
		header.Set("If-None-Match", before.etag)
	}
	if before.modified != "" {
		header.Set("If-Modified-Since", before.modified)
	}
	return header
}

// fetchOwn requests a document; ok is false if there was no time for that.
func (r *Refresh) fetchOwn(
	ctx, waiting context.Context, path string, conditions http.Header, isMade bool,
) (res *crawl.Response, ok bool, err error) {
	q := dataRequest(r.site.internalPath(path), maxListBody)
	maps.Copy(q.Header, conditions)
	f := &r.site.fetcher
	if !isMade {
		res, err = f.fetch(ctx, q, nil)
		return res, true, err
	}
	return f.crawler.Do(waiting, crawl.Single{Path: q.Path, Waits: true}, func() (*crawl.Response, error) {
		return f.fetch(ctx, q, nil)
	})
}

// readOwnDocument reads a document from the response to a request for it. What it returns beside an error is what it
// could read.
func (r *Refresh) readOwnDocument(
	ctx context.Context, at string, res *crawl.Response, err error, before *ownDocument, most int,
) (*ownDocument, error) {
	if err != nil {
		return nil, fmt.Errorf("fetching it: %w", err)
	}
	if !page.IsConclusive(res.Status) {
		return nil, fmt.Errorf("status %d", res.Status)
	}
	if res.Truncated {
		return nil, fmt.Errorf("it has more than %d bytes", maxListBody)
	}
	if res.Status == http.StatusNotModified {
		same := *before
		same.at = r.Now
		same.err = nil
		same.wait = r.ownPause(&same)
		return &same, nil
	}
	doc := &ownDocument{
		isRead:   true,
		at:       r.Now,
		full:     r.Now,
		changed:  before.changed,
		made:     res.Made,
		etag:     res.Header.Get("Etag"),
		modified: res.Header.Get("Last-Modified"),
	}
	err = r.readOwnResponse(ctx, at, res, doc, most)
	if err == nil && !doc.hasContentOf(before) {
		doc.changed = r.Now
	}
	doc.wait = r.ownPause(doc)
	return doc, err
}

// readOwnResponse reads what a document says from a response with a status that says something.
func (r *Refresh) readOwnResponse(ctx context.Context, at string, res *crawl.Response, doc *ownDocument, most int) error {
	if res.Status/100 == 3 {
		doc.follow(resolveLocation(at, res.Header.Get("Location")))
		return nil
	}
	doc.isMissing = res.Status == http.StatusNotFound || res.Status == http.StatusGone
	// A generator may have written it compressed alone.
	if doc.isMissing && !res.Made && at == r.site.sitemap {
		doc.follow(at + ".gz")
	}
	if res.Status != http.StatusOK || htmlmeta.IsHTML(res.Header.Get("Content-Type")) {
		return nil
	}
	// One that a build has left has the dates of the site as it was then.
	isOfBuild := !res.Proxied && sitemapxml.IsOwn(res.Body)
	if isOfBuild && r.site.app.building == nil {
		return nil
	}
	err := r.parseOwn(ctx, doc, res.Body, most)
	if isOfBuild {
		doc.keepUnchanged(r)
	}
	return err
}

// keepUnchanged keeps of a document that a build has written the pages of files that have not changed since: it may have
// taken the place of one with dates that are nowhere else. Other files than pages may be named by no source any more.
func (d *ownDocument) keepUnchanged(r *Refresh) {
	written, _ := http.ParseTime(d.modified)
	d.pages = slices.DeleteFunc(d.pages, func(p page.Page) bool {
		at := r.fileTime(p.Path)
		return at == 0 || at > written.Unix() || origin.IsAsset(p.Path)
	})
}

// hasContentOf reports whether two documents say the same, whatever else differs in them, such as a comment with the
// time, or the order of their entries.
func (d *ownDocument) hasContentOf(before *ownDocument) bool {
	return reflect.DeepEqual(d.pages, before.pages) && slices.Equal(d.children, before.children)
}

// ownPause returns how long a document is left alone after it was read.
func (r *Refresh) ownPause(doc *ownDocument) time.Duration {
	hasValidators := doc.etag+doc.modified != ""
	// A look at a file costs nothing, and one that is missing may be there soon.
	if !doc.made && (hasValidators || doc.isMissing) {
		return 0
	}
	if r.Now.Sub(doc.changed).Abs() < ownBusy {
		return r.ownSoon
	}
	return ownInterval
}

// ownSoon returns how long a document of an application that has changed is left alone: all such documents of the
// handler together take a share of the rate at most.
func (s *site) ownSoon() time.Duration {
	// Where they are not merged, they are looked at only to warn of what ours hides.
	if !s.mergesOwn() {
		return ownInterval
	}
	documents := 0
	for _, other := range s.app.sitesThat(func(o *site) bool { return o.handler == s.handler }) {
		own := other.own.Load()
		if own != nil && own.made {
			documents += len(own.documents)
		}
	}
	least := time.Duration(ownShare * float64(documents) / s.handler.settings.crawl.Rate * float64(time.Second))
	return min(max(ownSoon, least), ownInterval)
}

var errTooManyPages = errors.New("too many pages")

// parseOwn reads the content of a document.
func (r *Refresh) parseOwn(ctx context.Context, doc *ownDocument, content []byte, most int) error {
	reader := urllist.Reader{
		Base: r.BaseURL, Now: r.Now, Extract: r.site.handler.settings.extract,
		Open: func(_ context.Context, url string) (io.ReadCloser, error) {
			doc.children = append(doc.children, url) // each is a document of its own
			return http.NoBody, nil
		},
		Yield: func(p page.Page) error {
			if r.site.noPage(p.Path) != "" {
				return nil
			}
			doc.pages = append(doc.pages, p)
			if len(doc.pages) > most {
				return errTooManyPages
			}
			return nil
		},
		Refuse: func(_ int, text string, err error) {
			if errors.Is(err, urllist.ErrBroken) {
				doc.broken++
				return
			}
			doc.addForeign(text)
		},
	}
	err := reader.Read(ctx, bytes.NewReader(content))
	doc.dropped = reader.Dropped
	slices.SortStableFunc(doc.pages, page.Compare)
	slices.Sort(doc.children)
	if errors.Is(err, errTooManyPages) {
		return nil
	}
	return err
}

// follow notes where a redirect leads; "": nowhere.
func (d *ownDocument) follow(target string) {
	if target == "" {
		return
	}
	d.redirect = true
	d.children = []string{target}
}

// addForeign counts a URL that is not of the site, if it is of another one.
func (d *ownDocument) addForeign(rawURL string) {
	u, err := origin.ParseURL(strings.TrimSpace(rawURL))
	if err != nil {
		return
	}
	d.foreign++
	d.origin = u.Origin()
}
