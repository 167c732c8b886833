package sitemap

import (
	"context"
	"strings"

	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/state"
	"github.com/seed3295b519/caddy-sitemap/internal/verdict"
)

// incompleteAlternates is why a page's other languages are left out.
const incompleteAlternates = "alternates not mutual"

// turnedBadPart is the part of the listed pages that may turn bad at once and be
// believed.
const turnedBadPart = 5

// maxExamples is how many pages the log names for a reason.
const maxExamples = 3

// lister goes through all that is known of a site's pages and lists those that are to
// be listed.
type lister struct {
	site    *site
	refresh *Refresh
	rules   crawlRules
	out     *press

	survey     *verdict.Survey
	decisions  verdict.Decisions
	alternates verdict.Alternates
	linked     *verdict.LinkSet // nil: as it was the last time
	believes   bool             // what the last asks say of pages that were good
	draft      *state.Draft
	tracks     *tracks // of links; nil: nothing discovers pages

	starting         bool // the front page answers with an error, or not at all
	verified, turned int
	changed          bool // the draft says something else than the book
	orphans          verdict.Examples
	saidOrphans      int                 // before a restart
	examples         map[string][]string // pages left out, by reason
	missed           map[string]struct{} // pages that others name, and that are not known of
}

// list lists the pages of a book, in two or three passes through it: what one page's
// verdict is may depend on all others. learnt says that pages were read since the
// last time.
func (l *lister) list(ctx context.Context, book *state.Book, learnt bool) error {
	set := &l.site.handler.settings
	if err := l.look(ctx, book, learnt || set.alternates || l.tracks != nil); err != nil {
		return err
	}
	if !l.believes {
		l.refresh.Say("suspects", "over a fifth of the pages do not answer as they did: they stay listed until they are asked again",
			zap.Int("pages", l.survey.Suspects), zap.Int("of", l.survey.Listed))
	}
	records := book.Records
	if set.alternates || set.images || l.tracks != nil {
		records = book.RecordsWithDetails
	}
	if err := records(ctx, l.record); err != nil {
		return err
	}
	l.say()
	return nil
}

// look takes from all pages of a book what the verdict on one depends on. withDetails
// says that their links are looked at, too.
func (l *lister) look(ctx context.Context, book *state.Book, withDetails bool) error {
	set := &l.site.handler.settings
	l.survey = &verdict.Survey{
		RespectCanonical: set.canonical,
		OmitOrphans:      set.omitOrphans,
		Forbidden:        l.rules.forbid,
	}
	if withDetails {
		if err := l.details(ctx, book); err != nil {
			return err
		}
	}
	if err := book.Records(ctx, present(l.survey.Add)); err != nil {
		return err
	}
	l.believes = turnedBadPart*l.survey.Suspects <= l.survey.Listed
	if l.survey.Again() {
		if err := book.Records(ctx, present(func(r *state.Record) { l.believe(r); l.survey.AddAgain(r) })); err != nil {
			return err
		}
	}
	l.decisions = l.survey.Decisions()
	return nil
}

// verdict is the verdict on one page, once all were looked at.
func (l *lister) verdict(r *state.Record) verdict.Reason {
	l.believe(r)
	verdict.Settle(r, l.decisions)
	if l.linked != nil {
		// A link may have a query that pages are not told apart by.
		r.Flags = setFlag(r.Flags, verdict.FlagLinked, r.Flags&verdict.FlagDiscovered != 0 || l.linked.Reaches(r.Page.Path))
	}
	return l.survey.Verdict(r)
}

// details goes through what pages link to.
func (l *lister) details(ctx context.Context, book *state.Book) error {
	l.linked = new(verdict.LinkSet)
	l.survey.Linked = l.linked.Has
	return book.Details(ctx, func(path string, d *state.Details) error {
		l.linked.Add(path, d.Links)
		l.alternates.Add(path, d.Alternates)
		return nil
	})
}

// present passes over pages that are no more.
func present(take func(*state.Record)) func(*state.Record) error {
	return func(r *state.Record) error {
		if r.Flags&verdict.FlagGone == 0 {
			take(r)
		}
		return nil
	}
}

// believe makes of what the last ask said of a page the verdict, unless so many say
// the same that it has to be said twice.
func (l *lister) believe(r *state.Record) {
	twice := r.Flags&verdict.FlagTwice != 0
	if once := r.Flags&verdict.FlagDiscovered != 0 && verdict.Reason(r.Suspect) == verdict.Gone && !twice; once {
		return // an application may lose a page for a moment
	}
	if r.Suspect != 0 && (l.believes || twice) {
		verdict.Believe(r)
	}
}

