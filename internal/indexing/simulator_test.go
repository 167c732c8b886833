package indexing

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/record"
)

// The simulator deploys another version of a site, with corrections of some pages, and counts the pages with a date that is not
// true, and the corrections without one, once all is over. Pages are of plain <div>s, so that nothing but the rules tells the
// content from the rest.

// moment is what a page depends on besides its text.
type moment struct {
	version int   // of the template
	now     int64 // when it is made
	posts   int   // how many pages there are on the site, as others are published
}

// theme is what the pages of a site have around their text.
type theme struct {
	name   string
	around func(i int, m moment) string
}

func at(unix int64, layout string) string { return time.Unix(unix, 0).UTC().Format(layout) }

func link(i int, words string) string { return fmt.Sprintf("<a href=/%04d>%s %d</a>", i, words, i) }

// related are links to the posts that were published last.
func related(m moment, entry func(i int) string) string {
	var b strings.Builder
	for i := range 5 {
		b.WriteString(entry(m.posts - i))
	}
	return b.String()
}

var titles = []string{"Keeping bees", "Mending nets", "Reading maps", "Baking bread", "Drawing wells", "Sharpening saws", "Binding books"}

var prose = "<p>" + strings.Repeat("Many have asked how it is done, and few have seen it. ", 8) + "</p>"

func title(i int) string { return fmt.Sprintf("%s, volume %d", titles[(i+7)%len(titles)], i) }

var themes = []theme{
	{"nothing", func(int, moment) string { return "" }},
	{"list of a category", func(_ int, m moment) string {
		return "<div>In this category</div><ul>" + related(m, func(i int) string { return "<li>" + link(i, title(i)) }) + "</ul>"
	}},
	{"related posts", func(_ int, m moment) string {
		return related(m, func(i int) string { return "<div>" + link(i, title(i)) + "</div>" })
	}},
	{"related posts with dates", func(_ int, m moment) string {
		return related(m, func(i int) string {
			return "<div>" + link(i, title(i)) + " · " + at(m.now-int64(m.posts-i)*day, "2 January 2006") + "</div>"
		})
	}},
	{"related posts as cards", func(_ int, m moment) string {
		return related(m, func(i int) string {
			return "<div><div>" + at(m.now, "2 Jan") + "</div><h3>" + link(i, title(i)) + "</h3><p>It is about " + title(i+3) + " and more.</p></div>"
		})
	}},
	{"previous and next", func(i int, m moment) string {
		return "<div>" + link(i-1, title(i-1)) + "</div><div>" + link(m.posts, title(m.posts)) + "</div>"
	}},
	{"tags in any order", func(i int, m moment) string {
		tags := []string{"<a href=/tag/a>water</a>", "<a href=/tag/b>stone</a>", "<a href=/tag/c>wood</a>"}
		n := int(m.now) % len(tags)
		return "<div>" + strings.Join(append(slices.Clone(tags[n:]), tags[:n]...), ", ") + "</div>"
	}},
	{"breadcrumbs", func(_ int, m moment) string {
		return "<div>" + strings.Repeat("<a href=/>Home</a> › ", m.version) + "<a href=/guides>Guides</a></div>"
	}},
	{"comments of each section", func(i int, m moment) string {
		return fmt.Sprintf("<div>%d comments</div><div>%d replies</div>", int(m.now)/60%90, i%7+m.version)
	}},
	{"counters", func(i int, m moment) string { return fmt.Sprintf("<div>%d views</div>", m.now/60%10_000+int64(i)) }},
	{"days ago", func(i int, m moment) string {
		return fmt.Sprintf("<div>Published %d days ago</div>", m.now/day%1000+int64(i))
	}},
	{"position", func(i int, m moment) string { return fmt.Sprintf("<div>Article %d of %d</div>", i, m.posts) }},
	{"renumbered headings", func(i int, m moment) string {
		return fmt.Sprintf("<h2>%d.%d How it began</h2><p>With %s.</p>", i/10+m.version, i%10, title(i))
	}},
	{"build hash", func(_ int, m moment) string { return fmt.Sprintf("<div>Build %07xa1</div>", m.now*7919%0xfffffff) }},
	{"render time", func(i int, m moment) string {
		return fmt.Sprintf("<div>Page generated in 0.%03d seconds</div>", (int(m.now)+i)%1000)
	}},
	{"copyright", func(_ int, m moment) string { return at(m.now+int64(m.version)*400*day, "<div>© 2006 Example</div>") }},
	{"banner", func(_ int, m moment) string {
		return strings.Repeat("<div>We are closed on Monday.</div>", m.version-1)
	}},
	{"footer", func(_ int, m moment) string {
		return fmt.Sprintf("<div>Our office has moved to house %d.</div>", m.version)
	}},
	{"banner of each folder", func(i int, m moment) string {
		return fmt.Sprintf("<div>Part %c of the guide, edition %d, for all who work outdoors.</div>", 'A'+i/20, m.version)
	}},
	{"redesign", func(i int, m moment) string {
		return fmt.Sprintf("<div>%s: %s by hand, told to friends.</div>", strings.Repeat("New! ", m.version-1), title(i*m.version))
	}},
}

