// Package publish builds the documents of a sitemap: listed pages in order become shards, which are compressed XML
// documents, and a [Snapshot], which finds them by name.
package publish

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
	"github.com/seed3295b519/caddy-sitemap/internal/shard"
	"github.com/seed3295b519/caddy-sitemap/internal/sitemapxml"
)

// Bounds of the protocol (https://www.sitemaps.org/protocol.html#index): documents of an index, and uncompressed bytes
// of a document.
const maxShards, maxBytes = 50_000, 52_428_800

// Reasons in [Snapshot.LeftOut].
const (
	NoRoom   = "no room in the index"
	TooLarge = "too large for a document" // its entry alone
)

// Options are what a [Build] needs besides pages.
type Options struct {
	Base      string // scheme, host and port of pages, such as "https://example.com"
	Schema    sitemapxml.Schema
	ShardURLs int       // the most pages in a document; 0: shard.DefaultMaxPages
	Extended  bool      // extensions of pages are written, if the schema has them
	Workers   int       // goroutines that encode shards; up to 1: only the caller's
	Now       time.Time // modification time of new documents

	// Stylesheet is the URL of a CSS stylesheet that the documents name, as in [sitemapxml.Encoder].
	Stylesheet string

	// Document returns the absolute URL of the shard with a suffix, which is "-" and 12 hexadecimal digits. The
	// URLs of all shards have the same length.
	Document func(suffix string) string
}

// Build builds the snapshot of pages, which come in the order of [page.Compare] without duplicates. A document that
// has the same name and bytes in the previous snapshot, which may be nil, is taken from there. Without pages, the
// snapshot is nil. The error is that of ctx or pages, or [shard.ErrOrder].
//
// Build holds the pages of one document, and of those that workers encode.
func Build(ctx context.Context, pages iter.Seq2[page.Page, error], previous *Snapshot, o Options) (*Snapshot, error) {
	o.Extended = o.Extended && o.Schema == sitemapxml.Schema09
	b := &builder{Options: o, previous: previous, leftOut: make(map[string]int)}
	b.slots, b.room = make(chan struct{}, max(o.Workers, 1)), b.indexRoom()
	defer b.workers.Wait()
	if err := shard.Cut(ctx, pages, shard.Options{MaxPages: o.ShardURLs, Fits: b.fits}, b.add); err != nil {
		return nil, err
	}
	return b.finish(), nil
}

// builder encodes shards as they are cut.
type builder struct {
	Options
	previous *Snapshot
	room     int // for shards in the index
	slots    chan struct{}
	workers  sync.WaitGroup
	shards   []*Document
	leftOut  map[string]int
}

// indexRoom returns how many shards fit into an index.
func (b *builder) indexRoom() int {
	const escaped, elements = 6, 128 // at most: bytes of a character, and of the rest of an entry
	return min(maxShards, maxBytes/(escaped*len(b.Document(suffixOf(0)))+elements))
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
	return sitemapxml.Encoder{Schema: b.Schema, Base: b.Base, Extended: extended, Stylesheet: b.Stylesheet}
}

// add encodes a shard, in a worker if there are any.
func (b *builder) add(s shard.Shard) error {
	runtime.Gosched() // requests go first
	switch {
	case len(s.Pages) == 1 && !b.fits(s.Pages):
		b.leftOut[TooLarge]++ // a page that fits into no document is a shard of its own
		return nil
	case len(b.shards) == b.room:
		b.leftOut[NoRoom] += len(s.Pages)
		return nil
	}
	d := &Document{First: strings.Clone(s.Pages[0].Path), Pages: len(s.Pages)} // a path may be part of a larger string
	if !s.Only {
		d.Suffix = suffixOf(s.ID)
	}
	b.shards = append(b.shards, d)
	if b.Workers <= 1 {
		b.encode(d, s.Pages)
		return nil
	}
	b.slots <- struct{}{}
	b.workers.Go(func() {
		defer func() { <-b.slots }()
		b.encode(d, s.Pages)
	})
	return nil
}

func suffixOf(id uint64) string { return fmt.Sprintf("-%012x", id) }

// finish waits for the shards and adds the index.
func (b *builder) finish() *Snapshot {
	b.workers.Wait()
	switch {
	case len(b.shards) == 0:
		return nil
	case b.shards[0].Suffix == "": // the only one
		return newSnapshot(b.shards[0], nil, b.previous, b.Now, b.leftOut)
	}
	return newSnapshot(b.index(), b.shards, b.previous, b.Now, b.leftOut)
}

func (b *builder) index() *Document {
	var shards []page.Page
	for _, s := range b.shards {
		shards = append(shards, page.Page{Path: b.Document(s.Suffix), LastMod: s.LastMod, LastModDay: s.LastModDay})
	}
	d := &Document{Index: true}
	b.encode(d, shards)
	return d
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// encode writes a document of pages, or of shards as pages, unless the previous snapshot has the same: writing it
// only for its hash takes a tenth of the time.
func (b *builder) encode(d *Document, pages []page.Page) {
	encoder := b.encoder(b.Extended && slices.ContainsFunc(pages, func(p page.Page) bool { return !p.Extensions.Empty() }))
	write := func(w io.Writer) (size int64) { // neither hash nor buffer return errors
		if d.Index {
			size, _ = encoder.Index(w, pages)
		} else {
			size, _ = encoder.URLSet(w, pages)
		}
		return size
	}
	if old := b.previous.Find(d.Suffix); old != nil && old.Suffix == d.Suffix {
		hash := xxhash.New()
		if size := write(hash); etagOf(hash, size) == old.ETag {
			*d = *old
			return
		}
	}
	for _, p := range pages {
		if p.LastMod > d.LastMod {
			d.LastMod, d.LastModDay = p.LastMod, p.LastModDay
		}
		if !d.Index {
			d.TextSize += int64(sitemapxml.TextSize(b.Base, p))
		}
	}
	buf := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buf)
	buf.Reset()
	hash, gzip := xxhash.New(), sitemapxml.NewGzip(buf)
	d.Size = write(io.MultiWriter(hash, gzip))
	_ = gzip.Close()
	d.Gzip, d.ETag = slices.Clone(buf.Bytes()), etagOf(hash, d.Size)
	d.Modified = b.Now.Truncate(time.Second).UTC()
	d.setHeaders()
}

func etagOf(hash *xxhash.Digest, size int64) string {
	return strconv.FormatUint(hash.Sum64(), 36) + strconv.FormatInt(size, 36)
}
