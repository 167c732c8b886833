//go:build race

package fleet

// many pages: the race detector takes several times the processor time.
const many = 20_000
