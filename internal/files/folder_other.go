//go:build !linux

package files

import "os"

// openDisk opens a folder of the operating system.
func openDisk(path string) (folderReader, error) { return openFS(os.DirFS(path), ".") }
