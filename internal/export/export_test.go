package export

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// document is one as builds write it.
func document(pages ...string) string {
	text := `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + "\n"
	for _, p := range pages {
		text += "<url><loc>https://example.com" + p + "</loc></url>\n"
	}
	return text + "</urlset>\n"
}

func index(shards ...string) string {
	text := `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + "\n"
	for _, s := range shards {
		text += "<sitemap><loc>https://example.com/" + s + "</loc></sitemap>\n"
	}
	return text + "</sitemapindex>\n"
}

type file struct{ name, content string }

// build writes a generation, and returns how many pages the one before had.
func build(t *testing.T, dir string, force bool, files ...file) (Result, int, error) {
	t.Helper()
	f, err := Open(dir, "sitemap.xml", force)
	if err != nil {
		return Result{}, 0, err
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}()
	pages := f.Pages()
	for _, file := range files {
		err := f.Stage(file.name, func(w io.Writer) error {
			_, err := io.WriteString(w, file.content)
			return err
		})
		if err != nil {
			return Result{}, pages, err
		}
	}
	r, err := f.Finish()
	return r, pages, err
}

func TestGenerations(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	a, b, c := "sitemap-00000000000a.xml", "sitemap-00000000000b.xml", "sitemap-00000000000c.xml"
	for _, step := range []struct {
		files []file
		want  string
	}{
		{[]file{{a, document("/a", "/b")}, {b, document("/c")}, {"sitemap.xml", index(a, b)}}, "0 pages, written [" + a + " " + b + " sitemap.xml], unchanged [], removed [], kept []"},
		{[]file{{a, document("/a", "/b")}, {c, document("/c")}, {"sitemap.xml", index(a, c)}}, "3 pages, written [" + c + " sitemap.xml], unchanged [" + a + "], removed [" + b + "], kept []"},
		{[]file{{"sitemap.xml", document("/a")}}, "3 pages, written [sitemap.xml], unchanged [], removed [" + a + " " + c + "], kept []"},
		{[]file{{"sitemap.xml", document("/a")}}, "1 pages, written [], unchanged [sitemap.xml], removed [], kept [" + a + "]"},
	} {
		r, pages, err := build(t, dir, false, step.files...)
		if got := fmt.Sprintf("%d pages, written %v, unchanged %v, removed %v, kept %v", pages, r.Written, r.Unchanged, r.Removed, r.Kept); got != step.want || err != nil {
			t.Errorf("got %s, %v, want %s", got, err, step.want)
		}
		if len(step.files) == 1 {
			write(t, dir, a, "by hand")
		}
	}
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestForeign(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "sitemap.xml", "by hand")
	if _, _, err := build(t, dir, false, file{"sitemap.xml", document("/")}); !errors.Is(err, ErrForeign) {
		t.Errorf("got %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left is %v", entries)
	}
	if _, _, err := build(t, dir, true, file{"sitemap.xml", document("/")}); err != nil {
		t.Error(err)
	}
}

// TestLinks: a link in a path never leads out of the folder.
func TestLinks(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "maps")); err != nil {
		if runtime.GOOS != "windows" { // there it takes a privilege
			t.Fatal(err)
		}
		t.Skip(err)
	}
	f, err := Open(dir, "maps/sitemap.xml", true)
	if err == nil {
		t.Error("the folder was opened")
		_ = f.Close()
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 0 {
		t.Errorf("outside is %v", entries)
	}
}

func TestBusy(t *testing.T) {
	dir := t.TempDir()
	f, err := Open(dir, "sitemap.xml", false)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := build(t, dir, false); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v", err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, _, err := build(t, dir, false); err != nil {
		t.Error(err)
	}
}

// TestSweep: what a killed build left behind goes.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, tempPrefix+"ABC.tmp", "x")
	write(t, dir, "sitemap.txt", "x")
	if _, _, err := build(t, dir, false, file{"sitemap.xml", document("/")}); err != nil {
		t.Fatal(err)
	}
	entries, _ := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"sitemap.txt", "sitemap.xml"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}
