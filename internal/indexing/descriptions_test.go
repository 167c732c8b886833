package indexing

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// described are records whose descriptions have a length, of pages that are all listed and settled.
func described(n, length int) []store.Record {
	records := make([]store.Record, n)
	for i := range records {
		records[i] = rec(fmt.Sprintf("/%05d", i))
		records[i].Description = strings.Repeat("d", length)
		records[i].Selected.Listed = true
	}
	return records
}

func TestTrimDescriptions(t *testing.T) {
	const site, chunk, length = 200_000, 1000, 150
	// A thousand pages have 40,000 bytes, and 750 of those of the site.
	const kept = (chunk*descriptionsOfPage + chunk*descriptionsOfSite/site) / length
	newest := func(r *store.Record) { r.Selected.LastMod = noon.Unix() }
	far := func(r *store.Record) { r.Depth = 1 }
	changed := func(r *store.Record) { r.Changed = noon.Unix() }
	unlisted := func(r *store.Record) { r.Selected.Listed = false }
	for name, test := range map[string]struct {
		set     func(r *store.Record) // what sets the last ones apart
		last    int
		site    int
		length  int
		kept    int
		ofThese int
	}{
		"large site":                {newest, 0, site, length, kept, 0},
		"small site":                {newest, 0, chunk, length, chunk, 0},
		"short ones":                {newest, 0, site, 40, chunk, 0},
		"those that changed last":   {newest, 100, site, length, kept, 100},
		"those that are yet dated":  {changed, 100, site, length, kept, 100},
		"those that are farther":    {far, 900, site, length, kept, kept - 100},
		"those that are not listed": {unlisted, 900, site, length, kept, kept - 100},
		"long ones":                 {newest, 0, site, 100_000, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			records := described(chunk, test.length)
			for i := chunk - test.last; i < chunk; i++ {
				test.set(&records[i])
			}
			trimmed := trimDescriptions(records, test.site)
			isKept := func(r store.Record) int { return min(len(r.Description), 1) }
			got, ofThese := 0, 0
			for i, r := range records {
				got += isKept(r)
				if i >= chunk-test.last {
					ofThese += isKept(r)
				}
			}
			if got != test.kept || ofThese != test.ofThese || trimmed != (got < chunk) {
				t.Errorf("got %d, %d of those, %t; want %d, %d", got, ofThese, trimmed, test.kept, test.ofThese)
			}
			if trimDescriptions(records, test.site) {
				t.Error("a second time, more are dropped")
			}
		})
	}
}

// TestDescriptionsOfEmptySite: a chunk may have no records, and so may a site.
func TestDescriptionsOfEmptySite(t *testing.T) {
	o := rules()
	o.Descriptions = true
	if pages, _ := run(t, generation(t, 1000, nil), o); len(pages) != 0 {
		t.Errorf("got %v", pages)
	}
}

// TestDescriptionsAreTrimmed: pages that are yielded have all descriptions that are known, and the generation after the crawl is
// complete those for which there is room.
func TestDescriptionsAreTrimmed(t *testing.T) {
	records := described(5000, 150)
	for name, test := range map[string]struct {
		set  func(o *Options)
		kept bool
	}{
		"complete":  {func(*Options) {}, false},
		"crawling":  {func(o *Options) { o.OpenBatch = noon.Unix() }, true},
		"not shown": {func(o *Options) { o.Descriptions = false }, true},
	} {
		t.Run(name, func(t *testing.T) {
			o := rules()
			o.Descriptions = true
			test.set(&o)
			pages, result := run(t, generation(t, 1000, slices.Clone(records)), o)
			for _, p := range pages {
				if shown := p.Extensions != nil && p.Extensions.Description != ""; shown != o.Descriptions {
					t.Fatalf("%s: got description %t", p.Path, shown)
				}
			}
			n := 0
			for i := range result.Generation.Chunks() {
				loaded, err := result.Generation.Load(context.Background(), i)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range loaded {
					n += min(len(r.Description), 1)
				}
			}
			if (n == len(records)) != test.kept || n == 0 {
				t.Errorf("%d of %d are kept", n, len(records))
			}
		})
	}
}
