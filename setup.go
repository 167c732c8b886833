package sitemap

import (
	"context"
	"io/fs"
	"os"
	"reflect"
	"strings"

	"github.com/caddyserver/caddy/v2"
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
		_, err := s.fetcher.fetch(ctx, robotsPath, peekBody, p)
		if ctx.Err() == nil && err == nil && !p.reached {
			s.logger.log(zap.WarnLevel, "requests for /robots.txt do not reach the sitemap handler; add this line to it yourself", zap.String("line", "Sitemap: "+s.sitemapURL()))
		}
	}
	if path := strings.TrimPrefix(s.docPath("", ".xml"), s.prefix); probed.root != "" && probed.hasFile(s.handler.ctx, path) {
		s.logger.log(zap.WarnLevel, "the root has a file where the sitemap is served: it is shadowed", zap.String("file", probed.root+path))
	}
	if s.id.scheme == "http" && s.handler.settings.base == "" && isPublicName(s.id.host) && !trustsProxies(s.handler.server) {
		s.logger.log(zap.WarnLevel, "the sitemap of a public name lists http URLs; where a proxy in front speaks https, set base_url or trusted_proxies")
	}
}

// trustsProxies reports whether a server believes what some proxy says of a request. Caddy
// keeps that to itself; where it should come to call it otherwise, none is known.
func trustsProxies(server *caddyhttp.Server) bool {
	trusted := reflect.ValueOf(server).Elem().FieldByName("trustedProxies")
	return server.TrustedProxiesUnix || trusted.Kind() == reflect.Interface && !trusted.IsNil()
}

// hasFile reports whether the root has a regular file at a path.
func (p *probeResult) hasFile(ctx caddy.Context, path string) bool {
	fsys, err := fileSystem(ctx, p.fs)
	if err != nil {
		return false
	}
	var info fs.FileInfo
	if name := caddyhttp.SanitizedPathJoin(p.root, page.Unescape(path)); fsys == nil {
		info, err = os.Stat(name)
	} else {
		info, err = fs.Stat(fsys, name)
	}
	return err == nil && info.Mode().IsRegular()
}
