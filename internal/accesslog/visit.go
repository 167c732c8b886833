// Package accesslog reads the access logs of web servers: what visitors asked for,
// and what they were answered.
package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unsafe"
)

// The errors of [Parser.Parse].
var (
	// ErrSyntax is for a line that is not of the format, or cut short.
	ErrSyntax = errors.New("the line is not readable")

	// ErrNoRequest is for a line that can be read, but tells of no request: a blank
	// one, another log's entry, or a connection over which nothing came that is HTTP.
	ErrNoRequest = errors.New("there is no request in the line")
)

// Visit is what a line of an access log says of a request and its response. The
// strings are parts of the line's buffer or of the parser's: they are good until the
// parser's next line, or until the line is overwritten. Who keeps one clones it.
// What a line does not say is zero.
type Visit struct {
	Time   int64 // Unix seconds; 0: not said, or not readable
	Method string
	Host   string // as the line has it: a port may follow
	URI    string // as the client sent it, with its query; never ""
	User   bool   // the client is somebody: a user's name, or an Authorization header
	Status int    // 0 also where the server answered nothing

	// Values of headers; those of several lines are joined by ", ". "": not said. Where
	// the line says that there was no User-Agent, it is "-".
	UserAgent, ContentType, RobotsTag string
}

// Format is how lines are written.
type Format uint8

// The formats. Auto tells each line's format by its first byte, so that formats
// may change within a file.
const (
	Auto     Format = iota
	JSON            // Caddy's
	Common          // Common Log Format; what follows it in a line is skipped
	Combined        // Combined Log Format: Common, referer and user agent
)

var formats = [...]string{Auto: "auto", JSON: "json", Common: "common", Combined: "combined"}

func (f Format) String() string {
	if int(f) < len(formats) {
		return formats[f]
	}
	return fmt.Sprintf("Format(%d)", uint8(f))
}

// ParseFormat is the format of a name: auto, json, common or combined.
func ParseFormat(name string) (Format, error) {
	for f, s := range formats {
		if s == name {
			return Format(f), nil
		}
	}
	return 0, fmt.Errorf("unknown format '%s': there are %s", name, strings.Join(formats[:], ", "))
}

// Options say how lines are to be read.
type Options struct{ Format Format }

// Parser reads lines. It is not safe for concurrent use.
type Parser struct {
	format  Format
	scratch []byte // decoded strings of the present line
}

// NewParser prepares for reading lines. The error is one of the Options.
func NewParser(o Options) (*Parser, error) {
	if int(o.Format) >= len(formats) {
		return nil, fmt.Errorf("unknown format %v", o.Format)
	}
	return &Parser{format: o.Format}, nil
}

// Parse reads one line, without its line end, into v. A byte order mark and white
// space before it and a carriage return after it are skipped. The error is
// ErrSyntax or ErrNoRequest itself, and v is zero then.
//
// A line in Caddy's JSON that is another log's than the access log's has no request,
// although it may tell of one: the access log has it, too. A time of day without a
// zone is taken for UTC. The bytes of Common and Combined lines may be any but NUL;
// what is not UTF-8 in JSON becomes U+FFFD.
func (p *Parser) Parse(line []byte, v *Visit) error {
	*v = Visit{}
	p.scratch = p.scratch[:0]
	line = trim(line)
	if len(line) == 0 {
		return ErrNoRequest
	}
	isJSON := line[0] == '{'
	if p.format != Auto && isJSON != (p.format == JSON) {
		return ErrSyntax
	}
	var err error
	if isJSON {
		err = p.parseJSON(line, v)
	} else {
		err = p.parseCommon(line, v)
	}
	if err == nil && v.URI == "" {
		err = ErrNoRequest
	}
	if err != nil {
		*v = Visit{}
	}
	return err
}

func trim(line []byte) []byte {
	if len(line) > 0 && line[0] == 0xEF {
		line = bytes.TrimPrefix(line, []byte("\xEF\xBB\xBF"))
	}
	for len(line) > 0 && isSpace(line[0]) {
		line = line[1:]
	}
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line
}

// isSpace reports whether c is white space in JSON.
func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// view is b as a string, without a copy.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
