package crawl

import (
	"context"
	"errors"
	"net/http"
	"runtime"

	"github.com/seed3295b519/caddy-sitemap/internal/store"
)

// Inherit returns the generation that follows own, which has no records: those of former, which are of the same site
// under another name. It takes over the pages that isKept accepts and whose text was read, for the dates of these; of
// all others there is nothing to keep. Each page is to be fetched as if it were new, and none is listed before. What is
// damaged of former is left out. Other errors are as of [store.Generation.Load].
func Inherit(
	ctx context.Context,
	own, former *store.Generation,
	isKept func(*store.Record) bool,
) (*store.Generation, error) {
	w := own.Writer()
	for i, chunk := range former.Chunks() {
		records, err := former.Load(ctx, i)
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			return nil, err
		}
		var taken []store.Record
		for _, rec := range records {
			if rec.First != 0 && isKept(&rec) {
				rename(&rec)
				taken = append(taken, rec)
			}
		}
		// All are due at once, and the settings are not those of any crawl: so the next one classifies all of them.
		w.Put(chunk.First, taken, unknownDigest, nil)
		runtime.Gosched() // requests go first
	}
	return w.Generation()
}

// rename makes a record that of a page of which no response is known under the site's name: what depends on the origin,
// or on when the page was fetched, is dropped. What dates are decided by stays.
func rename(rec *store.Record) {
	hasOpenChange := rec.Steadiness.IsInDoubt() || rec.AwaitsDate()
	if !hasOpenChange {
		// If the text is another one under the new name, it has changed since.
		rec.Before = seenAt(rec)
	}
	forget(rec)
	rec.Failing = 0
	rec.Fetched = 0
	rec.Followed = 0
	rec.Wait = 0
	demand(rec, store.ByConfiguration)
	rec.Hub = 0
	rec.Links = nil
	rec.Withheld = false
	rec.Selected.Listed = false
	rec.Selected.LastMod = 0
	rec.Selected.Day = false
}

// seenAt is when the text of a record was last seen; 0: that is not known.
func seenAt(rec *store.Record) int64 {
	if rec.Fetched == 0 { // under the present name: see Inherit
		return rec.Before
	}
	if rec.Failing != 0 || rec.Status != http.StatusOK {
		return 0
	}
	return rec.Fetched
}
