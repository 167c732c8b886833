package indexing

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

const day0 = int64(1_700_000_000)

// files are pages whose files have these times, first read in a batch.
func files(batch int64, modTimes ...int64) []store.Record {
	records := make([]store.Record, len(modTimes))
	for i, at := range modTimes {
		records[i] = rec(fmt.Sprintf("/%06d =%d file", i, i))
		records[i].ModTime, records[i].First = at, batch
	}
	return records
}

// dated counts the pages that are listed with a date, and with one other than their
// file's.
func dated(t *testing.T, records []store.Record, r Options) (n, other int) {
	t.Helper()
	pages, _ := run(t, generation(t, 1000, records), r)
	for i, p := range pages {
		if p.LastMod != 0 {
			n++
		}
		if p.LastMod != 0 && p.LastMod != records[i].ModTime {
			other++
		}
	}
	return n, other
}

func TestDeployment(t *testing.T) {
	spread := func(n int, step int64) (out []int64) {
		for i := range n {
			out = append(out, day0+int64(i)*step)
		}
		return out
	}
	join := slices.Concat[[]int64]
	for _, test := range []struct {
		name  string
		times []int64
		dated int // at first sight
	}{
		{"three", spread(3, 0), 0},
		{"ten minutes exactly", []int64{day0, day0 + 300, day0 + 600}, 0},
		{"a second more", []int64{day0, day0 + 300, day0 + 601}, 3},
		{"nine, ten minutes apart", spread(9, 600), 9},
		{"ten, ten minutes apart", spread(10, 600), 0},
		{"ten, a second more apart", spread(10, 601), 10},
		{"nine of ten", join(spread(9, 75), []int64{day0 - 86400*400}), 1},
		{"eight of nine", join(spread(8, 0), []int64{day0 - 86400*400}), 9},
		{"ten of fifty", join(spread(10, 60), spread(40, 86400)[1:], []int64{day0 - 86400*400}), 40},
		{"ten of fifty-one", join(spread(10, 60), spread(41, 86400)[1:], []int64{day0 - 86400*400}), 51},
		{"nine of twenty", join(spread(9, 60), spread(12, 86400)[1:]), 20},
		{"two builds", join(spread(100, 5), spread(100, 5), []int64{day0 + 86400*400}), 1},
		{"two hours", spread(600, 12), 0},
		{"a day", spread(145, 600), 0},
		{"a page every ten minutes, for longer than a day", spread(146, 600), 146},
		{"an archive of a year beside an upload", join(spread(400, 3), spread(500, day)[1:]), 499},
		{"an archive of more years beside an upload", join(spread(100, 3), spread(500, day)[1:]), 599},
	} {
		for range 2 {
			if n, other := dated(t, files(7, test.times...), rules()); n != test.dated || other > 0 {
				t.Errorf("%s: got %d dates, %d of another time, want %d", test.name, n, other, test.dated)
			}
			slices.Reverse(test.times)
		}
	}
}

// A page that is found after a deployment, through a link or alone in its batch, has no
// date either.
func TestDeploymentFoundLater(t *testing.T) {
	for name, late := range map[string]func(r *store.Record){
		"file":   func(r *store.Record) { r.Version, r.ModTime = 1, day0+60 },
		"linked": func(r *store.Record) { r.Flags, r.Modified = r.Flags&^store.Named|store.Made, day0+60 },
	} {
		for _, n := range []int{4, 100} {
			_, res := run(t, generation(t, 1000, files(7, slices.Repeat([]int64{day0}, n)...)), rules())
			records := load(t, res.Generation)
			r := rec("/late =x linked")
			late(&r)
			r.First = 8
			if pages, _ := run(t, generation(t, 1000, append(records, r)), rules()); pages[n].LastMod != 0 {
				t.Errorf("%s, beside %d: got %d", name, n, pages[n].LastMod)
			}
			r.ModTime, r.Modified = max(r.ModTime-9999, 0), max(r.Modified-9999, 0)
			if pages, _ := run(t, generation(t, 1000, append(records, r)), rules()); pages[n].LastMod != day0+60-9999 {
				t.Errorf("%s, older than %d: got %d", name, n, pages[n].LastMod)
			}
		}
	}
}

