package sitemap

import (
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"golang.org/x/net/idna"
)

// longestHost is longer in UTF-8 than any host name, which has at most 253
// characters; Punycode takes time quadratic in them.
const longestHost = 4 * 253

// cleanHost returns a host in the form that sites are known by: lower case,
// ASCII, no port, no dot at the end; IPv6 addresses in brackets.
func cleanHost(host string) (string, bool) {
	if isHostName(host) {
		return host, true // as nearly all are written
	}
	if len(host) > longestHost {
		return "", false
	}
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	} else if inner, ok := strings.CutPrefix(host, "["); ok {
		if host, ok = strings.CutSuffix(inner, "]"); !ok {
			return "", false
		}
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if isHostName(host) {
		return host, true
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Zone() != "" {
			return "", false
		}
		return "[" + addr.String() + "]", true // one of IPv4 looks like a name
	}
	ascii, err := idna.Lookup.ToASCII(host)
	if err != nil || !isHostName(ascii) {
		return "", false
	}
	return ascii, true
}

// isHostName accepts what RFC 1123, section 2.1, allows, in lower case, and the
// underscore that some names bear all the same.
func isHostName(host string) bool {
	if host == "" || len(host) > 253 {
		return false
	}
	label := 0
	for i := 0; i < len(host); i++ {
		switch c := host[i]; {
		case c == '.':
			if label == 0 || host[i-1] == '-' {
				return false
			}
			label = 0
			continue
		case c == '-' && label == 0:
			return false
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
			label++
		default:
			return false
		}
		if label > 63 {
			return false
		}
	}
	return label > 0 && host[len(host)-1] != '-'
}

// origin writes scheme, host and port; the scheme's own port is left out.
func originOf(scheme, host, port string) string {
	if port == "" || scheme == "http" && port == "80" || scheme == "https" && port == "443" {
		return scheme + "://" + host
	}
	return scheme + "://" + host + ":" + port
}

// listener is how a server is reached.
type listener struct {
	scheme string
	port   string // "" where URLs leave it out
}

// is reports whether an address is at the listener itself.
func (l listener) is(at address) bool { return at.scheme == l.scheme && at.port == l.port }

// listenerOf is the listener that stands in URLs: of several the https one.
func listenerOf(server *caddyhttp.Server, httpPort, httpsPort int) listener {
	best := listener{scheme: "http"}
	for i, address := range server.Listen {
		addr, err := caddy.ParseNetworkAddress(address)
		if err != nil {
			continue
		}
		l := listener{scheme: "http"}
		port := int(addr.StartPort)
		if len(server.TLSConnPolicies) > 0 && port != httpPort {
			l.scheme = "https"
		}
		if port != 0 && port != 80 && port != 443 && port != httpPort && port != httpsPort {
			l.port = strconv.Itoa(port)
		}
		if i == 0 || l.scheme == "https" && best.scheme == "http" {
			best = l
		}
	}
	return best
}

// isPublicName reports whether a host is one that search engines could visit.
func isPublicName(host string) bool {
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return false
	}
	i := strings.LastIndexByte(host, '.')
	if i < 0 {
		return false
	}
	switch host[i+1:] {
	case "localhost", "local", "internal", "test", "example", "invalid", "lan", "home", "arpa", "onion":
		return false
	}
	return true
}

// forwarded is what a trusted proxy in front says of the request it got.
func forwarded(r *http.Request) (scheme, host string) {
	if !isForwarded(r) {
		return "", ""
	}
	if trusted, _ := caddyhttp.GetVar(r.Context(), caddyhttp.TrustedProxyVarKey).(bool); !trusted {
		return "", ""
	}
	first := func(name string) string {
		v, _, _ := strings.Cut(r.Header.Get(name), ",")
		return strings.TrimSpace(v)
	}
	scheme = strings.ToLower(first("X-Forwarded-Proto"))
	if scheme != "http" && scheme != "https" {
		scheme = ""
	}
	return scheme, first("X-Forwarded-Host")
}

// forwardedPort is the port of a host that a proxy passes on, "" where URLs leave it
// out. False: it is no port.
func forwardedPort(scheme, host string) (string, bool) {
	if !strings.Contains(host, ":") {
		return "", true
	}
	_, port, err := net.SplitHostPort(host)
	if err != nil || port == "" {
		return "", true
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", false
	}
	if port = strconv.FormatUint(n, 10); originOf(scheme, "", port) == originOf(scheme, "", "") {
		return "", true
	}
	return port, true
}

// isForwarded reports whether something, trusted or not, claims to be a proxy.
func isForwarded(r *http.Request) bool {
	return r.Header["X-Forwarded-Proto"] != nil || r.Header["X-Forwarded-Host"] != nil
}
