package sitemap

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"golang.org/x/net/http/httpguts"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

const (
	robotsPath  = "/robots.txt"
	longestAge  = time.Hour
	retryAfter  = "10"
	contentXML  = "application/xml; charset=utf-8"
	contentGzip = "application/gzip"
	contentText = "text/plain; charset=utf-8"
)

// ServeHTTP serves the documents of the site that the request is for, and its
// robots.txt with the Sitemap line. Everything else goes to the next handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	path := r.URL.Path
	wanted, ok := h.match(path)
	folder, rewrittenFrom := "", ""
	if original, isRequest := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); isRequest && original.URL != nil && original.URL.Path != path {
		if ok {
			rewrittenFrom = original.URL.Path
		} else {
			// A rewrite may have led the request elsewhere.
			wanted, folder, ok = h.matchOriginal(original.URL.Path)
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
	if err := h.app.awaitStart(r.Context()); err != nil {
		return unavailable(w, err)
	}
	if rewrittenFrom != "" {
		folder, ok = h.stripped(rewrittenFrom, path)
		if !ok || wanted.robots && strings.HasSuffix(rewrittenFrom, path) {
			return next.ServeHTTP(w, r)
		}
	}
	if wanted.robots {
		return h.serveRobots(w, r, next, folder)
	}
	return h.serveDocument(w, r, next, wanted, folder)
}

// wanted is which of a site's documents a request is for.
type wanted struct {
	robots bool
	suffix string
	form   form
}

// match reports whether a path is that of a document.
func (h *Handler) match(path string) (wanted, bool) {
	if path == robotsPath {
		return wanted{robots: true}, h.settings.robots
	}
	suffix, form, ok := parseName(path, h.stem)
	if !ok && h.settings.folder != "" {
		// Nothing strips the folder of the base URL.
		if rest, found := strings.CutPrefix(path, h.baseFolder); found {
			suffix, form, ok = parseName(rest, h.stem)
		}
	}
	return wanted{suffix: suffix, form: form}, ok
}

// matchOriginal is match for the path as the client sent it, from which a folder
// may have been stripped since.
func (h *Handler) matchOriginal(original string) (wanted, string, bool) {
	if w, ok := h.match(original); ok {
		return w, "", true
	}
	if !h.app.isStarted() {
		return wanted{}, "", false
	}
	for _, seat := range h.seats {
		if rest, found := strings.CutPrefix(original, page.Unescape(seat.folder)); found && seat.folder != "" && rest != robotsPath {
			if w, ok := h.match(rest); ok {
				return w, seat.folder, true
			}
		}
	}
	return wanted{}, "", false
}

// stripped is the folder that was stripped of a path before it reached the handler:
// one of those in which the handler sits, however the client wrote it. Any other
// rewrite is of the visitor's choice, and names no folder; a false means that the
// handler does not sit outside of all folders, either.
func (h *Handler) stripped(original, path string) (string, bool) {
	prefix, found := strings.CutSuffix(original, path)
	folders := h.seats.folders()
	for _, folder := range folders {
		if found && strings.EqualFold(mergeSlashes(prefix), page.Unescape(folder)) {
			return folder, true
		}
	}
	return "", len(folders) == 0 || slices.Contains(folders, "")
}

// mergeSlashes is a folder as Caddy's path matcher sees it, without one at its end.
func mergeSlashes(folder string) string {
	for strings.Contains(folder, "//") {
		folder = strings.ReplaceAll(folder, "//", "/")
	}
	return strings.TrimSuffix(folder, "/")
}

// note leaves in a probe what the handler sees: the root and what serves it. An ask
// that is not for this handler sees the site as it is without it.
func (h *Handler) note(p *probe, w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, wanted wanted) error {
	if p == nil || p.robots != wanted.robots {
		return next.ServeHTTP(w, r)
	}
	if p.handler != h {
		p.shadowed = !p.robots
		return next.ServeHTTP(w, r)
	}
	p.reached = true
	if p.robots {
		return nil
	}
	p.rooted = h.rootVar(r) != ""
	// What follows may panic, as abort does.
	defer h.noteRoot(p, r)
	if !p.rooted && h.wantsRoot {
		// A root inside of handle { } is set behind this handler.
		return next.ServeHTTP(w, r)
	}
	return nil
}

// noteRoot leaves in a probe the root as it is now, and the file servers that follow.
func (h *Handler) noteRoot(p *probe, r *http.Request) {
	p.root = h.rootVar(r)
	repl := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	p.fs, _ = caddyhttp.GetVar(r.Context(), "fs").(string)
	host, _ := cleanHost(r.Host)
	for _, server := range h.seats.fileServers(host, p.folder) {
		p.servers = append(p.servers, server.resolved(repl))
	}
}

func (h *Handler) rootVar(r *http.Request) string {
	root, _ := caddyhttp.GetVar(r.Context(), "root").(string)
	return root
}

// fileSystem is the file system of a name; nil: the operating system's own.
func (h *Handler) fileSystem(name string) (fs.FS, error) {
	return fileSystem(h.ctx, name)
}

// fileSystem looks a file system up by name; nil: the operating system's own.
func fileSystem(ctx caddy.Context, name string) (fs.FS, error) {
	fsys, ok := ctx.FileSystems().Get(name)
	if !ok {
		return nil, fmt.Errorf("there is no file system '%s'", name)
	}
	var none caddy.Context
	if fsys == none.FileSystems().Default() {
		return nil, nil
	}
	return fsys, nil
}

// serveDocument answers a request for a document; where the site has none of that
// name, the next handler does.
func (h *Handler) serveDocument(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, want wanted, folder string) error {
	s, err := h.siteFor(r, folder)
	if err != nil {
		h.app.countRefusal(r, want, err)
		return unavailable(w, err)
	}
	// Once there is a snapshot, or will be none, it is known what stands for the site.
	snapshot, err := s.snapshot(r.Context())
	if main := s.main.Load(); main != nil {
		s.countRead(r, readDocumentOf(want, main.current()), readRedirected)
		http.Redirect(w, r, main.base+main.docPath(want.suffix, extensions[want.form]), http.StatusPermanentRedirect)
		return nil
	}
	document := readDocumentOf(want, snapshot)
	if err != nil {
		s.countRead(r, document, readUnavailable)
		return unavailable(w, err)
	}
	d := snapshot.find(want.suffix)
	if d == nil || want.form == formText && d.kind != kindURLSet {
		s.countRead(r, document, readMissing)
		return next.ServeHTTP(w, r)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		s.countRead(r, document, readRefused)
		w.Header().Set("Allow", "GET, HEAD")
		return caddyhttp.Error(http.StatusMethodNotAllowed, nil)
	}
	s.countRead(r, document, readResultOf(s.serve(w, r, d, want.form)))
	return nil
}

// siteFor is App.siteOf, which it spares most requests: those of the same named host.
func (h *Handler) siteFor(r *http.Request, folder string) (*site, error) {
	direct := !isForwarded(r)
	if last := h.lastSite.Load(); last != nil && direct && last.host == r.Host && last.site.id.folder == folder {
		return last.site, nil
	}
	s, err := h.app.siteOf(h, r, folder)
	if err == nil && direct && !s.visitors && s.id.folder == folder {
		h.lastSite.Store(&lastSite{r.Host, s})
	}
	return s, err
}

// lastSite is the named site that the last request was for, with its Host header.
type lastSite struct {
	host string
	site *site
}

// unavailable is the error for Caddy of a site that cannot be served now, or whose
// host is none.
func unavailable(w http.ResponseWriter, err error) error {
	if errors.Is(err, errNoHost) {
		return caddyhttp.Error(http.StatusBadRequest, err)
	}
	w.Header().Set("Retry-After", retryAfter)
	return caddyhttp.Error(http.StatusServiceUnavailable, err)
}

// serve writes a document in the form, and in the encoding that the client takes. It
// returns the status.
func (s *site) serve(w http.ResponseWriter, r *http.Request, d *document, f form) int {
	compressed := f == formGzip || f == formXML && acceptsGzip(r.Header)
	contentType, etag, encoding := d.describe(f, compressed)
	header := w.Header()
	var control, vary string
	if _, given := header["Cache-Control"]; !given {
		control = s.cacheControl()
	}
	if f == formXML {
		switch {
		case header["Vary"] == nil:
			vary = "Accept-Encoding"
		case !httpguts.HeaderValuesContainsToken(header["Vary"], "Accept-Encoding"):
			header["Vary"] = append(header["Vary"], "Accept-Encoding")
		}
	}
	// In the order in which they are sent: net/http sorts them.
	set(header,
		"Cache-Control", control,
		"Content-Encoding", encoding,
		"Content-Type", contentType,
		"Etag", etag,
		"Last-Modified", d.headers.lastModified,
		"Vary", vary,
		"X-Robots-Tag", "noindex")
	switch {
	case compressed:
		return serveGzip(w, r, d)
	case f == formText:
		return serveStream(w, r, d, d.textSize, openText)
	}
	return serveStream(w, r, d, d.size, openXML)
}

// describe says what a document is in a form, and compressed or not.
func (d *document) describe(f form, compressed bool) (contentType, etag, encoding string) {
	switch {
	case f == formGzip:
		return contentGzip, d.headers.etagFile, ""
	case f == formText:
		return contentText, d.headers.etagText, ""
	case compressed:
		return contentXML, d.headers.etagGzip, "gzip"
	}
	return contentXML, d.headers.etag, ""
}

// set sets headers, given as names in canonical form and values, with one allocation;
// those without a value are left out. The values are the response's own, since
// handlers around may change them in place.
func set(header http.Header, pairs ...string) {
	values := make([]string, len(pairs)/2)
	for i := range values {
		if value := pairs[2*i+1]; value != "" {
			values[i] = value
			header[pairs[2*i]] = values[i : i+1 : i+1]
		}
	}
}

// cacheControl lets a copy be used until the next refresh, an hour at most.
func (s *site) cacheControl() string {
	left := time.Duration(s.due.Load() - s.app.now().UnixNano())
	seconds := int(min(max(left, 0), longestAge) / time.Second)
	if last := s.maxAge.Load(); last != nil && last.seconds == seconds {
		return last.header
	}
	header := "max-age=" + strconv.Itoa(seconds)
	s.maxAge.Store(&maxAge{seconds, header})
	return header
}

// maxAge spares writing the same header for every request of a second.
type maxAge struct {
	seconds int
	header  string
}

// acceptsGzip reads Accept-Encoding as RFC 9110, section 12.5.3, has it.
func acceptsGzip(header http.Header) bool {
	star := false
	for _, line := range header["Accept-Encoding"] {
		for line != "" {
			var item string
			item, line, _ = strings.Cut(line, ",")
			coding, params, _ := strings.Cut(item, ";")
			switch coding = strings.TrimSpace(coding); {
			case strings.EqualFold(coding, "gzip"), strings.EqualFold(coding, "x-gzip"):
				return quality(params) > 0
			case coding == "*":
				star = quality(params) > 0
			}
		}
	}
	return star
}

// quality is the weight in parameters, 1 where there is none.
func quality(params string) float64 {
	for params != "" {
		var param string
		param, params, _ = strings.Cut(params, ";")
		key, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if strings.EqualFold(key, "q") {
			q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				return 0
			}
			return q
		}
	}
	return 1
}
