//go:build !linux

package files

func newDiskHandle() func() handle { return nil }
