package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"github.com/fxamacker/cbor/v2"
	"github.com/klauspost/compress/zstd"
)

// Bounds of a chunk. A chunk is full at maxChunkBytes, before its last record.
const (
	maxChunkRecords = 1 << 14
	maxChunkBytes   = 3 << 20
	maxRecordBytes  = 1 << 20
	maxDecoded      = maxChunkBytes + maxRecordBytes + 16
)

// size is the most bytes that the record takes as CBOR.
func (r *Record) size() int {
	n := 192 + len(r.Path) + len(r.Canonical) + len(r.Target) + len(r.ETag)
	for _, a := range r.Alternates {
		n += 24 + len(a.Lang) + len(a.URL)
	}
	for _, image := range r.Images {
		n += 5 + len(image)
	}
	return n
}

// The limits of what is decoded. An ETag need not be UTF-8.
var (
	encoding = must(cbor.EncOptions{}.UserBufferEncMode())
	decoding = must(cbor.DecOptions{
		MaxArrayElements: maxChunkRecords,
		MaxMapPairs:      16,
		MaxNestedLevels:  4,
		IndefLength:      cbor.IndefLengthForbidden,
		TagsMd:           cbor.TagsForbidden,
		UTF8:             cbor.UTF8DecodeInvalid,
	}.DecMode())
)

// must returns a value that is made of constant options.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

type encoder struct {
	raw  bytes.Buffer
	zstd *zstd.Encoder
}

type decoder struct {
	raw  []byte
	zstd *zstd.Decoder
}

var encoders = sync.Pool{New: func() any {
	return &encoder{zstd: must(zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true),
		zstd.WithWindowSize(1<<20), zstd.WithEncoderCRC(false)))}
}}

var decoders = sync.Pool{New: func() any {
	return &decoder{zstd: must(zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(maxDecoded), zstd.WithDecoderMaxWindow(8<<20)))}
}}

// encodeChunk returns zstd-compressed CBOR: an array of records.
func encodeChunk(records []Record) ([]byte, error) {
	e := encoders.Get().(*encoder)
	defer encoders.Put(e)
	e.raw.Reset()
	if err := encoding.MarshalToBuffer(records, &e.raw); err != nil {
		return nil, fmt.Errorf("encoding records from %s: %w", records[0].Path, err)
	}
	return bytes.Clone(e.zstd.EncodeAll(e.raw.Bytes(), e.raw.AvailableBuffer())), nil
}

// decodeChunk undoes encodeChunk. It checks that the records are those that the chunk
// promises: so many, in order, from its First up to next; "": up to the end.
func decodeChunk(stored []byte, c Chunk, next string) ([]Record, error) {
	d := decoders.Get().(*decoder)
	defer decoders.Put(d)
	raw, err := d.zstd.DecodeAll(stored, d.raw[:0])
	if err != nil {
		return nil, fmt.Errorf("decompressing: %w", err)
	}
	d.raw = raw
	var records []Record
	if err := decoding.Unmarshal(raw, &records); err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	if len(records) != c.Count {
		return nil, fmt.Errorf("%d records instead of %d", len(records), c.Count)
	}
	for i := range records {
		path := records[i].Path
		if path < c.First || i > 0 && path <= records[i-1].Path || next != "" && path >= next {
			return nil, errors.New("records are out of order")
		}
	}
	return records, nil
}

// nameOf is the name of an object: the first 16 bytes of its SHA-256, in hexadecimal.
func nameOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// isName reports whether an object can have the name.
func isName(name string) bool {
	b, err := hex.DecodeString(name)
	return err == nil && len(b) == 16 && hex.EncodeToString(b) == name
}
