package sitemap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/discover"
	"github.com/seed3295b519/caddy-sitemap/internal/files"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// address is where a site is: what its URLs begin with. With a base URL, which
// says it all, it is empty.
type address struct {
	scheme string
	host   string
	port   string // "" where URLs leave it out
	folder string // stripped before the handler, percent-encoded
}

// siteID tells sites apart: those of one handler by their addresses, which may be those
// of another handler's too.
type siteID struct {
	handler *Handler
	address
}

// site is one scheme, host, port and folder that a handler answers for.
type site struct {
	id       siteID
	app      *App
	handler  *Handler
	logger   *zap.Logger
	visitors bool // only visitors named its host

	base      string // scheme, host and port of its URLs
	folder    string // of its documents, in URLs
	at        string // URL folder of the handler's root
	within    string // the sitemap's folder, where that is not all of at
	askBase   string // scheme, host and port under which the server knows it
	askFolder string // what the server strips of the path before the handler

	used  atomic.Int64 // Unix seconds of the last request, if visitors
	busy  atomic.Bool  // being refreshed or looked at
	due   atomic.Int64 // of the next refresh, Unix nanoseconds; 0: not scheduled
	begun atomic.Int64 // the last refresh, Unix seconds; 0: none
	took  atomic.Int64 // it, nanoseconds

	hastened   atomic.Bool // the next refresh is to come before its time
	wanted     wishes      // of those who wait for a refresh
	held       atomic.Pointer[held]
	seen       atomic.Pointer[sight]  // what the last look showed
	lastReport atomic.Pointer[report] // on the last refresh; nil: none was this configuration's
	main       atomic.Pointer[site]   // whose documents stand for this one's, as an apex's for its www.; nil: its own do

	maxAge atomic.Pointer[maxAge]

	readers        *readers // of its shelf: they outlive a reload, and are nobody's who verified them
	shelf          *shelf
	shelfKey       string
	roots          atomic.Pointer[[]files.Options] // of the last refresh
	pace           *pace
	proxied        atomic.Bool // an upstream answers for pages that are no files
	proxiedFiles   atomic.Bool // an upstream answered for a page that is a file
	proxiedFolders sync.Map    // whether it does, by hash of the folder, once one did
	verifiers      [kindsOfAnswerer]verifier
	absences       absences
	catalog        atomic.Pointer[discover.Catalog] // of the shelf's paths, once it is set up
	ctx            context.Context                  // ends with the site
	cancel         context.CancelFunc

	ready     chan struct{} // closed when the first refresh has ended
	readyOnce sync.Once

	// What follows belongs to whoever refreshes or looks.
	key      string
	counted  int64 // bytes of its snapshot among those of visitors' sites
	sight    sight
	looked   bool // since the last refresh
	lookedAt time.Time
	advised  bool
	failure  string            // the last event that a refresh failed; "": none since one did not
	reported string            // the last summary that was logged
	said     map[string]string // the last log line of each kind
}

func newSite(a *App, h *Handler, id siteID, folder string, visitors bool) *site {
	s := &site{
		id: id, app: a, handler: h, visitors: visitors,
		base: origin(id.scheme, id.host, id.port), folder: folder, at: folder,
		// What a proxy in front calls the host, the server may not.
		askBase: origin(id.scheme, h.seats.hostLike(id.host, folder), id.port), askFolder: folder,
		ready: make(chan struct{}),
		said:  make(map[string]string),
	}
	if base := h.settings.base; base != "" {
		s.base = base
		if h.settings.folder != "" {
			s.folder = h.settings.folder
			if folder != "" {
				s.at = h.settings.folder
			}
		}
		s.askBase = askBase(h, folder)
	}
	if strings.HasPrefix(h.settings.path, s.folder+"/") && h.settings.folder != "" {
		s.folder = "" // path has it already
	}
	if scope := s.scope(); len(scope) > len(s.at+"/") {
		s.within = scope
	}
	s.logger = h.logger.With(zap.String("site", s.base+s.at))
	s.used.Store(a.now().Unix())
	s.shelf, s.shelfKey = a.library.shelf(a, s)
	s.readers = &s.shelf.readers
	s.pace = newPace(h.settings.manners)
	s.pace.rests = &s.shelf.rests
	s.ctx, s.cancel = context.WithCancel(a.running)
	return s
}

// askBase is where a site with a base URL is asked: at a host that leads to the
// handler.
func askBase(h *Handler, folder string) string {
	_, host, _ := strings.Cut(h.settings.base, "://")
	host, _ = cleanHost(host)
	return origin(h.listener.scheme, h.seats.hostLike(host, folder), h.listener.port)
}

// docPath is the path of a document in URLs.
func (s *site) docPath(suffix, extension string) string {
	return s.folder + s.handler.settings.stem + suffix + extension
}

// url is the address of the sitemap.
func (s *site) url() string { return s.base + s.docPath("", ".xml") }

