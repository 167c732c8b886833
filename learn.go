package sitemap

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/evidence"
	"github.com/seed3295b519/caddy-sitemap/internal/files"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/state"
	"github.com/seed3295b519/caddy-sitemap/internal/verdict"
)

const (
	askedFirst   = 10_000          // pages that are asked for before they are listed
	askFirstTime = 8 * time.Second // that this may take: a first request waits for ten
	learnBatch   = 2048
	learnShare   = 16 // pages that a worker takes at a time
)

// learner learns of a site's pages what is not known yet, or no longer: it goes
// through the pages that sources have, in order, and through what is remembered.
type learner struct {
	site     *site
	ctx      context.Context
	now      time.Time
	rules    crawlRules
	students []*student

	cursor *state.Cursor
	old    *state.Record
	draft  *state.Draft

	batch     []lesson
	deadline  time.Time // of asking before a page is listed
	asksLeft  int
	targets   map[string]struct{} // paths that pages name in their own stead
	known     bool                // only targets come: what is remembered stays
	served    bool                // there is a sitemap: nobody waits for upstreams
	anew      bool                // more is wanted of pages than when they were read
	reroute   bool                // the server's routes are others than when pages were asked for
	newDay    bool                // since the pages were listed the last time
	silent    sync.Map            // folders in which a page did not answer
	guardedAs string              // the last folder that guards looked at
	guarded   bool                // whether it is never asked for
	folder    string              // the last that a page was asked for in, or could be
	changed   bool                // the draft says something else than what is remembered
	read      atomic.Int64
}

// lesson is what is to be learnt of one page.
type lesson struct {
	rec       *state.Record
	kept      bool // as it is remembered
	read, ask bool
}

// begin starts with what is remembered.
func (l *learner) begin() (err error) {
	l.old, err = l.cursor.Next()
	return err
}

// close ends what the learner holds.
func (l *learner) close() {
	l.cursor.Close()
	l.draft.Abort()
	dismiss(l.students)
}

// page takes the next page that sources have.
func (l *learner) page(p page.Page) error {
	for l.old != nil && l.old.Page.Path < p.Path {
		if err := l.pass(); err != nil {
			return err
		}
	}
	if l.old == nil || l.old.Page.Path != p.Path {
		return l.add(l.first(p))
	}
	rec := l.old
	var err error
	if l.old, err = l.cursor.Next(); err != nil {
		return err
	}
	if l.known {
		return l.add(lesson{rec: rec, kept: true})
	}
	return l.add(l.again(rec, p, 0))
}

// end takes what is remembered after the last page.
func (l *learner) end() error {
	for l.old != nil {
		if err := l.pass(); err != nil {
			return err
		}
	}
	return l.flush()
}

// pass goes on from a remembered page that no source has.
func (l *learner) pass() (err error) {
	rec := l.old
	if l.old, err = l.cursor.Next(); err != nil {
		return err
	}
	switch {
	case l.known:
		return l.add(lesson{rec: rec, kept: true})
	case rec.Flags&verdict.FlagTarget != 0:
		return l.add(l.again(rec, rec.Page, verdict.FlagTarget)) // which is not one that only links name
	}
	return l.gone(rec)
}

// gone keeps what is known of a page that no source has for a day or two: a
// deployment may take it away for a moment.
func (l *learner) gone(rec *state.Record) error {
	flags := rec.Flags
	switch {
	case flags&verdict.FlagGone == 0:
		flags = flags&^verdict.FlagListed | verdict.FlagGone
	case !l.newDay:
		return l.add(lesson{rec: rec, kept: true})
	case flags&verdict.FlagGoneLong != 0:
		l.changed = true
		return nil
	default:
		flags |= verdict.FlagGoneLong
	}
	changed := *rec
	changed.Flags = flags
	return l.add(lesson{rec: &changed})
}

// first is what is to be learnt of a page that is new.
func (l *learner) first(p page.Page) lesson {
	flags := flagsOf(&p, 0)
	c := lesson{rec: &state.Record{Page: p}, read: p.Version != 0}
	c.rec.Flags = setFlag(flags, verdict.FlagGuarded, l.guards(p.Path))
	if l.known {
		c.rec.Flags |= verdict.FlagTarget
	}
	l.plan(&c)
	return c
}

