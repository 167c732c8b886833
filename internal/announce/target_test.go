package announce

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

const day = 24 * time.Hour

// yields yields records with changes.
func yields(changes iter.Seq[Change]) iter.Seq2[*record.Record, error] {
	return func(yield func(*record.Record, error) bool) {
		for c := range changes {
			if !yield(&record.Record{Path: c.Path, Moved: uint32(c.At)}, nil) {
				return
			}
		}
	}
}

// TestChoose: what a target is told: the oldest changes after its cursor that are ripe, none skipped; and what its cursor is then.
func TestChoose(t *testing.T) {
	all := []Change{{5, "/e"}, {3, "/c"}, {1, "/a"}, {2, "/b"}, {3, "/d"}, {9, "/f"}}
	for _, test := range []struct {
		told    Change
		n       int
		ripe    int64 // up to then
		want    string
		end     Change
		waiting int
		next    int64
	}{
		{Change{}, 10, 10, "/a /b /c /d /e /f", Change{10, ""}, 6, 0},
		{Change{}, 10, 4, "/a /b /c /d", Change{4, ""}, 6, 5},
		{Change{}, 3, 10, "/a /b /c", Change{3, "/c"}, 6, 3}, // the second goes on
		{Change{}, 2, 10, "/a /b", Change{3, ""}, 6, 3},
		{Change{3, "/c"}, 10, 4, "/d", Change{4, ""}, 3, 5},
		{Change{4, ""}, 10, 4, "", Change{}, 2, 5},
		{Change{9, "/f"}, 10, 10, "", Change{}, 0, 0},
		{Change{}, 0, 10, "", Change{}, 6, 1},
	} {
		got, err := choose(yields(slices.Values(all)), test.told, test.n, func(at int64) bool { return at <= test.ripe })
		var paths []string
		for _, c := range got.changes {
			paths = append(paths, c.Path)
		}
		var end Change
		if len(paths) > 0 {
			end = got.end()
		}
		if err != nil || strings.Join(paths, " ") != test.want || end != test.end || got.waiting != test.waiting || got.next != test.next {
			t.Errorf("after %v: got %+v, %v, %v, want %+v", test.told, got, end, err, test)
		}
	}
	unreadable := func(yield func(*record.Record, error) bool) { yield(nil, fs.ErrPermission) }
	if _, err := choose(unreadable, Change{}, 1, nil); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("unreadable: %v", err)
	}
}

// TestChooseMany: of very many changes, the oldest are chosen, whatever their order is.
func TestChooseMany(t *testing.T) {
	const n = 7*maxBatch + 5
	changes := func(yield func(Change) bool) {
		for i := range n {
			at := int64(i*7919%n) + 1
			if !yield(Change{at, fmt.Sprint("/", at)}) {
				return
			}
		}
	}
	got, err := choose(yields(changes), Change{}, maxBatch, func(int64) bool { return true })
	if err != nil || len(got.changes) != maxBatch || got.changes[0].Path != "/1" || got.end() != (Change{At: maxBatch + 1}) || got.waiting != n || got.next != maxBatch+1 {
		t.Errorf("got %d changes from %v up to %v, %d wait, next %d, %v", len(got.changes), got.changes[0], got.end(), got.waiting, got.next, err)
	}
}

// TestPauses: after how many minutes the next request may follow some responses. Failures in a row double them, up to six
// hours; an accepted request ends that.
func TestPauses(t *testing.T) {
	const doubled = "1 2 4 8 16 32 64 128 256 360 360 360 "
	n := func(status, n int) []int { return slices.Repeat([]int{status}, n) }
	for _, test := range []struct {
		failures  int // that are stored
		responses []int
		want      string
	}{
		{0, slices.Concat(n(503, 12), []int{200, 503}), doubled + "1 1"},
		{-1, []int{503, 503, 503}, "1 1 2"}, // which nothing stores
		{0, slices.Concat(n(403, 9), n(422, 3), n(400, 90)), doubled + strings.Repeat("360 ", 90)},
	} {
		s := target{Status: Status{Target: Target{Kind: IndexNow}}}
		s.Failures = test.failures
		got := ""
		for _, status := range test.responses {
			b := &batch{changes: []Change{{epoch.Unix(), "/a"}}}
			o := Outcome{Status: status}
			if status != 200 {
				o.Reason = "failed"
			}
			s.begin(b, epoch)
			s.end(b, o, epoch)
			got += fmt.Sprint(math.Round(100*s.Pause.Minutes())/100) + " "
		}
		if strings.TrimSpace(got) != strings.TrimSpace(test.want) {
			t.Errorf("minutes: %s, want %s", got, test.want)
		}
	}
}

