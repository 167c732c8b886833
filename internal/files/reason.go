package files

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// Why something is left out.
const (
	// Unreadable is the reason, in [Stats.LeftOut], of what could not be read.
	Unreadable = "unreadable"

	// Dotfile is the reason of a file or folder whose name begins with a dot.
	Dotfile = "dotfile"

	listed           = "" // it is not
	notIncluded      = "not included"
	excluded         = "excluded"
	hidden           = "hidden"
	dependencyFolder = "dependency folder"
	errorPage        = "error page"
	ownershipFile    = "ownership file"
	notRegular       = "not a regular file"
	missing          = "missing" // what a link leads to, if that is not the link itself, or a file that was there just now
	unknownTarget    = "link to an unknown folder"
	duplicate        = "link to what is listed"
)

// reasonOf returns why a file or folder is left out, given the error of opening or examining it, or listed.
func reasonOf(err error) string {
	switch {
	case err == nil:
		return listed
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ESTALE), errors.Is(err, syscall.ELOOP):
		return missing
	}
	return Unreadable
}

// errPanic is the error of a file system that panicked.
var errPanic = errors.New("panic")

// caught calls f and returns its panic as an error: in a goroutine, nobody else would recover it.
func caught(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: %v", errPanic, v)
		}
	}()
	return f()
}

// endsScan reports whether an error concerns more than one file: the process lacks what it needs, or
// the file system is broken.
func endsScan(err error) bool {
	noDescriptor := errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
	noMemory := errors.Is(err, syscall.ENOMEM)
	return noDescriptor || noMemory || errors.Is(err, errPanic)
}
