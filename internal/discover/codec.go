package discover

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"
)

// What is wrong with bytes that cannot be decoded.
var (
	errMagic   = errors.New("it is no catalog of paths")
	errVersion = errors.New("it is of another version")
	errDamaged = errors.New("it is damaged")
)

const (
	magic   = "paths\x00"
	version = 2
)

// A catalog is a head, blocks, and a last block that says how many there were. A block
// is its kind, its size, the size that it is stored in, a hash of these and of what is
// stored, and that: zstd.
const (
	blockKey = 1 + iota
	blockLinks
	blockPaths
	blockShadows
	blockEnd
)

const (
	maxBlock   = 64 << 20 // bytes
	blockBytes = 8 << 20  // of paths: a block is written once it has as many, or
	blockCount = 1 << 16  // so many paths or visitors
	blockWords = 1 << 17  // links or shadows in a block
)

var encoders = sync.Pool{New: func() any {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // the options are constant
	}
	return e
}}

var decoders = sync.Pool{New: func() any {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(maxBlock), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(err) // the options are constant
	}
	return d
}}

// Encode writes the catalog, as it was at some moment of the writing for each path.
// Visits go on meanwhile: a segment is copied under the lock, and sorted, compressed
// and written without. Options are not written, nor who the latest visits came from.
//
// A path may be a secret. One that is written is linked to, listed, or matched by a rule
// in Unlinked; of any other, only a hash is, by a key that is written, too, with its
// origins and the hour in which it was seen last. Once it is read, it is known again with
// its next visit, or by a round that finds a link to it.
func (c *Catalog) Encode(w io.Writer) error {
	b := &blockWriter{w: w}
	c.mu.Lock()
	key, links, rounded := c.key, c.links, c.rounded // links are never changed
	c.mu.Unlock()
	b.write([]byte(magic + string(rune(version))))
	b.block(blockKey, binary.AppendUvarint(binary.LittleEndian.AppendUint64(
		binary.LittleEndian.AppendUint64(nil, key[0]), key[1]), uint64(rounded)))
	for part := range slices.Chunk(links, blockWords) {
		b.block(blockLinks, appendLinks(nil, part))
	}

	shadows := c.copyShadows() // before the walk: they become entries, never the other way
	paths, batch := 0, batch{}
	flush := func() {
		paths += batch.count
		b.block(blockPaths, batch.encode())
		batch.reset()
	}
	err := c.walk(func(s *segment) {
		batch.add(s)
		shadows = c.hide(&batch, s, shadows)
	}, func() error {
		if batch.isFull() {
			flush()
		}
		return b.err
	})
	if err != nil {
		return err
	}
	flush()
	for part := range slices.Chunk(united(shadows), blockWords) {
		b.block(blockShadows, appendShadows(nil, part))
	}
	b.block(blockEnd, binary.AppendUvarint(binary.AppendUvarint(nil, uint64(b.blocks)), uint64(paths)))
	return b.err
}

type blockWriter struct {
	w      io.Writer
	stored []byte
	blocks int
	err    error
}

func (b *blockWriter) write(p []byte) {
	if b.err != nil {
		return
	}
	if _, err := b.w.Write(p); err != nil {
		b.err = fmt.Errorf("writing paths: %w", err)
	}
}

func (b *blockWriter) block(kind byte, raw []byte) {
	if b.err != nil {
		return
	}
	e := encoders.Get().(*zstd.Encoder)
	b.stored = e.EncodeAll(raw, b.stored[:0])
	encoders.Put(e)
	head := binary.AppendUvarint([]byte{kind}, uint64(len(raw)))
	head = binary.AppendUvarint(head, uint64(len(b.stored)))
	b.write(binary.LittleEndian.AppendUint64(head, blockSum(head, b.stored)))
	b.write(b.stored)
	b.blocks++
}

func blockSum(head, stored []byte) uint64 {
	var d xxhash.Digest
	d.Reset()
	_, _ = d.Write(head)
	_, _ = d.Write(stored)
	return d.Sum64()
}

func appendLinks(b []byte, links linkSet) []byte {
	last := uint64(0)
	for _, link := range links {
		b = binary.AppendUvarint(b, link-last)
		last = link
	}
	return b
}