// stamps say when a page was made, and are themes, too.
var stamps = []string{
	"<div>Last updated January 2, 2006 15:04</div>",
	"<dl><dt>Last updated:</dt><dd>2006-01-02</dd></dl>",
	"<div>Zuletzt geändert am 02.01.2006 um 15:04 Uhr</div>",
	"<div>Dernière mise à jour le 02/01/2006 à 15h04</div>",
	"<div>Última actualización: 02/01/2006</div>",
	"<div>Atualizado em: 02/01/2006 15:04</div>",
	"<div>Последнее обновление: 02.01.2006</div>",
	"<div>Ultimo aggiornamento: 02/01/2006</div>",
	"<div>Laatst bijgewerkt op 02-01-2006</div>",
	"<div>Ostatnia aktualizacja: 02.01.2006</div>",
	"<div>最終更新日 2006年01月02日</div>",
	"<div>更新时间：2006-01-02 15:04:05</div>",
}

func init() {
	for _, layout := range stamps {
		themes = append(themes, theme{layout, func(_ int, m moment) string { return at(m.now, layout) }})
	}
}

// simulation is a site of files or of an application, as crawls see it.
type simulation struct {
	isFile  bool
	theme   theme
	texts   []string
	records []record.Record
	first   []date // the dates of before
	now     int64
	scanned int64
}

func newSimulation(theme theme, isFile bool, n int) *simulation {
	s := &simulation{theme: theme, isFile: isFile, now: noon.Unix()}
	s.scanned = s.now - 60
	begun := s.now - 20*day
	for i := range n {
		s.texts = append(s.texts, fmt.Sprintf("<h1>%s</h1><p>All that is known of %s is told here, in %d lines.</p>%s<p>Price: %d EUR</p>", title(i), title(i+1), i+7, prose, i*10+5))
		html := s.html(i, moment{version: 1, now: begun, posts: n})
		r := rec(fmt.Sprintf("/%04d", i))
		r.First, r.Fetched, r.Text, r.Blocks = begun, begun, uint64(i+1), s.blocks(i, html)
		if isFile {
			r.Version, r.ModTime = 1, begun-int64(3+i)*10*day
		} else {
			r.Flags |= record.Made
			r.Modified = begun - int64(3+i)*10*day
		}
		s.records = append(s.records, r)
	}
	s.pass()
	for i := range s.records {
		r := &s.records[i]
		s.first = append(s.first, date{r.Selected.Text, r.Selected.TextDay})
		r.Fetched = s.now - 12*hour
	}
	return s
}

func (s *simulation) html(i int, m moment) string {
	return "<!doctype html><title>" + title(i) + "</title><div>" + s.texts[i] + "</div>" + s.theme.around(i, m)
}

func (s *simulation) blocks(i int, text string) uint64 {
	return html.Parse([]byte(text), html.Page{Base: "https://example.com", Path: fmt.Sprintf("/%04d", i)}).Blocks
}

// pass selects: it decides what can be decided, and returns when more can.
func (s *simulation) pass() (due time.Time) {
	o := rules()
	o.Now = time.Unix(s.now, 0)
	o.Interval = time.Minute
	d := newDates(&o)
	for i := range s.records {
		d.add(&s.records[i])
	}
	d.decide()
	for i := range s.records {
		r := &s.records[i]
		selected := d.of(r, true)
		if selected.Dated != r.Selected.Dated {
			r.Was = record.Unix32(r.Selected.Text)
			r.WasDay = r.Selected.TextDay
		}
		r.Selected = selected
	}
	return d.waiting.due()
}

// until lets time pass, with a selection whenever dates can be decided.
func (s *simulation) until(at int64) {
	for {
		due := s.pass()
		if due.IsZero() || due.Unix() >= at {
			break
		}
		s.now = due.Unix()
	}
	s.now = at
}

