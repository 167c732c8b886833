package urllist

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/html"
	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// Bounds of a [Reader]. The protocol allows documents of 50 MiB and indexes of 50,000.
const (
	maxLine      = 64 << 10 // bytes
	maxDocument  = 64 << 20 // bytes, uncompressed
	maxDocuments = 50_000   // that indexes name
	maxDepth     = 2        // an index of indexes is not allowed, but written
)

var (
	errLong     = fmt.Errorf("the line is longer than %d bytes", maxLine)
	errDocument = fmt.Errorf("the document is longer than %d bytes", maxDocument)
	errIndex    = fmt.Errorf("the index names more than %d documents, or is nested too deeply", maxDocuments)
)

// Reader reads lists and sitemaps of a site.
type Reader struct {
	Base string // scheme, host and port, as in [ParseLine]

	// Now is when reading began. Later dates are dropped: those of documents that are made, and have the time of that, would
	// differ at each reading.
	Now time.Time

	// Open opens another document of the site, by its absolute URL.
	Open func(ctx context.Context, url string) (io.ReadCloser, error)

	// Yield is called for each page, in the order of the documents. Its error ends the reading.
	Yield func(page.Page) error

	// Extract says which of alternates, images and videos of entries are kept.
	Extract html.Options

	// Name is that of the list that is read, for Unused.
	Name string

	// IsGuess says that what is read may be no list: then, lines that are neither URLs nor entries are not counted.
	IsGuess bool

	Unused

	documents int   // of indexes, so far
	stopped   error // by Yield
}

// Unused is what lists have that is not listed.
type Unused struct {
	Refused int      // lines and entries that name no page or document of the site
	First   []string // the first ten of them, and why
	Dropped int      // entries with alternates, images or videos that are not kept
}

// Read reads any form of a sitemap: lines as [ParseLine] takes them, of at most 64 KiB; a urlset; or a sitemapindex,
// whose documents it opens. Each may be compressed by gzip (https://www.sitemaps.org/protocol.html). Lists are in UTF-8
// or UTF-16, XML in any charset that it declares and that browsers know (https://encoding.spec.whatwg.org/#names-and-labels).
// The errors are Yield's, ctx's and those of reading. Documents of an index that cannot be read are errors, too, returned
// together after all others were read.
func (s *Reader) Read(ctx context.Context, r io.Reader) error { return s.read(ctx, r, 0) }

// read reads a document, and those that it names.
func (s *Reader) read(ctx context.Context, r io.Reader, depth int) (err error) {
	if s.stopped != nil {
		return s.stopped
	}
	b := bufio.NewReader(r)
	r = b
	if isGzip(b) {
		z, err := gzip.NewReader(b)
		if err != nil {
			return fmt.Errorf("decompressing: %w", err)
		}
		z.Multistream(false)
		r = members{z, b}
	}
	// A few bytes of gzip can hold gigabytes: the bound is for what they decompress to.
	limited := &io.LimitedReader{R: r, N: maxDocument + 1}
	text, charset := DecodeStart(bufio.NewReaderSize(limited, maxLine))
	b = bufio.NewReaderSize(text, maxLine)
	head, _ := b.Peek(4096)
	if sitemapBegins.Match(head) {
		err = s.readXML(ctx, b, charset, depth)
	} else {
		err = s.readLines(ctx, b)
	}
	if limited.N <= 0 {
		err = errors.Join(errDocument, err)
	}
	return err
}

// members reads the members of a gzip file. Something else may follow, such as a message of the program that wrote it.
type members struct {
	z    *gzip.Reader
	from *bufio.Reader
}

func (m members) Read(b []byte) (n int, err error) {
	n, err = m.z.Read(b)
	if !errors.Is(err, io.EOF) || !isGzip(m.from) {
		return n, err
	}
	err = m.z.Reset(m.from)
	m.z.Multistream(false)
	return n, err
}

func isGzip(b *bufio.Reader) bool {
	magic, _ := b.Peek(2)
	return string(magic) == "\x1f\x8b"
}

// sitemapBegins matches the beginning of a sitemap in XML. Declarations and comments may stand before its root element.
// A page of an application that knows no such path is read as a list, of which each line is refused.
var sitemapBegins = regexp.MustCompile(`(?s)^\s*<.*(?:urlset|sitemapindex)`)

// take yields the page of the n-th line or entry, or refuses its text.
func (s *Reader) take(n int, text string, p page.Page, err error) error {
	if errors.Is(err, errBlank) {
		return nil
	}
	if err != nil {
		s.refuse(n, text, err)
		return nil
	}
	if p.LastMod > s.Now.Unix() {
		p.LastMod = 0
		p.LastModDay = false
	}
	s.stopped = s.Yield(p)
	return s.stopped
}

// refuse counts the n-th line or entry of a list, and why it is refused.
func (s *Reader) refuse(n int, text string, err error) {
	isOfList := !s.IsGuess || errors.Is(err, errBroken) || strings.Contains(text, "://")
	if !isOfList {
		return
	}
	s.Refused++
	if s.Refused <= 10 {
		s.First = append(s.First, fmt.Sprintf("%s, line %d: %q: %.300v", s.Name, n, short(text), err))
	}
}

// short is s in at most 200 characters.
func short(s string) string { return strings.ToValidUTF8(fmt.Sprintf("%.200s", s), "") }

