package sitemap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/announce"
	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/fleet"
	"github.com/seed3295b519/caddy-sitemap/internal/htmlmeta"
	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
	"github.com/seed3295b519/caddy-sitemap/internal/option"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
	"github.com/seed3295b519/caddy-sitemap/internal/webpage"
)

const (
	announceAtOnce = 8           // requests to search engines and hubs, of all sites
	queuePatience  = time.Second // with the storage, while a refresh waits
)

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

	// The maximum number of URLs that an endpoint is sent in any 24 hours, 1 to 1000000. A tenth is kept for added pages.
	// Others wait; the newest are sent first. Default: 10000.
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

// announcements returns what the site announces, and loads it at first; nil: nothing, or it cannot be loaded. Without what
// is stored the site would get another key. In a fleet, it is loaded again once another node has stored it, and makes is
// set for the one node that may make a key: it is used once it is stored.
func (s *site) announcements(ctx context.Context, makes bool) *announce.Queue {
	st := s.state
	if !s.announces() {
		return nil
	}
	before := st.queue.Load()
	if before != nil && (st.fleet == nil || !st.fleet.Queue.Newer()) {
		return before
	}
	err := s.loadQueue(ctx)
	isNone := errors.Is(err, fs.ErrNotExist) // never stored, or the storage has lost it
	isUnread := err != nil && !isNone
	// A poll neither warns nor ends the warning: the refresh that follows does.
	if makes {
		s.logger.While(isUnread && s.ctx.Err() == nil, zap.WarnLevel, "loading announcements",
			"announcements wait: they cannot be loaded", zap.Error(err))
	}
	if isUnread || isNone && !makes {
		return nil
	}
	if isNone && !s.makeQueue(ctx, before) {
		return nil
	}
	return st.queue.Load()
}

// loadQueue loads what is stored of the site's announcements. What is damaged is set aside, and begun anew.
func (s *site) loadQueue(ctx context.Context) error {
	var stored []byte
	var damage error
	s.adopt()
	err := s.state.queued.Load(ctx, func(data []byte) {
		q, malformed := announce.New(data, s.announceConfig())
		if s.state.fleet == nil && s.state.queue.Load() != nil {
			return // another call has loaded it meanwhile
		}
		s.state.queue.Store(q)
		stored = data
		damage = malformed
	})
	if err == nil && damage != nil {
		aside, err := s.state.queued.SetAside(ctx, stored)
		s.logger.Warn("the stored announcements are damaged: they are set aside",
			zap.String("key", aside), zap.Error(damage), zap.NamedError("aside", err))
	}
	return err
}

// makeQueue makes a queue where none is stored. In a fleet it is used once it is stored: else each node would have a key of
// its own.
func (s *site) makeQueue(ctx context.Context, before *announce.Queue) bool {
	q := before
	if q == nil {
		q, _ = announce.New(nil, s.announceConfig()) // which fails only for what is stored
	}
	if s.state.fleet != nil && s.saveQueue(ctx, q, before) != nil {
		return false
	}
	s.state.queue.CompareAndSwap(before, q)
	return true
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
	isAlone := s.state.fleet == nil
	for s.ctx.Err() == nil {
		q := s.announcements(s.ctx, isAlone)
		if q != nil {
			q.Run(s.ctx, s.announceRunner(q))
		}
		wait.Within(announce.Gap, s.ctx.Done())
	}
}

// announceRunner is what runs a queue with this configuration, while it is the site's.
func (s *site) announceRunner(q *announce.Queue) *announce.Runner {
	return &announce.Runner{
		Config: s.announceConfig(),
		Client: s.app.announcer,
		Now:    s.app.now,
		Paused: func() bool {
			return s.main.Load() != nil || s.app.isSuperseded() || s.state.queue.Load() != q || !s.announcesNow()
		},
		Fetch: s.fetchAnnounced,
		Gone:  s.isGone,
		Done:  s.announced,
		Save:  func(ctx context.Context) error { return s.saveQueue(ctx, q, q) },
	}
}

// announcesNow reports whether it is this process that sends what changed: of those that share the site, the one that has
// committed it, once all others serve it.
func (s *site) announcesNow() bool {
	member := s.state.fleet
	return member == nil || member.Settled() && !member.Queue.Newer()
}

// saveQueue stores a queue, unless one that another node has stored has replaced that of before.
func (s *site) saveQueue(ctx context.Context, q, before *announce.Queue) error {
	return s.state.queued.Save(ctx, func() ([]byte, error) {
		if s.state.queue.Load() != before {
			return nil, fleet.ErrLost
		}
		return q.Encode(), nil
	})
}

// fetchAnnounced requests the key file.
func (s *site) fetchAnnounced(ctx context.Context, path string) (status int, body []byte, err error) {
	res, err := s.fetchPaced(ctx, path)
	if err != nil {
		return 0, nil, err
	}
	return res.Status, res.Body, nil
}

// fetchPaced requests a path of the site's URLs at the pace of the crawl. While the site pauses, the error is errPaused.
func (s *site) fetchPaced(ctx context.Context, path string) (*crawl.Response, error) {
	return s.fetcher.get(ctx, crawl.Request{Path: s.internalPath(path), Limit: peekBody}, nil)
}