// scope is the folder whose pages the sitemap may list.
func (s *site) scope() string {
	scope := page.Folder(s.docPath("", ".xml"))
	if base := s.handler.settings.folder + "/"; len(base) > len(scope) {
		return base
	}
	return scope
}

// count brings what is known of the memory that visitors' sites take up to date.
func (s *site) count() {
	if !s.visitors {
		return
	}
	var bytes int64
	if last := s.held.Load().last(); last != nil {
		bytes = last.bytes
	}
	s.app.visitorBytes.Add(bytes - s.counted)
	s.counted = bytes
}

// current is the snapshot being served, nil: none.
func (s *site) current() *Snapshot {
	held := s.held.Load()
	if held == nil {
		return nil
	}
	return held.snapshot.Load()
}

// snapshot returns what to serve. The very first request of a site waits for its
// first refresh; the error is for Caddy. Nil: the site has no documents.
func (s *site) snapshot(ctx context.Context) (*Snapshot, error) {
	s.touch()
	if snapshot := s.current(); snapshot != nil {
		return snapshot, nil
	}
	timer := time.NewTimer(firstWait)
	defer timer.Stop()
	select {
	case <-s.ready:
		return s.current(), nil
	case <-timer.C:
		return nil, errNotReady
	case <-s.app.running.Done():
		return nil, errNotReady
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

const firstWait = 10 * time.Second

var errNotReady = errors.New("the sitemap is not ready yet")

// touch notes a request, and has a site refreshed that waited for one.
func (s *site) touch() {
	if !s.visitors {
		return
	}
	now := s.app.now()
	s.used.Store(now.Unix())
	if s.busy.Load() {
		return
	}
	if due := s.dueAt(now); !due.IsZero() && !due.After(now) {
		s.app.rouse()
	}
}

// lastUse is when the last request came, Unix seconds. Where that is to come, the
// clock was set back.
func (s *site) lastUse(now time.Time) int64 {
	used := s.used.Load()
	if used <= now.Unix() {
		return used
	}
	s.used.Store(now.Unix())
	return now.Unix()
}

// dueAt is when the next refresh is due; zero: not before someone asks.
func (s *site) dueAt(now time.Time) time.Time {
	due, begun := s.due.Load(), s.begun.Load()
	switch {
	case s.main.Load() != nil, due == 0:
		return time.Time{}
	case begun > now.Unix():
		return now // the clock was set back
	case s.visitors && s.used.Load() < begun:
		return time.Time{}
	}
	return time.Unix(0, due)
}

// isFirst reports whether no refresh of the site has ended yet.
func (s *site) isFirst() bool {
	select {
	case <-s.ready:
		return false
	default:
		return s.current() == nil
	}
}

func (s *site) markReady() { s.readyOnce.Do(func() { close(s.ready) }) }

// drop gives back what the site holds.
func (s *site) drop() {
	s.markReady()
	s.cancel()
	s.app.store.leaveShelf(s.app.generation, s.shelfKey)
	if s.key != "" {
		s.app.store.release(s.app.generation, s.key)
	}
	s.app.visitorBytes.Add(-s.counted)
	s.counted = 0
}

// sight is what a look at the site showed.
type sight struct {
	reached  bool // requests for the sitemap reach the handler
	status   int  // the answer to one where they do not
	shadowed bool // another sitemap handler gets them
	private  int  // 401 or 403, if strangers are refused at the site's front door
	root     string
	fs       string
	hide     []string
	index    []string
	noRoot   string // why there is no root
	unserved bool   // no file server is known that has the root
}

// look asks the site where its pages lie, and whether a stranger may see it.
func (s *site) look(ctx context.Context) error {
	if s.key == "" {
		s.recall(ctx)
	}
	asker := s.app.askers[s.handler.server]
	seen := sight{}
	p := &probe{handler: s.handler, folder: s.askFolder}
	answer, err := asker.ask(ctx, question{method: http.MethodGet, base: s.askBase, path: s.askPath(), limit: askPeekBody, probe: p})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errStuck):
		return fmt.Errorf("asking for %s: %w", s.askPath(), err)
	case p.shadowed:
		seen.shadowed = true
	case p.reached:
		seen.reached = true
	case err != nil:
		return fmt.Errorf("asking for %s: %w", s.askPath(), err)
	default:
		seen.status = answer.Status
		if refuses(answer.Status) {
			seen.private = answer.Status
		}
	}
	front, err := s.ask(ctx, http.MethodHead, s.askFolder+"/", askPeekBody)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil && refuses(front.Status):
		seen.private = front.Status
	}
	seen.locate(p)
	s.sight, s.looked, s.lookedAt = seen, true, s.app.now()
	s.seen.Store(&seen)
	if seen.reached || s.key == "" {
		// What keeps requests away for a while does not say where the pages lie.
		s.adopt()
	}
	return nil
}

// ask asks the site for a path as the server knows it.
func (s *site) ask(ctx context.Context, method, path string, limit int) (*Answer, error) {
	return s.app.askers[s.handler.server].ask(ctx, question{method: method, base: s.askBase, path: path, limit: limit})
}

