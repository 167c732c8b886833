package crawl

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"github.com/seed3295b519/caddy-sitemap/internal/htmlmeta"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

const maxMissing = 10_000

// missing remembers what paths that cannot exist return, one beside each page that no source names: one
// with the same text is a soft 404.
type missing struct {
	name   string // that no page has
	mu     sync.Mutex
	byPath map[string]absence
}

// absence is what a path that cannot exist returns.
type absence struct {
	at     int64  // when it was fetched; 0: it is to be
	failed bool   // the fetch came to nothing, which may soon be otherwise
	found  bool   // it returned a document
	text   uint64 // with this text
}

// isFresh reports whether the path need not be fetched again yet.
func (a absence) isFresh(now int64) bool {
	last := int64(day)
	if a.failed {
		last = 10 * minute
	}
	return a.at != 0 && a.at <= now && now-a.at < last
}

func (m *missing) get(path string) (absence, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, ok := m.byPath[path]
	return a, ok
}

func (m *missing) put(path string, a absence) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byPath == nil || len(m.byPath) >= maxMissing {
		m.byPath = make(map[string]absence)
	}
	m.byPath[path] = a
}

// beside is a path like another one that cannot exist: in its folder, or with another value of the last
// query parameter.
func (m *missing) beside(path string) string {
	if strings.Contains(path, "?") {
		return path[:strings.LastIndexByte(path, '=')+1] + m.name
	}
	return page.Folder(path) + m.name
}

// isSoft reports whether a page that returned a document is a soft 404. What a source names is none: the pages
// of an application that runs in the browser may all have the same text. An error says that it could not be
// found out now.
func (w *worker) isSoft(ctx, wait context.Context, rec *store.Record, proxied bool, text uint64) (bool, error) {
	if rec.Flags&(store.Named|store.Seed) != 0 || rec.Path == w.run.p.Front {
		return false, nil
	}
	path := w.run.c.missing.beside(rec.Path)
	if !w.run.p.Allowed(path) || w.run.p.Disallow(path) {
		return false, nil
	}
	a, err := w.absence(ctx, wait, path, proxied)
	if err == nil && a.failed {
		err = errUnknown
	}
	return a.found && a.text == text, err
}

// absence fetches a path that cannot exist, unless that was done before.
func (w *worker) absence(ctx, wait context.Context, path string, proxied bool) (absence, error) {
	m, now := &w.run.c.missing, w.run.c.o.Now().Unix()
	last, _ := m.get(path)
	if last.isFresh(now) {
		return last, nil
	}
	resp, err := w.get(ctx, wait, Request{Path: path, Limit: htmlmeta.MaxBody, Wants: wantsBody}, proxied)
	if isOurs(err) || ctx.Err() != nil {
		m.put(path, absence{}) // so that it comes first the next time
		return absence{}, err
	}
	w.run.mu.Lock()
	w.run.counts.Probed++
	w.run.mu.Unlock()
	a := absence{at: now}
	switch {
	case err != nil || !isAnswer(uint16(resp.Status)) || resp.Status == http.StatusForbidden:
		a.failed = last.at == 0 || !last.failed // what fails each time is not there
	case resp.Status == http.StatusOK:
		meta := w.parse(path, resp)
		a.found, a.text = meta.Document, meta.Text
	}
	m.put(path, a)
	return a, nil
}

// probeFirst fetches what cannot exist beside a page before the page, where there was no time for it the
// last time.
func (w *worker) probeFirst(ctx, wait context.Context, rec *store.Record, proxied bool) error {
	if rec.Flags&store.Named != 0 {
		return nil
	}
	path := w.run.c.missing.beside(rec.Path)
	if a, known := w.run.c.missing.get(path); !known || a.at != 0 {
		return nil
	}
	_, err := w.absence(ctx, wait, path, proxied)
	return err
}
