package sitemap_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	sitemap "github.com/seed3295b519/caddy-sitemap"
)

func init() { caddy.RegisterModule(Products{}) }

// Products is a source of the pages of a shop: the option `products [<category...>] { sold_out }`.
type Products struct {
	// The categories whose products are listed. Default: all.
	Categories []string `json:"categories,omitempty"`

	// Whether products that are sold out are listed. Default: false.
	SoldOut bool `json:"sold_out,omitempty"`
}

// CaddyModule returns the Caddy module information.
func (Products) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.sitemap.sources.products", New: func() caddy.Module { return new(Products) }}
}

// UnmarshalCaddyfile parses the option.
func (p *Products) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // consume the name of the option
	p.Categories = d.RemainingArgs()
	for d.NextBlock(0) {
		if d.Val() != "sold_out" {
			return d.Errf("unrecognized subdirective '%s'", d.Val())
		}
		p.SoldOut = true
	}
	return nil
}

// product is a row of the shop's database.
type product struct {
	category, name string
	updated        time.Time
	stock          int
}

// query stands for a query of the database.
func query(context.Context) ([]product, error) {
	return []product{
		{"chairs", "Café chair", time.Date(2026, 3, 2, 10, 30, 0, 0, time.UTC), 4},
		{"chairs", "rocking-chair", time.Date(2026, 1, 7, 0, 0, 0, 0, time.UTC), 0},
		{"tables", "desk", time.Time{}, 1},
	}, nil
}

// Pages yields the pages of the products.
func (p *Products) Pages(ctx context.Context, r *sitemap.Refresh, yield func(sitemap.Page) error) error {
	products, err := query(ctx)
	if err != nil {
		return fmt.Errorf("reading products: %w", err)
	}
	for _, product := range products {
		switch {
		case p.Categories != nil && !slices.Contains(p.Categories, product.category):
			continue
		case product.stock == 0 && !p.SoldOut:
			r.LeaveOut("sold out", 1)
			continue
		}
		u := url.URL{Path: "/shop/" + product.category + "/" + product.name}
		if err := yield(sitemap.Page{Path: u.RequestURI(), LastMod: product.updated, Priority: new(0.8)}); err != nil {
			return err
		}
	}
	return nil
}

// Interface guards
var (
	_ sitemap.Source        = (*Products)(nil)
	_ caddyfile.Unmarshaler = (*Products)(nil)
)

// A source in a module of its own, and how to test it.
func ExampleSource() {
	products := &Products{Categories: []string{"chairs"}, SoldOut: true}
	err := products.Pages(context.Background(), new(sitemap.Refresh), func(p sitemap.Page) error {
		fmt.Println(p.Path, p.LastMod.Format(time.DateOnly), *p.Priority)
		return nil
	})
	fmt.Println(err)
	// Output:
	// /shop/chairs/Caf%C3%A9%20chair 2026-03-02 0.8
	// /shop/chairs/rocking-chair 2026-01-07 0.8
	// <nil>
}
