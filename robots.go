package sitemap

import (
	"bytes"
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/publish"
	"github.com/seed3295b519/caddy-sitemap/internal/recorder"
	"github.com/seed3295b519/caddy-sitemap/internal/robotstxt"
	"github.com/seed3295b519/caddy-sitemap/internal/webpage"
)

// maxRobots is the most bytes of a robots.txt that are served. Crawlers read half a megabyte.
const maxRobots = 8 << 20

// serveRobots serves the site's own robots.txt with the Sitemap line in it.
func (h *Handler) serveRobots(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return next.ServeHTTP(w, r)
	}
	// Whatever is wrong with the request, the next handler says: a robots.txt that fails keeps crawlers out.
	s, err := h.app.siteOf(h, r, "")
	if err != nil {
		return next.ServeHTTP(w, r)
	}
	named := s
	snapshot, err := s.snapshot(r.Context())
	if main := s.main.Load(); main != nil {
		named = main
		snapshot, err = main.snapshot(r.Context())
	}
	status := http.StatusNotFound // there is no sitemap to name
	if err != nil || snapshot == nil {
		err = next.ServeHTTP(w, r)
	} else {
		status, err = nameSitemap(w, r, next, named.namedURLs(snapshot))
	}
	s.state.readers.Count(r.UserAgent(), "robots", cmp.Or(status, statusOf(err)), h.app.now())
	return err
}

// namedURLs are the URLs that robots.txt names: the sitemap, and the feed if there is one.
func (s *site) namedURLs(snapshot *publish.Snapshot) []string {
	urls := []string{s.sitemapURL()}
	if snapshot.Find(webpage.Feed) != nil {
		urls = append(urls, s.feedURL())
	}
	return urls
}

// nameSitemap serves the robots.txt that the next handler has with the Sitemap lines in it,
// or without where it says something else. It returns the status, 0 where none was sent.
func nameSitemap(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, urls []string) (int, error) {
	// The next handler is asked for the whole file as it is. The client's conditions, and the
	// range that it asks for, are met by what is made of that.
	whole, header := r.Clone(r.Context()), w.Header()
	whole.Method = http.MethodGet
	for _, name := range append(conditions, "Accept-Encoding") {
		whole.Header.Del(name)
	}
	rec := recorder.New(recorder.Options{Limit: maxRobots, Header: header})
	err := next.ServeHTTP(rec, whole)
	status, own := cmp.Or(rec.Status, statusOf(err)), rec.Body
	header.Del("Content-Length") // set anew where it is known
	isNone := status == http.StatusNotFound || status == http.StatusGone
	switch encoding := header.Get("Content-Encoding"); {
	case err != nil && (rec.Status != 0 || !isNone):
		return 0, err
	case isNone:
		own = nil
	case status != http.StatusOK || encoding != "" && encoding != "identity":
		w.WriteHeader(status)
		_, _ = w.Write(own) // the client is gone where this fails
		return status, nil
	}
	contentType := header.Get("Content-Type")
	body, made := robotstxt.Naming(contentType, own, urls...)
	if bytes.Equal(body, own) {
		modified, _ := http.ParseTime(header.Get("Last-Modified"))
		return serveContent(w, r, modified, bytes.NewReader(own)), nil
	}
	for _, name := range []string{"Etag", "Last-Modified", "Accept-Ranges", "Content-Encoding", "Content-Disposition"} {
		header.Del(name)
	}
	if made || contentType == "" {
		header.Set("Content-Type", contentText)
	}
	header.Set("Etag", `"`+strconv.FormatUint(xxhash.Sum64(body), 36)+`"`)
	return serveContent(w, r, time.Time{}, bytes.NewReader(body)), nil
}
