package main

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// freshnessRows measure how long it takes from a change to a right sitemap, and to a notice. What takes minutes is
// measured in real time, beside what takes days: that goes by a fast [clock], which neither Caddy nor the application
// can tell from a real one.
func (b *bench) freshnessRows(ctx context.Context) []*row {
	parts := []func(context.Context) []*row{b.linkedRows, b.trafficRows, b.logRows, b.facetRows, b.namedRows, b.releaseRows, b.deployRows, b.uploadRows}
	if b.days > 0 {
		fast := b.fast(ctx)
		for _, part := range []func(context.Context, string) []*row{b.motionRows, b.quietRows, b.toldRows} {
			parts = append(parts, func(ctx context.Context) []*row { return part(ctx, fast) })
		}
	}
	rows := make([][]*row, len(parts))
	failures := make([]error, len(parts))
	var group sync.WaitGroup
	for i, part := range parts {
		group.Go(func() {
			defer func() {
				switch v := recover().(type) {
				case nil:
				case failure:
					b.say("  freshness: %s", v.error)
					failures[i] = v.error
				default:
					panic(v)
				}
			}()
			rows[i] = part(ctx)
		})
	}
	group.Wait()
	check(failures...)
	return append(slices.Concat(rows...), b.restRows(ctx)...)
}

// ages is a row of the time that changes took to show, judged by one of its quantiles.
func ages(what string, quantile float64, values []time.Duration, bound time.Duration) *row {
	r := &row{what: fmt.Sprintf("%s (%d)", what, len(values)), show: span, reach: atMost(bound.Seconds())}
	slices.Sort(values)
	if len(values) > 0 {
		r.add(values[min(int(quantile*float64(len(values))), len(values)-1)].Seconds())
	} else {
		r.add(never.Seconds())
	}
	return r
}

const never = time.Duration(math.MaxInt64)

// span shows seconds that may be days.
func span(v float64) string {
	switch {
	case v >= never.Seconds():
		return "not"
	case v >= 2*24*3600:
		return fmt.Sprintf("%.1f d", v/24/3600)
	case v >= 2*3600:
		return fmt.Sprintf("%.1f h", v/3600)
	case v >= 2*60:
		return fmt.Sprintf("%.1f min", v/60)
	}
	return fmt.Sprintf("%.0f s", v)
}

func count(v float64) string { return number(int(math.Round(v))) }

// moving is an application behind a Caddy, with a search engine beside it, and all that was seen of them.
type moving struct {
	*blog
	name   string
	server *server
	etag   string

	seen   sync.Mutex
	listed map[string]time.Time // since when; of those that are not any more, see gone
	gone   map[string]time.Time
	dates  map[string][]dated
	sent   map[string][]time.Time // notices
}

// dated is a lastmod, and when it was first served.
type dated struct {
	seen, lastmod time.Time
	day           bool // only the day is known
}

// follows reports whether the date is not before a change.
func (d dated) follows(change time.Time) bool {
	precision := time.Second
	if d.day {
		precision = 24 * time.Hour
	}
	return !d.lastmod.Before(change.Truncate(precision))
}

// isOf reports whether the date may be that of a change.
func (d dated) isOf(change time.Time) bool {
	return !d.seen.Before(change) && d.follows(change)
}

func newMoving(name string, a *blog) *moving {
	return &moving{
		blog:   a,
		name:   name,
		listed: make(map[string]time.Time),
		gone:   make(map[string]time.Time),
		dates:  make(map[string][]dated),
		sent:   make(map[string][]time.Time),
	}
}

// moves starts an application behind Caddy with these options of the directive; fast is the program of a fast clock.
func (b *bench) moves(name, fast string, a *blog, options string) *moving {
	m := newMoving(name, a)
	check(os.RemoveAll(b.path(name)))
	upstream := httptest.NewServer(a)
	engine := httptest.NewServer(http.HandlerFunc(m.notice))
	addr := freeAddr()
	directives := []string{
		"log {\noutput file " + b.path(name+"/access.log") + "\n}",
		"sitemap {\n" + strings.NewReplacer("ENGINE", engine.URL, "LOG", b.path(name+"/access.log")).Replace(options) + "\n}",
		"reverse_proxy " + upstream.Listener.Addr().String(),
	}
	config := site(addr, directives...)
	if fast == "" {
		m.server = b.start(name, addr, config)
	} else {
		m.server = b.startProgram(fast, name, addr, config, a.clock.env()...)
	}
	return m
}

