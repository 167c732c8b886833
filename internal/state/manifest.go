package state

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

const manifestMagic = "smmanif"

// Bounds of a manifest, the first before compression.
const (
	maxManifest  = 64 << 20
	maxPieces    = 1 << 19
	maxDocuments = 1 << 17
)

// piece is what a manifest says of a piece of records. It is never changed.
type piece struct {
	first   string // path
	count   int
	bytes   int // as begins counts them
	records blob
	details []blob
}

// document is what a manifest says of a document. It is never changed.
type document struct {
	name string
	sum  uint64
	meta []byte
	data blob
}

// manifest is what a site's state consists of.
type manifest struct {
	meta      []byte
	pieces    []*piece
	documents []*document // by name
}

func (m *manifest) encode() []byte {
	b := binary.AppendUvarint(nil, uint64(len(m.meta)))
	b = append(b, m.meta...)
	b = binary.AppendUvarint(b, uint64(len(m.documents)))
	for _, d := range m.documents {
		b = appendString(b, d.name)
		b = binary.LittleEndian.AppendUint64(b, d.sum)
		b = binary.AppendUvarint(b, uint64(len(d.meta)))
		b = append(b, d.meta...)
		b = d.data.append(b)
	}
	b = binary.AppendUvarint(b, uint64(len(m.pieces)))
	for _, p := range m.pieces {
		b = appendString(b, p.first)
		b = binary.AppendUvarint(b, uint64(p.count))
		b = binary.AppendUvarint(b, uint64(p.bytes))
		b = p.records.append(b)
		b = binary.AppendUvarint(b, uint64(len(p.details)))
		for _, d := range p.details {
			b = d.append(b)
		}
	}
	return b
}

func readManifest(b []byte) (*manifest, error) {
	r := &reader{b: b}
	m := &manifest{meta: bytes.Clone(r.bytes(r.uvarint()))}
	n := r.count(11)
	if n > maxDocuments {
		return nil, errTooLarge
	}
	m.documents = make([]*document, n)
	for i := range m.documents {
		d := readDocument(r)
		if i > 0 && m.documents[i-1].name >= d.name {
			return nil, errFormat
		}
		m.documents[i] = d
	}
	n = r.count(5 + refSize)
	if n > maxPieces {
		return nil, errTooLarge
	}
	m.pieces = make([]*piece, n)
	for i := range m.pieces {
		p, err := readPiece(r)
		if err != nil {
			return nil, err
		}
		if i > 0 && m.pieces[i-1].first >= p.first {
			return nil, errFormat
		}
		m.pieces[i] = p
	}
	return m, r.end()
}

func readDocument(r *reader) *document {
	d := &document{name: r.string()}
	d.sum = r.uint64()
	d.meta = bytes.Clone(r.bytes(r.uvarint()))
	d.data = readBlob(r)
	return d
}

func readPiece(r *reader) (*piece, error) {
	p := &piece{first: r.string()}
	count, size := r.uvarint(), r.uvarint()
	if count == 0 || count > maxRecords || size > maxPieceStrings || p.first == "" {
		return nil, errFormat
	}
	p.count, p.bytes = int(count), int(size)
	p.records = readBlob(r)
	if n := r.count(1 + refSize); n > 0 {
		p.details = make([]blob, n)
		for i := range p.details {
			p.details[i] = readBlob(r)
		}
	}
	return p, nil
}

// refs yields every reference of a manifest.
func (m *manifest) refs(yield func(ref)) {
	each := func(b blob) {
		for _, r := range b {
			yield(r)
		}
	}
	for _, d := range m.documents {
		each(d.data)
	}
	for _, p := range m.pieces {
		each(p.records)
		for _, d := range p.details {
			each(d)
		}
	}
}

// A manifest's value holds the manifest, compressed, or the blob that does:
// magic, size, bytes (0: a blob follows), the xxhash64 of all that.

// headOf writes the value of a manifest whose compressed form is packed.
func headOf(packed []byte, size int, split blob) []byte {
	b := appendMagic(nil, manifestMagic)
	b = binary.AppendUvarint(b, uint64(size))
	if split == nil {
		b = binary.AppendUvarint(b, uint64(len(packed)))
		b = append(b, packed...)
	} else {
		b = binary.AppendUvarint(b, 0)
		b = split.append(b)
	}
	return binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b))
}

// readHead undoes headOf.
func readHead(b []byte) (packed []byte, size int, split blob, err error) {
	body, err := cutMagic(b, manifestMagic)
	if err != nil {
		return nil, 0, nil, err
	}
	if len(body) < 8 {
		return nil, 0, nil, errTruncated
	}
	body = body[:len(body)-8]
	if xxhash.Sum64(b[:len(b)-8]) != binary.LittleEndian.Uint64(b[len(b)-8:]) {
		return nil, 0, nil, errDamaged
	}
	r := &reader{b: body}
	raw := r.uvarint()
	if raw > maxManifest {
		return nil, 0, nil, errTooLarge
	}
	if n := r.uvarint(); n > 0 {
		packed = r.bytes(n)
	} else {
		split = readBlob(r)
	}
	return packed, int(raw), split, r.end()
}

// loadManifest reads the manifest whose value is head.
func (p place) loadManifest(ctx context.Context, head []byte) (*manifest, blob, error) {
	packed, size, split, err := readHead(head)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: the manifest is %w", ErrUnusable, err)
	}
	if split != nil {
		if packed, err = p.load(ctx, split); err != nil {
			return nil, nil, err
		}
	}
	raw, err := unpack(packed, size)
	if err == nil {
		var m *manifest
		if m, err = readManifest(raw); err == nil {
			return m, split, nil
		}
	}
	return nil, nil, fmt.Errorf("%w: the manifest is %w", ErrUnusable, err)
}

// unpack decompresses size bytes, and is not tricked into room for many by few: a
// byte of zstd stands for some 32,000 at most.
func unpack(packed []byte, size int) ([]byte, error) {
	if size/(1<<16) > len(packed) {
		return nil, errFormat
	}
	return decompress(make([]byte, 0, size+slack), packed, size)
}
