package crawl

import (
	"reflect"
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// TestRename: of a page under another name, what dates are decided by is kept, and no response.
func TestRename(t *testing.T) {
	dated := record.Selected{Listed: true, LastMod: 90, Day: true, Text: 80, TextDay: true, Dated: 100}
	kept := record.Selected{Text: 80, TextDay: true, Dated: 100}
	for name, test := range map[string]struct{ was, want record.Record }{
		"a page": {
			record.Record{Flags: record.Named | record.HTML, Version: 3, ModTime: 70, Fetched: 200, Due: 300, Wait: 100, Status: 200, Text: 5,
				Canonical: "https://old.example/", Declared: 60, ETag: `"e"`, Modified: 50, First: 100, Linked: 150, Hub: 9,
				Links: []string{"/b"}, Followed: 190, Images: []string{"/i"}, Title: "title",
				Description: "d", Markdown: "/m", Article: &record.Article{Published: 40}, Selected: dated},
			record.Record{Flags: record.Named, Version: 3, ModTime: 70, Text: 5, Declared: 60, First: 100, Linked: 150, Before: 200, Selected: kept},
		},
		"not dated yet": {
			record.Record{Fetched: 200, Status: 200, Text: 5, First: 100, Selected: record.Selected{Listed: true}},
			record.Record{Text: 5, First: 100},
		},
		"a change that is not dated yet": {
			record.Record{Fetched: 200, Status: 200, Text: 5, First: 100, Changed: 200, Before: 190, FoundBy: record.ByHub, Selected: dated},
			record.Record{Text: 5, First: 100, Changed: 200, Before: 190, FoundBy: record.ByHub, Selected: kept},
		},
		"in doubt": {
			record.Record{Fetched: 200, Status: 200, Text: 5, Settled: 4, First: 100, Before: 190, Steadiness: record.TextInDoubt, Selected: dated},
			record.Record{Text: 5, Settled: 4, First: 100, Before: 190, Steadiness: record.TextInDoubt, Selected: kept},
		},
		"failing": {
			record.Record{Fetched: 200, Failing: 199, Status: 200, Text: 5, First: 100, Before: 90, Selected: dated},
			record.Record{Text: 5, First: 100, Selected: kept},
		},
		"gone": {
			record.Record{Fetched: 200, Status: 404, Text: 5, First: 100, Selected: record.Selected{Text: 80, Dated: 100}},
			record.Record{Text: 5, First: 100, Selected: record.Selected{Text: 80, Dated: 100}},
		},
		"renamed twice": {
			record.Record{Text: 5, First: 100, Before: 200, Selected: kept},
			record.Record{Text: 5, First: 100, Before: 200, Selected: kept},
		},
	} {
		test.want.Cause = record.ByConfiguration
		rename(&test.was)
		if !reflect.DeepEqual(test.was, test.want) {
			t.Errorf("%s: got %+v, want %+v", name, test.was, test.want)
		}
	}
}

// TestRenameAll: what is kept is fetched as if it were new. A change at the new URL is one since the last fetch at the former.
func TestRenameAll(t *testing.T) {
	opened := record.New(record.NewMemory(), "")
	w := opened.Last().Writer()
	selected := record.Selected{Listed: true, LastMod: 90, Text: 90, Dated: 100}
	w.Put("", []record.Record{
		{Path: "/kept", Fetched: 200, Due: 1 << 40, Status: 200, Text: 5, First: 100, Selected: selected},
		{Path: "/pdf", Fetched: 200, Status: 200},
	}, nil, func([]record.Record) int64 { return 1 << 40 })
	w.SetSettings(1, 2)
	before, err := w.Generation()
	if err != nil {
		t.Fatal(err)
	}
	g, err := Rename(t.Context(), before)
	if err != nil {
		t.Fatal(err)
	}
	settings, routes := g.Settings()
	if g.Len() != 1 || g.Chunks()[0].Due != 0 || settings != 0 || routes != 0 {
		t.Errorf("got %d records, due at %d, by the settings %d, %d", g.Len(), g.Chunks()[0].Due, settings, routes)
	}
	rec, err := g.Find(t.Context(), "/kept")
	if err != nil || rec == nil || rec.Fetched != 0 || rec.Selected.Listed || rec.Selected.Text != 90 {
		t.Fatalf("got %+v, %v", rec, err)
	}
	if got := seenAt(rec); got != 200 {
		t.Errorf("its text was seen at %d, want 200", got)
	}
}
