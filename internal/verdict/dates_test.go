package verdict

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/evidence"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/state"
)

const day0 = int64(1_700_000_000)

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
		mtime []int64
		want  bool
	}{
		{"none", nil, false},
		{"one", spread(1, 0), false},
		{"two", spread(2, 0), false},
		{"three", spread(3, 0), true},
		{"ten minutes exactly", []int64{day0, day0 + 300, day0 + 600}, true},
		{"a second more", []int64{day0, day0 + 300, day0 + 601}, false},
		{"across minutes", []int64{day0 + 59, day0 + 300, day0 + 659}, true},
		{"two of three", []int64{day0, day0, day0 + 9999}, false},
		{"nine of ten", join(spread(9, 75), []int64{1}), true},
		{"nine of ten, the tenth after", join(spread(9, 75), []int64{day0 + 1e6}), true},
		{"nine of ten, too slow", join(spread(9, 76), []int64{1}), false},
		{"eight of nine", join(spread(8, 0), []int64{1}), false},
		{"seventeen of nineteen", join(spread(17, 0), []int64{1, 2}), false},
		{"eighteen of twenty", join(spread(18, 0), []int64{1, 2}), true},
		{"unknown times do not count", join(spread(3, 0), []int64{0, 0, 0, 0}), true},
		{"times that no file has do not count", join(spread(3, 0), []int64{-5, -6, 1 << 40}), true},
		{"an hour", spread(1000, 4), false},
		{"many", spread(2*maxTimes+5, 0), true},
		{"many over years", spread(3*maxTimes, 700), false},
	} {
		for range 2 {
			var s Survey
			var answers, declared, mtime dates
			for _, m := range test.mtime {
				mtime.add(&state.Record{Page: page.Page{LastMod: m}, Seen: seenFirstFile, Flags: FlagRead})
				declared.add(&state.Record{Declared: m})
				if len(test.mtime) < 2000 && m > 0 {
					answers.add(&state.Record{Modified: time.Unix(m, 0).UTC().Format(http.TimeFormat), Seen: seenFirstAnswer, Flags: FlagRead | FlagDynamic, Asked: 1 << 41})
				}
			}
			s.dates = mtime
			if got := s.Decisions(); got != (Decisions{Deployment: test.want}) {
				t.Errorf("%s: files: got %+v", test.name, got)
			}
			if got := declared.decide(); got != (Decisions{DeclaredAlike: test.want}) {
				t.Errorf("%s: declared: got %+v", test.name, got)
			}
			if got := answers.decide(); len(test.mtime) < 2000 && test.name[0] != 't' && got != (Decisions{AnswersAlike: test.want}) {
				t.Errorf("%s: answers: got %+v", test.name, got)
			}
			slices.Reverse(test.mtime)
		}
	}
	// Only what is new tells of a deployment.
	var d dates
	for range 5 {
		d.add(&state.Record{Page: page.Page{LastMod: day0}, Seen: seenChangeFile, Flags: FlagRead})
		d.add(&state.Record{Page: page.Page{LastMod: day0}, Flags: FlagRead})
	}
	if got := d.decide(); got.Deployment {
		t.Errorf("got %+v", got)
	}
}

func TestTimesAgainstAllPairs(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		var list times
		all := make([]int64, random.IntN(30))
		for i := range all {
			all[i] = day0
			if random.IntN(12) > 0 {
				all[i] += random.Int64N(650)
			} else {
				all[i] += random.Int64N(5000)
			}
			list.add(all[i])
		}
		want := false
		for _, from := range all {
			in := 0
			for _, at := range all {
				if at >= from && at <= from+600 {
					in++
				}
			}
			want = want || len(all) >= 3 && 10*in >= 9*len(all)
		}
		if got := list.areAlike(); got != want {
			t.Fatalf("%v: got %t, want %t", all, got, want)
		}
	}
}

