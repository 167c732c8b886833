package lint

import (
	"bufio"
	"cmp"
	"encoding/xml"
	"errors"
	"hash/maphash"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"

	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/urllist"
)

const (
	maxEntries  = 50_000     // of a document, by https://www.sitemaps.org/protocol.html#index
	maxDocument = 52_428_800 // bytes uncompressed, by the same
	maxRead     = 128 << 20  // bytes uncompressed, after which reading ends
	maxEntry    = 4 << 20    // bytes of an entry, tag or line, likewise

	maxImages = 1000 // of a page

	space09  = "http://www.sitemaps.org/schemas/sitemap/0.9"
	space084 = "http://www.google.com/schemas/sitemap/0.84"
)

// Kinds of documents; of XML, by the name of the root element.
const (
	urlSet = "urlset"
	index  = "sitemapindex"
	list   = "list" // of URLs, one a line
)

// feeds are the root elements of https://www.sitemaps.org/protocol.html#otherformats, which are not checked.
var feeds = map[xml.Name]bool{
	{Local: "rss"}: true,
	{Space: "http://www.w3.org/2005/Atom", Local: "feed"}: true,
	{Space: "http://purl.org/atom/ns#", Local: "feed"}:    true,
}

// errFeed ends the reading of a feed. It is no finding.
var errFeed = errors.New("is a feed")

// result is what was learnt of a document.
type result struct {
	kind     string  // urlSet, index or list; "": none
	children []place // of an index
	packed   bool    // by gzip, other than for the transfer
}

// document is the check of one document.
type document struct {
	*checker
	*result
	place     // of the entry
	in        io.LimitedReader
	size      int64  // bytes read
	base      string // of the document's URL, else of its first loc; "": not known yet
	below     string // the folder of the document's URL; "": any
	root      xml.Name
	inRoot    bool // the root element is open
	entries   int
	isOfNews  bool  // it declares the namespace of news
	news      int   // entries that are news
	entry     entry // that is being read
	firstDate string
	sameDate  int // entries with firstDate
}

// docError is an error of the document that ends its reading, unlike one of the reader.
type docError struct{ code, message string }

func (f *docError) Error() string { return f.message }

func malformed(message string) error {
	return &docError{"not-well-formed", message + "; the rest was not read"}
}

// document checks a document and, if it is an index that is not listed itself, its children, which are looked up in
// dir. at is its URL; "": not known.
func (c *checker) document(file, at string, r io.Reader, dir string, listed bool) *result {
	d := &document{checker: c, result: new(result), place: place{file: file}}
	c.done[file] = d.result
	c.summary.Documents++
	if base, path, err := parseURL(at); err == nil {
		d.base = base
		d.below = page.Folder(path)
	}
	d.reportError(d.read(r))

	// What follows is about the whole document, not about the entry that was read last.
	d.place = place{file: file}
	if d.size > maxDocument {
		d.add(Error, "too-long", "has more than 52,428,800 bytes uncompressed")
	}
	// That a few pages have one date says nothing.
	if d.kind == urlSet && d.entries > 3 && d.sameDate == d.entries {
		d.add(Warning, "lastmod-all-the-same",
			"all pages have the lastmod %q, probably that of a build: search engines ignore such dates", d.firstDate)
	}
	if !listed {
		d.loadChildren(dir)
	}
	d.children = nil // results are kept until the check ends, and an index may name 50,000
	return d.result
}

// reportError reports why the document was not read to its end, if err is not nil.
func (d *document) reportError(err error) {
	// Where the bound of an entry ends the input, the parser calls the document malformed: the bound is the reason.
	isTooLarge := d.in.N <= 0 && err != nil || d.size > maxRead
	if isTooLarge {
		d.add(Error, "too-large", "is longer than 128 MiB, or has an entry or tag over 4 MiB; the rest was not read")
		return
	}
	var bad *docError
	if errors.As(err, &bad) {
		d.add(Error, bad.code, "%s", bad.message)
		return
	}
	if d.packed && errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the compressed data ends too early: the document is incomplete")
	}
	if err != nil {
		d.unchecked(d.place, "document-unread", err)
	}
}

