package crawl

import "testing"

// TestAdmission: when a single request is made whose response is likely to be made.
func TestAdmission(t *testing.T) {
	page, knock, list := Single{}, Single{Knocks: true}, Single{Waits: true}
	for _, test := range []struct {
		name   string
		single Single
		status int // that the pause is for; -1: there is no pause
		isLast bool
		want   admission
	}{
		{"a page", page, -1, false, inTurn},
		{"the front page", knock, -1, false, inTurn},
		{"a page after a failure", page, 500, false, atOnce},
		{"a page after silence", page, 0, false, atOnce},
		{"a page after a 503", page, 503, false, notNow},
		{"a page after a 429", page, 429, false, notNow},
		{"the front page after a 503", knock, 503, false, atOnce},
		{"the front page after a 429", knock, 429, false, notNow},
		{"a list after a 503", list, 503, false, inTurn},
		{"a list after a 429", list, 429, false, inTurn},
		{"a page of a build after a 429", page, 429, true, inTurn},
	} {
		var pause *Pause
		if test.status >= 0 {
			pause = &Pause{Status: test.status}
		}
		if got := test.single.admission(pause, test.isLast); got != test.want {
			t.Errorf("%s: got %d, want %d", test.name, got, test.want)
		}
	}
}
