package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2"

	sitemap "github.com/seed3295b519/caddy-sitemap"
)

func init() {
	caddy.RegisterModule(source{})
}

// source contributes pages like those of a shop, as many as wanted and the same every
// time, in the order of their paths.
type source struct {
	// How many pages, up to a thousand million.
	Count int `json:"pages,omitempty"`
}

// CaddyModule returns the Caddy module information.
func (source) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.sitemap.sources.synthetic",
		New: func() caddy.Module { return new(source) },
	}
}

const (
	mostPages  = 1_000_000_000
	threeYears = 3 * 365 * 24 * 60 * 60
)

// Validate checks the count.
func (s *source) Validate() error {
	if s.Count < 1 || s.Count > mostPages {
		return fmt.Errorf("pages is %d: 1 to %d are wanted", s.Count, mostPages)
	}
	return nil
}

// Sorted reports that pages come in the order of their paths.
func (s *source) Sorted() bool { return true }

// Pages yields the pages.
func (s *source) Pages(ctx context.Context, _ *sitemap.Refresh, yield func(sitemap.Page) error) error {
	random := rand.New(rand.NewPCG(1, 2))
	first := time.Date(2022, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	path := make([]byte, 0, 128)
	for i := range s.Count {
		if i%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		n := random.Uint64()
		path = appendPath(path[:0], i, n)
		if err := yield(sitemap.Page{Path: string(path), LastMod: first + int64(n>>32)%threeYears}); err != nil {
			return err
		}
	}
	return nil
}

var (
	adjectives = [...]string{"blue", "classic", "folding", "handmade", "large", "light", "oak", "outdoor", "round", "small", "used", "vintage"}
	things     = [...]string{"armchair", "bench", "bookcase", "cabinet", "coffee-table", "desk", "dresser", "lamp", "mirror", "rug", "sofa", "stool"}
)

// appendPath makes a path such as
// /products/012/345/012345678-small-coffee-table.html: what is in front of the first
// hyphen counts up in digits of one width, and so orders them.
func appendPath(dst []byte, i int, random uint64) []byte {
	var digits [10]byte
	number := strconv.AppendInt(digits[:0], mostPages+int64(i), 10)[1:]
	dst = append(dst, "/products/"...)
	dst = append(append(dst, number[:3]...), '/')
	dst = append(append(dst, number[3:6]...), '/')
	dst = append(append(dst, number...), '-')
	dst = append(append(dst, adjectives[random%12]...), '-')
	dst = append(dst, things[random>>8%12]...)
	return append(dst, ".html"...)
}

// Interface guards
var (
	_ caddy.Validator      = (*source)(nil)
	_ sitemap.SortedSource = (*source)(nil)
)
