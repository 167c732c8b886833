package outcome

import (
	"encoding/json"
	"errors"
	"maps"
	"testing"
	"time"
)

// TestHistory runs through refreshes of one site, whose history is restored from the store each time.
func TestHistory(t *testing.T) {
	begun := time.Unix(1e9, 0).UTC()
	const first, second = "files", "urls"
	var h History
	for i, step := range []struct {
		what     string
		outcome  Outcome
		failed   map[int]string // sources
		selected bool
		partial  bool
		lost     time.Time

		confirmed int // the step that was confirmed last; -1: none
		unread    map[int]string
		since     bool
		isPartial bool
	}{
		{what: "it fails at first", outcome: Fail(errors.New("gone")), confirmed: -1},
		{what: "a source could never be read", outcome: Outcome{Result: Published}, failed: map[int]string{1: second}, selected: true, partial: true,
			confirmed: 1, unread: map[int]string{1: second}, isPartial: true},
		{what: "nothing is selected", outcome: Outcome{Result: Unchanged}, failed: map[int]string{1: second},
			confirmed: 2, unread: map[int]string{1: second}, isPartial: true},
		{what: "another source fails", outcome: Outcome{Result: HeldBack, Reason: "source 1"}, failed: map[int]string{0: first, 1: second}, selected: true,
			confirmed: 2, unread: map[int]string{1: second}},
		{what: "it fails again", outcome: Outcome{Result: HeldBack, Reason: "source 1"}, failed: map[int]string{0: first, 1: second},
			confirmed: 2, unread: map[int]string{1: second}},
		{what: "only it fails", outcome: Outcome{Result: HeldBack, Reason: "source 1"}, failed: map[int]string{0: first}, confirmed: 2},
		{what: "both fail again", outcome: Outcome{Result: HeldBack, Reason: "both"}, failed: map[int]string{0: first, 1: second}, confirmed: 2},
		{what: "all are read", outcome: Outcome{Result: Unchanged}, confirmed: 7},
		{what: "a loss", outcome: Outcome{Result: HeldBack, Reason: "few", Since: begun}, selected: true, confirmed: 7, since: true},
		{what: "the refresh fails", outcome: Fail(errors.New("broken")), confirmed: 7, since: true},
		{what: "the loss is confirmed, without a source", outcome: Outcome{Result: Published}, failed: map[int]string{0: first}, selected: true,
			confirmed: 10, unread: map[int]string{0: first}},
		{what: "nothing is left", outcome: Outcome{Result: Empty, Reason: "refused"}, selected: true, lost: begun, confirmed: 11},
	} {
		before := h
		at := func(step int) (at time.Time) {
			if step >= 0 {
				at = begun.Add(time.Duration(step) * time.Minute)
			}
			return at
		}
		h = h.After(step.outcome, Ended{Begun: at(i), Failed: step.failed, Selected: step.selected, Partial: step.partial, Lost: step.lost})
		encoded, err := json.Marshal(h)
		h = History{}
		if err = errors.Join(err, json.Unmarshal(encoded, &h)); err != nil {
			t.Fatal(err)
		}
		step.outcome.Err = nil
		if h.Last != step.outcome || !h.Confirmed.Equal(at(step.confirmed)) || !maps.Equal(h.Unread, step.unread) ||
			h.Since.IsZero() == step.since || h.Partial != step.isPartial || !h.Lost.Equal(step.lost) {
			t.Errorf("%s: got %+v after %+v", step.what, h, before)
		}
	}
}

// TestDatesDue: the time at which dates are due is that of the last selection.
func TestDatesDue(t *testing.T) {
	begun := time.Unix(1e9, 0).UTC()
	h := History{}.After(Outcome{Result: Published}, Ended{Selected: true, DatesDue: begun})
	for _, o := range []Outcome{{Result: Unchanged}, Fail(errors.New("gone"))} {
		h = h.After(o, Ended{Selected: o.Result == Failed})
		encoded, err := json.Marshal(h)
		h = History{}
		if err = errors.Join(err, json.Unmarshal(encoded, &h)); err != nil || !h.DatesDue.Equal(begun) {
			t.Errorf("%s: got %s, %v", o.Result, h.DatesDue, err)
		}
	}
	h = h.After(Outcome{Result: Published}, Ended{Selected: true})
	if !h.DatesDue.IsZero() {
		t.Errorf("without dates: got %s", h.DatesDue)
	}
}

// TestIsUnread: a source is known by its number and name.
func TestIsUnread(t *testing.T) {
	h := History{Confirmed: time.Unix(1e9, 0), Unread: map[int]string{0: "urls", 2: ""}}
	for _, test := range []struct {
		source int
		name   string
		want   bool
	}{{0, "urls", true}, {0, "files", false}, {1, "urls", false}, {1, "", false}, {2, "", true}} {
		if got := h.IsUnread(test.source, test.name); got != test.want {
			t.Errorf("%d %q: got %t", test.source, test.name, got)
		}
		if none := (History{}); !none.IsUnread(test.source, test.name) {
			t.Errorf("%d %q: before any refresh, it could be read", test.source, test.name)
		}
	}
}

// TestResults after which it is known what is served, and that wait to be confirmed.
func TestResults(t *testing.T) {
	for result, want := range map[Result]bool{
		Published: true, Unchanged: true, Empty: true, HeldBack: true, Failed: true,
		Alias: true, Followed: false, Later: false, Superseded: false,
	} {
		o := Outcome{Result: result}
		isSettled := result == Published || result == Unchanged || result == HeldBack
		if o.IsSettled() != isSettled {
			t.Errorf("%s: settled %t", result, o.IsSettled())
		}
		if o.IsKnown() != want || o.IsSuspicious() {
			t.Errorf("%s: known %t, suspicious %t", result, o.IsKnown(), o.IsSuspicious())
		}
	}
	if o := (Outcome{Result: HeldBack, Since: time.Unix(1e9, 0)}); !o.IsSuspicious() || o.IsSettled() {
		t.Error("a loss is not suspicious, or is settled")
	}
}
