package sitemap

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
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

// mount is a place in a server's routes: that of a handler, or the current one while they are walked.
type mount struct {
	hosts   []string // of the matchers, also patterns such as *.example.com; nil: all
	prefix  string   // that was stripped from the path before it, percent-encoded
	root    string   // that was set last before it
	servers []fileServer

	foreign []string // hosts of a matcher that has none in common with those around it, so that there are no hosts
	behind  string   // the directive before it that responds to all requests; "": there is none

	standIns []string // paths, in its prefix, of files that are served in place of others: see [walker.standIn]
}

// fileServer is a file server in the prefix of a mount.
type fileServer struct {
	*fileserver.FileServer
	at   mount
	root string // its own, or that of a root directive behind the mount
	fs   string
	path string // of the request that has reached it, without the prefix: see reach
}

// strip returns what remains of a decoded path without the prefix of the mount, which path matchers compare case-insensitively;
// false: the path is not below the prefix.
func (m *mount) strip(path string) (rest string, isBelow bool) {
	prefix := page.Unescape(m.prefix)
	n := len(prefix)
	if len(path) <= n || !strings.EqualFold(path[:n], prefix) {
		return "", false
	}
	return path[n:], true
}

// mounts are all places of a handler. Only handlers of named routes have more than one.
type mounts []*mount

// in returns the mounts with a prefix.
func (s mounts) in(prefix string) mounts {
	return slices.DeleteFunc(slices.Clone(s), func(m *mount) bool { return m.prefix != prefix })
}

// behind returns the directive that stands before the handler in a prefix, and responds to all requests; "": there is none.
func (s mounts) behind(prefix string) string {
	for _, m := range s.in(prefix) {
		if m.behind != "" {
			return m.behind
		}
	}
	return ""
}

// misplaced returns why no request of a visitor reaches the handler, and what to do about it; "": one may.
func (s mounts) misplaced(isInErrors bool) string {
	if len(s) == 0 && isInErrors {
		return "'sitemap' has no effect in 'handle_errors': write it into the block of the site"
	}
	var hosts []string
	for _, m := range s {
		if m.foreign == nil {
			return ""
		}
		hosts = append(hosts, m.foreign...)
	}
	if hosts == nil {
		return ""
	}
	return fmt.Sprintf("no request reaches 'sitemap': the matcher of %s is in a block for other hosts: "+
		"remove the matcher, or move 'sitemap' into the block of that host", strings.Join(hosts, ", "))
}

// hasWhole reports whether the handler is mounted without a prefix, also as long as no mounts are known.
func (s mounts) hasWhole() bool {
	return len(s) == 0 || slices.ContainsFunc(s, func(m *mount) bool { return m.prefix == "" })
}

// prefixOf returns the longest prefix of a mount that contains a path, decoded and as the client sent it.
func (s mounts) prefixOf(path string) string {
	longest := ""
	for _, m := range s {
		if len(m.prefix) > len(longest) && strings.HasPrefix(path, page.Unescape(m.prefix)+"/") {
			longest = m.prefix
		}
	}
	return longest
}

// hosts returns the hosts that matchers spell out for a prefix. There may be thousands.
func (s mounts) hosts(prefix string) []string {
	var all []string
	isKnown := make(map[string]bool)
	for _, mount := range s.in(prefix) {
		for _, host := range mount.hosts {
			if clean, ok := origin.CleanHost(host); ok && !isKnown[clean] {
				isKnown[clean] = true
				all = append(all, clean)
			}
		}
	}
	return all
}

// spellsOut reports whether a matcher in a prefix names a host, as [mounts.hosts] does, and by no pattern.
func (s mounts) spellsOut(host, prefix string) bool {
	isHost := func(pattern string) bool {
		clean, ok := origin.CleanHost(pattern)
		return ok && clean == host
	}
	return slices.ContainsFunc(s, func(m *mount) bool {
		return m.prefix == prefix && slices.ContainsFunc(m.hosts, isHost)
	})
}

// matchesHost reports whether requests for a host can reach the handler in a prefix.
func (s mounts) matchesHost(host, prefix string) bool {
	return slices.ContainsFunc(s.in(prefix), func(m *mount) bool {
		return origin.Overlap(m.hosts, []string{host})
	})
}

