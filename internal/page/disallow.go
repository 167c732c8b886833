package page

import (
	"fmt"
	"strings"
	"unicode"
)

// DefaultDisallow are the words of paths that are not fetched unless a source names them: a GET of such a
// path may do something.
func DefaultDisallow() []string {
	return []string{"logout", "logoff", "signout", "unsubscribe", "cart", "basket", "checkout", "confirm", "verify", "delete", "add", "remove"}
}

// Disallow are words and patterns of paths that are not fetched.
type Disallow struct {
	words   map[string]string // as given, by their letters in lower case
	longest int               // bytes of such letters
	globs   []glob
}

type glob struct {
	pattern string
	Patterns
}

// ParseDisallow reads words and patterns. What has a slash or an asterisk is a pattern as in Caddy's path
// matcher. A word matches whole words in a segment of a path, in any case, also where it is written in
// parts: logout matches /log-out, /users/LogOut.php and /log_out/now, and add matches /add-to-cart, but not
// /address.
func ParseDisallow(words []string) (*Disallow, error) {
	d := &Disallow{words: make(map[string]string)}
	for _, word := range words {
		if !strings.ContainsAny(word, "/*") {
			letters := strings.Join(wordsOf(word), "")
			if letters == "" {
				return nil, fmt.Errorf("'%s' is no word: it needs a letter or a digit", word)
			}
			d.words[letters], d.longest = word, max(d.longest, len(letters))
			continue
		}
		patterns, err := CompilePatterns([]string{word})
		switch {
		case err != nil:
			return nil, fmt.Errorf("pattern '%s': %w", word, err)
		case word[0] != '/' && word[0] != '*':
			return nil, fmt.Errorf("pattern '%s' matches nothing: it must begin with '/' or '*'", word)
		}
		d.globs = append(d.globs, glob{word, patterns})
	}
	return d, nil
}

// wordsOf returns the words of a segment, in lower case.
func wordsOf(segment string) []string {
	return strings.FieldsFunc(strings.ToLower(Unescape(segment)), func(c rune) bool { return !unicode.In(c, unicode.L, unicode.N, unicode.M) })
}

// Match returns the word or pattern, as it was given, that matches a path; "": none. The query plays no
// part.
func (d *Disallow) Match(path string) string {
	path, _, _ = strings.Cut(path, "?")
	for segment := range strings.SplitSeq(path, "/") {
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
	for _, glob := range d.globs {
		if glob.Match(path) {
			return glob.pattern
		}
	}
	return ""
}
