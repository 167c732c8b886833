package sitemap

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed3295b519/caddy-sitemap/internal/crawl"
	"github.com/seed3295b519/caddy-sitemap/internal/document"
	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
	"github.com/seed3295b519/caddy-sitemap/internal/merge"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
	"github.com/seed3295b519/caddy-sitemap/internal/schedule"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// TestIsCurrent: pages are selected again where the result may be another one.
func TestIsCurrent(t *testing.T) {
	empty := record.New(record.NewMemory(), "")
	g := empty.Last()
	same := publication{snapshot: listing(1), generation: g, selectedBy: 1}
	for name, test := range map[string]struct {
		change func(p *publication)
		goesOn bool
		want   bool
	}{
		"nothing has changed":                         {func(*publication) {}, false, true},
		"nothing has changed, and it goes on":         {func(*publication) {}, true, true},
		"nothing is served":                           {func(p *publication) { p.snapshot = nil }, false, false},
		"other settings":                              {func(p *publication) { p.selectedBy = 2 }, false, false},
		"a loss is to be confirmed":                   {func(p *publication) { p.history.Since = batch }, false, false},
		"a loss is to be confirmed, and it goes on":   {func(p *publication) { p.history.Since = batch }, true, false},
		"records were lost":                           {func(p *publication) { p.history.Lost = batch }, false, false},
		"dates are to be decided":                     {func(p *publication) { p.history.Partial = true }, false, false},
		"dates are to be decided, but not yet":        {func(p *publication) { p.history.Partial = true }, true, true},
		"dates are due":                               {func(p *publication) { p.history.DatesDue = batch }, false, false},
		"dates are due later":                         {func(p *publication) { p.history.DatesDue = batch.Add(1) }, false, true},
		"it is not known from which it was selected":  {func(p *publication) { p.generation = nil }, false, false},
		"a source cannot be read, as the time before": {func(p *publication) { p.history.Unread = map[int]string{0: "files"} }, false, true},
	} {
		p := same
		test.change(&p)
		if got := p.isCurrent(g, 1, test.goesOn, batch); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// TestIsSame: only what other processes do not know yet is committed as something new.
func TestIsSame(t *testing.T) {
	held := outcome.Outcome{Result: outcome.HeldBack, Reason: "few"}
	unchanged := outcome.Outcome{Result: outcome.Unchanged}
	made := indexing.Result{Generation: new(record.Generation)}
	for name, test := range map[string]struct {
		out   report.Refresh
		isOff bool
		want  bool
	}{
		"nothing has changed":                  {report.Refresh{Outcome: unchanged}, false, true},
		"selected again":                       {report.Refresh{Outcome: unchanged, Selected: made}, false, false},
		"selected again, with crawl off":       {report.Refresh{Outcome: unchanged, Selected: made}, true, true},
		"held back as before":                  {report.Refresh{Outcome: held}, false, true},
		"held back as before, other documents": {report.Refresh{Outcome: held, Changed: true}, false, false},
		"held back for another reason":         {report.Refresh{Outcome: outcome.Outcome{Result: outcome.HeldBack}}, false, false},
	} {
		s := newBench(t, nil).site("named.example")
		s.handler.settings.crawl.Off = test.isOff
		r := &refreshing{served: new(publication)}
		r.served.history.Last = held
		if got := s.isSame(r, &test.out); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// TestTimeLimit: a step of the crawl takes at least as long as what follows it, and waits for moments while requests wait.
func TestTimeLimit(t *testing.T) {
	const usual = fetchTimeout + fetchGrace
	crawled := crawl.Result{Generation: new(record.Generation)}
	for name, test := range map[string]struct {
		r        refreshing
		serves   bool
		want     time.Duration
		patience time.Duration
	}{
		"requests wait":                     {refreshing{step: firstPublication}, false, firstPublication, 2 * time.Second},
		"requests wait, later":              {refreshing{step: 4 * firstPublication}, false, 4 * firstPublication, 2 * time.Second},
		"nothing is served":                 {refreshing{step: firstPublication, wasReady: true}, false, firstPublication, 2 * time.Second},
		"nothing is served, later":          {refreshing{step: 2 * firstPublication, wasReady: true, crawled: crawled}, false, 2 * firstPublication, usual},
		"something is served":               {refreshing{step: firstPublication, wasReady: true}, true, firstPublication, usual},
		"no step is longer than a refresh":  {refreshing{step: time.Hour, wasReady: true}, true, time.Minute, usual},
		"selecting has cost more":           {refreshing{step: firstPublication, cost: 2 * time.Minute, wasReady: true}, true, 2 * time.Minute, usual},
		"building took more than half":      {refreshing{step: 10 * time.Second, built: 6 * time.Second, wasReady: true}, true, 12 * time.Second, usual},
		"building took less than half":      {refreshing{step: 10 * time.Second, built: 4 * time.Second, wasReady: true}, true, 10 * time.Second, usual},
		"building takes more than it costs": {refreshing{step: firstPublication, cost: 5 * time.Second, built: 4 * time.Second, wasReady: true}, true, 8 * time.Second, usual},
	} {
		b := newBench(t, nil)
		s := b.site("named.example")
		test.r.served = new(publication)
		if test.serves {
			test.r.served = &publication{snapshot: listing(1)}
		}
		got := s.timeLimit(&test.r)
		if got.Until.Sub(b.clock) != test.want || got.Patience != test.patience || got.Stop != s.ctx {
			t.Errorf("%s: got %s, patience %s, want %s, %s", name, got.Until.Sub(b.clock), got.Patience, test.want, test.patience)
		}
	}
}

// TestCrawlTime: a crawl ends after an interval. Requests wait for a first sitemap as long as they can, and no operator
// waits longer.
func TestCrawlTime(t *testing.T) {
	for name, test := range map[string]struct {
		interval         time.Duration
		serves, demanded bool
		want             time.Duration
	}{
		"a first sitemap":                       {time.Minute, false, false, time.Minute},
		"a first sitemap, demanded":             {time.Minute, false, true, time.Minute},
		"a first sitemap, of a short interval":  {time.Second, false, false, firstWait},
		"another one":                           {time.Minute, true, false, time.Minute},
		"another one, demanded":                 {time.Minute, true, true, firstWait},
		"another one, of a short interval":      {time.Second, true, false, time.Second},
		"another one, of it, which is demanded": {time.Second, true, true, time.Second},
	} {
		b := newBench(t, func(h *Handler) { h.RefreshInterval = caddy.Duration(test.interval) })
		s := b.site("named.example")
		s.serve(nil)
		if test.serves {
			s.serve(listing(1))
		}
		records, err := s.state.records.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r := s.newRefreshing(records, new(probeResult), test.demanded)
		if err := s.gather(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		r.candidates.Close()
		records.Release()
		if got := r.until.Sub(b.clock); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
		if r.selectedBy == s.digest() {
			t.Error("where the files are does not count")
		}
	}
}

// TestCircumstances: what a decision depends on comes from the crawl, the settings and the history.
func TestCircumstances(t *testing.T) {
	for name, test := range map[string]struct {
		change func(r *refreshing, h *Handler)
		want   func(c *circumstances)
	}{
		"nothing":              {func(*refreshing, *Handler) {}, func(*circumstances) {}},
		"it goes on":           {func(r *refreshing, _ *Handler) { r.goesOn = true }, func(c *circumstances) { c.goesOn = true }},
		"all candidates":       {func(r *refreshing, _ *Handler) { r.crawled.Gathered = true }, func(c *circumstances) { c.gathered = true }},
		"requests wait":        {func(r *refreshing, _ *Handler) { r.until = r.batch.Add(1) }, func(c *circumstances) { c.hasTime = true }},
		"requests wait not":    {func(r *refreshing, _ *Handler) { r.until = r.batch }, func(*circumstances) {}},
		"an operator":          {func(r *refreshing, _ *Handler) { r.demanded = true }, func(c *circumstances) { c.demanded = true }},
		"crawl off":            {func(_ *refreshing, h *Handler) { h.settings.crawl.Off = true }, func(c *circumstances) { c.crawlOff = true }},
		"settings":             {func(r *refreshing, _ *Handler) { r.selectedBy = 7 }, func(c *circumstances) { c.selectedBy = 7 }},
		"records were lost":    {func(r *refreshing, _ *Handler) { r.crawled.Lost = true }, func(c *circumstances) { c.lost = true }},
		"they were, and other": {func(r *refreshing, _ *Handler) { r.served.history.Lost = r.batch }, func(c *circumstances) { c.lost = true }},
	} {
		b := newBench(t, nil)
		s := b.site("named.example")
		r := &refreshing{batch: b.clock, served: new(publication), candidates: merge.Start(t.Context(), nil, merge.Options{})}
		test.change(r, b.handler)
		want := circumstances{now: b.clock}
		test.want(&want)
		if got := s.circumstances(r); got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
		r.candidates.Close()
	}
}

// TestUnread names those sources that fail, and could be read before.
func TestUnread(t *testing.T) {
	failed := []merge.InputError{{Input: 0, Name: "files", Err: fs.ErrPermission}, {Input: 1, Name: "urls", Err: fs.ErrPermission}}
	for name, test := range map[string]struct {
		h    outcome.History
		want []string
	}{
		"nothing was confirmed": {outcome.History{}, nil},
		"all could be read":     {outcome.History{Confirmed: batch}, []string{"files", "urls"}},
		"one could not":         {outcome.History{Confirmed: batch, Unread: map[int]string{0: "files"}}, []string{"urls"}},
		"none could":            {outcome.History{Confirmed: batch, Unread: map[int]string{0: "files", 1: "urls"}}, nil},
	} {
		got := newFailed(test.h, failed)
		for _, source := range []string{"files", "urls"} {
			isNamed := strings.Contains(strings.Join(test.want, " "), source)
			if strings.Contains(got, source) != isNamed {
				t.Errorf("%s: got %q, want %q", name, got, test.want)
			}
		}
	}
}

// TestConclude: the next refresh is planned after each; the next configuration goes on from the plan only where nothing is
// to be confirmed, and it looks at the site in the same way.
func TestConclude(t *testing.T) {
	for name, test := range map[string]struct {
		o    outcome.Outcome
		goes bool
	}{
		"published":                 {outcome.Outcome{Result: outcome.Published}, true},
		"unchanged":                 {outcome.Outcome{Result: outcome.Unchanged}, true},
		"a source cannot be read":   {outcome.Outcome{Result: outcome.HeldBack, Reason: "unread"}, true},
		"a loss is to be confirmed": {outcome.Outcome{Result: outcome.HeldBack, Reason: "few", Since: batch}, false},
		"empty":                     {outcome.Outcome{Result: outcome.Empty}, false},
		"failed":                    {outcome.Fail(errors.New("broken")), false},
		"superseded":                {outcome.Outcome{Result: outcome.Superseded}, false},
		"alias":                     {outcome.Outcome{Result: outcome.Alias}, false},
	} {
		b := newBench(t, nil)
		s := b.site("named.example")
		s.serve(listing(1))
		s.amend(func(p *publication) { p.probed = new(probeResult) })
		s.conclude(&report.Refresh{Outcome: test.o}, b.clock)
		want := b.clock.Add(time.Minute)
		due := s.schedule.Due()
		if !due.Equal(want) || s.published().next.due.Equal(want) != test.goes || test.goes == s.published().next.due.IsZero() {
			t.Errorf("%s: due %s, and the next configuration goes on from %+v", name, due, s.published().next)
		}

		// The next one has the same plan, and what the last probe found. With other settings it probes the site at once.
		next := newBench(t, nil)
		next.clock = b.clock.Add(time.Second)
		other := next.site("named.example")
		due = other.schedule.Due()
		isPlanned := due.Equal(want)
		if isPlanned != test.goes || wait.IsDone(other.wasProbed) != test.goes || (other.probed.Load() != nil) != test.goes {
			t.Errorf("%s: the next configuration is due at %s, with %+v", name, due, other.probed.Load())
		}
		changed := newBench(t, nil)
		changed.handler.settings.digest = 7
		if due := changed.site("named.example").schedule.Due(); !due.Equal(changed.clock) {
			t.Errorf("%s: with other settings, it is due at %s", name, due)
		}
	}
}

// TestPlanWhileRefreshing: a configuration that starts while one of the other refreshes the site begins at once. A refresh that
// does not come to its end changes nothing else, however often.
func TestPlanWhileRefreshing(t *testing.T) {
	b := newBench(t, nil)
	s := b.site("named.example")
	b.wantPages(s, 1)
	if s.published().next.due.IsZero() {
		t.Error("there is no plan after a refresh")
	}
	names := b.source
	b.source = func(ctx context.Context, r *Refresh, yield func(Page) error) error {
		if next := s.published().next; next != (nextRefresh{}) {
			t.Errorf("a refresh runs, and the next is planned: %+v", next)
		}
		return names(ctx, r, yield)
	}
	b.wantPages(s, 1)
	want := s.published().snapshot
	b.app.fetchers[b.handler.server].routes = broken
	for range 15 {
		b.refresh(s)
	}
	if n := b.logged("sitemap refresh failed; the published sitemap stays"); n != 1 || s.published().snapshot != want {
		t.Errorf("logged %d times, %d pages are served", n, pagesOf(s.published().snapshot))
	}
	if got := s.published(); got.next != (nextRefresh{}) || got.history.Last.Result != outcome.Failed || got.report.Result != outcome.Failed {
		t.Errorf("after one that failed: %+v, %+v", got.next, got.history)
	}
}

// TestReadyAfterFailure: requests wait no longer once it is known that there is nothing, and go on waiting while it is not.
func TestReadyAfterFailure(t *testing.T) {
	b := newBench(t, nil)
	s := b.site("named.example")
	end := b.supersede()
	s.run()
	end()
	if wait.IsDone(s.ready) {
		t.Error("another configuration refreshes the site, and requests do not wait for it")
	}
	b.app.fetchers[b.handler.server].routes = broken
	s.run()
	if !wait.IsDone(s.ready) {
		t.Error("requests wait on after a refresh that failed")
	}
}

// TestUnsaved: what could not be written is written by the next refresh, though that finds nothing new; else nothing is.
func TestUnsaved(t *testing.T) {
	disk := &writes{Storage: record.NewMemory()}
	b := newBench(t, nil)
	s := b.site("named.example")
	s.state.records = record.New(disk, "site")
	for i, step := range []struct {
		err  error
		want bool // something is written
	}{{fs.ErrPermission, true}, {fs.ErrPermission, true}, {nil, true}, {nil, false}, {nil, false}} {
		disk.err = step.err
		disk.n = 0
		b.wantPages(s, 1)
		if (disk.n > 0) != step.want {
			t.Errorf("refresh %d: %d objects are written", i, disk.n)
		}
	}
	off := newBench(t, func(h *Handler) { h.Crawl = &Crawl{Off: true} })
	disk.n = 0
	s = off.site("visited.example")
	s.state.records = record.New(disk, "site")
	off.wantPages(s, 1)
	if disk.n > 0 {
		t.Errorf("with crawl off, %d objects are written", disk.n)
	}
}

// writes is a storage that counts what is written, and may fail then.
type writes struct {
	record.Storage
	err error
	n   int
}

func (w *writes) Store(ctx context.Context, key string, value []byte) error {
	w.n++
	if w.err != nil {
		return w.err
	}
	return w.Storage.Store(ctx, key, value)
}

// IsBounded says that it never hangs.
func (*writes) IsBounded() {}

// TestNamesAfterLoss: a site that lists nothing any more keeps the names of its documents, for when it does again.
func TestNamesAfterLoss(t *testing.T) {
	b := newBench(t, nil)
	s := b.site("named.example")
	first := b.wantPages(s, 1)
	lists := b.pages
	b.pages = status(http.StatusForbidden)
	b.wantPages(s, 0)
	if got := s.published(); got.lastSnapshot != first || got.report.Result != outcome.Empty {
		t.Errorf("got %p, want %p: %+v", got.lastSnapshot, first, got.report)
	}
	b.pages = lists
	b.wantPages(s, 1)
}

// TestUnreadFromTheStart: a source that could never be read holds nothing back.
func TestUnreadFromTheStart(t *testing.T) {
	b := newBench(t, nil)
	b.handler.sources = []input{guest{b, b}, sourceFunc(func(func(page.Page) error) error { return fs.ErrPermission })}
	s := b.site("named.example")
	for range 3 {
		b.wantPages(s, 1)
		got := s.published().history
		_, isUnread := got.Unread[1]
		if got.Last.Result == outcome.HeldBack || !isUnread {
			t.Errorf("got %+v", got)
		}
	}
}

// broken is a server whose routes panic.
var broken = caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { panic("broken") })

// TestSupersededSteps: a configuration that was superseded meanwhile publishes nothing, and does no work for it.
func TestSupersededSteps(t *testing.T) {
	other := &publication{site: "http://named.example/sitemap.xml", snapshot: listing(7)}
	for step, test := range map[string]struct {
		comes func(s *site)
		want  func(before *publication) *publication
		never string // the step that does not follow
	}{
		"crawl":         {func(*site) { latest.Store(configurations.Add(1)) }, func(p *publication) *publication { return p }, "build"},
		"circumstances": {func(*site) { latest.Store(configurations.Add(1)) }, func(p *publication) *publication { return p }, "result"},
		"result":        {func(s *site) { s.state.published.Store(other) }, func(*publication) *publication { return other }, ""},
	} {
		b := newBench(t, nil)
		s := b.site("named.example")
		s.serve(nil)
		b.wantPages(s, 1)
		b.lists("/a", "/b")
		b.app.number = configurations.Add(1)
		was := latest.Load()
		before := s.published()
		b.app.now = func() time.Time {
			at := caller()
			if at == step {
				before = s.published()
				test.comes(s)
				step += ", which is past"
			}
			if test.never != "" && at == test.never && strings.HasSuffix(step, "past") {
				t.Errorf("%s: it goes on with %s", step, at)
			}
			return b.clock
		}
		b.clock = b.clock.Add(time.Hour)
		out := s.refresh(t.Context(), false)
		latest.Store(was)
		if out.Result != outcome.Superseded || s.published() != test.want(before) {
			t.Errorf("%s: got %+v, and %d pages are served", step, out, pagesOf(s.published().snapshot))
		}
	}
}

// TestStopWithoutTurn: a site on demand that waits for its turn stops.
func TestStopWithoutTurn(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		s := b.site("waiting.example")
		for range firstLooksAtOnce {
			b.handler.firstLooks.Take(t.Context(), schedule.Fresh, nil)
		}
		b.app.group.Go(s.refreshWhenDue)
		time.Sleep(time.Second)
		_ = b.app.Stop()
		if s.published().snapshot != nil {
			t.Error("it is refreshed without a turn")
		}
	})
}

// TestPublicationOf: the next refresh, configuration and process learn from a publication what they need to know.
func TestPublicationOf(t *testing.T) {
	selected := indexing.Result{Generation: new(record.Generation)}
	for name, test := range map[string]struct {
		before outcome.History
		out    report.Refresh
		lost   bool // records, in this refresh
		want   outcome.History
	}{
		"pages were selected":                    {out: report.Refresh{Selected: selected}},
		"a part":                                 {out: report.Refresh{Selected: selected, Partial: true}, want: outcome.History{Partial: true}},
		"a part that changes nothing":            {out: report.Refresh{Partial: true}},
		"nothing changes after a part":           {before: outcome.History{Partial: true}, want: outcome.History{Partial: true}},
		"pages were selected again":              {before: outcome.History{Partial: true}, out: report.Refresh{Selected: selected}},
		"records were lost":                      {out: report.Refresh{Selected: selected}, lost: true, want: outcome.History{Lost: batch}},
		"they were lost before, and are no more": {before: outcome.History{Lost: batch.Add(-lostFor)}, out: report.Refresh{Selected: selected}},
	} {
		b := newBench(t, nil)
		s := b.site("named.example")
		r := &refreshing{start: batch, batch: batch, served: &publication{history: test.before, built: time.Hour}, built: time.Second}
		r.crawled.Lost = test.lost
		next := s.publicationOf(r, &test.out)
		if got := next.history; got.Partial != test.want.Partial || !got.Lost.Equal(test.want.Lost) {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
		if next.built != time.Second {
			t.Errorf("%s: building took %s", name, next.built)
		}
	}
}

// TestPublishedAt: documents were modified when they were built, by the clock of the batch.
func TestPublishedAt(t *testing.T) {
	start := time.Date(2026, 5, 1, 12, 0, 0, 100_000_000, time.UTC)
	batch := start.Truncate(time.Second)
	for name, test := range map[string]struct {
		after time.Duration
		want  time.Duration // after batch, in whole seconds
	}{
		"a part":                 {1500 * time.Millisecond, time.Second},
		"the end much later":     {time.Minute, time.Minute},
		"the clock was set back": {-time.Hour, 0},
	} {
		r := &refreshing{start: start, batch: batch}
		got := r.publishedAt(start.Add(test.after)).Truncate(time.Second)
		if want := batch.Add(test.want); !got.Equal(want) {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// TestCostOfFailedSource: waiting for a source that fails in the end is no cost, which would put off the next refresh.
func TestCostOfFailedSource(t *testing.T) {
	const slow = 30 * time.Second
	for name, test := range map[string]struct {
		err  error
		want time.Duration
	}{"it can be read": {nil, slow}, "it fails": {fs.ErrPermission, 0}} {
		inBubble(t, func(t *testing.T, b *bench) {
			s := b.site("named.example")
			s.run()
			b.handler.sources = append(b.handler.sources, sourceFunc(func(func(page.Page) error) error {
				time.Sleep(slow)
				return test.err
			}))
			out := s.refresh(t.Context(), false)
			if out.Crawled.Fetched > 0 || out.Cost != test.want {
				t.Errorf("%s: %d pages are fetched, and it costs %s", name, out.Crawled.Fetched, out.Cost)
			}
		})
	}
}

// TestRestorePublication: what is stored is served where nothing newer is, and its history is known.
func TestRestorePublication(t *testing.T) {
	served := listing(1)
	stored := listing(2)
	before := &publication{snapshot: served, lastSnapshot: served, selectedBy: 1, report: new(report.Report)}
	for name, test := range map[string]struct {
		before            *publication
		stored            *document.Set
		isShared, isOther bool // by other settings
		isServed, isTold  bool
		wantNames         *document.Set
	}{
		"after a restart":                        {before: new(publication), stored: stored, isServed: true, isTold: true, wantNames: stored},
		"nothing was listed":                     {before: new(publication), isTold: true},
		"other settings":                         {before: new(publication), stored: stored, isOther: true, isTold: true, wantNames: stored},
		"it serves already":                      {before: before, stored: stored, wantNames: served},
		"it has served":                          {before: &publication{lastSnapshot: served, report: new(report.Report)}, stored: stored, isServed: true, wantNames: stored},
		"another process":                        {before: new(publication), stored: stored, isShared: true, isServed: true, isTold: true, wantNames: stored},
		"another process, while this one serves": {before: before, stored: stored, isShared: true, isServed: true, isTold: true, wantNames: stored},
		"another process lists nothing any more": {before: before, isShared: true, isServed: true, isTold: true, wantNames: served},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			s := b.site("named.example")
			if test.isShared {
				_, s = sharing(t, record.NewMemory())
			}
			test.before.site = s.sitemap
			s.state.published.Store(test.before)
			m := meta{Sitemap: s.sitemap, Settings: s.digest(), Selected: 2, History: outcome.History{Confirmed: batch}, Report: new(report.Report)}
			if test.isOther {
				m.Settings++
			}
			records := new(record.Generation)
			s.restorePublication(t.Context(), test.before, test.stored, m, records)
			got := s.published()
			want := *test.before
			if test.isServed {
				want.snapshot = test.stored
				want.selectedBy = m.Selected
				want.generation = records
			}
			if got.snapshot != want.snapshot || got.selectedBy != want.selectedBy || got.generation != want.generation || wait.IsDone(s.ready) != test.isServed {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if got.lastSnapshot != test.wantNames {
				t.Errorf("got the names of %p, want %p", got.lastSnapshot, test.wantNames)
			}
			if isTold := got.report == m.Report && got.history.Confirmed.Equal(batch) && got.probed != nil; isTold != test.isTold {
				t.Errorf("got %+v, %+v", got.history, got.report)
			}
		})
	}
}

// supersede has another configuration start, until the function is called that it returns.
func (b *bench) supersede() (end func()) {
	number := b.app.number
	b.app.number = configurations.Add(1)
	b.app.before = latest.Swap(configurations.Add(1))
	return func() {
		latest.Store(b.app.before)
		b.app.number = number
	}
}

// TestFailMeanwhile: that a refresh failed is noted of what is served by then. A configuration that was superseded tells
// nothing.
func TestFailMeanwhile(t *testing.T) {
	b := newBench(t, nil)
	s := b.site("named.example")
	b.app.now = func() time.Time {
		s.serve(listing(7))
		return b.clock
	}
	s.fail(failed(errors.New("broken")), b.clock)
	if got := s.published(); pagesOf(got.snapshot) != 7 || got.history.Last.Result != outcome.Failed || b.logs.Len() != 1 {
		t.Errorf("got %+v, logs %v", got, b.logs.All())
	}
	defer b.supersede()()
	before := s.published()
	s.fail(failed(errors.New("broken otherwise")), b.clock)
	if s.published() != before || b.logs.Len() != 1 {
		t.Errorf("superseded: got %+v, logs %v", s.published(), b.logs.All())
	}
}

// TestTroubleEvents: that a refresh fails or holds something back is an event, once for each reason.
func TestTroubleEvents(t *testing.T) {
	held := outcome.Outcome{Result: outcome.HeldBack, Reason: "broken"}
	broken := outcome.Fail(errors.New("broken"))
	for name, test := range map[string]struct {
		before, last outcome.Outcome
		want         int
	}{
		"it fails":                           {outcome.Outcome{Result: outcome.Published}, broken, 1},
		"it fails again":                     {broken, broken, 0},
		"it fails otherwise":                 {outcome.Fail(errors.New("gone")), broken, 1},
		"it holds back":                      {outcome.Outcome{Result: outcome.Published}, held, 1},
		"it holds back again":                {held, held, 0},
		"it fails after it held back for it": {held, broken, 1},
		"it holds back for why it failed":    {broken, held, 1},
		"it works again":                     {broken, outcome.Outcome{Result: outcome.Published}, 0},
		"it lists nothing":                   {held, outcome.Outcome{Result: outcome.Empty, Reason: "other"}, 0},
	} {
		b := newBench(t, nil)
		s := b.site("named.example")
		s.log(&report.Refresh{Outcome: test.last}, &publication{history: outcome.History{Last: test.before}}, &publication{report: new(report.Report)})
		if got := len(b.app.events.queue); got != test.want {
			t.Errorf("%s: %d events, want %d", name, got, test.want)
		}
	}
}

// TestStoppedTells: of a refresh that ends while the site is being stopped, nothing is logged.
func TestStoppedTells(t *testing.T) {
	for _, isStopped := range []bool{false, true} {
		b := newBench(t, nil)
		s := b.site("named.example")
		s.serve(nil)
		b.app.now = func() time.Time {
			if isStopped && caller() == "result" {
				b.app.cancel()
			}
			return b.clock
		}
		out := s.refresh(t.Context(), false)
		isLogged := b.logged("sitemap refreshed") > 0
		if out.Result != outcome.Published || isLogged == isStopped {
			t.Errorf("stopped: %t: got %+v, logs %v", isStopped, out.Outcome, b.logs.All())
		}
	}
}

// TestAliasNoMore: a site that was an alias until now is refreshed at once.
func TestAliasNoMore(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		b := newBench(t, func(h *Handler) { h.mounts = mounts{{hosts: []string{"a.example", "www.a.example"}}} })
		b.app.now = time.Now
		apex := b.site("a.example")
		www := b.site("www.a.example")
		www.setProbed()
		apex.settle(t.Context(), new(probeResult), nil)
		www.settle(t.Context(), new(probeResult), nil)
		if www.main.Load() != apex {
			t.Fatal("it is no alias")
		}
		www.schedule.At(time.Now().Add(time.Hour))
		b.app.group.Go(www.refreshWhenDue)
		synctest.Wait()
		apex.settle(t.Context(), &probeResult{blocked: reasonUnreached}, nil)
		time.Sleep(time.Second)
		if pagesOf(www.published().snapshot) != 1 {
			t.Error("it is not refreshed yet")
		}
		_ = b.app.Stop()
	})
}

// TestRestoreDamaged: of what is stored and damaged, nothing is served or believed, and when it was lost is noted.
func TestRestoreDamaged(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *bench) {
		defer latest.Store(latest.Load())
		w := newStepper(t)
		b, s := w.configure(numbered(8))
		s.run()
		w.stop(b)
		w.site = nil
		w.least = 0
		for key := range w.values {
			if kindOf(key) == "an object" {
				w.values[key] = []byte("damaged")
			}
		}
		b, s = w.configure(numbered(8))
		restore(t, s)
		got := s.published()
		if got.snapshot != nil || got.report != nil || !got.history.Lost.Equal(time.Now()) || wait.IsDone(s.ready) {
			t.Errorf("got %+v", got)
		}
		w.stop(b)
	})
}

// TestAmendMeanwhile: what is published while another copy is made is amended in its place.
func TestAmendMeanwhile(t *testing.T) {
	s := newBench(t, nil).site("named.example")
	other := &publication{site: s.sitemap, snapshot: listing(7)}
	isFirst := true
	before, next := s.amend(func(p *publication) {
		if isFirst {
			s.state.published.Store(other)
		}
		isFirst = false
		p.built = time.Second
	})
	if before != other || next != s.published() || next.snapshot != other.snapshot || next.built != time.Second {
		t.Errorf("got %+v in place of %+v", next, before)
	}
}

// TestAnotherURL: what the configuration before serves of the state at another URL is not served, and stays until something is
// published.
func TestAnotherURL(t *testing.T) {
	b := newBench(t, nil)
	s := b.site("named.example")
	before := &publication{site: "https://named.example/sitemap.xml", snapshot: listing(2), lastSnapshot: listing(2)}
	s.state.published.Store(before)
	s.amend(func(p *publication) { p.next = nextRefresh{} })
	served := s.published()
	if served.snapshot != nil || served.lastSnapshot != before.lastSnapshot {
		t.Errorf("it serves %+v", served)
	}
	if left := s.state.published.Load(); left.snapshot != before.snapshot || left.site != before.site {
		t.Errorf("the other one serves %+v", left)
	}
	b.wantPages(s, 1)
	if s.state.published.Load() != s.published() || b.logged("the site had another URL: its pages keep their dates") != 1 {
		t.Errorf("it is still at %s", s.state.published.Load().site)
	}
	b.wantPages(s, 1)
	if n := b.logged("the site had another URL: its pages keep their dates"); n != 1 {
		t.Errorf("its records are renamed %d times", n)
	}
}

// TestSwap: a refresh publishes nothing if other pages were published meanwhile.
func TestSwap(t *testing.T) {
	served := listing(1)
	selected := new(record.Generation)
	for name, test := range map[string]struct {
		meanwhile func(p *publication)
		want      bool
	}{
		"nothing":                    {func(*publication) {}, true},
		"that a refresh failed":      {func(p *publication) { p.history.Last.Result = outcome.Failed }, true},
		"other documents":            {func(p *publication) { p.snapshot = listing(2) }, false},
		"the same, of other records": {func(p *publication) { p.generation = new(record.Generation) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newBench(t, nil).site("named.example")
			before := &publication{site: s.sitemap, snapshot: served, generation: selected}
			s.state.published.Store(before)
			s.amend(test.meanwhile)
			now := s.published()
			r := &refreshing{served: before}
			next := &publication{site: s.sitemap, snapshot: listing(3)}
			got := s.swap(r, next)
			want := now
			if test.want {
				want = next
			}
			if got != test.want || s.published() != want || (r.served == next) != test.want || wait.IsDone(s.ready) != test.want {
				t.Errorf("swapped: %t, %d pages are served", got, pagesOf(s.published().snapshot))
			}
		})
	}
}
