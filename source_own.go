package sitemap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unsafe"

	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/htmlmeta"
	"github.com/seed3295b519/caddy-sitemap/internal/merge"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/urllist"
)

// ownEvery is how often the sitemaps that an application has itself are read.
const ownEvery = time.Hour

// ownPages are what the application's own sitemaps name, which it does not show any more
// where ours stands in their place.
type ownPages struct {
	pages []page.Page
	at    time.Time
}

// bytes is how much memory they take, about.
func (o *ownPages) bytes() (n int64) {
	if o == nil {
		return 0
	}
	for i := range o.pages {
		n += int64(unsafe.Sizeof(o.pages[i])) + int64(len(o.pages[i].Path))
	}
	return n
}

// ownSitemaps is the input of those pages: of the sitemap behind the handler, at its path,
// and of those that the application's robots.txt names.
func (r *Refresh) ownSitemaps() merge.Input {
	return merge.Input{Name: "own sitemaps", Pages: func(ctx context.Context, yield func(page.Page) error) error {
		s := r.site
		own := s.own.Load()
		var failed error
		if own == nil || r.Now.Sub(own.at) >= ownEvery || r.Now.Before(own.at) {
			var read *ownPages
			if read, failed = r.readOwn(ctx); failed == nil || own == nil {
				own = read
			}
			if failed == nil {
				s.own.Store(own)
			}
		}
		for _, p := range own.pages {
			if err := yield(p); err != nil {
				return err
			}
		}
		return failed
	}}
}

// readOwn reads the application's own sitemaps.
func (r *Refresh) readOwn(ctx context.Context) (*ownPages, error) {
	s := r.site
	own := &ownPages{at: r.Now}
	urls := append([]string{s.sitemapURL()}, r.probed.robots.sitemaps...)
	var failed []error
	from := 0
	for i, url := range urls {
		if i > 0 && url == s.sitemapURL() {
			continue
		}
		before := len(own.pages)
		list, err := r.openDocument(ctx, url)
		if err == nil {
			err = urllist.ReadSitemap(ctx, list, r.BaseURL, r.Now, r.openDocument, func(p page.Page) error {
				own.pages = append(own.pages, p)
				if len(own.pages) > s.handler.settings.maxURLs {
					return errTooManyPages
				}
				return nil
			}, nil)
		}
		if len(own.pages) > before {
			from++
		}
		if err != nil && !errors.Is(err, errNoDocument) && !errors.Is(err, errTooManyPages) {
			failed = append(failed, fmt.Errorf("%s: %w", url, err))
		}
	}
	if len(own.pages) > 0 {
		s.logger.once(zap.InfoLevel, sourceKind+"own", "pages of the application's own sitemaps are merged", zap.Int("pages", len(own.pages)), zap.Int("sitemaps", from))
	}
	return own, errors.Join(failed...)
}

var (
	errNoDocument   = errors.New("there is no such document")
	errTooManyPages = errors.New("too many pages")
)

// openDocument fetches a document that the site itself serves at a URL.
func (r *Refresh) openDocument(ctx context.Context, url string) (io.ReadCloser, error) {
	path, ok := htmlmeta.PathOn(r.BaseURL, url)
	if !ok && strings.HasPrefix(url, "/") {
		path, ok = url, true
	}
	if !ok {
		return nil, errNoDocument // another site's
	}
	res, err := r.fetch(ctx, path, maxListBody)
	switch {
	case err != nil:
		return nil, err
	case res.Status >= 500, res.Status == http.StatusTooManyRequests:
		return nil, fmt.Errorf("status %d", res.Status)
	case res.Status != http.StatusOK, res.unhandled, htmlmeta.IsHTML(res.Header.Get("Content-Type")):
		return nil, errNoDocument
	case res.Truncated:
		return nil, fmt.Errorf("more than %d bytes", maxListBody)
	}
	return io.NopCloser(bytes.NewReader(res.Body)), nil
}
