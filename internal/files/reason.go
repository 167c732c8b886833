package files

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// reason is why something is left out; 0: it is not.
type reason uint8

const (
	listed reason = iota
	notIncluded
	excluded
	hidden
	dotfile
	dependencyFolder
	errorPage
	ownershipFile
	empty
	notRegular
	unreadable
	vanished
	dangling
	linkLoop
	linkedOften
	duplicate
	nameTooLong
	nameRefused
	tooDeep
	reasons // how many there are
)

var reasonNames = [reasons]string{
	notIncluded:      "not included",
	excluded:         "excluded",
	hidden:           "hidden",
	dotfile:          "dotfile",
	dependencyFolder: "dependency folder",
	errorPage:        "error page",
	ownershipFile:    "ownership file",
	empty:            "empty",
	notRegular:       "not a regular file",
	unreadable:       Unreadable,
	vanished:         "vanished",
	dangling:         "dangling link",
	linkLoop:         "link loop",
	linkedOften:      "folder linked too often",
	duplicate:        "link to a listed page",
	nameTooLong:      "name too long",
	nameRefused:      "name not served",
	tooDeep:          "folder too deep",
}

// tally counts what was seen: in one folder, or by the emitter in all.
type tally struct {
	pages, folders int
	leftOut        [reasons]int
	unreadable     []string
}

func (t *tally) add(o *tally) {
	t.pages += o.pages
	t.folders += o.folders
	for i, n := range o.leftOut {
		t.leftOut[i] += n
	}
	for _, p := range o.unreadable {
		t.keep(p)
	}
}

func (t *tally) keep(path string) {
	if len(t.unreadable) < maxUnreadable {
		t.unreadable = append(t.unreadable, path)
	}
}

func (t *tally) stats() Stats {
	st := Stats{
		Pages: t.pages, Folders: t.folders,
		LeftOut: make(map[string]int), Unreadable: t.unreadable,
	}
	for i, n := range t.leftOut {
		if n > 0 {
			st.LeftOut[reasonNames[i]] = n
		}
	}
	return st
}

// reasonOf says what an error of opening or examining something means for it.
func reasonOf(err error) reason {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ESTALE):
		return vanished
	case errors.Is(err, syscall.ELOOP):
		return linkLoop
	case errors.Is(err, syscall.ENAMETOOLONG):
		return nameTooLong
	}
	return unreadable
}

// errPanic is the error of a file system that panicked.
var errPanic = errors.New("panic")

// caught calls f and makes an error of a panic in it: in a goroutine, nobody else
// would catch what a file system throws.
func caught(f func()) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: %v", errPanic, v)
		}
	}()
	f()
	return nil
}

// endsScan reports whether an error says nothing of the file alone.
func endsScan(err error) bool { return starved(err) || errors.Is(err, errPanic) }

// starved reports whether an error says nothing of the file, but that the
// process lacks what it needs to look at it.
func starved(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}
