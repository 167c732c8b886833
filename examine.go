package sitemap

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seed3295b519/caddy-sitemap/internal/gather"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/state"
	"github.com/seed3295b519/caddy-sitemap/internal/verdict"
)

const (
	maxTargetRounds = 3 // canonicals of canonicals
	maxTargets      = 100_000
)

// feed yields the candidates of a refresh, in order.
type feed func(ctx context.Context, next func(page.Page) error) ([]gather.InputError, error)

// examination is a refresh that reads and asks before it lists.
type examination struct {
	site     *site
	refresh  *Refresh
	now      time.Time
	previous *Snapshot
	rules    crawlRules
	notes    notes
	result   *outcome

	listedOut map[string]int // pages left out since the candidates were known
	orphans   int
}

// examine makes a refresh that reads and asks. The shelf is the caller's.
func (s *site) examine(ctx context.Context, r *Refresh, previous *Snapshot, candidates feed, result *outcome) error {
	err := s.shelf.open(ctx)
	s.sayState(err)
	if s.shelf.book.Load() == nil {
		return err
	}
	roots := r.roots()
	s.roots.Store(&roots)
	x := &examination{site: s, refresh: r, now: r.Now, previous: previous, result: result}
	if x.notes, err = readNotes(s.shelf.book.Load()); err == nil && x.notes.Robots != "" && s.shelf.rules.Load() == nil {
		rules := readCrawlRules([]byte(x.notes.Robots))
		rules.text = x.notes.Robots
		s.shelf.rules.Store(&rules)
	}
	if x.rules, err = s.crawlRules(ctx); err != nil {
		return err
	}
	if result.closed = x.rules.closed; x.rules.closed {
		r.Say("robots", "robots.txt answers with an error, so no page is asked for")
	}
	if x.notes, err = readNotes(s.shelf.book.Load()); err == nil {
		err = x.examine(ctx, candidates)
	}
	if errors.Is(err, state.ErrUnusable) {
		// What is kept was damaged, or deleted, since it was opened.
		s.sayState(err)
		s.shelf.book.Store(s.shelf.book.Load().Fresh())
		x.notes = notes{}
		err = x.examine(ctx, candidates)
	}
	return err
}

// examine lists the pages of which nothing is known that speaks against it. The very
// first time, where there are many, it lists them before it knows more than one of
// each folder, and result.again says so.
func (x *examination) examine(ctx context.Context, candidates feed) error {
	s := x.site
	book := s.shelf.book.Load()
	if book.Len() == 0 && s.current() == nil && s.app.building == nil {
		few, err := x.few(ctx, candidates)
		if err != nil || few == nil {
			return err
		}
		candidates = few
	}
	learnt, changed, err := x.learn(ctx, book, candidates)
	if err != nil {
		return err
	}
	if !changed && x.isListed(book) {
		learnt.Discard(context.WithoutCancel(ctx))
		x.result.snapshot, x.result.same = s.current(), true
		x.result.verified, x.result.examples = x.notes.Verified, x.notes.Examples
		for reason, n := range x.notes.LeftOut {
			x.refresh.LeaveOut(reason, n)
		}
		return nil
	}
	return x.list(ctx, learnt)
}

// isListed reports whether the previous snapshot lists the pages of a book as they
// would be now.
func (x *examination) isListed(book *state.Book) bool {
	sh := x.site.shelf
	if x.site.handler.discovery != nil && x.notes.Day != x.now.Unix()/secondsPerDay {
		return false // links that still stand keep paths from being forgotten
	}
	return x.site.current() != nil && !sh.changed.Load() && len(sh.missed) == 0 && book.Len() > 0 &&
		x.notes.Settings == x.settings() && x.notes.Routes == x.routes() && x.notes.Rules == x.rules.sum
}

// firstPatience is how long a page may take to answer while a sitemap waits for it.
const firstPatience = 2 * time.Second

// sampleTime is how long asking for a page of each folder may take behind the first
// sitemap of a large site.
const sampleTime = 10 * time.Minute

const secondsPerDay = 24 * 60 * 60

// routes tells apart what the server would answer.
func (x *examination) routes() string { return x.site.app.routes[x.site.handler.server] }

// collected is what is taken from pages for extensions.
func (s *site) collected() string {
	set, what := s.handler.settings, ""
	if set.alternates {
		what = "alternates "
	}
	if set.images {
		what += "images"
	}
	return what
}

// settings tells apart what shapes a snapshot.
func (x *examination) settings() string { return settingsOf(x.site.key) }

// settingsOf is the key of what is held, as notes have it.
func settingsOf(key string) string { return hex.EncodeToString([]byte(key)) }