// notice takes a notice of IndexNow.
func (m *moving) notice(w http.ResponseWriter, r *http.Request) {
	var body struct{ URLList []string }
	err := json.NewDecoder(r.Body).Decode(&body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	m.seen.Lock()
	defer m.seen.Unlock()
	for _, u := range body.URLList {
		path := pathOf(u)
		m.sent[path] = append(m.sent[path], m.clock.now())
	}
	w.WriteHeader(http.StatusAccepted)
}

func pathOf(raw string) string { return must(url.Parse(raw)).Path }

var entry = regexp.MustCompile(`<loc>([^<]*)</loc>(?:<lastmod>([^<]*)</lastmod>)?`)

// look notes what the sitemap says now.
func (m *moving) look(ctx context.Context) {
	req := must(http.NewRequestWithContext(ctx, http.MethodGet, m.server.sitemap(), nil))
	req.Header.Set("If-None-Match", m.etag)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return // it is starting
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return
	}
	m.etag = resp.Header.Get("Etag")
	now := m.clock.now()
	m.seen.Lock()
	defer m.seen.Unlock()
	current := make(map[string]bool)
	for _, found := range entry.FindAllStringSubmatch(string(body), -1) {
		path := must(url.Parse(html.UnescapeString(found[1]))).RequestURI()
		current[path] = true
		if _, known := m.listed[path]; !known {
			m.listed[path] = now
			delete(m.gone, path)
		}
		if found[2] == "" {
			continue
		}
		d := dated{seen: now, day: len(found[2]) == len(time.DateOnly)}
		layout := time.RFC3339
		if d.day {
			layout = time.DateOnly
		}
		d.lastmod = must(time.Parse(layout, found[2]))
		all := m.dates[path]
		if len(all) == 0 || !all[len(all)-1].lastmod.Equal(d.lastmod) {
			m.dates[path] = append(all, d)
		}
	}
	for path := range m.listed {
		if !current[path] {
			delete(m.listed, path)
			m.gone[path] = now
		}
	}
}

// watch looks again and again until a virtual time, or until done, and reports whether it is.
func (m *moving) watch(ctx context.Context, until time.Time, done func() bool) bool {
	for {
		m.look(ctx)
		if done != nil && done() {
			return true
		}
		now := m.clock.now()
		if !now.Before(until) {
			return false
		}
		pause := max(time.Duration(m.clock.speed)*50*time.Millisecond, time.Second)
		next := now.Add(pause)
		if next.After(until) {
			next = until
		}
		m.clock.until(ctx, next)
	}
}

// complete waits until so many pages are listed.
func (m *moving) complete(ctx context.Context, pages int) {
	begun := m.clock.now()
	if !m.watch(ctx, begun.Add(time.Duration(m.clock.speed)*patience/2), func() bool { return len(m.listed) >= pages }) {
		check(fmt.Errorf("%d of %d pages are listed", len(m.listed), pages))
	}
}

// untilListed, untilGone and untilDated are how long it took since a change; never: it did not.
func (m *moving) untilListed(path string, since time.Time) time.Duration {
	return after(m.listed, path, since)
}

func (m *moving) untilGone(path string, since time.Time) time.Duration {
	return after(m.gone, path, since)
}

func (m *moving) untilDated(path string, since time.Time) time.Duration {
	for _, d := range m.dates[path] {
		if d.isOf(since) {
			return d.seen.Sub(since)
		}
	}
	return never
}

// untilSent is how long a notice took.
func (m *moving) untilSent(path string, since time.Time) time.Duration {
	m.seen.Lock()
	defer m.seen.Unlock()
	for _, at := range m.sent[path] {
		if at.After(since) {
			return at.Sub(since)
		}
	}
	return never
}

// each is how long each of several changes took.
func each(changes map[string]time.Time, took func(path string, since time.Time) time.Duration) (all []time.Duration) {
	for path, at := range changes {
		all = append(all, took(path, at))
	}
	return all
}

