package crawl

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

var seeds = flag.Uint("seeds", 4, "random sites of the model test")

// isLong asks for as many random sites, and as long a time, as find what is rare.
var isLong = os.Getenv("SITEMAP_LONG") != ""

func TestMain(m *testing.M) {
	// The store sets up its compression at first use, which must not be in a bubble.
	st := record.New(record.NewMemory(), "")
	w := st.Last().Writer()
	w.Put("", []record.Record{{Path: "/"}}, nil, nil)
	gen, _ := w.Generation()
	if _, err := gen.Load(context.Background(), 0); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

const base = "https://example.com"

// sitePage is a page of a site as its author knows it.
type sitePage struct {
	status    int
	kind      string // Content-Type; "": HTML
	text      string
	links     []string
	canonical string
	target    string // of a redirect
	version   uint32 // of the file; 0: an application makes it
}

// site is a site that changes and fails, and the Fetcher of it.
type site struct {
	t      *testing.T
	mu     sync.Mutex
	random *rand.Rand
	pages  map[string]*sitePage
	listed map[string]int64 // by a list, with modification time
	faulty bool
	rate   time.Duration

	last    time.Time // when the next request to an upstream may begin
	named   map[string]bool
	fetched map[string]int
	early   map[string]int // by folder, since the Crawler is new
}

const files, workers = "/app/file/", 2

func (s *site) body(p *sitePage) []byte {
	var b strings.Builder
	b.WriteString("<!DOCTYPE html><html><head>")
	if p.canonical != "" {
		fmt.Fprintf(&b, `<link rel="canonical" href="%s">`, p.canonical)
	}
	fmt.Fprintf(&b, "</head><body><p>%s</p><nav>", p.text)
	for _, link := range p.links {
		fmt.Fprintf(&b, `<a href="%s">a link</a>`, link)
	}
	return []byte(b.String())
}

func (s *site) Fetch(ctx context.Context, r Request) (*Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetched[r.Path]++
	made := !strings.HasPrefix(r.Path, files)
	if now := time.Now(); made && s.last.After(now) {
		folder := page.Folder(r.Path)
		if s.early[folder]++; s.early[folder] > 2*workers { // the first may be taken for the site's own
			s.t.Errorf("%s: fetched %s too early", r.Path, s.last.Sub(now))
		}
	} else if made {
		s.last = now.Add(s.rate)
	}
	if strings.Contains(r.Path, "/logout") && !s.named[r.Path] || strings.Contains(r.Path, "/blocked") {
		s.t.Errorf("%s was fetched", r.Path)
	}
	s.mu.Unlock()
	time.Sleep([]time.Duration{0, time.Millisecond, 200 * time.Millisecond}[rand.IntN(3)])
	s.mu.Lock()
	if s.faulty && s.random.IntN(4) == 0 {
		if s.random.IntN(2) == 0 {
			return nil, errors.New("timed out")
		}
		return &Response{Status: 500, Header: http.Header{}, Made: made}, nil
	}
	p := s.pages[r.Path]
	resp := &Response{Status: 404, Header: http.Header{"Content-Type": {"text/html"}}, Made: made}
	if p == nil {
		if s.isSoft(r.Path) {
			resp.Status, resp.Body = 200, s.body(&sitePage{text: "not here"})
		}
		return resp, nil
	}
	resp.Status, resp.Body = p.status, s.body(p)
	switch {
	case p.target != "":
		resp.Header.Set("Location", p.target)
	case p.kind != "":
		resp.Header.Set("Content-Type", p.kind)
	case p.status == 200:
		etag := fmt.Sprintf(`"%x"`, resp.Body)
		if resp.Header.Set("Etag", etag[:min(len(etag), 100)]+fmt.Sprint(len(etag))); r.Header.Get("If-None-Match") == resp.Header.Get("Etag") {
			resp.Status = 304
		}
	}
	return resp, nil
}

// change makes a page, or another one of it.
func (s *site) change(path string) {
	p := &sitePage{status: 200, text: fmt.Sprint("text ", s.random.IntN(1000))}
	if old := s.pages[path]; old != nil {
		p.version = old.version
	}
	if strings.HasPrefix(path, files) {
		p.version++
	}
	for range s.random.IntN(4) {
		p.links = append(p.links, s.path())
	}
	switch s.random.IntN(12) {
	case 0:
		p.status, p.target = 301, s.path()
	case 1:
		p.canonical = s.path()
	case 2:
		p.kind = "application/json"
	case 3:
		p.status = []int{403, 404, 410}[s.random.IntN(3)]
	case 4:
		if strings.HasPrefix(path, "/app/soft/") {
			p.text = "not here"
		}
	}
	s.pages[path] = p
}

func (s *site) path() string {
	folder := []string{files, files, "/app/", "/app/", "/app/soft/"}[s.random.IntN(5)]
	name := []string{"p%d", "p%d", "p%d", "logout/%d", "blocked%d", "x%d.pdf", "p%d?session=1"}[s.random.IntN(7)]
	return folder + fmt.Sprintf(name, s.random.IntN(12))
}

// candidates are what sources name now, and what visitors have had.
func (s *site) candidates() *list {
	l := new(list)
	for path, p := range s.pages {
		if p.version != 0 && p.status != 404 {
			l.pages = append(l.pages, page.Page{Path: path, Version: p.version, LastMod: int64(p.version)})
		}
	}
	for path, modified := range s.listed {
		if s.pages[path] == nil || s.pages[path].version == 0 {
			l.pages = append(l.pages, page.Page{Path: path, LastMod: modified})
		}
	}
	slices.SortFunc(l.pages, page.Compare)
	for _, p := range l.pages {
		s.named[p.Path] = true // from now on: an interrupted crawl may not see that it is not any more
	}
	return l
}

// list is a list of candidates, the first of which are slow.
type list struct {
	pages  []page.Page
	failed bool
	slow   int
}

func (l *list) Next(ctx context.Context) (page.Page, bool, error) {
	if l.slow--; l.slow >= 0 {
		<-ctx.Done()
	}
	if err := ctx.Err(); err != nil {
		return page.Page{}, false, err
	}
	if len(l.pages) == 0 {
		return page.Page{}, false, nil
	}
	p := l.pages[0]
	l.pages = l.pages[1:]
	return p, true, nil
}

func (l *list) Complete() bool { return !l.failed }

// policy is the one of the model.
func policy() Policy {
	contains := func(word string) func(string) bool {
		return func(path string) bool { return strings.Contains(path, word) }
	}
	blocked := contains("/blocked")
	return Policy{
		Base: base, Scope: "/app/", Links: true, Discover: true, Depth: 20, Expire: 30 * 24 * time.Hour,
		Filter: func(*page.Page) string { return "" }, Disallow: contains("/logout"),
		Counts: func(rec *record.Record) bool {
			return rec.Path == "/app/" || rec.Flags&(record.Named|record.Seed) != 0 || time.Since(time.Unix(rec.Linked, 0)) < 30*24*time.Hour
		},
		Allowed: func(path string) bool { return !blocked(path) },
	}
}

// truth is what the records are to be: the depth of each page that is named or linked to.
func (s *site) truth(p Policy) map[string]int {
	depths := make(map[string]int)
	var todo []string
	reach := func(path string, depth int) {
		if old, known := depths[path]; !known || depth < old {
			depths[path] = depth
			todo = append(todo, path)
		}
	}
	link := func(path string, depth int) {
		path, _, _ = strings.Cut(path, "?")
		reach(path, depth)
	}
	named := make(map[string]bool)
	for _, c := range s.candidates().pages {
		named[c.Path] = true
		reach(c.Path, 0)
	}
	for reach(p.Scope, 0); len(todo) > 0; todo = todo[1:] {
		path := todo[0]
		sp := s.pages[path]
		if sp == nil || !named[path] && p.Disallow(path) || !p.Allowed(path) || sp.kind != "" || !named[path] && s.isSoft(path) {
			continue
		}
		depth := depths[path] + 1
		switch {
		case sp.target != "" && path == p.Scope:
			link(sp.target, 0)
		case sp.target != "":
			link(sp.target, depth)
		case sp.status == 200:
			for _, to := range sp.links {
				if to != path {
					link(to, depth)
				}
			}
			if sp.canonical != "" && sp.canonical != path {
				reach(sp.canonical, depth) // as it is written
			}
		}
	}
	return depths
}

func (s *site) isSoft(path string) bool {
	if strings.Contains(path, "?") {
		return false // only canonicals have one here
	}
	p := s.pages[path]
	return strings.HasPrefix(path, "/app/soft/") && !strings.Contains(path, "logout") && (p == nil || p.status == 200 && p.kind == "" && p.text == "not here")
}

// crawlOnce crawls with times that end anywhere, and commits now and then.
func (s *site) crawlOnce(c *Crawler, st *record.Store, gen *record.Generation, interrupt bool) *record.Generation {
	cands := s.candidates()
	if interrupt {
		cands.slow = s.random.IntN(3)
		cands.failed = s.random.IntN(5) == 0
	}
	run := c.Start(cands, policy())
	for range 2000 {
		limit := time.Minute
		if interrupt {
			limit = time.Duration(s.random.IntN(3000)) * time.Millisecond
		}
		begun := time.Now()
		result, err := run.Update(s.t.Context(), gen, TimeLimit{Until: begun.Add(limit)})
		if err != nil {
			s.t.Fatal(err)
		}
		if over := time.Since(begun) - limit; over > 300*time.Millisecond {
			s.t.Errorf("Update returned %s late", over)
		}
		gen = result.Generation
		if interrupt && s.random.IntN(3) == 0 {
			if err := st.Commit(s.t.Context(), gen); err != nil {
				s.t.Fatal(err)
			}
		}
		if result.Done || interrupt && s.random.IntN(6) == 0 {
			return gen
		}
		time.Sleep(time.Until(time.Unix(result.Next, 0)))
	}
	s.t.Fatal("the crawl does not end")
	return nil
}

// TestModel crawls random sites that change and fail, with interruptions and restarts, and
// compares what is known in the end with the truth.
func TestModel(t *testing.T) {
	switch {
	case testing.Short():
		*seeds = min(*seeds, 2)
	case isLong:
		*seeds = max(*seeds, 12)
	}
	for seed := range uint64(*seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testModel(t, seed) })
		})
	}
}

