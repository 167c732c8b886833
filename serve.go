package sitemap

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/seed3295b519/caddy-sitemap/internal/sitemapxml"
)

// headers are a document's headers in the form that a response takes.
type headers struct {
	lastModified string
	length       string // of the gzip bytes

	// An entity tag for each encoding and form. None ends as those do that Caddy's
	// encode handler makes, since it would cut the end off.
	etag, etagGzip, etagFile, etagText string
}

func (d *document) setHeaders() {
	d.headers = headers{
		lastModified: d.modified.Format(http.TimeFormat),
		length:       strconv.Itoa(len(d.gzip)),
		etag:         `"` + d.etag + `"`,
		etagGzip:     `"` + d.etag + `.z"`,
		etagFile:     `"` + d.etag + `.f"`,
		etagText:     `"` + d.etag + `.t"`,
	}
}

// countedByServer is up to how many bytes net/http finds out the length of a body
// itself. A response with more than eight headers costs it noticeably more.
const countedByServer = 2048

// serveGzip writes the document as it lies in memory, and returns the status.
func serveGzip(w http.ResponseWriter, r *http.Request, d *document) int {
	if hasCondition(r.Header) {
		return serveContent(w, r, d.modified, bytes.NewReader(d.gzip))
	}
	switch {
	case len(d.gzip) > countedByServer:
		set(w.Header(), "Content-Length", d.headers.length, "Accept-Ranges", "bytes")
	case r.Method == http.MethodHead:
		set(w.Header(), "Content-Length", d.headers.length)
	}
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		// The client is gone where this fails.
		_, _ = w.Write(d.gzip)
	}
	return http.StatusOK
}

// serveContent is http.ServeContent. It returns the status.
func serveContent(w http.ResponseWriter, r *http.Request, modified time.Time, content io.ReadSeeker) int {
	if !hasCondition(r.Header) {
		http.ServeContent(w, r, "", modified, content)
		return http.StatusOK
	}
	watched := watch(w)
	http.ServeContent(watched, r, "", modified, content)
	return watched.status
}

func hasCondition(header http.Header) bool {
	for _, name := range [...]string{"Range", "If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range"} {
		if _, ok := header[name]; ok {
			return true
		}
	}
	return false
}

// serveStream writes what open makes of the document, as it is decompressed. It returns
// the status.
func serveStream(w http.ResponseWriter, r *http.Request, d *document, size int64, open func(*document) (io.ReadCloser, error)) int {
	if strings.Contains(r.Header.Get("Range"), ",") {
		// Each of several ranges could mean to decompress it all again; RFC 9110,
		// section 14.2, lets a server ignore them.
		r = r.Clone(r.Context())
		r.Header.Del("Range")
	}
	content := &stream{document: d, size: size, open: open}
	defer content.Close()
	return serveContent(w, r, d.modified, content)
}

// stream is an io.ReadSeeker over something that can only be read from its
// beginning.
type stream struct {
	document *document
	size     int64
	open     func(*document) (io.ReadCloser, error)

	at     int64 // where the next byte is wanted from
	source io.ReadCloser
	passed int64 // bytes read from source
}

func (s *stream) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += s.at
	case io.SeekEnd:
		offset += s.size
	}
	if offset < 0 {
		return 0, errors.New("seeking before the beginning")
	}
	s.at = offset
	return offset, nil
}

func (s *stream) Read(p []byte) (int, error) {
	if s.source != nil && s.passed > s.at {
		s.Close()
	}
	if s.source == nil {
		source, err := s.open(s.document)
		if err != nil {
			return 0, err
		}
		s.source, s.passed = source, 0
	}
	if skip := s.at - s.passed; skip > 0 {
		n, err := io.CopyN(io.Discard, s.source, skip)
		s.passed += n
		if err != nil {
			return 0, err
		}
	}
	n, err := s.source.Read(p)
	s.at += int64(n)
	s.passed = s.at
	return n, err
}

func (s *stream) Close() {
	if s.source != nil {
		_ = s.source.Close()
		s.source = nil
	}
}

// A gzip.Reader holds a window of 32 KiB.
var gzipReaders sync.Pool

type xmlReader struct{ *gzip.Reader }

// openXML decompresses the document.
func openXML(d *document) (io.ReadCloser, error) {
	if z, ok := gzipReaders.Get().(*gzip.Reader); ok {
		return xmlReader{z}, z.Reset(bytes.NewReader(d.gzip))
	}
	z, err := gzip.NewReader(bytes.NewReader(d.gzip))
	return xmlReader{z}, err
}

func (x xmlReader) Close() error {
	gzipReaders.Put(x.Reader)
	return nil
}

// openText makes a list of URLs of the document, one a line.
func openText(d *document) (io.ReadCloser, error) {
	xml, err := openXML(d)
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	go func() {
		// Closing r ends the writing.
		_, err := sitemapxml.WriteText(w, xml)
		_ = xml.Close()
		w.CloseWithError(err)
	}()
	return r, nil
}
