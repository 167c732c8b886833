package state

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"

	"github.com/cespare/xxhash/v2"
)

// maxValue is the most bytes of a value in a Storage. What is larger is split.
const maxValue = 256 << 10

// digest names a value, from its content: so a value is never changed, and the
// ones that a manifest refers to stay as they are while the next are stored.
type digest [16]byte

func (n digest) String() string { return hex.EncodeToString(n[:]) }

// ref is what refers to a value says of it.
type ref struct {
	name digest
	sum  uint64 // xxhash64: much quicker to check than the name
	size uint32
}

const refSize = 16 + 8 + 4

func refOf(value []byte) ref {
	sum := sha256.Sum256(value)
	return ref{name: digest(sum[:16]), sum: xxhash.Sum64(value), size: uint32(len(value))}
}

func (r ref) append(b []byte) []byte {
	b = append(b, r.name[:]...)
	b = binary.LittleEndian.AppendUint64(b, r.sum)
	return binary.LittleEndian.AppendUint32(b, r.size)
}

func readRef(r *reader) ref {
	var f ref
	copy(f.name[:], r.bytes(16))
	f.sum, f.size = r.uint64(), r.uint32()
	return f
}

// blob is a byte string in a Storage: the values it is split into.
type blob []ref

func (b blob) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	for _, r := range b {
		dst = r.append(dst)
	}
	return dst
}

func readBlob(r *reader) blob {
	n := r.count(refSize)
	if n == 0 {
		return nil
	}
	b := make(blob, n)
	for i := range b {
		b[i] = readRef(r)
	}
	return b
}

// manifestBase is the key of the manifest within the folder.
const manifestBase = "manifest"

// place is the folder of one site's state.
type place struct {
	storage Storage
	folder  string
	*memo
}

// memo is what is known of the values of one place by all its books.
type memo struct {
	damaged sync.Map // digests of the values that could not be read

	mu    sync.Mutex
	loose map[digest]struct{} // stored since a manifest was
	swept bool                // there are no others that nothing refers to
}

func newPlace(st Storage, prefix string) place {
	return place{storage: st, folder: path.Join(prefix, "state"), memo: &memo{loose: make(map[digest]struct{})}}
}

func (m *memo) setSwept(swept bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.swept = swept
}

// readable reports whether no value of a blob was found damaged so far.
func (p place) readable(b blob) bool {
	for _, r := range b {
		if _, bad := p.damaged.Load(r.name); bad {
			return false
		}
	}
	return true
}

func (p place) key(n digest) string { return p.folder + "/" + n.String() }
func (p place) manifestKey() string { return p.folder + "/" + manifestBase }

// store splits data and stores the values but those of which there says that they
// are stored already.
func (p place) store(ctx context.Context, data []byte, there func(digest) bool) (blob, error) {
	var b blob
	for len(data) > 0 {
		value := data[:min(len(data), maxValue)]
		data = data[len(value):]
		r := refOf(value)
		b = append(b, r)
		if there(r.name) {
			continue
		}
		p.mu.Lock()
		p.loose[r.name] = struct{}{}
		p.mu.Unlock()
		if err := p.storage.Store(ctx, p.key(r.name), value); err != nil {
			return nil, fmt.Errorf("storing %s: %w", p.key(r.name), err)
		}
		p.damaged.Delete(r.name)
	}
	return b, nil
}

// load reads a blob. What it allocates is what the storage holds, whatever the
// blob says.
func (p place) load(ctx context.Context, b blob) ([]byte, error) {
	if len(b) == 1 {
		return p.value(ctx, b[0])
	}
	values := make([][]byte, len(b))
	n := 0
	for i, r := range b {
		var err error
		if values[i], err = p.value(ctx, r); err != nil {
			return nil, err
		}
		n += len(values[i])
	}
	data := make([]byte, 0, n)
	for _, v := range values {
		data = append(data, v...)
	}
	return data, nil
}

func (p place) value(ctx context.Context, r ref) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	value, err := p.storage.Load(ctx, p.key(r.name))
	if err == nil && len(value) == int(r.size) && xxhash.Sum64(value) == r.sum {
		return value, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	p.damaged.Store(r.name, struct{}{})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %s is missing", ErrUnusable, p.key(r.name))
	case err != nil:
		return nil, fmt.Errorf("%w: loading %s: %w", ErrUnusable, p.key(r.name), err)
	}
	return nil, fmt.Errorf("%w: %s is damaged", ErrUnusable, p.key(r.name))
}