// batch is a copy of some segments, which becomes a block.
type batch struct {
	segments     []segment
	bytes, count int
	visitors     int
	items        []item
}

// item is an entry of a batch, with the 8 bytes of its path that come after what all
// paths begin with.
type item struct {
	key     uint64
	segment uint16
	entry   uint16
}

func (b *batch) add(s *segment) {
	b.segments = append(b.segments, segment{
		entries: slices.Clone(s.entries), paths: slices.Clone(s.paths), visitors: slices.Clone(s.visitors),
	})
	b.count += len(s.entries)
	b.bytes += len(s.paths)
	b.visitors += len(s.visitors)
}

// hide takes the paths that are not to be written out of the copy of a segment that was
// added last, and appends their shadows.
func (c *Catalog) hide(b *batch, s *segment, shadows []shadow) []shadow {
	copied := b.segments[len(b.segments)-1].entries
	for i := range s.entries {
		e := &s.entries[i]
		if !c.isHidden(s, e) {
			continue
		}
		shadows = append(shadows, shadowOf(sumBytes(c.key[0], s.path(e)), e))
		copied[i].length = 0
		b.count--
	}
	return shadows
}

func (b *batch) isFull() bool {
	return b.count >= blockCount || b.bytes >= blockBytes || b.visitors >= blockCount || len(b.segments) >= blockCount
}

func (b *batch) reset() { *b = batch{items: b.items[:0]} }

func (b *batch) entry(t item) (*segment, *entry) {
	s := &b.segments[t.segment]
	return s, &s.entries[t.entry]
}

func (b *batch) path(t item) []byte { s, e := b.entry(t); return s.path(e) }

// sort orders the entries by their paths, without those that are hidden.
func (b *batch) sort() {
	var common []byte
	for i := range b.segments {
		s := &b.segments[i]
		for k := range s.entries {
			if s.entries[k].length == 0 {
				continue
			}
			b.items = append(b.items, item{segment: uint16(i), entry: uint16(k)})
			path := s.path(&s.entries[k])
			if common == nil {
				common = path
			}
			common = common[:shared(common, path)]
		}
	}
	for i := range b.items {
		var key [8]byte
		copy(key[:], b.path(b.items[i])[len(common):])
		b.items[i].key = binary.BigEndian.Uint64(key[:])
	}
	slices.SortFunc(b.items, func(x, y item) int {
		switch {
		case x.key < y.key:
			return -1
		case x.key > y.key:
			return 1
		}
		return bytes.Compare(b.path(x), b.path(y))
	})
}