// few returns the candidates again where they are few. Where they are many, it lists
// them by what one page of each folder answers, and returns none.
func (x *examination) few(ctx context.Context, candidates feed) (feed, error) {
	var first []page.Page
	var many *gate
	defer func() {
		if many != nil {
			many.close()
		}
	}()
	failed, err := candidates(ctx, func(p page.Page) error {
		if many == nil && len(first) < askedFirst {
			first = append(first, p)
			return nil
		}
		if many == nil {
			var err error
			if many, err = x.openGate(ctx); err != nil {
				return err
			}
			for _, p := range first {
				if err := many.page(p); err != nil {
					return err
				}
			}
			first = nil
		}
		return many.page(p)
	})
	x.result.failed = failed
	if err != nil || many == nil {
		return func(_ context.Context, next func(page.Page) error) ([]gather.InputError, error) {
			for _, p := range first {
				if err := next(p); err != nil {
					return failed, err
				}
			}
			return failed, nil
		}, err
	}
	x.result.again = true
	if err := many.flush(); err != nil {
		return nil, err
	}
	x.result.snapshot, err = many.out.finish()
	return nil, err
}

// learn makes the book that knows of all candidates.
func (x *examination) learn(ctx context.Context, book *state.Book, candidates feed) (*state.Book, bool, error) {
	l, err := x.learner(ctx, book)
	if err != nil {
		return nil, false, err
	}
	defer l.close()
	failed, err := candidates(ctx, l.page)
	x.result.failed = failed
	if err == nil {
		err = l.end()
	}
	if err != nil {
		return nil, false, err
	}
	learnt, err := l.draft.Finish()
	if err != nil {
		return nil, false, err
	}
	changed := l.changed
	x.result.read += int(l.read.Load())
	maps.Copy(l.targets, x.site.shelf.missed)
	for round := 0; round < maxTargetRounds && len(l.targets) > 0; round++ {
		if learnt, l, err = x.learnTargets(ctx, learnt, l); err != nil {
			return nil, false, err
		}
	}
	return learnt, changed, nil
}

