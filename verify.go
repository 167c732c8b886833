package sitemap

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/state"
	"github.com/seed3295b519/caddy-sitemap/internal/verdict"
)

// kindOfAnswerer is what answers for pages, as far as that is known.
type kindOfAnswerer uint8

const (
	answersHere kindOfAnswerer = iota // files, and what the server itself makes
	answersUpstream
	kindsOfAnswerer
)

// What is learnt by asking in the background is written down now and then: a crash
// loses no more than that.
const (
	mostUnwritten    = 8192
	longestUnwritten = 30 * time.Second
)

const clockSlack = 3600 // seconds

// verifyDue asks in the background for the pages that are due, if some are and it is
// not being done.
func (s *site) verifyDue() {
	if s.handler.settings.manners.off {
		return
	}
	for kind := range kindsOfAnswerer {
		v := &s.verifiers[kind]
		if v.due.Load() > s.app.now().Unix() || !v.busy.CompareAndSwap(false, true) {
			continue
		}
		s.app.group.Go(func() {
			defer v.busy.Store(false)
			s.shelf.askAlone(s.ctx, kind, func() { (&verification{site: s, kind: kind}).run(s.ctx) })
		})
	}
}

// verifyOn goes on with the asking of the configuration before this one, whose last
// refresh stands.
func (s *site) verifyOn(now time.Time) {
	if s.handler.settings.manners.off || s.shelf.book.Load() == nil || !s.mayList() {
		return
	}
	r := s.newRefresh(now)
	if r.openFS() != nil {
		return // the next refresh says so
	}
	roots := r.roots()
	s.roots.Store(&roots)
	s.verifyDue()
}

// verifier is what a site knows of its asking in the background.
type verifier struct {
	busy atomic.Bool
	due  atomic.Int64 // when the next page is due, Unix seconds
}

// verification is one walk through the pages that are due.
type verification struct {
	site  *site
	kind  kindOfAnswerer
	rules crawlRules
	next  int64 // when the first page is due that was not yet

	students  []*student
	answered  map[string]*state.Record
	unwritten time.Time
	lost      bool           // what was answered could not be written
	news      bool           // some of it may lead to pages that are not known yet
	firsts    map[uint64]int // pages that links led to and that were never asked for, by hash of the folder
	crowded   bool           // some of them were left for the next time
	asked     int
}

func (v *verification) run(ctx context.Context) {
	due := &v.site.verifiers[v.kind].due
	due.Store(math.MaxInt64) // what changes meanwhile sets it back
	v.next = math.MaxInt64
	if err := v.walk(ctx); err != nil && ctx.Err() == nil {
		v.site.logger.Warn("asking for pages was cut short", zap.Error(err))
		v.lost = true
	}
	if v.lost {
		v.next = v.site.app.now().Add(time.Minute).Unix()
	}
	for {
		was := due.Load()
		if v.next >= was || due.CompareAndSwap(was, v.next) {
			return
		}
	}
}

func (v *verification) walk(ctx context.Context) (err error) {
	s := v.site
	if s.roots.Load() == nil {
		v.next = 0
		return nil // no refresh has come so far
	}
	if v.rules, err = s.crawlRules(ctx); err != nil {
		return err
	}
	if v.rules.closed {
		v.next = s.app.now().Add(time.Minute).Unix()
		return nil
	}
	workers := cap(s.app.asks)
	if v.kind == answersUpstream {
		workers = cap(s.pace.slots)
	}
	if v.students, err = newStudents(s, *s.roots.Load(), workers); err != nil {
		return err
	}
	defer func() { dismiss(v.students) }()
	v.answered = make(map[string]*state.Record)
	defer func() {
		if ctx.Err() != nil {
			v.leave(ctx)
		}
	}()
	for err == nil {
		v.firsts, v.crowded, v.asked = nil, false, 0
		err = v.once(ctx)
		if !v.crowded || v.asked == 0 {
			break
		}
	}
	if v.crowded {
		v.next = 0
	}
	return err
}

// once goes through all pages.
func (v *verification) once(ctx context.Context) error {
	s := v.site
	from := ""
	for {
		records, err := s.shelf.after(ctx, from)
		if err != nil || len(records) == 0 {
			return errors.Join(err, v.write(ctx))
		}
		from = records[len(records)-1].Page.Path
		if err := v.piece(ctx, records); err != nil {
			return err
		}
	}
}

