package sitemap

import (
	"errors"
	"net/http"
	"path"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/publish"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
	"github.com/seed3295b519/caddy-sitemap/internal/webpage"
)

const robotsPath = "/robots.txt"

// ServeHTTP serves the documents of the site that the request is for, and its
// robots.txt with the Sitemap line. Everything else goes to the next handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	want, prefix, ok := h.wants(r)
	if ok && !wait.IsDone(h.app.started) {
		if err := h.app.await(r.Context(), h.app.started); err != nil {
			return unavailable(w, err)
		}
		want, prefix, ok = h.wants(r) // again, now that the mounts are known
	}
	if ok && want.key != "" {
		if h.serveKey(w, r, want.key, prefix) {
			return nil
		}
		ok = false // the site's own file
	}
	if !ok && h.watches {
		return h.watch(w, r, next)
	}
	if !ok {
		return next.ServeHTTP(w, r)
	}
	if p, own := probeOf(r); own {
		return h.serveProbe(p, w, r, next, want)
	}
	if want.robots {
		return h.serveRobots(w, r, next)
	}
	return h.serveDocument(w, r, next, want, prefix)
}

// wanted is the document of a site that a request is for.
type wanted struct {
	robots bool
	suffix string
	form   publish.Form
	key    string // of IndexNow; "": it is no key file
}

// String returns the document's name in metrics.
func (w wanted) String() string {
	switch {
	case w.robots:
		return "robots"
	case w.form == publish.FormFile:
		return map[string]string{webpage.HTML: "html", webpage.Feed: "feed", webpage.Stylesheet: "stylesheet"}[path.Ext(w.suffix)]
	case w.suffix != "":
		return "shard"
	}
	return "sitemap"
}

// match returns the document that a decoded path names. ok is false if it names none.
func (h *Handler) match(path string) (wanted, bool) {
	if path == robotsPath {
		return wanted{robots: true}, h.settings.robots
	}
	suffix, form, ok := h.settings.document(path, h.settings.stem)
	rest, found := strings.CutPrefix(path, h.settings.folder)
	if found && !ok && rest != path { // nothing strips the prefix of the base URL
		suffix, form, ok = h.settings.document(rest, h.settings.stem)
	}
	if !ok && h.IndexNow != nil {
		key := keyOf(rest)
		return wanted{key: key}, key != ""
	}
	return wanted{suffix: suffix, form: form}, ok
}

// document returns the suffix and form of the document that a path names: see [publish.ParseName].
func (s *settings) document(path, stem string) (suffix string, form publish.Form, ok bool) {
	suffix, form, ok = publish.ParseName(path, stem, s.beside)
	return suffix, form, ok && publish.SectionOf(suffix) == ""
}

// wants returns the document that a request is for, and the prefix of its site. The path counts as the client sent it,
// or without the prefix under which the handler is mounted. A path that was rewritten otherwise counts only if the
// handler is mounted without a prefix, too: a visitor could choose it.
func (h *Handler) wants(r *http.Request) (want wanted, prefix string, ok bool) {
	sent := r.URL.Path
	original, isRequest := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request)
	if isRequest && original.URL != nil {
		sent = original.URL.Path
	}
	want, ok = h.match(sent)
	if ok || sent == r.URL.Path {
		return want, "", ok
	}
	sent = path.Clean(sent) // as path matchers do, which are case-insensitive, too
	var mounts mounts
	if wait.IsDone(h.app.started) {
		mounts = h.mounts
	}
	whole := len(mounts) == 0
	for _, mount := range mounts {
		if mount.prefix == "" {
			whole = true
		}
		prefix := page.Unescape(mount.prefix)
		n := len(prefix)
		if len(sent) <= n || !strings.EqualFold(sent[:n], prefix) {
			continue
		}
		want, ok = h.match(sent[n:])
		if ok {
			return want, mount.prefix, !want.robots
		}
	}
	want, ok = h.match(r.URL.Path)
	return want, "", ok && whole
}

// serveDocument serves a document, or calls the next handler if the site has none of that name.
func (h *Handler) serveDocument(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, want wanted, prefix string) error {
	s, err := h.app.siteOf(h, r, prefix)
	if err != nil {
		return unavailable(w, err)
	}
	status, err := s.respond(w, r, next, want)
	s.state.readers.Count(r.UserAgent(), want.String(), status, h.app.now())
	return err
}

// respond is serveDocument for a site, and returns the status, by which readers are counted.
func (s *site) respond(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, want wanted) (int, error) {
	snapshot, err := s.snapshot(r.Context())
	if err == nil {
		snapshot, err = s.lookUp(r.Context(), snapshot, want.suffix)
	}
	// Whether the site is an alias is known after the first refresh, for which a snapshot waits.
	if main := s.main.Load(); main != nil {
		to := main.origin + main.docPath(want.suffix, want.form.Extension())
		http.Redirect(w, r, to, http.StatusPermanentRedirect)
		return http.StatusPermanentRedirect, nil
	}
	if err != nil {
		return http.StatusServiceUnavailable, unavailable(w, err)
	}
	d := snapshot.Find(want.suffix)
	isNone := d == nil || want.form == publish.FormText && d.Index
	if isNone || want.suffix == webpage.Stylesheet && s.hasOwnStylesheet() {
		return http.StatusNotFound, next.ServeHTTP(w, r)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return http.StatusMethodNotAllowed, caddyhttp.Error(http.StatusMethodNotAllowed, nil)
	}
	return writeDocument(w, r, d, want.form, s.fresh()), nil
}

// hasOwnStylesheet reports whether the site had a stylesheet of its own at the path of ours when it was last probed: ours,
// on by default, gives way.
func (s *site) hasOwnStylesheet() bool {
	probed := s.probed.Load()
	return probed != nil && probed.stylesheet.exists
}

// unavailable writes the response, or returns Caddy's error, for a site that cannot be served now or
// a request without a valid host.
func unavailable(w http.ResponseWriter, err error) error {
	if errors.Is(err, errNoHost) {
		return caddyhttp.Error(http.StatusBadRequest, err)
	}
	w.Header().Set("Retry-After", "10")
	if errors.Is(err, errTooManySites) || errors.Is(err, errUnread) { // which Caddy would log for each request
		w.WriteHeader(http.StatusServiceUnavailable)
		return nil
	}
	return caddyhttp.Error(http.StatusServiceUnavailable, err)
}
