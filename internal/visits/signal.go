package visits

import (
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

const (
	// SignalFor is how old a line of a log may be for its visit to be a signal: what is older, the crawl has most often
	// seen itself since, and a log that is read from its beginning has years of it.
	SignalFor = 10 * 60 // seconds

	// ownAgent begins the User-Agent of this module's own requests, which another server may log.
	ownAgent = "caddy-sitemap "
)

// lookedAt remembers hashes of the URIs that visitors requested in vain, so that any number of them costs next to
// nothing, and those of what was never listed leave room for others: each is looked at once in ten minutes, unless
// another one has taken its place meanwhile. It is safe for concurrent use.
type lookedAt [1 << 13]atomic.Uint64

// note reports whether a URI of a host is noted for the first time in these ten minutes.
func (l *lookedAt) note(host, uri string, now int64) bool {
	const prime = 0x9E3779B185EBCA87 // else equal strings would cancel each other out
	hash := xxhash.Sum64String(uri) + prime*(xxhash.Sum64String(host)+prime*uint64(now/SignalFor))
	slot := &l[hash%uint64(len(l))]
	return slot.Swap(hash) != hash
}

// mayBeSignal reports whether a visit tells that a page may be gone, moved or private now.
//
// Robots count as well as browsers: a 404 for a search engine is one for everybody. Their refusals do not, as many are
// refused for what they are. Who is signed in gets other responses than everybody.
func (v *Visit) mayBeSignal() bool {
	if v.Method != http.MethodGet && v.Method != http.MethodHead || v.User {
		return false
	}
	switch v.Status {
	case http.StatusNotFound, http.StatusGone:
	case http.StatusMovedPermanently, http.StatusPermanentRedirect,
		http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect:
		// A page that is made private most often answers 302, to a login.
		//
		// Where it leads tells whether the page has moved: most redirects are those from http to https, or to a www.
		// The common formats do not say it, and have them beside the others.
		if v.Location == "" {
			return false
		}
	case http.StatusUnauthorized, http.StatusForbidden:
		if v.UserAgent != "" && isRobot(v.UserAgent) {
			return false
		}
	default:
		return false
	}
	return !strings.HasPrefix(v.UserAgent, ownAgent)
}

// Signal returns the page that is to be fetched because of a visit, at a time in Unix seconds; ok is false if there is
// none. Nobody has said that there is such a page: it is for the crawl to know.
func (f *Filter) Signal(v *Visit, now int64) (path string, ok bool) {
	if !v.mayBeSignal() || !f.lookedAt().note(v.Host, v.URI, now) {
		return "", false
	}
	// The response to another URL than the page's says nothing of the page.
	if !f.IsExact(v.URI) || !isPagePath(v.URI) {
		return "", false
	}
	path, ok = f.Clean(v.URI)
	if !ok || v.Location != "" && f.leadsTo(v.Location, path) {
		return "", false
	}
	return path, true
}

// leadsTo reports whether a Location is that of a page, at whichever scheme and host.
func (f *Filter) leadsTo(location, path string) bool {
	to := location
	if strings.HasPrefix(to, "//") {
		to = "https:" + to
	}
	if !strings.HasPrefix(to, "/") {
		u, err := origin.ParseURL(to)
		if err != nil {
			return false
		}
		to = u.Path
	}
	clean, ok := f.Clean(to)
	return ok && f.IsExact(to) && page.Bare(clean) == page.Bare(path)
}
