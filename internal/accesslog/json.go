package accesslog

import (
	"bytes"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// kind is what is known of a value besides its text.
type kind uint8

const (
	nothing   kind = iota // null or false
	something             // true or an object
	number                // with the text that it has in the line
	text                  // a string, or the strings of an array joined by ", "
)

// draft is a visit before all of its line is read.
type draft struct {
	*Visit
	other bool // another log's line
}

func (d *draft) set(f field, k kind, s string) {
	switch f {
	case fieldTime:
		d.Time = parseTime(s)
		return
	case fieldStatus:
		d.Status = parseStatus(s)
		return
	case fieldUserID, fieldAuthorization:
		d.User = d.User || isSaid(k, s)
		return
	}
	if k != text {
		return
	}
	switch f {
	case fieldLogger:
		d.other = strings.HasPrefix(s, "http.") && !strings.HasPrefix(s, "http.log.access")
	case fieldMethod:
		d.Method = s
	case fieldHost:
		d.Host = s
	case fieldURI:
		d.URI = s
	case fieldUserAgent:
		d.UserAgent = s
	case fieldContentType:
		d.ContentType = s
	case fieldRobotsTag:
		d.RobotsTag = s
	}
}

// isSaid reports whether a value says who someone is. Filters of Caddy's may have
// changed it.
func isSaid(k kind, s string) bool {
	switch k {
	case nothing:
		return false
	case text:
		return s != "" && s != "-"
	}
	return true
}

func (d *draft) finish() error {
	if d.other {
		return ErrNoRequest
	}
	return nil
}

// parseStatus is the status of up to three digits, and 0 of anything else.
func parseStatus(s string) (status int) {
	if len(s) > 3 {
		return 0
	}
	for i := range len(s) {
		if !isDigit(s[i]) {
			return 0
		}
		status = status*10 + int(s[i]-'0')
	}
	return status
}

// parseJSON reads a line with the quick reader below, which takes only what it is
// sure about, and else with encoding/json, which is some twenty times slower.
func (p *Parser) parseJSON(line []byte, v *Visit) error {
	d := draft{Visit: v}
	if i := p.object(line, 0, inLine, &d); i >= 0 && skipSpace(line, i) == len(line) {
		return d.finish()
	}
	*v = Visit{}
	return parseStandard(line, v)
}

// object reads the object that begins at b[i]. It returns where it ends, or
// notSure, as all functions here that have a place for a result.
func (p *Parser) object(b []byte, i int, object field, d *draft) int {
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1
	}
	seen := uint32(0) // bits of fields
	for more := true; more; {
		if i >= len(b) || b[i] != '"' {
			return notSure
		}
		from := i + 1
		end := plainEnd(b, from)
		if end >= len(b) || b[end] != '"' {
			var odd oddness
			if end, odd = stringEnd(b, end); end < 0 || odd&escapes != 0 {
				return notSure
			}
		}
		i = end + 2
		if i >= len(b) || b[i-1] != ':' || b[i] <= ' ' {
			if i = valueStart(b, end+1); i < 0 {
				return notSure
			}
		}
		f := fieldOf(object, b[from:end])
		switch {
		case f == noField && hasPair(b, i, '[', '"'): // a header that is not asked for
			if e := plainEnd(b, i+2); hasPair(b, e, '"', ']') {
				i = e + 2
			} else {
				i = skipArray(b, i, 1)
			}
		case f == noField:
			i = skipValue(b, i, 1)
		case seen&(1<<f) != 0:
			return notSure
		default:
			seen |= 1 << f
			i = p.value(b, i, f, d)
		}
		if i < 0 {
			return notSure
		}
		if hasPair(b, i, ',', '"') { // most likely
			i++
			continue
		}
		i, more = nextStart(b, i, '}')
	}
	return i
}

