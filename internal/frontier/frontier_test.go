package frontier

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// take returns the n pages that come first, from lines of a depth and a path.
func take(accounts *Accounts, n int, lines ...string) []string {
	pass := accounts.Pass(n)
	for _, line := range lines {
		pass.Add(line[2:], line[0]-'0')
	}
	return slices.Collect(pass.Take())
}

func TestOrder(t *testing.T) {
	tests := []struct {
		name string
		in   []string
		want []string
	}{
		{"nothing", nil, nil},
		{"within a folder by depth", []string{"2 /a", "1 /b", "1 /c"}, []string{"/b", "/c", "/a"}},
		{
			"folders take turns",
			[]string{"1 /a/1x", "1 /a/2x", "1 /a/3x", "2 /b/1x", "2 /b/2x"},
			[]string{"/a/1x", "/b/1x", "/a/2x", "/b/2x", "/a/3x"},
		},
		{
			"folders of a shape share a turn",
			[]string{"1 /size-m/x", "1 /size-l/x", "1 /size-s/x", "2 /b/1x", "2 /b/2x"},
			[]string{"/size-l/x", "/b/1x", "/size-m/x", "/b/2x", "/size-s/x"},
		},
		{
			"a folder's pages take two turns",
			[]string{"1 /1x", "1 /2x", "1 /3x", "1 /4x", "1 /a/1x", "1 /a/2x", "1 /a/3x"},
			[]string{"/1x", "/a/1x", "/2x", "/3x", "/a/2x", "/4x", "/a/3x"},
		},
		{
			"more parameters have fewer turns",
			[]string{"1 /?a=1", "1 /?a=2", "1 /?b=3", "1 /?a=1&b=1", "1 /?b=1&a=2", "1 /?a=2&b=2"},
			[]string{"/?a=1", "/?a=1&b=1", "/?b=3", "/?a=2", "/?a=2&b=2", "/?b=1&a=2"},
		},
		{
			"numbered pages are beside other folders",
			[]string{"1 /shop/red/x", "1 /shop/blue/x", "1 /shop/dark/x", "2 /shop/page/2", "2 /shop/page/3/"},
			[]string{"/shop/blue/x", "/shop/page/2", "/shop/dark/x", "/shop/page/3/", "/shop/red/x"},
		},
		{
			"between folders that have had as many turns by depth",
			[]string{"1 /a/red/x", "5 /a/blue/x", "2 /b/red/x", "3 /b/blue/x"},
			[]string{"/a/red/x", "/b/red/x", "/b/blue/x", "/a/blue/x"},
		},
		{
			"between folders whose next pages are deeper than the first by depth",
			[]string{"1 /a/1x", "5 /a/2x", "2 /b/1x", "3 /b/2x"},
			[]string{"/a/1x", "/b/1x", "/b/2x", "/a/2x"},
		},
		{
			"folders beyond the last one are none",
			[]string{"2 /1/2/3/4/5/6/7/8/a/a", "2 /1/2/3/4/5/6/7/8/a/b", "3 /1/2/3/4/5/6/7/8/b/a"},
			[]string{"/1/2/3/4/5/6/7/8/a/a", "/1/2/3/4/5/6/7/8/a/b", "/1/2/3/4/5/6/7/8/b/a"},
		},
	}
	for _, test := range tests {
		got := take(new(Accounts), 100, test.in...)
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

func TestAccountsAreRemembered(t *testing.T) {
	accounts := new(Accounts)
	for range 100 {
		take(accounts, 1, "1 /a/x")
	}
	// The group that comes late gets its share: every other turn, and not a hundred of them.
	var got []string
	for range 3 {
		got = append(got, take(accounts, 2, "1 /a/1x", "1 /a/2x", "1 /a/3x", "9 /b/1x", "9 /b/2x", "9 /b/3x")...)
	}
	n := 0
	for _, path := range got {
		if strings.HasPrefix(path, "/b/") {
			n++
		}
	}
	if n != 3 {
		t.Errorf("got %q, want every other one in /b/", got)
	}
	// One page at a time: that of the group whose turn it is.
	first := take(accounts, 1, "1 /a/x", "1 /b/x")
	second := take(accounts, 1, "1 /a/x", "1 /b/x")
	if slices.Equal(first, second) {
		t.Errorf("got %q twice", first)
	}
}

// TestParametersCost checks how many pages of a folder come for each one with a query in another folder.
func TestParametersCost(t *testing.T) {
	tests := []struct {
		query string
		want  int
	}{
		{"", 1},
		{"?a=1", 1},
		{"?a=1&b=1", 2},
		{"?a=1&b=1&c=1", 4},
		{"?a=1&b=1&c=1&d=1", 8},
		{"?a=1&b=1&c=1&d=1&e=1", 8},
	}
	for _, test := range tests {
		got := make(map[string]int)
		accounts := new(Accounts)
		for range 72 {
			pass := accounts.Pass(10)
			for i := range 10 {
				pass.Add(fmt.Sprintf("/a/%d/%s", i, test.query), 1)
				pass.Add(fmt.Sprintf("/b/%d/", i), 1)
			}
			for path := range pass.Take() {
				got[path[:3]]++
			}
		}
		want := map[string]int{"/a/": 720 / (1 + test.want), "/b/": 720 * test.want / (1 + test.want)}
		for folder := range want {
			// The last passes may be of one folder.
			if diff := got[folder] - want[folder]; diff < -10 || diff > 10 {
				t.Errorf("%q: got %v, want about %v", test.query, got, want)
			}
		}
	}
}

// A page that is not taken has no turn.
func TestTakeLess(t *testing.T) {
	accounts := new(Accounts)
	pass := accounts.Pass(2)
	pass.Add("/a/x", 1)
	pass.Add("/b/x", 1)
	for range pass.Take() {
		break
	}
	got := take(accounts, 1, "1 /a/x", "1 /b/x")
	if !slices.Equal(got, []string{"/b/x"}) {
		t.Errorf("got %q, want /b/x", got)
	}
}

// What a pass drops when it is full would not have come first, and what it holds is bounded.
func TestPassIsBounded(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 50 {
		accounts := new(Accounts)
		take(accounts, 10, "1 /a-1/?a=1&b=1&c=1", "1 /a-2/?a=1&b=1", "1 /b-1/x", "1 /b-1/?a=1&b=1") // some have debts
		full := accounts.Pass(10)
		same := &Accounts{groups: maps.Clone(accounts.groups)}
		all := same.Pass(1000)
		for i := range 1000 {
			path := "/"
			for range random.IntN(4) {
				path += fmt.Sprintf("%c-%d/", 'a'+random.IntN(3), random.IntN(5))
			}
			path += []string{"x", "", "?a=", "?a=1&b=", "?a=1&b=1&c=", "page/"}[random.IntN(6)] + fmt.Sprint(i)
			depth := uint8(random.IntN(5))
			full.Add(path, depth)
			all.Add(path, depth)
			if len(full.pages) > maxHeld*10 {
				t.Fatalf("holds %d pages", len(full.pages))
			}
		}
		got := slices.Collect(full.Take())
		want := slices.Collect(all.Take())[:10]
		if !slices.Equal(got, want) {
			t.Errorf("round %d: got %q, want %q", round, got, want)
		}
	}
}

func TestAccountsAreBounded(t *testing.T) {
	accounts := new(Accounts)
	for round := range 20 {
		pass := accounts.Pass(4096)
		for i := range 4096 {
			pass.Add(fmt.Sprintf("/s/%d-%d/x", round, i), 1)
		}
		for range pass.Take() {
		}
		if len(accounts.groups) > maxAccounts {
			t.Fatalf("knows %d groups", len(accounts.groups))
		}
	}
}

func FuzzPass(f *testing.F) {
	f.Add("/\n/a\n/a/\n/a/b?c=d&e\n?\n\n//\n//x//?&&\n/\xff/2\n/2/\n/%2F/é/-/3", 2)
	f.Add(strings.Repeat("/a", 1000)+"?"+strings.Repeat("a&", 1000), 1)
	f.Fuzz(func(t *testing.T, lines string, n int) {
		paths := strings.Split(lines, "\n")
		slices.Sort(paths)
		paths = slices.Compact(paths)
		accounts := new(Accounts)
		n = min(max(n, 1), 100)
		left := slices.Clone(paths)
		for len(left) > 0 {
			pass := accounts.Pass(n)
			for _, path := range left {
				pass.Add(path, uint8(len(path)))
			}
			got := slices.Collect(pass.Take())
			if len(got) != min(n, len(left)) {
				t.Fatalf("took %d of %d", len(got), len(left))
			}
			for _, path := range got {
				i := slices.Index(left, path)
				if i < 0 {
					t.Fatalf("%q was taken before or never added", path)
				}
				left = slices.Delete(left, i, i+1)
			}
		}
	})
}

func BenchmarkPass(b *testing.B) {
	sites := []struct{ name, format string }{
		{"one folder", "/wiki/page-%07d"},
		{"users", "/user-%07d/page"},
		{"sessions", "/s/%07d/b/c/d/e/f/page"},
		{"queries", "/shop/list?color=%07d&page=2"},
	}
	for _, site := range sites {
		paths := make([]string, 1_000_000)
		for i := range paths {
			paths[i] = fmt.Sprintf(site.format, i)
		}
		for _, n := range []int{64, 4096} {
			b.Run(fmt.Sprintf("%s/%d", site.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					pass := new(Accounts).Pass(n)
					for i, path := range paths {
						pass.Add(path, uint8(i%7))
					}
					for range pass.Take() {
					}
				}
			})
		}
	}
}
