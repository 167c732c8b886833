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
	list := "the configuration" // which is read
	var unused unused
	reader := &urllist.Reader{
		Base:    r.BaseURL,
		Now:     r.Now,
		Open:    r.openURL,
		Yield:   yield,
		Extract: r.site.handler.settings.extract,
		Refuse:  func(line int, text string, err error) { unused.refuse(list, line, text, err) },
	}
	lines := strings.NewReader(strings.Join(s.URLs, "\n"))
	failed := []error{reader.Read(ctx, lines)}
	repl := r.replacer()
	for _, name := range s.From {
		var err error
		list, err = repl.ReplaceOrErr(name, true, true)
		var opened io.ReadCloser
		if err == nil {
			opened, err = r.openList(ctx, list)
		}
		if err == nil {
			err = reader.Read(ctx, opened)
			_ = opened.Close()
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", cmp.Or(list, name), err))
		}
	}
	unused.dropped = reader.Dropped
	r.warnOfUnused(fmt.Sprintf("lists %p", s), "a list", &unused) // there may be several such sources
	return joinFailures(failed)
}

// refusedLines ends the warning of lines that are refused.
const refusedLines = " are not URLs of the site: correct them, or set 'base_url' if the site has another one"

// unused is what lists have that is not listed.
type unused struct {
	refused int      // lines and entries that name no page of the site
	first   []string // the first ten of them
	dropped int      // entries with alternates, images or videos that are not kept
}

// refuse counts a line of a list, and why it is refused.
func (u *unused) refuse(list string, line int, text string, err error) {
	u.refused++
	if u.refused <= 10 {
		u.first = append(u.first, fmt.Sprintf("%s, line %d: %q: %.300v", list, line, text, err))
	}
}

// warnOfUnused warns of what lists of a name have that is not listed.
func (r *Refresh) warnOfUnused(kind, name string, u *unused) {
	r.LeaveOut("refused line of a list", u.refused)
	if u.refused > 0 {
		r.Warn("refused "+kind, "some lines of "+name+refusedLines,
			zap.Int("count", u.refused), zap.Strings("first", u.first))
	}
	if u.dropped > 0 {
		r.Warn("dropped "+kind, name+" has versions in other languages, images or videos that are not kept: "+
			"to list them, set 'extensions alternates images videos', and remove 'crawl off' if it is there",
			zap.Int("entries", u.dropped))
	}
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

// openList opens a list: a file, or what the site serves at a path or URL.
func (r *Refresh) openList(ctx context.Context, name string) (io.ReadCloser, error) {
	if strings.Contains(name, "://") {
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
	path, ok := html.PathOn(r.BaseURL, url)
	if !ok {
		return nil, fmt.Errorf("%w, which is %s", errNoDocument, r.BaseURL)
	}
	request := dataRequest(r.site.internalPath(path), maxListBody)
	request.Patience = listPatience
	res, err := r.site.fetcher.get(ctx, request, nil)
	if err := listError(path, res, err); err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(res.Body)), nil
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