// piece asks for those of some records that are due.
func (v *verification) piece(ctx context.Context, records []state.Record) error {
	due := records[:0]
	now := v.site.app.now().Unix()
	for _, r := range records {
		if !v.mine(&r) {
			continue
		}
		at := v.site.spared(ctx, &r, verdict.Due(&r, verdict.Hash(r.Page.Path)))
		if r.Asked > now+clockSlack {
			at = now // the clock was set back
		}
		if at > now {
			v.next = min(v.next, at)
			continue
		}
		if v.crowds(&r) {
			v.crowded = true
			continue
		}
		due = append(due, r)
	}
	if len(due) == 0 {
		return nil
	}
	var next atomic.Int64
	var group sync.WaitGroup
	var mu sync.Mutex
	for _, st := range v.students {
		group.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(due) {
					return
				}
				isFirst := due[i].Asked == 0
				if v.ask(ctx, st, &due[i]) {
					mu.Lock()
					v.news = v.news || isFirst && isNews(&due[i])
					v.take(ctx, &due[i])
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(v.answered) > mostUnwritten {
		return v.write(ctx)
	}
	return nil
}

// maxFirsts is how many new pages of a folder an upstream is asked for before it is the
// others' turn: an endless calendar shall not keep what lies behind it waiting.
const maxFirsts = 100

// crowds reports whether a page is one too many of its folder.
func (v *verification) crowds(r *state.Record) bool {
	if v.kind != answersUpstream || r.Asked != 0 || r.Flags&verdict.FlagDiscovered == 0 {
		return false
	}
	if v.firsts == nil {
		v.firsts = make(map[uint64]int)
	}
	folder := verdict.Hash(verdict.Folder(r.Page.Path))
	v.firsts[folder]++
	return v.firsts[folder] > maxFirsts
}

// ask asks for a page when it is its turn.
func (v *verification) ask(ctx context.Context, st *student, r *state.Record) bool {
	defer st.guard(r.Page.Path)
	if v.site.answererOf(r) != v.kind {
		v.site.verifiers[1-v.kind].due.Store(0)
		return false
	}
	if v.kind == answersHere {
		slots := v.site.app.asks
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		case <-ctx.Done():
			return false
		}
	}
	return st.ask(ctx, r)
}

// take keeps what was learnt until it is written down.
func (v *verification) take(ctx context.Context, r *state.Record) {
	now := v.site.app.now()
	v.asked++
	v.site.app.building.heard()
	v.answered[r.Page.Path] = r
	if v.unwritten.IsZero() {
		v.unwritten = now
	}
	if now.Sub(v.unwritten) > longestUnwritten {
		if v.write(ctx) != nil {
			v.lost = true // and asked for again
		}
	}
}

// isNews reports whether a page may lead to others that were not known before it answered.
func isNews(r *state.Record) bool {
	reason := verdict.Reason(r.Answer)
	return r.Flags&verdict.FlagDiscovered != 0 && (reason == verdict.Good || reason == verdict.Redirects)
}

// visitsSpare is how often a visit that shows another state of a page has it asked for.
const visitsSpare = 24 * time.Hour

// spared is when a page is to be asked for that visitors had meanwhile: later if they
// got what is known of it, sooner if they got something else.
func (s *site) spared(ctx context.Context, r *state.Record, due int64) int64 {
	if r.Flags&verdict.FlagDiscovered == 0 || r.Asked == 0 || s.handler.discovery == nil {
		return due
	}
	shown, at := s.paths(ctx).Shown(r.Page.Path)
	known := tag(r.ETag, r.Modified)
	if shown == 0 || known == 0 || at <= r.Asked {
		return due
	}
	if shown != known {
		return min(due, max(at, r.Asked+int64(visitsSpare/time.Second)))
	}
	if verdict.Reason(r.Answer) != verdict.Good || r.Suspect != 0 || r.Flags&verdict.FlagDue != 0 {
		return due
	}
	return due + at - r.Asked
}

// mine reports whether a record is of the kind that is being asked for.
func (v *verification) mine(r *state.Record) bool {
	if r.Flags&verdict.FlagGone != 0 || !v.site.isAsked(r.Page.Path) || v.rules.forbid(r.Page.Path) {
		return false
	}
	return v.site.answererOf(r) == v.kind
}

// answererOf is what is known of what answers for a page.
func (s *site) answererOf(r *state.Record) kindOfAnswerer {
	if r.Flags&verdict.FlagProxied != 0 {
		if r.Page.Version == 0 && !s.proxied.Load() {
			s.proxied.Store(true) // another configuration knew
		}
		return answersUpstream
	}
	switch {
	case r.Flags&verdict.FlagNoVerdict != 0:
		return answersUpstream // whatever it is, it is slow
	case r.Page.Version == 0 && s.proxied.Load():
		return answersUpstream
	case r.Page.Version != 0 && r.Asked == 0 && s.proxiedFiles.Load():
		// Files, and yet a proxy answered for one.
		if proxied, known := s.proxiedFolders.Load(verdict.Hash(verdict.Folder(r.Page.Path))); !known || proxied.(bool) {
			return answersUpstream
		}
	}
	return answersHere
}

// noteAnswerer takes down what answered for a page.
func (s *site) noteAnswerer(r *state.Record, proxied bool) {
	r.Flags = setFlag(r.Flags, verdict.FlagProxied, proxied)
	if r.Page.Version == 0 {
		if proxied {
			s.proxied.Store(true)
		}
		return
	}
	if proxied {
		s.proxiedFiles.Store(true)
	}
	if s.proxiedFiles.Load() {
		s.proxiedFolders.Store(verdict.Hash(verdict.Folder(r.Page.Path)), proxied)
	}
}

// leave writes down what was answered when asking is to end, for who asks next.
func (v *verification) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	_ = v.write(ctx) // what could not be written is asked for again
}

// write writes down what was answered.
func (v *verification) write(ctx context.Context) error {
	if len(v.answered) == 0 {
		return nil
	}
	paths := make([]string, 0, len(v.answered))
	for path := range v.answered {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	if v.news {
		v.news = false
		defer v.site.hasten(minRefresh)
	}
	err := v.site.shelf.update(ctx, paths, func(r *state.Record) bool {
		answered := v.answered[r.Page.Path]
		if answered == nil || answered.Page.Version != r.Page.Version && answered.Page.Version != 0 {
			return false // it has changed since
		}
		p := r.Page
		if answered.Page.Version == 0 {
			p.Version = 0
		}
		listed := r.Flags & (verdict.FlagListed | verdict.FlagLinked)
		*r = *answered
		r.Page = p
		r.Flags = r.Flags&^(verdict.FlagListed|verdict.FlagLinked) | listed
		return true
	})
	clear(v.answered)
	v.unwritten = time.Time{}
	return err
}
