package sitemap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/files"
	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
	"github.com/seed3295b519/caddy-sitemap/internal/terminal"
)

// probeResult is the result of a probe. It never changes.
type probeResult struct {
	blocked       string // why the site lists nothing; "": it lists its pages
	status        int    // of the response that decides so
	remedy        string // what to do about a site that lists nothing
	movedTo       string // origin to which all requests are redirected, whose pages the site's are; "": none
	canonicalHost string // of the front page's canonical; "": none
	made          bool   // no file explains the front page: an upstream or another handler makes it
	byLinks       bool   // no source is written, and its pages are found by links: see byLinks

	robots robotsRules
	siteFiles

	entrance entrance

	// rootAsked is when who makes pages was asked for the sitemap, as a handler on the way there might set the site's root; zero: no
	// file was made.
	rootAsked time.Time
}

// siteFiles says where a site's files are.
type siteFiles struct {
	root     string   // "": not known
	noRoot   string   // why the root is not known
	fs       string   // name of the file system; "" and "default": the operating system's
	hide     []string // of the file server
	index    []string // of the file server; nil: its default
	unserved bool     // no file server of the site is known

	front    string   // of the file that routes show as the front page, below the root; "": they show the index
	aside    bool     // no file server serves the front page, as far as the routes tell
	beside   []input  // of the roots that serve folders of the site
	standIns []string // paths of files that are served in place of others
}

// Why a site lists nothing.
const (
	reasonRefused   = "the site refuses anonymous visitors, so nothing is listed"
	reasonAbsent    = "the front page of this host, which only visitors named, returns an error, so nothing is listed"
	reasonShadowed  = "another sitemap handler before this one has the same path, so nothing is listed here"
	reasonMoved     = "all requests of this host are redirected to another one, of which it is an alias"
	reasonUnreached = "requests for the sitemap do not reach its handler: another one returns status %d"
)

// reasonRemedies are what to do about a site that lists nothing, by the reason.
var reasonRemedies = map[string]string{
	reasonRefused: "None if the site is private; otherwise let the address 192.0.2.1, or the User-Agent 'caddy-sitemap', " +
		"pass the rule that refuses it or aborts the connection, as rules against bots do, or remove the login.",
	reasonAbsent:   "Name the host in the configuration if its pages should be listed.",
	reasonShadowed: "Write the options of both into one block, or give one of the two another 'path'.",
	reasonUnreached: "Usual causes: a matcher on the directive, a handler before it (respond, redir, try_files with =404), " +
		"or a handle block without it.",
}

// probe is carried by a request of the module's own, and filled in by the handler that it reaches.
type probe struct {
	handler *Handler // that is meant
	prefix  string   // of the site

	seen   *Handler // that a request for the sitemap has reached first; nil: none
	to     string   // URL to which one that has reached none is redirected; "": none
	robots bool     // a request for robots.txt has reached a handler that names its sitemap
	files  siteFiles

	skipsFiles bool // the site's files are known, and are not asked for
	passes     bool // the handler has passed the request on
	made       bool // the response was made
}

// isOurs reports whether the handler itself has responded to the request of a probe, which may be nil.
func (p *probe) isOurs() bool { return p != nil && p.seen != nil && !p.passes }

type probeCtxKey struct{}

// probeOf reports whether a request is one of the module's own, and returns its probe, if it carries one.
func probeOf(r *http.Request) (p *probe, own bool) {
	if r.RemoteAddr == anonymousAddr {
		p, own = r.Context().Value(probeCtxKey{}).(*probe)
	}
	return p, own
}

// blockage is why a site lists nothing; the zero value: it lists its pages. See probeResult.
type blockage struct {
	reason string
	status int
	remedy string
}

// result returns what a probe has found that has looked no further than the front page; nil: there was no response.
func (b blockage) result(front *crawl.Response) probeResult {
	return probeResult{
		blocked: b.reason,
		status:  b.status,
		remedy:  b.remedy,
		made:    isMade(front),
	}
}

// isMade reports whether a front page is made, and by no file; nil: there was no response. That there is none may be said by
// the file server.
func isMade(front *crawl.Response) bool {
	if front == nil {
		return false
	}
	return front.Proxied || front.Made && front.Status < http.StatusBadRequest
}

