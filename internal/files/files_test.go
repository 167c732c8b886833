package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
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
			err := os.Symlink(filepath.FromSlash(target), full)
			if err != nil && runtime.GOOS == "windows" { // there it takes a privilege
				t.Skip(err)
			}
			if err != nil {
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

// scanAll runs a scan, and fails if its pages are not in order.
func scanAll(t testing.TB, o Options) ([]page.Page, Stats) {
	t.Helper()
	got, st, err := scanOnce(o)
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(got); i++ {
		if page.Compare(got[i-1], got[i]) >= 0 {
			t.Fatalf("%q is yielded before %q", got[i-1].Path, got[i].Path)
		}
	}
	return got, st
}

// scanBoth is scanAll for a tree without links, which must list the same as an fs.FS.
func scanBoth(t testing.TB, o Options) ([]page.Page, Stats) {
	t.Helper()
	want, wantStats := scanAll(t, o)
	// Hidden paths are those of the root's path, which is an absolute one of the operating system.
	o.FS = rootedFS{os.DirFS(o.Root), o.Root}
	got, st := scanAll(t, o)
	if !slices.Equal(withoutVersion(got), withoutVersion(want)) || !maps.Equal(st.LeftOut, wantStats.LeftOut) {
		t.Fatalf("as an fs.FS: got %q, %+v; want %q, %+v", paths(got), st, paths(want), wantStats)
	}
	return want, wantStats
}

// rootedFS has paths below a root, as that of the operating system has them.
type rootedFS struct {
	fs.FS
	root string
}

func (f rootedFS) Open(name string) (fs.File, error) {
	rel, err := filepath.Rel(f.root, filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	return f.FS.Open(filepath.ToSlash(rel))
}

// compile is a small path matcher: an asterisk at either end stands for anything.
func compile(patterns []string) func(string) bool {
	return func(p string) bool {
		return slices.ContainsFunc(patterns, func(pattern string) bool {
			p, pattern := strings.ToLower(page.Unescape(p)), strings.ToLower(pattern)
			head, atEnd := strings.CutSuffix(pattern, "*")
			tail, atStart := strings.CutPrefix(head, "*")
			switch {
			case atStart && atEnd:
				return strings.Contains(p, tail)
			case atStart:
				return strings.HasSuffix(p, tail)
			case atEnd:
				return strings.HasPrefix(p, head)
			}
			return p == pattern
		})
	}
}

func scanOnce(o Options) (got []page.Page, st Stats, err error) {
	if o.Include != nil {
		o.Includes = compile(o.Include)
	}
	o.Excludes = compile(o.Exclude)
	st, err = Scan(context.Background(), o, func(p page.Page) error {
		got = append(got, p)
		return nil
	})
	return got, st, err
}

func withoutVersion(pages []page.Page) []page.Page {
	pages = slices.Clone(pages)
	for i := range pages {
		pages[i].Version = 0
	}
	return pages
}

func paths(pages []page.Page) []string {
	out := make([]string, len(pages))
	for i, p := range pages {
		out[i] = p.Path
	}
	return out
}

type (
	tree map[string]string
	left map[string]int
)

// scanCase is what is listed of a tree.
type scanCase struct {
	name string
	o    Options // Root is below the tree
	tree tree
	want string // paths, with spaces between
	left left
}

func TestScan(t *testing.T) {
	const x = "some text"
	for _, c := range []scanCase{
		{"defaults", Options{},
			tree{"index.html": x, "a.html": x, "b.HTM": x, "c.xhtml": x, "d.txt": x, "e/": "", "f/index.html": x, "f/g.html": x, "f.html": x, "f-a.html": x},
			"/ /a.html /b.HTM /c.xhtml /f-a.html /f.html /f/ /f/g.html", left{"not included": 1}},
		{"at", Options{At: "/docs/%C3%A9", Include: []string{"/docs/é/*"}},
			tree{"index.html": x, "a/index.html": x},
			"/docs/%C3%A9/ /docs/%C3%A9/a/", nil},
		{"second index name", Options{Include: []string{"*.html", "*.txt"}},
			tree{"index.html": x, "index.txt": x, "a/index.txt": x, "b/index.html/c.html": x, "b/index.txt": x},
			"/ /a/ /b/index.html/c.html /b/index.txt /index.txt", nil},
		{"index names of one's own", Options{Index: []string{"home.html"}},
			tree{"index.html": x, "home.html": x, "a/index.html": x},
			"/ /a/index.html /index.html", nil},
		{"no index names", Options{Index: []string{}},
			tree{"index.html": x, "a/index.html": x},
			"/a/index.html /index.html", nil},
		{"hidden index", Options{Hide: []string{"index.html"}, Include: []string{"*"}},
			tree{"index.html": x, "index.txt": x},
			"/", left{"hidden": 1}},
		{"dangling index", Options{Include: []string{"*"}},
			tree{"index.html": "->nowhere", "index.txt": x},
			"/", left{"missing": 1}},
		{"dotfiles", Options{},
			tree{".a.html": x, ".b/c.html": x, "d.html": x, ".e": "->d.html", ".f": "->.b", "g": "->.b"},
			"/d.html /g/c.html", left{"dotfile": 4}},
		{"left out by default", Options{},
			tree{"404.html": x, "50x.html": x, "5xx.htm": x, "418.HTML": x, "399.html": x, "600.html": x, "404a.html": x, "google0123456789abcdef.html": x, "googlemaps.html": x, "yandex_0a1b2c3d4e5f.html": x, "baidu_verify_code-x1.html": x, "_a.html": x, "_b/c.html": x, "node_modules/d.html": x, "x/bower_components/e.html": x, "empty.html": ""},
			"/399.html /404a.html /600.html /_a.html /_b/c.html /empty.html /googlemaps.html", left{"error page": 4, "ownership file": 3, "dependency folder": 2}},
		{"included by name", Options{Include: []string{"/404.html", "/_B/*", "/a/_f.html", "*.html"}},
			tree{"404.html": x, "a/404.html": x, "_b/c.html": x, "_b/_d/e.html": x, "_f.html": x, "a/_f.html": x, "_h/i.html": x},
			"/404.html /_b/_d/e.html /_b/c.html /_f.html /_h/i.html /a/_f.html", left{"error page": 1}},
		{"exclude", Options{Exclude: []string{"/a/", "/b/index.html", "/d/*", "/C.html"}},
			tree{"a/index.html": x, "a/b.html": x, "b/index.html": x, "c.html": x, "d/e.html": x, "d/f/g.html": x, "dd.html": x},
			"/a/b.html /dd.html", left{"excluded": 4}},
		{"clean URLs", Options{Clean: true},
			tree{"index.html": x, "about.html": x, "b.html": x, "b": x, "c.html": x, "c/d.html": x, "e.htm": x, "f.html.html": x, "f.html": x, "g.html": x, "g": "->c", "h.html": x, "h": "->b", "i.html": x, "i": "->nowhere"},
			"/ /about /b.html /c /c/d /e.htm /f /f.html.html /g /h.html /i", left{"not included": 2, "missing": 1, "link to what is listed": 1}},
		{"clean URLs in patterns", Options{Clean: true, Exclude: []string{"/a", "/b.html", "/c"}},
			tree{"a.html": x, "b.html": x, "c.html": x, "c": x},
			"/c.html", left{"excluded": 2, "not included": 1}},
		{"link to a file", Options{},
			tree{"z.html": x, "a.html": "->z.html", "b/c.html": "->../z.html"},
			"/z.html", left{"link to what is listed": 2}},
		{"links to a dotfile", Options{},
			tree{".z.html": x, "b.html": "->.z.html", "a/c.html": "->../.z.html"},
			"/a/c.html", left{"link to what is listed": 1, "dotfile": 1}},
		{"link to a folder with a dot", Options{},
			tree{".z/a.html": x, ".z/b/index.html": x, "d": "->.z", "c": "->.z/b"},
			"/c/ /d/a.html /d/b/", left{"dotfile": 1}},
		{"volume of a ConfigMap", Options{},
			tree{"..2026/index.html": x, "..2026/a.html": x, "..2026/sub/b.html": x, "..data": "->..2026", "index.html": "->..data/index.html", "a.html": "->..data/a.html", "sub": "->..data/sub"},
			"/ /a.html /sub/b.html", left{"dotfile": 2}},
		{"loops", Options{},
			tree{"a/self": "->.", "a/root": "->..", "a/b.html": x, "c/d": "->../e", "e/f": "->../c", "c/1.html": x, "e/2.html": x, "x.html": "->y.html", "y.html": "->x.html", "z": "->z"},
			"/a/b.html /c/1.html /e/2.html", left{"missing": 3, "link to what is listed": 4}},
		{"front page of a version", Options{},
			tree{".v1/home.html": x, "index.html": "->.v1/home.html", "a.html": "->.v1/home.html", "b.html": "->a.html"},
			"/ /a.html", left{"link to what is listed": 1, "dotfile": 1}},
	} {
		t.Run(c.name, c.run)
	}
}

func (c scanCase) run(t *testing.T) {
	o := c.o
	o.Root = filepath.Join(build(t, c.tree), o.Root)
	read := scanBoth
	for name, content := range c.tree {
		// An fs.FS has no names that are not UTF-8.
		if strings.HasPrefix(content, "->") || !utf8.ValidString(name) {
			read = scanAll
		}
	}
	got, st := read(t, o)
	if s := strings.Join(paths(got), " "); s != c.want {
		t.Errorf("got  %s\nwant %s", s, c.want)
	}
	if !maps.Equal(st.LeftOut, c.left) {
		t.Errorf("left out: got %v, want %v", st.LeftOut, c.left)
	}
	wantTime := testNow.Add(-time.Hour).Unix()
	for _, p := range got {
		if p.FileTime != wantTime {
			t.Errorf("%s: got time %d, want %d", p.Path, p.FileTime, wantTime)
		}
	}
}

func TestHide(t *testing.T) {
	tree := tree{"index.html": "x", "secret.html": "x", "Caddyfile": "x", "a/index.html": "x", "a/secret.html": "x", "a/b/c.html": "x", "ab/c.html": "x", "s*/d.html": "x", "s1/d.html": "x", "a/[x].html": "x", "a/x.html": "x"}
	if runtime.GOOS == "windows" {
		delete(tree, "s*/d.html")
	}
	root := build(t, tree)
	for _, hide := range [][]string{
		nil, {"secret.html"}, {"a"}, {"*.html"}, {"s*"}, {"*"}, {filepath.Join(root, "a")},
		{filepath.Join(root, "a", "b")}, {filepath.Join(root, "a*")}, {filepath.Join(root, "s*")},
		{filepath.Join(root, "*", "index.html")}, {filepath.Join(root, "*", "*.html")}, {filepath.Join(root, "a", "[x].html")},
		{filepath.Join(root, "a", "[bx]*")}, {filepath.Join(root, "a", `\[x\].html`)}, {filepath.Join(root, "secret.html"), "b"},
		{root + "*"}, {"/"}, {"/*"}, {filepath.Join(root, "index.html")},
		{filepath.Join(root, "x", "..", "a", "index.html")},
	} {
		got, _ := scanBoth(t, Options{Root: root, Hide: hide})
		var want []string
		for _, name := range slices.Sorted(maps.Keys(tree)) {
			if filepath.Ext(name) == ".html" && !isHiddenByServer(filepath.Join(root, name), hide) {
				want = append(want, "/"+page.Escape(strings.TrimSuffix(name, "index.html")))
			}
		}
		slices.Sort(want)
		if !slices.Equal(paths(got), want) {
			t.Errorf("%q: got %q, want %q", hide, paths(got), want)
		}
	}
}

// isHiddenByServer is file_server's rule as Caddy 2.11 has it.
func isHiddenByServer(filename string, hide []string) bool {
	for _, h := range hide {
		if !strings.Contains(h, separator) {
			for _, c := range strings.Split(filename, separator) {
				if hidden, _ := filepath.Match(h, c); hidden {
					return true
				}
			}
		} else if after, ok := strings.CutPrefix(filename, h); ok && strings.HasPrefix(after, separator) {
			return true
		}
		if hidden, _ := filepath.Match(h, filename); hidden {
			return true
		}
	}
	return false
}

func TestRoots(t *testing.T) {
	root := build(t, tree{"file.html": "x", "link": "->d", "d/a.html": "x", "to-file": "->file.html"})
	for name, want := range map[string]error{
		"nowhere": fs.ErrNotExist, "file.html": syscall.ENOTDIR, "to-file": syscall.ENOTDIR, "file.html/a": syscall.ENOTDIR,
	} {
		_, _, err := scanOnce(Options{Root: filepath.Join(root, name)})
		if runtime.GOOS != "windows" && (!errors.Is(err, want) || !strings.Contains(err.Error(), filepath.Join(root, name))) {
			t.Errorf("root %s: got %v, want %v", name, err, want)
		}
	}
	t.Chdir(filepath.Join(root, "d"))
	for _, o := range []Options{{Root: "."}, {Root: "../d/"}, {Root: "../link"}, {Root: filepath.Join(root, "link")}} {
		if got, _ := scanAll(t, o); !slices.Equal(paths(got), []string{"/a.html"}) {
			t.Errorf("%+v: got %q", o, paths(got))
		}
	}
	if err := os.Symlink("/", filepath.Join(root, "all")); err != nil {
		return // on Windows it takes privileges
	}
	for _, all := range []string{"/", filepath.Join(root, "all")} {
		if _, _, err := scanOnce(Options{Root: all}); err == nil || !strings.Contains(err.Error(), "more than a site") {
			t.Errorf("root %s: got %v", all, err)
		}
	}
}

// TestLinks is of links out of the root, and of so many that not all paths through them can be followed.
func TestLinks(t *testing.T) {
	const x = "some text"
	among := tree{} // ten folders with links to each other have 10! paths
	for i := range 10 {
		among[fmt.Sprintf(".d/%d/p%d.html", i, i)] = x
		among[fmt.Sprintf("go%d", i)] = fmt.Sprintf("->.d/%d", i)
		for k := range 10 {
			among[fmt.Sprintf(".d/%d/to%d", i, k)] = fmt.Sprintf("->../%d", k)
		}
	}
	for _, c := range []scanCase{
		{"out of the root", Options{Root: "root"},
			tree{"ext/one.html": x, "ext/two/index.html": x, "ext/two/back": "->../..", "ext/two/in": "->../../root", "ext/alias.html": "->one.html",
				"root/m": "->../ext", "root/b.html": "->../ext/one.html", "root/n/o": "->../../ext/two", "root/own.html": x},
			"/b.html /m/one.html /m/two/ /n/o/ /own.html", left{"link to what is listed": 5}},
		{"among folders", Options{}, among,
			"/go0/p0.html /go0/to1/p1.html /go0/to1/to2/p2.html /go0/to1/to2/to3/p3.html /go0/to1/to2/to3/to4/p4.html /go0/to1/to2/to3/to4/to5/p5.html /go0/to1/to2/to3/to4/to5/to6/p6.html /go0/to1/to2/to3/to4/to5/to6/to7/p7.html /go0/to1/to2/to3/to4/to5/to6/to7/to8/p8.html /go0/to1/to2/to3/to4/to5/to6/to7/to8/to9/p9.html",
			left{"dotfile": 1, "link to what is listed": 100}},
		{"apart from folders between them", Options{Root: "root"}, tree{"ext/p.html": x, "root/a/link": "->../../ext", "root/a1/x": x, "root/a2/x": x, "root/b": "->../ext"},
			"/a/link/p.html", left{"link to what is listed": 1, "not included": 2}},
		{"to what is no page", Options{Root: "root"}, tree{"root/about.html": "->content/about.md", "root/content/about.md": x}, "/about.html", left{"not included": 1}},
		{"hard links", Options{}, tree{"a.html": x, "b.html": "=>a.html"}, "/a.html /b.html", nil},
	} {
		t.Run(c.name, c.run)
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

func (f hookFS) Open(name string) (fs.File, error) {
	if err := f.hook(name); err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	file, err := f.MapFS.Open(name)
	if folder, isFolder := file.(fs.ReadDirFile); isFolder {
		return hookFolder{folder, f, name}, err
	}
	return file, err
}

type hookFolder struct {
	fs.ReadDirFile
	fsys hookFS
	name string
}

func (f hookFolder) ReadDir(n int) ([]fs.DirEntry, error) {
	entries, err := f.ReadDirFile.ReadDir(n)
	for i, e := range entries {
		entries[i] = hookEntry{e, f.fsys, path.Join(f.name, e.Name())}
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

// TestFailing: a panic or the want of file descriptors, in whichever goroutine, is the scan's error, and so is what yield returns
// and the end of the context. Nothing is yielded then, and no goroutine is left.
func TestFailing(t *testing.T) {
	tree := fstest.MapFS{}
	for i := range 20 {
		tree[fmt.Sprintf("%02d/sub/x.html", i)] = &fstest.MapFile{Mode: 0o644}
	}
	for i := range 8192 {
		tree[fmt.Sprintf("large/%d.html", i)] = &fstest.MapFile{Mode: 0o644}
	}
	tree["link.html"] = &fstest.MapFile{Data: []byte("00/sub/x.html"), Mode: fs.ModeSymlink | 0o777}
	for _, at := range []string{".", "00", "10/sub", "19/sub", "link.html", "19/sub/x.html", "large", "large/4096.html", "page 1", "page 20", "page 8000"} {
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
			n := 0
			_, err := Scan(ctx, Options{FS: fsys}, func(page.Page) error {
				n++
				return fsys.hook(fmt.Sprint("page ", n))
			})
			cancel()
			if strings.HasPrefix(at, "page") && want != context.Canceled && fmt.Sprint("page ", n) != at {
				t.Errorf("%s: %v, and %d pages are yielded", at, want, n)
			}
			if !errors.Is(err, want) || want == errPanic && !strings.Contains(err.Error(), "thrown at "+at) {
				t.Errorf("%s: got %v, want %v", at, err, want)
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
	broken := map[string]error{"www/broken": syscall.EIO, "www/denied": fs.ErrPermission, "www/gone": fs.ErrNotExist, "www/gone.html": fs.ErrNotExist}
	fsys := hookFS{fstest.MapFS{
		"www/index.html": file(testNow), "www/a/b.html": file(testNow.Add(-time.Hour)), "www/c.html": file(testNow),
		"www/link.html": link("c.html"), "www/e": link("../ext"), "ext/x.html": file(testNow), "www/up.html": link("../../../etc/passwd"), "www/f/g": link(".."),
		"www/broken/x.html": file(testNow), "www/denied/x.html": file(testNow), "www/gone/x.html": file(testNow), "www/gone.html": file(testNow), "www/pipe.html": {Mode: fs.ModeNamedPipe | 0o644},
	}, func(name string) error { return broken[name] }}
	for _, root := range []string{"www", "www/"} {
		got, st := scanAll(t, Options{FS: fsys, Root: root})
		// Nothing tells which file it is that a link leads to.
		if want := []string{"/", "/a/b.html", "/c.html", "/link.html"}; !slices.Equal(paths(got), want) {
			t.Errorf("got %q, want %q", paths(got), want)
		}
		if want := []int64{testNow.Unix(), testNow.Add(-time.Hour).Unix(), testNow.Unix(), testNow.Unix()}; !slices.EqualFunc(got, want, func(p page.Page, m int64) bool { return p.FileTime == m }) {
			t.Errorf("got %v, want times %v", got, want)
		}
		want := map[string]int{Unreadable: 2, "not a regular file": 1, "link to an unknown folder": 2, "missing": 3}
		if !maps.Equal(st.LeftOut, want) || !slices.Equal(st.Unreadable, []string{"www/broken", "www/denied"}) {
			t.Errorf("got %+v, want %v", st, want)
		}
	}
	for name, want := range map[string]error{"none": fs.ErrNotExist, "www/c.html": syscall.ENOTDIR, "www/broken": syscall.EIO, "www/denied": fs.ErrPermission} {
		if _, _, err := scanOnce(Options{FS: fsys, Root: name}); !errors.Is(err, want) {
			t.Errorf("root %s: got %v, want %v", name, err, want)
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
	base := build(t, tree{"root/a.html": "one", "root/b/index.html": "one", "root/c.html": "->../other.html", "root/d.html": "one", "other.html": "one"})
	for _, o := range []Options{{Root: filepath.Join(base, "root")}, {FS: os.DirFS(base), Root: "root"}} {
		text := "longer" // elsewhere, time and size tell
		if runtime.GOOS == "linux" && o.FS == nil {
			text = "two"
		}
		before := versions(t, o)
		for _, name := range []string{"root/b/index.html", "other.html"} {
			full := filepath.Join(base, name)
			add(t, base, tree{name + "~": text})
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
	if got := versionOf(1_700_000_000_123_456_789, 1_700_000_001_000_000_005, 4096, 77); got != 3066884704 {
		t.Errorf("got %d: versions are stored", got)
	}
	tree := fstest.MapFS{
		"a.html": {Data: []byte("x"), ModTime: testNow}, "b.html": {Data: []byte("y"), ModTime: testNow},
		"c.html": {Data: []byte("xx"), ModTime: testNow}, "d.html": {Data: []byte("x"), ModTime: testNow.Add(-1)},
	}
	v := versions(t, Options{FS: tree})
	if v["/a.html"] != v["/b.html"] || v["/a.html"] == v["/c.html"] || v["/a.html"] == v["/d.html"] {
		t.Errorf("got %v: an fs.FS tells time and size", v)
	}
}

func TestTimeOf(t *testing.T) {
	root := build(t, map[string]string{"a,b.html": "", "c;d/index.html": "", "e+f/start.htm": "", "g&h/x.html": "", "index.html": ""})
	for _, test := range []struct {
		at, path string
		index    []string
		want     bool
	}{
		{"", "/a,b.html", nil, true},
		{"", "/a%2Cb.html", nil, true},
		{"", "/a,b", nil, true},
		{"", "/a,b/", nil, false},
		{"", "/c;d/", nil, true},
		{"", "/e+f/", []string{"start.htm"}, true},
		{"", "/g&h/", nil, false},
		{"", "/no,such.html", nil, false},
		{"", "/../a,b.html", nil, false},
		{"/x,y", "/x,y/a,b.html", nil, true},
		{"/x,y", "/a,b.html", nil, false},
		{"", "/", nil, true},
		{"/x,y", "/x,y/", nil, true},
	} {
		for name, o := range map[string]Options{
			"disk": {Root: root, At: test.at, Index: test.index},
			"FS":   {Root: ".", FS: os.DirFS(root), At: test.at, Index: test.index},
		} {
			if got := TimeOf(o, test.path) != 0; got != test.want {
				t.Errorf("%s: at %q, %s: got %t", name, test.at, test.path, got)
			}
		}
	}
}

// TestNoPage: some names say so anywhere, and some at the root, or in the folder of a language.
func TestNoPage(t *testing.T) {
	for want, paths := range map[string]string{
		errorPage: "404.html 400.htm 599.XHTML 50x.html 5XX.html 4x4.html 503.php docs/404.html " +
			"404 404/ de/404/ zh-Hant/50x/ offline de/Offline.html 200.html",
		ownershipFile: "google0123456789abcdef.html GOOGLE0123456789ABCDEF.HTML pinterest-1a2b3.html baidu_verify_codeva-AbCd.html docs/yandex_0123456789abcdef.html",
		listed: "399.html 600.html 4040.html 40.html 404.pdf 404.en.html 4ab.html google0123456789abcde.html google0123456789abcdeg.html " +
			"google0123456789abcdef.htm pinterest-boards.html baidu_verify_.html docs/ 404/a.html docs/404/ docs/offline.html",
	} {
		for path := range strings.FieldsSeq(paths) {
			if got := NoPage(path); got != want {
				t.Errorf("%s: got %q, want %q", path, got, want)
			}
		}
	}
	if got := NoPage(""); got != listed {
		t.Errorf("the root: got %q", got)
	}
}
