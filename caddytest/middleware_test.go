package caddytest

import (
	"net/http"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

func init() {
	caddy.RegisterModule(new(middleware))
	httpcaddyfile.RegisterHandlerDirective("test_middleware", parseMiddleware)
	httpcaddyfile.RegisterDirectiveOrder("test_middleware", httpcaddyfile.Before, "respond")
}

// middleware is a handler of a plugin, whose behavior is a function of the running test: see handleBy.
type middleware struct {
	Name string `json:"name"`
}

// behavior is what a middleware does with a request.
type behavior func(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error

// behaviors are those of the running test, by the names of its middlewares.
var behaviors sync.Map

// handleBy has test_middleware, with a name, do something.
func handleBy(t *testing.T, name string, do behavior) {
	behaviors.Store(name, do)
	t.Cleanup(func() { behaviors.Delete(name) })
}

func (*middleware) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.test_middleware", New: func() caddy.Module { return new(middleware) }}
}

func parseMiddleware(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	m := new(middleware)
	h.Next()
	if !h.Args(&m.Name) {
		return nil, h.ArgErr()
	}
	return m, nil
}

func (m *middleware) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	do, ok := behaviors.Load(m.Name)
	if !ok {
		return next.ServeHTTP(w, r)
	}
	return do.(behavior)(w, r, next)
}