func testModel(t *testing.T, seed uint64) {
	s := &site{
		t: t, random: rand.New(rand.NewPCG(seed, 0)), pages: make(map[string]*sitePage), listed: make(map[string]int64),
		fetched: make(map[string]int), named: make(map[string]bool), rate: 50 * time.Millisecond,
	}
	for range 40 {
		s.change(s.path())
	}
	s.change("/app/")
	s.pages["/app/"].status, s.pages["/app/"].target = 200, ""
	storage := record.NewMemory()
	limiter := NewLimiter(20, 2)
	open := func() (*Crawler, *record.Store, *record.Generation) {
		st := record.New(storage, "")
		if err := st.Open(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		s.early = make(map[string]int)
		return New(Options{Fetcher: s, Limiter: limiter, Workers: workers}), st, st.Last()
	}
	c, st, gen := open()
	for range 25 {
		for range s.random.IntN(5) {
			s.change(s.path())
		}
		if path := s.path(); s.random.IntN(4) == 0 {
			delete(s.pages, path)
		} else if s.random.IntN(4) == 0 && !strings.Contains(path, "?") {
			s.listed[path] = s.random.Int64N(3)
		} else {
			delete(s.listed, path)
		}
		s.faulty = s.random.IntN(3) == 0
		gen = s.crawlOnce(c, st, gen, true)
		if s.random.IntN(4) == 0 {
			c, st, gen = open()
		}
		time.Sleep(time.Duration(s.random.IntN(100)) * time.Hour)
	}
	s.faulty = false
	for range 100 {
		gen = s.crawlOnce(c, st, gen, false)
		time.Sleep(24 * time.Hour)
	}
	gen = s.crawlOnce(c, st, gen, false)
	s.compare(gen)
	time.Sleep(time.Second)
	gen = s.crawlOnce(c, st, gen, false) // the pages that have found new ones are told
	s.fetched = make(map[string]int)
	if next := s.crawlOnce(c, st, gen, false); len(s.fetched) > 0 || !slices.Equal(next.Chunks(), gen.Chunks()) {
		t.Errorf("nothing was due, but %v were fetched, %+v became %+v", s.fetched, gen.Chunks(), next.Chunks())
	}
}

// compare compares records with the truth.
func (s *site) compare(gen *record.Generation) {
	p := policy()
	truth := s.truth(p)
	named := make(map[string]bool)
	for _, c := range s.candidates().pages {
		named[c.Path] = true
	}
	for rec, err := range gen.Records(s.t.Context()) {
		if err != nil {
			s.t.Fatal(err)
		}
		depth, known := truth[rec.Path]
		delete(truth, rec.Path)
		keep := p.Expire + 20*24*time.Hour
		if rec.Status == 200 && rec.Flags&record.HTML == 0 {
			keep += 90 * day * time.Second // it is dropped once it was fetched again
		}
		if !known && time.Since(time.Unix(rec.Linked, 0)) < keep {
			depth = 255 // unreachable pages keep each other alive for a while
		} else if !known {
			s.t.Errorf("%s is known", rec.Path)
		}
		page := s.pages[rec.Path]
		if page == nil {
			page = &sitePage{status: 404}
			if s.isSoft(rec.Path) {
				page = &sitePage{status: 200, text: "not here"}
			}
		}
		want := record.Record{Status: uint16(page.status), Target: page.target}
		is := func(flag record.Flags) bool { return rec.Flags&flag != 0 }
		isDoc := page.status == 200 && page.kind == ""
		if isDoc {
			meta := html.Parse(s.body(page), html.Page{Base: base, Path: rec.Path})
			want.Text = meta.Text
			want.Canonical = onSite(base, rec.Path, meta.Canonical)
		}
		if want.Target == rec.Path {
			want.Target = ""
		}
		if !p.Allowed(rec.Path) || !named[rec.Path] && p.Disallow(rec.Path) {
			if want = (record.Record{}); rec.Fetched != 0 && !named[rec.Path] && p.Disallow(rec.Path) {
				continue // a list named it before
			}
		}
		if isDoc && want.Status != 0 && (!is(record.Document) || is(record.SoftNotFound) != (!named[rec.Path] && s.isSoft(rec.Path))) ||
			want.Status != 0 && is(record.HTML) != isDoc || is(record.Named) != named[rec.Path] || int(rec.Depth) > depth ||
			want.Status != rec.Status || want.Target != rec.Target || want.Canonical != rec.Canonical ||
			isDoc && want.Text != rec.Text && want.Status != 0 || rec.Failing != 0 || rec.Absent != 0 {
			s.t.Errorf("%s: got %+v, want %+v at depth %d, reachable: %t", rec.Path, *rec, want, depth, known)
		}
	}
	for path := range truth {
		s.t.Errorf("%s is not known", path)
	}
}