// isGone requests a page that was listed, and reports whether it is gone: it returns an error, leads elsewhere or asks not to
// be indexed, as in the statuses by which the select stage takes a page for gone: see the table of indexing.Status. An error
// means that the response does not tell.
func (s *site) isGone(ctx context.Context, path string) (bool, error) {
	res, err := s.fetchPaced(ctx, path)
	if err != nil {
		return false, err
	}
	if !page.IsConclusive(res.Status) {
		return false, fmt.Errorf("status %d", res.Status)
	}
	if res.Status != http.StatusOK {
		return true, nil
	}
	at := htmlmeta.Page{Base: s.origin, Path: path, Header: res.Header}
	meta := htmlmeta.Header(at)
	if htmlmeta.IsHTML(res.Header.Get("Content-Type")) {
		meta = htmlmeta.NewParser(htmlmeta.Options{}).Parse(res.Body, at)
	}
	return meta.LeavesOut(), nil
}

// announcedStatus is what there is to show of what the site announces.
func (s *site) announcedStatus(q *announce.Queue) []announce.Status {
	now := s.app.now()
	all := q.Status(now)
	for i := range all {
		t := &all[i]
		if t.Waiting > 0 && !s.announcesNow() {
			t.WaitsFor = announce.ForOthers
			t.Next = time.Time{}
		}
		refresh := s.schedule.Due()
		if t.WaitsFor == announce.ForConfirmation && t.Next.IsZero() && refresh.After(now) {
			t.Next = toSecond(refresh.Add(time.Second - 1))
		}
	}
	return all
}

// announced logs, counts and emits what came of an announcement.
func (s *site) announced(job *announce.Job, o announce.Outcome, t announce.Status) {
	problem := fmt.Sprint("announce ", t.Kind, t.URL)
	protocol := zap.String("protocol", string(t.Kind))
	target := zap.String("target", t.URL)
	s.logger.OnceIf(t.Reason != "", zap.WarnLevel, problem, "changes were not announced",
		protocol, target, zap.String("reason", t.Reason))
	result := "failed"
	switch {
	case t.Reason == "":
		result = "accepted"
		s.logger.Info("changes announced", protocol, target, zap.Int("urls", job.URLs), zap.Int("status", o.Status))
	case t.Stopped:
		result = "refused"
	}
	s.app.counts.announced.WithLabelValues(string(t.Kind), result).Add(float64(job.URLs))
	s.app.events.emit(s, "sitemap_announced", map[string]any{
		"protocol": string(t.Kind), "target": t.URL, "urls": job.URLs, "result": result, "status": o.Status, "reason": t.Reason,
	})
}

// updateOf returns what a publication changes, in place of another one.
func (s *site) updateOf(r *refreshing, before *publication, out *report.Refresh) announce.Update {
	served := before.snapshot
	// A process of a fleet may know less of what was listed than the records do. These tell it only if pages were selected.
	mayBeFirst := served == nil || s.state.fleet != nil && out.Selected.IsMade()
	u := announce.Update{
		At:       s.app.now(),
		Begun:    r.start,
		Gathered: out.Crawled.Gathered && !out.IsSuspicious(),
		Complete: !out.Partial && !out.IsSuspicious(),
		Crawled:  out.Crawled.Pending == 0,
		First:    mayBeFirst && out.Selected.Before == 0,
		Changes:  out.Selected.Changes,
		Sitemap:  out.Snapshot != nil && (served == nil || !served.EqualXML(out.Snapshot)),
		Selected: out.Selected.IsMade(),
	}
	if out.News != nil {
		u.News = out.News.Paths
	}
	// Where records were lost, pages that are fetched again seem to be new, and were listed before.
	if !before.history.Lost.IsZero() || r.crawled.Lost {
		u.Changes.Added = indexing.List[indexing.Change]{}
	}
	if feed := out.Snapshot.Find(webpage.Feed); feed != nil {
		old := served.Find(webpage.Feed)
		u.Feed = old == nil || old.ETag != feed.ETag
	}
	return u
}

// queueChanges queues what a publication changes.
func (s *site) queueChanges(ctx context.Context, u announce.Update) {
	patience := queuePatience
	if s.state.fleet != nil {
		patience = firstWait
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// Another node that still sends may store its queue in between, which has not these changes: they are queued again in that.
	err := fleet.ErrLost
	for i := 0; i < 3 && errors.Is(err, fleet.ErrLost); i++ {
		s.pollQueue(ctx)
		q := s.announcements(ctx, true)
		if q == nil {
			return
		}
		q.Update(u)
		err = s.saveQueue(ctx, q, q)
	}
	s.logger.While(err != nil, zap.WarnLevel, "storing announcements",
		"cannot store announcements: nothing is announced", zap.Error(err))
}

// pollQueue loads the announcements that another process has stored.
func (s *site) pollQueue(ctx context.Context) {
	member := s.state.fleet
	if member == nil || !s.announces() {
		return
	}
	_ = member.Queue.Poll(ctx) // its errors are those of polls of the records
	s.announcements(ctx, false)
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
	q := s.state.queue.Load()
	if q == nil || q.Key() != key {
		return false
	}
	w.Header().Set("Content-Type", contentText)
	w.Header().Set("X-Robots-Tag", "noindex")
	if r.Method == http.MethodGet {
		_, _ = io.WriteString(w, key) // an error means that the client is gone
	}
	return true
}
