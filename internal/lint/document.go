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

	"github.com/seed3295b519/caddy-sitemap/internal/htmlmeta"
	"github.com/seed3295b519/caddy-sitemap/internal/origin"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/urllist"
)

const (
	maxEntries  = 50_000     // of a document, by https://www.sitemaps.org/protocol.html#index
	maxDocument = 52_428_800 // bytes uncompressed, by the same
	maxRead     = 128 << 20  // bytes uncompressed, after which reading ends
	maxEntry    = 4 << 20    // bytes of an entry, tag or line, likewise

	urlSet, index, list = "urlset", "sitemapindex", "list" // of URLs, one a line
	space09, space084   = "http://www.sitemaps.org/schemas/sitemap/0.9", "http://www.google.com/schemas/sitemap/0.84"
)

// feeds are the root elements of https://www.sitemaps.org/protocol.html#otherformats, which are not checked.
var feeds = map[xml.Name]bool{{Local: "rss"}: true, {Space: "http://www.w3.org/2005/Atom", Local: "feed"}: true, {Space: "http://purl.org/atom/ns#", Local: "feed"}: true}

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
		d.base, d.below = base, page.Folder(path)
	}
	err := d.read(r)
	if d.in.N <= 0 && err != nil || d.size > maxRead {
		err = &docError{"too-large", "is longer than 128 MiB, or has an entry or tag over 4 MiB; the rest was not read"}
	}
	if bad := (*docError)(nil); errors.As(err, &bad) {
		d.add(Error, bad.code, "%s", bad.message)
	} else if d.packed && errors.Is(err, io.ErrUnexpectedEOF) {
		c.unchecked(d.place, "document-unread", errors.New("the compressed data ends too early: the document is incomplete"))
	} else if err != nil {
		c.unchecked(d.place, "document-unread", err)
	}
	d.place = place{file: file}
	if d.size > maxDocument {
		d.add(Error, "too-long", "has more than 52,428,800 bytes uncompressed")
	}
	if d.kind == urlSet && d.entries > 3 && d.sameDate == d.entries {
		d.add(Warning, "lastmod-all-the-same", "all pages have the lastmod %q, probably that of a build: search engines ignore such dates", d.firstDate)
	}
	for _, child := range d.children {
		if listed {
			break
		} else if got := d.load(child, dir, true); got == d.result {
			d.report(child, Error, "index-in-index", "the index lists itself")
		} else if got.kind == index {
			d.report(child, Error, "index-in-index", "the index lists another index; only sitemaps of pages are allowed")
		}
	}
	d.children = nil
	return d.result
}

func (d *document) add(s Severity, code, format string, args ...any) {
	d.report(d.place, s, code, format, args...)
}

// read checks the document itself. The error is a docError or one of the reader.
func (d *document) read(r io.Reader) error {
	b := bufio.NewReader(r)
	d.in = io.LimitedReader{R: b, N: maxEntry}
	if magic, _ := b.Peek(2); string(magic) == "\x1f\x8b" {
		d.packed = true
		z, err := gzip.NewReader(b)
		if err != nil {
			return err
		}
		d.in.R = z
	}
	decoded, charset := urllist.DecodeStart(bufio.NewReaderSize(&d.in, 64<<10))
	if charset == "UTF-16" {
		d.add(Error, "encoding", "is in UTF-16; a sitemap must be UTF-8")
	}
	b = bufio.NewReaderSize(decoded, 64<<10)
	head, err := b.Peek(32 << 10)
	switch text := strings.ToLower(trim(string(head))); {
	case text == "" && err != nil && err != io.EOF:
		return err
	case text == "":
		return &docError{"empty", "is empty"}
	case strings.HasPrefix(text, "<!doctype html"), strings.HasPrefix(text, "<html"):
		return &docError{"html", "is an HTML page"}
	case text[0] == '<':
		return d.readXML(b, charset)
	case !strings.HasPrefix(text, "http:") && !strings.HasPrefix(text, "https:"):
		return &docError{"root", "is neither XML nor a list of URLs"}
	}
	d.kind = list
	lines := bufio.NewScanner(b)
	for lines.Buffer(nil, maxEntry); lines.Scan() && d.size <= maxRead; d.in.N = maxEntry {
		d.line++
		d.size += int64(len(lines.Bytes())) + 1
		if loc := trim(lines.Text()); loc != "" {
			d.checkLoc(loc)
		}
	}
	return lines.Err()
}

