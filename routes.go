package sitemap

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/fileserver"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/rewrite"
	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// mount is a place of a handler in its server's routes.
type mount struct {
	hosts   []string // that matchers spell out; with patterns, such as *.example.com
	prefix  string   // what was stripped of the path before it, percent-encoded
	servers []servedBy
}

// servedBy is a file server that follows a mount.
type servedBy struct {
	*fileserver.FileServer
	hosts []string // that lead there; nil: all
	root  string   // that a root directive behind the mount sets for it; "": none
}

// mounts are all places of a handler. Few handlers have more than one: those of
// named routes.
type mounts []mount

// prefixes are the distinct prefixes of the mounts.
func (s mounts) prefixes() []string {
	var all []string
	for _, mount := range s {
		if !slices.Contains(all, mount.prefix) {
			all = append(all, mount.prefix)
		}
	}
	return all
}

// prefixOf is the prefix that a path as the client sent it lies in: the longest one in
// which the handler is mounted.
func (s mounts) prefixOf(path string) string {
	longest := ""
	for i := range s {
		prefix := s[i].prefix
		if len(prefix) > len(longest) && strings.HasPrefix(path, page.Unescape(prefix)+"/") {
			longest = prefix
		}
	}
	return longest
}

// namesHost reports whether a matcher spells out the host for the prefix.
func (s mounts) namesHost(host, prefix string) bool {
	return slices.Contains(s.hosts(prefix), host)
}

// hosts are those that matchers spell out for a prefix.
func (s mounts) hosts(prefix string) []string {
	var all []string
	for _, mount := range s {
		if mount.prefix != prefix {
			continue
		}
		for _, host := range mount.hosts {
			if clean, ok := origin.CleanHost(strings.ToLower(host)); ok && !slices.Contains(all, clean) {
				all = append(all, clean)
			}
		}
	}
	return all
}

// representativeHost is a host that leads to the handler in a prefix: the wanted one if it
// does, else one that a matcher namesHost out, else one that a pattern takes.
func (s mounts) representativeHost(wanted, prefix string) string {
	named := s.hosts(prefix)
	pattern := ""
	for _, mount := range s {
		if mount.prefix != prefix {
			continue
		}
		if mount.hosts == nil {
			return wanted
		}
		for _, host := range mount.hosts {
			if hostMatches(host, wanted) {
				return wanted
			}
			if strings.Contains(host, "*") {
				pattern = cmp.Or(pattern, host)
			}
		}
	}
	if len(named) > 0 {
		return named[0]
	}
	return cmp.Or(strings.ReplaceAll(pattern, "*", "any"), wanted)
}

// matchesHost reports whether requests for a host could reach the handler in a prefix.
func (s mounts) matchesHost(host, prefix string) bool {
	return slices.ContainsFunc(s, func(mount mount) bool {
		return mount.prefix == prefix && (mount.hosts == nil ||
			slices.ContainsFunc(mount.hosts, func(pattern string) bool { return hostMatches(pattern, host) }))
	})
}

// fileServers are those that follow the handler in a prefix of a host.
func (s mounts) fileServers(host, prefix string) []servedBy {
	var all []servedBy
	for _, mount := range s {
		if mount.prefix != prefix {
			continue
		}
		for _, server := range mount.servers {
			if !overlap(server.hosts, []string{host}) {
				continue
			}
			if !slices.ContainsFunc(all, func(other servedBy) bool { return other.FileServer == server.FileServer && other.root == server.root }) {
				all = append(all, server)
			}
		}
	}
	return all
}

// walk finds the mounts of every sitemap handler of a server.
func walk(server *caddyhttp.Server) map[*Handler]mounts {
	w := walker{server: server, found: make(map[*Handler]mounts)}
	w.routes(server.Routes, place{})
	return w.found
}

type walker struct {
	server *caddyhttp.Server
	found  map[*Handler]mounts
	open   []openMount // that file servers may still follow
	named  []string    // routes being walked, since they may invoke each other
}

type openMount struct {
	handler *Handler
	index   int    // among the handler's mounts
	root    string // that was set before it
}

// place is what holds for a route: the hosts that lead to it, the prefix stripped so
// far and the root set last.
type place struct {
	hosts  []string
	prefix string
	root   string
}