// Where others are dated, a new file has been added with them.
func TestAddedToDatedPages(t *testing.T) {
	records := files(7, slices.Repeat([]int64{day0}, 13)...)
	for i := range 12 {
		records[i].Selected = store.Selected{Text: day0 - int64(i)*day, Dated: 7}
	}
	if n, other := dated(t, records, rules()); n != 13 || other != 11 {
		t.Errorf("got %d dates, %d of another time", n, other)
	}
}

func load(t testing.TB, g *store.Generation) (records []store.Record) {
	t.Helper()
	for r, err := range g.Records(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, *r)
	}
	return records
}

// TestUploadsAgainstModel: a time is of an upload if enough others can be reached from it, each within ten minutes of the one
// before, and if all of these lie within a day.
func TestUploadsAgainstModel(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 800 {
		var list times
		scale := []int64{650, 9000, 100_000}[random.IntN(3)]
		for range random.IntN(50) {
			list.add(day0 + random.Int64N(scale))
		}
		least := 1 + random.IntN(10)
		found := list.uploads(func(count int) bool { return count >= least })
		for _, at := range list {
			reached := map[uint32]bool{at: true}
			for n := 0; n != len(reached); {
				n = len(reached)
				for _, other := range list {
					for from := range reached {
						if other <= from+maxGap && from <= other+maxGap {
							reached[other] = true
							break
						}
					}
				}
			}
			first, last, count := at, at, 0
			for _, other := range list {
				if reached[other] {
					first, last = min(first, other), max(last, other)
					count++
				}
			}
			isLong := count < fewestDeployed && last-first > maxGap
			want := count >= least && last-first <= day && !isLong
			if got := isIn(found, int64(at)); got != want {
				t.Fatalf("%v, %d of them: %d: got %t, want %t", list, least, at, got, want)
			}
		}
	}
}

