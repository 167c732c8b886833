package sitemap

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/announce"
	"github.com/seed3295b519/caddy-sitemap/internal/outcome"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// stepper walks through a refresh of a site, and interrupts it at one of its steps: where it looks at the clock, reads a
// source, requests a page, or reads or writes the storage.
type stepper struct {
	t       *testing.T
	shift   atomic.Int64 // of the clock
	fetched atomic.Int64 // pages

	mu        sync.Mutex
	values    map[string][]byte // of the storage
	left      map[string][]byte // the same, at the end of a process; nil: it has not ended
	site      *site             // of the newest configuration; nil: there was none
	least     int               // pages that were served
	served    int               // pages before the walk; of a site that is new, nothing is announced
	isArmed   bool
	steps     []string      // since it is armed
	last      int           // the number of steps until the interruption,
	skips     string        // besides those of these kinds
	interrupt func()        // nil: none comes
	came      chan struct{} // closed when it has come
}

func newStepper(t *testing.T) *stepper {
	return &stepper{t: t, values: make(map[string][]byte), came: make(chan struct{})}
}

// at is called at each step.
func (w *stepper) at(step string) {
	w.look(step)
	w.mu.Lock()
	if w.isArmed {
		w.steps = append(w.steps, step)
	}
	kind, _, _ := strings.Cut(step, " ")
	comes := w.isArmed && w.interrupt != nil && len(w.steps) >= w.last && !strings.Contains(w.skips, kind)
	if comes {
		w.isArmed = false
	}
	w.mu.Unlock()
	if comes {
		defer close(w.came) // also where it panics
		w.interrupt()
	}
}

// look checks that no page that was served is gone.
func (w *stepper) look(step string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.site == nil {
		return
	}
	served := pagesOf(w.site.published().snapshot)
	if served < w.least {
		w.t.Errorf("%s: %d pages are served after %d", step, served, w.least)
	}
	w.least = served
}

// now is the clock. The step has the name of the function that looks at it.
func (w *stepper) now() time.Time {
	step := caller()
	if step != "" {
		w.at("clock in " + step)
	}
	return time.Now().Add(time.Duration(w.shift.Load()))
}

// caller names the function of a refresh that looks at the clock; "": it is none.
func caller() string {
	counters := make([]uintptr, 64)
	frames := runtime.CallersFrames(counters[:runtime.Callers(3, counters)])
	name := ""
	for {
		frame, more := frames.Next()
		function := frame.Function[strings.LastIndex(frame.Function, "/")+1:]
		if name == "" {
			name = strings.NewReplacer("caddy-sitemap.", "", "(*site).", "").Replace(function)
		}
		if strings.HasSuffix(function, "(*site).refresh") {
			return strings.TrimSuffix(name, ".func1")
		}
		if !more {
			return ""
		}
	}
}

// Store, Load, Delete and List implement [record.Storage] in memory.
func (w *stepper) Store(_ context.Context, key string, value []byte) error {
	w.at("store " + kindOf(key))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.values[key] = value
	return nil
}

func (w *stepper) Load(_ context.Context, key string) ([]byte, error) {
	w.at("load " + kindOf(key))
	w.mu.Lock()
	defer w.mu.Unlock()
	value, ok := w.values[key]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return value, nil
}

func (w *stepper) Delete(_ context.Context, key string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.values, key)
	return nil
}

