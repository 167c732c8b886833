//go:build !race

package harness

// Race says that the race detector is on, which takes several times the memory and processor time.
const Race = false
