//go:build !race

package caddytest

import (
	"fmt"
	"testing"
)

// TestDocumentsFullIndex has more shards than an index holds. The race detector empties
// pools at random, so that with it 50,000 shards take a minute to compress; what it
// could see, it sees of fewer.
func TestDocumentsFullIndex(t *testing.T) {
	give(t, "full", paged(mostPages+3))
	s := start(t, documentsSite("full", "shard_urls 1"), nil)
	if d := s.document("http://localhost:{port}/sitemap.xml"); len(d.children) != mostPages {
		t.Errorf("the index lists %d shards", len(d.children))
	}
	s.Logged("not all pages fit", `"left_out":3`)
	s.Logged("sitemap refreshed", fmt.Sprintf(`"pages":%d`, mostPages), "no room in the index: 3")
}