// readLines reads a list, holding one line at a time.
func (s *Reader) readLines(ctx context.Context, b *bufio.Reader) error {
	for n := 1; ctx.Err() == nil; n++ {
		line, err := b.ReadSlice('\n')
		text := strings.TrimRight(string(line), "\r\n") // before more is read into the buffer
		isLong := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = b.ReadSlice('\n')
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("reading line %d: %w", n, err)
		}
		var p page.Page
		bad := errLong
		if !isLong {
			p, bad = ParseLine(text, s.Base)
		}
		if stopped := s.take(n, text, p, bad); stopped != nil || err != nil {
			return stopped
		}
	}
	return ctx.Err()
}

// readXML reads a urlset or a sitemapindex, each entry by itself: what is wrong in one, or behind all of them, says nothing
// of the others. charset is that by which b was decoded; "": that which it declares.
func (s *Reader) readXML(ctx context.Context, b *bufio.Reader, charset string, depth int) error {
	text, err := decodeXML(b, charset)
	if err != nil {
		return err
	}
	entries := bufio.NewScanner(text)
	entries.Buffer(nil, maxEntry)
	entries.Split(splitEntries)
	var failed []error
	var cut error // of the last entry: what would follow it is not known
	for n := 1; s.stopped == nil && ctx.Err() == nil && entries.Scan(); n++ {
		var e entry
		d := xml.NewDecoder(bytes.NewReader(entries.Bytes()))
		d.Entity = xml.HTMLEntity // tolerated: others write these files
		err := d.Decode(&e)
		loc := strings.TrimSpace(e.Loc)
		cut = nil
		switch {
		case err != nil:
			s.refuse(n, entries.Text(), fmt.Errorf("%w: %w", errBroken, err))
			if strings.HasSuffix(err.Error(), "unexpected EOF") {
				cut = fmt.Errorf("entry %d: %w", n, err)
			}
		case e.XMLName.Local == "sitemap":
			if _, err := pathOf(loc, s.Base); err != nil {
				s.refuse(n, loc, err)
				continue
			}
			if err := s.readChild(ctx, loc, depth+1); err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", short(loc), err))
			}
		default:
			p, err := e.page(loc, s.Base)
			var isDropped bool
			p.Extensions, isDropped = e.read(s.Base, p.Path, s.Extract)
			if isDropped {
				s.Dropped++
			}
			_ = s.take(n, loc, p, err) // its error is in s.stopped
		}
	}
	if s.stopped != nil {
		return s.stopped
	}
	failed = append(failed, cut, entries.Err(), ctx.Err())
	return errors.Join(failed...)
}

// declaredCharset matches the charset that XML declares.
var declaredCharset = regexp.MustCompile(`^\s*<\?xml\s[^>]*\bencoding\s*=\s*["']([^"']+)`)

// decodeXML returns XML in UTF-8.
func decodeXML(b *bufio.Reader, charset string) (io.Reader, error) {
	head, _ := b.Peek(1024)
	m := declaredCharset.FindSubmatch(head)
	if charset != "" || m == nil {
		return b, nil
	}
	return DecodeDeclared(string(m[1]), b)
}

// maxEntry is the most bytes of an entry, which may have a thousand images.
const maxEntry = 16 << 20

// entryPart matches comments, also one that goes on, and the tags of entries that are not in one.
var entryPart = regexp.MustCompile(`(?s)<!--.*?(?:-->|$)|<!\[CDATA\[.*?(?:\]\]>|$)|</?(?:\w+:)?(?:url|sitemap)(?:\s[^>]*)?>`)

// splitEntries is a [bufio.SplitFunc]: each token is an entry. One ends where the next one begins, too.
func splitEntries(data []byte, atEOF bool) (advance int, token []byte, err error) {
	at := 0
	entry := -1 // where it begins; -1: not yet
	for part := entryPart.FindIndex(data); part != nil; part = entryPart.FindIndex(data[at:]) {
		begin := at + part[0]
		at += part[1]
		switch sign := data[begin+1]; {
		case sign == '!':
		case sign == '/':
			if entry >= 0 {
				return at, data[entry:at], nil
			}
		case entry >= 0:
			return begin, data[entry:begin], nil
		default:
			entry = begin
		}
	}
	switch {
	case !atEOF:
		return 0, nil, nil
	case entry >= 0:
		return len(data), data[entry:], nil
	}
	return len(data), nil, nil
}

// errBroken is the error of an entry that is no XML.
var errBroken = errors.New("the entry is no XML")

// entry is a <url> of a urlset, or a <sitemap> of a sitemapindex.
type entry struct {
	XMLName    xml.Name
	Loc        string `xml:"loc"`
	LastMod    string `xml:"lastmod"`
	ChangeFreq string `xml:"changefreq"`
	Priority   string `xml:"priority"`
	extended
}

// page returns the page of an entry. Hints that cannot be read are none: the URL counts.
func (e *entry) page(loc, base string) (p page.Page, err error) {
	p.LastMod, p.LastModDay, _ = page.ParseDate(e.LastMod)
	p.ChangeFreq, _ = page.ParseChangeFreq(strings.ToLower(strings.TrimSpace(e.ChangeFreq)))
	p.Priority, _ = page.ParsePriority(strings.TrimSpace(e.Priority))
	p.Path, err = pathOf(loc, base)
	return p, err
}

// readChild reads a document that an index names.
func (s *Reader) readChild(ctx context.Context, url string, depth int) error {
	s.documents++
	if s.documents > maxDocuments || depth > maxDepth {
		return errIndex
	}
	index := s.Name
	defer func() { s.Name = index }()
	r, err := s.Open(ctx, url)
	if err != nil {
		return err
	}
	defer r.Close()
	return s.read(ctx, r, depth)
}
