package crawl

import (
	"context"
	"errors"
	"net/http"
	"runtime"

	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// Rename returns the generation that follows that of a site which has another URL now. It keeps the pages whose text was
// read, for the dates of these; of all others there is nothing to keep. Each page is to be fetched as if it were new, and
// none is listed before. What is damaged is left out. Other errors are as of [record.Generation.Load].
func Rename(ctx context.Context, g *record.Generation) (*record.Generation, error) {
	w := g.Writer()
	for i, chunk := range g.Chunks() {
		records, err := g.Load(ctx, i)
		if err != nil && !errors.Is(err, record.ErrDamaged) {
			return nil, err
		}
		var kept []record.Record
		for _, rec := range records {
			if rec.First != 0 {
				rename(&rec)
				kept = append(kept, rec)
			}
		}
		// All are due at once, and the settings are not those of any crawl: so the next one classifies all of them.
		w.Put(chunk.First, kept, unknownDigest, nil)
		runtime.Gosched() // requests go first
	}
	w.SetSettings(0, 0)
	return w.Generation()
}

// rename makes a record that of a page of which no response is known at the site's URL: what depends on the origin, or on when the page was fetched, is dropped. What dates are decided by stays.
func rename(rec *record.Record) {
	hasOpenChange := rec.Steadiness.IsInDoubt() || rec.AwaitsDate()
	if !hasOpenChange {
		// If the text is another one at the new URL, it has changed since.
		rec.Before = seenAt(rec)
	}
	forget(rec)
	rec.Failing = 0
	rec.Fetched = 0
	rec.Followed = 0
	rec.Wait = 0
	demand(rec, record.ByConfiguration)
	rec.Hub = 0
	rec.Links = nil
	rec.Withheld = false
	rec.Selected.Listed = false
	rec.Selected.LastMod = 0
	rec.Selected.Day = false
	rec.Moved = 0
}

// seenAt is when the text of a record was last seen; 0: that is not known.
func seenAt(rec *record.Record) int64 {
	if rec.Fetched == 0 { // at the present URL
		return rec.Before
	}
	if rec.Failing != 0 || rec.Status != http.StatusOK {
		return 0
	}
	return rec.Fetched
}
