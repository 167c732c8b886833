package sitemap

import (
	"cmp"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/fileserver"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/rewrite"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// seat is a place of a handler in its server's routes.
type seat struct {
	hosts   []string // that matchers spell out; with patterns, such as *.example.com
	folder  string   // what was stripped of the path before it, percent-encoded
	servers []servedBy
}

// servedBy is a file server that follows a seat.
type servedBy struct {
	*fileserver.FileServer
	hosts []string // that lead there; nil: all
	root  string   // that a root directive behind the seat sets for it; "": none
}

// seats are all places of a handler. Few handlers have more than one: those of
// named routes.
type seats []seat

// folders are the distinct folders of the seats.
func (s seats) folders() []string {
	var all []string
	for _, seat := range s {
		if !slices.Contains(all, seat.folder) {
			all = append(all, seat.folder)
		}
	}
	return all
}

// folderOf is the folder that a path as the client sent it lies in: the longest one in
// which the handler sits.
func (s seats) folderOf(path string) string {
	longest := ""
	for i := range s {
		folder := s[i].folder
		if len(folder) > len(longest) && strings.HasPrefix(path, page.Unescape(folder)+"/") {
			longest = folder
		}
	}
	return longest
}

// spells reports whether a matcher spells out the host for the folder.
func (s seats) spells(host, folder string) bool {
	return slices.Contains(s.hosts(folder), host)
}

// hosts are those that matchers spell out for a folder.
func (s seats) hosts(folder string) []string {
	var all []string
	for _, seat := range s {
		if seat.folder != folder {
			continue
		}
		for _, host := range seat.hosts {
			if clean, ok := cleanHost(strings.ToLower(host)); ok && !slices.Contains(all, clean) {
				all = append(all, clean)
			}
		}
	}
	return all
}

// hostLike is a host that leads to the handler in a folder: the wanted one if it
// does, else one that a matcher spells out, else one that a pattern takes.
func (s seats) hostLike(wanted, folder string) string {
	named := s.hosts(folder)
	pattern := ""
	for _, seat := range s {
		if seat.folder != folder {
			continue
		}
		if seat.hosts == nil {
			return wanted
		}
		for _, host := range seat.hosts {
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

// leadTo reports whether requests for a host could reach the handler in a folder.
func (s seats) leadTo(host, folder string) bool {
	return slices.ContainsFunc(s, func(seat seat) bool {
		return seat.folder == folder && (seat.hosts == nil ||
			slices.ContainsFunc(seat.hosts, func(pattern string) bool { return hostMatches(pattern, host) }))
	})
}

// fileServers are those that follow the handler in a folder of a host.
func (s seats) fileServers(host, folder string) []servedBy {
	var all []servedBy
	for _, seat := range s {
		if seat.folder != folder {
			continue
		}
		for _, server := range seat.servers {
			if !meet(server.hosts, []string{host}) {
				continue
			}
			if !slices.ContainsFunc(all, func(other servedBy) bool { return other.FileServer == server.FileServer && other.root == server.root }) {
				all = append(all, server)
			}
		}
	}
	return all
}

// walk finds the seats of every sitemap handler of a server.
func walk(server *caddyhttp.Server) map[*Handler]seats {
	w := walker{server: server, found: make(map[*Handler]seats)}
	w.routes(server.Routes, place{})
	return w.found
}

type walker struct {
	server *caddyhttp.Server
	found  map[*Handler]seats
	open   []openSeat // that file servers may still follow
	named  []string   // routes being walked, since they may invoke each other
}

type openSeat struct {
	handler *Handler
	index   int    // among the handler's seats
	root    string // that was set before it
}

// place is what holds for a route: the hosts that lead to it, the folder stripped so
// far and the root set last.
type place struct {
	hosts  []string
	folder string
	root   string
}

// routes walks a list in order and returns the place after it, since a rewrite
// in one route holds for those that follow.
func (w *walker) routes(routes caddyhttp.RouteList, at place) place {
	grouped := make(map[string][]openSeat)
	for _, route := range routes {
		inside := place{hosts: narrow(at.hosts, hostsOf(route.MatcherSets)), folder: at.folder, root: at.root}
		before := w.open
		if route.Group != "" {
			// Of a group only one route runs.
			w.open = slices.DeleteFunc(slices.Clone(before), func(o openSeat) bool {
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
			at.folder, at.root = inside.folder, inside.root
		}
	}
	return at
}

func (w *walker) handler(handler caddyhttp.MiddlewareHandler, at place) place {
	switch h := handler.(type) {
	case *Handler:
		w.found[h] = append(w.found[h], seat{hosts: at.hosts, folder: at.folder})
		w.open = append(w.open, openSeat{handler: h, index: len(w.found[h]) - 1, root: at.root})
	case *caddyhttp.Subroute:
		// What a subroute rewrites and sets holds after it too.
		after := w.routes(h.Routes, at)
		at.folder, at.root = after.folder, after.root
	case *caddyhttp.Invoke:
		route, ok := w.server.NamedRoutes[h.Name]
		if !ok || slices.Contains(w.named, h.Name) {
			return at
		}
		w.named = append(w.named, h.Name)
		after := w.routes(caddyhttp.RouteList{*route}, at)
		at.folder, at.root = after.folder, after.root
		w.named = w.named[:len(w.named)-1]
	case *rewrite.Rewrite:
		if p := h.StripPathPrefix; p != "" && !strings.Contains(p, "{") {
			at.folder += escapedFolder(p)
		}
	case *caddyhttp.VarsMiddleware:
		if root, ok := (*h)["root"].(string); ok {
			at.root = root
		}
	case *fileserver.FileServer:
		for _, open := range w.open {
			seat := &w.found[open.handler][open.index]
			if !meet(seat.hosts, at.hosts) {
				continue
			}
			server := servedBy{FileServer: h, hosts: at.hosts}
			if at.root != open.root {
				server.root = at.root
			}
			seat.servers = append(seat.servers, server)
		}
	}
	return at
}

// escapedFolder is a prefix to be stripped as URLs have it: what is percent-encoded in
// it stays so.
func escapedFolder(prefix string) string {
	folder := "/" + strings.Trim(prefix, "/")
	if canonical, err := page.Canonical(folder); err == nil && !strings.ContainsAny(folder, "?#") {
		return canonical
	}
	return page.Escape(folder)
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

// narrow is what is left of outer hosts inside a route that names inner ones.
func narrow(outer, inner []string) []string {
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

// meet reports whether a host could lead to both.
func meet(a, b []string) bool {
	if a == nil || b == nil {
		return true
	}
	return len(narrow(a, b)) > 0
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
