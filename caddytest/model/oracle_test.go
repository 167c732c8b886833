package model

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// history is what has truly become of a page.
type history struct {
	changes []time.Time // of its text, its publication first
	written []time.Time // when it was rendered anew so that this may be its date
	isGood  bool        // it returns 200 and is indexable
	since   time.Time   // since when

	news []time.Time // of it that were not announced yet, as far as is known
	told time.Time   // when something of it was announced last
}

// oracle compares what is served with the truth, and keeps the first difference.
type oracle struct {
	*model
	histories map[string]*history
	listed    map[string]string // at the last sample: lastmod by path
	crawled   time.Time         // when all pages were listed first

	mu       sync.Mutex  // never held while anything waits
	requests []time.Time // of the application, besides probes
	problem  string
}

// What the docs promise, with a margin.
const (
	margin       = 2 * time.Minute
	lossPatience = 10 * time.Minute // until a loss is believed
	failPatience = time.Hour        // for which a page that fails stays listed
	longest      = 24 * time.Hour   // until a page of an application is fetched again
	spread       = 2 * time.Hour    // by which that may be later
	foundWithin  = 30 * time.Hour   // after a change, by which its day may be that of the fetch that found it
)

// fail notes a difference from a property, unless there was one before.
func (o *oracle) fail(property int, format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.problem == "" {
		o.problem = fmt.Sprintf("(%d) at %s: ", property, stamp(time.Now())) + fmt.Sprintf(format, args...)
	}
}

func (o *oracle) hasFailed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.problem != ""
}

func stamp(t time.Time) string { return t.UTC().Format("Jan 2 15:04:05") }

// changed notes that the text of a page has changed.
func (o *oracle) changed(p *page) {
	o.note("%s has another text", p.path)
	h := o.histories[p.path]
	h.changes = append(h.changes, time.Now())
	h.news = append(h.news, time.Now())
}

// written notes that a file was written again. If that was before the last change of its text was seen, its time is all
// that tells of that.
func (o *oracle) written(p *page) {
	h := o.histories[p.path]
	last := h.changes[len(h.changes)-1]
	isSeen := min(time.Since(last), o.faults.over(), o.up()) > 2*o.interval()+margin
	if p.isFile && !isSeen {
		o.mayBeDated(p)
	}
}

// mayBeDated lets a page have the present time as its date.
func (o *oracle) mayBeDated(p *page) {
	h := o.histories[p.path]
	h.written = append(h.written, time.Now())
}

// turned notes whether a page is good from now on.
func (o *oracle) turned(p *page) {
	h := o.histories[p.path]
	isGood := p.condition == indexable
	if h == nil {
		h = new(history)
		o.histories[p.path] = h
		h.changes = []time.Time{time.Now()}
	} else if h.isGood == isGood {
		return
	}
	o.note("%s is indexable: %v", p.path, isGood)
	h.isGood = isGood
	h.since = time.Now()
	h.news = append(h.news, time.Now())
}

// requested notes a request that reached the application.
func (o *oracle) requested(path string) {
	if strings.HasPrefix(path, "/private/") {
		o.fail(7, "%s is disallowed, and was requested", path)
	}
	if isProbe(path) {
		return
	}
	if time.Now().Before(o.faults.pausedUntil()) {
		o.fail(7, "%s was requested before a Retry-After had passed", path)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.requests = append(o.requests, time.Now())
}

// isProbe reports whether a path is requested at each refresh, beside the rate.
func isProbe(path string) bool {
	return path == "/" || strings.HasSuffix(path, ".txt") || strings.Contains(path, "sitemap")
}

// sitemap is a document.
type sitemap struct {
	URLs []struct {
		Loc     string `xml:"loc"`
		LastMod string `xml:"lastmod"`
	} `xml:"url"`
}

// served is what is served at a moment.
type served struct {
	body   string
	listed map[string]string // lastmod by path
}

// read requests the sitemap; nil: there is none.
func (o *oracle) read() *served {
	w, err := get("/sitemap.xml")
	if err != nil || w.Code != http.StatusOK {
		return nil
	}
	var doc sitemap
	if err := xml.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		o.fail(0, "the sitemap is no XML: %v", err)
	}
	listed := make(map[string]string)
	for _, u := range doc.URLs {
		listed[strings.TrimPrefix(u.Loc, origin)] = u.LastMod
	}
	return &served{w.Body.String(), listed}
}

// sample compares what is served now with the truth.
func (o *oracle) sample() {
	now := o.read()
	if now == nil {
		if o.listed != nil && !o.faults.excuse() {
			o.fail(2, "nothing is served any more")
		}
		// What comes next is like a first crawl, of which nothing is announced.
		o.listed = nil
		o.crawled = time.Time{}
		return
	}
	for path, date := range now.listed {
		o.judgeListed(path)
		o.judgeDate(path, date)
		if before, wasListed := o.listed[path]; !wasListed || before != date {
			o.note("%s is listed with the date %q", path, date)
		}
	}
	for path := range o.listed {
		if _, isListed := now.listed[path]; !isListed {
			o.judgeVanished(path)
		}
	}
	o.listed = now.listed
	isFirst := o.crawled.IsZero()
	if isFirst && len(now.listed) >= o.good() {
		o.crawled = time.Now()
	}
	o.judgeRequests()
	o.judgeAnnounced()
}

