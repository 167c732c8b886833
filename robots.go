package sitemap

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/cespare/xxhash/v2"
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/recorder"
	"github.com/seed3295b519/caddy-sitemap/internal/robotstxt"
)

// maxRobots is the most bytes of a robots.txt that are served. Crawlers read half a megabyte.
const maxRobots = 8 << 20

// serveRobots serves the site's own robots.txt with the Sitemap line in it.
func (h *Handler) serveRobots(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if !onlyReads(r) {
		return next.ServeHTTP(w, r)
	}
	// Whatever is wrong with the request, the next handler says: a robots.txt that fails keeps crawlers out.
	s, err := h.app.siteOf(h, r, "")
	if err != nil {
		return next.ServeHTTP(w, r)
	}
	return s.respondRobots(w, r, next)
}

// respondRobots is serveRobots for a site.
func (s *site) respondRobots(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	// Whether the site is an alias is known after the first refresh, for which a snapshot waits.
	snapshot, err := s.snapshot(r.Context())
	if main := s.main.Load(); main != nil {
		s = main
		snapshot, err = main.snapshot(r.Context())
	}
	var urls []string
	if err == nil && snapshot != nil {
		urls = s.namedURLs(snapshot)
	}
	for _, o := range s.inFolders() {
		if snapshot := o.published().snapshot; snapshot != nil {
			urls = append(urls, o.namedURLs(snapshot)...)
		}
	}
	if urls == nil {
		return next.ServeHTTP(w, r) // there is no sitemap to name
	}
	return nameSitemap(w, r, next, urls)
}

// inFolders are the sites in folders of the same host, whose handlers no request for its robots.txt reaches.
func (s *site) inFolders() []*site {
	return s.app.sitesThat(func(o *site) bool {
		return o != s && o.id.prefix != "" && o.origin == s.origin && o.handler.settings.robots
	})
}

// namedURLs are the URLs that robots.txt names: the sitemap, and the feed and the news sitemap if there are any.
func (s *site) namedURLs(snapshot *document.Set) []string {
	urls := []string{s.sitemap}
	beside := &s.handler.settings.beside
	if beside.Feed && snapshot.Find(document.Feed) != nil {
		urls = append(urls, s.feedURL())
	}
	if beside.News != nil && snapshot.Find(document.NewsSitemap) != nil {
		urls = append(urls, s.newsURL())
	}
	return urls
}

// nameSitemap serves the robots.txt that the next handler has with the Sitemap lines in it,
// or without where it says something else.
func nameSitemap(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, urls []string) error {
	header := w.Header()
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	rec := recorder.New(recorder.Options{Limit: maxRobots, Header: header, Stop: stop})
	err := serveRecorded(rec, wholeOf(r).WithContext(ctx), next)
	// The length is another one with the lines, and is set anew where it is known.
	header.Del("Content-Length")
	status := cmp.Or(rec.Status, statusOf(err))
	isNone := status == http.StatusNotFound || status == http.StatusGone
	// An error that says that there is none, and is not sent yet, is no reason to fail.
	if err != nil && (rec.Status != 0 || !isNone) {
		return err
	}
	// A handler may have compressed the file although that was not asked for: it is passed on as it is.
	isReadable := status == http.StatusOK && header.Get("Content-Encoding") == ""
	if !isNone && !isReadable {
		w.WriteHeader(status)
		_, _ = w.Write(rec.Body) // the client is gone where this fails
		return nil
	}
	var own []byte
	if !isNone {
		own = rec.Body
	}
	body, isMade := robotstxt.Naming(header.Get("Content-Type"), own, urls...)
	modified, _ := http.ParseTime(header.Get("Last-Modified"))
	// Else the file has the lines already, or is none to which they may be added: its own validators hold.
	if !bytes.Equal(body, own) {
		describeNaming(header, body, isMade)
		modified = time.Time{}
	}
	serveContent(w, r, modified, bytes.NewReader(body))
	return nil
}

// serveRecorded has a handler serve a request until no more of the body is kept. One that is stopped then has not failed: a
// proxy panics to say that it has not passed on the whole response.
func serveRecorded(rec *recorder.Recorder, r *http.Request, next caddyhttp.Handler) (err error) {
	defer func() {
		if rec.Ended {
			_ = recover()
			err = nil
		}
	}()
	return next.ServeHTTP(rec, r)
}

// wholeOf returns a request for the whole of what a request asks for, as it is: the client's conditions, and the range that it
// asks for, are met by what is made of that.
func wholeOf(r *http.Request) *http.Request {
	whole := r.Clone(r.Context())
	whole.Method = http.MethodGet
	for _, name := range append(conditions, "Accept-Encoding") {
		whole.Header.Del(name)
	}
	return whole
}

// describeNaming has the headers of a robots.txt describe what the lines were added to. isMade: there was no robots.txt.
func describeNaming(header http.Header, body []byte, isMade bool) {
	header.Del("Last-Modified")
	header.Del("Accept-Ranges")
	if isMade || header.Get("Content-Type") == "" {
		header.Set("Content-Type", contentText)
	}
	header.Set("Etag", `"`+strconv.FormatUint(xxhash.Sum64(body), 36)+`"`)
}

