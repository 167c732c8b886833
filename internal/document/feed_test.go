package document

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mmcdole/gofeed/atom"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// checkFeed checks a feed.
func checkFeed(t testing.TB, d file) (f atomFeed) {
	t.Helper()
	if d.Type != "application/atom+xml; charset=utf-8" || len(d.ETag) < 8 {
		t.Errorf("got %+v", d)
	}
	if err := xml.Unmarshal(d.Body(), &f); err != nil {
		t.Fatal(err)
	}
	if err := checkAtom(d.Body()); err != nil {
		t.Error(err)
	}
	if bytes.Contains(d.Body(), []byte("{{")) {
		t.Error("Caddy's templates, around the handler, would execute a text")
	}
	if len(f.Entries) > maxEntries || f.Updated != f.Entries[0].Updated {
		t.Errorf("got %d entries, updated %s", len(f.Entries), f.Updated)
	}
	return f
}

// checkAtom checks what RFC 4287 demands and its grammar cannot say, as a feed reader understands it.
func checkAtom(feed []byte) error {
	f, err := new(atom.Parser).Parse(bytes.NewReader(feed))
	if err != nil {
		return err
	}
	hasAuthor := len(f.Authors) > 0 && f.Authors[0].Name == "example.com"
	isSelf := slices.ContainsFunc(f.Links, func(l *atom.Link) bool { return l.Rel == "self" && l.Href == f.ID })
	switch {
	case !hasAuthor:
		return errors.New("no author: section 4.1.1")
	case !isSelf, f.UpdatedParsed == nil, f.Title == "", len(f.Entries) == 0:
		return fmt.Errorf("no link to itself, date, title or entry: %s", f)
	}
	last, ids := *f.UpdatedParsed, map[string]bool{}
	for _, e := range f.Entries {
		switch {
		case e.UpdatedParsed == nil || e.UpdatedParsed.After(last):
			return fmt.Errorf("%s: updated %s after %s", e.ID, e.Updated, last)
		case ids[e.ID] || strings.TrimSpace(e.Title) == "" || len(e.Links) != 1 || e.Links[0].Href != e.ID || e.Links[0].Rel != "alternate":
			return fmt.Errorf("got entry %+v", e)
		}
		last, ids[e.ID] = *e.UpdatedParsed, true
	}
	return nil
}

// TestFeedFaults: what the grammar of RFC 4287 does not find, checkAtom does.
func TestFeedFaults(t *testing.T) {
	feed := string(filesOf(t, slices.Values(hostilePages()), beside)[".atom"].Body())
	for name, change := range map[string][2]string{
		"no author":     {`<author>(?s:.*?)</author>`, ""},
		"no self":       {`<link rel="self"[^>]*></link>`, ""},
		"no date":       {`<updated>2[^<]*</updated>`, ""},
		"an empty date": {`>2[^<]*(</updated>\s*<link rel="alternate" href="https://example.com/z)`, ">$1"},
		"no entries":    {`<entry>(?s:.*)</entry>`, ""},
	} {
		changed := regexp.MustCompile(change[0]).ReplaceAllString(feed, change[1])
		if err := checkAtom([]byte(changed)); changed == feed || err == nil {
			t.Errorf("%s: no error in\n%s", name, changed)
		}
	}
}

func TestFeed(t *testing.T) {
	pages := hostilePages()
	pages[0].LastMod, pages[1].LastMod, pages[1].LastModDay = 0, 1709164800, true
	for _, p := range pages {
		p.Extensions.Description = p.Extensions.Title
	}
	f := checkFeed(t, filesOf(t, slices.Values(pages), beside)[".atom"])
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
		path := strings.TrimPrefix(e.ID, beside.Base)
		if want := hostile[path][1]; e.Title != want {
			t.Errorf("%s: got %q, want %q", path, e.Title, want)
		}
		wantSummary := hostile[path][1]
		if hostile[path][0] == "" {
			wantSummary = "" // the title is the path, which does not describe the page
		}
		if e.Summary != wantSummary {
			t.Errorf("%s: got summary %q, want %q", path, e.Summary, wantSummary)
		}
	}
}

