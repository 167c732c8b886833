package visits

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
)

func TestVisited(t *testing.T) {
	var v Visited
	for i, path := range []string{"/c", "/a", "/b"} {
		v.Add(path, int64(100+i), 3)
	}
	v.Add("/a", 50, 3) // later, of an earlier log file
	v.Add("/d", 99, 3) // older than all there are
	if got := v.Sorted(0); !slices.Equal(got, []string{"/a", "/b", "/c"}) || v.At("/a") != 101 || v.At("/d") != 0 {
		t.Errorf("got %q", got)
	}
	v.Add("/e", 101, 3)
	if got := v.Sorted(0); !slices.Equal(got, []string{"/a", "/b", "/e"}) {
		t.Errorf("with a new path in the place of an older one: got %q", got)
	}
	if got := v.Sorted(102); !slices.Equal(got, []string{"/b"}) {
		t.Errorf("since 102: got %q", got)
	}
	if paths, dropped := v.Count(); paths != 1 || dropped != 2 {
		t.Errorf("got %d paths, %d dropped, want 1 and 2", paths, dropped)
	}
}

// TestNewest: of the paths that are wanted, those that were visited last, as long as there is room.
func TestNewest(t *testing.T) {
	var v Visited
	for i := range 1000 {
		v.Add(fmt.Sprintf("/%04d", i), 1_700_000_000+int64(i), 1000)
	}
	got := v.Newest(100*(5+perVisit), func(_ string, at int64) bool { return at%2 == 0 })
	data, err := json.Marshal(got)
	if err != nil || len(got) != 100 || len(data) > 100*(5+perVisit) || got["/0998"] == 0 || got["/0800"] == 0 || got["/0999"] != 0 {
		t.Errorf("%d paths in %d bytes, %v", len(got), len(data), err)
	}
}