// record gives the verdict on one page.
func (l *lister) record(r *state.Record) error {
	if r.Flags&verdict.FlagGone != 0 {
		r.Details = nil
		return l.draft.Keep(r)
	}
	if r.Flags&verdict.FlagTarget != 0 && !l.survey.IsTarget(r.Page.Path) {
		l.changed = true
		return nil // nobody names it any more
	}
	was := *r
	details := r.Details
	reason := l.verdict(r)
	if !reason.Listed() && was.Flags&verdict.FlagListed != 0 && was.Suspect == 0 {
		l.turned++
	}
	if reason.Listed() && r.Canonical != "" && l.survey.Misses(r) && len(l.missed) < maxTargets {
		l.missed[r.Canonical] = struct{}{}
	}
	listed := reason.Listed()
	if listed && l.out.isFull() {
		l.refresh.LeaveOut(overMaxURLs, 1)
		listed = false
	}
	r.Flags = setFlag(r.Flags, verdict.FlagListed, listed)
	l.tracks.follow(r, details)
	if l.tracks != nil && r.Page.Path == l.site.front() {
		l.starting = reason == verdict.Failing || reason == verdict.Waiting
	}
	if err := l.keep(r, &was); err != nil {
		return err
	}
	if !listed {
		l.leaveOut(r, reason)
		return nil
	}
	return l.pass(r, reason, details)
}

// leaveOut counts a page that is not listed, and keeps the first few of each reason.
func (l *lister) leaveOut(r *state.Record, reason verdict.Reason) {
	s := reason.String()
	if s == "" {
		return
	}
	l.refresh.LeaveOut(s, 1)
	if l.examples == nil {
		l.examples = make(map[string][]string)
	}
	if len(l.examples[s]) < maxExamples {
		l.examples[s] = append(l.examples[s], strings.Clone(r.Page.Path))
	}
}

// keep writes down what became of a record.
func (l *lister) keep(r, was *state.Record) error {
	r.Details, was.Details = nil, nil
	if *r == *was {
		return l.draft.Keep(r)
	}
	l.changed = true
	return l.draft.Add(r)
}

// pass passes a page on that is listed.
func (l *lister) pass(r *state.Record, reason verdict.Reason, details *state.Details) error {
	set := &l.site.handler.settings
	if reason == verdict.Good && r.Asked != 0 {
		l.verified++
	}
	if r.Flags&(verdict.FlagRead|verdict.FlagLinked) == verdict.FlagRead && r.Page.Path != "/" {
		l.orphans.Add(r.Page.Path)
	}
	p := r.Page
	p.LastMod, p.LastModDay = verdict.LastMod(r, l.decisions, set.dates)
	p.Extensions = l.extensions(r.Page.Path, details)
	return l.out.page(p)
}

func (l *lister) extensions(path string, d *state.Details) *page.Extensions {
	if d == nil {
		return nil
	}
	var e page.Extensions
	set := &l.site.handler.settings
	if set.images {
		e.Images = d.Images
	}
	if set.alternates && len(d.Alternates) > 0 {
		if l.alternates.Mutual(l.site.base, path, d.Alternates) {
			e.Alternates = d.Alternates
		} else {
			l.refresh.LeaveOut(incompleteAlternates, 1)
		}
	}
	if len(e.Images)+len(e.Alternates) == 0 {
		return nil
	}
	return &e
}

// say says what the user should know of the pages as a whole.
func (l *lister) say() {
	if u := l.survey.Unwilling; 2*u.Count > l.survey.Pages {
		l.refresh.Say("unwilling", "more than half of the pages name a canonical on another site or ask not to be indexed, so they are not listed: is base_url right?",
			zap.Int("pages", u.Count), zap.Int("of", l.survey.Pages), zap.Strings("first", u.First))
	}
	if l.orphans.Count > 0 && l.linked != nil && l.orphans.Count != l.saidOrphans {
		l.refresh.tell("orphans", "no page of the site links to some that are listed", zap.Int("pages", l.orphans.Count), zap.Strings("first", l.orphans.First))
	}
}

func setFlag(flags, flag uint16, on bool) uint16 {
	if on {
		return flags | flag
	}
	return flags &^ flag
}

// hasTurned reports whether so many pages turned bad at once that it is not believed.
func (l *lister) hasTurned() bool {
	return turnedBadPart*l.turned > l.survey.Listed && l.survey.Listed > 0
}