// What the date of a text is, decided with others that say nothing.
func TestDateOfText(t *testing.T) {
	now := noon.Unix()
	was := store.Selected{Text: day0, Dated: 7}
	for _, test := range []struct {
		name string
		r    store.Record
		text int64
		day  bool
	}{
		{"no text", store.Record{Version: 1, ModTime: day0}, 0, false},
		{"file", store.Record{First: 7, Version: 1, ModTime: day0}, day0, false},
		{"a list's day is not the text's", store.Record{First: 7, ModTime: day0}, 0, false},
		{"response", store.Record{First: 7, Modified: day0}, day0, false},
		{"an upstream's", store.Record{First: 7, Version: 1, ModTime: 9, Modified: day0, Flags: store.Made}, day0, false},
		{"of now", store.Record{First: 7, Modified: now - 31}, 0, false},
		{"of nearly now", store.Record{First: 7, Modified: now - 32}, now - 32, false},
		{"decided", store.Record{First: 7, Version: 1, ModTime: day0 + 5, Selected: was}, day0, false},
		{"decided as none", store.Record{First: 7, Version: 1, ModTime: day0 + 5, Selected: store.Selected{Dated: 7}}, 0, false},
		{"decided, its text gone", store.Record{Version: 1, ModTime: day0 + 5, Selected: was}, day0, false},
		{"open", store.Record{First: 9, Version: 1, ModTime: day0}, 0, false},
		{"changed, open", store.Record{First: 7, Changed: 9, Version: 1, ModTime: day0 + 5, Selected: was}, day0, false},
		{"changed", store.Record{First: 7, Changed: 8, Version: 1, ModTime: day0 + 5, Selected: was}, day0 + 5, false},
		{"changed before it was dated", store.Record{First: 7, Changed: 8, Version: 1, ModTime: day0 + 5}, day0 + 5, false},
		{"changed, time unknown", store.Record{First: 7, Changed: 8, Version: 1, Selected: was}, 0, false},
		{"changed, no later than before", store.Record{First: 7, Changed: 8, Version: 1, ModTime: day0, Selected: was}, 0, false},
		{"changed, no later, within a day", store.Record{First: 7, Changed: 8, Version: 1, ModTime: day0, Before: now - day + 1, Selected: was}, now, true},
		{"changed response", store.Record{First: 7, Changed: 8, Modified: day0 + 5, Selected: was}, day0 + 5, false},
		{"changed response, header as before", store.Record{First: 7, Changed: 8, Modified: day0, Selected: was}, 0, false},
		{"changed response, header older than the old text", store.Record{First: 7, Changed: 8, Modified: day0 + 5, Before: day0 + 6, Selected: was}, 0, false},
		{"changed response within a day", store.Record{First: 7, Changed: 8, Before: now - 30*3600 + 1, Selected: was}, now, true},
		{"changed response after a day", store.Record{First: 7, Changed: 8, Before: now - 30*3600, Selected: was}, 0, false},
		{"changed response, header within a day", store.Record{First: 7, Changed: 8, Modified: now - 60, Before: now - 70, Selected: was}, now - 60, false},
		{"changed response, the clock was set back", store.Record{First: 7, Changed: 8, Before: now + 1, Selected: was}, 0, false},
		{"changed response, the clock was set back by years", store.Record{First: 7, Changed: 8, Before: now + 50*365*day, Selected: was}, 0, false},
		{"changed response at once", store.Record{First: 7, Changed: 8, Before: now, Selected: was}, now, true},
		{"changed file of an upstream", store.Record{First: 7, Changed: 8, Version: 1, ModTime: now - 50, Before: now - 70, Flags: store.Made, Selected: was}, now, true},
	} {
		for _, mode := range []Mode{Auto, ModTime, Off} {
			r, record := rules(), test.r
			r.OpenBatch, r.Dates = 9, mode
			record.Path, record.Flags = "/a", record.Flags|store.Named|store.HTML|store.Document
			record.Fetched, record.Status, record.Text = now, 200, 1
			for _, again := range []string{"", ", again"} { // it is decided once
				_, res := run(t, generation(t, 1000, []store.Record{record}), r)
				if record = load(t, res.Generation)[0]; record.Selected.Text != test.text || record.Selected.TextDay != test.day {
					t.Errorf("%s%s: got %+v, want %d %t", test.name, again, record.Selected, test.text, test.day)
				}
				record.ModTime, record.Modified, record.Before = day0+77, day0+78, now-5
			}
		}
	}
}

