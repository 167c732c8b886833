package sitemap

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestParseName(t *testing.T) {
	for _, test := range []struct {
		path   string
		suffix string
		form   form
		ok     bool
	}{
		{"/sitemap.xml", "", formXML, true},
		{"/sitemap.xml.gz", "", formGzip, true},
		{"/sitemap.txt", "", formText, true},
		{"/sitemap-000000000000.xml", "-000000000000", formXML, true},
		{"/sitemap-0123456789ab.xml.gz", "-0123456789ab", formGzip, true},
		{"/sitemap-0123456789ab.txt", "-0123456789ab", formText, true},

		{"/", "", 0, false},
		{"/sitemap", "", 0, false},
		{"/sitemap.gz", "", 0, false},
		{"/sitemap.txt.gz", "", 0, false},
		{"/sitemap.xml.xml", "", 0, false},
		{"/sitemap.xml/", "", 0, false},
		{"/Sitemap.xml", "", 0, false},
		{"/docs/sitemap.xml", "", 0, false},
		{"/sitemap-.xml", "", 0, false},
		{"/sitemap-0123456789a.xml", "", 0, false},
		{"/sitemap-0123456789abc.xml", "", 0, false},
		{"/sitemap-0123456789AB.xml", "", 0, false},
		{"/sitemap-0123456789ag.xml", "", 0, false},
		{"/sitemap_0123456789ab.xml", "", 0, false},
		{"/sitemap-0123456789ab", "", 0, false},
		{"/sitemap-0123456789ab.html", "", 0, false},
		{"/sitemap-news.xml", "", 0, false},
	} {
		suffix, form, ok := parseName(test.path, "/sitemap")
		if ok != test.ok || ok && (suffix != test.suffix || form != test.form) {
			t.Errorf("%s: got %q, %d, %t, want %q, %d, %t", test.path, suffix, form, ok, test.suffix, test.form, test.ok)
		}
	}
}

func FuzzParseName(f *testing.F) {
	f.Add("/sitemap.xml", "/sitemap")
	f.Add("/sitemap-0123456789ab.xml.gz", "/sitemap")
	f.Add("/docs/map-000000000000.txt", "/docs/map")
	f.Add("/a.xml.gz", "/a.xml")
	f.Fuzz(func(t *testing.T, path, stem string) {
		suffix, form, ok := parseName(path, stem)
		if !ok {
			return
		}
		if got := stem + suffix + extensions[form]; got != path {
			t.Errorf("%q, read as one of %q, is %q", path, stem, got)
		}
		if suffix != "" && !isShardSuffix(suffix) {
			t.Errorf("%q has the suffix %q", path, suffix)
		}
	})
}

// fake is a snapshot of shards that begin at these paths; each is named by its
// number in digits.
func fake(previous *Snapshot, now time.Time, firsts ...string) *Snapshot {
	var shards []*document
	for _, first := range firsts {
		shards = append(shards, &document{suffix: "-" + first, first: first})
	}
	if len(shards) == 1 {
		shards[0].suffix = ""
		return newSnapshot(nil, shards, previous, now)
	}
	return newSnapshot(&document{kind: kindIndex}, shards, previous, now)
}

func TestRetiredNames(t *testing.T) {
	now := testTime
	find := func(s *Snapshot, suffix, want string) {
		t.Helper()
		d := s.find(suffix)
		switch {
		case d == nil && want != "none":
			t.Errorf("%s is none, want %s", suffix, want)
		case d != nil && d.first != want:
			t.Errorf("%s is the shard from %s, want %s", suffix, d.first, want)
		}
	}
	s := fake(nil, now, "a", "f", "m", "t")
	find(s, "-f", "f")
	find(s, "-x", "none")

	s = fake(s, now, "a", "m", "t") // f's pages went into the shard before
	find(s, "-f", "a")
	find(s, "-m", "m")

	s = fake(s, now, "a", "e", "m", "t") // whose cut moved
	find(s, "-f", "e")

	s = fake(s, now, "a", "f", "m", "t") // and the name came back
	find(s, "-f", "f")
	find(s, "-e", "a")

	s = fake(s, now, "b", "m", "t")
	find(s, "-a", "b") // its first page went away: the shard that would hold it
	find(s, "-f", "b")

	s = fake(s, now, "b")
	for _, suffix := range []string{"-a", "-b", "-e", "-f", "-m", "-t"} {
		find(s, suffix, "b")
	}
	find(s, "-x", "none")

	s = fake(s, now, "b", "m")
	if d := s.find(""); d == nil || d.kind != kindIndex {
		t.Errorf("the sitemap is %+v, want the index", d)
	}
	find(s, "-t", "m")
}

func TestRetiredNamesEnd(t *testing.T) {
	s := fake(nil, testTime, "a", "f")
	s = fake(s, testTime, "a", "g")
	s = fake(s, testTime.Add(retiredFor-time.Second), "a", "g")
	if s.find("-f") == nil {
		t.Error("the name is forgotten before its 90 days")
	}
	equal := fake(s, testTime.Add(retiredFor-time.Second), "a", "g")
	equal.index, equal.shards = s.index, s.shards
	if !s.equal(equal) {
		t.Error("a snapshot is not equal to one that says the same")
	}
	later := fake(s, testTime.Add(retiredFor), "a", "g")
	if later.find("-f") != nil {
		t.Error("the name is known after its 90 days")
	}
	later.index, later.shards = s.index, s.shards
	if s.equal(later) {
		t.Error("a snapshot is equal to one that forgot a name")
	}
}

func TestRetiredNamesAreBounded(t *testing.T) {
	s := fake(nil, testTime, "a", "b")
	for i := range maxRetired / 1000 * 3 {
		firsts := []string{"a"}
		for j := range 500 {
			firsts = append(firsts, fmt.Sprintf("b%05d%03d", i, j))
		}
		s = fake(s, testTime, firsts...)
	}
	if len(s.retired) != maxRetired {
		t.Errorf("%d names are remembered, want %d", len(s.retired), maxRetired)
	}
	if s.find("-b") != nil || s.find("-b00028499") == nil {
		t.Error("not the latest names are remembered")
	}
}

func TestNewestPage(t *testing.T) {
	var n newestPage
	for _, p := range []newestPage{{5, false}, {3, true}, {7, true}, {7, false}, {0, false}} {
		n.add(p.lastMod, p.day)
	}
	if want := (newestPage{7, true}); n != want {
		t.Errorf("got %+v, want %+v", n, want)
	}
}

func TestShardSuffix(t *testing.T) {
	for _, s := range []string{"-000000000000", "-fedcba987654"} {
		if !isShardSuffix(s) {
			t.Errorf("%q is none", s)
		}
	}
	for _, s := range []string{"", "-", "0000000000000", "-00000000000", "-0000000000000", "-00000000000G", "-00000000000\x00", strings.Repeat("-", 13)} {
		if isShardSuffix(s) {
			t.Errorf("%q is one", s)
		}
	}
}
