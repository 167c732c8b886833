package indexing

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// TestTextChange: what a change comes from is decided once its burst is over, or after an hour.
func TestTextChange(t *testing.T) {
	const template, own = 7, 8
	edit := burst{from: 1000, to: 1060, gap: 120, files: 9, pages: 18, known: 18, others: 9}
	release := burst{from: 1000, to: 1060, gap: 120, files: 10, pages: 100, known: 100, shared: []uint64{template}, others: 3}
	small := burst{from: 1000, to: 1000, gap: 120, files: 2, pages: 2, known: 2, others: 2}
	redesign := burst{from: 1000, to: 1000, gap: 120, files: 4, pages: 6, known: 6, others: 4}
	endless := release
	endless.to = 9000
	for _, test := range []struct {
		name       string
		burst      burst
		difference uint64
		now        int64
		want       textChange
	}{
		{"edits", edit, own, 1060 + 29, undecided},
		{"edits, later", edit, own, 1060 + 30, ofEdit},
		{"the text of before is back", edit, 0, 1060 + 30, ofTemplate},
		{"a template", release, template, 1060 + 119, undecided},
		{"a template, later", release, template, 1060 + 120, ofTemplate},
		{"a correction", release, own, 1060 + 119, undecided},
		{"a correction, later", release, own, 1060 + 120, ofRelease},
		{"both of two pages", small, own, 1000 + 30, ofEdit},
		{"most of six pages", redesign, own, 1000 + 119, undecided},
		{"most of six pages, later", redesign, own, 1000 + 120, ofTemplate},
		{"a deployment without an end", endless, own, 1025 + 3600 + 54, undecided},
		{"a deployment without an end, after an hour, rounded up to a minute", endless, own, 1025 + 3600 + 55, ofRelease},
		{"a template, amid a deployment without an end", endless, template, 1025 + 3600 + 55, ofTemplate},
	} {
		if got := test.burst.textChange(1025, test.difference, test.now); got != test.want {
			t.Errorf("%s: got %d, want %d", test.name, got, test.want)
		}
	}
}

// TestDeploymentSizes: ten files, or more than half of them, are a deployment; of one page or two, none is.
func TestDeploymentSizes(t *testing.T) {
	for _, test := range []struct {
		files, pages int
		want         bool
	}{{1, 1, false}, {2, 2, false}, {1, 3, false}, {2, 3, true}, {3, 6, false}, {4, 6, true}, {9, 18, false}, {9, 17, true}, {10, 1000, true}} {
		b := burst{files: test.files, pages: test.pages}
		if got := b.isDeployment(); got != test.want {
			t.Errorf("%d of %d: got %t", test.files, test.pages, got)
		}
	}
}

