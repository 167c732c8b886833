package accesslog

import (
	"encoding/json"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/visits"
)

// jsonLine is what is read of a line of Caddy's, as it stands there.
type jsonLine struct {
	visit                                       *visits.Visit
	time, logger, status, userID, authorization string
}

// object is one whose members are read.
type object uint8

const (
	inLine object = 1 + iota
	inRequest
	inRequestHeaders
	inResponseHeaders
)

// member returns what the value of a key is read for: a string, or an object with such.
func (l *jsonLine) member(in object, key string) (*string, object) {
	switch in {
	case inLine:
		return l.memberOfLine(key)
	case inRequest:
		return l.memberOfRequest(key)
	case inRequestHeaders:
		return l.requestHeader(key), 0
	case inResponseHeaders:
		return l.responseHeader(key), 0
	}
	return nil, 0
}

func (l *jsonLine) memberOfLine(key string) (*string, object) {
	switch key {
	case "ts":
		return &l.time, 0
	case "logger":
		return &l.logger, 0
	case "status":
		return &l.status, 0
	case "user_id":
		return &l.userID, 0
	case "request":
		return nil, inRequest
	case "resp_headers":
		return nil, inResponseHeaders
	}
	return nil, 0
}

func (l *jsonLine) memberOfRequest(key string) (*string, object) {
	switch key {
	case "method":
		return &l.visit.Method, 0
	case "host":
		return &l.visit.Host, 0
	case "uri":
		return &l.visit.URI, 0
	case "headers":
		return nil, inRequestHeaders
	}
	return nil, 0
}

func (l *jsonLine) requestHeader(name string) *string {
	switch name {
	case "User-Agent":
		return &l.visit.UserAgent
	case "Authorization":
		return &l.authorization
	}
	return nil
}

func (l *jsonLine) responseHeader(name string) *string {
	switch name {
	case "Content-Type":
		return &l.visit.ContentType
	case "X-Robots-Tag":
		return &l.visit.RobotsTag
	case "Location":
		return &l.visit.Location
	}
	return nil
}

// parseJSON reads a line that Caddy wrote. It looks for the few members that tell of a visit, and passes over
// everything else by its quotes and brackets alone, whether or not that is valid: encoding/json, which also
// checks and keeps it, takes some twenty times as long.
func (p *Parser) parseJSON(s string, v *visits.Visit) error {
	l := &p.json
	*l = jsonLine{visit: v}
	if l.object(s, 0, inLine) != len(s) {
		return ErrSyntax
	}
	// Caddy's error log tells of requests that its access log has, too.
	if strings.HasPrefix(l.logger, "http.") && !strings.HasPrefix(l.logger, "http.log.access") {
		return ErrNoRequest
	}
	v.Time = parseTime(l.time)
	v.Status = parseStatus(l.status)
	for _, who := range [...]string{l.userID, l.authorization} {
		v.User = v.User || who != "" && who != "-"
	}
	return nil
}

// The functions below take the place where something begins in a line and return the one behind its end, or -1
// where it has none.

// object reads the members of an object.
func (l *jsonLine) object(s string, i int, in object) int {
	for {
		i = space(s, i+1)
		// It has no members, or none after a comma.
		if isAt(s, i, '}') {
			return i + 1
		}
		var key string
		key, i = memberKey(s, i)
		if i < 0 {
			return -1
		}
		i = l.memberValue(s, i, in, key)
		if i < 0 {
			return -1
		}
		i = space(s, i)
		if isAt(s, i, '}') {
			return i + 1
		}
		if !isAt(s, i, ',') {
			return -1
		}
	}
}

// memberKey reads the key of a member, and its colon. It returns the place where the value begins.
func memberKey(s string, i int) (key string, next int) {
	if !isAt(s, i, '"') {
		return "", -1
	}
	end := stringEnd(s, i+1)
	if end < 0 {
		return "", -1
	}
	colon := space(s, end)
	if !isAt(s, colon, ':') {
		return "", -1
	}
	return s[i+1 : end-1], space(s, colon+1)
}

// memberValue reads the value of a member of an object, or passes over it if it tells nothing of a visit.
func (l *jsonLine) memberValue(s string, i int, in object, key string) int {
	dest, of := l.member(in, key)
	if of != 0 && isAt(s, i, '{') {
		return l.object(s, i, of)
	}
	if dest != nil {
		return value(s, i, dest)
	}
	return skip(s, i)
}

// isAt reports whether a place in a line, which may be its end, has a byte.
func isAt(s string, i int, c byte) bool { return i < len(s) && s[i] == c }

// value reads a string, a number, true, or an array's strings, joined by ", ". Nothing else has a text.
func value(s string, i int, dest *string) int {
	end := skip(s, i)
	if end < 0 {
		return -1
	}
	switch s[i] {
	case '"':
		*dest = s[i+1 : end-1]
		if strings.IndexByte(*dest, '\\') >= 0 && json.Unmarshal([]byte(s[i:end]), dest) != nil {
			return -1
		}
	case '[':
		*dest = ""
		// Caddy writes each header as an array, nearly always of one string, for which no decoder is needed.
		if first := space(s, i+1); s[first] == '"' {
			if last := stringEnd(s, first+1); space(s, last) == end-1 {
				value(s, first, dest)
				return end
			}
		}
		var all []any
		if json.Unmarshal([]byte(s[i:end]), &all) != nil {
			return -1
		}
		var parts []string
		for _, one := range all {
			if part, ok := one.(string); ok {
				parts = append(parts, part)
			}
		}
		*dest = strings.Join(parts, ", ")
	case '{', 'f', 'n':
	default:
		*dest = s[i:end]
	}
	return end
}

// skip passes over a value.
func skip(s string, i int) int {
	for depth := 0; i < len(s); {
		switch s[i] {
		case '"':
			i = stringEnd(s, i+1)
			if i < 0 || depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				return i + 1
			}
			// The bracket closes what a number or a word is in.
			if depth < 0 {
				return i
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return -1
}

// stringEnd finds the end of what is in quotes, which begins at s[i] with its text. A quote after a backslash
// that is not itself after one is none.
func stringEnd(s string, i int) int {
	for from := i; ; i++ {
		n := strings.IndexByte(s[i:], '"')
		if n < 0 {
			return -1
		}
		i += n
		backslashes := 0
		for i-backslashes > from && s[i-1-backslashes] == '\\' {
			backslashes++
		}
		if backslashes%2 == 0 {
			return i + 1
		}
	}
}

// space passes over white space, of which Caddy writes none.
func space(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\r' || s[i] == '\n') {
		i++
	}
	return i
}
