package crawl

import (
	"cmp"
	"container/heap"
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// The simulation of a site that changes for a year, behind the decisions of this package: which pages are due, by what,
// and on whose account. go test -run TestYear -v ./internal/crawl -args -year 365 prints its figures.
var (
	yearDays  = flag.Int("year", 0, "days that are simulated; 0: a month, of which nothing is printed")
	yearPages = flag.Int("year-pages", 0, "pages of its site; 0: 1,000, 10,000 and 100,000 in turn")
)

// What happens on a site, on average.
const (
	newPages     = 20. / day
	removedPages = 3. / day
	listCount    = 12
	perListPage  = 50
	onFrontPage  = 10
	yearRate     = 2.            // requests a second
	yearEpoch    = 1_000_000_000 // when the simulation begins, in Unix seconds
)

// placement is where a new page is linked first.
type placement uint8

const (
	onFront placement = iota // and in a list
	inList
	deep // on a page that changes for no other reason
	placements
)

// worldPage is a page as the author of the site knows it.
type worldPage struct {
	path      string
	list      int // of a list page, -1: it is none
	number    int // of the pages of that list
	links     []int
	text      uint64
	period    int64 // seconds between changes of its text, on average; 0: it never changes
	removed   bool
	published int64
	placed    placement
	unseen    []int64 // when it changed, as far as nobody knows
	lost      int64   // when it was removed, until that is known
}

// world is a site as its author knows it. Page 0 is the front page.
type world struct {
	random  *rand.Rand
	pages   []*worldPage
	byPath  map[string]int
	lists   [listCount][]int // posts, the newest last
	front   []int            // posts that the front page shows, the newest last
	posts   []int
	changes timers
	nextNew int64
	nextEnd int64 // of a page
}

// newWorld returns a site of so many pages at the time 0.
func newWorld(seed uint64, pages int) *world {
	w := &world{random: rand.New(rand.NewPCG(seed, 0)), byPath: make(map[string]int)}
	w.add(&worldPage{path: "/", list: -1})
	posts := pages - 1 - pages/perListPage
	for i := range posts {
		w.publish(0, placement(i%2))
	}
	w.growLists()
	w.nextNew = w.after(0, newPages)
	w.nextEnd = w.after(0, removedPages)
	return w
}

// after is the time of the next event of so many a second.
func (w *world) after(now int64, rate float64) int64 {
	return now + 1 + int64(w.random.ExpFloat64()/rate)
}

func (w *world) add(p *worldPage) (id int) {
	id = len(w.pages)
	p.text = w.random.Uint64()
	w.pages = append(w.pages, p)
	w.byPath[p.path] = id
	return id
}

// publish adds a post.
func (w *world) publish(now int64, placed placement) (id int) {
	p := &worldPage{path: fmt.Sprintf("/posts/%d", len(w.pages)), list: -1, published: now, placed: placed}
	id = w.add(p)
	switch share := w.random.Float64(); {
	case share < 0.02:
		p.period = day
	case share < 0.10:
		p.period = week
	case share < 0.30:
		p.period = 91 * day
	}
	if p.period > 0 {
		heap.Push(&w.changes, timer{w.after(now, 1/float64(p.period)), id})
	}
	if placed == deep {
		by := w.pages[w.posts[w.random.IntN(len(w.posts))]]
		by.links = append(by.links, id)
	} else {
		list := w.random.IntN(listCount)
		w.lists[list] = append(w.lists[list], id)
	}
	if placed == onFront {
		w.front = append(w.front, id)
		w.front = w.front[max(0, len(w.front)-onFrontPage):]
	}
	w.posts = append(w.posts, id)
	return id
}

// growLists adds the list pages that are missing.
func (w *world) growLists() {
	for list, posts := range w.lists {
		for number := 0; number*perListPage < len(posts); number++ {
			path := listPath(list, number)
			if _, known := w.byPath[path]; !known {
				w.add(&worldPage{path: path, list: list, number: number})
			}
		}
	}
}

func listPath(list, number int) string { return fmt.Sprintf("/lists/%c/%d", 'a'+list, number) }

// advance lets happen what happens until a time.
func (w *world) advance(now int64) {
	for w.nextNew <= now {
		placed := inList
		switch share := w.random.Float64(); {
		case share < 0.3:
			placed = onFront
		case share >= 0.9:
			placed = deep
		}
		w.publish(w.nextNew, placed)
		w.growLists()
		w.nextNew = w.after(w.nextNew, newPages)
	}
	for w.nextEnd <= now {
		i := w.random.IntN(len(w.posts))
		id := w.posts[i]
		w.posts = slices.Delete(w.posts, i, i+1)
		isIt := func(other int) bool { return other == id }
		for list := range w.lists {
			w.lists[list] = slices.DeleteFunc(w.lists[list], isIt)
		}
		w.front = slices.DeleteFunc(w.front, isIt)
		p := w.pages[id]
		p.removed = true
		p.lost = w.nextEnd
		w.nextEnd = w.after(w.nextEnd, removedPages)
	}
	for len(w.changes) > 0 && w.changes[0].at <= now {
		t := w.changes[0]
		heap.Pop(&w.changes)
		p := w.pages[t.id]
		if p.removed {
			continue
		}
		p.text = w.random.Uint64()
		p.unseen = append(p.unseen, t.at)
		heap.Push(&w.changes, timer{w.after(t.at, 1/float64(p.period)), t.id})
	}
}

// content returns what a page says now: its text, and the pages to which it links besides those of the navigation.
func (w *world) content(id int) (text uint64, links []string) {
	p := w.pages[id]
	var posts []int
	switch {
	case id == 0:
		posts = w.front
		for list := range w.lists {
			links = append(links, listPath(list, 0))
		}
	case p.list >= 0:
		all := w.lists[p.list]
		upto := max(len(all)-p.number*perListPage, 0)
		posts = all[max(upto-perListPage, 0):upto]
		if upto > perListPage {
			links = append(links, listPath(p.list, p.number+1))
		}
	default:
		posts = p.links
	}
	text = p.text
	for i := range posts {
		post := posts[len(posts)-1-i]
		links = append(links, w.pages[post].path)
		text = text*31 + uint64(post) // its title is shown
	}
	return text, links
}

// timer is when something happens to a page, and timers the heap of them.
type timer struct {
	at int64
	id int
}
type timers []timer

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at < t[j].at }
func (t timers) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *timers) Push(x any)        { *t = append(*t, x.(timer)) }
func (t *timers) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}