func TestLastMod(t *testing.T) {
	const file, list, text, listDate = day0 + 3, day0 + 3, day0 + 4, day0 + 2
	listed := func(r *store.Record) { r.ListDate = listDate }
	declared := func(r *store.Record) { r.Declared = day0 + 5 }
	isFile := func(r *store.Record) { r.Version = 1 }
	streak := func(n uint8) func(r *store.Record) { return func(r *store.Record) { r.Streak = n } }
	steadiness := func(is store.Steadiness) func(r *store.Record) { return func(r *store.Record) { r.Steadiness = is } }
	unlisted := func(r *store.Record) { r.Selected.Listed = false }
	flag := func(f store.Flags) func(r *store.Record) { return func(r *store.Record) { r.Flags |= f } }
	type with []func(r *store.Record)
	for _, test := range []struct {
		name string
		with with
		m    Mode
		want int64
		day  bool
	}{
		{"off", with{isFile, declared}, Off, 0, false},
		{"mtime", with{isFile, declared, streak(3)}, ModTime, file, false},
		{"mtime, a list's day", with{flag(store.ModDay)}, ModTime, list, true},
		{"declared", with{isFile, declared}, Auto, day0 + 5, false},
		{"declared day", with{declared, flag(store.DeclaredDay)}, Auto, day0 + 5, true},
		{"declared moves", with{isFile, declared, flag(store.DeclaredMoves)}, Auto, day0 + 5, false},
		{"declared moves, of an application", with{declared, flag(store.DeclaredMoves), func(r *store.Record) { r.ModTime = 0 }}, Auto, text, false},
		{"declared moves, with each response", with{isFile, declared, flag(store.DeclaredMoves), func(r *store.Record) { r.ModTime, r.Fetched = day0-500, day0 }}, Auto, text, false},
		{"declared in the future", with{isFile, func(r *store.Record) { r.Declared = noon.Unix() + 1 }}, Auto, 0, false},
		{"declared just now", with{isFile, func(r *store.Record) { r.Declared = noon.Unix() }}, Auto, noon.Unix(), false},
		{"mtime in the future", with{isFile, func(r *store.Record) { r.ModTime = noon.Unix() + 1 }}, ModTime, 0, false},
		{"modified since the refresh began", with{isFile, func(r *store.Record) { r.ModTime, r.Fetched = noon.Unix()+1, noon.Unix()+2 }}, ModTime, noon.Unix() + 1, false},
		{"mtime of no clock", with{isFile, func(r *store.Record) { r.ModTime = page.Earliest - 1 }}, ModTime, 0, false},
		{"mtime in 1981", with{isFile, func(r *store.Record) { r.ModTime = page.Earliest }}, ModTime, page.Earliest, false},
		{"declared by no clock", with{isFile, func(r *store.Record) { r.Declared = 1 }}, Auto, 0, false},
		{"counter", with{isFile, streak(3)}, Auto, 0, false},
		{"counter that declares", with{isFile, declared, streak(3)}, Auto, day0 + 5, false},
		{"counter in a list", with{streak(3)}, Auto, list, false},
		{"noise", with{isFile, steadiness(store.Noisy)}, Auto, 0, false},
		{"noise that declares", with{declared, steadiness(store.Noisy)}, Auto, day0 + 5, false},
		{"text in doubt", with{declared, steadiness(store.TextInDoubt)}, Auto, 1 << 30, false},
		{"text in doubt, of a list", with{steadiness(store.TextInDoubt)}, Auto, list, false},
		{"text in doubt, of no list", with{isFile, steadiness(store.TextInDoubt)}, Auto, 1 << 30, false},
		{"declared in doubt", with{declared, steadiness(store.DateInDoubt)}, Auto, 1 << 30, false},
		{"declared in doubt at first", with{isFile, declared, steadiness(store.DateInDoubt), unlisted}, Auto, text, false},
		{"nearly a counter", with{isFile, streak(2)}, Auto, text, false},
		{"text", with{isFile}, Auto, text, false},
		{"a list's", nil, Auto, list, false},
		{"a list's day", with{flag(store.ModDay)}, Auto, list, true},
		{"a list's nothing", with{func(r *store.Record) { r.ModTime = 0 }}, Auto, text, false},
		{"a list's, of a file", with{isFile, listed}, Auto, listDate, false},
		{"a list's day, of a file", with{isFile, listed, flag(store.ModDay)}, Auto, listDate, true},
		{"a list's, of a file that declares", with{isFile, listed, declared}, Auto, day0 + 5, false},
		{"mtime, a list's, of a file", with{isFile, listed, flag(store.ModDay)}, ModTime, listDate, true},
		{"off, a list's, of a file", with{isFile, listed}, Off, 0, false},
		{"a list's that declares", with{declared}, Auto, day0 + 5, false},
		{"one that no list names any more", with{func(r *store.Record) { r.Flags, r.Linked = r.Flags&^store.Named, noon.Unix() }}, Auto, list, false},
	} {
		record := rec("/a =1")
		record.ModTime, record.First = file, 7
		record.Selected = store.Selected{Listed: true, LastMod: 1 << 30, Text: text, Dated: 7}
		for _, set := range test.with {
			set(&record)
		}
		r := rules()
		r.Dates = test.m
		pages, res := run(t, generation(t, 1000, []store.Record{record}), r)
		if pages[0].LastMod != test.want || pages[0].LastModDay != test.day {
			t.Errorf("%s: got %d %t, want %d %t", test.name, pages[0].LastMod, pages[0].LastModDay, test.want, test.day)
		}
		if got := load(t, res.Generation)[0].Selected; got != (store.Selected{Listed: true, LastMod: test.want, Day: test.day, Text: text, Dated: 7}) {
			t.Errorf("%s: %+v is kept", test.name, got)
		}
	}
}

