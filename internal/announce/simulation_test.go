package announce

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/indexing"
	candidate "github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

var seed = flag.Uint64("seed", 1, "the first seed that TestSimulation tries")

// page is the truth about a page.
type page struct {
	record record.Record
	text   int64 // which one it has
	isGone bool
	view   map[string]int64     // by engine: the text that it knows; 0: none, it takes the page for gone
	again  map[string]bool      // by engine: it may be told again, of nothing new
	told   map[string]time.Time // by engine
}

// shown is the text that visitors get; 0: the page is gone.
func (p *page) shown() int64 {
	if p.isGone {
		return 0
	}
	return p.text
}

// world is a site that changes while its announcer is killed, its clock jumps and its engines fail.
type world struct {
	t          *testing.T
	r          *rand.Rand
	now        time.Time
	jumped     time.Time // when the clock was set back last, on the clock of before
	file       *memory
	a          *Announcer
	generation *record.Generation
	stored     *record.Generation // by the last commit
	config     Config
	texts      int64 // so far
	client     *Client
	pages      map[string]*page
	engines    []string
	status     map[string]int // what each engine responds
	last       map[string]time.Time
	atRequest  []byte  // what was stored when the last request came,
	lastEngine string  // which,
	lastTold   []*page // and what it told
	lines      []string
}

func (w *world) note(format string, args ...any) {
	w.lines = append(w.lines, w.now.Format("Jan 2 15:04:05 ")+fmt.Sprintf(format, args...))
}

// breaks reports that a rule is broken.
func (w *world) breaks(format string, args ...any) {
	w.note(format, args...)
	w.t.Errorf("%s", strings.Join(w.lines, "\n"))
}

func (w *world) fail(format string, args ...any) {
	w.breaks(format, args...)
	w.t.FailNow()
}

// ServeHTTP is an engine.
func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	var s struct{ URLList []string }
	if err := json.NewDecoder(r.Body).Decode(&s); err != nil || len(s.URLList) == 0 {
		w.t.Error("a request breaks the protocol")
	}
	engine := r.URL.Path
	status := w.status[engine]
	w.note("%s gets %q: %d", engine, s.URLList, status)
	w.atRequest = w.file.data
	w.lastEngine = engine
	w.lastTold = nil
	if gap := w.now.Sub(w.last[engine]); gap < Gap && !w.isShaken() {
		w.breaks("too soon: after %s", gap)
	}
	w.last[engine] = w.now
	rw.WriteHeader(status)
	for _, u := range s.URLList {
		p := w.pages[strings.TrimPrefix(u, w.config.Origin)]
		w.lastTold = append(w.lastTold, p)
		switch status {
		case 200:
			w.tell(engine, p)
		case 422:
			p.view[engine] = p.shown() // for good
		}
	}
}

// isShaken reports whether a clock that was set back excuses what comes too soon.
func (w *world) isShaken() bool { return w.now.Before(w.jumped.Add(time.Hour)) }

// tell notes that an engine was told of a page.
func (w *world) tell(engine string, p *page) {
	isNews := p.view[engine] != p.shown() || p.again[engine]
	ago := w.now.Sub(p.told[engine])
	if !w.isShaken() && (!isNews || ago < 10*time.Minute) {
		w.breaks("%s: news %t, told %s ago", p.record.Path, isNews, ago)
	}
	p.told[engine] = w.now
	p.view[engine] = p.shown()
	p.again[engine] = false
}

// edit gives a page another text, and a date later than all before.
func (w *world) edit(p *page) {
	w.texts++
	p.text = w.texts
	p.record.ModTime = epoch.Add(-1000*day).Unix() + w.texts*int64(3*time.Hour/time.Second)
}

// change changes a page at random.
func (w *world) change() {
	path := fmt.Sprintf("/%02d", w.r.IntN(30))
	p := w.pages[path]
	switch {
	case p == nil:
		p = &page{view: make(map[string]int64), again: make(map[string]bool), told: make(map[string]time.Time)}
		p.record = record.Record{Path: path, Flags: record.Named | record.HTML | record.Document, Fetched: 1, Status: 200}
		w.pages[path] = p
		w.edit(p)
		w.note("%s is added", path)
	case p.isGone:
		p.isGone = false
		p.record.Status = 200
		if w.r.IntN(2) == 0 {
			w.edit(p)
		}
		w.note("%s is back with the text %d", path, p.text)
	case w.r.IntN(3) == 0:
		p.isGone = true
		p.record.Status = 404
		w.note("%s is removed", path)
	default:
		w.edit(p)
		w.note("%s is edited", path)
	}
	// One engine may have been told of something before, and the other one not: it is told of what it need not know. So is one that
	// may have received something.
	for i, target := range w.a.state.Targets {
		p.again[w.engines[i]] = p.again[w.engines[i]] || len(w.engines) > 1 || target.Until != (Change{})
	}
}

