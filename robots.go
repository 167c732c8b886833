package sitemap

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"strconv"
	"time"

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
		s.state.readers.Count(r.UserAgent(), "robots", http.StatusNotFound, h.app.now())
		return next.ServeHTTP(w, r)
	}
	status, err := addLine(w, r, next, sitemap)
	s.state.readers.Count(r.UserAgent(), "robots", cmp.Or(status, statusOf(err)), h.app.now())
	return err
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

// maxRobots is the longest robots.txt that is held in memory to be served.
const maxRobots = 8 << 20

// robotsRecorder passes on what turns out to be longer than that.
type robotsRecorder struct {
	caddyhttp.ResponseRecorder
	w      http.ResponseWriter
	passed bool
}

// Write implements [http.ResponseWriter].
func (r *robotsRecorder) Write(b []byte) (int, error) {
	if r.passed {
		return r.w.Write(b)
	}
	n, err := r.ResponseRecorder.Write(b)
	if r.passed = r.Buffered() && r.Size() > maxRobots; r.passed {
		err = r.WriteResponse()
	}
	return n, err
}

// FlushError leaves flushing to the server.
func (r *robotsRecorder) FlushError() error { return nil }

// addLine serves the robots.txt that the next handler has with the Sitemap line in it.
// It returns the status, 0 where none was sent.
func addLine(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, sitemap string) (int, error) {
	var own bytes.Buffer
	header := w.Header()
	rec := &robotsRecorder{w: w, ResponseRecorder: caddyhttp.NewResponseRecorder(w, &own, func(status int, _ http.Header) bool {
		encoding := header.Get("Content-Encoding")
		return isGone(status) || status == http.StatusOK && (encoding == "" || encoding == "identity")
	})}
	err := next.ServeHTTP(rec, wholeRequest(r))
	status := rec.Status()
	if rec.passed || !rec.Buffered() {
		return status, err
	}
	isNone := isGone(cmp.Or(status, statusOf(err)))
	if err != nil && (status != 0 || !isNone) {
		return 0, err
	}
	contentType := header.Get("Content-Type")
	if isNone {
		own.Reset()
	}
	body, made := robotstxt.Naming(contentType, own.Bytes(), sitemap)
	if bytes.Equal(body, own.Bytes()) {
		modified, _ := http.ParseTime(header.Get("Last-Modified"))
		header.Del("Content-Length") // set where it holds
		return serveContent(w, r, modified, bytes.NewReader(own.Bytes())), nil
	}
	for _, name := range []string{"Etag", "Last-Modified", "Content-Length", "Accept-Ranges", "Content-Encoding", "Content-Disposition"} {
		header.Del(name)
	}
	if made || contentType == "" {
		header.Set("Content-Type", "text/plain; charset=utf-8")
	}
	header.Set("Etag", `"`+strconv.FormatUint(xxhash.Sum64(body), 36)+`"`)
	return serveContent(w, r, time.Time{}, bytes.NewReader(body)), nil
}

// wholeRequest is the request for the whole file as it is. The client's conditions, and the
// range that it asks for, are met by what is made of that.
func wholeRequest(r *http.Request) *http.Request {
	clone := r.Clone(r.Context())
	clone.Method = http.MethodGet
	clone.Header.Del("Accept-Encoding")
	for _, name := range conditions {
		clone.Header.Del(name)
	}
	return clone
}

func isGone(status int) bool {
	return status == http.StatusNotFound || status == http.StatusGone
}
