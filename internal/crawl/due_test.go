package crawl

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// TestPace: known pages take a twentieth of the rate, or a tenth from 8,000 on, and are all fetched once in an interval
// between 1 and 14 days.
func TestPace(t *testing.T) {
	for _, test := range []struct {
		Pace
		share, routine float64 // requests an hour
		longest        int64
	}{
		{Pace{Rate: 2}, 360, 60, day},
		{Pace{Rate: 2, Known: 1000}, 360, 60, day},
		{Pace{Rate: 2, Known: 2400}, 360, 120, day},
		{Pace{Rate: 2, Known: 8000}, 360, 360, day},
		{Pace{Rate: 2, Known: 8000, Hubs: 4320}, 360, 360, 160_000}, // which take half of the share
		{Pace{Rate: 2, Known: 8000, Hubs: 1e6}, 360, 360, 160_000},
		{Pace{Rate: 2, Known: 8001}, 720, 400.05, day},
		{Pace{Rate: 2, Known: 100_000}, 720, 720, 500_000},
		{Pace{Rate: 2, Known: 1_000_000}, 720, 720, 14 * day},
		{Pace{Rate: 0.1, Known: 100}, 18, 18, day},
		{Pace{Known: 100}, 0, 0, 14 * day},
	} {
		share, routine := test.Share()*hour, test.Routine()*hour
		if math.Abs(share-test.share) > 1e-6 || math.Abs(routine-test.routine) > 1e-6 || test.Longest() != test.longest {
			t.Errorf("%+v: got a share of %.2f, %.2f by interval, up to %d", test.Pace, share, routine, test.Longest())
		}
		if quarter := test.Quarter() * hour; quarter != share/4 {
			t.Errorf("%+v: got a quarter of %.2f", test.Pace, quarter)
		}
	}
}

// TestNext: the table of when a page is due, and by what.
func TestNext(t *testing.T) {
	upstream := intervals{day, 6 * hour, 5 * day}
	for _, test := range []struct {
		name            string
		facts           fetchFacts
		interval, pause int64
		cause           record.Cause
	}{
		{"first", fetchFacts{came: changed, isFirst: true}, day, day, record.ByInterval},
		{"first, and missing", fetchFacts{came: missing, isFirst: true}, hour, hour, record.ByInterval},
		{"first, missing, and newly linked", fetchFacts{came: missing, isFirst: true, isNew: true}, minute, minute, record.ByInterval},
		{"first, and its date is in doubt", fetchFacts{came: suspected, isFirst: true}, 6 * hour, minute, record.ByConfirmation},
		{"unchanged", fetchFacts{interval: day}, 2 * day, 2 * day, record.ByInterval},
		{"unchanged for long", fetchFacts{interval: 4 * day}, 5 * day, 5 * day, record.ByInterval},
		{"unchanged after a change", fetchFacts{interval: 6 * hour}, 12 * hour, 12 * hour, record.ByInterval},
		{"unchanged after a failure", fetchFacts{interval: 4 * minute}, 6 * hour, 6 * hour, record.ByInterval},
		{"perhaps changed", fetchFacts{came: suspected, interval: 2 * day}, 2 * day, minute, record.ByConfirmation},
		{"perhaps changed, of a site that shrank", fetchFacts{came: suspected, interval: 9 * day}, 5 * day, minute, record.ByConfirmation},
		{"changed", fetchFacts{came: changed, interval: 2 * day}, day, day, record.ByInterval},
		{"changed often", fetchFacts{came: changed, interval: 6 * hour}, 6 * hour, 6 * hour, record.ByInterval},
		{"changed, of a site that shrank", fetchFacts{came: changed, interval: 14 * day}, 5 * day, 5 * day, record.ByInterval},
		{"gone", fetchFacts{came: gone, interval: day}, minute, minute, record.ByConfirmation},
		{"still gone", fetchFacts{came: missing, interval: minute}, 2 * minute, 2 * minute, record.ByInterval},
		{"gone for long", fetchFacts{came: missing, interval: 4 * day}, 5 * day, 5 * day, record.ByInterval},
		{"never there", fetchFacts{came: missing, isFirst: true}, hour, hour, record.ByInterval},
		{"fails", fetchFacts{came: failed, interval: day}, hour + minute, hour + minute, record.ByFailure},
		{"fails again", fetchFacts{came: failed, interval: hour, isFailing: true}, 2 * hour, 2 * hour, record.ByFailure},
		{"fails for long", fetchFacts{came: failed, interval: day, isFailing: true}, day, day, record.ByFailure},
		{"fails at first", fetchFacts{came: failed, isFailing: true}, minute, minute, record.ByFailure},
		{"the front page fails at first", fetchFacts{came: failed, isFailing: true, isFront: true}, briefWait, briefWait, record.ByFailure},
		{"empty", fetchFacts{came: emptied, interval: day}, day, briefWait, record.ByConfirmation},

		{"first of many", fetchFacts{came: changed, isFirst: true, isSpread: true, path: "/a"}, day, spread(day, "/a"), record.ByInterval},
		{"one of many again", fetchFacts{interval: day, isSpread: true, path: "/a"}, 2 * day, 2 * day, record.ByInterval},
		{"a hub", fetchFacts{interval: day, hub: 2}, 2 * day, 10 * minute, record.ByHub},
		{"once a hub", fetchFacts{interval: day, hub: 0.1}, 2 * day, 2 * day, record.ByInterval},
		{"a hub that changed", fetchFacts{came: changed, interval: day, hub: 1}, 12 * hour, hour, record.ByHub},
		{"a hub that perhaps changed", fetchFacts{came: suspected, interval: day, hub: 2}, day, minute, record.ByConfirmation},
		{"a hub that is gone", fetchFacts{came: missing, interval: minute, hub: 2, isNoPage: true}, 2 * minute, 2 * minute, record.ByInterval},
		{"a hub that is a file", fetchFacts{interval: day, hub: 2, isSteady: true}, 2 * day, 2 * day, record.ByInterval},
		{"the front page", fetchFacts{interval: day, isFront: true}, 2 * day, frontWait, record.ByHub},
		{"the front page, which is probed", fetchFacts{interval: day, isFront: true, isProbed: true}, 2 * day, hour, record.ByHub},
		{"the front page, a hub, which is probed", fetchFacts{interval: day, isFront: true, isProbed: true, hub: 2}, 2 * day, hour, record.ByHub},
		{"the front page, which is noise", fetchFacts{interval: day, isFront: true, isProbed: true, isNoisy: true}, 2 * day, 10 * minute, record.ByHub},
		{"the front page redirects", fetchFacts{interval: day, isFront: true, isNoPage: true}, 2 * day, 2 * day, record.ByInterval},
	} {
		test.facts.intervals = upstream
		if got := test.facts.next(); got != (due{test.interval, test.pause, test.cause}) {
			t.Errorf("%s: got %d, after %d, by %s", test.name, got.interval, got.pause, got.cause)
		}
	}
}

