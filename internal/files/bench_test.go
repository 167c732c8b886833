package files

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// BenchmarkScan scans 10,000 pages, 200 in a folder, or what is in FILES_BENCH_ROOT.
func BenchmarkScan(b *testing.B) {
	root := os.Getenv("FILES_BENCH_ROOT")
	if root == "" {
		pages := tree{}
		for i := range 10_000 {
			pages[fmt.Sprintf("section/part-%02d/page-%03d.html", i/200, i%200)] = "<title>A page</title>\n"
		}
		root = build(b, pages)
	}
	for name, o := range map[string]Options{
		"workers=1": {Root: root},
		"workers=4": {Root: root, Workers: 4},
		"clean":     {Root: root, Workers: 4, CleanURLs: true},
		"exclude":   {Root: root, Workers: 4, Exclude: []string{"*/draft-*", "/private/*"}, Hide: []string{".git", root + "/Caddyfile"}, Compile: compile},
		"fs.FS":     {FS: os.DirFS(root)},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
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
}
