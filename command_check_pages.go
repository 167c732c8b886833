package sitemap

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/htmlmeta"
	"github.com/seed3295b519/caddy-sitemap/internal/lint"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/robotstxt"
)

// pageSample draws some of the pages that go by, each as likely as any other: a
// reservoir. Equal documents give an equal sample.
type pageSample struct {
	max   int
	file  string // that is being read
	seen  int
	pages []sampledPage
	lots  *rand.Rand
}

type sampledPage struct {
	loc   string
	from  mention
	order int
}

func newPageSample(size int) *pageSample {
	return &pageSample{max: size, lots: rand.New(rand.NewPCG(1, 2))}
}

func (s *pageSample) add(loc string, line int) {
	s.seen++
	at := len(s.pages)
	if at < s.max {
		s.pages = append(s.pages, sampledPage{})
	} else if at = s.lots.IntN(s.seen); at >= s.max {
		return
	}
	s.pages[at] = sampledPage{loc, mention{s.file, line}, s.seen}
}

// inOrder are the pages drawn, as they went by.
func (s *pageSample) inOrder() []sampledPage {
	slices.SortFunc(s.pages, func(a, b sampledPage) int { return a.order - b.order })
	return s.pages
}

// Bounds on waiting for a server that says that it is too much.
const (
	maxCheckWait    = 30 * time.Second
	checkRest       = 5 * time.Second // where it does not say how long
	maxCheckRetries = 2
)

// checkPace keeps requests for pages apart.
type checkPace struct {
	pause time.Duration
	next  time.Time
	now   func() time.Time
	sleep func(context.Context, time.Duration) error
}

// turn waits until the next page may be asked for; the error is ctx's.
func (p *checkPace) turn(ctx context.Context) error {
	err := p.sleep(ctx, p.next.Sub(p.now()))
	p.next = p.now().Add(p.pause)
	return err
}

// polite asks for a URL, and again where the server wants a moment's rest.
func (k *checking) polite(at string, redirects int) (*webAnswer, error) {
	for tries := 0; ; tries++ {
		a, err := k.web.get(k.ctx, at, redirects)
		if err != nil || !a.isBusy() || tries == maxCheckRetries {
			return a, err
		}
		rest, ok := retryAfterOf(a.Header, k.pace.now())
		if !ok {
			rest = checkRest
		}
		if rest > maxCheckWait {
			return a, nil
		}
		a.close()
		if err := k.pace.sleep(k.ctx, rest); err != nil {
			return nil, err
		}
	}
}

// isBusy reports whether a server wants to be left alone.
func (a *webAnswer) isBusy() bool {
	return a.Status == http.StatusTooManyRequests || a.Status == http.StatusServiceUnavailable
}

// says is the status in words.
func (a *webAnswer) says() string {
	text := fmt.Sprint(a.Status)
	if after := a.Header.Get("Retry-After"); a.isBusy() && after != "" {
		text += " with Retry-After: " + after
	}
	return text
}

// checkOrigin is what is known of a server whose pages are asked for.
type checkOrigin struct {
	ours, theirs robotstxt.Rules // for this command, for Google's crawler
	closed       string          // why it is left alone, "" where it is not
	unasked      int             // pages
}

// checkerToken is what robots.txt may call this command.
const checkerToken = "caddy-sitemap"

// askPages asks for the pages that were drawn.
func (k *checking) askPages() {
	origins := make(map[string]*checkOrigin)
	for _, p := range k.sample.inOrder() {
		u, err := url.Parse(p.loc)
		if err != nil || !isWebURL(p.loc) {
			continue // which is said already
		}
		base := u.Scheme + "://" + strings.ToLower(u.Host)
		o := origins[base]
		if o == nil {
			o = k.origin(base)
			origins[base] = o
		}
		if k.ctx.Err() != nil {
			return
		}
		k.askPage(p, u, base, o)
	}
	for _, base := range slices.Sorted(maps.Keys(origins)) {
		if o := origins[base]; o.unasked > 0 {
			k.add(lint.Finding{Severity: lint.Warning, File: base, Code: "pages-unasked"}, "has %s not asked for: %s", plural(o.unasked, "page"), o.closed)
		}
	}
}

