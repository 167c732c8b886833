package sitemap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/robotstxt"
)

// Ask says how a site's pages are asked for.
type Ask struct {
	// Whether pages are neither asked for nor read: they are then listed by name
	// alone, with the dates that their sources tell, and nothing is remembered of
	// them. Default: false.
	Off bool `json:"off,omitempty"`

	// The most requests a second that asking may send to upstreams. Files are
	// asked for as fast as half of the cores allow. From one an hour, 1/3600, to
	// 1000. Default: 2.
	Rate float64 `json:"rate,omitempty"`

	// The most requests that asking may have under way at upstreams, up to 100.
	// Default: 1.
	Concurrency int `json:"concurrency,omitempty"`

	// Paths that are never asked for: patterns as in Caddy's path matcher, or
	// names that no segment of the path may have, in any case. Default: logout,
	// signout, unsubscribe, cart, checkout, confirm, verify, delete, admin, api.
	Never []string `json:"never,omitempty"`
}

const (
	defaultAskRate        = 2
	defaultAskConcurrency = 1
	minAskRate            = 1.0 / 3600
	maxAskRate            = 1000
	maxAskConcurrency     = 100
)

var defaultNever = []string{"logout", "signout", "unsubscribe", "cart", "checkout", "confirm", "verify", "delete", "admin", "api"}

// manners are an Ask, checked and with its defaults.
type manners struct {
	off         bool
	rate        float64
	concurrency int
	segments    []string // decoded
	never       page.Patterns
}

// compile checks the settings and fills in their defaults.
func (a *Ask) compile() (manners, error) {
	if a == nil {
		a = new(Ask)
	}
	c := manners{off: a.Off, rate: a.Rate, concurrency: a.Concurrency}
	if a.Off && (a.Rate != 0 || a.Concurrency != 0 || a.Never != nil) {
		return c, errors.New("ask is off: no other setting of it has any effect")
	}
	if c.rate == 0 {
		c.rate = defaultAskRate
	}
	if !(c.rate >= minAskRate && c.rate <= maxAskRate) {
		return c, fmt.Errorf("the rate of asking is %v/s: it is at least one an hour and at most %d/s", a.Rate, maxAskRate)
	}
	if c.concurrency == 0 {
		c.concurrency = defaultAskConcurrency
	}
	if c.concurrency < 1 || c.concurrency > maxAskConcurrency {
		return c, fmt.Errorf("the concurrency of asking is %d: it is 1 to %d", a.Concurrency, maxAskConcurrency)
	}
	names := a.Never
	if names == nil {
		names = defaultNever
	}
	var patterns []string
	for _, name := range names {
		found := bracedName.FindString(name)
		switch {
		case name == "":
			return c, errors.New("ask never has an empty value")
		case found != "":
			return c, fmt.Errorf("ask never '%s': %s has no value here: placeholders are not replaced", name, found)
		case strings.ContainsAny(name, "/*"):
			patterns = append(patterns, name)
		default:
			c.segments = append(c.segments, decoded(name))
		}
	}
	var err error
	c.never, err = compilePatterns("ask never", patterns)
	return c, err
}

// guards reports whether a path is never asked for.
func (a *manners) guards(path string) bool {
	path, _, _ = strings.Cut(path, "?")
	return a.guardsSegments(path) || a.never.Match(path)
}

// guardsSegments reports whether a path has a segment that is never asked for.
func (a *manners) guardsSegments(path string) bool {
	for rest := path; len(a.segments) > 0 && rest != ""; {
		var segment string
		segment, rest, _ = strings.Cut(rest, "/")
		if segment == "" {
			continue
		}
		segment, _, _ = strings.Cut(decoded(segment), ";") // as of ";jsessionid="
		if slices.ContainsFunc(a.segments, func(s string) bool { return strings.EqualFold(s, segment) }) {
			return true
		}
	}
	return false
}

// decoded is page.Unescape of what has no query.
func decoded(segment string) string {
	if strings.IndexByte(segment, '%') < 0 {
		return segment
	}
	return page.Unescape(segment)
}

// crawlRules is what a site's robots.txt says to Google's crawler.
type crawlRules struct {
	rules  robotstxt.Rules
	closed bool      // it cannot be had: nothing is asked for now
	sum    uint64    // tells rules apart
	text   string    // that they were read from, if it is not too long to be kept
	at     time.Time // when they were read; zero: before a restart
}

// crawlerName is whose rules count: those for all where it has none of its own.
const crawlerName = "Googlebot"

// crawlRules reads the site's robots.txt, unless that was done since a refresh was due.
func (s *site) crawlRules(ctx context.Context) (crawlRules, error) {
	now := s.app.now()
	if last := s.shelf.rules.Load(); last != nil {
		if age := now.Sub(last.at); age >= 0 && age < s.handler.settings.refresh {
			return *last, nil
		}
	}
	rules, err := s.askRules(ctx)
	if err == nil && !rules.closed {
		s.shelf.rules.Store(&rules)
	}
	return rules, err
}

// askRules is crawlRules as they are now, which are not remembered.
func (s *site) askRules(ctx context.Context) (crawlRules, error) {
	now := s.app.now()
	answer, err := s.ask(ctx, http.MethodGet, robotsPath, robotstxt.MaxBody)
	switch {
	case ctx.Err() != nil:
		return crawlRules{}, ctx.Err()
	case err != nil, answer.Status >= 500, answer.Status == http.StatusTooManyRequests:
		// RFC 9309, section 2.3.1.4. What was forbidden stays forbidden.
		rules := crawlRules{closed: true}
		if last := s.shelf.rules.Load(); last != nil {
			rules = *last
			rules.closed = true
		}
		return rules, nil
	case answer.Status != http.StatusOK, answer.Unhandled, robotstxt.IsHTML(answer.Header.Get("Content-Type"), answer.Body):
		return crawlRules{at: now}, nil
	}
	body := answer.Body
	if answer.Truncated {
		// Half a path forbids more than the whole one does.
		body = body[:bytes.LastIndexAny(body, "\r\n")+1]
	}
	rules := readCrawlRules(body)
	rules.at = now
	if len(body) <= maxKeptRobots {
		rules.text = string(body)
	}
	return rules, nil
}

const maxKeptRobots = 64 << 10

func readCrawlRules(body []byte) crawlRules {
	c := crawlRules{rules: robotstxt.ReadRules(body, crawlerName)}
	if !c.rules.Empty() {
		c.sum = xxhash.Sum64String(c.rules.String())
	}
	return c
}

// forbid reports whether a path is one that crawlers are to leave alone.
func (c *crawlRules) forbid(path string) bool { return !c.rules.Allows(path) }
