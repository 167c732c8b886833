package sitemap

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed3295b519/caddy-sitemap/internal/accesslog"
)

func init() {
	caddy.RegisterModule(SourceTraffic{})
}

// SourceTraffic contributes the pages that visitors get through the sitemap handler, once a
// listed page links to them, or if they are named as unlinked. It sees the responses of the
// handlers behind this one.
type SourceTraffic struct {
	Discovery
}

// CaddyModule returns the Caddy module information.
func (SourceTraffic) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.sitemap.sources.traffic",
		New: func() caddy.Module { return new(SourceTraffic) },
	}
}

// watch passes a request on and notes the visit that the response shows.
func (h *Handler) watch(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if _, own := probeOf(r); own || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return next.ServeHTTP(w, r)
	}
	recorder := caddyhttp.NewResponseRecorder(w, nil, nil)
	err := next.ServeHTTP(recorder, r)
	if status := recorder.Status(); err == nil && (status == http.StatusOK || status == http.StatusNotModified) {
		h.noteVisit(recorder.Header(), status, r)
	}
	return err
}

func (h *Handler) noteVisit(header http.Header, status int, r *http.Request) {
	uri, path := r.RequestURI, r.URL.Path
	if original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok && original.URL != nil {
		uri, path = original.RequestURI, original.URL.Path
	}
	user, _ := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer).GetString("http.auth.user.id") // by a handler that knows
	v := accesslog.Visit{
		Method: r.Method, URI: uri, Status: status,
		UserAgent:   cmp.Or(r.UserAgent(), "-"), // it is known that there is none
		ContentType: header.Get("Content-Type"),
		RobotsTag:   strings.Join(header["X-Robots-Tag"], ", "),
		User:        len(r.Header["Authorization"]) > 0 || user != "",
	}
	if !isDone(h.app.started) {
		return
	}
	page, reason := h.discovery.visit(&v)
	if reason != "" {
		return
	}
	id, err := h.idOf(r, h.mounts.prefixOf(path))
	if err != nil {
		return
	}
	if s := h.app.lookup(id); s != nil { // else a visitor's Host header alone would start a site
		s.visit(page, h.app.now().Unix())
	}
}

// Pages yields the pages that visitors have had, sorted by path.
func (*Discovery) Pages(_ context.Context, r *Refresh, yield func(Page) error) error {
	s := r.site
	d := s.handler.discovery
	s.state.progress.Gather()
	for _, path := range s.state.visited.Sorted(r.Now.Add(-d.expire).Unix()) {
		if err := yield(Page{Path: path, Visited: true}); err != nil {
			return err
		}
	}
	if _, dropped := s.state.visited.Count(); dropped > 0 {
		s.logger.once(zapcore.WarnLevel, "max_paths", "more pages are visited than are remembered: raise max_paths",
			zap.Int("max_paths", d.most(s.onDemand)))
	}
	return nil
}

// Sorted implements [SortedSource].
func (*Discovery) Sorted() bool { return true }

// most is how many paths are remembered that links and visitors named, for a site that
// the configuration names or one on demand.
func (d *discovery) most(onDemand bool) int {
	if onDemand {
		return min(d.maxPaths, maxOnDemandPaths)
	}
	return d.maxPaths
}

// visit notes a visit to a page, at a Unix time that is not in the future. It is false
// where the page is not one of the site's.
func (s *site) visit(path string, at int64) bool {
	if main := s.main.Load(); main != nil {
		s = main
	}
	d := s.handler.discovery
	if d == nil || !strings.HasPrefix(path, s.front()) {
		return false
	}
	s.state.visited.Add(path, at, d.most(s.onDemand))
	return true
}

// visit returns the page that a visit shows, or why it does not count.
func (d *discovery) visit(v *accesslog.Visit) (path, reason string) {
	reason = v.Reason()
	d.visits.Add(reason)
	if reason != "" {
		return "", reason
	}
	path, ok := d.cleaner.Clean(v.URI)
	if !ok {
		return "", lineOddPath
	}
	return path, ""
}