// Dates that are alike all over the site are those of a build, and say nothing.
func TestAlike(t *testing.T) {
	for _, test := range []struct {
		name   string
		set    func(r *store.Record, i int)
		listed int
	}{
		{"declared alike", func(r *store.Record, i int) { r.Declared = day0 + 60*int64(i) }, 0},
		{"declared", func(r *store.Record, i int) { r.Declared = day0 + 90*int64(i) }, 9},
		{"declared alike, but for what is gone", func(r *store.Record, i int) {
			r.Declared = day0 + int64(i)
			if i < 2 {
				r.Absent, r.Status, r.Declared = int64(i), 200+204*uint16(1-i), day0+day*int64(i+2)
			}
		}, 0},
		{"Last-Modified alike among files", func(r *store.Record, i int) {
			if r.Modified = day0; i < 4 {
				r.Version, r.ModTime = 1, day0+day*int64(i)-1
			}
		}, 4},
		{"files alike among others", func(r *store.Record, i int) {
			r.Modified = day0 + day*int64(i)
			if i < 5 {
				r.Version, r.ModTime = 1, day0
			}
		}, 4},
		{"Last-Modified alike", func(r *store.Record, i int) { r.Modified = day0 + 60*int64(i) }, 0},
		{"Last-Modified", func(r *store.Record, i int) { r.Modified = day0 + 90*int64(i) }, 9},
		{"a list's alike", func(r *store.Record, i int) { r.ModTime = day0 + 60*int64(i) }, 0},
		{"a list's alike, of files", func(r *store.Record, i int) {
			r.Version, r.ModTime, r.ListDate = 1, 0, day0+60*int64(i)
		}, 0},
		{"a list's", func(r *store.Record, i int) { r.ModTime = day0 + 90*int64(i) }, 9},
		{"a list's of two pages", func(r *store.Record, i int) {
			if i < 2 {
				r.ModTime = day0
			}
		}, 2},
		{"Last-Modified alike at a change", func(r *store.Record, i int) { r.Modified, r.Changed, r.Selected.Dated = day0, 8+int64(i)%9/8, 8 }, 0},
	} {
		records := files(7, make([]int64, 9)...)
		for i := range records {
			records[i].Version = 0
			test.set(&records[i], i)
		}
		if n, _ := dated(t, records, rules()); n != test.listed {
			t.Errorf("%s: got %d dates, want %d", test.name, n, test.listed)
		}
	}
}

// TestTrustLists: dates of a list that the operator names count though they are all alike.
func TestTrustLists(t *testing.T) {
	for trusted, want := range map[bool]int{true: 9, false: 0} {
		records := files(7, slices.Repeat([]int64{day0}, 9)...)
		for i := range records {
			records[i].Version = 0
		}
		r := rules()
		r.TrustLists = trusted
		if n, _ := dated(t, records, r); n != want {
			t.Errorf("trusted %t: got %d dates, want %d", trusted, n, want)
		}
	}
}

