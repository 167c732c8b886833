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
	maxChecks  = 100      // removed pages that are requested at a time
	maxTries   = 5        // times that a removed page is requested while it fails
	maxHeader  = 64 << 10 // bytes of a response's header
	maxExcerpt = 200      // bytes of a body, or of an error, that are quoted
	maxRefused = 13       // times that a key is refused, until over a day has passed
)

// Bounds of how many URLs an endpoint is sent in 24 hours.
const (
	DefaultDaily = 10_000    // unless Config.Daily says how many
	MaxDaily     = 1_000_000 // of Config.Daily

	newShare = 10 // a tenth is kept for added pages
)

const (
	day          = 24 * time.Hour
	holdFor      = 90 * time.Second // that changes wait for added pages to be confirmed, to be sent with them
	goneFor      = 3 * time.Minute  // that a page is gone before it is requested again: a deployment may have failed
	checkFor     = 10 * time.Second // for removed pages, before what is due is sent
	savePatience = 10 * time.Second
	firstBackOff = time.Minute // doubled by each failure in a row
	maxBackOff   = 6 * time.Hour
	tooMany      = 10 * time.Minute // after a 429 without Retry-After, at least
)

// Gap is between two requests to a target, and between two tries to load a queue. Only tests set less.
var Gap = 10 * time.Second

// DefaultEndpoint is the one that passes URLs on to all search engines that take part in IndexNow.
const DefaultEndpoint = "https://api.indexnow.org/indexnow"

// Kind is a protocol by which changes are announced.
type Kind string

// The protocols. Each has a row in protocols, and a case in newJob; one that tells of a document has one in
// updateDocuments, too.
const (
	IndexNow Kind = "indexnow" // changed URLs: https://www.indexnow.org/documentation
	Ping     Kind = "ping"     // the URL of the sitemap: https://www.sitemaps.org/protocol.html#submit_ping
	Hub      Kind = "hub"      // the URL of the feed: WebSub, with the publishing of PubSubHubbub 0.3, section 7.1
)

// protocol is how targets of a Kind are told of changes.
type protocol struct {
	interval time.Duration // the least time between two notices of one URL to a target
	batch    int           // most URLs of pages in a request; 0: it tells of a document, the sitemap or the feed
	final    []int         // statuses after which nothing else is to be expected
}

var protocols = map[Kind]protocol{
	IndexNow: {interval: 10 * time.Minute, batch: 10_000, final: []int{400, 422}},
	Ping:     {interval: time.Hour, final: []int{404, 410}},
	Hub:      {interval: 5 * time.Minute, final: []int{404, 410}},
}

// ofPages reports whether the protocol tells of pages, at most Config.Daily in a day, and not of a document.
func (k Kind) ofPages() bool { return protocols[k].batch > 0 }

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
	Daily   int      // most URLs for an endpoint in 24 hours; 0: DefaultDaily
	Targets []Target // endpoints of IndexNow are unused if the Origin is not public
}

// Status is what operators see of one target. Numbers are of URLs, and count from when the queue was new.
type Status struct {
	Target
	Unconfirmed int       `json:"unconfirmed,omitempty"` // of added and removed pages, until it is known that they stay so
	Waiting     int       `json:"waiting"`               // those that are being sent included
	WaitsFor    Wait      `json:"waits_for,omitempty"`   // why they wait
	Sent        int       `json:"sent"`                  // in requests, repeated ones included
	Accepted    int       `json:"accepted"`              // by a status of 2xx
	Refused     int       `json:"refused"`               // for good
	Dropped     int       `json:"dropped"`               // too many were waiting, or two requests had no known outcome
	Failures    int       `json:"failures,omitempty"`    // requests in a row that were not accepted
	Stopped     bool      `json:"stopped,omitempty"`     // nothing is sent until a restart or reload
	Reason      string    `json:"reason,omitempty"`      // why the last request was not accepted, and what to do
	Last        time.Time `json:"last,omitzero"`         // when the last request began or ended
	Next        time.Time `json:"next,omitzero"`         // when what waits may be sent, not in the past; zero: it is not known
}

// Wait is what URLs wait for before they are sent.
type Wait string

// What they wait for.
const (
	ForConfirmation Wait = "confirmation" // the next refresh shows whether added pages stay
	ForCheck        Wait = "check"        // removed pages are requested again
	ForInterval     Wait = "interval"     // they were sent a short time ago
	ForDay          Wait = "daily"        // the endpoint was sent what it may be in 24 hours
	ForGap          Wait = "gap"          // the last request has just ended
	ForRetry        Wait = "retry"        // the last request failed
	ForResponse     Wait = "response"     // they are being sent, or it is not known what came of it
	ForReload       Wait = "reload"       // the target refuses everything
	ForOthers       Wait = "others"       // other processes do not serve the change yet, or one of them sends it
)

var keyPattern = regexp.MustCompile(`^[A-Za-z0-9-]{8,128}$`)

// IsKey reports whether a text can be a key of IndexNow.
func IsKey(key string) bool { return keyPattern.MatchString(key) }

// Check refuses what cannot be a target.
func (t Target) Check() error {
	if _, err := origin.ParseURL(t.URL); err != nil {
		return err
	}
	rest := strings.ReplaceAll(t.URL, "{sitemap}", "")
	hasSitemap := rest != t.URL
	if t.Kind == Ping && !hasSitemap {
		return errors.New("the URL of a ping must have {sitemap} in it, which the URL of the sitemap replaces")
	}
	if t.Kind != Ping && hasSitemap {
		return errors.New("{sitemap} is replaced in the URL of a ping only: remove it")
	}
	if strings.Contains(rest, "{") {
		return errors.New("other placeholders are not replaced")
	}
	return nil
}
