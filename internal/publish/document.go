package publish

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/seed3295b519/caddy-sitemap/internal/sitemapxml"
)

// Document is one finished document: an index, a urlset, or a file beside these. It never changes.
type Document struct {
	Name     string    `json:"-"`                   // see Names
	Section  string    `json:"-"`                   // whose pages it lists, by its name; "": of none, or of all
	Index    bool      `json:"index,omitempty"`     // it lists shards
	Gzip     []byte    `json:"-"`                   // what it is, compressed
	Size     int64     `json:"size"`                // bytes of that, decompressed
	TextSize int64     `json:"text_size,omitempty"` // bytes of the URLs of a urlset, one a line
	ETag     string    `json:"etag"`                // without quotes
	Modified time.Time `json:"modified"`            // when ETag last changed, in whole seconds (UTC)
	Headers  Headers   `json:"-"`

	Type string `json:"type,omitempty"` // of a file, for Content-Type; "": XML

	Pages      int    `json:"pages,omitempty"`   // of a urlset
	First      string `json:"first,omitempty"`   // path of the first page; of the index of a section, too
	LastMod    int64  `json:"lastmod,omitempty"` // the latest of all entries, as in page.Page
	LastModDay bool   `json:"day,omitempty"`
}

// Headers are the values of a document's response headers. Each form and encoding has its own entity tag. None ends
// like those that Caddy's encode handler makes, which would strip the ending.
type Headers struct {
	LastModified string
	Length       string // of Document.Gzip
	ETagXML      string // of FormPlain as it is
	ETagGzip     string // of that with Content-Encoding gzip
	ETagFile     string // of FormGzip
	ETagText     string // of FormText
}

func (d *Document) setHeaders() {
	d.Headers = Headers{
		LastModified: d.Modified.Format(http.TimeFormat),
		Length:       strconv.Itoa(len(d.Gzip)),
		ETagXML:      `"` + d.ETag + `"`,
		ETagGzip:     `"` + d.ETag + `.z"`,
		ETagFile:     `"` + d.ETag + `.f"`,
		ETagText:     `"` + d.ETag + `.t"`,
	}
}

// Open returns what the document is, decompressed.
func (d *Document) Open() (io.ReadCloser, error) { return gzip.NewReader(bytes.NewReader(d.Gzip)) }

// Text lists the URLs of a urlset, one a line. The reader must be closed: that ends its goroutine.
func (d *Document) Text() (io.ReadCloser, error) {
	xml, err := d.Open()
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	go func() {
		err := sitemapxml.WriteText(w, xml)
		_ = xml.Close()
		w.CloseWithError(err)
	}()
	return r, nil
}
