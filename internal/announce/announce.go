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
	maxReply   = 64 << 10 // bytes of a reply's body that are read, and of its header that are accepted
	maxExcerpt = 200      // bytes of a body, or of an error, that are quoted

	day          = 24 * time.Hour
	patience     = 30 * time.Second // with a target
	savePatience = 10 * time.Second
	firstBackOff = time.Minute // doubled by each failure in a row
	maxBackOff   = 6 * time.Hour
	tooMany      = 10 * time.Minute // after a 429 without Retry-After, at least
	keyFailures  = 10               // with which a key may count as refused for a day: clocks jump
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
var intervals = map[Kind]time.Duration{IndexNow: 5 * time.Minute, Ping: time.Hour, Hub: 5 * time.Minute}

// final are the statuses after which nothing else is to be expected.
var final = map[Kind][]int{IndexNow: {400, 422}, Ping: {404, 410}, Hub: {404, 410}}

// Config is what a site announces, and to whom. Its URLs have passed [Check], and its key [IsKey].
type Config struct {
	Origin  string // scheme, host and port of the site's URLs, such as https://example.com
	Prefix  string // of the paths of its pages and of its key file: "" or such as /docs
	Sitemap string // the URL of the sitemap or its index
	Feed    string // the URL of the feed; "": there is none, and hubs are told nothing

	Key       string   // of IndexNow; "": one is made, and kept
	Endpoints []string // of IndexNow; unused if [IsPublic] is false for Origin
	Daily     int      // most URLs for an endpoint in 24 hours; 0: a tenth of the listed pages, at least 100
	Pings     []string // URLs with {sitemap} in them
	Hubs      []string // of WebSub
}

// Status is what operators see of one target: an endpoint, a ping URL or a hub. Numbers are of URLs, and count from when
// the queue was new.
type Status struct {
	Kind        Kind      `json:"kind"`
	URL         string    `json:"url"`                   // as configured
	Unconfirmed int       `json:"unconfirmed,omitempty"` // of added pages that a later refresh has to confirm
	Waiting     int       `json:"waiting"`               // those that are being sent included
	Sent        int       `json:"sent"`                  // in requests begun, repeated ones included
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

// Check refuses what cannot be the URL of a target.
func Check(kind Kind, target string) error {
	_, err := origin.ParseURL(target)
	switch rest := strings.ReplaceAll(target, "{sitemap}", ""); {
	case err != nil:
		return err
	case (rest != target) != (kind == Ping):
		return errors.New("the URL of a ping must have {sitemap} in it, which the URL of the sitemap replaces, and others must not")
	case strings.Contains(rest, "{"):
		return errors.New("other placeholders are not replaced")
	}
	return nil
}

// special are domains that are not public: those of RFCs 6761, 6762, 7686, 8375 and 9476, and names that ICANN keeps for
// private use or does not delegate. A number ends an IPv4 address.
var special = regexp.MustCompile(`(^|\.)(alt|corp|example|home|home\.arpa|internal|invalid|lan|local|localhost|onion|test|[0-9]+)$`)

// IsPublic reports whether the host of an origin is a name that search engines may know: it has a dot, and is neither of a
// domain for private use nor an IP address.
func IsPublic(at string) bool {
	host := origin.HostOf(at)
	return strings.Contains(host, ".") && !strings.HasPrefix(host, "[") && !special.MatchString(host)
}
