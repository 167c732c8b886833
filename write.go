package sitemap

import (
	"bytes"
	"encoding/binary"
	"fmt"
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

// writer writes a snapshot's documents as the cutter hands over their pages. A
// shard whose pages are those of the previous snapshot is carried over.
type writer struct {
	base     string // scheme, host and port
	stem     string // path of the documents, percent-encoded, without suffix and .xml
	schema   sitemapxml.Schema
	now      time.Time
	previous *Snapshot // nil: none

	slots  chan struct{} // nil: write in the caller's goroutine
	group  sync.WaitGroup
	mu     sync.Mutex
	err    error
	shards []*document
}

func newWriter(base, stem string, schema sitemapxml.Schema, previous *Snapshot, now time.Time, workers int) *writer {
	w := &writer{base: base, stem: stem, schema: schema, previous: previous, now: now}
	if workers > 1 {
		w.slots = make(chan struct{}, workers)
	}
	return w
}

// add writes a shard, side by side with others where there are workers for it.
func (w *writer) add(s shard.Shard) error {
	w.mu.Lock()
	i, err := len(w.shards), w.err
	w.shards = append(w.shards, nil)
	w.mu.Unlock()
	if err != nil {
		return err
	}
	if w.slots == nil {
		w.set(i, s)
		return w.err
	}
	w.slots <- struct{}{}
	w.group.Go(func() {
		w.set(i, s)
		<-w.slots
	})
	return nil
}

// count is how many shards were added.
func (w *writer) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.shards)
}

func (w *writer) set(i int, s shard.Shard) {
	d, err := w.urlset(s)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shards[i] = d
	if w.err == nil {
		w.err = err
	}
}

// finish waits for the shards and writes the index. The snapshot is nil where
// there was no page.
func (w *writer) finish(only bool) (*Snapshot, error) {
	w.group.Wait()
	if w.err != nil {
		return nil, w.err
	}
	if len(w.shards) == 0 {
		return nil, nil
	}
	var index *document
	if !only {
		var err error
		if index, err = w.index(); err != nil {
			return nil, err
		}
	}
	return newSnapshot(index, w.shards, w.previous, w.now), nil
}

func (w *writer) urlset(s shard.Shard) (*document, error) {
	d := &document{kind: kindURLSet, suffix: suffixOf(s), pages: len(s.Pages), first: s.Pages[0].Path}
	d.sum = w.sum(s.Pages)
	if old := w.before(d); old != nil {
		return old, nil
	}
	// A path may share its bytes with those of a whole folder.
	d.first = strings.Clone(d.first)
	for _, p := range s.Pages {
		d.newest.add(p.LastMod, p.LastModDay)
		d.textSize += int64(sitemapxml.TextSize(w.base, p))
	}
	return d, w.compress(d, func(out *bytesAndHash) (int64, error) {
		begin := sitemapxml.NewURLSet
		if slices.ContainsFunc(s.Pages, func(p page.Page) bool { return !p.Extensions.Empty() }) {
			begin = sitemapxml.NewExtendedURLSet
		}
		u := begin(out, w.schema, w.base)
		for _, p := range s.Pages {
			if err := u.Add(p); err != nil {
				return 0, err
			}
		}
		err := u.Close()
		return u.Bytes(), err
	})
}

func suffixOf(s shard.Shard) string {
	if s.Only {
		return ""
	}
	return fmt.Sprintf("-%012x", s.ID)
}

func (w *writer) index() (*document, error) {
	d := &document{kind: kindIndex}
	digest := w.digest()
	for _, s := range w.shards {
		_, _ = digest.WriteString(s.suffix)
		writeNumbers(digest, s.newest.lastMod, s.newest.day)
		d.newest.add(s.newest.lastMod, s.newest.day)
	}
	d.sum = digest.Sum64()
	if old := w.before(d); old != nil {
		return old, nil
	}
	return d, w.compress(d, func(out *bytesAndHash) (int64, error) {
		x := sitemapxml.NewIndex(out, w.schema)
		for _, s := range w.shards {
			if err := x.Add(w.base+w.stem+s.suffix+".xml", s.newest.lastMod, s.newest.day); err != nil {
				return 0, err
			}
		}
		err := x.Close()
		return x.Bytes(), err
	})
}

