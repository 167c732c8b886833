package sitemap

import (
	"bytes"
	"cmp"
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
	"github.com/seed3295b519/caddy-sitemap/internal/htmlmeta"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/urllist"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// Bounds of fetching a list that the site serves.
const (
	maxListBody  = 64 << 20                       // bytes
	listPatience = sourcePatience - 5*time.Second // so that the source has time for its other lists
	listLateFor  = 10 * time.Minute               // for which a list that was too slow has the time of a page
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
	list := "the configuration" // which is read
	count := 0
	var refused []string // the first of them
	reader := &urllist.Reader{
		Base:    r.BaseURL,
		Now:     r.Now,
		Open:    r.openURL,
		Yield:   yield,
		Extract: r.site.handler.settings.extract,
		Refuse: func(line int, text string, err error) {
			count++
			if count <= 10 {
				refused = append(refused, fmt.Sprintf("%s, line %d: %q: %.300v", list, line, text, err))
			}
		},
	}
	lines := strings.NewReader(strings.Join(s.URLs, "\n"))
	failed := []error{reader.Read(ctx, lines)}
	repl := r.replacer()
	for _, name := range s.From {
		var err error
		list, err = repl.ReplaceOrErr(name, true, true)
		if err == nil {
			err = r.readList(ctx, list, reader)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", cmp.Or(list, name), err))
		}
	}
	r.LeaveOut("refused line of a list", count)
	if count > 0 {
		kind := fmt.Sprintf("refused %p", s) // there may be several such sources
		r.Warn(kind, "some lines of a list are not URLs of the site",
			zap.Int("count", count), zap.Strings("first", refused))
	}
	r.warnOfDropped(fmt.Sprintf("dropped %p", s), "a list", reader.Dropped)
	return joinFailures(failed)
}

// joinFailures joins the errors of lists. A source is gone, with its pages, only if all that fails of it is gone.
func joinFailures(failed []error) error {
	err := errors.Join(failed...)
	othersFail := slices.ContainsFunc(failed, func(err error) bool {
		return err != nil && !errors.Is(err, fs.ErrNotExist)
	})
	// The same words, which wrap no [fs.ErrNotExist]: pages of a list that is merely down would be taken for gone.
	if othersFail && errors.Is(err, fs.ErrNotExist) {
		return errors.New(err.Error())
	}
	return err
}

// readList opens and reads a list.
func (r *Refresh) readList(ctx context.Context, name string, reader *urllist.Reader) error {
	opened, err := r.openList(ctx, name)
	if err != nil {
		return err
	}
	defer opened.Close()
	return reader.Read(ctx, opened)
}

// openList opens a list: a file, or what the site serves at a path or URL.
func (r *Refresh) openList(ctx context.Context, name string) (io.ReadCloser, error) {
	if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
		return r.openURL(ctx, name)
	}
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(name, "/") {
		return r.openURL(ctx, r.BaseURL+name)
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

var errNoDocument = errors.New("neither a file nor a document of the site")

// openURL fetches a list or a sitemap that the site itself serves.
func (r *Refresh) openURL(ctx context.Context, url string) (io.ReadCloser, error) {
	path, ok := htmlmeta.PathOn(r.BaseURL, url)
	if !ok {
		return nil, fmt.Errorf("%w, which is %s", errNoDocument, r.BaseURL)
	}
	res, err := r.fetchList(ctx, r.site.internalPath(path))
	switch {
	case err != nil:
		return nil, fmt.Errorf("fetching %s: %w", path, err)
	case !page.IsConclusive(res.Status):
		return nil, fmt.Errorf("fetching %s: status %d", path, res.Status)
	case res.Status == http.StatusNotFound, res.Status == http.StatusGone:
		return nil, fmt.Errorf("%w (status %d): %w", errNoDocument, res.Status, fs.ErrNotExist)
	case res.Status != http.StatusOK, htmlmeta.IsHTML(res.Header.Get("Content-Type")):
		return nil, fmt.Errorf("%w (status %d)", errNoDocument, res.Status)
	case res.Truncated:
		return nil, fmt.Errorf("%s has more than %d bytes", path, maxListBody)
	}
	return io.NopCloser(bytes.NewReader(res.Body)), nil
}

// fetchList fetches a list at an internal path. Pages of the same application wait meanwhile, so one that never responds does not
// have its minute in each refresh.
func (r *Refresh) fetchList(ctx context.Context, path string) (*crawl.Response, error) {
	late := &r.site.state.late
	request := dataRequest(path, maxListBody)
	since, isLate := late.Load(path)
	if !isLate || r.demanded || r.Now.Sub(since.(time.Time)).Abs() >= listLateFor {
		request.Patience = listPatience
	}
	begun := r.site.app.now()
	res, err := r.site.fetcher.get(ctx, request, nil)
	took := r.site.app.now().Sub(begun)
	isStopped := r.site.ctx.Err() != nil
	switch {
	case err == nil:
		late.Delete(path)
	case took > wait.Patience(2*fetchTimeout) && !isStopped:
		late.Store(path, r.Now)
	}
	return res, err
}