func after(times map[string]time.Time, path string, since time.Time) time.Duration {
	at, known := times[path]
	if !known || at.Before(since) {
		return never
	}
	return at.Sub(since)
}

// truth counts lastmods that were served, and notices that were sent, of posts that had not changed.
func (m *moving) truth(name string) []*row {
	var dates, falseDates, notices, falseNotices float64
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen.Lock()
	defer m.seen.Unlock()
	for path, p := range m.posts {
		changes := p.modified
		if p.existed && m.tells == "" {
			changes = changes[1:]
		}
		for _, d := range m.dates[path] {
			dates++
			if !slices.ContainsFunc(changes, d.follows) {
				falseDates++
			}
		}
		if p.existed && m.tells != "" {
			changes = changes[1:]
		}
		falseDates += float64(max(0, len(m.dates[path])-len(p.modified)))
		notices += float64(len(m.sent[path]))
		falseNotices += float64(max(0, len(m.sent[path])-len(changes)))
	}
	return []*row{
		{what: fmt.Sprintf("%s: dates served that are false, of %s", name, count(dates)), show: count, ours: []float64{falseDates}},
		{what: fmt.Sprintf("%s: notices sent without a change, of %s", name, count(notices)), show: count, ours: []float64{falseNotices}},
	}
}

// publicOrigin is by what search engines are to know the site: none is told of 127.0.0.1.
const publicOrigin = "http://www.sitemap-bench.org"

const indexNow = "base_url " + publicOrigin + "\nindexnow {\nendpoint ENGINE/\n}"

func realTime() clock { return clock{time.Now(), 1} }

// linkedRows measure a new page that the front page links to, and the notice of it.
func (b *bench) linkedRows(ctx context.Context) []*row {
	const posts, lists = 60, 3
	m := b.moves("linked", "", newBlog(realTime(), lists, posts, 0), indexNow)
	m.complete(ctx, 1+posts+lists)
	m.watch(ctx, m.clock.now().Add(2*time.Minute), nil) // the refresh that confirms it
	var listed, sent []time.Duration
	for i := range 4 {
		at := m.clock.now()
		path := m.publish(fmt.Sprintf("new-%d", i), i%lists, true)
		m.watch(ctx, at.Add(150*time.Second), func() bool { return m.untilListed(path, at) != never })
		took := m.untilListed(path, at)
		listed = append(listed, took)
		if took == never {
			sent = append(sent, never)
			continue
		}
		known := at.Add(took)
		m.watch(ctx, known.Add(3*time.Minute), func() bool { return m.untilSent(path, known) != never })
		sent = append(sent, m.untilSent(path, known))
		b.say("  freshness: linked from the front page: listed after %s, announced %s later", span(took.Seconds()), span(sent[i].Seconds()))
	}
	return append([]*row{
		ages("a page newly linked from the front page: listed, longest", 1, listed, 2*time.Minute),
		ages("IndexNow: a new page, since it is listed, longest", 1, sent, 90*time.Second),
	}, m.truth("linked from the front page")...)
}

// trafficRows and logRows measure what becomes of pages that are gone once a visitor has met them.
func (b *bench) trafficRows(ctx context.Context) []*row { return b.metRows(ctx, "traffic", "traffic") }

func (b *bench) logRows(ctx context.Context) []*row {
	return b.metRows(ctx, "access_log", "access_log LOG")
}

func (b *bench) metRows(ctx context.Context, name, source string) []*row {
	const posts, lists = 60, 3
	m := b.moves("met-"+name, "", newBlog(realTime(), lists, posts, 0), "links\n"+source+"\n"+indexNow)
	m.complete(ctx, 1+posts+lists)
	m.watch(ctx, m.clock.now().Add(2*time.Minute), nil)
	begun := m.clock.now()
	paths := make(map[string]time.Time)
	for i, how := range []func(*post){missing, removed, redirected, forbidden} {
		path := fmt.Sprintf("/posts/post-%d/", 10+i)
		paths[path] = m.change(path, how)
		m.visit(ctx, path)
	}
	isDone := func() bool {
		for path := range paths {
			if m.untilGone(path, begun) == never || m.untilSent(path, begun) == never {
				return false
			}
		}
		return true
	}
	m.watch(ctx, begun.Add(7*time.Minute), isDone)
	var gone, sent []time.Duration
	for path, at := range paths {
		gone = append(gone, m.untilGone(path, at))
		sent = append(sent, m.untilSent(path, at))
		b.say("  freshness: %s of %s, as %s shows: unlisted after %s, announced after %s", path, http.StatusText(m.posts[path].status),
			name, span(gone[len(gone)-1].Seconds()), span(sent[len(sent)-1].Seconds()))
	}
	rows := []*row{
		ages("a page removed, moved or made private, met by a visitor, with `"+name+"`: unlisted, longest", 1, gone, 2*time.Minute),
		ages("… announced, longest", 1, sent, 7*time.Minute),
	}
	if name != "traffic" {
		return rows
	}
	return append(append(rows, b.askedForRows(ctx, m)...), m.truth("met by a visitor, or asked for")...)
}

