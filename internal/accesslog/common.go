package accesslog

import (
	"strconv"
	"strings"

	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/visits"
)

// parseCommon reads a line such as
//
//	192.0.2.1 - user [02/Jan/2006:15:04:05 -0700] "GET / HTTP/1.1" 200 1234 "referer" "user agent"
//
// which a virtual host may precede and anything may follow.
func (p *Parser) parseCommon(s string, v *visits.Visit) error {
	// A virtual host with an address of IPv6 begins with a bracket, too.
	who, s, ok := strings.Cut(s, " [")
	if !ok || !setClient(v, who) || strings.IndexByte(s, 0) >= 0 {
		return ErrSyntax
	}
	when, s, ok := strings.Cut(s, "]")
	if !ok {
		return ErrSyntax
	}
	// A busy log has many lines of a second.
	if when != p.lastTime {
		p.lastTime = strings.Clone(when)
		p.lastUnix = parseCommonTime(when)
	}
	v.Time = p.lastUnix
	request, s, ok := cutQuoted(s)
	if !ok {
		return ErrSyntax
	}
	status, s := cutWord(s)
	size, s := cutWord(s)
	if !isNumber(status) || !isNumber(size) || len(status) != 3 && status != "-" {
		return ErrSyntax
	}
	v.Status = parseStatus(status)
	v.UserAgent, ok = p.parseAgent(s)
	if !ok {
		return ErrSyntax
	}
	v.Method, v.URI = splitRequest(request)
	v.URI = unescape(v.URI)
	// Proxies and content delivery networks log absolute URLs, whose host counts more than another one of the line.
	if u, err := origin.ParseURL(v.URI); err == nil {
		v.Host = u.Host
		v.URI = u.Path
	}
	return nil
}

// parseAgent reads the referer and the User-Agent that may follow; "": the format has none. false: the format has to have them.
func (p *Parser) parseAgent(s string) (agent string, ok bool) {
	isCombined := p.format == "combined"
	mayFollow := isCombined || p.format != "common" && strings.HasPrefix(s, ` "`)
	if !mayFollow {
		return "", true
	}
	_, s, ok = cutQuoted(s) // the referer
	if !ok {
		return "", false
	}
	// The referer may stand alone.
	if !isCombined && !strings.HasPrefix(s, ` "`) {
		return "", true
	}
	agent, _, ok = cutQuoted(s)
	return unescape(agent), ok
}

const (
	digits       = "0123456789"
	alphanumeric = digits + "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

var (
	addressBytes = newSet(alphanumeric + ".:-_%[],")
	tokenBytes   = newSet(alphanumeric + "!#$%&'*+-.^_`|~") // RFC 9110, section 5.6.2
)

func newSet(bytes string) (set [256]bool) {
	for i := range len(bytes) {
		set[bytes[i]] = true
	}
	return set
}

// isAll reports whether s has only bytes of a set, and some.
func isAll(s string, set *[256]bool) bool {
	for i := range len(s) {
		if !set[s[i]] {
			return false
		}
	}
	return s != ""
}

// setClient reads what precedes the time into v: [host] client identity user. A user's name may have spaces in it. An identity
// is hardly ever known, and with a host in front it must not be, to tell the host from prefixes of syslog and the like. For
// the client, there may be a list of addresses, from X-Forwarded-For.
func setClient(v *visits.Visit, s string) bool {
	s = strings.ReplaceAll(s, ", ", ",")
	client, s, _ := strings.Cut(s, " ")
	identity, user, ok := strings.Cut(s, " ")
	// A fourth word is a user's name, or a virtual host comes first: then what seemed to be the identity is the client.
	if dash, rest, more := strings.Cut(user, " "); more && identity != "-" {
		if dash != "-" || !isAll(client, &addressBytes) || !isPort(client) {
			return false
		}
		if client != "-" {
			v.Host = client
		}
		client = identity
		user = rest
	}
	v.User = user != "" && user != "-" && user != `""`
	return ok && isAll(client, &addressBytes)
}

// isPort reports whether s ends with a port, if with a colon at all.
func isPort(s string) bool {
	i := strings.LastIndexByte(s, ':')
	return i < 0 || strings.HasSuffix(s, "]") || isNumber(s[i+1:])
}

func isNumber(s string) bool { return s == "-" || s != "" && strings.Trim(s, digits) == "" }

// cutWord cuts a space and what is before the next one from s.
func cutWord(s string) (word, rest string) {
	s = strings.TrimPrefix(s, " ")
	if i := strings.IndexByte(s, ' '); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

// cutQuoted cuts a space and what is in quotes after it from s.
func cutQuoted(s string) (quoted, rest string, ok bool) {
	if !strings.HasPrefix(s, ` "`) {
		return "", "", false
	}
	end := stringEnd(s, 2)
	if end < 0 || end < len(s) && s[end] != ' ' {
		return "", "", false
	}
	return s[2 : end-1], s[end:], true
}

// splitRequest splits the first line of a request. It is lenient with HTTP/0.9, which has no version at its
// end, and with spaces in a URI.
func splitRequest(s string) (method, uri string) {
	method, s, _ = strings.Cut(s, " ")
	i := strings.LastIndexByte(s, ' ')
	hasVersion := i >= 0 && strings.HasPrefix(s[i+1:], "HTTP/")
	if hasVersion {
		s = s[:i]
	}
	s = strings.Trim(s, " ")
	if !hasVersion && (!strings.HasPrefix(s, "/") || strings.IndexByte(s, ' ') >= 0) {
		return "", ""
	}
	if !isAll(method, &tokenBytes) {
		return "", ""
	}
	return method, s
}

// unescape returns s without the escapes of nginx, \xHH, and those of Apache, which knows \" and those of C,
// too. A backslash that begins none of them stays.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for s != "" {
		c, _, rest, err := strconv.UnquoteChar(s, '"')
		if err != nil || s[0] != '\\' || strings.IndexByte(`"\bfnrtvx`, s[1]) < 0 {
			c = rune(s[0])
			rest = s[1:]
		}
		b.WriteByte(byte(c))
		s = rest
	}
	return b.String()
}
