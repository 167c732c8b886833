package frontier

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// full is a site with room for so many pages.
type full struct {
	census  Census
	most    int
	count   int
	waiting map[string]bool
}

// find adds a page that was found, and drops what is given up for it; false: there is no room.
func (f *full) find(path string) bool {
	if f.count == f.most {
		if !f.census.MakeRoom(path) {
			return false
		}
		f.count--
	}
	f.census.Add(path)
	f.count++
	f.waiting[path] = true
	for path := range f.waiting {
		if f.census.GivingUp() == 0 {
			break
		}
		if f.census.Drop(path) {
			delete(f.waiting, path)
		}
	}
	return true
}

// in counts the pages that wait in a folder.
func (f *full) in(folder string) (n int) {
	for path := range f.waiting {
		if strings.HasPrefix(path, folder) {
			n++
		}
	}
	return n
}

func TestCensus(t *testing.T) {
	type find struct {
		format string
		n      int
	}
	tests := []struct {
		name  string
		most  int
		finds []find
		want  map[string]int
	}{
		{"there is room", 100, []find{{"/a/%d", 50}, {"/b/%d", 50}}, map[string]int{"/a/": 50, "/b/": 50}},
		{"one group", 100, []find{{"/a/x%d", 200}}, map[string]int{"/a/": 100}},
		{"a large one gives way", 100, []find{{"/a/x%d", 200}, {"/b/x%d", 30}}, map[string]int{"/a/": 70, "/b/": 30}},
		{"but not to a larger one", 100, []find{{"/a/x%d", 200}, {"/b/x%d", 200}}, map[string]int{"/a/": 50, "/b/": 50}},
		{
			"within it, the largest", 100,
			[]find{{"/a/b/x%d", 10}, {"/a/c/x%d", 20}, {"/a/d/x%d", 200}, {"/b/x%d", 10}},
			map[string]int{"/a/b/": 10, "/a/c/": 20, "/a/d/": 60, "/b/": 10},
		},
		{
			"not of its own folder", 100,
			[]find{{"/a/x%d", 200}, {"/b/c/x%d", 20}, {"/b/d/x%d", 10}},
			map[string]int{"/a/": 70, "/b/c/": 20, "/b/d/": 10},
		},
		{
			"sessions are one group", 100,
			[]find{{"/p/x%d", 40}, {"/0%d/x", 1000}, {"/q/x%d", 20}},
			map[string]int{"/p/": 40, "/q/": 20, "/0": 40},
		},
		{"queries", 100, []find{{"/a/x%d", 40}, {"/a?b=%d", 1000}, {"/a/y%d", 10}}, map[string]int{"/a/": 50, "/a?": 50}},
	}
	for _, test := range tests {
		f := full{most: test.most, waiting: make(map[string]bool)}
		for _, find := range test.finds {
			for i := range find.n {
				f.find(fmt.Sprintf(find.format, i))
			}
		}
		for folder, want := range test.want {
			got := f.in(folder)
			if got != want {
				t.Errorf("%s: got %d pages in %s, want %d", test.name, got, folder, want)
			}
		}
	}
}

// A page that was fetched is not dropped, and its group owes no other one.
func TestCensusFetched(t *testing.T) {
	var c Census
	c.Add("/a/x")
	c.Add("/a/y")
	if !c.MakeRoom("/b/x") {
		t.Fatal("made no room")
	}
	stays := c.Remove("/a/x")
	if stays || c.GivingUp() == 0 {
		t.Error("the other page is not given up any more")
	}
	stays = c.Remove("/a/y")
	if !stays || c.GivingUp() > 0 {
		t.Error("a page is to be dropped, and none is left")
	}
	if c.GiveUp() {
		t.Error("a page is given up, and none is left")
	}
	c.Add("/a/z")
	if c.Drop("/a/z") {
		t.Error("a page is dropped for one that was fetched")
	}
}

func TestCensusIsBounded(t *testing.T) {
	f := full{most: 100_000, waiting: make(map[string]bool)}
	for i := range 80_000 {
		f.find(fmt.Sprintf("/user-%d/x", i))
	}
	if got := len(f.census.byKey); got > 2*maxGroups {
		t.Fatalf("got %d groups", got)
	}
	for i := range 40_000 {
		f.find(fmt.Sprintf("/wiki/page-%d", i))
	}
	if got := len(f.waiting); got != 100_000 {
		t.Errorf("got %d pages, want 100000", got)
	}
	for range 2 * maxGivingUp {
		f.census.GiveUp()
	}
	if got := f.census.givingUp; got != maxGivingUp {
		t.Errorf("gives up %d pages, want %d", got, maxGivingUp)
	}
}

// FuzzCensus checks that pages that wait are counted, whatever becomes of them, and that no more are dropped than are
// given up.
func FuzzCensus(f *testing.F) {
	f.Add("/\n/a\n/a/\n/a/b?c=d&e\n?\n\n//\n//x//?&&\n/\xff/2\n/2/\n/%2F/é/-/3", uint64(1))
	f.Fuzz(func(t *testing.T, lines string, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 0))
		waiting := make(map[string]bool)
		var c Census
		for range 10 {
			for path := range strings.SplitSeq(lines, "\n") {
				switch {
				case !waiting[path]:
					before := c.givingUp
					if c.MakeRoom(path) != (c.givingUp > before) {
						t.Fatalf("%q: room was made, or not, for %d pages", path, c.givingUp-before)
					}
					c.Add(path)
					waiting[path] = true
				case random.IntN(3) == 0:
					c.Remove(path)
					delete(waiting, path)
				case c.Drop(path):
					delete(waiting, path)
				}
				if c.root.pages != len(waiting)-c.givingUp {
					t.Fatalf("counts %d pages, and %d that are given up, of %d", c.root.pages, c.givingUp, len(waiting))
				}
			}
		}
		for path := range waiting {
			if c.Drop(path) {
				delete(waiting, path)
			}
		}
		if c.GivingUp() > 0 || c.root.pages != len(waiting) {
			t.Errorf("counts %d pages, and %d that are given up, of %d", c.root.pages, c.givingUp, len(waiting))
		}
	})
}

func BenchmarkCensus(b *testing.B) {
	paths := make([]string, 100_000)
	for i := range paths {
		paths[i] = fmt.Sprintf("/shop/color-%d/size-%d/x", i%100, i%1000)
	}
	b.ReportAllocs()
	for b.Loop() {
		var c Census
		for _, path := range paths {
			c.Add(path)
		}
	}
}
