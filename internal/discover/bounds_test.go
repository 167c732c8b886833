package discover

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestInvented has somebody ask for far more paths than there is room for.
func TestInvented(t *testing.T) {
	const most = 20_000
	c := NewCatalog()
	c.Configure(Options{MaxPaths: most})
	var linked, listed []string
	for i := range 2000 {
		linked = append(linked, fmt.Sprintf("/linked/%d", i))
		listed = append(listed, fmt.Sprintf("/listed/%d", i))
		c.Visit(FromTraffic, linked[i], day, "", 0)
		c.Visit(FromTraffic, listed[i], day, "", 0)
		c.Listed(listed[i], true)
	}
	r := c.Round(1, false)
	r.Page(0, "/", linked)
	r.End(day)
	long := strings.Repeat("x", MaxPath-20)
	for i := range 5 * most {
		path := fmt.Sprintf("/%x", uint32(i)*2654435761)
		if i%50 == 0 {
			path = "/" + long + path
		}
		c.Visit(FromTraffic, path, day+hour+int64(i), "", 0)
		if s := c.paths; s > most || c.bytes > most*BytesPerPath {
			t.Fatalf("%d paths of %d bytes", s, c.bytes)
		}
	}
	consistent(t, c)
	for i := range linked {
		if !c.has(linked[i]) || !c.has(listed[i]) {
			t.Fatalf("%s or %s is gone", linked[i], listed[i])
		}
	}
	s := c.Stats()
	if s.Evicted == 0 || s.RefusedFull != 0 || s.Paths < most*7/8 {
		t.Errorf("got %+v", s)
	}
	// What was seen last is still there.
	for i := 5*most - 1000; i < 5*most; i++ {
		if path := fmt.Sprintf("/%x", uint32(i)*2654435761); i%50 != 0 && !c.has(path) {
			t.Fatalf("%s is gone", path)
		}
	}
}

func TestLongPaths(t *testing.T) {
	c := NewCatalog()
	c.Configure(Options{MaxPaths: 1000})
	long := "/" + strings.Repeat("x", MaxPath-12)
	for i := range 1000 {
		c.Visit(FromTraffic, fmt.Sprintf("%s%x", long, i), day+int64(i), "", 0)
	}
	consistent(t, c)
	if s := c.Stats(); s.Bytes > 1000*BytesPerPath || s.Paths < 70 || s.Paths+int(s.Evicted) != 1000 {
		t.Errorf("got %+v", s)
	}
	c.Configure(Options{MaxPaths: 1000, Unlinked: []Unlinked{{patternsOf(t, "*"), 1}}})
	for _, path := range []string{"", "x", "/" + strings.Repeat("x", MaxPath), "/a.sql", "/a/b.PNG?page=1"} {
		c.Visit(FromTraffic, path, day, "", 0)
		r := c.Round(1, true)
		r.Page(0, "/", []string{path})
		r.End(day)
		if _, ok := c.DepthOf(path); c.has(path) || ok {
			t.Errorf("%.20q of %d bytes is known", path, len(path))
		}
	}
}

func TestAllListed(t *testing.T) {
	c := NewCatalog()
	c.Configure(Options{MaxPaths: 100})
	for i := range 100 {
		path := fmt.Sprintf("/listed/%d", i)
		c.Visit(FromTraffic, path, day+int64(i), "", 0)
		c.Listed(path, true)
	}
	c.Visit(FromTraffic, "/invented", day+hour, "", 0)
	if s := c.Stats(); s.Paths != 100 || s.RefusedFull != 1 || c.has("/invented") {
		t.Errorf("got %+v", s)
	}
	c.Listed("/listed/99", false)
	c.Visit(FromTraffic, "/invented", day+hour, "", 0)
	if s := c.Stats(); s.Paths != 100 || c.has("/listed/99") || !c.has("/invented") {
		t.Errorf("with one that is not listed: got %+v", s)
	}
	c.Listed("/invented", true)
	r := c.Round(1, true)
	r.Page(0, "/", []string{"/new"})
	r.End(day + hour)
	if s := c.Stats(); s.Paths != 95 || s.Evicted != 7 || !c.has("/new") || c.has("/listed/5") || !c.has("/listed/6") {
		t.Errorf("got %+v", s)
	}
	c.Configure(Options{MaxPaths: 50})
	c.Expire(day)
	if s := c.Stats(); s.Paths > 50 || s.Paths < 46 || !c.has("/listed/98") {
		t.Errorf("got %+v", s)
	}
}

func TestPatternBound(t *testing.T) {
	c := NewCatalog()
	c.Configure(Options{MaxPerPattern: 10, Expire: time.Hour})
	for i := range 100 {
		c.Visit(FromTraffic, fmt.Sprintf("/calendar/%d/%d", 2000+i, i), day, "", 0)
		c.Visit(FromTraffic, fmt.Sprintf("/calendar/%d", i), day+hour, "", 0)
		c.Visit(FromTraffic, fmt.Sprintf("/other/%c", 'a'+i), day+hour, "", 0)
	}
	if s := c.Stats(); s.Paths != 120 || s.RefusedPattern != 180 {
		t.Errorf("got %+v", s)
	}
	check(t, "full", c.Full(), "/calendar/#/#", "/calendar/#")
	check(t, "full again", c.Full())
	c.Expire(day + hour + 1)
	for i := range 20 {
		c.Visit(FromTraffic, fmt.Sprintf("/calendar/%d/%d", i, i), day+2*hour, "", 0)
	}
	if s := c.Stats(); s.Paths != 120 || s.RefusedPattern != 190 {
		t.Errorf("after some have expired: got %+v", s)
	}
	for i := range 20 {
		for k := range 20 {
			c.Visit(FromTraffic, fmt.Sprintf("/%c/%d", 'a'+i, k), day, "", 0)
		}
	}
	if got := c.Full(); len(got) != namedPatterns-2 {
		t.Errorf("got %q", got)
	}
	consistent(t, c)
}