// before is the previous snapshot's document, if it says the same.
func (w *writer) before(d *document) *document {
	if w.previous == nil {
		return nil
	}
	old := w.previous.bySuffix[d.suffix]
	if old == nil || old.sum != d.sum || old.kind != d.kind || old.first != d.first {
		return nil
	}
	return old
}

// digest begins with all that documents say besides their pages.
func (w *writer) digest() *xxhash.Digest {
	digest := xxhash.New()
	_, _ = digest.WriteString(w.schema.String() + "\n" + w.base + w.stem + "\n")
	return digest
}

// sum tells lists of pages apart without writing them.
func (w *writer) sum(pages []page.Page) uint64 {
	digest := w.digest()
	var buf [1 << 12]byte
	n := 0
	for _, p := range pages {
		if n+len(p.Path)+16 > len(buf) {
			_, _ = digest.Write(buf[:n])
			n = 0
		}
		if len(p.Path)+16 > len(buf) {
			_, _ = digest.WriteString(p.Path)
		} else {
			n += copy(buf[n:], p.Path)
		}
		binary.LittleEndian.PutUint64(buf[n:], uint64(p.LastMod))
		buf[n+8], buf[n+9], buf[n+10], buf[n+11] = boolByte(p.LastModDay), byte(p.ChangeFreq), byte(p.Priority), '\n'
		n += 12
		if sitemapxml.ExtensionsSize(w.schema, p) > 0 {
			_, _ = digest.Write(buf[:n])
			n = 0
			writeExtensions(digest, p.Extensions)
		}
	}
	_, _ = digest.Write(buf[:n])
	return digest.Sum64()
}

func writeExtensions(digest *xxhash.Digest, e *page.Extensions) {
	var buf [8]byte
	number := func(n int) {
		binary.LittleEndian.PutUint64(buf[:], uint64(n))
		_, _ = digest.Write(buf[:])
	}
	text := func(s string) {
		number(len(s))
		_, _ = digest.WriteString(s)
	}
	number(len(e.Alternates))
	for _, a := range e.Alternates {
		text(a.Lang)
		text(a.URL)
	}
	number(len(e.Images))
	for _, image := range e.Images {
		text(image)
	}
}

func writeNumbers(digest *xxhash.Digest, lastMod int64, day bool) {
	var buf [9]byte
	binary.LittleEndian.PutUint64(buf[:], uint64(lastMod))
	buf[8] = boolByte(day)
	_, _ = digest.Write(buf[:])
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// bytesAndHash compresses what is written to it and hashes it on the way.
type bytesAndHash struct {
	gzip *sitemapxml.Gzip
	hash *xxhash.Digest
}

func (b *bytesAndHash) Write(p []byte) (int, error) {
	_, _ = b.hash.Write(p)
	return b.gzip.Write(p)
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func (w *writer) compress(d *document, write func(*bytesAndHash) (int64, error)) error {
	buf := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buf)
	buf.Reset()
	out := &bytesAndHash{gzip: sitemapxml.NewGzip(buf), hash: xxhash.New()}
	size, err := write(out)
	if err != nil {
		return fmt.Errorf("writing %s%s.xml: %w", w.stem, d.suffix, err)
	}
	if err := out.gzip.Close(); err != nil {
		return fmt.Errorf("compressing %s%s.xml: %w", w.stem, d.suffix, err)
	}
	d.gzip, d.size = slices.Clone(buf.Bytes()), size
	d.etag = strconv.FormatUint(out.hash.Sum64(), 36) + strconv.FormatInt(size, 36)
	d.modified = w.now.Truncate(time.Second).UTC()
	d.setHeaders()
	return nil
}
