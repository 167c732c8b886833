package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// layout is what the pages of a folder have in common.
type layout struct {
	header string
	year   int
	stamp  string // "Last updated …", as generators write it; "": none
	class  string // of the footer; "": it is a plain <div>
	banner string
	menu   int // entries
}

// html is the ith page, which was corrected so many times.
func (l layout) html(i, corrections int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<!doctype html><title>Page %d</title><body><div>%s</div>", i, l.header)
	if l.banner != "" {
		fmt.Fprintf(&b, "<div><p>%s</p></div>", l.banner)
	}
	b.WriteString("<div>")
	for entry := range l.menu {
		fmt.Fprintf(&b, `<p><a href="/page-%d.html">Chapter %d</a></p>`, entry, entry)
	}
	b.WriteString("</div><div>")
	for j := range 8 {
		fmt.Fprintf(&b, "<p>Paragraph %d of page %d says what no other one does, in a text of %d words.</p>", j, i, scramble(i*100+j)%997)
	}
	for j := range corrections {
		fmt.Fprintf(&b, "<p>Correction %d of page %d: it is %d.</p>", j, i, scramble(i+j)%997)
	}
	b.WriteString("</div><div")
	if l.class != "" {
		fmt.Fprintf(&b, ` class="%s"`, l.class)
	}
	fmt.Fprintf(&b, ">Copyright %d by nobody", l.year)
	if l.stamp != "" {
		fmt.Fprintf(&b, "<p>Last updated %s.</p>", l.stamp)
	}
	b.WriteString("</div></body>")
	return b.String()
}

// deployed is a folder of files behind Caddy, in which a generator writes all files anew.
type deployed struct {
	*moving
	root      string
	layout    layout
	corrected map[int]time.Time
}

// deploys makes a folder whose pages were written on days long ago, and serves it.
func (b *bench) deploys(ctx context.Context, name string, pages int, l layout, directive string) *deployed {
	d := &deployed{
		moving:    newMoving(name, newBlog(realTime(), 1, 0, 0)),
		root:      b.path(name + "/root"),
		layout:    l,
		corrected: make(map[int]time.Time),
	}
	check(os.RemoveAll(b.path(name)), os.MkdirAll(d.root, 0o755))
	for i := range pages {
		d.write(i)
		at := d.first(i)
		check(os.Chtimes(d.file(i), at, at))
	}
	addr := freeAddr()
	d.server = b.start(name, addr, site(addr, files(d.root, directive)...))
	d.complete(ctx, pages)
	d.watchUntil(ctx, 2*time.Minute, func() bool { return len(d.dates) == pages })
	return d
}

func (d *deployed) file(i int) string { return filepath.Join(d.root, fmt.Sprintf("page-%d.html", i)) }

// first is when the ith page was written first.
func (d *deployed) first(i int) time.Time {
	return d.clock.epoch.Truncate(time.Second).AddDate(0, 0, -10-i).Add(time.Duration(i) * time.Minute)
}

func (d *deployed) write(i int) {
	n := 0
	if _, isCorrected := d.corrected[i]; isCorrected {
		n = 1
	}
	check(os.WriteFile(d.file(i), []byte(d.layout.html(i, n)), 0o644))
}

// deploy writes all pages in some time, those in between corrected.
func (d *deployed) deploy(ctx context.Context, pages, corrections int, lasts time.Duration) {
	begun := d.clock.now()
	for i := range pages {
		if corrections > 0 && i%(pages/corrections) == 0 && len(d.corrected) < corrections {
			d.corrected[i] = d.clock.now()
		}
		d.write(i)
		if next := begun.Add(lasts * time.Duration(i) / time.Duration(pages)); next.After(d.clock.now()) {
			d.watch(ctx, next, nil)
		}
	}
}

func (d *deployed) watchUntil(ctx context.Context, most time.Duration, done func() bool) {
	d.watch(ctx, d.clock.now().Add(most), done)
}

