package sitemap

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/logonce"
	"github.com/seed3295b519/caddy-sitemap/internal/option"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// compilePatterns compiles path patterns. c refuses those that could never match a page.
func compilePatterns(c *option.Checker, setting string, patterns []string) pathPatterns {
	for _, p := range patterns {
		c.Refuse(strings.Contains(p, "{"), "%s: path pattern '%s': placeholders are not replaced", setting, p)
		err := page.CheckPattern(p)
		c.Refuse(err != nil, "%s: %w", setting, err)
	}
	compiled := caddyhttp.MatchPath(slices.Clone(patterns))
	c.Note(compiled.Provision(caddy.Context{}))
	return pathPatterns(compiled)
}

// pathPatterns match the paths of pages as Caddy's path matcher does, which it is.
type pathPatterns caddyhttp.MatchPath

// matchRequests are what the path matcher takes, to be used again.
var matchRequests = sync.Pool{New: func() any {
	ctx := context.WithValue(context.Background(), caddy.ReplacerCtxKey, caddy.NewEmptyReplacer())
	return (&http.Request{URL: new(url.URL)}).WithContext(ctx)
}}

// Match reports whether one of the patterns matches a normal path. Its query plays no part.
func (p pathPatterns) Match(path string) bool {
	if len(p) == 0 {
		return false
	}
	r := matchRequests.Get().(*http.Request)
	defer matchRequests.Put(r)
	r.URL.RawPath, _, _ = strings.Cut(path, "?")
	r.URL.Path = page.Unescape(r.URL.RawPath)
	return caddyhttp.MatchPath(p).Match(r)
}

// which returns the first pattern that matches a path; "": none.
func (p pathPatterns) which(path string) string {
	for i := range p {
		if p[i : i+1].Match(path) {
			return p[i]
		}
	}
	return ""
}

// notedPatterns are the path patterns of an option that is for pages, and whether a page has matched. They are safe for
// concurrent use.
type notedPatterns struct {
	pathPatterns
	hasMatched atomic.Bool
}

// Match is [pathPatterns.Match], which it notes.
func (n *notedPatterns) Match(path string) bool {
	isMatch := n.pathPatterns.Match(path)
	if isMatch {
		n.hasMatched.Store(true)
	}
	return isMatch
}

// logUnmatched logs once that no page has matched. option is the name of the option.
func (n *notedPatterns) logUnmatched(logger *logonce.Logger, option string) {
	if n.hasMatched.Load() {
		return
	}
	logger.Once(zap.InfoLevel, fmt.Sprint(option, " ", n.pathPatterns), option+" matches no page",
		zap.Strings("patterns", n.pathPatterns))
}
