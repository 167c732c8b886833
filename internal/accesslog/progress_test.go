package accesslog

import (
	"encoding/json"
	"reflect"
	"testing"
)

// TestProgress: only what refreshes were given is stored, whatever is read meanwhile.
func TestProgress(t *testing.T) {
	at := func(offset int64) Positions { return Positions{"/a.log 1": offset} }
	var p Progress
	want := func(p *Progress, all bool, want Stored, wantChanged bool) {
		t.Helper()
		if got, changed := p.Stored(all); !reflect.DeepEqual(got, want) || changed != wantChanged {
			t.Errorf("got %v, changed %t, want %v", got, changed, want)
		}
	}
	p.Gather()
	if want(&p, true, nil, false); p.Get(0, 1) != nil {
		t.Error("nothing was read")
	}
	p.Set(0, 1, at(1))
	if want(&p, true, nil, false); p.Get(0, 1)["/a.log 1"] != 1 {
		t.Errorf("got %v", p.Get(0, 1))
	}
	p.Gather()
	p.Set(0, 1, at(2))
	p.Set(1, 5, at(3))
	want(&p, false, nil, false) // the refresh goes on
	want(&p, true, Stored{0: {1, at(1)}}, true)
	want(&p, true, Stored{0: {1, at(1)}}, false)
	if p.Get(0, 2) != nil {
		t.Error("with other settings, it goes on")
	}
	encoded, err := json.Marshal(p.gathered)
	var stored Stored
	if err == nil {
		err = json.Unmarshal(encoded, &stored)
	}
	if err != nil {
		t.Fatal(err)
	}
	var q Progress
	q.Restore(stored)
	q.Restore(Stored{0: {1, at(99)}}) // what is known stands
	if want(&q, true, stored, false); q.Get(0, 1)["/a.log 1"] != 1 || q.Get(1, 5) != nil {
		t.Errorf("got %v, want 1", q.Get(0, 1))
	}
}
