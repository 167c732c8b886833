package sitemap

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"golang.org/x/net/http/httpguts"

	"github.com/seed3295b519/caddy-sitemap/internal/publish"
)

// Index is the published snapshot of a site, looked up by name and served. Publishing
// swaps one pointer; readers take no lock.
type Index struct {
	atomic.Pointer[publish.Snapshot]
	maxAge atomic.Pointer[maxAge]
}

const (
	longestAge  = time.Hour
	contentXML  = "application/xml; charset=utf-8"
	contentGzip = "application/gzip"
	contentText = "text/plain; charset=utf-8"
)

// serve writes a document in a form, and in the encoding that the client takes. It returns
// the status. fresh is how long until the document may change.
func (x *Index) serve(w http.ResponseWriter, r *http.Request, d *publish.Document, f publish.Form, fresh time.Duration) int {
	compressed := f == publish.FormGzip || f == publish.FormXML && acceptsGzip(r.Header)
	contentType, etag, encoding := describeDocument(d, f, compressed)
	header := w.Header()
	var control, vary string
	if _, given := header["Cache-Control"]; !given {
		control = x.cacheControl(fresh)
	}
	if f == publish.FormXML {
		switch {
		case header["Vary"] == nil:
			vary = "Accept-Encoding"
		case !httpguts.HeaderValuesContainsToken(header["Vary"], "Accept-Encoding"):
			header["Vary"] = append(header["Vary"], "Accept-Encoding")
		}
	}
	// In the order in which they are sent: net/http sorts them.
	set(header,
		"Cache-Control", control,
		"Content-Encoding", encoding,
		"Content-Type", contentType,
		"Etag", etag,
		"Last-Modified", d.Headers.LastModified,
		"Vary", vary,
		"X-Robots-Tag", "noindex")
	switch {
	case compressed:
		return serveGzip(w, r, d)
	case f == publish.FormText:
		return serveStream(w, r, d, d.TextSize, d.Text)
	}
	return serveStream(w, r, d, d.Size, d.XML)
}

// describeDocument says what a document is in a form, and compressed or not.
func describeDocument(d *publish.Document, f publish.Form, compressed bool) (contentType, etag, encoding string) {
	switch {
	case f == publish.FormGzip:
		return contentGzip, d.Headers.ETagFile, ""
	case f == publish.FormText:
		return contentText, d.Headers.ETagText, ""
	case compressed:
		return contentXML, d.Headers.ETagGzip, "gzip"
	}
	return contentXML, d.Headers.ETagXML, ""
}

// set sets headers, given as names in canonical form and values, with one allocation;
// those without a value are left out. The values are the response's own, since handlers
// around may change them in place.
func set(header http.Header, pairs ...string) {
	values := make([]string, len(pairs)/2)
	for i := range values {
		if value := pairs[2*i+1]; value != "" {
			values[i] = value
			header[pairs[2*i]] = values[i : i+1 : i+1]
		}
	}
}

// maxAge spares writing the same header for every request of a second.
type maxAge struct {
	seconds int
	header  string
}

// cacheControl lets a copy be used until the next refresh, an hour at most.
func (x *Index) cacheControl(fresh time.Duration) string {
	seconds := int(min(max(fresh, 0), longestAge) / time.Second)
	if last := x.maxAge.Load(); last != nil && last.seconds == seconds {
		return last.header
	}
	header := "max-age=" + strconv.Itoa(seconds)
	x.maxAge.Store(&maxAge{seconds, header})
	return header
}

// acceptsGzip reads Accept-Encoding as RFC 9110, section 12.5.3, has it.
func acceptsGzip(header http.Header) bool {
	star := false
	for _, line := range header["Accept-Encoding"] {
		for line != "" {
			var item string
			item, line, _ = strings.Cut(line, ",")
			coding, params, _ := strings.Cut(item, ";")
			switch coding = strings.TrimSpace(coding); {
			case strings.EqualFold(coding, "gzip"), strings.EqualFold(coding, "x-gzip"):
				return quality(params) > 0
			case coding == "*":
				star = quality(params) > 0
			}
		}
	}
	return star
}

// quality is the weight in parameters, 1 where there is none.
func quality(params string) float64 {
	for params != "" {
		var param string
		param, params, _ = strings.Cut(params, ";")
		key, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if strings.EqualFold(key, "q") {
			q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				return 0
			}
			return q
		}
	}
	return 1
}

// countedByServer is up to how many bytes net/http finds out the length of a body itself.
// A response with more than eight headers costs it noticeably more.
const countedByServer = 2048

// serveGzip writes the document as it lies in memory, and returns the status.
func serveGzip(w http.ResponseWriter, r *http.Request, d *publish.Document) int {
	if isConditional(r.Header) {
		return serveContent(w, r, d.Modified, bytes.NewReader(d.Gzip))
	}
	switch {
	case len(d.Gzip) > countedByServer:
		set(w.Header(), "Content-Length", d.Headers.Length, "Accept-Ranges", "bytes")
	case r.Method == http.MethodHead:
		set(w.Header(), "Content-Length", d.Headers.Length)
	}
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		// The client is gone where this fails.
		_, _ = w.Write(d.Gzip)
	}
	return http.StatusOK
}

// serveContent is http.ServeContent. It returns the status.
func serveContent(w http.ResponseWriter, r *http.Request, modified time.Time, content io.ReadSeeker) int {
	if !isConditional(r.Header) {
		http.ServeContent(w, r, "", modified, content)
		return http.StatusOK
	}
	recorded := caddyhttp.NewResponseRecorder(w, nil, nil)
	http.ServeContent(recorded, r, "", modified, content)
	return recorded.Status()
}

func isConditional(header http.Header) bool {
	for _, name := range [...]string{"Range", "If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range"} {
		if _, ok := header[name]; ok {
			return true
		}
	}
	return false
}

// serveStream writes what open makes of the document, as it is decompressed. It returns
// the status.
func serveStream(w http.ResponseWriter, r *http.Request, d *publish.Document, size int64, open func() (io.ReadCloser, error)) int {
	if strings.Contains(r.Header.Get("Range"), ",") {
		// Each of several ranges could mean to decompress it all again; RFC 9110, section
		// 14.2, lets a server ignore them.
		r = r.Clone(r.Context())
		r.Header.Del("Range")
	}
	content := &stream{size: size, open: open}
	defer content.close()
	return serveContent(w, r, d.Modified, content)
}

// stream is an io.ReadSeeker, for http.ServeContent, over something that can only be read
// from its beginning.
type stream struct {
	size   int64
	open   func() (io.ReadCloser, error)
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
		s.close()
	}
	if s.source == nil {
		source, err := s.open()
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

func (s *stream) close() {
	if s.source != nil {
		_ = s.source.Close()
		s.source = nil
	}
}