func (w *stepper) List(_ context.Context, folder string, _ bool) (keys []string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range w.values {
		if strings.HasPrefix(key, folder+"/") {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// IsBounded says that the storage never hangs.
func (*stepper) IsBounded() {}

// kindOf tells what a key is for.
func kindOf(key string) string {
	name := path.Base(key)
	switch {
	case name == "manifest.json":
		return "the manifest"
	case strings.HasSuffix(name, ".json"):
		return "announcements"
	}
	return "an object"
}

// configure starts another configuration, of which the walk goes on with the site.
func (w *stepper) configure(paths []string) (*bench, *site) {
	const host = "www.walked.org" // changes of a host that is not public are not announced
	b := newBench(w.t, func(h *Handler) {
		h.mounts = mounts{{hosts: []string{host}}}
		h.RefreshInterval = caddy.Duration(time.Minute) // else a refresh that seems to take two hours puts off the next one
		h.IndexNow = new(IndexNow)                      // to which nothing is sent: nothing runs the announcer
	})
	b.app.now = w.now
	b.app.number = configurations.Add(1)
	b.app.before = latest.Swap(b.app.number)
	w.lists(b, paths)
	s := b.site(host)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.site == nil {
		s.state.records = record.New(w, "site")
		s.state.announcer = announce.New(record.NewFile(w, "announced.json"))
	}
	w.site = s
	return b, s
}

// lists has the site list other pages.
func (w *stepper) lists(b *bench, paths []string) {
	b.lists(paths...)
	source, pages := b.source, b.pages
	b.source = func(ctx context.Context, r *Refresh, yield func(Page) error) error {
		w.at("source")
		return source(ctx, r, yield)
	}
	b.pages = func(rw http.ResponseWriter, r *http.Request) error {
		if strings.HasPrefix(r.URL.Path, "/page") {
			w.at("page")
			time.Sleep(300 * time.Millisecond)
			w.fetched.Add(1)
		} else {
			w.at("probe")
		}
		return pages(rw, r)
	}
}

// stop stops a configuration, and forgets its sites.
func (w *stepper) stop(b *bench) {
	if err := b.app.Cleanup(); err != nil {
		w.t.Error(err)
	}
	clear(b.app.sites) // else the bench drops them, too
}

// interruption is what may come while a refresh runs.
type interruption struct {
	name   string
	comes  func(w *stepper, b *bench)
	goesOn bool   // the configuration refreshes the site again
	skips  string // kinds of steps at which it cannot come
}

// interruptions are what may come between any two steps of a refresh.
var interruptions = []interruption{
	{name: "the configuration is stopped", comes: func(_ *stepper, b *bench) { b.app.cancel() }},
	{name: "the next configuration has started", comes: func(*stepper, *bench) { latest.Store(configurations.Add(1)) }},
	{name: "a panic", comes: func(*stepper, *bench) { panic("interrupted") }, goesOn: true, skips: "store load"},
	{name: "the clock is set forward", comes: func(w *stepper, _ *bench) { w.shift.Add(int64(2 * time.Hour)) }, goesOn: true},
	{name: "the clock is set back", comes: func(w *stepper, _ *bench) { w.shift.Add(-int64(2 * time.Hour)) }, goesOn: true},
	{name: "the process ends", comes: func(w *stepper, b *bench) {
		w.mu.Lock()
		w.left = maps.Clone(w.values)
		w.mu.Unlock()
		b.app.cancel()
	}},
}

// wantSteps are the steps of a refresh that are walked at least.
var wantSteps = []string{
	"clock in enter", "probe", "clock in newRefreshing", "source", "clock in timeLimit", "page", "clock in crawl",
	"clock in build", "clock in circumstances", "clock in result", "store an object", "store the manifest",
}

// TestSteps interrupts a refresh at each of its steps. What is served is never less than before, the next configuration goes
// on from there, and so does the next process. That no goroutine stays is what ends the bubbles.
func TestSteps(t *testing.T) {
	first := newBench(t, nil)
	first.lists("/")
	first.wantPages(first.site("visited.example"), 1) // compressors are made once, outside of the bubbles
	defer latest.Store(latest.Load())
	every := 2
	switch {
	case testing.Short():
		every = 8
	case isLong:
		every = 1
	}
	for _, served := range []int{0, 4} {
		steps := walkSteps(t, served)
		for _, step := range wantSteps {
			if !slices.Contains(steps, step) {
				t.Fatalf("with %d pages, there is no step %q: %q", served, step, steps)
			}
		}
		for k, i := range interruptions {
			for n, step := range steps {
				if (n+k)%every > 0 { // each step has other interruptions
					continue
				}
				kind, _, _ := strings.Cut(step, " ")
				isAgain := n > 0 && steps[n-1] == step && step != "clock in build" // which is before and after
				if isAgain || strings.Contains(i.skips, kind) {
					continue
				}
				walked := fmt.Sprintf("%d pages, step %d: %s: %s", served, n+1, step, i.name)
				synctest.Test(t, func(t *testing.T) {
					w := newStepper(t)
					w.last = n + 1
					w.walk(walked, served, i)
				})
			}
		}
	}
}

// walkSteps returns the steps of a refresh that finds eight pages, of which some were served before.
func walkSteps(t *testing.T, served int) (steps []string) {
	synctest.Test(t, func(t *testing.T) {
		w := newStepper(t)
		b, _ := w.begin(served)
		w.site.run()
		steps = w.steps
		w.stop(b)
	})
	return steps
}

// walk interrupts a refresh, and goes on.
func (w *stepper) walk(name string, served int, i interruption) {
	before, s := w.begin(served)
	w.interrupt = func() { i.comes(w, before) }
	w.skips = i.skips
	defer func() {
		if w.t.Failed() {
			w.t.Log(name)
		}
	}()
	s.schedule.At(w.now())
	before.app.group.Go(s.refreshWhenDue)
	select {
	case <-w.came:
	case <-time.After(time.Minute):
		w.t.Error("the refresh does not come to the step")
	}
	if i.goesOn {
		for n := 0; n < 180 && pagesOf(s.published().snapshot) < 8; n++ { // a page that panics is fetched again later
			time.Sleep(time.Minute)
		}
		time.Sleep(2*time.Minute + time.Second)
		w.wantServed(s, 8)
		last := s.published().report
		if age := w.now().Sub(last.At); age < 0 || age > 2*time.Minute || last.Result != outcome.Unchanged {
			w.t.Errorf("at %s, the last refresh is %+v", w.now(), last)
		}
	}
	if w.left != nil {
		w.stop(before)
		w.restart(w.left, served)
		return
	}
	next, s := w.configure(numbered(8))
	next.app.group.Go(s.refreshWhenDue)
	time.Sleep(time.Minute)
	_ = before.app.Stop() // only then, as Caddy does
	time.Sleep(time.Minute)
	w.wantServed(s, 8)
	if got := w.fetched.Load(); got > int64(served)+2*8 {
		w.t.Errorf("%d pages are fetched", got)
	}
	if got := len(untold(s)); served > 0 && got != 8-served {
		w.t.Errorf("%d added pages are to be announced", got)
	}
	w.stop(next)
	w.stop(before)
	w.restart(w.values, 8)
}

// restart starts another process with what is stored, which has committed pages at least.
func (w *stepper) restart(values map[string][]byte, committed int) {
	w.values = values
	w.site = nil
	w.least = 0
	w.isArmed = false
	w.fetched.Store(0)
	b, s := w.configure(numbered(8))
	w.least = 0
	s.run()
	w.wantServed(s, 8)
	if got := len(untold(s)); w.served > 0 && got != 8-w.served {
		w.t.Errorf("after a restart, %d added pages are to be announced", got)
	}
	if got := int(w.fetched.Load()); got > 8-committed {
		w.t.Errorf("after a restart, %d pages are fetched, although %d are stored", got, committed)
	}
	w.stop(b)
}

// begin makes a configuration that serves some pages, and is to find eight.
func (w *stepper) begin(served int) (*bench, *site) {
	w.served = served
	b, s := w.configure(numbered(max(served, 1)))
	if served > 0 {
		s.run()
		w.wantServed(s, served)
	}
	w.lists(b, numbered(8))
	w.isArmed = true
	return b, s
}

func (w *stepper) wantServed(s *site, want int) {
	w.t.Helper()
	w.look("then")
	got := s.published()
	if pagesOf(got.snapshot) != want {
		w.t.Fatalf("%d pages are served, want %d", pagesOf(got.snapshot), want)
	}
}