// TestHubInterval: the more pages the links of a page have led to lately, the more often it is fetched.
func TestHubInterval(t *testing.T) {
	for score, want := range map[float64]int64{0: 0, 0.19: 0, 0.2: 6 * hour, 0.69: 6 * hour, 0.7: hour, 1.99: hour, 2: 10 * minute, 99: 10 * minute} {
		if got := HubInterval(score); got != want {
			t.Errorf("%.2f: got %d, want %d", score, got, want)
		}
	}
	for after, want := range map[int64]float64{-day: 2, 0: 2, week: 2 / math.E, 10 * week: 0} {
		if got := Decayed(2, after); math.Abs(got-want) > 0.001 {
			t.Errorf("after %d: got %.3f, want %.3f", after, got, want)
		}
	}
}

// TestSpread: pages that were found together are fetched again at different times of a day.
func TestSpread(t *testing.T) {
	perHour := make([]int, 24)
	for i := range 24_000 {
		after := spread(day, fmt.Sprint("/", i))
		if after < hour || after >= day {
			t.Fatalf("got %d", after)
		}
		perHour[after/hour]++
	}
	if perHour[0] != 0 || slices.Min(perHour[1:]) < 900 || slices.Max(perHour) > 1200 {
		t.Errorf("got %v", perHour)
	}
	if got := spread(2*hour, "/"); got != 2*hour {
		t.Errorf("got %d", got)
	}
}

