//go:build race

package state

// The race detector makes what has one goroutine only slow.
const slow = true
