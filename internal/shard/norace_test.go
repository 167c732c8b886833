//go:build !race

package shard

const slow = false
