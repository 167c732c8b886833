package sitemap

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/announce"
	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/files"
	"github.com/seed3295b519/caddy-sitemap/internal/merge"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
)

// watchedSite is a site whose pages are the files of a folder that is watched as a whole.
func watchedSite(t *testing.T, sources ...input) *site {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("files are watched on Linux alone")
	}
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.html"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, nil)
	b.handler.sources = append(sources, &SourceFiles{})
	s := b.site("named.example")
	s.serve(listing(1))
	s.probed.Store(new(probeResult))
	t.Cleanup(func() {
		for _, w := range s.watchers {
			w.Close()
		}
	})
	for _, w := range s.watchers {
		o := files.Options{Root: root, Watcher: w.Watcher}
		if _, err := files.Scan(t.Context(), o, func(page.Page) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestRests: a site rests only where nothing can change without being told.
func TestRests(t *testing.T) {
	settled := func() report.Refresh { return report.Refresh{Outcome: outcome.Outcome{Result: outcome.Unchanged}} }
	for name, test := range map[string]struct {
		sources []input
		change  func(s *site, out *report.Refresh)
		want    bool
	}{
		"files":                     {want: true},
		"files and links":           {sources: []input{new(SourceLinks)}, want: true},
		"published":                 {change: func(_ *site, out *report.Refresh) { out.Result = outcome.Published }, want: true},
		"files that nothing serves": {sources: []input{&SourceFiles{Root: "/srv/other"}}, want: true},
		"a list":                    {sources: []input{new(SourceURLs)}},
		"visitors":                  {sources: []input{new(SourceTraffic)}},
		"held back":                 {change: func(_ *site, out *report.Refresh) { out.Result = outcome.HeldBack }},
		"failed":                    {change: func(_ *site, out *report.Refresh) { out.Result = outcome.Failed }},
		"a source failed": {change: func(_ *site, out *report.Refresh) {
			out.Merged = merge.Result{Failed: []merge.InputError{{Name: "files"}}}
		}},
		"not watched":           {change: func(s *site, _ *report.Refresh) { s.watchers[0].Close() }},
		"another source is not": {change: func(s *site, _ *report.Refresh) { s.watchers = nil }},
		"an upstream's front page": {change: func(s *site, _ *report.Refresh) {
			s.probed.Store(&probeResult{made: true})
		}},
		"an upstream's robots.txt": {change: func(s *site, _ *report.Refresh) {
			s.probed.Store(&probeResult{robots: robotsRules{made: true}})
		}},
		"found by links": {change: func(s *site, _ *report.Refresh) { s.probed.Store(&probeResult{byLinks: true}) }},
		"own sitemaps":   {change: func(s *site, _ *report.Refresh) { s.own.Store(new(ownSet)) }, want: true},
		"own sitemaps of an upstream": {change: func(s *site, _ *report.Refresh) {
			s.own.Store(&ownSet{made: true})
		}},
		"own sitemaps elsewhere": {change: func(s *site, _ *report.Refresh) {
			s.own.Store(&ownSet{isElsewhere: true})
		}},
		"own sitemaps that are unread": {change: func(s *site, _ *report.Refresh) {
			s.own.Store(&ownSet{unread: 1})
		}},
		"nothing is crawled": {change: func(_ *site, out *report.Refresh) { out.Crawled = crawl.Result{} }, want: true},
		"records are lost": {change: func(s *site, _ *report.Refresh) {
			s.amend(func(p *publication) { p.history.Lost = batch })
		}},
	} {
		s := watchedSite(t, test.sources...)
		out := settled()
		if test.change != nil {
			test.change(s, &out)
		}
		if got := s.rests(&out); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// TestWatchedNames: a site whose files are watched is told of those that a refresh looks at, too.
func TestWatchedNames(t *testing.T) {
	s := watchedSite(t)
	s.own.Store(&ownSet{documents: map[string]*ownDocument{"http://named.example/old/posts.xml": {}}})
	w := s.watchers[0]
	r := &Refresh{site: s}
	if r.watcher(new(SourceFiles)) != nil {
		t.Error("a source has the watcher of another one")
	}
	if r.watcher(w.source) != w.Watcher {
		t.Fatal("the source has no watcher")
	}
	for _, name := range []string{"robots.txt", "sitemap.xml", "sitemap.xml.gz", "sitemap.css", "llms.txt", "posts.xml"} {
		if !slices.Contains(s.watchedNames(), name) {
			t.Errorf("%s is not watched", name)
		}
	}
	root := w.Status().Root
	if err := os.WriteFile(filepath.Join(root, "posts.xml"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if !w.Wait(ctx) {
		t.Error("the change is not told")
	}
	s.serve(nil)
	if r.watcher(w.source) != nil {
		t.Error("the first scan of a site begins to watch")
	}
}

// TestReplan: a change that is told while the site rests makes it due, and one that is told meanwhile is not lost.
func TestReplan(t *testing.T) {
	s := watchedSite(t)
	now := s.app.now()
	out := report.Refresh{Outcome: outcome.Outcome{Result: outcome.Unchanged}, Cost: time.Second}
	s.conclude(&out, now)
	if got := s.schedule.Due().Sub(now); got != restFor {
		t.Errorf("a site at rest is due after %s", got)
	}
	s.replan()
	if got := s.schedule.Due().Sub(now); got != shareOfTime*time.Second {
		t.Errorf("after a change, it is due after %s", got)
	}

	s.prospected = nil // a refresh is under way
	s.plan(prospects{now: now, begun: now, interval: time.Minute})
	s.replan()
	if got := s.schedule.Due().Sub(now); got != time.Minute {
		t.Errorf("while a refresh is under way, the next one is due after %s", got)
	}
}

// TestToldBeforeReload: a change that was told, and not refreshed for before the configuration is another one, is not lost.
func TestToldBeforeReload(t *testing.T) {
	s := watchedSite(t)
	out := report.Refresh{Outcome: outcome.Outcome{Result: outcome.Unchanged}, Cost: time.Millisecond}
	s.conclude(&out, s.app.now())
	root := s.watchers[0].Status().Root
	if err := os.WriteFile(filepath.Join(root, "b.html"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	// The site is due as soon as the change is told.
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		s.watchFiles(s.watchers[0])
	}()
	s.schedule.Wait(t.Context(), s.app.now, false)
	s.cancel()
	<-watching
	clear(s.app.sites)
	next := newSite(s.app, s.identity)
	defer next.drop()
	if left := next.schedule.Due().Sub(s.app.now()); left > 0 {
		t.Errorf("the next configuration is due after %s", left)
	}
}

// TestHasUnconfirmed: a site does not rest while an announcement waits for its next refresh.
func TestHasUnconfirmed(t *testing.T) {
	target := announce.Target{Kind: announce.IndexNow, URL: announce.DefaultEndpoint}
	for name, test := range map[string]struct {
		stored    string // of the queue; "": there is none
		announces bool
		want      bool
	}{
		"no queue":            {"", true, false},
		"nothing":             {`{}`, true, false},
		"a new page":          {`{"fresh":["/a"]}`, true, true},
		"announces no longer": {`{"fresh":["/a"]}`, false, false},
	} {
		b := newBench(t, func(h *Handler) {
			if test.announces {
				h.IndexNow = new(IndexNow)
			}
		})
		s := b.site("named.example")
		s.state.queue.Store(nil) // it may be that of a case before
		if test.stored != "" {
			q, err := announce.New([]byte(test.stored), announce.Config{Origin: "https://blog.invented", Targets: []announce.Target{target}})
			if err != nil {
				t.Fatal(err)
			}
			s.state.queue.Store(q)
		}
		if got := s.hasUnconfirmed(); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// TestIsElsewhere: own sitemaps that say something are files that are watched, or changes of them are not told.
func TestIsElsewhere(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "own.xml"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &Refresh{BaseURL: "http://named.example", served: func() []files.Options { return []files.Options{{Root: root}} }}
	says := &ownDocument{children: []string{"http://named.example/a.xml"}}
	many := make(map[string]*ownDocument)
	for i := range 101 {
		many[fmt.Sprint("http://named.example/own.xml?", i)] = new(ownDocument)
	}
	for name, test := range map[string]struct {
		documents map[string]*ownDocument
		want      bool
	}{
		"none":               {nil, false},
		"a file":             {map[string]*ownDocument{"http://named.example/own.xml": says}, false},
		"no file":            {map[string]*ownDocument{"http://named.example/other.xml": says}, true},
		"pages":              {map[string]*ownDocument{"http://named.example/other.xml": {pages: []page.Page{{Path: "/a"}}}}, true},
		"empty":              {map[string]*ownDocument{"http://named.example/other.xml": {}}, false},
		"a redirect":         {map[string]*ownDocument{"http://named.example/other.xml": {children: says.children, redirect: true}}, false},
		"of another site":    {map[string]*ownDocument{"http://other.example/own.xml": says}, false},
		"more than are seen": {many, true},
	} {
		if got := r.isElsewhere(&ownSet{documents: test.documents}); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
	delete(many, "http://named.example/own.xml?0")
	if r.isElsewhere(&ownSet{documents: many}) {
		t.Error("100 documents: got true")
	}
}

// TestSayUnwatched: that there are more roots than are watched is said once, for all sites.
func TestSayUnwatched(t *testing.T) {
	b := newBench(t, nil)
	for range 2 {
		b.app.sayUnwatched()
	}
	const said = "there are more roots than can be watched: in the others, changes show by the refresh interval"
	if n := b.logged(said); n != 1 {
		t.Errorf("got %d lines, want 1", n)
	}
}

// TestWatchedRoots: operators see which roots are watched.
func TestWatchedRoots(t *testing.T) {
	s := watchedSite(t)
	got := s.watched()
	if len(got) != 1 || got[0].State != files.Whole.String() || got[0].Root != s.watchers[0].Status().Root || got[0].Folders != 1 {
		t.Errorf("got %+v", got)
	}
	s.watchers[0].Close()
	if got := s.watched(); len(got) != 1 || got[0].State != files.Unwatched.String() || got[0].Folders != 0 {
		t.Errorf("once it is closed: got %+v", got)
	}
	s.watchers[0].Watcher = files.NewWatcher()
	if got := s.watched(); len(got) != 0 {
		t.Errorf("before the first scan: got %+v", got)
	}
}