// figures are the ages of what is listed, in seconds, and the requests.
type figures struct {
	from     int64 // from when on changes count
	added    [placements][]float64
	removed  []float64
	texts    []float64
	requests []int // by minute
}

// known notes what has become known of a page.
func (f *figures) known(p *worldPage, now int64, isNew, isGone, isDated bool) {
	switch {
	case isNew:
		if p.published > f.from {
			f.added[p.placed] = append(f.added[p.placed], float64(now-p.published))
		}
		p.unseen = nil
	case isGone && p.lost != 0:
		if p.lost > f.from {
			f.removed = append(f.removed, float64(now-p.lost))
		}
		p.lost = 0
	case isDated:
		for _, at := range p.unseen {
			if at > f.from {
				f.texts = append(f.texts, float64(now-at))
			}
		}
		p.unseen = nil
	}
}

// hourly returns the requests an hour until a day, on average and at most.
func (f *figures) hourly(days int) (mean, most float64) {
	sum := 0
	requests := f.requests[:min(days*day/minute, len(f.requests))]
	for i, n := range requests {
		mean += float64(n) * 60 / float64(len(requests))
		sum += n
		if i >= 60 {
			sum -= requests[i-60]
		}
		most = max(most, float64(sum))
	}
	return mean, most
}

func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return values[min(int(q*float64(len(values))), len(values)-1)]
}

func average(values []float64) (mean float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	return mean
}

// shown is an age for people.
func shown(seconds float64) string {
	switch {
	case math.IsNaN(seconds):
		return "–"
	case seconds >= 2*day:
		return fmt.Sprintf("%.1f d", seconds/day)
	case seconds >= 2*hour:
		return fmt.Sprintf("%.1f h", seconds/hour)
	}
	return fmt.Sprintf("%.0f min", math.Ceil(seconds/minute))
}

