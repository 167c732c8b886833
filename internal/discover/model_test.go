package discover

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// keyed is a catalog whose hashes are always the same.
func keyed() *Catalog {
	c := NewCatalog()
	c.store = newStore([]byte("0123456789abcdef"))
	return c
}

// consistent counts what a catalog says of itself anew.
func consistent(t testing.TB, c *Catalog) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	paths, bytes := 0, 0
	folded := make(map[string]int)
	for i, s := range c.segments {
		if i > 0 && s == c.segments[i-1] {
			continue
		}
		used := 0
		for k := range s.entries {
			e := &s.entries[k]
			path := string(s.path(e))
			hash := sum(c.key[0], path)
			if c.segment(hash) != s || s.find(hash, path) != e {
				t.Fatalf("%s is not where it belongs", path)
			}
			paths++
			bytes += len(path)
			if pattern := Fold(path); pattern != path {
				folded[pattern]++
			}
			for i := e.visitors; i != 0; i = s.visitors[i-1].next() {
				used++
			}
		}
		for i := s.free; i != 0; i = s.visitors[i-1].next() {
			used++
		}
		if used != len(s.visitors) {
			t.Fatalf("%d of %d visitors are in use or free", used, len(s.visitors))
		}
	}
	if paths != c.paths || bytes != c.bytes || len(folded) != c.patterns.used {
		t.Fatalf("got %d paths of %d bytes, %d patterns, want %d, %d, %d", c.paths, c.bytes, c.patterns.used, paths, bytes, len(folded))
	}
	for pattern, n := range folded {
		if got := c.patterns.count(sum(c.key[0], pattern)); got != n {
			t.Fatalf("%s is counted %d times, want %d", pattern, got, n)
		}
	}
	shadows, last := 0, uint64(0)
	for i, list := range c.shadows.lists {
		for _, s := range list {
			if s.hash <= last || s.hash>>(64-shadowBits) != uint64(i) {
				t.Fatalf("the shadow of %x is not where it belongs", s.hash)
			}
			last = s.hash
			shadows += bit(uint8(s.from))
		}
	}
	if shadows != c.shadows.count {
		t.Fatalf("got %d shadows, want %d", c.shadows.count, shadows)
	}
	if !slices.IsSorted(c.links) {
		t.Fatal("the links are not sorted")
	}
}

// model is a catalog as one would write it without a thought of memory.
type model struct {
	options Options
	entries map[string]*modelEntry
	shadows map[string]*modelShadow
	links   map[string]int
	rounded int64
	grown   bool
	added   int
	refused int
	evicted int
	expired int
}

type modelEntry struct {
	seen, linked, tagged int64
	tag                  uint32
	from                 Origin
	isLinked, isListed   bool
	depth, reached       int
	order                int
	networks             map[string]bool
	hours                map[int64]bool
}

type modelShadow struct {
	hour int64
	from Origin
}

func (e *modelEntry) alive() int64 { return max(e.seen, e.linked) }

func (e *modelEntry) worth() worth {
	switch {
	case e.isListed:
		return worthListed
	case e.isLinked || e.reached > 0:
		return worthLinked
	}
	return worthNothing
}

func (m *model) evict(w worth, at int64) bool {
	type victim struct {
		path string
		*modelEntry
	}
	var all []victim
	for path, e := range m.entries {
		older, less := e.alive() < at, e.worth() < w && !e.isListed
		if (older || less) && (w > worthNothing || e.worth() == worthNothing) {
			all = append(all, victim{path, e})
		}
	}
	slices.SortFunc(all, func(x, y victim) int {
		return cmp.Or(cmp.Compare(x.worth(), y.worth()), cmp.Compare(x.alive(), y.alive()), cmp.Compare(x.order, y.order))
	})
	if len(all) == 0 {
		return false
	}
	first := all[0].isListed
	for _, v := range all[:min(len(all), max(1, len(m.entries)/16))] {
		if v.isListed == first {
			delete(m.entries, v.path)
			m.evicted++
		}
	}
	return true
}

func (m *model) insert(path string, w worth, at int64) *modelEntry {
	if pattern := Fold(path); pattern != path {
		n := 0
		for other := range m.entries {
			if Fold(other) == pattern {
				n++
			}
		}
		if n >= m.options.MaxPerPattern {
			m.refused++
			return nil
		}
	}
	for len(m.entries) >= m.options.MaxPaths {
		if !m.evict(w, at) {
			return nil
		}
	}
	m.added++
	e := &modelEntry{order: m.added}
	if s := m.shadows[path]; s != nil {
		e.from, e.seen = s.from, s.hour*3600
		delete(m.shadows, path)
	}
	m.entries[path] = e
	return e
}

