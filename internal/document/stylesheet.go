package document

import (
	"fmt"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// columns makes the stylesheet with which browsers show the XML as a table. It has a column for each thing that pages have: a selector
// that looks for them in 50,000 rows would take seconds.
type columns struct {
	*builder
	dates, changeFreqs, priorities bool
}

func (c *columns) add(p page.Page, _ string) {
	if !c.dates {
		_, c.dates = dateOf(p.LastMod)
	}
	c.changeFreqs = c.changeFreqs || p.ChangeFreq != 0
	c.priorities = c.priorities || p.Priority != 0
}

func (c *columns) finish() {
	ofSite := ""
	if c.dates {
		ofSite += "--lastmod: 11.5ch; --dates: \" Last\\2005 change\";\n" // the space in it is not stretched
	}
	if c.changeFreqs {
		ofSite += "--changefreq: 6rem;\n"
	}
	if c.priorities {
		ofSite += "--priority: 7rem;\n"
	}
	if c.People != nil {
		ofSite += "--people: " + quoteCSS("\nFor people: "+c.Sitemap+HTML) + ";\n"
	}
	c.file(Stylesheet, "text/css", []byte(sitemapStyle+"\n:root {\n"+ofSite+"}\n"))
}

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
