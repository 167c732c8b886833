package sitemap

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp/encode"

	"github.com/seed3295b519/caddy-sitemap/internal/document"
)

const (
	longestAge  = time.Hour // of a document that a cache keeps
	contentXML  = "application/xml; charset=utf-8"
	contentGzip = "application/gzip"
	contentText = "text/plain; charset=utf-8"

	// countedByServer is the most bytes of a body for which net/http sets Content-Length itself. A response with more than eight headers
	// costs noticeably more.
	countedByServer = 2048
)

// writeDocument writes a document in a form: the one that is requested, or, for [document.FormPlain], its encoding that the client
// prefers. fresh is the time until the document may change.
func writeDocument(w http.ResponseWriter, r *http.Request, d *document.Document, f document.Form, fresh time.Duration) {
	if f == document.FormPlain && prefersGzip(r) {
		f = document.FormEncoded
	}
	setHeader(w.Header(), d, f, fresh)
	if f != document.FormEncoded && f != document.FormGzip {
		writePlain(w, r, d, f)
		return
	}
	if isConditional(r) {
		serveContent(w, r, d.Modified, bytes.NewReader(d.Gzip))
		return
	}
	// There is no condition to be met, which is what http.ServeContent is for. Of an encoded document, it says no length; of a small
	// body, net/http does, but not in response to HEAD.
	if r.Method == http.MethodHead || len(d.Gzip) > countedByServer {
		w.Header().Set("Content-Length", strconv.Itoa(len(d.Gzip)))
	}
	w.Header().Set("Last-Modified", d.Modified.Format(http.TimeFormat))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(d.Gzip) // an error means that the client is gone
	}
}

// fresh returns for how long caches may keep what is served.
func (s *site) fresh() time.Duration {
	left := s.schedule.Due().Sub(s.app.now())
	return min(max(left, 0), longestAge)
}

// setHeader sets the header of a document in a form.
func setHeader(header http.Header, d *document.Document, f document.Form, fresh time.Duration) {
	header.Set("Etag", d.ETagOf(f))
	header.Set("X-Robots-Tag", "noindex")
	if header["Cache-Control"] == nil {
		header.Set("Cache-Control", "max-age="+strconv.Itoa(int(fresh/time.Second)))
	}
	if d.Type != "" {
		header.Set("X-Content-Type-Options", "nosniff")
	}
	contentType := cmp.Or(d.Type, contentXML)
	switch f {
	case document.FormGzip:
		contentType = contentGzip
	case document.FormText:
		contentType = contentText
	case document.FormEncoded:
		header.Set("Content-Encoding", "gzip")
		fallthrough
	default:
		header.Add("Vary", "Accept-Encoding") // to that of outer handlers
	}
	header.Set("Content-Type", contentType)
}

// writePlain writes a document, which has its headers, as a client has it that takes no gzip.
func writePlain(w http.ResponseWriter, r *http.Request, d *document.Document, f document.Form) {
	open := d.Open
	size := d.Size
	if f == document.FormText {
		open = d.Text
		size = d.TextSize
	}
	content, err := open()
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	defer content.Close()
	// A server may ignore a Range (RFC 9110, section 14.2). To find one in a large document takes as long as to send all of
	// it, and a client could ask for one byte after the other.
	if r.Header["Range"] != nil {
		r = r.Clone(r.Context())
		r.Header.Del("Range")
	}
	serveContent(unadvertised{w}, r, d.Modified, &stream{content, size})
}

// prefersGzip reports whether a client prefers gzip to the document as it is, or has no preference.
func prefersGzip(r *http.Request) bool {
	for _, encoding := range encode.AcceptedEncodings(r, []string{"gzip"}) {
		if encoding == "gzip" || encoding == "identity" {
			return encoding == "gzip"
		}
	}
	return false
}

// unadvertised is a ResponseWriter that leaves out Accept-Ranges, with which [http.ServeContent] promises any range.
type unadvertised struct{ http.ResponseWriter }

// WriteHeader implements [http.ResponseWriter].
func (u unadvertised) WriteHeader(status int) {
	u.Header().Del("Accept-Ranges")
	u.ResponseWriter.WriteHeader(status)
}

// serveContent is [http.ServeContent] for clients whose clock, or ours, may have been ahead.
func serveContent(w http.ResponseWriter, r *http.Request, modified time.Time, content io.ReadSeeker) {
	// A date that is yet to come, as of a clock that was ahead, says nothing of what the client has, unless it is ours.
	since, err := http.ParseTime(r.Header.Get("If-Modified-Since"))
	if err == nil && since.After(time.Now()) && !since.Equal(modified) {
		r = r.Clone(r.Context())
		r.Header.Del("If-Modified-Since")
	}
	http.ServeContent(w, r, "", modified, content)
}

// conditions are the headers by which a client asks for less than the whole.
var conditions = []string{"Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"}

// isConditional reports whether a request has one of the conditions.
func isConditional(r *http.Request) bool {
	return slices.ContainsFunc(conditions, func(name string) bool { return r.Header[name] != nil })
}

// stream is a document that is read once, from beginning to end, and has a size, for which [http.ServeContent] asks.
type stream struct {
	io.Reader
	size int64
}

// Seek implements [io.Seeker].
func (s *stream) Seek(_ int64, whence int) (int64, error) {
	if whence == io.SeekEnd {
		return s.size, nil
	}
	return 0, nil
}
