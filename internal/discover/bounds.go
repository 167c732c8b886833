package discover

import (
	"math"
	"slices"
	"time"
)

// What a path is worth when there is no room for all.
type worth uint8

const (
	worthNothing worth = iota // nothing yet but a visitor's word
	worthLinked               // linked to, or asked for by enough visitors
	worthListed
)

func worthOf(e *entry) worth {
	switch {
	case e.flags&isListed != 0:
		return worthListed
	case e.flags&isLinked != 0 || e.reached > 0:
		return worthLinked
	}
	return worthNothing
}

// namedPatterns is how many full patterns are named.
const namedPatterns = 10

// A newcomer is a path that is to be added, which was seen at that second.
type newcomer struct {
	worth worth
	at    uint32
}

// replaces reports whether there is room for a newcomer at the cost of an entry: one
// that is worth less, or was not seen for longer. What a visitor alone showed is no
// match for what is worth more.
func (n newcomer) replaces(e *entry) bool {
	w := worthOf(e)
	if n.worth == worthNothing && w > worthNothing {
		return false
	}
	return e.alive() < n.at || w < n.worth
}

// insert adds a path; nil if there is no room for it.
func (c *Catalog) insert(hash uint64, path string, n newcomer) *entry {
	pattern, hasDigits := c.pattern(path)
	if hasDigits && c.patterns.count(pattern) >= c.options.MaxPerPattern {
		c.refused++
		c.name(path)
		return nil
	}
	for c.paths >= c.options.MaxPaths || c.bytes+len(path) > c.maxBytes() {
		if !c.makeRoom(hash, n) {
			c.full++
			return nil
		}
	}
	s := c.segment(hash)
	for len(s.entries) >= fullSegment && s.bits < 32 {
		c.split(s, hash)
		s = c.segment(hash)
	}
	if len(s.entries) >= maxSegment {
		c.full++
		return nil
	}
	if hasDigits {
		c.patterns.add(pattern)
	}
	c.paths++
	c.bytes += len(path)
	e := s.add(hash, []byte(path))
	c.shadows.merge(hash, e)
	return e
}

// pattern is the hash of a path's pattern.
func (c *Catalog) pattern(path string) (hash uint64, hasDigits bool) {
	folded, hasDigits := appendFolded(make([]byte, 0, MaxPath), path)
	if !hasDigits {
		return 0, false
	}
	return sumBytes(c.key[0], folded), true
}

func (c *Catalog) name(path string) {
	if len(c.fullPatterns) >= namedPatterns {
		return
	}
	if pattern := Fold(path); !slices.Contains(c.fullPatterns, pattern) {
		c.fullPatterns = append(c.fullPatterns, pattern)
	}
}

// split makes two segments of the one that a hash belongs to.
func (c *Catalog) split(s *segment, hash uint64) {
	if s.bits == c.bits {
		double := make([]*segment, 0, 2*len(c.segments))
		for _, s := range c.segments {
			double = append(double, s, s)
		}
		c.segments = double
		c.bits++
	}
	halves := [2]*segment{s.empty(s.bits+1, len(s.entries)/2), s.empty(s.bits+1, len(s.entries)/2)}
	for i := range s.entries {
		e := &s.entries[i]
		h := sumBytes(c.key[0], s.path(e))
		halves[h>>(63-s.bits)&1].take(s, e, h)
	}
	places := 1 << (c.bits - s.bits) // that s has in segments
	first := int(hash>>(64-c.bits)) &^ (places - 1)
	for i := range places {
		c.segments[first+i] = halves[2*i/places]
	}
}

// keep drops all but some of a segment's entries.
func (c *Catalog) keep(s *segment, keep func(i int) bool) {
	n := 0
	for i := range s.entries {
		if keep(i) {
			n++
		}
	}
	kept := s.empty(s.bits, n)
	for i := range s.entries {
		e := &s.entries[i]
		if keep(i) {
			kept.take(s, e, sumBytes(c.key[0], s.path(e)))
			continue
		}
		if pattern, hasDigits := c.pattern(string(s.path(e))); hasDigits {
			c.patterns.remove(pattern)
		}
		c.paths--
		c.bytes -= int(e.length)
	}
	*s = *kept
}