// TestBudget: what is saved up is spent by cause. Hubs, signals and routine fetches have their own parts of the share.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(2, 1)
		c := New(Options{Limiter: l})
		spend := func(of class) (n int) {
			for n < 10_000 && l.spend(of) {
				n++
			}
			return n
		}
		all := func(load record.Workload) string {
			l.update(c, load)
			return fmt.Sprintln(spend(bySignal), spend(byHub), spend(byRoutine), spend(byShare))
		}
		big := record.Workload{Upstream: 8000}
		steps := []struct {
			after time.Duration
			load  record.Workload
			want  string
		}{
			{0, big, "1 1 4 0"},                        // a minute's worth at first
			{0, big, "0 0 0 0"},                        //
			{10 * time.Minute, big, "15 15 30 0"},      //
			{12 * time.Hour, big, "1080 1080 2160 0"},  // crawls are far apart
			{100 * time.Hour, big, "2160 2160 4320 0"}, // no more than a day's worth
			{10 * time.Minute, big, "15 15 30 0"},      // no more than
			{-time.Hour, big, "1 1 4 0"},               // the clock was set back
		}
		for i, step := range steps {
			time.Sleep(max(step.after, 0))
			if step.after < 0 {
				for of := range l.budget.buckets {
					l.budget.buckets[of].filled += hour
				}
			}
			if got := strings.TrimSpace(all(step.load)); got != step.want {
				t.Errorf("step %d: got %s, want %s", i, got, step.want)
			}
		}
		for range 12 {
			time.Sleep(10 * time.Minute)
			l.update(c, big)
		}
		if got := strings.TrimSpace(all(big)); got != "90 90 180 0" {
			t.Errorf("nothing was due for two hours: got %s, want an hour's worth", got)
		}
		if !c.Start(nil, Policy{}).spend(byRate) {
			t.Error("what goes at the whole rate is not free")
		}
		l.restore(byHub)
		if n := spend(byHub); n != 1 {
			t.Errorf("%d requests were given back", n)
		}
		l = NewLimiter(2, 1)
		l.update(c, big)
		if signals, lists := spend(bySignal), spend(byList); signals != 1 || lists != 3 {
			t.Errorf("a minute's worth is %d for signals and %d for lists, want a quarter and a half of six", signals, lists)
		}
	})
}

// TestPaceOfSites: sites that share a rate share its part for known pages, until they are gone.
func TestPaceOfSites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(2, 1)
		one, other := New(Options{Limiter: l}), New(Options{Limiter: l})
		l.update(one, record.Workload{Upstream: 5000, Hubs: 10})
		if got := l.update(other, record.Workload{Upstream: 4000, Hubs: 5}); got.Known != 9000 || got.Hubs != 15 {
			t.Errorf("got %+v", got)
		}
		time.Sleep(3 * time.Hour)
		if got := l.update(other, record.Workload{Upstream: 4000}); got.Known != 4000 {
			t.Errorf("after hours: got %+v", got)
		}
	})
}

// TestQueue: signals come first, then hubs, then what is to be confirmed, then what is latest for its interval; operators'
// wishes and new pages share the rest.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(1000, 1)
		l.update(New(Options{Limiter: l}), record.Workload{Upstream: 100_000})
		now := time.Now().Unix()
		c := New(Options{Limiter: l})
		r := c.Start(nil, Policy{})
		a := r.newQueue()
		add := func(path string, cause record.Cause, interval, late int64) {
			rec := record.Record{Path: path, Cause: cause, Fetched: now - interval - late, Due: now - late}
			a.add(&rec, now)
		}
		add("late", record.ByInterval, day, hour)
		add("later", record.ByInterval, 6*hour, hour)
		add("confirmed", record.ByConfirmation, minute, 0)
		add("hub", record.ByHub, 10*minute, 0)
		add("visited", record.ByVisitor, day, 0)
		add("wanted", record.ByOperator, day, 0)
		add("wanted too", record.ByOperator, day, 0)
		var got []string
		fresh := []*job{{rec: record.Record{Path: "new"}}}
		for _, e := range a.complete(a.order(l.spend), fresh) {
			got = append(got, e.rec.Path)
		}
		if want := "visited,hub,confirmed,later,late,wanted,new,wanted too"; strings.Join(got, ",") != want || a.left {
			t.Errorf("got %q, left: %t", got, a.left)
		}
	})
}

// TestOrderOfSignals: what lists tell comes first, of that what was fetched longest ago, then what a visitor met.
func TestOrderOfSignals(t *testing.T) {
	l := NewLimiter(1000, 1)
	c := New(Options{Limiter: l})
	l.update(c, record.Workload{Upstream: 1000})
	a := c.Start(nil, Policy{}).newQueue()
	for i := range 10 {
		a.add(&record.Record{Path: fmt.Sprint("/list-", i), Cause: record.ByList, Fetched: now - int64(i)}, now)
	}
	a.add(&record.Record{Path: "/lost", Cause: record.ByLostLink, Fetched: 1}, now)
	a.add(&record.Record{Path: "/visited", Cause: record.ByVisitor, Fetched: 1}, now)
	var got []string
	for _, j := range a.order(l.spend) {
		got = append(got, j.rec.Path)
	}
	isOrdered := len(got) == 12 && got[0] == "/list-9" && got[9] == "/list-0" && got[10] == "/visited"
	if !isOrdered {
		t.Errorf("got %q", got)
	}
}

