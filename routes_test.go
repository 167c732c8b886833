package sitemap

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddytls"
)

// TestWalk: where a handler is mounted, and which file servers follow it there.
func TestWalk(t *testing.T) {
	serve := func(root string) string { return "file_server {; root " + root + "; }; " }
	for name, test := range map[string]struct{ caddyfile, want string }{ // hosts, prefix and roots of each mount
		"alone":                         {"http://:9080 {; sitemap; }", "all  []"},
		"absent":                        {"http://:9080 {; " + serve("a") + "}", ""},
		"in a site":                     {"http://a.example:9080 {; sitemap; " + serve("a") + "}", "[a.example]  [a]"},
		"the file server of another":    {"http://a.example:9080 {; sitemap; }; http://b.example:9080 {; " + serve("b") + "}", "[a.example]  []"},
		"hosts that overlap":            {"http://*.example:9080 {; @a host a.example; @b host b.example; route {; sitemap @a; file_server @b {; root b; }; " + serve("all") + "}; }", "[a.example]  [all]"},
		"a matcher without a host":      {"http://:9080 {; @a {; path /a; }; sitemap @a; }", "all  []"},
		"a pattern inside hosts":        {"http://a.example:9080, http://c.test:9080 {; @e host *.example; sitemap @e; }", "[a.example]  []"},
		"hosts that exclude each other": {"http://a.example:9080 {; @b host b.example; sitemap @b; }", "[]  []"},
		"a file server before":          {"http://:9080 {; route {; " + serve("before") + "sitemap; " + serve("after") + "}; }", "all  [before after]"},
		"in a handle of several":        {"http://:9080 {; handle /a {; sitemap; " + serve("mine") + "}; handle {; " + serve("other") + "}; }", "all  [mine other]"},
		"before handles":                {"http://:9080 {; sitemap; handle /a {; " + serve("one") + "}; handle {; " + serve("two") + "}; }", "all  [one two]"},
		"roots set behind":              {"http://:9080 {; sitemap; handle /a {; root one; file_server; }; handle {; root two; " + serve("2") + "}; }", "all  [one 2]"},
		"handle_path":                   {"http://:9080 {; handle_path /docs/* {; sitemap; " + serve("docs") + "}; handle {; " + serve("all") + "}; }", "all /docs [docs]"},
		"handle_path in handle_path":    {"http://:9080 {; handle_path /a/* {; handle_path /b/* {; sitemap; }; }; }", "all /a/b []"},
		"a prefix that URLs escape":     {"http://:9080 {; route {; uri strip_prefix \"/my docs\"; uri strip_prefix /b%20c/; sitemap; }; }", "all /my%20docs/b%20c []"},
		"a prefix with a percent sign":  {"http://:9080 {; route {; uri strip_prefix /100%; sitemap; }; }", "all /100%25 []"},
		"a prefix with a placeholder":   {"http://:9080 {; route {; uri strip_prefix /{host}; sitemap; }; }", "all  []"},
		"invoked twice": {"&(site) {; route {; sitemap; " + serve("site") + "}; }; http://a.example:9080 {; invoke site; }; http://b.example:9080 {; handle_path /b/* {; invoke site; }; " + serve("b") + "}",
			"[a.example]  [site], [b.example] /b [site]"},
		"behind what is invoked": {"&(strip) {; uri strip_prefix /docs; }; http://:9080 {; route {; invoke strip; sitemap; }; }", "all /docs []"},
		"invoked by itself":      {"&(loop) {; route {; sitemap; invoke loop; " + serve("a") + "}; }; http://:9080 {; invoke loop; }", "all  [a]"},
	} {
		var got []string
		for _, mounts := range walk(serverOf(t, strings.ReplaceAll(test.caddyfile, "; ", "\n")+"\n", "", ":9080")) {
			for _, m := range mounts {
				var roots []string
				for _, server := range m.servers {
					roots = append(roots, server.root)
				}
				hosts := fmt.Sprint(m.hosts)
				if m.hosts == nil {
					hosts = "all"
				}
				got = append(got, fmt.Sprintf("%s %s %v", hosts, m.prefix, roots))
			}
		}
		if slices.Sort(got); strings.Join(got, ", ") != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// TestMounts: which prefixes and hosts lead to a handler.
func TestMounts(t *testing.T) {
	s := mounts{
		{hosts: []string{"B.example", "*.lan", "a.example:80"}, prefix: ""},
		{hosts: []string{"b.example", "c.example", "D.example"}, prefix: ""},
		{hosts: nil, prefix: "/docs"},
		{hosts: []string{"*.wild"}, prefix: "/wild"},
	}
	for path, want := range map[string]string{"/docs/a": "/docs", "/docs": "", "/docsy/a": "", "/a": "", "/wild/docs/a": "/wild"} {
		if got := s.prefixOf(path); got != want {
			t.Errorf("prefix of %s: got %q, want %q", path, got, want)
		}
	}
	if got, want := s.hosts(""), []string{"b.example", "a.example", "c.example", "d.example"}; !slices.Equal(got, want) {
		t.Errorf("hosts: got %q, want %q", got, want)
	}
	for _, test := range []struct {
		host, prefix string
		named        bool
		matched      bool
		like         string
	}{
		{"c.example", "", true, true, "c.example"},
		{"d.example", "", true, true, "d.example"},
		{"x.lan", "", false, true, "x.lan"},
		{"x.example", "", false, false, "b.example"},
		{"x.example", "/docs", false, true, "x.example"},
		{"x.example", "/wild", false, false, "any.wild"},
		{"x.wild", "/wild", false, true, "x.wild"},
		{"x.example", "/none", false, false, "x.example"},
	} {
		if got := slices.Contains(s.hosts(test.prefix), test.host); got != test.named || s.spellsOut(test.host, test.prefix) != test.named {
			t.Errorf("%s in %q: named %t, want %t", test.host, test.prefix, got, test.named)
		}
		if got := s.matchesHost(test.host, test.prefix); got != test.matched {
			t.Errorf("%s in %q: matched %t, want %t", test.host, test.prefix, got, test.matched)
		}
		if got := s.spelled(test.host, test.prefix); got != test.host {
			t.Errorf("%s in %q: spelled %q", test.host, test.prefix, got)
		}
		if got := s.representativeHost(test.host, test.prefix); got != test.like {
			t.Errorf("%s in %q: a representative is %q, want %q", test.host, test.prefix, got, test.like)
		}
	}
}

// TestSpelledHosts: a fetch names a host with the dot that its matchers have, if all have it.
func TestSpelledHosts(t *testing.T) {
	s := mounts{
		{hosts: []string{"Shop.test.", "both.test", "both.test.", "*.wild.", "::1"}},
		{hosts: []string{"other.test."}},
		{hosts: []string{"other.test"}},
		{hosts: []string{"all.test."}, prefix: "/all"},
		{hosts: nil, prefix: "/all"},
		{hosts: []string{"{env.HOST}."}, prefix: "/later"},
	}
	for _, test := range []struct{ host, prefix, want string }{
		{"shop.test", "", "shop.test."},
		{"both.test", "", "both.test"},
		{"other.test", "", "other.test"},
		{"a.wild", "", "a.wild."},
		{"[::1]", "", "[::1]"},
		{"none.test", "", "none.test"},
		{"all.test", "/all", "all.test"},
		{"any.test", "/later", "any.test."},
		{"shop.test", "/none", "shop.test"},
	} {
		if got := s.spelled(test.host, test.prefix); got != test.want {
			t.Errorf("%s in %q: got %s, want %s", test.host, test.prefix, got, test.want)
		}
	}
	b := newBench(t, func(h *Handler) { h.mounts = s })
	i := newIdentity(siteID{b.handler, address{scheme: "http", host: "shop.test", port: "8080"}}, false)
	if i.origin != "http://shop.test.:8080" || i.internalOrigin != i.origin {
		t.Errorf("pages are listed at %s and fetched from %s", i.origin, i.internalOrigin)
	}
}

// TestRoutesDigest: what changes nothing of what routes answer leaves the digest as it is.
func TestRoutesDigest(t *testing.T) {
	const (
		pages = "\troot /srv/a\n\ttry_files {path} {path}.html\n\trespond /gone* gone 410\n\t@old not path /new/* /other/*\n\tredir @old /new{uri}\n" +
			"\thandle /app/* {\n\t\treverse_proxy 192.0.2.1:8080\n\t}\n\thandle {\n\t\tfile_server\n\t}\n"
		base  = "http://a.example:9080 {\n\tsitemap\n" + pages + "}\n"
		named = "&(all) {\n\trespond gone 410\n}\n"
	)
	digest := func(caddyfile string) uint64 {
		digest, _ := digestRoutes(serverOf(t, caddyfile, "", ":9080"), "a.example", false)
		return digest
	}
	want := digest(base)
	for name, test := range map[string]struct {
		caddyfile string
		same      bool
	}{
		"the same":                  {base, true},
		"a comment":                 {"# comment\n" + base, true},
		"another order of patterns": {strings.Replace(base, "/new/* /other/*", "/other/* /new/*", 1), false},
		"another setting of ours":   {strings.Replace(base, "sitemap\n", "sitemap {\n\t\trefresh 5m\n\t}\n", 1), true},
		"another upstream":          {strings.Replace(base, "192.0.2.1", "192.0.2.2", 1), true},
		"global options":            {"{\n\tgrace_period 5s\n}\n" + base, true},
		"an access log":             {strings.Replace(base, "sitemap\n", "sitemap\n\tlog\n", 1), true},

		"a hidden name":    {strings.Replace(base, "file_server\n", "file_server {\n\t\t\thide *.tmp\n\t\t}\n", 1), false},
		"another root":     {strings.Replace(base, "/srv/a", "/srv/b", 1), false},
		"another status":   {strings.Replace(base, "410", "404", 1), false},
		"another pattern":  {strings.Replace(base, "/gone*", "/old*", 1), false},
		"another negation": {strings.Replace(base, "/new/*", "/newer/*", 1), false},
		"another host":     {strings.Replace(base, "a.example", "b.example", 1), false},
		"another site":     {base + "http://b.example:9080 {\n\trespond b\n}\n", true},
		"a wider site":     {base + "http://*.example:9080 {\n\trespond b\n}\n", false},
		"an error route":   {strings.Replace(base, "sitemap\n", "sitemap\n\thandle_errors {\n\t\trespond sorry\n\t}\n", 1), false},
		"a header":         {strings.Replace(base, "sitemap\n", "sitemap\n\theader X-Robots-Tag noindex\n", 1), false},
		"a named route":    {named + strings.Replace(base, "sitemap\n", "sitemap\n\tinvoke all\n", 1), false},
	} {
		if got := digest(test.caddyfile); (got == want) != test.same {
			t.Errorf("%s: the digest is the same: %t, want %t", name, got == want, test.same)
		}
	}
	// Roots differ by the machine.
	elsewhere := strings.Replace(base, "/srv/a", `/srv/"b"`, 1)
	ofFleet, _ := digestRoutes(serverOf(t, base, "", ":9080"), "a.example", true)
	again, _ := digestRoutes(serverOf(t, elsewhere, "", ":9080"), "a.example", true)
	if ofFleet != again {
		t.Error("in a fleet, where the root lies counts")
	}
	invoked := named + "http://a.example:9080 {\n\tsitemap\n\tinvoke all\n}\n"
	if digest(invoked) == digest(strings.Replace(invoked, "410", "404", 1)) {
		t.Error("what a named route says does not count")
	}
	// Groups of routes are numbered over all servers.
	other := "http://a.example:8080 {\n\thandle /x {\n\t\trespond x\n\t}\n\thandle {\n\t\trespond y\n\t}\n}\n"
	if got := digest(other + base); got != want {
		t.Error("routes of another server count")
	}
}

// TestSettingsOf: a module that cannot be encoded is known by its type, and the matchers
// of a set come in no order.
func TestSettingsOf(t *testing.T) {
	for _, module := range []any{struct{ C chan int }{}, panicking{}, nil} {
		if got := settingsOf(module); !strings.HasPrefix(got, fmt.Sprintf("%T", module)) {
			t.Errorf("%T: got %q", module, got)
		}
	}
	a, b := caddyhttp.MatchPath{"/a"}, caddyhttp.MatchPath{"/b"}
	not := func(sets ...caddyhttp.MatcherSet) string {
		return settingsOf(caddyhttp.MatcherSets{{&caddyhttp.MatchNot{MatcherSets: sets}}})
	}
	if not(caddyhttp.MatcherSet{a, b}) != not(caddyhttp.MatcherSet{b, a}) || not(caddyhttp.MatcherSet{a, b}) == not(caddyhttp.MatcherSet{a}, caddyhttp.MatcherSet{b}) {
		t.Error("matchers of a set come in an order, or sets in none")
	}
}

type panicking struct{}

func (panicking) MarshalJSON() ([]byte, error) { panic("not provisioned") }

func TestListenerOf(t *testing.T) {
	for _, test := range []struct {
		listen          string
		tls             bool
		httpPort, https int
		want            address
	}{
		{":80", false, 80, 443, address{scheme: "http", port: ""}},
		{":443", true, 80, 443, address{scheme: "https", port: ""}},
		{":8080", false, 80, 443, address{scheme: "http", port: "8080"}},
		{"127.0.0.1:8443", true, 80, 443, address{scheme: "https", port: "8443"}},
		{":8080", false, 8080, 8443, address{scheme: "http", port: ""}},
		{":8443", true, 8080, 8443, address{scheme: "https", port: ""}},
		{":8443", false, 8080, 8443, address{scheme: "http", port: ""}},
		{":8080", true, 8080, 8443, address{scheme: "http", port: ""}},
		{":80", false, 8080, 8443, address{scheme: "http", port: ""}},
		{":80 :8443", true, 80, 443, address{scheme: "https", port: "8443"}},
		{":443 :80", true, 80, 443, address{scheme: "https", port: ""}},
		{":8080 :9090", false, 80, 443, address{scheme: "http", port: "8080"}},
		{":8080-8085", false, 80, 443, address{scheme: "http", port: "8080"}},
		{"unix//run/caddy.sock", true, 80, 443, address{scheme: "https", port: ""}},
		{":0:0 :443", true, 80, 443, address{scheme: "https", port: ""}},
		{"udp/:443 :443", true, 80, 443, address{scheme: "https", port: ""}},
		{"", false, 80, 443, address{scheme: "http", port: ""}},
	} {
		server := &caddyhttp.Server{Listen: strings.Fields(test.listen)}
		if test.tls {
			server.TLSConnPolicies = caddytls.ConnectionPolicies{new(caddytls.ConnectionPolicy)}
		}
		if got := listenerOf(server, test.httpPort, test.https); got != test.want {
			t.Errorf("%+v: got %+v", test, got)
		}
	}
}

// TestTrustsProxies reads a field of Caddy's that is not exported.
func TestTrustsProxies(t *testing.T) {
	const site = "http://:9080 {\n\tsitemap\n}\n"
	for options, want := range map[string]bool{
		"":                                    false,
		"trusted_proxies static 192.0.2.0/24": true,
		"trusted_proxies_unix":                true,
	} {
		caddyfile := "{\n\tservers {\n\t\t" + options + "\n\t}\n}\n" + site
		if got := trustsProxies(serverOf(t, caddyfile, "", ":9080")); got != want {
			t.Errorf("%q: got %t", options, got)
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
		"host alone":   {true, http.Header{host: {"a.example"}}, "", "a.example"},
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
