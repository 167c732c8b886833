package caddytest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Bounds of what the oracle accepts.
const (
	longestLag = 15 * time.Second // until a page that is there is listed, or one that is gone is not
	startGrace = 5 * time.Second  // after the first response of a process, which do not count
)

// moment is when a page truly changed.
type moment struct {
	at        time.Time
	isRelease bool // its file was written by a deployment, before that was served
}

// oracle knows of each page whether it exists, and when it truly changed. Its methods may be called side by side.
type oracle struct {
	mu       sync.Mutex
	pages    map[string]*knownPage // by path
	upSince  time.Time             // when Caddy has first responded, since it was started; zero: it is down
	sampled  time.Time             // when the sitemap was last read
	longest  time.Duration         // difference between what is listed and what exists
	problems []problem
}

// knownPage is what is known of a URL.
type knownPage struct {
	exists  bool
	since   time.Time // when it came to be there last
	differs time.Time // since when it is listed and does not exist, or the other way round; zero: neither
	moments []moment
	history []string
}

// kind is what is wrong.
type kind string

const (
	unreadable kind = "the sitemap cannot be read"
	unknown    kind = "a page is listed that never existed"
	falseDate  kind = "a false date"
	late       kind = "a change is missed"
)

// problem is what the sitemap says and is not true.
type problem struct {
	kind kind
	at   time.Time
	path string
	text string
}

func newOracle() *oracle { return &oracle{pages: make(map[string]*knownPage)} }

// page returns what is known of a URL.
func (o *oracle) page(path string) *knownPage {
	k := o.pages[path]
	if k == nil {
		k = new(knownPage)
		o.pages[path] = k
	}
	return k
}

// appears notes that a page is at a URL from now on, with the moments at which its text has changed.
func (o *oracle) appears(path, how string, at time.Time, moments []moment) {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.page(path)
	k.exists = true
	k.since = at
	k.differs = time.Time{}
	k.moments = append(k.moments, moments...)
	k.moments = append(k.moments, moment{at: at})
	k.note(at, how)
}

// changes notes that the text of a page has changed.
func (o *oracle) changes(path, how string, m moment) {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.page(path)
	k.moments = append(k.moments, m)
	k.note(m.at, how)
}

// disappears notes that there is no page at a URL any more.
func (o *oracle) disappears(path, how string, at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.page(path)
	k.exists = false
	k.differs = time.Time{}
	k.note(at, how)
}

// happens notes what changes nothing of a page.
func (o *oracle) happens(path, how string, at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.page(path).note(at, how)
}

// everywhere notes what happens to the whole site.
func (o *oracle) everywhere(how string, at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, k := range o.pages {
		k.note(at, how)
	}
}

func (k *knownPage) note(at time.Time, how string) {
	k.history = append(k.history, at.UTC().Format("15:04:05.000 ")+how)
}

// isUp notes when Caddy has first responded; zero: it is down.
func (o *oracle) isUp(at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.upSince = at
	o.sampled = at
}

// existing returns the paths of the pages that exist, in order.
func (o *oracle) existing() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var paths []string
	for path, k := range o.pages {
		if k.exists {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// accepts reports whether a date is a true one.
func (k *knownPage) accepts(lastmod string) bool {
	isDay := len(lastmod) == len(time.DateOnly)
	return lastmod == "" || slices.ContainsFunc(k.moments, func(m moment) bool {
		if !isDay {
			return m.isAt(lastmod)
		}
		// A change just before midnight is found after it.
		const found = time.Minute
		return slices.Contains([]string{day(m.at), day(m.at.Add(found))}, lastmod)
	})
}

// isAt reports whether a time, to the second, is that of the moment.
func (m moment) isAt(lastmod string) bool {
	// A file that is written again before it was looked at has the later time, and one that was written before its folder
	// took the place of another, the earlier one. While files are written without a pause, the interval alone says when
	// they are looked at, and that takes a while.
	const earlier, atOnce = 10 * time.Second, 2 * time.Second
	later := soakInterval() + 5*time.Second
	at, err := time.Parse(time.RFC3339, lastmod)
	ago := m.at.Sub(at)
	if m.isRelease {
		return err == nil && -later < ago && ago < earlier
	}
	return err == nil && -later < ago && ago < atOnce
}

func day(at time.Time) string { return at.UTC().Format(time.DateOnly) }

// judge compares a sample with what is true. The sample was requested at a time; nil: the request has failed.
func (o *oracle) judge(at time.Time, dates map[string]string, failed error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if failed != nil {
		if !o.upSince.IsZero() && now.Sub(o.sampled) > longestLag {
			o.problem(unreadable, "", "%v", failed)
		}
		return
	}
	o.sampled = now
	for path, lastmod := range dates {
		k := o.pages[path]
		switch {
		case k == nil:
			o.problem(unknown, path, "it is listed")
		case !k.accepts(lastmod):
			o.problem(falseDate, path, "its lastmod is %s", lastmod)
		}
	}
	for path, k := range o.pages {
		_, isListed := dates[path]
		o.compare(path, k, isListed, at)
	}
}

// compare notes for how long a page has been listed that does not exist, or the other way round.
func (o *oracle) compare(path string, k *knownPage, isListed bool, at time.Time) {
	if isListed == k.exists {
		k.differs = time.Time{}
		return
	}
	if k.differs.IsZero() {
		k.differs = at
	}
	if o.upSince.IsZero() {
		return
	}
	since := o.upSince.Add(startGrace)
	if k.differs.After(since) {
		since = k.differs
	}
	lag := at.Sub(since)
	o.longest = max(o.longest, lag)
	if lag > longestLag {
		o.problem(late, path, "listed %t, exists %t, for over %s", isListed, k.exists, longestLag)
	}
}

// problem notes what is wrong, once for a page and a text.
func (o *oracle) problem(is kind, path, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	isKnown := slices.ContainsFunc(o.problems, func(p problem) bool { return p.path == path && p.text == text })
	if !isKnown {
		o.problems = append(o.problems, problem{is, time.Now(), path, text})
	}
}

// first returns the first problems of each kind, and counts all.
func (o *oracle) first() (first []problem, counts map[kind]int) {
	const most = 3
	o.mu.Lock()
	defer o.mu.Unlock()
	counts = make(map[kind]int)
	for _, p := range o.problems {
		counts[p.kind]++
		if counts[p.kind] <= most {
			first = append(first, p)
		}
	}
	return first, counts
}

// historyOf returns what has happened to a page, a line each. The oracle is locked.
func (o *oracle) historyOf(path string) string {
	k := o.pages[path]
	if k == nil {
		return ""
	}
	var b strings.Builder
	for _, m := range k.moments {
		fmt.Fprintf(&b, "\ttrue: %s, by a deployment: %t\n", m.at.UTC().Format(time.RFC3339Nano), m.isRelease)
	}
	for _, line := range k.history {
		fmt.Fprintf(&b, "\t%s\n", line)
	}
	return b.String()
}

// describe returns what has happened to a page, a line each.
func (o *oracle) describe(path string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.historyOf(path)
}

// isSettled reports whether a page was at its URL for long before a moment. One that is new may come with so many others that none of
// them has a date.
func (o *oracle) isSettled(path string, before time.Time) bool {
	const long = 10 * time.Minute
	o.mu.Lock()
	defer o.mu.Unlock()
	return before.Sub(o.pages[path].since) > long
}

// pathsOf returns the paths of a sample, in order.
func pathsOf(dates map[string]string) []string { return slices.Sorted(maps.Keys(dates)) }
