package sitemap

import (
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// TestCandidate: what becomes of a page of another module's source.
func TestCandidate(t *testing.T) {
	const (
		now = 1_700_000_000
		day = 86400
	)
	float := func(f float64) *float64 { return &f }
	priority, err := page.PriorityOf(0.5)
	if err != nil {
		t.Fatal(err)
	}
	daily, err := page.ParseChangeFreq("daily")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name      string
		page      Page
		want      page.Page
		malformed string
	}{
		{"a path", Page{Path: "/a"}, page.Page{Path: "/a"}, ""},
		{"a path to be encoded", Page{Path: "/ä b"}, page.Page{Path: "/%C3%A4%20b"}, ""},
		{"no path", Page{Path: "a"}, page.Page{}, "path"},
		{"how often it changes", Page{Path: "/a", ChangeFreq: "daily"}, page.Page{Path: "/a", ChangeFreq: daily}, ""},
		{"no frequency", Page{Path: "/a", ChangeFreq: "often"}, page.Page{}, "changefreq"},
		{"a priority", Page{Path: "/a", Priority: float(0.5)}, page.Page{Path: "/a", Priority: priority}, ""},
		{"no priority", Page{Path: "/a", Priority: float(2)}, page.Page{}, "priority"},
		{"no date", Page{Path: "/a", LastMod: time.Unix(0, 0)}, page.Page{Path: "/a"}, ""},
		{"the earliest date", Page{Path: "/a", LastMod: time.Unix(1, 0)}, page.Page{Path: "/a", LastMod: 1}, ""},
		{"a date", Page{Path: "/a", LastMod: time.Unix(now, 0)}, page.Page{Path: "/a", LastMod: now}, ""},
		{"a date to come", Page{Path: "/a", LastMod: time.Unix(now+1, 0)}, page.Page{Path: "/a"}, ""},
		{"a day", Page{Path: "/a", LastMod: time.Unix(100*day, 0)}, page.Page{Path: "/a", LastMod: 100 * day, LastModDay: true}, ""},
		{"just after midnight", Page{Path: "/a", LastMod: time.Unix(100*day, 1)}, page.Page{Path: "/a", LastMod: 100 * day}, ""},
	} {
		got, malformed := test.page.candidate(now)
		if malformed != "" {
			got = page.Page{}
		}
		if got != test.want || malformed != test.malformed {
			t.Errorf("%s: got %+v, %q, want %+v, %q", test.name, got, malformed, test.want, test.malformed)
		}
	}
}
