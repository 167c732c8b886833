package sitemap

import (
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
)

// publishes makes the server have articles that were published at times.
func (b *bench) publishes(articles map[string]time.Time) {
	var paths []string
	for path := range articles {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	b.names(paths...)
	b.pages = func(w http.ResponseWriter, r *http.Request) error {
		at, ok := articles[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			return nil
		}
		w.Header().Set("Content-Type", contentHTML)
		_, err := fmt.Fprintf(w, `<!doctype html><html lang=en><title>%s</title><meta property="article:published_time" content="%s"><p>%[1]s`,
			r.URL.Path, at.Format(time.RFC3339))
		return err
	}
}

// newsBench is a bench with news of a publication, in a bubble.
func newsBench(t *testing.T, configure func(*Handler)) *bench {
	b := newBench(t, func(h *Handler) {
		h.News = &News{Publication: "The Example Times"}
		if configure != nil {
			configure(h)
		}
	})
	b.app.now = time.Now
	return b
}

// newsIn returns the paths of articles in the news sitemap, and whether it lists any other page.
func newsIn(t *testing.T, snapshot *document.Set) (articles string, hasOthers bool) {
	t.Helper()
	d := snapshot.Find(document.NewsSitemap)
	if d == nil {
		return "", false
	}
	r, err := d.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	content, err := io.ReadAll(r)
	if err != nil || !document.IsOwn(content) {
		t.Fatalf("%v: got %s", err, content)
	}
	for line := range strings.SplitSeq(string(content), "\n") {
		_, entry, isEntry := strings.Cut(line, "<url><loc>http://named.example")
		path, _, _ := strings.Cut(entry, "<")
		switch {
		case isEntry && strings.Contains(entry, "<news:title>"):
			articles += path
		case isEntry:
			hasOthers = true
		}
	}
	return articles, hasOthers
}

// TestNewsAge: the first refresh after an article became old, or its time has come, changes the news sitemap, though no page changes.
func TestNewsAge(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		b := newsBench(t, func(h *Handler) { h.RefreshInterval = caddy.Duration(time.Hour) })
		begun := time.Now()
		b.publishes(map[string]time.Time{
			"/a": begun.Add(-47 * time.Hour), "/b": begun.Add(-time.Hour), "/c": begun.Add(20 * time.Hour), "/d": begun.Add(-time.Minute),
		})
		s := b.site("named.example")
		b.app.group.Go(s.refreshWhenDue)
		for _, step := range []struct {
			after     time.Duration
			want      string
			hasOthers bool
		}{
			{time.Minute, "/d/b/a", false},
			{time.Hour - time.Minute, "/d/b/a", false}, {2*time.Hour + time.Minute, "/d/b", false},
			{19 * time.Hour, "/d/b", false}, {21 * time.Hour, "/c/d/b", false},
			{46 * time.Hour, "/c/d/b", false}, {49 * time.Hour, "/c", false},
			{67 * time.Hour, "/c", false}, {69*time.Hour + time.Minute, "", true}, {100 * time.Hour, "", true},
		} {
			time.Sleep(step.after - time.Since(begun))
			synctest.Wait()
			got, hasOthers := newsIn(t, s.published().snapshot)
			if got != step.want || hasOthers != step.hasOthers {
				t.Errorf("after %s: got %s, others: %t, want %s", step.after, got, hasOthers, step.want)
			}
		}
		_ = b.app.Stop()
	})
}

// TestNewsRestored: after a restart, the news sitemap is served at once, and changes as articles age.
func TestNewsRestored(t *testing.T) {
	b := newsBench(t, nil)
	b.app.now = func() time.Time { return b.clock }
	begun := b.clock
	b.publishes(map[string]time.Time{"/a": begun.Add(-time.Hour), "/b": begun.Add(10 * time.Hour), "/c": {}})
	s := b.site("named.example")
	disk := record.NewMemory()
	s.state.records = record.New(disk, "site")
	b.wantPages(s, 3)
	before := s.published()
	s.state.records = record.New(disk, "site")
	s.state.published.Store(&publication{site: s.sitemap})
	restore(t, s)
	after := s.published()
	if got, _ := newsIn(t, after.snapshot); got != "/a" || !after.snapshot.Equal(before.snapshot) {
		t.Errorf("restored: got %s", got)
	}
	if !reflect.DeepEqual(after.report.News, before.report.News) || after.report.News.Pages != 1 {
		t.Errorf("got the report %+v, want %+v", after.report.News, before.report.News)
	}
	if urls := s.namedURLs(after.snapshot); !slices.Equal(urls, []string{"http://named.example/sitemap.xml", "http://named.example/sitemap-news.xml"}) {
		t.Errorf("robots.txt names %q", urls)
	}
	b.clock = begun.Add(10*time.Hour - 5*time.Minute)
	s.run()
	if got, _ := newsIn(t, s.published().snapshot); got != "/b/a" {
		t.Errorf("later: got %s", got)
	}
}

// TestNewsReport: which pages are no news is told until pages are selected without the option, and that there is no news
// sitemap is said once.
func TestNewsReport(t *testing.T) {
	b := newsBench(t, func(h *Handler) { h.News.Match = []string{"/news/*"} })
	b.app.now = func() time.Time { return b.clock }
	b.lists("/a", "/news/b")
	s := b.site("named.example")
	b.wantPages(s, 2)
	b.wantPages(s, 2)
	const reason = "no date of publication"
	want := &document.News{LeftOut: map[string]int{reason: 1}, Examples: map[string][]string{reason: {"/news/b"}}}
	if got := s.published().report.News; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if n := b.logged("there is no news sitemap yet, as no article was published: declare dates of publication in the pages, as by a NewsArticle of JSON-LD"); n != 1 {
		t.Errorf("that there is none is said %d times", n)
	}
	if got := s.namedURLs(s.published().snapshot); len(got) != 1 {
		t.Errorf("robots.txt names %q", got)
	}

	without := newBench(t, nil)
	without.lists("/a")
	s = without.site("named.example")
	s.amend(func(p *publication) { p.report = &report.Report{News: want} })
	without.wantPages(s, 1)
	if got := s.published().report.News; got != nil {
		t.Errorf("without the option: got %+v", got)
	}
}
