// Package frontier decides which of a site's pages that were never fetched come first, and which of them are given up
// when there is no room for all.
//
// Sites have traps: filters that combine, a calendar without end, copies of all pages below each session. By distance
// from the front page, a crawl hardly leaves them, as there are more pages of a trap the farther away it gets: in the
// model of a shop in the tests, 300 products on 15 pages of a list take 350 fetches, and thousands beside a trap. So
// folders and other groups of pages take turns, and distance decides only within a group. What is a group decides more:
// as long as each folder was one, beside a folder's own pages, 50 folders of filters had 50 turns for one of the list's
// next page, and a new session always came first. With the groups in [kind], all products come within 350 to 700
// fetches, so within twice the time; each further trap takes another share. Categories that cannot be told from the
// values of a filter, by name or by place, have only the share of such a value.
//
// Filters in a query are often in the folder of the list, which takes turns with the folder of the products. With one
// view of the list for each product, and a soft 404 to request for every other view, it was 2.4 times the time. So a
// view by several filters costs its folders as many turns as it costs among the queries: now it is 1.7 times. A query
// with one parameter costs one turn, as any other page: it may be a product.
package frontier

import (
	"cmp"
	"iter"
	"strings"
)

const (
	maxAccounts = 1 << 16 // groups of which Accounts knows
	maxHeld     = 16      // pages that a Pass holds, for each one that it returns
)

// Accounts remembers from one [Pass] to the next how many turns each group has had. The zero value knows of none. When
// it is full, all is forgotten: then all groups begin anew, side by side. It is not safe for concurrent use.
type Accounts struct{ groups map[uint64]account }

// account is what a group has had, in the order of start-time fair queueing.
type account struct {
	// taken are the turns that the group has had, by their cost. One that comes late begins with those that its
	// siblings have had: it gets its share from then on, and nothing for the time before.
	taken uint64

	// begun are those that children which come late begin with.
	begun uint64
}

func (a *Accounts) put(key uint64, of account) {
	if a.groups == nil || len(a.groups) >= maxAccounts {
		a.groups = make(map[uint64]account)
	}
	a.groups[key] = of
}

// Pass collects pages that were never fetched, and returns those that come first.
type Pass struct {
	accounts *Accounts
	n        int
	pages    []page
}

// Pass begins a pass that returns up to n pages.
func (a *Accounts) Pass(n int) *Pass { return &Pass{accounts: a, n: max(n, 1)} }

// Add adds a page, with its distance from the front page in links. Each is added once, in any order; it is fastest in
// that of the paths.
func (p *Pass) Add(path string, depth uint8) {
	if len(p.pages) == maxHeld*p.n {
		// What does not come first now will not either when there are more, so a trap without end takes no memory.
		kept := make([]page, 0, maxHeld*p.n)
		order := newOrder(p.accounts, p.pages)
		for range p.n {
			kept = append(kept, order.take())
		}
		p.pages = kept
	}
	p.pages = append(p.pages, page{path: path, depth: depth})
}

// Take returns the pages that come first, in order. Each that is taken is a turn of its groups. It ends the pass.
func (p *Pass) Take() iter.Seq[string] {
	return func(yield func(path string) bool) {
		order := newOrder(p.accounts, p.pages)
		defer order.remember()
		for range min(p.n, len(p.pages)) {
			if !yield(order.take().path) {
				return
			}
		}
	}
}

// page is a page that waits to be fetched.
type page struct {
	path  string
	depth uint8
	below int32 // where in the path begins what is below the folder of its node
}

// compare says which of two pages comes first, if it is the turn of both.
func (p page) compare(other page) int {
	return cmp.Or(cmp.Compare(p.depth, other.depth), strings.Compare(p.path, other.path))
}

// order is a tree of the groups that have pages.
type order struct {
	root     *node
	accounts *Accounts
	taken    []*node // have had a turn
}

// node is a group that has pages. What groups it has is found out at its first turn: most have none.
type node struct {
	group
	account
	next     page    // whose turn it is in the group
	children []*node // a heap
	pages    []page  // in none of the children; those of an innermost group are a heap, once it has had a turn
	hadTurn  bool

	// debt is how many turns its pages have cost beyond one for each. It is paid when the pass ends: within a pass,
	// each turn of a group costs the same, whatever page it is for. Else a page that is added may take the place of one
	// that costs more; then those behind it come earlier, and Add may have dropped some of them.
	debt uint64
}