// loadChildren checks the documents that an index names. Indexes must not be nested
// (https://www.sitemaps.org/protocol.html#index), so the children of a child are not checked.
func (d *document) loadChildren(dir string) {
	for _, child := range d.children {
		got := d.load(child, dir, true)
		if got == d.result {
			d.report(child, Error, "index-in-index", "the index lists itself")
		} else if got.kind == index {
			d.report(child, Error, "index-in-index", "the index lists another index; only sitemaps of pages are allowed")
		}
	}
}

func (d *document) add(s Severity, code, format string, args ...any) {
	d.report(d.place, s, code, format, args...)
}

// read checks the document itself. The error is a docError or one of the reader.
func (d *document) read(r io.Reader) error {
	compressed := bufio.NewReader(r)
	d.in = io.LimitedReader{R: compressed, N: maxEntry}
	// By the first bytes alone: checkPacked says where the name is wrong about them.
	if magic, _ := compressed.Peek(2); string(magic) == "\x1f\x8b" {
		d.packed = true
		z, err := gzip.NewReader(compressed)
		if err != nil {
			return err
		}
		d.in.R = z
	}
	decoded, charset := urllist.DecodeStart(bufio.NewReaderSize(&d.in, 64<<10))
	if charset == "UTF-16" {
		d.add(Error, "encoding", "is in UTF-16; a sitemap must be UTF-8")
	}
	b := bufio.NewReaderSize(decoded, 64<<10)
	head, err := b.Peek(32 << 10)
	text := strings.ToLower(trim(string(head)))
	if text == "" && err != nil && err != io.EOF {
		return err
	}
	switch {
	case text == "":
		return &docError{"empty", "is empty"}
	case strings.HasPrefix(text, "<!doctype html"), strings.HasPrefix(text, "<html"):
		return &docError{"html", "is an HTML page"}
	case strings.HasPrefix(text, "<"):
		return d.readXML(b, charset)
	case strings.HasPrefix(text, "http:"), strings.HasPrefix(text, "https:"):
		return d.readList(b)
	}
	return &docError{"root", "is neither XML nor a list of URLs"}
}

// readList checks a document in the protocol's text form (https://www.sitemaps.org/protocol.html#otherformats).
func (d *document) readList(b *bufio.Reader) error {
	d.kind = list
	lines := bufio.NewScanner(b)
	lines.Buffer(nil, maxEntry)
	for lines.Scan() && d.size <= maxRead {
		d.line++
		d.size += int64(len(lines.Bytes())) + 1
		if loc := trim(lines.Text()); loc != "" {
			d.checkLoc(loc)
		}
		d.in.N = maxEntry // the bound is for each line anew
	}
	return lines.Err()
}

// readXML checks a document in XML. charset is that by which b was decoded; "": that which the document declares.
func (d *document) readXML(b *bufio.Reader, charset string) error {
	x := xml.NewDecoder(b)
	x.CharsetReader = func(declared string, r io.Reader) (io.Reader, error) {
		return d.decode(declared, charset, r), nil
	}
	for d.size <= maxRead {
		d.in.N = maxEntry // the bound is for each token or entry anew
		d.url = ""
		d.line, _ = x.InputPos()
		token, err := x.Token()
		if err == nil {
			err = d.token(x, token)
		}
		if err != nil {
			return d.endOfXML(err)
		}
		d.size = x.InputOffset()
	}
	return nil
}

// decode returns r in UTF-8, if it can be read. charset is that by which it was decoded already; "": it was not.
func (d *document) decode(declared, charset string, r io.Reader) io.Reader {
	if charset == "UTF-16" {
		return r // reported already
	}
	d.add(Error, "encoding", "the encoding is declared as %s; a sitemap must be UTF-8", declared)
	if charset != "" {
		return r
	}
	decoded, err := urllist.DecodeDeclared(declared, r)
	if err != nil {
		return r // what is ASCII in it can be checked all the same
	}
	return decoded
}

