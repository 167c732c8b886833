package document

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sync/errgroup"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// Bounds of the protocol (https://www.sitemaps.org/protocol.html#index).
const (
	maxShards = 50_000     // documents of an index
	maxPages  = 50_000     // of a document
	maxBytes  = 52_428_800 // of a document, uncompressed
)

// maxEntryBytes are the most bytes of the entries of an XML document. Besides them, there is the name of its stylesheet, which may be
// long.
const maxEntryBytes = maxBytes - MaxBeginning

// Bounds of memory. Where pages of all sections come in turns, as with a pattern such as */de/*, each section holds those of one
// document at once: a million in all, each of which takes about 200 bytes besides extensions, beside those that are in no section.
const (
	MaxSections = 100
	maxHeld     = 1_000_000
	fewSections = maxHeld / maxPages
	manyURLs    = maxHeld / MaxSections // pages of a document where there are more than a few sections
)

// Reasons in [Set.LeftOut].
const (
	NoRoom   = "no room in the index"
	TooLarge = "too large for a document" // its entry alone
)

// Beside says which documents there are beside the XML of the pages.
type Beside struct {
	People     *People  // how the pages for people look; nil: make none
	Feed       bool     // make the feed
	Hubs       []string // absolute URLs of the feed's WebSub hubs (https://www.w3.org/TR/websub/#discovery)
	Stylesheet bool     // make the CSS that XML sitemaps refer to
	LLMs       bool     // make the document for language models
	News       *NewsOf  // of the news sitemap; nil: make none
}

// Options are what a [Build] needs besides pages.
type Options struct {
	Beside

	Base      string // scheme, host and port of pages, such as "https://example.com"
	Sitemap   string // URL of the sitemap without its extension, such as "https://example.com/sitemap": it begins with Base
	Schema    Schema
	ShardURLs int       // the most pages in a document; 0: 50,000
	Extended  bool      // extensions of pages are written, if the schema has them
	Workers   int       // goroutines that compress documents, at least one
	Now       time.Time // modification time of new documents; articles are news by it

	// Sections are the names of those that there may be, and SectionOf returns that of the one that a path is in; "":
	// none. Nil: there are no sections.
	Sections  []string
	SectionOf func(path string) string
}

// root is the path of the sitemap's folder.
func (o *Options) root() string { return page.Folder(strings.TrimPrefix(o.Sitemap, o.Base)) }

// host is the name of the site for people: the host, and the port if there is one.
func (o *Options) host() string { return o.Base[strings.Index(o.Base, "//")+2:] }

// part is a kind of documents beside the XML of the pages. It is given each page once, in order, and makes its documents at the
// end.
type part interface {
	add(p listed)
	finish()
}

// builder makes the documents of a set.
type builder struct {
	Options
	previous *Set
	made     *Set
	workers  errgroup.Group     // without errors
	entry    []byte             // of the page that is added, to be overwritten
	cutters  map[string]*cutter // by section; "": of pages that are in none
	parts    []part
	feedURL  string // "": there is no feed
	front    listed // the page whose path is the sitemap's folder, if it is listed
	endings  endings
}

// noExtensions are those of a page of which nothing is known beside its entry.
var noExtensions = new(page.Extensions)

// Build builds the set of documents of pages, which come in the order of [page.Compare] without duplicates. A document that
// has the same name and bytes in the previous set, which may be nil, is taken from there. Equal pages and options give equal
// documents. Without pages, the set is nil. The error is that of ctx or pages.
//
// The pages of a section have documents of their own, which do not depend on other pages.
//
// Build holds the entries of one document, of one for each section, and of those that workers compress; for people, titles
// and paths of up to a million pages; and for each of the other documents, up to 1,000 pages.
func Build(ctx context.Context, pages iter.Seq2[page.Page, error], previous *Set, o Options) (*Set, error) {
	b := newBuilder(previous, o)
	defer func() { _ = b.workers.Wait() }() // also after an error: nothing outlives Build
	for p, err := range pages {
		if err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b.add(p)
	}
	return b.finish(), nil
}

func newBuilder(previous *Set, o Options) *builder {
	o.Extended = o.Extended && o.Schema == Schema09
	if o.SectionOf == nil {
		o.SectionOf = func(string) string { return "" }
	}
	b := &builder{
		Options:  o,
		previous: previous,
		made:     &Set{LeftOut: make(map[string]int)},
		cutters:  make(map[string]*cutter),
		front:    listed{Page: page.Page{Extensions: noExtensions}},
		endings:  endings{count: make(map[string]int)},
	}
	b.workers.SetLimit(max(o.Workers, 1)) // so no more bodies are held than there are workers
	if o.Feed {
		// Before the pages for people, which name its URL.
		b.parts = append(b.parts, &feed{builder: b, latest: first[atomEntry]{most: maxEntries}})
	}
	if o.People != nil {
		b.parts = append(b.parts, &people{builder: b, groups: make(map[string]*group)})
	}
	if o.News != nil {
		b.made.News = &News{LeftOut: make(map[string]int), Examples: make(map[string][]string)}
		b.parts = append(b.parts, &news{b, b.made.News, first[article]{most: maxArticles}})
	}
	if o.LLMs {
		b.parts = append(b.parts, &llms{b, first[nearPage]{most: maxLinks}, make(map[uint64]int)})
	}
	if o.Stylesheet {
		b.parts = append(b.parts, &columns{builder: b})
	}
	return b
}

