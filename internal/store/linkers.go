package store

import "math/bits"

// Linkers estimates how many pages link to one, in 8 bytes: a HyperLogLog (Flajolet et al., 2007) of 16 registers of 4
// bits, with an error of a fourth. A page that is added again changes nothing, so it does not matter how often pages
// are fetched, nor in which order. It has all that ever linked to the page: links that are gone are not forgotten. The
// zero value: none.
type Linkers uint64

const (
	registers = 16
	maxRank   = 15
)

// With returns the estimate with one more page, by the hash of its path.
func (l Linkers) With(page uint64) Linkers {
	// The lowest bits choose the register, and the rest says how rare the page is: one in 2^rank has that rank.
	shift := page % registers * 4
	rank := min(uint64(bits.TrailingZeros64(page/registers))+1, maxRank)
	if uint64(l)>>shift&maxRank >= rank {
		return l
	}
	return l&^(maxRank<<shift) | Linkers(rank<<shift)
}

// Merge returns the estimate of the pages of both.
func (l Linkers) Merge(o Linkers) Linkers {
	var merged Linkers
	for shift := 0; shift < 64; shift += 4 {
		merged |= max(l>>shift&maxRank, o>>shift&maxRank) << shift
	}
	return merged
}

// fewest are estimates by how many registers are not used: 16·ln(16/n), rounded. Below 2.5 times their number, that is
// nearer.
var fewest = [registers + 1]uint64{0, 44, 33, 27, 22, 19, 16, 13, 11, 9, 8, 6, 5, 3, 2, 1, 0}

// Count returns the number of pages, roughly. It computes with integers, so that it is the same on all machines.
func (l Linkers) Count() uint64 {
	var sum, unused uint64 // sum: of 2^-rank, in units of 2^-maxRank
	for shift := 0; shift < 64; shift += 4 {
		rank := uint64(l) >> shift & maxRank
		sum += 1 << (maxRank - rank)
		if rank == 0 {
			unused++
		}
	}
	// 0.673 corrects the mean for 16 registers.
	count := 673 * registers * registers << maxRank / (1000 * sum)
	if unused > 0 && count <= registers*5/2 {
		return fewest[unused]
	}
	return count
}

// Magnitude is 0 for no pages, 1 for one, 2 for two or three, 3 for four to seven and so on: it changes rarely as pages
// are added.
func (l Linkers) Magnitude() uint8 { return uint8(bits.Len64(l.Count())) }