// TestGrown has a calendar that links to ever more pages of itself: a round in which none
// of them is taken has not grown.
func TestGrown(t *testing.T) {
	c := NewCatalog()
	c.Configure(Options{MaxPerPattern: 10})
	for i, want := range []bool{true, false, false} {
		r := c.Round(9, true)
		for k := range 10 {
			r.Page(0, "/", []string{fmt.Sprintf("/calendar/%d", k), fmt.Sprintf("/calendar/%d", 10+10*i+k)})
		}
		r.End(day)
		if got := r.Grown(); got != want {
			t.Errorf("round %d: got %t, want %t", i, got, want)
		}
	}
}

func TestLinksBound(t *testing.T) {
	c := NewCatalog()
	c.Configure(Options{MaxPaths: 10})
	r := c.Round(1, true)
	most := 2*10 + 1<<16
	for i := range most + 100 {
		r.Page(0, "/", []string{fmt.Sprintf("/%d", i)})
	}
	r.End(day)
	if s := c.Stats(); s.Links != most || s.DroppedLinks < 100 || s.Paths > 10 {
		t.Errorf("got %+v", s)
	}
}

func TestClocks(t *testing.T) {
	c := NewCatalog()
	c.Configure(Options{Expire: time.Hour, Unlinked: []Unlinked{{patternsOf(t, "*"), 2}}})
	for _, at := range []int64{-1, 0, 1 << 62, -1 << 63, 1<<63 - 1, day, day - hour} {
		c.Visit(FromLog, "/a", at, "192.0.2.1", 1)
		c.Visit(FromLog, "/a", at, "198.51.100.1", 1)
		c.Expire(at)
		c.Round(1, true).End(at)
	}
	consistent(t, c)
	if _, at := c.Shown("/a"); at != day {
		t.Errorf("got %d, want %d", at, day)
	}
}

// TestNoTime has visits at a time that nobody knows: they are visitors' in no other hour
// than any, and stay known for as long as others from when that is looked at.
func TestNoTime(t *testing.T) {
	c := NewCatalog()
	c.Configure(Options{Expire: 2 * time.Hour, Unlinked: []Unlinked{{patternsOf(t, "*"), 2}}})
	visit := func(at int64, tag uint32, clients ...string) {
		for _, client := range clients {
			c.Visit(FromLog, "/a", at, client, tag)
		}
	}
	visit(0, 1, "192.0.2.1", "198.51.100.1", "203.0.113.1")
	visit(day, 0, "2001:db8::1")
	visit(0, 1, "2001:db8:1::1")
	check(t, "in one hour", candidates(t, c, FromLog, 0))
	if tag, at := c.Shown("/a"); tag != 0 || at != 0 {
		t.Errorf("shown: got %d at %d", tag, at)
	}
	visit(day+hour, 0, "192.0.2.1")
	check(t, "in two", candidates(t, c, FromLog, 0), "/a")

	c.Visit(FromLog, "/b", 0, "", 0)
	c.Expire(day + 3*hour)
	c.Visit(FromLog, "/b", 0, "", 0)
	c.Expire(day + 5*hour)
	if c.has("/a") || !c.has("/b") {
		t.Error("what was seen at no time goes before what was not looked at for as long")
	}
	c.Expire(day + 5*hour + 1)
	if c.has("/b") {
		t.Error("what was seen at no time stays")
	}
}

func TestRecent(t *testing.T) {
	c := keyed()
	for i := range 5000 {
		c.Visit(FromLog, "/a", day, fmt.Sprintf("192.0.%d.%d", 2-min(i%100, 1), i%7), 0)
		c.Visit(FromLog, "/a", day, "-", 0)
		if s := c.Stats(); i < 10 && s.Visits != i+1 {
			t.Errorf("got %+v", s)
		}
	}
	// One in a hundred came from another one.
	if s := c.Stats(); s.Visits != recentVisits || s.Clients != 1 {
		t.Errorf("got %d visits, %d clients", s.Visits, s.Clients)
	}
	for i := range recentVisits {
		c.Visit(FromLog, "/a", day, fmt.Sprintf("192.0.%d.1", i%10), 0)
	}
	if s := c.Stats(); s.Visits != recentVisits || s.Clients != 9 {
		t.Errorf("ten clients: got %d visits, %d clients", s.Visits, s.Clients)
	}
}

// TestNetworks tells visitors apart by their networks.
func TestNetworks(t *testing.T) {
	c := keyed()
	for _, test := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1", "192.0.2.255", true},
		{"192.0.2.1", "::ffff:192.0.2.9", true},
		{"192.0.2.1", "192.0.3.1", false},
		{"2001:db8::1", "2001:db8::ffff:0:0:1", true},
		{"2001:db8::1", "2001:db8:0:1::1", false},
		{"fe80::1%eth0", "fe80::1%eth1", true},
		{"3f2a91bc", "3F2A91BC", true},
		{"3f2a91bc", "3f2a91bd", false},
		{"", "-", true},
		{"", "192.0.2.1", false},
	} {
		a, aOK := c.network(test.a)
		b, bOK := c.network(test.b)
		if got := a == b && aOK == bOK; got != test.same {
			t.Errorf("%q and %q: got %t, want %t", test.a, test.b, got, test.same)
		}
	}
	if _, ok := c.network("-"); ok {
		t.Error("nobody is a visitor")
	}
}