// TestQueueIsBounded: of very many pages the first are kept, and the rest is left.
func TestQueueIsBounded(t *testing.T) {
	a := New(Options{}).Start(nil, Policy{}).newQueue()
	for i := range 10 * minQueue {
		a.add(&record.Record{Path: fmt.Sprint("/", i), Cause: record.ByOperator, Depth: uint8(200 - i%200), Fetched: 1}, now)
	}
	ordered := a.complete(a.order(NewLimiter(2, 1).spend), nil)
	if len(ordered) != minQueue || !a.left || ordered[0].rec.Depth != 1 || len(a.known[byRate]) > 2*minQueue {
		t.Errorf("%d of depth %d and more, of %d", len(ordered), ordered[0].rec.Depth, len(a.known[byRate]))
	}
}

// TestSteadiness: a change counts once a second fetch a minute later has confirmed it. What is yet another one twice is noise.
func TestSteadiness(t *testing.T) {
	type step struct {
		after    int64
		text     uint64
		declared int64
		want     string // comparison, steadiness, batch of the change, whether the declared date moves
	}
	const clock = -1 // a declared date that is the time of the response
	for name, steps := range map[string][]step{
		"changed":              {{0, 1, 0, "0 0 0 -"}, {day, 2, 0, "2 1 0 -"}, {minute, 2, 0, "1 0 3 -"}, {day, 2, 0, "0 0 3 -"}},
		"noise":                {{0, 1, 0, "0 0 0 -"}, {day, 2, 0, "2 1 0 -"}, {minute, 3, 0, "2 4 0 -"}, {minute, 4, 0, "0 3 0 -"}, {day, 5, 0, "0 3 0 -"}, {minute, 5, 0, "0 3 0 -"}, {day, 5, 0, "1 0 7 -"}, {day, 6, 0, "2 1 7 -"}, {minute, 6, 0, "1 0 9 -"}},
		"changed twice":        {{0, 1, 0, "0 0 0 -"}, {day, 2, 0, "2 1 0 -"}, {minute, 3, 0, "2 4 0 -"}, {minute, 3, 0, "1 0 4 -"}},
		"confirmed late":       {{0, 1, 0, "0 0 0 -"}, {day, 2, 0, "2 1 0 -"}, {hour, 2, 0, "1 0 3 -"}},
		"another one later":    {{0, 1, 0, "0 0 0 -"}, {day, 2, 0, "2 1 0 -"}, {hour, 3, 0, "2 4 0 -"}, {minute, 3, 0, "1 0 4 -"}},
		"noise, late":          {{0, 1, 0, "0 0 0 -"}, {day, 2, 0, "2 1 0 -"}, {hour, 3, 0, "2 4 0 -"}, {hour, 4, 0, "0 3 0 -"}},
		"its time, late":       {{0, 1, clock, "2 2 0 -"}, {hour, 1, clock, "0 0 0 moves"}, {day, 1, clock, "2 2 0 moves"}},
		"declared twice":       {{0, 1, 100, "0 0 0 -"}, {day, 1, 200, "2 2 0 -"}, {hour, 1, 300, "0 0 0 -"}},
		"and back":             {{0, 1, 0, "0 0 0 -"}, {day, 2, 0, "2 1 0 -"}, {minute, 1, 0, "2 4 0 -"}, {minute, 1, 0, "0 0 0 -"}},
		"and back for long":    {{0, 1, 0, "0 0 0 -"}, {day, 2, 0, "2 1 0 -"}, {minute, 2, 0, "1 0 3 -"}, {day, 1, 0, "2 1 3 -"}, {minute, 1, 0, "1 0 5 -"}},
		"declared":             {{0, 1, 100, "0 0 0 -"}, {day, 1, 200, "2 2 0 -"}, {minute, 1, 200, "0 0 0 -"}},
		"declared and changed": {{0, 1, 100, "0 0 0 -"}, {day, 2, 200, "2 1 0 -"}, {minute, 2, 200, "1 0 3 -"}},
		"declares its time":    {{0, 1, clock, "2 2 0 -"}, {minute, 1, clock, "0 0 0 moves"}, {day, 1, clock, "2 2 0 moves"}, {minute, 1, clock, "0 0 0 moves"}},
		"published just now":   {{0, 1, now - 30, "2 2 0 -"}, {minute, 1, now - 30, "0 0 0 -"}, {day, 2, now + day, "2 1 0 -"}, {minute, 2, now + day, "1 0 4 -"}},
		"a clock in all":       {{0, 1, clock, "2 2 0 -"}, {minute, 2, clock, "2 4 0 moves"}, {minute, 3, clock, "0 3 0 moves"}, {day, 4, clock, "0 3 0 moves"}},
	} {
		rec := record.Record{Path: "/a"}
		at := int64(now)
		for i, step := range steps {
			at += step.after
			declared := step.declared
			if declared == clock {
				declared = at
			}
			before := rec
			before.Status = http.StatusOK
			rec = before
			rec.Fetched = at
			f := &fetched{resp: response(200), meta: html.Meta{Document: true, Text: step.text, Blocks: step.text, Modified: declared}, batch: int64(i + 1), now: at}
			came := text(&rec, &before, f)
			moves := "-"
			if rec.Flags&record.DeclaredMoves != 0 {
				moves = "moves"
			}
			if got := fmt.Sprint(came, " ", rec.Steadiness, " ", rec.Changed, " ", moves); got != step.want {
				t.Errorf("%s, step %d: got %s, want %s", name, i, got, step.want)
			}
			rec.Selected.Dated = rec.Changed // as pages are selected then
		}
	}
}

