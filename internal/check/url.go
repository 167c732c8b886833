package check

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The lengths of a loc in characters: the schemas want the least, the protocol the
// most.
const (
	minLoc = 12
	maxLoc = 2047
)

// urlFlaw is why a URL cannot be a loc. Its text goes on after the URL's name.
type urlFlaw struct{ code, message string }

var (
	urlEmpty     = &urlFlaw{"empty", "is empty"}
	urlAbsolute  = &urlFlaw{"not-absolute", "is not an absolute http or https URL"}
	urlSpace     = &urlFlaw{"space", "has white space or a control character in it"}
	urlCharacter = &urlFlaw{"character", "has a character that a URL must percent-encode (RFC 3986)"}
	urlPercent   = &urlFlaw{"percent", "has a '%' that no two hexadecimal digits follow"}
	urlUser      = &urlFlaw{"user-info", "has a user name in it"}
	urlHost      = &urlFlaw{"host", "has no valid host or port"}
)

// address is a URL of http or https, taken apart. Its parts are those of the URL's
// text.
type address struct {
	https    bool
	host     []byte // in any case
	port     int
	path     []byte // with query, without fragment; it may be empty
	fragment bool
	unicode  bool // some of it is not ASCII
	respelt  bool // scheme, host and port have a simpler spelling
	triplets bool // the path has some
}

// What a byte can be in a URL.
const (
	urlPlain = iota
	urlBad
	urlBlank
	urlTriplet
	urlHash
	urlBracket
	urlWide
)

var urlBytes = func() (t [256]byte) {
	for c := range t {
		switch {
		case c <= ' ' || c == 0x7F:
			t[c] = urlBlank
		case c >= utf8.RuneSelf:
			t[c] = urlWide
		case c == '%':
			t[c] = urlTriplet
		case c == '#':
			t[c] = urlHash
		case c == '[' || c == ']':
			t[c] = urlBracket
		case strings.IndexByte("\"<>\\^`{|}", byte(c)) >= 0:
			t[c] = urlBad
		}
	}
	return t
}()

// parseAddress takes a URL apart.
func parseAddress(url []byte) (a address, flaw *urlFlaw) {
	if len(url) == 0 {
		return a, urlEmpty
	}
	rest, ok := cutScheme(url, "http://")
	if !ok {
		rest, ok = cutScheme(url, "https://")
		a.https = true
	}
	if !ok {
		return a, urlAbsolute
	}
	a.respelt = hasUpper(url[:len(url)-len(rest)])
	end := 0
	for end < len(rest) && rest[end] != '/' && rest[end] != '?' && rest[end] != '#' {
		end++
	}
	if flaw := a.setAuthority(rest[:end]); flaw != nil {
		return a, flaw
	}
	return a, a.setPath(rest[end:])
}

func cutScheme(url []byte, scheme string) ([]byte, bool) {
	if len(url) < len(scheme) || !bytes.EqualFold(url[:len(scheme)], []byte(scheme)) {
		return nil, false
	}
	return url[len(scheme):], true
}

func (a *address) setAuthority(b []byte) *urlFlaw {
	if bytes.IndexByte(b, '@') >= 0 {
		return urlUser
	}
	a.host, a.port = b, 80
	if a.https {
		a.port = 443
	}
	literal := len(b) > 0 && b[0] == '['
	if colon := bytes.LastIndexByte(b, ':'); colon >= 0 && (!literal || b[colon-1] == ']') {
		port, err := strconv.ParseUint(string(b[colon+1:]), 10, 16)
		if err != nil {
			return urlHost
		}
		a.respelt = a.respelt || int(port) == a.port || b[colon+1] == '0'
		a.host, a.port = b[:colon], int(port)
	}
	a.respelt = a.respelt || hasUpper(a.host)
	if literal {
		return literalFlaw(a.host)
	}
	return a.hostFlaw()
}

func hasUpper(b []byte) bool {
	for _, c := range b {
		if 'A' <= c && c <= 'Z' {
			return true
		}
	}
	return false
}

func literalFlaw(host []byte) *urlFlaw {
	if len(host) < 4 || host[len(host)-1] != ']' {
		return urlHost
	}
	for _, c := range host[1 : len(host)-1] {
		if hexValue(c) > 15 && c != ':' && c != '.' {
			return urlHost
		}
	}
	return nil
}

func (a *address) hostFlaw() *urlFlaw {
	if len(a.host) == 0 {
		return urlHost
	}
	for _, c := range a.host {
		switch class := urlBytes[c]; {
		case class == urlWide:
			a.unicode = true
		case class == urlBlank:
			return urlSpace
		case bytesOf[c]&byteName == 0:
			return urlHost
		}
	}
	return nil
}

