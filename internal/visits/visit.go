// Package visits tells what a visit says of a site: which page it shows, or which one may be gone, by whom. A [Filter]
// judges a [Visit]; [Visited] and [Readers] are what is kept.
package visits

import (
	"net/http"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/htmlmeta"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
)

// Visit is a request and its response, as served or as in a line of an access log. What is not known is zero. The
// strings may be parts of the line's buffer: clone what is kept.
type Visit struct {
	Time   int64 // Unix seconds; 0: missing, or not readable
	Method string
	Host   string // as the line has it: a port may follow
	URI    string // as the client sent it, with its query; never ""
	User   bool   // the client is signed in: there is a user's name, or an Authorization header
	Status int    // 0 also if there was no response

	// Values of headers; those of several lines are joined by ", ". "": not known. The
	// User-Agent is "-" if the line says that there was none.
	UserAgent, ContentType, RobotsTag, Location string
}

// Why a visit does not show a page that may be listed.
const (
	wrongMethod = "not GET or HEAD"
	wrongStatus = "not 200 or 304"
	notHTML     = "not HTML" // by its Content-Type
	asset       = "asset"    // by the extension of its path, where the Content-Type is not known
	signedIn    = "signed in"
	noIndex     = "noindex"
	oddPath     = "no clean path"
)

// Robot is why a visit does not show a page that may be listed: it is a robot's, by its User-Agent.
const Robot = "robot"

// Reason returns why a visit does not count; "": it does. It counts if an anonymous visitor's browser got an HTML page
// that may be indexed. If the log has no User-Agents, it may be a browser; a request without one is a robot's.
func (v *Visit) Reason() string {
	switch {
	case v.Method != http.MethodGet && v.Method != http.MethodHead:
		return wrongMethod
	case v.Status != http.StatusOK && v.Status != http.StatusNotModified:
		return wrongStatus
	case v.ContentType == "" || v.ContentType == "-":
		// The common formats do not have the Content-Type: what the path ends in must tell.
		path, _, _ := strings.Cut(v.URI, "#")
		path, _, _ = strings.Cut(path, ";")
		if origin.IsAsset(path) {
			return asset
		}
	case !htmlmeta.IsHTML(v.ContentType):
		return notHTML
	}
	switch {
	case v.User:
		return signedIn
	case v.RobotsTag != "" && v.isNoIndex():
		return noIndex
	case v.UserAgent != "" && isRobot(v.UserAgent):
		return Robot
	}
	return ""
}

// isNoIndex reports whether the response asks not to be indexed.
func (v *Visit) isNoIndex() bool {
	header := http.Header{"X-Robots-Tag": {v.RobotsTag}}
	return htmlmeta.Header(htmlmeta.Page{Header: header}).NoIndex
}
