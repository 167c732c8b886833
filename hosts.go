package sitemap

import (
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

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

// isForwarded reports whether something, trusted or not, claims to be a proxy.
func isForwarded(r *http.Request) bool {
	return r.Header["X-Forwarded-Proto"] != nil || r.Header["X-Forwarded-Host"] != nil
}