// routes walks a list in order and returns the place after it, since a rewrite
// in one route holds for those that follow.
func (w *walker) routes(routes caddyhttp.RouteList, at place) place {
	grouped := make(map[string][]openMount)
	for _, route := range routes {
		inside := place{hosts: intersect(at.hosts, hostsOf(route.MatcherSets)), prefix: at.prefix, root: at.root}
		before := w.open
		if route.Group != "" {
			// Of a group only one route runs.
			w.open = slices.DeleteFunc(slices.Clone(before), func(o openMount) bool {
				return slices.Contains(grouped[route.Group], o)
			})
		}
		known := len(w.open)
		for _, handler := range route.Handlers {
			inside = w.handler(handler, inside)
		}
		opened := slices.Clone(w.open[known:])
		w.open = before
		if route.Terminal {
			// Nothing after a terminal route follows what is in it.
			continue
		}
		w.open = append(slices.Clip(before), opened...)
		if route.Group != "" {
			grouped[route.Group] = append(grouped[route.Group], opened...)
			continue
		}
		if len(route.MatcherSets) == 0 {
			at.prefix, at.root = inside.prefix, inside.root
		}
	}
	return at
}

func (w *walker) handler(handler caddyhttp.MiddlewareHandler, at place) place {
	switch h := handler.(type) {
	case *Handler:
		w.found[h] = append(w.found[h], mount{hosts: at.hosts, prefix: at.prefix})
		w.open = append(w.open, openMount{handler: h, index: len(w.found[h]) - 1, root: at.root})
	case *caddyhttp.Subroute:
		// What a subroute rewrites and sets holds after it too.
		after := w.routes(h.Routes, at)
		at.prefix, at.root = after.prefix, after.root
	case *caddyhttp.Invoke:
		route, ok := w.server.NamedRoutes[h.Name]
		if !ok || slices.Contains(w.named, h.Name) {
			return at
		}
		w.named = append(w.named, h.Name)
		after := w.routes(caddyhttp.RouteList{*route}, at)
		at.prefix, at.root = after.prefix, after.root
		w.named = w.named[:len(w.named)-1]
	case *rewrite.Rewrite:
		if p := h.StripPathPrefix; p != "" && !strings.Contains(p, "{") {
			at.prefix += escapedPrefix(p)
		}
	case *caddyhttp.VarsMiddleware:
		if root, ok := (*h)["root"].(string); ok {
			at.root = root
		}
	case *fileserver.FileServer:
		for _, open := range w.open {
			mount := &w.found[open.handler][open.index]
			if !overlap(mount.hosts, at.hosts) {
				continue
			}
			server := servedBy{FileServer: h, hosts: at.hosts}
			if at.root != open.root {
				server.root = at.root
			}
			mount.servers = append(mount.servers, server)
		}
	}
	return at
}

// escapedPrefix is a prefix to be stripped as URLs have it: what is percent-encoded in
// it stays so.
func escapedPrefix(stripped string) string {
	prefix := "/" + strings.Trim(stripped, "/")
	if canonical, err := page.Canonical(prefix); err == nil && !strings.ContainsAny(prefix, "?#") {
		return canonical
	}
	return page.Escape(prefix)
}

// hostsOf are the hosts that matchers name; nil where one set names none.
func hostsOf(sets caddyhttp.MatcherSets) []string {
	var all []string
	for _, set := range sets {
		var named []string
		for _, matcher := range set {
			switch m := matcher.(type) {
			case *caddyhttp.MatchHost:
				named = append(named, *m...)
			case caddyhttp.MatchHost:
				named = append(named, m...)
			}
		}
		if named == nil {
			return nil
		}
		all = append(all, named...)
	}
	return all
}

// intersect is what is left of outer hosts inside a route that names inner ones.
func intersect(outer, inner []string) []string {
	if inner == nil {
		return outer
	}
	if outer == nil {
		return inner
	}
	var both []string
	for _, host := range inner {
		if slices.ContainsFunc(outer, func(pattern string) bool { return hostMatches(pattern, host) }) {
			both = append(both, host)
		}
	}
	for _, host := range outer {
		if !slices.Contains(both, host) && slices.ContainsFunc(inner, func(pattern string) bool { return hostMatches(pattern, host) }) {
			both = append(both, host)
		}
	}
	if both == nil {
		return []string{} // reached by no host that could be named
	}
	return both
}

// overlap reports whether a host could lead to both.
func overlap(a, b []string) bool {
	if a == nil || b == nil {
		return true
	}
	return len(intersect(a, b)) > 0
}

// hostMatches is Caddy's rule: an asterisk stands for one label.
func hostMatches(pattern, host string) bool {
	if strings.Contains(pattern, "{") {
		return true // only a request can tell
	}
	p, h := strings.Split(pattern, "."), strings.Split(host, ".")
	if len(p) != len(h) {
		return false
	}
	for i := range p {
		if p[i] != "*" && !strings.EqualFold(p[i], h[i]) {
			return false
		}
	}
	return true
}

// routesDigest tells apart what servers would answer for a host, as far as their routes say
// it: with another digest, every page is fetched again. What handlers load as modules of
// their own, and what upstreams there are, is not in it.
func routesDigest(server *caddyhttp.Server, host string) uint64 {
	d := routeDigester{Digest: xxhash.New(), host: host, groups: make(map[string]int)}
	d.routes(server.Routes)
	if server.Errors != nil {
		d.routes(server.Errors.Routes)
	}
	for _, name := range slices.Sorted(maps.Keys(server.NamedRoutes)) {
		d.add("named", name)
		d.route(server.NamedRoutes[name])
	}
	return d.Sum64()
}

