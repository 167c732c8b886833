package publish

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/seed3295b519/caddy-sitemap/internal/sitemapxml"
	"github.com/seed3295b519/caddy-sitemap/internal/webpage"
)

// Document is one finished document: an index, a urlset, or a file beside these. It never changes.
type Document struct {
	Suffix   string    `json:"-"`                   // of its name: see ParseName; "": the index
	Index    bool      `json:"index,omitempty"`     // it lists shards
	Gzip     []byte    `json:"-"`                   // what it is, compressed
	Size     int64     `json:"size"`                // bytes of that, decompressed
	TextSize int64     `json:"text_size,omitempty"` // bytes of the URLs of a urlset, one a line
	ETag     string    `json:"etag"`                // without quotes
	Modified time.Time `json:"modified"`            // when ETag last changed, in whole seconds (UTC)
	Headers  Headers   `json:"-"`

	Type   string `json:"type,omitempty"`   // of a file, for Content-Type; "": XML
	Policy string `json:"policy,omitempty"` // for Content-Security-Policy; "": none is needed

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
	ETagXML      string // of FormXML and FormFile as they are
	ETagGzip     string // of these with Content-Encoding gzip
	ETagFile     string // of FormGzip
	ETagText     string // of FormText
}

// Section returns the name of the section whose pages the document lists; "": of none, or of all.
func (d *Document) Section() string { return SectionOf(d.Suffix) }

// IsNews reports whether the document, which may be nil, is the news sitemap. A section of that name, as there may be
// without news, has pages.
func (d *Document) IsNews() bool {
	return d != nil && d.Suffix == webpage.NewsSitemap && d.Pages == 0 && !d.Index
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

var gzipReaders = sync.Pool{New: func() any { return new(gzip.Reader) }} // each holds 32 KiB

// pooledReader is a reader of gzipReaders, to which it returns once.
type pooledReader struct{ *gzip.Reader }

func (p *pooledReader) Close() error {
	if p.Reader != nil {
		gzipReaders.Put(p.Reader)
		p.Reader = nil
	}
	return nil
}

// Open returns what the document is, decompressed. The reader must be closed, and not be used thereafter.
func (d *Document) Open() (io.ReadCloser, error) {
	z := gzipReaders.Get().(*gzip.Reader)
	if err := z.Reset(bytes.NewReader(d.Gzip)); err != nil {
		return nil, err
	}
	return &pooledReader{z}, nil
}

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
