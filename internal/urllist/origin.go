package urllist

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

var (
	errRelative  = errors.New("a URL begins with a slash, or with a scheme such as https://")
	errOtherHost = errors.New("a URL that begins with two slashes is one of another host")
	errUserinfo  = errors.New("a URL with a user name or a password")
	errNoHost    = errors.New("a URL without a host")
)

// origin is what the URLs of a site have in common, in lower case and ASCII.
type origin struct{ scheme, host, port string }

// splitURL parts an absolute URL into its origin and the rest, which begins with
// a slash; the origin of a path is the zero value. All is checked that needs no
// site to compare with.
func splitURL(s string) (o origin, ref string, err error) {
	if err := checkBytes(s); err != nil {
		return origin{}, "", err
	}
	if strings.HasPrefix(s, "//") {
		return origin{}, "", errOtherHost
	}
	if strings.HasPrefix(s, "/") {
		return origin{}, s, nil
	}
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || !isScheme(scheme) {
		return origin{}, "", errRelative
	}
	scheme = strings.ToLower(scheme)
	if scheme != "https" && scheme != "http" {
		return origin{}, "", fmt.Errorf("a URL of a site begins with https:// or http://, not %s://", short(scheme))
	}
	authority, ref := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, ref = rest[:i], rest[i:]
	}
	if o, err = parseAuthority(scheme, authority); err != nil {
		return origin{}, "", err
	}
	if !strings.HasPrefix(ref, "/") {
		ref = "/" + ref // RFC 3986, section 6.2.3
	}
	return o, ref, nil
}

// checkBytes refuses control characters, and percent signs that begin no escape.
func checkBytes(s string) error {
	fragment := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c < ' ' || c == 0x7F:
			return errControl
		case c == 0xC2 && i+1 < len(s) && s[i+1] < 0xA0: // U+0080 to U+009F
			return errControl
		case c == '#':
			fragment = true
		case c == '%' && !fragment && (i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2])):
			return page.ErrEscape
		}
	}
	return nil
}

// parseBase reads a site's scheme, host and port.
func parseBase(base string) (origin, error) {
	o, ref, err := splitURL(base)
	if err != nil {
		return origin{}, fmt.Errorf("base '%s': %w", short(base), err)
	}
	if o == (origin{}) || ref != "/" {
		return origin{}, fmt.Errorf("base '%s': a scheme and a host are wanted, such as https://example.com", short(base))
	}
	return o, nil
}

func parseAuthority(scheme, authority string) (origin, error) {
	if strings.Contains(authority, "@") {
		return origin{}, errUserinfo
	}
	host, port := authority, ""
	if i := strings.LastIndexByte(authority, ':'); i > strings.LastIndexByte(authority, ']') {
		host, port = authority[:i], authority[i+1:]
	}
	if host == "" {
		return origin{}, errNoHost
	}
	switch {
	case port != "":
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return origin{}, fmt.Errorf("port '%s' is no number up to 65535", short(port))
		}
		port = strconv.FormatUint(n, 10)
	case scheme == "https":
		port = "443"
	case scheme == "http":
		port = "80"
	}
	if !isASCII(host) {
		ascii, ok := asciiHost(host)
		if !ok {
			return origin{}, fmt.Errorf("host '%s' is no domain name", short(host))
		}
		host = ascii
	}
	return origin{scheme: scheme, host: strings.ToLower(host), port: port}, nil
}

// maxHost is longer in UTF-8 than any domain name, which has at most 253
// characters; Punycode takes time quadratic in them.
const maxHost = 4 * 253

func asciiHost(host string) (string, bool) {
	if len(host) > maxHost {
		return "", false
	}
	ascii, err := idna.Lookup.ToASCII(host)
	return ascii, err == nil
}

func (o origin) sameAs(site origin) error {
	for _, part := range [...]struct{ name, is, want string }{
		{"scheme", o.scheme, site.scheme},
		{"host", o.host, site.host},
		{"port", o.port, site.port},
	} {
		if part.is != part.want {
			return fmt.Errorf("the %s '%s' is not the site's, '%s'", part.name, short(part.is), part.want)
		}
	}
	return nil
}

// isScheme is RFC 3986, section 3.1.
func isScheme(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !isLetter(c) && (i == 0 || !isDigit(c) && c != '+' && c != '-' && c != '.') {
			return false
		}
	}
	return s != ""
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }
