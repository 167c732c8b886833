package crawl

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// DefaultDisallow are the words of paths that are not fetched unless a source names
// them: a GET of such a path may do something.
func DefaultDisallow() []string {
	return []string{"logout", "logoff", "signout", "unsubscribe", "cart", "basket", "checkout", "confirm", "verify", "delete", "add", "remove"}
}

// Disallow are words and patterns of paths that are not fetched.
type Disallow struct {
	words    []disallowed
	patterns []disallowed
}

type disallowed struct {
	as      string // as it was given
	letters string // of a word, in lower case, without what separates its parts
	pattern page.Patterns
}

// ParseDisallow reads words and patterns. What has a slash or an asterisk is a pattern
// as in Caddy's path matcher. A word matches whole words in a segment of a path, in any
// case, also where it is written in parts: logout matches /log-out, /users/LogOut.php
// and /log_out/now, and add matches /add-to-cart, but not /address.
func ParseDisallow(words []string) (*Disallow, error) {
	d := new(Disallow)
	for _, word := range words {
		if strings.ContainsAny(word, "/*") {
			patterns, err := page.CompilePatterns([]string{word})
			switch {
			case err != nil:
				return nil, fmt.Errorf("pattern '%s': %w", word, err)
			case word[0] != '/' && word[0] != '*':
				return nil, fmt.Errorf("pattern '%s' matches nothing: it must begin with '/' or '*'", word)
			}
			d.patterns = append(d.patterns, disallowed{as: word, pattern: patterns})
			continue
		}
		letters := strings.Join(wordsOf(page.Unescape(word)), "")
		if letters == "" {
			return nil, errors.New("a word needs a letter or a digit")
		}
		d.words = append(d.words, disallowed{as: word, letters: letters})
	}
	return d, nil
}

// Match returns the word or pattern, as it was given, that matches a path; "": none.
// The query plays no part.
func (d *Disallow) Match(path string) string {
	path, _, _ = strings.Cut(path, "?")
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "" || len(d.words) == 0 {
			continue
		}
		parts := wordsOf(page.Unescape(segment))
		for _, word := range d.words {
			if containsWord(parts, word.letters) {
				return word.as
			}
		}
	}
	i := slices.IndexFunc(d.patterns, func(p disallowed) bool { return p.pattern.Match(path) })
	if i < 0 {
		return ""
	}
	return d.patterns[i].as
}

// wordsOf splits a segment where letters and digits end, and before a capital letter
// that follows a small one. The words are in lower case.
func wordsOf(segment string) []string {
	var words []string
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			words = append(words, word.String())
			word.Reset()
		}
	}
	small := false
	for _, c := range segment {
		isWord := unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.IsMark(c)
		if !isWord || small && unicode.IsUpper(c) {
			end()
		}
		if isWord {
			word.WriteRune(unicode.ToLower(c))
		}
		small = unicode.IsLower(c)
	}
	end()
	return words
}

// containsWord reports whether a run of words makes up a word.
func containsWord(words []string, word string) bool {
	for i := range words {
		rest := word
		for j := i; j < len(words) && rest != ""; j++ {
			after, ok := strings.CutPrefix(rest, words[j])
			if !ok {
				break
			}
			rest = after
		}
		if rest == "" {
			return true
		}
	}
	return false
}
