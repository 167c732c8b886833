package sitemap

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
)

// Crawl says how a site's pages are fetched.
type Crawl struct {
	// Whether pages are not fetched at all: they are then listed by name alone, with the
	// dates that their sources tell. Default: false.
	Off bool `json:"off,omitempty"`

	// The most requests a second that the crawl sends to upstreams. Files are fetched as
	// fast as half of the cores allow. From one an hour, 1/3600, to 1000. Default: 2.
	Rate float64 `json:"rate,omitempty"`

	// The most requests that the crawl may have under way at upstreams, up to 100.
	// Default: 1.
	Concurrency int `json:"concurrency,omitempty"`

	// URLs that are never fetched where only links or visitors name them: patterns as in
	// Caddy's path matcher, or words that no path segment may have (case-insensitive).
	// Default: logout, logoff, signout, unsubscribe, cart, basket, checkout, confirm,
	// verify, delete, add, remove.
	Disallow []string `json:"disallow,omitempty"`
}

const (
	defaultCrawlRate        = 2
	defaultCrawlConcurrency = 1
	minCrawlRate            = 1.0 / 3600
	maxCrawlRate            = 1000
	maxCrawlConcurrency     = 100
)

// crawlSettings are a Crawl, checked and with its defaults.
type crawlSettings struct {
	off         bool
	rate        float64
	concurrency int
	disallow    *disallowed
}

// compile checks the settings and fills in their defaults.
func (c *Crawl) compile() (crawlSettings, error) {
	if c == nil {
		c = new(Crawl)
	}
	s := crawlSettings{off: c.Off, rate: c.Rate, concurrency: c.Concurrency}
	if c.Off && (c.Rate != 0 || c.Concurrency != 0 || c.Disallow != nil) {
		return s, errors.New("crawl is off: its other settings have no effect")
	}
	if s.rate == 0 {
		s.rate = defaultCrawlRate
	}
	if !(s.rate >= minCrawlRate && s.rate <= maxCrawlRate) {
		return s, fmt.Errorf("crawl rate is %v/s: it is at least one an hour and at most %d/s", c.Rate, maxCrawlRate)
	}
	if s.concurrency == 0 {
		s.concurrency = defaultCrawlConcurrency
	}
	if s.concurrency < 1 || s.concurrency > maxCrawlConcurrency {
		return s, fmt.Errorf("crawl concurrency is %d: it is 1 to %d", c.Concurrency, maxCrawlConcurrency)
	}
	words := c.Disallow
	if words == nil {
		words = defaultDisallow
	}
	var err error
	s.disallow, err = compileDisallow(words)
	return s, err
}

// The values of settings that are one of a few words; the first is the default.
var (
	lastModModes   = []string{"auto", "mtime", "off"}
	canonicalModes = []string{"respect", "ignore"}
	orphanModes    = []string{"list", "omit"}
	extensionNames = []string{"alternates", "images"}
)

// compileSelection checks the settings of what is made of what pages say.
func (s *settings) compileSelection(h *Handler) (err error) {
	if s.crawl, err = h.Crawl.compile(); err != nil {
		return err
	}
	mode, err := oneOf("lastmod", h.LastMod, lastModModes)
	if err != nil {
		return err
	}
	s.dates = [...]indexing.Mode{indexing.Auto, indexing.ModTime, indexing.Off}[mode]
	canonical, err := oneOf("canonical", h.Canonical, canonicalModes)
	if err != nil {
		return err
	}
	orphans, err := oneOf("orphans", h.Orphans, orphanModes)
	if err != nil {
		return err
	}
	s.canonical, s.omitOrphans = canonical == 0, orphans == 1
	for i, name := range h.Extensions {
		if _, err := oneOf("extensions", name, extensionNames); err != nil || name == "" {
			return fmt.Errorf("extensions has '%s': it takes %s", name, strings.Join(extensionNames, ", "))
		}
		if slices.Contains(h.Extensions[:i], name) {
			return fmt.Errorf("extensions has '%s' twice", name)
		}
	}
	s.alternates = slices.Contains(h.Extensions, "alternates")
	s.images = slices.Contains(h.Extensions, "images")
	return s.checkCrawlOff(h)
}

// checkCrawlOff refuses settings that need pages to be fetched where none is.
func (s *settings) checkCrawlOff(h *Handler) error {
	if !s.crawl.off {
		return nil
	}
	switch {
	case len(h.Extensions) > 0:
		return errors.New("extensions come from fetched pages, and crawl is off")
	case s.omitOrphans:
		return errors.New("orphans are found by fetching pages, and crawl is off")
	case h.Canonical == "respect":
		return errors.New("canonicals are found by fetching pages, and crawl is off")
	case h.LastMod == "auto":
		return errors.New("lastmod auto needs fetched pages, and crawl is off: mtime takes what the sources tell")
	}
	return nil
}

// oneOf is which of some words a setting is; empty: the first.
func oneOf(setting, value string, words []string) (int, error) {
	if value == "" {
		return 0, nil
	}
	if i := slices.Index(words, value); i >= 0 {
		return i, nil
	}
	return 0, fmt.Errorf("%s is '%s': it is %s or %s", setting, value, strings.Join(words[:len(words)-1], ", "), words[len(words)-1])
}