func (m *model) link(path string, e *modelEntry) {
	if depth, ok := m.links[path]; ok {
		e.isLinked, e.depth, e.linked = true, depth, max(e.linked, m.rounded)
	}
}

func (m *model) rule(path string) *Unlinked {
	for i := range m.options.Unlinked {
		if m.options.Unlinked[i].Match.Match(path) {
			return &m.options.Unlinked[i]
		}
	}
	return nil
}

func (m *model) visit(from Origin, path string, at int64, network string, tag uint32) {
	e := m.entries[path]
	if e == nil {
		w, alive := worthNothing, at
		if _, ok := m.links[path]; ok {
			w, alive = worthLinked, max(at, m.rounded)
		}
		if e = m.insert(path, w, alive); e == nil {
			return
		}
		m.link(path, e)
	}
	e.from |= from
	e.seen = max(e.seen, at)
	if tag != 0 && at != 0 && (at > e.tagged || at == e.tagged && tag > e.tag) {
		e.tag, e.tagged = tag, at
	}
	rule := m.rule(path)
	if e.isListed || rule == nil || e.reached >= rule.MinVisitors {
		return
	}
	if e.networks == nil {
		e.networks, e.hours = make(map[string]bool), make(map[int64]bool)
	}
	if at != 0 {
		e.hours[at/3600] = true
	}
	if len(e.networks) < rule.MinVisitors {
		e.networks[network] = true
	}
	if len(e.networks) >= rule.MinVisitors && len(e.hours) > 1 {
		e.reached, e.networks = rule.MinVisitors, nil
	}
}

func (m *model) round(depth int, grow bool, now int64, pages []modelPage) {
	links := make(map[string]int)
	var fresh []string
	for _, p := range pages {
		for _, link := range p.links {
			old, ok := links[link]
			if link == p.path || ok && old <= p.depth+1 {
				continue
			}
			links[link] = p.depth + 1
			isNew := grow && p.depth+1 <= depth && (!ok || old > depth)
			if (isNew || !ok && m.shadows[link] != nil) && m.entries[link] == nil {
				fresh = append(fresh, link)
			}
		}
	}
	m.links, m.rounded = links, now
	m.grown = false
	for path, e := range m.entries {
		was := e.isLinked
		e.isLinked, e.depth = false, 0
		m.link(path, e)
		m.grown = m.grown || e.isLinked && !was
		if grow && e.isLinked && e.depth <= depth {
			e.from |= FromLinks
		}
	}
	for _, path := range fresh {
		e := m.entries[path]
		isNew := grow && links[path] <= depth
		if e == nil && (isNew || m.shadows[path] != nil) {
			e = m.insert(path, worthLinked, now)
		}
		if e == nil {
			continue
		}
		m.grown = true
		m.link(path, e)
		if isNew {
			e.from |= FromLinks
		}
	}
}

type modelPage struct {
	depth int
	path  string
	links []string
}

func (m *model) expire(now int64) {
	for path, e := range m.entries {
		if e.alive() == 0 {
			e.seen = now
		}
		if e.alive() < now-int64(m.options.Expire/time.Second) {
			delete(m.entries, path)
			m.expired++
		}
	}
	for path, s := range m.shadows {
		if s.hour == 0 {
			s.hour = now / 3600
		}
		if s.hour*3600 < now-int64(m.options.Expire/time.Second) {
			delete(m.shadows, path)
			m.expired++
		}
	}
	m.trimShadows()
	for len(m.entries) > m.options.MaxPaths && m.evict(worthListed, 1<<32-1) {
	}
}

// trimShadows keeps those of the latest hours, and of one hour those whose hashes are
// least.
func (m *model) trimShadows() {
	key := keyed().key[0]
	paths := slices.SortedFunc(maps.Keys(m.shadows), func(x, y string) int {
		return cmp.Or(-cmp.Compare(m.shadows[x].hour, m.shadows[y].hour), cmp.Compare(sum(key, x), sum(key, y)))
	})
	for i, path := range paths {
		if i >= m.options.MaxPaths {
			delete(m.shadows, path)
			m.evicted++
		}
	}
}