// TestFeedTitle: a feed has the title of the front page, which need not be dated.
func TestFeedTitle(t *testing.T) {
	for _, test := range []struct {
		name, sitemap string
		front         page.Page
		want          string
	}{
		{"front page", "/sitemap", newPage("/", 0, "A & <b>B</b> {{.}}"), "A & <b>B</b> {{.}}"},
		{"right to left", "/sitemap", newPage("/", 9, "\u202eשלום\n👩‍👧"), "שלום 👩‍👧"},
		{"long", "/sitemap", newPage("/", 9, strings.Repeat("é", 10_000)), strings.Repeat("é", maxTitle-1) + "…"},
		{"of a folder", "/shop/sitemap", newPage("/shop/", 9, "Shop"), "Shop"},
		{"no title", "/sitemap", page.Page{Path: "/"}, "example.com"},
		{"blank title", "/sitemap", newPage("/", 9, " \x00"), "example.com"},
		{"of another folder", "/shop/sitemap", newPage("/", 9, "Home"), "example.com"},
		{"no front page", "/sitemap", newPage("/a", 9, "A"), "example.com"},
	} {
		o := beside
		o.Sitemap = beside.Base + test.sitemap
		pages := []page.Page{test.front, newPage("/shop/z", 7, "Z")}
		if f := checkFeed(t, filesOf(t, slices.Values(pages), o)[".atom"]); f.Title != test.want {
			t.Errorf("%s: got %q, want %q", test.name, f.Title, test.want)
		}
	}
}

func TestFeedHasLatest(t *testing.T) {
	for _, tt := range []struct {
		name string
		date func(i int) int64
		n    int
	}{
		{"the last ones", func(i int) int64 { return int64(i + 1) }, 3000},
		{"the first ones", func(i int) int64 { return int64(4000 - i) }, 3000},
		{"scattered", func(i int) int64 { return int64(i*7919%3001 + 1) }, 3000},
		{"all of one date", func(int) int64 { return 5 }, 3000},
		{"as many as are held", func(i int) int64 { return int64(i%3 + 1) }, 1000},
		{"some undated", func(i int) int64 { return int64(i % 5) }, 1200},
	} {
		var pages, want []page.Page
		for i := range tt.n {
			pages = append(pages, page.Page{Path: fmt.Sprintf("/%05d", i), LastMod: tt.date(i)})
			if tt.date(i) != 0 {
				want = append(want, pages[i])
			}
		}
		slices.SortStableFunc(want, func(a, b page.Page) int { return cmp.Compare(b.LastMod, a.LastMod) })
		f := checkFeed(t, filesOf(t, slices.Values(pages), beside)[".atom"])
		if len(f.Entries) != min(len(want), maxEntries) {
			t.Fatalf("%s: got %d entries", tt.name, len(f.Entries))
		}
		for i, e := range f.Entries {
			if e.ID != beside.Base+want[i].Path || e.Title != want[i].Path {
				t.Fatalf("%s: entry %d: got %s, want %s", tt.name, i, e.ID, want[i].Path)
			}
		}
	}
}

// TestFeedSchema validates by the grammar of RFC 4287, appendix B, as far as the feed uses it.
func TestFeedSchema(t *testing.T) {
	xmllint, err := exec.LookPath("xmllint")
	if err != nil {
		t.Skip("xmllint is not installed")
	}
	validate := func(name string, feed []byte) error {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, feed, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(xmllint, "--nonet", "--noout", "--relaxng", "testdata/atom.rng", file).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
		}
		return nil
	}
	pages := hostilePages()
	for _, p := range pages {
		p.Extensions.Description = p.Extensions.Title
	}
	feed := filesOf(t, slices.Values(pages), beside)[".atom"].Body()
	if err := validate("feed.atom", feed); err != nil {
		t.Error(err)
	}
	for old, broken := range map[string]string{
		"T22:13:20Z</updated>": "</updated>", "<entry>": "<entry><summary/><summary/>", "<id>": "<id/><id>", `href="`: `src="`, "<name>": "<email>a</email><nam>",
	} {
		if err := validate("broken.atom", bytes.Replace(feed, []byte(old), []byte(broken), 1)); err == nil {
			t.Errorf("valid with %s for %s", broken, old)
		}
	}
}
