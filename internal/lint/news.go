package lint

import (
	"encoding/xml"
	"regexp"
	"time"
)

const (
	spaceNews = "http://www.google.com/schemas/sitemap-news/0.9"
	maxNews   = 1000           // of a document
	newsFor   = 48 * time.Hour // after which an article is no news any more
)

// newsLanguage is the pattern of the schema.
var newsLanguage = regexp.MustCompile(`^(zh-cn|zh-tw|[a-z]{2,3})$`)

// newsElement is what makes a page news
// (https://developers.google.com/search/docs/crawling-indexing/sitemaps/news-sitemap).
type newsElement struct {
	Name     string `xml:"publication>name"`
	Language string `xml:"publication>language"`
	Date     string `xml:"publication_date"`
	Title    string `xml:"title"`
}

// declaresNews reports whether a root element declares the namespace of news. Such a document lists pages that another
// one may list, too.
func declaresNews(root xml.StartElement) bool {
	for _, a := range root.Attr {
		if a.Name.Space == "xmlns" && a.Value == spaceNews {
			return true
		}
	}
	return false
}

// checkNews checks what makes the page of an entry news.
func (d *document) checkNews(all []newsElement) {
	if len(all) == 0 {
		return
	}
	if len(all) > 1 {
		d.add(Error, "repeated-element", "the entry has more than one news:news")
	}
	d.news++
	if d.news == maxNews+1 { // once a document
		d.add(Error, "too-many-news", "has more than 1,000 news:news")
	}
	n := all[0]
	language := trim(n.Language)
	date := trim(n.Date)
	isWhole := trim(n.Name) != "" && trim(n.Title) != "" && language != "" && date != ""
	if !isWhole {
		d.add(Error, "missing-element",
			"news:news needs a publication with name and language, a publication_date and a title")
	}
	if language != "" && !newsLanguage.MatchString(language) {
		d.add(Error, "news-language",
			"news:language %q is not a language of ISO 639 such as en, nor zh-cn or zh-tw", language)
	}
	if date != "" {
		d.checkNewsDate(date)
	}
}

func (d *document) checkNewsDate(date string) {
	begins, ends, err := parseNewsDate(date)
	if err != nil {
		d.add(Error, "news-date",
			"news:publication_date %q is not a date such as 2024-05-01 or 2024-05-01T10:20:30Z", date)
		return
	}
	if d.now.Sub(ends) > newsFor {
		d.add(Warning, "news-old",
			"news:publication_date %q is more than two days ago: remove the entry, or its news:news", date)
	} else if begins.Sub(d.now) > time.Hour {
		d.add(Warning, "news-future", "news:publication_date %q is in the future", date)
	}
}

// parseNewsDate returns the first and the last time that a date can mean.
func parseNewsDate(date string) (begins, ends time.Time, err error) {
	if day, err := time.Parse(time.DateOnly, date); err == nil {
		// A day begins 14 hours before, and ends 12 hours after, that of UTC, somewhere.
		return day.Add(-14 * time.Hour), day.Add(36 * time.Hour), nil
	}
	at, err := time.Parse(time.RFC3339, date)
	if err != nil {
		at, err = time.Parse("2006-01-02T15:04Z07:00", date) // https://www.w3.org/TR/NOTE-datetime
	}
	return at, at, err
}
