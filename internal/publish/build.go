// Package publish cuts the listed pages of a site into shards that stay put, writes them as compressed documents, and finds
// these by name in a [Snapshot].
package publish

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"iter"
	"maps"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sync/errgroup"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/sitemapxml"
	"github.com/seed3295b519/caddy-sitemap/internal/webpage"
)

// Bounds of the protocol (https://www.sitemaps.org/protocol.html#index).
const (
	maxShards = 50_000     // documents of an index
	maxBytes  = 52_428_800 // of a document, uncompressed
)

// Bounds of memory. A cutter holds its pages until it is known that they do not fit into one document. Where pages of
// all sections come in turns, as with a pattern such as */de/*, all of them do so at once: a million pages in all, each
// of which takes about 150 bytes, beside those that are in no section.
const (
	MaxSections = 100
	maxHeld     = 1_000_000 // pages, by the cutters of sections
	fewSections = maxHeld / defaultMaxPages
	manyURLs    = maxHeld / MaxSections // pages of a document where there are more than a few sections
)

// Reasons in [Snapshot.LeftOut].
const (
	NoRoom   = "no room in the index"
	TooLarge = "too large for a document" // its entry alone
)

// Options are what a [Build] needs besides pages.
type Options struct {
	webpage.Options // the documents beside the XML, and the base of pages and the URL of the sitemap

	Schema    sitemapxml.Schema
	ShardURLs int       // the most pages in a document; 0: 50,000
	Extended  bool      // extensions of pages are written, if the schema has them
	Workers   int       // goroutines that encode shards, at least one
	Now       time.Time // modification time of new documents

	// Sections are the names of those that there may be, and SectionOf returns that of the one that a path is in; "":
	// none. Nil: there are no sections.
	Sections  []string
	SectionOf func(path string) string
}

// sectionURLs returns the most pages in a document of a section. It does not shrink with each further section: that
// would change the shards of the others.
func (o *Options) sectionURLs() int {
	most := cmp.Or(o.ShardURLs, defaultMaxPages)
	if len(o.Sections) > fewSections {
		return min(most, manyURLs)
	}
	return most
}

// Build builds the snapshot of pages, which come in the order of [page.Compare] without duplicates. A document that
// has the same name and bytes in the previous snapshot, which may be nil, is taken from there. Without pages, the
// snapshot is nil. The error is that of ctx or pages, or says that they
// are out of order.
//
// The pages of a section have documents of their own, which do not depend on other pages.
//
// Build holds the pages of one document, of one for each section, and of those that workers encode.
func Build(ctx context.Context, pages iter.Seq2[page.Page, error], previous *Snapshot, o Options) (*Snapshot, error) {
	o.Extended = o.Extended && o.Schema == sitemapxml.Schema09
	b := &builder{
		Options:  o,
		previous: previous,
		leftOut:  make(map[string]int),
		cutters:  make(map[string]*cutter),
	}
	b.workers.SetLimit(max(o.Workers, 1)) // so no more shards are held than there are workers
	b.rest = b.newCutter("", o.ShardURLs)
	b.room = b.indexRoom()
	b.web = webpage.New(o.Options, b.addFile)
	defer func() { _ = b.workers.Wait() }() // also after an error: nothing outlives Build
	for p, err := range pages {
		if err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := b.push(p); err != nil {
			return nil, err
		}
	}
	if err := b.end(); err != nil {
		return nil, err
	}
	return b.finish(), nil
}

// builder encodes shards as they are cut.
type builder struct {
	Options
	previous *Snapshot
	room     int            // for shards in the index
	workers  errgroup.Group // without errors
	web      *webpage.Builder
	rest     *cutter            // of pages that are in no section
	cutters  map[string]*cutter // by section
	shards   []*Document
	files    []*Document
	leftOut  map[string]int
}

// indexRoom returns how many shards fit into an index.
func (b *builder) indexRoom() int {
	const (
		escaped  = 6   // bytes of a character at most
		elements = 128 // and of the rest of an entry
	)
	longest := len(b.Sitemap + shardName("", 0))
	for _, name := range b.Sections {
		longest = max(longest, len(b.Sitemap+shardName(name, 0)))
	}
	return min(maxShards, maxBytes/(escaped*longest+elements))
}

