// Package accesslog finds the pages that visitors got in the access logs of web servers. A [Reader] follows
// the logs of a source as they grow and are rolled, a [Parser] reads a line into a [Visit], and a [Filter]
// says which page it shows, or which one may be gone. [Visited] and [Progress] are what is kept of that for a
// site. [Readers] counts who requests a site's documents.
package accesslog

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/seed3295b519/caddy-sitemap/internal/htmlmeta"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// The errors of [Parser.Parse].
var (
	// ErrSyntax is for a line of another format, or one that is cut short.
	ErrSyntax = errors.New("the line cannot be parsed")

	// ErrNoRequest is for a readable line without a request: a blank one, another
	// log's entry, or a connection without HTTP.
	ErrNoRequest = errors.New("the line has no request")
)

// Visit is a request and its response, as in a line of an access log. What a line does not say is zero. The
// strings may be parts of the line's buffer: clone what is kept.
type Visit struct {
	Time   int64 // Unix seconds; 0: missing, or not readable
	Method string
	Host   string // as the line has it: a port may follow
	URI    string // as the client sent it, with its query; never ""
	User   bool   // the client is signed in: there is a user's name, or an Authorization header
	Status int    // 0 also if there was no response

	// Values of headers; those of several lines are joined by ", ". "": not known. The
	// User-Agent is "-" if the line says that there was none.
	UserAgent, ContentType, RobotsTag, Location string
}

// Why a visit does not show a page that may be listed.
const (
	wrongMethod = "not GET or HEAD"
	wrongStatus = "not 200 or 304"
	notHTML     = "not HTML" // by its Content-Type
	asset       = "asset"    // by the extension of its path, where the Content-Type is not known
	signedIn    = "signed in"
	noIndex     = "noindex"
	robot       = "robot" // by its User-Agent
	oddPath     = "no clean path"
)

// Reason returns why a visit does not count; "": it does. It counts if an anonymous visitor's browser got an HTML page
// that may be indexed. If the log has no User-Agents, it may be a browser; a request without one is a robot's.
func (v *Visit) Reason() string {
	switch {
	case v.Method != http.MethodGet && v.Method != http.MethodHead:
		return wrongMethod
	case v.Status != http.StatusOK && v.Status != http.StatusNotModified:
		return wrongStatus
	case v.ContentType == "" || v.ContentType == "-":
		path, _, _ := strings.Cut(v.URI, "#")
		path, _, _ = strings.Cut(path, ";")
		if origin.IsAsset(path) {
			return asset
		}
	case !htmlmeta.IsHTML(v.ContentType):
		return notHTML
	}
	switch {
	case v.User:
		return signedIn
	case v.RobotsTag != "" && htmlmeta.Header(htmlmeta.Page{Header: http.Header{"X-Robots-Tag": {v.RobotsTag}}}).NoIndex:
		return noIndex
	case v.UserAgent != "" && classOf(v.UserAgent) != browser:
		return robot
	}
	return ""
}

// formats are the formats of lines. With auto, the first byte of each line decides, so that the format may change
// within a file. json is Caddy's; common is the Common Log Format, whatever follows it in a line; combined is that
// with referer and User-Agent.
var formats = []string{"auto", "json", "common", "combined"}

// Parser reads lines. It is not safe for concurrent use.
type Parser struct {
	format   string
	json     jsonLine
	lastTime string // of a line in the Common Log Format
	lastUnix int64
}

// NewParser returns a Parser for the format auto, json, common or combined; "" is auto.
func NewParser(format string) (*Parser, error) {
	if format != "" && !slices.Contains(formats, format) {
		return nil, fmt.Errorf("unknown format '%s': use one of %s", format, strings.Join(formats, ", "))
	}
	return &Parser{format: format}, nil
}

// Parse reads one line, without its line end, into v. The error is ErrSyntax or ErrNoRequest itself, and v is
// zero then. A byte order mark and white space around the line are skipped.
//
// A line in Caddy's JSON that is another log's than the access log's has no request, although it may tell of
// one: the access log has it, too. A time of day without a zone is taken for UTC.
func (p *Parser) Parse(line []byte, v *Visit) error {
	*v = Visit{}
	s := strings.Trim(strings.TrimPrefix(unsafe.String(unsafe.SliceData(line), len(line)), "\uFEFF"), " \t\r\n")
	if s == "" {
		return ErrNoRequest
	}
	isJSON := s[0] == '{'
	err := ErrSyntax
	if isJSON && p.format != "common" && p.format != "combined" {
		err = p.parseJSON(s, v)
	}
	if !isJSON && p.format != "json" {
		err = p.parseCommon(s, v)
	}
	if err == nil && v.URI == "" {
		err = ErrNoRequest
	}
	if err != nil {
		*v = Visit{}
	}
	return err
}

// parseStatus returns the status of up to three digits, and 0 for anything else.
func parseStatus(s string) int {
	if len(s) > 3 || s == "" {
		return 0
	}
	n, _ := strconv.ParseUint(s, 10, 16)
	return int(n)
}

// parseTime returns a time in Unix seconds; 0: it is not readable, or before 1970. It reads all that Caddy's
// time_format names: seconds, milliseconds or nanoseconds since 1970, told apart by their size, and dates.
func parseTime(s string) int64 {
	if strings.IndexByte(s, ':') >= 0 {
		n, _, _ := page.ParseDate(s)
		return n
	}
	if s == "" {
		return 0
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n > 0 && n < 1e19) {
		return 0
	}
	for n >= 1e11 {
		n /= 1000
	}
	return int64(n)
}

// parseCommonTime reads 02/Jan/2006:15:04:05 -0700.
func parseCommonTime(s string) int64 {
	t, err := time.Parse("02/Jan/2006:15:04:05 -0700", s)
	if err != nil {
		return 0
	}
	return max(t.Unix(), 0)
}
