package indexing

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

const day0 = int64(1_700_000_000)

// files are pages whose files have these times, first read in a batch.
func files(batch int64, modTimes ...int64) []record.Record {
	records := make([]record.Record, len(modTimes))
	for i, at := range modTimes {
		records[i] = rec(fmt.Sprintf("/%06d =%d file", i, i))
		records[i].ModTime, records[i].First = at, batch
	}
	return records
}

// dated counts the pages that are listed with a date.
func dated(t *testing.T, records []record.Record, r Options) (n int) {
	t.Helper()
	pages, _ := run(t, generation(t, 1000, records), r)
	for _, p := range pages {
		if p.LastMod != 0 {
			n++
		}
	}
	return n
}

func load(t testing.TB, g *record.Generation) (records []record.Record) {
	t.Helper()
	for r, err := range g.Records(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, *r)
	}
	return records
}

// TestCrowds is rule 10: new pages whose times are those of an upload have no date, nor those whose dates are those of a build, if ten
// pages have the same second, or nine tenths the same day.
func TestCrowds(t *testing.T) {
	const midnight = day0 / day * day
	const noon = midnight + day/2
	spread := func(n int, first, step int64) (out []int64) {
		for i := range n {
			out = append(out, first+int64(i)*step)
		}
		return out
	}
	others := func(n int) []int64 { return spread(n, midnight-2*day, -2*day) }
	same := func(n int) []int64 { return slices.Repeat([]int64{noon}, n) }
	for _, test := range []struct {
		name       string
		isDeclared bool // else they are those of files
		times      []int64
		dated      int
	}{
		{"two on one day", false, spread(2, midnight, 60), 2},
		{"three", false, spread(3, midnight, hour), 0},
		{"three on three days", false, spread(3, midnight, day), 3},
		{"nine tenths", false, slices.Concat(spread(9, midnight, hour), others(1)), 1},
		{"less", false, slices.Concat(spread(8, midnight, hour), others(2)), 10},
		{"ten in three days, of fifty", false, slices.Concat(spread(10, midnight, 4*hour), others(40)), 40},
		{"ten in three days, of fifty-one", false, slices.Concat(spread(10, midnight, 4*hour), others(41)), 51},
		{"ten in ten days", false, spread(10, midnight, day), 10},

		{"two", true, same(2), 2},
		{"three of three", true, same(3), 0},
		{"three of four", true, slices.Concat(same(3), others(1)), 4},
		{"nine of ten on a day", true, slices.Concat(spread(9, noon, 1), others(1)), 1},
		{"eight of nine on a day", true, slices.Concat(spread(8, noon, 1), others(1)), 9},
		{"nine in a second, of many", true, slices.Concat(same(9), others(1000)), 1009},
		{"ten in a second, of many", true, slices.Concat(same(10), others(1000)), 1000},
		{"ten at midnight, of many", true, slices.Concat(spread(10, midnight, 0), others(1000)), 1010},
	} {
		records := files(7, test.times...)
		for i := range records {
			if test.isDeclared {
				records[i].Declared = test.times[i]
				records[i].ModTime = 0
			}
		}
		if n := dated(t, records, rules()); n != test.dated {
			t.Errorf("%s, declared %t: got %d dates, want %d", test.name, test.isDeclared, n, test.dated)
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

// TestStatedDates: the dates of a build count neither for pages of files nor of applications, but for those of a list that the
// operator names.
func TestStatedDates(t *testing.T) {
	const build = "mod:day0+12h"
	for name, test := range map[string]struct {
		record  string // N is 24 more for each page
		trusted bool
		want    int
	}{
		"declared":                  {"declared:day0+Nh", false, 40},
		"declared by a build":       {"declared:day0+12hNs", false, 0},
		"a list's":                  {"mod:day0+Nh", false, 40},
		"a list's of a build":       {build, false, 0},
		"urls, all alike":           {build, true, 40},
		"a list's, of files":        {"file list:day0+Nh", false, 40},
		"declared, beside a list's": {build + " declared:day0+Nh", false, 40},
		"the future and the past":   {"declared:now+Nh mod:day0-438000h", false, 0},
	} {
		var records []record.Record
		for i := range 40 {
			records = append(records, rec(fmt.Sprintf("/%02d first:day0 ", i)+strings.ReplaceAll(test.record, "N", fmt.Sprint(24*(i+1)))))
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
	const dated = " first:day0 text:day0 dated:day0"
	const changed = dated + " changed:now-200s found:now"
	for _, test := range []struct{ name, record, want string }{
		{"no text", "file mod:day0", ""},
		{"file", "first:day0 file mod:day0", "day0"},
		{"declared", "first:day0 file mod:day0 declared:day0-5s", "day0-5s"},
		{"a list's", "first:day0 file mod:day0 list:day0+5s", "day0+5s"},
		{"a list's day", "first:day0 mod:day0 list's-day", "day0 day"},
		{"response", "first:day0 header:day0", "day0"},
		{"an upstream's", "first:day0 file made mod:day0-9s header:day0", "day0"},
		{"of now", "first:day0 header:now-31s", ""},
		{"of nearly now", "first:day0 header:now-32s", "now-32s"},
		{"decided", dated + " file mod:day0+5s", "day0"},
		{"decided as none", "first:day0 dated:day0 file mod:day0+5s", ""},
		{"decided, its text gone", "text:day0 dated:day0 file mod:day0+5s", "day0"},
		{"open", "first:now-9s file mod:day0", ""},
		{"changed, open", dated + " changed:now-9s file mod:day0+5s", "day0"},
		{"changed, in doubt", dated + " changed:day0+1s doubt header:day0+5s", "day0"},
		{"changed before it was dated", "first:day0 changed:day0+1s file mod:day0+5s", "day0+5s"},
		{"changed", changed + " file mod:day0+5s", "day0+5s"},
		{"changed, and written again", changed + " file mod:now-199s before:now-209s", "now day"},
		{"changed, declared", changed + " file mod:day0+5s declared:day0+3s before:day0", "day0+3s"},
		{"changed, declared before", changed + " file mod:day0+5s declared:day0 before:day0+1s", "day0+5s"},
		{"changed, declared for this day", changed + " declared:now-12h0m30s declared-day before:now-60s", "now-12h0m30s day"},
		{"changed, time unknown", changed + " file", ""},
		{"changed, before the last fetch", changed + " file mod:day0 before:day0+1s", ""},
		{"changed, no later, within a day", changed + " file mod:day0 before:now-23h", "now day"},
		{"changed response", changed + " header:day0+5s", "day0+5s"},
		{"changed response, header older than the old text", changed + " header:day0+5s before:day0+6s", ""},
		{"changed response within thirty hours", changed + " before:now-29h59m59s", "now day"},
		{"changed response after thirty hours", changed + " before:now-30h", ""},
		{"changed response, header within a day", changed + " header:now-205s before:now-209s", "now-205s"},
		{"changed response, the clock was set back", changed + " before:now+1s", ""},
		{"changed response at once", changed + " before:now", "now day"},
		{"changed file of an upstream", changed + " file made mod:now-50s before:now-70s", "now day"},
	} {
		for _, mode := range []Mode{Auto, ModTime, Off} {
			r := rules()
			r.OpenBatch = instant("now-9s")
			r.Dates = mode
			now := rec("/a " + test.record)
			at, isDay := strings.CutSuffix(test.want, " day")
			for _, again := range []string{"", ", again"} { // it is decided once
				_, res := run(t, generation(t, 1000, []record.Record{now}), r)
				now = load(t, res.Generation)[0]
				if got := now.Selected; got.Text != instant(at) || got.TextDay != isDay {
					t.Errorf("%s%s: got %+v, want %s", test.name, again, got, test.want)
				}
				set(&now, "header:day0+78s before:now-5s")
			}
		}
	}
}

// TestShown is which date is listed, given that of the text, and rule 11: what is stated since the text was found is believed.
func TestShown(t *testing.T) {
	const (
		isListed = "file list:day0+2s"
		changed  = "changed:day0+239h found:day0+240h dated:day0+239h mod: "
		former   = "day0+4s"
		newer    = "day0+240h1s"
	)
	for _, test := range []struct {
		name, record string
		mode         Mode
		trusted      bool
		want         string
	}{
		{"text", "file", Auto, false, "day0+4s"},
		{"text in doubt", "file doubt", Auto, false, "day0+4s"},
		{"a list's, older than the text", "", Auto, false, "day0+4s"},
		{"urls", "", Auto, true, "day0+3s"},
		{"urls, to the day", "list's-day", Auto, true, "day0+3s day"},
		{"urls, of a file", isListed, Auto, true, "day0+2s"},
		{"off", isListed, Off, true, ""},
		{"mtime", "file declared:day0 streak", ModTime, false, "day0+3s"},
		{"mtime, a list's day", "list's-day", ModTime, false, "day0+3s day"},
		{"mtime, a list's, of a file", isListed + " list's-day", ModTime, false, "day0+2s day"},
		{"mtime in the future", "file mod:now+1s", ModTime, false, ""},
		{"mtime since the refresh began", "file mod:now+1s fetched:now+2s", ModTime, false, "now+1s"},
		{"mtime in 1981", "file mod:day0-1352844800s", ModTime, false, "day0-1352844800s"},
		{"mtime before", "file mod:day0-1352844801s", ModTime, false, ""},
		{"a counter", "file streak", Auto, false, ""},
		{"a counter that declares", "file declared:day0 streak", Auto, false, "day0"},
		{"a counter in a list", isListed + " streak", Auto, false, "day0+2s"},
		{"noise", "file noisy", Auto, false, ""},
		{"noise that declares", "file declared:day0 noisy", Auto, false, "day0"},

		{"declared anew", changed + "declared:day0+240h1s", Auto, false, newer},
		{"declared beside a list's", changed + "mod:day0+240h1s declared:day0+120h", Auto, false, former},
		{"declared as before", changed + "declared:day0+240h", Auto, false, former},
		{"named anew by a list", changed + "mod:day0+240h1s", Auto, false, newer},
		{"declared by each response", changed + "declared:day0+240h1s moves", Auto, false, former},
		{"declared in the future", changed + "declared:now+24h", Auto, false, former},
		{"to be confirmed", changed + "declared:day0+240h1s date-doubt", Auto, false, former},
		{"of a text in doubt", changed + "mod:day0+240h1s doubt", Auto, false, newer},
		{"by a file", changed + "file mod:day0+240h1s declared:day0+240h1s", Auto, false, newer},
		{"by a file again", changed + "file mod:day0+240h declared:day0+120h moves", Auto, false, "day0+120h"},
		{"with each response of a file", changed + "file declared:now", Auto, false, former},
		{"by a file that was written just now", changed + "file mod:now-20s declared:day0+240h1s", Auto, false, former},
	} {
		o := rules()
		o.Dates = test.mode
		o.TrustLists = test.trusted
		r := rec("/a mod:day0+3s first:day0+24h text:day0+4s dated:day0+24h listed lastmod:day0+1h " + test.record)
		pages, _ := run(t, generation(t, 1000, []record.Record{r}), o)
		at, isDay := strings.CutSuffix(test.want, " day")
		if got := pages[0]; got.LastMod != instant(at) || got.LastModDay != isDay {
			t.Errorf("%s: got %d %t, want %s", test.name, got.LastMod, got.LastModDay, test.want)
		}
	}
}

// TestRound is the rules 7 and 8, of changes that are found together.
func TestRound(t *testing.T) {
	kinds := strings.NewReplacer(
		"same", "changed:",
		"early", "changed: fetched:now-2h16m40s",
		"night", "before:now-13h found:now-12h changed:now-940s fetched:now-940s",
	)
	const dated = "changed:now-AGO found:now-AGO dated:now-AGO text:day0+5s was:day0"
	for _, test := range []struct {
		name    string
		pages   string     // numbers of pages of some kinds; the dates of the first ones are looked at
		want    textChange // of files, and of pages of an application
		wantApp textChange
	}{
		{"one of one", "1", edit, edit},
		{"nine of nine", "9", edit, edit},
		{"ten of ten", "10", template, template},
		{"five of ten", "5; 5 same", edit, edit},
		{"six of ten", "6; 4 same", template, template},
		{"six of ten, the others fetched before", "6; 4 early", template, edit},
		{"six of sixteen, ten fetched before", "6; 4 same; 6 early", edit, template},
		{"three of three that are due", "3; 97 early", edit, edit},
		{"half, confirmed after a night", "50 night; 50 same", edit, edit},
		{"more than half, confirmed after a night", "51 night; 49 same", template, template},
		{"ten, beside counters", "10; 40 streak", template, template},
		{"one, beside counters", "1; 40 streak", edit, edit},
		{"ten, beside pages in doubt", "10; 10 doubt", template, template},
		{"twelve that somebody asked for", "12 asked", template, edit},
		{"twelve of which a list told", "12 told", template, edit},
		{"ten that a write may have changed", "10 saved", template, template},
		{"one more of ten that were saved one after another", "1 saved; 6 saved ago:30m; 3 same", edit, edit},
		{"the text of before is back", "1 back; 9 same", template, template},

		{"two alike", "2 alike", edit, edit},
		{"three alike", "3 alike", template, template},
		{"three alike of six", "3 alike; 3 same", edit, edit},
		{"four alike of many", "4 alike; 90 same", edit, edit},
		{"five alike of many", "5 alike; 90 same", template, template},
		{"five alike that somebody asked for", "5 alike asked; 90 same", template, template},
		{"beside five alike", "1; 5 alike; 90 same", edit, edit},
		{"one more of a day's", "1 alike; 4 alike ago:23h; 90 same", template, template},
		{"one more of days ago", "1 alike; 4 alike ago:24h; 90 same", edit, edit},

		{"dated, and one of five", "1 alike ago:1h; 4 alike; 90 same", template, template},
		{"dated, and one of four", "1 alike ago:1h; 3 alike; 90 same", edit, edit},
		{"dated days ago, and one of five", "1 alike ago:24h; 4 alike; 90 same", edit, edit},
		{"dated, and most of a redesign", "5 ago:45m; 6", edit, template},
		{"dated before a redesign", "5 ago:2h; 20", edit, edit},
		{"dated, one after another", "12 ago:45m", edit, edit},
		{"dated, and the text of before is back", "1 back ago:1h; 9 same", edit, edit},
	} {
		for _, isFile := range []bool{true, false} {
			var records []record.Record
			first := 0 // how many pages are looked at
			for group := range strings.SplitSeq(kinds.Replace(test.pages), "; ") {
				words := strings.Fields(group)
				n, err := strconv.Atoi(words[0])
				if err != nil {
					t.Fatal(err)
				}
				first = cmp.Or(first, n)
				for range n {
					i := len(records)
					r := rec(fmt.Sprintf("/%06d first:day0 before:now-1h16m40s fetched:now-500s changed:now-940s found:now-1000s "+
						"listed lastmod:day0 text:day0 dated:day0", i))
					if isFile {
						set(&r, "file mod:day0")
					}
					for _, word := range words[1:] {
						if ago, isDated := strings.CutPrefix(word, "ago:"); isDated {
							word = strings.ReplaceAll(dated, "AGO", ago)
						}
						set(&r, word)
					}
					records = append(records, r)
				}
			}
			want := test.want
			if !isFile {
				want = test.wantApp
			}
			_, res := run(t, generation(t, 1000, records), rules())
			for _, r := range load(t, res.Generation)[:first] {
				if got := textChange(r.Selected.Text != day0); got != want || r.AwaitsDate() {
					t.Errorf("%s, of files %t: a template %t, dated %+v", test.name, isFile, !got, r.Selected)
				}
			}
		}
	}
}

// TestLookGoesOn: what a write has changed is dated once all pages were fetched that it may have changed, too.
func TestLookGoesOn(t *testing.T) {
	const saved = "/a first:day0 before:now-1h changed:now-9s found:now-10s fetched:now-9s listed lastmod:day0 text:day0 dated:day0 saved; "
	for name, test := range map[string]struct {
		records string
		want    textChange
	}{
		"alone":                {saved + "/b first:day0 fetched:now-5s", edit},
		"another is to come":   {saved + "/b first:day0 fetched:now-5s to-look-at", template},
		"one that never comes": {strings.ReplaceAll(saved, "found:now-10s", "found:now-61s") + "/b first:day0 to-look-at", edit},
		"not by a write":       {strings.ReplaceAll(saved, " saved", "") + "/b first:day0 to-look-at", edit},
	} {
		_, res := run(t, generation(t, 1000, recs(test.records)), rules())
		r := load(t, res.Generation)[0]
		waits := !res.DatesDue.IsZero()
		if got := textChange(r.Selected.Text != day0); got != test.want || waits == bool(test.want) {
			t.Errorf("%s: dated %+v, want %t; waits until %s", name, r.Selected, test.want, res.DatesDue)
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
		{"where no refresh follows", 100, 10, 0, 0, 5 * time.Minute, true, false},
	} {
		o := Options{Now: noon, Interval: test.interval, Once: test.once}
		w := waiting{options: &o, files: test.files, changed: test.wait, latest: now - test.latest}
		w.wait(now - test.since)
		if got := w.isOpen(now - test.since); got != test.isOpen || !w.due().IsZero() != test.isOpen {
			t.Errorf("%s: open %t, due %s", test.name, got, w.due())
		}
	}
	w := waiting{options: &Options{Now: noon}}
	w.saw(now + 1)
	if w.latest != 0 {
		t.Error("a file from the future has the others wait")
	}
}

// TestRestatedWaits: so does a date that a file declares anew, and it is known when that is over.
func TestRestatedWaits(t *testing.T) {
	for declared, want := range map[string]bool{"day0": false, "now-3s": true} {
		records := recs("/a file first:day0 fetched:now-2s mod:now-2s listed lastmod:day0 text:day0 dated:day0 declared:" + declared)
		pages, result := run(t, generation(t, 1000, records), rules())
		if waits := !result.DatesDue.IsZero(); waits != want || pages[0].LastMod != day0 {
			t.Errorf("declared %s: waits %t, until %s, got %d", declared, waits, result.DatesDue, pages[0].LastMod)
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
	records := recs("/a file first:day0 mod:day0-72h; /b file first:day0 mod:day0-48h; /c file first:day0 mod:day0-24h")
	for i, step := range []struct {
		change  string // of all but the first one
		open    string // batch
		want    string // the date of the second one
		changed int
	}{
		{"", "day0", "", 0},
		{"", "day0+1s", "day0-48h", 0},
		{"changed:day0+960h mod:day0+240h", "day0+960h", "day0-48h", 0},
		{"", "", "day0+240h", 2},
	} {
		for j := range records[1:] {
			set(&records[1+j], step.change)
		}
		r := rules()
		r.OpenBatch = instant(step.open)
		pages, res := run(t, generation(t, 1000, records), r)
		if pages[1].LastMod != instant(step.want) || res.Changes.Changed != step.changed {
			t.Errorf("step %d: got %d, %+v, want %s", i, pages[1].LastMod, res.Changes, step.want)
		}
		records = load(t, res.Generation)
	}
}

// TestTakenBack: a redesign takes back dates that were given since it began: of files, only those of a change that others share, as
// a scan finds all files of it at once.
func TestTakenBack(t *testing.T) {
	r := round{isRedesign: true, since: 10_000, alike: map[uint64]int{7: 5}, fetched: []uint32{20_000}, looked: 10}
	for name, test := range map[string]struct {
		rec  record.Record
		want bool
	}{
		"an application's page":   {record.Record{Found: 20_000, Difference: 1}, true},
		"found long before":       {record.Record{Found: 1, Difference: 1}, false},
		"a file":                  {record.Record{Found: 20_000, Difference: 1, Version: 1}, false},
		"a file, as others":       {record.Record{Found: 20_000, Difference: 7, Version: 1}, true},
		"found before, as others": {record.Record{Found: 1, Difference: 7}, true},
	} {
		if got := r.isTemplateSince(&test.rec); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
