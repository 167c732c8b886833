package discover

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"
)

// plain is what a catalog's bytes say, decompressed.
func plain(t *testing.T, encoded []byte) []byte {
	t.Helper()
	r := bufio.NewReader(bytes.NewReader(encoded))
	if _, err := r.Discard(len(magic) + 1); err != nil {
		t.Fatal(err)
	}
	var all []byte
	for {
		kind, raw, err := readBlock(r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, raw...)
		if kind == blockEnd {
			return all
		}
	}
}

// TestSecrets looks for paths in what goes to disk: no path may that visitors alone
// showed.
func TestSecrets(t *testing.T) {
	c := NewCatalog()
	rules := Options{Unlinked: []Unlinked{{patternsOf(t, "/ruled/*"), 3}}}
	c.Configure(rules)
	for i := range 3000 {
		c.Visit(FromTraffic, fmt.Sprintf("/reset/SECRETTOKEN%d", i), day, "192.0.2.1", 7)
	}
	for _, path := range []string{"/was/LINKED-BEFORE", "/linked/NOW-LINKED", "/listed/IN-THE-MAP", "/ruled/BY-A-RULE", "/ruled/CAME-LATE"} {
		c.Visit(FromTraffic, path, day, "192.0.2.1", 7)
	}
	c.Listed("/listed/IN-THE-MAP", true)
	for _, links := range [][]string{{"/was/LINKED-BEFORE", "/linked/NOW-LINKED"}, {"/linked/NOW-LINKED", "/linked/NEVER-SEEN"}} {
		r := c.Round(1, false)
		r.Page(0, "/", links)
		r.End(day)
	}
	look := func(what string, want map[string]bool) {
		t.Helper()
		b := encode(t, c)
		text := plain(t, b)
		for part, want := range want {
			if got := bytes.Contains(text, []byte(part)) || bytes.Contains(b, []byte(part)); got != want {
				t.Errorf("%s: %s is there: got %t, want %t", what, part, got, want)
			}
		}
	}
	want := map[string]bool{
		"SECRET": false, "TOKEN": false, "LINKED-BEFORE": false, "NEVER-SEEN": false,
		"NOW-LINKED": true, "IN-THE-MAP": true, "BY-A-RULE": true, "CAME-LATE": true,
	}
	look("as they are", want)
	c = again(t, c)
	look("read again", want)
	c.Visit(FromLog, "/reset/SECRETTOKEN7", day, "192.0.2.1", 7)
	look("visited again", want)
	c.Configure(Options{})
	want["BY-A-RULE"], want["CAME-LATE"] = false, false
	look("without rules", want)
	c.Configure(rules)
	c.Listed("/listed/IN-THE-MAP", false)
	want["BY-A-RULE"], want["CAME-LATE"], want["IN-THE-MAP"] = true, true, false
	look("not listed", want)
}

// TestShadows visits a path, and links to it after a restart.
func TestShadows(t *testing.T) {
	c := NewCatalog()
	c.Configure(Options{Expire: 48 * time.Hour})
	c.Visit(FromTraffic, "/a", day+100, "192.0.2.1", 7)
	c.Visit(FromLog, "/a", day, "192.0.2.1", 0)
	c.Visit(FromTraffic, "/b", day+20*hour, "192.0.2.1", 7)
	c.Visit(FromTraffic, "/c", day, "192.0.2.1", 7)
	c.Visit(FromTraffic, "/d", 0, "192.0.2.1", 7)
	for range 3 {
		c = again(t, c)
		if s := c.Stats(); s.Paths != 0 || s.Shadows != 4 || c.has("/a") {
			t.Fatalf("got %+v", s)
		}
	}
	if tag, at := c.Shown("/a"); tag != 0 || at != 0 {
		t.Errorf("shown: got %d at %d", tag, at)
	}

	r := c.Round(0, false)
	r.Page(0, "/", []string{"/a", "/x"})
	r.End(day + hour)
	check(t, "linked to", candidates(t, c, FromTraffic, 0), "/a")
	check(t, "linked to, of the log", candidates(t, c, FromLog, 0), "/a")
	check(t, "linked to, of links", candidates(t, c, FromLinks, 9))
	if s := c.Stats(); !r.Grown() || s.Paths != 1 || s.Shadows != 3 {
		t.Errorf("grown %t, got %+v", r.Grown(), s)
	}
	c = again(t, c)
	check(t, "read once more", candidates(t, c, FromTraffic, 0), "/a")
	r = c.Round(0, false)
	r.Page(0, "/", []string{"/a", "/x"})
	r.End(day + hour)
	if r.Grown() {
		t.Error("the second round has grown")
	}

	c.Visit(FromLog, "/b", day, "192.0.2.1", 0)
	if s := c.Stats(); s.Paths != 2 || s.Shadows != 2 || s.FromLog != 2 || s.FromTraffic != 2 {
		t.Errorf("visited: got %+v", s)
	}
	c.Expire(day + 48*hour)
	if s := c.Stats(); s.Shadows != 2 {
		t.Errorf("before the time: got %+v", s)
	}
	c.Expire(day + 48*hour + 1)
	if s := c.Stats(); s.Shadows != 1 || s.Expired != 1 || !c.has("/b") {
		t.Errorf("expired: got %+v", s)
	}
	c.Expire(day + 97*hour)
	if s := c.Stats(); s.Shadows != 0 || s.Paths != 0 {
		t.Errorf("all expired: got %+v", s)
	}
}

