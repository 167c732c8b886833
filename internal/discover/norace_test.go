//go:build !race

package discover

const slow = false
