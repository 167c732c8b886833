package sitemap

import (
	"context"
	"net/http"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddytls"
)

func TestListenerOf(t *testing.T) {
	for name, test := range map[string]struct {
		listen          []string
		tls             bool
		httpPort, https int
		want            listener
	}{
		"http":                          {[]string{":80"}, false, 80, 443, listener{"http", ""}},
		"https":                         {[]string{":443"}, true, 80, 443, listener{"https", ""}},
		"odd http":                      {[]string{":8080"}, false, 80, 443, listener{"http", "8080"}},
		"odd https":                     {[]string{"127.0.0.1:8443"}, true, 80, 443, listener{"https", "8443"}},
		"the app's http port":           {[]string{":8080"}, false, 8080, 8443, listener{"http", ""}},
		"the app's https port":          {[]string{":8443"}, true, 8080, 8443, listener{"https", ""}},
		"http on the app's https port":  {[]string{":8443"}, false, 8080, 8443, listener{"http", ""}},
		"TLS, but the app's http port":  {[]string{":8080"}, true, 8080, 8443, listener{"http", ""}},
		"80 where the app's is another": {[]string{":80"}, false, 8080, 8443, listener{"http", ""}},
		"several, https last":           {[]string{":80", ":8443"}, true, 80, 443, listener{"https", "8443"}},
		"several, https first":          {[]string{":443", ":80"}, true, 80, 443, listener{"https", ""}},
		"several, all http":             {[]string{":8080", ":9090"}, false, 80, 443, listener{"http", "8080"}},
		"several, all https":            {[]string{":443", ":8443"}, true, 80, 443, listener{"https", ""}},
		"a range":                       {[]string{":8080-8085"}, false, 80, 443, listener{"http", "8080"}},
		"a socket":                      {[]string{"unix//run/caddy.sock"}, false, 80, 443, listener{"http", ""}},
		"a socket with TLS":             {[]string{"unix//run/caddy.sock"}, true, 80, 443, listener{"https", ""}},
		"UDP and TCP":                   {[]string{"udp/:443", ":443"}, true, 80, 443, listener{"https", ""}},
		"none":                          {nil, false, 80, 443, listener{"http", ""}},
	} {
		server := &caddyhttp.Server{Listen: test.listen}
		if test.tls {
			server.TLSConnPolicies = caddytls.ConnectionPolicies{new(caddytls.ConnectionPolicy)}
		}
		if got := listenerOf(server, test.httpPort, test.https); got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

func TestIsPublicName(t *testing.T) {
	for host, want := range map[string]bool{
		"example.com": true, "www.example.co.uk": true, "xn--bcher-kva.de": true,
		"localhost": false, "app.localhost": false, "printer.local": false, "host.internal": false, "a.test": false, "a.example": false,
		"intranet": false, "192.0.2.1": false, "[2001:db8::1]": false, "1.0.0.127.in-addr.arpa": false, "x.onion": false,
	} {
		if got := isPublicName(host); got != want {
			t.Errorf("%s: got %t, want %t", host, got, want)
		}
	}
}

func TestForwarded(t *testing.T) {
	const proto, host = "X-Forwarded-Proto", "X-Forwarded-Host"
	for name, test := range map[string]struct {
		trusted      bool
		header       http.Header
		scheme, host string
	}{
		"both":         {true, http.Header{proto: {"https"}, host: {"example.com"}}, "https", "example.com"},
		"upper case":   {true, http.Header{proto: {"HTTPS"}}, "https", ""},
		"lists":        {true, http.Header{proto: {" https , http"}, host: {"a.example, b.example"}}, "https", "a.example"},
		"several":      {true, http.Header{proto: {"https", "http"}, host: {"a.example", "b.example"}}, "https", "a.example"},
		"other scheme": {true, http.Header{proto: {"wss"}, host: {"a.example"}}, "", "a.example"},
		"nothing":      {true, http.Header{}, "", ""},
		"not trusted":  {false, http.Header{proto: {"https"}, host: {"example.com"}}, "", ""},
	} {
		ctx := context.WithValue(context.Background(), caddyhttp.VarsCtxKey, map[string]any{caddyhttp.TrustedProxyVarKey: test.trusted})
		r := (&http.Request{Header: test.header}).WithContext(ctx)
		if scheme, host := forwarded(r); scheme != test.scheme || host != test.host {
			t.Errorf("%s: got %q, %q, want %q, %q", name, scheme, host, test.scheme, test.host)
		}
	}
}
