package harness

import (
	"net"
	"strconv"
	"sync"
	"testing"
)

// Ports are given out of blocks below those that systems choose from for anyone who
// asks for just any: nobody gets one between a test's asking for it and Caddy's
// listening on it.
const (
	firstBlock = 20000
	lastBlock  = 31900
	blockSize  = 100
)

// block is what this process has of the ports.
var block struct {
	sync.Mutex
	held net.Listener // its first port: listening on it keeps other processes off the block
	next int
}

// FreePort is a port that nobody listens on, and that no other process of tests gets.
func FreePort(t *testing.T) string {
	t.Helper()
	block.Lock()
	defer block.Unlock()
	for first := firstBlock; block.held == nil; first += blockSize {
		if first > lastBlock {
			t.Fatal("no block of ports is free")
		}
		if l, err := listen(first); err == nil {
			block.held, block.next = l, first+1
		}
	}
	first := block.held.Addr().(*net.TCPAddr).Port
	for range blockSize {
		port := block.next
		if block.next++; block.next == first+blockSize {
			block.next = first + 1
		}
		if l, err := listen(port); err == nil {
			_ = l.Close()
			return strconv.Itoa(port)
		}
	}
	t.Fatal("no port is free")
	return ""
}

// listen takes a port of all addresses, as Caddy does.
func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", ":"+strconv.Itoa(port))
}
