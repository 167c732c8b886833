package sitemapxml

import (
	"io"
	"strings"
	"time"
)

// Article is an entry of a news sitemap.
type Article struct {
	Path      string // as in [page.Page]
	Published int64  // in Unix seconds
	Day       bool   // only the day of Published is known
	Title     string // on one line, without characters that XML forbids
	Lang      string // two or three lower-case letters, "zh-cn" or "zh-tw"; "": the entry is a page without what makes it news
}

const (
	newsNamespace = `" xmlns:news="http://www.google.com/schemas/sitemap-news/0.9`

	newsOpen  = "<news:news><news:publication><news:name>"
	newsLang  = "</news:name><news:language>"
	newsDate  = "</news:language></news:publication><news:publication_date>"
	newsTitle = "</news:publication_date><news:title>"
	newsClose = "</news:title></news:news>"
)

// textEscapes are the named entities: some readers do not decode numeric ones.
var textEscapes = strings.NewReplacer("&", "&amp;", "'", "&apos;", `"`, "&quot;", "<", "&lt;", ">", "&gt;")

// News writes a news sitemap of a publication, with one entry a line, in order
// (https://developers.google.com/search/docs/crawling-indexing/sitemaps/news-sitemap):
//
//	<?xml version="1.0" encoding="UTF-8"?>
//	<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:news="http://www.google.com/schemas/sitemap-news/0.9"><!-- caddy-sitemap -->
//	<url><loc>https://example.com/a</loc><news:news><news:publication><news:name>The Example Times</news:name><news:language>en</news:language></news:publication><news:publication_date>2006-01-02T15:04:05Z</news:publication_date><news:title>A title</news:title></news:news></url>
//	</urlset>
//
// It is one of schema 0.9 whatever the Encoder's is. An entry has some 15,000 bytes at most, as long as a title has no more
// than 200 characters, so 1,000 of them are far from the protocol's bound.
func (e Encoder) News(w io.Writer, publication string, articles []Article) (size int64, err error) {
	b := []byte(declaration + e.stylesheet() + urlSetOpen + Schema09.Namespace() + newsNamespace + rootEnd)
	name := textEscapes.Replace(publication)
	for _, a := range articles {
		b = append(b, urlOpen...)
		b = appendURL(b, e.Base)
		b = appendURL(b, a.Path)
		b = append(b, locClose...)
		if a.Lang != "" {
			b = a.appendNews(b, name)
		}
		b = append(b, urlClose...)
	}
	n, err := w.Write(append(b, urlSetClose...))
	return int64(n), err
}

// appendNews appends what makes the page of an entry news. publication is XML text.
func (a Article) appendNews(b []byte, publication string) []byte {
	b = append(b, newsOpen...)
	b = append(b, publication...)
	b = append(b, newsLang...)
	b = append(b, a.Lang...)
	b = append(b, newsDate...)
	b = a.appendDate(b)
	b = append(b, newsTitle...)
	b = append(b, textEscapes.Replace(a.Title)...)
	return append(b, newsClose...)
}

func (a Article) appendDate(b []byte) []byte {
	form := time.RFC3339
	if a.Day {
		form = time.DateOnly
	}
	return time.Unix(a.Published, 0).UTC().AppendFormat(b, form)
}
