package sitemap

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/encode"
	"golang.org/x/net/http/httpguts"

	"github.com/seed3295b519/caddy-sitemap/internal/publish"
)

// Index is the published snapshot of a site, looked up by name and served. Publishing
// swaps one pointer; readers take no lock.
type Index struct {
	atomic.Pointer[publish.Snapshot]
}

const (
	longestAge  = time.Hour
	contentXML  = "application/xml; charset=utf-8"
	contentGzip = "application/gzip"
	contentText = "text/plain; charset=utf-8"

	// countedByServer is up to how many bytes net/http finds out the length of a body
	// itself. A response with more than eight headers costs it noticeably more.
	countedByServer = 2048
)

// writeDocument writes a document in a form, and in the encoding that the client takes. It
// returns the status. fresh is how long until the document may change.
func writeDocument(w http.ResponseWriter, r *http.Request, d *publish.Document, f publish.Form, fresh time.Duration) int {
	compressed := f == publish.FormGzip || f == publish.FormXML && slices.ContainsFunc(encode.AcceptedEncodings(r, nil), func(coding string) bool {
		return coding == "gzip" || coding == "*"
	})
	contentType, etag, encoding := contentXML, d.Headers.ETagXML, ""
	switch {
	case f == publish.FormGzip:
		contentType, etag = contentGzip, d.Headers.ETagFile
	case f == publish.FormText:
		contentType, etag = contentText, d.Headers.ETagText
	case compressed:
		etag, encoding = d.Headers.ETagGzip, "gzip"
	}
	header := w.Header()
	var control, vary string
	if header["Cache-Control"] == nil {
		control = "max-age=" + strconv.Itoa(int(min(max(fresh, 0), longestAge)/time.Second))
	}
	if f == publish.FormXML && !httpguts.HeaderValuesContainsToken(header["Vary"], "Accept-Encoding") {
		if vary = "Accept-Encoding"; header["Vary"] != nil {
			header["Vary"], vary = append(header["Vary"], vary), ""
		}
	}
	asIs := compressed && !isConditional(r.Header)
	var length, ranges string
	if asIs && (r.Method == http.MethodHead || len(d.Gzip) > countedByServer) {
		length = d.Headers.Length
	}
	if asIs && len(d.Gzip) > countedByServer {
		ranges = "bytes"
	}
	// In the order in which they are sent: net/http sorts them.
	set(header,
		"Accept-Ranges", ranges,
		"Cache-Control", control,
		"Content-Encoding", encoding,
		"Content-Length", length,
		"Content-Type", contentType,
		"Etag", etag,
		"Last-Modified", d.Headers.LastModified,
		"Vary", vary,
		"X-Robots-Tag", "noindex")
	if asIs {
		w.WriteHeader(http.StatusOK)
		if r.Method != http.MethodHead {
			_, _ = w.Write(d.Gzip) // the client is gone where this fails
		}
		return http.StatusOK
	}
	if compressed {
		return serveContent(w, r, d.Modified, bytes.NewReader(d.Gzip))
	}
	content := &stream{size: d.Size, open: d.XML}
	if f == publish.FormText {
		content = &stream{size: d.TextSize, open: d.Text}
	}
	defer content.Close()
	if r.Header["Range"] != nil {
		r = r.Clone(r.Context())
		r.Header.Del("Range") // a range of what must be decompressed costs more than all of it
	}
	return serveContent(w, r, d.Modified, content)
}

// serveContent is http.ServeContent. It returns the status.
func serveContent(w http.ResponseWriter, r *http.Request, modified time.Time, content io.ReadSeeker) int {
	recorded := caddyhttp.NewResponseRecorder(w, nil, nil)
	http.ServeContent(recorded, r, "", modified, content)
	return recorded.Status()
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

func isConditional(header http.Header) bool {
	return slices.ContainsFunc(conditions, func(name string) bool { return header[name] != nil })
}

// conditions are the headers by which a client asks for less than the whole.
var conditions = []string{"Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"}

// stream is a document that is decompressed as http.ServeContent reads it, once from its
// beginning to its end.
type stream struct {
	size   int64
	open   func() (io.ReadCloser, error)
	source io.ReadCloser
}

// Seek implements io.Seeker as far as the size is asked for.
func (s *stream) Seek(_ int64, whence int) (int64, error) {
	if whence == io.SeekEnd {
		return s.size, nil
	}
	return 0, nil
}

func (s *stream) Read(p []byte) (n int, err error) {
	if s.source == nil {
		if s.source, err = s.open(); err != nil {
			return 0, err
		}
	}
	return s.source.Read(p)
}

// Close may be called without a Read before.
func (s *stream) Close() {
	if s.source != nil {
		_ = s.source.Close()
	}
}