// TestSteadyFile: a file tells by its version that it has changed.
func TestSteadyFile(t *testing.T) {
	before := record.Record{Path: "/a", Version: 1, First: 1, Text: 1, Blocks: 1, Status: 200, Fetched: now - day}
	rec := before
	f := &fetched{resp: response(200), meta: html.Meta{Document: true, Text: 2, Blocks: 2}, batch: 9, now: now}
	if came := text(&rec, &before, f); came != changed || rec.Changed != 9 || rec.Before != now-day || rec.Steadiness != record.Steady {
		t.Errorf("got %d, %+v", came, rec)
	}
}

// TestChangedInSecondOfDate: a change is to be dated that is found in the second of the batch from which the page was dated, as after
// a restart.
func TestChangedInSecondOfDate(t *testing.T) {
	before := record.Record{Path: "/a", Version: 1, First: 9, Text: 1, Blocks: 1, Status: 200, Fetched: now - 1, Selected: record.Selected{Dated: 9}}
	rec := before
	f := &fetched{resp: response(200), meta: html.Meta{Document: true, Text: 2, Blocks: 2}, batch: 9, now: now}
	text(&rec, &before, f)
	if !rec.AwaitsDate() {
		t.Errorf("its date was decided already: %+v", rec)
	}
}

// TestSeenUnchanged: a file was last seen unchanged when it was fetched, or when its version was read with those of all others.
func TestSeenUnchanged(t *testing.T) {
	for name, test := range map[string]struct {
		version   uint32
		confirmed int64
		want      int64
	}{
		"a file":                  {1, now - hour, now - hour},
		"a file, not known":       {1, 0, now - 30*day},
		"a file, fetched since":   {1, now - 31*day, now - 30*day},
		"a file, of another time": {1, now + hour, now},
		"another page":            {0, now - hour, now - 30*day},
	} {
		before := record.Record{Path: "/a", Version: test.version, First: 1, Text: 1, Blocks: 1, Status: 200, Fetched: now - 30*day}
		rec := before
		f := &fetched{resp: response(200), meta: html.Meta{Document: true, Text: 2, Blocks: 2}, batch: 9, now: now, confirmed: test.confirmed}
		text(&rec, &before, f)
		if rec.Before != test.want {
			t.Errorf("%s: got %d, want %d", name, rec.Before-now, test.want-now)
		}
	}
}

// TestSettle: changes in a row are counted as far as there is room. A text that is back is none.
func TestSettle(t *testing.T) {
	for _, test := range []struct {
		streak, want uint8
		isBack       bool
	}{{0, 1, false}, {254, 255, false}, {255, 255, false}, {1, 1, true}} {
		rec := record.Record{Path: "/a", Text: 2, Blocks: 2, Streak: test.streak, Settled: 1}
		came := changed
		if test.isBack {
			rec.Settled = rec.Blocks
			came = unchanged
		}
		if got := settle(&rec, &fetched{batch: now}); got != came || rec.Streak != test.want || rec.Settled != 0 {
			t.Errorf("%+v: got %d, %+v", test, got, rec)
		}
	}
}