func TestTemplateChanged(t *testing.T) {
	for _, test := range []struct {
		changed, same, fresh, counters int
		want                           bool
	}{
		{0, 0, 0, 0, false}, {1, 0, 0, 0, false}, {2, 0, 0, 0, false}, {3, 0, 0, 0, true}, {2, 1, 0, 0, true}, {2, 2, 0, 0, false},
		{1, 1, 9, 0, false}, {51, 49, 0, 0, true}, {50, 50, 0, 0, false}, {50, 50, 0, 40, false}, {51, 49, 1000, 0, true}, {1, 3, 0, 20, false},
	} {
		var d dates
		add := func(n int, r state.Record) {
			for range n {
				r.Flags |= FlagRead
				d.add(&r)
			}
		}
		add(test.changed, state.Record{Seen: seenChangeFile})
		add(test.same, state.Record{})
		add(test.fresh, state.Record{Seen: seenFirstAnswer})
		add(test.counters, state.Record{Seen: seenChangeAnswer, Streak: maxStreak})
		d.add(&state.Record{}) // never read
		if got := d.decide().TemplateChanged; got != test.want {
			t.Errorf("%+v: got %t", test, got)
		}
	}
}

func TestSettle(t *testing.T) {
	const header, asked = "Tue, 14 Nov 2023 22:13:20 GMT", day0 + 5000 // header is day0
	for _, test := range []struct {
		name string
		r    state.Record
		d    Decisions
		want int64
		day  bool
	}{
		{"nothing", state.Record{LastMod: 5}, Decisions{Deployment: true, TemplateChanged: true}, 5, false},
		{"first file", state.Record{Seen: seenFirstFile, Page: page.Page{LastMod: 7}}, Decisions{}, 7, false},
		{"first file, deployed", state.Record{Seen: seenFirstFile, Page: page.Page{LastMod: 7}}, Decisions{Deployment: true}, 0, false},
		{"first answer", state.Record{Seen: seenFirstAnswer, Modified: header}, Decisions{Deployment: true}, day0, false},
		{"first answer, alike", state.Record{Seen: seenFirstAnswer, Modified: header}, Decisions{AnswersAlike: true}, 0, false},
		{"first answer, no header", state.Record{Seen: seenFirstAnswer, Page: page.Page{LastMod: 7}}, Decisions{}, 0, false},
		{"file", state.Record{Seen: seenChangeFile, Page: page.Page{LastMod: 7}, LastMod: 5}, Decisions{Deployment: true}, 7, false},
		{"file, time unknown", state.Record{Seen: seenChangeFile, LastMod: 5}, Decisions{}, 0, false},
		{"file, no later than before", state.Record{Seen: seenChangeFile, Page: page.Page{LastMod: 5}, LastMod: 5}, Decisions{}, 0, false},
		{"file, template", state.Record{Seen: seenChangeFile, Page: page.Page{LastMod: 7}, LastMod: 5, LastModDay: true}, Decisions{TemplateChanged: true}, 5, true},
		{"answer", state.Record{Seen: seenChangeAnswer, Modified: header, LastMod: 5}, Decisions{}, day0, false},
		{"answer, alike", state.Record{Seen: seenChangeAnswer, Modified: header, LastMod: 5}, Decisions{AnswersAlike: true}, 0, false},
		{"day, alike", state.Record{Seen: seenChangeDay, Modified: header, LastMod: 5}, Decisions{AnswersAlike: true}, asked, true},
		{"answer, no header", state.Record{Seen: seenChangeAnswer, LastMod: 5, LastModDay: true}, Decisions{}, 0, false},
		{"answer, header as before", state.Record{Seen: seenChangeAnswer, Modified: header, LastMod: day0}, Decisions{}, 0, false},
		{"answer, no header but a file", state.Record{Seen: seenChangeAnswer, Page: page.Page{LastMod: 7}}, Decisions{}, 0, false},
		{"answer, template", state.Record{Seen: seenChangeAnswer, Modified: header, LastMod: 5}, Decisions{TemplateChanged: true}, 5, false},
		{"day", state.Record{Seen: seenChangeDay, LastMod: 5}, Decisions{}, asked, true},
		{"day, with header", state.Record{Seen: seenChangeDay, Modified: header, LastMod: 5}, Decisions{}, day0, false},
		{"day, header as before", state.Record{Seen: seenChangeDay, Modified: header, LastMod: day0}, Decisions{}, asked, true},
		{"day, template", state.Record{Seen: seenChangeDay, LastMod: 5}, Decisions{TemplateChanged: true}, 5, false},
	} {
		r := test.r
		r.Asked = asked
		if got := Settle(&r, test.d); got != (test.r.Seen != 0) || r.LastMod != test.want || r.LastModDay != test.day || r.Seen != 0 {
			t.Errorf("%s: got %t, %d %t, want %d %t", test.name, got, r.LastMod, r.LastModDay, test.want, test.day)
		}
		again := r
		if Settle(&r, Decisions{Deployment: true}); r.LastMod != again.LastMod {
			t.Errorf("%s: settled twice: got %d", test.name, r.LastMod)
		}
	}
}

