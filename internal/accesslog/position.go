package accesslog

import (
	"bytes"
	"path/filepath"

	"github.com/cespare/xxhash/v2"
)

// headSize is how many of a file's first bytes tell it from others.
const headSize = 4 << 10

// Position is how far a file was read.
type Position struct {
	Log      string `json:"log"`              // the path of the log that it is of, rolled or not
	Offset   int64  `json:"offset"`           // into its bytes when they are not compressed
	Head     uint64 `json:"head"`             // a hash of the first of those bytes
	HeadSize int    `json:"head_size"`        // how many those are
	Within   bool   `json:"within,omitempty"` // the offset lies in a line that is too long to be read
}

// Positions is how far each file was read. It is for JSON.
type Positions struct {
	Files []Position `json:"files,omitempty"`
}

// valid reports whether a position can be one of a file that was read.
func (p Position) valid() bool {
	return p.Offset >= 0 && p.HeadSize > 0 && p.HeadSize <= headSize
}

// Merge returns the positions from which on both a and b have still to read: the
// lesser one of each file, and none of a file that one of them does not know.
func Merge(a, b Positions) Positions {
	type key struct {
		log  string
		head uint64
		size int
	}
	keyOf := func(p Position) key {
		if p.HeadSize == headSize {
			p.Log = "" // enough to tell it from all others
		}
		return key{p.Log, p.Head, p.HeadSize}
	}
	known := make(map[key]Position)
	for _, p := range b.Files {
		known[keyOf(p)] = p
	}
	var both Positions
	for _, p := range a.Files {
		q, ok := known[keyOf(p)]
		if !ok {
			continue
		}
		if q.Offset < p.Offset {
			p = q
		}
		both.Files = append(both.Files, p)
	}
	return both
}

// position is a Position with the head that it is of: nil, if only its hash is known.
type position struct {
	Position
	head []byte
}

// matches returns how many bytes of the head of a file of x's log agree, 0 if they are
// another file's. A head that is shorter is that of a copy, or of a log that was cut off.
func (p *position) matches(x *file, head []byte) int {
	switch {
	case p.Log != x.log && (p.HeadSize < headSize || filepath.Base(p.Log) != filepath.Base(x.log)):
		return 0 // a few bytes may begin two logs
	case p.head == nil:
		if p.HeadSize <= len(head) && xxhash.Sum64(head[:p.HeadSize]) == p.Head {
			return p.HeadSize
		}
	case bytes.HasPrefix(head, p.head):
		return len(p.head)
	case bytes.HasPrefix(p.head, head) && (!x.live || bytes.IndexByte(head, '\n') >= 0):
		return len(head)
	}
	return 0
}

func (p *position) set(head []byte) {
	p.head, p.Head, p.HeadSize = head, xxhash.Sum64(head), len(head)
}

// moveBack goes on at the end of what was cut off.
func (p *position) moveBack(size int64) {
	if p.Offset > size {
		p.Offset, p.Within = size, false
	}
}
