package sitemap

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/seed3295b519/caddy-sitemap/internal/publish"
)

const (
	longestAge  = time.Hour // of a document that a cache keeps
	contentXML  = "application/xml; charset=utf-8"
	contentGzip = "application/gzip"
	contentText = "text/plain; charset=utf-8"

	// countedByServer is the most bytes of a body for which net/http sets Content-Length
	// itself. A response with more than eight headers costs noticeably more.
	countedByServer = 2048
)

// rendition is how a document is sent.
type rendition struct {
	form         publish.Form
	isNegotiated bool // the client's Accept-Encoding decides whether it is compressed
	isGzip       bool // it is compressed
	isWhole      bool // it is sent as it is kept: compressed, and whatever the client has of it
}

// renditionFor returns how a document in a form is sent in response to a request.
func renditionFor(r *http.Request, f publish.Form) rendition {
	by := rendition{form: f, isNegotiated: f == publish.FormXML || f == publish.FormFile}
	by.isGzip = f == publish.FormGzip || by.isNegotiated && prefersGzip(r.Header["Accept-Encoding"])
	by.isWhole = by.isGzip && !isConditional(r)
	return by
}

// writeDocument writes a document in a form, and in an encoding that the client accepts. fresh is the time until the document
// may change.
func writeDocument(w http.ResponseWriter, r *http.Request, d *publish.Document, f publish.Form, fresh time.Duration) {
	by := renditionFor(r, f)
	// Of a small body, net/http sets the length itself, but not in response to HEAD.
	length := ""
	if by.isWhole && (r.Method == http.MethodHead || len(d.Gzip) > countedByServer) {
		length = d.Headers.Length
	}
	by.setHeader(w.Header(), d, fresh, length)
	if !by.isGzip {
		writePlain(w, r, d, f)
		return
	}
	if !by.isWhole {
		serveContent(w, r, d.Modified, bytes.NewReader(d.Gzip))
		return
	}
	// There is no condition to be met, which is what http.ServeContent is for.
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(d.Gzip) // an error means that the client is gone
	}
}

// fresh returns for how long caches may keep what is served. While the site rests, a change may show at any time, yet
// caches keep documents for as long as if it did not.
func (s *site) fresh() time.Duration {
	left := s.schedule.Due().Sub(s.app.now())
	if s.resting.Load() {
		left = min(left, s.handler.settings.interval)
	}
	return min(max(left, 0), longestAge)
}

// setHeader sets the header of a document, with Content-Length if length is not "".
func (by rendition) setHeader(header http.Header, d *publish.Document, fresh time.Duration, length string) {
	contentType, encoding, etag := represent(d, by.form, by.isGzip)
	sniff := ""
	if by.form == publish.FormFile {
		sniff = "nosniff"
	}
	control := ""
	if header["Cache-Control"] == nil {
		control = "max-age=" + strconv.Itoa(int(fresh/time.Second))
	}
	const acceptEncoding = "Accept-Encoding"
	vary := ""
	needsVary := by.isNegotiated && !httpguts.HeaderValuesContainsToken(header["Vary"], acceptEncoding)
	if needsVary && header["Vary"] == nil {
		vary = acceptEncoding
	} else if needsVary {
		// An outer handler has set it: its values stay.
		header["Vary"] = append(header["Vary"], acceptEncoding)
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
}

// represent returns what the headers say of a document in a form, which is compressed or not.
func represent(d *publish.Document, f publish.Form, compressed bool) (contentType, encoding, etag string) {
	switch f {
	case publish.FormGzip:
		return contentGzip, "", d.Headers.ETagFile
	case publish.FormText:
		return contentText, "", d.Headers.ETagText
	}
	contentType = cmp.Or(d.Type, contentXML)
	if compressed {
		return contentType, "gzip", d.Headers.ETagGzip
	}
	return contentType, "", d.Headers.ETagXML
}

// writePlain writes a document, which has its headers, as a client has it that takes no gzip.
func writePlain(w http.ResponseWriter, r *http.Request, d *publish.Document, f publish.Form) {
	open := d.Open
	size := d.Size
	if f == publish.FormText {
		open = d.Text
		size = d.TextSize
	}
	content, err := open()
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	defer content.Close()
	// A server may ignore a Range (RFC 9110, section 14.2).
	if r.Header["Range"] != nil && !isCheap(r, size) {
		r = r.Clone(r.Context())
		r.Header.Del("Range")
	}
	serveContent(unadvertised{w}, r, d.Modified, &stream{content, size})
}

// prefersGzip reports whether a client that sends these values of Accept-Encoding prefers gzip to the document as it is,
// or has no preference (RFC 9110, section 12.5.3).
func prefersGzip(values []string) bool {
	const unnamed = -1
	gzip := float64(unnamed)
	identity := float64(unnamed)
	others := float64(unnamed)
	for _, value := range values {
		for item := range strings.SplitSeq(value, ",") {
			coding, parameter, _ := strings.Cut(item, ";")
			coding = strings.TrimSpace(coding)
			weight := weightOf(parameter)
			switch {
			case strings.EqualFold(coding, "gzip"), strings.EqualFold(coding, "x-gzip"):
				gzip = weight
			case strings.EqualFold(coding, "identity"):
				identity = weight
			case coding == "*":
				others = weight
			}
		}
	}
	// '*' stands for the codings that the field does not name.
	if gzip == unnamed {
		gzip = others
	}
	if identity == unnamed {
		identity = others
	}
	return gzip > 0 && gzip >= identity
}

// weightOf returns the weight in the parameter of a coding, from 0 to 1. Without a valid one, it is 1.
func weightOf(parameter string) float64 {
	name, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
	if !strings.EqualFold(name, "q") {
		return 1
	}
	weight, err := strconv.ParseFloat(value, 64)
	if err != nil || !(weight >= 0 && weight <= 1) {
		return 1
	}
	return weight
}

// cheapRange is how many bytes are decompressed for a range. To grant one at the end of a large document takes as long
// as to send all of it, and a client could ask for one byte after the other.
const cheapRange = 1 << 20

// isCheap reports whether a Range of a document that has to be decompressed is granted, or found invalid: it is one
// range, and ends within the first bytes, or begins after the last.
func isCheap(r *http.Request, size int64) bool {
	span, isBytes := strings.CutPrefix(r.Header.Get("Range"), "bytes=")
	if !isBytes || r.Method != http.MethodGet || strings.Contains(span, ",") {
		return false
	}
	if size <= cheapRange {
		return true
	}
	from, to, _ := strings.Cut(span, "-")
	first, err := strconv.ParseInt(from, 10, 64)
	if err != nil {
		return false // the last bytes
	}
	// Found invalid, which takes no decompressing.
	if first >= size {
		return true
	}
	last, err := strconv.ParseInt(to, 10, 64)
	return err == nil && last < cheapRange
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
	// A date that is yet to come, as of a clock that was ahead, says nothing of what the client has.
	since, err := http.ParseTime(r.Header.Get("If-Modified-Since"))
	if err == nil && since.After(time.Now()) {
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

// stream is a document that is read once, from beginning to end, and has a size. It does what [http.ServeContent] needs
// of a Seeker: that asks for the size, and then goes to the beginning and to the first byte of at most one range.
type stream struct {
	io.Reader
	size int64
}

// Seek implements [io.Seeker].
func (s *stream) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekEnd {
		return s.size, nil
	}
	return io.CopyN(io.Discard, s.Reader, offset)
}
