package option

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Checker validates settings and keeps the first error in Err.
type Checker struct{ Err error }

// Note keeps an error, which may be nil.
func (c *Checker) Note(err error) { c.Err = cmp.Or(c.Err, err) }

// Refuse notes an error, formatted by [fmt.Errorf], if wrong is true.
func (c *Checker) Refuse(wrong bool, format string, args ...any) {
	if wrong {
		c.Note(fmt.Errorf(format, args...))
	}
}

// Choose returns the index of value in words; of "", 0. It refuses other values.
func (c *Checker) Choose(setting, value string, words ...string) int {
	i := slices.Index(words, cmp.Or(value, words[0]))
	c.Refuse(i < 0, "%s is '%s': use one of %s", setting, value, strings.Join(words, ", "))
	return i
}

// InRange returns n, or byDefault if n is 0. It refuses numbers below 1 and above most.
func (c *Checker) InRange(setting string, n, byDefault, most int) int {
	n = cmp.Or(n, byDefault)
	c.Refuse(n < 1 || n > most, "%s is %d: use 1 to %d", setting, n, most)
	return n
}