// token checks what stands outside of the entries; where an entry begins, all of it.
func (d *document) token(x *xml.Decoder, token xml.Token) error {
	switch t := token.(type) {
	case xml.StartElement:
		if d.inRoot {
			return d.element(x, t)
		}
		return d.begin(t)
	case xml.EndElement: // of the root: element reads the others
		d.inRoot = false
		if d.entries == 0 {
			d.add(Error, "missing-element", "has no entries")
		}
	case xml.CharData:
		if !d.inRoot && trim(string(t)) != "" {
			return malformed("has text outside the root element")
		}
	case xml.ProcInst:
		// Nothing may stand before it, not even a blank line (https://www.w3.org/TR/xml/#sec-prolog-dtd).
		if t.Target == "xml" && d.size > 0 {
			return malformed("the XML declaration is not at the beginning")
		}
	}
	return nil
}

// begin checks the root element. The error is errFeed where that is one of a feed.
func (d *document) begin(t xml.StartElement) error {
	switch {
	case d.kind != "":
		return malformed("has a second root element")
	case feeds[t.Name]:
		d.summary.Feeds++
		return errFeed
	case t.Name.Local != urlSet && t.Name.Local != index:
		return &docError{"root", "the root element is '" + t.Name.Local + "', not urlset or sitemapindex"}
	}
	d.inRoot = true
	d.root = t.Name
	d.kind = t.Name.Local
	d.isOfNews = declaresNews(t)
	if d.root.Space != space09 && d.root.Space != space084 {
		d.add(Error, "namespace", "the root element is not in the namespace %s", space09)
	}
	return nil
}

// endOfXML returns what is wrong with a document whose reading err has ended; nil: nothing is.
func (d *document) endOfXML(err error) error {
	var syntax *xml.SyntaxError
	switch {
	case err == errFeed:
		return nil
	case err == io.EOF && d.kind == "":
		return malformed("has no root element")
	case err == io.EOF:
		return nil
	case errors.As(err, &syntax):
		// It can be many lines behind the beginning of the entry, and is no fault of the entry's URL.
		d.line = syntax.Line
		d.url = ""
		return malformed("is not well-formed XML: " + syntax.Msg)
	}
	return err
}

// entry is a url or sitemap element, with the extensions for languages, images and news:
// https://developers.google.com/search/docs/specialty/international/localized-versions and
// https://developers.google.com/search/docs/crawling-indexing/sitemaps/image-sitemaps.
type entry struct {
	Loc        []string `xml:"loc"`
	LastMod    []string `xml:"lastmod"`
	ChangeFreq []string `xml:"changefreq"`
	Priority   []string `xml:"priority"`
	Links      []struct {
		Rel      string `xml:"rel,attr"`
		HrefLang string `xml:"hreflang,attr"`
		Href     string `xml:"href,attr"`
	} `xml:"http://www.w3.org/1999/xhtml link"`
	Images []struct {
		Loc string `xml:"loc"`
	} `xml:"http://www.google.com/schemas/sitemap-image/1.1 image"`
	News   []newsElement                `xml:"http://www.google.com/schemas/sitemap-news/0.9 news"`
	Others []struct{ XMLName xml.Name } `xml:",any"`
}

// element checks an element in the root element.
func (d *document) element(x *xml.Decoder, t xml.StartElement) error {
	isPage := d.kind == urlSet && t.Name.Local == "url"
	isDocument := d.kind == index && t.Name.Local == "sitemap"
	isEntry := t.Name.Space == d.root.Space && (isPage || isDocument)
	if !isEntry {
		if err := d.other(t.Name); err != nil {
			return err
		}
		return x.Skip()
	}
	// The decoder appends to the slices: those of most entries are reused.
	e := &d.entry
	*e = entry{
		Loc:        e.Loc[:0],
		LastMod:    e.LastMod[:0],
		ChangeFreq: e.ChangeFreq[:0],
		Priority:   e.Priority[:0],
	}
	if err := x.DecodeElement(e, &t); err != nil {
		return err
	}
	d.checkEntry(e)
	for _, other := range e.Others {
		if err := d.other(other.XMLName); err != nil {
			return err
		}
	}
	return nil
}

