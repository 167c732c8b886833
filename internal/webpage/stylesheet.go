package webpage

import (
	"fmt"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// columns are what pages have, of which a table has a column each. A selector that looks for them in 50,000 rows would
// take seconds.
type columns struct {
	Dates, ChangeFreqs, Priorities bool
	People                         string // URL of the first document for people; or ""
}

func (c *columns) add(p page.Page) {
	if !c.Dates {
		_, c.Dates = dateOf(p)
	}
	c.ChangeFreqs = c.ChangeFreqs || p.ChangeFreq != 0
	c.Priorities = c.Priorities || p.Priority != 0
}

// css is the stylesheet for XML with these columns.
func (c columns) css() string {
	const hidden = "0px"
	const none = `""`
	lastmod := hidden
	changefreq := hidden
	priority := hidden
	dates := none
	people := none
	if c.Dates {
		lastmod = "11.5ch"
		dates = `" Last\2005 change"` // the space in it is not stretched
	}
	if c.ChangeFreqs {
		changefreq = "6rem"
	}
	if c.Priorities {
		priority = "7rem"
	}
	if c.People != "" {
		people = quoteCSS("\nFor people: " + c.People)
	}
	return stylesheet + fmt.Sprintf(ofSite, lastmod, changefreq, priority, dates, people)
}

// ofSite is what a stylesheet has for one site: widths of columns, 0px where there is none, and texts.
const ofSite = `
:root {
	--lastmod: %s;
	--changefreq: %s;
	--priority: %s;
	--dates: %s;
	--people: %s;
}
`

// quoteCSS is a text as a string of CSS (https://www.w3.org/TR/CSS2/syndata.html#strings). Other characters than those
// of most URLs are escaped, so that no program between takes them for the end of anything.
func quoteCSS(text string) string {
	const plain = "-._~:/?#@!$*,;=% "
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		isWord := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		if isWord || strings.ContainsRune(plain, r) {
			b.WriteRune(r)
			continue
		}
		fmt.Fprintf(&b, `\%06x`, r) // of six digits, so that what follows is no part of it
	}
	b.WriteByte('"')
	return b.String()
}
