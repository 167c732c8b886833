package files

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// Unreadable is the reason, in [Stats.LeftOut], of what could not be read.
const Unreadable = "unreadable"

// Dotfile is the reason of a file or folder whose name begins with a dot.
const Dotfile = "dotfile"

// Why something else is left out.
const (
	listed           = "" // it is not
	notIncluded      = "not included"
	excluded         = "excluded"
	hidden           = "hidden"
	dependencyFolder = "dependency folder"
	errorPage        = "error page"
	ownershipFile    = "ownership file"
	notRegular       = "not a regular file"
	vanished         = "vanished"
	dangling         = "dangling link"
	linkLoop         = "link loop"
	unknownTarget    = "link to an unknown folder"
	duplicate        = "link to what is listed"
	nameTooLong      = "name too long"
)

// reasonOf returns why a file or folder is left out, given the error of opening or examining it.
func reasonOf(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ESTALE):
		return vanished
	case errors.Is(err, syscall.ELOOP):
		return linkLoop
	case errors.Is(err, syscall.ENAMETOOLONG):
		return nameTooLong
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
