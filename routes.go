package sitemap

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"slices"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

// routesDigest tells apart what servers would answer, as far as their routes say it:
// with others, pages are asked for again. What is loaded into handlers as modules of
// its own, and what upstreams there are, is not in it.
func routesDigest(server *caddyhttp.Server) string {
	d := routeDigester{sha256.New()}
	d.routes(server.Routes)
	if server.Errors != nil {
		d.routes(server.Errors.Routes)
	}
	for _, name := range slices.Sorted(maps.Keys(server.NamedRoutes)) {
		d.say("named", name)
		d.route(server.NamedRoutes[name])
	}
	return hex.EncodeToString(d.Sum(nil)[:16])
}

type routeDigester struct{ hash.Hash }

func (d routeDigester) say(parts ...any) { _, _ = fmt.Fprintf(d, "%q\n", parts) }

func (d routeDigester) routes(routes caddyhttp.RouteList) {
	d.say("routes", len(routes))
	for i := range routes {
		d.route(&routes[i])
	}
}

func (d routeDigester) route(route *caddyhttp.Route) {
	d.say("route", route.Group, route.Terminal)
	for _, set := range route.MatcherSets {
		var matchers []string
		for _, m := range set {
			matchers = append(matchers, matcherSettings(m))
		}
		slices.Sort(matchers) // they come in no order
		d.say("matchers", matchers)
	}
	for _, h := range route.Handlers {
		switch h := h.(type) {
		case *caddyhttp.Subroute:
			d.say("subroute")
			d.routes(h.Routes)
			if h.Errors != nil {
				d.routes(h.Errors.Routes)
			}
		case *Handler, *reverseproxy.Handler:
			d.say(fmt.Sprintf("%T", h))
		default:
			d.say(moduleSettings(h))
		}
	}
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
