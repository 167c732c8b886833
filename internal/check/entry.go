package check

import (
	"bytes"
	"time"
	"unicode/utf8"

	"github.com/seed3295b519/caddy-sitemap/internal/sitemapxml"
)

func (d *document) beginEntry() {
	e := &d.entry
	*e = entry{loc: e.loc[:0], lastMod: e.lastMod[:0]}
	d.counted(d.tokens.line())
}

// counted counts an entry that begins at a line.
func (d *document) counted(line int) {
	d.result.URLs++
	if d.result.Kind == KindIndex {
		d.c.summary.Children++
	} else {
		d.c.summary.URLs++
	}
	if d.result.URLs == maxEntries+1 {
		d.say(Error, line, "too-many-entries", "has more than 50,000 entries")
	}
}

func (d *document) endEntry() {
	e := &d.entry
	if d.result.Kind == KindIndex && e.usable && len(d.result.Children) < maxEntries {
		d.addChild(e)
	}
	e.loc = e.loc[:0]
}

// addChild keeps a child in little memory. Where there are many, room is made for all
// that there may be: growing step by step would leave several times as much behind.
func (d *document) addChild(e *entry) {
	children := d.result.Children
	if len(children) == manyChildren {
		children = append(make([]Child, 0, maxEntries), children...)
	}
	n := len(e.loc)
	e.loc = append(e.loc, e.lastMod...) // for one allocation of both
	text := string(e.loc)
	d.result.Children = append(children, Child{text[:n], text[n:], e.locLine})
}

const manyChildren = 4096

// loc checks the loc that has just ended.
func (d *document) loc() {
	e := &d.entry
	trimmed := trimSpace(d.value)
	e.loc = append(e.loc[:0], trimmed...)
	e.locLine = 0
	if d.result.Kind == KindIndex || d.c.options.Page != nil {
		e.locLine = d.valueLine()
	}
	if len(trimmed) < len(d.value) {
		d.about(e.loc, Warning, d.valueLine(), "loc-space-around", "has white space around a loc, which some readers keep")
	}
	e.usable = d.locate(e.loc, d.valueLine)
}

// locate checks a URL that the document lists, and reports whether it is one.
func (d *document) locate(loc []byte, line func() int) bool {
	if d.result.Kind != KindIndex && d.c.options.Page != nil {
		d.c.options.Page(loc, line())
	}
	a, flaw := d.scope.parse(loc)
	if flaw != nil {
		d.about(loc, Error, line(), "loc-"+flaw.code, "has a loc that %s", flaw.message)
		return false
	}
	if len(loc) < minLoc || len(loc) > maxLoc {
		d.length(loc, line)
	}
	if a.unicode {
		d.about(loc, Warning, line(), "loc-not-ascii", "has a loc with characters that should be percent-encoded")
	}
	if a.fragment {
		d.about(loc, Warning, line(), "loc-fragment", "has a loc with a fragment, which readers cut off")
	}
	if d.scope == nil {
		d.scope = scopeFrom(loc)
	}
	if why := d.scope.holds(a); why != "" {
		d.about(loc, Error, line(), "loc-outside-scope", "has a loc that %s", why)
	}
	d.duplicate(loc, &a, line)
	return true
}

// duplicate checks whether a loc, in any spelling, was there before.
func (d *document) duplicate(loc []byte, a *address, line func() int) {
	same := a.simplest(loc, d.c.spelt)
	other := ""
	if len(same) > 0 && &same[0] != &loc[0] {
		d.c.spelt = same
		other = ", in this or another spelling"
	}
	switch d.c.seen.add(same, d.result.Kind) {
	case beforeHere:
		d.about(loc, Warning, line(), "duplicate", "has a loc twice%s", other)
	case beforeElsewhere:
		d.about(loc, Warning, line(), "duplicate-elsewhere", "has a loc that an earlier document has, too%s", other)
	}
}

func (d *document) length(loc []byte, line func() int) {
	n := utf8.RuneCount(loc)
	switch {
	case n > maxLoc:
		d.about(loc, Error, line(), "loc-too-long", "has a loc of %s characters; 2,047 are the most", thousands(n))
	case n < minLoc && (d.result.Kind == KindURLSet || d.result.Kind == KindIndex):
		d.about(loc, Error, line(), "loc-too-short", "has a loc of less than 12 characters, which the schema does not allow")
	}
}

// Slack for clocks that differ, and for a day that has begun elsewhere.
const (
	clockSlack = int64(time.Hour / time.Second)
	daySlack   = 14 * clockSlack
)

// lastMod checks the lastmod that has just ended.
func (d *document) lastMod() {
	e := &d.entry
	e.lastMod = append(e.lastMod[:0], trimSpace(d.value)...)
	t := &d.dates
	if d.result.URLs == 1 {
		t.first = append(t.first[:0], e.lastMod...)
	}
	if bytes.Equal(e.lastMod, t.first) {
		t.same++
	}
	if t.form == dateNone || !bytes.Equal(e.lastMod, t.last) {
		t.at, t.form = parseDate(e.lastMod)
		t.last = append(t.last[:0], e.lastMod...)
	}
	if message := d.dateFlaw(t.form); message != "" {
		d.about(e.loc, Error, d.valueLine(), "lastmod", "has a lastmod \"%s\" that %s", shown(e.lastMod), message)
		return
	}
	switch t.form {
	case dateLocal, dateDayZone:
		d.about(e.loc, Warning, d.valueLine(), "lastmod-zone", "has a lastmod \"%s\" that is no W3C Datetime: a time needs a time zone, and a day has none", e.lastMod)
	}
	slack := clockSlack
	if t.form != dateSecond && t.form != dateMinute {
		slack = daySlack
	}
	if t.at > t.now+slack {
		d.about(e.loc, Warning, d.valueLine(), "lastmod-future", "has a lastmod \"%s\" that lies in the future", e.lastMod)
		return
	}
	if !t.found || t.at > t.newest {
		t.found, t.newest = true, t.at
	}
}

// dateFlaw says why the lastmod that has just ended, of a form, is none of the
// schema, or "".
func (d *document) dateFlaw(form dateForm) string {
	if d.result.Schema == sitemapxml.Schema084 {
		if n := utf8.RuneCount(d.value); n < 10 || n > 25 {
			return "has not 10 to 25 characters, as schema 0.84 demands"
		}
	}
	switch form {
	case dateNone:
		return "is no date such as 2024-05-01 or 2024-05-01T10:20:30Z"
	case dateYear, dateMonth, dateMinute:
		if d.result.Schema == sitemapxml.Schema09 {
			return "the schema does not allow: it wants a whole date, and a time with seconds"
		}
	}
	return ""
}

func (d *document) sameDates() {
	if d.result.Kind == KindURLSet && d.result.URLs > 3 && d.dates.same == d.result.URLs {
		d.say(Warning, 0, "lastmod-all-the-same", "has the lastmod \"%s\" for all pages: probably the time of a build, which readers learn to disregard", shown(d.dates.first))
	}
}

const newsAge = 2 * daySeconds

func (d *document) newsDate() {
	at, form := parseDate(trimSpace(d.value))
	if form == dateNone {
		return
	}
	limit := d.dates.now - newsAge
	if form != dateSecond {
		limit -= daySeconds
	}
	if at < limit {
		d.about(d.entry.loc, Warning, d.valueLine(), "news-old", "has news of %s, which is more than two days ago", shown(d.value))
	}
}
