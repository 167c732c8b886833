package sitemap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/record"
	"github.com/seed3295b519/caddy-sitemap/internal/terminal"
)

const (
	fetchAll     = "all"  // the value of the parameter fetch for all pages
	maxRefetched = 10_000 // pages of a site that are named at a time
)

// refetch says which pages of a site an operator wants fetched again. It never changes. It stays until a crawl has begun
// with it, whatever becomes of refreshes and configurations before: from then on the records say which pages are due.
type refetch struct {
	all   bool
	paths []string // sorted; of too many, some
}

// and returns what is wanted by either of two refetches; one may be nil.
func (w refetch) and(before *refetch) *refetch {
	if before == nil {
		before = new(refetch)
	}
	paths := slices.Concat(w.paths, before.paths)
	paths = paths[:min(len(paths), maxRefetched)]
	slices.Sort(paths)
	return &refetch{all: w.all || before.all, paths: slices.Compact(paths)}
}

// has reports whether a page is wanted. w may be nil.
func (w *refetch) has(path string) bool {
	if w == nil {
		return false
	}
	_, isNamed := slices.BinarySearch(w.paths, path)
	return w.all || isNamed
}

// addRefetch adds to what is wanted.
func (st *siteState) addRefetch(w refetch) {
	for {
		before := st.refetch.Load()
		if st.refetch.CompareAndSwap(before, w.and(before)) {
			return
		}
	}
}

// beginRefetch notes that the crawl of a refresh has begun with a refetch, if that is so. What was wanted since then stays.
func (s *site) beginRefetch(r *refreshing) {
	if r.refetch != nil && r.crawling != nil && r.crawled.Gathered {
		s.state.refetch.CompareAndSwap(r.refetch, nil)
	}
}

// refetchesOf are the refetches that values of the parameter fetch stand for: all pages of sites, or URLs, which must be of
// these sites.
func (a *App) refetchesOf(ctx context.Context, values []string, of []*site) (map[*site]refetch, error) {
	refetches := make(map[*site]refetch)
	if slices.Contains(values, fetchAll) {
		if len(values) > 1 {
			return nil, badFetch(http.StatusBadRequest, fetchAll, errors.New("it names all pages: use no other value with it"))
		}
		for _, s := range of {
			s = cmp.Or(s.main.Load(), s)
			if !s.handler.settings.crawl.Off {
				refetches[s] = refetch{all: true}
			}
		}
		if len(refetches) == 0 {
			return nil, badFetch(http.StatusBadRequest, fetchAll, errCrawlOff)
		}
		return refetches, nil
	}
	if len(values) > maxRefetched {
		err := fmt.Errorf("more than %d URLs: use fetch=all", maxRefetched)
		return nil, badFetch(http.StatusBadRequest, values[maxRefetched], err)
	}
	for _, value := range values {
		s, path, err := a.covering(value)
		if err == nil {
			err = s.mayFetch(path, of)
		}
		if refused, ok := errors.AsType[caddy.APIError](err); ok {
			return nil, badFetch(refused.HTTPStatus, value, refused.Err)
		}
		if err != nil {
			return nil, badFetch(http.StatusBadRequest, value, err)
		}
		w := refetches[s]
		w.paths = append(w.paths, s.knownForm(ctx, path))
		refetches[s] = w
	}
	return refetches, nil
}

var errCrawlOff = errors.New("crawl is off, so no page is fetched")

// badFetch is the error of a value of the parameter fetch.
func badFetch(status int, value string, err error) error {
	return caddy.APIError{HTTPStatus: status, Err: fmt.Errorf("fetch=%s: %w", terminal.Clip(value), err)}
}

// mayFetch returns why a page cannot be wanted of these sites.
func (s *site) mayFetch(path string, of []*site) error {
	isMeant := slices.ContainsFunc(of, func(o *site) bool { return cmp.Or(o.main.Load(), o) == s })
	switch {
	case !strings.HasPrefix(path, s.scope):
		return s.app.noSite()
	case !isMeant:
		return fmt.Errorf("it is a page of %s", s.url())
	case s.handler.settings.crawl.Off:
		return errCrawlOff
	}
	return nil
}

// knownForm returns the form of a path of which there is a record; else the path as it is.
func (s *site) knownForm(ctx context.Context, path string) string {
	for form := path; ; {
		if s.recordOf(ctx, form) != nil {
			return form
		}
		next := s.listedForm(form)
		if next == form {
			return path
		}
		form = next
	}
}

// recordOf returns the record of a page; nil: there is none, or it cannot be read now.
func (s *site) recordOf(ctx context.Context, path string) *record.Record {
	var rec *record.Record
	_ = s.readPublished(func(served *publication) (err error) {
		if served.generation != nil {
			rec, err = served.generation.Find(ctx, path)
		}
		return err
	})
	return rec
}

// readPublished calls read with what is published. Where its records are deleted meanwhile, another publication has come:
// then it is called again with that, three times in all.
func (s *site) readPublished(read func(served *publication) error) (err error) {
	for range 3 {
		err = read(s.published())
		if !errors.Is(err, record.ErrSuperseded) {
			break
		}
	}
	return err
}

// pagesDue counts the known pages that are due now, and those that an operator wants before a crawl has begun with them. Those
// that were never fetched are counted as pending.
func (s *site) pagesDue(ctx context.Context) *int {
	due := 0
	g := s.published().generation
	if g == nil {
		return &due
	}
	wanted := s.state.refetch.Load()
	now := s.app.now().Unix()
	for rec, err := range g.Records(ctx) {
		if err != nil {
			break
		}
		isDue := rec.Due <= now || wanted.has(rec.Path)
		if isDue && isFetchedAgain(rec) {
			due++
		}
	}
	return &due
}
