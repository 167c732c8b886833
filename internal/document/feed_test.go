package document

import (
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// feedOf is the feed of pages. It has what RFC 4287 demands and its grammar cannot say.
func feedOf(t testing.TB, o Options, pages ...page.Page) (f atomFeed) {
	t.Helper()
	if err := xml.Unmarshal([]byte(bodyOf(t, Feed, o, pages...)), &f); err != nil {
		t.Fatal(err)
	}
	if f.Author != "example.com" || len(f.Entries) > maxEntries || f.Updated != f.Entries[0].Updated || f.Links[0] != (atomLink{"self", f.ID}) {
		t.Errorf("got %+v", f)
	}
	last := f.Updated
	ids := make(map[string]bool)
	for _, e := range f.Entries {
		if ids[e.ID] || e.Title == "" || e.Updated > last || !slices.Equal(e.Links, []atomLink{{"alternate", e.ID}}) {
			t.Errorf("got entry %+v after one of %s", e, last)
		}
		ids[e.ID] = true
		last = e.Updated
	}
	return f
}

func TestFeed(t *testing.T) {
	pages := hostilePages()
	pages[0].LastMod = 0
	pages[1].LastMod = 1709164800
	pages[1].LastModDay = true
	f := feedOf(t, beside, pages...)
	if f.ID != "https://example.com/sitemap.atom" || f.Title != "example.com" || f.Updated != "2024-02-29T00:00:00Z" {
		t.Errorf("got %+v", f)
	}
	want := []atomLink{{"self", f.ID}, {"alternate", "https://example.com/"}, {"hub", beside.Hubs[0]}}
	if !slices.Equal(f.Links, want) {
		t.Errorf("got links %v, want %v", f.Links, want)
	}
	if len(f.Entries) != len(pages)-1 { // without that of no date
		t.Errorf("got %d entries", len(f.Entries))
	}
	for _, e := range f.Entries {
		said := hostile[strings.TrimPrefix(e.ID, base)]
		summary := said[1]
		if said[0] == "" {
			summary = "" // the title is the path, which does not describe the page
		}
		if e.Title != said[1] || e.Summary != summary {
			t.Errorf("%s: got %q, %q, want %q", e.ID, e.Title, e.Summary, said[1])
		}
	}
}

// TestFeedDates: a page that has no date has that of its publication.
func TestFeedDates(t *testing.T) {
	published := titled("/a", 0, "A")
	published.Extensions.Published = 1_700_000_000
	both := titled("/b", 1_600_000_000, "B")
	both.Extensions.Published = 1_500_000_000
	f := feedOf(t, beside, published, both)
	if len(f.Entries) != 2 || f.Entries[0].Updated != "2023-11-14T22:13:20Z" || f.Entries[1].Updated != "2020-09-13T12:26:40Z" {
		t.Errorf("got %+v", f.Entries)
	}
	if f := feedOf(t, beside, numbered(1200)...); len(f.Entries) != 500 || f.Entries[0].ID != base+"/p/0001199.html" {
		t.Errorf("got %d entries, the first is %+v", len(f.Entries), f.Entries[0])
	}
}

// TestFeedTitle: a feed has the title of the front page, which need not be dated.
func TestFeedTitle(t *testing.T) {
	for _, test := range []struct {
		name, sitemap string
		front         page.Page
		want          string
	}{
		{"front page", "", titled("/", 0, "A & <b>B</b>"), "A & <b>B</b>"},
		{"of a folder", base + "/shop/sitemap", titled("/shop/", 9, "Shop"), "Shop"},
		{"blank title", "", titled("/", 9, " \x00"), "example.com"},
		{"no front page", "", titled("/a", 9, "A"), "example.com"},
	} {
		o := beside
		o.Sitemap = test.sitemap
		if f := feedOf(t, o, test.front, titled("/shop/z", 7, "Z")); f.Title != test.want {
			t.Errorf("%s: got %q, want %q", test.name, f.Title, test.want)
		}
	}
}

// TestFeedSchema validates by the grammar of RFC 4287, appendix B, as far as the feed uses it.
func TestFeedSchema(t *testing.T) {
	xmllint, err := exec.LookPath("xmllint")
	if err != nil {
		t.Skip("xmllint is not installed")
	}
	feed := bodyOf(t, Feed, beside, hostilePages()...)
	for _, body := range []string{feed, strings.Replace(feed, "<entry>", "<entry><summary/><summary/>", 1)} {
		file := filepath.Join(t.TempDir(), "feed.atom")
		if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(xmllint, "--nonet", "--noout", "--relaxng", "testdata/atom.rng", file).CombinedOutput()
		if isValid := err == nil; isValid != (body == feed) {
			t.Errorf("valid: %t: %s", isValid, out)
		}
	}
}
