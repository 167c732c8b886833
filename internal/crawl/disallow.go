package crawl

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// DefaultDisallow are the words of paths that are not fetched unless a source names them: a GET of such a
// path may do something.
func DefaultDisallow() []string {
	return []string{"logout", "logoff", "signout", "unsubscribe", "cart", "basket", "checkout", "confirm", "verify", "delete", "add", "remove"}
}

// Disallow are words and patterns of paths that are not fetched.
type Disallow struct {
	names []string       // words and patterns, as they were given
	words *regexp.Regexp // with a group for each word; nil: none
	globs []page.Patterns
}

// ParseDisallow reads words and patterns. What has a slash or an asterisk is a pattern as in Caddy's path
// matcher. A word matches whole words in a segment of a path, in any case, also where it is written in
// parts: logout matches /log-out, /users/LogOut.php and /log_out/now, and add matches /add-to-cart, but not
// /address.
func ParseDisallow(words []string) (*Disallow, error) {
	d, groups := new(Disallow), []string(nil)
	var patterns []string
	for _, word := range words {
		if !strings.ContainsAny(word, "/*") {
			letters := strings.FieldsFunc(page.Unescape(word), func(c rune) bool { return !unicode.In(c, unicode.L, unicode.N, unicode.M) })
			if len(letters) == 0 {
				return nil, fmt.Errorf("'%s' is no word: it needs a letter or a digit", word)
			}
			group := strings.Join(strings.Split(strings.Join(letters, ""), ""), separator+"*")
			d.names, groups = append(d.names, word), append(groups, "("+group+")")
			continue
		}
		glob, err := page.CompilePatterns([]string{word})
		switch {
		case err != nil:
			return nil, fmt.Errorf("pattern '%s': %w", word, err)
		case word[0] != '/' && word[0] != '*':
			return nil, fmt.Errorf("pattern '%s' matches nothing: it must begin with '/' or '*'", word)
		}
		patterns, d.globs = append(patterns, word), append(d.globs, glob)
	}
	d.names = append(d.names, patterns...)
	if groups == nil {
		return d, nil
	}
	var err error
	d.words, err = regexp.Compile("(?i)(?:/|" + separator + ")(?:" + strings.Join(groups, "|") + ")(?:$|/|" + separator + ")")
	return d, err
}

// separator is what separates the words of a segment.
const separator = `[^/\pL\pN\pM]`

// Match returns the word or pattern, as it was given, that matches a path; "": none. The query plays no
// part.
func (d *Disallow) Match(path string) string {
	path, _, _ = strings.Cut(path, "?")
	words := 0
	if d.words != nil {
		words = d.words.NumSubexp()
		groups := d.words.FindStringSubmatchIndex(page.Unescape(path))
		for i := range len(groups) / 2 {
			if i > 0 && groups[2*i] >= 0 {
				return d.names[i-1]
			}
		}
	}
	for i, glob := range d.globs {
		if glob.Match(path) {
			return d.names[words+i]
		}
	}
	return ""
}
