package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// read opens in every way there is, and fails where they differ.
func read(t testing.TB, o Options, path string) (string, FileInfo, error) {
	t.Helper()
	if o.Now.IsZero() {
		o.Now = testNow
	}
	opener, err := NewOpener(o)
	if err != nil {
		t.Fatal(err)
	}
	text, info, err := readWith(t, opener, path)
	if o.FS == nil {
		opener.tree = osTree{}
		again, againInfo, againErr := readWith(t, opener, path)
		if again != text || againInfo != info || (againErr == nil) != (err == nil) || errors.Is(againErr, fs.ErrNotExist) != errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("%q: portable: got %q, %+v, %v, want %q, %+v, %v", path, again, againInfo, againErr, text, info, err)
		}
	}
	return text, info, err
}

func readWith(t testing.TB, opener *Opener, path string) (string, FileInfo, error) {
	t.Helper()
	data, info, err := opener.ReadFile(path, nil, 1<<20)
	f, openErr := opener.Open(path)
	if (err == nil) != (openErr == nil) {
		t.Fatalf("%q: Open: %v, ReadFile: %v", path, openErr, err)
	}
	if openErr != nil {
		return "", info, err
	}
	defer f.Close()
	text, readErr := io.ReadAll(f)
	if readErr != nil || !bytes.Equal(text, data) || f.Size() != info.Size || f.ModTime() != info.ModTime || f.Version() != info.Version || info.More {
		t.Fatalf("%q: Open: %q, %+v, %v, ReadFile: %q, %+v", path, text, f.info, readErr, data, info)
	}
	return string(data), info, nil
}