// again is what is to be learnt of a page that is remembered, target being what of
// verdict.FlagTarget it is to have.
func (l *learner) again(rec *state.Record, p page.Page, target uint16) lesson {
	flags := flagsOf(&p, rec.Flags)
	flags = setFlag(flags&^verdict.FlagTarget|target, verdict.FlagGuarded, l.guards(p.Path))
	flags &^= verdict.FlagGone | verdict.FlagGoneLong
	if l.reroute && rec.Asked != 0 {
		flags |= verdict.FlagDue
	}
	if p.Version == 0 && p.LastMod != rec.Page.LastMod {
		flags |= verdict.FlagDue // its list says that it has changed
	}
	anew := l.anew && flags&verdict.FlagRead != 0
	if p.Version != rec.Page.Version || anew {
		flags |= verdict.FlagDue
	}
	c := lesson{rec: rec, kept: rec.Page == p && rec.Flags == flags}
	c.read = p.Version != 0 && flags&verdict.FlagDynamic == 0 &&
		(p.Version != rec.Page.Version || flags&verdict.FlagRead == 0 || anew)
	if c.kept && !c.read && rec.Asked != 0 {
		return c
	}
	changed := *rec
	changed.Page, changed.Flags = p, flags
	c.rec = &changed
	l.plan(&c)
	return c
}

// flagsOf takes out of a page what its record has as a flag, or elsewhere.
func flagsOf(p *page.Page, flags uint16) uint16 {
	flags = setFlag(flags, verdict.FlagDiscovered, p.Discovered)
	p.Discovered, p.Extensions = false, nil
	return flags
}

// guards is manners.guards for pages in order, most of which share their folder.
func (l *learner) guards(path string) bool {
	m := &l.site.handler.settings.manners
	folder := path[:strings.LastIndexByte(path, '/')+1]
	if strings.Contains(path, "?") {
		return m.guards(path)
	}
	if folder != l.guardedAs {
		l.guardedAs, l.guarded = folder, m.guardsSegments(folder)
	}
	return l.guarded || m.guardsSegments(path[len(folder):]) || m.never.Match(path)
}

// plan decides whether a page is asked for before it is listed: the first ones
// that are new, and the first one of each folder.
func (l *learner) plan(c *lesson) {
	path := c.rec.Page.Path
	if c.rec.Asked != 0 && !l.retries(c.rec) || l.rules.closed || c.rec.Flags&verdict.FlagGuarded != 0 || l.rules.forbid(path) {
		return
	}
	if l.served && l.site.answererOf(c.rec) == answersUpstream {
		return // asked for in the background
	}
	folder := verdict.Folder(path)
	if l.asksLeft <= 0 && folder == l.folder {
		return
	}
	l.folder = folder
	l.asksLeft--
	c.ask = true
}

// retries reports whether a page is the front page from which the others are to be
// found, and has answered with an error so far: the application may have been starting.
func (l *learner) retries(r *state.Record) bool {
	reason := verdict.Reason(r.Answer)
	return !l.served && r.Flags&verdict.FlagDiscovered != 0 && r.Page.Path == l.site.front() &&
		(reason == verdict.Failing || reason == verdict.Unknown)
}

// add takes the next lesson.
func (l *learner) add(c lesson) error {
	if c.kept && !c.read && !c.ask && len(l.batch) == 0 {
		return l.draft.Keep(c.rec)
	}
	if l.batch = append(l.batch, c); len(l.batch) < learnBatch {
		return nil
	}
	return l.flush()
}

// flush learns what is to be learnt of the batch.
func (l *learner) flush() error {
	l.learn()
	if err := l.ctx.Err(); err != nil {
		return err
	}
	for i := range l.batch {
		c := &l.batch[i]
		if c.kept {
			if err := l.draft.Keep(c.rec); err != nil {
				return err
			}
			continue
		}
		l.changed = true
		if c.rec.Canonical != "" && len(l.targets) < maxTargets &&
			(c.rec.Content == uint8(verdict.CanonicalHere) || c.rec.Answer == uint8(verdict.CanonicalHere)) {
			l.targets[c.rec.Canonical] = struct{}{}
		}
		if err := l.draft.Add(c.rec); err != nil {
			return err
		}
	}
	clear(l.batch)
	l.batch = l.batch[:0]
	return nil
}

func (l *learner) learn() {
	var next atomic.Int64
	work := func(st *student) {
		for l.ctx.Err() == nil {
			from := int(next.Add(learnShare)) - learnShare
			if from >= len(l.batch) {
				return
			}
			for i := from; i < min(from+learnShare, len(l.batch)); i++ {
				l.one(st, &l.batch[i])
			}
		}
	}
	var group sync.WaitGroup
	for _, st := range l.students[1:] {
		group.Go(func() { work(st) })
	}
	work(l.students[0])
	group.Wait()
}

