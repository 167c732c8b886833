package sitemap

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

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
	for _, path := range s.state.visited.sorted(r.Now.Add(-d.expire).Unix()) {
		if err := yield(Page{Path: path, Visited: true}); err != nil {
			return err
		}
	}
	if _, dropped := s.state.visited.count(); dropped > 0 {
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
	s.state.visited.add(path, at, d.most(s.onDemand))
	return true
}

// visit returns the page that a visit shows, or why it does not count.
func (d *discovery) visit(v *accesslog.Visit) (path, reason string) {
	reason = v.Reason()
	d.visits.add(reason, 1)
	if reason != "" {
		return "", reason
	}
	path, ok := d.cleaner.Clean(v.URI)
	if !ok {
		return "", lineOddPath
	}
	return path, ""
}

// visitCounts counts visits by why they do not count, for `status`. It is safe for
// concurrent use.
type visitCounts struct {
	mu       sync.Mutex
	byReason map[string]int
}

// enoughVisits is how many visits to pages there are before it is said that few count.
const enoughVisits = 100

func (c *visitCounts) add(reason string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byReason == nil {
		c.byReason = make(map[string]int)
	}
	c.byReason[reason] += n
}

// ignored returns how many visits to pages did not count, by reason, where those are nine
// tenths or more of all; nil: they are fewer.
func (c *visitCounts) ignored() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	ignored, all := make(map[string]int), c.byReason[""]
	for _, reason := range []string{accesslog.SignedIn, accesslog.NoIndex, accesslog.Robot} {
		if n := c.byReason[reason]; n > 0 {
			ignored[reason] = n
			all += n
		}
	}
	if all < enoughVisits || 10*c.byReason[""] > all {
		return nil
	}
	return ignored
}

// visited are the paths that visitors have had, with the Unix second of the last visit. It
// is safe for concurrent use.
type visited struct {
	mu      sync.Mutex
	paths   map[string]int64
	dropped int
}

// add notes a visit. Where there is no room, the oldest of a few paths is forgotten.
func (v *visited) add(path string, at int64, most int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.paths == nil {
		v.paths = make(map[string]int64)
	}
	last, known := v.paths[path]
	if !known && len(v.paths) >= most {
		v.dropped++
		oldest, before, n := "", at, 0
		for other, last := range v.paths { // in no order
			if last < before {
				oldest, before = other, last
			}
			if n++; n == 8 {
				break
			}
		}
		if oldest == "" {
			return
		}
		delete(v.paths, oldest)
	}
	if !known {
		path = strings.Clone(path)
	}
	v.paths[path] = max(last, at)
}

// sorted are the paths in order, without those of a last visit before since, which are
// forgotten.
func (v *visited) sorted(since int64) []string {
	v.mu.Lock()
	all := make([]string, 0, len(v.paths))
	for path, at := range v.paths {
		if at < since {
			delete(v.paths, path)
			continue
		}
		all = append(all, path)
	}
	v.mu.Unlock() // sorting takes its time, and visits wait
	slices.Sort(all)
	return all
}

// at is when visitors had a path last, in Unix seconds; 0: never.
func (v *visited) at(path string) int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.paths[path]
}

func (v *visited) count() (paths, dropped int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.paths), v.dropped
}
