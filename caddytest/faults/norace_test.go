//go:build !race

package faults

const slow = false
