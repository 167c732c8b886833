package discover

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// day is some day's beginning, in Unix seconds.
const day = 1790000000 / 86400 * 86400

const hour = 3600

func patternsOf(t testing.TB, patterns ...string) page.Patterns {
	t.Helper()
	ps, err := page.CompilePatterns(patterns)
	if err != nil {
		t.Fatal(err)
	}
	return ps
}

// candidates are those of a catalog, sorted.
func candidates(t testing.TB, c *Catalog, from Origin, depth int) []string {
	t.Helper()
	var got []string
	err := c.Candidates(context.Background(), from, depth, func(path string) error {
		got = append(got, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	return got
}

func check(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// again is a catalog after it was written and read.
func again(t testing.TB, c *Catalog) *Catalog {
	t.Helper()
	var b bytes.Buffer
	if err := c.Encode(&b); err != nil {
		t.Fatal(err)
	}
	d := NewCatalog()
	d.Configure(c.options)
	if err := d.Decode(&b); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestLinked(t *testing.T) {
	c := NewCatalog()
	c.Visit(FromTraffic, "/linked", day, "192.0.2.1", 7)
	c.Visit(FromTraffic, "/not", day, "192.0.2.1", 0)
	check(t, "before a round", candidates(t, c, FromTraffic, 0))

	r := c.Round(0, false)
	r.Page(0, "/", []string{"/", "/linked", "/later", "/self"})
	r.Page(0, "/not", []string{"/not"})
	check(t, "before its end", candidates(t, c, FromTraffic, 0))
	r.End(day)
	check(t, "after a round", candidates(t, c, FromTraffic, 0), "/linked")
	check(t, "of another origin", candidates(t, c, FromLog|FromLinks, 9))

	c = again(t, c)
	check(t, "read again", candidates(t, c, FromTraffic, 0), "/linked")
	c.Visit(FromLog, "/later", day, "192.0.2.1", 0)
	check(t, "linked before it was visited", candidates(t, c, FromLog, 0), "/later")
	if depth, ok := c.DepthOf("/later"); depth != 1 || !ok {
		t.Errorf("got depth %d, %t", depth, ok)
	}
	if tag, at := c.Shown("/linked"); tag != 7 || at != day {
		t.Errorf("shown: got %d at %d", tag, at)
	}
	c.Round(0, false).End(day)
	check(t, "no longer linked", candidates(t, c, FromLog|FromTraffic, 0))
}

func TestGrow(t *testing.T) {
	c := NewCatalog()
	pages := map[string][]string{"/": {"/a", "/b"}, "/a": {"/b", "/c"}, "/c": {"/d", "/"}, "/d": {"/e"}}
	for range 5 {
		r := c.Round(3, true)
		r.Page(0, "/", pages["/"])
		for _, path := range candidates(t, c, FromLinks, 3) {
			depth, ok := c.DepthOf(path)
			if !ok {
				t.Errorf("%s is a candidate without a depth", path)
			}
			r.Page(depth, path, pages[path])
		}
		r.End(day)
	}
	check(t, "depth 3", candidates(t, c, FromLinks, 3), "/", "/a", "/b", "/c", "/d")
	check(t, "depth 1", candidates(t, c, FromLinks, 1), "/a", "/b")
	if depth, ok := c.DepthOf("/e"); depth != 4 || !ok {
		t.Errorf("a link too deep: got %d, %t", depth, ok)
	}
}

func TestUnlinked(t *testing.T) {
	c := keyed()
	c.Configure(Options{Unlinked: []Unlinked{
		{Match: patternsOf(t, "/p/*"), MinVisitors: 3},
		{Match: patternsOf(t, "/p/*", "/q/*"), MinVisitors: 1},
	}})
	visit := func(path string, at int64, clients ...string) {
		for _, client := range clients {
			c.Visit(FromLog, path, at, client, 0)
		}
	}
	visit("/p/one-hour", day, "192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1")
	visit("/p/one-network", day, "192.0.2.1", "192.0.2.2")
	visit("/p/one-network", day+hour, "192.0.2.3", "192.0.2.4", "::ffff:192.0.2.5", "", "-")
	visit("/p/yes", day, "192.0.2.1", "198.51.100.1")
	visit("/p/yes", day+hour, "2001:db8::1")
	visit("/p/same64", day, "2001:db8::1", "2001:db8::2:0:0:1")
	visit("/p/same64", day+hour, "2001:db8::3")
	visit("/q/yes", day, "192.0.2.1")
	visit("/q/yes", day+hour, "192.0.2.1")
	visit("/q/once", day, "192.0.2.1")
	visit("/r/no", day, "192.0.2.1")
	visit("/r/no", day+9*hour, "192.0.2.1", "198.51.100.1", "203.0.113.1")
	check(t, "reached", candidates(t, c, FromLog, 0), "/p/yes", "/q/yes")
	c = again(t, c)
	check(t, "read again", candidates(t, c, FromLog, 0), "/p/yes", "/q/yes")
	visit("/p/one-hour", day+hour, "2001:db8::1")
	check(t, "with a visit later", candidates(t, c, FromLog, 0), "/p/one-hour", "/p/yes", "/q/yes")

	c.Configure(Options{})
	check(t, "without rules", candidates(t, c, FromLog, 0))
	c.Configure(Options{Unlinked: []Unlinked{{Match: patternsOf(t, "*"), MinVisitors: 2}}})
	check(t, "with another rule", candidates(t, c, FromLog, 0), "/p/one-hour", "/p/yes")
	c.Configure(Options{Unlinked: []Unlinked{{Match: patternsOf(t, "/p/yes"), MinVisitors: 4}}})
	visit("/p/yes", day+9*hour, "192.0.2.1", "198.51.100.1", "2001:db8::1", "203.0.113.1")
	check(t, "with one that wants more", candidates(t, c, FromLog, 0))
	visit("/p/yes", day+10*hour, "192.0.2.1")
	check(t, "with more", candidates(t, c, FromLog, 0), "/p/yes")
}

func TestExpire(t *testing.T) {
	c := NewCatalog()
	c.Configure(Options{Expire: 48 * time.Hour})
	c.Visit(FromLog, "/old", day, "", 0)
	c.Visit(FromLog, "/linked", day, "", 0)
	c.Visit(FromLog, "/new", day+24*hour, "", 0)
	c.Visit(FromLog, "/future", day+1e9, "", 5)
	r := c.Round(1, false)
	r.Page(0, "/", []string{"/linked"})
	r.End(day + 24*hour)
	c.Expire(0)
	c.Expire(day + 48*hour)
	if n := c.Stats().Paths; n != 4 {
		t.Errorf("got %d paths, want 4", n)
	}
	c.Expire(day + 48*hour + 1)
	if n := c.Stats().Paths; n != 3 || c.has("/old") {
		t.Errorf("got %d paths, want 3", n)
	}
	c.Expire(day + 96*hour)
	if !c.has("/future") || c.has("/linked") || c.has("/new") {
		t.Error("only what was seen in the future stays for its time")
	}
	c.Expire(day + 97*hour)
	if s := c.Stats(); s.Paths != 0 || s.Expired != 4 || s.Bytes != 0 {
		t.Errorf("got %+v", s)
	}
}

func TestMany(t *testing.T) {
	c := NewCatalog()
	const n = 50_000
	for i := range n {
		c.Visit(FromLog, fmt.Sprintf("/%x", uint32(i)*2654435761), day, "", 0)
	}
	if s := c.Stats(); s.Paths != n || s.FromLog != n {
		t.Fatalf("got %+v", s)
	}
	c = again(t, c)
	if s := c.Stats(); s.Paths != 0 || s.Shadows != n {
		t.Fatalf("read again: got %+v", s)
	}
	r := c.Round(1, false)
	for i := range n {
		path := fmt.Sprintf("/%x", uint32(i)*2654435761)
		r.Page(0, "/", []string{path})
	}
	r.End(day)
	if got := candidates(t, c, FromLog, 1); len(got) != n {
		t.Fatalf("got %d candidates", len(got))
	}
	if s := again(t, c).Stats(); s.Paths != n || s.FromLog != n || s.Shadows != 0 {
		t.Fatalf("linked to: got %+v", s)
	}
}

// TestConfigureAgain: options that are set already leave alone what is known of the
// entries by them.
func TestConfigureAgain(t *testing.T) {
	c := keyed()
	options := func(pattern string) Options {
		return Options{Unlinked: []Unlinked{{Match: patternsOf(t, pattern), MinVisitors: 2}}, Expire: time.Hour, MaxPaths: 10}
	}
	c.Configure(options("/a/*"))
	rules := c.rules
	if c.Configure(options("/a/*")); c.rules != rules {
		t.Error("the same options are taken for new ones")
	}
	if c.Configure(options("/b/*")); c.rules == rules {
		t.Error("other options are taken for the same")
	}
}

// TestKnown: what a catalog tells of one path, before and after it was on disk.
func TestKnown(t *testing.T) {
	c := NewCatalog()
	c.Configure(Options{Unlinked: []Unlinked{{Match: patternsOf(t, "/r/*"), MinVisitors: 2}}})
	for _, path := range []string{"/a", "/r/1", "/r/2", "/token"} {
		c.Visit(FromTraffic, path, 7200, "198.51.100.7", 0)
	}
	c.Visit(FromLog, "/r/2", 14400, "203.0.113.7", 0)
	round := c.Round(0, false)
	round.Page(2, "/", []string{"/a", "/unseen"})
	round.End(14400)
	known := map[string]Known{
		"/":       {},
		"/a":      {From: FromTraffic, Linked: true, Depth: 3},
		"/unseen": {Linked: true, Depth: 3},
		"/r/1":    {From: FromTraffic, Wants: 2},
		"/r/2":    {From: FromTraffic | FromLog, Wants: 2, Reached: true},
		"/token":  {From: FromTraffic},
	}
	for path, want := range known {
		if got := c.Known(path); got != want {
			t.Errorf("%s: got %+v, want %+v", path, got, want)
		}
	}
	known["/token"] = Known{Hashed: true}
	c = again(t, c)
	for path, want := range known {
		if got := c.Known(path); got != want {
			t.Errorf("%s, from disk: got %+v, want %+v", path, got, want)
		}
	}
}