// TestShared: a difference is a template's if five pages have it, and a tenth of those that have changed.
func TestShared(t *testing.T) {
	for name, test := range map[string]struct {
		differences map[uint64]int
		shared      []uint64
	}{
		"none":                        {nil, nil},
		"four":                        {map[uint64]int{7: 4}, nil},
		"five":                        {map[uint64]int{7: 5}, []uint64{7}},
		"five, and others":            {map[uint64]int{7: 5, 8: 4, 9: 1}, []uint64{7}},
		"a tenth":                     {map[uint64]int{7: 6, 8: 54}, []uint64{7, 8}},
		"less than a tenth":           {map[uint64]int{7: 6, 8: 55}, []uint64{8}},
		"two templates":               {map[uint64]int{7: 30, 8: 20, 9: 4}, []uint64{7, 8}},
		"the text of before is back":  {map[uint64]int{0: 100, 7: 5}, []uint64{7}},
		"each another one, as before": {map[uint64]int{1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1}, nil},
	} {
		got := shared(test.differences)
		slices.Sort(got)
		if !slices.Equal(got, test.shared) {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// folder is a site of files that changes while it is scanned each minute, and refreshed when dates are due.
type folder struct {
	t       *testing.T
	g       *store.Generation
	now     int64
	scanned int64
	files   map[string]*file
	dates   map[string]store.Selected // as served
	check   func()                    // called once dates may have changed; nil: nothing is
}

// file is what a scan sees, and when it changed for it.
type file struct {
	modTime  int64
	blocks   uint64
	changed  int64
	declared int64
}

// newFolder returns a folder of n files that were last changed on days long ago, and are dated.
func newFolder(t *testing.T, n int) *folder {
	f := &folder{t: t, now: noon.Unix(), files: make(map[string]*file), dates: make(map[string]store.Selected), g: generation(t, 1000, nil)}
	for i := range n {
		f.files[fmt.Sprintf("/%04d", i)] = &file{modTime: f.now - int64(2+i)*day, blocks: uint64(1000 + i)}
	}
	f.scan()
	f.pass(600, func(int64) {})
	for path, s := range f.dates {
		if s.LastMod != f.files[path].modTime {
			t.Fatalf("%s has no date at first", path)
		}
	}
	return f
}

// scan has records as the crawl makes them, and selects.
func (f *folder) scan() (due time.Time) {
	before := make(map[string]store.Record)
	for _, r := range load(f.t, f.g) {
		before[r.Path] = r
	}
	var records []store.Record
	for path, file := range f.files {
		r, isKnown := before[path]
		switch {
		case !isKnown:
			r = rec(path + " file")
			r.First = f.now
			r.Fetched = f.now
		case file.changed >= f.scanned && r.Blocks != file.blocks:
			isWaiting := r.Changed != 0 && r.Changed != r.Selected.Dated
			if isWaiting {
				r.Difference += file.blocks - r.Blocks
			} else {
				r.Difference = file.blocks - r.Blocks
				r.Changed = f.now
				r.Before = r.Fetched
			}
			r.Fetched = f.now
		}
		r.Text = file.blocks
		r.Blocks = file.blocks
		r.ModTime = file.modTime
		r.Declared = file.declared
		records = append(records, r)
	}
	slices.SortFunc(records, func(a, b store.Record) int { return cmp.Compare(a.Path, b.Path) })
	rules := rules()
	rules.Now = time.Unix(f.now, 0)
	rules.Interval = time.Minute
	_, res := run(f.t, generation(f.t, 1000, records), rules)
	f.g = res.Generation
	f.scanned = f.now
	for _, r := range load(f.t, f.g) {
		f.dates[r.Path] = r.Selected
	}
	if f.check != nil {
		f.check()
	}
	return res.DatesDue
}

// pass lets time pass, second by second.
func (f *folder) pass(seconds int64, change func(second int64)) {
	due := time.Time{}
	next := f.scanned + 60
	for second := range seconds {
		change(second)
		f.now++
		if f.now >= next || !due.IsZero() && f.now >= due.Unix() {
			due = f.scan()
			next = f.now + 60
		}
	}
}

// write changes a file now.
func (f *folder) write(i int, difference uint64) {
	file := f.files[fmt.Sprintf("/%04d", i)]
	file.modTime = f.now
	file.changed = f.now
	file.blocks += difference
}

// datesOf counts the pages with another date than before: of the first n, and of the others.
func (f *folder) datesOf(n int, was map[string]store.Selected) (corrected, others int) {
	for path, s := range f.dates {
		var i int
		if _, err := fmt.Sscanf(path, "/%d", &i); err != nil {
			f.t.Fatal(err)
		}
		switch before := was[path]; {
		case s.LastMod == before.LastMod:
		case i < n:
			corrected++
		default:
			others++
		}
	}
	return corrected, others
}

func (f *folder) served() map[string]store.Selected {
	was := make(map[string]store.Selected)
	for path, s := range f.dates {
		was[path] = s
	}
	return was
}

// TestSlowDeployment: all files are written anew, with what a template has changed, in whatever time. Of ten that are corrected as
// well, the day is listed once it is over; no other date moves, at any moment.
func TestSlowDeployment(t *testing.T) {
	if testing.Short() {
		t.Skip("hours of refreshes")
	}
	const n, corrections = 300, 10
	for _, lasts := range []int64{1, 30, 150, 600, 2 * hour} {
		f := newFolder(t, n)
		was := f.served()
		f.check = func() {
			if _, others := f.datesOf(corrections, was); others > 0 {
				t.Fatalf("in %d s: %d false dates", lasts, others)
			}
		}
		f.pass(lasts+900, func(second int64) {
			for i := range n {
				if int64(i)*lasts/n != second {
					continue
				}
				difference := uint64(1 << 40)
				if i < corrections {
					difference += uint64(i + 1)
				}
				f.write(i, difference)
			}
		})
		if corrected, _ := f.datesOf(corrections, was); corrected != corrections {
			t.Errorf("in %d s: %d corrections are dated", lasts, corrected)
		}
		for i := range corrections {
			s := f.dates[fmt.Sprintf("/%04d", i)]
			if !s.Day {
				t.Errorf("in %d s: a correction has the time of the upload, %d", lasts, s.LastMod)
			}
		}
	}
}

// TestSlowTemplate: a template comes with one file after another, each in a burst of its own. The first few are dated until
// it shows that it is the template's, and then have the date again that they had. Corrections keep their date.
func TestSlowTemplate(t *testing.T) {
	const n, corrections = 40, 3
	for _, pace := range []int64{125, 10 * 60} {
		f := newFolder(t, n)
		was := f.served()
		f.pass(n*pace+900, func(second int64) {
			i := second / pace
			if second%pace != 0 || i >= n {
				return
			}
			difference := uint64(1 << 40)
			if i < corrections {
				difference += uint64(i + 1)
			}
			f.write(int(i), difference)
		})
		if corrected, others := f.datesOf(corrections, was); corrected != corrections || others > 0 {
			t.Errorf("a file each %d s: %d corrections are dated, and %d others", pace, corrected, others)
		}
	}
}

// TestEdits: a few edits have the times of their files, half a minute after the last one, and keep them.
func TestEdits(t *testing.T) {
	f := newFolder(t, 40)
	was := f.served()
	begun := f.now
	f.pass(20, func(second int64) {
		if second%10 == 0 {
			f.write(int(second/10), uint64(second+1))
		}
	})
	f.pass(120, func(int64) {})
	if corrected, others := f.datesOf(2, was); corrected != 2 || others != 0 {
		t.Fatalf("%d edits are dated, and %d others", corrected, others)
	}
	for i := range 2 {
		s := f.dates[fmt.Sprintf("/%04d", i)]
		if s.LastMod != begun+int64(i)*10 || s.Day {
			t.Errorf("edit %d: got %d, after %d s", i, s.LastMod, s.LastMod-begun)
		}
	}
	was = f.served()
	f.pass(600, func(second int64) {
		if second < 40 {
			f.write(int(second), 1<<40)
		}
	})
	if _, others := f.datesOf(0, was); others != 0 {
		t.Errorf("a deployment afterwards moves %d dates", others)
	}
}

// TestEndlessDeployment: where a page changes each minute, for hours, each is dated after an hour.
func TestEndlessDeployment(t *testing.T) {
	if testing.Short() {
		t.Skip("hours of refreshes")
	}
	const n = 400
	f := newFolder(t, n)
	was := f.served()
	begun := f.now
	f.check = func() {
		waited := int(f.now-begun-hour-180) / 60
		if corrected, _ := f.datesOf(n, was); corrected < waited {
			t.Fatalf("after %d s: %d pages are dated", f.now-begun, corrected)
		}
	}
	f.pass(2*hour, func(second int64) {
		if second%60 == 0 {
			f.write(int(second/60), uint64(second+1))
		}
	})
}

// TestOldFileAmidDeployment: a new page whose file was not written by the deployment that it comes with keeps its time.
func TestOldFileAmidDeployment(t *testing.T) {
	f := newFolder(t, 60)
	old := f.now - 30*day - 77
	for i := range 40 {
		f.write(i, 0)
	}
	f.files["/old"] = &file{modTime: old, blocks: 9}
	f.pass(600, func(int64) {})
	if s := f.dates["/old"]; s.LastMod != old || s.Day {
		t.Errorf("got %+v, want %d", s, old)
	}
}

// TestDailyDeployments: what was corrected by the deployments before says nothing of the next one, although that writes the same
// files.
func TestDailyDeployments(t *testing.T) {
	const n, corrections, deployments = 60, 5, 9
	f := newFolder(t, n)
	for round := range deployments {
		was := f.served()
		f.pass(900, func(second int64) {
			if second >= n {
				return
			}
			difference := uint64(0)
			if second/corrections == int64(round) {
				difference = uint64(1000*round) + uint64(second) + 1
			}
			f.write(int(second), difference)
		})
		for i := range n {
			path := fmt.Sprintf("/%04d", i)
			isCorrected := i/corrections == round
			if hasMoved := f.dates[path].LastMod != was[path].LastMod; hasMoved != isCorrected {
				t.Errorf("deployment %d: the date of %s has moved: %t", round, path, hasMoved)
			}
		}
	}
}

// TestTrickle: what the last pages of a deployment that takes over an hour have in common with the first ones is the template's,
// although those are dated.
func TestTrickle(t *testing.T) {
	if testing.Short() {
		t.Skip("hours of refreshes")
	}
	const n = 200
	f := newFolder(t, n)
	was := f.served()
	f.check = func() {
		if _, others := f.datesOf(0, was); others > 0 {
			t.Fatalf("%d false dates", others)
		}
	}
	f.pass(2*hour, func(second int64) {
		isQuick := second < 100
		isSlow := second%100 == 0 && second >= 100 && second < hour+1000
		if isQuick {
			f.write(int(second), 1<<40)
		}
		if isSlow {
			f.write(100+int(second/100), 1<<40)
		}
	})
}

// TestGap: changes belong together within two minutes, or two intervals.
func TestGap(t *testing.T) {
	for interval, want := range map[time.Duration]int64{0: 120, 30 * time.Second: 120, time.Minute: 120, 2 * time.Minute: 240} {
		d := newDates(&Options{Now: noon, Interval: interval})
		if d.bursts.gap != want {
			t.Errorf("%s: got %d", interval, d.bursts.gap)
		}
	}
}

// TestRestlessFile: a file that is written every few seconds has a date at least once an hour, be it declared or not.
func TestRestlessFile(t *testing.T) {
	if testing.Short() {
		t.Skip("hours of refreshes")
	}
	for name, declares := range map[string]bool{"no date is declared": false, "each version declares its date": true} {
		f := newFolder(t, 40)
		begun := f.now
		f.pass(3*hour, func(second int64) {
			if second%20 != 0 {
				return
			}
			f.write(0, uint64(second+1))
			if declares {
				f.files["/0000"].declared = f.now
			}
		})
		if got := f.dates["/0000"].LastMod; got < begun+2*hour-300 {
			t.Errorf("%s: it has a date of %d s after it was written first", name, got-begun)
		}
	}
}

// TestClockSetBack: a change that was found while the clock was over an hour ahead does not wait until then.
func TestClockSetBack(t *testing.T) {
	for ahead, waits := range map[int64]bool{longestWait: true, longestWait + 1: false, 365 * day: false} {
		f := newFolder(t, 40)
		found := f.now + 365*day
		f.now = found
		f.write(0, 1)
		f.scan()
		if f.dates["/0000"].Dated == found {
			t.Fatal("the change does not wait")
		}
		f.now -= ahead
		f.scan()
		if got := f.dates["/0000"].Dated != found; got != waits {
			t.Errorf("%d s ahead: the change waits for the time at which it was found: %t, want %t", ahead, got, waits)
		}
	}
}

// TestUploadOverHours: the files of a new site come one by one. None is dated with the upload; those with the times of long ago are.
func TestUploadOverHours(t *testing.T) {
	if testing.Short() {
		t.Skip("hours of refreshes")
	}
	for name, keepsTimes := range map[string]bool{"times of the upload": false, "times are kept": true} {
		f := &folder{t: t, now: noon.Unix(), files: make(map[string]*file), dates: make(map[string]store.Selected), g: generation(t, 1000, nil)}
		begun := f.now
		f.check = func() {
			for path, s := range f.dates {
				if s.LastMod > begun-day {
					t.Fatalf("%s: %s is dated with the upload", name, path)
				}
			}
		}
		f.pass(3*hour, func(second int64) {
			if second%24 == 0 && second < 2*hour {
				i := second / 24
				at := f.now
				if keepsTimes {
					at = begun - (i+2)*day
				}
				f.files[fmt.Sprintf("/%04d", i)] = &file{modTime: at, changed: f.now, blocks: uint64(1000 + i)}
			}
		})
		dated := 0
		for _, s := range f.dates {
			if s.LastMod != 0 {
				dated++
			}
		}
		if len(f.dates) != 300 || keepsTimes && dated != 300 {
			t.Errorf("%s: %d files, %d of them dated", name, len(f.dates), dated)
		}
	}
}

// TestTimesKept: a deployment that keeps the times of a build, or has none at all, is one by when scans see it.
func TestTimesKept(t *testing.T) {
	const n, corrections = 100, 5
	for name, modTime := range map[string]func(f *folder, i int) int64{
		"of the build":    func(f *folder, _ int) int64 { return f.now - hour },
		"of the sources":  func(f *folder, i int) int64 { return f.now - int64(i+2)*day + 7 },
		"none that count": func(*folder, int) int64 { return 0 },
	} {
		f := newFolder(t, n)
		was := f.served()
		f.check = func() {
			if _, others := f.datesOf(corrections, was); others > 0 {
				t.Fatalf("%s: %d false dates", name, others)
			}
		}
		f.pass(1200, func(second int64) {
			if second < 3*n && second%3 == 0 {
				i := int(second / 3)
				difference := uint64(1 << 40)
				if i < corrections {
					difference += uint64(i + 1)
				}
				f.write(i, difference)
				f.files[fmt.Sprintf("/%04d", i)].modTime = modTime(f, i)
			}
		})
		if corrected, _ := f.datesOf(corrections, was); corrected != corrections {
			t.Errorf("%s: %d corrections are dated", name, corrected)
		}
	}
}

// TestRedesign: a small site of which most pages change, each in another way, keeps its dates.
func TestRedesign(t *testing.T) {
	f := newFolder(t, 6)
	was := f.served()
	f.check = func() {
		if _, others := f.datesOf(0, was); others > 0 {
			t.Fatalf("%d false dates", others)
		}
	}
	f.pass(600, func(second int64) {
		if second < 6 {
			f.write(int(second), uint64(second+1)<<30)
		}
	})
}

// TestNewPages: a new page among others that stay has the time of its file, half a minute later. One that comes with a deployment has
// the day, and many that do have no date.
func TestNewPages(t *testing.T) {
	for name, test := range map[string]struct {
		pages, rewritten int
		waits            int64
		dated, byDay     int
	}{
		"one":                          {1, 0, 30, 1, 0},
		"one of a deployment":          {1, 40, 120, 1, 1},
		"a few of a deployment":        {2, 40, 120, 2, 2},
		"many":                         {12, 0, 120, 0, 0},
		"many of a deployment":         {12, 40, 120, 0, 0},
		"as many as are alike, of few": {3, 0, 30, 0, 0},
	} {
		f := newFolder(t, 60)
		begun := f.now
		for i := range test.rewritten {
			f.write(i, 0)
		}
		for i := range test.pages {
			f.files[fmt.Sprintf("/new-%04d", i)] = &file{modTime: begun, blocks: uint64(5000 + i)}
		}
		f.check = func() {
			dated, byDay := 0, 0
			for i := range test.pages {
				s := f.dates[fmt.Sprintf("/new-%04d", i)]
				if s.LastMod != 0 && s.LastMod != begun {
					t.Fatalf("%s: dated %d", name, s.LastMod)
				}
				if s.LastMod != 0 {
					dated++
				}
				if s.Day {
					byDay++
				}
			}
			switch waited := f.now - begun; {
			case waited < test.waits && dated > 0:
				t.Fatalf("%s: %d are dated after %d s", name, dated, waited)
			case waited >= test.waits+120 && (dated != test.dated || byDay != test.byDay):
				t.Fatalf("%s: %d are dated after %d s, %d by day", name, dated, waited, byDay)
			}
		}
		f.pass(400, func(int64) {})
	}
}

// TestStampedDeployment: pages declare when they were built. That moves no date, neither while some of them still declare the build
// before, nor once it is over, whether all pages do so or a few.
func TestStampedDeployment(t *testing.T) {
	const n, corrections = 60, 3
	for name, test := range map[string]struct {
		stamped, lasts, corrections int64
		keepsTemplate               bool
	}{
		"all":                     {n, 1, 0, false},
		"all, slowly":             {n, 20, 0, false},
		"all, more slowly":        {n, 1200, 0, false},
		"all, with the same text": {n, 1200, 0, true},
		"all, some corrected":     {n, 1200, corrections, false},
		"a few":                   {6, 20, 0, false},
		"one":                     {1, 20, 0, false},
	} {
		f := newFolder(t, n)
		for i := range test.stamped {
			if test.stamped == n { // else they declare nothing before
				f.files[fmt.Sprintf("/%04d", i)].declared = f.now - 100*day + i
			}
		}
		f.scan()
		was := f.served()
		f.check = func() {
			if _, others := f.datesOf(int(test.corrections), was); others > 0 {
				t.Fatalf("%s: %d false dates, after %d s", name, others, f.now-noon.Unix())
			}
		}
		f.pass(test.lasts+1800, func(second int64) {
			for i := range int64(n) {
				if i*test.lasts/n != second {
					continue
				}
				difference := uint64(1 << 40)
				if test.keepsTemplate {
					difference = 0
				}
				if i < test.corrections {
					difference += uint64(i + 1)
				}
				f.write(int(i), difference)
				if i < test.stamped {
					f.files[fmt.Sprintf("/%04d", i)].declared = f.now
				}
			}
		})
		if corrected, _ := f.datesOf(int(test.corrections), was); corrected != int(test.corrections) {
			t.Errorf("%s: %d corrections are dated", name, corrected)
		}
	}
}

// TestStampedHalf: where half of the pages declare the time of a build from now on, they keep the dates that they declared before.
func TestStampedHalf(t *testing.T) {
	const n = 60
	f := newFolder(t, n)
	for i := range n {
		f.files[fmt.Sprintf("/%04d", i)].declared = f.now - int64(100+i)*day
	}
	f.scan()
	was := f.served()
	f.check = func() {
		if _, others := f.datesOf(0, was); others > 0 {
			t.Fatalf("%d false dates", others)
		}
	}
	f.pass(1800, func(second int64) {
		for i := range n {
			if int64(i) != second {
				continue
			}
			f.write(i, 1<<40)
			if i < n/2 {
				f.files[fmt.Sprintf("/%04d", i)].declared = f.now
			}
		}
	})
}

// TestWrittenAmidScan: a page is fetched after its file was examined, and the file may have been replaced in between. Then the
// new text comes with the old time at first. The next scan sees the new one, which is the date of the page: no other is listed
// meanwhile.
func TestWrittenAmidScan(t *testing.T) {
	for name, age := range map[string]int64{"time of the change": 0, "time that was kept": hour} {
		f := newFolder(t, 40)
		file := f.files["/0007"]
		before := file.modTime
		want := f.now - age
		f.check = func() {
			if got := f.dates["/0007"].LastMod; got != before && got != want {
				t.Fatalf("%s: got %d, want %d, or %d as before", name, got, want, before)
			}
		}
		file.blocks += 1 << 40
		file.changed = f.now
		f.scan()
		file.modTime = want
		f.pass(600, func(int64) {})
		if s := f.dates["/0007"]; s.LastMod != want || s.Day {
			t.Errorf("%s: got %d, by day %t, want %d", name, s.LastMod, s.Day, want)
		}
	}
}

// TestMovedAfterDeployment: a file that is moved or copied once a deployment is over still has the time at which that wrote it. It is
// no date of the page, nor of one in whose place it is put.
func TestMovedAfterDeployment(t *testing.T) {
	const n = 60
	f := newFolder(t, n)
	for i := range n {
		f.write(i, 1<<40)
	}
	deployed := f.now
	f.pass(600, func(int64) {})
	f.files["/moved"] = f.files["/0007"]
	delete(f.files, "/0007")
	edited := f.files["/0008"]
	edited.modTime = f.now - 60
	f.files["/edited"] = edited
	delete(f.files, "/0008")
	f.files["/0009"], f.files["/0010"] = f.files["/0010"], f.files["/0009"]
	f.files["/0009"].changed = f.now
	f.files["/0010"].changed = f.now
	f.check = func() {
		for _, path := range []string{"/moved", "/0009", "/0010"} {
			if s := f.dates[path]; s.LastMod == deployed {
				t.Fatalf("%s is dated with the deployment, %d s after it", path, f.now-deployed)
			}
		}
	}
	f.pass(600, func(int64) {})
	for path, want := range map[string]store.Selected{
		"/moved":  {},
		"/edited": {LastMod: edited.modTime},
		"/0009":   {LastMod: f.dates["/0009"].LastMod, Day: true},
	} {
		if s := f.dates[path]; s.LastMod != want.LastMod || s.Day != want.Day {
			t.Errorf("%s: got %d, by day %t, want %d, %t", path, s.LastMod, s.Day, want.LastMod, want.Day)
		}
	}
}
