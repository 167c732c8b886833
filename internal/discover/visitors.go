package discover

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// count takes down in which hour who asked for a path that no page needs to link to,
// until enough have. Hour 0 is any.
func (c *Catalog) count(s *segment, e *entry, path string, hour uint32, who uint16) {
	rule := c.rule(s, e, path)
	if rule == nil || int(e.reached) >= rule.visitors() {
		return
	}
	known, n := false, 0
	for i := e.visitors; i != 0; i = s.visitors[i-1].next() {
		v := s.visitors[i-1]
		n++
		known = known || v.hash() == who
		switch {
		case hour == 0 || v.hour() == hour:
		case v.hour() == 0:
			s.visitors[i-1] = newVisitor(v.hash(), hour, v.next())
		default:
			e.flags |= manyHours
		}
	}
	if !known && n < rule.visitors() {
		s.push(e, who, hour)
		n++
	}
	if n >= rule.visitors() && e.flags&manyHours != 0 {
		e.reached = uint8(rule.visitors())
		s.forget(e)
	}
}

// network is a hash of the /24 or the /64 that an address is in; of all of it where it
// is none, such as one that a log holds hashed. False: nobody is named.
func (c *Catalog) network(client string) (uint16, bool) {
	if client == "" || client == "-" {
		return 0, false
	}
	addr, err := netip.ParseAddr(client)
	if err != nil {
		return uint16(sum(c.key[1], strings.ToLower(client))), true
	}
	var d xxhash.Digest
	d.ResetWithSeed(c.key[1])
	if addr = addr.Unmap(); addr.Is4() {
		b := addr.As4()
		_, _ = d.Write(b[:3])
	} else {
		b := addr.As16()
		_, _ = d.Write(b[:8])
	}
	return uint16(d.Sum64()), true
}

// recentVisits is how many visits recent knows. Those of nobody named are none.
const recentVisits = 2000

// recent holds hashes of the networks that the latest visits came from.
type recent struct {
	hashes []uint16
	next   int
}

func (r *recent) add(hash uint16) {
	if len(r.hashes) < recentVisits {
		r.hashes = append(r.hashes, hash)
		return
	}
	r.hashes[r.next] = hash
	r.next = (r.next + 1) % recentVisits
}

// count returns how many visits there are, and how many different clients nine tenths
// of them came from.
func (r *recent) count() (visits, clients int) {
	byClient := make(map[uint16]int)
	for _, hash := range r.hashes {
		byClient[hash]++
	}
	counts := slices.Sorted(maps.Values(byClient))
	slices.Reverse(counts)
	for left := 9 * len(r.hashes); left > 0; clients++ {
		left -= 10 * counts[clients]
	}
	return len(r.hashes), clients
}
