package sitemap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/merge"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

func init() {
	caddy.RegisterModule(SourceFiles{})
	caddy.RegisterModule(SourceURLs{})
	caddy.RegisterModule(SourceLinks{})
	caddy.RegisterModule(SourceAccessLog{})
	caddy.RegisterModule(SourceTraffic{})
}

// Page is a page that a [Source] names, with what the source knows of it. A page with a malformed
// field is left out and counted.
type Page struct {
	// Path is the path of the page with its query, if it has one: percent-encoded as by
	// url.URL.RequestURI, with a leading slash, without scheme and host.
	Path string

	// LastMod is the time at which the content of the page last changed. Midnight UTC is
	// written as a date. The zero value, like a time in the future: unknown.
	LastMod time.Time

	// ChangeFreq is how often the page changes: always, hourly, daily, weekly, monthly, yearly or never. "": unknown.
	ChangeFreq string

	// Priority is the weight of the page within its site, 0.0 to 1.0. Nil: none.
	Priority *float64
}

// Source contributes pages to a site. Sources are guest modules in the namespace http.sitemap.sources. The name of the
// module is an option of the sitemap directive if the module implements [caddyfile.Unmarshaler].
type Source interface {
	// Pages calls yield once for every page that the source knows of, until yield returns an error, which Pages then
	// returns. Every refresh calls it again. The refreshes of a site follow each other; those of several sites run at
	// the same time. Pages returns soon after ctx is canceled.
	//
	// An error other than yield's means that the source could not be read. The pages that
	// it yielded before count, and those that it no longer names stay listed.
	//
	// The pages come in any order, and are held in memory during the refresh.
	Pages(ctx context.Context, r *Refresh, yield func(Page) error) error
}

// input is a source as a refresh reads it: one of this package, or a guest.
type input interface {
	caddy.Module
	pages(ctx context.Context, r *Refresh, yield func(page.Page) error) error

	// sorted reports whether pages come in the order of their paths. Then they are not held in memory.
	sorted() bool
}

// inputOf returns a source as a refresh reads it.
func inputOf(module any) (input, error) {
	switch source := module.(type) {
	case input:
		return source, nil
	case Source:
		return guest{module.(caddy.Module), source}, nil
	}
	return nil, fmt.Errorf("%s does not implement sitemap.Source", caddy.GetModuleID(module))
}

// guest is a source of another module, which is embedded for its name: caddyserver.com, which reads the code, would take
// a method CaddyModule of this type for a module that is not registered, and refuse the package.
type guest struct {
	caddy.Module
	source Source
}

func (guest) sorted() bool { return false }

func (g guest) pages(ctx context.Context, r *Refresh, yield func(page.Page) error) error {
	return g.source.Pages(ctx, r, func(p Page) error {
		candidate, malformed := p.candidate(r.Now.Unix())
		if malformed != "" {
			r.LeaveOut("malformed "+malformed, 1)
			return nil
		}
		return yield(candidate)
	})
}

// candidate converts a page, and names the field that is malformed.
func (p *Page) candidate(now int64) (c page.Page, malformed string) {
	var err error
	c.Path = p.Path
	if !page.IsNormal(p.Path) {
		c.Path, err = page.Normal(p.Path)
	}
	if err != nil {
		return c, "path"
	}
	if p.ChangeFreq != "" {
		c.ChangeFreq, err = page.ParseChangeFreq(p.ChangeFreq)
	}
	if err != nil {
		return c, "changefreq"
	}
	if p.Priority != nil {
		c.Priority, err = page.PriorityOf(*p.Priority)
	}
	if err != nil {
		return c, "priority"
	}
	at := p.LastMod.Unix()
	if 0 < at && at <= now {
		c.LastMod = at
		c.LastModDay = at%86400 == 0 && p.LastMod.Nanosecond() == 0
	}
	return c, ""
}

// Refresh describes the refresh that a source contributes to, and takes what the source reports. The zero
// value drops the reports: it is for tests of sources.
type Refresh struct {
	// BaseURL is the scheme, host and port of the site, such as https://example.com.
	BaseURL string

	// Prefix is the path prefix that the site serves, percent-encoded and without a trailing
	// slash; "" for all paths. Pages outside of it are not listed.
	Prefix string

	// Root is the root of the site's files; "" if it was not found.
	Root string

	// FS is the file system of Root; nil: that of the operating system.
	FS fs.FS

	// Hide and Index are the hidden files and the index names of the site's file_server.
	Hide, Index []string

	// Workers is the number of goroutines that the source may use for computing.
	Workers int

	// Now is the time at which the refresh began.
	Now time.Time

	site     *site
	probed   probeResult
	demanded bool // an operator requested the refresh

	mu       sync.Mutex
	leftOut  map[string]int
	warnings map[string]string // by kind
}

// newRefresh returns the Refresh of a site. Until something is served, it may use all cores, later half of them; sites
// on demand always half, as clients can make up any number. The error is that the file system does not exist.
func newRefresh(s *site, probed probeResult, now time.Time) (r *Refresh, err error) {
	r = &Refresh{
		BaseURL:  s.origin,
		Prefix:   s.prefix,
		Root:     probed.root,
		Hide:     probed.hide,
		Index:    probed.index,
		Workers:  cap(s.app.compute),
		Now:      now,
		site:     s,
		probed:   probed,
		leftOut:  make(map[string]int),
		warnings: make(map[string]string),
	}
	if s.published().snapshot == nil && !s.onDemand {
		r.Workers = runtime.GOMAXPROCS(0)
	}
	if r.Root != "" {
		r.FS, err = fileSystem(s.handler.ctx, probed.fs)
	}
	return r, err
}

