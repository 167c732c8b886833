package sitemap

import (
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/shard"
	"github.com/seed3295b519/caddy-sitemap/internal/sitemapxml"
)

// press makes a snapshot of pages: it says of them what rules say, cuts them into
// shards and writes these.
type press struct {
	settings settings
	refresh  *Refresh
	writer   *writer
	cutter   *shard.Cutter
	pages    int
	only     bool
}

func (s *site) openPress(r *Refresh, previous *Snapshot, now time.Time) *press {
	set := s.handler.settings
	p := &press{
		settings: set, refresh: r,
		writer: newWriter(s.base, s.docPath("", ""), set.schema, previous, now, r.Workers),
	}
	o := shard.Options{
		MaxPages: set.shardURLs,
		MaxBytes: maxDocument,
		Overhead: sitemapxml.Overhead(set.schema),
		Size:     func(p page.Page) int { return sitemapxml.EntrySize(s.base, p) },
		Bound:    func(n int, pathBytes int64) int64 { return sitemapxml.EntriesBound(s.base, n, pathBytes) },
	}
	if set.alternates || set.images {
		o.Overhead += sitemapxml.ExtensionsOverhead(set.schema)
		o.Size = func(p page.Page) int {
			return sitemapxml.EntrySize(s.base, p) + sitemapxml.ExtensionsSize(set.schema, p)
		}
		o.Bound = nil
	}
	p.cutter = shard.NewCutter(o, p.shard)
	return p
}

func (p *press) shard(piece shard.Shard) error {
	p.only = piece.Only
	if p.writer.count() == maxIndexEntries {
		p.refresh.LeaveOut(indexFull, len(piece.Pages))
		return nil
	}
	return p.writer.add(piece)
}

// page takes the next page, in order.
func (p *press) page(pg page.Page) error {
	if p.pages >= p.settings.maxURLs {
		p.refresh.LeaveOut(overMaxURLs, 1)
		return nil
	}
	p.pages++
	for _, rule := range p.settings.rules {
		if rule.match.Match(pg.Path) {
			pg.Merge(page.Page{ChangeFreq: rule.changeFreq, Priority: rule.priority})
			break
		}
	}
	return p.cutter.Add(pg)
}

// isFull reports whether no more pages are let in.
func (p *press) isFull() bool { return p.pages >= p.settings.maxURLs }

// finish makes the snapshot, nil where there was no page.
func (p *press) finish() (*Snapshot, error) {
	err := p.cutter.Close()
	snapshot, werr := p.writer.finish(p.only)
	if err := errors.Join(err, werr); err != nil {
		return nil, err
	}
	if n := p.refresh.leftOut[overMaxURLs] + p.refresh.leftOut[indexFull]; n > 0 {
		p.refresh.Say("bounds", "not all pages fit into the sitemap", zap.Int("left_out", n), zap.Int("max_urls", p.settings.maxURLs), zap.Int("shard_urls", p.settings.shardURLs))
	}
	return snapshot, nil
}

// close waits for what is being written.
func (p *press) close() { p.writer.group.Wait() }
