package sitemap

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed3295b519/caddy-sitemap/internal/option"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
	"github.com/seed3295b519/caddy-sitemap/internal/visits"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// SourceLinks contributes the pages that other pages of the site link to, from the front page on. An
// application behind a proxy needs no other source. Links with `rel=nofollow` do not count.
//
//	sitemap {
//		links {
//			depth 5
//			query page
//		}
//	}
//
// In JSON:
//
//	{"handler": "sitemap", "sources": [
//		{"source": "links", "depth": 5, "query": ["page"]}
//	]}
type SourceLinks struct {
	// How many links away from the front page, or from a page that another source names, a page may
	// be, 1 to 250. Pages beyond that are not requested, but counted as "beyond depth". Default: 100.
	Depth int `json:"depth,omitempty"`

	Discovery
}

// CaddyModule returns the Caddy module information.
func (SourceLinks) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.sitemap.sources.links", New: func() caddy.Module { return new(SourceLinks) }}
}

func (s *SourceLinks) addTo(all *discovery) error {
	c := option.Checker{Err: s.Discovery.addTo(all)}
	all.depth = c.InRange("depth", s.Depth, 100, 250) // a record counts to 255
	c.Refuse(len(s.Unlinked) > 0, "unlinked does not belong here: write it into access_log or traffic, which know of visits")
	return c.Err
}

// pages yields nothing: the crawl follows the links of the pages that it fetches.
func (*SourceLinks) pages(context.Context, *Refresh, func(page.Page) error) error { return nil }

// SourceTraffic contributes the pages that visitors request through the sitemap handler. A page is
// listed once a listed page links to it, or if it matches a pattern of `unlinked`.
//
//	sitemap {
//		traffic {
//			unlinked /offers/*
//		}
//	}
//
// In JSON:
//
//	{"handler": "sitemap", "sources": [
//		{"source": "traffic", "unlinked": ["/offers/*"]}
//	]}
type SourceTraffic struct {
	Discovery
}

// CaddyModule returns the Caddy module information.
func (SourceTraffic) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.sitemap.sources.traffic", New: func() caddy.Module { return new(SourceTraffic) }}
}

// Discovery has the settings that the sources links, access_log and traffic share. If a handler has
// several of them, lists are joined, and the largest numbers and durations count.
type Discovery struct {
	// The query parameters that tell pages apart, at most 20, in the order in which they are listed. All others are
	// dropped. Tracking parameters, such as `utm_source`, cannot be named. Default: none.
	Query []string `json:"query,omitempty"`

	// Path patterns of pages that need a visit to be listed, but no link. Not for the source `links`. Default: none.
	Unlinked []string `json:"unlinked,omitempty"`

	// How long a page is remembered after its last visit or link, at least `1h`. Default: `90d`.
	Expire caddy.Duration `json:"expire,omitempty"`

	// The maximum number of paths that are remembered, 1 to 10000000. New ones replace visited paths that were
	// seen earlier, or pages of the largest folder that were not requested yet. Else they are dropped, and counted.
	// Default: 1000000.
	MaxPaths int `json:"max_paths,omitempty"`
}

// discovery has the settings of all sources of a handler that discover pages.
type discovery struct {
	visitors bool // there is an access_log or traffic source
	depth    int  // of the links source; 0: there is none
	query    []string
	unlinked pathPatterns
	expire   time.Duration
	maxPaths int

	urls *origin.Cleaner
}

// discoverer is a source that discovers pages.
type discoverer interface {
	input

	// addTo checks the settings, and adds them to those of other sources.
	addTo(all *discovery) error
}

func (d *Discovery) addTo(all *discovery) error {
	var c option.Checker
	c.Refuse(len(d.Query) > 20, "query names %d parameters: use at most 20", len(d.Query))
	for _, key := range d.Query {
		isName := key != "" && key != "*" && !strings.ContainsAny(key, "?=&,{")
		c.Refuse(!isName, "query '%s': use names of parameters, such as page lang", key)
		c.Refuse(origin.IsTracking(key), "query '%s': it is a tracking parameter, which does not tell pages apart", key)
		if !slices.Contains(all.query, key) {
			all.query = append(all.query, key)
		}
	}
	expire := cmp.Or(time.Duration(d.Expire), 90*24*time.Hour)
	c.Refuse(expire < time.Hour, "expire is %s: the shortest is %s", expire, time.Hour)
	all.expire = max(all.expire, expire)
	all.unlinked = append(all.unlinked, compilePatterns(&c, "unlinked", d.Unlinked)...)
	all.maxPaths = max(all.maxPaths, c.InRange("max_paths", d.MaxPaths, 1_000_000, 10_000_000))
	return c.Err
}

