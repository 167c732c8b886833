package urllist

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode"

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

// splitURL parts an absolute URL into its origin and its path and query in canonical
// form; the origin of a path is the zero value.
func splitURL(s string) (o origin, path string, err error) {
	switch {
	case strings.ContainsFunc(s, unicode.IsControl):
		return origin{}, "", errControl
	case strings.HasPrefix(s, "//"):
		return origin{}, "", errOtherHost
	case strings.HasPrefix(s, "/"):
		path, err = page.Canonical(s)
		return origin{}, path, err
	}
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		return origin{}, "", errRelative
	}
	scheme = strings.ToLower(scheme)
	if scheme != "https" && scheme != "http" {
		return origin{}, "", fmt.Errorf("a URL of a site begins with https:// or http://, not %s://", short(scheme))
	}
	authority := rest
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority = rest[:i]
	}
	if o, err = parseAuthority(scheme, authority); err != nil {
		return origin{}, "", err
	}
	ref := rest[len(authority):]
	if !strings.HasPrefix(ref, "/") {
		ref = "/" + ref // RFC 3986, section 6.2.3
	}
	if path, err = page.Canonical(ref); err != nil {
		return origin{}, "", err
	}
	return o, path, nil
}

// maxAuthority is longer in UTF-8 than any domain name, which has at most 253
// characters, and a port; Punycode takes time quadratic in them.
const maxAuthority = 4*253 + len(":65535")

func parseAuthority(scheme, authority string) (origin, error) {
	u, err := url.Parse(scheme + "://" + authority)
	switch {
	case strings.Contains(authority, "@"):
		return origin{}, errUserinfo
	case err != nil || len(authority) > maxAuthority:
		return origin{}, fmt.Errorf("'%s' is no host with a port", short(authority))
	case u.Hostname() == "":
		return origin{}, errNoHost
	}
	o := origin{scheme, strings.ToLower(u.Hostname()), u.Port()}
	switch {
	case o.port != "":
		o.port = strings.TrimLeft(o.port, "0")
	case scheme == "https":
		o.port = "443"
	default:
		o.port = "80"
	}
	if strings.ContainsFunc(o.host, func(r rune) bool { return r > unicode.MaxASCII }) {
		if o.host, err = idna.Lookup.ToASCII(o.host); err != nil {
			return origin{}, fmt.Errorf("'%s' is no domain name", short(authority))
		}
	}
	return o, nil
}

// parseBase reads a site's scheme, host and port.
func parseBase(base string) (origin, error) {
	o, path, err := splitURL(base)
	if err != nil {
		return origin{}, fmt.Errorf("base '%s': %w", short(base), err)
	}
	if o == (origin{}) || path != "/" {
		return origin{}, fmt.Errorf("base '%s': a scheme and a host are wanted, such as https://example.com", short(base))
	}
	return o, nil
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
