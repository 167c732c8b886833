package page

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestMerge(t *testing.T) {
	const daily, weekly = ChangeFreq(3), ChangeFreq(4)
	for _, test := range []struct {
		name       string
		p, o, want Page
	}{
		{"nothing known", Page{Path: "/a"}, Page{Path: "/b"}, Page{Path: "/a"}},
		{"sources", Page{Path: "/a", Sources: 1}, Page{Path: "/a", Sources: 4}, Page{Path: "/a", Sources: 5}},
		{
			"all from the other",
			Page{Path: "/"},
			Page{LastMod: 5, LastModDay: true, ChangeFreq: daily, Priority: 7, Version: 8},
			Page{Path: "/", LastMod: 5, LastModDay: true, ChangeFreq: daily, Priority: 7, Version: 8},
		},
		{
			"what is known stays",
			Page{LastMod: 5, ChangeFreq: daily, Priority: 7, Version: 8},
			Page{LastMod: 4, LastModDay: true, ChangeFreq: weekly, Priority: 9, Version: 10},
			Page{LastMod: 5, ChangeFreq: daily, Priority: 7, Version: 8},
		},
		{"the later time", Page{LastMod: 5, LastModDay: true}, Page{LastMod: 6}, Page{LastMod: 6}},
		{"a list's date beside a file's time", Page{LastMod: 5, LastModDay: true}, Page{FileTime: 9, Version: 1}, Page{LastMod: 5, LastModDay: true, FileTime: 9, Version: 1}},
		{"a file's time beside a list's date", Page{FileTime: 9, Version: 1}, Page{LastMod: 5, LastModDay: true}, Page{LastMod: 5, LastModDay: true, FileTime: 9, Version: 1}},
		{"the time of a day", Page{LastMod: 86400, LastModDay: true}, Page{LastMod: 86400}, Page{LastMod: 86400}},
	} {
		got := test.p
		if got.Merge(test.o); got != test.want {
			t.Errorf("%s: got %+v, want %+v", test.name, got, test.want)
		}
	}
}

// Which source comes first decides no date, and neither kind of date becomes the other.
func TestMergeOrder(t *testing.T) {
	type dates struct {
		lastMod  int64
		day      bool
		fileTime int64
	}
	datesOf := func(p Page) dates { return dates{p.LastMod, p.LastModDay, p.FileTime} }
	var all []Page
	for _, lastMod := range []int64{0, 86400, 2 * 86400} {
		for _, fileTime := range []int64{0, 86400, 3 * 86400} {
			all = append(all, Page{LastMod: lastMod, FileTime: fileTime}, Page{LastMod: lastMod, LastModDay: lastMod != 0, FileTime: fileTime})
		}
	}
	for _, a := range all {
		for _, b := range all {
			ab, ba := a, b
			ab.Merge(b)
			ba.Merge(a)
			if datesOf(ab) != datesOf(ba) {
				t.Errorf("%+v and %+v: got %+v in one order, %+v in the other", datesOf(a), datesOf(b), datesOf(ab), datesOf(ba))
			}
			if ab.LastMod != max(a.LastMod, b.LastMod) || ab.FileTime != max(a.FileTime, b.FileTime) {
				t.Errorf("%+v and %+v: got %+v", datesOf(a), datesOf(b), datesOf(ab))
			}
		}
	}
}

func TestExtensionsEmpty(t *testing.T) {
	for _, test := range []struct {
		e    *Extensions
		want bool
	}{
		{nil, true}, {&Extensions{Title: "a", Description: "b", Markdown: "c", Published: 1, PublishedDay: true, Headline: "d", Lang: "e"}, true}, {&Extensions{Images: []string{""}}, false}, {&Extensions{Alternates: make([]Alternate, 1)}, false},
	} {
		if got := test.e.Empty(); got != test.want {
			t.Errorf("%+v: got %t, want %t", test.e, got, test.want)
		}
	}
}

func TestExtensionsIsZero(t *testing.T) {
	for _, e := range []*Extensions{nil, {}, {Images: []string{}}} {
		if !e.IsZero() {
			t.Errorf("%+v: it says something", e)
		}
	}
	for _, e := range []Extensions{
		{Title: "a"}, {Alternates: make([]Alternate, 1)}, {Images: []string{""}}, {Description: "a"}, {Markdown: "a"},
		{Published: 1}, {Headline: "a"}, {Lang: "a"}, {Depth: 1},
	} {
		if e.IsZero() {
			t.Errorf("%+v: it says nothing", e)
		}
	}
}

func TestCompare(t *testing.T) {
	want := []string{"/", "/%C3%A9", "/A", "/a", "/a%20", "/a-b", "/a/b", "/a?b", "/ab"}
	pages := make([]Page, len(want))
	for i, path := range want {
		pages[len(want)-1-i].Path = path
	}
	slices.SortFunc(pages, Compare)
	for i, p := range pages {
		if p.Path != want[i] {
			t.Errorf("place %d: got %q, want %q", i, p.Path, want[i])
		}
	}
	if got := Compare(Page{Path: "/a", LastMod: 1}, Page{Path: "/a", Priority: 2}); got != 0 {
		t.Errorf("one path: got %d, want 0", got)
	}
}

