package discover

// entry is what is known of one path. Times are Unix seconds.
type entry struct {
	offset   uint32 // of the path, in the segment's paths
	seen     uint32 // the latest visit
	linked   uint32 // the end of the latest round with a link to it
	tag      uint32 // what the latest visit with a tag was shown
	tagged   uint32 // when that was
	visitors uint32 // where its latest visitor is, in the segment's visitors, plus one
	length   uint16 // of the path
	flags    uint8
	depth    uint8 // in links from the pages of other sources, while isLinked
	reached  uint8 // how many different visitors have asked for it; 0: not enough yet
	rule     uint8 // which of the rules for unlinked paths is its own, plus one
}

// The lowest bits of an entry's flags are its Origin.
const (
	isLinked  uint8 = 1 << (iota + 3) // a page of the last round links to it
	isListed                          // it is in the site's sitemap
	manyHours                         // its visitors came in more hours than one
)

const origins = uint8(FromLog | FromTraffic | FromLinks)

// An entry's rule that is not one.
const (
	ruleUnknown = 0
	ruleNone    = 255
)

// alive is when a visitor or a link last showed it.
func (e *entry) alive() uint32 { return max(e.seen, e.linked) }

// A visitor is its hash, the hour that it came in, and where the path's one before it
// is, plus one.
type visitor uint64

const (
	nextBits = 27
	hourBits = 21
)

func newVisitor(hash uint16, hour, next uint32) visitor {
	return visitor(hash)<<(nextBits+hourBits) | visitor(hour)<<nextBits | visitor(next)
}

func (v visitor) hash() uint16 { return uint16(v >> (nextBits + hourBits)) }
func (v visitor) hour() uint32 { return uint32(v>>nextBits) & (1<<hourBits - 1) }
func (v visitor) next() uint32 { return uint32(v) & (1<<nextBits - 1) }

const (
	// A segment with so many entries becomes two.
	fullSegment = 2048
	// It holds at most so many, should their hashes not tell them apart.
	maxSegment = 1<<15 + 1<<14
)

// segment holds the paths whose hashes begin with the same bits. All that takes longer
// with more paths is done for one segment at a time.
type segment struct {
	bits     uint8    // how many those are
	rules    uint32   // the rules that the entries' rule is of
	stuck    uint32   // nothing goes for a visitor's word of that second, or before
	slots    []uint32 // 16 bits of a path's hash, and the place of its entry plus one; 0: free
	entries  []entry  // in the order of their offsets
	paths    []byte
	visitors []visitor
	free     uint32 // where a visitor that none is anymore is, plus one
}

func (s *segment) path(e *entry) []byte { return s.paths[e.offset : e.offset+uint32(e.length)] }

// find returns nil where the segment does not hold path. What it returns is good
// until the next path is added.
func (s *segment) find(hash uint64, path string) *entry {
	if len(s.slots) == 0 {
		return nil
	}
	mask := uint32(len(s.slots) - 1)
	mark := uint32(hash) << 16
	for i := uint32(hash) & mask; s.slots[i] != 0; i = (i + 1) & mask {
		if s.slots[i]&^0xFFFF != mark {
			continue
		}
		e := &s.entries[s.slots[i]&0xFFFF-1]
		if string(s.path(e)) == path {
			return e
		}
	}
	return nil
}

// add adds a path that the segment does not hold.
func (s *segment) add(hash uint64, path []byte) *entry {
	if 4*(len(s.entries)+1) > 3*len(s.slots) {
		s.widen()
	}
	s.entries = grow(s.entries, 1)
	s.paths = grow(s.paths, len(path))
	s.entries = append(s.entries, entry{offset: uint32(len(s.paths)), length: uint16(len(path))})
	s.paths = append(s.paths, path...)
	s.place(uint32(hash)<<16 | uint32(len(s.entries)))
	return &s.entries[len(s.entries)-1]
}

func (s *segment) place(slot uint32) {
	mask := uint32(len(s.slots) - 1)
	i := slot >> 16 & mask
	for s.slots[i] != 0 {
		i = (i + 1) & mask
	}
	s.slots[i] = slot
}

func (s *segment) widen() {
	old := s.slots
	s.slots = make([]uint32, max(2*len(old), 16))
	for _, slot := range old {
		if slot != 0 {
			s.place(slot)
		}
	}
}

// take adds a copy of an entry of another segment.
func (s *segment) take(o *segment, from *entry, hash uint64) {
	e := s.add(hash, o.path(from))
	offset := e.offset
	*e = *from
	e.offset, e.visitors = offset, 0
	for i := from.visitors; i != 0; i = o.visitors[i-1].next() {
		s.push(e, o.visitors[i-1].hash(), o.visitors[i-1].hour())
	}
}

// push adds a visitor to an entry's.
func (s *segment) push(e *entry, hash uint16, hour uint32) {
	v := newVisitor(hash, hour, e.visitors)
	if s.free != 0 {
		e.visitors, s.free = s.free, s.visitors[s.free-1].next()
		s.visitors[e.visitors-1] = v
		return
	}
	s.visitors = append(grow(s.visitors, 1), v)
	e.visitors = uint32(len(s.visitors))
}

// forget drops an entry's visitors.
func (s *segment) forget(e *entry) {
	e.flags &^= manyHours
	if e.visitors == 0 {
		return
	}
	last := e.visitors
	for s.visitors[last-1].next() != 0 {
		last = s.visitors[last-1].next()
	}
	v := s.visitors[last-1]
	s.visitors[last-1] = newVisitor(v.hash(), v.hour(), s.free)
	s.free, e.visitors = e.visitors, 0
}

// empty is a segment of the same rules with room for so many of the entries of s, and
// with a little more.
func (s *segment) empty(bits uint8, entries int) *segment {
	paths := len(s.paths) * entries / max(len(s.entries), 1)
	slots := 16
	for 4*entries > 3*slots {
		slots *= 2
	}
	return &segment{
		bits: bits, rules: s.rules, slots: make([]uint32, slots),
		entries: make([]entry, 0, entries+entries/16), paths: make([]byte, 0, paths+paths/16),
	}
}

// grow makes room for n more, and for few beyond: segments lie around half grown.
func grow[T any](s []T, n int) []T {
	if len(s)+n <= cap(s) {
		return s
	}
	return append(make([]T, 0, len(s)+n+len(s)/16+4), s...)
}
