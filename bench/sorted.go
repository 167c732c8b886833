package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	sitemap "github.com/seed3295b519/caddy-sitemap"
)

func init() { caddy.RegisterModule(new(source)) }

// sortedRows have a server list the pages of a sorted source in bounded memory.
func (b *bench) sortedRows(ctx context.Context) []*row {
	first := &row{what: number(b.pages) + " pages of a sorted source, `crawl off`, GOMEMLIMIT=1GiB: start to the first 200", show: duration}
	peak := &row{what: "peak memory of it", show: mebibytes, reach: atMost(1 << 30)}
	addr := freeAddr()
	for run := range b.runs {
		s := b.start("sorted", addr, site(addr, fmt.Sprintf("sitemap {\ncrawl off\nmax_urls %d\nsynthetic %d\n}", b.pages, b.pages)), "GOMEMLIMIT=1GiB")
		took := must(s.first(ctx, s.sitemap()))
		_, most, err := s.memory(ctx)
		check(err)
		if run == 0 {
			s.verify(ctx, b.pages)
		}
		s.stop()
		first.add(took)
		peak.add(most)
		b.say("  sorted: %s, %s (%s)", duration(took), mebibytes(most), load())
	}
	return []*row{first, peak}
}

// source contributes pages like those of a shop, the same every time, in the order of
// their paths.
type source struct {
	Count int `json:"pages,omitempty"`
}

func (*source) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.sitemap.sources.synthetic",
		New: func() caddy.Module { return new(source) },
	}
}

func (s *source) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if !d.NextArg() {
		return d.ArgErr()
	}
	_, err := fmt.Sscan(d.Val(), &s.Count)
	return err
}

func (s *source) Sorted() bool { return true }

func (s *source) Pages(ctx context.Context, _ *sitemap.Refresh, yield func(sitemap.Page) error) error {
	random := rand.New(rand.NewPCG(1, 2))
	const first, threeYears = 1640995200, 3 * 365 * 24 * 60 * 60 // 2022-01-01
	things := [...]string{"armchair", "bench", "bookcase", "cabinet", "coffee-table", "desk", "dresser", "lamp"}
	for i := range s.Count {
		if i%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		n := random.Uint64()
		path := fmt.Sprintf("/products/%03d/%03d/%09d-small-%s.html", i/1_000_000, i/1000%1000, i, things[n%8])
		if err := yield(sitemap.Page{Path: path, LastMod: time.Unix(first+int64(n>>32)%threeYears, 0)}); err != nil {
			return err
		}
	}
	return nil
}

var _ sitemap.SortedSource = (*source)(nil)
