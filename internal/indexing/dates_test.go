package indexing

import (
	"context"
	"fmt"
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

// dated counts the pages that are listed with a date.
func dated(t *testing.T, records []store.Record, r Options) (n int) {
	t.Helper()
	pages, _ := run(t, generation(t, 1000, records), r)
	for _, p := range pages {
		if p.LastMod != 0 {
			n++
		}
	}
	return n
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

// TestUploads is rule 10: new pages whose times are those of an upload have no date.
func TestUploads(t *testing.T) {
	spread := func(n int, step int64) (out []int64) {
		for i := range n {
			out = append(out, day0/day*day+int64(i)*step)
		}
		return out
	}
	const long = -400 * day
	earlier := func(times []int64) []int64 {
		out := slices.Clone(times)
		for i := range out {
			out[i] -= 1000 * day
		}
		return out
	}
	for _, test := range []struct {
		name  string
		times []int64
		dated int
	}{
		{"two on one day", spread(2, 60), 2},
		{"three", spread(3, hour), 0},
		{"three on three days", spread(3, day), 3},
		{"nine tenths", append(spread(9, hour), day0+long), 1},
		{"less", append(spread(8, hour), day0+long, day0+2*long), 10},
		{"ten in three days, of fifty", slices.Concat(spread(10, 4*hour), earlier(spread(40, 2*day))), 40},
		{"ten in three days, of fifty-one", slices.Concat(spread(10, 4*hour), earlier(spread(41, 2*day))), 51},
		{"ten in ten days", spread(10, day), 10},
	} {
		if n := dated(t, files(7, test.times...), rules()); n != test.dated {
			t.Errorf("%s: got %d dates, want %d", test.name, n, test.dated)
		}
	}
}

// TestFoundAfterUpload: a page that is found later has no date of an upload, but one of later.
func TestFoundAfterUpload(t *testing.T) {
	batch := day0 + 1000
	for _, n := range []int{4, 100} {
		_, res := run(t, generation(t, 1000, files(batch, slices.Repeat([]int64{day0}, n)...)), rules())
		for at, want := range map[int64]bool{day0 + 60: false, batch + hour: false, batch + hour + 1: true, day0 - 3*day: true} {
			r := rec("/late =x file")
			r.First, r.ModTime = batch+day, at
			pages, _ := run(t, generation(t, 1000, append(load(t, res.Generation), r)), rules())
			if got := pages[n].LastMod == at; got != want {
				t.Errorf("beside %d, %d seconds later: dated %t", n, at-day0, got)
			}
		}
	}
}

// TestBuilds: stated dates are those of a build if ten pages have the same second, or nine tenths the same day.
func TestBuilds(t *testing.T) {
	midnight := day0 / day * day
	noonDay := date{unix: midnight + day/2}
	for _, test := range []struct {
		name     string
		e        date
		same     int // pages with that date
		sameDay  int // and on the day
		others   int
		isOfTool bool
	}{
		{"one", noonDay, 1, 0, 0, false},
		{"two", noonDay, 2, 0, 0, false},
		{"three of three", noonDay, 3, 0, 0, true},
		{"three of four", noonDay, 3, 0, 1, false},
		{"nine of ten on a day", noonDay, 1, 8, 1, true},
		{"eight of nine on a day", noonDay, 1, 7, 1, false},
		{"nine in a second, of many", noonDay, 9, 0, 1000, false},
		{"ten in a second, of many", noonDay, 10, 0, 1000, true},
		{"ten on a day, of many", date{midnight, true}, 10, 0, 1000, false},
		{"ten at midnight, of many", date{unix: midnight}, 10, 0, 1000, false},
	} {
		var s times
		for range test.same {
			s.add(test.e)
		}
		for i := range test.sameDay {
			s.add(date{unix: noonDay.unix + int64(i) + 1})
		}
		for i := range test.others {
			s.add(date{unix: midnight - int64(i+2)*day})
		}
		if got := s.areOfBuild(test.e); got != test.isOfTool {
			t.Errorf("%s: got %t", test.name, got)
		}
	}
}

// TestStatedDates: the dates of a build count neither for pages of files nor of applications, but for those of a list that the
// operator names.
func TestStatedDates(t *testing.T) {
	const build = day0 + day/2
	for name, test := range map[string]struct {
		set     func(r *store.Record, i int64)
		trusted bool
		want    int
	}{
		"declared":                  {set: func(r *store.Record, i int64) { r.Declared = day0 + i*day }, want: 40},
		"declared by a build":       {set: func(r *store.Record, i int64) { r.Declared = build + i }, want: 0},
		"a list's":                  {set: func(r *store.Record, i int64) { r.ModTime = day0 + i*day }, want: 40},
		"a list's of a build":       {set: func(r *store.Record, _ int64) { r.ModTime = build }, want: 0},
		"urls, all alike":           {set: func(r *store.Record, _ int64) { r.ModTime = build }, trusted: true, want: 40},
		"a list's, of files":        {set: func(r *store.Record, i int64) { r.Version, r.ListDate = 1, day0+i*day }, want: 40},
		"a list's of a build, few":  {set: func(r *store.Record, i int64) { r.ModTime = build + max(i-36, 0)*day }, want: 3},
		"two fifths have one build": {set: func(r *store.Record, i int64) { r.ModTime = build + max(i-15, 0)*day }, want: 24},
		"declared, beside a list's": {set: func(r *store.Record, i int64) { r.ModTime, r.Declared = build, day0+i*day }, want: 40},
		"the future and the past":   {set: func(r *store.Record, i int64) { r.Declared, r.ModTime = noon.Unix()+day, 1 }, want: 0},
	} {
		records := files(7, make([]int64, 40)...)
		for i := range records {
			records[i].Version = 0
			test.set(&records[i], int64(i))
		}
		r := rules()
		r.TrustLists = test.trusted
		if n := dated(t, records, r); n != test.want {
			t.Errorf("%s: got %d dates, want %d", name, n, test.want)
		}
	}
}

// TestDateOfText is what the date of a text is, decided with others that say nothing, and by rule 9 where it has changed.
func TestDateOfText(t *testing.T) {
	now := noon.Unix()
	was := store.Selected{Text: day0, Dated: 7}
	changed := func(r store.Record) store.Record {
		r.First, r.Changed, r.Selected = 7, now-200, was
		r.Found = store.Unix32(now)
		return r
	}
	for _, test := range []struct {
		name string
		r    store.Record
		text int64
		day  bool
	}{
		{"no text", store.Record{Version: 1, ModTime: day0}, 0, false},
		{"file", store.Record{First: 7, Version: 1, ModTime: day0}, day0, false},
		{"declared", store.Record{First: 7, Version: 1, ModTime: day0, Declared: day0 - 5}, day0 - 5, false},
		{"a list's", store.Record{First: 7, Version: 1, ModTime: day0, ListDate: day0 + 5}, day0 + 5, false},
		{"a list's day", store.Record{First: 7, ModTime: day0, Flags: store.ModDay}, day0, true},
		{"response", store.Record{First: 7, Modified: day0}, day0, false},
		{"an upstream's", store.Record{First: 7, Version: 1, ModTime: 9, Modified: day0, Flags: store.Made}, day0, false},
		{"of now", store.Record{First: 7, Modified: now - 31}, 0, false},
		{"of nearly now", store.Record{First: 7, Modified: now - 32}, now - 32, false},
		{"decided", store.Record{First: 7, Version: 1, ModTime: day0 + 5, Selected: was}, day0, false},
		{"decided as none", store.Record{First: 7, Version: 1, ModTime: day0 + 5, Selected: store.Selected{Dated: 7}}, 0, false},
		{"decided, its text gone", store.Record{Version: 1, ModTime: day0 + 5, Selected: was}, day0, false},
		{"open", store.Record{First: 9, Version: 1, ModTime: day0}, 0, false},
		{"changed, open", store.Record{First: 7, Changed: 9, Version: 1, ModTime: day0 + 5, Selected: was}, day0, false},
		{"changed, in doubt", store.Record{First: 7, Changed: 8, Steadiness: store.TextInDoubt, Modified: day0 + 5, Selected: was}, day0, false},
		{"changed before it was dated", store.Record{First: 7, Changed: 8, Version: 1, ModTime: day0 + 5}, day0 + 5, false},
		{"changed", changed(store.Record{Version: 1, ModTime: day0 + 5}), day0 + 5, false},
		{"changed, and written again", changed(store.Record{Version: 1, ModTime: now - 199, Before: now - 209}), now, true},
		{"changed, declared", changed(store.Record{Version: 1, ModTime: day0 + 5, Declared: day0 + 3, Before: day0}), day0 + 3, false},
		{"changed, declared before", changed(store.Record{Version: 1, ModTime: day0 + 5, Declared: day0, Before: day0 + 1}), day0 + 5, false},
		{"changed, declared for this day", changed(store.Record{Declared: now / day * day, Flags: store.DeclaredDay, Before: now - 60}), now / day * day, true},
		{"changed, time unknown", changed(store.Record{Version: 1}), 0, false},
		{"changed, before the last fetch", changed(store.Record{Version: 1, ModTime: day0, Before: day0 + 1}), 0, false},
		{"changed, no later, within a day", changed(store.Record{Version: 1, ModTime: day0, Before: now - day + 1}), now, true},
		{"changed response", changed(store.Record{Modified: day0 + 5}), day0 + 5, false},
		{"changed response, header older than the old text", changed(store.Record{Modified: day0 + 5, Before: day0 + 6}), 0, false},
		{"changed response within thirty hours", changed(store.Record{Before: now - 30*hour + 1}), now, true},
		{"changed response after thirty hours", changed(store.Record{Before: now - 30*hour}), 0, false},
		{"changed response, header within a day", changed(store.Record{Modified: now - 205, Before: now - 209}), now - 205, false},
		{"changed response, the clock was set back", changed(store.Record{Before: now + 1}), 0, false},
		{"changed response, the clock was set back by years", changed(store.Record{Before: now + 50*365*day}), 0, false},
		{"changed response at once", changed(store.Record{Before: now}), now, true},
		{"changed file of an upstream", changed(store.Record{Version: 1, ModTime: now - 50, Before: now - 70, Flags: store.Made}), now, true},
	} {
		for _, mode := range []Mode{Auto, ModTime, Off} {
			r, record := rules(), test.r
			r.OpenBatch, r.Dates = 9, mode
			record.Path, record.Flags = "/a", record.Flags|store.Named|store.HTML|store.Document
			record.Status, record.Text, record.Blocks, record.Difference = 200, 1, 1, 1
			record.Fetched = now
			for _, again := range []string{"", ", again"} { // it is decided once
				_, res := run(t, generation(t, 1000, []store.Record{record}), r)
				if record = load(t, res.Generation)[0]; record.Selected.Text != test.text || record.Selected.TextDay != test.day {
					t.Errorf("%s%s: got %+v, want %d %t", test.name, again, record.Selected, test.text, test.day)
				}
				record.Modified, record.Before = day0+78, now-5
			}
		}
	}
}

// TestRestated is rule 11: what is stated since the text was found is believed.
func TestRestated(t *testing.T) {
	known := day0 + 10*day // when the text was found
	for _, test := range []struct {
		name string
		set  func(r *store.Record)
		want bool
	}{
		{"declared anew", func(r *store.Record) { r.Declared = known + 1 }, true},
		{"declared beside a list's", func(r *store.Record) { r.ModTime, r.Declared = known+1, known-5*day }, false},
		{"declared as before", func(r *store.Record) { r.Declared = known }, false},
		{"named anew by a list", func(r *store.Record) { r.ModTime = known + 1 }, true},
		{"declared by each response", func(r *store.Record) { r.Declared, r.Flags = known+1, r.Flags|store.DeclaredMoves }, false},
		{"declared in the future", func(r *store.Record) { r.Declared = noon.Unix() + day }, false},
		{"to be confirmed", func(r *store.Record) { r.Declared, r.Steadiness = known+1, store.DateInDoubt }, false},
		{"of a text in doubt", func(r *store.Record) { r.ModTime, r.Steadiness = known+1, store.TextInDoubt }, true},
		{"by a file", func(r *store.Record) { r.Version, r.ModTime, r.Declared = 1, known+1, known+1 }, true},
		{"with each response of a file", func(r *store.Record) { r.Version, r.Declared = 1, noon.Unix() }, false},
		{"by a file that was written just now", func(r *store.Record) { r.Version, r.ModTime, r.Declared = 1, noon.Unix()-20, known+1 }, false},
	} {
		r := rec("/a =1")
		r.First, r.Changed, r.Found = day0, known-hour, store.Unix32(known)
		r.Selected = store.Selected{Listed: true, LastMod: day0, Text: day0, Dated: known - hour}
		test.set(&r)
		pages, _ := run(t, generation(t, 1000, []store.Record{r}), rules())
		if got := pages[0].LastMod == known+1; got != test.want {
			t.Errorf("%s: got %d", test.name, pages[0].LastMod)
		}
	}
}

// TestShown is which date is listed, given that of the text.
func TestShown(t *testing.T) {
	const listDate, file, text = day0 + 2, day0 + 3, day0 + 4
	type with []func(r *store.Record)
	isFile := func(r *store.Record) { r.Version = 1 }
	isListed := func(r *store.Record) { r.Version, r.ListDate = 1, listDate }
	declared := func(r *store.Record) { r.Declared = day0 }
	streak := func(r *store.Record) { r.Streak = maxStreak }
	noisy := func(r *store.Record) { r.Steadiness = store.Noisy }
	toDay := func(r *store.Record) { r.Flags |= store.ModDay }
	at := func(unix int64) func(r *store.Record) {
		return func(r *store.Record) { r.ModTime, r.Version = unix, 1 }
	}
	for _, test := range []struct {
		name    string
		with    with
		mode    Mode
		trusted bool
		want    int64
		day     bool
	}{
		{"text", with{isFile}, Auto, false, text, false},
		{"text in doubt", with{isFile, func(r *store.Record) { r.Steadiness = store.TextInDoubt }}, Auto, false, text, false},
		{"a list's, older than the text", nil, Auto, false, text, false},
		{"urls", nil, Auto, true, file, false},
		{"urls, to the day", with{toDay}, Auto, true, file, true},
		{"urls, of a file", with{isListed}, Auto, true, listDate, false},
		{"off", with{isListed}, Off, true, 0, false},
		{"mtime", with{isFile, declared, streak}, ModTime, false, file, false},
		{"mtime, a list's day", with{toDay}, ModTime, false, file, true},
		{"mtime, a list's, of a file", with{isListed, toDay}, ModTime, false, listDate, true},
		{"mtime in the future", with{at(noon.Unix() + 1)}, ModTime, false, 0, false},
		{"mtime since the refresh began", with{at(noon.Unix() + 1), func(r *store.Record) { r.Fetched = noon.Unix() + 2 }}, ModTime, false, noon.Unix() + 1, false},
		{"mtime of no clock", with{at(page.Earliest - 1)}, ModTime, false, 0, false},
		{"mtime in 1981", with{at(page.Earliest)}, ModTime, false, page.Earliest, false},
		{"a counter", with{isFile, streak}, Auto, false, 0, false},
		{"a counter that declares", with{isFile, declared, streak}, Auto, false, day0, false},
		{"a counter in a list", with{isListed, streak}, Auto, false, listDate, false},
		{"noise", with{isFile, noisy}, Auto, false, 0, false},
		{"noise that declares", with{isFile, declared, noisy}, Auto, false, day0, false},
	} {
		r := rec("/a =1")
		r.ModTime, r.First = file, day0+day
		r.Selected = store.Selected{Listed: true, LastMod: 1 << 30, Text: text, Dated: day0 + day}
		for _, set := range test.with {
			set(&r)
		}
		o := rules()
		o.Dates, o.TrustLists = test.mode, test.trusted
		pages, _ := run(t, generation(t, 1000, []store.Record{r}), o)
		if pages[0].LastMod != test.want || pages[0].LastModDay != test.day {
			t.Errorf("%s: got %d %t, want %d %t", test.name, pages[0].LastMod, pages[0].LastModDay, test.want, test.day)
		}
	}
}

// TestRound is the rules 7 and 8, of changes that are found together.
func TestRound(t *testing.T) {
	found := noon.Unix() - 1000
	const own, shared = 0, 77
	type pages struct {
		n          int
		difference uint64 // own: another one for each
		set        func(r *store.Record)
	}
	same := func(r *store.Record) { r.Changed = 0 }
	early := func(r *store.Record) { r.Changed, r.Fetched = 0, found-2*hour }
	noisy := func(r *store.Record) { r.Streak = maxStreak }
	doubted := func(r *store.Record) { r.Steadiness = store.TextInDoubt }
	asked := func(r *store.Record) { r.FoundBy = store.ByVisitor }
	told := func(r *store.Record) { r.FoundBy = store.ByList }
	back := func(r *store.Record) { r.Difference = 0 }
	datedBefore := func(ago int64) func(r *store.Record) {
		return func(r *store.Record) {
			r.Changed = found - ago
			r.Found = store.Unix32(found - ago)
			r.Selected.Dated = r.Changed
			r.Selected.Text, r.Was = day0+5, store.Unix32(day0)
		}
	}
	for _, test := range []struct {
		name    string
		changed pages // of which the date is looked at
		others  []pages
		want    textChange // of files, and of pages of an application
		wantApp textChange
	}{
		{"one of one", pages{n: 1}, nil, edit, edit},
		{"nine of nine", pages{n: 9}, nil, edit, edit},
		{"ten of ten", pages{n: 10}, nil, template, template},
		{"five of ten", pages{n: 5}, []pages{{n: 5, set: same}}, edit, edit},
		{"six of ten", pages{n: 6}, []pages{{n: 4, set: same}}, template, template},
		{"six of ten, the others fetched before", pages{n: 6}, []pages{{n: 4, set: early}}, template, edit},
		{"six of sixteen, ten fetched before", pages{n: 6}, []pages{{n: 4, set: same}, {n: 6, set: early}}, edit, template},
		{"ten, beside counters", pages{n: 10}, []pages{{n: 40, set: noisy}}, template, template},
		{"ten, beside pages in doubt", pages{n: 10}, []pages{{n: 10, set: doubted}}, template, template},
		{"twelve that somebody asked for", pages{n: 12, set: asked}, nil, template, edit},
		{"twelve of which a list told", pages{n: 12, set: told}, nil, template, edit},
		{"the text of before is back", pages{n: 1, set: back}, []pages{{n: 9, set: same}}, template, template},

		{"two alike", pages{n: 2, difference: shared}, nil, edit, edit},
		{"three alike", pages{n: 3, difference: shared}, nil, template, template},
		{"three alike of six", pages{n: 3, difference: shared}, []pages{{n: 3, set: same}}, edit, edit},
		{"four alike of many", pages{n: 4, difference: shared}, []pages{{n: 90, set: same}}, edit, edit},
		{"five alike of many", pages{n: 5, difference: shared}, []pages{{n: 90, set: same}}, template, template},
		{"five alike that somebody asked for", pages{n: 5, difference: shared, set: asked}, []pages{{n: 90, set: same}}, template, template},
		{"beside five alike", pages{n: 1}, []pages{{n: 5, difference: shared}, {n: 90, set: same}}, edit, edit},
		{"one more of a day's", pages{n: 1, difference: shared}, []pages{{n: 4, difference: shared, set: datedBefore(day - 2000)}, {n: 90, set: same}}, template, template},
		{"one more of days ago", pages{n: 1, difference: shared}, []pages{{n: 4, difference: shared, set: datedBefore(day)}, {n: 90, set: same}}, edit, edit},

		{"dated, and one of five", pages{n: 1, difference: shared, set: datedBefore(hour)}, []pages{{n: 4, difference: shared}, {n: 90, set: same}}, template, template},
		{"dated, and one of four", pages{n: 1, difference: shared, set: datedBefore(hour)}, []pages{{n: 3, difference: shared}, {n: 90, set: same}}, edit, edit},
		{"dated days ago, and one of five", pages{n: 1, difference: shared, set: datedBefore(day)}, []pages{{n: 4, difference: shared}, {n: 90, set: same}}, edit, edit},
		{"dated, and most of a redesign", pages{n: 5, set: datedBefore(hour / 2)}, []pages{{n: 6}}, edit, template},
		{"dated before a redesign", pages{n: 5, set: datedBefore(2 * hour)}, []pages{{n: 20}}, edit, edit},
		{"dated, one after another", pages{n: 12, set: datedBefore(hour / 2)}, nil, edit, edit},
	} {
		for _, isFile := range []bool{true, false} {
			var records []store.Record
			for _, p := range append([]pages{test.changed}, test.others...) {
				for range p.n {
					i := len(records)
					r := rec(fmt.Sprintf("/%06d =%d", i, i))
					r.First, r.Before, r.Fetched = day0, found-hour, noon.Unix()-500
					r.Changed, r.Found, r.Blocks, r.Difference = found+60, store.Unix32(found), uint64(i+1), p.difference
					r.Selected = store.Selected{Listed: true, LastMod: day0, Text: day0, Dated: day0}
					if p.difference == own {
						r.Difference = uint64(1000 + i*i)
					}
					if isFile {
						r.Version, r.ModTime = 1, day0
					}
					if p.set != nil {
						p.set(&r)
					}
					records = append(records, r)
				}
			}
			want := test.want
			if !isFile {
				want = test.wantApp
			}
			_, res := run(t, generation(t, 1000, records), rules())
			for _, r := range load(t, res.Generation)[:test.changed.n] {
				if got := textChange(r.Selected.Text != day0); got != want || r.AwaitsDate() {
					t.Errorf("%s, of files %t: a template %t, dated %+v", test.name, isFile, !got, r.Selected)
				}
			}
		}
	}
}

// textChange is whether a change is dated.
type textChange bool

const (
	edit     textChange = true
	template textChange = false
)

// TestWaiting is rule 6: for how long changes of files wait.
func TestWaiting(t *testing.T) {
	now := noon.Unix()
	for _, test := range []struct {
		name         string
		files, wait  int
		latest       int64 // before now
		since        int64 // before now
		interval     time.Duration
		once, isOpen bool
	}{
		{"one of ten, just now", 10, 1, 29, 29, time.Second, false, true},
		{"one of ten", 10, 1, 30, 30, time.Second, false, false},
		{"one of ten, and others go on", 10, 1, 10, 60, time.Second, false, true},
		{"five of ten", 10, 5, 30, 30, time.Second, false, false},
		{"six of ten, half a minute ago", 10, 6, 30, 30, time.Second, false, true},
		{"six of ten", 10, 6, 120, 120, time.Second, false, false},
		{"ten of many, half a minute ago", 100, 10, 30, 30, time.Second, false, true},
		{"ten of many", 100, 10, 120, 120, time.Second, false, false},
		{"ten of many, by a long interval", 100, 10, 599, 599, 5 * time.Minute, false, true},
		{"ten of many, after two intervals", 100, 10, 600, 600, 5 * time.Minute, false, false},
		{"for an hour", 100, 10, 0, 3600, time.Second, false, false},
		{"for nearly an hour", 100, 10, 0, 3599, time.Second, false, true},
		{"where no refresh follows", 100, 10, 0, 0, time.Second, true, false},
	} {
		o := Options{Now: noon, Interval: test.interval, Once: test.once}
		w := waiting{options: &o, files: test.files, changed: test.wait, latest: now - test.latest}
		w.wait(now - test.since)
		w.decide()
		if got := w.isOpen(now - test.since); got != test.isOpen || !w.due.IsZero() != test.isOpen {
			t.Errorf("%s: open %t, due %s", test.name, got, w.due)
		}
	}
}

// TestFirstFiles: when the files of a site were found says nothing of when they changed, unless others are known.
func TestFirstFiles(t *testing.T) {
	batch := noon.Unix() - 5
	for known, want := range map[bool]bool{false: true, true: false} {
		records := files(batch, day0, day0-7*day)
		if known {
			records[1].Selected.Dated = batch - day
		}
		pages, _ := run(t, generation(t, 1000, records), rules())
		if got := pages[0].LastMod == day0; got != want {
			t.Errorf("known %t: dated %t", known, got)
		}
	}
}

// While a batch is open its pages have no date of their files, then they are dated once.
func TestOpenBatch(t *testing.T) {
	r := rules()
	r.OpenBatch = 7
	g := generation(t, 1000, files(7, day0, day0+day, day0+2*day))
	pages, res := run(t, g, r)
	if pages[0].LastMod != 0 || res.Changes.Added != 3 {
		t.Errorf("open: got %d, %+v", pages[0].LastMod, res.Changes)
	}
	r.OpenBatch = 9
	pages, res = run(t, res.Generation, r)
	if pages[0].LastMod != day0 || res.Changes.Changed != 0 {
		t.Errorf("complete: got %d, %+v", pages[0].LastMod, res.Changes)
	}
	// Of changes that were made on three days, those of an open batch are not dated yet.
	r.OpenBatch = day0 + 40*day + 1
	records := load(t, res.Generation)
	for i := range records {
		records[i].ModTime, records[i].Changed = day0+(10+int64(i))*day, day0+40*day+min(int64(i), 1)
	}
	pages, res = run(t, generation(t, 1000, records), r)
	if pages[0].LastMod != day0+10*day || pages[1].LastMod != day0+day || res.Changes.Changed != 1 {
		t.Errorf("changed: got %d, %d, %+v", pages[0].LastMod, pages[1].LastMod, res.Changes)
	}
}
