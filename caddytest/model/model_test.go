// Package model holds the promises of whole refreshes against the truth: one Caddy with one site, which changes at random
// while hours pass in no time, and an oracle that knows what is to be served. It drives configurations, requests, the
// admin API, files and a storage, and nothing else. The clock itself is never set: a bubble has one, which only goes on.
package model

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var (
	modelSeed = flag.Uint64("seed", 9, "the first seed that TestModel tries") // 9 has a slow deployment of another template
	modelTime = flag.Duration("model", 8*time.Second, "for how long TestModel tries further seeds")
)

func TestMain(m *testing.M) {
	flag.Parse()
	signal.Notify(make(chan os.Signal, 1), os.Interrupt) // its goroutine lives outside of the bubbles
	engine := startEngine()
	_ = os.Setenv("HTTP_PROXY", engine.URL)
	code := m.Run()
	engine.Close()
	os.Exit(code)
}

// shape is of what a site consists.
type shape int

const (
	ofFiles shape = iota
	ofApplication
	ofBoth
)

// world is one run: the site, the Caddy that serves it, and what the oracle knows. Other goroutines read what mu guards.
type world struct {
	of       shape
	folder   string // of the site
	state    string // folder
	shared   string // folder of the storage
	isShared bool   // the state is in the storage, too
	unlocked chan struct{}
	log      *os.File
	declares bool // the application has a sitemap, with dates
	settings settings

	started     time.Time       // this process
	stored      map[string]file // the state before the last event
	tasks       []task
	names       int       // of pages, so far
	steps       int       // so far
	deployments int       // under way
	deployed    time.Time // the last one

	listed  map[string]string // at the last look: lastmod by path
	crawled time.Time         // when all pages were listed first

	problem atomic.Pointer[error] // the first one

	mu        sync.Mutex // never held while anything waits
	pages     map[string]*page
	troubles  []*trouble
	requests  []time.Time // of the application, besides those of each refresh
	notBefore time.Time   // as it wants
}

// task is what is to be done at a time.
type task struct {
	at time.Time
	do func()
}

// TestModel tries as many seeds as there is time for.
func TestModel(t *testing.T) {
	warmUp(t)
	until := time.Now().Add(*modelTime)
	for seed := *modelSeed; ; seed++ {
		holds := t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { try(t, seed) })
		if !holds || testing.Short() || time.Now().After(until) {
			return
		}
	}
}

// warmUp runs Caddy outside of a bubble: what a process makes only once, such as an encoder, has channels that would be
// those of the first bubble, and must not be used in another one.
func warmUp(t *testing.T) {
	t.Helper()
	w := newWorld(1, t.TempDir(), ofFiles, 1)
	for range 2 {
		w.start()
		for w.read() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		w.stop()
	}
}

// try runs a seed. If it fails, events are left out as long as what is left fails as well.
func try(t *testing.T, seed uint64) {
	t.Helper()
	steps := draw(seed)
	failed := run(t, seed, steps)
	if !failed.hasFailed() {
		return
	}
	until := time.Now().Add(20 * time.Second)
	steps = steps[:failed.steps]
	for i := len(steps) - 1; i >= 0 && time.Now().Before(until); i-- {
		less := slices.Delete(slices.Clone(steps), i, i+1)
		// What comes next does not come sooner.
		if i < len(less) {
			less[i].after += steps[i].after
		}
		if w := run(t, seed, less); w.hasFailed() {
			failed = w
			steps = less[:w.steps]
			i = min(i, len(steps))
		}
	}
	t.Errorf("-seed %d -model 0: %v\nThe shortest run that was found (its log is shown with -v):", seed, *failed.problem.Load())
	for _, s := range steps {
		t.Logf("%10s %s %d", s.after, s.name, s.seed)
	}
	if testing.Verbose() {
		log, _ := os.ReadFile(failed.log.Name())
		t.Logf("%s", log)
	}
}

