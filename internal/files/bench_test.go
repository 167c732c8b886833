package files

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// benchRoot is the folder to scan: FILES_BENCH_ROOT, or a new one with
// FILES_BENCH_PAGES pages (10,000 by default), 200 in a folder.
func benchRoot(b *testing.B) string {
	b.Helper()
	if root := os.Getenv("FILES_BENCH_ROOT"); root != "" {
		return root
	}
	pages := 10_000
	if n, err := strconv.Atoi(os.Getenv("FILES_BENCH_PAGES")); err == nil {
		pages = n
	}
	root := b.TempDir()
	for i := range pages {
		dir := filepath.Join(root, fmt.Sprintf("section-%03d", i/10_000), fmt.Sprintf("part-%02d", i/200%50))
		if i%200 == 0 {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				b.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("page-%03d.html", i%200)), []byte("<title>A page</title>\n"), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	return root
}

func BenchmarkScan(b *testing.B) {
	root := benchRoot(b)
	for _, c := range []struct {
		name string
		o    Options
	}{
		{"workers=1", Options{Workers: 1}},
		{"workers=2", Options{Workers: 2}},
		{"workers=4", Options{Workers: 4}},
		{"workers=4,clean", Options{Workers: 4, CleanURLs: true}},
		{"workers=4,exclude", Options{Workers: 4, Exclude: []string{"*/draft-*", "/private/*"}, Hide: []string{".git", filepath.Join(root, "Caddyfile")}}},
		{"workers=1,portable", Options{Workers: 1, FS: os.DirFS(root), Root: "."}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			o := c.o
			o.Compile = compile
			if o.FS == nil {
				o.Root = root
			}
			pages := 0
			for b.Loop() {
				st, err := Scan(context.Background(), o, func(page.Page) error { return nil })
				if err != nil {
					b.Fatal(err)
				}
				pages += st.Pages
			}
			b.ReportMetric(float64(pages)/b.Elapsed().Seconds(), "pages/s")
		})
	}
	b.Run("find", func(b *testing.B) {
		find, err := exec.LookPath("find")
		if err != nil {
			b.Skip("no find to compare with")
		}
		pages := 0
		for b.Loop() {
			out, err := exec.Command(find, root, "-type", "f", "-printf", `%p %T@\n`).Output()
			if err != nil {
				b.Fatal(err)
			}
			pages += bytes.Count(out, []byte("\n"))
		}
		b.ReportMetric(float64(pages)/b.Elapsed().Seconds(), "pages/s")
	})
}
