//go:build !windows

package files

// refusedName reports whether a file server refuses to serve the name.
func refusedName(string) bool { return false }

// namesNothing reports whether an error says that no file can have such a name.
func namesNothing(error) bool { return false }
