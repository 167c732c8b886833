package accesslog

import (
	"maps"
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
	v.Add("/e", 200, 3)
	if got := v.Sorted(0); !slices.Equal(got, []string{"/a", "/b", "/e"}) {
		t.Errorf("with a new path in the place of the oldest: got %q", got)
	}
	if got := v.Sorted(102); !slices.Equal(got, []string{"/b", "/e"}) {
		t.Errorf("since 102: got %q", got)
	}
	if paths, dropped := v.Count(); paths != 2 || dropped != 2 {
		t.Errorf("got %d paths, %d dropped, want 2 and 2", paths, dropped)
	}
}

// TestReasons: reasons are told where nine tenths of the visits to pages do not count.
func TestReasons(t *testing.T) {
	var c Reasons
	add := func(reason string, n int, want ...string) {
		t.Helper()
		for range n {
			c.Add(reason)
		}
		if got := slices.Sorted(maps.Keys(c.Ignored())); !slices.Equal(got, want) {
			t.Errorf("after %d of %q: got %q, want %q", n, reason, got, want)
		}
	}
	add(Robot, 99)
	add(NotHTML, 1000)
	add(SignedIn, 1, "robot", "signed in")
	add("", 11, "robot", "signed in")
	add("", 1)
	add(NoIndex, 8, "noindex", "robot", "signed in")
	if got := c.Ignored()["robot"]; got != 99 {
		t.Errorf("got %d robots, want 99", got)
	}
}