// run runs steps in a world of their own.
func run(t *testing.T, seed uint64, steps []step) (w *world) {
	t.Helper()
	inBubble(t, func(dir string) {
		r := rand.New(rand.NewPCG(seed, 3))
		w = newWorld(seed, dir, shape(r.IntN(3)), 5+r.IntN(40))
		w.run(steps)
	})
	return w
}

// inBubble runs something in a bubble, in the near future: the files of the state have real times, which are not to be later.
func inBubble(t *testing.T, run func(dir string)) {
	t.Helper()
	dir := t.TempDir()
	tomorrow := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1)
	synctest.Test(t, func(*testing.T) {
		time.Sleep(time.Until(tomorrow.Add(9 * time.Hour)))
		run(dir)
	})
}

// newWorld makes the world of a seed, with a site of a shape and a size.
func newWorld(seed uint64, dir string, of shape, size int) *world {
	r := rand.New(rand.NewPCG(seed, 1))
	w := &world{
		of:       of,
		folder:   filepath.Join(dir, "site"),
		state:    filepath.Join(dir, "state"),
		shared:   filepath.Join(dir, "shared"),
		isShared: r.IntN(4) == 0,
		unlocked: make(chan struct{}, 1),
		declares: r.IntN(2) == 0,
		pages:    make(map[string]*page),
	}
	w.unlocked <- struct{}{}
	w.check(os.MkdirAll(w.folder, 0o755))
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	w.check(err)
	w.log = log
	w.newSite(r, size)
	running.Store(w)
	for len(announced) > 0 {
		<-announced
	}
	return w
}

// run starts Caddy, lets the steps happen, and stops Caddy.
func (w *world) run(steps []step) {
	w.start()
	for _, s := range steps {
		w.pass(s.after)
		if w.hasFailed() {
			break
		}
		w.stored = w.readState()
		w.steps++
		w.note("%s", s.name)
		s.do(w, rand.New(rand.NewPCG(s.seed, 2)))
	}
	w.settle()
	w.stop()
	time.Sleep(5 * time.Minute) // of which nothing waits by then
	w.judgeRest()
}

// pass lets time pass, in which tasks are done and what is served is looked at.
func (w *world) pass(d time.Duration) {
	until := time.Now().Add(d)
	for time.Now().Before(until) && !w.hasFailed() {
		next := min(time.Until(until), 30*time.Second)
		for _, t := range w.tasks {
			next = min(next, time.Until(t.at))
		}
		time.Sleep(max(next, time.Millisecond))
		tasks := w.tasks
		w.tasks = nil
		for _, t := range tasks {
			if time.Now().Before(t.at) {
				w.tasks = append(w.tasks, t)
			} else {
				t.do()
			}
		}
		w.look()
	}
}

// in does something after a time.
func (w *world) in(d time.Duration, do func()) {
	w.tasks = append(w.tasks, task{time.Now().Add(d), do})
}

// settle lets all that was begun come to its end, and compares the sitemap with the truth.
func (w *world) settle() {
	for _, t := range w.troubles {
		w.end(t)
	}
	for len(w.tasks) > 0 && !w.hasFailed() {
		w.pass(time.Minute)
	}
	w.fetchAll(nil)
	w.pass(30*time.Minute + 2*w.interval())
	if !w.hasFailed() {
		w.judgeEnd()
	}
}

// check reports an error of what is never to fail.
func (w *world) check(err error) {
	if err != nil {
		w.fail(0, "%v", err)
	}
}

// fail reports that a property does not hold. The first report counts.
func (w *world) fail(property int, format string, args ...any) {
	problem := fmt.Errorf("(%d) at %s: %w", property, stamps(time.Now()), fmt.Errorf(format, args...))
	w.problem.CompareAndSwap(nil, &problem)
}

func (w *world) hasFailed() bool { return w.problem.Load() != nil }

// note adds a line to Caddy's log, which is printed with a problem.
func (w *world) note(format string, args ...any) {
	_, err := fmt.Fprintf(w.log, "%s %s\n", stamps(time.Now()), fmt.Sprintf(format, args...))
	w.check(err)
}
