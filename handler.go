package sitemap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

const robotsPath = "/robots.txt"

const visitorPatience = 2 * time.Second // with a document of the site's own

// ServeHTTP serves the documents of the site that the request is for, and its
// robots.txt with the Sitemap line. Everything else goes to the next handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	want, prefix, ok := h.wants(r)
	if ok && !wait.IsDone(h.app.started) {
		err := h.app.await(r.Context(), h.app.started)
		if err != nil {
			return unavailable(w, err)
		}
		// The mounts, which tell the prefix, are known only now.
		want, prefix, ok = h.wants(r)
	}
	isKey := ok && want.key != ""
	if isKey && h.serveKey(w, r, want.key, prefix) {
		return nil
	}
	switch {
	case ok && !isKey: // the site may have a text file whose name looks like a key
		return h.serve(w, r, next, want, prefix)
	case h.records(r):
		return h.serveRecording(w, r, next)
	}
	return next.ServeHTTP(w, r)
}

// serve serves what a request is for. It may be one of the module's own, which no visitor gets the response to.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, want wanted, prefix string) error {
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
	name   string // see document.Names
	key    string // of IndexNow; "": it is no key file
}

// match returns the document that a decoded path names. ok is false if it names none.
func (h *Handler) match(path string) (wanted, bool) {
	if path == robotsPath {
		return wanted{robots: true}, h.settings.robots
	}
	// A proxy in front strips the prefix of the base URL, or nothing does.
	rest := strings.TrimPrefix(path, h.settings.folder)
	for _, path := range [...]string{path, rest} {
		name, isOurs := h.settings.name(path, h.settings.stem)
		if isOurs {
			return wanted{name: name}, true
		}
		if path == document.LLMs && h.settings.beside.LLMs {
			return wanted{name: document.LLMs}, true
		}
	}
	if h.IndexNow != nil {
		key := keyOf(rest)
		return wanted{key: key}, key != ""
	}
	return wanted{}, false
}

// name returns the name of the document that a path names, behind the path of the sitemap without its extension. ok is false if
// it names none.
func (s *settings) name(path, stem string) (name string, ok bool) {
	name, isBeside := strings.CutPrefix(path, stem)
	return name, isBeside && s.names.MatchString(name)
}

// wants returns the document that a request is for, and the prefix of its site. The path counts as the client sent it,
// or without the prefix under which the handler is mounted. A path that was rewritten otherwise counts only if the
// handler is mounted without a prefix, too: a visitor could choose it.
func (h *Handler) wants(r *http.Request) (want wanted, prefix string, ok bool) {
	sent := sentPath(r)
	want, ok = h.match(sent)
	if ok || sent == r.URL.Path {
		return want, "", ok
	}
	var mounts mounts
	if wait.IsDone(h.app.started) {
		mounts = h.mounts
	}
	// Path matchers clean the path, too.
	sent = path.Clean(sent)
	for _, mount := range mounts {
		rest, isBelow := mount.strip(sent)
		if !isBelow {
			continue
		}
		want, ok = h.match(rest)
		if ok {
			// Crawlers read no robots.txt but that of the whole host.
			return want, mount.prefix, !want.robots
		}
	}
	if !mounts.hasWhole() {
		return wanted{}, "", false
	}
	want, ok = h.match(r.URL.Path)
	return want, "", ok
}

// sentPath returns the path of a request as the client sent it, before rewrites.
func sentPath(r *http.Request) string {
	original, isRequest := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request)
	if isRequest && original.URL != nil {
		return original.URL.Path
	}
	return r.URL.Path
}

