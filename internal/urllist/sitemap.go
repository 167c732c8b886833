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
	"strings"
	"time"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// Bounds of [ReadSitemap]. The protocol allows documents of 50 MiB and indexes of 50,000.
const (
	MaxDocuments     = 50_000
	maxDocument      = 64 << 20 // bytes, uncompressed
	maxSitemapEntry  = 1_000_000
	maxSitemapsDepth = 2 // an index of indexes is not allowed, but written
)

var (
	errDocument = fmt.Errorf("the document is longer than %d bytes", maxDocument)
	errChildren = fmt.Errorf("more than %d sitemaps", MaxDocuments)
)

// Opener opens another document of the site, by its absolute URL.
type Opener func(ctx context.Context, url string) (io.ReadCloser, error)

// ReadSitemap is [Read] for any form of a sitemap: lines of URLs, a urlset, or a
// sitemapindex, whose documents open opens, each of them plain or gzip
// (https://www.sitemaps.org/protocol.html). What is not a page of the site is refused as in
// Read, with the number of the entry in place of that of the line. Documents of an index that
// cannot be read are errors, returned together after all others were read.
func ReadSitemap(ctx context.Context, r io.Reader, base string, now time.Time, open Opener, yield func(page.Page) error, refuse func(line int, text string, err error)) error {
	site, err := parseBase(base)
	if err != nil {
		return err
	}
	if refuse == nil {
		refuse = func(int, string, error) {}
	}
	s := &sitemapReader{base: base, site: site, now: now, open: open, yield: yield, refuse: refuse}
	return s.read(ctx, r, 0)
}

type sitemapReader struct {
	base      string
	site      origin
	now       time.Time
	open      Opener
	yield     func(page.Page) error
	refuse    func(int, string, error)
	documents int
}

// read reads a document, and those that it names.
func (s *sitemapReader) read(ctx context.Context, r io.Reader, depth int) error {
	b := bufio.NewReader(r)
	if magic, _ := b.Peek(2); bytes.Equal(magic, []byte("\x1f\x8b")) {
		z, err := gzip.NewReader(b)
		if err != nil {
			return fmt.Errorf("decompressing: %w", err)
		}
		b = bufio.NewReader(z)
	}
	limited := &io.LimitedReader{R: b, N: maxDocument + 1}
	b = bufio.NewReader(limited)
	head, _ := b.Peek(512)
	var err error
	if isXML(head) {
		err = s.readXML(ctx, b, depth)
	} else {
		err = Read(ctx, b, s.base, s.now, s.yield, s.refuse)
	}
	if limited.N <= 0 {
		return errors.Join(errDocument, err)
	}
	return err
}

// isXML reports whether a document's first bytes are those of XML.
func isXML(head []byte) bool {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte(bom)), " \t\r\n")
	return bytes.HasPrefix(head, []byte("<"))
}

// sitemapEntry is a url or sitemap element.
type sitemapEntry struct {
	Loc        string `xml:"loc"`
	LastMod    string `xml:"lastmod"`
	ChangeFreq string `xml:"changefreq"`
	Priority   string `xml:"priority"`
}

// readXML reads a urlset or a sitemapindex.
func (s *sitemapReader) readXML(ctx context.Context, r io.Reader, depth int) error {
	d := xml.NewDecoder(r)
	d.Entity = xml.HTMLEntity // tolerated: others write these files
	var failed []error
	for n := 1; ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return errors.Join(failed...)
		}
		if err != nil {
			return errors.Join(append(failed, fmt.Errorf("entry %d: %w", n, err))...)
		}
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "url" && start.Name.Local != "sitemap" {
			continue
		}
		if n > maxSitemapEntry {
			return errors.Join(append(failed, fmt.Errorf("more than %d entries", maxSitemapEntry))...)
		}
		var e sitemapEntry
		if err := d.DecodeElement(&e, &start); err != nil {
			return errors.Join(append(failed, fmt.Errorf("entry %d: %w", n, err))...)
		}
		if start.Name.Local == "url" {
			err = s.page(n, e)
		} else if err := s.child(ctx, strings.TrimSpace(e.Loc), depth); err != nil {
			failed = append(failed, err)
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		n++
	}
}

// page yields the page of an entry. Hints that cannot be read are none: the URL counts.
func (s *sitemapReader) page(n int, e sitemapEntry) error {
	l := Line{URL: strings.TrimSpace(e.Loc)}
	if t, day, ok := page.ParseDate(strings.TrimSpace(e.LastMod)); ok {
		l.LastMod, l.LastModDay = t, day
	}
	if f, err := page.ParseChangeFreq(strings.ToLower(strings.TrimSpace(e.ChangeFreq))); err == nil {
		l.ChangeFreq = f
	}
	if p, err := page.ParsePriority(strings.TrimSpace(e.Priority)); err == nil {
		l.Priority = p
	}
	p, err := l.page(s.site, len(s.base), s.now)
	if err != nil {
		s.refuse(n, short(l.URL), err)
		return nil
	}
	return s.yield(p)
}

// child reads a document that an index names.
func (s *sitemapReader) child(ctx context.Context, url string, depth int) error {
	if s.documents++; s.documents > MaxDocuments {
		return errChildren
	}
	if depth+1 > maxSitemapsDepth || s.open == nil {
		return fmt.Errorf("%s: the index is too deep", short(url))
	}
	r, err := s.open(ctx, url)
	if err != nil {
		return fmt.Errorf("%s: %w", short(url), err)
	}
	err = s.read(ctx, r, depth+1)
	_ = r.Close()
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%s: %w", short(url), err)
	}
	return err
}
