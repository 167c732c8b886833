package sitemap

import (
	"context"
	"net/http"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
)

// frontPage is a response that the crawl need not request again.
type frontPage struct {
	path     string          // of its URL: the front page, or one to which that redirects
	response *crawl.Response // nil: there was none
}

// entrance is the page to which a site's front page redirects. Each probe requests that page, too, as it has the links. It never
// changes.
type entrance struct {
	path  string // of the page's URL; "": the front page does not redirect, or to no page that may be fetched
	first string // path to which the front page redirects, which may redirect in turn
}

// fetchFront requests the front page. Without a response that says something of it, front is nil, and the status that of a gateway.
func (f *siteFetcher) fetchFront(ctx context.Context) (front *crawl.Response, status int) {
	front, err := f.fetchWhole(ctx, f.id.prefix+"/")
	if err != nil || front.Status == http.StatusTooManyRequests {
		return nil, http.StatusGatewayTimeout
	}
	return front, front.Status
}

// isPaused reports whether nothing but the front page is requested now. Hosts that visitors named have limits of their own.
func (f *siteFetcher) isPaused() bool {
	return f.handler.limiter.Paused() != nil && !f.onDemand
}

// fetchWhole requests a page at an internal path as the crawl does.
func (f *siteFetcher) fetchWhole(ctx context.Context, path string) (*crawl.Response, error) {
	whole := crawl.Request{Path: path, Limit: html.MaxBody, Wants: crawl.WantsBody}
	if f.handler.settings.crawl.Off {
		whole.Limit = peekBody // only its head matters
	}
	return f.get(ctx, whole, nil)
}

// fetchEntrance requests the page to which the front page redirects, if the probe before has seen so, too: else the crawl is to
// see the redirect. front is the front page's response.
func (f *siteFetcher) fetchEntrance(
	ctx context.Context, front *crawl.Response, before entrance, robots *robotsRules,
) (entrance, frontPage) {
	own := frontPage{path: f.scope, response: front}
	first := f.entranceAfter(f.scope, front, robots)
	if first == "" {
		return entrance{}, own
	}
	at := entrance{path: first, first: first}
	if before.first != first {
		return at, own
	}
	next, entered := f.enter(ctx, at, robots)
	// The first redirect leads to a second one, as before: where / redirects to /latest, and that to the current issue, a request
	// for /latest alone would not show what the issue links to.
	if at.path != before.path && next.path == before.path {
		next, entered = f.enter(ctx, next, robots)
	}
	return next, entered
}

// enter requests the page of an entrance. It returns the entrance for the next probe, too: where that page redirects in
// turn, the one to which it leads; none where it is no page any more, so that the front page is to tell.
func (f *siteFetcher) enter(ctx context.Context, at entrance, robots *robotsRules) (entrance, frontPage) {
	page, err := f.fetchWhole(ctx, f.internalPath(at.path))
	if err != nil {
		return entrance{}, frontPage{}
	}
	entered := frontPage{path: at.path, response: page}
	if page.Status == http.StatusOK {
		return at, entered
	}
	at.path = f.entranceAfter(at.path, page, robots)
	if at.path == "" {
		at = entrance{}
	}
	return at, entered
}

// entranceAfter returns the path of the page to which a response redirects; "": it does not, or the crawl would not fetch it for
// that.
func (f *siteFetcher) entranceAfter(from string, res *crawl.Response, robots *robotsRules) string {
	if res == nil || res.Status/100 != 3 {
		return ""
	}
	isFetched := f.isFrontInScope() && !f.handler.settings.crawl.Off && !robots.closed
	if !isFetched {
		return ""
	}
	path, ok := html.PathOn(f.origin, resolveLocation(f.origin+from, res.Header.Get("Location")))
	if !ok || path == f.scope || !strings.HasPrefix(path, f.scope) {
		return ""
	}
	// A link to a path with a query may lead to another one, by the parameters that count.
	clean, ok := origin.NewCleaner(nil).Clean(path)
	if !ok || clean != path || f.handler.settings.crawl.disallows(path) != "" || !robots.rules.Allows(path) {
		return ""
	}
	return path
}

// isFrontInScope reports whether the front page is that of the pages that may be listed. Else these are a part of the site.
func (i *identity) isFrontInScope() bool { return i.internalPath(i.scope) == i.id.prefix+"/" }
