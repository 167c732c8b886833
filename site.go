package sitemap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/files"
	"github.com/seed3295b519/caddy-sitemap/internal/logonce"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
	"github.com/seed3295b519/caddy-sitemap/internal/replica"
	"github.com/seed3295b519/caddy-sitemap/internal/schedule"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// address is how requests name a site.
type address struct {
	scheme string
	host   string // as [origin.CleanHost] returns it
	port   string // "" for the scheme's default
	prefix string // stripped before the handler, percent-encoded; "" or such as /docs
}

// siteID is the key of a site. Sites of several handlers may have the same address.
type siteID struct {
	handler *Handler
	address
}

// identity is what never changes of a site.
type identity struct {
	id       siteID
	handler  *Handler
	onDemand bool // only visitors named its host

	// The site's URLs as visitors know them: base_url may make them differ from id.
	origin    string // scheme, host and port
	prefix    string // of its pages' paths; "" or such as /docs
	docPrefix string // of its documents' paths, before the path setting
	scope     string // prefix of the paths that may be listed, with a slash at the end; the front page's path, too

	sitemap        string // URL of the sitemap or index
	internalOrigin string // scheme, host and port of id, by which routes lead to the handler
	host           string // of the Host header of requests
}

func newIdentity(id siteID, onDemand bool) identity {
	h := id.handler
	i := identity{id: id, handler: h, onDemand: onDemand, prefix: id.prefix, docPrefix: id.prefix}
	i.internalOrigin = origin.Of(id.scheme, h.mounts.spelled(id.host, id.prefix), id.port)
	i.origin = cmp.Or(h.settings.base, i.internalOrigin)
	_, i.host, _ = strings.Cut(i.internalOrigin, "://")
	if origin.HostOf(i.origin) == origin.HostOf(i.internalOrigin) {
		// A proxy in front passes on the Host of the base URL. With the port of the listener in it, an application would
		// redirect to the one without.
		_, i.host, _ = strings.Cut(i.origin, "://")
	}
	if h.settings.prefix != "" {
		i.docPrefix = h.settings.prefix
		if i.prefix != "" {
			i.prefix = h.settings.prefix
		}
	}
	if h.settings.prefix != "" && strings.HasPrefix(h.settings.path, i.docPrefix+"/") {
		i.docPrefix = "" // path has it already
	}
	path := i.docPath(".xml")
	i.sitemap = i.origin + path
	i.scope = page.Folder(path) // in prefix
	return i
}

// setListener sets the address at which the handler is reached: with a base URL, which makes it one
// site, also the host and prefix.
func (h *Handler) setListener(listener address) {
	h.listener = listener
	namesHosts := slices.ContainsFunc(h.mounts, func(m *mount) bool { return m.hosts != nil })
	isBare := len(h.mounts) > 0 && !namesHosts && !trustsProxies(h.server)
	h.followsPort = isBare && h.settings.base == ""
	if h.settings.base == "" {
		return
	}
	if len(h.mounts) > 0 {
		h.listener.prefix = h.mounts[0].prefix
	}
	h.listener.host = h.mounts.representativeHost(origin.HostOf(h.settings.base), h.listener.prefix)
}

// idOf returns the site that a request is for, with a base URL always the same one, or errNoHost. A forwarded host
// counts only if the matchers name no hosts, or that one: else it could poison a cache with a foreign Sitemap line. So
// could a port that a visitor made up: of a host that matchers name, only the listener's and the scheme's default count.
func (h *Handler) idOf(r *http.Request, prefix string) (siteID, error) {
	id := siteID{h, h.listener}
	if h.settings.base != "" {
		return id, nil
	}
	id.prefix = prefix
	host := r.Host
	isPort := true
	scheme, forwardedHost := forwarded(r)
	isForwarded := scheme != "" || forwardedHost != ""
	if isForwarded {
		if h.takesForwarded(forwardedHost, prefix) {
			host = forwardedHost
		}
		id.scheme = cmp.Or(scheme, id.scheme)
		id.port, isPort = origin.CleanPort(id.scheme, host)
	}
	var isHost bool
	id.host, isHost = origin.CleanHost(host)
	if !isHost || !isPort {
		return id, fmt.Errorf("'%.100s': %w", host, errNoHost)
	}
	if isForwarded && id.port != h.listener.port && h.mounts.namesHost(id.host, prefix) {
		id.port = ""
	}
	// Behind a port mapping, such as that of a container, only the Host header has the port that visitors use.
	if h.followsPort {
		if port, ok := origin.CleanPort(id.scheme, host); ok {
			id.port = port
		}
	}
	return id, nil
}

