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

// patternUse notes which path patterns of a setting have matched, and which have pages below them instead, as /drafts
// has /drafts/a. It is safe for concurrent use.
type patternUse struct {
	setting  string
	patterns []usedPattern
}

type usedPattern struct {
	pathPatterns             // the one pattern
	folder       string      // with a slash at the end, for which the pattern may be meant; "": it has an asterisk
	matched      atomic.Bool // a path
	hasBelow     atomic.Bool // there is a path in folder that no pattern of the setting matches
	reported     atomic.Bool // that it matches nothing
}

func newPatternUse(setting string, patterns pathPatterns) *patternUse {
	u := &patternUse{setting: setting, patterns: make([]usedPattern, len(patterns))}
	for i, pattern := range patterns {
		p := &u.patterns[i]
		p.pathPatterns = patterns[i : i+1]
		if !strings.Contains(pattern, "*") {
			p.folder = strings.TrimSuffix(pattern, "/") + "/"
		}
	}
	return u
}

// note takes a path, and whether one of the patterns matches it.
func (u *patternUse) note(path string, isMatch bool) {
	for i := range u.patterns {
		p := &u.patterns[i]
		// Nothing more is to be learned of it. This is called for each page.
		if p.matched.Load() {
			continue
		}
		isBelow := p.folder != "" && len(path) > len(p.folder) && strings.EqualFold(path[:len(p.folder)], p.folder)
		switch {
		case isMatch && p.Match(path):
			p.matched.Store(true)
		case !isMatch && isBelow:
			p.hasBelow.Store(true)
		}
	}
}

// warn calls warn for each pattern that has matched no path of a complete refresh, and in each refresh after that until
// it does. Where not all paths are seen, it is called only for those with pages below them.
func (u *patternUse) warn(isComplete, seesAll bool, warn func(message string)) {
	for i := range u.patterns {
		p := &u.patterns[i]
		if p.matched.Load() {
			continue
		}
		if isComplete && (seesAll || p.hasBelow.Load()) {
			p.reported.Store(true)
		}
		if !p.reported.Load() {
			continue
		}
		message := fmt.Sprintf("%s '%s' matches no page", u.setting, p.pathPatterns[0])
		folder, isIndex := strings.CutSuffix(p.pathPatterns[0], "/index.html")
		switch {
		case p.hasBelow.Load():
			warn(message + fmt.Sprintf(", and there are some below it: write '%s*'", p.folder))
		case isIndex:
			warn(message + fmt.Sprintf(": an index file counts as its folder, '%s/'", folder))
		default:
			warn(message + ": correct or remove it")
		}
	}
}