// TestEditBesideImport: where an import gave all pages of an application one date, that of an edit since is true. Several at once
// may be those of a document that was read after the next build.
func TestEditBesideImport(t *testing.T) {
	for edits, want := range map[int]int{1: 1, 2: 2, 3: 0} {
		records := files(7, slices.Repeat([]int64{day0}, 40)...)
		for i := range records {
			records[i].Version = 0
			if i < edits {
				records[i].ModTime += day + 60*int64(i)
			}
		}
		n, _ := dated(t, records, rules())
		if n != want {
			t.Errorf("%d edits: got %d dates, want %d", edits, n, want)
		}
	}
}

// TestToldPages: pages that were fetched because a list told of a change are no sample of a template, unless the list has a new date
// for all pages at each build.
func TestToldPages(t *testing.T) {
	batch := noon.Unix() - 100
	for name, test := range map[string]struct {
		date func(i int) int64
		want int // pages that are dated anew
	}{
		"two edits": {func(i int) int64 { return day0 + int64(i)*day }, 2},
		"a build":   {func(int) int64 { return batch }, 0},
	} {
		records := files(7, slices.Repeat([]int64{day0}, 3)...)
		for i := range records {
			r := &records[i]
			r.Version = 0
			r.ModTime = test.date(i)
			r.Selected = store.Selected{Listed: true, LastMod: day0, Text: day0, Dated: 7}
			r.Fetched = batch
			r.Before = batch - 60
			if i < 2 {
				r.Changed = batch
				r.FoundBy = store.ByList
			}
		}
		_, res := run(t, generation(t, 1000, records), rules())
		n := 0
		for _, rec := range load(t, res.Generation) {
			if rec.Selected.Text > day0 {
				n++
			}
		}
		if n != test.want {
			t.Errorf("%s: %d pages are dated anew, want %d", name, n, test.want)
		}
	}
}

// Where most texts change in one batch, the template did: dates stay.
func TestTemplate(t *testing.T) {
	for _, test := range []struct {
		changed, same, unfetched, fresh, counters int
		isFile, want                              bool
	}{
		{2, 0, 0, 0, 0, true, false}, {3, 0, 0, 0, 0, true, true}, {2, 1, 0, 0, 0, true, true}, {2, 2, 0, 0, 0, true, false}, {51, 49, 0, 0, 0, true, true},
		{50, 50, 0, 0, 40, true, false}, {51, 49, 0, 0, 40, true, true}, {3, 0, 0, 9, 0, true, true}, {3, 0, 3, 0, 0, true, false}, {1, 3, 0, 0, 20, true, false},
		{3, 0, 3, 0, 0, false, true}, {3, 3, 9, 0, 0, false, false}, {2, 0, 9, 0, 0, false, false},
	} {
		records := files(7, slices.Repeat([]int64{day0 + 50}, test.changed+test.same+test.unfetched+test.fresh+test.counters)...)
		batch := noon.Unix() - 1000
		for i := range records {
			r := &records[i]
			r.Selected = store.Selected{Listed: true, LastMod: day0, Text: day0, Dated: 7}
			if !test.isFile {
				r.Version, r.ModTime, r.Modified = 0, 0, noon.Unix()-200-int64(i)*1000
			}
			switch n := i - test.changed; {
			case n < 0:
				r.Changed = batch
			case n < test.same:
			case n < test.same+test.unfetched:
				r.Fetched = batch - 1
			case n < test.same+test.unfetched+test.fresh:
				r.First, r.Selected = batch, store.Selected{}
			default:
				r.Changed, r.Streak = batch, maxStreak
			}
		}
		pages, res := run(t, generation(t, 1000, records), rules())
		if got := pages[0].LastMod == day0; got != test.want || (res.Changes.Changed.Count-test.counters <= 0) != test.want {
			t.Errorf("%+v: got %t, %d changed", test, got, res.Changes.Changed.Count)
		}
		if selected := load(t, res.Generation)[0].Selected; selected.Dated != batch {
			t.Errorf("%+v: the change is not dated: %+v", test, selected)
		}
	}
}

