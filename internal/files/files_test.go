package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"
	"unicode/utf8"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

var testNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// build makes a tree below a new folder. A name that ends in "/" is a folder, a
// content that begins with "->" a link, else the name is a file of that content.
func build(t testing.TB, tree map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	add(t, root, tree)
	return root
}

func add(t testing.TB, root string, tree map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		full := filepath.Join(root, filepath.FromSlash(name))
		dir := filepath.Dir(full)
		if strings.HasSuffix(name, "/") {
			dir = full
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if dir == full {
			continue
		}
		if target, ok := strings.CutPrefix(tree[name], "->"); ok {
			if err := os.Symlink(filepath.FromSlash(target), full); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(full, []byte(tree[name]), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(full, time.Time{}, testNow.Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
}

// scanAll runs a scan with one worker and with four, and by the portable ways,
// and fails where they differ.
func scanAll(t testing.TB, o Options) ([]page.Page, Stats) {
	t.Helper()
	if o.Now.IsZero() {
		o.Now = testNow
	}
	want, stats := scanWorkers(t, o)
	isOdd := func(p page.Page) bool { return !utf8.ValidString(page.Unescape(p.Path)) }
	if o.FS == nil && !slices.ContainsFunc(want, isOdd) {
		if got := scanPortable(t, o); !slices.Equal(got, want) {
			t.Fatalf("portable: got %q, want %q", paths(got), paths(want))
		}
	}
	return want, stats
}

// scanWorkers runs a scan with one worker and with four, and fails where they differ.
func scanWorkers(t testing.TB, o Options) ([]page.Page, Stats) {
	t.Helper()
	if o.Now.IsZero() {
		o.Now = testNow
	}
	var want []page.Page
	var wantStats Stats
	for i, workers := range []int{1, 4} {
		o.Workers = workers
		got, st := collectPages(t, o)
		if i == 0 {
			want, wantStats = got, st
			continue
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%d workers: got %q, want %q", workers, paths(got), paths(want))
		}
		if fmt.Sprint(st) != fmt.Sprint(wantStats) {
			t.Fatalf("%d workers: got %+v, want %+v", workers, st, wantStats)
		}
	}
	return want, wantStats
}

func collectPages(t testing.TB, o Options) ([]page.Page, Stats) {
	t.Helper()
	var got []page.Page
	st, err := Scan(context.Background(), o, func(p page.Page) error {
		got = append(got, p)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if st.Pages != len(got) {
		t.Fatalf("got %d pages in the statistics, want %d", st.Pages, len(got))
	}
	for i := 1; i < len(got); i++ {
		if page.Compare(got[i-1], got[i]) >= 0 {
			t.Fatalf("%q is yielded before %q", got[i-1].Path, got[i].Path)
		}
	}
	return got, st
}

// scanPortable is Scan by way of the standard library alone.
func scanPortable(t testing.TB, o Options) []page.Page {
	t.Helper()
	s, err := newScan(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	if s.tree, s.rootPath, err = newDiskTree(o.Root); err != nil {
		t.Fatal(err)
	}
	var got []page.Page
	if err := s.run(func(p page.Page) error { got = append(got, p); return nil }); err != nil {
		t.Fatal(err)
	}
	return got
}

func paths(pages []page.Page) []string {
	out := make([]string, len(pages))
	for i, p := range pages {
		out[i] = p.Path
	}
	return out
}

// scanCase is a tree and what is listed of it.
type scanCase struct {
	name string
	tree map[string]string
	o    Options // Root is below the tree
	want string  // paths, with spaces between
	out  map[string]int
}

func TestScan(t *testing.T) {
	const x = "some text"
	for _, c := range []scanCase{
		{
			name: "defaults",
			tree: map[string]string{"index.html": x, "a.html": x, "b.HTM": x, "c.xhtml": x, "d.txt": x, "e/": "", "f/index.html": x, "f/g.html": x, "f.html": x, "f-a.html": x},
			want: "/ /a.html /b.HTM /c.xhtml /f-a.html /f.html /f/ /f/g.html",
			out:  map[string]int{"not included": 1},
		},
		{
			name: "at",
			tree: map[string]string{"index.html": x, "a/index.html": x},
			o:    Options{At: "/do%63s/%c3%a9", Include: []string{"/docs/é/*"}},
			want: "/docs/%C3%A9/ /docs/%C3%A9/a/",
		},
		{
			name: "second index name",
			tree: map[string]string{"index.html": x, "index.txt": x, "a/index.txt": x, "b/index.html/c.html": x, "b/index.txt": x},
			o:    Options{Include: []string{"*.html", "*.txt"}},
			want: "/ /a/ /b/index.html/c.html /b/index.txt /index.txt",
		},
		{
			name: "index names of one's own",
			tree: map[string]string{"index.html": x, "home.html": x, "a/index.html": x},
			o:    Options{Index: []string{"home.html"}},
			want: "/ /a/index.html /index.html",
		},
		{
			name: "no index names",
			tree: map[string]string{"index.html": x, "a/index.html": x},
			o:    Options{Index: []string{}},
			want: "/a/index.html /index.html",
		},
		{
			name: "hidden index",
			tree: map[string]string{"index.html": x, "index.txt": x},
			o:    Options{Hide: []string{"index.html"}, Include: []string{"*"}},
			want: "/",
			out:  map[string]int{"hidden": 1},
		},
		{
			name: "empty index",
			tree: map[string]string{"index.html": "", "index.txt": x},
			o:    Options{Include: []string{"*"}},
			want: "/index.txt",
			out:  map[string]int{"empty": 1},
		},
		{
			name: "dangling index",
			tree: map[string]string{"index.html": "->nowhere", "index.txt": x},
			o:    Options{Include: []string{"*"}},
			want: "/",
			out:  map[string]int{"dangling link": 1},
		},
		{
			name: "dotfiles",
			tree: map[string]string{".a.html": x, ".b/c.html": x, "d.html": x, ".e": "->d.html", ".f": "->.b", "g": "->.b"},
			want: "/d.html /g/c.html",
			out:  map[string]int{"dotfile": 4},
		},
		{
			name: "left out by default",
			tree: map[string]string{"404.html": x, "50x.html": x, "5xx.htm": x, "418.HTML": x, "399.html": x, "600.html": x, "404a.html": x,
				"google0123456789abcdef.html": x, "googlemaps.html": x, "yandex_0a1b2c3d4e5f.html": x, "baidu_verify_code-x1.html": x,
				"_a.html": x, "_b/c.html": x, "node_modules/d.html": x, "x/bower_components/e.html": x, "empty.html": ""},
			want: "/399.html /404a.html /600.html /_a.html /_b/c.html /googlemaps.html",
			out:  map[string]int{"error page": 4, "ownership file": 3, "dependency folder": 2, "empty": 1},
		},
		{
			name: "included by name",
			tree: map[string]string{"404.html": x, "a/404.html": x, "_b/c.html": x, "_b/_d/e.html": x, "_f.html": x, "a/_f.html": x, "node_modules/p/g.html": x, "_h/i.html": x},
			o:    Options{Include: []string{"/404.html", "/_B/*", "/a/_f.html", "/node_modules/p/*", "*.html"}},
			want: "/404.html /_b/_d/e.html /_b/c.html /_f.html /_h/i.html /a/_f.html /node_modules/p/g.html",
			out:  map[string]int{"error page": 1},
		},
		{
			name: "include by folder",
			tree: map[string]string{"A/b.html": x, "A/c.txt": x, "d/e.html": x, "ab/f.html": x, "A/g/h.html": x},
			o:    Options{Include: []string{"/a/*"}},
			want: "/A/b.html /A/c.txt /A/g/h.html",
			out:  map[string]int{"not included": 2},
		},
		{
			name: "exclude",
			tree: map[string]string{"a/index.html": x, "a/b.html": x, "b/index.html": x, "c.html": x, "d/e.html": x, "d/f/g.html": x, "dd.html": x},
			o:    Options{Exclude: []string{"/a/", "/b/index.html", "/d/*", "/C.html"}},
			want: "/a/b.html /dd.html",
			out:  map[string]int{"excluded": 4},
		},
		{
			name: "clean URLs",
			tree: map[string]string{"index.html": x, "about.html": x, "b.html": x, "b": x, "c.html": x, "c/d.html": x, "e.htm": x, "f.html.html": x, "f.html": x, "g.html": x, "g": "->c", "h.html": x, "h": "->b", "i.html": x, "i": "->nowhere"},
			o:    Options{CleanURLs: true},
			want: "/ /about /b.html /c /c/d /e.htm /f /f.html.html /g /h.html /i",
			out:  map[string]int{"not included": 2, "dangling link": 1, "link to a listed page": 1},
		},
		{
			name: "clean URLs, but not beside folders",
			tree: map[string]string{"a.html": x, "b.html": x, "b/c.html": x, "d.html": x, "d": "->b", "e.html": x, "e": x, "f.html.html": x, "f.html/g.html": x},
			o:    Options{CleanURLs: true, KeepBesideFolders: true},
			want: "/a /b.html /b/c /d.html /e.html /f.html.html /f.html/g",
			out:  map[string]int{"not included": 1, "link to a listed page": 1},
		},
		{
			name: "clean URLs in patterns",
			tree: map[string]string{"a.html": x, "b.html": x, "c.html": x, "c": x},
			o:    Options{CleanURLs: true, Exclude: []string{"/a", "/b.html", "/c"}},
			want: "/c.html",
			out:  map[string]int{"excluded": 2, "not included": 1},
		},
		{
			name: "link to a file",
			tree: map[string]string{"z.html": x, "a.html": "->z.html", "b/c.html": "->../z.html"},
			want: "/z.html",
			out:  map[string]int{"link to a listed page": 2},
		},
		{
			name: "links to a file that is not listed by its real path",
			tree: map[string]string{".z.html": x, "b.html": "->.z.html", "a/c.html": "->../.z.html", "y": x, "y.html": "->y", "_p/q.html": x, "q.html": "->_p/q.html"},
			want: "/_p/q.html /a/c.html /y.html",
			out:  map[string]int{"link to a listed page": 2, "dotfile": 1, "not included": 1},
		},
		{
			name: "link to a folder",
			tree: map[string]string{"z/a.html": x, "z/index.html": x, "b": "->z", "c/d": "->../z"},
			want: "/z/ /z/a.html",
			out:  map[string]int{"link to a listed page": 4},
		},
		{
			name: "link to a folder with a dot",
			tree: map[string]string{".z/a.html": x, ".z/b/index.html": x, "d": "->.z", "c": "->.z/b"},
			want: "/c/ /d/a.html",
			out:  map[string]int{"link to a listed page": 1, "dotfile": 1},
		},
		{
			name: "loops",
			tree: map[string]string{"a/self": "->.", "a/root": "->..", "a/b.html": x, "c/d": "->../e", "e/f": "->../c", "c/1.html": x, "e/2.html": x, "x.html": "->y.html", "y.html": "->x.html", "z": "->z"},
			want: "/a/b.html /c/1.html /e/2.html",
			out:  map[string]int{"link loop": 7, "link to a listed page": 2},
		},
		{
			name: "front page behind a link",
			tree: map[string]string{"index.html": "->home.html", "home.html": x, "a/index.html": "->../home.html"},
			want: "/ /home.html",
			out:  map[string]int{"link to a listed page": 1},
		},
		{
			name: "front page of a version",
			tree: map[string]string{".v1/home.html": x, "index.html": "->.v1/home.html", "a.html": "->.v1/home.html", "b.html": "->a.html"},
			want: "/ /a.html",
			out:  map[string]int{"link to a listed page": 1, "dotfile": 1},
		},
		{
			name: "link to an index file",
			tree: map[string]string{"a/index.html": x, "b.html": "->a/index.html", "c/index.html": x, "d.html": "->c/index.html"},
			o:    Options{Exclude: []string{"/c/"}},
			want: "/a/ /d.html",
			out:  map[string]int{"link to a listed page": 1, "excluded": 1},
		},
		{
			name: "times",
			tree: map[string]string{"a.html": x},
			o:    Options{Now: testNow.Add(-2 * time.Hour)},
			want: "/a.html",
		},
	} {
		t.Run(c.name, c.run)
	}
}

func (c scanCase) run(t *testing.T) {
	o := c.o
	o.Root = build(t, c.tree)
	got, st := scanAll(t, o)
	if s := strings.Join(paths(got), " "); s != c.want {
		t.Errorf("got  %s\nwant %s", s, c.want)
	}
	if c.out == nil {
		c.out = map[string]int{}
	}
	if !maps.Equal(st.LeftOut, c.out) && (len(st.LeftOut) > 0 || len(c.out) > 0) {
		t.Errorf("left out: got %v, want %v", st.LeftOut, c.out)
	}
	wantTime := testNow.Add(-time.Hour).Unix()
	if c.name == "times" {
		wantTime = 0
	}
	for _, p := range got {
		if p.LastMod != wantTime {
			t.Errorf("%s: got time %d, want %d", p.Path, p.LastMod, wantTime)
		}
	}
	if o.Now.IsZero() {
		o.Now = testNow
	}
	if want := newReference(normal(o)).pages(); !slices.Equal(got, want) {
		t.Errorf("got %q, want as the reference has %q", paths(got), paths(want))
	}
}

// normal is o with At in canonical form, as the reference wants it.
func normal(o Options) Options {
	if o.At != "" {
		at, _ := page.Canonical(o.At + "/")
		o.At = strings.TrimSuffix(at, "/")
	}
	return o
}

func TestHide(t *testing.T) {
	tree := map[string]string{"index.html": "x", "secret.html": "x", "Caddyfile": "x", "a/index.html": "x", "a/secret.html": "x", "a/b/c.html": "x", "ab/c.html": "x", "s*/d.html": "x", "s1/d.html": "x", "a/[x].html": "x", "a/x.html": "x"}
	if runtime.GOOS == "windows" {
		delete(tree, "s*/d.html")
	}
	root := build(t, tree)
	for _, hide := range [][]string{
		nil,
		{"secret.html"},
		{"a"},
		{"*.html"},
		{"s*"},
		{""},
		{"*"},
		{filepath.Join(root, "a")},
		{filepath.Join(root, "a") + "/"},
		{filepath.Join(root, "a", "b")},
		{filepath.Join(root, "a*")},
		{filepath.Join(root, "s*")},
		{filepath.Join(root, "*", "index.html")},
		{filepath.Join(root, "*", "*.html")},
		{filepath.Join(root, "a", "[x].html")},
		{filepath.Join(root, "a", "[bx]*")},
		{filepath.Join(root, "a", `\[x\].html`)},
		{filepath.Join(root, "secret.html"), "b"},
		{root},
		{root + "*"},
		{filepath.Dir(root)},
		{filepath.Base(root)},
		{"/"},
		{"/*"},
		{filepath.Join(root, "index.html")},
		{filepath.Join(root, "x", "..", "a", "index.html")},
	} {
		o := Options{Root: root, Hide: hide, Now: testNow}
		got, _ := scanAll(t, o)
		// file_server makes hidden paths absolute, which cleans them.
		for i, h := range o.Hide {
			if strings.Contains(h, separator) {
				o.Hide[i] = filepath.Clean(h)
			}
		}
		if want := newReference(o).pages(); !slices.Equal(got, want) {
			t.Errorf("hide %q: got %q, want %q", hide, paths(got), paths(want))
		}
	}
}

var randomNames = []string{
	"a", "b", "a b", "a%", "ab", "a!", "a-", "a0", "é", "\xe9", "index.html", "index.txt", "a.html", "b.html", "a", "B.HTML", "c.htm", "_x", "_x.html", ".h", ".h.html",
	"404.html", "node_modules", "x.txt", "a.html.html", "a#.html", "q?.html", "a.b.html", "z.xhtml", "index", "a\n.html", "~.html",
}

var utf8Names = slices.DeleteFunc(slices.Clone(randomNames), func(name string) bool { return !utf8.ValidString(name) })

// randomTree fills dir with files, folders, links and what is neither.
func randomTree(t testing.TB, rnd *rand.Rand, names []string, dir, outside string, depth int, links *int) {
	for range 3 + rnd.IntN(9) {
		name := names[rnd.IntN(len(names))]
		full := filepath.Join(dir, name)
		switch n := rnd.IntN(20); {
		case n < 6 && depth > 0:
			if os.Mkdir(full, 0o755) == nil {
				randomTree(t, rnd, names, full, outside, depth-1, links)
			}
		case n < 10 && *links > 0:
			*links--
			target := strings.Repeat("../", rnd.IntN(4)) + names[rnd.IntN(len(names))]
			if rnd.IntN(4) == 0 {
				target = filepath.Join(outside, names[rnd.IntN(len(names))])
			}
			os.Symlink(target, full)
		default:
			content := "x"
			if rnd.IntN(8) == 0 {
				content = ""
			}
			if _, err := os.Lstat(full); err == nil {
				continue
			}
			if os.WriteFile(full, []byte(content), 0o644) == nil {
				os.Chtimes(full, time.Time{}, testNow.Add(time.Duration(rnd.IntN(100)-90)*time.Hour))
			}
		}
	}
}

func TestAgainstReference(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	if n, err := strconv.Atoi(os.Getenv("FILES_TEST_ROUNDS")); err == nil {
		rounds = n
	}
	base := build(t, nil)
	for i := range rounds {
		rnd := rand.New(rand.NewPCG(1, uint64(i)))
		links := i % 12
		dir := filepath.Join(base, fmt.Sprint(i))
		root, outside := filepath.Join(dir, "root"), filepath.Join(dir, "outside")
		os.MkdirAll(root, 0o755)
		os.MkdirAll(outside, 0o755)
		none := 2
		names, scan := utf8Names, scanAll
		if i%3 == 0 {
			names, scan = randomNames, scanWorkers // an fs.FS has no names that are not UTF-8
		}
		randomTree(t, rnd, names, outside, root, 2, &none)
		randomTree(t, rnd, names, root, outside, 4, &links)
		for _, o := range []Options{
			{},
			{CleanURLs: true},
			{At: "/docs", Include: []string{"*"}, Exclude: []string{"*.txt", "/docs/a/*", "/docs/b"}, CleanURLs: true},
			{Hide: []string{"b", filepath.Join(root, "a"), filepath.Join(root, "*", "index.html")}, Include: []string{"*.html", "/_x/*", "/404.html", "/a/*"}},
		} {
			o.Root, o.Now = root, testNow
			got, _ := scan(t, o)
			ref := newReference(o)
			if want := ref.pages(); !slices.Equal(got, want) {
				t.Fatalf("round %d, %+v:\ngot  %q\nwant %q", i, o, paths(got), paths(want))
			}
		}
	}
}

func TestRootErrors(t *testing.T) {
	root := build(t, map[string]string{"file.html": "x", "loop": "->loop", "link": "->d", "d/a.html": "x", "to-file": "->file.html"})
	for _, c := range []struct {
		root string
		want error
	}{
		{"", fs.ErrNotExist},
		{"nowhere", fs.ErrNotExist},
		{"file.html", ErrNotFolder},
		{"to-file", ErrNotFolder},
		{"file.html/a", ErrNotFolder},
	} {
		name := c.root
		if name != "" {
			name = filepath.Join(root, name)
		}
		_, err := Scan(context.Background(), Options{Root: name}, func(page.Page) error { return nil })
		if !errors.Is(err, c.want) && (runtime.GOOS != "windows" || c.root != "file.html/a") {
			t.Errorf("root %q: got %v, want %v", c.root, err, c.want)
		}
	}
	if _, err := Scan(context.Background(), Options{Root: filepath.Join(root, "loop")}, func(page.Page) error { return nil }); err == nil {
		t.Error("a root that is a loop of links is no error")
	}
	if got, _ := scanAll(t, Options{Root: filepath.Join(root, "link")}); !slices.Equal(paths(got), []string{"/a.html"}) {
		t.Errorf("a root that is a link: got %q", paths(got))
	}
	for _, o := range []Options{{Include: []string{"/[a"}}, {Exclude: []string{"/[a"}}} {
		o.Root = root
		if _, err := Scan(context.Background(), o, func(page.Page) error { return nil }); !errors.Is(err, path.ErrBadPattern) {
			t.Errorf("got %v, want %v", err, path.ErrBadPattern)
		}
	}
	if _, err := Scan(context.Background(), Options{Root: root, At: "docs"}, func(page.Page) error { return nil }); !errors.Is(err, page.ErrRelative) {
		t.Errorf("got %v, want %v", err, page.ErrRelative)
	}
}

func TestRelativeRoot(t *testing.T) {
	root := build(t, map[string]string{"site/a.html": "x", "site/b/c.html": "x", "site/b/d.html": "->../a.html"})
	t.Chdir(root)
	for _, o := range []Options{
		{Root: "site"},
		{Root: "./site/"},
		{Root: "site", Hide: []string{filepath.Join(root, "nothing")}},
	} {
		if got, _ := scanAll(t, o); !slices.Equal(paths(got), []string{"/a.html", "/b/c.html"}) {
			t.Errorf("%+v: got %q", o, paths(got))
		}
	}
	o := Options{Root: "site", Hide: []string{filepath.Join(root, "site", "b")}}
	if got, _ := scanAll(t, o); !slices.Equal(paths(got), []string{"/a.html"}) {
		t.Errorf("%+v: got %q", o, paths(got))
	}
	t.Chdir(filepath.Join(root, "site"))
	if got, _ := scanAll(t, Options{Root: "."}); !slices.Equal(paths(got), []string{"/a.html", "/b/c.html"}) {
		t.Errorf("root \".\": got %q", paths(got))
	}
}

func TestRootOfAll(t *testing.T) {
	if runtime.GOOS == "windows" {
		return
	}
	dir := build(t, map[string]string{"a.html": "x", "b/index.html": "x", "c.html": "x", "l.html": "->a.html"})
	o := Options{Root: "/", Include: []string{dir + "/*"}, Hide: []string{filepath.Join(dir, "c.html")}}
	got, _ := scanAll(t, o)
	if want := []string{dir + "/a.html", dir + "/b/"}; !slices.Equal(paths(got), want) {
		t.Errorf("got %q, want %q", paths(got), want)
	}
}

func TestLinksOutOfTheRoot(t *testing.T) {
	base := build(t, map[string]string{
		"ext/one.html": "x", "ext/two/index.html": "x", "ext/two/back": "->../..", "ext/alias.html": "->one.html",
		"root/m": "->../ext", "root/b.html": "->../ext/one.html", "root/n/o": "->../../ext/two", "root/own.html": "x",
	})
	got, st := scanAll(t, Options{Root: filepath.Join(base, "root")})
	want := []string{"/b.html", "/m/two/", "/own.html"}
	// By way of m/two/back lies the base itself, with root and ext in it.
	want = slices.Insert(want, 1)
	if !slices.Equal(paths(got), want) {
		t.Errorf("got %q, want %q (%v)", paths(got), want, st.LeftOut)
	}
	if want := newReference(Options{Root: filepath.Join(base, "root"), Now: testNow}).pages(); !slices.Equal(got, want) {
		t.Errorf("got %q, want as the reference has %q", paths(got), paths(want))
	}
}

func TestLinksAmongFolders(t *testing.T) {
	// Ten folders with links to each other have 10! paths.
	tree := map[string]string{}
	for i := range 10 {
		tree[fmt.Sprintf(".d/%d/p%d.html", i, i)] = "x"
		tree[fmt.Sprintf("go%d", i)] = fmt.Sprintf("->.d/%d", i)
		for k := range 10 {
			tree[fmt.Sprintf(".d/%d/to%d", i, k)] = fmt.Sprintf("->../%d", k)
		}
	}
	root := build(t, tree)
	got, st := scanAll(t, Options{Root: root})
	if len(got) != 10 || st.LeftOut["folder linked too often"] == 0 || st.Folders > 1+10*maxEntered {
		t.Errorf("got %d pages, %+v", len(got), st)
	}
	if want := newReference(Options{Root: root, Now: testNow}).pages(); !slices.Equal(got, want) {
		t.Errorf("got %q, want as the reference has %q", paths(got), paths(want))
	}
}

func TestManyLinksToOneFile(t *testing.T) {
	tree := map[string]string{".t/target.html": "x"}
	for i := range 500 {
		tree[fmt.Sprintf("l/p%03d.html", i)] = "->../.t/target.html"
	}
	got, st := scanAll(t, Options{Root: build(t, tree)})
	if !slices.Equal(paths(got), []string{"/l/p000.html"}) || st.LeftOut["link to a listed page"] != 499 {
		t.Errorf("got %q, %v", paths(got), st.LeftOut)
	}
}

func TestHardLinks(t *testing.T) {
	root := build(t, map[string]string{"a.html": "x"})
	if err := os.Link(filepath.Join(root, "a.html"), filepath.Join(root, "b.html")); err != nil {
		t.Fatal(err)
	}
	if got, _ := scanAll(t, Options{Root: root}); len(got) != 2 {
		t.Errorf("got %q, want two pages", paths(got))
	}
}

func TestLargeFolder(t *testing.T) {
	root := build(t, nil)
	const n = 12_000
	for i := range n {
		if err := os.WriteFile(filepath.Join(root, fmt.Sprintf("p%d.html", i)), []byte("x")[:min(1, i%5)], 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, st := scanAll(t, Options{Root: root})
	if len(got)+st.LeftOut["empty"] != n || st.LeftOut["empty"] != (n+4)/5 {
		t.Errorf("got %d pages, %v", len(got), st.LeftOut)
	}
}

func TestDeepFolders(t *testing.T) {
	root := build(t, nil)
	dir := root
	for range maxDepth + 10 {
		dir = filepath.Join(dir, "d")
	}
	add(t, dir, map[string]string{"deep.html": "x"})
	add(t, root, map[string]string{"d/d/a.html": "x"})
	got, st := scanAll(t, Options{Root: root})
	if !slices.Equal(paths(got), []string{"/d/d/a.html"}) || st.LeftOut["folder too deep"] != 1 || st.Folders != maxDepth+1 {
		t.Errorf("got %q, %+v", paths(got), st)
	}
}

func TestReadAheadBound(t *testing.T) {
	tree := map[string]string{}
	for i := range 300 {
		tree[fmt.Sprintf("%d/%d/page with a long name %d.html", i%7, i%13, i)] = "x"
	}
	root := build(t, tree)
	want, _ := scanAll(t, Options{Root: root})
	for _, limit := range []int{0, 1, 3000} {
		s, err := newScan(context.Background(), Options{Root: root, Workers: 4, Now: testNow})
		if err != nil {
			t.Fatal(err)
		}
		s.limit = limit
		var got []page.Page
		err = s.run(func(p page.Page) error { got = append(got, p); return nil })
		s.stop()
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("limit %d: got %d pages, %v; want %d", limit, len(got), err, len(want))
		}
		if s.ahead != 0 || len(s.queue) != 0 {
			t.Errorf("limit %d: %d bytes and folders %v are left over", limit, s.ahead, s.queue)
		}
	}
}

// leaked waits for goroutines of this package to end, and returns those that do
// not.
func leaked() string {
	buf := make([]byte, 1<<20)
	var left string
	for range 1000 {
		left = ""
		for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(g, "files.(*scan)") && !strings.Contains(g, "testing.tRunner") {
				left += g + "\n\n"
			}
		}
		if left == "" {
			return ""
		}
		runtime.Gosched()
	}
	return left
}

func TestEndings(t *testing.T) {
	tree := map[string]string{}
	for i := range 2000 {
		tree[fmt.Sprintf("%02d/%02d/p%d.html", i%20, i%50, i)] = "x"
	}
	root := build(t, tree)
	failed := errors.New("no more")
	for _, workers := range []int{1, 2, 4} {
		for _, after := range []int{1, 2, 500, 1999} {
			n := 0
			st, err := Scan(context.Background(), Options{Root: root, Workers: workers}, func(page.Page) error {
				if n++; n == after {
					return failed
				}
				return nil
			})
			if err != failed || n != after || st.Pages != after {
				t.Errorf("got %v after %d pages, want %v after %d", err, n, failed, after)
			}
			ctx, cancel := context.WithCancel(context.Background())
			n = 0
			_, err = Scan(ctx, Options{Root: root, Workers: workers}, func(page.Page) error {
				if n++; n == after {
					cancel()
				}
				return nil
			})
			cancel()
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v after %d pages, want %v", err, n, context.Canceled)
			}
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := Scan(ctx, Options{Root: root, Workers: workers}, func(page.Page) error { return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
		func() {
			defer func() { recover() }()
			Scan(context.Background(), Options{Root: root, Workers: workers}, func(page.Page) error { panic("yield") })
		}()
	}
	if left := leaked(); left != "" {
		t.Errorf("goroutines are left:\n%s", left)
	}
}

// hookFS calls a function for each folder that is read.
type hookFS struct {
	fstest.MapFS
	hook func(name string)
}

func (h hookFS) ReadDir(name string) ([]fs.DirEntry, error) {
	h.hook(name)
	return h.MapFS.ReadDir(name)
}

func TestCancelWhileReading(t *testing.T) {
	tree := fstest.MapFS{"b/x.html": {Data: []byte("x"), Mode: 0o644}}
	for i := range 8192 {
		tree[fmt.Sprintf("a/p%d.html", i)] = &fstest.MapFile{Data: []byte("x"), Mode: 0o644}
	}
	for _, workers := range []int{1, 4} {
		for _, at := range []string{".", "a", "b"} {
			ctx, cancel := context.WithCancel(context.Background())
			fsys := hookFS{tree, func(name string) {
				if name == at {
					cancel()
				}
			}}
			if _, err := Scan(ctx, Options{FS: fsys, Root: ".", Workers: workers}, func(page.Page) error { return nil }); !errors.Is(err, context.Canceled) {
				t.Errorf("%d workers, at %s: got %v, want %v", workers, at, err, context.Canceled)
			}
			cancel()
		}
	}
	if left := leaked(); left != "" {
		t.Errorf("goroutines are left:\n%s", left)
	}
}

func TestVanishing(t *testing.T) {
	tree := map[string]string{}
	for i := range 3000 {
		tree[fmt.Sprintf("%02d/%02d/p%d.html", i%10, i%70, i)] = "x"
	}
	root := build(t, tree)
	started := make(chan struct{})
	deleted := make(chan struct{})
	go func() {
		defer close(deleted)
		<-started
		for i := 9; i >= 1; i-- {
			os.RemoveAll(filepath.Join(root, fmt.Sprintf("%02d", i)))
		}
	}()
	n := 0
	st, err := Scan(context.Background(), Options{Root: root, Workers: 4}, func(page.Page) error {
		if n++; n == 1 {
			close(started)
		}
		return nil
	})
	<-deleted
	if err != nil || st.LeftOut[Unreadable] > 0 || n < 300 {
		t.Errorf("got %d pages, %v, %v", n, st, err)
	}
}

// brokenFS fails for some paths.
// panickingFS panics where a name is read or looked at.
type panickingFS struct {
	fstest.MapFS
	at string
}

func (f panickingFS) check(name string) {
	if name == f.at {
		panic("thrown at " + name)
	}
}

func (f panickingFS) ReadDir(name string) ([]fs.DirEntry, error) {
	f.check(name)
	entries, err := f.MapFS.ReadDir(name)
	for i, e := range entries {
		entries[i] = panickingEntry{e, f, path.Join(name, e.Name())}
	}
	return entries, err
}

type panickingEntry struct {
	fs.DirEntry
	fsys panickingFS
	name string
}

func (e panickingEntry) Info() (fs.FileInfo, error) {
	e.fsys.check(e.name)
	return e.DirEntry.Info()
}

// TestScanOfPanickingFS: what a file system throws, in whichever goroutine, is the
// scan's error.
func TestScanOfPanickingFS(t *testing.T) {
	tree := fstest.MapFS{}
	for i := range 20 {
		tree[fmt.Sprintf("%02d/sub/x.html", i)] = &fstest.MapFile{Data: []byte("x"), Mode: 0o644}
	}
	for i := range 5000 {
		tree[fmt.Sprintf("large/%d.html", i)] = &fstest.MapFile{Data: []byte("x"), Mode: 0o644}
	}
	for _, at := range []string{".", "00", "10/sub", "19/sub", "19/sub/x.html", "large", "large/4096.html"} {
		for _, workers := range []int{1, 4} {
			_, err := Scan(t.Context(), Options{FS: panickingFS{tree, at}, Root: ".", Workers: workers}, func(page.Page) error { return nil })
			if err == nil || !strings.Contains(err.Error(), "thrown at "+at) {
				t.Errorf("%s, %d workers: got %v", at, workers, err)
			}
		}
	}
}

type brokenFS struct {
	fstest.MapFS
	broken map[string]error
}

func (b brokenFS) Open(name string) (fs.File, error) {
	if err := b.broken[name]; err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return b.MapFS.Open(name)
}

func (b brokenFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := b.broken[name]; err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return b.MapFS.ReadDir(name)
}

func TestFS(t *testing.T) {
	old := time.Date(1979, 1, 1, 0, 0, 0, 0, time.UTC)
	file := func(mod time.Time) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("x"), Mode: 0o644, ModTime: mod}
	}
	tree := fstest.MapFS{
		"www/index.html": file(testNow), "www/a/b.html": file(old), "www/c.html": file(testNow.Add(time.Second)), "www/d.html": {Mode: 0o644},
		"www/link.html": {Data: []byte("c.html"), Mode: fs.ModeSymlink | 0o777}, "www/e": {Data: []byte("../ext"), Mode: fs.ModeSymlink | 0o777}, "ext/x.html": file(testNow),
		"www/up.html": {Data: []byte("../../../etc/passwd"), Mode: fs.ModeSymlink | 0o777}, "www/f/g": {Data: []byte(".."), Mode: fs.ModeSymlink | 0o777},
		"www/broken/x.html": file(testNow), "www/denied/x.html": file(testNow), "www/pipe.html": {Mode: fs.ModeNamedPipe | 0o644},
	}
	fsys := brokenFS{tree, map[string]error{"www/broken": syscall.EIO, "www/denied": fs.ErrPermission}}
	for _, root := range []string{"www", "www/"} {
		got, st := scanAll(t, Options{FS: fsys, Root: root})
		if want := []string{"/", "/a/b.html", "/c.html", "/e/x.html"}; !slices.Equal(paths(got), want) {
			t.Errorf("got %q, want %q", paths(got), want)
		}
		if want := []int64{testNow.Unix(), 0, 0, testNow.Unix()}; !slices.EqualFunc(got, want, func(p page.Page, m int64) bool { return p.LastMod == m }) {
			t.Errorf("got %v, want times %v", got, want)
		}
		want := map[string]int{Unreadable: 2, "empty": 1, "not a regular file": 1, "link to a listed page": 1, "dangling link": 1, "link loop": 1}
		if !maps.Equal(st.LeftOut, want) || !slices.Equal(st.Unreadable, []string{"www/broken", "www/denied"}) {
			t.Errorf("got %+v, want %v", st, want)
		}
	}
	for name, want := range map[string]error{"none": fs.ErrNotExist, "www/c.html": ErrNotFolder, "www/broken": syscall.EIO, "www/denied": fs.ErrPermission} {
		if _, err := Scan(context.Background(), Options{FS: fsys, Root: name}, func(page.Page) error { return nil }); !errors.Is(err, want) {
			t.Errorf("root %s: got %v, want %v", name, err, want)
		}
	}
	fsys.broken["www/a"] = syscall.EMFILE
	for _, workers := range []int{1, 4} {
		if _, err := Scan(context.Background(), Options{FS: fsys, Root: "www", Workers: workers}, func(page.Page) error { return nil }); !errors.Is(err, syscall.EMFILE) {
			t.Errorf("got %v, want %v", err, syscall.EMFILE)
		}
	}
}

// plainFS hides what an fs.FS can do beyond Open.
type plainFS struct{ fs.FS }

func TestFSWithoutLinks(t *testing.T) {
	root := build(t, map[string]string{"a.html": "x", "b/c.html": "x", "b/up": "->..", "d": "->b", "e.html": "->a.html"})
	got, _ := scanAll(t, Options{FS: plainFS{os.DirFS(root)}, Root: "."})
	// Nothing tells which folder a link leads to, so that it is entered once.
	if want := []string{"/a.html", "/b/c.html", "/b/up/a.html", "/b/up/b/c.html", "/b/up/e.html", "/d/c.html", "/e.html"}; !slices.Equal(paths(got), want) {
		t.Errorf("got %q, want %q", paths(got), want)
	}
	got, _ = scanAll(t, Options{FS: os.DirFS(root), Root: "."})
	if want := []string{"/a.html", "/b/c.html"}; !slices.Equal(paths(got), want) {
		t.Errorf("got %q, want %q", paths(got), want)
	}
}

func TestFSAgainstReference(t *testing.T) {
	base := build(t, nil)
	for i := range 15 {
		rnd := rand.New(rand.NewPCG(2, uint64(i)))
		links := i
		root := filepath.Join(base, fmt.Sprint(i), "root")
		os.MkdirAll(root, 0o755)
		randomTree(t, rnd, utf8Names, root, root, 4, &links)
		got, _ := scanAll(t, Options{FS: os.DirFS(filepath.Dir(root)), Root: "root", CleanURLs: i%2 == 0})
		want := newReference(Options{FS: os.DirFS(root), Root: root, Now: testNow, CleanURLs: i%2 == 0}).pages()
		if !slices.Equal(got, want) {
			t.Fatalf("round %d:\ngot  %q\nwant %q", i, paths(got), paths(want))
		}
	}
}
