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
// content that begins with "->" a link, with "=>" a hard one, else the name is a file of that content.
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
		if target, ok := strings.CutPrefix(tree[name], "=>"); ok { // a hard link
			if err := os.Link(filepath.Join(root, target), full); err != nil {
				t.Fatal(err)
			}
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

// scanAll runs a scan with one worker and with four, and what the operating system has also
// as an fs.FS, and fails where they differ.
func scanAll(t testing.TB, o Options) ([]page.Page, Stats) {
	t.Helper()
	if o.Now.IsZero() {
		o.Now = testNow
	}
	want, wantStats, err := scanOnce(o)
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(want); i++ {
		if page.Compare(want[i-1], want[i]) >= 0 {
			t.Fatalf("%q is yielded before %q", want[i-1].Path, want[i].Path)
		}
	}
	o.Workers = 4
	got, st, err := scanOnce(o)
	if err != nil || !slices.Equal(got, want) || fmt.Sprint(st) != fmt.Sprint(wantStats) {
		t.Fatalf("4 workers: got %q, %+v, %v; want %q, %+v", paths(got), st, err, paths(want), wantStats)
	}
	isOdd := func(p page.Page) bool { return !utf8.ValidString(page.Unescape(p.Path)) }
	if o.FS != nil || slices.ContainsFunc(want, isOdd) {
		return want, wantStats // an fs.FS has no names that are not UTF-8
	}
	got, o.Compile = nil, compile
	s, err := newScan(context.Background(), o)
	if err == nil {
		s.readFS(os.DirFS(s.disk), ".")
		err = s.run(3, func(p page.Page) error { got = append(got, p); return nil })
	}
	if st = s.stats(); err != nil || !slices.Equal(withoutVersion(got), withoutVersion(want)) || fmt.Sprint(st) != fmt.Sprint(wantStats) {
		t.Fatalf("as an fs.FS: got %q, %+v, %v; want %q, %+v", paths(got), st, err, paths(want), wantStats)
	}
	return want, wantStats
}

func scanOnce(o Options) (got []page.Page, st Stats, err error) {
	o.Compile = compile
	st, err = Scan(context.Background(), o, func(p page.Page) error {
		got = append(got, p)
		return nil
	})
	if err == nil && st.Pages != len(got) {
		err = fmt.Errorf("got %d pages in the statistics, want %d", st.Pages, len(got))
	}
	return got, st, err
}

func withoutVersion(pages []page.Page) []page.Page {
	pages = slices.Clone(pages)
	for i := range pages {
		pages[i].Version = 0
	}
	return pages
}

// wantReference fails where pages are others than those of the reference.
func wantReference(t testing.TB, o Options, got []page.Page) {
	t.Helper()
	if o.Now.IsZero() {
		o.Now = testNow
	}
	if at, err := page.Canonical(o.At + "/"); err == nil {
		o.At = strings.TrimSuffix(at, "/")
	}
	if want := newReference(o).pages(); !slices.Equal(withoutVersion(got), want) {
		t.Fatalf("%+v:\ngot  %q\nwant %q", o, paths(got), paths(want))
	}
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
			want: "/399.html /404a.html /600.html /_a.html /_b/c.html /empty.html /googlemaps.html",
			out:  map[string]int{"error page": 4, "ownership file": 3, "dependency folder": 2},
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
			out:  map[string]int{"not included": 2, "dangling link": 1, "link to what is listed": 1},
		},
		{
			name: "clean URLs, but not beside folders",
			tree: map[string]string{"a.html": x, "b.html": x, "b/c.html": x, "d.html": x, "d": "->b", "e.html": x, "e": x, "f.html.html": x, "f.html/g.html": x},
			o:    Options{CleanURLs: true, KeepBesideFolders: true},
			want: "/a /b.html /b/c /d.html /e.html /f.html.html /f.html/g",
			out:  map[string]int{"not included": 1, "link to what is listed": 1},
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
			out:  map[string]int{"link to what is listed": 2},
		},
		{
			name: "links to a file that is not listed by its real path",
			tree: map[string]string{".z.html": x, "b.html": "->.z.html", "a/c.html": "->../.z.html", "y": x, "y.html": "->y", "_p/q.html": x, "q.html": "->_p/q.html"},
			want: "/_p/q.html /a/c.html /y.html",
			out:  map[string]int{"link to what is listed": 2, "dotfile": 1, "not included": 1},
		},
		{
			name: "link to a folder",
			tree: map[string]string{"z/a.html": x, "z/index.html": x, "b": "->z", "c/d": "->../z"},
			want: "/z/ /z/a.html",
			out:  map[string]int{"link to what is listed": 2},
		},
		{
			name: "link to a folder with a dot",
			tree: map[string]string{".z/a.html": x, ".z/b/index.html": x, "d": "->.z", "c": "->.z/b"},
			want: "/c/ /d/a.html",
			out:  map[string]int{"link to what is listed": 1, "dotfile": 1},
		},
		{
			name: "loops",
			tree: map[string]string{"a/self": "->.", "a/root": "->..", "a/b.html": x, "c/d": "->../e", "e/f": "->../c", "c/1.html": x, "e/2.html": x, "x.html": "->y.html", "y.html": "->x.html", "z": "->z"},
			want: "/a/b.html /c/1.html /e/2.html",
			out:  map[string]int{"link loop": 3, "link to what is listed": 4},
		},
		{
			name: "front page behind a link",
			tree: map[string]string{"index.html": "->home.html", "home.html": x, "a/index.html": "->../home.html"},
			want: "/ /home.html",
			out:  map[string]int{"link to what is listed": 1},
		},
		{
			name: "front page of a version",
			tree: map[string]string{".v1/home.html": x, "index.html": "->.v1/home.html", "a.html": "->.v1/home.html", "b.html": "->a.html"},
			want: "/ /a.html",
			out:  map[string]int{"link to what is listed": 1, "dotfile": 1},
		},
		{
			name: "link to an index file",
			tree: map[string]string{"a/index.html": x, "b.html": "->a/index.html", "c/index.html": x, "d.html": "->c/index.html"},
			o:    Options{Exclude: []string{"/c/"}},
			want: "/a/ /d.html",
			out:  map[string]int{"link to what is listed": 1, "excluded": 1},
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
	wantReference(t, o, got)
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
		o := Options{Root: root, Hide: hide}
		got, _ := scanAll(t, o)
		// file_server makes hidden paths absolute, which cleans them.
		for i, h := range o.Hide {
			if strings.Contains(h, separator) {
				o.Hide[i] = filepath.Clean(h)
			}
		}
		wantReference(t, o, got)
	}
}