// namesHost reports whether a matcher in a prefix names a host, by itself or by a pattern.
func (s mounts) namesHost(host, prefix string) bool {
	return slices.ContainsFunc(s.in(prefix), func(m *mount) bool {
		return m.hosts != nil && origin.Overlap(m.hosts, []string{host})
	})
}

// spelled returns a host as requests must name it to reach the handler in a prefix: with a dot at its end where all
// matchers of the host have it. To Caddy, example.com and example.com. are two hosts.
func (s mounts) spelled(host, prefix string) string {
	isDotted := false
	for _, m := range s.in(prefix) {
		if m.hosts == nil {
			return host
		}
		for _, pattern := range m.hosts {
			if !origin.Overlap([]string{pattern}, []string{host}) {
				continue
			}
			if !strings.HasSuffix(pattern, ".") {
				return host
			}
			isDotted = true
		}
	}
	if isDotted {
		return host + "."
	}
	return host
}

// representativeHost returns a host by which requests reach the handler in a prefix: the wanted
// one if they do, else one that a matcher spells out, else one that a pattern matches.
func (s mounts) representativeHost(wanted, prefix string) string {
	all := s.hosts(prefix)
	for _, m := range s.in(prefix) {
		all = append(all, m.hosts...)
	}
	if len(all) == 0 || s.matchesHost(wanted, prefix) {
		return wanted
	}
	return strings.ReplaceAll(all[0], "*", "any")
}

// walk finds the mounts of every sitemap handler of a server.
func walk(server *caddyhttp.Server) map[*Handler]mounts {
	return walkRoutes(server, server.Routes)
}

func walkRoutes(server *caddyhttp.Server, routes caddyhttp.RouteList) map[*Handler]mounts {
	w := walker{server: server, found: make(map[*Handler]mounts)}
	w.routes(routes, mount{})
	w.errors(server.Errors, mount{})
	for _, mounts := range w.found {
		for _, m := range mounts {
			m.servers = w.serversOf(m)
			for _, at := range w.standIns {
				if at.prefix == m.prefix && origin.Overlap(m.hosts, at.hosts) {
					m.standIns = append(m.standIns, at.standIns...)
				}
			}
		}
	}
	return w.found
}

// reach returns the file server that a request for a decoded path reaches, as far as the routes tell: they are followed as
// they are for a request that has reached the handler. False: there is none, or it serves the pages of another handler.
// folders are those of URLs that routes on the way tell apart.
func (h *Handler) reach(r *http.Request, path string) (f fileServer, folders []string, ok bool) {
	before := *r.URL
	defer func() { *r.URL = before }()
	r.URL.Path = path
	r.URL.RawPath = ""
	w := walker{server: h.server, found: make(map[*Handler]mounts), visit: r.WithContext(r.Context())}
	w.routes(h.server.Routes, mount{})
	delete(w.found, h)
	if len(w.servers) == 0 || len(w.found) > 0 {
		return f, w.folders, false
	}
	f = w.servers[0]
	f.path = r.URL.Path
	if f.root == siteRoot {
		f.root = cmp.Or(f.at.root, siteRoot)
	}
	f.replace(replacerOf(r))
	return f, w.folders, f.root != ""
}

// standIn notes the path of a file that routes serve in place of others. An index is the page of its folder all the same.
func (w *walker) standIn(path string, at mount) {
	// What a placeholder is replaced by is not known, nor is a status, such as =404, a path.
	isLiteral := strings.HasPrefix(path, "/") && !strings.ContainsAny(path, "{*?[%")
	short := page.CutEnding(path)
	if isLiteral && short != "/" && page.CutIndex(short) == short {
		at.standIns = []string{path}
		w.standIns = append(w.standIns, at)
	}
}

// errors walks what serves errors: no page is served by that.
func (w *walker) errors(config *caddyhttp.HTTPErrorConfig, at mount) {
	if config == nil {
		return
	}
	inside := walker{server: w.server, found: make(map[*Handler]mounts), inErrors: true}
	inside.routes(config.Routes, at)
	w.standIns = append(w.standIns, inside.standIns...)
}

