// Package discover keeps what is known of a site's paths from its visitors and from the
// links of its pages, and says which of them may be listed.
package discover

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/seed3295b519/caddy-sitemap/internal/page"
)

// Origin is what showed a path, as bits.
type Origin uint8

// The origins of paths.
const (
	FromLog Origin = 1 << iota
	FromTraffic
	FromLinks
)

// Defaults of [Options], and the bytes that paths may have.
const (
	DefaultMaxPaths      = 1_000_000
	DefaultMaxPerPattern = 10_000
	BytesPerPath         = 160
)

// Options are the rules and the bounds of a [Catalog].
type Options struct {
	// Unlinked are the rules for paths that no page links to. The first that matches a
	// path is its own; one without a rule is no candidate until it is linked to.
	Unlinked []Unlinked

	// Expire is how long a path is known without a visit or a link. Default: forever.
	Expire time.Duration

	// MaxPaths is how many paths are known at most; they have MaxPaths*BytesPerPath
	// bytes at most together. Default: DefaultMaxPaths.
	MaxPaths int

	// MaxPerPattern is how many paths are known at most that differ in numbers alone.
	// Default: DefaultMaxPerPattern.
	MaxPerPattern int
}

// Unlinked is a rule for paths that no page links to.
type Unlinked struct {
	Match page.Patterns

	// MinVisitors is how many different visitors must have asked for a path, in two
	// different hours at least. Networks count: addresses of one /24, or one /64, are
	// one visitor. It is from 1 to 255; what is less or more is taken for those.
	MinVisitors int
}

func (u *Unlinked) visitors() int { return min(max(u.MinVisitors, 1), math.MaxUint8) }

// Catalog is all paths of a site that visitors or links showed. It is for concurrent
// use: it is locked for a microsecond by a visit, and for a fraction of a millisecond
// at a time by all else, because paths lie in segments of two thousand at most, and what
// concerns all of them takes one segment after the other.
//
// Paths are given in [Cleaner.Clean]'s form; those of assets are not taken. What is told of a path that is not known
// is lost, save by Visit and by links.
type Catalog struct {
	mu      sync.Mutex
	options Options
	rules   uint32 // how often they were set
	recent  recent
	store

	ending sync.Mutex // one round after the other
}

// store is the part of a catalog that is kept on disk.
type store struct {
	key      [2]uint64  // of the hashes of paths and links, and of visitors
	segments []*segment // by the first bits of a path's hash
	bits     uint8      // how many those are
	paths    int
	bytes    int // of paths
	patterns patterns
	links    linkSet // of the last round
	rounded  uint32  // when it ended
	shadows  shadows

	evicted, expired, refused, full uint64
	droppedLinks                    uint64
	fullPatterns                    []string
	told                            int // of fullPatterns
}

// NewCatalog makes an empty catalog, with the defaults for its options. Its hashes
// have a key of their own, so that nobody can choose paths or addresses to collide.
func NewCatalog() *Catalog {
	var key [16]byte
	_, _ = rand.Read(key[:]) // it never fails
	c := &Catalog{store: newStore(key[:])}
	c.Configure(Options{})
	return c
}

func newStore(key []byte) store {
	return store{
		key:      [2]uint64{binary.LittleEndian.Uint64(key), binary.LittleEndian.Uint64(key[8:])},
		segments: []*segment{{}},
	}
}

// Configure sets the options, unless they are set already. Bounds that are lower than before take effect with the
// next Expire.
func (c *Catalog) Configure(o Options) {
	if o.MaxPaths <= 0 {
		o.MaxPaths = DefaultMaxPaths
	}
	if o.MaxPerPattern <= 0 {
		o.MaxPerPattern = DefaultMaxPerPattern
	}
	o.Unlinked = slices.Clone(o.Unlinked)
	c.mu.Lock()
	defer c.mu.Unlock()
	if reflect.DeepEqual(o, c.options) {
		return // each entry's rule would be looked for again
	}
	c.options = o
	c.rules++
}

func (c *Catalog) maxBytes() int { return c.options.MaxPaths * BytesPerPath }

// isPath reports whether a path may become an entry: assets, which scanners ask for and
// rules may match, are no pages.
func isPath(path string) bool {
	return path != "" && path[0] == '/' && len(path) <= MaxPath && !IsAsset(path)
}

// second is a time as entries hold it, until the year 2106.
func second(at int64) uint32 { return uint32(min(max(at, 0), math.MaxUint32)) }

func sum(key uint64, s string) uint64 {
	var d xxhash.Digest
	d.ResetWithSeed(key)
	_, _ = d.WriteString(s) // it never fails
	return d.Sum64()
}