// TestShadowsBound reads more shadows than there may be: those seen last are kept.
func TestShadowsBound(t *testing.T) {
	c := NewCatalog()
	for i := range 4000 {
		c.Visit(FromTraffic, fmt.Sprintf("/%c/%x", 'a'+i%20, i), day+int64(i/100)*hour, "", 0)
	}
	b := encode(t, c)
	for _, most := range []int{4000, 1050} {
		c = NewCatalog()
		c.Configure(Options{MaxPaths: most})
		if err := c.Decode(bytes.NewReader(b)); err != nil {
			t.Fatal(err)
		}
		if s := c.Stats(); s.Shadows != most || s.Evicted != uint64(4000-most) {
			t.Errorf("got %+v", s)
		}
	}
	c.Configure(Options{MaxPaths: 500})
	c.Expire(day + 40*hour)
	consistent(t, c)
	if s := c.Stats(); s.Shadows != 500 {
		t.Errorf("got %+v", s)
	}
	c.Configure(Options{MaxPaths: 1000})
	for i := range 4000 {
		path := fmt.Sprintf("/%c/%x", 'a'+i%20, i)
		if got := c.hasShadow(sum(c.key[0], path)); got != (i >= 3500) {
			t.Fatalf("%d: got %t", i, got)
		}
		if i >= 3500 {
			c.Visit(FromLog, path, day, "", 0)
		}
	}
	consistent(t, c)
	if s := c.Stats(); s.Shadows != 0 || s.FromTraffic != 500 {
		t.Errorf("got %+v", s)
	}
}

// TestShadowsOnTheWay meets what may become of a shadow between a round's beginning
// and its end.
func TestShadowsOnTheWay(t *testing.T) {
	c := NewCatalog()
	c.Configure(Options{Expire: time.Hour})
	c.Visit(FromTraffic, "/visited", day, "", 0)
	c.Visit(FromTraffic, "/expired", day, "", 0)
	c = again(t, c)
	r := c.Round(1, false)
	r.Page(0, "/", []string{"/visited", "/expired"})
	c.Visit(FromLog, "/visited", day+2*hour, "", 0)
	c.Expire(day + 2*hour)
	r.End(day + 2*hour)
	check(t, "visited meanwhile", candidates(t, c, FromTraffic, 0), "/visited")
	if c.has("/expired") || !r.Grown() {
		t.Error("what had expired is back")
	}
}

func TestShadowsMemory(t *testing.T) {
	n := 400_000
	if slow {
		n = 20_000
	}
	c := NewCatalog()
	for i, path := range somePaths(n) {
		c.Visit(FromTraffic, path, day+int64(i%86400), "192.0.2.1", 0)
	}
	known := c.Stats().Paths
	r, w := io.Pipe()
	go func() { _ = w.CloseWithError(c.Encode(w)) }()
	before := liveHeap()
	d := NewCatalog()
	if err := d.Decode(r); err != nil {
		t.Fatal(err)
	}
	each := (float64(liveHeap()) - float64(before)) / float64(known)
	if s := d.Stats(); s.Paths != 0 || s.Shadows != known {
		t.Errorf("got %+v", s)
	}
	t.Logf("%d shadows cost %.1f bytes each", known, each)
	if each > 20 && !slow {
		t.Errorf("a shadow costs %.1f bytes", each)
	}
	runtime.KeepAlive(c)
	runtime.KeepAlive(d)
}
