//go:build race

package shard

// A Cutter has one goroutine: the race detector only makes these tests slow.
const slow = true
