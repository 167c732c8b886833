package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// client asks for a path over and over, on connections that are kept, one request after
// another on each, with a pause between them. It does as little as it can: it runs on the
// cores that the server runs on.
type client struct {
	addr, path  string
	connections int
	pause       time.Duration
}

// run returns the requests a second, and the seconds that 99 of 100 took at most.
func (c client) run(ctx context.Context, d time.Duration) (rate, p99 float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	took, errs := make([][]float64, c.connections), make([]error, c.connections)
	var group sync.WaitGroup
	for i := range took {
		group.Go(func() { took[i], errs[i] = c.requests(ctx) })
	}
	group.Wait()
	all := slices.Sorted(slices.Values(slices.Concat(took...)))
	if err := errors.Join(errs...); err != nil {
		return 0, 0, fmt.Errorf("requesting %s of %s: %d responses: %w", c.path, c.addr, len(all), err)
	}
	if len(all) == 0 {
		return 0, 0, fmt.Errorf("no response to %s from %s within %s", c.path, c.addr, d)
	}
	return float64(len(all)) / d.Seconds(), all[len(all)*99/100], nil
}

// requests returns the seconds that each request took until ctx ended.
func (c client) requests(ctx context.Context) (took []float64, err error) {
	conn, err := net.Dial("tcp", c.addr)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	request := []byte("GET " + c.path + " HTTP/1.1\r\nHost: " + c.addr + "\r\nAccept-Encoding: gzip\r\n\r\n")
	for in := bufio.NewReader(conn); ctx.Err() == nil; time.Sleep(c.pause) {
		begun := time.Now()
		if _, err := conn.Write(request); err != nil {
			return nil, err
		}
		line, err := in.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		if !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")) {
			return nil, fmt.Errorf("got %q", line)
		}
		for size := 0; err == nil && len(line) > len("\r\n"); {
			line, err = in.ReadSlice('\n')
			if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
				size, _ = strconv.Atoi(string(bytes.TrimSpace(value)))
			} else if len(line) == len("\r\n") {
				_, err = in.Discard(size)
			}
		}
		if err != nil {
			return nil, err
		}
		took = append(took, time.Since(begun).Seconds())
	}
	return took, nil
}

// latencyRows measure how long an index takes while the site is refreshed every second,
// over when nothing else is done: where nothing changes, and where a page does each time.
func (b *bench) latencyRows(ctx context.Context) []*row {
	what := number(b.small) + " files: p99 of an index while a refresh runs every second, over idle"
	same := &row{what: what + ", nothing changed", show: duration, reach: atMost(3)}
	edited := &row{what: what + ", a page changed each time", show: duration, reach: atMost(3)}
	root := b.tree("tree", b.small, small)
	s := b.serve("latency", files(root, "sitemap {\nrefresh 24h\n}"))
	must(s.listed(ctx, b.small))
	check(s.settle(ctx))
	c := client{addr: s.addr, path: "/sitemap.xml", connections: 4, pause: 4 * time.Millisecond}
	for range b.runs {
		for _, r := range []*row{same, edited} {
			_, idle, err := c.run(ctx, b.turn)
			check(err)
			done := make(chan error, 1)
			refreshing, cancel := context.WithCancel(ctx)
			go func() { done <- s.refreshEverySecond(refreshing, root, r == edited) }()
			_, p99, err := c.run(ctx, b.turn)
			cancel()
			check(err, <-done)
			r.add(p99, idle)
		}
		b.say("  latency: so far %s and %s, idle %s (%s)", duration(median(same.ours)), duration(median(edited.ours)), duration(median(same.other)), load())
	}
	return []*row{same, edited}
}

// refreshEverySecond refreshes a site until ctx has ended.
func (s *server) refreshEverySecond(ctx context.Context, root string, isEdited bool) error {
	for n := 0; ; n++ {
		next := time.After(time.Second)
		if isEdited {
			if err := edit(root, n%10*filesInFolder); err != nil {
				return err
			}
		}
		if _, _, err := s.refresh(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-next:
		}
	}
}

// rateRows compare how often a second an index is served with Caddy's respond, and with its
// file_server and a precompressed file, of about as many bytes each.
func (b *bench) rateRows(ctx context.Context) []*row {
	const pages, size = 1000, 1150 // bytes of gzip of their index
	var list strings.Builder
	for i := range pages {
		fmt.Fprintln(&list, pagePath(i))
	}
	urls, root := b.path("rate-urls.txt"), b.path("rate-files")
	// Without the plain file beside it, file_server does not look for the compressed one.
	check(os.MkdirAll(root, 0o755), os.WriteFile(urls, []byte(list.String()), 0o644),
		os.WriteFile(filepath.Join(root, "sitemap.xml"), []byte("<urlset/>"), 0o644),
		os.WriteFile(filepath.Join(root, "sitemap.xml.gz"), make([]byte, size), 0o644))
	addrs, sites := make([]string, 3), ""
	for i, directives := range []string{
		fmt.Sprintf("sitemap {\ncrawl off\nshard_urls 20\nurls %q\n}", urls),
		fmt.Sprintf("respond %q", strings.Repeat("x", size)),
		fmt.Sprintf("root * %q\nfile_server {\nprecompressed gzip\n}", root),
	} {
		addrs[i] = freeAddr()
		sites += site(addrs[i], directives)
	}
	s := b.start("rate", addrs[0], sites)
	must(s.first(ctx, s.sitemap()))
	respond := &row{what: "requests for an index of 1.1 kB of gzip, over `respond` with as many bytes", show: perSecond, reach: atLeast(0.95)}
	fileServer := &row{what: "the same, over `file_server` with a precompressed file", show: perSecond, reach: atLeast(2)}
	for run := range b.runs + 1 {
		var rates [3]float64
		for i, addr := range addrs {
			c := client{addr: addr, path: "/sitemap.xml", connections: 32}
			rate, _, err := c.run(ctx, b.turn)
			check(err)
			rates[i] = rate
		}
		b.say("  rate: %.0f (%s)", rates, load())
		if run > 0 { // the first warms up
			respond.add(rates[0], rates[1])
			fileServer.add(rates[0], rates[2])
		}
	}
	return []*row{respond, fileServer}
}