// joinDiscoveries checks the settings of those sources that discover pages, and joins them; nil: none does. With crawl off,
// such a source is an error.
func joinDiscoveries(sources []input, crawlOff bool) (*discovery, error) {
	var all *discovery
	for _, source := range sources {
		d, ok := source.(discoverer)
		if !ok {
			continue
		}
		all = cmp.Or(all, new(discovery))
		_, isLinks := source.(*SourceLinks)
		all.visitors = all.visitors || !isLinks
		name := caddy.GetModuleName(source)
		if err := d.addTo(all); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if crawlOff {
			return nil, fmt.Errorf("%s lists only pages that were fetched, and crawl is off", name)
		}
	}
	if all != nil {
		all.urls = origin.NewCleaner(all.query)
	}
	return all, nil
}

// pages yields the pages that visitors have requested, sorted by path.
func (*Discovery) pages(_ context.Context, r *Refresh, yield func(page.Page) error) error {
	s := r.site
	d := s.handler.discovery
	for _, path := range s.state.visited.Sorted(r.Now.Add(-d.expire).Unix()) {
		if err := yield(page.Page{Path: path, Visited: true}); err != nil {
			return err
		}
	}
	return nil
}

func (*Discovery) sorted() bool { return true }

// most returns the most paths that are remembered of links, and of visitors, for a site, which may be on demand.
func (d *discovery) most(onDemand bool) int {
	if onDemand {
		return min(d.maxPaths, 500)
	}
	return d.maxPaths
}

// Note implements [visits.Site].
func (s *site) Note(path string, at int64, isSignal bool) {
	s = cmp.Or(s.main.Load(), s)
	d := s.handler.discovery
	switch {
	case d == nil || !strings.HasPrefix(path, s.scope):
	case isSignal:
		s.signal(path)
	default:
		s.state.visited.Add(path, at, d.most(s.onDemand))
	}
}

// signal has a page fetched if it is listed, as anybody would fetch it: what a visitor got is not believed.
func (s *site) signal(path string) {
	s.crawler.Signal(path, record.ByVisitor)
	if s.node != nil {
		s.state.fleet.signals.Add(path, s.app.now().Unix(), maxSignals)
	}
}

// serveRecording calls the next handler, and records the visit by its response.
func (h *Handler) serveRecording(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	_, own := probeOf(r)
	if own {
		return next.ServeHTTP(w, r)
	}
	recorder := caddyhttp.NewResponseRecorder(w, nil, nil)
	err := next.ServeHTTP(recorder, r)
	status := recorder.Status()
	switch {
	case err != nil && status != 0:
		// A response that broke off shows neither a page nor that one is gone.
		return err
	case err != nil:
		// A file server says by an error that it does not find a page.
		status = statusOf(err)
	}
	if s := h.siteFor(r); s != nil {
		s.record(r, status, recorder.Header())
	}
	return err
}

// records reports whether visits are recorded that read, or else those that may write.
func (h *Handler) records(r *http.Request) bool {
	if onlyReads(r) {
		return h.recordsVisits
	}
	isSignedIn := len(r.Header["Cookie"]) > 0 || len(r.Header["Authorization"]) > 0
	return isSignedIn && h.settings.crawl.looks()
}

// record records a visit by the status and header of its response.
func (s *site) record(r *http.Request, status int, header http.Header) {
	original := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request) // before rewrites
	visit := visits.Visit{
		Method:      cmp.Or(r.Header.Get("X-Http-Method-Override"), r.Method),
		URI:         original.RequestURI,
		User:        len(r.Header["Authorization"]) > 0,
		Cookie:      len(r.Header["Cookie"]) > 0,
		Status:      status,
		ContentType: header.Get("Content-Type"),
		Location:    header.Get("Location"),
	}
	now := s.app.now()
	if visit.Writes() {
		s.Write(&visit, now)
	}
	if !onlyReads(r) {
		return
	}
	repl := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	user, _ := repl.GetString("http.auth.user.id") // by a handler that knows
	visit.User = visit.User || user != ""
	visit.UserAgent = cmp.Or(r.UserAgent(), "-") // "-" says that there is none
	visit.RobotsTag = strings.Join(header["X-Robots-Tag"], ", ")
	path, result := visit.Judge(s.handler.discovery.urls)
	if path != "" {
		s.Note(path, now.Unix(), result != visits.Counts)
	}
}

// siteFor returns the site that a request is for; nil: there is none, and a Host header alone must not make one.
func (h *Handler) siteFor(r *http.Request) *site {
	if !wait.IsDone(h.app.started) {
		return nil // the mounts are not known yet
	}
	original := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request)
	id, err := h.idOf(r, h.mounts.prefixOf(original.URL.Path))
	if err != nil {
		return nil
	}
	return h.app.lookup(id)
}