// TestTextThatDates: what differs from the text by which a file was last dated is one change, until that is dated. What does not
// count for the date, or is not known yet, is none.
func TestTextThatDates(t *testing.T) {
	const unknown = 0
	type step struct {
		text, blocks uint64
		isDated      bool // before the step, the change of the steps before is
		changed      int64
		difference   uint64
	}
	for name, steps := range map[string][]step{
		"the same":                  {{1, 10, true, 0, 0}, {1, 10, true, 0, 0}},
		"a footer":                  {{1, 10, true, 0, 0}, {2, 10, true, 0, 0}},
		"a correction":              {{1, 10, true, 0, 0}, {2, 13, true, 2, 3}},
		"two, each dated":           {{1, 10, true, 0, 0}, {2, 13, true, 2, 3}, {3, 20, true, 3, 7}},
		"two before they are dated": {{1, 10, true, 0, 0}, {2, 13, true, 2, 3}, {3, 20, false, 2, 10}, {3, 20, false, 2, 10}},
		"one that is taken back":    {{1, 10, true, 0, 0}, {2, 13, true, 2, 3}, {1, 10, false, 2, 0}},
		"less than before":          {{1, 10, true, 0, 0}, {2, 9, true, 2, math.MaxUint64}},
		"not known before":          {{1, unknown, true, 0, 0}, {1, 10, true, 0, 0}, {2, 13, true, 3, 3}},
		"changed meanwhile":         {{1, unknown, true, 0, 0}, {2, 10, true, 0, 0}, {3, 13, true, 3, 3}},
	} {
		rec := record.Record{Path: "/a", Version: 1, Status: http.StatusOK}
		for i, step := range steps {
			if step.isDated {
				rec.Selected.Dated = cmp.Or(rec.Changed, rec.First)
			}
			before := rec
			rec.Fetched = now + int64(i)
			f := &fetched{resp: response(200), meta: html.Meta{Document: true, Text: step.text, Blocks: step.blocks}, batch: int64(i + 1), now: rec.Fetched}
			text(&rec, &before, f)
			if rec.Changed != step.changed || rec.Difference != step.difference || rec.Text != step.text || rec.Blocks != step.blocks {
				t.Errorf("%s, step %d: got %+v", name, i, rec)
			}
			if step.changed == 2 && rec.Before != now {
				t.Errorf("%s, step %d: it was seen unchanged at %d", name, i, rec.Before-now)
			}
		}
	}
}

// crawlBlog crawls a site behind a limiter, as refreshes do each minute, for some time. front gives the front page's
// response to the crawl, as a probe does.
func crawlBlog(t *testing.T, c *Crawler, s *static, gen *record.Generation, d time.Duration, front bool) *record.Generation {
	return crawlEvery(t, time.Minute, c, s, gen, d, front)
}

// crawlEvery is crawlBlog with another interval.
func crawlEvery(t *testing.T, every time.Duration, c *Crawler, s *static, gen *record.Generation, d time.Duration, front bool) *record.Generation {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(every) {
		p := with(func(p *Policy) { p.Links = true })
		if front {
			before := len(s.order)
			p.Front, _ = s.Fetch(t.Context(), Request{Path: "/"})
			s.order = s.order[:before]
		}
		result := update(t, c.Start(new(list), p), gen, 50*time.Second)
		if !Same(result.Generation, gen) {
			gen = list200(t, result.Generation)
		}
	}
	return gen
}

// list200 selects all pages that returned 200.
func list200(t *testing.T, g *record.Generation) *record.Generation {
	w := g.Writer()
	for i, chunk := range g.Chunks() {
		records, err := g.Load(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		changed := false
		for j := range records {
			isListed := records[j].Status == 200
			changed = changed || records[j].Selected.Listed != isListed
			records[j].Selected.Listed = isListed
		}
		if !changed {
			w.Keep(i)
			continue
		}
		w.Put(chunk.First, records, func(string, string) uint64 { return chunk.Digest }, func([]record.Record) int64 { return chunk.Due })
	}
	next, err := w.Generation()
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// TestFrontPage: a page to which the front page links is fetched at once, and the front page itself never but by its
// probe. One to which it does not link any more is fetched, too.
func TestFrontPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{made: true, pages: map[string]string{"/": "/a /b", "/a": "", "/b": "", "/c": ""}}
		c := New(Options{Fetcher: s, Limiter: NewLimiter(2, 1)})
		gen := crawlBlog(t, c, s, empty(t), 5*time.Minute, true)
		if got := strings.Join(s.fetched(), " "); got != "/a /b" {
			t.Errorf("got %s", got)
		}
		unchanged := gen
		gen = crawlBlog(t, c, s, gen, 30*time.Minute, true)
		if !Same(gen, unchanged) {
			t.Error("a front page that stays as it is changes a record")
		}
		s.order = nil
		s.pages["/"] = "/b /c"
		delete(s.pages, "/a")
		gen = crawlBlog(t, c, s, gen, time.Minute, true)
		if got := strings.Join(s.fetched(), " "); got != "/a /c" && got != "/c /a" {
			t.Errorf("after a change: got %s", got)
		}
		if got := statuses(t, gen); !strings.Contains(got, "/a 404") {
			t.Errorf("got %s", got)
		}
	})
}