// blockedFor returns a blockage with the usual remedy of its reason.
func blockedFor(reason string, status int) blockage {
	return blockage{reason, status, reasonRemedies[reason]}
}

// probeMode is how a site is probed.
type probeMode struct {
	isFresh bool // an operator wants to know what upstreams respond now, whatever the probe before has found
	atFront bool // the host may be made up: nothing else is requested unless it has a front page
}

// probe finds out where the site's files are and whether an anonymous visitor gets in. It returns the response for the
// front page, too, or for the page to which that redirects, so that the crawl need not request it again. An error means that
// there was no response for the sitemap.
//
// before is the result of the probe before, as far as it is known.
func (f *siteFetcher) probe(ctx context.Context, before probeResult, mode probeMode) (probeResult, frontPage, error) {
	now := f.handler.app.now()
	mayRely := func(at time.Time) bool { return !mode.isFresh && isRecent(at, now, f.handler.settings.interval) }

	var front *crawl.Response
	var status int
	if mode.atFront {
		front, status = f.fetchFront(ctx)
		if absent := f.blockedAtFront(status, blockage{}); absent.reason != "" {
			return absent.result(front), frontPage{}, ctx.Err()
		}
	}

	known := askedFiles{before.siteFiles, before.rootAsked}
	p, files, blocked, err := f.findFiles(ctx, known, mayRely(known.asked) || f.isPaused(), now)
	if err != nil {
		return probeResult{}, frontPage{}, err
	}

	if !mode.atFront {
		front, status = f.fetchFront(ctx)
	}
	if f.isPaused() {
		return probeResult{}, frontPage{path: f.scope, response: front}, errPaused
	}
	blocked = f.blockedAtFront(status, blocked)
	robots := before.robots
	if !robots.isReliable(mayRely) {
		robots = f.fetchRobots(ctx)
	}
	entrance, given := f.fetchEntrance(ctx, front, before.entrance, &robots)
	byLinks := f.byLinks(ctx, front, &files.siteFiles, before.byLinks)

	other := p.to
	if robots.foreign {
		other = cmp.Or(other, robots.from)
	}
	movedTo, isLogin := f.elsewhere(ctx, front, other)
	switch {
	case isLogin:
		blocked = blockedFor(reasonRefused, status)
	case movedTo != "":
		blocked = blockedFor(reasonMoved, status)
	}
	// file_server returns 403 for what it may not read.
	isRefused := blocked.reason == reasonRefused || p.seen == nil
	if isRefused && status == http.StatusForbidden {
		blocked = f.lookIntoRefusal(ctx, &files.siteFiles, blocked)
	}
	return probeResult{
		blocked:       blocked.reason,
		status:        blocked.status,
		remedy:        blocked.remedy,
		movedTo:       movedTo,
		canonicalHost: f.canonicalHost(front),
		made:          isMade(front),
		byLinks:       byLinks,
		robots:        robots,
		siteFiles:     files.siteFiles,
		entrance:      entrance,
		rootAsked:     files.asked,
	}, given, ctx.Err()
}

// upstreamInterval is how long what an upstream has told a probe is relied on at most. For robots.txt, RFC 9309,
// section 2.4, allows a day.
const upstreamInterval = 10 * time.Minute

// isRecent reports whether an upstream need not be asked again, by probes at an interval: every tenth does. What is asked
// of files is asked by each, which costs no request.
func isRecent(at, now time.Time, interval time.Duration) bool {
	return !at.IsZero() && now.Sub(at).Abs() < min(10*interval, upstreamInterval)
}

// askedFiles are a site's files, and when an upstream was asked for them.
type askedFiles struct {
	siteFiles
	asked time.Time // zero: no upstream responded
}

// findFiles is findHandler, and returns what is known of the site's files then: what was known before, if they are skipped.
func (f *siteFetcher) findFiles(ctx context.Context, before askedFiles, skipsFiles bool, now time.Time) (*probe, askedFiles, blockage, error) {
	p, blocked, err := f.findHandler(ctx, skipsFiles)
	if err != nil {
		return nil, before, blocked, err
	}
	found := askedFiles{siteFiles: p.files}
	if skipsFiles {
		found = before
	}
	if p.made {
		found.asked = now
	}
	return p, found, blocked, nil
}