func (l *learner) one(st *student, c *lesson) {
	defer st.guard(c.rec.Page.Path)
	if c.read && st.read(c.rec, l.now) {
		c.kept = false
		l.read.Add(1)
	}
	if c.ask && l.site.app.now().Before(l.deadline) {
		l.askOne(st, c)
	}
}

// askOne asks for a page before it is listed, unless its folder has kept others
// waiting.
func (l *learner) askOne(st *student, c *lesson) {
	path := c.rec.Page.Path
	folder := verdict.Hash(path[:strings.LastIndexByte(path, '/')+1])
	if _, silent := l.silent.Load(folder); silent {
		return
	}
	ctx, cancel := context.WithDeadline(l.ctx, l.deadline)
	defer cancel()
	st.silent = false
	if st.ask(ctx, c.rec) && !st.silent {
		c.kept = false
	}
	if st.silent {
		l.silent.Store(folder, nil)
	}
}

// student reads and asks, one page at a time.
type student struct {
	site    *site
	reader  *evidence.Reader
	runner  *runner
	openers []*files.Opener
	buf     []byte

	silent   bool   // the last page that was asked for did not answer
	lastPath string // that was read
	lastSize int64
}

// newStudents returns n students who can open the site's files.
func newStudents(s *site, roots []files.Options, n int) ([]*student, error) {
	var students []*student
	set := s.handler.settings
	for range n {
		st := &student{site: s, runner: newRunner(), reader: evidence.NewReader(evidence.Options{Alternates: set.alternates, Images: set.images})}
		for _, o := range roots {
			opener, err := files.NewOpener(o)
			if err != nil {
				dismiss(append(students, st))
				return nil, err
			}
			st.openers = append(st.openers, opener)
		}
		students = append(students, st)
	}
	return students, nil
}

// dismiss ends what students hold.
func dismiss(students []*student) {
	for _, st := range students {
		st.runner.close()
	}
}

// guard catches what reading a stranger's page may throw: the page stays as it was.
func (st *student) guard(path string) {
	if v := recover(); v != nil {
		st.site.logger.Error("reading a page panicked", zap.String("page", path), zap.Any("panic", v), zap.Stack("stack"))
	}
}

// open reads a page's file; false: there is none, or it has changed since it was
// found.
func (st *student) open(rec *state.Record) ([]byte, bool) {
	for _, o := range st.openers {
		data, info, err := o.ReadFile(rec.Page.Path, st.buf, evidence.MaxBody)
		if cap(data) > cap(st.buf) {
			st.buf = data[:0]
		}
		if err == nil && info.Version == rec.Page.Version {
			st.lastPath, st.lastSize = rec.Page.Path, info.Size
			return data, true
		}
	}
	return nil, false
}

// size is the length of a page's file.
func (st *student) size(rec *state.Record) (int64, bool) {
	if st.lastPath == rec.Page.Path {
		return st.lastSize, true
	}
	for _, o := range st.openers {
		if info, err := o.Stat(rec.Page.Path); err == nil && info.Version == rec.Page.Version {
			return info.Size, true
		}
	}
	return 0, false
}

// read reads a page's file. It reports whether it could.
func (st *student) read(rec *state.Record, now time.Time) bool {
	data, ok := st.open(rec)
	if !ok {
		return false
	}
	e := st.evidence(rec.Page.Path, data, nil, now)
	verdict.Content(rec, &e, st.site.base, true, now)
	return true
}

// evidence is what a document says of itself.
func (st *student) evidence(path string, body []byte, header http.Header, now time.Time) evidence.Evidence {
	if verdict.ExpectsHTML(path) || header != nil && evidence.IsHTML(header.Get("Content-Type")) {
		return st.reader.Read(body, evidence.Page{Base: st.site.base, Path: path, Header: header, Now: now})
	}
	return evidence.Evidence{Whole: true, Fingerprint: evidence.Fingerprint(body)}
}

// ask asks for a page, as gently as what answers needs. It reports whether that
// changed what is known.
func (st *student) ask(ctx context.Context, rec *state.Record) bool {
	s := st.site
	if s.answererOf(rec) == answersUpstream {
		done, err := s.pace.begin(ctx, s.app.now)
		if err != nil {
			return false
		}
		answer := st.question(ctx, rec)
		done(answer)
		if answer != nil {
			s.noteAnswerer(rec, answer.Proxied)
		}
		return ctx.Err() == nil || answer != nil
	}
	answer := st.question(ctx, rec)
	if answer == nil && ctx.Err() != nil {
		return false
	}
	if answer != nil {
		s.noteAnswerer(rec, answer.Proxied)
	}
	return true
}

