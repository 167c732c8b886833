package sitemap

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/announce"
	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/option"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
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
	config := &h.settings.announce
	add := func(option string, kind announce.Kind, urls []string) {
		for _, url := range urls {
			t := announce.Target{Kind: kind, URL: url}
			err := t.Check()
			c.Refuse(err != nil, "%s '%s': %w", option, url, err)
			config.Targets = append(config.Targets, t)
		}
	}
	if i := h.IndexNow; i != nil {
		c.Refuse(h.settings.crawl.Off, "crawl is off: indexnow needs fetched pages: remove 'crawl off', or indexnow")
		c.Refuse(i.Key != "" && !announce.IsKey(i.Key), "indexnow '%s': a key has 8 to 128 letters, digits and dashes; indexnow alone makes one; without it, nothing is sent", i.Key)
		config.Key = i.Key
		config.Daily = c.InRange("indexnow daily", i.Daily, announce.DefaultDaily, announce.MaxDaily)
		add("indexnow endpoint", announce.IndexNow, i.Endpoints)
		if len(i.Endpoints) == 0 {
			add("", announce.IndexNow, []string{announce.DefaultEndpoint})
		}
	}
	add("ping", announce.Ping, h.Ping)
	add("hub", announce.Hub, h.Hubs)
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
	err := s.state.announcer.Load(ctx, s.announceConfig(), isNewer, s.app.now())
	if err != nil {
		s.announcerFailed(err)
	}
	return err == nil
}

// announcerFailed logs once what keeps the announcer from loading, storing or reading what it needs; nil: what came of a request is
// stored. Less does not end it: else it would be logged again each time that there is something to store.
func (s *site) announcerFailed(err error) {
	isTrouble := s.isOwnTrouble(err)
	s.logger.OnceIf(isTrouble, zap.WarnLevel, "announcements",
		"announcements wait: they cannot be loaded or stored", zap.Error(err))
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
	if !s.wantsAnnouncements() {
		return
	}
	if s.private {
		s.logger.Warn("changes are not announced: " + whyUnannounced)
		return
	}
	if s.handler.IndexNow != nil && !origin.IsPublic(s.origin) {
		s.logger.Info("changes are not announced by IndexNow: the host is not public")
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
		Records: func() *record.Generation { return s.published().generation },
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
	kind := string(t.Kind)
	protocol := zap.String("protocol", kind)
	target := zap.String("target", t.URL)
	// What follows, such as the body, may be another text each time.
	problem, _, _ := strings.Cut(o.Reason, ":")
	s.logger.Lasting(problem, zap.WarnLevel, "announce "+kind+t.URL, "changes were not announced", "changes are announced again",
		protocol, target, zap.String("reason", o.Reason))
	result := "failed"
	switch {
	case o.Reason == "":
		result = "accepted"
		s.logger.Info("changes announced", protocol, target, zap.Int("urls", urls), zap.Int("status", o.Status))
	case o.Refused:
		result = "refused"
	}
	s.app.counts.announced.WithLabelValues(kind, result).Add(float64(urls))
	s.app.events.emit(s, "sitemap_announced", map[string]any{
		"protocol": kind, "target": t.URL, "urls": urls, "result": result, "status": o.Status, "reason": o.Reason,
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
	err := s.state.announcer.Save(ctx)
	if err != nil {
		s.announcerFailed(err)
	}
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
	id, err := h.idOf(r, prefix)
	if err != nil || !onlyReads(r) {
		return false
	}
	// Any path may look like a key: it makes no site.
	s := h.app.lookup(id)
	if s == nil || s.main.Load() != nil || !s.announces() || s.state.announcer.Key() != key {
		return false
	}
	w.Header().Set("Content-Type", contentText)
	w.Header().Set("X-Robots-Tag", "noindex")
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(key))
	return true
}
