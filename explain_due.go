package sitemap

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// dueByRefresh is by what a page is due that each refresh fetches.
const dueByRefresh = "refresh"

// maxFolders is how many folders above a page are looked up.
const maxFolders = 10

// rereading is when a page is read again, so that a link on it would be seen.
type rereading struct {
	URL string    `json:"url"`
	Due time.Time `json:"due_at,omitzero"`
	By  string    `json:"due_by,omitempty"`
}

// isFetchedAgain reports whether the page of a record is ever fetched again: it was fetched once, something still names it, and
// neither robots.txt nor 'crawl disallow' forbids it.
func isFetchedAgain(rec *record.Record) bool {
	const forbidden = record.Blocked | record.Disallowed
	return rec.Fetched != 0 && rec.Absent == 0 && rec.Flags&forbidden == 0
}

// dueOf returns when the page of a record is fetched again, and by what; zero: it is not, or never was fetched.
func (s *site) dueOf(rec *record.Record) (at time.Time, by string) {
	if !isFetchedAgain(rec) {
		return time.Time{}, ""
	}
	at = timeAt(rec.Due)
	next := toSecond(s.schedule.Due())
	if s.isProbed(rec) && at.After(next) {
		return next, dueByRefresh
	}
	return s.byRefresh(at), rec.Cause.String()
}

// byRefresh returns when what is due at a time is done. What is due at once, or has been for a while, waits for the next
// refresh.
func (s *site) byRefresh(at time.Time) time.Time {
	next := toSecond(s.schedule.Due())
	if p := s.pauseStatus(); p != nil && next.Before(p.Until) {
		next = p.Until
	}
	if at.Before(next) {
		return next
	}
	return at
}

// isProbed reports whether the response to each probe is that of a page, too: see [crawl.Policy.Front].
func (s *site) isProbed(rec *record.Record) bool {
	return rec.Path == s.frontPath() && s.isFrontInScope() && rec.Flags&record.Made != 0
}

// frontPath returns the path of the page with which the site begins: the front page, or the one to which that redirects.
func (s *site) frontPath() string {
	probed := cmp.Or(s.probed.Load(), new(probeResult))
	return cmp.Or(probed.entrance.path, s.scope)
}

// rereadingOf returns when a page is read again.
func (s *site) rereadingOf(rec *record.Record) rereading {
	at, by := s.dueOf(rec)
	return rereading{URL: s.origin + rec.Path, Due: at, By: by}
}

// addDue adds when a page is fetched again, and when the page that has led to it is.
func (s *site) addDue(ctx context.Context, x *explanation, rec *record.Record) {
	at, by := s.dueOf(rec)
	if by != "" {
		x.Due = at
		x.DueBy = by
	}
	if rec.Finder == "" {
		return
	}
	x.FoundAt = s.origin + rec.Finder
	if finder := s.recordOf(ctx, rec.Finder); finder != nil {
		x.ReadAgain = []rereading{s.rereadingOf(finder)}
	}
}

// addLinkers adds when the pages are read again that would most likely link to a page to which no page links: the nearest
// of the folders above it that is a page, and the front page. Where links are not followed, they do not matter.
func (s *site) addLinkers(ctx context.Context, x *explanation, path string) {
	if !x.isUnlinked() || s.discovery() == nil {
		return
	}
	for _, rec := range []*record.Record{s.folderOf(ctx, path), s.recordOf(ctx, s.frontPath())} {
		if rec == nil {
			continue
		}
		again := s.rereadingOf(rec)
		if !slices.Contains(x.ReadAgain, again) {
			x.ReadAgain = append(x.ReadAgain, again)
		}
	}
}

// isUnlinked reports whether the page is not listed because nothing leads to it.
func (x *explanation) isUnlinked() bool {
	return x.Reason == reasonUnnamed || x.Reason == indexing.NoLinks.String()
}

// addOwn adds when the application's own sitemap is read again, which may name the page.
func (s *site) addOwn(x *explanation) {
	own := s.state.own.Load()
	if own == nil || !own.isMade || len(own.pages) == 0 {
		return
	}
	if x.isUnlinked() && s.mergesOwn() {
		due := s.byRefresh(toSecond(own.due))
		x.ReadAgain = append(x.ReadAgain, rereading{own.from, due, record.ByInterval.String()})
	}
}

// folderOf returns the record of the nearest folder above a path that is a page, with a slash or without one, below the
// front page; nil: there is none.
func (s *site) folderOf(ctx context.Context, path string) *record.Record {
	folder := page.Folder(strings.TrimSuffix(path, "/"))
	for range maxFolders {
		if len(folder) <= len(s.scope) {
			return nil
		}
		for _, form := range []string{folder, strings.TrimSuffix(folder, "/")} {
			rec := s.recordOf(ctx, form)
			if rec != nil && rec.Status == http.StatusOK {
				return rec
			}
		}
		folder = page.Folder(strings.TrimSuffix(folder, "/"))
	}
	return nil
}
