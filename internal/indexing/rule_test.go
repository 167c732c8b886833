package indexing

import (
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// TestRule: each page has its date, or none, by one rule.
func TestRule(t *testing.T) {
	const (
		now   = 1_700_000_000
		batch = now - 9*day // in which the page was found
		build = now - 30*day
	)
	// A page that says nothing of when it changed, fetched an hour ago.
	plain := store.Record{
		Path: "/a", Flags: store.HTML | store.Document, Status: 200, Text: 1, First: batch, Fetched: now - hour,
		Selected: store.Selected{Listed: true, Dated: batch},
	}
	dated := func(rec *store.Record) { rec.Selected.LastMod = batch - hour }
	for name, test := range map[string]struct {
		set   func(rec *store.Record)
		rules Options
		want  Rule
	}{
		"declared":    {set: func(rec *store.Record) { dated(rec); rec.Declared = batch - hour }, want: ByPage},
		"by a list":   {set: func(rec *store.Record) { dated(rec); rec.Flags |= store.Named; rec.ModTime = batch - hour }, want: ByList},
		"by its file": {set: func(rec *store.Record) { dated(rec); rec.Version = 1; rec.ModTime = batch - hour }, want: ByFile},
		"by the file's time": {set: func(rec *store.Record) {
			dated(rec)
			rec.Version = 1
			rec.Flags |= store.Made
			rec.ModTime = batch - hour
		}, want: ByFile},
		"by the header": {set: func(rec *store.Record) { dated(rec); rec.Modified = batch - hour }, want: ByHeader},
		"by the day": {set: func(rec *store.Record) {
			dated(rec)
			rec.Selected.Day = true
			rec.Changed = batch
			rec.Found = batch - hour
		}, want: ByDay},
		"before a template, a day": {set: func(rec *store.Record) { dated(rec); rec.Selected.Day = true; rec.Changed = now - day }, want: ByEarlier},
		"before a template":        {set: func(rec *store.Record) { dated(rec); rec.Version = 1; rec.ModTime = now }, want: ByEarlier},
		"lastmod off":              {rules: Options{Dates: Off}, want: DatesOff},
		"lastmod mtime":            {rules: Options{Dates: ModTime}, want: NotBySource},
		"lastmod mtime, future":    {rules: Options{Dates: ModTime}, set: func(rec *store.Record) { rec.ModTime = now + day }, want: Impossible},
		"nothing":                  {want: NothingTells},
		"to be confirmed":          {set: func(rec *store.Record) { rec.Steadiness = store.TextInDoubt }, want: Unconfirmed},
		"the first date":           {set: func(rec *store.Record) { rec.Declared = now; rec.Steadiness = store.DateInDoubt }, want: Unconfirmed},
		"noise":                    {set: func(rec *store.Record) { rec.Steadiness = store.Noisy }, want: TextMoves},
		"noise with a date":        {set: func(rec *store.Record) { rec.Steadiness = store.Noisy; rec.Declared = now + 2*day }, want: Impossible},
		"a change at each fetch":   {set: func(rec *store.Record) { rec.Streak = maxStreak }, want: TextMoves},
		"a date that moves":        {set: func(rec *store.Record) { rec.Declared = now; rec.Flags |= store.DeclaredMoves }, want: DeclaredDateMoves},
		"declared by a build":      {set: func(rec *store.Record) { rec.Declared = build }, want: OfBuild},
		"declared too early":       {set: func(rec *store.Record) { changedAfter(now, 3*day)(rec); rec.Declared = batch - hour }, want: FoundLate},
		"declared, of a template":  {set: func(rec *store.Record) { changedAfter(now, hour)(rec); rec.Declared = batch - hour }, want: OfTemplate},
		"declared for later":       {set: func(rec *store.Record) { rec.Declared = now + day }, want: Impossible},
		"declared at the epoch":    {set: func(rec *store.Record) { rec.Declared = page.Earliest - 1 }, want: Impossible},
		"a list of the future":     {set: func(rec *store.Record) { rec.Flags |= store.Named; rec.ModTime = now + day }, want: Impossible},
		"a list of a build":        {set: func(rec *store.Record) { rec.Flags |= store.Named; rec.ModTime = build }, want: OfBuild},
		"not decided yet":          {set: func(rec *store.Record) { rec.Selected.Dated = 0; rec.Modified = batch }, want: Undecided},
		"a change not decided":     {set: func(rec *store.Record) { rec.Changed = now; rec.Before = now - hour }, want: Undecided},
		"an upload, by files":      {set: func(rec *store.Record) { rec.Version = 1; rec.ModTime = batch - 60 }, want: OfUpload},
		"an upload, by header":     {set: func(rec *store.Record) { rec.Modified = batch - 60 }, want: OfUpload},
		"made just now":            {set: func(rec *store.Record) { rec.Modified = rec.Fetched }, want: NothingTells},
		"a template":               {set: changedAfter(now, hour), want: OfTemplate},
		"found late":               {set: changedAfter(now, 3*day), want: FoundLate},
		"after a failure":          {set: func(rec *store.Record) { changedAfter(now, hour)(rec); rec.Before = 0 }, want: FoundLate},
	} {
		rec := plain
		if test.set != nil {
			test.set(&rec)
		}
		test.rules.Now = time.Unix(now, 0)
		d := newDates(&test.rules)
		for range fewestAlike {
			d.stated[declared].add(date{unix: build})
			d.stated[listed].add(date{unix: build})
		}
		if got := d.ruleOf(&rec); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// changedAfter has a page's text found changed so many seconds after the fetch before, and the change decided.
func changedAfter(now, seconds int64) func(rec *store.Record) {
	return func(rec *store.Record) {
		rec.Changed = now - day
		rec.Found = store.Unix32(rec.Changed)
		rec.Before = rec.Changed - seconds
		rec.Fetched = now
		rec.Selected.Dated = rec.Changed
	}
}
