package crawl

import (
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
	at     int64  // when it was fetched; 0: it is to be, before the page itself
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

func (m *missing) get(path string) (a absence, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, known = m.byPath[path]
	return a, known
}

func (m *missing) put(path string, a absence) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.byPath) >= maxMissing {
		clear(m.byPath)
	}
	m.byPath[path] = a
}

// absentBeside is a path like that of a page which cannot exist: in its folder, or with another value of the
// last query parameter. "": the page is no soft 404 whatever its text, as a source names it. The pages of an
// application that runs in the browser may all have the same.
func (r *Run) absentBeside(rec *store.Record) string {
	if rec.Flags&(store.Named|store.Seed) != 0 || rec.Path == r.p.Front {
		return ""
	}
	path := page.Folder(rec.Path) + r.c.missing.name
	if strings.Contains(rec.Path, "?") {
		path = rec.Path[:strings.LastIndexByte(rec.Path, '=')+1] + r.c.missing.name
	}
	if !r.p.Allowed(path) || r.p.Disallow(path) {
		return ""
	}
	return path
}

// absence fetches a path that cannot exist, unless that was done before; false: there was no time for it.
func (w *worker) absence(path string, proxied bool) (absence, bool) {
	m, now := &w.run.c.missing, w.run.c.now()
	last, _ := m.get(path)
	if last.isFresh(now) {
		return last, true
	}
	resp, ok := w.get(Request{Path: path, Limit: htmlmeta.MaxBody, Wants: wantsBody}, proxied)
	if !ok {
		m.put(path, absence{})
		return absence{}, false
	}
	a := absence{at: now}
	switch {
	case resp == nil || !isAnswer(uint16(resp.Status)) || resp.Status == http.StatusForbidden:
		a.failed = last.at == 0 || !last.failed // what fails each time is not there
	case resp.Status == http.StatusOK:
		meta := w.parse(path, resp)
		a.found, a.text = meta.Document, meta.Text
	}
	m.put(path, a)
	return a, true
}
