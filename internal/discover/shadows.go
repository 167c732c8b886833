package discover

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
)

// A shadow is what is kept on disk of a path that a visitor alone showed, which may
// hold a secret, such as one to set a password anew: the hash of it, by which a later
// visit or link tells that it is known.
type shadow struct {
	hash uint64
	hour uint32 // of the latest visit or link; 0: not known
	from Origin // 0: it is an entry again
}

func shadowOf(hash uint64, e *entry) shadow {
	return shadow{hash, e.alive() / 3600, Origin(e.flags & origins)}
}

// shadows are sorted by their hashes, in lists by the first bits of these, so that none
// is long. They come from disk alone, and become fewer from then on.
type shadows struct {
	lists [][]shadow // nil: there are none
	count int
}

const shadowBits = 8

// add adds a shadow whose hash is greater than those of all others.
func (h *shadows) add(one shadow) {
	if h.lists == nil {
		h.lists = make([][]shadow, 1<<shadowBits)
	}
	list := &h.lists[one.hash>>(64-shadowBits)]
	*list = append(*list, one)
	h.count++
}

// find returns nil where there is no shadow of that hash.
func (h *shadows) find(hash uint64) *shadow {
	if h.count == 0 {
		return nil
	}
	list := h.lists[hash>>(64-shadowBits)]
	i, ok := slices.BinarySearchFunc(list, hash, func(s shadow, hash uint64) int { return cmp.Compare(s.hash, hash) })
	if !ok || list[i].from == 0 {
		return nil
	}
	return &list[i]
}

// merge makes the shadow of an entry that was added part of it.
func (h *shadows) merge(hash uint64, e *entry) {
	s := h.find(hash)
	if s == nil {
		return
	}
	e.flags |= uint8(s.from)
	e.seen = max(e.seen, s.hour*3600)
	s.from = 0
	h.count--
}

// keep drops all but some of a list, and returns how many it dropped that were not
// entries again.
func (h *shadows) keep(list int, keep func(s *shadow) bool) (gone int) {
	all := h.lists[list]
	kept := all[:0]
	for i := range all {
		switch {
		case all[i].from == 0:
		case keep(&all[i]):
			kept = append(kept, all[i])
		default:
			gone++
		}
	}
	if h.count -= gone; h.count == 0 {
		h.lists = nil
		return gone
	}
	if len(kept) < len(all) {
		h.lists[list] = slices.Clone(kept)
	}
	return gone
}

// newest says which shadows are the most so many that were seen last: those of a later
// hour than the one that is returned, and so many of that.
func newest(byHour map[uint32]int, most int) (hour uint32, n int) {
	for _, hour := range slices.Backward(slices.Sorted(maps.Keys(byHour))) {
		if byHour[hour] >= most {
			return hour, most
		}
		most -= byHour[hour]
	}
	return 0, most
}

// eachShadows calls f for each list of shadows, locked.
func (c *Catalog) eachShadows(f func(list int)) {
	for list := range 1 << shadowBits {
		c.mu.Lock()
		if c.shadows.lists != nil {
			f(list)
		}
		c.mu.Unlock()
	}
}

// expireShadows drops those that were not seen since a second, and all but the most.
func (c *Catalog) expireShadows(before, now uint32, most int) {
	byHour := make(map[uint32]int)
	c.eachShadows(func(list int) {
		c.expired += uint64(c.shadows.keep(list, func(s *shadow) bool {
			if s.hour == 0 || s.hour > uint32(min(int64(now)+slack, 1<<32-1)/3600) {
				s.hour = now / 3600 // as with entries
			}
			if s.hour*3600 < before {
				return false
			}
			byHour[s.hour]++
			return true
		}))
	})
	c.trimShadows(byHour, most)
}

// trimShadows drops all but the most of shadows, of which there are so many of each
// hour.
func (c *Catalog) trimShadows(byHour map[uint32]int, most int) {
	n := 0
	for _, count := range byHour {
		n += count
	}
	if n <= most {
		return
	}
	hour, left := newest(byHour, most)
	c.eachShadows(func(list int) {
		c.evicted += uint64(c.shadows.keep(list, func(s *shadow) bool {
			if s.hour == hour {
				left--
				return left >= 0
			}
			return s.hour > hour
		}))
	})
}

// boundShadows is trimShadows for shadows that are being read.
func (c *Catalog) boundShadows() {
	byHour := make(map[uint32]int)
	for _, list := range c.shadows.lists {
		for _, s := range list {
			byHour[s.hour]++
		}
	}
	c.trimShadows(byHour, c.options.MaxPaths)
	for i, list := range c.shadows.lists {
		if cap(list) > len(list) {
			c.shadows.lists[i] = slices.Clone(list)
		}
	}
}

// isHidden reports whether the text of an entry's path is not written to disk: nothing
// but visitors showed it, and no rule wants it.
func (c *Catalog) isHidden(s *segment, e *entry) bool {
	if e.flags&(isLinked|isListed) != 0 {
		return false
	}
	return len(c.options.Unlinked) == 0 || c.rule(s, e, "") == nil
}

// copyShadows returns all shadows.
func (c *Catalog) copyShadows() []shadow {
	var all []shadow
	c.eachShadows(func(list int) {
		for _, s := range c.shadows.lists[list] {
			if s.from != 0 {
				all = append(all, s)
			}
		}
	})
	return all
}

// united sorts shadows, and makes one of those that have the same hash.
func united(all []shadow) []shadow {
	slices.SortFunc(all, func(a, b shadow) int { return cmp.Compare(a.hash, b.hash) })
	n := 0
	for _, s := range all {
		switch {
		case s.from == 0:
		case n > 0 && all[n-1].hash == s.hash:
			all[n-1].hour = max(all[n-1].hour, s.hour)
			all[n-1].from |= s.from
		default:
			all[n] = s
			n++
		}
	}
	return all[:n]
}

// appendShadows appends the content of a block: how far each hash is from the one
// before it, all of them, and then hours and origins.
func appendShadows(b []byte, all []shadow) []byte {
	b = binary.AppendUvarint(b, uint64(len(all)))
	last := uint64(0)
	for _, s := range all {
		b = binary.AppendUvarint(b, s.hash-last)
		last = s.hash
	}
	for _, s := range all {
		b = binary.AppendUvarint(b, uint64(s.hour)<<3|uint64(s.from))
	}
	return b
}

// decodeShadows reads a block, after one whose last hash was last, and makes last its
// own.
func (c *Catalog) decodeShadows(f *fields, last *uint64) error {
	n := f.uvarint()
	if n > blockWords {
		return errDamaged
	}
	hashes := make([]uint64, n)
	for i := range hashes {
		if i > 0 {
			hashes[i] = hashes[i-1]
		}
		hashes[i] += f.uvarint()
		if hashes[i] <= *last {
			return errDamaged
		}
		*last = hashes[i]
	}
	for _, hash := range hashes {
		v := f.uint32()
		s := shadow{hash, v >> 3, Origin(v) & Origin(origins)}
		if s.from == 0 || s.hour > 1<<32/3600 {
			return errDamaged
		}
		c.shadows.add(s)
		if c.shadows.count > 2*c.options.MaxPaths+1<<16 {
			c.boundShadows()
		}
	}
	return nil
}
