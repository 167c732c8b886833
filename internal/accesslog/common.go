package accesslog

import (
	"bytes"
	"strings"
)

// parseCommon reads a line such as
//
//	192.0.2.1 - user [02/Jan/2006:15:04:05 -0700] "GET / HTTP/1.1" 200 1234 "referer" "user agent"
//
// which a virtual host may precede and anything may follow, by Options.Format.
func (p *Parser) parseCommon(line []byte, v *Visit) error {
	if bytes.IndexByte(line, 0) >= 0 {
		return ErrSyntax
	}
	s := view(line)
	who, s, ok := cutBeforeTime(s)
	if !ok || !v.setClient(who) {
		return ErrSyntax
	}
	when, s, ok := strings.Cut(s, "]")
	if !ok || !strings.HasPrefix(s, ` "`) {
		return ErrSyntax
	}
	v.Time = parseCommonTime(when)
	request, s, ok := cutQuoted(s)
	if !ok {
		return ErrSyntax
	}
	status, s := cutWord(s)
	size, s := cutWord(s)
	if !isStatus(status) || !isSize(size) {
		return ErrSyntax
	}
	v.Status = parseStatus(status)
	if p.format != Common {
		agent, ok := cutAgent(s, p.format == Combined)
		if !ok {
			return ErrSyntax
		}
		v.UserAgent = p.unescape(agent)
	}
	method, uri := splitRequest(request)
	v.Method, v.URI = method, p.unescape(uri)
	return nil
}

// cutBeforeTime cuts a line at the bracket that begins its time. A virtual host
// with an address of IPv6 begins with a bracket, too.
func cutBeforeTime(s string) (before, after string, ok bool) {
	for i := 1; i < len(s); i++ {
		j := strings.IndexByte(s[i:], '[')
		if j < 0 {
			break
		}
		i += j
		if s[i-1] == ' ' {
			return s[:i-1], s[i+1:], true
		}
	}
	return "", "", false
}

// setClient reads what precedes the time: [host] client identity user. A user's
// name may have spaces in it. An identity is hardly ever known, and with a host in
// front it must not be, to tell the host from prefixes of syslog and the like.
func (v *Visit) setClient(s string) bool {
	client, s, ok := strings.Cut(s, " ")
	if !ok {
		return false
	}
	identity, user, ok := strings.Cut(s, " ")
	if !ok {
		return false
	}
	if identity != "-" {
		if dash, rest, ok := strings.Cut(user, " "); ok {
			if dash != "-" || !isHost(client) {
				return false
			}
			if client != "-" {
				v.Host = client
			}
			client, user = identity, rest
		}
	}
	v.User = user != "" && user != "-" && user != `""`
	return isAddress(client)
}

// isHost reports whether s is a host's name or address, perhaps with a port.
func isHost(s string) bool {
	name, port := s, "0"
	if i := strings.LastIndexByte(s, ':'); i >= 0 && !strings.HasSuffix(s, "]") {
		name, port = s[:i], s[i+1:]
	}
	if port == "" || len(port) > 5 || strings.Trim(port, "0123456789") != "" {
		return false
	}
	if strings.HasPrefix(name, "[") {
		return strings.HasSuffix(name, "]") && isAddress(name)
	}
	return isAddress(name) && strings.IndexByte(name, ':') < 0
}

// isAddress reports whether s may be an address or a name of a client: neither
// quotes nor other punctuation.
func isAddress(s string) bool {
	for i := range len(s) {
		if !addressBytes[s[i]] {
			return false
		}
	}
	return s != ""
}

var (
	addressBytes = newSet(".:-_%[]")
	tokenBytes   = newSet("!#$%&'*+-.^_`|~") // RFC 9110, section 5.6.2
)

// newSet is the letters, the digits, and more.
func newSet(more string) (set [256]bool) {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	for _, c := range []byte(letters + strings.ToUpper(letters) + "0123456789" + more) {
		set[c] = true
	}
	return set
}

// cutQuoted cuts a space and what is in quotes after it from s. A quote after a
// backslash that is not itself after one is none.
func cutQuoted(s string) (quoted, rest string, ok bool) {
	if !strings.HasPrefix(s, ` "`) {
		return "", "", false
	}
	s = s[2:]
	for i := 0; i < len(s); i++ {
		j := strings.IndexByte(s[i:], '"')
		if j < 0 {
			break
		}
		i += j
		backslashes := 0
		for backslashes < i && s[i-1-backslashes] == '\\' {
			backslashes++
		}
		if backslashes%2 == 0 {
			rest = s[i+1:]
			return s[:i], rest, rest == "" || rest[0] == ' '
		}
	}
	return "", "", false
}

// cutWord cuts a space and what is before the next one from s.
func cutWord(s string) (word, rest string) {
	if s == "" || s[0] != ' ' {
		return "", s
	}
	s = s[1:]
	if i := strings.IndexByte(s, ' '); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

func isStatus(s string) bool {
	return s == "-" || len(s) == 3 && isDigit(s[0]) && isDigit(s[1]) && isDigit(s[2])
}

func isSize(s string) bool {
	if s == "-" {
		return true
	}
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return s != ""
}

// cutAgent is what is in the second quotes of s. Where they need not be, other
// things may be there instead.
func cutAgent(s string, must bool) (agent string, ok bool) {
	for range 2 {
		if !must && !strings.HasPrefix(s, ` "`) {
			return "", true
		}
		if agent, s, ok = cutQuoted(s); !ok {
			return "", false
		}
	}
	return agent, true
}

// splitRequest splits the first line of a request. It is lenient with HTTP/0.9,
// which has no version at its end, and with spaces in a URI.
func splitRequest(s string) (method, uri string) {
	method, s, ok := strings.Cut(s, " ")
	if !ok || !isToken(method) {
		return "", ""
	}
	if i := strings.LastIndexByte(s, ' '); i >= 0 && strings.HasPrefix(s[i+1:], "HTTP/") {
		return method, strings.Trim(s[:i], " ")
	}
	s = strings.Trim(s, " ")
	if s == "" || s[0] != '/' || strings.IndexByte(s, ' ') >= 0 {
		return "", ""
	}
	return method, s
}

func isToken(s string) bool {
	for i := range len(s) {
		if !tokenBytes[s[i]] {
			return false
		}
	}
	return s != ""
}

// unescape is s without the escapes of nginx, \xHH, and those of Apache, which
// knows \" and those of C, too. A backslash that begins none of them stays.
func (p *Parser) unescape(s string) string {
	i := strings.IndexByte(s, '\\')
	if i < 0 {
		return s
	}
	from := len(p.scratch)
	for i >= 0 {
		p.scratch = append(p.scratch, s[:i]...)
		c, n := escape(s[i:])
		p.scratch = append(p.scratch, c)
		s = s[i+n:]
		i = strings.IndexByte(s, '\\')
	}
	p.scratch = append(p.scratch, s...)
	return view(p.scratch[from:])
}

// escape is the byte that the escape at the beginning of s stands for, and the
// escape's length.
func escape(s string) (c byte, n int) {
	if len(s) < 2 {
		return '\\', 1
	}
	switch s[1] {
	case '"', '\\':
		return s[1], 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'v':
		return '\v', 2
	case 'x':
		if len(s) >= 4 && hexDigit(s[2]) < 16 && hexDigit(s[3]) < 16 {
			return hexDigit(s[2])<<4 | hexDigit(s[3]), 4
		}
	}
	return '\\', 1
}

// hexDigit is the value of a hexadecimal digit, and 255 of what is none.
func hexDigit(c byte) byte {
	switch {
	case isDigit(c):
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}
