// Package announce tells search engines and WebSub hubs what changed on a site. The changes themselves are in the site's
// records. Each target has a cursor, the last change that it was told, which is stored before and after each request.
package announce

import (
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/origin"
)

// Bounds of how many URLs an endpoint is sent in a day.
const (
	DefaultDaily = 10_000
	MaxDaily     = 1_000_000
)

// Gap is between two requests to an endpoint of IndexNow. Only tests set less.
var Gap = time.Minute

// DefaultEndpoint is the one that passes URLs on to all search engines that take part in IndexNow.
const DefaultEndpoint = "https://api.indexnow.org/indexnow"

// Kind is a protocol by which changes are announced.
type Kind string

// The protocols. Each has a row in intervals and a case in request. Those but IndexNow tell of one document.
const (
	IndexNow Kind = "indexnow" // changed URLs: https://www.indexnow.org/documentation
	Ping     Kind = "ping"     // the URL of the sitemap: https://www.sitemaps.org/protocol.html#submit_ping
	Hub      Kind = "hub"      // the URL of the feed: WebSub, with the publishing of PubSubHubbub 0.3, section 7.1
)

// intervals are the least times between two notices of one URL to a target.
var intervals = map[Kind]time.Duration{IndexNow: 10 * time.Minute, Ping: time.Hour, Hub: 5 * time.Minute}

// Target is an endpoint of IndexNow, the URL of a ping with {sitemap} in it, or a hub.
type Target struct {
	Kind Kind   `json:"kind"`
	URL  string `json:"url"` // as configured
}

// Config is what a site announces, and to whom.
type Config struct {
	Origin  string   // scheme, host and port of the site's URLs, such as https://example.com
	Prefix  string   // of the paths of its pages and of its key file: "" or such as /docs
	Sitemap string   // the URL of the sitemap or its index
	Feed    string   // the URL of the feed
	Key     string   // of IndexNow; "": one is made, and kept
	Daily   int      // most URLs for an endpoint in a day (UTC)
	Targets []Target // endpoints of IndexNow are unused if the Origin is not public
}

// Status is what operators see of one target.
type Status struct {
	Target
	Waiting  int       `json:"waiting"`            // URLs that it is still to be told, those that are being sent included
	Accepted int       `json:"accepted"`           // URLs in requests that it accepted, since it was configured
	Failures int       `json:"failures,omitempty"` // requests in a row that were not accepted
	Reason   string    `json:"reason,omitempty"`   // why the last request was not accepted, and what to do
	Last     time.Time `json:"last,omitzero"`      // when the last request began or ended
	Next     time.Time `json:"next,omitzero"`      // when what waits may be sent; zero: nothing waits
}

var keyPattern = regexp.MustCompile(`^[A-Za-z0-9-]{8,128}$`)

// IsKey reports whether a text can be a key of IndexNow.
func IsKey(key string) bool { return keyPattern.MatchString(key) }

// Check refuses what cannot be a target.
func (t Target) Check() error {
	if _, err := origin.ParseURL(t.URL); err != nil {
		return err
	}
	rest := t.URL
	if t.Kind == Ping {
		rest = strings.ReplaceAll(t.URL, "{sitemap}", "")
		if rest == t.URL {
			return errors.New("the URL of a ping must have {sitemap} in it, which the URL of the sitemap replaces")
		}
	}
	if strings.Contains(rest, "{") {
		return errors.New("no placeholder is replaced but {sitemap} in the URL of a ping: remove it")
	}
	return nil
}