func TestOpen(t *testing.T) {
	root := build(t, map[string]string{
		"site/index.html": "home", "site/a b.html": "a b", "site/é/x&y.html": "x&y", "site/\xff.html": "ff", "site/100%25.html": "percent",
		"site/about.html": "about", "site/both": "both", "site/both.html": "both.html", "site/beside.html": "beside", "site/beside/x.html": "x",
		"site/a.html.html": "twice", "site/.hidden.html": "hidden", "site/.git/x.html": "git", "site/d/index.txt": "index.txt", "site/e/index.html/x": "x", "site/e/index.txt": "e",
		"site/secret.html": "secret", "site/s/x.html": "s", "site/empty.html": "", "site/link.html": "->../out.html", "out.html": "out", "site/to": "->../other", "other/in.html": "in",
		"site/gone.html": "->nowhere", "site/loop.html": "->loop.html", "site/_x/a.html": "under", "site/x.txt": "text", "site/f/index.html": "->nowhere", "site/f/index.txt": "f",
		"site/dangling": "->nowhere", "site/dangling.html": "stem", "site/dotted/..x": "x", "site/a\\b.html": "backslash",
	})
	plain := Options{Root: filepath.Join(root, "site"), Hide: []string{"secret*", filepath.Join(root, "site", "s")}, Exclude: []string{"/x.txt"}}
	clean := plain
	clean.CleanURLs = true
	keep := clean
	keep.KeepBesideFolders = true
	at := plain
	at.At = "/docs/%c3%a9"
	own := plain
	own.Index = []string{"none.html", "about.html", "index.html"}
	bare := plain
	bare.Index = []string{}
	for _, c := range []struct {
		o    Options
		path string
		want string // "": not found
	}{
		{plain, "/", "home"},
		{plain, "/index.html", "home"},
		{plain, "/a%20b.html", "a b"},
		{plain, "/a b.html", "a b"},
		{plain, "/%C3%A9/x&y.html", "x&y"},
		{plain, "/%c3%a9/x%26y.html", "x&y"},
		{plain, "/%FF.html", "ff"},
		{plain, "/100%2525.html", "percent"},
		{plain, "/100%25.html", ""},
		{plain, "/about.html", "about"},
		{plain, "/about", ""},
		{plain, "/link.html", "out"},
		{plain, "/to/in.html", "in"},
		{plain, "/d/", "index.txt"},
		{plain, "/f/", "f"},
		{plain, "/e/", ""},
		{plain, "/to/", ""},
		{plain, "/_x/a.html", "under"},
		{plain, "/x.txt", "text"},
		{clean, "/about", "about"},
		{clean, "/about.html", "about"},
		{clean, "/both", "both"},
		{clean, "/beside", "beside"},
		{clean, "/beside/x", "x"},
		{clean, "/a.html", "twice"},
		{clean, "/link", "out"},
		{clean, "/dangling", "stem"},
		{clean, "/secret", ""},
		{keep, "/beside", ""},
		{keep, "/beside.html", "beside"},
		{at, "/docs/%C3%A9/about.html", "about"},
		{at, "/docs/%C3%A9/", "home"},
		{at, "/docs/%C3%A9", ""},
		{at, "/about.html", ""},
		{at, "/", ""},
		{own, "/", "about"},
		{bare, "/", ""},
		{bare, "/index.html", "home"},

		{plain, "", ""},
		{plain, "about.html", ""},
		{plain, "//about.html", ""},
		{plain, "/none.html", ""},
		{plain, "/about.html/", ""},
		{plain, "/about.html/x", ""},
		{plain, "/about.html?x=1", ""},
		{plain, "/?", ""},
		{plain, "/about.html#x", ""},
		{plain, "/d", ""},
		{plain, "/secret.html", ""},
		{plain, "/s/x.html", ""},
		{plain, "/.hidden.html", ""},
		{plain, "/%2Ehidden.html", ""},
		{plain, "/.git/x.html", ""},
		{plain, "/dotted/..x", ""},
		{plain, "/gone.html", ""},
		{plain, "/loop.html", ""},
		{plain, "/../out.html", ""},
		{plain, "/%2e%2e/out.html", ""},
		{plain, "/d/../about.html", ""},
		{plain, "/d/%2E%2E/about.html", ""},
		{plain, "/./about.html", ""},
		{plain, "/..%2Fout.html", ""},
		{plain, "/d%2F..%2Fabout.html", ""},
		{plain, "/%2Fabout.html", ""},
		{plain, "/..%5Cout.html", ""},
		{plain, `/..\out.html`, ""},
		{plain, `/d\..\..\out.html`, ""},
		{plain, "/about.html%00", ""},
		{plain, "/about.html\x00", ""},
		{plain, "/about.html%00.html", ""},
		{plain, "/about%2ehtm%6C", "about"},
		{plain, "/about.html%", ""},
		{plain, "/about.html%4", ""},
		{plain, "/about.html%zz", ""},
		{plain, "/" + strings.Repeat("a", 300), ""},
		{plain, "/" + strings.Repeat("a/", 3000) + "b", ""},
		{plain, "/" + strings.Repeat("a/", 300), ""},
	} {
		text, info, err := read(t, c.o, c.path)
		if text != c.want || (err == nil) != (c.want != "") || err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: got %q, %v, want %q", c.path, text, err, c.want)
		}
		if err == nil && (info.Size != int64(len(text)) || info.ModTime != testNow.Unix()-3600 || info.Version == 0) {
			t.Errorf("%q: got %+v", c.path, info)
		}
	}
	if text, info, err := read(t, plain, "/empty.html"); text != "" || err != nil || info.Version == 0 {
		t.Errorf("empty: got %q, %+v, %v", text, info, err)
	}
	if filepath.Separator == '/' {
		if text, _, err := read(t, plain, "/a%5Cb.html"); text != "backslash" || err != nil {
			t.Errorf("backslash: got %q, %v", text, err)
		}
	}
	if _, _, err := read(t, Options{Root: root, Hide: []string{root}}, "/out.html"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a hidden root: got %v", err)
	}
	for _, o := range []Options{{}, {Root: root, At: "x"}} {
		if _, err := Open(o, "/"); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
	f, err := Open(plain, "/")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err == nil {
		t.Error("closed twice")
	}
}

func TestOpenRelativeRoot(t *testing.T) {
	t.Chdir(build(t, map[string]string{"a.html": "a", "b/c.html": "c"}))
	for root, path := range map[string]string{".": "/b/c.html", "b": "/c.html", "./b/": "/c.html"} {
		if text, _, err := read(t, Options{Root: root}, path); text != "c" || err != nil {
			t.Errorf("%s: got %q, %v", root, text, err)
		}
	}
}

func TestReadFileLimit(t *testing.T) {
	const text = "0123456789"
	root := build(t, map[string]string{"a.html": text, "empty.html": ""})
	for _, o := range []Options{{Root: root}, {FS: os.DirFS(root)}, {FS: fstest.MapFS{"a.html": {Data: []byte(text)}, "empty.html": {}}}} {
		opener, err := NewOpener(o)
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 3, 100)
		for _, c := range []struct {
			limit int
			want  string
		}{{-1, ""}, {0, ""}, {1, "0"}, {9, "012345678"}, {10, text}, {11, text}, {1<<31 - 1, text}} {
			data, info, err := opener.ReadFile("/a.html", buf, c.limit)
			if string(data) != c.want || info.More != (len(c.want) < 10) || info.Size != 10 || err != nil {
				t.Errorf("limit %d: got %q, %+v, %v", c.limit, data, info, err)
			}
			if len(data) > 0 && &data[0] != &buf[0] {
				t.Errorf("limit %d: the buffer is not used again", c.limit)
			}
			if data, info, err := opener.ReadFile("/empty.html", nil, c.limit); len(data) != 0 || info.More || err != nil {
				t.Errorf("empty, limit %d: got %q, %+v, %v", c.limit, data, info, err)
			}
		}
	}
}

