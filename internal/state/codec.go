package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// What a stranger's bytes can be: every decoder ends with one of these, wrapped in
// ErrUnusable by its caller.
var (
	errTruncated = errors.New("truncated")
	errFormat    = errors.New("malformed")
	errTooLarge  = errors.New("too large")
	errMagic     = errors.New("not of this format")
	errVersion   = errors.New("of another version")
	errDamaged   = errors.New("damaged")
)

// version is that of all formats here together.
const version = 1

var encoders = sync.Pool{New: func() any {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
		zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // the options are constant
	}
	return e
}}

var decoders = sync.Pool{New: func() any {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(1<<30), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(err) // the options are constant
	}
	return d
}}

// slack is what the decompressor likes to have behind its output.
const slack = 32

func compress(dst, raw []byte) []byte {
	e := encoders.Get().(*zstd.Encoder)
	defer encoders.Put(e)
	return e.EncodeAll(raw, dst)
}

// decompress appends size bytes to dst, which has room for them and for slack.
func decompress(dst, stored []byte, size int) ([]byte, error) {
	d := decoders.Get().(*zstd.Decoder)
	defer decoders.Put(d)
	from := len(dst)
	out, err := d.DecodeAll(stored, dst[:from:from+size+slack])
	if err != nil {
		return dst, fmt.Errorf("decompressing: %w", err)
	}
	if len(out) != from+size {
		return dst, errFormat
	}
	return dst[:from+size], nil
}

// columns are byte strings, each compressed by itself: what is alike lies together.
type columns [][]byte

// append writes a column as its size, the size it is stored in (0: as it is), and
// its bytes.
func (c columns) append(dst []byte) []byte {
	var tmp []byte
	for _, raw := range c {
		dst = binary.AppendUvarint(dst, uint64(len(raw)))
		if len(raw) == 0 {
			continue
		}
		stored := raw
		if len(raw) >= 24 {
			// What shrinks by less than a thirty-second is rather read quickly.
			if tmp = compress(tmp[:0], raw); len(tmp) < len(raw)-len(raw)/32 {
				stored = tmp
			}
		}
		if len(stored) == len(raw) {
			dst = binary.AppendUvarint(dst, 0)
		} else {
			dst = binary.AppendUvarint(dst, uint64(len(stored)))
		}
		dst = append(dst, stored...)
	}
	return dst
}

// read fills c from b, which must end with the last column. The columns together
// have limit bytes at most, and lie in b or scratch, which is returned as it grew.
func (c columns) read(b, scratch []byte, limit int) ([]byte, error) {
	type extent struct{ stored, size int }
	extents := make([]extent, len(c))
	r, packed := reader{b: b}, 0
	for i := range c {
		size := r.uvarint()
		if size > uint64(limit) {
			return scratch, errTooLarge
		}
		limit -= int(size)
		c[i] = nil
		if size == 0 {
			continue
		}
		stored := r.uvarint()
		if stored == 0 {
			c[i] = r.bytes(size)
			continue
		}
		c[i] = r.bytes(stored)
		extents[i] = extent{stored: int(stored), size: int(size)}
		packed += int(size) + slack
	}
	if err := r.end(); err != nil {
		return scratch, err
	}
	if cap(scratch) < packed {
		scratch = make([]byte, 0, packed+packed/4)
	}
	scratch = scratch[:0]
	for i, x := range extents {
		if x.stored == 0 {
			continue
		}
		from := len(scratch)
		var err error
		if scratch, err = decompress(scratch, c[i], x.size); err != nil {
			return scratch, err
		}
		c[i] = scratch[from : from+x.size : from+x.size]
		scratch = scratch[:from+x.size+slack]
	}
	return scratch, nil
}

// reader takes numbers and bytes off a byte string. What is not there reads as zero
// and is told by end.
type reader struct {
	b   []byte
	i   int
	bad bool
}

func (r *reader) uvarint() uint64 {
	if i := r.i; i < len(r.b) && r.b[i] < 0x80 {
		r.i = i + 1
		return uint64(r.b[i])
	}
	return r.longUvarint()
}

func (r *reader) longUvarint() uint64 {
	v, n := binary.Uvarint(r.b[r.i:])
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.i += n
	return v
}

// varint reads what appendVarint wrote.
func (r *reader) varint() int64 {
	u := r.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

func (r *reader) byte() byte {
	if r.i >= len(r.b) {
		r.bad = true
		return 0
	}
	r.i++
	return r.b[r.i-1]
}

func (r *reader) uint32() uint32 {
	if len(r.b)-r.i < 4 {
		r.bad = true
		return 0
	}
	r.i += 4
	return binary.LittleEndian.Uint32(r.b[r.i-4:])
}

func (r *reader) uint48() uint64 {
	if len(r.b)-r.i < fingerprintBytes {
		r.bad = true
		return 0
	}
	var b [8]byte
	copy(b[:], r.b[r.i:r.i+fingerprintBytes])
	r.i += fingerprintBytes
	return binary.LittleEndian.Uint64(b[:])
}

func (r *reader) uint64() uint64 {
	if len(r.b)-r.i < 8 {
		r.bad = true
		return 0
	}
	r.i += 8
	return binary.LittleEndian.Uint64(r.b[r.i-8:])
}

// bytes returns the next n bytes, which lie in the reader's.
func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.b)-r.i) {
		r.bad = true
		return nil
	}
	from := r.i
	r.i += int(n)
	return r.b[from:r.i:r.i]
}

// string returns a copy of bytes that say their length first.
func (r *reader) string() string { return string(r.bytes(r.uvarint())) }

// count reads how many things follow that take size bytes each at least.
func (r *reader) count(size int) int {
	n := r.uvarint()
	if n > uint64((len(r.b)-r.i)/size) {
		r.bad = true
		return 0
	}
	return int(n)
}

// end reports whether all was read, and was there.
func (r *reader) end() error {
	switch {
	case r.bad:
		return errTruncated
	case r.i != len(r.b):
		return errFormat
	}
	return nil
}

func appendVarint(b []byte, v int64) []byte {
	return binary.AppendUvarint(b, uint64(v)<<1^uint64(v>>63))
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendMagic begins a value.
func appendMagic(b []byte, magic string) []byte { return append(append(b, magic...), version) }

// cutMagic takes what appendMagic wrote off b.
func cutMagic(b []byte, magic string) ([]byte, error) {
	switch {
	case len(b) <= len(magic):
		return nil, errTruncated
	case string(b[:len(magic)]) != magic:
		return nil, errMagic
	case b[len(magic)] != version:
		return nil, fmt.Errorf("version %d: %w", b[len(magic)], errVersion)
	}
	return b[len(magic)+1:], nil
}
