package accesslog

import (
	"net/http"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/crawler"
	"github.com/seed3295b519/caddy-sitemap/internal/htmlmeta"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// Reason is why a visit does not show a page that may be listed. The zero value: it does.
type Reason uint8

// The reasons, in the order in which they are looked for.
const (
	Counts      Reason = iota
	WrongMethod        // neither GET nor HEAD
	WrongStatus        // neither 200 nor 304
	NotHTML            // by its Content-Type
	Asset              // by the extension of its path, where the Content-Type is not known
	SignedIn
	NoIndex
	Robot // by its User-Agent

	Reasons = int(Robot) + 1 // how many there are, with Counts
)

var reasons = [Reasons]string{
	Counts: "visits", WrongMethod: "not GET or HEAD", WrongStatus: "not 200 or 304", NotHTML: "not HTML", Asset: "asset",
	SignedIn: "signed in", NoIndex: "noindex", Robot: "robot",
}

// String returns the reason in a few words.
func (r Reason) String() string {
	if int(r) < Reasons {
		return reasons[r]
	}
	return ""
}

// IsOfPage reports whether a page was shown all the same: what did not count is who asked,
// or that the page does not want to be listed.
func (r Reason) IsOfPage() bool { return r == SignedIn || r == NoIndex || r == Robot }

// Filter tells which visits count: those in which a browser, of nobody in particular, was
// shown an HTML page that may be indexed. The zero value is ready. It is not safe for
// concurrent use.
type Filter struct {
	agents map[string]bool // whether they are robots

	// The last X-Robots-Tag: a site that sends it often sends the same with each response.
	robotsTag string
	noIndex   bool
}

// maxAgents is how many User-Agents a Filter remembers, none longer than
// [crawler.Longest].
const maxAgents = 4096

// Reason returns why a visit does not count. Where the Content-Type is not known, a path
// with the extension of an asset is no page's. A visitor whose User-Agent is not known is
// no robot; one who sends none is.
func (f *Filter) Reason(v *Visit) Reason {
	switch {
	case v.Method != http.MethodGet && v.Method != http.MethodHead:
		return WrongMethod
	case v.Status != http.StatusOK && v.Status != http.StatusNotModified:
		return WrongStatus
	case v.ContentType != "" && v.ContentType != "-":
		if !htmlmeta.IsHTML(v.ContentType) {
			return NotHTML
		}
	case isAsset(v.URI):
		return Asset
	}
	switch {
	case v.User:
		return SignedIn
	case v.RobotsTag != "" && f.isNoIndex(v.RobotsTag):
		return NoIndex
	case f.isRobot(v.UserAgent):
		return Robot
	}
	return Counts
}

// isNoIndex reports whether an X-Robots-Tag keeps a page out of search engines.
func (f *Filter) isNoIndex(tag string) bool {
	if tag != f.robotsTag {
		f.robotsTag = strings.Clone(tag)
		f.noIndex = htmlmeta.Header(htmlmeta.Page{Header: http.Header{"X-Robots-Tag": {tag}}}).NoIndex
	}
	return f.noIndex
}

// isRobot reports whether a User-Agent is not that of a browser. "" is one that the log
// does not tell: the Common format has none, and JSON may leave headers out. "-" is how a
// log tells that the request had none, and all browsers send one.
func (f *Filter) isRobot(agent string) bool {
	switch agent {
	case "":
		return false
	case "-":
		return true
	}
	if robot, ok := f.agents[agent]; ok {
		return robot
	}
	robot := crawler.Of(agent).IsRobot()
	if len(agent) > crawler.Longest {
		return robot
	}
	if f.agents == nil || len(f.agents) >= maxAgents {
		f.agents = make(map[string]bool)
	}
	f.agents[strings.Clone(agent)] = robot
	return robot
}

// isAsset reports whether a URI has the extension of what is not a page.
func isAsset(uri string) bool {
	if i := strings.IndexAny(uri, "?#;"); i >= 0 {
		uri = uri[:i]
	}
	return page.IsAsset(uri)
}
