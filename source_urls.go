package sitemap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/urllist"
)

func init() {
	caddy.RegisterModule(SourceURLs{})
}

// maxRefusedLines is how many refused lines of a list are named in the log.
const maxRefusedLines = 10

// maxListBody is the most bytes of a list that the site serves.
const maxListBody = 64 << 20

const refusedLine = "refused line of a list"

// SourceURLs contributes pages from lists: one URL a line, absolute or as a path of the
// site, with optional lastmod=, changefreq= and priority= after it; what follows a # at the
// beginning of a word is a comment. A list may as well be a sitemap or an index of
// sitemaps, plain or gzip, such as a static-site generator writes. Lists are read again at
// each refresh.
type SourceURLs struct {
	// Lines given here. With a base_url, absolute URLs are of its scheme, host
	// and port.
	URLs []string `json:"urls,omitempty"`

	// Where further lines are: files on disk, or paths of the site that are
	// asked for, such as an application's own list. A name that begins with a
	// slash is a file if one of that name exists, else a path of the site; an
	// absolute URL is one of the site.
	From []string `json:"from,omitempty"`

	marks []*caddyfile.Dispenser // where the Caddyfile has URLs
}

// CaddyModule returns the Caddy module information.
func (SourceURLs) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.sitemap.sources.urls",
		New: func() caddy.Module { return new(SourceURLs) },
	}
}

// Provision checks the settings.
func (s *SourceURLs) Provision(caddy.Context) error {
	if len(s.URLs) == 0 && len(s.From) == 0 {
		return errors.New("urls: neither a URL nor a list is given")
	}
	for i, line := range s.URLs {
		if _, err := urllist.ParseLine(line); err != nil {
			return fmt.Errorf("urls: line %d: '%s': %w", i+1, line, err)
		}
	}
	for _, from := range s.From {
		if from == "" {
			return errors.New("urls: a list has an empty name")
		}
	}
	return nil
}

// foreign finds the first line given here that can be none of a site at a base URL;
// "": any site.
func (s *SourceURLs) foreign(base string) (int, error) {
	if base == "" {
		return 0, nil
	}
	for i, text := range s.URLs {
		line, err := urllist.ParseLine(text)
		if err == nil {
			_, err = line.Page(base, time.Time{})
		}
		if err != nil {
			return i, err
		}
	}
	return 0, nil
}

// Pages yields the pages that the lists name.
func (s *SourceURLs) Pages(ctx context.Context, r *Refresh, yield func(Page) error) error {
	inline := strings.NewReader(strings.Join(s.URLs, "\n"))
	if err := s.list(ctx, r, "the configuration", inline, yield); err != nil {
		return err
	}
	var failed []error
	repl := r.replacer()
	for _, from := range s.From {
		from = repl.ReplaceAll(from, "")
		list, err := open(ctx, r, from)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		err = s.list(ctx, r, from, list, yield)
		_ = list.Close()
		if err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}

// list yields the pages of one list, and says which of its lines are none.
func (s *SourceURLs) list(ctx context.Context, r *Refresh, name string, list io.Reader, yield func(Page) error) error {
	var refused []string
	count := 0
	err := urllist.ReadSitemap(ctx, list, r.BaseURL, r.Now, r.openDocument, yield, func(line int, text string, err error) {
		if count++; count <= maxRefusedLines {
			refused = append(refused, fmt.Sprintf("line %d: %q: %v", line, text, err))
		}
	})
	r.LeaveOut(refusedLine, count)
	if count > 0 {
		r.Warn("refused "+name, "lines of a list are no URLs of the site", zap.String("list", name), zap.Int("count", count), zap.Strings("first", refused))
	}
	return err
}

// open opens a file, or fetches a list from the site.
func open(ctx context.Context, r *Refresh, from string) (io.ReadCloser, error) {
	if path, ok := strings.CutPrefix(from, r.BaseURL+"/"); ok {
		return fetchList(ctx, r, "/"+path)
	}
	if u, err := url.Parse(from); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		return nil, fmt.Errorf("the list %s is not on %s", from, r.BaseURL)
	}
	info, err := os.Stat(from)
	switch {
	case err == nil && !info.Mode().IsRegular():
		// A pipe would keep the refresh waiting.
		return nil, fmt.Errorf("the list %s is not a regular file", from)
	case err == nil:
		return os.Open(from)
	case strings.HasPrefix(from, "/") && errors.Is(err, os.ErrNotExist):
		return fetchList(ctx, r, from)
	}
	return nil, fmt.Errorf("opening a list: %w", err)
}

// fetchList fetches a list from the site.
func fetchList(ctx context.Context, r *Refresh, path string) (io.ReadCloser, error) {
	res, err := r.fetch(ctx, path, maxListBody)
	switch {
	case err != nil:
		return nil, fmt.Errorf("fetching the list %s: %w", path, err)
	case res.Status != http.StatusOK, res.unhandled:
		return nil, fmt.Errorf("fetching the list %s: there is no such file, and the site answered with status %d", path, res.Status)
	case res.Truncated:
		return nil, fmt.Errorf("the list %s has more than %d bytes", path, maxListBody)
	}
	return io.NopCloser(bytes.NewReader(res.Body)), nil
}

// Interface guards
var (
	_ caddy.Provisioner = (*SourceURLs)(nil)
	_ Source            = (*SourceURLs)(nil)
)
