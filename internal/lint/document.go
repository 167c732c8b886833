package lint

import (
	"bytes"
	"encoding/xml"
	"errors"
	"hash/maphash"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// document is the check of one document.
type document struct {
	*findings
	in       *input
	xml      *xml.Decoder
	encoding string // as declared, unless it is UTF-8
	line     int    // where the token begins
	result   Result
	scope    *scope // nil: not known yet

	spaces   map[string]bool // namespaces that were declared
	own      string          // namespace of the root, and of the protocol's elements
	frames   []frame
	rooted   bool
	value    []byte // text of the element being read
	textLine int    // where it begins
	entries  int
	entry    entry
	dates    dates
	full     bool // an entry was not remembered
	now      time.Time
}

// check checks the document. The error is one of the reader.
func (d *document) check() error {
	err := d.read()
	var bad *flaw
	if errors.As(err, &bad) {
		d.add(Error, d.line, bad.code, "%s", bad.message)
		err = nil
	}
	if d.in.total > maxDocument {
		d.add(Error, 0, "too-long", "has more than 52,428,800 bytes uncompressed")
	}
	if d.result.Kind == KindURLSet && d.entries > 3 && d.dates.same == d.entries {
		d.add(Warning, 0, "lastmod-all-the-same", "has the lastmod \"%s\" for all pages: probably the time of a build, which readers learn to disregard", shown(d.dates.first))
	}
	if d.full {
		d.once(Warning, 0, "duplicates-unknown", "has more entries than are remembered, so later duplicates are not found")
	}
	d.result.NewestLastMod = d.dates.newest
	d.rest()
	return err
}

const maxHead = 32 << 10 // bytes in which a document's kind is looked for

func (d *document) read() error {
	d.line = 1
	head, err := d.in.Peek(maxHead)
	switch {
	case d.in.err != nil:
		return d.in.err
	case len(head) == 0:
		if err = d.in.explain(err); err == io.EOF {
			d.line = 0
			err = &flaw{"empty", "is empty"}
		}
		return err
	case hasAnyPrefix(head, "\xFE\xFF", "\xFF\xFE", "<\x00", "\x00<"):
		return &flaw{"encoding", "is in UTF-16, not in UTF-8"}
	case d.in.compressed && hasAnyPrefix(head, "\x1f\x8b"):
		d.line = 0
		return &flaw{"gzip-twice", "is compressed twice"}
	}
	if strings.HasSuffix(d.file, ".gz") && !d.in.compressed {
		d.add(Warning, 0, "gzip-name", "is named .gz, but is not compressed")
	}
	if rest, ok := bytes.CutPrefix(head, []byte("\uFEFF")); ok {
		_, _ = d.in.Discard(len(head) - len(rest))
		head = rest
	}
	switch head = bytes.ToLower(bytes.TrimLeft(head, " \t\r\n")); {
	case hasAnyPrefix(head, "<!doctype html", "<html"):
		d.result.Kind = KindHTML
		return &flaw{"html", "is an HTML page, not a sitemap"}
	case len(head) == 0 || head[0] == '<':
		return d.readXML()
	case hasAnyPrefix(head, "http:", "https:"):
		return d.readList()
	}
	return &flaw{"root", "is neither XML nor a list of URLs"}
}

func hasAnyPrefix(b []byte, prefixes ...string) bool {
	for _, p := range prefixes {
		if bytes.HasPrefix(b, []byte(p)) {
			return true
		}
	}
	return false
}

// readList checks a text of one URL a line.
func (d *document) readList() error {
	d.result.Kind = KindText
	for d.line = 1; ; d.line++ {
		text, err := d.in.line()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case !utf8.ValidString(text):
			return errUTF8
		}
		loc := trim(text)
		if loc == "" {
			continue
		}
		d.count()
		if loc != text {
			d.about(loc, Warning, d.line, "loc-space-around", "has white space around a URL, which some readers keep")
		}
		d.locate(loc, d.line)
	}
}

// entry is the page or child being read.
type entry struct {
	loc     string
	line    int  // of loc
	usable  bool // loc is a URL
	lastMod string
	images  int
}

// count counts an entry that begins here.
func (d *document) count() {
	d.entries++
	if d.result.Kind == KindIndex {
		d.c.summary.Children++
	} else {
		d.c.summary.URLs++
	}
	if d.entries == maxEntries+1 {
		d.add(Error, d.line, "too-many-entries", "has more than 50,000 entries")
	}
}

