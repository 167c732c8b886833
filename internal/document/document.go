// Package document makes the documents of a site from its listed pages: shards that stay put, indexes, sections, pages for
// people, a feed, a news sitemap, llms.txt and stylesheets. It finds them by name in a [Set].
package document

import (
	"bytes"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
)

// Document is one finished document: an index, a urlset, or a file beside these. It never changes.
type Document struct {
	Name     string    `json:"-"`                   // see Names
	Section  string    `json:"-"`                   // whose pages a shard lists, by its name; "": of none
	Gzip     []byte    `json:"-"`                   // what it is, compressed
	Size     int64     `json:"size"`                // bytes of that, decompressed
	TextSize int64     `json:"text_size,omitempty"` // bytes of the URLs of a urlset, one a line
	ETag     string    `json:"etag"`                // without quotes; equal ones of one Name mean equal bytes
	Modified time.Time `json:"modified"`            // when ETag last changed, in whole seconds (UTC)

	Type string `json:"type,omitempty"` // of a file, for Content-Type; "": XML

	Pages      int    `json:"pages,omitempty"`   // of a urlset
	First      string `json:"first,omitempty"`   // path of the first page
	LastMod    int64  `json:"lastmod,omitempty"` // the latest of all entries, as in page.Page
	LastModDay bool   `json:"day,omitempty"`
}

// Form is a form in which a document is sent.
type Form uint8

// The forms.
const (
	FormPlain   Form = iota // as it is
	FormEncoded             // as it is, with Content-Encoding gzip
	FormGzip                // a compressed file
	FormText                // the URLs of a urlset, one a line
)

// ETagOf returns the entity tag of a form, in quotes: each has its own. None ends like those that Caddy's encode handler makes,
// which would strip the ending.
func (d *Document) ETagOf(f Form) string {
	endings := [...]string{FormPlain: "", FormEncoded: ".z", FormGzip: ".f", FormText: ".t"}
	return `"` + d.ETag + endings[f] + `"`
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
		err := writeText(w, xml)
		_ = xml.Close()
		w.CloseWithError(err)
	}()
	return r, nil
}

// Lists reports whether a urlset lists a URL.
func (d *Document) Lists(url string) (bool, error) {
	xml, err := d.Open()
	if err != nil {
		return false, err
	}
	defer xml.Close()
	for loc, err := range locs(xml) {
		if err != nil || string(loc) == url {
			return err == nil, err
		}
	}
	return false, nil
}

// gzipLevel is the compression level of documents. Against level 5 it takes up to a quarter more time and makes 2 to 21%
// fewer bytes, the more the likelier pages changed together; level 7 takes twice the time. A shard is compressed once,
// and then held in memory and sent many times.
const gzipLevel = 6

// A gzip.Writer holds over a megabyte of tables.
var gzipWriters = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(io.Discard, gzipLevel)
	if err != nil {
		panic(err) // the level is no valid one
	}
	return w
}}

// compress returns a body compressed. Equal bytes give equal output: the header has neither a time nor a name.
func compress(body []byte) []byte {
	w := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(w)
	var packed bytes.Buffer
	w.Reset(&packed)
	w.ModTime = time.Unix(0, 0) // none (RFC 1952, section 2.3.1); time.Time's zero value would be one in 2042
	for piece := range slices.Chunk(body, 64<<10) {
		_, _ = w.Write(piece) // a buffer returns no errors
		runtime.Gosched()     // requests go first
	}
	_ = w.Close()
	w.Reset(io.Discard) // do not keep the buffer alive
	return bytes.Clone(packed.Bytes())
}