func sumBytes(key uint64, b []byte) uint64 {
	var d xxhash.Digest
	d.ResetWithSeed(key)
	_, _ = d.Write(b) // it never fails
	return d.Sum64()
}

// Visit takes down that a path was answered at Unix second at, which is not after the
// present; 0: nobody knows when, so its tag and its hour do not count. client is the visitor's address, of which a hash of 16 bits is kept, and
// only while Unlinked has it counted; "" and "-" are nobody. tag is a hash of the
// answer's validators, 0 if it had none. The same visit again changes nothing.
func (c *Catalog) Visit(from Origin, path string, at int64, client string, tag uint32) {
	if !isPath(path) {
		return
	}
	now := second(at)
	c.mu.Lock()
	defer c.mu.Unlock()
	who, isNamed := c.network(client)
	if isNamed {
		c.recent.add(who)
	}
	hash := sum(c.key[0], path)
	s := c.segment(hash)
	e := s.find(hash, path)
	if e == nil {
		if e = c.discover(hash, path, now); e == nil {
			return
		}
		s = c.segment(hash)
	}
	e.flags |= uint8(from) & origins
	e.seen = max(e.seen, now)
	if tag != 0 && now != 0 && (now > e.tagged || now == e.tagged && tag > e.tag) {
		e.tag, e.tagged = tag, now
	}
	if isNamed && len(c.options.Unlinked) > 0 && e.flags&isListed == 0 {
		c.count(s, e, path, now/3600, who)
	}
}

// discover adds a path that a visitor showed; nil if there is no room for it.
func (c *Catalog) discover(hash uint64, path string, now uint32) *entry {
	n := newcomer{worthNothing, now}
	if _, ok := c.links.depth(hash); ok {
		n = newcomer{worthLinked, max(now, c.rounded)}
	}
	e := c.insert(hash, path, n)
	if e != nil {
		c.link(e, hash)
	}
	return e
}

// segment is where the path of a hash belongs.
func (c *Catalog) segment(hash uint64) *segment { return c.segments[hash>>(64-c.bits)] }

func (c *Catalog) has(path string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	hash := sum(c.key[0], path)
	return c.segment(hash).find(hash, path) != nil
}

func (c *Catalog) hasShadow(hash uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shadows.find(hash) != nil
}

// Listed says whether a path is in the site's sitemap as of now.
func (c *Catalog) Listed(path string, listed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	hash := sum(c.key[0], path)
	s := c.segment(hash)
	e := s.find(hash, path)
	switch {
	case e == nil:
	case listed:
		e.flags |= isListed
		s.forget(e)
	default:
		e.flags &^= isListed
		s.stuck = 0
	}
}

// Shown is the tag of the latest visit that had one, and its Unix second; zeros if
// there was none.
func (c *Catalog) Shown(path string) (tag uint32, at int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	hash := sum(c.key[0], path)
	e := c.segment(hash).find(hash, path)
	if e == nil {
		return 0, 0
	}
	return e.tag, int64(e.tagged)
}

// Known is what a catalog knows of a path.
type Known struct {
	From    Origin // what showed it; 0: nothing did
	Hashed  bool   // visitors showed it before it was read from disk, and its hash alone is left
	Linked  bool   // a page of the last round links to it
	Depth   int    // how many links it is away from the pages of other sources, if Linked
	Wants   int    // how many visitors its rule in Unlinked wants; 0: it has none
	Reached bool   // so many had it
}

// Known is what is known of a path.
func (c *Catalog) Known(path string) Known {
	c.mu.Lock()
	defer c.mu.Unlock()
	hash := sum(c.key[0], path)
	depth, linked := c.links.depth(hash)
	k := Known{Linked: linked, Depth: int(depth), Hashed: c.shadows.find(hash) != nil}
	s := c.segment(hash)
	e := s.find(hash, path)
	if e == nil {
		return k
	}
	k.From, k.Reached = Origin(e.flags&origins), c.isReached(s, e)
	if rule := c.rule(s, e, path); rule != nil {
		k.Wants = rule.visitors()
	}
	return k
}

// Candidates calls yield for each path that may be listed and has one of the origins:
// one that a page links to, where its only such origin is FromLinks at most depth
// links away from the pages of other sources, and one with a rule in Unlinked that
// enough visitors have asked for. The order is none. Paths share their memory with
// some hundred others. It ends with yield's error or ctx's.
func (c *Catalog) Candidates(ctx context.Context, from Origin, depth int, yield func(path string) error) error {
	var (
		text []byte
		ends []int
	)
	return c.walk(func(s *segment) {
		text, ends = text[:0], ends[:0]
		for i := range s.entries {
			e := &s.entries[i]
			if c.isCandidate(s, e, from, depth) {
				text = append(text, s.path(e)...)
				ends = append(ends, len(text))
			}
		}
	}, func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		all, start := string(text), 0
		for _, end := range ends {
			if err := yield(all[start:end]); err != nil {
				return err
			}
			start = end
		}
		return nil
	})
}

