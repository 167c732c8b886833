package verdict

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/evidence"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/state"
)

// livingPage is a page as its author knows it.
type livingPage struct {
	rec     state.Record
	text    uint64
	changes []int64 // when a reader saw another text, the first time among them
	header  int     // what Last-Modified says: see life.lastModified
	counter bool

	mtime   int64
	version uint32

	noticed int64 // the change that the record should date, if it dates any
	pending int64
}

// life is a site that is edited, deployed, given new templates, asked for and listed
// at random times.
type life struct {
	t        *testing.T
	random   *rand.Rand
	now      int64
	dynamic  bool
	deployed int64
	pages    []*livingPage
	dated    int
}

func (l *life) fail(p *livingPage, format string, args ...any) {
	l.t.Helper()
	l.t.Fatalf("%s: %s; now %d, deployed %d, %+v", p.rec.Page.Path, fmt.Sprintf(format, args...), l.now, l.deployed, p)
}

func (l *life) change(p *livingPage) {
	p.text = l.random.Uint64()
	p.changes = append(p.changes, l.now)
	p.mtime, p.version = l.now, p.version+1
}

// deploy writes every file, a few with another text.
func (l *life) deploy() {
	l.deployed = l.now
	for _, p := range l.pages {
		if l.random.IntN(8) == 0 {
			l.change(p)
		}
		p.mtime, p.version = l.now+l.random.Int64N(300), p.version+1
	}
	for _, p := range l.pages { // what was deployed with another text changed just then
		if n := len(p.changes); n > 0 && p.changes[n-1] == l.now {
			p.changes[n-1] = p.mtime
		}
	}
	l.now += 300
}

func (l *life) happen() {
	l.now += 120 + l.random.Int64N([]int64{600, 40000, 3_000_000}[l.random.IntN(3)])
	switch n := l.random.IntN(20); {
	case n == 0:
		for _, p := range l.pages { // another template
			l.change(p)
		}
	case n < 3:
		l.deploy()
	case n < 12:
		l.change(l.pages[l.random.IntN(len(l.pages))])
	case n < 14:
		p := l.pages[l.random.IntN(len(l.pages))] // touched
		p.mtime, p.version = l.now, p.version+1
	}
	l.now += 60
}

// What Last-Modified says.
const (
	headerNone  = iota
	headerTrue  // when the text changed
	headerNow   // the time of the answer
	headerStart // when the server was deployed
	headers
)

func (l *life) lastModified(p *livingPage) string {
	at := p.changes[len(p.changes)-1]
	switch p.header {
	case headerNone:
		return ""
	case headerNow:
		at = l.now
	case headerStart:
		at = l.deployed
	}
	return time.Unix(at, 0).UTC().Format(http.TimeFormat)
}

func (l *life) see(p *livingPage, fromFile bool) *evidence.Evidence {
	e := &evidence.Evidence{Whole: true, Fingerprint: p.text}
	if p.counter {
		e.Fingerprint = l.random.Uint64()
	}
	if p.rec.Flags&FlagRead == 0 || e.Fingerprint != p.rec.Fingerprint {
		p.pending = p.changes[len(p.changes)-1]
	}
	Content(&p.rec, e, origin, fromFile, time.Unix(l.now, 0))
	return e
}

func (l *life) ask(p *livingPage) {
	now := time.Unix(l.now, 0)
	trouble := l.random.IntN(12)
	if p.header == headerStart {
		trouble = -1 // only what all answers say tells that it is of no page
	}
	switch trouble {
	case 0:
		Answer(&p.rec, Answered{NoReply: true}, origin, now)
		return
	case 1:
		Answer(&p.rec, answer([]int{401, 404, 429, 500, 503}[l.random.IntN(5)]), origin, now)
		return
	case 2:
		if l.dynamic && !p.counter && p.rec.Fingerprint == p.text && p.rec.ETag != "" {
			Answer(&p.rec, answer(304), origin, now)
			return
		}
	}
	a := answer(200, "Etag", `"x"`)
	if l.dynamic {
		a.Page = l.see(p, false)
		a.Header.Set("Last-Modified", l.lastModified(p))
	}
	Answer(&p.rec, a, origin, now)
}

