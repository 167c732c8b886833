package option

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Checker checks settings, and keeps the first error.
type Checker struct{ Err error }

// Note keeps an error; nil: there is none.
func (c *Checker) Note(err error) { c.Err = cmp.Or(c.Err, err) }

// Refuse notes an error where something is wrong.
func (c *Checker) Refuse(wrong bool, format string, args ...any) {
	if wrong {
		c.Note(fmt.Errorf(format, args...))
	}
}

// Choose returns which of some words a setting is; empty: the first.
func (c *Checker) Choose(setting, value string, words ...string) int {
	i := slices.Index(words, cmp.Or(value, words[0]))
	c.Refuse(i < 0, "%s is '%s': it is one of %s", setting, value, strings.Join(words, ", "))
	return i
}

// InRange returns a number from 1 on; 0: its default.
func (c *Checker) InRange(setting string, n, byDefault, most int) int {
	n = cmp.Or(n, byDefault)
	c.Refuse(n < 1 || n > most, "%s is %d: it is 1 to %d", setting, n, most)
	return n
}
