//go:build race

package faults

// slow: the race detector takes several times the memory and processor time.
const slow = true