// add adds a page, which comes after all others. The parts have those, too, for which no XML document has room.
func (b *builder) add(p page.Page) {
	// Path and title may be parts of larger strings.
	p.Path = strings.Clone(p.Path)
	p.Extensions = cmp.Or(p.Extensions, noExtensions)
	section := b.SectionOf(p.Path)
	of := listed{p, strings.Clone(clean(p.Extensions.Title)), cmp.Or(section, b.firstFolder(p.Path))}
	if p.Path == b.root() {
		b.front = of
	}
	b.endings.add(of.title)
	for _, part := range b.parts {
		part.add(of)
	}
	b.entry = appendEntry(b.entry[:0], b.Base, p, b.Extended)
	if len(b.entry) > maxEntryBytes {
		b.made.LeftOut[TooLarge]++
		return
	}
	if b.cutters[section] == nil {
		b.cutters[section] = b.newCutter(section)
	}
	b.cutters[section].add(held{
		path:       p.Path,
		lastMod:    p.LastMod,
		lastModDay: p.LastModDay,
		isExtended: b.Extended && !p.Extensions.Empty(),
	}, b.entry)
}

// siteNames are the names of the site, which titles need not repeat.
func (b *builder) siteNames() []string { return []string{b.front.title, b.host(), b.endings.most()} }

// newCutter returns the cutter of a section; "": of the rest.
func (b *builder) newCutter(section string) *cutter {
	most := cmp.Or(b.ShardURLs, maxPages)
	// It does not shrink with each further section: that would change the shards of the others.
	if section != "" && len(b.Sections) > fewSections {
		most = min(most, manyURLs)
	}
	return newCutter(most, maxEntryBytes, func(s shard) { b.shard(section, s) })
}

// shard makes the document of a shard of a section.
func (b *builder) shard(section string, s shard) {
	if len(b.made.Shards) == maxShards {
		b.made.LeftOut[NoRoom] += len(s.pages)
		return
	}
	d := &Document{
		Name:    shardName(section, s.id),
		Section: section,
		First:   s.pages[0].path,
		Pages:   len(s.pages),
	}
	// Whether a site has only one document shows when all sections have theirs.
	hasOthers := section == "" && len(b.made.Shards) > 0
	if s.isOnly && !hasOthers {
		d.Name = NameOfSection(section)
	}
	namespaces := ""
	for _, p := range s.pages {
		// An index says of a document when its latest page changed.
		if p.lastMod > d.LastMod {
			d.LastMod = p.lastMod
			d.LastModDay = p.lastModDay
		}
		if p.isExtended {
			namespaces = extensionNamespaces
		}
	}
	b.made.Shards = append(b.made.Shards, d)
	b.write(d, b.urlset(namespaces, s.entries))
}

// finish makes the documents that are left, waits for all, and adds the index.
func (b *builder) finish() *Set {
	sections := slices.Sorted(maps.Keys(b.cutters))
	for _, section := range slices.Backward(sections) { // the rest comes last: see shard
		b.cutters[section].end()
	}
	s := b.made
	if len(s.Shards) == 0 {
		return nil
	}
	for _, part := range b.parts {
		part.finish()
	}
	slices.SortFunc(s.Shards, inOrder) // of several sections, they were completed in turns
	if only := s.Shards[0]; only.Name == extension {
		s.Index = only
		s.Shards = nil
	} else {
		b.sectionIndexes()
		s.Index = &Document{Name: extension}
		b.write(s.Index, b.index(s.Shards))
	}
	_ = b.workers.Wait()
	s.complete()
	s.retire(b.previous, b.Now, b.SectionOf)
	return s
}

// sectionIndexes makes the indexes of sections whose pages are not in one document.
func (b *builder) sectionIndexes() {
	shards := make(map[string][]*Document)
	for _, d := range b.made.Shards {
		shards[d.Section] = append(shards[d.Section], d)
	}
	for section, of := range shards {
		if section != "" && IsHashed(of[0].Name) {
			b.file(NameOfSection(section), "", b.index(of))
		}
	}
}

// file makes a document beside the shards and their index. A type is that of a text; "": it is XML.
func (b *builder) file(name, contentType string, body []byte) {
	if contentType != "" {
		contentType += "; charset=utf-8"
	}
	d := &Document{Name: name, Type: contentType}
	b.made.Others = append(b.made.Others, d)
	b.write(d, body)
}

// write fills in a document by its body, or takes what it is from the previous set if that has the same. A worker compresses it.
func (b *builder) write(d *Document, body []byte) {
	d.Size = int64(len(body))
	d.ETag = strconv.FormatUint(xxhash.Sum64(body), 36) + strconv.FormatInt(d.Size, 36)
	old := b.previous.Find(d.Name)
	if old != nil && isSame(old, d) { // under the name of a removed shard, Find returns another one
		d.Gzip = old.Gzip
		d.TextSize = old.TextSize
		d.Modified = old.Modified
		return
	}
	d.Modified = b.Now.Truncate(time.Second).UTC()
	// HTTP dates are whole seconds, and clocks may be set back: a client that asks by the date of the version before would not get
	// this one.
	if old != nil && !d.Modified.After(old.Modified) {
		d.Modified = old.Modified.Add(time.Second)
	}
	b.workers.Go(func() error {
		d.Gzip = compress(body)
		if d.Pages > 0 {
			d.TextSize = textSize(body)
		}
		return nil
	})
}
