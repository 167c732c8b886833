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
	if p.Gather(); p.Stored() != nil || p.TakeChanged() || p.Get(0, 1) != nil {
		t.Error("nothing was read")
	}
	p.Set(0, 1, at(1))
	if got := p.Get(0, 1)["/a.log 1"]; got != 1 || p.Stored() != nil {
		t.Errorf("got %d, and what no refresh was given is stored", got)
	}
	p.Gather()
	p.Set(0, 1, at(2))
	p.Set(1, 5, at(3))
	if want := (Stored{0: {1, at(1)}}); !reflect.DeepEqual(p.Stored(), want) || !p.TakeChanged() || p.TakeChanged() {
		t.Errorf("got %v, want %v, and a change told once", p.Stored(), want)
	}
	if p.Get(0, 2) != nil {
		t.Error("with other settings, it goes on")
	}
	encoded, err := json.Marshal(p.Stored())
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
	if got := q.Get(0, 1)["/a.log 1"]; got != 1 || q.Get(1, 5) != nil || q.TakeChanged() {
		t.Errorf("got %d, want 1", got)
	}
}