// push adds a page, which comes after all others. What is beside the XML has those, too, for which no XML document has
// room.
func (b *builder) push(p page.Page) error {
	section := b.sectionOf(p.Path)
	b.web.Add(p, section)
	p = b.entry(p)
	if section == "" {
		return b.rest.add(p)
	}
	return b.cutter(section).add(p)
}

// entry returns the page without what its entry in an XML document does not have, such as its title: the pages of a shard
// are held until it is complete, and titles would take twice as much memory as they do.
func (b *builder) entry(p page.Page) page.Page {
	hasExtensions := b.Extended && !p.Extensions.Empty()
	if !hasExtensions {
		p.Extensions = nil
	}
	return p
}

// sectionOf returns the section that a path is in; "": in none.
func (b *builder) sectionOf(path string) string {
	if b.SectionOf == nil {
		return ""
	}
	return b.SectionOf(path)
}

// cutter is that of a section.
func (b *builder) cutter(section string) *cutter {
	c := b.cutters[section]
	if c == nil {
		c = b.newCutter(section, b.sectionURLs())
		b.cutters[section] = c
	}
	return c
}

// newCutter returns a cutter of pages of a section, with so many in a document; "": of the rest.
func (b *builder) newCutter(section string, most int) *cutter {
	return newCutter(cutterOptions{MaxPages: most, Fits: b.fits}, func(s shard) error {
		b.add(section, s)
		return nil
	})
}

// end ends the cutters, that of the rest last: whether a site has only one document shows when all sections have
// theirs.
func (b *builder) end() error {
	for _, name := range slices.Sorted(maps.Keys(b.cutters)) {
		if err := b.cutters[name].end(); err != nil {
			return err
		}
	}
	return b.rest.end()
}

// fits reports whether a document has room for pages.
func (b *builder) fits(pages []page.Page) bool {
	if !b.Extended && b.encoder(false).Bound(pages) <= maxBytes {
		return true // nearly always, without encoding
	}
	size, _ := b.encoder(b.Extended).URLSet(io.Discard, pages)
	return size <= maxBytes
}

func (b *builder) encoder(extended bool) sitemapxml.Encoder {
	e := sitemapxml.Encoder{Schema: b.Schema, Base: b.Base, Extended: extended}
	if b.Stylesheet {
		e.Stylesheet = path.Base(b.Sitemap) + webpage.Stylesheet
	}
	return e
}

// add has a worker encode a shard of a section.
func (b *builder) add(section string, s shard) {
	runtime.Gosched() // requests go first
	if len(s.Pages) == 1 && !b.fits(s.Pages) {
		b.leftOut[TooLarge]++ // a page that fits into no document is a shard of its own
		return
	}
	if len(b.shards) == b.room {
		b.leftOut[NoRoom] += len(s.Pages)
		return
	}
	d := &Document{
		Name:    shardName(section, s.ID),
		Section: section,
		First:   strings.Clone(s.Pages[0].Path), // it may be part of a larger string
		Pages:   len(s.Pages),
	}
	isOnlyOfAll := s.Only && section == "" && len(b.shards) == 0 // nor are there sections
	isOnlyOfSection := s.Only && section != ""
	if isOnlyOfAll || isOnlyOfSection {
		d.Name = NameOfSection(section)
	}
	b.shards = append(b.shards, d)
	b.workers.Go(func() error {
		b.encode(d, s.Pages)
		return nil
	})
}

// addFile compresses a document beside the XML, unless the previous snapshot has the same.
func (b *builder) addFile(f webpage.Document) {
	d := &Document{Name: f.Name, Type: f.Type, ETag: f.ETag}
	b.files = append(b.files, d)
	if b.takesOver(d) {
		return // without rendering it, which takes longer than all else
	}
	b.workers.Go(func() error {
		b.compress(d, func(w io.Writer) int64 {
			n, _ := w.Write(f.Body())
			return int64(n)
		})
		return nil
	})
}

// takesOver reports whether the previous snapshot has the same document, and makes it that.
func (b *builder) takesOver(d *Document) bool {
	old := b.previous.Find(d.Name)
	if old == nil || !isSame(old, d) { // under the name of a removed shard, Find returns another one
		return false
	}
	// Its dates and sizes follow from the bytes. A field that does not would be overwritten here.
	*d = *old
	return true
}