// reload is what writing and reading do: entries come in the order of their paths.
func (m *model) reload() {
	old := m.entries
	m.entries = make(map[string]*modelEntry)
	m.refused, m.evicted, m.expired = 0, 0, 0
	shadows := m.shadows
	m.shadows = nil
	for _, path := range slices.Sorted(maps.Keys(old)) {
		if e := old[path]; !e.isLinked && !e.isListed && m.rule(path) == nil {
			shadows[path] = &modelShadow{e.alive() / 3600, e.from}
			continue
		}
		if e := m.insert(path, old[path].worth(), old[path].alive()); e != nil {
			order := e.order
			*e = *old[path]
			e.order = order
		}
	}
	m.shadows = shadows
	m.trimShadows()
}

func (m *model) candidates(from Origin, depth int) []string {
	var paths []string
	for path, e := range m.entries {
		shown := e.from & from
		rule := m.rule(path)
		if shown != 0 && e.isLinked && (shown != FromLinks || e.depth <= depth) ||
			shown&^FromLinks != 0 && rule != nil && e.reached >= rule.MinVisitors {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

func (m *model) check(t *testing.T, c *Catalog) {
	t.Helper()
	consistent(t, c)
	want := Stats{Paths: len(m.entries), Shadows: len(m.shadows), Links: len(m.links), RefusedPattern: uint64(m.refused), Evicted: uint64(m.evicted), Expired: uint64(m.expired)}
	for path, e := range m.entries {
		if tag, at := c.Shown(path); tag != e.tag || at != e.tagged {
			t.Fatalf("%s shown: got %d at %d, want %d at %d", path, tag, at, e.tag, e.tagged)
		}
		want.Bytes += len(path)
		want.FromLog += bit(uint8(e.from & FromLog))
		want.FromTraffic += bit(uint8(e.from & FromTraffic))
		want.FromLinks += bit(uint8(e.from & FromLinks))
		if e.isLinked {
			want.Linked++
		}
		if e.isListed {
			want.Listed++
		}
		if rule := m.rule(path); rule != nil && e.reached >= rule.MinVisitors {
			want.Reached++
		}
	}
	got := c.Stats()
	got.Visits, got.Clients, got.RefusedFull = 0, 0, 0
	if got != want {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	for from := Origin(1); from < 8; from++ {
		for depth := range 4 {
			if got, want := candidates(t, c, from, depth), m.candidates(from, depth); !slices.Equal(got, want) {
				t.Fatalf("candidates of %d at depth %d: got %q, want %q", from, depth, got, want)
			}
		}
	}
}

func TestModel(t *testing.T) {
	options := []Options{
		{MaxPaths: 150, MaxPerPattern: 20, Expire: 40 * time.Hour, Unlinked: []Unlinked{{patternsOf(t, "/p/*", "/C1*"), 3}, {patternsOf(t, "*5"), 1}}},
		{MaxPaths: 60, MaxPerPattern: 10, Expire: 20 * time.Hour},
		{MaxPaths: 1000, MaxPerPattern: 30, Expire: 20 * time.Hour, Unlinked: []Unlinked{{patternsOf(t, "/p/*1*"), 2}, {patternsOf(t, "/p/*"), 5}}},
	}
	folders := []string{"/p/", "/q/", "/p/x?id=", "/c"}
	seeds := uint64(30)
	if slow {
		seeds = 8
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 1))
		randomPath := func() string {
			path := fmt.Sprintf("%s%d", folders[r.IntN(len(folders))], r.IntN(60))
			if r.IntN(2) == 0 {
				path = fmt.Sprintf("%s%c%c", folders[r.IntN(len(folders))], 'a'+r.IntN(26), 'a'+r.IntN(5))
			}
			return path
		}
		c, m := keyed(), &model{entries: make(map[string]*modelEntry), shadows: make(map[string]*modelShadow)}
		configure := func(o Options) {
			c.Configure(o)
			m.options = o
		}
		configure(options[0])
		now := int64(day)
		for range 60 {
			for range r.IntN(100) {
				network := r.IntN(9)
				client := fmt.Sprintf("198.51.%d.%d", network, r.IntN(3))
				if network > 5 {
					client = fmt.Sprintf("2001:db8:0:%d::%d", network, r.IntN(3))
				}
				path, at, tag := randomPath(), now-r.Int64N(3*hour), r.Uint32N(3)
				from := Origin(1) << r.IntN(2)
				if r.IntN(8) == 0 {
					at = 0
				}
				c.Visit(from, path, at, client, tag)
				m.visit(from, path, at, fmt.Sprint(network), tag)
				now += r.Int64N(300)
			}
			switch r.IntN(8) {
			case 0:
				configure(options[r.IntN(len(options))])
			case 1:
				c.Expire(now)
				m.expire(now)
			case 2:
				c.Expire(now)
				m.expire(now)
				c = again(t, c)
				m.reload()
			case 3, 4:
				var pages []modelPage
				for range r.IntN(20) {
					p := modelPage{depth: r.IntN(3), path: randomPath()}
					for range r.IntN(10) {
						p.links = append(p.links, randomPath())
					}
					pages = append(pages, p)
				}
				depth, grow := 1+r.IntN(2), r.IntN(2) == 0
				round := c.Round(depth, grow)
				for _, p := range pages {
					round.Page(p.depth, p.path, p.links)
				}
				round.End(now)
				m.round(depth, grow, now, pages)
				if round.Grown() != m.grown {
					t.Fatalf("seed %d: grown: got %t, want %t", seed, round.Grown(), m.grown)
				}
				for range 5 {
					path := randomPath()
					got, ok := c.DepthOf(path)
					if want, known := m.links[path]; ok != known || got != want {
						t.Fatalf("depth of %s: got %d, %t, want %d, %t", path, got, ok, want, known)
					}
				}
			default:
				for range r.IntN(40) {
					path, listed := randomPath(), r.IntN(3) > 0
					c.Listed(path, listed)
					if e := m.entries[path]; e != nil {
						e.isListed = listed
						if listed {
							e.networks = nil
						}
					}
				}
			}
			m.check(t, c)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
}

// TestPatternsCount holds the counting of patterns against a map, with hashes that meet
// in few places.
func TestPatternsCount(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	var p patterns
	counts := make(map[uint64]int)
	for range 20_000 {
		hash := uint64(r.IntN(40))<<60 | uint64(r.IntN(40))<<countBits
		if r.IntN(2) == 0 {
			p.add(hash | uint64(r.IntN(9)))
			counts[hash]++
		} else {
			p.remove(hash | uint64(r.IntN(9)))
			counts[hash] = max(counts[hash]-1, 0)
		}
		if got := p.count(hash); got != counts[hash] {
			t.Fatalf("got %d, want %d", got, counts[hash])
		}
	}
	for hash, n := range counts {
		if got := p.count(hash); got != n {
			t.Fatalf("got %d, want %d", got, n)
		}
	}
}

// TestOrder gives the same visits in any order, and some of them again.
func TestOrder(t *testing.T) {
	type visit struct {
		path   string
		at     int64
		client string
		tag    uint32
	}
	r := rand.New(rand.NewPCG(4, 4))
	var visits []visit
	for range 3000 {
		v := visit{fmt.Sprintf("/p/%d", r.IntN(300)), day + r.Int64N(12)*600, fmt.Sprintf("2001:db8:0:%d::1", r.IntN(30)), r.Uint32N(3)}
		if r.IntN(3) == 0 {
			v.at = 0
		}
		visits = append(visits, v)
	}
	state := func() string {
		c := keyed()
		c.Configure(Options{Unlinked: []Unlinked{{patternsOf(t, "/p/*"), 5}}})
		for _, v := range visits {
			c.Visit(FromLog, v.path, v.at, v.client, v.tag)
		}
		s := c.Stats()
		s.Visits, s.Clients = 0, 0 // of the latest alone
		got := fmt.Sprint(s, candidates(t, c, FromLog, 0))
		for i := range 300 {
			tag, at := c.Shown(fmt.Sprintf("/p/%d", i))
			got += fmt.Sprint(tag, at)
		}
		return got
	}
	want := state()
	for range 5 {
		r.Shuffle(len(visits), func(i, k int) { visits[i], visits[k] = visits[k], visits[i] })
		visits = append(visits, visits[:500]...)
		if got := state(); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
}

func TestCandidatesEnd(t *testing.T) {
	c := full(somePaths(10_000))
	ctx, cancel := context.WithCancel(context.Background())
	n := 0
	err := c.Candidates(ctx, FromTraffic, 0, func(string) error { n++; cancel(); return nil })
	if err != context.Canceled || n > fullSegment {
		t.Errorf("got %v after %d paths", err, n)
	}
	n = 0
	err = c.Candidates(context.Background(), FromTraffic, 0, func(string) error {
		if n++; n == 5 {
			return context.DeadlineExceeded
		}
		c.Visit(FromLog, fmt.Sprintf("/more/%d", n), day, "", 0) // it is not locked
		return nil
	})
	if err != context.DeadlineExceeded || n != 5 {
		t.Errorf("got %v after %d paths", err, n)
	}
}
