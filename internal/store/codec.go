package store

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"github.com/fxamacker/cbor/v2"
	"github.com/klauspost/compress/zstd"
)

// Bounds of a chunk, which is full at maxChunkBytes before its last record.
const (
	maxChunkRecords = 1 << 14
	maxChunkBytes   = 3 << 20
	maxRecordBytes  = 1 << 20
	maxDecoded      = maxChunkBytes + maxRecordBytes + 16
)

// size is the most bytes that the record takes as CBOR.
func (r *Record) size() int {
	n := 256 + len(r.Path) + len(r.Canonical) + len(r.Target) + len(r.ETag)
	for _, a := range r.Alternates {
		n += 24 + len(a.Lang) + len(a.URL)
	}
	for _, image := range r.Images {
		n += 5 + len(image)
	}
	return n
}

// What is decoded has limits. An ETag need not be UTF-8.
var (
	encoding = must(cbor.EncOptions{}.UserBufferEncMode())
	decoding = must(cbor.DecOptions{
		MaxArrayElements: maxChunkRecords,
		MaxMapPairs:      64,
		MaxNestedLevels:  4,
		IndefLength:      cbor.IndefLengthForbidden,
		TagsMd:           cbor.TagsForbidden,
		UTF8:             cbor.UTF8DecodeInvalid,
	}.DecMode())
)

var (
	compressor = must(zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2),
		zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(1<<20), zstd.WithEncoderCRC(false)))
	decompressor = must(zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(maxDecoded)))
	buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }} // of CBOR
)

// must returns a value that is made of constant options.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// encodeChunk returns zstd-compressed CBOR: an array of records.
func encodeChunk(records []Record) ([]byte, error) {
	raw := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(raw)
	raw.Reset()
	if err := encoding.MarshalToBuffer(records, raw); err != nil {
		return nil, err
	}
	if raw.Len() > maxDecoded {
		return nil, ErrTooLarge
	}
	return bytes.Clone(compressor.EncodeAll(raw.Bytes(), nil)), nil
}

// decodeChunk undoes encodeChunk. It checks that the records are those that the chunk
// promises: so many, in order, from its First up to next; "": to the end.
func decodeChunk(data []byte, c Chunk, next string) ([]Record, error) {
	buffer := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buffer)
	buffer.Reset()
	raw, err := decompressor.DecodeAll(data, buffer.AvailableBuffer())
	if err != nil {
		return nil, fmt.Errorf("decompressing: %w", err)
	}
	buffer.Write(raw) // keeps the room for the next
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
