package sitemap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// TestLikeness: which former site is evidently the same under another name.
func TestLikeness(t *testing.T) {
	old := names{Origin: "https://old.example", Internal: "https://old.example", Scope: "/"}
	files := traits{names: old, Root: "/srv/www"}
	app := traits{names: old, Proxied: true}
	for name, test := range map[string]struct {
		now    traits
		change func(former *traits)
		want   likeness
	}{
		"the same":                     {files, func(*traits) {}, sameHost},
		"http":                         {files, func(f *traits) { f.Origin = "http://old.example"; f.Internal = f.Origin }, sameHost},
		"www":                          {files, func(f *traits) { f.Origin = "https://www.old.example"; f.Internal = f.Origin }, sameHost},
		"without a base URL":           {files, func(f *traits) { f.Origin = "https://public.example" }, sameHost},
		"behind a proxy":               {files, func(f *traits) { f.Internal = "http://localhost:8080" }, sameHost},
		"another host":                 {files, func(f *traits) { f.Origin = "https://new.example"; f.Internal = f.Origin }, sameFiles},
		"another port":                 {files, func(f *traits) { f.Origin = "https://old.example:444"; f.Internal = f.Origin }, sameFiles},
		"another subdomain":            {files, func(f *traits) { f.Origin = "https://blog.old.example"; f.Internal = f.Origin }, sameFiles},
		"another root":                 {files, func(f *traits) { f.Root = "/srv/other" }, unlike},
		"no root":                      {files, func(f *traits) { f.Root = "" }, unlike},
		"another file system":          {files, func(f *traits) { f.FS = "embedded" }, unlike},
		"another folder":               {files, func(f *traits) { f.Scope = "/docs/" }, unlike},
		"an application":               {app, func(*traits) {}, sameHost},
		"an application by http":       {app, func(f *traits) { f.Origin = "http://old.example"; f.Internal = f.Origin }, sameHost},
		"an application, another host": {app, func(f *traits) { f.Origin = "https://new.example"; f.Internal = f.Origin }, unlike},
		"an application, another port": {app, func(f *traits) { f.Origin = "https://old.example:444"; f.Internal = f.Origin }, unlike},
		"files, then an application":   {files, func(f *traits) { f.Origin = "https://new.example"; f.Internal = f.Origin; f.Proxied = true }, unlike},
	} {
		former := test.now
		test.change(&former)
		if got := test.now.likenessTo(former); got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
		if got := former.likenessTo(test.now); got != test.want {
			t.Errorf("%s, the other way round: got %d, want %d", name, got, test.want)
		}
	}
}

// TestBetterFormer: of several former sites, the most like is taken, and then the latest.
func TestBetterFormer(t *testing.T) {
	of := func(l likeness, confirmed int64) *former {
		return &former{likeness: l, confirmed: time.Unix(confirmed, 0)}
	}
	for name, test := range map[string]struct {
		is, other *former
		want      bool
	}{
		"the only one":       {of(sameFiles, 1), nil, true},
		"more like":          {of(sameHost, 1), of(sameFiles, 2), true},
		"less like":          {of(sameFiles, 2), of(sameHost, 1), false},
		"later":              {of(sameFiles, 2), of(sameFiles, 1), true},
		"earlier":            {of(sameFiles, 1), of(sameFiles, 2), false},
		"alike in all: none": {of(sameFiles, 1), of(sameFiles, 1), false},
	} {
		if got := test.is.isBetterThan(test.other); got != test.want {
			t.Errorf("%s: got %t, want %t", name, got, test.want)
		}
	}
}

// TestKeptOfFormer: of a site at another host, only pages that are files are kept.
func TestKeptOfFormer(t *testing.T) {
	for name, test := range map[string]struct {
		likeness
		rec  store.Record
		want bool
	}{
		"a file":                          {sameFiles, store.Record{Version: 1}, true},
		"a file that an upstream returns": {sameFiles, store.Record{Version: 1, Flags: store.Proxied}, false},
		"no file":                         {sameFiles, store.Record{}, false},
		"a file of the same host":         {sameHost, store.Record{Version: 1}, true},
		"no file of the same host":        {sameHost, store.Record{Flags: store.Proxied}, true},
	} {
		if got := test.isKept(&test.rec); got != test.want {
			t.Errorf("%s: got %t, want %t", name, got, test.want)
		}
	}
}

// TestUnusedPrefixes: in a folder of thousands of sites that are in use, a former one is found whatever its name is.
func TestUnusedPrefixes(t *testing.T) {
	var prefixes []string
	inUse := make(map[string]bool)
	for i := range 3 * maxFormers {
		prefix := fmt.Sprintf("sites/%04d", i)
		prefixes = append(prefixes, prefix)
		inUse[prefix] = true
	}
	last := prefixes[len(prefixes)-1]
	delete(inUse, last)
	if got := unused(prefixes, inUse); !slices.Equal(got, []string{last}) {
		t.Errorf("got %d, want %s", len(got), last)
	}
	if got := unused(prefixes, nil); len(got) != maxFormers {
		t.Errorf("got %d, want %d", len(got), maxFormers)
	}
}

// TestNeighborsHang: while a state folder that hangs is listed for one site, others wait no longer than they would for it.
func TestNeighborsHang(t *testing.T) {
	a := &App{listing: wait.NewSlots(1)}
	a.listing.Take(t.Context()) // by another site
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.neighbors(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want an error of the context", err)
	}
}

// TestInherit: a site under another name begins with the records of the former one, which another process has stored, if they
// can be read.
func TestInherit(t *testing.T) {
	for name, test := range map[string]struct {
		host   string
		lives  bool // the former site is of this process, as before a reload, and stores its records elsewhere
		change func(t *testing.T, folder string)
		crawl  Crawl
		want   bool
	}{
		"with www":         {host: "www.named.example", want: true},
		"in memory":        {host: "www.named.example", lives: true, want: true},
		"another host":     {host: "other.example"},
		"nothing is known": {host: "www.named.example", crawl: Crawl{Off: true}},
		"damaged records": {host: "www.named.example", change: func(t *testing.T, folder string) {
			chunks, _ := filepath.Glob(filepath.Join(folder, "sites", "*", "store", "*"))
			for _, chunk := range chunks {
				if filepath.Base(chunk) == "manifest.json" {
					continue
				}
				if err := os.WriteFile(chunk, []byte("damaged"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}},
	} {
		folder := t.TempDir()
		process := func(folder, host string, crawl Crawl, lives bool) *bench {
			b := newBench(t, func(h *Handler) {
				h.mounts = mounts{{hosts: []string{host}}}
				h.Crawl = &crawl
			})
			b.app.folder = folder
			b.lists("/a", "/b")
			s := b.site(host)
			if pagesOf(b.refresh(s)) != 2 {
				t.Fatalf("%s: got %+v", name, s.published().report)
			}
			if !lives {
				s.drop()
				clear(b.app.sites)
			}
			return b
		}
		before := process(folder, "named.example", Crawl{}, test.lives)
		if test.change != nil {
			test.change(t, folder)
		}
		if test.lives {
			folder = t.TempDir()
		}
		b := process(folder, test.host, test.crawl, false)
		for _, s := range before.app.sites {
			s.drop()
		}
		clear(before.app.sites)
		if got := b.logged("the site had another name: its pages keep their dates") == 1; got != test.want {
			t.Errorf("%s: it has the records of the former site: %t", name, got)
		}
	}
}
