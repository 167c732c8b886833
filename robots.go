package sitemap

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/robotstxt"
)

// serveRobots serves the site's own robots.txt with the Sitemap line in it.
func (h *Handler) serveRobots(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return next.ServeHTTP(w, r)
	}
	// Whatever is wrong with the request is for the next handler to say, since a
	// robots.txt that fails keeps crawlers out.
	s, err := h.app.siteOf(h, r, h.robotsPrefix())
	if err != nil {
		return next.ServeHTTP(w, r)
	}
	sitemap := s.sitemapLine(r.Context())
	if sitemap == "" {
		s.state.readers.count(r.Header, readRobots, readMissing, h.app.now)
		return next.ServeHTTP(w, r)
	}
	status, err := addLine(w, r, next, sitemap)
	s.state.readers.count(r.Header, readRobots, readResultOf(cmp.Or(status, statusOf(err))), h.app.now)
	return err
}

// addLine serves the robots.txt that the next handler has with the Sitemap line in it.
// It returns the status, 0 where none was sent.
func addLine(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, sitemap string) (int, error) {
	rec := &robotsWriter{w: w, mayAgain: r.Method == http.MethodHead || isConditional(r.Header)}
	header, groups := w.Header().Clone(), maps.Clone(routeGroups(r))
	err := rec.record(next, withoutConditions(r))
	if rec.again {
		restore(w.Header(), header)
		restore(routeGroups(r), groups)
		recorded := recordStatus(w)
		err := next.ServeHTTP(recorded, r)
		return recorded.status, err
	}
	if rec.passed {
		return rec.status, err
	}
	if err != nil {
		var herr caddyhttp.HandlerError
		if rec.status != 0 || !errors.As(err, &herr) || !isGone(herr.StatusCode) {
			return 0, err
		}
		rec.status = herr.StatusCode
	}
	return rec.finish(r, sitemap), nil
}

// sitemapLine is the URL that the line names; "": there is no sitemap to name.
func (s *site) sitemapLine(ctx context.Context) string {
	snapshot, err := s.snapshot(ctx)
	if main := s.main.Load(); main != nil {
		s = main
		snapshot, err = s.snapshot(ctx)
	}
	if err != nil || snapshot == nil {
		return ""
	}
	return s.sitemapURL()
}

// robotsPrefix is the prefix of the site whose line is in robots.txt: with a base
// URL there is one site, wherever the handler is mounted.
func (h *Handler) robotsPrefix() string {
	if prefixes := h.mounts.prefixes(); h.settings.base != "" && len(prefixes) > 0 {
		return prefixes[0]
	}
	return ""
}

// withoutConditions is the request for the whole file as it is.
func withoutConditions(r *http.Request) *http.Request {
	clone := r.Clone(r.Context())
	clone.Method = http.MethodGet
	for _, name := range []string{"Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "Accept-Encoding"} {
		clone.Header.Del(name)
	}
	return clone
}

// routeGroups are the groups of routes, such as a site's handle blocks, of which one
// has answered, so that Caddy passes by the others.
func routeGroups(r *http.Request) map[string]struct{} {
	groups, _ := r.Context().Value(caddy.CtxKey("route_group")).(map[string]struct{})
	return groups
}

// restore makes m what it was.
func restore[M ~map[K]V, K comparable, V any](m, was M) {
	clear(m)
	maps.Copy(m, was)
}

func isGone(status int) bool {
	return status == http.StatusNotFound || status == http.StatusGone
}

// robotsWriter keeps a robots.txt to be changed, and lets pass what is none.
type robotsWriter struct {
	w      http.ResponseWriter
	status int
	body   bytes.Buffer
	passed bool // the response went on to the client

	mayAgain bool // the next handler did not see all of the request
	again    bool // it is to answer the request as it came
}

// errAgain ends an answer that nobody will read.
var errAgain = errors.New("this robots.txt stays as it is: the request follows as it came")

// record lets the next handler answer, unless that is to begin again.
func (rw *robotsWriter) record(next caddyhttp.Handler, r *http.Request) error {
	defer func() {
		if !rw.again {
			return
		}
		// A reverse proxy aborts a response that it cannot write.
		if v := recover(); v != nil && v != http.ErrAbortHandler {
			panic(v)
		}
	}()
	return next.ServeHTTP(rw, r)
}

