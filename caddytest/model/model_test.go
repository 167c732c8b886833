// Package model holds the promises of whole refreshes against the truth: one Caddy with one site, which changes at random
// while hours pass in no time, and an oracle that knows what is to be served. It drives configurations, requests, the
// admin API, files and a storage, and nothing else.
package model

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// firstSeed is one with a slow deployment of another template.
const firstSeed = 9

// defaultTime is for how long TestModel tries seeds, which are the same each time.
const defaultTime = 8 * time.Second

var (
	modelTime  = flag.Duration("model", defaultTime, "for how long TestModel tries seeds: at random, if it is another time")
	modelSeed  = flag.Uint64("seed", 0, "the one seed that TestModel tries; 0: several")
	modelLines = flag.Int("lines", 60, "how many lines of the log a failure prints")
)

// searchEngine is that of the process.
var searchEngine *engine

func TestMain(m *testing.M) {
	flag.Parse()
	signal.Notify(make(chan os.Signal, 1), os.Interrupt) // its goroutine lives outside of the bubbles
	e, end := startEngine()
	searchEngine = e
	code := m.Run()
	end()
	os.Exit(code)
}

// model is one run: the site, the Caddy that serves it, and the oracle.
type model struct {
	folder   string // of the site
	state    string // folder
	isShared bool   // the state is in a storage that processes share
	settings settings

	site   *site
	faults faults
	shared string        // folder of the storage
	lock   chan struct{} // of the storage; full: somebody has it
	oracle *oracle
	log    logTail

	started  time.Time // this process; zero: there is none
	snapshot snapshot  // of the state, before the last event
	tasks    []task
	names    int // of pages, so far
	events   int // so far

	deployments int       // under way
	confuses    bool      // nothing is corrected meanwhile
	deployed    time.Time // the last one
}

// task is what is to be done at a time.
type task struct {
	at time.Time
	do func()
}

// up is for how long this process runs; 0: there is none.
func (m *model) up() time.Duration {
	if m.started.IsZero() {
		return 0
	}
	return time.Since(m.started)
}

// interval is the time between two refreshes.
func (m *model) interval() time.Duration {
	if m.settings.refresh == 0 {
		return time.Minute
	}
	return m.settings.refresh
}

// TestModel runs as many seeds as there is time for.
func TestModel(t *testing.T) {
	warmUp(t)
	until := time.Now().Add(*modelTime)
	for n := uint64(firstSeed); ; n++ {
		try(t, seedOf(n))
		isLast := *modelSeed != 0 || testing.Short() || time.Now().After(until)
		if isLast {
			return
		}
	}
}

// warmUp runs Caddy outside of a bubble: what a process makes only once, such as an encoder, has channels that would be
// those of the first bubble, and must not be used in another one.
func warmUp(t *testing.T) {
	t.Helper()
	m := newModel(t, 1, t.TempDir(), ofFiles, 1)
	for range 2 {
		m.start()
		for m.oracle.read() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		m.stop()
	}
}

// seedOf returns the seed of a run.
func seedOf(n uint64) uint64 {
	switch {
	case *modelSeed != 0:
		return *modelSeed
	case *modelTime != defaultTime:
		return rand.Uint64N(1_000_000_000) + 1
	}
	return n
}

// try runs a seed.
func try(t *testing.T, seed uint64) {
	t.Helper()
	begun := time.Now()
	events := draw(seed)
	m := runOnce(t, seed, events)
	if m.oracle.problem == "" {
		t.Logf("-seed %d: %d events, %d pages, %s", seed, len(events), len(m.site.pages), time.Since(begun).Round(time.Millisecond))
		return
	}
	events, m = shortest(t, seed, events[:m.events], m)
	t.Fatalf("-seed %d: %s\nThe shortest run that was found:\n%s\nThe end of its log:\n%s", seed, m.oracle.problem, describe(events), m.log.tail())
}

// shortestWithin is how long a shorter run is searched.
const shortestWithin = 20 * time.Second

// shortest leaves out one event after the other, as long as what is left fails as well.
func shortest(t *testing.T, seed uint64, events []event, failed *model) ([]event, *model) {
	t.Helper()
	until := time.Now().Add(shortestWithin)
	for i := len(events) - 1; i >= 0 && time.Now().Before(until); i-- {
		less := slices.Delete(slices.Clone(events), i, i+1)
		// What comes next does not come sooner.
		if i < len(less) {
			less[i].after += events[i].after
		}
		if m := runOnce(t, seed, less); m.oracle.problem != "" {
			events = less[:m.events]
			failed = m
			i = min(i, len(events))
		}
	}
	return events, failed
}

// runOnce runs events in a bubble.
func runOnce(t *testing.T, seed uint64, events []event) (m *model) {
	t.Helper()
	inBubble(t, fmt.Sprintf("-seed %d", seed), func(t *testing.T, dir string) {
		r := rand.New(rand.NewPCG(seed, 3))
		m = newModel(t, seed, dir, shape(r.IntN(3)), 5+r.IntN(40))
		m.run(events)
	})
	return m
}

