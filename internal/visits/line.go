package visits

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// Results of lines that show no visit.
const (
	// unread is for a line of another format, or one that is cut short.
	unread = "the line cannot be parsed"

	// noRequest is for a readable line without a request: a blank one, another
	// log's entry, or a connection without HTTP.
	noRequest = "the line has no request"
)

// Formats are the formats of lines. With auto, the first byte of each line decides, so that the format may change
// within a file. json is Caddy's; common is the Common Log Format, and combined that with referer and User-Agent, which
// are read wherever a line has them.
var Formats = []string{"auto", "json", "common", "combined"}

// parse reads one line, without its line end. problem is unread or noRequest; "": the visit is that of the line.
func (r *Reader) parse(line []byte) (v Visit, problem string) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return v, noRequest
	}
	isJSON := line[0] == '{'
	isCommon := r.Format == "common" || r.Format == "combined"
	switch {
	case isJSON && isCommon, !isJSON && r.Format == "json":
		return v, unread
	case isJSON:
		v, problem = r.parseJSON(line)
	default:
		v, problem = parseCommon(string(line))
	}
	if problem == "" && v.URI == "" {
		problem = noRequest
	}
	return v, problem
}

// parseTime returns a time in Unix seconds; 0: it is not readable, or before 1970. It reads all that Caddy's
// time_format names: seconds, milliseconds or nanoseconds since 1970, told apart by their size, and dates. A time of day
// without a zone is taken for UTC.
func parseTime(s string) int64 {
	if strings.Contains(s, ":") {
		n, _, _ := page.ParseDate(s)
		return n
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n > 0 && n < 1e19) {
		return 0
	}
	// 1e11 seconds are the year 5138, and as many milliseconds 1973.
	for n >= 1e11 {
		n /= 1000
	}
	return int64(n)
}

// isUser reports whether a text names a user.
func isUser(s string) bool { return s != "" && s != "-" && s != `""` }
