// Package announce tells search engines and WebSub hubs what changed on a site. A [Queue] says what is to be sent, and
// when; a [Client] sends it. All that has to survive a restart is in the queue, which its owner stores as JSON.
package announce

import (
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/origin"
)

// Bounds.
const (
	maxPaths   = 50_000   // in each list of a queue
	maxBytes   = 4 << 20  // of these paths
	maxBatch   = 10_000   // URLs in a request: a bound of IndexNow
	leastDay   = 100      // URLs that an endpoint may be sent in a day, however small the site
	maxChecks  = 100      // removed pages that are requested at a time
	maxHeader  = 64 << 10 // bytes of a response's header
	maxExcerpt = 200      // bytes of a body, or of an error, that are quoted
	maxRefused = 13       // times that a key is refused, until over a day has passed

	day          = 24 * time.Hour
	savePatience = 10 * time.Second
	firstBackOff = time.Minute // doubled by each failure in a row
	maxBackOff   = 6 * time.Hour
	tooMany      = 10 * time.Minute // after a 429 without Retry-After, at least
)

// DefaultEndpoint is the one that passes URLs on to all search engines that take part in IndexNow.
const DefaultEndpoint = "https://api.indexnow.org/indexnow"

// Kind is a protocol by which changes are announced.
type Kind string

// The protocols.
const (
	IndexNow Kind = "indexnow" // changed URLs: https://www.indexnow.org/documentation
	Ping     Kind = "ping"     // the URL of the sitemap: https://www.sitemaps.org/protocol.html#submit_ping
	Hub      Kind = "hub"      // the URL of the feed: WebSub, with the publishing of PubSubHubbub 0.3, section 7.1
)

// intervals are the least times between two requests to a target, and so for one URL, unless the first was not accepted.
var intervals = map[Kind]time.Duration{
	IndexNow: 5 * time.Minute,
	Ping:     time.Hour,
	Hub:      5 * time.Minute,
}

// final are the statuses after which nothing else is to be expected.
var final = map[Kind][]int{IndexNow: {400, 422}, Ping: {404, 410}, Hub: {404, 410}}

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
	Daily   int      // most URLs for an endpoint in 24 hours; 0: a tenth of the listed pages, at least 100
	Targets []Target // endpoints of IndexNow are unused if the Origin is not public
}

// Status is what operators see of one target. Numbers are of URLs, and count from when the queue was new.
type Status struct {
	Target
	Unconfirmed int       `json:"unconfirmed,omitempty"` // of added pages that a later refresh has to confirm
	Waiting     int       `json:"waiting"`               // those that are being sent included
	Sent        int       `json:"sent"`                  // in requests, repeated ones included
	Accepted    int       `json:"accepted"`              // by a status of 2xx
	Refused     int       `json:"refused"`               // for good
	Dropped     int       `json:"dropped"`               // too many were waiting, or two requests had no known outcome
	Failures    int       `json:"failures,omitempty"`    // requests in a row that were not accepted
	Stopped     bool      `json:"stopped,omitempty"`     // nothing is sent until a restart or reload
	Reason      string    `json:"reason,omitempty"`      // why the last request was not accepted, and what to do
	Last        time.Time `json:"last,omitzero"`         // when the last request began or ended
	Next        time.Time `json:"next,omitzero"`         // when the next may be made
}

var keyPattern = regexp.MustCompile(`^[A-Za-z0-9-]{8,128}$`)

// IsKey reports whether a text can be a key of IndexNow.
func IsKey(key string) bool { return keyPattern.MatchString(key) }

// Check refuses what cannot be a target.
func (t Target) Check() error {
	if _, err := origin.ParseURL(t.URL); err != nil {
		return err
	}
	rest := strings.ReplaceAll(t.URL, "{sitemap}", "")
	if (rest != t.URL) != (t.Kind == Ping) {
		return errors.New("the URL of a ping must have {sitemap} in it, which the URL of the sitemap replaces, " +
			"and others must not")
	}
	if strings.Contains(rest, "{") {
		return errors.New("other placeholders are not replaced")
	}
	return nil
}
