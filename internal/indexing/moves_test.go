package indexing

import (
	"testing"

	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// TestNotices: from when on what has become of a page may be told.
func TestNotices(t *testing.T) {
	const now = 10_000
	const later = now + 11*60 // than a change of now
	known := Notices{Now: now, Told: 9000, Behind: 9000, IsKnown: true}
	first := Notices{Now: now, Told: 9000, Behind: 9000}
	lags := Notices{Now: now, Told: 9000, Behind: 8000, IsKnown: true}
	ahead := Notices{Now: now, Told: 20_000, Behind: 20_000, IsKnown: true} // the clock was set back
	for name, test := range map[string]struct {
		n       Notices
		moved   uint32
		turned  bool
		move    move
		isOther bool
		want    uint32
		turns   bool
	}{
		"nobody is told":                        {Notices{Now: now}, 0, false, edited, true, 0, false},
		"nothing":                               {known, 8000, true, unmoved, false, 8000, true},
		"another date":                          {known, 0, false, redated, false, 0, false},
		"added":                                 {known, 0, false, added, false, now + 90, true},
		"added by the first crawl":              {first, 0, false, added, false, 0, false},
		"edited":                                {known, 0, false, edited, true, now, false},
		"edited by the first crawl":             {first, 0, false, edited, true, now, false},
		"edited again, and not told yet":        {known, 9500, false, edited, true, 9500, false},
		"edited again, and told":                {known, 8999, true, edited, true, now, false},
		"edited again, and told a moment ago":   {Notices{Now: now, Told: now, Behind: now, IsKnown: true}, now, false, edited, true, later, false},
		"edited, added a moment ago":            {known, now + 90, true, edited, true, now + 90, true},
		"removed":                               {known, 0, false, removed, false, now + 180, true},
		"came and went":                         {known, now + 50, true, removed, false, 8999, true},
		"edited, not told, and removed":         {known, 9500, false, removed, false, now + 180, false},
		"back before it was told":               {known, now + 50, true, added, false, 8999, true},
		"back, with another text":               {known, now + 50, true, added, true, now + 90, false},
		"back, and edited before":               {known, later, false, added, false, later, false},
		"back, and its removal was told":        {known, 8990, true, added, false, now + 90, true},
		"hidden":                                {known, now + 50, true, hidden, false, 8999, true},
		"hidden, and nothing to tell":           {known, 8000, false, hidden, false, 8000, false},
		"added, while one is behind":            {lags, 0, false, added, false, now + 90, false},
		"came and went, while one is behind":    {lags, now + 50, true, removed, false, 7999, true},
		"the clock was set back":                {ahead, 0, false, edited, true, 20_001, false},
		"the clock was set back, and told then": {ahead, 19_000, false, edited, true, 20_001, false},
	} {
		rec := record.Record{Moved: test.moved, Turned: test.turned}
		test.n.note(&rec, test.move, test.isOther)
		if rec.Moved != test.want || rec.Turned != test.turns {
			t.Errorf("%s: got %d, %t, want %d, %t", name, rec.Moved, rec.Turned, test.want, test.turns)
		}
	}
}