type routeDigester struct {
	*xxhash.Digest
	host   string
	groups map[string]int // by name, which the Caddyfile adapter numbers over all servers
	roots  []string       // as far as they are known without a request
}

func (d *routeDigester) add(parts ...any) { _, _ = fmt.Fprintf(d, "%q\n", parts) }

func (d *routeDigester) routes(routes caddyhttp.RouteList) {
	d.add("routes")
	for i := range routes {
		// Routes of other hosts come and go as sites do.
		if overlap(hostsOf(routes[i].MatcherSets), []string{d.host}) {
			d.route(&routes[i])
		}
	}
	d.add("end")
}

func (d *routeDigester) route(route *caddyhttp.Route) {
	group, known := d.groups[route.Group]
	if !known {
		group = len(d.groups)
		d.groups[route.Group] = group
	}
	d.add("route", route.Group != "", group, route.Terminal)
	for _, set := range route.MatcherSets {
		var matchers []string
		for _, m := range set {
			matchers = append(matchers, matcherSettings(m))
		}
		slices.Sort(matchers) // they come in no order
		d.add("matchers", matchers)
	}
	for _, h := range route.Handlers {
		switch h := h.(type) {
		case *caddyhttp.Subroute:
			d.add("subroute")
			d.routes(h.Routes)
			if h.Errors != nil {
				d.routes(h.Errors.Routes)
			}
		case *Handler, *reverseproxy.Handler:
			d.add(fmt.Sprintf("%T", h))
		case *caddyhttp.VarsMiddleware:
			root, _ := (*h)["root"].(string)
			d.noteRoot(root)
			d.add(moduleSettings(h))
		case *fileserver.FileServer:
			d.noteRoot(h.Root)
			server := *h
			server.Hide = d.hidden(h.Hide)
			d.add(moduleSettings(&server))
		default:
			d.add(moduleSettings(h))
		}
	}
}

// noteRoot keeps what is known of a root: what comes before its placeholders.
func (d *routeDigester) noteRoot(root string) {
	if root == "" || root == siteRoot {
		return
	}
	known, _, _ := strings.Cut(root, "{")
	if abs, err := caddy.FastAbs(known); err == nil && known != "" {
		known = abs
	}
	d.roots = append(d.roots, known)
}

// hidden are the files that a file server hides, without those outside of all roots: the
// Caddyfile adapter adds the Caddyfile and what that imports, whose names say nothing of
// what is served.
func (d *routeDigester) hidden(files []string) []string {
	return slices.DeleteFunc(slices.Clone(files), func(file string) bool {
		return strings.ContainsRune(file, filepath.Separator) && !strings.ContainsAny(file, "*?[{") &&
			!slices.ContainsFunc(d.roots, func(root string) bool { return strings.HasPrefix(file, root) || strings.HasPrefix(root, file) })
	})
}

// matcherSettings is moduleSettings for what may hold other matchers.
func matcherSettings(matcher any) string {
	not, ok := matcher.(caddyhttp.MatchNot)
	if p, isPointer := matcher.(*caddyhttp.MatchNot); isPointer && p != nil {
		not, ok = *p, true
	}
	if !ok {
		return moduleSettings(matcher)
	}
	settings := "not"
	for _, set := range not.MatcherSets {
		var matchers []string
		for _, m := range set {
			matchers = append(matchers, matcherSettings(m))
		}
		slices.Sort(matchers)
		settings += fmt.Sprintf("%q", matchers)
	}
	return settings
}

// moduleSettings is a module's type and settings. A module may not be made for being
// encoded again: then its type has to do.
func moduleSettings(module any) (settings string) {
	kind := fmt.Sprintf("%T", module)
	defer func() {
		if recover() != nil {
			settings = kind
		}
	}()
	encoded, err := json.Marshal(module)
	if err != nil {
		return kind
	}
	return kind + string(encoded)
}

// usesUpstreams reports whether some route of a server proxies requests.
func usesUpstreams(server *caddyhttp.Server) bool {
	lists := []caddyhttp.RouteList{server.Routes}
	for _, route := range server.NamedRoutes {
		lists = append(lists, caddyhttp.RouteList{*route})
	}
	for len(lists) > 0 {
		list := lists[len(lists)-1]
		lists = lists[:len(lists)-1]
		for _, route := range list {
			for _, h := range route.Handlers {
				switch h := h.(type) {
				case *reverseproxy.Handler:
					return true
				case *caddyhttp.Subroute:
					lists = append(lists, h.Routes)
				}
			}
		}
	}
	return false
}
