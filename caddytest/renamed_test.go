package caddytest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/caddytest/harness"
	"github.com/seed3295b519/caddy-sitemap/caddytest/sitemaps"
)

// Sites of the tests of other URLs. All keep their state in one folder.
const (
	oldName    = "http://old.example:{port}"
	newName    = "http://new.example:{port}"
	wwwName    = "http://www.old.example:{port}"
	secureName = "https://old.example:{tls}"
	publicName = "https://old.example"
)

// known is what is logged where a site had another URL.
const known = "the site had another URL"

// siteAt is a site of files at an address, with options of the sitemap.
func siteAt(address, root, options string) string {
	listener := "http://beside.example:{port} {\n respond beside\n}\n" // Begin waits for it
	return "{\n sitemap {\n state {dir}/state\n }\n}\n" + listener + plainSite(address, root, options)
}

func plainSite(address, root, options string) string {
	return address + " {\n root * {dir}/" + root + "\n sitemap {\n refresh 1s\n " + quickly + "\n " + options + "\n }\n test_count\n file_server\n}\n"
}

const movedPages = 10

func movedPage(i int) string { return fmt.Sprintf("/%d.html", i) }

// writeMoved writes the pages of a root, the third with another text if it is corrected.
func (s *server) writeMoved(root string, isCorrected bool, timeOf func(i int) time.Time) {
	s.T.Helper()
	for i := range movedPages {
		text := fmt.Sprintf("page %d", i)
		if i == 3 && isCorrected {
			text = "another page 3"
		}
		s.Put(root+movedPage(i), text, timeOf(i))
	}
}

// uploaded are times that say nothing; spread are times that would be believed at first sight.
func uploaded(int) time.Time { return harness.DayOf(300) }
func spread(i int) time.Time { return harness.DayOf(500 + 30*i) }

// datesOf are the dates of the pages that a sitemap lists below an origin. ok: there is a sitemap.
func (s *server) datesOf(at, origin string) (dates map[string]string, ok bool) {
	s.T.Helper()
	r, err := s.Again(at + "/sitemap.xml")
	if err != nil || r.StatusCode != 200 {
		return nil, false
	}
	d, err := sitemaps.Read(r.Text)
	harness.Must(s.T, err)
	dates = make(map[string]string)
	for _, p := range d.Pages {
		path, isOwn := strings.CutPrefix(p.Loc, s.Expand(origin))
		if !isOwn {
			return nil, false // of the configuration before
		}
		dates[path] = p.LastMod
	}
	return dates, true
}

// wantMoved waits until a sitemap has these dates. No sitemap until then may list a page that is not served, or give one
// another date.
func (s *server) wantMoved(at, origin string, want map[string]string) {
	s.T.Helper()
	var got map[string]string
	s.Eventually(func() bool {
		dates, ok := s.datesOf(at, origin)
		if !ok {
			return false
		}
		got = dates
		for path, date := range got {
			wanted, isServed := want[path]
			if !isServed || date != "" && date != wanted {
				s.T.Fatalf("%s is listed with %q, of %v", path, date, want)
			}
		}
		return maps.Equal(got, want)
	}, func() string { return fmt.Sprintf("got %v, want %v\n%s", got, want, s.SitemapLog()) })
}

// beginRenamed has a site at the old name whose third page was corrected while it was watched. It returns the dates of all pages:
// only the third has one.
func beginRenamed(t *testing.T, config string) (*server, map[string]string) {
	countFetches(t)
	s := prepare(t, nil)
	s.writeMoved("site", false, uploaded)
	s.Load(config)
	want := make(map[string]string)
	for i := range movedPages {
		want[movedPage(i)] = ""
	}
	s.wantMoved(oldName, oldName, want)
	s.Crawled()
	at := time.Now().Truncate(time.Second)
	s.Put("site"+movedPage(3), "another page 3", at)
	want[movedPage(3)] = harness.Stamp(at)
	s.WantDates(oldName, want)
	return s, want
}