// tried notes what matchers try last.
func (w *walker) tried(sets caddyhttp.MatcherSets, at mount) {
	for _, matcher := range slices.Concat(sets...) {
		file, isFile := matcher.(*fileserver.MatchFile)
		if isFile && len(file.TryFiles) > 0 {
			last := file.TryFiles[len(file.TryFiles)-1]
			w.standIn("/"+strings.TrimPrefix(last, "/"), at)
		}
	}
}

// serversOf returns the file servers that serve requests in the prefix of a mount, for its hosts.
func (w *walker) serversOf(m *mount) []fileServer {
	var all []fileServer
	for _, f := range w.servers {
		if f.at.prefix != m.prefix || !origin.Overlap(m.hosts, f.at.hosts) {
			continue
		}
		if f.root == siteRoot && f.at.root != m.root { // a root directive behind the mount
			f.root = cmp.Or(f.at.root, siteRoot)
		}
		all = append(all, f)
	}
	return all
}

type walker struct {
	server  *caddyhttp.Server
	found   map[*Handler]mounts
	servers []fileServer
	named   []string // named routes being walked, which may invoke each other

	visit   *http.Request // whose way is followed; nil: all routes are walked
	isOver  bool          // a handler has responded to it: no route that follows counts
	matched []string      // groups of which it has passed a route
	folders []string      // that path matchers on its way name

	standIns []mount // each with one
	inErrors bool    // the routes serve errors
}

// routes walks a list in order and returns the place after it: a rewrite or a root
// in one route also holds for the routes that follow.
func (w *walker) routes(routes caddyhttp.RouteList, at mount) mount {
	for _, route := range routes {
		if w.visit != nil && !w.passes(&route, at.prefix) {
			continue
		}
		inside := mount{
			hosts:  origin.Intersect(at.hosts, hostsOf(route.MatcherSets)),
			prefix: at.prefix,
			root:   at.root,

			foreign: at.foreign,
			behind:  at.behind,
		}
		if inside.hosts != nil && len(inside.hosts) == 0 && inside.foreign == nil {
			inside.foreign = hostsOf(route.MatcherSets)
		}
		w.tried(route.MatcherSets, inside)
		for _, handler := range route.Handlers {
			inside = w.handler(handler, inside)
		}
		w.isOver = w.isOver || route.Terminal
		// What this route sets holds for the routes behind it only if all requests pass it.
		isPassed := !route.Terminal && route.Group == "" && len(route.MatcherSets) == 0
		if isPassed || w.visit != nil {
			at.prefix = inside.prefix
			at.root = inside.root
			at.behind = inside.behind
		}
	}
	return at
}

// passes reports whether the visit passes a route in a prefix, and notes the folders that the route names.
func (w *walker) passes(route *caddyhttp.Route, prefix string) bool {
	for _, set := range route.MatcherSets {
		for _, matcher := range set {
			paths, _ := matcher.(*caddyhttp.MatchPath)
			for _, pattern := range *cmp.Or(paths, new(caddyhttp.MatchPath)) {
				folder, isFolder := strings.CutSuffix(pattern, "/*")
				if isFolder && folder != "" && !strings.ContainsAny(folder, "*?[{%") {
					w.folders = append(w.folders, prefix+normalPrefix(folder))
				}
			}
		}
	}
	if slices.Contains(w.matched, route.Group) || !matches(route.MatcherSets, w.visit) {
		return false
	}
	if route.Group != "" {
		w.matched = append(w.matched, route.Group)
	}
	return true
}

// matches reports whether a request passes matchers. What they look for on disk counts as missing: most often, that is a
// flag, as for maintenance, with which pages are not to come and go.
func matches(sets caddyhttp.MatcherSets, r *http.Request) bool {
	isRefusedBy := func(matcher any) bool {
		switch m := matcher.(type) {
		case *fileserver.MatchFile:
			return true
		case *caddyhttp.MatchNot:
			return matches(m.MatcherSets, r)
		}
		isMatch, err := caddyhttp.MatcherSet{matcher}.MatchWithError(r)
		return err != nil || !isMatch
	}
	isPassed := func(set caddyhttp.MatcherSet) bool { return !slices.ContainsFunc(set, isRefusedBy) }
	return len(sets) == 0 || slices.ContainsFunc(sets, isPassed)
}

