package sitemap

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/fileserver"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/rewrite"
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

// TestWalk is where a handler is found, and which file servers follow it there.
func TestWalk(t *testing.T) {
	h, other := new(Handler), new(Handler)
	for name, test := range map[string]struct {
		routes caddyhttp.RouteList
		named  map[string]*caddyhttp.Route
		want   []string // hosts, folder and roots of each seat
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
		"hosts that meet": {
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
			for _, seat := range walk(&caddyhttp.Server{Routes: test.routes, NamedRoutes: test.named})[h] {
				var roots []string
				for _, fsrv := range seat.servers {
					if fsrv.root != "" {
						fsrv.root = "<" + fsrv.root
					}
					roots = append(roots, fsrv.Root+fsrv.root)
				}
				all := ""
				if seat.hosts == nil {
					all = "nil"
				}
				got = append(got, fmt.Sprintf("%v%s %s %v", seat.hosts, all, seat.folder, roots))
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

func TestSeats(t *testing.T) {
	s := seats{
		{hosts: []string{"B.example", "*.lan", "a.example:80"}, folder: ""},
		{hosts: []string{"b.example", "c.example"}, folder: ""},
		{hosts: nil, folder: "/docs"},
		{hosts: []string{"*.wild"}, folder: "/wild"},
	}
	if got, want := s.folders(), []string{"", "/docs", "/wild"}; !slices.Equal(got, want) {
		t.Errorf("folders: got %q, want %q", got, want)
	}
	if got, want := s.hosts(""), []string{"b.example", "a.example", "c.example"}; !slices.Equal(got, want) {
		t.Errorf("hosts: got %q, want %q", got, want)
	}
	for _, test := range []struct {
		host, folder string
		spelled      bool
		like         string
	}{
		{"c.example", "", true, "c.example"},
		{"x.lan", "", false, "x.lan"},
		{"x.example", "", false, "b.example"},
		{"x.example", "/docs", false, "x.example"},
		{"x.example", "/wild", false, "any.wild"},
		{"x.wild", "/wild", false, "x.wild"},
		{"x.example", "/none", false, "x.example"},
	} {
		if got := s.spells(test.host, test.folder); got != test.spelled {
			t.Errorf("%s in %q: spelled %t, want %t", test.host, test.folder, got, test.spelled)
		}
		if got := s.hostLike(test.host, test.folder); got != test.like {
			t.Errorf("%s in %q: like it is %q, want %q", test.host, test.folder, got, test.like)
		}
	}
}
