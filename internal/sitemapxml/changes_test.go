package sitemapxml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// spread writes pages as documents of a few pages each.
func spread(t testing.TB, pages []page.Page, each int) []Opener {
	t.Helper()
	var all []Opener
	for part := range slices.Chunk(pages, each) {
		var document bytes.Buffer
		set := NewExtendedURLSet(&document, Schema09, "https://example.com")
		for _, p := range part {
			_ = set.Add(p)
		}
		if err := set.Close(); err != nil {
			t.Fatal(err)
		}
		all = append(all, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(document.Bytes())), nil })
	}
	return all
}

func TestCompare(t *testing.T) {
	one := []page.Page{{Path: "/"}, {Path: "/a&b"}, {Path: "/a'b", LastMod: 1e9}, {Path: "/ab"}, {Path: "/b/"}}
	dated := slices.Clone(one)
	dated[2].LastMod++
	long := slices.Clone(one)
	long[3].Extensions = &page.Extensions{Images: slices.Repeat([]string{"https://example.com/image.png"}, 5000)}
	longer := slices.Clone(one)
	longer[3].Extensions = &page.Extensions{Images: append(slices.Repeat([]string{"https://example.com/image.png"}, 4999), "https://example.com/imag\u00e9.png")}
	for name, tc := range map[string]struct {
		before, after []page.Page
		want          Changes
	}{
		"same":           {one, one, Changes{}},
		"from nothing":   {nil, one, Changes{Added: 5}},
		"to nothing":     {one, nil, Changes{Removed: 5}},
		"first gone":     {one, one[1:], Changes{Removed: 1}},
		"last new":       {one[:4], one, Changes{Added: 1}},
		"middle":         {slices.Delete(slices.Clone(one), 1, 2), slices.Delete(slices.Clone(one), 3, 4), Changes{Added: 1, Removed: 1}},
		"date":           {one, dated, Changes{Changed: 1}},
		"long entry":     {one, long, Changes{Changed: 1}},
		"its far end":    {long, longer, Changes{Changed: 1}},
		"the same, long": {long, long, Changes{}},
	} {
		for _, each := range [][2]int{{5, 5}, {1, 5}, {2, 3}} {
			got, err := Compare(spread(t, tc.before, each[0]), spread(t, tc.after, each[1]))
			if err != nil || got != tc.want {
				t.Errorf("%s, %v a document: got %+v, %v, want %+v", name, each, got, err, tc.want)
			}
		}
	}
}

// TestCompareRandom counts by maps, too.
func TestCompareRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		var generations [2][]page.Page
		var want Changes
		for i := range 200 {
			p := page.Page{Path: fmt.Sprintf("/%03d&<>\"'", i), LastMod: 1e9}
			was, is := random.IntN(4) > 0, random.IntN(4) > 0
			if was {
				generations[0] = append(generations[0], p)
			}
			if is && random.IntN(4) == 0 {
				p.LastMod++
			}
			if is {
				generations[1] = append(generations[1], p)
			}
			switch {
			case was && !is:
				want.Removed++
			case is && !was:
				want.Added++
			case is && was && p.LastMod != 1e9:
				want.Changed++
			}
		}
		got, err := Compare(spread(t, generations[0], 1+random.IntN(50)), spread(t, generations[1], 1+random.IntN(50)))
		if err != nil || got != want {
			t.Fatalf("got %+v, %v, want %+v", got, err, want)
		}
	}
}

func TestCompareErrors(t *testing.T) {
	good := spread(t, []page.Page{{Path: "/"}}, 1)
	broken := errors.New("broken")
	if _, err := Compare(good, []Opener{func() (io.ReadCloser, error) { return nil, broken }}); err != broken {
		t.Errorf("an opener: got %v, want %v", err, broken)
	}
	foreign := func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader([]byte("<urlset/>\n"))), nil
	}
	if _, err := Compare([]Opener{foreign}, good); !errors.Is(err, ErrForeign) {
		t.Errorf("a foreign document: got %v, want %v", err, ErrForeign)
	}
}