// origin reads the robots.txt of a server.
func (k *checking) origin(base string) *checkOrigin {
	o := new(checkOrigin)
	if err := k.pace.turn(k.ctx); err != nil {
		return o
	}
	a, err := k.polite(base+robotsPath, maxWebRedirects)
	if err != nil {
		o.closed = fmt.Sprintf("its robots.txt cannot be had: %v", err)
		return o
	}
	defer a.close()
	switch {
	case a.Status >= 500 || a.Status == http.StatusTooManyRequests:
		o.closed = "its robots.txt answers " + a.says()
		return o
	case a.Status != http.StatusOK:
		return o
	}
	body, err := io.ReadAll(io.LimitReader(a.Body, robotstxt.MaxBody))
	switch {
	case err != nil:
		o.closed = fmt.Sprintf("its robots.txt cannot be read: %v", err)
	case !robotstxt.IsHTML(a.Header.Get("Content-Type"), body):
		o.ours = robotstxt.ReadRules(body, checkerToken)
		o.theirs = robotstxt.ReadRules(body, crawlerName)
	}
	return o
}

// askPage asks for one page, unless its server is to be left alone.
func (k *checking) askPage(p sampledPage, u *url.URL, base string, o *checkOrigin) {
	path, err := page.Canonical(requestPath(u))
	if err != nil {
		return // which is said already
	}
	about := lint.Finding{File: p.from.file, Line: p.from.line, URL: p.loc}
	if o.closed == "" && !o.theirs.Allows(path) {
		f := about
		f.Severity, f.Code = lint.Warning, "page-disallowed"
		k.add(f, "has a page that robots.txt keeps from %s", crawlerName)
	}
	if o.closed == "" && !o.ours.Allows(path) {
		return
	}
	if o.closed != "" {
		o.unasked++
		return
	}
	if k.pace.turn(k.ctx) != nil {
		return
	}
	k.asked++
	u.Fragment = ""
	a, err := k.polite(u.String(), 0)
	if err != nil {
		about.Code = "page-unreachable"
		k.add(about, "has a page that cannot be had: %v", err)
		return
	}
	defer a.close()
	if a.isBusy() {
		o.closed = fmt.Sprintf("%s answers %s", p.loc, a.says())
	}
	k.judgePage(about, a, base, path)
}

func requestPath(u *url.URL) string {
	p := u.EscapedPath()
	if p == "" {
		p = "/"
	}
	if u.RawQuery != "" {
		p += "?" + u.RawQuery
	}
	return p
}

// judgePage says what keeps a page from being listed.
func (k *checking) judgePage(about lint.Finding, a *webAnswer, base, path string) {
	found := func(severity lint.Severity, code, format string, args ...any) {
		f := about
		f.Severity, f.Code = severity, code
		k.add(f, "has a page that "+format, args...)
	}
	switch to := redirectOf(a, a.URL); {
	case to != "":
		found(lint.Error, "page-redirect", "is redirected (%d) to %s", a.Status, to)
		return
	case a.Status != http.StatusOK:
		found(lint.Error, "page-status", "answers %s", a.says())
		return
	}
	at := htmlmeta.Page{Base: base, Path: path, Header: a.Header, Now: k.pace.now()}
	e := htmlmeta.Header(at)
	if htmlmeta.IsHTML(a.Header.Get("Content-Type")) {
		var body bytes.Buffer
		if _, err := io.Copy(&body, io.LimitReader(a.Body, htmlmeta.MaxBody+1)); err != nil {
			found(lint.Error, "page-unreachable", "cannot be read to its end: %v", err)
			return
		}
		if e = k.parser().Parse(body.Bytes(), at); !e.Document {
			found(lint.Warning, "page-not-html", "is sent as HTML, and is no whole document of it")
		}
	}
	if e.NoIndex {
		found(lint.Error, "page-noindex", "asks not to be indexed")
	}
	if e.Refresh != "" {
		found(lint.Error, "page-refresh", "leads readers on to %s", e.Refresh)
	}
	if e.Canonical != "" {
		if there, here := htmlmeta.PathOn(base, e.Canonical); !here || there != path {
			found(lint.Error, "page-canonical", "names %s as its canonical", e.Canonical)
		}
	}
}

func (k *checking) parser() *htmlmeta.Parser {
	if k.html == nil {
		k.html = htmlmeta.NewParser(htmlmeta.Options{})
	}
	return k.html
}