// findHandler requests the sitemap. It returns what the handler that the request reached has filled in, and what is
// wrong if that is another one, or none.
//
// skipsFiles says that the site's files are known, and are not asked for. Where they are, the handler may pass the request on to the application,
// as a handler on the way might set the root: asked by each probe, that would be 60 requests an hour.
func (f *siteFetcher) findHandler(ctx context.Context, skipsFiles bool) (*probe, blockage, error) {
	sitemap := f.internalDocPath(".xml")
	p := &probe{handler: f.handler, prefix: f.id.prefix, skipsFiles: skipsFiles}
	get := f.get
	if skipsFiles {
		get = f.fetch // the handler responds itself, which costs nothing
	}
	res, err := get(ctx, crawl.Request{Path: sitemap, Header: http.Header{"Accept": {acceptAny}}, Limit: peekBody}, p)
	// A handler may still write to the probe, so that nothing of it may be read.
	if errors.Is(err, errAbandoned) {
		return nil, blockage{}, fmt.Errorf("fetching %s: %w", sitemap, err)
	}
	if p.seen == f.handler {
		p.made = err == nil && res.Made
		return p, blockage{}, nil
	}
	if p.seen != nil {
		return p, blockedFor(reasonShadowed, 0), nil
	}
	if err != nil {
		return nil, blockage{}, fmt.Errorf("fetching %s: %w", sitemap, err)
	}
	// A single 502 or 429, as of an authentication service that restarts, says nothing of where the routes lead. What is
	// published stays then: a blocked site would list nothing for an interval.
	if !page.IsConclusive(res.Status) {
		return nil, blockage{}, fmt.Errorf("fetching %s: status %d", sitemap, res.Status)
	}
	p.to, _ = f.redirect(f.sitemap, res)
	if refuses(res.Status) {
		return p, blockedFor(reasonRefused, res.Status), nil
	}
	blocked := blockedFor(reasonUnreached, res.Status)
	blocked.reason = fmt.Sprintf(reasonUnreached, res.Status)
	if behind := f.handler.mounts.behind(f.id.prefix); behind != "" {
		blocked.remedy = fmt.Sprintf("'%s' stands before it, and responds to all requests: move 'sitemap' in front of that.", behind)
	}
	return p, blocked, nil
}

// elsewhere returns the origin of the host to which all pages are moved, by where the front page and another path are redirected;
// "": they are not, as far as is known. isLogin: both lead to one place, which is a login. other may be "".
func (f *siteFetcher) elsewhere(ctx context.Context, front *crawl.Response, other string) (to string, isLogin bool) {
	if front == nil || front.Status/100 != 3 {
		return "", false
	}
	target, own := f.redirect(f.origin+f.scope, front)
	home, err := origin.ParseURL(target)
	if err != nil {
		return "", false
	}
	// The sitemap and robots.txt may be left out of what Caddy redirects. An upstream is not asked for this with each probe.
	if own == "" && other == "" && !front.Made {
		other = f.redirectOfAnyPage(ctx)
	}
	second, err := origin.ParseURL(other)
	if err != nil || home.Origin() != second.Origin() {
		return "", false
	}
	// A login is told where to return to, and is not for ever.
	isPermanent := front.Status == http.StatusMovedPermanently || front.Status == http.StatusPermanentRedirect
	if own == "" && (isPermanent || strings.HasSuffix(home.Path, "/")) {
		return home.Origin(), false
	}
	place, _, _ := strings.Cut(home.Path, "?")
	otherPlace, _, _ := strings.Cut(second.Path, "?")
	return "", place == otherPlace
}

// redirectOfAnyPage returns the URL to which a page as any other is redirected, which need not exist; "": it is not.
func (f *siteFetcher) redirectOfAnyPage(ctx context.Context) string {
	path := f.id.prefix + "/" + anyPage
	res, err := f.get(ctx, crawl.Request{Path: path, Limit: peekBody}, nil)
	if err != nil {
		return ""
	}
	to, _ := f.redirect(f.internalOrigin+path, res)
	return to
}

