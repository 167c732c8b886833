package verdict

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

func TestLinkSetAgainstMap(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{0, 1, 10, 1000, 300_000} {
		var set LinkSet
		want := make(map[string]bool)
		for range n / 4 {
			from := fmt.Sprint("/", random.IntN(n))
			links := make([]string, random.IntN(8))
			for i := range links {
				links[i] = fmt.Sprint("/", random.IntN(n))
				if links[i] != from {
					want[links[i]] = true
				}
			}
			set.Add(from, links)
			if random.IntN(1000) == 0 {
				path := fmt.Sprint("/", random.IntN(n))
				if got := set.Has(path); got != want[path] {
					t.Fatalf("%d, on the way: %s: got %t", n, path, got)
				}
			}
		}
		for i := range n + 10 {
			path := fmt.Sprint("/", i)
			if got := set.Has(path); got != want[path] {
				t.Fatalf("%d: %s: got %t", n, path, got)
			}
		}
	}
	var set LinkSet
	set.Add("/a", []string{"/a"})
	if set.Has("/a") {
		t.Error("a page's link to itself counts")
	}
}

func TestFind(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for round := range 3000 {
		hashes := make([]uint64, random.IntN(200))
		for i := range hashes {
			hashes[i] = random.Uint64()
			if round%3 == 0 { // not spread at all
				hashes[i] >>= 40 + random.IntN(20)
			}
		}
		slices.Sort(hashes)
		hashes = slices.Compact(hashes)
		for _, h := range append([]uint64{0, 1, 1 << 63, 1<<64 - 1, random.Uint64()}, hashes...) {
			i, ok := find(hashes, h)
			if want, there := slices.BinarySearch(hashes, h); i != want || ok != there {
				t.Fatalf("%d in %d: got %d %t, want %d %t", h, hashes, i, ok, want, there)
			}
		}
	}
}

func TestAlternates(t *testing.T) {
	alternate := func(pairs ...string) (list []page.Alternate) {
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, page.Alternate{Lang: pairs[i], URL: pairs[i+1]})
		}
		return list
	}
	both := alternate("en", origin+"/en", "de", origin+"/de")
	turned := alternate("DE", origin+"/de", "en", origin+"/en")
	swapped := alternate("de", origin+"/en", "en", origin+"/de")
	withDefault := alternate("en", origin+"/en", "de", origin+"/de", "x-default", origin+"/en")
	for _, test := range []struct {
		name   string
		en, de []page.Alternate
		mutual bool
	}{
		{"the same", both, both, true},
		{"another order and case", both, turned, true},
		{"one page twice", withDefault, withDefault, true},
		{"one lists more", withDefault, both, false},
		{"one lists nothing", both, nil, false},
		{"languages swapped", both, swapped, false},
		{"without itself", both[1:], both[1:], false},
		{"another site", append(alternate("fr", "https://example.fr/"), both...), append(alternate("fr", "https://example.fr/"), both...), false},
		{"a page that is not there", append(alternate("fr", origin+"/fr"), both...), append(alternate("fr", origin+"/fr"), both...), false},
		{"no languages", nil, nil, false},
	} {
		var a Alternates
		a.Add("/en", test.en)
		a.Add("/de", test.de)
		if got := a.Mutual(origin, "/en", test.en); got != test.mutual {
			t.Errorf("%s: got %t", test.name, got)
		}
		if got := a.Mutual(origin, "/de", test.de); got != (test.mutual) && test.name != "without itself" {
			t.Errorf("%s, the other: got %t", test.name, got)
		}
	}
	var a Alternates
	if a.Mutual(origin, "/en", both) {
		t.Error("mutual, and nothing was added")
	}
	a.Add("/de", both[1:])
	if !a.Mutual(origin, "/de", both[1:]) {
		t.Error("a page that lists itself alone is complete")
	}
}

func TestReaches(t *testing.T) {
	for _, test := range []struct {
		link, path string
		want       bool
	}{
		{"/a", "/a", true},
		{"/a/", "/a", true},
		{"/a", "/a/", true},
		{"/a/index.html", "/a/", true},
		{"/a/", "/a/index.html", true},
		{"/a.html", "/a", true},
		{"/a", "/a.html", true},
		{"/index.html", "/", true},
		{"/a.html?b", "/a?b", true},
		{"/a", "/a?b", false},
		{"/a?b", "/a", false},
		{"/b", "/a", false},
		{"/a/b", "/a/", false},
	} {
		var set LinkSet
		set.Add("/from", []string{test.link})
		if got := set.Reaches(test.path); got != test.want {
			t.Errorf("%s by %s: got %t", test.path, test.link, got)
		}
	}
}
