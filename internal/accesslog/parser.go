// Package accesslog reads the visits of the access logs of web servers. A [Reader] follows the logs of a source as they
// grow and are rolled, a [Parser] reads a line, and [Progress] is how far they were read for a site.
package accesslog

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/visits"
)

// The errors of [Parser.Parse].
var (
	// ErrSyntax is for a line of another format, or one that is cut short.
	ErrSyntax = errors.New("the line cannot be parsed")

	// ErrNoRequest is for a readable line without a request: a blank one, another
	// log's entry, or a connection without HTTP.
	ErrNoRequest = errors.New("the line has no request")
)

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
func (p *Parser) Parse(line []byte, v *visits.Visit) error {
	*v = visits.Visit{}
	// The line is not copied: the fields of v are parts of it.
	s := unsafe.String(unsafe.SliceData(line), len(line))
	s = strings.Trim(strings.TrimPrefix(s, "\uFEFF"), " \t\r\n")
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
		*v = visits.Visit{}
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
	// 1e11 seconds are the year 5138, and as many milliseconds 1973.
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
