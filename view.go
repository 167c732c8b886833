package sitemap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/files"
	"github.com/seed3295b519/caddy-sitemap/internal/fleet"
	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

const (
	viewPatience = 5 * time.Second // with the disk or application of a view
	leavePause   = 2 * time.Second // with the storage, when a process stops
	lookShare    = 100             // taking views takes a hundredth of the time at most
	frontLooks   = 3               // looks in which a front page must not change to count
	lookStep     = time.Second     // between two times at which it is found out whether a look is due, at most
)

// Views of what cannot be read. A node whose disk hangs is told from those whose disks do not.
const (
	viewMissing    = "missing"
	viewUnreadable = "unreadable"
)

// viewer takes the views that a process of a fleet has of a site: see [fleet.Member.Look].
type viewer struct {
	slot  wait.Slots // for one view at a time
	last  string     // the view taken last
	at    time.Time  // when that view was told to the others
	files askedFiles // of the site, as of the last view
	front frontView

	reading atomic.Bool // a disk is read for a view, which may have been given up
}

func newViewer() *viewer { return &viewer{slot: wait.NewSlots(1)} }

// frontView is what an application's front page looked like.
type frontView struct {
	at      time.Time // when it was requested last
	text    uint64    // hash of its text
	changed int       // looks for which it does not count, as it has just changed
}

// look takes a view of the site, and tells it to the other processes. every is until the next look; isBefore says that a refresh
// is to begin, for which only a view counts that has changed. It returns for how long the disk or application was used.
func (s *site) look(ctx context.Context, every time.Duration, isBefore bool) (took time.Duration) {
	v := s.viewer
	if !v.slot.Take(ctx) {
		return 0
	}
	defer v.slot.Release()
	begun := s.app.now()
	view := s.view(ctx, every)
	now := s.app.now()
	took = now.Sub(begun)
	if ctx.Err() != nil {
		return took
	}
	// There is nothing to compare.
	if view == "" && v.last == "" {
		return took
	}
	if isBefore && view == v.last && now.Sub(v.at).Abs() < every {
		return took
	}
	err := s.state.fleet.Look(ctx, view, every)
	if ctx.Err() == nil {
		s.logState("looking", err)
	}
	// What the others see is not known: this process must not take itself for the majority. It looks again before it refreshes the
	// site.
	if err != nil {
		return took
	}
	v.last = view
	v.at = now
	s.warnOfViews()
	return took
}

// view returns a digest of what this process sees of the site: a sample of the files, or else an application's front page. "":
// there is neither.
func (s *site) view(ctx context.Context, every time.Duration) string {
	ctx, cancel := context.WithTimeout(ctx, viewPatience)
	defer cancel()
	folders, isFound := s.viewedFolders(ctx)
	if !isFound {
		return viewUnreadable
	}
	if len(folders) == 0 {
		return s.viewFront(ctx, every)
	}
	var sums []any
	for _, o := range folders {
		sums = append(sums, s.viewFolder(ctx, o))
	}
	return fmt.Sprintf("%016x", digestOf(sums...))
}

// viewFolder returns the digest of a folder, or why there is none. A disk that hangs holds up nothing but this look, and one
// goroutine.
func (s *site) viewFolder(ctx context.Context, o files.Options) string {
	if !s.viewer.reading.CompareAndSwap(false, true) {
		return viewUnreadable
	}
	type result struct {
		sum uint64
		err error
	}
	results := make(chan result, 1)
	s.fetcher.onDisk(ctx, func() {
		defer s.viewer.reading.Store(false)
		sum, err := files.Sample(ctx, o)
		results <- result{sum, err}
	})
	select {
	case r := <-results:
		if errors.Is(r.err, fs.ErrNotExist) {
			return viewMissing
		}
		if r.err == nil {
			return fmt.Sprintf("%016x", r.sum)
		}
	default:
	}
	return viewUnreadable
}

// viewedFolders returns the folders of the files sources, as this process has them: the root that another one has found may be
// another release. False: the routes do not tell.
func (s *site) viewedFolders(ctx context.Context) (folders []files.Options, ok bool) {
	v := s.viewer
	now := s.app.now()
	isKnown := isRecent(v.files.asked, now, s.handler.settings.interval)
	_, found, _, err := s.fetcher.findFiles(ctx, v.files, isKnown, now)
	if err != nil {
		return nil, false
	}
	v.files = found
	probed := s.lastProbe()
	probed.siteFiles = found.siteFiles
	source, err := newRefresh(s, probed, now)
	if err != nil {
		return nil, false
	}
	return source.servedFolders(), true
}

