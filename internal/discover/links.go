package discover

import (
	"math/bits"
	"slices"
)

// A link is the hash of the path that it leads to, with the least depth that it gives
// it in its last 8 bits.
const depthMask = 1<<8 - 1

// linkSet is a sorted list of links, one a path.
type linkSet []uint64

// depth returns false for what is not linked to.
func (l linkSet) depth(hash uint64) (depth uint8, ok bool) {
	hash &^= depthMask
	// Hashes are spread evenly: each lies near its place.
	near, _ := bits.Mul64(hash, uint64(len(l)))
	from, to := int(near), int(near)
	for step := 16; from > 0 && l[from] >= hash; step *= 2 {
		from = max(from-step, 0)
	}
	for step := 16; to < len(l) && l[to] < hash; step *= 2 {
		to = min(to+step, len(l))
	}
	i, _ := slices.BinarySearch(l[from:min(to+1, len(l))], hash)
	if i += from; i < len(l) && l[i]&^depthMask == hash {
		return uint8(l[i] & depthMask), true
	}
	return 0, false
}

// Round takes down the links of a site's pages. It is not for concurrent use. Nothing
// counts of one that is not ended.
type Round struct {
	catalog *Catalog
	key     [2]uint64
	depth   int
	grow    bool
	shadows bool // there may be some
	most    int  // links
	room    int  // bytes of fresh paths

	slots   []uint64 // links; 0: free
	used    int
	dropped int
	fresh   []byte // paths that become entries, each with two bytes of length before it
	grown   bool
}

// Round begins to take down links anew. With grow, what is linked to becomes an entry
// if its depth is at most depth: 1 where a page of another source links to it, 2 where
// one such does, and so on. What is linked to and is known by its shadow alone becomes
// the entry again that it was, in any case.
func (c *Catalog) Round(depth int, grow bool) *Round {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &Round{
		catalog: c, key: c.key, depth: depth, grow: grow, shadows: c.shadows.count > 0,
		most: c.mostLinks(), room: c.maxBytes(),
	}
}

// Page takes down the links of a page, all in [Cleaner.Clean]'s form. A page's link to
// itself does not count. depth is that of the page: 0 if another source knows it, else
// what [Catalog.DepthOf] says.
func (r *Round) Page(depth int, path string, links []string) {
	at := uint8(min(max(depth, 0), depthMask-1) + 1)
	for _, link := range links {
		if link != path && isPath(link) {
			r.add(link, at)
		}
	}
}

func (r *Round) add(link string, depth uint8) {
	if 4*(r.used+1) > 3*len(r.slots) {
		r.widen()
	}
	full := sum(r.key[0], link)
	hash := full &^ depthMask
	i := r.find(hash)
	old := r.slots[i]
	if old != 0 && uint8(old) <= depth {
		return
	}
	if old == 0 {
		if r.used >= r.most {
			r.dropped++
			return
		}
		r.used++
	}
	r.slots[i] = hash | uint64(depth)
	if r.takes(depth) && (old == 0 || !r.takes(uint8(old))) || r.shadows && old == 0 && r.catalog.hasShadow(full) {
		r.keep(link)
	}
}

// takes reports whether a link of that depth shows a path by itself.
func (r *Round) takes(depth uint8) bool { return r.grow && int(depth) <= r.depth }

// keep holds the text of a link, unless the catalog has it.
func (r *Round) keep(link string) {
	if r.catalog.has(link) {
		return
	}
	if len(r.fresh)+len(link) > r.room {
		r.dropped++
		return
	}
	r.fresh = append(r.fresh, byte(len(link)), byte(len(link)>>8))
	r.fresh = append(r.fresh, link...)
}

// find returns where a link is, or would be. The last bits of a hash and a link play
// no part.
func (r *Round) find(hash uint64) int {
	mask := len(r.slots) - 1
	i := int(hash>>8) & mask
	for r.slots[i] != 0 && r.slots[i]^hash > depthMask {
		i = (i + 1) & mask
	}
	return i
}

func (r *Round) widen() {
	old := r.slots
	r.slots = make([]uint64, max(2*len(old), 64))
	for _, slot := range old {
		if slot != 0 {
			r.slots[r.find(slot)] = slot
		}
	}
}

// End makes the links of this round those that count, at Unix second now.
func (r *Round) End(now int64) {
	links := make(linkSet, 0, r.used)
	for _, slot := range r.slots {
		if slot != 0 {
			links = append(links, slot)
		}
	}
	r.slots = nil
	slices.Sort(links)

	c := r.catalog
	c.ending.Lock()
	defer c.ending.Unlock()
	if !c.begin(r, links, second(now)) {
		return
	}
	c.each(func(s *segment) { c.mark(s, r) })
	for len(r.fresh) > 0 {
		r.fresh = r.fresh[c.addFresh(r):]
	}
}

// Grown reports whether a round that is ended made candidates of paths that were none.
func (r *Round) Grown() bool { return r.grown }

// begin is the part of End after which the new links count for new entries.
func (c *Catalog) begin(r *Round, links linkSet, now uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.key != c.key {
		return false // it was decoded meanwhile
	}
	c.links, c.rounded = links, now
	c.droppedLinks += uint64(r.dropped)
	return true
}

// mark writes into the entries of a segment what the links say.
func (c *Catalog) mark(s *segment, r *Round) {
	s.stuck = 0
	for i := range s.entries {
		e := &s.entries[i]
		was := e.flags & isLinked
		e.flags &^= isLinked
		e.depth = 0
		c.link(e, sumBytes(c.key[0], s.path(e)))
		r.grown = r.grown || e.flags&isLinked > was
		if e.flags&isLinked != 0 && r.takes(e.depth) {
			e.flags |= uint8(FromLinks)
		}
	}
}

// link writes into an entry what the links say.
func (c *Catalog) link(e *entry, hash uint64) {
	depth, ok := c.links.depth(hash)
	if !ok {
		return
	}
	e.flags |= isLinked
	e.depth, e.linked = depth, max(e.linked, c.rounded)
}

// addFresh adds the first few of a round's fresh paths, and returns how many bytes they
// are.
func (c *Catalog) addFresh(r *Round) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	paths, n := r.fresh, 0
	for i := 0; i < 256 && n < len(paths); i++ {
		length := int(paths[n]) | int(paths[n+1])<<8
		path := string(paths[n+2 : n+2+length])
		n += 2 + length
		hash := sum(c.key[0], path)
		depth, _ := c.links.depth(hash)
		e := c.segment(hash).find(hash, path)
		if e == nil && (r.takes(depth) || c.shadows.find(hash) != nil) {
			e = c.insert(hash, path, newcomer{worthLinked, c.rounded})
		}
		if e == nil {
			continue
		}
		r.grown = true
		c.link(e, hash)
		if r.takes(depth) {
			e.flags |= uint8(FromLinks)
		}
	}
	return n
}

// DepthOf is how many links a path is away from the pages of other sources, by the
// last round; false if none of its pages links to it.
func (c *Catalog) DepthOf(path string) (depth int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, ok := c.links.depth(sum(c.key[0], path))
	return int(d), ok
}

func (c *Catalog) mostLinks() int { return 2*c.options.MaxPaths + 1<<16 }
