package sitemap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/urllist"
)

// Bounds of fetching a list that the site serves.
const (
	maxListBody  = 64 << 20                       // bytes
	listPatience = sourcePatience - 5*time.Second // so that the source has time for its other lists
)

// SourceURLs contributes the pages of lists. A list has one URL a line, absolute or as a path of the
// site, optionally followed by `lastmod=2026-11-20`, `changefreq=weekly` or `priority=0.8`; a `#`
// at the beginning of a word starts a comment. It may also be a sitemap or an index of sitemaps, plain
// or gzip, such as a static-site generator writes. Lists are read again at each refresh.
//
//	sitemap {
//		urls /etc/caddy/more.txt /api/pages.txt {
//			/pricing priority=0.8
//		}
//	}
//
// In JSON:
//
//	{"handler": "sitemap", "sources": [
//		{"source": "urls", "urls": ["/pricing priority=0.8"], "from": ["/etc/caddy/more.txt", "/api/pages.txt"]}
//	]}
type SourceURLs struct {
	// The lines of a list. With a `base_url`, absolute URLs have its scheme, host and port. Default: none.
	URLs []string `json:"urls,omitempty"`

	// The names of lists: files on disk, or paths or URLs of the site itself. A name that begins with a slash is a file
	// if one of that name exists, else a path of the site, which is requested. Global placeholders are replaced, and
	// those of the site's host; one without a value is an error of the refresh. Default: none.
	From []string `json:"from,omitempty"`
}

// CaddyModule returns the Caddy module information.
func (SourceURLs) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.sitemap.sources.urls", New: func() caddy.Module { return new(SourceURLs) }}
}

// check refuses settings that cannot be meant, such as lines that can be none of the site at a base URL; "": any site.
func (s *SourceURLs) check(base string) error {
	if len(s.URLs) == 0 && len(s.From) == 0 {
		return errors.New("urls: name a list or at least one URL")
	}
	if slices.Contains(s.From, "") {
		return errors.New("urls: a list has an empty name")
	}
	for i, line := range s.URLs {
		if _, err := urllist.ParseLine(line, base); err != nil {
			return fmt.Errorf("urls: line %d: '%s': %w", i+1, line, err)
		}
	}
	return nil
}

func (*SourceURLs) sorted() bool { return false }

// pages yields the pages that the lists name.
func (s *SourceURLs) pages(ctx context.Context, r *Refresh, yield func(page.Page) error) error {
	l := r.newLists(yield)
	l.Name = "the configuration"
	lines := strings.NewReader(strings.Join(s.URLs, "\n"))
	failed := l.Read(ctx, lines)
	var missing error
	repl := r.replacer()
	for _, name := range s.From {
		name, err := repl.ReplaceOrErr(name, true, true)
		if err == nil {
			err = l.readNamed(ctx, name)
		}
		if errors.Is(err, fs.ErrNotExist) {
			missing = errors.Join(missing, err)
			continue
		}
		failed = errors.Join(failed, err)
	}
	r.warnOfUnused(fmt.Sprintf("lists %p", s), "a list", &l.Unused) // there may be several such sources
	// The source is gone, with its pages, only if all that fails of it is gone.
	switch {
	case missing == nil:
		return failed
	case failed == nil:
		return missing
	}
	return errors.Join(failed, errors.New(missing.Error()))
}

// refusedLines ends the warning of lines that are refused.
const refusedLines = " are not URLs of the site: correct them, or set 'base_url' if the site has another one"

// warnOfUnused warns of what lists of a name have that is not listed.
func (r *Refresh) warnOfUnused(kind, name string, u *urllist.Unused) {
	r.LeaveOut("refused line of a list", u.Refused)
	if u.Refused > 0 {
		r.Warn("refused "+kind, "some lines of "+name+refusedLines,
			zap.Int("count", u.Refused), zap.Strings("first", u.First))
	}
	if u.Dropped > 0 {
		r.Warn("dropped "+kind, name+" has versions in other languages, images or videos that are not kept: "+
			"to list them, set 'extensions alternates images videos', and remove 'crawl off' if it is there",
			zap.Int("entries", u.Dropped))
	}
}

// lists are lists and sitemaps that are read in a refresh: those that an operator has chosen, or the site's own.
type lists struct {
	*Refresh
	urllist.Reader
	opened map[string]bool // documents of the site, by path
	isMade bool            // one of them was made
	root   string          // URL of the document that was last opened by its name
	built  time.Time       // when a build of ours has written the document that is read; zero: none has
}

