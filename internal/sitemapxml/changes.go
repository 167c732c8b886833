package sitemapxml

import (
	"bytes"
	"io"

	"github.com/cespare/xxhash/v2"
)

// Changes counts what tells two generations of a site's pages apart.
type Changes struct {
	Added, Removed int // pages that only the later, only the earlier generation has
	Changed        int // pages of both whose entries differ, in their dates for one
}

// Opener opens a document for reading, uncompressed.
type Opener func() (io.ReadCloser, error)

// Compare counts what changed from one generation's documents to another's. Both are
// in the order of their pages, as [URLSet] wrote them, and how the pages are spread
// over documents does not matter. A document is open at a time of each. The errors are
// those of the openers, of reading, and of [WriteText].
func Compare(before, after []Opener) (c Changes, err error) {
	was, is := &generation{rest: before}, &generation{rest: after}
	defer was.close()
	defer is.close()
	if err = was.next(); err == nil {
		err = is.next()
	}
	for err == nil && (!was.ended || !is.ended) {
		switch order := compareLocs(was, is); {
		case order < 0:
			c.Removed++
			err = was.next()
		case order > 0:
			c.Added++
			err = is.next()
		default:
			if was.sum != is.sum {
				c.Changed++
			}
			if err = was.next(); err == nil {
				err = is.next()
			}
		}
	}
	return c, err
}

// compareLocs says which of two generations is at the earlier page; one that has ended
// comes last.
func compareLocs(a, b *generation) int {
	switch {
	case a.ended:
		return 1
	case b.ended:
		return -1
	}
	return bytes.Compare(a.entries.loc, b.entries.loc)
}

// generation goes through the entries of documents that follow one another.
type generation struct {
	rest    []Opener
	current io.Closer
	entries *entries
	digest  xxhash.Digest
	sum     uint64 // of the entry
	ended   bool
}

func (g *generation) next() error {
	for {
		if g.entries != nil {
			g.digest.Reset()
			more, err := g.entries.next(&g.digest)
			if more || err != nil {
				g.sum = g.digest.Sum64()
				return err
			}
			g.close()
		}
		if len(g.rest) == 0 {
			g.ended = true
			return nil
		}
		document, err := g.rest[0]()
		if err != nil {
			return err
		}
		g.rest, g.current, g.entries = g.rest[1:], document, newEntries(document)
	}
}

func (g *generation) close() {
	if g.current != nil {
		_ = g.current.Close()
		g.current, g.entries = nil, nil
	}
}