// judge counts the dates that were ever served of pages that had not changed, and the corrections that have one.
func (d *deployed) judge(pages int) (falseDates, seen int) {
	for i := range pages {
		at, isCorrected := d.corrected[i]
		isSeen := false
		for _, date := range d.dates[fmt.Sprintf("/page-%d.html", i)] {
			switch {
			case date.lastmod.Equal(d.first(i)):
			case isCorrected && date.follows(at):
				isSeen = true
			default:
				falseDates++
			}
		}
		if isSeen {
			seen++
		}
	}
	return falseDates, seen
}

// deployRows measure what deployments do to dates: each is watched until the dates are decided.
func (b *bench) deployRows(ctx context.Context) []*row {
	plain := layout{year: 2025, menu: 6}
	footer := layout{year: 2025, menu: 6, class: "footer", stamp: "2025-06-01 10:00"}
	year := func(l *layout) { l.year++ }
	stamped := func(l *layout) {
		l.year++
		l.stamp = time.Now().Format("2006-01-02 15:04:05")
	}
	var rows []*row
	var mu sync.Mutex
	var group sync.WaitGroup
	for i, test := range []struct {
		what        string
		pages       int
		lasts       time.Duration
		options     string
		before      layout
		change      func(l *layout)
		corrections int
	}{
		{"600 files over 30 s, another year in a plain `<div>`", 600, 30 * time.Second, "", plain, year, 0},
		{"600 files over 150 s, another year in a plain `<div>`", 600, 150 * time.Second, "", plain, year, 0},
		{"400 files over 24 s, `refresh 3s`, another year and build time in `<div class=footer>`", 400, 24 * time.Second, "refresh 3s", footer, stamped, 10},
		{"60 files at once, \"Last updated\" with the build time in a plain `<div>`", 60, time.Second, "", layout{year: 2025, stamp: "2025-06-01 10:00", menu: 6}, stamped, 3},
		{"300 files over 60 s, a banner and a menu entry in plain `<div>`s", 300, time.Minute, "", plain, func(l *layout) { l.banner = "Today only."; l.menu++ }, 20},
	} {
		group.Go(func() {
			d := b.deploys(ctx, fmt.Sprintf("deploy-%d", i), test.pages, test.before, "sitemap {\n"+test.options+"\n}")
			test.change(&d.layout)
			d.deploy(ctx, test.pages, test.corrections, test.lasts)
			ended := d.clock.now()
			d.watchUntil(ctx, 4*time.Minute, nil)
			falseDates, seen := d.judge(test.pages)
			var dated []time.Duration
			for i := range d.corrected {
				dated = append(dated, d.untilDated(fmt.Sprintf("/page-%d.html", i), ended))
			}
			b.say("  freshness: %s: %d false dates, %d of %d corrections dated", test.what, falseDates, seen, test.corrections)
			mu.Lock()
			defer mu.Unlock()
			rows = append(rows, &row{what: test.what + ": false dates", show: count, ours: []float64{float64(falseDates)}})
			if test.corrections > 0 {
				all := &row{what: fmt.Sprintf("… of %d corrections, dated", test.corrections), show: count, reach: atLeast(float64(test.corrections))}
				all.add(float64(seen))
				rows = append(rows, all, ages("… since its end, longest", 1, dated, 150*time.Second))
			}
		})
	}
	group.Wait()
	return rows
}