// finish adds the rest of the files, waits for all documents, and adds the index.
func (b *builder) finish() *Snapshot {
	if len(b.shards) == 0 {
		return nil
	}
	b.web.Finish()
	_ = b.workers.Wait()

	// An index says when its shards were modified, so they are to be complete.
	slices.SortFunc(b.shards, inOrder) // of several sections, they were completed in turns
	s := &Snapshot{Index: b.shards[0], Files: b.files, LeftOut: b.leftOut, News: b.web.InNews()}
	if s.Index.Name != extension { // it is not the only one
		s.Index = b.index(NameOfSection(""), b.shards)
		s.Shards = b.shards
		s.Indexes = b.sectionIndexes()
	}
	s.complete()
	s.retire(b.previous, b.Now, b.sectionOf)
	return s
}

// sectionIndexes are those of the sections whose pages are not in one document.
func (b *builder) sectionIndexes() (indexes []*Document) {
	for _, section := range slices.Sorted(maps.Keys(b.cutters)) {
		isOther := func(d *Document) bool { return d.Section != section }
		shards := slices.DeleteFunc(slices.Clone(b.shards), isOther)
		if len(shards) == 0 || shards[0].Name == NameOfSection(section) {
			continue // it needs none
		}
		d := b.index(NameOfSection(section), shards)
		d.Section = section
		d.First = shards[0].First
		indexes = append(indexes, d)
	}
	return indexes
}

// index is an index of shards.
func (b *builder) index(name string, shards []*Document) *Document {
	var entries []page.Page
	for _, s := range shards {
		entries = append(entries, page.Page{Path: b.Sitemap + s.Name, LastMod: s.LastMod, LastModDay: s.LastModDay})
	}
	d := &Document{Name: name, Index: true}
	b.encode(d, entries)
	return d
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// encode writes a document of pages, or of shards as pages, unless the previous snapshot has the same: writing it
// only for its hash takes a tenth of the time.
func (b *builder) encode(d *Document, pages []page.Page) {
	// Without extensions, a document does not declare their namespaces either.
	isExtended := func(p page.Page) bool { return !p.Extensions.Empty() }
	encoder := b.encoder(b.Extended && slices.ContainsFunc(pages, isExtended))
	write := func(w io.Writer) (size int64) { // neither hash nor buffer return errors
		if d.Index {
			size, _ = encoder.Index(w, pages)
		} else {
			size, _ = encoder.URLSet(w, pages)
		}
		return size
	}
	if b.previous.Find(d.Name) != nil {
		hash := xxhash.New()
		size := write(hash)
		d.ETag = etagOf(hash, size)
		if b.takesOver(d) {
			return
		}
	}
	// An index says of a document when its latest page changed.
	for _, p := range pages {
		if p.LastMod > d.LastMod {
			d.LastMod = p.LastMod
			d.LastModDay = p.LastModDay
		}
		if !d.Index {
			d.TextSize += int64(sitemapxml.TextSize(b.Base, p))
		}
	}
	b.compress(d, func(w io.Writer) int64 {
		hash := xxhash.New()
		size := write(io.MultiWriter(hash, w))
		d.ETag = etagOf(hash, size)
		return size
	})
}

// compress makes the rest of a new document, whose bytes write returns the number of.
func (b *builder) compress(d *Document, write func(io.Writer) int64) {
	buf := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buf)
	buf.Reset()
	gzip := sitemapxml.NewGzip(buf)
	d.Size = write(gzip)
	_ = gzip.Close() // a buffer returns no errors
	d.Gzip = slices.Clone(buf.Bytes())
	d.Modified = b.modifiedAfter(b.previous.Find(d.Name))
	d.setHeaders()
}

// modifiedAfter returns when a new version of a document was modified. HTTP dates are whole seconds, and clocks may be set
// back: a client that asks by the date of the version before would not get this one. nil: there was none.
func (b *builder) modifiedAfter(before *Document) time.Time {
	now := b.Now.Truncate(time.Second).UTC()
	if before == nil || now.After(before.Modified) {
		return now
	}
	return before.Modified.Add(time.Second)
}

func etagOf(hash *xxhash.Digest, size int64) string {
	return strconv.FormatUint(hash.Sum64(), 36) + strconv.FormatInt(size, 36)
}
