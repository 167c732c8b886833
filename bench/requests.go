package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// requests asks for a path over and over, on so many connections at a time that are
// kept, one request after another on each, and returns the number of answers a second.
// It does as little as it can: it runs on the cores that the server runs on.
func requests(ctx context.Context, addr, path string, size, connections int, d time.Duration) (float64, error) {
	var over atomic.Bool
	counts, errs := make([]int, connections), make([]error, connections)
	var group sync.WaitGroup
	begun := time.Now()
	for i := range connections {
		group.Go(func() {
			counts[i], errs[i] = askOver(addr, path, size, &over)
		})
	}
	err := sleep(ctx, d)
	over.Store(true)
	group.Wait()
	took := time.Since(begun)
	if err := errors.Join(append(errs, err)...); err != nil {
		return 0, fmt.Errorf("asking %s: %w", addr, err)
	}
	answers := 0
	for _, n := range counts {
		answers += n
	}
	return math.Round(float64(answers) / took.Seconds()), nil
}

// askOver returns the number of its requests, all of which were answered by 200 with so
// many bytes.
func askOver(addr, path string, size int, over *atomic.Bool) (int, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	request := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nAccept-Encoding: gzip\r\n\r\n", path, addr)
	buf := make([]byte, 8<<10+size)
	n := 0
	for !over.Load() {
		if _, err := conn.Write(request); err != nil {
			return n, err
		}
		if err := readAnswer(conn, buf, size); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

var (
	statusOK  = []byte("HTTP/1.1 200 ")
	headerEnd = []byte("\r\n\r\n")
)

func readAnswer(conn net.Conn, buf []byte, size int) error {
	have, want := 0, 0
	for want == 0 || have < want {
		if have == len(buf) {
			return fmt.Errorf("more than %d bytes were answered", have)
		}
		n, err := conn.Read(buf[have:])
		if err != nil {
			return err
		}
		have += n
		if want > 0 {
			continue
		}
		if end := bytes.Index(buf[:have], headerEnd); end >= 0 {
			want = end + len(headerEnd) + size
		}
	}
	if have > want || !bytes.HasPrefix(buf, statusOK) {
		return fmt.Errorf("unexpected answer of %d bytes instead of %d: %.20q", have, want, buf)
	}
	return nil
}