func newOrder(accounts *Accounts, pages []page) *order {
	o := &order{
		root:     &node{account: accounts.groups[0], pages: pages},
		accounts: accounts,
	}
	for i := range pages {
		pages[i].below = int32(len(pages[i].path) - len(belowRoot(pages[i].path)))
	}
	return o
}

// add adds pages, one at least, before the first turn.
func (n *node) add(pages []page) {
	if len(n.pages) == 0 {
		n.next = pages[0]
		n.pages = pages[:len(pages):len(pages)] // others follow
	} else {
		n.pages = append(n.pages, pages...)
	}
	for _, p := range pages {
		if p.compare(n.next) < 0 {
			n.next = p
		}
	}
}

// take takes the next page out of the tree, which has one.
func (o *order) take() page {
	p, _ := o.takeFrom(o.root)
	return p
}

// takeFrom takes the next page of a group, and returns how many turns it costs each group that the group is in.
func (o *order) takeFrom(n *node) (p page, turns uint64) {
	if !n.hadTurn {
		o.taken = append(o.taken, n)
		n.hadTurn = true
		o.open(n)
	}
	if n.isInnermost() {
		p = n.pages[0]
		n.pages = dropFirst(n.pages, page.compare)
		if len(n.pages) > 0 {
			n.next = n.pages[0]
		}
		return p, 1
	}
	child := n.children[0]
	p, turns = o.takeFrom(child)

	// Of the turns that the page costs, one is paid now: see node.debt.
	n.begun = child.taken
	child.taken += child.cost
	child.debt += (turns - 1) * child.cost
	if child.kind == hasParameters {
		turns = child.cost // to the groups around it, whatever it costs among the queries
	}

	// The child's place among its siblings is another one now, or it has no pages left.
	if len(child.pages)+len(child.children) > 0 {
		sink(n.children, 0, (*node).compare)
	} else {
		n.children = dropFirst(n.children, (*node).compare)
	}
	if len(n.children) > 0 {
		n.next = n.children[0].next
	}
	return p, turns
}

// open puts the pages of a group into its children, or in order.
func (o *order) open(n *node) {
	if n.isInnermost() {
		makeHeap(n.pages, page.compare)
		return
	}
	byKey := make(map[uint64]*node)
	var last *node // pages in path order are mostly in the same one
	begun := 0     // of n.pages, its pages not added yet
	for i := range n.pages {
		p := &n.pages[i]
		g, below := n.child(p.path[p.below:])
		p.below = int32(len(p.path) - len(below))
		if last != nil && g.key == last.key {
			continue
		}
		if last != nil {
			last.add(n.pages[begun:i])
		}
		begun = i
		last = byKey[g.key]
		if last == nil {
			last = o.newChild(n, g)
			byKey[g.key] = last
		}
	}
	last.add(n.pages[begun:])
	n.pages = nil
	makeHeap(n.children, (*node).compare)
}

func (o *order) newChild(parent *node, g group) *node {
	n := &node{group: g, account: o.accounts.groups[g.key]}
	n.taken = max(n.taken, parent.begun) // a new group does not catch up: a trap makes new ones all the time
	parent.children = append(parent.children, n)
	return n
}

// compare says whether it is the turn of a group before that of a sibling.
func (n *node) compare(sibling *node) int {
	return cmp.Or(cmp.Compare(n.taken, sibling.taken), n.next.compare(sibling.next))
}

// remember remembers the turns that were taken, and those that are owed.
func (o *order) remember() {
	for _, n := range o.taken {
		n.taken += n.debt
		o.accounts.put(n.key, n.account)
	}
}

func makeHeap[T any](items []T, compare func(a, b T) int) {
	for i := len(items)/2 - 1; i >= 0; i-- {
		sink(items, i, compare)
	}
}

// dropFirst drops the first item of a heap.
func dropFirst[T any](heap []T, compare func(a, b T) int) []T {
	last := len(heap) - 1
	heap[0] = heap[last]
	sink(heap[:last], 0, compare)
	return heap[:last]
}

// sink moves an item of a heap behind those that come before it.
func sink[T any](heap []T, i int, compare func(a, b T) int) {
	for {
		first := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(heap); child++ {
			if compare(heap[child], heap[first]) < 0 {
				first = child
			}
		}
		if first == i {
			return
		}
		heap[i], heap[first] = heap[first], heap[i]
		i = first
	}
}
