package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/shard"
	"github.com/seed3295b519/caddy-sitemap/internal/sitemapxml"
)

const insertBase = "https://www.example.com"

// insertRows adds pages to a site one by one, as a user's new articles come, and counts
// how many shards each changes.
func (b *bench) insertRows(ctx context.Context) ([]row, error) {
	l := newList(b.files, b.inserts)
	before, err := l.cut()
	if err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(3, 4))
	changes := map[int]int{}
	most := 0
	for i := range b.inserts {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		l.insert(page.Page{
			Path:    fmt.Sprintf("%sarticle-%06d.html", page.Folder(pagePath(random.IntN(b.files))), random.IntN(1_000_000)),
			LastMod: modified(b.files + i),
		})
		after, err := l.cut()
		if err != nil {
			return nil, err
		}
		changed := changed(before, after)
		changes[changed]++
		most = max(most, changed)
		before = after
	}
	share := float64(changes[1]) / float64(b.inserts)
	return []row{{
		what:    fmt.Sprintf("%s single pages added to %s, one by one", number(b.inserts), number(b.files)),
		ours:    fmt.Sprintf("%s change 1 shard of %d, the most %d", number(changes[1]), len(before), most),
		ratio:   fmt.Sprintf("%.1f %%", share*100),
		reach:   "1 shard in ≥ 99 %, never over 3",
		reached: yes(share >= 0.99 && most <= 3),
	}}, nil
}

// list is a site's pages in order, and the hash of each, so that what a shard holds is
// compared without reading it.
type list struct {
	pages  []page.Page
	hashes []uint64
}

func newList(n, more int) *list {
	l := &list{make([]page.Page, n, n+more), make([]uint64, n, n+more)}
	for i := range l.pages {
		l.pages[i] = page.Page{Path: pagePath(i), LastMod: modified(i)}
	}
	slices.SortFunc(l.pages, page.Compare)
	for i, p := range l.pages {
		l.hashes[i] = hashOf(p)
	}
	return l
}

func hashOf(p page.Page) uint64 { return xxhash.Sum64String(p.Path) + uint64(p.LastMod) }

// insert adds a page that is not there yet.
func (l *list) insert(p page.Page) {
	at, _ := slices.BinarySearchFunc(l.pages, p, page.Compare)
	l.pages = slices.Insert(l.pages, at, p)
	l.hashes = slices.Insert(l.hashes, at, hashOf(p))
}

// cutShard is a shard's name and a hash of its pages.
type cutShard struct{ id, content uint64 }

// cut is the site's shards, cut as a refresh does it.
func (l *list) cut() (map[cutShard]bool, error) {
	shards := make(map[cutShard]bool)
	hashes := l.hashes
	cutter := shard.NewCutter(shard.Options{
		Overhead: sitemapxml.Overhead(sitemapxml.Schema09),
		Size:     func(p page.Page) int { return sitemapxml.EntrySize(insertBase, p) },
		Bound:    func(n int, pathBytes int64) int64 { return sitemapxml.EntriesBound(insertBase, n, pathBytes) },
	}, func(s shard.Shard) error {
		var content uint64
		for _, h := range hashes[:len(s.Pages)] {
			content = content*0x100000001b3 + h
		}
		hashes = hashes[len(s.Pages):]
		shards[cutShard{s.ID, content}] = true
		return nil
	})
	for _, p := range l.pages {
		if err := cutter.Add(p); err != nil {
			return nil, err
		}
	}
	return shards, cutter.Close()
}

// changed counts the shards that a crawler would have to fetch, or that are no more.
func changed(before, after map[cutShard]bool) int {
	return max(missing(before, after), missing(after, before))
}

func missing(from, in map[cutShard]bool) int {
	n := 0
	for s := range in {
		if !from[s] {
			n++
		}
	}
	return n
}
