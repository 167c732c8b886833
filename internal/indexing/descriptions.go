package indexing

import (
	"cmp"
	"slices"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// The feed shows the descriptions of the 500 pages that changed last, and llms.txt those of the 500 that are
// nearest to the front page. Which pages those are changes all the time, and a description is read only when its page is fetched. So more of
// them are kept: of a small site all, and of a large one so many that a page takes 24 bytes of storage for them on
// average, as prose of this length is compressed to half its size.
const (
	descriptionsOfPage = 40      // bytes for each page of a site
	descriptionsOfSite = 150_000 // further bytes, as many as 1,000 descriptions have
)

// trimDescriptions drops descriptions that the records of a chunk have beyond their part of a site with so many
// records. Those of the pages that changed last and that are nearest to the front page are kept. It reports whether any was dropped.
//
// A description that is dropped returns with the next full fetch of its page.
func trimDescriptions(records []store.Record, site int) bool {
	if len(records) == 0 {
		return false // nor may the site have any
	}
	budget := len(records)*descriptionsOfPage + len(records)*descriptionsOfSite/site
	total := 0
	var latest []*store.Record
	for i := range records {
		rec := &records[i]
		if rec.Description != "" {
			total += len(rec.Description)
			latest = append(latest, rec)
		}
	}
	if total <= budget {
		return false
	}
	// Both documents take turns, so that neither has all of its pages described and the other one none.
	nearest := slices.Clone(latest)
	slices.SortStableFunc(latest, compareLatest)
	slices.SortStableFunc(nearest, compareDepth)
	kept := make(map[*store.Record]bool)
	for i := range latest {
		for _, rec := range []*store.Record{latest[i], nearest[i]} {
			if !kept[rec] && len(rec.Description) <= budget {
				kept[rec] = true
				budget -= len(rec.Description)
			}
		}
	}
	for _, rec := range latest {
		if !kept[rec] {
			rec.Description = ""
		}
	}
	return true
}

// compareLatest orders records as the feed does, or will once the dates of those that have changed are decided. Pages
// without a date are not in it, nor are those that are not listed.
func compareLatest(a, b *store.Record) int {
	return cmp.Or(compareListed(a, b), cmp.Compare(latestChange(b), latestChange(a)))
}

func latestChange(rec *store.Record) int64 {
	if rec.AwaitsDate() {
		return rec.Batch()
	}
	return rec.Selected.LastMod
}

// compareDepth orders records as llms.txt does, those of listed pages first.
func compareDepth(a, b *store.Record) int {
	return cmp.Or(compareListed(a, b), cmp.Compare(a.Depth, b.Depth))
}

func compareListed(a, b *store.Record) int {
	if a.Selected.Listed == b.Selected.Listed {
		return 0
	}
	if a.Selected.Listed {
		return -1
	}
	return 1
}