// shared is how many bytes a and b begin with alike.
func shared(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// The columns of a block of paths.
const (
	columnPrefix   = iota // how many bytes a path shares with the one before it
	columnLength          // of what follows these
	columnText            // that
	columnFlags           // flags, depth, reached: a byte each
	columnSeen            // seen
	columnLinked          // linked less that of the path before it
	columnTag             // tagged, 0 for none, and 4 bytes of tag otherwise
	columnVisitors        // how many, and their hashes and hours
	columns
)

func (b *batch) encode() []byte {
	b.sort()
	var col [columns][]byte
	var last []byte
	linked := uint32(0)
	for _, t := range b.items {
		s, e := b.entry(t)
		path := s.path(e)
		n := shared(last, path)
		last = path
		col[columnPrefix] = binary.AppendUvarint(col[columnPrefix], uint64(n))
		col[columnLength] = binary.AppendUvarint(col[columnLength], uint64(len(path)-n))
		col[columnText] = append(col[columnText], path[n:]...)
		col[columnFlags] = append(col[columnFlags], e.flags, e.depth, e.reached)
		col[columnSeen] = binary.LittleEndian.AppendUint32(col[columnSeen], e.seen)
		col[columnLinked] = binary.AppendVarint(col[columnLinked], int64(e.linked)-int64(linked))
		linked = e.linked
		col[columnTag] = binary.AppendUvarint(col[columnTag], uint64(e.tagged))
		if e.tagged != 0 {
			col[columnTag] = binary.LittleEndian.AppendUint32(col[columnTag], e.tag)
		}
		col[columnVisitors] = appendVisitors(col[columnVisitors], s, e)
	}
	out := binary.AppendUvarint(nil, uint64(len(b.items)))
	for _, c := range col {
		out = binary.AppendUvarint(out, uint64(len(c)))
	}
	return append(out, slices.Concat(col[:]...)...)
}

func appendVisitors(b []byte, s *segment, e *entry) []byte {
	var all []visitor
	for i := e.visitors; i != 0; i = s.visitors[i-1].next() {
		all = append(all, s.visitors[i-1])
	}
	slices.Sort(all) // the order that they came in says nothing
	b = binary.AppendUvarint(b, uint64(len(all)))
	for _, v := range all {
		b = binary.LittleEndian.AppendUint16(b, v.hash())
		b = binary.AppendUvarint(b, uint64(v.hour()))
	}
	return b
}

// Decode replaces what the catalog knows by what Encode wrote. Its options are to be
// configured before: their bounds hold here, too. An error leaves it as it was.
func (c *Catalog) Decode(r io.Reader) error {
	c.mu.Lock()
	options := c.options
	c.mu.Unlock()
	fresh := NewCatalog()
	fresh.Configure(options)
	if err := fresh.decode(bufio.NewReader(r)); err != nil {
		return fmt.Errorf("reading paths: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store = fresh.store
	return nil
}

func (c *Catalog) decode(r *bufio.Reader) error {
	head := make([]byte, len(magic)+1)
	if _, err := io.ReadFull(r, head); err != nil {
		return damaged(err)
	}
	if string(head[:len(magic)]) != magic {
		return errMagic
	}
	if head[len(magic)] != version {
		return fmt.Errorf("version %d: %w", head[len(magic)], errVersion)
	}
	paths, last, lastHash := 0, byte(0), uint64(0)
	for blocks := 0; ; blocks++ {
		kind, raw, err := readBlock(r)
		if err != nil {
			return err
		}
		if kind < last || (kind == blockKey) != (blocks == 0) {
			return errDamaged
		}
		last = kind
		f := fields{b: raw}
		switch kind {
		case blockKey:
			c.store = newStore(f.bytes(16))
			c.rounded = f.uint32()
		case blockLinks:
			err = c.decodeLinks(&f)
		case blockPaths:
			err = c.decodePaths(&f, &paths)
		case blockShadows:
			err = c.decodeShadows(&f, &lastHash)
		case blockEnd:
			if f.uvarint() != uint64(blocks) || f.uvarint() != uint64(paths) {
				return errDamaged
			}
		default:
			return errDamaged
		}
		if err != nil {
			return err
		}
		if f.bad || len(f.b) > 0 {
			return errDamaged
		}
		if kind == blockEnd {
			c.boundShadows()
			return nil
		}
	}
}

// readBlock trusts a size no more than the bytes that come.
func readBlock(r *bufio.Reader) (kind byte, raw []byte, err error) {
	if kind, err = r.ReadByte(); err != nil {
		return 0, nil, damaged(err)
	}
	size, err := binary.ReadUvarint(r)
	if err != nil {
		return 0, nil, damaged(err)
	}
	length, err := binary.ReadUvarint(r)
	if err != nil {
		return 0, nil, damaged(err)
	}
	var hash [8]byte
	if _, err = io.ReadFull(r, hash[:]); err != nil {
		return 0, nil, damaged(err)
	}
	if size > maxBlock || length > maxBlock {
		return 0, nil, errDamaged
	}
	stored, err := io.ReadAll(io.LimitReader(r, int64(length)))
	if err != nil {
		return 0, nil, err
	}
	head := binary.AppendUvarint([]byte{kind}, size)
	head = binary.AppendUvarint(head, length)
	if uint64(len(stored)) != length || binary.LittleEndian.Uint64(hash[:]) != blockSum(head, stored) {
		return 0, nil, errDamaged
	}
	d := decoders.Get().(*zstd.Decoder)
	defer decoders.Put(d)
	raw, err = d.DecodeAll(stored, make([]byte, 0, size))
	if err != nil || uint64(len(raw)) != size {
		return 0, nil, errDamaged
	}
	return kind, raw, nil
}

// damaged is err, unless it is that the bytes ended.
func damaged(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errDamaged
	}
	return err
}

func (c *Catalog) decodeLinks(f *fields) error {
	last := uint64(0)
	for len(f.b) > 0 && !f.bad {
		link := last + f.uvarint()
		if link <= last || len(c.links) > 0 && link&^depthMask <= c.links[len(c.links)-1]&^depthMask {
			return errDamaged
		}
		last = link
		if len(c.links) < c.mostLinks() {
			c.links = append(c.links, link)
		}
	}
	return nil
}

func (c *Catalog) decodePaths(f *fields, paths *int) error {
	n := f.uvarint()
	var sizes [columns]uint64
	for i := range sizes {
		sizes[i] = f.uvarint()
	}
	var col [columns]fields
	for i := range col {
		col[i].b = f.bytes(sizes[i])
	}
	if f.bad || n > sizes[columnPrefix] {
		return errDamaged
	}
	last := make([]byte, 0, MaxPath)
	path := make([]byte, 0, MaxPath)
	linked := int64(0)
	for range n {
		shared, length := col[columnPrefix].uvarint(), col[columnLength].uvarint()
		text := col[columnText].bytes(length)
		if shared > uint64(len(last)) || shared+length > MaxPath || uint64(len(text)) != length {
			return errDamaged
		}
		path = append(append(path[:0], last[:shared]...), text...)
		e := entry{}
		flags := col[columnFlags].bytes(3)
		if col[columnFlags].bad {
			return errDamaged
		}
		e.flags, e.depth, e.reached = flags[0], flags[1], flags[2]
		e.seen = col[columnSeen].fixed32()
		linked += col[columnLinked].varint()
		e.linked = second(linked)
		if e.tagged = col[columnTag].uint32(); e.tagged != 0 {
			e.tag = col[columnTag].fixed32()
		}
		if int64(e.linked) != linked || string(path) <= string(last) {
			return errDamaged
		}
		c.restore(string(path), e, &col[columnVisitors])
		*paths++
		last, path = path, last
	}
	for i := range col {
		if col[i].bad || len(col[i].b) > 0 {
			return errDamaged
		}
	}
	return nil
}

// isClean reports whether a path may be one that a [Cleaner] let pass, and is no asset.
func isClean(path string) bool {
	if !isPath(path) {
		return false
	}
	for i := 0; i < len(path); i++ {
		if c := path[i]; c != '%' && c != '?' && !inPath[c] {
			return false
		}
	}
	path, _, _ = strings.Cut(path, "?")
	return !strings.Contains(path, "/.")
}

// restore adds a path with what is known of it, and with its visitors. One that was not
// clean, by a mistake of who told of it, is left out.
func (c *Catalog) restore(path string, from entry, visitors *fields) {
	hash := sum(c.key[0], path)
	var e *entry
	if isClean(path) && c.segment(hash).find(hash, path) == nil {
		e = c.insert(hash, path, newcomer{worthOf(&from), from.alive()})
	}
	s := c.segment(hash)
	if e != nil {
		from.offset, from.length = e.offset, e.length
		*e = from
	}
	for n := visitors.uvarint(); n > 0 && !visitors.bad; n-- {
		v, hour := visitors.fixed16(), visitors.uint32()
		if e != nil && n <= 255 && hour < 1<<hourBits {
			s.push(e, v, hour)
		}
	}
}

// fields takes numbers and bytes off a byte string. What is not there reads as zero.
type fields struct {
	b   []byte
	bad bool
}

func (f *fields) uvarint() uint64 {
	v, n := binary.Uvarint(f.b)
	if n <= 0 {
		f.bad, f.b = true, nil
		return 0
	}
	f.b = f.b[n:]
	return v
}

func (f *fields) varint() int64 {
	u := f.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

func (f *fields) uint32() uint32 {
	v := f.uvarint()
	f.bad = f.bad || v > 1<<32-1
	return uint32(v)
}

func (f *fields) fixed32() uint32 { return binary.LittleEndian.Uint32(pad(f.bytes(4))) }
func (f *fields) fixed16() uint16 { return uint16(binary.LittleEndian.Uint32(pad(f.bytes(2)))) }

func pad(b []byte) []byte {
	var full [4]byte
	copy(full[:], b)
	return full[:]
}

// bytes returns n zeros at most where there are less than n.
func (f *fields) bytes(n uint64) []byte {
	if n > uint64(len(f.b)) {
		f.bad, f.b = true, nil
		return make([]byte, min(n, 16))
	}
	b := f.b[:n:n]
	f.b = f.b[n:]
	return b
}
