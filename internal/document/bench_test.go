package document

import (
	"fmt"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// BenchmarkBuild is for a page, of the XML alone and with each kind of documents beside it.
func BenchmarkBuild(b *testing.B) {
	for name, kind := range map[string]Beside{
		"xml": {}, "people": {People: new(People)}, "feed": {Feed: true}, "llms": {LLMs: true},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			o := beside
			o.Beside = kind
			setOf(b, func(yield func(page.Page) bool) {
				for i := range b.N {
					path := fmt.Sprintf("/folder-%06d/page-%09d.html", i/200, i)
					if !yield(newPage(path, 1700000000+int64(i)*60, "A page")) {
						return
					}
				}
			}, o)
		})
	}
}