// normalPrefix returns a prefix of paths in the form of [page.Normal].
func normalPrefix(p string) string {
	normal, err := page.Normal(p) // what is percent-encoded stays so
	if err != nil {
		return page.Escape(p)
	}
	return normal
}

// handler walks a handler, and returns the place after it.
func (w *walker) handler(handler caddyhttp.MiddlewareHandler, at mount) mount {
	if w.visit != nil && w.isOver {
		return at
	}
	switch h := handler.(type) {
	case *Handler:
		m := at
		w.found[h] = append(w.found[h], &m)
	case *caddyhttp.Subroute:
		w.errors(h.Errors, at)
		at = w.routes(h.Routes, at)
	case *caddyhttp.Invoke:
		route, ok := w.server.NamedRoutes[h.Name]
		if !ok || slices.Contains(w.named, h.Name) {
			return at
		}
		w.named = append(w.named, h.Name)
		at = w.routes(caddyhttp.RouteList{*route}, at)
		w.named = w.named[:len(w.named)-1]
	case *rewrite.Rewrite:
		if w.visit != nil {
			h.Rewrite(w.visit, replacerOf(w.visit))
		}
		if w.inErrors {
			w.standIn(h.URI, at)
		}
		p := "/" + strings.Trim(h.StripPathPrefix, "/")
		if p == "/" || strings.Contains(p, "{") {
			return at
		}
		at.prefix += normalPrefix(p)
	case *caddyhttp.VarsMiddleware:
		if root, ok := (*h)["root"].(string); ok {
			at.root = root
		}
	case *fileserver.FileServer:
		w.servers = append(w.servers, fileServer{FileServer: h, at: at, root: h.Root})
		w.isOver = !h.PassThru
		if w.isOver {
			at.behind = "file_server"
		}
	case *reverseproxy.Handler:
		w.isOver = len(h.HandleResponse) == 0 // else it may ask only whether a visitor is admitted
		if w.isOver {
			at.behind = "reverse_proxy"
		}
	case *caddyhttp.StaticResponse, *caddyhttp.StaticError:
		w.isOver = true
	}
	return at
}

func replacerOf(r *http.Request) *caddy.Replacer {
	return r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
}

// hostsOf returns the hosts that matchers name; nil if one set names none.
func hostsOf(sets caddyhttp.MatcherSets) (all []string) {
	for _, set := range sets {
		i := slices.IndexFunc(set, func(matcher any) bool {
			_, isHost := matcher.(*caddyhttp.MatchHost)
			return isHost
		})
		if i < 0 {
			return nil
		}
		all = append(all, *set[i].(*caddyhttp.MatchHost)...)
	}
	return all
}

// makeNothing are the names of Caddy's handlers that make no pages: they serve files, or what the configuration has, or change
// what others make. Of the handlers of plugins, nothing is known.
var makeNothing = strings.Fields("authentication encode error file_server headers intercept invoke log_append map metrics push " +
	"request_body rewrite sitemap static_response subroute tracing vars")

// makesPages reports whether a handler may make pages, at a cost.
func makesPages(handler caddyhttp.MiddlewareHandler) bool {
	module, ok := handler.(caddy.Module)
	return ok && !slices.Contains(makeNothing, module.CaddyModule().ID.Name())
}

// digestRoutes returns the digest of a server's routes for a host, and whether one makes pages. If the digest
// changes, all pages are fetched again. Upstreams are no part of it, nor modules that handlers load themselves, nor, with
// ofFleet, where roots lie: that differs by the machine.
func digestRoutes(server *caddyhttp.Server, host string, ofFleet bool) (digest uint64, makes bool) {
	sum := xxhash.New()
	var add func(caddyhttp.RouteList, *caddyhttp.HTTPErrorConfig)
	add = func(routes caddyhttp.RouteList, onError *caddyhttp.HTTPErrorConfig) {
		if onError != nil {
			routes = slices.Concat(routes, onError.Routes)
		}
		for _, route := range routes {
			// Routes of other hosts come and go as sites do.
			if !origin.Overlap(hostsOf(route.MatcherSets), []string{host}) {
				continue
			}
			_, _ = fmt.Fprintln(sum, route.Group != "", route.Terminal, len(route.Handlers), settingsOf(route.MatcherSets))
			for _, handler := range route.Handlers {
				makes = makes || makesPages(handler)
				settings := settingsOf(handler)
				if ofFleet {
					settings = rootSetting.ReplaceAllString(settings, "")
				}
				_, _ = fmt.Fprintln(sum, settings)
				if sub, ok := handler.(*caddyhttp.Subroute); ok {
					add(sub.Routes, sub.Errors)
				}
			}
		}
	}
	add(server.Routes, server.Errors)
	for _, name := range slices.Sorted(maps.Keys(server.NamedRoutes)) {
		add(caddyhttp.RouteList{*server.NamedRoutes[name]}, nil)
	}
	return sum.Sum64(), makes
}