// askedForRows measure what becomes of pages that an operator has fetched again.
func (b *bench) askedForRows(ctx context.Context, m *moving) []*row {
	begun := m.clock.now()
	args := []string{"sitemap", "refresh", "--address", m.server.admin, "--fetch"}
	paths := make(map[string]time.Time)
	for i, how := range []func(*post){hidden, refreshed, edited} {
		path := fmt.Sprintf("/posts/post-%d/", 20+i)
		paths[path] = m.change(path, how)
		args = append(args, publicOrigin+path)
	}
	run(ctx, must(os.Executable()), args...)
	known := func(path string, at time.Time) time.Duration {
		return min(m.untilGone(path, at), m.untilDated(path, at))
	}
	m.watch(ctx, begun.Add(10*time.Minute), func() bool {
		took := append(each(paths, known), each(paths, m.untilSent)...)
		return slices.Max(took) != never
	})
	for path, at := range paths {
		b.say("  freshness: %s, fetched again by the operator: known after %s, announced after %s", path,
			span(known(path, at).Seconds()), span(m.untilSent(path, at).Seconds()))
	}
	return []*row{
		ages("a text changed, a noindex or a meta refresh, after `refresh --fetch URL`: known, longest", 1, each(paths, known), 2*time.Minute),
		ages("… announced, longest", 1, each(paths, m.untilSent), 10*time.Minute),
	}
}

// visit requests a page as a browser does.
func (m *moving) visit(ctx context.Context, path string) {
	req := must(http.NewRequestWithContext(ctx, http.MethodGet, m.server.base()+path, nil))
	req.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0")
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	check(err)
	check(resp.Body.Close())
}

// facetRows measure when all products of a shop were found beside thousands of views of its lists.
func (b *bench) facetRows(ctx context.Context) []*row {
	const products, lists = 300, 3
	r := &row{
		what: "300 products beside thousands of facet URLs: all listed (or 12 min), over the time without", show: span, reach: atMost(2),
	}
	var took [2]float64
	var group sync.WaitGroup
	for i, facets := range []int{40, 0} {
		group.Go(func() {
			name := fmt.Sprintf("facets-%d", facets)
			m := b.moves(name, "", newBlog(realTime(), lists, products, facets),
				"links {\nquery facet0 facet1 facet2 facet3\n}")
			begun := m.clock.now()
			all := func() (n int) {
				for path := range m.posts {
					if _, ok := m.listed[path]; ok {
						n++
					}
				}
				return n
			}
			m.watch(ctx, begun.Add(12*time.Minute), func() bool { return all() == products })
			took[i] = m.clock.now().Sub(begun).Seconds()
			b.say("  freshness: %d facets a list: %d of %d products after %s", facets, all(), products, span(m.clock.now().Sub(begun).Seconds()))
		})
	}
	group.Wait()
	r.add(took[0], took[1])
	return []*row{r}
}

// namedRows measure pages that come and go in a folder of files, and in a list.
func (b *bench) namedRows(ctx context.Context) []*row {
	var rows []*row
	for _, source := range []string{"files", "urls"} {
		rows = append(rows, b.namedBy(ctx, source)...)
	}
	return rows
}