// TestHub: a page whose links lead to new pages that are listed is soon fetched every ten minutes, others once a day.
func TestHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{made: true, pages: map[string]string{"/": "/list /about", "/list": "/p", "/about": "/", "/p": ""}}
		c := New(Options{Fetcher: s, Limiter: NewLimiter(2, 1)})
		gen := crawlBlog(t, c, s, empty(t), 24*time.Hour, true)
		var ages []time.Duration
		for i := range 10 {
			path := fmt.Sprint("/new-", i)
			s.pages[path] = ""
			s.pages["/list"] += " " + path
			begun := time.Now()
			for !slices.Contains(s.fetched(), path) {
				gen = crawlBlog(t, c, s, gen, time.Minute, true)
			}
			ages = append(ages, time.Since(begun))
			gen = crawlBlog(t, c, s, gen, 4*time.Hour, true)
		}
		if ages[0] > 25*time.Hour || ages[1] > 62*time.Minute || slices.Max(ages[2:]) > 12*time.Minute {
			t.Errorf("got %s", ages)
		}
		n := 0
		for _, path := range s.fetched() {
			if path == "/about" {
				n++
			}
		}
		if n > 5 {
			t.Errorf("/about was fetched %d times", n)
		}
	})
}

// TestNoHub: links that change with each request, or lead to what is not listed, make no hub.
func TestNoHub(t *testing.T) {
	records := []record.Record{
		{Path: "/404", Finder: "/list", Fetched: 5, Status: 404},
		{Path: "/later", Finder: "/list"},
		{Path: "/listed", Finder: "/list", Fetched: 5, Selected: record.Selected{Listed: true}},
		{Path: "/now", Finder: "/list", Fetched: 10},
		{Path: "/old", Finder: "/list", Fetched: 5, Credited: true, Selected: record.Selected{Listed: true}},
	}
	r := New(Options{}).Start(nil, Policy{})
	r.began = 10
	if !r.settleFinders(records) || len(r.notices) != 1 || r.notices[0] != (notice{path: "/list", credits: true}) {
		t.Errorf("got %+v", r.notices)
	}
	if records[1].Credited || records[3].Credited || !records[0].Credited {
		t.Errorf("got %+v", records)
	}
}

// TestSignals: a signal has a listed page fetched in the next crawl. One that was false mutes the page for a day, then two.
func TestSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{made: true, pages: map[string]string{"/": "/a /b", "/a": "", "/b": ""}}
		c := New(Options{Fetcher: s, Limiter: NewLimiter(2, 1)})
		gen := crawlBlog(t, c, s, empty(t), time.Minute, true)
		signal := func(path string) string {
			s.order = nil
			c.Signal(path, record.ByVisitor)
			gen = crawlBlog(t, c, s, gen, time.Minute, true)
			return strings.Join(s.fetched(), " ")
		}
		for i, step := range []struct {
			after time.Duration
			path  string
			want  string
		}{
			{0, "/unknown", ""},
			{0, "/a", "/a"},
			{time.Minute, "/a", ""},
			{0, "/b", "/b"},
			{24 * time.Hour, "/a", "/a"},
			{25 * time.Hour, "/a", ""},
			{24 * time.Hour, "/a", "/a"},
		} {
			time.Sleep(step.after)
			gen = crawlBlog(t, c, s, gen, 5*time.Minute, true) // what is due by then
			if got := signal(step.path); got != step.want {
				t.Errorf("step %d: got %q, want %q", i, got, step.want)
			}
		}
		time.Sleep(5 * 24 * time.Hour)
		gen = crawlBlog(t, c, s, gen, 5*time.Minute, true)
		delete(s.pages, "/a")
		if got := signal("/a"); got != "/a" || !strings.Contains(statuses(t, gen), "/a 404") {
			t.Errorf("gone: got %q, %s", got, statuses(t, gen))
		}
		for i := range 2 * maxSignals {
			c.Signal(fmt.Sprint("/", i), record.ByVisitor)
		}
		if n := len(c.signals.take()); n != 1000 {
			t.Errorf("%d signals are kept", n)
		}
	})
}

// TestMostLost: a page that has lost many links, or has many new ones, shows others each time, which says nothing of theirs.
func TestMostLost(t *testing.T) {
	for n, want := range map[int]int{50: 50, 51: 0} {
		paths := make([]string, n)
		for i := range paths {
			paths[i] = fmt.Sprint("/", i)
		}
		lost := New(Options{}).Start(nil, Policy{})
		lost.noteLost(paths, nil)
		gained := New(Options{}).Start(nil, Policy{})
		gained.noteNew(paths)
		if len(lost.notices) != want || len(gained.notices) != want {
			t.Errorf("%d links: %d notices of lost ones, %d of new ones, want %d", n, len(lost.notices), len(gained.notices), want)
		}
	}
}