// rootSetting is the root in the settings of a module such as file_server or vars.
var rootSetting = regexp.MustCompile(`"root":"(?:[^"\\]|\\.)*",?`)

// settingsOf returns a module's type and settings. Of a module that cannot be encoded, it is the type alone.
func settingsOf(module any) (settings string) {
	settings = fmt.Sprintf("%T", module)
	var all any
	switch m := module.(type) {
	case *Handler, *reverseproxy.Handler, *caddyhttp.Subroute:
	case caddyhttp.MatcherSets:
		var sets [][]string
		for _, set := range m {
			var matchers []string // in no order
			for _, matcher := range set {
				matchers = append(matchers, settingsOf(matcher))
			}
			sets = append(sets, slices.Sorted(slices.Values(matchers)))
		}
		all = sets
	case *caddyhttp.MatchNot:
		all = settingsOf(caddyhttp.MatcherSets(m.MatcherSets))
	default:
		all = module
	}
	defer func() { _ = recover() }()
	encoded, _ := json.Marshal(all)
	return settings + string(encoded)
}

// listenerOf returns the address, without a host, of a server's URLs: of several listeners, the first https one.
func listenerOf(server *caddyhttp.Server, httpPort, httpsPort int) address {
	port, isSecure := mainListener(server, httpPort)
	l := address{scheme: "http"}
	if isSecure {
		l.scheme = "https"
	}
	if !slices.Contains([]int{0, 80, 443, httpPort, httpsPort}, port) {
		l.port = strconv.Itoa(port)
	}
	return l
}

// mainListener returns the port of the listener that [listenerOf] takes, 0 if it has none, and whether it is one of
// https.
func mainListener(server *caddyhttp.Server, httpPort int) (port int, isSecure bool) {
	for i, listen := range server.Listen {
		addr, err := caddy.ParseNetworkAddress(listen)
		if err != nil {
			continue
		}
		n := int(addr.StartPort)
		secure := len(server.TLSConnPolicies) > 0 && n != httpPort
		if i == 0 || secure && !isSecure {
			port = n
			isSecure = secure
		}
	}
	return port, isSecure
}

// forwarded returns the scheme and host that a trusted proxy forwards; "": none.
func forwarded(r *http.Request) (scheme, host string) {
	// Searching the context for whether the proxy is trusted takes longer, which counts for each request of a document.
	if r.Header["X-Forwarded-Proto"] == nil && r.Header["X-Forwarded-Host"] == nil {
		return "", ""
	}
	if trusted, _ := caddyhttp.GetVar(r.Context(), caddyhttp.TrustedProxyVarKey).(bool); !trusted {
		return "", ""
	}
	scheme, _, _ = strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",")
	scheme = strings.ToLower(strings.TrimSpace(scheme))
	if scheme != "http" && scheme != "https" {
		scheme = ""
	}
	host, _, _ = strings.Cut(r.Header.Get("X-Forwarded-Host"), ",")
	return scheme, strings.TrimSpace(host)
}

// trustsProxies reports whether a server trusts the headers of some proxy. It reads an unexported
// field of Caddy's; should that be renamed, the result is false.
func trustsProxies(server *caddyhttp.Server) bool {
	trusted := reflect.ValueOf(server).Elem().FieldByName("trustedProxies")
	return server.TrustedProxiesUnix || trusted.Kind() == reflect.Interface && !trusted.IsNil()
}