// blockedAtFront returns why the site lists nothing, once the status of its front page is known.
func (f *siteFetcher) blockedAtFront(status int, before blockage) blockage {
	if refuses(status) {
		return blockedFor(reasonRefused, status)
	}
	// Anybody can make up a host, which then must not be crawled.
	isError := status >= http.StatusBadRequest
	mayBeMadeUp := f.onDemand && !f.handler.settings.crawl.Off
	if before.reason == "" && isError && mayBeMadeUp {
		return blockedFor(reasonAbsent, status)
	}
	return before
}

// lookIntoRefusal finds out whether the front page is refused because Caddy's user may not read the root.
func (f *siteFetcher) lookIntoRefusal(ctx context.Context, at *siteFiles, blocked blockage) blockage {
	if unreadable := f.unreadable(ctx, at); unreadable != "" {
		blocked.reason = unreadable
		blocked.remedy = remedyUnreadable
	}
	return blocked
}

// canonicalHost returns the host of the front page's canonical; "": it has none, or canonicals do not count.
func (f *siteFetcher) canonicalHost(front *crawl.Response) string {
	if f.handler.settings.ignoreCanonicals || front == nil || front.Status != http.StatusOK {
		return ""
	}
	if !html.IsHTML(front.Header.Get("Content-Type")) {
		return ""
	}
	at := html.Page{Base: f.origin, Path: f.prefix + "/", Header: front.Header}
	meta := html.Parse(front.Body, at)
	u, _ := origin.ParseURL(meta.Canonical)
	return u.Host
}

// byLinks decides whether the pages of a site for which no source is written are found by links: its front page is made, as
// HTML or as a redirect, and no file explains it. Any other response that is made, such as an error, decides
// nothing, so that the site stays what it was while an application is restarted. front is nil if there was no response.
func (f *siteFetcher) byLinks(ctx context.Context, front *crawl.Response, at *siteFiles, before bool) bool {
	if f.handler.byLinks == nil {
		return false
	}
	if front == nil || front.Status >= http.StatusBadRequest {
		return before
	}
	if !front.Made {
		return false
	}
	isRedirect := front.Status/100 == 3
	if !isRedirect && !html.IsHTML(front.Header.Get("Content-Type")) {
		return before
	}
	// What asks an upstream whether a visitor is admitted, as forward_auth does, looks like one that responds.
	return !f.isFrontFile(ctx, front, at)
}

// isFrontFile reports whether the front page's response is that of a file. A file that an application does not show may
// have been left in its root.
func (f *siteFetcher) isFrontFile(ctx context.Context, front *crawl.Response, at *siteFiles) bool {
	fsys, err := fileSystem(f.handler.ctx, at.fs)
	if err != nil || at.root == "" || at.unserved {
		return false
	}
	// What asks whether a visitor is admitted may redirect to a login.
	mayBeLogin := front.Status/100 == 3 && !at.aside
	folder := files.Options{FS: fsys, Root: at.root, Index: at.index, Front: at.front}
	var found atomic.Bool
	f.onDisk(ctx, func() {
		isShown := files.Shows(folder, "/", front.Body, front.Truncated)
		// Templates fill in the index file.
		index := files.Options{FS: fsys, Root: at.root, Index: at.index}
		isTemplate := !front.Proxied && front.Status/100 != 3 && files.TimeOf(index, "/") != 0
		found.Store(isShown || isTemplate || mayBeLogin && files.TimeOf(folder, "/") != 0)
	})
	return found.Load()
}

const remedyUnreadable = "Let the user that runs Caddy read it, and enter each folder above it."

// unreadable says that Caddy's user may not read the root; "": it may, or it is not known.
func (f *siteFetcher) unreadable(ctx context.Context, at *siteFiles) string {
	fsys, err := fileSystem(f.handler.ctx, at.fs)
	if err != nil || at.root == "" {
		return ""
	}
	root := at.root
	of := fmt.Sprintf(" of file system '%s'", at.fs)
	// nil is that of the operating system, which is opened at the root itself.
	if fsys == nil {
		fsys = os.DirFS(at.root)
		root = "."
		of = ""
	}
	var refused error
	ended := f.onDisk(ctx, func() {
		file, err := fsys.Open(root)
		if err != nil {
			refused = err
			return
		}
		_ = file.Close()
	})
	// What has not ended may still write to refused.
	if !ended || !errors.Is(refused, fs.ErrPermission) {
		return ""
	}
	return fmt.Sprintf("cannot read %s%s: permission denied%s", at.root, of, asUser())
}

