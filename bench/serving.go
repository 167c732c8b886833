package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// client asks for a path over and over, on connections that are kept, one request after
// another on each. It does as little as it can: it runs on the cores that the server runs on.
type client struct {
	addr, path  string
	connections int
}

// run returns the requests a second.
func (c client) run(ctx context.Context, d time.Duration) float64 {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	counts := make([]int, c.connections)
	errs := make([]error, c.connections)
	var group sync.WaitGroup
	for i := range counts {
		group.Go(func() { counts[i], errs[i] = c.requests(ctx) })
	}
	group.Wait()
	check(errs...)
	all := 0
	for _, n := range counts {
		all += n
	}
	return float64(all) / d.Seconds()
}

// requests makes requests on one connection until ctx ends, and returns how many.
func (c client) requests(ctx context.Context) (n int, err error) {
	conn, err := net.Dial("tcp", c.addr)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	request := []byte("GET " + c.path + " HTTP/1.1\r\nHost: " + c.addr + "\r\nAccept-Encoding: gzip\r\n\r\n")
	in := bufio.NewReader(conn)
	for ctx.Err() == nil {
		if _, err := conn.Write(request); err != nil {
			return 0, err
		}
		if err := skipResponse(in); err != nil {
			return 0, fmt.Errorf("requesting %s of %s: %w", c.path, c.addr, err)
		}
		n++
	}
	return n, nil
}

// skipResponse reads a whole response, which is to be a 200 with a Content-Length.
func skipResponse(in *bufio.Reader) error {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")) {
		return fmt.Errorf("got %q", line)
	}
	size := 0
	for len(line) > len("\r\n") {
		line, err = in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			size, _ = strconv.Atoi(string(bytes.TrimSpace(value)))
		}
	}
	_, err = in.Discard(size)
	return err
}

// servingRows compare how often a second an index is served with Caddy's respond, and with its
// file_server and a precompressed file, of about as many bytes each.
func (b *bench) servingRows(ctx context.Context) []*row {
	const pages, size = 1000, 1150 // bytes of gzip of their index
	var list strings.Builder
	for i := range pages {
		fmt.Fprintln(&list, pagePath(i))
	}
	urls := b.path("serving-urls.txt")
	root := b.path("serving-files")
	// Without the plain file beside it, file_server does not look for the compressed one.
	check(os.MkdirAll(root, 0o755), os.WriteFile(urls, []byte(list.String()), 0o644),
		os.WriteFile(filepath.Join(root, "sitemap.xml"), []byte("<urlset/>"), 0o644),
		os.WriteFile(filepath.Join(root, "sitemap.xml.gz"), make([]byte, size), 0o644))
	addrs := make([]string, 3)
	sites := ""
	for i, directives := range []string{
		fmt.Sprintf("sitemap {\ncrawl off\nshard_urls 20\nurls %q\n}", urls),
		fmt.Sprintf("respond %q", strings.Repeat("x", size)),
		fmt.Sprintf("root * %q\nfile_server {\nprecompressed gzip\n}", root),
	} {
		addrs[i] = freeAddr()
		sites += site(addrs[i], directives)
	}
	s := b.start("serving", addrs[0], sites)
	must(s.first(ctx, s.sitemap()))
	respond := &row{what: "requests for an index of 1.1 kB of gzip, over `respond` with as many bytes", show: perSecond, reach: atLeast(0.95)}
	fileServer := &row{what: "the same, over `file_server` with a precompressed file", show: perSecond, reach: atLeast(2)}
	for run := range b.runs + 1 {
		var rates [3]float64
		for i, addr := range addrs {
			c := client{addr: addr, path: "/sitemap.xml", connections: 32}
			rates[i] = c.run(ctx, b.turn)
		}
		b.say("  serving: %.0f (%s)", rates, load())
		if run > 0 { // the first warms up
			respond.add(rates[0], rates[1])
			fileServer.add(rates[0], rates[2])
		}
	}
	return []*row{respond, fileServer}
}
