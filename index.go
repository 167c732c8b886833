package sitemap

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/encode"
	"golang.org/x/net/http/httpguts"

	"github.com/seed3295b519/caddy-sitemap/internal/publish"
)

const (
	longestAge  = time.Hour
	contentXML  = "application/xml; charset=utf-8"
	contentGzip = "application/gzip"
	contentText = "text/plain; charset=utf-8"

	// countedByServer is the most bytes of a body for which net/http sets Content-Length
	// itself. A response with more than eight headers costs noticeably more.
	countedByServer = 2048
)

// writeDocument writes a document in a form, and in an encoding that the client accepts. It
// returns the status. fresh is the time until the document may change.
func writeDocument(w http.ResponseWriter, r *http.Request, d *publish.Document, f publish.Form, fresh time.Duration) int {
	negotiated := f == publish.FormXML || f == publish.FormFile
	compressed := f == publish.FormGzip || negotiated && slices.ContainsFunc(encode.AcceptedEncodings(r, nil), func(coding string) bool {
		return coding == "gzip" || coding == "*"
	})
	contentType, etag, encoding, open, size := cmp.Or(d.Type, contentXML), d.Headers.ETagXML, "", d.XML, d.Size
	switch {
	case f == publish.FormGzip:
		contentType, etag = contentGzip, d.Headers.ETagFile
	case f == publish.FormText:
		contentType, etag, open, size = contentText, d.Headers.ETagText, d.Text, d.TextSize
	case compressed:
		etag, encoding = d.Headers.ETagGzip, "gzip"
	}
	header := w.Header()
	var control, vary, length, sniff string
	if f == publish.FormFile {
		sniff = "nosniff"
	}
	if header["Cache-Control"] == nil {
		control = "max-age=" + strconv.Itoa(int(min(max(fresh, 0), longestAge)/time.Second))
	}
	if negotiated && !httpguts.HeaderValuesContainsToken(header["Vary"], "Accept-Encoding") {
		if vary = "Accept-Encoding"; header["Vary"] != nil {
			header["Vary"], vary = append(header["Vary"], vary), ""
		}
	}
	asIs := compressed && !slices.ContainsFunc(conditions, func(name string) bool { return r.Header[name] != nil })
	if asIs && (r.Method == http.MethodHead || len(d.Gzip) > countedByServer) {
		length = d.Headers.Length
	}
	// The values share one allocation, but are the response's own: outer handlers may change them in place.
	fields := [...]struct{ name, value string }{
		{"Cache-Control", control},
		{"Content-Encoding", encoding},
		{"Content-Length", length},
		{"Content-Security-Policy", d.Policy},
		{"Content-Type", contentType},
		{"Etag", etag},
		{"Last-Modified", d.Headers.LastModified},
		{"Vary", vary},
		{"X-Content-Type-Options", sniff},
		{"X-Robots-Tag", "noindex"},
	}
	values := make([]string, len(fields))
	for i, field := range fields {
		if field.value != "" {
			values[i] = field.value
			header[field.name] = values[i : i+1 : i+1]
		}
	}
	switch {
	case asIs:
		w.WriteHeader(http.StatusOK)
		if r.Method != http.MethodHead {
			_, _ = w.Write(d.Gzip) // an error means that the client is gone
		}
		return http.StatusOK
	case compressed:
		return serveContent(w, r, d.Modified, bytes.NewReader(d.Gzip))
	}
	content, err := open()
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return http.StatusInternalServerError
	}
	defer content.Close()
	if r.Header["Range"] != nil {
		r = r.Clone(r.Context())
		r.Header.Del("Range") // a range of what must be decompressed costs more than all of it
	}
	return serveContent(w, r, d.Modified, struct {
		io.Reader
		io.Seeker
	}{content, sized(size)})
}

// serveContent is [http.ServeContent], and returns the status.
func serveContent(w http.ResponseWriter, r *http.Request, modified time.Time, content io.ReadSeeker) int {
	recorded := caddyhttp.NewResponseRecorder(w, nil, nil)
	http.ServeContent(recorded, r, "", modified, content)
	return recorded.Status()
}

// conditions are the headers by which a client asks for less than the whole.
var conditions = []string{"Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"}

// sized tells [http.ServeContent] the size of a stream, which that then reads from beginning to end.
type sized int64

// Seek implements [io.Seeker].
func (s sized) Seek(_ int64, whence int) (int64, error) {
	if whence == io.SeekEnd {
		return int64(s), nil
	}
	return 0, nil
}