// value reads the value of a field at b[i].
func (p *Parser) value(b []byte, i int, f field, d *draft) int {
	if i >= len(b) {
		return notSure
	}
	if f >= inLine {
		if b[i] == '{' {
			return p.object(b, i, f, d)
		}
		return skipValue(b, i, 1)
	}
	switch b[i] {
	case '"':
		end, odd := stringEnd(b, i+1)
		if end < 0 {
			return notSure
		}
		s, ok := p.text(b[i+1:end], odd)
		if !ok {
			return notSure
		}
		d.set(f, text, s)
		return end + 1
	case '[':
		return p.array(b, i, f, d)
	case '{', 't':
		d.set(f, something, "")
		return skipValue(b, i, 1)
	case 'f', 'n':
		d.set(f, nothing, "")
		return skipValue(b, i, 1)
	}
	end := numberEnd(b, i)
	if end >= 0 {
		d.set(f, number, view(b[i:end]))
	}
	return end
}

// array reads the strings of the array at b[i].
func (p *Parser) array(b []byte, i int, f field, d *draft) int {
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == ']' {
		d.set(f, text, "")
		return i + 1
	}
	n, s := 0, ""
	from := 0 // of the joined strings in the scratch
	for more := true; more; {
		if i >= len(b) {
			return notSure
		}
		if b[i] != '"' {
			i = skipValue(b, i, 2)
		} else {
			end, odd := stringEnd(b, i+1)
			if end < 0 {
				return notSure
			}
			var ok bool
			switch raw := b[i+1 : end]; n {
			case 0:
				s, ok = p.text(raw, odd)
			case 1:
				from = len(p.scratch)
				p.scratch = append(p.scratch, s...)
				fallthrough
			default:
				p.scratch = append(p.scratch, ", "...)
				ok = p.decode(raw, odd)
			}
			if !ok {
				return notSure
			}
			n++
			i = end + 1
		}
		if i < 0 {
			return notSure
		}
		i, more = nextStart(b, i, ']')
	}
	if i < 0 {
		return notSure
	}
	if n > 1 {
		s = view(p.scratch[from:])
	}
	d.set(f, text, s)
	return i
}

// text is the string that raw stands for, which stringEnd has found. ok is false
// where it is not UTF-8.
func (p *Parser) text(raw []byte, odd oddness) (s string, ok bool) {
	if odd&escapes == 0 {
		return view(raw), odd == 0 || utf8.Valid(raw)
	}
	from := len(p.scratch)
	ok = p.decode(raw, odd)
	return view(p.scratch[from:]), ok
}

// decode appends the string that raw stands for to the scratch.
func (p *Parser) decode(raw []byte, odd oddness) bool {
	if odd&^escapes != 0 && !utf8.Valid(raw) {
		return false
	}
	i := bytes.IndexByte(raw, '\\')
	for i >= 0 {
		p.scratch = append(p.scratch, raw[:i]...)
		raw = p.decodeEscape(raw[i:])
		i = bytes.IndexByte(raw, '\\')
	}
	p.scratch = append(p.scratch, raw...)
	return true
}

// decodeEscape appends what the escape at the beginning of raw stands for, and
// returns what follows it. Half a surrogate pair is U+FFFD, as in encoding/json.
func (p *Parser) decodeEscape(raw []byte) []byte {
	if raw[1] != 'u' {
		p.scratch = append(p.scratch, escaped[raw[1]])
		return raw[2:]
	}
	r := hex4(raw[2:])
	raw = raw[6:]
	if utf16.IsSurrogate(r) {
		second := rune(utf8.RuneError)
		if len(raw) > 1 && raw[0] == '\\' && raw[1] == 'u' {
			second = hex4(raw[2:])
		}
		if r = utf16.DecodeRune(r, second); r != utf8.RuneError {
			raw = raw[6:]
		}
	}
	p.scratch = utf8.AppendRune(p.scratch, r)
	return raw
}

// escaped are what the escapes of one character stand for.
var escaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// hex4 is the value of the four hexadecimal digits at the beginning of b.
func hex4(b []byte) (r rune) {
	for _, c := range b[:4] {
		r = r<<4 | rune(hexDigit(c))
	}
	return r
}
