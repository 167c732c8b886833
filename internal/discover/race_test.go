//go:build race

package discover

// The race detector makes what has one goroutine only slow.
const slow = true