func (b *bench) namedBy(ctx context.Context, source string) []*row {
	const pages = 20
	m := newMoving("named-"+source, newBlog(realTime(), 1, 0, 0))
	check(os.RemoveAll(b.path(m.name)))
	root := b.path(m.name + "/root")
	list := b.path(m.name + "/list.txt")
	path := func(i int) string { return fmt.Sprintf("/page-%d.html", i) }
	write := func(i, edits int) {
		text := fmt.Sprintf("<!doctype html><title>Page %d</title>", i)
		for j := range 5 + edits {
			text += fmt.Sprintf("<p>Paragraph %d of page %d, in a text of its own.</p>", j, i)
		}
		check(os.WriteFile(filepath.Join(root, path(i)), []byte(text), 0o644))
	}
	name := func(from, to int) {
		var b strings.Builder
		for i := from; i < to; i++ {
			fmt.Fprintln(&b, path(i))
		}
		check(os.WriteFile(list, []byte(b.String()), 0o644))
	}
	check(os.MkdirAll(root, 0o755))
	for i := range pages {
		write(i, 0)
		longAgo := time.Now().AddDate(0, 0, -10-i)
		check(os.Chtimes(filepath.Join(root, path(i)), longAgo, longAgo))
	}
	name(0, pages)
	directive := "sitemap"
	if source == "urls" {
		directive = fmt.Sprintf("sitemap {\nurls %q\n}", list)
	}
	addr := freeAddr()
	m.server = b.start(m.name, addr, site(addr, files(root, directive)...))
	m.complete(ctx, pages)
	m.watch(ctx, m.clock.now().Add(90*time.Second), nil)
	at := m.clock.now()
	write(pages, 0)
	write(pages/2, 1)
	check(os.Remove(filepath.Join(root, path(0))))
	name(1, pages+1)
	isDone := func() bool {
		return max(m.untilListed(path(pages), at), m.untilGone(path(0), at), m.untilDated(path(pages/2), at)) != never
	}
	m.watch(ctx, at.Add(5*time.Minute), isDone)
	one := func(d time.Duration) []time.Duration { return []time.Duration{d} }
	bound := 2 * time.Minute
	if source == "files" {
		bound = 3 * time.Second // they are watched
	}
	rows := []*row{
		ages("`"+source+"`: a new page: listed", 1, one(m.untilListed(path(pages), at)), bound),
		ages("`"+source+"`: a page removed: unlisted", 1, one(m.untilGone(path(0), at)), bound),
	}
	if source == "files" {
		rows = append(rows, ages("`files`: a text changed: dated", 1, one(m.untilDated(path(pages/2), at)), 40*time.Second))
	}
	return rows
}

// releaseRows measure whether declared changes are announced if they come with another root, or with another setting.
func (b *bench) releaseRows(ctx context.Context) []*row {
	const pages = 20
	m := &moving{blog: newBlog(realTime(), 1, 0, 0), sent: make(map[string][]time.Time)}
	engine := httptest.NewServer(http.HandlerFunc(m.notice))
	check(os.RemoveAll(b.path("release")))
	// The first release is of last year, and each later one has another page changed.
	release := func(n int) string {
		root := b.path(fmt.Sprintf("release/%d", n))
		for i := range pages {
			date := time.Now().AddDate(-1, 0, i)
			edits := 0
			if i > 0 && i <= n {
				date = time.Now().AddDate(0, 0, i-10)
				edits = 1
			}
			var b strings.Builder
			fmt.Fprintf(&b, `<!doctype html><title>Page %d</title><meta property="article:modified_time" content="%s">`, i, date.Format(time.RFC3339))
			for j := range 5 + edits {
				fmt.Fprintf(&b, "<p>Paragraph %d of page %d, in a text of its own.</p>", j, i)
			}
			check(os.MkdirAll(root, 0o755), os.WriteFile(filepath.Join(root, fmt.Sprintf("page-%d.html", i)), []byte(b.String()), 0o644))
		}
		return root
	}
	addr := freeAddr()
	config := func(n int, options string) string {
		options = strings.ReplaceAll(indexNow, "ENGINE", engine.URL) + "\n" + options
		return site(addr, files(release(n), "sitemap {\n"+options+"\n}")...)
	}
	m.server = b.start("release", addr, config(0, ""))
	must(m.server.listed(ctx, pages))
	m.clock.until(ctx, m.clock.now().Add(130*time.Second)) // the refresh that confirms it
	var sent []time.Duration
	for n, options := range []string{"", "html"} {
		at := m.clock.now()
		m.server.reload(ctx, config(n+1, options))
		path := fmt.Sprintf("/page-%d.html", n+1)
		took := never
		for took == never && m.clock.now().Sub(at) < 7*time.Minute {
			m.clock.until(ctx, m.clock.now().Add(time.Second))
			took = m.untilSent(path, at)
		}
		b.say("  freshness: a release with a new root and %q: announced after %s", options, span(took.Seconds()))
		sent = append(sent, took)
	}
	return []*row{
		ages("a release by a new root and a reload: announced", 1, sent[:1], 7*time.Minute),
		ages("a release with `html` switched on: announced", 1, sent[1:], 7*time.Minute),
	}
}

