package sitemap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"

	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/announce"
	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/option"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/replica"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
)

const announceAtOnce = 8 // requests to search engines and hubs, of all sites

// IndexNow sets that search engines are told at once which pages changed, by the protocol of
// [indexnow.org]. Google does not take part in it.
//
//	sitemap {
//		indexnow {
//			daily 1000
//		}
//	}
//
// In JSON:
//
//	{"handler": "sitemap", "indexnow": {"daily": 1000}}
//
// [indexnow.org]: https://www.indexnow.org
type IndexNow struct {
	// The key that proves that the site sends the URLs: 8 to 128 letters, digits and dashes. It is served at
	// `/<key>.txt`, in the site's prefix. Placeholders are not replaced. Default: 32 hexadecimal digits, which are made
	// once and kept with the state.
	Key string `json:"key,omitempty"`

	// URLs of the search engines that are told, each of which tells all others. Default:
	// `https://api.indexnow.org/indexnow`.
	Endpoints []string `json:"endpoints,omitempty"`

	// The maximum number of URLs that an endpoint is sent in a day (UTC), 1 to 1000000. Others wait. Default: 10000.
	Daily int `json:"daily,omitempty"`
}

// compileAnnouncements checks the settings of what is announced, and to whom.
func (h *Handler) compileAnnouncements(c *option.Checker) {
	var config announce.Config
	var endpoints []string
	if i := h.IndexNow; i != nil {
		c.Refuse(h.settings.crawl.Off, "crawl is off: indexnow needs fetched pages: remove 'crawl off', or indexnow")
		c.Refuse(i.Key != "" && !announce.IsKey(i.Key), "indexnow '%s': a key has 8 to 128 letters, digits and dashes; indexnow alone makes one; without it, nothing is sent", i.Key)
		config.Key = i.Key
		config.Daily = c.InRange("indexnow daily", i.Daily, announce.DefaultDaily, announce.MaxDaily)
		endpoints = i.Endpoints
		if len(endpoints) == 0 {
			endpoints = []string{announce.DefaultEndpoint}
		}
	}
	for _, of := range []struct {
		option string
		kind   announce.Kind
		urls   []string
	}{{"indexnow endpoint", announce.IndexNow, endpoints}, {"ping", announce.Ping, h.Ping}, {"hub", announce.Hub, h.Hubs}} {
		for _, url := range of.urls {
			t := announce.Target{Kind: of.kind, URL: url}
			err := t.Check()
			c.Refuse(err != nil, "%s '%s': %w", of.option, url, err)
			config.Targets = append(config.Targets, t)
		}
	}
	h.settings.announce = config
}

// checkHubs refuses hubs without a feed, once all settings are known.
func (h *Handler) checkHubs() error {
	if len(h.Hubs) > 0 && !h.Feed {
		return errors.New("a hub is told when the feed has changed: add feed, or remove hub")
	}
	return nil
}

// announces reports whether changes of the site are announced to anybody.
func (s *site) announces() bool { return s.wantsAnnouncements() && !s.private }

// wantsAnnouncements reports whether the configuration says that changes of the site are announced.
func (s *site) wantsAnnouncements() bool {
	hasTargets := len(s.handler.settings.announce.Targets) > 0
	isBuild := s.app.building != nil
	// Visitors can make up any number of hosts: none of those is announced.
	return hasTargets && !s.onDemand && !isBuild
}

// whyUnannounced is of a site that is private.
const whyUnannounced = "visitors need a client certificate, by 'client_auth' of the site's TLS policy: " +
	"if a proxy in front of Caddy has one, set 'trusted_proxies'"

// loadAnnouncer loads what the site has announced, and reports whether there is anything to announce, to whom. isNewer: another
// process may have stored it.
func (s *site) loadAnnouncer(ctx context.Context, isNewer bool) bool {
	if !s.announces() || s.app.isSuperseded() {
		return false
	}
	s.adopt()
	damage, err := s.state.announcer.Load(ctx, s.announceConfig(), isNewer, s.app.now())
	s.logger.OnceIf(damage != nil, zap.WarnLevel, "damaged announcements",
		"the stored announcements are damaged: they are begun anew", zap.Error(damage))
	s.logger.OnceIf(err != nil && s.isOwnTrouble(err), zap.WarnLevel, "loading announcements",
		"announcements wait: they cannot be loaded", zap.Error(err))
	return err == nil
}

// isOwnTrouble reports whether an error of the storage is not that the site is stopped, or that another process was first.
func (s *site) isOwnTrouble(err error) bool {
	return s.ctx.Err() == nil && !errors.Is(err, replica.ErrFollows)
}

// announcerFailed logs once what failed of reading changes, or of storing what is announced.
func (s *site) announcerFailed(err error) {
	s.logger.OnceIf(err != nil && s.isOwnTrouble(err), zap.WarnLevel, "storing announcements",
		"announcements wait: cursors cannot be stored, or changes be read", zap.Error(err))
}

// announceConfig returns what the site announces, and to whom.
func (s *site) announceConfig() announce.Config {
	c := s.handler.settings.announce
	c.Origin = s.origin
	c.Prefix = cmp.Or(s.handler.settings.prefix, s.prefix)
	c.Sitemap = s.sitemap
	c.Feed = s.feedURL()
	return c
}