func TestChangeFreq(t *testing.T) {
	names := ChangeFreqs()
	if len(names) != 7 || names[0] != "always" || names[6] != "never" {
		t.Errorf("got %q", names)
	}
	for i, name := range names {
		c, err := ParseChangeFreq(name)
		if err != nil || int(c) != i+1 || c.String() != name {
			t.Errorf("%q: got %d %q, %v", name, c, c, err)
		}
	}
	for _, bad := range []string{"", "Daily", "daily ", "fortnightly"} {
		if c, err := ParseChangeFreq(bad); err == nil || !strings.Contains(err.Error(), "always, hourly") {
			t.Errorf("%q: got %q, %v", bad, c, err)
		}
	}
	for c := range 256 {
		if got := ChangeFreq(c).String(); (got != "") != (c >= 1 && c <= 7) {
			t.Errorf("%d: got %q", c, got)
		}
	}
}

func TestPriority(t *testing.T) {
	for in, want := range map[string]string{
		"0": "0.0", "0.0": "0.0", "1": "1.0", "1.0": "1.0", "1.000": "1.0", "0.5": "0.5", ".5": "0.5", "00.50": "0.5",
		"0.25": "0.25", "0.05": "0.05", "0.994": "0.99", "0.995": "1.0", "0.001": "0.0", "1.": "1.0",
	} {
		p, err := ParsePriority(in)
		if err != nil || p == 0 || p.String() != want {
			t.Errorf("%q: got %q, %v, want %q", in, p, err, want)
		}
	}
	for _, bad := range []string{"", ".", "-0.1", "+0.1", "1.01", "2", "0,5", "5e-1", "1e0", "0x1", "0_1", "NaN", "Inf", " 0.5", "high", "1.1.1"} {
		if p, err := ParsePriority(bad); err == nil {
			t.Errorf("%q: got %q", bad, p)
		}
	}
	if p, err := PriorityOf(-1); err == nil {
		t.Errorf("-1: got %q", p)
	}
	for n := range 256 {
		p := Priority(n)
		if (p.String() != "") != (n >= 1 && n <= 101) {
			t.Errorf("%d: got %q", n, p)
		}
		if p.String() == "" {
			continue
		}
		f, err := strconv.ParseFloat(p.String(), 64)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := PriorityOf(f); again != p || err != nil {
			t.Errorf("%q: got %q, %v", p, again, err)
		}
	}
}

func TestWords(t *testing.T) {
	for _, test := range []struct {
		words         []string
		match, others string
	}{
		{strings.Fields("logout signout add delete cart"), "/docs/logout.php /users/sign_out /add-to-cart/5 /log-out /users/sign-out /LogOut /a/logout;x /log%6Fut /signOut /cart?x /a/delete/b /Add",
			"/ /address /additional /logouts /xlogout /api/v1 /admin /author/admin/ /a?b=/logout /cartography /logo/ut"},
		{[]string{"Café", "sign-out"}, "/caf%C3%A9 /CAF%C3%89/ /signout /sign_out.html", "/cafe /sign /logout"},
		{nil, "", "/logout"},
	} {
		var w Words
		for _, word := range test.words {
			if err := w.Add(word); err != nil {
				t.Fatal(err)
			}
		}
		for _, path := range strings.Fields(test.match) {
			if w.Match(path) == "" {
				t.Errorf("%q: %s does not match", test.words, path)
			}
		}
		for _, path := range strings.Fields(test.others) {
			if word := w.Match(path); word != "" {
				t.Errorf("%q: %s matches %s", test.words, path, word)
			}
		}
	}
	for _, word := range []string{"", "-", "logout,cart"} {
		if err := new(Words).Add(word); err == nil {
			t.Errorf("%q is no error", word)
		}
	}
}

func TestBestDate(t *testing.T) {
	const date, file = 1_700_000_000, 1_600_000_000
	for _, test := range []struct {
		name string
		p    Page
		want int64
		day  bool
	}{
		{"none", Page{}, 0, false},
		{"a file's", Page{FileTime: file}, file, false},
		{"a list's", Page{LastMod: date, LastModDay: true, FileTime: file}, date, true},
		{"a file's of no clock", Page{FileTime: 1}, 0, false},
		{"a list's of no clock", Page{LastMod: Earliest - 1, LastModDay: true, FileTime: file}, file, false},
		{"in 1981", Page{LastMod: Earliest}, Earliest, false},
		{"a file's of now", Page{FileTime: date}, date, false},
		{"a list's of the future", Page{LastMod: date + 1, FileTime: file}, file, false},
		{"a file's of the future", Page{FileTime: date + 1}, 0, false},
	} {
		if got, day := test.p.BestDate(date); got != test.want || day != test.day {
			t.Errorf("%s: got %d %t, want %d %t", test.name, got, day, test.want, test.day)
		}
	}
}