// TestChosenPages: pages that were fetched because they may have changed are no sample of a template, and keep their dates beside
// one.
func TestChosenPages(t *testing.T) {
	batch := noon.Unix() - 100
	for name, others := range map[string]int{"alone": 0, "beside a template": 5} {
		records := files(7, slices.Repeat([]int64{day0 + 50}, 3+others)...)
		for i := range records {
			r := &records[i]
			r.Version, r.ModTime, r.Modified = 0, 0, noon.Unix()-200-int64(i)*1000
			r.Selected = store.Selected{Listed: true, LastMod: day0, Text: day0, Dated: 7}
			r.Changed = batch
			if i < 3 {
				r.FoundBy = []store.Cause{store.ByVisitor, store.ByHub, store.ByOperator}[i]
			}
		}
		pages, res := run(t, generation(t, 1000, records), rules())
		for i, p := range pages {
			if isNew := p.LastMod > day0; isNew != (i < 3) {
				t.Errorf("%s: page %d has the date %d", name, i, p.LastMod)
			}
		}
		if n := res.Changes.Changed.Count; n != 3 {
			t.Errorf("%s: %d changes", name, n)
		}
	}
}

// A deployment that rewrites every file with the same text moves no date.
func TestRedeployed(t *testing.T) {
	const n = 50
	times := make([]int64, n)
	for i := range times {
		times[i] = day0 + int64(i)*day
	}
	g := generation(t, 20, files(7, times...))
	batch := int64(7)
	deploy := func(at int64, changed int) (moved int) {
		before, _ := run(t, g, rules())
		records := load(t, g)
		batch++
		for i := range records {
			records[i].ModTime, records[i].Version = at+int64(i), records[i].Version+1
			if i < changed {
				records[i].Changed, records[i].Text = batch, records[i].Text+1
			}
		}
		after, res := run(t, generation(t, 20, records), rules())
		for i := range after {
			if after[i].LastMod != before[i].LastMod {
				moved++
			}
		}
		g = res.Generation
		return moved
	}
	_, res := run(t, g, rules())
	g = res.Generation
	later := noon.Add(-time.Hour).Unix()
	for _, changed := range []int{0, 1, n / 2, n/2 + 1, n, 0, 2} {
		want := changed
		if 2*changed > n {
			want = 0
		}
		if got := deploy(later, changed); got != want {
			t.Errorf("deployed with %d other texts: %d dates moved", changed, got)
		}
		later += 60
	}
}

// While a batch is open its pages have no date of their files, then they are dated once.
func TestOpenBatch(t *testing.T) {
	r := rules()
	r.OpenBatch = 7
	g := generation(t, 1000, files(7, day0, day0+day, day0+2*day))
	pages, res := run(t, g, r)
	if pages[0].LastMod != 0 || res.Changes.Added.Count != 3 {
		t.Errorf("open: got %d, %+v", pages[0].LastMod, res.Changes)
	}
	r.OpenBatch = 9
	pages, res = run(t, res.Generation, r)
	if pages[0].LastMod != day0 || res.Changes.Changed.Count != 0 {
		t.Errorf("complete: got %d, %+v", pages[0].LastMod, res.Changes)
	}
	// Of changes that were made on three days, those of an open batch are not dated yet.
	records := load(t, res.Generation)
	for i := range records {
		records[i].ModTime, records[i].Changed = day0+(10+int64(i))*day, 8+min(int64(i), 1)
	}
	pages, res = run(t, generation(t, 1000, records), r)
	if pages[0].LastMod != day0+10*day || pages[1].LastMod != day0+day || res.Changes.Changed.Count != 1 {
		t.Errorf("changed: got %d, %d, %+v", pages[0].LastMod, pages[1].LastMod, res.Changes)
	}
}