// runAnnouncements sends what is due, until the site is stopped.
func (s *site) runAnnouncements() {
	if s.announces() && s.handler.IndexNow != nil && !origin.IsPublic(s.origin) {
		s.logger.Info("changes are not announced by IndexNow: the host is not public")
	}
	if s.wantsAnnouncements() && s.private {
		s.logger.Warn("changes are not announced: " + whyUnannounced)
	}
	if !s.announces() {
		return
	}
	// Search engines fetch the key file at once, which they can only once the server listens.
	if !s.app.awaitServing(s.ctx) {
		return
	}
	s.state.announcer.Run(s.ctx, &announce.Runner{
		Client:  s.app.announcer,
		Now:     s.app.now,
		Fetch:   s.fetchAnnounced,
		Ready:   s.announcesNow,
		Changes: s.moved,
		Done:    s.announced,
		Failed:  s.announcerFailed,
	})
}

// announcesNow reports whether it is this process that sends what changed: of those that share the site, the one that leads. It
// waits at first, as another one may not know yet that it does not lead any more, and until all others serve what changed.
func (s *site) announcesNow(ctx context.Context) bool {
	isSender := s.node == nil || s.node.MayAnnounce(AnnounceAfter)
	return isSender && s.main.Load() == nil && s.loadAnnouncer(ctx, false)
}

// moved yields what has become of pages since a time.
func (s *site) moved(ctx context.Context, since int64) iter.Seq2[announce.Change, error] {
	return func(yield func(announce.Change, error) bool) {
		g := s.published().generation
		if g == nil {
			return
		}
		for rec, err := range g.Moved(ctx, since) {
			var c announce.Change
			if err == nil {
				c = announce.Change{At: int64(rec.Moved), Path: rec.Path}
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

// fetchAnnounced requests the key file at the pace of the crawl.
func (s *site) fetchAnnounced(ctx context.Context, path string) (status int, body []byte, err error) {
	res, err := s.fetcher.get(ctx, crawl.Request{Path: s.internalPath(path), Limit: peekBody}, nil)
	if err != nil {
		return 0, nil, err
	}
	return res.Status, res.Body, nil
}

// announced logs, counts and emits what came of an announcement.
func (s *site) announced(urls int, o announce.Outcome, t announce.Status) {
	problem := fmt.Sprint("announce ", t.Kind, t.URL)
	protocol := zap.String("protocol", string(t.Kind))
	target := zap.String("target", t.URL)
	s.logger.Lasting(t.Reason, zap.WarnLevel, problem, "changes were not announced", "changes are announced again",
		protocol, target, zap.String("reason", t.Reason))
	result := "failed"
	switch {
	case t.Reason == "":
		result = "accepted"
		s.logger.Info("changes announced", protocol, target, zap.Int("urls", urls), zap.Int("status", o.Status))
	case t.Stopped:
		result = "refused"
	}
	s.app.counts.announced.WithLabelValues(string(t.Kind), result).Add(float64(urls))
	s.app.events.emit(s, "sitemap_announced", map[string]any{
		"protocol": string(t.Kind), "target": t.URL, "urls": urls, "result": result, "status": o.Status, "reason": t.Reason,
	})
}

// tellAnnouncer has the announcer tell of what a refresh has published in place of something else.
func (s *site) tellAnnouncer(ctx context.Context, before *document.Set, out *report.Refresh) {
	if !s.announces() {
		return
	}
	p := announce.Publication{
		First:     before == nil && out.Selected.Before == 0,
		Complete:  !out.Partial && !out.IsSuspicious() && out.Crawled.Pending == 0,
		Documents: map[announce.Kind]string{announce.Ping: out.Snapshot.XMLDigest()},
	}
	if feed := out.Snapshot.Find(document.Feed); feed != nil {
		p.Documents[announce.Hub] = feed.ETag
	}
	s.state.announcer.Published(p)
	s.announcerFailed(s.state.announcer.Save(ctx))
}

// keyOf returns the key of IndexNow that a decoded path of a site names; "": none.
func keyOf(path string) string {
	name, isText := strings.CutSuffix(path, ".txt")
	if key, ok := strings.CutPrefix(name, "/"); ok && isText && announce.IsKey(key) {
		return key
	}
	return ""
}

// serveKey serves the key file of IndexNow if the request is for that of the site; false: it is not.
func (h *Handler) serveKey(w http.ResponseWriter, r *http.Request, key, prefix string) bool {
	if !onlyReads(r) {
		return false
	}
	id, err := h.idOf(r, prefix)
	if err != nil {
		return false
	}
	// Any path may look like a key: it makes no site.
	s := h.app.lookup(id)
	if s == nil || s.main.Load() != nil || !s.announces() {
		return false
	}
	if s.state.announcer.Key() != key {
		return false
	}
	w.Header().Set("Content-Type", contentText)
	w.Header().Set("X-Robots-Tag", "noindex")
	if r.Method == http.MethodGet {
		_, _ = io.WriteString(w, key) // an error means that the client is gone
	}
	return true
}
