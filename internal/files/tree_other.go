//go:build !linux

package files

// maxPath: the calls themselves say when a path is too long.
const maxPath = 1 << 20

func newOSTree() tree { return osTree{} }
