// Package visits tells which pages visitors requested, and which they found gone. A [Visit] is a request that a handler
// has served, or one in a line of an access log. A [Reader] reads the logs of web servers as they
// grow and are rolled. [Visited] is what is kept.
package visits

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// Visit is a request and its response, as served or as in a line of an access log. What is not known is zero.
type Visit struct {
	Time   int64 // Unix seconds; 0: missing, or not readable
	Method string
	Host   string // as the line has it: a port may follow
	URI    string // as the client sent it, with its query; never ""
	User   bool   // the client is signed in: there is a user's name, or an Authorization header
	Cookie bool   // it has sent a cookie
	Status int    // 0 also if there was no response

	// Values of headers; those of several lines are joined by ", ". "": not known. The
	// User-Agent is "-" if the line says that there was none.
	UserAgent, ContentType, RobotsTag, Location string
}

// Counts is the result of a visit that shows a page that may be listed.
const Counts = "visits"

// Results of visits that do not count.
const (
	wrongMethod = "not GET or HEAD"
	wrongStatus = "not 200 or 304"
	notHTML     = "not HTML" // by its Content-Type
	asset       = "asset"    // by the extension of its path, where the Content-Type is not known
	signedIn    = "signed in"
	noIndex     = "noindex"
	robot       = "robot" // by its User-Agent
	oddPath     = "no clean path"
)

// ownAgent begins the User-Agent of this module's own requests, which another server may log.
const ownAgent = "caddy-sitemap "

// Judge returns the result of a visit to a site with these URLs: [Counts], or why it does not show a page that may be listed. path is
// the page that it shows; or else one that may be gone, moved or private now, "" if there is none. Nobody has said that there is such
// a page: it is for the crawl to know.
func (v *Visit) Judge(urls *origin.Cleaner) (path, result string) {
	if v.Method != http.MethodGet && v.Method != http.MethodHead {
		return "", wrongMethod
	}
	path, isClean := urls.Clean(v.URI)
	if !isClean || !isPagePath(v.URI) {
		return "", oddPath
	}
	result = v.result()
	// The response to another URL than the page's says nothing of the page.
	isSignal := v.mayBeSignal() && urls.IsExact(v.URI) && !leadsTo(urls, v.Location, path)
	if result != Counts && !isSignal {
		return "", result
	}
	return path, result
}

var unsafeMethods = []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// Writes reports whether somebody who is signed in, perhaps by a cookie, may have saved something.
func (v *Visit) Writes() bool {
	isSignedIn := v.User || v.Cookie
	isDone := v.Status < http.StatusBadRequest // 0 as well: the response is empty
	return isSignedIn && isDone && slices.Contains(unsafeMethods, v.Method)
}

// isPagePath reports whether a client that follows links to pages may request a URI. None sends dot segments, encoded
// or not (RFC 3986, section 5.2.4): they are a scanner's. So are .git and .env; /wiki/.NET may be a page.
func isPagePath(requested string) bool {
	path := page.Unescape(requested) + "/"
	return !strings.HasPrefix(path, "/.") && !strings.Contains(path, "/./") && !strings.Contains(path, "/../")
}

// leadsTo reports whether a Location is that of a page, at whichever scheme and host.
func leadsTo(urls *origin.Cleaner, location, path string) bool {
	u, err := url.Parse(location)
	if location == "" || err != nil {
		return false
	}
	to, ok := urls.Clean(u.RequestURI())
	return ok && to == path && urls.IsExact(u.RequestURI())
}

// result returns the result of a GET or HEAD request by all but its path. It counts if an anonymous visitor's browser got
// an HTML page that may be indexed. If the log has no User-Agents, it may be a browser; a request without one is a robot's.
func (v *Visit) result() string {
	// The common formats do not have the Content-Type: what the path ends in must tell.
	hasType := v.ContentType != "" && v.ContentType != "-"
	switch {
	case v.Status != http.StatusOK && v.Status != http.StatusNotModified:
		return wrongStatus
	case !hasType && origin.IsAsset(v.URI):
		return asset
	case hasType && !html.IsHTML(v.ContentType):
		return notHTML
	case v.User:
		return signedIn
	case v.isNoIndex():
		return noIndex
	case v.isRobot():
		return robot
	}
	return Counts
}

// mayBeSignal reports whether the response to a GET or HEAD request tells that a page may be gone, moved or private now.
//
// Robots count as well as browsers: a 404 for a search engine is one for everybody. Their refusals do not, as many are
// refused for what they are. Who is signed in gets other responses than everybody.
func (v *Visit) mayBeSignal() bool {
	if v.User || strings.HasPrefix(v.UserAgent, ownAgent) {
		return false
	}
	switch v.Status {
	case http.StatusNotFound, http.StatusGone:
		return true
	case http.StatusUnauthorized, http.StatusForbidden:
		return !v.isRobot()
	}
	// A page that is made private most often answers 302, to a login.
	//
	// Where a redirect leads tells whether the page has moved: most are those from http to https, or to a www. The
	// common formats do not say it, and have them beside the others.
	return v.Status/100 == 3 && v.Location != ""
}

// isNoIndex reports whether the response asks not to be indexed.
func (v *Visit) isNoIndex() bool {
	header := http.Header{"X-Robots-Tag": {v.RobotsTag}}
	return v.RobotsTag != "" && html.Header(html.Page{Header: header}).NoIndex
}