// takesForwarded reports whether a host that a trusted proxy forwards, "": none, is that of the site. One that is no host is: the
// request is then refused for it.
func (h *Handler) takesForwarded(host, prefix string) bool {
	if host == "" {
		return false
	}
	clean, isHost := origin.CleanHost(host)
	return !isHost || h.mounts.matchesHost(clean, prefix)
}

// spellsOut reports whether the configuration spells an address out: at the listener itself, or at the
// https port of a proxy before it. Visitors may have made up any other port that a proxy forwards.
func (h *Handler) spellsOut(at address) bool {
	isListener := at.scheme == h.listener.scheme && at.port == h.listener.port
	isProxy := at.scheme == "https" && at.port == ""
	return (isListener || isProxy) && h.mounts.spellsOut(at.host, at.prefix)
}

// docPath returns the path of a document in URLs, such as /sitemap-0123456789ab.xml.
func (i *identity) docPath(name string) string {
	if name == document.LLMs {
		return cmp.Or(i.handler.settings.prefix, i.id.prefix) + name
	}
	return i.docPrefix + strings.TrimSuffix(i.handler.settings.path, ".xml") + name
}

// internalDocPath is the docPath of a document that the handler itself serves, as the server knows it: without the folder of
// base_url, which a proxy in front may strip.
func (i *identity) internalDocPath(name string) string {
	return i.id.prefix + strings.TrimSuffix(i.handler.settings.path, ".xml") + name
}

// internalPath returns a path of the site's URLs as the server knows it: a proxy in front may have another prefix.
func (i *identity) internalPath(path string) string {
	if rest, ok := strings.CutPrefix(path, i.prefix+"/"); ok {
		return i.id.prefix + "/" + rest
	}
	return path
}

// url returns the origin and prefix, by which logs and the admin API name the site.
func (i *identity) url() string { return i.origin + i.prefix }

// feedURL returns the URL of the feed.
func (i *identity) feedURL() string { return i.origin + i.docPath(document.Feed) }

// newsURL returns the URL of the news sitemap.
func (i *identity) newsURL() string { return i.origin + i.docPath(document.NewsSitemap) }

// isDocument reports whether a path is that of one of the site's own documents.
func (i *identity) isDocument(path string) bool {
	_, ok := i.handler.settings.name(path, i.docPath(""))
	return ok
}

const reasonDocument = "a document of the sitemap"

// servesAt reports whether visitors get one of the site's own documents at a path. While the site has
// an llms.txt itself, that is a page like any other.
func (s *site) servesAt(path string) bool {
	isLLMs := s.handler.settings.beside.LLMs && path == s.docPath(document.LLMs)
	return s.isDocument(path) || isLLMs && !s.ownLLMs.exists.Load()
}

// filter returns why a page is not a candidate; "": it is one.
func (i *identity) filter(p *page.Page) string {
	switch {
	case !strings.HasPrefix(p.Path, i.scope):
		return "outside the sitemap's folder"
	case i.handler.settings.exclude.Match(p.Path):
		return "excluded"
	case len(p.Path)+len(i.origin) > page.MaxLoc:
		return "URL too long"
	case i.isDocument(p.Path):
		return reasonDocument
	}
	return ""
}

// digest returns the digest of the settings that shape a snapshot, and of more values.
func (i *identity) digest(more ...any) uint64 {
	return digestOf(i.sitemap, i.scope, i.handler.settings.digest, more)
}

// digestOf returns the digest of values.
func digestOf(values ...any) uint64 { return xxhash.Sum64String(fmt.Sprintf("%#v", values)) }

// site is one origin and prefix that a handler serves.
type site struct {
	identity
	app      *App
	logger   *logonce.Logger
	schedule *schedule.Schedule
	fetcher  siteFetcher
	crawler  *crawl.Crawler
	state    *siteState // outlives the configuration
	private  bool       // visitors need a client certificate

	node   *replica.Node  // its part in the fleet, if several processes share the site; nil: it is this one's alone
	shared record.Storage // which all reach

	watch      *files.Watch // tells of changes of files; nil: nothing does
	planning   sync.Mutex   // of what follows, and while the next refresh is planned by it
	prospected *prospects   // of the last refresh; nil: one is under way, or none was

	// Only for the goroutine that refreshes the site.
	runs      int         // refreshes so far
	absences  int         // the last refreshes, in a row, that found no front page
	hasLeft   bool        // the last refresh has left pages that are due
	firstLook bool        // the refresh under way is a first look: see isFirstLook
	isHurried bool        // the refresh under way has no time for slow sources: requests wait for what others name
	isPatient bool        // the next one has, as a source was too slow
	begun     time.Time   // when the last refresh began
	probedAt  time.Time   // when the last refresh began that has probed the site
	look      *crawl.Look // after the last writes; nil: there were none

	ownReading    context.Context    // of the last reading of its own sitemaps; it has ended where that has
	endOwnReading context.CancelFunc // which ends it

	probed atomic.Pointer[probeResult] // of the last refresh; nil: none yet
	stage  atomic.Pointer[stage]       // of the refresh under way; nil: none is
	main   atomic.Pointer[site]        // of which this one is an alias; nil: it is none

	ownStylesheet, ownLLMs ownFile // at the paths of ours

	cleanURLs sync.Map // by the root and folder of a source of files: see [SourceFiles.hasCleanURLs]

	stopWaiting atomic.Pointer[context.CancelFunc] // for a turn, to wait by another rank: see awaitTurn; nil: it never waited

	requested atomic.Int64 // when a document was last requested, in Unix nanoseconds

	ready     chan struct{} // closed when it is known what is served
	setReady  func()        // closes ready
	wasProbed chan struct{} // closed when the first probe has ended
	setProbed func()        // closes wasProbed

	ctx    context.Context // ends with the site
	cancel context.CancelFunc
}

