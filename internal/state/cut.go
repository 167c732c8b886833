package state

import "github.com/cespare/xxhash/v2"

// Records are cut into pieces where the hash of a path says so, as shards are, so
// that a page that comes or goes rewrites one piece. The chance of a cut grows with
// the piece, so that few are tiny or huge: about 2,700 records on average.
const (
	maxRecords = 1 << 14
	maxBytes   = 4 << 20 // of strings, before the last record
	softRecord = 2048
	softBytes  = 256 << 10

	hardMask = 1<<13 - 1
	softMask = 1<<10 - 1
)

// begins reports whether a record begins a piece where the one before it has so
// many records, with so many bytes of strings. The hash's low bits say so; the high
// ones are what begins a shard.
func begins(path string, records, bytes int) bool {
	switch h := xxhash.Sum64String(path); {
	case records == 0:
		return false
	case records >= maxRecords || bytes >= maxBytes:
		return true
	case records >= softRecord || bytes >= softBytes:
		return h&softMask == 0
	default:
		return h&hardMask == 0
	}
}

// size is what a record counts for towards a piece's bytes.
func (r *Record) size() int {
	return len(r.Page.Path) + len(r.Canonical) + len(r.ETag) + len(r.Modified)
}