func TestLastModified(t *testing.T) {
	asked := noon.Unix() // half a minute past
	at := func(seconds int64) string { return time.Unix(asked+seconds, 0).UTC().Format(http.TimeFormat) }
	for _, test := range []struct {
		header string
		want   int64
	}{
		{"", 0}, {"yesterday", 0}, {"Thu, 01 Jan 1970 00:00:00 GMT", 0}, {"Fri, 01 Jan 1960 00:00:00 GMT", 0},
		{at(0), 0}, {at(-1), 0}, {at(1), 0}, {at(3600), 0}, {at(-30), 0}, {at(-31), 0}, {at(-32), asked - 32}, {at(-3600), asked - 3600},
		{"Saturday, 14-Mar-26 11:00:00 GMT", asked - 3630}, {"Sat Mar 14 11:00:00 2026", asked - 3630},
	} {
		// It is the same before and after it was kept on disk, to the minute.
		for _, asked := range []int64{asked, asked / 60 * 60} {
			if got := lastModified(&state.Record{Modified: test.header, Asked: asked}); got != test.want {
				t.Errorf("%q: got %d, want %d", test.header, got, test.want)
			}
		}
	}
}

func TestHeaderTime(t *testing.T) {
	random := rand.New(rand.NewPCG(10, 11))
	weekdays := strings.Fields("Sun Mon Tue Wed Thu Fri Sat")
	const odd = "0123456789JanFebDec ,:GMT-+é"
	for i := range 200_000 {
		s := time.Unix(random.Int64N(1<<36)-1<<33, 0).UTC().Format(http.TimeFormat)
		if i%2 == 0 {
			b := []byte(s)
			b[random.IntN(len(b))] = odd[random.IntN(len(odd))]
			s = string(b)
		}
		got, ok := headerTime(s)
		want, err := http.ParseTime(s)
		// Of the weekday, its name alone is not read.
		if err == nil && (!ok || got != want.Unix()) || ok && err != nil && slices.Contains(weekdays, s[:3]) {
			t.Fatalf("%q: got %d %t, want %d, %v", s, got, ok, want.Unix(), err)
		}
	}
}

func TestLastMod(t *testing.T) {
	file := page.Page{LastMod: 3, Version: 1}
	list := page.Page{LastMod: 3, LastModDay: true}
	for _, test := range []struct {
		name string
		r    state.Record
		d    Decisions
		m    Mode
		want int64
		day  bool
	}{
		{"off", state.Record{Page: file, Declared: 5, LastMod: 4, Flags: FlagRead}, Decisions{}, Off, 0, false},
		{"mtime", state.Record{Page: file, Declared: 5, LastMod: 4, Flags: FlagRead, Streak: 3}, Decisions{Deployment: true}, MTime, 3, false},
		{"mtime, a list's day", state.Record{Page: list}, Decisions{}, MTime, 3, true},
		{"declared", state.Record{Page: file, Declared: 5, LastMod: 4, Flags: FlagRead}, Decisions{}, Auto, 5, false},
		{"declared day", state.Record{Page: list, Declared: 5, DeclaredDay: true, LastMod: 4, Flags: FlagRead}, Decisions{}, Auto, 5, true},
		{"declared alike", state.Record{Page: file, Declared: 5, LastMod: 4, Flags: FlagRead}, Decisions{DeclaredAlike: true}, Auto, 4, false},
		{"declared moves", state.Record{Page: file, Declared: 5, LastMod: 4, LastModDay: true, Flags: FlagRead | FlagDeclaredMoves}, Decisions{}, Auto, 4, true},
		{"counter", state.Record{Page: file, Declared: 5, LastMod: 4, Flags: FlagRead, Streak: 3}, Decisions{}, Auto, 0, false},
		{"nearly a counter", state.Record{Page: file, LastMod: 4, Flags: FlagRead, Streak: 2}, Decisions{}, Auto, 4, false},
		{"a list's", state.Record{Page: list}, Decisions{}, Auto, 3, true},
		{"a list's, read", state.Record{Page: list, LastMod: 4, Flags: FlagRead | FlagDynamic}, Decisions{}, Auto, 3, true},
		{"a list's nothing", state.Record{LastMod: 4, Flags: FlagRead | FlagDynamic}, Decisions{}, Auto, 4, false},
		{"a file's, not read", state.Record{Page: file, LastMod: 4}, Decisions{}, Auto, 0, false},
		{"a file's that is to be read again", state.Record{Page: page.Page{LastMod: 3}, LastMod: 4, Flags: FlagRead}, Decisions{}, Auto, 4, false},
	} {
		if got, day := LastMod(&test.r, test.d, test.m); got != test.want || day != test.day {
			t.Errorf("%s: got %d %t, want %d %t", test.name, got, day, test.want, test.day)
		}
	}
}