// question asks for a page and takes the answer down. Nil: there was no answer.
func (st *student) question(ctx context.Context, rec *state.Record) *Answer {
	s := st.site
	if rec.Page.Version != 0 && rec.Flags&(verdict.FlagRead|verdict.FlagDynamic) == verdict.FlagRead {
		paced := s.answererOf(rec) == answersUpstream
		if answer, heard := st.asFile(ctx, rec); heard {
			return answer
		}
		if paced && s.pace.turn(ctx, s.app.now) != nil {
			return nil
		}
	}
	answer, err := s.askPage(ctx, st.runner, http.MethodGet, rec.Page.Path, evidence.MaxBody, conditions(rec))
	if err != nil {
		st.silence(ctx, rec, err)
		return nil
	}
	return st.heard(ctx, rec, answer, st.ofBody(rec, answer))
}

// asFile asks for a page without its body: if the answer has the length of the
// file, the page is what the file says. It reports whether that settled it.
func (st *student) asFile(ctx context.Context, rec *state.Record) (answer *Answer, heard bool) {
	size, ok := st.size(rec)
	if !ok {
		return nil, false
	}
	answer, err := st.site.askPage(ctx, st.runner, http.MethodHead, rec.Page.Path, 0, nil)
	if err != nil {
		st.silence(ctx, rec, err)
		return nil, true
	}
	switch answer.Status {
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return nil, false
	case http.StatusOK:
		if _, typed := answer.Header["Content-Type"]; !typed || answer.Header.Get("Content-Length") != strconv.FormatInt(size, 10) {
			return nil, false
		}
	}
	return st.heard(ctx, rec, answer, nil), true
}

// conditions spare an upstream to send what is known already.
func conditions(rec *state.Record) http.Header {
	if rec.Flags&verdict.FlagProxied == 0 || rec.Flags&verdict.FlagRead == 0 || rec.Suspect != 0 {
		return nil
	}
	header := make(http.Header)
	if rec.ETag != "" {
		header.Set("If-None-Match", rec.ETag)
	}
	if rec.Modified != "" {
		header.Set("If-Modified-Since", rec.Modified)
	}
	return header
}

// ofBody is what the body of an answer says; nil: it cannot be read.
func (st *student) ofBody(rec *state.Record, answer *Answer) *evidence.Evidence {
	encoding := answer.Header.Get("Content-Encoding")
	if answer.Status != http.StatusOK || encoding != "" && encoding != "identity" {
		return nil
	}
	e := st.evidence(rec.Page.Path, answer.Body, answer.Header, st.site.app.now())
	return &e
}

// heard takes an answer down, and returns it. Nil: ctx ended before it was known what it
// means, so that the record is of no account.
func (st *student) heard(ctx context.Context, rec *state.Record, answer *Answer, e *evidence.Evidence) *Answer {
	now, changed := st.site.app.now(), false
	if e != nil {
		changed = verdict.Content(rec, e, st.site.base, false, now)
	}
	status := answer.Status
	if answer.Unhandled {
		status = http.StatusNotFound // nobody means the empty 200 that a visitor gets
	}
	if target, ok := st.site.redirect(rec.Page.Path, answer); ok {
		rec.Details = &state.Details{Links: []string{target}}
	}
	answered := verdict.Answered{Status: status, Header: answer.Header, Page: e}
	switch st.softness(ctx, rec, answer, e) {
	case isSoft:
		answered.SoftNot = true
	case mayBeSoft:
		if ctx.Err() != nil {
			return nil
		}
		answered = verdict.Answered{NoReply: true} // asked for again in an hour
	}
	verdict.Answer(rec, answered, st.site.base, now)
	verdict.Wait(rec, changed)
	return answer
}

// silence takes down that there was no answer, unless that is our own doing.
func (st *student) silence(ctx context.Context, rec *state.Record, err error) {
	late := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errStuck)
	st.silent = late
	if ctx.Err() != nil || late && st.runner.patience != 0 {
		return // asked for again in the background, with more patience
	}
	verdict.Answer(rec, verdict.Answered{NoReply: true}, st.site.base, st.site.app.now())
	verdict.Wait(rec, false)
}