// row is a line of the table in Markdown.
func (f *figures) row(pages int, rule string) string {
	line := fmt.Sprintf("| %d | %s |", pages, rule)
	for _, ages := range append(f.added[:], f.removed, f.texts) {
		line += fmt.Sprintf(" %s, %s |", shown(quantile(ages, 0.5)), shown(quantile(ages, 0.95)))
	}
	line += fmt.Sprintf(" %s |", shown(average(f.texts)))
	if len(f.requests) == 0 {
		return line + " | | |"
	}
	early, _ := f.hourly(30)
	mean, most := f.hourly(math.MaxInt / day)
	return line + fmt.Sprintf(" %.0f | %.0f | %.0f |", early, mean, most)
}

// simulation runs the decisions on a world, minute by minute, without requests, parsing and storage.
type simulation struct {
	*world
	figures
	now     int64
	crawler *Crawler
	run     *Run
	worker  *worker
	records []*record.Record // by page; nil: it is not known
	due     timers
	waiting []pending
	fresh   []int // pages whose finders are to be told
	load    record.Workload
	spent   int // requests of this minute
}

var yearHeader = http.Header{"Content-Type": {"text/html"}}

// simulate simulates days, of which changes in the first ones do not count.
func simulate(pages, learning, days int) *simulation {
	s := &simulation{world: newWorld(1, pages)}
	s.from = int64(learning) * day
	s.crawler = New(Options{Limiter: NewLimiter(yearRate, 1), Now: func() time.Time { return time.Unix(s.now, 0) }})
	// The first crawl, at the rate.
	s.now = yearEpoch
	s.begin()
	for id := range s.pages {
		s.now = yearEpoch + int64(float64(id)/yearRate)
		if id%1000 == 0 {
			s.begin()
		}
		s.discover(id, 1, "", true)
		s.fetch(id)
	}
	s.requests = nil
	for s.now += minute; s.now < yearEpoch+int64(days)*day; s.now += minute {
		s.advance(s.now - yearEpoch)
		s.minute()
	}
	return s
}

// begin begins a refresh.
func (s *simulation) begin() {
	if (s.now/minute)%(6*60) == 0 || s.load.Upstream == 0 {
		s.load = record.Workload{}
		for _, rec := range s.records {
			if rec == nil || rec.Fetched == 0 {
				continue
			}
			s.load.Upstream++
			if rec.Cause == record.ByHub && rec.Due > rec.Fetched {
				s.load.Hubs += int(day / (rec.Due - rec.Fetched))
			}
		}
	}
	s.run = &Run{c: s.crawler, batch: s.now, began: s.now}
	s.run.p = Policy{
		Scope: "/", Links: true, Discover: true, Depth: 250, Expire: 90 * 24 * time.Hour,
		Counts: func(*record.Record) bool { return true },
	}
	s.run.links = links{cleaner: origin.NewCleaner(nil), seen: make(map[uint64]uint8), max: math.MaxInt}
	s.run.pace = s.crawler.o.Limiter.update(s.crawler, s.load)
	s.worker = &worker{run: s.run}
}

// discover makes the record of a page.
func (s *simulation) discover(id int, depth uint8, finder string, credited bool) {
	for len(s.records) <= id {
		s.records = append(s.records, nil)
	}
	rec := &record.Record{Path: s.pages[id].path, Depth: depth, Finder: finder, Credited: credited}
	s.records[id] = rec
}

// minute is a refresh.
func (s *simulation) minute() {
	s.spent = 1 // the probe requests the front page
	s.begin()
	for _, id := range s.fresh {
		s.run.settleFinders([]record.Record{*s.records[id]})
		s.records[id].Credited = true
	}
	s.fresh = nil
	s.run.front.path = s.run.p.Scope // it is requested by each probe
	text, _ := s.content(0)
	if text != s.crawler.frontHash || s.records[0].Due <= s.now {
		s.crawler.frontHash = text
		s.spent-- // it was requested already
		s.fetch(0)
	}
	for s.applyNotices() || s.fetchDue() {
	}
	s.requests = append(s.requests, s.spent)
}

