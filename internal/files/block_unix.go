//go:build unix

package files

import "syscall"

// dontBlock keeps a FIFO from holding up who opens it, and a terminal from becoming
// the process's own.
const dontBlock = syscall.O_NONBLOCK | syscall.O_NOCTTY
