package state

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"testing"
)

// TestBombs decodes a few bytes that ask for many.
func TestBombs(t *testing.T) {
	zeros := func(n int) []byte { return compress(nil, make([]byte, n)) }
	column := func(size int, stored []byte) []byte {
		b := binary.AppendUvarint(nil, uint64(size))
		b = binary.AppendUvarint(b, uint64(len(stored)))
		return append(b, stored...)
	}
	piece := func(n, strings uint64, columns ...[]byte) []byte {
		b := appendMagic(nil, pieceMagic)
		b = binary.AppendUvarint(b, n)
		b = binary.AppendUvarint(b, strings)
		return append(b, bytes.Join(columns, nil)...)
	}
	details := func(columns ...[]byte) []byte {
		return append(append(appendMagic(nil, detailsMagic), make([]byte, 8)...), bytes.Join(columns, nil)...)
	}
	var many [][]byte
	for range pieceColumns {
		many = append(many, column(maxPieceRaw, zeros(maxPieceRaw)))
	}
	asPiece := func(b []byte) error { _, err := decodePiece(b); return err }
	asDetails := func(b []byte) error { _, _, err := decodeDetails(b); return err }
	asManifest := func(b []byte) error { _, err := readManifest(b); return err }
	packed := func(size int) func([]byte) error {
		return func(b []byte) error { _, err := unpack(b, size); return err }
	}
	rest := make([]byte, pieceColumns-1) // empty columns
	for _, test := range []struct {
		name   string
		most   uint64 // bytes allocated
		bytes  []byte
		decode func([]byte) error
	}{
		{"many records", 1 << 16, piece(1<<40, 1), asPiece},
		{"records of nothing", 16 << 20, piece(maxRecords, maxPieceStrings, column(maxRecords, zeros(maxRecords)), rest), asPiece},
		{"a large column", 1 << 16, piece(1, 1, column(1<<30, zeros(1<<20)), rest), asPiece},
		{"large columns", 1 << 16, piece(maxRecords, 1, many...), asPiece},
		{"a column larger than it says", 4 << 20, piece(1, 1, column(10, zeros(64<<20)), rest), asPiece},
		{"many strings", 64 << 20, details([]byte{1, 0, 0}, []byte{3, 0, 1, 0, 0}, column(4<<20, zeros(4<<20)), column(4<<20, zeros(4<<20)), []byte{0}), asDetails},
		{"a large manifest", 1 << 16, zeros(1 << 20), packed(maxManifest)},
		{"a manifest larger than it says", 4 << 20, zeros(256 << 20), packed(1000)},
		{"many pieces", 1 << 16, append([]byte{0, 0}, binary.AppendUvarint(nil, 1<<40)...), asManifest},
	} {
		t.Run(test.name, func(t *testing.T) {
			_ = test.decode(test.bytes) // fill the pools
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := test.decode(test.bytes)
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Error("no error")
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > test.most {
				t.Errorf("%d bytes were allocated", n)
			}
		})
	}
}
