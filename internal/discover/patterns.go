package discover

// patterns counts how many paths there are of each pattern with folded digits. Of a
// pattern without digits there is one at most, and it is not counted.
type patterns struct {
	slots []uint64 // hash of the pattern, in its last bits how many paths; 0: free
	used  int
}

const (
	countBits = 24
	countMask = 1<<countBits - 1
)

func (p *patterns) home(hash uint64) int { return int(hash >> countBits & uint64(len(p.slots)-1)) }

// find returns where a pattern is counted, or would be.
func (p *patterns) find(hash uint64) int {
	i := p.home(hash)
	for p.slots[i] != 0 && p.slots[i]^hash > countMask {
		i = (i + 1) & (len(p.slots) - 1)
	}
	return i
}

func (p *patterns) count(hash uint64) int {
	if len(p.slots) == 0 {
		return 0
	}
	return int(p.slots[p.find(hash)] & countMask)
}

func (p *patterns) add(hash uint64) {
	if 8*(p.used+1) > 7*len(p.slots) {
		old := p.slots
		p.slots = make([]uint64, max(2*len(old), 16))
		for _, slot := range old {
			if slot != 0 {
				p.slots[p.find(slot)] = slot
			}
		}
	}
	i := p.find(hash)
	if p.slots[i] == 0 {
		p.slots[i] = hash &^ countMask
		p.used++
	}
	if p.slots[i]&countMask < countMask {
		p.slots[i]++
	}
}

func (p *patterns) remove(hash uint64) {
	if len(p.slots) == 0 {
		return
	}
	i := p.find(hash)
	if p.slots[i]&countMask == 0 {
		return
	}
	if p.slots[i]--; p.slots[i]&countMask != 0 {
		return
	}
	p.used--
	// Those after it move up, unless they lie at home already.
	mask := len(p.slots) - 1
	for j := (i + 1) & mask; p.slots[j] != 0; j = (j + 1) & mask {
		if home := p.home(p.slots[j]); (j-home)&mask >= (j-i)&mask {
			p.slots[i] = p.slots[j]
			i = j
		}
	}
	p.slots[i] = 0
}
