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
)

// maxVisits is how many visits may wait to be looked at. A request does not wait for that:
// what is too many is dropped.
const maxVisits = 8192

// visit is what a request to a site showed.
type visit struct {
	site *site
	accesslog.Visit
}

// watch passes a request on and notes the response.
func (h *Handler) watch(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if _, own := probeOf(r); own || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return next.ServeHTTP(w, r)
	}
	watched := recordStatus(w)
	err := next.ServeHTTP(watched, r)
	if err == nil && (watched.status == http.StatusOK || watched.status == http.StatusNotModified) {
		h.noteVisit(watched, r)
	}
	return err
}

// noteVisit hands a visit over to who looks at it.
func (h *Handler) noteVisit(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	contentType := get(header, "Content-Type")
	if contentType != "" && !mayBeHTML(contentType) {
		return // most requests are for what pages need
	}
	if !isDone(h.app.started) {
		return
	}
	ctx := r.Context()
	uri, path := r.RequestURI, r.URL.Path
	if original, ok := ctx.Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok && original.URL != nil {
		uri, path = original.RequestURI, original.URL.Path
	}
	s := h.knownSite(r, h.mounts.prefixOf(path))
	if s == nil {
		return
	}
	v := visit{site: s, Visit: accesslog.Visit{
		Time:        h.app.now().Unix(),
		Method:      r.Method,
		URI:         uri,
		Status:      http.StatusOK,
		UserAgent:   cmp.Or(get(r.Header, "User-Agent"), "-"), // it is known that there is none
		ContentType: contentType,
		RobotsTag:   strings.Join(header["X-Robots-Tag"], ", "),
		User:        len(r.Header["Authorization"]) > 0 || isSignedIn(ctx),
	}}
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

// knownSite returns the site that a request is for; nil: there is none yet, as a visitor's
// Host header alone starts nothing.
func (h *Handler) knownSite(r *http.Request, prefix string) *site {
	direct := !isForwarded(r)
	if last := h.lastSite.Load(); last != nil && direct && last.host == r.Host && last.site.id.prefix == prefix {
		return last.site
	}
	id, err := h.idOf(r, prefix)
	if err != nil {
		return nil
	}
	s := h.app.lookup(id)
	if s != nil && direct && !s.onDemand && s.id.prefix == prefix {
		h.lastSite.Store(&lastSite{r.Host, s})
	}
	return s
}

// visitsPause is how long visits are left to gather: a request that finds nobody waiting
// for its visit need not wake anybody.
const visitsPause = 10 * time.Millisecond

// run takes the visits that requests showed, until ctx ends.
func (t *visitTaker) run(ctx context.Context) {
	minute := time.NewTicker(time.Minute)
	defer minute.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	<-pause.C
	for {
		select {
		case v := <-t.app.visits:
			t.take(&v)
			t.drain()
			pause.Reset(visitsPause)
			select {
			case <-pause.C:
			case <-ctx.Done():
			}
		case <-minute.C:
			t.logDropped()
		case <-ctx.Done():
			t.drain()
			return
		}
	}
}

// visitTaker decides which visits count.
type visitTaker struct {
	app     *App
	filter  accesslog.Filter
	dropped uint64 // that was logged
}

func (t *visitTaker) take(v *visit) {
	d := v.site.handler.discovery
	reason := t.filter.Reason(&v.Visit)
	d.visits.add(reason, 1)
	if reason != accesslog.Counts {
		return
	}
	if path, ok := d.cleaner.Clean(v.URI); ok {
		v.site.visit(path, v.Time)
	}
}

// drain takes the visits that wait.
func (t *visitTaker) drain() {
	for {
		select {
		case v := <-t.app.visits:
			t.take(&v)
		default:
			return
		}
	}
}

func (t *visitTaker) logDropped() {
	dropped := t.app.droppedVisits.Load()
	if dropped == t.dropped {
		return
	}
	t.app.logger.Warn("visits came faster than they could be looked at, and were dropped", zap.Uint64("visits", dropped-t.dropped))
	t.dropped = dropped
}

// statusRecorder notes the status of a response. It supports what the writer that it wraps
// does.
type statusRecorder struct {
	caddyhttp.ResponseWriterWrapper
	status int // 0: not written yet
}

func recordStatus(w http.ResponseWriter) *statusRecorder {
	return &statusRecorder{ResponseWriterWrapper: caddyhttp.ResponseWriterWrapper{ResponseWriter: w}}
}

func (w *statusRecorder) WriteHeader(status int) {
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusRecorder) Write(p []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(p)
}

// ReadFrom implements io.ReaderFrom.
func (w *statusRecorder) ReadFrom(r io.Reader) (int64, error) {
	w.begin()
	return w.ResponseWriterWrapper.ReadFrom(r)
}

// Flush implements http.Flusher.
func (w *statusRecorder) Flush() { _ = w.FlushError() }

// FlushError flushes as http.ResponseController asks for.
func (w *statusRecorder) FlushError() error {
	w.begin()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Hijack implements http.Hijacker, for handlers that do not ask an
// http.ResponseController for it.
func (w *statusRecorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

func (w *statusRecorder) begin() {
	if w.status == 0 {
		w.status = http.StatusOK
	}
}

// Interface guards
var (
	_ http.ResponseWriter = (*statusRecorder)(nil)
	_ http.Flusher        = (*statusRecorder)(nil)
	_ http.Hijacker       = (*statusRecorder)(nil)
	_ http.Pusher         = (*statusRecorder)(nil)
	_ io.ReaderFrom       = (*statusRecorder)(nil)
)