// pieces gives a byte at a time.
type pieces struct{ rest string }

func (p *pieces) Read(b []byte) (int, error) {
	if p.rest == "" {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), 1)], p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// TestReadUpTo reads files that are not as long as they say.
func TestReadUpTo(t *testing.T) {
	for _, length := range []int{0, 1, 5, 4095, 4096, 4097, 20_000} {
		text := strings.Repeat("x", length)
		for _, size := range []int64{-1, 0, 1, int64(length), 5000, 1 << 50} {
			for _, limit := range []int{0, 1, 5, 4096, 10_000, 20_000, 30_000} {
				for _, r := range []io.Reader{strings.NewReader(text), &pieces{text}} {
					got, err := readUpTo(r, nil, size, limit)
					if want := min(length, limit+1); len(got) != want || err != nil {
						t.Errorf("length %d, size %d, limit %d: got %d, %v, want %d", length, size, limit, len(got), err, want)
					}
				}
			}
		}
	}
}

// opens checks that every page of a scan is opened as what was scanned.
func opens(t *testing.T, o Options) {
	t.Helper()
	pages, _ := collectPages(t, o)
	opener, err := NewOpener(o)
	if err != nil {
		t.Fatal(err)
	}
	// In order, and not.
	for range 2 {
		for _, p := range pages {
			_, info, err := opener.ReadFile(p.Path, nil, 1<<20)
			if stat, statErr := opener.Stat(p.Path); stat.Version != info.Version || stat.Size != info.Size || (statErr == nil) != (err == nil) {
				t.Errorf("%s: Stat says %+v, %v", p.Path, stat, statErr)
			}
			if err != nil || info.Version != p.Version || info.ModTime != p.LastMod || info.Size == 0 {
				t.Fatalf("%+v, %+v: got %+v, %v", o, p, info, err)
			}
		}
		rand.Shuffle(len(pages), func(i, j int) { pages[i], pages[j] = pages[j], pages[i] })
	}
}

func TestOpenWhatIsScanned(t *testing.T) {
	base := build(t, nil)
	for i := range 40 {
		rnd := rand.New(rand.NewPCG(3, uint64(i)))
		links := i % 12
		dir := filepath.Join(base, fmt.Sprint(i))
		root, outside := filepath.Join(dir, "root"), filepath.Join(dir, "outside")
		os.MkdirAll(root, 0o755)
		os.MkdirAll(outside, 0o755)
		none := 2
		randomTree(t, rnd, outside, root, 2, &none)
		randomTree(t, rnd, root, outside, 4, &links)
		for _, o := range []Options{
			{},
			{CleanURLs: true},
			{CleanURLs: true, KeepBesideFolders: true, Index: []string{"a.html", "b", "index.html"}, Include: []string{"*"}},
			{At: "/do%63s/%c3%a9", Include: []string{"*"}, Exclude: []string{"*.txt"}, CleanURLs: true},
			{Hide: []string{"b", filepath.Join(root, "a"), filepath.Join(root, "*", "index.html")}, Include: []string{"*.html", "/_x/*", "/404.html", "/a/*"}},
		} {
			o.Root, o.Now = root, testNow
			opens(t, o)
			o.FS, o.Root, o.Hide = os.DirFS(dir), "root", nil
			opens(t, o)
		}
		stays(t, rnd, root, outside, links == i%12)
	}
}