// applyNotices does what links and notices say, and reports whether there were any.
func (s *simulation) applyNotices() (any bool) {
	for _, l := range s.run.links.take() {
		id, exists := s.byPath[l.path]
		if !exists || l.isAlias {
			continue
		}
		if id >= len(s.records) || s.records[id] == nil {
			s.discover(id, l.depth, l.finder, !l.finderKnown)
			s.fetch(id)
			s.fresh = append(s.fresh, id)
			any = true
		}
	}
	for _, n := range s.run.takeNotices() {
		id := s.byPath[n.path]
		if id >= len(s.records) || s.records[id] == nil {
			continue
		}
		records := []record.Record{*s.records[id]}
		if s.run.applyNotices(records, []notice{n}) {
			*s.records[id] = records[0]
			s.plan(id)
			any = true
		}
	}
	return any
}

// plan has a page fetched when it is due.
func (s *simulation) plan(id int) { heap.Push(&s.due, timer{s.records[id].Due, id}) }

// pending is a page that is due, since when, and its interval: a hundred thousand of them are looked at each minute.
type pending struct {
	id       int
	at       int64
	interval float64
	of       class
}

// late is a page that is due, and its lateness: see [lateness].
type late struct {
	id int
	by float64
}

// mostLate is how many pages are sorted by their lateness in a minute: more are not fetched.
const mostLate = 256

func later(a, b late) int { return cmp.Or(cmp.Compare(b.by, a.by), cmp.Compare(a.id, b.id)) }

// fetchDue fetches pages that are due, and reports whether there were any.
func (s *simulation) fetchDue() (any bool) {
	for len(s.due) > 0 && s.due[0].at <= s.now {
		t := s.due[0]
		heap.Pop(&s.due)
		rec := s.records[t.id]
		if rec.Due != t.at {
			continue // it was planned anew
		}
		p := pending{id: t.id, at: rec.Due, interval: float64(max(rec.Due-rec.Fetched, minute)), of: classOf(rec.Cause)}
		s.waiting = append(s.waiting, p)
	}
	var queues [byRoutine + 1][]late
	var least [byRoutine + 1]float64
	for _, p := range s.waiting {
		of := p.of
		by := float64(s.now-p.at) / p.interval
		if by < least[of] {
			continue
		}
		queues[of] = append(queues[of], late{p.id, by})
		if len(queues[of]) >= 2*mostLate {
			slices.SortFunc(queues[of], later)
			queues[of] = queues[of][:mostLate]
			least[of] = queues[of][mostLate-1].by
		}
	}
	for _, of := range []class{byList, bySignal, byHub, byShare, byRoutine, byRate} {
		slices.SortFunc(queues[of], later)
		for _, l := range queues[of] {
			if s.records[l.id].Fetched == s.now {
				continue // it was waiting twice
			}
			if s.spent >= yearRate*minute || !s.crawler.o.Limiter.spend(of) {
				break
			}
			s.fetch(l.id)
			any = true
		}
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(p pending) bool { return s.records[p.id].Fetched == s.now })
	return any
}

// fetch fetches a page, as [worker.page] does.
func (s *simulation) fetch(id int) {
	s.spent++
	p := s.pages[id]
	rec := s.records[id]
	before := *rec
	resp := &Response{Status: http.StatusOK, Header: yearHeader, Made: true}
	f := fetched{resp: resp, base: base, batch: s.now, now: s.now}
	if p.removed {
		resp.Status = http.StatusNotFound
	} else {
		f.meta.Document = true
		f.meta.Text, f.meta.Links = s.content(id)
		f.meta.Blocks = f.meta.Text
	}
	came := apply(rec, &f)
	s.run.mute(&before, rec, came)
	rec.Hub = decayedHub(&before, f.now)
	s.worker.follow(&before, rec, f.meta.Links)
	s.run.plan(&before, rec, came, 0, f.now)
	rec.Selected.Listed = rec.Status == http.StatusOK
	s.known(p, s.now-yearEpoch, before.Fetched == 0, !rec.Selected.Listed, rec.Changed == s.now)
	s.plan(id)
}