// refresh learns what is new, and lists.
func (l *life) refresh() {
	asks := l.random.IntN(3) // none, some, all
	var s Survey
	for _, p := range l.pages {
		if !l.dynamic && p.version != p.rec.Page.Version {
			p.rec.Page.LastMod, p.rec.Page.Version = p.mtime, p.version
			l.see(p, true)
		}
		if asks == 2 || asks == 1 && l.random.IntN(2) == 0 && p.header != headerStart {
			l.ask(p)
		}
		p.rec.Asked = p.rec.Asked / 60 * 60 // as it is kept
		s.Add(&p.rec)
	}
	d := s.Decisions()
	for _, p := range l.pages {
		if Settle(&p.rec, d) && !d.TemplateChanged {
			p.noticed = p.pending
		}
		l.check(p, d)
	}
}

func (l *life) check(p *livingPage, d Decisions) {
	unix, day := LastMod(&p.rec, d, Auto)
	switch {
	case unix == 0:
		return
	case p.counter:
		if p.rec.Streak > 2 {
			l.fail(p, "a counter is dated %d", unix)
		}
		return // until it is known for one
	case unix > l.now:
		l.fail(p, "dated in the future: %d", unix)
	case day:
		// Noticed within a day of the change.
		if !slices.ContainsFunc(p.changes, func(at int64) bool { return at <= unix+59 && unix-at < 86400 }) {
			l.fail(p, "dated the day of %d, when it did not change", unix)
		}
	case !slices.Contains(p.changes, unix):
		l.fail(p, "dated %d, when it did not change", unix)
	case unix != p.noticed && p.noticed != 0:
		l.fail(p, "dated %d, when it changed at %d", unix, p.noticed)
	}
	l.dated++
}

// However a site lives, a date that is listed is one at which the page's text
// changed.
func TestLife(t *testing.T) {
	dated := [2]int{}
	for seed := range uint64(600) {
		l := &life{t: t, random: rand.New(rand.NewPCG(seed, 9)), now: day0, deployed: day0 - 9999, dynamic: seed%2 == 1}
		header := l.random.IntN(headers)
		for i := range 3 + l.random.IntN(30) {
			p := &livingPage{header: header, counter: l.dynamic && l.random.IntN(12) == 0}
			p.rec.Page = page.Page{Path: fmt.Sprint("/", i)}
			written := l.now
			l.now -= l.random.Int64N(90_000_000)
			l.change(p)
			l.now = written
			l.pages = append(l.pages, p)
		}
		if l.random.IntN(2) == 0 { // it comes as it was deployed
			for _, p := range l.pages {
				p.mtime = l.now + l.random.Int64N(500)
			}
			l.now += 500
		}
		l.now += 60
		for range 60 {
			l.refresh()
			if l.random.IntN(4) > 0 {
				l.happen()
			} else {
				l.now += 60 + l.random.Int64N(100_000)
			}
		}
		dated[seed%2] += l.dated
	}
	// Absent everywhere would be true as well.
	if dated[0] < 200_000 || dated[1] < 50_000 {
		t.Errorf("got %d dates", dated)
	}
}

// A deployment that rewrites every file with the same text moves no date.
func TestRedeployed(t *testing.T) {
	const n = 50
	records := make([]state.Record, n)
	scan := func(mtime func(i int) int64, text func(i int) uint64) (moved int) {
		var s Survey
		for i := range records {
			r := &records[i]
			r.Page = page.Page{Path: fmt.Sprint("/", i), LastMod: mtime(i), Version: r.Page.Version + 1}
			Content(r, &evidence.Evidence{Whole: true, Fingerprint: text(i)}, origin, true, noon)
			s.Add(r)
		}
		for i := range records {
			before, _ := LastMod(&records[i], Decisions{}, Auto)
			Settle(&records[i], s.Decisions())
			if after, _ := LastMod(&records[i], s.Decisions(), Auto); after != before {
				moved++
			}
		}
		return moved
	}
	old := func(i int) int64 { return day0 + int64(i)*86400 }
	text := func(i int) uint64 { return uint64(i + 1) }
	if got := scan(old, text); got != n {
		t.Errorf("first sight: %d dates, want %d", got, n)
	}
	later := func(i int) int64 { return noon.Unix() - 1000 + int64(i) }
	if got := scan(later, text); got != 0 {
		t.Errorf("redeployed: %d dates moved", got)
	}
	one := func(i int) uint64 { return text(i) + uint64(i/(n-1)) }
	if got := scan(later, one); got != 1 || records[n-1].LastMod != later(n-1) {
		t.Errorf("redeployed, one changed: %d dates moved", got)
	}
	if got := scan(later, func(i int) uint64 { return 1000 + text(i) }); got != 0 {
		t.Errorf("another template: %d dates moved", got)
	}
}