// inBubble runs something in a bubble. A loop without an end stops the clock of that, too.
func inBubble(t *testing.T, name string, run func(t *testing.T, dir string)) {
	t.Helper()
	late := time.AfterFunc(3*time.Minute, func() {
		debug.SetTraceback("all")
		panic(name + ": (5) it has no end")
	})
	defer late.Stop()
	dir := t.TempDir()
	tomorrow := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1)
	synctest.Test(t, func(t *testing.T) {
		// The files of the state have real times, which are not to be in the future.
		time.Sleep(time.Until(tomorrow.Add(9 * time.Hour)))
		run(t, dir)
	})
}

// newModel makes the model of a seed, with a site of a shape and a size.
func newModel(t *testing.T, seed uint64, dir string, of shape, size int) *model {
	t.Helper()
	m := &model{
		folder: filepath.Join(dir, "site"),
		state:  filepath.Join(dir, "state"),
		shared: filepath.Join(dir, "shared"),
		lock:   make(chan struct{}, 1),
	}
	r := rand.New(rand.NewPCG(seed, 1))
	m.isShared = r.IntN(4) == 0
	site, err := newSite(m.folder, r, of, size)
	if err != nil {
		t.Fatal(err)
	}
	m.site = site
	m.oracle = &oracle{model: m, histories: make(map[string]*history)}
	for _, p := range site.pages {
		m.oracle.turned(p)
	}
	running.Store(m)
	searchEngine.take()
	return m
}

// run starts Caddy, lets the events happen, and stops Caddy.
func (m *model) run(events []event) {
	m.start()
	for _, e := range events {
		m.pass(e.after)
		if m.oracle.hasFailed() {
			break
		}
		m.snapshot, _ = snapshotOf(m.state)
		m.events++
		m.note("%s", e.kind.name)
		e.do(m)
	}
	m.settle()
	m.stop()
	m.judgeRest()
}

// pass lets time pass, in which tasks are done and what is served is sampled.
func (m *model) pass(d time.Duration) {
	until := time.Now().Add(d)
	for time.Now().Before(until) && !m.oracle.hasFailed() {
		time.Sleep(min(time.Until(until), 30*time.Second, m.nextTask()))
		m.doTasks()
		if m.up() > 0 {
			m.oracle.sample()
		}
	}
}

// nextTask is how long it is until a task is to be done.
func (m *model) nextTask() time.Duration {
	next := time.Hour
	for _, t := range m.tasks {
		next = min(next, time.Until(t.at))
	}
	return max(next, time.Millisecond)
}

func (m *model) doTasks() {
	tasks := m.tasks
	m.tasks = nil
	for _, t := range tasks {
		if time.Now().Before(t.at) {
			m.tasks = append(m.tasks, t)
		} else {
			t.do()
		}
	}
}

// in does something after a time.
func (m *model) in(d time.Duration, do func()) {
	m.tasks = append(m.tasks, task{time.Now().Add(d), do})
}

// settle lets all that was begun come to its end, and compares the sitemap with the truth.
func (m *model) settle() {
	for p := range places {
		m.faults.set(p, none)
	}
	for len(m.tasks) > 0 && !m.oracle.hasFailed() {
		m.pass(time.Minute)
	}
	m.fetchAll(nil)
	m.pass(30*time.Minute + 2*m.interval())
	if m.oracle.hasFailed() {
		return
	}
	for path, h := range m.oracle.histories {
		if _, isListed := m.oracle.listed[path]; isListed != h.isGood {
			m.oracle.fail(4, "at the end, that %s is listed is %v, and should be %v", path, isListed, h.isGood)
		}
	}
	m.oracle.judgeUntold()
	var now status
	err := admin(http.MethodGet, "/sitemap/sites", &now)
	if err != nil || len(now.Sites) != 1 || time.Since(now.Sites[0].LastRefresh.At) > 2*m.interval()+margin {
		m.oracle.fail(5, "at the end, no refresh comes any more: %+v, %v", now, err)
	}
}

// tail returns the last lines.
func (l *logTail) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines[max(len(l.lines)-*modelLines, 0):], "")
}

// note adds a line of the model to those of Caddy.
func (m *model) note(format string, args ...any) {
	m.log.add(stamp(time.Now()) + " " + fmt.Sprintf(format, args...) + "\n")
}

// describe lists events.
func describe(events []event) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%10s %s %d\n", e.after, e.kind.name, e.seed)
	}
	return b.String()
}

// judgeRest is property 10, of what a process leaves behind.
func (m *model) judgeRest() {
	if m.oracle.hasFailed() {
		return
	}
	time.Sleep(5 * time.Minute) // of which nothing waits by then
	all := make([]byte, 4<<20)
	all = all[:runtime.Stack(all, true)]
	for _, goroutine := range strings.Split(string(all), "\n\n")[1:] {
		head, _, _ := strings.Cut(goroutine, "\n")
		if strings.Contains(head, "synctest bubble") && !strings.Contains(goroutine, "testing/synctest") {
			m.oracle.fail(10, "a goroutine outlives Caddy: %s", goroutine)
		}
	}
}