// edit corrects the text of a page, in one of five ways.
func (s *simulation) edit(i int) {
	s.texts[i] = []func(string) string{
		func(text string) string { return strings.Replace(text, "All that", "Most that", 1) },
		func(text string) string { return strings.Replace(text, "Price: ", "Price: 1", 1) },
		func(text string) string { return text + "<p>One more thing: " + title(i+5) + ".</p>" },
		func(text string) string {
			before, _, _ := strings.Cut(text, "<p>Price")
			return before
		},
		func(text string) string { return strings.Replace(text, "<h1>", "<h1>More of ", 1) },
	}[i/10%5](s.texts[i])
}

// write is a file that was written at a time, and is found by a scan after so many seconds.
func (s *simulation) write(i int, m moment, written, after int64) {
	r := &s.records[i]
	blocks := s.blocks(i, s.html(i, m))
	found := s.now + after
	r.Version++
	r.ModTime = written
	r.Fetched = found
	s.change(r, blocks, found)
}

// change records another text, as the crawl does.
func (s *simulation) change(r *record.Record, blocks uint64, found int64) {
	if blocks == r.Blocks {
		return
	}
	r.Found = record.Unix32(found)
	difference := blocks - r.Blocks
	r.Blocks = blocks
	isOpen := r.Changed != 0 && r.AwaitsDate()
	if isOpen {
		r.Difference += difference
		return
	}
	r.Before = max(r.Before, s.scanned)
	if !s.isFile {
		r.Before = r.Fetched
	}
	r.Difference = difference
	r.Changed = found
	r.Streak = 0
}

// look fetches a page of an application. If its text is another one, that is in doubt until confirmed.
func (s *simulation) look(i int, m moment) (blocks uint64, isOther bool) {
	r := &s.records[i]
	blocks = s.blocks(i, s.html(i, m))
	isOther = blocks != r.Blocks
	if isOther {
		r.Steadiness = record.TextInDoubt
		r.Before = r.Fetched
	}
	r.Fetched = s.now
	return blocks, isOther
}

// confirm fetches a page again that had another text then.
func (s *simulation) confirm(i int, m moment, blocks uint64, found int64) {
	r := &s.records[i]
	m.now = s.now
	r.Steadiness = record.Steady
	if s.blocks(i, s.html(i, m)) == blocks {
		r.Fetched = r.Before
		s.change(r, blocks, found)
		r.Changed = s.now
	}
	r.Fetched = s.now
}

// fetch fetches a page of an application, and once more after a while if it has changed.
func (s *simulation) fetch(i int, m moment, confirm int64) {
	found := s.now
	blocks, isOther := s.look(i, m)
	if !isOther {
		return
	}
	s.pass()
	s.now += confirm
	s.confirm(i, m, blocks, found)
}

// wrong returns how many pages have a date that is not true, and how many corrections have none.
func (s *simulation) wrong(edited map[int]bool) (falseDates, missed int) {
	for i := range s.records {
		selected := s.records[i].Selected
		isMoved := date{selected.Text, selected.TextDay} != s.first[i]
		switch {
		case isMoved && !edited[i]:
			falseDates++
		case !isMoved && edited[i]:
			missed++
		}
	}
	return falseDates, missed
}

// trouble is what happens to every third page of a deployment.
type trouble string

const (
	none   trouble = ""
	killed trouble = "killed" // after a change was found, and before it was stored: the next process finds it again
	down   trouble = "down"   // the page returns 503 for ten minutes, after it has changed
)

// found has a changed page found, amid trouble. Other pages are found meanwhile, so time is set back.
func (s *simulation) found(i int, m moment, amid trouble) {
	if i%3 != 0 {
		amid = none
	}
	const restart, outage = 30, 600
	before := s.records[i]
	begun := s.now
	find := func(after int64) {
		if s.isFile {
			s.write(i, m, begun, after)
			return
		}
		s.fetch(i, m, after)
	}
	usual := int64(60)
	if s.isFile {
		usual = 1
	}
	switch amid {
	case killed:
		find(usual)
		s.pass()
		s.records[i] = before
		s.now = begun + restart
		find(usual)
	case down:
		find(outage)
	default:
		find(usual)
	}
	s.now = begun
}

