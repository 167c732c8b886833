// Package page holds the one type that every part of caddy-sitemap speaks: a
// page of a site, with how its path is written, ordered, matched and scoped.
package page

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MaxLoc is the longest URL that a sitemap may list, in bytes: the protocol
// asks for less than 2,048 characters (https://www.sitemaps.org/protocol.html).
const MaxLoc = 2047

// Page is one URL of a site and what is known of it.
type Page struct {
	// Path is the page's path on the site with its query, if it has one,
	// percent-encoded as [Canonical] and [AppendEscaped] write it. It begins
	// with a slash and holds neither scheme nor host.
	Path string

	// LastMod is when the page last changed, in Unix seconds (UTC). 0: not known.
	LastMod int64

	// LastModDay says that only the day of LastMod is known.
	LastModDay bool

	// ChangeFreq is how often the page changes. The zero value: not said.
	ChangeFreq ChangeFreq

	// Priority is the page's weight within its site. The zero value: not said.
	Priority Priority

	// Version tells states of the file that a page is read from apart. 0: no
	// file is known.
	Version uint32

	// Discovered says that nobody names the page but its visitors and the links of
	// other pages.
	Discovered bool

	// Visited says that only visitors showed the page.
	Visited bool

	// Extensions is what else the page's entry says. Nil: nothing.
	Extensions *Extensions
}

// Merge fills what p does not know from o, another source's view of the same
// page. Of two known modification times the later one is kept.
func (p *Page) Merge(o Page) {
	if o.LastMod > p.LastMod {
		p.LastMod, p.LastModDay = o.LastMod, o.LastModDay
	}
	if p.ChangeFreq == 0 {
		p.ChangeFreq = o.ChangeFreq
	}
	if p.Priority == 0 {
		p.Priority = o.Priority
	}
	if p.Version == 0 {
		p.Version = o.Version
	}
	if p.Extensions == nil {
		p.Extensions = o.Extensions
	}
	p.Discovered = p.Discovered && o.Discovered
	p.Visited = p.Visited && o.Visited
}

// Compare orders pages by the bytes of their paths.
func Compare(a, b Page) int { return strings.Compare(a.Path, b.Path) }

// ChangeFreq is a page's change frequency, one of the protocol's seven.
type ChangeFreq uint8

var changeFreqs = [...]string{"", "always", "hourly", "daily", "weekly", "monthly", "yearly", "never"}

// ChangeFreqs are the seven frequencies by name, the most frequent first.
func ChangeFreqs() []string { return changeFreqs[1:] }

// ParseChangeFreq reads one of the names of [ChangeFreqs]; they are lower-case.
func ParseChangeFreq(s string) (ChangeFreq, error) {
	for i, name := range changeFreqs {
		if i > 0 && s == name {
			return ChangeFreq(i), nil
		}
	}
	return 0, fmt.Errorf("'%s' is no change frequency: use one of %s", s, strings.Join(changeFreqs[1:], ", "))
}

// String is the frequency's name, "" for the zero value and for what is none.
func (c ChangeFreq) String() string {
	if int(c) >= len(changeFreqs) {
		return ""
	}
	return changeFreqs[c]
}

// Priority is a page's weight within its site, 0.0 to 1.0, in hundredths plus
// one, so that the zero value means that nothing is said.
type Priority uint8

var errPriority = errors.New("a priority is a number from 0.0 to 1.0")

// ParsePriority reads a decimal number from 0.0 to 1.0; digits after the second
// decimal place are rounded.
func ParsePriority(s string) (Priority, error) {
	if strings.Trim(s, "0123456789.") != "" {
		return 0, fmt.Errorf("'%s': %w", s, errPriority)
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, fmt.Errorf("'%s': %w", s, errPriority)
	}
	return PriorityOf(f)
}

// PriorityOf is the Priority of a number from 0.0 to 1.0.
func PriorityOf(f float64) (Priority, error) {
	if !(f >= 0 && f <= 1) {
		return 0, fmt.Errorf("'%v': %w", f, errPriority)
	}
	return Priority(math.Round(f*100)) + 1, nil
}

// String is the priority as the protocol writes it, such as "0.5", and "" for
// the zero value and for what is none.
func (p Priority) String() string {
	if p == 0 || p > 101 {
		return ""
	}
	n := int(p) - 1
	if n%10 == 0 {
		return strconv.Itoa(n/100) + "." + strconv.Itoa(n/10%10)
	}
	return strconv.Itoa(n/100) + "." + string([]byte{byte('0' + n/10%10), byte('0' + n%10)})
}