// readXML checks a document in XML. charset is that by which b was decoded; "": that which the document declares.
func (d *document) readXML(b *bufio.Reader, charset string) error {
	x := xml.NewDecoder(b)
	x.CharsetReader = func(name string, r io.Reader) (io.Reader, error) {
		if charset == "UTF-16" {
			return r, nil // reported already
		}
		d.add(Error, "encoding", "the encoding is declared as %s; a sitemap must be UTF-8", name)
		if charset != "" {
			return r, nil
		}
		decoded, err := urllist.DecodeDeclared(name, r)
		if err != nil {
			return r, nil // what is ASCII in it can be checked all the same
		}
		return decoded, nil
	}
	var root xml.Name
	for depth := 0; d.size <= maxRead; d.size = x.InputOffset() {
		d.in.N = maxEntry
		d.url = ""
		d.line, _ = x.InputPos()
		token, err := x.Token()
		switch t := token.(type) {
		case xml.StartElement:
			switch {
			case depth > 0:
				err = d.element(x, root, t)
			case d.kind != "":
				return malformed("has a second root element")
			case feeds[t.Name]:
				d.summary.Feeds++
				return nil
			case t.Name.Local != urlSet && t.Name.Local != index:
				return &docError{"root", "the root element is '" + t.Name.Local + "', not urlset or sitemapindex"}
			default:
				depth, root = 1, t.Name
				d.isOfNews = declaresNews(t)
				if d.kind = root.Local; root.Space != space09 && root.Space != space084 {
					d.add(Error, "namespace", "the root element is not in the namespace %s", space09)
				}
			}
		case xml.EndElement:
			if depth = 0; d.entries == 0 {
				d.add(Error, "missing-element", "has no entries")
			}
		case xml.CharData:
			if depth == 0 && trim(string(t)) != "" {
				return malformed("has text outside the root element")
			}
		case xml.ProcInst:
			if t.Target == "xml" && d.size > 0 {
				return malformed("the XML declaration is not at the beginning")
			}
		}
		syntax := (*xml.SyntaxError)(nil)
		switch {
		case errors.As(err, &syntax):
			d.line, d.url = syntax.Line, ""
			return malformed("is not well-formed XML: " + syntax.Msg)
		case err == io.EOF && d.kind == "":
			return malformed("has no root element")
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
	return nil
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
func (d *document) element(x *xml.Decoder, root xml.Name, t xml.StartElement) error {
	if t.Name.Space != root.Space || t.Name.Local != "url" && t.Name.Local != "sitemap" || (t.Name.Local == "url") != (d.kind == urlSet) {
		return cmp.Or(d.other(root, t.Name), x.Skip())
	}
	e := &d.entry
	*e = entry{Loc: e.Loc[:0], LastMod: e.LastMod[:0], ChangeFreq: e.ChangeFreq[:0], Priority: e.Priority[:0]}
	if err := x.DecodeElement(e, &t); err != nil {
		return err
	}
	d.checkLoc(trim(strings.Join(e.Loc[:min(len(e.Loc), 1)], "")))
	if max(len(e.Loc), len(e.LastMod), len(e.ChangeFreq), len(e.Priority)) > 1 {
		d.add(Error, "repeated-element", "the entry has more than one loc, lastmod, changefreq or priority")
	}
	for _, date := range e.LastMod {
		d.checkLastMod(trim(date))
	}
	for _, value := range e.ChangeFreq {
		if _, err := page.ParseChangeFreq(trim(value)); err != nil {
			d.add(Error, "changefreq", "changefreq %q is not always, hourly, daily, weekly, monthly, yearly or never", value)
		}
	}
	for _, value := range e.Priority {
		if _, err := page.ParsePriority(trim(value)); err != nil {
			d.add(Error, "priority", "priority %q is not a decimal number from 0.0 to 1.0", value)
		}
	}
	for _, link := range e.Links {
		if _, _, err := parseURL(trim(link.Href)); err != nil || link.Rel != "alternate" {
			d.add(Error, "alternate", "a link needs rel=\"alternate\" and an absolute URL as href, not %q", link.Href)
		}
		if !htmlmeta.IsLanguage(link.HrefLang) {
			d.add(Error, "attribute-value", "hreflang %q is not x-default, a language of ISO 639, or one with a country of ISO 3166-1, such as de or en-GB", link.HrefLang)
		}
	}
	for i, image := range e.Images {
		if _, _, err := parseURL(trim(image.Loc)); err != nil {
			d.add(Error, "extension-url", "image:loc %q is invalid: %v", image.Loc, err)
		}
		if i == 1000 {
			d.add(Error, "too-many-images", "the page has more than 1,000 images")
		}
	}
	d.checkNews(e.News)
	for _, other := range e.Others {
		if err := d.other(root, other.XMLName); err != nil {
			return err
		}
	}
	return nil
}

// other reports an element that is not checked.
func (d *document) other(root, name xml.Name) error {
	if name.Space == root.Space || name.Space == "" {
		d.add(Error, "unknown-element", "element '%s' is not allowed here", name.Local)
	} else if !strings.Contains(name.Space, ":") { // encoding/xml leaves the prefix
		return malformed("the namespace prefix '" + name.Space + "' is not declared")
	}
	return nil
}

// codes are how the codes of findings end for what is wrong with a URL; else in "character".
var codes = map[error]string{
	origin.ErrNotAbsolute: "not-absolute", origin.ErrUserInfo: "user-info", origin.ErrHost: "host", origin.ErrPort: "host", page.ErrEscape: "percent",
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
	if d.entries++; d.entries == maxEntries+1 {
		d.add(Error, "too-many-entries", "has more than 50,000 entries")
	}
	if d.kind != index {
		d.summary.URLs++
	}
	if loc == "" {
		d.add(Error, "missing-element", "the entry has no loc")
		return
	}
	base, normal, characters := d.base, loc, utf8.RuneCountInString(loc)
	path, plain := strings.CutPrefix(loc, base)
	if !plain || base == "" || !page.IsNormal(path) { // else it need not be parsed
		var err error
		if base, path, err = parseURL(loc); err != nil {
			d.add(Error, "loc-"+cmp.Or(codes[err], "character"), "loc is invalid: %v", err)
			return
		}
		normal = base + path
		if host, _, _ := strings.Cut(loc[strings.Index(loc, "://")+3:], "/"); utf8.RuneCountInString(host) < len(host) {
			d.add(Warning, "loc-not-ascii", "the host of loc is not ASCII, which many crawlers do not support: write %s", base)
		} else if characters < len(loc) {
			d.add(Warning, "loc-not-ascii", "loc has characters that should be percent-encoded")
		}
		if strings.Contains(loc, "#") {
			d.add(Warning, "loc-fragment", "loc has a fragment, which crawlers ignore")
		}
	}
	if d.base == "" {
		d.base = base
	}
	if characters > page.MaxLoc {
		d.add(Error, "loc-too-long", "loc is longer than 2,047 characters")
	}
	if base != d.base || !strings.HasPrefix(path, d.below) {
		d.add(Error, "loc-outside-scope", "loc is not below %s%s", d.base, d.below)
	}
	if d.isOfNews {
		normal = "news " + normal // it is listed there, and elsewhere
	}
	hash := maphash.String(d.seed, normal)
	if d.kind != index {
		d.draw(d.place)
	} else if hash = ^hash; d.entries <= maxEntries { // a child is no page
		d.children = append(d.children, d.place)
	}
	switch before := d.seen[hash]; {
	case before == d.summary.Documents:
		d.add(Warning, "duplicate", "loc is twice in the document, perhaps in another spelling")
	case before > 0 && d.kind == index:
		// A sitemap may be in several indexes: in that of all, and in that of a section.
	case before > 0:
		d.add(Warning, "duplicate-elsewhere", "loc is also in an earlier document, perhaps in another spelling")
	case len(d.seen) == maxSeen:
		if d.summary.Codes["duplicates-unknown"] == 0 {
			d.add(Warning, "duplicates-unknown", "too many pages to remember: those from here on are not compared with earlier ones")
		}
		clear(d.seen)
	}
	d.seen[hash] = d.summary.Documents
}

func (d *document) checkLastMod(date string) {
	if d.entries == 1 {
		d.firstDate = date
	}
	if date == d.firstDate {
		d.sameDate++
	}
	for i, layout := range []string{time.DateOnly, time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01", "2006", "2006-01-02T15:04:05"} {
		switch at, err := time.Parse(layout, date); {
		case err != nil:
			continue
		case i == 5:
			d.add(Warning, "lastmod-zone", "lastmod %q has no time zone, such as Z or +02:00", date)
		case at.Sub(d.now) > 14*time.Hour || at.Sub(d.now) > time.Hour && i > 0: // a day may have begun elsewhere
			d.add(Warning, "lastmod-future", "lastmod %q is in the future", date)
		}
		return
	}
	d.add(Error, "lastmod", "lastmod %q is not a date such as 2024-05-01 or 2024-05-01T10:20:30Z", date)
}

// trim is s without white space around it, as XML defines it.
func trim(s string) string { return strings.Trim(s, " \t\r\n") }