// viewFront returns a digest of an application's front page. One that changes does not count for a while: it may never be the
// same twice.
func (s *site) viewFront(ctx context.Context, every time.Duration) string {
	front := &s.viewer.front
	now := s.app.now()
	isDue := front.at.IsZero() || now.Sub(front.at).Abs() >= every-every/4
	if !isDue {
		return front.view()
	}
	res, _ := s.fetcher.fetchFront(ctx)
	text, isFront := s.frontText(res)
	isFirst := front.at.IsZero()
	front.at = now
	if !isFront {
		*front = frontView{at: now}
		return ""
	}
	front.changed = max(front.changed-1, 0)
	if text != front.text && !isFirst {
		front.changed = frontLooks
	}
	front.text = text
	return front.view()
}

// view returns the view that the front page makes.
func (f *frontView) view() string {
	if f.text == 0 || f.changed > 0 {
		return ""
	}
	return fmt.Sprintf("%016x", f.text)
}

// frontText returns a hash of the text that a reader of the front page sees, or of what it leads to. False: no application
// has returned it.
func (s *site) frontText(res *crawl.Response) (text uint64, ok bool) {
	if res == nil || !res.Made || !page.IsConclusive(res.Status) {
		return 0, false
	}
	if res.Status != http.StatusOK || !html.IsHTML(res.Header.Get("Content-Type")) {
		return digestOf(res.Status, res.Header.Get("Location")), true
	}
	at := html.Page{Base: s.origin, Path: s.prefix + "/", Header: res.Header}
	meta := html.Parse(res.Body, at)
	return cmp.Or(meta.Text, 1), true
}

// warnOfViews says once which nodes see another site than is listed.
func (s *site) warnOfViews() {
	j := s.state.fleet.Judge()
	s.logger.OnceIf(len(j.Apart) > 0, zap.WarnLevel, "views",
		"nodes see other files, or another front page, than is listed: deploy the same site to all nodes",
		zap.Strings("nodes", j.Apart))
}

// lookEvery is the time between two looks, of which the last one took so long. While removals wait for a second node that sees
// them, all look sooner.
func (s *site) lookEvery(took time.Duration) time.Duration {
	every := 2 * s.handler.settings.interval
	if s.published().history.Last.Reason == reasonUnseen {
		every = min(every, s.handler.settings.interval/2)
	}
	return max(every, lookShare*took)
}

// compareViews takes views of the site, and plans the refreshes that follow, until the site is stopped.
func (s *site) compareViews() {
	member := s.state.fleet
	var last time.Time
	var took time.Duration
	vote := fleet.Free
	step := min(lookStep, s.handler.settings.interval/2)
	for {
		// Nodes that start together would look together for ever, and one overwrite the entry of another.
		isOver := !sleep(s.ctx, step*3/4+rand.N(step/2))
		if isOver {
			break
		}
		isIdle := s.app.isSuperseded() || s.main.Load() != nil || s.published().snapshot == nil
		now := s.app.now()
		every := s.lookEvery(took)
		if isIdle || !last.IsZero() && now.Sub(last).Abs() < every {
			continue
		}
		// A storage that is slow is no reason to look less often: the others would take this node for gone.
		took = s.look(s.ctx, every, false)
		last = now
		next := member.Judge().Vote
		if next != vote && !member.IsEmpty() && s.ctx.Err() == nil {
			s.plan(prospects{now: s.app.now(), shared: true, sharedDue: member.DueFor(s.standing())})
			s.schedule.Notify()
		}
		vote = next
	}
	s.leave()
}

// leave tells the other processes that this one stops: else its view would count for a while. After a reload it goes on.
func (s *site) leave() {
	if s.app.isSuperseded() || s.published().snapshot == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leavePause)
	defer cancel()
	_ = s.state.fleet.Leave(ctx)
}

// sleep waits for so long; false: ctx has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	_, hasEnded := wait.Within(d, ctx.Done())
	return !hasEnded && ctx.Err() == nil
}