// newLists returns lists of which nothing is read yet.
func (r *Refresh) newLists(yield func(page.Page) error) *lists {
	l := &lists{Refresh: r, opened: make(map[string]bool)}
	l.Reader = urllist.Reader{
		Base:    r.BaseURL,
		Now:     r.Now,
		Extract: r.site.handler.settings.extract,
		Open:    l.open,
		Yield:   yield,
	}
	return l
}

// readNamed reads a list: a file, or what the site serves at a path or URL.
func (l *lists) readNamed(ctx context.Context, name string) error {
	l.Name = name
	opened, err := l.openNamed(ctx, name)
	if err == nil {
		l.root = l.Name
		err = l.Read(ctx, opened)
		_ = opened.Close()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// openNamed opens a list by its name.
func (l *lists) openNamed(ctx context.Context, name string) (io.ReadCloser, error) {
	// The site's own are URLs that its robots.txt may have: no files are read for it.
	if l.IsGuess || strings.Contains(name, "://") {
		return l.open(ctx, name)
	}
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(name, "/") {
		return l.open(ctx, l.BaseURL+name)
	}
	if errors.Is(err, fs.ErrNotExist) && !filepath.IsAbs(name) {
		folder, _ := os.Getwd()
		return nil, fmt.Errorf("no such file in the working directory, %s; for what the site serves, write /%s: %w", folder, name, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	// A pipe would keep the refresh waiting.
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	return os.Open(name)
}

var (
	errNoDocument = errors.New("neither a file nor a document of the site")
	errRedirects  = fmt.Errorf("it redirects more than %d times", maxRedirects)
)

// open opens a document of the site, wherever redirects on the site lead to it. One that was opened before is empty.
func (l *lists) open(ctx context.Context, url string) (io.ReadCloser, error) {
	for range 1 + maxRedirects {
		path, isHere := html.PathOn(l.BaseURL, url)
		if l.opened[path] || !isHere && l.IsGuess {
			return http.NoBody, nil
		}
		if !isHere {
			return nil, fmt.Errorf("%w, which is %s", errNoDocument, l.BaseURL)
		}
		res, err := l.fetch(ctx, path)
		if err == nil && res.Status/100 == 3 && res.Header.Get("Location") != "" {
			url = resolveLocation(url, res.Header.Get("Location"))
			continue
		}
		l.opened[path] = true
		err = listError(path, res, err)
		// A generator may have written it compressed alone.
		if errors.Is(err, fs.ErrNotExist) && !res.Made && url == l.site.sitemap {
			url += ".gz"
			continue
		}
		isOfBuild := err == nil && l.IsGuess && !res.Proxied && document.IsOwn(res.Body)
		isNone := errors.Is(err, errNoDocument) || isOfBuild && l.site.app.building == nil
		if l.IsGuess && isNone {
			return http.NoBody, nil
		}
		if err != nil {
			return nil, err
		}
		l.Name = url
		l.built = time.Time{}
		if isOfBuild {
			l.built, _ = http.ParseTime(res.Header.Get("Last-Modified"))
		}
		return io.NopCloser(bytes.NewReader(res.Body)), nil
	}
	return nil, errRedirects
}

// fetch requests a list or a sitemap. Those of an application itself keep to the pace of the crawl: where one is made, more
// will be.
func (l *lists) fetch(ctx context.Context, path string) (*crawl.Response, error) {
	request := dataRequest(l.site.internalPath(path), maxListBody)
	if l.IsGuess {
		request.Waits = l.isMade
	} else {
		request.Patience = listPatience
	}
	res, err := l.site.fetcher.get(ctx, request, nil)
	l.isMade = l.isMade || err == nil && res.Made
	return res, err
}

// listError returns why the response to a request for a path is no list or sitemap; nil: it may be one.
func listError(path string, res *crawl.Response, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("fetching %s: %w", path, err)
	case !page.IsConclusive(res.Status), res.Status == http.StatusNotModified:
		return fmt.Errorf("fetching %s: status %d", path, res.Status)
	case res.Status == http.StatusNotFound, res.Status == http.StatusGone:
		return fmt.Errorf("%w (status %d): %w", errNoDocument, res.Status, fs.ErrNotExist)
	case res.Status != http.StatusOK, html.IsHTML(res.Header.Get("Content-Type")):
		return fmt.Errorf("%w (status %d)", errNoDocument, res.Status)
	case res.Truncated:
		return fmt.Errorf("%s has more than %d bytes", path, maxListBody)
	}
	return nil
}
