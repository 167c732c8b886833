//go:build !linux

package files

func newOSTree(folder string) (tree, string, error) { return newDiskTree(folder) }