// ideal returns the ages if as many requests were made by who knows how often each page changes: of all such orders,
// the mean age is least where the intervals are as the inverse square roots of these frequencies.
func (s *simulation) ideal(pages int) *figures {
	f := new(figures)
	perDay := func(seconds int64) float64 { return day / float64(seconds) }
	posts := float64(pages+len(s.posts)) / 2
	other := (3 + 2) / posts // a page that is removed, or links to one that only it shows
	weights := []struct {
		pages, changes float64 // changes a day of each
	}{
		{listCount, 12. / listCount},
		{0.02 * posts, perDay(day) + other},
		{0.08 * posts, perDay(week) + other},
		{0.20 * posts, perDay(91*day) + other},
		{0.70 * posts, other},
	}
	// The front page, and the first request of each new page, are paid for.
	mean, _ := s.hourly(math.MaxInt / day)
	left := mean*24 - 24*60 - 20
	sum := 0.
	for _, w := range weights {
		sum += w.pages * math.Sqrt(w.changes)
	}
	intervals := make([]float64, len(weights))
	for i, w := range weights {
		intervals[i] = max(sum/left/math.Sqrt(w.changes)*day, minute)
	}
	random := rand.New(rand.NewPCG(1, 1))
	for range 20_000 {
		f.added[onFront] = append(f.added[onFront], random.Float64()*minute)
		f.added[inList] = append(f.added[inList], random.Float64()*intervals[0])
		share := random.Float64()
		of := 4
		for i, upto := range []float64{0.02, 0.10, 0.30} {
			if share < upto {
				of = i + 1
				break
			}
		}
		f.removed = append(f.removed, random.Float64()*intervals[of])
		f.added[deep] = append(f.added[deep], random.Float64()*intervals[of])
		// Most changes are of the pages that change most.
		all := 0.02*perDay(day) + 0.08*perDay(week) + 0.2*perDay(91*day)
		share = random.Float64() * all
		of = 3
		switch {
		case share < 0.02*perDay(day):
			of = 1
		case share < 0.02*perDay(day)+0.08*perDay(week):
			of = 2
		}
		f.texts = append(f.texts, random.Float64()*intervals[of])
	}
	return f
}

const yearHead = "| pages | rule | new, front page | new, list | new, deeper | removed | text changed | … mean | " +
	"requests an hour, first 30 days | all days | in the hour with the most |\n" + "|---|---|---|---|---|---|---|---|---|---|---|"

// TestYear simulates a year, and prints how old is what is listed: p50 and p95. Without the flag, it checks a month.
func TestYear(t *testing.T) {
	if *yearDays == 0 {
		if testing.Short() {
			t.Skip("it takes seconds")
		}
		checkAges(t, simulate(1000, 12, 35))
		return
	}
	sizes := []int{1000, 10_000, 100_000}
	if *yearPages > 0 {
		sizes = []int{*yearPages}
	}
	fmt.Println(yearHead)
	for _, pages := range sizes {
		now := simulate(pages, 0, *yearDays)
		fmt.Println(now.row(pages, "as built"))
		fmt.Println(now.ideal(pages).row(pages, "as many requests, by the rates of change"))
	}
}

// checkAges checks what docs/freshness.md promises of a site of a thousand pages.
func checkAges(t *testing.T, s *simulation) {
	_, most := s.hourly(math.MaxInt / day)
	for what, is := range map[string]struct{ got, most float64 }{
		"new, front page, longest": {quantile(s.added[onFront], 1), 2 * minute},
		"new, list, p50":           {quantile(s.added[inList], 0.5), 10 * minute},
		"new, list, p95":           {quantile(s.added[inList], 0.95), 30 * minute},
		"new, deeper, longest":     {quantile(s.added[deep], 1), 30 * hour},
		"removed, longest":         {quantile(s.removed, 1), 30 * hour},
		"text changed, p95":        {quantile(s.texts, 0.95), 30 * hour},
		"requests in an hour":      {most, 60 + yearRate/20*hour + 20},
	} {
		if !(is.got <= is.most) {
			t.Errorf("%s: %.0f, more than %.0f", what, is.got, is.most)
		}
	}
}

// live is the same world behind a real Crawler, whose Fetcher it is.
type live struct {
	*world
	figures
	epoch int64
	spent int
	seen  map[string]record.Record
}