// judgeSuccessor is property 8, and 4, of a configuration or a process that follows another one.
func (o *oracle) judgeSuccessor(before *served, isEqual bool) {
	if before == nil {
		return
	}
	after := o.read()
	if after == nil {
		o.fail(8, "nothing is served any more after a reload or restart")
		return
	}
	for path := range before.listed {
		if _, isListed := after.listed[path]; !isListed && o.histories[path].isGood {
			o.fail(8, "%s is not listed any more after a reload or restart", path)
		}
	}
	if isEqual && before.body != after.body && len(before.listed) == len(after.listed) {
		o.fail(4, "the bytes changed with a reload or restart:\n%s\n%s", before.body, after.body)
	}
}

// killed lets what a new process serves be older than what was served before.
func (o *oracle) killed() {
	o.listed = nil
	for _, h := range o.histories {
		if time.Since(h.told) < 2*margin {
			h.news = append(h.news, h.told) // it may be announced once more
		}
	}
}

// good is how many pages are good.
func (o *oracle) good() (n int) {
	for _, h := range o.histories {
		if h.isGood {
			n++
		}
	}
	return n
}

// judgeListed is property 1, of a page that is listed.
func (o *oracle) judgeListed(path string) {
	h := o.histories[path]
	if h == nil {
		o.fail(1, "%s is listed, which never existed", path)
		return
	}
	isLate := min(time.Since(h.since), o.faults.over(), o.up()) > o.noticedWithin(path)
	if !h.isGood && isLate {
		o.fail(1, "%s is listed, which is not indexable since %s", path, stamp(h.since))
	}
}

// noticedWithin is how long it takes at most until it shows that a page is not good any more.
func (o *oracle) noticedWithin(path string) time.Duration {
	soon := 2*o.interval() + lossPatience + margin
	if o.site.pages[path].isFile {
		return soon
	}
	return soon + longest + spread
}

// judgeVanished is property 2, of a page that is not listed any more.
func (o *oracle) judgeVanished(path string) {
	h := o.histories[path]
	wasBad := !h.isGood || time.Since(h.since) < o.noticedWithin(path)
	if wasBad || o.faults.excuse() {
		return
	}
	// The front page is requested at each refresh. While the disk fails, no file explains its response, and a 404 counts at
	// once, although pages of a source that cannot be read are to stay for ten minutes.
	if path == "/" && o.faults.over() < margin {
		return
	}
	o.fail(2, "%s is not listed any more, and is indexable since %s", path, stamp(h.since))
}

// judgeDate is property 3, of a page that is listed with a date, or without.
func (o *oracle) judgeDate(path, date string) {
	h := o.histories[path]
	if h == nil {
		return
	}
	isFile := o.site.pages[path].isFile
	isOver := o.deployments == 0 && time.Since(o.deployed) > 2*o.interval()+lossPatience
	if date != "" && isOver && !h.explains(date, isFile) {
		o.fail(3, "%s has the date %s, and changed at %v", path, date, stamps(h.changes))
	}
	last := h.changes[len(h.changes)-1]
	isKnown := len(h.changes) > 1 && h.isGood && h.since.Before(last.Add(-longest-spread))
	isLate := min(time.Since(last), time.Since(o.deployed), o.faults.over(), o.up()) > longest+spread
	isDated := date >= last.UTC().Format(time.DateOnly)
	if isKnown && isLate && !isDated && (isFile || date != "") {
		o.fail(3, "%s has the date %q, and was corrected at %s", path, date, stamp(last))
	}
}

func stamps(all []time.Time) (texts []string) {
	for _, t := range all[max(len(all)-5, 0):] {
		texts = append(texts, stamp(t))
	}
	return texts
}

// explains reports whether a date is that of a change, to the precision that it has.
func (h *history) explains(date string, isFile bool) bool {
	found := foundWithin
	if isFile {
		found = spread
	}
	return slices.ContainsFunc(slices.Concat(h.changes, h.written), func(at time.Time) bool {
		if len(date) > len(time.DateOnly) {
			exact, err := time.Parse(time.RFC3339, date)
			return err == nil && exact.Equal(at.Truncate(time.Second))
		}
		from := at.UTC().Format(time.DateOnly)
		to := at.Add(found).UTC().Format(time.DateOnly)
		return from <= date && date <= to
	})
}

// perMinute is how many requests a minute an application gets, besides those of each refresh.
const perMinute = 120

// judgeRequests is property 7, of the requests of the last minute.
func (o *oracle) judgeRequests() {
	o.mu.Lock()
	o.requests = slices.DeleteFunc(o.requests, func(at time.Time) bool { return time.Since(at) > time.Minute })
	count := len(o.requests)
	o.mu.Unlock()
	if count > perMinute+2 {
		o.fail(7, "%d requests in a minute", count)
	}
}
