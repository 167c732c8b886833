package sitemap

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

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