// uploadRows measure the dates of a site that is seen for the first time after an upload of two hours, and of a page that is larger
// than what is read of it, as its header grows.
func (b *bench) uploadRows(ctx context.Context) []*row {
	const pages = 600
	m := newMoving("upload", newBlog(realTime(), 1, 0, 0))
	check(os.RemoveAll(b.path(m.name)), os.MkdirAll(b.path(m.name+"/root"), 0o755))
	d := &deployed{moving: m, root: b.path(m.name + "/root"), layout: layout{year: 2025, menu: 6}}
	for i := range pages {
		d.write(i)
		at := m.clock.epoch.Add(-3 * time.Hour).Add(time.Duration(i) * 12 * time.Second)
		check(os.Chtimes(d.file(i), at, at))
	}
	addr := freeAddr()
	m.server = b.start(m.name, addr, site(addr, files(d.root, "sitemap")...))
	m.complete(ctx, pages)
	d.watchUntil(ctx, 3*time.Minute, nil)
	large := b.largeRow(ctx)
	return []*row{{what: "600 files uploaded over two hours, at first sight: dated", show: count, ours: []float64{float64(len(m.dates))}}, large}
}

func (b *bench) largeRow(ctx context.Context) *row {
	filler := "<p>" + strings.Repeat("Some words of a log that goes on and on. ", 20) + "</p>\n"
	log := func(header int) string {
		var s strings.Builder
		for i := 0; s.Len() < 3<<20; i++ {
			fmt.Fprintf(&s, "<p>Entry %d of %d</p>%s", i, scramble(i), filler)
		}
		return "<!doctype html><title>Log</title><header>" + strings.Repeat("A header. ", header) + "</header><main>" + s.String() + "</main>"
	}
	const pages = 5
	d := b.deploys(ctx, "large", pages, layout{year: 2025, menu: 6}, "sitemap")
	d.watchUntil(ctx, 70*time.Second, nil)
	moved := 0
	check(os.WriteFile(filepath.Join(d.root, "log.html"), []byte(log(1)), 0o644))
	d.watchUntil(ctx, 100*time.Second, func() bool { return len(d.dates["/log.html"]) > 0 })
	for header := range 3 {
		check(os.WriteFile(filepath.Join(d.root, "log.html"), []byte(log(10<<(4*header))), 0o644))
		d.watchUntil(ctx, 70*time.Second, nil)
	}
	moved += max(0, len(d.dates["/log.html"])-1)
	b.say("  freshness: a page of 3 MiB whose header grows has %d dates", len(d.dates["/log.html"]))
	return &row{what: "a page over 2 MiB whose header grows, thrice: its date moves", show: count, ours: []float64{float64(moved)}}
}

// restRows measure a large site while nothing changes, and the first file that is saved after that.
func (b *bench) restRows(ctx context.Context) []*row {
	of := number(b.files) + " files, which are watched: "
	idle := &row{what: of + "processor time of a quiet minute", show: duration, reach: atMost(0.1)}
	saved := &row{what: of + "a file saved after a quiet time: listed", show: duration, reach: atMost(10)}
	root := b.tree("tree", b.files, small)
	s := b.serve("rest", files(root, "sitemap"))
	must(s.listed(ctx, b.files))
	check(s.until(ctx, "a whole watch", func() (bool, error) {
		_, body, err := get(ctx, "http://"+s.admin+"/sitemap/sites")
		return strings.Contains(string(body), `"state": "whole"`) || strings.Contains(string(body), `"state":"whole"`), err
	}))
	realTime().until(ctx, time.Now().Add(2*time.Minute)) // in which dates are decided, and the refresh has paid for itself
	before := must(s.processor())
	realTime().until(ctx, time.Now().Add(time.Minute))
	idle.add(must(s.processor()) - before)
	name := filepath.Join(root, "section-000", "part-00", "saved.html")
	check(os.WriteFile(name, small(b.files), 0o644))
	at := float64(time.Now().UnixNano()) / 1e9
	last, _, err := s.refreshed(ctx, func(r report) bool { return r.Pages == b.files+1 })
	check(err, os.Remove(name))
	saved.add(last.At - at)
	b.say("  freshness: %s files: %s in a quiet minute, a file saved is listed after %s (%s)", number(b.files),
		duration(idle.ours[0]), duration(saved.ours[0]), load())
	return []*row{idle, saved}
}