func (d *document) checkEntry(e *entry) {
	loc := ""
	if len(e.Loc) > 0 {
		loc = trim(e.Loc[0])
	}
	d.checkLoc(loc) // first: findings of the others name it, too
	if max(len(e.Loc), len(e.LastMod), len(e.ChangeFreq), len(e.Priority)) > 1 {
		d.add(Error, "repeated-element", "the entry has more than one loc, lastmod, changefreq or priority")
	}
	for _, date := range e.LastMod {
		d.checkLastMod(trim(date))
	}
	for _, value := range e.ChangeFreq {
		if _, err := page.ParseChangeFreq(trim(value)); err != nil {
			d.add(Error, "changefreq",
				"changefreq %q is not always, hourly, daily, weekly, monthly, yearly or never", value)
		}
	}
	for _, value := range e.Priority {
		if _, err := page.ParsePriority(trim(value)); err != nil {
			d.add(Error, "priority", "priority %q is not a decimal number from 0.0 to 1.0", value)
		}
	}
	d.checkExtensions(e)
}

// checkExtensions checks the elements of other namespaces.
func (d *document) checkExtensions(e *entry) {
	for _, link := range e.Links {
		_, _, err := parseURL(trim(link.Href))
		if err != nil || link.Rel != "alternate" {
			d.add(Error, "alternate", "a link needs rel=\"alternate\" and an absolute URL as href, not %q", link.Href)
		}
		if !html.IsLanguage(link.HrefLang) {
			d.add(Error, "attribute-value",
				"hreflang %q is not x-default, a language of ISO 639, or one with a country of ISO 3166-1, such as de or en-GB",
				link.HrefLang)
		}
	}
	for i, image := range e.Images {
		if _, _, err := parseURL(trim(image.Loc)); err != nil {
			d.add(Error, "extension-url", "image:loc %q is invalid: %v", image.Loc, err)
		}
		if i == maxImages {
			d.add(Error, "too-many-images", "the page has more than 1,000 images")
		}
	}
	d.checkNews(e.News)
}

// other reports an element that is not checked. Those of other namespaces are allowed
// (https://www.sitemaps.org/protocol.html#extending).
func (d *document) other(name xml.Name) error {
	if name.Space == d.root.Space || name.Space == "" {
		d.add(Error, "unknown-element", "element '%s' is not allowed here", name.Local)
		return nil
	}
	// encoding/xml leaves a prefix that nothing declares where the namespace should be. That is a URL, so it has a colon.
	isPrefix := !strings.Contains(name.Space, ":")
	if isPrefix {
		return malformed("the namespace prefix '" + name.Space + "' is not declared")
	}
	return nil
}

// codes are how the codes of findings end for what is wrong with a URL; else in "character".
var codes = map[error]string{
	origin.ErrNotAbsolute: "not-absolute",
	origin.ErrUserInfo:    "user-info",
	origin.ErrHost:        "host",
	origin.ErrPort:        "host",
	page.ErrEscape:        "percent",
}

// parseURL returns the origin of an http or https URL, and its path with the query.
func parseURL(ref string) (base, path string, err error) {
	u, err := origin.ParseURL(ref)
	if err == nil && strings.ContainsAny(ref, " \"<>\\^`{|}") {
		err = errors.New("white space and any of \"<>\\^`{|} must be percent-encoded")
	}
	return u.Origin(), u.Path, err
}

// checkLoc begins an entry, and checks its URL.
func (d *document) checkLoc(loc string) {
	d.url = loc
	d.entries++
	if d.entries == maxEntries+1 { // once a document
		d.add(Error, "too-many-entries", "has more than 50,000 entries")
	}
	if d.kind != index {
		d.summary.URLs++
	}
	if loc == "" {
		d.add(Error, "missing-element", "the entry has no loc")
		return
	}
	base, path, ok := d.parseLoc(loc)
	if !ok {
		return
	}
	if d.base == "" {
		d.base = base
	}
	if utf8.RuneCountInString(loc) > page.MaxLoc {
		d.add(Error, "loc-too-long", "loc is longer than 2,047 characters")
	}
	// https://www.sitemaps.org/protocol.html#location
	if base != d.base || !strings.HasPrefix(path, d.below) {
		d.add(Error, "loc-outside-scope", "loc is not below %s%s", d.base, d.below)
	}
	if d.kind != index {
		d.draw(d.place)
	} else if d.entries <= maxEntries {
		d.children = append(d.children, d.place)
	}
	d.checkDuplicate(base, path)
}

