package document

// columns makes the stylesheet with which browsers show the XML as a table. It has a column for each thing that pages have: a selector
// that looks for them in 50,000 rows would take seconds.
type columns struct {
	*builder
	dates, changeFreqs, priorities bool
}

func (c *columns) add(p listed) {
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
		// In quotes, no character of a URL means anything but itself (https://www.w3.org/TR/CSS2/syndata.html#strings).
		ofSite += `--people: "\00000aFor people: ` + c.Sitemap + HTML + "\";\n"
	}
	c.file(Stylesheet, "text/css", []byte(sitemapStyle+"\n:root {\n"+ofSite+"}\n"))
}
