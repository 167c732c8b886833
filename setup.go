package sitemap

import (
	"context"
	"io/fs"
	"os"
	"reflect"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// checkSetup warns once of what its owner should know of a site: a robots.txt that the
// handler does not see, a sitemap of the site's own that is shadowed, and URLs that no
// search engine would visit.
func (s *site) checkSetup(ctx context.Context) {
	probed := s.probed.Load()
	if probed == nil || !probed.reached || probed.refused != 0 || s.main.Load() != nil || s.app.building != nil || s.checked.Swap(true) {
		return
	}
	if s.handler.settings.robots {
		p := &probe{handler: s.handler, robots: true}
		_, err := s.fetch(ctx, robotsPath, peekBody, p)
		if ctx.Err() == nil && err == nil && !p.reached {
			s.advise("robots", "requests for /robots.txt do not reach the sitemap handler; add this line to it yourself", zap.String("line", "Sitemap: "+s.sitemapURL()))
		}
	}
	if path := strings.TrimPrefix(s.docPath("", ".xml"), s.prefix); probed.root != "" && s.rootHas(probed, path) {
		s.advise("shadow", "the root has a file where the sitemap is served: it is shadowed", zap.String("file", probed.root+path))
	}
	if s.id.scheme == "http" && s.handler.settings.base == "" && isPublicName(s.id.host) && !trustsProxies(s.handler.server) {
		s.advise("http", "the sitemap of a public name lists http URLs; where a proxy in front speaks https, set base_url or trusted_proxies")
	}
}

// trustsProxies reports whether a server believes what some proxy says of a request. Caddy
// keeps that to itself; where it should come to call it otherwise, none is known.
func trustsProxies(server *caddyhttp.Server) bool {
	trusted := reflect.ValueOf(server).Elem().FieldByName("trustedProxies")
	return server.TrustedProxiesUnix || trusted.Kind() == reflect.Interface && !trusted.IsNil()
}

// advice is a kind of thing that the owner of a handler's sites should know.
type advice struct {
	handler *Handler
	kind    string
}

// advise logs one kind of advice; of the sites on demand, which may be many, for the first
// one of a handler alone.
func (s *site) advise(kind, message string, fields ...zap.Field) {
	a := s.app
	a.mu.Lock()
	given := advice{s.handler, kind}
	known := s.onDemand && a.advised[given]
	a.advised[given] = true
	a.mu.Unlock()
	if !known {
		s.logger.Warn(message, fields...)
	}
}

// rootHas reports whether the root has a regular file at a path.
func (s *site) rootHas(probed *probeResult, path string) bool {
	fsys, err := fileSystem(s.handler.ctx, probed.fs)
	if err != nil {
		return false
	}
	var info fs.FileInfo
	if name := caddyhttp.SanitizedPathJoin(probed.root, page.Unescape(path)); fsys == nil {
		info, err = os.Stat(name)
	} else {
		info, err = fs.Stat(fsys, name)
	}
	return err == nil && info.Mode().IsRegular()
}
