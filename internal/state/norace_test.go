//go:build !race

package state

const slow = false
