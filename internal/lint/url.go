package lint

import (
	"net"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// The lengths of a loc in characters: the schemas set the least, the protocol the most.
const (
	minLoc = 12
	maxLoc = 2047
)

// urlError is why a URL cannot be a loc. Its message follows the URL's name.
type urlError struct{ code, message string }

// address is a URL of http or https, normalized (RFC 3986, section 6.2).
type address struct {
	scheme, host, port string
	path               string // with query, without fragment
	fragment           bool
	normal             bool // it was written like this
}

func (a *address) origin() string {
	if a.port == "80" && a.scheme == "http" || a.port == "443" && a.scheme == "https" {
		if strings.Contains(a.host, ":") {
			return a.scheme + "://[" + a.host + "]"
		}
		return a.scheme + "://" + a.host
	}
	return a.scheme + "://" + net.JoinHostPort(a.host, a.port)
}

func parseURL(loc string) (a address, bad *urlError) {
	if loc == "" {
		return a, &urlError{"empty", "is empty"}
	}
	scheme, _, ok := strings.Cut(loc, "://")
	if a.scheme = strings.ToLower(scheme); !ok || a.scheme != "http" && a.scheme != "https" {
		return a, &urlError{"not-absolute", "is not an absolute http or https URL"}
	}
	if strings.ContainsFunc(loc, func(r rune) bool { return r <= ' ' || r == 0x7F || unicode.IsSpace(r) }) {
		return a, &urlError{"space", "has white space or a control character in it"}
	}
	u, err := url.Parse(loc)
	if err != nil {
		if rest, _, _ := strings.Cut(loc[len(scheme)+3:], "/"); strings.Contains(rest, "%") || !strings.Contains(err.Error(), "escape") {
			return a, &urlError{"host", "has no valid host or port"}
		}
		return a, &urlError{"percent", "has a '%' that two hexadecimal digits do not follow"}
	}
	a.host, a.port, a.fragment = strings.ToLower(u.Hostname()), u.Port(), strings.Contains(loc, "#")
	port, err := strconv.ParseUint(a.port, 10, 16)
	switch {
	case u.User != nil:
		return a, &urlError{"user-info", "has a user name in it"}
	case a.host == "", strings.HasSuffix(u.Host, ":"), strings.ContainsAny(a.host, "!$&'()*+,;=~%\"<>"), a.port != "" && err != nil:
		return a, &urlError{"host", "has no valid host or port"}
	case strings.ContainsAny(u.EscapedPath()+u.RawQuery, "[]") || strings.ContainsAny(loc, "\"<>\\^`{|}") || strings.Contains(u.Fragment, "#"):
		return a, &urlError{"character", "has a character that a URL must percent-encode (RFC 3986)"}
	}
	if a.port = strconv.FormatUint(port, 10); port == 0 {
		a.port = map[string]string{"http": "80", "https": "443"}[a.scheme]
	}
	path, err := page.Canonical(pathOf(u))
	if err != nil {
		return a, &urlError{"percent", "has a '%' that two hexadecimal digits do not follow"}
	}
	a.path = path
	a.normal = loc == a.origin()+path
	return a, nil
}

func pathOf(u *url.URL) string {
	u.Fragment, u.RawFragment = "", ""
	return u.RequestURI()
}

// scope is where a document's locs may lie.
type scope struct {
	address
	origin string
	folder string // of the path, with a slash at its end; "": any
}

// parse is parseURL, fast for what is written as the scope is.
func (s *scope) parse(loc string) (address, *urlError) {
	if s != nil {
		if path, ok := strings.CutPrefix(loc, s.origin); ok && page.IsNormal(path) {
			a := s.address
			a.path, a.normal, a.fragment = path, true, false
			return a, nil
		}
	}
	return parseURL(loc)
}

// newScope is the scope of a document at a URL.
func newScope(at string) (*scope, *urlError) {
	a, bad := parseURL(at)
	if bad != nil {
		return nil, bad
	}
	return &scope{a, a.origin(), page.Folder(a.path)}, nil
}

// outside says why an address lies outside, or "".
func (s *scope) outside(a *address) string {
	switch {
	case a.scheme != s.scheme:
		return "has another scheme than " + s.origin
	case a.host != s.host:
		return "has another host than " + s.origin
	case a.port != s.port:
		return "has another port than " + s.origin
	case !strings.HasPrefix(a.path, s.folder):
		return "lies outside the document's folder " + s.origin + s.folder
	}
	return ""
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}