func (rw *robotsWriter) Header() http.Header { return rw.w.Header() }

// Unwrap lets an http.ResponseController reach what lies beneath.
func (rw *robotsWriter) Unwrap() http.ResponseWriter { return rw.w }

func (rw *robotsWriter) WriteHeader(status int) {
	if rw.passed || status < 200 {
		rw.w.WriteHeader(status)
		return
	}
	if rw.status != 0 || rw.again {
		return
	}
	rw.status = status
	encoding := rw.Header().Get("Content-Encoding")
	if !isGone(status) && (status != http.StatusOK || encoding != "" && encoding != "identity") {
		rw.decline()
	}
}

func (rw *robotsWriter) Write(p []byte) (int, error) {
	rw.WriteHeader(http.StatusOK)
	if rw.again {
		return 0, errAgain
	}
	if rw.passed {
		return rw.w.Write(p)
	}
	if isGone(rw.status) {
		return len(p), nil
	}
	if rw.body.Len()+len(p) > robotstxt.MaxBody {
		if rw.decline(); rw.again {
			return 0, errAgain
		}
		return rw.w.Write(p)
	}
	return rw.body.Write(p)
}

// Flush holds back what is still to be changed.
func (rw *robotsWriter) Flush() {
	if rw.passed {
		_ = http.NewResponseController(rw.w).Flush()
	}
}

// decline leaves a response to the next handler. A whole 200 may not be what the
// client asked for, with conditions that the next handler did not see.
func (rw *robotsWriter) decline() {
	if rw.mayAgain && rw.status == http.StatusOK {
		rw.again, rw.body = true, bytes.Buffer{}
		return
	}
	rw.pass()
}

// pass lets the response go on as it is.
func (rw *robotsWriter) pass() {
	rw.passed = true
	rw.w.WriteHeader(rw.status)
	_, _ = rw.w.Write(rw.body.Bytes())
	rw.body = bytes.Buffer{}
}

// passOn is pass for a whole 200, which must meet the conditions and the range that
// the client asked for and the next handler did not see. It returns the status.
func (rw *robotsWriter) passOn(r *http.Request) int {
	if !isConditional(r.Header) {
		rw.pass()
		return rw.status
	}
	modified, _ := http.ParseTime(rw.Header().Get("Last-Modified"))
	rw.Header().Del("Content-Length") // set where it holds
	return serveContent(rw.w, r, modified, bytes.NewReader(rw.body.Bytes()))
}

// namingSitemap is a site's robots.txt with the Sitemap line, or one made for it where
// the site has none. A false ok says that the site's answer is to stay as it is.
func namingSitemap(status int, contentType string, body []byte, sitemap string) (merged []byte, made, ok bool) {
	switch {
	case isGone(status), len(body) == 0, robotstxt.IsHTML(contentType, body):
		return robotstxt.New(sitemap), true, true
	case contentType != "" && !robotstxt.IsText(contentType):
		return body, false, false
	}
	merged, ok = robotstxt.Merge(body, sitemap)
	return merged, false, ok
}

// finish writes the robots.txt that names the sitemap, and returns the status.
func (rw *robotsWriter) finish(r *http.Request, sitemap string) int {
	header := rw.Header()
	contentType := header.Get("Content-Type")
	body, made, ok := namingSitemap(rw.status, contentType, rw.body.Bytes(), sitemap)
	if !ok || bytes.Equal(body, rw.body.Bytes()) {
		return rw.passOn(r)
	}
	if made {
		contentType = "text/plain; charset=utf-8"
	}
	for _, name := range []string{"Etag", "Last-Modified", "Content-Length", "Accept-Ranges", "Content-Encoding", "Content-Disposition"} {
		header.Del(name)
	}
	if contentType == "" {
		contentType = "text/plain; charset=utf-8"
	}
	header.Set("Content-Type", contentType)
	header.Set("Etag", `"`+strconv.FormatUint(xxhash.Sum64(body), 36)+`"`)
	return serveContent(rw.w, r, time.Time{}, bytes.NewReader(body))
}