// TestSimulation deploys another version of each theme, at each pace, with corrections of some pages.
func TestSimulation(t *testing.T) {
	paces := []int64{0, 1, 40, 125, 400, 1500} // seconds for a page
	if testing.Short() {
		paces = []int64{0, 125}
	}
	for _, theme := range themes {
		for _, isFile := range []bool{true, false} {
			for _, pace := range paces {
				simulate(t, theme, isFile, pace, none)
			}
			for _, amid := range []trouble{killed, down} {
				simulate(t, theme, isFile, 125, amid)
			}
		}
	}
}

// simulate deploys another version of a theme, a page every so many seconds, amid trouble.
func simulate(t *testing.T, theme theme, isFile bool, pace int64, amid trouble) {
	t.Helper()
	n := 100
	if pace <= 1 {
		n = 300
	}
	s := newSimulation(theme, isFile, n)
	edited := s.deploy(n, pace, amid)
	falseDates, missed := s.wrong(edited)
	wantFalse, wantMissed := leftOf(theme.name, isFile, pace, len(edited), n)
	if falseDates != wantFalse || missed != wantMissed {
		t.Errorf("%s, files %t, a page every %d s, %s: %d false dates, want %d; %d of %d corrections missed, want %d",
			theme.name, isFile, pace, amid, falseDates, wantFalse, missed, len(edited), wantMissed)
	}
}

// leftOf is how many false dates, and missed corrections, the rules leave.
func leftOf(theme string, isFile bool, pace int64, edited, pages int) (falseDates, missed int) {
	isSlow := isFile && pace >= 40 || pace >= 1500
	switch {
	case theme == "redesign" && isSlow:
		return pages - edited, 0 // each page is taken for an edit
	case theme == "redesign":
		return 0, edited // each page is taken for the template's
	case theme == "banner of each folder" && !isFile && pace < 1500:
		return 0, 2 // which came before five pages had the same banner
	}
	return 0, 0
}

// deploy deploys another version, in an order in which the corrections are spread, and lets it settle.
func (s *simulation) deploy(n int, pace int64, amid trouble) (edited map[int]bool) {
	edited = make(map[int]bool)
	for i := range n {
		page := i * 7 % n
		m := moment{version: 2, now: s.now, posts: n + 1 + i*3/n}
		if page%(n/10) == 3 {
			edited[page] = true
			s.edit(page)
		}
		s.found(page, m, amid)
		if pace > 0 {
			s.until(s.now + pace)
		}
	}
	s.until(s.now + 2*hour)
	return edited
}

// TestSimulatedEdits: corrections of an application that are found in one round are dated, however many are confirmed at once, and
// however long that takes.
func TestSimulatedEdits(t *testing.T) {
	for _, test := range []struct {
		name             string
		pages, due, edit int   // how many there are, are looked at in the round, and are edited
		confirm          int64 // seconds
		missed           int
	}{
		{"one", 100, 100, 1, 60, 0},
		{"three at once", 100, 100, 3, 60, 0},
		{"twelve at once", 100, 100, 12, 60, 0},
		{"forty at once", 100, 100, 40, 60, 0},
		{"half of them", 100, 100, 50, 60, 0},
		{"more than half", 100, 100, 51, 60, 51},
		{"the upstream is down for an hour", 100, 100, 12, hour, 0},
		{"the upstream is down for a night", 100, 100, 12, 12 * hour, 0},
		{"three of three that are due", 100, 3, 3, 60, 0},
		{"six of nine", 100, 9, 6, 60, 0},
		{"eight of twenty", 100, 20, 8, 60, 0},
		{"all of nine pages", 9, 9, 9, 60, 0},
		{"nine of ten pages", 10, 10, 9, 60, 9},
	} {
		s := newSimulation(themes[0], false, test.pages)
		edited := make(map[int]bool)
		for i := range test.edit {
			edited[i] = true
			s.edit(i)
		}
		m := moment{version: 1, now: s.now, posts: test.pages}
		round := make(map[int]uint64)
		for i := range test.due {
			if blocks, isOther := s.look(i, m); isOther {
				round[i] = blocks
			}
		}
		s.pass()
		found := s.now
		s.now += test.confirm
		for i, blocks := range round {
			s.confirm(i, m, blocks, found)
		}
		s.until(s.now + 2*hour)
		falseDates, missed := s.wrong(edited)
		if falseDates != 0 || missed != test.missed {
			t.Errorf("%s: %d false dates, %d of %d corrections missed, want %d", test.name, falseDates, missed, test.edit, test.missed)
		}
	}
}
