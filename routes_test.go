package sitemap

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/fileserver"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/rewrite"
	"github.com/caddyserver/caddy/v2/modules/caddytls"
)

// route is a route of handlers that holds for some hosts, or for all.
func route(hosts []string, handlers ...caddyhttp.MiddlewareHandler) caddyhttp.Route {
	r := caddyhttp.Route{Handlers: handlers}
	if hosts != nil {
		host := caddyhttp.MatchHost(hosts)
		r.MatcherSets = caddyhttp.MatcherSets{{&host}}
	}
	return r
}

func subroute(routes ...caddyhttp.Route) *caddyhttp.Subroute {
	return &caddyhttp.Subroute{Routes: routes}
}

func inGroup(group string, r caddyhttp.Route) caddyhttp.Route {
	r.Group = group
	return r
}

func terminal(r caddyhttp.Route) caddyhttp.Route {
	r.Terminal = true
	return r
}

func stripping(prefix string) *rewrite.Rewrite { return &rewrite.Rewrite{StripPathPrefix: prefix} }

func serving(root string) *fileserver.FileServer { return &fileserver.FileServer{Root: root} }

func rooted(root string) *caddyhttp.VarsMiddleware { return &caddyhttp.VarsMiddleware{"root": root} }

// TestWalk: where a handler is mounted, and which file servers follow it there.
func TestWalk(t *testing.T) {
	h, other := new(Handler), new(Handler)
	for name, test := range map[string]struct {
		routes caddyhttp.RouteList
		named  map[string]*caddyhttp.Route
		want   []string // hosts, prefix and roots of each mount
	}{
		"alone":  {caddyhttp.RouteList{route(nil, h)}, nil, []string{"[]nil  []"}},
		"absent": {caddyhttp.RouteList{route(nil, serving("a"))}, nil, nil},
		"in a site": {
			caddyhttp.RouteList{terminal(route([]string{"a.example"}, subroute(route(nil, h), route(nil, serving("a")))))},
			nil, []string{"[a.example]  [a]"},
		},
		"the file server of another site": {
			caddyhttp.RouteList{
				terminal(route([]string{"a.example"}, subroute(route(nil, h)))),
				terminal(route([]string{"b.example"}, subroute(route(nil, serving("b"))))),
			},
			nil, []string{"[a.example]  []"},
		},
		"hosts that overlap": {
			caddyhttp.RouteList{
				route([]string{"a.example"}, h),
				route([]string{"b.example"}, serving("b")),
				route([]string{"*.example"}, serving("any")),
				route(nil, serving("all")),
			},
			nil, []string{"[a.example]  [any all]"},
		},
		"hosts inside hosts": {
			caddyhttp.RouteList{route([]string{"*.example", "c.test"}, subroute(route([]string{"a.example", "b.test", "c.test"}, h)))},
			nil, []string{"[a.example c.test]  []"},
		},
		"a pattern inside hosts": {
			caddyhttp.RouteList{route([]string{"a.example", "b.example", "c.test"}, subroute(route([]string{"*.example"}, h)))},
			nil, []string{"[a.example b.example]  []"},
		},
		"hosts that exclude each other": {
			caddyhttp.RouteList{route([]string{"a.example"}, subroute(route([]string{"b.example"}, h)))},
			nil, []string{"[]  []"},
		},
		"a file server before": {
			caddyhttp.RouteList{route(nil, serving("before")), route(nil, h, serving("after"))},
			nil, []string{"[]nil  [after]"},
		},
		"inside handle, beside the file server": {
			caddyhttp.RouteList{route(nil, subroute(
				inGroup("g", route(nil, subroute(route(nil, h), route(nil, serving("mine"))))),
				inGroup("g", route(nil, subroute(route(nil, serving("the other's"))))),
				route(nil, serving("after both")),
			))},
			nil, []string{"[]nil  [mine after both]"},
		},
		"before handles": {
			caddyhttp.RouteList{route(nil, subroute(
				route(nil, h),
				inGroup("g", route(nil, subroute(route(nil, serving("one"))))),
				inGroup("g", route(nil, subroute(route(nil, serving("two"))))),
			))},
			nil, []string{"[]nil  [one two]"},
		},
		"roots set behind": {
			caddyhttp.RouteList{route(nil, subroute(
				route(nil, rooted("before")),
				route(nil, h),
				route(nil, serving("")),
				inGroup("g", route(nil, subroute(route(nil, rooted("one")), route(nil, serving("1"))))),
				inGroup("g", route(nil, subroute(route(nil, rooted("two"), serving("2"))))),
				route([]string{"a.example"}, rooted("some")),
				route(nil, serving("3")),
				route(nil, subroute(route(nil, rooted("last")))),
				route(nil, serving("4")),
			))},
			nil, []string{"[]nil  [ 1<one 2<two 3 4<last]"},
		},
		"inside a terminal route": {
			caddyhttp.RouteList{terminal(route(nil, h)), route(nil, serving("never"))},
			nil, []string{"[]nil  []"},
		},
		"handle_path": {
			caddyhttp.RouteList{route(nil, subroute(
				inGroup("g", route(nil, subroute(route(nil, stripping("/docs")), route(nil, h, serving("docs"))))),
				inGroup("g", route(nil, subroute(route(nil, other, serving("all"))))),
			))},
			nil, []string{"[]nil /docs [docs]"},
		},
		"handle_path inside handle_path": {
			caddyhttp.RouteList{route(nil, stripping("/a"), subroute(route(nil, stripping("/b/"), h)))},
			nil, []string{"[]nil /a/b []"},
		},
		"handle_path of a name that URLs escape": {
			caddyhttp.RouteList{route(nil, stripping("/my docs"), subroute(route(nil, stripping("/b%20c"), h)))},
			nil, []string{"[]nil /my%20docs/b%20c []"},
		},
		"strip_prefix before": {
			caddyhttp.RouteList{route(nil, stripping("a")), route(nil, h)},
			nil, []string{"[]nil /a []"},
		},
		"strip_prefix by placeholder": {
			caddyhttp.RouteList{route(nil, stripping("/{http.request.host}")), route(nil, h)},
			nil, []string{"[]nil  []"},
		},
		"invoked twice": {
			caddyhttp.RouteList{
				terminal(route([]string{"a.example"}, &caddyhttp.Invoke{Name: "site"})),
				terminal(route([]string{"b.example"}, stripping("/b"), &caddyhttp.Invoke{Name: "site"}, serving("b"))),
			},
			map[string]*caddyhttp.Route{"site": {Handlers: []caddyhttp.MiddlewareHandler{subroute(route(nil, h), route(nil, serving("site")))}}},
			[]string{"[a.example]  [site]", "[b.example] /b [site b]"},
		},
		"invoked by itself": {
			caddyhttp.RouteList{route(nil, &caddyhttp.Invoke{Name: "loop"})},
			map[string]*caddyhttp.Route{"loop": {Handlers: []caddyhttp.MiddlewareHandler{h, &caddyhttp.Invoke{Name: "loop"}, serving("a")}}},
			[]string{"[]nil  [a]"},
		},
		"invoked by a name that is none": {
			caddyhttp.RouteList{route(nil, &caddyhttp.Invoke{Name: "none"}, h)}, nil, []string{"[]nil  []"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, m := range walk(&caddyhttp.Server{Routes: test.routes, NamedRoutes: test.named})[h] {
				var roots []string
				for _, fsrv := range m.servers {
					if fsrv.root != "" {
						fsrv.root = "<" + fsrv.root
					}
					roots = append(roots, fsrv.Root+fsrv.root)
				}
				all := ""
				if m.hosts == nil {
					all = "nil"
				}
				got = append(got, fmt.Sprintf("%v%s %s %v", m.hosts, all, m.prefix, roots))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestHostsOf(t *testing.T) {
	host := func(names ...string) caddyhttp.RequestMatcherWithError {
		m := caddyhttp.MatchHost(names)
		return &m
	}
	path := caddyhttp.MatchPath{"/x"}
	for name, test := range map[string]struct {
		sets caddyhttp.MatcherSets
		want []string
	}{
		"none":                 {nil, nil},
		"a path":               {caddyhttp.MatcherSets{{path}}, nil},
		"hosts":                {caddyhttp.MatcherSets{{host("a", "b")}}, []string{"a", "b"}},
		"a host and a path":    {caddyhttp.MatcherSets{{path, host("a")}}, []string{"a"}},
		"two sets":             {caddyhttp.MatcherSets{{host("a")}, {host("b")}}, []string{"a", "b"}},
		"a set without a host": {caddyhttp.MatcherSets{{host("a")}, {path}}, nil},
	} {
		if got := hostsOf(test.sets); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestHostMatches(t *testing.T) {
	for _, test := range []struct {
		pattern, host string
		want          bool
	}{
		{"a.example", "a.example", true},
		{"A.Example", "a.example", true},
		{"*.example", "a.example", true},
		{"*.example", "a.b.example", false},
		{"*.example", "example", false},
		{"*.*.example", "a.b.example", true},
		{"*", "localhost", true},
		{"*", "a.example", false},
		{"b.example", "a.example", false},
		{"{env.HOST}", "a.example", true},
	} {
		if got := hostMatches(test.pattern, test.host); got != test.want {
			t.Errorf("%s and %s: got %t, want %t", test.pattern, test.host, got, test.want)
		}
	}
}

// TestMounts: which prefixes and hosts lead to a handler.
func TestMounts(t *testing.T) {
	s := mounts{
		{hosts: []string{"B.example", "*.lan", "a.example:80"}, prefix: ""},
		{hosts: []string{"b.example", "c.example"}, prefix: ""},
		{hosts: nil, prefix: "/docs"},
		{hosts: []string{"*.wild"}, prefix: "/wild"},
	}
	if got, want := s.prefixes(), []string{"", "/docs", "/wild"}; !slices.Equal(got, want) {
		t.Errorf("prefixs: got %q, want %q", got, want)
	}
	for path, want := range map[string]string{"/docs/a": "/docs", "/docs": "", "/docsy/a": "", "/a": "", "/wild/docs/a": "/wild"} {
		if got := s.prefixOf(path); got != want {
			t.Errorf("prefix of %s: got %q, want %q", path, got, want)
		}
	}
	if got, want := s.hosts(""), []string{"b.example", "a.example", "c.example"}; !slices.Equal(got, want) {
		t.Errorf("hosts: got %q, want %q", got, want)
	}
	for _, test := range []struct {
		host, prefix string
		named        bool
		matched      bool
		like         string
	}{
		{"c.example", "", true, true, "c.example"},
		{"x.lan", "", false, true, "x.lan"},
		{"x.example", "", false, false, "b.example"},
		{"x.example", "/docs", false, true, "x.example"},
		{"x.example", "/wild", false, false, "any.wild"},
		{"x.wild", "/wild", false, true, "x.wild"},
		{"x.example", "/none", false, false, "x.example"},
	} {
		if got := slices.Contains(s.hosts(test.prefix), test.host); got != test.named {
			t.Errorf("%s in %q: named %t, want %t", test.host, test.prefix, got, test.named)
		}
		if got := s.matchesHost(test.host, test.prefix); got != test.matched {
			t.Errorf("%s in %q: matched %t, want %t", test.host, test.prefix, got, test.matched)
		}
		if got := s.representativeHost(test.host, test.prefix); got != test.like {
			t.Errorf("%s in %q: a representative is %q, want %q", test.host, test.prefix, got, test.like)
		}
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
	digest := func(caddyfile, filename string) uint64 {
		return routesDigest(serverOf(t, caddyfile, filename, ":9080"), "a.example")
	}
	want := digest(base, "Caddyfile")
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

		"a hidden name": {strings.Replace(base, "file_server\n", "file_server {\n\t\t\thide *.tmp\n\t\t}\n", 1), false},
		"a hidden folder, whose files go from the candidates": {strings.Replace(base, "file_server\n", "file_server {\n\t\t\thide /srv/a/old\n\t\t}\n", 1), true},
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
		for _, filename := range []string{"Caddyfile", "/etc/caddy/Caddyfile.new"} {
			if got := digest(test.caddyfile, filename); (got == want) != test.same {
				t.Errorf("%s, in %s: the digest is the same: %t, want %t", name, filename, got == want, test.same)
			}
		}
	}
	invoked := named + "http://a.example:9080 {\n\tsitemap\n\tinvoke all\n}\n"
	if digest(invoked, "") == digest(strings.Replace(invoked, "410", "404", 1), "") {
		t.Error("what a named route says does not count")
	}
	// Groups of routes are numbered over all servers.
	other := "http://a.example:8080 {\n\thandle /x {\n\t\trespond x\n\t}\n\thandle {\n\t\trespond y\n\t}\n}\n"
	if got := routesDigest(serverOf(t, other+base, "", ":9080"), "a.example"); got != want {
		t.Error("routes of another server count")
	}
}

// TestModuleSettings: a module that cannot be encoded is known by its type.
func TestModuleSettings(t *testing.T) {
	for name, module := range map[string]any{
		"a channel": struct{ C chan int }{}, "a panic": panicking{}, "nil": nil, "a nil pointer": (*caddyhttp.MatchNot)(nil),
	} {
		if got, again := moduleSettings(module), moduleSettings(module); got != again || got == "" {
			t.Errorf("%s: got %q, then %q", name, got, again)
		}
	}
	a, b := caddyhttp.MatchPath{"/a"}, caddyhttp.MatchPath{"/b"}
	not := func(sets ...caddyhttp.MatcherSet) string {
		return settingsOf([]caddyhttp.MatcherSet{{&caddyhttp.MatchNot{MatcherSets: sets}}})
	}
	if not(caddyhttp.MatcherSet{a, b}) != not(caddyhttp.MatcherSet{b, a}) || not(caddyhttp.MatcherSet{a, b}) == not(caddyhttp.MatcherSet{a}, caddyhttp.MatcherSet{b}) {
		t.Error("matchers of a set come in an order, or sets in none")
	}
}

type panicking struct{}

func (panicking) MarshalJSON() ([]byte, error) { panic("not provisioned") }

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