func (l *live) now() int64 { return time.Now().Unix() - l.epoch }

func (l *live) Fetch(_ context.Context, r Request) (*Response, error) {
	l.spent++
	resp := &Response{Status: http.StatusNotFound, Header: yearHeader, Made: true}
	id, known := l.byPath[r.Path]
	if !known || l.pages[id].removed {
		return resp, nil
	}
	resp.Status = http.StatusOK
	text, paths := l.content(id)
	var b strings.Builder
	fmt.Fprintf(&b, "<!doctype html><title>%s</title><nav>", r.Path)
	for list := range l.lists {
		fmt.Fprintf(&b, "<a href=%s>A list</a>", listPath(list, 0))
	}
	fmt.Fprintf(&b, "</nav><main><p>%s %x", r.Path, text)
	for _, path := range paths {
		fmt.Fprintf(&b, "<p><a href=%s>A link to %s</a>", path, path)
	}
	resp.Body = []byte(b.String())
	return resp, nil
}

// look notes what has become known, and lists the pages that return 200.
func (l *live) look(t *testing.T, gen *record.Generation) *record.Generation {
	for rec, err := range gen.Records(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		before := l.seen[rec.Path]
		if rec.Fetched == before.Fetched {
			continue
		}
		l.seen[rec.Path] = record.Record{Fetched: rec.Fetched, Changed: rec.Changed}
		if id, known := l.byPath[rec.Path]; known {
			l.known(l.pages[id], l.now(), before.Fetched == 0, rec.Status != http.StatusOK, rec.Changed != before.Changed)
		}
	}
	return list200(t, gen)
}

// crawlFor crawls the world for some days, with a refresh a minute.
func (l *live) crawlFor(t *testing.T, pages, days int) {
	c := New(Options{Fetcher: l, Limiter: NewLimiter(yearRate, 1)})
	gen := empty(t)
	for {
		policy := Policy{
			Base: base, Scope: "/", Links: true, Discover: true, Filter: func(*page.Page) string { return "" },
			Disallow: func(string) bool { return false }, Allowed: func(string) bool { return true },
		}
		if len(l.seen) > 0 {
			policy.Front, _ = l.Fetch(t.Context(), Request{Path: "/"})
		}
		begun := time.Now()
		run := c.Start(new(list), policy)
		result, err := run.Update(t.Context(), gen, TimeLimit{Until: begun.Add(time.Minute)})
		if err != nil {
			t.Fatal(err)
		}
		gen = result.Generation
		if result.Fetched > 0 {
			gen = l.look(t, gen)
		}
		if l.epoch == 0 && len(l.seen) == len(l.pages) && result.Done {
			l.epoch = time.Now().Unix() // the first crawl is over
			l.spent = 0
		}
		time.Sleep(time.Until(begun.Add(time.Minute)))
		if l.epoch == 0 {
			continue
		}
		l.requests = append(l.requests, l.spent)
		l.spent = 0
		l.advance(l.now())
		if l.now() > int64(days)*day {
			return
		}
	}
}

// TestYearCrawled: a real Crawler does what the simulation says.
func TestYearCrawled(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	pages := 200
	days := 1
	if isLong {
		days = 2
	}
	if *yearDays > 0 {
		pages = 1000
		days = 14
	}
	simulated := simulate(pages, 0, days)
	crawled := &live{world: newWorld(1, pages), seen: make(map[string]record.Record)}
	synctest.Test(t, func(t *testing.T) { crawled.crawlFor(t, pages, days) })
	t.Logf("%d days:\n%s\n%s\n%s", days, yearHead, simulated.row(pages, "simulated"), crawled.row(pages, "crawled"))
	simulatedMean, _ := simulated.hourly(days)
	crawledMean, _ := crawled.hourly(days)
	for what, is := range map[string][2]float64{
		"requests an hour":   {simulatedMean, crawledMean},
		"text changed, mean": {average(simulated.texts), average(crawled.texts)},
	} {
		if quotient := is[1] / is[0]; !(quotient > 0.8 && quotient < 1.25) {
			t.Errorf("%s: %.0f simulated, %.0f crawled", what, is[0], is[1])
		}
	}
}