// TestListSignals: another date in a list is a signal. Three times in a row without another text mute the page.
func TestListSignals(t *testing.T) {
	rec := known()
	r := New(Options{}).Start(nil, Policy{})
	for i, want := range []bool{true, true, true, false} {
		rec.Due = now + day
		name(&rec, &page.Page{LastMod: int64(i + 10)}, now)
		if is := rec.Due == 0; is != want {
			t.Errorf("date %d: due: %t", i, is)
		}
		before := rec
		rec.Fetched = now
		r.mute(&before, &rec, unchanged)
	}
	if rec.Muted != now+4*day {
		t.Errorf("muted for %d", rec.Muted-now)
	}
	if !signal(&rec, record.ByVisitor, now) {
		t.Error("other signals are muted, too")
	}
	before := rec
	before.Due, before.Cause = 0, record.ByList
	for range 10 {
		r.mute(&before, &rec, unchanged)
	}
	if rec.Muted != now+32*day {
		t.Errorf("after many false signals, muted for %d", rec.Muted-now)
	}
	if r.mute(&before, &rec, changed); rec.Muted != 0 || rec.False != 0 {
		t.Errorf("it stays muted: %+v", rec)
	}
}

// TestRefetch: an operator has pages fetched again, whatever they are due by.
func TestRefetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &static{made: true, pages: map[string]string{"/": "/a /b", "/a": "", "/b": ""}}
		c := New(Options{Fetcher: s, Limiter: NewLimiter(2, 1)})
		gen := crawlBlog(t, c, s, empty(t), time.Minute, false)
		for _, test := range []struct {
			set  func(p *Policy)
			want string
		}{
			{func(p *Policy) { p.Refetch = []string{"/b", "/unknown"} }, "/b"},
			{func(p *Policy) { p.RefetchAll = true }, "/ /a /b"},
			{func(*Policy) {}, ""},
		} {
			s.order = nil
			gen = update(t, c.Start(new(list), with(func(p *Policy) { p.Links = true; test.set(p) })), gen, 50*time.Second).Generation
			slices.Sort(s.order)
			if got := strings.Join(s.fetched(), " "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		}
	})
}

// TestExpiry: a page to which nothing links expires only once every page that may link to it was looked at since.
func TestExpiry(t *testing.T) {
	for _, test := range []struct {
		linked, followed int64
		want             bool
	}{
		{now - 3*day, 0, true}, {now - 3*day - 1, 0, false},
		{now - 10*day, now - 11*day, true}, {now - 10*day, now - day, false},
		{now - 10*day, now - 10*day + 3*day/4, true}, {now - 10*day, now - 10*day + 3*day/4 + 1, false},
	} {
		rec := record.Record{Linked: test.linked}
		if got := rec.IsLinked(now, 3*day, test.followed); got != test.want {
			t.Errorf("linked %d ago, followed %d ago: got %t", now-test.linked, now-test.followed, got)
		}
	}
}

// TestDoubtOfLastCrawl: a doubt that is left from a crawl before ends where no crawl follows.
func TestDoubtOfLastCrawl(t *testing.T) {
	before := record.Record{Path: "/a", First: 1, Text: 2, Blocks: 2, Settled: 1, Steadiness: record.TextInDoubt, Status: 200, Fetched: now - day}
	rec := before
	f := &fetched{resp: response(200), meta: html.Meta{Document: true, Text: 2, Blocks: 2}, batch: 9, now: now, isLast: true}
	if came := text(&rec, &before, f); came != changed || rec.Changed != 9 || rec.Steadiness != record.Steady {
		t.Errorf("got %d, %+v", came, rec)
	}
}

// TestIsOfResponse: a time that a page declares of the last two minutes may be that of the response.
func TestIsOfResponse(t *testing.T) {
	const now = 1_700_000_000
	for _, test := range []struct {
		name string
		meta html.Meta
		want bool
	}{
		{"nothing", html.Meta{}, false},
		{"now", html.Meta{Modified: now}, true},
		{"later", html.Meta{Modified: now + 1}, true},
		{"two minutes ago", html.Meta{Modified: now - 120}, true},
		{"longer ago", html.Meta{Modified: now - 121}, false},
		{"a day", html.Meta{Modified: now, ModifiedDay: true}, false},
	} {
		if got := isOfResponse(&test.meta, now); got != test.want {
			t.Errorf("%s: got %t", test.name, got)
		}
	}
}