// look is an ask of a page that is no file, at a time after noon, and what it showed.
func look(r *state.Record, after time.Duration, text uint64, header ...string) bool {
	e := evidence.Evidence{Whole: true, Fingerprint: text}
	now := noon.Add(after)
	changed := Content(r, &e, origin, false, now)
	a := answer(200, header...)
	a.Page = &e
	Answer(r, a, origin, now)
	r.Asked = r.Asked / 60 * 60 // as kept on disk
	return changed
}

func TestNoticed(t *testing.T) {
	const hour = time.Hour
	other := func(r *state.Record, after time.Duration, a Answered) { Answer(r, a, origin, noon.Add(after)) }
	for _, test := range []struct {
		name string
		run  func(r *state.Record)
		want uint8
	}{
		{"first", func(r *state.Record) { look(r, 0, 1) }, seenFirstAnswer},
		{"same", func(r *state.Record) { look(r, 0, 1); look(r, hour, 1) }, seenFirstAnswer},
		{"the same day", func(r *state.Record) { look(r, 0, 1); look(r, 23*hour, 2) }, seenChangeDay},
		{"a day later", func(r *state.Record) { look(r, 0, 1); look(r, 24*hour, 2) }, seenChangeAnswer},
		{"after silence", func(r *state.Record) {
			look(r, 0, 1)
			other(r, 99*hour, Answered{NoReply: true})
			look(r, 100*hour, 2)
		}, seenChangeAnswer},
		{"after an error", func(r *state.Record) { look(r, 0, 1); other(r, 99*hour, answer(503)); look(r, 100*hour, 2) }, seenChangeAnswer},
		{"after a refusal", func(r *state.Record) { look(r, 0, 1); other(r, 99*hour, answer(401)); look(r, 100*hour, 2) }, seenChangeAnswer},
		{"after a body that was not read", func(r *state.Record) { look(r, 0, 1); other(r, 99*hour, answer(200)); look(r, 100*hour, 2) }, seenChangeAnswer},
		{"after 304", func(r *state.Record) { look(r, 0, 1); other(r, 99*hour, answer(304)); look(r, 100*hour, 2) }, seenChangeDay},
		{"asked again before the day was kept", func(r *state.Record) { look(r, 0, 1); look(r, hour, 2); look(r, 99*hour, 2) }, seenChangeAnswer},
		{"silent before the day was kept", func(r *state.Record) {
			look(r, 0, 1)
			look(r, hour, 2)
			other(r, 99*hour, Answered{NoReply: true})
		}, seenChangeAnswer},
		{"not modified before the day was kept", func(r *state.Record) { look(r, 0, 1); look(r, hour, 2); other(r, 99*hour, answer(304)) }, seenChangeAnswer},
		{"what a file holds is not what is served", func(r *state.Record) {
			Content(r, &evidence.Evidence{Whole: true, Fingerprint: 9}, origin, true, noon)
			look(r, hour, 1)
		}, seenFirstAnswer},
		{"what a file holds is what is served", func(r *state.Record) {
			Content(r, &evidence.Evidence{Whole: true, Fingerprint: 1}, origin, true, noon)
			look(r, hour, 1)
		}, seenFirstFile},
		{"a file's", func(r *state.Record) {
			Content(r, &evidence.Evidence{Fingerprint: 1}, origin, true, noon)
			Content(r, &evidence.Evidence{Fingerprint: 2}, origin, true, noon)
		}, seenChangeFile},
	} {
		r := &state.Record{Page: page.Page{Path: "/a"}}
		if test.run(r); r.Seen != test.want {
			t.Errorf("%s: got %d, want %d", test.name, r.Seen, test.want)
		}
	}
}

