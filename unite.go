package sitemap

import (
	"bytes"
	"context"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// twins are those of the sites that may stand for one another: one host by http and
// https, or an apex and its www.
func twins(named []*site) []*site {
	hosts := make(map[string]int)
	for _, s := range named {
		hosts[strings.TrimPrefix(s.id.host, "www.")]++
	}
	var all []*site
	for _, s := range named {
		if s.id.host != "" && hosts[strings.TrimPrefix(s.id.host, "www.")] > 1 {
			all = append(all, s)
		}
	}
	return all
}

// unite settles which of the named sites stand for others: https for http, and of
// an apex and its www. the one that the home page says is canonical, else the apex.
func (a *App) unite(ctx context.Context, named []*site) {
	byID := make(map[siteID]*site, len(named))
	for _, s := range named {
		if s.sight.reached && s.sight.private == 0 {
			byID[s.id] = s
		}
	}
	for _, s := range byID {
		if secure := secureTwin(s, byID); secure != nil {
			s.main.Store(secure)
		}
	}
	for _, s := range byID {
		www := s.id
		www.host = "www." + s.id.host
		if other := byID[www]; other != nil && s.main.Load() == nil && other.main.Load() == nil {
			if s.canonicalHost(ctx) == other.id.host {
				s.main.Store(other)
			} else {
				other.main.Store(s)
			}
		}
	}
	for _, s := range named {
		if main := s.main.Load(); main != nil {
			for next := main.main.Load(); next != nil; next = main.main.Load() {
				main = next
			}
			s.main.Store(main)
			s.markReady()
			s.handOver(main)
			s.logger.Debug("the sitemap of this site is another one's", zap.String("sitemap", main.url()))
		}
	}
}

// secureTwin is the https site of the same block and host.
func secureTwin(s *site, byID map[siteID]*site) *site {
	if s.id.scheme != "http" || s.handler.settings.base != "" {
		return nil
	}
	for _, other := range byID {
		if other.id.scheme == "https" && other.id.host == s.id.host && other.id.folder == s.id.folder &&
			bytes.Equal(other.handler.settings.digest, s.handler.settings.digest) &&
			other.sight.root == s.sight.root && other.sight.fs == s.sight.fs {
			return other
		}
	}
	return nil
}

// canonicalHost is the host that the home page names as its canonical one; "": none.
func (s *site) canonicalHost(ctx context.Context) string {
	answer, err := s.ask(ctx, http.MethodGet, s.askFolder+"/", askPeekBody)
	if err != nil || answer.Status != http.StatusOK {
		return ""
	}
	u, err := url.Parse(canonicalLink(answer.Body))
	if err != nil {
		return ""
	}
	host, _ := cleanHost(strings.ToLower(u.Host))
	return host
}

// canonicalLink is the href of the canonical link in a document's head.
func canonicalLink(document []byte) string {
	z := html.NewTokenizer(bytes.NewReader(document))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return ""
		case html.StartTagToken, html.SelfClosingTagToken:
			token := z.Token()
			if token.DataAtom == atom.Body {
				return ""
			}
			if token.DataAtom == atom.Link && strings.EqualFold(attribute(token, "rel"), "canonical") {
				return strings.TrimSpace(attribute(token, "href"))
			}
		}
	}
}

func attribute(token html.Token, key string) string {
	for _, a := range token.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// advise says what its owner should know of a site once: a robots.txt that the
// handler does not see, a sitemap of the site's own that is shadowed, and URLs that
// no search engine would visit.
func (s *site) advise(ctx context.Context) {
	if s.advised || !s.sight.reached || s.sight.private != 0 || ctx.Err() != nil {
		return
	}
	s.advised = true
	if s.handler.settings.robots {
		p := &probe{handler: s.handler, robots: true}
		_, err := s.app.askers[s.handler.server].ask(ctx, question{method: http.MethodGet, base: s.askBase, path: robotsPath, limit: askPeekBody, probe: p})
		if ctx.Err() == nil && err == nil && !p.reached {
			s.warn("robots", "requests for /robots.txt do not reach the sitemap handler; add this line to it yourself", zap.String("line", "Sitemap: "+s.url()))
		}
	}
	if path := strings.TrimPrefix(s.docPath("", ".xml"), s.at); s.sight.root != "" && s.rootHas(path) {
		s.warn("shadow", "the root has a file where the sitemap is served: it is shadowed", zap.String("file", s.sight.root+path))
	}
	if s.id.scheme == "http" && s.handler.settings.base == "" && isPublicName(s.id.host) && !trustsProxies(s.handler.server) {
		s.warn("http", "the sitemap of a public name lists http URLs; where a proxy in front speaks https, set base_url or trusted_proxies")
	}
}

// trustsProxies reports whether a server believes what some proxy says of a request.
// Caddy keeps that to itself; where it should come to call it otherwise, none is known.
func trustsProxies(server *caddyhttp.Server) bool {
	trusted := reflect.ValueOf(server).Elem().FieldByName("trustedProxies")
	return server.TrustedProxiesUnix || trusted.Kind() == reflect.Interface && !trusted.IsNil()
}

// warn logs one kind of advice; of the sites that only visitors named, which may be
// many, for the first one of a handler alone.
func (s *site) warn(kind, message string, fields ...zap.Field) {
	if s.visitors && !s.app.isNews(advice{s.handler, kind}) {
		return
	}
	s.logger.Warn(message, fields...)
}

// advice is a kind of thing that the owner of a handler's sites should know.
type advice struct {
	handler *Handler
	kind    string
}

// isNews reports whether advice was not given before.
func (a *App) isNews(given advice) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.advised[given] {
		return false
	}
	a.advised[given] = true
	return true
}

// rootHas reports whether the root has a regular file at a path.
func (s *site) rootHas(path string) bool {
	fsys, err := s.handler.fileSystem(s.sight.fs)
	if err != nil {
		return false
	}
	var info fs.FileInfo
	if name := caddyhttp.SanitizedPathJoin(s.sight.root, page.Unescape(path)); fsys == nil {
		info, err = os.Stat(name)
	} else {
		info, err = fs.Stat(fsys, name)
	}
	return err == nil && info.Mode().IsRegular()
}