// setPath takes what follows the authority. It is where the time goes.
func (a *address) setPath(b []byte) *urlFlaw {
	a.path = b
	for i, c := range b {
		switch urlBytes[c] {
		case urlPlain:
		case urlWide:
			a.unicode = true
		case urlTriplet:
			if i+2 >= len(b) || hexValue(b[i+1]) > 15 || hexValue(b[i+2]) > 15 {
				return urlPercent
			}
			a.triplets = true
		case urlHash:
			if a.fragment {
				return urlCharacter
			}
			a.fragment = true
			a.path = b[:i]
		case urlBlank:
			return urlSpace
		default:
			return urlCharacter
		}
	}
	return nil
}

// simplest is what all spellings of an address have in common (RFC 3986, section
// 6.2.2 and 6.2.3). loc is the one that a was parsed from; buf may be written to.
func (a *address) simplest(loc, buf []byte) []byte {
	rooted := len(a.path) > 0 && a.path[0] == '/'
	if rooted && !a.respelt && !a.fragment && !a.triplets {
		return loc
	}
	scheme, port := "http://", 80
	if a.https {
		scheme, port = "https://", 443
	}
	buf = append(buf[:0], scheme...)
	for _, c := range a.host {
		buf = append(buf, lower(c))
	}
	if a.port != port {
		buf = strconv.AppendInt(append(buf, ':'), int64(a.port), 10)
	}
	if !rooted {
		buf = append(buf, '/')
	}
	return appendSimplest(buf, a.path)
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// appendSimplest appends a path, with unreserved characters decoded, and the
// triplets that are left in upper case.
func appendSimplest(buf, path []byte) []byte {
	const digits = "0123456789ABCDEF"
	for i := 0; i < len(path); i++ {
		c := path[i]
		if c != '%' {
			buf = append(buf, c)
			continue
		}
		c = hexValue(path[i+1])<<4 | hexValue(path[i+2])
		i += 2
		if isUnreserved(c) {
			buf = append(buf, c)
			continue
		}
		buf = append(buf, '%', digits[c>>4], digits[c&15])
	}
	return buf
}

// isUnreserved is of RFC 3986, section 2.3.
func isUnreserved(c byte) bool {
	l := lower(c)
	return 'a' <= l && l <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

// scope is where a document's locs may lie.
type scope struct {
	base   address
	folder []byte // of base, with a slash at its end; nil: any
	prefix []byte // that a loc in scope commonly has, up to the folder's end
	origin int    // how much of prefix is scheme, host and port
}

// scopeOf is the scope of a document at a URL.
func scopeOf(at string) (*scope, *urlFlaw) {
	url := []byte(at)
	base, flaw := parseAddress(url)
	if flaw != nil {
		return nil, flaw
	}
	s := &scope{base: base}
	path, _, _ := bytes.Cut(base.path, []byte("?"))
	s.folder = []byte("/")
	if i := bytes.LastIndexByte(path, '/'); i >= 0 {
		s.folder = path[:i+1]
	}
	s.setPrefix(url)
	return s, nil
}

// scopeFrom is the scope of a document of unknown place whose first loc is url.
func scopeFrom(url []byte) *scope {
	url = bytes.Clone(url)
	base, _ := parseAddress(url)
	s := &scope{base: base}
	s.setPrefix(url)
	return s
}

func (s *scope) setPrefix(url []byte) {
	colon := bytes.IndexByte(url, ':')
	s.origin = colon + 3
	for s.origin < len(url) && url[s.origin] != '/' && url[s.origin] != '?' && url[s.origin] != '#' {
		s.origin++
	}
	folder := s.folder
	if folder == nil {
		folder = []byte("/")
	}
	s.prefix = append(url[:s.origin:s.origin], folder...)
}

// parse is parseAddress, faster for what begins as the scope does.
func (s *scope) parse(url []byte) (address, *urlFlaw) {
	if s == nil || !bytes.HasPrefix(url, s.prefix) {
		return parseAddress(url)
	}
	a := s.base
	a.fragment, a.unicode, a.triplets = false, false, false
	return a, a.setPath(url[s.origin:])
}

// holds says why an address lies outside, or "".
func (s *scope) holds(a address) string {
	switch {
	case a.https != s.base.https:
		return "has another scheme than " + string(s.prefix[:s.origin])
	case a.port != s.base.port:
		return "has another port than " + string(s.prefix[:s.origin])
	case !bytes.EqualFold(a.host, s.base.host):
		return "has another host than " + string(s.prefix[:s.origin])
	case s.folder == nil || bytes.HasPrefix(a.path, s.folder):
		return ""
	case len(s.folder) == 1 && (len(a.path) == 0 || a.path[0] == '?'):
		return ""
	}
	return "lies outside of the document's folder " + string(s.prefix)
}