func TestStreak(t *testing.T) {
	r := &state.Record{Page: page.Page{Path: "/a"}}
	hidden := func() bool {
		Settle(r, Decisions{})
		unix, _ := LastMod(r, Decisions{}, Auto)
		return unix == 0
	}
	for i, want := range []bool{true, false, false, true, true} {
		look(r, time.Duration(i)*time.Hour, uint64(i+1))
		if got := hidden(); got != want {
			t.Errorf("ask %d: no date: %t, want %t", i, got, want)
		}
	}
	Answer(r, answer(304), origin, noon.Add(9*time.Hour))
	if hidden() {
		t.Error("not modified, and still none")
	}
	for i := range 5 {
		look(r, time.Duration(10+i)*time.Hour, uint64(i+10))
	}
	look(r, 20*time.Hour, 14)
	if r.Streak != 0 {
		t.Errorf("got %d", r.Streak)
	}
	for i := range 9 { // a file that changes often is no counter
		Content(r, &evidence.Evidence{Whole: true, Fingerprint: uint64(i)}, origin, true, noon)
	}
	if r.Streak != 0 {
		t.Errorf("of a file: got %d", r.Streak)
	}
}

func TestDeclaredMoves(t *testing.T) {
	for _, test := range []struct {
		name             string
		text1, text2     uint64
		before, declared int64
		want             bool
	}{
		{"moves", 1, 1, 5, 6, true},
		{"moves with the text", 1, 2, 5, 6, false},
		{"stays", 1, 1, 5, 5, false},
		{"comes", 1, 1, 0, 5, false},
		{"goes", 1, 1, 5, 0, false},
	} {
		for _, fromFile := range []bool{true, false} {
			r := &state.Record{Page: page.Page{Path: "/a"}}
			Content(r, &evidence.Evidence{Whole: true, Fingerprint: test.text1, Modified: test.before}, origin, fromFile, noon)
			Content(r, &evidence.Evidence{Whole: true, Fingerprint: test.text2, Modified: test.declared}, origin, fromFile, noon)
			if got := r.Flags&FlagDeclaredMoves != 0; got != test.want || r.Declared != test.declared {
				t.Errorf("%s: got %t", test.name, got)
			}
			// What moved while the old text stayed may be the date of a new one.
			Content(r, &evidence.Evidence{Whole: true, Fingerprint: test.text2, Modified: 8}, origin, fromFile, noon)
			Content(r, &evidence.Evidence{Whole: true, Fingerprint: test.text2, Modified: 9}, origin, fromFile, noon)
			if r.Flags&FlagDeclaredMoves == 0 {
				t.Errorf("%s: moved, and nobody noticed", test.name)
			}
			Content(r, &evidence.Evidence{Whole: true, Fingerprint: 3, Modified: 10}, origin, fromFile, noon)
			if unix, _ := LastMod(r, Decisions{}, Auto); r.Flags&FlagDeclaredMoves != 0 || unix != 10 {
				t.Errorf("%s: another text: got %d", test.name, unix)
			}
		}
	}
}

// A header that is older than the last look at the old text is not the new one's.
func TestHeaderOlderThanOldText(t *testing.T) {
	const early = "Fri, 13 Mar 2026 12:00:00 GMT" // the day before noon
	r := &state.Record{Page: page.Page{Path: "/a"}}
	look(r, 0, 1)
	look(r, time.Hour, 2, "Last-Modified", early)
	Settle(r, Decisions{})
	if unix, day := LastMod(r, Decisions{}, Auto); !day || unix != noon.Add(time.Hour).Unix()/60*60 {
		t.Errorf("got %d %t", unix, day)
	}
}