// askPage asks the site for a path of its URLs, on a runner if there is one.
func (s *site) askPage(ctx context.Context, on *runner, method, path string, limit int, header http.Header) (*Answer, error) {
	if rest, ok := strings.CutPrefix(path, s.at+"/"); ok {
		// What a proxy in front calls the folder, the server may not.
		path = s.askFolder + "/" + rest
	}
	answer, err := s.app.askers[s.handler.server].ask(ctx, question{method: method, base: s.askBase, path: path, limit: limit, header: header, on: on})
	s.app.counts.asked(answer)
	return answer, err
}

// isAsked reports whether a page may be asked for at all.
func (s *site) isAsked(path string) bool { return s.handler.settings.isAsked(path) }

// askPath is the path of the sitemap as the server knows it.
func (s *site) askPath() string { return s.askFolder + s.handler.settings.path }

func refuses(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// locate finds the root: the site's own where its file server uses it, else that of
// the one file server that follows. Never the working directory, which file_server
// falls back to.
func (seen *sight) locate(p *probe) {
	roots := distinct(p.servers, func(f fileServer) string { return f.root })
	if own := distinct(p.servers, func(f fileServer) string { return f.own }); !p.rooted && len(own) > 1 {
		// Which one the sitemap's own path leads to says nothing of the others.
		roots = own
	}
	switch {
	case !p.rooted && len(roots) > 1:
		seen.noRoot = fmt.Sprintf("several file roots (%s): name one with 'files <root>'", strings.Join(roots, ", "))
		return
	case p.root != "" && (len(roots) != 1 || roots[0] == p.root):
		seen.root = p.root
	case len(roots) == 1:
		seen.root = roots[0]
	default:
		seen.noRoot = "no file root: set one with 'root', or name it with 'files <root>'; pages of an application are found by 'links'"
		return
	}
	seen.fs, seen.unserved = p.fs, len(p.servers) == 0
	for _, fsrv := range p.servers {
		if fsrv.root != seen.root {
			continue
		}
		seen.fs = cmp.Or(fsrv.fs, seen.fs)
		seen.hide = append(seen.hide, fsrv.hide...)
		if seen.index == nil {
			seen.index = fsrv.index
		}
	}
	if seen.fs == "" {
		seen.root = absolute(seen.root)
	}
}

// distinct are the roots, each once.
func distinct(servers []fileServer, rootOf func(fileServer) string) []string {
	var roots []string
	for _, server := range servers {
		if root := rootOf(server); root != "" && !slices.Contains(roots, root) {
			roots = append(roots, root)
		}
	}
	return roots
}

// absolute is a path with the working directory before it if it is a relative one;
// a bare name of a hide list stays one.
func absolute(p string) string {
	if abs, err := caddy.FastAbs(p); err == nil && strings.ContainsRune(p, filepath.Separator) {
		return abs
	}
	return p
}

// adopt takes hold of the snapshot that belongs to what was seen, be it one that an
// earlier configuration left.
func (s *site) adopt() {
	set := s.handler.settings
	key := keyOf(set.digest, s.base, s.docPath("", ""), s.at, s.sight.root, s.sight.fs, s.sight.hide, s.sight.index)
	if key == s.key {
		return
	}
	s.hold(key)
	s.app.store.remember(key, note{at: s.id.address, handler: s.handler.identity(), settings: string(set.digest)})
}

// hold takes hold of what is under a key, in the place of what it held before.
func (s *site) hold(key string) {
	store, generation := s.app.store, s.app.generation
	held := store.acquire(generation, key)
	held.inherit(s.held.Load(), settingsOf(key))
	if s.key != "" {
		store.release(generation, s.key)
	}
	s.key = key
	s.held.Store(held)
	s.count()
	if s.current() != nil {
		s.markReady()
	}
}

// defaultFileSystem is Caddy's name for the operating system's own.
const defaultFileSystem = "default"

// siteRoot is the root of a file server that is given none.
const siteRoot = "{http.vars.root}"

// fileServer is what a file server would use for one request.
type fileServer struct {
	root  string
	own   string // root, unless a root directive in its own block sets another one
	fs    string
	hide  []string
	index []string
}

// resolved replaces the file server's placeholders as it does itself.
func (fsrv servedBy) resolved(repl *caddy.Replacer) fileServer {
	d := fileServer{
		root: repl.ReplaceAll(fsrv.Root, ""),
		fs:   repl.ReplaceAll(fsrv.FileSystem, ""),
	}
	if d.own = d.root; fsrv.Root == siteRoot && fsrv.root != "" {
		d.own = repl.ReplaceAll(fsrv.root, "")
	}
	if d.root == "" && d.fs != "" && d.fs != defaultFileSystem {
		d.root = "." // of that file system, not the working directory
	}
	for _, hide := range fsrv.Hide {
		d.hide = append(d.hide, absolute(repl.ReplaceAll(hide, "")))
	}
	for _, name := range fsrv.IndexNames {
		d.index = append(d.index, repl.ReplaceAll(name, ""))
	}
	return d
}
