package sitemap

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// pathPatterns match the paths of pages as Caddy's path matcher does, which it is.
type pathPatterns caddyhttp.MatchPath

// compilePatterns refuses what could never match a page: a pattern begins with a slash or
// an asterisk, and placeholders in it have no value, since there is no request.
func compilePatterns(setting string, patterns []string) (pathPatterns, error) {
	for _, p := range patterns {
		if p == "" || p[0] != '/' && p[0] != '*' {
			return nil, fmt.Errorf("%s: path pattern '%s' matches nothing: it begins with '/' or '*'", setting, p)
		}
		if strings.HasSuffix(p, ",") || strings.Contains(p, ",/") || strings.Contains(p, ",*") {
			return nil, fmt.Errorf("%s: path pattern '%s': a space separates patterns, not a comma", setting, p)
		}
		if name := bracedName.FindString(p); name != "" {
			return nil, fmt.Errorf("%s: path pattern '%s': %s has no value here", setting, p, name)
		}
		if _, err := path.Match(strings.ReplaceAll(p, "%*", "*"), ""); err != nil {
			return nil, fmt.Errorf("%s: path pattern '%s': %w", setting, p, err)
		}
	}
	compiled := caddyhttp.MatchPath(slices.Clone(patterns))
	return pathPatterns(compiled), compiled.Provision(caddy.Context{})
}

// matchRequests are what the path matcher takes, to be used again.
var matchRequests = sync.Pool{New: func() any {
	ctx := context.WithValue(context.Background(), caddy.ReplacerCtxKey, caddy.NewEmptyReplacer())
	return (&http.Request{URL: new(url.URL)}).WithContext(ctx)
}}

// Match reports whether one of the patterns matches a canonical path. Its query plays no part.
func (p pathPatterns) Match(path string) bool {
	if len(p) == 0 {
		return false
	}
	r := matchRequests.Get().(*http.Request)
	defer matchRequests.Put(r)
	r.URL.RawPath, _, _ = strings.Cut(path, "?")
	r.URL.Path = r.URL.RawPath
	if decoded, err := url.PathUnescape(r.URL.RawPath); err == nil {
		r.URL.Path = decoded
	}
	return caddyhttp.MatchPath(p).Match(r)
}

// defaultDisallow are words of paths that are not fetched unless a source names them: a GET
// of such a path may do something.
var defaultDisallow = strings.Fields("logout logoff signout unsubscribe cart basket checkout confirm verify delete add remove")

// disallowed are words and patterns of paths that are not fetched.
type disallowed struct {
	words    map[string]string // as given, by their letters in lower case
	longest  int               // bytes of such letters
	patterns pathPatterns
}

// compileDisallow reads words and patterns. What has a slash or an asterisk is a pattern. A
// word matches whole words in a segment of a path, in any case, also where it is written in
// parts: logout matches /log-out, /users/LogOut.php and /log_out/now, and add matches
// /add-to-cart, but not /address.
func compileDisallow(words []string) (*disallowed, error) {
	d := &disallowed{words: make(map[string]string)}
	var patterns []string
	for _, word := range words {
		found, letters := bracedName.FindString(word), strings.Join(wordsOf(word), "")
		switch {
		case word == "":
			return nil, errors.New("crawl disallow has an empty value")
		case found != "":
			return nil, fmt.Errorf("crawl disallow '%s': %s has no value here: placeholders are not replaced", word, found)
		case strings.ContainsAny(word, "/*"):
			patterns = append(patterns, word)
		case letters == "":
			return nil, fmt.Errorf("crawl disallow '%s' is no word: it needs a letter or a digit", word)
		default:
			d.words[letters], d.longest = word, max(d.longest, len(letters))
		}
	}
	var err error
	d.patterns, err = compilePatterns("crawl disallow", patterns)
	return d, err
}

// wordsOf are the words of a decoded segment, in lower case.
func wordsOf(segment string) []string {
	return strings.FieldsFunc(strings.ToLower(segment), func(c rune) bool { return !unicode.In(c, unicode.L, unicode.N, unicode.M) })
}

// Match returns the word or pattern that matches a path; "": none. The query plays no part.
func (d *disallowed) Match(path string) string {
	path, _, _ = strings.Cut(path, "?")
	for segment := range strings.SplitSeq(path, "/") {
		if decoded, err := url.PathUnescape(segment); err == nil {
			segment = decoded
		}
		words := wordsOf(segment)
		for i := range words {
			letters := ""
			for j := i; j < len(words) && len(letters) < d.longest; j++ {
				letters += words[j]
				if word, ok := d.words[letters]; ok {
					return word
				}
			}
		}
	}
	for i := range d.patterns {
		if d.patterns[i : i+1].Match(path) {
			return d.patterns[i]
		}
	}
	return ""
}