// onDisk runs a function that reads from a disk, which may hang; false: it has not ended.
func (f *siteFetcher) onDisk(ctx context.Context, read func()) bool {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	return f.server.workers.OrLeave(ctx, fetchGrace, &f.handler.abandoned, func() {
		defer func() { _ = recover() }() // of a file system of another module
		read()
	})
}

// asUser names the user that runs Caddy, for errors of permission; "" on Windows.
func asUser() string {
	if uid := os.Getuid(); uid >= 0 {
		return fmt.Sprintf(" (caddy runs as uid %d)", uid)
	}
	return ""
}

func refuses(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// absolute returns an absolute path, also for one relative to the working directory. A bare
// name, as hide lists have them, stays one.
func absolute(p string) string {
	if abs, err := caddy.FastAbs(p); err == nil && strings.ContainsRune(p, filepath.Separator) {
		return abs
	}
	return p
}

const (
	defaultFileSystem = "default"          // Caddy's name for the operating system's own
	siteRoot          = "{http.vars.root}" // the default of a file server
)

// serveProbe fills in a probe. The module's other requests, and those for robots.txt, get the response
// of the next handler: that of the site without this one.
func (h *Handler) serveProbe(p *probe, w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, wanted wanted) error {
	if p == nil {
		return next.ServeHTTP(w, r)
	}
	if wanted.robots {
		// The handler of a host names the sitemaps of its folders, too: see site.inFolders.
		isInFolder := p.prefix != "" && p.handler.settings.base == h.settings.base
		p.robots = p.robots || p.handler == h || isInFolder
		return next.ServeHTTP(w, r)
	}
	// Looking for the root, the one that is meant passes the request on, perhaps to another one.
	p.seen = cmp.Or(p.seen, h)
	if p.handler != h {
		return nil
	}
	rooted := rootVar(r) != ""
	// What follows may panic, as abort does.
	defer func() { p.files = h.locate(r, p.prefix, rooted) }()
	if !rooted && h.wantsRoot && !p.skipsFiles {
		p.passes = true
		// A root inside of handle { } is set by a later handler.
		return next.ServeHTTP(w, r)
	}
	return nil
}

// anyPage is the name of a page as any other, at the top of a site.
const anyPage = "page.html"

// locate finds the site's files: in the root of the file server that serves a page as any other, or the front page. Where
// none does, in the root of the request if a file server uses it, else in that of the only file server in the prefix; never
// in the working directory. rooted: the root was set before this handler, for all requests.
func (h *Handler) locate(r *http.Request, prefix string, rooted bool) (at siteFiles) {
	top := page.Unescape(prefix) + "/"
	front, folders, hasFront := h.reach(r, top)
	main, _, hasMain := h.reach(r, top+anyPage)
	if !hasMain {
		main = front
		hasMain = hasFront
	}
	folders = slices.DeleteFunc(folders, func(folder string) bool { return !strings.HasPrefix(folder, prefix+"/") })
	at.aside = front.root != main.root
	if at.aside {
		folders = append(folders, prefix) // the front page has a root of its own
	} else {
		at.front = strings.TrimPrefix(front.path, "/")
	}
	at.root = main.root
	// A rewrite may put a folder before all paths: rewrite * /site{uri}.
	if at.front != "" && main.path == front.path+anyPage {
		at.root = path.Join(filepath.ToSlash(at.root), at.front)
		at.front = ""
	}
	servers := []fileServer{main}
	if !hasMain || main.at.prefix != prefix {
		served := h.mounts.served(r, prefix, replacerOf(r))
		at.aside = true
		at.unserved = len(served) == 0
		delete(served, "")
		at.root, at.noRoot = rootOf(served, rootVar(r), rooted)
		servers = served[at.root]
	}
	if at.root != "" {
		at.read(r, servers)
	}
	for _, m := range h.mounts.in(prefix) {
		at.standIns = append(at.standIns, m.standIns...)
	}
	// It is a page all the same.
	at.standIns = slices.DeleteFunc(at.standIns, func(path string) bool { return path == "/"+at.front })
	slices.Sort(folders)
	read := at.root
	if !hasMain {
		read = "" // its pages are not at the top, but may be in a folder
	}
	at.beside = h.sourcesBeside(r, slices.Compact(folders), read)
	return at
}

// read adds what file servers of the root say of it.
func (at *siteFiles) read(r *http.Request, servers []fileServer) {
	repl := replacerOf(r)
	at.fs, _ = caddyhttp.GetVar(r.Context(), "fs").(string)
	for _, server := range servers {
		at.fs = cmp.Or(server.fs, at.fs)
		for _, hide := range server.Hide {
			at.hide = append(at.hide, absolute(repl.ReplaceAll(hide, "")))
		}
		for _, name := range server.IndexNames {
			at.index = append(at.index, repl.ReplaceAll(name, ""))
		}
	}
	if at.fs == "" {
		at.root = absolute(at.root)
	}
}

// sourcesBeside returns sources of the folders of the site that are served from other roots than the one that is read: they are
// read as the configured source of files is. There are none if the operator has named roots.
func (h *Handler) sourcesBeside(r *http.Request, folders []string, root string) (beside []input) {
	own := h.rootSource()
	if own == nil {
		return nil
	}
	for _, folder := range folders {
		f, _, isServed := h.reach(r, page.Unescape(folder)+"/")
		rest, isBelow := f.at.strip(page.Unescape(folder) + "/")
		if !isServed || !isBelow {
			continue
		}
		at := siteFiles{root: f.root}
		at.read(r, []fileServer{f})
		s := *own
		other, _, _ := h.reach(r, page.Unescape(folder)+"/"+anyPage)
		if other.path == f.path+anyPage {
			rest = f.path // all paths may be rewritten
		} else {
			s.front = strings.TrimPrefix(f.path, rest)
		}
		if own.Index == nil {
			s.Index = (&files.Options{Index: at.index}).IndexNames()
		}
		s.Root = path.Join(filepath.ToSlash(at.root), rest)
		s.At = folder
		s.at = folder
		s.FileSystem = cmp.Or(at.fs, defaultFileSystem)
		s.Hide = slices.Concat(own.Hide, at.hide)
		if at.root != root && h.isFolder(&s) {
			beside = append(beside, &s)
		}
	}
	return beside
}

// rootSource returns the source of the site's root; nil: there is none, or the operator has named the roots.
func (h *Handler) rootSource() (own *SourceFiles) {
	for _, source := range h.sources {
		s, isFiles := source.(*SourceFiles)
		if isFiles && s.Root+s.At != "" {
			return nil
		}
		if isFiles {
			own = s
		}
	}
	return own
}

// isFolder reports whether the folder of a source exists.
func (h *Handler) isFolder(s *SourceFiles) bool {
	fsys, err := fileSystem(h.ctx, s.FileSystem)
	return err == nil && files.IsFolder(files.Options{FS: fsys, Root: s.Root})
}

// served returns the file servers in a prefix that serve the host of a request, by their roots, which may be "".
func (s mounts) served(r *http.Request, prefix string, repl *caddy.Replacer) map[string][]fileServer {
	host, _ := origin.CleanHost(r.Host)
	byRoot := make(map[string][]fileServer)
	for _, m := range s.in(prefix) {
		for _, server := range m.servers {
			if !origin.Overlap(server.at.hosts, []string{host}) {
				continue
			}
			server.replace(repl)
			byRoot[server.root] = append(byRoot[server.root], server)
		}
	}
	return byRoot
}

// replace replaces the placeholders of a file server's root and file system.
func (f *fileServer) replace(repl *caddy.Replacer) {
	f.root = repl.ReplaceAll(f.root, "")
	f.fs = repl.ReplaceAll(f.FileSystem, "")
	// Of another file system, no root is all of it; of the operating system's, it is the working directory.
	if f.root == "" && f.fs != "" && f.fs != defaultFileSystem {
		f.root = "."
	}
}

// rootOf returns the root of a site, or why it has none: see locate. own is that of the request.
func rootOf(served map[string][]fileServer, own string, rooted bool) (root, noRoot string) {
	const none = "no file root: set one with 'root', or name it with 'files <root>'; " +
		"pages of an application are found by 'links'"
	root = own
	roots := slices.Sorted(maps.Keys(served))
	isOwn := rooted && (len(roots) == 0 || served[own] != nil)
	// Of several roots, the one for the sitemap's path may not be that of the pages.
	if !isOwn && len(roots) > 1 {
		return "", fmt.Sprintf("several file roots (%s): name one with 'files <root>'", strings.Join(roots, ", "))
	}
	if !isOwn && len(roots) == 1 {
		root = roots[0]
	}
	if root == "" {
		return "", none
	}
	return root, ""
}

func rootVar(r *http.Request) string {
	root, _ := caddyhttp.GetVar(r.Context(), "root").(string)
	return root
}

// checkSetup warns once if requests for robots.txt do not reach the handler, or URLs seem to have the wrong scheme.
func (s *site) checkSetup() {
	probed := s.probed.Load()
	if probed == nil || probed.blocked != "" || s.main.Load() != nil {
		return
	}
	s.checkRobots(&probed.robots)
	isPlain := s.id.scheme == "http" && s.handler.settings.base == ""
	if isPlain && origin.IsPublic(s.origin) && !trustsProxies(s.handler.server) {
		s.logger.Once(zap.WarnLevel, "http", "the sitemap of a public host lists http URLs: "+
			"if a proxy in front terminates TLS, set 'base_url' or 'trusted_proxies'")
	}
}

// logProbed logs what is wrong with the site as a whole.
func (s *site) logProbed(r *report.Refresh, last *report.Report) {
	probed := cmp.Or(s.probed.Load(), new(probeResult))
	isOpen := probed.blocked == ""
	if isOpen {
		s.logRobots(&probed.robots, s.handler.settings.crawl.Off)
	}
	s.logger.OnceIf(probed.byLinks && isOpen, zap.InfoLevel, "by links",
		"no source is written, and no file is the front page: "+
			"pages are found as by 'links'; write 'files' to list files instead")
	s.logEmpty(r, last, probed)
}

// logRobots logs what keeps the rules of robots.txt from being known.
func (s *site) logRobots(robots *robotsRules, crawlOff bool) {
	closed := "cannot fetch robots.txt, so no page is fetched: let it return 200 or 404"
	if robots.status == 0 {
		closed = "cannot fetch robots.txt, so no page is fetched: it does not respond; look at its upstream or disk"
	}
	s.logger.OnceIf(robots.closed && !crawlOff, zap.WarnLevel, "robots", closed,
		zap.String("sitemap", s.sitemap), zap.Int("status", robots.status))
	s.logger.OnceIf(robots.foreign && !crawlOff, zap.WarnLevel, "foreign robots",
		"robots.txt redirects to another host, where its rules cannot be read, so all is allowed: serve it here",
		zap.String("to", terminal.Clip(robots.from)))
}

// logEmpty logs that the site has no sitemap, and why.
func (s *site) logEmpty(r *report.Refresh, last *report.Report, probed *probeResult) {
	reason, common := r.CommonReason()
	// Pages are yet to be fetched.
	isEarly := last.Reason == "" && last.Pending > 0
	isWarned := slices.ContainsFunc(r.Warnings, func(warning string) bool { return !strings.HasSuffix(warning, refusedLines) })
	// The failure of a source, or its warning, says it already.
	isLogged := last.Reason == "" && reason == "" && (isWarned || len(r.Merged.Failed) > 0)
	// A login and an alias are most often intended, and visitors can make up any number of hosts.
	level := zap.WarnLevel
	if slices.Contains([]string{reasonRefused, reasonAbsent, reasonMoved}, probed.blocked) {
		level = zap.InfoLevel
	}
	message := cmp.Or(last.Reason, "no page to list, so there is no sitemap")
	path := s.internalDocPath(".xml")
	fields := append(last.Fields(), zap.String("root", probed.root), zap.String("path", path))
	if probed.blocked != "" {
		fields = append(fields, zap.Int("status", probed.status), zap.String("remedy", probed.remedy))
	}
	if probed.movedTo != "" {
		fields = append(fields, zap.String("to", probed.movedTo))
	}
	fields = append(fields, common[:min(len(common), 2)]...) // the others are there
	s.logger.OnceIf(last.Result == outcome.Empty && !isEarly && !isLogged, level, "empty", message, fields...)
}
