package indexing

import (
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// TestUndated: each page without a date has one reason, in the order in which dates count.
func TestUndated(t *testing.T) {
	const (
		now   = 1_700_000_000
		batch = now - 9*day // in which the page was found
	)
	// A page that says nothing of when it changed, fetched an hour ago.
	plain := store.Record{
		Path: "/a", Flags: store.HTML | store.Document, Status: 200, Text: 1, First: batch, Fetched: now - 3600,
		Selected: store.Selected{Listed: true, Dated: batch},
	}
	for name, test := range map[string]struct {
		set   func(rec *store.Record)
		rules Options
		site  dates // what all pages say
		want  Undated
	}{
		"it has a date":                  {set: func(rec *store.Record) { rec.Selected.LastMod = now }, want: IsDated},
		"lastmod off":                    {rules: Options{Dates: Off}, want: DatesOff},
		"lastmod mtime":                  {rules: Options{Dates: ModTime}, want: NotBySource},
		"nothing":                        {want: NothingTells},
		"a change to be confirmed":       {set: func(rec *store.Record) { rec.Steadiness = store.TextInDoubt }, want: Unconfirmed},
		"the first date to be confirmed": {set: func(rec *store.Record) { rec.Declared = now; rec.Steadiness = store.DateInDoubt }, want: Unconfirmed},
		"noise":                          {set: func(rec *store.Record) { rec.Steadiness = store.Noisy }, want: TextMoves},
		"noise with a date":              {set: func(rec *store.Record) { rec.Steadiness = store.Noisy; rec.Declared = now + 2*day }, want: InFuture},
		"a change at each fetch":         {set: func(rec *store.Record) { rec.Streak = maxStreak }, want: TextMoves},
		"a declared date that moves":     {set: func(rec *store.Record) { rec.Declared = now; rec.Flags |= store.DeclaredMoves }, want: DeclaredDateMoves},
		"declared by a build":            {set: func(rec *store.Record) { rec.Declared = batch }, site: dates{declaredAlike: true}, want: OfBuild},
		"declared for the future":        {set: func(rec *store.Record) { rec.Declared = now + day }, want: InFuture},
		"declared at the epoch":          {set: func(rec *store.Record) { rec.Declared = page.Earliest - 1 }, want: TooEarly},
		"a list of the future":           {set: func(rec *store.Record) { rec.Flags |= store.Named; rec.ModTime = now + day }, want: InFuture},
		"a list of a build": {
			set: func(rec *store.Record) { rec.Flags |= store.Named; rec.ModTime = batch }, site: dates{buildTimes: []span{{batch, batch}}}, want: OfBuild,
		},
		"not decided yet":             {set: func(rec *store.Record) { rec.Selected.Dated = 0; rec.Modified = batch }, want: Undecided},
		"a change not decided yet":    {set: func(rec *store.Record) { rec.Changed = now; rec.Before = now - 3600 }, want: Undecided},
		"a deployment, by files":      {set: func(rec *store.Record) { rec.Version = 1; rec.ModTime = batch - 60 }, want: OfDeployment},
		"a deployment, by the header": {set: func(rec *store.Record) { rec.Modified = batch - 60 }, want: OfDeployment},
		"changed amid a deployment": {
			set: func(rec *store.Record) { changedAfter(now, 3600)(rec); rec.Version = 1; rec.ModTime = now - 60 }, want: OfDeployment,
		},
		"the time of the response":     {set: func(rec *store.Record) { rec.Modified = rec.Fetched }, want: NothingTells},
		"a template":                   {set: changedAfter(now, 3600), want: OfTemplate},
		"a change that was found late": {set: changedAfter(now, 3*day), want: FoundLate},
		"a change after a failure":     {set: func(rec *store.Record) { changedAfter(now, 3600)(rec); rec.Before = 0 }, want: FoundLate},
	} {
		t.Run(name, func(t *testing.T) {
			rec := plain
			if test.set != nil {
				test.set(&rec)
			}
			test.rules.Now = time.Unix(now, 0)
			test.site.rules = &test.rules
			if got := test.site.whyUndated(&rec); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// changedAfter has a page's text found changed so many seconds after the fetch before, and the change decided.
func changedAfter(now, seconds int64) func(rec *store.Record) {
	return func(rec *store.Record) {
		rec.Changed = now - day
		rec.Before = rec.Changed - seconds
		rec.Fetched = now
		rec.Selected.Dated = rec.Changed
	}
}

// TestUndatedTexts: each reason has words of its own.
func TestUndatedTexts(t *testing.T) {
	seen := make(map[string]bool)
	for u := range undatedCount {
		if seen[u.String()] || (u.String() == "") != (u == IsDated) {
			t.Errorf("%d: got %q", u, u)
		}
		seen[u.String()] = true
	}
}
