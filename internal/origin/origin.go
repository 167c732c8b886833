// Package origin brings the URLs that others write into one form: the origin, which is scheme, host and port, and the path
// of the page there.
package origin

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/idna"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// URL is an absolute URL of http or https in the one form that pages, sites and links are compared
// in (RFC 3986, section 6.2).
type URL struct {
	Scheme string // "http" or "https"
	Host   string // as [CleanHost] returns it
	Port   string // "" for the scheme's default
	Path   string // with the query, as [page.Normal] returns it
}

// Errors of [ParseURL], besides those of [page.Normal].
var (
	ErrNotAbsolute = errors.New("an absolute URL must begin with https:// or http://")
	ErrControl     = errors.New("the URL contains a control character")
	ErrUserInfo    = errors.New("the URL contains a user name or a password")
	ErrHost        = errors.New("the URL has no valid host")
	ErrPort        = errors.New("the port of a URL must be a number from 1 to 65535")
)

// ParseURL parses an absolute URL of http or https.
func ParseURL(s string) (URL, error) {
	scheme, rest, ok := strings.Cut(s, "://")
	u := URL{Scheme: strings.ToLower(scheme)}
	if !ok || u.Scheme != "http" && u.Scheme != "https" {
		return URL{}, ErrNotAbsolute
	}
	if strings.ContainsFunc(rest, unicode.IsControl) {
		return URL{}, ErrControl
	}
	authority := rest
	ref := "/"
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority = rest[:i]
		ref = rest[i:]
	}
	if strings.Contains(authority, "@") {
		return URL{}, ErrUserInfo
	}
	u.Host, ok = CleanHost(authority)
	if !ok {
		return URL{}, ErrHost
	}
	u.Port, ok = CleanPort(u.Scheme, authority)
	if !ok {
		return URL{}, ErrPort
	}
	if ref[0] != '/' {
		ref = "/" + ref // RFC 3986, section 6.2.3
	}
	path, err := page.Normal(ref)
	if err != nil {
		return URL{}, err
	}
	u.Path = path
	return u, nil
}

// documentExt are extensions of documents, which no folder of a site has. That of programs is not among them:
// https://example.com/index.php is the folder of the pages of many an application.
var documentExt = regexp.MustCompile(`(?i)\.(xml|txt|html?|gz)$`)

// ParseBase parses a base URL: https://example.com/docs/ has the origin https://example.com and the folder /docs. The
// URL of a document, such as a sitemap, is refused: pages would be listed only below its name.
func ParseBase(s string) (origin, folder string, err error) {
	if strings.ContainsAny(s, "?#") {
		return "", "", errors.New("only scheme, host, port and folder are allowed")
	}
	u, err := ParseURL(s)
	if err != nil {
		return "", "", err
	}
	folder = strings.TrimRight(u.Path, "/")
	if documentExt.MatchString(folder) {
		above := page.Folder(folder)
		name := strings.TrimPrefix(folder, above)
		return "", "", fmt.Errorf("%s is a document, not a folder: use %s", name, u.Origin()+strings.TrimRight(above, "/"))
	}
	return u.Origin(), folder, nil
}

// Origin returns the scheme, host and port of u, such as https://example.com:8443.
func (u URL) Origin() string { return Of(u.Scheme, u.Host, u.Port) }

// IsOn reports whether u is a URL of the site at an origin. An application that does not know that TLS ends before it
// writes http into all of its URLs: with both ports the defaults, they are those of the site.
func (u URL) IsOn(origin string) bool {
	isBehindTLS := u.Port == "" && origin == "https://"+u.Host
	return isBehindTLS || origin == u.Origin()
}

// Of returns the origin of a scheme, host and port, without the scheme's default port.
func Of(scheme, host, port string) string {
	if port == "" || port == defaultPort(scheme) {
		return scheme + "://" + host
	}
	return scheme + "://" + host + ":" + port
}

func defaultPort(scheme string) string {
	switch scheme {
	case "http":
		return "80"
	case "https":
		return "443"
	}
	return ""
}

// CleanPort returns the port of host, which may have one; "" for none and for the scheme's default.
// ok is false if it is not a number from 1 to 65535.
func CleanPort(scheme, host string) (port string, ok bool) {
	_, port, err := net.SplitHostPort(host)
	if err != nil || port == "" {
		return "", true
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", false
	}
	port = strconv.FormatUint(n, 10) // without leading zeros
	if port == defaultPort(scheme) {
		return "", true
	}
	return port, true
}

// CleanHost returns a host, given with or without a port, in lower case and ASCII (Punycode), without
// the port and a trailing dot; IPv6 addresses in brackets. ok is false if it is not a valid host.
func CleanHost(host string) (clean string, ok bool) {
	const longest = 4 * 253 // in UTF-8; Punycode takes time quadratic in that
	if isHostName(host) {
		return host, true // as nearly all are written
	}
	if len(host) > longest {
		return "", false
	}
	isBracketed := strings.HasPrefix(host, "[")
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	} else if isBracketed {
		host, ok = strings.CutSuffix(host[1:], "]")
		if !ok {
			return "", false
		}
	}
	// Brackets are for IPv6 (RFC 3986, section 3.2.2).
	if isBracketed && !strings.Contains(host, ":") {
		return "", false
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if isHostName(host) {
		return host, true
	}
	if addr, err := netip.ParseAddr(host); err == nil && addr.Zone() == "" {
		return "[" + addr.String() + "]", true // one of IPv4 looks like a name
	}
	if host, err := idna.Lookup.ToASCII(host); err == nil && isHostName(host) {
		return host, true
	}
	return "", false
}

// HostOf returns the host of an origin, as [CleanHost] does.
func HostOf(origin string) string {
	_, host, _ := strings.Cut(origin, "://")
	host, _ = CleanHost(host)
	return host
}

// special are domains that are not public: those of RFCs 6761, 6762, 7686, 8375 and 9476, and names that ICANN keeps for
// private use or does not delegate. A number ends an IPv4 address.
var special = regexp.MustCompile(`(^|\.)(alt|corp|example|home|home\.arpa|internal|invalid|lan|local|localhost|onion|test|[0-9]+)$`)

// IsPublic reports whether the host of an origin is a name that search engines may know: it has a dot, and is neither of a
// domain for private use nor an IP address.
func IsPublic(origin string) bool {
	host := HostOf(origin)
	return strings.Contains(host, ".") && !strings.HasPrefix(host, "[") && !special.MatchString(host)
}

// isHostName accepts what RFC 1123, section 2.1, allows, in lower case, and the underscore that some names have anyway.
// It checks the host of each request for a document.
func isHostName(host string) bool {
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 {
			return false
		}
		if label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, c := range []byte(label) {
			isLetter := 'a' <= c && c <= 'z'
			isDigit := '0' <= c && c <= '9'
			if !isLetter && !isDigit && c != '-' && c != '_' {
				return false
			}
		}
	}
	return len(host) <= 253
}
