package accesslog

import (
	"cmp"

	"github.com/cespare/xxhash/v2"
)

// headSize is how many of a file's first bytes tell it from others.
const headSize = 4 << 10

// id is a file's device and inode; zero where the system does not tell.
type id struct{ device, inode uint64 }

// Position is how far a file was read.
type Position struct {
	Log      string `json:"log"` // the path of the log that it is of, rolled or not
	Device   uint64 `json:"device,omitempty"`
	Inode    uint64 `json:"inode,omitempty"`
	Offset   int64  `json:"offset"`           // into its bytes when they are not compressed
	Head     uint64 `json:"head"`             // a hash of the first of those bytes
	HeadSize int    `json:"head_size"`        // how many those are
	Within   bool   `json:"within,omitempty"` // the offset lies in a line that is too long to be read
}

// Positions is how far each file was read, those that are gone first. It is for
// JSON.
type Positions struct {
	Files []Position `json:"files,omitempty"`
}

func (p Position) id() id { return id{p.Device, p.Inode} }

// valid reports whether a position can be one of a file that was read.
func (p Position) valid() bool {
	return p.Offset >= 0 && p.HeadSize > 0 && p.HeadSize <= headSize
}

// begins reports whether the position is one of a file with this head.
func (p Position) begins(head []byte) bool {
	return p.HeadSize <= len(head) && xxhash.Sum64(head[:p.HeadSize]) == p.Head
}

// same reports whether two positions are surely of one file.
func (p Position) same(q Position) bool {
	if p.HeadSize == q.HeadSize {
		return p.Head == q.Head && (p.Log == q.Log || p.HeadSize == headSize)
	}
	return p.id() == q.id() && p.id() != id{}
}

// Merge returns the positions from which on both a and b have still to read: the
// lesser one of each file, and none of a file that one of them does not know.
func Merge(a, b Positions) Positions {
	var both Positions
	for _, p := range a.Files {
		for _, q := range b.Files {
			if !p.same(q) {
				continue
			}
			// The lesser with its own head: if it is another file after all, it is
			// read from its beginning.
			if cmp.Compare(q.Offset, p.Offset) < 0 {
				p = q
			}
			both.Files = append(both.Files, p)
			break
		}
	}
	return both
}