// refresh selects and publishes, and mostly commits.
func (w *world) refresh() {
	var records []record.Record
	last := make(map[string]record.Record)
	for rec, err := range w.generation.Records(w.t.Context()) {
		if err != nil {
			w.fail("reading records: %v", err)
		}
		last[rec.Path] = *rec
	}
	for i := range 30 {
		p := w.pages[fmt.Sprintf("/%02d", i)]
		if p == nil {
			continue
		}
		rec := p.record
		rec.Selected = last[rec.Path].Selected
		rec.Moved = last[rec.Path].Moved
		rec.Turned = last[rec.Path].Turned
		records = append(records, rec)
		p.record.Fetched = p.record.ModTime + 1 // it was looked at since
	}
	writer := w.generation.Writer()
	writer.Put("", records, nil, nil)
	g, err := writer.Generation()
	if err != nil {
		w.fail("%v", err)
	}
	selected, err := indexing.Select(w.t.Context(), g, indexing.Options{
		Base: w.config.Origin, Scope: "/", Expire: 90 * day, Now: epoch, TrustLists: true, Notices: w.a.Select(w.now),
		Hints:  func(*candidate.Page) {},
		Filter: func(*candidate.Page) string { return "" },
	})
	if err != nil {
		w.fail("%v", err)
	}
	for _, err := range selected.Pages(w.t.Context()) {
		if err != nil {
			w.fail("%v", err)
		}
	}
	res := selected.Result()
	w.generation = res.Generation
	w.note("%d pages are listed, of %d", res.Listed, len(w.pages))
	w.a.Published(Publication{First: res.Before == 0, Complete: true, Documents: make(map[Kind]string)})
	if err := w.a.Save(w.t.Context()); err != nil {
		w.fail("%v", err)
	}
	w.stored = w.generation
}

// start begins a process.
func (w *world) start() {
	w.a = New(w.file)
	if err := w.a.Load(w.t.Context(), w.config, false, w.now); err != nil {
		w.fail("%v", err)
	}
}

// send sends what is due. The process may be killed amid a request.
func (w *world) send() {
	r := &Runner{
		Client:  w.client,
		Now:     func() time.Time { return w.now },
		Fetch:   site,
		Records: func() *record.Generation { return w.generation },
		Done:    func(int, Outcome, Status) {},
		Failed: func(err error) {
			if err != nil {
				w.fail("%v", err)
			}
		},
	}
	w.atRequest = nil
	w.a.tellAll(w.t.Context(), r)
}

// kill ends the process, at times amid the last request, and begins another one.
func (w *world) kill() {
	if w.atRequest != nil && w.r.IntN(2) == 0 {
		w.file.data = w.atRequest
		w.note("killed amid the last request")
		for _, p := range w.lastTold {
			p.again[w.lastEngine] = true
		}
	} else {
		w.note("killed")
	}
	w.generation = w.stored
	w.start()
	w.a.Published(Publication{Complete: true, Documents: make(map[Kind]string)})
}

// TestSimulation: whatever happens, each change is told at least once, what nobody changed is not, nor what came and went, no page
// twice in ten minutes, and no target twice in a minute.
func TestSimulation(t *testing.T) {
	for s := *seed; s < *seed+20; s++ {
		t.Run(fmt.Sprint(s), func(t *testing.T) { simulate(t, s) })
	}
}

func simulate(t *testing.T, seed uint64) {
	w := &world{
		t: t, r: rand.New(rand.NewPCG(seed, 1)), now: epoch, file: new(memory), client: NewClient("test", 1),
		pages: make(map[string]*page), status: map[string]int{"/one": 200},
		last: make(map[string]time.Time),
	}
	if seed%2 == 0 {
		w.status["/two"] = 200
	}
	engines := httptest.NewServer(w)
	defer engines.Close()
	w.config = Config{Origin: "https://example.com", Key: key, Daily: 1_000_000}
	w.engines = slices.Sorted(maps.Keys(w.status))
	for _, path := range w.engines {
		w.config.Targets = append(w.config.Targets, Target{IndexNow, engines.URL + path})
	}
	records := record.New(record.NewMemory(), "")
	w.generation = records.Last()
	w.start()
	for range 15 {
		w.change()
	}
	for _, p := range w.pages {
		for engine := range w.status {
			p.view[engine] = p.shown() // of the first crawl
		}
	}
	w.refresh()
	for range 150 {
		w.now = w.now.Add(time.Duration(1+w.r.IntN(70)) * time.Second)
		w.step(w.r.IntN(100))
		w.send()
	}
	for engine := range w.status {
		w.status[engine] = 200
	}
	w.note("no more changes")
	for range 30 * 60 {
		w.now = w.now.Add(time.Minute)
		if w.now.Minute()%10 == 0 {
			w.refresh()
		}
		w.send()
	}
	for path, p := range w.pages {
		for engine, text := range p.view {
			if text != p.shown() {
				w.fail("%s was not told of %s", engine, path)
			}
		}
	}
}

// step is something that happens.
func (w *world) step(n int) {
	engine := w.engines[w.r.IntN(len(w.engines))]
	switch {
	case n < 40:
		w.change()
		w.refresh()
	case n < 60:
		w.refresh()
	case n < 66:
		w.kill()
	case n < 70:
		w.status[engine] = 503
	case n < 72:
		w.status[engine] = 422
	case n < 80:
		w.status[engine] = 200
	case n < 81:
		w.note("the clock is set back")
		if w.now.After(w.jumped) {
			w.jumped = w.now
		}
		w.now = w.now.Add(-time.Duration(1+w.r.IntN(120)) * time.Minute)
	}
}