// parseLoc returns the origin of a loc, and its normal path. ok is false where it is not valid, which it reports.
func (d *document) parseLoc(loc string) (base, path string, ok bool) {
	// Most need not be parsed: they have the origin of the one before, and nothing that has other spellings.
	path, hasBase := strings.CutPrefix(loc, d.base)
	if d.base != "" && hasBase && page.IsNormal(path) {
		return d.base, path, true
	}
	base, path, err := parseURL(loc)
	if err != nil {
		d.add(Error, "loc-"+cmp.Or(codes[err], "character"), "loc is invalid: %v", err)
		return "", "", false
	}
	host, _, _ := strings.Cut(loc[strings.Index(loc, "://")+len("://"):], "/")
	if !isASCII(host) {
		d.add(Warning, "loc-not-ascii",
			"the host of loc is not ASCII, which many crawlers do not support: write %s", base)
	} else if !isASCII(loc) {
		d.add(Warning, "loc-not-ascii", "loc has characters that should be percent-encoded")
	}
	if strings.Contains(loc, "#") {
		d.add(Warning, "loc-fragment", "loc has a fragment, which crawlers ignore")
	}
	return base, path, true
}

// isASCII reports whether each character of valid UTF-8 is one byte.
func isASCII(s string) bool { return utf8.RuneCountInString(s) == len(s) }

// checkDuplicate reports a URL that was listed before, and remembers it.
func (d *document) checkDuplicate(base, path string) {
	hash := d.hash(base, path)
	before := d.seen[hash]
	isShared := before > 0 && d.kind == index // a sitemap may be in two indexes: that of all, and that of a section
	switch {
	case before == d.summary.Documents:
		d.add(Warning, "duplicate", "loc is twice in the document, perhaps in another spelling")
	case before > 0 && !isShared:
		d.add(Warning, "duplicate-elsewhere", "loc is also in an earlier document, perhaps in another spelling")
	}
	if before == 0 && len(d.seen) == maxSeen {
		if d.summary.Codes["duplicates-unknown"] == 0 { // once a check
			d.add(Warning, "duplicates-unknown",
				"too many pages to remember: those from here on are not compared with earlier ones")
		}
		clear(d.seen)
	}
	d.seen[hash] = d.summary.Documents
}

// hash tells URLs apart that may be listed once each.
func (d *document) hash(base, path string) uint64 {
	var h maphash.Hash
	h.SetSeed(d.seed)
	if d.isOfNews {
		_, _ = h.WriteString("news ") // it is listed there, and elsewhere
	}
	_, _ = h.WriteString(base)
	_, _ = h.WriteString(path)
	if d.kind == index {
		return ^h.Sum64() // a child is no page
	}
	return h.Sum64()
}

// withoutZone is a form of dates that is common, but not one of https://www.w3.org/TR/NOTE-datetime.
const withoutZone = "2006-01-02T15:04:05"

var dateLayouts = []string{time.DateOnly, time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01", "2006", withoutZone}

func (d *document) checkLastMod(date string) {
	if d.entries == 1 {
		d.firstDate = date
	}
	if date == d.firstDate {
		d.sameDate++
	}
	for _, layout := range dateLayouts {
		at, err := time.Parse(layout, date)
		if err != nil {
			continue
		}
		ahead := time.Hour
		if layout == time.DateOnly {
			ahead = 14 * time.Hour // the day has begun in the Pacific that long before it does in UTC
		}
		if layout == withoutZone {
			d.add(Warning, "lastmod-zone", "lastmod %q has no time zone, such as Z or +02:00", date)
		} else if at.Sub(d.now) > ahead {
			d.add(Warning, "lastmod-future", "lastmod %q is in the future", date)
		}
		return
	}
	d.add(Error, "lastmod", "lastmod %q is not a date such as 2024-05-01 or 2024-05-01T10:20:30Z", date)
}

// trim is s without white space around it, as XML defines it.
func trim(s string) string { return strings.Trim(s, " \t\r\n") }