// stays opens strangers' paths, and checks by another way that what is found lies
// below the root, or that there are links.
func stays(t *testing.T, rnd *rand.Rand, root, outside string, linked bool) {
	t.Helper()
	odd := append([]string{"..", ".", "", "%2e%2e", "%2E", "..%2f", "%2f", "%00", "%5C..", `..\`, "outside", "root", "x%", filepath.Base(outside)}, randomNames...)
	opener, err := NewOpener(Options{Root: root, CleanURLs: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 500 {
		path := ""
		for range 1 + rnd.IntN(5) {
			name := odd[rnd.IntN(len(odd))]
			if rnd.IntN(2) == 0 {
				name = page.Escape(name)
			}
			path += "/" + name
		}
		f, err := opener.Open(path)
		if err != nil {
			continue
		}
		f.Close()
		full := filepath.FromSlash(string(bytes.TrimRight(opener.path, "\x00")))
		real, err := filepath.EvalSymlinks(full)
		if err != nil || filepath.Clean(full) != full || !strings.HasPrefix(full, root+separator) || !linked && real != full {
			t.Fatalf("%q led to %q, which is %q, %v", path, full, real, err)
		}
	}
}

// TestOpenInFS has file systems that can do little, and one that fails.
func TestOpenInFS(t *testing.T) {
	tree := fstest.MapFS{
		"www/index.html": {Data: []byte("home"), ModTime: testNow}, "www/a/b.html": {Data: []byte("b"), ModTime: testNow}, "www/pipe.html": {Mode: fs.ModeNamedPipe | 0o644},
		"www/link.html": {Data: []byte("a/b.html"), Mode: fs.ModeSymlink | 0o777}, "www/up.html": {Data: []byte("../../etc/passwd"), Mode: fs.ModeSymlink | 0o777},
		"secret.html": {Data: []byte("secret")},
	}
	for _, fsys := range []fs.FS{tree, plainFS{tree}} {
		o := Options{FS: fsys, Root: "www", Now: testNow}
		for path, want := range map[string]string{
			"/": "home", "/a/b.html": "b", "/pipe.html": "", "/up.html": "", "/../secret.html": "", "/%2e%2e/secret.html": "", "/a%2Fb.html": "", "/\xff": "", "/link.html": "b",
		} {
			if _, plain := fsys.(plainFS); plain && path == "/pipe.html" {
				continue
			}
			text, _, err := read(t, o, path)
			if text != want || (err == nil) != (want != "") || err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%T, %q: got %q, %v, want %q", fsys, path, text, err, want)
			}
		}
	}
	fsys := brokenFS{tree, map[string]error{"www/a/b.html": fs.ErrPermission}}
	if _, _, err := read(t, Options{FS: fsys, Root: "www"}, "/a/b.html"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got %v, want %v", err, fs.ErrPermission)
	}
}

func FuzzOpen(f *testing.F) {
	root := build(f, map[string]string{"root/index.html": "in", "root/a/b.html": "in", "root/\xe9 x/index.txt": "in", "root/.git/config": "dot", "root/hidden.html": "hidden", "outside.html": "out", "root/c": "in"})
	memory := fstest.MapFS{"root/index.html": {Data: []byte("in")}, "root/a/b.html": {Data: []byte("in")}, "root/.git/config": {Data: []byte("dot")}, "root/hidden.html": {Data: []byte("hidden")}, "outside.html": {Data: []byte("out")}}
	for _, path := range []string{
		"/", "/a/b.html", "/a/b", "/docs/a/b", "/%E9%20x/", "/../outside.html", "/%2e%2e/outside.html", "/a/..%2f..%2foutside.html", `/..\outside.html`, "/a%5c..%5c..%5coutside.html",
		"/.git/config", "/a/.%2e/.git/config", "/hidden.html", "/hidden", "/a/b.html%00", "//", "/c/../c", "/%", "?", "/c?c",
	} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		for _, o := range []Options{
			{Root: filepath.Join(root, "root")}, {Root: filepath.Join(root, "root"), CleanURLs: true}, {Root: filepath.Join(root, "root"), At: "/docs"},
			{FS: memory, Root: "root", CleanURLs: true}, {FS: os.DirFS(root), Root: "root"},
		} {
			o.Hide = []string{"hidden.html"}
			text, _, err := read(t, o, path)
			if err == nil && text != "in" || err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%+v: %q: got %q, %v", o, path, text, err)
			}
		}
	})
}

func BenchmarkReadFile(b *testing.B) {
	root := benchRoot(b)
	opener, err := NewOpener(Options{Root: root})
	if err != nil {
		b.Fatal(err)
	}
	var paths []string
	if _, err := Scan(b.Context(), Options{Root: root}, func(p page.Page) error {
		paths = append(paths, p.Path)
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var buf []byte
	i := 0
	for b.Loop() {
		data, _, err := opener.ReadFile(paths[i%len(paths)], buf, 2<<20)
		if err != nil {
			b.Fatal(err)
		}
		buf = data
		i++
	}
}