// motionRows measure a site of a thousand pages in motion, whose changes only links and pages tell.
func (b *bench) motionRows(ctx context.Context, fast string) []*row {
	const posts, lists = 950, 5
	m := b.moves("motion", fast, newBlog(clock{time.Now(), int64(b.speed)}, lists, posts, 0), "refresh 1m")
	m.complete(ctx, 1+posts+lists+lists*(posts/lists/listPosts))
	begun := m.clock.now()
	measured := begun.Add(24 * time.Hour) // by then, it is known which pages bring links
	end := measured.AddDate(0, 0, b.days).Add(2 * time.Hour)
	at := make(map[string]map[string]time.Time) // when a path changed, by kind
	note := func(kind, path string, when time.Time) {
		if at[kind] == nil {
			at[kind] = make(map[string]time.Time)
		}
		at[kind][path] = when
	}
	change := func() {
		for i, how := range []func(*post){missing, removed, redirected, forbidden, hidden, refreshed, edited} {
			for j := range 8 {
				path := fmt.Sprintf("/posts/post-%d/", 200+100*i+7*j)
				kind := "gone"
				if i == 6 {
					kind = "edited"
				}
				note(kind, path, m.change(path, how))
				if i < 2 {
					m.withdraw(path)
				}
			}
		}
		for i := range 4 {
			path := m.publish(fmt.Sprintf("deep-%d", i), -1, false)
			m.change(fmt.Sprintf("/posts/post-%d/", i), func(p *post) { p.links = append(p.links, path) })
			note("deep", path, m.clock.now())
		}
	}
	hasChanged := false
	for n := 0; m.clock.now().Before(end); n++ {
		when := m.clock.now()
		isMeasured := when.After(measured)
		if isMeasured && !hasChanged {
			hasChanged = true
			change()
		}
		// Each half hour there is a post in a list, each fourth of which the front page shows.
		kind := "list"
		if n%4 == 3 {
			kind = "front"
		}
		path := m.publish(fmt.Sprintf("new-%d", n), n%lists, kind == "front")
		if isMeasured && when.Before(end.Add(-2*time.Hour)) {
			note(kind, path, when)
		}
		m.watch(ctx, when.Add(30*time.Minute), nil)
	}
	took := func(kind string, of func(string, time.Time) time.Duration) []time.Duration { return each(at[kind], of) }
	mean, most := m.load(begun, end)
	b.say("  freshness: requests an hour of %s: %s", m.name, m.often(begun, end))
	const site = "1,000 pages in motion: "
	rows := []*row{
		ages(site+"newly linked from the front page: listed, longest", 1, took("front", m.untilListed), 2*time.Minute),
		ages(site+"… from a list that brings links most days, p50", 0.5, took("list", m.untilListed), 10*time.Minute),
		ages(site+"… p95", 0.95, took("list", m.untilListed), 30*time.Minute),
		ages(site+"… from a page that rarely changes, longest", 1, took("deep", m.untilListed), 25*time.Hour),
		ages(site+"removed, moved, private or noindex: unlisted, p50", 0.5, took("gone", m.untilGone), 0),
		ages(site+"… longest", 1, took("gone", m.untilGone), 25*time.Hour),
		ages(site+"a text changed: dated, p50", 0.5, took("edited", m.untilDated), 0),
		ages(site+"… longest", 1, took("edited", m.untilDated), 25*time.Hour),
		{what: site + "requests an hour", show: count, ours: []float64{mean}},
		{what: site + "requests in the hour with the most", show: count, ours: []float64{most}},
	}
	return append(rows, m.truth("1,000 pages in motion")...)
}