func (c *Catalog) isCandidate(s *segment, e *entry, from Origin, depth int) bool {
	shown := Origin(e.flags) & from
	if shown == 0 {
		return false
	}
	if e.flags&isLinked != 0 && (shown != FromLinks || int(e.depth) <= depth) {
		return true
	}
	return shown != FromLinks && c.isReached(s, e)
}

// isReached reports whether enough visitors asked for a path that is in no need of a
// link.
func (c *Catalog) isReached(s *segment, e *entry) bool {
	if e.reached == 0 || len(c.options.Unlinked) == 0 {
		return false
	}
	rule := c.rule(s, e, "")
	return rule != nil && int(e.reached) >= rule.visitors()
}

// rule is the rule of an entry's path, nil if it has none. path may be "".
func (c *Catalog) rule(s *segment, e *entry, path string) *Unlinked {
	if s.rules != c.rules {
		for i := range s.entries {
			s.entries[i].rule = ruleUnknown
		}
		s.rules = c.rules
	}
	switch e.rule {
	case ruleNone:
		return nil
	case ruleUnknown:
	default:
		return &c.options.Unlinked[e.rule-1]
	}
	if path == "" {
		path = string(s.path(e))
	}
	for i := range c.options.Unlinked {
		if c.options.Unlinked[i].Match.Match(path) {
			if i+1 < ruleNone {
				e.rule = uint8(i + 1)
			}
			return &c.options.Unlinked[i]
		}
	}
	e.rule = ruleNone
	return nil
}

// each calls f for every segment, locked.
func (c *Catalog) each(f func(s *segment)) {
	_ = c.walk(f, func() error { return nil })
}

// walk calls locked for every segment, locked, and free after it, not locked. Paths
// that come and go meanwhile may be met or not; all others are met once.
func (c *Catalog) walk(locked func(s *segment), free func() error) error {
	for from := uint64(0); ; {
		c.mu.Lock()
		s := c.segment(from)
		width := uint64(1) << (64 - s.bits) // of the range of its hashes; 0: all
		locked(s)
		c.mu.Unlock()
		if err := free(); err != nil {
			return err
		}
		if from = from&^(width-1) + width; from == 0 {
			return nil
		}
	}
}

// Stats says how many paths there are of which kind, and what the bounds have dropped
// since the catalog was made or decoded.
type Stats struct {
	Paths, Bytes                    int
	FromLog, FromTraffic, FromLinks int
	Linked, Reached, Listed         int // Reached: by visitors, whether linked to or not
	Shadows                         int // paths of which a hash alone is known, since they were read
	Links                           int // paths that the last round has links to, known or not
	Evicted, Expired                uint64
	RefusedFull, RefusedPattern     uint64 // visits and links that added no path
	DroppedLinks                    uint64
	Visits, Clients                 int // the latest visits of somebody who is named, 2,000 at most, and from how many clients nine tenths of them were
}

// Stats counts.
func (c *Catalog) Stats() Stats {
	var t Stats
	c.each(func(s *segment) {
		for i := range s.entries {
			e := &s.entries[i]
			t.FromLog += bit(e.flags & uint8(FromLog))
			t.FromTraffic += bit(e.flags & uint8(FromTraffic))
			t.FromLinks += bit(e.flags & uint8(FromLinks))
			t.Linked += bit(e.flags & isLinked)
			t.Listed += bit(e.flags & isListed)
			if c.isReached(s, e) {
				t.Reached++
			}
		}
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	t.Paths, t.Bytes, t.Links = c.paths, c.bytes, len(c.links)
	t.Evicted, t.Expired, t.RefusedFull, t.RefusedPattern = c.evicted, c.expired, c.full, c.refused
	t.Shadows, t.DroppedLinks = c.shadows.count, c.droppedLinks
	t.Visits, t.Clients = c.recent.count()
	return t
}

func bit(b uint8) int {
	if b != 0 {
		return 1
	}
	return 0
}

// Full returns patterns as of [Fold] of which no more paths are taken, each once: those
// that became full since the last call. It is about the first ten alone.
func (c *Catalog) Full() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	news := slices.Clone(c.fullPatterns[c.told:])
	c.told = len(c.fullPatterns)
	return news
}