// fileSystem returns the file system with a name; nil: the operating system's own.
func fileSystem(ctx caddy.Context, name string) (fs.FS, error) {
	fsys, ok := ctx.FileSystems().Get(name)
	if !ok {
		return nil, fmt.Errorf("there is no file system '%s'", name)
	}
	var none caddy.Context
	if fsys == none.FileSystems().Default() {
		return nil, nil
	}
	return fsys, nil
}

// replacer returns a replacer of global placeholders and those of a request for the site.
func (r *Refresh) replacer() *caddy.Replacer {
	q := request{origin: r.BaseURL, Request: crawl.Request{Path: "/"}}
	visit, _ := q.httpRequest(context.Background(), 0) // of a path that can be parsed
	visit.URL.Path = ""                                // its placeholder has no value
	repl := caddy.NewReplacer()
	caddyhttp.PrepareRequest(visit, repl, nil, r.site.handler.server)
	return repl
}

// LeaveOut counts n pages that the source does not yield for a reason, a few words that the
// log and `caddy sitemap status` group them by, such as "sold out".
func (r *Refresh) LeaveOut(reason string, n int) {
	if r.site == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leftOut[reason] += max(n, 0)
}

// Warn logs a warning about the source. It is shown by `caddy sitemap status`, too. While
// later refreshes warn of the same kind with the same message, it is not logged again.
func (r *Refresh) Warn(kind, message string, fields ...zap.Field) {
	if r.site == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.warnings[sourceKind+kind] = message
	r.site.logger.Once(zapcore.WarnLevel, sourceKind+kind, message, fields...)
}

// sourceKind begins the kinds of sources' log lines.
const sourceKind = "source "

// result returns up to 20 of the warnings, and the candidates that sources have left out so far.
func (r *Refresh) result() (warnings []string, leftOut map[string]int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	warnings = slices.Sorted(maps.Values(r.warnings))
	return warnings[:min(len(warnings), 20)], maps.Clone(r.leftOut)
}

// clearOldWarnings lets warnings be logged again that this refresh did not have, once all sources were read.
func (r *Refresh) clearOldWarnings() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.site.logger.ClearFunc(func(kind string) bool {
		return strings.HasPrefix(kind, sourceKind) && r.warnings[kind] == ""
	})
}

// maxSourceBit is the last bit of [page.Page.Sources].
const maxSourceBit = 15

// inputs returns the site's sources as inputs of the gather stage.
func (r *Refresh) inputs() []merge.Input {
	var inputs []merge.Input
	for i, source := range r.site.sources() {
		inputs = append(inputs, merge.Input{
			Name:   caddy.GetModuleName(source),
			Sorted: source.sorted(),
			Pages: func(ctx context.Context, yield func(page.Page) error) error {
				err := r.read(ctx, source, i, yield)
				return r.readError(i, err)
			},
		})
	}
	if r.site.mergesOwn() {
		inputs = append(inputs, merge.Input{
			Name: ownSitemaps,
			Pages: func(_ context.Context, yield func(page.Page) error) error {
				return r.ownSitemaps(yield)
			},
		})
	}
	return inputs
}

// read yields the pages of a source, the i-th of the site, marked with its bit.
func (r *Refresh) read(ctx context.Context, source input, i int, yield func(page.Page) error) error {
	// A link or a visit names no page: it only shows one.
	bit := uint16(1) << min(i, maxSourceBit)
	if _, discovers := source.(discoverer); discovers {
		bit = 0
	}
	return source.pages(ctx, r, func(p page.Page) error {
		p.Sources = bit
		// In another spelling, a page of a sorted source could get out of order.
		if !source.sorted() {
			p.Path = r.fileSpelling(p.Path)
		}
		return yield(p)
	})
}

// readError returns the error of reading the i-th source. A source that does not exist fails for ten minutes, which a
// deployment may take; then its pages are gone, too.
func (r *Refresh) readError(i int, err error) error {
	missing := &r.site.state.missing
	if err == nil {
		missing.Delete(i)
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		since, _ := missing.LoadOrStore(i, r.Now)
		if r.Now.Sub(since.(time.Time)) >= confirmAfter {
			return nil
		}
		return err
	}
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w%s", err, asUser())
	}
	return err
}

// ownSitemaps is the name of the input that comes after the handler's sources.
const ownSitemaps = "own sitemaps"

// inputNames returns the names of the inputs, in their order; the last one may have no input.
func (s *site) inputNames() (names []string) {
	for _, source := range s.sources() {
		names = append(names, caddy.GetModuleName(source))
	}
	return append(names, ownSitemaps)
}

// namesLists reports whether a source has lists that the operator chose, or a guest's pages: neither files, nor what links
// and visits show, nor the site's own sitemaps.
func namesLists(source input) bool {
	_, isFiles := source.(*SourceFiles)
	_, discovers := source.(discoverer)
	return !isFiles && !discovers
}

// onlyLinks are the sources of the site of an application, where none is written.
var onlyLinks = []input{new(SourceLinks)}

// sources returns the sources of the site: what is written, or else what its probe has shown.
func (s *site) sources() []input {
	if s.isByLinks() {
		return onlyLinks
	}
	probed := cmp.Or(s.probed.Load(), new(probeResult))
	return slices.Concat(s.handler.sources, probed.beside)
}

// discovery returns the settings of the site's sources that discover pages; nil: none does.
func (s *site) discovery() *discovery {
	if s.isByLinks() {
		return s.handler.byLinks
	}
	return s.handler.discovery
}

// isByLinks reports whether no source is written, and the pages of the site are found by links: see probeResult.byLinks.
func (s *site) isByLinks() bool {
	probed := s.probed.Load()
	return probed != nil && probed.byLinks
}

// mergesOwn reports whether the site's own sitemaps are read as lists.
func (s *site) mergesOwn() bool { return s.handler.isDefault || s.discovery() != nil }