// serveDocument serves a document, or calls the next handler if the site has none of that name.
func (h *Handler) serveDocument(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, want wanted, prefix string) error {
	s, err := h.app.siteOf(h, r, prefix)
	if err != nil {
		return unavailable(w, err)
	}
	snapshot, err := s.snapshot(r.Context())
	if err == nil {
		snapshot, err = s.lookUp(r.Context(), snapshot, want.name)
	}
	// Whether the site is an alias is known after the first refresh, for which a snapshot waits.
	if main := s.main.Load(); main != nil {
		to := main.origin + main.docPath(want.name)
		http.Redirect(w, r, to, http.StatusPermanentRedirect)
		return nil
	}
	if err != nil {
		return unavailable(w, err)
	}
	d, form := snapshot.FindForm(want.name)
	if d == nil || s.hasOwn(r.Context(), want.name) {
		return next.ServeHTTP(w, r)
	}
	if !onlyReads(r) {
		w.Header().Set("Allow", "GET, HEAD")
		return caddyhttp.Error(http.StatusMethodNotAllowed, nil)
	}
	writeDocument(w, r, d, form, s.fresh())
	return nil
}

// onlyReads reports whether a request changes nothing by its method.
func onlyReads(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead
}

// ownFile is what is known of a document of the site's own at the path of one of ours.
type ownFile struct {
	exists  atomic.Bool
	askedAt atomic.Int64 // when it was last requested, in Unix nanoseconds; 0: never
}

// isDue reports whether it is to be requested now: for one visitor in ten minutes.
func (f *ownFile) isDue(now time.Time) bool {
	last := f.askedAt.Load()
	isRecent := now.Sub(time.Unix(0, last)).Abs() < ownInterval
	return !isRecent && f.askedAt.CompareAndSwap(last, now.UnixNano())
}

// hasOwn reports whether the site has a document of its own, and ours gives way: a stylesheet, as ours is on by default, and an
// llms.txt, as whoever wrote one knows more of the site.
func (s *site) hasOwn(ctx context.Context, name string) bool {
	own := &s.ownStylesheet
	switch name {
	case document.Stylesheet:
	case document.LLMs:
		own = &s.ownLLMs
	default:
		return false
	}
	if !own.isDue(s.app.now()) {
		return own.exists.Load()
	}
	exists, err := s.fetcher.hasOwn(ctx, name)
	if err != nil {
		return own.exists.Load() // what was known stays
	}
	own.exists.Store(exists)
	if name == document.LLMs {
		s.logger.OnceIf(exists, zap.WarnLevel, "llms", "the site has an llms.txt of its own, which is served: remove it, or llms")
	}
	return exists
}

// hasOwn requests a document of the site's own. An application may return a page for any path, and what a build of this module
// has written is older than what is served. The error is of a response that says nothing.
func (f *siteFetcher) hasOwn(ctx context.Context, name string) (bool, error) {
	path := f.internalDocPath(name)
	if name == document.LLMs {
		path = f.internalPath(f.docPath(name))
	}
	request := dataRequest(path, document.MaxBeginning)
	request.Patience = visitorPatience
	// It waits for no turn, as a visitor waits for it.
	res, err := f.fetch(ctx, request, nil)
	if err != nil {
		return false, err
	}
	if !page.IsConclusive(res.Status) {
		return false, fmt.Errorf("status %d", res.Status)
	}
	contentType := res.Header.Get("Content-Type")
	isOwn := strings.HasPrefix(contentType, "text/css")
	if name == document.LLMs {
		isText := strings.HasPrefix(contentType, "text/") && !html.IsHTML(contentType)
		isOwn = isText && !bytes.Contains(res.Body, []byte(document.Mark))
	}
	return res.Status == http.StatusOK && isOwn, nil
}

// unavailable writes the response, or returns Caddy's error, for a site that cannot be served now or
// a request without a valid host.
func unavailable(w http.ResponseWriter, err error) error {
	if errors.Is(err, errNoHost) {
		return caddyhttp.Error(http.StatusBadRequest, err)
	}
	w.Header().Set("Retry-After", "10")
	// Caddy would log an error for each request, of which visitors can make any number.
	if errors.Is(err, errTooManySites) || errors.Is(err, errUnread) {
		w.WriteHeader(http.StatusServiceUnavailable)
		return nil
	}
	return caddyhttp.Error(http.StatusServiceUnavailable, err)
}
