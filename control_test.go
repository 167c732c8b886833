package sitemap

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed3295b519/caddy-sitemap/internal/merge"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/persist"
	"github.com/seed3295b519/caddy-sitemap/internal/report"
	"github.com/seed3295b519/caddy-sitemap/internal/store"
	"github.com/seed3295b519/caddy-sitemap/internal/wait"
)

// TestIsCurrent: pages are selected again where the result may be another one.
func TestIsCurrent(t *testing.T) {
	empty, err := store.Open(t.Context(), store.NewMemory(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
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
		"dates are to be decided":                     {func(p *publication) { p.history.Partial = true }, false, false},
		"dates are to be decided, but not yet":        {func(p *publication) { p.history.Partial = true }, true, true},
		"it is not known from which it was selected":  {func(p *publication) { p.generation = nil }, false, false},
		"a source cannot be read, as the time before": {func(p *publication) { p.history.Unread = map[int]string{0: "files"} }, false, true},
	} {
		p := same
		test.change(&p)
		if got := p.isCurrent(g, 1, test.goesOn); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// TestBudget: a step of the crawl takes at least as long as what follows it, and waits for moments while requests wait.
func TestBudget(t *testing.T) {
	const usual = fetchTimeout + fetchGrace
	for name, test := range map[string]struct {
		r        refreshing
		serves   bool
		want     time.Duration
		patience time.Duration
	}{
		"requests wait":                     {refreshing{step: firstPublication}, false, firstPublication, 2 * time.Second},
		"requests wait, later":              {refreshing{step: 4 * firstPublication}, false, 4 * firstPublication, 2 * time.Second},
		"nothing is served":                 {refreshing{step: firstPublication, wasReady: true}, false, firstPublication, 2 * time.Second},
		"nothing is served, later":          {refreshing{step: 2 * firstPublication, wasReady: true}, false, 2 * firstPublication, usual},
		"something is served":               {refreshing{step: firstPublication, wasReady: true}, true, firstPublication, usual},
		"no step is longer than a refresh":  {refreshing{step: time.Hour, wasReady: true}, true, time.Minute, usual},
		"selecting has cost more":           {refreshing{step: firstPublication, cost: 2 * time.Minute, wasReady: true}, true, 2 * time.Minute, usual},
		"building took more than half":      {refreshing{step: 10 * time.Second, built: 6 * time.Second, wasReady: true}, true, 12 * time.Second, usual},
		"building took less than half":      {refreshing{step: 10 * time.Second, built: 4 * time.Second, wasReady: true}, true, 10 * time.Second, usual},
		"building takes more than it costs": {refreshing{step: firstPublication, cost: 5 * time.Second, built: 4 * time.Second, wasReady: true}, true, 8 * time.Second, usual},
	} {
		b := newBench(t, nil)
		s := b.site("named.example")
		test.r.before = new(publication)
		if test.serves {
			test.r.before = &publication{snapshot: listing(1)}
		}
		got := s.budget(&test.r)
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
		"requests wait":        {func(r *refreshing, _ *Handler) { r.until = r.batch.Add(1) }, func(c *circumstances) { c.waiting = true }},
		"requests wait not":    {func(r *refreshing, _ *Handler) { r.until = r.batch }, func(*circumstances) {}},
		"an operator":          {func(r *refreshing, _ *Handler) { r.demanded = true }, func(c *circumstances) { c.demanded = true }},
		"crawl off":            {func(_ *refreshing, h *Handler) { h.settings.crawl.Off = true }, func(c *circumstances) { c.crawlOff = true }},
		"settings":             {func(r *refreshing, _ *Handler) { r.selectedBy = 7 }, func(c *circumstances) { c.selectedBy = 7 }},
		"records were lost":    {func(r *refreshing, _ *Handler) { r.crawled.Lost = true }, func(c *circumstances) { c.lost = true }},
		"they were, and other": {func(r *refreshing, _ *Handler) { r.before.history.Lost = r.batch }, func(c *circumstances) { c.lost = true }},
	} {
		b := newBench(t, nil)
		s := b.site("named.example")
		r := &refreshing{batch: b.clock, before: new(publication), candidates: merge.Start(t.Context(), nil, merge.Options{})}
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
		got := unread(test.h, failed)
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
		s.amend(s.published(), func(p *publication) { p.probed = new(probeResult) })
		s.conclude(&report.Refresh{Outcome: test.o}, b.clock)
		want := b.clock.Add(time.Minute)
		due, _, _ := s.schedule.State()
		if !due.Equal(want) || s.published().next.due.Equal(want) != test.goes || test.goes == s.published().next.due.IsZero() {
			t.Errorf("%s: due %s, and the next configuration goes on from %+v", name, due, s.published().next)
		}

		// The next one has the same plan, and what the last probe found. With other settings it probes the site at once.
		next := newBench(t, nil)
		next.clock = b.clock.Add(time.Second)
		other := next.site("named.example")
		due, _, _ = other.schedule.State()
		isPlanned := due.Equal(want)
		if isPlanned != test.goes || wait.IsDone(other.wasProbed) != test.goes || (other.probed.Load() != nil) != test.goes {
			t.Errorf("%s: the next configuration is due at %s, with %+v", name, due, other.probed.Load())
		}
		changed := newBench(t, nil)
		changed.handler.settings.digest = 7
		if due, _, _ := changed.site("named.example").schedule.State(); !due.Equal(changed.clock) {
			t.Errorf("%s: with other settings, it is due at %s", name, due)
		}
	}
}

// TestPlanWhileRefreshing: a configuration that starts while one of the other refreshes the site begins at once.
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
	b.app.fetchers[b.handler.server].routes = broken
	b.refresh(s)
	if got := s.published(); got.next != (nextRefresh{}) || got.history.Last.Result != outcome.Failed || got.report.Result != outcome.Failed {
		t.Errorf("after one that failed: %+v, %+v", got.next, got.history)
	}
}

// TestReadyAfterFailure: requests wait no longer once it is known that there is nothing, and go on waiting while it is not.
func TestReadyAfterFailure(t *testing.T) {
	b := newBench(t, nil)
	s := b.site("named.example")
	b.app.number = configurations.Add(1)
	before := latest.Swap(configurations.Add(1))
	s.run()
	latest.Store(before)
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
	disk := &writes{Storage: store.NewMemory()}
	b := newBench(t, nil)
	s := b.site("named.example")
	s.state.records = persist.NewSite(disk, "site")
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
	s.state.records = persist.NewSite(disk, "site")
	off.wantPages(s, 1)
	if disk.n > 0 {
		t.Errorf("with crawl off, %d objects are written", disk.n)
	}
}

// writes is a storage that counts what is written, and may fail then.
type writes struct {
	store.Storage
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
	if got := s.published(); got.names != first || got.report.Result != outcome.Empty {
		t.Errorf("got %p, want %p: %+v", got.names, first, got.report)
	}
	b.pages = lists
	b.wantPages(s, 1)
}

// TestUnreadFromTheStart: a source that could never be read holds nothing back.
func TestUnreadFromTheStart(t *testing.T) {
	b := newBench(t, nil)
	b.handler.sources = []input{guest{b}, sourceFunc(func(func(page.Page) error) error { return fs.ErrPermission })}
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

// TestAbsentHost: what was published for a host that only visitors named goes once the site says that there is no such host.
func TestAbsentHost(t *testing.T) {
	b := newBench(t, nil)
	b.lists("/", "/a")
	s := b.site("visited.example")
	b.wantPages(s, 2)
	b.pages = status(http.StatusNotFound)
	b.wantPages(s, 0)
}

// broken is a server whose routes panic.
var broken = caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) })
