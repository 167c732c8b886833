package sitemap

import (
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/option"
)

// maxPublication is the longest name of a publication, in bytes.
const maxPublication = 255

// News sets that a [news sitemap] is served beside the sitemap: the pages that declare that they were published within the
// last 48 hours, at most 1,000.
//
//	sitemap {
//		news "The Example Times" /politics/* /sports/*
//	}
//
// In JSON:
//
//	{"handler": "sitemap", "news": {"publication": "The Example Times", "match": ["/politics/*", "/sports/*"]}}
//
// [news sitemap]: https://developers.google.com/search/docs/crawling-indexing/sitemaps/news-sitemap
type News struct {
	// The name of the publication, as it appears on its articles in Google News, at most 255 bytes. Required. Placeholders
	// are not replaced.
	Publication string `json:"publication,omitempty"`

	// Path patterns of the pages that may be news. Those of them that declare no date of publication are counted.
	// Default: all pages.
	Match []string `json:"match,omitempty"`
}

// newsUsage is what follows the name of the option.
const newsUsage = "<publication> [<path-pattern...>]"

// unmarshalNews parses the option 'news', which has no block.
func (h *Handler) unmarshalNews(d *caddyfile.Dispenser) error {
	if h.News != nil {
		return d.Err("news is given twice")
	}
	var words []string
	err := option.Option{Name: "news", Usage: newsUsage, To: &words}.Set(d.RemainingArgs())
	if err != nil {
		return d.WrapErr(err)
	}
	h.News = &News{Publication: words[0], Match: words[1:]}
	return nil
}

// compileNews checks the option 'news'.
func (h *Handler) compileNews(c *option.Checker) {
	if h.News == nil {
		return
	}
	s := &h.settings
	name := strings.TrimSpace(h.News.Publication)
	isPattern := func(word string) bool { return strings.HasPrefix(word, "/") || strings.HasPrefix(word, "*") }
	for _, word := range h.News.Match {
		c.Refuse(!isPattern(word),
			"news: path pattern '%s' does not begin with '/' or '*': write a name of several words in quotes", word)
	}
	c.Refuse(isPattern(name), "news '%s': write the name of the publication before the path patterns", name)
	c.Refuse(name == "", "news needs the name of the publication: use 'news %s'", newsUsage)
	c.Refuse(len(name) > maxPublication,
		"news '%.50s': the name of a publication has at most %d bytes", name, maxPublication)
	c.Refuse(strings.Contains(name, "{"), "news '%s': placeholders are not replaced", name)
	c.Refuse(s.crawl.Off, "crawl is off: news needs fetched pages: remove 'crawl off', or news")
	c.Refuse(s.sections.has("news"),
		"section 'news' would have the URL of the news sitemap: give it another name, or remove news")
	c.Refuse(s.schema == document.Schema084, "schema 0.84 has no news: remove 'schema 0.84', or news")
	match := compilePatterns(c, "news", h.News.Match)
	s.beside.News = &document.NewsOf{Publication: name}
	if len(match) > 0 {
		s.beside.News.Match = match.Match
	}
}