var randomNames = []string{
	"a", "b", "a b", "a%", "ab", "a!", "a-", "a0", "é", "~", "index.html", "index.txt", "a.html", "b.html", "a", "B.HTML", "c.htm", "_x", "_x.html", ".h", ".h.html",
	"404.html", "node_modules", "x.txt", "a.html.html", "a#.html", "q?.html", "a.b.html", "z.xhtml", "index", "a\n.html", "~.html",
}

// randomTree fills dir with files, folders, links and what is neither.
func randomTree(rnd *rand.Rand, dir, outside string, depth int, links *int) {
	for range 3 + rnd.IntN(9) {
		name := randomNames[rnd.IntN(len(randomNames))]
		full := filepath.Join(dir, name)
		switch n := rnd.IntN(20); {
		case n < 6 && depth > 0:
			if os.Mkdir(full, 0o755) == nil {
				randomTree(rnd, full, outside, depth-1, links)
			}
		case n < 10 && *links > 0:
			*links--
			target := strings.Repeat("../", rnd.IntN(4)) + randomNames[rnd.IntN(len(randomNames))]
			if rnd.IntN(4) == 0 {
				target = filepath.Join(outside, randomNames[rnd.IntN(len(randomNames))])
			}
			os.Symlink(target, full)
		default:
			if _, err := os.Lstat(full); err == nil {
				continue
			}
			if os.WriteFile(full, []byte("x"), 0o644) == nil {
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
		links, none := i%12, 2
		root, outside := filepath.Join(base, fmt.Sprint(i), "root"), filepath.Join(base, fmt.Sprint(i), "outside")
		os.MkdirAll(root, 0o755)
		os.MkdirAll(outside, 0o755)
		randomTree(rnd, outside, root, 2, &none)
		randomTree(rnd, root, outside, 4, &links)
		for _, o := range []Options{
			{},
			{CleanURLs: true},
			{CleanURLs: true, KeepBesideFolders: true},
			{At: "/docs", Include: []string{"*"}, Exclude: []string{"*.txt", "/docs/a/*", "/docs/b"}, CleanURLs: true},
			{Hide: []string{"b", filepath.Join(root, "a"), filepath.Join(root, "*", "index.html")}, Include: []string{"*.html", "/_x/*", "/404.html", "/a/*"}},
		} {
			o.Root = root
			got, _ := scanAll(t, o)
			wantReference(t, o, got)
		}
	}
}

func TestRoots(t *testing.T) {
	root := build(t, map[string]string{"file.html": "x", "loop": "->loop", "link": "->d", "d/a.html": "x", "to-file": "->file.html"})
	for name, want := range map[string]error{
		"nowhere": fs.ErrNotExist, "file.html": ErrNotFolder, "to-file": ErrNotFolder, "file.html/a": ErrNotFolder, "loop": syscall.ELOOP,
	} {
		_, _, err := scanOnce(Options{Root: filepath.Join(root, name)})
		if runtime.GOOS != "windows" && (!errors.Is(err, want) || !strings.Contains(err.Error(), filepath.Join(root, name))) {
			t.Errorf("root %s: got %v, want %v", name, err, want)
		}
	}
	if _, _, err := scanOnce(Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no root: got %v, want %v", err, fs.ErrNotExist)
	}
	if _, _, err := scanOnce(Options{Root: root, At: "docs"}); !errors.Is(err, page.ErrRelative) {
		t.Errorf("got %v, want %v", err, page.ErrRelative)
	}
	t.Chdir(filepath.Join(root, "d"))
	for _, o := range []Options{{Root: "."}, {Root: "../d/"}, {Root: "../link"}, {Root: filepath.Join(root, "link")}, {Root: ".", Hide: []string{"./b.html"}}} {
		if got, _ := scanAll(t, o); !slices.Equal(paths(got), []string{"/a.html"}) {
			t.Errorf("%+v: got %q", o, paths(got))
		}
	}
	if got, _ := scanAll(t, Options{Root: ".", Hide: []string{"./a.html"}}); len(got) > 0 {
		t.Errorf("hidden by a relative path: got %q", paths(got))
	}
	if runtime.GOOS == "windows" {
		return
	}
	o := Options{Root: "/", Include: []string{root + "/d/*"}, Hide: []string{filepath.Join(root, "d", "b.html")}}
	if got, _ := scanAll(t, o); !slices.Equal(paths(got), []string{root + "/d/a.html"}) {
		t.Errorf("root of all: got %q", paths(got))
	}
}

func TestLinks(t *testing.T) {
	among := map[string]string{} // ten folders with links to each other have 10! paths
	for i := range 10 {
		among[fmt.Sprintf("root/.d/%d/p%d.html", i, i)] = "x"
		among[fmt.Sprintf("root/go%d", i)] = fmt.Sprintf("->.d/%d", i)
		for k := range 10 {
			among[fmt.Sprintf("root/.d/%d/to%d", i, k)] = fmt.Sprintf("->../%d", k)
		}
	}
	many := map[string]string{"root/.t/target.html": "x"}
	for i := range 500 {
		many[fmt.Sprintf("root/l/p%03d.html", i)] = "->../.t/target.html"
	}
	for name, c := range map[string]struct {
		tree map[string]string
		want []string
	}{
		"out of the root": {map[string]string{
			"ext/one.html": "x", "ext/two/index.html": "x", "ext/two/back": "->../..", "ext/alias.html": "->one.html",
			"root/m": "->../ext", "root/b.html": "->../ext/one.html", "root/n/o": "->../../ext/two", "root/own.html": "x",
		}, []string{"/b.html", "/m/two/", "/own.html"}},
		"among folders":    {among, []string{"/go0/p0.html", "/go0/to1/p1.html", "/go0/to1/to2/p2.html"}},
		"many to one file": {many, []string{"/l/p000.html"}},
		"hard links":       {map[string]string{"root/a.html": "x", "root/b.html": "=>root/a.html"}, []string{"/a.html", "/b.html"}},
	} {
		root := filepath.Join(build(t, c.tree), "root")
		got, st := scanAll(t, Options{Root: root})
		if len(got) < len(c.want) || !slices.Equal(paths(got)[:len(c.want)], c.want) || len(got) > 10 || st.Folders > 200 {
			t.Errorf("%s: got %q of %d folders, want %q", name, paths(got), st.Folders, c.want)
		}
		wantReference(t, Options{Root: root}, got)
	}
}

func TestLargeFolder(t *testing.T) {
	tree := fstest.MapFS{}
	const n = 12_000
	for i := range n {
		tree[fmt.Sprintf("p%d.html", i)] = &fstest.MapFile{Mode: 0o644}
	}
	tree["sub/"+strings.Repeat("long", 10_000)+".html"] = &fstest.MapFile{Mode: 0o644}
	if got, _ := scanAll(t, Options{FS: tree}); len(got) != n+1 {
		t.Errorf("got %d pages, want %d", len(got), n+1)
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
		s, err := newScan(context.Background(), Options{Root: root, Now: testNow})
		if err != nil {
			t.Fatal(err)
		}
		s.limit = limit
		var got []page.Page
		err = s.run(3, func(p page.Page) error { got = append(got, p); return nil })
		if err != nil || !slices.Equal(got, want) || s.ahead != 0 || len(s.queue) != 0 {
			t.Errorf("limit %d: got %d pages, %v, and %d bytes and %d folders are left over; want %d", limit, len(got), err, s.ahead, len(s.queue), len(want))
		}
	}
}

// leaked waits for goroutines of this package to end, and returns those that do
// not.
func leaked() (left string) {
	buf := make([]byte, 1<<20)
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

// TestEndings: a scan ends with the error of yield, with its context, and with a panic, and
// leaves no goroutine.
func TestEndings(t *testing.T) {
	tree := map[string]string{}
	for i := range 2000 {
		tree[fmt.Sprintf("%02d/%02d/p%d.html", i%20, i%50, i)] = "x"
	}
	root := build(t, tree)
	failed := errors.New("no more")
	for _, workers := range []int{1, 2, 4} {
		for _, after := range []int{0, 1, 2, 500, 1999} {
			for _, end := range []error{failed, context.Canceled, errPanic} {
				ctx, cancel := context.WithCancel(context.Background())
				n := 0
				var st Stats
				var err error
				if after == 0 {
					cancel()
				}
				func() {
					defer func() {
						if v := recover(); v != nil {
							err = v.(error)
						}
					}()
					st, err = Scan(ctx, Options{Root: root, Workers: workers}, func(page.Page) error {
						switch n++; {
						case n != after:
						case end == failed:
							return failed
						case end == errPanic:
							panic(errPanic)
						default:
							cancel()
						}
						return nil
					})
				}()
				cancel()
				if after == 0 {
					end = context.Canceled
				}
				if !errors.Is(err, end) || end == failed && (n != after || st.Pages != after) {
					t.Errorf("got %v after %d pages, want %v after %d", err, n, end, after)
				}
			}
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
	started, deleted := make(chan struct{}), make(chan struct{})
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

// hookFS calls a function before each name that is opened, read or looked at. Its error is
// that of the call.
type hookFS struct {
	fstest.MapFS
	hook func(name string) error
}

func (f hookFS) Stat(name string) (fs.FileInfo, error) {
	if err := f.hook(name); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return f.MapFS.Stat(name)
}

func (f hookFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := f.hook(name); err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	entries, err := f.MapFS.ReadDir(name)
	for i, e := range entries {
		entries[i] = hookEntry{e, f, path.Join(name, e.Name())}
	}
	return entries, err
}

type hookEntry struct {
	fs.DirEntry
	fsys hookFS
	name string
}

func (e hookEntry) Info() (fs.FileInfo, error) {
	if err := e.fsys.hook(e.name); err != nil {
		return nil, err
	}
	return e.DirEntry.Info()
}

// TestFailingFS: a panic or the want of file descriptors, in whichever goroutine, is the
// scan's error, and so is the end of its context.
func TestFailingFS(t *testing.T) {
	tree := fstest.MapFS{}
	for i := range 20 {
		tree[fmt.Sprintf("%02d/sub/x.html", i)] = &fstest.MapFile{Mode: 0o644}
	}
	for i := range 8192 {
		tree[fmt.Sprintf("large/%d.html", i)] = &fstest.MapFile{Mode: 0o644}
	}
	for _, at := range []string{".", "00", "10/sub", "19/sub", "19/sub/x.html", "large", "large/4096.html"} {
		for _, workers := range []int{1, 4} {
			for _, want := range []error{errPanic, syscall.EMFILE, context.Canceled} {
				ctx, cancel := context.WithCancel(t.Context())
				fsys := hookFS{tree, func(name string) error {
					switch {
					case name != at:
					case want == errPanic:
						panic("thrown at " + name)
					case want == context.Canceled:
						cancel()
					default:
						return want
					}
					return nil
				}}
				_, err := Scan(ctx, Options{FS: fsys, Workers: workers}, func(page.Page) error { return nil })
				cancel()
				if !errors.Is(err, want) || want == errPanic && !strings.Contains(err.Error(), "thrown at "+at) {
					t.Errorf("%s, %d workers: got %v, want %v", at, workers, err, want)
				}
			}
		}
	}
	if left := leaked(); left != "" {
		t.Errorf("goroutines are left:\n%s", left)
	}
}

func TestFS(t *testing.T) {
	file := func(mod time.Time) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("x"), Mode: 0o644, ModTime: mod}
	}
	link := func(target string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink | 0o777}
	}
	broken := map[string]error{"www/broken": syscall.EIO, "www/denied": fs.ErrPermission}
	fsys := hookFS{fstest.MapFS{
		"www/index.html": file(testNow), "www/a/b.html": file(time.Date(1979, 1, 1, 0, 0, 0, 0, time.UTC)), "www/c.html": file(testNow.Add(time.Second)),
		"www/link.html": link("c.html"), "www/e": link("../ext"), "ext/x.html": file(testNow), "www/up.html": link("../../../etc/passwd"), "www/f/g": link(".."),
		"www/broken/x.html": file(testNow), "www/denied/x.html": file(testNow), "www/pipe.html": {Mode: fs.ModeNamedPipe | 0o644},
	}, func(name string) error { return broken[name] }}
	for _, root := range []string{"www", "www/"} {
		got, st := scanAll(t, Options{FS: fsys, Root: root})
		// Nothing tells which file it is that a link leads to.
		if want := []string{"/", "/a/b.html", "/c.html", "/link.html"}; !slices.Equal(paths(got), want) {
			t.Errorf("got %q, want %q", paths(got), want)
		}
		if want := []int64{testNow.Unix(), 0, 0, 0}; !slices.EqualFunc(got, want, func(p page.Page, m int64) bool { return p.LastMod == m }) {
			t.Errorf("got %v, want times %v", got, want)
		}
		want := map[string]int{Unreadable: 2, "not a regular file": 1, "link to an unknown folder": 2, "dangling link": 1}
		if !maps.Equal(st.LeftOut, want) || !slices.Equal(st.Unreadable, []string{"www/broken", "www/denied"}) {
			t.Errorf("got %+v, want %v", st, want)
		}
	}
	for name, want := range map[string]error{"none": fs.ErrNotExist, "www/c.html": ErrNotFolder, "www/broken": syscall.EIO, "www/denied": fs.ErrPermission} {
		if _, _, err := scanOnce(Options{FS: fsys, Root: name}); !errors.Is(err, want) {
			t.Errorf("root %s: got %v, want %v", name, err, want)
		}
	}
}

// TestVersionOf keeps the numbers: they are stored.
func TestVersionOf(t *testing.T) {
	for _, c := range []struct {
		mod, modNsec, change, changeNsec, size int64
		inode                                  uint64
		want                                   uint32
	}{
		{0, 0, 0, 0, 0, 0, 3925968017},
		{1_700_000_000, 123_456_789, 1_700_000_001, 5, 4096, 77, 3066884704},
		{-1, 0, 0, 0, -1, 1<<64 - 1, 1158396030},
		{1 << 62, 1 << 62, 0, 0, 1 << 62, 1 << 63, 262177270},
	} {
		if got := versionOf(c.mod, c.modNsec, c.change, c.changeNsec, c.size, c.inode); got != c.want {
			t.Errorf("%+v: got %d", c, got)
		}
	}
}

func versions(t *testing.T, o Options) map[string]uint32 {
	t.Helper()
	got, _ := scanAll(t, o)
	all := make(map[string]uint32)
	for _, p := range got {
		all[p.Path] = p.Version
	}
	return all
}

func TestVersionFollowsTheFile(t *testing.T) {
	base := build(t, map[string]string{"root/a.html": "one", "root/b/index.html": "one", "root/c.html": "->../other.html", "root/d.html": "one", "other.html": "one"})
	for _, o := range []Options{{Root: filepath.Join(base, "root")}, {FS: os.DirFS(base), Root: "root"}} {
		before := versions(t, o)
		for _, name := range []string{"root/b/index.html", "other.html"} {
			full := filepath.Join(base, name)
			add(t, base, map[string]string{name + "~": "two"})
			if err := os.Rename(full+"~", full); err != nil {
				t.Fatal(err)
			}
		}
		after := versions(t, o)
		for path, changed := range map[string]bool{"/a.html": false, "/b/": true, "/c.html": true, "/d.html": false} {
			if got := before[path] != after[path]; got != changed || after[path] == 0 {
				t.Errorf("%s: changed %t, want %t", path, got, changed)
			}
		}
	}
	tree := fstest.MapFS{
		"a.html": {Data: []byte("x"), ModTime: testNow}, "b.html": {Data: []byte("y"), ModTime: testNow},
		"c.html": {Data: []byte("xx"), ModTime: testNow}, "d.html": {Data: []byte("x"), ModTime: testNow.Add(-1)},
	}
	for _, now := range []time.Time{testNow, testNow.Add(-time.Hour)} { // a time that is not believed is part of it
		v := versions(t, Options{FS: tree, Now: now})
		if v["/a.html"] != v["/b.html"] || v["/a.html"] == v["/c.html"] || v["/a.html"] == v["/d.html"] {
			t.Errorf("got %v: an fs.FS tells time and size", v)
		}
	}
}
