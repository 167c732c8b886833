package export

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

const sitemap = "https://example.com/sitemap.xml"

// snapshot has pages numbered from and below to, in shards of up to ten.
func snapshot(t *testing.T, from, to int) *document.Set {
	t.Helper()
	return snapshotWith(t, from, to, document.Options{ShardURLs: 10})
}

// snapshotWith also has documents beside the XML, as options say.
func snapshotWith(t *testing.T, from, to int, o document.Options) *document.Set {
	t.Helper()
	o.Base, o.Sitemap = "https://example.com", strings.TrimSuffix(sitemap, ".xml")
	s, err := document.Build(t.Context(), func(yield func(page.Page, error) bool) {
		for i := from; i < to && yield(page.Page{Path: fmt.Sprintf("/%04d", i), LastMod: 1}, nil); i++ {
		}
	}, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// build writes a generation.
func build(t *testing.T, dir, index string, force, gzip bool, s *document.Set) (Site, int, error) {
	t.Helper()
	f, err := Open(dir, index, force)
	if err != nil {
		return Site{}, 0, err
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}()
	f.Sitemap = "https://example.com/" + index
	if err := f.Stage(s, gzip); err != nil {
		return f.Site, f.before, err
	}
	err = f.Finish()
	return f.Site, f.before, err
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// wantFiles checks that a folder has the documents of a snapshot and other files.
func wantFiles(t *testing.T, dir string, s *document.Set, gzip bool, others ...string) {
	t.Helper()
	want := map[string]bool{}
	for _, name := range others {
		want[name] = true
	}
	for _, d := range s.All() {
		name := "sitemap" + d.Name
		if d.Name == document.LLMs {
			name = "llms.txt"
		}
		document, err := d.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, _ := io.ReadAll(document)
		if there, err := os.ReadFile(filepath.Join(dir, name)); string(there) != string(content) {
			t.Errorf("%s: got %q, %v", name, there, err)
		}
		want[name] = true
		if gzip {
			want[name+".gz"] = true
		}
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode()&0o600 != 0o600 {
			t.Errorf("%s: its owner cannot read or write it: %v", name, err)
		}
	}
	got := map[string]bool{}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		got[e.Name()] = true
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %q, want %q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

func TestGenerations(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	before, gzipped := 0, false
	for _, step := range []struct {
		from, to           int
		gzip               bool
		written, unchanged string // how many documents
	}{
		{0, 100, false, "all", "none"},
		{0, 100, false, "none", "all"},
		{0, 120, true, "some", "some"},
		{50, 120, false, "some", "some"},
		{0, 5, false, "all", "none"},
		{0, 5, true, "some", "some"},
	} {
		s := snapshot(t, step.from, step.to)
		isFew := 2*s.Pages < before
		if isFew {
			if _, _, err := build(t, dir, "sitemap.xml", false, step.gzip, s); err == nil {
				t.Errorf("%+v: less than half of the pages would be left, and that is believed", step)
			}
		}
		got, pages, err := build(t, dir, "sitemap.xml", isFew, step.gzip, s)
		amount := func(names []string) string {
			switch len(names) {
			case 0:
				return "none"
			case len(got.Written) + len(got.Unchanged):
				return "all"
			}
			return "some"
		}
		if err != nil || pages != before || amount(got.Written) != step.written || amount(got.Unchanged) != step.unchanged ||
			got.Pages != step.to-step.from || got.Shards != max(len(s.Shards), 1) || got.Bytes == 0 || gzipped && !step.gzip && len(got.Removed) == 0 {
			t.Errorf("%+v: got %+v, %d pages before, %v", step, got, pages, err)
		}
		if i := slices.Index(got.Written, "sitemap.xml"); i >= 0 && len(s.Shards) > 0 && !step.gzip && i != len(got.Written)-1 {
			t.Errorf("the index is not the last of %q", got.Written)
		}
		wantFiles(t, dir, s, step.gzip)
		before, gzipped = got.Pages, step.gzip
	}
}

// TestOthers: files that no build wrote stay, and so do those that the previous index does not name.
func TestOthers(t *testing.T) {
	dir, s := t.TempDir(), snapshot(t, 0, 100)
	alike := `<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<url><loc>https://example.com/</loc></url>
</urlset>
`
	for _, content := range []string{"by hand", alike} {
		write(t, dir, "sitemap.xml", content)
		if _, _, err := build(t, dir, "sitemap.xml", false, false, s); !errors.Is(err, ErrForeign) {
			t.Errorf("%q: got %v", content, err)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 1 {
			t.Errorf("%q: left is %v", content, entries)
		}
	}
	write(t, dir, "sitemap.xml", "by hand\n<url>\n<url>") // whose pages do not count
	if _, before, err := build(t, dir, "sitemap.xml", true, false, s); err != nil || before != 0 {
		t.Errorf("got %d pages before, %v", before, err)
	}
	wantFiles(t, dir, s, false)
	write(t, dir, "sitemap-0123456789ab.xml", "by hand")
	if err := os.Mkdir(filepath.Join(dir, aside), 0o700); err != nil { // of a build that was killed
		t.Fatal(err)
	}
	write(t, dir, filepath.Join(aside, "sitemap.xml"), "half")
	s = snapshot(t, 0, 5)
	if _, _, err := build(t, dir, "sitemap.xml", true, false, s); err != nil {
		t.Error(err)
	}
	wantFiles(t, dir, s, false, "sitemap-0123456789ab.xml")
}

// TestOutside: neither a link nor an index made by somebody else leads out of the folder.
func TestOutside(t *testing.T) {
	top := t.TempDir()
	outside, dir := filepath.Join(top, "outside"), filepath.Join(top, "dir")
	for _, folder := range []string{outside, dir} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	const text = `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + document.Mark + "\n"
	kept := []string{"sitemap-0123456789ab.xml", "page.html"}
	for _, name := range kept {
		write(t, outside, name, text+"<sitemap><loc>")
		write(t, dir, name, text+"<sitemap><loc>")
	}
	index := text
	for _, loc := range []string{"/../outside/sitemap-0123456789ab.xml", "/page.html", "/../outside/page.html"} {
		index += "<sitemap><loc>https://example.com" + loc + "</loc></sitemap>\n"
	}
	write(t, dir, "sitemap.xml", index+"</sitemapindex>\n")
	s := snapshot(t, 0, 5)
	if got, _, err := build(t, dir, "sitemap.xml", false, false, s); err != nil || !slices.Equal(got.Removed, kept[:1]) {
		t.Errorf("got %+v, %v", got, err)
	}
	wantFiles(t, dir, s, false, "page.html")
	if err := os.Symlink(outside, filepath.Join(dir, "maps")); err != nil {
		if runtime.GOOS != "windows" { // there it takes a privilege
			t.Fatal(err)
		}
		t.Skip(err)
	}
	if _, _, err := build(t, dir, "maps/sitemap.xml", true, false, s); err == nil {
		t.Error("a link leads out of the folder")
	}
	if entries, _ := os.ReadDir(outside); len(entries) != len(kept) {
		t.Errorf("outside is %v", entries)
	}
}

// TestNewsSitemap builds with and without news. A news sitemap that others wrote stays, although it is one of the same form.
func TestNewsSitemap(t *testing.T) {
	dir := t.TempDir()
	published := time.Unix(1_700_000_000, 0)
	at := func(now time.Time) *document.Set {
		o := document.Options{Beside: document.Beside{News: &document.NewsOf{Publication: "The Example Times"}}, Now: now}
		o.Base, o.Sitemap = "https://example.com", strings.TrimSuffix(sitemap, ".xml")
		s, err := document.Build(t.Context(), func(yield func(page.Page, error) bool) {
			yield(page.Page{Path: "/", Extensions: &page.Extensions{Published: published.Unix(), Title: "t", Lang: "en"}}, nil)
		}, nil, o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	const name = "sitemap-news.xml"
	for i, step := range []struct {
		snapshot *document.Set
		gzip     bool
		written  []string
		removed  []string
	}{
		{at(published), true, []string{name, name + ".gz", "sitemap.xml", "sitemap.xml.gz"}, nil},
		{at(published.Add(48 * time.Hour)), true, []string{name, name + ".gz"}, nil},
		{at(published.Add(49 * time.Hour)), false, nil, []string{name + ".gz", "sitemap.xml.gz"}},
		{snapshot(t, 0, 1), false, []string{"sitemap.xml"}, []string{name}},
	} {
		got, _, err := build(t, dir, "sitemap.xml", false, step.gzip, step.snapshot)
		if err != nil || !slices.Equal(got.Written, step.written) || !slices.Equal(got.Removed, step.removed) {
			t.Errorf("step %d: wrote %q, removed %q, %v", i, got.Written, got.Removed, err)
		}
		wantFiles(t, dir, step.snapshot, step.gzip)
	}
	foreign := `<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:news="http://www.google.com/schemas/sitemap-news/0.9">
<url><loc>https://example.com/</loc></url>
</urlset>
`
	write(t, dir, name, foreign)
	if _, _, err := build(t, dir, "sitemap.xml", false, false, at(published)); !errors.Is(err, ErrForeign) {
		t.Errorf("by others: got %v", err)
	}
	s := snapshot(t, 0, 1)
	if _, _, err := build(t, dir, "sitemap.xml", false, false, s); err != nil {
		t.Error(err)
	}
	wantFiles(t, dir, s, false, name)
	if _, _, err := build(t, dir, "sitemap.xml", true, false, at(published)); err != nil {
		t.Error(err)
	}
	wantFiles(t, dir, at(published), false)
}

// TestSectionNamedNews builds with a section that has the name of the news sitemap, as there may be without news, with news
// instead, and without both.
func TestSectionNamedNews(t *testing.T) {
	published := time.Unix(1_700_000_000, 0)
	at := func(section string, news *document.NewsOf, pages int) *document.Set {
		o := document.Options{
			ShardURLs: 20,
			Now:       published,
			Base:      "https://example.com", Sitemap: strings.TrimSuffix(sitemap, ".xml"), Beside: document.Beside{News: news},
			Sections:  []string{section},
			SectionOf: func(string) string { return section },
		}
		s, err := document.Build(t.Context(), func(yield func(page.Page, error) bool) {
			article := &page.Extensions{Published: published.Unix(), Title: "t", Lang: "en"}
			for i := range pages {
				if !yield(page.Page{Path: fmt.Sprintf("/%03d", i), Extensions: article}, nil) {
					return
				}
			}
		}, nil, o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	news := &document.NewsOf{Publication: "The Example Times"}
	dir := t.TempDir()
	for i, s := range []*document.Set{
		at("news", nil, 3), at("news", nil, 4), at("news", nil, 90), at("news", nil, 91), // the last two have an index
		at("", news, 91), at("news", nil, 91), at("blog", news, 91), at("news", nil, 91), at("other", nil, 91), at("news", nil, 91), at("", nil, 91),
	} {
		if _, _, err := build(t, dir, "sitemap.xml", false, i%2 == 0, s); err != nil {
			t.Errorf("step %d: %v", i, err)
		}
		wantFiles(t, dir, s, i%2 == 0)
	}
}

// TestLLMsOfAnother: a build leaves the llms.txt of another one, whose sitemap is elsewhere in the same folder.
func TestLLMsOfAnother(t *testing.T) {
	dir := t.TempDir()
	s := snapshotWith(t, 0, 5, document.Options{Beside: document.Beside{LLMs: true}})
	for i, step := range []struct {
		index    string
		snapshot *document.Set
		removed  []string
	}{
		{"sitemap.xml", s, nil},
		{"docs/sitemap.xml", snapshot(t, 0, 5), nil},
		{"other.xml", snapshot(t, 0, 5), nil},
		{"sitemap.xml", snapshot(t, 0, 5), []string{"llms.txt", "llms.txt.gz"}},
	} {
		got, _, err := build(t, dir, step.index, false, true, step.snapshot)
		if err != nil || !slices.Equal(got.Removed, step.removed) {
			t.Errorf("step %d: removed %q, %v", i, got.Removed, err)
		}
	}
}

// TestBesideXML builds with HTML pages, a feed and a stylesheet, and without.
func TestBesideXML(t *testing.T) {
	dir, byHand := t.TempDir(), "sitemap-"+strings.Repeat("0", 32)+".html"
	write(t, dir, byHand, "<!doctype html><title>caddy-sitemap</title>")
	all := document.Beside{People: new(document.People), Feed: true, Stylesheet: true, LLMs: true}
	for i, step := range []struct {
		to      int
		options document.Beside
		gzip    bool
		removed int // at least
	}{
		{5000, all, false, 0},
		{5000, all, true, 0},
		{5001, all, false, 13},
		{5, all, true, 5},
		{5, document.Beside{Stylesheet: true}, true, 4},
		{6, document.Beside{}, false, 3},
		{6, all, false, 0},
	} {
		s := snapshotWith(t, 0, step.to, document.Options{Beside: step.options, ShardURLs: 1000})
		got, _, err := build(t, dir, "sitemap.xml", step.to == 5, step.gzip, s)
		if err != nil || len(got.Removed) < step.removed || (len(got.Removed) > 0) != (step.removed > 0) {
			t.Errorf("step %d: got %q, %v", i, got.Removed, err)
		}
		wantFiles(t, dir, s, step.gzip, byHand)
	}
	for _, name := range []string{"sitemap.css", "sitemap.html", "sitemap.atom", "llms.txt"} {
		stays := name == "sitemap.css" || name == "llms.txt" // as a server does, a build leaves a site its own
		write(t, dir, name, "by hand")
		for _, force := range []bool{false, true} {
			s := snapshotWith(t, 0, 6, document.Options{Beside: all})
			got, _, err := build(t, dir, "sitemap.xml", force, true, s)
			if errors.Is(err, ErrForeign) == (stays || force) || stays && slices.Contains(got.Written, name+".gz") {
				t.Errorf("%s by hand: wrote %q, %v", name, got.Written, err)
			}
			if there, _ := os.ReadFile(filepath.Join(dir, name)); (string(there) == "by hand") != (stays || !force) {
				t.Errorf("%s became %.100q", name, there)
			}
		}
		write(t, dir, name, "by hand")
		s := snapshot(t, 0, 6)
		if _, _, err := build(t, dir, "sitemap.xml", false, false, s); err != nil {
			t.Error(err)
		}
		wantFiles(t, dir, s, false, byHand, name)
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNewFirst: files that nothing refers to yet come before those that refer to them.
func TestNewFirst(t *testing.T) {
	dir, options := t.TempDir(), document.Options{Beside: document.Beside{People: new(document.People)}}
	if _, _, err := build(t, dir, "sitemap.xml", false, false, snapshotWith(t, 0, 5, options)); err != nil {
		t.Fatal(err)
	}
	options.Feed = true
	got, _, err := build(t, dir, "sitemap.xml", false, false, snapshotWith(t, 0, 6, options))
	if want := []string{"sitemap.atom", "sitemap.html", "sitemap.xml"}; err != nil || !slices.Equal(got.Written, want) {
		t.Errorf("got %q, %v, want %q", got.Written, err, want)
	}
}

func TestRobots(t *testing.T) {
	const content = "User-agent: *\nDisallow: /x\n\nSitemap: " + sitemap + "\nSitemap: https://example.com/sitemap.atom\n"
	for name, test := range map[string]struct {
		there    string
		replaced bool
	}{
		"the site's own":       {"User-agent: *\nDisallow: /x\n", true},
		"without the feed":     {"User-agent: *\nDisallow: /x\n\nSitemap: " + sitemap + "\n", true},
		"of another build":     {"User-agent: *\n\nSitemap: " + sitemap + "\n", true},
		"empty":                {"", true},
		"by hand":              {"User-agent: *\nDisallow: /y\n", false},
		"of another URL":       {"Sitemap: https://example.org/sitemap.xml\n", false},
		"with a line in a key": {"X-Sitemap: " + sitemap + "\n", false},
	} {
		for _, force := range []bool{false, true} {
			dir := t.TempDir()
			write(t, dir, robotsName, test.there)
			f, err := Open(dir, "sitemap.xml", force)
			if err != nil {
				t.Fatal(err)
			}
			f.Sitemap = sitemap
			err = errors.Join(f.Stage(snapshot(t, 0, 1), false), f.StageRobots([]byte(content)))
			if force || test.replaced {
				err = errors.Join(err, f.Finish())
			}
			if got := errors.Is(err, ErrForeign); got == (test.replaced || force) {
				t.Errorf("%s: got %v", name, err)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			if there, _ := os.ReadFile(filepath.Join(dir, robotsName)); (string(there) == content) != (test.replaced || force) {
				t.Errorf("%s: there is %q", name, there)
			}
		}
	}
}

// TestRobotsNews: robots.txt does not name a news sitemap that is not built any more.
func TestRobotsNews(t *testing.T) {
	const line, newsLine = "Sitemap: " + sitemap + "\n", "Sitemap: https://example.com/sitemap-news.xml\n"
	for content, want := range map[string]string{
		"<urlset><!-- caddy-sitemap -->": line,
		"<urlset>":                       line + newsLine, // of others
	} {
		dir := t.TempDir()
		write(t, dir, "sitemap-news.xml", content)
		f, err := Open(dir, "sitemap.xml", false)
		if err != nil {
			t.Fatal(err)
		}
		f.Sitemap = sitemap
		if err := errors.Join(f.Stage(snapshot(t, 0, 1), false), f.StageRobots([]byte(line+newsLine)), f.Finish(), f.Close()); err != nil {
			t.Error(err)
		}
		if there, _ := os.ReadFile(filepath.Join(dir, robotsName)); string(there) != want {
			t.Errorf("%s: got %q", content, there)
		}
	}
}

// TestRobotsFeed: robots.txt may come from the folder, and does not name a feed that is not built any more.
func TestRobotsFeed(t *testing.T) {
	const line, feedLine = "Sitemap: " + sitemap + "\r\n", "Sitemap: https://example.com/sitemap.atom\r\n"
	for _, test := range []struct {
		byHand, feed bool // what is there, and what is built
		want         string
	}{{false, true, line + feedLine}, {false, false, line}, {true, false, line + feedLine}} {
		dir, with := t.TempDir(), document.Options{Beside: document.Beside{Feed: true}}
		if _, _, err := build(t, dir, "sitemap.xml", false, false, snapshotWith(t, 0, 1, with)); err != nil {
			t.Fatal(err)
		}
		if test.byHand {
			write(t, dir, "sitemap.atom", "by hand")
		}
		write(t, dir, robotsName, line+feedLine)
		f, err := Open(dir, "sitemap.xml", false)
		if err != nil {
			t.Fatal(err)
		}
		f.Sitemap, with.Feed = sitemap, test.feed
		if err := errors.Join(f.Stage(snapshotWith(t, 0, 1, with), false), f.StageRobots([]byte(line+feedLine)), f.Finish(), f.Close()); err != nil {
			t.Error(err)
		}
		if there, _ := os.ReadFile(filepath.Join(dir, robotsName)); string(there) != test.want {
			t.Errorf("%+v: got %q", test, there)
		}
	}
}

func TestBusy(t *testing.T) {
	dir := t.TempDir()
	f, err := Open(dir, "sitemap.xml", false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, "sitemap.xml", false); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v", err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if f.Close() == nil {
		t.Error("a folder is closed twice without an error")
	}
	if _, _, err := build(t, dir, "sitemap.xml", false, false, snapshot(t, 0, 1)); err != nil {
		t.Error(err)
	}
	if _, err := Open(filepath.Join(dir, "sitemap.xml", "below"), "sitemap.xml", false); err == nil {
		t.Error("a folder is opened below a file")
	}
	if err := os.MkdirAll(filepath.Join(dir, "maps", "sitemap.xml"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, _, err = build(t, filepath.Join(dir, "maps"), "sitemap.xml", true, false, snapshot(t, 0, 1))
	if err == nil || !strings.Contains(err.Error(), "exists and is not a regular file") {
		t.Errorf("a folder in the place of a document: got %v", err)
	}
}

// TestSummaryUnprinted: a summary that nobody can read is a failure.
func TestSummaryUnprinted(t *testing.T) {
	read, write := io.Pipe()
	full := errors.New("no space left")
	read.CloseWithError(full)
	for _, asJSON := range []bool{false, true} {
		s := Summary{Notes: []string{"x"}}
		if err := s.Print(write, asJSON); !errors.Is(err, full) || !strings.Contains(err.Error(), "printing the summary") {
			t.Errorf("got %v", err)
		}
	}
}

func TestProgress(t *testing.T) {
	var p Progress
	for _, test := range []struct {
		fetched, total int64
		want           string
	}{
		{0, 0, "0 pages to fetch"},
		{0, 10, "10 pages to fetch"},
		{250, 1000, "250 of 1000 pages fetched, 30s left"},
		{1000, 1000, "1000 of 1000 pages fetched, 0s left"},
		{1001, 1000, "1001 of 1001 pages fetched, 0s left"},
	} {
		p.Fetched.Store(test.fetched)
		p.Total.Store(test.total)
		if got := p.line(10 * time.Second); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

// TestShowProgress: a terminal has one line, five times a second, which is gone at the end. What is no terminal has none.
func TestShowProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Progress
		p.Total.Store(10)
		var printed strings.Builder
		end := p.showOn(&printed)
		time.Sleep(300 * time.Millisecond)
		p.Fetched.Store(5)
		time.Sleep(200 * time.Millisecond)
		end()
		const want = "\x1b[2K10 pages to fetch\r\x1b[2K5 of 10 pages fetched, 0s left\r\x1b[2K"
		if printed.String() != want {
			t.Errorf("got %q, want %q", printed.String(), want)
		}
	})
	name := filepath.Join(t.TempDir(), "printed")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	shown, end := new(Progress).Show(file)
	end()
	if shown {
		t.Error("a file is taken for a terminal")
	}
}

// TestSections: documents of sections are written, and removed with their sections; others that look like them stay.
func TestSections(t *testing.T) {
	dir := t.TempDir()
	in := func(sections ...string) *document.Set { // the names of sections of 100 pages each
		o := document.Options{ShardURLs: 30, Sections: sections}
		o.SectionOf = func(path string) string {
			if i := int(path[2] - '0'); i < len(sections) { // the digit for hundreds
				return sections[i]
			}
			return ""
		}
		return snapshotWith(t, 0, 320, o)
	}
	of := func(dir string) (names []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), "sitemap-old") {
				names = append(names, e.Name())
			}
		}
		return names
	}
	const byHand, other = "sitemap-by-hand.xml", "sitemap-other.xml"
	write(t, dir, byHand, "by hand")
	for _, step := range []struct {
		sections []string
		gzip     bool
		before   int
		want     []document.Section
	}{
		{[]string{"old", "b"}, true, 0, []document.Section{{Name: "b", Pages: 100}, {Name: "old", Pages: 100}}},
		{[]string{"old", "b"}, true, 320, []document.Section{{Name: "b", Pages: 100}, {Name: "old", Pages: 100}}},
		{[]string{"new", "b"}, false, 320, []document.Section{{Name: "b", Pages: 100}, {Name: "new", Pages: 100}}},
		{nil, false, 320, nil},
		{nil, false, 320, nil},
	} {
		s := in(step.sections...)
		got, before, err := build(t, dir, "sitemap.xml", false, step.gzip, s)
		if err != nil || before != step.before || len(got.Sections) != len(step.want) {
			t.Fatalf("%q: got %+v, %d pages before, %v", step.sections, got, before, err)
		}
		for i, want := range step.want {
			if section := got.Sections[i]; section.Name != want.Name || section.Pages != want.Pages || section.Shards < 2 {
				t.Errorf("%q: got %+v, want %+v", step.sections, section, want)
			}
		}
		wantFiles(t, dir, s, step.gzip, byHand)
		if slices.Contains(step.sections, "old") != (of(dir) != nil) {
			t.Errorf("%q: got %q", step.sections, of(dir))
		}
	}
	// What another build has written looks like a section.
	if _, _, err := build(t, dir, other, false, false, snapshot(t, 0, 3)); err != nil {
		t.Fatal(err)
	}
	if got, _, err := build(t, dir, "sitemap.xml", true, false, snapshot(t, 0, 5)); err != nil || slices.Contains(got.Removed, other) {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, _, err := build(t, dir, "sitemap.xml", false, false, in("by-hand")); !errors.Is(err, ErrForeign) {
		t.Errorf("got %v", err)
	}
}