// robotsRules is the site's own robots.txt as a crawler reads it.
type robotsRules struct {
	rules    robotstxt.Rules
	closed   bool     // it cannot be fetched: RFC 9309, section 2.3.1.4, disallows everything
	status   int      // of a robots.txt that is closed; 0: it does not respond
	unseen   bool     // requests for it do not reach the handler
	from     string   // URL to which requests for it are redirected; "": they are not
	foreign  bool     // from is of another host, so the rules are not known
	sitemaps []string // URLs of its Sitemap lines, in what crawlers read

	made bool      // the response was made
	at   time.Time // when there was a response
}

// isReliable reports whether robots.txt need not be requested again, by whether a time is recent. A file costs no request, and
// while it cannot be fetched at all, no page may be.
func (r *robotsRules) isReliable(isRecent func(time.Time) bool) bool {
	return !r.closed && r.made && isRecent(r.at)
}

// maxRedirects are followed to a robots.txt (RFC 9309, section 2.3.1.2), behind more of which there is none, and to a sitemap.
const maxRedirects = 5

// fetchRobots reads the site's robots.txt, also behind redirects on the site. One that is redirected to another host,
// which the server cannot request, counts as none.
func (f *siteFetcher) fetchRobots(ctx context.Context) robotsRules {
	p := &probe{handler: f.handler, prefix: f.id.prefix}
	res, err := f.fetchData(ctx, robotsPath, robotstxt.MaxBody, p)
	if err != nil {
		return robotsRules{closed: true} // the probe may still be the handler's
	}
	robots := robotsRules{unseen: !p.robots}
	at := f.origin + robotsPath
	for range maxRedirects {
		if res.Status/100 != 3 {
			break
		}
		target, path := f.redirect(at, res)
		if target == "" {
			break
		}
		at = target
		robots.from = target
		// The server requests nothing but its own pages.
		if path == "" {
			robots.foreign = true
			return robots
		}
		res, err = f.fetchData(ctx, path, robotstxt.MaxBody, nil)
		if err != nil {
			return robotsRules{closed: true}
		}
	}
	// To crawlers, a connection that breaks is one that fails, not a file that there is none of.
	if res.Aborted || robotstxt.Closes(res.Status) {
		return robotsRules{closed: true, status: res.Status}
	}
	robots.made = res.Made
	robots.at = f.handler.app.now()
	if res.Status != http.StatusOK || robotstxt.IsHTML(res.Header.Get("Content-Type"), res.Body) {
		return robots
	}
	body := res.Body
	// The last line is left out where it may be cut: half a path disallows more than the whole one.
	if res.Truncated {
		body = body[:bytes.LastIndexAny(body, "\r\n")+1]
	}
	robots.rules = robotstxt.ReadRules(body, "Googlebot")
	robots.sitemaps = robotstxt.Sitemaps(body)
	return robots
}

// redirect returns the URL to which the response to a request for a URL redirects; "": it does not. path is the internal
// path of that URL; "": it is not of the site.
func (f *siteFetcher) redirect(from string, res *crawl.Response) (target, path string) {
	to := resolveLocation(from, res.Header.Get("Location"))
	// An application behind a proxy may write the host by which the server knows it.
	if path, ok := html.PathOn(f.internalOrigin, to); ok && f.internalOrigin != f.origin {
		return f.internalOrigin + path, path
	}
	if path, ok := html.PathOn(f.origin, to); ok {
		return f.origin + path, f.internalPath(path)
	}
	return to, ""
}

// checkRobots warns once if the robots.txt that crawlers read is not the one that the handler serves, and lacks the line.
func (s *site) checkRobots(robots *robotsRules) {
	urls := s.namedURLs(s.published().snapshot)
	isElsewhere := robots.unseen || robots.from != ""
	lacks := s.handler.settings.robots && isElsewhere && !slices.Contains(robots.sitemaps, urls[0])
	s.logger.OnceIf(lacks, zap.WarnLevel, "unseen", "requests for /robots.txt do not reach the sitemap handler, "+
		"or are redirected: add this line to the file",
		zap.String("line", "Sitemap: "+strings.Join(urls, "\nSitemap: ")), zap.String("file", robots.from))
}

// disallowed says that robots.txt keeps crawlers from documents of the sitemap; "": it does not.
func (s *site) disallowed() string {
	paths := []string{s.docPath(".xml")}
	if snapshot := s.published().snapshot; snapshot != nil {
		for _, d := range snapshot.Shards {
			paths = append(paths, s.docPath(d.Name))
		}
	}
	rules := &cmp.Or(s.probed.Load(), new(probeResult)).robots.rules
	for _, path := range paths {
		if !rules.Allows(path) {
			return fmt.Sprintf("robots.txt disallows %s, so crawlers do not read it: remove the rule '%s', "+
				"or add 'Allow: %[1]s'", path, rules.Line(path))
		}
	}
	return ""
}