// TestAnotherURL: a site at another URL keeps the dates that no file tells. A page that was removed meanwhile is not listed.
func TestAnotherURL(t *testing.T) {
	for name, test := range map[string]struct {
		address, options string
		origin           string // of the listed pages; "": address
		beside           string // another site
		folder           string // to which the operator renames that of the state
		isRestart        bool   // else a reload
	}{
		"https besides":    {address: secureName, beside: plainSite(oldName, "site", "")}, // of which http is an alias
		"a base URL":       {address: oldName, options: "shard_urls 100\nexclude /private/*\nbase_url " + publicName, origin: publicName, isRestart: true},
		"www":              {address: wwwName},
		"a renamed folder": {address: newName, folder: "new.example", isRestart: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, want := beginRenamed(t, siteAt(oldName, "site", ""))
			if test.isRestart {
				s.stopWritten()
			}
			s.writeMoved("site", true, spread)
			harness.Must(t, os.Remove(filepath.Join(s.Dir, "site", movedPage(5))))
			if test.folder != "" {
				sites := filepath.Join(s.Dir, "state", "sites")
				harness.Must(t, os.Rename(filepath.Join(sites, "old.example"), filepath.Join(sites, test.folder)))
			}
			moved := siteAt(test.address, "site", test.options) + test.beside
			if test.isRestart {
				s.Begin(moved)
			} else {
				s.Load(moved)
			}
			delete(want, movedPage(5))
			origin := test.address
			if test.origin != "" {
				origin = test.origin
			}
			s.wantMoved(test.address, origin, want)
			s.Refreshes(1)
			s.wantMoved(test.address, origin, want)
			s.Logged(known)
			if lines := s.LogLines("cannot re"); len(lines) > 0 {
				t.Errorf("the log warns: %s", lines)
			}
			if test.folder != "" {
				return
			}

			// The site comes back to its former URL.
			s.Load(siteAt(oldName, "site", ""))
			s.WantDates(oldName, want)
		})
	}
}

// TestAnotherURLInMemory: without a state folder, a reload keeps the dates.
func TestAnotherURLInMemory(t *testing.T) {
	inMemory := strings.NewReplacer("{dir}/state", "off")
	s, want := beginRenamed(t, inMemory.Replace(siteAt(oldName, "site", "")))
	s.writeMoved("site", true, spread)
	s.Load(inMemory.Replace(siteAt(secureName, "site", "")))
	s.wantMoved(secureName, secureName, want)
	s.Logged(known)
}

// TestAnotherSite: nothing is taken over from a site with another host.
func TestAnotherSite(t *testing.T) {
	s, _ := beginRenamed(t, siteAt(oldName, "site", ""))
	s.stopWritten()
	s.writeMoved("other", true, spread)
	s.Begin(siteAt(newName, "other", ""))
	s.wantSpread(newName)
	if lines := s.LogLines(known); len(lines) > 0 {
		t.Errorf("the log says %s", lines)
	}
}

// wantSpread waits until a site has the dates of its files.
func (s *server) wantSpread(at string) {
	s.T.Helper()
	want := make(map[string]string)
	for i := range movedPages {
		want[movedPage(i)] = harness.Stamp(spread(i))
	}
	s.wantMoved(at, at, want)
}

// TestDamagedAtAnotherURL: records that cannot be read are no reason to serve nothing.
func TestDamagedAtAnotherURL(t *testing.T) {
	for _, isManifest := range []bool{true, false} {
		t.Run(fmt.Sprintf("manifest %t", isManifest), func(t *testing.T) {
			s, _ := beginRenamed(t, siteAt(oldName, "site", ""))
			s.stopWritten()
			for _, path := range s.stateFiles("state") {
				if (filepath.Base(path) == "manifest.json") == isManifest {
					harness.Must(t, os.WriteFile(path, []byte("no "), 0o600))
				}
			}
			s.writeMoved("site", true, spread)
			s.Begin(siteAt(wwwName, "site", ""))
			s.wantSpread(wwwName)
		})
	}
}