// TestUnknown: what may have been received stays unknown until there is a response for it, also where a later request fails.
func TestUnknown(t *testing.T) {
	s := target{Status: Status{Target: Target{Kind: IndexNow}}}
	killed := &batch{changes: []Change{{epoch.Unix(), "/a"}}}
	later := &batch{changes: []Change{{epoch.Unix(), "/a"}, {epoch.Unix() + 5, "/b"}}}
	s.begin(killed, epoch)
	s.begin(later, epoch)
	s.end(later, Outcome{Status: 503, Reason: "failed"}, epoch)
	if s.Until != killed.end() {
		t.Errorf("after a failure: %v may have been received, want %v", s.Until, killed.end())
	}
	s.begin(later, epoch)
	s.end(later, Outcome{Status: 200}, epoch)
	if s.Until != (Change{}) || s.Told != later.end() {
		t.Errorf("once it was accepted: %+v", s)
	}
}

// TestLate: what is told late is told again no sooner than anything else: the next request waits for the interval of a URL.
func TestLate(t *testing.T) {
	for age, want := range map[time.Duration]time.Duration{time.Minute: Gap, 2 * time.Minute: 10 * time.Minute} {
		s := target{Status: Status{Target: Target{Kind: IndexNow}}}
		b := &batch{changes: []Change{{epoch.Add(-age).Unix(), "/a"}, {epoch.Unix(), "/b"}}}
		s.begin(b, epoch)
		s.end(b, Outcome{Status: 200}, epoch.Add(30*time.Second))
		if s.Pause != want {
			t.Errorf("after %s: got %s, want %s", age, s.Pause, want)
		}
	}
}

// TestDaily: a day of UTC has so many URLs, whatever the clock does.
func TestDaily(t *testing.T) {
	s := target{Status: Status{Target: Target{Kind: IndexNow}}}
	for i, step := range []struct {
		at   time.Duration
		told int
		left int // before
	}{
		{0, 60, 100},
		{time.Hour, 40, 40},
		{11 * time.Hour, 0, 0},
		{12 * time.Hour, 5, 100}, // the next day
		{13 * time.Hour, 0, 95},
		{-time.Hour, 0, 100}, // the clock was set back
	} {
		now := epoch.Add(step.at)
		if got := s.left(100, now); got != step.left {
			t.Errorf("step %d: got %d, want %d", i, got, step.left)
		}
		if step.told > 0 {
			s.tell(&batch{changes: make([]Change, step.told)}, now)
		}
	}
	if got := new(target).left(MaxDaily, epoch); got != maxBatch {
		t.Errorf("got %d in a request", got)
	}
}

// TestDue: a clock that was set back stops no target, and one that was told all of a day's URLs is told more on the next day.
func TestDue(t *testing.T) {
	const midnight = 12 * time.Hour
	for _, test := range []struct {
		kind              Kind
		last, pause, want time.Duration
		today             int
	}{
		{IndexNow, -time.Minute, time.Hour, 59 * time.Minute, 9},
		{IndexNow, -time.Hour, time.Minute, -59 * time.Minute, 9},
		{IndexNow, 50 * 365 * day, time.Hour, 0, 9},
		{IndexNow, -time.Hour, time.Minute, midnight, 10},
		{IndexNow, 50 * 365 * day, time.Hour, midnight, 10},
		{IndexNow, -time.Hour, day, 23 * time.Hour, 10},
		{Ping, -time.Minute, time.Hour, 59 * time.Minute, 10},
	} {
		s := target{Status: Status{Target: Target{Kind: test.kind}, Last: epoch.Add(test.last)}, Pause: test.pause}
		s.Day = dayOf(epoch)
		s.Today = test.today
		if got := s.due(10, epoch).Sub(epoch); got != test.want {
			t.Errorf("%+v: got %s", test, got)
		}
	}
}

func TestChecks(t *testing.T) {
	check := func(target Target, isGood bool) {
		if err := target.Check(); (err == nil) != isGood {
			t.Errorf("%q: %v", target, err)
		}
	}
	for key, isGood := range map[string]bool{key: true, "A-z0-9-8": true, strings.Repeat("a", 128): true, "1234567": false,
		strings.Repeat("a", 129): false, "12345678\n": false, "1234567/": false, "": false} {
		if IsKey(key) != isGood {
			t.Errorf("%q is a key: %t", key, !isGood)
		}
	}
	for target, isGood := range map[string]bool{DefaultEndpoint: true, "http://127.0.0.1:8080/indexnow": true, "api.indexnow.org/indexnow": false,
		"ftp://example.com/": false, "https://user:secret@example.com/": false, "https://exa mple.com/": false, "https://example.com/%zz": false} {
		check(Target{IndexNow, target}, isGood)
		check(Target{Ping, target}, false)
		check(Target{Ping, target + "?u={sitemap}"}, isGood)
		check(Target{Hub, target + "?u={sitemap}"}, false)
		check(Target{Ping, target + "?u={sitemap}&v={other}"}, false)
	}
	for target, want := range map[Target]string{
		{Ping, DefaultEndpoint}:                    "the URL of a ping must have {sitemap} in it, which the URL of the sitemap replaces",
		{Hub, DefaultEndpoint + "?{sitemap}"}:      "no placeholder is replaced but {sitemap} in the URL of a ping: remove it",
		{IndexNow, DefaultEndpoint + "?{sitemap}"}: "no placeholder is replaced but {sitemap} in the URL of a ping: remove it",
	} {
		if err := target.Check(); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", target, err, want)
		}
	}
}