// newSite makes a site. It goes on from the state that the configuration before has left, if any. Under the App's mu.
func newSite(a *App, i identity) *site {
	h := i.handler
	s := &site{
		identity:  i,
		app:       a,
		ready:     make(chan struct{}),
		wasProbed: make(chan struct{}),
	}
	s.setReady = sync.OnceFunc(func() { close(s.ready) })
	s.setProbed = sync.OnceFunc(func() { close(s.wasProbed) })
	s.ctx, s.cancel = context.WithCancel(a.running)
	s.ownReading, s.endOwnReading = context.WithCancel(s.ctx)
	s.endOwnReading()
	// Visitors can make up any number of hosts, each of which would have its lines.
	logger := h.logger
	if s.onDemand {
		logger = a.sampled
	}

	isShared := a.shares(&i)
	routes, makes := digestRoutes(h.server, i.id.host, isShared)
	// A site that begins to be shared, or is not any more, has the same routes.
	same, _ := digestRoutes(h.server, i.id.host, !isShared)
	s.fetcher = siteFetcher{identity: &s.identity, server: a.fetchers[h.server], routes: routes, sameRoutes: same, makes: makes}
	if f := s.fetcher.server; f != nil && i.id.scheme == "https" {
		// The certificate of a proxy in front says nothing of its visitors.
		s.private = f.needsCertificate(i.id.host) && !trustsProxies(h.server)
	}

	s.state = acquireState(a, &s.identity)
	s.logger = s.state.said.To(logger.With(zap.String("site", s.url())))
	s.node = a.nodeOf(s)
	// An upstream that has said when to come back, or is backed off from, is not asked because of a reload.
	if before := s.state.limiter.Swap(h.limiter); before != nil {
		h.limiter.Resume(before)
	}
	s.crawler = crawl.New(crawl.Options{
		Fetcher: &s.fetcher,
		Limiter: h.limiter,
		Rank:    s.rank,
		Slots:   a.slots,
		Workers: cap(a.slots),
		Now:     a.now,
		Own:     !makes,
		Once:    a.building != nil,
	})
	s.fetcher.crawler = s.crawler

	s.watch = s.watchOf()
	s.schedule = schedule.New(a.now())
	served := s.published()
	if served.snapshot == nil {
		return s
	}
	s.setReady()
	// The configuration before has planned when the site is due. If this one looks at the site otherwise, it is due now.
	if next := served.next; !next.due.IsZero() && next.digest == s.fetcher.digest() {
		s.probed.Store(served.probed)
		s.setProbed()
		p := prospects{
			now:       a.now(),
			planned:   next.due,
			interval:  h.settings.interval,
			isChanged: s.state.isChanged.Load(),
			look:      s.lookDue(),
		}
		s.prospected = &p
		s.plan(p)
	}
	return s
}

// drop stops the site's refreshes and releases its state.
func (s *site) drop() {
	s.cancel()
	s.setReady()
	_, _ = states.Delete(s.state.place.key)
}

// snapshot returns what to serve; nil: the site has no documents. Until the first refresh has
// published, it waits; the error is errNotReady. A site on demand is refreshed because of it.
func (s *site) snapshot(ctx context.Context) (*document.Set, error) {
	if s.onDemand {
		s.noteRequest(s.app.now())
		s.schedule.Notify()
	}
	if snapshot := s.published().snapshot; snapshot != nil {
		return snapshot, nil
	}
	// An outage of the storage may take minutes, for which no request waits.
	if s.fleetRole() == roleWaits && s.node.Status().Error != "" {
		return nil, errNotReady
	}
	err := s.app.await(ctx, s.ready)
	snapshot := s.published().snapshot
	// It may be ready all the same, as a refresh that an operator has requested failed, or as the front page did not respond.
	isUnknown := s.node != nil && !wait.IsDone(s.ready)
	if snapshot == nil && (isUnknown || s.fleetRole() == roleWaits || s.isSilent()) {
		err = errNotReady
	}
	return snapshot, err
}