// quietRows measure what is requested of a thousand pages that never change.
func (b *bench) quietRows(ctx context.Context, fast string) []*row {
	const posts, lists = 950, 4
	m := b.moves("quiet", fast, newBlog(clock{time.Now(), int64(b.speed)}, lists, posts, 0), "refresh 1m")
	m.complete(ctx, 1+posts+lists+lists*(posts/lists/listPosts))
	begun := m.clock.now().Add(time.Hour)
	end := begun.AddDate(0, 0, 1+b.days)
	m.watch(ctx, end, nil)
	mean, most := m.load(begun, end)
	b.say("  freshness: requests an hour of %s: %s", m.name, m.often(begun, end))
	return []*row{
		{what: "1,000 pages that never change: requests an hour", show: count, ours: []float64{mean}, reach: atMost(130)},
		{what: "… in the hour with the most", show: count, ours: []float64{most}, reach: atMost(130)},
	}
}

// toldRows measure an application that has a sitemap of its own: 200 pages are edited in a day, and one of them again;
// some come that nothing else names, and some go.
func (b *bench) toldRows(ctx context.Context, fast string) []*row {
	const posts, lists, edits = 940, 4, 200
	a := newBlog(clock{time.Now(), int64(b.speed)}, lists, posts, 0)
	a.tells = publicOrigin
	m := b.moves("told", fast, a, "refresh 1m\n"+indexNow)
	m.complete(ctx, 1+posts+lists)
	m.watch(ctx, m.clock.now().Add(6*time.Hour), nil)
	begun := m.clock.now()
	changes, added, lost := make(map[string]time.Time), make(map[string]time.Time), make(map[string]time.Time)
	var past float64
	for i := range edits {
		path := fmt.Sprintf("/posts/post-%d/", 100+i)
		changes[path] = m.change(path, edited)
		if i%20 == 10 {
			path := m.publish(fmt.Sprintf("new-%d", i), -1, false)
			added[path] = m.clock.now()
			path = fmt.Sprintf("/posts/post-%d/", 400+i)
			lost[path] = m.change(path, removed)
			m.withdraw(path)
		}
		m.watch(ctx, begun.Add(time.Duration(i+1)*24*time.Hour/edits), nil)
		past += m.overdue(ctx)
	}
	m.watch(ctx, m.clock.now().Add(time.Hour), nil)
	const corrected = "/posts/post-150/"
	at := m.change(corrected, edited)
	m.watch(ctx, at.Add(2*time.Hour), func() bool { return m.untilSent(corrected, at) != never })
	correction := m.untilSent(corrected, at)
	if correction != never {
		correction -= m.untilDated(corrected, at)
	}
	m.watch(ctx, m.clock.now().Add(2*time.Hour), nil)
	const site = "the application's own sitemap tells: "
	rows := []*row{
		ages(site+"a new page: listed, longest", 1, each(added, m.untilListed), 20*time.Minute),
		ages(site+"a page removed: unlisted, longest", 1, each(lost, m.untilGone), 20*time.Minute),
		ages(site+"a text changed: dated, longest", 1, each(changes, m.untilDated), 20*time.Minute),
		ages("200 of 1,000 pages edited in a day: announced, longest", 1, each(changes, m.untilSent), 24*time.Hour),
		ages("a correction after them: announced, since it is dated", 1, []time.Duration{correction}, 10*time.Minute),
		{what: "… `next` lay in the past, of 200 looks", show: count, ours: []float64{past}},
	}
	return append(rows, m.truth("200 of 1,000 pages edited")...)
}

// overdue is 1 if URLs wait for a notice whose time was over a minute ago.
func (m *moving) overdue(ctx context.Context) float64 {
	_, body, err := get(ctx, "http://"+m.server.admin+"/sitemap/sites")
	check(err)
	var status struct {
		Sites []struct {
			Announced []struct {
				Waiting int
				Next    time.Time
			}
		}
	}
	check(json.Unmarshal(body, &status))
	for _, s := range status.Sites {
		for _, target := range s.Announced {
			if target.Waiting > 0 && m.clock.now().Sub(target.Next) > time.Minute {
				return 1
			}
		}
	}
	return 0
}