// locate checks a URL that the document lists, and reports whether it is one.
func (d *document) locate(loc string, line int) bool {
	if d.result.Kind != KindIndex && d.c.options.Page != nil {
		d.c.options.Page(loc, line)
	}
	a, bad := d.scope.parse(loc)
	if bad != nil {
		d.about(loc, Error, line, "loc-"+bad.code, "has a loc that %s", bad.message)
		return false
	}
	switch n := utf8.RuneCountInString(loc); {
	case n > maxLoc:
		d.about(loc, Error, line, "loc-too-long", "has a loc of %s characters; 2,047 are the most", thousands(n))
	case n < minLoc && d.result.Kind != KindText:
		d.about(loc, Error, line, "loc-too-short", "has a loc of less than 12 characters, which the schema does not allow")
	}
	if !isASCII(loc) {
		d.about(loc, Warning, line, "loc-not-ascii", "has a loc with characters that should be percent-encoded")
	}
	if a.fragment {
		d.about(loc, Warning, line, "loc-fragment", "has a loc with a fragment, which readers cut off")
	}
	if d.scope == nil {
		d.scope = &scope{address: a, origin: a.origin()}
	}
	if why := d.scope.outside(&a); why != "" {
		d.about(loc, Error, line, "loc-outside-scope", "has a loc that %s", why)
	}
	d.duplicate(loc, &a, line)
	return true
}

// duplicate checks whether a loc, in any spelling, was there before.
func (d *document) duplicate(loc string, a *address, line int) {
	normalized, other := loc, ""
	if !a.normal {
		normalized, other = a.origin()+a.path, ", in this or another spelling"
	}
	if d.result.Kind == KindIndex { // whose children are no pages
		normalized = "index " + normalized
	}
	seen, number := d.c.seen, d.c.summary.Documents
	hash := maphash.String(d.c.seed, normalized)
	switch before := seen[hash]; {
	case before == number:
		d.about(loc, Warning, line, "duplicate", "has a loc twice%s", other)
	case before > 0:
		d.about(loc, Warning, line, "duplicate-elsewhere", "has a loc that an earlier document has, too%s", other)
	case len(seen) == maxSeen:
		d.full = true
		return
	}
	seen[hash] = number
}

// loc checks the loc that has just ended.
func (d *document) loc(value string) {
	e := &d.entry
	e.loc, e.line = trim(value), d.valueLine()
	if e.loc != value {
		d.about(e.loc, Warning, e.line, "loc-space-around", "has white space around a loc, which some readers keep")
	}
	e.usable = d.locate(e.loc, e.line)
}

// endEntry keeps a child of an index.
func (d *document) endEntry() {
	e := &d.entry
	if d.result.Kind == KindIndex && e.usable && len(d.result.Children) < maxEntries {
		d.result.Children = append(d.result.Children, Child{e.loc, e.lastMod, e.line})
	}
	*e = entry{}
}

// dates are what the entries' lastmods have in common.
type dates struct {
	newest time.Time
	first  string
	same   int    // how many are like the first
	last   string // the last one, with what it says
	at     time.Time
	form   dateForm
}

// Slack for clocks that differ, and for a day that has begun elsewhere.
const (
	clockSlack = time.Hour
	daySlack   = 14 * time.Hour
)

// lastMod checks the lastmod that has just ended.
func (d *document) lastMod(value string) {
	e, t := &d.entry, &d.dates
	e.lastMod = trim(value)
	if d.entries == 1 {
		t.first = e.lastMod
	}
	if e.lastMod == t.first {
		t.same++
	}
	if t.form == dateNone || e.lastMod != t.last {
		t.last = e.lastMod
		t.at, t.form = parseDate(e.lastMod)
	}
	if message := d.dateError(value); message != "" {
		d.about(e.loc, Error, d.valueLine(), "lastmod", "has a lastmod \"%s\" that %s", shown(e.lastMod), message)
		return
	}
	slack := daySlack
	switch t.form {
	case dateSecond, dateMinute:
		slack = clockSlack
	case dateLocal, dateDayZone:
		d.about(e.loc, Warning, d.valueLine(), "lastmod-zone", "has a lastmod \"%s\" that is not a W3C Datetime: a time needs a time zone, and a day has none", e.lastMod)
	}
	if t.at.After(d.now.Add(slack)) {
		d.about(e.loc, Warning, d.valueLine(), "lastmod-future", "has a lastmod \"%s\" that lies in the future", e.lastMod)
		return
	}
	if t.at.After(t.newest) {
		t.newest = t.at.UTC()
	}
}

// dateError says why the lastmod that has just ended is not one of the schema, or "".
func (d *document) dateError(value string) string {
	if n := utf8.RuneCountInString(value); d.own == space084 && (n < 10 || n > 25) {
		return "does not have 10 to 25 characters, as schema 0.84 demands"
	}
	switch d.dates.form {
	case dateNone:
		return "is not a date such as 2024-05-01 or 2024-05-01T10:20:30Z"
	case dateYear, dateMonth, dateMinute:
		if d.own != space084 {
			return "the schema does not allow: it wants a whole date, and a time with seconds"
		}
	}
	return ""
}

// valueLine is the line where the value that has just ended begins.
func (d *document) valueLine() int {
	space := len(d.value) - len(bytes.TrimLeft(d.value, " \t\r\n"))
	return d.textLine + bytes.Count(d.value[:space], []byte("\n"))
}
