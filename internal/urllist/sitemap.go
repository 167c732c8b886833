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
	maxDocuments     = 50_000
	maxDocument      = 64 << 20 // bytes, uncompressed
	maxSitemapEntry  = 1_000_000
	maxSitemapsDepth = 2 // an index of indexes is not allowed, but written
)

var (
	errDocument = fmt.Errorf("the document is longer than %d bytes", maxDocument)
	errChildren = fmt.Errorf("more than %d sitemaps", maxDocuments)
)

// Opener opens another document of the site, by its absolute URL.
type Opener func(ctx context.Context, url string) (io.ReadCloser, error)

// ReadSitemap reads any form of a sitemap: lines as [ParseLine] takes them, in UTF-8 and of at
// most 64 KiB; a urlset; or a sitemapindex, whose documents open opens. Each may be compressed
// by gzip (https://www.sitemaps.org/protocol.html). It calls yield for each page of the site at
// base, in the document's order; base and now are as in [Line.Page]. For each line or entry that
// says no page of the site, refuse, which may be nil, is called with its number, from 1, its text
// in at most 200 bytes, and why. Documents of an index that cannot be read are errors, returned
// together after all others were read.
//
// It ends with yield's error, with ctx's, or when r fails; a Read of r that blocks is for r to
// end.
func ReadSitemap(ctx context.Context, r io.Reader, base string, now time.Time, open Opener, yield func(page.Page) error, refuse func(line int, text string, err error)) error {
	o, err := parseBase(base)
	if err != nil {
		return err
	}
	if refuse == nil {
		refuse = func(int, string, error) {}
	}
	s := &reader{site: site{base, o}, now: now, open: open, yield: yield, refuse: refuse}
	return s.read(ctx, r, 0)
}

type reader struct {
	site      site
	now       time.Time
	open      Opener
	yield     func(page.Page) error
	refuse    func(int, string, error)
	documents int
}

// take yields the page of the n-th line or entry, or refuses its text.
func (s *reader) take(n int, text string, l Line, err error) error {
	var p page.Page
	if err == nil {
		p, err = s.site.page(l, s.now)
	}
	switch {
	case err == nil:
		return s.yield(p)
	case !errors.Is(err, ErrBlank):
		s.refuse(n, short(text), err)
	}
	return nil
}

// read reads a document, and those that it names.
func (s *reader) read(ctx context.Context, r io.Reader, depth int) error {
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
	head, _ := b.Peek(4096)
	var err error
	if isXML(head) {
		err = s.readXML(ctx, b, depth)
	} else {
		err = s.readLines(ctx, b)
	}
	if limited.N <= 0 {
		return errors.Join(errDocument, err)
	}
	return err
}

// isXML reports whether a document's first bytes are those of a sitemap in XML.
func isXML(head []byte) bool {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte(bom)), " \t\r\n")
	return bytes.HasPrefix(head, []byte("<")) && (bytes.Contains(head, []byte("urlset")) || bytes.Contains(head, []byte("sitemapindex")))
}

// sitemapEntry is a url or sitemap element.
type sitemapEntry struct {
	Loc        string `xml:"loc"`
	LastMod    string `xml:"lastmod"`
	ChangeFreq string `xml:"changefreq"`
	Priority   string `xml:"priority"`
}

// readXML reads a urlset or a sitemapindex.
func (s *reader) readXML(ctx context.Context, r io.Reader, depth int) error {
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
		e.Loc = strings.TrimSpace(e.Loc)
		if start.Name.Local == "url" {
			err = s.take(n, e.Loc, e.line(), nil)
		} else if err := s.child(ctx, e.Loc, depth); err != nil {
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

// line is what a url element says. Hints that cannot be read are none: the URL counts.
func (e sitemapEntry) line() Line {
	l := Line{URL: e.Loc}
	if t, day, ok := page.ParseDate(strings.TrimSpace(e.LastMod)); ok {
		l.LastMod, l.LastModDay = t, day
	}
	if f, err := page.ParseChangeFreq(strings.ToLower(strings.TrimSpace(e.ChangeFreq))); err == nil {
		l.ChangeFreq = f
	}
	if p, err := page.ParsePriority(strings.TrimSpace(e.Priority)); err == nil {
		l.Priority = p
	}
	return l
}

// child reads a document that an index names.
func (s *reader) child(ctx context.Context, url string, depth int) error {
	if s.documents++; s.documents > maxDocuments {
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
