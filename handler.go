package sitemap

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/publish"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

const (
	robotsPath = "/robots.txt"
	retryAfter = "10"
)

// ServeHTTP serves the documents of the site that the request is for, and its
// robots.txt with the Sitemap line. Everything else goes to the next handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	path := r.URL.Path
	wanted, ok := h.match(path)
	prefix, rewrittenFrom := "", ""
	if original, isRequest := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); isRequest && original.URL != nil && original.URL.Path != path {
		if ok {
			rewrittenFrom = original.URL.Path
		} else {
			// A rewrite may have led the request elsewhere.
			wanted, prefix, ok = h.matchOriginal(original.URL.Path)
		}
	}
	if !ok {
		if h.watches {
			return h.watch(w, r, next)
		}
		return next.ServeHTTP(w, r)
	}
	if p, asked := probeOf(r); asked {
		return h.note(p, w, r, next, wanted)
	}
	if err := h.app.await(r.Context(), h.app.started); err != nil {
		return unavailable(w, err)
	}
	if rewrittenFrom != "" {
		prefix, ok = h.stripped(rewrittenFrom, path)
		if !ok || wanted.robots && strings.HasSuffix(rewrittenFrom, path) {
			return next.ServeHTTP(w, r)
		}
	}
	if wanted.robots {
		return h.serveRobots(w, r, next)
	}
	return h.serveDocument(w, r, next, wanted, prefix)
}

// wanted is which of a site's documents a request is for.
type wanted struct {
	robots bool
	suffix string
	form   publish.Form
}

// match reports whether a path is that of a document.
func (h *Handler) match(path string) (wanted, bool) {
	if path == robotsPath {
		return wanted{robots: true}, h.settings.robots
	}
	suffix, form, ok := publish.ParseName(path, h.settings.stem)
	if !ok && h.settings.prefix != "" {
		// Nothing strips the prefix of the base URL.
		if rest, found := strings.CutPrefix(path, h.settings.folder); found {
			suffix, form, ok = publish.ParseName(rest, h.settings.stem)
		}
	}
	return wanted{suffix: suffix, form: form}, ok
}

// matchOriginal is match for the path as the client sent it, from which a prefix
// may have been stripped since.
func (h *Handler) matchOriginal(original string) (wanted, string, bool) {
	if w, ok := h.match(original); ok {
		return w, "", true
	}
	if !wait.IsDone(h.app.started) {
		return wanted{}, "", false
	}
	for _, mount := range h.mounts {
		if rest, found := strings.CutPrefix(original, page.Unescape(mount.prefix)); found && mount.prefix != "" && rest != robotsPath {
			if w, ok := h.match(rest); ok {
				return w, mount.prefix, true
			}
		}
	}
	return wanted{}, "", false
}

// stripped returns the prefix that was stripped of a path before it reached the handler:
// one of those under which the routes lead to the handler, however the client wrote it. Any
// other rewrite is of the visitor's choice and names no prefix. False: there is no such
// prefix, and the handler stands only under prefixes.
func (h *Handler) stripped(original, path string) (string, bool) {
	stripped, found := strings.CutSuffix(original, path)
	prefixes := h.mounts.prefixes()
	for _, prefix := range prefixes {
		if found && strings.EqualFold(mergeSlashes(stripped), page.Unescape(prefix)) {
			return prefix, true
		}
	}
	return "", len(prefixes) == 0 || slices.Contains(prefixes, "")
}

// mergeSlashes is a prefix as Caddy's path matcher sees it, without one at its end.
func mergeSlashes(prefix string) string {
	for strings.Contains(prefix, "//") {
		prefix = strings.ReplaceAll(prefix, "//", "/")
	}
	return strings.TrimSuffix(prefix, "/")
}

// serveDocument answers a request for a document; where the site has none of that name,
// the next handler does.
func (h *Handler) serveDocument(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, want wanted, prefix string) error {
	s, err := h.app.siteOf(h, r, prefix)
	if err != nil {
		if errors.Is(err, errTooManySites) {
			departed.Count(r.UserAgent(), readDocumentOf(want, nil), http.StatusServiceUnavailable, h.app.now())
		}
		return unavailable(w, err)
	}
	// Once there is a snapshot, or will be none, it is known what stands for the site.
	snapshot, err := s.snapshot(r.Context())
	document, status := readDocumentOf(want, snapshot), http.StatusOK
	defer func() { s.state.readers.Count(r.UserAgent(), document, status, h.app.now()) }()
	if main := s.main.Load(); main != nil {
		document, status = readDocumentOf(want, main.state.Index.Load()), http.StatusPermanentRedirect
		http.Redirect(w, r, main.origin+main.docPath(want.suffix, want.form.Extension()), status)
		return nil
	}
	d := snapshot.Find(want.suffix)
	switch {
	case err != nil:
		status = http.StatusServiceUnavailable
		return unavailable(w, err)
	case d == nil || want.form == publish.FormText && d.Index:
		status = http.StatusNotFound
		return next.ServeHTTP(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		status = http.StatusMethodNotAllowed
		w.Header().Set("Allow", "GET, HEAD")
		return caddyhttp.Error(status, nil)
	}
	due, _, _ := s.schedule.State()
	status = writeDocument(w, r, d, want.form, due.Sub(h.app.now()))
	return nil
}

// unavailable is the error for Caddy of a site that cannot be served now, or of a request
// without a valid host.
func unavailable(w http.ResponseWriter, err error) error {
	if errors.Is(err, errNoHost) {
		return caddyhttp.Error(http.StatusBadRequest, err)
	}
	w.Header().Set("Retry-After", retryAfter)
	if errors.Is(err, errTooManySites) { // which Caddy would log for each request
		w.WriteHeader(http.StatusServiceUnavailable)
		return nil
	}
	return caddyhttp.Error(http.StatusServiceUnavailable, err)
}
