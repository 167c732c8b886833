package sitemap

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/accesslog"
	"github.com/seed3295b519/caddy-sitemap/internal/discover"
)

// maxVisits is how many visits may wait to be looked at. A request does not wait for
// that: what is too many is dropped.
const maxVisits = 8192

// visit is what a request showed, for a site.
type visit struct {
	site *site
	accesslog.Visit
}

// watch passes a request on and notes what is answered.
func (h *Handler) watch(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if _, asked := probeOf(r); asked || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return next.ServeHTTP(w, r)
	}
	watched := watch(w)
	err := next.ServeHTTP(watched, r)
	if err == nil && (watched.status == http.StatusOK || watched.status == http.StatusNotModified) {
		h.noteVisit(watched, r)
	}
	return err
}

// noteVisit puts a visit where it is looked at.
func (h *Handler) noteVisit(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	contentType := get(header, "Content-Type")
	if contentType != "" && !mayBeHTML(contentType) {
		return // most requests are for what pages need
	}
	if !h.app.isStarted() {
		return
	}
	ctx := r.Context()
	uri, path := r.RequestURI, r.URL.Path
	if original, ok := ctx.Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok && original.URL != nil {
		uri, path = original.RequestURI, original.URL.Path
	}
	s := h.seenSite(r, h.seats.folderOf(path))
	if s == nil {
		return
	}
	v := visit{site: s, Visit: accesslog.Visit{
		Time:         h.app.now().Unix(),
		Method:       r.Method,
		URI:          uri,
		Status:       http.StatusOK,
		UserAgent:    cmp.Or(get(r.Header, "User-Agent"), "-"), // it is known that there is none
		ContentType:  contentType,
		CacheControl: strings.Join(header["Cache-Control"], ", "),
		RobotsTag:    strings.Join(header["X-Robots-Tag"], ", "),
		ETag:         get(header, "Etag"),
		LastModified: get(header, "Last-Modified"),
		User:         len(r.Header["Authorization"]) > 0 || isSignedIn(ctx),
		Cookie:       len(r.Header["Cookie"]) > 0,
	}}
	v.Client, _ = caddyhttp.GetVar(ctx, caddyhttp.ClientIPVarKey).(string)
	select {
	case h.app.visits <- v:
	default:
		h.app.droppedVisits.Add(1)
	}
}

// get is http.Header.Get for a name in canonical form.
func get(header http.Header, name string) string {
	if values := header[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

func mayBeHTML(contentType string) bool {
	return strings.HasPrefix(contentType, "text/html") || strings.HasPrefix(contentType, "application/xhtml") ||
		strings.ContainsAny(contentType, "ABCDEFGHIJKLMNOPQRSTUVWXYZ \t") // for who looks at it more closely
}

// isSignedIn reports whether a handler has found out who the visitor is.
func isSignedIn(ctx context.Context) bool {
	repl, ok := ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if !ok {
		return false
	}
	id, _ := repl.GetString("http.auth.user.id")
	return id != ""
}

// seenSite is the site that a request is for, if it is known already: a visitor's Host
// header alone begins nothing.
func (h *Handler) seenSite(r *http.Request, folder string) *site {
	direct := !isForwarded(r)
	if last := h.lastSite.Load(); last != nil && direct && last.host == r.Host && last.site.id.folder == folder {
		return last.site
	}
	s := h.app.seenSite(h, r, folder)
	if s != nil && direct && !s.visitors && s.id.folder == folder {
		h.lastSite.Store(&lastSite{r.Host, s})
	}
	return s
}

// visitsRest is how long visits are left to gather: a request that finds nobody waiting
// for its visit need not wake anybody.
const visitsRest = 10 * time.Millisecond

// takeVisits takes the visits that requests showed.
func (a *App) takeVisits(ctx context.Context) {
	t := tally{app: a}
	minute := time.NewTicker(time.Minute)
	defer minute.Stop()
	rest := time.NewTimer(0)
	defer rest.Stop()
	<-rest.C
	for {
		select {
		case v := <-a.visits:
			t.take(ctx, &v)
			t.rest(ctx)
			rest.Reset(visitsRest)
			select {
			case <-rest.C:
			case <-ctx.Done():
			}
		case <-minute.C:
			t.say()
		case <-ctx.Done():
			t.rest(ctx)
			return
		}
	}
}

// tally decides which visits count.
type tally struct {
	app     *App
	filter  discover.Filter
	dropped uint64 // that was said
}

func (t *tally) take(ctx context.Context, v *visit) {
	if t.filter.Reason(&v.Visit) != 0 {
		return
	}
	cleaner := v.site.handler.discovery.cleaner()
	if path, ok := cleaner.Clean(v.URI); ok {
		v.site.visited(ctx, discover.FromTraffic, path, &v.Visit)
	}
}

// rest takes the visits that wait.
func (t *tally) rest(ctx context.Context) {
	for {
		select {
		case v := <-t.app.visits:
			t.take(ctx, &v)
		default:
			return
		}
	}
}

func (t *tally) say() {
	dropped := t.app.droppedVisits.Load()
	if dropped == t.dropped {
		return
	}
	t.app.logger.Warn("visits came faster than they could be looked at, and were dropped", zap.Uint64("visits", dropped-t.dropped))
	t.dropped = dropped
}

// watchedWriter notes the status that is answered. It can all that what it wraps can.
type watchedWriter struct {
	caddyhttp.ResponseWriterWrapper
	status int // 0: nothing is answered so far
}

func watch(w http.ResponseWriter) *watchedWriter {
	return &watchedWriter{ResponseWriterWrapper: caddyhttp.ResponseWriterWrapper{ResponseWriter: w}}
}

func (w *watchedWriter) WriteHeader(status int) {
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *watchedWriter) Write(p []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(p)
}

// ReadFrom implements io.ReaderFrom.
func (w *watchedWriter) ReadFrom(r io.Reader) (int64, error) {
	w.begin()
	return w.ResponseWriterWrapper.ReadFrom(r)
}

// Flush implements http.Flusher.
func (w *watchedWriter) Flush() { _ = w.FlushError() }

// FlushError flushes as http.ResponseController asks for.
func (w *watchedWriter) FlushError() error {
	w.begin()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Hijack implements http.Hijacker, for handlers that do not ask an
// http.ResponseController for it.
func (w *watchedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

func (w *watchedWriter) begin() {
	if w.status == 0 {
		w.status = http.StatusOK
	}
}

// Interface guards
var (
	_ http.ResponseWriter = (*watchedWriter)(nil)
	_ http.Flusher        = (*watchedWriter)(nil)
	_ http.Hijacker       = (*watchedWriter)(nil)
	_ http.Pusher         = (*watchedWriter)(nil)
	_ io.ReaderFrom       = (*watchedWriter)(nil)
)
