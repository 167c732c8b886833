package sitemap

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/publish"
	"github.com/seed3295b519/caddy-sitemap/internal/robotstxt"
)

// maxIdleRefreshes is how many refreshes in a row may fetch nothing although pages are due,
// before a build ends without them.
const maxIdleRefreshes = 2

// building counts the progress of a build without a server. Its methods do nothing on nil,
// where there is a server.
type building struct {
	fetched        atomic.Int64 // responses
	pages, pending atomic.Int64 // as of crawled
	doing          atomic.Pointer[string]
}

func newBuilding() *building {
	b := new(building)
	b.now("probing")
	return b
}

// now says what the build is doing.
func (b *building) now(doing string) { b.doing.Store(&doing) }

// response counts a fetch.
func (b *building) response() {
	if b != nil {
		b.fetched.Add(1)
	}
}

// crawled notes how far a site's crawl is: how many pages are known, and how many of them
// are still to be fetched.
func (b *building) crawled(pages, pending int) {
	if b != nil {
		b.pages.Store(int64(pages))
		b.pending.Store(int64(pending))
	}
}

// appOf is the sitemap app of a configuration that is provisioned and not started.
func appOf(ctx caddy.Context) (*App, error) {
	app, err := ctx.App("sitemap")
	if err != nil {
		return nil, err
	}
	return app.(*App), nil
}

var errNoSitemapHandler = errors.New("the configuration has no sitemap handler")

// buildSites finds the sites to build, in place of Start; aliases are left out. The error
// says why there is none, or that one could not be probed.
func buildSites(ctx context.Context, a *App, b *building) ([]*site, error) {
	if len(a.handlers) == 0 {
		return nil, errNoSitemapHandler
	}
	cores := max(runtime.GOMAXPROCS(0), 1) // no visitors wait
	a.building, a.events = b, nil
	a.slots, a.compute = crawl.NewSlots(cores), crawl.NewSlots(cores)
	a.locateHandlers()
	a.storage = openStorage(stateFolder(a.State, a.logger))
	named := a.namedSites(math.MaxInt)
	close(a.started)
	if len(named) == 0 {
		return nil, errors.New("no matcher of the configuration names a host: give the site's URL with --base-url")
	}
	for _, s := range named {
		probed, err := s.fetcher.probe(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.url(), err)
		}
		s.probed.Store(&probed)
		s.firstProbe.Do(func() { close(s.wasProbed) })
	}
	a.settleAliases()
	var sites []*site
	for _, s := range named {
		if s.main.Load() == nil {
			sites = append(sites, s)
		}
	}
	return sites, ctx.Err()
}

// build refreshes a site until every page was fetched that is to be. The error is ctx's, or
// says why not all pages are known.
func (b *builtSite) build(ctx context.Context) (result, error) {
	if b.handler.settings.crawl.off {
		b.app.building.now("listing")
	} else {
		b.app.building.now("crawling")
	}
	for idle := 0; ; {
		begun := b.app.now()
		out := b.refresh(ctx, true)
		if err := ctx.Err(); err != nil {
			return out, err
		}
		if err := out.failure(); err != nil {
			return out, err
		}
		crawled := &out.crawled
		if idle++; crawled.Fetched > 0 {
			idle = 0
		}
		if crawled.Generation == nil || crawled.Gathered && crawled.Done || idle >= maxIdleRefreshes {
			b.report(out, begun, b.app.now().Sub(begun))
			return out, nil
		}
	}
}

// failure is why a refresh cannot have seen all pages; nil: it has.
func (r *result) failure() error {
	if r.err != nil {
		return r.err
	}
	var failed []error
	for _, f := range r.merged.Failed {
		failed = append(failed, fmt.Errorf("%s: %w", f.Name, f.Err))
	}
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("gathering pages: %w", err)
	}
	return nil
}

// emptyReason says why a site has no sitemap.
func (b *builtSite) emptyReason() string {
	probed := b.probed.Load()
	switch {
	case probed.refused != 0:
		return fmt.Sprintf("the site refuses anonymous visitors with status %d", probed.refused)
	case probed.shadowed:
		return "another sitemap handler before this one has the same path"
	case !probed.reached:
		return fmt.Sprintf("requests for %s do not reach its handler: status %d", b.internal.prefix+b.handler.settings.path, probed.status)
	case probed.robots.closed:
		return "robots.txt cannot be fetched, so no page may be"
	case probed.root == "" && b.handler.wantsRoot:
		return probed.noRoot
	}
	return "no page to list"
}

// builtRobots is a robots.txt to be written.
type builtRobots struct {
	was     []byte // what the site has; nil: nothing
	content []byte // nil: none is written
	note    string // why not
}

// robotsNaming makes the robots.txt that names the sitemap of a site's own one.
func (b *builtSite) robotsNaming(ctx context.Context) (r builtRobots) {
	sitemap := b.sitemapURL()
	line := "Sitemap: " + sitemap
	if b.prefix != "" {
		r.note = fmt.Sprintf("crawlers only read the robots.txt of the host: add this line to %s%s: %s", b.origin, robotsPath, line)
		return r
	}
	res, err := b.fetcher.fetch(ctx, robotsPath, robotstxt.MaxBody, nil)
	switch {
	case err != nil:
		r.note = fmt.Sprintf("robots.txt could not be read (%v): add this line to it: %s", err, line)
		return r
	case res.unhandled:
		res.Status = http.StatusNotFound
	case res.Truncated, res.Status != http.StatusOK && !isGone(res.Status):
		r.note = fmt.Sprintf("robots.txt returns status %d, or is too long: add this line to it: %s", res.Status, line)
		return r
	}
	merged, made, ok := namingSitemap(res.Status, res.Header.Get("Content-Type"), res.Body, sitemap)
	if !ok {
		r.note = "robots.txt is not text: add this line to it: " + line
		return r
	}
	r.content = merged
	if !made || res.Status == http.StatusOK && len(res.Body) == 0 {
		r.was = append([]byte{}, res.Body...)
	}
	return r
}

// fileName is the name of a document in the folder that a static host serves as the site's.
func (i *identity) fileName(suffix string, form publish.Form) string {
	return page.Unescape(strings.TrimPrefix(strings.TrimPrefix(i.docPath(suffix, form.Extension()), i.prefix), "/"))
}