// learnTargets adds the pages that others name in their own stead.
func (x *examination) learnTargets(ctx context.Context, book *state.Book, before *learner) (*state.Book, *learner, error) {
	l, err := x.learner(ctx, book)
	if err != nil {
		return nil, nil, err
	}
	defer l.close()
	l.known, l.asksLeft, l.deadline = true, before.asksLeft, before.deadline
	scope := x.site.scope()
	var paths []string
	for path := range before.targets {
		j := &judge{settings: x.site.handler.settings, site: x.site, scope: scope}
		if j.verdict(page.Page{Path: path}) == "" {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	for _, path := range paths {
		if err := l.page(page.Page{Path: path}); err != nil {
			return nil, nil, err
		}
	}
	if err := l.end(); err != nil {
		return nil, nil, err
	}
	learnt, err := l.draft.Finish()
	return learnt, l, err
}

func (x *examination) learner(ctx context.Context, book *state.Book) (*learner, error) {
	s := x.site
	students, err := newStudents(s, x.refresh.roots(), max(x.refresh.Workers, cap(s.app.asks)))
	if err != nil {
		return nil, err
	}
	for _, st := range students {
		st.runner.patience = firstPatience
	}
	l := &learner{
		site: s, ctx: ctx, now: x.now, rules: x.rules, students: students,
		cursor: book.Cursor(ctx), draft: book.Draft(ctx, x.refresh.Workers),
		asksLeft: askedFirst, deadline: s.app.now().Add(askFirstTime), targets: make(map[string]struct{}),
	}
	l.served = s.current() != nil
	l.reroute = book.Len() > 0 && x.notes.Routes != x.routes()
	l.newDay = x.notes.Day != x.now.Unix()/secondsPerDay
	l.anew = book.Len() > 0 && x.notes.Collected != s.collected() && s.collected() != ""
	if book.Len() == 0 && l.served {
		l.deadline = s.app.now().Add(sampleTime) // nobody waits any more
		l.asksLeft = 0                           // there is something to serve: the others are asked for behind
	}
	if s.app.building != nil {
		l.asksLeft, l.deadline = math.MaxInt, s.app.now().Add(buildTime) // nobody waits for it
	}
	l.draft.KeepDocuments()
	if err := l.begin(); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// list lists the pages of a book that is not committed yet.
func (x *examination) list(ctx context.Context, book *state.Book) error {
	s := x.site
	out := s.openPress(x.refresh, x.previous, x.now)
	defer out.close()
	before := maps.Clone(x.refresh.leftOut)
	l := &lister{site: s, refresh: x.refresh, rules: x.rules, out: out, missed: make(map[string]struct{}), saidOrphans: x.notes.Orphans, draft: book.Draft(ctx, x.refresh.Workers), tracks: s.openTracks(ctx, x.refresh)}
	defer l.draft.Abort()
	err := l.list(ctx, book, x.result.read > 0 || s.shelf.changed.Load())
	if err != nil {
		return err
	}
	snapshot, err := out.finish()
	if err != nil {
		return err
	}
	x.result.snapshot, x.result.verified, x.result.turned = snapshot, l.verified, l.hasTurned()
	x.result.round, x.result.starting = l.tracks.ended(), l.starting
	s.shelf.missed = l.missed
	x.result.examples = l.examples
	if x.orphans = l.orphans.Count; l.linked == nil {
		x.orphans = x.notes.Orphans
	}
	x.listedOut = make(map[string]int)
	for reason, n := range x.refresh.leftOut {
		if n -= before[reason]; n > 0 {
			x.listedOut[reason] = n
		}
	}
	if snapshot != nil {
		if err := snapshot.shelve(l.draft); err != nil {
			return err
		}
	}
	if err := x.note(l.draft, snapshot); err != nil {
		return err
	}
	x.result.book, err = l.draft.Finish()
	return err
}

// note writes down what a book says besides its records and documents.
func (x *examination) note(d *state.Draft, snapshot *Snapshot) error {
	n := notes{Settings: x.settings(), Rules: x.rules.sum, Verified: x.result.verified, LeftOut: x.listedOut, Collected: x.site.collected(),
		Examples: x.result.examples, Orphans: x.orphans, Day: x.now.Unix() / secondsPerDay, Routes: x.routes(), Robots: x.rules.text}
	if snapshot != nil {
		for _, r := range snapshot.retired {
			n.Retired = append(n.Retired, retiredNote{r.suffix, r.first, r.at.Unix()})
		}
	}
	meta, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return d.SetMeta(meta)
}

// gate passes on the candidates of the very first refresh of a large site, where one
// of their folder's pages answered.
type gate struct {
	x       *examination
	ctx     context.Context
	out     *press
	learner *learner
	folders map[uint64]bool // whether its pages are listed
	batch   []page.Page
}

const gateBatch = 4096

func (x *examination) openGate(ctx context.Context) (*gate, error) {
	l, err := x.learner(ctx, x.site.shelf.book.Load())
	if err != nil {
		return nil, err
	}
	return &gate{x: x, ctx: ctx, out: x.site.openPress(x.refresh, x.previous, x.now), learner: l, folders: make(map[uint64]bool)}, nil
}

func (g *gate) close() {
	g.out.close()
	g.learner.close()
}

func (g *gate) page(p page.Page) error {
	if g.batch = append(g.batch, p); len(g.batch) < gateBatch {
		return nil
	}
	return g.flush()
}

// flush asks for a page of each folder that is new, and passes on the pages of those
// where it answered.
func (g *gate) flush() error {
	l := g.learner
	l.batch = l.batch[:0]
	for _, p := range g.batch {
		folder := verdict.Hash(verdict.Folder(p.Path))
		if _, known := g.folders[folder]; known || l.rules.closed || l.rules.forbid(p.Path) || !g.x.site.isAsked(p.Path) {
			continue
		}
		g.folders[folder] = false
		l.batch = append(l.batch, lesson{rec: &state.Record{Page: p}, ask: true})
	}
	l.learn()
	for _, c := range l.batch {
		reason := verdict.Reason(c.rec.Answer)
		g.folders[verdict.Hash(verdict.Folder(c.rec.Page.Path))] = c.rec.Asked != 0 && reason != verdict.Unknown && !verdict.OfFolder(reason)
	}
	for _, p := range g.batch {
		switch {
		case l.rules.forbid(p.Path):
			g.x.refresh.LeaveOut(verdict.Forbidden.String(), 1)
		case p.Discovered:
			g.x.refresh.LeaveOut(verdict.Waiting.String(), 1)
		case p.Version != 0 && !g.x.site.isAsked(p.Path):
			g.x.refresh.LeaveOut(verdict.Guarded.String(), 1)
		case g.x.site.isAsked(p.Path) && !g.folders[verdict.Hash(verdict.Folder(p.Path))]:
			g.x.refresh.LeaveOut(verdict.Waiting.String(), 1)
		default:
			p.LastMod, p.LastModDay = g.x.quickDate(p)
			if err := g.out.page(p); err != nil {
				return err
			}
		}
	}
	g.batch = g.batch[:0]
	return g.ctx.Err()
}

// quickDate is the date of a page of which nothing is known but what its source says.
func (x *examination) quickDate(p page.Page) (int64, bool) {
	switch set := x.site.handler.settings; {
	case set.dates == verdict.Off, set.dates == verdict.Auto && p.Version != 0:
		return 0, false
	}
	return p.LastMod, p.LastModDay
}

// sayState says what is wrong with what is remembered, or with remembering it.
func (s *site) sayState(err error) {
	switch {
	case err == nil:
		delete(s.said, "state")
	case errors.Is(err, state.ErrUnusable):
		s.say(zapcore.WarnLevel, "state", "what was remembered of the pages cannot be used and is learnt anew", zap.Error(err))
	default:
		s.say(zapcore.WarnLevel, "state", "what is known of the pages cannot be kept: after a restart it is learnt anew", zap.Error(err))
	}
}