var errStopping = errors.New("the site is being stopped")

// refreshNow requests a refresh of the site, or of that of which it is an alias, and waits until one has ended that
// began after the call. The error is ctx's, or errStopping; the refresh goes on even so.
func (s *site) refreshNow(ctx context.Context) error {
	s = cmp.Or(s.main.Load(), s)
	err := s.claimLead(ctx)
	if err != nil {
		return err
	}
	// The refresh may find that the site is an alias: then its main site is meant.
	for next := cmp.Or(s.main.Load(), s); next != nil; next = s.main.Load() {
		s = next
		select {
		case <-s.schedule.Request(s.app.now()):
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ctx.Done():
			return errStopping
		}
	}
	return nil
}

// settle stores the result of a probe, and decides which of the site and its twins are aliases now: a host by http and
// https, or an apex and its www, may be one site. Requests for the sitemap of an alias are redirected to its main site's.
func (s *site) settle(ctx context.Context, probed *probeResult, err error) {
	if err == nil {
		s.probed.Store(probed)
	}
	s.setProbed()
	twins := s.twins()
	// What is an alias depends on all their probes. One that hangs keeps the others waiting for moments only.
	ctx, cancel := context.WithTimeout(ctx, firstPatience)
	defer cancel()
	for _, twin := range twins {
		select {
		case <-twin.wasProbed:
		case <-ctx.Done():
		}
	}
	s.app.aliasing.Lock()
	defer s.app.aliasing.Unlock()
	for _, twin := range twins {
		main := twin.mainOf(twins)
		before := twin.main.Swap(main)
		if main == before {
			continue
		}
		// A site that is no alias any more may have no documents, and must not wait for its next refresh, a day later perhaps.
		if main == nil {
			twin.plan(prospects{now: s.app.now(), noticed: true})
			twin.schedule.Notify()
			continue
		}
		twin.setReady()
		twin.logger.Debug("alias: requests for the sitemap are redirected to that of another site",
			zap.String("sitemap", main.sitemap))
	}
}

// twins are the sites of which this one may be an alias, or they of it, and itself: by http and https, with www and without.
func (s *site) twins() []*site {
	apex := func(s *site) string { return strings.TrimPrefix(s.id.host, "www.") }
	return s.app.sitesThat(func(o *site) bool {
		isNamed := !o.onDemand && o.handler.settings.base == ""
		return isNamed && o.id.prefix == s.id.prefix && apex(o) == apex(s)
	})
}

// bytes returns how much memory the site takes, roughly.
func (s *site) bytes() int64 {
	n := s.published().bytes()
	if own := s.state.own.Load(); own != nil {
		n += int64(len(own.pages)) * ownBytes
	}
	return n
}

// mainOf returns the twin of which a site is an alias, at the end of a chain of such; nil: it is
// none. It depends only on the results of these sites' probes.
func (s *site) mainOf(twins []*site) *site {
	for _, isMain := range []func(s, o *site) bool{isSecure, isCanonical} {
		for _, o := range twins {
			if s.isOpen() && o.isOpen() && isMain(o, s) {
				return cmp.Or(o.mainOf(twins), o)
			}
		}
	}
	return nil
}

// isOpen reports whether the site was probed, and nothing keeps it from listing pages.
func (s *site) isOpen() bool {
	probed := s.probed.Load()
	return probed != nil && probed.blocked == ""
}

// isSecure reports whether a site has the pages of another one by https.
func isSecure(s, plain *site) bool {
	isPair := s.id.scheme == "https" && plain.id.scheme == "http" && s.id.host == plain.id.host
	if !isPair || s.handler == plain.handler {
		return false
	}
	a := s.probed.Load()
	b := plain.probed.Load()
	return s.handler.settings.digest == plain.handler.settings.digest && a.root == b.root && a.fs == b.fs
}

// isCanonical reports whether s, of an apex and its www, is the one that the front page of the apex
// names as canonical. If that names neither, it is the apex.
func isCanonical(s, o *site) bool {
	apex := s
	www := o
	if len(s.id.host) > len(o.id.host) {
		apex = o
		www = s
	}
	id := apex.id
	id.host = "www." + id.host
	if www.id != id {
		return false
	}
	namesWWW := apex.probed.Load().canonicalHost == id.host
	return namesWWW == (s == www)
}
