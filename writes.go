package sitemap

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/schedule"
)

var unsafeMethods = []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// mayWrite reports whether somebody who is signed in may save something by a request.
func (h *Handler) mayWrite(r *http.Request) bool {
	if onlyReads(r) || !h.settings.crawl.looks() {
		return false
	}
	isSignedIn := len(r.Header["Cookie"]) > 0 || len(r.Header["Authorization"]) > 0
	return isSignedIn && slices.Contains(unsafeMethods, writeMethod(r))
}

// writeMethod returns the method of a request as an application takes it.
func writeMethod(r *http.Request) string {
	return cmp.Or(r.Header.Get("X-Http-Method-Override"), r.Method)
}

// serveWrite calls the next handler, and notes that the request may have saved something.
func (h *Handler) serveWrite(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	recorder := caddyhttp.NewResponseRecorder(w, nil, nil)
	err := next.ServeHTTP(recorder, r)
	if err != nil || recorder.Status() >= http.StatusBadRequest {
		return err
	}
	if s := h.siteFor(r); s != nil {
		sent := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request)
		s.noteWrite(crawl.Write{
			Method:      writeMethod(r),
			Path:        sent.URL.Path,
			Status:      recorder.Status(),
			ContentType: recorder.Header().Get("Content-Type"),
		}, sent.RequestURI, recorder.Header().Get("Location"))
	}
	return nil
}

// noteWrite has the site looked at soon because of a write, which names some URLs.
func (s *site) noteWrite(w crawl.Write, urls ...string) {
	s = cmp.Or(s.main.Load(), s)
	// Anybody can make up hosts, and cookies for them.
	isMadeUp := s.rank() == schedule.Fresh
	if !isMadeUp && s.state.writes.Note(w, s.app.now(), urls...) {
		s.replan()
		s.schedule.Notify()
	}
}

// beginLook begins to look at what writes may have changed, if it is time, and first at the pages that they name.
func (s *site) beginLook() {
	look := s.state.writes.Begin(s.begun)
	if look == nil {
		return
	}
	for i, url := range look.Paths {
		path, isHere := html.PathOn(s.origin, resolveLocation(s.origin, url))
		if d := s.handler.discovery; isHere && d != nil {
			path, _ = d.urls.Clean(path)
		}
		look.Paths[i] = path
	}
	s.look = look
}
