package frontier

import "container/heap"

const (
	maxGroups   = 1 << 16 // of which a Census knows; others of a parent are counted together
	maxGivingUp = 1 << 12 // pages that are to be dropped
)

// Census counts the pages that were never fetched by group, and says which of them are given up when there is no room
// for others: some of the largest group, as long as it is larger than those of the others. The zero value has counted
// none. It is not safe for concurrent use.
type Census struct {
	root     tally
	byKey    map[uint64]*tally
	givingUp int
}

// tally counts the pages of a group.
type tally struct {
	group
	parent   *tally // nil: it is the root
	index    int    // in the parent's children
	children bySize
	pages    int // without those that are given up
	givingUp int // that are to be dropped; of an innermost group
}

// Add counts a page.
func (c *Census) Add(path string) { c.find(path).add(1) }

// Remove no longer counts a page, as it was fetched. It reports whether the page had been given up, and stays after
// all.
func (c *Census) Remove(path string) (stays bool) {
	t := c.find(path)
	t.add(-1)
	// Which pages of a group are given up is not decided before they are dropped: it may be any of them.
	if t.pages >= 0 || t.givingUp == 0 {
		return false
	}
	t.add(1)
	t.givingUp--
	c.givingUp--
	return true
}

// MakeRoom gives up a page for another one, which is not counted yet; false: that is itself of the largest group.
func (c *Census) MakeRoom(path string) bool {
	// In the outermost group where it can, a large trap gives way, and not a folder beside the page.
	var apart *tally // the outermost group of the page that is not the largest of its siblings
	for t := c.find(path); t.parent != nil; t = t.parent {
		if t.index != 0 {
			apart = t
		}
	}
	if apart == nil {
		return false
	}
	largest := apart.parent.children[0]
	// With the page, its group must still be the smaller one. Otherwise two groups would give way to each other for
	// ever.
	return largest.pages > apart.pages+1 && c.giveUp(largest)
}

// GiveUp gives up a page; false: there is none.
func (c *Census) GiveUp() bool { return c.giveUp(&c.root) }

// giveUp gives up a page of the largest group in a group.
func (c *Census) giveUp(t *tally) bool {
	if t.pages <= 0 || c.givingUp >= maxGivingUp {
		return false
	}
	for len(t.children) > 0 {
		t = t.children[0] // the largest
	}
	t.add(-1)
	t.givingUp++
	c.givingUp++
	return true
}

// GivingUp returns how many pages are to be dropped.
func (c *Census) GivingUp() int { return c.givingUp }

// Drop reports whether a page that is counted is one of those that are given up. It is not counted any more then.
func (c *Census) Drop(path string) bool {
	t := c.find(path)
	if t.givingUp == 0 {
		return false
	}
	t.givingUp--
	c.givingUp--
	return true
}

// find returns the innermost group of a page.
func (c *Census) find(path string) *tally {
	t := &c.root
	rest := belowRoot(path)
	for !t.isInnermost() {
		var g group
		g, rest = t.child(rest)
		child := c.byKey[g.key]
		if child == nil && len(c.byKey) >= maxGroups {
			g = t.of(inOthers, uint64(inOthers), 1)
			child = c.byKey[g.key]
		}
		if child == nil {
			child = c.insert(t, g)
		}
		t = child
	}
	return t
}

func (c *Census) insert(parent *tally, g group) *tally {
	t := &tally{group: g, parent: parent}
	heap.Push(&parent.children, t)
	if c.byKey == nil {
		c.byKey = make(map[uint64]*tally)
	}
	c.byKey[g.key] = t
	return t
}

// add counts n more pages in an innermost group, and in those around it.
func (t *tally) add(n int) {
	t.pages += n
	for ; t.parent != nil; t = t.parent {
		t.parent.pages += n
		heap.Fix(&t.parent.children, t.index)
	}
}

// bySize is a heap of siblings, the largest first.
type bySize []*tally

func (s bySize) Len() int           { return len(s) }
func (s bySize) Less(i, j int) bool { return s[i].pages > s[j].pages }

func (s bySize) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index = i
	s[j].index = j
}

// Push adds a tally.
func (s *bySize) Push(t any) {
	added := t.(*tally)
	added.index = len(*s)
	*s = append(*s, added)
}

// Pop is not used: groups stay.
func (s *bySize) Pop() any { panic("groups stay") }
