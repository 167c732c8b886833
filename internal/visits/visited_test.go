package visits

import (
	"cmp"
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
	f := NewFilter(nil)
	add := func(v Visit, n int, want ...string) {
		t.Helper()
		v.Method, v.URI = cmp.Or(v.Method, "GET"), "/a"
		for range n {
			f.Page(&v)
		}
		if got := slices.Sorted(maps.Keys(f.Ignored())); !slices.Equal(got, want) {
			t.Errorf("after %d of %+v: got %q, want %q", n, v, got, want)
		}
	}
	add(Visit{Status: 200, UserAgent: "-"}, 99)
	add(Visit{Status: 200, ContentType: "image/png"}, 1000)
	add(Visit{Status: 200, User: true}, 1, "robot", "signed in")
	add(Visit{Status: 200}, 11, "robot", "signed in")
	add(Visit{Status: 200}, 1)
	add(Visit{Status: 200, RobotsTag: "noindex"}, 8, "noindex", "robot", "signed in")
	if got := f.Ignored()["robot"]; got != 99 {
		t.Errorf("got %d robots, want 99", got)
	}
}

// TestNoPagePath: what is no path of a page does not count, of whichever kind, and is not judged by what it tells of
// other visits.
func TestNoPagePath(t *testing.T) {
	for uri, want := range map[string]string{
		"/a":            "/a",
		"/a/.b/..c?../": "/a/.b/..c",
		"/a%2Fb":        "/a%2Fb",
		"/wiki/.NET":    "/wiki/.NET",
		"/../x":         "",
		"/x/..":         "",
		"/x/./y":        "",
		"/%2e%2E/x":     "",
		"/x/%2e":        "",
		"/.git":         "",
		"/%2egit/HEAD":  "",
		"/.":            "",
		"/a//b":         "",
		"/a%2F%2e./b":   "",
		"/%zz":          "",
		"/%":            "",
		"x":             "",
		"*":             "",
	} {
		f := NewFilter(nil)
		got, reason := f.Page(&Visit{Method: "GET", URI: uri, Status: 200, ContentType: "text/html"})
		if got != want || (reason == "") != (want != "") || want == "" && reason != oddPath {
			t.Errorf("%s: got %q, %q, want %q", uri, got, reason, want)
		}
	}
	f := NewFilter(nil)
	for range 100 {
		f.Page(&Visit{Method: "GET", URI: "/.env", Status: 200, ContentType: "text/html"})
		f.Page(&Visit{Method: "GET", URI: "/a", Status: 200, ContentType: "text/html", User: true})
	}
	if got := f.Ignored(); got[signedIn] != 100 {
		t.Errorf("all visits to pages are of users who are signed in, and %v does not say so", got)
	}
}
