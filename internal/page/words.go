package page

import (
	"fmt"
	"strings"
)

// Words match the segments of paths. One matches whole words of a segment in any case, also if it is written in parts:
// logout matches /log-out, /users/LogOut.php and /log_out/now, and add matches /add-to-cart, but not /address.
type Words struct {
	given   map[string]string // by their letters in lower case
	longest int               // bytes of such letters
}

// Add adds a word.
func (w *Words) Add(word string) error {
	letters := strings.Join(wordsOf(word), "")
	if letters == "" {
		return fmt.Errorf("'%s' is not a word: it needs a letter or a digit", word)
	}
	if strings.Contains(word, ",") {
		return fmt.Errorf("'%s': a space separates words, not a comma", word)
	}
	if w.given == nil {
		w.given = make(map[string]string)
	}
	w.given[letters] = word
	w.longest = max(w.longest, len(letters))
	return nil
}

// Match returns the word, as it was given, that a normal path has; "": none. The query plays no part.
func (w *Words) Match(path string) string {
	for segment := range strings.SplitSeq(Unescape(path), "/") {
		words := wordsOf(segment)
		for i := range words {
			if word := w.matchStart(words[i:]); word != "" {
				return word
			}
		}
	}
	return ""
}

// matchStart returns the word that the first words make together; "": none. It looks no further than the longest one:
// strangers choose how many words a path has.
func (w *Words) matchStart(words []string) string {
	letters := ""
	for _, word := range words {
		if len(letters) >= w.longest {
			return ""
		}
		letters += word
		if given, ok := w.given[letters]; ok {
			return given
		}
	}
	return ""
}

// wordsOf are the words of a decoded segment, in lower case.
func wordsOf(segment string) []string {
	return strings.FieldsFunc(strings.ToLower(segment), func(c rune) bool { return !isOfWord(c) })
}