// makeRoom evicts from the segment of a hash, or, where there is next to nothing, from
// one of the few after it.
func (c *Catalog) makeRoom(hash uint64, n newcomer) bool {
	for range 8 {
		s := c.segment(hash)
		if c.evict(s, n) > 0 {
			return true
		}
		if len(s.entries) >= 16 {
			return false
		}
		hash += 1 << (64 - s.bits)
	}
	return false
}

// evict drops a sixteenth of a segment's paths for a newcomer, one at least: those that
// are worth least, and of them those that were not seen for the longest time. Segments
// are chosen by a hash, so what is least in one is about that in all. Listed paths go
// only where there are no others. It returns how many were dropped.
func (c *Catalog) evict(s *segment, n newcomer) int {
	if n.worth == worthNothing && n.at <= s.stuck {
		return 0
	}
	order := make([]uint64, 0, len(s.entries))
	for i := range s.entries {
		if e := &s.entries[i]; n.replaces(e) {
			order = append(order, rank(e, i))
		}
	}
	if len(order) == 0 {
		if n.worth == worthNothing {
			s.stuck = n.at
		}
		return 0
	}
	slices.Sort(order)
	order = order[:min(len(order), max(1, len(s.entries)/16))]
	if order[0]>>48 < uint64(worthListed) {
		for order[len(order)-1]>>48 == uint64(worthListed) {
			order = order[:len(order)-1]
		}
	}
	last := order[len(order)-1]
	c.keep(s, func(i int) bool {
		e := &s.entries[i]
		return rank(e, i) > last || !n.replaces(e)
	})
	c.evicted += uint64(len(order))
	return len(order)
}

// rank is less for the entry that goes first; i is where it is in its segment.
func rank(e *entry, i int) uint64 {
	return uint64(worthOf(e))<<48 | uint64(e.alive())<<16 | uint64(i)
}

// A clock that says less than this, the beginning of 2020, is not set.
const clockUnset = 1577836800

// slack is how far another machine's clock may be ahead.
const slack = 3600

// Expire drops what had no visit and no link for Options.Expire, at Unix second now,
// and what is too much by bounds that were lowered.
func (c *Catalog) Expire(now int64) {
	if now < clockUnset {
		return
	}
	c.mu.Lock()
	before := uint32(0)
	if d := int64(c.options.Expire / time.Second); d > 0 {
		before = second(now - d)
	}
	most := c.options.MaxPaths
	c.mu.Unlock()
	c.each(func(s *segment) { c.expire(s, before, second(now)) })
	c.expireShadows(before, second(now), most)
	c.trim()
}

func (c *Catalog) expire(s *segment, before, now uint32) {
	gone := 0
	s.stuck = 0
	for i := range s.entries {
		e := &s.entries[i]
		if e.alive() == 0 {
			e.seen = now // nobody knows when it was
		}
		// What a wrong clock has put into the future would stay for as long.
		if latest := uint32(min(uint64(now)+slack, math.MaxUint32)); e.alive() > latest || e.tagged > latest {
			e.seen, e.linked, e.tagged = min(e.seen, now), min(e.linked, now), min(e.tagged, now)
		}
		if e.alive() < before {
			gone++
		}
	}
	if gone > 0 {
		c.keep(s, func(i int) bool { return s.entries[i].alive() >= before })
		c.expired += uint64(gone)
	}
}

func (c *Catalog) isOver() bool {
	return c.paths > c.options.MaxPaths || c.bytes > c.maxBytes()
}

// trim drops what is too much, a sixteenth of each segment in turn.
func (c *Catalog) trim() {
	for gone := 1; gone > 0; {
		gone = 0
		c.each(func(s *segment) {
			if c.isOver() {
				gone += c.evict(s, newcomer{worthListed, math.MaxUint32})
			}
		})
	}
}
