package webpage

import (
	"fmt"
	"testing"
)

// BenchmarkBuilder is for a page: what is hashed, and with rendered also the bodies.
func BenchmarkBuilder(b *testing.B) {
	for _, name := range []string{"hashed", "rendered", "feed", "llms"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			o := options
			if name == "feed" || name == "llms" {
				o.People = nil
			}
			o.Feed = name == "feed"
			o.LLMs = name == "llms"
			each(numbered(b.N, func(i int) string { return fmt.Sprintf("/folder-%06d/page-%09d.html", i/200, i) }), o, func(d Document) {
				if name == "rendered" {
					d.Body()
				}
			})
		})
	}
}
